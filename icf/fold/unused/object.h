/* object.h: objects of data that may be unused: virtual tables (--gc-functions=objects).
 *
 * An object is used if something that is used refers to it.  The caller (fold/unused.c) knows what
 * is used; this file knows which objects a reference may mean. */
#ifndef ICF_FOLD_UNUSED_OBJECT_H
#define ICF_FOLD_UNUSED_OBJECT_H
#include "elfrw/blocks.h"
#include "elfrw/relocs.h"
#include "icf/fold/unused/use.h"
#include "icf/program/program.h"

struct icf_object {
	uint64_t start, end;
	uint32_t shndx;
	uint32_t file;      /* the number of its object file; 0: not known */
	uint8_t flags;      /* of object.c */
	struct icf_use use; /* what came first; `from` is a unit */
};

struct icf_objects {
	const struct icf_program *prog;
	VEC(struct icf_object) v; /* all objects of data that have a size, sorted */
	struct elfrw_starts at;   /* of `v`; made when that has its last order */
	uint32_t *queue;          /* used ones, in the order in which they were found */
	uint32_t n_queue;
	uint32_t *around; /* by object, and one more: the section whose objects around its start are
			     used */
	uint32_t *mortal; /* by section: how many objects of it may be unused */
	size_t *first_rel;        /* by unit: its first relocation, counted from 1; 0: none */
	struct elfrw_relocs *rel; /* by section: its kept relocations; not of all */
	struct icf_use now;       /* what comes next */
};

/* Finds the objects of PROG, and reads the relocations of its loaded sections.  The other functions
 * do nothing if this was not called.  Deinit RET also after an error. */
struct elfrw_err *icf_objects_init(struct icf_objects *ret, const struct icf_program *prog);
void icf_objects_deinit(struct icf_objects *o);

/* Does the field of SIZE bytes at PLACE lie in an object that may be unused?  What it refers to is
 * used if the object is. */
bool icf_objects_hold(const struct icf_objects *o, uint64_t place, unsigned size);

/* Puts the objects into the queue that are used whatever else is: by references of data outside of
 * the objects that may be unused, by exports, and by code that is not understood. */
void icf_objects_roots(struct icf_objects *o);

/* The same for the objects that unit I refers to, and for those that object K refers to. */
void icf_objects_of_unit(struct icf_objects *o, uint32_t i);
void icf_objects_of_object(struct icf_objects *o, uint32_t k);

/* Writes the unused objects to PROG's list. */
struct elfrw_err *icf_objects_finish(const struct icf_objects *o, struct icf_program *prog);
#endif
