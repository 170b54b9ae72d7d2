/* function_names.c: see function_names.h.  Runs of units are searched on several threads; the
 * lowest DIE wins.  A fixed number of runs is searched at a time, so that the result does not
 * depend on the threads, until all names are found. */
#include "dwarf/calls/function_names.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

#define RUN   4 /* units */
#define BATCH 8 /* runs */

struct search {
	struct dwr_sections *secs;
	const struct dwr_units *units;
	const char *const *name;
	size_t n, first; /* the run that the loop begins with */
	struct hits {
		VEC(struct hit {
			size_t name;
			uint64_t die;
		})
		v;
	} * run;
};

static size_t find_name(const struct search *s, const char *name)
{
	size_t i = LOWER_BOUND(0, s->n, mid, strcmp(s->name[mid], name) < 0);
	return i < s->n && !strcmp(s->name[i], name) ? i : SIZE_MAX;
}

static bool by_plain_name(uint64_t language)
{
	return !language || language == DW_LANG_C || language == DW_LANG_C89 ||
	       language == DW_LANG_C99 || language == DW_LANG_C11 || language == 0x2c /* C17 */ ||
	       language == DW_LANG_Mips_Assembler;
}

static struct elfrw_err *search_run(void *arg, size_t r)
{
	static const uint16_t vendor[] = { DW_AT_MIPS_linkage_name };
	struct search *s = arg;
	struct dwr_abbrev_table table[2] = { 0 };
	struct dwr_want want[2] = { { .vendor = vendor, .n_vendor = 1 }, { .vendor = NULL } };
	r += s->first;
	struct elfrw_err *err = NULL;
	DWR_WANT_NAME(&want[0], DW_AT_linkage_name);
	DWR_WANT_NAME(&want[1], DW_AT_name);
	for (size_t i = r * RUN; i < (r + 1) * RUN && i < s->units->len && !err; i++) {
		const struct dwr_unit *unit = &s->units->data[i];
		struct dwr_unit_root root;
		if (unit->sec != DWR_INFO)
			continue;
		err = dwr_unit_read_root(s->secs, unit, &root);
		if (err)
			break;
		bool plain = by_plain_name(root.language);
		err = dwr_unit_abbrev(s->secs, unit, &want[plain], &table[plain]);
		if (err)
			break;
		struct dwr_cursor cur = dwr_cursor_at(s->secs, unit, &table[plain], false);
		struct dwr_die die;
		bool more;
		while (!(err = dwr_cursor_next(&cur, &die, &more)) && more) {
			if (die.abbrev->tag != DW_TAG_subprogram || !die.n_values)
				continue;
			const char *name = dwr_value_string(s->secs, unit, &root, &die.value[0]);
			size_t k = name ? find_name(s, name) : SIZE_MAX;
			if (k == SIZE_MAX)
				continue;
			struct hit *h = VEC_PUSH(&s->run[r].v);
			if (!h) {
				err = &elfrw_err_nomem;
				break;
			}
			*h = (struct hit){ k, die.off };
		}
	}
	dwr_abbrev_deinit(&table[0]);
	dwr_abbrev_deinit(&table[1]);
	return err;
}

struct elfrw_err *dwr_functions_by_name(struct dwr_sections *secs, const struct dwr_units *units,
					const char *const *name, size_t n, unsigned threads,
					uint64_t *die)
{
	size_t runs = (units->len + RUN - 1) / RUN;
	struct search s = { .secs = secs,
			    .units = units,
			    .name = name,
			    .n = n,
			    .run = calloc(runs + 1, sizeof *s.run) };
	struct elfrw_err *err = s.run ? NULL : &elfrw_err_nomem;
	for (size_t i = 0; i < n; i++)
		die[i] = 0;
	for (size_t left = n; !err && left && s.first < runs; s.first += BATCH) {
		size_t end = runs - s.first < BATCH ? runs : s.first + BATCH;
		err = elfrw_parallel(threads, end - s.first, search_run, &s);
		for (size_t r = s.first; r < end && !err; r++)
			for (size_t i = 0; i < s.run[r].v.len; i++) {
				const struct hit *h = &s.run[r].v.data[i];
				left -= !die[h->name];
				if (!die[h->name] || h->die < die[h->name])
					die[h->name] = h->die;
			}
	}
	for (size_t r = 0; s.run && r < runs; r++)
		VEC_FREE(&s.run[r].v);
	free(s.run);
	return err;
}
