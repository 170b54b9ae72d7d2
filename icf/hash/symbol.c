/* symbol.c: imports by name and version.
 *
 * gABI and LSB Core 5.0, "Symbol Versioning": .gnu.version has an index for each symbol of .dynsym;
 * .gnu.version_r and .gnu.version_d give the indices names. */
#include "elfrw/symtab.h"
#include "icf/hash/state.h"

#define HIDDEN 0x8000

struct versions {
	VEC(const char *) name; /* by index */
};

static bool set_name(struct versions *v, uint32_t index, const char *name)
{
	while (v->name.len <= index)
		if (!VEC_PUSH(&v->name))
			return false;
	if (!v->name.data[index])
		v->name.data[index] = name;
	return true;
}

/* Verneed: vn_version 2, vn_cnt 2, vn_file 4, vn_aux 4, vn_next 4; Vernaux: vna_hash 4, vna_flags
 * 2, vna_other 2, vna_name 4, vna_next 4. */
static bool read_needs(const struct elfrw_image *img, const struct elfrw_section *s,
		       struct versions *v)
{
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	for (uint64_t at = 0, next = 1; next; at += next) {
		elfrw_rbuf_seek(&r, at);
		elfrw_rbuf_skip(&r, 2);
		uint32_t n = elfrw_rbuf_u16(&r);
		elfrw_rbuf_skip(&r, 4);
		uint64_t aux = at + elfrw_rbuf_uint(&r, 4);
		next = elfrw_rbuf_uint(&r, 4);
		for (uint32_t i = 0; i < n && !r.bad; i++) {
			elfrw_rbuf_seek(&r, aux);
			elfrw_rbuf_skip(&r, 6);
			uint32_t index = elfrw_rbuf_u16(&r) & ~(uint32_t)HIDDEN;
			const char *name =
				elfrw_image_string(img, s->hdr.sh_link, elfrw_rbuf_uint(&r, 4));
			aux += elfrw_rbuf_uint(&r, 4);
			if (!r.bad && name && !set_name(v, index, name))
				return false;
		}
		if (r.bad)
			break;
	}
	return true;
}

/* Verdef: vd_version 2, vd_flags 2, vd_ndx 2, vd_cnt 2, vd_hash 4, vd_aux 4, vd_next 4; Verdaux:
 * vda_name 4, vda_next 4; the first one is the version's name. */
static bool read_definitions(const struct elfrw_image *img, const struct elfrw_section *s,
			     struct versions *v)
{
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	for (uint64_t at = 0, next = 1; next; at += next) {
		elfrw_rbuf_seek(&r, at);
		elfrw_rbuf_skip(&r, 2);
		bool base = elfrw_rbuf_u16(&r) & VER_FLG_BASE;
		uint32_t index = elfrw_rbuf_u16(&r) & ~(uint32_t)HIDDEN;
		elfrw_rbuf_skip(&r, 6);
		uint64_t aux = at + elfrw_rbuf_uint(&r, 4);
		next = elfrw_rbuf_uint(&r, 4);
		elfrw_rbuf_seek(&r, aux);
		const char *name = elfrw_image_string(img, s->hdr.sh_link, elfrw_rbuf_uint(&r, 4));
		if (r.bad)
			break;
		if (!base && name && !set_name(v, index, name))
			return false;
	}
	return true;
}

struct elfrw_err *icf_hash_versions(struct icf_hasher *h)
{
	const struct elfrw_image *img = h->prog->img;
	const struct elfrw_section *indices = NULL;
	struct versions v = { 0 };
	bool ok = true;
	for (uint32_t i = 1; i < img->n_sections && ok; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!s->data)
			continue;
		if (s->hdr.sh_type == SHT_GNU_verneed)
			ok = read_needs(img, s, &v);
		else if (s->hdr.sh_type == SHT_GNU_verdef)
			ok = read_definitions(img, s, &v);
		else if (s->hdr.sh_type == SHT_GNU_versym)
			indices = s;
	}
	uint64_t n = indices ? indices->hdr.sh_size / 2 : 0;
	if (n > elfrw_symbols_count(&img->section[img->dynsym]))
		n = elfrw_symbols_count(&img->section[img->dynsym]);
	h->version = ok ? calloc(n + 1, sizeof *h->version) : NULL;
	for (uint64_t i = 0; i < n && h->version; i++) {
		uint32_t index = elfrw_get16(indices->data + 2 * i) & ~(uint32_t)HIDDEN;
		if (index > 1 && index < v.name.len)
			h->version[i] = v.name.data[index];
	}
	h->n_versions = h->version ? (uint32_t)n : 0;
	VEC_FREE(&v.name);
	return h->version ? NULL : &elfrw_err_nomem;
}

void icf_put_import(const struct icf_hasher *h, uint32_t index, struct elfrw_wbuf *w)
{
	const struct elfrw_image *img = h->prog->img;
	const struct elfrw_section *s = &img->section[img->dynsym];
	Elf64_Sym sym;
	const char *name = NULL;
	if (elfrw_symbol(s, index, &sym))
		name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
	elfrw_wbuf_cstr(w, name ? name : "");
	elfrw_wbuf_cstr(w, index < h->n_versions && h->version[index] ? h->version[index] : "");
}
