/* line.c: line tables in a container (.debug_line and the sections of strings): headers, names,
 * rows, rewriting. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/line.h"
#include "dwarf/rewrite/line/line.h"

static void read_unit(const struct dwr_line_header *h, const struct dwr_line_strings *str,
		      struct dwr_line_files *files, struct dwr_rows *rows)
{
	(void)fuzz_ok(dwr_line_files_read(h, str, 8, true, files));
	uint64_t off = h->program;
	while (off < h->end) {
		uint64_t at = off, scanned = off;
		struct dwr_line_seq seq;
		rows->len = 0;
		bool decoded = fuzz_ok(dwr_line_decode(h, &off, rows));
		bool good = fuzz_ok(dwr_line_scan(h, &scanned, &seq));
		FUZZ_HOLDS(decoded == good && (!good || scanned == off));
		struct dwr_line_ext ext;
		uint64_t e = at;
		while (good && fuzz_ok(dwr_line_next_ext(h, &e, off, &ext)) && ext.op)
			FUZZ_HOLDS(e <= off);
		if (!decoded || off <= at)
			break;
		bool sorted = rows->len > 1;
		for (size_t i = 1; i < rows->len; i++)
			sorted &= rows->data[i].address >= rows->data[i - 1].address;
		if (sorted && (rows->data[rows->len - 1].flags & DWR_ROW_END)) {
			struct elfrw_wbuf w = { 0 };
			const struct dwr_line_sequence again = { rows->data, rows->len - 1,
								 rows->data[rows->len - 1].address,
								 16 };
			(void)fuzz_ok(dwr_line_encode(h, 8, &again, &w));
			elfrw_wbuf_free(&w);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_image f;
	fuzz_image_init(&f, data, size);
	const struct elfrw_section *line = fuzz_section(&f, ".debug_line"),
				   *line_str = fuzz_section(&f, ".debug_line_str"),
				   *s = fuzz_section(&f, ".debug_str"),
				   *so = fuzz_section(&f, ".debug_str_offsets");
	struct dwr_bytes sec = { line->data, line->hdr.sh_size };
	struct dwr_line_strings str = { { line_str->data, line_str->hdr.sh_size },
					{ s->data, s->hdr.sh_size },
					{ so->data, so->hdr.sh_size } };
	struct dwr_line_files files = { 0 };
	struct dwr_rows rows = { 0 };
	struct dwr_rw_line_cu cu[16];
	size_t n_cus = 0;
	uint64_t off = 0;
	struct dwr_line_header h;
	while (off < sec.size && fuzz_ok(dwr_line_header_read(".debug_line", sec, off, &h))) {
		FUZZ_HOLDS(h.end <= sec.size && h.program <= h.end && h.end > off);
		read_unit(&h, &str, &files, &rows);
		if (n_cus < 16)
			cu[n_cus] = (struct dwr_rw_line_cu){ off, n_cus & 1 ? "/dir" : NULL,
							     n_cus & 2 ? 8 : UINT64_MAX };
		n_cus += n_cus < 16;
		off = h.end;
	}
	struct elfrw_addrmap map;
	fuzz_map_init(&map);
	for (unsigned policy = 0; policy < 3; policy++) {
		struct dwr_rw_line_in in = { .map = &map,
					     .policy = (enum dwr_policy)policy,
					     .threads = 1,
					     .address_size = 8,
					     .name = ".debug_line",
					     .line = sec,
					     .strings = str,
					     .cu = cu,
					     .n_cus = n_cus };
		struct dwr_rw_line_out out;
		if (fuzz_ok(dwr_rw_line(&in, &out)))
			dwr_rw_line_out_deinit(&out);
	}
	elfrw_addrmap_deinit(&map);
	dwr_line_files_deinit(&files);
	free(rows.data);
	fuzz_image_deinit(&f);
	return 0;
}
