/* info.h: units and DIEs of .debug_info and .debug_types (DWARF 2 to 5, sections 7.5.1 to 7.5.6),
 * read only.
 *
 * Nothing is allocated for single DIEs.  A cursor walks one unit in file order and delivers, for
 * each DIE, the wanted attributes with the places of their bytes. */
#ifndef DWARF_INFO_H
#define DWARF_INFO_H
#include "dwarf/abbrev.h"
#include "dwarf/sections.h"
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stdint.h>

struct dwr_unit {
	uint64_t off, end; /* of the unit (its header) in its section */
	uint64_t die;      /* offset of the first DIE */
	uint64_t abbrev_off;
	uint64_t abbrev_pos; /* where the header holds abbrev_off */
	uint64_t id;         /* type signature or DWO id, else 0 */
	uint64_t type_off;   /* type units: the type's DIE, relative to the unit */
	uint8_t sec;         /* DWR_INFO or DWR_TYPES */
	uint8_t type; /* DW_UT_*; before DWARF 5: DW_UT_compile, in .debug_types DW_UT_type */
	struct dwr_form_params params;
};

struct dwr_units {
	struct dwr_unit *data; /* owned; .debug_info in file order, then .debug_types */
	size_t len, cap;
};

/* Reads all unit headers; loads the sections that it needs.  Errors: sizes that do not fit, an
 * unknown version, unit type or address size. */
struct elfrw_err *dwr_units_read(struct dwr_sections *secs, struct dwr_units *ret);
void dwr_units_deinit(struct dwr_units *units);

/* Reads one header at R, a cursor in SEC, and moves R to the unit's end; *U starts as { 0 }.  If
 * only the length is valid, that is an error, but u->end is set and R moves. */
struct elfrw_rbuf;
struct elfrw_err *dwr_unit_header(struct elfrw_rbuf *r, const struct dwr_section *sec,
				  enum dwr_sec id, struct dwr_unit *u);

/* The unit of section SEC that holds offset OFF, or NULL. */
const struct dwr_unit *dwr_units_find(const struct dwr_units *units, enum dwr_sec sec,
				      uint64_t off);

/* One attribute value.  For blocks and exprlocs, pos and size are those of the contents, and u is
 * the size. */
struct dwr_value {
	uint16_t name, form; /* the form behind DW_FORM_indirect, when it is one */
	bool implicit;       /* DW_FORM_implicit_const: no bytes in the DIE */
	uint32_t attr;       /* index in the abbreviation table's attr */
	uint64_t pos;        /* offset of the value's bytes in the section */
	uint64_t size;       /* bytes there */
	uint64_t u; /* the number (sdata and implicit_const: as two's complement); data16: the low
		       half */
};

/* Reads one value of FORM at R into *V (except name and attr) and moves R behind it.  R becomes bad
 * if there is none.  IMPLICIT: the abbreviation's number for DW_FORM_implicit_const. */
void dwr_value_read(struct elfrw_rbuf *r, uint32_t form, struct dwr_form_params params,
		    int64_t implicit, struct dwr_value *v);

#define DWR_MAX_VALUES 64

struct dwr_die {
	uint64_t off;   /* in the section */
	uint32_t depth; /* 0: the unit's own DIE */
	const struct dwr_abbrev *abbrev;
	uint64_t attrs; /* offset of the first attribute's bytes */
	unsigned n_values;
	struct dwr_value value[DWR_MAX_VALUES]; /* in the DIE's order */
};

struct dwr_cursor {
	const struct dwr_unit *unit; /* borrowed, as the rest */
	const struct dwr_abbrev_table *table;
	const uint8_t *data; /* the section */
	const uint8_t *pos, *end;
	uint32_t depth;
	bool all; /* also deliver DIEs without wanted attributes */
	bool done;
};

/* A cursor at the first DIE of UNIT.  TABLE is the unit's (dwr_unit_abbrev). */
struct dwr_cursor dwr_cursor_at(const struct dwr_sections *secs, const struct dwr_unit *unit,
				const struct dwr_abbrev_table *table, bool all);

/* The same, but at the DIE at offset OFF of the section (which must begin a DIE of UNIT), as depth
 * 0: it then walks that DIE and what is below it. */
struct dwr_cursor dwr_cursor_at_die(const struct dwr_sections *secs, const struct dwr_unit *unit,
				    const struct dwr_abbrev_table *table, bool all, uint64_t off);

/* The next DIE; *MORE false at the end.  Errors: an unknown abbreviation, a DIE beyond its unit. */
struct elfrw_err *dwr_cursor_next(struct dwr_cursor *cur, struct dwr_die *die, bool *more);

/* The value of attribute NAME among DIE's wanted ones, or NULL. */
static inline const struct dwr_value *dwr_die_value(const struct dwr_die *die, unsigned name)
{
	for (unsigned i = 0; i < die->n_values; i++)
		if (die->value[i].name == name)
			return &die->value[i];
	return NULL;
}

/* Reads the abbreviation table of UNIT into *TABLE (see dwr_abbrev_read). */
struct elfrw_err *dwr_unit_abbrev(struct dwr_sections *secs, const struct dwr_unit *unit,
				  const struct dwr_want *want, struct dwr_abbrev_table *table);

/* Values in a unit's own DIE that are needed to read other attributes. */
struct dwr_unit_root {
	bool has_low_pc, has_line, has_dwo;
	uint64_t low_pc; /* resolved through .debug_addr */
	uint64_t line;   /* DW_AT_stmt_list */
	uint64_t addr_base, rnglists_base, loclists_base,
		str_offsets_base; /* UINT64_MAX: not there */
	uint64_t gnu_ranges_base; /* 0 when not there */
	uint64_t language;        /* DW_AT_language, 0 when not there */
	const char *name, *comp_dir,
		*dwo_name; /* borrowed from the sections; NULL: not there or not readable */
	/* The form and value of a DW_AT_comp_dir that is in another file, which dwz has made; 0: it
	 * is not. */
	uint16_t comp_dir_form;
	uint64_t comp_dir_off;
};

/* Reads the unit's first DIE.  Call dwr_sections_load_all for SECS first. */
struct elfrw_err *dwr_unit_read_root(const struct dwr_sections *secs, const struct dwr_unit *unit,
				     struct dwr_unit_root *ret);

/* The same from the unit's own DIE, delivered with (at least) the attributes that struct
 * dwr_unit_root names. */
void dwr_die_root(const struct dwr_sections *secs, const struct dwr_unit *unit,
		  const struct dwr_die *die, struct dwr_unit_root *ret);

/* The string of a value in any string form, or NULL (not a string form, or out of the section). */
const char *dwr_value_string(const struct dwr_sections *secs, const struct dwr_unit *unit,
			     const struct dwr_unit_root *root, const struct dwr_value *value);

/* The address of a value in an address form, through .debug_addr if needed; false: no such form, or
 * out of the section. */
bool dwr_value_address(const struct dwr_sections *secs, const struct dwr_unit *unit,
		       const struct dwr_unit_root *root, const struct dwr_value *value,
		       uint64_t *ret);
#endif
