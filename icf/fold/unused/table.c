/* table.c: see table.h.
 *
 * What refers to a table: code of other functions, at any place of the table; relocations of data,
 * and of code that is not understood; dynamic relocations; dynamic symbols; in a file with fixed
 * addresses, words that the linker made (slots of the GOT), which have no relocations.  Compilers
 * offer no tables; assembler code does.  Cost: linear in references and relocations, times
 * log(tables). */
#include "icf/fold/unused/table.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include <stdlib.h>

struct extent {
	uint64_t lo, hi;
	uint32_t table;
};

struct finder {
	const struct icf_program *prog;
	struct extent *v; /* of tables with an owner; sorted */
	size_t n;
	struct elfrw_starts at; /* of `v` */
	uint8_t *offered;
};

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->table < y->table ? -1 : x->table > y->table;
}

/* UNIT refers to VA; ICF_NONE: something else does. */
static void refer(struct finder *f, uint32_t unit, uint64_t va)
{
	size_t from, to;
	elfrw_starts_range(&f->at, va, &from, &to);
	size_t i = LOWER_BOUND(from, to, mid, f->v[mid].lo <= va);
	if (i && va < f->v[i - 1].hi && f->prog->table.data[f->v[i - 1].table].owner != unit)
		f->offered[f->v[i - 1].table] = 1;
}

static void refer_by_code(struct finder *f)
{
	const struct icf_program *prog = f->prog;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].unit == ICF_NONE)
				refer(f, i, ref[r].target);
	}
}

/* Relocation R of a section of code, or of data. */
static void refer_by_reloc(struct finder *f, bool code, uint32_t symtab, const Elf64_Rela *r)
{
	Elf64_Sym sym;
	if (!elfrw_reloc_symbol(f->prog->img, symtab, r, &sym) || sym.st_shndx == SHN_UNDEF ||
	    ELF64_ST_TYPE(sym.st_info) == STT_TLS)
		return;
	if (ELF64_ST_TYPE(sym.st_info) != STT_SECTION)
		refer(f, ICF_NONE, sym.st_value);
	/* A distance counts from the end of the instruction. */
	for (unsigned k = 0; k <= (code ? 8 : 0); k++)
		refer(f, ICF_NONE, sym.st_value + (uint64_t)r->r_addend + k);
}

static struct elfrw_err *refer_by_section(struct finder *f, uint32_t shndx)
{
	const struct elfrw_image *img = f->prog->img;
	const struct elfrw_section *s = &img->section[shndx];
	struct elfrw_relocs rel = { 0 };
	struct elfrw_err *err = elfrw_relocs_open(&rel, img, shndx);
	bool code = s->hdr.sh_flags & SHF_EXECINSTR;
	uint32_t unit = ICF_NONE;
	for (size_t r = 0; r < rel.n && !err; r++) {
		unit = code ? icf_unit_near(f->prog, rel.rela[r].r_offset, unit) : ICF_NONE;
		if (unit == ICF_NONE || f->prog->unit.data[unit].kind == ICF_UNIT_OPAQUE)
			refer_by_reloc(f, code, rel.symtab, &rel.rela[r]);
	}
	bool words = !rel.n && !img->pic && s->data && !code;
	for (uint64_t off = 0; words && !err && off + 8 <= s->hdr.sh_size; off += 8)
		refer(f, ICF_NONE, elfrw_get64(s->data + off));
	elfrw_relocs_close(&rel);
	return err;
}

static void refer_by_symbols(struct finder *f)
{
	const struct elfrw_image *img = f->prog->img;
	for (struct elfrw_symbols it =
		     elfrw_symbols(img->dynsym ? &img->section[img->dynsym] : NULL, 1);
	     elfrw_symbols_next(&it);)
		if (it.sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(it.sym.st_info) != STT_TLS)
			refer(f, ICF_NONE, it.sym.st_value);
}

struct elfrw_err *icf_find_offered_tables(const struct icf_program *prog, uint8_t *ret)
{
	struct finder f = { .prog = prog,
			    .v = malloc((prog->table.len + 1) * sizeof *f.v),
			    .offered = ret };
	struct elfrw_err *err = f.v ? NULL : &elfrw_err_nomem;
	for (uint32_t t = 0; t < prog->table.len && !err; t++) {
		const struct icf_table *x = &prog->table.data[t];
		if (x->owner == ICF_NONE || !x->n)
			continue;
		const struct icf_dataref *last = &prog->dataref.data[x->entry + x->n - 1];
		f.v[f.n++] = (struct extent){ x->base, last->place + last->size, t };
	}
	if (f.n) {
		qsort(f.v, f.n, sizeof *f.v, extent_order);
		if (!elfrw_starts_make(&f.at, &f.v->lo, sizeof *f.v, f.n))
			err = &elfrw_err_nomem;
	}
	if (f.n && !err) {
		refer_by_code(&f);
		refer_by_symbols(&f);
	}
	for (size_t i = 0; i < prog->dynreloc.len && f.n && !err; i++)
		refer(&f, ICF_NONE, prog->dynreloc.data[i].addend);
	for (uint32_t i = 1; i < prog->img->n_sections && f.n && !err; i++)
		if (prog->img->section[i].hdr.sh_flags & SHF_ALLOC)
			err = refer_by_section(&f, i);
	elfrw_blocks_deinit(&f.at.blocks);
	free(f.v);
	return err;
}
