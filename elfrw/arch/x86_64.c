/* x86_64.c: the x86-64 table: relocations, thunk, unwind rule at entry.
 *
 * Sources: System V psABI for AMD64 1.0 (section 4.4, relocation types; section 3.6.2, DWARF
 * register numbers) and its "APX" additions for the CODE_4/5/6 types; DWARF 5 section 6.4.2.1 for
 * the CFI bytes. */
#include <elf.h>

#include "elfrw/arch/effect.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/arch/x86_64_decode.h"
#include <string.h>

#define R(type, k, bytes, is_signed) [type] = { #type, ELFRW_RELOC_##k, bytes, is_signed }

/* Not in every elf.h. */
#ifndef R_X86_64_CODE_4_GOTPCRELX
#define R_X86_64_CODE_4_GOTPCRELX       43
#define R_X86_64_CODE_4_GOTTPOFF        44
#define R_X86_64_CODE_4_GOTPC32_TLSDESC 45
#define R_X86_64_CODE_5_GOTPCRELX       46
#define R_X86_64_CODE_5_GOTTPOFF        47
#define R_X86_64_CODE_5_GOTPC32_TLSDESC 48
#define R_X86_64_CODE_6_GOTPCRELX       49
#define R_X86_64_CODE_6_GOTTPOFF        50
#define R_X86_64_CODE_6_GOTPC32_TLSDESC 51
#endif
#define R_X86_64_PC32_BND      39
#define R_X86_64_PLT32_BND     40
#define R_X86_64_GNU_VTINHERIT 250
#define R_X86_64_GNU_VTENTRY   251

/* HARD are the forms that count from the GOT's address or hold a slot's number in it: medium and
 * large model code. What they name cannot be read off the instruction that holds them. */
static const struct elfrw_reloc_desc relocs[] = {
	R(R_X86_64_NONE, NONE, 0, false),
	R(R_X86_64_64, ABS, 8, false),
	R(R_X86_64_PC32, PCREL, 4, true),
	R(R_X86_64_GOT32, HARD, 4, true),
	[R_X86_64_PLT32] = { "R_X86_64_PLT32", ELFRW_RELOC_PCREL, 4, true, .call = true },
	R(R_X86_64_COPY, NONE, 0, false),
	R(R_X86_64_GLOB_DAT, SYMBOLIC, 8, false),
	R(R_X86_64_JUMP_SLOT, SYMBOLIC, 8, false),
	R(R_X86_64_RELATIVE, RELATIVE, 8, false),
	R(R_X86_64_GOTPCREL, GOTPCREL, 4, true),
	R(R_X86_64_32, ABS, 4, false),
	R(R_X86_64_32S, ABS, 4, true),
	R(R_X86_64_16, ABS, 2, false),
	R(R_X86_64_PC16, PCREL, 2, true),
	R(R_X86_64_8, ABS, 1, true),
	R(R_X86_64_PC8, PCREL, 1, true),
	R(R_X86_64_DTPMOD64, TLS, 8, false),
	R(R_X86_64_DTPOFF64, TLS, 8, true),
	R(R_X86_64_TPOFF64, TLS, 8, true),
	R(R_X86_64_TLSGD, TLS, 4, true),
	R(R_X86_64_TLSLD, TLS, 4, true),
	R(R_X86_64_DTPOFF32, TLS, 4, true),
	R(R_X86_64_GOTTPOFF, TLS, 4, true),
	R(R_X86_64_TPOFF32, TLS, 4, true),
	R(R_X86_64_PC64, PCREL, 8, true),
	R(R_X86_64_GOTOFF64, GOTREL, 8, true),
	R(R_X86_64_GOTPC32, PCREL, 4, true),
	R(R_X86_64_GOT64, HARD, 8, true),
	R(R_X86_64_GOTPCREL64, HARD, 8, true),
	R(R_X86_64_GOTPC64, HARD, 8, true),
	R(R_X86_64_GOTPLT64, HARD, 8, true),
	R(R_X86_64_PLTOFF64, HARD, 8, true),
	R(R_X86_64_SIZE32, NONE, 4, false),
	R(R_X86_64_SIZE64, NONE, 8, false),
	R(R_X86_64_GOTPC32_TLSDESC, TLS, 4, true),
	R(R_X86_64_TLSDESC_CALL, TLS, 0, false),
	R(R_X86_64_TLSDESC, TLS, 16, false),
	R(R_X86_64_IRELATIVE, IRELATIVE, 8, false),
	R(R_X86_64_RELATIVE64, RELATIVE, 8, false),
	R(R_X86_64_PC32_BND, PCREL, 4, true),
	R(R_X86_64_PLT32_BND, PCREL, 4, true),
	R(R_X86_64_GOTPCRELX, GOTPCREL, 4, true),
	R(R_X86_64_REX_GOTPCRELX, GOTPCREL, 4, true),
	R(R_X86_64_CODE_4_GOTPCRELX, GOTPCREL, 4, true),
	R(R_X86_64_CODE_4_GOTTPOFF, TLS, 4, true),
	R(R_X86_64_CODE_4_GOTPC32_TLSDESC, TLS, 4, true),
	R(R_X86_64_CODE_5_GOTPCRELX, GOTPCREL, 4, true),
	R(R_X86_64_CODE_5_GOTTPOFF, TLS, 4, true),
	R(R_X86_64_CODE_5_GOTPC32_TLSDESC, TLS, 4, true),
	R(R_X86_64_CODE_6_GOTPCRELX, GOTPCREL, 4, true),
	R(R_X86_64_CODE_6_GOTTPOFF, TLS, 4, true),
	R(R_X86_64_CODE_6_GOTPC32_TLSDESC, TLS, 4, true),
	/* left by -fvtable-gc, marks only */
	R(R_X86_64_GNU_VTINHERIT, NONE, 0, false),
	R(R_X86_64_GNU_VTENTRY, NONE, 0, false),
};

static struct elfrw_reloc_desc reloc(uint32_t type)
{
	if (type < sizeof relocs / sizeof *relocs && relocs[type].name)
		return relocs[type];
	return (struct elfrw_reloc_desc){ NULL, ELFRW_RELOC_HARD, 0, false };
}

/* Every field is a whole word. */
enum { REL8 = 1, REL16, REL32, ABS32, ABS32S, ABS64 };

#define FORM(id, text, size, counts_from, is_signed) \
	[id] = { .name = text,                       \
		 .bytes = size,                      \
		 .width = 8 * (size),                \
		 .base = ELFRW_BASE_##counts_from,   \
		 .sign = is_signed }

static const struct elfrw_form forms[] = {
	FORM(REL8, "rel8", 1, PLACE, true),
	FORM(REL16, "rel16", 2, PLACE, true), /* xbegin with an operand size prefix */
	FORM(REL32, "rel32", 4, PLACE, true),
	FORM(ABS32, "abs32", 4, ZERO, false),
	FORM(ABS32S, "abs32s", 4, ZERO, true),
	FORM(ABS64, "abs64", 8, ZERO, false),
};

static uint8_t pcrel_form(const struct elfrw_insn *in)
{
	return in->pcrel_size == 4 ? REL32 : in->pcrel_size == 1 ? REL8 : REL16;
}

static uint8_t address_form(unsigned size, bool sign)
{
	return size == 8 ? ABS64 : size != 4 ? 0 : sign ? ABS32S : ABS32;
}

enum { ENDBR_SIZE = 4, JMP_SIZE = 5, STUB_INSNS = 4 };

/* endbr64 (where asked for); jmp rel32; one int3, so that the size is even and the next thunk's
 * address too. */
static struct elfrw_thunk thunk(uint8_t *buf, uint64_t from, uint64_t to, bool endbr)
{
	uint8_t jmp = endbr ? ENDBR_SIZE : 0;
	int64_t rel = (int64_t)(to - (from + jmp + JMP_SIZE));
	if (rel < INT32_MIN || rel > INT32_MAX)
		return (struct elfrw_thunk){ 0 };
	if (buf) {
		if (endbr)
			elfrw_put32(buf, 0xfa1e0ff3);
		buf[jmp] = 0xe9;
		elfrw_put32(buf + jmp + 1, (uint32_t)rel);
		buf[jmp + JMP_SIZE] = 0xcc;
	}
	return (struct elfrw_thunk){ .size = jmp + JMP_SIZE + 1,
				     .n_reloc = 1,
				     .reloc = { { jmp + 1, R_X86_64_PLT32, -4 } } };
}

static unsigned read_thunk(const uint8_t *code, size_t avail, uint64_t va,
			   struct elfrw_thunk_read *ret)
{
	struct elfrw_insn in;
	unsigned at = 0, len = elfrw_x86_decode(code, avail, va, &in);
	ret->endbr = len && (in.flags & ELFRW_INSN_ENDBR);
	if (ret->endbr) {
		at = len;
		len = elfrw_x86_decode(code + at, avail - at, va + at, &in);
	}
	ret->branch = (uint8_t)at;
	if (!len || in.kind != ELFRW_INSN_JMP)
		return 0;
	ret->target = in.target;
	return at + len;
}

/* Landing pads, a push of a number, prefixes; then jmp *slot(%rip). */
static bool read_stub(const uint8_t *code, size_t avail, uint64_t va, uint64_t *slot)
{
	struct elfrw_insn in;
	size_t at = 0;
	for (unsigned i = 0; i < STUB_INSNS && at < avail; i++, at += in.len) {
		if (!elfrw_x86_decode(code + at, avail - at, va + at, &in))
			return false;
		if (in.kind == ELFRW_INSN_OTHER || in.kind == ELFRW_INSN_NOP)
			continue;
		*slot = in.target;
		return in.kind == ELFRW_INSN_JMP_IND && in.pcrel_size;
	}
	return false;
}

/* The rewriting that only programs with fixed addresses allow.  mov slot(%rip), %reg became
 * mov $address, %reg: it is lea, as in other programs.  op slot(%rip), %reg and test %reg,
 * slot(%rip) become op $address, %reg.  P: the opcode, behind a REX prefix. */
static bool relax_fixed(uint8_t *p, bool slot, struct elfrw_relaxed *ret)
{
	bool op = (p[0] & 0xc7) == 3, test = p[0] == 0x85;
	if (!slot && (p[-1] & 0xfe) == 0x48 && p[0] == 0xc7 && (p[1] & 0xf8) == 0xc0) {
		p[-1] = p[-1] & 1 ? 0x4c : 0x48;
		p[0] = 0x8d;
		p[1] = (uint8_t)((p[1] & 7) << 3 | 5);
		ret->distance = true;
	} else if (slot && (p[-1] & 0xfb) == 0x48 && (op || test) && (p[1] & 0xc7) == 5) {
		uint8_t which = test ? 0 : p[0] >> 3 & 7;
		p[-1] = p[-1] & 4 ? 0x49 : 0x48;
		p[0] = test ? 0xf7 : 0x81;
		p[1] = (uint8_t)(0xc0 | which << 3 | (p[1] >> 3 & 7));
		ret->fixed = true;
	} else
		return false;
	return ret->changed = true;
}

/* x86-64 psABI, "Optimize GOTPCRELX Relocations".  mov slot(%rip) becomes lea; call *slot(%rip)
 * becomes addr32 call; jmp *slot(%rip) becomes jmp and nop, or nop and jmp (mold). */
static struct elfrw_relaxed relax(uint8_t *code, size_t size, uint32_t off, bool slot)
{
	struct elfrw_relaxed ret = { .off = off };
	if (off < 2 || off > size || size - off < 4)
		return ret;
	uint8_t *p = code + off - 2;
	bool jmp = slot && p[0] == 0xff && p[1] == 0x25;
	if (jmp || (!slot && p[0] == 0x90 && p[1] == 0xe9)) {
		memcpy(p, "\xe9\0\0\0\0\x90", 6);
		ret.off--;
		ret.changed = ret.branch = slot;
	} else if (slot && p[0] == 0xff && p[1] == 0x15) {
		memcpy(p, "\x67\xe8", 2);
		ret.changed = ret.branch = true;
	} else if (slot && p[0] == 0x8b && (p[1] & 0xc7) == 5) {
		p[0] = 0x8d;
		ret.changed = true;
	} else if (off >= 3)
		relax_fixed(p, slot, &ret);
	return ret;
}

/* Of the instructions with prefix PP (0, 66, F3, F2: 0 to 3) and an opcode of map 0F, the bytes
 * that a vector instruction reads; VECTOR: of a full register. */
static unsigned vector_read(unsigned pp, uint8_t op, unsigned vector)
{
	switch (op) {
	case 0x6e: return 8;
	case 0x12:
	case 0x16: return pp == 0 || pp == 1 ? 8 : vector;
	case 0x2e:
	case 0x2f: return pp == 1 ? 8 : 4;
	case 0x6f: return vector;
	case 0x7e:
	case 0xe6: return pp == 2 ? 8 : vector;
	case 0x70: return vector;
	default: return pp == 2 ? 4 : pp == 3 ? 8 : vector;
	}
}

/* Intel SDM, volume 2, appendix A.  The prefixes of an instruction are found from its field
 * backwards. */
static unsigned read_size(const uint8_t *code, size_t size, uint32_t off)
{
	uint8_t before[6] = { 0 };
	unsigned n = off < sizeof before ? off : sizeof before;
	if (n < 2 || off > size)
		return 0;
	memcpy(before + sizeof before - n, code + off - n, n);
	const uint8_t *m = before + 5, op = m[-1]; /* ModRM, opcode */
	unsigned wide = (m[-2] & 0xf8) == 0x48 ? 8 : 4;
	if (m[-3] == 0xc5) /* VEX; m[-2]: R vvvv L pp */
		return vector_read(m[-2] & 3, op, m[-2] & 4 ? 32 : 16);
	if (m[-4] == 0xc4 && (m[-3] & 0x1f) == 1)
		return vector_read(m[-2] & 3, op, m[-2] & 4 ? 32 : 16);
	if (m[-5] == 0x62 || m[-4] == 0xc4)
		return 0;
	if (m[-2] == 0x0f) {
		uint8_t prefix = (m[-3] & 0xf0) == 0x40 ? m[-4] : m[-3];
		unsigned rex = (m[-3] & 0xf8) == 0x48 ? 8 : 4;
		if (op == 0xaf || (op & 0xf0) == 0x40)
			return rex;
		if ((op & 0xf6) == 0xb6)
			return op & 1 ? 2 : 1;
		return vector_read(prefix == 0x66   ? 1
				   : prefix == 0xf3 ? 2
				   : prefix == 0xf2 ? 3
						    : 0,
				   op, 16);
	}
	switch (op) {
	case 0xd8:
	case 0xd9: return 4;
	case 0xdc:
	case 0xdd: return 8;
	case 0xdb: return 10;
	case 0x63: return 4;
	default: return (op & 0xc6) == 2 || op == 0x8a || op == 0x8b ? (op & 1 ? wide : 1) : 0;
	}
}

/* FF /2 anywhere. */
static bool may_call_indirectly(const uint8_t *code, size_t size)
{
	const uint8_t *p = code, *end = code + size;
	while (p + 1 < end && (p = memchr(p, 0xff, (size_t)(end - p - 1)))) {
		if ((*++p & 0x38) == 0x10)
			return true;
	}
	return false;
}

/* DT_X86_64_PLT, which bfd writes with -z mark-plt; not in every elf.h. */
static const int64_t dynamic_code[] = { 0x70000000, 0 };

/* DW_CFA_def_cfa: rsp + 8; DW_CFA_offset: the return address at CFA - 8 (data alignment factor
 * -8). */
static const uint8_t entry_cfi[] = { 0x0c, 7, 8, 0x80 | 16, 1 };

static const char *const breakpad_register[] = {
	"$rax",   "$rdx",   "$rcx",   "$rbx",   "$rsi",   "$rdi",   "$rbp",  "$rsp",  "$r8",
	"$r9",    "$r10",   "$r11",   "$r12",   "$r13",   "$r14",   "$r15",  "$rip",  "$xmm0",
	"$xmm1",  "$xmm2",  "$xmm3",  "$xmm4",  "$xmm5",  "$xmm6",  "$xmm7", "$xmm8", "$xmm9",
	"$xmm10", "$xmm11", "$xmm12", "$xmm13", "$xmm14", "$xmm15",
};

const struct elfrw_arch elfrw_arch_x86_64 = {
	.name = "x86-64",
	.machine = EM_X86_64,
	.address_size = 8,
	.decode = elfrw_x86_decode,
	.form = forms,
	.n_forms = sizeof forms / sizeof *forms,
	.pcrel_form = pcrel_form,
	.address_form = address_form,
	.from_end = true,
	.near_reach = INT16_MAX,
	.function_align = 16,
	.fill = { 0xcc },
	.fill_size = 1,
	.call_size = 5,
	.reloc_short = 4,
	.page_min = 4096,
	.page_max = 4096,
	.may_call_indirectly = may_call_indirectly,
	.may_refer = elfrw_x86_may_refer,
	.thunk = thunk,
	.read_thunk = read_thunk,
	.read_stub = read_stub,
	.relax = relax,
	.read_size = read_size,
	.reloc = reloc,
	.dynamic_code = dynamic_code,
	.dwarf_sp = 7,
	.dwarf_ra = 16,
	.dwarf_arg = { 5, 4 },
	.dwarf_registers = 17,
	.breakpad = "x86_64",
	.breakpad_register = breakpad_register,
	.n_breakpad_registers = sizeof breakpad_register / sizeof *breakpad_register,
	.frame_depth = 16,
	.entry_cfi = entry_cfi,
	.entry_cfi_size = sizeof entry_cfi,
	.model = &elfrw_x86_64_model,
	.judge = &elfrw_x86_64_judge,
};
