/* header.c: the bytes before the rows of a line table; tables that no unit refers to. */
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/state.h"
#include <dwarf.h>
#include <string.h>

/* The header of the table at OFF: version to the end of the file names (DWARF 5, section 6.2.4);
 * empty: no valid header. */
static struct elfrw_rbuf header_at(const Elf_Data *data, uint64_t off)
{
	struct elfrw_rbuf none = elfrw_rbuf(NULL, 0),
			  r = data ? elfrw_rbuf(data->d_buf, data->d_size) : none;
	elfrw_rbuf_seek(&r, off);
	bool wide = elfrw_rbuf_u32(&r) == 0xffffffff;
	if (wide)
		elfrw_rbuf_u64(&r);
	const uint8_t *start = r.pos;
	if (elfrw_rbuf_u16(&r) >= 5)
		elfrw_rbuf_u16(&r);
	uint64_t length = wide ? elfrw_rbuf_u64(&r) : elfrw_rbuf_u32(&r);
	const uint8_t *p = elfrw_rbuf_take(&r, length);
	return p && elfrw_rbuf_ok(&r) ? elfrw_rbuf(start, (size_t)(p + length - start)) : none;
}

static bool same_bytes(struct elfrw_rbuf p, struct elfrw_rbuf q)
{
	size_t n = elfrw_rbuf_left(&p);
	return n == elfrw_rbuf_left(&q) && (!n || memcmp(p.pos, q.pos, n) == 0);
}

/* Skips one table of R, and zeros before it, which linkers leave; false: there is no further
 * table. */
static bool next_table(struct elfrw_rbuf *r, uint64_t *off)
{
	uint64_t size = 0;
	bool wide = false;
	while (!size && elfrw_rbuf_ok(r) && elfrw_rbuf_left(r) >= 4) {
		*off = elfrw_rbuf_off(r);
		size = elfrw_rbuf_u32(r);
		wide = size == 0xffffffff;
		if (wide)
			size = elfrw_rbuf_u64(r);
	}
	elfrw_rbuf_skip(r, size);
	return size && elfrw_rbuf_ok(r);
}

/* Checks directories, files with their checksums, and the meaning of opcodes: rows show only the
 * files that they name. */
void icf_vd_line_header(struct icf_vdebug *d, uint64_t cu, Dwarf_Die *a, Dwarf_Die *b)
{
	Dwarf_Attribute x, y;
	Dwarf_Word from, to;
	if (!dwarf_attr(a, DW_AT_stmt_list, &x) || dwarf_formudata(&x, &from))
		return;
	if (!dwarf_attr(b, DW_AT_stmt_list, &y) || dwarf_formudata(&y, &to))
		to = UINT64_MAX;
	struct elfrw_rbuf p = header_at(icf_vd_section(&d->in, ".debug_line"), from),
			  q = header_at(icf_vd_section(&d->out, ".debug_line"), to);
	d->log->checked[ICF_VC_LINE]++;
	if (!same_bytes(p, q))
		icf_vlog_bad(
			d->log, ICF_VC_LINE,
			"header: unit 0x%llx: expected the same directories, files and opcodes, found others",
			ICF_VX(cu));
}

/* Checks tables that no unit refers to, as assemblers make them.  Readers that start at the
 * beginning of the section (dwarf_next_lines(), eu-readelf, objdump) find them.  The N-th table of
 * IN is the N-th of OUT, however long its rows became.  Each is examined once. */
void icf_vd_line_headers(struct icf_vdebug *d)
{
	const Elf_Data *in = icf_vd_section(&d->in, ".debug_line"),
		       *out = icf_vd_section(&d->out, ".debug_line");
	struct elfrw_rbuf a = elfrw_rbuf(in ? in->d_buf : NULL, in ? in->d_size : 0),
			  b = elfrw_rbuf(out ? out->d_buf : NULL, out ? out->d_size : 0);
	uint64_t x, y;
	while (next_table(&a, &x)) {
		bool there = next_table(&b, &y);
		struct elfrw_rbuf p = header_at(in, x),
				  q = there ? header_at(out, y) : elfrw_rbuf(NULL, 0);
		/* Not a table: the bytes between two tables are not only zeros. */
		if (!elfrw_rbuf_left(&p))
			return;
		d->log->checked[ICF_VC_LINE]++;
		if (same_bytes(p, q))
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LINE,
			"header: line table at 0x%llx: expected the same directories, files and opcodes, found %s",
			ICF_VX(x), there ? "others" : "no table");
		return;
	}
}
