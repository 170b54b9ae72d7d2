/* die.c: every DIE of a unit against the DIE at the same offset of the output.
 *
 * Both trees are walked side by side.  Attributes that hold no address must be equal; addresses,
 * ranges, location lists and expressions must be what the map makes of the input's.  What a folded
 * function's DIE may say follows the policy: its ranges and those of its scopes are empty, but for
 * its thunk; its addresses point into the kept copy. */
#include "tests/judges/judge.h"
#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif
#define MAX_ATTRS 96
#define MAX_DEPTH 1024

struct attrs {
	Dwarf_Attribute v[MAX_ATTRS];
	unsigned n;
};

/* Where the walk is: DEAD: inside of a function that the linker dropped (its addresses mean
 * nothing). */
struct place {
	Dwarf_Die a, b;
	bool dead;
	uint32_t folded; /* the folded unit of the function around, or JNONE */
};

static int collect(Dwarf_Attribute *attr, void *arg)
{
	struct attrs *s = arg;

	if (s->n < MAX_ATTRS)
		s->v[s->n++] = *attr;
	return DWARF_CB_OK;
}

static bool has(const struct attrs *s, unsigned code)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].code == code)
			return true;
	return false;
}

/* The attribute CODE, most often at the place GUESS. */
static Dwarf_Attribute *find(struct attrs *s, unsigned guess, unsigned code)
{
	if (guess < s->n && s->v[guess].code == code)
		return &s->v[guess];
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].code == code)
			return &s->v[i];
	return NULL;
}

static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *n = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));

	if (!n)
		n = dwarf_diename(die);
	return n ? n : "?";
}

#define AT_FMT "DIE %#" PRIx64 " (tag %#x, %s)"
#define AT(p)  (uint64_t) dwarf_dieoffset(&(p)->a), (unsigned)dwarf_tag(&(p)->a), die_name(&(p)->a)

enum { POINT, END, POINTER };

/* Is NEW what the address OLD becomes?  *WANT gets an address for the message. */
static bool address_ok(const struct judge *j, int how, uint64_t old, uint64_t new, uint64_t *want)
{
	const struct jmap *m = &j->map;
	uint64_t r;
	uint32_t u;

	*want = old;
	if (!jmap_exec_in(m, old))
		return new == old;
	if (how == END && jmap_end(m, old, want))
		return *want == new;
	u = jmap_find(m, old);
	if (u != JNONE) {
		*want = m->unit[u].new + (old - m->unit[u].old);
		if (*want == new)
			return true;
		if (old == m->unit[u].old) {
			/* The entry of a folded function is at its thunk.  A label at the end of a
			 * function lies there. */
			if (m->unit[u].folded && m->unit[u].thunk == new)
				return true;
			if (how == POINT && jmap_end(m, old, &r) && r == new)
				return true;
		}
		return m->unit[u].folded && j->policy == J_DROP && !jmap_exec_out(m, new);
	}
	if (jmap_end(m, old, &r) && r == new)
		return true;
	/* Between two units: nothing that has a place in the output. */
	return true;
}

static bool is_location(unsigned code)
{
	switch (code) {
	case DW_AT_location:
	case DW_AT_string_length:
	case DW_AT_return_addr:
	case DW_AT_data_member_location:
	case DW_AT_frame_base:
	case DW_AT_segment:
	case DW_AT_static_link:
	case DW_AT_use_location:
	case DW_AT_vtable_elem_location:
	case DW_AT_data_location:
	case DW_AT_call_value:
	case DW_AT_call_data_value:
	case DW_AT_call_data_location:
	case DW_AT_call_target:
	case DW_AT_call_target_clobbered:
	case DW_AT_GNU_call_site_value:
	case DW_AT_GNU_call_site_data_value:
	case DW_AT_GNU_call_site_target:
	case DW_AT_GNU_call_site_target_clobbered:
	case DW_AT_lower_bound:
	case DW_AT_upper_bound:
	case DW_AT_count:
	case DW_AT_byte_size:
	case DW_AT_allocated:
	case DW_AT_associated:
	case DW_AT_rank: return true;
	default: return false;
	}
}

static bool is_block(unsigned form)
{
	return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 ||
	       form == DW_FORM_block2 || form == DW_FORM_block4;
}

/* Two expressions; NULL if the second is the first after the map. */
static const char *expr_differ(struct judge *j, Dwarf_Attribute *x, Dwarf_Op *a, size_t na,
			       Dwarf_Attribute *y, Dwarf_Op *b, size_t nb)
{
	uint64_t want;

	if (na != nb)
		return "expressions of different length";
	for (size_t i = 0; i < na; i++) {
		if (a[i].atom != b[i].atom)
			return "different operations";
		if (a[i].offset != b[i].offset)
			return "operations at different offsets";
		switch (a[i].atom) {
		case DW_OP_addr:
			j->n_addrs++;
			if (!address_ok(j, POINTER, a[i].number, b[i].number, &want))
				return "DW_OP_addr is not mapped";
			break;
		case DW_OP_addrx:
		case DW_OP_constx:
		case DW_OP_GNU_addr_index:
		case DW_OP_GNU_const_index: {
			Dwarf_Attribute p, q;
			Dwarf_Addr va, vb;

			if (dwarf_getlocation_attr(x, &a[i], &p) ||
			    dwarf_getlocation_attr(y, &b[i], &q) || dwarf_formaddr(&p, &va) ||
			    dwarf_formaddr(&q, &vb)) {
				j->n_skipped++;
				break;
			}
			j->n_addrs++;
			if (va != vb && !address_ok(j, POINTER, va, vb, &want))
				return "DW_OP_addrx is not mapped";
			break;
		}
		case DW_OP_entry_value:
		case DW_OP_GNU_entry_value:
		case DW_OP_implicit_value:
			/* number: the length, number2: where the block is in memory */
			if (a[i].number != b[i].number ||
			    memcmp((void *)(uintptr_t)a[i].number2, (void *)(uintptr_t)b[i].number2,
				   a[i].number))
				return "different blocks";
			break;
		case DW_OP_const_type:
		case DW_OP_GNU_const_type: {
			const uint8_t *p = (void *)(uintptr_t)a[i].number2,
				      *q = (void *)(uintptr_t)b[i].number2;

			if (a[i].number != b[i].number || memcmp(p, q, *p + 1))
				return "different typed constants";
			break;
		}
		default:
			if (a[i].number != b[i].number || a[i].number2 != b[i].number2)
				return "different operands";
		}
	}
	return NULL;
}

struct entry {
	Dwarf_Addr lo, hi;
	Dwarf_Op *op;
	size_t n;
};

static long entries(Dwarf_Attribute *attr, struct entry **ret)
{
	Dwarf_Addr base;
	ptrdiff_t off = 0;
	long n = 0, cap = 0;
	struct entry e;

	*ret = NULL;
	while ((off = dwarf_getlocations(attr, off, &base, &e.lo, &e.hi, &e.op, &e.n)) > 0) {
		if (n == cap) {
			cap = cap * 2 + 16;
			*ret = realloc(*ret, cap * sizeof(e));
			if (!*ret)
				abort();
		}
		(*ret)[n++] = e;
	}
	return off < 0 ? -1 : n;
}

/* Reads one unsigned LEB128; false at the end. */
static bool uleb(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	unsigned shift = 0;

	for (*ret = 0; *p < end; shift += 7) {
		uint8_t b = *(*p)++;

		if (shift < 64)
			*ret |= (uint64_t)(b & 127) << shift;
		if (!(b & 128))
			return true;
	}
	return false;
}

/* The pairs of views of a list lie between DW_AT_GNU_locviews and the list itself. */
static void check_views(struct judge *j, struct place *p, Dwarf_Attribute *va, Dwarf_Attribute *la,
			Dwarf_Attribute *vb, Dwarf_Attribute *lb)
{
	Dwarf_Half version = 0;
	Dwarf_Word oa, ob, ea, eb;

	dwarf_cu_info(p->a.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	struct jbytes da = j->sec[0][version >= 5 ? JS_LOCLISTS : JS_LOC],
		      db = j->sec[1][version >= 5 ? JS_LOCLISTS : JS_LOC];

	if (la->form == DW_FORM_loclistx || dwarf_formudata(va, &oa) || dwarf_formudata(la, &ea) ||
	    !da.p || oa > ea || ea > da.n) {
		j->n_skipped++;
		return;
	}
	if (dwarf_formudata(vb, &ob) || dwarf_formudata(lb, &eb) || !db.p || ob > eb || eb > db.n) {
		judge_wrong(j, J_VIEW, AT_FMT ": views not before their list", AT(p));
		return;
	}
	const uint8_t *a = da.p + oa, *a_end = da.p + ea;
	const uint8_t *b = db.p + ob, *b_end = db.p + eb;
	uint64_t x, y;

	for (j->n_views++; a < a_end || b < b_end;) {
		bool ga = uleb(&a, a_end, &x), gb = uleb(&b, b_end, &y);

		if (ga && gb && x == y)
			continue;
		judge_wrong(j, J_VIEW, AT_FMT ": views differ", AT(p));
		return;
	}
}

static void check_list(struct judge *j, struct place *p, Dwarf_Attribute *x, Dwarf_Attribute *y,
		       bool views)
{
	struct entry *a, *b;
	long na = entries(x, &a), nb = entries(y, &b), k = 0;
	const struct jmap *m = &j->map;

	if (na < 0 || nb < 0) {
		if (nb < 0 && na >= 0)
			judge_wrong(j, J_LOC,
				    AT_FMT ": attribute %#x: the output's list is unreadable: %s",
				    AT(p), x->code, dwarf_errmsg(-1));
		j->n_skipped += na < 0;
		goto out;
	}
	for (long i = 0; i < na; i++) {
		uint64_t lo = a[i].lo, hi = a[i].hi;

		if (p->dead || (!(lo == 0 && hi == UINT64_MAX) && !jmap_exec_in(m, lo)))
			continue;
		j->n_locs++;
		/* One piece for each unit that the entry touches; an empty entry is one empty
		 * piece. */
		do {
			uint32_t u = jmap_find(m, lo);
			uint64_t want_lo = lo, want_hi = hi, to = hi;
			bool optional = false;
			const char *why = "no such entry";

			if (lo == 0 && hi == UINT64_MAX) {
				/* the default entry */
			} else if (u == JNONE) {
				/* Padding, or the end of a function: an empty entry there says
				 * nothing. */
				uint32_t next = lo < hi ? jmap_find(m, hi - 1) : JNONE;

				if (next == JNONE) {
					uint64_t r;

					if (k < nb && b[k].lo == b[k].hi && jmap_end(m, lo, &r) &&
					    r == b[k].lo)
						k++;
					break;
				}
				lo = m->unit[next].old > lo ? m->unit[next].old : hi;
				continue;
			} else {
				uint64_t end = m->unit[u].old + m->unit[u].size;

				to = hi < end ? hi : end;
				want_lo = m->unit[u].new + (lo - m->unit[u].old);
				want_hi = m->unit[u].new + (to - m->unit[u].old);
				optional = (m->unit[u].folded && j->policy != J_ALIAS) ||
					   (lo == hi && !views);
			}
			long try = nb;

			/* First the right place; then, in a folded unit, an entry that has no place
			 * in the program. */
			for (int lenient = 0; lenient < 2 && try == nb; lenient++) {
				if (lenient &&
				    !(u != JNONE && m->unit[u].folded && j->policy != J_ALIAS))
					break;
				for (try = k; try < nb; try++) {
					bool empty = b[try].lo == b[try].hi ||
						     !jmap_exec_out(m, b[try].lo);
					bool same = lenient ? empty
							    : b[try].lo == want_lo &&
								      b[try].hi == want_hi;
					uint64_t r;

					/* An empty entry at a boundary goes with either
					 * neighbour. */
					if (!same && lo == hi && b[try].lo == b[try].hi)
						same = jmap_end(m, lo, &r) && r == b[try].lo;
					if (same && !(why = expr_differ(j, x, a[i].op, a[i].n, y,
									b[try].op, b[try].n)))
						break;
					/* Output entries without a place in the program may be
					 * passed over; others may not. */
					if (!empty || (same && !optional)) {
						try = nb;
						break;
					}
				}
			}
			if (try < nb && !why) {
				k = try + 1;
			} else if (!optional) {
				judge_wrong(j, J_LOC,
					    AT_FMT
					    ": attribute %#x: entry %ld [%#" PRIx64 ",%#" PRIx64
					    ") should be [%#" PRIx64 ",%#" PRIx64
					    "): %s (next in the output: [%#" PRIx64 ",%#" PRIx64
					    "))",
					    AT(p), x->code, i, a[i].lo, a[i].hi, want_lo, want_hi,
					    why, k < nb ? b[k].lo : 0, k < nb ? b[k].hi : 0);
				goto out;
			}
			if (to == lo)
				break;
			lo = to;
		} while (lo < hi);
	}
	for (; k < nb && !p->dead; k++)
		if (b[k].lo < b[k].hi && jmap_exec_out(m, b[k].lo) &&
		    !(p->folded != JNONE && j->policy == J_DROP)) {
			judge_wrong(j, J_LOC,
				    AT_FMT ": attribute %#x: entry [%#" PRIx64 ",%#" PRIx64
					   ") is not expected",
				    AT(p), x->code, b[k].lo, b[k].hi);
			break;
		}
out:
	free(a);
	free(b);
}

static void check_ranges(struct judge *j, struct place *p)
{
	struct jset want = { 0 }, have = { 0 };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	int tag = dwarf_tag(&p->a);
	bool owner = tag == DW_TAG_subprogram || tag == DW_TAG_compile_unit ||
		     tag == DW_TAG_partial_unit;
	const char *why = NULL;
	char buf[512];

	while ((off = dwarf_ranges(&p->a, off, &base, &lo, &hi)) > 0)
		if (lo < hi && jmap_exec_in(&j->map, lo) && !p->dead)
			jset_expect(&want, j, lo, hi);
	if (off < 0) {
		j->n_skipped++;
		goto out;
	}
	off = 0;
	while ((off = dwarf_ranges(&p->b, off, &base, &lo, &hi)) > 0) {
		if (p->dead)
			continue;
		if (!jset_add(&have, j, lo, hi) && jmap_exec_out(&j->map, lo)) {
			snprintf(buf, sizeof(buf), "[%#" PRIx64 ",%#" PRIx64 ") leaves the code",
				 lo, hi);
			why = buf;
		}
	}
	if (off < 0) {
		snprintf(buf, sizeof(buf), "the output's ranges are unreadable: %s",
			 dwarf_errmsg(-1));
		why = buf;
	}
	if (!owner)
		want.n_thunks = 0;
	if (!why)
		why = jset_differ(&want, &have, j, owner && j->policy == J_OVERLAY, buf,
				  sizeof(buf));
	j->n_ranges++;
	if (why)
		judge_wrong(j, J_RANGE, AT_FMT ": %s", AT(p), why);
out:
	jset_free(&want);
	jset_free(&have);
}

/* Forms that hold no address.  false: the values differ. */
static bool value_same(struct judge *j, Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	switch (x->form) {
	case DW_FORM_flag:
	case DW_FORM_flag_present: {
		bool a, b;

		return !dwarf_formflag(x, &a) && !dwarf_formflag(y, &b) && a == b;
	}
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_sec_offset: {
		Dwarf_Word a, b;

		return !dwarf_formudata(x, &a) && !dwarf_formudata(y, &b) && a == b;
	}
	case DW_FORM_data16: return y->form == x->form && !memcmp(x->valp, y->valp, 16);
	case DW_FORM_ref_sig8: return y->form == x->form && !memcmp(x->valp, y->valp, 8);
	case DW_FORM_string:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index: {
		const char *a = dwarf_formstring(x), *b = dwarf_formstring(y);

		return (!a && !b) || (a && b && !strcmp(a, b));
	}
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
	case DW_FORM_ref_addr: {
		Dwarf_Die a, b;

		if (!dwarf_formref_die(x, &a))
			return !dwarf_formref_die(y, &b);
		return dwarf_formref_die(y, &b) && dwarf_dieoffset(&a) == dwarf_dieoffset(&b);
	}
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
	case DW_FORM_ref_sup4: return y->form == x->form && !memcmp(x->valp, y->valp, 4);
	case DW_FORM_ref_sup8: return y->form == x->form && !memcmp(x->valp, y->valp, 8);
	default:
		if (is_block(x->form)) {
			Dwarf_Block a, b;

			return !dwarf_formblock(x, &a) && !dwarf_formblock(y, &b) &&
			       a.length == b.length && !memcmp(a.data, b.data, a.length);
		}
		j->n_skipped++;
		return true;
	}
}

static bool is_address(unsigned form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx || form == DW_FORM_addrx1 ||
	       form == DW_FORM_addrx2 || form == DW_FORM_addrx3 || form == DW_FORM_addrx4 ||
	       form == DW_FORM_GNU_addr_index;
}

static void check_address(struct judge *j, struct place *p, Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	int tag = dwarf_tag(&p->a);
	bool unit_die = tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit ||
			tag == DW_TAG_type_unit || tag == DW_TAG_skeleton_unit;
	Dwarf_Addr a, b;
	uint64_t want;
	int how = POINT;

	/* The base of a unit is used up by the ranges, which are compared as sets. */
	if (unit_die && x->code == DW_AT_low_pc)
		return;
	if (dwarf_formaddr(x, &a) || dwarf_formaddr(y, &b)) {
		judge_wrong(j, J_ADDR, AT_FMT ": attribute %#x: not an address in the output",
			    AT(p), x->code);
		return;
	}
	if (x->code == DW_AT_call_return_pc ||
	    (tag == DW_TAG_GNU_call_site && x->code == DW_AT_low_pc))
		how = END;
	j->n_addrs++;
	if (p->dead || address_ok(j, how, a, b, &want))
		return;
	/* A scope of a folded function may begin anywhere in it, as long as it is empty. */
	if (p->folded != JNONE && x->code == DW_AT_low_pc && j->policy == J_DROP)
		return;
	judge_wrong(j, J_ADDR,
		    AT_FMT ": attribute %#x is %#" PRIx64 ", expected %#" PRIx64 " (was %#" PRIx64
			   ")",
		    AT(p), x->code, b, want, a);
}

static void check_die(struct judge *j, struct place *p)
{
	struct attrs sa = { 0 }, sb = { 0 };
	Dwarf_Addr lo;
	int tag = dwarf_tag(&p->a);

	j->n_dies++;
	if (dwarf_dieoffset(&p->a) != dwarf_dieoffset(&p->b) || tag != dwarf_tag(&p->b)) {
		judge_wrong(j, J_TREE, AT_FMT ": the output has tag %#x at %#" PRIx64, AT(p),
			    (unsigned)dwarf_tag(&p->b), (uint64_t)dwarf_dieoffset(&p->b));
		return;
	}
	dwarf_getattrs(&p->a, collect, &sa, 0);
	dwarf_getattrs(&p->b, collect, &sb, 0);
	if (tag == DW_TAG_subprogram && (has(&sa, DW_AT_low_pc) || has(&sa, DW_AT_ranges))) {
		Dwarf_Addr base, hi;

		p->dead = false;
		p->folded = JNONE;
		if (dwarf_lowpc(&p->a, &lo) && dwarf_ranges(&p->a, 0, &base, &lo, &hi) <= 0)
			lo = 0;
		if (!jmap_exec_in(&j->map, lo)) {
			p->dead = true;
		} else {
			uint32_t u = jmap_find(&j->map, lo);

			if (u != JNONE && j->map.unit[u].folded)
				p->folded = u;
		}
	}
	/* New attributes: ranges in place of high_pc, and fillers of the vendors' range. */
	for (unsigned i = 0; i < sb.n; i++)
		if (!has(&sa, sb.v[i].code) && sb.v[i].code < DW_AT_lo_user &&
		    sb.v[i].code != DW_AT_rnglists_base &&
		    !(sb.v[i].code == DW_AT_ranges && has(&sa, DW_AT_high_pc)))
			judge_wrong(j, J_ATTR, AT_FMT ": attribute %#x is new", AT(p),
				    sb.v[i].code);
	if (has(&sa, DW_AT_high_pc) || has(&sa, DW_AT_ranges))
		check_ranges(j, p);
	for (unsigned i = 0; i < sa.n; i++) {
		Dwarf_Attribute *x = &sa.v[i], *y = find(&sb, i, x->code);

		j->n_attrs++;
		if (!y && x->code == DW_AT_high_pc && has(&sb, DW_AT_ranges))
			continue; /* one range became several */
		if (!y) {
			judge_wrong(j, J_ATTR, AT_FMT ": attribute %#x is gone", AT(p), x->code);
			continue;
		}
		switch (x->code) {
		case DW_AT_high_pc:
		case DW_AT_ranges:
		case DW_AT_stmt_list:
		case DW_AT_LLVM_stmt_sequence:
		case DW_AT_addr_base:
		case DW_AT_str_offsets_base:
		case DW_AT_rnglists_base:
		case DW_AT_loclists_base:
		case DW_AT_GNU_addr_base:
		case DW_AT_GNU_ranges_base: continue;
		case DW_AT_GNU_locviews:
			if (p->folded == JNONE && !p->dead && has(&sa, DW_AT_location) &&
			    has(&sb, DW_AT_location))
				check_views(j, p, x, find(&sa, i - 1, DW_AT_location), y,
					    find(&sb, i - 1, DW_AT_location));
			continue;
		}
		if (is_address(x->form)) {
			check_address(j, p, x, y);
		} else if (is_location(x->code) && is_block(x->form)) {
			Dwarf_Op *a, *b;
			size_t na, nb;
			const char *why;

			if (dwarf_getlocation(x, &a, &na)) {
				if (!value_same(j, x, y))
					judge_wrong(j, J_ATTR,
						    AT_FMT ": attribute %#x has another value",
						    AT(p), x->code);
				continue;
			}
			why = dwarf_getlocation(y, &b, &nb) ? "unreadable"
			      : p->dead                     ? NULL
							    : expr_differ(j, x, a, na, y, b, nb);
			if (why)
				judge_wrong(j, J_LOC, AT_FMT ": attribute %#x: %s", AT(p), x->code,
					    why);
		} else if (is_location(x->code) &&
			   (x->form == DW_FORM_sec_offset || x->form == DW_FORM_loclistx ||
			    ((x->form == DW_FORM_data4 || x->form == DW_FORM_data8) &&
			     dwarf_whatattr(x) != DW_AT_data_member_location &&
			     dwarf_whatattr(x) != DW_AT_byte_size &&
			     dwarf_whatattr(x) != DW_AT_upper_bound &&
			     dwarf_whatattr(x) != DW_AT_lower_bound &&
			     dwarf_whatattr(x) != DW_AT_count))) {
			check_list(j, p, x, y, has(&sa, DW_AT_GNU_locviews));
		} else if (!value_same(j, x, y)) {
			judge_wrong(j, J_ATTR,
				    AT_FMT ": attribute %#x (form %#x) has another value", AT(p),
				    x->code, x->form);
		}
	}
}

void judge_unit(struct judge *j, Dwarf_Die *a, Dwarf_Die *b)
{
	struct place *stack = malloc(MAX_DEPTH * sizeof(*stack));
	int depth = 0;

	if (!stack)
		abort();
	stack[0] = (struct place){ .a = *a, .b = *b, .folded = JNONE };
	for (;;) {
		struct place *p = &stack[depth], *c = p + 1;

		check_die(j, p);
		int ra = depth + 1 < MAX_DEPTH ? dwarf_child(&p->a, &c->a) : 1;
		int rb = depth + 1 < MAX_DEPTH ? dwarf_child(&p->b, &c->b) : 1;

		if (ra == 0 && rb == 0) {
			c->dead = p->dead;
			c->folded = p->folded;
			depth++;
			continue;
		}
		if (ra != rb)
			judge_wrong(j, J_TREE, AT_FMT ": children differ", AT(p));
		for (; depth > 0; depth--) {
			p = &stack[depth];
			p->dead = stack[depth - 1].dead;
			p->folded = stack[depth - 1].folded;
			ra = dwarf_siblingof(&p->a, &p->a);
			rb = dwarf_siblingof(&p->b, &p->b);
			if (ra == 0 && rb == 0)
				break;
			if (ra != rb)
				judge_wrong(j, J_TREE, AT_FMT ": the output has other siblings",
					    AT(p));
		}
		if (depth == 0)
			break;
	}
	free(stack);
}
