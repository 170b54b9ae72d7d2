/* dataref.c: the references in data to code.
 *
 * In data only a relocation shows that a field is an address.  Sources, most trusted first: dynamic
 * relocations (in position-independent files their addends count, whatever the field holds); kept
 * relocations (for fixed addresses, and for PC-relative fields such as jump tables); and words that
 * the linker itself made without relocations: GOT and PLT slots of programs with fixed
 * addresses. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/infer/parts.h"
#include "icf/program/program.h"
#include "icf/refs/ref.h"
#include <stdlib.h>
#include <string.h>

struct span {
	uint64_t start, end;
};

struct vtables {
	VEC(struct span) v; /* sorted by start */
};

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Vtables and construction vtables (Itanium C++ ABI 5.1.4): a program calls through their slots and
 * cannot compare them. */
static struct elfrw_err *find_vtables(const struct icf_program *prog, struct vtables *ret)
{
	const struct elfrw_image *img = prog->img;
	uint32_t shndx = img->symtab ? img->symtab : img->dynsym;
	const struct elfrw_section *s = &img->section[shndx];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    sym.st_size == 0)
			continue;
		const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		if (!name || (strncmp(name, "_ZTV", 4) != 0 && strncmp(name, "_ZTC", 4) != 0) ||
		    sym.st_value + sym.st_size < sym.st_value)
			continue;
		struct span *v = VEC_PUSH(&ret->v);
		if (!v)
			return &elfrw_err_nomem;
		*v = (struct span){ sym.st_value, sym.st_value + sym.st_size };
	}
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, span_order);
	return NULL;
}

static bool in_vtable(const struct vtables *vt, uint64_t place)
{
	size_t lo = LOWER_BOUND(0, vt->v.len, mid, vt->v.data[mid].start <= place);
	return lo && place < vt->v.data[lo - 1].end;
}

/* In code, or at its end (etext and the like). */
static bool names_code(const struct icf_program *prog, uint64_t va)
{
	return icf_in_exec(prog, va) ||
	       (icf_ends_exec(prog, va) && elfrw_image_section_at(prog->img, va) == 0);
}

static struct elfrw_err *push(struct icf_program *prog, uint64_t place, uint64_t target,
			      unsigned size, enum icf_data_kind kind, bool dynamic)
{
	if (icf_in_exec(prog, place))
		return elfrw_error(
			"code at 0x%llx is changed by a dynamic relocation (text relocations are not supported)",
			(unsigned long long)place);
	struct icf_dataref *d = VEC_PUSH(&prog->dataref);
	if (!d)
		return &elfrw_err_nomem;
	*d = (struct icf_dataref){ .place = place,
				   .target = target,
				   .unit = ICF_NONE,
				   .table = ICF_NONE,
				   .size = (uint8_t)size,
				   .kind = (uint8_t)kind,
				   .dynamic = dynamic };
	return NULL;
}

/* INDEX: of NEW in its section. */
static struct elfrw_err *push_dynreloc(struct icf_program *prog, uint64_t index,
				       struct icf_dynreloc new)
{
	if (index > UINT32_MAX)
		return elfrw_error("too many dynamic relocations");
	struct icf_dynreloc *d = VEC_PUSH(&prog->dynreloc);
	if (!d)
		return &elfrw_err_nomem;
	new.index = (uint32_t)index;
	*d = new;
	return NULL;
}

/* DT_RELR: gABI, "Relative Relocation Table": an address, then bitmaps of the 63 words that
 * follow. */
static struct elfrw_err *read_relr(struct icf_program *prog, uint32_t shndx)
{
	const struct elfrw_section *s = &prog->img->section[shndx];
	uint64_t where = 0;
	for (size_t i = 0; i < s->hdr.sh_size / 8; i++) {
		uint64_t word = elfrw_get64(s->data + 8 * i), place[64];
		unsigned n = 0;
		if (!(word & 1)) {
			place[n++] = word;
			where = word + 8;
		} else {
			for (unsigned bit = 1; bit < 64; bit++)
				if (word >> bit & 1)
					place[n++] = where + 8 * (bit - 1);
			where += 8 * 63;
		}
		for (unsigned k = 0; k < n; k++) {
			const uint8_t *p = elfrw_image_at(prog->img, place[k], 8);
			if (!p)
				return elfrw_error_at(
					s->name, 8 * i,
					"relative relocation of 0x%llx, which is in no section",
					(unsigned long long)place[k]);
			struct icf_dynreloc d = { .place = place[k],
						  .addend = elfrw_get64(p),
						  .shndx = shndx,
						  .kind = ELFRW_RELOC_RELATIVE,
						  .relr = true };
			ELFRW_TRY(push_dynreloc(prog, i, d));
		}
	}
	return NULL;
}

static int dynreloc_order(const void *a, const void *b)
{
	const struct icf_dynreloc *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

size_t icf_first_dynreloc(const struct icf_program *prog, uint64_t place)
{
	size_t from = 0, to = prog->dynreloc.len;
	if (!place)
		return 0;
	if (prog->dynreloc_index.n == to)
		elfrw_starts_range(&prog->dynreloc_index, place - 1, &from, &to);
	return LOWER_BOUND(from, to, mid, prog->dynreloc.data[mid].place < place);
}

const struct icf_dynreloc *icf_dynreloc_at(const struct icf_program *prog, uint64_t place)
{
	size_t i = icf_first_dynreloc(prog, place);
	return i < prog->dynreloc.len && prog->dynreloc.data[i].place == place
		       ? &prog->dynreloc.data[i]
		       : NULL;
}

const struct icf_dataref *icf_dataref_at(const struct icf_program *prog, uint64_t place)
{
	size_t lo = LOWER_BOUND(0, prog->dataref.len, mid, prog->dataref.data[mid].place < place);
	return lo < prog->dataref.len && prog->dataref.data[lo].place == place
		       ? &prog->dataref.data[lo]
		       : NULL;
}

bool icf_in_dead(const struct icf_program *prog, uint64_t place)
{
	size_t lo = LOWER_BOUND(0, prog->dead.len, mid, prog->dead.data[mid].start <= place);
	return lo && place < prog->dead.data[lo - 1].end;
}

/* Linkers write them sorted by kind and by symbol. */
static bool sort_dynrelocs(struct icf_program *prog)
{
	uint64_t lo = UINT64_MAX, hi = 0, last = 0;
	bool sorted = true;
	for (size_t i = 0; i < prog->dynreloc.len; i++) {
		uint64_t place = prog->dynreloc.data[i].place;
		lo = place < lo ? place : lo;
		hi = place > hi ? place : hi;
		sorted &= place >= last;
		last = place;
	}
	return sorted || elfrw_sort_numbers(prog->dynreloc.data, prog->dynreloc.len,
					    sizeof *prog->dynreloc.data, lo, hi, dynreloc_order);
}

static struct elfrw_err *read_dynamic_relocs(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	ELFRW_TRY(elfrw_relocs_known(img));
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || !s->data)
			continue;
		if (s->hdr.sh_type == SHT_RELR)
			ELFRW_TRY(read_relr(prog, i));
		if (s->hdr.sh_type == SHT_REL)
			return elfrw_error_at(s->name, 0,
					      "relocations without addends are not supported");
		if (s->hdr.sh_type != SHT_RELA)
			continue;
		for (uint64_t k = 0; k < s->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			struct elfrw_reloc_desc d =
				img->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
			if (!d.name)
				return elfrw_error_at(s->name, k * sizeof r,
						      "unknown relocation type %u",
						      (unsigned)ELF64_R_TYPE(r.r_info));
			struct icf_dynreloc new = { .place = r.r_offset,
						    .addend = (uint64_t)r.r_addend,
						    .shndx = i,
						    .kind = d.kind };
			ELFRW_TRY(push_dynreloc(prog, k, new));
			if (icf_in_exec(prog, r.r_offset))
				return elfrw_error_at(s->name, k * sizeof r,
						      "text relocations are not supported");
		}
	}
	if (!sort_dynrelocs(prog) ||
	    (prog->dynreloc.len &&
	     !elfrw_starts_make(&prog->dynreloc_index, &prog->dynreloc.data->place,
				sizeof *prog->dynreloc.data, prog->dynreloc.len)))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < prog->dynreloc.len; i++) {
		const struct icf_dynreloc *d = &prog->dynreloc.data[i];
		if ((d->kind == ELFRW_RELOC_RELATIVE || d->kind == ELFRW_RELOC_IRELATIVE) &&
		    names_code(prog, d->addend))
			ELFRW_TRY(push(prog, d->place, d->addend, 8, ICF_DATA_ADDRESS, true));
	}
	return NULL;
}

static bool is_unwind_section(const char *name)
{
	return strcmp(name, ".eh_frame") == 0 || strcmp(name, ".eh_frame_hdr") == 0 ||
	       strcmp(name, ".gcc_except_table") == 0 ||
	       strncmp(name, ".gcc_except_table.", 18) == 0;
}

/* clang's -fsanitize=kcfi lists its traps by distances from their own places.  If the target is no
 * trap (except one that fills a gap), the word counts from elsewhere. */
static bool leads_to_trap(const struct icf_program *prog, const struct elfrw_section *sec,
			  uint64_t target)
{
	uint32_t shndx = strcmp(sec->name, ".kcfi_traps") == 0
				 ? elfrw_image_section_at(prog->img, target)
				 : 0;
	const struct elfrw_section *s = &prog->img->section[shndx];
	if (!shndx || !s->data)
		return false;
	uint64_t off = target - s->hdr.sh_addr;
	struct elfrw_insn in;
	return prog->arch->decode(s->data + off, s->hdr.sh_size - off, target, &in) &&
	       in.kind == ELFRW_INSN_TRAP &&
	       !elfrw_fill_size(prog->arch, s->data + off, s->hdr.sh_size - off, target);
}

#define MAX_TAG 64 /* above the largest tag in an address: tagged.c */

/* The word with relocation R, against SYM, is VALUE; in a position-independent file it is if the
 * dynamic relocation agrees.  The symbol may be another one than the linker's: astray.c. */
static void judge_astray(struct icf_program *prog, const Elf64_Sym *sym, const Elf64_Rela *r,
			 uint64_t value)
{
	if (!icf_leads_astray(prog, sym, value))
		return;
	const struct icf_dynreloc *d = prog->img->pic ? icf_dynreloc_at(prog, r->r_offset) : NULL;
	uint32_t says = (uint32_t)(sym->st_value + (uint64_t)r->r_addend);
	if (prog->img->pic ? d && d->addend == value : (uint32_t)value == says)
		icf_pin_astray(prog, &(struct icf_astray){ *sym, r->r_offset, value });
}

/* The last reference is a distance in section SEC, to code with symbol SYM, or without. */
static void read_distance(struct icf_program *prog, const struct elfrw_section *sec,
			  const Elf64_Sym *sym)
{
	struct icf_dataref *ref = &prog->dataref.data[prog->dataref.len - 1];
	/* A function symbol shows the target of the distance, whatever base the distance counts
	 * from. */
	if (leads_to_trap(prog, sec, ref->target))
		ref->kind = ICF_DATA_OFFSET;
	else if (sym && ELF64_ST_TYPE(sym->st_info) == STT_FUNC) {
		ref->target = sym->st_value;
		ref->kind = ICF_DATA_OFFSET;
	}
}

/* Reads one kept relocation of a data section. */
static struct elfrw_err *read_kept(struct icf_program *prog, const struct elfrw_section *rel,
				   uint64_t at, const struct elfrw_section *sec,
				   const Elf64_Rela *r)
{
	struct elfrw_reloc_desc d = prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	if (!d.name)
		return elfrw_error_at(rel->name, at, "unknown relocation type %u",
				      (unsigned)ELF64_R_TYPE(r->r_info));
	if (d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_PCREL &&
	    d.kind != ELFRW_RELOC_GOTREL && d.kind != ELFRW_RELOC_HARD)
		return NULL;
	Elf64_Sym sym;
	uint64_t addend = (uint64_t)r->r_addend;
	if (d.kind == ELFRW_RELOC_ABS && d.size == 8 && addend && addend < MAX_TAG &&
	    elfrw_reloc_symbol(prog->img, rel->hdr.sh_link, r, &sym))
		icf_pin_tag(prog, &sym, sym.st_value + addend);
	/* In a position-independent file the dynamic relocations count. */
	if (d.kind == ELFRW_RELOC_ABS && prog->img->pic) {
		if (d.size == 8 && elfrw_reloc_symbol(prog->img, rel->hdr.sh_link, r, &sym))
			judge_astray(prog, &sym, r, sym.st_value + addend);
		return NULL;
	}
	uint64_t off = r->r_offset - sec->hdr.sh_addr;
	if (off > sec->hdr.sh_size || d.size > sec->hdr.sh_size - off)
		return elfrw_error_at(rel->name, at, "relocation outside its section");
	if (!elfrw_reloc_symbol(prog->img, rel->hdr.sh_link, r, &sym))
		return elfrw_error_at(rel->name, at,
				      "relocation against a symbol that does not exist");
	bool in_code = sym.st_shndx != SHN_UNDEF && sym.st_shndx < prog->img->n_sections &&
		       (prog->img->section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR);
	if (d.kind == ELFRW_RELOC_GOTREL || d.kind == ELFRW_RELOC_HARD)
		return in_code ? elfrw_error_at(rel->name, at, "%s against code is not supported",
						d.name)
			       : NULL;
	if (d.size < 4) {
		if (in_code) {
			prog->short_words = true;
			icf_infer_loose(prog, r->r_offset,
					"a word of two bytes or one leads to code");
		}
		return NULL;
	}
	uint64_t field = elfrw_get_le(sec->data + off, d.size);
	if (d.kind == ELFRW_RELOC_ABS) {
		judge_astray(prog, &sym, r, field);
		/* An address that the linker resolved to zero or to the marker of a discarded
		 * section does not name code. */
		return names_code(prog, field)
			       ? push(prog, r->r_offset, field, d.size, ICF_DATA_ADDRESS, false)
			       : NULL;
	}
	if (d.size == 4)
		field = (uint64_t)(int64_t)(int32_t)field;
	uint64_t target = r->r_offset + field;
	if (!in_code && (sym.st_shndx != SHN_UNDEF || !icf_in_exec(prog, target)))
		return NULL;
	ELFRW_TRY(push(prog, r->r_offset, target, d.size, ICF_DATA_DISTANCE, false));
	read_distance(prog, sec, in_code ? &sym : NULL);
	return NULL;
}

static struct elfrw_err *read_kept_relocs(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *rel = &img->section[i];
		if (!elfrw_image_kept_relocs(img, rel) || rel->hdr.sh_info == 0)
			continue;
		const struct elfrw_section *sec = &img->section[rel->hdr.sh_info];
		if (!(sec->hdr.sh_flags & SHF_ALLOC) || (sec->hdr.sh_flags & SHF_EXECINSTR) ||
		    !sec->data || is_unwind_section(sec->name))
			continue;
		for (uint64_t k = 0; k < rel->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, rel->data + k * sizeof r, sizeof r);
			ELFRW_TRY(read_kept(prog, rel, k * sizeof r, sec, &r));
		}
	}
	return NULL;
}

/* Words that the linker made: GOT and PLT slots, init arrays. */
static struct elfrw_err *read_linker_words(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		bool got = strcmp(s->name, ".got") == 0 || strcmp(s->name, ".got.plt") == 0 ||
			   strncmp(s->name, ".igot", 5) == 0;
		bool array = s->hdr.sh_type == SHT_INIT_ARRAY || s->hdr.sh_type == SHT_FINI_ARRAY ||
			     s->hdr.sh_type == SHT_PREINIT_ARRAY;
		if ((!got && !array) || !s->data || !(s->hdr.sh_flags & SHF_ALLOC))
			continue;
		for (uint64_t off = 0; off + 8 <= s->hdr.sh_size; off += 8) {
			uint64_t place = s->hdr.sh_addr + off, value = elfrw_get64(s->data + off);
			if (!icf_in_exec(prog, value))
				continue;
			const struct icf_dynreloc *d = icf_dynreloc_at(prog, place);
			/* In a position-independent file a word without a relocation is a number.
			 * Lazy PLT slots are the exception: the dynamic linker relocates them
			 * itself. */
			if (d ? d->kind == ELFRW_RELOC_RELATIVE : img->pic)
				continue;
			ELFRW_TRY(push(prog, place, value, 8, ICF_DATA_ADDRESS, false));
		}
	}
	return NULL;
}

static int dataref_order(const void *a, const void *b)
{
	const struct icf_dataref *x = a, *y = b;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->dynamic != y->dynamic)
		return x->dynamic ? 1 : -1;
	return x->size < y->size ? 1 : x->size > y->size ? -1 : 0;
}

static void mark_quiet(struct icf_program *prog, const struct vtables *vt)
{
	const struct elfrw_image *img = prog->img;
	const struct elfrw_section *sec = NULL;
	bool quiet = false;
	for (size_t i = 0; i < prog->dataref.len; i++) {
		struct icf_dataref *d = &prog->dataref.data[i];
		if (!sec || d->place - sec->hdr.sh_addr >= sec->hdr.sh_size) {
			uint32_t shndx = elfrw_image_section_at(img, d->place);
			sec = shndx ? &img->section[shndx] : NULL;
			quiet = sec && (sec->hdr.sh_type == SHT_INIT_ARRAY ||
					sec->hdr.sh_type == SHT_FINI_ARRAY ||
					sec->hdr.sh_type == SHT_PREINIT_ARRAY ||
					strcmp(sec->name, "__patchable_function_entries") == 0 ||
					strcmp(sec->name, ".got.plt") == 0);
		}
		d->quiet = in_vtable(vt, d->place) ? ICF_QUIET_VTABLE : quiet ? ICF_QUIET : 0;
	}
}

struct elfrw_err *icf_find_datarefs(struct icf_program *prog)
{
	struct vtables vt = { 0 };
	struct elfrw_err *err = find_vtables(prog, &vt);
	if (!err)
		err = read_dynamic_relocs(prog);
	if (!err)
		err = read_kept_relocs(prog);
	if (!err)
		err = read_linker_words(prog);
	if (!err && !elfrw_sort_runs(prog->dataref.data, prog->dataref.len,
				     sizeof *prog->dataref.data, dataref_order))
		err = &elfrw_err_nomem;
	if (!err && prog->dataref.len) {
		size_t n = 1;
		for (size_t i = 1; i < prog->dataref.len && !err; i++) {
			const struct icf_dataref *a = &prog->dataref.data[n - 1],
						 *b = &prog->dataref.data[i];
			if (a->place == b->place && a->dynamic == b->dynamic) {
				if (a->size != b->size || a->target != b->target)
					err = elfrw_error(
						"two different relocations at address 0x%llx",
						(unsigned long long)a->place);
			} else
				prog->dataref.data[n++] = *b;
		}
		prog->dataref.len = n;
	}
	if (!err)
		mark_quiet(prog, &vt);
	VEC_FREE(&vt.v);
	return err;
}
