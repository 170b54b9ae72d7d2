/* audit.h: the audit command's line, and its part for whole products. */
#ifndef ICF_CMD_AUDIT_H
#define ICF_CMD_AUDIT_H
#include "icf/audit/audit.h"

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_GITHUB, FORMAT_GITLAB, FORMAT_SARIF };

struct icf_audit_command {
	struct icf_audit_options opt;
	const char *html, *rows, *package;
	const char **why; /* owned array of borrowed patterns */
	size_t n_why;
	const char *files_from; /* NULL: none */
	int format;
	bool diff, top_given, quiet;
	uint64_t memory;
	uint64_t max_growth, max_duplicated; /* UINT64_MAX: no limit */
};

/* Is the command line about a product: several files, a folder, an archive, or a list? */
bool icf_audit_is_product(const struct icf_audit_command *c, char **operand, int n);

/* Compares the products OPERAND[0] and OPERAND[1], or reports on the product that the N operands
 * and the list name.  Both return the exit status. */
int icf_audit_products(const struct icf_audit_command *c, char **operand);
int icf_audit_product(const struct icf_audit_command *c, char **operand, int n);

/* Writes the rows of the files that the N operands and the list name.  Returns the exit status. */
int icf_audit_write_rows(const struct icf_audit_command *c, char **operand, int n);
#endif
