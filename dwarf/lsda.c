/* lsda.c: decodes one LSDA into call sites, action chains and types (see lsda.h for the sources).
 *
 *	header       LPStart encoding [LPStart], TType encoding [offset of the type table's end],
 *	             call-site encoding, size
 *	call sites   start, length, landing pad, action: 0 none, else 1 + offset in the action table
 *	actions      filter (SLEB128), displacement of the next one from this field (SLEB128, 0:
 *	             last)
 *	types        grow downwards from the end: filter n is the entry n * size in front of it
 *	exception specifications   grow upwards from there: filter -n begins at byte n - 1; ULEB128
 *	                           type numbers, then 0
 *
 * Nothing says where the action table or the specifications end; the extent is what the chains
 * reach.  Trap: an entry's value 0 means "no type" also when it is PC-relative.
 *
 * A function in several ranges (clang's -fbasic-block-sections, -fsplit-machine-functions) has a
 * header and call sites for each, one behind the other, and one action and one type table behind
 * them all; all headers state the same LPStart. The size in each header says where the action table
 * is, thus the next header lies inside of "its" call sites, at once or at the next multiple of 4.
 * It is told by all that it says: the same encodings, LPStart, action and type table.
 *
 * Cost: linear in the table, but for chains, which are expanded once per distinct first action and
 * limited in length. */
#include "dwarf/lsda.h"
#include "dwarf/cfi.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/wbuf.h"

/* Far above the values of compilers (nesting depth of try blocks, number of types); stops hostile
 * tables from expanding. */
#define CHAIN_MAX 4096
#define TYPES_MAX (1u << 16)
#define TOTAL_MAX (1u << 20)

struct reader {
	struct dwr_lsda *lsda;
	const struct elfrw_image *img;
	const struct elfrw_section *sec;
	uint64_t sec_end;     /* VA */
	uint64_t actions;     /* VA of the action table, as in the header */
	uint64_t actions_end; /* VA behind the last action record that a chain reaches */
	uint8_t address_size;
	unsigned ttype_size;
};

static struct elfrw_err *fault(const struct reader *rd, uint64_t va, const char *what)
{
	return elfrw_error_at(rd->sec->name, va - rd->sec->hdr.sh_addr, "LSDA: %s", what);
}

static struct elfrw_rbuf at_va(const struct reader *rd, uint64_t va)
{
	struct elfrw_rbuf r = elfrw_rbuf(rd->sec->data, (size_t)rd->sec->hdr.sh_size);
	if (va < rd->sec->hdr.sh_addr)
		r.bad = true;
	else
		elfrw_rbuf_seek(&r, va - rd->sec->hdr.sh_addr);
	return r;
}

static uint64_t va_of(const struct reader *rd, const struct elfrw_rbuf *r)
{
	return rd->sec->hdr.sh_addr + elfrw_rbuf_off(r);
}

static void reach(struct dwr_lsda *lsda, uint64_t va)
{
	if (va > lsda->end)
		lsda->end = va;
}

/* In a relocated file, absolute pointers are in the dynamic relocations, not here. */
static bool usable(const struct reader *rd, uint8_t encoding)
{
	uint8_t base = encoding & DWR_PE_BASE;
	return dwr_pe_size(encoding, rd->address_size) >= 0 &&
	       (base == DWR_PE_PCREL || (base == 0 && !rd->img->pic));
}

/* Records the next field of the type table (downwards). */
static struct elfrw_err *add_field(struct reader *rd)
{
	struct dwr_lsda *lsda = rd->lsda;
	uint64_t raw, va = lsda->ttbase - (lsda->field.len + 1) * rd->ttype_size;
	struct dwr_lsda_field *f = VEC_PUSH(&lsda->field);
	if (!f)
		return &elfrw_err_nomem;
	struct elfrw_rbuf r = at_va(rd, va);
	*f = (struct dwr_lsda_field){ va, 0, lsda->ttype_encoding, (uint8_t)rd->ttype_size, false };
	if (!dwr_pe_read(&r, f->encoding, rd->address_size, va, &raw, &f->addr))
		return fault(rd, va, "truncated type table");
	return NULL;
}

/* The type table entry FILTER > 0, recorded as a used field. */
static struct elfrw_err *read_type(struct reader *rd, uint64_t filter, struct dwr_lsda_type *ret)
{
	struct dwr_lsda *lsda = rd->lsda;
	if (!lsda->ttbase)
		return fault(rd, rd->actions, "an action names a type, but there is no type table");
	if (lsda->ttbase < rd->actions || filter > (lsda->ttbase - rd->actions) / rd->ttype_size ||
	    filter > TYPES_MAX)
		return fault(rd, lsda->ttbase, "type number outside of the type table");
	uint64_t va = lsda->ttbase - filter * rd->ttype_size;
	struct elfrw_rbuf r = at_va(rd, va);
	uint64_t raw;
	if (!dwr_pe_read(&r, lsda->ttype_encoding, rd->address_size, va, &raw, &ret->addr))
		return fault(rd, va, "truncated type table");
	ret->indirect = ret->addr && (lsda->ttype_encoding & DWR_PE_INDIRECT);
	/* The fields are filter 1, 2, ... without gaps; those between are marked as used when they
	 * are. */
	while (lsda->field.len < filter)
		ELFRW_TRY(add_field(rd));
	lsda->field.data[filter - 1].used = true;
	return NULL;
}

/* Reads the exception specification of FILTER < 0 into type[]; ACTION counts the types. */
static struct elfrw_err *read_spec(struct reader *rd, int64_t filter,
				   struct dwr_lsda_action *action)
{
	struct dwr_lsda *lsda = rd->lsda;
	if (!lsda->ttbase)
		return fault(rd, rd->actions,
			     "an action names a specification, but there is no type table");
	uint64_t index = 0 - (uint64_t)filter - 1;
	if (index > rd->sec_end - lsda->ttbase)
		return fault(rd, lsda->ttbase, "exception specification outside of the section");
	struct elfrw_rbuf r = at_va(rd, lsda->ttbase + index);
	for (;;) {
		uint64_t number = elfrw_rbuf_uleb(&r);
		if (!elfrw_rbuf_ok(&r))
			return fault(rd, lsda->ttbase + index,
				     "unterminated exception specification");
		if (!number)
			break;
		if (action->n_types >= CHAIN_MAX || lsda->type.len >= TOTAL_MAX)
			return fault(rd, lsda->ttbase + index, "exception specification too long");
		struct dwr_lsda_type *type = VEC_PUSH(&lsda->type);
		if (!type)
			return &elfrw_err_nomem;
		ELFRW_TRY(read_type(rd, number, type));
		action->n_types++;
	}
	reach(lsda, va_of(rd, &r));
	return NULL;
}

/* Follows the chain of action records that begins at VA. */
static struct elfrw_err *read_chain(struct reader *rd, uint64_t va, struct dwr_lsda_site *site)
{
	struct dwr_lsda *lsda = rd->lsda;
	site->action = (uint32_t)lsda->action.len;
	site->n_actions = 0;
	for (;;) {
		struct elfrw_rbuf r = at_va(rd, va);
		int64_t filter = elfrw_rbuf_sleb(&r);
		uint64_t next_va = va_of(rd, &r);
		int64_t next = elfrw_rbuf_sleb(&r);
		if (!elfrw_rbuf_ok(&r) || va < rd->actions)
			return fault(rd, rd->actions, "action record outside of the table");
		reach(lsda, va_of(rd, &r));
		if (va_of(rd, &r) > rd->actions_end)
			rd->actions_end = va_of(rd, &r);
		if (site->n_actions >= CHAIN_MAX || lsda->action.len >= TOTAL_MAX)
			return fault(rd, va, "cyclic or overlong action chain");
		struct dwr_lsda_action *action = VEC_PUSH(&lsda->action);
		if (!action)
			return &elfrw_err_nomem;
		site->n_actions++;
		action->filter = filter;
		action->type = (uint32_t)lsda->type.len;
		if (filter > 0) {
			struct dwr_lsda_type *type = VEC_PUSH(&lsda->type);
			if (!type || lsda->type.len >= TOTAL_MAX)
				return type ? fault(rd, va, "too many types") : &elfrw_err_nomem;
			action->n_types = 1;
			ELFRW_TRY(read_type(rd, (uint64_t)filter, type));
		} else if (filter < 0) {
			ELFRW_TRY(read_spec(rd, filter, action));
		}
		if (!next)
			return NULL;
		va = next_va + (uint64_t)next;
	}
}

/* A chain that was already expanded.  SEEN is a small direct-mapped cache by action number. */
struct seen {
	uint64_t action; /* 0: empty */
	uint32_t first, n;
};
#define SEEN_SLOTS 64

/* The contents of a header. */
struct header {
	uint64_t lpstart, lpstart_va; /* as in struct dwr_lsda; both 0 where LPStart is omitted */
	uint64_t ttbase, sites, actions;
	unsigned ttype_size;
	uint8_t lpstart_encoding, ttype_encoding, site_encoding, lpstart_size;
};

static struct elfrw_err *read_header(const struct reader *rd, uint64_t va, struct header *ret)
{
	struct header h = { 0 };
	struct elfrw_rbuf r = at_va(rd, va);
	uint64_t raw;
	h.lpstart_encoding = elfrw_rbuf_u8(&r);
	if (h.lpstart_encoding != DWR_PE_OMIT) {
		h.lpstart_va = va_of(rd, &r);
		if (!usable(rd, h.lpstart_encoding) || (h.lpstart_encoding & DWR_PE_INDIRECT) ||
		    !dwr_pe_read(&r, h.lpstart_encoding, rd->address_size, h.lpstart_va, &raw,
				 &h.lpstart))
			return fault(rd, va, "unusable landing pad base");
		h.lpstart_size = (uint8_t)(va_of(rd, &r) - h.lpstart_va);
	}
	h.ttype_encoding = elfrw_rbuf_u8(&r);
	if (h.ttype_encoding != DWR_PE_OMIT) {
		int size = dwr_pe_size(h.ttype_encoding, rd->address_size);
		if (!usable(rd, h.ttype_encoding) || size <= 0)
			return fault(rd, va, "unusable type table encoding");
		h.ttype_size = (unsigned)size;
		uint64_t off = elfrw_rbuf_uleb(&r);
		if (!elfrw_rbuf_ok(&r) || off > elfrw_rbuf_left(&r))
			return fault(rd, va, "type table outside of the section");
		h.ttbase = va_of(rd, &r) + off;
	}
	h.site_encoding = elfrw_rbuf_u8(&r);
	if ((h.site_encoding & (DWR_PE_BASE | DWR_PE_INDIRECT)) ||
	    dwr_pe_size(h.site_encoding, rd->address_size) < 0)
		return fault(rd, va, "unusable call-site encoding");
	uint64_t size = elfrw_rbuf_uleb(&r);
	if (!elfrw_rbuf_ok(&r))
		return fault(rd, va, "truncated header");
	if (size > elfrw_rbuf_left(&r))
		return fault(rd, va, "call-site table outside of the section");
	h.sites = va_of(rd, &r);
	h.actions = h.sites + size;
	*ret = h;
	return NULL;
}

/* Does a header of the same function begin at R?  RET is then that header. */
static bool same_header(const struct reader *rd, const struct elfrw_rbuf *r, struct header *ret)
{
	const struct dwr_lsda *l = rd->lsda;
	if (!elfrw_rbuf_left(r) || *r->pos != l->lpstart_encoding)
		return false;
	struct elfrw_err *err = read_header(rd, va_of(rd, r), ret);
	elfrw_err_free(err);
	return !err && ret->lpstart == l->lpstart && ret->actions == l->actions &&
	       ret->ttbase == l->ttbase && ret->ttype_encoding == l->ttype_encoding &&
	       ret->site_encoding == l->site_encoding;
}

/* Does the header of the next range follow call sites that end at R, directly or behind zeros up to
 * a multiple of 4?  RET is then that header.  Without an LPStart there is only one. */
static bool next_header(const struct reader *rd, struct elfrw_rbuf r, struct header *ret)
{
	if (!rd->lsda->lpstart_va)
		return false;
	if (same_header(rd, &r, ret))
		return true;
	while ((va_of(rd, &r) & 3) && elfrw_rbuf_left(&r) && !*r.pos)
		elfrw_rbuf_skip(&r, 1);
	return !(va_of(rd, &r) & 3) && same_header(rd, &r, ret);
}

static struct elfrw_err *read_sites(struct reader *rd, uint64_t from, uint64_t func_size)
{
	struct dwr_lsda *lsda = rd->lsda;
	struct seen seen[SEEN_SLOTS] = { 0 };
	struct elfrw_rbuf table = at_va(rd, from);
	struct header next;
	table.end = table.pos + (rd->actions - from);
	lsda->sites_end = lsda->actions = rd->actions_end = rd->actions;
	reach(lsda, rd->actions);
	while (elfrw_rbuf_left(&table)) {
		if (next_header(rd, table, &next)) {
			lsda->sites_end = next.lpstart_va - 1;
			return NULL;
		}
		uint64_t at = va_of(rd, &table), raw, pad;
		struct dwr_lsda_site *site = VEC_PUSH(&lsda->site);
		if (!site)
			return &elfrw_err_nomem;
		bool ok = dwr_pe_read(&table, lsda->site_encoding, rd->address_size, 0, &raw,
				      &site->start) &&
			  dwr_pe_read(&table, lsda->site_encoding, rd->address_size, 0, &raw,
				      &site->len) &&
			  dwr_pe_read(&table, lsda->site_encoding, rd->address_size, 0, &raw, &pad);
		uint64_t action = elfrw_rbuf_uleb(&table);
		if (!ok || !elfrw_rbuf_ok(&table))
			return fault(rd, at, "truncated call-site table");
		if (site->start > func_size || func_size - site->start < site->len)
			return fault(rd, at, "call site outside of the function");
		if (!pad)
			continue; /* without a landing pad, the action means nothing */
		site->landing_pad = lsda->lpstart + pad;
		if (!action)
			continue;
		struct seen *s = &seen[action % SEEN_SLOTS];
		if (s->action == action) {
			site->action = s->first;
			site->n_actions = s->n;
			continue;
		}
		if (action - 1 > rd->sec_end - rd->actions)
			return fault(rd, at, "action outside of the section");
		ELFRW_TRY(read_chain(rd, rd->actions + (action - 1), site));
		*s = (struct seen){ action, site->action, site->n_actions };
	}
	return NULL;
}

/* The entries of the type table that no chain uses: all that fit behind the last action seen.
 * Action records that only the other half of a split function uses look like such entries, too. */
static struct elfrw_err *read_unused_types(struct reader *rd)
{
	struct dwr_lsda *lsda = rd->lsda;
	if (!lsda->ttbase || lsda->ttbase < rd->actions_end)
		return NULL;
	uint64_t n = (lsda->ttbase - rd->actions_end) / rd->ttype_size;
	while (lsda->field.len < n && lsda->field.len < CHAIN_MAX)
		ELFRW_TRY(add_field(rd));
	return NULL;
}

static void reset(struct dwr_lsda *l)
{
	struct dwr_lsda old = *l;
	*l = (struct dwr_lsda){ 0 };
	l->site = old.site;
	l->action = old.action;
	l->type = old.type;
	l->field = old.field;
	l->site.len = l->action.len = l->type.len = l->field.len = 0;
}

struct elfrw_err *dwr_lsda_read(struct dwr_lsda *ret, const struct elfrw_image *img,
				uint64_t lsda_va, uint64_t func_start, uint64_t func_end)
{
	reset(ret);
	uint32_t shndx = elfrw_image_section_at(img, lsda_va);
	const struct elfrw_section *sec = shndx ? &img->section[shndx] : NULL;
	if (!sec || !sec->data || (sec->hdr.sh_flags & SHF_EXECINSTR))
		return elfrw_error(
			"the LSDA at 0x%llx of the function at 0x%llx is in no data section",
			(unsigned long long)lsda_va, (unsigned long long)func_start);
	struct reader rd = { .lsda = ret,
			     .img = img,
			     .sec = sec,
			     .sec_end = sec->hdr.sh_addr + sec->hdr.sh_size,
			     .address_size = img->arch->address_size };
	ret->start = ret->end = lsda_va;
	ret->region_start = ret->lpstart = func_start;
	ret->shndx = shndx;

	struct header h;
	ELFRW_TRY(read_header(&rd, lsda_va, &h));
	ret->lpstart_encoding = h.lpstart_encoding;
	ret->lpstart_va = h.lpstart_va;
	ret->lpstart_size = h.lpstart_size;
	if (h.lpstart_va)
		ret->lpstart = h.lpstart;
	ret->ttype_encoding = h.ttype_encoding;
	ret->ttbase = h.ttbase;
	ret->site_encoding = h.site_encoding;
	rd.ttype_size = h.ttype_size;
	rd.actions = h.actions;
	ELFRW_TRY(read_sites(&rd, h.sites, func_end > func_start ? func_end - func_start : 0));
	ELFRW_TRY(read_unused_types(&rd));
	reach(ret, ret->ttbase);
	return NULL;
}

void dwr_lsda_deinit(struct dwr_lsda *lsda)
{
	VEC_FREE(&lsda->site);
	VEC_FREE(&lsda->action);
	VEC_FREE(&lsda->type);
	VEC_FREE(&lsda->field);
	*lsda = (struct dwr_lsda){ 0 };
}

void dwr_lsda_canon(const struct dwr_lsda *lsda, struct elfrw_wbuf *out, dwr_lsda_pads *pads)
{
	elfrw_wbuf_uleb(out, lsda->site.len);
	for (size_t i = 0; i < lsda->site.len; i++) {
		const struct dwr_lsda_site *site = &lsda->site.data[i];
		elfrw_wbuf_uleb(out, site->start);
		elfrw_wbuf_uleb(out, site->len);
		if (!site->landing_pad) {
			elfrw_wbuf_u8(out, 0);
			continue;
		}
		uint64_t *pad = VEC_PUSH(pads);
		if (pad)
			*pad = site->landing_pad;
		else
			out->bad = true;
		/* No action means the same as one cleanup. */
		elfrw_wbuf_uleb(out, site->n_actions ? site->n_actions : 1);
		if (!site->n_actions)
			elfrw_wbuf_sleb(out, 0);
		for (uint32_t a = 0; a < site->n_actions; a++) {
			const struct dwr_lsda_action *action = &lsda->action.data[site->action + a];
			elfrw_wbuf_sleb(out, action->filter);
			if (action->filter < 0)
				elfrw_wbuf_uleb(out, action->n_types);
			for (uint32_t t = 0; t < action->n_types; t++) {
				const struct dwr_lsda_type *type =
					&lsda->type.data[action->type + t];
				elfrw_wbuf_u64(out, type->addr);
				elfrw_wbuf_u8(out, type->indirect);
			}
		}
	}
}
