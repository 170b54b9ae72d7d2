/* mark.c: is the address of each function still on the same side of every label that delimits code?
 *
 * The check sees only the order of addresses.  A label is a symbol without type and size that a
 * kept relocation refers to, at the beginning of a function with a name of its own, or outside of
 * all code (linker scripts: `hot_from = .; *(.text.hot*) hot_to = .;`).  A thunk may have left its
 * place; a function without a thunk is at its code.  Cost: one pass over the relocations, log(n)
 * for each thunk. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>

struct places {
	VEC(uint64_t) v;
};

static void sort(struct places *p)
{
	if (p->v.len)
		qsort(p->v.data, p->v.len, sizeof *p->v.data, elfrw_u64_order);
}

static bool add(struct places *p, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&p->v);
	if (slot)
		*slot = va;
	return slot != NULL;
}

/* The starts of the functions of IN in .symtab. */
static bool functions(const struct icf_vclaim *c, struct places *ret)
{
	const struct elfrw_section *s = &c->in.section[c->in.symtab];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if ((type == STT_FUNC || type == STT_GNU_IFUNC) && !add(ret, sym.st_value))
			return false;
	}
	sort(ret);
	return true;
}

/* E: the code that SYM stands in, or at whose end. */
static bool delimits(const struct icf_vclaim *c, const struct places *function,
		     const Elf64_Sym *sym, const struct icf_vexec *e)
{
	uint64_t va = sym->st_value;
	if (ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE || sym->st_size || !e)
		return false;
	uint32_t u = icf_v_find(c, va);
	size_t i = LOWER_BOUND(0, function->v.len, mid, function->v.data[mid] < va);
	if (u == ICF_V_NONE)
		return true;
	/* Padding with references to it may belong to the unit behind it.  In front of code, the
	 * label is that code's name, whatever function comes later in the unit. */
	return c->unit.data[u].old == va && i < function->v.len &&
	       function->v.data[i] < c->unit.data[u].end &&
	       icf_v_is_padding(c, &c->exec.data[c->unit.data[u].exec], va, function->v.data[i]);
}

/* INSIDE: those that are not just the end of their section. */
static bool labels(const struct icf_vclaim *c, const struct places *function, struct places *ret,
		   struct places *inside)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const struct elfrw_section *s = &c->in.section[i];
		if (s->hdr.sh_type != SHT_RELA || !s->data || s->hdr.sh_link != c->in.symtab ||
		    s->hdr.sh_info >= c->in.n_sections ||
		    !(c->in.section[s->hdr.sh_info].hdr.sh_flags & SHF_ALLOC))
			continue;
		for (size_t k = 0; k < s->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			Elf64_Sym sym;
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			if (c->in.arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info)).call ||
			    !elfrw_reloc_symbol(&c->in, c->in.symtab, &r, &sym))
				continue;
			const struct icf_vexec *e =
				icf_v_exec_of(c, icf_v_stands_in(c, &sym, false));
			if (delimits(c, function, &sym, e) &&
			    (!add(ret, sym.st_value) ||
			     (sym.st_value != e->old_end && !add(inside, sym.st_value))))
				return false;
		}
	}
	sort(ret);
	sort(inside);
	return true;
}

/* Computes the bounds of each label in OUT: the last remaining code before it, and the first behind
 * it. */
static void bounds(const struct icf_vclaim *c, const struct places *label, uint64_t *lo,
		   uint64_t *hi)
{
	size_t u = 0, n = c->unit.len;
	uint64_t at = 0;
	for (size_t i = 0; i < label->v.len; i++) {
		for (; u < n && c->unit.data[u].end <= label->v.data[i]; u++)
			if (!(c->unit.data[u].flags & ICF_V_FOLDED))
				at = c->unit.data[u].body +
				     (c->unit.data[u].end - c->unit.data[u].old);
		lo[i] = at;
	}
	at = UINT64_MAX;
	for (size_t i = label->v.len; i--;) {
		for (; n && c->unit.data[n - 1].old >= label->v.data[i]; n--)
			if (!(c->unit.data[n - 1].flags & ICF_V_FOLDED))
				at = c->unit.data[n - 1].body;
		hi[i] = at;
	}
}

static void check(const struct icf_vclaim *c, struct icf_vlog *log, const struct icf_vunit *u,
		  uint64_t label, bool wrong)
{
	char name[200];
	log->checked[ICF_VC_OBSERVED]++;
	if (wrong)
		icf_vlog_bad(
			log, ICF_VC_OBSERVED,
			"order: %s (0x%llx -> 0x%llx): expected on the same side of the label at 0x%llx, found on the other",
			icf_v_where(c, u->old, name), ICF_VX(u->old), ICF_VX(u->entry),
			ICF_VX(label));
}

static bool check_thunks(const struct icf_vclaim *c, struct icf_vlog *log,
			 const struct places *label)
{
	size_t n = label->v.len;
	uint64_t *lo = calloc(2 * n + 1, sizeof *lo), *hi = lo + n;
	if (!lo)
		return false;
	bounds(c, label, lo, hi);
	for (uint32_t i = 0; i < c->n_thunk; i++) {
		const struct icf_vunit *u = &c->unit.data[c->by_thunk[i]];
		size_t next = LOWER_BOUND(0, n, mid, label->v.data[mid] <= u->old);
		if (next)
			check(c, log, u, label->v.data[next - 1], u->entry < lo[next - 1]);
		if (next < n)
			check(c, log, u, label->v.data[next], u->entry >= hi[next]);
	}
	free(lo);
	return true;
}

/* A program may walk through the code between two labels.  A label at the end of a section is only
 * the end of a walk: it needs another label to begin at. */
static void check_removed(const struct icf_vclaim *c, struct icf_vlog *log,
			  const struct places *label)
{
	char name[200];
	for (size_t i = 0; i < label->v.len; i++)
		for (uint32_t u = 0; u < c->unit.len; u++) {
			const struct icf_vexec *e = &c->exec.data[c->unit.data[u].exec];
			if (icf_v_removed(c, u) && label->v.data[i] >= e->old &&
			    label->v.data[i] < e->old_end)
				icf_vlog_bad(
					log, ICF_VC_REMOVED,
					"removed: %s (0x%llx): expected a function, found it in code with a label at 0x%llx",
					icf_v_where(c, c->unit.data[u].old, name),
					ICF_VX(c->unit.data[u].old), ICF_VX(label->v.data[i]));
		}
}

struct elfrw_err *icf_v_check_marks(const struct icf_vclaim *c, struct icf_vlog *log)
{
	struct places function = { 0 }, label = { 0 }, inside = { 0 };
	bool removed = c->n_removed;
	bool ok = !c->in.symtab || (!c->n_thunk && !removed) ||
		  (functions(c, &function) && labels(c, &function, &label, &inside) &&
		   (!label.v.len || check_thunks(c, log, &label)));
	if (removed)
		check_removed(c, log, &inside);
	VEC_FREE(&function.v);
	VEC_FREE(&label.v);
	VEC_FREE(&inside.v);
	return ok ? NULL : &elfrw_err_nomem;
}
