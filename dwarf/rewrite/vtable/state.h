/* state.h: private to this folder: the search for the classes of vtable objects. */
#ifndef DWARF_REWRITE_VTABLE_STATE_H
#define DWARF_REWRITE_VTABLE_STATE_H
#include "dwarf/rewrite/state.h"
#include "dwarf/rewrite/vtable/vtable.h"
#include <string.h>

#define DWR_VTABLE_RUN   4 /* units */
#define DWR_VTABLE_DEPTH 64

/* A vtable object to be described. */
struct dwr_vtable_object {
	uint64_t address;
	const char *name; /* the mangled name of its class, as in the symbol */
	size_t len;       /* without the E that ends a nested name; NAME stands behind the N then */
	bool local;       /* may be a name of one file only */
	bool sure;        /* found by names: FROM is the DIE */
	bool several;     /* of a local name: there is another DIE */
	bool exact;       /* found by a function in a slot */
	uint64_t from;
	struct dwr_rw_vtable type;
};

/* A symbol of a vtable object or of type information. */
struct dwr_vtable_symbol {
	uint64_t address;
	const char *name;
	bool local;
};

struct dwr_vtable_hit {
	uint32_t object, unit;
	uint64_t die;
	bool by_scopes;
};

/* A slot of the object at ADDRESS holds UNIT of the map. */
struct dwr_vtable_slot {
	uint64_t address;
	uint32_t unit;
};

/* The declaration of a function of an object's slots. */
struct dwr_vtable_lead {
	uint64_t die;
	uint32_t object;
	const char *linkage;
};

struct dwr_vtable_search {
	struct dwr_rw *rw;
	struct dwr_units *units;
	VEC(struct dwr_vtable_symbol) symbol; /* sorted by address */
	VEC(struct dwr_vtable_object) object; /* sorted by name */
	VEC(struct dwr_vtable_slot) slot;     /* sorted by address */
	VEC(struct dwr_vtable_lead) lead;     /* sorted by DIE */
	struct dwr_vtable_hits {
		VEC(struct dwr_vtable_hit) v;
	} * run;
};

static inline int dwr_vtable_text_order(const char *a, size_t an, const char *b, size_t bn)
{
	int c = memcmp(a, b, an < bn ? an : bn);
	return c ? c : an < bn ? -1 : an > bn;
}

/* ---- objects.c ---- */

/* The symbols of vtable objects and type information, by address. */
struct elfrw_err *dwr_vtable_read_symbols(struct dwr_vtable_search *s);

/* The objects with slots that are of interest, with the names of their classes. */
struct elfrw_err *dwr_vtable_collect(struct dwr_vtable_search *s, struct dwr_rw_vtables *ret);

/* ---- names.c ---- */

/* The index of the first object with the name TEXT, or UINT32_MAX. */
uint32_t dwr_vtable_find_name(const struct dwr_vtable_search *s, const char *text, size_t len);

/* The object of the class in which the function LINKAGE is declared, or UINT32_MAX. */
uint32_t dwr_vtable_class_of(const struct dwr_vtable_search *s, const char *linkage);

/* The same for a class inside of a function: Z <function> E N <class> <member> E [<discriminator>];
 * the object's name is Z <function> E <class> [<discriminator>].  CLASS is the class's name: where
 * the function ends is not parsed. */
uint32_t dwr_vtable_local_class_of(const struct dwr_vtable_search *s, const char *linkage,
				   const char *class);

/* ---- walk.c ---- */

/* Walks the units of run R of ARG, a struct dwr_vtable_search. */
struct elfrw_err *dwr_vtable_walk_run(void *arg, size_t r);

/* ---- slots.c ---- */

/* Settles objects that the names in the DIEs did not settle, or may have settled wrongly. */
struct elfrw_err *dwr_vtable_settle_by_slots(struct dwr_vtable_search *s);
#endif
