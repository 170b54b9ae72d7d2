/* except.c: .gcc_except_table for the output.
 *
 * An LSDA moves as a block: only its pointers to types (if PC-relative) and an explicit landing pad
 * base depend on their place.  The blocks are the extents of the LSDAs that FDEs refer to;
 * overlapping blocks stay together.  Bytes between blocks are either a rest of a block that no
 * chain reaches (compilers give both halves of a split function all action and specification
 * tables), or LSDAs without an FDE (of functions that the linker dropped), which are recognised by
 * parsing.  If anything else is left, or an FDE's LSDA does not parse, nothing is dropped or moved.
 * Cost: linear in the section, and a sort of the blocks. */
#include "dwarf/cfi.h"
#include "dwarf/lsda.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/vec.h"
#include <stdlib.h>
#include <string.h>

/* The most bytes behind an LSDA that may be its own unreached rest. */
#define TAIL_MAX 256

struct block {
	uint64_t start, end; /* VA */
	bool aligned;        /* has multi-byte fields: keeps the residue of its address */
	bool live;
};

/* A field that depends on its place, or on the new place of code. */
struct fixup {
	uint64_t va, value; /* old VA of the field; what it has to say in the output */
	uint8_t encoding, size;
};

struct rebuild {
	const struct dwr_rw_except_in *in;
	const struct elfrw_section *sec;
	uint64_t start, end; /* VA of the section in the input */
	uint64_t align;
	VEC(struct block) block;
	VEC(struct fixup) fixup;
	struct dwr_lsda lsda;
	struct dwr_rw_except_out *out;
};

static struct elfrw_err *add_fixup(struct rebuild *rb, uint64_t va, uint64_t value,
				   uint8_t encoding, uint8_t size)
{
	struct fixup *f = VEC_PUSH(&rb->fixup);
	if (!f)
		return &elfrw_err_nomem;
	*f = (struct fixup){ va, value, encoding, size };
	return NULL;
}

/* The landing pads keep their distance from the base, so their code must have moved as a whole. */
static struct elfrw_err *fix_base(struct rebuild *rb)
{
	const struct dwr_lsda *l = &rb->lsda;
	const struct elfrw_addrmap *map = rb->in->map;
	uint64_t base, pad;
	bool known = l->lpstart_va == 0;
	elfrw_addrmap_point(map, l->lpstart, &base);
	for (size_t i = 0; i < l->site.len; i++) {
		uint64_t old = l->site.data[i].landing_pad;
		if (!old)
			continue;
		bool there = elfrw_addrmap_point(map, old, &pad);
		if (!known)
			base = pad - (old - l->lpstart);
		known = true;
		if (!there || pad - base != old - l->lpstart)
			return elfrw_error_at(rb->sec->name, l->start - rb->start,
					      "landing pad 0x%llx and the base 0x%llx moved apart",
					      (unsigned long long)old,
					      (unsigned long long)l->lpstart);
	}
	if (!l->lpstart_va)
		return NULL;
	ELFRW_TRY(add_fixup(rb, l->lpstart_va, base, l->lpstart_encoding, l->lpstart_size));
	/* By its LPStart a reader recognises the header behind these call sites, even if that
	 * header is no longer used. */
	return l->sites_end == l->actions ? NULL
					  : add_fixup(rb, l->sites_end + 1, base,
						      l->lpstart_encoding, l->lpstart_size);
}

static struct elfrw_err *fix_types(struct rebuild *rb)
{
	const struct dwr_lsda *l = &rb->lsda;
	size_t n = l->field.len;
	/* Entries behind the last used one may not be entries. */
	while (n && !l->field.data[n - 1].used)
		n--;
	for (size_t i = 0; i < n; i++) {
		const struct dwr_lsda_field *f = &l->field.data[i];
		uint64_t addr = f->addr;
		if (!addr)
			continue;
		if (!(f->encoding & DWR_PE_INDIRECT))
			elfrw_addrmap_pointer(rb->in->map, addr, &addr);
		ELFRW_TRY(add_fixup(rb, f->va, addr, f->encoding, f->size));
	}
	return NULL;
}

/* LSDAs without a type table consist of LEB128 numbers, and compilers do not align them. */
static bool has_words(const struct dwr_lsda *lsda)
{
	return lsda->ttbase || lsda->lpstart_va || lsda->site_encoding != DWR_PE_ULEB128;
}

/* The LSDAs that FDEs name. */
static struct elfrw_err *read_named(struct rebuild *rb)
{
	const struct dwr_cfi *cfi = rb->in->cfi;
	for (uint32_t i = 0; i < cfi->fde.len; i++) {
		const struct dwr_fde *fde = &cfi->fde.data[i];
		if (fde->lsda < rb->start || fde->lsda >= rb->end)
			continue;
		bool live = !dwr_rw_fde_gone(cfi, i, rb->in->map);
		struct elfrw_err *err = dwr_lsda_read(&rb->lsda, rb->in->img, fde->lsda,
						      fde->pc_begin, fde->pc_end);
		if (err) {
			if (err == &elfrw_err_nomem)
				return err;
			elfrw_err_free(err);
			rb->out->unknown++;
			continue;
		}
		struct block *b = VEC_PUSH(&rb->block);
		if (!b)
			return &elfrw_err_nomem;
		*b = (struct block){ rb->lsda.start, rb->lsda.end, has_words(&rb->lsda), live };
		if (live) {
			ELFRW_TRY(fix_base(rb));
			ELFRW_TRY(fix_types(rb));
		}
	}
	return NULL;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Sorts the blocks and joins overlapping ones.  A live block needs nothing before its own start:
 * headers of a function's dead ranges there are not joined. */
static void join_blocks(struct rebuild *rb)
{
	struct block *b = rb->block.data;
	size_t n = rb->block.len, k = 0;
	if (!n)
		return;
	qsort(b, n, sizeof *b, compare_blocks);
	for (size_t i = 1; i < n; i++) {
		if (b[i].start < b[k].end && b[i].live && !b[k].live && b[i].start > b[k].start) {
			uint64_t end = b[k].end > b[i].end ? b[k].end : b[i].end;
			b[k].end = b[i].start;
			b[++k] = b[i];
			b[k].end = end;
		} else if (b[i].start < b[k].end) {
			if (b[i].end > b[k].end)
				b[k].end = b[i].end;
			b[k].live |= b[i].live;
			b[k].aligned |= b[i].aligned;
		} else {
			b[++k] = b[i];
		}
	}
	rb->block.len = k + 1;
}

/* Is there an LSDA at VA that ends by LIMIT?  Its function is unknown, so its call sites may be
 * anywhere. */
static bool nameless_lsda(struct rebuild *rb, uint64_t va, uint64_t limit, struct block *ret)
{
	if (rb->sec->data[va - rb->start] != DWR_PE_OMIT)
		return false;
	struct elfrw_err *err = dwr_lsda_read(&rb->lsda, rb->in->img, va, 0, UINT32_MAX);
	elfrw_err_free(err);
	*ret = (struct block){ va, rb->lsda.end, has_words(&rb->lsda), false };
	return !err && ret->end <= limit;
}

/* Explains the bytes between the blocks: [FROM, TO), behind block PREVIOUS (or SIZE_MAX).  An LSDA
 * without a type table begins at any address. */
static struct elfrw_err *read_gap(struct rebuild *rb, uint64_t from, uint64_t to, size_t previous)
{
	uint64_t tail = 0;
	for (uint64_t va = from; va < to;) {
		struct block b;
		if (nameless_lsda(rb, va, to, &b)) {
			struct block *slot = VEC_PUSH(&rb->block);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = b;
			previous = rb->block.len - 1;
			tail = 0;
			va = b.end;
			continue;
		}
		if (rb->sec->data[va - rb->start]) {
			if (previous == SIZE_MAX || ++tail > TAIL_MAX) {
				for (; va < to; va++)
					rb->out->unknown += rb->sec->data[va - rb->start] != 0;
				return NULL;
			}
			rb->block.data[previous].end = va + 1;
		}
		va++;
	}
	return NULL;
}

static struct elfrw_err *read_gaps(struct rebuild *rb)
{
	uint64_t from = rb->start;
	size_t named = rb->block.len, previous = SIZE_MAX;
	for (size_t i = 0; i < named; i++) {
		uint64_t end = rb->block.data[i].end; /* before a tail is added to it */
		if (rb->block.data[i].start > from)
			ELFRW_TRY(read_gap(rb, from, rb->block.data[i].start, previous));
		from = end;
		previous = i;
	}
	if (rb->end > from)
		ELFRW_TRY(read_gap(rb, from, rb->end, previous));
	join_blocks(rb);
	return NULL;
}

/* Chooses the new places. */
static struct elfrw_err *place_blocks(struct rebuild *rb)
{
	const struct block *b = rb->block.data;
	struct dwr_rw_except_out *out = rb->out;
	for (size_t i = 0; i < rb->block.len; i++) {
		out->n_live += b[i].live;
		out->n_dead += !b[i].live;
	}
	out->compacted = out->n_dead && !out->unknown;
	size_t n = out->compacted ? rb->block.len : 1;
	struct dwr_rw_move *move = out->moves.move = malloc(n * sizeof *move);
	if (!move)
		return &elfrw_err_nomem;
	out->moves.n = n;
	if (!out->compacted) {
		*move = (struct dwr_rw_move){ rb->start, rb->end, rb->in->va };
		out->size = (size_t)(rb->end - rb->start);
		return NULL;
	}
	uint64_t va = rb->in->va;
	for (size_t i = 0; i < n; i++) {
		move[i] = (struct dwr_rw_move){ b[i].start, b[i].end, DWR_RW_GONE };
		if (!b[i].live)
			continue;
		if (b[i].aligned)
			va += (b[i].start - va) & (rb->align - 1);
		move[i].new = va;
		va += b[i].end - b[i].start;
	}
	out->size = (size_t)(va - rb->in->va);
	return NULL;
}

static int compare_fixups(const void *a, const void *b)
{
	const struct fixup *x = a, *y = b;
	return x->va < y->va ? -1 : x->va > y->va;
}

static struct elfrw_err *write_bytes(struct rebuild *rb)
{
	struct dwr_rw_except_out *out = rb->out;
	out->data = calloc(out->size + 1, 1);
	if (!out->data)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < out->moves.n; i++) {
		const struct dwr_rw_move *m = &out->moves.move[i];
		if (m->new != DWR_RW_GONE && m->old_end > m->old)
			memcpy(out->data + (m->new - rb->in->va),
			       rb->sec->data + (m->old - rb->start), (size_t)(m->old_end - m->old));
	}
	uint8_t address_size = rb->in->img->arch->address_size;
	struct fixup *f = rb->fixup.data;
	if (rb->fixup.len)
		qsort(f, rb->fixup.len, sizeof *f, compare_fixups);
	for (size_t i = 0; i < rb->fixup.len; i++) {
		uint64_t va;
		if (i && f[i].va == f[i - 1].va && f[i].value != f[i - 1].value)
			return elfrw_error_at(rb->sec->name, f[i].va - rb->start,
					      "an LSDA is shared by functions that moved apart");
		if (!dwr_rw_moved(&out->moves, f[i].va, &va) || va - rb->in->va > out->size ||
		    out->size - (va - rb->in->va) < f[i].size)
			return elfrw_error_at(rb->sec->name, f[i].va - rb->start,
					      "a pointer of an LSDA has no place");
		uint64_t raw, value;
		struct elfrw_rbuf r = elfrw_rbuf(rb->sec->data + (f[i].va - rb->start), f[i].size);
		if (va == f[i].va &&
		    dwr_pe_read(&r, f[i].encoding, address_size, va, &raw, &value) &&
		    value == f[i].value)
			continue;
		if (!dwr_pe_write(out->data + (va - rb->in->va), f[i].encoding, address_size, va,
				  f[i].value))
			return elfrw_error_at(
				rb->sec->name, f[i].va - rb->start,
				"the pointer 0x%llx does not fit its field (encoding 0x%x)",
				(unsigned long long)f[i].value, f[i].encoding);
	}
	return NULL;
}

static struct elfrw_err *rebuild(struct rebuild *rb)
{
	const struct dwr_rw_except_in *in = rb->in;
	rb->sec = &in->img->section[in->shndx];
	rb->start = rb->sec->hdr.sh_addr;
	rb->end = rb->start + rb->sec->hdr.sh_size;
	rb->align = 4;
	while (rb->align < 16 && rb->align < rb->sec->hdr.sh_addralign)
		rb->align *= 2;
	if (!rb->sec->data)
		return NULL;
	if ((in->va - rb->start) & (rb->align - 1))
		return elfrw_error_at(rb->sec->name, 0,
				      "the new address 0x%llx has another alignment",
				      (unsigned long long)in->va);
	ELFRW_TRY(read_named(rb));
	join_blocks(rb);
	if (!rb->out->unknown)
		ELFRW_TRY(read_gaps(rb));
	if (rb->out->unknown && in->va != rb->start)
		return elfrw_error_at(rb->sec->name, 0,
				      "cannot be moved: not all of it is understood");
	ELFRW_TRY(place_blocks(rb));
	return write_bytes(rb);
}

struct elfrw_err *dwr_rw_gcc_except(const struct dwr_rw_except_in *in,
				    struct dwr_rw_except_out *out)
{
	struct dwr_rw_except_out result = { 0 };
	struct rebuild rb = { .in = in, .out = &result };
	struct elfrw_err *err = rebuild(&rb);
	VEC_FREE(&rb.block);
	VEC_FREE(&rb.fixup);
	dwr_lsda_deinit(&rb.lsda);
	if (err)
		dwr_rw_except_deinit(&result);
	else
		*out = result;
	return err;
}

void dwr_rw_except_deinit(struct dwr_rw_except_out *out)
{
	free(out->data);
	free(out->moves.move);
	*out = (struct dwr_rw_except_out){ 0 };
}
