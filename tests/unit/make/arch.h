/* arch.h: an architecture that does not exist, to drive what is meant for all of them.
 *
 * Every instruction is a word of four bytes whose top six bits say what it is.  It has what x86-64
 * lacks: fields that are packed, scaled, split in two runs of bits, and split between two
 * instructions; branches that reach less far than addresses go; a trap of four bytes; thunks of two
 * sizes.  Only tests know it: they link the program with --wrap=elfrw_arch_find. */
#ifndef TESTS_UNIT_MAKE_ARCH_H
#define TESTS_UNIT_MAKE_ARCH_H
#include "elfrw/arch/arch.h"

#define TOY_MACHINE 0xfe0d

enum toy_op {
	TOY_TRAP = 1,
	TOY_NOP,
	TOY_ADD, /* rd += a number: bits 5 to 25 */
	TOY_B,   /* branch and call: 26 bits, in words */
	TOY_BL,
	TOY_BC,   /* conditional branch: 14 bits from bit 5, in words */
	TOY_PAGE, /* rd = page of an address: bits 5 to 23, and the two lowest ones in 24 and 25 */
	TOY_LOW,  /* rd = rn + the address's place in its page: 12 bits from bit 10, scaled by 8 */
	TOY_LOAD, /* rd = word at an address: 19 bits from bit 5, in words */
	TOY_RET,
	TOY_JR, /* jump and call through rn */
	TOY_CR,
	TOY_PAD,   /* landing pad of indirect branches */
	TOY_SUM,   /* rd = rn + rm: bits 10 to 14 */
	TOY_FETCH, /* rd = 8 bytes at rn + 12 bits from bit 10, scaled by 8 */
	TOY_ENTRY, /* rd = 4 bytes at rn + 4 * rm, sign-extended */
	TOY_CMP,   /* rn is compared with 12 bits from bit 10 */
	/* The halves of a distance: rd = place + pages, rounded (20 bits from bit 5); rd = rn + the
	   rest, signed (12 bits from bit 10). */
	TOY_HIGH,
	TOY_REST,
	TOY_ADR,     /* rd = an address: 19 bits from bit 5, in words */
	TOY_BYTE,    /* rd = 1 byte at rn + rm, zero-extended */
	TOY_HALF,    /* rd = 2 bytes at rn + 2 * rm, sign-extended */
	TOY_SHIFTED, /* rd = rn + 4 * rm */
	TOY_LAST = TOY_SHIFTED,
};

enum {
	TOY_F_B = 1,
	TOY_F_BC,
	TOY_F_PAGE,
	TOY_F_LOW,
	TOY_F_LOAD,
	TOY_F_ABS64,
	TOY_F_HIGH,
	TOY_F_REST,
	TOY_FORMS
};

enum {
	TOY_R_NONE,
	TOY_R_ABS64,
	TOY_R_CALL,
	TOY_R_RELATIVE,
	TOY_R_LOW,
	TOY_R_PAGE,
	TOY_R_PREL32,
	TOY_R_FIELD
};

#define TOY_WORD(op, rd, rn) ((uint32_t)(op) << 26 | (uint32_t)(rn) << 5 | (uint32_t)(rd))

#include "tests/unit/make/arch_effect.h"

static const struct elfrw_form toy_forms[TOY_FORMS] = {
	[TOY_F_B] = { "branch26", 4, 26, 2, ELFRW_BASE_PLACE, 0, true, 1, { { 0, 0, 26 } } },
	[TOY_F_BC] = { "branch14", 4, 14, 2, ELFRW_BASE_PLACE, 0, true, 1, { { 5, 0, 14 } } },
	[TOY_F_PAGE] = { "page21",
			 4,
			 21,
			 0,
			 ELFRW_BASE_PAGE,
			 12,
			 true,
			 2,
			 { { 24, 0, 2 }, { 5, 2, 19 } } },
	[TOY_F_LOW] = { "low12", 4, 12, 3, ELFRW_BASE_IN_PAGE, 12, false, 1, { { 10, 0, 12 } } },
	[TOY_F_LOAD] = { "load19", 4, 19, 2, ELFRW_BASE_PLACE, 0, true, 1, { { 5, 0, 19 } } },
	[TOY_F_HIGH] = { "high20", 4, 20, 0, ELFRW_BASE_HIGH, 12, true, 1, { { 5, 0, 20 } } },
	[TOY_F_REST] = { "rest12", 4, 12, 0, ELFRW_BASE_REMAINDER, 12, true, 1, { { 10, 0, 12 } } },
	[TOY_F_ABS64] = { "abs64", 8, 64, 0, ELFRW_BASE_ZERO, 0, false, 0, { { 0 } } },
};

static inline uint8_t toy_form_of(unsigned op)
{
	return op == TOY_B || op == TOY_BL       ? TOY_F_B
	       : op == TOY_BC                    ? TOY_F_BC
	       : op == TOY_PAGE                  ? TOY_F_PAGE
	       : op == TOY_LOAD || op == TOY_ADR ? TOY_F_LOAD
	       : op == TOY_HIGH                  ? TOY_F_HIGH
						 : 0;
}

static unsigned toy_decode(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *in)
{
	static const uint8_t kind[64] = {
		[TOY_TRAP] = ELFRW_INSN_TRAP,  [TOY_NOP] = ELFRW_INSN_NOP,
		[TOY_B] = ELFRW_INSN_JMP,      [TOY_BL] = ELFRW_INSN_CALL,
		[TOY_BC] = ELFRW_INSN_JCC,     [TOY_RET] = ELFRW_INSN_RET,
		[TOY_JR] = ELFRW_INSN_JMP_IND, [TOY_CR] = ELFRW_INSN_CALL_IND,
	};
	if (avail < 4 || (va & 3))
		return 0;
	uint32_t word = elfrw_get32(code);
	unsigned op = word >> 26;
	if (op < TOY_TRAP || op > TOY_LAST)
		return 0;
	*in = (struct elfrw_insn){ .len = 4,
				   .kind = kind[op],
				   .opcode = (uint8_t)op,
				   .reg = word & 31,
				   .own_reg = ELFRW_REG_NONE,
				   .base = word >> 5 & 31,
				   .index = ELFRW_REG_NONE,
				   .scale = 1 };
	bool entry = op == TOY_ENTRY || op == TOY_BYTE || op == TOY_HALF;
	in->flags = op == TOY_PAD                                       ? ELFRW_INSN_ENDBR
		    : op == TOY_PAGE || op == TOY_HIGH || op == TOY_ADR ? ELFRW_INSN_LEA
		    : op == TOY_LOAD || op == TOY_FETCH || entry        ? ELFRW_INSN_MEM
									: 0;
	if (entry) {
		in->index = word >> 10 & 31;
		in->scale = op == TOY_BYTE ? 1 : op == TOY_HALF ? 2 : 4;
	}
	uint8_t form = toy_form_of(op);
	if (form) {
		in->pcrel_size = 4;
		in->base = ELFRW_REG_NONE;
		in->target = elfrw_form_read(&toy_forms[form], code, va);
	}
	return 4;
}

static uint8_t toy_pcrel_form(const struct elfrw_insn *in)
{
	return toy_form_of(in->opcode);
}

static uint8_t toy_low_form(const struct elfrw_insn *in, const uint8_t *code)
{
	(void)code;
	return in->opcode == TOY_LOW || in->opcode == TOY_FETCH ? TOY_F_LOW
	       : in->opcode == TOY_REST                         ? TOY_F_REST
								: 0;
}

static uint8_t toy_address_form(unsigned size, bool sign)
{
	return size == 8 && !sign ? TOY_F_ABS64 : 0;
}

static void toy_may_refer(const uint8_t *code, size_t avail, size_t n, uint8_t *ret)
{
	(void)code;
	(void)avail;
	memset(ret, 1, n);
}

static bool toy_may_call_indirectly(const uint8_t *code, size_t size)
{
	(void)code;
	return size != 0;
}

/* A branch; or, where that does not reach, register 16 takes the address. */
static struct elfrw_thunk toy_thunk(uint8_t *buf, uint64_t from, uint64_t to, bool endbr)
{
	uint8_t code[16] = { 0 }, *p = code;
	if (endbr) {
		elfrw_put32(p, TOY_WORD(TOY_PAD, 0, 0));
		p += 4;
	}
	uint8_t at = (uint8_t)(p - code);
	struct elfrw_thunk t = { .size = at + 4, .n_reloc = 1, .reloc = { { at, TOY_R_CALL, 0 } } };
	elfrw_put32(p, TOY_WORD(TOY_B, 0, 0));
	if (!elfrw_form_write(&toy_forms[TOY_F_B], p, from + at, to)) {
		elfrw_put32(p, TOY_WORD(TOY_PAGE, 16, 0));
		elfrw_put32(p + 4, TOY_WORD(TOY_LOW, 16, 16));
		elfrw_put32(p + 8, TOY_WORD(TOY_JR, 0, 16));
		if (!elfrw_form_write(&toy_forms[TOY_F_PAGE], p, from + at, to) ||
		    !elfrw_form_write(&toy_forms[TOY_F_LOW], p + 4, from + at, to))
			return (struct elfrw_thunk){ 0 };
		t = (struct elfrw_thunk){ .size = at + 12 };
	}
	if (buf)
		memcpy(buf, code, t.size);
	return t;
}

static unsigned toy_read_thunk(const uint8_t *code, size_t avail, uint64_t va,
			       struct elfrw_thunk_read *ret)
{
	struct elfrw_insn in;
	size_t at = 0;
	if (!toy_decode(code, avail, va, &in))
		return 0;
	*ret = (struct elfrw_thunk_read){ .endbr = (in.flags & ELFRW_INSN_ENDBR) != 0 };
	if (ret->endbr)
		ret->branch = (uint8_t)(at = 4);
	if (!toy_decode(code + at, avail - at, va + at, &in))
		return 0;
	ret->target = in.target;
	if (in.opcode == TOY_B)
		return (unsigned)at + 4;
	if (avail < at + 12 || in.opcode != TOY_PAGE || in.reg != 16 ||
	    elfrw_get32(code + at + 8) != TOY_WORD(TOY_JR, 0, 16) ||
	    (elfrw_get32(code + at + 4) & ~(0xfffu << 10)) != TOY_WORD(TOY_LOW, 16, 16))
		return 0;
	ret->target = elfrw_form_read(&toy_forms[TOY_F_LOW], code + at + 4, in.target);
	return (unsigned)at + 12;
}

static bool toy_read_stub(const uint8_t *code, size_t avail, uint64_t va, uint64_t *slot)
{
	(void)code;
	(void)avail;
	(void)va;
	(void)slot;
	return false;
}

static struct elfrw_reloc_desc toy_reloc(uint32_t type)
{
	static const struct elfrw_reloc_desc relocs[] = {
		[TOY_R_NONE] = { "TOY_NONE", ELFRW_RELOC_NONE, 0, false },
		[TOY_R_ABS64] = { "TOY_ABS64", ELFRW_RELOC_ABS, 8, false },
		[TOY_R_CALL] = { "TOY_CALL", ELFRW_RELOC_PCREL, 4, true, true, TOY_F_B },
		[TOY_R_PAGE] = { "TOY_PAGE", ELFRW_RELOC_PCREL, 4, true, false, TOY_F_PAGE },
		[TOY_R_PREL32] = { "TOY_PREL32", ELFRW_RELOC_PCREL, 4, true },
		[TOY_R_LOW] = { "TOY_LOW", ELFRW_RELOC_LOW, 4, false },
		/* The same as LOW, and a linker may relax it. */
		[TOY_R_FIELD] = { "TOY_FIELD", ELFRW_RELOC_LOW, 4, false, false, TOY_F_LOW },
		[TOY_R_RELATIVE] = { "TOY_RELATIVE", ELFRW_RELOC_RELATIVE, 8, false },
	};
	return type < sizeof relocs / sizeof *relocs
		       ? relocs[type]
		       : (struct elfrw_reloc_desc){ NULL, ELFRW_RELOC_HARD, 0, false };
}

static const uint8_t toy_entry_cfi[] = { 0x0c, 31, 0 }; /* DW_CFA_def_cfa: r31 + 0 */

static const struct elfrw_arch toy_arch = {
	.name = "toy",
	.machine = TOY_MACHINE,
	.address_size = 8,
	.decode = toy_decode,
	.form = toy_forms,
	.n_forms = TOY_FORMS,
	.pcrel_form = toy_pcrel_form,
	.low_form = toy_low_form,
	.address_form = toy_address_form,
	.function_align = 16,
	.fill = { 0x5a, 0xa5, 0x5a, TOY_TRAP << 2 },
	.fill_size = 4,
	.call_size = 4,
	.page_min = 4096,
	.page_max = 65536,
	.may_call_indirectly = toy_may_call_indirectly,
	.may_refer = toy_may_refer,
	.thunk = toy_thunk,
	.read_thunk = toy_read_thunk,
	.read_stub = toy_read_stub,
	.reloc = toy_reloc,
	.dwarf_sp = 31,
	.dwarf_ra = 30,
	.dwarf_arg = { 0, 1 },
	.dwarf_registers = 33,
	.entry_cfi = toy_entry_cfi,
	.entry_cfi_size = sizeof toy_entry_cfi,
	.model = &toy_model,
	.judge = &toy_judge,
};
#endif
