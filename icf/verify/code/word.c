/* word.c: tables of distances that code may use that is not understood.
 *
 * Without kept relocations, only code tells where they are: each place that it computes may begin
 * one, in the unit or in data.  Words of 4 bytes count from there, up to the first that leads to no
 * instruction.  Words that lead into the unit itself or into padding say neither. */
#include "elfrw/base/rbuf.h"
#include "icf/verify/code/state.h"

#define MAX_WORK 32    /* bytes read for each byte of the unit */
#define MIN_WORK 65536 /* and these for each unit */

/* Reads unit T up to TO.  Does an instruction begin there? */
static bool is_insn(const struct icf_v *v, uint32_t t, uint64_t to)
{
	const struct icf_vunit *u = &v->claim.unit.data[t];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	uint64_t va = u->old;
	while (va < to) {
		struct elfrw_insn in;
		unsigned len =
			v->claim.arch->decode(e->old_data + (va - e->old), u->end - va, va, &in);
		if (!len)
			return false;
		va += len;
	}
	return va == to;
}

/* The table at BASE.  *WORK: bytes that may still be read. */
static void check_table(struct icf_vcode_at *at, uint64_t pos, uint64_t base, uint64_t *work)
{
	const struct icf_v *v = at->job->v;
	const uint8_t *p;
	for (uint64_t va = base; *work >= 4 && (p = elfrw_image_at(&v->claim.in, va, 4)); va += 4) {
		uint64_t to = base + (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
		uint32_t t = icf_v_find(&v->claim, to);
		*work -= 4;
		if (to - at->u->old < at->size)
			continue;
		if (!icf_v_in_exec(&v->claim, to))
			return;
		if (t != ICF_V_NONE) {
			uint64_t off = to - v->claim.unit.data[t].old;
			if (off > *work || !is_insn(v, t, to))
				return;
			*work -= off;
		}
		icf_vcode_still(at, pos, to);
	}
}

void icf_vcode_tables(struct icf_vcode_at *at)
{
	uint64_t work = at->size * MAX_WORK + MIN_WORK;
	struct elfrw_insn in;
	const struct elfrw_arch *arch = at->job->v->claim.arch;
	for (uint64_t pos = 0, len; pos < at->size; pos += len ? len : arch->fill_size) {
		len = arch->decode(at->a + pos, at->size - pos, at->u->old + pos, &in);
		if (len && in.pcrel_size && (in.flags & ELFRW_INSN_LEA) &&
		    !elfrw_form_is_high(&arch->form[arch->pcrel_form(&in)]) &&
		    (in.target - at->u->old < at->size ||
		     !icf_v_in_exec(&at->job->v->claim, in.target)))
			check_table(at, pos, in.target, &work);
	}
}
