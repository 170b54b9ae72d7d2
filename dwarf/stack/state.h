/* state.h: shared by callchain.c, open.c, reach.c and live.c. */
#ifndef DWARF_STACK_STATE_H
#define DWARF_STACK_STATE_H
#include "dwarf/stack/code.h"
#include "elfrw/image.h"

#define NO_SHARE UINT32_MAX

typedef VEC(uint32_t) unit_set;

/* From a DIE to a member. */
struct die_member {
	uint64_t die;
	uint32_t unit;
};

struct slot_holders {
	bool known;
	uint32_t first, n; /* into dwr_callchain.holder */
};

/* A level that was decided before. */
struct chain_memo {
	struct dwr_chain_frame frame; /* `first`: into level_member */
	uint32_t unit, n_units;       /* what it could be in: into level_unit */
	bool kept;                    /* false: memory ran out when it was decided */
};

struct dwr_callchain {
	const struct elfrw_image *img, *debug;
	struct elfrw_image
		own; /* `debug` with its machine filled in, when the caller's left that open */
	struct dwr_sections secs;
	struct dwr_units units;
	const struct dwr_icfold *note; /* NULL: none; borrowed, or own_note */
	struct dwr_icfold own_note;
	bool has_dcall;
	struct dwr_calls calls; /* dcall sorted by site, caller, DIE; vcall by site */
	struct dwr_code code;
	VEC(struct die_member) die; /* sorted */
	uint64_t *declared; /* by member: the declaration that names it in the tables when it has no
			       DIE of its own, 0: none; owned */
	struct dwr_vtables vt;
	bool has_vt;
	VEC(struct slot_holders) slot;
	unit_set holder;
	struct dwr_memo memo;
	VEC(struct chain_memo) level; /* by number */
	VEC(struct dwr_chain_member) level_member;
	unit_set level_unit;
	/* Scratch. */
	unit_set roots, reached, set, outer;
	uint32_t *seen; /* by unit: number of the walk that met it last; owned */
	uint32_t walk;
};

/* The group that UNIT shares its code with, or NO_SHARE. */
static inline uint32_t dwr_chain_group(const struct dwr_callchain *cc, uint32_t unit)
{
	uint32_t m = cc->note->unit_member[unit];
	return m == UINT32_MAX ? NO_SHARE : cc->note->member[m].group;
}

/* Adds UNIT to SET, once. */
struct elfrw_err *dwr_chain_put(unit_set *set, uint32_t unit);

/* Adds the targets of the branch at SITE to TARGET (in the output; 0: indirect) in the code of
 * UNIT; *ENTERED: they come from the tables. */
struct elfrw_err *dwr_chain_put_target(struct dwr_callchain *cc, uint32_t unit, uint64_t site,
				       uint64_t target, unit_set *set, bool *entered);

/* Adds to REACHED all functions that jumps lead to from its elements.  *ANYTHING: an indirect jump
 * is among them. */
struct elfrw_err *dwr_chain_follow(struct dwr_callchain *cc, unit_set *reached, bool *anything);

/* The function that the vtable slot at PLACE, which now holds VALUE, held before folding, or
 * DWR_NO_UNIT. */
uint32_t dwr_chain_slot(const struct dwr_callchain *cc, uint64_t place, uint64_t value);

/* Index of the first entry for DIE, or where it would be. */
size_t dwr_chain_first_die(const struct dwr_callchain *cc, uint64_t die);

uint32_t dwr_chain_member_of(const struct dwr_callchain *cc, uint32_t unit);

/* The DIE that names member M in the tables, or 0. */
uint64_t dwr_chain_die_of(const struct dwr_callchain *cc, uint32_t m);

/* The DIE that stands for UNIT in the tables: 0 when it shares no code (and needs no marker),
 * UINT64_MAX when it has none. */
uint64_t dwr_chain_marker(const struct dwr_callchain *cc, uint32_t unit);

/* Adds the members that DIE names: those of GROUP if there are any, else all. */
struct elfrw_err *dwr_chain_put_die(struct dwr_callchain *cc, uint64_t die, uint32_t group,
				    unit_set *set);

/* Adds members of GROUP; with NAMELESS only those that no entry can name, unless there are none. */
struct elfrw_err *dwr_chain_put_group(struct dwr_callchain *cc, uint32_t group, bool nameless,
				      unit_set *set);

/* Adds the possible callees of the call through SLOT: one function if the vtable's address is
 * given. */
struct elfrw_err *dwr_chain_put_virtual(struct dwr_callchain *cc, uint64_t slot, uint64_t vtable,
					unit_set *set);

/* The entries for SITE and CALLER. */
size_t dwr_chain_find_dcall(const struct dwr_callchain *cc, uint64_t site, uint64_t caller,
			    size_t *n);

/* A call, by what it left on the stack. */
struct dwr_chain_call {
	uint64_t site;   /* where it returns to; 0: unknown */
	uint64_t vtable; /* of the object that the function was called on; 0: unknown */
};

/* The functions that a call allows. */
struct dwr_chain_called {
	bool anything; /* any function: nothing is known */
	bool nowhere;  /* with ANYTHING: as far as the code says, none */
	uint8_t by;    /* enum dwr_chain_by */
};

/* Adds to SET the members of GROUP that function CALLER can have called by CALL, given that the PC
 * is in the code of GROUP. */
struct elfrw_err *dwr_chain_callees(struct dwr_callchain *cc, uint32_t caller,
				    const struct dwr_chain_call *call, uint32_t group,
				    unit_set *set, struct dwr_chain_called *how);

bool dwr_chain_find_vcall(const struct dwr_callchain *cc, uint64_t site, uint64_t *slot);
struct elfrw_err *dwr_chain_load_vtables(struct dwr_callchain *cc);
#endif
