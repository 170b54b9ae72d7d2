/* rust.c: the cost of printing a Rust name (RFC 2603, "v0").
 *
 * The grammar is walked as the printer does, back references included.  Each production is one
 * step.  So is everything else that takes the printer time: letters, the lifetimes that a binder
 * counts, decoding of Punycode.  A name does not fit if it is not of the grammar, or takes too many
 * steps or levels. */
#include "dwarf/demangle/parts.h"
#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 256 /* libiberty recurses, too */
#define MAX_NAME  16384

struct walk {
	const char *s; /* behind "_R" */
	size_t at, end;
	uint64_t steps;
	unsigned depth;
	bool bad;
};

static char peek(const struct walk *w)
{
	return w->at < w->end ? w->s[w->at] : 0;
}

static bool eat(struct walk *w, char c)
{
	if (w->bad || peek(w) != c)
		return false;
	w->at++;
	return true;
}

static void spend(struct walk *w, uint64_t n)
{
	if (n > DWR_DEMANGLE_STEPS || (w->steps += n) > DWR_DEMANGLE_STEPS)
		w->bad = true;
}

/* Reads a base-62 number that ends with "_": "_" is 0; otherwise the digits' value plus one. */
static uint64_t base62(struct walk *w)
{
	uint64_t v = 0;
	if (eat(w, '_'))
		return 0;
	while (!w->bad && !eat(w, '_')) {
		char c = peek(w);
		unsigned d = isdigit((unsigned char)c)   ? (unsigned)(c - '0')
			     : islower((unsigned char)c) ? (unsigned)(c - 'a') + 10
			     : isupper((unsigned char)c) ? (unsigned)(c - 'A') + 36
							 : 62;
		if (d == 62 || v > (UINT64_MAX - 62) / 62)
			w->bad = true;
		v = v * 62 + d;
		w->at++;
	}
	return v + 1;
}

static uint64_t tagged(struct walk *w, char tag)
{
	return eat(w, tag) ? base62(w) + 1 : 0;
}

static void undisambiguated(struct walk *w)
{
	bool puny = eat(w, 'u');
	uint64_t n = 0;
	if (!isdigit((unsigned char)peek(w)))
		w->bad = true;
	if (!eat(w, '0'))
		while (isdigit((unsigned char)peek(w)) && n < MAX_NAME)
			n = n * 10 + (uint64_t)(w->s[w->at++] - '0');
	eat(w, '_');
	if (w->bad || n > w->end - w->at) {
		w->bad = true;
		return;
	}
	w->at += (size_t)n;
	spend(w, 1 + n / 16 + (puny ? n * n / 16 : 0));
}

static void identifier(struct walk *w)
{
	tagged(w, 's');
	undisambiguated(w);
}

static void type(struct walk *w);
static void path(struct walk *w);

/* A back reference to an earlier place, where a WHAT stands. */
static void back(struct walk *w, void (*what)(struct walk *))
{
	size_t here = w->at - 1;
	uint64_t to = base62(w);
	size_t next = w->at;
	if (w->bad || to >= here) {
		w->bad = true;
		return;
	}
	w->at = (size_t)to;
	what(w);
	w->at = next;
}

static bool enter(struct walk *w)
{
	spend(w, 1);
	if (++w->depth > MAX_DEPTH)
		w->bad = true;
	return !w->bad;
}

static void constant(struct walk *w)
{
	if (!enter(w))
		return;
	char c = peek(w);
	w->at++;
	if (c == 'B')
		back(w, constant);
	else if (c != 'p' && !(c && strchr("hmyoxlajsnibct", c) && c != 't'))
		w->bad = true;
	else if (c != 'p') {
		eat(w, 'n');
		while (!w->bad && !eat(w, '_')) {
			if (!isxdigit((unsigned char)peek(w)))
				w->bad = true;
			w->at++;
			spend(w, 1);
		}
	}
	w->depth--;
}

static void generic(struct walk *w)
{
	spend(w, 1);
	if (eat(w, 'L'))
		base62(w);
	else if (eat(w, 'K'))
		constant(w);
	else
		type(w);
}

static void impl_path(struct walk *w)
{
	tagged(w, 's');
	path(w);
}

static void path(struct walk *w)
{
	if (!enter(w))
		return;
	char c = peek(w);
	w->at++;
	switch (c) {
	case 'C': identifier(w); break;
	case 'M':
		impl_path(w);
		type(w);
		break;
	case 'X':
		impl_path(w);
		type(w);
		path(w);
		break;
	case 'Y':
		type(w);
		path(w);
		break;
	case 'N':
		if (!isalpha((unsigned char)peek(w)))
			w->bad = true;
		w->at++;
		path(w);
		identifier(w);
		break;
	case 'I':
		path(w);
		while (!w->bad && !eat(w, 'E'))
			generic(w);
		break;
	case 'B': back(w, path); break;
	default: w->bad = true;
	}
	w->depth--;
}

static void function(struct walk *w)
{
	spend(w, tagged(w, 'G'));
	eat(w, 'U');
	if (eat(w, 'K') && !eat(w, 'C'))
		undisambiguated(w);
	while (!w->bad && !eat(w, 'E'))
		type(w);
	type(w);
}

static void object(struct walk *w)
{
	spend(w, tagged(w, 'G'));
	while (!w->bad && !eat(w, 'E')) {
		path(w);
		while (eat(w, 'p')) {
			undisambiguated(w);
			type(w);
		}
	}
	if (!eat(w, 'L'))
		w->bad = true;
	base62(w);
}

static void type(struct walk *w)
{
	if (!enter(w))
		return;
	char c = peek(w);
	w->at++;
	switch (c) {
	case 'A':
		type(w);
		constant(w);
		break;
	case 'R':
	case 'Q':
		tagged(w, 'L');
		type(w);
		break;
	case 'S':
	case 'P':
	case 'O': type(w); break;
	case 'T':
		while (!w->bad && !eat(w, 'E'))
			type(w);
		break;
	case 'F': function(w); break;
	case 'D': object(w); break;
	case 'B': back(w, type); break;
	default:
		if (c && strchr("abcdefhijlmnopstuvxyz", c))
			break;
		w->at--;
		path(w);
	}
	w->depth--;
}

bool dwr_demangle_rust_fits(const char *name)
{
	size_t n = strnlen(name, MAX_NAME);
	if (n < 3 || n == MAX_NAME || name[0] != '_' || name[1] != 'R')
		return false;
	struct walk w = { .s = name + 2 };
	while (isalnum((unsigned char)w.s[w.end]) || w.s[w.end] == '_')
		w.end++;
	path(&w);
	if (!w.bad && w.at < w.end)
		path(&w); /* the crate that the instance is in */
	return !w.bad && w.at == w.end;
}
