/* basics.c: errors, growing arrays, the reader and the writer with their LEB128 edges, sorting,
 * parallel loops, string tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "elfrw/blocks.h"
#include "elfrw/base/err.h"
#include "elfrw/names.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/printable.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/sort.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/wbuf.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES(...)                                                \
	(const uint8_t[]){ __VA_ARGS__ }, sizeof(const uint8_t[]) \
	{                                                         \
		__VA_ARGS__                                       \
	}

static void text_is(struct elfrw_err *err, const char *text)
{
	assert_non_null(err);
	assert_string_equal(elfrw_err_text(err), text);
	elfrw_err_free(err);
}

static void test_err(void **state)
{
	(void)state;
	text_is(elfrw_error("%s is %d", "x", 7), "x is 7");
	text_is(elfrw_error_at("\033[2J", 1, "%s", "FOLD\n\x7f"),
		"FOLD\\n\\x7f (\\x1b[2J, offset 0x1)");
	text_is(elfrw_error_at(".text", 0x1f, "bad %u", 3u), "bad 3 (.text, offset 0x1f)");
	text_is(elfrw_error_at(NULL, UINT64_MAX, "bad"), "bad (file offset 0xffffffffffffffff)");
	text_is(elfrw_error_errno(ENOENT, "cannot open %s", "f"),
		"cannot open f: No such file or directory");
	/* The section's name is copied. */
	char name[] = ".data";
	struct elfrw_err *err = elfrw_error_at(name, 0, "x");
	name[1] = '!';
	text_is(err, "x (.data, offset 0x0)");
	text_is(&elfrw_err_nomem, "out of memory");
	text_is(&elfrw_err_nomem, "out of memory"); /* freeing it did nothing */
	elfrw_err_free(NULL);
}

static struct elfrw_err *try_it(struct elfrw_err *err, int *after)
{
	ELFRW_TRY(err);
	++*after;
	return NULL;
}

static void test_try(void **state)
{
	(void)state;
	int after = 0;
	assert_null(try_it(NULL, &after));
	assert_int_equal(after, 1);
	text_is(try_it(elfrw_error("no"), &after), "no");
	assert_int_equal(after, 1);
}

static void test_vec(void **state)
{
	(void)state;
	VEC(uint32_t) v = { 0 };
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t *slot = VEC_PUSH(&v);
		assert_non_null(slot);
		assert_int_equal(*slot, 0);
		*slot = i;
		assert_int_equal(v.len, i + 1);
		assert_true(v.cap >= v.len);
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(v.data[i], i);
	/* A slot that was used before is zero again. */
	v.len = 10;
	assert_int_equal(*VEC_PUSH(&v), 0);
	assert_true(VEC_RESERVE(&v, 5000));
	assert_true(v.cap >= 5000);
	assert_int_equal(v.len, 11);
	assert_int_equal(v.data[9], 9);
	/* What cannot be had changes nothing. */
	void *data = v.data;
	size_t cap = v.cap;
	assert_false(VEC_RESERVE(&v, SIZE_MAX));
	assert_false(VEC_RESERVE(&v, SIZE_MAX / 4 + 1));
	assert_ptr_equal(v.data, data);
	assert_int_equal(v.cap, cap);
	VEC_FREE(&v);
	assert_null(v.data);
	assert_int_equal(v.len + v.cap, 0);
	VEC_FREE(&v);
}

static void test_rbuf(void **state)
{
	(void)state;
	static const uint8_t d[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff };
	struct elfrw_rbuf r = elfrw_rbuf(d, sizeof d);
	assert_int_equal(elfrw_rbuf_u8(&r), 1);
	assert_int_equal(elfrw_rbuf_u16(&r), 0x0302);
	assert_int_equal(elfrw_rbuf_u32(&r), 0x07060504);
	assert_int_equal(elfrw_rbuf_u64(&r), 0x0f0e0d0c0b0a0908);
	assert_int_equal(elfrw_rbuf_left(&r), 1);
	assert_int_equal(elfrw_rbuf_off(&r), 15);
	/* Too much: nothing moves, and everything after it fails too. */
	assert_int_equal(elfrw_rbuf_u16(&r), 0);
	assert_false(elfrw_rbuf_ok(&r));
	assert_int_equal(elfrw_rbuf_off(&r), 15);
	assert_int_equal(elfrw_rbuf_u8(&r), 0);
	assert_null(elfrw_rbuf_take(&r, 0));
	r = elfrw_rbuf(d, sizeof d);
	elfrw_rbuf_seek(&r, 16);
	assert_true(elfrw_rbuf_ok(&r));
	assert_int_equal(elfrw_rbuf_left(&r), 0);
	elfrw_rbuf_seek(&r, 17);
	assert_false(elfrw_rbuf_ok(&r));
	r = elfrw_rbuf(d, sizeof d);
	elfrw_rbuf_skip(&r, UINT64_MAX);
	assert_false(elfrw_rbuf_ok(&r));
	r = elfrw_rbuf(d, sizeof d);
	assert_int_equal(elfrw_rbuf_uint(&r, 3), 0x030201);
	assert_int_equal(elfrw_rbuf_uint(&r, 0), 0);
	assert_int_equal(elfrw_rbuf_uint(&r, 5), 0x0807060504);
	assert_true(elfrw_rbuf_ok(&r));
	/* Nothing at all. */
	r = elfrw_rbuf(NULL, 0);
	assert_null(elfrw_rbuf_cstr(&r));
	assert_false(elfrw_rbuf_ok(&r));
	r = elfrw_rbuf(NULL, 0);
	assert_int_equal(elfrw_rbuf_uleb(&r), 0);
	assert_false(elfrw_rbuf_ok(&r));
}

static void test_cstr(void **state)
{
	(void)state;
	struct elfrw_rbuf r = elfrw_rbuf("ab\0\0c", 5);
	assert_string_equal(elfrw_rbuf_cstr(&r), "ab");
	assert_string_equal(elfrw_rbuf_cstr(&r), "");
	assert_null(elfrw_rbuf_cstr(&r)); /* "c" is not terminated inside */
	assert_false(elfrw_rbuf_ok(&r));
	assert_int_equal(elfrw_rbuf_off(&r), 4);
}

static uint64_t uleb(const uint8_t *d, size_t n, size_t used)
{
	struct elfrw_rbuf r = elfrw_rbuf(d, n);
	uint64_t v = elfrw_rbuf_uleb(&r);
	assert_true(elfrw_rbuf_ok(&r));
	assert_int_equal(elfrw_rbuf_off(&r), used);
	return v;
}

static int64_t sleb(const uint8_t *d, size_t n, size_t used)
{
	struct elfrw_rbuf r = elfrw_rbuf(d, n);
	int64_t v = elfrw_rbuf_sleb(&r);
	assert_true(elfrw_rbuf_ok(&r));
	assert_int_equal(elfrw_rbuf_off(&r), used);
	return v;
}

static void test_leb_read(void **state)
{
	(void)state;
	assert_int_equal(uleb(BYTES(0), 1), 0);
	assert_int_equal(uleb(BYTES(0x7f, 0xff), 1), 127);
	assert_int_equal(uleb(BYTES(0x80, 0x01), 2), 128);
	assert_int_equal(uleb(BYTES(0xe5, 0x8e, 0x26), 3), 624485);
	assert_int_equal(uleb(BYTES(0x80, 0x80, 0x00), 3), 0); /* padded */
	assert_true(uleb(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), 10) ==
		    UINT64_MAX);
	/* Bits beyond 64 are dropped, and so are whole bytes of them. */
	assert_true(uleb(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), 10) ==
		    UINT64_MAX);
	assert_int_equal(uleb(BYTES(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
				    0x80, 0xff, 0x7f),
			      13),
			 1);
	assert_int_equal(sleb(BYTES(0x02), 1), 2);
	assert_int_equal(sleb(BYTES(0x7e), 1), -2);
	assert_int_equal(sleb(BYTES(0x40), 1), -64);
	assert_int_equal(sleb(BYTES(0x3f), 1), 63);
	assert_int_equal(sleb(BYTES(0xff, 0x00), 2), 127);
	assert_int_equal(sleb(BYTES(0x80, 0x7f), 2), -128);
	assert_int_equal(sleb(BYTES(0xff, 0xff, 0x7f), 3), -1); /* padded */
	assert_true(sleb(BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), 10) ==
		    INT64_MIN);
	assert_true(sleb(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), 10) ==
		    INT64_MAX);
	assert_true(sleb(BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f),
			 11) == 0);
	/* Not terminated. */
	struct elfrw_rbuf r = elfrw_rbuf(BYTES(0x80, 0x80));
	assert_int_equal(elfrw_rbuf_uleb(&r), 0);
	assert_false(elfrw_rbuf_ok(&r));
	r = elfrw_rbuf(BYTES(0xff));
	assert_int_equal(elfrw_rbuf_sleb(&r), 0);
	assert_false(elfrw_rbuf_ok(&r));
}

static void test_leb_round(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 64; shift++)
		for (int d = -1; d <= 1; d++)
			for (int neg = 0; neg < 2; neg++) {
				uint64_t v = ((uint64_t)1 << shift) + (uint64_t)(int64_t)d;
				v = neg ? -v : v;
				struct elfrw_wbuf w = { 0 };
				elfrw_wbuf_uleb(&w, v);
				unsigned bits = v ? 64 - (unsigned)__builtin_clzll(v) : 1;
				assert_int_equal(w.len, (bits + 6) / 7); /* the shortest form */
				size_t at = w.len;
				elfrw_wbuf_sleb(&w, (int64_t)v);
				assert_true(w.len - at <= 10);
				struct elfrw_rbuf r = elfrw_rbuf(w.data, w.len);
				assert_true(elfrw_rbuf_uleb(&r) == v);
				assert_true(elfrw_rbuf_sleb(&r) == (int64_t)v);
				assert_true(elfrw_rbuf_ok(&r));
				assert_int_equal(elfrw_rbuf_left(&r), 0);
				elfrw_wbuf_free(&w);
			}
	struct elfrw_wbuf w = { 0 };
	elfrw_wbuf_sleb(&w, 63);
	elfrw_wbuf_sleb(&w, 64);
	elfrw_wbuf_sleb(&w, -64);
	elfrw_wbuf_sleb(&w, -65);
	static const uint8_t want[] = { 0x3f, 0xc0, 0x00, 0x40, 0xbf, 0x7f };
	assert_int_equal(w.len, sizeof want);
	assert_memory_equal(w.data, want, sizeof want);
	elfrw_wbuf_free(&w);
}

static void test_wbuf(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	elfrw_wbuf_bytes(&w, NULL, 0);
	assert_false(w.bad);
	elfrw_wbuf_align(&w, 8);
	assert_int_equal(w.len, 0);
	elfrw_wbuf_u8(&w, 0x11);
	elfrw_wbuf_u16(&w, 0x3322);
	elfrw_wbuf_u32(&w, 0x77665544);
	elfrw_wbuf_u64(&w, 0xffeeddccbbaa9988);
	elfrw_wbuf_uint(&w, 0x123456, 3);
	elfrw_wbuf_cstr(&w, "hi");
	elfrw_wbuf_align(&w, 8);
	elfrw_wbuf_align(&w, 8);
	static const uint8_t want[] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
					0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x56,
					0x34, 0x12, 'h',  'i',  0,    0,    0,    0 };
	assert_int_equal(w.len, sizeof want);
	assert_memory_equal(w.data, want, sizeof want);
	/* Bytes that a longer, earlier content left behind are zero again. */
	w.len = 1;
	uint8_t *p = elfrw_wbuf_grow(&w, 4);
	assert_non_null(p);
	assert_memory_equal(p, "\0\0\0\0", 4);
	uint8_t *mine = elfrw_wbuf_take(&w);
	assert_int_equal(mine[0], 0x11);
	assert_null(w.data);
	assert_int_equal(w.len, 0);
	free(mine);
	/* Failure sticks. */
	elfrw_wbuf_u8(&w, 1);
	volatile size_t all = SIZE_MAX; /* not known when compiling */
	assert_null(elfrw_wbuf_grow(&w, all));
	assert_true(w.bad);
	elfrw_wbuf_u8(&w, 2);
	assert_int_equal(w.len, 1);
	elfrw_wbuf_free(&w);
	assert_false(w.bad);
}

struct item {
	uint32_t key, seq;
	uint8_t more[5];
};

static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* N items in RUNS ascending runs, with keys below KEYS. */
static void check_sort(size_t n, size_t runs, uint32_t keys)
{
	struct item *v = calloc(n + 1, sizeof *v);
	uint64_t sum = 0, seed = n * 31 + runs;
	for (size_t i = 0; i < n; i++) {
		size_t in_run = runs ? i % (n / runs + 1) : 0;
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		v[i] = (struct item){ runs ? (uint32_t)(in_run * keys / (n / runs + 1))
					   : (uint32_t)(seed >> 33) % keys,
				      (uint32_t)i,
				      { 0 } };
		memset(v[i].more, (int)i, sizeof v[i].more);
		sum += v[i].key;
	}
	v[n].seq = 0xdeadbeef;
	assert_true(elfrw_sort_runs(v, n, sizeof *v, item_order));
	for (size_t i = 0; i < n; i++) {
		sum -= v[i].key;
		assert_int_equal(v[i].more[4], (uint8_t)v[i].seq);
		if (i == 0)
			continue;
		assert_true(v[i - 1].key <= v[i].key);
		if (v[i - 1].key == v[i].key)
			assert_true(v[i - 1].seq < v[i].seq); /* stable */
	}
	assert_int_equal(sum, 0);
	assert_int_equal(v[n].seq, 0xdeadbeef);
	free(v);
}

struct numbered {
	uint64_t number;
	uint32_t seq;
};

static int numbered_order(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* N numbers of BITS bits in heaps of 1 << HEAP, said to lie between LO and HI. */
static void check_numbers(size_t n, unsigned bits, unsigned heap, uint64_t lo, uint64_t hi)
{
	struct numbered *v = calloc(n + 1, sizeof *v), *same = calloc(n + 1, sizeof *same);
	uint64_t seed = n + bits + heap;
	for (size_t i = 0; i < n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		v[i] = (struct numbered){ seed >> (64 - bits) >> heap << heap,
					  (uint32_t)(seed >> 9) };
	}
	memcpy(same, v, n * sizeof *v);
	v[n].seq = 0xdeadbeef;
	assert_true(elfrw_sort_numbers(v, n, sizeof *v, lo, hi, numbered_order));
	assert_int_equal(v[n].seq, 0xdeadbeef);
	qsort(same, n, sizeof *same, numbered_order);
	for (size_t i = 0; i < n; i++)
		assert_true(v[i].number == same[i].number && v[i].seq == same[i].seq);
	free(v);
	free(same);
}

static void test_sort_numbers(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 40; n++)
		check_numbers(n, 8, 0, 0, 255);
	check_numbers(5000, 32, 0, 0, UINT32_MAX);
	check_numbers(5000, 64, 0, 0, UINT64_MAX);
	/* In a few heaps; in one; outside of what was said, or nothing sensible is said. */
	check_numbers(5000, 32, 29, 0, UINT32_MAX);
	check_numbers(5000, 4, 0, 0, UINT64_MAX);
	check_numbers(5000, 32, 0, 1000, 2000);
	check_numbers(5000, 64, 0, UINT64_MAX, 0);
	check_numbers(5000, 64, 0, UINT64_MAX, UINT64_MAX);
}

static void test_sort(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 9; n++)
		for (size_t runs = 0; runs <= n; runs++)
			for (uint32_t keys = 1; keys < 5; keys++)
				check_sort(n, runs, keys);
	static const size_t runs[] = { 0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 65, 66, 200 };
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		check_sort(1000, runs[i], 17);
		check_sort(1023, runs[i], 100000);
	}
}

struct loop {
	atomic_uint calls[500];
	size_t order[500], n;
	size_t fail_from, fail_step;
};

static struct elfrw_err *count(void *arg, size_t i)
{
	struct loop *l = arg;
	l->calls[i]++;
	if (l->fail_step && i >= l->fail_from && (i - l->fail_from) % l->fail_step == 0)
		return elfrw_error("failed at %zu", i);
	return NULL;
}

static struct elfrw_err *note_order(void *arg, size_t i)
{
	struct loop *l = arg;
	l->order[l->n++] = i;
	return NULL;
}

static void test_parallel(void **state)
{
	(void)state;
	static const unsigned threads[] = { 0, 1, 2, 3, 8, 64, 1000 };
	for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
		struct loop l = { 0 };
		assert_null(elfrw_parallel(threads[t], 500, count, &l));
		for (size_t i = 0; i < 500; i++)
			assert_int_equal(l.calls[i], 1);
		assert_null(elfrw_parallel(threads[t], 0, count, &l));
		assert_null(elfrw_parallel(threads[t], 1, count, &l));
		assert_int_equal(l.calls[0], 2);
		assert_int_equal(l.calls[1], 1);
		/* The lowest error, however many there are and whoever is first. */
		l.fail_from = 37;
		l.fail_step = 3;
		text_is(elfrw_parallel(threads[t], 500, count, &l), "failed at 37");
		l.fail_from = 499;
		text_is(elfrw_parallel(threads[t], 500, count, &l), "failed at 499");
	}
	struct loop l = { 0 };
	assert_null(elfrw_parallel(1, 100, note_order, &l));
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(l.order[i], i);
}

/* Every text is where its offset says, texts that end others take no room, and what was there
 * stays. */
static void test_names(void **state)
{
	(void)state;
	static const char *const name[] = { ".text", NULL,    ".rela.text", ".rela.data", ".data",
					    "",      ".text", "b.data",     "x" };
	enum { N = sizeof name / sizeof *name };
	static const char head[] = "\0kept";
	for (int with_head = 0; with_head < 2; with_head++) {
		uint32_t off[N];
		struct elfrw_name_table made;
		size_t begin = with_head ? sizeof head : 1;
		struct elfrw_name_head start = { with_head ? head : NULL,
						 with_head ? sizeof head : 0 };
		assert_null(elfrw_names(name, N, start, off, &made));
		const uint8_t *table = made.data;
		assert_int_equal(made.size, begin + sizeof ".rela.text" + sizeof ".rela.data" +
						    sizeof "b.data" + sizeof "x");
		if (with_head)
			assert_memory_equal(table, head, sizeof head);
		assert_int_equal(table[0], 0);
		for (size_t i = 0; i < N; i++) {
			if (!name[i])
				continue;
			assert_true(off[i] < made.size && (with_head || off[i]));
			assert_string_equal((const char *)table + off[i], name[i]);
		}
		free(made.data);
	}
	/* Many names that are parts of one long one, as a broken file may have them. */
	enum { MANY = 3000 };
	char *text = malloc(MANY + 1);
	const char **part = malloc(MANY * sizeof *part);
	uint32_t *off = malloc(MANY * sizeof *off);
	memset(text, 'a', MANY);
	text[MANY] = 0;
	for (size_t i = 0; i < MANY; i++)
		part[i] = text + i;
	struct elfrw_name_table made;
	assert_null(elfrw_names(part, MANY, (struct elfrw_name_head){ 0 }, off, &made));
	for (size_t i = 0; i < MANY; i++)
		assert_string_equal((const char *)made.data + off[i], part[i]);
	free(made.data);
	free(text);
	free(part);
	free(off);
}

/* Each byte, at each place of a longer text. */
static void test_printable(void **state)
{
	(void)state;
	for (unsigned c = 1; c < 256; c++)
		for (size_t at = 0; at < 27; at++) {
			char text[28];
			memset(text, 'a', sizeof text - 1);
			text[27] = 0;
			text[at] = (char)c;
			char *got = elfrw_printable(text);
			assert_non_null(got);
			bool plain = c >= 0x20 && c < 0x7f;
			assert_true((got == text) == plain);
			if (plain)
				continue;
			char want[5], tail[28];
			snprintf(want, sizeof want, "\\x%02x", c);
			strcpy(tail, text + at + 1);
			assert_memory_equal(got, text, at);
			assert_memory_equal(got + at,
					    c == '\t'   ? "\\t"
					    : c == '\n' ? "\\n"
							: want,
					    c == '\t' || c == '\n' ? 2 : 4);
			assert_string_equal(got + at + (c == '\t' || c == '\n' ? 2 : 4), tail);
			free(got);
		}
}

/* Where elfrw_starts_range() lets a search for VA begin and end, beside a count of all. */
static void starts_hold(const struct elfrw_starts *b, const uint64_t *start, size_t n, uint64_t va)
{
	size_t from, to, want = 0;
	for (size_t i = 0; i < n; i++)
		want += start[i] <= va;
	elfrw_starts_range(b, va, &from, &to);
	assert_true(to <= n);
	assert_in_range(want, from, to);
}

static void test_starts(void **state)
{
	(void)state;
	static const uint64_t near[] = { 0x1001, 0x1001, 0x1002, 0x10ff, 0x1100, 0x1101,
					 0x1300, 0x1300, 0x1301, 0x2000, 0x2000 },
			      far[] = { 1, 2, UINT64_MAX - 1, UINT64_MAX },
			      high[] = { UINT64_MAX - 0x180, UINT64_MAX - 1, UINT64_MAX };
	static const struct {
		const uint64_t *v;
		size_t n;
	} lists[] = { { near, 11 }, { near, 1 }, { far, 4 }, { high, 3 }, { near, 0 } };
	for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
		struct elfrw_starts b;
		assert_true(elfrw_starts_make(&b, lists[k].v, sizeof *near, lists[k].n));
		for (uint64_t va = 0; va < 0x2200; va++)
			starts_hold(&b, lists[k].v, lists[k].n, va);
		for (uint64_t va = UINT64_MAX - 0x400; va; va++)
			starts_hold(&b, lists[k].v, lists[k].n, va);
		/* Distant addresses make no large index. */
		assert_true(!b.blocks.first == (lists[k].v == far || !lists[k].n));
		elfrw_blocks_deinit(&b.blocks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),        cmocka_unit_test(test_err),
		cmocka_unit_test(test_try),          cmocka_unit_test(test_vec),
		cmocka_unit_test(test_rbuf),         cmocka_unit_test(test_cstr),
		cmocka_unit_test(test_leb_read),     cmocka_unit_test(test_leb_round),
		cmocka_unit_test(test_wbuf),         cmocka_unit_test(test_sort),
		cmocka_unit_test(test_sort_numbers), cmocka_unit_test(test_parallel),
		cmocka_unit_test(test_printable),    cmocka_unit_test(test_starts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
