/* a64.c: compares the AArch64 decoder, and what elfrw/arch/aarch64_effect.c says of instructions,
 * with the disassembler of GNU binutils.
 *
 * Build: make build/check_a64
 *
 *	check_a64 [--random N] [--aliases] FILE...
 *
 * All distinct words in the executable sections of the AArch64 ELF files are compared once, and N
 * random ones.  The disassembler is `aarch64-linux-gnu-objdump -M no-aliases` (OBJDUMP names
 *another program); a64_said.c reads its text.  a64_llvm.sh asks LLVM; LLVM prints aliases in any
 *case, so --aliases leaves out the operations.  Compared: validity, kind of control transfer, the
 * PC-relative field's target, registers read and written, memory read and written, and of the
 * operations that have a name of their own the operands, widths and numbers.  What objdump accepts
 * and the decoder refuses is a difference; the contrary is counted.  Prints counts and
 * the first of each row of like differences; exit status 1 when there is one.
 *
 * Memory: half a gigabyte. */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/arch/arch.h"
#include "elfrw/arch/effect.h"
#include "tests/judges/a64_op.h"

#define CHUNK 4000000

struct check {
	bool aliases;  /* the text has aliases */
	uint8_t *seen; /* a bit for each word */
	uint64_t files, words, compared, both_invalid, only_ours, differences;
	uint64_t shown; /* of the last kind of difference */
	char last[64];
};

static void see(struct check *c, uint32_t word)
{
	c->seen[word >> 3] |= (uint8_t)(1u << (word & 7));
}

/* --- one word --- */

static unsigned kind_of(const struct said *s)
{
	const char *n = s->name;
	if (!strcmp(n, "b") || !strcmp(n, "b.al") || !strcmp(n, "b.nv") || !strcmp(n, "bc.al") ||
	    !strcmp(n, "bc.nv"))
		return ELFRW_INSN_JMP;
	if (!strcmp(n, "bl"))
		return ELFRW_INSN_CALL;
	if (!strncmp(n, "b.", 2) || !strncmp(n, "bc.", 3) || !strcmp(n, "cbz") ||
	    !strcmp(n, "cbnz") || !strcmp(n, "tbz") || !strcmp(n, "tbnz"))
		return ELFRW_INSN_JCC;
	if (!strcmp(n, "ret"))
		return s->n && s->op[0].reg != 30 ? ELFRW_INSN_JMP_IND : ELFRW_INSN_RET;
	if (!strncmp(n, "reta", 4) || !strncmp(n, "eret", 4) || !strcmp(n, "drps"))
		return ELFRW_INSN_RET;
	if (!strcmp(n, "br") || !strncmp(n, "bra", 3))
		return ELFRW_INSN_JMP_IND;
	if (!strncmp(n, "blr", 3))
		return ELFRW_INSN_CALL_IND;
	if (!strcmp(n, "brk") && s->n == 1)
		return ELFRW_INSN_TRAP;
	if (!strcmp(n, "hlt") || !strcmp(n, "udf"))
		return ELFRW_INSN_TRAP;
	if (!strcmp(n, "hint") && s->n && s->op[0].number == 0)
		return ELFRW_INSN_NOP;
	return ELFRW_INSN_OTHER;
}

static bool is_pad(const struct said *s)
{
	if (strcmp(s->name, "hint") || !s->n)
		return false;
	int64_t n = s->op[0].number;
	return n == 25 || n == 27 || n == 34 || n == 36 || n == 38;
}

/* An address that belongs to a signature (FEAT_PAuth_LR): the decoder says that it does not
 * understand the instruction. */
static bool is_odd(const struct said *s, const struct elfrw_insn *in)
{
	return (strstr(s->name, "sppc") || strstr(s->name, "171615")) &&
	       (in->flags & ELFRW_INSN_LONG_CALL);
}

static const char *decode_differs(const struct said *s, const struct elfrw_insn *in)
{
	const struct said_operand *last = s->n ? &s->op[s->n - 1] : NULL;
	bool place = last && last->kind == SAID_PLACE;
	if (kind_of(s) != in->kind)
		return "kind";
	if (place != (in->pcrel_size == 4) || in->pcrel_off)
		return "PC-relative field";
	if (place && (uint64_t)last->number != in->target)
		return "target";
	if (is_pad(s) != !!(in->flags & ELFRW_INSN_ENDBR))
		return "landing pad";
	bool address = !strcmp(s->name, "adr") || !strcmp(s->name, "adrp");
	if ((address && !strstr(s->op[0].text, "z")) != (in->flags & ELFRW_INSN_LEA) && !address)
		return "address flag";
	return NULL;
}

static bool is_cache(const char *name)
{
	static const char *const names[] = { "at", "dc", "ic", "cfp", "cpp", "dvp", "cosp", NULL };
	for (const char *const *n = names; *n; n++)
		if (!strcmp(name, *n))
			return true;
	return false;
}

/* Instructions that system registers' encodings stand for. */
static bool is_system(const struct said *s)
{
	return !strncmp(s->name, "sys", 3) || !strncmp(s->name, "tlbi", 4) || is_cache(s->name);
}

static const char *effect_differs(const struct check *c, const struct said *s,
				  const struct elfrw_insn *in, const struct elfrw_effect *e)
{
	uint64_t reads = s->reads, writes = s->writes;
	bool scaled = in->opcode == ELFRW_A64_SVE || in->opcode == ELFRW_A64_SME;
	if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND)
		return reads & ~e->reads ? "effect: a call reads too little" : NULL;
	if (in->kind == ELFRW_INSN_RET)
		reads |= elfrw_aarch64_model.results;
	if (!strcmp(s->name, "svc") || !strcmp(s->name, "hvc") || !strcmp(s->name, "smc"))
		return NULL;
	if (writes & ~(uint64_t)e->writes)
		return "effect: writes too little";
	if (e->writes & ~writes)
		return "effect: writes too much";
	if (reads & ~(uint64_t)e->reads)
		return "effect: reads too little";
	if (!scaled && (e->reads & ~reads) && !is_system(s))
		return "effect: reads too much";
	if (!scaled && !is_system(s) &&
	    (s->loads != !!(e->flags & ELFRW_EFFECT_LOADS) ||
	     s->stores != !!(e->flags & ELFRW_EFFECT_STORES)))
		return "effect: memory";
	if ((s->loads && !(e->flags & ELFRW_EFFECT_LOADS)) ||
	    (s->stores && !(e->flags & ELFRW_EFFECT_STORES)))
		return "effect: too little memory";
	static const char *const flags[] = { "adds", "subs",  "ands",  "bics",   "adcs",  "sbcs",
					     "ccmp", "ccmn",  "fcmp",  "fcmpe",  "fccmp", "fccmpe",
					     "rmif", "subps", "setf8", "setf16", NULL };
	bool sets = false;
	for (const char *const *n = flags; *n; n++)
		sets |= !strcmp(s->name, *n);
	sets |= !strncmp(s->name, "rcw", 3);
	sets |= in->opcode == ELFRW_A64_MEMORY && s->n == 3 && s->op[0].changes;
	if (sets != !!(e->flags & ELFRW_EFFECT_FLAGS) && !scaled && in->opcode != ELFRW_A64_SYSTEM)
		return "effect: flags";
	return c->aliases ? NULL : op_differs(s, in, e);
}

/* Compares WORD at VA with what objdump makes of it. */
static void compare(struct check *c, uint32_t word, uint64_t va, char *text)
{
	struct elfrw_insn in;
	struct elfrw_effect e;
	struct said s;
	uint8_t code[4] = { (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
			    (uint8_t)(word >> 24) };
	char copy[200];
	snprintf(copy, sizeof copy, "%s", text);
	copy[strcspn(copy, "\n")] = 0;
	said_parse(text, &s);
	unsigned len = elfrw_a64_decode(code, 4, va, &in);
	const char *why = NULL;
	c->compared++;
	if (!s.valid) {
		c->both_invalid += len == 0;
		c->only_ours += len != 0;
	} else if (len != 4) {
		/* Bits that should be 0. */
		if (!c->aliases || (strcmp(s.name, "addg") && strcmp(s.name, "subg")))
			why = "refused";
	} else if (!is_odd(&s, &in)) {
		elfrw_aarch64_model.effect(&in, code, &e);
		why = decode_differs(&s, &in);
		if (!why)
			why = effect_differs(c, &s, &in, &e);
	}
	if (!why)
		return;
	c->differences++;
	char kind[64];
	snprintf(kind, sizeof kind, "%s %s", s.name, why);
	if (strcmp(kind, c->last)) {
		memcpy(c->last, kind, sizeof kind);
		c->shown = 0;
	}
	if (c->shown++ >= 3)
		return;
	printf("%08" PRIx32 " at %#" PRIx64 ": %s: %s", word, va, why, copy);
	if (len)
		printf("  ours: kind %u group %u op %u dst %d a %d b %d width %u from %u shift %u "
		       "reads %#x writes %#x flags %#x imm %" PRId64 " disp %" PRId64,
		       in.kind, in.opcode, e.op, (int8_t)e.dst, (int8_t)e.a, (int8_t)e.b, e.width,
		       e.from, e.shift, e.reads, e.writes, e.flags, e.imm, e.disp);
	printf("\n");
}

/* --- all of them --- */

/* Disassembles FILE, which has N words, and compares. */
static bool run(struct check *c, const char *file, size_t n)
{
	const char *objdump = getenv("OBJDUMP");
	char command[4200], *line = NULL;
	size_t cap = 0, lines = 0;
	snprintf(command, sizeof command, "%s -D -z -b binary -m aarch64 -M no-aliases '%s'",
		 objdump ? objdump : "aarch64-linux-gnu-objdump", file);
	FILE *f = popen(command, "r");
	while (f && getline(&line, &cap, f) > 0) {
		uint64_t va;
		uint32_t word;
		int used = 0;
		if (sscanf(line, " %" SCNx64 ": %" SCNx32 " %n", &va, &word, &used) == 2 && used) {
			lines++;
			compare(c, word, va, line + used);
		}
	}
	free(line);
	if (f && pclose(f) == 0 && lines == n)
		return true;
	fprintf(stderr, "objdump: %zu lines for %zu words\n", lines, n);
	return false;
}

static bool compare_all(struct check *c)
{
	char name[] = "/tmp/check_a64.XXXXXX";
	int fd = mkstemp(name);
	uint32_t *word = malloc(CHUNK * sizeof *word);
	size_t n = 0;
	bool ok = fd >= 0 && word;
	for (uint64_t w = 0; ok && w <= UINT64_C(1) << 32; w++) {
		bool end = w >> 32;
		if (!end && !(w & 7) && !c->seen[w >> 3]) {
			w += 7;
			continue;
		}
		if (!end && (c->seen[w >> 3] >> (w & 7) & 1))
			word[n++] = (uint32_t)w;
		if (n < CHUNK && !end)
			continue;
		ok = ftruncate(fd, 0) == 0 &&
		     pwrite(fd, word, n * sizeof *word, 0) == (ssize_t)(n * sizeof *word) &&
		     (!n || run(c, name, n));
		n = 0;
	}
	free(word);
	if (fd >= 0) {
		close(fd);
		unlink(name);
	}
	return ok;
}

static void see_section(struct check *c, const uint8_t *p, uint64_t size)
{
	for (uint64_t i = 0; i + 4 <= size; i += 4) {
		uint32_t word;
		memcpy(&word, p + i, 4);
		see(c, word);
		c->words++;
	}
}

static void see_file(struct check *c, const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size < sizeof(Elf64_Ehdr)) {
		close(fd);
		return;
	}
	size_t size = (size_t)st.st_size;
	const uint8_t *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	const Elf64_Ehdr *eh = (const void *)p;
	bool ours = !memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
		    eh->e_ident[EI_DATA] == ELFDATA2LSB && eh->e_machine == EM_AARCH64 &&
		    eh->e_shentsize == sizeof(Elf64_Shdr) && eh->e_shoff <= size &&
		    (size - eh->e_shoff) / sizeof(Elf64_Shdr) >= eh->e_shnum &&
		    eh->e_shoff % 8 == 0;
	for (unsigned i = 0; ours && i < eh->e_shnum; i++) {
		const Elf64_Shdr *sh = (const Elf64_Shdr *)(const void *)(p + eh->e_shoff) + i;
		if ((sh->sh_flags & SHF_EXECINSTR) && sh->sh_type == SHT_PROGBITS &&
		    sh->sh_offset <= size && size - sh->sh_offset >= sh->sh_size)
			see_section(c, p + sh->sh_offset, sh->sh_size);
	}
	c->files += ours;
	munmap((void *)p, size);
}

static void see_random(struct check *c, uint64_t n)
{
	uint64_t x = 0x9e3779b97f4a7c15;
	while (n--) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		see(c, (uint32_t)(x >> 16));
	}
}

int main(int argc, char **argv)
{
	struct check c = { .seen = calloc(1, UINT64_C(1) << 29) };
	if (!c.seen)
		return 2;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--aliases"))
			c.aliases = true;
		else if (!strcmp(argv[i], "--random") && i + 1 < argc)
			see_random(&c, strtoull(argv[++i], NULL, 0));
		else
			see_file(&c, argv[i]);
	}
	if (!compare_all(&c))
		return 2;
	printf("%" PRIu64 " files, %" PRIu64 " instructions, %" PRIu64
	       " distinct words compared, %" PRIu64 " refused by both, %" PRIu64
	       " by objdump only, %" PRIu64 " differences\n",
	       c.files, c.words, c.compared, c.both_invalid, c.only_ours, c.differences);
	free(c.seen);
	return c.differences ? 1 : 0;
}
