/* map.c: the map file, and where an address of the input is in the output.
 *
 * A line of the file is "old size new name", numbers in hexadecimal; lines that begin with '#' are
 * remarks. More words may follow the name: "folded" and "thunk=ADDRESS" are understood. Without
 * these words the symbols tell which of the units at one new address is the kept one: the symbol of
 * a folded function has size 0 in the output. If the kept unit has no symbol (ld --discard-all),
 * the symbol of a folded one keeps its size. Such maps need the words, which mark_folded in
 * tests/lib.sh adds. */
#include "tests/judges/dwarf/judge.h"
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sym {
	uint64_t value, size;
	const char *name;
	size_t index;                 /* in the table */
	uint64_t new_value, new_size; /* of the same symbol in the output */
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

/* Finds for each symbol of the input the same symbol in the output, and leaves both tables sorted
 * by address. Symbols of one name are paired in the order of the tables. */
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
	uint32_t at;

	JFIRST(at, s->n, s->v[at].value < value);
	return at;
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

/* All of the file, with a NUL behind it, in map->text. */
static bool read_all(struct jmap *map, const char *path)
{
	FILE *f = fopen(path, "r");
	size_t cap = 0, len = 0, got = 1;

	if (!f) {
		perror(path);
		return false;
	}
	while (got) {
		if (cap - len < 65537) {
			char *p = realloc(map->text, cap = cap * 2 + 131072);

			if (!p)
				abort();
			map->text = p;
		}
		got = fread(map->text + len, 1, cap - len - 1, f);
		len += got;
	}
	fclose(f);
	map->text[len] = 0;
	return true;
}

/* The unit that LINE tells of; false: it tells of none. */
static bool parse_line(char *line, struct junit *u)
{
	char *p = line, *q;

	*u = (struct junit){ .kept = JNONE };
	u->old = strtoull(p, &q, 16);
	u->size = q != p ? strtoull(p = q, &q, 16) : 0;
	u->new = q != p ? strtoull(p = q, &q, 16) : 0;
	if (q == p)
		return false;
	u->name = strtok(q, " \t");
	for (const char *w = u->name; w; w = strtok(NULL, " \t")) {
		if (!strcmp(w, "folded"))
			u->folded = true;
		if (!strncmp(w, "thunk=", 6)) {
			u->thunk = strtoull(w + 6, NULL, 16);
			u->thunk_size = 5; /* a jump, unless its symbol says more */
		}
	}
	if (!u->name)
		u->name = "?";
	return true;
}

static bool parse(struct jmap *map, const char *path)
{
	size_t units = 0, line_no = 0;

	if (!read_all(map, path))
		return false;
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
		if (parse_line(line, &map->unit[map->n])) {
			map->n++;
		} else if (map->n) { /* before the first unit: a heading */
			fprintf(stderr, "%s:%zu: not a line of a map\n", path, line_no);
			return false;
		}
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
		/* Kept code stays in its old order. So of several candidates take the first one
		 * behind the last kept unit. */
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
	uint32_t lo;

	JFIRST(lo, map->n, map->unit[lo].old <= va);
	return lo && va - map->unit[lo - 1].old < map->unit[lo - 1].size ? lo - 1 : JNONE;
}

uint32_t jmap_find_new(const struct jmap *map, uint64_t va)
{
	uint32_t lo;

	JFIRST(lo, map->n_new, map->unit[map->by_new[lo]].new <= va);
	if (!lo)
		return JNONE;
	uint32_t u = map->by_new[lo - 1];

	return va - map->unit[u].new < map->unit[u].size ? u : JNONE;
}

uint32_t jmap_find_thunk(const struct jmap *map, uint64_t va)
{
	uint32_t lo;

	JFIRST(lo, map->n_thunk, map->unit[map->thunk[lo]].thunk <= va);
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
