/* verify_calls.c: the call tables.
 *
 * What a direct call means is read from IN: its target is the entry of one function.  So every entry of .debug_dcall must
 * belong to such a call and name a DIE of that function, under the marker of the caller where the caller shares its code;
 * and every such call to a function that shares its code and has a DIE must have an entry.  An entry of .debug_vcall stands
 * behind an indirect call; where the instruction, or the load before it, shows the slot, it is the same.
 *
 * The format (Coutant, "DWARF Extensions for Unwinding Across Merged Functions"): a length, version 4 in one byte, the offset
 * of the unit in .debug_info, the size of an address, then (call site, ULEB128) pairs; a call site of 0 begins a new caller. */
#include "icf/verify_debug.h"
#include <dwarf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct die_unit {
	uint64_t die;
	uint32_t unit;
};

struct want {
	uint64_t site; /* in OUT */
	uint32_t unit, target;
	bool optional, used;
};

struct calls {
	struct icf_v *v;
	Dwarf *dw; /* of IN, opened when it is needed */
	int fd;
	VEC(struct die_unit) die; /* sorted by DIE */
	VEC(struct want) want;	  /* sorted by site */
};

static int die_order(const void *a, const void *b)
{
	const struct die_unit *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static int want_order(const void *a, const void *b)
{
	const struct want *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static bool grouped(const struct icf_v *v, uint32_t u)
{
	return v->note.unit_member[u] != UINT32_MAX;
}

static bool has_die(const struct icf_v *v, uint32_t u)
{
	return grouped(v, u) && v->note.member[v->note.unit_member[u]].n_dies;
}

/* Is DIE one of unit U's? */
static bool is_die(const struct calls *c, uint64_t die, uint32_t u)
{
	struct die_unit key = { die, u };
	return c->die.len && bsearch(&key, c->die.data, c->die.len, sizeof key, die_order);
}

/* Does DIE, a declaration perhaps, bear a name of the function that begins at VA? */
static bool is_name(struct calls *c, uint64_t die, uint64_t va)
{
	const struct icf_v *v = c->v;
	const struct elfrw_section *s = v->in.symtab ? &v->in.section[v->in.symtab] : NULL;
	if (!c->dw && c->fd < 0) {
		c->fd = open(v->in.path, O_RDONLY | O_CLOEXEC);
		c->dw = c->fd < 0 ? NULL : dwarf_begin(c->fd, DWARF_C_READ);
	}
	Dwarf_Die d;
	Dwarf_Attribute attr;
	if (!c->dw || !dwarf_offdie(c->dw, die, &d) || dwarf_tag(&d) != DW_TAG_subprogram)
		return false;
	const char *name = dwarf_formstring(dwarf_attr_integrate(&d, DW_AT_linkage_name, &attr));
	if (!name)
		name = dwarf_diename(&d);
	for (size_t i = 1; name && s && s->data && i < s->hdr.sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + i * sizeof sym, sizeof sym);
		const char *p = sym.st_value == va && sym.st_shndx != SHN_UNDEF
					? elfrw_image_string(&v->in, s->hdr.sh_link, sym.st_name)
					: NULL;
		if (p && strcmp(p, name) == 0)
			return true;
	}
	return false;
}

/* Does DIE stand for unit U: its own, or, if it has none, one of its name? */
static bool stands_for(struct calls *c, uint64_t die, uint32_t u)
{
	return is_die(c, die, u) || (!has_die(c->v, u) && is_name(c, die, c->v->unit.data[u].old));
}

static struct elfrw_err *collect(struct calls *c)
{
	struct icf_v *v = c->v;
	for (size_t i = 0; i < v->note.n_members; i++) {
		const struct dwr_icfold_member *m = &v->note.member[i];
		for (uint32_t k = 0; k < m->n_dies; k++) {
			struct die_unit *d = VEC_PUSH(&c->die);
			if (!d)
				return &elfrw_err_nomem;
			*d = (struct die_unit){ v->note.dies[m->die + k].die, m->unit };
		}
	}
	if (c->die.len)
		qsort(c->die.data, c->die.len, sizeof *c->die.data, die_order);
	if (!VEC_RESERVE(&c->want, v->call.len))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->call.len; i++) {
		const struct icf_vcall *x = &v->call.data[i];
		const struct icf_vunit *u = &v->unit.data[x->unit];
		c->want.data[c->want.len++] = (struct want){ .site = u->body + (x->site - u->old),
							     .unit = x->unit,
							     .target = x->target,
							     .optional = x->optional };
	}
	if (c->want.len)
		qsort(c->want.data, c->want.len, sizeof *c->want.data, want_order);
	return NULL;
}

/* Reads the header of a contribution; the entries are left in *R.  false: not one. */
static bool read_header(struct elfrw_rbuf *all, struct elfrw_rbuf *r, bool with_info, uint64_t *info)
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

static void check_entry(struct calls *c, uint64_t site, uint64_t die, uint64_t caller)
{
	struct icf_v *v = c->v;
	char name[200];
	size_t lo = 0, hi = c->want.len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->want.data[mid].site < site)
			lo = mid + 1;
		else
			hi = mid;
	}
	v->log.checked[ICF_VC_CALL]++;
	const struct want *other = NULL;
	for (; lo < c->want.len && c->want.data[lo].site == site; lo++) {
		struct want *w = &c->want.data[lo];
		if (caller ? !stands_for(c, caller, w->unit) : grouped(v, w->unit))
			continue;
		other = w;
		if (!stands_for(c, die, w->target))
			continue;
		w->used = true;
		return;
	}
	if (other)
		icf_vlog_bad(&v->log, ICF_VC_CALL,
			     "callee: call that returns to 0x%llx: expected a DIE of %s, found 0x%llx", ICF_VX(site),
			     icf_v_where(v, v->unit.data[other->target].old, name), ICF_VX(die));
	else
		icf_vlog_bad(
			&v->log, ICF_VC_CALL,
			"call site: 0x%llx of caller 0x%llx: expected behind a call of a shared function, found elsewhere",
			ICF_VX(site), ICF_VX(caller));
}

static void check_dcall(struct calls *c, const struct elfrw_section *s)
{
	struct icf_v *v = c->v;
	struct elfrw_rbuf all = elfrw_rbuf(s->data, s->hdr.sh_size), r;
	uint64_t info;
	while (elfrw_rbuf_left(&all)) {
		uint64_t caller = 0, last = 0;
		if (!read_header(&all, &r, true, &info)) {
			icf_vlog_bad(&v->log, ICF_VC_CALL,
				     "header: .debug_dcall: expected version 4 and 8-byte addresses, found others");
			return;
		}
		while (elfrw_rbuf_left(&r)) {
			uint64_t site = elfrw_rbuf_u64(&r), die = info + elfrw_rbuf_uleb(&r);
			if (!elfrw_rbuf_ok(&r)) {
				icf_vlog_bad(&v->log, ICF_VC_CALL,
					     "entry: .debug_dcall: expected it inside of its unit, found it cut off");
				return;
			}
			if (!site) {
				caller = die;
				last = 0;
				continue;
			}
			if (site < last)
				icf_vlog_bad(&v->log, ICF_VC_CALL,
					     "order: .debug_dcall: expected 0x%llx or more, found 0x%llx", ICF_VX(last),
					     ICF_VX(site));
			last = site;
			check_entry(c, site, die, caller);
		}
	}
}

static void check_missing(struct calls *c)
{
	struct icf_v *v = c->v;
	char name[200], callee[200];
	for (size_t i = 0; i < c->want.len; i++) {
		const struct want *w = &c->want.data[i];
		if (w->used || w->optional || !has_die(v, w->target) || (grouped(v, w->unit) && !has_die(v, w->unit)))
			continue;
		icf_vlog_bad(&v->log, ICF_VC_CALL, "call: of %s in %s (-> 0x%llx): expected an entry, found none",
			     icf_v_where(v, v->unit.data[w->target].old, callee),
			     icf_v_where(v, v->unit.data[w->unit].old, name), ICF_VX(w->site));
	}
}

/* What the instructions of unit U before SITE (in OUT) say of the slot; false: that is no indirect call.  *SLOT UINT64_MAX: they do
 * not say. */
static bool slot_of(const struct icf_v *v, const struct icf_vunit *u, uint64_t site, uint64_t *slot)
{
	const struct icf_vexec *e = &v->exec.data[u->exec];
	uint64_t end = u->old + (site - u->body), loaded[16], when[16] = { 0 }, n = 0;
	struct elfrw_insn in = { 0 };
	*slot = UINT64_MAX;
	for (uint64_t at = u->old; at < end; n++) {
		const uint8_t *p = e->old_data + (at - e->old);
		unsigned len = v->arch->decode(p, u->end - at, at, &in);
		if (!len)
			return false;
		at += len;
		bool mem = (in.flags & ELFRW_INSN_MEM) && in.base != ELFRW_REG_NONE && in.index == ELFRW_REG_NONE &&
			   !in.pcrel_size;
		uint64_t disp = mem && in.disp_size ? elfrw_get_le(p + in.disp_off, in.disp_size) : 0;
		if (at == end) {
			if (in.kind != ELFRW_INSN_CALL_IND && in.kind != ELFRW_INSN_JMP_IND)
				return false;
			if (mem)
				*slot = disp / 8;
			/* A plain load says nothing: the slot may have been added before. */
			else if (in.rm < 16 && when[in.rm] && n - when[in.rm] < 8 && loaded[in.rm])
				*slot = loaded[in.rm] / 8;
			return true;
		}
		/* Whoever comes here next comes from somewhere else. */
		if (in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JMP_IND || in.kind == ELFRW_INSN_RET ||
		    in.kind == ELFRW_INSN_TRAP)
			memset(when, 0, sizeof when);
		if (in.reg < 16 && in.kind == ELFRW_INSN_OTHER) {
			bool load = mem && in.opcode_map == 0 && in.opcode == 0x8b && !(in.flags & ELFRW_INSN_LEA);
			loaded[in.reg] = disp;
			when[in.reg] = load ? n + 1 : 0;
		}
	}
	return false;
}

static void check_vcall(struct calls *c, const struct elfrw_section *s)
{
	struct icf_v *v = c->v;
	struct elfrw_rbuf all = elfrw_rbuf(s->data, s->hdr.sh_size), r;
	uint64_t info, seen;
	while (elfrw_rbuf_left(&all)) {
		if (!read_header(&all, &r, false, &info)) {
			icf_vlog_bad(&v->log, ICF_VC_CALL,
				     "header: .debug_vcall: expected version 4 and 8-byte addresses, found others");
			return;
		}
		while (elfrw_rbuf_left(&r)) {
			uint64_t site = elfrw_rbuf_u64(&r), slot = elfrw_rbuf_uleb(&r);
			uint32_t u = icf_v_find_new(v, site - 1);
			v->log.checked[ICF_VC_CALL]++;
			if (!elfrw_rbuf_ok(&r) || u == ICF_V_NONE || !slot_of(v, &v->unit.data[u], site, &seen))
				icf_vlog_bad(
					&v->log, ICF_VC_CALL,
					"call site: .debug_vcall 0x%llx: expected behind an indirect call, found elsewhere",
					ICF_VX(site));
			else if (seen != UINT64_MAX && seen != slot)
				icf_vlog_bad(&v->log, ICF_VC_CALL,
					     "slot: .debug_vcall 0x%llx: expected %llu, found %llu", ICF_VX(site),
					     ICF_VX(seen), ICF_VX(slot));
		}
	}
}

struct elfrw_err *icf_v_check_calls(struct icf_v *v)
{
	struct calls c = { .v = v, .fd = -1 };
	const struct elfrw_section *d = elfrw_image_section(&v->out, ".debug_dcall"),
				   *p = elfrw_image_section(&v->out, ".debug_vcall");
	/* An input that has tables of its own says more than can be read from its code. */
	bool debug = elfrw_image_section(&v->out, ".debug_info") != NULL;
	if (!v->has_note || !debug || elfrw_image_section(&v->in, ".debug_dcall") ||
	    elfrw_image_section(&v->in, ".debug_vcall"))
		return NULL;
	if ((d && (d->hdr.sh_flags & SHF_COMPRESSED)) || (p && (p->hdr.sh_flags & SHF_COMPRESSED)))
		return NULL;
	struct elfrw_err *err = collect(&c);
	if (!err) {
		if (d && d->data)
			check_dcall(&c, d);
		check_missing(&c);
		if (p && p->data)
			check_vcall(&c, p);
	}
	VEC_FREE(&c.die);
	VEC_FREE(&c.want);
	if (c.dw)
		dwarf_end(c.dw);
	if (c.fd >= 0)
		close(c.fd);
	return err;
}
