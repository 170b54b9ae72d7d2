/* wbuf.h: a growing little-endian writer.  Failure (out of memory) is sticky in `bad`: write a
 * whole section, check once.  The wbuf owns `data` until elfrw_wbuf_take() hands it over;
 * elfrw_wbuf_free() frees it. */
#ifndef ELFRW_BASE_WBUF_H
#define ELFRW_BASE_WBUF_H
#include "elfrw/base/rbuf.h"
#include "elfrw/base/vec.h"

struct elfrw_wbuf {
	uint8_t *data;
	size_t len, cap;
	bool bad;
};

/* Appends N bytes of any value and returns them; NULL (and bad): out of memory. */
static inline uint8_t *elfrw_wbuf_room(struct elfrw_wbuf *w, size_t n)
{
	if (w->bad || n > SIZE_MAX - w->len ||
	    !elfrw_vec_grow((void **)&w->data, &w->cap, w->len + n, 1)) {
		w->bad = true;
		return NULL;
	}
	if (!n)
		return w->data;
	uint8_t *p = w->data + w->len;
	w->len += n;
	return p;
}

/* The same with zeros. */
static inline uint8_t *elfrw_wbuf_grow(struct elfrw_wbuf *w, size_t n)
{
	uint8_t *p = elfrw_wbuf_room(w, n);
	if (p && n)
		memset(p, 0, n);
	return p;
}

static inline void elfrw_wbuf_bytes(struct elfrw_wbuf *w, const void *src, size_t n)
{
	uint8_t *p = elfrw_wbuf_room(w, n);
	if (p && n)
		memcpy(p, src, n);
}

static inline void elfrw_wbuf_uint(struct elfrw_wbuf *w, uint64_t v, unsigned size)
{
	uint8_t *p = elfrw_wbuf_grow(w, size);
	if (p)
		elfrw_put_le(p, v, size);
}
static inline void elfrw_wbuf_u8(struct elfrw_wbuf *w, uint8_t v)
{
	elfrw_wbuf_uint(w, v, 1);
}
static inline void elfrw_wbuf_u16(struct elfrw_wbuf *w, uint16_t v)
{
	elfrw_wbuf_uint(w, v, 2);
}
static inline void elfrw_wbuf_u32(struct elfrw_wbuf *w, uint32_t v)
{
	elfrw_wbuf_uint(w, v, 4);
}
static inline void elfrw_wbuf_u64(struct elfrw_wbuf *w, uint64_t v)
{
	elfrw_wbuf_uint(w, v, 8);
}
static inline void elfrw_wbuf_cstr(struct elfrw_wbuf *w, const char *s)
{
	elfrw_wbuf_bytes(w, s, strlen(s) + 1);
}

/* The number of bytes that elfrw_wbuf_uleb() writes. */
static inline unsigned elfrw_uleb_size(uint64_t v)
{
	unsigned n = 1;
	while (v >>= 7)
		n++;
	return n;
}

static inline void elfrw_wbuf_uleb(struct elfrw_wbuf *w, uint64_t v)
{
	do {
		uint8_t b = v & 0x7f;
		v >>= 7;
		elfrw_wbuf_u8(w, v ? b | 0x80 : b);
	} while (v);
}

static inline void elfrw_wbuf_sleb(struct elfrw_wbuf *w, int64_t v)
{
	for (;;) {
		uint8_t b = v & 0x7f;
		v >>= 7;
		bool last = (v == 0 && !(b & 0x40)) || (v == -1 && (b & 0x40));
		elfrw_wbuf_u8(w, last ? b : b | 0x80);
		if (last)
			return;
	}
}

/* Appends zero bytes until the length is a multiple of ALIGN (a power of two). */
static inline void elfrw_wbuf_align(struct elfrw_wbuf *w, size_t align)
{
	elfrw_wbuf_grow(w, -w->len & (align - 1));
}

/* Hands the bytes over to the caller, who frees them with free(). */
static inline uint8_t *elfrw_wbuf_take(struct elfrw_wbuf *w)
{
	uint8_t *p = w->data;
	memset(w, 0, sizeof *w);
	return p;
}

static inline void elfrw_wbuf_free(struct elfrw_wbuf *w)
{
	free(w->data);
	memset(w, 0, sizeof *w);
}
#endif
