/* lookup.c: the hash tables must find the names that they found, as the dynamic linker looks them
 * up. Cost: each name once in each table of both files. */
#include "icf/verify/state.h"
#include "elfrw/symtab.h"
#include <string.h>

/* gABI, "Hash Table". */
static uint32_t sysv_hash(const char *s)
{
	uint32_t h = 0;
	for (; *s; s++) {
		h = (h << 4) + (uint8_t)*s;
		h ^= (h & 0xf0000000) >> 24;
		h &= 0x0fffffff;
	}
	return h;
}

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;
	for (; *s; s++)
		h = h * 33 + (uint8_t)*s;
	return h;
}

struct lookup {
	const struct elfrw_image *img;
	const struct elfrw_section *sym, *hash;
};

static bool same_name(const struct lookup *l, uint32_t i, const char *name)
{
	Elf64_Sym s;
	if (!elfrw_symbol(l->sym, i, &s))
		return false;
	const char *p = elfrw_image_string(l->img, l->sym->hdr.sh_link, s.st_name);
	return p && strcmp(p, name) == 0;
}

/* Is symbol WANT among the possible results of a look-up of NAME?  (Versions select one of
 * several.) */
static bool find_sysv(const struct lookup *l, const char *name, uint32_t want)
{
	struct elfrw_rbuf r = elfrw_rbuf(l->hash->data, l->hash->hdr.sh_size);
	uint32_t buckets = elfrw_rbuf_u32(&r), chains = elfrw_rbuf_u32(&r);
	if (!buckets)
		return false;
	elfrw_rbuf_seek(&r, 8 + 4 * (uint64_t)(sysv_hash(name) % buckets));
	uint32_t i = elfrw_rbuf_u32(&r);
	for (uint32_t k = 0; i && i < chains && k < chains && elfrw_rbuf_ok(&r); k++) {
		if (i == want)
			return same_name(l, i, name);
		elfrw_rbuf_seek(&r, 8 + 4 * ((uint64_t)buckets + i));
		i = elfrw_rbuf_u32(&r);
	}
	return false;
}

/* The layout of .gnu.hash as glibc's dl-lookup reads it. */
static bool find_gnu(const struct lookup *l, const char *name, uint32_t want)
{
	struct elfrw_rbuf r = elfrw_rbuf(l->hash->data, l->hash->hdr.sh_size);
	uint32_t buckets = elfrw_rbuf_u32(&r), first = elfrw_rbuf_u32(&r),
		 words = elfrw_rbuf_u32(&r), shift = elfrw_rbuf_u32(&r);
	uint32_t h = gnu_hash(name);
	if (!buckets || !words || (words & (words - 1)) || shift > 31)
		return false;
	elfrw_rbuf_seek(&r, 16 + 8 * (uint64_t)(h / 64 & (words - 1)));
	uint64_t bloom = elfrw_rbuf_u64(&r);
	if (!(bloom >> (h & 63) & bloom >> (h >> shift & 63) & 1))
		return false;
	elfrw_rbuf_seek(&r, 16 + 8 * (uint64_t)words + 4 * (uint64_t)(h % buckets));
	uint32_t i = elfrw_rbuf_u32(&r);
	if (i < first)
		return false;
	for (;; i++) {
		elfrw_rbuf_seek(&r, 16 + 8 * (uint64_t)words + 4 * ((uint64_t)buckets + i - first));
		uint32_t x = elfrw_rbuf_u32(&r);
		if (!elfrw_rbuf_ok(&r))
			return false;
		if ((x | 1) == (h | 1) && i == want)
			return same_name(l, i, name);
		if (x & 1)
			return false;
	}
}

/* Does the hash table H of IMG find symbol I, whose name is NAME? */
static bool finds(const struct elfrw_image *img, const struct elfrw_section *h, const char *name,
		  uint32_t i)
{
	const struct lookup l = { img, &img->section[img->dynsym], h };
	return l.sym->data && h->data &&
	       (h->hdr.sh_type == SHT_GNU_HASH ? find_gnu : find_sysv)(&l, name, i);
}

/* A hash table must find the symbols that IN's table finds, and no others.  (GNU ld leaves its own
 * _end out of .gnu.hash if a library that it links with defines _end, too.) */
void icf_v_check_lookups(const struct icf_vclaim *c, struct icf_vlog *log)
{
	const struct elfrw_section *sym = &c->out.section[c->out.dynsym];
	for (uint32_t k = 1; k < c->out.n_sections; k++) {
		const struct elfrw_section *h = &c->out.section[k], *old = NULL;
		if ((h->hdr.sh_type != SHT_GNU_HASH && h->hdr.sh_type != SHT_HASH) || !h->data)
			continue;
		if (c->from_out[k])
			old = &c->in.section[c->from_out[k]];
		for (struct elfrw_symbols it = elfrw_symbols(sym, 1); elfrw_symbols_next(&it);) {
			const Elf64_Sym s = it.sym;
			const uint32_t i = (uint32_t)it.index;
			const char *name =
				s.st_shndx == SHN_UNDEF || ELF64_ST_BIND(s.st_info) == STB_LOCAL
					? NULL
					: elfrw_image_string(&c->out, sym->hdr.sh_link, s.st_name);
			if (!name)
				continue;
			log->checked[ICF_VC_LOOKUP]++;
			bool want = !old || finds(&c->in, old, name, i);
			if (finds(&c->out, h, name, i) != want)
				icf_vlog_bad(
					log, ICF_VC_LOOKUP,
					want ? "name: %s in %s: expected symbol %u, found none"
					     : "name: %s in %s: expected none, found symbol %u",
					name, h->name, i);
		}
	}
}
