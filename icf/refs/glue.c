/* glue.c: the last corrections to the list of units, then the link from every reference to its
 * unit.
 *
 * Units between which control falls through, or which a one-byte branch connects, move as one
 * block.  Padding that something refers to (for example the no-ops of -fpatchable-function-entry)
 * belongs to the unit behind it.  Opaque bytes stay where they are.  So does every unit that they
 * could reach (reach.c), and every unit that computes their addresses. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/program/end.h"
#include "icf/refs/ref.h"
#include "icf/infer/infer.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

/* Merges units A to B (A < B) and the padding between them, for every run of set bits in JOIN (bit
 * i: unit i with unit i + 1), and decodes the merged units again. */
static struct elfrw_err *merge(struct icf_program *prog, const uint8_t *join)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < prog->unit.len;) {
		struct icf_unit u = prog->unit.data[i];
		uint32_t k = i;
		while (k + 1 < prog->unit.len && join[k]) {
			const struct icf_unit *next = &prog->unit.data[++k];
			u.end = next->end;
			u.flags |= next->flags | ICF_UNIT_GLUED;
			u.read_align =
				next->read_align > u.read_align ? next->read_align : u.read_align;
			if (next->kind == ICF_UNIT_OPAQUE || u.kind == ICF_UNIT_OPAQUE) {
				u.reason = u.kind == ICF_UNIT_OPAQUE ? u.reason : next->reason;
				u.kind = ICF_UNIT_OPAQUE;
			} else {
				u.kind = ICF_UNIT_RIGID;
				u.reason = ICF_GLUED;
			}
		}
		prog->unit.data[n++] = u;
		i = k + 1;
	}
	prog->unit.len = n;
	ELFRW_TRY(icf_index_units(prog));
	ELFRW_TRY(icf_attach(prog));
	struct elfrw_err *err = NULL;
	struct icf_trace t = { 0 };
	for (uint32_t e = 0; e < prog->exec.len && !err; e++) {
		struct elfrw_relocs rel;
		err = elfrw_relocs_open(&rel, prog->img, prog->exec.data[e].shndx);
		uint32_t first = prog->exec.data[e].unit;
		for (uint32_t i = first; i < first + prog->exec.data[e].n_units && !err; i++)
			if (prog->unit.data[i].flags & ICF_UNIT_GLUED)
				err = icf_decode_unit(prog, i, prog->n_chunks - 1, &rel, &t);
		elfrw_relocs_close(&rel);
	}
	icf_trace_deinit(&t);
	return err;
}

static bool same_section(const struct icf_program *prog, uint32_t a, uint32_t b)
{
	return b < prog->unit.len && prog->unit.data[a].sec == prog->unit.data[b].sec;
}

/* Is there a no-op, a jump over no-ops (as assemblers fill long gaps) or the next unit behind U?
 * Control that runs into zeros or traps cannot continue, so the end of U is not reached. */
static bool runs_on(const struct icf_program *prog, const struct icf_unit *u)
{
	uint64_t gap = u[1].start - u->end;
	struct elfrw_insn in;
	if (gap == 0)
		return true;
	if (!prog->arch->decode(icf_unit_bytes(prog, u) + (u->end - u->start),
				prog->exec.data[u->sec].end - u->end, u->end, &in))
		return false;
	return in.kind == ELFRW_INSN_NOP ||
	       (in.kind == ELFRW_INSN_JMP && in.target > u->end && in.target <= u[1].start);
}

/* Has most code of PROG unwind tables?  Then what has none is somebody's assembler. */
static bool is_covered(const struct icf_program *prog)
{
	return prog->cfi.fde.len >= prog->unit.len / 2;
}

#define MAX_LOOK 4096 /* bytes of a callee; each call of it has it read again */

/* Does control come back from unit I?  It does not if it neither returns nor leaves by a jump. */
static bool may_return(const struct icf_program *prog, uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	struct elfrw_insn in;
	if (u->kind == ICF_UNIT_OPAQUE || size > MAX_LOOK)
		return true;
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		if (!icf_decode(prog, u, code + pos, size - pos, u->start + pos, &in) ||
		    in.kind == ELFRW_INSN_RET || in.kind == ELFRW_INSN_JMP_IND)
			return true;
		if ((in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC) &&
		    in.target - u->start >= size)
			return true;
	}
	return false;
}

/* Unit I ends in a call.  Does it go on behind that?  Compilers end a function so if the callee
 * does not return, and write unwind tables, which have no room for control that comes from another
 * function.  Assembler without them may run into what follows. */
static bool comes_back(const struct icf_program *prog, uint32_t i, bool covered)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *last = u->n_ref ? icf_unit_refs(prog, u) + u->n_ref - 1 : NULL;
	if (!(u->flags & ICF_UNIT_CALLS) || u->n_fde || prog->exec.data[u->sec].linkage)
		return false;
	uint64_t end = last ? u->start + last->off + 4 : 0; /* of the instruction */
	/* Compilers know of few pointers to functions that none of these returns. */
	if (!last || end > u->end || (end < u->end && !icf_is_padding(prog, end, u->end)))
		return true;
	uint32_t to = last->flags & ICF_REF_CALL ? icf_unit_at(prog, last->target) : ICF_NONE;
	if (to == ICF_NONE || prog->exec.data[prog->unit.data[to].sec].linkage)
		return covered;
	return may_return(prog, to);
}

/* By form: does a reference of this form join its unit and its target into one block? */
static void find_near_forms(const struct elfrw_arch *arch, bool near[ELFRW_FORMS_MAX])
{
	for (unsigned i = 0; i < arch->n_forms; i++)
		near[i] = elfrw_form_reach(&arch->form[i]) <= arch->near_reach;
}

static void pin(struct icf_program *prog, uint32_t i)
{
	if (i != ICF_NONE)
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
}

/* Finds units to be glued; *ANY: there were some. */
static struct elfrw_err *glue_once(struct icf_program *prog, bool *any)
{
	uint8_t *join = calloc(prog->unit.len + 1, 1);
	bool near[ELFRW_FORMS_MAX], covered = is_covered(prog);
	find_near_forms(prog->arch, near);
	if (!join)
		return &elfrw_err_nomem;
	*any = false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		bool falls = u->flags & ICF_UNIT_FALLS;
		if ((falls || comes_back(prog, i, covered)) && same_section(prog, i, i + 1) &&
		    runs_on(prog, u)) {
			/* What is not understood stays, and so does what it may run into. */
			if (!falls && u->kind == ICF_UNIT_OPAQUE)
				pin(prog, i + 1);
			else {
				join[i] = 1;
				*any = true;
			}
		}
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++) {
			if (!near[ref[r].form])
				continue;
			uint32_t t = icf_unit_at(prog, ref[r].target);
			if (t == ICF_NONE || t == i || icf_names_own_end(prog, i, &ref[r]))
				continue;
			for (uint32_t k = t < i ? t : i; k < (t < i ? i : t); k++)
				join[k] = 1;
			*any = true;
		}
	}
	struct elfrw_err *err = *any ? merge(prog, join) : NULL;
	free(join);
	return err;
}

/* Unit I has grown; ANY: and some unit before it.  The look-up knows the ends of units, so it stays
 * right for one that only begins earlier. */
static struct elfrw_err *attach_grown(struct icf_program *prog, uint32_t i, bool end, bool any)
{
	if (end || !any)
		ELFRW_TRY(icf_index_units(prog));
	if (!any)
		return icf_attach(prog);
	icf_attach_unit(prog, i);
	return NULL;
}

/* Something refers to padding at VA, which is in no unit: the unit behind it now begins there.
 * *ANY: that happened. */
static struct elfrw_err *extend(struct icf_program *prog, uint64_t va, bool *any)
{
	if (!icf_in_exec(prog, va))
		return NULL;
	uint32_t i =
		(uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].start <= va);
	uint32_t e = 0;
	while (va >= prog->exec.data[e].end)
		e++;
	bool last = i == prog->unit.len || prog->unit.data[i].start >= prog->exec.data[e].end;
	if (last) {
		/* No unit follows: the padding at the section's end joins the unit before it, which
		 * then keeps its place. */
		if (i == 0 || prog->unit.data[i - 1].start < prog->exec.data[e].start)
			return elfrw_error("address 0x%llx lies in a section without code",
					   (unsigned long long)va);
		i--;
		prog->unit.data[i].end = prog->exec.data[e].end;
	} else
		prog->unit.data[i].start = va;
	struct icf_unit *u = &prog->unit.data[i];
	u->flags |= ICF_UNIT_GLUED | ICF_UNIT_EXTENDED;
	if (u->kind != ICF_UNIT_OPAQUE) {
		u->kind = ICF_UNIT_RIGID;
		u->reason = ICF_GLUED;
	}
	ELFRW_TRY(attach_grown(prog, i, last, *any));
	*any = true;
	struct elfrw_relocs rel;
	ELFRW_TRY(elfrw_relocs_open(&rel, prog->img, prog->exec.data[e].shndx));
	struct icf_trace t = { 0 };
	unsigned falls = prog->unit.data[i].flags & ICF_UNIT_FALLS; /* see run_on() */
	struct elfrw_err *err = icf_decode_unit(prog, i, prog->n_chunks - 1, &rel, &t);
	prog->unit.data[i].flags |= falls;
	icf_trace_deinit(&t);
	elfrw_relocs_close(&rel);
	return err;
}

/* REF leads into no unit.  Compilers branch to the end of a function if they know that control
 * never gets there: the unit that ends there; or ICF_NONE. */
static uint32_t ends_at(const struct icf_program *prog, const struct icf_ref *ref)
{
	return ref->kind == ICF_REF_BRANCH ? icf_unit_ending(prog, ref->target) : ICF_NONE;
}

/* Something branches to the end of unit I.  Assembler may mean it, and run through no-ops into the
 * next unit; nothing tells its code from a compiler's. */
static void run_on(struct icf_program *prog, uint32_t i)
{
	if (same_section(prog, i, i + 1) && runs_on(prog, &prog->unit.data[i]))
		prog->unit.data[i].flags |= ICF_UNIT_FALLS;
}

static struct elfrw_err *extend_all(struct icf_program *prog)
{
	bool any = false;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++) {
			const struct icf_ref *ref = &icf_unit_refs(prog, &prog->unit.data[i])[r];
			if (icf_unit_at(prog, ref->target) != ICF_NONE)
				continue;
			uint32_t end = ends_at(prog, ref);
			if (end != ICF_NONE)
				run_on(prog, end);
			else if (!(ref->flags & ICF_REF_HALF) && !icf_names_own_end(prog, i, ref))
				ELFRW_TRY(extend(prog, ref->target, &any));
		}
	/* The meaning of a PC-relative field is known only after the tables are. */
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].kind != ICF_DATA_DISTANCE &&
		    icf_unit_at(prog, prog->dataref.data[i].target) == ICF_NONE)
			ELFRW_TRY(extend(prog, prog->dataref.data[i].target, &any));
	return NULL;
}

struct elfrw_err *icf_glue_units(struct icf_program *prog)
{
	for (;;) {
		bool any;
		ELFRW_TRY(glue_once(prog, &any));
		if (!any)
			break;
	}
	ELFRW_TRY(extend_all(prog));
	bool any;
	ELFRW_TRY(glue_once(prog, &any));
	return prog->inferred ? icf_check_entered(prog) : NULL;
}

struct job {
	struct icf_program *prog;
	uint32_t per;
};

/* The unit that REF of unit I leads to. */
static uint32_t target_of(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	if (ref->flags & ICF_REF_HALF)
		return ICF_NONE;
	if (icf_names_own_end(prog, i, ref))
		return i;
	uint32_t to = icf_unit_at(prog, ref->target);
	return to != ICF_NONE ? to : ends_at(prog, ref);
}

static struct elfrw_err *resolve_part(void *arg, size_t part)
{
	struct job *job = arg;
	struct icf_program *prog = job->prog;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per; i < end && i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		struct icf_ref *ref = prog->chunk[u->chunk].ref.data + u->ref;
		for (uint32_t r = 0; r < u->n_ref; r++)
			ref[r].unit = target_of(prog, i, &ref[r]);
	}
	return NULL;
}

struct elfrw_err *icf_resolve(struct icf_program *prog, unsigned threads)
{
	struct job job = { prog, 2048 };
	ELFRW_TRY(elfrw_parallel(threads, (prog->unit.len + job.per - 1) / job.per, resolve_part,
				 &job));
	for (size_t i = 0; i < prog->dataref.len; i++)
		prog->dataref.data[i].unit = icf_unit_at(prog, prog->dataref.data[i].target);
	ELFRW_TRY(icf_pin_reach(prog, threads));
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if ((ref[r].flags & ICF_REF_LEA) && ref[r].unit != ICF_NONE &&
			    prog->unit.data[ref[r].unit].kind == ICF_UNIT_OPAQUE)
				pin(prog, i);
	}
	prog->n_pinned = 0;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		/* What is not understood may run into the unit behind, which stays, too. */
		if (u->kind == ICF_UNIT_OPAQUE && same_section(prog, i, i + 1) && runs_on(prog, u))
			u->flags |= ICF_UNIT_PADDED;
		if (!(u->flags & ICF_UNIT_PINNED))
			continue;
		prog->n_pinned++;
		if (u->reason == ICF_OK)
			u->reason = ICF_NEAR_OPAQUE;
	}
	return NULL;
}
