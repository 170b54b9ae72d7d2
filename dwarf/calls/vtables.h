/* vtables.h: the vtable objects of a file and their address points (Itanium C++ ABI, section
 * 2.5.2).  They are found by the symbols _ZTV* and _ZTC*, without debug information. */
#ifndef DWARF_CALLS_VTABLES_H
#define DWARF_CALLS_VTABLES_H
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"

struct elfrw_image;

/* One vtable in an object: the target of objects' first words, and the slots behind it. */
struct dwr_vtable {
	uint64_t point, end; /* address of slot 0, and where the slots end */
	uint64_t object;     /* the vtable object that it is in */
	const char *name;    /* of the object's symbol; borrowed from the image */
};

/* A word of a vtable object that a dynamic relocation sets. */
struct dwr_vtable_word {
	uint64_t place, value; /* 0 if the word refers to a symbol of another module */
	const char *symbol;    /* or NULL */
};

struct dwr_vtables {
	VEC(struct dwr_vtable) table;     /* sorted by point; disjoint */
	VEC(struct dwr_vtable_word) word; /* sorted by place */
};

/* SYMBOLS is the file that has the symbol table: IMG itself, or its separate debug file. */
struct elfrw_err *dwr_vtables_read(const struct elfrw_image *img, const struct elfrw_image *symbols,
				   struct dwr_vtables *ret);
void dwr_vtables_deinit(struct dwr_vtables *vt);

/* The vtable that has a slot at address PLACE, or NULL; its index is (PLACE - point) / 8. */
const struct dwr_vtable *dwr_vtables_find(const struct dwr_vtables *vt, uint64_t place);

/* The word at PLACE as the program sees it, addresses as linked; 0: unknown. */
uint64_t dwr_vtables_value(const struct elfrw_image *img, const struct dwr_vtables *vt,
			   uint64_t place);
#endif
