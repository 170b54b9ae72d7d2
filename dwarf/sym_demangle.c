/* sym_demangle.c: readable names.
 *
 * libiberty's demangler, respelled as LLVM's: closing brackets without a space in between, and clones as "(.cold)".  Names
 * are kept: a profile asks for the same ones again and again. */
#include "dwarf/sym.h"
#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>

struct dwr_demangled {
	const char *name;   /* as given: a string that outlives the table; NULL: empty slot */
	const char *result; /* in the arena, or the name itself */
};

/* Output of the demangler. */
struct text {
	struct {
		char *data;
		size_t len, cap;
	} v;
	bool bad;
	char *cut; /* the name that is being demangled, when it is not the symbol's; owned */
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
		if (s[i] == '>' && t->v.len >= 2 && t->v.data[t->v.len - 1] == ' ' && t->v.data[t->v.len - 2] == '>')
			t->v.len--;
		t->v.data[t->v.len++] = s[i];
	}
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
	unsigned bars = 0;
	while (name[bars] == '_')
		bars++;
	if (bars < 1 || bars > 4 || name[bars] != 'Z')
		return false;
	name += bars - 1;
	/* What follows a dot was added after mangling (".cold", ".part.0", ".llvm.123"). */
	const char *dot = strchr(name, '.');
	if (dot && !(t->cut = strndup(name, (size_t)(dot - name))))
		t->bad = true;
	bool ok = !t->bad && cplus_demangle_v3_callback(dot ? t->cut : name, DMGL_PARAMS | DMGL_ANSI, put, t);
	if (ok && dot) {
		put(" (", 2, t);
		put(dot, strlen(dot), t);
		put(")", 1, t);
	}
	return ok;
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
	return !setjmp(t->too_long) && demangle(name, t);
}

static const char *make(struct dwr_sym *sym, const char *name)
{
	struct text t = { 0 };
	const char *ret = name;
	char *s;
	if (!demangle_bounded(name, &t) && !t.bad)
		;
	else if (t.bad || !(s = dwr_arena_alloc(&sym->arena, t.v.len + 1)))
		sym->nomem = true;
	else {
		memcpy(s, t.v.data, t.v.len);
		s[t.v.len] = 0;
		respell(s);
		ret = s;
	}
	free(t.cut);
	free(t.v.data);
	return ret;
}

static size_t slot_of(const char *name, size_t n_slots)
{
	uint64_t h = 0xcbf29ce484222325;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3;
	return (size_t)(h ^ h >> 29) & (n_slots - 1);
}

static bool grow(struct dwr_sym *sym)
{
	size_t n = sym->n_demangled_slots ? 2 * sym->n_demangled_slots : 256;
	struct dwr_demangled *t = calloc(n, sizeof *t);
	if (!t)
		return false;
	for (size_t i = 0; i < sym->n_demangled_slots; i++)
		if (sym->demangled[i].name) {
			size_t k = slot_of(sym->demangled[i].name, n);
			while (t[k].name)
				k = (k + 1) & (n - 1);
			t[k] = sym->demangled[i];
		}
	free(sym->demangled);
	sym->demangled = t;
	sym->n_demangled_slots = n;
	return true;
}

const char *dwr_sym_demangle(struct dwr_sym *sym, const char *name)
{
	if (name[0] != '_')
		return name;
	if (2 * sym->n_demangled >= sym->n_demangled_slots && !grow(sym)) {
		sym->nomem = true;
		return name;
	}
	size_t k = slot_of(name, sym->n_demangled_slots);
	for (; sym->demangled[k].name; k = (k + 1) & (sym->n_demangled_slots - 1))
		if (!strcmp(sym->demangled[k].name, name))
			return sym->demangled[k].result;
	size_t size = strlen(name) + 1;
	char *own = dwr_arena_alloc(&sym->arena, size);
	if (!own) {
		sym->nomem = true;
		return name;
	}
	memcpy(own, name, size);
	sym->demangled[k] = (struct dwr_demangled){ own, make(sym, own) };
	sym->n_demangled++;
	return sym->demangled[k].result;
}

void dwr_sym_demangled_free(struct dwr_sym *sym)
{
	free(sym->demangled);
}
