/* vcall.c: the table of virtual calls.
 *
 * An entry of .debug_vcall stands behind an indirect call.  If the code before the call shows the
 * slot, the entry must have the same slot.  The plainest form of a virtual call in C++ code loads
 * the vtable's address through the first argument, then calls.  Behind such a call there must be an
 * entry if some vtable has, in that slot, a function that shares its code. */
#include "dwarf/return_address.h"
#include "dwarf/calls/vtables.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "icf/verify/calls/state.h"
#include <stdlib.h>
#include <string.h>

static int vcall_order(const void *a, const void *b)
{
	const struct dwr_vcall *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static struct elfrw_err *find_shared_slots(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	struct dwr_vtables vt;
	if (!v->claim.note.n_vslots)
		return NULL;
	ELFRW_TRY(icf_v_named(v->claim.in.path, dwr_vtables_read(&v->claim.in, &v->claim.in, &vt)));
	for (size_t i = 0; i < v->claim.note.n_vslots; i++) {
		const struct dwr_vtable *t = dwr_vtables_find(&vt, v->claim.note.vslot[i].slot);
		uint64_t slot = t ? (v->claim.note.vslot[i].slot - t->point) / 8 : ICF_V_SLOTS;
		if (slot < ICF_V_SLOTS)
			c->shared_slot[slot] = true;
	}
	dwr_vtables_deinit(&vt);
	return NULL;
}

/* Does OUT have the entry for the call of unit U that returns to SITE (in IN)? */
static bool has_slot(const struct icf_vcalls *c, uint32_t u, uint64_t site, uint64_t slot)
{
	const struct icf_vunit *x = &c->v->claim.unit.data[u];
	struct dwr_vcall key = { x->body + (site - x->old), slot };
	return c->slot.len && bsearch(&key, c->slot.data, c->slot.len, sizeof key, vcall_order);
}

/* Can a jump lead to VA in unit U? */
static bool is_label(const struct icf_v *v, const struct icf_vunit *u, uint64_t va)
{
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	struct elfrw_insn in;
	for (uint64_t at = u->old; at < u->end; at += in.len) {
		if (e->old_data[at - e->old] == 0)
			at += icf_v_pad(v, at);
		if (!v->claim.arch->decode(e->old_data + (at - e->old), u->end - at, at, &in))
			return true;
		if ((in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC) && in.target == va)
			return true;
	}
	for (size_t w = 0; w < v->words.word.len; w++)
		if (v->words.word.data[w].target == va)
			return true;
	return false;
}

/* Did LAST, with judgement J, load the first word of the first argument into register REG, another
 * one? */
static bool loads_first(const struct elfrw_judge *judge, const struct elfrw_insn *last,
			const struct elfrw_judgement *j, unsigned reg)
{
	return last->kind == ELFRW_INSN_OTHER && j->kind == ELFRW_JUDGE_LOAD && !j->disp &&
	       !last->pcrel_size && last->index == ELFRW_REG_NONE &&
	       last->base == judge->argument && j->to == reg && reg != judge->argument;
}

/* The vtable's address is loaded from the object, then the call goes through it, while the first
 * argument is still the object: a coroutine's frame begins with what resumes and destroys it. */
static void check_virtual(struct icf_vcalls *c, uint32_t index)
{
	struct icf_v *v = c->v;
	const struct icf_vunit *u = &v->claim.unit.data[index];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	const struct elfrw_judge *judge = v->claim.arch->judge;
	struct elfrw_insn in, last = { .kind = ELFRW_INSN_NOP };
	struct elfrw_judgement j, before = { 0 };
	char caller[200];
	for (uint64_t at = u->old; at < u->end; at += in.len, last = in, before = j) {
		if (e->old_data[at - e->old] == 0)
			at += icf_v_pad(v, at);
		const uint8_t *p = e->old_data + (at - e->old);
		if (!v->claim.arch->decode(p, u->end - at, at, &in))
			return;
		judge->look(&in, p, &j);
		if (in.kind != ELFRW_INSN_CALL_IND || !(in.flags & ELFRW_INSN_MEM) ||
		    in.pcrel_size || in.index != ELFRW_REG_NONE || in.base == ELFRW_REG_NONE)
			continue;
		uint64_t slot = (uint64_t)j.disp / 8, site = at + in.len;
		if (!loads_first(judge, &last, &before, in.base) || slot >= ICF_V_SLOTS ||
		    !c->shared_slot[slot])
			continue;
		v->log.checked[ICF_VC_CALL]++;
		if (!has_slot(c, index, site, slot) &&
		    strncmp(icf_v_where(&v->claim, u->old, caller), "_Z", 2) == 0 &&
		    !is_label(v, u, at))
			icf_vlog_bad(&v->log, ICF_VC_CALL,
				     "call: through slot %llu in %s: expected an entry, found none",
				     ICF_VX(slot),
				     icf_v_where(&v->claim, dwr_call_at(site), caller));
	}
}

static void check_missing_slots(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	uint32_t last = ICF_V_NONE;
	bool any = false;
	for (size_t i = 0; i < ICF_V_SLOTS && !any; i++)
		any = c->shared_slot[i];
	for (size_t i = 0; any && i < v->site.v.len; i++) {
		uint32_t u = (uint32_t)(v->site.v.data[i] >> 32);
		if (u == last || v->claim.unit.data[u].opaque)
			continue;
		last = u;
		check_virtual(c, u);
	}
}

static struct elfrw_err *check_kept_slots(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	char caller[200];
	for (size_t i = 0; i < c->table.vcall.len; i++) {
		const struct dwr_vcall *x = &c->table.vcall.data[i];
		uint32_t u = icf_v_find(&v->claim, dwr_call_at(x->site));
		if (u == ICF_V_NONE)
			continue;
		v->log.checked[ICF_VC_CALL]++;
		if (!has_slot(c, u, x->site, x->slot) &&
		    (c->refold || (x->slot < ICF_V_SLOTS && c->shared_slot[x->slot])))
			icf_vlog_bad(
				&v->log, ICF_VC_CALL,
				"call: through slot %llu in %s, which the input's table has: expected an entry, found none",
				ICF_VX(x->slot),
				icf_v_where(&v->claim, dwr_call_at(x->site), caller));
	}
	return NULL;
}

/* Does a virtual call through SLOT return to SITE of OUT? */
static struct elfrw_err *check_slot(struct icf_vcalls *c, uint64_t site, uint64_t slot)
{
	struct icf_v *v = c->v;
	uint32_t u = icf_v_find_new(&v->claim, dwr_call_at(site));
	bool behind = false;
	uint64_t seen;
	if (!c->code)
		c->code = icf_vslots_create(v);
	if (!c->code)
		return &elfrw_err_nomem;
	if (u != ICF_V_NONE) {
		const struct icf_vunit *x = &v->claim.unit.data[u];
		ELFRW_TRY(icf_vslots_get(c->code, u, x->old + (site - x->body), &behind, &seen));
	}
	if (!behind)
		icf_vlog_bad(
			&v->log, ICF_VC_CALL,
			"call site: .debug_vcall 0x%llx: expected behind an indirect call, found elsewhere",
			ICF_VX(site));
	else if (seen != UINT64_MAX && seen != slot)
		icf_vlog_bad(&v->log, ICF_VC_CALL,
			     "slot: .debug_vcall 0x%llx: expected %llu, found %llu", ICF_VX(site),
			     ICF_VX(seen), ICF_VX(slot));
	else if (slot < ICF_V_SLOTS && !v->slot_site[slot] && !icf_vcalls_grouped(v, u))
		v->slot_site[slot] = site;
	return NULL;
}

static struct elfrw_err *check_vcall(struct icf_vcalls *c, const Elf_Data *s)
{
	struct icf_v *v = c->v;
	struct elfrw_rbuf all = elfrw_rbuf(s->d_buf, s->d_size), r;
	uint64_t info;
	while (elfrw_rbuf_left(&all)) {
		uint64_t last = 0, last_slot = 0;
		if (!icf_vcalls_header(&all, &r, false, &info)) {
			icf_vlog_bad(
				&v->log, ICF_VC_CALL,
				"header: .debug_vcall: expected version 4 and 8-byte addresses, found others");
			return NULL;
		}
		while (elfrw_rbuf_left(&r)) {
			uint64_t site = elfrw_rbuf_u64(&r), slot = elfrw_rbuf_uleb(&r);
			if (!elfrw_rbuf_ok(&r)) {
				icf_vlog_bad(
					&v->log, ICF_VC_CALL,
					"call sites: .debug_vcall: expected whole entries, found one that is cut off");
				return NULL;
			}
			struct dwr_vcall *slot_of_site = VEC_PUSH(&c->slot);
			if (!slot_of_site)
				return &elfrw_err_nomem;
			*slot_of_site = (struct dwr_vcall){ site, slot };
			if (site < last || (site == last && slot <= last_slot))
				icf_vlog_bad(
					&v->log, ICF_VC_CALL,
					"order: .debug_vcall: expected more than 0x%llx, found 0x%llx",
					ICF_VX(last), ICF_VX(site));
			last = site;
			last_slot = slot;
			v->log.checked[ICF_VC_CALL]++;
			ELFRW_TRY(check_slot(c, site, slot));
		}
	}
	return NULL;
}

struct elfrw_err *icf_vcalls_virtual(struct icf_vcalls *c, const Elf_Data *s)
{
	if (s)
		ELFRW_TRY(check_vcall(c, s));
	if (c->slot.len)
		qsort(c->slot.data, c->slot.len, sizeof *c->slot.data, vcall_order);
	ELFRW_TRY(find_shared_slots(c));
	check_missing_slots(c);
	return check_kept_slots(c);
}
