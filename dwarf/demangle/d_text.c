/* d_text.c: reads letters of a D name and makes text; counts every step. */
#include "dwarf/demangle/d.h"
#include "dwarf/demangle/parts.h"
#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 256
#define MAX_STEPS (1u << 17)

bool dwr_d_step(struct dwr_d *r, size_t n)
{
	if (n >= MAX_STEPS || r->steps + n >= MAX_STEPS)
		return false;
	r->steps += (unsigned)n;
	return true;
}

bool dwr_d_enter(struct dwr_d *r)
{
	return dwr_d_step(r, 1) && ++r->depth <= MAX_DEPTH;
}

bool dwr_d_leave(struct dwr_d *r, bool ok)
{
	r->depth--;
	return ok;
}

bool dwr_d_put(struct dwr_d *r, const char *s, size_t n)
{
	if (!dwr_d_step(r, 1 + n / 64) || r->text.len + n > DWR_DEMANGLE_TEXT)
		return false;
	if (!VEC_RESERVE(&r->text, r->text.len + n)) {
		r->nomem = true;
		return false;
	}
	if (n)
		memcpy(r->text.data + r->text.len, s, n);
	r->text.len += n;
	return true;
}

bool dwr_d_say(struct dwr_d *r, const char *s)
{
	return dwr_d_put(r, s, strlen(s));
}

bool dwr_d_put_again(struct dwr_d *r, size_t from, size_t to)
{
	size_t n = to - from;
	if (!VEC_RESERVE(&r->text, r->text.len + n)) {
		r->nomem = true;
		return false;
	}
	return dwr_d_put(r, r->text.data + from, n);
}

void dwr_d_drop(struct dwr_d *r, size_t from, size_t to)
{
	if (r->text.len > to)
		memmove(r->text.data + from, r->text.data + to, r->text.len - to);
	r->text.len -= to - from;
}

bool dwr_d_starts(const struct dwr_d *r, size_t at, const char *what)
{
	return at <= r->n && !strncmp(r->s + at, what, strlen(what));
}

bool dwr_d_eat(struct dwr_d *r, char c)
{
	if (dwr_d_peek(r, 0) != c)
		return false;
	r->at++;
	return true;
}

bool dwr_d_number(struct dwr_d *r, size_t *ret)
{
	size_t v = 0;
	if (!isdigit((unsigned char)dwr_d_peek(r, 0)))
		return false;
	while (isdigit((unsigned char)dwr_d_peek(r, 0))) {
		v = v * 10 + (size_t)(r->s[r->at++] - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*ret = v;
	return r->at < r->n;
}

bool dwr_d_back_target(const struct dwr_d *r, size_t at, size_t *to, size_t *next)
{
	size_t v = 0, q = at++;
	for (; at < r->n && isalpha((unsigned char)r->s[at]) && v <= r->n; at++) {
		bool low = islower((unsigned char)r->s[at]);
		v = v * 26 + (size_t)(r->s[at] - (low ? 'a' : 'A'));
		if (!low)
			continue;
		*to = q - v;
		*next = at + 1;
		return v && v <= q;
	}
	return false;
}
