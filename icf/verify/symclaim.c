/* symclaim.c: makes the claim from the symbols, if OUT has no .debug_icfold.
 *
 * .symtab of OUT is that of IN in the same order, without the symbols of dropped sections, so the
 * two can be read side by side.  A function symbol gives the new place of its code.  A symbol that
 * lost its size gives the code that it was folded into.  A symbol whose code is a single jump gives
 * a thunk.  Code without a symbol of its own (FDEs show where it is) lies between code with
 * symbols, and is searched for there.  Without any symbols, code in unchanged sections is assumed
 * not to have moved or folded.  A wrong guess makes a check fail, never pass. */
#include "elfrw/arch/judge.h"
#include "elfrw/arch/symbol.h"
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

struct start {
	uint64_t old, end, new; /* new: UINT64_MAX if no symbol tells */
	bool lost;              /* the symbol has lost its size */
	bool mapping, data;     /* a mapping symbol; what follows it is data */
	bool sized;
	uint64_t new_size;
};

struct starts {
	VEC(struct start) v;
};

static int start_order(const void *a, const void *b)
{
	const struct start *x = a, *y = b;
	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	if ((x->new == UINT64_MAX) != (y->new == UINT64_MAX))
		return x->new == UINT64_MAX ? 1 : -1;
	return x->new < y->new ? -1 : x->new > y->new;
}

static bool is_linkage(const char *name)
{
	return strncmp(name, ".plt", 4) == 0 || strcmp(name, ".init") == 0 ||
	       strcmp(name, ".fini") == 0 || strcmp(name, ".iplt") == 0;
}

static const struct icf_vexec *exec_at(const struct icf_v *v, uint64_t va)
{
	size_t i = LOWER_BOUND(0, v->claim.exec.len, mid, v->claim.exec.data[mid].old_end <= va);
	return i < v->claim.exec.len && va >= v->claim.exec.data[i].old ? &v->claim.exec.data[i]
									: NULL;
}

/* Symbol I of OUT, if it has that name. */
static bool same_name(const struct icf_v *v, const struct elfrw_section *tab, size_t i,
		      const char *name, Elf64_Sym *ret)
{
	if (!elfrw_symbol(tab, i, ret))
		return false;
	const char *p = elfrw_image_string(&v->claim.out, tab->hdr.sh_link, ret->st_name);
	return p && name && strcmp(p, name) == 0;
}

static struct elfrw_err *from_symbols(struct icf_v *v, struct starts *ret)
{
	const struct elfrw_section *a = &v->claim.in.section[v->claim.in.symtab],
				   *b = &v->claim.out.section[v->claim.out.symtab];
	size_t m = elfrw_symbols_count(b), k = 1;
	for (struct elfrw_symbols it = elfrw_symbols(a, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym x = it.sym;
		Elf64_Sym y;
		if (x.st_shndx != SHN_UNDEF && x.st_shndx < v->claim.in.n_sections &&
		    !v->claim.to_out[x.st_shndx])
			continue;
		/* Other tools may have removed some. */
		const char *name = elfrw_image_string(&v->claim.in, a->hdr.sh_link, x.st_name);
		size_t j = k;
		while (j < m && j < k + 256 && !same_name(v, b, j, name, &y))
			j++;
		if (j == m || j == k + 256)
			continue;
		k = j + 1;
		unsigned type = ELF64_ST_TYPE(x.st_info);
		const struct icf_vexec *e = exec_at(v, x.st_value);
		if (!e || x.st_shndx != e->in || is_linkage(v->claim.in.section[e->in].name) ||
		    type == STT_SECTION || type == STT_FILE || type == STT_TLS)
			continue;
		bool sized = x.st_size &&
			     (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
		bool mapping = name && elfrw_symbol_is_mapping(&v->claim.in.ehdr, type, name);
		struct start *s = VEC_PUSH(&ret->v);
		if (!s)
			return &elfrw_err_nomem;
		uint64_t room = e->old_end - x.st_value;
		*s = (struct start){ .old = x.st_value,
				     .end = x.st_value + (x.st_size < room ? x.st_size : room),
				     .new = y.st_value,
				     .lost = sized && !y.st_size,
				     .mapping = mapping,
				     .data = mapping &&elfrw_symbol_begins_data(name),
				     .sized = x.st_size != 0,
				     .new_size = y.st_size };
	}
	return NULL;
}

/* Does the instruction IN at P do nothing, and tell nothing?  A displacement of its own is told to
 * whoever reads what stands in front of the next function. */
static bool is_idle(const struct elfrw_insn *in, const uint8_t *p)
{
	bool tells = in->pcrel_size ||
		     (in->disp_size && elfrw_get_le(p + in->disp_off, in->disp_size) != 0);
	return in->kind == ELFRW_INSN_NOP && !tells;
}

/* The end of code without a size: before the padding before LIMIT. */
static uint64_t trim(const struct icf_v *v, const struct icf_vexec *e, uint64_t start,
		     uint64_t limit)
{
	uint64_t used = start;
	for (uint64_t at = start; at < limit;) {
		const uint8_t *p = e->old_data + (at - e->old);
		struct elfrw_insn in;
		unsigned len = v->claim.arch->decode(p, limit - at, at, &in);
		if (!len)
			return limit;
		bool fill = elfrw_fill_size(v->claim.arch, p, limit - at, at) == len ||
			    elfrw_all_zero(p, len);
		at += len;
		if (!is_idle(&in, p) && !fill)
			used = at;
	}
	return used > start ? used : limit;
}

/* Clears at P, the bytes of IN, what a reference of it may change. */
static void blank(const struct icf_v *v, const struct elfrw_insn *in, const uint8_t *code,
		  uint8_t *p)
{
	const struct elfrw_arch *arch = v->claim.arch;
	uint8_t low = arch->low_form ? arch->low_form(in, code) : 0;
	if (low)
		elfrw_form_blank(&arch->form[low], p);
	if (in->pcrel_size)
		elfrw_form_blank(&arch->form[arch->pcrel_form(in)], p + in->pcrel_off);
	memset(p + in->disp_off, 0, in->disp_size);
	memset(p + in->imm_off, 0, in->imm_size);
}

/* Could the instructions at OLD be those at NEW, except for references? */
static bool alike(const struct icf_v *v, const struct icf_vexec *e, uint64_t old, uint64_t end,
		  uint64_t new)
{
	for (uint64_t at = old; at < end;) {
		const uint8_t *p = e->old_data + (at - e->old),
			      *q = e->new_data + (new + (at - old) - e->new);
		uint8_t a[16] = { 0 }, b[16] = { 0 };
		struct elfrw_insn in;
		unsigned len = v->claim.arch->decode(p, end - at, at, &in);
		if (!len || len > sizeof a)
			return false;
		memcpy(a, p, len);
		memcpy(b, q, len);
		blank(v, &in, p, a);
		blank(v, &in, p, b);
		if (memcmp(a, b, len) != 0)
			return false;
		at += len;
	}
	return true;
}

static struct icf_vunit *push(struct icf_v *v, uint64_t old, uint64_t end, uint64_t body)
{
	struct icf_vunit *u = VEC_PUSH(&v->claim.unit);
	if (u)
		*u = (struct icf_vunit){ .old = old,
					 .end = end,
					 .body = body,
					 .entry = body,
					 .kept = (uint32_t)v->claim.unit.len - 1 };
	return u;
}

/* Joins the starts from *AT on that begin in the code of the first, or with it, into one.  *AT: the
 * next start behind them. */
static struct start join(const struct starts *s, size_t *at)
{
	struct start all = s->v.data[*at];
	for (; *at < s->v.len && (s->v.data[*at].old < all.end || s->v.data[*at].old == all.old);
	     ++*at) {
		const struct start *x = &s->v.data[*at];
		if (x->end > all.end)
			all.end = x->end;
		all.sized |= x->sized;
		all.mapping &= x->mapping;
		if (x->old == all.old) {
			all.lost |= x->lost;
			if (all.new == UINT64_MAX)
				all.new = x->new;
			if (x->new != UINT64_MAX && x->new_size > all.new_size)
				all.new_size = x->new_size;
		}
	}
	return all;
}

/* Unit U is of start S.  Has it been folded, or is it a thunk now? */
static void find_fold(const struct icf_v *v, const struct icf_vexec *e, const struct start *s,
		      struct icf_vunit *u)
{
	if (s->lost) {
		u->flags |= ICF_V_FOLDED;
		return;
	}
	bool smaller =
		s->sized && s->new != UINT64_MAX && s->new_size && s->new_size < s->end - s->old;
	if (!smaller || s->new < e->new || s->new + s->new_size > e->new_end)
		return;
	/* Smaller than it was: a thunk. */
	struct elfrw_thunk_read t;
	if (v->claim.arch->read_thunk(e->new_data + (s->new - e->new), e->new_end - s->new, s->new,
				      &t)) {
		u->flags |= ICF_V_FOLDED;
		u->thunk = (uint32_t)s->new_size;
		u->entry = s->new;
		u->body = t.target;
	}
}

/* Makes a unit of [POS, END), which no symbol names, unless it is padding. */
static struct elfrw_err *push_unnamed(struct icf_v *v, const struct icf_vexec *e, uint64_t pos,
				      uint64_t end)
{
	if (pos < end && !icf_v_is_padding(&v->claim, e, pos, end) &&
	    !push(v, pos, end, UINT64_MAX))
		return &elfrw_err_nomem;
	return NULL;
}

/* The literals of function X lie behind it: where they end, which is before what fills the gap.
 * X->end: it has none.  *AT: the next start, and then the one behind the literals.  REL: the
 * relocations of section E. */
static uint64_t end_of_literals(const struct icf_v *v, const struct icf_vexec *e,
				const struct starts *s, const struct start *x,
				const struct elfrw_relocs *rel, size_t *at)
{
	const struct start *next = s->v.data + *at;
	if (!v->claim.arch->judge->loads || !rel->n || !x->sized || *at == s->v.len ||
	    !next->data || next->old >= e->old_end || next->old < x->end ||
	    !icf_v_is_padding(&v->claim, e, x->end, next->old))
		return x->end;
	while (*at < s->v.len && s->v.data[*at].data)
		++*at;
	uint64_t start = next->old, end = e->old_end;
	if (*at < s->v.len && s->v.data[*at].old < end)
		end = s->v.data[*at].old;
	uint64_t limit = end, told = start;
	for (size_t r = elfrw_relocs_from(rel, start); r < rel->n && rel->rela[r].r_offset < end;
	     r++)
		told = rel->rela[r].r_offset +
		       v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(rel->rela[r].r_info)).size;
	for (bool more = true; more;) {
		while (end > start && e->old_data[end - 1 - e->old] == 0)
			end--;
		end = (end + 3) & ~(uint64_t)3;
		more = end >= start + 4 && icf_v_is_padding(&v->claim, e, end - 4, end);
		end -= more ? 4 : 0;
	}
	end = end > told ? end : told;
	return end < limit ? end : limit;
}

/* Makes the units of one section from the sorted starts [*AT ...) in it. */
static struct elfrw_err *cut(struct icf_v *v, const struct icf_vexec *e, const struct starts *s,
			     const struct elfrw_relocs *rel, size_t *at)
{
	uint64_t pos = e->old;
	if (is_linkage(v->claim.in.section[e->in].name))
		return push(v, e->old, e->old_end, e->new) ? NULL : &elfrw_err_nomem;
	while (*at < s->v.len && s->v.data[*at].old < e->old_end) {
		struct start x = join(s, at);
		bool more = *at < s->v.len && s->v.data[*at].old < e->old_end;
		uint64_t next = more ? s->v.data[*at].old : e->old_end;
		if (x.end > e->old_end)
			x.end = e->old_end;
		/* A symbol in padding that is gone stands where the next one does. */
		if (!x.sized && icf_v_is_padding(&v->claim, e, x.old, next) &&
		    (x.mapping || (more ? s->v.data[*at].new == x.new : x.new == e->new_end)))
			continue;
		if (!x.sized)
			x.end = trim(v, e, x.old, next);
		ELFRW_TRY(push_unnamed(v, e, pos, x.old));
		pos = end_of_literals(v, e, s, &x, rel, at);
		struct icf_vunit *u = push(v, x.old, pos, x.new);
		if (!u)
			return &elfrw_err_nomem;
		find_fold(v, e, &x, u);
	}
	return push_unnamed(v, e, pos, e->old_end);
}

/* Data of section E that did not move: U is where it was.  Zeros at the section's end may be gone.
 */
static void stays(const struct icf_vexec *e, struct icf_vunit *u)
{
	if (u->body != UINT64_MAX || u->old < e->new || u->old >= e->new_end)
		return;
	uint64_t off = u->old - e->old, size = u->end - u->old,
		 left = u->end < e->new_end ? size : e->new_end - u->old;
	if (!elfrw_all_zero(e->old_data + off + left, size - left) ||
	    memcmp(e->old_data + off, e->new_data + (u->old - e->new), left) != 0)
		return;
	u->body = u->entry = u->old;
	u->end = u->old + left;
}

/* Searches for the units of section E that no symbol places. */
static void place_rest(struct icf_v *v, const struct icf_vexec *e, uint32_t from)
{
	uint64_t pos = e->new;
	for (uint32_t i = from; i < v->claim.unit.len; i++) {
		struct icf_vunit *u = &v->claim.unit.data[i];
		if (u->flags & ICF_V_FOLDED)
			continue;
		if (u->body == UINT64_MAX) {
			uint64_t size = u->end - u->old, limit = e->new_end;
			for (uint32_t k = i + 1; k < v->claim.unit.len; k++)
				if (v->claim.unit.data[k].body != UINT64_MAX &&
				    !(v->claim.unit.data[k].flags & ICF_V_FOLDED)) {
					limit = v->claim.unit.data[k].body;
					break;
				}
			for (uint64_t at = pos;
			     at <= limit && limit - at >= size && u->body == UINT64_MAX; at++)
				if (at >= e->new &&limit <= e->new_end &&
				    alike(v, e, u->old, u->end, at))
					u->body = u->entry = at;
			stays(e, u);
		}
		if (u->body != UINT64_MAX)
			pos = u->body + (u->end - u->old);
	}
}

static int body_order(const void *a, const void *b, void *arg)
{
	const struct icf_vunit *unit = arg, *x = &unit[*(const uint32_t *)a],
			       *y = &unit[*(const uint32_t *)b];
	if (x->body != y->body)
		return x->body < y->body ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Finds the unit whose code a folded unit uses. */
static struct elfrw_err *find_kept(struct icf_v *v)
{
	uint32_t n = 0, *list = malloc((v->claim.unit.len + 1) * sizeof *list);
	if (!list)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->claim.unit.len; i++)
		if (!(v->claim.unit.data[i].flags & ICF_V_FOLDED))
			list[n++] = i;
	qsort_r(list, n, sizeof *list, body_order, v->claim.unit.data);
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		struct icf_vunit *u = &v->claim.unit.data[i];
		if (!(u->flags & ICF_V_FOLDED))
			continue;
		if (!u->thunk)
			u->entry = u->body;
		size_t lo = LOWER_BOUND(0, n, mid, v->claim.unit.data[list[mid]].body < u->body);
		u->kept = lo < n && v->claim.unit.data[list[lo]].body == u->body ? list[lo]
										 : UINT32_MAX;
	}
	free(list);
	return NULL;
}

static bool code_stayed(const struct icf_v *v)
{
	for (size_t i = 0; i < v->claim.exec.len; i++)
		if (v->claim.exec.data[i].new != v->claim.exec.data[i].old ||
		    v->claim.exec.data[i].new_end != v->claim.exec.data[i].old_end)
			return false;
	return true;
}

struct elfrw_err *icf_v_claim_from_symbols(struct icf_v *v)
{
	bool symbols = v->claim.in.symtab && v->claim.out.symtab &&
		       v->claim.in.section[v->claim.in.symtab].data &&
		       v->claim.out.section[v->claim.out.symtab].data;
	if (!symbols && !code_stayed(v))
		return elfrw_error(
			"%s: has neither .debug_icfold nor symbols: nothing says what went where",
			v->claim.out.path);
	struct starts s = { 0 };
	struct elfrw_err *err = symbols ? from_symbols(v, &s) : NULL;
	for (size_t i = 0; i < v->claim.cfi_in.fde.len && !err; i++) {
		const struct dwr_fde *f = &v->claim.cfi_in.fde.data[i];
		const struct icf_vexec *e = exec_at(v, f->pc_begin);
		if (!e || is_linkage(v->claim.in.section[e->in].name) || f->pc_end <= f->pc_begin)
			continue;
		struct start *x = VEC_PUSH(&s.v);
		if (!x)
			err = &elfrw_err_nomem;
		else
			*x = (struct start){ .old = f->pc_begin,
					     .end = f->pc_end,
					     .new = symbols ? UINT64_MAX : f->pc_begin,
					     .sized = true,
					     .new_size = symbols ? 0 : f->pc_end - f->pc_begin };
	}
	if (s.v.len)
		qsort(s.v.data, s.v.len, sizeof *s.v.data, start_order);
	size_t at = 0;
	for (size_t k = 0; k < v->claim.exec.len && !err; k++) {
		uint32_t from = (uint32_t)v->claim.unit.len;
		while (at < s.v.len && s.v.data[at].old < v->claim.exec.data[k].old)
			at++;
		struct elfrw_relocs rel;
		err = elfrw_relocs_open(&rel, &v->claim.in, v->claim.exec.data[k].in);
		if (!err)
			err = cut(v, &v->claim.exec.data[k], &s, &rel, &at);
		elfrw_relocs_close(&rel);
		for (uint32_t i = from; i < v->claim.unit.len && !symbols; i++)
			v->claim.unit.data[i].body = v->claim.unit.data[i].entry =
				v->claim.unit.data[i].old;
		if (!err)
			place_rest(v, &v->claim.exec.data[k], from);
		for (uint32_t i = from; i < v->claim.unit.len && !err; i++)
			if (v->claim.unit.data[i].body == UINT64_MAX &&
			    !(v->claim.unit.data[i].flags & ICF_V_FOLDED))
				err = elfrw_error(
					"%s: has no .debug_icfold, and no symbol says where the code at 0x%llx went",
					v->claim.out.path, ICF_VX(v->claim.unit.data[i].old));
	}
	VEC_FREE(&s.v);
	return err ? err : find_kept(v);
}

struct elfrw_err *icf_v_extend_units(struct icf_v *v)
{
	bool any = false;
	for (size_t i = 0; i < v->words.word.len; i++) {
		uint64_t va = v->words.word.data[i].target;
		const struct icf_vexec *e = exec_at(v, va);
		if (!e || icf_v_find(&v->claim, va) != ICF_V_NONE)
			continue;
		uint32_t lo = LOWER_BOUND(e->unit, e->unit + e->n_units, mid,
					  v->claim.unit.data[mid].old <= va);
		struct icf_vunit *u = lo < e->unit + e->n_units ? &v->claim.unit.data[lo] : NULL;
		uint64_t more = u ? u->old - va : 0;
		if (!u || (u->flags & ICF_V_FOLDED) || u->body - e->new < more)
			continue;
		u->old -= more;
		u->body -= more;
		u->entry = u->body;
		any = true;
		ELFRW_TRY(icf_v_index(v));
	}
	return any ? icf_v_index(v) : NULL;
}
