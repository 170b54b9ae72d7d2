/* slots.c: the slot of a vtable that an indirect call goes through, if the code shows it.
 *
 * A slot is the offset at which the called address was loaded, from a pointer that was itself
 * loaded.  So a value is described by its offset from a loaded value, and by the offset of that
 * load.  Values are followed through registers, additions and, in unoptimized code, words of the
 * frame.  An unknown instruction makes everything unknown.  So does a place that control enters
 * from elsewhere, unless all jumps to it come from before it: then the facts common to all of them
 * are kept.  So a slot that is shown holds on every path to the call.  Something may have been
 * added earlier to a value of unknown origin, so a plain load from it shows nothing.
 *
 * Cost: two passes over a unit with such a call. */
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/calls/calls.h"
#include <stdlib.h>
#include <string.h>

#define REGS      32
#define WORDS     32
#define MAX_SAVED 64

struct value {
	bool loaded; /* loaded from memory: nothing was added before */
	bool sure;   /* it was itself loaded from such a value */
	int64_t add; /* added since */
	int64_t at;  /* loaded: the offset of the load */
};

/* A word of the frame. */
struct word {
	uint8_t reg;
	int64_t disp;
	struct value value;
};

/* The known facts at a place. */
struct state {
	struct value reg[REGS];
	struct word word[WORDS];
	unsigned n_words;
};

/* The known facts at a jump to LABEL, which lies further on. */
struct saved {
	uint64_t label;
	struct state state;
};

struct call {
	uint64_t site, slot;
};

struct icf_vslots {
	const struct icf_v *v;
	VEC(uint64_t) target; /* targets inside of functions of words of data, sorted */
	VEC(uint64_t) label;  /* of the unit, sorted */
	VEC(struct call) call;
	uint32_t unit;
	VEC(struct saved) saved;
	struct state now;
	bool framed; /* the unit has a frame pointer */
	bool nomem;
};

static void forget_all(struct icf_vslots *s)
{
	memset(s->now.reg, 0, sizeof s->now.reg);
	s->now.n_words = 0;
}

static bool is_frame(const struct icf_vslots *s, unsigned reg)
{
	const struct elfrw_judge *j = s->v->claim.arch->judge;
	return reg == j->sp || (reg == j->fp && s->framed);
}

static void drop_word(struct icf_vslots *s, unsigned i)
{
	s->now.word[i] = s->now.word[--s->now.n_words];
}

static void set(struct icf_vslots *s, unsigned reg, struct value x)
{
	if (reg >= REGS)
		return;
	s->now.reg[reg] = x;
	for (unsigned i = s->now.n_words; is_frame(s, reg) && i-- > 0;)
		if (s->now.word[i].reg == reg)
			drop_word(s, i);
}

static void forget(struct icf_vslots *s, unsigned reg)
{
	set(s, reg, (struct value){ 0 });
}

static bool plain(const struct elfrw_insn *in)
{
	return (in->flags & ELFRW_INSN_MEM) && in->base < REGS && in->index == ELFRW_REG_NONE &&
	       !in->pcrel_size;
}

/* A store may change any word, except that a plain operand in the frame names its word. */
static void store(struct icf_vslots *s, const struct elfrw_insn *in, int64_t disp,
		  const struct value *x)
{
	if (!plain(in) || !is_frame(s, in->base)) {
		s->now.n_words = 0;
		return;
	}
	/* A store of up to 64 bytes.  Words of two different registers may be the same. */
	for (unsigned i = s->now.n_words; i-- > 0;)
		if (s->now.word[i].reg != in->base ||
		    (s->now.word[i].disp < disp + (x ? 8 : 64) && disp < s->now.word[i].disp + 8))
			drop_word(s, i);
	if (x && s->now.n_words < WORDS)
		s->now.word[s->now.n_words++] = (struct word){ in->base, disp, *x };
}

static struct value load(const struct icf_vslots *s, const struct elfrw_insn *in, int64_t disp)
{
	if (!plain(in))
		return (struct value){ 0 };
	for (unsigned i = 0; is_frame(s, in->base) && i < s->now.n_words; i++)
		if (s->now.word[i].reg == in->base && s->now.word[i].disp == disp)
			return s->now.word[i].value;
	if (is_frame(s, in->base))
		return (struct value){ 0 };
	const struct value *b = &s->now.reg[in->base];
	return (struct value){ .loaded = true, .sure = b->loaded, .at = b->add + disp };
}

/* The slot from which VALUE, which is called, was loaded. */
static uint64_t shown(struct value x)
{
	return x.loaded && !x.add && x.at >= 0 && (x.sure || x.at) ? (uint64_t)x.at / 8
								   : UINT64_MAX;
}

static void forget_set(struct icf_vslots *s, uint32_t lost)
{
	for (; lost; lost &= lost - 1)
		forget(s, (unsigned)__builtin_ctz(lost));
}

/* The value that JUDGEMENT gives its register. */
static struct value value_of(const struct icf_vslots *s, const struct elfrw_insn *in,
			     const struct elfrw_judgement *j)
{
	struct value x = { 0 };
	switch (j->kind) {
	case ELFRW_JUDGE_COPY: return s->now.reg[j->from];
	case ELFRW_JUDGE_LOAD: return load(s, in, j->disp);
	case ELFRW_JUDGE_ADDRESS:
		if (!plain(in) || is_frame(s, in->base))
			return x;
		x = s->now.reg[in->base];
		x.add += j->disp;
		return x;
	case ELFRW_JUDGE_ADD:
		if (is_frame(s, j->to))
			return x;
		x = s->now.reg[j->to];
		x.add += j->number;
		return x;
	default: return x;
	}
}

static void step(struct icf_vslots *s, const struct elfrw_insn *in, const uint8_t *code)
{
	struct elfrw_judgement j;
	s->v->claim.arch->judge->look(in, code, &j);
	switch (j.kind) {
	case ELFRW_JUDGE_UNKNOWN: forget_all(s); return;
	case ELFRW_JUDGE_STORE: store(s, in, j.disp, &s->now.reg[j.from]); return;
	case ELFRW_JUDGE_WRITE: store(s, in, j.disp, NULL); break;
	default:
		if (j.to != ELFRW_REG_NONE)
			set(s, j.to, value_of(s, in, &j));
	}
	forget_set(s, j.lost);
}

static void called(struct icf_vslots *s)
{
	const struct elfrw_judge *j = s->v->claim.arch->judge;
	for (unsigned r = 0; r < REGS; r++)
		if (!(j->kept >> r & 1))
			s->now.reg[r] = (struct value){ 0 };
	s->now.n_words = 0; /* their addresses may be known elsewhere */
}

static bool push(struct icf_vslots *s, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&s->label);
	if (slot)
		*slot = va;
	else
		s->nomem = true;
	return slot != NULL;
}

/* Does IN make the stack pointer's value the frame pointer's? */
static bool sets_frame(const struct elfrw_judge *judge, const struct elfrw_insn *in,
		       const uint8_t *code)
{
	struct elfrw_judgement j;
	if (in->kind != ELFRW_INSN_OTHER || (in->flags & ELFRW_INSN_MEM))
		return false;
	judge->look(in, code, &j);
	return j.kind == ELFRW_JUDGE_COPY && j.to == judge->fp && j.from == judge->sp;
}

/* Finds the labels of unit U, and whether it has a frame pointer. */
static void read_labels(struct icf_vslots *s, const struct icf_vunit *u)
{
	const struct icf_v *v = s->v;
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	struct elfrw_insn in;
	s->label.len = 0;
	s->framed = false;
	for (uint64_t at = u->old; at < u->end; at += in.len) {
		if (e->old_data[at - e->old] == 0)
			at += icf_v_pad(v, at);
		const uint8_t *p = e->old_data + (at - e->old);
		if (!v->claim.arch->decode(p, u->end - at, at, &in))
			break;
		if ((in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC) &&
		    in.target - u->old < u->end - u->old)
			push(s, in.target);
		s->framed |= sets_frame(v->claim.arch->judge, &in, p);
	}
	size_t i = LOWER_BOUND(0, s->target.len, mid, s->target.data[mid] < u->old);
	for (; i < s->target.len && s->target.data[i] < u->end; i++)
		push(s, s->target.data[i]);
	if (s->label.len)
		qsort(s->label.data, s->label.len, sizeof *s->label.data, elfrw_u64_order);
}

/* The number of jumps and words that refer to VA. */
static size_t count_labels(const struct icf_vslots *s, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, s->label.len, mid, s->label.data[mid] < va), n = 0;
	while (lo + n < s->label.len && s->label.data[lo + n] == va)
		n++;
	return n;
}

/* Control also goes from here to LABEL. */
static void save(struct icf_vslots *s, uint64_t label)
{
	bool any = false;
	for (unsigned r = 0; r < REGS; r++)
		any |= s->now.reg[r].loaded;
	if (!any || s->saved.len == MAX_SAVED)
		return;
	struct saved *x = VEC_PUSH(&s->saved);
	if (x)
		*x = (struct saved){ label, s->now };
	else
		s->nomem = true;
}

static bool same(const struct value *a, const struct value *b)
{
	return a->loaded == b->loaded && a->sure == b->sure && a->add == b->add && a->at == b->at;
}

/* Keeps the facts that hold in both states. */
static void join(struct icf_vslots *s, const struct state *other)
{
	for (unsigned r = 0; r < REGS; r++)
		if (!same(&s->now.reg[r], &other->reg[r]))
			s->now.reg[r] = (struct value){ 0 };
	for (unsigned i = s->now.n_words; i-- > 0;) {
		bool found = false;
		for (unsigned k = 0; k < other->n_words && !found; k++)
			found = other->word[k].reg == s->now.word[i].reg &&
				other->word[k].disp == s->now.word[i].disp &&
				same(&other->word[k].value, &s->now.word[i].value);
		if (!found)
			drop_word(s, i);
	}
}

/* Arrives at AT; FALLS: the instruction before continues here. */
static void arrive(struct icf_vslots *s, uint64_t at, bool falls)
{
	size_t labels = count_labels(s, at), known = 0;
	if (!labels && falls)
		return;
	for (size_t i = 0; i < s->saved.len; i++)
		known += s->saved.data[i].label == at;
	if (!labels || known != labels)
		forget_all(s);
	for (size_t i = s->saved.len; i-- > 0;) {
		if (s->saved.data[i].label != at)
			continue;
		if (known == labels) {
			if (falls)
				join(s, &s->saved.data[i].state);
			else
				s->now = s->saved.data[i].state;
			falls = true;
		}
		s->saved.data[i] = s->saved.data[--s->saved.len];
	}
}

/* Indirect call or jump IN at AT.  false: out of memory. */
static bool read_call(struct icf_vslots *s, const struct elfrw_insn *in, const uint8_t *code,
		      uint64_t at)
{
	const struct elfrw_judge *judge = s->v->claim.arch->judge;
	unsigned r = judge->goes_to(in);
	struct call *c = VEC_PUSH(&s->call);
	struct value x = { 0 };
	if (!c) {
		s->nomem = true;
		return false;
	}
	if (in->flags & ELFRW_INSN_MEM) {
		struct elfrw_judgement j;
		judge->look(in, code, &j);
		x = load(s, in, j.disp);
	} else if (r < REGS)
		x = s->now.reg[r];
	/* The instruction itself shows the last step. */
	x.sure |= x.loaded && plain(in) && !is_frame(s, in->base);
	*c = (struct call){ at + in->len, shown(x) };
	if (in->kind == ELFRW_INSN_CALL_IND)
		called(s);
	return true;
}

static void read_unit(struct icf_vslots *s, uint32_t index)
{
	const struct icf_v *v = s->v;
	const struct icf_vunit *u = &v->claim.unit.data[index];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	struct elfrw_insn in;
	bool falls = false;
	s->unit = index;
	s->call.len = s->saved.len = 0;
	read_labels(s, u);
	for (uint64_t at = u->old; at < u->end && !s->nomem; at += in.len) {
		if (e->old_data[at - e->old] == 0)
			at += icf_v_pad(v, at);
		const uint8_t *p = e->old_data + (at - e->old);
		if (!v->claim.arch->decode(p, u->end - at, at, &in))
			return;
		arrive(s, at, falls);
		if (!falls && in.kind == ELFRW_INSN_NOP && !count_labels(s, at))
			continue; /* fill */
		falls = in.kind != ELFRW_INSN_JMP_IND && in.kind != ELFRW_INSN_JMP &&
			in.kind != ELFRW_INSN_RET && in.kind != ELFRW_INSN_TRAP;
		switch (in.kind) {
		case ELFRW_INSN_CALL_IND:
		case ELFRW_INSN_JMP_IND:
			if (!read_call(s, &in, p, at))
				return;
			break;
		case ELFRW_INSN_CALL: called(s); break;
		case ELFRW_INSN_JCC:
			/* Some count in a register. */
			step(s, &in, p);
			/* fallthrough */
		case ELFRW_INSN_JMP:
			if (in.target > at && in.target < u->end)
				save(s, in.target);
			break;
		case ELFRW_INSN_RET:
		case ELFRW_INSN_TRAP: break;
		default: step(s, &in, p);
		}
	}
}

struct icf_vslots *icf_vslots_create(const struct icf_v *v)
{
	struct icf_vslots *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->v = v;
	s->unit = ICF_V_NONE;
	for (size_t i = 0; i < v->words.word.len; i++) {
		uint64_t va = v->words.word.data[i].target;
		uint32_t u = icf_v_find(&v->claim, va);
		if (u == ICF_V_NONE || v->claim.unit.data[u].old == va)
			continue;
		uint64_t *slot = VEC_PUSH(&s->target);
		if (!slot) {
			icf_vslots_destroy(s);
			return NULL;
		}
		*slot = va;
	}
	if (s->target.len)
		qsort(s->target.data, s->target.len, sizeof *s->target.data, elfrw_u64_order);
	return s;
}

void icf_vslots_destroy(struct icf_vslots *s)
{
	if (!s)
		return;
	VEC_FREE(&s->target);
	VEC_FREE(&s->label);
	VEC_FREE(&s->call);
	VEC_FREE(&s->saved);
	free(s);
}

struct elfrw_err *icf_vslots_get(struct icf_vslots *s, uint32_t unit, uint64_t site, bool *found,
				 uint64_t *slot)
{
	if (s->unit != unit)
		read_unit(s, unit);
	if (s->nomem)
		return &elfrw_err_nomem;
	size_t i = LOWER_BOUND(0, s->call.len, mid, s->call.data[mid].site < site);
	*found = i < s->call.len && s->call.data[i].site == site;
	*slot = *found ? s->call.data[i].slot : UINT64_MAX;
	return NULL;
}
