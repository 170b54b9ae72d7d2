/* a64_op.c: which named operation the text of an AArch64 instruction is, and its operands.  All
 * instructions that are not named here must have no named operation either. */
#include "tests/judges/a64_op.h"
#include "elfrw/arch/effect.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO = ELFRW_REG_NONE, ZERO = 32 };

/* What the text says; `op` is ELFRW_OP_OTHER if the operation has no name. */
struct want {
	unsigned op, width, from, shift;
	uint8_t dst, a, b;
	bool number, sign;
	int64_t imm, disp;
};

static bool is(const struct said *s, const char *name)
{
	return !strcmp(s->name, name);
}

static uint8_t reg(const struct said *s, unsigned i)
{
	return i < s->n && s->op[i].kind == SAID_REGISTER && s->op[i].reg != ZERO ? s->op[i].reg
										  : NO;
}

static void set(struct want *w, unsigned op, uint8_t dst, uint8_t a, uint8_t b)
{
	w->op = op;
	w->dst = dst;
	w->a = a;
	w->b = b;
}

/* The third operand of a sum, "lsl #3" or "sxtw #2": its bytes if it is extended. */
static bool read_extension(const struct said *s, unsigned width, struct want *w, bool *odd)
{
	static const char letters[] = "bhwx";
	char kind[8] = "lsl", size;
	unsigned n = 0;
	*odd = false;
	if (s->n < 4)
		return false;
	if (sscanf(s->op[3].text, "%7[a-z] #%u", kind, &n) < 1)
		*odd = true;
	w->shift = n;
	if (!strcmp(kind, "lsl"))
		return false;
	if (sscanf(kind, "%*1[us]xt%c", &size) != 1) {
		*odd = n != 0; /* lsr, asr */
		return false;
	}
	unsigned bytes = 1u << (strchr(letters, size) - letters);
	w->sign = *kind == 's';
	w->from = bytes < width ? bytes : 0;
	return true;
}

static void sum_number(const struct said *s, struct want *w)
{
	bool minus = s->name[1] == 'u', flags = s->name[3] == 's';
	w->number = true;
	w->imm = s->op[2].number << (s->n > 3 && strstr(s->op[3].text, "#12") ? 12 : 0);
	if (flags && reg(s, 0) == NO) {
		set(w, minus ? ELFRW_OP_CMP : ELFRW_OP_OTHER, NO, reg(s, 1), NO);
	} else if (!flags && !minus && !w->imm && (reg(s, 0) == 31 || reg(s, 1) == 31)) {
		w->number = false;
		set(w, ELFRW_OP_MOV, reg(s, 0), reg(s, 1), NO);
	} else {
		set(w, minus ? ELFRW_OP_SUB : ELFRW_OP_ADD, reg(s, 0), reg(s, 1), NO);
	}
}

static void sum(const struct said *s, struct want *w)
{
	bool minus = s->name[1] == 'u', flags = s->name[3] == 's', odd;
	uint8_t dst = reg(s, 0), a = reg(s, 1), b = reg(s, 2);
	if (s->op[2].kind == SAID_NUMBER) {
		sum_number(s, w);
		return;
	}
	bool extends = read_extension(s, w->width, w, &odd);
	bool plain = !odd && !w->shift && !w->from;
	if (flags && dst == NO) {
		w->number = b == NO && a != NO && minus && !extends;
		if (minus && ((plain && a != NO && b != NO) || w->number))
			set(w, ELFRW_OP_CMP, NO, a, b);
		return;
	}
	if (dst == NO || b == NO)
		return;
	if (minus && plain && a != NO)
		set(w, ELFRW_OP_SUB, dst, a, b);
	else if (minus && plain)
		set(w, ELFRW_OP_NEG, dst, b, NO);
	else if (!minus && !odd && a != NO)
		set(w, w->from ? ELFRW_OP_ADD_PART : ELFRW_OP_ADD, dst, a, b);
}

static void logic(const struct said *s, struct want *w)
{
	unsigned op = s->name[0] == 'a'   ? ELFRW_OP_AND
		      : s->name[0] == 'o' ? ELFRW_OP_OR
					  : ELFRW_OP_XOR;
	bool flags = is(s, "ands"), number = s->op[2].kind == SAID_NUMBER;
	uint8_t dst = reg(s, 0), a = reg(s, 1), b = reg(s, 2);
	w->number = number;
	w->imm = w->width == 8 ? s->op[2].number : (int32_t)s->op[2].number;
	if (s->n > 3 && !strstr(s->op[3].text, " #0"))
		return;
	if (dst == NO) {
		if (flags && a != NO && (number || b != NO))
			set(w, ELFRW_OP_TEST, NO, a, b);
	} else if (a == NO && op == ELFRW_OP_OR) {
		if (!number && b == NO) {
			w->number = true;
			w->imm = 0;
		}
		set(w, ELFRW_OP_MOV, dst, b, NO);
	} else if (a != NO && (number || b != NO)) {
		set(w, op, dst, a, b);
	}
}

static void move(const struct said *s, struct want *w)
{
	unsigned shift = 0;
	if (s->n > 2)
		sscanf(s->op[2].text, "lsl #%u", &shift);
	uint64_t n = (uint64_t)s->op[1].number << shift;
	n = is(s, "movn") ? ~n : n;
	w->imm = w->width == 8 ? (int64_t)n : (int32_t)(uint32_t)n;
	w->number = true;
	if (reg(s, 0) != NO)
		set(w, ELFRW_OP_MOV, reg(s, 0), NO, NO);
}

static void bits(const struct said *s, struct want *w)
{
	int64_t r = s->op[2].number, n = s->op[3].number;
	uint8_t dst = reg(s, 0), a = reg(s, 1);
	bool sign = is(s, "sbfm");
	if (dst == NO || a == NO)
		return;
	if (r == 0 && (n == 7 || n == 15)) {
		set(w, sign ? ELFRW_OP_SIGN_EXTEND : ELFRW_OP_ZERO_EXTEND, dst, a, NO);
		w->from = (unsigned)(n + 1) / 8;
	} else if (r == 0 && n == 31) {
		w->width = sign ? w->width : 4;
		set(w, w->width == 4 ? ELFRW_OP_MOV : ELFRW_OP_SIGN_EXTEND, dst, a, NO);
		w->from = 4;
	} else if (n < r) {
		set(w, ELFRW_OP_SHL, dst, a, NO);
		w->number = true;
		w->imm = w->width * 8 - r;
	}
}

/* How many bytes ldrsb and the like access. */
static unsigned access_size(const struct said *s)
{
	const char *last = &s->name[strlen(s->name) - 1];
	return *last == 'b' ? 1 : *last == 'h' ? 2 : *last == 'w' ? 4 : s->op[0].wide ? 8 : 4;
}

/* ldr, str and those with an order: the names without their endings. */
static bool is_access(const struct said *s, bool *loads, bool *sign)
{
	static const char *const names[] = { "ldr",  "ldur",  "ldtr", "ldapr", "ldapur",
					     "ldar", "ldlar", "ldxr", "ldaxr", NULL };
	static const char *const stores[] = {
		"str", "stur", "sttr", "stlr", "stllr", "stlur", NULL
	};
	static const char *const ends[] = { "", "b", "h", "sb", "sh", "sw", NULL };
	for (unsigned k = 0; k < 2; k++)
		for (const char *const *n = k ? stores : names; *n; n++) {
			size_t len = strlen(*n);
			if (strncmp(s->name, *n, len))
				continue;
			for (unsigned e = 0; ends[e]; e++)
				if (!strcmp(s->name + len, ends[e])) {
					*loads = !k;
					*sign = e > 2;
					return true;
				}
		}
	return false;
}

static void one_access(const struct said *s, bool loads, bool sign, struct want *w)
{
	bool back = s->n > 2 || s->op[1].changes;
	unsigned size = access_size(s);
	uint8_t t = reg(s, 0);
	bool indexed = strchr(s->op[1].text, ',') && !strchr(s->op[1].text, '#');
	if (s->op[1].kind == SAID_MEMORY && s->n == 2 && !indexed &&
	    !strstr(s->op[1].text, "lsl") && !strstr(s->op[1].text, "xt"))
		w->disp = s->op[1].number;
	w->from = size;
	if (loads) {
		unsigned op = sign        ? ELFRW_OP_SIGN_EXTEND
			      : size >= 4 ? ELFRW_OP_LOAD
					  : ELFRW_OP_ZERO_EXTEND;
		set(w, back ? ELFRW_OP_LOAD_MORE : t == NO ? ELFRW_OP_OTHER : op, t, NO, NO);
	} else {
		w->number = t == NO;
		w->width = size;
		set(w, back ? ELFRW_OP_STORE_MORE : ELFRW_OP_STORE, NO, t, NO);
	}
}

static void access(const struct said *s, struct want *w)
{
	bool loads, sign;
	if (!is_access(s, &loads, &sign) || s->op[0].kind != SAID_REGISTER) {
		if ((is(s, "ldp") || is(s, "ldnp") || is(s, "ldpsw") || is(s, "ldxp")) &&
		    s->op[0].kind == SAID_REGISTER) {
			set(w, ELFRW_OP_LOAD_MORE, reg(s, 0), NO, reg(s, 1));
			w->from = is(s, "ldpsw") ? 4 : w->width;
			w->disp = s->n == 3 ? s->op[2].number : 0;
		} else if ((is(s, "stp") || is(s, "stnp")) && s->op[0].kind == SAID_REGISTER) {
			set(w, ELFRW_OP_STORE_MORE, NO, reg(s, 0), reg(s, 1));
			w->disp = s->n == 3 ? s->op[2].number : 0;
		}
		return;
	}
	one_access(s, loads, sign, w);
}

static void find(const struct said *s, struct want *w)
{
	bool general = s->n && s->op[0].kind == SAID_REGISTER;
	uint8_t d = reg(s, 0), a = reg(s, 1), b = reg(s, 2);
	*w = (struct want){ .op = ELFRW_OP_OTHER,
			    .width = general && !s->op[0].wide ? 4 : 8,
			    .dst = NO,
			    .a = NO,
			    .b = NO };
	if (!general)
		return;
	if (is(s, "adr") || is(s, "adrp"))
		set(w, d == NO ? ELFRW_OP_OTHER : ELFRW_OP_ADDRESS, d, NO, NO);
	else if (is(s, "add") || is(s, "adds") || is(s, "sub") || is(s, "subs"))
		sum(s, w);
	else if (is(s, "and") || is(s, "ands") || is(s, "orr") || is(s, "eor"))
		logic(s, w);
	else if (is(s, "movz") || is(s, "movn"))
		move(s, w);
	else if (is(s, "sbfm") || is(s, "ubfm"))
		bits(s, w);
	else if (is(s, "csel") && d != NO && a != NO && b != NO)
		set(w, ELFRW_OP_CHOOSE, d, a, b);
	else if (is(s, "madd") && reg(s, 3) == NO && d != NO && a != NO && b != NO)
		set(w, ELFRW_OP_MUL, d, a, b);
	else if (is(s, "lslv") && d != NO && a != NO && b != NO)
		set(w, ELFRW_OP_SHL, d, a, b);
	else
		access(s, w);
}

/* No operands are told. */
static bool is_unnamed(unsigned op)
{
	return op == ELFRW_OP_OTHER || op == ELFRW_OP_NONE || op == ELFRW_OP_SUM ||
	       op == ELFRW_OP_VECTOR || op == ELFRW_OP_CALL;
}

static bool is_more(unsigned op)
{
	return op == ELFRW_OP_LOAD_MORE || op == ELFRW_OP_STORE_MORE;
}

const char *op_differs(const struct said *s, const struct elfrw_insn *in,
		       const struct elfrw_effect *e)
{
	struct want w;
	find(s, &w);
	if (in->kind != ELFRW_INSN_OTHER)
		return is_unnamed(e->op) ? NULL : "op: of a jump";
	if (is_unnamed(e->op))
		return is_unnamed(w.op) ? NULL : "op: has a name";
	/* Atomic and exclusive accesses have no line above. */
	if (is_unnamed(w.op))
		return is_more(e->op) ? NULL : "op: has no name";
	if (w.op != e->op)
		return "op";
	if (w.dst != e->dst || w.a != e->a || w.b != e->b)
		return "op: operands";
	if (w.width != e->width)
		return "op: width";
	if (w.number != !!(e->flags & ELFRW_EFFECT_IMM) || (w.number && w.imm != e->imm))
		return "op: number";
	if (w.disp != e->disp)
		return "op: displacement";
	bool sums = e->op == ELFRW_OP_ADD || e->op == ELFRW_OP_ADD_PART,
	     part = e->op == ELFRW_OP_ADD_PART;
	if (sums && w.shift != e->shift)
		return "op: shift";
	if (part && w.sign != !!(e->flags & ELFRW_EFFECT_SIGN))
		return "op: sign";
	if ((part || e->op == ELFRW_OP_SIGN_EXTEND || e->op == ELFRW_OP_ZERO_EXTEND ||
	     e->op == ELFRW_OP_LOAD_MORE) &&
	    w.from != e->from)
		return "op: bytes";
	return NULL;
}
