/* got.c: addresses that code computes, or loads from the global offset table. */
#include "icf/infer/bare/state.h"
#include "icf/program/unit.h"
#include <string.h>

struct icf_range icf_bare_got(const struct elfrw_image *img)
{
	struct icf_range ret = { UINT64_MAX, 0 };
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *sec = &img->section[i];
		if (strncmp(sec->name, ".got", 4) != 0 || sec->hdr.sh_size < 8)
			continue;
		icf_bare_widen(&ret, sec->hdr.sh_addr);
		icf_bare_widen(&ret, sec->hdr.sh_addr + sec->hdr.sh_size - 8);
	}
	return ret;
}

bool icf_bare_address_by(const struct icf_program *prog, const struct icf_range *got,
			 const struct icf_ref *ref, uint64_t *ret)
{
	*ret = ref->target;
	if (ref->flags & ICF_REF_LEA)
		return !icf_names_page(ref);
	if (ref->target < got->lo || ref->target > got->hi || ref->kind == ICF_REF_BRANCH)
		return false;
	const struct icf_dynreloc *d = icf_dynreloc_at(prog, ref->target);
	const uint8_t *p = elfrw_image_at(prog->img, ref->target, 8);
	if (d ? d->kind != ELFRW_RELOC_RELATIVE : !p || prog->img->pic)
		return false;
	*ret = d ? d->addend : elfrw_get64(p);
	return true;
}
