/* pseudo.c: .pseudo_probe, read as LLVM's reader does, in both files: from the symbols' names to
 * the probes' addresses. */
#include "elfrw/base/md5.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>

struct symbol {
	uint64_t guid, value;
};

struct reader {
	const struct elfrw_section *s;
	VEC(struct symbol) symbol; /* sorted */
	VEC(uint64_t) place;       /* of the record that was read last */
	struct elfrw_rbuf r;
	uint64_t from;       /* of that record */
	uint64_t base, last; /* the start of its function, and the address of the probe before */
	bool known, several; /* its function's name has a symbol; has some, of several values */
	bool bad;            /* addresses that no name gives */
};

static int order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct symbol));
}

static bool load(struct reader *rd, const struct elfrw_image *img, const struct elfrw_section *s)
{
	*rd = (struct reader){ .s = s, .r = elfrw_rbuf(s->data, s->data ? s->hdr.sh_size : 0) };
	const struct elfrw_section *t = img->symtab ? &img->section[img->symtab] : NULL;
	for (struct elfrw_symbols it = elfrw_symbols(t, 1); elfrw_symbols_next(&it);) {
		const char *name = elfrw_image_string(img, t->hdr.sh_link, it.sym.st_name);
		struct symbol *to = name && *name ? VEC_PUSH(&rd->symbol) : NULL;
		if (to)
			*to = (struct symbol){ elfrw_md5_low(name, strlen(name)), it.sym.st_value };
		else if (name && *name)
			return false;
	}
	if (rd->symbol.len)
		qsort(rd->symbol.data, rd->symbol.len, sizeof *rd->symbol.data, order);
	return true;
}

static void unload(struct reader *rd)
{
	VEC_FREE(&rd->symbol);
	VEC_FREE(&rd->place);
}

static void begin_at(struct reader *rd, uint64_t guid)
{
	size_t lo = 0, hi = rd->symbol.len;
	const struct symbol *v = rd->symbol.data, want = { guid, 0 };
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (order(&v[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Equal hashes are side by side, whatever the order of their values. */
	rd->known = lo < rd->symbol.len && v[lo].guid == guid;
	rd->several = false;
	for (size_t k = lo; rd->known && k < rd->symbol.len && v[k].guid == guid; k++)
		rd->several = rd->several || v[k].value != v[lo].value;
	rd->base = rd->last = rd->known ? v[lo].value : 0;
}

/* The probes of one function of the tree.  Returns false when memory is short. */
static bool probes(struct reader *rd, uint64_t n)
{
	for (; n && elfrw_rbuf_ok(&rd->r); n--) {
		elfrw_rbuf_uleb(&rd->r);
		unsigned type = elfrw_rbuf_u8(&rd->r);
		bool delta = type >> 7, sentinel = type >> 5 & 1, more = type >> 6 & 1;
		uint64_t field = delta ? (uint64_t)elfrw_rbuf_sleb(&rd->r) : elfrw_rbuf_u64(&rd->r);
		if (more)
			elfrw_rbuf_uleb(&rd->r);
		if (!delta && sentinel) {
			begin_at(rd, field);
			continue;
		}
		rd->bad = rd->bad || !delta;
		rd->last += field;
		uint64_t *p = VEC_PUSH(&rd->place);
		if (!p)
			return false;
		*p = rd->last;
	}
	return true;
}

/* Reads the next record. */
static bool next(struct reader *rd)
{
	rd->from = elfrw_rbuf_off(&rd->r);
	rd->place.len = 0;
	begin_at(rd, elfrw_rbuf_u64(&rd->r));
	for (uint64_t inlined = 1; inlined && elfrw_rbuf_ok(&rd->r);) {
		uint64_t n = elfrw_rbuf_uleb(&rd->r), more = elfrw_rbuf_uleb(&rd->r);
		if (more > elfrw_rbuf_left(&rd->r))
			rd->r.bad = true;
		if (!probes(rd, n))
			return false;
		inlined += more - 1;
		if (inlined) {
			elfrw_rbuf_uleb(&rd->r);
			elfrw_rbuf_u64(&rd->r);
		}
	}
	return true;
}

/* Is the record that Y has read that of X, with each probe at the new place of its code? */
static bool agree(const struct icf_vclaim *c, const struct reader *x, const struct reader *y,
		  uint32_t unit)
{
	uint64_t n = elfrw_rbuf_off(&x->r) - x->from;
	if (!elfrw_rbuf_ok(&y->r) || n != elfrw_rbuf_off(&y->r) - y->from ||
	    memcmp(x->s->data + x->from, y->s->data + y->from, n) != 0)
		return false;
	for (size_t i = 0; i < x->place.len && c->out.symtab; i++) {
		uint64_t want;
		if (y->several || !y->known || !icf_v_label(c, x->place.data[i], unit, &want) ||
		    want != y->place.data[i])
			return false;
	}
	return true;
}

static struct elfrw_err *compare(const struct icf_vclaim *c, struct icf_vlog *log, struct reader *x,
				 struct reader *y)
{
	while (elfrw_rbuf_left(&x->r)) {
		if (!next(x))
			return &elfrw_err_nomem;
		log->checked[ICF_VC_NOTE]++;
		uint32_t u = x->known ? icf_v_find(c, x->base) : ICF_V_NONE;
		bool fine = elfrw_rbuf_ok(&x->r) && !x->bad && x->known,
		     gone = x->several ||
			    (u != ICF_V_NONE && (c->unit.data[u].flags & ICF_V_FOLDED));
		if (fine && gone)
			continue;
		if (fine && !next(y))
			return &elfrw_err_nomem;
		if (fine && u != ICF_V_NONE && agree(c, x, y, u))
			continue;
		icf_vlog_bad(
			log, ICF_VC_NOTE,
			"record: .pseudo_probe+0x%llx, of the function at 0x%llx: expected the same of its new place, found another",
			ICF_VX(x->from), ICF_VX(x->base));
		return NULL;
	}
	if (elfrw_rbuf_left(&y->r))
		icf_vlog_bad(
			log, ICF_VC_NOTE,
			"record: .pseudo_probe: expected none behind the last of the input, found %llu bytes",
			ICF_VX(elfrw_rbuf_left(&y->r)));
	return NULL;
}

/* The records of folded functions must be gone: a reader would find them at the kept copy.  So must
 * those of names that several functions have, since a reader takes any of these.  All others must
 * be in OUT, in the same order, and lead to the new places of the same code. */
struct elfrw_err *icf_v_check_pseudo(const struct icf_vclaim *c, struct icf_vlog *log,
				     const struct elfrw_section *a, const struct elfrw_section *b)
{
	struct reader x, y = { 0 };
	struct elfrw_err *err = NULL;
	bool same = a->hdr.sh_size == b->hdr.sh_size && b->data &&
		    memcmp(a->data, b->data, a->hdr.sh_size) == 0,
	     moved = false;
	for (uint32_t i = 0; i < c->unit.len && !moved; i++)
		moved = c->unit.data[i].body != c->unit.data[i].old;
	if (same && !moved)
		return NULL;
	if (!load(&x, &c->in, a) || !load(&y, &c->out, b))
		err = &elfrw_err_nomem;
	else
		err = compare(c, log, &x, &y);
	unload(&x);
	unload(&y);
	return err;
}
