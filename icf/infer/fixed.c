/* fixed.c: programs with fixed addresses and without relocations.
 *
 * Any number can be an address there, so nothing moves.  A folded function leaves a thunk at its
 * entry.  It must be proved that nothing enters the function anywhere else.  Every word of data and
 * every number in an instruction that lies inside a unit counts as a way into it: a case of its
 * switch, a label, an entry of its own. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/parts.h"

/* VA may be an address.  INSIDE: its user looks at the code there. */
static void name(struct icf_program *prog, struct icf_places *named, uint64_t va, bool inside,
		 bool *ok)
{
	uint32_t i = icf_in_exec(prog, va) ? icf_unit_at(prog, va) : ICF_NONE;
	/* No-ops in front of a function are patched together with those at its entry. */
	if (i == ICF_NONE && inside && icf_in_exec(prog, va))
		i = (uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].end <= va);
	if (i >= prog->unit.len)
		return;
	uint64_t *slot = VEC_PUSH(&named->v);
	*ok = *ok && slot;
	if (slot)
		*slot = va;
	if (prog->unit.data[i].start != va || inside)
		prog->unit.data[i].flags |= ICF_UNIT_INNER;
}

static bool words_of_data(struct icf_program *prog, struct icf_places *named)
{
	bool ok = true;
	for (uint32_t i = 1; i < prog->img->n_sections && ok; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		bool unwind = strncmp(s->name, ".eh_frame", 9) == 0 ||
			      strncmp(s->name, ".gcc_except_table", 17) == 0;
		if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) ||
		    !s->data || unwind || s->hdr.sh_type == SHT_STRTAB ||
		    s->hdr.sh_type == SHT_GNU_HASH || s->hdr.sh_type == SHT_HASH ||
		    s->hdr.sh_type == SHT_DYNSYM)
			continue;
		/* The no-ops at these places are patched at run time. */
		bool patchable = strcmp(s->name, "__patchable_function_entries") == 0;
		for (uint64_t off = -s->hdr.sh_addr & 3;
		     off <= s->hdr.sh_size && s->hdr.sh_size - off >= 4 && ok; off += 4) {
			uint32_t word = elfrw_get32(s->data + off);
			uint64_t va = s->hdr.sh_addr + off;
			name(prog, named, word, patchable, &ok);
			name(prog, named, va + (uint64_t)(int64_t)(int32_t)word, patchable, &ok);
		}
	}
	return ok;
}

static struct elfrw_err *numbers_in_code(struct icf_program *prog, struct icf_places *named)
{
	struct icf_trace t = { 0 };
	struct elfrw_err *err = NULL;
	bool ok = true;
	for (uint32_t i = 0; i < prog->unit.len && !err && ok; i++) {
		bool clean;
		if (prog->unit.data[i].kind == ICF_UNIT_OPAQUE)
			continue;
		err = icf_trace_unit(prog, i, &t, &clean);
		const uint8_t *code = icf_unit_bytes(prog, &prog->unit.data[i]);
		for (size_t k = 0; k < t.insn.len && !err && ok; k++) {
			const struct elfrw_insn *in = &t.insn.data[k].in;
			const uint8_t *p = code + t.insn.data[k].pos;
			if (in->imm_size >= 4)
				name(prog, named, elfrw_get_le(p + in->imm_off, in->imm_size),
				     false, &ok);
			if (in->disp_size == 4)
				name(prog, named, elfrw_get32(p + in->disp_off), false, &ok);
		}
	}
	icf_trace_deinit(&t);
	return err ? err : ok ? NULL : &elfrw_err_nomem;
}

struct elfrw_err *icf_infer_fixed(struct icf_program *prog, unsigned threads)
{
	struct icf_islands islands = { 0 };
	struct icf_places named = { 0 };
	struct elfrw_err *err = icf_find_islands(prog, threads, &islands, NULL);
	if (!err && !words_of_data(prog, &named))
		err = &elfrw_err_nomem;
	if (!err)
		err = numbers_in_code(prog, &named);
	if (!err)
		err = icf_judge_islands(prog, &islands, &named);
	VEC_FREE(&islands.v);
	VEC_FREE(&named.v);
	return err;
}
