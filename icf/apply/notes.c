/* notes.c: the build-id, SystemTap probes, and code addresses in unloaded sections that are not
 * debug information. */
#include "elfrw/base/rbuf.h"
#include "icf/apply/apply.h"
#include "icf/fold/probe.h"
#include "icf/refs/ref.h"
#include "icf/fold/unloaded.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct editing {
	struct icf_apply *a;
	uint8_t *p;    /* the section's bytes */
	uint64_t size; /* bytes written so far */
	uint64_t from; /* bytes read so far */
};

/* The new id follows from the old one and the address map: it is deterministic, and differs for
 * different results. */
static struct elfrw_err *build_id(void *arg, const struct elfrw_note *note)
{
	struct editing *e = arg;
	if (!elfrw_note_is(note, "GNU", NT_GNU_BUILD_ID))
		return NULL;
	const struct elfrw_addrmap *map = &e->a->plan->map;
	uint8_t *desc = e->p + note->desc;
	uint32_t n = note->size;
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

/* Copies a note.  A probe gets its new PC.  A probe of a folded function is dropped: the kept
 * function has the same probe. */
static struct elfrw_err *probe(void *arg, const struct elfrw_note *note)
{
	struct editing *e = arg;
	uint8_t *to = e->p + e->size;
	e->from = note->end;
	if (icf_is_probe(note)) {
		uint64_t pc = elfrw_get64(e->p + note->desc);
		uint32_t unit = icf_unit_at(e->a->prog, pc);
		if (unit != ICF_NONE && e->a->plan->kept[unit] != unit)
			return NULL;
		elfrw_put64(e->p + note->desc, icf_new_target(e->a, unit, pc, false));
	}
	memmove(to, e->p + note->at, note->end - note->at);
	e->size += note->end - note->at;
	return NULL;
}

/* Notes may be dropped if they are not loaded; loaded notes all stay (icf_find_probes()). */
static struct elfrw_err *put_probes(struct icf_apply *a, uint32_t shndx)
{
	const struct elfrw_section *s = &a->prog->img->section[shndx];
	uint8_t *p;
	if (s->hdr.sh_flags & SHF_ALLOC) {
		ELFRW_TRY(elfrw_output_edit(a->out, shndx, &p));
		struct editing e = { .a = a, .p = p };
		return icf_each_note(s, probe, &e);
	}
	p = malloc(s->hdr.sh_size ? s->hdr.sh_size : 1);
	if (!p)
		return &elfrw_err_nomem;
	memcpy(p, s->data, s->hdr.sh_size);
	struct editing e = { .a = a, .p = p };
	struct elfrw_err *err = icf_each_note(s, probe, &e);
	if (err) {
		free(p);
		return err;
	}
	memmove(p + e.size, p + e.from, s->hdr.sh_size - e.from);
	elfrw_output_replace(a->out, shndx, p, e.size + (s->hdr.sh_size - e.from));
	return NULL;
}

/* Sets fields of unloaded sections (compiler annotations and the like) that a kept relocation marks
 * as addresses. */
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
		if (d.kind != ELFRW_RELOC_ABS || d.size != 8 || off > sec->hdr.sh_size ||
		    sec->hdr.sh_size - off < 8)
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
		/* The build-id stays as long as the program does. */
		bool id = strcmp(s->name, ".note.gnu.build-id") == 0 && !a->opt->keep_build_id &&
			  a->plan->changes;
		uint8_t *p;
		if (s->hdr.sh_type == SHT_NOTE && id && !a->out->sec[i].drop) {
			ELFRW_TRY(elfrw_output_edit(a->out, i, &p));
			struct editing e = { .a = a, .p = p };
			ELFRW_TRY(icf_each_note(s, build_id, &e));
		} else if (s->hdr.sh_type == SHT_NOTE && icf_has_probes(s) && !a->out->sec[i].drop)
			ELFRW_TRY(put_probes(a, i));
		/* The relocations mark the fields, whether they stay in the output or not. */
		bool kept = s->hdr.sh_type == SHT_RELA && !(s->hdr.sh_flags & SHF_ALLOC) &&
			    s->hdr.sh_info;
		if (!kept)
			continue;
		const struct elfrw_section *sec = &img->section[s->hdr.sh_info];
		/* Debug information is rewritten by its own format.  Relocations of compressed
		 * bytes refer to the decompressed bytes. */
		if (icf_unloaded_kind(img, s->hdr.sh_info) != ICF_UNLOADED_PLAIN ||
		    (sec->hdr.sh_flags & SHF_ALLOC) || !sec->data ||
		    strncmp(sec->name, ".debug_", 7) == 0 ||
		    strncmp(sec->name, ".zdebug_", 8) == 0 ||
		    (sec->hdr.sh_type == SHT_NOTE && icf_has_probes(sec)) ||
		    (sec->hdr.sh_flags & SHF_COMPRESSED) || a->out->sec[s->hdr.sh_info].drop)
			continue;
		ELFRW_TRY(unloaded_fields(a, s));
	}
	return NULL;
}
