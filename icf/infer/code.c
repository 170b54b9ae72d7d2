/* code.c: are all bytes of a unit code?
 *
 * Without relocations only the bytes tell.  Every instruction must be reached: from the one before,
 * by a branch, or (after a jump or a return) because something refers to it: a jump table, a
 * landing pad, an address in code or data, a symbol, an FDE.  Bytes that nothing refers to may be
 * data between functions' code; the unit is then not understood.  Cost: one more pass over the
 * code, in the same chunks as the first. */
#include "dwarf/lsda.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define MAX_BUDGET 50000000

static bool set_bits(uint8_t *bits, uint64_t i)
{
	bits[i >> 3] |= (uint8_t)(1u << (i & 7));
	return true;
}

struct elfrw_err *icf_trace_unit(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				 bool *clean)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, avail = prog->exec.data[u->sec].end - u->start;
	size_t bytes = size / 8 + 1;
	t->insn.len = 0;
	t->inner = false;
	*clean = true;
	if (!VEC_RESERVE(&t->start, bytes) || !VEC_RESERVE(&t->target, bytes) ||
	    !VEC_RESERVE(&t->insn, size / 3 + 16))
		return &elfrw_err_nomem;
	memset(t->start.data, 0, bytes);
	memset(t->target.data, 0, bytes);
	for (uint64_t pos = 0; pos < size;) {
		if (t->insn.len == t->insn.cap && !VEC_RESERVE(&t->insn, t->insn.cap + 1))
			return &elfrw_err_nomem;
		struct icf_insn_at *a = &t->insn.data[t->insn.len];
		if (!prog->arch->decode(code + pos, avail - pos, u->start + pos, &a->in) ||
		    a->in.len > size - pos) {
			*clean = false;
			return NULL;
		}
		t->insn.len++;
		a->pos = (uint32_t)pos;
		set_bits(t->start.data, pos);
		if (a->in.pcrel_size && a->in.target - u->start < size &&
		    !icf_is_half(prog->arch, &a->in)) {
			set_bits(t->target.data, a->in.target - u->start);
			t->inner |= a->in.kind != ELFRW_INSN_CALL && a->in.kind != ELFRW_INSN_JMP &&
				    a->in.kind != ELFRW_INSN_JCC;
		}
		pos += a->in.len;
	}
	for (size_t b = 0; b < bytes && *clean; b++)
		*clean = (t->target.data[b] & ~t->start.data[b]) == 0;
	return NULL;
}

#define DIGIT 11 /* bits */
#define FEW   48 /* edges that are sorted without counting */

/* Puts the edges, which are in the order of `from`, into that of `to`, and of `from` among equals.
 * Counts digits, since large functions have thousands.  false: out of memory. */
static bool sort_edges(struct icf_trace *t, uint64_t size)
{
	const uint32_t mask = (1u << DIGIT) - 1;
	size_t n = t->edge.len;
	if (!VEC_RESERVE(&t->sorted, n))
		return false;
	for (unsigned shift = 0; shift < 32 && size >> shift; shift += DIGIT) {
		uint32_t at[1 << DIGIT] = { 0 };
		for (size_t i = 0; i < n; i++)
			at[t->edge.data[i].to >> shift & mask]++;
		for (uint32_t d = 0, sum = 0; d <= mask; d++) {
			uint32_t here = at[d];
			at[d] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			t->sorted.data[at[t->edge.data[i].to >> shift & mask]++] = t->edge.data[i];
		memcpy(t->edge.data, t->sorted.data, n * sizeof *t->edge.data);
	}
	return true;
}

/* The same for a few. */
static void insert_edges(struct icf_trace *t)
{
	struct icf_edge *e = t->edge.data;
	for (size_t i = 1; i < t->edge.len; i++) {
		struct icf_edge one = e[i];
		size_t k = i;
		for (; k > 0 && e[k - 1].to > one.to; k--)
			e[k] = e[k - 1];
		e[k] = one;
	}
}

static int edge_order(const void *a, const void *b)
{
	const struct icf_edge *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
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
	if (t->edge.len <= FEW)
		insert_edges(t);
	else if (!sort_edges(t, u->end - u->start))
		return &elfrw_err_nomem;
	return VEC_APPEND(&t->open.v, t->jump.v.data, t->jump.v.len) ? NULL : &elfrw_err_nomem;
}

void icf_trace_sort_cases(struct icf_trace *t)
{
	size_t n = 0;
	if (t->cases.len)
		qsort(t->cases.data, t->cases.len, sizeof *t->cases.data, edge_order);
	for (size_t i = 0; i < t->cases.len; i++)
		if (n == 0 || edge_order(&t->cases.data[n - 1], &t->cases.data[i]) != 0)
			t->cases.data[n++] = t->cases.data[i];
	t->cases.len = n;
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
	if (t->pads.len)
		qsort(t->pads.data, t->pads.len, sizeof *t->pads.data, edge_order);
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
}

static bool stops(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_RET ||
	       in->kind == ELFRW_INSN_JMP_IND || in->kind == ELFRW_INSN_TRAP;
}

/* Are the bytes from instruction K on certainly code?  They are if all their calls lead to entries,
 * and there are at least two: data looks like that once in 10^10 times.  Compilers leave such code
 * behind an instruction that, unknown to them, never returns. */
static bool calls_entries(const struct icf_program *prog, const struct icf_unit *u,
			  const struct icf_trace *t, size_t k)
{
	unsigned calls = 0;
	for (size_t n = k; n < t->insn.len; n++) {
		const struct elfrw_insn *in = &t->insn.data[n].in;
		if (n > k && icf_trace_bit(t->target.data, t->insn.data[n].pos))
			break;
		bool inside = in->pcrel_size && in->target - u->start < u->end - u->start;
		if (in->pcrel_size && !inside && in->kind != ELFRW_INSN_CALL &&
		    in->kind != ELFRW_INSN_JMP && in->kind != ELFRW_INSN_JCC) {
			if (!(in->flags & ELFRW_INSN_LEA) || icf_in_exec(prog, in->target) ||
			    !elfrw_image_section_at(prog->img, in->target))
				return false;
		} else if (in->pcrel_size && !inside) {
			uint32_t to = icf_in_exec(prog, in->target) ? icf_unit_at(prog, in->target)
								    : ICF_NONE;
			bool plt = to != ICF_NONE &&
				   prog->exec.data[prog->unit.data[to].sec].linkage &&
				   in->target % 16 == 0;
			if (in->kind != ELFRW_INSN_CALL || to == ICF_NONE ||
			    (!plt && prog->unit.data[to].start != in->target))
				return false;
			calls++;
		}
		if (stops(in))
			break;
	}
	return calls >= 2;
}

/* The last answer of refers(), and why; it holds for all instructions up to that place. */
struct refers {
	size_t end; /* the label, or the instruction that refers */
	bool answer;
};

/* Does the code from instruction K to the next label refer to anything outside of the unit?  If
 * not, it stays correct wherever the unit goes, whether it is unreachable code or data. */
static bool refers(const struct icf_program *prog, const struct icf_unit *u,
		   const struct icf_trace *t, size_t k, struct refers *last)
{
	if (calls_entries(prog, u, t, k))
		return false;
	if (k < last->end || (k == last->end && last->answer))
		return last->answer;
	*last = (struct refers){ t->insn.len, false };
	for (size_t n = k; n < t->insn.len; n++) {
		const struct elfrw_insn *in = &t->insn.data[n].in;
		last->end = n;
		if (n > k && icf_trace_bit(t->target.data, t->insn.data[n].pos))
			return false;
		last->answer = true;
		if (in->pcrel_size && in->target - u->start >= u->end - u->start)
			return true;
		/* A distance to a function, if it is data. */
		const uint8_t *p = icf_unit_bytes(prog, u);
		for (uint64_t at = t->insn.data[n].pos;
		     at < t->insn.data[n].pos + in->len && at + 4 <= u->end - u->start; at++) {
			uint64_t to =
				u->start + at + (uint64_t)(int64_t)(int32_t)elfrw_get32(p + at);
			uint32_t other = (u->start + at) % 4 == 0 && icf_in_exec(prog, to)
						 ? icf_unit_at(prog, to)
						 : ICF_NONE;
			if (other != ICF_NONE && prog->unit.data[other].start == to)
				return true;
		}
		last->answer = false;
	}
	last->end = t->insn.len;
	return false;
}

/* Finds the places of unit I that control does not fall into and that no instruction of the unit
 * refers to. */
static struct elfrw_err *find_islands(const struct icf_program *prog, uint32_t i,
				      const struct icf_trace *t, struct icf_islands *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	struct refers last = { 0 };
	bool dead = false;
	for (size_t k = 0; k < t->insn.len; k++) {
		const struct icf_insn_at *a = &t->insn.data[k];
		if (dead && icf_trace_bit(t->target.data, a->pos))
			dead = false;
		if (dead && a->in.kind != ELFRW_INSN_NOP && a->in.kind != ELFRW_INSN_TRAP) {
			struct icf_island *is = VEC_PUSH(&ret->v);
			if (!is)
				return &elfrw_err_nomem;
			*is = (struct icf_island){ u->start + a->pos, i,
						   refers(prog, u, t, k, &last) };
			dead = false;
		}
		if (stops(&a->in))
			dead = true;
	}
	return NULL;
}

/* Is there an instruction POS bytes from the unit's start that control does not fall into? */
static bool begins_behind_stop(const struct icf_trace *t, uint64_t pos)
{
	size_t n = LOWER_BOUND(0, t->insn.len, mid, t->insn.data[mid].pos < pos);
	return n && n < t->insn.len && t->insn.data[n].pos == pos && stops(&t->insn.data[n - 1].in);
}

/* Does unit I read its own bytes, or take the address of a place in it that nothing jumps to and
 * nothing falls into? */
static bool holds_data(const struct icf_program *prog, uint32_t i, const struct icf_trace *t)
{
	const struct icf_unit *u = &prog->unit.data[i];
	bool jumps = false;
	if (!t->inner && !prog->arch->low_form)
		return false;
	for (size_t k = 0; k < t->insn.len; k++)
		jumps |= t->insn.data[k].in.kind == ELFRW_INSN_JMP_IND;
	for (size_t k = 0; k < t->insn.len; k++) {
		uint64_t to;
		bool computes;
		if (!icf_names_place(prog, i, t, k, &to, &computes) ||
		    to - u->start >= u->end - u->start)
			continue;
		if (!computes)
			return true;
		/* A label whose address is taken, unless jumps could use it. */
		if (to == u->start || jumps)
			continue;
		if (begins_behind_stop(t, to - u->start))
			return true;
	}
	return false;
}

/* The bounds of unit I are known.  Does it read its own bytes, or compute the address of a table of
 * distances in it that control does not fall into?  Then not all of it is code, and bytes that look
 * like a branch to the outside may be data. */
static bool reads_itself(const struct icf_program *prog, uint32_t i, const struct icf_trace *t)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *p = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	for (size_t k = 0; k < t->insn.len; k++) {
		const struct elfrw_insn *in = &t->insn.data[k].in;
		uint64_t pos = in->target - u->start;
		bool branch = in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
			      in->kind == ELFRW_INSN_JCC;
		if (branch || !in->pcrel_size || pos >= size || in->kind == ELFRW_INSN_NOP)
			continue;
		if (!(in->flags & ELFRW_INSN_LEA))
			return true;
		uint64_t to = size - pos >= 4
				      ? pos + (uint64_t)(int64_t)(int32_t)elfrw_get32(p + pos)
				      : size;
		if (to >= size || !pos)
			continue;
		if (begins_behind_stop(t, pos))
			return true;
	}
	return false;
}

/* Copies the unit's bits; its first and last byte may hold another unit's, which another thread
 * sets. */
static void mark_insns(const struct icf_unit *u, const struct icf_trace *t, struct icf_bits *insn)
{
	uint64_t off = u->start - insn->lo, size = u->end - u->start;
	unsigned shift = off & 7;
	uint8_t *to = insn->bits + (off >> 3);
	uint64_t last = ((off & 7) + size + 7) / 8 - 1;
	unsigned before = 0;
	for (uint64_t b = 0; b <= last; b++) {
		unsigned now = b < (size + 7) / 8 ? t->start.data[b] : 0;
		uint8_t bits = (uint8_t)((now << 8 | before) << shift >> 8);
		before = now;
		if (b == 0 || b == last)
			__atomic_fetch_or(&to[b], bits, __ATOMIC_RELAXED);
		else
			to[b] = bits;
	}
}

/* The large code model names a function by its distance from the global offset table, an operand of
 * 8 bytes that nothing rewrites: the function stays. */
static void pin_far(struct icf_program *prog, const struct elfrw_insn *in, const uint8_t *code)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; in->imm_size == 8 && i < img->n_sections; i++) {
		uint64_t to = img->section[i].hdr.sh_addr + elfrw_get_le(code + in->imm_off, 8);
		if (strncmp(img->section[i].name, ".got", 4) == 0 && icf_in_exec(prog, to))
			icf_pin_unit(prog, icf_unit_at(prog, to));
	}
}

struct job {
	struct icf_program *prog;
	uint32_t per;
	struct icf_islands *part;
	struct icf_bits *insn;
};

static struct elfrw_err *look_at(void *arg, size_t part)
{
	struct job *job = arg;
	struct icf_program *prog = job->prog;
	struct icf_trace t = { 0 };
	struct elfrw_err *err = NULL;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per; i < end && i < prog->unit.len && !err; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		bool clean;
		/* Symbols and FDEs delimit the unit, and relocations mark its references, but data
		 * may lie in between. */
		bool known = !prog->inferred && (u->n_sym || u->n_fde);
		if (u->kind == ICF_UNIT_OPAQUE || (u->flags & ICF_UNIT_BLIND) ||
		    prog->exec.data[u->sec].linkage || (known && !(u->flags & ICF_UNIT_DATA_READ)))
			continue;
		err = icf_trace_unit(prog, i, &t, &clean);
		if (known) {
			if (!err && reads_itself(prog, i, &t))
				icf_make_opaque(u);
			continue;
		}
		if (!err && !clean)
			icf_make_opaque(u);
		else if (!err) {
			if (job->insn)
				mark_insns(u, &t, job->insn);
			err = find_islands(prog, i, &t, &job->part[part]);
		}
		if (!err && clean && holds_data(prog, i, &t))
			icf_make_opaque(u);
		for (size_t k = 0; k < t.insn.len && !err; k++) {
			const struct elfrw_insn *in = &t.insn.data[k].in;
			if (in->kind == ELFRW_INSN_JMP_IND)
				icf_set_unit_flag(prog, i, ICF_UNIT_JUMPS);
			else if (in->kind == ELFRW_INSN_CALL_IND && clean &&
				 icf_call_adds(prog, i, &t, k))
				icf_set_unit_flag(prog, i, ICF_UNIT_RELATIVE);
			else if (prog->img->pic && clean && in->imm_size == 8)
				pin_far(prog, in, icf_unit_bytes(prog, u) + t.insn.data[k].pos);
		}
	}
	icf_trace_deinit(&t);
	return err;
}

struct elfrw_err *icf_find_islands(struct icf_program *prog, unsigned threads,
				   struct icf_islands *ret, struct icf_bits *insn)
{
	struct job job = { .prog = prog, .per = 512, .insn = insn };
	size_t n = (prog->unit.len + job.per - 1) / job.per;
	ELFRW_TRY(icf_find_blind(prog));
	job.part = calloc(n + 1, sizeof *job.part);
	if (!job.part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = elfrw_parallel(threads, n, look_at, &job);
	size_t total = 0;
	for (size_t i = 0; i < n; i++)
		total += job.part[i].v.len;
	if (!err && total && !VEC_RESERVE(&ret->v, total))
		err = &elfrw_err_nomem;
	for (size_t i = 0; i < n; i++) {
		if (!err && job.part[i].v.len)
			memcpy(ret->v.data + ret->v.len, job.part[i].v.data,
			       job.part[i].v.len * sizeof *ret->v.data);
		ret->v.len += err ? 0 : job.part[i].v.len;
		VEC_FREE(&job.part[i].v);
	}
	free(job.part);
	/* References of units that are now not understood do not count. */
	return err ? err : icf_find_blind(prog);
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
