/* toy.h: programs of the architecture that does not exist (arch.h), in the making, folded and
 * verified. */
#ifndef TESTS_UNIT_MAKE_TOY_H
#define TESTS_UNIT_MAKE_TOY_H
#include "tests/unit/make/arch.h"
#include "tests/unit/make/elf.h"
#include "icf/pipeline.h"
#include "icf/verify/verify.h"
#include <fcntl.h>

/* Linked with --wrap: whoever opens an image gets here. */
struct elfrw_err *__wrap_elfrw_arch_find(const Elf64_Ehdr *eh, const struct elfrw_arch **ret);
struct elfrw_err *__wrap_elfrw_arch_find(const Elf64_Ehdr *eh, const struct elfrw_arch **ret)
{
	*ret = eh->e_machine == TOY_MACHINE ? &toy_arch : NULL;
	return *ret ? NULL : elfrw_error("not the machine of this test");
}

#define TEXT 0x401000u
#define DATA 0x480000u
#define MAX  0x40000u

/* A program in the making. */
struct toy {
	struct be b;
	uint32_t text, data;
	uint8_t code[MAX];
	uint32_t n;         /* bytes of code */
	uint8_t bytes[256]; /* of data */
	bool shared;        /* a library, whose code has no relocations */
};

static inline void toy_init(struct toy *t)
{
	memset(t, 0, sizeof *t);
	be_init(&t->b, ET_EXEC);
	/* Numbered before they are filled, so that symbols can name them. */
	t->text = 1;
	t->data = 2;
}

static inline uint64_t here(const struct toy *t)
{
	return TEXT + t->n;
}

static inline void put(struct toy *t, uint32_t word)
{
	assert_true(t->n + 4 <= MAX);
	elfrw_put32(t->code + t->n, word);
	t->n += 4;
}

/* An instruction that names TARGET. */
static inline void name(struct toy *t, enum toy_op op, unsigned rd, uint64_t target)
{
	uint8_t form = op == TOY_LOW ? TOY_F_LOW : toy_form_of(op);
	put(t, TOY_WORD(op, rd, op == TOY_LOW ? rd : 0));
	if (!elfrw_form_write(&toy_forms[form], t->code + t->n - 4, here(t) - 4, target))
		fail_msg("instruction %u at %#lx does not reach", op, (unsigned long)here(t) - 4);
}

/* N instructions of which SEED tells one function's from another's. */
static inline void filler(struct toy *t, unsigned n, unsigned seed)
{
	for (unsigned i = 0; i < n; i++)
		put(t, TOY_WORD(TOY_ADD, 3, seed * 64 + (i & 63)));
}

/* A function begins here, aligned to 16; its address. */
static inline uint64_t begin(struct toy *t, const char *symbol)
{
	while (t->n % 16)
		put(t, TOY_WORD(TOY_NOP, 0, 0));
	be_symbol(&t->b, symbol, here(t), 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), t->text);
	return here(t);
}

static inline void end(struct toy *t)
{
	put(t, TOY_WORD(TOY_RET, 0, 0));
	Elf64_Sym *s = &t->b.sym[t->b.n_sym - 1];
	s->st_size = here(t) - s->st_value;
}

static inline uint64_t leaf(struct toy *t, const char *symbol, unsigned n, unsigned seed)
{
	uint64_t at = begin(t, symbol);
	filler(t, n, seed);
	end(t);
	return at;
}

/* Writes the program to PATH; WORDS: what its data holds, each a function. */
static inline void toy_save(struct toy *t, const uint64_t *words, size_t n, char path[BE_PATH_SIZE])
{
	struct be *b = &t->b;
	uint8_t data[sizeof t->bytes];
	assert_true(n * 8 + 64 <= sizeof data);
	memcpy(data, t->bytes, sizeof data);
	for (size_t i = 0; i < n; i++)
		memcpy(data + i * 8, &words[i], 8);
	be_section(b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, t->code, t->n);
	b->sec[t->text].hdr.sh_addralign = 16;
	be_section(b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, data, sizeof data);
	b->sec[t->data].hdr.sh_addralign = 16;
	be_segment(b, PT_LOAD, PF_R, BE_BASE, 0x1000, 0x1000, 0x1000);
	be_segment(b, PT_LOAD, PF_R | PF_X, TEXT, t->n, t->n, 0x1000);
	be_segment(b, PT_LOAD, PF_R | PF_W, DATA, sizeof data, sizeof data, 0x1000);
	if (t->shared)
		b->type = ET_DYN;
	else
		be_reloc(b, t->text, TEXT, TOY_R_NONE, 0, 0);
	for (size_t i = 0; i < n; i++) {
		uint32_t sym = b->n_sym - 1;
		while (sym && b->sym[sym].st_value != words[i])
			sym--;
		assert_true(sym);
		be_reloc(b, t->data, DATA + i * 8, TOY_R_ABS64, sym, 0);
	}
	size_t size;
	uint8_t *f = be_build(b, &size);
	be_ehdr(f)->e_machine = TOY_MACHINE;
	be_save(f, size, path);
	free(f);
	be_deinit(b);
}

struct folded {
	char in[BE_PATH_SIZE], out[BE_PATH_SIZE];
	struct icf_run run;
	struct icf_options opt;
	struct elfrw_image img; /* of the output */
};

/* MODE: options of the command line, at most two. */
static inline struct elfrw_err *fold(struct folded *f, const char *mode, const char *more)
{
	char *argv[] = { "icfold",         f->in,        "-o",         f->out,
			 "--allow-growth", (char *)mode, (char *)more, NULL };
	be_template(f->out);
	close(mkstemp(f->out));
	ELFRW_TRY(icf_options_parse(&f->opt, more ? 7 : 6, argv));
	ELFRW_TRY(icf_run_fold(&f->run, &f->opt));
	return elfrw_output_write(&f->run.out, f->out);
}

static inline void close_folded(struct folded *f)
{
	icf_run_deinit(&f->run);
	icf_options_deinit(&f->opt);
	elfrw_image_close(&f->img);
	unlink(f->in);
	unlink(f->out);
}

/* What the verifier says of OUT; the number of differences. */
static inline uint64_t verify(const struct folded *f, enum icf_verify_check *first)
{
	struct icf_verify_options opt = { .threads = 1,
					  .mode = f->opt.mode == ICF_MODE_ALL ? ICF_VERIFY_ALL
									      : ICF_VERIFY_SAFE };
	struct icf_verify_result r;
	be_ok(icf_verify(f->in, f->out, &opt, &r));
	uint64_t n = r.diff.len;
	for (size_t i = 0; i < r.diff.len && !first; i++)
		print_message("%s: %s\n", icf_verify_check_name(r.diff.data[i].check),
			      r.diff.data[i].text);
	if (n && first)
		*first = r.diff.data[0].check;
	assert_int_equal(r.equal, n == 0);
	icf_verify_result_deinit(&r);
	return n;
}

static inline void fold_good(struct folded *f, const char *mode, const char *more)
{
	be_ok(fold(f, mode, more));
	be_ok(elfrw_image_open(&f->img, f->out));
	assert_int_equal(verify(f, NULL), 0);
}

/* Where the unit at OLD went, and whether it was folded into that at KEPT. */
static const struct elfrw_addrmap_unit *unit(const struct folded *f, uint64_t old)
{
	uint32_t i = elfrw_addrmap_find(&f->run.plan.map, old);
	assert_int_not_equal(i, ELFRW_NO_UNIT);
	return &f->run.plan.map.unit[i];
}

static inline bool goes_into(const struct folded *f, uint64_t old, uint64_t kept)
{
	return unit(f, old)->kept == elfrw_addrmap_find(&f->run.plan.map, kept);
}

/* What the instruction at VA of the output names. */
static inline uint64_t named(const struct folded *f, uint64_t va, unsigned op)
{
	struct elfrw_insn in = { 0 };
	const uint8_t *p = elfrw_image_at(&f->img, va, 4);
	assert_non_null(p);
	assert_int_equal(toy_decode(p, 4, va, &in), 4);
	assert_int_equal(in.opcode, op);
	return in.target;
}
#endif
