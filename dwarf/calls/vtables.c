/* vtables.c: see vtables.h.
 *
 * A vtable object is a sequence of tables.  Each has: offsets of virtual bases and calls (numbers),
 * the offset to the top (a number), the type information (a pointer, or 0 with -fno-rtti), then the
 * functions.  The word after a pointer to type information is an address point.  In an object
 * without any, it is the word after the pair (offset <= 0, 0) if no relocation sets either word of
 * the pair.
 *
 * Cost: one pass over the symbols and one over the dynamic relocations, keeping those in
 * vtables. */
#include "dwarf/calls/vtables.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

struct object {
	uint64_t start, end;
	const char *name;
};

struct builder {
	const struct elfrw_image *img, *symbols;
	VEC(struct object) object;
	VEC(uint64_t) typeinfo;
	struct dwr_vtables vt;
};

static int object_order(const void *a, const void *b)
{
	const struct object *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

static int word_order(const void *a, const void *b)
{
	const struct dwr_vtable_word *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

static struct elfrw_err *read_symbols(struct builder *b)
{
	const struct elfrw_image *img = b->symbols;
	uint32_t shndx = img->symtab ? img->symtab : img->dynsym;
	const struct elfrw_section *s = shndx ? &img->section[shndx] : NULL;
	for (struct elfrw_symbols it = elfrw_symbols(s, 0); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    !sym.st_name)
			continue;
		const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		if (!name || strncmp(name, "_ZT", 3))
			continue;
		if (name[3] == 'I') {
			uint64_t *t = VEC_PUSH(&b->typeinfo);
			if (!t)
				return &elfrw_err_nomem;
			*t = sym.st_value;
		} else if ((name[3] == 'V' || name[3] == 'C') && sym.st_size >= 8 &&
			   elfrw_image_at(b->img, sym.st_value, sym.st_size)) {
			struct object *o = VEC_PUSH(&b->object);
			if (!o)
				return &elfrw_err_nomem;
			*o = (struct object){ sym.st_value, sym.st_value + sym.st_size, name };
		}
	}
	if (b->object.len)
		qsort(b->object.data, b->object.len, sizeof *b->object.data, object_order);
	size_t n = 0;
	for (size_t i = 0; i < b->object.len;
	     i++) /* aliases, or symbols that overlap: the first one counts */
		if (!n || b->object.data[i].start >= b->object.data[n - 1].end)
			b->object.data[n++] = b->object.data[i];
	b->object.len = n;
	if (b->typeinfo.len)
		qsort(b->typeinfo.data, b->typeinfo.len, sizeof *b->typeinfo.data, elfrw_u64_order);
	return NULL;
}

static const struct object *object_at(const struct builder *b, uint64_t place)
{
	size_t lo = LOWER_BOUND(0, b->object.len, mid, b->object.data[mid].start <= place);
	return lo && place < b->object.data[lo - 1].end ? &b->object.data[lo - 1] : NULL;
}

static const char *dynamic_symbol(const struct elfrw_image *img, uint32_t symtab,
				  const Elf64_Rela *r, Elf64_Sym *ret)
{
	const struct elfrw_section *s = symtab < img->n_sections ? &img->section[symtab] : NULL;
	if (!s || s->hdr.sh_type != SHT_DYNSYM || !elfrw_symbol(s, ELF64_R_SYM(r->r_info), ret))
		return NULL;
	return elfrw_image_string(img, s->hdr.sh_link, ret->st_name);
}

static struct elfrw_err *read_relocs(struct builder *b)
{
	const struct elfrw_image *img = b->img;
	uint64_t lo = b->object.data[0].start, hi = b->object.data[b->object.len - 1].end;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (s->hdr.sh_type != SHT_RELA || !(s->hdr.sh_flags & SHF_ALLOC) || !s->data)
			continue;
		for (uint64_t k = 0; k < s->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			if (r.r_offset < lo || r.r_offset >= hi || !object_at(b, r.r_offset))
				continue;
			struct elfrw_reloc_desc d =
				img->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
			struct dwr_vtable_word *w = VEC_PUSH(&b->vt.word);
			if (!w)
				return &elfrw_err_nomem;
			*w = (struct dwr_vtable_word){ .place = r.r_offset };
			Elf64_Sym sym = { 0 };
			if (d.kind == ELFRW_RELOC_RELATIVE)
				w->value = (uint64_t)r.r_addend;
			else if ((w->symbol = dynamic_symbol(img, s->hdr.sh_link, &r, &sym)) &&
				 sym.st_shndx != SHN_UNDEF)
				w->value = sym.st_value + (uint64_t)r.r_addend;
		}
	}
	if (b->vt.word.len)
		qsort(b->vt.word.data, b->vt.word.len, sizeof *b->vt.word.data, word_order);
	return NULL;
}

static const struct dwr_vtable_word *word_at(const struct dwr_vtables *vt, uint64_t place)
{
	struct dwr_vtable_word key = { .place = place };
	return vt->word.len ? bsearch(&key, vt->word.data, vt->word.len, sizeof key, word_order)
			    : NULL;
}

uint64_t dwr_vtables_value(const struct elfrw_image *img, const struct dwr_vtables *vt,
			   uint64_t place)
{
	const struct dwr_vtable_word *w = word_at(vt, place);
	if (w)
		return w->value;
	const uint8_t *p = elfrw_image_at(img, place, 8);
	return p ? elfrw_get64(p) : 0;
}

static bool is_typeinfo(const struct builder *b, uint64_t place)
{
	const struct dwr_vtable_word *w = word_at(&b->vt, place);
	if (w && w->symbol)
		return strncmp(w->symbol, "_ZTI", 4) == 0;
	uint64_t value = dwr_vtables_value(b->img, &b->vt, place);
	return value && b->typeinfo.len &&
	       bsearch(&value, b->typeinfo.data, b->typeinfo.len, sizeof value, elfrw_u64_order);
}

/* Could these two words be the offset to the top and the missing type information? */
static bool is_bare_head(const struct builder *b, uint64_t place)
{
	if (word_at(&b->vt, place) || word_at(&b->vt, place + 8))
		return false;
	int64_t top = (int64_t)dwr_vtables_value(b->img, &b->vt, place);
	return top <= 0 && top > -(INT64_C(1) << 32) &&
	       !dwr_vtables_value(b->img, &b->vt, place + 8);
}

static struct elfrw_err *push_table(struct builder *b, const struct object *o, uint64_t point)
{
	struct dwr_vtable *t = VEC_PUSH(&b->vt.table);
	if (!t)
		return &elfrw_err_nomem;
	*t = (struct dwr_vtable){ point, o->end, o->start, o->name };
	return NULL;
}

static struct elfrw_err *split_object(struct builder *b, const struct object *o)
{
	size_t first = b->vt.table.len;
	for (uint64_t at = o->start; at + 16 <= o->end; at += 8)
		if (is_typeinfo(b, at))
			ELFRW_TRY(push_table(b, o, at + 8));
	if (b->vt.table.len == first) {
		for (uint64_t at = o->start; at + 24 <= o->end; at += 8)
			if (is_bare_head(b, at)) {
				ELFRW_TRY(push_table(b, o, at + 16));
				at += 8;
			}
	}
	for (size_t i = first; i + 1 < b->vt.table.len;
	     i++) /* the next one's head: at least two words */
		b->vt.table.data[i].end = b->vt.table.data[i + 1].point - 16;
	return NULL;
}

struct elfrw_err *dwr_vtables_read(const struct elfrw_image *img, const struct elfrw_image *symbols,
				   struct dwr_vtables *ret)
{
	struct builder b = { .img = img, .symbols = symbols };
	struct elfrw_err *err = read_symbols(&b);
	if (!err && b.object.len)
		err = read_relocs(&b);
	for (size_t i = 0; !err && i < b.object.len; i++)
		err = split_object(&b, &b.object.data[i]);
	VEC_FREE(&b.object);
	VEC_FREE(&b.typeinfo);
	if (err)
		dwr_vtables_deinit(&b.vt);
	else
		*ret = b.vt;
	return err;
}

void dwr_vtables_deinit(struct dwr_vtables *vt)
{
	VEC_FREE(&vt->table);
	VEC_FREE(&vt->word);
}

const struct dwr_vtable *dwr_vtables_find(const struct dwr_vtables *vt, uint64_t place)
{
	size_t lo = LOWER_BOUND(0, vt->table.len, mid, vt->table.data[mid].point <= place);
	if (!lo || place >= vt->table.data[lo - 1].end ||
	    (place - vt->table.data[lo - 1].point) % 8)
		return NULL;
	return &vt->table.data[lo - 1];
}
