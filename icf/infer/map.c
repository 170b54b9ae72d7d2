/* map.c: the structure of data: the places that something refers to.
 *
 * The map has one bit for each byte of the data sections, so a search for the next reference tests
 * eight places at once. */
#include "elfrw/symtab.h"
#include "icf/infer/parts.h"
#include <stdlib.h>
#include <string.h>

void icf_bits_deinit(struct icf_bits *b)
{
	free(b->bits);
	*b = (struct icf_bits){ 0 };
}

bool icf_bits_init(struct icf_bits *b, uint64_t lo, uint64_t hi)
{
	*b = (struct icf_bits){ lo, hi, calloc(((hi - lo) >> 3) + 9, 1) };
	return b->bits != NULL;
}

static bool is_data(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) && !(s->hdr.sh_flags & (SHF_EXECINSTR | SHF_TLS)) &&
	       s->hdr.sh_size;
}

static void name_symbols(const struct elfrw_image *img, uint32_t shndx, struct icf_bits *named)
{
	const struct elfrw_section *s = &img->section[shndx];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_shndx != SHN_UNDEF && sym.st_shndx < SHN_LORESERVE &&
		    ELF64_ST_TYPE(sym.st_info) != STT_TLS)
			icf_set_bit(named, sym.st_value);
	}
}

static bool mark_entries(const struct icf_program *prog, struct icf_bits *entry)
{
	const size_t n = prog->exec.len;
	if (!icf_bits_init(entry, n ? prog->exec.data[0].start : 0,
			   n ? prog->exec.data[n - 1].end : 0))
		return false;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		icf_set_bit(entry, prog->unit.data[i].start);
	return true;
}

/* What code refers to. */
static bool name_refs(const struct icf_program *prog, struct icf_bits *named)
{
	struct icf_places half = { 0 };
	bool ok = true;
	for (uint32_t i = 0; i < prog->unit.len && ok; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].kind != ICF_REF_BRANCH && !icf_names_page(&ref[r]))
				icf_set_bit(named, ref[r].target);
		half.v.len = 0;
		ok = icf_push_half_names(prog, &prog->unit.data[i], &half, NULL);
		for (size_t k = 0; k < half.v.len; k++)
			icf_set_bit(named, half.v.data[k]);
	}
	VEC_FREE(&half.v);
	return ok;
}

struct elfrw_err *icf_data_map_init(const struct icf_program *prog, struct icf_data_map *map)
{
	uint64_t lo = UINT64_MAX, hi = 0, sum = 0;
	*map = (struct icf_data_map){ 0 };
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		if (!is_data(s) || !s->data)
			continue;
		lo = s->hdr.sh_addr < lo ? s->hdr.sh_addr : lo;
		hi = s->hdr.sh_addr + s->hdr.sh_size > hi ? s->hdr.sh_addr + s->hdr.sh_size : hi;
		sum += s->hdr.sh_size;
	}
	if (lo >= hi)
		lo = hi = 0;
	/* Data is in the file, so the file's size bounds its span, except for gaps between
	 * segments. */
	if (hi - lo > sum + 2 * (uint64_t)prog->img->size + (1u << 26))
		return elfrw_error("data sections are too far apart");
	lo &= ~(uint64_t)7; /* so that the places of a word are in one byte */
	if (!icf_bits_init(&map->named, lo, hi) || !icf_bits_init(&map->table, lo, hi) ||
	    !mark_entries(prog, &map->entry)) {
		icf_data_map_deinit(map);
		return &elfrw_err_nomem;
	}
	if (!name_refs(prog, &map->named)) {
		icf_data_map_deinit(map);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < prog->dynreloc.len; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			icf_set_bit(&map->named, prog->dynreloc.data[i].addend);
	name_symbols(prog->img, prog->img->symtab, &map->named);
	name_symbols(prog->img, prog->img->dynsym, &map->named);
	for (uint32_t i = 1; i < prog->img->n_sections; i++)
		if (is_data(&prog->img->section[i]))
			icf_set_bit(&map->named, prog->img->section[i].hdr.sh_addr);
	return NULL;
}

void icf_data_map_deinit(struct icf_data_map *map)
{
	icf_bits_deinit(&map->named);
	icf_bits_deinit(&map->table);
	icf_bits_deinit(&map->entry);
}

uint64_t icf_next_named(const struct icf_program *prog, const struct icf_data_map *map, uint64_t va,
			uint64_t most)
{
	uint32_t shndx = elfrw_image_section_at(prog->img, va);
	uint64_t end = shndx ? prog->img->section[shndx].hdr.sh_addr +
				       prog->img->section[shndx].hdr.sh_size
			     : va;
	if (end - va > most)
		end = va + most;
	for (uint64_t p = va + 1; p < end;) {
		uint64_t off = p - map->named.lo;
		if (p < map->named.lo || p >= map->named.hi)
			return end;
		if (!(off & 7) && !map->named.bits[off >> 3]) {
			p += 8;
			continue;
		}
		if (icf_bit(&map->named, p))
			return p;
		p++;
	}
	return end;
}

bool icf_last_named(const struct icf_data_map *map, uint64_t floor, uint64_t *va)
{
	const struct icf_bits *named = &map->named;
	for (uint64_t p = *va; p > floor;) {
		p--;
		while (p > floor + 8 && p - named->lo < named->hi - named->lo &&
		       ((p - named->lo) & 7) == 7 && !named->bits[(p - named->lo) >> 3])
			p -= 8;
		if (icf_bit(named, p)) {
			*va = p;
			return true;
		}
	}
	return false;
}
