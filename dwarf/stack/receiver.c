/* receiver.c: see receiver.h.
 *
 * What the caller passed is the pointer that the call itself went through, so the vtable found
 * there is the very one.  `this` in the callee may have been adjusted on the way (thunks of classes
 * with several bases): it tells the class, any of whose vtables may have been meant; of these the
 * one counts whose slot leads to this code, if there is just one.
 *
 * Cost: two or three walks over a function's DIEs for each level that is open. */
#include "dwarf/stack/receiver.h"
#include "dwarf/calls/vtables.h"
#include "elfrw/arch/arch.h"

#define MAX_TABLES 64 /* of one class that are tried */

bool dwr_names_destructor(const char *linkage, const char **cls, size_t *len)
{
	*cls = NULL;
	*len = 0;
	if (!linkage)
		return false;
	if (*linkage == '~')
		return true;
	if (strncmp(linkage, "_Z", 2))
		return false;
	/* Itanium C++ ABI, 5.1.4.3: D0, D1, D2; D4 and D5 are compilers' own.  After it the end of
	 * the nested name, perhaps tags. */
	for (const char *p = linkage + 2; (p = strchr(p, 'D')); p++) {
		if (p[1] < '0' || p[1] > '5' || (p[2] != 'E' && p[2] != 'B'))
			continue;
		if (!strncmp(linkage, "_ZN", 3) && p > linkage + 3) {
			*cls = linkage + 3;
			*len = (size_t)(p - *cls);
		}
		return true;
	}
	return false;
}

/* Does code refer to the vtable object [lo, hi)? */
struct mention {
	const struct dwr_process *process;
	uint64_t lo, hi; /* as linked */
	bool found;
};

static bool mentions(void *ctx, uint64_t address)
{
	struct mention *m = ctx;
	uint64_t word; /* or a slot of the global offset table that does */
	m->found = (address >= m->lo && address < m->hi) ||
		   (m->process->memory(m->process->ctx, address + m->process->bias, &word) &&
		    word - m->process->bias >= m->lo && word - m->process->bias < m->hi);
	return !m->found;
}

static bool any_destructor(const struct dwr_callchain *cc, const struct dwr_chain *chain,
			   const struct dwr_chain_frame *f)
{
	const struct dwr_icfold *note = dwr_callchain_note(cc);
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t k = chain->member.data[f->first + i].member;
		const char *cls;
		size_t len;
		for (uint32_t j = 0; k < note->n_members && j < note->member[k].n_names; j++)
			if (dwr_names_destructor(note->names[note->member[k].name + j], &cls, &len))
				return true;
	}
	return false;
}

/* The vtable whose address point the first word of OBJECT is, or NULL. */
static const struct dwr_vtable *table_of(const struct dwr_stack *st, const struct dwr_vtables *vt,
					 uint64_t object)
{
	const struct dwr_process *p = st->process;
	uint64_t word;
	if (!p->memory(p->ctx, object, &word))
		return NULL;
	const struct dwr_vtable *t = dwr_vtables_find(vt, word - p->bias);
	return t && t->point == word - p->bias ? t : NULL;
}

/* The argument ARG of the call by the level outside of LEVEL. */
static bool argument(struct dwr_stack *st, const struct dwr_chain *chain, size_t level,
		     unsigned arg, uint64_t *value)
{
	const struct dwr_chain_frame *outer = &chain->frame.data[level + 1];
	uint64_t die;
	if (dwr_stack_function(st, level + 1, &die) &&
	    dwr_stack_passed(st, level + 1, die, st->arch->dwarf_arg[arg], value))
		return true;
	/* All functions that share the code have the same code, so any of them can describe it. */
	for (uint32_t i = 0; i < outer->n; i++) {
		die = chain->member.data[outer->first + i].die;
		if (die && dwr_stack_passed(st, level + 1, die, st->arch->dwarf_arg[arg], value))
			return true;
	}
	return false;
}

/* The vtable of the call, found in the caller.  A function that returns its result in memory gets
 * the object as second argument: the code of the call shows this, or the type of the result. */
static struct elfrw_err *by_caller(struct dwr_stack *st, const struct dwr_vtables *vt,
				   const struct dwr_chain *chain, size_t level,
				   const struct dwr_vtable **ret)
{
	const struct dwr_chain_frame *f = &chain->frame.data[level];
	const struct dwr_process *p = st->process;
	struct dwr_chain_object where;
	bool found;
	uint64_t object;
	*ret = NULL;
	ELFRW_TRY(dwr_callchain_object(st->cc, st->addr[level + 1], &where, &found));
	if (found && where.has_reg && p->reg(p->ctx, level + 1, where.reg, &object)) {
		*ret = table_of(st, vt, object + (uint64_t)where.add);
		return NULL;
	}
	for (uint32_t i = 0; i < f->n && !found; i++)
		if (!chain->member.data[f->first + i].die ||
		    !dwr_stack_returns_plain(st, chain->member.data[f->first + i].die))
			return NULL;
	if (argument(st, chain, level, where.second, &object))
		*ret = table_of(st, vt, object);
	return NULL;
}

/* The only vtable of the class of `this` from which the call can have come here. */
static struct elfrw_err *by_callee(struct dwr_stack *st, const struct dwr_vtables *vt,
				   const struct dwr_chain *chain, size_t level, uint64_t slot,
				   const struct dwr_vtable **ret)
{
	const struct dwr_chain_frame *f = &chain->frame.data[level];
	const struct dwr_vtable *in = NULL, *end = vt->table.data + vt->table.len;
	*ret = NULL;
	for (uint32_t i = 0; !in && i < f->n; i++) {
		uint64_t die = chain->member.data[f->first + i].die, object;
		if (die && dwr_stack_this(st, level, die, &object))
			in = table_of(st, vt, object);
	}
	if (!in)
		return NULL;
	const struct dwr_vtable *first = in, *found = NULL;
	while (first > vt->table.data && first[-1].object == in->object)
		first--;
	for (const struct dwr_vtable *t = first; t < end && t->object == in->object; t++) {
		enum dwr_chain_leads leads;
		if (t - first == MAX_TABLES)
			return NULL;
		if ((t->end - t->point) / 8 <= slot)
			continue;
		ELFRW_TRY(dwr_callchain_leads(st->cc, t->point + 8 * slot, f->group, &leads));
		if (leads == DWR_LEADS_PERHAPS || (leads == DWR_LEADS_THERE && found))
			return NULL;
		if (leads == DWR_LEADS_THERE)
			found = t;
	}
	*ret = found;
	return NULL;
}

static bool still_alive(struct dwr_stack *st, const struct dwr_vtables *vt, size_t level,
			const struct dwr_vtable *t)
{
	const struct dwr_vtable *last = t, *end = vt->table.data + vt->table.len;
	while (last + 1 < end && last[1].object == t->object)
		last++;
	struct mention m = { st->process, t->object, last->end, false };
	for (size_t i = 0; i <= level && !m.found; i++)
		if (st->addr[i])
			dwr_callchain_operands(st->cc, st->addr[i] - (i != 0), mentions, &m);
	return !m.found;
}

static struct elfrw_err *judge(struct dwr_stack *st, const struct dwr_vtables *vt,
			       const struct dwr_chain *chain, size_t level, uint64_t slot,
			       uint64_t *vtable)
{
	const struct dwr_vtable *t;
	enum dwr_chain_leads leads = DWR_LEADS_NOT;
	uint32_t group = chain->frame.data[level].group;
	ELFRW_TRY(by_caller(st, vt, chain, level, &t));
	if (t && (t->end - t->point) / 8 > slot)
		ELFRW_TRY(dwr_callchain_leads(st->cc, t->point + 8 * slot, group, &leads));
	if (t &&
	    leads != DWR_LEADS_THERE) /* no longer the vtable of the call, or out of this file */
		return NULL;
	if (!t)
		ELFRW_TRY(by_callee(st, vt, chain, level, slot, &t));
	if (t && still_alive(st, vt, level, t))
		*vtable = t->point;
	return NULL;
}

struct elfrw_err *dwr_receiver_vtables(struct dwr_stack *st, const struct dwr_chain *chain,
				       const bool *ending, uint64_t *vtable)
{
	const struct dwr_vtables *vt;
	uint64_t slot;
	if (!dwr_callchain_note(st->cc))
		return NULL;
	for (size_t i = 0; i + 1 < st->n; i++) {
		const struct dwr_chain_frame *f = &chain->frame.data[i];
		if (ending[i] || (f->merged && any_destructor(st->cc, chain, f)))
			return NULL;
		if (!f->merged || f->decided || !f->n || !st->addr[i + 1] ||
		    !dwr_callchain_vcall(st->cc, st->addr[i + 1], &slot) || slot > 65535)
			continue;
		ELFRW_TRY(dwr_callchain_vtables(st->cc, &vt));
		ELFRW_TRY(judge(st, vt, chain, i, slot, &vtable[i]));
	}
	return NULL;
}
