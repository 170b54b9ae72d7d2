/* arch_pair.c: addresses that two instructions hold together, on an architecture that does not
 * exist (tests/unit/make/arch.h): found, compared, moved with what they name, and proved; and what
 * stays where a half is alone. */
#include "tests/unit/make/toy.h"

enum kind { IN_PAGE, REST, KINDS };

/* Two instructions that name TARGET in register RD. */
static void pair(struct toy *t, enum kind kind, unsigned rd, uint64_t target)
{
	uint64_t at = here(t);
	name(t, kind == IN_PAGE ? TOY_PAGE : TOY_HIGH, rd, target);
	put(t, TOY_WORD(kind == IN_PAGE ? TOY_LOW : TOY_REST, rd, rd));
	assert_true(elfrw_form_write(&toy_forms[kind == IN_PAGE ? TOY_F_LOW : TOY_F_REST],
				     t->code + t->n - 4, at, target));
}

/* What the halves at HIGH and LOW of the output name together. */
static uint64_t names(const struct folded *f, enum kind kind, uint64_t high, uint64_t low)
{
	uint64_t half = named(f, high, kind == IN_PAGE ? TOY_PAGE : TOY_HIGH);
	return elfrw_form_read(&toy_forms[kind == IN_PAGE ? TOY_F_LOW : TOY_F_REST],
			       elfrw_image_at(&f->img, low, 4), half);
}

struct pairs {
	struct toy *t;
	struct folded f;
	uint64_t g1, g2, far;
};

/* Begins a program with a function, its copy, and a third function some pages behind them. */
static void start(struct pairs *p)
{
	*p = (struct pairs){ .t = calloc(1, sizeof *p->t) };
	assert_non_null(p->t);
	toy_init(p->t);
	p->g1 = leaf(p->t, "g1", 300, 1);
	p->g2 = leaf(p->t, "g2", 300, 1);
	p->far = leaf(p->t, "far", 1500, 2);
}

static void stop(struct pairs *p)
{
	close_folded(&p->f);
	free(p->t);
}

static void save_and_fold(struct pairs *p, const char *mode)
{
	toy_save(p->t, NULL, 0, p->f.in);
	fold_good(&p->f, mode, NULL);
}

static bool stays(const struct pairs *p, uint64_t old)
{
	const struct elfrw_addrmap_unit *m = unit(&p->f, old);
	return m->old == m->body && m->entry == m->old && !(m->flags & ELFRW_UNIT_FOLDED);
}

/* Functions whose pairs name the same function, one that is folded into it, and another. */
static void test_same(void **state)
{
	(void)state;
	for (int k = 0; k < 2 * KINDS; k++) {
		enum kind kind = (enum kind)(k / 2);
		bool all = k % 2;
		struct pairs p;
		start(&p);
		const uint64_t target[] = { p.g1, p.g1, p.g2, p.far, DATA + 64 };
		static const char *const name_of[] = { "f1", "f2", "f3", "f4", "f5" };
		uint64_t f[5];
		for (unsigned i = 0; i < 5; i++) {
			f[i] = begin(p.t, name_of[i]);
			filler(p.t, 3, 3);
			pair(p.t, kind, 1, target[i]);
			filler(p.t, 8, 4);
			end(p.t);
		}
		save_and_fold(&p, all ? "--icf=all" : "--icf=safe");
		assert_true(goes_into(&p.f, p.g2, p.g1) && goes_into(&p.f, f[1], f[0]));
		assert_int_equal(goes_into(&p.f, f[2], f[0]), all);
		assert_true(goes_into(&p.f, f[3], f[3]) && goes_into(&p.f, f[4], f[4]));
		assert_true(unit(&p.f, p.far)->body < p.far && unit(&p.f, f[3])->body < f[3]);
		/* The function that is observed and folded has a thunk, unless all may merge. */
		assert_int_equal(unit(&p.f, p.g2)->entry == unit(&p.f, p.g1)->entry, all);
		for (unsigned i = 0; i < 5; i++) {
			uint64_t at = unit(&p.f, f[i])->body + 12;
			assert_int_equal(names(&p.f, kind, at, at + 4),
					 i < 4 ? unit(&p.f, target[i])->entry : target[i]);
		}
		stop(&p);
	}
}

/* One high half with two low halves. If both low halves name the same place, it may move. If they
 * name two functions, these stay. */
static void test_shared(void **state)
{
	(void)state;
	for (int two = 0; two < 2; two++) {
		struct pairs p;
		start(&p);
		uint64_t h = leaf(p.t, "h", 4, 5), f = begin(p.t, "f");
		name(p.t, TOY_PAGE, 1, h);
		put(p.t, TOY_WORD(TOY_LOW, 2, 1));
		assert_true(elfrw_form_write(&toy_forms[TOY_F_LOW], p.t->code + p.t->n - 4, 0,
					     two ? f : h));
		name(p.t, TOY_LOW, 1, h);
		filler(p.t, 8, 4);
		end(p.t);
		assert_int_equal(f >> 12, h >> 12);
		save_and_fold(&p, "--icf=all");
		uint64_t at = unit(&p.f, f)->body;
		assert_int_equal(stays(&p, h), two);
		assert_int_equal(stays(&p, f), two);
		assert_int_equal(names(&p.f, IN_PAGE, at, at + 8), unit(&p.f, h)->body);
		assert_int_equal(names(&p.f, IN_PAGE, at, at + 4), unit(&p.f, two ? f : h)->body);
		stop(&p);
	}
}

/* What may stand between the halves or lead to them. In each case but the first, the function that
 * they name stays. */
enum odd {
	NOTHING,
	CALLED,     /* a call, whose callee may use the register */
	COPIED,     /* the page is added to something */
	ENTERED,    /* a branch of the unit enters */
	ENTERED_BY, /* a branch of another unit enters */
	POINTED_TO, /* a pointer in data leads there */
	JUMPS,      /* the unit jumps indirectly */
	NEVER_LOW,  /* there is no low half */
	ODDS
};

static uint64_t odd_pair(struct toy *t, enum kind kind, enum odd odd, uint64_t target)
{
	uint64_t at = here(t), between = 0;
	if (odd == ENTERED)
		name(t, TOY_BC, 0, at + 8);
	at = here(t);
	name(t, kind == IN_PAGE ? TOY_PAGE : TOY_HIGH, 1, target);
	between = here(t);
	if (odd == CALLED)
		name(t, TOY_BL, 0, TEXT);
	else if (odd == COPIED)
		put(t, TOY_WORD(TOY_SUM, 4, 1) | 5 << 10);
	else
		put(t, TOY_WORD(TOY_NOP, 0, 0));
	if (odd == NEVER_LOW)
		return between;
	put(t, TOY_WORD(kind == IN_PAGE ? TOY_LOW : TOY_REST, 1, 1));
	assert_true(elfrw_form_write(&toy_forms[kind == IN_PAGE ? TOY_F_LOW : TOY_F_REST],
				     t->code + t->n - 4, at, target));
	return between;
}

static void test_odd(void **state)
{
	(void)state;
	for (int k = 0; k < 2 * ODDS; k++) {
		enum odd odd = (enum odd)(k / 2);
		enum kind kind = (enum kind)(k % 2);
		struct pairs p;
		start(&p);
		uint64_t h = leaf(p.t, "h", 4, 5), f = begin(p.t, "f");
		uint64_t between = odd_pair(p.t, kind, odd, h);
		filler(p.t, 8, 4);
		if (odd == JUMPS)
			put(p.t, TOY_WORD(TOY_JR, 0, 9));
		end(p.t);
		leaf(p.t, "tail", 4, 6);
		begin(p.t, "other");
		name(p.t, TOY_B, 0, odd == ENTERED_BY ? between : p.g1);
		end(p.t);
		if (odd == POINTED_TO)
			be_symbol(&p.t->b, "label", between, 0,
				  ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), p.t->text);
		toy_save(p.t, &between, odd == POINTED_TO, p.f.in);
		fold_good(&p.f, "--icf=all", NULL);
		if (stays(&p, h) != (odd != NOTHING) ||
		    (kind == REST && stays(&p, f) != (odd != NOTHING)))
			fail_msg("kind %d, case %d: %d %d", kind, odd, stays(&p, h), stays(&p, f));
		if (odd != NEVER_LOW) {
			uint64_t at = unit(&p.f, f)->body + (odd == ENTERED ? 4 : 0);
			assert_int_equal(names(&p.f, kind, at, at + 8), unit(&p.f, h)->body);
		}
		stop(&p);
	}
}

/* A low half whose high half is elsewhere: only its relocation tells what it is. */
static void test_alone(void **state)
{
	(void)state;
	for (int low = 0; low < 2; low++) {
		struct pairs p;
		start(&p);
		begin(p.t, "f");
		put(p.t, TOY_WORD(TOY_NOP, 0, 0));
		uint64_t at = here(p.t);
		name(p.t, TOY_LOW, 1, p.far);
		filler(p.t, 8, 4);
		end(p.t);
		if (low)
			be_reloc(&p.t->b, p.t->text, at, TOY_R_LOW, 3, 0);
		assert_int_equal(p.t->b.sym[3].st_value, p.far);
		save_and_fold(&p, "--icf=all");
		assert_int_equal(stays(&p, p.far), low);
		stop(&p);
	}
}

/* Changes BITS of the word at OFF in the file PATH. */
static void flip(const char *path, uint64_t off, uint32_t bits)
{
	int fd = open(path, O_RDWR);
	uint8_t word[4];
	assert_int_equal(pread(fd, word, 4, (off_t)off), 4);
	elfrw_put32(word, elfrw_get32(word) ^ bits);
	assert_int_equal(pwrite(fd, word, 4, (off_t)off), 4);
	close(fd);
}

/* A high half and a low half with an odd thing between them, both of which relocations tell. They
 * are written anew, each by itself, unless other relocations of the section stand at wrong places.
 */
static void test_told(void **state)
{
	(void)state;
	for (int k = 0; k < 2 * NEVER_LOW; k++) {
		enum odd odd = (enum odd)(k / 2);
		bool misplaced = k % 2;
		struct pairs p;
		if (odd == NOTHING || odd == ENTERED_BY || odd == POINTED_TO)
			continue;
		start(&p);
		uint64_t h = leaf(p.t, "h", 4, 5), f = begin(p.t, "f");
		uint32_t sym = p.t->b.n_sym - 1;
		while (p.t->b.sym[sym].st_value != h)
			sym--;
		uint64_t at = odd_pair(p.t, IN_PAGE, odd, h) - 4;
		be_reloc(&p.t->b, p.t->text, at, TOY_R_PAGE, sym, 0);
		be_reloc(&p.t->b, p.t->text, at + 8, TOY_R_FIELD, sym, 0);
		if (misplaced)
			be_reloc(&p.t->b, p.t->text, at + 12, TOY_R_CALL, sym, 0);
		filler(p.t, 8, 4);
		if (odd == JUMPS)
			put(p.t, TOY_WORD(TOY_JR, 0, 9));
		end(p.t);
		leaf(p.t, "tail", 4, 6);
		save_and_fold(&p, "--icf=all");
		if (stays(&p, h) != misplaced)
			fail_msg("case %d, misplaced %d: %d", odd, misplaced, stays(&p, h));
		uint64_t new = unit(&p.f, f)->body + (at - f), off;
		assert_int_equal(names(&p.f, IN_PAGE, new, new + 8), unit(&p.f, h)->body);
		assert_true(elfrw_output_offset(&p.f.run.out, new, &off));
		for (unsigned half = 0; half < 2; half++) {
			enum icf_verify_check check = ICF_VC_CHECKS;
			flip(p.f.out, off + 8 * half, half ? 1u << 10 : 1u << 5);
			assert_true(verify(&p.f, &check) != 0);
			flip(p.f.out, off + 8 * half, half ? 1u << 10 : 1u << 5);
		}
		assert_int_equal(verify(&p.f, NULL), 0);
		stop(&p);
	}
}

/* Kept relocations, of packed fields and of data: a whole word there needs no form. */
static void test_relocs(void **state)
{
	(void)state;
	struct pairs p;
	start(&p);
	uint32_t sym = p.t->b.n_sym - 1; /* far */
	leaf(p.t, "g3", 300, 1);
	uint64_t f = begin(p.t, "f");
	be_reloc(&p.t->b, p.t->text, f, TOY_R_CALL, sym, 0);
	name(p.t, TOY_BL, 0, p.far);
	be_reloc(&p.t->b, p.t->text, f + 4, TOY_R_PAGE, sym, 16);
	be_reloc(&p.t->b, p.t->text, f + 8, TOY_R_LOW, sym, 16);
	pair(p.t, IN_PAGE, 1, p.far + 16);
	filler(p.t, 8, 4);
	end(p.t);
	/* In data: a distance, and the address of the copy. */
	elfrw_put32(p.t->bytes + 72, (uint32_t)(p.far - (DATA + 72)));
	be_reloc(&p.t->b, p.t->data, DATA + 72, TOY_R_PREL32, sym, 0);
	toy_save(p.t, &p.g2, 1, p.f.in);
	fold_good(&p.f, "--icf=all", "--emit-relocs");
	uint64_t at = unit(&p.f, f)->body, far = unit(&p.f, p.far)->body;
	assert_true(at < f && far < p.far);
	assert_int_equal(named(&p.f, at, TOY_BL), far);
	assert_int_equal(names(&p.f, IN_PAGE, at + 4, at + 8), far + 16);
	uint32_t distance = elfrw_get32(elfrw_image_at(&p.f.img, DATA + 72, 4));
	assert_int_equal((uint32_t)(DATA + 72 + distance), far);
	assert_int_equal(elfrw_get64(elfrw_image_at(&p.f.img, DATA, 8)), unit(&p.f, p.g1)->body);
	stop(&p);
}

/* Where the code at VA is in the input. */
static uint64_t offset_in(const struct pairs *p, uint64_t va)
{
	struct elfrw_image in;
	be_ok(elfrw_image_open(&in, p->f.in));
	uint64_t off = in.section[p->t->text].hdr.sh_offset + (va - TEXT);
	elfrw_image_close(&in);
	return off;
}

/* The same bits change in both files, or in the output alone. The verifier finds each change. */
static void test_verify(void **state)
{
	(void)state;
	for (int k = 0; k < KINDS; k++) {
		enum kind kind = (enum kind)k;
		struct pairs p;
		start(&p);
		leaf(p.t, "g3", 300, 1);
		uint64_t f = begin(p.t, "f");
		put(p.t, TOY_WORD(TOY_NOP, 0, 0));
		(void)odd_pair(p.t, kind, NOTHING, p.far);
		filler(p.t, 8, 4);
		end(p.t);
		uint64_t other = begin(p.t, "other");
		name(p.t, TOY_B, 0, f + 4);
		end(p.t);
		save_and_fold(&p, "--icf=all");
		uint64_t off, old = offset_in(&p, f);
		assert_true(elfrw_output_offset(&p.f.run.out, unit(&p.f, f)->body, &off));
		const uint32_t nop = TOY_WORD(TOY_NOP, 0, 0);
		const struct {
			unsigned insn;
			uint32_t bits;
			bool both;
		} wrong[] = {
			{ 1, 1u << 5, false },  /* the high half */
			{ 3, 1u << 10, false }, /* the low half */
			{ 1, 1, false },        /* its register */
			{ 3, 2, false },
			{ 3, 1u << 5, false },
			/* Instructions between the halves: a copy of the register, a call, a
			 * return. */
			{ 2, nop ^ (TOY_WORD(TOY_SUM, 4, 1) | 5 << 10), true },
			{ 2, nop ^ TOY_WORD(TOY_CR, 0, 9), true },
			{ 2, nop ^ TOY_WORD(TOY_RET, 0, 0), true },
			/* A branch before them that leads there; an indirect jump. */
			{ 0, nop ^ (TOY_WORD(TOY_BC, 0, 0) | 2 << 5), true },
			{ 0, nop ^ TOY_WORD(TOY_JR, 0, 9), true },
			/* The low half belongs to another register, which nothing sets. */
			{ 1, 1, true },
		};
		for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
			for (int undo = 0; undo < 2; undo++) {
				flip(p.f.out, off + 4 * wrong[i].insn, wrong[i].bits);
				if (wrong[i].both)
					flip(p.f.in, old + 4 * wrong[i].insn, wrong[i].bits);
				enum icf_verify_check check = ICF_VC_CHECKS;
				if ((verify(&p.f, undo ? NULL : &check) == 0) != undo)
					fail_msg("kind %d, change %zu: not seen", kind, i);
			}
		}
		/* The branch of another unit leads between the halves. */
		enum icf_verify_check check = ICF_VC_CHECKS;
		flip(p.f.in, offset_in(&p, other), 1 ^ 2);
		assert_true(elfrw_output_offset(&p.f.run.out, unit(&p.f, other)->body, &off));
		flip(p.f.out, off, 1 ^ 2);
		assert_true(verify(&p.f, &check) == 1 && check == ICF_VC_ADDRESS);
		stop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),   cmocka_unit_test(test_shared),
		cmocka_unit_test(test_odd),    cmocka_unit_test(test_alone),
		cmocka_unit_test(test_told),   cmocka_unit_test(test_relocs),
		cmocka_unit_test(test_verify),
	};
	return cmocka_run_group_tests_name("arch_pair", tests, NULL, NULL);
}
