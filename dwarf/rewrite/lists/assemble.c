/* assemble.c: joins headers, offset tables, chunks and added lists into one new section. */
#include "dwarf/rewrite/lists/state.h"
#include "elfrw/base/parallel.h"
#include <string.h>

/* Where the chunks of a section go. */
struct joining {
	struct dwr_lists_run *r;
	struct dwr_lists_chunk *chunk;
	uint8_t *to; /* the section */
};

/* Copies the bytes of chunk INDEX of ARG, a struct joining, to their place, and settles the places
 * of its lists. */
static struct elfrw_err *join_chunk(void *arg, size_t index)
{
	const struct joining *j = arg;
	struct dwr_lists_chunk *c = &j->chunk[index];
	if (c->w.out.len)
		memcpy(j->to + c->base, c->w.out.data, c->w.out.len);
	elfrw_wbuf_free(&c->w.out);
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		struct dwr_list_use *use = dwr_lists_use(j->r, j->r->order[i].index);
		use->new_off += c->base;
		if (use->new_views != DWR_LIST_NONE)
			use->new_views += c->base;
	}
	return NULL;
}

/* Leaves room for the bytes of C. */
static void place_chunk(struct dwr_lists_chunk *c, struct elfrw_wbuf *out)
{
	c->base = out->len;
	elfrw_wbuf_room(out, c->w.out.len);
}

/* Puts a contribution's header; RET_START: where the bytes begin that the length counts. */
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

/* Fills the offset tables.  If several uses of one entry have different results, the one with the
 * lower purpose counts (a unit or function before its scopes), then the first; all get that
 * offset. */
static struct elfrw_err *fill_tables(struct dwr_lists_run *r, unsigned kind, struct elfrw_wbuf *out)
{
	struct dwr_lists_part *part = &r->part[kind];
	const char *name = r->in->secs.list[kind].name;
	size_t n = part->contribs.len;
	size_t total = n ? part->table_at[n - 1] + (size_t)part->contribs.data[n - 1].n_offsets : 0;
	if (!total)
		return NULL;
	memset(part->table, 0xff, total * sizeof *part->table);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0, all = dwr_lists_count(r); i < all; i++) {
			struct dwr_list_use *use = dwr_lists_use(r, i);
			if (use->kind != kind || !use->indexed)
				continue;
			uint64_t *t = dwr_lists_table_entry(r, use);
			if (pass == 0 &&
			    (*t == UINT64_MAX || dwr_lists_use(r, *t)->purpose > use->purpose))
				*t = i;
			else if (pass == 1 && *t != i) {
				use->new_off = dwr_lists_use(r, *t)->new_off;
				use->empty = dwr_lists_use(r, *t)->empty;
			}
		}
	for (size_t i = 0; i < n; i++) {
		const struct dwr_list_contrib *c = &part->contribs.data[i];
		uint64_t base = part->new_base[i];
		for (uint32_t k = 0; k < c->n_offsets; k++) {
			uint64_t u = part->table[part->table_at[i] + k];
			uint64_t off = u == UINT64_MAX ? (uint64_t)c->n_offsets * c->offset_size
						       : dwr_lists_use(r, u)->new_off - base;
			if (u != UINT64_MAX && (dwr_lists_use(r, u)->new_off < base ||
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

/* The headers and tables of section KIND, and the places of its chunks. */
static struct elfrw_err *place_chunks(struct dwr_lists_run *r, unsigned kind,
				      struct dwr_lists_chunk *c, struct elfrw_wbuf *out)
{
	struct dwr_lists_part *part = &r->part[kind];
	uint32_t left = part->n_chunks;
	size_t size = 0;
	for (uint32_t i = 0; i < left; i++)
		size += c[i].w.out.len;
	if (!VEC_RESERVE(out, size + 1))
		return &elfrw_err_nomem;
	if (!dwr_list_is_v5(kind))
		for (; left; left--, c++)
			place_chunk(c, out);
	for (uint32_t i = 0; i < part->contribs.len; i++) {
		const struct dwr_list_contrib *con = &part->contribs.data[i];
		size_t start;
		put_header(out, con->offset_size, con->address_size, con->n_offsets, &start);
		part->new_base[i] = out->len;
		elfrw_wbuf_grow(out, (size_t)con->n_offsets * con->offset_size);
		for (; left && c->contrib == i; left--, c++)
			place_chunk(c, out);
		ELFRW_TRY(put_length(&r->in->secs.list[kind], out, con->offset_size, start));
	}
	return out->bad ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *dwr_lists_assemble(struct dwr_lists_run *r, unsigned kind, struct elfrw_wbuf *out)
{
	const struct dwr_lists_part *part = &r->part[kind];
	struct joining j = { .r = r };
	j.chunk = r->chunk.data ? r->chunk.data + part->first_chunk : NULL;
	ELFRW_TRY(place_chunks(r, kind, j.chunk, out));
	j.to = out->data;
	ELFRW_TRY(elfrw_parallel(r->in->threads, part->n_chunks, join_chunk, &j));
	return dwr_list_is_v5(kind) ? fill_tables(r, kind, out) : NULL;
}

struct elfrw_err *dwr_lists_add(struct dwr_lists_run *r, unsigned kind, struct elfrw_wbuf *out)
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
		/* A unit's own list counts from no base in .debug_addr: bfd reads the list before
		 * it knows that base. */
		struct dwr_list_cu own = *cu;
		own.has_base = cu->has_base && kind != DWR_LIST_RNGLISTS;
		if (!err)
			err = dwr_list_encode(&w, kind, &own, &w.outs, DWR_VIEWS_NONE, &result);
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
