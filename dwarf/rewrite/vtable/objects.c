/* objects.c: the vtable objects to be described, from the symbols; see vtable.c. */
#include "dwarf/calls/vtables.h"
#include "dwarf/rewrite/vtable/state.h"
#include "elfrw/image.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

static int symbol_order(const void *a, const void *b)
{
	const struct dwr_vtable_symbol *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->local != y->local ? x->local - y->local : strcmp(x->name, y->name);
}

static int object_order(const void *a, const void *b)
{
	const struct dwr_vtable_object *x = a, *y = b;
	int c = dwr_vtable_text_order(x->name, x->len, y->name, y->len);
	return c ? c : x->address < y->address ? -1 : x->address > y->address;
}

struct elfrw_err *dwr_vtable_read_symbols(struct dwr_vtable_search *s)
{
	const struct elfrw_image *img = s->rw->in->image;
	uint32_t shndx = img->symtab ? img->symtab : img->dynsym;
	const struct elfrw_section *sec = shndx ? &img->section[shndx] : NULL;
	for (struct elfrw_symbols it = elfrw_symbols(sec, 0); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    !sym.st_name)
			continue;
		const char *name = elfrw_image_string(img, sec->hdr.sh_link, sym.st_name);
		if (!name || strncmp(name, "_ZT", 3) ||
		    (name[3] != 'V' && name[3] != 'C' && name[3] != 'I') || strchr(name, '@'))
			continue;
		struct dwr_vtable_symbol *slot = VEC_PUSH(&s->symbol);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct dwr_vtable_symbol){ sym.st_value, name,
						    ELF64_ST_BIND(sym.st_info) == STB_LOCAL };
	}
	if (s->symbol.len)
		qsort(s->symbol.data, s->symbol.len, sizeof *s->symbol.data, symbol_order);
	return NULL;
}

/* The symbol at ADDRESS whose fourth letter is KIND, or NULL. */
static const struct dwr_vtable_symbol *symbol_at(const struct dwr_vtable_search *s,
						 uint64_t address, char kind)
{
	size_t lo = LOWER_BOUND(0, s->symbol.len, mid, s->symbol.data[mid].address < address);
	for (; lo < s->symbol.len && s->symbol.data[lo].address == address; lo++)
		if (s->symbol.data[lo].name[3] == kind)
			return &s->symbol.data[lo];
	return NULL;
}

/* May NAME mean different classes in different files?  A class with a hidden symbol does not
 * count. */
static bool local_name(const char *name)
{
	static const char *const mark[] = { "_GLOBAL__N_", "ZL", "$_", "Ul", "Ut" };
	for (unsigned i = 0; i < sizeof mark / sizeof *mark; i++)
		if (strstr(name, mark[i]))
			return true;
	return name[0] == 'Z';
}

struct elfrw_err *dwr_vtable_collect(struct dwr_vtable_search *s, struct dwr_rw_vtables *ret)
{
	const struct dwr_rewrite_in *in = s->rw->in;
	struct dwr_vtables vt;
	uint64_t last = UINT64_MAX;
	struct elfrw_err *err = NULL;
	ELFRW_TRY(dwr_vtables_read(in->image, in->image, &vt));
	for (size_t i = 0; i < in->n_vslots && !err; i++) {
		const struct dwr_vtable *t = dwr_vtables_find(&vt, in->vslot[i].slot);
		struct dwr_vtable_slot *slot = t ? VEC_PUSH(&s->slot) : NULL;
		if (t && !slot)
			err = &elfrw_err_nomem;
		if (slot)
			*slot = (struct dwr_vtable_slot){ t->object, in->vslot[i].unit };
		if (!slot || t->object == last)
			continue;
		last = t->object;
		const struct dwr_vtable_symbol *sym = symbol_at(s, t->object, t->name[3]);
		if (sym && t->name[3] == 'C')
			sym = symbol_at(s, dwr_vtables_value(in->image, &vt, t->point - 8), 'I');
		const char *name = sym ? sym->name + 4 : "";
		size_t len = strlen(name);
		if (!len) {
			ret->left_out++;
			continue;
		}
		if (len > 2 && name[0] == 'N' && name[len - 1] == 'E') {
			name++;
			len -= 2;
		}
		struct dwr_vtable_object *o = VEC_PUSH(&s->object);
		if (!o)
			err = &elfrw_err_nomem;
		else
			*o = (struct dwr_vtable_object){ .address = t->object,
							 .name = name,
							 .len = len,
							 .local = sym->local &&
								  local_name(sym->name + 4) };
	}
	dwr_vtables_deinit(&vt);
	if (!err && s->object.len)
		qsort(s->object.data, s->object.len, sizeof *s->object.data, object_order);
	return err;
}
