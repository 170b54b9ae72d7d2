/* code.c: see code.h.  The address map of .debug_icfold, read backwards, gives the bodies of the
 * output.  A body is decoded once, on first use. */
#include "dwarf/stack/code.h"
#include "dwarf/return_address.h"
#include "dwarf/stack/value_track.h"
#include "elfrw/arch/effect.h"
#include "elfrw/arch/form.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include <stdlib.h>
#include <string.h>

static int span_order(const void *a, const void *b)
{
	const struct dwr_code_span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

struct elfrw_err *dwr_code_init(struct dwr_code *code, const struct elfrw_image *img,
				const struct dwr_icfold *note)
{
	*code = (struct dwr_code){ .img = img, .note = note };
	const struct elfrw_addrmap *map = &note->map;
	code->body = calloc((size_t)map->n_units + 1, sizeof *code->body);
	if (!code->body)
		return &elfrw_err_nomem;
	for (uint32_t u = 0; u < map->n_units; u++) {
		const struct elfrw_addrmap_unit *m = &map->unit[u];
		if (m->flags & ELFRW_UNIT_FOLDED && !m->thunk_size)
			continue;
		struct dwr_code_span *s = VEC_PUSH(&code->span);
		if (!s)
			return &elfrw_err_nomem;
		if (m->flags & ELFRW_UNIT_FOLDED)
			*s = (struct dwr_code_span){ m->entry, m->entry + m->thunk_size, u, true };
		else
			*s = (struct dwr_code_span){ m->body, m->body + (m->old_end - m->old), u,
						     false };
	}
	if (code->span.len)
		qsort(code->span.data, code->span.len, sizeof *code->span.data, span_order);
	return NULL;
}

void dwr_code_deinit(struct dwr_code *code)
{
	VEC_FREE(&code->span);
	VEC_FREE(&code->branch);
	VEC_FREE(&code->inner);
	free(code->body);
}

const struct dwr_code_span *dwr_code_at(const struct dwr_code *code, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, code->span.len, mid, code->span.data[mid].start <= va);
	return lo && va < code->span.data[lo - 1].end ? &code->span.data[lo - 1] : NULL;
}

bool dwr_code_is_linkage(const struct dwr_code *code, uint32_t unit)
{
	uint32_t shndx = elfrw_image_section_at(code->img, code->note->map.unit[unit].body);
	const char *name = shndx ? code->img->section[shndx].name : "";
	return strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0 ||
	       strcmp(name, ".init") == 0 || strcmp(name, ".fini") == 0;
}

/* Registers that hold the address of a switch's case: loaded through an index, or a sum of two
 * registers.  Kept for a few instructions. */
struct switches {
	uint8_t age[ELFRW_MAX_REGS];
};

#define SWITCH_AGE 4

static void watch(struct switches *s, const struct elfrw_insn *in, const struct elfrw_effect *e)
{
	for (unsigned r = 0; r < ELFRW_MAX_REGS; r++)
		s->age[r] -= s->age[r] != 0;
	bool indexed = (in->flags & ELFRW_INSN_MEM) && in->index != ELFRW_REG_NONE;
	bool sum = (e->op == ELFRW_OP_ADD || e->op == ELFRW_OP_ADD_PART) &&
		   !(e->flags & ELFRW_EFFECT_IMM),
	     load = indexed &&
		    (e->op == ELFRW_OP_LOAD || (e->op == ELFRW_OP_SIGN_EXTEND && e->from == 4));
	if ((sum || load) && e->width >= 4 && e->dst != ELFRW_REG_NONE)
		s->age[e->dst] = SWITCH_AGE;
}

static bool is_switch(const struct switches *s, const struct elfrw_insn *in,
		      const struct elfrw_effect *e)
{
	if (in->flags & ELFRW_INSN_NOTRACK)
		return true;
	if (in->flags & ELFRW_INSN_MEM)
		return in->index != ELFRW_REG_NONE;
	return e->a != ELFRW_REG_NONE && s->age[e->a];
}

static struct elfrw_err *push(struct dwr_code *code, uint64_t site, uint64_t target, bool call)
{
	struct dwr_branch *b = VEC_PUSH(&code->branch);
	if (!b)
		return &elfrw_err_nomem;
	*b = (struct dwr_branch){ site, target, call };
	return NULL;
}

static struct elfrw_err *decode(struct dwr_code *code, uint32_t unit)
{
	const struct elfrw_addrmap_unit *m = &code->note->map.unit[unit];
	uint64_t va = m->body, end = m->body + (m->old_end - m->old);
	const uint8_t *p = elfrw_image_at(code->img, va, end - va);
	struct switches sw = { 0 };
	struct elfrw_insn in;
	struct elfrw_effect e;
	if (!p)
		return NULL;
	for (const uint8_t *start = p; va < end; va += in.len) {
		if (!code->img->arch->decode(start + (va - m->body), end - va, va, &in))
			break;
		uint64_t site = va + in.len;
		code->img->arch->model->effect(&in, start + (va - m->body), &e);
		switch (in.kind) {
		case ELFRW_INSN_CALL: ELFRW_TRY(push(code, site, in.target, true)); break;
		case ELFRW_INSN_CALL_IND: ELFRW_TRY(push(code, site, 0, true)); break;
		case ELFRW_INSN_JMP:
		case ELFRW_INSN_JCC:
			if (in.target < m->body || in.target >= end)
				ELFRW_TRY(push(code, site, in.target, false));
			break;
		case ELFRW_INSN_JMP_IND:
			if (!is_switch(&sw, &in, &e))
				ELFRW_TRY(push(code, site, 0, false));
			break;
		}
		watch(&sw, &in, &e);
	}
	return NULL;
}

const struct dwr_branch *dwr_call_before(const struct dwr_branch *b, uint32_t n, uint64_t site)
{
	for (size_t i = LOWER_BOUND(0, n, mid, b[mid].site < site); i < n && b[i].site == site; i++)
		if (b[i].call)
			return &b[i];
	return NULL;
}

struct elfrw_err *dwr_code_is_return(struct dwr_code *code, uint64_t site, bool *ret, bool *again)
{
	const struct dwr_code_span *s = dwr_code_at(code, dwr_call_at(site)), *to;
	const struct dwr_branch *b = NULL;
	uint32_t n = 0;
	uint64_t target;
	*ret = *again = false;
	if (s && !s->thunk)
		ELFRW_TRY(dwr_code_branches(code, s->unit, &b, &n));
	const struct dwr_branch *call = dwr_call_before(b, n, site);
	if (!call)
		return NULL;
	*ret = *again = true;
	target = call->target;
	if (!target || !(to = dwr_code_at(code, target)) || to == s || to->thunk)
		return NULL;
	ELFRW_TRY(dwr_code_branches(code, to->unit, &b, &n));
	*again = code->body[code->note->map.unit[to->unit].kept].jumps;
	return NULL;
}

struct elfrw_err *dwr_code_branches(struct dwr_code *code, uint32_t unit,
				    const struct dwr_branch **ret, uint32_t *n)
{
	unit = code->note->map.unit[unit].kept;
	struct dwr_body *b = &code->body[unit];
	if (!b->decoded) {
		size_t first = code->branch.len;
		ELFRW_TRY(decode(code, unit));
		*b = (struct dwr_body){ .decoded = true,
					.branch = (uint32_t)first,
					.n_branches = (uint32_t)(code->branch.len - first) };
		for (size_t i = first; i < code->branch.len; i++)
			b->jumps |= !code->branch.data[i].call;
	}
	*ret = code->branch.data ? code->branch.data + b->branch : NULL;
	*n = b->n_branches;
	return NULL;
}

/* The body around AT, decoded: instruction by instruction.  *VA is the next one's address; false:
 * no more. */
static bool next_insn(const struct dwr_code *code, const struct dwr_code_span *s, uint64_t *va,
		      struct elfrw_insn *in, const uint8_t **bytes)
{
	*bytes = *va < s->end ? elfrw_image_at(code->img, *va, s->end - *va) : NULL;
	if (!*bytes || !code->img->arch->decode(*bytes, s->end - *va, *va, in))
		return false;
	*va += in->len;
	return true;
}

#define MAX_PAGES 256

/* High halves of addresses that a function has in registers, somewhere. */
struct pages {
	unsigned n;
	struct {
		uint64_t page;
		unsigned reg;
	} at[MAX_PAGES];
};

static const struct elfrw_form *high_form(const struct elfrw_arch *arch,
					  const struct elfrw_insn *in)
{
	const struct elfrw_form *form =
		arch->low_form && in->pcrel_size ? &arch->form[arch->pcrel_form(in)] : NULL;
	return form && elfrw_form_is_high(form) ? form : NULL;
}

static void collect_pages(const struct dwr_code *code, const struct dwr_code_span *s,
			  struct pages *ret)
{
	const uint8_t *p;
	struct elfrw_insn in;
	ret->n = 0;
	for (uint64_t va = s->start; ret->n < MAX_PAGES && next_insn(code, s, &va, &in, &p);) {
		unsigned i = 0;
		if (!high_form(code->img->arch, &in))
			continue;
		while (i < ret->n && (ret->at[i].page != in.target || ret->at[i].reg != in.reg))
			i++;
		ret->at[i].page = in.target;
		ret->at[i].reg = in.reg;
		ret->n += i == ret->n;
	}
}

/* Calls FN for what IN, at P, may name with its low half.  Which of the register's high halves
 * comes there is not asked: a name too many only leaves a question open. */
static bool name_low(const struct dwr_code *code, const struct pages *pages,
		     const struct elfrw_insn *in, const uint8_t *p,
		     bool (*fn)(void *ctx, uint64_t address), void *ctx)
{
	const struct elfrw_arch *arch = code->img->arch;
	uint8_t form = pages->n && in->base != ELFRW_REG_NONE ? arch->low_form(in, p) : 0;
	for (unsigned i = 0; form && i < pages->n; i++)
		if (pages->at[i].reg == in->base &&
		    !fn(ctx, elfrw_form_read(&arch->form[form], p, pages->at[i].page)))
			return false;
	return true;
}

void dwr_code_operands(const struct dwr_code *code, uint64_t at,
		       bool (*fn)(void *ctx, uint64_t address), void *ctx)
{
	const struct dwr_code_span *s = dwr_code_at(code, at);
	const uint8_t *p;
	struct elfrw_insn in;
	struct pages pages = { .n = 0 };
	if (s && code->img->arch->low_form)
		collect_pages(code, s, &pages);
	for (uint64_t va = s ? s->start : 0; s && next_insn(code, s, &va, &in, &p);) {
		if (in.pcrel_size >= 4 && !high_form(code->img->arch, &in) && !fn(ctx, in.target))
			return;
		if (in.imm_size >= 4 && !fn(ctx, elfrw_get_le(p + in.imm_off, in.imm_size)))
			return;
		if (in.disp_size >= 4 && !fn(ctx, elfrw_get_le(p + in.disp_off, in.disp_size)))
			return;
		if (!name_low(code, &pages, &in, p, fn, ctx))
			return;
	}
}

/* Does IN, with effect E, keep an argument register in the frame? */
static bool is_spill(const struct elfrw_model *m, const struct elfrw_insn *in,
		     const struct elfrw_effect *e)
{
	return e->op == ELFRW_OP_STORE && e->width == 8 &&
	       (e->a == m->argument[0] || e->a == m->argument[1]) &&
	       (in->base == m->sp || in->base == m->fp);
}

bool dwr_code_spills(const struct dwr_code *code, uint64_t at)
{
	const struct elfrw_model *m = code->img->arch->model;
	const struct dwr_code_span *s = dwr_code_at(code, at);
	const uint8_t *p;
	struct elfrw_insn in;
	struct elfrw_effect e;
	bool done = false;
	for (uint64_t va = s ? s->start : 0; s && next_insn(code, s, &va, &in, &p);) {
		m->effect(&in, p, &e);
		bool store = is_spill(m, &in, &e);
		if (va > at) /* not executed yet: the last of several stores has to be */
			return done && !store;
		if (!done && in.kind != ELFRW_INSN_OTHER && in.kind != ELFRW_INSN_NOP)
			return false;
		done |= store;
	}
	return false;
}

static bool is_direct(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_JCC;
}

static struct elfrw_err *load_inner(struct dwr_code *code)
{
	struct elfrw_insn in;
	const uint8_t *p;
	if (code->has_inner)
		return NULL;
	for (size_t i = 0; i < code->span.len; i++) {
		const struct dwr_code_span *s = &code->span.data[i], *to;
		for (uint64_t va = s->start; next_insn(code, s, &va, &in, &p);) {
			if (!is_direct(&in) || (in.target >= s->start && in.target < s->end))
				continue;
			to = dwr_code_at(code, in.target);
			uint64_t *slot =
				to && to->start != in.target ? VEC_PUSH(&code->inner) : NULL;
			if (!slot && to && to->start != in.target)
				return &elfrw_err_nomem;
			if (slot)
				*slot = in.target;
		}
	}
	if (code->inner.len)
		qsort(code->inner.data, code->inner.len, sizeof *code->inner.data, elfrw_u64_order);
	code->has_inner = true;
	return NULL;
}

/* The last jump target in the span S at or before AT, or the start of S: *FROM.  false: S has jumps
 * with unknown targets. */
static bool last_label(const struct dwr_code *code, const struct dwr_code_span *s, uint64_t at,
		       uint64_t *from)
{
	struct elfrw_insn in;
	const uint8_t *p;
	*from = s->start;
	for (uint64_t va = s->start; next_insn(code, s, &va, &in, &p);) {
		if (is_direct(&in) && in.target <= at && in.target > *from)
			*from = in.target;
		if (in.kind == ELFRW_INSN_JMP_IND &&
		    (!(in.flags & ELFRW_INSN_MEM) || in.index != ELFRW_REG_NONE))
			return false;
	}
	for (size_t i = 0; i < code->inner.len && code->inner.data[i] <= at; i++)
		if (code->inner.data[i] > *from)
			*from = code->inner.data[i];
	return true;
}

/* Computes what survives the call CALL: the stack pointer, and the registers that functions
 * preserve. */
static void preserved(const struct dwr_track *t, const struct dwr_track_call *call,
		      struct dwr_chain_object *ret)
{
	const struct elfrw_model *m = t->model;
	uint32_t left = m->kept;
	for (unsigned r = m->sp; !ret->has_reg;
	     r = (unsigned)__builtin_ctz(left), left &= left - 1) {
		if (t->s.reg[r].id == call->object.id)
			*ret = (struct dwr_chain_object){ call->second, true, m->dwarf[r],
							  (int64_t)call->object.add -
								  t->s.reg[r].add };
		if (!left)
			break;
	}
}

struct elfrw_err *dwr_code_object(struct dwr_code *code, uint64_t site,
				  struct dwr_chain_object *ret, bool *found)
{
	const struct dwr_code_span *s = dwr_code_at(code, dwr_call_at(site));
	struct dwr_track t = { .model = code->img->arch->model };
	struct dwr_track_call call;
	struct elfrw_insn in;
	struct elfrw_effect e;
	const uint8_t *p;
	uint64_t from;
	*found = false;
	*ret = (struct dwr_chain_object){ 0 };
	if (!s || s->thunk)
		return NULL;
	ELFRW_TRY(load_inner(code));
	/* Nothing is known at a label, nor after a call, where a landing pad may begin. */
	if (!last_label(code, s, dwr_call_at(site), &from))
		return NULL;
	dwr_track_forget_all(&t);
	for (uint64_t va = s->start; va < site && !t.nomem && next_insn(code, s, &va, &in, &p);) {
		bool goes_on = in.kind == ELFRW_INSN_OTHER || in.kind == ELFRW_INSN_NOP ||
			       in.kind == ELFRW_INSN_CALL_IND || in.kind == ELFRW_INSN_JCC;
		if (va - in.len <= from || !goes_on)
			dwr_track_forget_all(&t);
		t.model->effect(&in, p, &e);
		if (va == site && in.kind == ELFRW_INSN_CALL_IND && !in.pcrel_size &&
		    dwr_track_virtual(&t, &in, &e, &call)) {
			*found = true;
			ret->second = call.second;
			preserved(&t, &call, ret);
		}
		if (in.kind == ELFRW_INSN_CALL_IND)
			dwr_track_forget_all(&t);
		else if (in.kind == ELFRW_INSN_OTHER)
			dwr_track_step(&t, &in, &e);
	}
	bool nomem = t.nomem;
	dwr_track_deinit(&t);
	return nomem ? &elfrw_err_nomem : NULL;
}
