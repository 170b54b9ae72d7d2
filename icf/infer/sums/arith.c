/* arith.c: addresses of functions that code computes with.
 *
 * An assembler resolves the difference of two functions of one object file itself, as a word or as
 * an operand, in any encoding: LEB128, one or three bytes, an array of functions of equal size.
 * Neither relocations nor the data show such a number.  But its user adds it to a function's
 * address.  So each such address that a unit computes is followed through registers, forwards and
 * along all direct branches.  If a number is added to it, or memory is read at a known distance
 * from it, the sum is a known place: both places stay.  If anything else is added, or a sum is used
 * for another one, the sum may be any place, also in a function's middle: nothing moves or folds.
 *
 * A register that holds the address on one path and something else on another is not counted: most
 * such paths do not exist (they go on behind a call that never returns).  The difference of the
 * address and something else is no address, unless that is a number.  Other operations (masks,
 * tags, complements, rotations) may be undone, so their results are followed, too; a sum with one
 * may be any place.  What goes through memory, into vector registers, into calls or to another unit
 * is not followed: compilers do not compute with addresses of functions.  The exception is a push
 * with a pop right behind it.  A place inside the own unit counts only if a number leads out of it,
 * to code or data, or is the displacement of an access there: compilers add distances to labels
 * (computed goto), and these move together.  A call of the next instruction, which pops its return
 * address or has it in a register, computes such a place, too.
 *
 * The same holds where a landing pad begins, and where another unit jumps to: the registers are
 * also those of a call site or of the other unit.  These places are collected if something seems to
 * be added.
 *
 * Cost: the units that name a function, or a place in themselves, are decoded, and each of their
 * instructions is visited at most twice for each register; then once more for each address, in
 * units that do add numbers. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"
#include "icf/infer/sums/state.h"
#include "icf/program/unit.h"
#include <stdlib.h>

void icf_flow_give_up(struct icf_flow *f, size_t k)
{
	if (f->loose)
		return;
	f->loose = "the code may add distances to the address of a function";
	f->loose_at = f->prog->unit.data[f->unit].start + f->t.insn.data[k].pos;
}

static bool is_source(const struct icf_flow *f, size_t at)
{
	size_t k = LOWER_BOUND(0, f->source.len, mid, f->source.data[mid] < at);
	return k < f->source.len && f->source.data[k] == at;
}

/* Does instruction AT compute a sum of which it is not known that it may be none with an address?
 */
static bool is_sum(const struct icf_flow *f, size_t at)
{
	for (size_t j = 0; j < f->sum.len; j++)
		if (f->sum.data[j].at == at && f->sum.data[j].sure)
			return true;
	for (size_t j = 0; j < f->of_all.len; j++)
		if (f->of_all.data[j] == at)
			return true;
	return false;
}

/* Does register R hold a number at instruction AT, on each path?  *N: the number, if it is always
 * the same one, else 0. */
static bool is_number(struct icf_flow *f, size_t at, unsigned r, int64_t *n)
{
	struct icf_defs d = icf_defs_reaching(f->prog, f->unit, &f->t, at, r, false);
	unsigned numbers = 0;
	for (unsigned k = 0; k < d.n; k++) {
		/* A jump to the sum leads to no label of the unit. */
		if (f->own && is_sum(f, d.def[k].at))
			continue;
		if (d.def[k].kind != ICF_DEF_NUMBER)
			return false;
		struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, d.def[k].at);
		if (e.op != ELFRW_OP_MOV || !(e.flags & ELFRW_EFFECT_IMM))
			return false;
		*n = numbers++ ? 0 : e.imm;
	}
	return numbers && !d.full;
}

/* Does register R hold an entry of a table at instruction AT, on each path? */
static bool is_entry(struct icf_flow *f, size_t at, unsigned r)
{
	struct icf_defs d = icf_defs_reaching(f->prog, f->unit, &f->t, at, r, false);
	for (unsigned k = 0; k < d.n; k++)
		if (d.def[k].kind != ICF_DEF_DIST)
			return false;
	return d.n && !d.full;
}

/* Does the register of S hold nothing but an address of a function, or a sum with it?  A search
 * that gives up shows nothing. */
static bool is_sure(struct icf_flow *f, const struct icf_sum *s)
{
	/* Each search begins by clearing a few bytes for each instruction. */
	uint32_t cost = (uint32_t)(f->t.insn.len / 64);
	if (f->t.budget <= cost)
		return false;
	f->t.budget -= cost;
	struct icf_defs d = icf_defs_reaching(f->prog, f->unit, &f->t, s->at, s->reg, false);
	for (unsigned k = 0; k < d.n; k++)
		if (!is_source(f, d.def[k].at) && !is_sum(f, d.def[k].at))
			return false;
	int64_t n;
	return d.n && !d.full &&
	       (!s->only || is_number(f, s->at, s->other, &n) ||
		(s->whole && is_entry(f, s->at, s->other)));
}

/* S adds what a register holds.  Is that a number? */
static void resolve(struct icf_flow *f, struct icf_sum *s)
{
	int64_t n = 0;
	if (!s->sure || s->known || !s->whole || s->other == ELFRW_REG_NONE ||
	    !is_number(f, s->at, s->other, &n) || n == 0)
		return;
	uint64_t add = (uint64_t)n << s->shift;
	s->number = (int64_t)((uint64_t)s->number + (s->minus ? 0 - add : add));
	s->known = true;
	s->quiet = false;
}

/* Leaves of all sums those that are sure; one may depend on others.  Most units have none. */
static struct elfrw_err *judge(struct icf_flow *f)
{
	if (f->sum.len && !f->edges)
		ELFRW_TRY(icf_trace_edges(f->prog, f->unit, &f->t));
	f->edges |= f->sum.len > 0;
	for (bool again = true; again;) {
		again = false;
		for (size_t j = 0; j < f->sum.len; j++)
			if (f->sum.data[j].sure && !is_sure(f, &f->sum.data[j])) {
				f->sum.data[j].sure = false;
				again = true;
			}
	}
	for (size_t j = 0; j < f->sum.len; j++)
		resolve(f, &f->sum.data[j]);
	return NULL;
}

/* S adds a number to the address FROM: what both name stays. */
static void pin(struct icf_flow *f, uint64_t from, const struct icf_sum *s)
{
	struct icf_program *prog = f->prog;
	uint64_t to = from + (uint64_t)s->number;
	uint32_t a = icf_unit_at(prog, from),
		 b = icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
	if (a == ICF_NONE || (b == ICF_NONE && !f->own))
		icf_flow_give_up(f, s->at);
	else if (b == ICF_NONE && elfrw_image_section_at(prog->img, to))
		icf_pin_unit(prog, a);
	if (a == b || b == ICF_NONE)
		return;
	icf_pin_unit(prog, a);
	icf_pin_unit(prog, b);
}

/* Follows all sources at once; where that shows numbers, each one. */
static struct elfrw_err *follow_sources(struct icf_flow *f, const uint64_t *from)
{
	bool numbers = false;
	f->of_all.len = 0;
	if (!f->source.len)
		return NULL;
	ELFRW_TRY(icf_flow_run(f, f->source.data, f->source.len));
	ELFRW_TRY(judge(f));
	for (size_t k = 0; k < f->sum.len && !f->loose; k++) {
		struct icf_sum *s = &f->sum.data[k];
		if ((f->own && !s->known) || !s->sure || s->quiet)
			continue;
		if (s->known)
			numbers = true;
		else
			icf_flow_give_up(f, s->at);
	}
	if (numbers && f->source.len > ICF_MAX_SOURCES && !f->own)
		icf_flow_give_up(f, f->source.data[0]);
	if (!numbers || f->source.len > ICF_MAX_SOURCES)
		return NULL;
	/* A jump to one sum may lead to where another is computed. */
	for (size_t k = 0; k < f->sum.len; k++) {
		uint32_t *slot = f->sum.data[k].sure ? VEC_PUSH(&f->of_all) : NULL;
		if (slot)
			*slot = f->sum.data[k].at;
		else if (f->sum.data[k].sure)
			return &elfrw_err_nomem;
	}
	for (size_t k = 0; k < f->source.len; k++) {
		ELFRW_TRY(icf_flow_run(f, f->source.data + k, 1));
		ELFRW_TRY(judge(f));
		for (size_t j = 0; j < f->sum.len && !f->loose; j++)
			if (f->sum.data[j].known && f->sum.data[j].sure)
				pin(f, from[k], &f->sum.data[j]);
	}
	return NULL;
}

/* Code that is not understood stays, so sums with places in it stay right.  But they may lead to a
 * function that seems to be unused. */
static struct elfrw_err *follow_dark(struct icf_flow *f)
{
	uint64_t from[ICF_MAX_SOURCES];
	f->of_all.len = 0;
	ELFRW_TRY(icf_flow_sources(f, from));
	if (!f->source.len)
		return NULL;
	ELFRW_TRY(icf_flow_run(f, f->source.data, f->source.len));
	ELFRW_TRY(judge(f));
	for (size_t k = 0; k < f->sum.len; k++)
		if (f->sum.data[k].sure && !f->sum.data[k].known && !f->sum.data[k].quiet)
			icf_set_unit_flag(f->prog, f->unit, ICF_UNIT_RELATIVE);
	return NULL;
}

static struct elfrw_err *examine(struct icf_flow *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	uint64_t from[ICF_MAX_SOURCES];
	bool any = false, dark = false, clean, own = u->flags & ICF_UNIT_DATA_READ;
	for (uint32_t r = 0; r < u->n_ref && !(any && own && dark); r++) {
		any = any || icf_flow_names_function(f->prog, i, &ref[r]);
		own = own || icf_flow_names_itself(u, &ref[r]);
		dark = dark || icf_flow_names_dark(f->prog, i, &ref[r]);
	}
	if (!any && !own && !dark)
		return NULL;
	f->unit = i;
	f->own = f->dark = false;
	ELFRW_TRY(icf_trace_unit(f->prog, i, &f->t, &clean));
	f->edges = false;
	if (any) {
		ELFRW_TRY(icf_flow_sources(f, from));
		ELFRW_TRY(follow_sources(f, from));
	}
	f->dark = true;
	if (dark)
		ELFRW_TRY(follow_dark(f));
	f->own = true;
	ELFRW_TRY(icf_flow_labels(f, from));
	return follow_sources(f, from);
}

struct job {
	struct icf_program *prog;
	const struct icf_bits *entries;
	uint32_t per; /* units of a part */
	struct found {
		const char *loose;
		uint64_t at;
	} * part;
};

static struct elfrw_err *look_at(void *arg, size_t part)
{
	struct job *job = arg;
	struct icf_program *prog = job->prog;
	struct icf_flow f = { .prog = prog, .entries = job->entries };
	struct elfrw_err *err = NULL;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per;
	     i < end && i < prog->unit.len && !err && !f.loose; i++)
		if (!icf_is_dark(&prog->unit.data[i]) &&
		    !prog->exec.data[prog->unit.data[i].sec].linkage)
			err = examine(&f, i);
	job->part[part] = (struct found){ f.loose, f.loose_at };
	VEC_FREE(&f.source);
	VEC_FREE(&f.of_all);
	VEC_FREE(&f.sum);
	icf_trace_deinit(&f.t);
	return err;
}

static const struct found *first_loose(const struct job *job, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (job->part[i].loose)
			return &job->part[i];
	return NULL;
}

/* Marks where control comes from other units, or from a call site. */
static bool mark_entries(const struct icf_program *prog, struct icf_bits *ret)
{
	if (!icf_bits_init(ret, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return false;
	icf_mark_pads(prog, ret);
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].kind == ICF_REF_BRANCH &&
			    ref[r].target - u->start >= u->end - u->start)
				icf_set_bit(ret, ref[r].target);
	}
	return true;
}

struct elfrw_err *icf_infer_arithmetic(struct icf_program *prog, unsigned threads)
{
	struct job job = { .prog = prog, .per = 512 };
	struct icf_bits entries = { 0 };
	size_t n = (prog->unit.len + job.per - 1) / job.per;
	job.part = calloc(n + 1, sizeof *job.part);
	if (!job.part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = elfrw_parallel(threads, n, look_at, &job);
	if (!err && first_loose(&job, n)) {
		job.entries = &entries;
		err = mark_entries(prog, &entries) ? elfrw_parallel(threads, n, look_at, &job)
						   : &elfrw_err_nomem;
	}
	const struct found *found = err ? NULL : first_loose(&job, n);
	if (found) {
		icf_infer_loose(prog, found->at, found->loose);
		/* Such a sum may lead into any function's middle, and tell copies apart. */
		for (uint32_t i = 0; i < prog->unit.len; i++)
			icf_pin_unit(prog, i);
	}
	icf_bits_deinit(&entries);
	free(job.part);
	return err;
}
