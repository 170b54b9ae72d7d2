/* aarch64_memory.c: what AArch64 loads and stores do to general registers and memory.
 *
 * Arm Architecture Reference Manual, section C4.1.95.  An access that changes its base register, or
 * has two registers, is one of effect.h's *_MORE operations. */
#include "elfrw/arch/aarch64_effect.h"
#include "elfrw/arch/aarch64_decode.h"

#define NO ELFRW_REG_NONE

static uint8_t rt(uint32_t w)
{
	return elfrw_a64_or_zero(w & 31);
}

static uint8_t rt2(uint32_t w)
{
	return elfrw_a64_or_zero((uint8_t)elfrw_a64_bits(w, 10, 5));
}

static uint8_t rs(uint32_t w)
{
	return elfrw_a64_or_zero((uint8_t)elfrw_a64_bits(w, 16, 5));
}

static int64_t signed_field(uint32_t w, unsigned from, unsigned n)
{
	return (int32_t)(w << (32 - from - n)) >> (32 - n);
}

static void read(struct elfrw_effect *e, uint8_t r)
{
	e->reads |= elfrw_reg_bit(r);
}

/* DST, and perhaps MORE, are loaded, FROM bytes each. */
static void load(struct elfrw_effect *e, uint8_t dst, uint8_t more, unsigned from)
{
	e->op = ELFRW_OP_LOAD_MORE;
	e->flags |= ELFRW_EFFECT_LOADS;
	e->from = (uint8_t)from;
	elfrw_a64_result(e, dst);
	e->b = more;
	e->writes |= elfrw_reg_bit(more);
}

/* A, and perhaps MORE, go to memory. */
static void store(struct elfrw_effect *e, uint8_t a, uint8_t more)
{
	e->op = ELFRW_OP_STORE_MORE;
	e->flags |= ELFRW_EFFECT_STORES;
	e->a = a;
	e->b = more;
	read(e, a);
	read(e, more);
}

static void vector(struct elfrw_effect *e, bool loads)
{
	e->op = ELFRW_OP_VECTOR;
	e->width = 8;
	e->flags |= loads ? ELFRW_EFFECT_LOADS : ELFRW_EFFECT_STORES;
}

/* A prefetch reads no memory that the program could see. */
static void prefetch(struct elfrw_effect *e)
{
	e->op = ELFRW_OP_NONE;
}

/* The base register gets the address. */
static void write_back(const struct elfrw_insn *in, struct elfrw_effect *e)
{
	e->writes |= elfrw_reg_bit(in->base);
}

/* One general register, of 2^SIZE bytes, with a plain operand; KIND: bits 22 and 23. */
static void plain(uint32_t w, unsigned size, unsigned kind, struct elfrw_effect *e)
{
	uint8_t t = rt(w);
	e->width = kind == 2 || size == 3 ? 8 : 4;
	if (kind == 0) {
		e->width = (uint8_t)(1u << size);
		e->op = ELFRW_OP_STORE;
		e->flags |= ELFRW_EFFECT_STORES | (t == NO ? ELFRW_EFFECT_IMM : 0);
		e->a = t;
		read(e, t);
		return;
	}
	e->flags |= ELFRW_EFFECT_LOADS;
	elfrw_a64_result(e, t);
	e->from = (uint8_t)(1u << size);
	if (t == NO)
		e->op = ELFRW_OP_OTHER;
	else if (kind >= 2)
		e->op = ELFRW_OP_SIGN_EXTEND;
	else if (size >= 2)
		e->op = ELFRW_OP_LOAD;
	else
		e->op = ELFRW_OP_ZERO_EXTEND;
}

static void literal(uint32_t w, struct elfrw_effect *e)
{
	unsigned opc = w >> 30;
	if (w & 1u << 26)
		vector(e, true);
	else if (opc == 3)
		prefetch(e);
	else
		plain(w, opc == 1 ? 3 : 2, opc == 2 ? 2 : 1, e);
}

/* Reads, changes and writes a word at once. */
static void atomic(uint32_t w, struct elfrw_effect *e)
{
	unsigned op = elfrw_a64_bits(w, 12, 4), size = w >> 30;
	e->width = size == 3 ? 8 : 4;
	if (w & 1u << 26) { /* of floating point */
		vector(e, true);
		e->flags |= ELFRW_EFFECT_STORES;
		return;
	}
	if (op == 12) { /* ldapr */
		plain(w, size, 1, e);
		return;
	}
	if (size == 3 && (op == 9 || op == 10 || op == 11 || op == 13)) { /* 64 bytes */
		uint32_t eight = (uint32_t)(UINT64_C(0xff) << (w & 31)) & 0x7fffffff;
		e->op = ELFRW_OP_OTHER;
		e->flags |= op == 13 ? ELFRW_EFFECT_LOADS : ELFRW_EFFECT_STORES;
		if (op == 13)
			e->writes = eight;
		else
			e->reads |= eight;
		if (op == 10 || op == 11)
			e->writes |= elfrw_reg_bit(rs(w));
		return;
	}
	if (size < 2 && op > 8) { /* rcwclr: a word of a page table */
		e->width = 8;
		e->flags |= ELFRW_EFFECT_FLAGS;
		size = 3;
	}
	load(e, rt(w), NO, 1u << size);
	e->flags |= ELFRW_EFFECT_STORES;
	read(e, rs(w));
}

static void one(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	unsigned size = w >> 30, kind = elfrw_a64_bits(w, 22, 2), how = elfrw_a64_bits(w, 10, 2);
	bool whole = w & 1u << 24, back = !whole && !(w & 1u << 21) && (how & 1);
	if (!whole && (w & 1u << 21) && how == 0) {
		atomic(w, e);
		return;
	}
	if (!whole && (w & 1u << 21) && (how & 1)) { /* ldraa */
		load(e, rt(w), NO, 8);
		e->disp = (signed_field(w, 22, 1) * 512 + (int64_t)elfrw_a64_bits(w, 12, 9)) * 8;
		if (how == 3)
			write_back(in, e);
		return;
	}
	if (w & 1u << 26) {
		vector(e, kind & 1);
		size = kind > 1 ? 4 : size;
	} else if (size == 3 && kind == 2) {
		prefetch(e);
	} else {
		plain(w, size, kind, e);
	}
	if (whole)
		e->disp = (int64_t)elfrw_a64_bits(w, 10, 12) << size;
	else if (!(w & 1u << 21) && how != 1) /* else at the base itself */
		e->disp = signed_field(w, 12, 9);
	if (!back)
		return;
	write_back(in, e);
	if (e->op != ELFRW_OP_VECTOR)
		e->op = kind == 0 ? ELFRW_OP_STORE_MORE : ELFRW_OP_LOAD_MORE;
}

static void pair(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	unsigned opc = w >> 30, how = elfrw_a64_bits(w, 23, 2), size = opc == 2 ? 8 : 4;
	bool loads = w & 1u << 22, tag = opc == 1 && !loads && !(w & 1u << 26);
	e->width = opc == 0 ? 4 : 8;
	if (w & 1u << 26) {
		vector(e, loads);
		size = 4u << opc;
	} else if (loads) {
		load(e, rt(w), rt2(w), size);
	} else {
		store(e, rt(w), rt2(w));
	}
	if (how != 1)
		e->disp = signed_field(w, 15, 7) * (tag ? 16 : (int64_t)size);
	if (how & 1)
		write_back(in, e);
}

/* cas, casp */
static void swap(uint32_t w, bool two, struct elfrw_effect *e)
{
	uint8_t s = rs(w), t = rt(w);
	unsigned size = two ? 2 + (w >> 30 & 1) : w >> 30;
	e->width = size == 3 ? 8 : 4;
	read(e, s);
	read(e, t);
	load(e, s, NO, 1u << size);
	e->flags |= ELFRW_EFFECT_STORES;
	if (!two)
		return;
	e->b = elfrw_a64_or_zero((uint8_t)(elfrw_a64_bits(w, 16, 5) | 1));
	e->reads |= elfrw_reg_bit(e->b) | elfrw_reg_bit(elfrw_a64_or_zero((w & 31) | 1));
	e->writes |= elfrw_reg_bit(e->b);
}

/* ldxr, stxr, ldar, stlr, cas */
static void exclusive(uint32_t w, struct elfrw_effect *e)
{
	bool order = w & 1u << 23, loads = w & 1u << 22, more = w & 1u << 21;
	unsigned size = w >> 30;
	if (more && (order || size < 2)) {
		swap(w, !order, e);
	} else if (order || (loads && !more)) {
		plain(w, size, loads, e);
	} else if (loads) {
		e->width = size == 3 ? 8 : 4;
		load(e, rt(w), rt2(w), 1u << size);
	} else { /* did it succeed? */
		e->width = size == 3 ? 8 : 4;
		store(e, rt(w), more ? rt2(w) : NO);
		e->writes = elfrw_reg_bit(rs(w));
	}
}

/* stg and its kin; the tag may be that of the stack pointer. */
static void tag(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	unsigned opc = elfrw_a64_bits(w, 22, 2), how = elfrw_a64_bits(w, 10, 2);
	e->disp = how == 1 ? 0 : signed_field(w, 12, 9) * 16;
	if (how == 0 && (opc & 1)) { /* ldg changes a part; ldgm */
		load(e, rt(w), NO, 8);
		e->op = ELFRW_OP_SUM;
		e->b = NO;
		read(e, opc == 1 ? rt(w) : NO);
		return;
	}
	store(e, how == 0 ? rt(w) : w & 31, NO);
	if (how & 1)
		write_back(in, e);
}

/* cpyf, set: memory is copied or filled. */
static void copy(uint32_t w, struct elfrw_effect *e)
{
	bool fills = (w & 1u << 23) && (w & 1u << 22);
	uint8_t d = rt(w), n = elfrw_a64_or_zero((w >> 5) & 31), s = rs(w);
	e->op = ELFRW_OP_OTHER;
	e->flags |= ELFRW_EFFECT_STORES | (fills ? 0 : ELFRW_EFFECT_LOADS);
	e->reads |= elfrw_reg_bit(d) | elfrw_reg_bit(n) | elfrw_reg_bit(s);
	e->writes = elfrw_reg_bit(d) | elfrw_reg_bit(n) | (fills ? 0 : elfrw_reg_bit(s));
}

/* With an order: ldiapp and stilp; ldapr and stlr that change the base. */
static void ordered_more(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	bool loads = w & 1u << 22, two = !(w & 1u << 23);
	unsigned size = 1u << (w >> 30);
	e->width = (uint8_t)size;
	if (loads)
		load(e, rt(w), two ? rs(w) : NO, size);
	else
		store(e, rt(w), two ? rs(w) : NO);
	if (!two || !(w & 1u << 12))
		write_back(in, e);
	e->disp = loads || (two && (w & 1u << 12)) ? 0 : -(int64_t)(two ? 2 * size : size);
}

/* What decode.c's ordered() accepts. */
static void ordered(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	unsigned size = w >> 30, how = elfrw_a64_bits(w, 10, 2);
	if (how == 1 && !(w & 1u << 21)) {
		copy(w, e);
	} else if (w & 1u << 26) {
		vector(e, w & 1u << 22);
		e->disp = signed_field(w, 12, 9);
	} else if ((w & 1u << 21) && size < 2 && how > 1) { /* rcwcas */
		swap(w, how == 3, e);
		e->width = e->from = 8;
		e->flags |= ELFRW_EFFECT_FLAGS;
	} else if ((w & 1u << 21) && size < 2) { /* two words at once; rcwclrp */
		e->width = 8;
		e->flags |= elfrw_a64_bits(w, 12, 4) > 8 ? ELFRW_EFFECT_FLAGS : 0;
		load(e, rt(w), rs(w), 8);
		e->flags |= ELFRW_EFFECT_STORES;
		read(e, rt(w));
		read(e, rs(w));
	} else if (w & 1u << 21) {
		e->width = 8;
		tag(in, w, e);
	} else if (how == 0) { /* ldapur, stlur */
		plain(w, size, elfrw_a64_bits(w, 22, 2), e);
		e->disp = signed_field(w, 12, 9);
	} else if (how == 2) {
		ordered_more(in, w, e);
	} else { /* gcsstr */
		e->width = 8;
		store(e, rt(w), NO);
	}
}

/* ld1 to ld4, st1 to st4 */
static void structures(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	vector(e, w & 1u << 22);
	if (!(w & 1u << 23))
		return;
	read(e, rs(w));
	write_back(in, e);
}

void elfrw_a64_memory(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	e->reads |= elfrw_reg_bit(in->base) | elfrw_reg_bit(in->index);
	if (in->opcode == ELFRW_A64_LITERAL) {
		literal(w, e);
		return;
	}
	switch (elfrw_a64_bits(w, 28, 2)) {
	case 0:
		if (w & 1u << 26)
			structures(in, w, e);
		else
			exclusive(w, e);
		break;
	case 1: ordered(in, w, e); break;
	case 2: pair(in, w, e); break;
	default: one(in, w, e); break;
	}
}
