/* state.h: shared by the comparisons of the two call tables. */
#ifndef ICF_VERIFY_CALLS_STATE_H
#define ICF_VERIFY_CALLS_STATE_H
#include "dwarf/calls/calls.h"
#include "icf/verify/calls/calls.h"

struct icf_vdie_unit {
	uint64_t die;
	uint32_t unit;
};

struct icf_vcall_want {
	uint64_t site; /* in OUT */
	uint32_t unit, target;
	bool optional, guess, used;
};

/* What IN says of a call in addition to its code. */
struct icf_vtold {
	uint64_t site; /* in IN */
	uint64_t die;  /* any DIE of the function, or its declaration */
	uint64_t caller;
	bool table, used;
};

struct icf_vcalls {
	struct icf_v *v;
	struct icf_vdwarf *in, *out;
	VEC(struct icf_vdie_unit) die;   /* sorted by DIE */
	VEC(struct icf_vcall_want) want; /* sorted by site */
	VEC(struct icf_vtold)
	told;                   /* sorted by site; from IN's tables and, if needed, from DIEs */
	struct dwr_calls table; /* IN's */
	bool sites_read;
	bool refold; /* IN was folded before: all entries of its tables are still needed */
	VEC(struct dwr_vcall) slot;    /* OUT's virtual calls, in their order */
	struct icf_vslots *code;       /* virtual calls as the code shows them */
	bool shared_slot[ICF_V_SLOTS]; /* some vtable of IN has a function in this slot that now
					  shares its code */
};

/* calls.c: does the unit of IN share its code, by the note? */
bool icf_vcalls_grouped(const struct icf_v *v, uint32_t u);
/* Reads the header of a contribution; the entries are left in *R.  false: not one. */
bool icf_vcalls_header(struct elfrw_rbuf *all, struct elfrw_rbuf *r, bool with_info,
		       uint64_t *info);
/* vcall.c: .debug_vcall, which is S, or NULL. */
struct elfrw_err *icf_vcalls_virtual(struct icf_vcalls *c, const Elf_Data *s);
#endif
