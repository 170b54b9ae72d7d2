/* d_value.c: values in D names: arguments of templates. */
#include "dwarf/demangle/d.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool character(struct dwr_d *r, char of)
{
	size_t v;
	char text[24];
	if (!dwr_d_number(r, &v))
		return false;
	if (of == 'a' && v >= 0x20 && v < 0x7f)
		snprintf(text, sizeof text, "'%c'", (char)v);
	else
		snprintf(text, sizeof text,
			 of == 'a'   ? "'\\x%02zx'"
			 : of == 'u' ? "'\\u%04zx'"
				     : "'\\U%08zx'",
			 v);
	return dwr_d_say(r, text);
}

static bool integer(struct dwr_d *r, char of)
{
	size_t v, from = r->at;
	if (of == 'a' || of == 'u' || of == 'w')
		return character(r, of);
	if (of == 'b')
		return dwr_d_number(r, &v) && dwr_d_say(r, v ? "true" : "false");
	while (isdigit((unsigned char)dwr_d_peek(r, 0)))
		r->at++;
	if (r->at == from || !dwr_d_put(r, r->s + from, r->at - from))
		return false;
	return dwr_d_say(r, of == 'h' || of == 't' || of == 'k' ? "u"
			    : of == 'l'                         ? "L"
			    : of == 'm'                         ? "uL"
								: "");
}

static bool real(struct dwr_d *r)
{
	if (dwr_d_starts(r, r->at, "NAN") || dwr_d_starts(r, r->at, "INF")) {
		r->at += 3;
		return dwr_d_say(r, r->s[r->at - 1] == 'N' ? "NaN" : "Inf");
	}
	if (dwr_d_starts(r, r->at, "NINF")) {
		r->at += 4;
		return dwr_d_say(r, "-Inf");
	}
	if (dwr_d_eat(r, 'N') && !dwr_d_say(r, "-"))
		return false;
	if (!isxdigit((unsigned char)dwr_d_peek(r, 0)) || !dwr_d_say(r, "0x") ||
	    !dwr_d_put(r, r->s + r->at++, 1) || !dwr_d_say(r, "."))
		return false;
	while (isxdigit((unsigned char)dwr_d_peek(r, 0)))
		if (!dwr_d_put(r, r->s + r->at++, 1))
			return false;
	if (!dwr_d_eat(r, 'P') || !dwr_d_say(r, dwr_d_eat(r, 'N') ? "p-" : "p"))
		return false;
	while (isdigit((unsigned char)dwr_d_peek(r, 0)))
		if (!dwr_d_put(r, r->s + r->at++, 1))
			return false;
	return true;
}

static bool string(struct dwr_d *r)
{
	char kind = r->s[r->at++];
	size_t n;
	if (!dwr_d_number(r, &n) || !dwr_d_eat(r, '_') || !dwr_d_say(r, "\""))
		return false;
	for (; n; n--, r->at += 2) {
		unsigned v;
		char hex[3] = { dwr_d_peek(r, 0), dwr_d_peek(r, 0) ? dwr_d_peek(r, 1) : 0 },
		     text[8];
		if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]))
			return false;
		sscanf(hex, "%x", &v);
		const char *at = v ? strchr("\tt\nn\rr\ff\vv", (int)v) : NULL;
		if (v < 0x20 && at)
			snprintf(text, sizeof text, "\\%c", at[1]);
		else if (v >= 0x20 && v < 0x7f)
			snprintf(text, sizeof text, "%c", (char)v);
		else
			snprintf(text, sizeof text, "\\x%s", hex);
		if (!dwr_d_say(r, text))
			return false;
	}
	return dwr_d_say(r, "\"") && (kind == 'a' || dwr_d_put(r, &kind, 1));
}

/* A counted list of values, or of pairs. */
static bool list(struct dwr_d *r, const char *open, const char *close, bool pairs)
{
	size_t n;
	if (!dwr_d_number(r, &n) || !dwr_d_say(r, open))
		return false;
	while (n--)
		if (!dwr_d_value(r, 0, 0, 0) ||
		    (pairs && (!dwr_d_say(r, ":") || !dwr_d_value(r, 0, 0, 0))) ||
		    (n && !dwr_d_say(r, ", ")))
			return false;
	return dwr_d_say(r, close);
}

static bool value_here(struct dwr_d *r, char of, size_t name, size_t name_len)
{
	char c = dwr_d_peek(r, 0);
	if (isdigit((unsigned char)c))
		return integer(r, of);
	if (c && strchr("awd", c))
		return string(r);
	r->at++;
	switch (c) {
	case 'n': return dwr_d_say(r, "null");
	case 'N': return dwr_d_say(r, "-") && integer(r, of);
	case 'i': return integer(r, of);
	case 'e': return real(r);
	case 'c':
		return real(r) && dwr_d_say(r, "+") && dwr_d_eat(r, 'c') && real(r) &&
		       dwr_d_say(r, "i");
	case 'A': return list(r, "[", "]", of == 'H');
	case 'S': {
		size_t at = r->at, n;
		bool ok = dwr_d_number(r, &n);
		r->at = at;
		return ok && dwr_d_put_again(r, name, name + name_len) && list(r, "(", ")", false);
	}
	case 'f':
		return dwr_d_starts(r, r->at, "_D") && dwr_d_is_name(r, r->at + 2) &&
		       dwr_d_mangled_name(r);
	default: return false;
	}
}

bool dwr_d_value(struct dwr_d *r, char of, size_t name, size_t name_len)
{
	return dwr_d_enter(r) && dwr_d_leave(r, r->at < r->n && value_here(r, of, name, name_len));
}
