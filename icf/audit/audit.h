/* audit.h: the savings of folding, the origin of duplicated code, the obstacles, and what nothing
 * uses.
 *
 * icf_audit_analyse() runs the stages of a fold up to the plan, once with --icf=all and once with
 * --icf=safe, and keeps both results for every unit.  It writes nothing.  The reports print these
 * results only. */
#ifndef ICF_AUDIT_AUDIT_H
#define ICF_AUDIT_AUDIT_H
#include "icf/audit/pool.h"
#include "icf/pipeline.h"
#include <regex.h>
#include <stdio.h>

struct dwr_sym;

/* Index of each mode. */
enum { ICF_AUDIT_ALL, ICF_AUDIT_SAFE, ICF_AUDIT_MODES };

enum icf_audit_sort { ICF_SORT_SAVING, ICF_SORT_COUNT, ICF_SORT_SIZE, ICF_SORT_NAME };

struct icf_audit_options {
	int mode; /* ICF_AUDIT_*: whose groups are listed and whose savings sort the tables */
	enum icf_audit_sort sort;
	uint32_t top;       /* rows of a table; 0: all */
	const char *filter; /* extended regular expression over names, or NULL */
	bool full_names;
	bool no_sources; /* do not read the debug information */
	unsigned threads;
};

/* What became of a unit, or why nothing did.  The first values are those of the folding.  The
 * others divide ICF_OK (a member of a group) and ICF_UNIQUE (nothing equals it). */
enum icf_why {
	ICF_WHY_KEPT = ICF_N_REASONS, /* other functions are folded into it */
	ICF_WHY_FOLDED,
	ICF_WHY_THUNK,      /* folded, and a thunk keeps its address distinct */
	ICF_WHY_TWIN_STAYS, /* equal only to code that may not be folded */
	ICF_WHY_UNWIND,     /* same code and references, other unwind rules or exception table */
	ICF_WHY_DISTINCT,   /* --icf=safe: equal except for addresses that must stay distinct */
	ICF_WHY_REFERS,     /* same code, other functions or data */
	ICF_WHY_CONSTANT,   /* same instructions, other constants */
	ICF_N_WHYS,
};

/* What a report table lists. */
enum icf_dimension {
	ICF_DIM_FAMILY, /* template, or function less its clone suffix */
	ICF_DIM_NAMESPACE,
	ICF_DIM_LIBRARY,   /* folder of the compilation unit, or third party */
	ICF_DIM_DIRECTORY, /* of the source file */
	ICF_DIM_FILE,      /* source file that defines the function (a header for templates) */
	ICF_DIM_UNIT,      /* compilation unit that it was compiled in */
	ICF_N_DIMS,
};

struct icf_audit_unit {
	uint32_t name;                    /* full demangled name; in the pool, as are the keys */
	uint32_t key[ICF_N_DIMS];         /* ICF_NONE: not known */
	uint32_t saving[ICF_AUDIT_MODES]; /* bytes: its size less its thunk when it is folded, else
					     0 */
	uint8_t why[ICF_AUDIT_MODES];     /* enum icf_reason or icf_why */
	bool match;                       /* passes the filter */
};

struct icf_audit_group {
	uint32_t keeper;
	uint32_t member, count; /* into icf_audit.member, keeper included, by address */
	uint64_t size;          /* of one body: the keeper's */
	uint64_t saving[ICF_AUDIT_MODES];
	uint32_t rank; /* place in the order of the report */
};

/* A row of a table. */
struct icf_audit_row {
	uint32_t key;    /* in the pool, or ICF_NONE: not known */
	uint32_t count;  /* functions */
	uint32_t folded; /* of these, with the mode of the options */
	uint64_t bytes;
	uint64_t saving[ICF_AUDIT_MODES];
	uint32_t unused; /* functions that nothing uses */
	uint64_t unused_bytes;
};
typedef VEC(struct icf_audit_row) icf_audit_rows;
typedef VEC(uint32_t) icf_audit_units;

/* Functions whose code is the same except for one value. */
struct icf_audit_near {
	uint32_t member, count; /* into icf_audit.near_member */
	uint32_t off;    /* offset of the (first) field with the value, from the function's start */
	uint32_t places; /* number of fields with the value */
	uint8_t kind;    /* enum icf_near_kind */
	uint64_t size;   /* of one body */
	uint64_t saving; /* if all were equal */
};

#define ICF_NEAR_MAX 2000 /* no report lists more near misses */

enum icf_near_kind {
	ICF_NEAR_CALLEE,
	ICF_NEAR_ADDRESS,
	ICF_NEAR_TABLE,
	ICF_NEAR_CONSTANT,
	ICF_NEAR_OFFSET
};

struct icf_audit_near_member {
	uint32_t unit;
	uint32_t text; /* in the pool: this member's value */
};

struct icf_audit_totals {
	uint32_t folded, groups, thunks;
	uint64_t duplicated; /* bytes of folded bodies */
	uint64_t thunk_bytes;
	uint64_t text_after;
};

/* What --gc-functions would do. */
struct icf_audit_unused {
	char *obstacle;     /* why nothing is removed; owned; NULL: it is known what is unused */
	uint8_t *is;        /* by unit; owned; NULL with an obstacle */
	uint32_t functions; /* and their cold parts */
	uint64_t bytes;
	uint64_t alone; /* .text after --gc-functions with --icf=none */
	/* With folding: .text after it, and bytes of folded bodies. */
	uint64_t with[ICF_AUDIT_MODES], duplicated[ICF_AUDIT_MODES];
};

struct icf_audit {
	struct icf_run run;  /* its plan is not used */
	struct dwr_sym *sym; /* names and sources; NULL: the symbolizer cannot read the file */
	struct icf_plan plan[ICF_AUDIT_MODES];
	struct icf_pool pool;
	struct icf_audit_unit *unit; /* by unit; owned */
	VEC(struct icf_audit_group)
	group; /* of the mode of the options, in the order of the report */
	VEC(uint32_t) member;
	VEC(struct icf_audit_near)
	near;            /* largest saving first, at most as many as the options ask for */
	uint32_t n_near; /* the number of all */
	VEC(struct icf_audit_near_member) near_member;
	struct icf_audit_totals total[ICF_AUDIT_MODES];
	struct icf_audit_unused unused;
	uint64_t text, code; /* bytes of .text* and of all executable sections */
	uint32_t functions;
	uint32_t n_match;                  /* functions that pass the filter */
	uint32_t from_debug, from_symbols; /* functions whose source comes from debug information,
					      or from symbols */
	bool in_place;   /* nothing may move: .text keeps its size, folded bodies become holes */
	bool by_address; /* stripped: names are addresses */
	char *root;      /* folder that paths are relative to; owned, may be NULL */
	char *warning;   /* of the debug information; owned, NULL: none */
};

/* Analyses the file PATH.  A starts as { 0 }; deinitialise it also after an error. */
struct elfrw_err *icf_audit_analyse(struct icf_audit *a, const char *path,
				    const struct icf_audit_options *opt);
void icf_audit_deinit(struct icf_audit *a);

/* The rows of one dimension for the functions that pass the filter, in the order of OPT. */
struct elfrw_err *icf_audit_table(const struct icf_audit *a, const struct icf_audit_options *opt,
				  enum icf_dimension dim, icf_audit_rows *ret);

/* The same of what nothing uses: rows with such functions, and these functions, most bytes
 * first. */
struct elfrw_err *icf_audit_unused_table(const struct icf_audit *a,
					 const struct icf_audit_options *opt,
					 enum icf_dimension dim, icf_audit_rows *ret);
struct elfrw_err *icf_audit_unused_list(const struct icf_audit *a,
					const struct icf_audit_options *opt, icf_audit_units *ret);

struct icf_audit_reason {
	unsigned why;
	uint32_t count[ICF_AUDIT_MODES];
	uint64_t bytes[ICF_AUDIT_MODES];
};

/* What became of the functions (and other units) that pass the filter, most bytes first.  R has
 * room for ICF_N_WHYS. */
unsigned icf_audit_reasons(const struct icf_audit *a, const struct icf_audit_options *opt,
			   struct icf_audit_reason *r);

const char *icf_why_text(unsigned why);
const char *icf_why_key(unsigned why); /* for programs */
const char *icf_dimension_key(enum icf_dimension dim);
const char *icf_near_kind_text(unsigned kind);

/* The short form of the name of unit I in BUF, at most LIMIT columns. */
const char *icf_audit_brief(const struct icf_audit *a, uint32_t i, size_t limit, char *buf,
			    size_t size);

static inline const char *icf_audit_name(const struct icf_audit *a, uint32_t i)
{
	return icf_pool_text(&a->pool, a->unit[i].name);
}

static inline uint64_t icf_audit_size(const struct icf_audit *a, uint32_t i)
{
	return a->run.prog.unit.data[i].end - a->run.prog.unit.data[i].start;
}

/* ---- what to do next (advice.c) ---- */

/* A saving, and the command that gets it. */
struct icf_advice {
	uint64_t bytes;
	char what[1024]; /* for people */
	char command[4096];
};
#define ICF_ADVICE 3 /* most of a report */

/* At most ICF_ADVICE pieces, largest saving first; their number.  They overlap. */
unsigned icf_audit_advise(const struct icf_audit *a, struct icf_advice *ret);
/* The same of the N pieces ALL, which are sorted. */
unsigned icf_advice_best(struct icf_advice *all, unsigned n, struct icf_advice *ret);

/* Add to a text of A; what has no room is left out.  The last: a blank, and S as one word of a
 * shell. */
void icf_advice_what(struct icf_advice *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void icf_advice_command(struct icf_advice *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void icf_advice_word(struct icf_advice *a, const char *s);

void icf_advice_text(FILE *f, const struct icf_advice *a, unsigned n);
/* The member "advice" of an object. */
void icf_advice_json(FILE *f, const struct icf_advice *a, unsigned n);

/* ---- parts of the analysis ---- */

/* The stages up to the plans of both modes: A's units, with what becomes of them, and its totals.
 * RUN->mode is changed. */
struct elfrw_err *icf_audit_plan(struct icf_audit *a, struct icf_options *run); /* audit.c */
/* unused.c.  Between the steps of RUN, which is then as it was; BASE: its options. */
struct elfrw_err *icf_audit_find_unused(struct icf_audit_unused *u, struct icf_run *run,
					const struct icf_options *base);
struct elfrw_err *icf_audit_names(struct icf_audit *a,
				  const struct icf_audit_options *opt); /* source.c */
/* Takes "." and ".." and double slashes out of PATH, in place. */
void icf_audit_normalise(char *path); /* source.c */

/* The name for the library that a compilation unit belongs to: the folder of the third-party code,
 * else the unit's folder. */
void icf_audit_library(const char *path, char *buf, size_t size); /* source.c */
struct elfrw_err *icf_audit_compare(struct icf_audit *a,
				    const struct icf_audit_options *opt); /* near.c */
/* The part of it that says why functions stay; it finds no near misses. */
struct elfrw_err *icf_audit_explain(struct icf_audit *a, unsigned threads); /* near.c */
struct elfrw_err *icf_audit_groups(struct icf_audit *a,
				   const struct icf_audit_options *opt); /* table.c */

/* ---- reports ---- */

struct elfrw_err *icf_audit_print_text(FILE *f, const struct icf_audit *a,
				       const struct icf_audit_options *opt);
struct elfrw_err *icf_audit_print_json(FILE *f, const struct icf_audit *a,
				       const struct icf_audit_options *opt);
struct elfrw_err *icf_audit_print_csv(FILE *f, const struct icf_audit *a,
				      const struct icf_audit_options *opt);

/* Writes the page to PATH, complete or not at all. */
struct elfrw_err *icf_audit_write_html(const char *path, const struct icf_audit *a,
				       const struct icf_audit_options *opt);

/* Writes S as a JSON string with quotes.  The string may also stand inside of an HTML script
 * element. */
void icf_put_json(FILE *f, const char *s);

/* Writes S as a value of CSV (RFC 4180). */
void icf_audit_put_csv(FILE *f, const char *s);
#endif
