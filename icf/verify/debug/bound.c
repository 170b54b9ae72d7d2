/* bound.c: files whose comparison would take the square of their size in time, or hundreds of times
 * their size in memory.
 *
 * No compiler or linker writes such files.  libdw makes a row of a hundred bytes for each byte of a
 * line program.  It reads a table of abbreviations for every unit that shares it.  Names of symbols
 * that are ends of each other are compared letter by letter.  All of these are counted before the
 * comparison begins.  A file is refused far above the values of large programs: a row for each
 * eight bytes of the file (real files: for fifty or more), and tables and names of 64 times its
 * size (real files: once, and twice).
 *
 * Cost: a look at each unit's header and each symbol.  Line programs are walked only if they have
 * more bytes than rows are allowed. */
#include "icf/verify/debug/debug.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/verify/lines/program.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define FEW_ROWS      (2u << 20)
#define FEW_BYTES     (UINT64_C(1) << 30)
#define TIMES         64
#define BYTES_PER_ROW 8

typedef VEC(uint64_t) numbers;

/* The size of the sections, in whatever file they are. */
static uint64_t size_of(const struct elfrw_image *img)
{
	uint64_t n = img->size;
	for (uint32_t i = 1; i < img->n_sections && img->pair; i++)
		n += img->section[i].data && img->section[i].hdr.sh_type != SHT_NOBITS
			     ? img->section[i].hdr.sh_size
			     : 0;
	return n;
}

static uint64_t most_of(const struct elfrw_image *img)
{
	uint64_t n = size_of(img) * TIMES;
	return n > FEW_BYTES ? n : FEW_BYTES;
}

/* The rows of the table in R (DWARF 2 to 5, section 6.2), as far as it can be read. */
static uint64_t count_rows(struct elfrw_rbuf r, bool wide)
{
	struct icf_vline_program p;
	uint64_t rows = 0;
	if (!icf_vline_program(&r, wide, &p))
		return 0;
	while (elfrw_rbuf_ok(&r) && elfrw_rbuf_left(&r)) {
		unsigned op = elfrw_rbuf_u8(&r);
		if (op >= p.base || op == DW_LNS_copy) {
			rows++;
		} else if (!op) {
			uint64_t n = elfrw_rbuf_uleb(&r);
			const uint8_t *ext = elfrw_rbuf_take(&r, n);
			rows += ext && n && *ext == DW_LNE_end_sequence;
		} else if (op == DW_LNS_fixed_advance_pc) {
			elfrw_rbuf_u16(&r);
		} else
			for (unsigned i = p.length[op - 1]; i; i--)
				elfrw_rbuf_uleb(&r);
	}
	return rows;
}

static struct elfrw_err *bound_lines(const struct icf_vdwarf *f, const char *path, uint64_t size)
{
	const Elf_Data *data = icf_vd_section(f, ".debug_line");
	struct elfrw_rbuf r = elfrw_rbuf(data ? data->d_buf : NULL, data ? data->d_size : 0);
	uint64_t most = size / BYTES_PER_ROW > FEW_ROWS ? size / BYTES_PER_ROW : FEW_ROWS;
	while (elfrw_rbuf_ok(&r) && elfrw_rbuf_left(&r) > most) {
		uint64_t at = elfrw_rbuf_off(&r), n = elfrw_rbuf_u32(&r);
		bool wide = n == 0xffffffff;
		if (wide)
			n = elfrw_rbuf_u64(&r);
		const uint8_t *p = elfrw_rbuf_take(&r, n);
		uint64_t rows = p && n > most ? count_rows(elfrw_rbuf(p, n), wide) : 0;
		if (rows > most)
			return elfrw_error(
				"%s: %llu rows in one line table are too many to compare (.debug_line, 0x%llx)",
				path, ICF_VX(rows), ICF_VX(at));
	}
	return NULL;
}

/* The size of the table of abbreviations at R, counted up to MOST (DWARF 5, section 7.5.3). */
static uint64_t table_size(struct elfrw_rbuf r, uint64_t most)
{
	uint64_t from = elfrw_rbuf_off(&r);
	while (elfrw_rbuf_ok(&r) && elfrw_rbuf_off(&r) - from <= most && elfrw_rbuf_uleb(&r)) {
		elfrw_rbuf_uleb(&r);
		elfrw_rbuf_u8(&r);
		for (;;) {
			uint64_t name = elfrw_rbuf_uleb(&r), form = elfrw_rbuf_uleb(&r);
			if (form == DW_FORM_implicit_const)
				elfrw_rbuf_sleb(&r);
			if (!elfrw_rbuf_ok(&r) || (!name && !form))
				break;
		}
	}
	return elfrw_rbuf_off(&r) - from;
}

/* Collects the places of the abbreviations of the units of section NAME. */
static bool collect(const struct icf_vdwarf *f, const char *name, numbers *ret)
{
	const Elf_Data *data = icf_vd_section(f, name);
	struct elfrw_rbuf r = elfrw_rbuf(data ? data->d_buf : NULL, data ? data->d_size : 0);
	while (elfrw_rbuf_ok(&r) && elfrw_rbuf_left(&r)) {
		uint64_t n = elfrw_rbuf_u32(&r);
		bool wide = n == 0xffffffff;
		if (wide)
			n = elfrw_rbuf_u64(&r);
		const uint8_t *p = elfrw_rbuf_take(&r, n);
		struct elfrw_rbuf u = elfrw_rbuf(p, p ? n : 0);
		if (elfrw_rbuf_u16(&u) >= 5)
			elfrw_rbuf_u16(&u);
		uint64_t off = wide ? elfrw_rbuf_u64(&u) : elfrw_rbuf_u32(&u),
			 *slot = elfrw_rbuf_ok(&u) ? VEC_PUSH(ret) : &off;
		if (!slot)
			return false;
		*slot = off;
	}
	return true;
}

static struct elfrw_err *bound_abbrevs(const struct icf_vdwarf *f, const char *path, uint64_t most)
{
	const Elf_Data *data = icf_vd_section(f, ".debug_abbrev");
	struct elfrw_rbuf all = elfrw_rbuf(data ? data->d_buf : NULL, data ? data->d_size : 0);
	numbers at = { 0 };
	struct elfrw_err *err = collect(f, ".debug_info", &at) && collect(f, ".debug_types", &at)
					? NULL
					: &elfrw_err_nomem;
	if (at.len)
		qsort(at.data, at.len, sizeof *at.data, elfrw_u64_order);
	uint64_t total = 0;
	for (size_t i = 0, k; i < at.len && !err; i = k) {
		for (k = i; k < at.len && at.data[k] == at.data[i]; k++)
			;
		struct elfrw_rbuf r = all;
		elfrw_rbuf_seek(&r, at.data[i]);
		uint64_t n = table_size(r, (most - total) / (k - i));
		if (n > (most - total) / (k - i))
			err = elfrw_error(
				"%s: tables of abbreviations that are too large for the units that share them (.debug_abbrev, 0x%llx)",
				path, ICF_VX(at.data[i]));
		total += n * (k - i);
	}
	VEC_FREE(&at);
	return err;
}

/* The N-th section is a table of symbols. */
static struct elfrw_err *bound_names(const struct elfrw_image *img, uint32_t n, uint64_t most)
{
	const struct elfrw_section *s = &img->section[n],
				   *t = s->hdr.sh_link < img->n_sections
						? &img->section[s->hdr.sh_link]
						: NULL;
	numbers at = { 0 };
	if (!s->data || !t || !t->data)
		return NULL;
	for (struct elfrw_symbols it = elfrw_symbols(s, 0); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		uint64_t *slot = sym.st_name < t->hdr.sh_size ? VEC_PUSH(&at) : NULL;
		if (slot)
			*slot = sym.st_name;
		else if (sym.st_name < t->hdr.sh_size) {
			VEC_FREE(&at);
			return &elfrw_err_nomem;
		}
	}
	if (!elfrw_sort_numbers(at.data, at.len, sizeof *at.data, 0, t->hdr.sh_size,
				elfrw_u64_order)) {
		VEC_FREE(&at);
		return &elfrw_err_nomem;
	}
	uint64_t total = 0, end = 0; /* the next NUL */
	for (size_t i = 0; i < at.len; i++) {
		if (at.data[i] >= end) {
			const uint8_t *nul =
				memchr(t->data + at.data[i], 0, t->hdr.sh_size - at.data[i]);
			end = nul ? (uint64_t)(nul - t->data) : t->hdr.sh_size;
		}
		total += end - at.data[i];
	}
	VEC_FREE(&at);
	if (total <= most)
		return NULL;
	return elfrw_error(
		"%s: names of symbols that are too long together, being ends of each other, to compare (%s)",
		img->path, s->name);
}

struct elfrw_err *icf_v_bound(const struct elfrw_image *img)
{
	uint64_t most = most_of(img);
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (img->section[i].hdr.sh_type == SHT_SYMTAB ||
		    img->section[i].hdr.sh_type == SHT_DYNSYM)
			ELFRW_TRY(bound_names(img, i, most));
	return NULL;
}

struct elfrw_err *icf_vd_bound(const struct icf_vdwarf *f, const struct elfrw_image *img)
{
	ELFRW_TRY(bound_lines(f, img->path, size_of(img)));
	return bound_abbrevs(f, img->path, most_of(img));
}
