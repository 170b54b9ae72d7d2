/* form.c: the form of a unit: what it is without what it refers to.
 *
 * The form has the code with blanked references, for each reference its place, its form and the
 * kind of its target; the unwind rules, exception tables, jump tables and probes.  Instructions
 * that a linker rewrites when it knows what a slot of the GOT holds count as rewritten, whether it
 * did that or not. */
#include "dwarf/lsda.h"
#include "elfrw/base/search.h"
#include "icf/hash/state.h"
#include <stdlib.h>
#include <string.h>

/* The tags of the parts of a form.  They are part of the hash's definition. */
enum {
	TAG_NODE = 1,
	TAG_IMPORT,
	TAG_NUMBER,
	TAG_OWN,
	TAG_TABLE,
	TAG_TABLE_AGAIN,
	TAG_PAGE,
	TAG_SLOT,
	TAG_FRAME,
	TAG_PROBE,
	TAG_END
};

void icf_form_deinit(struct icf_form *f)
{
	if (f->lsda)
		dwr_lsda_deinit(f->lsda);
	free(f->lsda);
	elfrw_wbuf_free(&f->buf);
	VEC_FREE(&f->edge);
	VEC_FREE(&f->ref);
}

void icf_put_means(const struct icf_hasher *h, struct icf_means m, struct icf_form *f)
{
	uint32_t *slot;
	switch (m.kind) {
	case ICF_TO_NODE:
		elfrw_wbuf_u8(&f->buf, TAG_NODE);
		elfrw_wbuf_uleb(&f->buf, m.off);
		if ((slot = VEC_PUSH(&f->edge)))
			*slot = m.node;
		else
			f->buf.bad = true;
		return;
	case ICF_TO_IMPORT:
		elfrw_wbuf_u8(&f->buf, TAG_IMPORT);
		icf_put_import(h, m.sym, &f->buf);
		elfrw_wbuf_u64(&f->buf, m.off);
		return;
	default:
		elfrw_wbuf_u8(&f->buf, TAG_NUMBER);
		elfrw_wbuf_u64(&f->buf, m.off);
		return;
	}
}

static void put_own(const struct icf_unit *u, uint64_t va, struct icf_form *f)
{
	elfrw_wbuf_u8(&f->buf, TAG_OWN);
	elfrw_wbuf_uleb(&f->buf, va - u->start);
}

/* What the code at VA means.  Functions call the same stubs again and again, and what a stub means
 * takes two searches. */
static struct icf_means resolve(const struct icf_hasher *h, uint64_t va, struct icf_form *f)
{
	struct icf_known *k = &f->known[va >> 4 & (ICF_KNOWN - 1)];
	if (k->va != va || !va)
		*k = (struct icf_known){ va, icf_hash_resolve(h, va) };
	return k->means;
}

/* An address of code, from unit U: an offset in U itself is no edge. */
static void put_code(const struct icf_hasher *h, const struct icf_unit *u, uint64_t va,
		     struct icf_form *f)
{
	if (va - u->start < u->end - u->start)
		put_own(u, va, f);
	else
		icf_put_means(h, resolve(h, va, f), f);
}

static void put_table(const struct icf_hasher *h, const struct icf_unit *u,
		      const struct icf_ref *ref, struct icf_form *f)
{
	const struct icf_table *t = &h->prog->table.data[ref->table];
	const struct icf_dataref *d = &h->prog->dataref.data[t->entry];
	if (icf_names_again(h->prog, ref)) {
		elfrw_wbuf_u8(&f->buf, TAG_TABLE_AGAIN);
		elfrw_wbuf_uleb(&f->buf, t->ref);
		return;
	}
	elfrw_wbuf_u8(&f->buf, TAG_TABLE);
	elfrw_wbuf_uleb(&f->buf, t->n);
	elfrw_wbuf_u8(&f->buf, d->size);
	elfrw_wbuf_u8(&f->buf, d->kind != ICF_DATA_ADDRESS);
	for (uint32_t i = 0; i < t->n; i++)
		put_code(h, u, d[i].target, f);
}

/* REF of U, which is not understood, takes the address of data.  If this is a jump table, as
 * compilers make them, puts it as put_table() does and returns true: distances of 4 bytes from its
 * start to places in the unit, up to where something refers to the next. */
static bool put_guess(const struct icf_hasher *h, const struct icf_unit *u,
		      const struct icf_ref *ref, const struct icf_ref *first, struct icf_form *f)
{
	uint64_t size = u->end - u->start, n = 0, end;
	if (!h->prog->inferred || !(ref->flags & ICF_REF_LEA))
		return false;
	struct icf_means m = icf_hash_resolve(h, ref->target);
	if (m.kind != ICF_TO_NODE || m.node < h->n_units)
		return false;
	const struct icf_place *k = &h->place.data[m.node - h->n_units];
	end = m.node + 1 < h->n ? k[1].va : UINT64_MAX;
	for (const uint8_t *p; k->kind == ICF_PLACE_CONSTANT && end - k->va >= 4 * n + 4; n++) {
		p = elfrw_image_at(h->prog->img, k->va + 4 * n, 4);
		if (!p || k->va + (uint64_t)(int32_t)elfrw_get32(p) - u->start >= size)
			break;
	}
	for (const struct icf_ref *r = ref; n && r-- > first && ref - r < 256;)
		if (r->target == ref->target) {
			elfrw_wbuf_u8(&f->buf, TAG_TABLE_AGAIN);
			elfrw_wbuf_uleb(&f->buf, (uint64_t)(r - first));
			return true;
		}
	if (!n)
		return false;
	elfrw_wbuf_u8(&f->buf, TAG_TABLE);
	elfrw_wbuf_uleb(&f->buf, n);
	elfrw_wbuf_u8(&f->buf, 4);
	elfrw_wbuf_u8(&f->buf, 1);
	const uint8_t *p = elfrw_image_at(h->prog->img, k->va, 4 * n);
	for (uint64_t i = 0; i < n && p; i++)
		put_code(h, u, k->va + (uint64_t)(int32_t)elfrw_get32(p + 4 * i), f);
	return true;
}

/* REF leads to another unit.  Puts it, unless this may be a stub, which means what its slot
 * holds. */
static bool put_other_unit(const struct icf_hasher *h, const struct icf_ref *ref,
			   struct icf_form *f)
{
	const struct icf_program *prog = h->prog;
	const struct icf_unit *t = ref->unit != ICF_NONE ? &prog->unit.data[ref->unit] : NULL;
	/* Compilers branch to the end of a unit, where another one may begin. */
	if (!t || ref->target - t->start >= t->end - t->start || prog->exec.data[t->sec].linkage)
		return false;
	icf_put_means(h,
		      (struct icf_means){ .kind = ICF_TO_NODE,
					  .node = ref->unit,
					  .off = ref->target - t->start },
		      f);
	return true;
}

/* Puts REF of U, whose first reference is FIRST.  CODE: the unit's bytes, in the form; the field is
 * blanked.  Returns how many references this was: linkers make one instruction of two. */
static uint32_t put_ref(const struct icf_hasher *h, const struct icf_unit *u,
			const struct icf_ref *first, const struct icf_ref *ref, uint8_t *code,
			struct icf_form *f)
{
	const struct icf_program *prog = h->prog;
	uint32_t kind = ref->kind, base = icf_ref_form(prog, ref)->base, count = 1;
	bool slot = ref->unit == ICF_NONE && ref->kind == ICF_REF_PCREL && !icf_names_page(ref) &&
		    icf_hash_is_slot(h, ref->target, ref->flags & ICF_REF_LEA);
	struct icf_means m = { 0 };
	struct elfrw_relaxed x = { .off = ref->off };
	if (slot)
		m = icf_hash_slot(h, ref->target);
	elfrw_form_blank(icf_ref_form(prog, ref), code + ref->off);
	bool known = slot && m.kind == ICF_TO_NODE;
	if (prog->arch->relax && (known || !slot) && !(ref->flags & ICF_REF_HALF)) {
		x = prog->arch->relax(code, u->end - u->start, ref->off, known);
		slot &= !x.changed;
		if (x.changed && x.branch)
			kind = ICF_REF_BRANCH;
		if (x.fixed || x.distance) {
			kind = x.fixed ? ICF_REF_ABS : ICF_REF_PCREL;
			base = x.fixed ? ELFRW_BASE_ZERO : ELFRW_BASE_PLACE;
		}
	}
	if ((uint32_t)(ref - first) + 1 < f->n_ref && ref[1].pair == 1 && ref[1].off == x.off) {
		base = ELFRW_BASE_PLACE;
		count = 2;
	}
	elfrw_wbuf_uleb(&f->buf, x.off);
	elfrw_wbuf_u8(&f->buf, (uint8_t)base);
	elfrw_wbuf_u8(&f->buf, (uint8_t)kind);
	if (ref->table != ICF_NONE)
		put_table(h, u, ref, f);
	else if (icf_names_page(ref))
		elfrw_wbuf_u8(&f->buf, TAG_PAGE);
	else if (slot || known) {
		if (slot)
			elfrw_wbuf_u8(&f->buf, TAG_SLOT);
		icf_put_means(h, m, f);
	} else if (ref->unit != ICF_NONE && &prog->unit.data[ref->unit] == u) {
		put_own(u, ref->target, f); /* also its end (program/end.h) */
	} else if (!put_other_unit(h, ref, f) && !put_guess(h, u, ref, first, f))
		put_code(h, u, ref->target, f);
	return count;
}

static void put_types(const struct icf_hasher *h, const struct dwr_lsda *l,
		      const struct dwr_lsda_action *a, struct icf_form *f)
{
	elfrw_wbuf_sleb(&f->buf, a->filter);
	elfrw_wbuf_uleb(&f->buf, a->n_types);
	for (uint32_t t = 0; t < a->n_types; t++) {
		const struct dwr_lsda_type *type = &l->type.data[a->type + t];
		struct icf_means any = { .kind = ICF_TO_NUMBER };
		icf_put_means(h,
			      !type->addr      ? any
			      : type->indirect ? icf_hash_slot(h, type->addr)
					       : icf_hash_resolve(h, type->addr),
			      f);
	}
}

static struct elfrw_err *put_lsda(const struct icf_hasher *h, const struct icf_unit *u,
				  const struct dwr_fde *fde, struct icf_form *f)
{
	if (!f->lsda && !(f->lsda = calloc(1, sizeof(struct dwr_lsda))))
		return &elfrw_err_nomem;
	struct dwr_lsda *l = f->lsda;
	ELFRW_TRY(dwr_lsda_read(l, h->prog->img, fde->lsda, fde->pc_begin, fde->pc_end));
	elfrw_wbuf_uleb(&f->buf, l->site.len);
	for (size_t i = 0; i < l->site.len; i++) {
		const struct dwr_lsda_site *s = &l->site.data[i];
		elfrw_wbuf_uleb(&f->buf, s->start);
		elfrw_wbuf_uleb(&f->buf, s->len);
		elfrw_wbuf_u8(&f->buf, s->landing_pad != 0);
		if (!s->landing_pad)
			continue;
		put_code(h, u, s->landing_pad, f);
		/* No action means the same as one cleanup. */
		static const struct dwr_lsda_action cleanup;
		elfrw_wbuf_uleb(&f->buf, s->n_actions ? s->n_actions : 1);
		if (!s->n_actions)
			put_types(h, l, &cleanup, f);
		for (uint32_t a = 0; a < s->n_actions; a++)
			put_types(h, l, &l->action.data[s->action + a], f);
	}
	return NULL;
}

static struct elfrw_err *put_frame(const struct icf_hasher *h, const struct icf_unit *u,
				   uint32_t index, struct icf_form *f)
{
	const struct dwr_fde *fde = &h->prog->cfi.fde.data[index];
	const struct dwr_cie *cie = &h->prog->cfi.cie.data[fde->cie];
	struct elfrw_wbuf *w = &f->buf;
	/* An empty function, which can never be reached, may have had this address. */
	if (fde->pc_end <= fde->pc_begin)
		return NULL;
	elfrw_wbuf_u8(w, TAG_FRAME);
	elfrw_wbuf_uleb(w, fde->pc_begin - u->start);
	elfrw_wbuf_uleb(w, fde->pc_end - fde->pc_begin);
	elfrw_wbuf_u8(w, (uint8_t)(cie->signal_frame | cie->b_key << 1 | cie->mte << 2));
	elfrw_wbuf_uleb(w, cie->code_align);
	elfrw_wbuf_sleb(w, cie->data_align);
	elfrw_wbuf_uleb(w, cie->ra);
	elfrw_wbuf_uleb(w, cie->insn_size);
	elfrw_wbuf_bytes(w, cie->insn, cie->insn_size);
	elfrw_wbuf_uleb(w, fde->insn_size);
	elfrw_wbuf_bytes(w, fde->insn, fde->insn_size);
	elfrw_wbuf_u8(w, cie->personality != 0);
	if (cie->personality)
		icf_put_means(h,
			      cie->personality_indirect ? icf_hash_slot(h, cie->personality)
							: icf_hash_resolve(h, cie->personality),
			      f);
	elfrw_wbuf_u8(w, fde->lsda != 0);
	return fde->lsda ? put_lsda(h, u, fde, f) : NULL;
}

static void put_probes(const struct icf_hasher *h, const struct icf_unit *u, struct elfrw_wbuf *w)
{
	const struct icf_program *prog = h->prog;
	size_t i = LOWER_BOUND(0, prog->probe.len, mid, prog->probe.data[mid].pc < u->start);
	for (; i < prog->probe.len && prog->probe.data[i].pc < u->end; i++) {
		const struct icf_probe *p = &prog->probe.data[i];
		elfrw_wbuf_u8(w, TAG_PROBE);
		elfrw_wbuf_uleb(w, p->pc - u->start);
		elfrw_wbuf_u8(w, p->semaphore != 0);
		elfrw_wbuf_uleb(w, p->size);
		elfrw_wbuf_bytes(w, p->text, p->size);
	}
}

struct elfrw_err *icf_form_unit(const struct icf_hasher *h, uint32_t unit, struct icf_form *f)
{
	const struct icf_program *prog = h->prog;
	const struct icf_unit *u = &prog->unit.data[unit];
	uint32_t n;
	const struct icf_ref *ref = icf_hash_refs(prog, unit, &f->ref, &n);
	struct elfrw_wbuf *w = &f->buf;
	size_t size = (size_t)(u->end - u->start);
	elfrw_wbuf_u8(w, ICF_HASH_VERSION);
	elfrw_wbuf_u16(w, prog->arch->machine);
	elfrw_wbuf_u64(w, size);
	size_t at = w->len;
	if (!elfrw_wbuf_grow(w, size) || (n && !ref))
		return &elfrw_err_nomem;
	memcpy(w->data + at, icf_unit_bytes(prog, u), size);
	f->n_ref = n;
	for (uint32_t r = 0; r < n && !w->bad;)
		r += put_ref(h, u, ref, &ref[r], w->data + at, f);
	for (uint32_t k = 0; k < u->n_fde; k++)
		ELFRW_TRY(put_frame(h, u, prog->cfi.by_pc[u->fde + k], f));
	put_probes(h, u, w);
	elfrw_wbuf_u8(w, TAG_END);
	elfrw_wbuf_u64(w, f->edge.len);
	return w->bad ? &elfrw_err_nomem : NULL;
}
