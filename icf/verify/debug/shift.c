/* shift.c: ranges and lists whose code only moved.
 *
 * Nearly all lists describe code of one function, and OUT has the same entries, moved with the
 * function.  libdw takes long for them, since it keeps each expression and each list.  So both
 * lists are read here in step (DWARF 5, sections 2.6.2, 2.17.3, 7.25 and 7.29; DWARF 4, sections
 * 2.6.2 and 2.17.3).  A pair of entries is accepted if all code of IN's is in one unit, or if it is
 * empty and begins in one, if OUT's bounds are those of IN moved with the unit, and if the
 * expressions are the same bytes (plain.c), but for the images of addresses in DW_OP_addr.  loc.c
 * and range.c would find the same: nothing is there to be cut, joined, lost or left out.  That
 * units of OUT do not overlap is shown before (layout.c).
 *
 * Anything else is read by libdw from its beginning: entries between functions or outside of the
 * program, addresses by index, default entries, code of several units, broken lists.  So nothing is
 * called wrong here. */
#include "icf/verify/debug/shift.h"
#include "icf/verify/debug/plain.h"
#include "icf/verify/debug/seen.h"
#include <dwarf.h>

/* The address that entries of DIE's unit count from; false: it has another form than usual. */
static bool base_of(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Addr base = 0;
	if (dwarf_attr(die, DW_AT_low_pc, &attr) || dwarf_attr(die, DW_AT_entry_pc, &attr)) {
		if (attr.form != DW_FORM_addr || dwarf_formaddr(&attr, &base))
			return false;
	}
	*ret = base;
	return true;
}

void icf_vshift_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	Dwarf_Half va, vb;
	uint8_t aa, ab, oa, ob, ka, kb;
	d->list_version = 0;
	if (dwarf_cu_info(a->cu, &va, &ka, NULL, NULL, NULL, &aa, &oa) ||
	    dwarf_cu_info(b->cu, &vb, &kb, NULL, NULL, NULL, &ab, &ob) || va != vb || va < 3 ||
	    va > 5 || aa != 8 || ab != 8 || oa != ob || ka != kb ||
	    (ka != DW_UT_compile && ka != DW_UT_partial) || !base_of(a, &d->list_base[0]) ||
	    !base_of(b, &d->list_base[1]))
		return;
	d->list_version = va;
	d->offset_size = oa;
}

bool icf_vshift_begin(struct icf_vdebug *d, bool ranges, Dwarf_Attribute *x, Dwarf_Attribute *y,
		      struct icf_vshift *ret)
{
	uint64_t at[2];
	bool five = d->list_version >= 5;
	const Elf_Data *data[2] = { ranges ? d->in.ranges[five] : d->in.loc[five],
				    ranges ? d->out.ranges[five] : d->out.loc[five] };
	if (!d->list_version || !data[0] || !data[1] || x->form != y->form ||
	    (x->form != DW_FORM_sec_offset && (five || x->form != DW_FORM_data4)) ||
	    !icf_vd_place(d, x, &at[0]) || !icf_vd_place(d, y, &at[1]))
		return false;
	*ret = (struct icf_vshift){ .d = d, .ranges = ranges, .unit = ICF_V_NONE };
	for (int i = 0; i < 2; i++) {
		ret->r[i] = elfrw_rbuf(data[i]->d_buf, data[i]->d_size);
		elfrw_rbuf_seek(&ret->r[i], at[i]);
		ret->base[i] = d->list_base[i];
	}
	return elfrw_rbuf_ok(&ret->r[0]) && elfrw_rbuf_ok(&ret->r[1]);
}

enum entry { END, SPAN, STRANGE };

/* Reads up to the bounds of the next entry.  BASE: what offsets count from. */
static enum entry next_bounds(struct elfrw_rbuf *r, bool ranges, uint64_t *base, uint64_t *lo,
			      uint64_t *hi)
{
	while (elfrw_rbuf_ok(r)) {
		unsigned kind = elfrw_rbuf_u8(r);
		/* Ranges have no default entry. */
		switch (kind + (ranges && kind >= DW_RLE_base_address)) {
		case DW_LLE_end_of_list: return elfrw_rbuf_ok(r) ? END : STRANGE;
		case DW_LLE_base_address: *base = elfrw_rbuf_u64(r); continue;
		case DW_LLE_offset_pair:
			*lo = *base + elfrw_rbuf_uleb(r);
			*hi = *base + elfrw_rbuf_uleb(r);
			return SPAN;
		case DW_LLE_start_end:
			*lo = elfrw_rbuf_u64(r);
			*hi = elfrw_rbuf_u64(r);
			return SPAN;
		case DW_LLE_start_length:
			*lo = elfrw_rbuf_u64(r);
			*hi = *lo + elfrw_rbuf_uleb(r);
			return SPAN;
		default: return STRANGE;
		}
	}
	return STRANGE;
}

/* The same before DWARF 5. */
static enum entry next_pair(struct elfrw_rbuf *r, uint64_t *base, uint64_t *lo, uint64_t *hi)
{
	while (elfrw_rbuf_ok(r)) {
		*lo = elfrw_rbuf_u64(r);
		*hi = elfrw_rbuf_u64(r);
		if (*lo == UINT64_MAX) {
			*base = *hi;
			continue;
		}
		if (!*lo && !*hi)
			return elfrw_rbuf_ok(r) ? END : STRANGE;
		*lo += *base;
		*hi += *base;
		return SPAN;
	}
	return STRANGE;
}

/* Reads a ULEB number of at most two bytes from the low bytes of W, at *N of them, and moves *N. */
static inline bool short_uleb(uint64_t w, unsigned *n, uint64_t *ret)
{
	w >>= 8 * *n;
	*ret = w & 0x7f;
	if (w & 0x80)
		*ret |= w >> 1 & 0x3f80;
	*n += 1 + (w >> 7 & 1);
	return (w & 0x8080) != 0x8080;
}

/* The same as next_bounds() for both lists at once, if their entries have the same bytes but for
 * addresses, which nearly all have.  false: nothing was read. */
static bool next_alike(struct icf_vshift *s, enum entry *ret, uint64_t lo[2], uint64_t hi[2])
{
	const uint8_t *p = s->r[0].pos, *q = s->r[1].pos;
	uint64_t base[2] = { s->base[0], s->base[1] }, first, second;
	/* At most a base and a start of 9 bytes, and an end. */
	if (s->r[0].bad || s->r[1].bad || s->r[0].end - p < 32 || s->r[1].end - q < 32)
		return false;
	unsigned n = 0, kind = *p + (s->ranges && *p >= DW_RLE_base_address);
	if (*p == *q && kind == DW_LLE_base_address) {
		base[0] = elfrw_get64(p + 1);
		base[1] = elfrw_get64(q + 1);
		p += 9;
		q += 9;
		kind = *p + (s->ranges && *p >= DW_RLE_base_address);
	}
	if (*p != *q)
		return false;
	const bool pair = kind == DW_LLE_offset_pair;
	if (pair || kind == DW_LLE_start_length) {
		const uint64_t x = elfrw_get64(p + (pair ? 1 : 9)),
			       y = elfrw_get64(q + (pair ? 1 : 9));
		first = 0;
		if ((pair && !short_uleb(x, &n, &first)) || !short_uleb(x, &n, &second) ||
		    (x ^ y) << (64 - 8 * n) != 0)
			return false;
		for (int i = 0; i < 2; i++) {
			lo[i] = pair ? base[i] + first : elfrw_get64((i ? q : p) + 1);
			hi[i] = pair ? base[i] + second : lo[i] + second;
		}
		n += pair ? 1 : 9;
		*ret = SPAN;
	} else if (kind == DW_LLE_end_of_list) {
		n = 1;
		*ret = END;
	} else
		return false;
	for (int i = 0; i < 2; i++) {
		s->base[i] = base[i];
		s->r[i].pos = (i ? q : p) + n;
	}
	return true;
}

/* The unit of IN that holds [LO, HI), if its copy, or the one that it uses, is where OUT has
 * [NEW_LO, NEW_HI); or NONE. */
static uint32_t moved(struct icf_vdebug *d, uint64_t lo, uint64_t hi, uint64_t new_lo,
		      uint64_t new_hi)
{
	const struct icf_vclaim *c = &d->v->claim;
	/* Nearly always the function of the list before. */
	uint32_t u = d->near < c->unit.len ? d->near : 0;
	if (!c->unit.len)
		return ICF_V_NONE;
	if (lo < c->unit.data[u].old || lo >= c->unit.data[u].end)
		u = icf_v_find(c, lo);
	if (u == ICF_V_NONE)
		return u;
	d->near = u;
	const struct icf_vunit *x = &c->unit.data[u];
	return lo <= hi && hi <= x->end && new_lo == x->body + (lo - x->old) &&
			       new_hi - new_lo == hi - lo
		       ? u
		       : ICF_V_NONE;
}

bool icf_vshift_expr(struct icf_vdebug *d, const uint8_t *p, const uint8_t *q, size_t n)
{
	struct elfrw_rbuf r = elfrw_rbuf(p, n);
	uint64_t want, n_addresses = 0;
	/* Most are the same single operation without operands. */
	if (n == 1 && *p == *q && *p >= DW_OP_lit0 && *p <= DW_OP_reg31)
		return true;
	if (memcmp(p, q, n) == 0 && icf_vplain_expr(p, n, d->offset_size))
		return true;
	while (elfrw_rbuf_left(&r)) {
		const size_t at = elfrw_rbuf_off(&r);
		if (p[at] != DW_OP_addr) {
			if (!icf_vplain_operation(&r, d->offset_size) ||
			    memcmp(p + at, q + at, elfrw_rbuf_off(&r) - at) != 0)
				return false;
			continue;
		}
		elfrw_rbuf_u8(&r);
		const uint64_t a = elfrw_rbuf_u64(&r);
		if (!elfrw_rbuf_ok(&r) || q[at] != DW_OP_addr ||
		    !icf_vd_address(d, ICF_VD_POINTER, a, elfrw_get64(q + at + 1), &want))
			return false;
		n_addresses++;
	}
	d->log->checked[ICF_VC_DIE_ADDRESS] += n_addresses;
	return true;
}

/* Does the expression of OUT's entry mean the same as that of IN's? */
static bool same_expression(struct icf_vshift *s)
{
	const uint8_t *p[2];
	uint64_t n[2];
	for (int i = 0; i < 2; i++) {
		n[i] = s->d->list_version >= 5 ? elfrw_rbuf_uleb(&s->r[i])
					       : elfrw_rbuf_u16(&s->r[i]);
		p[i] = elfrw_rbuf_take(&s->r[i], n[i]);
	}
	if (p[0] && p[1] && n[0] == n[1] && icf_vshift_expr(s->d, p[0], p[1], n[0]))
		return true;
	/* Addresses differ, and operations that are not known here may have some. */
	s->wrong = p[0] && p[1] && !memchr(p[0], DW_OP_addr, n[0]) &&
		   (n[0] != n[1] || memcmp(p[0], p[1], n[0]) != 0);
	return false;
}

/* Is [LO, HI), which has code, in one unit of IN? */
static bool in_one_unit(const struct icf_vclaim *c, uint64_t lo, uint64_t hi)
{
	const uint32_t u = icf_v_find(c, lo);
	return u != ICF_V_NONE && lo < hi && hi <= c->unit.data[u].end &&
	       !(c->unit.data[u].flags & ICF_V_REMOVED);
}

enum icf_vshift_step icf_vshift_next(struct icf_vshift *s)
{
	struct icf_vdebug *d = s->d;
	uint64_t lo[2], hi[2];
	enum entry e[2];
	const bool alike = d->list_version >= 5 && next_alike(s, &e[0], lo, hi);
	if (alike)
		e[1] = e[0];
	for (int i = 0; i < 2 && !alike; i++)
		e[i] = d->list_version >= 5
			       ? next_bounds(&s->r[i], s->ranges, &s->base[i], &lo[i], &hi[i])
			       : next_pair(&s->r[i], &s->base[i], &lo[i], &hi[i]);
	if (e[0] != e[1] || e[0] == STRANGE || s->r[0].bad || s->r[1].bad)
		return ICF_VSHIFT_OTHER;
	if (e[0] == END)
		return ICF_VSHIFT_END;
	s->n++;
	s->lo = lo[0];
	s->empty = lo[0] == hi[0];
	if (s->ranges)
		return icf_vshift_range(d, lo[0], hi[0], lo[1], hi[1], &s->unit) ? ICF_VSHIFT_SAME
										 : ICF_VSHIFT_OTHER;
	s->unit = moved(d, lo[0], hi[0], lo[1], hi[1]);
	s->wrong = s->unit == ICF_V_NONE && d->policy != DWR_FOLDED_DROP &&
		   in_one_unit(&d->v->claim, lo[0], hi[0]);
	if (s->unit == ICF_V_NONE)
		return ICF_VSHIFT_OTHER;
	unsigned flags = d->v->claim.unit.data[s->unit].flags;
	if ((flags & ICF_V_REMOVED) || ((flags & ICF_V_FOLDED) && d->policy == DWR_FOLDED_DROP) ||
	    !same_expression(s))
		return ICF_VSHIFT_OTHER;
	return ICF_VSHIFT_SAME;
}

bool icf_vshift_one(struct icf_vshift *s, int side, bool *more, uint64_t *lo, uint64_t *hi)
{
	struct elfrw_rbuf *r = &s->r[side];
	const enum entry e = s->d->list_version >= 5 ? next_bounds(r, true, &s->base[side], lo, hi)
						     : next_pair(r, &s->base[side], lo, hi);
	*more = e != END || !elfrw_rbuf_ok(r);
	return e != STRANGE && elfrw_rbuf_ok(r);
}

bool icf_vshift_range(struct icf_vdebug *d, uint64_t a_lo, uint64_t a_hi, uint64_t b_lo,
		      uint64_t b_hi, uint32_t *unit)
{
	*unit = moved(d, a_lo, a_hi, b_lo, b_hi);
	if (*unit == ICF_V_NONE)
		return false;
	const struct icf_vunit *x = &d->v->claim.unit.data[*unit];
	/* A range without code loses nothing, and has no thunk. */
	if (a_lo == a_hi)
		return !(x->flags & ICF_V_REMOVED) && icf_v_out_exec(&d->v->claim, b_lo);
	return !(x->flags & ICF_V_FOLDED) && !x->thunk;
}

bool icf_vshift_is_wrong(struct icf_vdebug *d, const struct icf_vdie_pair *pair, Dwarf_Attribute *x,
			 Dwarf_Attribute *y)
{
	struct icf_vshift s;
	enum icf_vshift_step step;
	if (pair->dead || !icf_vshift_begin(d, false, x, y, &s))
		return false;
	while ((step = icf_vshift_next(&s)) == ICF_VSHIFT_SAME)
		continue;
	return step == ICF_VSHIFT_OTHER && s.wrong;
}

bool icf_vshift_list(struct icf_vdebug *d, const struct icf_vdie_pair *pair, uint64_t more,
		     Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	struct icf_vshift s;
	struct icf_vkey key;
	bool keyed = false;
	enum icf_vshift_step step;
	if (pair->dead || !icf_vshift_begin(d, false, x, y, &s))
		return false;
	while ((step = icf_vshift_next(&s)) == ICF_VSHIFT_SAME) {
		if (keyed || 2 * s.n <= ICF_VSEEN_LONG)
			continue;
		keyed = icf_vseen_list(d, ICF_VSEEN_LOCATIONS, more, x, y, &key);
		if (!keyed)
			return false;
		if (icf_vseen(d, &key))
			return true;
	}
	if (step == ICF_VSHIFT_OTHER)
		return false;
	d->log->checked[ICF_VC_LOCATION] += s.n;
	if (keyed)
		icf_vseen_add(d, &key);
	return true;
}
