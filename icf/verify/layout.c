/* layout.c: all code is accounted for.  In IN, bytes in no unit are padding.  In OUT everything is
 * a unit, a thunk or fill, and nothing overlaps.  Further: does every observed function have its
 * own address, aligned as before? */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

struct block {
	uint64_t start, end;
	uint32_t unit;
	bool thunk;
};

static int block_order(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* The bytes of the jump over no-ops at VA, which IN is: gold and the GNU assembler put one over
 * long padding.  0: it is another jump. */
static uint64_t jump_over(const struct icf_vclaim *c, const struct icf_vexec *e, uint64_t va,
			  uint64_t end, const struct elfrw_insn *in)
{
	uint64_t over = va + in->len;
	struct elfrw_insn nop;
	if (in->kind != ELFRW_INSN_JMP || in->target <= over || in->target > end)
		return 0;
	while (over < in->target &&
	       c->arch->decode(e->old_data + (over - e->old), in->target - over, over, &nop) &&
	       nop.kind == ELFRW_INSN_NOP)
		over += nop.len;
	return over == in->target ? over - va : 0;
}

/* The bytes of the padding at VA of IN, in E and before END: one no-op or trap, or a jump over
 * no-ops. 0: none. */
static uint64_t padding_at(const struct icf_vclaim *c, const struct icf_vexec *e, uint64_t va,
			   uint64_t end)
{
	const uint8_t *p = e->old_data + (va - e->old);
	struct elfrw_insn in;
	unsigned fill = elfrw_fill_size(c->arch, p, end - va, va);
	if (fill)
		return fill;
	/* The FDE of a signal trampoline begins one byte before it, in the last no-op. */
	unsigned len = c->arch->decode(p, e->old_end - va, va, &in);
	if (!len)
		return 0;
	bool tells = in.pcrel_size || (in.disp_size && elfrw_get_le(p + in.disp_off, in.disp_size));
	return in.kind == ELFRW_INSN_NOP && !tells ? len : jump_over(c, e, va, end, &in);
}

bool icf_v_is_padding(const struct icf_vclaim *c, const struct icf_vexec *e, uint64_t start,
		      uint64_t end)
{
	uint64_t n = 1;
	for (; start < end && n; start += n)
		n = padding_at(c, e, start, end);
	return n != 0;
}

static void check_padding(struct icf_v *v, const struct icf_vexec *e, uint64_t start, uint64_t end)
{
	uint64_t n;
	for (uint64_t at = start; at < end; at += n) {
		v->log.checked[ICF_VC_PADDING]++;
		n = padding_at(&v->claim, e, at, end);
		if (n)
			continue;
		icf_vlog_bad(&v->log, ICF_VC_PADDING,
			     "code in no unit: %s, 0x%llx: expected padding, found byte 0x%x",
			     v->claim.in.section[e->in].name, ICF_VX(at), e->old_data[at - e->old]);
		return;
	}
}

static const uint8_t *new_bytes(const struct icf_v *v, uint64_t va, uint64_t size)
{
	const struct icf_vexec *e = icf_v_out_exec(&v->claim, va);
	return e && e->new_data && size <= e->new_end - va ? e->new_data + (va - e->new) : NULL;
}

/* A thunk must be one branch to the kept copy, behind a landing pad of indirect branches if the
 * function began with one; then fill. */
static void check_thunk(struct icf_v *v, const struct icf_vunit *u)
{
	char name[200];
	const uint8_t *p = new_bytes(v, u->entry, u->thunk);
	struct elfrw_thunk_read t;
	const char *what = NULL;
	v->log.checked[ICF_VC_THUNK]++;
	unsigned len = v->claim.arch->read_thunk(p, u->thunk, u->entry, &t);
	if (!len)
		what = "a jump";
	else if (t.target != u->body) {
		icf_vlog_bad(&v->log, ICF_VC_THUNK,
			     "jump: thunk of %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			     icf_v_where(&v->claim, u->old, name), ICF_VX(u->old), ICF_VX(u->entry),
			     ICF_VX(u->body), ICF_VX(t.target));
		return;
	} else if (u->endbr && !t.endbr)
		what = "a landing pad for indirect branches";
	else if ((u->entry & 1) && u->entry != u->old)
		what = "an even address";
	for (uint64_t i = len; i < u->thunk && !what; i++)
		if (p[i] != elfrw_fill_byte(v->claim.arch, u->entry + i))
			what = "nothing behind the jump";
	if (what)
		icf_vlog_bad(&v->log, ICF_VC_THUNK,
			     "thunk: %s (0x%llx -> 0x%llx): expected %s, found none",
			     icf_v_where(&v->claim, u->old, name), ICF_VX(u->old), ICF_VX(u->entry),
			     what);
}

/* Nothing moved.  Does the whole page of VA hold nothing but folded bodies without their thunks,
 * and padding? */
static bool is_empty_page(const struct icf_v *v, const struct icf_vexec *e, uint64_t va)
{
	uint64_t size = elfrw_image_page(&v->claim.in), page = va & ~(size - 1);
	if (page < e->old || e->old_end - page < size)
		return false;
	for (uint32_t k = icf_v_find_after(&v->claim, page);
	     k < v->claim.unit.len && v->claim.unit.data[k].old < page + size; k++) {
		const struct icf_vunit *u = &v->claim.unit.data[k];
		if (!(u->flags & ICF_V_FOLDED) || (u->thunk && u->old + u->thunk > page))
			return false;
	}
	return true;
}

/* In a section that stayed: is the byte P of OUT at VA the same as between IN's units, or part of a
 * whole page that folded bodies left empty? */
static bool stayed(const struct icf_v *v, const struct icf_vexec *e, uint64_t va, uint8_t p)
{
	if (e->old != e->new || e->old_end != e->new_end)
		return false;
	if (icf_v_find(&v->claim, va) == ICF_V_NONE && p == e->old_data[va - e->old])
		return true;
	return p == 0 && is_empty_page(v, e, va);
}

/* Is the gap behind unit K, up to TO, as wide as before, with the same code behind it? */
static bool gap_stays(const struct icf_v *v, uint32_t k, uint64_t to)
{
	const struct icf_vunit *u = &v->claim.unit.data[k];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	uint64_t moved = u->body - u->old;
	if (k + 1 >= e->unit + e->n_units)
		return to == e->new_end && to == e->old_end + moved;
	const struct icf_vunit *next = u + 1;
	return !(next->flags & ICF_V_FOLDED) && next->body == next->old + moved && to == next->body;
}

/* The gap [FROM, TO) behind PREV must be all traps, or the padding that the unit had behind it, up
 * to the code that followed it. */
static void check_fill(struct icf_v *v, const struct icf_vexec *e, uint64_t from, uint64_t to,
		       const struct block *prev)
{
	const uint8_t *p = e->new_data + (from - e->new);
	uint64_t n = to - from, i = 0;
	v->log.checked[ICF_VC_FILL] += n;
	while (i < n &&
	       (p[i] == elfrw_fill_byte(v->claim.arch, from + i) || stayed(v, e, from + i, p[i])))
		i++;
	if (i == n)
		return;
	const struct icf_vunit *u = prev && !prev->thunk ? &v->claim.unit.data[prev->unit] : NULL;
	const struct icf_vexec *x = u ? &v->claim.exec.data[u->exec] : NULL;
	uint64_t old = u ? u->old + (from - u->body) : 0;
	if (u && gap_stays(v, prev->unit, to) && old <= x->old_end && n <= x->old_end - old &&
	    memcmp(x->old_data + (old - x->old), p, n) == 0) {
		uint64_t k = 0;
		while (k < n && icf_v_find(&v->claim, old + k) == ICF_V_NONE)
			k++;
		if (k == n)
			return;
	}
	icf_vlog_bad(&v->log, ICF_VC_FILL,
		     "byte in no function: %s, 0x%llx: expected 0x%x, found 0x%x",
		     v->claim.out.section[e->out].name, ICF_VX(from + i),
		     elfrw_fill_byte(v->claim.arch, from + i), p[i]);
}

static struct elfrw_err *check_blocks(struct icf_v *v)
{
	VEC(struct block) b = { 0 };
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		if (u->thunk)
			check_thunk(v, u);
		if (u->old == u->end || ((u->flags & ICF_V_FOLDED) && !u->thunk))
			continue;
		struct block *slot = VEC_PUSH(&b);
		if (!slot) {
			VEC_FREE(&b);
			return &elfrw_err_nomem;
		}
		*slot = u->thunk ? (struct block){ u->entry, u->entry + u->thunk, i, true }
				 : (struct block){ u->body, u->body + (u->end - u->old), i, false };
	}
	if (b.len)
		qsort(b.data, b.len, sizeof *b.data, block_order);
	for (size_t k = 0; k < v->claim.exec.len; k++) {
		const struct icf_vexec *e = &v->claim.exec.data[k];
		uint64_t pos = e->new;
		const struct block *prev = NULL;
		for (size_t i = LOWER_BOUND(0, b.len, mid, b.data[mid].start < e->new);
		     i < b.len && b.data[i].start < e->new_end; i++) {
			const struct block *x = &b.data[i];
			if (x->start < pos) {
				char name[200], other[200];
				icf_vlog_bad(
					&v->log, ICF_VC_CLAIM,
					"overlap: %s and %s (-> 0x%llx): expected 0x%llx or later, found 0x%llx",
					prev ? icf_v_where(&v->claim,
							   v->claim.unit.data[prev->unit].old,
							   other)
					     : "section start",
					icf_v_where(&v->claim, v->claim.unit.data[x->unit].old,
						    name),
					ICF_VX(x->start), ICF_VX(pos), ICF_VX(x->start));
			} else
				check_fill(v, e, pos, x->start, prev);
			if (x->end > pos)
				pos = x->end;
			prev = x;
		}
		if (pos < e->new_end)
			check_fill(v, e, pos, e->new_end, prev);
	}
	VEC_FREE(&b);
	return NULL;
}

static struct elfrw_err *observe_exports(struct icf_v *v)
{
	const struct elfrw_section *s = &v->claim.in.section[v->claim.in.dynsym];
	for (struct elfrw_symbols it = elfrw_symbols(v->claim.in.dynsym ? s : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_SECTION)
			continue;
		uint32_t u = icf_v_find(&v->claim, sym.st_value);
		if (u != ICF_V_NONE && v->claim.unit.data[u].old == sym.st_value)
			v->claim.unit.data[u].observed = 1;
	}
	return NULL;
}

static void observe_words(struct icf_v *v)
{
	for (size_t i = 0; i < v->words.word.len; i++) {
		const struct icf_vword *w = &v->words.word.data[i];
		bool own =
			w->table != ICF_V_NONE && v->words.table.data[w->table].owner != ICF_V_NONE;
		uint32_t u = icf_v_find(&v->claim, w->target);
		if (u != ICF_V_NONE && v->claim.unit.data[u].old == w->target && !own && !w->quiet)
			v->claim.unit.data[u].observed = 1;
	}
}

static struct elfrw_err *check_observed(struct icf_v *v)
{
	ELFRW_TRY(observe_exports(v));
	observe_words(v);
	VEC(struct block) b = { 0 };
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		if (!u->observed)
			continue;
		/* Pointers to member functions keep a flag in the lowest bit (Itanium C++ ABI
		 * 2.3). */
		if ((u->entry & 1) && !(u->old & 1)) {
			char name[200];
			icf_vlog_bad(
				&v->log, ICF_VC_OBSERVED,
				"odd address: %s (0x%llx -> 0x%llx): expected an even one, found 0x%llx",
				icf_v_where(&v->claim, u->old, name), ICF_VX(u->old),
				ICF_VX(u->entry), ICF_VX(u->entry));
		}
		struct block *slot = VEC_PUSH(&b);
		if (!slot) {
			VEC_FREE(&b);
			return &elfrw_err_nomem;
		}
		*slot = (struct block){ .start = u->entry, .unit = i };
	}
	if (b.len)
		qsort(b.data, b.len, sizeof *b.data, block_order);
	v->log.checked[ICF_VC_OBSERVED] += b.len;
	for (size_t i = 1; i < b.len && v->opt->mode == ICF_VERIFY_SAFE; i++) {
		char x[200], y[200];
		if (b.data[i].start != b.data[i - 1].start)
			continue;
		icf_vlog_bad(
			&v->log, ICF_VC_OBSERVED,
			"merged: %s and %s (0x%llx, 0x%llx -> 0x%llx): expected two addresses, found one",
			icf_v_where(&v->claim, v->claim.unit.data[b.data[i - 1].unit].old, x),
			icf_v_where(&v->claim, v->claim.unit.data[b.data[i].unit].old, y),
			ICF_VX(v->claim.unit.data[b.data[i - 1].unit].old),
			ICF_VX(v->claim.unit.data[b.data[i].unit].old), ICF_VX(b.data[i].start));
	}
	VEC_FREE(&b);
	return NULL;
}

struct elfrw_err *icf_v_check_layout(struct icf_v *v)
{
	for (size_t k = 0; k < v->claim.exec.len; k++) {
		const struct icf_vexec *e = &v->claim.exec.data[k];
		uint64_t pos = e->old;
		for (uint32_t i = e->unit; i < e->unit + e->n_units; i++) {
			const struct icf_vunit *u = &v->claim.unit.data[i];
			if (u->old > pos)
				check_padding(v, e, pos, u->old);
			if (u->end > pos)
				pos = u->end;
		}
		check_padding(v, e, pos, e->old_end);
	}
	ELFRW_TRY(check_blocks(v));
	ELFRW_TRY(check_observed(v));
	icf_v_check_alignment(&v->claim, &v->words, &v->log);
	return NULL;
}
