/* lsda.c: exception tables must have the same call sites, actions and types, with the landing pads
 * at their images.  Those of functions that were not folded must have the same bytes.
 *
 * Both tables are asked, question by question, what a personality routine would ask: the next call
 * site, its action, the types to compare. */
#include "elfrw/base/search.h"
#include "icf/verify/unwind/except.h"
#include "icf/verify/unwind/state.h"
#include <string.h>

/* Was the code at NEW proved to be the same as that at OLD? */
static bool stands_for(const struct icf_v *v, uint64_t old, uint64_t new)
{
	uint32_t t = icf_v_find(&v->claim, old), o = icf_v_find_new(&v->claim, new);
	if (t == ICF_V_NONE || o == ICF_V_NONE ||
	    old - v->claim.unit.data[t].old != new - v->claim.unit.data[o].body)
		return false;
	return v->same && v->same[t] == v->same[o];
}

/* The number of bytes from VA to the next table of LIST or the end of the section. */
static uint64_t behind(const addresses *list, uint64_t va, const struct elfrw_section *sec)
{
	size_t lo = LOWER_BOUND(0, list->len, mid, list->data[mid] < va);
	const Elf64_Shdr *s = &sec->hdr;
	uint64_t end = s->sh_addr + s->sh_size,
		 next = lo < list->len && list->data[lo] < end ? list->data[lo] : end;
	return next > va ? next - va : 0;
}

/* The two current tables, both walked. */
struct pair {
	const struct icf_v *v;
	struct icf_vexcept a, b; /* in IN; in OUT */
	unsigned steps;          /* that were compared */
};

/* More steps than any real table takes. */
#define MAX_STEPS (1u << 21)

/* The image in OUT of the type at TARGET in IN. */
static uint64_t new_type(const struct icf_v *v, uint64_t target)
{
	uint64_t ret;
	if (!target || !icf_v_in_exec(&v->claim, target))
		return target ? icf_v_data(&v->claim, target) : 0;
	icf_v_pointer(&v->claim, target, &ret);
	return ret;
}

static bool same_type(struct pair *p, uint64_t x, uint64_t y)
{
	struct icf_vtype a, b;
	return icf_vexcept_type(&p->a, x, &a) && icf_vexcept_type(&p->b, y, &b) &&
	       a.indirect == b.indirect && b.target == new_type(p->v, a.target);
}

/* Do the lists of a specification have the same types?  The numbers may differ. */
static bool same_list(struct pair *p, int64_t filter)
{
	struct elfrw_rbuf r, s;
	if (!icf_vexcept_list(&p->a, filter, &r) || !icf_vexcept_list(&p->b, filter, &s))
		return false;
	for (uint64_t x, y; p->steps++ < MAX_STEPS;) {
		x = elfrw_rbuf_uleb(&r);
		y = elfrw_rbuf_uleb(&s);
		if (!x || !y)
			return !x && !y && elfrw_rbuf_ok(&r) && elfrw_rbuf_ok(&s);
		if (!same_type(p, x, y))
			return false;
	}
	return false;
}

static bool first_action(const struct icf_vexcept *t, uint64_t number, struct icf_vaction *ret)
{
	*ret = (struct icf_vaction){ 0 }; /* no action is the same as one cleanup */
	return !number || icf_vexcept_action(t, t->actions + (number - 1), ret);
}

/* Does the personality routine do the same for the actions X of IN and Y of OUT?  The code at the
 * landing pad compares the filters, so these must be the same numbers. */
static bool same_chain(struct pair *p, uint64_t x, uint64_t y)
{
	struct icf_vaction a, b;
	if (!first_action(&p->a, x, &a) || !first_action(&p->b, y, &b))
		return false;
	while (p->steps++ < MAX_STEPS) {
		if (a.filter != b.filter ||
		    (a.filter > 0 && !same_type(p, (uint64_t)a.filter, (uint64_t)b.filter)) ||
		    (a.filter < 0 && !same_list(p, a.filter)))
			return false;
		if (!a.next || !b.next)
			return !a.next && !b.next;
		if (!icf_vexcept_action(&p->a, a.next, &a) ||
		    !icf_vexcept_action(&p->b, b.next, &b))
			return false;
	}
	return false;
}

/* Are the call sites the same, except for the places of landing pads?  Chains that were the same
 * are not compared again. */
static bool same_sites(struct pair *p)
{
	uint64_t i = p->a.sites, k = p->b.sites, last_x = 0, last_y = 0;
	struct icf_vsite s, t;
	for (;;) {
		bool more = icf_vexcept_site(&p->a, &i, &s);
		if (more != icf_vexcept_site(&p->b, &k, &t))
			return false;
		if (!more)
			return true;
		if (s.start != t.start || s.size != t.size || !s.pad != !t.pad)
			return false;
		if (!s.pad || (s.action && s.action == last_x && t.action == last_y))
			continue;
		if (!same_chain(p, s.action, t.action))
			return false;
		last_x = s.action;
		last_y = t.action;
	}
}

/* Are N bytes at offset OFF of both tables the same? */
static bool same_at(const struct pair *p, uint64_t off, uint64_t n)
{
	return !n ||
	       memcmp(p->a.sec->data + p->a.start + off, p->b.sec->data + p->b.start + off, n) == 0;
}

/* Are entries 1 to N of the type tables, which are at the same place in both, the same?  An entry
 * that nothing refers to may not be one, and must have the same bytes; another range of the
 * function may refer to it. */
static bool same_entries(struct pair *p)
{
	const struct icf_vexcept *a = &p->a;
	for (uint64_t n = a->n_types; n; n--)
		if (!same_at(p, a->types - a->start - n * a->type_size, a->type_size) &&
		    ((n > a->named && !a->base_at) || !same_type(p, n, n)))
			return false;
	return true;
}

/* Compares the table of a function that was not folded byte for byte: bytes that no call site leads
 * to have no effect, but stay.  Only pointers to types and the base of landing pads change.  The
 * headers and call sites of the function's other ranges are not examined: their own frames refer to
 * them. */
static const char *bytes_differ(const struct icf_vunwind *w, struct pair *p)
{
	const struct icf_vexcept *a = &p->a, *b = &p->b;
	/* If there are types, they are behind the actions; otherwise they mean nothing. */
	bool typed = a->types && a->types >= a->actions;
	uint64_t from = a->start, size = a->end - from,
		 types = typed ? a->types - a->n_types * a->type_size : a->end,
		 behind_base = a->base_at ? a->base_at + a->base_size : from;
	if (b->end - b->start != size || a->n_types != b->n_types ||
	    (typed && a->types - from != b->types - b->start) ||
	    a->range_end - from != b->range_end - b->start ||
	    a->actions - from != b->actions - b->start || a->base_size != b->base_size)
		return "size";
	if (!same_at(p, 0, a->base_at ? a->base_at - from : 0) ||
	    !same_at(p, behind_base - from, a->range_end - behind_base) ||
	    !same_at(p, a->actions - from, types - a->actions) ||
	    (typed && !same_at(p, a->types - from, a->end - a->types)))
		return "bytes";
	if (typed && !same_entries(p))
		return "types";
	/* The bytes behind may be the rest of the table, or fill, or be left out.  If the tables
	 * stay, as they do in a section of another name, those that nothing uses any more stay,
	 * too. */
	uint64_t n = behind(&w->table_in, a->sec->hdr.sh_addr + a->end, a->sec),
		 m = behind(&w->table_out, b->sec->hdr.sh_addr + b->end, b->sec);
	if (a->start == b->start && a->sec->hdr.sh_addr == b->sec->hdr.sh_addr &&
	    a->sec->hdr.sh_size == b->sec->hdr.sh_size)
		n = a->sec->hdr.sh_size - a->end;
	for (uint64_t k = 0; k < m; k++)
		if (b->sec->data[b->end + k] &&
		    (k >= n || b->sec->data[b->end + k] != a->sec->data[a->end + k]))
			return "bytes behind it";
	return NULL;
}

/* Reports the first landing pad at a wrong place. */
static void check_pads(struct icf_vunwind *w, const struct pair *p, uint64_t begin, bool alias,
		       bool kept)
{
	struct icf_v *v = w->v;
	char name[200];
	struct icf_vsite s, t;
	for (uint64_t i = p->a.sites, k = p->b.sites;
	     icf_vexcept_site(&p->a, &i, &s) && icf_vexcept_site(&p->b, &k, &t);) {
		uint64_t want = s.pad;
		if (!s.pad)
			continue;
		if (icf_v_removed(&v->claim, icf_v_find(&v->claim, s.pad)))
			icf_vlog_bad(
				&v->log, ICF_VC_REMOVED,
				"removed: %s (0x%llx): expected code that nothing reaches, found a landing pad",
				icf_v_where(&v->claim, s.pad, name), ICF_VX(s.pad));
		icf_v_check_led(v, p->a.sec->hdr.sh_addr + p->a.start, s.pad);
		if (!kept)
			icf_v_code(&v->claim, s.pad, &want);
		if (want == t.pad || (alias && stands_for(v, s.pad, t.pad)))
			continue;
		icf_vlog_bad(&v->log, ICF_VC_LSDA,
			     "landing pad: %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			     icf_v_where(&v->claim, begin, name), ICF_VX(s.pad), ICF_VX(want),
			     ICF_VX(want), ICF_VX(t.pad));
		return;
	}
}

struct elfrw_err *icf_vunwind_lsda(struct icf_vunwind *w, const struct dwr_fde *a,
				   const struct dwr_fde *b, bool alias, bool kept)
{
	struct icf_v *v = w->v;
	struct pair p = { .v = v };
	char name[200];
	v->log.checked[ICF_VC_LSDA]++;
	ELFRW_TRY(icf_v_named(v->claim.in.path, icf_vexcept_read(&p.a, &v->claim.in, a->lsda,
								 a->pc_begin, a->pc_end)));
	struct elfrw_err *err =
		icf_vexcept_read(&p.b, &v->claim.out, b->lsda, b->pc_begin, b->pc_end);
	if (err) {
		icf_vlog_bad(&v->log, ICF_VC_LSDA,
			     "table: %s (0x%llx -> 0x%llx): expected an exception table, found: %s",
			     icf_v_where(&v->claim, a->pc_begin, name), ICF_VX(a->lsda),
			     ICF_VX(b->lsda), elfrw_err_text(err));
		elfrw_err_free(err);
		return NULL;
	}
	uint32_t u = icf_v_find(&v->claim, a->pc_begin);
	bool same = same_sites(&p),
	     own = !alias && u != ICF_V_NONE && !(v->claim.unit.data[u].flags & ICF_V_FOLDED);
	const char *what = !same ? "call sites, actions and types"
			   : own ? bytes_differ(w, &p)
				 : NULL;
	if (what)
		icf_vlog_bad(&v->log, ICF_VC_LSDA,
			     "table: %s (0x%llx -> 0x%llx): expected the same %s, found others",
			     icf_v_where(&v->claim, a->pc_begin, name), ICF_VX(a->lsda),
			     ICF_VX(b->lsda), what);
	if (same)
		check_pads(w, &p, a->pc_begin, alias, kept);
	return NULL;
}
