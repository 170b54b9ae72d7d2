/* call_scan.c: see call_scan.h.
 *
 * The references found earlier do not say whether a branch was a call, nor where its instruction
 * ends.  So the few units that matter are decoded again.  Runs of units are independent; their
 * results are joined in address order.
 *
 * A call through the PLT, or through a GOT slot that is constant after relocation, calls the
 * function that the slot is bound to.  That is taken to be the definition in this file.  If a
 * definition in another file takes its place, the PC is not in this file's code either. */
#include "icf/program/call_scan.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

#define RUN    256 /* units */
#define SHARED (ELFRW_UNIT_FOLDED | ELFRW_UNIT_KEPT)

struct scan {
	const struct icf_program *prog;
	const struct elfrw_addrmap *map;
	bool indirect;
	bool bound;             /* some slot is bound to a shared unit */
	uint64_t *table_target; /* all targets of jump tables, sorted; owned */
	size_t n_table_targets;
	struct icf_calls *run;
};

static bool shared(const struct scan *s, uint32_t unit)
{
	return unit != ICF_NONE && (s->map->unit[unit].flags & SHARED);
}

/* The function of this file that the GOT slot at PLACE is bound to, or ICF_NONE. */
static uint32_t bound_to(const struct icf_program *prog, uint64_t place)
{
	const struct elfrw_image *img = prog->img;
	uint32_t shndx = elfrw_image_section_at(img, place);
	if (!shndx || strncmp(img->section[shndx].name, ".got", 4))
		return ICF_NONE;
	const struct icf_dynreloc *d = icf_dynreloc_at(prog, place);
	uint64_t value = 0;
	if (!d) {
		const uint8_t *p = img->pic ? NULL : elfrw_image_at(img, place, 8);
		value = p ? elfrw_get64(p) : 0;
	} else if (d->kind == ELFRW_RELOC_RELATIVE)
		value = d->addend;
	else if (d->kind == ELFRW_RELOC_SYMBOLIC && !d->relr) {
		const struct elfrw_section *rel = &img->section[d->shndx];
		const struct elfrw_section *st =
			rel->hdr.sh_link < img->n_sections ? &img->section[rel->hdr.sh_link] : NULL;
		Elf64_Rela r;
		Elf64_Sym sym;
		memcpy(&r, rel->data + (size_t)d->index * sizeof r, sizeof r);
		if (!st || st->hdr.sh_type != SHT_DYNSYM ||
		    !elfrw_symbol(st, ELF64_R_SYM(r.r_info), &sym))
			return ICF_NONE;
		value = sym.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC
				? 0
				: sym.st_value;
	}
	uint32_t unit = value ? icf_unit_at(prog, value) : ICF_NONE;
	return unit != ICF_NONE && prog->unit.data[unit].start == value ? unit : ICF_NONE;
}

/* The unit that a branch to VA leads to: the unit at VA, or the target of the PLT entry there. */
static uint32_t destination(const struct scan *s, uint64_t va)
{
	const struct icf_program *prog = s->prog;
	uint32_t unit = icf_unit_at(prog, va);
	if (unit == ICF_NONE || !s->bound || !prog->exec.data[prog->unit.data[unit].sec].linkage)
		return unit;
	const struct icf_unit *u = &prog->unit.data[unit];
	uint64_t slot;
	return prog->arch->read_stub(icf_unit_bytes(prog, u) + (va - u->start), u->end - va, va,
				     &slot)
		       ? bound_to(prog, slot)
		       : ICF_NONE;
}

/* Code of the linker that only jumps through slots; .init and .fini hold calls like others. */
static bool is_stub(const struct icf_program *prog, const struct icf_unit *u)
{
	const struct icf_exec *e = &prog->exec.data[u->sec];
	return e->linkage && strcmp(prog->img->section[e->shndx].name, ".init") != 0 &&
	       strcmp(prog->img->section[e->shndx].name, ".fini") != 0;
}

static bool interesting(const struct scan *s, uint32_t i)
{
	const struct icf_program *prog = s->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	if (u->kind == ICF_UNIT_OPAQUE || (s->map->unit[i].flags & ELFRW_UNIT_REMOVED) ||
	    is_stub(prog, u))
		return false;
	if (shared(s, i))
		return true;
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t k = 0; k < u->n_ref; k++) {
		if (ref[k].unit == ICF_NONE)
			continue;
		if (ref[k].kind == ICF_REF_BRANCH &&
		    (shared(s, ref[k].unit) ||
		     (s->bound && prog->exec.data[prog->unit.data[ref[k].unit].sec].linkage)))
			return true;
	}
	return (s->indirect || s->bound) &&
	       prog->arch->may_call_indirectly(icf_unit_bytes(prog, u), u->end - u->start);
}

static struct elfrw_err *push_call(struct icf_calls *ret, uint64_t site, uint32_t caller,
				   uint32_t callee, bool tail)
{
	struct icf_call *c = VEC_PUSH(&ret->call);
	if (!c)
		return &elfrw_err_nomem;
	*c = (struct icf_call){ site, caller, callee, tail };
	return NULL;
}

static struct elfrw_err *push_label(struct icf_labels *labels, uint64_t va)
{
	uint64_t *l = VEC_PUSH(labels);
	if (!l)
		return &elfrw_err_nomem;
	*l = va;
	return NULL;
}

/* Adds the jump table targets in unit U, each twice: a table is never the only way to its
 * target. */
static struct elfrw_err *table_labels(const struct scan *s, const struct icf_unit *u,
				      struct icf_labels *labels)
{
	size_t lo = LOWER_BOUND(0, s->n_table_targets, mid, s->table_target[mid] < u->start);
	for (; lo < s->n_table_targets && s->table_target[lo] < u->end; lo++) {
		ELFRW_TRY(push_label(labels, s->table_target[lo]));
		ELFRW_TRY(push_label(labels, s->table_target[lo]));
	}
	return NULL;
}

static struct elfrw_err *scan_unit(const struct scan *s, uint32_t i, struct icf_labels *labels,
				   struct icf_calls *ret)
{
	const struct icf_program *prog = s->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	struct elfrw_insn in;
	bool indirect = false;
	labels->len = 0;
	for (uint64_t va = u->start; va < u->end; va += in.len) {
		if (!icf_decode(prog, u, code + (va - u->start), u->end - va, va, &in))
			break;
		uint64_t site = va + in.len;
		bool tail = in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC;
		uint32_t to;
		switch (in.kind) {
		case ELFRW_INSN_JMP:
		case ELFRW_INSN_JCC:
			if (in.target >= u->start && in.target < u->end) {
				ELFRW_TRY(push_label(labels, in.target));
				break;
			}
			/* fallthrough */
		case ELFRW_INSN_CALL:
			if (in.target == site && site < u->end) /* asks for its own address */
				break;
			to = destination(s, in.target);
			if (shared(s, to) && !(tail && to == i))
				ELFRW_TRY(push_call(ret, site, i, to, tail));
			break;
		case ELFRW_INSN_JMP_IND:
		case ELFRW_INSN_CALL_IND:
			to = s->bound && in.pcrel_size ? bound_to(prog, in.target) : ICF_NONE;
			if (shared(s, to))
				ELFRW_TRY(
					push_call(ret, site, i, to, in.kind == ELFRW_INSN_JMP_IND));
			else
				indirect |= in.kind == ELFRW_INSN_CALL_IND && !in.pcrel_size;
			break;
		}
	}
	if (!indirect || !s->indirect)
		return NULL;
	ELFRW_TRY(table_labels(s, u, labels));
	if (labels->len)
		qsort(labels->data, labels->len, sizeof *labels->data, elfrw_u64_order);
	return icf_scan_virtual(prog, i, labels, ret);
}

static struct elfrw_err *scan_run(void *arg, size_t r)
{
	struct scan *s = arg;
	struct icf_labels labels = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t i = r * RUN; i < (r + 1) * RUN && i < s->prog->unit.len && !err; i++)
		if (interesting(s, (uint32_t)i))
			err = scan_unit(s, (uint32_t)i, &labels, &s->run[r]);
	VEC_FREE(&labels);
	return err;
}

static struct elfrw_err *prepare(struct scan *s)
{
	const struct icf_program *prog = s->prog;
	for (size_t i = 0; i < prog->img->n_sections && !s->bound; i++) {
		const struct elfrw_section *sec = &prog->img->section[i];
		if (strncmp(sec->name, ".got", 4))
			continue;
		for (uint64_t off = 0; off + 8 <= sec->hdr.sh_size && !s->bound; off += 8)
			s->bound = shared(s, bound_to(prog, sec->hdr.sh_addr + off));
	}
	if (!s->indirect)
		return NULL;
	size_t n = 0;
	for (size_t i = 0; i < prog->table.len; i++)
		n += prog->table.data[i].n;
	s->table_target = malloc((n + 1) * sizeof *s->table_target);
	if (!s->table_target)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < prog->table.len; i++)
		for (uint32_t k = 0; k < prog->table.data[i].n; k++)
			s->table_target[s->n_table_targets++] =
				prog->dataref.data[prog->table.data[i].entry + k].target;
	qsort(s->table_target, s->n_table_targets, sizeof *s->table_target, elfrw_u64_order);
	return NULL;
}

#define JOIN(to, from)                                                         \
	(VEC_RESERVE((to), (to)->len + (from)->len + 1)                        \
		 ? ((from)->len ? memcpy((to)->data + (to)->len, (from)->data, \
					 (from)->len * sizeof *(to)->data)     \
				: NULL,                                        \
		    (to)->len += (from)->len, true)                            \
		 : false)

struct elfrw_err *icf_scan_calls(const struct icf_program *prog, const struct elfrw_addrmap *map,
				 bool indirect, unsigned threads, struct icf_calls *ret)
{
	size_t runs = (prog->unit.len + RUN - 1) / RUN;
	struct scan s = { .prog = prog,
			  .map = map,
			  .indirect = indirect,
			  .run = calloc(runs + 1, sizeof *s.run) };
	struct icf_calls all = { 0 };
	struct elfrw_err *err = s.run ? prepare(&s) : &elfrw_err_nomem;
	if (!err)
		err = elfrw_parallel(threads, runs, scan_run, &s);
	for (size_t r = 0; s.run && r < runs; r++) {
		if (!err &&
		    (!JOIN(&all.call, &s.run[r].call) || !JOIN(&all.vcall, &s.run[r].vcall) ||
		     !JOIN(&all.indirect, &s.run[r].indirect)))
			err = &elfrw_err_nomem;
		icf_calls_deinit(&s.run[r]);
	}
	free(s.run);
	free(s.table_target);
	if (err)
		icf_calls_deinit(&all);
	else
		*ret = all;
	return err;
}

void icf_calls_deinit(struct icf_calls *calls)
{
	VEC_FREE(&calls->call);
	VEC_FREE(&calls->vcall);
	VEC_FREE(&calls->indirect);
}
