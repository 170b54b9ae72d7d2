/* pseudo.c: see pseudo.h.  (llvm/MC/MCPseudoProbe.h)
 *
 * A record is a tree of inlined functions, parents first: a hash (the low 8 bytes of the MD5 of the
 * name), the numbers of probes and of children, the probes, the children, each behind the number of
 * its call site.  A probe is an index, a byte (kind, attributes, and a bit: a distance), the
 * distance from the probe before it, in the order of the bytes, and perhaps a discriminator.  The
 * first counts from the start of the function of the record's hash.  If the code lies in another
 * one (a cold part), then the first probe is a sentinel with the hash of that one's name.
 *
 * So a function that moves whole needs no edit. */
#include "icf/fold/pseudo.h"
#include "elfrw/base/md5.h"
#include "elfrw/base/search.h"
#include "elfrw/base/wbuf.h"
#include "elfrw/symtab.h"
#include <stdlib.h>

#define KINDS         3 /* block, indirect call, direct call */
#define RESERVED      0x10
#define SENTINEL      0x20
#define DISCRIMINATOR 0x40
#define DISTANCE      0x80

struct record {
	uint64_t owner; /* the hash of its function's name */
	int64_t at, lo, hi;
	bool any;
};

/* LLVM's reader takes no number of more than 32 bits. */
static uint64_t number(struct elfrw_rbuf *r)
{
	uint64_t v = elfrw_rbuf_uleb(r);
	if (v > UINT32_MAX)
		r->bad = true;
	return v;
}

/* FIRST: a sentinel may be here. */
static void probe(struct elfrw_rbuf *r, struct record *rec, bool first)
{
	number(r);
	uint8_t how = elfrw_rbuf_u8(r);
	if ((how & 15) >= KINDS || (how & RESERVED) || !(how & SENTINEL) != !!(how & DISTANCE) ||
	    ((how & SENTINEL) && !first))
		r->bad = true;
	if (how & SENTINEL)
		rec->owner = elfrw_rbuf_u64(r);
	else if (__builtin_add_overflow(rec->at, elfrw_rbuf_sleb(r), &rec->at))
		r->bad = true;
	if (how & DISCRIMINATOR)
		number(r);
	if (how & SENTINEL)
		return;
	rec->lo = !rec->any || rec->at < rec->lo ? rec->at : rec->lo;
	rec->hi = !rec->any || rec->at > rec->hi ? rec->at : rec->hi;
	rec->any = true;
}

/* Reads a record.  The nodes of its tree follow one another, so their number is all that counts,
 * not their depth. */
static bool read_record(struct elfrw_rbuf *r, struct record *rec)
{
	*rec = (struct record){ 0 };
	uint64_t nodes = 1;
	for (bool root = true; nodes && elfrw_rbuf_ok(r); root = false, nodes--) {
		if (!root)
			number(r);
		uint64_t hash = elfrw_rbuf_u64(r), n = number(r), children = number(r);
		if (root)
			rec->owner = hash;
		for (uint64_t k = 0; k < n && elfrw_rbuf_ok(r); k++)
			probe(r, rec, root && !k);
		nodes += children;
		if (nodes > elfrw_rbuf_left(r) + 1)
			r->bad = true;
	}
	return elfrw_rbuf_ok(r);
}

bool icf_pseudo_parses(const struct elfrw_section *s)
{
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	struct record rec;
	while (elfrw_rbuf_left(&r))
		if (!read_record(&r, &rec))
			return false;
	return true;
}

struct name {
	uint64_t hash, value;
};

static int by_hash(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

struct names {
	VEC(struct name) v;
};

/* The names of all symbols, of whatever type: a reader takes any. */
static bool read_names(const struct elfrw_image *img, struct names *names)
{
	if (!img->symtab)
		return true;
	const struct elfrw_section *s = &img->section[img->symtab];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const char *name = elfrw_image_string(img, s->hdr.sh_link, it.sym.st_name);
		if (!name || !*name)
			continue;
		struct name *slot = VEC_PUSH(&names->v);
		if (!slot)
			return false;
		*slot = (struct name){ elfrw_md5_low(name, strlen(name)), it.sym.st_value };
	}
	if (names->v.len)
		qsort(names->v.data, names->v.len, sizeof *names->v.data, by_hash);
	return true;
}

/* Does the record stay?  *OK: its function is known. */
static bool stays(const struct icf_program *prog, const struct icf_plan *plan,
		  const struct names *names, const struct record *rec, bool *ok)
{
	const struct name *n = names->v.data;
	size_t i = LOWER_BOUND(0, names->v.len, mid, n[mid].hash < rec->owner);
	*ok = i < names->v.len && n[i].hash == rec->owner;
	if (!*ok)
		return false;
	for (size_t k = i; k < names->v.len && n[k].hash == rec->owner; k++)
		if (n[k].value != n[i].value)
			return false;
	uint32_t u = icf_unit_at(prog, n[i].value);
	if (u == ICF_NONE) {
		*ok = false;
		return false;
	}
	/* A label may be behind the last instruction. */
	int64_t lo = (int64_t)(prog->unit.data[u].start - n[i].value),
		hi = (int64_t)(prog->unit.data[u].end - n[i].value);
	*ok = !rec->any || (rec->lo >= lo && rec->hi <= hi);
	return !(plan->map.unit[u].flags & ELFRW_UNIT_FOLDED);
}

struct elfrw_err *icf_pseudo_rewrite(const struct icf_program *prog, const struct icf_plan *plan,
				     uint32_t shndx, struct elfrw_wbuf *w, bool *ok)
{
	const struct elfrw_section *s = &prog->img->section[shndx];
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	struct names names = { 0 };
	bool room = read_names(prog->img, &names);
	*ok = room;
	while (*ok && elfrw_rbuf_left(&r)) {
		struct record rec;
		uint64_t at = elfrw_rbuf_off(&r);
		bool keep = read_record(&r, &rec) && stays(prog, plan, &names, &rec, ok);
		if (keep && *ok && w)
			elfrw_wbuf_bytes(w, s->data + at, elfrw_rbuf_off(&r) - at);
	}
	VEC_FREE(&names.v);
	return room && !(w && w->bad) ? NULL : &elfrw_err_nomem;
}
