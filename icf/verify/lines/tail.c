/* tail.c: finds the rows of a line table that cover no byte because they stand at the end of their
 * sequence, the first row of a sequence at the start of a function with a thunk, and the sequences
 * that cover nothing.
 *
 * libdw puts the rows of all sequences in one list by address and does not say which sequence a row
 * belongs to.  So a row at the end of one function looks like one at the start of the next.  Here
 * the opcodes are walked once more, for addresses and line numbers only.  The result is matched
 * with libdw's rows by order: by address, ends first, then as in the program.  If the two do not
 * agree, nothing is marked.  Cost: one walk, and a sort of the rows at such places. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/state.h"
#include <dwarf.h>
#include <stdlib.h>

struct row {
	uint64_t addr;
	size_t order;
	int line;
	bool end, empty, alone, first;
};

struct walk {
	const struct icf_v *v;
	VEC(struct row) row;
	VEC(uint64_t) at;       /* addresses where there are such rows */
	size_t from;            /* the first row of the sequence */
	struct icf_vrows *rows; /* gets the sequences that cover nothing */
	bool hides;             /* icf_vline_hides() */
	bool odd; /* the length of an operation is not that of its operands, which libdw accepts */
	bool nomem;
};

static void look_at(struct walk *w, uint64_t addr)
{
	uint64_t *at = VEC_PUSH(&w->at);
	if (at)
		*at = addr;
	else
		w->nomem = true;
}

static bool has_thunk(const struct icf_v *v, uint64_t addr)
{
	uint32_t u = v->claim.n_thunk ? icf_v_find(&v->claim, addr) : ICF_V_NONE;
	return u != ICF_V_NONE && v->claim.unit.data[u].old == addr && v->claim.unit.data[u].thunk;
}

static void push(struct walk *w, uint64_t addr, uint32_t line, bool end)
{
	struct row *r = VEC_PUSH(&w->row);
	if (!r) {
		w->nomem = true;
		return;
	}
	*r = (struct row){ .addr = addr, .order = w->row.len, .line = (int)line, .end = end };
	size_t last = w->row.len - 1, i = last;
	if (!end) {
		if ((last == w->from || r[-1].addr != addr) && has_thunk(w->v, addr)) {
			r->first = true;
			look_at(w, addr);
		}
		return;
	}
	while (i > w->from && w->row.data[i - 1].addr == addr)
		i--;
	if (i < last)
		look_at(w, addr);
	/* A sequence of only empty rows is a function without code; it stays. */
	const bool alone = i == w->from;
	uint64_t *hollow = alone ? VEC_PUSH(&w->rows->hollow) : NULL;
	w->nomem |= alone && !hollow;
	if (hollow)
		*hollow = addr;
	w->row.data[last].alone = alone && i < last;
	for (; i < last; i++) {
		w->row.data[i].alone = alone;
		w->row.data[i].empty = !alone;
		w->row.data[i].first &= alone;
	}
	w->from = w->row.len;
}

/* Handles the extended opcode at R, behind its 0 byte, at *ADDR and *LINE; false: it is cut off. */
static bool extended(struct walk *w, struct elfrw_rbuf *r, uint64_t *addr, uint32_t *line)
{
	uint64_t n = elfrw_rbuf_uleb(r);
	const uint8_t *ext = elfrw_rbuf_take(r, n);
	if (!ext || !n)
		return false;
	struct elfrw_rbuf operand = elfrw_rbuf(ext + 1, n - 1);
	if (*ext == DW_LNE_set_address)
		elfrw_rbuf_skip(&operand, 8);
	else if (*ext == DW_LNE_set_discriminator)
		elfrw_rbuf_uleb(&operand);
	w->odd |= *ext <= DW_LNE_set_discriminator && *ext != DW_LNE_define_file &&
		  (operand.bad || elfrw_rbuf_left(&operand));
	if (*ext == DW_LNE_end_sequence) {
		push(w, *addr, *line, true);
		*addr = 0;
		*line = 1;
	} else if (*ext == DW_LNE_set_address && n <= 9)
		*addr = elfrw_get_le(ext + 1, (unsigned)n - 1);
	if (icf_vline_hides(ext, n))
		w->hides = true;
	else
		w->odd |= *ext > DW_LNE_set_discriminator;
	return true;
}

/* Walks the table at R (DWARF 2 to 5, section 6.2); false: it cannot be read here. */
static bool walk(struct walk *w, struct elfrw_rbuf r)
{
	uint64_t size = elfrw_rbuf_u32(&r);
	bool wide = size == 0xffffffff;
	if (wide)
		size = elfrw_rbuf_u64(&r);
	const uint8_t *unit = elfrw_rbuf_take(&r, size);
	if (!unit)
		return false;
	r = elfrw_rbuf(unit, size);
	unsigned version = elfrw_rbuf_u16(&r);
	if (version >= 5)
		elfrw_rbuf_u16(&r);
	uint64_t header = wide ? elfrw_rbuf_u64(&r) : elfrw_rbuf_u32(&r);
	uint64_t program = elfrw_rbuf_off(&r) + header;
	unsigned step = elfrw_rbuf_u8(&r), max_ops = version >= 4 ? elfrw_rbuf_u8(&r) : 1;
	elfrw_rbuf_u8(&r);
	int line_base = (int8_t)elfrw_rbuf_u8(&r);
	unsigned line_range = elfrw_rbuf_u8(&r), base = elfrw_rbuf_u8(&r);
	const uint8_t *length = elfrw_rbuf_take(&r, base ? base - 1 : 0);
	if (r.bad || version < 2 || version > 5 || max_ops != 1 || !line_range || !length ||
	    header > size)
		return false;
	elfrw_rbuf_seek(&r, program);
	uint64_t addr = 0;
	uint32_t line = 1;
	while (!r.bad && elfrw_rbuf_left(&r) && !w->nomem) {
		unsigned op = elfrw_rbuf_u8(&r);
		if (op >= base) {
			addr += (op - base) / line_range * step;
			line += (uint32_t)(line_base + (int)((op - base) % line_range));
			push(w, addr, line, false);
		} else if (op == 0) {
			if (!extended(w, &r, &addr, &line))
				return false;
		} else if (op == DW_LNS_copy)
			push(w, addr, line, false);
		else if (op == DW_LNS_advance_pc)
			addr += elfrw_rbuf_uleb(&r) * step;
		else if (op == DW_LNS_advance_line)
			line += (uint32_t)elfrw_rbuf_sleb(&r);
		else if (op == DW_LNS_const_add_pc)
			addr += (255 - base) / line_range * step;
		else if (op == DW_LNS_fixed_advance_pc)
			addr += elfrw_rbuf_u16(&r);
		else
			for (unsigned i = length[op - 1]; i; i--)
				elfrw_rbuf_uleb(&r);
	}
	return !r.bad;
}

static int by_place(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->end != b->end)
		return a->end ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Marks the rows R[0 .. N) of one address; false: libdw has others. */
static bool mark(const struct row *r, size_t n, struct icf_vrows *rows)
{
	size_t lo = LOWER_BOUND(0, rows->v.len, mid, rows->v.data[mid].addr < r->addr);
	for (size_t i = 0; i < n; i++) {
		struct icf_vrow *have = lo + i < rows->v.len ? &rows->v.data[lo + i] : NULL;
		/* libdw turns the very last row into an end. */
		if (!have || have->addr != r->addr || have->line != r[i].line ||
		    (((have->flags & ICF_VROW_END) != 0) != r[i].end && lo + i + 1 < rows->v.len))
			return false;
	}
	if (lo + n < rows->v.len && rows->v.data[lo + n].addr == r->addr)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct icf_vrow *have = &rows->v.data[lo + i];
		have->empty = r[i].empty;
		have->alone = r[i].alone;
		have->first = r[i].first;
		/* The end of its sequence is at the same address. */
		if ((r[i].empty || r[i].alone) && !r[i].end)
			have->flags &= ~(unsigned)ICF_VROW_END;
	}
	return true;
}

struct elfrw_err *icf_vd_line_tails(const struct icf_v *v, const Elf_Data *section, uint64_t off,
				    struct icf_vrows *rows)
{
	struct walk w = { .v = v, .rows = rows };
	struct elfrw_rbuf r =
		elfrw_rbuf(section ? section->d_buf : NULL, section ? section->d_size : 0);
	elfrw_rbuf_seek(&r, off);
	rows->hollow.len = 0;
	bool ok = !r.bad && walk(&w, r);
	rows->told = ok;
	rows->walked = ok;
	rows->odd = !ok || w.odd;
	rows->hides = w.hides;
	if (ok && w.at.len && !w.nomem) {
		size_t n = 0;
		qsort(w.at.data, w.at.len, sizeof *w.at.data, elfrw_u64_order);
		for (size_t i = 0; i < w.row.len; i++)
			if (bsearch(&w.row.data[i].addr, w.at.data, w.at.len, sizeof *w.at.data,
				    elfrw_u64_order))
				w.row.data[n++] = w.row.data[i];
		qsort(w.row.data, n, sizeof *w.row.data, by_place);
		for (size_t i = 0, k; i < n; i = k) {
			for (k = i; k < n && w.row.data[k].addr == w.row.data[i].addr; k++)
				;
			rows->told &= mark(w.row.data + i, k - i, rows);
		}
	}
	VEC_FREE(&w.row);
	VEC_FREE(&w.at);
	return w.nomem ? &elfrw_err_nomem : NULL;
}

bool icf_vrows_next_empty(const struct icf_vrows *rows, size_t *at, uint64_t *addr)
{
	if (rows->walked && *at < rows->hollow.len)
		*addr = rows->hollow.data[(*at)++];
	else if (rows->walked)
		return false;
	else {
		bool open = *at && !(rows->v.data[*at - 1].flags & ICF_VROW_END);
		for (; *at < rows->v.len && (open || !(rows->v.data[*at].flags & ICF_VROW_END));
		     ++*at)
			open = !(rows->v.data[*at].flags & ICF_VROW_END);
		if (*at == rows->v.len)
			return false;
		*addr = rows->v.data[(*at)++].addr;
	}
	return true;
}

void icf_vrows_check_lengths(struct icf_vdebug *d, uint64_t cu, const struct icf_vrows *in,
			     const struct icf_vrows *out)
{
	if (out->odd && !(in && in->odd))
		icf_vlog_bad(
			d->log, ICF_VC_LINE,
			"operation: unit 0x%llx: expected each as long as its operands, found another",
			ICF_VX(cu));
	if (out->hides && in && !in->hides)
		icf_vlog_bad(
			d->log, ICF_VC_LINE,
			"operation: unit 0x%llx: expected those of the input, found one that hides rows",
			ICF_VX(cu));
}
