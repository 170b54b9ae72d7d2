/* arch.c: the generic code, from the image to the proof, on programs of an architecture that does
 * not exist (tests/unit/make/arch.h): whatever it does without x86-64's encodings it does without
 * knowing them. */
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
	uint32_t n; /* bytes of code */
};

static void toy_init(struct toy *t)
{
	memset(t, 0, sizeof *t);
	be_init(&t->b, ET_EXEC);
	/* Numbered before they are filled, so that symbols can name them. */
	t->text = 1;
	t->data = 2;
}

static uint64_t here(const struct toy *t)
{
	return TEXT + t->n;
}

static void put(struct toy *t, uint32_t word)
{
	assert_true(t->n + 4 <= MAX);
	elfrw_put32(t->code + t->n, word);
	t->n += 4;
}

/* An instruction that names TARGET. */
static void name(struct toy *t, enum toy_op op, unsigned rd, uint64_t target)
{
	uint8_t form = op == TOY_LOW ? TOY_F_LOW : toy_form_of(op);
	put(t, TOY_WORD(op, rd, op == TOY_LOW ? rd : 0));
	if (!elfrw_form_write(&toy_forms[form], t->code + t->n - 4, here(t) - 4, target))
		fail_msg("instruction %u at %#lx does not reach", op, (unsigned long)here(t) - 4);
}

/* N instructions of which SEED tells one function's from another's. */
static void filler(struct toy *t, unsigned n, unsigned seed)
{
	for (unsigned i = 0; i < n; i++)
		put(t, TOY_WORD(TOY_ADD, 3, seed * 64 + (i & 63)));
}

/* A function begins here, aligned to 16; its address. */
static uint64_t begin(struct toy *t, const char *symbol)
{
	while (t->n % 16)
		put(t, TOY_WORD(TOY_NOP, 0, 0));
	be_symbol(&t->b, symbol, here(t), 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), t->text);
	return here(t);
}

static void end(struct toy *t)
{
	put(t, TOY_WORD(TOY_RET, 0, 0));
	Elf64_Sym *s = &t->b.sym[t->b.n_sym - 1];
	s->st_size = here(t) - s->st_value;
}

static uint64_t leaf(struct toy *t, const char *symbol, unsigned n, unsigned seed)
{
	uint64_t at = begin(t, symbol);
	filler(t, n, seed);
	end(t);
	return at;
}

/* Writes the program to PATH; WORDS: what its data holds, each a function. */
static void toy_save(struct toy *t, const uint64_t *words, size_t n, char path[BE_PATH_SIZE])
{
	struct be *b = &t->b;
	uint8_t data[256] = { 0 };
	assert_true(n * 8 + 64 <= sizeof data);
	memcpy(data, words, n * 8);
	be_section(b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, t->code, t->n);
	b->sec[t->text].hdr.sh_addralign = 16;
	be_section(b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, data, sizeof data);
	b->sec[t->data].hdr.sh_addralign = 16;
	be_segment(b, PT_LOAD, PF_R, BE_BASE, 0x1000, 0x1000, 0x1000);
	be_segment(b, PT_LOAD, PF_R | PF_X, TEXT, t->n, t->n, 0x1000);
	be_segment(b, PT_LOAD, PF_R | PF_W, DATA, sizeof data, sizeof data, 0x1000);
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
static struct elfrw_err *fold(struct folded *f, const char *mode, const char *more)
{
	char *argv[] = { "icfold",         f->in,        "-o",         f->out,
			 "--allow-growth", (char *)mode, (char *)more, NULL };
	be_template(f->out);
	close(mkstemp(f->out));
	ELFRW_TRY(icf_options_parse(&f->opt, more ? 7 : 6, argv));
	ELFRW_TRY(icf_run_fold(&f->run, &f->opt));
	return elfrw_output_write(&f->run.out, f->out);
}

static void close_folded(struct folded *f)
{
	icf_run_deinit(&f->run);
	icf_options_deinit(&f->opt);
	elfrw_image_close(&f->img);
	unlink(f->in);
	unlink(f->out);
}

/* What the verifier says of OUT; the number of differences. */
static uint64_t verify(const struct folded *f, enum icf_verify_check *first)
{
	struct icf_verify_options opt = { .threads = 1 };
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

static void fold_good(struct folded *f, const char *mode, const char *more)
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

static bool goes_into(const struct folded *f, uint64_t old, uint64_t kept)
{
	return unit(f, old)->kept == elfrw_addrmap_find(&f->run.plan.map, kept);
}

/* What the instruction at VA of the output names. */
static uint64_t named(const struct folded *f, uint64_t va, unsigned op)
{
	struct elfrw_insn in;
	const uint8_t *p = elfrw_image_at(&f->img, va, 4);
	assert_non_null(p);
	assert_int_equal(toy_decode(p, 4, va, &in), 4);
	assert_int_equal(in.opcode, op);
	return in.target;
}

/* Two functions that differ in where their references stand, and those that differ in target. */
static void test_fold(void **state)
{
	(void)state;
	struct toy *t = calloc(1, sizeof *t);
	struct folded f = { 0 };
	assert_non_null(t);
	toy_init(t);
	uint64_t g1 = leaf(t, "g1", 12, 1), h = leaf(t, "h", 12, 2), fn[6];
	static const char *const names[] = { "f1", "f2", "f3", "f4", "f5", "f6" };
	uint64_t g2 = 0;
	for (unsigned i = 0; i < 6; i++) {
		if (i == 1)
			g2 = leaf(t, "g2", 12, 1);
		for (unsigned k = 0; k < 4 * i; k++) /* another place in its page */
			put(t, TOY_WORD(TOY_NOP, 0, 0));
		fn[i] = begin(t, names[i]);
		name(t, TOY_PAGE, 1, DATA + (i == 2 ? 0x1000 : 0)); /* f3: another page */
		name(t, TOY_LOW, 1, DATA + (i == 3 ? 72 : 64));     /* f4: another place in it */
		name(t, TOY_LOAD, 2, DATA + (i == 4 ? 68 : 64));    /* f5: other data */
		name(t, TOY_BL, 0, i == 5 ? h : i == 1 ? g2 : g1);  /* f6: another callee */
		name(t, TOY_BC, 0, fn[i] + 4);
		filler(t, 8, 9);
		end(t);
	}
	toy_save(t, NULL, 0, f.in);
	fold_good(&f, "--icf=all", NULL);
	assert_true(goes_into(&f, g2, g1));
	assert_true(goes_into(&f, fn[1], fn[0]));
	for (unsigned i = 2; i < 6; i++)
		assert_true(goes_into(&f, fn[i], fn[i]));
	assert_true(unit(&f, fn[5])->body < fn[5]);
	/* All that moved names what it named. */
	for (unsigned i = 0; i < 6; i++) {
		uint64_t at = unit(&f, fn[i])->body;
		assert_int_equal(named(&f, at, TOY_PAGE), DATA + (i == 2 ? 0x1000 : 0));
		assert_int_equal(named(&f, at + 8, TOY_LOAD), DATA + (i == 4 ? 68 : 64));
		assert_int_equal(named(&f, at + 12, TOY_BL), unit(&f, i == 5 ? h : g1)->body);
		assert_int_equal(named(&f, at + 16, TOY_BC), at + 4);
	}
	close_folded(&f);
	free(t);
}

/* An observed function's address is a thunk's; gaps are whole traps. */
static void test_thunk(void **state)
{
	(void)state;
	static const char *const more[] = { NULL, "--in-place", "--emit-relocs" };
	for (int k = 0; k < 6; k++) {
		int pad = k & 1;
		struct toy *t = calloc(1, sizeof *t);
		struct folded f = { 0 };
		assert_non_null(t);
		toy_init(t);
		uint64_t fn[3];
		static const char *const names[] = { "f1", "f2", "f3" };
		for (unsigned i = 0; i < 3; i++) {
			fn[i] = begin(t, names[i]);
			if (pad)
				put(t, TOY_WORD(TOY_PAD, 0, 0));
			filler(t, 20, 1);
			end(t);
			leaf(t, i ? i == 1 ? "h2" : "h3" : "h1", 5 + i, 4 + i);
		}
		toy_save(t, fn, 3, f.in);
		fold_good(&f, "--icf=safe", more[k / 2]);
		assert_true(goes_into(&f, fn[1], fn[0]) && goes_into(&f, fn[2], fn[0]));
		for (unsigned i = 0; i < 3; i++) {
			const struct elfrw_addrmap_unit *m = unit(&f, fn[i]);
			const uint8_t *word = elfrw_image_at(&f.img, DATA + i * 8, 8);
			assert_int_equal(elfrw_get64(word), m->entry);
			assert_int_equal(m->entry == m->body, i == 0);
			struct elfrw_thunk_read r;
			if (i) {
				unsigned n = toy_read_thunk(
					elfrw_image_at(&f.img, m->entry, 4 + 4 * (unsigned)pad),
					4 + 4 * (unsigned)pad, m->entry, &r);
				assert_int_equal(n, 4 + 4 * pad);
				assert_int_equal(r.target, m->body);
				assert_int_equal(r.endbr, pad);
			}
		}
		close_folded(&f);
		free(t);
	}
}

/* A folded part that is out of its parent's reach. */
static void test_reach(void **state)
{
	(void)state;
	for (int far = 0; far < 2; far++) {
		struct toy *t = calloc(1, sizeof *t);
		struct folded f = { 0 };
		assert_non_null(t);
		toy_init(t);
		uint64_t c1 = leaf(t, "c1", 20, 1);
		leaf(t, "filler", far ? 9000 : 100, 2);
		uint64_t at = begin(t, "f");
		name(t, TOY_BC, 0, here(t) + 12 * 4);
		filler(t, 10, 3);
		end(t);
		uint64_t c2 = leaf(t, "c2", 20, 1);
		assert_int_equal(c2, at + 12 * 4);
		toy_save(t, NULL, 0, f.in);
		if (far)
			be_fails(fold(&f, "--icf=all", NULL), "does not fit any more");
		else {
			fold_good(&f, "--icf=all", NULL);
			assert_true(goes_into(&f, c2, c1));
			assert_int_equal(named(&f, unit(&f, at)->body, TOY_BC), unit(&f, c1)->body);
		}
		close_folded(&f);
		free(t);
	}
}

/* The page of an address of code: its low half could name what moves. */
static void test_halves(void **state)
{
	(void)state;
	struct toy *t = calloc(1, sizeof *t);
	struct folded f = { 0 };
	assert_non_null(t);
	toy_init(t);
	uint64_t g = leaf(t, "g", 12, 1);
	begin(t, "f");
	name(t, TOY_PAGE, 1, g);
	name(t, TOY_LOW, 1, g);
	end(t);
	toy_save(t, NULL, 0, f.in);
	be_fails(fold(&f, "--icf=all", NULL), "in two halves");
	close_folded(&f);
	free(t);
}

/* Bits of the output that are changed, each of them in another kind of field: the verifier reads
 * every one. */
static void test_verify(void **state)
{
	(void)state;
	struct toy *t = calloc(1, sizeof *t);
	struct folded f = { 0 };
	assert_non_null(t);
	toy_init(t);
	leaf(t, "a", 12, 1);
	uint64_t g = leaf(t, "b", 12, 1), fn = begin(t, "f");
	name(t, TOY_PAGE, 1, DATA);
	name(t, TOY_LOW, 1, DATA + 64);
	name(t, TOY_LOAD, 2, DATA + 64);
	name(t, TOY_BL, 0, g);
	filler(t, 8, 9);
	end(t);
	toy_save(t, NULL, 0, f.in);
	fold_good(&f, "--icf=all", NULL);
	uint64_t at = unit(&f, fn)->body, off;
	assert_true(at != fn);
	assert_true(elfrw_output_offset(&f.run.out, at, &off));
	/* Lowest bit of each field; then bits beside it: register, operation. */
	static const struct {
		unsigned insn, bit;
	} flip[] = { { 0, 24 }, { 0, 5 }, { 1, 10 }, { 2, 5 },  { 3, 0 },
		     { 0, 0 },  { 1, 5 }, { 2, 1 },  { 3, 26 }, { 5, 7 } };
	for (size_t i = 0; i < sizeof flip / sizeof *flip; i++) {
		int fd = open(f.out, O_RDWR);
		uint8_t byte;
		off_t place = (off_t)(off + 4 * flip[i].insn + flip[i].bit / 8);
		assert_int_equal(pread(fd, &byte, 1, place), 1);
		byte ^= (uint8_t)(1u << flip[i].bit % 8);
		assert_int_equal(pwrite(fd, &byte, 1, place), 1);
		enum icf_verify_check check = ICF_VC_CHECKS;
		if (!verify(&f, &check))
			fail_msg("bit %u of instruction %u is not seen", flip[i].bit, flip[i].insn);
		byte ^= (uint8_t)(1u << flip[i].bit % 8);
		assert_int_equal(pwrite(fd, &byte, 1, place), 1);
		close(fd);
	}
	assert_int_equal(verify(&f, NULL), 0);
	close_folded(&f);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fold),   cmocka_unit_test(test_thunk),
		cmocka_unit_test(test_reach),  cmocka_unit_test(test_halves),
		cmocka_unit_test(test_verify),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
