/* rewrite.c: the order in which debug information is rewritten.
 *
 *	roots -> line tables -> walk of the DIEs -> .debug_addr, lists ->
 *	      their places in the DIEs -> abbreviations -> artificial unit ->
 *	      indices, .debug_frame, .debug_macro -> .debug_icfold
 *
 * Line tables come first because the walk writes their offsets; lists come after it because the
 * walk finds who uses them. Each step works on all units in parallel and stores by unit, so that
 * the result does not depend on the threads.  The copies of .debug_info and .debug_types are the
 * only large memory besides the new sections. */
#include "dwarf/rewrite/rewrite.h"
#include "dwarf/cfi.h"
#include "dwarf/rewrite/state.h"
#include "dwarf/rewrite/addr.h"
#include "dwarf/rewrite/aranges.h"
#include "dwarf/rewrite/frame.h"
#include "dwarf/rewrite/claim.h"
#include "dwarf/rewrite/index.h"
#include "dwarf/rewrite/vtable.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/parallel.h"
#include <dwarf.h>

#define BATCH (UINT64_C(1) << 18)

/* Units that follow each other and are worked on together: small ones share a table of
 * abbreviations. */
struct batch {
	uint32_t first, n;
};

struct run {
	struct dwr_rw rw;
	struct dwr_rewrite_out out;
	VEC(struct batch) batch;
	struct dwr_list_cu *cu;
	struct dwr_list_use *use;
	struct dwr_list_new *add;
	size_t n_uses, n_add;
	struct dwr_addr_table addr;
	struct dwr_rw_lists_out lists;
	size_t info_size; /* of the new .debug_info */
	struct elfrw_wbuf abbrev;
	struct dwr_rw_vtables vtables;
	uint64_t artificial;
	bool has_range; /* the artificial unit has */
};

static struct elfrw_err *make_batches(struct run *run)
{
	const struct dwr_units *u = &run->rw.units;
	for (size_t i = 0; i < u->len;) {
		struct batch *b = VEC_PUSH(&run->batch);
		if (!b)
			return &elfrw_err_nomem;
		b->first = (uint32_t)i;
		uint64_t start = u->data[i].off;
		uint8_t sec = u->data[i].sec;
		do
			i++;
		while (i < u->len && u->data[i].sec == sec && u->data[i].end - start <= BATCH);
		b->n = (uint32_t)i - b->first;
	}
	return NULL;
}

static struct elfrw_err *roots_batch(void *arg, size_t i)
{
	struct run *run = arg;
	struct batch *b = &run->batch.data[i];
	for (uint32_t k = b->first; k < b->first + b->n; k++)
		ELFRW_TRY(dwr_unit_read_root(&run->rw.secs, &run->rw.units.data[k],
					     &run->rw.ru[k].root));
	return NULL;
}

static struct elfrw_err *scan_batch(void *arg, size_t i)
{
	struct run *run = arg;
	struct dwr_rw *rw = &run->rw;
	const struct batch *b = &run->batch.data[i];
	const struct dwr_unit *first = &rw->units.data[b->first], *last = first + b->n - 1;
	memcpy(rw->copy[first->sec] + first->off, rw->secs.sec[first->sec].data + first->off,
	       last->end - first->off);
	struct dwr_abbrev_table table = { 0 };
	struct dwr_want want;
	struct elfrw_err *err = NULL;
	dwr_rw_info_want(&want);
	for (uint32_t k = b->first; !err && k < b->first + b->n; k++) {
		err = dwr_unit_abbrev(&rw->secs, &rw->units.data[k], &want, &table);
		if (!err)
			err = dwr_rw_info_unit(rw, k, &table);
	}
	dwr_abbrev_deinit(&table);
	return err;
}

/* The new contents of section ID, or of a new one with shndx 0; takes DATA over.  Nothing is listed
 * that is as before. */
static struct elfrw_err *emit(struct run *run, enum dwr_sec id, uint8_t *data, size_t size)
{
	const struct dwr_section *sec = &run->rw.secs.sec[id];
	if (sec->shndx && sec->size == size && !memcmp(sec->data, data, size)) {
		free(data);
		return NULL;
	}
	uint8_t *packed;
	size_t packed_size;
	ELFRW_TRY(dwr_section_pack(sec, data, size, run->rw.in->threads, &packed, &packed_size));
	struct dwr_section_out *p =
		realloc(run->out.section, (run->out.n_sections + 1) * sizeof *p);
	if (!p) {
		free(packed);
		return &elfrw_err_nomem;
	}
	run->out.section = p;
	p += run->out.n_sections++;
	bool chdr = sec->compression == DWR_ZLIB || sec->compression == DWR_ZSTD;
	*p = (struct dwr_section_out){ .name = sec->name,
				       .shndx = sec->shndx,
				       .data = packed,
				       .size = packed_size,
				       .sh_flags = chdr ? SHF_COMPRESSED : 0,
				       .sh_addralign = chdr ? _Alignof(Elf64_Chdr) : 1 };
	if (sec->shndx) {
		const struct elfrw_section *s = &run->rw.in->image->section[sec->shndx];
		p->name = s->name;
		p->sh_flags = s->hdr.sh_flags;
		p->sh_addralign = s->hdr.sh_addralign;
	}
	return NULL;
}

static struct dwr_bytes bytes_of(const struct dwr_rw *rw, enum dwr_sec id)
{
	return (struct dwr_bytes){ rw->secs.sec[id].data, rw->secs.sec[id].size };
}

static struct elfrw_err *rewrite_lines(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	if (!rw->secs.sec[DWR_LINE].size ||
	    !rw->changes) /* a note's references to sequences stay right */
		return NULL;
	struct dwr_rw_claim claim = { .rw = rw };
	struct dwr_rw_line_cu *cu = calloc(rw->units.len + 1, sizeof *cu);
	if (!cu)
		return &elfrw_err_nomem;
	size_t n = 0;
	for (size_t i = 0; i < rw->units.len; i++) {
		const struct dwr_unit_root *r = &rw->ru[i].root;
		if (r->has_line)
			cu[n++] = (struct dwr_rw_line_cu){ r->line, r->comp_dir,
							   r->str_offsets_base };
	}
	struct dwr_rw_line_in in = {
		.map = rw->map,
		.policy = rw->in->policy,
		.threads = rw->in->threads,
		.address_size = rw->in->image->arch->address_size,
		.name = rw->secs.sec[DWR_LINE].name,
		.line = bytes_of(rw, DWR_LINE),
		.strings = { bytes_of(rw, DWR_LINE_STR), bytes_of(rw, DWR_STR),
			     bytes_of(rw, DWR_STR_OFFSETS) },
		.cu = cu,
		.n_cus = n,
		.folded_name = rw->in->folded_unit_name,
		.claimed = dwr_rw_claimed,
		.claimed_arg = &claim,
	};
	struct elfrw_err *err = dwr_rw_line(&in, &rw->line);
	dwr_rw_claim_deinit(&claim);
	free(cu);
	if (err)
		return err;
	rw->has_line = true;
	for (uint32_t i = 0; i < rw->map->n_units; i++)
		if (rw->line.fold && rw->line.fold[i].status == DWR_FOLD_OWN)
			run->out.stats.artificial_sequences += rw->line.fold[i].n_seqs;
	return NULL;
}

/* The uses of lists, of all units one after the other. */
static struct elfrw_err *collect_lists(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	size_t n = rw->units.len;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < rw->ru[i].site.len; k++)
			run->n_uses += rw->ru[i].site.data[k].kind == DWR_SITE_LIST;
		run->n_add += rw->ru[i].cu_range.len != 0;
	}
	if (run->n_uses >= UINT32_MAX)
		return elfrw_error("more lists than can be counted");
	run->cu = calloc(n + 1, sizeof *run->cu);
	run->use = calloc(run->n_uses + 1, sizeof *run->use);
	run->add = calloc(run->n_add + 1, sizeof *run->add);
	if (!run->cu || !run->use || !run->add)
		return &elfrw_err_nomem;
	size_t use = 0, add = 0;
	for (size_t i = 0; i < n; i++) {
		struct dwr_rw_unit *ru = &rw->ru[i];
		run->cu[i] = (struct dwr_list_cu){
			.params = rw->units.data[i].params,
			.has_base = ru->root.has_low_pc,
			.base = ru->root.has_low_pc ? ru->root.low_pc : 0,
			.new_base = ru->new_base,
			.addr_base = ru->root.addr_base,
			.rnglists_base = ru->root.rnglists_base,
			.loclists_base = ru->root.loclists_base,
		};
		ru->first_use = (uint32_t)use;
		for (size_t k = 0; k < ru->site.len; k++) {
			const struct dwr_site *s = &ru->site.data[k];
			if (s->kind != DWR_SITE_LIST)
				continue;
			run->use[use++] = (struct dwr_list_use){
				.off = s->value,
				.views = s->views,
				.new_off = s->value,
				.new_views = s->views,
				.cu = (uint32_t)i,
				.owner = s->owner,
				.index = s->index,
				.kind = s->list,
				.purpose = s->purpose,
				.indexed = s->indexed,
			};
		}
		if (ru->cu_range.len)
			run->add[add++] = (struct dwr_list_new){ .cu = (uint32_t)i,
								 .range = ru->cu_range.data,
								 .n_ranges = ru->cu_range.len };
	}
	return NULL;
}

/* The entries of .debug_addr that the DIEs use. */
static struct elfrw_err *set_slots(struct run *run)
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

static struct elfrw_err *rewrite_lists(struct run *run)
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
	elfrw_put_le(rw->copy[u->sec] + pos, value, size);
	return NULL;
}

static struct elfrw_err *apply_batch(void *arg, size_t i)
{
	struct run *run = arg;
	struct dwr_rw *rw = &run->rw;
	const struct batch *b = &run->batch.data[i];
	for (uint32_t k = b->first; k < b->first + b->n; k++) {
		const struct dwr_rw_unit *ru = &rw->ru[k];
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
				/* A base that nothing uses may be anything. */
				if (new != DWR_LIST_NONE)
					ELFRW_TRY(put_site(rw, u, s->pos, s->size, new));
				continue;
			}
			const struct dwr_list_use *n = &run->use[use++];
			if (!s->indexed)
				ELFRW_TRY(put_site(rw, u, s->pos, s->size, n->new_off));
			if (s->views != DWR_LIST_NONE)
				ELFRW_TRY(put_site(rw, u, s->views_pos, u->params.offset_size,
						   n->new_views));
		}
	}
	return NULL;
}

static struct elfrw_err *apply_new_ranges(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	for (size_t i = 0; i < run->n_add; i++) {
		uint32_t k = run->add[i].cu;
		ELFRW_TRY(put_site(rw, &rw->units.data[k], rw->ru[k].cu_range_pos,
				   rw->units.data[k].params.offset_size, run->add[i].new_off));
	}
	return NULL;
}

/* The form of the artificial unit: that of its line table, or of the first unit when it has
 * none. */
static struct dwr_form_params unit_form(const struct run *run, bool lines)
{
	const struct dwr_rw *rw = &run->rw;
	struct dwr_form_params p =
		rw->units.len ? rw->units.data[0].params
			      : (struct dwr_form_params){ .version = 4, .offset_size = 4 };
	if (lines) {
		p.version = (uint8_t)rw->line.folded_version;
		p.offset_size = (uint8_t)rw->line.folded_offset_size;
	}
	for (size_t i = 0; i < run->vtables.v.len && p.version < 4; i++)
		if (run->vtables.v.data[i].signature)
			p.version = 4;
	p.address_size = rw->in->image->arch->address_size;
	return p;
}

/* Appends the unit to which the rows of folded functions and the vtables belong.  Its own range is
 * one byte that no PC ever has: debuggers ignore the lines of a unit without a range, and nothing
 * looks by address into a unit whose range does not hold it. */
static struct elfrw_err *append_unit(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	bool lines = rw->has_line && rw->line.folded_unit && rw->in->policy == DWR_FOLDED_OVERLAY &&
		     rw->copy[DWR_INFO];
	if (rw->in->vtables && rw->copy[DWR_INFO])
		ELFRW_TRY(dwr_rw_vtables(rw, &run->vtables));
	bool vtables = run->vtables.v.len != 0;
	if (!lines && !vtables)
		return NULL;
	struct dwr_form_params p = unit_form(run, lines);
	unsigned version = p.version, offset = p.offset_size, address = p.address_size;
	uint64_t trap = lines ? rw->map->trap_byte : 0;
	if (!run->abbrev.len)
		elfrw_wbuf_bytes(&run->abbrev, rw->secs.sec[DWR_ABBREV].data,
				 rw->secs.sec[DWR_ABBREV].size);
	uint64_t table = run->abbrev.len, language = 0;
	for (size_t i = 0; i < rw->units.len && !language; i++)
		language = rw->ru[i].root.language;
	const uint16_t attr[][2] = {
		{ DW_AT_producer, DW_FORM_string },
		{ DW_AT_language, DW_FORM_data2 },
		{ DW_AT_name, DW_FORM_string },
		{ DW_AT_comp_dir, DW_FORM_string },
		{ DW_AT_stmt_list, (uint16_t)(version >= 4  ? DW_FORM_sec_offset
					      : offset == 8 ? DW_FORM_data8
							    : DW_FORM_data4) },
		{ DW_AT_low_pc, DW_FORM_addr },
		{ DW_AT_high_pc, (uint16_t)(version >= 4 ? DW_FORM_data8 : DW_FORM_addr) },
	};
	elfrw_wbuf_uleb(&run->abbrev, 1);
	elfrw_wbuf_uleb(&run->abbrev, DW_TAG_compile_unit);
	elfrw_wbuf_u8(&run->abbrev, vtables ? DW_CHILDREN_yes : DW_CHILDREN_no);
	bool relative = lines && rw->line.folded_relative;
	for (unsigned i = 0; i < (trap ? 7 : lines ? 5 : 4); i++) {
		if (relative && attr[i][0] == DW_AT_comp_dir)
			continue;
		elfrw_wbuf_uleb(&run->abbrev, attr[i][0]);
		elfrw_wbuf_uleb(&run->abbrev, attr[i][1]);
	}
	elfrw_wbuf_u16(&run->abbrev, 0);

	struct elfrw_wbuf w = { 0 };
	if (offset == 8)
		elfrw_wbuf_u32(&w, 0xffffffff);
	size_t length_at = w.len;
	elfrw_wbuf_uint(&w, 0, offset);
	elfrw_wbuf_u16(&w, (uint16_t)version);
	if (version >= 5) {
		elfrw_wbuf_u8(&w, DW_UT_compile);
		elfrw_wbuf_u8(&w, (uint8_t)address);
	}
	elfrw_wbuf_uint(&w, table, offset);
	if (version < 5)
		elfrw_wbuf_u8(&w, (uint8_t)address);
	elfrw_wbuf_uleb(&w, 1);
	elfrw_wbuf_cstr(&w, rw->in->producer ? rw->in->producer : "icfold");
	elfrw_wbuf_u16(&w, (uint16_t)(language ? language : DW_LANG_C_plus_plus));
	elfrw_wbuf_cstr(&w,
			rw->in->folded_unit_name ? rw->in->folded_unit_name : "<folded functions>");
	if (!relative)
		elfrw_wbuf_cstr(&w, "/");
	if (lines)
		elfrw_wbuf_uint(&w, rw->line.folded_unit, offset);
	if (trap) {
		elfrw_wbuf_uint(&w, trap, address);
		if (version >= 4)
			elfrw_wbuf_u64(&w, 1);
		else
			elfrw_wbuf_uint(&w, trap + 1, address);
	}
	if (vtables) {
		dwr_rw_vtables_write(&run->vtables, p, 2, &run->abbrev, &w);
		elfrw_wbuf_u8(&w, 0);
	}
	elfrw_wbuf_u8(&run->abbrev, 0);
	uint8_t *info = w.bad || run->abbrev.bad
				? NULL
				: realloc(rw->copy[DWR_INFO], run->info_size + w.len);
	if (!info) {
		elfrw_wbuf_free(&w);
		return &elfrw_err_nomem;
	}
	elfrw_put_le(w.data + length_at, w.len - length_at - offset, offset);
	memcpy(info + run->info_size, w.data, w.len);
	rw->copy[DWR_INFO] = info;
	run->artificial = run->info_size;
	run->has_range = trap != 0;
	run->info_size += w.len;
	elfrw_wbuf_free(&w);
	return (offset == 4 && (run->info_size >> 32 || table >> 32))
		       ? elfrw_error(".debug_info outgrows its offsets")
		       : NULL;
}

static struct elfrw_err *rewrite_frame(struct run *run)
{
	const struct dwr_section *sec = &run->rw.secs.sec[DWR_FRAME];
	/* In place, the first row of a folded function is that of its thunk. */
	if (!sec->size || run->rw.map->in_place)
		return NULL;
	struct dwr_cfi cfi;
	struct dwr_rw_frame_out out = { 0 };
	const struct elfrw_arch *arch = run->rw.in->image->arch;
	ELFRW_TRY(
		dwr_cfi_read(&cfi, sec->name, sec->data, sec->size, 0, false, arch->address_size));
	struct dwr_rw_frame_in in = { .cfi = &cfi,
				      .map = run->rw.map,
				      .arch = arch,
				      .keep_folded = run->rw.in->policy == DWR_FOLDED_ALIAS };
	struct elfrw_err *err = dwr_rw_debug_frame(&in, &out);
	dwr_cfi_deinit(&cfi);
	if (err)
		return err;
	uint8_t *data = out.data;
	size_t size = out.size;
	out.data = NULL;
	dwr_rw_frame_deinit(&out);
	return emit(run, DWR_FRAME, data, size);
}

static struct elfrw_err *rewrite_indices(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	uint8_t *data = NULL;
	size_t size = 0;
	struct dwr_index_in in = { .rw = rw,
				   .artificial_unit = run->artificial,
				   .has_range = run->has_range,
				   .artificial_size = run->artificial == UINT64_MAX
							      ? 0
							      : run->info_size - run->artificial };
	struct dwr_arange_extra extra = { run->artificial, rw->map->trap_byte, 1 };
	const struct dwr_section *sec = &rw->secs.sec[DWR_ARANGES];
	if (sec->size) {
		struct dwr_rw_aranges_in ar = { .map = rw->map,
						.policy = rw->in->policy,
						.data = sec->data,
						.size = sec->size,
						.extra = &extra,
						.n_extra = run->has_range };
		ELFRW_TRY(dwr_rw_aranges(&ar, &data, &size));
		ELFRW_TRY(emit(run, DWR_ARANGES, data, size));
	}
	if (rw->secs.sec[DWR_GDB_INDEX].size) {
		ELFRW_TRY(dwr_rw_gdb_index(&in, &data, &size));
		ELFRW_TRY(emit(run, DWR_GDB_INDEX, data, size));
	}
	if (rw->secs.sec[DWR_NAMES].size) {
		ELFRW_TRY(dwr_rw_names(&in, &data, &size));
		ELFRW_TRY(emit(run, DWR_NAMES, data, size));
	}
	if (rw->secs.sec[DWR_MACRO].size && rw->has_line) {
		ELFRW_TRY(dwr_rw_macro(&in, &data, &size));
		ELFRW_TRY(emit(run, DWR_MACRO, data, size));
	}
	return NULL;
}

/* Hands the new section of a part over to emit(). */
static struct elfrw_err *emit_owned(struct run *run, enum dwr_sec id, uint8_t **data, size_t size)
{
	uint8_t *p = *data;
	*data = NULL;
	return p ? emit(run, id, p, size) : NULL;
}

static struct elfrw_err *emit_sections(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	static const enum dwr_sec list_sec[DWR_LIST_KINDS] = { [DWR_LIST_RANGES] = DWR_RANGES,
							       [DWR_LIST_RNGLISTS] = DWR_RNGLISTS,
							       [DWR_LIST_LOC] = DWR_LOC,
							       [DWR_LIST_LOCLISTS] = DWR_LOCLISTS };
	ELFRW_TRY(emit_owned(run, DWR_INFO, &rw->copy[DWR_INFO], run->info_size));
	ELFRW_TRY(emit_owned(run, DWR_TYPES, &rw->copy[DWR_TYPES], rw->secs.sec[DWR_TYPES].size));
	if (run->abbrev.len) {
		size_t size = run->abbrev.len;
		ELFRW_TRY(emit(run, DWR_ABBREV, elfrw_wbuf_take(&run->abbrev), size));
	}
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++)
		ELFRW_TRY(emit_owned(run, list_sec[k], &run->lists.sec[k].data,
				     run->lists.sec[k].size));
	ELFRW_TRY(emit_owned(run, DWR_ADDR, &run->addr.data, run->addr.size));
	return emit_owned(run, DWR_LINE, &rw->line.data, rw->line.size);
}

static int by_unit(const void *a, const void *b)
{
	const struct dwr_note_die *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

/* What DIEs lost, from low_pc and high_pc and from lists: both in the order of DIEs. */
static struct elfrw_err *merge_ranges(struct run *run, struct dwr_note_range **ret, size_t *ret_n)
{
	struct dwr_rw *rw = &run->rw;
	size_t total = run->lists.n_taken, t = 0, n = 0;
	for (size_t i = 0; i < rw->units.len; i++)
		total += rw->ru[i].range.len;
	struct dwr_note_range *r = malloc((total + 1) * sizeof *r);
	if (!r)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < rw->units.len; i++) {
		const struct dwr_rw_unit *ru = &rw->ru[i];
		size_t own = 0, site = 0;
		uint32_t use = ru->first_use;
		if (rw->units.data[i].sec != DWR_INFO)
			break; /* the last ones, and without code */
		for (; t < run->lists.n_taken; t++) {
			const struct dwr_list_taken *k = &run->lists.taken[t];
			while (site < ru->site.len &&
			       (ru->site.data[site].kind != DWR_SITE_LIST || use < k->use))
				use += ru->site.data[site++].kind == DWR_SITE_LIST;
			if (site == ru->site.len)
				break;
			uint64_t die = ru->site.data[site].die;
			while (own < ru->range.len && ru->range.data[own].die < die)
				r[n++] = ru->range.data[own++];
			r[n++] = (struct dwr_note_range){ die, k->unit, k->start, k->len };
		}
		while (own < ru->range.len)
			r[n++] = ru->range.data[own++];
	}
	*ret = r;
	*ret_n = n;
	return NULL;
}

/* A new .debug_icfold is compressed as .debug_info is, so that a file is of one kind; without debug
 * information beside it, where it may be larger than what folding saved, it always is. */
static void choose_compression(struct dwr_rw *rw)
{
	const struct dwr_section *info = &rw->secs.sec[DWR_INFO];
	struct dwr_section *note = &rw->secs.sec[DWR_ICFOLD];
	if (note->shndx)
		return;
	if (!info->shndx || rw->in->note_only)
		note->compression = DWR_ZLIB;
	else if (info->compression != DWR_ZDEBUG)
		note->compression = info->compression;
}

static struct elfrw_err *write_note(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	const struct elfrw_addrmap *map = rw->map;
	if (!rw->changes)
		return NULL;
	struct dwr_note_in note = { .rw = rw->in, .artificial_unit = run->artificial };
	size_t n = 0;
	for (size_t i = 0; i < rw->units.len; i++)
		n += rw->ru[i].die.len;
	struct dwr_note_die *die = malloc((n + 1) * sizeof *die);
	struct dwr_note_rows *rows = calloc((size_t)map->n_units + 1, sizeof *rows);
	struct dwr_note_range *range = NULL;
	struct elfrw_err *err =
		die && rows ? merge_ranges(run, &range, &note.n_ranges) : &elfrw_err_nomem;
	if (!err) {
		for (size_t i = 0; i < rw->units.len; i++) {
			if (rw->ru[i].die.len)
				memcpy(die + note.n_dies, rw->ru[i].die.data,
				       rw->ru[i].die.len * sizeof *die);
			note.n_dies += rw->ru[i].die.len;
		}
		if (n)
			qsort(die, n, sizeof *die, by_unit);
		for (uint32_t i = 0; rw->has_line && rw->line.fold && i < map->n_units; i++) {
			const struct dwr_rw_line_fold *f = &rw->line.fold[i];
			rows[i] = f->status == DWR_FOLD_OWN
					  ? (struct dwr_note_rows){ DWR_NOTE_ROWS_OWN, f->n_seqs,
								    f->seq }
					  : (struct dwr_note_rows){
						    .status = f->status == DWR_FOLD_SAME
								      ? DWR_NOTE_ROWS_SAME
								      : DWR_NOTE_ROWS_NONE
					    };
		}
		note.die = die;
		note.range = range;
		note.rows = rows;
		uint8_t *data;
		size_t size;
		err = dwr_note_write(&note, &data, &size);
		choose_compression(rw);
		if (!err)
			err = emit(run, DWR_ICFOLD, data, size);
	}
	free(die);
	free(rows);
	free(range);
	return err;
}

static struct elfrw_err *rewrite_units(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	const struct dwr_rewrite_in *in = rw->in;
	static const enum dwr_sec list_sec[DWR_LIST_KINDS] = { [DWR_LIST_RANGES] = DWR_RANGES,
							       [DWR_LIST_RNGLISTS] = DWR_RNGLISTS,
							       [DWR_LIST_LOC] = DWR_LOC,
							       [DWR_LIST_LOCLISTS] = DWR_LOCLISTS };
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++) {
		const struct dwr_section *s = &rw->secs.sec[list_sec[k]];
		rw->lists.list[k] = (struct dwr_list_sec){ s->name, s->data, s->size };
	}
	const struct dwr_section *addr = &rw->secs.sec[DWR_ADDR];
	rw->lists.addr = (struct dwr_list_sec){ addr->name, addr->data, addr->size };
	ELFRW_TRY(dwr_units_read(&rw->secs, &rw->units));
	ELFRW_TRY(make_batches(run));
	rw->ru = calloc(rw->units.len + 1, sizeof *rw->ru);
	if (!rw->ru)
		return &elfrw_err_nomem;
	ELFRW_TRY(elfrw_parallel(in->threads, run->batch.len, roots_batch, run));
	ELFRW_TRY(rewrite_lines(run));
	for (unsigned id = DWR_INFO; id <= DWR_TYPES; id++)
		if (rw->secs.sec[id].size && !(rw->copy[id] = malloc(rw->secs.sec[id].size)))
			return &elfrw_err_nomem;
	run->info_size = rw->secs.sec[DWR_INFO].size;
	ELFRW_TRY(elfrw_parallel(in->threads, run->batch.len, scan_batch, run));
	ELFRW_TRY(rewrite_lists(run));
	ELFRW_TRY(elfrw_parallel(in->threads, run->batch.len, apply_batch, run));
	ELFRW_TRY(apply_new_ranges(run));
	ELFRW_TRY(dwr_rw_abbrev(rw, &run->abbrev));
	ELFRW_TRY(append_unit(run));
	ELFRW_TRY(rewrite_indices(run));
	return emit_sections(run);
}

static int by_place(const void *a, const void *b)
{
	const struct dwr_section_out *x = a, *y = b;
	uint32_t i = x->shndx ? x->shndx : UINT32_MAX, j = y->shndx ? y->shndx : UINT32_MAX;
	return i != j ? (i < j ? -1 : 1) : strcmp(x->name, y->name);
}

static void run_deinit(struct run *run)
{
	struct dwr_rw *rw = &run->rw;
	for (size_t i = 0; rw->ru && i < rw->units.len; i++) {
		VEC_FREE(&rw->ru[i].site);
		VEC_FREE(&rw->ru[i].slot);
		VEC_FREE(&rw->ru[i].edit);
		VEC_FREE(&rw->ru[i].die);
		VEC_FREE(&rw->ru[i].range);
		VEC_FREE(&rw->ru[i].cu_range);
		VEC_FREE(&rw->ru[i].macro);
	}
	free(rw->ru);
	free(rw->copy[DWR_INFO]);
	free(rw->copy[DWR_TYPES]);
	if (rw->has_line)
		dwr_rw_line_out_deinit(&rw->line);
	dwr_units_deinit(&rw->units);
	dwr_sections_deinit(&rw->secs);
	VEC_FREE(&run->batch);
	free(run->cu);
	free(run->use);
	free(run->add);
	dwr_addr_table_deinit(&run->addr);
	dwr_rw_lists_deinit(&run->lists);
	elfrw_wbuf_free(&run->abbrev);
	dwr_rw_vtables_deinit(&run->vtables);
	dwr_rewrite_out_deinit(&run->out);
}

struct elfrw_err *dwr_rewrite(const struct dwr_rewrite_in *in, struct dwr_rewrite_out *out)
{
	struct run run = {
		.rw = { .in = in, .map = in->map, .ranger = dwr_ranger(in->map, in->policy) },
		.artificial = UINT64_MAX
	};
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < in->map->n_units; i++) {
		run.rw.has_folded |= (in->map->unit[i].flags & ELFRW_UNIT_FOLDED) != 0;
		run.rw.changes |= in->map->unit[i].body != in->map->unit[i].old;
	}
	run.rw.changes |= run.rw.has_folded;
	err = dwr_sections_init(&run.rw.secs, in->image);
	/* What describes code that stays as it is stays as well. */
	if (!err && !in->note_only && (run.rw.changes || in->vtables)) {
		err = dwr_sections_load_all(&run.rw.secs, in->threads);
		if (!err)
			err = rewrite_units(&run);
		if (!err)
			err = rewrite_frame(&run);
	}
	if (!err)
		err = write_note(&run);
	if (!err) {
		struct dwr_rewrite_stats *st = &run.out.stats;
		for (size_t i = 0; i < run.rw.units.len; i++) {
			st->folded_dies += run.rw.ru[i].folded_dies;
			st->thunk_dies += run.rw.ru[i].thunk_dies;
			st->emptied_scopes += run.rw.ru[i].emptied;
		}
		for (size_t i = 0; i < run.n_uses; i++)
			st->emptied_scopes +=
				run.use[i].empty && run.use[i].purpose == DWR_FOR_SCOPE;
		st->units = (uint32_t)run.rw.units.len;
		st->artificial_unit = run.artificial;
		st->vtables = (uint32_t)run.vtables.v.len;
		st->vtables_left_out = run.vtables.left_out;
		if (run.out.n_sections)
			qsort(run.out.section, run.out.n_sections, sizeof *run.out.section,
			      by_place);
		*out = run.out;
		run.out = (struct dwr_rewrite_out){ 0 };
	}
	run_deinit(&run);
	return err;
}

void dwr_rewrite_out_deinit(struct dwr_rewrite_out *out)
{
	for (uint32_t i = 0; i < out->n_sections; i++)
		free(out->section[i].data);
	free(out->section);
	memset(out, 0, sizeof *out);
}
