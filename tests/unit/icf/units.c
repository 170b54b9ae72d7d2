/* units.c: how code is cut into units, what refers to what, and what is glued together, extended or
 * pinned. */
#include "tests/unit/make/prog.h"

static const struct icf_ref *ref_at(const struct tp *t, const char *fn, uint64_t off)
{
	const struct icf_unit *u = tp_u(t, fn);
	const struct icf_ref *ref = icf_unit_refs(&t->prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (u->start + ref[r].off == tp_sym(t, fn) + off)
			return &ref[r];
	return NULL;
}

static void test_plain(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		TEXT ALIGN FN("a") "nop\nret\n" END("a") ALIGN FN("b") "nop\nnop\nret\n" END("b")
			ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(t.prog.unit.len, 4);
	const struct icf_unit *a = tp_u(&t, "a"), *b = tp_u(&t, "b");
	assert_int_equal(a->end - a->start, 2);
	assert_int_equal(b->end - b->start, 3);
	assert_int_equal(b->start, a->start + 16);
	assert_int_equal(a->kind, ICF_UNIT_FUNC);
	assert_int_equal(a->reason, ICF_OK);
	assert_true(a->flags & ICF_UNIT_FUNC_SYMBOL);
	assert_false(a->flags & (ICF_UNIT_OBSERVED | ICF_UNIT_FALLS | ICF_UNIT_GLUED |
				 ICF_UNIT_PINNED | ICF_UNIT_ENDBR));
	assert_int_equal(icf_unit_at(&t.prog, a->end), ICF_NONE); /* padding */
	assert_int_equal(icf_unit_at(&t.prog, 0), ICF_NONE);
	assert_int_equal(icf_unit_at(&t.prog, UINT64_MAX), ICF_NONE);
	char buf[32];
	assert_string_equal(icf_unit_name(&t.prog, tp_unit(&t, "b"), buf), "b");
	tp_close(&t);
}

static void test_no_relocs(void **state)
{
	(void)state;
	for (int pie = 0; pie < 2; pie++) {
		struct tp t;
		tp_open(&t, TEXT FN("a") "ret\n" END("a"), pie ? "-pie --no-dynamic-linker" : "",
			ICF_MODE_SAFE);
		assert_true(t.prog.inferred);
		/* Where addresses are fixed, any number may be one. */
		assert_int_equal(t.prog.loose != NULL, !pie);
		tp_close(&t);
	}
}

static void test_aliases(void **state)
{
	(void)state;
	struct tp t;
	/* Two names of one function, with different sizes; and a function that overlaps the end of
	 * its neighbour. */
	tp_open(&t,
		TEXT ALIGN FN("a") FN("a2") "nop\nnop\n.size a2,.-a2\nret\n" END("a")
			ALIGN FN("b") "nop\n" FN("c") "nop\nret\n" END("b") "nop\nret\n" END("c")
				ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	const struct icf_unit *a = tp_u(&t, "a"), *b = tp_u(&t, "b");
	assert_int_equal(a->end - a->start, 3);
	assert_int_equal(a->n_sym, 2);
	assert_int_equal(a->reason, ICF_OK);
	assert_int_equal(tp_unit(&t, "c"), tp_unit(&t, "b"));
	assert_int_equal(b->end - b->start, 5);
	assert_int_equal(b->n_sym, 2);
	assert_int_equal(b->reason, ICF_INNER_ENTRY);
	tp_close(&t);
}

static void test_zero_size(void **state)
{
	(void)state;
	struct tp t;
	/* A symbol without a size reaches to the next bound, less the padding. A symbol without a
	 * type either is not known to be a function. */
	tp_open(&t,
		TEXT ALIGN FN("a") "nop\nret\n" ALIGN
				   "b:\nmovl $1,%eax\nret\n" ALIGN FN("c") "ret\n" END("c") ANCHOR
		"d: ret\n.p2align 5\n",
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	const struct icf_unit *a = tp_u(&t, "a"), *b = tp_u(&t, "b"), *d = tp_u(&t, "d");
	assert_int_equal(a->end - a->start, 2);
	assert_int_equal(a->kind, ICF_UNIT_FUNC);
	assert_int_equal(b->end - b->start, 6);
	assert_int_equal(b->kind, ICF_UNIT_RIGID);
	assert_int_equal(b->reason, ICF_NOT_A_FUNCTION);
	assert_int_equal(d->end - d->start, 1);
	tp_close(&t);
	/* A size-less symbol inside a sized function is a label. */
	tp_open(&t, TEXT ALIGN FN("a") "nop\ninner: nop\nret\n" END("a") ANCHOR, "", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(tp_unit(&t, "inner"), tp_unit(&t, "a"));
	assert_int_equal(tp_u(&t, "a")->reason, ICF_OK);
	tp_close(&t);
}

static void test_fde_bounds(void **state)
{
	(void)state;
	struct tp t;
	/* An FDE alone makes a unit, and one over two symbols makes them one. */
	tp_open(&t,
		TEXT ALIGN FN("a") "ret\n" END("a") ALIGN
		".cfi_startproc\nmovl $3,%eax\nret\n.cfi_endproc\n" ALIGN FN(
			"b") ".cfi_startproc\nnop\nret\n" END("b")
			FN("c") "nop\nret\n" END("c") ".cfi_endproc\n" ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	uint32_t i = icf_unit_at(&t.prog, tp_sym(&t, "a") + 16);
	assert_int_not_equal(i, ICF_NONE);
	const struct icf_unit *u = &t.prog.unit.data[i];
	assert_int_equal(u->end - u->start, 6);
	assert_int_equal(u->kind, ICF_UNIT_FUNC);
	assert_int_equal(u->n_fde, 1);
	assert_int_equal(u->sym, ICF_NONE);
	char buf[32], want[32];
	snprintf(want, sizeof want, "0x%llx", (unsigned long long)u->start);
	assert_string_equal(icf_unit_name(&t.prog, i, buf), want);
	assert_int_equal(tp_unit(&t, "b"), tp_unit(&t, "c"));
	assert_int_equal(tp_u(&t, "b")->reason, ICF_INNER_ENTRY);
	tp_close(&t);
}

static void test_opaque(void **state)
{
	(void)state;
	struct tp t;
	/* Code without any name between two functions; data with a name; bytes that are no
	 * instruction inside a function. */
	tp_open(&t,
		TEXT ALIGN FN("before") "ret\n" END("before") ALIGN
		"xorl %eax,%eax\ncall far_away\nret\n" ALIGN FN("after") "ret\n" END("after")
			ALIGN FN("free1") "ret\n" END("free1") ALIGN
		".type obj,@object\nobj: .quad 0x1122334455667788\n.size obj,8\n" ALIGN FN(
			"free2") "ret\n" END("free2")
			ALIGN FN("bad") "nop\n.byte 0x06\nret\n" END("bad")
				ALIGN FN("free3") "ret\n" END("free3")
					ALIGN FN("far_away") "movl $7,%eax\nret\n" END("far_away")
						ALIGN FN("free4") "ret\n" END("free4") ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	uint32_t gap = icf_unit_at(&t.prog, tp_sym(&t, "before") + 16);
	assert_int_not_equal(gap, ICF_NONE);
	assert_int_equal(t.prog.unit.data[gap].kind, ICF_UNIT_OPAQUE);
	assert_int_equal(tp_u(&t, "obj")->kind, ICF_UNIT_OPAQUE);
	assert_int_equal(tp_u(&t, "bad")->kind, ICF_UNIT_OPAQUE);
	assert_int_equal(tp_u(&t, "bad")->reason, ICF_NOT_UNDERSTOOD);
	assert_int_equal(tp_u(&t, "bad")->n_ref, 0);
	/* They stay, and so does what they could reach: what they call, and their neighbours. */
	static const char *const pinned[] = { "before", "after", "free1", "obj",
					      "free2",  "bad",   "free3", "far_away" };
	for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
		assert_true(tp_u(&t, pinned[i])->flags & ICF_UNIT_PINNED);
	assert_int_equal(tp_u(&t, "far_away")->reason, ICF_NEAR_OPAQUE);
	assert_false(tp_u(&t, "free4")->flags & ICF_UNIT_PINNED);
	assert_false(tp_u(&t, "anchor")->flags & ICF_UNIT_PINNED);
	assert_int_equal(t.prog.n_pinned, 9);
	tp_close(&t);
}

static void test_opaque_reach(void **state)
{
	(void)state;
	struct tp t;
	/* A table of distances from its own start, a table of distances from each word, and a
	 * function that computes the address of an opaque unit. */
	tp_open(&t,
		TEXT ALIGN FN("t1") "movl $1,%eax\nret\n" END("t1")
			ALIGN FN("t2") "movl $2,%eax\nret\n" END("t2")
				ALIGN FN("t3") "movl $3,%eax\nret\n" END("t3")
					ALIGN FN("n1") "ret\n" END("n1") ALIGN
		".type obj,@object\nobj: .long t1-obj\n.long t2-obj\n.long t3-.\n.size obj,.-obj\n" ALIGN
			FN("n2") "ret\n" END("n2")
				ALIGN FN("user") "leaq obj(%rip),%rax\nret\n" END("user") ALIGN FN(
					"reader") "movl obj(%rip),%eax\nret\n" END("reader")
					ALIGN FN("other") "movl $8,%eax\nret\n" END("other") ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	static const char *const pinned[] = { "t1", "t2", "t3", "n1", "obj", "n2", "user" };
	for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
		if (!(tp_u(&t, pinned[i])->flags & ICF_UNIT_PINNED))
			fail_msg("%s is not pinned", pinned[i]);
	assert_false(tp_u(&t, "other")->flags & ICF_UNIT_PINNED);
	tp_close(&t);
}

static void test_sections(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		".section .init,\"ax\"\nnop\nret\n.section .plt,\"ax\"\nnop\nnop\n" FN("in_plt") "ret\n" END("in_plt") ".section .text.hot,\"ax\"\n" FN("hot") "ret\n" END("hot") ".section .text.unlikely,\"ax\"\n" FN(
			"cold") "ret\n" END("cold") ".section .text.startup,\"ax\"\n" FN("start") "ret\n" END("start") ".section named,\"ax\"\n" FN("in_named") "ret\n" END("in_named")
			TEXT ANCHOR,
		"--unique=.text.*", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(tp_u(&t, "in_plt")->kind, ICF_UNIT_RIGID);
	assert_int_equal(tp_u(&t, "in_plt")->end - tp_u(&t, "in_plt")->start,
			 3); /* all of the section */
	assert_int_equal(tp_u(&t, "in_plt")->reason, ICF_NOT_A_FUNCTION);
	assert_int_equal(tp_u(&t, "in_named")->reason, ICF_NAMED_SECTION);
	assert_int_equal(tp_u(&t, "hot")->hotness, 0);
	assert_int_equal(tp_u(&t, "anchor")->hotness, 1);
	assert_int_equal(tp_u(&t, "start")->hotness, 2);
	assert_int_equal(tp_u(&t, "cold")->hotness, 3);
	for (size_t e = 1; e < t.prog.exec.len; e++)
		assert_true(t.prog.exec.data[e - 1].end <= t.prog.exec.data[e].start);
	tp_close(&t);
}

static void test_falls(void **state)
{
	(void)state;
	struct tp t;
	/* Control runs from one into two and, over the padding, into three. */
	tp_open(&t,
		TEXT ALIGN FN("zero") "ret\n" END("zero")
			ALIGN FN("one") "movl $1,%eax\n" END("one")
				FN("two") "testl %eax,%eax\njne 1f\nret\n1: incl %eax\n" END("two")
					ALIGN FN("three") "ret\n" END("three")
						ALIGN FN("four") "jmp *%rax\n" END("four")
							ALIGN FN("five") "ud2\n" END("five") ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	uint32_t i = tp_unit(&t, "one");
	assert_int_equal(tp_unit(&t, "two"), i);
	assert_int_equal(tp_unit(&t, "three"), i);
	assert_int_equal(t.prog.unit.data[i].start, tp_sym(&t, "one"));
	assert_int_equal(t.prog.unit.data[i].end, tp_sym(&t, "three") + 1);
	assert_int_equal(t.prog.unit.data[i].kind, ICF_UNIT_RIGID);
	assert_int_equal(t.prog.unit.data[i].reason, ICF_GLUED);
	assert_int_equal(t.prog.unit.data[i].n_sym, 3);
	assert_true(t.prog.unit.data[i].flags & ICF_UNIT_GLUED);
	assert_int_equal(tp_u(&t, "zero")->kind, ICF_UNIT_FUNC);
	assert_int_equal(tp_u(&t, "four")->reason, ICF_OK);
	assert_int_equal(tp_u(&t, "five")->reason, ICF_OK);
	tp_close(&t);
}

static void test_short_branch(void **state)
{
	(void)state;
	struct tp t;
	/* A branch over a neighbour with a one-byte displacement holds all three functions
	 * together. A four-byte displacement holds nothing together. */
	tp_open(&t,
		TEXT ALIGN FN("a") "testl %eax,%eax\n.byte 0x74\n.byte c-(.+1)\nret\n" END("a")
			ALIGN FN("b") "ret\n" END("b") ALIGN FN("c") "ret\n" END("c") ALIGN FN(
				"d") "{disp32} jmp e\n" END("d") ALIGN FN("e") "ret\n" END("e")
				ALIGN FN("f") "ret\n" END("f")
					ALIGN FN("g") ".byte 0xeb\n.byte f-(.+1)\n" END("g") ANCHOR,
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(tp_unit(&t, "a"), tp_unit(&t, "c"));
	assert_int_equal(tp_unit(&t, "a"), tp_unit(&t, "b"));
	assert_int_equal(tp_u(&t, "a")->reason, ICF_GLUED);
	assert_int_not_equal(tp_unit(&t, "d"), tp_unit(&t, "e"));
	assert_int_equal(tp_u(&t, "d")->reason, ICF_OK);
	assert_int_equal(tp_unit(&t, "f"), tp_unit(&t, "g")); /* backwards too */
	tp_close(&t);
}

static void test_extend(void **state)
{
	(void)state;
	struct tp t;
	/* No-ops that something refers to belong to the unit of the function behind them, and at a
	 * section's end to the last unit. */
	tp_open(&t,
		TEXT ALIGN
			FN("user") "leaq f-2(%rip),%rax\nleaq anchor_target+9(%rip),%rdx\nret\n" END(
				"user") ALIGN ".nops 16,1\n" FN("f") "nop\nret\n" END("f") ANCHOR
		".nops 16,1\n",
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	const struct icf_unit *f = tp_u(&t, "f"), *last = tp_u(&t, "anchor_target");
	assert_int_equal(f->start, tp_sym(&t, "f") - 2);
	assert_true(f->flags & ICF_UNIT_EXTENDED);
	assert_int_equal(f->reason, ICF_GLUED);
	assert_int_equal(last->end, t.prog.exec.data[0].end);
	assert_int_equal(last->reason, ICF_GLUED);
	assert_int_equal(ref_at(&t, "user", 3)->unit, tp_unit(&t, "f"));
	tp_close(&t);
}

/* What f of test_code_refs refers to besides functions. */
static void refs_to_data(const struct tp *t)
{
	const struct icf_ref *r = ref_at(t, "f", 36);
	assert_int_equal(r->target, tp_sym(t, "word"));
	assert_int_equal(r->kind, ICF_REF_PCREL);
	assert_int_equal(r->flags, 0);
	assert_int_equal(r->unit, ICF_NONE);
	r = ref_at(t, "f", 43);
	assert_int_equal(r->target, tp_sym(t, "table"));
	assert_int_equal(r->kind, ICF_REF_ABS);
	assert_int_equal(r->flags, 0);
	assert_string_equal(icf_ref_form(&t->prog, r)->name, "abs32s");
}

static void test_code_refs(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		TEXT ALIGN FN(
			"f") "1: call g\n"            /* 1 */
			     "leaq g(%rip),%rax\n"    /* 5 + 3 */
			     "movl $g,%eax\n"         /* 12 + 1 */
			     "movq $g,%rax\n"         /* 17 + 3, sign-extended */
			     "movabsq $g,%rax\n"      /* 24 + 2 */
			     "movl word(%rip),%eax\n" /* 34 + 2 */
			     "jmp *table(,%rax,8)\n"  /* 40 + 3: into data */
			     "jne 1b\n"               /* inside: no reference */
			     "leaq f(%rip),%rax\n"    /* its own entry, by address */
			     "addl $4096,%eax\n"      /* a number */
			     "{disp32} jmp g+1\n" END("f") ALIGN FN("g") "nop\nnop\nret\n" END(
				     "g") ALIGN
				     FN("h") "endbr64\nmovl 1f(%rip),%eax\nret\n1: .long 0xc3\n" END(
					     "h") ".data\nword: .long 1\ntable: .quad 0\n",
		"-no-pie", ICF_MODE_SAFE);
	tp_sound(&t);
	uint64_t g = tp_sym(&t, "g");
	static const struct {
		unsigned off, kind;
		const char *form;
		unsigned flags;
	} want[] = {
		{ 1, ICF_REF_BRANCH, "rel32", ICF_REF_CALL },
		{ 8, ICF_REF_PCREL, "rel32", ICF_REF_LEA },
		{ 13, ICF_REF_ABS, "abs32", ICF_REF_LEA },
		{ 20, ICF_REF_ABS, "abs32s", ICF_REF_LEA },
		{ 26, ICF_REF_ABS, "abs64", ICF_REF_LEA },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct icf_ref *r = ref_at(&t, "f", want[i].off);
		if (!r)
			fail_msg("no reference at %u", want[i].off);
		assert_int_equal(r->target, g);
		assert_int_equal(r->unit, tp_unit(&t, "g"));
		assert_int_equal(r->kind, want[i].kind);
		assert_string_equal(icf_ref_form(&t.prog, r)->name, want[i].form);
		assert_int_equal(r->flags, want[i].flags);
		assert_int_equal(r->table, ICF_NONE);
	}
	refs_to_data(&t);
	assert_int_equal(tp_u(&t, "f")->n_ref, 9);
	const struct icf_ref *r = ref_at(&t, "f", 52);
	assert_int_equal(r->target, tp_sym(&t, "f"));
	assert_true(tp_u(&t, "f")->flags & ICF_UNIT_OBSERVED);
	assert_true(tp_u(&t, "g")->flags & ICF_UNIT_OBSERVED);
	/* The jump to g+1 is a branch: it names g's middle without making an entry of it. */
	assert_false(tp_u(&t, "g")->flags & ICF_UNIT_INNER);
	assert_true(tp_u(&t, "h")->flags & ICF_UNIT_ENDBR);
	assert_true(tp_u(&t, "h")->flags & ICF_UNIT_DATA_READ);
	tp_close(&t);
}

/* A relocation that no field of an instruction explains: these bytes are not what they look
 * like. */
static void test_odd_reloc(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		TEXT ALIGN FN("odd") "nop\nnop\nnop\nnop\nret\n.reloc odd,R_X86_64_32,anchor\n" END(
			"odd") ALIGN FN("n") "ret\n" END("n") ANCHOR,
		"-no-pie", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(tp_u(&t, "odd")->kind, ICF_UNIT_OPAQUE);
	tp_close(&t);
	tp_refused(TEXT ALIGN FN("f") "movabsq $g@GOTOFF,%rax\nret\n" END("f")
			   ALIGN FN("g") "ret\n" END("g"),
		   "", "R_X86_64_GOTOFF64 in code is not supported");
}

static void test_reasons(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		/* No function in front of f that f + 1 could be, with a tag. */
		TEXT ALIGN FN("_start") "ret\n" END("_start") ".p2align 6\n" FN(
			"f") "nop\nret\n" END("f") ALIGN FN("g") "nop\nret\n" END("g") ANCHOR
		".data\n.quad f+1\n",
		"-no-pie -e _start", ICF_MODE_SAFE);
	assert_int_equal(tp_u(&t, "_start")->reason, ICF_ENTRY_POINT);
	assert_int_equal(tp_u(&t, "f")->reason, ICF_INNER_ENTRY);
	assert_int_equal(tp_u(&t, "g")->reason, ICF_OK);
	/* Functions that --keep-unique names, out of order and one of them twice. */
	const char *names[] = { "g", "anchor", "g" };
	t.opt.keep_unique = names;
	t.opt.n_keep_unique = 3;
	be_ok(icf_find_eligible(&t.prog, &t.opt));
	assert_int_equal(tp_u(&t, "g")->reason, ICF_KEEP_UNIQUE);
	assert_int_equal(tp_u(&t, "anchor")->reason, ICF_KEEP_UNIQUE);
	names[1] = "nobody";
	be_fails(icf_find_eligible(&t.prog, &t.opt), "--keep-unique: no function is named nobody");
	for (int r = 0; r < ICF_N_REASONS; r++)
		assert_true(strlen(icf_reason_text(r)) > 3);
	tp_close(&t);
}

static void test_data_refs(void **state)
{
	(void)state;
	static const char text[] = TEXT ALIGN FN("f") "nop\nret\n" END("f") ".p2align 6\n" FN(
		"g") "nop\nnop\nret\n" END("g") ALIGN FN("v") "movl $1,%eax\nret\n" END("v")
		ALIGN FN("i") "movl $2,%eax\nret\n" END("i")
			ALIGN FN("d") "movl $4,%eax\nret\n" END("d") ANCHOR
		".section .data.rel.ro,\"aw\"\n.type _ZTV1A,@object\n_ZTV1A: .quad 0,0,v\n.size _ZTV1A,24\n"
		".section .init_array,\"aw\",@init_array\n.quad i\n"
		".data\nptr: .quad f\nnum: .quad 0x401000\nmid: .quad g+1\nodata: .quad ptr\ndist: .long d-.\n";
	for (int pie = 0; pie < 2; pie++) {
		struct tp t;
		tp_open(&t, text, pie ? "-pie" : "-no-pie", ICF_MODE_SAFE);
		tp_sound(&t);
		const struct icf_dataref *d = tp_data(&t, "ptr", 0);
		assert_non_null(d);
		assert_int_equal(d->target, tp_sym(&t, "f"));
		assert_int_equal(d->unit, tp_unit(&t, "f"));
		assert_int_equal(d->size, 8);
		assert_int_equal(d->dynamic, pie);
		assert_int_equal(d->quiet, 0);
		assert_null(tp_data(&t, "num", 0));
		assert_null(tp_data(&t, "odata", 0)); /* an address, but not of code */
		assert_int_equal(tp_data(&t, "mid", 0)->target, tp_sym(&t, "g") + 1);
		assert_true(tp_data(&t, "_ZTV1A", 16)->quiet);
		assert_int_equal(tp_data(&t, "dist", 0)->kind,
				 ICF_DATA_OFFSET); /* a function's symbol explains the distance */
		assert_true(tp_u(&t, "f")->flags & ICF_UNIT_OBSERVED);
		assert_true(tp_u(&t, "g")->flags & ICF_UNIT_INNER);
		assert_int_equal(tp_u(&t, "g")->reason, ICF_INNER_ENTRY);
		assert_false(tp_u(&t, "v")->flags & ICF_UNIT_OBSERVED);
		assert_false(tp_u(&t, "i")->flags & ICF_UNIT_OBSERVED);
		assert_int_equal(t.prog.dynreloc.len, pie ? 5 : 0);
		tp_close(&t);
	}
	/* Exported: other modules see the address. */
	struct tp t;
	tp_open(&t, text, "-shared -Bsymbolic -z notext", ICF_MODE_SAFE);
	assert_true(tp_u(&t, "v")->flags & ICF_UNIT_OBSERVED);
	assert_true(tp_u(&t, "v")->flags & ICF_UNIT_EXPORTED);
	tp_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),        cmocka_unit_test(test_no_relocs),
		cmocka_unit_test(test_aliases),      cmocka_unit_test(test_zero_size),
		cmocka_unit_test(test_fde_bounds),   cmocka_unit_test(test_opaque),
		cmocka_unit_test(test_opaque_reach), cmocka_unit_test(test_sections),
		cmocka_unit_test(test_falls),        cmocka_unit_test(test_short_branch),
		cmocka_unit_test(test_extend),       cmocka_unit_test(test_code_refs),
		cmocka_unit_test(test_odd_reloc),    cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_data_refs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
