/* calls.c: see calls.h.
 *
 * A contribution does not say which dialect it is in, so each reading is tried.  A valid reading
 * uses up the contribution exactly; its call sites are possible return addresses (after a byte of
 * an executable section); its DIE offsets are those of functions.  The two version fields exclude
 * each other for virtual calls, and for all but a few values of `debug_info`.  Entries are decoded
 * once to count and check, and once to store; the only state is the reader's. */
#include "dwarf/calls/calls.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/wbuf.h"
#include <dwarf.h>

#define VERSION     4
#define MAX_CHECKED 32

enum dialect { PROPOSAL, GCC };

/* One way to read one contribution. */
struct reading {
	enum dialect dialect;
	bool relative; /* DIE offsets count from the unit */
	unsigned site_size;
	uint64_t debug_info;
	struct elfrw_rbuf entries;
};

struct reader {
	struct dwr_sections *secs;
	const struct dwr_units *units;
	struct dwr_calls *calls;
	bool direct;
	const char *section;
	struct dwr_abbrev_table table;
	struct dwr_want want;
};

static bool is_site(const struct elfrw_image *img, uint64_t va)
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *h = &img->section[i].hdr;
		if ((h->sh_flags & SHF_EXECINSTR) && va > h->sh_addr &&
		    va - h->sh_addr <= h->sh_size)
			return true;
	}
	return false;
}

static bool is_function(struct reader *rd, uint64_t off)
{
	const struct dwr_unit *unit = dwr_units_find(rd->units, DWR_INFO, off);
	if (!unit || off < unit->die)
		return false;
	struct elfrw_err *err = dwr_unit_abbrev(rd->secs, unit, &rd->want, &rd->table);
	struct dwr_die die;
	bool more = false;
	if (!err) {
		struct dwr_cursor cur = dwr_cursor_at_die(rd->secs, unit, &rd->table, true, off);
		err = dwr_cursor_next(&cur, &die, &more);
	}
	bool ok = !err && more && die.off == off &&
		  (die.abbrev->tag == DW_TAG_subprogram || die.abbrev->tag == DW_TAG_entry_point);
	elfrw_err_free(err);
	return ok;
}

/* The next entry of a reading; false at the end or past it. */
static bool next_entry(struct reading *re, uint64_t *site, uint64_t *number)
{
	if (!elfrw_rbuf_left(&re->entries))
		return false;
	*site = elfrw_rbuf_uint(&re->entries, re->site_size);
	*number = elfrw_rbuf_uleb(&re->entries);
	return elfrw_rbuf_ok(&re->entries);
}

static bool fits(struct reader *rd, struct reading re)
{
	uint64_t site, number,
		mask = re.site_size < 8 ? (UINT64_C(1) << 8 * re.site_size) - 1 : UINT64_MAX;
	while (next_entry(&re, &site, &number))
		if (site && (site > mask || !is_site(rd->secs->image, site)))
			return false;
	return elfrw_rbuf_ok(&re.entries);
}

static bool names_functions(struct reader *rd, struct reading re)
{
	uint64_t site, number;
	for (unsigned i = 0; i < MAX_CHECKED && next_entry(&re, &site, &number); i++)
		if (!is_function(rd, number + (re.relative ? re.debug_info : 0)))
			return false;
	return true;
}

/* The header in one dialect, behind unit_length. */
static bool header(const struct reader *rd, enum dialect dialect, unsigned offset_size,
		   struct elfrw_rbuf r, struct reading *ret)
{
	uint64_t version = elfrw_rbuf_uint(&r, dialect == GCC ? 2 : 1);
	uint64_t debug_info = rd->direct ? elfrw_rbuf_uint(&r, offset_size) : 0;
	unsigned address_size = elfrw_rbuf_u8(&r);
	if (!elfrw_rbuf_ok(&r) || version != VERSION ||
	    address_size != rd->secs->image->arch->address_size)
		return false;
	*ret = (struct reading){ dialect, dialect == GCC,
				 dialect == GCC ? offset_size : address_size, debug_info, r };
	return true;
}

static struct elfrw_err *store(struct reader *rd, struct reading re)
{
	uint64_t site, number, caller = 0, base = re.relative ? re.debug_info : 0;
	while (next_entry(&re, &site, &number)) {
		if (!site) {
			caller = number + base;
			continue;
		}
		if (rd->direct) {
			struct dwr_dcall *c = VEC_PUSH(&rd->calls->dcall);
			if (!c)
				return &elfrw_err_nomem;
			*c = (struct dwr_dcall){ site, number + base, caller };
		} else {
			struct dwr_vcall *c = VEC_PUSH(&rd->calls->vcall);
			if (!c)
				return &elfrw_err_nomem;
			*c = (struct dwr_vcall){ site, number };
		}
	}
	rd->calls->n_gcc_units += re.dialect == GCC;
	return NULL;
}

static struct elfrw_err *read_unit(struct reader *rd, uint64_t off, unsigned offset_size,
				   struct elfrw_rbuf r)
{
	struct reading way[3], re;
	unsigned n = 0;
	if (header(rd, PROPOSAL, offset_size, r, &re) && fits(rd, re)) {
		way[n++] = re;
		if (re.debug_info) {
			re.relative = true;
			way[n++] = re;
		}
	}
	if (header(rd, GCC, offset_size, r, &re) && fits(rd, re))
		way[n++] = re;
	/* Without .debug_info there is nothing to check against.  icfold's own tables need no
	 * check. */
	bool obvious = n == 1 &&
		       (!rd->direct || way[0].dialect == PROPOSAL || !rd->secs->sec[DWR_INFO].size);
	for (unsigned i = 0; i < n; i++)
		if (obvious || !rd->direct || names_functions(rd, way[i]))
			return store(rd, way[i]);
	return elfrw_error_at(rd->section, off, "call table in neither known form");
}

static struct elfrw_err *read_section(struct reader *rd, enum dwr_sec id, uint32_t *n_units)
{
	ELFRW_TRY(dwr_sections_load(rd->secs, id));
	const struct dwr_section *s = &rd->secs->sec[id];
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->size);
	rd->section = s->name;
	rd->direct = id == DWR_DCALL;
	while (elfrw_rbuf_left(&r)) {
		uint64_t off = elfrw_rbuf_off(&r), length = elfrw_rbuf_u32(&r);
		unsigned offset_size = 4;
		if (length == 0xffffffff) {
			length = elfrw_rbuf_u64(&r);
			offset_size = 8;
		} else if (length >= 0xfffffff0)
			return elfrw_error_at(s->name, off, "unit length 0x%llx is reserved",
					      (unsigned long long)length);
		const uint8_t *body = elfrw_rbuf_take(&r, length);
		if (!body)
			return elfrw_error_at(
				s->name, off,
				"call table of %llu bytes goes past the section's end",
				(unsigned long long)length);
		if (!length) /* alignment */
			continue;
		ELFRW_TRY(read_unit(rd, off, offset_size, elfrw_rbuf(body, length)));
		++*n_units;
	}
	return NULL;
}

struct elfrw_err *dwr_calls_read(struct dwr_sections *secs, const struct dwr_units *units,
				 struct dwr_calls *ret)
{
	struct dwr_calls calls = { 0 };
	struct reader rd = { .secs = secs, .units = units, .calls = &calls };
	struct elfrw_err *err = read_section(&rd, DWR_DCALL, &calls.n_dcall_units);
	if (!err)
		err = read_section(&rd, DWR_VCALL, &calls.n_vcall_units);
	dwr_abbrev_deinit(&rd.table);
	if (err)
		dwr_calls_deinit(&calls);
	else
		*ret = calls;
	return err;
}

void dwr_calls_deinit(struct dwr_calls *calls)
{
	VEC_FREE(&calls->dcall);
	VEC_FREE(&calls->vcall);
}

static int dcall_order(const void *a, const void *b)
{
	const struct dwr_dcall *x = a, *y = b;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

int dwr_vcall_order(const void *a, const void *b)
{
	const struct dwr_vcall *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Sets unit_length when everything is written.  Room for the long form is made only if needed,
 * which never happens in practice. */
static struct elfrw_err *finish(struct elfrw_wbuf *w, const char *section, uint8_t **ret,
				size_t *ret_size)
{
	if (w->bad) {
		elfrw_wbuf_free(w);
		return &elfrw_err_nomem;
	}
	if (w->len - 4 >= 0xfffffff0) {
		elfrw_wbuf_free(w);
		return elfrw_error("%s would exceed 4 GB", section);
	}
	elfrw_put32(w->data, (uint32_t)(w->len - 4));
	*ret_size = w->len;
	*ret = elfrw_wbuf_take(w);
	return NULL;
}

struct elfrw_err *dwr_dcall_write(struct dwr_dcall *call, size_t *n, unsigned address_size,
				  uint8_t **ret, size_t *ret_size)
{
	*ret = NULL;
	*ret_size = 0;
	if (!*n)
		return NULL;
	qsort(call, *n, sizeof *call, dcall_order);
	size_t k = 1;
	for (size_t i = 1; i < *n; i++)
		if (dcall_order(&call[k - 1], &call[i]))
			call[k++] = call[i];
	*n = k;
	struct elfrw_wbuf w = { 0 };
	elfrw_wbuf_u32(&w, 0);
	elfrw_wbuf_u8(&w, VERSION);
	elfrw_wbuf_u32(&w, 0);
	elfrw_wbuf_u8(&w, (uint8_t)address_size);
	uint64_t caller = 0;
	for (size_t i = 0; i < k; i++) {
		if (call[i].caller != caller) {
			caller = call[i].caller;
			elfrw_wbuf_uint(&w, 0, address_size);
			elfrw_wbuf_uleb(&w, caller);
		}
		elfrw_wbuf_uint(&w, call[i].site, address_size);
		elfrw_wbuf_uleb(&w, call[i].die);
	}
	return finish(&w, ".debug_dcall", ret, ret_size);
}

struct elfrw_err *dwr_vcall_write(struct dwr_vcall *call, size_t *n, unsigned address_size,
				  uint8_t **ret, size_t *ret_size)
{
	*ret = NULL;
	*ret_size = 0;
	if (!*n)
		return NULL;
	qsort(call, *n, sizeof *call, dwr_vcall_order);
	size_t k = 1;
	for (size_t i = 1; i < *n; i++)
		if (dwr_vcall_order(&call[k - 1], &call[i]))
			call[k++] = call[i];
	*n = k;
	struct elfrw_wbuf w = { 0 };
	elfrw_wbuf_u32(&w, 0);
	elfrw_wbuf_u8(&w, VERSION);
	elfrw_wbuf_u8(&w, (uint8_t)address_size);
	for (size_t i = 0; i < k; i++) {
		elfrw_wbuf_uint(&w, call[i].site, address_size);
		elfrw_wbuf_uleb(&w, call[i].slot);
	}
	return finish(&w, ".debug_vcall", ret, ret_size);
}
