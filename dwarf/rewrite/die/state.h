/* state.h: private to this folder: the walk over the DIEs of one unit. */
#ifndef DWARF_REWRITE_DIE_STATE_H
#define DWARF_REWRITE_DIE_STATE_H
#include "dwarf/rewrite/state.h"

#define DWR_DIE_NESTING 8

/* The meaning of an address in an attribute: a place, one past a place, a value that the program
 * sees. */
enum dwr_die_use { USE_POINT, USE_END, USE_POINTER };

struct dwr_die_scan {
	struct dwr_rw *rw;
	const struct dwr_unit *unit;
	struct dwr_rw_unit *ru;
	const char *section;
	uint8_t *out; /* the private copy of the section */
	struct dwr_list_cu cu;
	struct dwr_pieces pieces;
	struct dwr_list list;
	uint64_t expr_pos; /* of the expression that is being mapped */
	/* The functions around the DIE: the unit of the map at their start and the DIE's depth. */
	struct {
		uint32_t unit, depth;
	} function[DWR_DIE_NESTING];
	unsigned n_functions;
	void *noted; /* struct noted by list: a tree, balanced whatever the file has */
};

/* ---- put.c ---- */

struct elfrw_err *dwr_die_no_room(const struct dwr_die_scan *s, const struct dwr_value *v,
				  uint64_t value);

/* Does the executable code of the input hold VA? */
bool dwr_die_is_live(const struct dwr_die_scan *s, uint64_t va);

/* Where VA of the input is in the output; VA itself outside of code. */
uint64_t dwr_die_mapped(const struct dwr_die_scan *s, uint64_t va, enum dwr_die_use use);

/* The value of an address attribute in the input. */
struct elfrw_err *dwr_die_address(const struct dwr_die_scan *s, const struct dwr_value *v,
				  uint64_t *ret);

/* The place in .debug_addr of the address of an indexed form; call dwr_die_address() first. */
uint64_t dwr_die_slot(const struct dwr_die_scan *s, const struct dwr_value *v);

/* Asks for the value NEW in the slot at OFF of .debug_addr; POS: of the attribute. */
struct elfrw_err *dwr_die_want_slot(struct dwr_die_scan *s, uint64_t off, uint64_t new,
				    uint64_t pos);

/* Writes the new value of an address attribute. */
struct elfrw_err *dwr_die_put_address(struct dwr_die_scan *s, const struct dwr_value *v,
				      uint64_t new);

struct elfrw_err *dwr_die_map_address(struct dwr_die_scan *s, const struct dwr_value *v,
				      enum dwr_die_use use);

/* Writes a number in a constant form. */
struct elfrw_err *dwr_die_put_const(struct dwr_die_scan *s, const struct dwr_die *die,
				    const struct dwr_value *v, uint64_t value);

/* Writes an offset into another section. */
struct elfrw_err *dwr_die_put_offset(struct dwr_die_scan *s, const struct dwr_value *v,
				     uint64_t value);

/* ---- range.c ---- */

/* Does the function that begins at LOW now have more than one name? */
bool dwr_die_is_shared(const struct elfrw_addrmap *map, uint64_t low, uint32_t *u);

/* Records DIE for the group of the function that begins at LOW, if it shares its code. */
struct elfrw_err *dwr_die_note_die(struct dwr_die_scan *s, const struct dwr_die *die, uint64_t low);

/* Maps the range LOW, HIGH of DIE. */
struct elfrw_err *dwr_die_low_high(struct dwr_die_scan *s, const struct dwr_die *die,
				   const struct dwr_value *low, const struct dwr_value *high);

/* ---- list.c ---- */

/* Collects the range list of V, and records the functions whose parts are in it. */
struct elfrw_err *dwr_die_ranges(struct dwr_die_scan *s, const struct dwr_die *die,
				 const struct dwr_value *v);

/* Collects the location list of V. */
struct elfrw_err *dwr_die_location_list(struct dwr_die_scan *s, const struct dwr_die *die,
					const struct dwr_value *v);

/* Collects DW_AT_rnglists_base or DW_AT_loclists_base; KIND: an enum dwr_site_kind. */
struct elfrw_err *dwr_die_lists_base(struct dwr_die_scan *s, const struct dwr_die *die,
				     const struct dwr_value *v, uint8_t kind);

void dwr_die_free_noted(void *p);
#endif
