/* lists.c: range and location lists of versions 2 to 5, read and rewritten.
 *
 * First byte: address size 4 (bit 0), no .debug_addr base (bit 1), overlay, alias, drop (bits 2 and
 * 3), no unit base (bit 4); then a container. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/lists.h"
#include "dwarf/rewrite/addr.h"
#include "dwarf/rewrite/lists/lists.h"

#define MAX_USES 256

struct state {
	struct dwr_list_secs secs;
	struct dwr_list_cu cu[2]; /* of version 4, of version 5 */
	struct dwr_list_use use[MAX_USES];
	size_t n;
};

static void add_use(struct state *s, enum dwr_list_kind kind, uint64_t off, uint64_t views)
{
	if (s->n < MAX_USES)
		s->use[s->n] =
			(struct dwr_list_use){ .off = off,
					       .views = views,
					       .cu = dwr_list_is_v5(kind),
					       .owner = s->n % 3 ? ELFRW_NO_UNIT
								 : (uint32_t)s->n % FUZZ_UNITS,
					       .kind = (uint8_t)kind,
					       .purpose = (uint8_t)(s->n % 3) };
	s->n += s->n < MAX_USES;
}

static void read_lists(struct state *s, enum dwr_list_kind kind)
{
	const struct dwr_list_sec *sec = &s->secs.list[kind];
	struct dwr_list_contribs contribs = { 0 };
	struct dwr_list list = { 0 };
	struct dwr_list_cu *cu = &s->cu[dwr_list_is_v5(kind)];
	uint64_t off = 0;
	if (dwr_list_is_v5(kind) && fuzz_ok(dwr_list_contribs_read(sec, &contribs)) &&
	    contribs.len) {
		off = contribs.data[0].lists;
		*(kind == DWR_LIST_RNGLISTS ? &cu->rnglists_base : &cu->loclists_base) =
			contribs.data[0].base;
		for (uint32_t i = 0; i < contribs.data[0].n_offsets && i < 8; i++) {
			uint64_t at;
			if (fuzz_ok(dwr_list_index(&s->secs, kind, cu, i, &at)))
				add_use(s, kind, at, DWR_LIST_NONE);
		}
		(void)dwr_list_contrib_find(&contribs, off);
	}
	for (unsigned n = 0; off < sec->size && n < 64; n++) {
		if (!fuzz_ok(dwr_list_read(&s->secs, kind, cu, off,
					   n % 8 == 7 ? off + 2 : DWR_LIST_NONE, &list))) {
			off++;
			continue;
		}
		FUZZ_HOLDS(list.end > off && list.end <= sec->size);
		add_use(s, kind, off, DWR_LIST_NONE);
		struct dwr_list_raw raw = { .end = off };
		do {
			if (!fuzz_ok(dwr_list_raw_read(sec, kind, cu, raw.end, &raw)))
				break;
			FUZZ_HOLDS(raw.expr <= sec->size && raw.expr_size <= sec->size - raw.expr);
		} while (raw.code != DWR_LIST_CODE_END);
		off = list.end;
	}
	dwr_list_contribs_deinit(&contribs);
	dwr_list_deinit(&list);
}

/* The sections of F and two units, of DWARF 4 and 5, as FLAGS want them. */
static void set_up(struct state *s, struct fuzz_image *f, uint8_t flags)
{
	static const char *const names[] = { ".debug_ranges", ".debug_rnglists", ".debug_loc",
					     ".debug_loclists" };
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++) {
		const struct elfrw_section *sec = fuzz_section(f, names[k]);
		s->secs.list[k] = (struct dwr_list_sec){ names[k], sec->data, sec->hdr.sh_size };
	}
	const struct elfrw_section *addr = fuzz_section(f, ".debug_addr");
	s->secs.addr = (struct dwr_list_sec){ ".debug_addr", addr->data, addr->hdr.sh_size };
	for (unsigned v = 0; v < 2; v++)
		s->cu[v] = (struct dwr_list_cu){ .params = { v ? 5 : 4, flags & 1 ? 4 : 8, 4 },
						 .has_base = !(flags & 16),
						 .base = flags & 16 ? 0 : FUZZ_CODE,
						 .new_base = flags & 16 ? 0 : FUZZ_CODE,
						 .addr_base = flags & 2 ? DWR_LIST_NONE
							      : v       ? 8
									: 0,
						 .rnglists_base = DWR_LIST_NONE,
						 .loclists_base = DWR_LIST_NONE };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct fuzz_image f;
	uint8_t flags = data[0];
	fuzz_image_init(&f, data + 1, size - 1);
	struct state *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	set_up(s, &f, flags);
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++)
		read_lists(s, (enum dwr_list_kind)k);
	struct elfrw_addrmap map;
	struct dwr_addr_table table;
	fuzz_map_init(&map);
	static const struct dwr_list_range range[] = { { FUZZ_CODE, FUZZ_CODE + 32 },
						       { FUZZ_CODE + 64, FUZZ_CODE + 96 } };
	struct dwr_list_new add[] = { { 0, range, 2, 0 }, { 1, range, 2, 0 } };
	const struct elfrw_section *addr = fuzz_section(&f, ".debug_addr");
	bool has_addr =
		addr->data && fuzz_ok(dwr_addr_table_init(&table, addr->data, addr->hdr.sh_size));
	struct dwr_rw_lists_in in = { .map = &map,
				      .policy = (enum dwr_policy)((flags >> 2) % 3),
				      .threads = 1,
				      .secs = s->secs,
				      .cu = s->cu,
				      .n_cus = 2,
				      .use = s->use,
				      .n_uses = s->n,
				      .add = add,
				      .n_add = flags & 32 ? 2 : 0,
				      .addr = has_addr ? &table : NULL };
	struct dwr_rw_lists_out out;
	if (fuzz_ok(dwr_rw_lists(&in, &out)))
		dwr_rw_lists_deinit(&out);
	if (has_addr) {
		(void)fuzz_ok(dwr_addr_table_finish(&table, &map, flags & 64, 8));
		dwr_addr_table_deinit(&table);
	}
	elfrw_addrmap_deinit(&map);
	free(s);
	fuzz_image_deinit(&f);
	return 0;
}
