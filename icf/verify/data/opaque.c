/* opaque.c: distances in bytes that are not understood, without relocations.
 *
 * These bytes did not change or move (verify/code/opaque.c), so a word in them is wrong in OUT if
 * its target has moved.  Words that lead to functions are found as in data (distance.c).  Here are
 * the words that lead to other instructions.  A row of four words of 4 bytes or more, counted from
 * the first, that lead to four different instructions is a switch's table.  In data it is also one
 * if an instruction among those bytes refers to the first word, wherever that begins.
 *
 * Cost: each byte that is not understood is examined once, and units that words lead into are
 * decoded once. */
#include "elfrw/base/rbuf.h"
#include "icf/verify/state.h"
#include <stdlib.h>

#define ROW     4     /* words required for a table */
#define LONGEST 65536 /* words of one */

struct rows {
	struct icf_v *v;
	uint8_t *begins; /* bit set: an instruction begins at that byte of [v->claim.lo,
			    v->claim.hi) */
	uint8_t *read;   /* by unit: its bits are set */
	uint64_t told;   /* the place of the last word reported */
};

static void read_unit(const struct rows *r, uint32_t i)
{
	const struct icf_vunit *u = &r->v->claim.unit.data[i];
	const struct icf_vexec *e = &r->v->claim.exec.data[u->exec];
	r->read[i] = 1;
	for (uint64_t va = u->old; va < u->end;) {
		struct elfrw_insn in;
		if (e->old_data[va - e->old] == 0)
			va += icf_v_pad(r->v, va);
		if (va >= u->end)
			return;
		r->begins[(va - r->v->claim.lo) >> 3] |=
			(uint8_t)(1u << ((va - r->v->claim.lo) & 7));
		unsigned len =
			r->v->claim.arch->decode(e->old_data + (va - e->old), u->end - va, va, &in);
		if (!len)
			return;
		va += len;
	}
}

/* Does an instruction of another unit than I, which is understood, begin at VA? */
static bool is_insn(const struct rows *r, uint32_t i, uint64_t va)
{
	uint32_t u = va - r->v->claim.lo < r->v->claim.hi - r->v->claim.lo
			     ? icf_v_find(&r->v->claim, va)
			     : ICF_V_NONE;
	if (u == ICF_V_NONE || u == i || r->v->claim.unit.data[u].opaque)
		return false;
	if (!r->read[u])
		read_unit(r, u);
	return r->begins[(va - r->v->claim.lo) >> 3] >> ((va - r->v->claim.lo) & 7) & 1;
}

/* The number of words at P, which are at VA of unit I, that lead from there to instructions; at
 * most MOST.  0: not enough different ones. */
static unsigned row_at(const struct rows *r, uint32_t i, uint64_t va, const uint8_t *p,
		       uint64_t most)
{
	uint64_t to[ROW];
	unsigned n = 0, different = 0;
	for (; n < most && n < LONGEST; n++) {
		uint64_t t = va + (uint64_t)(int64_t)(int32_t)elfrw_get32(p + 4 * (size_t)n);
		if (!is_insn(r, i, t))
			break;
		unsigned k = 0;
		while (k < different && to[k] != t)
			k++;
		if (k == different && different < ROW)
			to[different++] = t;
	}
	return different == ROW ? n : 0;
}

/* Checks the row of words at P, which are at VA, if there is one in the next SIZE bytes; returns
 * how many words it has. */
static unsigned check_row(struct rows *r, uint32_t i, uint64_t va, const uint8_t *p, uint64_t size)
{
	unsigned n = row_at(r, i, va, p, size / 4);
	char name[200];
	for (unsigned k = 0; k < n; k++) {
		uint64_t place = va + 4 * (uint64_t)k,
			 to = va + (uint64_t)(int64_t)(int32_t)elfrw_get32(p + 4 * (size_t)k), now;
		if ((icf_v_code(&r->v->claim, to, &now) && now == to) || place - r->told < 4)
			continue;
		icf_vlog_bad(
			&r->v->log, ICF_VC_WORD,
			"distance: 0x%llx, for code that is not understood, of %s (0x%llx): expected the code to stay, found it elsewhere",
			ICF_VX(place), icf_v_where(&r->v->claim, to, name), ICF_VX(to));
		r->told = place;
		break;
	}
	return n;
}

static void check_unit(struct rows *r, uint32_t i)
{
	const struct icf_v *v = r->v;
	const struct icf_vunit *u = &v->claim.unit.data[i];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	struct elfrw_insn in;
	struct icf_vhighs high = { 0 };
	for (uint64_t va = u->old; va < u->end; va++) {
		const uint8_t *p = e->old_data + (va - e->old);
		if (!v->claim.arch->decode(p, u->end - va, va, &in))
			continue;
		uint64_t to = in.target;
		bool names = icf_v_names(&v->claim, &high, &in, p, &to);
		if ((names || in.pcrel_size == 4) && !icf_v_in_exec(&v->claim, to)) {
			const uint8_t *table = elfrw_image_at(&v->claim.in, to, 4 * ROW);
			uint32_t shndx = table ? elfrw_image_section_at(&v->claim.in, to) : 0;
			const Elf64_Shdr *sh = &v->claim.in.section[shndx].hdr;
			if (shndx)
				check_row(r, i, to, table, sh->sh_addr + sh->sh_size - to);
		}
	}
	for (uint64_t va = u->old; va + 4 * ROW <= u->end; va++) {
		unsigned n = check_row(r, i, va, e->old_data + (va - e->old), u->end - va);
		/* Counted from another start, these are other distances. */
		va += n > 2 * ROW ? 4 * (uint64_t)(n - 2 * ROW) : 0;
	}
}

struct elfrw_err *icf_v_check_opaque(struct icf_v *v)
{
	struct rows r = { .v = v, .told = UINT64_MAX - 8 };
	bool any = false;
	for (size_t i = 0; i < v->claim.unit.len && !any; i++)
		any = v->claim.unit.data[i].opaque;
	if (!any || v->claim.hi <= v->claim.lo)
		return NULL;
	r.begins = calloc(((v->claim.hi - v->claim.lo) >> 3) + 1, 1);
	r.read = calloc(v->claim.unit.len + 1, 1);
	for (uint32_t i = 0; i < v->claim.unit.len && r.begins && r.read; i++)
		if (v->claim.unit.data[i].opaque)
			check_unit(&r, i);
	struct elfrw_err *err = r.begins && r.read ? NULL : &elfrw_err_nomem;
	free(r.begins);
	free(r.read);
	return err;
}
