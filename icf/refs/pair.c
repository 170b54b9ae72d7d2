/* pair.c: addresses that two instructions hold together: the high half is put into a register, and
 * others add the low half to it.
 *
 * A pair is one reference in two places.  It is believed if the code between its halves runs from
 * top to bottom: until the register with the high half gets another value, each instruction that
 * reads this register adds a low half to it, nothing branches to the instructions between, and none
 * of them leaves.  Compilers write addresses of functions so.  In all other cases the halves stay
 * as they are.  A page of data needs no more than that, since data does not move: the high half is
 * written anew from its new place.  If relocations tell the address, and it is not that of a page,
 * each half is a reference of its own, and is written anew wherever the other one is.  Else all
 * functions in a page of code are pinned.  So they are if the halves name different places there.
 *
 * Something else may enter the code between two halves: a jump table, an exception, another unit.
 * That is known only after the tables are; the address is then pinned, and the halves keep their
 * bits (icf_pin_halves).  An indirect jump may go anywhere in its unit.
 *
 * Cost: a few instructions for each high half, and for each pair that names code. */
#include "dwarf/lsda.h"
#include "elfrw/arch/effect.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/infer/parts.h"
#include "icf/refs/code_reloc.h"
#include "icf/refs/pair.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SPAN \
	64 /* instructions from a high half to its last low half; icf_ref.pair holds more */

struct finder {
	struct icf_program *prog;
	const struct elfrw_relocs *rel;
	struct icf_unit *u;
	const uint8_t *code;
	const struct icf_trace *t;
	VEC(struct icf_ref) low; /* of the unit; `unit` is the offset of the high half */
	bool jumps;              /* the unit jumps indirectly */
};

/* Could a place that moves with the code be what the high half REF names? */
static bool may_move(const struct icf_program *prog, const struct icf_ref *ref)
{
	uint64_t from, to;
	elfrw_form_span(icf_ref_form(prog, ref), ref->target, &from, &to);
	for (size_t e = 0; e < prog->exec.len; e++)
		if (from < prog->exec.data[e].end && prog->exec.data[e].start < to)
			return true;
	/* The low half counts from the place of the high one. */
	return icf_ref_form(prog, ref)->base == ELFRW_BASE_HIGH;
}

static struct elfrw_err *add_low(struct finder *f, const struct icf_insn_at *at, uint8_t form,
				 const struct icf_ref *high)
{
	struct icf_ref *low = VEC_PUSH(&f->low);
	if (!low)
		return &elfrw_err_nomem;
	*low = (struct icf_ref){ .target = elfrw_form_read(&f->prog->arch->form[form],
							   f->code + at->pos, high->target),
				 .off = at->pos,
				 .unit = high->off,
				 .table = ICF_NONE,
				 .form = form,
				 .kind = ICF_REF_PCREL,
				 .flags = at->in.flags & ELFRW_INSN_MEM ? 0 : ICF_REF_LEA };
	return NULL;
}

/* Instruction K has the high half HIGH: adds its low halves.  *ALL: there are no others. */
static struct elfrw_err *follow(struct finder *f, size_t k, const struct icf_ref *high, bool *all)
{
	const struct elfrw_arch *arch = f->prog->arch;
	struct elfrw_effect e;
	arch->model->effect(&f->t->insn.data[k].in, f->code + f->t->insn.data[k].pos, &e);
	uint32_t set = e.writes;
	*all = false;
	if (!set || (set & (set - 1)))
		return NULL;
	for (size_t m = k + 1; m < f->t->insn.len && m <= k + MAX_SPAN; m++) {
		const struct icf_insn_at *at = &f->t->insn.data[m];
		if (icf_trace_bit(f->t->target.data, at->pos))
			return NULL;
		arch->model->effect(&at->in, f->code + at->pos, &e);
		if (e.reads & set) {
			uint8_t form = elfrw_reg_bit(at->in.base) == set
					       ? arch->low_form(&at->in, f->code + at->pos)
					       : 0;
			if (!form)
				return NULL;
			ELFRW_TRY(add_low(f, at, form, high));
		}
		if (at->in.kind != ELFRW_INSN_OTHER && at->in.kind != ELFRW_INSN_NOP)
			return NULL;
		*all = (e.writes & set) != 0;
		if (*all)
			return NULL;
	}
	return NULL;
}

/* An unwind table changes, and no one can pin a place in it. */
static struct elfrw_err *refuse_frames(const struct finder *f, const struct icf_ref *low)
{
	const struct elfrw_image *img = f->prog->img;
	uint32_t s = elfrw_image_section_at(img, low->target);
	if (!s || strcmp(img->section[s].name, ".eh_frame") != 0)
		return NULL;
	return elfrw_error("0x%llx: the address of an unwind table (0x%llx) in two halves, "
			   "which are not understood",
			   (unsigned long long)(f->u->start + low->off),
			   (unsigned long long)low->target);
}

/* Does the only relocation at PLACE tell what the halves with the bounds FROM and TO name?  If
 * there are two, one is at a wrong place.  Addends for data may be stale: linkers merge strings. */
static bool is_named(const struct finder *f, uint64_t place, uint64_t from, uint64_t to,
		     uint64_t *ret)
{
	const struct elfrw_image *img = f->prog->img;
	const struct elfrw_relocs *rel = f->rel;
	size_t r = elfrw_relocs_from(rel, place);
	Elf64_Sym sym;
	if (r == rel->n || rel->rela[r].r_offset != place ||
	    (r + 1 < rel->n && rel->rela[r + 1].r_offset == place) ||
	    !elfrw_reloc_symbol(img, rel->symtab, &rel->rela[r], &sym))
		return false;
	*ret = sym.st_value + (uint64_t)rel->rela[r].r_addend;
	const Elf64_Shdr *sh = sym.st_shndx != SHN_UNDEF && sym.st_shndx < img->n_sections
				       ? &img->section[sym.st_shndx].hdr
				       : NULL;
	if (sh && (sh->sh_flags & SHF_ALLOC) && !(sh->sh_flags & SHF_EXECINSTR)) {
		*ret = *ret > from ? *ret : from;
		*ret = *ret > sh->sh_addr ? *ret : sh->sh_addr;
		return *ret < to && *ret - sh->sh_addr <= sh->sh_size;
	}
	return *ret >= from && *ret < to;
}

/* The low halves of HIGH are not all known.  At a page's start there may be none: linkers turn an
 * addition of nothing into a no-op, and its relocation stays there. */
static void leave(const struct finder *f, struct icf_ref *high)
{
	uint64_t named, from, to;
	const struct elfrw_form *form = icf_ref_form(f->prog, high);
	if (icf_tells_half(f->prog, f->u->sec, f->rel, f->u->start + high->off, &named) &&
	    (named & (((uint64_t)1 << form->page) - 1))) {
		high->target = named;
		high->flags = ICF_REF_LEA;
		return;
	}
	high->flags = ICF_REF_HALF;
	elfrw_form_span(form, high->target, &from, &to);
	if (!is_named(f, f->u->start + high->off, from, to, &named))
		return;
	high->target = named;
	high->flags |= ICF_REF_NAMED;
}

/* Does the only relocation at PLACE name TARGET? */
static bool names(const struct finder *f, uint64_t place, uint64_t target)
{
	uint64_t named;
	return !icf_is_doubted(f->prog, f->u->sec, place) &&
	       is_named(f, place, target, target + 1, &named);
}

/* Do relocations tell, of HIGH and of each of the N halves LOW, that it is for the same address?
 * Those of loads from the GOT do, which linkers relax to additions.  Then whatever else enters
 * between the halves comes with the high half of this address. */
static bool all_named(const struct finder *f, const struct icf_ref *high, const struct icf_ref *low,
		      size_t n)
{
	uint64_t start = f->u->start, target = low[0].target;
	bool ok = f->rel && names(f, start + high->off, target);
	for (size_t i = 0; i < n && ok; i++)
		ok = low[i].target == target && names(f, start + low[i].off, target);
	return ok;
}

/* HIGH has the low halves from FIRST on; ALL: no others. */
static struct elfrw_err *settle(struct finder *f, struct icf_ref *high, size_t first, bool all)
{
	const struct icf_ref *low = f->low.data + first;
	size_t n = f->low.len - first;
	bool one = true, computes = false, data = f->prog->inferred;
	for (size_t i = 0; i < n; i++) {
		data &= !icf_in_exec(f->prog, low[i].target);
		one &= low[i].target == low[0].target;
		computes |= (low[i].flags & ICF_REF_LEA) != 0;
	}
	for (size_t i = 0; i < n && !(all && one); i++)
		ELFRW_TRY(refuse_frames(f, &low[i]));
	/* Low halves of data never change, whatever enters between the halves. */
	bool alone = one && n && (!f->jumps || all_named(f, high, low, n));
	if (n && ((all && (data || alone)) || !may_move(f->prog, high))) {
		high->target = low[0].target;
		high->flags = computes ? ICF_REF_LEA : 0;
		bool literal = (f->u->flags & ICF_UNIT_POOL) &&
			       icf_data_end(f->prog, high->target) != high->target;
		if (high->target - f->u->start < f->u->end - f->u->start && !literal)
			f->u->flags |= ICF_UNIT_DATA_READ;
		return NULL;
	}
	/* Nothing else tells what they name. */
	for (size_t i = first; i < first + n && f->prog->inferred; i++)
		f->low.data[i].flags |= ICF_REF_HALF;
	if (!f->prog->inferred)
		f->low.len = first;
	leave(f, high);
	return NULL;
}

static int place_order(const void *a, const void *b)
{
	const struct icf_ref *x = a, *y = b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	/* A low half that only a relocation shows comes last. */
	return (x->unit == ICF_NONE) - (y->unit == ICF_NONE);
}

/* Sorts N references by place, stably.  They are almost in order. */
static void sort_refs(struct icf_ref *ref, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct icf_ref one = ref[i];
		size_t k = i;
		for (; k > 0 && place_order(&ref[k - 1], &one) > 0; k--)
			ref[k] = ref[k - 1];
		ref[k] = one;
	}
}

/* Merges the last M of N references, both sorted by place, with the ones before them.  LOW holds
 * the same M. */
static void merge(struct icf_ref *ref, size_t n, const struct icf_ref *low, size_t m)
{
	for (size_t a = n - m; m > 0;)
		if (a > 0 && place_order(&ref[a - 1], &low[m - 1]) > 0) {
			a--;
			ref[--n] = ref[a];
		} else
			ref[--n] = low[--m];
}

/* Puts the low halves among the other references, which are in order. */
static struct elfrw_err *insert(struct finder *f)
{
	struct icf_chunk *c = &f->prog->chunk[f->u->chunk];
	sort_refs(f->low.data, f->low.len);
	if (!VEC_APPEND(&c->ref, f->low.data, f->low.len))
		return &elfrw_err_nomem;
	struct icf_ref *ref = c->ref.data + f->u->ref;
	size_t n = c->ref.len - f->u->ref, to = 0;
	sort_refs(ref, n - f->low.len);
	merge(ref, n, f->low.data, f->low.len);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || ref[i].off != ref[i - 1].off)
			ref[to++] = ref[i];
	c->ref.len = f->u->ref + to;
	for (size_t i = 0; i < to; i++) {
		size_t high = i;
		if (ref[i].unit == ICF_NONE)
			continue;
		while (ref[high].off != ref[i].unit)
			high--;
		ref[i].pair = (uint8_t)(i - high);
		ref[i].unit = ICF_NONE;
	}
	return NULL;
}

/* Instruction K jumps indirectly: to the address that the two instructions before it compute, as in
 * linkers' stubs? */
static bool jumps_to_pair(const struct finder *f, size_t k)
{
	const struct elfrw_arch *arch = f->prog->arch;
	const struct icf_insn_at *at = f->t->insn.data + k;
	struct elfrw_effect high, low;
	if (k < 2 || !at[-2].in.pcrel_size || !icf_is_half(arch, &at[-2].in) ||
	    (at[-1].in.flags & ELFRW_INSN_MEM) ||
	    !arch->low_form(&at[-1].in, f->code + at[-1].pos) ||
	    icf_trace_bit(f->t->target.data, at[-1].pos) ||
	    icf_trace_bit(f->t->target.data, at->pos))
		return false;
	arch->model->effect(&at[-2].in, f->code + at[-2].pos, &high);
	arch->model->effect(&at[-1].in, f->code + at[-1].pos, &low);
	return at->in.base != ELFRW_REG_NONE && high.writes == low.writes &&
	       high.writes == elfrw_reg_bit(at->in.base) &&
	       high.writes == elfrw_reg_bit(at[-1].in.base);
}

/* The instruction that holds the byte at POS, not before instruction K, or T's last one. */
static size_t insn_at(const struct icf_trace *t, size_t k, uint32_t pos)
{
	size_t next = LOWER_BOUND(k, t->insn.len, mid, t->insn.data[mid].pos <= pos);
	return next > k ? next - 1 : k;
}

static struct elfrw_err *pair_all(struct finder *f)
{
	struct icf_chunk *c = &f->prog->chunk[f->u->chunk];
	const struct elfrw_arch *arch = f->prog->arch;
	size_t k = 0;
	for (size_t r = f->u->ref; r < c->ref.len; r++) {
		struct icf_ref *ref = &c->ref.data[r];
		/* Only the first reference of a place is the instruction's own. */
		if (!elfrw_form_is_high(icf_ref_form(f->prog, ref)) ||
		    (r > f->u->ref && ref[-1].off == ref->off))
			continue;
		k = insn_at(f->t, k, ref->off);
		const struct elfrw_insn *in = &f->t->insn.data[k].in;
		if (!in->pcrel_size || !icf_is_half(arch, in) ||
		    f->t->insn.data[k].pos + in->pcrel_off != ref->off)
			continue;
		size_t first = f->low.len;
		bool all;
		ELFRW_TRY(follow(f, k, ref, &all));
		ELFRW_TRY(settle(f, ref, first, all));
	}
	return f->low.len ? insert(f) : NULL;
}

struct elfrw_err *icf_pair_halves(struct icf_program *prog, const struct elfrw_relocs *rel,
				  uint32_t i, const struct icf_trace *t, bool jumps)
{
	struct icf_unit *u = &prog->unit.data[i];
	struct finder f = {
		.prog = prog, .rel = rel, .u = u, .code = icf_unit_bytes(prog, u), .t = t
	};
	for (size_t k = 0; k < t->insn.len && jumps && !f.jumps; k++)
		f.jumps = t->insn.data[k].in.kind == ELFRW_INSN_JMP_IND && !jumps_to_pair(&f, k);
	struct elfrw_err *err = pair_all(&f);
	VEC_FREE(&f.low);
	return err;
}

/* --- what may stay where it is --- */

void icf_pin_named(struct icf_program *prog, uint32_t i)
{
	struct icf_unit *u = i != ICF_NONE ? &prog->unit.data[i] : NULL;
	if (!u || (u->flags & ICF_UNIT_PINNED))
		return;
	u->flags |= ICF_UNIT_PINNED;
	prog->n_pinned++;
	if (u->reason == ICF_OK)
		u->reason = ICF_NEAR_OPAQUE;
}

/* REF of unit I has ICF_REF_HALF. */
static void pin_half(struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	const struct elfrw_form *form = icf_ref_form(prog, ref);
	if (elfrw_form_is_low(form) || (ref->flags & ICF_REF_NAMED)) {
		if (form->base == ELFRW_BASE_HIGH)
			icf_pin_named(prog, i);
		icf_pin_named(prog, icf_unit_at(prog, ref->target));
		return;
	}
	uint64_t from, to;
	elfrw_form_span(form, ref->target, &from, &to);
	uint32_t k =
		(uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].end <= from);
	for (; k < prog->unit.len && prog->unit.data[k].start < to; k++)
		icf_pin_named(prog, k);
	if (form->base == ELFRW_BASE_HIGH)
		icf_pin_named(prog, i);
}

static bool names_code(const struct icf_program *prog, const struct icf_ref *ref)
{
	return ref->pair &&
	       (ref->unit != ICF_NONE || icf_ref_form(prog, ref)->base == ELFRW_BASE_REMAINDER);
}

/* Adds the landing pads of FDE number K. */
static struct elfrw_err *add_pads(const struct icf_program *prog, size_t k, struct dwr_lsda *lsda,
				  struct icf_bits *ret)
{
	const struct dwr_fde *fde = &prog->cfi.fde.data[k];
	if (!fde->lsda || fde->pc_end <= fde->pc_begin)
		return NULL;
	struct elfrw_err *err =
		dwr_lsda_read(lsda, prog->img, fde->lsda, fde->pc_begin, fde->pc_end);
	if (err)
		return err;
	for (size_t s = 0; s < lsda->site.len; s++)
		if (lsda->site.data[s].landing_pad)
			icf_set_bit(ret, lsda->site.data[s].landing_pad);
	return NULL;
}

/* Is VA in UNIT, but not its start? */
static bool is_inside(const struct icf_program *prog, uint32_t unit, uint64_t va)
{
	return unit != ICF_NONE && prog->unit.data[unit].start != va;
}

/* Sets the bits (of all code) of the places behind the starts of units that are entered other than
 * from above or by a branch in their own unit.  *KNOWN is false if an exception table is not
 * understood. */
static struct elfrw_err *find_entered(const struct icf_program *prog, struct icf_bits *ret,
				      bool *known)
{
	if (!icf_bits_init(ret, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (is_inside(prog, ref[r].unit, ref[r].target))
				icf_set_bit(ret, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (is_inside(prog, prog->dataref.data[i].unit, prog->dataref.data[i].target))
			icf_set_bit(ret, prog->dataref.data[i].target);
	struct dwr_lsda lsda = { 0 };
	struct elfrw_err *err = NULL;
	*known = true;
	for (size_t k = 0; k < prog->cfi.fde.len && !err; k++) {
		err = add_pads(prog, k, &lsda, ret);
		if (err && err != &elfrw_err_nomem) {
			elfrw_err_free(err);
			err = NULL;
			*known = false;
		}
	}
	dwr_lsda_deinit(&lsda);
	return err;
}

/* Is a bit set behind FROM, up to TO?  They are few instructions apart. */
static bool is_entered(const struct icf_bits *entered, uint64_t from, uint64_t to)
{
	for (uint64_t va = from + 1; va <= to; va++)
		if (icf_bit(entered, va))
			return true;
	return false;
}

struct elfrw_err *icf_pin_halves(struct icf_program *prog)
{
	struct icf_bits entered = { 0 };
	struct elfrw_err *err = NULL;
	bool known = true, searched = false;
	for (uint32_t i = 0; i < prog->unit.len && prog->arch->low_form && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref && !err; r++) {
			if (ref[r].flags & ICF_REF_HALF)
				pin_half(prog, i, &ref[r]);
			if (!names_code(prog, &ref[r]))
				continue;
			if (!searched)
				err = find_entered(prog, &entered, &known);
			searched = true;
			uint64_t from = u->start + ref[r - ref[r].pair].off,
				 to = u->start + ref[r].off;
			if (!err && known && !is_entered(&entered, from, to))
				continue;
			icf_pin_named(prog, ref[r].unit);
			if (icf_ref_form(prog, &ref[r])->base == ELFRW_BASE_REMAINDER)
				icf_pin_named(prog, i);
		}
	}
	icf_bits_deinit(&entered);
	return err;
}
