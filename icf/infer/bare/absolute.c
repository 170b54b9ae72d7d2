/* absolute.c: distances in absolute symbols.
 *
 * `--defsym=OFF=f-g`, and the same in a linker script, make a symbol that is a number.  A
 * relocation against it fills in the number; none tells that it is a distance.  If a unit computes
 * an address, or loads it from the global offset table, and has such a number in one of these ways
 * or as an operand, the entry of a function that lies at this distance from the address stays, and
 * so does the function that the address is.  So does a function at such a distance from the file's
 * first byte, which code may have from anywhere.  Other sums with a function's address are seen by
 * arith.c.
 *
 * Cost: one pass over the symbols; if any of them could lead to code, one over the references, and
 * over the code of units with an address from which one does. */
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include "icf/infer/bare/state.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"

#define MAX_NUMBERS 64 /* of others nothing is known */

struct absolute {
	struct icf_program *prog;
	uint64_t lo, hi; /* of the image */
	uint64_t number[MAX_NUMBERS];
	unsigned n;
};

static void add(struct absolute *a, uint64_t number)
{
	const struct icf_program *prog = a->prog;
	const uint64_t code = prog->exec.data[0].start,
		       end = prog->exec.data[prog->exec.len - 1].end;
	const uint64_t all = end - code + (a->hi - a->lo);
	/* From no place of the image to a place of the code. */
	if ((number + a->hi - code >= all && a->hi - number - code >= all) || a->n == MAX_NUMBERS)
		return;
	for (unsigned k = 0; k < a->n; k++)
		if (a->number[k] == number)
			return;
	a->number[a->n++] = number;
}

static uint32_t entry_at(const struct icf_program *prog, uint64_t va)
{
	uint32_t i = icf_in_exec(prog, va) ? icf_unit_at(prog, va) : ICF_NONE;
	return i != ICF_NONE && prog->unit.data[i].start == va ? i : ICF_NONE;
}

/* Does U load NUMBER, as a word of 4 or 8 bytes?  Or compute it, as an address: linkers make that
 * of a load from the global offset table. */
static bool loads(const struct icf_program *prog, const struct icf_unit *u, uint64_t number)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		const bool computes = ref[r].flags & ICF_REF_LEA;
		const uint8_t *eight =
				      computes ? NULL : elfrw_image_at(prog->img, ref[r].target, 8),
			      *four = computes ? NULL : elfrw_image_at(prog->img, ref[r].target, 4);
		if (ref[r].target == number || (eight && elfrw_get64(eight) == number) ||
		    (four && (uint64_t)(int64_t)(int32_t)elfrw_get32(four) == number))
			return true;
	}
	return false;
}

/* Does U have NUMBER?  Where instructions hold parts of numbers, it may. */
static bool has_number(const struct icf_program *prog, const struct icf_unit *u, uint64_t number)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	const uint64_t size = u->end - u->start;
	struct elfrw_insn in;
	if (prog->arch->low_form || u->kind == ICF_UNIT_OPAQUE || loads(prog, u, number))
		return true;
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		if (!prog->arch->decode(code + pos, size - pos, u->start + pos, &in))
			return true;
		if (icf_operand(code + pos + in.imm_off, in.imm_size) == number ||
		    icf_operand(code + pos + in.disp_off, in.disp_size) == number)
			return true;
	}
	return false;
}

/* U has the address BASE. */
static void count_from(struct absolute *a, const struct icf_unit *u, uint64_t base)
{
	struct icf_program *prog = a->prog;
	const bool code = icf_in_exec(prog, base);
	for (unsigned k = 0; k < a->n; k++) {
		uint32_t on = entry_at(prog, base + a->number[k]),
			 back = entry_at(prog, base - a->number[k]);
		if ((on == ICF_NONE && back == ICF_NONE) || !has_number(prog, u, a->number[k]))
			continue;
		icf_pin_unit(prog, on);
		icf_pin_unit(prog, back);
		icf_pin_unit(prog, code ? icf_unit_at(prog, base) : ICF_NONE);
	}
}

void icf_infer_absolute(struct icf_program *prog)
{
	struct absolute a = { .prog = prog };
	if (!prog->exec.len)
		return;
	const struct icf_range got = icf_bare_got(prog->img);
	elfrw_image_span(prog->img, &a.lo, &a.hi);
	for (struct elfrw_all_symbols it = { .img = prog->img }; elfrw_all_symbols_next(&it);)
		if (elfrw_symbol_is_number(prog->img, &it.sym))
			add(&a, it.sym.st_value);
	for (unsigned k = 0; k < a.n; k++)
		icf_pin_unit(prog, entry_at(prog, a.lo + a.number[k]));
	for (uint32_t i = 0; i < prog->unit.len && a.n; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++) {
			uint64_t va;
			if (icf_bare_address_by(prog, &got, &ref[r], &va) &&
			    va - a.lo <= a.hi - a.lo)
				count_from(&a, u, va);
		}
	}
}
