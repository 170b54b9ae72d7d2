/* code.c: are all bytes of a unit code?
 *
 * Without relocations only the bytes tell.  Every instruction must be reached: from the one before,
 * by a branch, or (after a jump or a return) because something refers to it: a jump table, a
 * landing pad, an address in code or data, a symbol, an FDE.  Bytes that nothing refers to may be
 * data between functions' code; the unit is then not understood.  The places that nothing in their
 * unit refers to are found when the unit is decoded (refs/look.c); this file has the instructions
 * of a unit that others examine, and says in the end which places nothing refers to. */
#include "dwarf/lsda.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <string.h>

#define MAX_BUDGET 50000000

bool icf_trace_begin(struct icf_trace *t, uint64_t size)
{
	size_t bytes = size / 8 + 1;
	t->insn.len = 0;
	t->inner = false;
	t->distances = ICF_MAYBE;
	size_t words = size / 64 + 1; /* an instruction has a byte at least */
	if (!VEC_RESERVE(&t->start, bytes) || !VEC_RESERVE(&t->target, bytes) ||
	    !VEC_RESERVE(&t->insn, size / 3 + 16) || !VEC_RESERVE(&t->turn, words) ||
	    !VEC_RESERVE(&t->number, words))
		return false;
	memset(t->turn.data, 0, words * sizeof *t->turn.data);
	memset(t->number.data, 0, words * sizeof *t->number.data);
	memset(t->start.data, 0, bytes);
	memset(t->target.data, 0, bytes);
	return true;
}

bool icf_trace_is_clean(const struct icf_trace *t, uint64_t size)
{
	const uint8_t *target = t->target.data, *start = t->start.data;
	size_t n = size / 8 + 1, b = 0;
	for (; n - b >= 8; b += 8)
		if (elfrw_get64(target + b) & ~elfrw_get64(start + b))
			return false;
	for (; b < n; b++)
		if (target[b] & ~start[b])
			return false;
	return true;
}

struct elfrw_err *icf_trace_unit(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				 bool *clean)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, avail = prog->exec.data[u->sec].end - u->start;
	if (!icf_trace_begin(t, size))
		return &elfrw_err_nomem;
	for (uint64_t pos = 0; pos < size;) {
		struct elfrw_insn *in = icf_trace_slot(t);
		if (!in)
			return &elfrw_err_nomem;
		/* The length is needed at once, to find the next instruction. */
		unsigned len = icf_decode(prog, u, code + pos, avail - pos, u->start + pos, in);
		*clean = len && len <= size - pos;
		if (!*clean)
			return NULL;
		icf_trace_add(prog->arch, u, t, pos);
		pos += len;
	}
	*clean = icf_trace_is_clean(t, size);
	return NULL;
}

static bool is_before(const struct icf_edge *a, const struct icf_edge *b)
{
	return a->to != b->to ? a->to < b->to : a->from < b->from;
}

#define DIGIT 11 /* bits */
#define FEW   48 /* edges that are sorted without counting */

/* Sorts the N edges of E by a number up to LIMIT at OFF in each, stably; T has room for them. */
static void sort_by(struct icf_trace *t, struct icf_edge *e, size_t n, size_t off, uint64_t limit)
{
	const uint32_t mask = (1u << DIGIT) - 1;
	for (unsigned shift = 0; shift < 32 && limit >> shift; shift += DIGIT) {
		uint32_t at[1 << DIGIT] = { 0 }, key;
		for (size_t i = 0; i < n; i++) {
			memcpy(&key, (const uint8_t *)&e[i] + off, sizeof key);
			at[key >> shift & mask]++;
		}
		for (uint32_t d = 0, sum = 0; d <= mask; d++) {
			uint32_t here = at[d];
			at[d] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++) {
			memcpy(&key, (const uint8_t *)&e[i] + off, sizeof key);
			t->sorted.data[at[key >> shift & mask]++] = e[i];
		}
		memcpy(e, t->sorted.data, n * sizeof *e);
	}
}

/* Sorts the N edges of E, of a unit of SIZE bytes, by `to` and then by `from`.  Counts digits,
 * since large functions have thousands; mostly they are in the order of `from`.  false: out of
 * memory. */
static bool sort_edges(struct icf_trace *t, struct icf_edge *e, size_t n, uint64_t size)
{
	bool sorted = true, forth = true;
	for (size_t i = 1; i < n; i++) {
		sorted &= !is_before(&e[i], &e[i - 1]);
		forth &= e[i - 1].from <= e[i].from;
	}
	if (sorted)
		return true;
	for (size_t i = 1; i < n && n <= FEW; i++) {
		struct icf_edge one = e[i];
		size_t k = i;
		for (; k > 0 && is_before(&one, &e[k - 1]); k--)
			e[k] = e[k - 1];
		e[k] = one;
	}
	if (n <= FEW)
		return true;
	if (!VEC_RESERVE(&t->sorted, n))
		return false;
	if (!forth)
		sort_by(t, e, n, offsetof(struct icf_edge, from), t->insn.len);
	sort_by(t, e, n, offsetof(struct icf_edge, to), size);
	return true;
}

struct elfrw_err *icf_trace_edges(const struct icf_program *prog, uint32_t i, struct icf_trace *t)
{
	const struct icf_unit *u = &prog->unit.data[i];
	t->edge.len = t->jump.v.len = t->open.v.len = t->cases.len = t->pads.len = 0;
	t->forward = t->sealed = t->plain = false;
	t->budget = MAX_BUDGET;
	for (size_t k = 0; k < t->insn.len; k++) {
		const struct elfrw_insn *in = &t->insn.data[k].in;
		if (in->kind == ELFRW_INSN_JMP_IND) {
			uint32_t *j = VEC_PUSH(&t->jump.v);
			if (!j)
				return &elfrw_err_nomem;
			*j = (uint32_t)k;
		}
		if ((in->kind != ELFRW_INSN_JMP && in->kind != ELFRW_INSN_JCC) ||
		    in->target - u->start >= u->end - u->start)
			continue;
		struct icf_edge *e = VEC_PUSH(&t->edge);
		if (!e)
			return &elfrw_err_nomem;
		*e = (struct icf_edge){ (uint32_t)(in->target - u->start), (uint32_t)k };
	}
	return sort_edges(t, t->edge.data, t->edge.len, u->end - u->start) &&
			       VEC_APPEND(&t->open.v, t->jump.v.data, t->jump.v.len)
		       ? NULL
		       : &elfrw_err_nomem;
}

bool icf_trace_sort_cases(struct icf_trace *t, uint64_t size)
{
	size_t n = 0;
	if (!sort_edges(t, t->cases.data, t->cases.len, size))
		return false;
	for (size_t i = 0; i < t->cases.len; i++)
		if (n == 0 || is_before(&t->cases.data[n - 1], &t->cases.data[i]))
			t->cases.data[n++] = t->cases.data[i];
	t->cases.len = n;
	return true;
}

/* Exceptions of call site S lead to its landing pad, from its calls and from other instructions
 * that may fault (-fnon-call-exceptions). */
static struct elfrw_err *push_pads(const struct icf_program *prog, uint32_t unit,
				   struct icf_trace *t, const struct dwr_lsda_site *s,
				   uint64_t from, uint64_t pad)
{
	for (size_t k = LOWER_BOUND(0, t->insn.len, mid, t->insn.data[mid].pos < from);
	     k < t->insn.len && t->insn.data[k].pos - from < s->len; k++) {
		const struct elfrw_insn *in = &t->insn.data[k].in;
		bool call = in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND;
		bool memory = (in->flags & ELFRW_INSN_MEM) && !(in->flags & ELFRW_INSN_LEA) &&
			      in->kind != ELFRW_INSN_NOP;
		if (!call && !memory && icf_effect_at(prog, unit, t, k).op != ELFRW_OP_DIVIDE)
			continue;
		struct icf_edge *e = VEC_PUSH(&t->pads);
		if (!e)
			return &elfrw_err_nomem;
		*e = (struct icf_edge){ (uint32_t)pad, (uint32_t)k };
	}
	return NULL;
}

struct elfrw_err *icf_trace_pads(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				 bool *good)
{
	const struct icf_unit *u = &prog->unit.data[i];
	struct dwr_lsda lsda = { 0 };
	struct elfrw_err *err = NULL;
	t->pads.len = 0;
	*good = true;
	for (uint32_t f = u->fde; f < u->fde + u->n_fde && !err && *good; f++) {
		const struct dwr_fde *fde = &prog->cfi.fde.data[prog->cfi.by_pc[f]];
		if (!fde->lsda)
			continue;
		err = dwr_lsda_read(&lsda, prog->img, fde->lsda, fde->pc_begin, fde->pc_end);
		*good = !err;
		elfrw_err_free(err);
		err = NULL;
		for (size_t s = 0; s < lsda.site.len && *good && !err; s++) {
			const struct dwr_lsda_site *site = &lsda.site.data[s];
			if (!site->landing_pad)
				continue;
			/* The landing pad is in another part of the function: control may return
			 * from there in ways that are not seen. */
			*good = site->landing_pad - u->start < u->end - u->start;
			if (*good)
				err = push_pads(prog, i, t, site,
						fde->pc_begin - u->start + site->start,
						site->landing_pad - u->start);
		}
	}
	dwr_lsda_deinit(&lsda);
	if (!*good)
		t->pads.len = 0;
	if (!err && !sort_edges(t, t->pads.data, t->pads.len, u->end - u->start))
		err = &elfrw_err_nomem;
	return err;
}

void icf_trace_deinit(struct icf_trace *t)
{
	VEC_FREE(&t->pads);
	VEC_FREE(&t->edge);
	VEC_FREE(&t->sorted);
	VEC_FREE(&t->jump.v);
	VEC_FREE(&t->open.v);
	VEC_FREE(&t->cases);
	VEC_FREE(&t->todo);
	VEC_FREE(&t->seen);
	VEC_FREE(&t->insn);
	VEC_FREE(&t->start);
	VEC_FREE(&t->target);
	VEC_FREE(&t->turn);
	VEC_FREE(&t->number);
}

void icf_mark_pads(const struct icf_program *prog, struct icf_bits *pads)
{
	struct dwr_lsda lsda = { 0 };
	for (size_t f = 0; f < prog->cfi.fde.len; f++) {
		const struct dwr_fde *fde = &prog->cfi.fde.data[f];
		if (!fde->lsda)
			continue;
		struct elfrw_err *err =
			dwr_lsda_read(&lsda, prog->img, fde->lsda, fde->pc_begin, fde->pc_end);
		if (err) {
			elfrw_err_free(err);
			continue;
		}
		for (size_t s = 0; s < lsda.site.len; s++)
			icf_set_bit(pads, lsda.site.data[s].landing_pad);
	}
	dwr_lsda_deinit(&lsda);
}

/* Marks every place in code that something refers to. */
static void mark_named(const struct icf_program *prog, struct icf_bits *named)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (!icf_names_page(&ref[r]))
				icf_set_bit(named, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].kind == ICF_DATA_ADDRESS)
			icf_set_bit(named, prog->dataref.data[i].target);
	for (size_t i = 0; i < prog->sym.len; i++)
		icf_set_bit(named, prog->sym.data[i].value);
	for (size_t f = 0; f < prog->cfi.fde.len; f++)
		icf_set_bit(named, prog->cfi.fde.data[f].pc_begin);
	/* An LSDA that cannot be read refers to nothing: its landing pads then look like islands.
	 */
	icf_mark_pads(prog, named);
}

/* A unit that is not understood, without an FDE: no-ops and zeros behind it may not be padding, nor
 * may those before it, unless a symbol begins it. */
static struct elfrw_err *widen_gaps(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		const struct icf_exec *e = &prog->exec.data[u->sec];
		if (u->kind != ICF_UNIT_OPAQUE || u->n_fde)
			continue;
		if (!u->n_sym)
			u->start = i > e->unit ? u[-1].end : e->start;
		u->end = i + 1 < e->unit + e->n_units ? u[1].start : e->end;
	}
	return icf_index_units(prog);
}

struct elfrw_err *icf_judge_islands(struct icf_program *prog, const struct icf_islands *islands,
				    const struct icf_places *named)
{
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (prog->unit.data[i].flags & ICF_UNIT_BLIND)
			icf_make_opaque(&prog->unit.data[i]);
	bool any = false;
	for (size_t i = 0; i < islands->v.len && !any; i++)
		any = islands->v.data[i].refers;
	if (!any)
		return widen_gaps(prog);
	struct icf_bits bits;
	if (!icf_bits_init(&bits, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	mark_named(prog, &bits);
	for (size_t i = 0; i < named->v.len; i++)
		icf_set_bit(&bits, named->v.data[i]);
	for (size_t i = 0; i < islands->v.len; i++)
		if (islands->v.data[i].refers && !icf_bit(&bits, islands->v.data[i].va))
			icf_make_opaque(&prog->unit.data[islands->v.data[i].unit]);
	icf_bits_deinit(&bits);
	return widen_gaps(prog);
}
