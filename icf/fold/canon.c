/* canon.c: the canonical form of a unit: what it does, independent of its address.
 *
 * The form consists of the bytes with blanked reference fields; the references (offset, kind,
 * width, meaning of the target); the unwind rules; the meaning of the LSDA; the jump tables; the
 * probes.  XXH3-128 of the form only sorts units into buckets; icf_same_form() compares in full.
 * Targets inside units that may be folded are left to the partition: they count by class. */
#include "elfrw/base/wbuf.h"
#include "dwarf/lsda.h"
#include "icf/fold/fold.h"
#include "icf/fold/probe.h"
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

struct lsda_scratch {
	struct dwr_lsda lsda;
	dwr_lsda_pads pads;
};

struct elfrw_err *icf_canon_scratch_init(struct icf_canon_scratch *s)
{
	s->buf = calloc(1, sizeof *s->buf);
	s->lsda = calloc(1, sizeof(struct lsda_scratch));
	if (s->buf && s->lsda)
		return NULL;
	icf_canon_scratch_deinit(s);
	return &elfrw_err_nomem;
}

void icf_canon_scratch_deinit(struct icf_canon_scratch *s)
{
	struct lsda_scratch *l = s->lsda;
	if (s->buf)
		elfrw_wbuf_free(s->buf);
	if (l) {
		dwr_lsda_deinit(&l->lsda);
		VEC_FREE(&l->pads);
	}
	free(s->buf);
	free(l);
	*s = (struct icf_canon_scratch){ 0 };
}

enum icf_meaning icf_ref_meaning(const struct icf_program *prog, enum icf_mode mode,
				 const struct icf_ref *ref)
{
	if (ref->table != ICF_NONE)
		return ICF_MEANS_TABLE;
	if (ref->unit == ICF_NONE)
		return ICF_MEANS_ADDRESS;
	if (ref->flags & ICF_REF_OWN)
		return ICF_MEANS_OWN;
	if (ref->kind == ICF_REF_BRANCH)
		return ICF_MEANS_CLASS;
	/* An address that the program can look at counts by class only if the whole class gets one
	 * address. */
	if (mode == ICF_MODE_ALL && ref->target == prog->unit.data[ref->unit].start)
		return ICF_MEANS_CLASS;
	return ICF_MEANS_ADDRESS;
}

static void put_ref(const struct icf_program *prog, enum icf_mode mode, struct elfrw_wbuf *w,
		    const struct icf_ref *ref)
{
	enum icf_meaning m = icf_ref_meaning(prog, mode, ref);
	elfrw_wbuf_u32(w, ref->off);
	elfrw_wbuf_u32(w, (uint32_t)ref->form << 24 | (uint32_t)ref->kind << 16 |
				  (uint32_t)ref->flags << 8 | (uint32_t)m);
	if (m == ICF_MEANS_ADDRESS)
		elfrw_wbuf_u64(w, ref->target);
	else if (m == ICF_MEANS_OWN)
		elfrw_wbuf_u64(w, ref->target - prog->unit.data[ref->unit].start);
	else if (m == ICF_MEANS_CLASS) {
		const struct icf_unit *t = &prog->unit.data[ref->unit];
		elfrw_wbuf_u64(w, ref->target - t->start);
		elfrw_wbuf_u64(w, t->reason == ICF_OK ? UINT64_MAX : ref->unit);
	} else {
		const struct icf_table *t = &prog->table.data[ref->table];
		const struct icf_dataref *d = &prog->dataref.data[t->entry];
		if (icf_names_again(prog, ref)) {
			elfrw_wbuf_u64(w, UINT64_MAX);
			elfrw_wbuf_u64(w, t->ref);
			return;
		}
		elfrw_wbuf_u64(w, (uint64_t)t->n << 16 | (uint64_t)d->size << 8 |
					  (d->kind != ICF_DATA_ADDRESS));
		for (uint32_t i = 0; i < t->n; i++) {
			const struct icf_unit *u = &prog->unit.data[d[i].unit];
			elfrw_wbuf_u64(w, d[i].target - u->start);
			elfrw_wbuf_u64(w, d[i].unit == t->owner ? UINT64_MAX - 1
					  : u->reason == ICF_OK ? UINT64_MAX
								: d[i].unit);
		}
	}
}

/* A landing pad, by its offset in its unit.  If the unit may fold, icf_edges() compares the
 * unit. */
static void put_pad(const struct icf_program *prog, const struct icf_unit *u, uint64_t pad,
		    struct elfrw_wbuf *w)
{
	bool own = pad - u->start < u->end - u->start;
	uint32_t i = own ? ICF_NONE : icf_unit_at(prog, pad);
	elfrw_wbuf_u8(w, own ? 0 : i == ICF_NONE ? 1 : 2);
	if (i == ICF_NONE) {
		elfrw_wbuf_u64(w, own ? pad - u->start : pad);
		return;
	}
	const struct icf_unit *t = &prog->unit.data[i];
	elfrw_wbuf_u64(w, pad - t->start);
	elfrw_wbuf_u64(w, t->reason == ICF_OK ? UINT64_MAX : i);
}

/* Unwind rules and LSDA. */
static struct elfrw_err *put_unwind(const struct icf_program *prog, const struct icf_unit *u,
				    struct icf_canon_scratch *s)
{
	struct lsda_scratch *l = s->lsda;
	for (uint32_t k = 0; k < u->n_fde; k++) {
		uint32_t f = prog->cfi.by_pc[u->fde + k];
		const struct dwr_fde *fde = &prog->cfi.fde.data[f];
		/* An empty function, which can never be reached, may have had this address.  Its
		 * FDE describes none of U's code. */
		if (fde->pc_end <= fde->pc_begin)
			continue;
		elfrw_wbuf_u8(s->buf, 1);
		elfrw_wbuf_u64(s->buf, fde->pc_begin - u->start);
		elfrw_wbuf_u64(s->buf, fde->pc_end - fde->pc_begin);
		dwr_fde_canon(&prog->cfi, f, s->buf);
		elfrw_wbuf_u8(s->buf, fde->lsda != 0);
		if (!fde->lsda)
			continue;
		l->pads.len = 0;
		ELFRW_TRY(
			dwr_lsda_read(&l->lsda, prog->img, fde->lsda, fde->pc_begin, fde->pc_end));
		dwr_lsda_canon(&l->lsda, s->buf, &l->pads);
		for (size_t p = 0; p < l->pads.len; p++)
			put_pad(prog, u, l->pads.data[p], s->buf);
	}
	elfrw_wbuf_u8(s->buf, 0);
	return NULL;
}

/* Puts the whole form into s->buf. */
static struct elfrw_err *put_unit(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
				  struct icf_canon_scratch *s)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	struct elfrw_wbuf *w = s->buf;
	w->len = 0;
	size_t size = (size_t)(u->end - u->start);
	elfrw_wbuf_u64(w, size);
	uint8_t *code = elfrw_wbuf_grow(w, size);
	if (!code)
		return &elfrw_err_nomem;
	memcpy(code, icf_unit_bytes(prog, u), size);
	for (uint32_t r = 0; r < u->n_ref; r++)
		elfrw_form_blank(icf_ref_form(prog, &ref[r]), code + ref[r].off);
	for (uint32_t r = 0; r < u->n_ref; r++)
		put_ref(prog, mode, w, &ref[r]);
	ELFRW_TRY(put_unwind(prog, u, s));
	icf_put_probes(prog, i, w);
	return w->bad ? &elfrw_err_nomem : NULL;
}

struct icf_hash icf_hash_bytes(const void *data, size_t n)
{
	XXH128_hash_t h = XXH3_128bits(data, n);
	return (struct icf_hash){ h.low64, h.high64 };
}

struct elfrw_err *icf_hash_unit(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
				struct icf_canon_scratch *s, struct icf_hash *ret)
{
	ELFRW_TRY(put_unit(prog, mode, i, s));
	*ret = icf_hash_bytes(s->buf->data, s->buf->len);
	return NULL;
}

struct elfrw_err *icf_hash_unwind(const struct icf_program *prog, uint32_t i,
				  struct icf_canon_scratch *s, struct icf_hash *ret)
{
	s->buf->len = 0;
	ELFRW_TRY(put_unwind(prog, &prog->unit.data[i], s));
	if (s->buf->bad)
		return &elfrw_err_nomem;
	*ret = icf_hash_bytes(s->buf->data, s->buf->len);
	return NULL;
}

struct elfrw_err *icf_put_form(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
			       struct icf_canon_scratch *s)
{
	return put_unit(prog, mode, i, s);
}

struct elfrw_err *icf_same_form(const struct icf_program *prog, enum icf_mode mode,
				const struct icf_canon_scratch *a, uint32_t b,
				struct icf_canon_scratch *s, bool *ret)
{
	ELFRW_TRY(put_unit(prog, mode, b, s));
	*ret = a->buf->len == s->buf->len && memcmp(a->buf->data, s->buf->data, a->buf->len) == 0;
	return NULL;
}

struct elfrw_err *icf_edges(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
			    icf_unit_list *out)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		enum icf_meaning m = icf_ref_meaning(prog, mode, &ref[r]);
		uint32_t one = ref[r].unit, n = m == ICF_MEANS_CLASS;
		const struct icf_dataref *d = NULL;
		if (m == ICF_MEANS_TABLE) {
			n = icf_names_again(prog, &ref[r]) ? 0 : prog->table.data[ref[r].table].n;
			d = &prog->dataref.data[prog->table.data[ref[r].table].entry];
		}
		for (uint32_t k = 0; k < n; k++) {
			uint32_t *slot = VEC_PUSH(out);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = d ? d[k].unit : one;
		}
	}
	uint32_t n;
	const struct icf_pad *pad = icf_unit_pads(prog, i, &n);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t *slot = VEC_PUSH(out);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = pad[k].unit;
	}
	return NULL;
}
