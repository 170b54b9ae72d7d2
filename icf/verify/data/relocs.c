/* relocs.c: the relocations that OUT keeps, if it keeps any.
 *
 * Each must be one of IN at the image of its place, with the same type and symbol, and as correct
 * as it was: the difference between the field and symbol plus addend is the same in both files.
 * The branch of a thunk may have a relocation, too. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

struct want {
	uint64_t place, old;  /* in OUT, in IN */
	uint32_t type, index; /* of the relocation in IN */
	bool optional;
	bool used;
};

static int want_order(const void *a, const void *b)
{
	const struct want *x = a, *y = b;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* The symbol X of IN names code of a unit that OUT has: *TO is the address of that in OUT, and the
 * symbol's new value.  false: X names anything else. */
static bool names_code(const struct icf_vclaim *c, const Elf64_Sym *x, uint64_t *to)
{
	const struct icf_vexec *e = icf_v_exec_of(c, x->st_shndx);
	unsigned type = ELF64_ST_TYPE(x->st_info);
	return e && type != STT_SECTION && type != STT_TLS && x->st_value >= e->old &&
	       x->st_value < e->old_end && !icf_v_removed(c, icf_v_find(c, x->st_value)) &&
	       icf_v_pointer(c, x->st_value, to);
}

/* Are section and value of Y of OUT right for X of IN?  The name of a folded function goes with its
 * thunk or to the kept copy, which may be in another section than the function was. */
static bool same_place(const struct icf_vclaim *c, const Elf64_Sym *x, const Elf64_Sym *y)
{
	uint64_t to;
	uint32_t shndx = x->st_shndx && x->st_shndx < c->in.n_sections ? c->to_out[x->st_shndx]
								       : x->st_shndx;
	if (!names_code(c, x, &to))
		return shndx == y->st_shndx;
	const struct icf_vexec *e = icf_v_exec_of(c, x->st_shndx);
	if (to < e->new || to >= e->new_end) {
		uint32_t other = elfrw_image_section_at(&c->out, to);
		shndx = other < SHN_LORESERVE ? other : shndx; /* a larger number has no room */
	}
	return shndx == y->st_shndx && y->st_value == to;
}

static bool same_symbol(const struct icf_vclaim *c, uint32_t tab_in, const Elf64_Sym *x,
			uint32_t tab_out, const Elf64_Sym *y)
{
	const char *p = elfrw_image_string(&c->in, c->in.section[tab_in].hdr.sh_link, x->st_name);
	const char *q =
		elfrw_image_string(&c->out, c->out.section[tab_out].hdr.sh_link, y->st_name);
	return p && q && strcmp(p, q) == 0 && x->st_info == y->st_info && same_place(c, x, y);
}

static uint64_t field_of(const struct elfrw_section *s, uint64_t place, unsigned size)
{
	uint64_t off = place - s->hdr.sh_addr;
	if (!s->data || off > s->hdr.sh_size || size > s->hdr.sh_size - off)
		return 0;
	uint64_t f = elfrw_get_le(s->data + off, size);
	return size == 4 ? (uint64_t)(int64_t)(int32_t)f : f;
}

/* The distance that the field of relocation R of kind D holds. */
static uint64_t distance_of(const struct icf_vclaim *c, const struct elfrw_section *s,
			    const Elf64_Rela *r, const struct elfrw_reloc_desc *d)
{
	const struct elfrw_form *form = &c->arch->form[d->form];
	uint64_t off = r->r_offset - s->hdr.sh_addr;
	if (!d->form)
		return field_of(s, r->r_offset, d->size);
	if (!s->data || off > s->hdr.sh_size || form->bytes > s->hdr.sh_size - off)
		return 0;
	return elfrw_form_read(form, s->data + off, r->r_offset) - r->r_offset;
}

/* Does relocation R of section S stand at another instruction than one with such a field?  gold
 * writes some to wrong places, and linkers relax instructions to no-ops. */
static bool is_stray(const struct icf_vclaim *c, const struct elfrw_section *s, const Elf64_Rela *r,
		     const struct elfrw_reloc_desc *d)
{
	struct elfrw_insn in;
	uint64_t off = r->r_offset - s->hdr.sh_addr;
	return d->form && (s->hdr.sh_flags & SHF_EXECINSTR) && s->data && off < s->hdr.sh_size &&
	       c->arch->decode(s->data + off, s->hdr.sh_size - off, r->r_offset, &in) &&
	       !in.pcrel_size;
}

static void check_one(const struct icf_vclaim *c, struct icf_vlog *log,
		      const struct elfrw_section *ra, const Elf64_Rela *a,
		      const struct elfrw_section *rb, const Elf64_Rela *b)
{
	Elf64_Sym x, y;
	struct elfrw_reloc_desc d = c->arch->reloc((uint32_t)ELF64_R_TYPE(a->r_info));
	if (!elfrw_reloc_symbol(&c->in, ra->hdr.sh_link, a, &x))
		return;
	if (!elfrw_reloc_symbol(&c->out, rb->hdr.sh_link, b, &y) ||
	    !same_symbol(c, ra->hdr.sh_link, &x, rb->hdr.sh_link, &y)) {
		icf_vlog_bad(log, ICF_VC_RELOC,
			     "symbol: %s at 0x%llx (-> 0x%llx): expected the same, found another",
			     rb->name, ICF_VX(a->r_offset), ICF_VX(b->r_offset));
		return;
	}
	uint64_t sa = x.st_value + (uint64_t)a->r_addend, sb = y.st_value + (uint64_t)b->r_addend;
	const struct elfrw_section *ta = &c->in.section[ra->hdr.sh_info],
				   *tb = &c->out.section[rb->hdr.sh_info];
	uint64_t want = (uint64_t)a->r_addend, found = (uint64_t)b->r_addend;
	/* A half does not hold the distance; the check of the code reads both halves. */
	bool half = d.kind == ELFRW_RELOC_LOW ||
		    (d.form && elfrw_form_is_high(&c->arch->form[d.form])) ||
		    (d.kind == ELFRW_RELOC_PCREL && is_stray(c, ta, a, &d));
	if (d.kind == ELFRW_RELOC_PCREL && d.size >= 4 && !half) {
		want = distance_of(c, ta, a, &d) - (sa - a->r_offset);
		found = distance_of(c, tb, b, &d) - (sb - b->r_offset);
	} else if ((d.kind == ELFRW_RELOC_ABS || half) && d.size >= 4 &&
		   ELF64_ST_TYPE(x.st_info) != STT_TLS &&
		   (x.st_shndx != SHN_UNDEF || !ELF64_R_SYM(a->r_info))) {
		/* Without a symbol, the addend is the address. */
		uint64_t to, body;
		icf_v_pointer(c, sa, &to);
		icf_v_code(c, sa, &body);
		want = to;
		found = sb;
		if (sa >= c->frame_lo && sa < c->frame_hi)
			return; /* the check of the code covers this field */
		if (found == body || !icf_v_in_exec(c, sa))
			want = icf_v_in_exec(c, sa)                                       ? body
			       : found == sa || found == to || found == icf_v_data(c, sa) ? found
											  : sa;
	} else if (d.kind == ELFRW_RELOC_GOTPCREL && want != found) {
		/* After the linker's relaxation it is stale: it may be for an address or a
		 * distance. */
		uint64_t fa = field_of(ta, a->r_offset, 4), fb = field_of(tb, b->r_offset, 4);
		if (fa - sa == fb - sb || fa - (sa - a->r_offset) == fb - (sb - b->r_offset))
			return;
	}
	if (want != found)
		icf_vlog_bad(log, ICF_VC_RELOC,
			     "addend: %s, %s at 0x%llx (-> 0x%llx): expected 0x%llx, found 0x%llx",
			     rb->name, d.name ? d.name : "?", ICF_VX(a->r_offset),
			     ICF_VX(b->r_offset), ICF_VX(want), ICF_VX(found));
}

/* Does a thunk have a field at relocation R, and a relocation of the same type? */
static bool is_of_thunk(const struct icf_vclaim *c, const Elf64_Rela *r)
{
	uint32_t i = icf_v_find_thunk(c, r->r_offset);
	if (i == ICF_V_NONE)
		return false;
	const struct icf_vunit *u = &c->unit.data[i];
	for (int endbr = 0; endbr < 2; endbr++) {
		struct elfrw_thunk t = c->arch->thunk(NULL, u->entry, u->body, endbr);
		for (unsigned k = 0; k < t.n_reloc; k++)
			if (t.reloc[k].off == r->r_offset - u->entry &&
			    t.reloc[k].type == ELF64_R_TYPE(r->r_info))
				return true;
	}
	return false;
}

/* Relocations of sections that are not loaded, and keep their size, must be the same, and as
 * correct as before. */
static void check_unloaded(const struct icf_vclaim *c, struct icf_vlog *log,
			   const struct elfrw_section *ra, const struct elfrw_section *rb)
{
	const struct elfrw_section *ta = &c->in.section[ra->hdr.sh_info],
				   *tb = &c->out.section[rb->hdr.sh_info];
	if (ra->hdr.sh_size != rb->hdr.sh_size) {
		icf_vlog_bad(log, ICF_VC_RELOC, "section: %s: expected %llu bytes, found %llu",
			     ra->name, ICF_VX(ra->hdr.sh_size), ICF_VX(rb->hdr.sh_size));
		return;
	}
	for (size_t i = 0; i < ra->hdr.sh_size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela a, b;
		Elf64_Sym x, y;
		memcpy(&a, ra->data + i * sizeof a, sizeof a);
		memcpy(&b, rb->data + i * sizeof b, sizeof b);
		log->checked[ICF_VC_RELOC]++;
		if (a.r_offset != b.r_offset || ELF64_R_TYPE(a.r_info) != ELF64_R_TYPE(b.r_info)) {
			icf_vlog_bad(
				log, ICF_VC_RELOC,
				"relocation: %s entry %zu: expected one for 0x%llx, found another",
				ra->name, i, ICF_VX(a.r_offset));
			continue;
		}
		if (!elfrw_reloc_symbol(&c->in, ra->hdr.sh_link, &a, &x)) {
			if (memcmp(&a, &b, sizeof a) != 0)
				icf_vlog_bad(
					log, ICF_VC_RELOC,
					"relocation: %s at 0x%llx: expected the same, found another",
					ra->name, ICF_VX(a.r_offset));
			continue;
		}
		if (!elfrw_reloc_symbol(&c->out, rb->hdr.sh_link, &b, &y) ||
		    !same_symbol(c, ra->hdr.sh_link, &x, rb->hdr.sh_link, &y)) {
			icf_vlog_bad(log, ICF_VC_RELOC,
				     "symbol: %s at 0x%llx: expected the same, found another",
				     ra->name, ICF_VX(a.r_offset));
			continue;
		}
		struct elfrw_reloc_desc d = c->arch->reloc((uint32_t)ELF64_R_TYPE(a.r_info));
		uint64_t sa = x.st_value + (uint64_t)a.r_addend,
			 sb = y.st_value + (uint64_t)b.r_addend;
		bool field =
			(d.kind == ELFRW_RELOC_ABS || d.kind == ELFRW_RELOC_PCREL) && d.size >= 4;
		if (a.r_addend != b.r_addend &&
		    !(field && field_of(ta, a.r_offset, d.size) - sa ==
				       field_of(tb, b.r_offset, d.size) - sb))
			icf_vlog_bad(
				log, ICF_VC_RELOC,
				"addend: %s at 0x%llx: expected 0x%llx, or what its field says, found 0x%llx",
				ra->name, ICF_VX(a.r_offset), ICF_VX(a.r_addend),
				ICF_VX(b.r_addend));
	}
}

/* The relocations that OUT must have, by place, type and index. */
struct wants {
	struct want *data; /* owned */
	size_t len;
};

/* Where the place of IN's relocation R is in OUT.  False: it went with a folded function. */
static bool place_of(const struct icf_vclaim *c, const struct icf_vwords *words,
		     const Elf64_Rela *r, struct want *w)
{
	uint64_t place = r->r_offset;
	w->place = w->old = place;
	w->type = (uint32_t)ELF64_R_TYPE(r->r_info);
	if (icf_v_in_exec(c, place)) {
		uint32_t u = icf_v_find(c, place);
		if (u == ICF_V_NONE || (c->unit.data[u].flags & ICF_V_FOLDED))
			return false;
		w->place = c->unit.data[u].body + (place - c->unit.data[u].old);
		return true;
	}
	size_t k = icf_v_word_from(words, place);
	for (size_t n = k; n < words->word.len && words->word.data[n].place == place; n++)
		if (words->word.data[n].lost)
			return false;
	uint32_t t = k < words->word.len && words->word.data[k].place == place
			     ? words->word.data[k].table
			     : ICF_V_NONE;
	uint32_t owner = t != ICF_V_NONE ? words->table.data[t].owner : ICF_V_NONE;
	/* Nothing reads the table of a function that is gone. */
	w->optional = owner != ICF_V_NONE && (c->unit.data[owner].flags & ICF_V_FOLDED);
	return true;
}

/* The images of the relocations in IN's section RA.  *RET is the caller's to free. */
static struct elfrw_err *find_wants(const struct icf_vclaim *c, const struct icf_vwords *words,
				    const struct elfrw_section *ra, struct wants *ret)
{
	size_t n = ra->hdr.sh_size / sizeof(Elf64_Rela);
	*ret = (struct wants){ calloc(n + 1, sizeof *ret->data), 0 };
	if (!ret->data)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < n; i++) {
		Elf64_Rela r;
		struct want w = { .index = (uint32_t)i };
		memcpy(&r, ra->data + i * sizeof r, sizeof r);
		if (place_of(c, words, &r, &w))
			ret->data[ret->len++] = w;
	}
	qsort(ret->data, ret->len, sizeof *ret->data, want_order);
	return NULL;
}

/* The first unused one at the place of OUT's relocation B, with its type; NULL: there is none. */
static struct want *find_want(const struct wants *list, const Elf64_Rela *b)
{
	struct want *w = list->data;
	struct want key = { .place = b->r_offset, .type = (uint32_t)ELF64_R_TYPE(b->r_info) };
	size_t lo = LOWER_BOUND(0, list->len, mid, want_order(&w[mid], &key) < 0);
	while (lo < list->len && w[lo].used && w[lo].place == key.place && w[lo].type == key.type)
		lo++;
	return lo < list->len && w[lo].place == key.place && w[lo].type == key.type ? &w[lo] : NULL;
}

/* Each relocation in OUT's section RB must be one of LIST, or a thunk's. */
static void check_kept(const struct icf_vclaim *c, struct icf_vlog *log,
		       const struct elfrw_section *ra, const struct elfrw_section *rb,
		       const struct wants *list)
{
	uint64_t last = 0;
	for (size_t i = 0; i < rb->hdr.sh_size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela b, a;
		memcpy(&b, rb->data + i * sizeof b, sizeof b);
		log->checked[ICF_VC_RELOC]++;
		if (b.r_offset < last)
			icf_vlog_bad(log, ICF_VC_RELOC,
				     "order: %s entry %zu: expected 0x%llx or more, found 0x%llx",
				     rb->name, i, ICF_VX(last), ICF_VX(b.r_offset));
		last = b.r_offset;
		struct want *w = find_want(list, &b);
		if (!w) {
			if (!is_of_thunk(c, &b))
				icf_vlog_bad(
					log, ICF_VC_RELOC,
					"relocation: %s at 0x%llx: expected one of the input, found a new one",
					rb->name, ICF_VX(b.r_offset));
			continue;
		}
		w->used = true;
		memcpy(&a, ra->data + w->index * sizeof a, sizeof a);
		check_one(c, log, ra, &a, rb, &b);
	}
}

/* Relocations of loaded sections: those of IN at the images of their places. */
static struct elfrw_err *check_loaded(const struct icf_vclaim *c, const struct icf_vwords *words,
				      struct icf_vlog *log, const struct elfrw_section *ra,
				      const struct elfrw_section *rb)
{
	struct wants list;
	ELFRW_TRY(find_wants(c, words, ra, &list));
	check_kept(c, log, ra, rb, &list);
	for (const struct want *w = list.data; w < list.data + list.len; w++)
		if (!w->used && !w->optional)
			icf_vlog_bad(
				log, ICF_VC_RELOC,
				"relocation: %s at 0x%llx (-> 0x%llx): expected in the output, found none",
				ra->name, ICF_VX(w->old), ICF_VX(w->place));
	free(list.data);
	return NULL;
}

struct elfrw_err *icf_v_check_relocs(const struct icf_vclaim *c, const struct icf_vwords *words,
				     struct icf_vlog *log)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const struct elfrw_section *a = &c->in.section[i];
		if (a->hdr.sh_type != SHT_RELA || (a->hdr.sh_flags & SHF_ALLOC) || !c->to_out[i] ||
		    !a->data)
			continue;
		const struct elfrw_section *b = &c->out.section[c->to_out[i]];
		if (!b->data)
			continue;
		if (c->in.section[a->hdr.sh_info].hdr.sh_flags & SHF_ALLOC)
			ELFRW_TRY(check_loaded(c, words, log, a, b));
		else
			check_unloaded(c, log, a, b);
	}
	return NULL;
}
