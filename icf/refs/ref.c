/* ref.c: the references in code.
 *
 * The decoded instruction counts: after a linker's relaxations the kept relocations have stale
 * types and places.  Decoding finds every PC-relative field.  A relocation is needed only to tell
 * that an immediate or an absolute displacement is an address.  There is one pass over all code, in
 * chunks of units that threads take in turn. */
#include "elfrw/base/parallel.h"
#include "icf/infer/infer.h"
#include "icf/refs/pair.h"
#include "icf/refs/pool.h"
#include "icf/refs/ref.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256 * 1024)
#define REF_BYTES   16 /* of code, that have about one reference */

static bool is_branch(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
	       in->kind == ELFRW_INSN_JCC;
}

void icf_make_opaque(struct icf_unit *u)
{
	u->kind = ICF_UNIT_OPAQUE;
	u->reason = ICF_NOT_UNDERSTOOD;
	u->flags &= ~(uint32_t)ICF_UNIT_POOL;
	u->n_ref = 0;
}

/* Input and output of decoding unit U of chunk C. */
struct decoding {
	struct icf_program *prog;
	struct icf_unit *u;
	struct icf_chunk *c;
	const struct elfrw_relocs *rel;
	size_t r, r_end;     /* the relocations that are left */
	bool halves;         /* some of the references are high halves */
	bool jumps;          /* it jumps indirectly */
	bool label;          /* it computes the address of a place in it */
	struct icf_trace *t; /* gets the instructions; NULL: nobody needs them */
};

static struct elfrw_err *push_ref(struct decoding *d, const struct icf_ref *ref)
{
	struct icf_ref *slot = VEC_PUSH(&d->c->ref);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = *ref;
	return NULL;
}

/* Is IN, POS bytes from the unit's start, what a linker made of two instructions, the other one
 * being a no-op now? */
static bool is_relaxed(const struct decoding *d, const struct elfrw_insn *in, uint64_t pos)
{
	const struct elfrw_arch *arch = d->prog->arch;
	uint8_t code[8];
	if (!arch->expand || !(in->flags & ELFRW_INSN_LEA) || pos < arch->fill_size ||
	    !icf_was_halves(d->prog, d->u->sec, d->rel, d->u->start + pos))
		return false;
	memcpy(code, icf_unit_bytes(d->prog, d->u) + pos - arch->fill_size, sizeof code);
	return arch->expand(code, d->u->start + pos - arch->fill_size, in->target);
}

/* Does IN load a literal of its own unit? */
static bool reads_literal(const struct decoding *d, const struct elfrw_insn *in)
{
	return (d->u->flags & ICF_UNIT_POOL) && in->pcrel_size && !is_branch(in) &&
	       in->target - d->u->start < d->u->end - d->u->start &&
	       icf_data_end(d->prog, in->target) != in->target;
}

/* Adds the addresses among the literals in S, which stands for LEN bytes of them. */
static struct elfrw_err *add_literals(struct decoding *d, uint64_t va, unsigned len)
{
	const struct elfrw_arch *arch = d->prog->arch;
	for (; d->r < d->r_end && d->rel->rela[d->r].r_offset < va + len; d->r++) {
		const Elf64_Rela *r = &d->rel->rela[d->r];
		unsigned size = arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)).size;
		uint64_t off = r->r_offset - d->u->start;
		uint8_t form = arch->address_form(size, false);
		if (!form)
			continue;
		struct icf_ref ref = {
			.target = elfrw_get_le(icf_unit_bytes(d->prog, d->u) + off, size),
			.off = (uint32_t)off,
			.unit = ICF_NONE,
			.table = ICF_NONE,
			.form = form,
			.kind = ICF_REF_ABS,
			.flags = ICF_REF_LEA,
		};
		ELFRW_TRY(push_ref(d, &ref));
	}
	return NULL;
}

/* Adds the PC-relative field of IN, POS bytes from the unit's start. */
static struct elfrw_err *add_pcrel(struct decoding *d, const struct elfrw_insn *in, uint64_t pos)
{
	struct icf_unit *u = d->u;
	const struct elfrw_arch *arch = d->prog->arch;
	bool branch = is_branch(in), inside = in->target - u->start < u->end - u->start;
	bool half = icf_is_half(arch, in);
	/* A call of the next instruction finds out where it is. */
	bool here = in->kind == ELFRW_INSN_CALL && in->target == u->start + pos + in->len;
	if (inside && (here || !branch) && !half && !reads_literal(d, in))
		u->flags |= ICF_UNIT_DATA_READ;
	d->label |= inside && !half && (in->flags & ELFRW_INSN_LEA) && in->target != u->start &&
		    icf_data_end(d->prog, in->target) == in->target;
	if (inside && !half && (branch || in->target != u->start))
		return NULL;
	d->halves |= half;
	struct icf_ref ref = {
		.target = in->target,
		.off = (uint32_t)pos + in->pcrel_off,
		.unit = ICF_NONE,
		.table = ICF_NONE,
		.form = arch->pcrel_form(in),
		.origin = arch->from_end ? (uint8_t)(in->len - in->pcrel_off) : 0,
		.kind = branch ? ICF_REF_BRANCH : ICF_REF_PCREL,
		.flags = (in->kind == ELFRW_INSN_CALL ? ICF_REF_CALL : 0) |
			 ((in->flags & ELFRW_INSN_LEA) ? ICF_REF_LEA : 0),
	};
	if (!half && is_relaxed(d, in, pos))
		ref.flags |= ICF_REF_RELAXED;
	return push_ref(d, &ref);
}

/* Lies VA between the image's first and last address? */
static bool in_image(const struct elfrw_image *img, uint64_t va)
{
	uint64_t lo, hi;
	elfrw_image_span(img, &lo, &hi);
	return va >= lo && va < hi;
}

/* Traps and no-ops do not touch their operand.  Without a relocation, a PC-relative field or a
 * displacement that fills no gap is a number that somebody looks for there: the kernel wants a
 * signature in front of the place where it aborts a restartable sequence (rseq), and programs hide
 * it in ud1 or nop.  It must stay.  Sanitizers' traps hold small numbers, which take one byte and
 * belong to the trap itself.  If a PC-relative field could be a distance in the image as well,
 * *ODD: nobody knows which. */
static bool holds_number(const struct decoding *d, const struct elfrw_insn *in, const uint8_t *code,
			 uint64_t va, bool *odd)
{
	if (in->kind == ELFRW_INSN_NOP    ? elfrw_is_fill_nop(in, code)
	    : in->kind == ELFRW_INSN_TRAP ? !in->pcrel_size && in->disp_size <= 1
					  : true)
		return false;
	unsigned off = in->pcrel_size ? in->pcrel_off : in->disp_off;
	if (d->r < d->r_end && d->rel->rela[d->r].r_offset == va + off)
		return false;
	if (!in->pcrel_size)
		return true;
	*odd = in_image(d->prog->img, in->target) &&
	       in->target - d->u->start >= d->u->end - d->u->start;
	return true;
}

/* Adds the relocations in instruction S.  *ODD: one stands where it explains nothing. */
static struct elfrw_err *add_relocated(struct decoding *d, const struct icf_insn_site *s, bool *odd)
{
	for (; d->r < d->r_end && d->rel->rela[d->r].r_offset < s->va + s->in->len; d->r++) {
		struct icf_ref ref;
		struct icf_astray astray;
		enum icf_reloc_verdict verdict;
		ELFRW_TRY(icf_judge_reloc(s, &d->rel->rela[d->r], &verdict, &ref, &astray));
		if (astray.place) {
			struct icf_astray *slot = VEC_PUSH(&d->c->astray);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = astray;
		}
		*odd = verdict >= ICF_RELOC_ODD;
		if (*odd)
			return NULL;
		if (verdict == ICF_RELOC_ADDRESS || verdict == ICF_RELOC_LOW) {
			ref.off = (uint32_t)(d->rel->rela[d->r].r_offset - d->u->start);
			ELFRW_TRY(push_ref(d, &ref));
		}
	}
	return NULL;
}

/* Does IN load bytes of its own unit, although mapping symbols tell where data is?  (Units with
 * data are not decoded.)  Then a mapping symbol is wrong or missing, and what looks like an
 * instruction may be data. */
static bool reads_itself(const struct decoding *d, const struct elfrw_insn *in)
{
	return d->prog->mapped && in->pcrel_size && !is_branch(in) &&
	       !(in->flags & ELFRW_INSN_LEA) && !icf_is_half(d->prog->arch, in) &&
	       in->target - d->u->start < d->u->end - d->u->start && !reads_literal(d, in);
}

/* Decodes all instructions of the unit.  *LAST: the kind of the last one except no-ops.  *ODD: they
 * are not understood. */
static struct elfrw_err *decode_all(struct decoding *d, uint8_t *last, bool *odd)
{
	struct icf_unit *u = d->u;
	const uint8_t *code = icf_unit_bytes(d->prog, u);
	uint64_t size = u->end - u->start;
	/* The decoder is fastest if it may read beyond an instruction, so it gets the whole
	 * section. */
	uint64_t avail = d->prog->exec.data[u->sec].end - u->start;
	const struct elfrw_arch *arch = d->prog->arch;
	struct icf_trace *t = d->t;
	bool pool = u->flags & ICF_UNIT_POOL;
	struct elfrw_insn one, *in = &one;
	if (t && !icf_trace_begin(t, size))
		return &elfrw_err_nomem;
	*last = ELFRW_INSN_NOP;
	/* The length is needed at once, to find the next instruction. */
	for (uint64_t pos = 0, len; pos < size; pos += len) {
		uint64_t va = u->start + pos;
		if (t && !(in = icf_trace_slot(t)))
			return &elfrw_err_nomem;
		len = pool ? icf_decode(d->prog, u, code + pos, avail - pos, va, in)
			   : arch->decode(code + pos, avail - pos, va, in);
		*odd = !len || len > size - pos || (in->flags & ELFRW_INSN_LONG_CALL);
		if (*odd)
			return NULL;
		if (t)
			icf_trace_add(arch, u, t, pos);
		/* Most instructions: nothing below concerns them. */
		if (in->kind == ELFRW_INSN_OTHER && !in->pcrel_size && pos && !pool &&
		    d->r == d->r_end) {
			*last = ELFRW_INSN_OTHER;
			continue;
		}
		d->jumps |= in->kind == ELFRW_INSN_JMP_IND;
		if (pos == 0 && (in->flags & ELFRW_INSN_ENDBR))
			u->flags |= ICF_UNIT_ENDBR;
		bool number = holds_number(d, in, code + pos, va, odd);
		if (*odd)
			return NULL;
		*odd = reads_itself(d, in);
		if (*odd)
			return NULL;
		if (in->pcrel_size && !number)
			ELFRW_TRY(add_pcrel(d, in, pos));
		if (pool && icf_data_end(d->prog, va) != va)
			ELFRW_TRY(add_literals(d, va, in->len));
		else if (d->r < d->r_end && d->rel->rela[d->r].r_offset < va + in->len) {
			struct icf_insn_site s = { d->prog, d->rel, in, va, code + pos, u->sec };
			ELFRW_TRY(add_relocated(d, &s, odd));
			if (*odd)
				return NULL;
		}
		if (number) /* whoever looks for it counts from what follows */
			*last = ELFRW_INSN_OTHER;
		else if (in->kind != ELFRW_INSN_NOP)
			*last = in->kind;
	}
	return NULL;
}

/* Marks the halves of addresses of the unit's own literals, which are only loaded from. */
static void mark_literals(const struct decoding *d)
{
	for (size_t r = d->u->ref; r < d->c->ref.len; r++) {
		struct icf_ref *ref = &d->c->ref.data[r];
		if (ref->kind == ICF_REF_PCREL && !(ref->flags & ICF_REF_HALF) &&
		    ref->target - d->u->start < d->u->end - d->u->start &&
		    icf_data_end(d->prog, ref->target) != ref->target)
			ref->flags = ICF_REF_OWN;
	}
}

struct elfrw_err *icf_decode_unit(struct icf_program *prog, uint32_t i, uint32_t chunk,
				  const struct elfrw_relocs *rel, struct icf_trace *t)
{
	struct icf_unit *u = &prog->unit.data[i];
	bool pairs = prog->arch->low_form;
	struct decoding d = { .prog = prog,
			      .u = u,
			      .c = &prog->chunk[chunk],
			      .rel = rel,
			      .t = pairs || prog->looked ? t : NULL,
			      .r = elfrw_relocs_from(rel, u->start),
			      .r_end = elfrw_relocs_from(rel, u->end) };
	u->chunk = chunk;
	u->ref = (uint32_t)d.c->ref.len;
	u->n_ref = 0;
	u->flags &= ~(uint32_t)(ICF_UNIT_FALLS | ICF_UNIT_CALLS | ICF_UNIT_ENDBR |
				ICF_UNIT_DATA_READ | ICF_UNIT_PLAIN | ICF_UNIT_LABEL);
	if (u->kind == ICF_UNIT_OPAQUE)
		return NULL;
	if (u->end - u->start > UINT32_MAX) {
		icf_make_opaque(u);
		return NULL;
	}
	uint8_t last;
	bool odd = false;
	ELFRW_TRY(decode_all(&d, &last, &odd));
	if (odd) {
		icf_make_opaque(u);
		d.c->ref.len = u->ref;
		return NULL;
	}
	if (d.halves)
		ELFRW_TRY(icf_pair_halves(prog, rel, i, t, d.jumps));
	if (u->flags & ICF_UNIT_POOL)
		mark_literals(&d);
	u->n_ref = (uint32_t)d.c->ref.len - u->ref;
	if (d.label && !d.jumps)
		u->flags |= ICF_UNIT_LABEL;
	if ((last == ELFRW_INSN_OTHER || last == ELFRW_INSN_JCC || last == ELFRW_INSN_NOP) &&
	    !prog->exec.data[u->sec].linkage)
		u->flags |= ICF_UNIT_FALLS;
	if (last == ELFRW_INSN_CALL || last == ELFRW_INSN_CALL_IND)
		u->flags |= ICF_UNIT_CALLS;
	return prog->looked ? icf_look_at_unit(prog, i, t) : NULL;
}

struct job {
	struct icf_program *prog;
	struct elfrw_relocs *rel; /* by exec section */
	uint32_t *first;          /* first unit of each chunk; one more at the end */
};

static struct elfrw_err *decode_chunk(void *arg, size_t c)
{
	struct job *job = arg;
	const struct icf_unit *u = job->prog->unit.data;
	uint32_t first = job->first[c], last = job->first[c + 1] - 1;
	struct icf_trace t = { 0 };
	struct elfrw_err *err = NULL;
	uint64_t bytes = u[last].end - u[first].start; /* with the gaps between sections */
	/* Growing would copy most of them. */
	if (!VEC_RESERVE(&job->prog->chunk[c].ref,
			 (bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES) / REF_BYTES))
		return &elfrw_err_nomem;
	for (uint32_t i = job->first[c]; i < job->first[c + 1] && !err; i++)
		err = icf_decode_unit(job->prog, i, (uint32_t)c,
				      &job->rel[job->prog->unit.data[i].sec], &t);
	icf_trace_deinit(&t);
	return err;
}

static struct elfrw_err *make_chunks(struct icf_program *prog, struct job *job)
{
	size_t max = 2;
	for (size_t i = 0; i < prog->exec.len; i++)
		max += (prog->exec.data[i].end - prog->exec.data[i].start) / CHUNK_BYTES + 1;
	job->first = malloc((max + 1) * sizeof *job->first);
	prog->chunk = calloc(max + 1, sizeof *prog->chunk);
	if (!job->first || !prog->chunk)
		return &elfrw_err_nomem;
	uint64_t bytes = CHUNK_BYTES;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		if (bytes >= CHUNK_BYTES) {
			job->first[prog->n_chunks++] = i;
			bytes = 0;
		}
		bytes += prog->unit.data[i].end - prog->unit.data[i].start;
	}
	job->first[prog->n_chunks] = (uint32_t)prog->unit.len;
	return NULL;
}

/* The number of zeros behind the last jump or return of U, if nothing else follows it. */
static uint64_t zeros_behind(const struct icf_program *prog, const struct icf_unit *u)
{
	const uint8_t *p = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, end = size, last = 0;
	while (end > 0 && p[end - 1] == 0)
		end--;
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < end; pos += in.len) {
		if (!prog->arch->decode(p + pos, size - pos, u->start + pos, &in))
			return 0;
		bool stops = in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_RET ||
			     in.kind == ELFRW_INSN_JMP_IND || in.kind == ELFRW_INSN_TRAP;
		last = stops ? pos + in.len : 0;
	}
	return last && last < size ? size - last : 0;
}

/* Code without a symbol or an FDE, such as crtstuff in a stripped file, may be ordinary code.
 * infer/code.c examines it later.  It begins behind the padding, and ends before the zeros with
 * which mold fills the section. */
static struct elfrw_err *look_into_gaps(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (u->kind != ICF_UNIT_OPAQUE || u->n_sym || u->n_fde ||
		    icf_has_data(prog, u->start, u->end))
			continue;
		u->kind = ICF_UNIT_RIGID;
		u->reason = ICF_NOT_A_FUNCTION;
		const uint8_t *p = icf_unit_bytes(prog, u);
		uint64_t size = u->end - u->start, n = 0;
		for (struct elfrw_insn in; n < size; n += in.len)
			if ((in.len = (uint8_t)elfrw_fill_size(prog->arch, p + n, size - n,
							       u->start + n)))
				continue;
			else if (!prog->arch->decode(p + n, size - n, u->start + n, &in) ||
				 !elfrw_is_fill_nop(&in, p + n))
				break;
		u->start += n < size ? n : 0;
		u->end -= zeros_behind(prog, u);
	}
	return icf_index_units(prog);
}

struct elfrw_err *icf_find_refs(struct icf_program *prog, unsigned threads)
{
	struct job job = { .prog = prog };
	struct elfrw_err *err = NULL;
	bool any = false;
	job.rel = calloc(prog->exec.len, sizeof *job.rel);
	if (!job.rel)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < prog->exec.len && !err; i++) {
		err = elfrw_relocs_open(&job.rel[i], prog->img, prog->exec.data[i].shndx);
		any |= job.rel[i].n > 0;
		if (!err)
			err = icf_find_doubted(prog, (uint32_t)i);
	}
	prog->inferred = !any;
	if (!err)
		err = look_into_gaps(prog);
	if (!err)
		err = icf_find_pools(prog, job.rel);
	if (!err)
		err = make_chunks(prog, &job);
	if (!err && prog->inferred)
		err = icf_expect_looks(prog);
	if (!err)
		err = elfrw_parallel(threads, prog->n_chunks, decode_chunk, &job);
	/* One more chunk for units that are decoded again after gluing. */
	if (prog->chunk)
		prog->n_chunks++;
	for (size_t i = 0; i < prog->exec.len; i++)
		elfrw_relocs_close(&job.rel[i]);
	free(job.rel);
	free(job.first);
	return err;
}
