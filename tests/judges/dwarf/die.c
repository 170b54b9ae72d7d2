/* die.c: does each DIE of the output say what the DIE at the same offset of the input says?
 *
 * Neither file is the measure of the other.  Each is translated, by the same reader, into terms
 * that do not depend on where code is: an address becomes "so many bytes behind the start of that
 * function" (of the one whose code it uses), an attribute a few tokens of such terms, a list of
 * locations a set of (bytes of a function, tokens of the expression).  Then the tokens are
 * compared. Which attributes hold what, and in which forms: DWARF 5, sections 2.6, 7.5 and 7.7;
 * DWARF 2 to 4, the same sections.  What a folded function's DIE may say follows the policy: ranges
 * that are its own are gone, but for its thunk. */
#include "tests/judges/dwarf/judge.h"
#include <dwarf.h>
#include "tests/judges/dwarf/term.h"
#include <stdlib.h>
#include <string.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif

/* --- attributes --- */

/* What an attribute can hold besides what its form says (section 7.5.4): BLOCK: an expression in a
 * form of bytes; LIST: an offset that is a list of locations; PAST: an address behind a call. */
enum { BLOCK = 1, LIST = 2, PAST = 4 };

static const struct {
	uint16_t code;
	uint8_t holds;
} attributes[] = {
	{ DW_AT_location, BLOCK | LIST },
	{ DW_AT_string_length, BLOCK | LIST },
	{ DW_AT_return_addr, BLOCK | LIST },
	{ DW_AT_data_member_location, BLOCK },
	{ DW_AT_frame_base, BLOCK | LIST },
	{ DW_AT_segment, BLOCK | LIST },
	{ DW_AT_static_link, BLOCK | LIST },
	{ DW_AT_use_location, BLOCK | LIST },
	{ DW_AT_vtable_elem_location, BLOCK | LIST },
	{ DW_AT_data_location, BLOCK },
	{ DW_AT_lower_bound, BLOCK },
	{ DW_AT_upper_bound, BLOCK },
	{ DW_AT_count, BLOCK },
	{ DW_AT_byte_size, BLOCK },
	{ DW_AT_allocated, BLOCK },
	{ DW_AT_associated, BLOCK },
	{ DW_AT_rank, BLOCK },
	{ DW_AT_call_value, BLOCK },
	{ DW_AT_call_data_value, BLOCK },
	{ DW_AT_call_data_location, BLOCK },
	{ DW_AT_call_target, BLOCK },
	{ DW_AT_call_target_clobbered, BLOCK },
	{ DW_AT_call_return_pc, PAST },
	{ DW_AT_GNU_call_site_value, BLOCK },
	{ DW_AT_GNU_call_site_data_value, BLOCK },
	{ DW_AT_GNU_call_site_target, BLOCK },
	{ DW_AT_GNU_call_site_target_clobbered, BLOCK },
};

static unsigned holds(unsigned code)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].code == code)
			return attributes[i].holds;
	return 0;
}

/* The value of an attribute that is neither a list nor an offset in another section. IS_EXPRESSION:
 * if the value is bytes, these may be an expression. */
static struct jtokens value_of(struct jside s, Dwarf_Attribute *x, enum jhow how,
			       bool is_expression)
{
	struct jtokens ret = { 0 };
	Dwarf_Op *op;
	Dwarf_Word w;
	Dwarf_Addr va;
	Dwarf_Block block;
	Dwarf_Die die;
	const char *text;
	bool flag;
	size_t n;

	if (x->form == DW_FORM_data16 || x->form == DW_FORM_ref_sig8 || x->form == DW_FORM_ref_sup8)
		term_add(&ret, term_bytes(x->valp, x->form == DW_FORM_data16 ? 16 : 8));
	else if (x->form == DW_FORM_GNU_ref_alt || x->form == DW_FORM_GNU_strp_alt ||
		 x->form == DW_FORM_strp_sup || x->form == DW_FORM_ref_sup4)
		term_add(&ret, term_bytes(x->valp, 4));
	else if (!dwarf_formflag(x, &flag))
		term_add(&ret, term_number(flag));
	else if (!dwarf_formaddr(x, &va))
		term_add(&ret, term_place(s, va, how));
	else if ((text = dwarf_formstring(x)))
		term_add(&ret, term_bytes(text, strlen(text)));
	else if (dwarf_formref_die(x, &die))
		term_add(&ret, term_number(dwarf_dieoffset(&die)));
	else if (is_expression && !dwarf_formblock(x, &block) && !dwarf_getlocation(x, &op, &n))
		return term_expression(s, x, op, n);
	else if (!dwarf_formblock(x, &block))
		term_add(&ret, term_bytes(block.data, block.length));
	else if (!dwarf_formudata(x, &w))
		term_add(&ret, term_number(w));
	else
		s.j->n_skipped += !s.out;
	return ret;
}

struct attrs {
	Dwarf_Attribute v[96];
	unsigned n;
};

static int collect(Dwarf_Attribute *attr, void *arg)
{
	struct attrs *s = arg;

	if (s->n < sizeof(s->v) / sizeof(*s->v))
		s->v[s->n++] = *attr;
	return DWARF_CB_OK;
}

static Dwarf_Attribute *get(struct attrs *s, unsigned code)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].code == code)
			return &s->v[i];
	return NULL;
}

/* Where other sections begin for the unit, and what is compared elsewhere: ranges, line tables. */
static bool is_elsewhere(unsigned code)
{
	switch (code) {
	case DW_AT_high_pc:
	case DW_AT_ranges:
	case DW_AT_stmt_list:
	case DW_AT_LLVM_stmt_sequence:
	case DW_AT_addr_base:
	case DW_AT_str_offsets_base:
	case DW_AT_rnglists_base:
	case DW_AT_loclists_base:
	case DW_AT_GNU_addr_base:
	case DW_AT_GNU_ranges_base: return true;
	default: return false;
	}
}

static bool is_list(const Dwarf_Attribute *x)
{
	return (holds(x->code) & LIST) &&
	       (x->form == DW_FORM_sec_offset || x->form == DW_FORM_loclistx ||
		x->form == DW_FORM_data4 || x->form == DW_FORM_data8);
}

static bool in_folded(const struct judge *j, uint64_t va)
{
	uint32_t u = jmap_exec_in(&j->map, va) ? jmap_find(&j->map, va) : JNONE;

	return u != JNONE && j->map.unit[u].folded;
}

static void check_value(struct judge *j, struct jpair *p, Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	int tag = dwarf_tag(&p->a);
	bool is_expression = x->form == DW_FORM_exprloc || (holds(x->code) & BLOCK),
	     past = (holds(x->code) & PAST) ||
		    (tag == DW_TAG_GNU_call_site && x->code == DW_AT_low_pc);
	struct jside in = { j, false }, out = { j, true };
	enum jhow how = past ? ENDS : EITHER;
	Dwarf_Addr a, b;
	bool address = !dwarf_formaddr(x, &a);

	/* A unit's low_pc is the base of its ranges, which are compared as sets. */
	if (address && x->code == DW_AT_low_pc &&
	    (tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit || tag == DW_TAG_type_unit ||
	     tag == DW_TAG_skeleton_unit))
		return;
	bool ok = term_same(value_of(in, x, how, is_expression),
			    value_of(out, y, how, is_expression));

	if (address && dwarf_formaddr(y, &b))
		ok = false;
	else if (address && !ok && j->policy == J_DROP && (p->folded != JNONE || in_folded(j, a)))
		/* A folded function and its scopes may be anywhere, as long as they are empty. So
		 * may scopes in a folded part of a function that stays. */
		ok = x->code == DW_AT_low_pc || !jmap_exec_out(&j->map, b);
	if (!ok && !(p->dead && (address || is_expression)))
		judge_wrong(j,
			    address         ? J_ADDR
			    : is_expression ? J_LOC
					    : J_ATTR,
			    DIE_FMT ": attribute %#x (form %#x) has another value", DIE(p), x->code,
			    x->form);
}

static void check_ranges(struct judge *j, struct jpair *p)
{
	struct jset want = { 0 }, have = { 0 };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	int tag = dwarf_tag(&p->a);
	/* Thunks belong to the ranges of functions and units, not of scopes. */
	bool owner = tag == DW_TAG_subprogram || tag == DW_TAG_compile_unit ||
		     tag == DW_TAG_partial_unit;
	bool leaves = false;
	char buf[512];

	while ((off = dwarf_ranges(&p->a, off, &base, &lo, &hi)) > 0)
		if (lo < hi && jmap_exec_in(&j->map, lo) && !p->dead)
			jset_expect(&want, j, lo, hi);
	bool known = off == 0;

	off = 0;
	while ((off = dwarf_ranges(&p->b, off, &base, &lo, &hi)) > 0)
		if (!p->dead && !jset_add(&have, j, lo, hi))
			leaves |= jmap_exec_out(&j->map, lo);
	if (!owner)
		want.n_thunks = 0;
	const char *why = off < 0  ? "the output's ranges are unreadable"
			  : leaves ? "a range leaves the code"
				   : jset_differ(&want, &have, j, owner && j->policy == J_OVERLAY,
						 buf, sizeof(buf));

	j->n_ranges += known;
	j->n_skipped += !known;
	if (why && known)
		judge_wrong(j, J_RANGE, DIE_FMT ": %s", DIE(p), why);
	jset_free(&want);
	jset_free(&have);
}

/* The start of a function tells whether the linker kept it, and whether it was folded. */
static void set_function(struct judge *j, struct jpair *p)
{
	Dwarf_Addr base, lo, hi;

	if (dwarf_lowpc(&p->a, &lo) && dwarf_ranges(&p->a, 0, &base, &lo, &hi) <= 0)
		lo = 0;
	uint32_t u = jmap_exec_in(&j->map, lo) ? jmap_find(&j->map, lo) : JNONE;

	p->dead = !jmap_exec_in(&j->map, lo);
	p->folded = u != JNONE && j->map.unit[u].folded ? u : JNONE;
}

static void check_attribute(struct judge *j, struct jpair *p, struct attrs *a, struct attrs *b,
			    Dwarf_Attribute *x)
{
	Dwarf_Attribute *y = get(b, x->code), *l = get(a, DW_AT_location),
			*m = get(b, DW_AT_location);
	bool views = get(a, DW_AT_GNU_locviews);

	j->n_attrs++;
	if (!y) {
		/* One range became several. */
		if (!(x->code == DW_AT_high_pc && get(b, DW_AT_ranges)))
			judge_wrong(j, J_ATTR, DIE_FMT ": attribute %#x is gone", DIE(p), x->code);
	} else if (is_elsewhere(x->code)) {
		return;
	} else if (x->code == DW_AT_GNU_locviews) {
		if (p->folded == JNONE && !p->dead && l && m)
			judge_views(j, p, (Dwarf_Attribute[2]){ *x, *y },
				    (Dwarf_Attribute[2]){ *l, *m });
	} else if (is_list(x)) {
		judge_list(j, p, x, y, views);
	} else {
		check_value(j, p, x, y);
	}
}

static void check_pair(struct judge *j, struct jpair *p)
{
	struct attrs a = { 0 }, b = { 0 };

	j->n_dies++;
	dwarf_getattrs(&p->a, collect, &a, 0);
	dwarf_getattrs(&p->b, collect, &b, 0);
	if (dwarf_tag(&p->a) == DW_TAG_subprogram &&
	    (get(&a, DW_AT_low_pc) || get(&a, DW_AT_ranges)))
		set_function(j, p);
	/* New attributes: ranges in place of high_pc, and fillers of the vendors' range. */
	for (unsigned i = 0; i < b.n; i++) {
		unsigned code = b.v[i].code;

		if (!get(&a, code) && code < DW_AT_lo_user && code != DW_AT_rnglists_base &&
		    !(code == DW_AT_ranges && get(&a, DW_AT_high_pc)))
			judge_wrong(j, J_ATTR, DIE_FMT ": attribute %#x is new", DIE(p), code);
	}
	if (get(&a, DW_AT_high_pc) || get(&a, DW_AT_ranges))
		check_ranges(j, p);
	for (unsigned i = 0; i < a.n; i++)
		check_attribute(j, p, &a, &b, &a.v[i]);
}

/* --- trees --- */

/* A tree as a list: each DIE with its depth, parents first. */
struct flat {
	struct {
		Dwarf_Die die;
		unsigned depth;
	} * v;
	size_t n, cap;
};

static struct flat flatten(const Dwarf_Die *root)
{
	struct flat f = { 0 };
	Dwarf_Die *open = NULL; /* from the root to the DIE at hand */
	unsigned depth = 0, cap = 0;

	for (Dwarf_Die die = *root;;) {
		if (depth + 1 >= cap) {
			cap = cap * 2 + 64;
			open = realloc(open, cap * sizeof(*open));
		}
		if (f.n == f.cap) {
			f.cap = f.cap * 2 + 256;
			f.v = realloc(f.v, f.cap * sizeof(*f.v));
		}
		if (!open || !f.v)
			abort();
		f.v[f.n].die = open[depth] = die;
		f.v[f.n++].depth = depth;
		if (dwarf_child(&open[depth], &die) == 0) {
			depth++;
			continue;
		}
		while (depth && dwarf_siblingof(&open[depth], &die) != 0)
			depth--;
		if (!depth)
			break;
	}
	free(open);
	return f;
}

void judge_unit(struct judge *j, Dwarf_Die *a, Dwarf_Die *b)
{
	struct flat f = flatten(a), g = flatten(b);
	struct jpair *around = NULL; /* by depth: the last one there */
	unsigned cap = 0;

	for (size_t i = 0; i < f.n; i++) {
		struct jpair p = { .a = f.v[i].die, .depth = f.v[i].depth, .folded = JNONE };

		if (i >= g.n || g.v[i].depth != p.depth ||
		    dwarf_dieoffset(&g.v[i].die) != dwarf_dieoffset(&p.a) ||
		    dwarf_tag(&g.v[i].die) != dwarf_tag(&p.a)) {
			judge_wrong(j, J_TREE, DIE_FMT ": the output has another tree from here on",
				    DIE(&p));
			break;
		}
		p.b = g.v[i].die;
		if (p.depth) {
			p.dead = around[p.depth - 1].dead;
			p.folded = around[p.depth - 1].folded;
		}
		check_pair(j, &p);
		if (p.depth >= cap) {
			cap = p.depth * 2 + 16;
			around = realloc(around, cap * sizeof(*around));
			if (!around)
				abort();
		}
		around[p.depth] = p;
	}
	if (g.n > f.n)
		judge_wrong(j, J_TREE, "unit %#" PRIx64 ": the output has more DIEs",
			    (uint64_t)dwarf_dieoffset(a));
	free(around);
	free(f.v);
	free(g.v);
}
