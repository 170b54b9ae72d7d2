/* source.c: which process or thread wrote a line, as far as what stands before its frame tells.
 *
 * Loggers put times and the writer's name and number there.  Frames of writers that write at the
 * same time are not one stack.  Times differ from line to line, and so may numbers that stand
 * alone; numbers that belong to a name, or are a process's or a thread's, do not: prog[12], web_1,
 * T12, pid=12. */
#include "icf/cmd/log/state.h"
#include <ctype.h>

struct reader {
	const char *start, *p, *end;
	bool counts; /* P is in a number that says who writes */
};

static bool is_digit(const struct reader *r, const char *p)
{
	return p < r->end && isdigit((unsigned char)*p);
}

/* Does TEXT stand before P? */
static bool behind(const struct reader *r, const char *p, const char *text)
{
	size_t n = strlen(text);
	return (size_t)(p - r->start) >= n && !memcmp(p - n, text, n);
}

/* Does the number that begins at P say who writes? */
static bool is_own(const struct reader *r, const char *p)
{
	const char *to = p;
	if (p == r->start)
		return false;
	while (is_digit(r, to))
		to++;
	unsigned char last = (unsigned char)p[-1];
	if (last == '[')
		return to < r->end && *to == ']';
	if (last == '-')
		return p - r->start > 1 && isalpha((unsigned char)p[-2]);
	return isalpha(last) || last == '_' || behind(r, p, "id=") || behind(r, p, "id ") ||
	       behind(r, p, "thread=");
}

/* The end of a time, an address or another number at P. */
static const char *end_of_number(const struct reader *r, const char *p)
{
	bool hex = r->end - p > 2 && p[0] == '0' && p[1] == 'x';
	p += hex ? 2 : 0;
	while (p < r->end && (isdigit((unsigned char)*p) ||
			      (hex ? isxdigit((unsigned char)*p) : strchr(":.,-+/TZ", *p) && *p)))
		p++;
	return p;
}

/* The end of the terminal's colour at P, or P. */
static const char *end_of_colour(const struct reader *r, const char *p)
{
	const char *to = p + 2;
	if (r->end - p < 3 || p[0] != '\033' || p[1] != '[')
		return p;
	while (to < r->end && (isdigit((unsigned char)*to) || *to == ';'))
		to++;
	return to < r->end && *to == 'm' ? to + 1 : p;
}

/* The next character that counts, or -1. */
static int next(struct reader *r)
{
	while (r->p < r->end) {
		const char *p = r->p;
		if (is_digit(r, p) && (r->counts || is_own(r, p))) {
			r->counts = true;
			return *r->p++;
		}
		r->counts = false;
		const char *to = is_digit(r, p) ? end_of_number(r, p) : end_of_colour(r, p);
		if (to == p && *p != ' ' && *p != '\t')
			return (unsigned char)*r->p++;
		r->p = to == p ? p + 1 : to;
	}
	return -1;
}

bool icf_log_same_source(const char *a, size_t n_a, const char *b, size_t n_b)
{
	struct reader x = { a, a, a + n_a, false }, y = { b, b, b + n_b, false };
	int c;
	do {
		if ((c = next(&x)) != next(&y))
			return false;
	} while (c >= 0);
	return true;
}
