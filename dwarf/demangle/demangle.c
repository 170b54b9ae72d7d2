/* demangle.c: see demangle.h.
 *
 * This uses libiberty's demanglers.  In LLVM's spelling, closing brackets have no space between,
 * and clones are "(.cold)". */
#include "dwarf/demangle/demangle.h"
#include "dwarf/demangle/parts.h"
#include "elfrw/base/vec.h"
#include <errno.h>
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
	char *cut;  /* the current name, if it is not the symbol's; owned */
	void *tree; /* what libiberty keeps of it; owned */
	enum dwr_spelling spelling;
	jmp_buf too_long;
};

/* C++: libiberty refuses longer names itself, since its stack grows with the square of the
 * length. */
#define MAX_CPP        1024
#define MAX_SCOPE_BACK 18
/* Of Rust before its own mangling. */
#define MAX_LEGACY 16384

static void put(const char *s, size_t n, void *ctx)
{
	struct text *t = ctx;
	if (n > DWR_DEMANGLE_TEXT || t->v.len > DWR_DEMANGLE_TEXT - n)
		longjmp(t->too_long, 1); /* the demanglers own nothing while they print, and there
					    is no other way to stop them */
	if (t->bad || !VEC_RESERVE(&t->v, t->v.len + n)) {
		t->bad = true;
		return;
	}
	while (n) {
		const char *bracket = t->spelling == DWR_SPELLING_LLVM ? memchr(s, '>', n) : NULL;
		size_t plain = bracket ? (size_t)(bracket - s) : n;
		memcpy(t->v.data + t->v.len, s, plain);
		t->v.len += plain;
		if (!bracket)
			break;
		/* "> >" to ">>" */
		if (t->v.len >= 2 && t->v.data[t->v.len - 1] == ' ' &&
		    t->v.data[t->v.len - 2] == '>')
			t->v.len--;
		t->v.data[t->v.len++] = '>';
		s = bracket + 1;
		n -= plain + 1;
	}
}

/* libiberty makes no tree for names with the older spelling of scopes in expressions
 * (sr3std9is_signedIT_EE5value), but prints them.  With at most one template around, no pack, and
 * few references, each of which at most triples the whole with two others, this is fast. */
static bool is_short_scope(const char *name)
{
	static const char *const more[] = { "Z", "cv", "Dp", "sZ", "sP", "fl", "fr", "fL", "fR" };
	unsigned back = 0;
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (strstr(name + 2, more[i]))
			return false;
	for (const char *p = name; *p; p++)
		if (*p == 'S' || *p == 'T') {
			size_t digits = strspn(p + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
			back += p[1 + digits] == '_';
		}
	return back <= MAX_SCOPE_BACK && strstr(name, "sr");
}

/* Did a demangler that FAILED run out of memory?  It only reports failure; malloc() sets errno,
 * which is 0 before. */
static bool no_memory(bool failed)
{
	return failed && errno == ENOMEM;
}

static bool demangle_cpp(const char *name, int options, struct text *t)
{
	size_t n = strnlen(name, MAX_CPP + 1);
	if (n > MAX_CPP)
		return false;
	errno = 0;
	struct demangle_component *tree = cplus_demangle_v3_components(name, options, &t->tree);
	bool nomem = no_memory(!tree);
	if (nomem) {
		t->bad = true;
		return false;
	}
	if (!tree && is_short_scope(name))
		return cplus_demangle_v3_callback(name, options, put, t);
	bool ok = tree && dwr_demangle_cpp_fits(tree, 2 * n, &nomem) &&
		  cplus_demangle_print_callback(options, tree, put, t);
	t->bad |= nomem;
	free(t->tree);
	t->tree = NULL;
	return ok;
}

/* Demangles NAME up to DOT, or all of it (NULL). */
static bool demangle_up_to(const char *name, const char *dot, int options, struct text *t)
{
	free(t->cut);
	t->cut = NULL;
	t->v.len = 0;
	if (dot && !(t->cut = strndup(name, (size_t)(dot - name))))
		t->bad = true;
	return !t->bad && demangle_cpp(dot ? t->cut : name, options, t);
}

#define DOTS 4 /* that are tried */

/* The suffix behind a dot was added after mangling (".cold", ".part.0", ".llvm.123").  A dot may
 * also be in a name: GCC calls the frame of the coroutine _Z2coi "_Z2coi.Frame". */
static bool demangle_cut(const char *name, int options, const char *open, const char *close,
			 struct text *t)
{
	const char *dot = strchr(name, '.');
	bool ok = demangle_up_to(name, dot, options, t);
	for (unsigned n = 1; !ok && dot && n < DOTS && (dot = strchr(dot + 1, '.')); n++)
		ok = demangle_up_to(name, dot, options, t);
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
	/* Older Rust names look like C++ names with a hash behind. */
	if (strnlen(name, MAX_LEGACY) < MAX_LEGACY && rust_demangle_callback(name, 0, put, t))
		return true;
	t->v.len = 0;
	if (demangle_cpp(name, options, t))
		return true;
	t->v.len = 0;
	return !t->bad && strchr(name, '.') && demangle_cut(name, options, " [clone ", "]", t);
}

static bool demangle_rust(const char *name, struct text *t)
{
	if (!dwr_demangle_rust_fits(name))
		return false;
	errno = 0;
	bool ok = rust_demangle_callback(name, 0, put, t);
	t->bad |= no_memory(!ok); /* identifiers beyond ASCII are decoded in memory */
	return ok;
}

/* Demangles NAME; false: it is not a mangled name. */
static __attribute__((noinline)) bool demangle(const char *name, struct text *t)
{
	if (name[0] == '_' && name[1] == 'R')
		return demangle_rust(name, t);
	return t->spelling == DWR_SPELLING_LLVM ? demangle_llvm(name, t) : demangle_gnu(name, t);
}

#define MAX_NEST 64

/* Respells libiberty's {lambda(int)#2} and {unnamed type#1}: LLVM has 'lambda0'(int) and 'unnamed',
 * and "operator< <" without the space.  In place: the new form is never longer. */
static void respell(char *s)
{
	char *out = s, *at[MAX_NEST]; /* places of the numbers of open lambdas */
	unsigned depth = 0;
	if (!strchr(s, '{') && !strstr(s, "operator<"))
		return;
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
		if (*in == 'o' &&
		    (!strncmp(in, "operator< <", 11) || !strncmp(in, "operator<< <", 12))) {
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

/* demangle(); the callback leaves it if the text gets too long. */
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
	if (name[0] == '_' && name[1] == 'D')
		return dwr_demangle_d(name, ret);
	bool ok = demangle_bounded(name, &t);
	free(t.cut);
	free(t.tree);
	if (!ok || t.bad) {
		free(t.v.data);
		return !t.bad;
	}
	if (spelling == DWR_SPELLING_LLVM)
		respell(t.v.data);
	*ret = t.v.data;
	return true;
}
