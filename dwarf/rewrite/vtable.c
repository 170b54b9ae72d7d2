/* vtable.c: see vtable.h.
 *
 * The symbol of a vtable object holds the mangled name of its class, and the linkage name of each
 * virtual function that the class declares begins with the same text (Itanium C++ ABI, section
 * 5.1.6.2):
 *
 *	_ZTV N 3foo3BarIiE E_ZN 3foo3BarIiE 1f E v
 *
 * Substitutions are numbered from the left, so that the text is the same in both, whatever template
 * arguments are in it: how a compiler spells a template in DW_AT_name does not matter.  A class
 * that declares no virtual function has its name built from its scopes, unless it is a template.
 * What the object of a construction vtable (_ZTC) is one of tells its type information.
 *
 * A name of external linkage means one class in the whole program (basic.def.odr): the first DIE is
 * as good as the others.  A local name may mean several, and compilers leave linkage names out of
 * their DIEs.  There a function in one of the object's slots tells: its symbol says whether the
 * object's class is where it is declared, and its DIE leads to the declaration.  When none does so,
 * a local name must have one DIE and one object alone. Cost: a walk of .debug_info that delivers
 * few attributes, and another one of the units with local names. */
#include "dwarf/rewrite/vtable.h"
#include "dwarf/calls/call_sites.h"
#include "dwarf/calls/vtables.h"
#include "elfrw/image.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN       4 /* units */
#define MAX_DEPTH 64

/* A vtable object to be described. */
struct object {
	uint64_t address;
	const char *name; /* the mangled name of its class, as in the symbol */
	size_t len;       /* without the E that ends a nested name; NAME stands behind the N then */
	bool local;       /* may be a name of one file only */
	bool sure;        /* found by names: FROM is the DIE */
	bool several;     /* of a local name: there is another DIE */
	bool exact;       /* found by a function in a slot */
	uint64_t from;
	struct dwr_rw_vtable type;
};

/* A symbol of a vtable object or of type information. */
struct symbol {
	uint64_t address;
	const char *name;
	bool local;
};

struct hit {
	uint32_t object, unit;
	uint64_t die;
	bool by_scopes;
};

/* A slot of the object at ADDRESS holds UNIT of the map. */
struct slot {
	uint64_t address;
	uint32_t unit;
};

/* The declaration of a function of an object's slots. */
struct lead {
	uint64_t die;
	uint32_t object;
	const char *linkage;
};

struct search {
	struct dwr_rw *rw;
	struct dwr_units *units;
	VEC(struct symbol) symbol; /* sorted by address */
	VEC(struct object) object; /* sorted by name */
	VEC(struct slot) slot;     /* sorted by address */
	VEC(struct lead) lead;     /* sorted by DIE */
	struct hits {
		VEC(struct hit) v;
	} * run;
};

static int symbol_order(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->local != y->local ? x->local - y->local : strcmp(x->name, y->name);
}

static int text_order(const char *a, size_t an, const char *b, size_t bn)
{
	int c = memcmp(a, b, an < bn ? an : bn);
	return c ? c : an < bn ? -1 : an > bn;
}

static int object_order(const void *a, const void *b)
{
	const struct object *x = a, *y = b;
	int c = text_order(x->name, x->len, y->name, y->len);
	return c ? c : x->address < y->address ? -1 : x->address > y->address;
}

static int address_order(const void *a, const void *b)
{
	const struct dwr_rw_vtable *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

static struct elfrw_err *read_symbols(struct search *s)
{
	const struct elfrw_image *img = s->rw->in->image;
	uint32_t shndx = img->symtab ? img->symtab : img->dynsym;
	const struct elfrw_section *sec = shndx ? &img->section[shndx] : NULL;
	for (uint64_t i = 0; sec && sec->data && i < sec->hdr.sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym sym;
		memcpy(&sym, sec->data + i * sizeof sym, sizeof sym);
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    !sym.st_name)
			continue;
		const char *name = elfrw_image_string(img, sec->hdr.sh_link, sym.st_name);
		if (!name || strncmp(name, "_ZT", 3) ||
		    (name[3] != 'V' && name[3] != 'C' && name[3] != 'I') || strchr(name, '@'))
			continue;
		struct symbol *slot = VEC_PUSH(&s->symbol);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct symbol){ sym.st_value, name,
					 ELF64_ST_BIND(sym.st_info) == STB_LOCAL };
	}
	if (s->symbol.len)
		qsort(s->symbol.data, s->symbol.len, sizeof *s->symbol.data, symbol_order);
	return NULL;
}

/* The symbol at ADDRESS whose fourth letter is KIND, or NULL. */
static const struct symbol *symbol_at(const struct search *s, uint64_t address, char kind)
{
	size_t lo = LOWER_BOUND(0, s->symbol.len, mid, s->symbol.data[mid].address < address);
	for (; lo < s->symbol.len && s->symbol.data[lo].address == address; lo++)
		if (s->symbol.data[lo].name[3] == kind)
			return &s->symbol.data[lo];
	return NULL;
}

/* May NAME mean different classes in different files?  A class with a hidden symbol is no such. */
static bool local_name(const char *name)
{
	static const char *const mark[] = { "_GLOBAL__N_", "ZL", "$_", "Ul", "Ut" };
	for (unsigned i = 0; i < sizeof mark / sizeof *mark; i++)
		if (strstr(name, mark[i]))
			return true;
	return name[0] == 'Z';
}

/* The objects with slots that are of interest, with the names of their classes. */
static struct elfrw_err *collect_objects(struct search *s, struct dwr_rw_vtables *ret)
{
	const struct dwr_rewrite_in *in = s->rw->in;
	struct dwr_vtables vt;
	uint64_t last = UINT64_MAX;
	struct elfrw_err *err = NULL;
	ELFRW_TRY(dwr_vtables_read(in->image, in->image, &vt));
	for (size_t i = 0; i < in->n_vslots && !err; i++) {
		const struct dwr_vtable *t = dwr_vtables_find(&vt, in->vslot[i].slot);
		struct slot *slot = t ? VEC_PUSH(&s->slot) : NULL;
		if (t && !slot)
			err = &elfrw_err_nomem;
		if (slot)
			*slot = (struct slot){ t->object, in->vslot[i].unit };
		if (!slot || t->object == last)
			continue;
		last = t->object;
		const struct symbol *sym = symbol_at(s, t->object, t->name[3]);
		if (sym && t->name[3] == 'C')
			sym = symbol_at(s, dwr_vtables_value(in->image, &vt, t->point - 8), 'I');
		const char *name = sym ? sym->name + 4 : "";
		size_t len = strlen(name);
		if (!len) {
			ret->left_out++;
			continue;
		}
		if (len > 2 && name[0] == 'N' && name[len - 1] == 'E') {
			name++;
			len -= 2;
		}
		struct object *o = VEC_PUSH(&s->object);
		if (!o)
			err = &elfrw_err_nomem;
		else
			*o = (struct object){ .address = t->object,
					      .name = name,
					      .len = len,
					      .local = sym->local && local_name(sym->name + 4) };
	}
	dwr_vtables_deinit(&vt);
	if (!err && s->object.len)
		qsort(s->object.data, s->object.len, sizeof *s->object.data, object_order);
	return err;
}

/* The index of the first object with the name TEXT, or UINT32_MAX. */
static uint32_t find_name(const struct search *s, const char *text, size_t len)
{
	size_t lo = LOWER_BOUND(
		0, s->object.len, mid,
		text_order(s->object.data[mid].name, s->object.data[mid].len, text, len) < 0);
	const struct object *o = lo < s->object.len ? &s->object.data[lo] : NULL;
	return o && text_order(o->name, o->len, text, len) == 0 ? (uint32_t)lo : UINT32_MAX;
}

/* A <source-name> at P, or NULL; else what follows it. */
static const char *source_name(const char *p)
{
	size_t n = 0;
	if (*p < '1' || *p > '9')
		return NULL;
	while (*p >= '0' && *p <= '9' && n < 1 << 20)
		n = 10 * n + (size_t)(*p++ - '0');
	return memchr(p, 0, n) ? NULL : p + n;
}

/* A function's own part of a nested name, with the E that ends the name: what follows that, or
 * NULL.  Template arguments (no virtual function has any) and conversions are not understood. */
static const char *last_part(const char *p)
{
	if (*p >= '1' && *p <= '9')
		p = source_name(p);
	else if (*p == 'D' && p[1] >= '0' && p[1] <= '5')
		p += 2;
	else if (*p >= 'a' && *p <= 'z' && p[1] >= 'A' && p[1] <= 'z' &&
		 (p[0] != 'c' || p[1] != 'v'))
		p += 2;
	else
		return NULL;
	while (p && *p == 'B') /* ABI tags */
		p = source_name(p + 1);
	return p && *p == 'E' ? p + 1 : NULL;
}

/* The object of the class in which the function LINKAGE is declared. */
static uint32_t class_of(const struct search *s, const char *linkage)
{
	if (strncmp(linkage, "_ZN", 3))
		return UINT32_MAX;
	const char *p = linkage + 3;
	p += strspn(p, "rVK");
	p += strspn(p, "RO");
	/* The longest name of an object with which P begins and behind which P fits, if any. */
	for (size_t n = strlen(p), same; n; n = same) {
		size_t lo = LOWER_BOUND(
			0, s->object.len, mid,
			text_order(s->object.data[mid].name, s->object.data[mid].len, p, n) <= 0);
		if (!lo)
			return UINT32_MAX;
		/* No name that lies between this one and P's first N letters begins P. */
		const struct object *o = &s->object.data[lo - 1];
		for (same = 0; same < o->len && same < n && o->name[same] == p[same];)
			same++;
		if (same == o->len) {
			if (last_part(p + same))
				return find_name(s, o->name, o->len);
			same--;
		}
	}
	return UINT32_MAX;
}

/* The same for a class inside of a function: Z <function> E N <class> <member> E [<discriminator>];
 * the object's name is Z <function> E <class> [<discriminator>].  CLASS is the class's name: where
 * the function ends is not parsed. */
static uint32_t local_class_of(const struct search *s, const char *linkage, const char *class)
{
	char number[24], *text = NULL;
	uint32_t found = UINT32_MAX;
	bool several = false;
	if (strncmp(linkage, "_ZZ", 3) || !class || !*class)
		return UINT32_MAX;
	size_t len = strlen(class), n = (size_t)snprintf(number, sizeof number, "%zu", len);
	for (const char *p = strstr(linkage, "EN"); p; p = strstr(p + 1, "EN")) {
		const char *q = p + 2;
		q += strspn(q, "rVK");
		q += strspn(q, "RO");
		if (strncmp(q, number, n) || strncmp(q + n, class, len))
			continue;
		const char *end = last_part(q + n + len), *disc = end;
		if (!end)
			continue;
		if (end[0] == '_') { /* _0 to _9, or __10_ */
			end++;
			bool more = *end == '_';
			end += more;
			end += strspn(end, "0123456789");
			end += more;
		}
		size_t head = (size_t)(p + 1 - (linkage + 2)), tail = (size_t)(end - disc);
		char *t = realloc(text, head + n + len + tail);
		if (!t)
			break;
		text = t;
		memcpy(t, linkage + 2, head);
		memcpy(t + head, q, n + len);
		memcpy(t + head + n + len, disc, tail);
		uint32_t k = find_name(s, t, head + n + len + tail);
		several |= k != UINT32_MAX && found != UINT32_MAX && k != found;
		if (k != UINT32_MAX)
			found = k;
	}
	free(text);
	return several ? UINT32_MAX : found;
}

/* A class whose members are being walked. */
struct scope {
	uint64_t die;
	bool open;  /* a class, and nothing found yet */
	bool named; /* mangled with its scopes, its name are the first END bytes of the walk's text
		     */
	size_t end;
	struct dwr_value name;
};

/* What a namespace or class with this DW_AT_name (or NULL) is called in a mangled name of the scope
 * AROUND. */
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

static struct elfrw_err *push_hit(struct hits *hits, uint32_t object, uint32_t unit, uint64_t die,
				  bool by_scopes)
{
	struct hit *h = VEC_PUSH(&hits->v);
	if (!h)
		return &elfrw_err_nomem;
	*h = (struct hit){ object, unit, die, by_scopes };
	return NULL;
}

/* A DIE that may be a scope of classes, or is one. */
static struct elfrw_err *enter(struct search *s, uint32_t k, const struct dwr_die *die,
			       struct scope *own, struct elfrw_wbuf *text, struct hits *hits)
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
	uint32_t o = own->open && own->named ? find_name(s, (const char *)text->data, text->len)
					     : UINT32_MAX;
	return o == UINT32_MAX ? NULL : push_hit(hits, o, k, die->off, true);
}

static struct elfrw_err *walk_unit(struct search *s, uint32_t k, struct dwr_abbrev_table *table,
				   struct elfrw_wbuf *text, struct hits *hits)
{
	static const uint16_t vendor[] = { DW_AT_MIPS_linkage_name };
	struct dwr_rw *rw = s->rw;
	const struct dwr_unit *unit = &s->units->data[k];
	const struct dwr_unit_root *root = &rw->ru[k].root;
	struct dwr_want want = { .vendor = vendor, .n_vendor = 1 };
	struct scope scope[MAX_DEPTH] = { 0 };
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
		if (die.depth >= MAX_DEPTH)
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
		uint32_t o = linkage[0] && linkage[1] && linkage[2] == 'Z'
				     ? local_class_of(s, linkage,
						      dwr_value_string(&rw->secs, unit, root,
								       &around->name))
				     : class_of(s, linkage);
		if (o == UINT32_MAX)
			continue;
		around->open = false;
		ELFRW_TRY(push_hit(hits, o, k, around->die, false));
	}
}

static struct elfrw_err *walk_run(void *arg, size_t r)
{
	struct search *s = arg;
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_wbuf text = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t k = r * RUN; k < (r + 1) * RUN && k < s->units->len && !err; k++)
		err = walk_unit(s, (uint32_t)k, &table, &text, &s->run[r]);
	dwr_abbrev_deinit(&table);
	elfrw_wbuf_free(&text);
	return err;
}

/* How other units refer to the class; false: they cannot. */
static bool refer(const struct search *s, const struct hit *h, struct dwr_rw_vtable *ret)
{
	const struct dwr_unit *unit = &s->units->data[h->unit];
	bool by_signature = unit->type == DW_UT_type;
	ret->type = by_signature ? unit->id : h->die;
	ret->signature = by_signature;
	return !by_signature || unit->off + unit->type_off == h->die;
}

static void settle(struct search *s, size_t runs, bool by_scopes)
{
	for (size_t r = 0; r < runs; r++)
		for (size_t i = 0; i < s->run[r].v.len; i++) {
			const struct hit *h = &s->run[r].v.data[i];
			struct object *o = &s->object.data[h->object];
			if (h->by_scopes != by_scopes)
				continue;
			if (!o->sure && refer(s, h, &o->type)) {
				o->sure = true;
				o->from = h->die;
			} else if (o->local && o->from != h->die)
				o->several = true;
		}
}

static int die_order(const void *a, const void *b)
{
	const struct dwr_note_die *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static int lead_order(const void *a, const void *b)
{
	const struct lead *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* From object K through the functions of its slots to their declarations.  DIE: N of them, sorted
 * by unit of the map. */
static struct elfrw_err *follow_slots(struct search *s, uint32_t k, const struct dwr_note_die *die,
				      size_t n, struct dwr_abbrev_table *table)
{
	const uint64_t address = s->object.data[k].address;
	size_t i = 0, hi = s->slot.len;
	while (i < hi) {
		size_t mid = i + (hi - i) / 2;
		if (s->slot.data[mid].address < address)
			i = mid + 1;
		else
			hi = mid;
	}
	for (; i < s->slot.len && s->slot.data[i].address == address; i++) {
		uint32_t unit = s->slot.data[i].unit;
		const char *linkage = s->rw->in->unit_name ? s->rw->in->unit_name[unit] : NULL;
		size_t d = 0, end = n;
		while (d < end) {
			size_t mid = d + (end - d) / 2;
			if (die[mid].unit < unit)
				d = mid + 1;
			else
				end = mid;
		}
		for (; linkage && d < n && die[d].unit == unit; d++) {
			uint64_t chain[4];
			unsigned len;
			const char *name;
			ELFRW_TRY(dwr_function_chain(&s->rw->secs, s->units, table, die[d].die,
						     chain, 4, &len, &name));
			struct lead *l = len ? VEC_PUSH(&s->lead) : NULL;
			if (len && !l)
				return &elfrw_err_nomem;
			if (l)
				*l = (struct lead){ chain[len - 1], k, linkage };
		}
	}
	return NULL;
}

/* Is the function with the symbol LINKAGE, declared in a class named CLASS, a member of the class
 * of object O? */
static bool member_of(const struct search *s, const struct object *o, const char *linkage,
		      const char *class)
{
	if (linkage[0] != '_' || linkage[1] != 'Z')
		return false;
	uint32_t k = linkage[2] == 'Z' ? local_class_of(s, linkage, class) : class_of(s, linkage);
	return k != UINT32_MAX &&
	       text_order(s->object.data[k].name, s->object.data[k].len, o->name, o->len) == 0;
}

/* What may be the class around a declaration. */
struct around {
	uint64_t die;
	bool class, declared;
	struct dwr_value name, signature; /* form 0: none */
};

static struct around around_of(const struct dwr_die *die)
{
	unsigned tag = die->abbrev->tag;
	struct around a = { .die = die->off,
			    .class = tag == DW_TAG_class_type || tag == DW_TAG_structure_type };
	const struct dwr_value *name = dwr_die_value(die, DW_AT_name),
			       *sig = dwr_die_value(die, DW_AT_signature);
	const struct dwr_value *declared = dwr_die_value(die, DW_AT_declaration);
	a.declared = declared && declared->u;
	if (name)
		a.name = *name;
	if (sig)
		a.signature = *sig;
	return a;
}

/* The classes around the declarations of LEAD (N of them, sorted, all in unit K). */
static struct elfrw_err *walk_leads(struct search *s, const struct lead *lead, size_t n, uint32_t k,
				    struct dwr_abbrev_table *table)
{
	const struct dwr_rw *rw = s->rw;
	const struct dwr_unit *unit = &s->units->data[k];
	const struct dwr_unit_root *root = &rw->ru[k].root;
	struct dwr_want want = { .vendor = NULL };
	struct around scope[MAX_DEPTH] = { 0 }; /* the last one at each depth */
	struct dwr_die die;
	bool more;
	DWR_WANT_NAME(&want, DW_AT_name);
	DWR_WANT_NAME(&want, DW_AT_declaration);
	DWR_WANT_NAME(&want, DW_AT_signature);
	ELFRW_TRY(dwr_unit_abbrev(&s->rw->secs, unit, &want, table));
	struct dwr_cursor cur = dwr_cursor_at(&s->rw->secs, unit, table, true);
	while (n) {
		ELFRW_TRY(dwr_cursor_next(&cur, &die, &more));
		if (!more)
			return NULL;
		for (; n && lead->die < die.off; lead++)
			n--;
		const struct around *class =
			die.depth && die.depth < MAX_DEPTH ? &scope[die.depth - 1] : NULL;
		for (; n && lead->die == die.off; lead++, n--) {
			struct object *o = &s->object.data[lead->object];
			const char *text =
				class && class->name.form
					? dwr_value_string(&rw->secs, unit, root, &class->name)
					: NULL;
			if (!class || !class->class || o->exact ||
			    !member_of(s, o, lead->linkage, text ? text : ""))
				continue;
			bool by_signature = class->signature.form == DW_FORM_ref_sig8;
			if (class->declared && !by_signature)
				continue;
			o->type = (struct dwr_rw_vtable){ o->address,
							  by_signature ? class->signature.u
								       : class->die,
							  by_signature };
			o->exact = true;
		}
		if (die.depth < MAX_DEPTH && die.abbrev->children)
			scope[die.depth] = around_of(&die);
	}
	return NULL;
}

/* Objects that the names in the DIEs did not settle, or may have settled wrongly. */
static struct elfrw_err *settle_by_slots(struct search *s)
{
	VEC(struct dwr_note_die) die = { 0 };
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_err *err = NULL;
	bool any = false;
	for (size_t i = 0; i < s->object.len; i++)
		any |= s->object.data[i].local || !s->object.data[i].sure;
	for (size_t i = 0; any && i < s->units->len && !err; i++) {
		const struct dwr_rw_unit *ru = &s->rw->ru[i];
		if (!VEC_RESERVE(&die, die.len + ru->die.len))
			err = &elfrw_err_nomem;
		else if (ru->die.len) {
			memcpy(die.data + die.len, ru->die.data, ru->die.len * sizeof *die.data);
			die.len += ru->die.len;
		}
	}
	if (!err && die.len)
		qsort(die.data, die.len, sizeof *die.data, die_order);
	for (uint32_t i = 0; any && i < s->object.len && !err; i++)
		if (s->object.data[i].local || !s->object.data[i].sure)
			err = follow_slots(s, i, die.data, die.len, &table);
	dwr_abbrev_deinit(&table);
	if (!err && s->lead.len)
		qsort(s->lead.data, s->lead.len, sizeof *s->lead.data, lead_order);
	for (size_t i = 0, n; i < s->lead.len && !err; i += n) {
		const struct dwr_unit *unit =
			dwr_units_find(s->units, DWR_INFO, s->lead.data[i].die);
		for (n = 1; unit && i + n < s->lead.len && s->lead.data[i + n].die < unit->end;)
			n++;
		if (unit)
			err = walk_leads(s, &s->lead.data[i], n, (uint32_t)(unit - s->units->data),
					 &table);
	}
	dwr_abbrev_deinit(&table);
	VEC_FREE(&die);
	return err;
}

struct elfrw_err *dwr_rw_vtables(struct dwr_rw *rw, struct dwr_rw_vtables *ret)
{
	struct search s = { .rw = rw, .units = &rw->units };
	size_t runs = (rw->units.len + RUN - 1) / RUN;
	*ret = (struct dwr_rw_vtables){ 0 };
	struct elfrw_err *err = rw->in->n_vslots ? read_symbols(&s) : NULL;
	if (!err && s.symbol.len)
		err = collect_objects(&s, ret);
	if (!err && s.object.len) {
		s.run = calloc(runs + 1, sizeof *s.run);
		err = s.run ? elfrw_parallel(rw->in->threads, runs, walk_run, &s)
			    : &elfrw_err_nomem;
		if (!err)
			settle(&s, runs, false);
		if (!err)
			settle(&s, runs, true);
		if (!err)
			err = settle_by_slots(&s);
	}
	for (size_t i = 0, first = 0; i < s.object.len && !err; i++) {
		const struct object *o = &s.object.data[i], *p = &s.object.data[first];
		bool again = i && text_order(o->name, o->len, p->name, p->len) == 0;
		if (!again)
			p = &s.object.data[first = i];
		/* Several objects of one class: a vtable and construction vtables.  Of a local
		 * name, they may be of several. */
		bool single = !again && (i + 1 == s.object.len ||
					 text_order(o->name, o->len, o[1].name, o[1].len));
		if (o->exact)
			p = o;
		else if (!p->sure || (o->local && (p->several || !single))) {
			ret->left_out++;
			continue;
		}
		struct dwr_rw_vtable *v = VEC_PUSH(&ret->v);
		if (!v)
			err = &elfrw_err_nomem;
		else
			*v = (struct dwr_rw_vtable){ o->address, p->type.type, p->type.signature };
	}
	if (!err && ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, address_order);
	for (size_t r = 0; s.run && r < runs; r++)
		VEC_FREE(&s.run[r].v);
	free(s.run);
	VEC_FREE(&s.symbol);
	VEC_FREE(&s.object);
	VEC_FREE(&s.slot);
	VEC_FREE(&s.lead);
	if (err)
		dwr_rw_vtables_deinit(ret);
	return err;
}

void dwr_rw_vtables_deinit(struct dwr_rw_vtables *vt)
{
	VEC_FREE(&vt->v);
}

void dwr_rw_vtables_write(const struct dwr_rw_vtables *vt, struct dwr_form_params params,
			  unsigned first, struct elfrw_wbuf *abbrev, struct elfrw_wbuf *info)
{
	for (unsigned k = 0; k < 2; k++) {
		elfrw_wbuf_uleb(abbrev, first + k);
		elfrw_wbuf_uleb(abbrev, DWR_TAG_VTABLE);
		elfrw_wbuf_u8(abbrev, DW_CHILDREN_no);
		elfrw_wbuf_uleb(abbrev, DW_AT_location);
		elfrw_wbuf_uleb(abbrev, params.version >= 4 ? DW_FORM_exprloc : DW_FORM_block1);
		elfrw_wbuf_uleb(abbrev, DW_AT_type);
		elfrw_wbuf_uleb(abbrev, k ? DW_FORM_ref_sig8 : DW_FORM_ref_addr);
		elfrw_wbuf_u16(abbrev, 0);
	}
	for (size_t i = 0; i < vt->v.len; i++) {
		const struct dwr_rw_vtable *v = &vt->v.data[i];
		elfrw_wbuf_uleb(info, first + v->signature);
		elfrw_wbuf_u8(info, 1u + params.address_size);
		elfrw_wbuf_u8(info, DW_OP_addr);
		elfrw_wbuf_uint(info, v->address, params.address_size);
		/* Until DWARF 2 a reference to another unit was of the size of an address. */
		elfrw_wbuf_uint(info, v->type,
				v->signature          ? 8
				: params.version == 2 ? params.address_size
						      : params.offset_size);
	}
}
