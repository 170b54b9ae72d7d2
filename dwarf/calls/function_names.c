/* function_names.c: see function_names.h.
 *
 * The lowest DIE wins, so the result does not depend on the threads.  Units declare the same
 * functions over and over, and linkers keep each name once.  So the offsets of names in .debug_str
 * that are none of those looked for are remembered, a bit for each. */
#include "dwarf/calls/function_names.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdlib.h>

struct elfrw_err *dwr_function_names_init(struct dwr_function_names *s,
					  const struct dwr_sections *secs, const char *const *name,
					  size_t n)
{
	*s = (struct dwr_function_names){ .secs = secs, .name = name, .n = n };
	s->die = malloc((n + 1) * sizeof *s->die);
	s->other = calloc(secs->sec[DWR_STR].size / 64 + 1, sizeof *s->other);
	if (!s->die || !s->other) {
		dwr_function_names_deinit(s);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < n; i++)
		atomic_init(&s->die[i], UINT64_MAX);
	return NULL;
}

void dwr_function_names_deinit(struct dwr_function_names *s)
{
	free(s->die);
	free(s->other);
	*s = (struct dwr_function_names){ 0 };
}

void dwr_function_names_want(struct dwr_want *want)
{
	DWR_WANT_NAME(want, DW_AT_name);
	DWR_WANT_NAME(want, DW_AT_linkage_name);
}

static bool by_plain_name(uint64_t language)
{
	return !language || language == DW_LANG_C || language == DW_LANG_C89 ||
	       language == DW_LANG_C99 || language == DW_LANG_C11 || language == 0x2c /* C17 */ ||
	       language == DW_LANG_Mips_Assembler;
}

/* The index of the name that VALUE is, or SIZE_MAX. */
static size_t name_of(const struct dwr_function_names *s, const struct dwr_unit *unit,
		      const struct dwr_unit_root *root, const struct dwr_value *value)
{
	const bool pooled = value->form == DW_FORM_strp && value->u < s->secs->sec[DWR_STR].size;
	const uint64_t bit = UINT64_C(1) << (value->u & 63);
	if (pooled && atomic_load_explicit(&s->other[value->u / 64], memory_order_relaxed) & bit)
		return SIZE_MAX;
	const char *name = dwr_value_string(s->secs, unit, root, value);
	size_t i = name ? LOWER_BOUND(0, s->n, mid, strcmp(s->name[mid], name) < 0) : s->n;
	if (i < s->n && !strcmp(s->name[i], name))
		return i;
	if (pooled)
		atomic_fetch_or_explicit(&s->other[value->u / 64], bit, memory_order_relaxed);
	return SIZE_MAX;
}

void dwr_function_names_look(struct dwr_function_names *s, const struct dwr_unit *unit,
			     const struct dwr_unit_root *root, const struct dwr_die *die)
{
	const bool plain = by_plain_name(root->language);
	const struct dwr_value *v = NULL;
	for (unsigned i = 0; i < die->n_values && !v; i++)
		if (plain ? die->value[i].name == DW_AT_name
			  : die->value[i].name == DW_AT_linkage_name ||
				    die->value[i].name == DW_AT_MIPS_linkage_name)
			v = &die->value[i];
	const size_t i = v ? name_of(s, unit, root, v) : SIZE_MAX;
	if (i == SIZE_MAX)
		return;
	uint_fast64_t old = atomic_load_explicit(&s->die[i], memory_order_relaxed);
	while (die->off < old && !atomic_compare_exchange_weak(&s->die[i], &old, die->off))
		;
}

uint64_t dwr_function_names_die(const struct dwr_function_names *s, size_t i)
{
	uint64_t die = atomic_load(&s->die[i]);
	return die == UINT64_MAX ? 0 : die;
}
