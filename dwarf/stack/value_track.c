/* value_track.c: see value_track.h.  The architecture says what an instruction does
 * (elfrw/arch/effect.h). */
#include "dwarf/stack/value_track.h"
#include "elfrw/arch/effect.h"
#include <string.h>

#define RECENT   32
#define MAX_SLOT 4096

void dwr_track_deinit(struct dwr_track *t)
{
	VEC_FREE(&t->value);
}

static uint32_t fresh(struct dwr_track *t, struct dwr_track_value v)
{
	struct dwr_track_value *slot = VEC_PUSH(&t->value);
	if (!slot) {
		t->nomem = true;
		return 0;
	}
	*slot = v;
	return (uint32_t)(t->value.len - 1);
}

void dwr_track_forget(struct dwr_track *t, unsigned r)
{
	if (r < DWR_TRACK_REGS)
		t->s.reg[r] = (struct dwr_track_reg){ fresh(t, (struct dwr_track_value){ 0 }), 0 };
}

void dwr_track_forget_all(struct dwr_track *t)
{
	for (unsigned r = 0; r < t->model->regs; r++)
		dwr_track_forget(t, r);
	t->s.epoch = ++t->epochs;
}

static void load(struct dwr_track *t, unsigned r, struct dwr_track_reg base, int32_t disp)
{
	struct dwr_track_value v = { true, base.id, t->s.epoch, 0 };
	if (__builtin_add_overflow(base.add, disp, &v.off)) {
		dwr_track_forget(t, r);
		return;
	}
	size_t n = t->value.len;
	for (size_t i = n; i-- > 0 && n - i <= RECENT;) {
		const struct dwr_track_value *o = &t->value.data[i];
		if (o->load && o->base == v.base && o->off == v.off && o->epoch == v.epoch) {
			t->s.reg[r] = (struct dwr_track_reg){ (uint32_t)i, 0 };
			return;
		}
	}
	t->s.reg[r] = (struct dwr_track_reg){ fresh(t, v), 0 };
}

static void add(struct dwr_track *t, unsigned r, int64_t by)
{
	int32_t sum;
	if (by != (int32_t)by || __builtin_add_overflow(t->s.reg[r].add, (int32_t)by, &sum))
		dwr_track_forget(t, r);
	else
		t->s.reg[r].add = sum;
}

static void forget_set(struct dwr_track *t, uint32_t set)
{
	for (; set; set &= set - 1)
		dwr_track_forget(t, (unsigned)__builtin_ctz(set));
}

static void forget_memory(struct dwr_track *t)
{
	t->s.epoch = ++t->epochs;
}

/* A register or memory operand that is wholly known afterwards. */
static bool follow(struct dwr_track *t, const struct elfrw_insn *in, const struct elfrw_effect *e)
{
	bool plain = elfrw_is_plain_operand(in), imm = e->flags & ELFRW_EFFECT_IMM;
	if (e->width != 8 || e->dst == ELFRW_REG_NONE)
		return false;
	switch (e->op) {
	case ELFRW_OP_LOAD:
		if (plain)
			load(t, e->dst, t->s.reg[in->base], (int32_t)e->disp);
		return plain;
	case ELFRW_OP_MOV:
		if (!imm)
			t->s.reg[e->dst] = t->s.reg[e->a];
		return !imm;
	case ELFRW_OP_ADDRESS:
		if (!plain)
			return false;
		t->s.reg[e->dst] = t->s.reg[in->base];
		add(t, e->dst, e->disp);
		return true;
	case ELFRW_OP_ADD:
	case ELFRW_OP_SUB:
		if (!imm)
			return false;
		t->s.reg[e->dst] = t->s.reg[e->a];
		add(t, e->dst, e->op == ELFRW_OP_ADD ? e->imm : -e->imm);
		return true;
	default: return false;
	}
}

void dwr_track_step(struct dwr_track *t, const struct elfrw_insn *in, const struct elfrw_effect *e)
{
	if (follow(t, in, e))
		return;
	if (e->op == ELFRW_OP_PUSH || e->op == ELFRW_OP_POP) {
		if (e->dst != ELFRW_REG_NONE)
			dwr_track_forget(t, e->dst);
		add(t, t->model->sp, e->op == ELFRW_OP_PUSH ? -e->width : e->width);
	} else
		forget_set(t, e->writes);
	if (e->flags & ELFRW_EFFECT_STORES)
		forget_memory(t);
}

bool dwr_track_virtual(const struct dwr_track *t, const struct elfrw_insn *in,
		       const struct elfrw_effect *e, struct dwr_track_call *ret)
{
	struct dwr_track_reg table;
	int64_t off;
	if (in->flags & ELFRW_INSN_MEM) {
		if (!elfrw_is_plain_operand(in))
			return false;
		table = t->s.reg[in->base];
		off = e->disp + table.add;
	} else {
		if (e->a == ELFRW_REG_NONE || t->s.reg[e->a].add)
			return false;
		const struct dwr_track_value *target = &t->value.data[t->s.reg[e->a].id];
		if (!target->load)
			return false;
		table = (struct dwr_track_reg){ target->base, 0 };
		off = target->off;
	}
	const struct dwr_track_value *first = &t->value.data[table.id];
	if (!first->load || off < 0 || off % 8 || off / 8 >= MAX_SLOT)
		return false;
	struct dwr_track_reg object = { first->base, first->off };
	const struct dwr_track_reg *a = &t->s.reg[t->model->argument[0]],
				   *b = &t->s.reg[t->model->argument[1]];
	bool second = a->id != object.id || a->add != object.add;
	if (second && (b->id != object.id || b->add != object.add))
		return false;
	*ret = (struct dwr_track_call){ (uint32_t)(off / 8), object, second };
	return true;
}

void dwr_track_called(struct dwr_track *t)
{
	forget_set(t, t->model->clobbered);
	forget_memory(t);
}
