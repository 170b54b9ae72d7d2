/* marks.c: where linker scripts delimit code inside of a section.
 *
 * With `__hot_start = .; *(.text.hot*) __hot_end = .;` a program can ask in which part of the code
 * a function's address lies.  A thunk is the function's address, so it must lie in the same part.
 * The function at the start of a part stays, since the mark goes where the function goes.
 * Such a mark is a symbol without type and size, at the beginning of a function or outside of
 * functions, that code or data refers to: by relocations or, if none were kept, by its address.
 * Delimiters of whole sections (__start_NAME) are in icf_exec.named.  Cost: one scan of the
 * relocations. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/fold/fold.h"
#include <stdlib.h>
#include <string.h>

static bool may_be_mark(const struct icf_program *prog, const struct icf_symbol *s)
{
	if (s->type != STT_NOTYPE || s->size)
		return false;
	uint32_t k = icf_unit_at(prog, s->value);
	return k == ICF_NONE || (prog->unit.data[k].start == s->value &&
				 (prog->unit.data[k].flags & ICF_UNIT_FUNC_SYMBOL));
}

#define POSSIBLE 1 /* it has neither type nor size */
#define NAMED    2

/* Marks each possible symbol of .symtab that a relocation of loaded bytes refers to, except by a
 * call. */
static void name_by_relocs(const struct elfrw_image *img, uint8_t *named, size_t n)
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (s->hdr.sh_type != SHT_RELA || !s->data || s->hdr.sh_link != img->symtab ||
		    s->hdr.sh_info >= img->n_sections ||
		    !(img->section[s->hdr.sh_info].hdr.sh_flags & SHF_ALLOC))
			continue;
		for (size_t k = 0; k < s->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			if (ELF64_R_SYM(r.r_info) < n && named[ELF64_R_SYM(r.r_info)] == POSSIBLE &&
			    !img->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info)).call)
				named[ELF64_R_SYM(r.r_info)] = NAMED;
		}
	}
}

static void name_address(const struct icf_program *prog, uint64_t va, uint8_t *named)
{
	size_t i = LOWER_BOUND(0, prog->sym.len, mid, prog->sym.data[mid].value < va);
	for (; i < prog->sym.len && prog->sym.data[i].value == va; i++)
		named[i] = NAMED;
}

/* The same by addresses; NAMED is indexed as prog->sym is. */
static void name_by_refs(const struct icf_program *prog, uint8_t *named)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].kind != ICF_REF_BRANCH)
				name_address(prog, ref[r].target, named);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		name_address(prog, prog->dataref.data[i].target, named);
}

struct elfrw_err *icf_find_marks(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	size_t n = elfrw_symbols_count(&img->section[img->symtab]);
	uint8_t *named = n ? calloc(n > prog->sym.len ? n : prog->sym.len, 1) : NULL;
	struct elfrw_err *err = n && !named ? &elfrw_err_nomem : NULL;
	for (size_t i = 0; named && i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		if (!prog->inferred && s->index < n && s->type == STT_NOTYPE && !s->size)
			named[s->index] = POSSIBLE;
	}
	if (named && prog->inferred)
		name_by_refs(prog, named);
	else if (named)
		name_by_relocs(img, named, n);
	for (size_t i = 0; named && !err && i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		size_t k = prog->inferred ? i : s->index;
		if (k >= n || named[k] != NAMED || !may_be_mark(prog, s))
			continue;
		uint32_t u = icf_unit_at(prog, s->value);
		if (u != ICF_NONE && prog->unit.data[u].reason == ICF_OK)
			prog->unit.data[u].reason = ICF_NAMED_SECTION;
		uint64_t *p = VEC_PUSH(&prog->mark);
		if (p)
			*p = s->value;
		else
			err = &elfrw_err_nomem;
	}
	free(named);
	return err;
}

size_t icf_marks_before(const struct icf_program *prog, uint64_t va)
{
	return LOWER_BOUND(0, prog->mark.len, mid, prog->mark.data[mid] <= va);
}
