/* cfi.c: reads .eh_frame and .debug_frame into two flat arrays, CIEs and FDEs, in section order.
 *
 * There are two passes over the records: CIEs first, because an FDE of .debug_frame may refer to a
 * CIE behind it.  Each record's instructions are walked once, to find where the padding begins and
 * which instructions depend on the place of the code.  Rules are then equal if CIE classes and
 * bytes are.  A hash table finds CIEs of the same meaning.  Cost: linear in the section, and one
 * sort by address if a linker did not sort the FDEs. */
#include "dwarf/cfi.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/wbuf.h"
#include "elfrw/image.h"
#include <stdlib.h>
#include <string.h>

int dwr_pe_size(uint8_t encoding, uint8_t address_size)
{
	switch (encoding & DWR_PE_FORM) {
	case DWR_PE_ABSPTR: return address_size;
	case DWR_PE_UDATA2:
	case DWR_PE_SDATA2: return 2;
	case DWR_PE_UDATA4:
	case DWR_PE_SDATA4: return 4;
	case DWR_PE_UDATA8:
	case DWR_PE_SDATA8: return 8;
	case DWR_PE_ULEB128:
	case DWR_PE_SLEB128: return 0;
	default: return -1;
	}
}

bool dwr_pe_read(struct elfrw_rbuf *r, uint8_t encoding, uint8_t address_size, uint64_t field_va,
		 uint64_t *raw, uint64_t *ret)
{
	uint64_t v;
	int size = dwr_pe_size(encoding, address_size);
	if (size < 0 || encoding == DWR_PE_OMIT)
		return false;
	if (size) {
		v = elfrw_rbuf_uint(r, (unsigned)size);
		if ((encoding & 0x08) && size < 8 && v >> (8 * size - 1))
			v |= ~(uint64_t)0 << (8 * size);
	} else {
		v = encoding & 0x08 ? (uint64_t)elfrw_rbuf_sleb(r) : elfrw_rbuf_uleb(r);
	}
	*raw = v;
	switch (encoding & DWR_PE_BASE) {
	case 0: break;
	case DWR_PE_PCREL: v = v ? v + field_va : 0; break;
	default: return false;
	}
	*ret = v;
	return elfrw_rbuf_ok(r);
}

bool dwr_pe_write(uint8_t *p, uint8_t encoding, uint8_t address_size, uint64_t field_va,
		  uint64_t value)
{
	int size = dwr_pe_size(encoding, address_size);
	if (size <= 0 || encoding == DWR_PE_OMIT)
		return false;
	switch (encoding & DWR_PE_BASE) {
	case 0: break;
	case DWR_PE_PCREL:
		if (!value)
			break;
		value -= field_va;
		if (!value)
			return false; /* 0 would mean "none" */
		break;
	default: return false;
	}
	if (size < 8) {
		/* Unsigned forms are zero-extended, signed forms sign-extended. */
		uint64_t half = (uint64_t)1 << (8 * size - 1);
		if (encoding & 0x08 ? value + half >= 2 * half : value >= 2 * half)
			return false;
	}
	elfrw_put_le(p, value, (unsigned)size);
	return true;
}

/* One record's header. */
struct record {
	uint64_t off, size; /* with the length field */
	uint64_t id_off;    /* of the CIE id or pointer */
	uint64_t id;
	uint8_t offset_size; /* of the length, 4 or 8 */
	bool is_cie;
};

/* The record at *OFF; moves *OFF behind it.  ret->size 0: a terminator. */
static struct elfrw_err *next_record(const struct dwr_cfi *cfi, uint64_t *off, struct record *ret)
{
	struct elfrw_rbuf r = elfrw_rbuf(cfi->data, cfi->size);
	r.pos += *off;
	ret->off = *off;
	ret->offset_size = 4;
	if (elfrw_rbuf_left(&r) < 4) {
		/* Alignment at the end of the section: nothing that a reader could take for a
		 * record. */
		while (elfrw_rbuf_left(&r))
			if (elfrw_rbuf_u8(&r))
				return elfrw_error_at(cfi->name, *off, "truncated record");
		ret->size = 0;
		ret->is_cie = false;
		*off = cfi->size;
		return NULL;
	}
	uint64_t length = elfrw_rbuf_u32(&r);
	if (!length) {
		ret->size = 0;
		ret->is_cie = false;
		*off += 4;
		return NULL;
	}
	if (length == 0xffffffff) {
		if (cfi->is_eh)
			return elfrw_error_at(cfi->name, *off, "64-bit record in .eh_frame");
		length = elfrw_rbuf_u64(&r);
		ret->offset_size = 8;
	} else if (length >= 0xfffffff0) {
		return elfrw_error_at(cfi->name, *off, "reserved record length 0x%llx",
				      (unsigned long long)length);
	}
	if (!elfrw_rbuf_ok(&r) || length > elfrw_rbuf_left(&r) || length < ret->offset_size)
		return elfrw_error_at(cfi->name, *off,
				      "record length 0x%llx does not fit the section",
				      (unsigned long long)length);
	if (length > UINT32_MAX - 64)
		return elfrw_error_at(cfi->name, *off, "record of more than 4 GB");
	ret->id_off = elfrw_rbuf_off(&r);
	ret->size = ret->id_off + length - *off;
	ret->id = elfrw_rbuf_uint(&r, ret->offset_size);
	ret->is_cie = cfi->is_eh ? ret->id == 0
				 : ret->id == (ret->offset_size == 8 ? UINT64_MAX : UINT32_MAX);
	*off += ret->size;
	return NULL;
}

/* The record's bytes behind its id. */
static struct elfrw_rbuf record_body(const struct dwr_cfi *cfi, const struct record *rec)
{
	struct elfrw_rbuf r = elfrw_rbuf(cfi->data, (size_t)(rec->off + rec->size));
	r.pos += rec->id_off + rec->offset_size;
	return r;
}

/* The length of augmentation data: the instructions begin behind them. */
static struct elfrw_err *read_augmentation_end(const struct dwr_cfi *cfi, const struct record *rec,
					       struct elfrw_rbuf *r, const uint8_t **ret)
{
	uint64_t len = elfrw_rbuf_uleb(r);
	struct elfrw_rbuf ahead = *r;
	elfrw_rbuf_skip(&ahead, len);
	if (!elfrw_rbuf_ok(&ahead))
		return elfrw_error_at(cfi->name, rec->off,
				      "%s augmentation data does not fit the record",
				      rec->is_cie ? "CIE" : "FDE");
	*ret = ahead.pos;
	return NULL;
}

/* Version, augmentation string and address size. */
static struct elfrw_err *read_cie_head(struct dwr_cfi *cfi, const struct record *rec,
				       struct elfrw_rbuf *r, struct dwr_cie *cie)
{
	cie->off = rec->off;
	cie->size = (uint32_t)rec->size;
	cie->offset_size = rec->offset_size;
	cie->address_size = cfi->address_size;
	cie->lsda_encoding = cie->personality_encoding = DWR_PE_OMIT;
	cie->version = elfrw_rbuf_u8(r);
	if (cie->version != 1 && cie->version != 3 && cie->version != 4)
		return elfrw_error_at(cfi->name, rec->off, "CIE of unknown version %u",
				      cie->version);
	cie->augmentation = elfrw_rbuf_cstr(r);
	if (!cie->augmentation)
		return elfrw_error_at(cfi->name, rec->off, "CIE augmentation is not terminated");
	if (cie->version != 4)
		return NULL;
	cie->address_size = elfrw_rbuf_u8(r);
	uint8_t segment_size = elfrw_rbuf_u8(r);
	if (cie->address_size != 8 && cie->address_size != 4)
		return elfrw_error_at(cfi->name, rec->off, "CIE with address size %u",
				      cie->address_size);
	if (segment_size)
		return elfrw_error_at(cfi->name, rec->off, "CIE with segmented addresses");
	return NULL;
}

static struct elfrw_err *read_personality(struct dwr_cfi *cfi, struct elfrw_rbuf *r,
					  struct dwr_cie *cie)
{
	cie->personality_encoding = elfrw_rbuf_u8(r);
	if (cie->personality_encoding == DWR_PE_OMIT)
		return NULL;
	uint64_t raw, at = elfrw_rbuf_off(r);
	cie->personality_off = (uint32_t)(at - cie->off);
	if (!dwr_pe_read(r, cie->personality_encoding, cie->address_size, cfi->va + at, &raw,
			 &cie->personality))
		return elfrw_error_at(cfi->name, at,
				      "personality pointer of unusable encoding 0x%x",
				      cie->personality_encoding);
	cie->personality_indirect =
		cie->personality && (cie->personality_encoding & DWR_PE_INDIRECT);
	return NULL;
}

/* Reads the fields for the letters of the augmentation, except a leading z. */
static struct elfrw_err *read_augmentation(struct dwr_cfi *cfi, struct elfrw_rbuf *r,
					   struct dwr_cie *cie)
{
	for (const char *aug = cie->augmentation + cie->augmented; *aug; aug++) {
		switch (*aug) {
		case 'R': cie->fde_encoding = elfrw_rbuf_u8(r); break;
		case 'L':
			cie->lsda_encoding = elfrw_rbuf_u8(r);
			if (cie->lsda_encoding != DWR_PE_OMIT &&
			    (cie->lsda_encoding & DWR_PE_INDIRECT))
				return elfrw_error_at(cfi->name, cie->off,
						      "CIE with indirect LSDA pointers");
			break;
		case 'P': ELFRW_TRY(read_personality(cfi, r, cie)); break;
		case 'S': cie->signal_frame = true; break;
		case 'B': cie->b_key = true; break;
		case 'G': cie->mte = true; break;
		default:
			return elfrw_error_at(cfi->name, cie->off,
					      "CIE with unknown augmentation \"%s\"",
					      cie->augmentation);
		}
	}
	return NULL;
}

static struct elfrw_err *read_cie(struct dwr_cfi *cfi, const struct record *rec)
{
	struct dwr_cie *cie = VEC_PUSH(&cfi->cie);
	if (!cie)
		return &elfrw_err_nomem;
	struct elfrw_rbuf r = record_body(cfi, rec);
	ELFRW_TRY(read_cie_head(cfi, rec, &r, cie));
	cie->code_align = elfrw_rbuf_uleb(&r);
	cie->data_align = elfrw_rbuf_sleb(&r);
	cie->ra = cie->version == 1 ? elfrw_rbuf_u8(&r) : elfrw_rbuf_uleb(&r);
	const uint8_t *insn = NULL; /* behind the augmentation data, if their length is given */
	cie->augmented = *cie->augmentation == 'z';
	if (cie->augmented)
		ELFRW_TRY(read_augmentation_end(cfi, rec, &r, &insn));
	ELFRW_TRY(read_augmentation(cfi, &r, cie));
	if (!elfrw_rbuf_ok(&r) || (insn && r.pos > insn))
		return elfrw_error_at(cfi->name, rec->off, "truncated CIE");
	if (cie->fde_encoding == DWR_PE_OMIT || (cie->fde_encoding & DWR_PE_INDIRECT))
		return elfrw_error_at(cfi->name, rec->off, "CIE with FDE encoding 0x%x",
				      cie->fde_encoding);
	if (!cfi->is_eh &&
	    ((cie->fde_encoding & DWR_PE_BASE) || (cie->lsda_encoding != DWR_PE_OMIT)))
		return elfrw_error_at(cfi->name, rec->off,
				      "CIE with encoded pointers in .debug_frame");
	cie->insn = insn ? insn : r.pos;
	struct dwr_cfa_walk walk = { 0 };
	if (dwr_cfa_walk(cie, cie->insn, (size_t)(r.end - cie->insn), &walk) < 0)
		return elfrw_error_at(cfi->name, (uint64_t)(cie->insn - cfi->data),
				      "invalid CIE instructions");
	cie->cfa_flags = walk.flags;
	cie->insn_size = (uint32_t)walk.length;
	return NULL;
}

/* The index of the CIE at OFF, or UINT32_MAX; HINT is tried first. */
static uint32_t find_cie(const struct dwr_cfi *cfi, uint64_t off, uint32_t hint)
{
	if (hint < cfi->cie.len && cfi->cie.data[hint].off == off)
		return hint;
	size_t lo = LOWER_BOUND(0, cfi->cie.len, mid, cfi->cie.data[mid].off < off);
	return lo < cfi->cie.len && cfi->cie.data[lo].off == off ? (uint32_t)lo : UINT32_MAX;
}

/* The addresses that FDE covers. */
static struct elfrw_err *read_fde_range(const struct dwr_cfi *cfi, const struct dwr_cie *cie,
					struct elfrw_rbuf *r, struct dwr_fde *fde)
{
	uint64_t raw, range, at = elfrw_rbuf_off(r);
	fde->pc_off = (uint32_t)(at - fde->off);
	if (!dwr_pe_read(r, cie->fde_encoding, cie->address_size, cfi->va + at, &raw,
			 &fde->pc_begin))
		return elfrw_error_at(cfi->name, at, "FDE with an unusable address (encoding 0x%x)",
				      cie->fde_encoding);
	fde->pc_size = (uint8_t)(elfrw_rbuf_off(r) - at);
	/* The range has the width of the address, but no base.  It is unsigned, whatever the form
	 * says. */
	at = elfrw_rbuf_off(r);
	if (!dwr_pe_read(r, cie->fde_encoding & 0x07, cie->address_size, 0, &raw, &range))
		return elfrw_error_at(cfi->name, at, "truncated FDE");
	fde->range_size = (uint8_t)(elfrw_rbuf_off(r) - at);
	fde->pc_end = range > UINT64_MAX - fde->pc_begin ? UINT64_MAX : fde->pc_begin + range;
	return NULL;
}

static struct elfrw_err *read_fde(struct dwr_cfi *cfi, const struct record *rec, uint32_t *cie_hint)
{
	uint64_t cie_off = cfi->is_eh ? rec->id_off - rec->id : rec->id;
	uint32_t cie_index = find_cie(cfi, cie_off, *cie_hint);
	if (cie_index == UINT32_MAX)
		return elfrw_error_at(cfi->name, rec->off, "FDE names no CIE (0x%llx)",
				      (unsigned long long)cie_off);
	*cie_hint = cie_index;
	struct dwr_cie *cie = &cfi->cie.data[cie_index];
	cie->used = true;
	struct dwr_fde *fde = VEC_PUSH(&cfi->fde);
	if (!fde)
		return &elfrw_err_nomem;
	struct elfrw_rbuf r = record_body(cfi, rec);
	const uint8_t *insn = NULL;
	fde->off = rec->off;
	fde->size = (uint32_t)rec->size;
	fde->cie = cie_index;
	ELFRW_TRY(read_fde_range(cfi, cie, &r, fde));
	if (cie->augmented)
		ELFRW_TRY(read_augmentation_end(cfi, rec, &r, &insn));
	if (cie->lsda_encoding != DWR_PE_OMIT) {
		uint64_t raw, at = elfrw_rbuf_off(&r);
		fde->lsda_off = (uint32_t)(at - rec->off);
		if (!dwr_pe_read(&r, cie->lsda_encoding, cie->address_size, cfi->va + at, &raw,
				 &fde->lsda))
			return elfrw_error_at(cfi->name, at,
					      "FDE with an unusable LSDA pointer (encoding 0x%x)",
					      cie->lsda_encoding);
	}
	if (!elfrw_rbuf_ok(&r) || (insn && r.pos > insn))
		return elfrw_error_at(cfi->name, rec->off, "truncated FDE");
	fde->insn = insn ? insn : r.pos;
	struct dwr_cfa_walk walk = { 0 };
	if (dwr_cfa_walk(cie, fde->insn, (size_t)(r.end - fde->insn), &walk) < 0)
		return elfrw_error_at(cfi->name, (uint64_t)(fde->insn - cfi->data),
				      "invalid FDE instructions");
	fde->cfa_flags = walk.flags;
	fde->insn_size = (uint32_t)walk.length;
	return NULL;
}

static bool same_cie(const struct dwr_cie *a, const struct dwr_cie *b)
{
	return a->code_align == b->code_align && a->data_align == b->data_align && a->ra == b->ra &&
	       a->personality == b->personality &&
	       a->personality_indirect == b->personality_indirect &&
	       a->signal_frame == b->signal_frame && a->b_key == b->b_key && a->mte == b->mte &&
	       a->address_size == b->address_size && a->insn_size == b->insn_size &&
	       !memcmp(a->insn, b->insn, a->insn_size);
}

/* FNV-1a: the table is small and needs only a good spread. */
static uint64_t hash_cie(const struct dwr_cie *cie)
{
	uint64_t h = 0xcbf29ce484222325u ^ cie->personality ^ cie->ra << 32 ^ cie->insn_size;
	for (uint32_t i = 0; i < cie->insn_size; i++)
		h = (h ^ cie->insn[i]) * 0x100000001b3u;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

/* Fills dwr_cie.same. */
static struct elfrw_err *class_cies(struct dwr_cfi *cfi)
{
	size_t slots = 16;
	while (slots / 2 < cfi->cie.len)
		slots *= 2;
	uint32_t *table = malloc(slots * sizeof *table);
	if (!table)
		return &elfrw_err_nomem;
	memset(table, 0xff, slots * sizeof *table);
	for (uint32_t i = 0; i < cfi->cie.len; i++) {
		struct dwr_cie *cie = &cfi->cie.data[i];
		size_t slot = hash_cie(cie) & (slots - 1);
		cie->same = i;
		if (cie->cfa_flags & DWR_CFA_HAS_ADDRESS)
			continue;
		while (table[slot] != UINT32_MAX && !same_cie(&cfi->cie.data[table[slot]], cie))
			slot = (slot + 1) & (slots - 1);
		if (table[slot] == UINT32_MAX)
			table[slot] = i;
		else
			cie->same = table[slot];
	}
	free(table);
	return NULL;
}

static int compare_pc(const void *a, const void *b, void *fdes)
{
	const struct dwr_fde *fde = fdes;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (fde[x].pc_begin != fde[y].pc_begin)
		return fde[x].pc_begin < fde[y].pc_begin ? -1 : 1;
	return x < y ? -1 : x > y;
}

static struct elfrw_err *sort_fdes(struct dwr_cfi *cfi)
{
	size_t n = cfi->fde.len;
	cfi->by_pc = malloc((n + 1) * sizeof *cfi->by_pc);
	if (!cfi->by_pc)
		return &elfrw_err_nomem;
	bool sorted = true;
	for (size_t i = 0; i < n; i++) {
		cfi->by_pc[i] = (uint32_t)i;
		sorted = sorted &&
			 (!i || cfi->fde.data[i - 1].pc_begin <= cfi->fde.data[i].pc_begin);
	}
	if (!sorted)
		qsort_r(cfi->by_pc, n, sizeof *cfi->by_pc, compare_pc, cfi->fde.data);
	return NULL;
}

static struct elfrw_err *read_all(struct dwr_cfi *cfi)
{
	struct record rec;
	uint64_t off;
	size_t n_fdes = 0;
	for (off = 0; off < cfi->size;) {
		uint64_t at = off;
		ELFRW_TRY(next_record(cfi, &off, &rec));
		if (!rec.size) {
			uint64_t *slot = VEC_PUSH(&cfi->terminator);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = at;
		} else if (rec.is_cie) {
			ELFRW_TRY(read_cie(cfi, &rec));
		} else {
			n_fdes++;
		}
		if (cfi->cie.len >= UINT32_MAX - 1)
			return elfrw_error_at(cfi->name, at, "too many CIEs");
	}
	if (n_fdes >= UINT32_MAX - 1)
		return elfrw_error_at(cfi->name, 0, "too many FDEs");
	if (!VEC_RESERVE(&cfi->fde, n_fdes))
		return &elfrw_err_nomem;
	uint32_t hint = 0;
	for (off = 0; off < cfi->size;) {
		ELFRW_TRY(next_record(cfi, &off, &rec));
		if (rec.size && !rec.is_cie)
			ELFRW_TRY(read_fde(cfi, &rec, &hint));
	}
	ELFRW_TRY(class_cies(cfi));
	return sort_fdes(cfi);
}

struct elfrw_err *dwr_cfi_read(struct dwr_cfi *ret, const char *name, struct dwr_bytes bytes,
			       uint64_t va, bool is_eh, uint8_t address_size)
{
	struct dwr_cfi cfi = { .name = name,
			       .data = bytes.data,
			       .size = bytes.size,
			       .va = is_eh ? va : 0,
			       .is_eh = is_eh,
			       .address_size = address_size };
	struct elfrw_err *err = read_all(&cfi);
	if (err)
		dwr_cfi_deinit(&cfi);
	*ret = cfi;
	return err;
}

/* Unwinders find the search table by PT_GNU_EH_FRAME, and the unwind tables by its second field
 * (LSB 5.0 Core, 10.6.2).  Are these what the sections' names say? */
static struct elfrw_err *check_names(const struct elfrw_image *img)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		uint64_t va = img->phdr[p].p_vaddr;
		const uint8_t *h =
			img->phdr[p].p_type == PT_GNU_EH_FRAME ? elfrw_image_at(img, va, 12) : NULL;
		/* Version 1, a pointer relative to its place, a number of entries: as linkers write
		 * it, but for no entries. */
		if (!h || h[0] != 1 || h[1] != 0x1b || h[2] != 0x03 || !elfrw_get32(h + 8))
			continue;
		uint64_t frame = va + 4 + (uint64_t)(int64_t)(int32_t)elfrw_get32(h + 4);
		const char *search = img->section[elfrw_image_section_at(img, va)].name;
		const char *tables = img->section[elfrw_image_section_at(img, frame)].name;
		if (strcmp(search, ".eh_frame_hdr") != 0 || strcmp(tables, ".eh_frame") != 0)
			return elfrw_error_at(
				NULL, img->ehdr.e_phoff + p * sizeof *img->phdr,
				"the unwind tables that the program finds (PT_GNU_EH_FRAME) are not in sections with the names .eh_frame_hdr and .eh_frame");
	}
	return NULL;
}

struct elfrw_err *dwr_eh_frame_read(struct dwr_cfi *ret, const struct elfrw_image *img,
				    uint8_t address_size)
{
	static const char name[] = ".eh_frame";
	const struct elfrw_section *s = elfrw_image_section(img, name);
	struct dwr_bytes bytes = { 0 };
	if (s && s->data)
		bytes = (struct dwr_bytes){ s->data, s->hdr.sh_size };
	*ret = (struct dwr_cfi){ 0 };
	ELFRW_TRY(check_names(img));
	return dwr_cfi_read(ret, name, bytes, s ? s->hdr.sh_addr : 0, true, address_size);
}

void dwr_cfi_deinit(struct dwr_cfi *cfi)
{
	VEC_FREE(&cfi->cie);
	VEC_FREE(&cfi->fde);
	VEC_FREE(&cfi->terminator);
	free(cfi->by_pc);
	*cfi = (struct dwr_cfi){ 0 };
}

uint32_t dwr_cfi_find(const struct dwr_cfi *cfi, uint64_t va)
{
	size_t lo =
		LOWER_BOUND(0, cfi->fde.len, mid, cfi->fde.data[cfi->by_pc[mid]].pc_begin <= va);
	/* Skip empty ranges backwards, then go to the first FDE with the same start. */
	uint32_t found = UINT32_MAX;
	while (lo--) {
		const struct dwr_fde *fde = &cfi->fde.data[cfi->by_pc[lo]];
		if (fde->pc_begin == fde->pc_end)
			continue;
		if (found != UINT32_MAX && fde->pc_begin != cfi->fde.data[found].pc_begin)
			break;
		if (va < fde->pc_end)
			found = cfi->by_pc[lo];
		else if (found == UINT32_MAX)
			break;
	}
	return found;
}

bool dwr_cfi_has_address(const struct dwr_cfi *cfi, uint32_t fde)
{
	const struct dwr_fde *f = &cfi->fde.data[fde];
	return (f->cfa_flags | cfi->cie.data[f->cie].cfa_flags) & DWR_CFA_HAS_ADDRESS;
}

bool dwr_fde_same(const struct dwr_cfi *cfi, uint32_t a, uint32_t b)
{
	const struct dwr_fde *x = &cfi->fde.data[a], *y = &cfi->fde.data[b];
	if (a == b)
		return true;
	return cfi->cie.data[x->cie].same == cfi->cie.data[y->cie].same &&
	       x->insn_size == y->insn_size && !dwr_cfi_has_address(cfi, a) &&
	       !dwr_cfi_has_address(cfi, b) && !memcmp(x->insn, y->insn, x->insn_size);
}

void dwr_fde_canon(const struct dwr_cfi *cfi, uint32_t fde, struct elfrw_wbuf *out)
{
	const struct dwr_fde *f = &cfi->fde.data[fde];
	const struct dwr_cie *cie = &cfi->cie.data[f->cie];
	elfrw_wbuf_u8(out, (uint8_t)(cie->personality_indirect | cie->signal_frame << 1 |
				     cie->b_key << 2 | cie->mte << 3 |
				     dwr_cfi_has_address(cfi, fde) << 4));
	if (dwr_cfi_has_address(cfi, fde))
		elfrw_wbuf_u32(out, fde);
	elfrw_wbuf_u64(out, cie->personality);
	elfrw_wbuf_u8(out, cie->address_size);
	elfrw_wbuf_uleb(out, cie->code_align);
	elfrw_wbuf_sleb(out, cie->data_align);
	elfrw_wbuf_uleb(out, cie->ra);
	elfrw_wbuf_uleb(out, cie->insn_size);
	elfrw_wbuf_bytes(out, cie->insn, cie->insn_size);
	elfrw_wbuf_uleb(out, f->insn_size);
	elfrw_wbuf_bytes(out, f->insn, f->insn_size);
}
