/* assemble.c: joins headers, offset tables, chunks and added lists into one new section. */
#include "dwarf/rewrite/lists/state.h"
#include "elfrw/base/parallel.h"
#include <string.h>

/* Where the chunks of a section go. */
struct joining {
	struct dwr_lists_run *r;
	struct dwr_lists_chunk *chunk;
	unsigned kind;
	uint8_t *to; /* the section */
	size_t size; /* of all contributions */
};

static size_t header_size(unsigned offset_size)
{
	return (offset_size == 8 ? 12 : 4) + 8;
}

/* Writes the header of a contribution of SIZE bytes to TO. */
static struct elfrw_err *write_header(uint8_t *to, const struct dwr_list_sec *sec,
				      const struct dwr_form_params *params, uint32_t n_offsets,
				      uint64_t size)
{
	const unsigned offset_size = params->offset_size;
	const uint64_t length = size - (header_size(offset_size) - 8);
	if (offset_size == 4 && length >= 0xfffffff0)
		return elfrw_error("%s: a contribution outgrows its length field", sec->name);
	if (offset_size == 8) {
		elfrw_put_le(to, UINT32_MAX, 4);
		to += 4;
	}
	elfrw_put_le(to, length, offset_size);
	to += offset_size;
	elfrw_put_le(to, 5, 2);
	to[2] = (uint8_t)params->address_size;
	to[3] = 0; /* segment selectors */
	elfrw_put_le(to + 4, n_offsets, 4);
	return NULL;
}

/* Where contribution I begins, or, behind the last one, where the contributions end. */
static uint64_t contrib_start(const struct joining *j, size_t i)
{
	const struct dwr_lists_part *part = &j->r->part[j->kind];
	return i < part->contribs.len
		       ? part->new_base[i] - header_size(part->contribs.data[i].offset_size)
		       : j->size;
}

/* Writes the headers of contributions [FROM, TO). */
static struct elfrw_err *write_headers(const struct joining *j, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct dwr_list_contrib *con = &j->r->part[j->kind].contribs.data[i];
		const struct dwr_form_params params = { .offset_size = con->offset_size,
							.address_size = con->address_size };
		uint64_t start = contrib_start(j, i);
		ELFRW_TRY(write_header(j->to + start, &j->r->in->secs.list[j->kind], &params,
				       con->n_offsets, contrib_start(j, i + 1) - start));
	}
	return NULL;
}

/* The first contribution whose header no chunk before INDEX writes. */
static size_t headers_before(const struct joining *j, size_t index)
{
	return index ? j->chunk[index - 1].contrib + (size_t)1 : 0;
}

/* Copies the bytes of chunk INDEX of ARG, a struct joining, to their place, with the headers in
 * front of them, and settles the places of its lists.  No thread writes all over the section: the
 * first write to a page takes longer than all others. */
static struct elfrw_err *join_chunk(void *arg, size_t index)
{
	const struct joining *j = arg;
	struct dwr_lists_chunk *c = &j->chunk[index];
	if (dwr_list_is_v5(j->kind))
		ELFRW_TRY(write_headers(j, headers_before(j, index), headers_before(j, index + 1)));
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

/* The places of the chunks of section KIND, and room for its headers and tables. */
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
		elfrw_wbuf_room(out, header_size(con->offset_size));
		part->new_base[i] = out->len;
		elfrw_wbuf_room(out, (size_t)con->n_offsets * con->offset_size);
		for (; left && c->contrib == i; left--, c++)
			place_chunk(c, out);
	}
	return out->bad ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *dwr_lists_assemble(struct dwr_lists_run *r, unsigned kind, struct elfrw_wbuf *out)
{
	const struct dwr_lists_part *part = &r->part[kind];
	struct joining j = { .r = r, .kind = kind };
	j.chunk = r->chunk.data ? r->chunk.data + part->first_chunk : NULL;
	ELFRW_TRY(place_chunks(r, kind, j.chunk, out));
	j.to = out->data;
	j.size = out->len;
	ELFRW_TRY(elfrw_parallel(r->in->threads, part->n_chunks, join_chunk, &j));
	if (!dwr_list_is_v5(kind))
		return NULL;
	ELFRW_TRY(write_headers(&j, headers_before(&j, part->n_chunks), part->contribs.len));
	return fill_tables(r, kind, out);
}

/* The header of the contribution from START to the end of OUT. */
static struct elfrw_err *end_added(const struct dwr_list_sec *sec, struct elfrw_wbuf *out,
				   const struct dwr_form_params *params, size_t start)
{
	return out->bad ? &elfrw_err_nomem
			: write_header(out->data + start, sec, params, 0, out->len - start);
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
				err = end_added(sec, &w.out, &now, start);
			now = cu->params;
			start = w.out.len;
			elfrw_wbuf_grow(&w.out, header_size(now.offset_size));
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
		err = end_added(sec, &w.out, &now, start);
	*out = w.out;
	memset(&w.out, 0, sizeof w.out);
	dwr_list_work_deinit(&w);
	return err;
}
