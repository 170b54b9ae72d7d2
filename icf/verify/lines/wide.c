/* wide.c: line tables with numbers that are too large for libdw: discriminators of more than 24
 * bits (clang's -fpseudo-probe-for-profiling writes probes there) and columns of more than 16.
 * libdw rejects the whole table.
 *
 * Before libdw sees the section, each such number is replaced, in as many bytes, by a hash of
 * itself that fits.  Different numbers have different hashes, except by chance, and rows are
 * compared as usual.  A search for byte patterns shows whether this is needed.  Only then the
 * section is copied and its tables are walked.  Tables that cannot be walked stay as they are. */
#include "elfrw/base/rbuf.h"
#include "icf/verify/lines/program.h"
#include "icf/verify/lines/wide.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* May there be such numbers?  The operation is 0, its length, 4, and at least four bytes; or 5 and
 * at least three. */
static bool may_be_wide(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i + 3 < n; i++)
		if ((p[i] == 0 && p[i + 1] >= 5 && p[i + 1] < 0x80 &&
		     p[i + 2] == DW_LNE_set_discriminator) ||
		    (p[i] == DW_LNS_set_column && p[i + 1] >= 0x80 && p[i + 2] >= 0x80))
			return true;
	return false;
}

/* Narrows the ULEB number of N bytes at P to BITS bits. */
static void narrow(uint8_t *p, size_t n, unsigned bits)
{
	struct elfrw_rbuf r = elfrw_rbuf(p, n);
	uint64_t x = elfrw_rbuf_uleb(&r);
	if (r.bad || elfrw_rbuf_left(&r) || !(x >> bits))
		return;
	x = x * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
	for (size_t i = 0; i < n; i++, x >>= 7)
		p[i] = (uint8_t)((x & 0x7f) | (i + 1 < n ? 0x80 : 0));
}

/* Skips a ULEB number of R, whose bytes begin at BASE, and narrows it. */
static void narrow_next(struct elfrw_rbuf *r, uint8_t *base, unsigned bits)
{
	uint64_t from = elfrw_rbuf_off(r);
	elfrw_rbuf_uleb(r);
	if (elfrw_rbuf_ok(r))
		narrow(base + from, elfrw_rbuf_off(r) - from, bits);
}

/* Narrows the operations of the table whose N bytes behind its length are at P (DWARF 2 to 5,
 * section 6.2). */
static void walk(uint8_t *p, uint64_t n, bool wide)
{
	struct elfrw_rbuf r = elfrw_rbuf(p, n);
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
				narrow(p + at + 1, size - 1, 24);
		} else if (op == DW_LNS_fixed_advance_pc)
			elfrw_rbuf_u16(&r);
		else if (op == DW_LNS_set_column && h.length[op - 1] == 1)
			narrow_next(&r, p, 16);
		else
			for (unsigned i = h.length[op - 1]; i; i--)
				elfrw_rbuf_uleb(&r);
	}
}

struct elfrw_err *icf_vd_narrow(Elf_Data *data, uint8_t **copy)
{
	*copy = NULL;
	if (!data || !data->d_buf || !may_be_wide(data->d_buf, data->d_size))
		return NULL;
	uint8_t *p = malloc(data->d_size);
	if (!p)
		return &elfrw_err_nomem;
	memcpy(p, data->d_buf, data->d_size);
	struct elfrw_rbuf r = elfrw_rbuf(p, data->d_size);
	while (elfrw_rbuf_ok(&r) && elfrw_rbuf_left(&r) >= 4) {
		uint64_t size = elfrw_rbuf_u32(&r), at;
		bool wide = size == 0xffffffff;
		if (wide)
			size = elfrw_rbuf_u64(&r);
		at = elfrw_rbuf_off(&r);
		if (elfrw_rbuf_take(&r, size) && size)
			walk(p + at, size, wide);
	}
	data->d_buf = *copy = p;
	return NULL;
}
