/* refs.c: every word of IN's data that refers to code, and the jump tables among them.
 *
 * Three things mark a word as an address: a dynamic relocation, a kept relocation, and a place in a
 * global offset table, which linkers fill without relocations.  The distances in a jump table count
 * from its start.  Only the code that reads the table knows the start: it is an address that an
 * instruction computes and at which a relocated word stands.  The table is the run of such words
 * from there to the next such address, or to where it must end (ends.c).  This reading is checked,
 * too: each entry must lead to an instruction.
 *
 * icf/refs/dataref.c and icf/refs/table/ ask the same questions.  Nothing is shared with them, on
 * purpose, not even where the answer is the same lines of code (which symbols name vtables, which
 * words lead to code): a mistake there must not be repeated here. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

struct span {
	uint64_t start, end;
};

struct spans {
	VEC(struct span) v;
};

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Vtables and construction vtables (Itanium C++ ABI 5.1.4): called through, never compared. */
static struct elfrw_err *find_vtables(const struct icf_v *v, struct spans *ret)
{
	const struct elfrw_image *img = &v->claim.in;
	uint32_t shndx = img->symtab ? img->symtab : img->dynsym;
	const struct elfrw_section *s = &img->section[shndx];
	if (!shndx || !s->data)
		return NULL;
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    !sym.st_size)
			continue;
		const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		if (!name || (strncmp(name, "_ZTV", 4) != 0 && strncmp(name, "_ZTC", 4) != 0))
			continue;
		struct span *x = VEC_PUSH(&ret->v);
		if (!x)
			return &elfrw_err_nomem;
		*x = (struct span){ sym.st_value, sym.st_value + sym.st_size };
	}
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, span_order);
	return NULL;
}

static bool in_spans(const struct spans *s, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, s->v.len, mid, s->v.data[mid].start <= va);
	return lo && va < s->v.data[lo - 1].end;
}

/* In code, or at the end of code where nothing else begins. */
static bool names_code(const struct icf_v *v, uint64_t va)
{
	if (va < v->claim.lo || va > v->claim.hi)
		return false;
	if (icf_v_in_exec(&v->claim, va))
		return true;
	size_t i = LOWER_BOUND(0, v->claim.exec.len, mid, v->claim.exec.data[mid].old_end < va);
	return i < v->claim.exec.len && v->claim.exec.data[i].old_end == va &&
	       elfrw_image_section_at(&v->claim.in, va) == 0;
}

static struct elfrw_err *push(struct icf_v *v, uint64_t place, uint64_t target, unsigned size,
			      enum icf_vword_kind kind)
{
	struct icf_vword *w = VEC_PUSH(&v->words.word);
	if (!w)
		return &elfrw_err_nomem;
	*w = (struct icf_vword){ .place = place,
				 .target = target,
				 .table = ICF_V_NONE,
				 .size = (uint8_t)size,
				 .kind = (uint8_t)kind };
	return NULL;
}

static struct elfrw_err *push_dynreloc(struct icf_v *v, uint64_t place, uint64_t addend,
				       uint64_t value, uint8_t kind, bool relr)
{
	struct icf_vdynreloc *d = VEC_PUSH(&v->words.dynreloc);
	if (!d)
		return &elfrw_err_nomem;
	*d = (struct icf_vdynreloc){ place, addend, value, kind, relr };
	return NULL;
}

/* gABI, "Relative Relocation Table": an address, then bitmaps for the 63 words behind. */
static struct elfrw_err *read_relr(struct icf_v *v, const struct elfrw_section *s)
{
	uint64_t next = 0;
	for (uint64_t off = 0; off + 8 <= s->hdr.sh_size; off += 8) {
		uint64_t w = elfrw_get64(s->data + off);
		if (!(w & 1)) {
			const uint8_t *p = elfrw_image_at(&v->claim.in, w, 8);
			ELFRW_TRY(push_dynreloc(v, w, p ? elfrw_get64(p) : 0, 0,
						ELFRW_RELOC_RELATIVE, true));
			next = w + 8;
			continue;
		}
		for (unsigned bit = 1; bit < 64; bit++) {
			const uint8_t *p =
				w >> bit & 1 ? elfrw_image_at(&v->claim.in, next + 8 * (bit - 1), 8)
					     : NULL;
			if (p)
				ELFRW_TRY(push_dynreloc(v, next + 8 * (bit - 1), elfrw_get64(p), 0,
							ELFRW_RELOC_RELATIVE, true));
		}
		next += 8 * 63;
	}
	return NULL;
}

static int dynreloc_order(const void *a, const void *b)
{
	const struct icf_vdynreloc *x = a, *y = b;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->addend < y->addend ? -1 : x->addend > y->addend;
}

static struct elfrw_err *read_dynamic(struct icf_v *v)
{
	ELFRW_TRY(elfrw_relocs_known(&v->claim.in));
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		const struct elfrw_section *s = &v->claim.in.section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || !s->data)
			continue;
		if (s->hdr.sh_type == SHT_RELR)
			ELFRW_TRY(read_relr(v, s));
		if (s->hdr.sh_type != SHT_RELA)
			continue;
		for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= s->hdr.sh_size;
		     off += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, s->data + off, sizeof r);
			Elf64_Sym sym = { 0 };
			elfrw_reloc_symbol(&v->claim.in, s->hdr.sh_link, &r, &sym);
			ELFRW_TRY(push_dynreloc(
				v, r.r_offset, (uint64_t)r.r_addend, sym.st_value,
				v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info)).kind,
				false));
		}
	}
	if (!elfrw_sort_runs(v->words.dynreloc.data, v->words.dynreloc.len,
			     sizeof *v->words.dynreloc.data, dynreloc_order))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->words.dynreloc.len; i++) {
		const struct icf_vdynreloc *d = &v->words.dynreloc.data[i];
		if ((d->kind != ELFRW_RELOC_RELATIVE && d->kind != ELFRW_RELOC_IRELATIVE) ||
		    !names_code(v, d->addend))
			continue;
		const uint8_t *p = elfrw_image_at(&v->claim.in, d->place, 8);
		ELFRW_TRY(push(v, d->place, d->addend, 8, ICF_VW_DYNAMIC));
		v->words.word.data[v->words.word.len - 1].stored = p && elfrw_get64(p) == d->addend;
	}
	return NULL;
}

const struct icf_vdynreloc *icf_v_dynreloc_at(const struct icf_vwords *w, uint64_t place)
{
	size_t lo = LOWER_BOUND(0, w->dynreloc.len, mid, w->dynreloc.data[mid].place < place);
	return lo < w->dynreloc.len && w->dynreloc.data[lo].place == place ? &w->dynreloc.data[lo]
									   : NULL;
}

/* A list of traps leads to undefined instructions from each word's own place (LLVM, "Kernel
 * Control-Flow Integrity"). */
static bool is_kcfi_trap(const struct icf_v *v, const struct elfrw_section *sec, uint64_t target)
{
	if (strcmp(sec->name, ".kcfi_traps") != 0 || !icf_v_in_exec(&v->claim, target))
		return false;
	const struct elfrw_section *text =
		&v->claim.in.section[elfrw_image_section_at(&v->claim.in, target)];
	uint64_t off = target - text->hdr.sh_addr;
	struct elfrw_insn in;
	/* Not one that pads code. */
	return text->data && off < text->hdr.sh_size &&
	       v->claim.arch->decode(text->data + off, text->hdr.sh_size - off, target, &in) &&
	       in.kind == ELFRW_INSN_TRAP &&
	       !elfrw_fill_size(v->claim.arch, text->data + off, text->hdr.sh_size - off, target);
}

static struct elfrw_err *read_kept(struct icf_v *v, const struct elfrw_section *rel,
				   const struct elfrw_section *sec)
{
	for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= rel->hdr.sh_size; k += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		Elf64_Sym sym;
		memcpy(&r, rel->data + k, sizeof r);
		struct elfrw_reloc_desc d = v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
		uint64_t off = r.r_offset - sec->hdr.sh_addr;
		if (d.kind == ELFRW_RELOC_ABS && d.size == 8 && r.r_addend > 0 && r.r_addend < 64 &&
		    elfrw_reloc_symbol(&v->claim.in, rel->hdr.sh_link, &r, &sym) &&
		    icf_v_loses_tag(&v->claim, &sym, sym.st_value + (uint64_t)r.r_addend))
			icf_vlog_bad(
				&v->log, ICF_VC_OBSERVED,
				"tag: %s+0x%llx (0x%llx): expected it as far behind its symbol as before, found another distance",
				sec->name, ICF_VX(off), ICF_VX(sym.st_value));
		if ((d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_PCREL) || d.size < 4 ||
		    (d.kind == ELFRW_RELOC_ABS && v->claim.in.pic))
			continue;
		if (off > sec->hdr.sh_size || d.size > sec->hdr.sh_size - off ||
		    !elfrw_reloc_symbol(&v->claim.in, rel->hdr.sh_link, &r, &sym))
			return elfrw_error_at(rel->name, k, "%s: broken relocation",
					      v->claim.in.path);
		uint64_t field = elfrw_get_le(sec->data + off, d.size);
		if (d.kind == ELFRW_RELOC_ABS) {
			if (names_code(v, field) || icf_v_data(&v->claim, field) != field)
				ELFRW_TRY(push(v, r.r_offset, field, d.size, ICF_VW_FIELD));
			continue;
		}
		if (d.size == 4)
			field = (uint64_t)(int64_t)(int32_t)field;
		uint64_t to = sym.st_value + (uint64_t)r.r_addend;
		if (!icf_v_is_unwind_name(sec->name) &&
		    (icf_v_data(&v->claim, r.r_offset) != r.r_offset ||
		     icf_v_data(&v->claim, to) != to ||
		     icf_v_data(&v->claim, sym.st_value) != sym.st_value))
			icf_vlog_bad(
				&v->log, ICF_VC_WORD,
				"distance: %s+0x%llx to 0x%llx: expected both where they were, found that one of them moved",
				sec->name, ICF_VX(off), ICF_VX(to));
		bool code = sym.st_shndx != SHN_UNDEF && sym.st_shndx < v->claim.in.n_sections &&
			    (v->claim.in.section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR);
		if (code && ELF64_ST_TYPE(sym.st_info) == STT_FUNC)
			ELFRW_TRY(push(v, r.r_offset, sym.st_value, d.size, ICF_VW_OFFSET));
		else if (code || (sym.st_shndx == SHN_UNDEF &&
				  icf_v_in_exec(&v->claim, r.r_offset + field)))
			ELFRW_TRY(push(v, r.r_offset, r.r_offset + field, d.size,
				       is_kcfi_trap(v, sec, r.r_offset + field) ? ICF_VW_OFFSET
										: ICF_VW_RELATIVE));
	}
	return NULL;
}

static bool is_array(const Elf64_Shdr *sh)
{
	return sh->sh_type == SHT_INIT_ARRAY || sh->sh_type == SHT_FINI_ARRAY ||
	       sh->sh_type == SHT_PREINIT_ARRAY;
}

static struct elfrw_err *read_slots(struct icf_v *v, const struct elfrw_section *s)
{
	for (uint64_t off = 0; off + 8 <= s->hdr.sh_size; off += 8) {
		uint64_t place = s->hdr.sh_addr + off, value = elfrw_get64(s->data + off);
		if (!icf_v_in_exec(&v->claim, value))
			continue;
		/* In a file that can be loaded anywhere, a word without a relocation is a number;
		 * but a lazy slot has its symbol's relocation. */
		const struct icf_vdynreloc *d = icf_v_dynreloc_at(&v->words, place);
		if (d ? d->kind == ELFRW_RELOC_RELATIVE : v->claim.in.pic)
			continue;
		ELFRW_TRY(push(v, place, value, 8, ICF_VW_FIELD));
	}
	return NULL;
}

static int word_order(const void *a, const void *b)
{
	const struct icf_vword *x = a, *y = b;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

static void mark_quiet(struct icf_v *v, const struct spans *vtables)
{
	const struct elfrw_section *s = NULL;
	bool quiet = false;
	for (size_t i = 0; i < v->words.word.len; i++) {
		struct icf_vword *w = &v->words.word.data[i];
		if (!s || w->place - s->hdr.sh_addr >= s->hdr.sh_size) {
			uint32_t k = elfrw_image_section_at(&v->claim.in, w->place);
			s = k ? &v->claim.in.section[k] : NULL;
			quiet = s && (is_array(&s->hdr) ||
				      strcmp(s->name, "__patchable_function_entries") == 0 ||
				      strcmp(s->name, ".got.plt") == 0);
		}
		w->slot = in_spans(vtables, w->place);
		w->quiet = quiet || w->slot;
	}
}

static struct elfrw_err *make_filter(struct icf_v *v)
{
	if (!v->words.word.len)
		return NULL;
	free(v->words.filter);
	v->words.filter = NULL;
	v->words.filter_lo = v->words.word.data[0].place;
	v->words.filter_hi = v->words.word.data[v->words.word.len - 1].place + 1;
	/* Data lies near the code, or a displacement could not reach it. */
	if (v->words.filter_hi - v->words.filter_lo > UINT64_C(1) << 33)
		return elfrw_error("%s: data is spread over too many addresses", v->claim.in.path);
	v->words.filter = calloc(((v->words.filter_hi - v->words.filter_lo) >> 9) + 1, 1);
	if (!v->words.filter)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->words.word.len; i++) {
		uint64_t k = (v->words.word.data[i].place - v->words.filter_lo) >> 6;
		v->words.filter[k >> 3] |= (uint8_t)(1u << (k & 7));
	}
	return NULL;
}

bool icf_v_may_have_word(const struct icf_vwords *w, uint64_t va)
{
	if (va < w->filter_lo || va >= w->filter_hi)
		return false;
	uint64_t k = (va - w->filter_lo) >> 6;
	return w->filter[k >> 3] >> (k & 7) & 1;
}

size_t icf_v_word_from(const struct icf_vwords *w, uint64_t place)
{
	return LOWER_BOUND(0, w->word.len, mid, w->word.data[mid].place < place);
}

struct elfrw_err *icf_v_find_words(struct icf_v *v)
{
	struct spans vtables = { 0 };
	struct elfrw_err *err = find_vtables(v, &vtables);
	v->claim.inferred = true;
	if (!err)
		err = read_dynamic(v);
	for (uint32_t i = 1; i < v->claim.in.n_sections && !err; i++) {
		const struct elfrw_section *s = &v->claim.in.section[i];
		bool alloc = s->hdr.sh_flags & SHF_ALLOC;
		if (!s->data)
			continue;
		if (elfrw_image_kept_relocs(&v->claim.in, s) && s->hdr.sh_info) {
			const struct elfrw_section *to = &v->claim.in.section[s->hdr.sh_info];
			v->claim.inferred &= !(to->hdr.sh_flags & SHF_EXECINSTR);
			if ((to->hdr.sh_flags & SHF_ALLOC) && !(to->hdr.sh_flags & SHF_EXECINSTR) &&
			    to->data && !icf_v_is_unwind_name(to->name))
				err = read_kept(v, s, to);
		} else if (alloc &&
			   (strcmp(s->name, ".got") == 0 || strcmp(s->name, ".got.plt") == 0 ||
			    strncmp(s->name, ".igot", 5) == 0 || is_array(&s->hdr)))
			err = read_slots(v, s);
	}
	if (!err)
		err = icf_v_sort_words(v);
	if (!err)
		mark_quiet(v, &vtables);
	VEC_FREE(&vtables.v);
	return err;
}

struct elfrw_err *icf_v_sort_words(struct icf_v *v)
{
	if (!v->words.word.len)
		return NULL;
	if (!elfrw_sort_runs(v->words.word.data, v->words.word.len, sizeof *v->words.word.data,
			     word_order))
		return &elfrw_err_nomem;
	size_t n = 1;
	for (size_t i = 1; i < v->words.word.len; i++)
		if (word_order(&v->words.word.data[n - 1], &v->words.word.data[i]) != 0)
			v->words.word.data[n++] = v->words.word.data[i];
	v->words.word.len = n;
	return make_filter(v);
}

static int base_order(const void *a, const void *b)
{
	const struct icf_vbase *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* One base for each address; the unit is NONE when several refer to it. */
static void unite(struct icf_v *v)
{
	size_t n = 0;
	if (v->base.len)
		qsort(v->base.data, v->base.len, sizeof *v->base.data, base_order);
	for (size_t i = 0; i < v->base.len; i++) {
		struct icf_vbase *b = &v->base.data[i];
		if (!n || v->base.data[n - 1].va != b->va)
			v->base.data[n++] = *b;
		else if (v->base.data[n - 1].unit != b->unit)
			v->base.data[n - 1].unit = ICF_V_NONE;
	}
	v->base.len = n;
}

/* Is the run of words a jump table of OWNER's own: labels in OWNER, and in others' middles (its
 * cold part)? */
static bool is_own(const struct icf_v *v, const struct icf_vtable *t)
{
	if (t->owner == ICF_V_NONE)
		return false;
	const struct icf_vunit *o = &v->claim.unit.data[t->owner];
	bool self = false;
	for (uint32_t i = 0; i < t->n; i++) {
		uint64_t to = v->words.word.data[t->word + i].target;
		uint32_t u = icf_v_find(&v->claim, to);
		/* Pointers to the unit and to the function behind it may mean its start and its
		 * end. */
		self |= to > o->old && to < o->end;
		if (to == o->end || u == t->owner)
			continue;
		if (u == ICF_V_NONE ? icf_v_find_end(&v->claim, to) == ICF_V_NONE
				    : to == v->claim.unit.data[u].old)
			return false;
	}
	return self;
}

/* A section that programs delimit by __start_ and __stop_ symbols (static keys, probes) holds no
 * compiler's jump tables. */
static bool is_list(const struct icf_v *v, uint64_t va)
{
	static const char set[] = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	const char *name = v->claim.in.section[elfrw_image_section_at(&v->claim.in, va)].name;
	return *name && !(*name >= '0' && *name <= '9') && !name[strspn(name, set)];
}

/* Are the words from I on, up to LIMIT, all distances from their own places to entries?  One of a
 * table would lead 4 bytes past a label, the next one 8. */
static bool are_own_distances(const struct icf_v *v, size_t i, uint64_t limit)
{
	const struct icf_vword first = v->words.word.data[i];
	size_t n = 0;
	for (; i + n < v->words.word.len; n++) {
		const struct icf_vword *w = &v->words.word.data[i + n];
		if (w->place >= limit || w->place != first.place + n * first.size ||
		    w->kind != ICF_VW_RELATIVE)
			break;
		uint32_t u = icf_v_find(&v->claim, w->target);
		if (u == ICF_V_NONE || v->claim.unit.data[u].old != w->target)
			return false;
	}
	return n > 1;
}

/* Where the table at base B must end. */
static uint64_t limit_of(const struct icf_v *v, size_t b, bool relative)
{
	uint64_t va = v->base.data[b].va;
	size_t next = b + 1;
	/* An address in the middle of an entry begins no table. */
	while (relative && next < v->base.len && ((v->base.data[next].va - va) & 3))
		next++;
	return icf_v_table_limit(v, va, next < v->base.len ? v->base.data[next].va : UINT64_MAX);
}

struct elfrw_err *icf_v_find_tables(struct icf_v *v)
{
	unite(v);
	for (size_t b = 0, i = 0; b < v->base.len; b++) {
		uint64_t va = v->base.data[b].va;
		uint32_t owner = v->base.data[b].unit;
		while (i < v->words.word.len && v->words.word.data[i].place < va)
			i++;
		if (i == v->words.word.len || v->words.word.data[i].place != va)
			continue;
		const struct icf_vword first = v->words.word.data[i];
		bool relative = first.kind == ICF_VW_RELATIVE;
		if (first.kind == ICF_VW_OFFSET || first.quiet || (relative && is_list(v, va)))
			continue;
		uint64_t limit = limit_of(v, b, relative);
		if (relative && !v->claim.inferred && are_own_distances(v, i, limit))
			continue;
		struct icf_vtable t = { va, (uint32_t)i, 0, owner };
		size_t end = i;
		for (; end < v->words.word.len && v->words.word.data[end].place < limit;
		     end++, t.n++) {
			struct icf_vword *w = &v->words.word.data[end];
			if (w->place != va + (uint64_t)t.n * first.size || w->size != first.size ||
			    w->kind != first.kind)
				break;
			uint64_t target = relative ? va + (w->target - w->place) : w->target;
			uint32_t u = icf_v_find(&v->claim, target);
			/* Words behind a table of labels that do not belong to it: pointers to
			 * functions. */
			if (!relative && u != owner &&
			    (u == ICF_V_NONE || target == v->claim.unit.data[u].old) &&
			    !(owner != ICF_V_NONE && target == v->claim.unit.data[owner].end))
				break;
			w->target = target;
		}
		if (!t.n)
			continue;
		const struct elfrw_section *s =
			&v->claim.in.section[elfrw_image_section_at(&v->claim.in, va)];
		bool own = is_own(v, &t);
		/* Words that the program may change are pointers. */
		if (!relative && (!own || ((s->hdr.sh_flags & SHF_WRITE) &&
					   strncmp(s->name, ".data.rel.ro", 12) != 0)))
			continue;
		if (!own)
			t.owner = ICF_V_NONE;
		for (size_t k = i; k < end; k++)
			v->words.word.data[k].table = (uint32_t)v->words.table.len;
		struct icf_vtable *slot = VEC_PUSH(&v->words.table);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = t;
	}
	return NULL;
}
