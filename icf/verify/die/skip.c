/* skip.c: which DIEs of a unit need no reading.
 *
 * Most DIEs are types, declarations and parameters, and hold nothing that folding changes.  A DIE
 * that has the same bytes in both files, with the same abbreviation, is the same if no attribute
 * may mean something else there (plain.c).  This file only finds where each DIE ends, and whether
 * that is so.  It rests on the sizes of the forms (DWARF 5, section 7.5.6) and on the bytes of both
 * tables of abbreviations.  It reads no value, except the lengths of blocks and the operations of
 * equal expressions.  All other DIEs go to libdw, which must find the end of each where it was
 * found here.
 *
 * If anything is unusual (an unknown form, numbers of abbreviations with gaps, a tree that differs
 * or ends too early), the whole unit is left to libdw, and nothing of what was found here is used.
 *
 * Cost: one pass over both tables and over the bytes of both units. */
#include "icf/verify/die/skip.h"
#include "icf/verify/debug/plain.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct attribute {
	uint16_t name, form;
};

/* What the attributes of an abbreviation allow. */
enum kind {
	PLAIN,       /* equal bytes are enough */
	EXPRESSIONS, /* and the expressions have no addresses */
	OTHER
};

struct abbrev {
	const uint8_t *text; /* from the tag to the end */
	uint32_t size;
	uint32_t first, n; /* its attributes */
	uint32_t fixed;    /* bytes of a DIE behind the number; UINT32_MAX: it depends */
	uint8_t kind;
	bool children;
	bool alike; /* of IN: OUT's has the same bytes */
};

/* The abbreviations of a unit; the number of the first is 1. */
struct table {
	VEC(struct abbrev) v;
	VEC(struct attribute) attribute;
	uint64_t at;
	unsigned offset_size;
	bool known, usual;
};

struct icf_vskip_tables {
	struct table side[2];
	VEC(uint32_t) up; /* by depth: the nearest DIE of the list, around it or itself */
};

uint32_t icf_vskip_size(unsigned form, unsigned offset_size)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1: return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2: return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3: return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4: return 4;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8: return 8;
	case DW_FORM_data16: return 16;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_ref_addr:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: return offset_size;
	default: return UINT32_MAX;
	}
}

/* Skips a value; false: the form is not known. */
static bool skip_value(struct elfrw_rbuf *r, unsigned form, unsigned offset_size)
{
	uint32_t fixed = icf_vskip_size(form, offset_size);
	if (fixed != UINT32_MAX) {
		elfrw_rbuf_skip(r, fixed);
		return true;
	}
	switch (form) {
	case DW_FORM_string: elfrw_rbuf_cstr(r); return true;
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index: elfrw_rbuf_uleb(r); return true;
	case DW_FORM_exprloc:
	case DW_FORM_block: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); return true;
	case DW_FORM_block1: elfrw_rbuf_skip(r, elfrw_rbuf_u8(r)); return true;
	case DW_FORM_block2: elfrw_rbuf_skip(r, elfrw_rbuf_u16(r)); return true;
	case DW_FORM_block4: elfrw_rbuf_skip(r, elfrw_rbuf_u32(r)); return true;
	default: return false;
	}
}

const uint8_t *icf_vskip_value(unsigned form, const uint8_t *p, const uint8_t *end,
			       unsigned offset_size)
{
	struct elfrw_rbuf r = elfrw_rbuf(p, (size_t)(end - p));
	return skip_value(&r, form, offset_size) && elfrw_rbuf_ok(&r) ? r.pos : NULL;
}

/* Reads the attributes of X from R; false: one is not usual. */
static bool read_attributes(struct icf_vdebug *d, struct table *t, struct elfrw_rbuf *r,
			    struct abbrev *x)
{
	for (;; x->n++) {
		uint64_t name = elfrw_rbuf_uleb(r), form = elfrw_rbuf_uleb(r);
		if (form == DW_FORM_implicit_const)
			elfrw_rbuf_sleb(r);
		if (!elfrw_rbuf_ok(r) || name > UINT16_MAX || form > UINT16_MAX)
			return false;
		if (!name && !form)
			return true;
		struct attribute *slot = VEC_PUSH(&t->attribute);
		if (!slot) {
			d->log->nomem = true;
			return false;
		}
		*slot = (struct attribute){ (uint16_t)name, (uint16_t)form };
		uint32_t size = icf_vskip_size((unsigned)form, t->offset_size);
		x->fixed =
			size == UINT32_MAX || x->fixed == UINT32_MAX ? UINT32_MAX : x->fixed + size;
		if (!icf_vplain_attr((unsigned)name, (unsigned)form)) {
			bool block = icf_vplain_is_block((unsigned)form);
			unsigned kind = block && icf_vplain_is_location((unsigned)name)
						? EXPRESSIONS
						: OTHER;
			/* A block of other things holds them itself. */
			if (!block || kind == EXPRESSIONS)
				x->kind = x->kind > kind ? x->kind : (uint8_t)kind;
		}
	}
}

/* Reads the table at AT of .debug_abbrev (DWARF 5, section 7.5.3). */
static bool read_table(struct icf_vdebug *d, const Elf_Data *data, uint64_t at,
		       unsigned offset_size, struct table *t)
{
	if (t->known && t->at == at && t->offset_size == offset_size)
		return t->usual;
	t->known = true;
	t->usual = false;
	t->at = at;
	t->offset_size = offset_size;
	t->v.len = t->attribute.len = 0;
	struct elfrw_rbuf r = elfrw_rbuf(data ? data->d_buf : NULL, data ? data->d_size : 0);
	elfrw_rbuf_seek(&r, at);
	for (uint64_t code; (code = elfrw_rbuf_uleb(&r)) != 0;) {
		struct abbrev x = { .text = r.pos, .first = (uint32_t)t->attribute.len };
		elfrw_rbuf_uleb(&r); /* the tag */
		x.children = elfrw_rbuf_u8(&r) == DW_CHILDREN_yes;
		if (code != t->v.len + 1 || !read_attributes(d, t, &r, &x))
			return false;
		x.size = (uint32_t)(r.pos - x.text);
		struct abbrev *slot = VEC_PUSH(&t->v);
		if (!slot) {
			d->log->nomem = true;
			return false;
		}
		*slot = x;
	}
	return t->usual = elfrw_rbuf_ok(&r);
}

/* Two units, from their DIEs on. */
struct walk {
	struct icf_vdebug *d;
	struct icf_vskip *ret;
	const uint8_t *a, *b;
	const struct table *ta, *tb;
	size_t size; /* bytes of both */
	size_t pos;
	size_t differs; /* the first byte at or behind pos that is not the same */
	size_t depth;
};

/* Finds the next byte that differs, from w->pos on. */
static void find_difference(struct walk *w)
{
	size_t i = w->pos;
	while (i + 8 <= w->size && elfrw_get64(w->a + i) == elfrw_get64(w->b + i))
		i += 8;
	while (i < w->size && w->a[i] == w->b[i])
		i++;
	w->differs = i;
}

/* The end of the DIE whose values begin at AT of the unit P; 0: not known. */
static size_t die_end(const struct walk *w, const uint8_t *p, const struct table *t,
		      const struct abbrev *x, size_t at)
{
	if (x->fixed != UINT32_MAX)
		return x->fixed <= w->size - at ? at + x->fixed : 0;
	struct elfrw_rbuf r = elfrw_rbuf(p, w->size);
	r.pos = p + at;
	for (uint32_t i = 0; i < x->n; i++)
		if (!skip_value(&r, t->attribute.data[x->first + i].form, t->offset_size))
			return 0;
	return elfrw_rbuf_ok(&r) ? elfrw_rbuf_off(&r) : 0;
}

/* Have the expressions of a DIE of IN, whose values begin at AT, no addresses?  Counts them. */
static bool plain_expressions(struct walk *w, const struct abbrev *x, size_t at)
{
	struct elfrw_rbuf r = elfrw_rbuf(w->a, w->size);
	uint64_t n = 0;
	r.pos = w->a + at;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct attribute *t = &w->ta->attribute.data[x->first + i];
		const uint8_t *end;
		struct elfrw_rbuf value = r;
		skip_value(&r, t->form, w->ta->offset_size);
		end = r.pos;
		if (!icf_vplain_is_block(t->form) || !icf_vplain_is_location(t->name))
			continue;
		if (t->form == DW_FORM_exprloc || t->form == DW_FORM_block)
			elfrw_rbuf_uleb(&value);
		else
			elfrw_rbuf_skip(&value, t->form == DW_FORM_block1   ? 1
						: t->form == DW_FORM_block2 ? 2
									    : 4);
		if (!icf_vplain_expr(value.pos, (size_t)(end - value.pos), w->ta->offset_size))
			return false;
		n++;
	}
	w->ret->n_expressions += n;
	return true;
}

/* Looks at the DIE at w->pos, of abbreviation CODE, whose values begin at AT.  Sets *TODO if it
 * must be read.  false: the units have other forms. */
static bool look_at(struct walk *w, uint32_t code, size_t at, bool *todo)
{
	const struct abbrev *x = &w->ta->v.data[code - 1], *y = &w->tb->v.data[code - 1];
	bool alike = x->alike;
	size_t end = die_end(w, w->a, w->ta, x, at);
	bool equal = alike && end <= w->differs;
	if (!end || (!equal && die_end(w, w->b, w->tb, y, at) != end))
		return false;
	*todo = !w->depth || !equal || x->kind == OTHER ||
		(x->kind == EXPRESSIONS && !plain_expressions(w, x, at));
	if (*todo) {
		struct icf_vtodo *slot = VEC_PUSH(&w->ret->todo);
		if (!slot) {
			w->d->log->nomem = true;
			return false;
		}
		*slot = (struct icf_vtodo){
			.at = (uint32_t)w->pos,
			.end = (uint32_t)end,
			.abbrev = code,
			.values = (uint32_t)at,
			.up = w->depth ? w->ret->tables->up.data[w->depth - 1] : 0,
			.alike = alike,
			.equal = equal,
		};
	} else
		w->ret->n_plain++;
	w->pos = end;
	if (end > w->differs)
		find_difference(w);
	return true;
}

/* Walks both trees; false: they have other forms. */
static bool walk(struct walk *w)
{
	struct icf_vskip_tables *t = w->ret->tables;
	find_difference(w);
	do {
		struct elfrw_rbuf r = elfrw_rbuf(w->a, w->size);
		r.pos = w->a + w->pos;
		uint64_t code = elfrw_rbuf_uleb(&r);
		size_t at = elfrw_rbuf_off(&r);
		bool todo;
		/* The numbers must be the same. */
		if (!elfrw_rbuf_ok(&r) || at > w->differs)
			return false;
		if (!code && !w->depth)
			return false;
		if (!code) {
			w->pos = at;
			w->depth--;
			continue;
		}
		if (code > w->ta->v.len || code > w->tb->v.len)
			return false;
		const struct abbrev *x = &w->ta->v.data[code - 1], *y = &w->tb->v.data[code - 1];
		if (x->children != y->children || !look_at(w, (uint32_t)code, at, &todo))
			return false;
		if (!x->children)
			continue;
		uint32_t up = todo       ? (uint32_t)w->ret->todo.len - 1
			      : w->depth ? t->up.data[w->depth - 1]
					 : 0;
		t->up.len = w->depth;
		uint32_t *slot = VEC_PUSH(&t->up);
		if (!slot) {
			w->d->log->nomem = true;
			return false;
		}
		*slot = up;
		w->depth++;
	} while (w->depth && w->pos < w->size);
	w->ret->tail = w->differs != w->size;
	return !w->depth;
}

/* Compares the tables, and forgets what was read by them. */
static bool begin_unit(struct icf_vdebug *d, struct icf_vskip *s)
{
	struct table *x = &s->tables->side[0];
	const struct table *y = &s->tables->side[1];
	s->place.len = s->step.len = 0;
	if (!VEC_RESERVE(&s->shape, x->v.len + 1)) {
		d->log->nomem = true;
		return false;
	}
	s->shape.len = x->v.len + 1;
	for (size_t i = 0; i < x->v.len; i++) {
		struct abbrev *a = &x->v.data[i];
		const struct abbrev *b = i < y->v.len ? &y->v.data[i] : NULL;
		a->alike = b && a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
		s->shape.data[i + 1] =
			(struct icf_vshape){ .fixed = a->alike && a->fixed != UINT32_MAX };
	}
	return true;
}

struct icf_vskip *icf_vskip_get(struct icf_vdebug *d)
{
	struct icf_vskip *s = d->skip ? d->skip : calloc(1, sizeof *s);
	d->skip = s;
	if (s && !s->tables)
		s->tables = calloc(1, sizeof *s->tables);
	return s && s->tables ? s : NULL;
}

void icf_vskip_deinit(struct icf_vdebug *d)
{
	struct icf_vskip *s = d->skip;
	if (!s)
		return;
	for (int i = 0; i < 2 && s->tables; i++) {
		VEC_FREE(&s->tables->side[i].v);
		VEC_FREE(&s->tables->side[i].attribute);
	}
	if (s->tables)
		VEC_FREE(&s->tables->up);
	free(s->tables);
	VEC_FREE(&s->todo);
	VEC_FREE(&s->shape);
	VEC_FREE(&s->place);
	VEC_FREE(&s->step);
	free(s);
	d->skip = NULL;
}

bool icf_vskip_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, struct icf_vskip *ret)
{
	Dwarf_Half va, vb;
	Dwarf_Off ta, tb;
	uint8_t aa, ab, oa, ob;
	Dwarf_Die die;
	ret->todo.len = 0;
	ret->n_plain = ret->n_expressions = 0;
	if (!d->end[0] || !d->end[1] ||
	    !dwarf_cu_die(a->cu, &die, &va, &ta, &aa, &oa, NULL, NULL) ||
	    !dwarf_cu_die(b->cu, &die, &vb, &tb, &ab, &ob, NULL, NULL))
		return false;
	/* In DWARF 2 some references had the size of an address. */
	if (va != vb || va < 3 || va > 5 || aa != 8 || ab != 8 || oa != ob)
		return false;
	d->offset_size = oa;
	struct table *x = &ret->tables->side[0], *y = &ret->tables->side[1];
	if (!read_table(d, d->in.abbrev, ta, oa, x) || !read_table(d, d->out.abbrev, tb, ob, y))
		return false;
	if (!begin_unit(d, ret))
		return false;
	size_t na = (size_t)(d->end[0] - (const uint8_t *)a->addr),
	       nb = (size_t)(d->end[1] - (const uint8_t *)b->addr);
	struct walk w = { .d = d,
			  .ret = ret,
			  .a = a->addr,
			  .b = b->addr,
			  .ta = x,
			  .tb = y,
			  .size = na < nb ? na : nb };
	return w.size < UINT32_MAX && walk(&w);
}
