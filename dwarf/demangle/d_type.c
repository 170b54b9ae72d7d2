/* d_type.c: types in D names, functions with their parameters among them. */
#include "dwarf/demangle/d.h"
#include <ctype.h>
#include <string.h>

static bool back_type(struct dwr_d *r, bool (*what)(struct dwr_d *))
{
	size_t to, next, last = r->last;
	if (r->at >= last || !dwr_d_back_target(r, r->at, &to, &next))
		return false;
	r->last = r->at;
	r->at = to;
	bool ok = what(r);
	r->at = next;
	r->last = last;
	return ok;
}

bool dwr_d_is_convention(char c)
{
	return c && strchr("FUVWRY", c);
}

static bool convention(struct dwr_d *r)
{
	static const char *const text[] = { "",
					    "extern(C) ",
					    "extern(Pascal) ",
					    "extern(Windows) ",
					    "extern(C++) ",
					    "extern(Objective-C) " };
	char c = dwr_d_peek(r, 0);
	if (!dwr_d_is_convention(c))
		return false;
	r->at++;
	return dwr_d_say(r, text[strchr("FUVWRY", c) - "FUVWRY"]);
}

/* Of `this`. */
static bool modifiers(struct dwr_d *r)
{
	for (;;) {
		if (dwr_d_eat(r, 'x'))
			return dwr_d_say(r, " const");
		if (dwr_d_eat(r, 'y'))
			return dwr_d_say(r, " immutable");
		bool shared = dwr_d_peek(r, 0) == 'O';
		if (!shared && dwr_d_peek(r, 0) != 'N')
			return r->at < r->n;
		if (!shared && dwr_d_peek(r, 1) != 'g')
			return false;
		r->at += shared ? 1 : 2;
		if (!dwr_d_say(r, shared ? " shared" : " inout"))
			return false;
	}
}

static bool attributes(struct dwr_d *r)
{
	static const char *const text[] = { "pure ",     "nothrow ", "ref ", "@property ",
					    "@trusted ", "@safe ",   NULL,   NULL,
					    "@nogc ",    "return ",  NULL,   "scope ",
					    "@live " };
	while (dwr_d_peek(r, 0) == 'N') {
		char c = dwr_d_peek(r, 1);
		if (c && strchr("ghkn", c)) /* begins a parameter */
			return true;
		if (c < 'a' || c > 'm' || !text[c - 'a'])
			return false;
		r->at += 2;
		if (!dwr_d_say(r, text[c - 'a']))
			return false;
	}
	return r->at < r->n;
}

static bool parameter(struct dwr_d *r)
{
	if (dwr_d_eat(r, 'M') && !dwr_d_say(r, "scope "))
		return false;
	if (dwr_d_starts(r, r->at, "Nk")) {
		r->at += 2;
		if (!dwr_d_say(r, "return "))
			return false;
	}
	switch (dwr_d_peek(r, 0)) {
	case 'I':
		r->at++;
		if (!dwr_d_say(r, dwr_d_eat(r, 'K') ? "in ref " : "in "))
			return false;
		break;
	case 'J':
		r->at++;
		if (!dwr_d_say(r, "out "))
			return false;
		break;
	case 'K':
		r->at++;
		if (!dwr_d_say(r, "ref "))
			return false;
		break;
	case 'L':
		r->at++;
		if (!dwr_d_say(r, "lazy "))
			return false;
		break;
	}
	return dwr_d_type(r);
}

static bool parameters(struct dwr_d *r)
{
	for (size_t n = 0; r->at < r->n; n++) {
		if (dwr_d_eat(r, 'X'))
			return dwr_d_say(r, "...)");
		if (dwr_d_eat(r, 'Y'))
			return dwr_d_say(r, n ? ", ...)" : "...)");
		if (dwr_d_eat(r, 'Z'))
			return dwr_d_say(r, ")");
		if ((n && !dwr_d_say(r, ", ")) || !parameter(r))
			return false;
	}
	return false;
}

/* Convention, attributes, parameters, result; printed as convention, result, parameters,
 * attributes. */
static bool function_type(struct dwr_d *r)
{
	size_t base = r->base;
	if (!convention(r))
		return false;
	size_t a = r->text.len;
	if (!attributes(r))
		return false;
	size_t b = r->base = r->text.len;
	bool ok = dwr_d_say(r, "(") && parameters(r);
	size_t c = r->base = r->text.len;
	ok = ok && dwr_d_type(r);
	r->base = base;
	size_t d = r->text.len;
	if (!ok || !dwr_d_put_again(r, c, d) || !dwr_d_put_again(r, b, c) || !dwr_d_say(r, " ") ||
	    !dwr_d_put_again(r, a, b))
		return false;
	dwr_d_drop(r, a, d);
	return true;
}

bool dwr_d_outer_function(struct dwr_d *r, bool show)
{
	size_t saved = r->text.len, mods = 0;
	if (dwr_d_eat(r, 'M')) {
		mods = r->at;
		if (!modifiers(r))
			return false;
	}
	if (!convention(r) || !attributes(r))
		return false;
	r->text.len = saved;
	if (!dwr_d_say(r, "(") || !parameters(r) || r->at >= r->n)
		return false;
	size_t next = r->at;
	if (mods && show) {
		r->at = mods;
		if (!modifiers(r))
			return false;
		r->at = next;
	}
	return true;
}

static const char *basic(char c)
{
	static const char *const text[] = {
		"char",  "bool",         "creal",  "double",  "real",   "float",
		"byte",  "ubyte",        "int",    "ireal",   "uint",   "long",
		"ulong", "typeof(null)", "ifloat", "idouble", "cfloat", "cdouble",
		"short", "ushort",       "wchar",  "void",    "dchar",
	};
	return c >= 'a' && c <= 'w' ? text[c - 'a'] : NULL;
}

static bool within(struct dwr_d *r, const char *open)
{
	return dwr_d_say(r, open) && dwr_d_type(r) && dwr_d_say(r, ")");
}

static bool array(struct dwr_d *r)
{
	size_t from = r->at;
	while (isdigit((unsigned char)dwr_d_peek(r, 0)))
		r->at++;
	size_t n = r->at - from;
	return dwr_d_type(r) && dwr_d_say(r, "[") && dwr_d_put(r, r->s + from, n) &&
	       dwr_d_say(r, "]");
}

static bool associative(struct dwr_d *r)
{
	size_t a = r->text.len, base = r->base;
	r->base = a;
	bool ok = dwr_d_type(r);
	r->base = base;
	size_t b = r->text.len;
	if (!ok || !dwr_d_type(r) || !dwr_d_say(r, "[") || !dwr_d_put_again(r, a, b) ||
	    !dwr_d_say(r, "]"))
		return false;
	dwr_d_drop(r, a, b);
	return true;
}

static bool delegate(struct dwr_d *r)
{
	size_t mods = r->at, saved = r->text.len;
	if (!modifiers(r))
		return false;
	r->text.len = saved;
	bool ok = dwr_d_peek(r, 0) == 'Q' ? back_type(r, function_type) : function_type(r);
	size_t next = r->at;
	if (!ok || !dwr_d_say(r, "delegate"))
		return false;
	r->at = mods;
	ok = modifiers(r);
	r->at = next;
	return ok;
}

static bool tuple(struct dwr_d *r)
{
	size_t n;
	if (!dwr_d_number(r, &n) || !dwr_d_say(r, "Tuple!("))
		return false;
	while (n--)
		if (!dwr_d_type(r) || (n && !dwr_d_say(r, ", ")))
			return false;
	return dwr_d_say(r, ")");
}

static bool type_here(struct dwr_d *r)
{
	char c = dwr_d_peek(r, 0);
	if (c == 'Q')
		return back_type(r, dwr_d_type);
	if (dwr_d_is_convention(c) || (c == 'P' && dwr_d_is_convention(dwr_d_peek(r, 1)))) {
		r->at += c == 'P';
		return function_type(r) && dwr_d_say(r, "function");
	}
	r->at++;
	switch (c) {
	case 'O': return within(r, "shared(");
	case 'x': return within(r, "const(");
	case 'y': return within(r, "immutable(");
	case 'N':
		if (dwr_d_eat(r, 'g'))
			return within(r, "inout(");
		if (dwr_d_eat(r, 'h'))
			return within(r, "__vector(");
		return dwr_d_eat(r, 'n') && dwr_d_say(r, "typeof(*null)");
	case 'A': return dwr_d_type(r) && dwr_d_say(r, "[]");
	case 'G': return array(r);
	case 'H': return associative(r);
	case 'P': return dwr_d_type(r) && dwr_d_say(r, "*");
	case 'C':
	case 'S':
	case 'E':
	case 'T': return dwr_d_qualified(r, false);
	case 'D': return delegate(r);
	case 'B': return tuple(r);
	case 'z':
		return dwr_d_eat(r, 'i') ? dwr_d_say(r, "cent")
					 : dwr_d_eat(r, 'k') && dwr_d_say(r, "ucent");
	default: return basic(c) && dwr_d_say(r, basic(c));
	}
}

bool dwr_d_type(struct dwr_d *r)
{
	return dwr_d_enter(r) && dwr_d_leave(r, r->at < r->n && type_here(r));
}
