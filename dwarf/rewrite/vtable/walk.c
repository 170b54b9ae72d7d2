/* walk.c: class DIEs found by the names of their members and of their scopes; see vtable.c. */
#include "dwarf/rewrite/vtable/state.h"
#include <dwarf.h>
#include <stdio.h>
#include <string.h>

/* A class whose members are being walked. */
struct scope {
	uint64_t die;
	bool open;  /* a class with nothing found yet */
	bool named; /* mangled with its scopes, its name are the first END bytes of the walk's text
		     */
	size_t end;
	struct dwr_value name;
};

/* The mangled form of a namespace or class with this DW_AT_name (or NULL) in the scope AROUND. */
static bool mangle(const struct scope *around, unsigned tag, const char *name,
		   struct elfrw_wbuf *text)
{
	char number[24];
	size_t n = name ? strlen(name) : 0;
	if (!around || !around->named)
		return false;
	text->len = around->end;
	if (!name && tag == DW_TAG_namespace) {
		elfrw_wbuf_bytes(text, "12_GLOBAL__N_1", 14);
	} else if (!n ||
		   strspn(name,
			  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") != n) {
		return false;
	} else if (!around->end && tag == DW_TAG_namespace && strcmp(name, "std") == 0) {
		elfrw_wbuf_bytes(text, "St", 2);
	} else {
		elfrw_wbuf_bytes(text, number, (size_t)snprintf(number, sizeof number, "%zu", n));
		elfrw_wbuf_bytes(text, name, n);
	}
	return !text->bad;
}

static struct elfrw_err *push_hit(struct dwr_vtable_hits *hits, uint32_t object, uint32_t unit,
				  uint64_t die, bool by_scopes)
{
	struct dwr_vtable_hit *h = VEC_PUSH(&hits->v);
	if (!h)
		return &elfrw_err_nomem;
	*h = (struct dwr_vtable_hit){ object, unit, die, by_scopes };
	return NULL;
}

/* A DIE that may be a scope of classes, or is one. */
static struct elfrw_err *enter(struct dwr_vtable_search *s, uint32_t k, const struct dwr_die *die,
			       struct scope *own, struct elfrw_wbuf *text,
			       struct dwr_vtable_hits *hits)
{
	const struct dwr_unit *unit = &s->units->data[k];
	unsigned tag = die->abbrev->tag;
	bool class = tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
	/* DWARF 2 has no namespaces. */
	*own = (struct scope){ .die = die->off, .named = !die->depth && unit->params.version > 2 };
	if (!class && tag != DW_TAG_namespace)
		return NULL;
	const struct dwr_value *declaration = dwr_die_value(die, DW_AT_declaration),
			       *name = dwr_die_value(die, DW_AT_name);
	if (name)
		own->name = *name;
	own->open = class && die->abbrev->children && !(declaration && declaration->u);
	const char *plain =
		name ? dwr_value_string(&s->rw->secs, unit, &s->rw->ru[k].root, name) : NULL;
	/* Elsewhere than where it belongs when it completes a declaration. */
	own->named = die->depth && !dwr_die_value(die, DW_AT_specification) &&
		     mangle(own - 1, tag, plain, text);
	own->end = text->len;
	uint32_t o = own->open && own->named
			     ? dwr_vtable_find_name(s, (const char *)text->data, text->len)
			     : UINT32_MAX;
	return o == UINT32_MAX ? NULL : push_hit(hits, o, k, die->off, true);
}

static struct elfrw_err *walk_unit(struct dwr_vtable_search *s, uint32_t k,
				   struct dwr_abbrev_table *table, struct elfrw_wbuf *text,
				   struct dwr_vtable_hits *hits)
{
	static const uint16_t vendor[] = { DW_AT_MIPS_linkage_name };
	struct dwr_rw *rw = s->rw;
	const struct dwr_unit *unit = &s->units->data[k];
	const struct dwr_unit_root *root = &rw->ru[k].root;
	struct dwr_want want = { .vendor = vendor, .n_vendor = 1 };
	struct scope scope[DWR_VTABLE_DEPTH] = { 0 };
	struct dwr_die die;
	bool more;
	DWR_WANT_NAME(&want, DW_AT_name);
	DWR_WANT_NAME(&want, DW_AT_linkage_name);
	DWR_WANT_NAME(&want, DW_AT_virtuality);
	DWR_WANT_NAME(&want, DW_AT_declaration);
	DWR_WANT_NAME(&want, DW_AT_specification);
	ELFRW_TRY(dwr_unit_abbrev(&rw->secs, unit, &want, table));
	struct dwr_cursor cur = dwr_cursor_at(&rw->secs, unit, table, true);
	for (;;) {
		ELFRW_TRY(dwr_cursor_next(&cur, &die, &more));
		if (!more)
			return text->bad ? &elfrw_err_nomem : NULL;
		if (die.depth >= DWR_VTABLE_DEPTH)
			continue;
		struct scope *own = &scope[die.depth], *around = die.depth ? own - 1 : NULL;
		if (die.abbrev->children)
			ELFRW_TRY(enter(s, k, &die, own, text, hits));
		if (die.abbrev->tag != DW_TAG_subprogram || !around || !around->open ||
		    !dwr_die_value(&die, DW_AT_virtuality))
			continue;
		const struct dwr_value *v = dwr_die_value(&die, DW_AT_linkage_name);
		if (!v)
			v = dwr_die_value(&die, DW_AT_MIPS_linkage_name);
		const char *linkage = v ? dwr_value_string(&rw->secs, unit, root, v) : NULL;
		if (!linkage)
			continue;
		uint32_t o =
			linkage[0] && linkage[1] && linkage[2] == 'Z'
				? dwr_vtable_local_class_of(
					  s, linkage,
					  dwr_value_string(&rw->secs, unit, root, &around->name))
				: dwr_vtable_class_of(s, linkage);
		if (o == UINT32_MAX)
			continue;
		around->open = false;
		ELFRW_TRY(push_hit(hits, o, k, around->die, false));
	}
}

struct elfrw_err *dwr_vtable_walk_run(void *arg, size_t r)
{
	struct dwr_vtable_search *s = arg;
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_wbuf text = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t k = r * DWR_VTABLE_RUN;
	     k < (r + 1) * DWR_VTABLE_RUN && k < s->units->len && !err; k++)
		err = walk_unit(s, (uint32_t)k, &table, &text, &s->run[r]);
	dwr_abbrev_deinit(&table);
	elfrw_wbuf_free(&text);
	return err;
}
