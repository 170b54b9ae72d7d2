/* gap.c: code that neither a symbol nor an FDE delimits.
 *
 * Examples are startup code in a stripped program, hand-written assembler, and a whole program that
 * was compiled without unwind tables.  The starts of functions are unknown there, so nothing can be
 * folded.  Code that is entered and never read is code, and may move as one block.  Everything else
 * is *blind*: it may hold data, and its jumps are unknown.  A blind unit stays where it is.  So
 * does all that it reaches: by a displacement in its bytes (refs/glue.c), and by a distance in
 * data:
 *   - a word of an object that it refers to, counted from the word's place or from the object: a
 *     switch, a relative vtable;
 *   - a word of such an object, counted from a code address that the unit refers to nearby.  A
 *     difference of two places has no relocation on x86-64, so both lie in one input section, and
 *     code that adds them refers to both within a few instructions;
 *   - a word that is exactly the distance to a function, behind a place in its own bytes that it
 *     refers to, counted from a code address in the same way: several functions of assembler are
 *     one unit, and so is the table that they share;
 *   - anywhere, if it adds anything to the address of a function that may move: nothing moves then;
 *   - wherever it calls or jumps to a sum, any word that is exactly the distance to a function
 *     (word.c).
 * Its use of a place between two functions is unknown: nothing moves then.  Cost: linear in the
 * code, and in the data that it refers to. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/infer/effect.h"
#include "icf/infer/gap/state.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define KEEP   16  /* instructions examined before a jump */
#define NEARBY 512 /* bytes between instructions that refer to the parts of a sum */
#define CLOSE  128 /* the same for a table in the code itself: there are more such pairs */
#define BEFORE 32  /* bytes before a named place in which a table may begin */
#define APART  160 /* places in a row that lead to no function end it */
#define SMALL  (1 << 20)
#define PAGE   12 /* exponent of two */

enum { ENTERED = 1, SEEN = 2 }; /* a unit */

static bool is_bare(const struct icf_program *prog, const struct icf_unit *u)
{
	return u->kind == ICF_UNIT_RIGID && !u->n_fde && !prog->exec.data[u->sec].linkage;
}

/* Marks all units that the half REF may name with WHAT. */
static void see_page(const struct icf_program *prog, const struct icf_ref *ref, uint8_t *mark,
		     uint8_t what)
{
	uint64_t from, to;
	elfrw_form_span(icf_ref_form(prog, ref), ref->target, &from, &to);
	uint32_t k =
		(uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].end <= from);
	for (; k < prog->unit.len && prog->unit.data[k].start < to; k++)
		mark[k] |= what;
}

/* Is the unit nothing but stubs that the linker did not need in the end: each an instruction, and a
 * jump behind the same instruction elsewhere?  (gold's workaround for erratum 843419, where an ADR
 * was enough.) */
static bool is_spare(const struct icf_program *prog, const struct icf_unit *u)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, pos = 0;
	struct elfrw_insn in, jump;
	for (; pos < size; pos += in.len + jump.len) {
		uint64_t to = u->start + pos;
		if (!prog->arch->decode(code + pos, size - pos, to, &in) ||
		    !prog->arch->decode(code + pos + in.len, size - pos - in.len, to + in.len,
					&jump) ||
		    jump.kind != ELFRW_INSN_JMP || in.len < 4)
			return false;
		uint32_t k = icf_unit_at(prog, jump.target);
		const struct icf_unit *t = k != ICF_NONE ? &prog->unit.data[k] : NULL;
		if (!t || t == u || jump.target - t->start < in.len ||
		    memcmp(icf_unit_bytes(prog, t) + (jump.target - in.len - t->start), code + pos,
			   in.len) != 0)
			return false;
	}
	return size > 0;
}

/* Sets bits of BARE, one for each page of the code: a bare unit touches it.  false: there are none.
 */
static bool find_bare(const struct icf_program *prog, struct icf_bits *bare)
{
	bool any = false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (!is_bare(prog, u))
			continue;
		any = true;
		for (uint64_t p = u->start >> PAGE; p <= u->end >> PAGE; p++)
			icf_set_bit(bare, p);
	}
	return any;
}

/* Asks only of references to pages with bare units, of which programs have few. */
static void mark_named(const struct icf_program *prog, const struct icf_bits *bare, uint8_t *mark)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++) {
			if (icf_names_page(&ref[r])) {
				see_page(prog, &ref[r], mark, SEEN);
				continue;
			}
			if (!icf_bit(bare, ref[r].target >> PAGE))
				continue;
			uint32_t k = icf_in_exec(prog, ref[r].target)
					     ? icf_unit_at(prog, ref[r].target)
					     : ICF_NONE;
			if (k != ICF_NONE)
				mark[k] |=
					ref[r].kind == ICF_REF_BRANCH ? k != i ? ENTERED : 0 : SEEN;
		}
	}
	for (size_t i = 0; i < prog->dataref.len; i++) {
		uint32_t k = prog->dataref.data[i].kind != ICF_DATA_ADDRESS
				     ? ICF_NONE
				     : icf_unit_at(prog, prog->dataref.data[i].target);
		if (k != ICF_NONE)
			mark[k] |= ENTERED;
	}
	uint32_t entry = icf_unit_at(prog, prog->img->ehdr.e_entry);
	if (entry != ICF_NONE)
		mark[entry] |= ENTERED;
}

struct elfrw_err *icf_find_blind(struct icf_program *prog)
{
	struct icf_bits bare;
	uint8_t *mark = calloc(prog->unit.len + 1, 1);
	if (!mark)
		return &elfrw_err_nomem;
	if (!icf_bits_init(&bare, prog->exec.data[0].start >> PAGE,
			   (prog->exec.data[prog->exec.len - 1].end >> PAGE) + 1)) {
		free(mark);
		return &elfrw_err_nomem;
	}
	if (find_bare(prog, &bare))
		mark_named(prog, &bare, mark);
	icf_bits_deinit(&bare);
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (!is_bare(prog, u))
			continue;
		if (!u->n_sym && mark[i] != ENTERED && (mark[i] || !is_spare(prog, u)))
			u->flags |= ICF_UNIT_BLIND;
		/* A label that is only read may be a table's, whatever its bytes look like. Without
		 * relocations, a plain reference shows more; a half of an address does not. */
		if (u->n_sym && (!prog->inferred || prog->arch->low_form) &&
		    !(u->flags & ICF_UNIT_FUNC_SYMBOL) && mark[i] == SEEN)
			u->flags |= ICF_UNIT_BLIND;
	}
	free(mark);
	return NULL;
}

struct done;

#define REGS 32 /* as many as a set of them has (elfrw/arch/effect.h) */

struct gap {
	struct done *done;             /* borrowed */
	uint64_t function[REGS];       /* by register: the function whose address it holds, or 0 */
	bool holds;                    /* one may hold one */
	VEC(struct icf_named_at) name; /* by pos */
	bool sums;                     /* it calls a sum, or jumps to one */
	uint64_t start, end;           /* of the unit that was pinned last */
	uint64_t lo, hi;               /* of the code */
};

#define LAST 8192 /* a power of 2 */

/* What was done last, in all gaps; places are stored plus 1.  Units refer to the same objects again
 * and again, often to large ones.  What is pinned depends on the object and the address only. */
struct done {
	struct {
		uint64_t va, from;
	} pinned[LAST];        /* pin_row() */
	uint64_t words[LAST];  /* pin_words() */
	struct icf_bits entry; /* where functions begin */
	struct icf_rows rows;
};

static size_t slot(uint64_t key, size_t n)
{
	return key * 0x9e3779b97f4a7c15 >> 40 & (n - 1);
}

/* The same as pin_at(), for a place outside of the unit that was pinned last. */
static __attribute__((noinline)) bool pin_other(struct icf_program *prog, struct gap *g,
						uint64_t va)
{
	uint32_t i = icf_unit_at(prog, va);
	if (i == ICF_NONE)
		return icf_in_exec(prog, va);
	icf_pin_unit(prog, i);
	g->start = prog->unit.data[i].start;
	g->end = prog->unit.data[i].end;
	return true;
}

/* Pins the unit that VA lies in, if any; false: VA is no place in code. */
static inline __attribute__((always_inline)) bool pin_at(struct icf_program *prog, struct gap *g,
							 uint64_t va)
{
	/* Most words lead into one large unit, or nowhere. */
	if (va - g->start < g->end - g->start)
		return true;
	return va - g->lo < g->hi - g->lo && pin_other(prog, g, va);
}

/* The function outside of unit I that begins at VA and that may move, or 0. */
static uint64_t known_function(const struct icf_program *prog, uint32_t i, uint64_t va)
{
	uint32_t k = icf_in_exec(prog, va) ? icf_unit_at(prog, va) : ICF_NONE;
	return k != ICF_NONE && k != i && prog->unit.data[k].start == va &&
			       !icf_is_dark(&prog->unit.data[k]) &&
			       !prog->exec.data[prog->unit.data[k].sec].linkage
		       ? va
		       : 0;
}

/* Follows addresses of functions through registers, along code without branches, to the last
 * instruction of T.  If something is added to one, the sum may be any place. */
static void follow_functions(struct icf_program *prog, uint32_t i, struct gap *g,
			     const struct icf_trace *t)
{
	const struct icf_insn_at *a = &t->insn.data[t->insn.len - 1];
	const struct elfrw_insn *in = &a->in;
	bool in_memory = in->flags & ELFRW_INSN_MEM, computes = (in->flags & ELFRW_INSN_LEA) &&
								in->pcrel_size &&
								!icf_is_half(prog->arch, in);
	uint64_t now = computes ? known_function(prog, i, in->target) : 0;
	if (!now && !g->holds) /* most code */
		return;
	if (in->kind != ELFRW_INSN_OTHER && in->kind != ELFRW_INSN_NOP &&
	    in->kind != ELFRW_INSN_JCC) {
		memset(g->function, 0, sizeof g->function);
		g->holds = false;
		return;
	}
	struct elfrw_effect e = icf_effect_at(prog, i, t, t->insn.len - 1);
	if (computes)
		g->holds |= now != 0;
	else if (e.op == ELFRW_OP_MOV && !in_memory && e.a < REGS)
		now = g->function[e.a];
	else if (e.op == ELFRW_OP_ADDRESS || e.op == ELFRW_OP_ADD || e.op == ELFRW_OP_SUB) {
		bool lea = e.op == ELFRW_OP_ADDRESS;
		unsigned x = lea         ? in->base
			     : in_memory ? e.dst
					 : e.a,
			 y = lea                                 ? in->index
			     : e.op == ELFRW_OP_SUB || in_memory ? ELFRW_REG_NONE
								 : e.b;
		if ((x < REGS && g->function[x]) || (y < REGS && g->function[y]))
			icf_infer_loose(prog, prog->unit.data[i].start + a->pos,
					"code without bounds adds to the address of a function");
	}
	for (unsigned r = 0; r < REGS; r++)
		if (e.writes >> r & 1)
			g->function[r] = 0;
	if (e.dst < REGS)
		g->function[e.dst] = now;
}

/* Reads unit I.  Bytes in it that nothing refers to may be data, so a byte that begins no
 * instruction is skipped. */
static struct elfrw_err *read_gap(struct icf_program *prog, uint32_t i, struct gap *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	struct icf_trace t = { 0 }; /* the last instructions only */
	struct icf_insn_at a;
	struct icf_halves halves = { 0 };
	struct elfrw_err *err = VEC_RESERVE(&t.insn, 4 * KEEP) ? NULL : &elfrw_err_nomem;
	for (uint64_t pos = 0; pos < size && !err; pos += a.in.len) {
		a.pos = (uint32_t)pos;
		if (!prog->arch->decode(code + pos, size - pos, u->start + pos, &a.in)) {
			a.in.len = 1;
			continue;
		}
		if (t.insn.len == 4 * KEEP) {
			memmove(t.insn.data, t.insn.data + 3 * KEEP, KEEP * sizeof a);
			t.insn.len = KEEP;
		}
		t.insn.data[t.insn.len++] = a;
		follow_functions(prog, i, ret, &t);
		if (!ret->sums &&
		    (a.in.kind == ELFRW_INSN_CALL_IND || a.in.kind == ELFRW_INSN_JMP_IND))
			ret->sums = icf_call_adds(prog, i, &t, t.insn.len - 1);
		uint64_t to = a.in.target;
		bool pair = icf_half_names(prog->arch, &halves, &a.in, code + pos, &to) &&
			    !(a.in.flags & ELFRW_INSN_MEM),
		     one = (a.in.flags & ELFRW_INSN_LEA) && a.in.pcrel_size &&
			   !icf_is_half(prog->arch, &a.in);
		if (!pair && !one)
			continue;
		struct icf_named_at *n = VEC_PUSH(&ret->name);
		if (n)
			*n = (struct icf_named_at){ to, (uint32_t)pos, icf_in_exec(prog, to) };
		else
			err = &elfrw_err_nomem;
	}
	VEC_FREE(&t.insn);
	return err;
}

/* The distances from BASE into the unit that was pinned last, where there is nothing left to do. */
static struct icf_row_span settled(const struct gap *g, uint64_t base)
{
	return (struct icf_row_span){ (int64_t)(g->start - base), (int64_t)(g->end - 1 - base) };
}

/* Pins the targets of the first words R of the object at VA, counted from the code address FROM:
 * inside of functions, too. */
static void pin_row(struct icf_program *prog, struct gap *g, const struct icf_row *r, uint64_t va,
		    uint64_t from)
{
	const struct icf_row_span any = { INT64_MIN, INT64_MAX };
	size_t i = slot(va + 31 * from, LAST);
	if (g->done->pinned[i].va == va + 1 && g->done->pinned[i].from == from)
		return;
	g->done->pinned[i].va = va + 1;
	g->done->pinned[i].from = from;
	for (uint64_t k = 0;; k++) {
		const struct icf_row_span idle = settled(g, from);
		k = icf_row_next(r, k, &any, &idle);
		if (k == r->n || !pin_at(prog, g, from + (uint64_t)icf_row_word(r, k)))
			return;
	}
}

/* Pins the function that begins at TO; false: none does, outside of unit I. */
static bool pin_entry(struct icf_program *prog, const struct gap *g, uint32_t i, uint64_t to)
{
	if (!icf_bit(&g->done->entry, to))
		return false;
	uint32_t k = icf_unit_at(prog, to);
	if (k == ICF_NONE || k == i || prog->unit.data[k].start != to)
		return false;
	icf_pin_unit(prog, k);
	return true;
}

/* Pins the functions that words of unit I lead to, counted from FROM: words at any even place from
 * TABLE on, and before it; of two bytes, too, if the unit calls sums.  What is read may be
 * instructions: few words of these lead to the entry of a function. */
static void pin_own_row(struct icf_program *prog, struct gap *g, uint32_t i, uint64_t table,
			uint64_t from)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *p = icf_unit_bytes(prog, u);
	const uint64_t size = u->end - u->start, begin = table - u->start;
	unsigned n = 0;
	for (uint64_t off = begin < BEFORE ? begin & 1 : begin - BEFORE;
	     n < APART && size - off >= 2; off += 2, n++) {
		uint64_t w = size - off < 4 ? 0 : (uint64_t)(int64_t)(int32_t)elfrw_get32(p + off),
			 half = elfrw_get16(p + off);
		bool any = pin_entry(prog, g, i, from + w);
		any |= pin_entry(prog, g, i, from - w);
		if (g->sums) {
			any |= pin_entry(prog, g, i, from + half);
			any |= pin_entry(prog, g, i, from + (uint64_t)(int64_t)(int16_t)half);
		}
		if (any)
			n = 0;
	}
}

/* Pins the functions that tables among the bytes of unit I lead to, counted from code addresses
 * that it refers to near the table. */
static void pin_by_own(struct icf_program *prog, uint32_t i, struct gap *g)
{
	const struct icf_named_at *name = g->name.data;
	const struct icf_unit *u = &prog->unit.data[i];
	size_t near = 0;
	for (size_t k = 0; k < g->name.len; k++) {
		while (name[k].pos - name[near].pos > CLOSE)
			near++;
		if (name[k].va - u->start >= u->end - u->start)
			continue;
		for (size_t c = near; c < g->name.len && (name[c].pos <= name[k].pos ||
							  name[c].pos - name[k].pos <= CLOSE);
		     c++)
			if (name[c].code)
				pin_own_row(prog, g, i, name[k].va, name[c].va);
	}
}

/* Pins the possible targets of words of data, counted from code addresses that the unit refers to
 * near the data. */
static struct elfrw_err *pin_by_code(struct icf_program *prog, const struct icf_data_map *map,
				     struct gap *g)
{
	const struct icf_named_at *name = g->name.data;
	size_t near = 0, end = 0;
	for (size_t k = 0; k < g->name.len; k++) {
		if (name[k].code)
			continue;
		while (name[k].pos - name[near].pos > NEARBY)
			near++;
		while (end < g->name.len &&
		       (name[end].pos <= name[k].pos || name[end].pos - name[k].pos <= NEARBY))
			end++;
		size_t first = near;
		while (first < end && !name[first].code)
			first++;
		if (first == end)
			continue;
		struct icf_row r;
		struct elfrw_err *err = icf_row_at(&g->done->rows, name[k].va, false, &r);
		if (err)
			return err;
		for (size_t c = first; c < end; c++)
			if (name[c].code)
				pin_row(prog, g, &r, name[k].va, name[c].va);
		icf_pin_sums(prog, map, name[k].va, name + first, end - first, g->sums);
	}
	return NULL;
}

/* Pins the possible targets of the words from BASE on. */
static struct elfrw_err *pin_words(struct icf_program *prog, struct gap *g, uint64_t base)
{
	const struct icf_row_span code = { (int64_t)(g->lo - base), (int64_t)(g->hi - 1 - base) };
	uint64_t *last = &g->done->words[slot(base, LAST)];
	struct icf_row r;
	if (*last == base + 1)
		return NULL;
	*last = base + 1;
	struct elfrw_err *err = icf_row_at(&g->done->rows, base, true, &r);
	if (err)
		return err;
	for (uint64_t k = 0;; k++) {
		const struct icf_row_span idle = settled(g, base);
		k = icf_row_next(&r, k, &code, &idle);
		if (k == r.n)
			break;
		pin_at(prog, g, base + (uint64_t)icf_row_word(&r, k));
	}
	/* Where these lead does not depend on BASE, and the row of a place in a row, a multiple of
	 * 4 from its start, ends with it. */
	for (uint64_t k = 0; k < r.n && !icf_row_see(&r, k); k++)
		pin_at(prog, g, base + 4 * k + (uint64_t)icf_row_word(&r, k));
	return NULL;
}

/* Unit I refers to VA, which lies in padding. */
static void keep_padding(struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	uint32_t before = icf_unit_ending(prog, ref->target);
	uint32_t behind = (uint32_t)LOWER_BOUND(0, prog->unit.len, mid,
						prog->unit.data[mid].start <= ref->target);
	if (before == ICF_NONE) {
		icf_infer_loose(prog, prog->unit.data[i].start + ref->off,
				"code without bounds names a place between two functions");
		return;
	}
	icf_pin_unit(prog, before);
	if (behind < prog->unit.len)
		icf_pin_unit(prog, behind);
}

/* Pins what unit I, which is not understood, may reach through the data that it refers to. */
static struct elfrw_err *pin_by_data(struct icf_program *prog, uint32_t i, struct gap *g)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	struct icf_places base = { 0 };
	struct elfrw_err *err = NULL;
	bool ok = VEC_RESERVE(&base.v, g->name.len + u->n_ref);
	for (size_t k = 0; k < g->name.len && ok; k++)
		if (!g->name.data[k].code)
			base.v.data[base.v.len++] = g->name.data[k].va;
	for (uint32_t r = 0; r < u->n_ref && ok; r++)
		if (icf_names_page(&ref[r]))
			continue;
		else if (!icf_in_exec(prog, ref[r].target))
			base.v.data[base.v.len++] = ref[r].target;
		else if (icf_unit_at(prog, ref[r].target) == ICF_NONE)
			keep_padding(prog, i, &ref[r]);
	if (base.v.len)
		qsort(base.v.data, base.v.len, sizeof *base.v.data, elfrw_u64_order);
	for (size_t k = 0; k < base.v.len && !err; k++)
		if (k == 0 || base.v.data[k] != base.v.data[k - 1])
			err = pin_words(prog, g, base.v.data[k]);
	VEC_FREE(&base.v);
	return ok ? err : &elfrw_err_nomem;
}

/* Pins what the bytes of unit I may reach. */
static struct elfrw_err *infer_gap(struct icf_program *prog, const struct icf_data_map *map,
				   uint32_t i, struct done *done)
{
	struct icf_unit *u = &prog->unit.data[i];
	struct gap g = { .done = done,
			 .lo = prog->exec.data[0].start,
			 .hi = prog->exec.data[prog->exec.len - 1].end };
	struct elfrw_err *err = read_gap(prog, i, &g);
	if (!err && g.sums)
		u->flags |= ICF_UNIT_RELATIVE;
	if (!err)
		err = pin_by_data(prog, i, &g);
	if (!err)
		err = pin_by_code(prog, map, &g);
	if (!err)
		pin_by_own(prog, i, &g);
	VEC_FREE(&g.name);
	return err;
}

struct elfrw_err *icf_infer_gaps(struct icf_program *prog, const struct icf_data_map *map)
{
	struct elfrw_err *err = NULL;
	struct done *done = calloc(1, sizeof *done);
	if (!done || !icf_bits_init(&done->entry, prog->exec.data[0].start,
				    prog->exec.data[prog->exec.len - 1].end)) {
		free(done);
		return &elfrw_err_nomem;
	}
	err = icf_rows_init(prog, map, &done->rows);
	for (uint32_t i = 0; i < prog->unit.len; i++)
		icf_set_bit(&done->entry, prog->unit.data[i].start);
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (is_bare(prog, u) && !u->n_sym && (u->flags & ICF_UNIT_RELATIVE) &&
		    icf_names_code(prog, u))
			u->flags |= ICF_UNIT_BLIND;
		if (icf_is_dark(u) && !prog->exec.data[u->sec].linkage)
			err = infer_gap(prog, map, i, done);
	}
	icf_rows_deinit(&done->rows);
	icf_bits_deinit(&done->entry);
	free(done);
	return err;
}
