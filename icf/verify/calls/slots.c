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
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/calls/calls.h"
#include <stdlib.h>
#include <string.h>

#define REGS      16
#define WORDS     32
#define MAX_SAVED 64
enum { RAX, RCX, RDX, RBX, RSP, RBP }; /* in encoding order */

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
	return reg == RSP || (reg == RBP && s->framed);
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

static int64_t field(const uint8_t *code, unsigned off, unsigned size)
{
	unsigned shift = 64 - 8 * size;
	return size ? (int64_t)(elfrw_get_le(code + off, size) << shift) >> shift : 0;
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

/* Instructions of the one-byte map; false: unknown here. */
static bool step_plain(struct icf_vslots *s, const struct elfrw_insn *in, const uint8_t *code)
{
	bool wide = in->flags & ELFRW_INSN_REX_W, mem = in->flags & ELFRW_INSN_MEM;
	int64_t disp = field(code, in->disp_off, in->disp_size),
		imm = field(code, in->imm_off, in->imm_size);
	unsigned op = in->opcode, digit = in->reg & 7;
	struct value x = { 0 };
	if (op >= 0x50 && op <= 0x57) {
		forget(s, RSP);
		return true;
	}
	if ((op >= 0x58 && op <= 0x5f) ||
	    (op >= 0xb8 && op <= 0xbf)) { /* with or without the bit for r8 to r15 */
		forget(s, op & 7);
		forget(s, (op & 7) + 8);
		if (op < 0x60)
			forget(s, RSP);
		return true;
	}
	switch (op) {
	case 0x8b:
		if (wide)
			x = mem ? load(s, in, disp) : in->rm < REGS ? s->now.reg[in->rm] : x;
		set(s, in->reg, x);
		return true;
	case 0x89:
		if (wide && in->reg < REGS)
			x = s->now.reg[in->reg];
		if (mem)
			store(s, in, disp, wide ? &x : NULL);
		else
			set(s, in->rm, x);
		return true;
	case 0x8d:
		if (wide && plain(in) && !is_frame(s, in->base)) {
			x = s->now.reg[in->base];
			x.add += disp;
		}
		set(s, in->reg, x);
		return true;
	case 0x81:
	case 0x83:
	case 0x05:
		if (op != 0x05 && digit == 7)
			return true;
		if (mem) {
			store(s, in, disp, NULL);
			return true;
		}
		unsigned reg = op == 0x05 ? RAX : in->rm;
		if (wide && reg < REGS && (op == 0x05 || digit == 0 || digit == 5) &&
		    !is_frame(s, reg)) {
			x = s->now.reg[reg];
			x.add += op != 0x05 && digit ? -imm : imm;
		}
		set(s, reg, x);
		return true;
	case 0x01:
	case 0x03:
	case 0x09:
	case 0x0b:
	case 0x21:
	case 0x23:
	case 0x29:
	case 0x2b:
	case 0x31:
	case 0x33:
		if (mem && !(op & 2))
			store(s, in, disp, NULL);
		forget(s, op & 2 ? in->reg : in->rm);
		return true;
	case 0x38:
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x3c:
	case 0x3d:
	case 0x84:
	case 0x85:
	case 0xa8:
	case 0xa9: /* cmp, test */ return true;
	case 0x80: return digit == 7;
	case 0xf6:
	case 0xf7: return digit < 2;
	case 0x88:
	case 0xc6:
	case 0xc7:
		if (!mem)
			return false;
		store(s, in, disp, NULL);
		return true;
	case 0x63:
	case 0x69:
	case 0x6b: forget(s, in->reg); return true;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
	case 0xff:
		if (op == 0xff && digit > 1)
			return false;
		if (mem)
			store(s, in, disp, NULL);
		else
			forget(s, in->rm);
		return true;
	case 0x98: forget(s, RAX); return true;
	case 0x99: forget(s, RDX); return true;
	}
	return false;
}

static void step(struct icf_vslots *s, const struct elfrw_insn *in, const uint8_t *code)
{
	unsigned op = in->opcode;
	if (in->kind == ELFRW_INSN_NOP || (in->flags & ELFRW_INSN_ENDBR))
		return;
	if (in->opcode_map == 0 && step_plain(s, in, code))
		return;
	/* movz, movs, imul, cmov */
	if (in->opcode_map == 1 && (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf ||
				    op == 0xaf || (op >= 0x40 && op <= 0x4f))) {
		forget(s, in->reg);
		return;
	}
	if (in->opcode_map == 1 && op >= 0x90 && op <= 0x9f &&
	    !(in->flags & ELFRW_INSN_MEM)) { /* set */
		forget(s, in->rm & 3);
		forget(s, in->rm);
		return;
	}
	/* Vector moves and arithmetic of vector registers. */
	bool vector = op == 0x10 || op == 0x11 || op == 0x28 || op == 0x29 ||
		      (op >= 0x54 && op <= 0x5f) || op == 0x7f || op == 0xd6 || op == 0xef;
	if (in->opcode_map == 1 && vector) {
		if (in->flags & ELFRW_INSN_MEM)
			store(s, in, field(code, in->disp_off, in->disp_size), NULL);
		return;
	}
	forget_all(s);
}

static void called(struct icf_vslots *s)
{
	static const bool kept[REGS] = {
		[RBX] = true, [RBP] = true, [12] = true, [13] = true, [14] = true, [15] = true
	};
	for (unsigned r = 0; r < REGS; r++)
		if (!kept[r])
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

/* Finds the labels of unit U, and whether it has a frame pointer. */
static void read_labels(struct icf_vslots *s, const struct icf_vunit *u)
{
	const struct icf_v *v = s->v;
	const struct icf_vexec *e = &v->exec.data[u->exec];
	struct elfrw_insn in;
	s->label.len = 0;
	s->framed = false;
	for (uint64_t at = u->old; at < u->end; at += in.len) {
		if (e->old_data[at - e->old] == 0)
			at += icf_v_pad(v, at);
		const uint8_t *p = e->old_data + (at - e->old);
		if (!v->arch->decode(p, u->end - at, at, &in))
			break;
		if ((in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC) &&
		    in.target - u->old < u->end - u->old)
			push(s, in.target);
		s->framed |= in.kind == ELFRW_INSN_OTHER && in.opcode_map == 0 &&
			     (in.flags & ELFRW_INSN_REX_W) &&
			     ((in.opcode == 0x89 && in.reg == RSP && in.rm == RBP) ||
			      (in.opcode == 0x8b && in.reg == RBP && in.rm == RSP));
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

static void read_unit(struct icf_vslots *s, uint32_t index)
{
	const struct icf_v *v = s->v;
	const struct icf_vunit *u = &v->unit.data[index];
	const struct icf_vexec *e = &v->exec.data[u->exec];
	struct elfrw_insn in;
	bool falls = false;
	s->unit = index;
	s->call.len = s->saved.len = 0;
	read_labels(s, u);
	for (uint64_t at = u->old; at < u->end && !s->nomem; at += in.len) {
		if (e->old_data[at - e->old] == 0)
			at += icf_v_pad(v, at);
		const uint8_t *p = e->old_data + (at - e->old);
		if (!v->arch->decode(p, u->end - at, at, &in))
			return;
		arrive(s, at, falls);
		if (!falls && in.kind == ELFRW_INSN_NOP && !count_labels(s, at))
			continue; /* fill */
		falls = in.kind != ELFRW_INSN_JMP_IND && in.kind != ELFRW_INSN_JMP &&
			in.kind != ELFRW_INSN_RET && in.kind != ELFRW_INSN_TRAP;
		switch (in.kind) {
		case ELFRW_INSN_CALL_IND:
		case ELFRW_INSN_JMP_IND: {
			struct call *c = VEC_PUSH(&s->call);
			if (!c) {
				s->nomem = true;
				return;
			}
			struct value x = { 0 };
			if (in.flags & ELFRW_INSN_MEM)
				x = load(s, &in, field(p, in.disp_off, in.disp_size));
			else if (in.rm < REGS)
				x = s->now.reg[in.rm];
			/* The instruction itself performs the last load. */
			x.sure |= x.loaded && plain(&in) && !is_frame(s, in.base);
			*c = (struct call){ at + in.len, shown(x) };
			if (in.kind == ELFRW_INSN_CALL_IND)
				called(s);
			break;
		}
		case ELFRW_INSN_CALL: called(s); break;
		case ELFRW_INSN_JCC:
			if ((in.opcode & 0xf0) == 0xe0) /* loop */
				forget(s, RCX);
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
	for (size_t i = 0; i < v->word.len; i++) {
		uint64_t va = v->word.data[i].target;
		uint32_t u = icf_v_find(v, va);
		if (u == ICF_V_NONE || v->unit.data[u].old == va)
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
