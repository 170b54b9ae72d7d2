/* callchain.c: the function that was called at each level of a stack, on programs made here byte by
 * byte, and on files: `callchain --resolve FILE` reads stacks from standard input and prints one
 * line a level. A stack is a list of hexadecimal addresses, one a line, innermost first, each
 * perhaps followed by the vtable address of the object that the level was called on; an empty line
 * ends a stack. A line of output is "- ..." for code that is not shared. Otherwise it says what
 * decided the function (? if nothing did) and gives the old addresses of the candidates, with ~
 * behind a candidate without a DIE. */
#include "tests/unit/make/err_check.h"
#include "dwarf/stack/callchain.h"
#include "dwarf/calls/calls.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(struct elfrw_err *err)
{
	fprintf(stderr, "%s\n", elfrw_err_text(err));
	elfrw_err_free(err);
	return 1;
}

/* A folded program in which nothing moved:
 *
 *	1000 A: call B; ret          1010 C: call D; ret        folded into A
 *	1020 B: ret                  1030 D: ret                folded into B, thunk at 1100
 *	1040 main: call A; call C; call T; call E; call *8(%rax); call D by pointer; ret
 *	1060 T: jmp D                1070 E: je B; jmp D
 *	1080 F: jmp *(%rax)
 *	1090 G: call F; ret
 * and vtables at 3000 (slot 1: B) and 3020 (slot 1: D). */
enum { A, C, B, D, MAIN, T, E, F, G, UNITS };
#define DIE(u) (UINT64_C(0x100) + 16 * (u))

static const uint64_t start[UNITS] = { 0x1000, 0x1010, 0x1020, 0x1030, 0x1040,
				       0x1060, 0x1070, 0x1080, 0x1090 };
static const uint64_t size[UNITS] = { 6, 6, 8, 8, 0x1a, 5, 11, 2, 6 };
static const char *const name[UNITS] = { "A", "C", "B", "D", "main", "T", "E", "F", "G" };

struct program {
	uint8_t text[0x200];
	struct elfrw_section section[5];
	struct elfrw_image img;
	uint8_t *note, *dcall, *vcall;
	struct dwr_callchain *cc;
	struct dwr_chain chain;
};

static void branch(uint8_t *text, uint64_t at, unsigned op, uint64_t to)
{
	text[at - 0x1000] = (uint8_t)op;
	elfrw_put32(text + (at - 0x1000 + 1), (uint32_t)(to - at - 5));
}

static void write_text(uint8_t *text)
{
	memset(text, 0xc3, 0x200);
	branch(text, 0x1000, 0xe8, 0x1020);
	branch(text, 0x1040, 0xe8, 0x1000);
	branch(text, 0x1045, 0xe8, 0x1000);
	branch(text, 0x104a, 0xe8, 0x1060);
	branch(text, 0x104f, 0xe8, 0x1070);
	memcpy(text + 0x54, "\xff\x50\x08\xff\xd0", 5);
	branch(text, 0x1060, 0xe9, 0x1020);
	text[0x70] = 0x0f;
	branch(text, 0x1071, 0x84, 0x1020);
	branch(text, 0x1076, 0xe9, 0x1020);
	memcpy(text + 0x80, "\xff\x20", 2);
	branch(text, 0x1090, 0xe8, 0x1080);
	branch(text, 0x1100, 0xe9, 0x1020);
}

static void put_section(struct program *p, unsigned i, const char *title, struct dwr_bytes bytes,
			uint64_t addr, uint64_t flags)
{
	p->section[i].name = title;
	p->section[i].data = bytes.data;
	p->section[i].hdr = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					  .sh_size = bytes.size,
					  .sh_addr = addr,
					  .sh_flags = flags,
					  .sh_addralign = 1 };
}

static void make(struct program *p, bool with_note)
{
	memset(p, 0, sizeof *p);
	write_text(p->text);
	struct elfrw_addrmap map = {
		.n_units = UNITS, .n_sections = 1, .thunks = 0x1100, .thunks_end = 0x1105
	};
	map.unit = calloc(UNITS, sizeof *map.unit);
	map.section = calloc(1, sizeof *map.section);
	map.section[0] = (struct elfrw_addrmap_section){ 0x1000, 0x1200, 0x1000, 0x1200, 1, false };
	struct dwr_note_die die[UNITS];
	for (uint32_t u = 0; u < UNITS; u++) {
		uint32_t kept = u == C ? A : u == D ? B : u;
		map.unit[u] = (struct elfrw_addrmap_unit){
			start[u], start[u] + size[u], start[kept], start[kept], kept, 0, 0
		};
		die[u] = (struct dwr_note_die){ u, DIE(u) };
	}
	map.unit[A].flags = map.unit[B].flags = ELFRW_UNIT_KEPT;
	map.unit[C].flags = ELFRW_UNIT_FOLDED;
	map.unit[D].flags = ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK;
	map.unit[D].entry = 0x1100;
	map.unit[D].thunk_size = 5;
	assert_null(elfrw_addrmap_finish(&map));
	static const struct dwr_vslot vslot[] = { { 0x3008, B }, { 0x3028, D } };
	const struct dwr_rewrite_in rw = {
		.map = &map, .unit_name = name, .vslot = vslot, .n_vslots = 2, .producer = "test"
	};
	const struct dwr_note_in in = {
		.rw = &rw, .die = die, .n_dies = 4, .artificial_unit = UINT64_MAX
	};
	size_t n, n_direct, n_virtual, note_size;
	assert_null(dwr_note_write(&in, &p->note, &note_size));
	struct dwr_dcall d[] = {
		{ 0x1045, DIE(A), 0 },      { 0x104a, DIE(C), 0 }, { 0x1005, DIE(B), DIE(A) },
		{ 0x1005, DIE(D), DIE(C) }, { 0x1065, DIE(D), 0 }, { 0x1076, DIE(B), 0 },
		{ 0x107b, DIE(D), 0 },
	};
	struct dwr_vcall v[] = { { 0x1057, 1 } };
	n = sizeof d / sizeof *d;
	assert_null(dwr_dcall_write(d, &n, 8, &p->dcall, &n_direct));
	n = 1;
	assert_null(dwr_vcall_write(v, &n, 8, &p->vcall, &n_virtual));
	put_section(p, 0, "", (struct dwr_bytes){ 0 }, 0, 0);
	put_section(p, 1, ".text", (struct dwr_bytes){ p->text, sizeof p->text }, 0x1000,
		    SHF_ALLOC | SHF_EXECINSTR);
	put_section(p, 2, ".debug_dcall", (struct dwr_bytes){ p->dcall, n_direct }, 0, 0);
	put_section(p, 3, ".debug_vcall", (struct dwr_bytes){ p->vcall, n_virtual }, 0, 0);
	put_section(p, 4, ".debug_icfold", (struct dwr_bytes){ p->note, note_size }, 0, 0);
	p->img = (struct elfrw_image){ .section = p->section,
				       .n_sections = with_note ? 5 : 4,
				       .arch = &elfrw_arch_x86_64,
				       .path = "test" };
	elfrw_addrmap_deinit(&map);
	be_ok(dwr_callchain_open(&p->img, NULL, NULL, &p->cc));
}

static void drop(struct program *p)
{
	dwr_chain_deinit(&p->chain);
	dwr_callchain_close(p->cc);
	free(p->note);
	free(p->dcall);
	free(p->vcall);
}

/* What is expected of a level. X is NONE: its code is not shared. Y is NONE: BY decided that the
 * function is X. Otherwise X and Y are the candidates, and BY is 0. */
#define NONE UNITS
struct level {
	enum dwr_chain_by by;
	int x, y;
};

static void expect(struct program *p, const uint64_t *addr, const uint64_t *vtable, size_t n,
		   const struct level *want)
{
	assert_null(dwr_callchain_resolve(p->cc, addr, vtable, n, &p->chain));
	assert_int_equal(p->chain.frame.len, n);
	for (size_t i = 0; i < n; i++) {
		const struct dwr_chain_frame *f = &p->chain.frame.data[i];
		const struct dwr_chain_member *m = p->chain.member.data + f->first;
		assert_int_equal(f->merged, want[i].x != NONE);
		if (want[i].x == NONE)
			continue;
		assert_int_equal(f->decided, want[i].y == NONE);
		assert_int_equal(f->by, want[i].by);
		assert_int_equal(f->n, want[i].y == NONE ? 1 : 2);
		assert_int_equal(m[0].die, DIE(want[i].x));
		if (want[i].y != NONE)
			assert_int_equal(m[1].die, DIE(want[i].y));
	}
}

#define STACK(p, vt, want, ...)                                                   \
	do {                                                                      \
		static const uint64_t a_[] = { __VA_ARGS__ };                     \
		static const struct level w_[] = want;                            \
		assert_int_equal(sizeof a_ / sizeof *a_, sizeof w_ / sizeof *w_); \
		expect(p, a_, vt, sizeof a_ / sizeof *a_, w_);                    \
	} while (0)
#define W(...)              \
	{                   \
		__VA_ARGS__ \
	}

static void direct(void **state)
{
	(void)state;
	struct program p;
	make(&p, true);
	STACK(&p, NULL, W({ DWR_BY_DCALL, B, NONE }, { DWR_BY_DCALL, A, NONE }, { 0, NONE, NONE }),
	      0x1021, 0x1005, 0x1045);
	STACK(&p, NULL, W({ DWR_BY_DCALL, D, NONE }, { DWR_BY_DCALL, C, NONE }, { 0, NONE, NONE }),
	      0x1020, 0x1005, 0x104a);
	/* The outermost frame is shared code: both chains are possible. */
	STACK(&p, NULL, W({ 0, B, D }, { 0, A, C }), 0x1021, 0x1005);
	STACK(&p, NULL, W({ 0, B, D }), 0x1021);
	STACK(&p, NULL, W({ 0, NONE, NONE }, { 0, NONE, NONE }), 0x1061, 0x104f);
	drop(&p);
}

static void by_jumps(void **state)
{
	(void)state;
	struct program p;
	make(&p, true);
	STACK(&p, NULL, W({ DWR_BY_TAILCALL, D, NONE }, { 0, NONE, NONE }), 0x1020, 0x104f);
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1020, 0x1054);
	/* An indirect jump may lead anywhere. */
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1020, 0x1095);
	drop(&p);
}

static void by_slot(void **state)
{
	(void)state;
	struct program p;
	static const uint64_t first[] = { 0x3000, 0 }, second[] = { 0x3020, 0 };
	make(&p, true);
	STACK(&p, first, W({ DWR_BY_VCALL, B, NONE }, { 0, NONE, NONE }), 0x1020, 0x1057);
	STACK(&p, second, W({ DWR_BY_VCALL, D, NONE }, { 0, NONE, NONE }), 0x1020, 0x1057);
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1020, 0x1057);
	drop(&p);
}

static void no_evidence(void **state)
{
	(void)state;
	struct program p;
	make(&p, true);
	/* An address in D's thunk can only mean D. Nothing is decided by an indirect call, by a
	 * caller outside of all code, and by a return address that follows no call. */
	STACK(&p, NULL, W({ DWR_BY_UNIQUE, D, NONE }, { 0, NONE, NONE }), 0x1100, 0x1059);
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1020, 0x1059);
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1020, 0x7f0000001234);
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1020, 0x1047);
	STACK(&p, NULL, W({ 0, NONE, NONE }, { 0, NONE, NONE }), 0, 0);
	drop(&p);
}

static void tables_alone(void **state)
{
	(void)state;
	struct program p;
	make(&p, false);
	STACK(&p, NULL, W({ DWR_BY_DCALL, B, NONE }, { DWR_BY_DCALL, A, NONE }, { 0, NONE, NONE }),
	      0x1021, 0x1005, 0x1045);
	STACK(&p, NULL, W({ DWR_BY_DCALL, D, NONE }, { DWR_BY_DCALL, C, NONE }, { 0, NONE, NONE }),
	      0x1021, 0x1005, 0x104a);
	STACK(&p, NULL, W({ 0, B, D }, { 0, NONE, NONE }), 0x1021, 0x1005);
	drop(&p);
}

static struct elfrw_err *print_stack(struct dwr_callchain *cc, struct dwr_chain *chain,
				     const uint64_t *addr, const uint64_t *vtable, size_t n)
{
	const struct dwr_icfold *note = dwr_callchain_note(cc);
	ELFRW_TRY(dwr_callchain_resolve(cc, addr, vtable, n, chain));
	for (size_t i = 0; i < n; i++) {
		const struct dwr_chain_frame *f = &chain->frame.data[i];
		const char *by = dwr_chain_by_text((enum dwr_chain_by)f->by);
		printf("%s", f->merged ? by ? by : "?" : "-");
		for (uint32_t k = 0; k < f->n; k++) {
			const struct dwr_chain_member *m = &chain->member.data[f->first + k];
			printf(" %llx%s",
			       (unsigned long long)(note ? note->map.unit[note->member[m->member]
										  .unit]
								    .old
							 : m->die),
			       m->die ? "" : "~");
		}
		printf("\n");
	}
	printf("\n");
	return NULL;
}

static int resolve_file(const char *path)
{
	struct elfrw_image img;
	struct dwr_callchain *cc;
	struct elfrw_err *err = elfrw_image_open(&img, path);
	if (err)
		return complain(err);
	err = dwr_callchain_open(&img, NULL, NULL, &cc);
	if (!err) {
		struct dwr_chain chain = { 0 };
		VEC(uint64_t) stack = { 0 };
		VEC(uint64_t) vtable = { 0 };
		char line[64];
		while (!err && fgets(line, sizeof line, stdin)) {
			if (line[0] != '\n') {
				char *rest;
				uint64_t *slot = VEC_PUSH(&stack), *vt = VEC_PUSH(&vtable);
				if (slot && vt) {
					*slot = strtoull(line, &rest, 16);
					*vt = strtoull(rest, NULL, 16);
				}
				continue;
			}
			err = print_stack(cc, &chain, stack.data, vtable.data, stack.len);
			stack.len = vtable.len = 0;
		}
		VEC_FREE(&stack);
		VEC_FREE(&vtable);
		dwr_chain_deinit(&chain);
		dwr_callchain_close(cc);
	}
	elfrw_image_close(&img);
	return err ? complain(err) : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--resolve") == 0)
		return resolve_file(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct),       cmocka_unit_test(by_jumps),
		cmocka_unit_test(by_slot),      cmocka_unit_test(no_evidence),
		cmocka_unit_test(tables_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
