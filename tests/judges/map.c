/* map.c: the map file, and sets of addresses carried through it.
 *
 * A line of the file is "old size new name", numbers in hexadecimal; lines that begin with '#' are
 * remarks.  More words may follow the name: "folded" and "thunk=ADDRESS" are understood.  Without
 * them, which unit of those that share a new address is the kept one is told by the symbols: a
 * folded function's keeps its name with size 0.  Where the kept one has no symbol (ld
 * --discard-all) a folded one's keeps its size: such maps need the marks (mark_folded in
 * tests/lib.sh). */
#include "tests/judges/judge.h"
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sym {
	uint64_t value, size;
	const char *name;
	size_t index; /* in the table */
	uint64_t new_value,
		new_size; /* of the same symbol in the output: the one of this name at this turn */
	bool paired;
};

struct symbols {
	struct sym *v;
	size_t n;
};

static int by_value(const void *a, const void *b)
{
	const struct sym *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_name(const void *a, const void *b)
{
	const struct sym *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->index < y->index ? -1 : x->index > y->index;
}

/* The function symbols of a file by address (those of .symtab, or of .dynsym in a stripped
 * file). */
static struct symbols symbols_of(Elf *elf)
{
	struct symbols s = { 0 };
	Elf_Scn *scn = NULL, *best = NULL;
	GElf_Shdr sh, best_sh = { 0 };

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || (sh.sh_type == SHT_DYNSYM && !best))) {
			best = scn;
			best_sh = sh;
		}
	Elf_Data *data = best ? elf_getdata(best, NULL) : NULL;
	size_t n = data && best_sh.sh_entsize ? best_sh.sh_size / best_sh.sh_entsize : 0;

	s.v = calloc(n + 1, sizeof(*s.v));
	for (size_t i = 0; i < n && s.v; i++) {
		GElf_Sym g;

		if (!gelf_getsym(data, i, &g) || g.st_shndx == SHN_UNDEF)
			continue;
		int type = GELF_ST_TYPE(g.st_info);

		if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
			continue;
		const char *name = elf_strptr(elf, best_sh.sh_link, g.st_name);

		s.v[s.n++] =
			(struct sym){ g.st_value, g.st_size, name ? name : "", i, 0, 0, false };
	}
	return s;
}

/* Tells each symbol of the input which one it is in the output, and leaves both tables sorted by
 * address. */
static void pair(struct symbols *in, struct symbols *out)
{
	if (in->n)
		qsort(in->v, in->n, sizeof(*in->v), by_name);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_name);
	for (size_t i = 0, k = 0; i < in->n && k < out->n;) {
		int c = strcmp(in->v[i].name, out->v[k].name);

		if (!c) {
			in->v[i].new_value = out->v[k].value;
			in->v[i].new_size = out->v[k].size;
			in->v[i].paired = true;
		}
		i += c <= 0;
		k += c >= 0;
	}
	if (in->n)
		qsort(in->v, in->n, sizeof(*in->v), by_value);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_value);
}

static size_t symbols_at(const struct symbols *s, uint64_t value)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].value < value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool exec_sections(Elf *elf, uint64_t (**ret)[2], uint32_t *n)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR) &&
		    (sh.sh_flags & SHF_ALLOC) && sh.sh_size) {
			uint64_t(*p)[2] = realloc(*ret, (*n + 1) * sizeof(*p));

			if (!p)
				return false;
			*ret = p;
			p[*n][0] = sh.sh_addr;
			p[(*n)++][1] = sh.sh_addr + sh.sh_size;
		}
	return true;
}

static int unit_by_old(const void *a, const void *b)
{
	const struct junit *x = a, *y = b;

	return x->old < y->old ? -1 : x->old > y->old;
}

static bool parse(struct jmap *map, const char *path)
{
	FILE *f = fopen(path, "r");
	size_t cap = 0, len = 0;

	if (!f) {
		perror(path);
		return false;
	}
	for (;;) {
		if (cap - len < 65537) {
			char *p = realloc(map->text, cap = cap * 2 + 131072);

			if (!p)
				abort();
			map->text = p;
		}
		size_t got = fread(map->text + len, 1, cap - len - 1, f);

		len += got;
		if (!got)
			break;
	}
	fclose(f);
	map->text[len] = 0;

	size_t units = 0, line_no = 0;

	for (char *line = map->text, *next; *line; line = next) {
		char *end = strchr(line, '\n');

		next = end ? end + 1 : line + strlen(line);
		if (end)
			*end = 0;
		line_no++;
		if (*line == '#' || !*line)
			continue;
		if (units <= map->n) {
			units = units * 2 + 1024;
			map->unit = realloc(map->unit, units * sizeof(*map->unit));
			if (!map->unit)
				abort();
		}
		struct junit u = { .kept = JNONE };
		char *p = line, *q;

		u.old = strtoull(p, &q, 16);
		u.size = q != p ? strtoull(p = q, &q, 16) : 0;
		u.new = q != p ? strtoull(p = q, &q, 16) : 0;
		if (q == p) {
			if (!map->n)
				continue; /* a heading */
			fprintf(stderr, "%s:%zu: not a line of a map\n", path, line_no);
			return false;
		}
		u.name = strtok(q, " \t");
		for (const char *w = u.name; w; w = strtok(NULL, " \t")) {
			if (!strcmp(w, "folded"))
				u.folded = true;
			if (!strncmp(w, "thunk=", 6)) {
				u.thunk = strtoull(w + 6, NULL, 16);
				u.thunk_size = 5; /* a jump, unless its symbol says more */
			}
		}
		if (!u.name)
			u.name = "?";
		map->unit[map->n++] = u;
	}
	if (map->n)
		qsort(map->unit, map->n, sizeof(*map->unit), unit_by_old);
	for (uint32_t i = 1; i < map->n; i++)
		if (map->unit[i].old - map->unit[i - 1].old < map->unit[i - 1].size) {
			fprintf(stderr, "%s: units overlap at %#" PRIx64 "\n", path,
				map->unit[i].old);
			return false;
		}
	return true;
}

static int index_by_new(const void *a, const void *b, void *arg)
{
	const struct jmap *sort_map = arg;
	const struct junit *x = &sort_map->unit[*(const uint32_t *)a],
			   *y = &sort_map->unit[*(const uint32_t *)b];

	if (x->new != y->new)
		return x->new < y->new ? -1 : 1;
	return x->old < y->old ? -1 : x->old > y->old;
}

static int index_by_thunk(const void *a, const void *b, void *arg)
{
	const struct jmap *sort_map = arg;
	const struct junit *x = &sort_map->unit[*(const uint32_t *)a],
			   *y = &sort_map->unit[*(const uint32_t *)b];

	return x->thunk < y->thunk ? -1 : x->thunk > y->thunk;
}

/* Has a symbol of the input at the unit's start, in the output, a size at the unit's new
 * address? */
static bool has_sized_symbol(const struct junit *u, const struct symbols *in)
{
	for (size_t i = symbols_at(in, u->old); i < in->n && in->v[i].value == u->old; i++)
		if (in->v[i].size && in->v[i].paired && in->v[i].new_size &&
		    in->v[i].new_value == u->new)
			return true;
	return false;
}

/* IDX[0..N) are the units at one new address, by old address. */
static void choose_kept(struct jmap *map, const uint32_t *idx, uint32_t n, uint64_t *last_old,
			const struct symbols *in)
{
	uint32_t kept = JNONE, candidates = 0, unmarked = 0;

	for (uint32_t i = 0; i < n; i++)
		unmarked += !map->unit[idx[i]].folded;
	for (uint32_t i = 0; i < n; i++) {
		struct junit *u = &map->unit[idx[i]];

		if (unmarked == 1 ? u->folded : n > 1 && !has_sized_symbol(u, in))
			continue;
		candidates++;
		/* Kept code stays in its old order: of several, the first that follows the last
		 * kept one. */
		if (kept == JNONE || (map->unit[kept].old < *last_old && u->old > *last_old))
			kept = idx[i];
	}
	if (kept == JNONE)
		kept = idx[0];
	for (uint32_t i = 0; i < n; i++) {
		map->unit[idx[i]].kept = kept;
		map->unit[idx[i]].folded = idx[i] != kept;
		map->unit[idx[i]].guessed = n > 1 && candidates != 1;
	}
	map->unit[kept].has_folded = n > 1;
	*last_old = map->unit[kept].old;
}

/* A folded unit's symbol that does not lie at the kept code is at its thunk. */
static void find_thunks(struct jmap *map, const struct symbols *in)
{
	for (uint32_t k = 0; k < map->n; k++) {
		struct junit *u = &map->unit[k];

		if (!u->folded)
			continue;
		for (size_t i = symbols_at(in, u->old); i < in->n && in->v[i].value == u->old;
		     i++) {
			const struct sym *s = &in->v[i];

			if (!s->paired || !s->new_size ||
			    jmap_find_new(map, s->new_value) != JNONE ||
			    !jmap_exec_out(map, s->new_value) ||
			    (u->thunk && u->thunk != s->new_value))
				continue;
			u->thunk = s->new_value;
			u->thunk_size = s->new_size;
		}
	}
}

bool jmap_load(struct jmap *map, const char *path, Elf *in, Elf *out)
{
	*map = (struct jmap){ 0 };
	if (!parse(map, path) || !exec_sections(in, &map->exec_in, &map->n_exec_in) ||
	    !exec_sections(out, &map->exec_out, &map->n_exec_out))
		return false;

	struct symbols sin = symbols_of(in), sout = symbols_of(out);
	uint32_t *all = malloc((map->n + 1) * sizeof(*all));
	uint64_t last_old = 0;

	pair(&sin, &sout);

	map->by_new = malloc((map->n + 1) * sizeof(*all));
	map->thunk = malloc((map->n + 1) * sizeof(*all));
	if (!all || !map->by_new || !map->thunk)
		abort();
	for (uint32_t i = 0; i < map->n; i++)
		all[i] = i;
	if (map->n)
		qsort_r(all, map->n, sizeof(*all), index_by_new, map);
	for (uint32_t i = 0, e; i < map->n; i = e) {
		for (e = i + 1; e < map->n && map->unit[all[e]].new == map->unit[all[i]].new; e++)
			;
		choose_kept(map, all + i, e - i, &last_old, &sin);
		map->by_new[map->n_new++] = map->unit[all[i]].kept;
	}
	find_thunks(map, &sin);
	for (uint32_t i = 0; i < map->n; i++)
		if (map->unit[i].thunk)
			map->thunk[map->n_thunk++] = i;
	if (map->n_thunk)
		qsort_r(map->thunk, map->n_thunk, sizeof(*all), index_by_thunk, map);
	free(all);
	free(sin.v);
	free(sout.v);
	return true;
}

void jmap_free(struct jmap *map)
{
	free(map->unit);
	free(map->by_new);
	free(map->thunk);
	free(map->exec_in);
	free(map->exec_out);
	free(map->text);
}

uint32_t jmap_find(const struct jmap *map, uint64_t va)
{
	uint32_t lo = 0, hi = map->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (map->unit[mid].old <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && va - map->unit[lo - 1].old < map->unit[lo - 1].size ? lo - 1 : JNONE;
}

uint32_t jmap_find_new(const struct jmap *map, uint64_t va)
{
	uint32_t lo = 0, hi = map->n_new;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (map->unit[map->by_new[mid]].new <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return JNONE;
	uint32_t u = map->by_new[lo - 1];

	return va - map->unit[u].new < map->unit[u].size ? u : JNONE;
}

uint32_t jmap_find_thunk(const struct jmap *map, uint64_t va)
{
	uint32_t lo = 0, hi = map->n_thunk;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (map->unit[map->thunk[mid]].thunk <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return JNONE;
	uint32_t u = map->thunk[lo - 1];

	return va - map->unit[u].thunk < map->unit[u].thunk_size ? u : JNONE;
}

static bool in_sections(uint64_t (*v)[2], uint32_t n, uint64_t va)
{
	for (uint32_t i = 0; i < n; i++)
		if (va >= v[i][0] && va <= v[i][1])
			return true;
	return false;
}

bool jmap_exec_in(const struct jmap *map, uint64_t va)
{
	return in_sections(map->exec_in, map->n_exec_in, va);
}

bool jmap_exec_out(const struct jmap *map, uint64_t va)
{
	return in_sections(map->exec_out, map->n_exec_out, va);
}

bool jmap_point(const struct jmap *map, uint64_t va, uint64_t *ret)
{
	uint32_t u = jmap_find(map, va);

	if (u == JNONE)
		return false;
	*ret = map->unit[u].new + (va - map->unit[u].old);
	return true;
}

bool jmap_end(const struct jmap *map, uint64_t va, uint64_t *ret)
{
	uint32_t u = va ? jmap_find(map, va - 1) : JNONE;

	if (u == JNONE)
		return false;
	*ret = map->unit[u].new + (va - map->unit[u].old);
	return true;
}

void jset_free(struct jset *s)
{
	free(s->v);
	free(s->thunks);
	*s = (struct jset){ 0 };
}

static void push(struct jset *s, struct jpiece p)
{
	if (p.lo >= p.hi)
		return;
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 8;
		s->v = realloc(s->v, s->cap * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = p;
}

static void push_thunk(struct jset *s, uint32_t unit)
{
	if (s->n_thunks == s->cap_thunks) {
		s->cap_thunks = s->cap_thunks * 2 + 8;
		s->thunks = realloc(s->thunks, s->cap_thunks * sizeof(*s->thunks));
		if (!s->thunks)
			abort();
	}
	s->thunks[s->n_thunks++] = unit;
}

void jset_expect(struct jset *s, const struct judge *j, uint64_t lo, uint64_t hi)
{
	const struct jmap *m = &j->map;
	uint32_t a = 0, b = m->n;

	while (a < b) {
		uint32_t mid = a + (b - a) / 2;

		if (m->unit[mid].old + m->unit[mid].size <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < m->n && m->unit[a].old < hi; a++) {
		const struct junit *u = &m->unit[a];
		uint64_t from = lo > u->old ? lo : u->old,
			 to = hi < u->old + u->size ? hi : u->old + u->size;

		if (u->folded && u->thunk && from == u->old && to == u->old + u->size)
			push_thunk(s, a);
		if (u->folded && j->policy != J_ALIAS)
			continue;
		push(s,
		     (struct jpiece){ u->kept, u->new + (from - u->old), u->new + (to - u->old) });
	}
}

bool jset_add(struct jset *s, const struct judge *j, uint64_t lo, uint64_t hi)
{
	const struct jmap *m = &j->map;
	uint32_t a = 0, b = m->n_new;

	if (lo >= hi)
		return true;
	if (!jmap_exec_out(m, lo) || !jmap_exec_out(m, hi))
		return false;
	while (a < b) {
		uint32_t mid = a + (b - a) / 2;
		const struct junit *u = &m->unit[m->by_new[mid]];

		if (u->new + u->size <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < m->n_new && m->unit[m->by_new[a]].new < hi; a++) {
		const struct junit *u = &m->unit[m->by_new[a]];

		push(s, (struct jpiece){ m->by_new[a], lo > u->new ? lo : u->new,
					 hi < u->new + u->size ? hi : u->new + u->size });
	}
	for (uint32_t t = 0; t < m->n_thunk; t++) {
		const struct junit *u = &m->unit[m->thunk[t]];

		if (u->thunk < hi && lo < u->thunk + u->thunk_size)
			push_thunk(s, m->thunk[t]);
	}
	return true;
}

static int piece_order(const void *a, const void *b)
{
	const struct jpiece *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi < y->hi ? -1 : x->hi > y->hi;
}

/* Sorts the pieces and joins those that touch inside one unit. */
static void normalize(struct jset *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), piece_order);
	for (size_t i = 0; i < s->n; i++) {
		if (n && s->v[n - 1].unit == s->v[i].unit && s->v[i].lo <= s->v[n - 1].hi) {
			if (s->v[i].hi > s->v[n - 1].hi)
				s->v[n - 1].hi = s->v[i].hi;
		} else {
			s->v[n++] = s->v[i];
		}
	}
	s->n = n;
}

const char *jset_differ(struct jset *want, struct jset *have, const struct judge *j, bool thunks,
			char *buf, size_t size)
{
	const struct junit *unit = j->map.unit;

	normalize(want);
	normalize(have);
	for (size_t i = 0; i < want->n || i < have->n; i++) {
		const struct jpiece *w = i < want->n ? &want->v[i] : NULL,
				    *h = i < have->n ? &have->v[i] : NULL;

		if (w && h && w->lo == h->lo && w->hi == h->hi)
			continue;
		if (w && (!h || w->lo <= h->lo))
			snprintf(buf, size, "[%#" PRIx64 ",%#" PRIx64 ") of %s is expected, %s",
				 w->lo, w->hi, unit[w->unit].name,
				 h ? "the output has other bounds" : "the output has not got it");
		else
			snprintf(buf, size, "[%#" PRIx64 ",%#" PRIx64 ") of %s is not expected",
				 h->lo, h->hi, unit[h->unit].name);
		return buf;
	}
	for (size_t i = 0; i < have->n_thunks; i++) {
		size_t k = 0;

		while (k < want->n_thunks && want->thunks[k] != have->thunks[i])
			k++;
		if (k == want->n_thunks) {
			snprintf(buf, size, "the thunk of %s at %#" PRIx64 " is not expected",
				 unit[have->thunks[i]].name, unit[have->thunks[i]].thunk);
			return buf;
		}
	}
	for (size_t i = 0; thunks && i < want->n_thunks; i++) {
		size_t k = 0;

		while (k < have->n_thunks && want->thunks[i] != have->thunks[k])
			k++;
		if (k == have->n_thunks) {
			snprintf(buf, size, "the thunk of %s at %#" PRIx64 " is missing",
				 unit[want->thunks[i]].name, unit[want->thunks[i]].thunk);
			return buf;
		}
	}
	return NULL;
}
