/* half.c: addresses in two halves, for hashes: which instructions hold a low half.
 *
 * refs/pair.c believes a pair only where moved code stays right: what is left keeps its bits, and
 * whether a pair is left depends on what lies in its page.  A hash needs less and must not depend
 * on that.  Here a low half is each field that can be one whose register, on all paths that
 * branches and exception tables show, was last written with a page.  Compilers use a page for
 * nothing else.
 *
 * Cost: the code of a unit with halves is decoded once and followed a few times. */
#include "dwarf/lsda.h"
#include "elfrw/arch/effect.h"
#include "elfrw/base/search.h"
#include "icf/hash/state.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 16
#define MAX_REGS   32
#define NOTHING    UINT32_MAX

struct at {
	struct elfrw_insn in;
	uint32_t pos, label; /* index of its label, or NOTHING */
};

/* By register: the instruction that put a page into it, or NOTHING. */
struct pages {
	bool known;  /* some path leads here */
	bool passed; /* a label: in this round */
	bool pad;    /* a label: exceptions lead here, and no code in front of it goes on here */
	uint32_t from[MAX_REGS];
};

struct halves {
	const struct icf_program *prog;
	const struct icf_unit *u;
	const uint8_t *code;
	VEC(struct at) insn;
	VEC(struct pages) label;
	icf_ref_list low;     /* that are no references yet */
	struct dwr_lsda lsda; /* of the unit, if it has one; it counts from: */
	uint64_t lsda_start;
	bool changed; /* a label that was passed already is known better */
};

static bool decode(struct halves *h, bool *good)
{
	uint64_t size = h->u->end - h->u->start;
	*good = false;
	for (uint64_t pos = 0; pos < size;) {
		struct at *at = VEC_PUSH(&h->insn);
		if (!at)
			return false;
		*at = (struct at){ .pos = (uint32_t)pos, .label = NOTHING };
		if (!icf_decode(h->prog, h->u, h->code + pos, size - pos, h->u->start + pos,
				&at->in))
			return true;
		pos += at->in.len;
	}
	*good = true;
	return true;
}

/* The instruction of the unit at VA, or NULL. */
static struct at *insn_at(const struct halves *h, uint64_t va)
{
	uint64_t to = va - h->u->start;
	size_t k = LOWER_BOUND(0, h->insn.len, mid, h->insn.data[mid].pos < to);
	return k < h->insn.len && h->insn.data[k].pos == to ? &h->insn.data[k] : NULL;
}

/* The instruction of the unit where control may go from AT, besides the next one: a branch's target
 * or, of a call, the landing pad.  NULL: none. */
static struct at *leads_to(const struct halves *h, const struct at *at)
{
	const struct dwr_lsda_site *site;
	uint64_t off = h->u->start + at->pos - h->lsda_start;
	size_t n;
	switch (at->in.kind) {
	case ELFRW_INSN_JMP:
	case ELFRW_INSN_JCC: return at->in.pcrel_size ? insn_at(h, at->in.target) : NULL;
	case ELFRW_INSN_CALL:
	case ELFRW_INSN_CALL_IND:
		site = h->lsda.site.data;
		n = LOWER_BOUND(0, h->lsda.site.len, mid, site[mid].start <= off);
		return n && off - site[n - 1].start < site[n - 1].len && site[n - 1].landing_pad
			       ? insn_at(h, site[n - 1].landing_pad)
			       : NULL;
	default: return NULL;
	}
}

static bool find_labels(struct halves *h)
{
	for (size_t k = 0; k < h->insn.len; k++) {
		struct at *to = leads_to(h, &h->insn.data[k]);
		if (!to)
			continue;
		if (to->label == NOTHING) {
			struct pages *p = VEC_PUSH(&h->label);
			if (!p)
				return false;
			*p = (struct pages){ .known = false };
			memset(p->from, 0xff, sizeof p->from);
			to->label = (uint32_t)(h->label.len - 1);
		}
		h->label.data[to->label].pad |= h->insn.data[k].in.kind == ELFRW_INSN_CALL ||
						h->insn.data[k].in.kind == ELFRW_INSN_CALL_IND;
	}
	return true;
}

/* Reads the exception table of the unit, if it has one.  What cannot be read has no landing pads.
 * false: out of memory. */
static bool read_sites(struct halves *h)
{
	const struct icf_program *prog = h->prog;
	for (uint32_t k = 0; k < h->u->n_fde; k++) {
		const struct dwr_fde *f = &prog->cfi.fde.data[prog->cfi.by_pc[h->u->fde + k]];
		if (!f->lsda || f->pc_end <= f->pc_begin)
			continue;
		struct elfrw_err *err =
			dwr_lsda_read(&h->lsda, prog->img, f->lsda, f->pc_begin, f->pc_end);
		if (err == &elfrw_err_nomem)
			return false;
		if (err)
			h->lsda.site.len = 0;
		elfrw_err_free(err);
		h->lsda_start = f->pc_begin;
		return true;
	}
	return true;
}

/* Another path with NEW leads to where TO is known.  Two instructions may put one page into a
 * register. */
static void join(struct halves *h, struct pages *to, const struct pages *new)
{
	bool passed = to->passed;
	if (!to->known) {
		memcpy(to->from, new->from, sizeof to->from);
		to->known = true;
		h->changed |= passed;
		return;
	}
	for (unsigned r = 0; r < MAX_REGS; r++) {
		uint32_t a = to->from[r], b = new->from[r], both = NOTHING;
		if (a != NOTHING && b != NOTHING &&
		    h->insn.data[a].in.target == h->insn.data[b].in.target)
			both = a < b ? a : b;
		h->changed |= passed && both != a;
		to->from[r] = both;
	}
}

/* Goes over instruction K. */
static void step(struct halves *h, uint32_t k, struct pages *now)
{
	const struct elfrw_model *model = h->prog->arch->model;
	const struct at *at = &h->insn.data[k];
	struct elfrw_effect e;
	model->effect(&at->in, h->code + at->pos, &e);
	bool call = at->in.kind == ELFRW_INSN_CALL || at->in.kind == ELFRW_INSN_CALL_IND;
	bool half = at->in.pcrel_size && icf_is_half(h->prog->arch, &at->in);
	uint32_t writes = e.writes | (call ? model->clobbered : 0);
	for (unsigned r = 0; r < MAX_REGS; r++)
		if (writes & elfrw_reg_bit(r))
			now->from[r] = half ? k : NOTHING;
	struct at *to = leads_to(h, at);
	if (to && now->known)
		join(h, &h->label.data[to->label], now);
	if (at->in.kind == ELFRW_INSN_JMP || at->in.kind == ELFRW_INSN_RET ||
	    at->in.kind == ELFRW_INSN_TRAP || at->in.kind == ELFRW_INSN_JMP_IND) {
		now->known = false;
		memset(now->from, 0xff, sizeof now->from);
	}
}

/* The reference at OFF, or NULL. */
static struct icf_ref *ref_at(const icf_ref_list *list, uint32_t off)
{
	size_t k = LOWER_BOUND(0, list->len, mid, list->data[mid].off < off);
	return k < list->len && list->data[k].off == off ? &list->data[k] : NULL;
}

/* Instruction K has a low half for the page of instruction HIGH: completes both where they are in
 * LIST, or keeps the low half for merge(). */
static bool add_low(struct halves *h, uint32_t k, uint32_t high, uint8_t form,
		    const icf_ref_list *list)
{
	const struct at *at = &h->insn.data[k], *page = &h->insn.data[high];
	uint64_t target =
		elfrw_form_read(&h->prog->arch->form[form], h->code + at->pos, page->in.target);
	struct icf_ref low = { .target = target,
			       .off = at->pos,
			       .unit = icf_unit_at(h->prog, target),
			       .table = ICF_NONE,
			       .form = form,
			       .pair = 2,
			       .kind = ICF_REF_PCREL,
			       .flags = at->in.flags & ELFRW_INSN_MEM ? 0 : ICF_REF_LEA };
	struct icf_ref *ref = ref_at(list, at->pos), *first = ref_at(list, page->pos);
	if (first && first + 1 == ref)
		ref->pair = 1;
	if (ref) {
		ref->flags &= (uint8_t)(63 & ~ICF_REF_HALF);
	} else {
		if (first && (first + 1 == list->data + list->len || first[1].off > at->pos))
			low.pair = 1;
		struct icf_ref *slot = VEC_PUSH(&h->low);
		if (!slot)
			return false;
		*slot = low;
	}
	/* As refs/pair.c does with a pair: the high half names the first place. */
	if (first && (first->flags & ICF_REF_HALF)) {
		first->target = target;
		first->unit = low.unit;
		first->flags = low.flags;
	}
	return true;
}

/* Puts the low halves that were found into LIST. */
static bool merge(const struct halves *h, icf_ref_list *list)
{
	size_t n = list->len, m = h->low.len, to = n + m;
	if (!VEC_APPEND(list, h->low.data, m))
		return false;
	while (m)
		if (n && list->data[n - 1].off > h->low.data[m - 1].off)
			list->data[--to] = list->data[--n];
		else
			list->data[--to] = h->low.data[--m];
	return true;
}

/* Follows the code once.  LIST: the references, for add_low(), or NULL. */
static bool follow(struct halves *h, const icf_ref_list *list)
{
	struct pages now = { .known = true };
	memset(now.from, 0xff, sizeof now.from);
	h->changed = false;
	for (size_t i = 0; i < h->label.len; i++)
		h->label.data[i].passed = false;
	for (uint32_t k = 0; k < h->insn.len; k++) {
		const struct at *at = &h->insn.data[k];
		if (at->label != NOTHING) {
			struct pages *p = &h->label.data[at->label];
			if (now.known && !p->pad)
				join(h, p, &now);
			p->passed = true;
			now = *p;
		}
		uint8_t form = list && at->in.base < MAX_REGS && now.from[at->in.base] != NOTHING
				       ? h->prog->arch->low_form(&at->in, h->code + at->pos)
				       : 0;
		if (form && !add_low(h, k, now.from[at->in.base], form, list))
			return false;
		step(h, k, &now);
	}
	return true;
}

/* Makes all high halves in LIST without a low half pages: what relocations tell of them is not
 * known in other files. */
static void forget_named(const struct halves *h, icf_ref_list *list)
{
	for (size_t i = 0; i < list->len; i++) {
		struct icf_ref *r = &list->data[i];
		size_t low = i + 1;
		if (!elfrw_form_is_high(icf_ref_form(h->prog, r)))
			continue;
		while (low < list->len && low - i <= UINT8_MAX &&
		       (list->data[low].pair != low - i || (list->data[low].flags & ICF_REF_HALF)))
			low++;
		if (low == list->len || low - i > UINT8_MAX)
			r->flags |= ICF_REF_HALF;
	}
}

bool icf_hash_halves(const struct icf_program *prog, const struct icf_unit *u, icf_ref_list *list)
{
	struct halves h = { .prog = prog, .u = u, .code = icf_unit_bytes(prog, u) };
	bool good = false, ok = u->end - u->start < NOTHING && decode(&h, &good);
	if (ok && good)
		ok = read_sites(&h) && find_labels(&h);
	h.changed = ok && good;
	for (unsigned n = 0; ok && h.changed && n < MAX_ROUNDS; n++)
		ok = follow(&h, NULL);
	forget_named(&h, list);
	if (ok && good && !h.changed)
		ok = follow(&h, list) && merge(&h, list);
	VEC_FREE(&h.low);
	dwr_lsda_deinit(&h.lsda);
	VEC_FREE(&h.insn);
	VEC_FREE(&h.label);
	return ok;
}
