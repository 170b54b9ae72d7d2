/* function_names.c: see function_names.h.
 *
 * The lowest DIE wins, so the result does not depend on the threads.  Units declare the same
 * functions over and over, and linkers keep each name once.  So the offsets of names in .debug_str
 * that are none of those looked for are remembered, a bit for each. */
#include "dwarf/calls/function_names.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL /* libicfold, which has this file, asks for no further library */
#include <xxhash.h>

/* The slot of NAME: its own, or the free one where it would be. */
static size_t slot_for(const struct dwr_function_names *s, const char *name)
{
	size_t i = XXH3_64bits(name, strlen(name)) & s->mask;
	while (s->slot[i] && strcmp(s->name[s->slot[i] - 1], name) != 0)
		i = (i + 1) & s->mask;
	return i;
}

struct elfrw_err *dwr_function_names_init(struct dwr_function_names *s,
					  const struct dwr_sections *secs, const char *const *name,
					  size_t n)
{
	*s = (struct dwr_function_names){ .secs = secs, .name = name, .n = n };
	if (n >= UINT32_MAX)
		return elfrw_error("too many functions are looked for");
	while (s->mask < 2 * n)
		s->mask = 2 * s->mask + 1;
	s->slot = calloc(s->mask + 1, sizeof *s->slot);
	s->die = malloc((n + 1) * sizeof *s->die);
	s->other = calloc(secs->sec[DWR_STR].size / 64 + 1, sizeof *s->other);
	if (!s->slot || !s->die || !s->other) {
		dwr_function_names_deinit(s);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = slot_for(s, name[i]);
		if (!s->slot[at])
			s->slot[at] = (uint32_t)i + 1;
		atomic_init(&s->die[i], UINT64_MAX);
	}
	return NULL;
}

void dwr_function_names_deinit(struct dwr_function_names *s)
{
	free(s->slot);
	free(s->die);
	free(s->other);
	*s = (struct dwr_function_names){ 0 };
}

static bool by_plain_name(uint64_t language)
{
	return !language || language == DW_LANG_C || language == DW_LANG_C89 ||
	       language == DW_LANG_C99 || language == DW_LANG_C11 || language == 0x2c /* C17 */ ||
	       language == DW_LANG_Mips_Assembler;
}

unsigned dwr_function_names_attr(uint64_t language)
{
	return by_plain_name(language) ? DW_AT_name : DW_AT_linkage_name;
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
	const uint32_t slot = name ? s->slot[slot_for(s, name)] : 0;
	if (slot)
		return slot - 1;
	if (pooled)
		atomic_fetch_or_explicit(&s->other[value->u / 64], bit, memory_order_relaxed);
	return SIZE_MAX;
}

void dwr_function_names_look(struct dwr_function_names *s, const struct dwr_unit *unit,
			     const struct dwr_unit_root *root, const struct dwr_die *die)
{
	const unsigned name = dwr_function_names_attr(root->language);
	const struct dwr_value *v = dwr_die_value(die, name);
	if (!v && name == DW_AT_linkage_name)
		v = dwr_die_value(die, DW_AT_MIPS_linkage_name);
	const size_t i = v ? name_of(s, unit, root, v) : SIZE_MAX;
	if (i == SIZE_MAX)
		return;
	uint_fast64_t old = atomic_load_explicit(&s->die[i], memory_order_relaxed);
	while (die->off < old && !atomic_compare_exchange_weak(&s->die[i], &old, die->off))
		;
}

uint64_t dwr_function_names_die(const struct dwr_function_names *s, size_t i)
{
	/* A name that is there twice has its DIE at the first. */
	uint64_t die = atomic_load(&s->die[s->slot[slot_for(s, s->name[i])] - 1]);
	return die == UINT64_MAX ? 0 : die;
}
