/* printable.c: see printable.h. */
#include "elfrw/base/printable.h"
#include "elfrw/base/memstream.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t elfrw_utf8_bytes(const char *text, size_t n, unsigned *code)
{
	const unsigned char *s = (const unsigned char *)text;
	*code = 0;
	size_t len = s[0] < 0x80   ? 1
		     : s[0] < 0xc2 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf5 ? 4
				   : 0;
	static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	if (!len || len > n)
		return 0;
	unsigned c = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return len;
}

static bool acts(unsigned c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t elfrw_plain_bytes(const char *s, size_t n, unsigned *code)
{
	size_t len = elfrw_utf8_bytes(s, n, code);
	return len && !acts(*code) ? len : 0;
}

/* Bytes of 0x20 to 0x7e that S begins with, in eights: nearly all of nearly all texts. */
static size_t ascii_bytes(const char *s, size_t n)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = 0x80 * ones;
	size_t at = 0;
	for (uint64_t w; n - at >= sizeof w; at += sizeof w) {
		memcpy(&w, s + at, sizeof w);
		/* Without high bits no byte borrows from the next one, unless it is too small. */
		if ((w | (w - 0x20 * ones) | (w + ones)) & high)
			break;
	}
	return at;
}

void elfrw_put_printable_n(FILE *f, const char *s, size_t n)
{
	size_t from = 0, at = ascii_bytes(s, n);
	while (at < n) {
		unsigned code;
		size_t len = elfrw_plain_bytes(s + at, n - at, &code);
		if (len) {
			at += len;
			continue;
		}
		if (at > from)
			fwrite(s + from, 1, at - from, f);
		len = elfrw_utf8_bytes(s + at, n - at, &code);
		if (len && code == '\n')
			fputs("\\n", f);
		else if (len && code == '\t')
			fputs("\\t", f);
		else if (len > 2)
			fprintf(f, "\\u%04x", code);
		else
			fprintf(f, "\\x%02x", len ? code : (unsigned char)s[at]);
		at += len ? len : 1;
		from = at;
	}
	if (at > from)
		fwrite(s + from, 1, at - from, f);
}

void elfrw_put_printable(FILE *f, const char *s)
{
	elfrw_put_printable_n(f, s, strlen(s));
}

void elfrw_put_printable_line(FILE *f, const char *s)
{
	elfrw_put_printable(f, s);
	putc('\n', f);
}

char *elfrw_printable(const char *s)
{
	size_t n = strlen(s), at = ascii_bytes(s, n), len;
	unsigned code;
	while (at < n && (len = elfrw_plain_bytes(s + at, n - at, &code)))
		at += len;
	if (at == n)
		return (char *)s;
	char *ret = NULL;
	FILE *f = open_memstream(&ret, &len);
	if (!f)
		return NULL;
	elfrw_put_printable_n(f, s, n);
	return elfrw_memstream_close(f, &ret) ? ret : NULL;
}

void elfrw_put_json_text(FILE *f, const char *text, const char *also)
{
	size_t len;
	unsigned code;
	for (const char *p = text, *end = text + strlen(text); p < end; p += len) {
		len = elfrw_plain_bytes(p, (size_t)(end - p), &code);
		if (len && !strchr(also, *p)) {
			if (*p == '"' || *p == '\\')
				putc('\\', f);
			fwrite(p, 1, len, f);
			continue;
		}
		len = elfrw_utf8_bytes(p, (size_t)(end - p), &code);
		if (code == '\t')
			fputs("\\t", f);
		else if (code == '\n')
			fputs("\\n", f);
		else if (code == '\r')
			fputs("\\r", f);
		else
			fprintf(f, "\\u%04x", len ? code : 0xfffd);
		len += !len;
	}
}

void elfrw_put_json(FILE *f, const char *text, const char *also)
{
	putc('"', f);
	elfrw_put_json_text(f, text, also);
	putc('"', f);
}
