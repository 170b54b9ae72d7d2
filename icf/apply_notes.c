/* apply_notes.c: the build-id, SystemTap probes, and code addresses in unloaded sections that are no debug information. */
#include "elfrw/rbuf.h"
#include "icf/apply.h"
#include "icf/ref.h"
#include <string.h>
#include <xxhash.h>

/* Calls FN for the descriptor of each note (gABI, "Note Section"; 4-byte alignment as all of these use). */
static struct elfrw_err *each_note(const char *name, uint8_t *data, uint64_t size,
				   struct elfrw_err *(*fn)(struct icf_apply *, const char *owner, uint32_t type, uint8_t *desc, uint32_t n),
				   struct icf_apply *a)
{
	struct elfrw_rbuf r = elfrw_rbuf(data, size);
	while (elfrw_rbuf_left(&r) >= 12) {
		uint64_t at = elfrw_rbuf_off(&r);
		uint32_t namesz = elfrw_rbuf_u32(&r), descsz = elfrw_rbuf_u32(&r), type = elfrw_rbuf_u32(&r);
		const uint8_t *owner = elfrw_rbuf_take(&r, ((uint64_t)namesz + 3) & ~(uint64_t)3);
		uint64_t desc = elfrw_rbuf_off(&r);
		elfrw_rbuf_skip(&r, descsz);
		if (r.bad)
			return elfrw_error_at(name, at, "note reaches past the end of its section");
		if (namesz && owner[namesz - 1] == 0)
			ELFRW_TRY(fn(a, (const char *)owner, type, data + desc, descsz));
		uint64_t pad = -(uint64_t)descsz & 3;
		elfrw_rbuf_skip(&r, pad < elfrw_rbuf_left(&r) ? pad : elfrw_rbuf_left(&r));
	}
	return NULL;
}

/* The new id follows from the old one and the address map: deterministic, and another one for another result. */
static struct elfrw_err *build_id(struct icf_apply *a, const char *owner, uint32_t type, uint8_t *desc, uint32_t n)
{
	if (strcmp(owner, "GNU") != 0 || type != NT_GNU_BUILD_ID)
		return NULL;
	const struct elfrw_addrmap *map = &a->plan->map;
	uint64_t h = XXH3_64bits(desc, n);
	for (uint32_t i = 0; i < map->n_units; i++) {
		uint64_t v[3] = { map->unit[i].old, map->unit[i].body, map->unit[i].entry };
		h = XXH3_64bits_withSeed(v, sizeof v, h);
	}
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t v = XXH3_64bits_withSeed(&i, sizeof i, h);
		memcpy(desc + i, &v, n - i < 8 ? n - i : 8);
	}
	return NULL;
}

/* SystemTap probe (.note.stapsdt, sys/sdt.h version 3): its PC, the link-time address of .stapsdt.base, the semaphore. */
static struct elfrw_err *probe(struct icf_apply *a, const char *owner, uint32_t type, uint8_t *desc, uint32_t n)
{
	if (strcmp(owner, "stapsdt") != 0 || type != 3 || n < 24)
		return NULL;
	uint64_t pc = elfrw_get64(desc);
	elfrw_put64(desc, icf_new_target(a, icf_unit_at(a->prog, pc), pc, false));
	return NULL;
}

/* Fields of unloaded sections (compiler annotations and the like) that a kept relocation calls an address. */
static struct elfrw_err *unloaded_fields(struct icf_apply *a, const struct elfrw_section *rel)
{
	const struct elfrw_image *img = a->prog->img;
	const struct elfrw_section *sec = &img->section[rel->hdr.sh_info];
	uint8_t *p = NULL;
	for (uint64_t k = 0; k < rel->hdr.sh_size / sizeof(Elf64_Rela); k++) {
		Elf64_Rela r;
		memcpy(&r, rel->data + k * sizeof r, sizeof r);
		struct elfrw_reloc_desc d = a->prog->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
		uint64_t off = r.r_offset - sec->hdr.sh_addr;
		if (d.kind != ELFRW_RELOC_ABS || d.size != 8 || off > sec->hdr.sh_size || sec->hdr.sh_size - off < 8)
			continue;
		uint64_t old = elfrw_get64(sec->data + off);
		if (!elfrw_addrmap_covers(&a->plan->map, old))
			continue;
		if (!p)
			ELFRW_TRY(elfrw_output_edit(a->out, rel->hdr.sh_info, &p));
		elfrw_put64(p + off, icf_new_target(a, icf_unit_at(a->prog, old), old, false));
	}
	return NULL;
}

struct elfrw_err *icf_apply_notes(struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!s->data)
			continue;
		/* As long as the program is the same, so is its name. */
		bool id = strcmp(s->name, ".note.gnu.build-id") == 0 && !a->opt->keep_build_id && a->plan->changes;
		bool sdt = strcmp(s->name, ".note.stapsdt") == 0;
		uint8_t *p;
		if (s->hdr.sh_type == SHT_NOTE && (id || sdt) && !a->out->sec[i].drop) {
			ELFRW_TRY(elfrw_output_edit(a->out, i, &p));
			ELFRW_TRY(each_note(s->name, p, s->hdr.sh_size, id ? build_id : probe, a));
		}
		/* The relocations tell, whether they stay or not. */
		bool kept = s->hdr.sh_type == SHT_RELA && !(s->hdr.sh_flags & SHF_ALLOC) && s->hdr.sh_info;
		if (!kept)
			continue;
		const struct elfrw_section *sec = &img->section[s->hdr.sh_info];
		/* Debug information is rewritten by what it says; and relocations of compressed bytes count in the others. */
		if ((sec->hdr.sh_flags & SHF_ALLOC) || !sec->data || strncmp(sec->name, ".debug_", 7) == 0 ||
		    strncmp(sec->name, ".zdebug_", 8) == 0 || strcmp(sec->name, ".note.stapsdt") == 0 || (sec->hdr.sh_flags & SHF_COMPRESSED) ||
		    a->out->sec[s->hdr.sh_info].drop)
			continue;
		ELFRW_TRY(unloaded_fields(a, s));
	}
	return NULL;
}
