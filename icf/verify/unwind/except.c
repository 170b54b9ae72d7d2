/* except.c: reads exception tables (see except.h).
 *
 *	1 byte   how the base of landing pads is coded; the base (omitted: the function's start)
 *	1 byte   how types are coded; ULEB128: from here to the end of the type table
 *	1 byte   how call sites are coded; ULEB128: their size
 *	...      call sites: start, size, landing pad, then ULEB128: action
 *	...      actions: SLEB128 filter, SLEB128 from here to the next action
 *	...      types, the first one last; behind them lists of exception specifications
 *
 * A function in several ranges has a header and call sites for each of them, up to 3 zeros apart,
 * in front of one table of actions and types.  Every header counts its call sites up to the
 *actions, so where the next header begins is to be seen only from what it says: a base, and the
 *very same actions and types.
 *
 * Cost: one look at each call site, and at each chain of actions once, as long as there are not
 *more than MEMO of them at a time; a table may take MAX_STEPS in all. */
#include "elfrw/arch/arch.h"
#include "icf/verify/unwind/except.h"

#define MAX_CHAIN 4096
#define MAX_STEPS (1u << 20)
#define MEMO      64

enum { OMITTED = 0xff, FORM = 0x0f, RELATION = 0x70, PC_RELATIVE = 0x10, INDIRECT = 0x80 };

static struct elfrw_rbuf from(const struct icf_vexcept *t, uint64_t pos)
{
	struct elfrw_rbuf r = elfrw_rbuf(t->sec->data, t->sec->hdr.sh_size);
	elfrw_rbuf_seek(&r, pos);
	return r;
}

static struct elfrw_err *wrong(const struct icf_vexcept *t, uint64_t pos, const char *what)
{
	return elfrw_error_at(t->sec->name, pos, "exception table: %s", what);
}

/* The size of a number in the encoding; 0: LEB128; -1: no such encoding. */
static int coded_size(const struct icf_vexcept *t, uint8_t coding)
{
	static const int8_t size[16] = { 0, 0, 2, 4, 8, -1, -1, -1, -1, 0, 2, 4, 8, -1, -1, -1 };
	return coding == OMITTED      ? -1
	       : (coding & FORM) == 0 ? t->img->arch->address_size
				      : size[coding & FORM];
}

/* Reads an encoded number.  A relative one gives an address, except 0, which means "none". */
static uint64_t coded(const struct icf_vexcept *t, struct elfrw_rbuf *r, uint8_t coding)
{
	uint64_t place = t->sec->hdr.sh_addr + elfrw_rbuf_off(r), x;
	int size = coded_size(t, coding);
	bool sign = coding & 8;
	if (size < 0)
		r->bad = true;
	if (size <= 0)
		x = sign ? (uint64_t)elfrw_rbuf_sleb(r) : elfrw_rbuf_uleb(r);
	else
		x = elfrw_rbuf_uint(r, (unsigned)size);
	if (size > 0 && size < 8 && sign)
		x = (uint64_t)((int64_t)(x << (64 - 8 * size)) >> (64 - 8 * size));
	return x && (coding & RELATION) == PC_RELATIVE ? x + place : x;
}

/* Can the file alone show the value of a pointer in this encoding?  In a file that is relocated,
 * only relative pointers can; the others are in relocations. */
static bool is_readable(const struct icf_vexcept *t, uint8_t coding)
{
	unsigned to = coding & RELATION;
	return coded_size(t, coding) >= 0 && (to == PC_RELATIVE || (!to && !t->img->pic));
}

/* Reads the header at POS into T.  Returns what is wrong; NULL: nothing. */
static const char *read_header(struct icf_vexcept *t, uint64_t pos)
{
	struct elfrw_rbuf r = from(t, pos);
	t->base_coding = elfrw_rbuf_u8(&r);
	t->base_at = t->base_size = 0;
	if (t->base_coding != OMITTED) {
		t->base_at = elfrw_rbuf_off(&r);
		if ((t->base_coding & INDIRECT) || !is_readable(t, t->base_coding))
			return "the base of landing pads cannot be read";
		t->base = coded(t, &r, t->base_coding);
		t->base_size = (unsigned)(elfrw_rbuf_off(&r) - t->base_at);
	}
	t->type_coding = elfrw_rbuf_u8(&r);
	t->types = 0;
	if (t->type_coding != OMITTED) {
		if (!is_readable(t, t->type_coding) || coded_size(t, t->type_coding) == 0)
			return "types cannot be read";
		t->type_size = (unsigned)coded_size(t, t->type_coding);
		uint64_t off = elfrw_rbuf_uleb(&r);
		if (off > elfrw_rbuf_left(&r))
			return "types outside of the section";
		t->types = elfrw_rbuf_off(&r) + off;
	}
	t->site_coding = elfrw_rbuf_u8(&r);
	if ((t->site_coding & (RELATION | INDIRECT)) || coded_size(t, t->site_coding) < 0)
		return "call sites cannot be read";
	uint64_t size = elfrw_rbuf_uleb(&r);
	if (!elfrw_rbuf_ok(&r) || size > elfrw_rbuf_left(&r))
		return "it ends outside of the section";
	t->sites = elfrw_rbuf_off(&r);
	t->actions = t->sites + size;
	return NULL;
}

/* Is there, at POS or at the next multiple of 4 behind zeros, the header of another range?  *POS is
 * then its place. */
static bool is_other_range(const struct icf_vexcept *t, uint64_t *pos)
{
	if (!t->base_at)
		return false;
	for (uint64_t at = *pos; at < t->actions; at++) {
		struct icf_vexcept next = { .img = t->img, .sec = t->sec };
		bool aligned = !((t->sec->hdr.sh_addr + at) & 3);
		if ((at == *pos || aligned) && t->sec->data[at] == t->base_coding &&
		    !read_header(&next, at) && next.base == t->base && next.actions == t->actions &&
		    next.types == t->types && next.type_coding == t->type_coding &&
		    next.site_coding == t->site_coding) {
			*pos = at;
			return true;
		}
		if (aligned || t->sec->data[at])
			return false;
	}
	return false;
}

/* The same as icf_vexcept_site(), while it is unknown what is at *POS. */
static bool read_site(const struct icf_vexcept *t, uint64_t *pos, struct icf_vsite *ret)
{
	struct elfrw_rbuf r = from(t, *pos);
	r.end = r.start + t->actions;
	ret->start = coded(t, &r, t->site_coding);
	ret->size = coded(t, &r, t->site_coding);
	ret->pad = coded(t, &r, t->site_coding);
	ret->action = elfrw_rbuf_uleb(&r);
	if (ret->pad)
		ret->pad += t->base;
	*pos = elfrw_rbuf_off(&r);
	return elfrw_rbuf_ok(&r);
}

bool icf_vexcept_site(const struct icf_vexcept *t, uint64_t *pos, struct icf_vsite *ret)
{
	return *pos < t->sites_end && read_site(t, pos, ret);
}

bool icf_vexcept_action(const struct icf_vexcept *t, uint64_t pos, struct icf_vaction *ret)
{
	struct elfrw_rbuf r = from(t, pos);
	ret->filter = elfrw_rbuf_sleb(&r);
	uint64_t here = elfrw_rbuf_off(&r), by = (uint64_t)elfrw_rbuf_sleb(&r);
	ret->next = by ? here + by : 0;
	return elfrw_rbuf_ok(&r) && pos >= t->actions && (!by || ret->next >= t->actions);
}

bool icf_vexcept_type(const struct icf_vexcept *t, uint64_t number, struct icf_vtype *ret)
{
	if (!t->types || t->types < t->actions || !number ||
	    number > (t->types - t->actions) / t->type_size)
		return false;
	struct elfrw_rbuf r = from(t, t->types - number * t->type_size);
	ret->target = coded(t, &r, t->type_coding);
	ret->indirect = ret->target && (t->type_coding & INDIRECT);
	return elfrw_rbuf_ok(&r);
}

bool icf_vexcept_list(const struct icf_vexcept *t, int64_t filter, struct elfrw_rbuf *ret)
{
	uint64_t skip = 0 - (uint64_t)filter - 1;
	if (!t->types || skip > t->sec->hdr.sh_size - t->types)
		return false;
	*ret = from(t, t->types + skip);
	return true;
}

static void reach(struct icf_vexcept *t, uint64_t pos)
{
	if (pos > t->end)
		t->end = pos;
}

/* Walks the list of a specification. */
static const char *walk_list(struct icf_vexcept *t, int64_t filter, unsigned *steps)
{
	struct elfrw_rbuf r;
	struct icf_vtype type;
	if (!icf_vexcept_list(t, filter, &r))
		return "a specification outside of the section";
	for (uint64_t number; (number = elfrw_rbuf_uleb(&r)); ++*steps) {
		if (!icf_vexcept_type(t, number, &type))
			return "a type outside of the type table";
		if (*steps > MAX_STEPS)
			return "a specification that is too long";
		if (number > t->named)
			t->named = number;
	}
	reach(t, elfrw_rbuf_off(&r));
	return elfrw_rbuf_ok(&r) ? NULL : "a specification without an end";
}

/* Walks the chain of actions that begins at POS. */
static const char *walk_chain(struct icf_vexcept *t, uint64_t pos, unsigned *steps)
{
	struct icf_vaction a;
	struct icf_vtype type;
	for (unsigned n = 0; pos; pos = a.next) {
		if (!icf_vexcept_action(t, pos, &a))
			return "an action outside of the action table";
		struct elfrw_rbuf r = from(t, pos);
		elfrw_rbuf_sleb(&r);
		elfrw_rbuf_sleb(&r);
		if (elfrw_rbuf_off(&r) > t->actions_end)
			t->actions_end = elfrw_rbuf_off(&r);
		reach(t, t->actions_end);
		if (++n > MAX_CHAIN || ++*steps > MAX_STEPS)
			return "a chain of actions without an end";
		if (a.filter > 0 && !icf_vexcept_type(t, (uint64_t)a.filter, &type))
			return "a type outside of the type table";
		if (a.filter > 0 && (uint64_t)a.filter > t->named)
			t->named = (uint64_t)a.filter;
		const char *why = a.filter < 0 ? walk_list(t, a.filter, steps) : NULL;
		if (why)
			return why;
	}
	return NULL;
}

/* Walks all call sites; *POS is the current one. */
static const char *walk_sites(struct icf_vexcept *t, uint64_t *pos)
{
	uint64_t memo[MEMO] = { 0 };
	unsigned steps = 0;
	while (*pos < t->actions) {
		uint64_t behind = *pos;
		if (is_other_range(t, &behind)) {
			t->sites_end = *pos;
			t->range_end = behind;
			return NULL;
		}
		struct icf_vsite s;
		if (!read_site(t, &behind, &s))
			return "a call site that is cut off";
		if (s.start > t->function || s.size > t->function - s.start)
			return "a call site outside of the function";
		/* Without a landing pad, the action is never examined. */
		if (s.pad && s.action && memo[s.action % MEMO] != s.action) {
			memo[s.action % MEMO] = s.action;
			if (s.action - 1 > t->sec->hdr.sh_size - t->actions)
				return "an action outside of the section";
			const char *why = walk_chain(t, t->actions + (s.action - 1), &steps);
			if (why)
				return why;
		}
		*pos = behind;
	}
	t->sites_end = t->range_end = t->actions;
	return NULL;
}

struct elfrw_err *icf_vexcept_read(struct icf_vexcept *t, const struct elfrw_image *img,
				   uint64_t va, uint64_t begin, uint64_t end)
{
	uint32_t s = elfrw_image_section_at(img, va);
	*t = (struct icf_vexcept){ .img = img, .sec = &img->section[s], .base = begin };
	if (!s || !t->sec->data || (t->sec->hdr.sh_flags & SHF_EXECINSTR))
		return elfrw_error("the exception table at 0x%llx is in no section of data",
				   (unsigned long long)va);
	t->start = va - t->sec->hdr.sh_addr;
	t->function = end > begin ? end - begin : 0;
	const char *why = read_header(t, t->start);
	if (why)
		return wrong(t, t->start, why);
	t->end = t->actions_end = t->actions;
	uint64_t pos = t->sites;
	why = walk_sites(t, &pos);
	if (why)
		return wrong(t, pos, why);
	/* Bytes between the last action and the end of the types may be types that nothing refers
	 * to, or actions of another range of the function. */
	t->n_types = t->named;
	if (t->types && t->types >= t->actions_end) {
		uint64_t room = (t->types - t->actions_end) / t->type_size;
		room = room < MAX_CHAIN ? room : MAX_CHAIN;
		t->n_types = room > t->named ? room : t->named;
	}
	reach(t, t->types);
	return NULL;
}
