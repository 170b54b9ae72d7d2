/* means.c: what addresses mean: units, places, imports.
 *
 * A slot and a stub of a PLT mean what the slot holds, or what the loader puts there. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/hash/state.h"
#include "icf/program/unit.h"
#include <string.h>

uint32_t icf_hash_dynreloc_symbol(const struct icf_program *prog, const struct icf_dynreloc *d)
{
	const struct elfrw_section *s = &prog->img->section[d->shndx];
	Elf64_Rela r = { 0 };
	if (!d->relr && (uint64_t)d->index < s->hdr.sh_size / sizeof r)
		memcpy(&r, s->data + d->index * sizeof r, sizeof r);
	return (uint32_t)ELF64_R_SYM(r.r_info);
}

bool icf_hash_is_slot(const struct icf_hasher *h, uint64_t va, bool taken)
{
	const struct elfrw_section *s =
		&h->prog->img->section[elfrw_image_section_at(h->prog->img, va)];
	if (!s->name || (strcmp(s->name, ".got") != 0 && strncmp(s->name, ".got.", 5) != 0))
		return false;
	const struct icf_dynreloc *d = taken ? icf_dynreloc_at(h->prog, va) : NULL;
	return !taken || (d && d->kind == ELFRW_RELOC_TLS);
}

/* The node of VA; no stub is looked through. */
static struct icf_means node_at(const struct icf_hasher *h, uint64_t va)
{
	uint32_t u = icf_unit_at(h->prog, va);
	if (u != ICF_NONE)
		return (struct icf_means){ .kind = ICF_TO_NODE,
					   .node = u,
					   .off = va - h->prog->unit.data[u].start };
	size_t from = 0, to = va ? h->place.len : 0;
	if (va)
		elfrw_starts_range(&h->place_index, va - 1, &from, &to);
	size_t k = LOWER_BOUND(from, to, mid, h->place.data[mid].va < va);
	const struct icf_place *place = k < h->place.len ? &h->place.data[k] : NULL;
	/* Linkers differ in whether a word of data names the copy or the original. */
	if (place && place->va == va && place->copy)
		return (struct icf_means){ .kind = ICF_TO_IMPORT,
					   .sym = place->sym,
					   .off = va - place->end };
	if (place && place->va == va)
		return (struct icf_means){ .kind = ICF_TO_NODE, .node = h->n_units + (uint32_t)k };
	return (struct icf_means){ .kind = ICF_TO_NUMBER };
}

size_t icf_hash_first_dataref(const struct icf_hasher *h, uint64_t va)
{
	const struct icf_program *prog = h->prog;
	size_t from = 0, to = va ? prog->dataref.len : 0;
	if (va)
		elfrw_starts_range(&h->dataref_index, va - 1, &from, &to);
	return LOWER_BOUND(from, to, mid, prog->dataref.data[mid].place < va);
}

const struct icf_dataref *icf_hash_dataref_at(const struct icf_hasher *h, uint64_t va)
{
	size_t i = icf_hash_first_dataref(h, va);
	const struct icf_dataref *d = &h->prog->dataref.data[i];
	return i < h->prog->dataref.len && d->place == va ? d : NULL;
}

static bool read_word(const struct icf_hasher *h, uint64_t va, const struct icf_dynreloc *d,
		      struct icf_means *ret)
{
	const struct icf_program *prog = h->prog;
	if (d && d->kind == ELFRW_RELOC_NONE)
		return false;
	if (d && d->kind != ELFRW_RELOC_RELATIVE && d->kind != ELFRW_RELOC_IRELATIVE) {
		uint32_t sym = icf_hash_dynreloc_symbol(prog, d);
		*ret = (struct icf_means){ .kind = sym ? ICF_TO_IMPORT : ICF_TO_NUMBER,
					   .sym = sym,
					   .off = d->addend };
		return true;
	}
	const struct icf_dataref *ref = d ? NULL : icf_hash_dataref_at(h, va);
	const uint8_t *p = d || prog->img->pic ? NULL : elfrw_image_at(prog->img, va, 8);
	uint64_t to = 0;
	if (d)
		to = d->addend;
	else if (ref && ref->size == 8)
		to = ref->target;
	else if (p && (va & 7) == 0)
		to = elfrw_get64(p);
	*ret = node_at(h, to);
	return to && ret->kind != ICF_TO_NUMBER;
}

bool icf_hash_known_word(const struct icf_hasher *h, uint64_t va, const struct icf_dynreloc *d,
			 struct icf_means *ret)
{
	if (!read_word(h, va, d, ret))
		return false;
	if (ret->kind == ICF_TO_NODE && ret->node < h->n_units)
		*ret = icf_hash_resolve(h, h->prog->unit.data[ret->node].start + ret->off);
	return true;
}

bool icf_hash_word(const struct icf_hasher *h, uint64_t va, struct icf_means *ret)
{
	return icf_hash_known_word(h, va, icf_dynreloc_at(h->prog, va), ret);
}

struct icf_means icf_hash_slot(const struct icf_hasher *h, uint64_t va)
{
	struct icf_means m;
	return icf_hash_word(h, va, &m) ? m : (struct icf_means){ .kind = ICF_TO_NUMBER };
}

struct icf_means icf_hash_resolve(const struct icf_hasher *h, uint64_t va)
{
	const struct icf_program *prog = h->prog;
	struct icf_means m = node_at(h, va), held;
	uint64_t slot;
	if (m.kind != ICF_TO_NODE || m.node >= h->n_units)
		return m;
	const struct icf_unit *u = &prog->unit.data[m.node];
	if (!prog->exec.data[u->sec].linkage ||
	    !prog->arch->read_stub(icf_unit_bytes(prog, u) + m.off, u->end - va, va, &slot) ||
	    !read_word(h, slot, icf_dynreloc_at(prog, slot), &held))
		return m;
	return held;
}
