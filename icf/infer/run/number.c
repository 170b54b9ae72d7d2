/* number.c: which units have no number that could lead to code, as run/doubt.c asks.
 *
 * Most numbers are small, and data is far from the code.  A number counts only if it is as large as
 * the distance from the code to a place that it could be added to.  This is seen while a unit's
 * instructions are at hand, so that doubt.c need not decode all code again.  Cost: a few operations
 * for each instruction. */
#include "elfrw/base/rbuf.h"
#include "icf/infer/infer.h"
#include <string.h>

#define SMALL 128 /* numbers of one byte are at most as large */

unsigned icf_number_bases(const struct icf_program *prog, uint64_t base[ICF_NUMBER_BASES])
{
	unsigned n = 0;
	base[n++] = 0;
	for (uint32_t i = 1; i < prog->img->n_sections && n < ICF_NUMBER_BASES; i++)
		if (strncmp(prog->img->section[i].name, ".got", 4) == 0)
			base[n++] = prog->img->section[i].hdr.sh_addr;
	return n;
}

uint64_t icf_operand(const uint8_t *p, unsigned size)
{
	uint64_t n = size ? elfrw_get_le(p, size) : 0,
		 top = size ? (uint64_t)1 << (8 * size - 1) : 0;
	return size && size < 8 ? (n ^ top) - top : n;
}

/* What a unit's instructions name. */
struct seen {
	uint64_t lo, hi;    /* of the code */
	uint64_t near, far; /* the distances from the code to the data whose addresses it computes
			       lie between these */
	uint64_t sizes;     /* bit N: there are numbers of N + 1 bits, */
	uint64_t least[64], most[64]; /* which lie between these */
	bool plain;                   /* so far */
};

static void add_name(struct seen *s, uint64_t va)
{
	uint64_t near = va < s->lo ? s->lo - va : va - s->hi,
		 far = va < s->lo ? s->hi - va : va - s->lo;
	s->plain &= va - s->lo > s->hi - s->lo;
	s->near = near < s->near ? near : s->near;
	s->far = far > s->far ? far : s->far;
}

static void add_number(const struct icf_program *prog, struct seen *s, uint64_t number)
{
	uint64_t size = number >> 63 ? 0 - number : number;
	if (size <= SMALL)
		return;
	for (unsigned k = 0; k < prog->n_number_bases; k++)
		s->plain &= prog->number_base[k] + number - s->lo > s->hi - s->lo;
	unsigned bits = 63 - (unsigned)__builtin_clzll(size);
	bool first = !(s->sizes >> bits & 1);
	s->sizes |= (uint64_t)1 << bits;
	if (first || size < s->least[bits])
		s->least[bits] = size;
	if (first || size > s->most[bits])
		s->most[bits] = size;
}

/* Is no number as large as the distance from the code to data that the unit names? */
static bool falls_short(const struct seen *s)
{
	bool plain = true;
	for (uint64_t left = s->near != UINT64_MAX ? s->sizes : 0; left; left &= left - 1) {
		unsigned bits = (unsigned)__builtin_ctzll(left);
		plain &= s->most[bits] < s->near || s->least[bits] > s->far;
	}
	return plain;
}

static bool near_code(const struct icf_program *prog, const struct seen *s)
{
	for (unsigned k = 0; k < prog->n_number_bases; k++)
		if (prog->number_base[k] + SMALL - s->lo <= s->hi - s->lo + 2 * SMALL)
			return true;
	return false;
}

bool icf_is_plain(const struct icf_program *prog, uint32_t i, const struct icf_trace *t)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	struct seen s;
	s.lo = prog->exec.data[0].start;
	s.hi = prog->exec.data[prog->exec.len - 1].end;
	s.near = UINT64_MAX;
	s.far = s.sizes = 0;
	s.plain = true; /* the rest is not read before it is written */
	const size_t n = t->insn.len;
	for (size_t k = 0; (k = icf_trace_next(t->number.data, k, n)) < n && s.plain; k++) {
		const struct elfrw_insn *in = &t->insn.data[k].in;
		const uint8_t *p = code + t->insn.data[k].pos;
		bool lea = in->flags & ELFRW_INSN_LEA;
		if (in->kind == ELFRW_INSN_NOP || in->kind == ELFRW_INSN_TRAP)
			continue;
		if (lea && in->pcrel_size && !icf_in_exec(prog, in->target))
			add_name(&s, in->target);
		add_number(prog, &s, icf_operand(p + in->imm_off, in->imm_size));
		if (lea)
			add_number(prog, &s, icf_operand(p + in->disp_off, in->disp_size));
	}
	return s.plain && s.near > SMALL && falls_short(&s) && !near_code(prog, &s);
}
