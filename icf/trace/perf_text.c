/* perf_text.c: see perf_text.h.  The input is arbitrary: text that does not have perf's form is no
 * frame. */
#include "icf/trace/perf_text.h"
#include <string.h>

#define MAX_TRIES 64 /* to find a frame in one line */

bool icf_perf_is(const char *s, size_t n, const char *text)
{
	return strlen(text) == n && !memcmp(s, text, n);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the hexadecimal number before END; *N: bytes read. */
static uint64_t hex(const char *s, const char *end, size_t *n)
{
	uint64_t v = 0;
	for (*n = 0; s + *n < end && *n < 16 && hex_digit(s[*n]) >= 0; ++*n)
		v = v << 4 | (unsigned)hex_digit(s[*n]);
	return v;
}

/* Cuts "+0xHEX" from the end of the *N bytes at S. */
static uint64_t cut_offset(const char *s, size_t *n)
{
	const char *plus = memrchr(s, '+', *n);
	size_t digits;
	if (!plus || plus == s || s + *n - plus < 4 || plus[1] != '0' || plus[2] != 'x')
		return UINT64_MAX;
	uint64_t v = hex(plus + 3, s + *n, &digits);
	if (plus + 3 + digits != s + *n)
		return UINT64_MAX;
	*n = (size_t)(plus - s);
	return v;
}

/* "IP NAME (DSO)" from C to END in the line at S. */
bool icf_perf_parse_frame(const char *s, const char *c, const char *end, struct icf_perf_parts *ret)
{
	size_t n_ip, n_name, n_dso;
	*ret = (struct icf_perf_parts){ .ip = (uint32_t)(c - s), .end = (uint32_t)(end - s) };
	ret->address = hex(c, end, &n_ip);
	if (!n_ip || c + n_ip >= end || c[n_ip] != ' ' || end[-1] != ')')
		return false;
	const char *name = c + n_ip + 1, *open = NULL;
	/* The first " (/", since names have no such thing, or the last " (". */
	for (const char *t = name; (t = memmem(t, (size_t)(end - t), " (", 2)); t++) {
		open = t + 1;
		if (t + 2 < end && t[2] == '/')
			break;
	}
	if (!open || open - 1 == name || *name == ' ')
		return false;
	n_name = (size_t)(open - 1 - name);
	ret->offset = cut_offset(name, &n_name);
	n_dso = (size_t)(end - 2 - open);
	/* "FROM NAME (FILE) => TO NAME (FILE)" is no place. */
	if (memmem(open, n_dso, ") => ", 5))
		return false;
	ret->inlined = icf_perf_is(open + 1, n_dso, "inlined");
	ret->file_offset = cut_offset(open + 1, &n_dso);
	ret->n_ip = (uint32_t)n_ip;
	ret->name = (uint32_t)(name - s);
	ret->n_name = (uint32_t)n_name;
	ret->dso = (uint32_t)(open + 1 - s);
	ret->n_dso = (uint32_t)n_dso;
	return n_name != 0;
}

bool icf_perf_parse_bare(const char *s, const char *c, const char *end, struct icf_perf_parts *ret)
{
	size_t n_ip, n_name = 0, n_dso = 0;
	uint64_t address = hex(c, end, &n_ip), offset = UINT64_MAX, file_offset = UINT64_MAX;
	const char *rest = c + n_ip + 1;
	if (!n_ip || (c + n_ip < end && c[n_ip] != ' '))
		return false;
	/* "(anonymous namespace)::f(int)" is a name. */
	if (end - rest > 2 && rest[0] == '(' && end[-1] == ')' &&
	    (rest[1] == '/' || memchr(rest, ')', (size_t)(end - rest)) == end - 1)) {
		n_dso = (size_t)(end - rest - 2);
		file_offset = cut_offset(rest + 1, &n_dso);
	} else if (rest < end) {
		if (*s != '\t' || *rest == ' ')
			return false;
		n_name = (size_t)(end - rest);
		offset = cut_offset(rest, &n_name);
	}
	*ret = (struct icf_perf_parts){ .ip = (uint32_t)(c - s),
					.n_ip = (uint32_t)n_ip,
					.end = (uint32_t)(end - s),
					.address = address,
					.offset = offset,
					.file_offset = file_offset,
					.name = n_name ? (uint32_t)(rest - s) : 0,
					.n_name = (uint32_t)n_name,
					.dso = n_dso ? (uint32_t)(rest + 1 - s) : 0,
					.n_dso = (uint32_t)n_dso };
	return true;
}

/* Parses the frame at the end of a sample's line: behind the last ": " that a number follows.
 * Each try may read to the end of the line, so there are few. */
bool icf_perf_parse_sample(const char *s, const char *end, struct icf_perf_parts *ret)
{
	unsigned tries = 0;
	if (end == s || end[-1] != ')')
		return false;
	for (const char *c = end; c && c > s && tries < MAX_TRIES;
	     c = memrchr(s, ':', (size_t)(c - s))) {
		const char *ip = c + 1;
		while (ip < end && *ip == ' ')
			ip++;
		/* "1 EVENT: TEXT (TEXT)" is no function: names have no ": ". */
		bool possible = c < end && ip > c + 1;
		tries += possible;
		if (possible && icf_perf_parse_frame(s, ip, end, ret))
			return !memmem(s + ret->name, ret->n_name + 1, ": ", 2);
	}
	return false;
}

bool icf_perf_ends_bare(const char *s, const char *end)
{
	size_t n = (size_t)(end - s), n_ip;
	if (cut_offset(s, &n) == UINT64_MAX)
		return false;
	end = s + n;
	/* Names have no ": ", so numbers before one are none of code.  Nor are short ones. */
	for (const char *t = s; (t = memmem(t, (size_t)(end - t), ": ", 2)); s = t)
		t += 2;
	for (const char *c = s, *e; (e = memchr(c, ' ', (size_t)(end - c))); c = e + 1)
		if (hex(c, e, &n_ip) && n_ip > 2 && c + n_ip == e && e + 1 < end && e[1] != ' ')
			return true;
	return false;
}

static size_t count_digits(const char *s, const char *e)
{
	size_t n = 0;
	while (s + n < e && s[n] >= '0' && s[n] <= '9')
		n++;
	return n;
}

/* "[CPU]" or "SECONDS.FRACTION:", which are behind the process. */
static bool is_behind(const char *s, const char *e)
{
	size_t n = count_digits(s, e);
	if (*s == '[')
		return (n = count_digits(s + 1, e)) && s + n + 2 == e && e[-1] == ']';
	return n && s + n < e && s[n] == '.' && e[-1] == ':' &&
	       s + n + 2 + count_digits(s + n + 1, e) == e;
}

bool icf_perf_find_pid(const char *s, const char *end, const char **at, const char **behind,
		       int64_t *pid)
{
	const char *first[2] = { 0 }, *last[2] = { 0 };
	bool pair = false, bound = false;
	while (s < end && *s == ' ')
		s++;
	for (unsigned word = 0; s < end && word < 16 && !bound; word++) {
		const char *e = memchr(s, ' ', (size_t)(end - s));
		e = e ? e : end;
		size_t n = count_digits(s, e);
		bound = word && is_behind(s, e);
		if (word && !bound && n && n <= 10 && (s + n == e || s[n] == '/')) {
			bool both = s + n + 1 < e && s + n + 1 + count_digits(s + n + 1, e) == e;
			last[0] = s;
			last[1] = e;
			if (!first[0] || (both && !pair)) {
				first[0] = s;
				first[1] = e;
				pair = both;
			}
		}
		for (s = e; s < end && *s == ' '; s++)
			;
	}
	/* Without the CPU or the time behind it, a later number can be the period. */
	*at = bound ? last[0] : first[0];
	*behind = bound ? last[1] : first[1];
	*pid = 0;
	for (const char *c = *at; c && c < *behind && *c != '/'; c++)
		*pid = 10 * *pid + (*c - '0');
	return *at != NULL;
}

int64_t icf_perf_parse_pid(const char *s, const char *end)
{
	const char *at, *behind;
	int64_t pid;
	return icf_perf_find_pid(s, end, &at, &behind, &pid) ? pid : -1;
}

bool icf_perf_parse_mapping(const char *s, const char *end, struct icf_perf_mapping *ret)
{
	const char *c = memmem(s, (size_t)(end - s), "PERF_RECORD_MMAP", 16);
	size_t n;
	*ret = (struct icf_perf_mapping){ 0 };
	if (!c || !(c = memchr(c, ' ', (size_t)(end - c))))
		return false;
	for (c++; c < end && *c >= '0' && *c <= '9' && ret->pid < INT32_MAX; c++)
		ret->pid = 10 * ret->pid + (*c - '0');
	if (!(c = memmem(c, (size_t)(end - c), "[0x", 3)))
		return false;
	ret->start = hex(c + 3, end, &n);
	c += 3 + n;
	if (end - c > 3 && !memcmp(c, "(0x", 3))
		ret->size = hex(c + 3, end, &n);
	if (!(c = memmem(c, (size_t)(end - c), "@ ", 2)))
		return false;
	c += 2;
	c += end - c > 2 && c[0] == '0' && c[1] == 'x' ? 2 : 0;
	ret->offset = hex(c, end, &n);
	if (!(c = memmem(c, (size_t)(end - c), "]: ", 3)))
		return false;
	const char *allowed = c + 3;
	if (!(c = memchr(allowed, ' ', (size_t)(end - allowed))))
		return false;
	ret->path = c + 1;
	/* perf record -d shows mappings of data, too, which can begin at the same place in the
	 * file. */
	return memchr(allowed, 'x', (size_t)(c - allowed));
}
