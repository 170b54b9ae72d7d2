/* aarch64.c: the AArch64 table: relocations, forms, thunk, entries of procedure linkage tables,
 * unwind rule at entry.
 *
 * Sources: ELF for the Arm 64-bit Architecture (2023Q3), section 5.7, relocation types, and 5.5,
 * mapping symbols; DWARF for the Arm 64-bit Architecture, register numbers; Procedure Call Standard
 * for the Arm 64-bit Architecture; Arm Architecture Reference Manual, section C4, encodings. */
#include <elf.h>

#include "elfrw/arch/aarch64.h"
#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/arch/effect.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/rbuf.h"
#include <string.h>

/* --- forms --- */

#define PC_FORM(text, n_bits, scale, bit)                                  \
	{                                                                  \
		.name = text, .bytes = 4, .width = n_bits, .shift = scale, \
		.base = ELFRW_BASE_PLACE, .sign = true, .n_run = 1,        \
		.run = { { bit, 0, n_bits } }                              \
	}
#define LOW_FORM(text, scale)                                                                      \
	{                                                                                          \
		.name = text, .bytes = 4, .width = 12, .shift = scale, .base = ELFRW_BASE_IN_PAGE, \
		.page = 12, .n_run = 1,                                                            \
		.run = { { 10, 0, 12 } }                                                           \
	}

static const struct elfrw_form forms[] = {
	[ELFRW_A64_BRANCH26] = PC_FORM("branch26", 26, 2, 0),
	[ELFRW_A64_BRANCH19] = PC_FORM("branch19", 19, 2, 5),
	[ELFRW_A64_BRANCH14] = PC_FORM("branch14", 14, 2, 5),
	[ELFRW_A64_BRANCH9] = PC_FORM("branch9", 9, 2, 5),
	[ELFRW_A64_ADR21] = { .name = "adr21",
			      .bytes = 4,
			      .width = 21,
			      .base = ELFRW_BASE_PLACE,
			      .sign = true,
			      .n_run = 2,
			      .run = { { 29, 0, 2 }, { 5, 2, 19 } } },
	[ELFRW_A64_PAGE21] = { .name = "page21",
			       .bytes = 4,
			       .width = 21,
			       .base = ELFRW_BASE_PAGE,
			       .page = 12,
			       .sign = true,
			       .n_run = 2,
			       .run = { { 29, 0, 2 }, { 5, 2, 19 } } },
	[ELFRW_A64_LOW12] = LOW_FORM("low12", 0),
	[ELFRW_A64_LOW12 + 1] = LOW_FORM("low12/2", 1),
	[ELFRW_A64_LOW12 + 2] = LOW_FORM("low12/4", 2),
	[ELFRW_A64_LOW12 + 3] = LOW_FORM("low12/8", 3),
	[ELFRW_A64_LOW12 + 4] = LOW_FORM("low12/16", 4),
	/* A quarter of an address in a MOVZ, MOVK or MOVN: like a low half, but never written. */
	[ELFRW_A64_PART16] = { .name = "part16",
			       .bytes = 4,
			       .width = 16,
			       .base = ELFRW_BASE_IN_PAGE,
			       .page = 16,
			       .n_run = 1,
			       .run = { { 5, 0, 16 } } },
	[ELFRW_A64_ABS64] = { .name = "abs64", .bytes = 8, .width = 64 },
};

static uint8_t pcrel_form(const struct elfrw_insn *in)
{
	switch (in->opcode) {
	case ELFRW_A64_B: return ELFRW_A64_BRANCH26;
	case ELFRW_A64_TBZ: return ELFRW_A64_BRANCH14;
	case ELFRW_A64_CB: return ELFRW_A64_BRANCH9;
	case ELFRW_A64_ADR: return ELFRW_A64_ADR21;
	case ELFRW_A64_ADRP: return ELFRW_A64_PAGE21;
	default: return ELFRW_A64_BRANCH19;
	}
}

/* ADD (immediate, 64-bit, not shifted); loads and stores with an unsigned offset. */
static uint8_t low_form(const struct elfrw_insn *in, const uint8_t *code)
{
	uint32_t w = elfrw_get32(code);
	unsigned size = w >> 30, scale = 0, rt = w & 31, rn = w >> 5 & 31;
	(void)in;
	if ((w & 0xffc00000) == 0x91000000)
		return ELFRW_A64_LOW12;
	if ((w & 0x3b000000) != 0x39000000)
		return 0;
	bool vector = w & 0x04000000, load = w & 0x00c00000;
	scale = vector && (w & 0x00800000) ? 4 : size;
	/* What is stored is the half itself. */
	if (!vector && !load && rt == rn)
		return 0;
	/* Farther than the page: an offset from a page's start (R_AARCH64_LD64_GOTPAGE_LO15). */
	if ((w >> 10 & 0xfff) >> (12 - scale))
		return 0;
	return (uint8_t)(ELFRW_A64_LOW12 + scale);
}

/* MOVZ, MOVN, MOVK. */
static uint8_t constant(const uint8_t *code, uint64_t value[32])
{
	uint32_t w = elfrw_get32(code);
	unsigned op = w >> 29 & 3, shift = (w >> 21 & 3) * 16, rd = w & 31;
	uint64_t part = (uint64_t)(w >> 5 & 0xffff) << shift, mask = (uint64_t)0xffff << shift;
	if ((w & 0x1f800000) != 0x12800000 || op == 1)
		return ELFRW_REG_NONE;
	value[rd] = op == 2 ? part : op == 0 ? ~part : (value[rd] & ~mask) | part;
	if (!(w >> 31))
		value[rd] &= UINT32_MAX;
	return (uint8_t)rd;
}

static uint8_t address_form(unsigned size, bool sign)
{
	return size == 8 && !sign ? ELFRW_A64_ABS64 : 0;
}

/* --- relocations --- */

#define R(type, k, bytes, is_signed) \
	[R_AARCH64_##type] = { "R_AARCH64_" #type, ELFRW_RELOC_##k, bytes, is_signed }
#define CODE(type, k, f) \
	[R_AARCH64_##type] = { "R_AARCH64_" #type, ELFRW_RELOC_##k, 4, true, .form = f }
#define CALL(type)                                                                   \
	[R_AARCH64_##type] = { "R_AARCH64_" #type, ELFRW_RELOC_PCREL, 4, true, true, \
			       ELFRW_A64_BRANCH26 }
/* Thread-local storage: the linker relaxes these sequences, and the instructions tell into what.
 * What they name is the GOT, or no address at all. */
#define TLS(type) CODE(type, TLS, 0)

/* Not in every elf.h. */
#define R_AARCH64_PLT32      314
#define R_AARCH64_GOTPCREL32 315

/* HARD are the forms that count from the GOT's address, or whose parts are numbers of 16 bits that
 * count from the instruction. */
static const struct elfrw_reloc_desc relocs[] = {
	R(NONE, NONE, 0, false),
	[256] = { "R_AARCH64_NONE", ELFRW_RELOC_NONE, 0, false }, /* withdrawn */
	R(ABS64, ABS, 8, false),
	R(ABS32, ABS, 4, false),
	R(ABS16, ABS, 2, false),
	R(PREL64, PCREL, 8, true),
	R(PREL32, PCREL, 4, true),
	R(PREL16, PCREL, 2, true),
	CODE(MOVW_UABS_G0, PART, ELFRW_A64_PART16),
	CODE(MOVW_UABS_G0_NC, PART, ELFRW_A64_PART16),
	CODE(MOVW_UABS_G1, PART, ELFRW_A64_PART16),
	CODE(MOVW_UABS_G1_NC, PART, ELFRW_A64_PART16),
	CODE(MOVW_UABS_G2, PART, ELFRW_A64_PART16),
	CODE(MOVW_UABS_G2_NC, PART, ELFRW_A64_PART16),
	CODE(MOVW_UABS_G3, PART, ELFRW_A64_PART16),
	CODE(MOVW_SABS_G0, PART, ELFRW_A64_PART16),
	CODE(MOVW_SABS_G1, PART, ELFRW_A64_PART16),
	CODE(MOVW_SABS_G2, PART, ELFRW_A64_PART16),
	CODE(LD_PREL_LO19, PCREL, ELFRW_A64_BRANCH19),
	CODE(ADR_PREL_LO21, PCREL, ELFRW_A64_ADR21),
	CODE(ADR_PREL_PG_HI21, PCREL, ELFRW_A64_PAGE21),
	CODE(ADR_PREL_PG_HI21_NC, PCREL, ELFRW_A64_PAGE21),
	CODE(ADD_ABS_LO12_NC, LOW, ELFRW_A64_LOW12),
	CODE(LDST8_ABS_LO12_NC, LOW, ELFRW_A64_LOW12),
	CODE(TSTBR14, PCREL, ELFRW_A64_BRANCH14),
	CODE(CONDBR19, PCREL, ELFRW_A64_BRANCH19),
	CALL(JUMP26),
	CALL(CALL26),
	CODE(LDST16_ABS_LO12_NC, LOW, ELFRW_A64_LOW12 + 1),
	CODE(LDST32_ABS_LO12_NC, LOW, ELFRW_A64_LOW12 + 2),
	CODE(LDST64_ABS_LO12_NC, LOW, ELFRW_A64_LOW12 + 3),
	CODE(MOVW_PREL_G0, HARD, 0),
	CODE(MOVW_PREL_G0_NC, HARD, 0),
	CODE(MOVW_PREL_G1, HARD, 0),
	CODE(MOVW_PREL_G1_NC, HARD, 0),
	CODE(MOVW_PREL_G2, HARD, 0),
	CODE(MOVW_PREL_G2_NC, HARD, 0),
	CODE(MOVW_PREL_G3, HARD, 0),
	CODE(LDST128_ABS_LO12_NC, LOW, ELFRW_A64_LOW12 + 4),
	CODE(MOVW_GOTOFF_G0, HARD, 0),
	CODE(MOVW_GOTOFF_G0_NC, HARD, 0),
	CODE(MOVW_GOTOFF_G1, HARD, 0),
	CODE(MOVW_GOTOFF_G1_NC, HARD, 0),
	CODE(MOVW_GOTOFF_G2, HARD, 0),
	CODE(MOVW_GOTOFF_G2_NC, HARD, 0),
	CODE(MOVW_GOTOFF_G3, HARD, 0),
	R(GOTREL64, GOTREL, 8, true),
	R(GOTREL32, GOTREL, 4, true),
	CODE(GOT_LD_PREL19, GOTPCREL, ELFRW_A64_BRANCH19),
	CODE(LD64_GOTOFF_LO15, HARD, 0),
	CODE(ADR_GOT_PAGE, GOTPCREL, ELFRW_A64_PAGE21),
	CODE(LD64_GOT_LO12_NC, GOTPCREL, ELFRW_A64_LOW12 + 3),
	CODE(LD64_GOTPAGE_LO15, GOTPCREL, 0),
	[R_AARCH64_PLT32] = { "R_AARCH64_PLT32", ELFRW_RELOC_PCREL, 4, true, .call = true },
	R(GOTPCREL32, GOTPCREL, 4, true),
	TLS(TLSGD_ADR_PREL21),
	TLS(TLSGD_ADR_PAGE21),
	TLS(TLSGD_ADD_LO12_NC),
	TLS(TLSGD_MOVW_G1),
	TLS(TLSGD_MOVW_G0_NC),
	TLS(TLSLD_ADR_PREL21),
	TLS(TLSLD_ADR_PAGE21),
	TLS(TLSLD_ADD_LO12_NC),
	TLS(TLSLD_MOVW_G1),
	TLS(TLSLD_MOVW_G0_NC),
	TLS(TLSLD_LD_PREL19),
	TLS(TLSLD_MOVW_DTPREL_G2),
	TLS(TLSLD_MOVW_DTPREL_G1),
	TLS(TLSLD_MOVW_DTPREL_G1_NC),
	TLS(TLSLD_MOVW_DTPREL_G0),
	TLS(TLSLD_MOVW_DTPREL_G0_NC),
	TLS(TLSLD_ADD_DTPREL_HI12),
	TLS(TLSLD_ADD_DTPREL_LO12),
	TLS(TLSLD_ADD_DTPREL_LO12_NC),
	TLS(TLSLD_LDST8_DTPREL_LO12),
	TLS(TLSLD_LDST8_DTPREL_LO12_NC),
	TLS(TLSLD_LDST16_DTPREL_LO12),
	TLS(TLSLD_LDST16_DTPREL_LO12_NC),
	TLS(TLSLD_LDST32_DTPREL_LO12),
	TLS(TLSLD_LDST32_DTPREL_LO12_NC),
	TLS(TLSLD_LDST64_DTPREL_LO12),
	TLS(TLSLD_LDST64_DTPREL_LO12_NC),
	TLS(TLSIE_MOVW_GOTTPREL_G1),
	TLS(TLSIE_MOVW_GOTTPREL_G0_NC),
	TLS(TLSIE_ADR_GOTTPREL_PAGE21),
	TLS(TLSIE_LD64_GOTTPREL_LO12_NC),
	TLS(TLSIE_LD_GOTTPREL_PREL19),
	TLS(TLSLE_MOVW_TPREL_G2),
	TLS(TLSLE_MOVW_TPREL_G1),
	TLS(TLSLE_MOVW_TPREL_G1_NC),
	TLS(TLSLE_MOVW_TPREL_G0),
	TLS(TLSLE_MOVW_TPREL_G0_NC),
	TLS(TLSLE_ADD_TPREL_HI12),
	TLS(TLSLE_ADD_TPREL_LO12),
	TLS(TLSLE_ADD_TPREL_LO12_NC),
	TLS(TLSLE_LDST8_TPREL_LO12),
	TLS(TLSLE_LDST8_TPREL_LO12_NC),
	TLS(TLSLE_LDST16_TPREL_LO12),
	TLS(TLSLE_LDST16_TPREL_LO12_NC),
	TLS(TLSLE_LDST32_TPREL_LO12),
	TLS(TLSLE_LDST32_TPREL_LO12_NC),
	TLS(TLSLE_LDST64_TPREL_LO12),
	TLS(TLSLE_LDST64_TPREL_LO12_NC),
	TLS(TLSDESC_LD_PREL19),
	TLS(TLSDESC_ADR_PREL21),
	TLS(TLSDESC_ADR_PAGE21),
	TLS(TLSDESC_LD64_LO12),
	TLS(TLSDESC_ADD_LO12),
	TLS(TLSDESC_OFF_G1),
	TLS(TLSDESC_OFF_G0_NC),
	TLS(TLSDESC_LDR),
	TLS(TLSDESC_ADD),
	TLS(TLSDESC_CALL),
	TLS(TLSLE_LDST128_TPREL_LO12),
	TLS(TLSLE_LDST128_TPREL_LO12_NC),
	TLS(TLSLD_LDST128_DTPREL_LO12),
	TLS(TLSLD_LDST128_DTPREL_LO12_NC),
	R(COPY, NONE, 0, false),
	R(GLOB_DAT, SYMBOLIC, 8, false),
	R(JUMP_SLOT, SYMBOLIC, 8, false),
	R(RELATIVE, RELATIVE, 8, false),
	R(TLS_DTPMOD, TLS, 8, false),
	R(TLS_DTPREL, TLS, 8, true),
	R(TLS_TPREL, TLS, 8, true),
	R(TLSDESC, TLS, 16, false),
	R(IRELATIVE, IRELATIVE, 8, false),
};

static struct elfrw_reloc_desc reloc(uint32_t type)
{
	if (type < sizeof relocs / sizeof *relocs && relocs[type].name)
		return relocs[type];
	return (struct elfrw_reloc_desc){ NULL, ELFRW_RELOC_HARD, 0, false };
}

/* --- thunks and linkage --- */

enum { WORD = 4, STUB_INSNS = 8 };

#define BTI_C    UINT32_C(0xd503245f)
#define BRANCH_0 UINT32_C(0x14000000)

/* bti c (where asked for); b. */
static struct elfrw_thunk thunk(uint8_t *buf, uint64_t from, uint64_t to, bool endbr)
{
	uint8_t code[2 * WORD], at = endbr ? WORD : 0;
	elfrw_put32(code, BTI_C);
	elfrw_put32(code + at, BRANCH_0);
	if (!elfrw_form_write(&forms[ELFRW_A64_BRANCH26], code + at, from + at, to))
		return (struct elfrw_thunk){ 0 };
	if (buf)
		memcpy(buf, code, at + WORD);
	return (struct elfrw_thunk){ .size = at + WORD,
				     .n_reloc = 1,
				     .reloc = { { at, R_AARCH64_JUMP26, 0 } } };
}

static unsigned read_thunk(const uint8_t *code, size_t avail, uint64_t va,
			   struct elfrw_thunk_read *ret)
{
	if (avail < WORD || va % WORD)
		return 0;
	ret->endbr = elfrw_get32(code) == BTI_C;
	ret->branch = ret->endbr ? WORD : 0;
	if (avail - ret->branch < WORD ||
	    (elfrw_get32(code + ret->branch) & 0xfc000000) != BRANCH_0)
		return 0;
	ret->target =
		elfrw_form_read(&forms[ELFRW_A64_BRANCH26], code + ret->branch, va + ret->branch);
	return ret->branch + WORD;
}

/* A landing pad, no-ops; then adrp x16, slot; ldr x17, [x16, slot]; perhaps add x16, x16, slot and
 * autia1716; br x17 or braa x17, x16. */
static bool read_stub(const uint8_t *code, size_t avail, uint64_t va, uint64_t *slot)
{
	bool page = false, load = false;
	for (unsigned i = 0; i < STUB_INSNS && avail >= (i + 1) * WORD; i++) {
		const uint8_t *p = code + i * WORD;
		uint32_t w = elfrw_get32(p);
		if ((w & 0x9f00001f) == 0x90000010 && !page) {
			*slot = elfrw_form_read(&forms[ELFRW_A64_PAGE21], p, va + i * WORD);
			page = true;
		} else if ((w & 0xffc003ff) == 0xf9400211 && page && !load) {
			*slot = elfrw_form_read(&forms[ELFRW_A64_LOW12 + 3], p, *slot);
			load = true;
		} else if (w == 0xd61f0220 || w == 0xd71f0a30)
			return load;
		else if ((w & 0xfffff01f) != 0xd503201f && (w & 0xffc003ff) != 0x91000210)
			return false;
	}
	return false;
}

/* Arm ARM C4.1, "Load/store register (unsigned immediate)". */
static unsigned read_size(const uint8_t *code, size_t size, uint32_t off)
{
	if (off > size || size - off < 4)
		return 0;
	uint32_t w = elfrw_get32(code + off);
	if ((w & 0x3b000000) != 0x39000000)
		return 0;
	return (w & 0x04800000) == 0x04800000 ? 16 : 1U << (w >> 30);
}

/* Arm ARM C4.1, "Load register (literal)" and "Load/store register (unsigned immediate)". */
static bool reads(const uint8_t *code, unsigned *size, bool *number)
{
	uint32_t w = elfrw_get32(code);
	unsigned top = w >> 30, op = w >> 22 & 3;
	bool vector = w >> 26 & 1;
	*number = !vector;
	if ((w & 0x3b000000) == 0x18000000) {
		*size = vector ? 4u << top : top == 1 ? 8 : top == 3 ? 0 : 4;
		return !(vector && top == 3);
	}
	*size = vector && op == 3 ? 16 : 1u << top;
	if (!vector && top == 3 && op == 2)
		*size = 0;
	return (w & 0x3b000000) == 0x39000000 && (vector ? op & 1 : op != 0);
}

/* AArch64 ELF ABI, "Relocation optimization": LDR of a GOT slot becomes ADD, and ADRP with an ADD
 * behind it, both of one register, NOP and ADR. */
static struct elfrw_relaxed relax(uint8_t *code, size_t size, uint32_t off, bool slot)
{
	struct elfrw_relaxed ret = { .off = off, .changed = slot };
	if (off > size || size - off < WORD)
		return ret;
	uint32_t w = elfrw_get32(code + off), rd = w & 31;
	if (slot && (w & 0xffc00000) == 0xf9400000)
		elfrw_put32(code + off, 0x91000000 | (w & 0x3ff));
	if ((w & 0x9f000000) != 0x90000000 || size - off < 2 * WORD)
		return ret;
	uint32_t low = elfrw_get32(code + off + WORD);
	if ((low & 0x3ff) != (rd << 5 | rd) ||
	    ((low & 0xffc00000) != 0x91000000 && !(slot && (low & 0xffc00000) == 0xf9400000)))
		return ret;
	elfrw_put32(code + off, 0xd503201f);
	elfrw_put32(code + off + WORD, 0x10000000 | rd);
	ret.off += WORD;
	return ret;
}

/* Cortex-A53 erratum 843419: an ADRP in the last two words of a page; a load or store; perhaps one
 * more instruction; a load or store with an unsigned offset from the ADRP's register.  Of the
 * second and third instruction more are taken than the erratum names. */
static bool hazard(const uint8_t *code, size_t avail, uint64_t va)
{
	uint32_t w = elfrw_get32(code);
	if ((va & 0xfff) < 0xff8 || avail < 3 * WORD || (w & 0x9f000000) != 0x90000000 ||
	    (elfrw_get32(code + WORD) & 0x0a000000) != 0x08000000)
		return false;
	for (unsigned i = 2; i < 4 && avail >= (i + 1) * WORD; i++) {
		uint32_t use = elfrw_get32(code + i * WORD);
		if ((use & 0x3b000000) == 0x39000000 && (use >> 5 & 31) == (w & 31))
			return true;
	}
	return false;
}

#define NOP UINT32_C(0xd503201f)

/* nop; adr: adrp; add. */
static bool expand(uint8_t *code, uint64_t va, uint64_t to)
{
	uint8_t pair[2 * WORD];
	uint32_t adr = elfrw_get32(code + WORD), rd = adr & 31;
	if (elfrw_get32(code) != NOP || (adr & 0x9f000000) != 0x10000000 || rd == 31)
		return false;
	elfrw_put32(pair, 0x90000000 | rd);
	elfrw_put32(pair + WORD, 0x91000000 | rd << 5 | rd);
	if (!elfrw_form_write(&forms[ELFRW_A64_PAGE21], pair, va, to) ||
	    !elfrw_form_write(&forms[ELFRW_A64_LOW12], pair + WORD, to & ~UINT64_C(0xfff), to))
		return false;
	memcpy(code, pair, sizeof pair);
	return true;
}

/* BLR, BLRAA and the like. */
static bool may_call_indirectly(const uint8_t *code, size_t size)
{
	for (size_t i = 0; i + WORD <= size; i += WORD)
		if ((elfrw_get32(code + i) & 0xfefff000) == 0xd63f0000)
			return true;
	return false;
}

/* DW_CFA_def_cfa: sp + 0.  The return address is in its register. */
static const uint8_t entry_cfi[] = { 0x0c, 31, 0 };

static const char *const breakpad_register[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  [64] = "v0",
	"v1",  "v2",  "v3",  "v4",  "v5",  "v6",  "v7",  "v8",  "v9",  "v10", "v11",
	"v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
	"v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",
};

const struct elfrw_arch elfrw_arch_aarch64 = {
	.name = "AArch64",
	.machine = EM_AARCH64,
	.address_size = 8,
	.decode = elfrw_a64_decode,
	.form = forms,
	.n_forms = sizeof forms / sizeof *forms,
	.pcrel_form = pcrel_form,
	.low_form = low_form,
	.constant = constant,
	.reads = reads,
	.address_form = address_form,
	.needs_relocs = true,
	.function_align = 16,
	/* Arm ARM D1.3.1, "Exception vectors", VBAR_EL1. */
	.vectors_align = 2048,
	.vectors_step = 128,
	.max_padding = 11,
	.inner_align = 8,
	.start_align = 64,
	/* brk, with a number that no compiler uses. */
	.fill = { 0xe0, 0x39, 0x20, 0xd4 },
	.fill_size = 4,
	.call_size = 4,
	.page_min = 4096,
	.page_max = 65536,
	.hazard = hazard,
	.expand = expand,
	.may_call_indirectly = may_call_indirectly,
	.may_refer = elfrw_a64_may_refer,
	.thunk = thunk,
	.read_thunk = read_thunk,
	.read_stub = read_stub,
	.relax = relax,
	.read_size = read_size,
	.reloc = reloc,
	.dwarf_sp = 31,
	.dwarf_ra = 30,
	.dwarf_arg = { 0, 1 },
	.dwarf_registers = 96,
	.breakpad = "arm64",
	.breakpad_register = breakpad_register,
	.n_breakpad_registers = sizeof breakpad_register / sizeof *breakpad_register,
	.entry_cfi = entry_cfi,
	.entry_cfi_size = sizeof entry_cfi,
	.model = &elfrw_aarch64_model,
	.judge = &elfrw_aarch64_judge,
};
