/* data.c: the form of a place: of a constant its contents, with references by meaning; of a
 * variable its name.
 *
 * Without symbols nobody knows the bounds of an object.  A virtual table ends with its last pointer
 * to code, and begins before the place that is referred to, with a pointer to its type.  A type
 * (Itanium C++ ABI 2.9.5) is its name, which is what programs compare.  All else ends where
 * something refers to the next, without the zeros that fill the gap. */
#include "elfrw/symtab.h"
#include "icf/hash/state.h"
#include <string.h>

enum { TAG_TYPE = 33, TAG_VTABLE, TAG_BYTES, TAG_NAMED, TAG_OTHER };

static bool is_code(const struct icf_hasher *h, const struct icf_means *m)
{
	return m->kind == ICF_TO_IMPORT || (m->kind == ICF_TO_NODE && m->node < h->n_units);
}

/* Does the constant at VA begin with the virtual table of a type's class?  Puts its name. */
static bool put_type(const struct icf_hasher *h, uint64_t va, struct icf_form *f)
{
	static const char prefix[] = "_ZTVN10__cxxabiv1";
	const struct elfrw_image *img = h->prog->img;
	const struct elfrw_section *s = &img->section[img->dynsym];
	struct icf_means class, text;
	Elf64_Sym sym;
	if (!icf_hash_word(h, va, &class) || class.kind != ICF_TO_IMPORT ||
	    !elfrw_symbol(s, class.sym, &sym))
		return false;
	const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
	if (!name || strncmp(name, prefix, sizeof prefix - 1) != 0 ||
	    !icf_hash_word(h, va + 8, &text) || text.kind != ICF_TO_NODE || text.node < h->n_units)
		return false;
	elfrw_wbuf_u8(&f->buf, TAG_TYPE);
	icf_put_import(h, class.sym, &f->buf);
	uint64_t at = h->place.data[text.node - h->n_units].va;
	const uint8_t *p;
	do {
		p = elfrw_image_at(img, at++, 1);
		elfrw_wbuf_u8(&f->buf, p ? *p : 0);
	} while (p && *p);
	return true;
}

/* Puts the virtual table, or a table of functions, at VA. */
static bool put_vtable(const struct icf_hasher *h, uint64_t va, uint64_t end, struct icf_form *f)
{
	struct icf_means m, type;
	if (!icf_hash_word(h, va, &m) || !is_code(h, &m))
		return false;
	elfrw_wbuf_u8(&f->buf, TAG_VTABLE);
	const uint8_t *p = elfrw_image_at(h->prog->img, va - 16, 16);
	bool typed = p && (int64_t)elfrw_get64(p) <= 0 && (int64_t)elfrw_get64(p) > -0x100000 &&
		     icf_hash_word(h, va - 8, &type) &&
		     (type.kind == ICF_TO_IMPORT || !is_code(h, &type));
	elfrw_wbuf_u8(&f->buf, typed);
	if (typed)
		icf_put_means(h, type, f);
	for (; va < end && icf_hash_word(h, va, &m) && is_code(h, &m); va += 8)
		icf_put_means(h, m, f);
	return true;
}

/* Blanks the SIZE bytes of the copy at AT that lie OFF bytes into the constant, and puts what they
 * mean. */
static void put_field(const struct icf_hasher *h, size_t at, uint64_t off, unsigned size,
		      struct icf_means m, struct icf_form *f)
{
	if (f->buf.bad)
		return;
	memset(f->buf.data + at + off, 0, size);
	elfrw_wbuf_uleb(&f->buf, off);
	elfrw_wbuf_u8(&f->buf, (uint8_t)size);
	icf_put_means(h, m, f);
}

/* Could WORD be the address of a node?  Most numbers are too small. */
static bool may_be_address(const struct icf_hasher *h, uint64_t word)
{
	const struct icf_program *prog = h->prog;
	size_t n = h->place.len, e = prog->exec.len;
	return (n && word >= h->place.data[0].va && word <= h->place.data[n - 1].va) ||
	       (e && word >= prog->exec.data[0].start && word <= prog->exec.data[e - 1].end);
}

/* Puts the addresses in the N bytes at P and VA that no dynamic relocation tells of. */
static void put_words(const struct icf_hasher *h, size_t at, uint64_t va, const uint8_t *p,
		      uint64_t n, struct icf_form *f)
{
	const struct icf_program *prog = h->prog;
	size_t d = icf_first_dynreloc(prog, va), r = icf_hash_first_dataref(h, va);
	struct icf_means m;
	for (uint64_t k = -va & 7; k + 8 <= n; k += 8) {
		while (d < prog->dynreloc.len && prog->dynreloc.data[d].place < va + k)
			d++;
		while (r < prog->dataref.len && prog->dataref.data[r].place < va + k)
			r++;
		if (d < prog->dynreloc.len && prog->dynreloc.data[d].place == va + k)
			continue;
		bool known = r < prog->dataref.len && prog->dataref.data[r].place == va + k;
		if ((known || may_be_address(h, elfrw_get64(p + k))) &&
		    icf_hash_known_word(h, va + k, NULL, &m))
			put_field(h, at, k, 8, m, f);
	}
}

static void put_bytes(const struct icf_hasher *h, uint64_t va, uint64_t end, struct icf_form *f)
{
	const struct icf_program *prog = h->prog;
	uint64_t n = end - va;
	const uint8_t *p = elfrw_image_at(prog->img, va, n);
	struct icf_means m;
	elfrw_wbuf_u8(&f->buf, TAG_BYTES);
	elfrw_wbuf_uleb(&f->buf, n);
	size_t at = f->buf.len;
	elfrw_wbuf_bytes(&f->buf, p, p ? n : 0);
	if (!p)
		return;
	size_t d = icf_first_dynreloc(prog, va);
	const struct icf_dynreloc *all = prog->dynreloc.data;
	for (size_t first = d; d < prog->dynreloc.len && all[d].place + 8 <= end; d++) {
		first = all[d].place != all[first].place ? d : first;
		if (icf_hash_known_word(h, all[d].place, &all[first], &m))
			put_field(h, at, all[d].place - va, 8, m, f);
	}
	if (!prog->img->pic)
		put_words(h, at, va, p, n, f);
	d = icf_hash_first_dataref(h, va);
	for (; d < prog->dataref.len && prog->dataref.data[d].place < end; d++) {
		const struct icf_dataref *r = &prog->dataref.data[d];
		if (r->size < 8 && r->place + r->size <= end)
			put_field(h, at, r->place - va, r->size, icf_hash_resolve(h, r->target), f);
	}
}

struct elfrw_err *icf_form_place(const struct icf_hasher *h, uint32_t place, struct icf_form *f)
{
	const struct icf_place *k = &h->place.data[place];
	const struct elfrw_image *img = h->prog->img;
	switch (k->kind) {
	case ICF_PLACE_VARIABLE: break; /* named later, see hash.c */
	case ICF_PLACE_CONSTANT:
		if (!k->taken || (!put_type(h, k->va, f) && !put_vtable(h, k->va, k->end, f)))
			put_bytes(h, k->va, k->end, f);
		break;
	case ICF_PLACE_NAMED:
		elfrw_wbuf_u8(&f->buf, TAG_NAMED);
		icf_put_import(h, k->sym, &f->buf);
		elfrw_wbuf_u64(&f->buf, k->va - k->end);
		break;
	default: {
		const char *name = img->section[elfrw_image_section_at(img, k->va)].name;
		elfrw_wbuf_u8(&f->buf, TAG_OTHER);
		elfrw_wbuf_cstr(&f->buf, name ? name : "");
	}
	}
	elfrw_wbuf_u64(&f->buf, f->edge.len);
	return f->buf.bad ? &elfrw_err_nomem : NULL;
}
