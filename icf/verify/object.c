/* object.c: words of data that led to removed code.
 *
 * Such a word is right only in a virtual table, construction vtable or VTT (Itanium C++ ABI 2.5,
 * 2.6) that nothing reaches.  The proof goes backwards: the tables that hold such words are lost;
 * a table that refers to a lost one must be lost, too; and no reference of anything else may mean a
 * lost table.  What a reference may mean:
 *   - what its relocation's symbol names, and what its target lies in, or ends at;
 *   - unless the target is a word of a table but the first, or a type_info, and addresses have no
 *     halves or a name, or a table or type_info, says that nothing is counted from there: all
 * objects around it, as far as an input section may extend.  Weak symbols of C++ stand in sections
 * of their own, and local symbols of two object files in different ones;
 *   - of a label without type or size, and of a distance in data that counts from an unknown place:
 *     the whole section.
 * A lost table must not begin like an array of functions, which may be addressed from before its
 * start.  It must be one that no other module can name, and no symbol may stand inside of it.
 *
 * icf/fold/unused/object.c asks such questions forwards, from the roots.  Nothing is shared with
 * it.  Cost: linear in symbols and relocations, times log(objects), for each level of tables that
 * refer to tables. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>

struct object {
	uint64_t lo, hi;
	uint32_t sec;
	uint32_t home; /* the symbol of its object file's name, if known */
	bool table, info, weak;
	bool odd; /* not what a compiler makes, or known to others */
	bool lost;
};

/* A reference that may mean the objects [first, last). */
struct edge {
	uint64_t place;
	uint32_t first, last;
	uint32_t from; /* an object that is a table, or ICF_V_NONE */
};

struct search {
	struct icf_v *v;
	const struct elfrw_image *in;
	VEC(struct object) object; /* sorted by lo */
	VEC(struct edge) edge;
	uint32_t *count; /* of lost objects before each */
	struct elfrw_relocs rel;
	struct icf_ventries told; /* places of kept relocations of data, sorted */
	bool nomem;
};

static int order(const void *a, const void *b)
{
	const struct object *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi > y->hi ? -1 : x->hi < y->hi;
}

static bool is_data(const struct elfrw_image *in, uint32_t shndx)
{
	return shndx && shndx < in->n_sections && (in->section[shndx].hdr.sh_flags & SHF_ALLOC) &&
	       !(in->section[shndx].hdr.sh_flags & SHF_EXECINSTR);
}

/* May tables without users be in section S?  Not where the linker or the program finds data by
 * other ways than references. */
static bool may_hold_lost(const struct elfrw_section *s)
{
	const char *n = s->name;
	bool known = !strncmp(n, ".data", 5) || !strncmp(n, ".rodata", 7);
	return known && s->data && s->hdr.sh_type == SHT_PROGBITS &&
	       !(s->hdr.sh_flags & SHF_MERGE) && !(s->hdr.sh_flags & SHF_TLS);
}

static void read_object(struct search *s, const Elf64_Sym *sym, const char *name, uint32_t home)
{
	struct object x = { .lo = sym->st_value,
			    .hi = sym->st_value + sym->st_size,
			    .sec = sym->st_shndx,
			    .home = home };
	if (!is_data(s->in, sym->st_shndx) || ELF64_ST_TYPE(sym->st_info) != STT_OBJECT ||
	    x.hi <= x.lo)
		return;
	const struct elfrw_section *sec = &s->in->section[x.sec];
	char kind = name && !strncmp(name, "_ZT", 3) ? name[3] : 0;
	x.table = kind && strchr("VCT", kind);
	x.info = kind && strchr("IS", kind);
	x.weak = (x.table || x.info) && (ELF64_ST_BIND(sym->st_info) == STB_WEAK ||
					 ELF64_ST_BIND(sym->st_info) == STB_GNU_UNIQUE);
	x.odd = !may_hold_lost(sec) || x.lo < sec->hdr.sh_addr ||
		x.hi > sec->hdr.sh_addr + sec->hdr.sh_size;
	struct object *slot = VEC_PUSH(&s->object);
	if (slot)
		*slot = x;
	else
		s->nomem = true;
}

/* Several names of one extent are one object, and a table only if all of them say so. */
static void read_objects(struct search *s)
{
	const struct elfrw_section *tab = &s->in->section[s->in->symtab];
	size_t n = 0;
	uint32_t home = 0, last = 0;
	struct elfrw_symbols it = elfrw_symbols(s->in->symtab ? tab : NULL, 1);
	for (uint32_t k = 1; elfrw_symbols_next(&it); k++) {
		const char *name = elfrw_image_string(s->in, tab->hdr.sh_link, it.sym.st_name);
		if (ELF64_ST_BIND(it.sym.st_info) != STB_LOCAL)
			home = 0;
		else if (ELF64_ST_TYPE(it.sym.st_info) == STT_FILE)
			last = home = name && *name ? k : 0;
		read_object(s, &it.sym, name, home);
	}
	/* Behind the last name there may be symbols that only the link made local. */
	for (size_t i = 0; i < s->object.len; i++)
		s->object.data[i].home *= s->object.data[i].home != last;
	if (s->object.len)
		qsort(s->object.data, s->object.len, sizeof *s->object.data, order);
	for (size_t i = 0; i < s->object.len; i++) {
		struct object *x = &s->object.data[i], *y = n ? &s->object.data[n - 1] : NULL;
		if (y && x->lo == y->lo && x->hi == y->hi) {
			y->table &= x->table;
			y->info &= x->info;
			y->weak &= x->weak;
			y->home *= y->home == x->home;
			continue;
		}
		s->object.data[n++] = *x;
	}
	s->object.len = n;
	/* The larger of two that overlap comes first. */
	for (size_t i = 0, big = 0; i < n; i++) {
		struct object *x = &s->object.data[i], *y = &s->object.data[big];
		if (i && x->lo < y->hi)
			x->odd = y->odd = true;
		if (x->hi > y->hi)
			big = i;
	}
}

/* The first object behind VA. */
static uint32_t after(const struct search *s, uint64_t va)
{
	return (uint32_t)LOWER_BOUND(0, s->object.len, mid, s->object.data[mid].lo <= va);
}

/* The object that VA lies in, or ICF_V_NONE. */
static uint32_t inside(const struct search *s, uint64_t va)
{
	uint32_t i = after(s, va);
	return i && va < s->object.data[i - 1].hi ? i - 1 : ICF_V_NONE;
}

static void find_odd(struct search *s)
{
	bool sections = elfrw_dynrelocs_name_sections(s->in);
	for (uint32_t k = 0; sections && k < s->object.len; k++)
		s->object.data[k].odd = true;
	for (struct elfrw_all_symbols it = { .img = s->in }; elfrw_all_symbols_next(&it);) {
		unsigned type = ELF64_ST_TYPE(it.sym.st_info);
		uint32_t i = inside(s, it.sym.st_value);
		bool dynamic = s->in->section[it.table].hdr.sh_type == SHT_DYNSYM;
		if (it.sym.st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_FILE ||
		    (type == STT_SECTION && !dynamic))
			continue;
		if (i != ICF_V_NONE && (dynamic || s->object.data[i].lo != it.sym.st_value))
			s->object.data[i].odd = true;
	}
}

/* The first two words of a table are no functions. */
static void find_arrays(struct search *s)
{
	const struct icf_vwords *w = &s->v->words;
	for (uint32_t i = 0; i < s->object.len; i++) {
		struct object *x = &s->object.data[i];
		size_t k = x->table ? icf_v_word_from(w, x->lo) : w->word.len;
		for (; k < w->word.len && w->word.data[k].place < x->lo + 16; k++)
			if (w->word.data[k].size == 8 || w->word.data[k].place < x->lo + 8)
				x->table = false;
	}
}

static void add(struct search *s, uint64_t place, uint32_t first, uint32_t last)
{
	bool any = false;
	for (uint32_t i = first; i < last && !any; i++)
		any = s->object.data[i].table;
	if (!any)
		return;
	uint32_t from = inside(s, place);
	struct edge *slot = VEC_PUSH(&s->edge);
	if (!slot) {
		s->nomem = true;
		return;
	}
	bool holds = from != ICF_V_NONE && s->object.data[from].table;
	*slot = (struct edge){ place, first, last, holds ? from : ICF_V_NONE };
}

static void add_at(struct search *s, uint64_t place, uint64_t va)
{
	uint32_t i = after(s, va);
	if (i && va <= s->object.data[i - 1].hi)
		add(s, place, i - 1, i);
}

static void add_section(struct search *s, uint64_t place, uint32_t shndx)
{
	const Elf64_Shdr *h = &s->in->section[shndx].hdr;
	/* The addresses of .tbss are also those of the sections behind it. */
	if (h->sh_size && !(h->sh_flags & SHF_TLS))
		add(s, place,
		    (uint32_t)LOWER_BOUND(0, s->object.len, mid,
					  s->object.data[mid].lo < h->sh_addr),
		    after(s, h->sh_addr + h->sh_size - 1));
}

/* Is VA, by a relocation against SYM (or NULL), a place from which nothing but the object there is
 * reached?  The start of a table and, with addresses in halves, any place in an input section may
 * be an anchor that code counts from, if no name says otherwise.  The reference is at PLACE. */
static bool is_exact(const struct search *s, uint64_t place, const Elf64_Sym *sym, uint64_t va)
{
	uint32_t i = inside(s, va), from = inside(s, place);
	if (i == ICF_V_NONE)
		return false;
	const struct object *x = &s->object.data[i];
	uint64_t off = va - x->lo;
	if (sym && sym->st_value == x->lo && ELF64_ST_TYPE(sym->st_info) == STT_OBJECT)
		return x->table ? (off & 7) == 0 : x->info && !off;
	bool told = from != ICF_V_NONE && (s->object.data[from].table || s->object.data[from].info);
	if (s->in->arch->low_form && !x->weak && !told)
		return false;
	return x->table ? off && (off & 7) == 0 : x->info && !off;
}

/* X may be in the input section in which the search is, which is one of the file HOME if not 0. */
static bool joins(const struct object *x, uint32_t sec, uint32_t *home)
{
	bool other = x->home && *home && x->home != *home;
	if (x->home)
		*home = x->home;
	return x->sec == sec && !x->weak && !other;
}

/* Nothing says which object near VA is meant. */
static void add_near(struct search *s, uint64_t place, const Elf64_Sym *sym, uint64_t va)
{
	uint32_t sec = elfrw_image_section_at(s->in, va), i = after(s, va), first = i, last = i;
	const struct object *o = s->object.data;
	if (is_exact(s, place, sym, va) || !is_data(s->in, sec))
		return;
	if (i && o[i - 1].weak && va < o[i - 1].hi)
		return; /* alone in its section */
	for (uint32_t home = 0; first && joins(&o[first - 1], sec, &home);)
		first--;
	for (uint32_t home = 0; last < s->object.len && joins(&o[last], sec, &home);)
		last++;
	add(s, place, first, last);
}

/* The reference at PLACE leads to VA; its relocation's symbol is SYM, or NULL. */
static void add_reference(struct search *s, uint64_t place, const Elf64_Sym *sym, uint64_t va)
{
	unsigned type = sym ? ELF64_ST_TYPE(sym->st_info) : STT_SECTION;
	add_at(s, place, va);
	if (type == STT_TLS)
		return;
	add_near(s, place, sym, va);
	if (type == STT_SECTION || sym->st_shndx == SHN_UNDEF)
		return;
	add_at(s, place, sym->st_value);
	if (is_data(s->in, sym->st_shndx) && (type != STT_OBJECT || !sym->st_size))
		add_section(s, place, sym->st_shndx);
}

/* May a relocation against SYM, for VA or up to eight bytes more, mean a table with lost words? */
static bool is_near(const struct icf_v *v, const Elf64_Sym *sym, uint64_t va)
{
	return (sym->st_value >= v->lost_lo && sym->st_value <= v->lost_hi) ||
	       (va + 8 >= v->lost_lo && va <= v->lost_hi);
}

/* What the reference X with relocation R against SYM means: a high half alone names a page. */
static uint64_t meant(const struct search *s, const struct icf_vobjref *x, const Elf64_Rela *r,
		      const Elf64_Sym *sym)
{
	const struct elfrw_arch *arch = s->in->arch;
	uint8_t form = arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)).form;
	uint64_t to = sym->st_value + (uint64_t)r->r_addend;
	bool half = form && elfrw_form_is_high(&arch->form[form]);
	return half && to - x->target < arch->page_min ? to : x->target;
}

/* Relocations of code.  What its instructions refer to was read with them. */
static struct elfrw_err *read_code(struct search *s)
{
	struct icf_v *v = s->v;
	const struct icf_vobjref *ref = v->objref.data, *end = ref + v->objref.len;
	for (size_t e = 0; e < v->claim.exec.len; e++) {
		ELFRW_TRY(elfrw_relocs_open(&s->rel, s->in, v->claim.exec.data[e].in));
		for (; ref < end && ref->place < v->claim.exec.data[e].old_end; ref++) {
			size_t r = elfrw_relocs_from(&s->rel, ref->place);
			Elf64_Sym sym = { 0 };
			bool known =
				r < s->rel.n && s->rel.rela[r].r_offset == ref->place &&
				elfrw_reloc_symbol(s->in, s->rel.symtab, &s->rel.rela[r], &sym);
			add_reference(s, ref->place, known ? &sym : NULL,
				      known ? meant(s, ref, &s->rel.rela[r], &sym) : ref->target);
		}
		for (size_t r = 0; r < s->rel.n; r++) {
			const Elf64_Rela *x = &s->rel.rela[r];
			Elf64_Sym sym;
			if (icf_v_removed(&v->claim, icf_v_find(&v->claim, x->r_offset)) ||
			    !elfrw_reloc_symbol(s->in, s->rel.symtab, x, &sym) ||
			    !is_data(s->in, sym.st_shndx) ||
			    !is_near(v, &sym, sym.st_value + (uint64_t)x->r_addend))
				continue;
			struct icf_vobjref key = { .place = x->r_offset };
			size_t k = LOWER_BOUND(0, v->objref.len, mid,
					       v->objref.data[mid].place < key.place);
			bool read = k < v->objref.len && v->objref.data[k].place == key.place;
			if (read || ELF64_ST_TYPE(sym.st_info) != STT_SECTION)
				add_reference(s, x->r_offset, &sym,
					      read ? meant(s, &v->objref.data[k], x, &sym)
						   : sym.st_value);
			/* No instruction was read that has it.  Distances count from its end. */
			for (unsigned n = 0; n <= (s->in->arch->from_end ? 8 : 0) && !read; n++)
				add_reference(s, x->r_offset, &sym,
					      sym.st_value + (uint64_t)x->r_addend + n);
		}
		elfrw_relocs_close(&s->rel);
	}
	return NULL;
}

static void read_data_reloc(struct search *s, const struct elfrw_section *sec, uint32_t symtab,
			    const Elf64_Rela *r)
{
	struct elfrw_reloc_desc d = s->in->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	Elf64_Sym sym;
	uint64_t *slot = VEC_PUSH(&s->told.v);
	if (!slot) {
		s->nomem = true;
		return;
	}
	*slot = r->r_offset;
	if (!elfrw_reloc_symbol(s->in, symtab, r, &sym) || !is_data(s->in, sym.st_shndx))
		return;
	uint64_t to = sym.st_value + (uint64_t)r->r_addend, off = r->r_offset - sec->hdr.sh_addr;
	if (!is_near(s->v, &sym, to))
		return;
	add_reference(s, r->r_offset, &sym, to);
	if (!sec->data || d.size < 4 || off > sec->hdr.sh_size || d.size > sec->hdr.sh_size - off)
		return;
	uint64_t field = elfrw_get_le(sec->data + off, d.size);
	if (d.kind == ELFRW_RELOC_ABS) {
		if (!s->in->pic)
			add_at(s, r->r_offset, field);
		return;
	}
	add_at(s, r->r_offset,
	       r->r_offset + (d.size == 4 ? (uint64_t)(int64_t)(int32_t)field : field));
	if (!icf_v_is_unwind_name(sec->name) && ELF64_ST_TYPE(sym.st_info) == STT_SECTION)
		add_section(s, r->r_offset, sym.st_shndx);
}

static struct elfrw_err *read_data(struct search *s)
{
	const struct elfrw_image *in = s->in;
	for (uint32_t i = 1; i < in->n_sections; i++) {
		const struct elfrw_section *sec = &in->section[i];
		if (!is_data(in, i))
			continue;
		ELFRW_TRY(elfrw_relocs_open(&s->rel, in, i));
		for (size_t r = 0; r < s->rel.n; r++)
			read_data_reloc(s, sec, s->rel.symtab, &s->rel.rela[r]);
		/* In a file with fixed addresses the linker's words need no relocations. */
		for (uint64_t off = 0;
		     !s->rel.n && !in->pic && sec->data && off + 8 <= sec->hdr.sh_size; off += 8)
			add_at(s, sec->hdr.sh_addr + off, elfrw_get64(sec->data + off));
		elfrw_relocs_close(&s->rel);
	}
	if (s->told.v.len)
		qsort(s->told.v.data, s->told.v.len, sizeof *s->told.v.data, elfrw_u64_order);
	for (size_t i = 0; i < s->v->words.dynreloc.len; i++) {
		const struct icf_vdynreloc *d = &s->v->words.dynreloc.data[i];
		if (d->kind != ELFRW_RELOC_RELATIVE)
			continue;
		size_t k = LOWER_BOUND(0, s->told.v.len, mid, s->told.v.data[mid] < d->place);
		uint32_t o = inside(s, d->addend);
		add_at(s, d->place, d->addend);
		if ((k == s->told.v.len || s->told.v.data[k] != d->place) &&
		    (o == ICF_V_NONE || s->object.data[o].lo != d->addend))
			add_near(s, d->place, NULL, d->addend);
	}
	return NULL;
}

/* Any four bytes of code that is not understood may be a distance or an address. */
static void read_opaque(struct search *s)
{
	const struct icf_vclaim *c = &s->v->claim;
	for (uint32_t i = 0; i < c->unit.len; i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		const uint8_t *p =
			c->exec.data[u->exec].old_data + (u->old - c->exec.data[u->exec].old);
		for (uint64_t pos = 0; u->opaque && pos + 4 <= u->end - u->old; pos++) {
			uint64_t n = (uint64_t)(int64_t)(int32_t)elfrw_get32(p + pos);
			add_at(s, u->old + pos, n);
			for (uint64_t k = 4; k <= 8; k++)
				add_at(s, u->old + pos, u->old + pos + k + n);
		}
	}
}

/* The words that lead to removed code, except in tables that only removed code reads. */
static void find_lost(struct search *s)
{
	struct icf_v *v = s->v;
	for (size_t i = 0; i < v->words.word.len; i++) {
		struct icf_vword *w = &v->words.word.data[i];
		uint32_t owner = w->table != ICF_V_NONE ? v->words.table.data[w->table].owner
							: ICF_V_NONE,
			 o = inside(s, w->place);
		if (!icf_v_removed(&v->claim, icf_v_find(&v->claim, w->target)) ||
		    icf_v_removed(&v->claim, owner) || o == ICF_V_NONE ||
		    !s->object.data[o].table || w->place + w->size > s->object.data[o].hi)
			continue;
		w->lost = s->object.data[o].lost = true;
	}
}

static bool means_lost(const struct search *s, const struct edge *e)
{
	return s->count[e->last] != s->count[e->first];
}

/* Counts the lost objects; then those that refer to them are lost, too.  Returns whether there is
 * another one. */
static bool spread(struct search *s)
{
	bool more = false;
	for (uint32_t i = 0; i < s->object.len; i++)
		s->count[i + 1] = s->count[i] + s->object.data[i].lost;
	for (size_t i = 0; i < s->edge.len; i++) {
		const struct edge *e = &s->edge.data[i];
		if (e->from == ICF_V_NONE || s->object.data[e->from].lost || !means_lost(s, e))
			continue;
		s->object.data[e->from].lost = more = true;
	}
	return more;
}

static void bad(struct search *s, uint64_t va, const char *found, uint64_t place)
{
	icf_vlog_bad(
		&s->v->log, ICF_VC_REMOVED,
		"removed: table at 0x%llx, with words that led to removed code: expected one that nothing reaches, found %s at 0x%llx",
		ICF_VX(va), found, ICF_VX(place));
}

static void judge(struct search *s)
{
	struct icf_v *v = s->v;
	for (uint32_t i = 0; i < s->object.len; i++) {
		const struct object *x = &s->object.data[i];
		v->log.checked[ICF_VC_REMOVED] += x->lost;
		if (x->lost && x->odd)
			bad(s, x->lo, "another symbol, or no plain data", x->lo);
		else if (x->lost && (x->lo < v->lost_lo || x->hi > v->lost_hi))
			bad(s, x->lo, "a section without such words", x->lo);
	}
	for (size_t i = 0; i < s->edge.len; i++) {
		const struct edge *e = &s->edge.data[i];
		uint32_t k = e->first;
		if (e->from != ICF_V_NONE || !means_lost(s, e))
			continue;
		while (!s->object.data[k].lost)
			k++;
		bad(s, s->object.data[k].lo, "a reference", e->place);
	}
}

void icf_v_lost_range(struct icf_v *v)
{
	v->lost_lo = UINT64_MAX;
	for (size_t i = 0; i < v->words.word.len && v->claim.n_removed; i++) {
		const struct icf_vword *w = &v->words.word.data[i];
		if (!icf_v_removed(&v->claim, icf_v_find(&v->claim, w->target)))
			continue;
		const Elf64_Shdr *h =
			&v->claim.in.section[elfrw_image_section_at(&v->claim.in, w->place)].hdr;
		if (h->sh_addr < v->lost_lo)
			v->lost_lo = h->sh_addr;
		if (h->sh_addr + h->sh_size > v->lost_hi)
			v->lost_hi = h->sh_addr + h->sh_size;
	}
}

static int ref_order(const void *a, const void *b)
{
	const struct icf_vobjref *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

struct elfrw_err *icf_v_check_objects(struct icf_v *v)
{
	struct search s = { .v = v, .in = &v->claim.in };
	struct elfrw_err *err = NULL;
	if (v->lost_lo > v->lost_hi || v->claim.inferred)
		return NULL;
	read_objects(&s);
	find_odd(&s);
	find_arrays(&s);
	find_lost(&s);
	if (v->objref.len)
		qsort(v->objref.data, v->objref.len, sizeof *v->objref.data, ref_order);
	s.count = calloc(s.object.len + 1, sizeof *s.count);
	if (s.count)
		err = read_code(&s);
	if (s.count && !err)
		err = read_data(&s);
	if (s.count && !err) {
		read_opaque(&s);
		while (!s.nomem && spread(&s))
			;
		judge(&s);
	}
	elfrw_relocs_close(&s.rel);
	if (!err && (!s.count || s.nomem))
		err = &elfrw_err_nomem;
	VEC_FREE(&s.object);
	VEC_FREE(&s.edge);
	VEC_FREE(&s.told.v);
	free(s.count);
	return err == &elfrw_err_nomem ? err : icf_v_named(v->claim.in.path, err);
}
