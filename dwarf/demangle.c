/* demangle.c: see demangle.h.
 *
 * libiberty's demanglers; as LLVM spells, closing brackets come without a space in between, and clones as "(.cold)". */
#include "dwarf/demangle.h"
#include "elfrw/vec.h"
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Output of the demangler. */
struct text {
	struct {
		char *data;
		size_t len, cap;
	} v;
	bool bad;
	char *cut; /* the name that is being demangled, when it is not the symbol's; owned */
	enum dwr_spelling spelling;
	jmp_buf too_long;
};

/* A few bytes of mangled name can stand for any number, by references back.  Longer names are printed as they are. */
#define MAX_TEXT ((size_t)1 << 20)
/* Of D: libiberty recurses for each letter, and has references back that it follows into memory of its own. */
#define MAX_D 4096
#define MAX_D_BACK 40

static void put(const char *s, size_t n, void *ctx)
{
	struct text *t = ctx;
	if (n > MAX_TEXT || t->v.len > MAX_TEXT - n)
		longjmp(t->too_long, 1); /* the demanglers own nothing while they print, and cannot be stopped otherwise */
	if (t->bad || !VEC_RESERVE(&t->v, t->v.len + n)) {
		t->bad = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		/* "> >" to ">>" */
		if (t->spelling == DWR_SPELLING_LLVM && s[i] == '>' && t->v.len >= 2 && t->v.data[t->v.len - 1] == ' ' && t->v.data[t->v.len - 2] == '>')
			t->v.len--;
		t->v.data[t->v.len++] = s[i];
	}
}

/* What follows a dot was added after mangling (".cold", ".part.0", ".llvm.123"). */
static bool demangle_cut(const char *name, int options, const char *open, const char *close, struct text *t)
{
	const char *dot = strchr(name, '.');
	if (dot && !(t->cut = strndup(name, (size_t)(dot - name))))
		t->bad = true;
	bool ok = !t->bad && cplus_demangle_v3_callback(dot ? t->cut : name, options, put, t);
	if (ok && dot) {
		put(open, strlen(open), t);
		put(dot, strlen(dot), t);
		put(close, strlen(close), t);
	}
	return ok;
}

static bool demangle_llvm(const char *name, struct text *t)
{
	unsigned bars = 0;
	while (name[bars] == '_')
		bars++;
	if (bars < 1 || bars > 4 || name[bars] != 'Z')
		return false;
	return demangle_cut(name + bars - 1, DMGL_PARAMS | DMGL_ANSI, " (", ")", t);
}

static bool demangle_gnu(const char *name, struct text *t)
{
	int options = t->spelling == DWR_SPELLING_GNU ? DMGL_PARAMS | DMGL_ANSI : 0;
	if (name[0] != '_' || name[1] != 'Z')
		return false;
	/* Older Rust names pass for C++ with a hash behind. */
	if (rust_demangle_callback(name, 0, put, t))
		return true;
	t->v.len = 0;
	if (cplus_demangle_v3_callback(name, options, put, t))
		return true;
	t->v.len = 0;
	return strchr(name, '.') && demangle_cut(name, options, " [clone ", "]", t);
}

/* Demangles NAME; false: it is not a mangled name. */
static __attribute__((noinline)) bool demangle(const char *name, struct text *t)
{
	if (name[0] == '_' && name[1] == 'R')
		return rust_demangle_callback(name, 0, put, t);
	if (name[0] == '_' && name[1] == 'D') {
		unsigned back = 0;
		for (const char *p = name; *p; p++)
			if ((back += *p == 'Q') > MAX_D_BACK || p - name > MAX_D)
				return false;
		char *d = dlang_demangle(name, 0);
		if (d)
			put(d, strlen(d), t);
		free(d);
		return d;
	}
	return t->spelling == DWR_SPELLING_LLVM ? demangle_llvm(name, t) : demangle_gnu(name, t);
}

#define MAX_NEST 64

/* Respells what libiberty writes {lambda(int)#2} and {unnamed type#1}: LLVM has 'lambda0'(int) and 'unnamed'; and
 * "operator< <" without the space.  In place: the new form is never longer. */
static void respell(char *s)
{
	char *out = s, *at[MAX_NEST]; /* where the numbers of the lambdas that are open go */
	unsigned depth = 0;
	for (const char *in = s; *in;) {
		if (*in == '{' && !strncmp(in, "{lambda(", 8) && depth < MAX_NEST) {
			memcpy(out, "'lambda(", 8);
			at[depth++] = out + 7;
			out += 8;
			in += 8;
			continue;
		}
		if (*in == '#' && depth) {
			char *end;
			unsigned long k = strtoul(in + 1, &end, 10);
			char number[24];
			int n = snprintf(number, sizeof number, k > 1 ? "%lu'" : "'", k - 2);
			if (*end == '}' && end > in + 1) {
				char *to = at[--depth];
				memmove(to + n, to, (size_t)(out - to));
				memcpy(to, number, (size_t)n);
				out += n;
				in = end + 1;
				continue;
			}
		}
		if (*in == '{' && !strncmp(in, "{unnamed type#", 14)) {
			char *end;
			unsigned long k = strtoul(in + 14, &end, 10);
			if (*end == '}') {
				out += sprintf(out, k > 1 ? "'unnamed%lu'" : "'unnamed'", k - 2);
				in = end + 1;
				continue;
			}
		}
		if (*in == 'o' && (!strncmp(in, "operator< <", 11) || !strncmp(in, "operator<< <", 12))) {
			size_t n = strcspn(in, " ");
			memmove(out, in, n);
			out += n;
			in += n + 1;
			continue;
		}
		*out++ = *in++;
	}
	*out = 0;
}

/* demangle(), which the callback leaves when the text gets too long. */
static bool demangle_bounded(const char *name, struct text *t)
{
	if (setjmp(t->too_long) || !demangle(name, t))
		return false;
	put("", 1, t);
	return true;
}

bool dwr_demangle(const char *name, enum dwr_spelling spelling, char **ret)
{
	struct text t = { .spelling = spelling };
	*ret = NULL;
	bool ok = demangle_bounded(name, &t);
	free(t.cut);
	if (!ok || t.bad) {
		free(t.v.data);
		return !t.bad;
	}
	if (spelling == DWR_SPELLING_LLVM)
		respell(t.v.data);
	*ret = t.v.data;
	return true;
}
