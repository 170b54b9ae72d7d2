/* data.c: code addresses in data: fields, jump tables, dynamic relocations, the dynamic section,
 * the entry point.  Data does not move, so a field changes only as its target moves. */
#include "elfrw/base/rbuf.h"
#include "icf/apply/apply.h"
#include <stdlib.h>
#include <string.h>

static struct elfrw_err *too_far(const struct icf_dataref *d)
{
	return elfrw_error("field at 0x%llx cannot hold its new value",
			   (unsigned long long)d->place);
}

/* The new target of a field or addend.  A vtable slot and the like refer directly to the code; all
 * others refer to the address that stands for the function. */
static uint64_t new_target(const struct icf_apply *a, const struct icf_dataref *d)
{
	return icf_new_target(a, d->unit, d->target, !d->quiet && d->table == ICF_NONE);
}

static struct elfrw_err *set_field(struct icf_apply *a, const struct icf_dataref *d)
{
	uint64_t to = new_target(a, d);
	if (to == d->target || d->left)
		return NULL;
	/* Nothing reads the tables of a function that is gone. */
	if (d->unit != ICF_NONE && (a->plan->map.unit[d->unit].flags & ELFRW_UNIT_REMOVED))
		return NULL;
	uint8_t *p;
	ELFRW_TRY(elfrw_output_at(a->out, d->place, d->size, &p));
	if (!p)
		return elfrw_error("address 0x%llx, which refers to code, is not in the file",
				   (unsigned long long)d->place);
	if (d->kind == ICF_DATA_ADDRESS) {
		if (d->size == 4 && to >> 32 && (int64_t)to != (int32_t)to)
			return too_far(d);
		elfrw_put_le(p, to, d->size);
		return NULL;
	}
	uint64_t old = elfrw_get_le(p, d->size);
	if (d->size == 4)
		old = (uint64_t)(int64_t)(int32_t)old;
	uint64_t new = old + (to - d->target);
	if (d->size == 4 && (int64_t) new != (int32_t) new)
		return too_far(d);
	elfrw_put_le(p, new, d->size);
	return NULL;
}

static struct elfrw_err *set_dynamic(struct icf_apply *a, const struct icf_dataref *d)
{
	const struct icf_program *prog = a->prog;
	uint64_t to = new_target(a, d);
	if (to == d->target)
		return NULL;
	for (size_t i = icf_first_dynreloc(prog, d->place);
	     i < prog->dynreloc.len && prog->dynreloc.data[i].place == d->place; i++) {
		const struct icf_dynreloc *r = &prog->dynreloc.data[i];
		if ((r->kind != ELFRW_RELOC_RELATIVE && r->kind != ELFRW_RELOC_IRELATIVE) ||
		    r->addend != d->target || r->relr)
			continue;
		uint8_t *p;
		ELFRW_TRY(elfrw_output_edit(a->out, r->shndx, &p));
		elfrw_put64(p + (uint64_t)r->index * sizeof(Elf64_Rela) +
				    offsetof(Elf64_Rela, r_addend),
			    to);
	}
	/* Some linkers also store the value in place; RELR stores it only there. */
	const uint8_t *old = elfrw_image_at(prog->img, d->place, 8);
	if (old && elfrw_get64(old) == d->target) {
		uint8_t *p;
		ELFRW_TRY(elfrw_output_at(a->out, d->place, 8, &p));
		elfrw_put64(p, to);
	}
	return NULL;
}

/* Sets the entries of the dynamic section that refer to code. */
static struct elfrw_err *set_dynamic_section(struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	if (!img->dynamic || !img->section[img->dynamic].data)
		return NULL;
	uint8_t *p;
	ELFRW_TRY(elfrw_output_edit(a->out, img->dynamic, &p));
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= img->section[img->dynamic].hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, p + off, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_TEXTREL || (d.d_tag == DT_FLAGS && (d.d_un.d_val & DF_TEXTREL)))
			return elfrw_error_at(".dynamic", off,
					      "text relocations are not supported");
		if (!elfrw_dynamic_is_code(img->arch, d.d_tag))
			continue;
		d.d_un.d_ptr =
			icf_new_target(a, icf_unit_at(a->prog, d.d_un.d_ptr), d.d_un.d_ptr, false);
		memcpy(p + off, &d, sizeof d);
	}
	return NULL;
}

struct elfrw_err *icf_apply_data(struct icf_apply *a)
{
	for (size_t i = 0; i < a->prog->dataref.len; i++) {
		const struct icf_dataref *d = &a->prog->dataref.data[i];
		ELFRW_TRY(d->dynamic ? set_dynamic(a, d) : set_field(a, d));
	}
	ELFRW_TRY(set_dynamic_section(a));
	uint64_t entry = a->prog->img->ehdr.e_entry;
	if (entry)
		a->out->entry = icf_new_target(a, icf_unit_at(a->prog, entry), entry, false);
	return NULL;
}
