/* referenced.c: which sections the layout may move: those that nothing refers to.
 *
 * Unwind tables close up; notes and .interp make room for program headers.  Program headers and
 * symbols find these sections, and follow them.  A section stays if its address appears anywhere
 * else, in code, data or dynamic relocations, or if a field in it counts from its own place.  Kept
 * relocations mark such addresses.  Without them every byte of data counts as the start of a
 * distance or address, and only notes with a known owner are believed to hold none.  Cost: one pass
 * over the data. */
#include "elfrw/note.h"
#include "icf/apply/apply.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include "icf/refs/ref.h"
#include <stdlib.h>
#include <string.h>

static bool is_unwind(const struct elfrw_section *s)
{
	return strncmp(s->name, ".eh_frame", 9) == 0 ||
	       strncmp(s->name, ".gcc_except_table", 17) == 0;
}

static bool is_note(const struct elfrw_section *s)
{
	return s->hdr.sh_type == SHT_NOTE || strcmp(s->name, ".interp") == 0;
}

static bool is_candidate(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) &&
	       (is_note(s) || strncmp(s->name, ".eh_frame", 9) == 0 ||
		strcmp(s->name, ".gcc_except_table") == 0);
}

/* Sections that may move, and whether something refers to them. */
struct candidate {
	uint64_t lo, size;
	uint32_t shndx;
	bool hit;
};

struct candidates {
	struct candidate *data;
	size_t n;
	uint64_t lo, span; /* all of them lie within [lo, lo + span) */
};

static void add_candidate(struct candidates *c, uint32_t shndx, const struct elfrw_section *s)
{
	const uint64_t lo = s->hdr.sh_addr, end = lo + s->hdr.sh_size, old = c->lo + c->span;
	c->lo = c->n && c->lo < lo ? c->lo : lo;
	c->span = (c->n && old > end ? old : end) - c->lo;
	c->data[c->n++] = (struct candidate){ lo, s->hdr.sh_size, shndx, false };
}

/* Something refers to TO. */
static inline void refer(struct candidates *c, uint64_t to)
{
	if (to - c->lo >= c->span)
		return;
	for (size_t i = 0; i < c->n; i++)
		c->data[i].hit |= to - c->data[i].lo < c->data[i].size;
}

static struct elfrw_err *by_code(struct icf_apply *a, struct candidates *c)
{
	const struct icf_program *prog = a->prog;
	const struct elfrw_section *frame = elfrw_image_section(prog->img, ".eh_frame");
	a->frame_ref.len = 0;
	const uint64_t lo = frame ? frame->hdr.sh_addr : 0, size = frame ? frame->hdr.sh_size : 0;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++) {
			refer(c, ref[r].target);
			if (ref[r].target - lo >= size || ref[r].unit != ICF_NONE)
				continue;
			struct icf_frame_ref *slot = VEC_PUSH(&a->frame_ref);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = (struct icf_frame_ref){ u->start + ref[r].off, ref[r].target,
							prog->exec.data[u->sec].shndx };
		}
	}
	return NULL;
}

/* By kept relocations of data; a note with relocations stays.  Unwind tables are rewritten by their
 * own format. */
static void by_kept(const struct icf_program *prog, struct candidates *c)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *rel = &img->section[i];
		if (rel->hdr.sh_type != SHT_RELA || (rel->hdr.sh_flags & SHF_ALLOC) || !rel->data ||
		    !rel->hdr.sh_info || rel->hdr.sh_info >= img->n_sections ||
		    rel->hdr.sh_link != img->symtab || !img->section[img->symtab].data)
			continue;
		const struct elfrw_section *at = &img->section[rel->hdr.sh_info],
					   *syms = &img->section[img->symtab];
		if (!(at->hdr.sh_flags & SHF_ALLOC) || (at->hdr.sh_flags & SHF_EXECINSTR) ||
		    is_unwind(at))
			continue;
		for (size_t k = 0; k < c->n; k++)
			c->data[k].hit |= rel->hdr.sh_info == c->data[k].shndx && rel->hdr.sh_size;
		for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= rel->hdr.sh_size;
		     off += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			Elf64_Sym sym;
			memcpy(&r, rel->data + off, sizeof r);
			if (!elfrw_symbol(syms, ELF64_R_SYM(r.r_info), &sym))
				continue;
			/* The addend of a distance counts from the end of its field, or from
			 * elsewhere. */
			uint64_t to = sym.st_value + (uint64_t)r.r_addend;
			refer(c, to);
			refer(c, to + 4);
			for (size_t k = 0; k < c->n; k++)
				c->data[k].hit |= sym.st_shndx == c->data[k].shndx;
		}
	}
}

#define BLOCK 4096 /* bytes of data that are first looked at together */

/* Of the words that begin in the BLOCK bytes at P, is one below SPAN, with ADD added, and, if
 * PLACE, its offset as well?  A loop that the compiler does four at a time. */
static inline bool any_below(const uint8_t *p, uint32_t add, uint32_t span, bool place)
{
	uint32_t word[BLOCK / 4], any = 0;
	for (uint32_t byte = 0; byte < 4; byte++) {
		memcpy(word, p + byte, sizeof word);
		for (uint32_t k = 0; k < BLOCK / 4; k++)
			any |= word[k] + add + (place ? byte + 4 * k : 0) < span;
	}
	return any;
}

/* May one of the words that begin in the BLOCK bytes at P and VA refer to a candidate?  Only the
 * low halves of addresses are looked at. */
static bool may_refer(const struct candidates *c, bool pic, const uint8_t *p, uint64_t va)
{
	const uint32_t lo = (uint32_t)c->lo, span = (uint32_t)c->span;
	return c->span > UINT32_MAX - 4 || any_below(p, (uint32_t)va - (lo - 4), span + 4, true) ||
	       (!pic && any_below(p, -lo, span, false));
}

/* Without relocations: by words that may be a distance from their place or end, or an address. */
static void by_words(const struct elfrw_section *s, bool pic, struct candidates *c)
{
	for (uint64_t off = 0, end; off + 4 <= s->hdr.sh_size; off = end) {
		const bool whole = s->hdr.sh_size - off >= BLOCK + 4;
		end = whole ? off + BLOCK : s->hdr.sh_size - 3;
		if (whole && !may_refer(c, pic, s->data + off, s->hdr.sh_addr + off))
			continue;
		for (uint64_t at = off; at < end; at++) {
			uint32_t w = elfrw_get32(s->data + at);
			uint64_t to = s->hdr.sh_addr + at + (uint64_t)(int64_t)(int32_t)w;
			refer(c, to);
			refer(c, to + 4);
			if (!pic)
				refer(c, w);
		}
	}
}

static void by_data(const struct icf_program *prog, struct candidates *c)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections && c->n; i++) {
		const struct elfrw_section *s = &img->section[i];
		if ((s->hdr.sh_flags & SHF_ALLOC) && !(s->hdr.sh_flags & SHF_EXECINSTR) &&
		    s->hdr.sh_type == SHT_PROGBITS && s->data && !is_unwind(s) && !is_note(s))
			by_words(s, img->pic, c);
	}
}

/* Does the note section S hold only notes that are known to have neither addresses nor
 * distances? */
static bool is_known_note(const struct elfrw_section *s)
{
	static const char *const known[] = {
		"GNU", "FDO", "Android", "FreeBSD", "NetBSD", "OpenBSD"
	};
	if (s->hdr.sh_type != SHT_NOTE)
		return true;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->data ? s->hdr.sh_size : 0);
	struct elfrw_note note;
	while (elfrw_note_next(&r, s->hdr.sh_addralign == 8 ? 8 : 4, &note)) {
		bool found = false;
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			found |= elfrw_note_is(&note, known[k], note.type);
		if (!found)
			return false;
	}
	return !r.bad;
}

/* The notes among FROM that nothing was found to refer to. */
static void take_notes(const struct icf_program *prog, struct candidates *from,
		       struct candidates *notes)
{
	for (size_t i = 0; i < from->n; i++) {
		struct candidate *c = &from->data[i];
		const struct elfrw_section *s = &prog->img->section[c->shndx];
		if (c->hit || !is_note(s))
			continue;
		c->hit = !is_known_note(s);
		if (!c->hit)
			add_candidate(notes, c->shndx, s);
	}
}

struct elfrw_err *icf_apply_referenced(struct icf_apply *a)
{
	const struct icf_program *prog = a->prog;
	const uint32_t n = prog->img->n_sections;
	struct candidate *data = calloc(2 * (size_t)n + 1, sizeof *data);
	struct candidates all = { .data = data }, notes = { .data = data + n };
	if (!data)
		return &elfrw_err_nomem;
	for (uint32_t s = 1; s < n; s++)
		if (is_candidate(&prog->img->section[s]))
			add_candidate(&all, s, &prog->img->section[s]);
	struct elfrw_err *err = by_code(a, &all);
	for (size_t i = 0; i < prog->dynreloc.len; i++) {
		refer(&all, prog->dynreloc.data[i].addend);
		refer(&all, prog->dynreloc.data[i].place);
	}
	by_kept(prog, &all);
	if (prog->inferred) {
		take_notes(prog, &all, &notes);
		by_data(prog, &notes);
	}
	for (size_t i = 0; i < all.n; i++)
		a->out->sec[all.data[i].shndx].referenced = all.data[i].hit;
	for (size_t i = 0; i < notes.n; i++)
		a->out->sec[notes.data[i].shndx].referenced |= notes.data[i].hit;
	free(data);
	return err;
}
