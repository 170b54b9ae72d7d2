/* plan.c: which copy is kept, which function gets a thunk, which function stays, and the new
 * place of each. */
#include "tests/unit/make/prog.h"

#define LEAF(name, n) ALIGN FN(name) LONG(n) END(name)
#define PTRS(...)     ".data\n.quad " __VA_ARGS__ "\n"

struct sums {
	uint32_t folded, thunks, groups;
	uint64_t bytes;
};

static void folded_sound(const struct tp *t, uint32_t i, struct sums *sum)
{
	const struct elfrw_addrmap *m = &t->plan.map;
	const struct elfrw_addrmap_unit *u = &m->unit[i], *k = &m->unit[u->kept];
	assert_true(u->flags & ELFRW_UNIT_FOLDED);
	assert_true(k->flags & ELFRW_UNIT_KEPT);
	assert_int_equal(k->kept, u->kept);
	assert_int_equal(t->plan.cls[i], t->plan.cls[u->kept]);
	assert_int_equal(u->body, k->body);
	assert_int_equal(u->old_end - u->old, k->old_end - k->old);
	assert_int_equal(t->prog.unit.data[i].reason, ICF_OK);
	sum->folded++;
	sum->bytes += u->old_end - u->old;
	if (!(u->flags & ELFRW_UNIT_THUNK)) {
		assert_int_equal(u->entry, u->body);
		assert_int_equal(u->thunk_size, 0);
		return;
	}
	assert_int_equal(u->entry % 2, 0);
	assert_true(u->entry >= m->thunks && u->entry + u->thunk_size <= m->thunks_end);
	sum->thunks++;
	for (uint32_t k2 = 0; k2 < i; k2++)
		if (m->unit[k2].flags & ELFRW_UNIT_THUNK)
			assert_true(m->unit[k2].entry + m->unit[k2].thunk_size <= u->entry);
}

/* END: where the unit before it ends. */
static void kept_sound(const struct tp *t, uint32_t i, uint64_t end)
{
	const struct elfrw_addrmap *m = &t->plan.map;
	const struct elfrw_addrmap_unit *u = &m->unit[i];
	const struct icf_unit *pu = &t->prog.unit.data[i];
	uint64_t own_end = u->body + (u->old_end - u->old);
	assert_false(u->flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK));
	assert_int_equal(u->entry, u->body);
	assert_true(u->body <= u->old);
	assert_true(u->body >= end);
	assert_true(u->body >= m->section[pu->sec].new_start &&
		    own_end <= m->section[pu->sec].new_end);
	if (pu->flags & ICF_UNIT_PINNED) {
		assert_int_equal(u->body, u->old);
		assert_true(u->flags & ELFRW_UNIT_PINNED);
	}
	if (pu->flags & ICF_UNIT_DATA_READ)
		assert_int_equal(u->body & 63, u->old & 63);
	/* Thunks and the trap byte stand in nobody's way. */
	assert_true(m->thunks_end <= u->body || m->thunks >= own_end);
	if (m->trap_byte)
		assert_true(m->trap_byte < u->body || m->trap_byte >= own_end);
}

static void sections_sound(const struct tp *t)
{
	const struct elfrw_addrmap *m = &t->plan.map;
	for (uint32_t e = 0; e < m->n_sections; e++) {
		assert_true(m->section[e].new_start <= m->section[e].old);
		assert_true(m->section[e].new_end <= m->section[e].old_end);
		assert_true(m->section[e].new_start <= m->section[e].new_end);
		if (e)
			assert_true(m->section[e - 1].new_end <= m->section[e].new_start);
	}
	const struct elfrw_addrmap_section *th = &m->section[t->plan.thunk_exec];
	assert_true(m->thunks >= th->new_start && m->thunks_end <= th->new_end);
	if (m->trap_byte)
		assert_true(m->trap_byte >= th->new_start && m->trap_byte < th->new_end);
}

/* What must hold of every plan: nothing overlaps, nothing moves up, every section's bytes stay
 * inside it, thunks are even and distinct, and the sums are right. */
static void plan_sound(const struct tp *t)
{
	const struct elfrw_addrmap *m = &t->plan.map;
	struct sums sum = { 0 };
	uint64_t end = 0;
	assert_int_equal(m->n_units, t->prog.unit.len);
	for (uint32_t i = 0; i < m->n_units; i++) {
		const struct elfrw_addrmap_unit *u = &m->unit[i];
		assert_int_equal(u->old, t->prog.unit.data[i].start);
		assert_int_equal(u->old_end, t->prog.unit.data[i].end);
		assert_int_equal(u->kept, t->plan.kept[i]);
		sum.groups += (u->flags & ELFRW_UNIT_KEPT) != 0;
		if (u->kept != i) {
			folded_sound(t, i, &sum);
			continue;
		}
		kept_sound(t, i, end);
		end = u->body + (u->old_end - u->old);
	}
	sections_sound(t);
	if (!sum.folded)
		assert_int_equal(m->trap_byte, 0);
	assert_int_equal(t->plan.n_folded, sum.folded);
	assert_int_equal(t->plan.n_thunks, sum.thunks);
	assert_int_equal(t->plan.n_groups, sum.groups);
	assert_int_equal(t->plan.folded_bytes, sum.bytes);
	assert_true(t->plan.code_after <= t->plan.code_before);
}

static void plan_open(struct tp *t, const char *text, const char *flags, enum icf_mode mode)
{
	tp_open(t, text, flags, mode);
	tp_plan(t);
	plan_sound(t);
}

static const struct elfrw_addrmap_unit *mapped(const struct tp *t, const char *name)
{
	return &t->plan.map.unit[tp_unit(t, name)];
}

/* FOLDED goes into KEPT. */
static void folds(const struct tp *t, const char *folded, const char *kept)
{
	if (mapped(t, folded)->kept != tp_unit(t, kept) || tp_unit(t, folded) == tp_unit(t, kept))
		fail_msg("%s is not folded into %s", folded, kept);
}

static void stays(const struct tp *t, const char *name, enum icf_reason reason)
{
	if (mapped(t, name)->kept != tp_unit(t, name) || tp_u(t, name)->reason != reason)
		fail_msg("%s: kept %d, reason %d", name, mapped(t, name)->kept == tp_unit(t, name),
			 tp_u(t, name)->reason);
}

static void test_lowest(void **state)
{
	(void)state;
	struct tp t;
	plan_open(&t,
		  TEXT LEAF("u", 9) LEAF("a", 1) LEAF("b", 1) LEAF("c", 2) LEAF("d", 1) LEAF("e", 2)
			  ANCHOR,
		  "", ICF_MODE_SAFE);
	stays(&t, "a", ICF_OK);
	folds(&t, "b", "a");
	folds(&t, "d", "a");
	stays(&t, "c", ICF_OK);
	folds(&t, "e", "c");
	stays(&t, "u", ICF_UNIQUE);
	stays(&t, "anchor", ICF_UNIQUE);
	assert_int_equal(t.plan.n_folded, 3);
	assert_int_equal(t.plan.n_groups, 2);
	assert_int_equal(t.plan.n_thunks, 0);
	/* The gaps are closed: c has come to b's place, what follows to its right after it. */
	assert_int_equal(mapped(&t, "u")->body, tp_sym(&t, "u"));
	assert_int_equal(mapped(&t, "c")->body, tp_sym(&t, "b"));
	assert_int_equal(mapped(&t, "anchor")->body, tp_sym(&t, "c"));
	assert_int_equal(t.plan.code_before - t.plan.code_after,
			 3 * 32 - 1); /* less the trap byte */
	tp_close(&t);
}

static void test_none(void **state)
{
	(void)state;
	struct tp t;
	plan_open(&t,
		  TEXT LEAF("a", 1) LEAF("b", 1) ALIGN FN("odd") "nop\nret\n" END("odd")
			  ALIGN ANCHOR,
		  "", ICF_MODE_NONE);
	assert_int_equal(t.plan.n_folded, 0);
	for (uint32_t i = 0; i < t.prog.unit.len; i++)
		assert_int_equal(t.plan.map.unit[i].body, t.prog.unit.data[i].start);
	assert_int_equal(t.plan.map.trap_byte, 0);
	tp_close(&t);
}

static void test_keeper_hotness(void **state)
{
	(void)state;
	struct tp t;
	/* The sections in the order of their addresses: unlikely, startup, text, hot. */
	plan_open(&t,
		  ".section .text.unlikely,\"ax\"\n" LEAF("u1", 1) LEAF("u2", 2)
			  LEAF("u4", 4) ".section .text.startup,\"ax\"\n" LEAF("s2", 2)
				  LEAF("s3", 3)
					  LEAF("s4", 4) ".section .text.yes,\"ax\"\n" LEAF("t1", 1)
						  LEAF("t3", 3) LEAF("t5", 5) LEAF("t4", 4) ANCHOR
		  ".section .text.hot,\"ax\"\n" LEAF("h5", 5) LEAF("h4", 4),
		  "--unique=.text.*", ICF_MODE_SAFE);
	folds(&t, "u1", "t1");
	folds(&t, "u2", "s2");
	folds(&t, "s3", "t3");
	folds(&t, "t5", "h5");
	folds(&t, "u4", "h4");
	folds(&t, "s4", "h4");
	folds(&t, "t4", "h4");
	tp_close(&t);
}

static void test_keeper_alignment(void **state)
{
	(void)state;
	struct tp t;
	/* Functions may need the alignment that their address shows: the best aligned copy is
	 * kept. */
	plan_open(&t,
		  TEXT ALIGN FN("x") "ret\n" END("x") "nop\n" FN("a") LONG(1)
			  END("a") ".p2align 3,0x90\nnop\nnop\nnop\nnop\n.p2align 2\n" FN("b")
				  LONG(1) END("b") LEAF("c", 1) LEAF("d", 1) ANCHOR,
		  "", ICF_MODE_SAFE);
	assert_int_equal(tp_sym(&t, "a") & 3, 2);
	assert_int_equal(tp_sym(&t, "b") & 7, 4);
	folds(&t, "a", "c");
	folds(&t, "b", "c");
	folds(&t, "d", "c");
	assert_int_equal(mapped(&t, "c")->body & 15, 0);
	tp_close(&t);
}

static void test_keeper_observed(void **state)
{
	(void)state;
	struct tp t;
	/* A thunk is saved if the kept function needs an address of its own anyway. */
	plan_open(&t, TEXT LEAF("a", 1) LEAF("b", 1) LEAF("c", 1) LEAF("d", 1) ANCHOR PTRS("b,d"),
		  "", ICF_MODE_SAFE);
	stays(&t, "b", ICF_OK);
	folds(&t, "a", "b");
	folds(&t, "c", "b");
	folds(&t, "d", "b");
	assert_int_equal(t.plan.n_thunks, 1);
	const struct elfrw_addrmap_unit *d = mapped(&t, "d");
	assert_true(d->flags & ELFRW_UNIT_THUNK);
	assert_int_equal(d->thunk_size, 6);
	assert_int_equal(d->entry, t.plan.map.thunks);
	assert_int_not_equal(d->entry, d->body);
	/* What a pointer becomes is the thunk; what a branch reaches, the body. */
	uint64_t va;
	assert_true(elfrw_addrmap_pointer(&t.plan.map, tp_sym(&t, "d"), &va));
	assert_int_equal(va, d->entry);
	assert_true(elfrw_addrmap_point(&t.plan.map, tp_sym(&t, "d"), &va));
	assert_int_equal(va, mapped(&t, "b")->body);
	assert_true(elfrw_addrmap_pointer(&t.plan.map, tp_sym(&t, "a"), &va));
	assert_int_equal(va, mapped(&t, "b")->body);
	tp_close(&t);
}

static void test_thunks(void **state)
{
	(void)state;
#define SHORT(name, nops) FN(name) "movl $7,%eax\n.rept " nops "\nnop\n.endr\nret\n" END(name)
	static const char text[] = TEXT LEAF("a", 1) LEAF("b", 1) LEAF("c", 1)
		ALIGN FN("e1") "endbr64\n" LONG(1) END("e1") ALIGN FN("e2") "endbr64\n" LONG(1)
			END("e2") ALIGN SHORT("s1", "10") ALIGN SHORT("s2", "10")
				ALIGN SHORT("m1", "11") ALIGN SHORT("m2", "11")
					ANCHOR PTRS("a,b,c,e1,e2,s1,s2,m1,m2");
	struct tp t;
	plan_open(&t, text, "", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	folds(&t, "c", "a");
	folds(&t, "e2", "e1");
	assert_int_equal(mapped(&t, "b")->thunk_size, 16); /* with what aligns the next one */
	assert_int_equal(mapped(&t, "e2")->entry % 16, 0);
	assert_int_equal(mapped(&t, "m2")->thunk_size, 6);
	stays(&t, "s2", ICF_ADDRESS_OBSERVED); /* 16 bytes, as an aligned thunk has */
	folds(&t, "m2", "m1");
	assert_int_equal(t.plan.n_thunks, 4);
	assert_int_equal(t.plan.map.thunks_end - t.plan.map.thunks, 16 + 16 + 16 + 6);
	assert_int_equal(t.plan.map.trap_byte, t.plan.map.thunks_end);
	tp_close(&t);
	/* Without thunks, a function that needs one stays. */
	tp_open(&t, text, "", ICF_MODE_SAFE);
	t.opt.no_thunks = true;
	tp_plan(&t);
	plan_sound(&t);
	stays(&t, "b", ICF_ADDRESS_OBSERVED);
	stays(&t, "e2", ICF_ADDRESS_OBSERVED);
	assert_int_equal(t.plan.n_folded, 0);
	tp_close(&t);
	/* Merged addresses need no thunks. */
	plan_open(&t, text, "", ICF_MODE_ALL);
	folds(&t, "b", "a");
	folds(&t, "c", "a");
	folds(&t, "e2", "e1");
	folds(&t, "s2", "s1");
	folds(&t, "m2", "m1");
	assert_int_equal(t.plan.n_thunks, 0);
	assert_int_equal(mapped(&t, "c")->entry, mapped(&t, "a")->entry);
	tp_close(&t);
}

/* Vtable slots and init arrays are no observation, exports are. */
static void test_quiet(void **state)
{
	(void)state;
	static const char text[] = TEXT LEAF("a", 1) LEAF("b", 1) ANCHOR
		".section .data.rel.ro,\"aw\"\n.type _ZTV1A,@object\n_ZTV1A: .quad 0,0,a,b\n.size _ZTV1A,32\n"
		".section .init_array,\"aw\",@init_array\n.quad a,b\n";
	struct tp t;
	plan_open(&t, text, "-pie", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	assert_int_equal(t.plan.n_thunks, 0);
	tp_close(&t);
	plan_open(&t, text, "-shared -Bsymbolic", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	assert_int_equal(t.plan.n_thunks, 1);
	tp_close(&t);
}

static void test_alignment(void **state)
{
	(void)state;
	struct tp t;
	/* Alignment is what old addresses prove: 16 for most, 64 where the padding can have no
	 * other reason, less where there was less. */
	plan_open(&t,
		  TEXT ".p2align 6\n" LEAF("u", 9) LEAF("a", 1) LEAF("b", 1)
			  LEAF("c", 2) ".p2align 6,0x90\n" FN("big") LONG(3)
				  END("big") ".p2align 5,0x90\n" FN("x32") LONG(5) END("x32")
					  FN("small") LONG(4) END("small") ANCHOR,
		  "", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	assert_int_equal(mapped(&t, "c")->body, tp_sym(&t, "b"));
	assert_int_equal(mapped(&t, "big")->body % 64, 0);
	assert_int_equal(mapped(&t, "x32")->body % 16, 0);
	assert_int_equal(mapped(&t, "small")->body, mapped(&t, "x32")->body + 18);
	tp_close(&t);
	/* A unit that reads its own bytes keeps its address modulo 64. */
	plan_open(&t,
		  TEXT ".p2align 6\n" LEAF("a", 1) LEAF("b", 1) LEAF("pad", 8) ALIGN FN(
			  "r") "movl 1f(%rip),%eax\nret\n1: .long 0x90909090\nret\n" END("r")
			  LEAF("c", 2) ANCHOR,
		  "", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	assert_true(tp_u(&t, "r")->flags & ICF_UNIT_DATA_READ);
	assert_int_equal(mapped(&t, "r")->body,
			 tp_sym(&t, "r")); /* 48 modulo 64: no room for it any lower */
	tp_close(&t);
}

/* If the program may look at the address of a function, the address keeps the alignment that it
 * shows, up to that of the section. */
static void test_observed_alignment(void **state)
{
	(void)state;
	struct tp t;
#define WIDE(name, n) ALIGN FN(name) ".rept 40\nimull $" #n ",%edi,%eax\n.endr\n" LONG(n) END(name)
	static const char text[] = TEXT ".p2align 12,0x90\n" LEAF("first", 9) WIDE(
		"a", 1) ".p2align 6,0x90\n" WIDE("a64", 1)
		WIDE("b", 2) ".p2align 5,0x90\n" WIDE("b32", 2) ".p2align 12,0x90\n" LEAF("page", 4)
			LEAF("e", 5) LEAF("f", 5) LEAF("g", 6) ".p2align 8,0x90\n" LEAF("alone", 7)
				ANCHOR PTRS("a,a64,b,b32,alone");
	plan_open(&t, text, "", ICF_MODE_SAFE);
	folds(&t, "a64", "a");
	folds(&t, "b32", "b");
	assert_int_equal(tp_sym(&t, "a64") % 64, 0);
	assert_int_equal(mapped(&t, "a64")->entry % 64, 0);
	assert_int_equal(mapped(&t, "b32")->entry % 32, 0);
	assert_int_equal(mapped(&t, "page")->body,
			 tp_sym(&t, "page")); /* at the next page, though much goes before it */
	assert_int_equal(mapped(&t, "alone")->entry % 256, 0);
	/* A function into which others are folded needs the largest alignment among them. */
	tp_close(&t);
	plan_open(&t, text, "", ICF_MODE_ALL);
	folds(&t, "a", "a64");
	folds(&t, "b", "b32");
	assert_int_equal(mapped(&t, "a64")->body % 64, 0);
	assert_int_equal(mapped(&t, "b32")->body % 32, 0);
	assert_int_equal(mapped(&t, "page")->body, tp_sym(&t, "page"));
	tp_close(&t);
	/* No-ops in front of a function belong to its unit if something names them. Then the
	 * aligned address lies inside of the unit. */
	plan_open(&t,
		  TEXT ".p2align 6,0x90\n" LEAF("a", 1) LEAF("b", 1) LEAF(
			  "u", 8) ".p2align 6,0x90\nnops: nop\nnop\n.p2align 6,0x90\n" LEAF("in", 2)
			  ANCHOR PTRS("nops,in"),
		  "", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	assert_int_equal(mapped(&t, "in")->body % 64, tp_u(&t, "in")->start % 64);
	tp_close(&t);
}

/* The keeper has the largest alignment of its group, if that does not move it up. */
static void test_group_alignment(void **state)
{
	(void)state;
	struct tp t;
	plan_open(&t,
		  ".section .text.a,\"ax\"\n.p2align 6\n" LEAF("x", 7) LEAF("y", 7)
			  FN("z") "movl $77,%eax\nnop\nnop\nnop\nret\n" END("z") FN("k") LONG(1)
				  END("k") ".section .text.unlikely,\"ax\"\n"
					   ".p2align 4\n" LEAF("u", 1) TEXT ANCHOR,
		  "--unique=.text.*", ICF_MODE_SAFE);
	folds(&t, "y", "x");
	folds(&t, "u", "k"); /* hotter, though not as well aligned */
	assert_int_equal(tp_sym(&t, "u") % 16, 0);
	assert_int_not_equal(tp_sym(&t, "k") % 16, 0);
	assert_int_equal(mapped(&t, "k")->body % 16, 0);
	tp_close(&t);
	/* Nothing in front of k is removed, so k stays where it is. */
	plan_open(&t,
		  ".section .text.a,\"ax\"\n.p2align 6\n" LEAF("x", 7) FN("k") LONG(1) END("k")
			  ALIGN FN("z") "nop\nret\n" END(
				  "z") ".section .text.unlikely,\"ax\"\n.p2align 4\n" LEAF("u", 1)
				  TEXT ANCHOR,
		  "--unique=.text.*", ICF_MODE_SAFE);
	folds(&t, "u", "k");
	assert_int_equal(mapped(&t, "k")->body, tp_sym(&t, "k"));
	assert_int_equal(mapped(&t, "z")->body, tp_sym(&t, "z"));
	tp_close(&t);
}

static void test_pinned(void **state)
{
	(void)state;
	struct tp t;
	/* "bad" holds what is no instruction; its neighbours are pinned with it. */
	plan_open(&t,
		  TEXT LEAF("a", 1) LEAF("b", 1) LEAF("c", 2) LEAF("n1", 1)
			  ALIGN FN("bad") "nop\n.byte 0x06\nret\n" END("bad") LEAF("n2", 1)
				  LEAF("d", 1) LEAF("e", 5) ANCHOR,
		  "", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	folds(&t, "d", "a");
	stays(&t, "n1", ICF_NEAR_OPAQUE);
	stays(&t, "n2", ICF_NEAR_OPAQUE);
	stays(&t, "bad", ICF_NOT_UNDERSTOOD);
	static const char *const fixed[] = { "n1", "bad", "n2" };
	for (int i = 0; i < 3; i++)
		assert_int_equal(mapped(&t, fixed[i])->body, tp_sym(&t, fixed[i]));
	assert_int_equal(mapped(&t, "c")->body,
			 tp_sym(&t, "b")); /* the gap before n1 is closed all the same */
	assert_int_equal(mapped(&t, "e")->body, tp_sym(&t, "d"));
	tp_close(&t);
}

static void test_pinned_end(void **state)
{
	(void)state;
	struct tp t;
	/* Pinned code at the section's end: the thunks go to the gap before it. */
#define TAIL LEAF("n1", 9) ALIGN FN("bad") "nop\n.byte 0x06\nret\n" END("bad")
	plan_open(&t, TEXT ANCHOR LEAF("a", 1) LEAF("b", 1) LEAF("c", 1) TAIL PTRS("a,b,c"), "",
		  ICF_MODE_SAFE);
	folds(&t, "b", "a");
	folds(&t, "c", "a");
	assert_int_equal(t.plan.n_thunks, 2);
	assert_true(t.plan.map.thunks_end < tp_sym(&t, "n1"));
	assert_int_equal(mapped(&t, "bad")->body, tp_sym(&t, "bad"));
	tp_close(&t);
	/* If there is no gap, a function that needs a thunk stays. A function that needs none is
	 * folded all the same. */
	plan_open(&t,
		  ".section .text.x,\"ax\"\n" ANCHOR LEAF("a", 1) LEAF("b", 1) LEAF("c", 1) TEXT
		  ".rept 50\n"
		  "nop\n.byte 0x06\nret\n"
		  ".endr\n" PTRS("a,b"),
		  "--unique=.text.*", ICF_MODE_SAFE);
	assert_int_equal(t.plan.map.section[t.plan.thunk_exec].old_end -
				 t.plan.map.section[t.plan.thunk_exec].old,
			 150);
	stays(&t, "b", ICF_ADDRESS_OBSERVED);
	folds(&t, "c", "a");
	assert_int_equal(t.plan.n_thunks, 0);
	assert_int_equal(t.plan.map.trap_byte, 0);
	tp_close(&t);
}

static void test_partner(void **state)
{
	(void)state;
	struct tp t;
	/* p2 stays, because it needs a thunk and none may be made; its split-off part jumps into it
	 * and so stays with it. p3 is folded, and so is its split-off part. */
#define COLD(name, parent) \
	ALIGN FN(name) "movl $99,%edi\naddl %edi,%edi\n{disp32} jmp " parent "+5\n" END(name)
	static const char text[] =
		TEXT LEAF("p1", 1) LEAF("p2", 1) LEAF("p3", 1) COLD("p1.cold", "p1")
			COLD("p2.cold", "p2") COLD("p3.cold", "p3") ANCHOR PTRS("p1,p2");
	tp_open(&t, text, "", ICF_MODE_SAFE);
	t.opt.no_thunks = true;
	tp_plan(&t);
	plan_sound(&t);
	stays(&t, "p2", ICF_ADDRESS_OBSERVED);
	stays(&t, "p2.cold", ICF_PARTNER_STAYS);
	folds(&t, "p3", "p1");
	folds(&t, "p3.cold", "p1.cold");
	tp_close(&t);
	plan_open(&t, text, "", ICF_MODE_SAFE);
	folds(&t, "p2", "p1");
	folds(&t, "p2.cold", "p1.cold");
	folds(&t, "p3.cold", "p1.cold");
	tp_close(&t);
}

/* Sections follow each other down, but only those that stand side by side with code; .init comes
 * with .text, a later segment stays. */
static void test_sections(void **state)
{
	(void)state;
	struct tp t;
	plan_open(&t,
		  ".section .aaa,\"ax\"\n" LEAF("a", 1) LEAF("b", 1) ANCHOR
		  ".section .fini,\"ax\"\n.p2align 2\n" FN("_fini") "nop\nret\n" END(
			  "_fini") ".section .ltext.other,\"ax\"\n.p2align 4\n" LEAF("c", 1)
			  LEAF("d", 6) ".section .own,\"ax\"\n.p2align 4\n" LEAF("e", 1),
		  "-z noseparate-code", ICF_MODE_SAFE);
	folds(&t, "b", "a");
	folds(&t, "c", "a");
	stays(&t, "e", ICF_NAMED_SECTION);
	assert_true(t.plan.map.section[0].new_start == t.plan.map.section[0].old);
	for (uint32_t e = 0; e < t.plan.map.n_sections; e++) {
		const struct elfrw_addrmap_section *s = &t.plan.map.section[e];
		uint64_t align = t.img.section[s->shndx].hdr.sh_addralign;
		assert_int_equal(s->new_start % (align ? align : 1), 0);
		if (e)
			assert_true(s->new_start < s->old);
	}
	tp_close(&t);
}

/* A plan made twice is the same plan. */
static void test_again(void **state)
{
	(void)state;
	static const char text[] = TEXT LEAF("a", 1) LEAF("b", 1) LEAF("c", 2) LEAF("d", 2)
		LEAF("e", 1) ANCHOR PTRS("a,b,d");
	struct tp t, s;
	plan_open(&t, text, "", ICF_MODE_SAFE);
	tp_open(&s, text, "", ICF_MODE_SAFE);
	s.opt.threads = 4;
	tp_plan(&s);
	assert_memory_equal(s.plan.kept, t.plan.kept, t.prog.unit.len * sizeof *t.plan.kept);
	for (uint32_t i = 0; i < t.prog.unit.len; i++) {
		assert_int_equal(s.plan.map.unit[i].body, t.plan.map.unit[i].body);
		assert_int_equal(s.plan.map.unit[i].entry, t.plan.map.unit[i].entry);
		assert_int_equal(s.plan.map.unit[i].flags, t.plan.map.unit[i].flags);
	}
	tp_close(&s);
	tp_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lowest),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_keeper_hotness),
		cmocka_unit_test(test_keeper_alignment),
		cmocka_unit_test(test_keeper_observed),
		cmocka_unit_test(test_thunks),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_observed_alignment),
		cmocka_unit_test(test_group_alignment),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_pinned_end),
		cmocka_unit_test(test_partner),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
