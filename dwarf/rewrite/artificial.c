/* artificial.c: the unit to which the rows of folded functions and the vtables belong. */
#include "dwarf/rewrite/run.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* The form of the artificial unit: that of its line table, or of the first unit when it has
 * none. */
static struct dwr_form_params unit_form(const struct dwr_rw_run *run, bool lines)
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

struct elfrw_err *dwr_rw_append_unit(struct dwr_rw_run *run)
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
