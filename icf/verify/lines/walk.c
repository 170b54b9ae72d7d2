/* walk.c: see walk.h.
 *
 * Only what compilers make is walked here: each sequence states its address once, before its first
 * row, and has no other operations than those of DWARF 5, section 6.2.5.  Any other sequence is
 * left to libdw.  Names are made as libdw makes them. */
#include "icf/verify/lines/walk.h"
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/program.h"
#include "icf/verify/lines/wide.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool icf_vline_open(const Elf_Data *data, uint64_t off, struct icf_vline_ops *t)
{
	struct elfrw_rbuf r = elfrw_rbuf(data ? data->d_buf : NULL, data ? data->d_size : 0);
	elfrw_rbuf_seek(&r, off);
	uint64_t size = elfrw_rbuf_u32(&r);
	bool wide = size == 0xffffffff;
	if (wide)
		size = elfrw_rbuf_u64(&r);
	const uint8_t *unit = elfrw_rbuf_take(&r, size);
	struct icf_vline_program h;
	if (!unit)
		return false;
	t->r = elfrw_rbuf(unit, size);
	if (!icf_vline_program(&t->r, wide, &h) || !elfrw_rbuf_ok(&t->r) || h.version < 2 ||
	    h.version > 5 || !h.base || h.base > sizeof icf_vline_lengths + 1 ||
	    memcmp(h.length, icf_vline_lengths, h.base - 1) != 0)
		return false;
	/* Before the lengths: minimum_instruction_length, from version 4 on
	 * maximum_operations_per_instruction, default_is_stmt, line_base, line_range,
	 * opcode_base. */
	const uint8_t *p = h.length - 4;
	t->step = p[h.version >= 4 ? -2 : -1];
	t->stmt = p[0];
	t->line_base = (int8_t)p[1];
	t->range = p[2];
	t->base = h.base;
	return t->range && (h.version < 4 || p[-1] == 1);
}

struct icf_vline_walk icf_vline_begin(struct icf_vline_ops *t)
{
	return (struct icf_vline_walk){
		.t = t, .s = { .file = 1, .line = 1, .flags = t->stmt ? ICF_VROW_STMT : 0 }
	};
}

/* A number of an operation, which libdw has as 32 bits; false: it has more. */
static bool number(struct icf_vline_walk *w, uint32_t *ret)
{
	uint64_t n = elfrw_rbuf_uleb(&w->t->r);
	*ret = (uint32_t)n;
	return n <= UINT32_MAX;
}

/* Takes an extended operation, behind its 0 byte; false: it is not one of a usual sequence. */
static bool extended(struct icf_vline_walk *w)
{
	uint64_t n = elfrw_rbuf_uleb(&w->t->r);
	const uint8_t *ext = elfrw_rbuf_take(&w->t->r, n);
	if (!ext || !n)
		return false;
	struct elfrw_rbuf operand = elfrw_rbuf(ext + 1, n - 1);
	switch (*ext) {
	case DW_LNE_end_sequence: w->end = true; break;
	case DW_LNE_set_discriminator:
		w->s.disc = icf_vd_narrowed(elfrw_rbuf_uleb(&operand), ICF_VD_DISCRIMINATOR_BITS);
		break;
	case DW_LNE_set_address:
		if (w->at && !w->any)
			return false;
		w->at = operand.pos;
		w->addr = elfrw_rbuf_u64(&operand);
		break;
	default: return false;
	}
	return elfrw_rbuf_ok(&operand) && !elfrw_rbuf_left(&operand);
}

/* Takes the operands of the standard opcode OP; false: it is not known, or goes too far. */
static bool standard(struct icf_vline_walk *w, unsigned op)
{
	const struct icf_vline_ops *t = w->t;
	uint32_t n;
	switch (op) {
	case DW_LNS_copy: return w->row = true;
	case DW_LNS_advance_pc:
		if (!number(w, &n))
			return false;
		w->addr += (uint64_t)n * t->step;
		return w->at;
	case DW_LNS_const_add_pc:
		w->addr += (uint64_t)((255 - t->base) / t->range * t->step);
		return w->at;
	case DW_LNS_fixed_advance_pc: w->addr += elfrw_rbuf_u16(&w->t->r); return w->at;
	case DW_LNS_advance_line: w->s.line += (uint32_t)elfrw_rbuf_sleb(&w->t->r); return true;
	case DW_LNS_set_file: return number(w, &w->s.file);
	case DW_LNS_set_column:
		w->s.col = icf_vd_narrowed(elfrw_rbuf_uleb(&w->t->r), ICF_VD_COLUMN_BITS);
		return true;
	case DW_LNS_set_isa: return number(w, &w->s.isa);
	case DW_LNS_negate_stmt: w->s.flags ^= ICF_VROW_STMT; return true;
	case DW_LNS_set_basic_block: w->s.flags |= ICF_VROW_BLOCK; return true;
	case DW_LNS_set_prologue_end: w->s.flags |= ICF_VROW_PROLOGUE; return true;
	case DW_LNS_set_epilogue_begin: w->s.flags |= ICF_VROW_EPILOGUE; return true;
	default: return false;
	}
}

bool icf_vline_next(struct icf_vline_walk *w)
{
	struct icf_vline_ops *t = w->t;
	if (w->row) {
		w->s.flags &= ICF_VROW_STMT;
		w->s.disc = 0;
		w->row = false;
	}
	uint64_t from = w->addr;
	while (!w->row && !w->end) {
		unsigned op = elfrw_rbuf_u8(&t->r);
		if (!elfrw_rbuf_ok(&t->r))
			return false;
		if (op >= t->base) {
			op -= t->base;
			w->addr += op / t->range * t->step;
			w->s.line += (uint32_t)(t->line_base + (int)(op % t->range));
			w->row = true;
		} else if (op ? !standard(w, op) : !extended(w))
			return false;
	}
	return elfrw_rbuf_ok(&t->r) && w->at && (w->any || w->addr >= from);
}

/* The name of file N as libdw makes it: with its directory. */
static char *make_name(const struct icf_vline_names *f, uint32_t n)
{
	const struct icf_vline_header *h = &f->h;
	const bool old = h->version < 5;
	char *ret = NULL;
	if (old && !n)
		return strdup("???");
	if (n - old >= h->file.len)
		return strdup("??");
	const struct icf_vline_file *x = &h->file.data[n - old];
	const char *dir = old && !x->dir              ? f->d->comp_dir
			  : x->dir - old < h->dir.len ? h->dir.data[x->dir - old]
						      : NULL;
	if (x->name[0] == '/' || !dir || !*dir)
		return strdup(x->name);
	return asprintf(&ret, "%s/%s", dir, x->name) < 0 ? NULL : ret;
}

const char *icf_vline_name(struct icf_vline_names *f, uint32_t n)
{
	if (!f->read) {
		f->read = true;
		if (!icf_vline_header(&f->texts, f->at, &f->h))
			f->h.file.len = 0;
		f->whole = calloc(f->h.file.len + 2, sizeof *f->whole);
	}
	const size_t i = n <= f->h.file.len ? n : f->h.file.len + 1;
	if (!f->whole || f->whole[i])
		return f->whole ? f->whole[i] : NULL;
	char *name = make_name(f, n);
	f->whole[i] = name ? icf_vrows_whole(f->d, name) : NULL;
	free(name);
	return f->whole[i];
}

void icf_vline_names_deinit(struct icf_vline_names *f)
{
	VEC_FREE(&f->h.dir);
	VEC_FREE(&f->h.file);
	free(f->whole);
}
