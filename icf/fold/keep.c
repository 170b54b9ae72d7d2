/* keep.c: which copy of each class is kept, and which others go.
 *
 * The hottest copy is kept, then the one that is aligned best, then one whose address must stay
 * anyway, then the lowest; a function and its split-off part go together.  A function whose address
 * is compared with slots of virtual tables is not kept for functions in other slots (refs/guard.c).
 */
#include "elfrw/base/align.h"
#include "icf/fold/plan.h"
#include "icf/fold/thunk.h"
#include <stdlib.h>
#include <string.h>

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool better_keeper(const struct icf_program *prog, const struct icf_plan *plan, uint32_t a,
			  uint32_t b)
{
	const struct icf_unit *x = &prog->unit.data[a], *y = &prog->unit.data[b];
	if (x->hotness != y->hotness)
		return x->hotness < y->hotness;
	/* A function's landing pads must stay with it, see icf_keep_pads(). */
	if (plan->in_place && prog->pad.len)
		return a < b;
	uint64_t usual = prog->arch->function_align;
	uint64_t ax = min64(x->start & -x->start, usual), ay = min64(y->start & -y->start, usual);
	if (ax != ay)
		return ax > ay;
	/* A keeper that needs an address of its own anyway saves a thunk. */
	bool ox = x->flags & ICF_UNIT_OBSERVED, oy = y->flags & ICF_UNIT_OBSERVED;
	if (ox != oy)
		return ox;
	return a < b;
}

#define NO_GUARDED 0x80 /* a slot holds a member whose address nothing compares with slots */

/* What the members of each class need of the one that is kept, by class: an alignment, as an
 * exponent of two, and NO_GUARDED. */
static uint8_t *find_needs(const struct icf_program *prog, const struct icf_options *opt,
			   const struct icf_plan *plan)
{
	const bool merge = opt->mode == ICF_MODE_ALL;
	uint8_t *need = calloc(prog->unit.len + 1, 1);
	for (uint32_t i = 0; need && i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		uint8_t *mine = &need[plan->cls[i]];
		/* If addresses merge, the keeper's address must suit all members. */
		if (merge && u->reason == ICF_OK && u->entry_align > *mine)
			*mine = u->entry_align;
		if (!merge && (u->flags & (ICF_UNIT_SLOT | ICF_UNIT_GUARDED)) == ICF_UNIT_SLOT)
			*mine |= NO_GUARDED;
	}
	return need;
}

/* Can U be kept for a class with this NEED?  It is aligned wherever it moves. */
static bool may_keep(const struct icf_unit *u, uint8_t need)
{
	const uint8_t align = need & (uint8_t)~NO_GUARDED;
	if ((need & NO_GUARDED) && (u->flags & ICF_UNIT_GUARDED))
		return false;
	return u->grain >= align && (u->start & (((uint64_t)1 << align) - 1)) == 0;
}

/* Does a thunk for U that leads to KEPT take less room than U, both including the padding for their
 * alignment? Their final places are not known yet, so the present distance is an estimate. */
static bool thunk_pays(const struct icf_program *prog, const struct icf_plan *plan,
		       const struct icf_unit *u, const struct icf_unit *kept)
{
	uint64_t align = plan->in_place ? 1 : icf_thunk_align(u);
	unsigned size = icf_thunk_size(prog, u, u->start, kept->start);
	return size && elfrw_align_up(u->end - u->start, align) > elfrw_align_up(size, align);
}

/* The function that each cold part belongs to: the function that branches to it. ICF_NONE: it is no
 * cold part, or nothing branches to it. */
static uint32_t *find_parents(const struct icf_program *prog)
{
	uint32_t *parent = malloc((prog->unit.len + 1) * sizeof *parent);
	for (uint32_t i = 0; parent && i < prog->unit.len; i++)
		parent[i] = ICF_NONE;
	for (uint32_t i = 0; parent && i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++) {
			uint32_t t = ref[r].unit;
			if (ref[r].kind != ICF_REF_BRANCH || t == ICF_NONE || t == i ||
			    prog->unit.data[t].sym == ICF_NONE)
				continue;
			if (parent[t] == ICF_NONE &&
			    strstr(prog->sym.data[prog->unit.data[t].sym].name, ".cold"))
				parent[t] = i;
		}
	}
	return parent;
}

/* A function and its cold part are kept together, so that all of its code has one name. */
static void keep_cold_parts(const struct icf_program *prog, const struct icf_plan *plan,
			    const uint32_t *parent, const uint32_t *count, const uint8_t *need,
			    uint32_t *keeper)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		uint32_t c = plan->cls[i];
		if (count[c] < 2 || keeper[c] == i ||
		    prog->unit.data[i].hotness != prog->unit.data[keeper[c]].hotness ||
		    !may_keep(&prog->unit.data[i], need[c]))
			continue;
		uint32_t mine = parent[i];
		if (mine == ICF_NONE || keeper[plan->cls[mine]] != mine)
			continue;
		uint32_t its = parent[keeper[c]];
		if (its == ICF_NONE || keeper[plan->cls[its]] != its)
			keeper[c] = i;
	}
}

/* A thunk at U's own place keeps U's frame description.  Does that begin with U, and does its first
 * row hold up to the thunk's jump?  In a function that signs its return address, the second row may
 * begin there. */
static bool row_lasts(const struct icf_program *prog, const struct icf_unit *u,
		      const struct icf_unit *kept)
{
	uint8_t code[64];
	struct elfrw_thunk_read t;
	unsigned size =
		prog->arch->thunk(code, u->start, kept->start, u->flags & ICF_UNIT_ENDBR).size;
	if (!size || !prog->arch->read_thunk(code, size, u->start, &t))
		return false;
	for (uint32_t k = u->fde; k < u->fde + u->n_fde; k++) {
		const struct dwr_fde *f = &prog->cfi.fde.data[prog->cfi.by_pc[k]];
		uint64_t row = UINT64_MAX;
		/* DWARF 5, section 6.4.2.1: DW_CFA_advance_loc and DW_CFA_advance_loc1. */
		if (f->insn_size && f->insn[0] >> 6 == 1)
			row = f->insn[0] & 0x3f;
		else if (f->insn_size > 1 && f->insn[0] == 2)
			row = f->insn[1];
		uint64_t unit = prog->cfi.cie.data[f->cie].code_align;
		if (!unit || row <= t.branch / unit || f->pc_begin != u->start)
			return false;
	}
	return true;
}

/* Was U folded in its place before?  Another thunk would not be shorter. */
static bool is_thunk(const struct icf_program *prog, const struct icf_unit *u)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	struct elfrw_thunk_read t;
	uint64_t size = u->end - u->start,
		 k = prog->arch->read_thunk(code, (unsigned)(size < 64 ? size : 64), u->start, &t);
	if (!k)
		return false;
	while (k < size && code[k] == elfrw_fill_byte(prog->arch, u->start + k))
		k++;
	return k == size;
}

/* Can a thunk stand for U, if U is folded into KEPT? */
static bool thunk_does(const struct icf_program *prog, const struct icf_options *opt,
		       const struct icf_plan *plan, const struct icf_unit *u,
		       const struct icf_unit *kept)
{
	if (!plan->in_place &&
	    (opt->no_thunks || !icf_in_thunk_part(prog, plan->thunk_exec, u->start)))
		return false;
	return thunk_pays(prog, plan, u, kept) &&
	       (!plan->in_place || (row_lasts(prog, u, kept) && !is_thunk(prog, u)));
}

/* Somebody may know U by the address of a place in it. */
static bool is_known_by_label(const struct icf_options *opt, const struct icf_unit *u)
{
	return opt->mode == ICF_MODE_SAFE && (u->flags & ICF_UNIT_LABEL);
}

struct elfrw_err *icf_choose_kept(struct icf_program *prog, const struct icf_options *opt,
				  struct icf_plan *plan)
{
	uint32_t n = (uint32_t)prog->unit.len;
	uint32_t *keeper = malloc((n + 1) * sizeof *keeper), *count = calloc(n + 1, sizeof *count);
	uint32_t *parent = find_parents(prog);
	uint8_t *need = find_needs(prog, opt, plan);
	plan->thunk_exec = icf_thunk_section(prog);
	if (!keeper || !count || !parent || !need) {
		free(keeper);
		free(count);
		free(parent);
		free(need);
		return &elfrw_err_nomem;
	}
	for (uint32_t i = 0; i < n; i++)
		keeper[i] = ICF_NONE;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = plan->cls[i];
		count[c]++;
		if (may_keep(&prog->unit.data[i], need[c]) &&
		    (keeper[c] == ICF_NONE || better_keeper(prog, plan, i, keeper[c])))
			keeper[c] = i;
	}
	keep_cold_parts(prog, plan, parent, count, need, keeper);
	free(parent);
	free(need);
	for (uint32_t i = 0; i < n; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		uint32_t c = plan->cls[i];
		if (u->reason != ICF_OK)
			continue;
		if (count[c] < 2)
			u->reason = ICF_UNIQUE;
		else if (i != keeper[c]) {
			if (is_known_by_label(opt, u) ||
			    (icf_needs_thunk(plan->in_place, opt, u) &&
			     !thunk_does(prog, opt, plan, u, &prog->unit.data[keeper[c]])))
				u->reason = ICF_ADDRESS_OBSERVED;
			else
				plan->kept[i] = keeper[c];
		}
	}
	free(keeper);
	free(count);
	return NULL;
}
