/* product.h: the audit of many files as one product.
 *
 *	collect (collect.h) -> analyse each file in a process of its own (jobs.h) -> compare
 *	(share.h) -> report
 *
 * What one file's analysis finds is a record of fixed size and one line a function.  The lines of
 * all files lie in a temporary file without a name (`spool`), so that memory does not grow with the
 * product.  A file that cannot be analysed is a line of the report. */
#ifndef ICF_AUDIT_PRODUCT_PRODUCT_H
#define ICF_AUDIT_PRODUCT_PRODUCT_H
#include "icf/audit/audit.h"

struct icf_product_file;
struct icf_product_facts;
struct elfrw_wbuf;

/* What is kept of each file besides its facts, if not what the report needs. */
struct icf_product_reader {
	/* Analyses file F, which is open()ed as PATH, in a process that ends soon.  Fills the sums
	 * and hashes of FACTS (icf_product_facts_of), and puts what is kept into KEEP. */
	struct elfrw_err *(*read)(const struct icf_product_reader *r,
				  const struct icf_product_file *f, const char *path,
				  struct icf_product_facts *facts, struct elfrw_wbuf *keep);
};

struct icf_product_options {
	struct icf_audit_options audit; /* threads: files that are analysed at once */
	uint64_t memory;                /* bytes; what the analyses at one time may take together */
	FILE *progress;                 /* a terminal shows how far it is; NULL: silent */
	const struct icf_product_reader *reader; /* NULL: for a report */
};

#define ICF_PRODUCT_NO_TEXT UINT32_MAX

/* One function of a file. */
struct icf_product_func {
	uint64_t hash[2]; /* the same for the same function, wherever it lies (icf/hash/hash.h) */
	uint32_t size;
	uint32_t name; /* the linkage name, in the file's strings; ICF_PRODUCT_NO_TEXT: none */
	uint32_t source, unit; /* the same: file that defines it, compilation unit */
	uint32_t line;         /* 0: not known */
	uint32_t flags;        /* ICF_PRODUCT_* */
};
#define ICF_PRODUCT_EXPORTED 1 /* other files can call it by its name */

enum icf_product_level {
	ICF_LEVEL_RELOCS,   /* the linker kept the relocations */
	ICF_LEVEL_INFERRED, /* references are inferred from the code */
	ICF_LEVEL_IN_PLACE, /* nothing may move: folding leaves holes */
};

/* What is known of a file as a whole. */
struct icf_product_facts {
	uint64_t code, text;
	uint64_t duplicated[ICF_AUDIT_MODES]; /* bytes of folded bodies */
	uint64_t saved[ICF_AUDIT_MODES];      /* bytes of .text that folding saves */
	uint64_t unused;                      /* bytes; 0 with `unused_known` false, too */
	uint64_t content[2], code_hash[2];    /* of the whole file, of its code */
	uint32_t functions, folded[ICF_AUDIT_MODES], unused_functions;
	uint32_t soname; /* in the file's strings, or ICF_PRODUCT_NO_TEXT */
	uint8_t level;   /* enum icf_product_level */
	bool unused_known, has_build_id;
	uint8_t build_id[20]; /* the first bytes, the rest zero */
	uint64_t spool;       /* the place of the functions in the spool; the strings follow */
	uint64_t kept;        /* bytes there */
	uint32_t n_func, n_strings;
};

enum icf_product_state {
	ICF_FILE_WAITS,
	ICF_FILE_DONE,
	ICF_FILE_COPY,
	ICF_FILE_BAD,
	ICF_FILE_ARCHIVE, /* no line of the report: its members are */
};

struct icf_product_file {
	char *name;    /* as it is shown: a path, or ARCHIVE:MEMBER; owned */
	size_t rel;    /* the part of the name that is the same in another build begins here */
	char *path;    /* to be opened; owned; NULL: a member, see fd */
	char *package; /* that it is in, by name; owned; NULL: none */
	int fd;        /* of a member that waits, or -1 */
	int attempt;   /* 1: with more memory than expected; 2: with all of it */
	bool asked;    /* named by the user, and not found in a folder */
	bool unread;   /* with ICF_FILE_BAD: it, or a part of it, could not be read */
	uint64_t size;
	dev_t dev;
	ino_t ino;
	uint8_t state;    /* enum icf_product_state */
	uint32_t copy_of; /* with ICF_FILE_COPY: index of a file with the same contents */
	uint32_t same_as; /* index of the first name of this very file, or ICF_NONE: this is it */
	char *why;        /* with ICF_FILE_BAD; owned */
	struct icf_product_facts facts; /* with ICF_FILE_DONE and ICF_FILE_COPY */
	/* Of functions that other files have, too: */
	uint32_t shared;
	uint64_t shared_bytes;
};

/* A function that several files have. */
struct icf_product_group {
	uint64_t hash[2];
	uint64_t size;     /* of one body */
	uint64_t saving;   /* one body in all files instead of one in each */
	uint32_t member;   /* into `member`, by file and place */
	uint32_t count;    /* bodies */
	uint32_t files;    /* that have one or more */
	uint32_t name;     /* in the pool; demangled, or ICF_NONE: no file has a name for it */
	uint32_t key[3];   /* by enum icf_dimension: family, namespace, library; or ICF_NONE */
	uint32_t exporter; /* the first file that exports it, or ICF_NONE */
	bool match;        /* passes the filter */
};

struct icf_product_member {
	uint32_t file, func;
};

/* A row of a table over the groups. */
struct icf_product_row {
	uint32_t key; /* in the pool, or ICF_NONE; of a table of libraries: a file */
	uint32_t groups, bodies;
	uint64_t saving;
};
typedef VEC(struct icf_product_row) icf_product_rows;

/* Two files, and what both have. */
struct icf_product_pair {
	uint32_t a, b;
	uint32_t functions;
	uint64_t bytes;
};
#define ICF_PRODUCT_PAIRS 200 /* no report lists more */

struct icf_product {
	VEC(struct icf_product_file) file;   /* by name */
	VEC(struct icf_product_group) group; /* in the order of the report */
	VEC(struct icf_product_member) member;
	VEC(struct icf_product_pair) pair; /* most bytes first */
	bool pairs_cut;                    /* too many: some are not counted */
	struct icf_pool pool;
	int spool;          /* -1: none */
	const uint8_t *map; /* of the spool */
	uint64_t map_size;
	/* Sums over files that are no copies: */
	struct icf_product_facts total;
	uint64_t shared_saving; /* at best, of all groups */
	uint32_t done, copies, bad;
};

/* Collects the files that the N OPERANDS name, and analyses and compares them.  P starts as {
 * .spool = -1 }; deinitialise it also after an error.  With a reader nothing is compared. */
struct elfrw_err *icf_product_analyse(struct icf_product *p, char **operand, int n,
				      const struct icf_product_options *opt);
void icf_product_deinit(struct icf_product *p);

const struct icf_product_func *icf_product_funcs(const struct icf_product *p, uint32_t file);
/* What a reader put there; facts.kept bytes. */
const uint8_t *icf_product_kept(const struct icf_product *p, uint32_t file);
/* The text at OFF of the strings of FILE; NULL: none. */
const char *icf_product_text(const struct icf_product *p, uint32_t file, uint32_t off);

/* What a table over the groups lists; the first three are those of enum icf_dimension. */
enum icf_product_by {
	ICF_BY_FAMILY,
	ICF_BY_NAMESPACE,
	ICF_BY_LIBRARY,
	ICF_BY_EXPORTER, /* shared library that exports the function */
};

/* The rows of a table, largest saving first, of the groups that pass the filter. */
struct elfrw_err *icf_product_table(const struct icf_product *p, enum icf_product_by by,
				    icf_product_rows *ret);

/* The text of KEY in P's pool; ICF_NONE: NULL. */
static inline const char *icf_product_name(const struct icf_product *p, uint32_t key)
{
	return key == ICF_NONE ? NULL : icf_pool_text(&p->pool, key);
}
const char *icf_product_level_key(unsigned level);

/* ---- reports ---- */

struct elfrw_err *icf_product_print_text(FILE *f, const struct icf_product *p,
					 const struct icf_audit_options *opt);
struct elfrw_err *icf_product_print_json(FILE *f, const struct icf_product *p,
					 const struct icf_audit_options *opt);
struct elfrw_err *icf_product_print_csv(FILE *f, const struct icf_product *p,
					const struct icf_audit_options *opt);

/* Writes the page to PATH, complete or not at all. */
struct elfrw_err *icf_product_write_html(const char *path, const struct icf_product *p,
					 const struct icf_audit_options *opt);
#endif
