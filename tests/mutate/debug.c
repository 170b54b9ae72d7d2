/* debug.c: places in debug information, call tables and .debug_icfold. */
#include "tests/mutate/mutate.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

/* --- debug information ------------------------------------------------- */

struct dies {
	struct ctx *c;
	const struct elfrw_section *info, *other;
	const char *base;    /* of .debug_info in libdw's memory */
	unsigned attr, form; /* attribute 0: the number of each DIE's abbreviation */
	unsigned skip;       /* bytes of the value to pass over */
	unsigned size;
	Dwarf_Die *die; /* whose attribute it is */
	int (*each)(Dwarf_Attribute *attr, void *arg);
};

/* Has the DIE ranges? If its list is empty, a changed offset often names another empty list, which
 * is no difference. */
static bool has_ranges(Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi;
	return dwarf_ranges(die, 0, &base, &lo, &hi) > 0;
}

static int on_attr(Dwarf_Attribute *attr, void *arg)
{
	struct dies *d = arg;
	if (attr->code != d->attr || (d->form && attr->form != d->form) ||
	    (d->attr == DW_AT_ranges && !has_ranges(d->die)))
		return DWARF_CB_OK;
	uint64_t off = (uint64_t)((const char *)attr->valp - d->base);
	if (d->other) {
		/* The value is an offset in that section. */
		Dwarf_Word v;
		if (dwarf_formudata(attr, &v) == 0 && v + d->skip + 1 < d->other->hdr.sh_size &&
		    d->other->data[v])
			mutate_add(d->c, d->other->data + v + d->skip, 1);
	} else if (off + d->skip + d->size <= d->info->hdr.sh_size &&
		   attr->form != DW_FORM_implicit_const && attr->form != DW_FORM_flag_present)
		mutate_add(d->c, d->info->data + off + d->skip, d->size);
	return DWARF_CB_OK;
}

static void walk(struct dies *d, Dwarf_Die *die, int depth)
{
	do {
		Dwarf_Die child;
		d->die = die;
		if (d->attr)
			dwarf_getattrs(die, d->each, d, 0);
		else
			mutate_add(d->c, d->info->data + ((const char *)die->addr - d->base), 1);
		if (depth < 100 && dwarf_child(die, &child) == 0)
			walk(d, &child, depth + 1);
	} while (dwarf_siblingof(die, die) == 0);
}

static void each_attr(struct dies d)
{
	int fd = open(d.c->out.path, O_RDONLY);
	d.info = mutate_section(d.c, ".debug_info");
	Dwarf *dw = d.info ? dwarf_begin(fd, DWARF_C_READ) : NULL;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	while (dw && dwarf_get_units(dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		d.base = (const char *)die.addr - dwarf_dieoffset(&die);
		const char *name = dwarf_diename(&die);
		if (!name || strcmp(name, "<folded functions>") != 0)
			walk(&d, &die, 0);
	}
	if (dw)
		dwarf_end(dw);
}

static void each_die(struct ctx *c, unsigned attr, unsigned form, const char *other, unsigned skip,
		     unsigned size)
{
	struct dies d = { .c = c,
			  .other = other ? mutate_section(c, other) : NULL,
			  .attr = attr,
			  .form = form,
			  .skip = skip,
			  .size = size,
			  .each = on_attr };
	if (!other || d.other)
		each_attr(d);
}

void mutate_attrs(struct ctx *c)
{
	each_die(c, (unsigned)c->arg & 0xffff, (unsigned)(c->arg >> 16) & 0xffff, NULL, 0,
		 (unsigned)(c->arg >> 32));
}
void mutate_numbers(struct ctx *c)
{
	each_die(c, 0, 0, NULL, 0, 1);
}
void mutate_expressions(struct ctx *c)
{
	each_die(c, DW_AT_location, DW_FORM_exprloc, NULL, 2, 1);
}
/* The register in DW_OP_entry_value, the last byte of its block. */
void mutate_entry_values(struct ctx *c)
{
	size_t n = 0;
	each_die(c, DW_AT_call_value, DW_FORM_exprloc, NULL, 3, 1);
	for (size_t i = 0; i < c->place.len; i++) {
		const uint8_t *p = c->out.base + c->place.data[i].off;
		if (p[-2] == DW_OP_entry_value && p[-1] == 1)
			c->place.data[n++] = c->place.data[i];
	}
	c->place.len = n;
}
void mutate_pointed_at(struct ctx *c)
{
	each_die(c, (unsigned)c->arg & 0xffff, (unsigned)(c->arg >> 16) & 0xffff, c->name,
		 (unsigned)(c->arg >> 32), 1);
}

/* Entries of .debug_loc that cover no code, and are in code: the start, or the first operation. */
static int on_empty_entry(Dwarf_Attribute *attr, void *arg)
{
	struct dies *d = arg;
	Dwarf_Word at;
	Dwarf_Addr base, lo, hi;
	Dwarf_Op *op;
	size_t n;
	if (attr->code != DW_AT_location || attr->form != DW_FORM_sec_offset ||
	    dwarf_formudata(attr, &at) || at >= d->other->hdr.sh_size)
		return DWARF_CB_OK;
	struct elfrw_rbuf r = elfrw_rbuf(d->other->data, d->other->hdr.sh_size);
	elfrw_rbuf_seek(&r, at);
	for (ptrdiff_t off = 0;
	     (off = dwarf_getlocations(attr, off, &base, &lo, &hi, &op, &n)) > 0;) {
		const uint8_t *p = r.pos;
		while (elfrw_rbuf_left(&r) > 16 && elfrw_get64(p) == UINT64_MAX)
			elfrw_rbuf_skip(&r, 16), p = r.pos;
		elfrw_rbuf_skip(&r, 16);
		elfrw_rbuf_skip(&r, elfrw_rbuf_u16(&r));
		if (elfrw_rbuf_ok(&r) && lo == hi && mutate_in_code(&d->c->out, lo))
			mutate_add(d->c, d->skip ? p + d->skip : p, d->size);
	}
	return DWARF_CB_OK;
}

void mutate_empty_entries(struct ctx *c)
{
	struct dies d = { .c = c,
			  .other = mutate_section(c, ".debug_loc"),
			  .attr = DW_AT_location,
			  .skip = c->arg ? 18 : 0,
			  .size = c->arg ? 1 : 8,
			  .each = on_empty_entry };
	if (d.other)
		each_attr(d);
}

/* All bytes of the headers of the input's units, except for the place of the abbreviations. */
void mutate_unit_headers(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name),
				   *in = elfrw_image_section(&c->in, c->name);
	if (!s || !in || s->hdr.sh_flags & SHF_COMPRESSED)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	bool types = strcmp(c->name, ".debug_info") != 0;
	while (elfrw_rbuf_left(&r) > 40 && elfrw_rbuf_off(&r) < in->hdr.sh_size) {
		const uint8_t *p = r.pos;
		uint64_t length = elfrw_rbuf_u32(&r);
		unsigned offset = length == 0xffffffff ? 8 : 4, start = offset == 8 ? 12 : 4;
		if (offset == 8)
			length = elfrw_rbuf_u64(&r);
		unsigned version = elfrw_get16(p + start);
		bool type = version >= 5 ? p[start + 2] == DW_UT_type : types;
		unsigned place = start + (version >= 5 ? 4 : 2),
			 size = place + offset + (version < 5) + (type ? 8 + offset : 0);
		elfrw_rbuf_skip(&r, length);
		for (unsigned k = 0; k < size && elfrw_rbuf_ok(&r); k++)
			if (k < place || k >= place + offset)
				mutate_add(c, p + k, 1);
		if (!elfrw_rbuf_ok(&r))
			return;
	}
}

/* Line programs: places of one kind of operation. */

static void line_table(struct ctx *c, const struct elfrw_section *s, struct elfrw_rbuf *r)
{
	const uint8_t *start = r->pos;
	uint64_t length = elfrw_rbuf_u32(r);
	if (length == 0xffffffff || length > elfrw_rbuf_left(r)) {
		r->pos = r->end;
		return;
	}
	const uint8_t *end = r->pos + length;
	unsigned version = elfrw_rbuf_u16(r);
	if (version >= 5)
		elfrw_rbuf_skip(r, 2);
	uint64_t header = elfrw_rbuf_u32(r);
	const uint8_t *program = r->pos + header;
	for (const uint8_t *p = r->pos; c->arg == LINE_HEADER && p < program && p < end; p++)
		mutate_add(c, p, 1);
	elfrw_rbuf_skip(r, version >= 4 ? 5 : 4);
	unsigned opcode_base = elfrw_rbuf_u8(r);
	uint8_t operands[256] = { 0 };
	for (unsigned i = 1; i < opcode_base; i++)
		operands[i] = elfrw_rbuf_u8(r);
	(void)start, (void)s;
	r->pos = program;
	while (r->pos < end && elfrw_rbuf_ok(r)) {
		const uint8_t *at = r->pos;
		unsigned op = elfrw_rbuf_u8(r);
		if (op >= opcode_base) {
			if (c->arg == LINE_SPECIAL)
				mutate_add(c, at, 1);
			continue;
		}
		if (op == 0) {
			uint64_t n = elfrw_rbuf_uleb(r);
			unsigned sub = n ? r->pos[0] : 0;
			if (c->arg == LINE_LENGTH)
				mutate_add(c, at + 1, 1);
			if (c->arg == LINE_EXTENDED + (long)sub && n > 1)
				mutate_add(c, r->pos + 1, sub == DW_LNE_set_address ? 8 : 1);
			else if (c->arg == LINE_EXTENDED + (long)sub)
				mutate_add(c, r->pos, 1);
			elfrw_rbuf_skip(r, n);
			continue;
		}
		if (c->arg == (long)op)
			mutate_add(c, operands[op] ? r->pos : at, 1);
		if (op == DW_LNS_fixed_advance_pc)
			elfrw_rbuf_skip(r, 2);
		else
			for (unsigned k = 0; k < operands[op]; k++)
				elfrw_rbuf_uleb(r);
	}
	r->pos = end;
}

void mutate_line_ops(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_line");
	if (!s)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	while (elfrw_rbuf_left(&r) > 10)
		line_table(c, s, &r);
}

/* The last table: that of the artificial unit. */
void mutate_artificial_ops(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_line");
	if (!s || !c->has_note || c->note.artificial_unit == UINT64_MAX)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	while (elfrw_rbuf_left(&r) > 10) {
		c->place.len = 0;
		line_table(c, s, &r);
	}
}

void mutate_aranges(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_aranges");
	if (!s)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	while (elfrw_rbuf_left(&r) > 16) {
		/* The rest of the header, and padding to 16 bytes. */
		uint64_t n = elfrw_rbuf_u32(&r), head = 12;
		if (n == 0xffffffff) {
			n = elfrw_rbuf_u64(&r);
			head = 20;
		}
		if (n < head || n > elfrw_rbuf_left(&r))
			return;
		const uint8_t *end = r.pos + n;
		elfrw_rbuf_skip(&r, head);
		for (const uint8_t *p = r.pos; p + 32 <= end; p += 16)
			if (elfrw_get64(p + 8))
				mutate_add(c, p + (c->arg ? 8 : 0), 8);
		elfrw_rbuf_skip(&r, n - head);
	}
}

void mutate_addresses(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_addr");
	for (uint64_t k = 8; s && k + 8 <= s->hdr.sh_size; k += 8)
		if (mutate_in_code(&c->out, elfrw_get64(s->data + k)))
			mutate_add(c, s->data + k, 8);
}

void mutate_call_table(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	if (!s)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	elfrw_rbuf_skip(&r, strcmp(c->name, ".debug_dcall") == 0 ? 10 : 6);
	/* Only numbers of this many bytes are exchanged for each other. */
	unsigned same = 0;
	while (elfrw_rbuf_left(&r) > 8) {
		const uint8_t *at = r.pos;
		uint64_t site = elfrw_rbuf_u64(&r);
		const uint8_t *number = r.pos;
		elfrw_rbuf_uleb(&r);
		unsigned size = (unsigned)(r.pos - number);
		if (!same && site)
			same = size;
		if (c->arg == 3 && site && size == same)
			mutate_add(c, number, size);
		else if (c->arg == 4 && site && size == same)
			mutate_add(c, at, 8 + size);
		if (c->arg == 0 && site)
			mutate_add(c, at, 8);
		else if (c->arg == 1 && site)
			mutate_add(c, number, 1);
		else if (c->arg == 2 && !site)
			mutate_add(c, number, 1);
	}
}

/* Words of a part of the index: 0 units, 1 type units, 3 symbols. */
void mutate_gdb_part(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".gdb_index");
	if (!s || s->hdr.sh_size < 24)
		return;
	for (uint64_t k = elfrw_get32(s->data + 4 + 4 * c->arg);
	     k + 4 <= elfrw_get32(s->data + 8 + 4 * c->arg); k += 4)
		if (elfrw_get32(s->data + k))
			mutate_add(c, s->data + k, 4);
}

/* Behind the symbols: which units have them, and their names. */
void mutate_gdb_pool(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".gdb_index");
	uint64_t pool = s && s->hdr.sh_size >= 28
				? elfrw_get32(s->data + (elfrw_get32(s->data) >= 9 ? 24 : 20))
				: 0;
	for (uint64_t k = pool; pool && k < s->hdr.sh_size; k += 7)
		mutate_add(c, s->data + k, 1);
}

void mutate_gdb_index(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".gdb_index");
	if (!s || s->hdr.sh_size < 24)
		return;
	for (uint64_t k = elfrw_get32(s->data + 12); k + 20 <= elfrw_get32(s->data + 16); k += 20)
		mutate_add(c, s->data + k + c->arg, c->arg == 16 ? 4 : 8);
}

/* --- .debug_icfold ----------------------------------------------------- */

void mutate_note_part(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_icfold");
	if (!s || s->hdr.sh_size < NOTE_HEADER_SIZE || s->hdr.sh_flags & SHF_COMPRESSED ||
	    (unsigned)c->arg >= dwr_note_parts(c->note.version))
		return;
	uint64_t off = elfrw_get64(s->data + NOTE_FIXED + 24 * c->arg),
		 size = elfrw_get64(s->data + NOTE_FIXED + 24 * c->arg + 8);
	for (uint64_t i = 0; i < size; i++)
		if (c->arg != NOTE_STRINGS || s->data[off + i])
			mutate_add(c, s->data + off + i, 1);
}

/* The number of sequences of a folded function; it stands before the offset of the first one. */
void mutate_note_sequences(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_icfold");
	if (!s || s->hdr.sh_size < NOTE_HEADER_SIZE || s->hdr.sh_flags & SHF_COMPRESSED)
		return;
	const uint8_t *p = s->data + elfrw_get64(s->data + NOTE_FIXED + 24 * NOTE_GROUPS);
	uint64_t size = elfrw_get64(s->data + NOTE_FIXED + 24 * NOTE_GROUPS + 8);
	for (size_t i = 0; i < c->note.n_members; i++) {
		const struct dwr_note_rows *rows = &c->note.member[i].rows;
		uint8_t text[16] = { (uint8_t)rows->n_seqs };
		size_t n = 1;
		for (uint64_t v = rows->seq; v; v >>= 7)
			text[n++] = (uint8_t)((v & 0x7f) | (v >> 7 ? 0x80 : 0));
		const uint8_t *at = rows->status == DWR_NOTE_ROWS_OWN && rows->n_seqs < 0x7f
					    ? memmem(p, size, text, n)
					    : NULL;
		if (at)
			mutate_add(c, at, 1);
	}
}

/* The operations of the last line table, which is the artificial unit's; or NULL. */
static const uint8_t *own_program(struct ctx *c, const uint8_t **end)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_line");
	const uint8_t *ret = NULL;
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->data : NULL, s ? s->hdr.sh_size : 0);
	while (elfrw_rbuf_left(&r) > 10) {
		const uint64_t length = elfrw_rbuf_u32(&r);
		struct elfrw_rbuf t = r;
		elfrw_rbuf_skip(&r, length);
		if (elfrw_rbuf_u16(&t) >= 5)
			elfrw_rbuf_skip(&t, 2);
		const uint64_t header = elfrw_rbuf_u32(&t);
		elfrw_rbuf_skip(&t, header);
		ret = elfrw_rbuf_ok(&r) && elfrw_rbuf_ok(&t) ? t.pos : NULL;
		*end = r.pos;
	}
	return ret;
}

/* The number and the place of the sequences of M, in the text of the groups; NULL: it has no rows
 * of its own, or no such place is found. */
static const uint8_t *rows_of(const struct elfrw_section *s, const struct dwr_icfold_member *m,
			      unsigned *size)
{
	const uint8_t *p = s->data + elfrw_get64(s->data + NOTE_FIXED + 24 * NOTE_GROUPS);
	uint8_t text[16] = { (uint8_t)m->rows.n_seqs };
	unsigned n = 1;
	for (uint64_t v = m->rows.seq; v; v >>= 7)
		text[n++] = (uint8_t)((v & 0x7f) | (v >> 7 ? 0x80 : 0));
	*size = n;
	return m->rows.status == DWR_NOTE_ROWS_OWN && m->rows.n_seqs < 0x7f
		       ? memmem(p, elfrw_get64(s->data + NOTE_FIXED + 24 * NOTE_GROUPS + 8), text,
				n)
		       : NULL;
}

/* Pairs of members of one group, with different rows of their own, which they exchange. */
void mutate_note_rows(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_icfold");
	const uint8_t *end, *own = own_program(c, &end);
	unsigned size, other, all = 0;
	if (!s || !own || s->hdr.sh_size < NOTE_HEADER_SIZE || s->hdr.sh_flags & SHF_COMPRESSED)
		return;
	for (size_t i = 0; i + 1 < c->note.n_members; i++) {
		const struct dwr_icfold_member *a = &c->note.member[i], *b = a + 1;
		const uint8_t *p = rows_of(s, a, &size), *q = rows_of(s, b, &other);
		if (a->group != b->group || !p || !q || size != other || (all && size != all) ||
		    a->rows.seq + 48 > (uint64_t)(end - own) ||
		    b->rows.seq + 48 > (uint64_t)(end - own) ||
		    memcmp(own + a->rows.seq, own + b->rows.seq, 48) == 0)
			continue;
		all = size;
		mutate_add(c, p, size);
		mutate_add(c, q, size);
		i++;
	}
}

/* Fields of the header. The trap byte is the range of the artificial unit; without such a unit it
 * means nothing. */
void mutate_note_header(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_icfold");
	bool trap = (c->arg & 0xff) == NOTE_TRAP_BYTE;
	if (s && !(s->hdr.sh_flags & SHF_COMPRESSED) &&
	    !(trap && c->note.artificial_unit == UINT64_MAX))
		mutate_add(c, s->data + (c->arg & 0xff), (unsigned)(c->arg >> 8));
}
