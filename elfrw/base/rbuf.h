/* rbuf.h: the bounds-checked little-endian reader for all input bytes.
 *
 * Failure is sticky: a read past the end returns 0, sets `bad` and moves nothing.  So a record can
 * be read as a whole and checked once (elfrw_rbuf_ok).  `pos` may be set directly within [start,
 * end].  The bytes are borrowed. */
#ifndef ELFRW_BASE_RBUF_H
#define ELFRW_BASE_RBUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct elfrw_rbuf {
	const uint8_t *start, *pos, *end;
	bool bad;
};

static inline struct elfrw_rbuf elfrw_rbuf(const void *data, size_t size)
{
	static const uint8_t none[1] = {
		0
	}; /* an empty buffer may be NULL, on which arithmetic is undefined */
	const uint8_t *p = data ? data : none;
	return (struct elfrw_rbuf){ p, p, p + size, false };
}

static inline bool elfrw_rbuf_ok(const struct elfrw_rbuf *r)
{
	return !r->bad;
}
static inline size_t elfrw_rbuf_left(const struct elfrw_rbuf *r)
{
	return (size_t)(r->end - r->pos);
}
static inline size_t elfrw_rbuf_off(const struct elfrw_rbuf *r)
{
	return (size_t)(r->pos - r->start);
}

/* N bytes, or NULL and bad. */
static inline const uint8_t *elfrw_rbuf_take(struct elfrw_rbuf *r, uint64_t n)
{
	if (r->bad || n > elfrw_rbuf_left(r)) {
		r->bad = true;
		return NULL;
	}
	const uint8_t *p = r->pos;
	r->pos += n;
	return p;
}

static inline void elfrw_rbuf_skip(struct elfrw_rbuf *r, uint64_t n)
{
	(void)elfrw_rbuf_take(r, n);
}

/* Moves to OFF bytes from the start. */
static inline void elfrw_rbuf_seek(struct elfrw_rbuf *r, uint64_t off)
{
	if (off > (size_t)(r->end - r->start))
		r->bad = true;
	else
		r->pos = r->start + off;
}

static inline uint16_t elfrw_get16(const void *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}
static inline uint32_t elfrw_get32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
static inline uint64_t elfrw_get64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}
static inline uint64_t elfrw_get_le(const uint8_t *p, unsigned size)
{
	switch (size) { /* all but a few fields */
	case 1: return *p;
	case 2: return elfrw_get16(p);
	case 4: return elfrw_get32(p);
	case 8: return elfrw_get64(p);
	}
	uint64_t v = 0;
	for (unsigned i = 0; i < size; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}
static inline void elfrw_put16(void *p, uint16_t v)
{
	memcpy(p, &v, 2);
}
static inline void elfrw_put32(void *p, uint32_t v)
{
	memcpy(p, &v, 4);
}
static inline void elfrw_put64(void *p, uint64_t v)
{
	memcpy(p, &v, 8);
}
static inline void elfrw_put_le(uint8_t *p, uint64_t v, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}
/* The same, faster, for the many fields whose size, mostly 4 or 8, a file states. */
static inline void elfrw_put_field(uint8_t *p, uint64_t v, unsigned size)
{
	if (size == 8)
		elfrw_put64(p, v);
	else if (size == 4)
		elfrw_put32(p, (uint32_t)v);
	else
		elfrw_put_le(p, v, size);
}

/* An unsigned little-endian field of SIZE bytes, 0 to 8. */
static inline uint64_t elfrw_rbuf_uint(struct elfrw_rbuf *r, unsigned size)
{
	const uint8_t *p = elfrw_rbuf_take(r, size);
	return p ? elfrw_get_le(p, size) : 0;
}
static inline uint8_t elfrw_rbuf_u8(struct elfrw_rbuf *r)
{
	const uint8_t *p = elfrw_rbuf_take(r, 1);
	return p ? *p : 0;
}
static inline uint16_t elfrw_rbuf_u16(struct elfrw_rbuf *r)
{
	const uint8_t *p = elfrw_rbuf_take(r, 2);
	return p ? elfrw_get16(p) : 0;
}
static inline uint32_t elfrw_rbuf_u32(struct elfrw_rbuf *r)
{
	const uint8_t *p = elfrw_rbuf_take(r, 4);
	return p ? elfrw_get32(p) : 0;
}
static inline uint64_t elfrw_rbuf_u64(struct elfrw_rbuf *r)
{
	const uint8_t *p = elfrw_rbuf_take(r, 8);
	return p ? elfrw_get64(p) : 0;
}

/* LEB128 (DWARF 5, section 7.6).  Bits beyond 64 are dropped; an unterminated number is bad. */
static inline uint64_t elfrw_rbuf_uleb(struct elfrw_rbuf *r)
{
	uint64_t v = 0;
	if (!r->bad && r->pos < r->end && !(*r->pos & 0x80)) /* nearly all */
		return *r->pos++;
	for (unsigned shift = 0;; shift += 7) {
		const uint8_t *p = elfrw_rbuf_take(r, 1);
		if (!p)
			return 0;
		if (shift < 64)
			v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80))
			return v;
	}
}

static inline int64_t elfrw_rbuf_sleb(struct elfrw_rbuf *r)
{
	uint64_t v = 0;
	for (unsigned shift = 0;;) {
		const uint8_t *p = elfrw_rbuf_take(r, 1);
		if (!p)
			return 0;
		if (shift < 64)
			v |= (uint64_t)(*p & 0x7f) << shift;
		shift += 7;
		if (!(*p & 0x80)) {
			if (shift < 64 && (*p & 0x40))
				v |= ~(uint64_t)0 << shift;
			return (int64_t)v;
		}
	}
}

/* A NUL-terminated string inside the buffer, or NULL and bad. */
static inline const char *elfrw_rbuf_cstr(struct elfrw_rbuf *r)
{
	const uint8_t *nul =
		r->bad || r->pos == r->end ? NULL : memchr(r->pos, 0, elfrw_rbuf_left(r));
	if (!nul) {
		r->bad = true;
		return NULL;
	}
	const char *s = (const char *)r->pos;
	r->pos = nul + 1;
	return s;
}
#endif
