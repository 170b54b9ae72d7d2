/* list.c: attributes that refer to range lists and location lists, collected for lists/lists.h. */
#include "dwarf/rewrite/die/state.h"
#include <dwarf.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Any number of functions may share one list, so its result is cached.  The list begins at
 * VALUE. */
struct noted {
	uint64_t value;
	uint8_t list;   /* enum dwr_list_kind */
	uint64_t begin; /* of the first range */
	VEC(uint64_t)
	start; /* starts of non-empty ranges at which a unit begins that shares its code */
};

static int noted_order(const void *pa, const void *pb)
{
	const struct noted *a = pa, *b = pb;
	if (a->list != b->list)
		return a->list < b->list ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

void dwr_die_free_noted(void *p)
{
	struct noted *n = p;
	VEC_FREE(&n->start);
	free(n);
}

/* The lent room is full: RU gets memory of its own. */
static bool grow(struct dwr_rw_unit *ru)
{
	const size_t n = ru->site.len;
	if (!ru->lent || n < ru->site.cap)
		return true;
	struct dwr_site *own = malloc(2 * n * sizeof *own);
	if (!own)
		return false;
	memcpy(own, ru->site.data, n * sizeof *own);
	ru->site.data = own;
	ru->site.cap = 2 * n;
	ru->lent = false;
	return true;
}

static struct elfrw_err *push_site(struct dwr_die_scan *s, const struct dwr_die *die,
				   const struct dwr_value *v, enum dwr_list_kind list,
				   enum dwr_purpose purpose)
{
	if (v->pos - die->off > UINT32_MAX)
		return elfrw_error_at(s->section, die->off, "entry of more than 4 GiB");
	struct dwr_site *t = grow(s->ru) ? VEC_PUSH(&s->ru->site) : NULL;
	if (!t)
		return &elfrw_err_nomem;
	*t = (struct dwr_site){ .pos = v->pos,
				.value = v->u,
				.in_die = (uint32_t)(v->pos - die->off),
				.owner = ELFRW_NO_UNIT,
				.kind = DWR_SITE_LIST,
				.list = (uint8_t)list,
				.purpose = (uint8_t)purpose,
				.size = (uint8_t)v->size };
	while (s->n_functions && s->function[s->n_functions - 1].depth > die->depth)
		s->n_functions--;
	/* The function's own DIE counts as inside. */
	if (s->n_functions && (s->function[s->n_functions - 1].depth < die->depth ||
			       die->abbrev->tag == DW_TAG_subprogram))
		t->owner = s->function[s->n_functions - 1].unit;
	if (v->form == DW_FORM_rnglistx || v->form == DW_FORM_loclistx) {
		t->indexed = true;
		t->index = (uint32_t)v->u;
		ELFRW_TRY(dwr_list_index(&s->rw->lists, list, &s->cu, v->u, &t->value));
	}
	return NULL;
}

static struct elfrw_err *read_noted(struct dwr_die_scan *s, const struct noted *key,
				    struct noted **ret)
{
	struct noted *n = NULL;
	uint32_t u;
	ELFRW_TRY(dwr_list_read(&s->rw->lists, (enum dwr_list_kind)key->list, &s->cu, key->value,
				DWR_LIST_NONE, &s->list));
	/* Units may share one, too; as in rewrite/lists/lists.c the work is limited. */
	uint64_t size = s->list.end - key->value;
	if (atomic_fetch_add_explicit(&s->rw->list_bytes, size, memory_order_relaxed) >
	    32 * (uint64_t)s->rw->lists.list[key->list].size + (1 << 20))
		return elfrw_error_at(s->rw->lists.list[key->list].name, key->value,
				      "range and location lists overlap each other too much");
	if (!(n = malloc(sizeof *n)))
		return &elfrw_err_nomem;
	*n = *key;
	n->begin = s->list.entry.len ? s->list.entry.data[0].begin : UINT64_MAX;
	bool ok = true;
	for (size_t i = 0; i < s->list.entry.len && ok; i++) {
		const struct dwr_list_entry *e = &s->list.entry.data[i];
		if (e->begin >= e->end || !dwr_die_is_shared(s->rw->map, e->begin, &u))
			continue;
		uint64_t *slot = VEC_PUSH(&n->start);
		if ((ok = slot != NULL))
			*slot = e->begin;
	}
	if (!ok || !tsearch(n, &s->noted, noted_order)) {
		dwr_die_free_noted(n);
		return &elfrw_err_nomem;
	}
	*ret = n;
	return NULL;
}

/* Records the functions whose parts are in a subprogram's range list. */
static struct elfrw_err *note_ranges(struct dwr_die_scan *s, const struct dwr_die *die,
				     const struct dwr_site *site)
{
	struct noted key = { .value = site->value, .list = site->list },
		     **at = tfind(&key, &s->noted, noted_order), *n;
	if (at)
		n = *at;
	else
		ELFRW_TRY(read_noted(s, &key, &n));
	if (n->begin != UINT64_MAX) {
		while (s->n_functions && s->function[s->n_functions - 1].depth >= die->depth)
			s->n_functions--;
		if (s->n_functions < DWR_DIE_NESTING) {
			s->function[s->n_functions].unit = elfrw_addrmap_find(s->rw->map, n->begin);
			s->function[s->n_functions++].depth = die->depth;
		}
	}
	for (size_t i = 0; i < n->start.len; i++)
		ELFRW_TRY(dwr_die_note_die(s, die, n->start.data[i]));
	return NULL;
}

struct elfrw_err *dwr_die_ranges(struct dwr_die_scan *s, const struct dwr_die *die,
				 const struct dwr_value *v)
{
	bool function = die->abbrev->tag == DW_TAG_subprogram;
	enum dwr_purpose purpose = !die->depth ? DWR_FOR_UNIT
				   : function  ? DWR_FOR_FUNCTION
					       : DWR_FOR_SCOPE;
	ELFRW_TRY(push_site(s, die, v,
			    s->unit->params.version >= 5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES,
			    purpose));
	if (function && s->rw->has_folded && s->unit->sec == DWR_INFO) {
		struct dwr_site *t = &s->ru->site.data[s->ru->site.len - 1];
		t->function = true;
		return note_ranges(s, die, t);
	}
	return NULL;
}

struct elfrw_err *dwr_die_location_list(struct dwr_die_scan *s, const struct dwr_die *die,
					const struct dwr_value *v)
{
	ELFRW_TRY(push_site(s, die, v,
			    s->unit->params.version >= 5 ? DWR_LIST_LOCLISTS : DWR_LIST_LOC,
			    DWR_FOR_LOCATION));
	const struct dwr_value *views =
		v->name == DW_AT_location ? dwr_die_value(die, DW_AT_GNU_locviews) : NULL;
	if (!views)
		return NULL;
	int64_t away = (int64_t)(views->pos - v->pos);
	/* Its new value is written with this size. */
	if (views->size != s->unit->params.offset_size || away < INT32_MIN || away > INT32_MAX)
		return elfrw_error_at(s->section, views->pos,
				      "DW_AT_GNU_locviews in a form that is no offset");
	s->ru->site.data[s->ru->site.len - 1].views = (int32_t)away;
	return NULL;
}

struct elfrw_err *dwr_die_lists_base(struct dwr_die_scan *s, const struct dwr_die *die,
				     const struct dwr_value *v, uint8_t kind)
{
	ELFRW_TRY(push_site(s, die, v, DWR_LIST_RNGLISTS, DWR_FOR_UNIT));
	s->ru->site.data[s->ru->site.len - 1].kind = kind;
	return NULL;
}
