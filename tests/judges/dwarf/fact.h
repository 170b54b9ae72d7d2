/* fact.h: facts of line tables: which row holds for which bytes of code. */
#ifndef TESTS_JUDGES_DWARF_FACT_H
#define TESTS_JUDGES_DWARF_FACT_H
#include "tests/judges/dwarf/judge.h"
#include "tests/judges/dwarf/table.h"
#include <inttypes.h>

/* That the bytes [lo, hi) of the output have the row; lo == hi: that the row stands there. */
struct jfact {
	uint64_t lo, hi, other; /* other: another place where it may stand, or 0 */
	struct jrow row;
	uint32_t unit, table;
	bool may; /* it need not be there */
	/* Only of a fact of the output: the expected fact that took it, and the search that saw it
	 * last. */
	const struct jfact *by;
	size_t search;
};

struct jfacts {
	struct jfact *v;
	size_t n, cap;
};

struct jlines {
	struct jpaths paths;
	struct jfacts folded; /* of all units that share their code, in the input */
	struct jfacts own;    /* of the artificial unit, in the output */
	struct jfacts seen;   /* tables that were compared: lo is the offset */
};

struct jlines *facts_of(struct judge *j);
struct jfact *fact_tell(struct jfacts *s, struct jfact f);
/* All but the address; -1, 0, 1. */
int fact_row_order(const struct jrow *a, const struct jrow *b);
/* For facts_sort(): by bytes and row; by function and table. */
int fact_by_place(const void *pa, const void *pb);
int fact_by_function(const void *pa, const void *pb);
void facts_sort(struct jfacts *s, int (*order)(const void *, const void *));
/* Is one path the other's tail?  Not every table says what its relative names count from. */
bool fact_same_path(const struct jpaths *p, uint32_t a, uint32_t b);
const char *fact_show(const struct judge *j, const struct jfact *f, char *buf, size_t size);
/* Reads the line table that the unit of DIE names (OUT: in the output); false: it names none. *WHY:
 * what is wrong with the table, or NULL. */
bool fact_table_of(struct judge *j, int out, Dwarf_Die *die, struct jtable *t, uint64_t *off,
		   const char **why);
#endif
