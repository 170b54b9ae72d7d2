/* eligible.c: may this unit be folded?  One rule in each paragraph, each with its reason code.
 * Also: what the program can observe of a function's address. */
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include "icf/fold/fold.h"
#include "icf/fold/probe.h"
#include "icf/refs/guard.h"
#include <stdlib.h>
#include <string.h>

/* A function's address is observed if anything refers to it except direct branches, vtable slots,
 * init arrays, unwind tables and debug information; or if other modules can refer to it. */
static void observe(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref && !(u->flags & ICF_UNIT_UNUSED); r++) {
			if (ref[r].unit == ICF_NONE || ref[r].kind == ICF_REF_BRANCH ||
			    (ref[r].flags & ICF_REF_OWN))
				continue;
			struct icf_unit *t = &prog->unit.data[ref[r].unit];
			t->flags |= ref[r].target == t->start ? ICF_UNIT_OBSERVED : ICF_UNIT_INNER;
		}
	}
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (d->unit == ICF_NONE)
			continue;
		struct icf_unit *t = &prog->unit.data[d->unit];
		/* A distance to a symbol from an unknown place: the symbol's code may move, but
		 * must stay one with its function. */
		if (d->kind == ICF_DATA_OFFSET)
			t->flags |= ICF_UNIT_INNER;
		bool own = d->table != ICF_NONE && prog->table.data[d->table].owner != ICF_NONE;
		if (d->target != t->start)
			t->flags |= own ? 0 : ICF_UNIT_INNER;
		else if (!d->quiet)
			t->flags |= ICF_UNIT_OBSERVED;
	}
}

/* Lists of places that the program patches: no-ops at or before functions
 * (-fpatchable-function-entry, -mrecord-mcount), XRay's sleds, the jumps of static keys.  A patch
 * means one function, and a thunk has no room for it.  And LLVM's tables of what holds at places in
 * a function (https://llvm.org/docs/StackMaps.html, FaultMaps.html): a garbage collector finds a
 * place by the function's address and an offset, and it may differ where the code does not. */
static bool lists_places(const char *section)
{
	static const char *const name[] = {
		"__patchable_function_entries", "__mcount_loc",    "xray_instr_map", "__jump_table",
		"__static_call_sites",          ".llvm_stackmaps", ".llvm_faultmaps"
	};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (strcmp(section, name[i]) == 0)
			return true;
	return false;
}

static void note_place(struct icf_program *prog, uint32_t unit)
{
	if (unit != ICF_NONE)
		prog->unit.data[unit].flags |= ICF_UNIT_INNER;
}

/* Words of S without either kind of relocation: addresses in a program that has a fixed place, and
 * distances in XRay's records (compiler-rt, xray_interface_internal.h).  These are 32 bytes: a
 * place and its function, then small numbers, of which the third is the version; from version 2 on
 * the two count from their own places.  Nothing would adjust a distance, so its function cannot
 * move. */
static void note_words(struct icf_program *prog, const struct elfrw_section *s)
{
	bool fixed = prog->img->ehdr.e_type == ET_EXEC,
	     sleds = strcmp(s->name, "xray_instr_map") == 0 && s->hdr.sh_size % 32 == 0;
	for (uint64_t off = 0; off + 8 <= s->hdr.sh_size; off += 8) {
		uint64_t place = s->hdr.sh_addr + off, word = elfrw_get64(s->data + off);
		if (icf_dataref_at(prog, place) || (sleds && off % 32 >= 16))
			continue;
		bool distance = sleds && s->data[off / 32 * 32 + 18] >= 2;
		if (!distance && !fixed)
			continue;
		uint32_t unit = icf_unit_at(prog, distance ? place + word : word);
		note_place(prog, unit);
		if (distance && unit != ICF_NONE)
			prog->unit.data[unit].flags |= ICF_UNIT_PINNED;
	}
}

static void find_places(struct icf_program *prog)
{
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		if (!s->data || !(s->hdr.sh_flags & SHF_ALLOC) || !lists_places(s->name))
			continue;
		for (size_t k = 0; k < prog->dataref.len; k++)
			if (prog->dataref.data[k].place - s->hdr.sh_addr < s->hdr.sh_size)
				note_place(prog, prog->dataref.data[k].unit);
		note_words(prog, s);
	}
}

static struct elfrw_err *observe_exports(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	const struct elfrw_section *s = &img->section[img->dynsym];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_shndx == SHN_UNDEF)
			continue;
		uint32_t k = icf_unit_at(prog, sym.st_value);
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if (k == ICF_NONE || type == STT_TLS || type == STT_SECTION)
			continue;
		struct icf_unit *u = &prog->unit.data[k];
		u->flags |= sym.st_value == u->start ? ICF_UNIT_OBSERVED | ICF_UNIT_EXPORTED
						     : ICF_UNIT_INNER;
	}
	return NULL;
}

static int name_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct elfrw_err *keep_unique(struct icf_program *prog, const struct icf_options *opt)
{
	size_t n = opt->n_keep_unique;
	if (!n)
		return NULL;
	const char **name = malloc(n * sizeof *name);
	bool *found = calloc(n, sizeof *found);
	if (!name || !found) {
		free(name);
		free(found);
		return &elfrw_err_nomem;
	}
	memcpy(name, opt->keep_unique, n * sizeof *name);
	qsort(name, n, sizeof *name, name_order);
	for (size_t i = 0; i < prog->sym.len; i++) {
		const char *key = prog->sym.data[i].name;
		const char **hit = bsearch(&key, name, n, sizeof *name, name_order);
		uint32_t k = hit ? icf_unit_at(prog, prog->sym.data[i].value) : ICF_NONE;
		if (!hit)
			continue;
		for (const char **h = hit; h >= name && strcmp(*h, key) == 0; h--)
			found[h - name] = true;
		for (const char **h = hit; h < name + n && strcmp(*h, key) == 0; h++)
			found[h - name] = true;
		if (k != ICF_NONE && prog->unit.data[k].reason == ICF_OK)
			prog->unit.data[k].reason = ICF_KEEP_UNIQUE;
	}
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < n && !err; i++)
		if (!found[i])
			err = elfrw_error("--keep-unique: no function is named %s", name[i]);
	free(name);
	free(found);
	return err;
}

static void entry_point(struct icf_program *prog, uint64_t va)
{
	uint32_t k = icf_unit_at(prog, va);
	if (k != ICF_NONE && prog->unit.data[k].reason == ICF_OK)
		prog->unit.data[k].reason = ICF_ENTRY_POINT;
}

/* "_vgr" and "_vgw" begin the names of Valgrind's replacements and wrappers of functions, "_vgnU_"
 * those that it calls (include/valgrind.h, pub_tool_redir.h): it takes each for the function at
 * its symbol, and passes over symbols without a size. */
bool icf_is_found_by_name(const char *name)
{
	return strncmp(name, "_vgr", 4) == 0 || strncmp(name, "_vgw", 4) == 0 ||
	       strncmp(name, "_vgnU_", 6) == 0;
}

static void entry_points(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	for (size_t i = 0; i < prog->sym.len; i++)
		if (icf_is_found_by_name(prog->sym.data[i].name))
			entry_point(prog, prog->sym.data[i].value);
	if (img->ehdr.e_entry)
		entry_point(prog, img->ehdr.e_entry);
	if (!img->dynamic || !img->section[img->dynamic].data)
		return;
	const struct elfrw_section *s = &img->section[img->dynamic];
	for (size_t i = 0; i < s->hdr.sh_size / sizeof(Elf64_Dyn); i++) {
		Elf64_Dyn d;
		memcpy(&d, s->data + i * sizeof d, sizeof d);
		if (d.d_tag == DT_NULL)
			return;
		if (d.d_tag == DT_INIT || d.d_tag == DT_FINI)
			entry_point(prog, d.d_un.d_ptr);
	}
}

/* Unwind rules that hold addresses can neither be compared nor be moved with their function. */
static void check_unwind(struct icf_program *prog, struct icf_unit *u)
{
	for (uint32_t f = 0; f < u->n_fde; f++)
		if (dwr_cfi_has_address(&prog->cfi, prog->cfi.by_pc[u->fde + f])) {
			u->flags |= ICF_UNIT_PINNED;
			if (u->reason == ICF_OK)
				u->reason = ICF_UNWIND;
		}
}

/* Debuggers, tracers and loaders look up functions by symbols.  A symbol in a unit's middle is an
 * entry of its own. */
static bool has_inner_function(const struct icf_program *prog, const struct icf_unit *u)
{
	for (uint32_t s = u->sym_first; s < u->sym_first + u->n_sym; s++) {
		const struct icf_symbol *sym = &prog->sym.data[s];
		if (sym->value != u->start && (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC))
			return true;
	}
	return false;
}

struct elfrw_err *icf_find_eligible(struct icf_program *prog, const struct icf_options *opt)
{
	observe(prog);
	icf_find_guarded(prog);
	find_places(prog);
	ELFRW_TRY(observe_exports(prog));
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		check_unwind(prog, u);
		/* A unit with neither a function symbol nor an FDE was not a function to the
		 * compiler. */
		if (u->reason == ICF_OK && !(u->flags & ICF_UNIT_FUNC_SYMBOL) && u->n_fde == 0)
			u->reason = ICF_NOT_A_FUNCTION;
		/* Programs compare PCs with the bounds of such a section, or copy it. */
		if (u->reason == ICF_OK && prog->exec.data[u->sec].apart)
			u->reason = ICF_NAMED_SECTION;
		/* Folding would give the inner entry another function's address, or none. */
		if (u->reason == ICF_OK &&
		    ((u->flags & ICF_UNIT_INNER) || has_inner_function(prog, u)))
			u->reason = ICF_INNER_ENTRY;
	}
	entry_points(prog);
	ELFRW_TRY(icf_find_probes(prog, opt));
	ELFRW_TRY(icf_find_marks(prog));
	icf_find_alignments(prog);
	return keep_unique(prog, opt);
}
