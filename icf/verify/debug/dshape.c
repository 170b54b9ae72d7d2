/* dshape.c: the tables of debug information that consist of sets with headers: .debug_aranges,
 * .debug_rnglists, .debug_loclists, .debug_addr, .debug_line, .debug_abbrev; the headers of units.
 *
 * Readers that come from a DIE skip the headers; others walk from header to header.  So the N-th
 * header of OUT must say the same as the N-th of IN.  If the sets of IN fill their section, those
 * of OUT must, too.  Each header is examined once, and each tuple of .debug_aranges, since libdw
 * would return one list without saying what it skipped. */
#include "elfrw/base/search.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/set.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct tuple {
	uint64_t lo, len;
};

/* A set of .debug_aranges (DWARF 5, section 6.1.2). */
struct set {
	unsigned version, address_size, segment_size;
	uint64_t cu;
	VEC(struct tuple) tuple;
	bool tidy; /* zeros before the tuples, a pair of zeros behind them, and nothing else */
	bool nomem;
};

/* Reads the length field and the bytes that it counts; false: there are none, or they do not
 * fit. */
static bool next_set(struct elfrw_rbuf *r, bool *wide, struct elfrw_rbuf *body)
{
	uint64_t size = elfrw_rbuf_u32(r);
	*wide = size == 0xffffffff;
	if (*wide)
		size = elfrw_rbuf_u64(r);
	const uint8_t *p = elfrw_rbuf_ok(r) ? elfrw_rbuf_take(r, size) : NULL;
	*body = elfrw_rbuf(p, p ? size : 0);
	return p != NULL;
}

/* Skips zeros between sets, which linkers may leave; false: there were some. */
static bool skip_zeros(struct elfrw_rbuf *r)
{
	bool none = true;
	while (elfrw_rbuf_left(r) >= 4 && elfrw_get32(r->pos) == 0) {
		elfrw_rbuf_skip(r, 4);
		none = false;
	}
	return none;
}

static bool read_set(struct elfrw_rbuf *r, struct set *s)
{
	struct elfrw_rbuf b;
	bool wide;
	s->tuple.len = 0;
	s->tidy = true;
	if (!next_set(r, &wide, &b))
		return false;
	s->version = elfrw_rbuf_u16(&b);
	s->cu = wide ? elfrw_rbuf_u64(&b) : elfrw_rbuf_u32(&b);
	s->address_size = elfrw_rbuf_u8(&b);
	s->segment_size = elfrw_rbuf_u8(&b);
	if (!elfrw_rbuf_ok(&b) || (s->address_size != 4 && s->address_size != 8) || s->segment_size)
		return false;
	/* Tuples are aligned to their size, relative to the length field. */
	for (uint64_t at = elfrw_rbuf_off(&b) + (wide ? 12 : 4); at & (2 * s->address_size - 1);
	     at++)
		s->tidy &= elfrw_rbuf_u8(&b) == 0;
	for (;;) {
		struct tuple t = { .lo = elfrw_rbuf_uint(&b, s->address_size) };
		t.len = elfrw_rbuf_uint(&b, s->address_size);
		if (!elfrw_rbuf_ok(&b)) {
			s->tidy = false;
			return true;
		}
		if (!t.lo && !t.len)
			break;
		struct tuple *slot = VEC_PUSH(&s->tuple);
		if (!slot)
			return !(s->nomem = true);
		*slot = t;
	}
	s->tidy &= !elfrw_rbuf_left(&b);
	return true;
}

static int tuple_order(const void *a, const void *b)
{
	const struct tuple *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->len < y->len ? -1 : x->len > y->len;
}

/* Is the range the single byte of the artificial unit? */
static bool is_trap(const struct icf_v *v, uint64_t lo, uint64_t len)
{
	return v->claim.has_note && v->claim.note.map.trap_byte &&
	       lo == v->claim.note.map.trap_byte && len == 1;
}

/* Compares the tuples of A in IN and B in OUT, which describe the same unit. */
static void check_tuples(struct icf_vdebug *d, struct set *a, struct set *b)
{
	struct icf_vset want = { 0 }, have = { 0 };
	char buf[200];
	bool fits = true;
	if (a->tuple.len)
		qsort(a->tuple.data, a->tuple.len, sizeof *a->tuple.data, tuple_order);
	for (size_t i = 0; i < a->tuple.len; i++) {
		const struct tuple *t = &a->tuple.data[i];
		if (t->len && icf_v_in_exec(&d->v->claim, t->lo))
			icf_vset_expect(&want, d, t->lo, t->lo + t->len);
	}
	for (size_t i = 0; i < b->tuple.len; i++) {
		const struct tuple *t = &b->tuple.data[i];
		fits &= !t->len || icf_vset_add(&have, d, t->lo, t->lo + t->len) ||
			(a->tuple.len &&
			 bsearch(t, a->tuple.data, a->tuple.len, sizeof *t, tuple_order) &&
			 !icf_v_in_exec(&d->v->claim, t->lo));
	}
	const char *why =
		icf_vset_differ(&want, &have, d, d->policy == DWR_FOLDED_OVERLAY, buf, sizeof buf);
	if (!why && !fits)
		why = "expected the bounds of code, found fill";
	d->log->checked[ICF_VC_ARANGE]++;
	if (why)
		icf_vlog_bad(d->log, ICF_VC_ARANGE, "ranges: .debug_aranges, unit 0x%llx: %s",
			     ICF_VX(a->cu), why);
	d->log->nomem |= want.nomem | have.nomem;
	icf_vset_free(&want);
	icf_vset_free(&have);
}

void icf_vd_aranges(struct icf_vdebug *d)
{
	const Elf_Data *in = icf_vd_section(&d->in, ".debug_aranges"),
		       *out = icf_vd_section(&d->out, ".debug_aranges");
	struct elfrw_rbuf r = elfrw_rbuf(in ? in->d_buf : NULL, in ? in->d_size : 0),
			  q = elfrw_rbuf(out ? out->d_buf : NULL, out ? out->d_size : 0);
	struct set a = { 0 }, b = { 0 };
	bool extra = false;
	while (elfrw_rbuf_left(&r)) {
		uint64_t from = elfrw_rbuf_off(&r), to = elfrw_rbuf_off(&q);
		if (!skip_zeros(&r))
			skip_zeros(&q);
		if (!read_set(&r, &a))
			goto out; /* no reader can continue from here */
		if (!read_set(&q, &b) || a.version != b.version || a.cu != b.cu ||
		    a.address_size != b.address_size) {
			icf_vlog_bad(
				d->log, ICF_VC_ARANGE,
				"header: .debug_aranges+0x%llx (-> 0x%llx): expected a set of the same unit, found another",
				ICF_VX(from), ICF_VX(to));
			goto out;
		}
		bool same =
			elfrw_rbuf_off(&r) - from == elfrw_rbuf_off(&q) - to &&
			memcmp((const uint8_t *)in->d_buf + from, (const uint8_t *)out->d_buf + to,
			       elfrw_rbuf_off(&r) - from) == 0;
		if (!b.tidy && !same)
			icf_vlog_bad(
				d->log, ICF_VC_ARANGE,
				"set: .debug_aranges+0x%llx, unit 0x%llx: expected it to end with zeros, found more",
				ICF_VX(to), ICF_VX(b.cu));
		check_tuples(d, &a, &b);
	}
	/* The artificial unit's. */
	while (elfrw_rbuf_left(&q)) {
		uint64_t at = elfrw_rbuf_off(&q);
		d->log->checked[ICF_VC_ARANGE]++;
		if (!read_set(&q, &b) || extra || b.version != 2 || !d->v->claim.has_note ||
		    b.cu != d->v->claim.note.artificial_unit || !b.tidy || b.address_size != 8 ||
		    b.tuple.len != 1 || !is_trap(d->v, b.tuple.data[0].lo, b.tuple.data[0].len)) {
			icf_vlog_bad(
				d->log, ICF_VC_ARANGE,
				"set: .debug_aranges+0x%llx: expected the artificial unit's one byte or nothing, found something else",
				ICF_VX(at));
			break;
		}
		extra = true;
	}
out:
	d->log->nomem |= a.nomem | b.nomem;
	VEC_FREE(&a.tuple);
	VEC_FREE(&b.tuple);
}

/* Bytes of the header behind the length that must not change: version, sizes, and the number of
 * offsets behind it (DWARF 5, sections 7.27 to 7.29). */
static size_t header_size(const char *name)
{
	return strcmp(name, ".debug_addr") == 0 ? 4 : strcmp(name, ".debug_line") == 0 ? 2 : 8;
}

/* Compares the headers of section NAME, one by one. */
static void check_headers(struct icf_vdebug *d, const char *name)
{
	const Elf_Data *in = icf_vd_section(&d->in, name), *out = icf_vd_section(&d->out, name);
	struct elfrw_rbuf r = elfrw_rbuf(in ? in->d_buf : NULL, in ? in->d_size : 0),
			  q = elfrw_rbuf(out ? out->d_buf : NULL, out ? out->d_size : 0), a, b;
	size_t n = header_size(name);
	bool full = true, x, y;
	unsigned more = 0;
	while (elfrw_rbuf_left(&r)) {
		full &= skip_zeros(&r);
		bool there = next_set(&r, &x, &a) && elfrw_rbuf_left(&a) >= n;
		/* From here on there is something else, which no reader can skip. */
		if (!there)
			return;
		d->log->checked[ICF_VC_INDEX]++;
		bool tight = skip_zeros(&q);
		if (!next_set(&q, &y, &b) || elfrw_rbuf_left(&b) < n ||
		    memcmp(a.pos, b.pos, n) != 0 || (full && !tight)) {
			icf_vlog_bad(
				d->log, ICF_VC_INDEX,
				"header: %s, the one at 0x%llx: expected the same, behind the one before, found another",
				name, ICF_VX((uint64_t)(a.pos - (const uint8_t *)in->d_buf)));
			return;
		}
	}
	if (!full)
		return;
	/* For the artificial unit, or for units that had no list. */
	while (elfrw_rbuf_left(&q)) {
		static const uint8_t plain[8] = { 5, 0, 8 }; /* version 5, no offsets */
		if (!next_set(&q, &y, &b) || elfrw_rbuf_left(&b) < n || ++more > 1 ||
		    (n == sizeof plain && memcmp(b.pos, plain, n) != 0)) {
			icf_vlog_bad(
				d->log, ICF_VC_INDEX,
				"end: %s: expected the headers of the input and one more at most, found bytes behind them",
				name);
			return;
		}
	}
}

void icf_vd_headers(struct icf_vdebug *d)
{
	static const char *const name[] = { ".debug_rnglists", ".debug_loclists", ".debug_addr",
					    ".debug_line" };
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		check_headers(d, name[i]);
}

/* libdw reads the header of a unit without saying what is in each of its fields.  So the bytes are
 * compared, except for the place of the abbreviations (DWARF 5, section 7.5.1): length, version,
 * then (since version 5) the type and the address size; the place of the abbreviations; before
 * version 5 the address size; then what depends on the type. */
static bool same_header(Dwarf_Die *a, Dwarf_Die *b, uint64_t n)
{
	const uint8_t *p = (const uint8_t *)a->addr - n, *q = (const uint8_t *)b->addr - n;
	if (n < 11)
		return false;
	uint64_t wide = elfrw_get32(p) == 0xffffffff, at = wide ? 12 : 4,
		 place = at + (elfrw_get_le(p + at, 2) >= 5 ? 4 : 2), end = place + (wide ? 8 : 4);
	return end <= n && memcmp(p, q, place) == 0 && memcmp(p + end, q + end, n - end) == 0;
}

void icf_vd_header(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	uint64_t n = dwarf_cuoffset(a);
	if (dwarf_cuoffset(b) != n || !same_header(a, b, n))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"header: unit 0x%llx: expected the same length, version, type and signature, found others",
			ICF_VX(dwarf_dieoffset(a)));
}

/* Skips a set of R and the zeros before it, which linkers leave.  *BASE: where its offsets begin,
 * behind its header of 8 bytes and a length (DWARF 5, sections 7.28 and 7.29). */
static bool next_base(struct elfrw_rbuf *r, uint64_t *base)
{
	uint64_t size = 0;
	while (!size && elfrw_rbuf_left(r) >= 4) {
		size = elfrw_rbuf_u32(r);
		if (size == 0xffffffff)
			size = elfrw_rbuf_u64(r);
	}
	*base = elfrw_rbuf_off(r) + 8;
	return elfrw_rbuf_take(r, size) && size >= 8;
}

/* The bases of both files, in pairs. */
static void read_bases(struct icf_vdebug *d, const Elf_Data *in, const Elf_Data *out,
		       struct icf_vlist_bases *ret)
{
	struct elfrw_rbuf r = elfrw_rbuf(in ? in->d_buf : NULL, in ? in->d_size : 0),
			  q = elfrw_rbuf(out ? out->d_buf : NULL, out ? out->d_size : 0);
	struct icf_vlist_base x;
	ret->known = true;
	while (next_base(&r, &x.in) && next_base(&q, &x.out)) {
		struct icf_vlist_base *slot = VEC_PUSH(&ret->v);
		if (!slot) {
			d->log->nomem = true;
			return;
		}
		*slot = x;
	}
}

/* libdw asks for a base only if an index is read with it.  A base must be that of the same set of
 * lists as IN's.  If it is that of none, it is left to the lists that are read with it. */
bool icf_vd_same_base(struct icf_vdebug *d, bool ranges, Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	struct icf_vlist_bases *t = &d->bases[ranges];
	Dwarf_Word a, b;
	if (!t->known)
		read_bases(d, ranges ? d->in.ranges[1] : d->in.loc[1],
			   ranges ? d->out.ranges[1] : d->out.loc[1], t);
	if (dwarf_formudata(x, &a) || dwarf_formudata(y, &b))
		return false;
	size_t i = LOWER_BOUND(0, t->v.len, mid, t->v.data[mid].in < a);
	return i == t->v.len || t->v.data[i].in != a || t->v.data[i].out == b;
}

struct decl_attr {
	uint64_t name, form;
	int64_t value; /* DW_FORM_implicit_const */
};

/* A declaration of an abbreviation (DWARF 5, section 7.5.3). */
struct decl {
	uint64_t code, tag; /* code 0: the end of a table */
	unsigned children;
	VEC(struct decl_attr) attr; /* without attributes that hold places of code */
	bool nomem;
};

/* May the attribute be stated in another way?  A range can become several. */
static bool is_place(uint64_t name)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_entry_pc:
	case DW_AT_ranges:
	case DW_AT_rnglists_base:
	case DW_AT_hi_user: /* fills a gap */ return true;
	default: return false;
	}
}

static bool read_decl(struct elfrw_rbuf *r, struct decl *d)
{
	d->attr.len = 0;
	d->tag = d->children = 0;
	d->code = elfrw_rbuf_uleb(r);
	if (!d->code)
		return elfrw_rbuf_ok(r);
	d->tag = elfrw_rbuf_uleb(r);
	d->children = elfrw_rbuf_u8(r);
	for (;;) {
		struct decl_attr a = { .name = elfrw_rbuf_uleb(r) };
		a.form = elfrw_rbuf_uleb(r);
		if (a.form == DW_FORM_implicit_const)
			a.value = elfrw_rbuf_sleb(r);
		if (!elfrw_rbuf_ok(r))
			return false;
		if (!a.name && !a.form)
			return true;
		struct decl_attr *slot = is_place(a.name) ? NULL : VEC_PUSH(&d->attr);
		if (!slot && !is_place(a.name))
			return !(d->nomem = true);
		if (slot)
			*slot = a;
	}
}

static bool same_decl(const struct decl *a, const struct decl *b)
{
	if (a->code != b->code || a->tag != b->tag || a->children != b->children ||
	    a->attr.len != b->attr.len)
		return false;
	for (size_t i = 0; i < a->attr.len; i++) {
		const struct decl_attr *x = &a->attr.data[i], *y = &b->attr.data[i];
		if (x->name != y->name || x->form != y->form || x->value != y->value)
			return false;
	}
	return true;
}

/* .debug_abbrev: the declarations of IN in order, used or not (libdw takes any byte except 1 for
 * "no children"); then more. */
void icf_vd_abbrevs(struct icf_vdebug *d)
{
	const Elf_Data *in = icf_vd_section(&d->in, ".debug_abbrev"),
		       *out = icf_vd_section(&d->out, ".debug_abbrev");
	struct elfrw_rbuf r = elfrw_rbuf(in ? in->d_buf : NULL, in ? in->d_size : 0),
			  q = elfrw_rbuf(out ? out->d_buf : NULL, out ? out->d_size : 0);
	struct decl a = { 0 }, b = { 0 };
	bool ok = true, ends = true;
	while (ok && elfrw_rbuf_left(&r)) {
		uint64_t at = elfrw_rbuf_off(&r);
		if (!read_decl(&r, &a))
			goto out; /* something else from here on */
		d->log->checked[ICF_VC_INDEX]++;
		ok = read_decl(&q, &b) && same_decl(&a, &b);
		if (!ok && !b.nomem)
			icf_vlog_bad(
				d->log, ICF_VC_INDEX,
				"abbreviation: .debug_abbrev+0x%llx: expected the same, found another",
				ICF_VX(at));
	}
	while (ok && elfrw_rbuf_left(&q)) {
		uint64_t at = elfrw_rbuf_off(&q);
		ok = read_decl(&q, &b) && b.children <= DW_CHILDREN_yes;
		ends = !b.code;
		if (!ok && !b.nomem)
			icf_vlog_bad(
				d->log, ICF_VC_INDEX,
				"abbreviation: .debug_abbrev (-> 0x%llx): expected one, found something else",
				ICF_VX(at));
	}
	if (ok && !ends)
		icf_vlog_bad(d->log, ICF_VC_INDEX,
			     "end: .debug_abbrev: expected a table to end there, found none");
out:
	d->log->nomem |= a.nomem | b.nomem;
	VEC_FREE(&a.attr);
	VEC_FREE(&b.attr);
}
