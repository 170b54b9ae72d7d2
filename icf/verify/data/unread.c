/* unread.c: jump tables of removed functions, which led into them: nothing else refers to such a
 * table.
 *
 * References of code that is there were noted as they were read (objref).  This file reads the
 * relocations of data and of code that is not understood, the dynamic relocations and the dynamic
 * symbols, and in files with fixed addresses the words of sections that have no relocations. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>

struct unread {
	uint64_t lo, hi; /* of a table */
};

struct search {
	struct icf_v *v;
	VEC(struct unread) table; /* sorted */
};

static int order(const void *a, const void *b)
{
	const struct unread *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static struct elfrw_err *find_tables(struct search *s)
{
	const struct icf_v *v = s->v;
	for (size_t i = 0; i < v->words.table.len; i++) {
		const struct icf_vtable *t = &v->words.table.data[i];
		bool led = false;
		if (!icf_v_removed(&v->claim, t->owner) || !t->n)
			continue;
		const struct icf_vword *w = &v->words.word.data[t->word];
		for (uint32_t k = 0; k < t->n && !led; k++)
			led = icf_v_removed(&v->claim, icf_v_find(&v->claim, w[k].target));
		struct unread *slot = led ? VEC_PUSH(&s->table) : NULL;
		if (led && !slot)
			return &elfrw_err_nomem;
		if (led)
			*slot = (struct unread){ t->base, w[t->n - 1].place + w[t->n - 1].size };
	}
	if (s->table.len)
		qsort(s->table.data, s->table.len, sizeof *s->table.data, order);
	return NULL;
}

static bool refer(struct search *s, uint64_t place, uint64_t to)
{
	size_t i = LOWER_BOUND(0, s->table.len, mid, s->table.data[mid].lo <= to);
	if (!i || to >= s->table.data[i - 1].hi)
		return false;
	icf_vlog_bad(
		&s->v->log, ICF_VC_REMOVED,
		"removed: table at 0x%llx, which led into removed code: expected one that only removed code refers to, found a reference at 0x%llx",
		ICF_VX(s->table.data[i - 1].lo), ICF_VX(place));
	return true;
}

static void read_reloc(struct search *s, bool code, uint32_t symtab, const Elf64_Rela *r)
{
	const struct icf_vclaim *c = &s->v->claim;
	uint32_t u = code ? icf_v_find(c, r->r_offset) : ICF_V_NONE;
	Elf64_Sym sym;
	if ((u != ICF_V_NONE && !c->unit.data[u].opaque) ||
	    !elfrw_reloc_symbol(&c->in, symtab, r, &sym) || sym.st_shndx == SHN_UNDEF ||
	    ELF64_ST_TYPE(sym.st_info) == STT_TLS)
		return;
	if (ELF64_ST_TYPE(sym.st_info) != STT_SECTION && refer(s, r->r_offset, sym.st_value))
		return;
	/* In code, a distance counts from the end of its instruction. */
	for (unsigned k = 0; k <= (code ? 8 : 0); k++)
		if (refer(s, r->r_offset, sym.st_value + (uint64_t)r->r_addend + k))
			return;
}

static struct elfrw_err *read_section(struct search *s, uint32_t shndx)
{
	const struct elfrw_image *in = &s->v->claim.in;
	const struct elfrw_section *sec = &in->section[shndx];
	bool code = sec->hdr.sh_flags & SHF_EXECINSTR;
	struct elfrw_relocs rel = { 0 };
	struct elfrw_err *err = elfrw_relocs_open(&rel, in, shndx);
	for (size_t r = 0; r < rel.n && !err; r++)
		read_reloc(s, code, rel.symtab, &rel.rela[r]);
	bool words = !err && !rel.n && !in->pic && !code && sec->data;
	for (uint64_t off = 0; words && off + 8 <= sec->hdr.sh_size; off += 8)
		refer(s, sec->hdr.sh_addr + off, elfrw_get64(sec->data + off));
	elfrw_relocs_close(&rel);
	return err;
}

static struct elfrw_err *read_all(struct search *s)
{
	struct icf_v *v = s->v;
	const struct elfrw_image *in = &v->claim.in;
	for (size_t i = 0; i < v->objref.len; i++)
		refer(s, v->objref.data[i].place, v->objref.data[i].target);
	for (size_t i = 0; i < v->words.dynreloc.len; i++)
		refer(s, v->words.dynreloc.data[i].place, v->words.dynreloc.data[i].addend);
	for (struct elfrw_all_symbols it = { .img = in }; elfrw_all_symbols_next(&it);)
		if (in->section[it.table].hdr.sh_type == SHT_DYNSYM &&
		    it.sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(it.sym.st_info) != STT_TLS)
			refer(s, it.sym.st_value, it.sym.st_value);
	for (uint32_t i = 1; i < in->n_sections; i++)
		if (in->section[i].hdr.sh_flags & SHF_ALLOC)
			ELFRW_TRY(read_section(s, i));
	return NULL;
}

struct elfrw_err *icf_v_check_unread(struct icf_v *v)
{
	struct search s = { .v = v };
	struct elfrw_err *err = v->claim.n_removed ? find_tables(&s) : NULL;
	if (!err && s.table.len)
		err = read_all(&s);
	VEC_FREE(&s.table);
	return err == &elfrw_err_nomem ? err : icf_v_named(v->claim.in.path, err);
}
