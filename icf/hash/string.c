/* string.c: strings among constants, whose bounds nobody tells.
 *
 * Cost: linear in the bytes, for places that are asked for in the order of their addresses. */
#include "icf/hash/state.h"

static bool is_character(uint8_t c)
{
	return c >= 32 || (c >= 7 && c <= 13) || c == 27;
}

/* Letters, signs and white space, up to a NUL before LIMIT: how many there are; -1: something else.
 */
static int64_t text_length(const uint8_t *s, uint64_t limit)
{
	for (uint64_t i = 0; i < limit; i++) {
		if (!s[i])
			return (int64_t)i;
		if (!is_character(s[i]))
			return -1;
	}
	return -1;
}

/* The same.  Where strings have no NUL, as in Rust, thousands of places are in one text, which is
 * read once: T is what was read of it. */
static int64_t text_length_from(struct icf_text *t, const uint8_t *s, uint64_t limit)
{
	const uint8_t *max = s + limit;
	if (s < t->from || s > t->to)
		*t = (struct icf_text){ s, s, false };
	while (!t->ends && t->to < max)
		if (is_character(*t->to))
			t->to++;
		else
			t->ends = true;
	return t->ends && t->to < max && !*t->to ? t->to - s : -1;
}

#define TEXT_LEAST 3
#define TEXT_MOST  65536
#define TEXT_SURE  16
#define TEXT_GAP   32 /* more zeros are a table and no empty string with what fills a gap */

/* Does a string follow the NUL at S and VA, at the next place where compilers put long ones, behind
 * nothing but what fills the gap? */
static bool is_before_long_text(const uint8_t *s, uint64_t va, uint64_t limit)
{
	uint64_t gap = 8 - (va & 7);
	return limit > gap && elfrw_all_zero(s, gap) &&
	       text_length(s + gap, limit - gap) >= TEXT_SURE;
}

int64_t icf_string_length(struct icf_text *t, const uint8_t *s, uint64_t va, uint64_t limit,
			  uint64_t next, bool behind_text)
{
	limit = limit < TEXT_MOST ? limit : TEXT_MOST;
	int64_t n = text_length_from(t, s, limit);
	uint64_t at = (uint64_t)n + 1;
	if (!n && behind_text && is_before_long_text(s, va, limit))
		return 0;
	if (!n && next > TEXT_GAP && elfrw_all_zero(s, TEXT_GAP))
		return -1;
	if (n < 0 || n >= TEXT_LEAST || elfrw_all_zero(s + n, next > at ? next - at : 0))
		return n;
	return text_length(s + at, limit - at) >= (n == 2 || behind_text ? 1 : TEXT_LEAST) ? n : -1;
}

bool icf_is_behind_text(const struct elfrw_section *s, uint64_t off)
{
	uint64_t n = 0;
	while (n < TEXT_LEAST && n < off && s->data[off - n - 1] >= 32 &&
	       s->data[off - n - 1] < 127)
		n++;
	return !s->data[off] && n == TEXT_LEAST;
}

uint64_t icf_before_text(const uint8_t *s, uint64_t va, uint64_t size)
{
	uint64_t k = -va & 7;
	for (k = k ? k : 8; k + TEXT_SURE <= size; k += 8)
		if (!s[k - 1] && text_length(s + k, size - k) >= TEXT_SURE)
			return k;
	return size;
}
