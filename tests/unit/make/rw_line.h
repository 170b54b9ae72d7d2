/* rw_line.h: hand-made line tables and address maps, for the tests of the rewriting. */
#ifndef TESTS_UNIT_MAKE_RW_LINE_H
#define TESTS_UNIT_MAKE_RW_LINE_H
#include "dwarf/rewrite/line/line.h"
#include "elfrw/addrmap.h"
#include "tests/unit/make/line.h"

struct world {
	struct elfrw_addrmap map;
	struct elfrw_wbuf in;
	struct dwr_rw_line_cu cu[64];
	size_t n_cus;
	enum dwr_policy policy;
	unsigned threads;
	struct dwr_bytes line_str; /* .debug_line_str */
	struct dwr_rw_line_out out;
};

/* One section [0x1000, 0x9000).  UNIT: old, old_end, body, entry, kept, thunk size, flags. */
static inline void world_init(struct world *wo, const struct elfrw_addrmap_unit *unit, uint32_t n)
{
	*wo = (struct world){ .threads = 1 };
	wo->map.unit = malloc((n + 1) * sizeof *unit);
	if (n)
		memcpy(wo->map.unit, unit, n * sizeof *unit);
	wo->map.n_units = n;
	wo->map.section = malloc(sizeof *wo->map.section);
	wo->map.section[0] = (struct elfrw_addrmap_section){ 0x1000, 0x9000, 0x1000, 0x8000, 1 };
	wo->map.n_sections = 1;
	be_ok(elfrw_addrmap_finish(&wo->map));
}

static inline struct elfrw_err *world_run(struct world *wo)
{
	struct dwr_rw_line_in in = { .map = &wo->map,
				     .policy = wo->policy,
				     .threads = wo->threads,
				     .address_size = 8,
				     .name = ".debug_line",
				     .line = { wo->in.data, wo->in.len },
				     .strings.line_str = wo->line_str,
				     .cu = wo->cu,
				     .n_cus = wo->n_cus };
	assert_false(wo->in.bad);
	return dwr_rw_line(&in, &wo->out);
}

/* A unit of .debug_info names the table U. */
static inline void name_table(struct world *wo, struct unit_at u)
{
	wo->cu[wo->n_cus++] = (struct dwr_rw_line_cu){ u.start, NULL, UINT64_MAX };
}

static inline void world_deinit(struct world *wo)
{
	dwr_rw_line_out_deinit(&wo->out);
	elfrw_addrmap_deinit(&wo->map);
	elfrw_wbuf_free(&wo->in);
}

static inline struct dwr_rows out_rows(const struct world *wo, uint64_t off)
{
	return rows_of((struct dwr_bytes){ wo->out.data, wo->out.size }, off);
}

#define UNIT(o, e, b)                                         \
	{                                                     \
		.old = o, .old_end = e, .body = b, .entry = b \
	}

/* A sequence of three rows from VA on, the first of line 1 + LINE. */
static inline void function(struct elfrw_wbuf *w, uint64_t va, int line, int column)
{
	set_address(w, va);
	elfrw_wbuf_u8(w, 5);
	elfrw_wbuf_uleb(w, (uint64_t)column);
	row(w, 0, line);
	elfrw_wbuf_bytes(w, "\4\2", 2);
	row(w, 4, 1);
	elfrw_wbuf_bytes(w, "\4\1\x0a\6", 4);
	row(w, 4, 1);
	advance_pc(w, 8);
	end_sequence(w);
}
#endif
