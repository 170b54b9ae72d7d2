/* names.c: .debug_names (DWARF 5, section 6.1.1) with the artificial unit in it.
 *
 * Some readers take only one index of a section, and ignore a section of several.  So the unit
 * joins an index that is there.  It has no names, so that only the list of units grows.  But the
 * entries of an index of one unit need not say which unit they mean, and compilers leave it out.
 * With two units they must say it: then their abbreviations get DW_IDX_compile_unit, and each entry
 * a byte more, the number 0.  What refers to entries moves with them.  Cost: one walk over the
 * entries of that index; 8 bytes for each. */
#include "dwarf/rewrite/index.h"
#include "dwarf/rewrite/state.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

/* The attributes of entries (DWARF 5, table 6.1); elfutils' dwarf.h does not have them. */
enum { IDX_COMPILE_UNIT = 1, IDX_TYPE_UNIT = 2, IDX_PARENT = 4 };

/* Real ones have four. */
#define MAX_ATTRS 16

struct name_attr {
	uint64_t index;
	uint32_t form;
};

/* One abbreviation of an index. */
struct name_abbrev {
	uint64_t code;
	size_t attrs; /* place of its attributes in the section */
	size_t end;   /* behind it */
	unsigned n;
	bool grows; /* entries do not say their unit */
	struct name_attr attr[MAX_ATTRS];
};

/* One index of the section; all offsets from the section's start. */
struct name_index {
	const uint8_t *data;
	bool silent; /* some abbreviation does not say the unit */
	size_t start, end;
	unsigned offset_size;
	uint32_t cus, names, abbrev_size;
	size_t counts;                  /* of the field that counts the units */
	size_t units_end;               /* behind the list of units */
	size_t entries, abbrevs, pool;  /* offsets of entries, abbreviations, entries */
	VEC(struct name_abbrev) abbrev; /* sorted by code */
	VEC(uint64_t) grown;            /* places in the pool of entries that grow, ascending */
};

static void index_deinit(struct name_index *x)
{
	VEC_FREE(&x->abbrev);
	VEC_FREE(&x->grown);
}

/* Reads the header at OFF; false: none that is known. */
static bool read_header(const struct dwr_section *sec, size_t off, struct name_index *x)
{
	struct elfrw_rbuf r = elfrw_rbuf(sec->data, sec->size);
	*x = (struct name_index){ .data = sec->data, .start = off, .offset_size = 4 };
	elfrw_rbuf_seek(&r, off);
	uint64_t length = elfrw_rbuf_u32(&r);
	if (length == 0xffffffff) {
		x->offset_size = 8;
		length = elfrw_rbuf_u64(&r);
	}
	if (!elfrw_rbuf_ok(&r) || length > elfrw_rbuf_left(&r))
		return false;
	r.end = r.pos + length;
	x->end = elfrw_rbuf_off(&r) + length;
	unsigned version = elfrw_rbuf_u16(&r);
	elfrw_rbuf_skip(&r, 2);
	x->counts = elfrw_rbuf_off(&r);
	x->cus = elfrw_rbuf_u32(&r);
	uint64_t local = elfrw_rbuf_u32(&r), foreign = elfrw_rbuf_u32(&r),
		 buckets = elfrw_rbuf_u32(&r);
	x->names = elfrw_rbuf_u32(&r);
	x->abbrev_size = elfrw_rbuf_u32(&r);
	uint64_t augmentation = elfrw_rbuf_u32(&r);
	elfrw_rbuf_skip(&r, (augmentation + 3) & ~UINT64_C(3));
	elfrw_rbuf_skip(&r, (uint64_t)x->cus * x->offset_size);
	x->units_end = elfrw_rbuf_off(&r);
	elfrw_rbuf_skip(&r, local * x->offset_size + foreign * 8);
	/* Without buckets there are no hashes. */
	elfrw_rbuf_skip(&r, buckets ? (buckets + x->names) * 4 : 0);
	elfrw_rbuf_skip(&r, (uint64_t)x->names * x->offset_size);
	x->entries = elfrw_rbuf_off(&r);
	elfrw_rbuf_skip(&r, (uint64_t)x->names * x->offset_size);
	x->abbrevs = elfrw_rbuf_off(&r);
	elfrw_rbuf_skip(&r, x->abbrev_size);
	x->pool = elfrw_rbuf_off(&r);
	return elfrw_rbuf_ok(&r) && version == 5;
}

static int by_code(const void *a, const void *b)
{
	const struct name_abbrev *x = a, *y = b;
	return (x->code > y->code) - (x->code < y->code);
}

/* A number, as all attributes of entries are. */
static bool is_number(uint64_t form)
{
	switch (form) {
	case DW_FORM_flag:
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_udata: return true;
	}
	return false;
}

/* Reads one declaration behind its code.  *OK: it is one that is known. */
static struct elfrw_err *read_abbrev(struct name_index *x, struct elfrw_rbuf *r, uint64_t code,
				     bool *ok)
{
	struct name_abbrev *a = VEC_PUSH(&x->abbrev);
	if (!a)
		return &elfrw_err_nomem;
	*a = (struct name_abbrev){ .code = code, .grows = true };
	elfrw_rbuf_uleb(r);
	a->attrs = elfrw_rbuf_off(r);
	for (;;) {
		struct name_attr t = { .index = elfrw_rbuf_uleb(r) };
		uint64_t form = elfrw_rbuf_uleb(r);
		if (!elfrw_rbuf_ok(r) || (!t.index && !form))
			break;
		if (form == DW_FORM_implicit_const)
			elfrw_rbuf_sleb(r);
		t.form = (uint32_t)form;
		if (a->n == MAX_ATTRS || !is_number(form)) {
			*ok = false;
			break;
		}
		a->attr[a->n++] = t;
		a->grows &= t.index != IDX_COMPILE_UNIT && t.index != IDX_TYPE_UNIT;
	}
	a->end = elfrw_rbuf_off(r);
	x->silent |= a->grows;
	*ok &= elfrw_rbuf_ok(r);
	return NULL;
}

/* Reads the abbreviations. */
static struct elfrw_err *read_abbrevs(struct name_index *x, bool *ok)
{
	struct elfrw_rbuf r = elfrw_rbuf(x->data, x->pool);
	elfrw_rbuf_seek(&r, x->abbrevs);
	*ok = true;
	for (uint64_t code; *ok && elfrw_rbuf_left(&r) && (code = elfrw_rbuf_uleb(&r));)
		ELFRW_TRY(read_abbrev(x, &r, code, ok));
	if (x->abbrev.len)
		qsort(x->abbrev.data, x->abbrev.len, sizeof *x->abbrev.data, by_code);
	for (size_t i = 1; i < x->abbrev.len; i++)
		*ok &= x->abbrev.data[i - 1].code != x->abbrev.data[i].code;
	return NULL;
}

static const struct name_abbrev *find_abbrev(const struct name_index *x, uint64_t code)
{
	size_t i = LOWER_BOUND(0, x->abbrev.len, mid, x->abbrev.data[mid].code < code);
	return i < x->abbrev.len && x->abbrev.data[i].code == code ? &x->abbrev.data[i] : NULL;
}

static struct dwr_form_params form_of(const struct name_index *x)
{
	return (struct dwr_form_params){ .version = 5,
					 .offset_size = (uint8_t)x->offset_size,
					 .address_size = 8 };
}

/* Notes which entries grow.  The pool is lists of entries, each with a zero byte at its end. */
static struct elfrw_err *read_pool(struct name_index *x, bool *ok)
{
	struct elfrw_rbuf r = elfrw_rbuf(x->data + x->pool, x->end - x->pool);
	while (elfrw_rbuf_left(&r)) {
		uint64_t at = elfrw_rbuf_off(&r), code = elfrw_rbuf_uleb(&r);
		if (!code && elfrw_rbuf_ok(&r))
			continue;
		const struct name_abbrev *a = find_abbrev(x, code);
		uint64_t *slot = a && a->grows ? VEC_PUSH(&x->grown) : NULL;
		if (!a)
			*ok = false;
		else if (slot)
			*slot = at;
		else if (a->grows)
			return &elfrw_err_nomem;
		for (unsigned i = 0; *ok && i < a->n; i++) {
			struct dwr_value v;
			dwr_value_read(&r, a->attr[i].form, form_of(x), 0, &v);
		}
		*ok &= elfrw_rbuf_ok(&r);
		if (!*ok)
			break;
	}
	return NULL;
}

/* Where what was at OFF in the pool is afterwards. */
static uint64_t new_place(const struct name_index *x, uint64_t off)
{
	return off + LOWER_BOUND(0, x->grown.len, mid, x->grown.data[mid] < off);
}

/* Writes the abbreviations, in the order of the section, which need not be that of the codes. */
static void write_abbrevs(const struct name_index *x, struct elfrw_wbuf *w)
{
	size_t from = x->abbrevs;
	struct elfrw_rbuf r = elfrw_rbuf(x->data, x->pool);
	elfrw_rbuf_seek(&r, x->abbrevs);
	for (uint64_t code; elfrw_rbuf_left(&r) && (code = elfrw_rbuf_uleb(&r));) {
		const struct name_abbrev *a = find_abbrev(x, code);
		if (a->grows) {
			elfrw_wbuf_bytes(w, x->data + from, a->attrs - from);
			from = a->attrs;
			elfrw_wbuf_uleb(w, IDX_COMPILE_UNIT);
			elfrw_wbuf_uleb(w,
					DW_FORM_udata); /* the only form for it that gdb 13 knows */
		}
		elfrw_rbuf_seek(&r, a->end);
	}
	elfrw_wbuf_bytes(w, x->data + from, x->pool - from);
}

/* Writes the entry behind R, which points behind its code.  False: an entry that it refers to moves
 * out of the reach of the form. */
static bool write_entry(const struct name_index *x, const struct name_abbrev *a,
			struct elfrw_rbuf *r, struct elfrw_wbuf *w)
{
	if (a->grows)
		elfrw_wbuf_u8(w, 0);
	for (unsigned i = 0; i < a->n; i++) {
		struct dwr_value v;
		const uint8_t *from = r->pos;
		dwr_value_read(r, a->attr[i].form, form_of(x), 0, &v);
		size_t size = (size_t)(r->pos - from);
		if (a->attr[i].index != IDX_PARENT || !size) {
			elfrw_wbuf_bytes(w, from, size);
			continue;
		}
		uint64_t to = new_place(x, v.u);
		int fixed = dwr_form_size(a->attr[i].form, form_of(x));
		if (fixed < 0 || fixed > 8 || (fixed < 8 && to >> (8 * fixed)))
			return false;
		elfrw_wbuf_uint(w, to, (unsigned)fixed);
	}
	return true;
}

static bool write_pool(const struct name_index *x, struct elfrw_wbuf *w)
{
	struct elfrw_rbuf r = elfrw_rbuf(x->data + x->pool, x->end - x->pool);
	while (elfrw_rbuf_left(&r)) {
		const uint8_t *from = r.pos;
		uint64_t code = elfrw_rbuf_uleb(&r);
		elfrw_wbuf_bytes(w, from, (size_t)(r.pos - from));
		if (code && !write_entry(x, find_abbrev(x, code), &r, w))
			return false;
	}
	return true;
}

/* Appends index X with the unit at UNIT to W.  False: it cannot be. */
static bool write_joined(const struct name_index *x, uint64_t unit, struct elfrw_wbuf *w)
{
	const size_t start = w->len, length_size = x->offset_size == 8 ? 12 : 4;
	elfrw_wbuf_bytes(w, x->data + x->start, x->units_end - x->start);
	elfrw_wbuf_uint(w, unit, x->offset_size);
	if (x->silent) {
		elfrw_wbuf_bytes(w, x->data + x->units_end, x->entries - x->units_end);
		for (uint32_t i = 0; i < x->names; i++) {
			const uint8_t *p = x->data + x->entries + (size_t)i * x->offset_size;
			elfrw_wbuf_uint(w, new_place(x, elfrw_get_le(p, x->offset_size)),
					x->offset_size);
		}
		size_t abbrevs = w->len;
		write_abbrevs(x, w);
		size_t size = w->len - abbrevs;
		if (!w->bad)
			elfrw_put32(w->data + start + (x->counts - x->start) + 20, (uint32_t)size);
		if (size >> 32 || !write_pool(x, w))
			return false;
		/* The next index begins where it should. */
		while (!w->bad && (x->end - x->start) % 4 == 0 && w->len % 4)
			elfrw_wbuf_u8(w, 0);
	} else
		elfrw_wbuf_bytes(w, x->data + x->units_end, x->end - x->units_end);
	if (w->bad)
		return true;
	uint64_t length = w->len - start - length_size;
	elfrw_put_le(w->data + start + length_size - x->offset_size, length, x->offset_size);
	elfrw_put32(w->data + start + (x->counts - x->start), x->cus + 1);
	return x->offset_size == 8 || length < 0xfffffff0;
}

/* The index that the unit joins. */
struct joined {
	const struct dwr_section *sec;
	uint64_t unit;
	size_t from, to;     /* the index as it is in the section */
	struct elfrw_wbuf w; /* the index with the unit; owned */
	bool done;
};

/* Puts the unit into the index at J->from, if that is possible.  With GROW false an index whose
 * entries would have to grow is left alone. */
static struct elfrw_err *join(struct joined *j, bool grow)
{
	struct name_index x;
	bool ok = read_header(j->sec, j->from, &x);
	j->to = ok ? x.end : j->sec->size;
	if (!ok || !x.cus || x.cus == UINT32_MAX || (x.offset_size == 4 && j->unit >> 32))
		return NULL;
	struct elfrw_err *err = NULL;
	if (x.cus == 1) {
		err = read_abbrevs(&x, &ok);
		if (!err && ok)
			err = read_pool(&x, &ok);
	}
	if (!err && ok && (grow || !x.silent)) {
		j->w.len = 0;
		j->done = write_joined(&x, j->unit, &j->w);
	}
	index_deinit(&x);
	return err;
}

/* Puts the unit into an index of the section.  An index whose entries say their unit is
 * preferred. */
static struct elfrw_err *join_one(struct joined *j)
{
	for (unsigned grow = 0; !j->done && grow < 2; grow++)
		for (j->from = 0; !j->done && j->from < j->sec->size;) {
			ELFRW_TRY(join(j, grow));
			if (!j->done)
				j->from = j->to;
		}
	return NULL;
}

/* An index of the unit alone, for a section in which it cannot join one. */
static void write_own(uint64_t unit, struct elfrw_wbuf *w)
{
	elfrw_wbuf_u32(w, 4 + 7 * 4 + 4 + 4 + 4);
	elfrw_wbuf_u16(w, 5);
	elfrw_wbuf_u16(w, 0);
	elfrw_wbuf_u32(w, 1); /* compilation units */
	elfrw_wbuf_u32(w, 0); /* local type units */
	elfrw_wbuf_u32(w, 0); /* foreign type units */
	elfrw_wbuf_u32(w, 1); /* buckets: without any there would be no hash table, and readers
				 warn */
	elfrw_wbuf_u32(w, 0); /* names */
	elfrw_wbuf_u32(w, 4); /* bytes of abbreviations */
	elfrw_wbuf_u32(w, 0); /* augmentation string */
	elfrw_wbuf_u32(w, (uint32_t)unit);
	elfrw_wbuf_u32(w, 0); /* the bucket is empty */
	elfrw_wbuf_u32(w, 0);
}

struct elfrw_err *dwr_rw_names(const struct dwr_index_in *in, uint8_t **ret, size_t *ret_size)
{
	const struct dwr_section *sec = &in->rw->secs.sec[DWR_NAMES];
	struct joined j = { .sec = sec, .unit = in->artificial_unit };
	struct elfrw_wbuf w = { 0 };
	const bool add = j.unit != UINT64_MAX;
	struct elfrw_err *err = add ? join_one(&j) : NULL;
	if (j.done) {
		elfrw_wbuf_bytes(&w, sec->data, j.from);
		elfrw_wbuf_bytes(&w, j.w.data, j.w.len);
		elfrw_wbuf_bytes(&w, sec->data + j.to, sec->size - j.to);
	} else {
		elfrw_wbuf_bytes(&w, sec->data, sec->size);
		if (add && !(j.unit >> 32))
			write_own(j.unit, &w);
	}
	if (!err && (w.bad || j.w.bad))
		err = &elfrw_err_nomem;
	elfrw_wbuf_free(&j.w);
	if (err) {
		elfrw_wbuf_free(&w);
		return err;
	}
	*ret_size = w.len;
	*ret = elfrw_wbuf_take(&w);
	return NULL;
}
