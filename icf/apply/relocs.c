/* relocs.c: the kept relocations of the output, for --emit-relocs.
 *
 * A relocation moves with its field.  Its addend changes by the target's move minus the symbol's
 * move.  So symbol + addend is as correct as before, or as stale as before after a linker's
 * relaxation.  Relocations of folded bodies are dropped; each thunk gets one.  Tables that were
 * encoded anew (unwind tables, line tables, lists) have no relocations in the output. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/apply/apply.h"
#include "icf/refs/guard.h"
#include "icf/refs/ref.h"
#include <stdlib.h>
#include <string.h>

struct list {
	VEC(Elf64_Rela) v;
};

static struct elfrw_err *push(struct list *l, const Elf64_Rela *r)
{
	Elf64_Rela *slot = VEC_PUSH(&l->v);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = *r;
	return NULL;
}

static const struct icf_ref *ref_at(const struct icf_program *prog, const struct icf_unit *u,
				    uint64_t place)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	size_t i = LOWER_BOUND(0, u->n_ref, mid, u->start + ref[mid].off < place);
	return i < u->n_ref && u->start + ref[i].off == place ? &ref[i] : NULL;
}

/* Is there a PC-relative field at PLACE?  Where fields are packed, the relocation says where the
 * instruction is; linkers relax some to a no-op, and gold writes some to other instructions. */
static bool has_field(const struct icf_program *prog, const struct icf_unit *u, uint64_t place,
		      const struct elfrw_reloc_desc *d)
{
	struct elfrw_insn in;
	uint64_t off = place - u->start;
	return !d->form ||
	       !icf_decode(prog, u, icf_unit_bytes(prog, u) + off, u->end - u->start - off, place,
			   &in) ||
	       in.pcrel_size;
}

/* How far what R names moved, by its symbol and addend. */
static uint64_t named_shift(const struct icf_apply *a, uint32_t symtab, const Elf64_Rela *r)
{
	Elf64_Sym sym;
	if (!elfrw_reloc_symbol(a->prog->img, symtab, r, &sym))
		return 0;
	uint64_t to = sym.st_value + (uint64_t)r->r_addend;
	uint32_t i = icf_unit_at(a->prog, to);
	return i != ICF_NONE ? icf_new_target(a, i, to, true) - to : 0;
}

/* How far the target of R moved.  *GONE: its field is not in the output.  *KNOWN: its target is a
 * place that the map covers, and not one that the dynamic linker finds for its symbol. */
static uint64_t target_shift(const struct icf_apply *a, uint32_t symtab, Elf64_Rela *r, bool *gone,
			     bool *known)
{
	const struct icf_program *prog = a->prog;
	*gone = false;
	*known = true;
	if (!icf_in_exec(prog, r->r_offset)) {
		const struct icf_dataref *d = icf_dataref_at(prog, r->r_offset);
		/* Nothing reads the table of a function that is gone. */
		uint32_t owner =
			d && d->table != ICF_NONE ? prog->table.data[d->table].owner : ICF_NONE;
		*gone = owner != ICF_NONE && (a->plan->map.unit[owner].flags & ELFRW_UNIT_FOLDED);
		/* An object that nothing reaches refers to one that is gone. */
		*gone |= d && icf_is_removed(a, d->unit) && icf_in_dead(prog, d->place);
		*known = d != NULL;
		return d && !d->left
			       ? icf_new_target(a, d->unit, d->target, icf_means_entry(prog, d)) -
					 d->target
			       : 0;
	}
	uint32_t i = icf_unit_at(prog, r->r_offset);
	if (i == ICF_NONE || (a->plan->map.unit[i].flags & ELFRW_UNIT_FOLDED)) {
		*gone = true;
		return 0;
	}
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = ref_at(prog, u, r->r_offset);
	uint64_t delta = a->plan->map.unit[i].body - u->start;
	r->r_offset += delta;
	if (ref && (ref->flags & ICF_REF_HALF))
		return 0;
	if (ref)
		return icf_new_ref_target(a, u, ref) - ref->target;
	/* PC-relative, and no reference to another unit: the target moves with the field, if the
	 * linker left one there. */
	struct elfrw_reloc_desc d = prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	*known = d.kind == ELFRW_RELOC_PCREL || d.kind == ELFRW_RELOC_LOW;
	if (d.kind == ELFRW_RELOC_PCREL && !has_field(prog, u, r->r_offset - delta, &d))
		return named_shift(a, symtab, r);
	return d.kind == ELFRW_RELOC_PCREL ? delta : 0;
}

static struct elfrw_err *move_one(struct icf_apply *a, const struct elfrw_section *rel,
				  Elf64_Rela r, struct list *out)
{
	const struct elfrw_image *img = a->prog->img;
	uint32_t symtab = rel->hdr.sh_link;
	uint64_t index = ELF64_R_SYM(r.r_info), shift = 0;
	bool gone, known;
	uint64_t moved = target_shift(a, symtab, &r, &gone, &known);
	if (gone)
		return NULL;
	if (index) {
		Elf64_Sym old, new;
		if (!elfrw_reloc_symbol(img, symtab, &r, &old))
			return elfrw_error("relocation in %s against a symbol that does not exist",
					   rel->name);
		uint64_t to =
			symtab == img->symtab && a->symbol_index ? a->symbol_index[index] : index;
		if (to == UINT32_MAX)
			return elfrw_error(
				"relocation in %s against a symbol of a section that is dropped",
				rel->name);
		memcpy(&new, a->out->sec[symtab].data + to * sizeof new, sizeof new);
		if (ELF64_ST_TYPE(old.st_info) != STT_TLS)
			shift = new.st_value - old.st_value;
		r.r_info = ELF64_R_INFO(to, ELF64_R_TYPE(r.r_info));
	}
	/* A value that does not depend on the symbol's address (a TLS offset, a size, a GOT slot)
	 * keeps its addend. */
	struct elfrw_reloc_desc d = a->prog->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
	if (known && (d.kind == ELFRW_RELOC_ABS || d.kind == ELFRW_RELOC_PCREL ||
		      d.kind == ELFRW_RELOC_LOW || (d.kind == ELFRW_RELOC_GOTPCREL && moved)))
		r.r_addend += (int64_t)(moved - shift);
	return push(out, &r);
}

static int rela_order(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;
	if (x->r_offset != y->r_offset)
		return x->r_offset < y->r_offset ? -1 : 1;
	return x->r_info < y->r_info ? -1 : x->r_info > y->r_info;
}

/* Adds the relocations of all thunks' branches. */
static struct elfrw_err *add_thunks(struct icf_apply *a, struct list *out)
{
	const struct icf_program *prog = a->prog;
	const struct elfrw_addrmap *map = &a->plan->map;
	for (uint32_t i = 0; i < map->n_units; i++) {
		const struct icf_unit *kept = &prog->unit.data[map->unit[i].kept];
		if (!(map->unit[i].flags & ELFRW_UNIT_THUNK) || kept->sym == ICF_NONE)
			continue;
		uint32_t index = prog->sym.data[kept->sym].index;
		if (index & ICF_IN_DYNSYM)
			continue;
		if (a->symbol_index)
			index = a->symbol_index[index];
		struct elfrw_thunk t =
			prog->arch->thunk(NULL, map->unit[i].entry, map->unit[i].body,
					  prog->unit.data[i].flags & ICF_UNIT_ENDBR);
		for (unsigned n = 0; n < t.n_reloc; n++) {
			Elf64_Rela r = { .r_offset = map->unit[i].entry + t.reloc[n].off,
					 .r_info = ELF64_R_INFO(index, t.reloc[n].type),
					 .r_addend = t.reloc[n].addend };
			ELFRW_TRY(push(out, &r));
		}
	}
	return NULL;
}

struct elfrw_err *icf_apply_relocs(struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *rel = &img->section[i];
		if (rel->hdr.sh_type != SHT_RELA || (rel->hdr.sh_flags & SHF_ALLOC) || !rel->data ||
		    a->out->sec[i].drop)
			continue;
		struct list out = { 0 };
		struct elfrw_err *err = NULL;
		bool loaded = img->section[rel->hdr.sh_info].hdr.sh_flags & SHF_ALLOC;
		for (uint64_t k = 0; k < rel->hdr.sh_size / sizeof(Elf64_Rela) && !err; k++) {
			Elf64_Rela r;
			memcpy(&r, rel->data + k * sizeof r, sizeof r);
			if (loaded)
				err = move_one(a, rel, r, &out);
			else if (!a->symbol_index)
				err = push(&out, &r);
		}
		if (!err && a->plan->thunk_exec < a->prog->exec.len &&
		    rel->hdr.sh_info == a->prog->exec.data[a->plan->thunk_exec].shndx)
			err = add_thunks(a, &out);
		if (!err && loaded && out.v.len)
			qsort(out.v.data, out.v.len, sizeof *out.v.data, rela_order);
		if (err) {
			VEC_FREE(&out.v);
			return err;
		}
		elfrw_output_replace(a->out, i, (uint8_t *)out.v.data,
				     out.v.len * sizeof(Elf64_Rela));
	}
	return NULL;
}
