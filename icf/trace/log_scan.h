/* log_scan.h: how the files that recognise stack frames in logs read a line. */
#ifndef ICF_TRACE_LOG_SCAN_H
#define ICF_TRACE_LOG_SCAN_H
#include "icf/trace/log_frame.h"
#include <ctype.h>
#include <string.h>

#define MAX_PLACE 4224       /* bytes of a file's name (PATH_MAX) with an offset */
#define MAX_WORK  (1u << 20) /* bytes read again in one line */

/* Text that is read from left to right. */
struct text {
	const char *start, *p, *end;
	size_t *work; /* what is left of MAX_WORK */
};

/* May N bytes be read again? */
static inline bool spend(const struct text *t, size_t n)
{
	bool enough = n <= *t->work;
	*t->work -= enough ? n : *t->work;
	return enough;
}

static inline size_t left(const struct text *t)
{
	return (size_t)(t->end - t->p);
}

static inline struct icf_log_part part(const struct text *t, const char *from, const char *to)
{
	return (struct icf_log_part){ (uint32_t)(from - t->start), (uint32_t)(to - from) };
}

static inline bool take(struct text *t, const char *what)
{
	size_t n = strlen(what);
	if (left(t) < n || memcmp(t->p, what, n))
		return false;
	t->p += n;
	return true;
}

static inline size_t skip_space(struct text *t)
{
	const char *from = t->p;
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
	return (size_t)(t->p - from);
}

/* A number of base 10 or 16 (without 0x) that fits 64 bits. */
static inline bool take_number(struct text *t, unsigned base, uint64_t *ret)
{
	const char *from = t->p;
	uint64_t v = 0;
	for (; t->p < t->end; t->p++) {
		unsigned char c = (unsigned char)*t->p;
		unsigned digit = 16;
		if (isdigit(c))
			digit = c - (unsigned)'0';
		else if (isxdigit(c))
			digit = (c | 0x20u) - 'a' + 10;
		if (digit >= base)
			break;
		if (v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	*ret = v;
	return t->p > from;
}

static inline bool take_hex(struct text *t, uint64_t *ret)
{
	return take(t, "0x") && take_number(t, 16, ret);
}

/* The bytes from S to END: FILE+0xOFFSET. */
static inline bool split_offset(const struct text *t, const char *s, const char *end,
				struct icf_log_part *file, uint64_t *offset)
{
	const char *p = end;
	while (p > s && end - p <= 16 && isxdigit((unsigned char)p[-1]))
		p--;
	struct text number = { s, p, end, t->work };
	if (p - s < 4 || memcmp(p - 3, "+0x", 3) || !take_number(&number, 16, offset))
		return false;
	*file = part(t, s, p - 3);
	return true;
}

/* The bracket that the one at END - 1 closes, or NULL. */
static inline const char *opening(const char *s, const char *end)
{
	unsigned depth = 0;
	for (const char *p = end; p-- > s;) {
		depth += *p == ')';
		depth -= *p == '(';
		if (!depth)
			return p;
	}
	return NULL;
}

/* A sanitizer's frame, from the # on.  *OTHER: a frame that this is not for. */
bool icf_log_sanitizer(struct text t, struct icf_log_frame *f, bool *other);
#endif
