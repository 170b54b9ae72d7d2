/* pieces.c: lists the code of all functions; see pieces.h.
 *
 * The units' intervals and each unit's functions are flat tables already, for look-ups.  Their
 * intersections are the pieces.  Symbols fill what is left of the executable sections. */
#include "dwarf/symbolize/pieces.h"
#include "dwarf/symbolize/state.h"
#include "elfrw/base/search.h"

static struct elfrw_err *push(struct dwr_sym_pieces *p, const struct dwr_sym_piece *piece)
{
	struct dwr_sym_piece *last = p->len ? &p->data[p->len - 1] : NULL;
	if (piece->lo >= piece->hi)
		return NULL;
	if (last && last->hi == piece->lo && last->die == piece->die &&
	    piece->die != DWR_SYM_NO_DIE) {
		last->hi = piece->hi;
		return NULL;
	}
	struct dwr_sym_piece *slot = VEC_PUSH(p);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = *piece;
	return NULL;
}

/* The functions of one interval of a unit. */
static struct elfrw_err *add_functions(struct dwr_sym *sym, const struct dwr_span *s,
				       struct dwr_sym_pieces *ret)
{
	struct dwr_sym_unit *unit;
	ELFRW_TRY(dwr_sym_unit_at(sym, sym->debug, s->id, &unit));
	if (!unit)
		return NULL;
	ELFRW_TRY(dwr_sym_functions(sym, unit, DWR_FUNCS_ALL));
	const struct dwr_spans *f = &unit->funcs;
	for (size_t i = LOWER_BOUND(0, f->len, mid, f->data[mid].hi <= s->lo);
	     i < f->len && f->data[i].lo < s->hi; i++) {
		const struct dwr_span *at = &f->data[i];
		const struct dwr_sym_piece piece = { at->lo > s->lo ? at->lo : s->lo,
						     at->hi < s->hi ? at->hi : s->hi, s->id, at->id,
						     false };
		ELFRW_TRY(push(ret, &piece));
	}
	return NULL;
}

/* The end of the executable section that holds VA; 0: none does. */
static uint64_t code_end(const struct elfrw_image *img, uint64_t va)
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *h = &img->section[i].hdr;
		if ((h->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR) &&
		    va >= h->sh_addr && va - h->sh_addr < h->sh_size)
			return h->sh_addr + h->sh_size;
	}
	return 0;
}

/* Adds the parts of [LO, HI) that the first N pieces leave; *AT moves through these. */
static struct elfrw_err *add_rest(struct dwr_sym *sym, const struct dwr_sym_piece *rest, size_t n,
				  size_t *at, struct dwr_sym_pieces *ret)
{
	struct dwr_sym_piece piece = *rest;
	while (*at < n && ret->data[*at].hi <= rest->lo)
		++*at;
	for (size_t i = *at; piece.lo < rest->hi; i++) {
		bool last = i >= n || ret->data[i].lo >= rest->hi;
		piece.hi = last ? rest->hi : ret->data[i].lo;
		const struct dwr_span *s = dwr_spans_find(&sym->units, piece.lo);
		piece.unit = s ? s->id : DWR_SYM_NO_DIE;
		ELFRW_TRY(push(ret, &piece));
		if (last)
			return NULL;
		piece.lo = ret->data[i].hi;
		piece.several = false; /* said of the start only */
	}
	return NULL;
}

static struct elfrw_err *add_symbols(struct dwr_sym *sym, struct dwr_sym_pieces *ret)
{
	const struct elfrw_image *img = &sym->main->image;
	size_t n = ret->len, at = 0, i = 0;
	uint64_t section_end = 0;
	struct dwr_sym_symbol s, next;
	bool more = dwr_sym_symbol_next(sym, &i, &next);
	while (more) {
		s = next;
		more = dwr_sym_symbol_next(sym, &i, &next);
		if (s.address >= section_end)
			section_end = code_end(img, s.address);
		if (s.object || s.address >= section_end)
			continue;
		struct dwr_sym_piece rest = { s.address, section_end, 0, DWR_SYM_NO_DIE,
					      s.several };
		if (s.size && s.size < rest.hi - rest.lo)
			rest.hi = rest.lo + s.size;
		if (more && next.address < rest.hi)
			rest.hi = next.address;
		ELFRW_TRY(add_rest(sym, &rest, n, &at, ret));
	}
	return dwr_sym_complete(sym);
}

static int by_address(const void *a, const void *b)
{
	const struct dwr_sym_piece *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

struct elfrw_err *dwr_sym_pieces(struct dwr_sym *sym, struct dwr_sym_pieces *ret)
{
	ELFRW_TRY(dwr_sym_unit_spans(sym));
	for (size_t i = 0; i < sym->units.len; i++)
		ELFRW_TRY(add_functions(sym, &sym->units.data[i], ret));
	ELFRW_TRY(add_symbols(sym, ret));
	if (ret->len)
		qsort(ret->data, ret->len, sizeof *ret->data, by_address);
	return NULL;
}
