/* look.c: what a unit's instructions show before anything is known of references in data.
 *
 * Places that control does not fall into and that no instruction of the unit refers to (islands,
 * see infer/code.c), labels of data, indirect jumps, calls of sums.  Without relocations each unit
 * is looked at when ref.c decodes it, while its instructions are at hand: decoding all code again
 * would cost more than all that is done here.  A look depends on the unit, its references and the
 * bounds of the others, and these stay the same until icf_find_islands() is called.  There it
 * becomes known which units count, and what was seen of these is believed.  Cost: a few operations
 * for each instruction. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

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
	bool dead; /* control does not get to the next instruction, unless something refers to it */
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
	*last = (struct refers){ .end = t->insn.len, .dead = last->dead };
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

/* Instruction K of unit I is behind one that control does not go on from (or behind that and
 * padding).  Is it a place that no instruction of the unit refers to?  Adds it. */
static struct elfrw_err *find_island(const struct icf_program *prog, uint32_t i,
				     const struct icf_trace *t, size_t k, struct refers *last,
				     struct icf_look *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_insn_at *a = &t->insn.data[k];
	bool named = icf_trace_bit(t->target.data, a->pos);
	last->dead = !named && (a->in.kind == ELFRW_INSN_NOP || a->in.kind == ELFRW_INSN_TRAP);
	if (named || last->dead)
		return NULL;
	struct icf_island *is = VEC_PUSH(&ret->island);
	if (!is)
		return &elfrw_err_nomem;
	*is = (struct icf_island){ u->start + a->pos, i, refers(prog, u, t, k, last) };
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
static void mark_insns(const struct icf_unit *u, const struct icf_trace *t, uint64_t lo,
		       uint8_t *insn)
{
	uint64_t off = u->start - lo, size = u->end - u->start;
	unsigned shift = off & 7;
	uint8_t *to = insn + (off >> 3);
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
 * 8 bytes that nothing rewrites. */
static struct elfrw_err *find_far(const struct icf_program *prog, uint32_t i,
				  const struct elfrw_insn *in, const uint8_t *code,
				  struct icf_look *ret)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t k = 1; k < img->n_sections; k++) {
		uint64_t to = img->section[k].hdr.sh_addr + elfrw_get_le(code + in->imm_off, 8);
		if (!icf_in_exec(prog, to) || strncmp(img->section[k].name, ".got", 4) != 0)
			continue;
		struct icf_far *far = VEC_PUSH(&ret->far);
		if (!far)
			return &elfrw_err_nomem;
		*far = (struct icf_far){ to, i };
	}
	return NULL;
}

/* What is seen of a unit. */
enum {
	LOOKED = 1,
	UNCLEAN = 2, /* a branch leads into an instruction */
	DATA = 4,
	JUMPS = 8,
	RELATIVE = 16,
};

/* Where it goes. */
struct sight {
	uint8_t *insn; /* the bits of instructions; may be NULL */
	struct icf_look *look;
	uint8_t seen;
};

/* Looks at unit I, which T holds. */
static struct elfrw_err *look(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
			      bool clean, struct sight *s)
{
	const struct icf_unit *u = &prog->unit.data[i];
	struct refers last = { 0 };
	s->seen = LOOKED | (clean ? 0 : UNCLEAN);
	if (clean && s->insn)
		mark_insns(u, t, prog->exec.data[0].start, s->insn);
	if (clean && holds_data(prog, i, t))
		s->seen |= DATA;
	for (size_t k = 0, n = t->insn.len; k < n; k++) {
		if (!last.dead && (k = icf_trace_next(t->turn.data, k, n)) == n)
			break;
		const struct elfrw_insn *in = &t->insn.data[k].in;
		if (last.dead)
			ELFRW_TRY(find_island(prog, i, t, k, &last, s->look));
		last.dead |= clean && stops(in);
		if (in->kind == ELFRW_INSN_JMP_IND)
			s->seen |= JUMPS;
		else if (in->kind == ELFRW_INSN_CALL_IND && clean && icf_call_adds(prog, i, t, k))
			s->seen |= RELATIVE;
		else if (prog->img->pic && clean && in->imm_size == 8)
			ELFRW_TRY(find_far(prog, i, in,
					   icf_unit_bytes(prog, u) + t->insn.data[k].pos, s->look));
	}
	return NULL;
}

/* Acts on what was SEEN of unit I. */
static void believe(struct icf_program *prog, uint32_t i, unsigned seen)
{
	if (!(seen & LOOKED) || (seen & (UNCLEAN | DATA)))
		icf_make_opaque(&prog->unit.data[i]);
	if (seen & JUMPS)
		icf_set_unit_flag(prog, i, ICF_UNIT_JUMPS);
	if (seen & RELATIVE)
		icf_set_unit_flag(prog, i, ICF_UNIT_RELATIVE);
}

static bool is_looked_at(const struct icf_program *prog, const struct icf_unit *u)
{
	return u->kind != ICF_UNIT_OPAQUE && !(u->flags & ICF_UNIT_BLIND) &&
	       !prog->exec.data[u->sec].linkage;
}

struct elfrw_err *icf_expect_looks(struct icf_program *prog)
{
	if (!prog->exec.len)
		return NULL;
	uint64_t size = prog->exec.data[prog->exec.len - 1].end - prog->exec.data[0].start;
	prog->looked = calloc(prog->unit.len + 1, 1);
	prog->insn = calloc((size >> 3) + 9, 1);
	prog->n_number_bases = icf_number_bases(prog, prog->number_base);
	return prog->looked && prog->insn ? NULL : &elfrw_err_nomem;
}

struct elfrw_err *icf_look_at_unit(struct icf_program *prog, uint32_t i, const struct icf_trace *t)
{
	const struct icf_unit *u = &prog->unit.data[i];
	if (!is_looked_at(prog, u))
		return NULL;
	struct sight s = { prog->insn, &prog->chunk[u->chunk].look, 0 };
	struct elfrw_err *err = look(prog, i, t, icf_trace_is_clean(t, u->end - u->start), &s);
	prog->looked[i] = s.seen;
	if (!prog->arch->low_form && icf_is_plain(prog, i, t))
		prog->unit.data[i].flags |= ICF_UNIT_PLAIN;
	return err;
}

struct job {
	struct icf_program *prog;
	uint32_t per;
	struct icf_look *part;
	struct icf_bits *insn;
};

/* Looks at units that were not looked at when they were decoded. */
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
		struct sight s = { job->insn ? job->insn->bits : NULL, &job->part[part], 0 };
		/* Symbols and FDEs delimit the unit, and relocations mark its references, but data
		 * may lie in between. */
		bool known = !prog->inferred && (u->n_sym || u->n_fde);
		if (!is_looked_at(prog, u) || (known && !(u->flags & ICF_UNIT_DATA_READ)) ||
		    (u->flags & ICF_UNIT_POOL))
			continue;
		err = icf_trace_unit(prog, i, &t, &clean);
		if (!err && known && reads_itself(prog, i, &t))
			icf_make_opaque(u);
		if (err || known)
			continue;
		err = look(prog, i, &t, clean, &s);
		believe(prog, i, s.seen);
	}
	icf_trace_deinit(&t);
	return err;
}

static struct elfrw_err *look_now(struct icf_program *prog, unsigned threads,
				  struct icf_islands *ret, struct icf_bits *insn)
{
	struct job job = { .prog = prog, .per = 512, .insn = insn };
	size_t n = (prog->unit.len + job.per - 1) / job.per;
	job.part = calloc(n + 1, sizeof *job.part);
	if (!job.part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = elfrw_parallel(threads, n, look_at, &job);
	for (size_t i = 0; i < n; i++) {
		struct icf_look *p = &job.part[i];
		for (size_t k = 0; k < p->far.len; k++)
			icf_pin_unit(prog, icf_unit_at(prog, p->far.data[k].to));
		if (!err && !VEC_APPEND(&ret->v, p->island.data, p->island.len))
			err = &elfrw_err_nomem;
		VEC_FREE(&p->island);
		VEC_FREE(&p->far);
	}
	free(job.part);
	return err;
}

/* The units were looked at when they were decoded. */
static struct elfrw_err *take_looks(struct icf_program *prog, struct icf_islands *ret,
				    struct icf_bits *insn)
{
	bool ok = true;
	for (uint32_t c = 0; c < prog->n_chunks && ok; c++) {
		const struct icf_look *l = &prog->chunk[c].look;
		for (size_t k = 0; k < l->far.len; k++)
			if (is_looked_at(prog, &prog->unit.data[l->far.data[k].unit]))
				icf_pin_unit(prog, icf_unit_at(prog, l->far.data[k].to));
		ok = VEC_APPEND(&ret->v, l->island.data, l->island.len);
	}
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (is_looked_at(prog, &prog->unit.data[i]))
			believe(prog, i, prog->looked[i]);
	if (insn) {
		free(insn->bits);
		insn->bits = prog->insn;
		prog->insn = NULL;
	}
	icf_forget_looks(prog);
	return ok ? NULL : &elfrw_err_nomem;
}

struct elfrw_err *icf_find_islands(struct icf_program *prog, unsigned threads,
				   struct icf_islands *ret, struct icf_bits *insn)
{
	ELFRW_TRY(icf_find_blind(prog));
	ELFRW_TRY(prog->looked ? take_looks(prog, ret, insn) : look_now(prog, threads, ret, insn));
	/* References of units that are now not understood do not count. */
	return icf_find_blind(prog);
}
