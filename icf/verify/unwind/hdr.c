/* hdr.c: references to the records of .eh_frame: .eh_frame_hdr, and code that registers frames
 * itself. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/unwind/state.h"
#include <stdlib.h>
#include <string.h>

static uint32_t fde_by_off(const struct dwr_cfi *cfi, uint64_t off)
{
	size_t lo = LOWER_BOUND(0, cfi->fde.len, mid, cfi->fde.data[mid].off < off);
	return lo < cfi->fde.len && cfi->fde.data[lo].off == off ? (uint32_t)lo : ICF_V_NONE;
}

static bool is_record(const struct dwr_cfi *cfi, uint64_t off)
{
	for (size_t k = 0; k < cfi->cie.len; k++)
		if (cfi->cie.data[k].off == off)
			return true;
	for (size_t k = 0; k < cfi->terminator.len; k++)
		if (cfi->terminator.data[k] == off)
			return true;
	return fde_by_off(cfi, off) != ICF_V_NONE;
}

/* Is there a function that registers frames (libgcc), or no dynamic linker?  Only then does
 * start-up code do so. */
static bool registers_frames(const struct elfrw_image *img)
{
	const uint32_t table[] = { img->symtab, img->dynsym };
	bool found = !img->dynamic;
	for (unsigned t = 0; t < 2; t++) {
		const struct elfrw_section *s = &img->section[table[t]];
		for (struct elfrw_symbols it = elfrw_symbols(s, 1);
		     table[t] && !found && elfrw_symbols_next(&it);) {
			const char *name = elfrw_image_string(img, s->hdr.sh_link, it.sym.st_name);
			found = name && strncmp(name, "__register_frame", 16) == 0;
		}
	}
	return found;
}

/* A program that registers its frames itself (static start-up files) refers to the first record of
 * its own.  An unwinder must read the same descriptions from there on. */
void icf_vunwind_refs(struct icf_v *v)
{
	const struct dwr_cfi *a = &v->claim.cfi_in, *b = &v->claim.cfi_out;
	const struct elfrw_section *frame = elfrw_image_section(&v->claim.out, ".eh_frame");
	const bool any = v->frameref.len && v->claim.inferred && registers_frames(&v->claim.in);
	for (size_t i = 0; i < v->frameref.len; i++) {
		const struct icf_vframeref *f = &v->frameref.data[i];
		uint64_t off = f->target - v->claim.frame_lo,
			 new = frame ? f->found - frame->hdr.sh_addr : UINT64_MAX;
		char name[200];
		bool record = is_record(b, new);
		uint32_t seen = 0, want = 0;
		v->log.checked[ICF_VC_ADDRESS]++;
		/* Other data, referred to with a large addend. */
		if (!is_record(a, off) || (v->claim.inferred ? !any : !f->named)) {
			if (f->found != f->target)
				icf_vlog_bad(&v->log, ICF_VC_ADDRESS,
					     "address: %s (0x%llx): expected 0x%llx, found 0x%llx",
					     icf_v_where(&v->claim, f->at, name), ICF_VX(f->target),
					     ICF_VX(f->target), ICF_VX(f->found));
			continue;
		}
		for (size_t k = 0; k < b->fde.len; k++)
			seen += b->fde.data[k].off >= new &&
				!icf_vunwind_is_thunk_frame(v, &b->fde.data[k]);
		for (size_t k = 0; k < a->fde.len; k++) {
			uint32_t u = icf_v_find(&v->claim, a->fde.data[k].pc_begin);
			want += a->fde.data[k].off >= off && u != ICF_V_NONE &&
				!(v->claim.unit.data[u].flags & ICF_V_FOLDED);
		}
		if (!record || seen != want)
			icf_vlog_bad(
				&v->log, ICF_VC_ADDRESS,
				"frame table: %s (0x%llx -> 0x%llx): expected a record with %u descriptions behind it, found %s with %u",
				icf_v_where(&v->claim, f->at, name), ICF_VX(f->target),
				ICF_VX(f->found), want, record ? "one" : "none", seen);
	}
}

/* An entry of .eh_frame_hdr's table, with both addresses as loaded. */
struct hdr {
	uint64_t pc, fde;
};

struct hdr_table {
	struct hdr *entry; /* owned; by pc after read_entries */
	uint64_t count;
	uint64_t frame; /* the address of OUT's .eh_frame */
};

static int hdr_order(const void *a, const void *b)
{
	const struct hdr *x = a, *y = b;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static bool same_section(const struct elfrw_section *a, const struct elfrw_section *b)
{
	return a && b && a->data && b->data && a->hdr.sh_addr == b->hdr.sh_addr &&
	       a->hdr.sh_size == b->hdr.sh_size && !memcmp(a->data, b->data, a->hdr.sh_size);
}

/* Some linkers leave a header that leads nowhere.  Is OUT's header S the same as IN's header A? */
static bool is_same_without_frames(const struct icf_vclaim *c, const struct elfrw_section *a,
				   const struct elfrw_section *s)
{
	return !elfrw_image_section(&c->in, ".eh_frame") &&
	       !elfrw_image_section(&c->out, ".eh_frame") && same_section(a, s);
}

/* Reads the four bytes and the pointer before the count.  The version must be 1, the encodings
 * those of IN's header A.  *PTR: the pointer to .eh_frame. */
static bool read_start(const struct elfrw_section *a, const struct elfrw_section *s,
		       struct elfrw_rbuf *r, uint64_t *ptr)
{
	uint64_t raw;
	unsigned version = elfrw_rbuf_u8(r);
	uint8_t ptr_enc = elfrw_rbuf_u8(r), count_enc = elfrw_rbuf_u8(r),
		table_enc = elfrw_rbuf_u8(r);
	return elfrw_rbuf_ok(r) && version == 1 && ptr_enc == a->data[1] &&
	       count_enc == a->data[2] && table_enc == a->data[3] &&
	       dwr_pe_read(r, ptr_enc, 8, s->hdr.sh_addr + elfrw_rbuf_off(r), &raw, ptr);
}

/* Reads the entries, and checks that they ascend. */
static void read_entries(struct icf_vlog *log, const struct elfrw_section *s, struct elfrw_rbuf *r,
			 struct hdr_table *t)
{
	struct hdr *e = t->entry;
	for (uint64_t i = 0; i < t->count; i++) {
		e[i].pc = s->hdr.sh_addr + (uint64_t)(int64_t)(int32_t)elfrw_rbuf_u32(r);
		e[i].fde = s->hdr.sh_addr + (uint64_t)(int64_t)(int32_t)elfrw_rbuf_u32(r);
		log->checked[ICF_VC_FRAME_HDR]++;
		if (i && e[i].pc < e[i - 1].pc)
			icf_vlog_bad(
				log, ICF_VC_FRAME_HDR,
				"order: .eh_frame_hdr entry %llu: expected 0x%llx or more, found 0x%llx",
				ICF_VX(i), ICF_VX(e[i - 1].pc), ICF_VX(e[i].pc));
	}
	qsort(e, t->count, sizeof *e, hdr_order);
}

/* Each description of code must have an entry. */
static void check_descriptions(const struct icf_vclaim *c, struct icf_vlog *log,
			       const struct hdr_table *t)
{
	const struct hdr *e = t->entry;
	uint64_t n = 0, count = t->count;
	for (size_t k = 0; k < c->cfi_out.fde.len; k++) {
		const struct dwr_fde *f = &c->cfi_out.fde.data[c->cfi_out.by_pc[k]];
		if (f->pc_end <= f->pc_begin || !icf_v_out_exec(c, f->pc_begin))
			continue;
		/* Both lists are in order. */
		while (n < count && e[n].pc < f->pc_begin)
			n++;
		uint64_t m = n;
		while (m < count && e[m].pc == f->pc_begin && e[m].fde != t->frame + f->off)
			m++;
		if (m == count || e[m].pc != f->pc_begin)
			icf_vlog_bad(
				log, ICF_VC_FRAME_HDR,
				"entry: .eh_frame_hdr for 0x%llx: expected 0x%llx, found %s0x%llx",
				ICF_VX(f->pc_begin), ICF_VX(t->frame + f->off),
				n < count && e[n].pc == f->pc_begin ? "" : "none; next is for ",
				ICF_VX(n == count               ? 0
				       : e[n].pc == f->pc_begin ? e[n].fde
								: e[n].pc));
	}
}

/* Each entry must name a description of its own address. */
static void check_entries(const struct icf_vclaim *c, struct icf_vlog *log,
			  const struct hdr_table *t)
{
	for (const struct hdr *e = t->entry; e < t->entry + t->count; e++) {
		uint32_t f = fde_by_off(&c->cfi_out, e->fde - t->frame);
		if (f == ICF_V_NONE || c->cfi_out.fde.data[f].pc_begin != e->pc)
			icf_vlog_bad(
				log, ICF_VC_FRAME_HDR,
				"entry: .eh_frame_hdr for 0x%llx: expected a description of that address, found %s at 0x%llx",
				ICF_VX(e->pc), f == ICF_V_NONE ? "none" : "another",
				ICF_VX(e->fde));
	}
}

/* The count and the table, which R stands in front of. */
static struct elfrw_err *check_table(const struct icf_vclaim *c, struct icf_vlog *log,
				     const struct elfrw_section *s, struct elfrw_rbuf *r,
				     uint64_t frame)
{
	uint8_t count_enc = s->data[2], table_enc = s->data[3];
	uint64_t raw;
	struct hdr_table t = { .frame = frame };
	/* Without a table, unwinders read .eh_frame from its start. */
	if (count_enc == DWR_PE_OMIT || table_enc == DWR_PE_OMIT)
		return NULL;
	if (table_enc != (DWR_PE_DATAREL | DWR_PE_SDATA4))
		return elfrw_error_at(s->name, 3, "%s: table of an unknown kind", c->in.path);
	if (!dwr_pe_read(r, count_enc, 8, s->hdr.sh_addr + elfrw_rbuf_off(r), &raw, &t.count) ||
	    t.count > elfrw_rbuf_left(r) / 8) {
		icf_vlog_bad(
			log, ICF_VC_FRAME_HDR,
			"table: .eh_frame_hdr: expected room for %llu entries, found %llu bytes",
			ICF_VX(t.count), ICF_VX(elfrw_rbuf_left(r)));
		return NULL;
	}
	t.entry = malloc((t.count + 1) * sizeof *t.entry);
	if (!t.entry)
		return &elfrw_err_nomem;
	read_entries(log, s, r, &t);
	check_descriptions(c, log, &t);
	check_entries(c, log, &t);
	free(t.entry);
	return NULL;
}

/* .eh_frame_hdr (LSB Core 5.0): encodings as linkers write them. */
struct elfrw_err *icf_vunwind_hdr(const struct icf_vclaim *c, struct icf_vlog *log)
{
	const struct elfrw_section *a = elfrw_image_section(&c->in, ".eh_frame_hdr"),
				   *s = elfrw_image_section(&c->out, ".eh_frame_hdr");
	const struct elfrw_section *frame = elfrw_image_section(&c->out, ".eh_frame");
	if (!a || !a->data || is_same_without_frames(c, a, s))
		return NULL;
	if (!s || !s->data || !frame || a->hdr.sh_size < 4) {
		icf_vlog_bad(log, ICF_VC_FRAME_HDR,
			     "section: .eh_frame_hdr: expected in the output, found nothing");
		return NULL;
	}
	/* Of several descriptions that begin at one address, lld names the first, also an empty
	 * one. Tables that did not change lead where they led. */
	if (same_section(a, s) && same_section(elfrw_image_section(&c->in, ".eh_frame"), frame))
		return NULL;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	uint64_t ptr = 0;
	if (!read_start(a, s, &r, &ptr)) {
		icf_vlog_bad(
			log, ICF_VC_FRAME_HDR,
			"header: .eh_frame_hdr: expected version 1 and the encodings of the input, found others");
		return NULL;
	}
	if (ptr != frame->hdr.sh_addr)
		icf_vlog_bad(log, ICF_VC_FRAME_HDR,
			     "pointer: .eh_frame_hdr: expected 0x%llx, found 0x%llx",
			     ICF_VX(frame->hdr.sh_addr), ICF_VX(ptr));
	return check_table(c, log, s, &r, frame->hdr.sh_addr);
}
