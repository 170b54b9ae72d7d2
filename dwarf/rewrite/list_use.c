/* list_use.c: the lists of DIEs: passes the places that the walk found to lists/lists.h, and writes
 * the lists' new places back into the DIEs. */
#include "dwarf/rewrite/run.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/parallel.h"
#include "elfrw/image.h"
#include <stdlib.h>

/* The offset of the location views of site S in unit I. */
static uint64_t views_of(const struct dwr_rw *rw, size_t i, const struct dwr_site *s)
{
	const struct dwr_unit *u = &rw->units.data[i];
	return s->views ? elfrw_get_le(rw->copy[u->sec] + s->pos + s->views, u->params.offset_size)
			: DWR_LIST_NONE;
}

/* The uses of batch I - 1 of ARG, a struct dwr_rw_run.  Beside that the pages of the input are
 * given back: most were read, and half of them are not read again. */
static struct elfrw_err *collect_batch(void *arg, size_t i)
{
	struct dwr_rw_run *run = arg;
	if (i == 0) {
		elfrw_image_forget(run->rw.in->image);
		return NULL;
	}
	const struct dwr_rw_batch *b = &run->batch.data[i - 1];
	for (uint32_t k = b->first; k < b->first + b->n; k++) {
		const struct dwr_rw_unit *ru = &run->rw.ru[k];
		struct dwr_list_use *use = run->use + ru->first_use;
		for (size_t j = 0; j < ru->site.len; j++) {
			const struct dwr_site *s = &ru->site.data[j];
			if (s->kind != DWR_SITE_LIST)
				continue;
			*use++ = (struct dwr_list_use){
				.off = s->value,
				.views = views_of(&run->rw, k, s),
				.new_off = s->value,
				.new_views = DWR_LIST_NONE,
				.cu = k,
				.owner = s->owner,
				.index = s->index,
				.kind = s->list,
				.purpose = s->purpose,
				.indexed = s->indexed,
			};
		}
	}
	return NULL;
}

/* The uses of lists, of all units one after the other. */
static struct elfrw_err *collect_lists(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	size_t n = rw->units.len;
	for (size_t i = 0; i < n; i++) {
		rw->ru[i].first_use = (uint32_t)run->n_uses;
		run->n_uses += rw->ru[i].n_lists;
		run->n_add += rw->ru[i].cu_range.len != 0;
	}
	if (run->n_uses >= UINT32_MAX)
		return elfrw_error("more lists than can be counted");
	const size_t use_size = (run->n_uses + 1) * sizeof *run->use;
	run->cu = calloc(n + 1, sizeof *run->cu);
	run->use = elfrw_large(malloc(use_size), use_size);
	run->add = calloc(run->n_add + 1, sizeof *run->add);
	if (!run->cu || !run->use || !run->add)
		return &elfrw_err_nomem;
	size_t add = 0;
	for (size_t i = 0; i < n; i++) {
		const struct dwr_rw_unit *ru = &rw->ru[i];
		run->cu[i] = (struct dwr_list_cu){
			.params = rw->units.data[i].params,
			.has_base = ru->root.has_low_pc,
			.base = ru->root.has_low_pc ? ru->root.low_pc : 0,
			.new_base = ru->new_base,
			.addr_base = ru->root.addr_base,
			.rnglists_base = ru->root.rnglists_base,
			.loclists_base = ru->root.loclists_base,
		};
		if (ru->cu_range.len)
			run->add[add++] = (struct dwr_list_new){ .cu = (uint32_t)i,
								 .range = ru->cu_range.data,
								 .n_ranges = ru->cu_range.len };
	}
	return elfrw_parallel(rw->in->threads, run->batch.len + 1, collect_batch, run);
}

/* Sets the entries of .debug_addr that the DIEs use. */
static struct elfrw_err *set_slots(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	const struct dwr_section *sec = &rw->secs.sec[DWR_ADDR];
	ELFRW_TRY(dwr_addr_table_init(&run->addr, sec->data, sec->size));
	for (size_t i = 0; i < rw->units.len; i++)
		for (size_t k = 0; k < rw->ru[i].slot.len; k++) {
			const struct dwr_slot *s = &rw->ru[i].slot.data[k];
			const struct dwr_unit *u = &rw->units.data[i];
			if (!dwr_addr_set(&run->addr, s->off, u->params.address_size, s->new))
				return elfrw_error_at(
					rw->secs.sec[u->sec].name, s->pos,
					"the entry at 0x%llx of .debug_addr is used by attributes "
					"whose new addresses differ",
					(unsigned long long)s->off);
		}
	return NULL;
}

struct elfrw_err *dwr_rw_rewrite_lists(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	bool has_addr = rw->secs.sec[DWR_ADDR].size != 0;
	ELFRW_TRY(collect_lists(run));
	if (has_addr)
		ELFRW_TRY(set_slots(run));
	struct dwr_rw_lists_in in = {
		.map = rw->map,
		.policy = rw->in->policy,
		.threads = rw->in->threads,
		.secs = rw->lists,
		.cu = run->cu,
		.n_cus = (uint32_t)rw->units.len,
		.use = run->use,
		.n_uses = run->n_uses,
		.add = run->add,
		.n_add = run->n_add,
		.addr = has_addr ? &run->addr : NULL,
	};
	ELFRW_TRY(dwr_rw_lists(&in, &run->lists));
	if (!has_addr)
		return NULL;
	bool headerless = false;
	for (size_t i = 0; i < rw->units.len; i++)
		headerless |= rw->units.data[i].params.version < 5 &&
			      rw->ru[i].root.addr_base != UINT64_MAX;
	return dwr_addr_table_finish(&run->addr, rw->map, headerless,
				     rw->in->image->arch->address_size);
}

static struct elfrw_err *put_site(struct dwr_rw *rw, const struct dwr_unit *u, uint64_t pos,
				  unsigned size, uint64_t value)
{
	if (value == DWR_LIST_NONE || (size == 4 && value >> 32))
		return elfrw_error_at(rw->secs.sec[u->sec].name, pos,
				      "no place for the list of this attribute");
	elfrw_put_field(rw->copy[u->sec] + pos, value, size);
	return NULL;
}

struct elfrw_err *dwr_rw_apply_lists(void *arg, size_t i)
{
	struct dwr_rw_run *run = arg;
	struct dwr_rw *rw = &run->rw;
	const struct dwr_rw_batch *b = &run->batch.data[i];
	for (uint32_t k = b->first; k < b->first + b->n; k++) {
		struct dwr_rw_unit *ru = &rw->ru[k];
		const struct dwr_unit *u = &rw->units.data[k];
		uint32_t use = ru->first_use;
		for (size_t j = 0; j < ru->site.len; j++) {
			const struct dwr_site *s = &ru->site.data[j];
			if (s->kind != DWR_SITE_LIST) {
				uint64_t new = dwr_rw_lists_base(&run->lists,
								 s->kind == DWR_SITE_RNG_BASE
									 ? DWR_LIST_RNGLISTS
									 : DWR_LIST_LOCLISTS,
								 s->value);
				/* The value of an unused base does not matter. */
				if (new != DWR_LIST_NONE)
					ELFRW_TRY(put_site(rw, u, s->pos, s->size, new));
				continue;
			}
			const struct dwr_list_use *n = &run->use[use++];
			ru->emptied += n->empty && n->purpose == DWR_FOR_SCOPE;
			if (!s->indexed)
				ELFRW_TRY(put_site(rw, u, s->pos, s->size, n->new_off));
			if (s->views)
				ELFRW_TRY(put_site(rw, u, s->pos + (uint64_t)(int64_t)s->views,
						   u->params.offset_size, n->new_views));
		}
	}
	return NULL;
}

struct elfrw_err *dwr_rw_apply_ranges(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	for (size_t i = 0; i < run->n_add; i++) {
		uint32_t k = run->add[i].cu;
		ELFRW_TRY(put_site(rw, &rw->units.data[k], rw->ru[k].cu_range_pos,
				   rw->units.data[k].params.offset_size, run->add[i].new_off));
	}
	return NULL;
}
