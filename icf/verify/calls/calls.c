/* calls.c: the call tables.
 *
 * IN shows the callee of a direct call: its target is the entry of one function.  So every entry of
 * .debug_dcall must belong to such a call and name a DIE of that function, under the marker of the
 * caller if the caller shares its code.  Conversely, every such call to a function that shares its
 * code and has a DIE must have an entry.
 *
 * IN may state the callee of an indirect call in its own tables or in a call-site DIE.  An entry
 * that neither the code nor these explain is wrong.  Entries of IN's tables for functions that now
 * share their code must be in OUT.
 *
 * The format (Coutant, "DWARF Extensions for Unwinding Across Merged Functions"): a length, version
 * 4 in one byte, the offset of the unit in .debug_info, the size of an address, then (call site,
 * ULEB128) pairs; a call site of 0 begins a new caller. */
#include "dwarf/return_address.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/calls/state.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static int die_order(const void *a, const void *b)
{
	const struct icf_vdie_unit *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static int want_order(const void *a, const void *b)
{
	const struct icf_vcall_want *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

bool icf_vcalls_grouped(const struct icf_v *v, uint32_t u)
{
	return v->claim.note.unit_member[u] != UINT32_MAX;
}

/* Has unit U a DIE, or one that stands in for it? */
static bool has_die(const struct icf_v *v, uint32_t u)
{
	const struct dwr_icfold *n = &v->claim.note;
	return icf_vcalls_grouped(v, u) &&
	       (n->member[n->unit_member[u]].n_dies || n->member[n->unit_member[u]].stand_in);
}

/* Is DIE one of unit U's? */
static bool is_die(const struct icf_vcalls *c, uint64_t die, uint32_t u)
{
	struct icf_vdie_unit key = { die, u };
	return c->die.len && bsearch(&key, c->die.data, c->die.len, sizeof key, die_order);
}

/* Does DIE, perhaps a declaration, have a name of the function that begins at VA? */
static bool is_name(struct icf_vcalls *c, uint64_t die, uint64_t va)
{
	const struct icf_v *v = c->v;
	const struct elfrw_section *s =
		v->claim.in.symtab ? &v->claim.in.section[v->claim.in.symtab] : NULL;
	Dwarf_Die d;
	Dwarf_Attribute attr;
	if (!c->in->dw || !dwarf_offdie(c->in->dw, die, &d) || dwarf_tag(&d) != DW_TAG_subprogram)
		return false;
	const char *name = dwarf_formstring(dwarf_attr_integrate(&d, DW_AT_linkage_name, &attr));
	if (!name) /* before DWARF 4 */
		name = dwarf_formstring(dwarf_attr_integrate(&d, DW_AT_MIPS_linkage_name, &attr));
	if (!name)
		name = dwarf_diename(&d);
	for (struct elfrw_symbols it = elfrw_symbols(name ? s : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const char *p =
			sym.st_value == va && sym.st_shndx != SHN_UNDEF
				? elfrw_image_string(&v->claim.in, s->hdr.sh_link, sym.st_name)
				: NULL;
		if (p && strcmp(p, name) == 0)
			return true;
	}
	return false;
}

/* Does DIE stand for unit U?  It is U's own DIE or, if U has none, one with U's name. */
static bool stands_for(struct icf_vcalls *c, uint64_t die, uint32_t u)
{
	return is_die(c, die, u) ||
	       (!has_die(c->v, u) && is_name(c, die, c->v->claim.unit.data[u].old));
}

static struct elfrw_err *collect(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	for (size_t i = 0; i < v->claim.note.n_members; i++) {
		const struct dwr_icfold_member *m = &v->claim.note.member[i];
		for (uint32_t k = 0; k < m->n_dies + (m->stand_in != 0); k++) {
			struct icf_vdie_unit *d = VEC_PUSH(&c->die);
			if (!d)
				return &elfrw_err_nomem;
			*d = (struct icf_vdie_unit){ k < m->n_dies
							     ? v->claim.note.dies[m->die + k].die
							     : m->stand_in,
						     m->unit };
		}
	}
	if (c->die.len)
		qsort(c->die.data, c->die.len, sizeof *c->die.data, die_order);
	if (!VEC_RESERVE(&c->want, v->call.len))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->call.len; i++) {
		const struct icf_vcall *x = &v->call.data[i];
		const struct icf_vunit *u = &v->claim.unit.data[x->unit];
		c->want.data[c->want.len++] =
			(struct icf_vcall_want){ .site = u->body + (x->site - u->old),
						 .unit = x->unit,
						 .target = x->target,
						 .optional = x->optional,
						 .guess = x->guess };
	}
	if (c->want.len)
		qsort(c->want.data, c->want.len, sizeof *c->want.data, want_order);
	return NULL;
}

/* Reads the header of a contribution; *R then holds the entries.  false: there is none. */
bool icf_vcalls_header(struct elfrw_rbuf *all, struct elfrw_rbuf *r, bool with_info, uint64_t *info)
{
	uint64_t length = elfrw_rbuf_u32(all);
	unsigned offset_size = 4;
	if (length == 0xffffffff) {
		length = elfrw_rbuf_u64(all);
		offset_size = 8;
	}
	const uint8_t *p = elfrw_rbuf_take(all, length);
	if (!p)
		return false;
	*r = elfrw_rbuf(p, length);
	unsigned version = elfrw_rbuf_u8(r);
	*info = with_info ? elfrw_rbuf_uint(r, offset_size) : 0;
	return elfrw_rbuf_u8(r) == 8 && version == 4 && elfrw_rbuf_ok(r);
}

static int told_order(const void *a, const void *b)
{
	const struct icf_vtold *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static bool tell(struct icf_vcalls *c, struct icf_vtold t)
{
	struct icf_vtold *slot = VEC_PUSH(&c->told);
	if (slot)
		*slot = t;
	return slot != NULL;
}

static struct elfrw_err *read_tables(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	struct dwr_sections secs;
	struct dwr_units units = { 0 };
	ELFRW_TRY(icf_v_named(v->claim.in.path, dwr_sections_init(&secs, &v->claim.in)));
	if (!secs.sec[DWR_DCALL].shndx && !secs.sec[DWR_VCALL].shndx) {
		dwr_sections_deinit(&secs);
		return NULL;
	}
	c->refold = secs.sec[DWR_ICFOLD].shndx != 0;
	struct elfrw_err *err = dwr_sections_load(&secs, DWR_INFO);
	if (!err)
		err = dwr_sections_load(&secs, DWR_ABBREV);
	if (!err)
		err = dwr_units_read(&secs, &units);
	if (!err)
		err = dwr_calls_read(&secs, &units, &c->table);
	err = icf_v_named(v->claim.in.path, err);
	dwr_units_deinit(&units);
	dwr_sections_deinit(&secs);
	for (size_t i = 0; !err && i < c->table.dcall.len; i++) {
		const struct dwr_dcall *x = &c->table.dcall.data[i];
		if (!tell(c, (struct icf_vtold){ .site = x->site,
						 .die = x->die,
						 .caller = x->caller,
						 .table = true }))
			err = &elfrw_err_nomem;
	}
	if (c->told.len)
		qsort(c->told.data, c->told.len, sizeof *c->told.data, told_order);
	return err;
}

/* Adds the call sites below DIE that name a function. */
static bool read_sites_below(struct icf_vcalls *c, Dwarf_Die *die, unsigned depth)
{
	Dwarf_Die child;
	Dwarf_Attribute attr;
	if (depth > 500 || dwarf_child(die, &child) != 0)
		return true;
	do {
		int tag = dwarf_tag(&child);
		bool new = tag == DW_TAG_call_site, old = tag == DW_TAG_GNU_call_site;
		Dwarf_Addr site;
		Dwarf_Die callee;
		if ((new || old) &&
		    dwarf_attr(&child, new ? DW_AT_call_return_pc : DW_AT_low_pc, &attr) &&
		    dwarf_formaddr(&attr, &site) == 0 &&
		    dwarf_attr(&child, new ? DW_AT_call_origin : DW_AT_abstract_origin, &attr) &&
		    dwarf_formref_die(&attr, &callee) &&
		    !tell(c, (struct icf_vtold){ .site = site, .die = dwarf_dieoffset(&callee) }))
			return false;
		if (!read_sites_below(c, &child, depth + 1))
			return false;
	} while (dwarf_siblingof(&child, &child) == 0);
	return true;
}

/* Few files need call sites. */
static struct elfrw_err *read_sites(struct icf_vcalls *c)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	if (c->sites_read)
		return NULL;
	c->sites_read = true;
	while (c->in->dw && dwarf_get_units(c->in->dw, cu, &cu, NULL, NULL, &die, NULL) == 0)
		if (!read_sites_below(c, &die, 0))
			return &elfrw_err_nomem;
	if (c->told.len)
		qsort(c->told.data, c->told.len, sizeof *c->told.data, told_order);
	return NULL;
}

/* Does IN say that the call of unit CALLER that returns to SITE (in IN) calls the function of the
 * DIE? */
static bool told(struct icf_vcalls *c, uint32_t caller, uint64_t site, uint64_t die,
		 uint64_t marker)
{
	size_t lo = LOWER_BOUND(0, c->told.len, mid, c->told.data[mid].site < site);
	bool found = false;
	for (; lo < c->told.len && c->told.data[lo].site == site; lo++) {
		struct icf_vtold *t = &c->told.data[lo];
		/* The entry is under the marker of the caller if the caller shares its code.  An
		 * earlier folding may name a caller that does not. */
		bool same = t->die == die,
		     mine = marker ? is_die(c, marker, caller) || t->caller == marker
				   : !icf_vcalls_grouped(c->v, caller);
		for (size_t i = 0; i < c->die.len && !same && mine; i++)
			same = c->die.data[i].die == die &&
			       is_name(c, t->die, c->v->claim.unit.data[c->die.data[i].unit].old);
		if (same && mine)
			t->used = found = true;
	}
	return found;
}

/* The same for any place of IN that may be SITE of OUT. */
static bool told_of(struct icf_vcalls *c, uint64_t site, uint64_t die, uint64_t marker)
{
	const struct icf_v *v = c->v;
	uint32_t u = icf_v_find_new(&v->claim, dwr_call_at(site));
	if (u == ICF_V_NONE)
		return false;
	uint64_t off = site - v->claim.unit.data[u].body;
	if (!icf_vcalls_grouped(v, u))
		return told(c, u, v->claim.unit.data[u].old + off, die, marker);
	const struct dwr_icfold_group *g =
		&v->claim.note.group[v->claim.note.member[v->claim.note.unit_member[u]].group];
	bool found = false;
	for (uint32_t m = g->member; m < g->member + g->n_members; m++)
		found |= told(c, v->claim.note.member[m].unit,
			      v->claim.unit.data[v->claim.note.member[m].unit].old + off, die,
			      marker);
	return found;
}

static struct elfrw_err *check_entry(struct icf_vcalls *c, uint64_t site, uint64_t die,
				     uint64_t caller)
{
	struct icf_v *v = c->v;
	char name[200];
	size_t lo = LOWER_BOUND(0, c->want.len, mid, c->want.data[mid].site < site);
	v->log.checked[ICF_VC_CALL]++;
	const struct icf_vcall_want *other = NULL;
	for (; lo < c->want.len && c->want.data[lo].site == site; lo++) {
		struct icf_vcall_want *w = &c->want.data[lo];
		if (caller ? !stands_for(c, caller, w->unit) : icf_vcalls_grouped(v, w->unit))
			continue;
		other = w;
		if (!stands_for(c, die, w->target))
			continue;
		w->used = true;
		if (w->guess)
			icf_vlog_bad(
				&v->log, ICF_VC_CALL,
				"call that returns to 0x%llx: expected no entry, since its caller may have compared addresses that are one now, found 0x%llx",
				ICF_VX(site), ICF_VX(die));
		return NULL;
	}
	if (!other && told_of(c, site, die, caller))
		return NULL;
	if (!other)
		ELFRW_TRY(read_sites(c));
	if (!other && told_of(c, site, die, caller))
		return NULL;
	if (other)
		icf_vlog_bad(
			&v->log, ICF_VC_CALL,
			"callee: call that returns to 0x%llx: expected a DIE of %s, found 0x%llx",
			ICF_VX(site),
			icf_v_where(&v->claim, v->claim.unit.data[other->target].old, name),
			ICF_VX(die));
	else
		icf_vlog_bad(
			&v->log, ICF_VC_CALL,
			"call site: 0x%llx of caller 0x%llx: expected behind a call of a shared function, found elsewhere",
			ICF_VX(site), ICF_VX(caller));
	return NULL;
}

static struct elfrw_err *check_dcall(struct icf_vcalls *c, const Elf_Data *s)
{
	struct icf_v *v = c->v;
	struct elfrw_rbuf all = elfrw_rbuf(s->d_buf, s->d_size), r;
	uint64_t info;
	while (elfrw_rbuf_left(&all)) {
		uint64_t caller = 0, last = 0, last_die = 0;
		if (!icf_vcalls_header(&all, &r, true, &info)) {
			icf_vlog_bad(
				&v->log, ICF_VC_CALL,
				"header: .debug_dcall: expected version 4 and 8-byte addresses, found others");
			return NULL;
		}
		while (elfrw_rbuf_left(&r)) {
			uint64_t site = elfrw_rbuf_u64(&r), die = info + elfrw_rbuf_uleb(&r);
			if (!elfrw_rbuf_ok(&r)) {
				icf_vlog_bad(
					&v->log, ICF_VC_CALL,
					"entry: .debug_dcall: expected it inside of its unit, found it cut off");
				return NULL;
			}
			if (!site) {
				caller = die;
				last = 0;
				continue;
			}
			if (site < last || (site == last && die <= last_die))
				icf_vlog_bad(
					&v->log, ICF_VC_CALL,
					"order: .debug_dcall: expected more than 0x%llx, found 0x%llx",
					ICF_VX(last), ICF_VX(site));
			last = site;
			last_die = die;
			ELFRW_TRY(check_entry(c, site, die, caller));
		}
	}
	return NULL;
}

static void check_missing(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	char name[200], callee[200];
	for (size_t i = 0; i < c->want.len; i++) {
		const struct icf_vcall_want *w = &c->want.data[i];
		if (w->used || w->optional || !has_die(v, w->target) ||
		    (icf_vcalls_grouped(v, w->unit) && !has_die(v, w->unit)))
			continue;
		icf_vlog_bad(&v->log, ICF_VC_CALL,
			     "call: of %s in %s (-> 0x%llx): expected an entry, found none",
			     icf_v_where(&v->claim, v->claim.unit.data[w->target].old, callee),
			     icf_v_where(&v->claim, v->claim.unit.data[w->unit].old, name),
			     ICF_VX(w->site));
	}
}

/* Does code in IN itself show the callee of unit U's call that returns to SITE? */
static bool decoded(const struct icf_vcalls *c, uint32_t u, uint64_t site)
{
	const struct icf_vunit *x = &c->v->claim.unit.data[u];
	const struct elfrw_arch *arch = c->v->claim.arch;
	uint64_t start = site - arch->call_size;
	const uint8_t *p = site - x->old >= arch->call_size
				   ? elfrw_image_at(&c->v->claim.in, start, arch->call_size)
				   : NULL;
	struct elfrw_insn in;
	return p && arch->decode(p, arch->call_size, start, &in) == arch->call_size &&
	       in.pcrel_size == 4 && (in.kind == ELFRW_INSN_CALL || in.kind == ELFRW_INSN_JMP);
}

/* Checks the entries of IN's tables for functions that now share their code. */
static void check_kept(struct icf_vcalls *c)
{
	struct icf_v *v = c->v;
	char caller[200], callee[200];
	for (size_t i = 0; i < c->told.len; i++) {
		const struct icf_vtold *t = &c->told.data[i];
		uint32_t u = icf_v_find(&v->claim, dwr_call_at(t->site)), to = ICF_V_NONE;
		if (!t->table || t->used || u == ICF_V_NONE || decoded(c, u, t->site) ||
		    (icf_vcalls_grouped(v, u) && !has_die(v, u)))
			continue;
		for (size_t k = 0; k < c->die.len && to == ICF_V_NONE; k++)
			if (c->die.data[k].die == t->die ||
			    is_name(c, t->die, v->claim.unit.data[c->die.data[k].unit].old))
				to = c->die.data[k].unit;
		v->log.checked[ICF_VC_CALL]++;
		if (c->refold || to != ICF_V_NONE)
			icf_vlog_bad(
				&v->log, ICF_VC_CALL,
				"call: of %s in %s, which the input's table has: expected an entry, found none",
				to != ICF_V_NONE
					? icf_v_where(&v->claim, v->claim.unit.data[to].old, callee)
					: "another function",
				icf_v_where(&v->claim, dwr_call_at(t->site), caller));
	}
}

struct elfrw_err *icf_v_check_calls(struct icf_v *v, struct icf_vdwarf *in, struct icf_vdwarf *out)
{
	struct icf_vcalls c = { .v = v, .in = in, .out = out };
	if (!v->claim.has_note || !icf_v_has_debug(&v->claim.out))
		return NULL;
	const Elf_Data *d = icf_vd_section(out, ".debug_dcall"),
		       *p = icf_vd_section(out, ".debug_vcall");
	struct elfrw_err *err = collect(&c);
	if (!err)
		err = read_tables(&c);
	if (!err && d)
		err = check_dcall(&c, d);
	if (!err) {
		check_missing(&c);
		check_kept(&c);
	}
	if (!err)
		err = icf_vcalls_virtual(&c, p);
	VEC_FREE(&c.die);
	VEC_FREE(&c.want);
	VEC_FREE(&c.told);
	VEC_FREE(&c.slot);
	icf_vslots_destroy(c.code);
	dwr_calls_deinit(&c.table);
	return err;
}
