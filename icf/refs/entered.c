/* entered.c: for inferred references: is every place that something enters the start of an
 * instruction, as the unit's code was decoded?
 *
 * Zeros or data before an undelimited function may swallow its first bytes.  The bytes behind are
 * then decoded wrongly, mostly without another trace, and a call in them is missed.  A reference
 * into the middle of an instruction shows this.  So do zeros behind a jump or a return that nothing
 * leads to, if no FDE divides the functions.  The unit is then not understood.  Cost: a look-up for
 * each reference, a bit for each byte of code, and one more pass over units that are entered
 * elsewhere than at the start, and over units without an FDE. */
#include "elfrw/base/rbuf.h"
#include "icf/infer/parts.h"
#include "icf/refs/ref.h"

/* Notes the place VA, unless it is the start of a unit or in none that is understood. */
static void add(const struct icf_program *prog, struct icf_bits *entry, uint64_t va)
{
	uint32_t u = icf_unit_at(prog, va);
	if (u != ICF_NONE && prog->unit.data[u].start != va &&
	    prog->unit.data[u].kind != ICF_UNIT_OPAQUE)
		icf_set_bit(entry, va);
}

static void collect(const struct icf_program *prog, struct icf_bits *entry)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (!(ref[r].flags & ICF_REF_HALF))
				add(prog, entry, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].kind == ICF_DATA_ADDRESS)
			add(prog, entry, prog->dataref.data[i].target);
	add(prog, entry, prog->img->ehdr.e_entry);
}

/* The first place from VA on that is noted, or the end of the code. */
static uint64_t next_entry(const struct icf_bits *entry, uint64_t va)
{
	for (uint64_t off = va - entry->lo; off < entry->hi - entry->lo;) {
		uint64_t bits = elfrw_get64(entry->bits + (off >> 3)) >> (off & 7);
		if (bits)
			return entry->lo + off + (unsigned)__builtin_ctzll(bits);
		off += 64 - (off & 7);
	}
	return entry->hi;
}

static bool stops(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_RET ||
	       in->kind == ELFRW_INSN_JMP_IND || in->kind == ELFRW_INSN_TRAP;
}

/* Is there an instruction in unit I that begins with a zero byte, that control does not reach, and
 * that nothing refers to? */
static struct elfrw_err *has_zeros(const struct icf_program *prog, uint32_t i,
				   const struct icf_bits *entry, struct icf_trace *t, bool *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	bool clean, dead = false;
	*ret = false;
	ELFRW_TRY(icf_trace_unit(prog, i, t, &clean));
	for (size_t k = 0; k < t->insn.len && !*ret; k++) {
		const struct icf_insn_at *at = &t->insn.data[k];
		if (dead && code[at->pos] == 0 && !icf_trace_bit(t->target.data, at->pos))
			*ret = !icf_bit(entry, u->start + at->pos);
		if (at->in.kind != ELFRW_INSN_NOP)
			dead = stops(&at->in);
	}
	return NULL;
}

/* Is the place VA in unit U the start of an instruction?  *POS: where one begins, before it. */
static bool begins_insn(const struct icf_program *prog, const struct icf_unit *u, uint64_t va,
			uint64_t *pos)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, to = va - u->start;
	struct elfrw_insn in;
	while (*pos < to && prog->arch->decode(code + *pos, size - *pos, u->start + *pos, &in))
		*pos += in.len;
	return *pos == to;
}

struct elfrw_err *icf_check_entered(struct icf_program *prog)
{
	struct elfrw_err *err = NULL;
	struct icf_bits e;
	if (!icf_bits_init(&e, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	collect(prog, &e);
	uint32_t unit = ICF_NONE;
	uint64_t pos = 0;
	for (uint64_t va = next_entry(&e, e.lo); va < e.hi; va = next_entry(&e, va + 1)) {
		uint32_t at = icf_unit_near(prog, va, unit);
		struct icf_unit *u = &prog->unit.data[at];
		if (u->kind == ICF_UNIT_OPAQUE)
			continue;
		if (unit != at)
			pos = 0;
		unit = at;
		if (!begins_insn(prog, u, va, &pos))
			icf_make_opaque(u);
	}
	struct icf_trace t = { 0 };
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		bool zeros;
		if (u->kind == ICF_UNIT_OPAQUE || u->n_fde || prog->exec.data[u->sec].linkage)
			continue;
		err = has_zeros(prog, i, &e, &t, &zeros);
		if (!err && zeros)
			icf_make_opaque(u);
	}
	icf_trace_deinit(&t);
	icf_bits_deinit(&e);
	return err;
}
