/* object.c: see object.h.
 *
 * Only virtual tables, construction vtables and VTTs may be unused (Itanium C++ ABI 2.5, 2.6): who
 * uses one refers to it by its symbol, or, if the assembler replaced a local symbol by that of its
 * section, to an address inside of it.  The rules, each with an example of what would break
 * without it:
 *   - A reference keeps the object that its relocation names, and those that its target touches;
 *     both ends count.  `table-8(,%rax,8)` means `table`, and its target lies in the object before
 *     it.  `first+(second-first)` means `second`.  A base class without virtual functions has its
 *     address point at the end of the table.
 *   - Tables begin with a number and the address of a type_info.  What begins with functions is an
 *     array, which may be addressed from before its start: at what looks like the address point of
 *     the table before it.
 *   - An address in the middle of an object (a member pointer's slot, a secondary vtable) means the
 *     whole object: code goes on from there in both directions.
 *   - The name of a relocation against a section says nothing, and distances inside one input
 *     section need no relocation.  If a target is no address point, it may be an anchor, from which
 *     the code reaches all objects of its input section: merged globals, section anchors, distances
 *     between objects.  GCC's anchors for AArch64 may be address points: there, what has no name
 *     may be an anchor anywhere (local classes of one file: it counts from the first table).  All
 *     objects around it live together, up to one that is known to have an input section of its own
 *     (weak symbols of C++ have: the linker chooses among such sections), or to come from another
 *     object file: behind a local object of one file, a local object of another one is in another
 *     input section.
 *   - A label without type or size may delimit a list that the program walks through, as
 *     __start_NAME and a linker script's labels do: all objects of its section are used.
 *   - What is exported is used: other modules find it by name, COPY relocations by address.
 *   - Objects that overlap, and those with a label inside, are no tables of a compiler.
 *   - A word of data that no object holds is used, whatever it is: slots of the GOT; DW.ref.* and
 *     type tables of exceptions; constants without a name, of which two vtable pointers are stored
 *     at once; and so are all objects of another kind, with what they refer to: tables of
 *     operations, type_info, which is compared by address.  Data does not move, so a type_info that
 *     only an unused object refers to stays what it was.
 *   - Bytes that are not understood keep what any relocation or any four bytes of them may mean.
 * Cost: linear in the symbols and relocations, times log(objects). */
#include "icf/fold/unused/object.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

#define MORTAL 1 /* may be unused */
#define LIVE   2
#define TABLE  4  /* virtual table, construction vtable, VTT */
#define ALONE  8  /* has an input section of its own */
#define TYPE   16 /* type_info or its name */

static int object_order(const void *a, const void *b)
{
	const struct icf_object *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Flags by the name of a symbol of C++ (5.1.4.1 of the ABI). */
static uint8_t kind_of(const char *name, unsigned bind)
{
	uint8_t flags = 0;
	if (!name || strncmp(name, "_ZT", 3) != 0)
		return 0;
	if (name[3] == 'V' || name[3] == 'C' || name[3] == 'T')
		flags = TABLE;
	else if (name[3] == 'I' || name[3] == 'S')
		flags = TYPE;
	if (flags && (bind == STB_WEAK || bind == STB_GNU_UNIQUE))
		flags |= ALONE;
	return flags;
}

/* Data that a program finds in no other way than by references. */
static bool is_plain(const struct elfrw_section *s)
{
	return s->hdr.sh_type == SHT_PROGBITS && s->data &&
	       !(s->hdr.sh_flags & (SHF_MERGE | SHF_TLS | SHF_EXECINSTR)) &&
	       (s->hdr.sh_flags & SHF_ALLOC) &&
	       (strncmp(s->name, ".data", 5) == 0 || strncmp(s->name, ".rodata", 7) == 0);
}

/* The section of SYM if it is one of data; or NULL. */
static const struct elfrw_section *data_section(const struct icf_program *prog,
						const Elf64_Sym *sym)
{
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= prog->img->n_sections)
		return NULL;
	const struct elfrw_section *s = &prog->img->section[sym->st_shndx];
	return (s->hdr.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC ? s : NULL;
}

/* The first object that begins behind VA. */
static size_t behind(const struct icf_objects *o, uint64_t va)
{
	size_t from, to;
	elfrw_starts_range(&o->at, va, &from, &to);
	return LOWER_BOUND(from, to, mid, o->v.data[mid].start <= va);
}

static struct elfrw_err *read_symbols(struct icf_objects *o)
{
	const struct icf_program *prog = o->prog;
	const struct elfrw_image *img = prog->img;
	const struct elfrw_section *tab = &img->section[img->symtab];
	uint32_t file = 0, n_files = 0;
	for (struct elfrw_symbols it = elfrw_symbols(img->symtab ? tab : NULL, 1);
	     elfrw_symbols_next(&it);) {
		if (ELF64_ST_TYPE(it.sym.st_info) == STT_FILE)
			file = it.sym.st_name ? ++n_files : 0;
		const struct elfrw_section *s = data_section(prog, &it.sym);
		uint64_t start = it.sym.st_value, size = it.sym.st_size;
		if (!s || !size || ELF64_ST_TYPE(it.sym.st_info) != STT_OBJECT ||
		    start + size < start)
			continue;
		uint8_t flags = kind_of(elfrw_image_string(img, tab->hdr.sh_link, it.sym.st_name),
					ELF64_ST_BIND(it.sym.st_info));
		if ((flags & TABLE) && is_plain(s) && start - s->hdr.sh_addr < s->hdr.sh_size &&
		    size <= s->hdr.sh_size - (start - s->hdr.sh_addr))
			flags |= MORTAL;
		struct icf_object *slot = VEC_PUSH(&o->v);
		if (!slot)
			return &elfrw_err_nomem;
		bool local = ELF64_ST_BIND(it.sym.st_info) == STB_LOCAL;
		*slot = (struct icf_object){ .start = start,
					     .end = start + size,
					     .shndx = it.sym.st_shndx,
					     .file = local ? file : 0,
					     .flags = flags };
	}
	/* Global symbols that the link made local stand behind all files' own: gold puts no file
	 * before them, bfd one without a name. */
	for (size_t i = 0; i < o->v.len; i++)
		if (o->v.data[i].file == n_files)
			o->v.data[i].file = 0;
	if (o->v.len)
		qsort(o->v.data, o->v.len, sizeof *o->v.data, object_order);
	return NULL;
}

/* Symbols of the same extent are names of one object.  Others that overlap are no objects. */
static void join(struct icf_objects *o)
{
	size_t n = 0;
	uint64_t end = 0; /* of all objects so far */
	for (size_t i = 0; i < o->v.len; i++) {
		struct icf_object x = o->v.data[i];
		struct icf_object *last = n ? &o->v.data[n - 1] : NULL;
		if (last && last->start == x.start && last->end == x.end) {
			/* Each name has to allow it. */
			last->flags = (uint8_t)(last->flags &
						(x.flags | ~(MORTAL | TABLE | ALONE | TYPE)));
			last->file = last->file == x.file ? x.file : 0;
			continue;
		}
		if (n && x.start < end) {
			x.flags &= (uint8_t)~MORTAL;
			for (size_t k = n; k-- && o->v.data[k].end > x.start;)
				o->v.data[k].flags &= (uint8_t)~MORTAL;
		}
		end = x.end > end ? x.end : end;
		o->v.data[n++] = x;
	}
	o->v.len = n;
}

/* A symbol inside of an object says that it is more than a table. */
static void find_labels(struct icf_objects *o)
{
	const struct icf_program *prog = o->prog;
	for (struct elfrw_all_symbols it = { .img = prog->img }; elfrw_all_symbols_next(&it);) {
		unsigned type = ELF64_ST_TYPE(it.sym.st_info);
		size_t i = behind(o, it.sym.st_value);
		if (type == STT_TLS || type == STT_SECTION || type == STT_FILE ||
		    it.sym.st_shndx == SHN_UNDEF || !i)
			continue;
		struct icf_object *x = &o->v.data[i - 1];
		if (it.sym.st_value > x->start && it.sym.st_value < x->end)
			x->flags &= (uint8_t)~MORTAL;
	}
}

/* Objects that refer to code where a table has a number and a type_info: of words of eight bytes,
 * or of four. */
static void find_arrays(struct icf_objects *o)
{
	const struct icf_program *prog = o->prog;
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		size_t k = behind(o, d->place);
		struct icf_object *x = k ? &o->v.data[k - 1] : NULL;
		if (x && d->place - x->start < (d->size == 4 ? 8 : 16))
			x->flags &= (uint8_t) ~(MORTAL | TABLE);
	}
}

/* If a section has several lists of relocations, no object is known to be unused. */
static struct elfrw_err *open_relocs(struct icf_objects *o)
{
	const struct elfrw_image *img = o->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		struct elfrw_err *err = img->section[i].hdr.sh_flags & SHF_ALLOC
						? elfrw_relocs_open(&o->rel[i], img, i)
						: NULL;
		if (err == &elfrw_err_nomem)
			return err;
		if (err) {
			o->v.len = 0;
			elfrw_blocks_deinit(&o->at.blocks);
			o->at = (struct elfrw_starts){ 0 };
		}
		elfrw_err_free(err);
	}
	return NULL;
}

struct elfrw_err *icf_objects_init(struct icf_objects *ret, const struct icf_program *prog)
{
	*ret = (struct icf_objects){ .prog = prog };
	ELFRW_TRY(read_symbols(ret));
	join(ret);
	if (!elfrw_starts_make(&ret->at, ret->v.len ? &ret->v.data->start : NULL,
			       sizeof *ret->v.data, ret->v.len))
		return &elfrw_err_nomem;
	find_labels(ret);
	find_arrays(ret);
	ret->queue = malloc((ret->v.len + 1) * sizeof *ret->queue);
	ret->first_rel = calloc(prog->unit.len + 1, sizeof *ret->first_rel);
	ret->around = calloc(ret->v.len + 1, sizeof *ret->around);
	ret->mortal = calloc(prog->img->n_sections + 1, sizeof *ret->mortal);
	ret->rel = calloc(prog->img->n_sections + 1, sizeof *ret->rel);
	if (!ret->queue || !ret->first_rel || !ret->around || !ret->mortal || !ret->rel)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < ret->v.len; i++)
		ret->mortal[ret->v.data[i].shndx] += (ret->v.data[i].flags & MORTAL) != 0;
	return open_relocs(ret);
}

void icf_objects_deinit(struct icf_objects *o)
{
	for (uint32_t i = 0; o->rel && i < o->prog->img->n_sections; i++)
		elfrw_relocs_close(&o->rel[i]);
	free(o->rel);
	free(o->mortal);
	free(o->around);
	free(o->first_rel);
	free(o->queue);
	elfrw_blocks_deinit(&o->at.blocks);
	VEC_FREE(&o->v);
}

static void use(struct icf_objects *o, size_t i)
{
	struct icf_object *x = &o->v.data[i];
	if (!(x->flags & MORTAL) || (x->flags & LIVE))
		return;
	x->flags |= LIVE;
	x->use = o->now;
	o->queue[o->n_queue++] = (uint32_t)i;
}

/* What VA touches: the object that holds it; if none does, the one that ends there. */
static void touch(struct icf_objects *o, uint64_t va)
{
	size_t i = behind(o, va);
	if (i && va <= o->v.data[i - 1].end)
		use(o, i - 1);
}

static void use_section(struct icf_objects *o, uint32_t shndx)
{
	const struct elfrw_section *s = &o->prog->img->section[shndx];
	if (!o->mortal[shndx])
		return;
	for (size_t i = LOWER_BOUND(0, o->v.len, mid, o->v.data[mid].start < s->hdr.sh_addr);
	     i < o->v.len && o->v.data[i].start - s->hdr.sh_addr < s->hdr.sh_size; i++)
		use(o, i);
}

/* Is PLACE in a virtual table, VTT or type_info? */
static bool in_cxx_data(const struct icf_objects *o, uint64_t place)
{
	size_t i = behind(o, place);
	return i && place < o->v.data[i - 1].end && (o->v.data[i - 1].flags & (TABLE | TYPE));
}

/* Does VA alone say which object is meant, and that it is reached from VA only?  So it is at the
 * address points of virtual tables, behind at least two words; in VTTs; and at type_infos.  Where
 * addresses are made of halves, compilers count from one anchor to all that an input section holds,
 * and the anchor may be at any of these places; then only the name SYM tells, or that X is alone.
 */
static bool is_point(const struct icf_objects *o, const Elf64_Sym *sym, uint64_t va)
{
	size_t i = behind(o, va);
	const struct icf_object *x = i ? &o->v.data[i - 1] : NULL;
	if (!x || va >= x->end)
		return false;
	bool named = sym && ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_value == x->start;
	if (!named && !(x->flags & ALONE) && o->prog->arch->low_form &&
	    !in_cxx_data(o, o->now.place))
		return false;
	if (x->flags & TABLE)
		return (va - x->start) % 8 == 0 && (named || va > x->start);
	return (x->flags & TYPE) && va == x->start;
}

/* May X be in one input section with what lies between X and the start of a search?  FILE: where
 * that comes from, if it is known. */
static bool same_input(const struct icf_object *x, uint32_t shndx, uint32_t *file)
{
	if (x->shndx != shndx || (x->flags & ALONE) || (x->file && *file && x->file != *file))
		return false;
	*file = x->file ? x->file : *file;
	return true;
}

/* VA may be any place of an input section: all objects of that are used. */
static void use_around(struct icf_objects *o, uint64_t va)
{
	uint32_t shndx = elfrw_image_section_at(o->prog->img, va);
	size_t i = behind(o, va);
	if (!shndx || !o->mortal[shndx])
		return;
	if (i && (o->v.data[i - 1].flags & ALONE) && va < o->v.data[i - 1].end) {
		use(o, i - 1);
		return;
	}
	if (o->around[i] == shndx)
		return;
	o->around[i] = shndx;
	uint32_t file = 0;
	for (size_t k = i; k-- && same_input(&o->v.data[k], shndx, &file);)
		use(o, k);
	file = 0;
	for (size_t k = i; k < o->v.len && same_input(&o->v.data[k], shndx, &file); k++)
		use(o, k);
}

/* A reference to VA, with a relocation against SYM (NULL: none). */
static void refer(struct icf_objects *o, const Elf64_Sym *sym, uint64_t va)
{
	const struct elfrw_section *s = sym ? data_section(o->prog, sym) : NULL;
	touch(o, va);
	if (sym && ELF64_ST_TYPE(sym->st_info) == STT_TLS)
		return;
	if (!is_point(o, sym, va))
		use_around(o, va);
	if (!sym || sym->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(sym->st_info) == STT_SECTION)
		return;
	touch(o, sym->st_value);
	if (s && (!sym->st_size || ELF64_ST_TYPE(sym->st_info) != STT_OBJECT))
		use_section(o, sym->st_shndx);
}

/* Relocation R does not stand at a field that is understood. */
static void refer_somewhere(struct icf_objects *o, uint32_t symtab, const Elf64_Rela *r)
{
	Elf64_Sym sym;
	if (!elfrw_reloc_symbol(o->prog->img, symtab, r, &sym) || sym.st_shndx == SHN_UNDEF ||
	    ELF64_ST_TYPE(sym.st_info) == STT_TLS)
		return;
	uint64_t va = sym.st_value + (uint64_t)r->r_addend;
	/* A distance may count from the end of the instruction, which is up to eight bytes behind
	 * the start of its field. */
	for (unsigned k = 0; k <= (o->prog->arch->from_end ? 8 : 0); k++)
		refer(o, &sym, va + k);
}

/* A high half may name another place of the page than those that are computed from it: an anchor.
 */
static void refer_high(struct icf_objects *o, const Elf64_Sym *sym, const Elf64_Rela *r)
{
	const struct elfrw_arch *arch = o->prog->arch;
	uint8_t form = arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)).form;
	if (form && elfrw_form_is_high(&arch->form[form]))
		refer(o, sym, sym->st_value + (uint64_t)r->r_addend);
}

void icf_objects_of_unit(struct icf_objects *o, uint32_t i)
{
	const struct icf_program *prog = o->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	const struct elfrw_relocs *rel = &o->rel[prog->exec.data[u->sec].shndx];
	uint32_t k = 0;
	for (size_t r = o->first_rel[i] ? o->first_rel[i] - 1 : rel->n;; r++) {
		bool end = r >= rel->n || rel->rela[r].r_offset >= u->end;
		uint64_t place = end ? u->end : rel->rela[r].r_offset;
		for (; k < u->n_ref && u->start + ref[k].off < place; k++) {
			o->now = (struct icf_use){ u->start + ref[k].off, i, ICF_USE_CODE };
			if (ref[k].unit == ICF_NONE)
				refer(o, NULL, ref[k].target);
		}
		if (end)
			break;
		o->now = (struct icf_use){ place, i, ICF_USE_CODE };
		Elf64_Sym sym;
		bool known = elfrw_reloc_symbol(prog->img, rel->symtab, &rel->rela[r], &sym);
		if (k < u->n_ref && u->start + ref[k].off == place) {
			if (known && (ref[k].unit == ICF_NONE || data_section(prog, &sym))) {
				refer(o, &sym, ref[k].target);
				refer_high(o, &sym, &rel->rela[r]);
			}
			k += r + 1 == rel->n || rel->rela[r + 1].r_offset != place;
		} else
			refer_somewhere(o, rel->symtab, &rel->rela[r]);
	}
}

/* Relocation R of section S, which holds data. */
static void refer_in_data(struct icf_objects *o, const struct elfrw_section *s, uint32_t symtab,
			  const Elf64_Rela *r)
{
	const struct icf_program *prog = o->prog;
	struct elfrw_reloc_desc d = prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	uint64_t off = r->r_offset - s->hdr.sh_addr;
	Elf64_Sym sym;
	if (!elfrw_reloc_symbol(prog->img, symtab, r, &sym) ||
	    ELF64_ST_TYPE(sym.st_info) == STT_TLS || !data_section(prog, &sym) ||
	    !o->mortal[sym.st_shndx])
		return;
	uint64_t to = sym.st_value + (uint64_t)r->r_addend;
	bool in = s->data && d.size && off <= s->hdr.sh_size && d.size <= s->hdr.sh_size - off;
	uint64_t field = in ? elfrw_get_le(s->data + off, d.size) : 0;
	if (d.kind == ELFRW_RELOC_ABS && in) {
		refer(o, &sym, to);
		if (!prog->img->pic)
			touch(o, field);
		return;
	}
	/* Only the code that reads a distance knows from where it counts. */
	bool own = strncmp(s->name, ".eh_frame", 9) == 0 ||
		   strncmp(s->name, ".gcc_except_table", 17) == 0;
	touch(o, sym.st_value);
	touch(o, to);
	if (in)
		touch(o, r->r_offset + (d.size == 4 ? (uint64_t)(int64_t)(int32_t)field : field));
	if (!own && ELF64_ST_TYPE(sym.st_info) == STT_SECTION)
		use_section(o, sym.st_shndx);
	else
		refer(o, &sym, to);
}

bool icf_objects_hold(const struct icf_objects *o, uint64_t place, unsigned size)
{
	size_t i = behind(o, place);
	const struct icf_object *x = i ? &o->v.data[i - 1] : NULL;
	return x && (x->flags & MORTAL) && place < x->end && size <= x->end - place;
}

static bool has_reloc(const struct icf_objects *o, uint64_t place)
{
	const struct elfrw_relocs *rel = &o->rel[elfrw_image_section_at(o->prog->img, place)];
	size_t r = elfrw_relocs_from(rel, place);
	return r < rel->n && rel->rela[r].r_offset == place;
}

/* What dynamic relocation D stores at its place. */
static void refer_dynamic(struct icf_objects *o, const struct icf_dynreloc *d)
{
	size_t i = behind(o, d->addend);
	if (d->kind != ELFRW_RELOC_RELATIVE)
		return;
	touch(o, d->addend);
	/* Slots that the linker makes hold the address of a symbol. */
	if (!(i && o->v.data[i - 1].start == d->addend) && !has_reloc(o, d->place))
		use_around(o, d->addend);
}

void icf_objects_of_object(struct icf_objects *o, uint32_t k)
{
	const struct icf_program *prog = o->prog;
	const struct icf_object x = o->v.data[k];
	const struct elfrw_relocs *rel = &o->rel[x.shndx];
	o->now = x.use;
	for (size_t r = elfrw_relocs_from(rel, x.start);
	     r < rel->n && rel->rela[r].r_offset < x.end; r++)
		refer_in_data(o, &prog->img->section[x.shndx], rel->symtab, &rel->rela[r]);
	for (size_t i = icf_first_dynreloc(prog, x.start);
	     i < prog->dynreloc.len && prog->dynreloc.data[i].place < x.end; i++)
		refer_dynamic(o, &prog->dynreloc.data[i]);
}

/* Words that no relocation describes: the linker's own. */
static void scan_words(struct icf_objects *o, const struct elfrw_section *s)
{
	for (uint64_t off = 0; off + 8 <= s->hdr.sh_size; off += 8) {
		o->now = (struct icf_use){ s->hdr.sh_addr + off, ICF_NONE, ICF_USE_DATA };
		touch(o, elfrw_get64(s->data + off));
	}
}

/* Code that is not understood may refer to what any bytes of it mean. */
static void scan_opaque(struct icf_objects *o, uint32_t i)
{
	const struct icf_unit *u = &o->prog->unit.data[i];
	const uint8_t *p = icf_unit_bytes(o->prog, u);
	for (uint64_t pos = 0; pos + 4 <= u->end - u->start; pos++) {
		uint64_t d = (uint64_t)(int64_t)(int32_t)elfrw_get32(p + pos);
		o->now = (struct icf_use){ u->start + pos, i, ICF_USE_CODE };
		for (unsigned k = 4; k <= 8; k++)
			touch(o, u->start + pos + k + d);
		touch(o, d);
	}
}

static void section_roots(struct icf_objects *o, uint32_t shndx)
{
	const struct icf_program *prog = o->prog;
	const struct elfrw_section *s = &prog->img->section[shndx];
	const struct elfrw_relocs *rel = &o->rel[shndx];
	bool code = s->hdr.sh_flags & SHF_EXECINSTR;
	uint32_t unit = ICF_NONE;
	for (size_t r = 0; r < rel->n; r++) {
		const Elf64_Rela *x = &rel->rela[r];
		o->now = (struct icf_use){ x->r_offset, ICF_NONE, ICF_USE_DATA };
		unit = code ? icf_unit_near(prog, x->r_offset, unit) : ICF_NONE;
		if (unit != ICF_NONE && !o->first_rel[unit])
			o->first_rel[unit] = r + 1;
		if (code && unit == ICF_NONE)
			refer_somewhere(o, rel->symtab, x);
		else if (!code && !icf_objects_hold(o, x->r_offset, 1))
			refer_in_data(o, s, rel->symtab, x);
	}
	if (!code && s->data && !rel->n && !prog->img->pic)
		scan_words(o, s);
}

void icf_objects_roots(struct icf_objects *o)
{
	const struct icf_program *prog = o->prog;
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (img->section[i].hdr.sh_flags & SHF_ALLOC)
			section_roots(o, i);
	for (size_t i = 0; i < prog->dynreloc.len; i++) {
		const struct icf_dynreloc *d = &prog->dynreloc.data[i];
		o->now = (struct icf_use){ d->place, ICF_NONE, ICF_USE_DATA };
		if (!icf_objects_hold(o, d->place, 1))
			refer_dynamic(o, d);
	}
	o->now = (struct icf_use){ 0, ICF_NONE, ICF_USE_EXPORT };
	for (struct elfrw_symbols it =
		     elfrw_symbols(img->dynsym ? &img->section[img->dynsym] : NULL, 1);
	     elfrw_symbols_next(&it);) {
		if (it.sym.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(it.sym.st_info) == STT_TLS)
			continue;
		touch(o, it.sym.st_value);
	}
	for (uint32_t i = 1; elfrw_dynrelocs_name_sections(img) && i < img->n_sections; i++)
		use_section(o, i);
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (prog->unit.data[i].kind == ICF_UNIT_OPAQUE)
			scan_opaque(o, i);
}

struct elfrw_err *icf_objects_finish(const struct icf_objects *o, struct icf_program *prog)
{
	for (size_t i = 0; i < o->v.len; i++) {
		const struct icf_object *x = &o->v.data[i];
		struct icf_data_run *slot;
		if ((x->flags & (MORTAL | LIVE)) != MORTAL)
			continue;
		if (!(slot = VEC_PUSH(&prog->dead)))
			return &elfrw_err_nomem;
		*slot = (struct icf_data_run){ x->start, x->end };
	}
	return NULL;
}
