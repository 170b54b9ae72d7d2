/* data.c: code addresses in data: fields, jump tables, dynamic relocations, the dynamic section,
 * the entry point.  Data does not move, so a field changes only as its target moves. */
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include "icf/apply/apply.h"
#include "icf/refs/guard.h"
#include <stdlib.h>
#include <string.h>

static struct elfrw_err *too_far(const struct icf_dataref *d)
{
	return elfrw_error("field at 0x%llx cannot hold its new value",
			   (unsigned long long)d->place);
}

/* The new target of a field or addend.  A vtable slot and the like mostly refer directly to the
 * code; all others refer to the address that stands for the function. */
static uint64_t new_target(const struct icf_apply *a, const struct icf_dataref *d)
{
	return icf_new_target(a, d->unit, d->target, icf_means_entry(a->prog, d));
}

/* Does D lie in an object that nothing reaches, and lead to a function that is gone?  Linkers write
 * zero for what they discard. */
static bool is_lost(const struct icf_apply *a, const struct icf_dataref *d)
{
	return icf_is_removed(a, d->unit) && icf_in_dead(a->prog, d->place);
}

static struct elfrw_err *set_field(struct icf_apply *a, const struct icf_dataref *d)
{
	uint64_t to = new_target(a, d);
	bool lost = is_lost(a, d);
	/* Nothing reads the tables of a function that is gone. */
	if (!lost && (to == d->target || d->left || icf_is_removed(a, d->unit)))
		return NULL;
	uint8_t *p;
	ELFRW_TRY(elfrw_output_at(a->out, d->place, d->size, &p));
	if (!p)
		return elfrw_error("address 0x%llx, which refers to code, is not in the file",
				   (unsigned long long)d->place);
	if (lost) {
		elfrw_put_le(p, 0, d->size);
		return NULL;
	}
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
	/* If a lost word's relocation cannot go, the word becomes the address of the file's header.
	 */
	uint64_t to = is_lost(a, d) ? 0 : new_target(a, d);
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

static uint64_t dynamic_value(const struct elfrw_image *img, int64_t tag)
{
	const struct elfrw_section *s = &img->section[img->dynamic];
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + off, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == tag)
			return d.d_un.d_val;
	}
	return 0;
}

/* The section that DT_RELA delimits, if nothing else does; or 0.  A program without a dynamic
 * linker finds its table by symbols. */
static uint32_t find_rela(const struct elfrw_image *img)
{
	uint64_t start = dynamic_value(img, DT_RELA), size = dynamic_value(img, DT_RELASZ);
	uint32_t ret = 0;
	for (uint32_t i = 1; i < img->n_sections && !ret; i++)
		if (img->section[i].hdr.sh_type == SHT_RELA && img->section[i].data &&
		    (img->section[i].hdr.sh_flags & SHF_ALLOC) &&
		    img->section[i].hdr.sh_addr == start && img->section[i].hdr.sh_size == size)
			ret = i;
	for (struct elfrw_all_symbols it = { .img = img }; ret && elfrw_all_symbols_next(&it);)
		if (it.sym.st_shndx == ret && ELF64_ST_TYPE(it.sym.st_info) != STT_SECTION)
			ret = 0;
	return ret;
}

/* Removes the relocations of lost words.  Their places are those of data that nothing reaches, so
 * the dynamic linker need not write there. */
static struct elfrw_err *drop_lost(struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	uint32_t shndx = img->dynamic && img->section[img->dynamic].data && a->prog->dead.len
				 ? find_rela(img)
				 : 0;
	if (!shndx)
		return NULL;
	uint64_t size = img->section[shndx].hdr.sh_size, n = size / sizeof(Elf64_Rela), kept = 0,
		 lead = dynamic_value(img, DT_RELACOUNT), gone_lead = 0;
	uint8_t *new = malloc(size + 1), *p;
	if (!new)
		return &elfrw_err_nomem;
	for (uint64_t i = 0; i < n; i++) {
		Elf64_Rela r;
		memcpy(&r, img->section[shndx].data + i * sizeof r, sizeof r);
		bool relative = a->prog->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info)).kind ==
				ELFRW_RELOC_RELATIVE;
		if (relative && icf_in_dead(a->prog, r.r_offset) &&
		    icf_is_removed(a, icf_unit_at(a->prog, (uint64_t)r.r_addend)))
			gone_lead += i < lead;
		else
			memcpy(new + kept++ * sizeof r, a->out->sec[shndx].data + i * sizeof r,
			       sizeof r);
	}
	if (!kept || kept == n) { /* no section becomes empty */
		free(new);
		return NULL;
	}
	elfrw_output_replace(a->out, shndx, new, kept * sizeof(Elf64_Rela));
	ELFRW_TRY(elfrw_output_edit(a->out, img->dynamic, &p));
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= img->section[img->dynamic].hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, p + off, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELASZ)
			d.d_un.d_val = kept * sizeof(Elf64_Rela);
		else if (d.d_tag == DT_RELACOUNT)
			d.d_un.d_val -= gone_lead;
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
	ELFRW_TRY(drop_lost(a));
	uint64_t entry = a->prog->img->ehdr.e_entry;
	if (entry)
		a->out->entry = icf_new_target(a, icf_unit_at(a->prog, entry), entry, false);
	return NULL;
}
