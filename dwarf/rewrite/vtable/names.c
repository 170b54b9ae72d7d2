/* names.c: the class in the mangled name of a member (Itanium C++ ABI, section 5.1); see
 * vtable.c. */
#include "dwarf/rewrite/vtable/state.h"
#include "elfrw/base/search.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t dwr_vtable_find_name(const struct dwr_vtable_search *s, const char *text, size_t len)
{
	size_t lo = LOWER_BOUND(0, s->object.len, mid,
				dwr_vtable_text_order(s->object.data[mid].name,
						      s->object.data[mid].len, text, len) < 0);
	const struct dwr_vtable_object *o = lo < s->object.len ? &s->object.data[lo] : NULL;
	return o && dwr_vtable_text_order(o->name, o->len, text, len) == 0 ? (uint32_t)lo
									   : UINT32_MAX;
}

/* A <source-name> at P, or NULL; else what follows it. */
static const char *source_name(const char *p)
{
	size_t n = 0;
	if (*p < '1' || *p > '9')
		return NULL;
	while (*p >= '0' && *p <= '9' && n < 1 << 20)
		n = 10 * n + (size_t)(*p++ - '0');
	return memchr(p, 0, n) ? NULL : p + n;
}

/* Skips a function's own part of a nested name, with the E that ends the name.  NULL: template
 * arguments (no virtual function has any) and conversions are not understood. */
static const char *last_part(const char *p)
{
	if (*p >= '1' && *p <= '9')
		p = source_name(p);
	else if (*p == 'D' && p[1] >= '0' && p[1] <= '5')
		p += 2;
	else if (*p >= 'a' && *p <= 'z' && p[1] >= 'A' && p[1] <= 'z' &&
		 (p[0] != 'c' || p[1] != 'v'))
		p += 2;
	else
		return NULL;
	while (p && *p == 'B') /* ABI tags */
		p = source_name(p + 1);
	return p && *p == 'E' ? p + 1 : NULL;
}

uint32_t dwr_vtable_class_of(const struct dwr_vtable_search *s, const char *linkage)
{
	if (strncmp(linkage, "_ZN", 3))
		return UINT32_MAX;
	const char *p = linkage + 3;
	p += strspn(p, "rVK");
	p += strspn(p, "RO");
	/* The longest name of an object that P begins with, and behind which P fits, if any. */
	for (size_t n = strlen(p), same; n; n = same) {
		size_t lo = LOWER_BOUND(0, s->object.len, mid,
					dwr_vtable_text_order(s->object.data[mid].name,
							      s->object.data[mid].len, p, n) <= 0);
		if (!lo)
			return UINT32_MAX;
		/* No name between this one and P's first N letters is a beginning of P. */
		const struct dwr_vtable_object *o = &s->object.data[lo - 1];
		for (same = 0; same < o->len && same < n && o->name[same] == p[same];)
			same++;
		if (same == o->len) {
			if (last_part(p + same))
				return dwr_vtable_find_name(s, o->name, o->len);
			same--;
		}
	}
	return UINT32_MAX;
}

uint32_t dwr_vtable_local_class_of(const struct dwr_vtable_search *s, const char *linkage,
				   const char *class)
{
	char number[24], *text = NULL;
	uint32_t found = UINT32_MAX;
	bool several = false;
	if (strncmp(linkage, "_ZZ", 3) || !class || !*class)
		return UINT32_MAX;
	size_t len = strlen(class), n = (size_t)snprintf(number, sizeof number, "%zu", len);
	for (const char *p = strstr(linkage, "EN"); p; p = strstr(p + 1, "EN")) {
		const char *q = p + 2;
		q += strspn(q, "rVK");
		q += strspn(q, "RO");
		if (strncmp(q, number, n) || strncmp(q + n, class, len))
			continue;
		const char *end = last_part(q + n + len), *disc = end;
		if (!end)
			continue;
		if (end[0] == '_') { /* _0 to _9, or __10_ */
			end++;
			bool more = *end == '_';
			end += more;
			end += strspn(end, "0123456789");
			end += more;
		}
		size_t head = (size_t)(p + 1 - (linkage + 2)), tail = (size_t)(end - disc);
		char *t = realloc(text, head + n + len + tail);
		if (!t)
			break;
		text = t;
		memcpy(t, linkage + 2, head);
		memcpy(t + head, q, n + len);
		memcpy(t + head + n + len, disc, tail);
		uint32_t k = dwr_vtable_find_name(s, t, head + n + len + tail);
		several |= k != UINT32_MAX && found != UINT32_MAX && k != found;
		if (k != UINT32_MAX)
			found = k;
	}
	free(text);
	return several ? UINT32_MAX : found;
}
