/* align.c: do all addresses that somebody may look at have at least as many low bits clear in OUT
 * as in IN?
 *
 * The check sees addresses, not functions: addresses that code computes and data holds, exported
 * symbols, and the starts of all code at multiples of its section's alignment.  An address has more
 * than its section's alignment only by chance.  Cost: one pass over units, words and symbols.
 * References of code are checked where they are compared. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"

/* The low bits of VA, an address of IN's code, that matter. */
static uint64_t mask(const struct icf_vclaim *c, uint32_t exec, uint64_t va)
{
	uint64_t align = c->in.section[c->exec.data[exec].in].hdr.sh_addralign, low = va & -va;
	align &= -align;
	return (low && low < align ? low : align ? align : 1) - 1;
}

bool icf_v_stays_aligned(const struct icf_vclaim *c, uint64_t old, uint64_t new)
{
	uint32_t u = icf_v_find(c, old);
	return u == ICF_V_NONE || (new &mask(c, c->unit.data[u].exec, old)) == 0;
}

/* Where the first function from VA on begins that has a frame description. */
static uint64_t next_start(const struct icf_vclaim *c, uint64_t va)
{
	const struct dwr_cfi *cfi = &c->cfi_in;
	size_t n = cfi->fde.len,
	       k = LOWER_BOUND(0, n, mid, cfi->fde.data[cfi->by_pc[mid]].pc_begin < va);
	return k < n ? cfi->fde.data[cfi->by_pc[k]].pc_begin : UINT64_MAX;
}

static bool begins(const struct icf_vclaim *c, uint64_t va)
{
	return next_start(c, va) == va;
}

/* Is VA the start of unit U itself, and not of padding in front of it? */
static bool is_start(const struct icf_vclaim *c, const struct icf_vunit *u, uint64_t va)
{
	return begins(c, va) || (va == u->old && next_start(c, va) >= u->end);
}

/* Does a symbol of IN say that a function begins at VA?  The padding in front of it may be its own,
 * by its frame description.  A scan: only for addresses that look like another function's. */
static bool has_symbol(const struct icf_vclaim *c, uint64_t va)
{
	for (struct elfrw_all_symbols it = { .img = &c->in }; elfrw_all_symbols_next(&it);)
		if (it.sym.st_value == va && ELF64_ST_TYPE(it.sym.st_info) == STT_FUNC &&
		    it.sym.st_shndx != SHN_UNDEF)
			return true;
	return false;
}

#define MAX_TAG 64 /* the largest alignment of functions, but for whole pages */

bool icf_v_keeps_tag(const struct icf_vclaim *c, uint64_t old, uint64_t new)
{
	uint32_t t = icf_v_find(c, old);
	if (t == ICF_V_NONE || old - c->unit.data[t].old >= MAX_TAG ||
	    is_start(c, &c->unit.data[t], old))
		return true;
	for (uint64_t size = 8; size <= MAX_TAG; size *= 2) {
		uint64_t start = old & -size, tag = old & (size - 1), to;
		uint32_t u = icf_v_find(c, start);
		/* More than its section's alignment is chance, if the tag is not behind it. */
		if (u != ICF_V_NONE && begins(c, start) &&
		    size - 1 <= mask(c, c->unit.data[u].exec, start) &&
		    (icf_v_removed(c, u) || !icf_v_pointer(c, start, &to) || new - tag != to ||
		     (new &(size - 1)) != tag))
			return has_symbol(c, old);
	}
	return true;
}

bool icf_v_loses_tag(const struct icf_vclaim *c, const Elf64_Sym *sym, uint64_t va)
{
	uint64_t tag = va - sym->st_value, from, to;
	uint32_t u = icf_v_find(c, sym->st_value);
	/* A tag has only bits that the function's alignment leaves free. */
	return ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx != SHN_UNDEF && tag &&
	       tag >= sym->st_size && tag < MAX_TAG && u != ICF_V_NONE &&
	       tag <= mask(c, c->unit.data[u].exec, sym->st_value) &&
	       icf_v_pointer(c, sym->st_value, &from) && icf_v_pointer(c, va, &to) &&
	       to - from != tag;
}

static void check(const struct icf_vclaim *c, struct icf_vlog *log, const char *what, uint64_t old,
		  uint64_t new)
{
	char name[200];
	log->checked[ICF_VC_OBSERVED]++;
	if (!icf_v_stays_aligned(c, old, new))
		icf_vlog_bad(
			log, ICF_VC_OBSERVED,
			"alignment: %s %s (0x%llx -> 0x%llx): expected a multiple of %llu, found another",
			what, icf_v_where(c, old, name), ICF_VX(old), ICF_VX(new),
			ICF_VX(mask(c, c->unit.data[icf_v_find(c, old)].exec, old) + 1));
}

static void check_symbols(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t table,
			  bool all)
{
	const struct elfrw_section *s = &c->in.section[table];
	for (struct elfrw_symbols it = elfrw_symbols(table ? s : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		uint32_t u = icf_v_find(c, sym.st_value);
		uint64_t to;
		if (sym.st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_SECTION ||
		    u == ICF_V_NONE)
			continue;
		/* The start of a function that other modules do not see may merge with another's.
		 */
		if (all ? icf_v_pointer(c, sym.st_value, &to)
			: (type == STT_FUNC || type == STT_GNU_IFUNC) &&
				    sym.st_value != c->unit.data[u].old &&
				    icf_v_code(c, sym.st_value, &to))
			check(c, log, "symbol", sym.st_value, to);
	}
}

void icf_v_check_alignment(const struct icf_vclaim *c, const struct icf_vwords *words,
			   struct icf_vlog *log)
{
	for (uint32_t i = 0; i < c->unit.len; i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		uint64_t align = c->in.section[c->exec.data[u->exec].in].hdr.sh_addralign;
		if (u->observed)
			check(c, log, "address of", u->old, u->entry);
		else if (align > c->arch->start_align && (u->old & (align - 1)) == 0 &&
			 !(u->flags & ICF_V_FOLDED) && u->end > u->old)
			check(c, log, "code", u->old, u->body);
	}
	for (size_t i = 0; i < words->word.len; i++) {
		const struct icf_vword *w = &words->word.data[i];
		uint32_t u = icf_v_find(c, w->target);
		uint64_t to;
		if (w->table == ICF_V_NONE && u != ICF_V_NONE && c->unit.data[u].old != w->target &&
		    icf_v_code(c, w->target, &to))
			check(c, log, "word to", w->target, to);
		if (w->kind <= ICF_VW_DYNAMIC && w->table == ICF_V_NONE && !w->quiet && !w->lost &&
		    icf_v_pointer(c, w->target, &to) && !icf_v_keeps_tag(c, w->target, to))
			icf_vlog_bad(
				log, ICF_VC_OBSERVED,
				"tag: word at 0x%llx (0x%llx -> 0x%llx): expected it as far behind a function as before, found another distance",
				ICF_VX(w->place), ICF_VX(w->target), ICF_VX(to));
	}
	check_symbols(c, log, c->in.dynsym, true);
	check_symbols(c, log, c->in.symtab, false);
}
