/* align.c: do all addresses that somebody may look at have at least as many low bits clear in OUT
 * as in IN?
 *
 * The check sees addresses, not functions: addresses that code computes and data holds, exported
 * symbols, and the starts of all code at multiples of its section's alignment.  An address has more
 * than its section's alignment only by chance.  Cost: one pass over units, words and symbols.
 * References of code are checked where they are compared. */
#include "icf/verify/state.h"
#include "elfrw/symtab.h"

/* The low bits of VA, an address of IN's code, that matter. */
static uint64_t mask(const struct icf_v *v, uint32_t exec, uint64_t va)
{
	uint64_t align = v->in.section[v->exec.data[exec].in].hdr.sh_addralign, low = va & -va;
	align &= -align;
	return (low && low < align ? low : align ? align : 1) - 1;
}

bool icf_v_stays_aligned(const struct icf_v *v, uint64_t old, uint64_t new)
{
	uint32_t u = icf_v_find(v, old);
	return u == ICF_V_NONE || (new &mask(v, v->unit.data[u].exec, old)) == 0;
}

static void check(struct icf_v *v, const char *what, uint64_t old, uint64_t new)
{
	char name[200];
	v->log.checked[ICF_VC_OBSERVED]++;
	if (!icf_v_stays_aligned(v, old, new))
		icf_vlog_bad(
			&v->log, ICF_VC_OBSERVED,
			"alignment: %s %s (0x%llx -> 0x%llx): expected a multiple of %llu, found another",
			what, icf_v_where(v, old, name), ICF_VX(old), ICF_VX(new),
			ICF_VX(mask(v, v->unit.data[icf_v_find(v, old)].exec, old) + 1));
}

static void check_symbols(struct icf_v *v, uint32_t table, bool all)
{
	const struct elfrw_section *s = &v->in.section[table];
	for (struct elfrw_symbols it = elfrw_symbols(table ? s : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		uint32_t u = icf_v_find(v, sym.st_value);
		uint64_t to;
		if (sym.st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_SECTION ||
		    u == ICF_V_NONE)
			continue;
		/* The start of a function that other modules do not see may merge with another's.
		 */
		if (all ? icf_v_pointer(v, sym.st_value, &to)
			: (type == STT_FUNC || type == STT_GNU_IFUNC) &&
				    sym.st_value != v->unit.data[u].old &&
				    icf_v_code(v, sym.st_value, &to))
			check(v, "symbol", sym.st_value, to);
	}
}

void icf_v_check_alignment(struct icf_v *v)
{
	for (uint32_t i = 0; i < v->unit.len; i++) {
		const struct icf_vunit *u = &v->unit.data[i];
		uint64_t align = v->in.section[v->exec.data[u->exec].in].hdr.sh_addralign;
		if (u->observed)
			check(v, "address of", u->old, u->entry);
		else if (align && (u->old & (align - 1)) == 0 && !(u->flags & ICF_V_FOLDED) &&
			 u->end > u->old)
			check(v, "code", u->old, u->body);
	}
	for (size_t i = 0; i < v->word.len; i++) {
		const struct icf_vword *w = &v->word.data[i];
		uint32_t u = icf_v_find(v, w->target);
		uint64_t to;
		if (w->table == ICF_V_NONE && u != ICF_V_NONE && v->unit.data[u].old != w->target &&
		    icf_v_code(v, w->target, &to))
			check(v, "word to", w->target, to);
	}
	check_symbols(v, v->in.dynsym, true);
	check_symbols(v, v->in.symtab, false);
}
