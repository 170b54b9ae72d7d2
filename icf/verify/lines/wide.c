/* wide.c: line tables with numbers that are too large for libdw: discriminators of more than 24
 * bits (clang's -fpseudo-probe-for-profiling writes probes there) and columns of more than 16.
 * libdw rejects the whole table.
 *
 * Before libdw sees a table, each such number is replaced, in as many bytes, by a hash of itself
 * that fits; walk.c does the same.  Different numbers have different hashes, except by chance, and
 * rows are compared as usual.  Only if there is such a number the section is copied.  Tables that
 * cannot be walked stay as they are. */
#include "elfrw/base/rbuf.h"
#include "icf/verify/lines/program.h"
#include "icf/verify/lines/wide.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct table {
	const uint8_t *base; /* what is behind its length */
	uint8_t *copy;       /* the same, to be changed; NULL: look only */
	bool any;            /* there is a number that is too large */
};

/* Narrows the ULEB number of N bytes at AT of T to BITS bits. */
static void narrow(struct table *t, uint64_t at, size_t n, unsigned bits)
{
	struct elfrw_rbuf r = elfrw_rbuf(t->base + at, n);
	uint64_t x = elfrw_rbuf_uleb(&r);
	if (r.bad || elfrw_rbuf_left(&r) || !(x >> bits))
		return;
	t->any = true;
	x = icf_vd_narrowed(x, bits);
	for (size_t i = 0; i < n && t->copy; i++, x >>= 7)
		t->copy[at + i] = (uint8_t)((x & 0x7f) | (i + 1 < n ? 0x80 : 0));
}

/* Skips a ULEB number of R, the bytes of T, and narrows it. */
static void narrow_next(struct elfrw_rbuf *r, struct table *t, unsigned bits)
{
	uint64_t from = elfrw_rbuf_off(r);
	elfrw_rbuf_uleb(r);
	if (elfrw_rbuf_ok(r))
		narrow(t, from, elfrw_rbuf_off(r) - from, bits);
}

/* Narrows the operations of T, which has N bytes behind its length (DWARF 2 to 5, section 6.2). */
static void walk(struct table *t, uint64_t n, bool wide)
{
	struct elfrw_rbuf r = elfrw_rbuf(t->base, n);
	struct icf_vline_program h;
	if (!icf_vline_program(&r, wide, &h) || h.header > n || h.version < 2 || h.version > 5)
		return;
	while (elfrw_rbuf_ok(&r) && elfrw_rbuf_left(&r)) {
		unsigned op = elfrw_rbuf_u8(&r);
		if (op >= h.base)
			continue;
		if (op == 0) {
			uint64_t size = elfrw_rbuf_uleb(&r), at = elfrw_rbuf_off(&r);
			const uint8_t *ext = elfrw_rbuf_take(&r, size);
			if (ext && size > 1 && *ext == DW_LNE_set_discriminator)
				narrow(t, at + 1, size - 1, ICF_VD_DISCRIMINATOR_BITS);
		} else if (op == DW_LNS_fixed_advance_pc)
			elfrw_rbuf_u16(&r);
		else if (op == DW_LNS_set_column && h.length[op - 1] == 1)
			narrow_next(&r, t, ICF_VD_COLUMN_BITS);
		else
			for (unsigned i = h.length[op - 1]; i; i--)
				elfrw_rbuf_uleb(&r);
	}
}

struct elfrw_err *icf_vd_narrow(Elf_Data *data, uint64_t off, uint8_t **copy)
{
	if (!data || !data->d_buf || off >= data->d_size)
		return NULL;
	struct elfrw_rbuf r = elfrw_rbuf((const uint8_t *)data->d_buf + off, data->d_size - off);
	uint64_t size = elfrw_rbuf_u32(&r);
	const bool wide = size == 0xffffffff;
	if (wide)
		size = elfrw_rbuf_u64(&r);
	const uint64_t at = off + elfrw_rbuf_off(&r);
	struct table t = { .base = elfrw_rbuf_take(&r, size) };
	if (!t.base || !size)
		return NULL;
	walk(&t, size, wide);
	if (!t.any)
		return NULL;
	if (!*copy) {
		if (!(*copy = malloc(data->d_size)))
			return &elfrw_err_nomem;
		memcpy(*copy, data->d_buf, data->d_size);
		data->d_buf = *copy;
	}
	t.base = t.copy = *copy + at;
	walk(&t, size, wide);
	return NULL;
}
