/* row.c: the words of four bytes from a place in data up to the next named one.
 *
 * A stripped program may name one place in a large object after the other, and nothing in between
 * is known to have a name: each of N rows is as long as the object.  So nothing here reads a row
 * from its start to its end.  A section that rows begin in gets, once:
 *   - the next named place behind each block of places, by their remainders modulo 4;
 *   - a tree over its words, for each remainder: the smallest and the largest of FAN words, of FAN
 *     times as many, and so on.  A search steps over what cannot matter.
 * Cost: linear in the section, then of the order of the logarithm for each word that is found. */
#include "icf/infer/gap/state.h"
#include <stdlib.h>

#define BLOCK  256 /* places */
#define FAN    5   /* exponent of two */
#define LEVELS 8   /* 2^(5 * 8) words are more than a file has */

struct node {
	int32_t min, max; /* of words that can be distances to code; min > max: there are none */
	bool other;       /* some other word is there, too */
};

struct icf_row_tree {
	unsigned n; /* of levels */
	struct node *level[LEVELS];
};

struct icf_row_section {
	uint64_t *next; /* by block and remainder: the offset of the first named place from the
			   block on, or the section's size */
	struct icf_row_tree tree[4];
	struct icf_bits seen;
};

struct elfrw_err *icf_rows_init(const struct icf_program *prog, const struct icf_data_map *map,
				struct icf_rows *ret)
{
	*ret = (struct icf_rows){ prog, map, calloc(prog->img->n_sections, sizeof *ret->section) };
	return ret->section ? NULL : &elfrw_err_nomem;
}

void icf_rows_deinit(struct icf_rows *rows)
{
	for (uint32_t i = 0; rows->section && i < rows->prog->img->n_sections; i++) {
		struct icf_row_section *s = &rows->section[i];
		free(s->next);
		icf_bits_deinit(&s->seen);
		for (unsigned r = 0; r < 4; r++)
			for (unsigned l = 0; l < s->tree[r].n; l++)
				free(s->tree[r].level[l]);
	}
	free(rows->section);
	*rows = (struct icf_rows){ 0 };
}

static struct elfrw_err *find_next(const struct icf_rows *rows, const Elf64_Shdr *sh,
				   struct icf_row_section *ret)
{
	uint64_t blocks = sh->sh_size / BLOCK + 2, to[4];
	ret->next = malloc(blocks * 4 * sizeof *ret->next);
	if (!ret->next || !icf_bits_init(&ret->seen, 0, sh->sh_size))
		return &elfrw_err_nomem;
	for (unsigned r = 0; r < 4; r++)
		to[r] = ret->next[4 * (blocks - 1) + r] = sh->sh_size;
	for (uint64_t b = blocks - 1; b-- > 0;) {
		for (uint64_t off = (b + 1) * BLOCK; off-- > b * BLOCK;)
			if (off < sh->sh_size && icf_bit(&rows->map->named, sh->sh_addr + off))
				to[off & 3] = off;
		for (unsigned r = 0; r < 4; r++)
			ret->next[4 * b + r] = to[r];
	}
	return NULL;
}

/* The first named offset behind OFF, of those STEP apart (1 or 4); or the section's size. */
static uint64_t next_named(const struct icf_rows *rows, const Elf64_Shdr *sh,
			   const struct icf_row_section *s, uint64_t off, unsigned step)
{
	const struct icf_bits *named = &rows->map->named;
	/* What lies in front of the map is not asked for names (icf_next_named()). */
	if (sh->sh_addr + off + 1 < named->lo)
		return sh->sh_size;
	uint64_t block = off / BLOCK + 1, ret = sh->sh_size;
	for (uint64_t p = off + step; p < block * BLOCK && p < sh->sh_size; p += step)
		if (icf_bit(named, sh->sh_addr + p))
			return p;
	for (unsigned r = 0; r < 4; r++)
		if ((step == 1 || r == (off & 3)) && s->next[4 * block + r] < ret)
			ret = s->next[4 * block + r];
	return ret;
}

static void add(struct node *n, const struct node *more)
{
	n->min = more->min < n->min ? more->min : n->min;
	n->max = more->max > n->max ? more->max : n->max;
	n->other |= more->other;
}

/* The distances that lead to code from some place in the section or in code. */
static struct icf_row_span distances(const struct icf_program *prog, const Elf64_Shdr *sh)
{
	const uint64_t lo = prog->exec.data[0].start, hi = prog->exec.data[prog->exec.len - 1].end,
		       end = sh->sh_addr + sh->sh_size;
	return (struct icf_row_span){ (int64_t)(lo - (end > hi ? end : hi)),
				      (int64_t)(hi - (sh->sh_addr < lo ? sh->sh_addr : lo)) };
}

static struct elfrw_err *grow(const struct icf_program *prog, const struct elfrw_section *s,
			      unsigned rest, struct icf_row_tree *ret)
{
	const struct node none = { INT32_MAX, INT32_MIN, false };
	const struct icf_row_span code = distances(prog, &s->hdr);
	uint64_t n = (s->hdr.sh_size - rest) / 4, nodes = n;
	do {
		uint64_t below = nodes;
		nodes = (nodes >> FAN) + 1;
		struct node *to = malloc(nodes * sizeof *to),
			    *from = ret->n ? ret->level[ret->n - 1] : NULL;
		if (!to)
			return &elfrw_err_nomem;
		ret->level[ret->n++] = to;
		for (uint64_t i = 0; i < nodes; i++)
			to[i] = none;
		for (uint64_t i = 0; i < below; i++) {
			if (from) {
				add(&to[i >> FAN], &from[i]);
				continue;
			}
			int32_t w = (int32_t)elfrw_get32(s->data + rest + 4 * i);
			if (w >= code.lo && w <= code.hi)
				add(&to[i >> FAN], &(struct node){ w, w, false });
			else
				to[i >> FAN].other = true;
		}
	} while (nodes > 1 && ret->n < LEVELS);
	return NULL;
}

struct elfrw_err *icf_row_at(struct icf_rows *rows, uint64_t va, bool whole, struct icf_row *ret)
{
	uint32_t shndx = elfrw_image_section_at(rows->prog->img, va);
	const struct elfrw_section *sec = &rows->prog->img->section[shndx];
	struct icf_row_section *s = &rows->section[shndx];
	uint64_t off = va - sec->hdr.sh_addr;
	struct elfrw_err *err = NULL;
	*ret = (struct icf_row){ 0 };
	if (!shndx || !sec->data)
		return NULL;
	if (!s->next)
		err = find_next(rows, &sec->hdr, s);
	if (!err && !s->tree[off & 3].n)
		err = grow(rows->prog, sec, off & 3, &s->tree[off & 3]);
	if (err)
		return err;
	uint64_t end = next_named(rows, &sec->hdr, s, off, whole ? 4 : 1);
	*ret = (struct icf_row){ sec->data + off,   (end - off) / 4, off / 4,
				 &s->tree[off & 3], &s->seen,        off };
	return NULL;
}

static bool matters(int64_t w, const struct icf_row_span *all, const struct icf_row_span *idle)
{
	return w >= all->lo && w <= all->hi && (w < idle->lo || w > idle->hi);
}

/* Does no word below N matter? */
static bool is_idle(const struct node *n, const struct icf_row_span *all,
		    const struct icf_row_span *idle)
{
	if (n->other && all->lo == INT64_MIN)
		return false;
	return n->min > n->max || n->max < all->lo || n->min > all->hi ||
	       (n->min >= idle->lo && n->max <= idle->hi);
}

uint64_t icf_row_next(const struct icf_row *r, uint64_t k, const struct icf_row_span *all,
		      const struct icf_row_span *idle)
{
	while (k < r->n) {
		uint64_t at = r->first + k, skip = 0;
		for (unsigned l = 0; l < r->tree->n; l++) {
			unsigned shift = FAN * (l + 1);
			if (at & ((1ull << shift) - 1) ||
			    !is_idle(&r->tree->level[l][at >> shift], all, idle))
				break;
			skip = 1ull << shift;
		}
		if (!skip && matters(icf_row_word(r, k), all, idle))
			return k;
		k += skip ? skip : 1;
	}
	return r->n;
}
