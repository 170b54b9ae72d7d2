/* addrmap.c: points, ends and pointers at every boundary that the address map knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "elfrw/addrmap.h"
#include <stdlib.h>
#include <string.h>

/* Old:  section 0 [0x1000,0x1100): A [0x1000,0x1020), B [0x1020,0x1040), padding,
 *           C [0x1060,0x10a0), padding
 *       section 1 [0x1100,0x1200), right behind section 0: padding, D [0x1110,0x1150) folded
 *           into A with a thunk, E [0x1150,0x11f0), padding
 *       section 2 [0x3000,0x3080), far away: F [0x3000,0x3080) folded into E without a thunk
 *       section 3 [0x3090,0x30c0): G [0x3090,0x30c0), pinned
 * New:  section 0 [0xf00,0xf80): A 0xf00, B 0xf20, C 0xf40
 *       section 1 [0xf90,0x1036): E 0xf90, D's thunk 0x1030
 *       section 2 is empty; section 3 is where it was. */
enum { A, B, C, D, E, F, G };

static struct elfrw_addrmap make_map(void)
{
	static const struct elfrw_addrmap_unit units[] = {
		[A] = { 0x1000, 0x1020, 0xf00, 0xf00, A, 0, ELFRW_UNIT_KEPT },
		[B] = { 0x1020, 0x1040, 0xf20, 0xf20, B, 0, 0 },
		[C] = { 0x1060, 0x10a0, 0xf40, 0xf40, C, 0, 0 },
		[D] = { 0x1110, 0x1150, 0xf00, 0x1030, A, 6, ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
		[E] = { 0x1150, 0x11f0, 0xf90, 0xf90, E, 0, ELFRW_UNIT_KEPT },
		[F] = { 0x3000, 0x3080, 0xf90, 0xf90, E, 0, ELFRW_UNIT_FOLDED },
		[G] = { 0x3090, 0x30c0, 0x3090, 0x3090, G, 0, ELFRW_UNIT_PINNED },
	};
	static const struct elfrw_addrmap_section sections[] = {
		{ 0x1000, 0x1100, 0xf00, 0xf80, 1, true },
		{ 0x1100, 0x1200, 0xf90, 0x1036, 2, false },
		{ 0x3000, 0x3080, 0x3000, 0x3000, 3, false },
		{ 0x3090, 0x30c0, 0x3090, 0x30c0, 4, true }, /* other data begins at 0x30c0 */
	};
	struct elfrw_addrmap map = { .n_units = 7, .n_sections = 4 };
	map.unit = malloc(sizeof units);
	map.section = malloc(sizeof sections);
	memcpy(map.unit, units, sizeof units);
	memcpy(map.section, sections, sizeof sections);
	assert_null(elfrw_addrmap_finish(&map));
	return map;
}

typedef bool (*question)(const struct elfrw_addrmap *, uint64_t, uint64_t *);

static void asks(const struct elfrw_addrmap *map, question q, uint64_t va, bool found,
		 uint64_t want)
{
	uint64_t got = 0xbad;
	bool r = q(map, va, &got);
	if (got != want || r != found)
		fail_msg("0x%llx gives %d 0x%llx, not %d 0x%llx", (unsigned long long)va, r,
			 (unsigned long long)got, found, (unsigned long long)want);
}

#define POINT(va, found, want)   asks(&map, elfrw_addrmap_point, va, found, want)
#define END(va, found, want)     asks(&map, elfrw_addrmap_end, va, found, want)
#define POINTER(va, found, want) asks(&map, elfrw_addrmap_pointer, va, found, want)

static void test_find(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	for (uint64_t va = 0xf00; va < 0x3200; va++) {
		uint32_t want = ELFRW_NO_UNIT;
		for (uint32_t i = 0; i < map.n_units; i++)
			if (va >= map.unit[i].old && va < map.unit[i].old_end)
				want = i;
		assert_int_equal(elfrw_addrmap_find(&map, va), want);
	}
	assert_int_equal(elfrw_addrmap_find(&map, 0), ELFRW_NO_UNIT);
	assert_int_equal(elfrw_addrmap_find(&map, UINT64_MAX), ELFRW_NO_UNIT);
	elfrw_addrmap_deinit(&map);
	assert_null(map.unit);
}

static void test_point(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	POINT(0x1000, true, 0xf00);
	POINT(0x101f, true, 0xf1f);
	POINT(0x1020, true, 0xf20); /* B's first byte, A's end */
	POINT(0x1065, true, 0xf45);
	/* A folded unit's bytes are in the kept copy. */
	POINT(0x1110, true, 0xf00);
	POINT(0x112f, true, 0xf1f);
	POINT(0x3004, true, 0xf94);
	/* Padding: where the next unit of the section begins that is still there, or the section's
	 * end. */
	POINT(0x1040, false, 0xf40);
	POINT(0x105f, false, 0xf40);
	POINT(0x10a0, false, 0xf80);
	POINT(0x10ff, false, 0xf80);
	POINT(0x1100, false, 0xf90); /* before D, which is gone */
	POINT(0x11f0, false, 0x1036);
	/* Ends of sections. */
	POINT(0x1200, true, 0x1036);
	POINT(0x3080, true, 0x3000);
	POINT(0x30c0, true, 0x30c0); /* something else begins there */
	/* Elsewhere. */
	POINT(0, true, 0);
	POINT(0xfff, true, 0xfff);
	POINT(0x1201, true, 0x1201);
	POINT(0x2fff, true, 0x2fff);
	POINT(0x3085, true, 0x3085);
	POINT(0x308f, true, 0x308f);
	POINT(0x3090, true, 0x3090);
	POINT(0x30c1, true, 0x30c1);
	POINT(UINT64_MAX, true, UINT64_MAX);
	elfrw_addrmap_deinit(&map);
}

static void test_end(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	END(0x1001, true, 0xf01);
	END(0x1020, true, 0xf20); /* A's end, in spite of B */
	END(0x1040, true, 0xf40);
	END(0x10a0, true, 0xf80);
	END(0x1150, true, 0xf40); /* D's end: A's body and 0x40 bytes on, not E's start */
	END(0x11f0, true, 0x1030);
	/* Behind padding: where the next unit of the section begins that is still there, or the
	 * section's end, never in a kept copy. */
	END(0x1041, false, 0xf40);
	END(0x1060, false, 0xf40);
	END(0x1100, false, 0xf80);
	END(0x1110, false, 0xf90);
	END(0x1200, false, 0x1036);
	END(0x3080, true, 0x1010);
	END(0x30c0, true, 0x30c0);
	END(0, true, 0);
	END(0x1000, true, 0x1000);
	END(0x30c1, true, 0x30c1);
	END(0x1fff, true, 0x1fff);
	END(UINT64_MAX, true, UINT64_MAX);
	elfrw_addrmap_deinit(&map);
}

static void test_pointer(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	POINTER(0x1000, true, 0xf00);
	POINTER(0x1110, true, 0x1030); /* the thunk */
	POINTER(0x1111, true, 0xf01);  /* behind the entry there is only the kept copy */
	POINTER(0x3000, true, 0xf90);
	POINTER(0x1040, false, 0xf40);
	POINTER(0x1200, true, 0x1036);
	POINTER(0x5000, true, 0x5000);
	elfrw_addrmap_deinit(&map);
}

static void test_covers(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	assert_false(elfrw_addrmap_covers(&map, 0xfff));
	assert_true(elfrw_addrmap_covers(&map, 0x1000));
	assert_true(elfrw_addrmap_covers(&map, 0x1050)); /* padding too */
	assert_true(elfrw_addrmap_covers(&map, 0x1100));
	assert_true(elfrw_addrmap_covers(&map, 0x1200)); /* the very end */
	assert_false(elfrw_addrmap_covers(&map, 0x1201));
	assert_false(elfrw_addrmap_covers(&map, 0x2fff));
	assert_true(elfrw_addrmap_covers(&map, 0x3080));
	assert_false(elfrw_addrmap_covers(&map, 0x3081));
	assert_true(elfrw_addrmap_covers(&map, 0x3090));
	assert_false(elfrw_addrmap_covers(&map, 0x30c0)); /* not this section's */
	elfrw_addrmap_deinit(&map);
}

static void test_empty(void **state)
{
	(void)state;
	struct elfrw_addrmap map = { 0 };
	assert_null(elfrw_addrmap_finish(&map));
	POINT(0, true, 0);
	POINT(0x1234, true, 0x1234);
	END(0, true, 0);
	END(0x1234, true, 0x1234);
	POINTER(0x1234, true, 0x1234);
	assert_int_equal(elfrw_addrmap_find(&map, 0), ELFRW_NO_UNIT);
	assert_false(elfrw_addrmap_covers(&map, 0));
	elfrw_addrmap_deinit(&map);
	/* A section without units: all padding. */
	map = (struct elfrw_addrmap){ .n_sections = 1, .section = malloc(sizeof *map.section) };
	map.section[0] = (struct elfrw_addrmap_section){ 0x1000, 0x1010, 0x1000, 0x1000, 1, false };
	assert_null(elfrw_addrmap_finish(&map));
	POINT(0x1000, false, 0x1000);
	POINT(0x1010, true, 0x1000);
	elfrw_addrmap_deinit(&map);
}

/* Units of a few bytes: many in one block of the look-up table, with every residue at block
 * boundaries. */
static void test_dense(void **state)
{
	(void)state;
	enum { N = 1000 };
	struct elfrw_addrmap map = { .n_units = N,
				     .n_sections = 1,
				     .unit = calloc(N, sizeof *map.unit),
				     .section = calloc(1, sizeof *map.section) };
	uint64_t va = 0x10000f, to = 0x100000;
	for (uint32_t i = 0; i < N; i++) {
		uint64_t size = i % 7 + 1;
		map.unit[i] = (struct elfrw_addrmap_unit){ va, va + size, to, to, i, 0, 0 };
		va += size + i % 3;
		to += size;
	}
	map.section[0] = (struct elfrw_addrmap_section){ 0x10000f, va, 0x100000, to, 1, false };
	assert_null(elfrw_addrmap_finish(&map));
	for (uint32_t i = 0; i < N; i++) {
		const struct elfrw_addrmap_unit *u = &map.unit[i];
		for (uint64_t k = u->old; k < u->old_end; k++)
			POINT(k, true, u->body + (k - u->old));
		for (uint64_t k = u->old + 1; k <= u->old_end; k++)
			END(k, true, u->body + (k - u->old));
		if (i + 1 < N && u->old_end < map.unit[i + 1].old)
			POINT(u->old_end, false, map.unit[i + 1].body);
	}
	elfrw_addrmap_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),   cmocka_unit_test(test_point),
		cmocka_unit_test(test_end),    cmocka_unit_test(test_pointer),
		cmocka_unit_test(test_covers), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_dense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
