/* uses.c: sorts the uses of lists by section and offset, adds uses for entries that no DIE refers
 * to, and cuts them into chunks; see lists.c. */
#include "dwarf/rewrite/lists/state.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK_USES 2048

void dwr_lists_sort(struct dwr_lists_key *a, struct dwr_lists_key *tmp, size_t n)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < n; i++)
		bits |= a[i].key;
	struct dwr_lists_key *from = a, *to = tmp;
	for (unsigned shift = 0; shift < 64 && bits >> shift; shift += 8) {
		size_t count[257] = { 0 };
		for (size_t i = 0; i < n; i++)
			count[(from[i].key >> shift & 0xff) + 1]++;
		for (unsigned i = 0; i < 256; i++)
			count[i + 1] += count[i];
		for (size_t i = 0; i < n; i++)
			to[count[from[i].key >> shift & 0xff]++] = from[i];
		struct dwr_lists_key *swap = from;
		from = to;
		to = swap;
	}
	if (from != a)
		memcpy(a, from, n * sizeof *a);
}

static const struct dwr_list_contrib *contrib_with_base(const struct dwr_lists_part *part,
							uint64_t base)
{
	size_t lo = LOWER_BOUND(0, part->contribs.len, mid, part->contribs.data[mid].base < base);
	return lo < part->contribs.len && part->contribs.data[lo].base == base
		       ? &part->contribs.data[lo]
		       : NULL;
}

static uint64_t unit_base(const struct dwr_list_cu *cu, unsigned kind)
{
	return kind == DWR_LIST_RNGLISTS ? cu->rnglists_base : cu->loclists_base;
}

uint64_t *dwr_lists_table_entry(const struct dwr_lists_run *r, const struct dwr_list_use *use)
{
	const struct dwr_lists_part *part = &r->part[use->kind];
	const struct dwr_list_contrib *c =
		contrib_with_base(part, unit_base(&r->in->cu[use->cu], use->kind));
	if (!c || use->index >= c->n_offsets)
		return NULL;
	return &part->table[part->table_at[c - part->contribs.data] + use->index];
}

/* Memory for the tables of PART: no entry has a use yet. */
static struct elfrw_err *make_tables(const struct dwr_lists_run *r, struct dwr_lists_part *part,
				     size_t *ret_total)
{
	size_t n = part->contribs.len, total = 0;
	for (size_t i = 0; i < n; i++)
		total += part->contribs.data[i].n_offsets;
	part->new_base = calloc(n + 1, sizeof *part->new_base);
	part->table_at = calloc(n + 1, sizeof *part->table_at);
	part->table = malloc((total + 1) * sizeof *part->table);
	if (!part->new_base || !part->table_at || !part->table ||
	    total >= UINT32_MAX - dwr_lists_count(r))
		return &elfrw_err_nomem;
	memset(part->table, 0xff, (total + 1) * sizeof *part->table);
	for (size_t i = 0, at = 0; i < n; i++) {
		part->table_at[i] = (uint32_t)at;
		at += part->contribs.data[i].n_offsets;
	}
	*ret_total = total;
	return NULL;
}

/* Enters the caller's uses of section KIND into the tables. */
static struct elfrw_err *enter_uses(struct dwr_lists_run *r, unsigned kind)
{
	for (size_t i = 0; i < r->in->n_uses; i++) {
		const struct dwr_list_use *use = &r->in->use[i];
		if (use->kind != kind || !use->indexed)
			continue;
		uint64_t *t = dwr_lists_table_entry(r, use);
		if (!t)
			return elfrw_error_at(r->in->secs.list[kind].name, use->off,
					      "list index 0x%x is outside of the offset table",
					      use->index);
		*t = i;
	}
	return NULL;
}

/* Makes up a use by unit CU for each entry of contribution I that has none. */
static struct elfrw_err *make_up_contrib(struct dwr_lists_run *r, unsigned kind, size_t i,
					 uint32_t cu)
{
	const struct dwr_lists_part *part = &r->part[kind];
	const struct dwr_list_contrib *c = &part->contribs.data[i];
	const uint8_t *table = r->in->secs.list[kind].data + c->base;
	for (uint32_t k = 0; k < c->n_offsets; k++) {
		uint64_t off = c->base + elfrw_get_le(table + k * c->offset_size, c->offset_size);
		if (part->table[part->table_at[i] + k] != UINT64_MAX || off < c->lists ||
		    off >= c->end)
			continue;
		struct dwr_list_use *use = VEC_PUSH(&r->made_up);
		if (!use)
			return &elfrw_err_nomem;
		*use = (struct dwr_list_use){ .off = off,
					      .views = DWR_LIST_NONE,
					      .cu = cu,
					      .owner = ELFRW_NO_UNIT,
					      .index = k,
					      .kind = (uint8_t)kind,
					      .indexed = true,
					      .purpose = kind == DWR_LIST_LOCLISTS
								 ? DWR_FOR_LOCATION
								 : DWR_FOR_SCOPE };
	}
	return NULL;
}

struct elfrw_err *dwr_lists_make_up(struct dwr_lists_run *r, unsigned kind)
{
	struct dwr_lists_part *part = &r->part[kind];
	const size_t n = part->contribs.len;
	size_t total;
	ELFRW_TRY(make_tables(r, part, &total));
	if (total)
		ELFRW_TRY(enter_uses(r, kind));
	uint32_t *unit = malloc((n + 1) * sizeof *unit);
	if (!unit)
		return &elfrw_err_nomem;
	memset(unit, 0xff, (n + 1) * sizeof *unit);
	for (uint32_t i = r->in->n_cus; n && i-- > 0;) {
		const struct dwr_list_contrib *c =
			contrib_with_base(part, unit_base(&r->in->cu[i], kind));
		if (c)
			unit[c - part->contribs.data] = i;
	}
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < n && !err; i++)
		if (unit[i] != UINT32_MAX)
			err = make_up_contrib(r, kind, i, unit[i]);
	free(unit);
	return err;
}

static bool is_sorted(const struct dwr_lists_key *a, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (a[i - 1].key > a[i].key)
			return false;
	return true;
}

/* Sorts N keys; other memory is only needed if they are not sorted. */
static struct elfrw_err *sort_keys(struct dwr_lists_key *a, size_t n)
{
	if (is_sorted(a, n))
		return NULL;
	struct dwr_lists_key *tmp = malloc(n * sizeof *tmp);
	if (!tmp)
		return &elfrw_err_nomem;
	dwr_lists_sort(a, tmp, n);
	free(tmp);
	return NULL;
}

/* Fills and sorts the keys of slice INDEX of ARG, a struct dwr_lists_run. */
static struct elfrw_err *sort_slice(void *arg, size_t index)
{
	struct dwr_lists_run *r = arg;
	const struct dwr_lists_slice *s = &r->slice[index];
	uint32_t at[DWR_LIST_KINDS];
	memcpy(at, s->at, sizeof at);
	for (size_t i = index * DWR_LISTS_SLICE;
	     i < r->in->n_uses && i < (index + 1) * DWR_LISTS_SLICE; i++) {
		const struct dwr_list_use *use = &r->in->use[i];
		r->order[at[use->kind]++] = (struct dwr_lists_key){ use->off, (uint32_t)i };
	}
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++)
		ELFRW_TRY(sort_keys(r->order + s->at[kind], s->n[kind]));
	return NULL;
}

/* Sorts the keys of section KIND, of which those of each slice are sorted.  A slice may begin in
 * the middle of a unit, so the last lists of one may lie behind the first ones of the next. */
static struct elfrw_err *join_slices(struct dwr_lists_run *r, unsigned kind)
{
	const struct dwr_lists_part *part = &r->part[kind];
	struct dwr_lists_key *key = r->order + part->first;
	size_t at = 0, work = 0;
	for (size_t i = 0; i < r->n_slices && work <= part->n; at += r->slice[i++].n[kind]) {
		const size_t end = at + r->slice[i].n[kind];
		if (!at || at == end || key[at - 1].key <= key[at].key)
			continue;
		const size_t from = LOWER_BOUND(0, at, mid, key[mid].key <= key[at].key),
			     to = LOWER_BOUND(at, end, mid, key[mid].key < key[at - 1].key);
		work += to - from;
		ELFRW_TRY(sort_keys(key + from, to - from));
	}
	/* Uses that were made up are behind them. */
	return at == part->n && work <= part->n ? NULL : sort_keys(key, part->n);
}

/* Units lie in the order of their lists as a rule.  Then the slices, each sorted by itself, are
 * sorted as a whole. */
struct elfrw_err *dwr_lists_sort_uses(struct dwr_lists_run *r)
{
	const size_t n = dwr_lists_count(r), size = (n + 1) * sizeof *r->order;
	uint32_t at[DWR_LIST_KINDS], next = 0;
	r->order = elfrw_large(malloc(size), size);
	if (!r->order)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < r->made_up.len; i++)
		r->part[r->made_up.data[i].kind].n++;
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++) {
		r->part[kind].first = at[kind] = next;
		next += r->part[kind].n += (uint32_t)r->n_by_kind[kind];
		for (size_t i = 0; i < r->n_slices; i++) {
			r->slice[i].at[kind] = at[kind];
			at[kind] += r->slice[i].n[kind];
		}
	}
	ELFRW_TRY(elfrw_parallel(r->in->threads, r->n_slices, sort_slice, r));
	for (size_t i = r->in->n_uses; i < n; i++) {
		const struct dwr_list_use *use = dwr_lists_use(r, i);
		r->order[at[use->kind]++] = (struct dwr_lists_key){ use->off, (uint32_t)i };
	}
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++)
		ELFRW_TRY(join_slices(r, kind));
	return NULL;
}

struct elfrw_err *dwr_lists_cut(struct dwr_lists_run *r, unsigned kind)
{
	struct dwr_lists_part *part = &r->part[kind];
	const struct dwr_lists_key *key = r->order + part->first;
	uint32_t contrib = 0;
	part->first_chunk = (uint32_t)r->chunk.len;
	for (uint32_t i = 0, next; i < part->n; i = next) {
		const uint64_t off = key[i].key;
		uint32_t end = part->n;
		if (dwr_list_is_v5(kind)) {
			const struct dwr_list_contrib *of = part->contribs.data;
			while (contrib < part->contribs.len && of[contrib].end <= off)
				contrib++;
			if (contrib == part->contribs.len || off < of[contrib].lists)
				return elfrw_error_at(r->in->secs.list[kind].name, off,
						      "a list begins outside of all"
						      " contributions");
			end = (uint32_t)LOWER_BOUND(i, part->n, mid,
						    key[mid].key < of[contrib].end);
		}
		next = end - i > CHUNK_USES ? i + CHUNK_USES : end;
		while (next < end && key[next].key == key[next - 1].key)
			next++;
		struct dwr_lists_chunk *c = VEC_PUSH(&r->chunk);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct dwr_lists_chunk){ .first = part->first + i,
					       .n = next - i,
					       .contrib = contrib,
					       .kind = (uint8_t)kind };
		c->w.in = r->in;
		c->w.ranger = &r->ranger;
		c->w.budget = &r->budget[kind];
	}
	part->n_chunks = (uint32_t)r->chunk.len - part->first_chunk;
	return NULL;
}
