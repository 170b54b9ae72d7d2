/* info.c: units, declarations and DIEs in a container, walked in several ways, then rewritten. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/calls/call_sites.h"
#include "dwarf/calls/function_names.h"
#include "dwarf/info.h"

static void walk(struct dwr_sections *secs, const struct dwr_unit *unit,
		 struct dwr_abbrev_table *table, const struct dwr_want *want)
{
	struct dwr_unit_root root;
	if (!fuzz_ok(dwr_unit_abbrev(secs, unit, want, table)) ||
	    !fuzz_ok(dwr_unit_read_root(secs, unit, &root)))
		return;
	struct dwr_cursor cur = dwr_cursor_at(secs, unit, table, true);
	struct dwr_die die;
	bool more = true;
	unsigned n = 0;
	while (fuzz_ok(dwr_cursor_next(&cur, &die, &more)) && more) {
		FUZZ_HOLDS(die.off >= unit->die && die.off < unit->end &&
			   die.n_values <= DWR_MAX_VALUES);
		for (unsigned i = 0; i < die.n_values; i++) {
			const struct dwr_value *v = &die.value[i];
			uint64_t a;
			FUZZ_HOLDS(v->implicit ||
				   (v->pos <= unit->end && v->size <= unit->end - v->pos));
			(void)dwr_value_string(secs, unit, &root, v);
			(void)dwr_value_address(secs, unit, &root, v, &a);
		}
		if (++n % 16 == 0) {
			struct dwr_cursor below =
				dwr_cursor_at_die(secs, unit, table, false, die.off);
			struct dwr_die first;
			bool any;
			(void)fuzz_ok(dwr_cursor_next(&below, &first, &any));
		}
	}
}

static void ask(struct dwr_sections *secs)
{
	struct dwr_units units = { 0 };
	if (!fuzz_ok(dwr_units_read(secs, &units)))
		return;
	struct dwr_want none = { .addresses = true }, all = { .name = { ~0u, ~0u, ~0u, ~0u },
							      .addresses = true,
							      .expressions = true,
							      .lists = true };
	struct dwr_abbrev_table table[2] = { 0 };
	for (size_t i = 0; i < units.len; i++) {
		const struct dwr_unit *u = &units.data[i];
		FUZZ_HOLDS(dwr_units_find(&units, (enum dwr_sec)u->sec, u->die) == u ||
			   u->die == u->end);
		walk(secs, u, &table[0], &none);
		walk(secs, u, &table[1], &all);
	}
	static const char *const names[] = { "a", "f0", "f1", "main" };
	uint64_t site[] = { FUZZ_CODE + 5, FUZZ_CODE + 37, FUZZ_CODE + 69 };
	const struct dwr_call_wanted wanted = { site, 3, names, 4 };
	struct dwr_call_found found = { 0 };
	if (fuzz_ok(dwr_call_sites_read(secs, &units, &wanted, 1, &found)))
		for (unsigned i = 0; i < 4; i++)
			FUZZ_HOLDS(found.die[i] < secs->sec[DWR_INFO].size + 1);
	struct dwr_abbrev_table chain_table = { 0 };
	for (uint64_t off = 0; off < secs->sec[DWR_INFO].size && off < 512; off += 5) {
		struct dwr_die_chain chain;
		if (fuzz_ok(dwr_die_chain(secs, &units, &chain_table, off, &chain)))
			FUZZ_HOLDS(chain.n <= DWR_CHAIN_MAX);
	}
	dwr_abbrev_deinit(&chain_table);
	dwr_call_found_deinit(&found);
	dwr_abbrev_deinit(&table[0]);
	dwr_abbrev_deinit(&table[1]);
	dwr_units_deinit(&units);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_image f;
	struct dwr_sections secs;
	fuzz_image_init(&f, data, size);
	if (fuzz_ok(dwr_sections_init(&secs, &f.img))) {
		if (fuzz_ok(dwr_sections_load_all(&secs, 1)))
			ask(&secs);
		dwr_sections_deinit(&secs);
	}
	fuzz_image_deinit(&f);
	for (unsigned policy = 0; policy < 3; policy++)
		fuzz_rewrite(data, size, policy);
	return 0;
}
