/* lists.c: the four list sections rebuilt; see lists.h.
 *
 * 1. The uses of each section are sorted by list offset (radix sort: there may be a million).  In
 *    DWARF 5 sections every entry of an offset table that no use names counts as a use of its own,
 *    so that tables stay whole.
 * 2. The sorted uses are cut into chunks of a few thousand, never inside of a contribution boundary
 *    or between two uses of one list.  Each chunk is rewritten into a buffer of its own (threads);
 *    uses of one list whose results agree share it.
 * 3. Headers, tables and chunks are put together, and the uses get their final offsets.
 *
 * Chunks do not depend on the number of threads, nor does a chunk's result on other chunks: entries
 * of .debug_addr that lists want are collected and set at the end, and dwr_list_want_slot only
 * allows wishes that cannot contradict each other.
 *
 * Measured on protoc (720,000 lists, 16.6 MB): 0.11 s of one core. */
#include "dwarf/rewrite/lists/list.h"
#include "dwarf/rewrite/addr.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK_USES 2048
#define TAKEN_BYTES \
	3 /* what a range takes at least, of those that are counted against the budget */
#define MAX_SHARED 16 /* results of one list that later uses of it are compared with */

struct key {
	uint64_t key;
	uint32_t index;
};

struct chunk {
	struct dwr_list_work w;
	uint32_t first, n; /* in order[] */
	uint32_t contrib;  /* DWARF 5: index of the contribution */
	uint64_t base;     /* where its bytes are in the new section */
	uint8_t kind;
};

/* One of the sections. */
struct part {
	uint32_t first, n; /* keys in order[] */
	uint32_t first_chunk, n_chunks;
	uint32_t first_synth; /* made-up uses of this section */
	struct dwr_list_contribs contribs;
	uint64_t *new_base; /* by contribution: its base in the output */
	uint64_t *table;    /* all offset tables, one after the other: the new list offset, while
			       reading the use */
	uint32_t *table_at; /* by contribution: where its table begins in TABLE */
};

struct run {
	const struct dwr_rw_lists_in *in;
	VEC(struct dwr_list_use) made_up; /* uses beyond the caller's */
	size_t n_by_kind[DWR_LIST_KINDS]; /* the caller's uses */
	struct key *order, *scratch;
	struct dwr_ranger ranger;
	struct dwr_list_budget budget[DWR_LIST_KINDS];
	struct part part[DWR_LIST_KINDS];
	VEC(struct chunk) chunk;
};

/* Uses are numbered through: the caller's, then those made up. */
static inline struct dwr_list_use *use_at(const struct run *r, size_t i)
{
	return i < r->in->n_uses ? &r->in->use[i] : &r->made_up.data[i - r->in->n_uses];
}

static size_t count_uses(const struct run *r)
{
	return r->in->n_uses + r->made_up.len;
}

/* Sorts by key, equal keys in their order: least significant digits first, only those that
 * occur. */
static void radix_sort(struct key *a, struct key *tmp, size_t n)
{
	bool sorted = true;
	uint64_t bits = 0;
	for (size_t i = 0; i < n; i++) {
		bits |= a[i].key;
		sorted = sorted && (!i || a[i - 1].key <= a[i].key);
	}
	if (sorted)
		return;
	struct key *from = a, *to = tmp;
	for (unsigned shift = 0; shift < 64 && bits >> shift; shift += 8) {
		size_t count[257] = { 0 };
		for (size_t i = 0; i < n; i++)
			count[(from[i].key >> shift & 0xff) + 1]++;
		for (unsigned i = 0; i < 256; i++)
			count[i + 1] += count[i];
		for (size_t i = 0; i < n; i++)
			to[count[from[i].key >> shift & 0xff]++] = from[i];
		struct key *swap = from;
		from = to;
		to = swap;
	}
	if (from != a)
		memcpy(a, from, n * sizeof *a);
}

static const struct dwr_list_contrib *contrib_with_base(const struct part *part, uint64_t base)
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

/* The place in part->table of an indexed use, or NULL. */
static uint64_t *table_entry(const struct run *r, const struct dwr_list_use *use)
{
	const struct part *part = &r->part[use->kind];
	const struct dwr_list_contrib *c =
		contrib_with_base(part, unit_base(&r->in->cu[use->cu], use->kind));
	if (!c || use->index >= c->n_offsets)
		return NULL;
	return &part->table[part->table_at[c - part->contribs.data] + use->index];
}

/* Adds a use for each entry of an offset table that no DIE names.  The unit is one that has this
 * contribution as its own: without one nobody can read the list, and the entry gets any valid
 * offset. */
static struct elfrw_err *make_up_uses(struct run *r, unsigned kind)
{
	struct part *part = &r->part[kind];
	const struct dwr_list_sec *sec = &r->in->secs.list[kind];
	size_t n = part->contribs.len, total = 0;
	part->new_base = calloc(n + 1, sizeof *part->new_base);
	part->table_at = calloc(n + 1, sizeof *part->table_at);
	for (size_t i = 0; i < n; i++)
		total += part->contribs.data[i].n_offsets;
	part->table = malloc((total + 1) * sizeof *part->table);
	uint32_t *unit = malloc((n + 1) * sizeof *unit);
	if (!part->new_base || !part->table_at || !part->table || !unit ||
	    total >= UINT32_MAX - count_uses(r)) {
		free(unit);
		return &elfrw_err_nomem;
	}
	memset(part->table, 0xff, (total + 1) * sizeof *part->table);
	memset(unit, 0xff, (n + 1) * sizeof *unit);
	for (size_t i = 0, at = 0; i < n; i++) {
		part->table_at[i] = (uint32_t)at;
		at += part->contribs.data[i].n_offsets;
	}
	struct elfrw_err *err = NULL;
	if (total) {
		for (uint32_t i = r->in->n_cus; i-- > 0;) {
			const struct dwr_list_contrib *c =
				contrib_with_base(part, unit_base(&r->in->cu[i], kind));
			if (c)
				unit[c - part->contribs.data] = i;
		}
		for (size_t i = 0; i < r->in->n_uses && !err; i++) {
			const struct dwr_list_use *use = &r->in->use[i];
			if (use->kind != kind || !use->indexed)
				continue;
			uint64_t *t = table_entry(r, use);
			if (t)
				*t = i;
			else
				err = elfrw_error_at(sec->name, use->off,
						     "list index 0x%x is outside of the offset"
						     " table",
						     use->index);
		}
	}
	for (size_t i = 0; i < n && !err; i++) {
		const struct dwr_list_contrib *c = &part->contribs.data[i];
		for (uint32_t k = 0; k < c->n_offsets && unit[i] != UINT32_MAX; k++) {
			uint64_t off =
				c->base + elfrw_get_le(sec->data + c->base + k * c->offset_size,
						       c->offset_size);
			if (part->table[part->table_at[i] + k] != UINT64_MAX || off < c->lists ||
			    off >= c->end)
				continue;
			struct dwr_list_use *use = VEC_PUSH(&r->made_up);
			if (!use) {
				err = &elfrw_err_nomem;
				break;
			}
			*use = (struct dwr_list_use){ .off = off,
						      .views = DWR_LIST_NONE,
						      .cu = unit[i],
						      .owner = ELFRW_NO_UNIT,
						      .index = k,
						      .kind = (uint8_t)kind,
						      .indexed = true,
						      .purpose = kind == DWR_LIST_LOCLISTS
									 ? DWR_FOR_LOCATION
									 : DWR_FOR_SCOPE };
		}
	}
	free(unit);
	return err;
}

static struct elfrw_err *sort_uses(struct run *r)
{
	size_t n = count_uses(r);
	uint32_t at[DWR_LIST_KINDS], next = 0;
	r->order = malloc((n + 1) * sizeof *r->order);
	r->scratch = malloc((n + 1) * sizeof *r->scratch);
	if (!r->order || !r->scratch)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < r->made_up.len; i++)
		r->part[r->made_up.data[i].kind].n++;
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++) {
		r->part[kind].first = at[kind] = next;
		next += r->part[kind].n += (uint32_t)r->n_by_kind[kind];
	}
	for (size_t i = 0; i < n; i++) {
		const struct dwr_list_use *use = use_at(r, i);
		r->order[at[use->kind]++] = (struct key){ use->off, (uint32_t)i };
	}
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++)
		radix_sort(r->order + r->part[kind].first, r->scratch, r->part[kind].n);
	return NULL;
}

static struct elfrw_err *cut_chunks(struct run *r, unsigned kind)
{
	struct part *part = &r->part[kind];
	const struct key *key = r->order + part->first;
	uint32_t contrib = 0;
	struct chunk *c = NULL;
	part->first_chunk = (uint32_t)r->chunk.len;
	for (uint32_t i = 0; i < part->n; i++) {
		uint64_t off = key[i].key;
		if (dwr_list_is_v5(kind)) {
			uint32_t old = contrib;
			while (contrib < part->contribs.len &&
			       part->contribs.data[contrib].end <= off)
				contrib++;
			if (contrib == part->contribs.len ||
			    off < part->contribs.data[contrib].lists)
				return elfrw_error_at(r->in->secs.list[kind].name, off,
						      "a list begins outside of all"
						      " contributions");
			if (contrib != old)
				c = NULL;
		}
		if (!c || (c->n >= CHUNK_USES && key[i - 1].key != off)) {
			c = VEC_PUSH(&r->chunk);
			if (!c)
				return &elfrw_err_nomem;
			*c = (struct chunk){ .first = part->first + i,
					     .contrib = contrib,
					     .kind = (uint8_t)kind };
			c->w.in = r->in;
			c->w.ranger = &r->ranger;
			c->w.budget = &r->budget[kind];
		}
		c->n++;
	}
	part->n_chunks = (uint32_t)r->chunk.len - part->first_chunk;
	return NULL;
}

/* A result for one list. */
struct shared {
	uint32_t use;
	struct dwr_list_result result;
	size_t taken, n_taken; /* in w->taken */
};

static bool same_question(const struct dwr_list_use *a, const struct dwr_list_use *b)
{
	return a->cu == b->cu && a->views == b->views && a->purpose == b->purpose &&
	       (a->purpose != DWR_FOR_LOCATION || a->owner == b->owner);
}

static bool same_bytes(const struct dwr_list_work *w, const struct dwr_list_result *a,
		       const struct dwr_list_result *b)
{
	return a->end - a->views == b->end - b->views && a->off - a->views == b->off - b->views &&
	       !memcmp(w->out.data + a->views, w->out.data + b->views, a->end - a->views);
}

static struct elfrw_err *rewrite_made_up(struct dwr_list_work *w, const struct dwr_list_use *use,
					 uint32_t index, struct dwr_list_result *ret)
{
	/* Nothing says that there is a list at all. */
	struct elfrw_err *err = dwr_list_read(&w->in->secs, use->kind, &w->in->cu[use->cu],
					      use->off, use->views, &w->list);
	if (err && err != &elfrw_err_nomem) {
		elfrw_err_free(err);
		struct dwr_list_outs none = { 0 };
		ret->in_end = use->off;
		return dwr_list_encode(w, use->kind, &w->in->cu[use->cu], &none, false, false, ret);
	}
	return err ? err : dwr_list_rewrite(w, use, index, ret);
}

/* Gives S the bytes of an equal list: an earlier result for the same list, or the tail of the LAST
 * one where the input has S in the tail too (GCC lets a scope use the end of the enclosing scope's
 * list). */
static void share_bytes(struct dwr_list_work *w, uint64_t off, const struct shared *shared,
			unsigned n, struct dwr_list_result *last, struct dwr_list_result *s)
{
	for (unsigned k = 0; k < n; k++)
		if (same_bytes(w, &shared[k].result, s)) {
			w->out.len = s->views;
			*s = shared[k].result;
			return;
		}
	uint64_t size = s->end - s->off;
	if (s->views == s->off && off < last->in_end && size <= last->end - last->off &&
	    !memcmp(w->out.data + last->end - size, w->out.data + s->off, size)) {
		w->out.len = s->off;
		s->end = last->end;
		s->views = s->off = last->end - size;
		return;
	}
	*last = *s;
}

static struct elfrw_err *copy_taken(struct dwr_list_work *w, size_t from, size_t n, uint32_t use)
{
	for (size_t i = 0; i < n; i++) {
		struct dwr_list_taken *t = VEC_PUSH(&w->taken);
		if (!t)
			return &elfrw_err_nomem;
		*t = w->taken.data[from + i];
		t->use = use;
	}
	return NULL;
}

static struct elfrw_err *rewrite_chunk(void *arg, size_t index)
{
	struct run *r = arg;
	struct chunk *c = &r->chunk.data[index];
	struct dwr_list_work *w = &c->w;
	struct shared shared[MAX_SHARED];
	struct dwr_list_result last = { 0 };
	unsigned n = 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		uint32_t u = r->order[i].index;
		struct dwr_list_use *use = use_at(r, u);
		if (i == c->first || r->order[i - 1].key != r->order[i].key)
			n = 0;
		const struct shared *same = NULL;
		for (unsigned k = 0; k < n && !same; k++)
			if (same_question(use, use_at(r, shared[k].use)))
				same = &shared[k];
		struct shared s = { .use = u, .taken = w->taken.len };
		if (same) {
			s.result = same->result;
			/* What the overlay gets is not shared. */
			ELFRW_TRY(dwr_list_charge(w->budget, TAKEN_BYTES * same->n_taken));
			ELFRW_TRY(copy_taken(w, same->taken, same->n_taken, u));
		} else {
			ELFRW_TRY(u >= r->in->n_uses ? rewrite_made_up(w, use, u, &s.result)
						     : dwr_list_rewrite(w, use, u, &s.result));
			s.n_taken = w->taken.len - s.taken;
			share_bytes(w, use->off, shared, n, &last, &s.result);
			if (n < MAX_SHARED)
				shared[n++] = s;
		}
		use->new_off = s.result.off;
		use->new_views = use->views != DWR_LIST_NONE ? s.result.views : DWR_LIST_NONE;
		use->empty = s.result.empty;
	}
	return NULL;
}

/* Where the chunks' bytes went. */
static void settle_chunk(struct run *r, const struct chunk *c)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		struct dwr_list_use *use = use_at(r, r->order[i].index);
		use->new_off += c->base;
		if (use->new_views != DWR_LIST_NONE)
			use->new_views += c->base;
	}
}

static void append_chunk(struct run *r, struct chunk *c, struct elfrw_wbuf *out)
{
	c->base = out->len;
	elfrw_wbuf_bytes(out, c->w.out.data, c->w.out.len);
	elfrw_wbuf_free(&c->w.out);
	settle_chunk(r, c);
}

/* A contribution's header; RET_START: what the length counts begins there. */
static void put_header(struct elfrw_wbuf *out, unsigned offset_size, unsigned address_size,
		       uint32_t n_offsets, size_t *ret_start)
{
	if (offset_size == 8)
		elfrw_wbuf_u32(out, UINT32_MAX);
	elfrw_wbuf_uint(out, 0, offset_size);
	*ret_start = out->len;
	elfrw_wbuf_u16(out, 5);
	elfrw_wbuf_u8(out, (uint8_t)address_size);
	elfrw_wbuf_u8(out, 0); /* segment selectors */
	elfrw_wbuf_u32(out, n_offsets);
}

static struct elfrw_err *put_length(const struct dwr_list_sec *sec, struct elfrw_wbuf *out,
				    unsigned offset_size, size_t start)
{
	uint64_t length = out->len - start;
	if (out->bad)
		return &elfrw_err_nomem;
	if (offset_size == 4 && length >= 0xfffffff0)
		return elfrw_error("%s: a contribution outgrows its length field", sec->name);
	elfrw_put_le(out->data + start - offset_size, length, offset_size);
	return NULL;
}

/* The offset tables.  Of several uses of one entry with different results the one with the lower
 * purpose counts (a unit or function before its scopes), then the first; all get that offset. */
static struct elfrw_err *fill_tables(struct run *r, unsigned kind, struct elfrw_wbuf *out)
{
	struct part *part = &r->part[kind];
	const char *name = r->in->secs.list[kind].name;
	size_t n = part->contribs.len;
	size_t total = n ? part->table_at[n - 1] + (size_t)part->contribs.data[n - 1].n_offsets : 0;
	if (!total)
		return NULL;
	memset(part->table, 0xff, total * sizeof *part->table);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0, all = count_uses(r); i < all; i++) {
			struct dwr_list_use *use = use_at(r, i);
			if (use->kind != kind || !use->indexed)
				continue;
			uint64_t *t = table_entry(r, use);
			if (pass == 0 &&
			    (*t == UINT64_MAX || use_at(r, *t)->purpose > use->purpose))
				*t = i;
			else if (pass == 1 && *t != i) {
				use->new_off = use_at(r, *t)->new_off;
				use->empty = use_at(r, *t)->empty;
			}
		}
	for (size_t i = 0; i < n; i++) {
		const struct dwr_list_contrib *c = &part->contribs.data[i];
		uint64_t base = part->new_base[i];
		for (uint32_t k = 0; k < c->n_offsets; k++) {
			uint64_t u = part->table[part->table_at[i] + k];
			uint64_t off = u == UINT64_MAX ? (uint64_t)c->n_offsets * c->offset_size
						       : use_at(r, u)->new_off - base;
			if (u != UINT64_MAX && (use_at(r, u)->new_off < base ||
						(c->offset_size == 4 && off > UINT32_MAX)))
				return elfrw_error_at(name, c->base,
						      "offset table entry %u cannot reach its list",
						      k);
			elfrw_put_le(out->data + base + (uint64_t)k * c->offset_size, off,
				     c->offset_size);
		}
	}
	return NULL;
}

static struct elfrw_err *assemble(struct run *r, unsigned kind, struct elfrw_wbuf *out)
{
	struct part *part = &r->part[kind];
	const struct dwr_list_sec *sec = &r->in->secs.list[kind];
	struct chunk *c = r->chunk.data ? r->chunk.data + part->first_chunk : NULL;
	uint32_t left = part->n_chunks;
	if (!dwr_list_is_v5(kind)) {
		for (; left; left--, c++)
			append_chunk(r, c, out);
		return out->bad ? &elfrw_err_nomem : NULL;
	}
	for (uint32_t i = 0; i < part->contribs.len; i++) {
		const struct dwr_list_contrib *con = &part->contribs.data[i];
		size_t start;
		put_header(out, con->offset_size, con->address_size, con->n_offsets, &start);
		part->new_base[i] = out->len;
		elfrw_wbuf_grow(out, (size_t)con->n_offsets * con->offset_size);
		for (; left && c->contrib == i; left--, c++)
			append_chunk(r, c, out);
		ELFRW_TRY(put_length(sec, out, con->offset_size, start));
	}
	return fill_tables(r, kind, out);
}

/* Appends the lists that the input does not have; in DWARF 5 as contributions of their own. */
static struct elfrw_err *add_lists(struct run *r, unsigned kind, struct elfrw_wbuf *out)
{
	const struct dwr_list_sec *sec = &r->in->secs.list[kind];
	struct dwr_list_work w = { .in = r->in, .ranger = &r->ranger, .budget = &r->budget[kind] };
	struct elfrw_err *err = NULL;
	struct dwr_form_params now = { 0 };
	size_t start = 0;
	w.out = *out;
	for (size_t i = 0; i < r->in->n_add && !err; i++) {
		struct dwr_list_new *add = &r->in->add[i];
		const struct dwr_list_cu *cu = &r->in->cu[add->cu];
		struct dwr_list_result result;
		if ((cu->params.version >= 5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES) != kind)
			continue;
		if (kind == DWR_LIST_RNGLISTS && (now.address_size != cu->params.address_size ||
						  now.offset_size != cu->params.offset_size)) {
			if (now.offset_size)
				err = put_length(sec, &w.out, now.offset_size, start);
			now = cu->params;
			put_header(&w.out, now.offset_size, now.address_size, 0, &start);
		}
		w.outs.len = 0;
		for (size_t k = 0; k < add->n_ranges && !err; k++) {
			struct dwr_list_out *o = VEC_PUSH(&w.outs);
			if (o)
				*o = (struct dwr_list_out){ .begin = add->range[k].begin,
							    .end = add->range[k].end };
			else
				err = &elfrw_err_nomem;
		}
		/* A unit's own list counts from no base that is in .debug_addr: bfd reads the list
		 * before it knows that base. */
		struct dwr_list_cu own = *cu;
		own.has_base = cu->has_base && kind != DWR_LIST_RNGLISTS;
		if (!err)
			err = dwr_list_encode(&w, kind, &own, &w.outs, false, false, &result);
		if (!err)
			add->new_off = result.off;
	}
	if (!err && now.offset_size)
		err = put_length(sec, &w.out, now.offset_size, start);
	*out = w.out;
	memset(&w.out, 0, sizeof w.out);
	dwr_list_work_deinit(&w);
	return err;
}

static struct elfrw_err *collect_taken(struct run *r, struct dwr_rw_lists_out *out)
{
	size_t n = 0, at = 0;
	for (size_t i = 0; i < r->chunk.len; i++)
		n += r->chunk.data[i].w.taken.len;
	if (!n)
		return NULL;
	if (n > UINT32_MAX)
		return elfrw_error("range lists: too many ranges of folded functions");
	struct key *key = malloc(2 * n * sizeof *key);
	struct dwr_list_taken *all = malloc(2 * n * sizeof *all);
	if (!key || !all) {
		free(key);
		free(all);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < r->chunk.len; i++) {
		const struct dwr_list_work *w = &r->chunk.data[i].w;
		for (size_t k = 0; k < w->taken.len; k++) {
			if (w->taken.data[k].use >= r->in->n_uses)
				continue;
			all[n + at] = w->taken.data[k];
			key[at] = (struct key){ w->taken.data[k].use, (uint32_t)at };
			at++;
		}
	}
	radix_sort(key, key + n, at);
	for (size_t i = 0; i < at; i++)
		all[i] = all[n + key[i].index];
	free(key);
	out->taken = all;
	out->n_taken = at;
	return NULL;
}

static struct elfrw_err *grant_wishes(struct run *r)
{
	for (size_t i = 0; i < r->chunk.len; i++) {
		const struct dwr_list_work *w = &r->chunk.data[i].w;
		for (size_t k = 0; k < w->wish.len; k++) {
			const struct dwr_list_wish *wish = &w->wish.data[k];
			if (!dwr_addr_set(r->in->addr, wish->slot, wish->size, wish->value))
				return elfrw_error_at(r->in->secs.addr.name, wish->slot,
						      "lists want different values for"
						      " one address");
		}
	}
	return NULL;
}

static struct elfrw_err *check_uses(const struct dwr_rw_lists_in *in, struct run *r)
{
	if (in->n_uses >= UINT32_MAX)
		return elfrw_error("too many uses of range and location lists");
	for (size_t i = 0; i < in->n_uses; i++) {
		const struct dwr_list_use *use = &in->use[i];
		if (use->kind >= DWR_LIST_KINDS || use->cu >= in->n_cus)
			return elfrw_error("use %zu of a list: kind %u, unit %u", i, use->kind,
					   use->cu);
		const struct dwr_list_sec *sec = &in->secs.list[use->kind];
		if (use->off >= sec->size)
			return elfrw_error_at(sec->name, use->off,
					      "a list begins past the end of the section");
		r->n_by_kind[use->kind]++;
	}
	for (size_t i = 0; i < in->n_add; i++)
		if (in->add[i].cu >= in->n_cus)
			return elfrw_error("new list %zu: unit %u", i, in->add[i].cu);
	return NULL;
}

static bool is_needed(const struct run *r, unsigned kind)
{
	for (size_t i = 0; i < r->in->n_add; i++) {
		const struct dwr_list_cu *cu = &r->in->cu[r->in->add[i].cu];
		if ((cu->params.version >= 5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES) == kind)
			return true;
	}
	return r->n_by_kind[kind] > 0;
}

static struct elfrw_err *rewrite_all(struct run *r, struct dwr_rw_lists_out *out)
{
	bool needed[DWR_LIST_KINDS];
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++) {
		const struct dwr_list_sec *sec = &r->in->secs.list[kind];
		needed[kind] = is_needed(r, kind);
		atomic_init(&r->budget[kind].bytes, 0);
		atomic_init(&r->budget[kind].units, 0);
		/* Ends of lists are lists, and units of other bases read one anew: so more than the
		 * section is read.  Real files stay below twice as much (GCC shares ends of
		 * location lists); what is beyond any of them costs the square of the file. */
		atomic_init(&r->budget[kind].max_bytes, 32 * (uint64_t)sec->size + (1 << 20));
		atomic_init(&r->budget[kind].max_units, UINT64_C(1) << 30);
		if (needed[kind] && dwr_list_is_v5(kind)) {
			ELFRW_TRY(dwr_list_contribs_read(sec, &r->part[kind].contribs));
			ELFRW_TRY(make_up_uses(r, kind));
		}
	}
	ELFRW_TRY(sort_uses(r));
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++)
		ELFRW_TRY(cut_chunks(r, kind));
	ELFRW_TRY(elfrw_parallel(r->in->threads, r->chunk.len, rewrite_chunk, r));
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++) {
		struct part *part = &r->part[kind];
		struct elfrw_wbuf w = { 0 };
		if (!needed[kind])
			continue;
		struct elfrw_err *err = assemble(r, kind, &w);
		if (!err)
			err = add_lists(r, kind, &w);
		if (!err && !elfrw_vec_grow((void **)&w.data, &w.cap, 1, 1)) /* never NULL */
			err = &elfrw_err_nomem;
		out->sec[kind].size = w.len;
		out->sec[kind].data = w.data;
		ELFRW_TRY(err);
		if (!part->contribs.len)
			continue;
		out->sec[kind].base = malloc(part->contribs.len * sizeof *out->sec[kind].base);
		if (!out->sec[kind].base)
			return &elfrw_err_nomem;
		out->sec[kind].n_bases = part->contribs.len;
		for (size_t i = 0; i < part->contribs.len; i++)
			out->sec[kind].base[i] =
				(struct dwr_list_base){ part->contribs.data[i].base,
							part->new_base[i] };
	}
	ELFRW_TRY(collect_taken(r, out));
	ELFRW_TRY(grant_wishes(r));
	for (size_t i = 0; i < r->chunk.len; i++) {
		out->patched += r->chunk.data[i].w.patched;
		out->encoded += r->chunk.data[i].w.encoded;
	}
	return NULL;
}

struct elfrw_err *dwr_rw_lists(const struct dwr_rw_lists_in *in, struct dwr_rw_lists_out *out)
{
	struct dwr_rw_lists_out result = { 0 };
	struct run r = { .in = in, .ranger = dwr_ranger(in->map, in->policy) };
	ELFRW_TRY(check_uses(in, &r));
	struct elfrw_err *err = rewrite_all(&r, &result);
	if (!err)
		*out = result;
	else
		dwr_rw_lists_deinit(&result);
	for (size_t i = 0; i < r.chunk.len; i++)
		dwr_list_work_deinit(&r.chunk.data[i].w);
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++) {
		struct part *part = &r.part[kind];
		dwr_list_contribs_deinit(&part->contribs);
		free(part->new_base);
		free(part->table);
		free(part->table_at);
	}
	VEC_FREE(&r.chunk);
	VEC_FREE(&r.made_up);
	free(r.order);
	free(r.scratch);
	return err;
}

void dwr_rw_lists_deinit(struct dwr_rw_lists_out *out)
{
	for (unsigned kind = 0; kind < DWR_LIST_KINDS; kind++) {
		free(out->sec[kind].data);
		free(out->sec[kind].base);
	}
	free(out->taken);
	*out = (struct dwr_rw_lists_out){ 0 };
}

uint64_t dwr_rw_lists_base(const struct dwr_rw_lists_out *out, enum dwr_list_kind kind,
			   uint64_t old)
{
	if (!out->sec[kind].data)
		return old;
	const struct dwr_list_base *base = out->sec[kind].base;
	size_t lo = LOWER_BOUND(0, out->sec[kind].n_bases, mid, base[mid].old < old);
	return lo < out->sec[kind].n_bases && base[lo].old == old ? base[lo].new : DWR_LIST_NONE;
}
