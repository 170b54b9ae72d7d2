/* syms.c: sections that the output leaves out, and symbol values.
 *
 * A folded function keeps its name: at its thunk with the thunk's size, or at the kept copy.  There
 * tools must prefer the kept function's symbol for an address, or they would show one function's
 * name beside another's line, and still find the folded function by its name.
 * In .symtab it is an STT_NOTYPE symbol of size 0.  With size 0 binutils, elfutils, LLVM and gdb
 * prefer the sized one.  Readers that take only functions and search them without a stable order
 * (libbacktrace, Rust's std: a size of 0 ends the search; libunwind: sizes do not count) do not see
 * it without the type.  With its full size, or one byte less, one of these tools would name it for
 * the kept one.  Beside kept relocations the type stays: linkers' and BOLT's view of a reference
 * depends on it.
 * In .dynsym it stays a function, one byte shorter than it was.  Linkers need the type: they would
 * copy an object of a program without it.  LLVM prefers the longest symbol.  For libbacktrace and
 * Rust's std, which read .dynsym where there is no .symtab, a size of 0 would hide all names there.
 * A kept function without a size (assembler, GCC's return thunks) gets its size, or tools could not
 * prefer it.  If the kept function has no symbol in the table (local functions in .dynsym; ld
 * --discard-all), one folded function's symbol keeps its size.  Otherwise its name would extend to
 * the next symbol, over functions without names. */
#include "elfrw/arch/symbol.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/apply/apply.h"
#include "icf/fold/pseudo.h"
#include "icf/fold/unloaded.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

static bool is_debug(const char *name)
{
	return strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0 ||
	       strcmp(name, ".gdb_index") == 0 || strncmp(name, ".stab", 5) == 0 ||
	       strncmp(name, ".gnu.debuglto_", 14) == 0;
}

/* Is every field of section SHNDX where it was, except for addresses in executable sections?
 * Otherwise its kept relocations are worthless. */
static bool keeps_offsets(const struct elfrw_image *img, uint32_t shndx)
{
	const struct elfrw_section *s = &img->section[shndx];
	if (icf_unloaded_kind(img, shndx) != ICF_UNLOADED_PLAIN)
		return false;
	if (s->hdr.sh_flags & SHF_EXECINSTR)
		return true;
	if (s->hdr.sh_flags & SHF_ALLOC)
		return strncmp(s->name, ".eh_frame", 9) != 0 &&
		       strncmp(s->name, ".gcc_except_table", 17) != 0;
	return !is_debug(s->name);
}

bool icf_leaves_out(const struct icf_options *opt, const struct elfrw_section *s)
{
	if (s->hdr.sh_flags & SHF_ALLOC)
		return false;
	return (opt->strip_debug && is_debug(s->name)) ||
	       (opt->strip_all && s->hdr.sh_type == SHT_SYMTAB) ||
	       (!opt->emit_relocs && (s->hdr.sh_type == SHT_RELA || s->hdr.sh_type == SHT_REL));
}

struct elfrw_err *icf_apply_drops(struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (s->hdr.sh_flags & SHF_ALLOC)
			continue;
		if (a->opt->strip_debug && is_debug(s->name))
			elfrw_output_drop(a->out, i);
		if (a->opt->strip_all && s->hdr.sh_type == SHT_SYMTAB) {
			elfrw_output_drop(a->out, i);
			/* The names of .symtab, unless the section also holds the names of
			 * sections. */
			if (s->hdr.sh_link < img->n_sections && s->hdr.sh_link != img->shstrndx)
				elfrw_output_drop(a->out, s->hdr.sh_link);
		}
		/* Compressed symbols that nobody rewrites (.gnu_debugdata), and the link to a debug
		 * file with old addresses. */
		if ((a->plan->changes || a->opt->debug_output) &&
		    (strcmp(s->name, ".gnu_debugdata") == 0 ||
		     strcmp(s->name, ".gnu_debuglink") == 0))
			elfrw_output_drop(a->out, i);
		if (!a->plan->changes)
			continue;
		enum icf_unloaded kind = icf_unloaded_kind(img, i);
		bool ok = kind != ICF_UNLOADED_DROP;
		if (kind == ICF_UNLOADED_PSEUDO)
			ELFRW_TRY(icf_pseudo_rewrite(a->prog, a->plan, i, NULL, &ok));
		if (!ok)
			elfrw_output_drop(a->out, i);
	}
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if ((s->hdr.sh_type != SHT_RELA && s->hdr.sh_type != SHT_REL) ||
		    (s->hdr.sh_flags & SHF_ALLOC))
			continue;
		if (!a->opt->emit_relocs ||
		    (s->hdr.sh_type == SHT_RELA && s->hdr.sh_info &&
		     !elfrw_image_kept_relocs(img, s)) ||
		    (s->hdr.sh_info &&
		     (a->out->sec[s->hdr.sh_info].drop || !keeps_offsets(img, s->hdr.sh_info))))
			elfrw_output_drop(a->out, i);
	}
	return NULL;
}

static const struct icf_exec *exec_of(const struct icf_program *prog, uint32_t shndx)
{
	uint64_t start = shndx < prog->img->n_sections ? prog->img->section[shndx].hdr.sh_addr : 0;
	size_t i = LOWER_BOUND(0, prog->exec.len, mid, prog->exec.data[mid].start < start);
	return i < prog->exec.len && prog->exec.data[i].shndx == shndx ? &prog->exec.data[i] : NULL;
}

/* SYM has its new value, and was in section K of the map.  A folded function's name goes to the
 * section of its thunk or of the kept copy, which may be another. */
static void set_section(const struct icf_apply *a, Elf64_Sym *sym, size_t k)
{
	const struct elfrw_addrmap *map = &a->plan->map;
	const uint64_t va = sym->st_value;
	if (va >= map->section[k].new_start && va < map->section[k].new_end)
		return;
	k = LOWER_BOUND(0, map->n_sections, mid, map->section[mid].new_end <= va);
	if (k < map->n_sections && va >= map->section[k].new_start &&
	    map->section[k].shndx < SHN_LORESERVE)
		sym->st_shndx = (uint16_t)map->section[k].shndx;
}

static bool is_boundary_name(const char *name)
{
	return strcmp(name, "etext") == 0 || strcmp(name, "_etext") == 0 ||
	       strcmp(name, "__etext") == 0;
}

static bool names_code(unsigned type)
{
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* Which symbol of a table gets the size of code that several functions share.  Ranks, ascending: */
enum { UNSHARED, NAMELESS, FOLDED_NAME, OWN_UNSIZED = FOLDED_NAME + 4, OWN_SIZED };

struct bearer {
	uint32_t index; /* FOLDED_NAME and up: the first symbol of its rank */
	uint8_t rank;
};

/* Is SYM a mapping symbol?  It never has a size, and is never in the table of the dynamic
 * linker. */
static bool is_mapping(const struct elfrw_image *img, const Elf64_Sym *sym, bool dynamic)
{
	if (dynamic)
		return false;
	const char *name =
		elfrw_image_string(img, img->section[img->symtab].hdr.sh_link, sym->st_name);
	return name && elfrw_symbol_is_mapping(&img->ehdr, ELF64_ST_TYPE(sym->st_info), name);
}

/* Ranks symbol number INDEX for the code at its address. */
static void rank_symbol(const struct icf_apply *a, const Elf64_Sym *sym, uint32_t index,
			bool dynamic, struct bearer *bearer)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	const struct icf_exec *e =
		sym->st_shndx < SHN_LORESERVE
			? exec_of(a->prog, elfrw_image_symbol_section(a->prog->img, sym, dynamic))
			: NULL;
	uint32_t i = e && names_code(type) && sym->st_value != e->end
			     ? icf_unit_at(a->prog, sym->st_value)
			     : ICF_NONE;
	if (i == ICF_NONE || a->prog->unit.data[i].start != sym->st_value ||
	    (a->plan->map.unit[i].flags & ELFRW_UNIT_THUNK) ||
	    is_mapping(a->prog->img, sym, dynamic))
		return;
	struct bearer *b = &bearer[a->plan->kept[i]];
	unsigned rank = sym->st_size ? OWN_SIZED : OWN_UNSIZED;
	if (a->plan->kept[i] != i)
		rank = FOLDED_NAME + (type != STT_NOTYPE || sym->st_size ? 2 : 0) +
		       (ELF64_ST_BIND(sym->st_info) != STB_LOCAL);
	if (b->rank != UNSHARED && rank > b->rank)
		*b = (struct bearer){ index, (uint8_t)rank };
}

/* A symbol table. */
struct symbols_of {
	bool dynamic;
	struct bearer *bearer; /* by unit */
};

/* By unit; the caller frees the array.  NULL: out of memory. */
static struct bearer *find_bearers(const struct icf_apply *a, const struct elfrw_section *symtab)
{
	const struct icf_program *prog = a->prog;
	struct bearer *bearer = calloc(prog->unit.len + 1, sizeof *bearer);
	for (uint32_t i = 0; i < prog->unit.len && bearer; i++)
		if (a->plan->kept[i] != i)
			bearer[a->plan->kept[i]].rank = NAMELESS;
	for (struct elfrw_symbols it = elfrw_symbols(bearer ? symtab : NULL, 1);
	     elfrw_symbols_next(&it);)
		rank_symbol(a, &it.sym, (uint32_t)it.index, symtab->hdr.sh_type == SHT_DYNSYM,
			    bearer);
	return bearer;
}

/* The size of symbol number INDEX, which is in unit I or at its start. */
static uint64_t new_size(const struct icf_apply *a, const struct symbols_of *t, uint32_t index,
			 uint32_t i, bool at_start, const Elf64_Sym *sym)
{
	const struct elfrw_addrmap_unit *m = &a->plan->map.unit[i];
	const struct bearer *b = &t->bearer[a->plan->kept[i]];
	uint64_t unit = m->old_end - m->old;
	bool folded = m->flags & ELFRW_UNIT_FOLDED, bears = at_start && b->rank >= FOLDED_NAME &&
							    b->rank < OWN_UNSIZED &&
							    b->index == index;
	if (bears)
		return sym->st_size && sym->st_size < unit ? sym->st_size : unit;
	/* clang's symbols of basic block sections have a size and no type. */
	if (folded && (ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE || sym->st_size)) {
		if (at_start && (m->flags & ELFRW_UNIT_THUNK))
			return m->thunk_size;
		return t->dynamic && sym->st_size ? sym->st_size - 1 : 0;
	}
	if (!folded && b->rank == OWN_UNSIZED && at_start &&
	    names_code(ELF64_ST_TYPE(sym->st_info)) && !is_mapping(a->prog->img, sym, t->dynamic))
		return unit;
	return sym->st_size;
}

/* SYM is in no unit.  A mapping symbol behind a unit tells the kind of what follows it, which may
 * be padding. */
static void set_in_padding(const struct icf_apply *a, Elf64_Sym *sym, bool dynamic)
{
	const struct elfrw_addrmap *map = &a->plan->map;
	uint32_t before = icf_unit_ending(a->prog, sym->st_value);
	if (before != ICF_NONE && is_mapping(a->prog->img, sym, dynamic) &&
	    !(map->unit[before].flags & ELFRW_UNIT_FOLDED))
		elfrw_addrmap_end(map, sym->st_value, &sym->st_value);
	else
		elfrw_addrmap_point(map, sym->st_value, &sym->st_value);
}

/* Does the output keep relocations of what it loads? */
static bool keeps_relocs(const struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *h = &img->section[i].hdr;
		if ((h->sh_type == SHT_RELA || h->sh_type == SHT_REL) &&
		    !(h->sh_flags & SHF_ALLOC) && !a->out->sec[i].drop)
			return true;
	}
	return false;
}

static void set_symbol(const struct icf_apply *a, const struct symbols_of *t, uint32_t index,
		       Elf64_Sym *sym, const char *name)
{
	const struct icf_program *prog = a->prog;
	const struct elfrw_addrmap *map = &a->plan->map;
	const struct icf_exec *e = NULL;
	if (sym->st_shndx < SHN_LORESERVE)
		e = exec_of(prog, elfrw_image_symbol_section(prog->img, sym, t->dynamic));
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	/* In a program at a fixed address, the address of the PLT entry that stands for a function
	 * of another module. */
	if (sym->st_shndx == SHN_UNDEF && sym->st_value && type == STT_FUNC) {
		sym->st_value =
			icf_new_target(a, icf_unit_at(prog, sym->st_value), sym->st_value, false);
		return;
	}
	if (!e) {
		/* etext and its variants may be absolute or belong to the next section. */
		for (size_t k = 0; k < prog->exec.len && sym->st_shndx != SHN_UNDEF && name &&
				   is_boundary_name(name);
		     k++)
			if (sym->st_value == prog->exec.data[k].end) {
				sym->st_value = map->section[k].new_end;
				break;
			}
		return;
	}
	if (type == STT_TLS)
		return;
	size_t k = (size_t)(e - prog->exec.data);
	if (type == STT_SECTION || sym->st_value == e->start) {
		uint32_t first = icf_unit_at(prog, sym->st_value);
		if (type == STT_SECTION || first == ICF_NONE) {
			sym->st_value = map->section[k].new_start;
			return;
		}
	}
	if (sym->st_value == e->end) {
		sym->st_value = map->section[k].new_end;
		return;
	}
	uint32_t i = icf_unit_at(prog, sym->st_value);
	if (i == ICF_NONE) {
		set_in_padding(a, sym, t->dynamic);
		return;
	}
	const struct elfrw_addrmap_unit *m = &map->unit[i];
	bool at_start = sym->st_value == m->old;
	sym->st_value = at_start ? m->entry : m->body + (sym->st_value - m->old);
	sym->st_size = new_size(a, t, index, i, at_start, sym);
	set_section(a, sym, k);
	/* A second name of shared code. */
	if (!t->dynamic && !a->typed && type == STT_FUNC && !sym->st_size &&
	    (m->flags & ELFRW_UNIT_FOLDED))
		sym->st_info = ELF64_ST_INFO(ELF64_ST_BIND(sym->st_info), STT_NOTYPE);
}

/* Does the input's symbol number INDEX of table S name code that nothing uses, and that is gone? */
static bool is_removed(const struct icf_apply *a, const struct elfrw_section *s, size_t index)
{
	Elf64_Sym sym;
	if (!a->plan->n_removed || s->hdr.sh_type != SHT_SYMTAB || !elfrw_symbol(s, index, &sym) ||
	    !names_code(ELF64_ST_TYPE(sym.st_info)) || sym.st_shndx >= SHN_LORESERVE ||
	    !exec_of(a->prog, elfrw_image_symbol_section(a->prog->img, &sym, false)))
		return false;
	uint32_t i = icf_unit_at(a->prog, sym.st_value);
	return i != ICF_NONE && (a->plan->map.unit[i].flags & ELFRW_UNIT_REMOVED);
}

/* Removes the symbols of dropped sections and of unused code, and records the new indices. */
static struct elfrw_err *filter(struct icf_apply *a, uint32_t shndx)
{
	const struct elfrw_image *img = a->prog->img;
	struct elfrw_outsec *s = &a->out->sec[shndx];
	size_t n = s->size / sizeof(Elf64_Sym), kept = 0;
	uint32_t locals = 0, *symbol_index = malloc((n + 1) * sizeof *symbol_index);
	if (!symbol_index)
		return &elfrw_err_nomem;
	for (struct elfrw_symbols it = elfrw_symbols_in(s->edited, s->size, 0);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		bool gone = sym.st_shndx != SHN_UNDEF && sym.st_shndx < img->n_sections &&
			    a->out->sec[sym.st_shndx].drop;
		gone |= is_removed(a, &img->section[shndx], it.index);
		symbol_index[it.index] = gone ? UINT32_MAX : (uint32_t)kept;
		if (gone)
			continue;
		memcpy(s->edited + kept * sizeof sym, &sym, sizeof sym);
		kept++;
		locals += it.index < s->info;
	}
	if (kept == n || shndx != img->symtab)
		free(symbol_index);
	else
		a->symbol_index = symbol_index;
	s->size = kept * sizeof(Elf64_Sym);
	s->info = locals;
	return NULL;
}

static struct elfrw_err *set_symbols(struct icf_apply *a, uint32_t shndx,
				     const struct symbols_of *t)
{
	const struct elfrw_image *img = a->prog->img;
	const struct elfrw_section *s = &img->section[shndx];
	uint8_t *p;
	ELFRW_TRY(elfrw_output_edit(a->out, shndx, &p));
	for (struct elfrw_symbols it = elfrw_symbols_in(p, s->hdr.sh_size, 1);
	     elfrw_symbols_next(&it);) {
		Elf64_Sym sym = it.sym;
		const char *name = sym.st_shndx == SHN_UNDEF
					   ? NULL
					   : elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		set_symbol(a, t, (uint32_t)it.index, &sym, name);
		memcpy(p + it.index * sizeof sym, &sym, sizeof sym);
	}
	return t->dynamic ? NULL : filter(a, shndx);
}

struct elfrw_err *icf_apply_symbols(struct icf_apply *a)
{
	const struct elfrw_image *img = a->prog->img;
	a->typed = keeps_relocs(a);
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!elfrw_holds_symbols(s) || a->out->sec[i].drop)
			continue;
		struct symbols_of t = { s->hdr.sh_type == SHT_DYNSYM, find_bearers(a, s) };
		struct elfrw_err *err = t.bearer ? set_symbols(a, i, &t) : &elfrw_err_nomem;
		free(t.bearer);
		ELFRW_TRY(err);
	}
	return NULL;
}
