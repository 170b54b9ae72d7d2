/* audit.h: the audit command's line, and its part for whole products. */
#ifndef ICF_CMD_AUDIT_H
#define ICF_CMD_AUDIT_H
#include "icf/audit/audit.h"

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

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

/* Reports on the product that the N operands and the list name.  Returns the exit status. */
int icf_audit_product(const struct icf_audit_command *c, char **operand, int n);
#endif
