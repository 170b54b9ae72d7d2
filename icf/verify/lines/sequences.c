/* sequences.c: places of sequences: of a folded function's own rows, as the note gives them, and of
 * functions, as DW_AT_LLVM_stmt_sequence does. */
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/program.h"
#include "icf/verify/lines/state.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct sequence {
	uint64_t off;
	const struct dwr_icfold_member *member;
};

static int sequence_order(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Every sequence of a folded function begins with this opcode.  Without it valgrind, which takes no
 * notice of the units' ranges, would show these lines for the kept function's code: it executes
 * what a vendor's opcode holds (`advance_line` by 2^20, above which it ignores rows, and
 * `set_prologue_end` twice). */
bool icf_vline_hides(const uint8_t *ext, uint64_t n)
{
	static const uint8_t opcode[] = { 0x80, 3, 0x80, 0x80, 0xc0, 0, 10, 10 };
	return n == sizeof opcode && memcmp(ext, opcode, sizeof opcode) == 0;
}

static bool take_hiding(struct elfrw_rbuf *r)
{
	unsigned op = elfrw_rbuf_u8(r);
	uint64_t n = elfrw_rbuf_uleb(r);
	const uint8_t *ext = elfrw_rbuf_take(r, n);
	return !op && ext && icf_vline_hides(ext, n);
}

/* Skips a sequence; false: it does not begin with an address, or does not end. */
static bool skip_sequence(struct elfrw_rbuf *r, unsigned opcode_base, uint64_t *va)
{
	for (bool first = true;; first = false) {
		unsigned op = elfrw_rbuf_u8(r);
		if (!elfrw_rbuf_ok(r) || (first && op))
			return false;
		if (op >= opcode_base)
			continue;
		if (op) {
			for (unsigned n = op == DW_LNS_fixed_advance_pc ? 0
									: icf_vline_lengths[op - 1];
			     n; n--)
				elfrw_rbuf_uleb(r);
			elfrw_rbuf_skip(r, op == DW_LNS_fixed_advance_pc ? 2 : 0);
			continue;
		}
		uint64_t n = elfrw_rbuf_uleb(r);
		const uint8_t *ext = elfrw_rbuf_take(r, n);
		if (!ext || !n || (first && (*ext != DW_LNE_set_address || n != 9)))
			return false;
		if (first)
			*va = elfrw_get64(ext + 1);
		if (*ext == DW_LNE_end_sequence)
			return true;
	}
}

/* From the place of a function's own rows in the note, up to the next function's or the end, there
 * must be the stated number of sequences, all in the function's code. */
struct elfrw_err *icf_vline_sequences(struct icf_vdebug *d, const struct icf_vtexts *t,
				      const struct icf_vline_header *h)
{
	const struct icf_v *v = d->v;
	struct sequence *list = malloc((v->claim.note.n_members + 1) * sizeof *list);
	size_t n = 0;
	char name[200];
	if (!list)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->claim.note.n_members; i++) {
		const struct dwr_icfold_member *m = &v->claim.note.member[i];
		if (m->rows.status == DWR_NOTE_ROWS_OWN)
			list[n++] = (struct sequence){ h->program + m->rows.seq, m };
	}
	if (n)
		qsort(list, n, sizeof *list, sequence_order);
	for (size_t i = 0; i < n && h->usual; i++) {
		const struct dwr_icfold_member *m = list[i].member;
		const struct icf_vunit *x = &v->claim.unit.data[m->unit];
		uint64_t end = i + 1 < n ? list[i + 1].off : h->end, va = 0, seen = 0;
		bool ok = m->rows.seq < h->end - h->program && end <= h->end && list[i].off < end;
		struct elfrw_rbuf r = elfrw_rbuf(t->line->d_buf, ok ? end : 0);
		elfrw_rbuf_seek(&r, ok ? list[i].off : 0);
		d->log->checked[ICF_VC_NOTE]++;
		for (; ok && elfrw_rbuf_left(&r); seen++) {
			ok = take_hiding(&r) && skip_sequence(&r, h->opcode_base, &va);
			ok = ok && va - x->body < x->end - x->old;
		}
		if (!ok || seen != m->rows.n_seqs)
			icf_vlog_bad(
				d->log, ICF_VC_NOTE,
				"line rows: %s: expected %llu sequences of its own at offset 0x%llx, found %s",
				icf_v_where(&v->claim, x->old, name), ICF_VX(m->rows.n_seqs),
				ICF_VX(list[i].off), ok ? "another number" : "others");
	}
	free(list);
	return NULL;
}

void icf_vd_sequence(struct icf_vdebug *d, uint32_t u)
{
	const struct icf_v *v = d->v;
	const Elf_Data *s = icf_vd_section(&d->out, ".debug_line");
	const struct dwr_icfold_member *m =
		v->claim.note.unit_member[u] != UINT32_MAX
			? &v->claim.note.member[v->claim.note.unit_member[u]]
			: NULL;
	const struct icf_vunit *x = &v->claim.unit.data[u];
	char name[200];
	if (!m || m->rows.status != DWR_NOTE_ROWS_OWN)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->d_buf : NULL, s ? s->d_size : 0);
	elfrw_rbuf_seek(&r, d->own_program + m->rows.seq);
	/* DW_LNE_set_address */
	bool ok = d->own_program && take_hiding(&r) && elfrw_rbuf_u8(&r) == 0 &&
		  elfrw_rbuf_uleb(&r) == 9 && elfrw_rbuf_u8(&r) == DW_LNE_set_address;
	uint64_t va = elfrw_rbuf_u64(&r);
	d->log->checked[ICF_VC_NOTE]++;
	if (!ok || !elfrw_rbuf_ok(&r) || va - x->body >= x->end - x->old || !m->rows.n_seqs)
		icf_vlog_bad(
			d->log, ICF_VC_NOTE,
			"line rows: %s: expected a sequence at 0x%llx, found none at offset 0x%llx",
			icf_v_where(&v->claim, x->old, name), ICF_VX(x->body),
			ICF_VX(d->own_program + m->rows.seq));
}

/* A value of DW_AT_LLVM_stmt_sequence, and the line table of its unit. */
struct place {
	uint64_t off, table;
};

/* Reads the value X of DIE.  (libdw takes no notice of this form of a vendor's attributes.)  false:
 * there is no line table, or the form is another. */
static bool read_place(Dwarf_Die *die, const Dwarf_Attribute *x, struct place *ret)
{
	Dwarf_Die cu;
	Dwarf_Attribute attr;
	Dwarf_Word table;
	uint8_t size;
	if (x->form != DW_FORM_sec_offset || !dwarf_diecu(die, &cu, NULL, &size) ||
	    !dwarf_attr(&cu, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &table))
		return false;
	ret->off = size == 8 ? elfrw_get64(x->valp) : elfrw_get32(x->valp);
	if (size != 8 && ret->off == UINT32_MAX)
		ret->off = UINT64_MAX;
	ret->table = table;
	return true;
}

/* Does a sequence begin at P of section S?  Sets *VA to its first address, which is stated before
 * its first row. */
static bool begins(const Elf_Data *s, const struct place *p, uint64_t *va)
{
	static const uint8_t end[] = { 0, 1, DW_LNE_end_sequence };
	struct icf_vline_program program;
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->d_buf : NULL, s ? s->d_size : 0);
	elfrw_rbuf_seek(&r, p->table);
	const bool wide = elfrw_rbuf_u32(&r) == UINT32_MAX;
	if (wide)
		elfrw_rbuf_u64(&r);
	if (!icf_vline_program(&r, wide, &program) || p->off < elfrw_rbuf_off(&r) ||
	    p->off >= s->d_size)
		return false;
	if (p->off > elfrw_rbuf_off(&r) &&
	    memcmp((const uint8_t *)s->d_buf + p->off - sizeof end, end, sizeof end) != 0)
		return false;
	elfrw_rbuf_seek(&r, p->off);
	while (elfrw_rbuf_ok(&r)) {
		const unsigned op = elfrw_rbuf_u8(&r);
		if (op >= program.base || op == DW_LNS_copy || op == DW_LNS_fixed_advance_pc)
			return false;
		for (unsigned n = op ? program.length[op - 1] : 0; n; n--)
			elfrw_rbuf_uleb(&r);
		if (op)
			continue;
		const uint64_t n = elfrw_rbuf_uleb(&r);
		const uint8_t *ext = elfrw_rbuf_take(&r, n);
		if (!ext || !n || *ext == DW_LNE_end_sequence)
			return false;
		if (*ext == DW_LNE_set_address && n == 9) {
			*va = elfrw_get64(ext + 1);
			return true;
		}
	}
	return false;
}

void icf_vd_stmt_sequence(struct icf_vdebug *d, struct icf_vdie_pair *p, Dwarf_Attribute *x,
			  Dwarf_Attribute *y)
{
	const struct icf_vclaim *c = &d->v->claim;
	struct place a, b;
	uint64_t from, to, want;
	char name[200];
	if (!read_place(&p->a, x, &a))
		return;
	d->log->checked[ICF_VC_DIE]++;
	const bool ok = read_place(&p->b, y, &b), none = ok && b.off == UINT64_MAX;
	if (!begins(icf_vd_section(&d->in, ".debug_line"), &a, &from)) {
		if (none || (ok && a.off == b.off))
			return; /* of code that the linker left out */
	} else if (none) {
		/* The rows of a folded function are elsewhere. */
		const uint32_t u = icf_v_find(c, from);
		if (u == ICF_V_NONE || c->unit.data[u].flags & ICF_V_FOLDED)
			return;
	} else if (ok && begins(icf_vd_section(&d->out, ".debug_line"), &b, &to) &&
		   icf_vd_address(d, ICF_VD_POINT, from, to, &want))
		return;
	icf_vlog_bad(
		d->log, ICF_VC_DIE,
		"sequence: %s: expected the place of the same line number sequence, found 0x%llx",
		icf_vd_die(&p->a, name), ICF_VX(ok ? b.off : 0));
}
