/* frame.c: addresses in code that lie in .eh_frame.
 *
 * Start-up code registers a table by the address of its first record (crtstuff's
 * __EH_FRAME_BEGIN__); that address follows the record.  Any other such address is that of data
 * before or behind the table with a number added to it, as compilers write the end of a loop or an
 * array whose index does not begin with 0; it stays as it is.  A kept relocation tells which one it
 * is: by its symbol.  Without relocations, a record must begin there, and the program must be one
 * that registers tables: it names the function that does so, or has no dynamic linker. */
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/apply/apply.h"
#include <stdlib.h>
#include <string.h>

static bool names_registration(const struct elfrw_image *img, uint32_t shndx)
{
	static const char name[] = "__register_frame";
	const struct elfrw_section *s = &img->section[shndx];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); shndx && elfrw_symbols_next(&it);) {
		const char *is = elfrw_image_string(img, s->hdr.sh_link, it.sym.st_name);
		if (is && strncmp(is, name, sizeof name - 1) == 0)
			return true;
	}
	return false;
}

static bool registers_tables(const struct elfrw_image *img)
{
	return !img->dynamic || names_registration(img, img->symtab) ||
	       names_registration(img, img->dynsym);
}

/* Does one of the relocations REL of the field at PLACE name the section FRAME? */
static bool is_named(const struct elfrw_image *img, const struct elfrw_relocs *rel, uint64_t place,
		     uint32_t frame)
{
	for (size_t r = elfrw_relocs_from(rel, place); r < rel->n && rel->rela[r].r_offset == place;
	     r++) {
		Elf64_Sym sym;
		if (elfrw_reloc_symbol(img, rel->symtab, &rel->rela[r], &sym) &&
		    sym.st_shndx == frame)
			return true;
	}
	return false;
}

/* Keeps, of a->frame_ref, those from index FROM on up to END that relocations of section SHNDX
 * name; *N of them. */
static struct elfrw_err *take_named(struct icf_apply *a, size_t from, size_t end, uint32_t frame,
				    size_t *n)
{
	const struct elfrw_image *img = a->prog->img;
	struct elfrw_relocs rel;
	ELFRW_TRY(elfrw_relocs_open(&rel, img, a->frame_ref.data[from].shndx));
	for (size_t i = from; i < end; i++)
		if (is_named(img, &rel, a->frame_ref.data[i].place, frame))
			a->frame_ref.data[(*n)++] = a->frame_ref.data[i];
	elfrw_relocs_close(&rel);
	return NULL;
}

static bool begins_record(const struct dwr_cfi *cfi, uint64_t off)
{
	size_t f = LOWER_BOUND(0, cfi->fde.len, mid, cfi->fde.data[mid].off < off),
	       c = LOWER_BOUND(0, cfi->cie.len, mid, cfi->cie.data[mid].off < off),
	       t = LOWER_BOUND(0, cfi->terminator.len, mid, cfi->terminator.data[mid] < off);
	return (f < cfi->fde.len && cfi->fde.data[f].off == off) ||
	       (c < cfi->cie.len && cfi->cie.data[c].off == off) ||
	       (t < cfi->terminator.len && cfi->terminator.data[t] == off);
}

static int place_order(const void *a, const void *b)
{
	const struct icf_frame_ref *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

struct elfrw_err *icf_find_frame_refs(struct icf_apply *a, uint32_t frame)
{
	const struct icf_program *prog = a->prog;
	struct icf_frame_ref *ref = a->frame_ref.data;
	const size_t len = a->frame_ref.len;
	size_t n = 0;
	if (!len)
		return NULL;
	qsort(ref, len, sizeof *ref, place_order);
	const bool believed = prog->inferred && registers_tables(prog->img);
	for (size_t i = 0; i < len && prog->inferred; i++)
		if (believed && begins_record(&prog->cfi, ref[i].target - a->frame))
			ref[n++] = ref[i];
	for (size_t i = 0, end; i < len && !prog->inferred; i = end) {
		for (end = i + 1; end < len && ref[end].shndx == ref[i].shndx;)
			end++;
		ELFRW_TRY(take_named(a, i, end, frame, &n));
	}
	a->frame_ref.len = n;
	return NULL;
}

bool icf_names_record(const struct icf_apply *a, uint64_t place)
{
	size_t i = LOWER_BOUND(0, a->frame_ref.len, mid, a->frame_ref.data[mid].place < place);
	return i < a->frame_ref.len && a->frame_ref.data[i].place == place;
}
