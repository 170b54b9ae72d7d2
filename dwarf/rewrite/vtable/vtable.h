/* vtable.h: the class of each vtable object, as entries of the artificial unit; private to
 * dwarf/rewrite/rewrite.c. */
#ifndef DWARF_REWRITE_VTABLE_VTABLE_H
#define DWARF_REWRITE_VTABLE_VTABLE_H
#include "dwarf/rewrite/state.h"

struct dwr_rw_vtable {
	uint64_t address; /* of the object: the value of its symbol; vtables do not move */
	uint64_t type;    /* offset of the class's DIE in .debug_info, or the signature of its type
			     unit */
	bool signature;
};

struct dwr_rw_vtables {
	VEC(struct dwr_rw_vtable) v; /* sorted by address */
	uint32_t left_out;           /* objects of uncertain class */
};

/* Finds the vtable objects of the input with a slot in rw->in->vslot.  An object is left out if no
 * class DIE is certainly its own: there is none, or several classes have its name (in anonymous
 * namespaces, or local to functions of several files). */
struct elfrw_err *dwr_rw_vtables(struct dwr_rw *rw, struct dwr_rw_vtables *ret);
void dwr_rw_vtables_deinit(struct dwr_rw_vtables *vt);

/* The declarations (from code FIRST on) for the unit's abbreviation table, and the DIEs. */
void dwr_rw_vtables_write(const struct dwr_rw_vtables *vt, struct dwr_form_params params,
			  unsigned first, struct elfrw_wbuf *abbrev, struct elfrw_wbuf *info);
#endif
