/* tables.c: jump tables and distances in data: which are found, how long they are, and what is
 * pinned if none is found. */
#include "tests/unit/make/prog.h"

/* A switch in position-independent code over the table TAB; its cases have the labels .LNAME1 to
 * .LNAME3. */
#define SWITCH(name, tab)                                                                          \
	ALIGN FN(name) "cmpl $3,%edi\nja .L" name "0\nmovl %edi,%edi\nleaq " tab                   \
		       "(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rax\naddq %rdx,%rax\njmp *%rax\n"       \
		       ".L" name "1: movl $11,%eax\nret\n.L" name "2: movl $22,%eax\nret\n.L" name \
		       "3: movl $33,%eax\nret\n.L" name "0: xorl %eax,%eax\nret\n" END(name)
#define LEADS(tab, name)                                                                           \
	tab ": .long .L" name "1-" tab ",.L" name "2-" tab ",.L" name "3-" tab ",.L" name "1-" tab \
	    "\n"
#define RODATA ".section .rodata,\"a\"\n.p2align 2\n"

/* The table whose base is the symbol, or NULL. */
static const struct icf_table *table_at(const struct tp *t, const char *name)
{
	for (size_t i = 0; i < t->prog.table.len; i++)
		if (t->prog.table.data[i].base == tp_sym(t, name))
			return &t->prog.table.data[i];
	return NULL;
}

static void test_pic_tables(void **state)
{
	(void)state;
	struct tp t;
	/* Two tables without a gap between them: only the start of the second one tells where the
	 * first one ends. */
	tp_open(&t,
		TEXT SWITCH("f", "ftab") SWITCH("g", "gtab") ANCHOR RODATA LEADS("ftab", "f")
			LEADS("gtab", "g"),
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(t.prog.table.len, 2);
	static const char *const fn[] = { "f", "g" }, *const tab[] = { "ftab", "gtab" };
	for (int k = 0; k < 2; k++) {
		const struct icf_table *tb = table_at(&t, tab[k]);
		const struct icf_unit *u = tp_u(&t, fn[k]);
		assert_non_null(tb);
		assert_int_equal(tb->n, 4);
		assert_int_equal(tb->owner, tp_unit(&t, fn[k]));
		assert_int_equal(u->reason, ICF_OK); /* its middle is named by its own table only */
		/* Every entry's target counts from the table's start. */
		const struct icf_dataref *d = &t.prog.dataref.data[tb->entry];
		const uint8_t *bytes = elfrw_image_at(&t.img, tb->base, 16);
		for (int e = 0; e < 4; e++) {
			int32_t v;
			memcpy(&v, bytes + 4 * e, 4);
			assert_int_equal(d[e].target, tb->base + (uint64_t)(int64_t)v);
			assert_int_equal(d[e].unit, tb->owner);
			assert_int_equal(d[e].table, tb - t.prog.table.data);
			assert_int_equal(d[e].kind, ICF_DATA_ENTRY);
		}
		assert_int_equal(d[0].target, d[3].target);
		assert_int_equal(d[1].target - d[0].target, 6);
		const struct icf_ref *ref = icf_unit_refs(&t.prog, u);
		assert_int_equal(u->n_ref, 1);
		assert_int_equal(ref->table, tb - t.prog.table.data);
	}
	tp_close(&t);
}

static void test_shared_table(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t, TEXT SWITCH("f", "ftab") SWITCH("g", "ftab") ANCHOR RODATA LEADS("ftab", "f"),
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	const struct icf_table *tb = table_at(&t, "ftab");
	assert_non_null(tb);
	assert_int_equal(tb->owner, ICF_NONE);
	assert_int_equal(tb->n, 4);
	for (int k = 0; k < 2; k++)
		assert_int_equal(icf_unit_refs(&t.prog, tp_u(&t, k ? "g" : "f"))->table, ICF_NONE);
	assert_int_equal(t.prog.dataref.data[tb->entry].unit, tp_unit(&t, "f"));
	assert_int_equal(tp_u(&t, "f")->reason,
			 ICF_INNER_ENTRY); /* a case is entered from another function */
	tp_close(&t);
}

static void test_table_to_end(void **state)
{
	(void)state;
	struct tp t;
	/* A case that cannot happen leads to the function's end, where the next function begins. */
	tp_open(&t,
		TEXT SWITCH("f", "ftab") ".Lend:\n" FN("next") "movl $5,%eax\nret\n" END("next")
			ANCHOR RODATA "ftab: .long .Lf1-ftab,.Lend-ftab,.Lf2-ftab\n",
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	const struct icf_table *tb = table_at(&t, "ftab");
	assert_non_null(tb);
	assert_int_equal(tb->n, 3);
	assert_int_equal(tb->owner, tp_unit(&t, "f"));
	assert_int_equal(t.prog.dataref.data[tb->entry + 1].target, tp_u(&t, "f")->end);
	assert_int_equal(t.prog.dataref.data[tb->entry + 1].unit, tp_unit(&t, "f"));
	assert_false(tp_u(&t, "next")->flags & (ICF_UNIT_OBSERVED | ICF_UNIT_INNER));
	tp_close(&t);
}

#define ABS_SWITCH(name, tab)                                                                      \
	ALIGN FN(name) "cmpl $2,%edi\nja .L" name "0\nmovl %edi,%edi\njmp *" tab "(,%rdi,8)\n"     \
		       ".L" name "1: movl $11,%eax\nret\n.L" name "2: movl $22,%eax\nret\n.L" name \
		       "0: xorl %eax,%eax\nret\n" END(name)

static void test_abs_tables(void **state)
{
	(void)state;
	struct tp t;
	/* In writable data the words are pointers, no table. */
	tp_open(&t,
		TEXT ABS_SWITCH("f", "ftab") ABS_SWITCH("g", "gtab") ABS_SWITCH("h", "htab")
			ABS_SWITCH("k", "fns") ANCHOR
		".section .rodata,\"a\"\n.p2align 3\nftab: .quad .Lf1,.Lf2,.Lf1\ngtab: .quad .Lg2,.Lg1,.Lg2\nfns: .quad f,g,h\n"
		".data\nhtab: .quad .Lh1,.Lh2,.Lh1\n",
		"-no-pie", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(t.prog.table.len, 2);
	const struct icf_table *f = table_at(&t, "ftab"), *g = table_at(&t, "gtab");
	assert_non_null(f);
	assert_non_null(g);
	assert_int_equal(f->n, 3);
	assert_int_equal(g->n, 3);
	assert_int_equal(f->owner, tp_unit(&t, "f"));
	assert_int_equal(g->owner, tp_unit(&t, "g"));
	assert_int_equal(t.prog.dataref.data[g->entry].target, tp_u(&t, "g")->start + 20);
	assert_int_equal(tp_data(&t, "htab", 0)->table, ICF_NONE);
	assert_int_equal(tp_data(&t, "fns", 0)->table, ICF_NONE); /* a table of functions */
	assert_true(tp_u(&t, "f")->flags & ICF_UNIT_OBSERVED);
	assert_int_equal(tp_u(&t, "f")->reason, ICF_OK);
	assert_int_equal(tp_u(&t, "h")->reason, ICF_INNER_ENTRY);
	assert_false(tp_u(&t, "k")->flags & ICF_UNIT_OBSERVED);
	tp_close(&t);
}

static void test_bad_tables(void **state)
{
	(void)state;
	struct tp t;
	/* A run of distances that does not lead to instructions is no table. */
	tp_open(&t, TEXT SWITCH("f", "ftab") ANCHOR RODATA "ftab: .long .Lf1-ftab,.Lf2+2-ftab\n",
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_true(tp_u(&t, "f")->flags & ICF_UNIT_PINNED);
	for (size_t i = 0; i < t.prog.dataref.len; i++)
		assert_true(t.prog.dataref.data[i].left);
	tp_close(&t);
}

/* Distances that count from their own places are no table, even if code uses the name in front of
 * them, and wherever they would lead if they counted from that name. */
static void test_own_distances(void **state)
{
	(void)state;
	struct tp t;
	tp_open(&t,
		TEXT FN("f") "lea list(%rip),%rdx\nmovslq (%rdx),%rax\nadd %rdx,%rax\nret\n" END(
			"f") ALIGN
		".Lg:\n" FN("g") "movl $3,%eax\nret\n" END("g") ".Lh:\n" FN(
			"h") "movl $4,%eax\nret\n" END("h") ANCHOR RODATA
		"list: .long .Lg-.,.Lh-.\n",
		"", ICF_MODE_SAFE);
	tp_sound(&t);
	assert_int_equal(t.prog.table.len, 0);
	for (size_t i = 0; i < t.prog.dataref.len; i++)
		assert_false(t.prog.dataref.data[i].left);
	assert_int_equal(t.prog.dataref.data[1].target, tp_sym(&t, "h"));
	tp_close(&t);
}

/* Distances that no table explains: all code that could be meant stays, other code does not. */
static void test_vague_tables(void **state)
{
	(void)state;
	static const char *const rodata[] = {
		RODATA "ftab: .long .Lf1-ftab,.Lg-ftab\n", /* leads out of its function */
		RODATA
		"ftab: .long .Lf1-ftab\n.long 0\n.long .Lg-.\n", /* does not belong to the table */
		RODATA
		"ftab: .long 0\nlist: .long .Lf2-list\n.long .Lg-list\n", /* counted from a place
									     that nobody names */
	};
	for (size_t i = 0; i < sizeof rodata / sizeof *rodata; i++) {
		struct tp t;
		char text[3000];
		snprintf(text, sizeof text, "%s%s",
			 TEXT SWITCH("f", "ftab") ALIGN FN("g") "nop\n.Lg: movl $3,%eax\nret\n" END(
				 "g") ALIGN FN("between") ".skip 64,0x90\nret\n" END("between")
				 ALIGN FN("other") "movl $8,%eax\nret\n" END("other") ANCHOR,
			 rodata[i]);
		tp_open(&t, text, "", ICF_MODE_SAFE);
		tp_sound(&t);
		if (!(tp_u(&t, "g")->flags & ICF_UNIT_PINNED) || tp_u(&t, "g")->reason == ICF_OK)
			fail_msg("%zu: g may move or fold", i);
		if (i != 1 && !(tp_u(&t, "f")->flags & ICF_UNIT_PINNED))
			fail_msg("%zu: f may move", i);
		if (tp_u(&t, "other")->flags & ICF_UNIT_PINNED)
			fail_msg("%zu: other is pinned", i);
		tp_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pic_tables),   cmocka_unit_test(test_shared_table),
		cmocka_unit_test(test_table_to_end), cmocka_unit_test(test_abs_tables),
		cmocka_unit_test(test_bad_tables),   cmocka_unit_test(test_own_distances),
		cmocka_unit_test(test_vague_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
