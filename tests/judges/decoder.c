/* decoder.c: compares the x86-64 decoder with Zydis over whole files and over every instruction
 * form.
 *
 * Build: make build/check_decoder
 *
 *	check_decoder [--forms] [--speed] FILE...
 *
 * Each executable section of each x86-64 ELF file is swept from its first byte, both decoders at
 * every step; the sweep goes on after the length that Zydis gives or, if Zydis refuses the bytes,
 * after one byte. Compared: length, kind of control transfer, the PC-relative field and its target,
 * displacement and immediate fields, opcode, registers, and what effect.c asks. What Zydis accepts
 * and the decoder refuses is a difference; the contrary is only counted (Zydis 4.0 knows no
 * instruction younger than 2022, and checks rules of vector length that do not matter here).
 *
 * --forms enumerates every map, opcode, ModRM byte and SIB byte class under many prefixes, then ten
 * million random byte strings; no file is needed. --speed times the decoder alone.  Prints counts
 * and the first 20 differences; exit status 1 when there is one. */
#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "elfrw/arch/arch.h"
#include "elfrw/arch/x86_64_decode.h"
#include "tests/judges/effect.h"

struct check {
	ZydisDecoder zydis;
	uint64_t compared, both_invalid, only_ours, differences;
};

static unsigned zydis_kind(const ZydisDecodedInstruction *z, bool *far_transfer)
{
	bool indirect = !z->raw.imm[0].is_relative;
	*far_transfer = false;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		*far_transfer = indirect && (z->raw.modrm.reg & 1);
		return indirect ? ELFRW_INSN_JMP_IND : ELFRW_INSN_JMP;
	case ZYDIS_MNEMONIC_CALL:
		*far_transfer = indirect && (z->raw.modrm.reg & 1);
		return indirect ? ELFRW_INSN_CALL_IND : ELFRW_INSN_CALL;
	case ZYDIS_MNEMONIC_RET:
		*far_transfer = z->opcode == 0xca || z->opcode == 0xcb;
		return ELFRW_INSN_RET;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_UIRET: *far_transfer = true; return ELFRW_INSN_RET;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3: return ELFRW_INSN_TRAP;
	case ZYDIS_MNEMONIC_NOP: return ELFRW_INSN_NOP;
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_JB:
	case ZYDIS_MNEMONIC_JBE:
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JL:
	case ZYDIS_MNEMONIC_JLE:
	case ZYDIS_MNEMONIC_JNB:
	case ZYDIS_MNEMONIC_JNBE:
	case ZYDIS_MNEMONIC_JNL:
	case ZYDIS_MNEMONIC_JNLE:
	case ZYDIS_MNEMONIC_JNO:
	case ZYDIS_MNEMONIC_JNP:
	case ZYDIS_MNEMONIC_JNS:
	case ZYDIS_MNEMONIC_JNZ:
	case ZYDIS_MNEMONIC_JO:
	case ZYDIS_MNEMONIC_JP:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JS:
	case ZYDIS_MNEMONIC_JZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE: return ELFRW_INSN_JCC;
	default: return ELFRW_INSN_OTHER;
	}
}

/* How the instruction names its operands. */
struct form {
	bool modrm;
	bool rip; /* RIP-relative */
	bool mem; /* an operand in memory */
};

static struct form form_of(const ZydisDecodedInstruction *z, const struct elfrw_insn *n)
{
	struct form f = { .modrm = z->attributes & ZYDIS_ATTRIB_HAS_MODRM };
	bool regform = n->own_map == 1 && n->opcode >= 0x20 && n->opcode <= 0x23;
	f.rip = f.modrm && !regform && z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5;
	f.mem = f.modrm && !regform && z->raw.modrm.mod != 3;
	return f;
}

/* Why the kinds of control transfer differ, or NULL; so do the following. */
static const char *kind_differs(const ZydisDecodedInstruction *z, const struct elfrw_insn *n)
{
	bool far_transfer;
	unsigned kind = zydis_kind(z, &far_transfer);
	/* reserved no-ops and wide no-ops other than 0F 1F are OTHER here: nobody pads with them */
	if (kind != n->kind &&
	    !(kind == ELFRW_INSN_NOP && n->kind == ELFRW_INSN_OTHER && n->own_map == 1))
		return "kind";
	bool osz_branch = kind >= ELFRW_INSN_RET && (n->flags & ELFRW_INSN_LONG_CALL);
	if (far_transfer && !(n->flags & ELFRW_INSN_LONG_CALL))
		return "far";
	bool has_66 = false, has_67 = false;
	for (unsigned i = 0; i < z->raw.prefix_count; i++) {
		has_66 |= z->raw.prefixes[i].value == 0x66;
		has_67 |= z->raw.prefixes[i].value == 0x67;
	}
	if (osz_branch && !far_transfer && !has_66 && !has_67)
		return "far (ours)";
	return NULL;
}

/* The PC-relative field of the instruction at VA, and its target. */
static const char *pcrel_differs(const ZydisDecodedInstruction *z, uint64_t va,
				 const struct elfrw_insn *n)
{
	unsigned pc_off = 0, pc_size = 0;
	uint64_t pc_value = 0;
	if (form_of(z, n).rip) {
		pc_off = z->raw.disp.offset;
		pc_size = 4;
		pc_value = (uint64_t)z->raw.disp.value;
	}
	if (z->raw.imm[0].is_relative) {
		pc_off = z->raw.imm[0].offset;
		pc_size = z->raw.imm[0].size / 8;
		pc_value = (uint64_t)z->raw.imm[0].value.s;
	}
	if (n->pcrel_size != pc_size || (pc_size && n->pcrel_off != pc_off))
		return "PC-relative field";
	if (pc_size && n->target != va + z->length + pc_value)
		return "target";
	return NULL;
}

/* Displacement, immediate and opcode. */
static const char *fields_differ(const ZydisDecodedInstruction *z, const struct elfrw_insn *n)
{
	/* Zydis keeps the address of moffs as a displacement; elfrw/arch/arch.h as an immediate */
	bool moffs = n->own_map == 0 && n->opcode >= 0xa0 && n->opcode <= 0xa3;
	unsigned disp_size = form_of(z, n).rip || moffs ? 0 : z->raw.disp.size / 8;
	if (n->disp_size != disp_size || (disp_size && n->disp_off != z->raw.disp.offset))
		return "displacement";
	unsigned imm_size = z->raw.imm[0].is_relative ? 0 : z->raw.imm[0].size / 8,
		 imm_off = z->raw.imm[0].offset;
	if (moffs) {
		imm_size = z->raw.disp.size / 8;
		imm_off = z->raw.disp.offset;
	} else if (n->own_map == 1 && n->opcode == 0x78) {
		imm_size += z->raw.imm[1].size / 8;
	}
	bool now = z->encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
	if (n->imm_size != imm_size || (imm_size && n->imm_off != imm_off))
		return "immediate";
	if (!now && n->opcode != z->opcode)
		return "opcode";
	return NULL;
}

/* The bits that a prefix adds to the numbers of registers (R, X, B), and the one for 64 bits (W).
 */
struct extension {
	unsigned r, x, b, w;
};

static struct extension extension_of(const ZydisDecodedInstruction *z)
{
	switch (z->encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_VEX:
		return (struct extension){ !z->raw.vex.R, !z->raw.vex.X, !z->raw.vex.B,
					   z->raw.vex.W };
	case ZYDIS_INSTRUCTION_ENCODING_XOP:
		return (struct extension){ !z->raw.xop.R, !z->raw.xop.X, !z->raw.xop.B,
					   z->raw.xop.W };
	case ZYDIS_INSTRUCTION_ENCODING_EVEX:
		return (struct extension){ !z->raw.evex.R, !z->raw.evex.X, !z->raw.evex.B,
					   z->raw.evex.W };
	default:
		return (struct extension){ z->raw.rex.R, z->raw.rex.X, z->raw.rex.B, z->raw.rex.W };
	}
}

static const char *registers_differ(const ZydisDecodedInstruction *z, const struct elfrw_insn *n)
{
	const struct extension e = extension_of(z);
	const struct form f = form_of(z, n);
	if (e.w != !!(n->flags & ELFRW_INSN_OWN))
		return "W";
	unsigned reg = ELFRW_REG_NONE, rm = reg, base = reg, index = reg, scale = 1;
	if (f.modrm)
		reg = z->raw.modrm.reg | e.r << 3;
	if (f.modrm && !f.mem)
		rm = z->raw.modrm.rm | e.b << 3;
	if (f.mem && z->raw.modrm.rm == 4) {
		if (z->raw.sib.index != 4 || e.x)
			index = z->raw.sib.index | e.x << 3;
		if (z->raw.sib.base != 5 || z->raw.modrm.mod)
			base = z->raw.sib.base | e.b << 3;
		scale = 1u << z->raw.sib.scale;
	} else if (f.mem && !f.rip) {
		base = z->raw.modrm.rm | e.b << 3;
	}
	if (f.mem != !!(n->flags & ELFRW_INSN_MEM))
		return "memory flag";
	if ((f.modrm && n->reg != reg) || n->own_reg != rm || n->base != base ||
	    n->index != index || (f.mem && n->scale != scale))
		return "registers";
	return NULL;
}

/* Why the two differ, or NULL. */
static const char *differ(const ZydisDecodedInstruction *z, uint64_t va, const struct elfrw_insn *n)
{
	if (n->len != z->length)
		return "length";
	const char *why = kind_differs(z, n);
	if (!why)
		why = pcrel_differs(z, va, n);
	if (!why)
		why = fields_differ(z, n);
	if (!why)
		why = registers_differ(z, n);
	if (why)
		return why;
	if ((z->mnemonic == ZYDIS_MNEMONIC_LEA) != !!(n->flags & ELFRW_INSN_LEA))
		return "lea flag";
	if ((z->mnemonic == ZYDIS_MNEMONIC_ENDBR64) != !!(n->flags & ELFRW_INSN_ENDBR))
		return "endbr flag";
	return NULL;
}

/* Compares at CODE; returns how many bytes to go on. */
static unsigned step(struct check *c, const char *name, const uint8_t *code, size_t avail,
		     uint64_t va)
{
	ZydisDecodedInstruction z;
	ZydisDecoderContext ctx;
	struct elfrw_insn n;
	bool ok = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&c->zydis, &ctx, code, avail, &z));
	/* Knights Corner's: no other x86-64 processor has them */
	if (ok && (z.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
		   z.mnemonic == ZYDIS_MNEMONIC_JKZD || z.mnemonic == ZYDIS_MNEMONIC_JKNZD))
		ok = false;
	unsigned len = elfrw_x86_decode(code, avail, va, &n);
	c->compared++;
	const char *why = NULL;
	if (!ok) {
		c->both_invalid += len == 0;
		c->only_ours += len != 0;
	} else {
		why = len == 0 ? "refused" : len != n.len ? "len" : differ(&z, va, &n);
		if (!why)
			why = effect_differs(&c->zydis, &ctx, &z, &n, code);
	}
	if (why && c->differences++ < 20) {
		printf("%s: %#" PRIx64 ": %s (%s):", name, va, why,
		       ZydisMnemonicGetString(z.mnemonic));
		for (unsigned i = 0; i < 15 && i < avail; i++)
			printf(" %02x", code[i]);
		printf("  ours: length %u kind %u\n", len, len ? n.kind : 0);
	}
	return ok ? z.length : 1;
}

static double now_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void speed(const char *name, const uint8_t *code, size_t size, uint64_t va)
{
	double best = 1e9;
	uint64_t count = 0, sum = 0;
	for (int round = 0; round < 5; round++) {
		double start = now_seconds();
		count = 0;
		for (size_t off = 0; off < size;) {
			struct elfrw_insn n;
			unsigned len = elfrw_x86_decode(code + off, size - off, va + off, &n);
			if (len && n.pcrel_size)
				sum += n.target;
			off += len ? len : 1;
			count++;
		}
		double t = now_seconds() - start;
		best = t < best ? t : best;
	}
	printf("%s: %zu bytes, %" PRIu64
	       " instructions, %.4f s, %.2f ns each, %.1f million a second (%" PRIx64 ")\n",
	       name, size, count, best, best * 1e9 / (double)count, (double)count * 1e-6 / best,
	       sum);
}

/* Returns false when FILE is no x86-64 ELF file that can be read. */
static bool check_file(struct check *c, const char *file, bool only_speed)
{
	bool done = false;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size < sizeof(Elf64_Ehdr)) {
		close(fd);
		return false;
	}
	size_t size = (size_t)st.st_size;
	const uint8_t *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return false;
	const Elf64_Ehdr *eh = (const void *)p;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_machine != EM_X86_64 || eh->e_shentsize != sizeof(Elf64_Shdr) ||
	    eh->e_shoff > size || (size - eh->e_shoff) / sizeof(Elf64_Shdr) < eh->e_shnum ||
	    eh->e_shoff % 8)
		goto out;
	const Elf64_Shdr *sh = (const void *)(p + eh->e_shoff);
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		if (!(sh[i].sh_flags & SHF_EXECINSTR) || sh[i].sh_type != SHT_PROGBITS ||
		    sh[i].sh_offset > size || size - sh[i].sh_offset < sh[i].sh_size)
			continue;
		done = true;
		const uint8_t *code = p + sh[i].sh_offset;
		if (only_speed) {
			if (sh[i].sh_size >= 4096)
				speed(file, code, sh[i].sh_size, sh[i].sh_addr);
			continue;
		}
		for (size_t off = 0; off < sh[i].sh_size;)
			off += step(c, file, code + off, sh[i].sh_size - off, sh[i].sh_addr + off);
	}
out:
	munmap((void *)p, size);
	return done;
}

/* One form with every ModRM byte, and with SIB bytes of every kind. */
static void check_tails(struct check *c, uint8_t *b, unsigned n)
{
	static const uint8_t sibs[] = { 0x00, 0x05, 0x20, 0x25, 0x64, 0xe5, 0xbf };
	for (unsigned mr = 0; mr < 256; mr++) {
		bool has_sib = mr < 0xc0 && (mr & 7) == 4;
		b[n] = (uint8_t)mr;
		for (unsigned s = 0; s < (has_sib ? sizeof sibs : 1); s++) {
			for (unsigned i = n + 1; i < 40; i++)
				b[i] = (uint8_t)(0x81 + 7 * i);
			if (has_sib)
				b[n + 1] = sibs[s];
			step(c, "forms", b, 40, 0x401000);
		}
	}
}

/* Every opcode of the four maps after the HEAD bytes of prefixes at B. */
static void check_maps(struct check *c, uint8_t *b, unsigned head)
{
	for (unsigned map = 0; map < 4; map++) {
		unsigned n = head;
		if (map)
			b[n++] = 0x0f;
		if (map > 1)
			b[n++] = map == 2 ? 0x38 : 0x3a;
		for (unsigned op = 0; op < 256; op++) {
			b[n] = (uint8_t)op;
			check_tails(c, b, n + 1);
		}
	}
}

/* Instructions without VEX, XOP and EVEX. */
static void check_legacy(struct check *c)
{
	static const uint8_t prefixes[][5] = {
		/* a count, then the bytes */
		{ 0 },
		{ 1, 0x66 },
		{ 1, 0xf3 },
		{ 1, 0xf2 },
		{ 1, 0x67 },
		{ 1, 0x2e },
		{ 1, 0x3e },
		{ 1, 0x64 },
		{ 1, 0xf0 },
		{ 2, 0x66, 0xf2 },
		{ 2, 0xf3, 0x66 },
		{ 2, 0xf2, 0xf3 },
		{ 2, 0xf3, 0xf2 },
		{ 2, 0x66, 0x67 },
		{ 2, 0x3e, 0x66 },
		{ 2, 0x3e, 0x64 },
		{ 2, 0x66, 0xf0 },
		{ 2, 0xf3, 0x3e },
		{ 4, 0x66, 0x66, 0x66, 0x2e },
	};
	static const uint8_t rexes[] = { 0, 0x40, 0x41, 0x42, 0x44, 0x48, 0x4f };
	uint8_t b[64];
	for (unsigned pf = 0; pf < sizeof prefixes / sizeof *prefixes; pf++) {
		/* The last round has REX before a prefix, where REX has no effect. */
		for (unsigned rx = 0; rx < sizeof rexes + 1; rx++) {
			unsigned head = prefixes[pf][0];
			memcpy(b, prefixes[pf] + 1, head);
			if (rx == sizeof rexes) {
				b[head++] = 0x48;
				b[head++] = 0x26;
			} else if (rexes[rx]) {
				b[head++] = rexes[rx];
			}
			check_maps(c, b, head);
		}
	}
}

/* How an instruction with VEX, XOP or EVEX begins. */
enum vector_kind { VEX2, VEX3, XOP, EVEX };

/* The fields of such a prefix: B1 is the first byte after the escape, PP the implied prefix, L the
 * vector length (0 to 2), VVVV whether there is another register. */
struct vector {
	enum vector_kind kind;
	unsigned b1, pp, w, l, vvvv, op;
};

/* Only EVEX has the third vector length. A VEX prefix of two bytes has no fields beside B1. Of the
 * register extension bits a few combinations are enough. */
static bool is_wanted(const struct vector *v)
{
	if (v->l == 2 && v->kind != EVEX)
		return false;
	if (v->kind != VEX2)
		return (v->b1 >> 5) % 3 == 1 || v->b1 >> 5 == 0;
	return !v->w && !v->l && !v->vvvv && !v->pp;
}

/* One vector form, after the N bytes of prefixes at B, with every kind of operand. */
static void check_vector(struct check *c, uint8_t *b, unsigned n, const struct vector *v)
{
	static const uint8_t first[] = { 0xc5, 0xc4, 0x8f, 0x62 };
	static const uint8_t mrs[] = { 0x00, 0x05, 0x0c, 0x48, 0x54, 0x85, 0x9c, 0xb0,
				       0xc1, 0xca, 0xd3, 0xdc, 0xe5, 0xee, 0xf7, 0xff };
	b[n++] = first[v->kind];
	b[n++] = (uint8_t)v->b1;
	unsigned v4 = v->vvvv ? 0x78 : 0x30;
	unsigned l4 = v->kind == EVEX ? 4 : v->l << 2;
	if (v->kind != VEX2)
		b[n++] = (uint8_t)(v->w << 7 | v4 | l4 | v->pp);
	if (v->kind == EVEX)
		b[n++] = (uint8_t)(v->l << 5 | 8 | (v->op & 1));
	b[n++] = (uint8_t)v->op;
	for (unsigned m = 0; m < sizeof mrs; m++) {
		b[n] = mrs[m];
		for (unsigned i = n + 1; i < 40; i++)
			b[i] = (uint8_t)(0x25 + 9 * i);
		step(c, "forms", b, 40, 0x401000);
	}
}

/* All vector forms with first byte B1, after the HEAD bytes of prefixes at B. */
static void check_vectors(struct check *c, uint8_t *b, unsigned head, unsigned b1)
{
	for (unsigned k = 0; k < 4 * 12; k++) {
		unsigned fields = k % 12;
		struct vector v = { .b1 = b1,
				    .pp = k / 12,
				    .w = fields & 1,
				    .l = fields / 2 % 3,
				    .vvvv = fields / 6 };
		for (v.op = 0; v.op < 256; v.op++)
			for (v.kind = VEX2; v.kind <= EVEX; v.kind++)
				if (is_wanted(&v))
					check_vector(c, b, head, &v);
	}
}

static void check_forms(struct check *c)
{
	check_legacy(c);
	/* VEX, XOP and EVEX by themselves, after two prefixes that may precede them, and after 66,
	 * which may not */
	uint8_t b[64];
	for (unsigned pre = 0; pre < 4; pre++) {
		unsigned head = 0;
		if (pre)
			b[head++] = pre == 1 ? 0x67 : pre == 2 ? 0x64 : 0x66;
		for (unsigned b1 = 0; b1 < 256; b1++)
			check_vectors(c, b, head, b1);
	}
}

/* Random bytes, half of them prefixes, escapes and short ModRM bytes; also what a cut-off input
 * gives. */
static void check_random(struct check *c, unsigned count)
{
	static const uint8_t often[] = { 0x66, 0x66, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x67, 0xf0,
					 0x40, 0x41, 0x48, 0x4c, 0x4f, 0x0f, 0x0f, 0x38, 0x3a,
					 0xc4, 0xc5, 0x62, 0x8f, 0x00, 0x05, 0xc7, 0xff };
	uint64_t x = 0x9e3779b97f4a7c15;
	uint8_t b[40];
	while (count--) {
		for (unsigned i = 0; i < sizeof b; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			b[i] = x & 1 ? often[(x >> 8) % sizeof often] : (uint8_t)(x >> 32);
		}
		step(c, "random", b, sizeof b, 0x401000);
		step(c, "random", b, x >> 40 & 15, 0x401000);
	}
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	bool only_speed = false;
	unsigned files = 0;
	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&c.zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return 2;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--forms")) {
			check_forms(&c);
			check_random(&c, 10000000);
		} else if (!strcmp(argv[i], "--speed")) {
			only_speed = true;
		} else {
			files += check_file(&c, argv[i], only_speed);
		}
	}
	if (!only_speed)
		printf("%u files, %" PRIu64 " instructions compared, %" PRIu64
		       " places refused by both, %" PRIu64 " by Zydis only, %" PRIu64
		       " differences\n",
		       files, c.compared, c.both_invalid, c.only_ours, c.differences);
	return c.differences ? 1 : 0;
}
