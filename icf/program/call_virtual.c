/* call_virtual.c: virtual calls, recognised in the code.
 *
 *	load	table, [object]		the first word of the object
 *	call	[table + 24]		slot 3
 *
 * The slot may be loaded first, and other instructions may be between.  At the call the object must
 * be in the first argument register, or in the second if the first says where to put the result.
 *
 * Registers are followed by value numbers (dwarf/stack/value_track.h) along straight code and
 * forward jumps.  Values survive a conditional jump.  They reach a jump's target if that jump is
 * the only way there.  At any other label they are forgotten.  Only C++ functions are examined: C
 * programs have tables of functions, too, but these are not vtables.
 *
 * Cost: linear. */
#include "dwarf/stack/value_track.h"
#include "elfrw/arch/effect.h"
#include "elfrw/base/search.h"
#include "icf/program/call_scan.h"
#include <string.h>

struct saved {
	uint64_t label;
	struct dwr_track_state state;
};

struct tracker {
	struct dwr_track v;
	VEC(struct saved) saved;
};

/* The number of jumps to VA; *AT is where to look in LABEL. */
static size_t count_label(const struct icf_labels *label, size_t *at, uint64_t va)
{
	size_t n = 0;
	while (*at < label->len && label->data[*at] < va)
		++*at;
	while (*at + n < label->len && label->data[*at + n] == va)
		n++;
	return n;
}

static bool single(const struct icf_labels *label, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, label->len, mid, label->data[mid] < va);
	return lo < label->len && label->data[lo] == va &&
	       (lo + 1 == label->len || label->data[lo + 1] != va);
}

static void save(struct tracker *t, uint64_t label)
{
	struct saved *s = VEC_PUSH(&t->saved);
	if (!s)
		t->v.nomem = true;
	else
		*s = (struct saved){ label, t->v.s };
}

/* Arrives at VA.  FALLS: the instruction before continues here.  Returns the number of jumps that
 * lead here. */
static size_t arrive(struct tracker *t, const struct icf_labels *label, size_t *at, uint64_t va,
		     bool falls)
{
	size_t n = count_label(label, at, va);
	if (n == 0 && falls)
		return 0;
	if (n == 1 && !falls)
		for (size_t i = t->saved.len; i-- > 0;)
			if (t->saved.data[i].label == va) {
				t->v.s = t->saved.data[i].state;
				t->saved.data[i] = t->saved.data[--t->saved.len];
				return n;
			}
	dwr_track_forget_all(&t->v);
	return n;
}

static bool is_cxx(const struct icf_program *prog, const struct icf_unit *u)
{
	return u->sym != ICF_NONE && strncmp(prog->sym.data[u->sym].name, "_Z", 2) == 0;
}

static struct elfrw_err *found(struct icf_calls *ret, uint32_t caller, uint64_t site, uint32_t slot)
{
	if (slot == ICF_NONE) {
		uint64_t *p = VEC_PUSH(&ret->indirect);
		if (!p)
			return &elfrw_err_nomem;
		*p = site;
		return NULL;
	}
	struct icf_vcall *v = VEC_PUSH(&ret->vcall);
	if (!v)
		return &elfrw_err_nomem;
	*v = (struct icf_vcall){ site, caller, slot };
	return NULL;
}

struct elfrw_err *icf_scan_virtual(const struct icf_program *prog, uint32_t unit,
				   const struct icf_labels *label, struct icf_calls *ret)
{
	const struct icf_unit *u = &prog->unit.data[unit];
	const uint8_t *code = icf_unit_bytes(prog, u);
	struct tracker t = { .v.model = prog->arch->model };
	struct elfrw_insn in;
	struct elfrw_effect e;
	struct dwr_track_call call;
	struct elfrw_err *err = NULL;
	bool falls = false, cxx = is_cxx(prog, u);
	size_t at = 0;
	for (uint64_t va = u->start; va < u->end && !err && !t.v.nomem; va += in.len) {
		const uint8_t *p = code + (va - u->start);
		if (!icf_decode(prog, u, p, u->end - va, va, &in))
			break;
		size_t jumps = cxx ? arrive(&t, label, &at, va, falls) : 0;
		if (!jumps && !falls &&
		    in.kind == ELFRW_INSN_NOP) /* fill: nothing goes on from here */
			continue;
		falls = true;
		if (cxx)
			t.v.model->effect(&in, p, &e);
		switch (in.kind) {
		case ELFRW_INSN_CALL_IND:
			if (!in.pcrel_size)
				err = found(ret, unit, va + in.len,
					    cxx && dwr_track_virtual(&t.v, &in, &e, &call)
						    ? call.slot
						    : ICF_NONE);
			/* fallthrough */
		case ELFRW_INSN_CALL:
			if (cxx)
				dwr_track_called(&t.v);
			break;
		case ELFRW_INSN_JMP:
		case ELFRW_INSN_JCC:
			if (cxx && in.target > va && in.target < u->end && single(label, in.target))
				save(&t, in.target);
			falls = in.kind == ELFRW_INSN_JCC;
			if (cxx) /* some count in a register */
				dwr_track_step(&t.v, &in, &e);
			break;
		case ELFRW_INSN_RET:
		case ELFRW_INSN_TRAP:
		case ELFRW_INSN_JMP_IND: falls = false; break;
		default:
			if (cxx)
				dwr_track_step(&t.v, &in, &e);
		}
	}
	if (!err && t.v.nomem)
		err = &elfrw_err_nomem;
	dwr_track_deinit(&t.v);
	VEC_FREE(&t.saved);
	return err;
}
