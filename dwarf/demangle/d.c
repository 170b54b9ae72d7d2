/* d.c: D names (https://dlang.org/spec/abi.html#name_mangling), spelled as libiberty and LLVM do.
 *
 * If a part of a name turns out to be something else, libiberty's own demangler reads it a second
 * time, and so does each level inside: a name of 200 letters can keep it busy for ever.  So this
 * demangler is new.  It counts every step, and gives up a name that takes too many steps or levels.
 * Text is made in the order of the name; parts that change places are copied to the end, in their
 * new order. */
#include "dwarf/demangle/d.h"
#include "dwarf/demangle/parts.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_template(const struct dwr_d *r, size_t at)
{
	return dwr_d_starts(r, at, "__T") || dwr_d_starts(r, at, "__U");
}

bool dwr_d_is_name(const struct dwr_d *r, size_t at)
{
	size_t to, next;
	if (at >= r->n)
		return false;
	if (isdigit((unsigned char)r->s[at]) || is_template(r, at))
		return true;
	return r->s[at] == 'Q' && dwr_d_back_target(r, at, &to, &next) &&
	       isdigit((unsigned char)r->s[to]);
}

/* LEN letters with a special meaning, for something that belongs to the name so far ("." is behind
 * that name). */
static bool of_the_compiler(struct dwr_d *r, size_t len, bool *done)
{
	static const struct {
		const char *name, *text;
		size_t len, eaten;
		bool before;
	} known[] = {
		{ "__ctor", "this", 6, 6, false },
		{ "__dtor", "~this", 6, 6, false },
		{ "__postblitMFZ", "this(this)", 10, 13, false },
		{ "__initZ", "initializer for ", 6, 6, true },
		{ "__vtblZ", "vtable for ", 6, 6, true },
		{ "__ClassZ", "ClassInfo for ", 7, 7, true },
		{ "__InterfaceZ", "Interface for ", 11, 11, true },
		{ "__ModuleInfoZ", "ModuleInfo for ", 12, 12, true },
	};
	*done = false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t n = strlen(known[i].text);
		if (known[i].len != len || !dwr_d_starts(r, r->at, known[i].name))
			continue;
		*done = true;
		r->at += known[i].eaten;
		if (!dwr_d_put(r, known[i].text, n) || !known[i].before)
			return r->text.len != 0;
		char *base = r->text.data + r->base;
		memmove(base + n, base, r->text.len - n - r->base);
		memcpy(base, known[i].text, n);
		if (r->text.len > r->base + n)
			r->text.len--;
		return dwr_d_step(r, r->text.len / 64);
	}
	return true;
}

static bool letters(struct dwr_d *r, size_t len)
{
	bool done;
	if (!of_the_compiler(r, len, &done))
		return false;
	if (done)
		return true;
	r->at += len;
	return dwr_d_put(r, r->s + r->at - len, len);
}

static bool back_name(struct dwr_d *r)
{
	size_t to, next, len;
	if (!dwr_d_back_target(r, r->at, &to, &next))
		return false;
	r->at = to;
	bool ok = dwr_d_number(r, &len) && len <= r->n - r->at && letters(r, len);
	r->at = next;
	return ok;
}

/* A place where the length of an older name of a template argument may run into the name's first
 * digit. */
static bool mixed_symbol(struct dwr_d *r)
{
	size_t first = r->at, len, saved = r->text.len;
	if (!dwr_d_number(r, &len) || !len)
		return false;
	size_t end = r->at;
	for (size_t want = len, from = end; want && from > first; want /= 10, from--) {
		r->at = from;
		bool ok = dwr_d_is_name(r, from)
				  ? dwr_d_qualified(r, false)
				  : dwr_d_starts(r, from, "_D") && dwr_d_is_name(r, from + 2) &&
					    dwr_d_mangled_name(r);
		if (ok && r->at - from == want)
			return true;
		r->text.len = saved;
		if (!dwr_d_step(r, 1))
			return false;
	}
	r->at = first;
	return dwr_d_qualified(r, false);
}

static bool symbol_argument(struct dwr_d *r)
{
	if (dwr_d_starts(r, r->at, "_D") && dwr_d_is_name(r, r->at + 2))
		return dwr_d_mangled_name(r);
	return dwr_d_peek(r, 0) == 'Q' ? dwr_d_qualified(r, false) : mixed_symbol(r);
}

static bool value_argument(struct dwr_d *r)
{
	char of = dwr_d_peek(r, 0);
	size_t from = r->text.len, base = r->base, to, next;
	if (of == 'Q') {
		if (!dwr_d_back_target(r, r->at, &to, &next))
			return false;
		of = r->s[to];
	}
	r->base = from;
	bool ok = dwr_d_type(r);
	r->base = base;
	size_t len = r->text.len - from;
	if (!ok || !dwr_d_value(r, of, from, len))
		return false;
	dwr_d_drop(r, from, from + len);
	return true;
}

static bool template_arguments(struct dwr_d *r)
{
	for (size_t n = 0; !dwr_d_eat(r, 'Z'); n++) {
		size_t len;
		if (r->at >= r->n || (n && !dwr_d_say(r, ", ")))
			return false;
		dwr_d_eat(r, 'H');
		bool ok = false;
		switch (dwr_d_peek(r, 0)) {
		case 'S':
			r->at++;
			ok = symbol_argument(r);
			break;
		case 'T':
			r->at++;
			ok = dwr_d_type(r);
			break;
		case 'V':
			r->at++;
			ok = value_argument(r);
			break;
		case 'X':
			r->at++;
			ok = dwr_d_number(r, &len) && len <= r->n - r->at &&
			     dwr_d_put(r, r->s + r->at, len);
			r->at += ok ? len : 0;
			break;
		}
		if (!ok)
			return false;
	}
	return true;
}

static bool identifier(struct dwr_d *r);

/* __T or __U, a name, arguments; LEN letters; 0: unknown. */
static bool template(struct dwr_d *r, size_t len)
{
	size_t from = r->at, base = r->base;
	if (!dwr_d_is_name(r, r->at + 3) || r->s[r->at + 3] == '0')
		return false;
	r->at += 3;
	if (!identifier(r) || !dwr_d_say(r, "!("))
		return false;
	r->base = r->text.len;
	bool ok = template_arguments(r) && dwr_d_say(r, ")");
	r->base = base;
	return ok && (!len || r->at - from == len);
}

static bool identifier_here(struct dwr_d *r)
{
	size_t len;
	if (dwr_d_peek(r, 0) == 'Q')
		return back_name(r);
	if (is_template(r, r->at))
		return template(r, 0);
	if (!dwr_d_number(r, &len) || !len || len > r->n - r->at)
		return false;
	if (len >= 5 && is_template(r, r->at))
		return template(r, len);
	/* __S1: an artificial parent, which makes names in one function differ. */
	if (len >= 4 && dwr_d_starts(r, r->at, "__S") &&
	    3 + strspn(r->s + r->at + 3, "0123456789") >= len) {
		r->at += len;
		return identifier(r);
	}
	return letters(r, len);
}

static bool identifier(struct dwr_d *r)
{
	return dwr_d_enter(r) && dwr_d_leave(r, identifier_here(r));
}

bool dwr_d_qualified(struct dwr_d *r, bool show)
{
	size_t n = 0;
	if (!dwr_d_enter(r))
		return false;
	do {
		if (dwr_d_peek(r, 0) == '0') { /* without a name */
			while (dwr_d_eat(r, '0'))
				;
			continue;
		}
		if ((n++ && !dwr_d_say(r, ".")) || !identifier(r))
			return dwr_d_leave(r, false);
		if (dwr_d_peek(r, 0) != 'M' && !dwr_d_is_convention(dwr_d_peek(r, 0)))
			continue;
		size_t at = r->at, saved = r->text.len, base = r->base, last = r->last;
		unsigned depth = r->depth;
		if (!dwr_d_outer_function(r, show)) {
			if (r->nomem)
				return dwr_d_leave(r, false);
			r->at = at;
			r->text.len = saved;
			r->base = base;
			r->last = last;
			r->depth = depth;
		}
	} while (dwr_d_is_name(r, r->at) && dwr_d_step(r, 1));
	return dwr_d_leave(r, true);
}

bool dwr_d_mangled_name(struct dwr_d *r)
{
	if (!dwr_d_enter(r))
		return false;
	r->at += 2;
	bool ok = dwr_d_qualified(r, true);
	if (ok && !dwr_d_eat(r, 'Z')) { /* the type of a variable, or of a result, is not shown */
		size_t saved = r->text.len, base = r->base;
		r->base = saved;
		ok = dwr_d_type(r);
		r->text.len = saved;
		r->base = base;
	}
	return dwr_d_leave(r, ok);
}

bool dwr_demangle_d(const char *name, char **ret)
{
	struct dwr_d r = { .s = name, .n = strlen(name), .last = SIZE_MAX };
	*ret = NULL;
	if (!strcmp(name, "_Dmain")
		    ? !dwr_d_say(&r, "D main")
		    : r.n > DWR_DEMANGLE_D || r.n < 3 || !dwr_d_mangled_name(&r) || r.at != r.n)
		goto out;
	/* If memory ran out, a wrong reading may have been taken. */
	if (!r.nomem && r.text.len && dwr_d_put(&r, "", 1)) {
		*ret = r.text.data;
		return true;
	}
out:
	free(r.text.data);
	return !r.nomem;
}
