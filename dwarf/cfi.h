/* cfi.h: call frame information, read into flat arrays.
 *
 * .eh_frame: Linux Standard Base Core 5.0, "Exception Frames"; .debug_frame: DWARF 2 to 5, section
 * 6.4.  Pointers into the section and its name are borrowed from the caller and must live as long
 * as the struct dwr_cfi. */
#ifndef DWARF_CFI_H
#define DWARF_CFI_H
#include "dwarf/sections.h"
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_wbuf;
struct elfrw_image;
struct elfrw_rbuf;

/* Pointer encodings (LSB Core 5.0, "DWARF Exception Header Encoding").  Same values as in
 * <dwarf.h>. */
enum {
	DWR_PE_ABSPTR = 0x00,
	DWR_PE_ULEB128 = 0x01,
	DWR_PE_UDATA2 = 0x02,
	DWR_PE_UDATA4 = 0x03,
	DWR_PE_UDATA8 = 0x04,
	DWR_PE_SLEB128 = 0x09,
	DWR_PE_SDATA2 = 0x0a,
	DWR_PE_SDATA4 = 0x0b,
	DWR_PE_SDATA8 = 0x0c,
	DWR_PE_PCREL = 0x10,
	DWR_PE_TEXTREL = 0x20,
	DWR_PE_DATAREL = 0x30,
	DWR_PE_FUNCREL = 0x40,
	DWR_PE_ALIGNED = 0x50,
	DWR_PE_FORM = 0x0f,
	DWR_PE_BASE = 0x70,
	DWR_PE_INDIRECT = 0x80,
	DWR_PE_OMIT = 0xff,
};

/* Instructions of a CIE or an FDE that depend on the place of the code. */
enum {
	DWR_CFA_HAS_ADDRESS = 1, /* DW_CFA_set_loc, or DW_OP_addr and the like in an expression:
				    never equal to another's */
	DWR_CFA_USES_PC = 2, /* an expression reads the return address column (.plt): may move by
				multiples of 16 bytes only */
	DWR_CFA_ADVANCES =
		4, /* has more than one row: rules depend on the distance from pc_begin */
};

struct dwr_cie {
	uint64_t off;             /* of the length field, in the section */
	const char *augmentation; /* NUL-terminated, in the section */
	const uint8_t *insn;      /* initial instructions without the trailing DW_CFA_nop padding */
	uint64_t personality;     /* VA of the routine, or of the slot that holds its VA; 0: none */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra;   /* return address column */
	uint32_t size; /* of the record, with the length field */
	uint32_t insn_size;
	uint32_t personality_off; /* of the encoded pointer, from `off`; 0: none */
	uint32_t same;         /* index of the first CIE with the same meaning (possibly itself) */
	uint8_t version;       /* 1, 3, 4 */
	uint8_t fde_encoding;  /* DWR_PE_*; DWR_PE_ABSPTR unless 'R' */
	uint8_t lsda_encoding; /* DWR_PE_OMIT unless 'L' */
	uint8_t personality_encoding; /* DWR_PE_OMIT unless 'P' */
	uint8_t address_size;         /* of absptr fields */
	uint8_t offset_size;          /* 4 or 8: 32- or 64-bit DWARF */
	uint8_t cfa_flags;            /* DWR_CFA_* of the initial instructions */
	bool augmented;               /* 'z': the FDEs have an augmentation length */
	bool personality_indirect;
	bool signal_frame; /* 'S' */
	bool b_key;        /* 'B': AArch64, return addresses are signed with the B key */
	bool mte;          /* 'G': AArch64, tagged stack frame */
	bool used;         /* an FDE refers to it */
};

struct dwr_fde {
	uint64_t off;              /* of the length field, in the section */
	uint64_t pc_begin, pc_end; /* half-open, VA */
	uint64_t lsda;             /* VA, 0: none */
	const uint8_t *insn;       /* without the trailing DW_CFA_nop padding */
	uint32_t insn_size;
	uint32_t size;     /* of the record, with the length field */
	uint32_t cie;      /* index */
	uint32_t pc_off;   /* of the encoded pc_begin, from `off`; the range follows it */
	uint32_t lsda_off; /* of the encoded LSDA pointer, from `off`; 0: the record has no such
			      field */
	uint8_t pc_size, range_size; /* bytes of the two fields */
	uint8_t cfa_flags;           /* DWR_CFA_* */
};

struct dwr_cfi {
	const char *name;
	const uint8_t *data;
	size_t size;
	uint64_t va; /* 0 for .debug_frame */
	bool is_eh;
	uint8_t address_size;
	VEC(struct dwr_cie) cie; /* in section order */
	VEC(struct dwr_fde) fde; /* in section order */
	/* Offsets of the 4-byte zero words (.eh_frame only), in order.  A frame table without
	 * .eh_frame_hdr ends at the first one.  An unwinder that uses .eh_frame_hdr never sees
	 * them.  This reader continues behind them. */
	VEC(uint64_t) terminator;
	uint32_t *by_pc; /* all FDE indices sorted by pc_begin, then index; owned */
};

/* Reads a whole section.  RET is overwritten; after an error there is nothing to free.  VA: the
 * section's address (ignored for .debug_frame).  NAME is used in messages.  Errors: truncated
 * records; unknown versions, augmentations, encodings or instructions; 64-bit records in .eh_frame
 * (no unwinder reads them); a CIE pointer that leads to no CIE; segmented addresses.  Pointers with
 * the encoding absptr are read from the section's bytes: the caller refuses files in which a
 * dynamic relocation changes them. */
struct elfrw_err *dwr_cfi_read(struct dwr_cfi *ret, const char *name, struct dwr_bytes bytes,
			       uint64_t va, bool is_eh, uint8_t address_size);

/* The same for the .eh_frame of IMG, which may have none. */
struct elfrw_err *dwr_eh_frame_read(struct dwr_cfi *ret, const struct elfrw_image *img,
				    uint8_t address_size);
void dwr_cfi_deinit(struct dwr_cfi *cfi);

/* The FDE whose range holds VA, or UINT32_MAX.  Of the non-empty FDEs that begin at or before VA,
 * it is the last to begin (among equals, the first in the section), if it reaches VA. */
uint32_t dwr_cfi_find(const struct dwr_cfi *cfi, uint64_t va);

/* Do the FDE's or its CIE's instructions contain an absolute address? */
bool dwr_cfi_has_address(const struct dwr_cfi *cfi, uint32_t fde);

/* Do two FDEs have the same unwind rules?  Compared are the meaning of the CIEs (alignment factors,
 * return address column, initial instructions, personality, signal frame and the like; not version,
 * encodings or layout) and the instructions without padding.  Neither the length of the range nor
 * the LSDA counts.  Never true for two FDEs with dwr_cfi_has_address(). */
bool dwr_fde_same(const struct dwr_cfi *cfi, uint32_t a, uint32_t b);

/* Appends the bytes that dwr_fde_same() compares: equal bytes if and only if it returns true. */
void dwr_fde_canon(const struct dwr_cfi *cfi, uint32_t fde, struct elfrw_wbuf *out);

/* The size in bytes of the form of ENCODING; 0: LEB128; -1: unknown. */
int dwr_pe_size(uint8_t encoding, uint8_t address_size);

/* Reads an encoded pointer.  *RAW: the number itself, sign-extended by its form.  *RET: its value
 * before any indirection; with DWR_PE_PCREL, FIELD_VA is added, unless the number is 0 (which
 * always means "none").  false: past the end, or a base other than absptr or pcrel. */
bool dwr_pe_read(struct elfrw_rbuf *r, uint8_t encoding, uint8_t address_size, uint64_t field_va,
		 uint64_t *raw, uint64_t *ret);

/* Writes VALUE at P in a fixed-size encoding; false: it does not fit, or the encoding has no fixed
 * size. */
bool dwr_pe_write(uint8_t *p, uint8_t encoding, uint8_t address_size, uint64_t field_va,
		  uint64_t value);

/* One address inside of frame instructions. */
struct dwr_cfa_address {
	uint32_t off;     /* from the first instruction */
	uint8_t encoding; /* DWR_PE_*: the FDE encoding for DW_CFA_set_loc, absptr in expressions */
	bool indexed;     /* DW_OP_addrx and other forms that a frame table cannot resolve */
};

/* What a walk over frame instructions finds. */
struct dwr_cfa_walk {
	uint8_t flags;                   /* DWR_CFA_* */
	size_t length;                   /* without trailing DW_CFA_nop */
	struct dwr_cfa_address *address; /* the caller's, for up to MAX addresses; may be NULL */
	size_t max;
};

/* Walks instructions (INSN_SIZE bytes, with or without padding).  Returns the number of addresses
 * in them; -1: invalid instructions, and RET is unchanged. */
long dwr_cfa_walk(const struct dwr_cie *cie, const uint8_t *insn, size_t insn_size,
		  struct dwr_cfa_walk *ret);
#endif
