/* partition.c: which functions count as the same: canonical form, what references mean, and the
 * coarsest stable partition. */
#include "tests/unit/make/prog.h"

struct part {
	struct tp t;
	uint32_t *cls;
	uint32_t rounds;
};

static void part_open(struct part *p, const char *text, const char *flags, enum icf_mode mode)
{
	tp_open(&p->t, text, flags, mode);
	p->cls = malloc((p->t.prog.unit.len + 1) * sizeof *p->cls);
	assert_non_null(p->cls);
	be_ok(icf_partition(&p->t.prog, &p->t.opt, NULL, p->cls, &p->rounds));
	/* Every class is named by its lowest unit. Within a class all forms are equal, and so are
	 * the classes of all targets. */
	struct icf_canon_scratch s[2] = { 0 };
	be_ok(icf_canon_scratch_init(&s[0]));
	be_ok(icf_canon_scratch_init(&s[1]));
	for (uint32_t i = 0; i < p->t.prog.unit.len; i++) {
		uint32_t c = p->cls[i];
		assert_true(c <= i);
		assert_int_equal(p->cls[c], c);
		if (c == i)
			continue;
		bool same;
		struct icf_hash ha, hb;
		be_ok(icf_put_form(&p->t.prog, mode, i, &s[0]));
		be_ok(icf_same_form(&p->t.prog, mode, &s[0], c, &s[1], &same));
		assert_true(same);
		be_ok(icf_hash_unit(&p->t.prog, mode, i, &s[0], &ha));
		be_ok(icf_hash_unit(&p->t.prog, mode, c, &s[1], &hb));
		assert_memory_equal(&ha, &hb, sizeof ha);
		icf_unit_list ea = { 0 }, eb = { 0 };
		be_ok(icf_edges(&p->t.prog, mode, i, &ea));
		be_ok(icf_edges(&p->t.prog, mode, c, &eb));
		assert_int_equal(ea.len, eb.len);
		for (size_t k = 0; k < ea.len; k++)
			assert_int_equal(p->cls[ea.data[k]], p->cls[eb.data[k]]);
		VEC_FREE(&ea);
		VEC_FREE(&eb);
	}
	icf_canon_scratch_deinit(&s[0]);
	icf_canon_scratch_deinit(&s[1]);
}

static void part_close(struct part *p)
{
	free(p->cls);
	tp_close(&p->t);
}

static bool same(const struct part *p, const char *a, const char *b)
{
	return p->cls[tp_unit(&p->t, a)] == p->cls[tp_unit(&p->t, b)];
}

#define SAME(a, b)                                             \
	do {                                                   \
		if (!same(&p, a, b))                           \
			fail_msg("%s and %s are apart", a, b); \
	} while (0)
#define APART(a, b)                                               \
	do {                                                      \
		if (same(&p, a, b))                               \
			fail_msg("%s and %s are the same", a, b); \
	} while (0)

#define CALL(name, callee) \
	ALIGN FN(name) "subq $8,%rsp\ncall " callee "\naddq $8,%rsp\nret\n" END(name)
#define LEAF(name, n) ALIGN FN(name) LONG(n) END(name)

static void test_bytes(void **state)
{
	(void)state;
	struct part p;
	part_open(&p,
		  TEXT LEAF("a", 1) LEAF("b", 2) LEAF("c", 1) ALIGN FN("d") LONG(1) "nop\n" END("d")
			  LEAF("f", 1) ANCHOR,
		  "", ICF_MODE_SAFE);
	SAME("a", "c");
	SAME("a", "f");
	APART("a", "b");
	APART("a", "d"); /* longer by a no-op */
	assert_int_equal(p.cls[tp_unit(&p.t, "f")], tp_unit(&p.t, "a"));
	part_close(&p);
}

static void test_callees(void **state)
{
	(void)state;
	struct part p;
	/* Callers of different but equal functions are the same, three levels deep. A caller whose
	 * deepest callee differs is not. */
	part_open(&p,
		  TEXT LEAF("l1", 1) LEAF("l2", 1) LEAF("l3", 3) CALL("m1", "l1") CALL("m2", "l2")
			  CALL("m3", "l3") CALL("n1", "m1") CALL("n2", "m2") CALL("n3", "m3")
				  CALL("o1", "n1") CALL("o2", "n2") CALL("o3", "n3")
					  CALL("x1", "l1") CALL("x2", "l1"),
		  "", ICF_MODE_SAFE);
	SAME("l1", "l2");
	SAME("m1", "m2");
	SAME("n1", "n2");
	SAME("o1", "o2");
	SAME("x1", "m2");
	SAME("x1", "x2");
	APART("l1", "l3");
	APART("m1", "m3");
	APART("n1", "n3");
	APART("o1", "o3");
	APART("m1", "n1");
	assert_true(p.rounds >= 3 && p.rounds <= 6);
	part_close(&p);
}

static void test_recursion(void **state)
{
	(void)state;
	struct part p;
	/* Three pairs of mutually recursive functions, a function that calls itself and its twin, a
	 * ring of three and a ring of two. */
#define PING(name, other, n)                                                 \
	ALIGN FN(name) "subl $" #n ",%edi\nje 1f\nsubq $8,%rsp\ncall " other \
		       "\naddq $8,%rsp\n1: ret\n" END(name)
	part_open(&p,
		  TEXT PING("a1", "b1", 1) PING("b1", "a1", 2) PING("a2", "b2", 1)
			  PING("b2", "a2", 2) PING("a3", "b3", 1) PING("b3", "a3", 3)
				  PING("s1", "s1", 5) PING("s2", "s2", 5) PING("r1", "r2", 7)
					  PING("r2", "r3", 7) PING("r3", "r1", 7)
						  PING("q1", "q2", 7) PING("q2", "q1", 7) ANCHOR,
		  "", ICF_MODE_SAFE);
	SAME("a1", "a2");
	SAME("b1", "b2");
	APART("a1", "b1");
	APART("a1", "a3"); /* the partner of a3 differs */
	APART("b1", "b3");
	SAME("s1", "s2");
	/* The greatest fixpoint: all members of both rings do the same. */
	SAME("r1", "r2");
	SAME("r1", "r3");
	SAME("r1", "q1");
	SAME("q1", "q2");
	part_close(&p);
	/* t1 calls itself, t2 calls t1. A call of a function to itself is no reference, so t1 and
	 * t2 differ in form. */
	part_open(&p, TEXT PING("t1", "t1", 5) PING("t2", "t1", 5) ANCHOR, "", ICF_MODE_SAFE);
	APART("t1", "t2");
	part_close(&p);
}

static void test_data(void **state)
{
	(void)state;
#define READ(name, obj)     ALIGN FN(name) "movl " obj "(%rip),%eax\nret\n" END(name)
#define READ_ABS(name, obj) ALIGN FN(name) "movl $" obj ",%eax\nret\n" END(name)
	struct part p;
	part_open(&p,
		  TEXT READ("a1", "x") READ("a2", "x") READ("b", "y") READ("c", "x+4")
			  READ_ABS("d1", "x") READ_ABS("d2", "x") READ_ABS("e", "y")
				  READ_ABS("g", "4096") ANCHOR ".data\nx: .long 1,1\ny: .long 1\n",
		  "-no-pie", ICF_MODE_ALL);
	SAME("a1", "a2"); /* the distances differ, the object is the same */
	APART("a1", "b"); /* equal contents do not make equal objects */
	APART("a1", "c");
	SAME("d1", "d2");
	APART("d1", "e");
	APART("d1", "g");
	part_close(&p);
}

static void test_address_taken(void **state)
{
	(void)state;
#define TAKE(name, f) ALIGN FN(name) "leaq " f "(%rip),%rax\nret\n" END(name)
	static const char text[] = TEXT LEAF("a", 1) LEAF("b", 1) TAKE("ta", "a") TAKE("tb", "b")
		TAKE("tb2", "b") CALL("ca", "a") CALL("cb", "b") TAKE("ma", "a+5") TAKE("mb", "b+5")
			LEAF("u", 9) TAKE("tu", "u") TAKE("tu2", "u");
	struct part p;
	part_open(&p, text, "", ICF_MODE_SAFE);
	APART("ta", "tb"); /* they return different addresses */
	SAME("tb", "tb2");
	SAME("tu", "tu2");
	assert_true(tp_u(&p.t, "a")->flags & ICF_UNIT_OBSERVED);
	/* The addresses a+5 and b+5 are taken, too. So a and b have inner entries, and each is a
	 * class of its own. */
	APART("a", "b");
	APART("ca", "cb");
	APART("ma", "mb");
	part_close(&p);
	static const char text2[] = TEXT LEAF("a", 1) LEAF("b", 1) TAKE("ta", "a") TAKE("tb", "b")
		CALL("ca", "a") CALL("cb", "b") ".data\n.quad a,b\n";
	part_open(&p, text2, "", ICF_MODE_SAFE);
	SAME("a", "b"); /* equal all the same; a thunk keeps the addresses apart */
	APART("ta", "tb");
	SAME("ca", "cb");
	part_close(&p);
	part_open(&p, text2, "", ICF_MODE_ALL);
	SAME("a", "b");
	SAME("ta", "tb");
	SAME("ca", "cb");
	part_close(&p);
	/* What may not be folded is compared by its address. */
	part_open(&p,
		  TEXT LEAF("_start", 1) LEAF("b", 1) CALL("ca", "_start") CALL("cb", "b")
			  CALL("cb2", "b") ANCHOR,
		  "-e _start", ICF_MODE_ALL);
	APART("_start", "b");
	APART("ca", "cb");
	SAME("cb", "cb2");
	part_close(&p);
}

static void test_meaning(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		TEXT LEAF("a", 1) ALIGN
			FN("f") "call a\nleaq a(%rip),%rax\nmovl x(%rip),%eax\nleaq a+1(%rip),%rax\nret\n" END(
				"f") ".data\nx: .long 0\n",
		"", ICF_MODE_SAFE);
	const struct icf_ref *r = icf_unit_refs(&t.prog, tp_u(&t, "f"));
	assert_int_equal(tp_u(&t, "f")->n_ref, 4);
	static const enum icf_meaning safe[] = { ICF_MEANS_CLASS, ICF_MEANS_ADDRESS,
						 ICF_MEANS_ADDRESS, ICF_MEANS_ADDRESS };
	static const enum icf_meaning all[] = { ICF_MEANS_CLASS, ICF_MEANS_CLASS, ICF_MEANS_ADDRESS,
						ICF_MEANS_ADDRESS };
	for (int i = 0; i < 4; i++) {
		assert_int_equal(icf_ref_meaning(&t.prog, ICF_MODE_SAFE, &r[i]), safe[i]);
		assert_int_equal(icf_ref_meaning(&t.prog, ICF_MODE_ALL, &r[i]), all[i]);
	}
	tp_close(&t);
}

static void test_middle(void **state)
{
	(void)state;
	struct part p;
	/* Split-off parts jump into the middle of their parent: the offset counts, and so does what
	 * the parent is. */
#define COLD(name, parent, off) \
	ALIGN FN(name) "movl $99,%edi\n{disp32} jmp " parent "+" off "\n" END(name)
	part_open(&p,
		  TEXT LEAF("a1", 1) LEAF("a2", 1) LEAF("b", 2) COLD("a1c", "a1", "5")
			  COLD("a2c", "a2", "5") COLD("off", "a2", "8") COLD("bc", "b", "5") ANCHOR,
		  "", ICF_MODE_SAFE);
	SAME("a1", "a2");
	SAME("a1c", "a2c");
	APART("a1c", "off");
	APART("a1c", "bc");
	part_close(&p);
}

static void test_unwind(void **state)
{
	(void)state;
	struct part p;
#define FRAME(name, cfi)                                                                          \
	ALIGN FN(name) ".cfi_startproc\npushq %rbx\n" cfi                                         \
		       "movl $1,%eax\npopq %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n" END( \
			       name)
#define RULE ".cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n"
	part_open(
		&p,
		TEXT FRAME("a1", RULE) FRAME("a2", RULE) FRAME(
			"b", ".cfi_def_cfa_offset 16\n") FRAME("c",
							       RULE ".cfi_undefined %r15\n") ALIGN
			FN("none") "pushq %rbx\nmovl $1,%eax\npopq %rbx\nret\n" END("none") ALIGN FN(
				"sig") ".cfi_startproc\n.cfi_signal_frame\npushq %rbx\n" RULE
				       "movl $1,%eax\npopq %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n" END(
					       "sig") ANCHOR,
		"", ICF_MODE_SAFE);
	SAME("a1", "a2");
	APART("a1", "b");
	APART("a1", "c");
	APART("a1", "none");
	APART("a1", "sig");
	part_close(&p);
}

#define SWITCH(name, tab)                                                                          \
	ALIGN FN(name) "cmpl $3,%edi\nja .L" name "0\nmovl %edi,%edi\nleaq " tab                   \
		       "(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rax\naddq %rdx,%rax\njmp *%rax\n"       \
		       ".L" name "1: movl $11,%eax\nret\n.L" name "2: movl $22,%eax\nret\n.L" name \
		       "0: xorl %eax,%eax\nret\n" END(name)
#define LEADS(tab, name, a, b, c) \
	tab ": .long .L" name #a "-" tab ",.L" name #b "-" tab ",.L" name #c "-" tab "\n"

static void test_tables(void **state)
{
	(void)state;
	struct part p;
	part_open(&p,
		  TEXT SWITCH("a", "ta") SWITCH("b", "tb") SWITCH("c", "tc") SWITCH("d", "td")
			  SWITCH("e", "ta") ANCHOR
		  ".section .rodata,\"a\"\n.p2align 2\n" LEADS("tb", "b", 1, 2, 0) LEADS(
			  "tc", "c", 1, 0,
			  2) "td: .long .Ld1-td,.Ld2-td\n.byte 0,0,0,0\n" LEADS("ta", "a", 1, 2, 0),
		  "", ICF_MODE_SAFE);
	/* "e" reads the table of "a", whose entries lead into "a". So the table belongs to neither.
	 */
	assert_int_equal(tp_u(&p.t, "a")->reason, ICF_INNER_ENTRY);
	APART("a", "b");
	APART("a", "e");
	part_close(&p);
	part_open(&p,
		  TEXT SWITCH("a", "ta") SWITCH("b", "tb") SWITCH("c", "tc") SWITCH("d", "td")
			  ANCHOR
		  ".section .rodata,\"a\"\n.p2align 2\n" LEADS("tb", "b", 1, 2, 0) LEADS(
			  "tc", "c", 1, 0,
			  2) "td: .long .Ld1-td,.Ld2-td\n.byte 0,0,0,0\n" LEADS("ta", "a", 1, 2, 0),
		  "", ICF_MODE_SAFE);
	SAME("a", "b");  /* the same cases in the same order, elsewhere */
	APART("a", "c"); /* another order */
	APART("a", "d"); /* another length */
	part_close(&p);
}

/* The result does not depend on the number of threads, nor on how many units there are in a
 * part. */
static void test_threads(void **state)
{
	(void)state;
	enum { N = 1500 };
	char *text = malloc(N * 200 + 2000), *at = text;
	at += sprintf(at, TEXT);
	for (int i = 0; i < N; i++)
		at += sprintf(
			at,
			ALIGN
			".type f%d,@function\nf%d: movl $%d,%%eax\n{disp32} jmp f%d\n.size f%d,.-f%d\n",
			i, i, i % 7, i < 7 ? i : i - 7, i, i);
	strcpy(at, ANCHOR);
	struct part p;
	part_open(&p, text, "", ICF_MODE_SAFE);
	uint32_t *cls = malloc((p.t.prog.unit.len + 1) * sizeof *cls), rounds;
	for (unsigned threads = 2; threads < 9; threads += 3) {
		p.t.opt.threads = threads;
		be_ok(icf_partition(&p.t.prog, &p.t.opt, NULL, cls, &rounds));
		assert_memory_equal(cls, p.cls, p.t.prog.unit.len * sizeof *cls);
		assert_int_equal(rounds, p.rounds);
	}
	/* f0 to f6 jump to themselves. The chains of functions that lead to them differ in length.
	 */
	APART("f0", "f7");
	APART("f7", "f14");
	free(cls);
	free(text);
	part_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),         cmocka_unit_test(test_callees),
		cmocka_unit_test(test_recursion),     cmocka_unit_test(test_data),
		cmocka_unit_test(test_address_taken), cmocka_unit_test(test_meaning),
		cmocka_unit_test(test_middle),        cmocka_unit_test(test_unwind),
		cmocka_unit_test(test_tables),        cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
