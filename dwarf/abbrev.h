/* abbrev.h: abbreviation tables (DWARF 5, section 7.5.3), compiled for walking.
 *
 * A walker wants few attributes of few DIEs.  So each declaration is compiled, for one set of
 * wanted attributes, into steps: "skip N bytes, then do one thing".  A DIE of fixed size without a
 * wanted attribute is a single addition. */
#ifndef DWARF_ABBREV_H
#define DWARF_ABBREV_H
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>

/* The attributes that a walk delivers. */
struct dwr_want {
	uint64_t name[4];       /* bitmap of DW_AT_ values below 0x100 */
	const uint16_t *vendor; /* DW_AT_ values from 0x100 on; n_vendor of them; borrowed */
	unsigned n_vendor;
	bool addresses;   /* every attribute in an address form (addr, addrx...) */
	bool expressions; /* every attribute in form exprloc, and blocks that may hold a location */
	bool lists;       /* every attribute in form loclistx or rnglistx */
	uint16_t tag[3];  /* of these DIEs alone; no tag: of all */
	const struct dwr_want
		*also; /* what it delivers besides, or NULL; its own ALSO counts not */
};

#define DWR_WANT_NAME(want, at) ((want)->name[(at) >> 6] |= UINT64_C(1) << ((at)&63))

/* What the size of a form depends on. */
struct dwr_form_params {
	uint8_t version, address_size, offset_size;
};

struct dwr_abbrev_attr {
	uint16_t name, form;
	uint32_t implicit; /* of DW_FORM_implicit_const: index of its value in table->implicit */
};

enum dwr_step_op {
	DWR_STEP_END,
	DWR_STEP_LEB,   /* skip a LEB128 */
	DWR_STEP_CSTR,  /* skip a string */
	DWR_STEP_BLOCK, /* skip a block with its ULEB128 length */
	DWR_STEP_BLOCK1,
	DWR_STEP_BLOCK2,
	DWR_STEP_BLOCK4,
	DWR_STEP_OTHER, /* skip a value of form `form` (rare forms) */
	DWR_STEP_VALUE, /* deliver attribute `attr` */
};

struct dwr_step {
	uint32_t skip; /* fixed bytes before it */
	uint8_t op;
	uint8_t size;  /* for _VALUE: of a number of 1, 2, 4 or 8 bytes; 0: it is something else */
	uint16_t form; /* for _OTHER and _VALUE */
	uint16_t name; /* for _VALUE: the attribute's */
	uint32_t attr; /* index in table->attr, for _OTHER and _VALUE */
};

struct dwr_abbrev {
	uint64_t code;
	uint16_t tag;
	bool children;
	bool wanted; /* has at least one wanted attribute (or an indirect form, which may be one) */
	uint32_t attr, n_attrs;
	uint32_t step;  /* first step; the last one is DWR_STEP_END */
	uint32_t fixed; /* size of the attributes, if it is fixed and none is wanted; else
			   UINT32_MAX */
	uint32_t pos;   /* of the declaration (its code) in .debug_abbrev, relative to the table's
			   start */
};

struct dwr_abbrev_table {
	uint64_t off, size; /* in .debug_abbrev; the size includes the final 0 */
	struct dwr_form_params params;
	VEC(struct dwr_abbrev) abbrev; /* sorted by code */
	VEC(struct dwr_abbrev_attr) attr;
	VEC(int64_t) implicit;
	VEC(struct dwr_step) step;
	bool dense; /* codes are 1, 2, 3... */
	bool used;  /* holds a table */
};

/* Reads the table at OFF of the section contents DATA (SIZE bytes), reusing the memory of *TABLE
 * (zeroed at first, or from an earlier call).  Does nothing if *TABLE already is that table with
 * these parameters (WANT must be the same).  Errors: past the end, unknown form, a code twice. */
struct elfrw_err *dwr_abbrev_read(struct dwr_abbrev_table *table, const uint8_t *data, size_t size,
				  uint64_t off, struct dwr_form_params params,
				  const struct dwr_want *want);
void dwr_abbrev_deinit(struct dwr_abbrev_table *table);

/* Gives back the memory that *TABLE, which is there to stay, does not need. */
void dwr_abbrev_trim(struct dwr_abbrev_table *table);

const struct dwr_abbrev *dwr_abbrev_search(const struct dwr_abbrev_table *table, uint64_t code);

static inline const struct dwr_abbrev *dwr_abbrev_find(const struct dwr_abbrev_table *table,
						       uint64_t code)
{
	if (table->dense)
		return code - 1 < table->abbrev.len ? &table->abbrev.data[code - 1] : NULL;
	return dwr_abbrev_search(table, code);
}

/* The value of AT if its form is DW_FORM_implicit_const, else 0. */
static inline int64_t dwr_abbrev_implicit(const struct dwr_abbrev_table *table,
					  const struct dwr_abbrev_attr *at)
{
	return at->form == DW_FORM_implicit_const ? table->implicit.data[at->implicit] : 0;
}

/* Size of a value of FORM in bytes; -1: not fixed; -2: unknown form. */
int dwr_form_size(uint32_t form, struct dwr_form_params params);

/* Is FORM that of an address, or of an index of one? */
bool dwr_form_is_address(unsigned form);
#endif
