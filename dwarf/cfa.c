/* cfa.c: walks call frame instructions (DWARF 5, section 6.4.2 and 7.24; GNU and AArch64
 * extensions) and the expressions inside them, for three questions that need operand boundaries:
 * where does the padding begin (a zero byte may be an operand as well as DW_CFA_nop), which fields
 * hold addresses, and do the rules depend on the place of the code. One pass over the bytes. */
#include "dwarf/cfi.h"
#include "elfrw/base/rbuf.h"

/* Operands, one letter each: 1 2 4 8 fixed sizes, u s LEB128, b a ULEB128 length and that many
 * bytes, e the same with an expression in it, a an address in the FDE's encoding. */
static const char *const cfa_operands[0x40] = {
	[0x00] = "",   /* nop */
	[0x01] = "a",  /* set_loc */
	[0x02] = "1",  /* advance_loc1 */
	[0x03] = "2",  /* advance_loc2 */
	[0x04] = "4",  /* advance_loc4 */
	[0x05] = "uu", /* offset_extended */
	[0x06] = "u",  /* restore_extended */
	[0x07] = "u",  /* undefined */
	[0x08] = "u",  /* same_value */
	[0x09] = "uu", /* register */
	[0x0a] = "",   /* remember_state */
	[0x0b] = "",   /* restore_state */
	[0x0c] = "uu", /* def_cfa */
	[0x0d] = "u",  /* def_cfa_register */
	[0x0e] = "u",  /* def_cfa_offset */
	[0x0f] = "e",  /* def_cfa_expression */
	[0x10] = "ue", /* expression */
	[0x11] = "us", /* offset_extended_sf */
	[0x12] = "us", /* def_cfa_sf */
	[0x13] = "s",  /* def_cfa_offset_sf */
	[0x14] = "uu", /* val_offset */
	[0x15] = "us", /* val_offset_sf */
	[0x16] = "ue", /* val_expression */
	[0x1d] = "8",  /* MIPS_advance_loc8 */
	[0x2c] = "",   /* AARCH64_negate_ra_state_with_pc */
	[0x2d] = "",   /* GNU_window_save, AARCH64_negate_ra_state */
	[0x2e] = "u",  /* GNU_args_size */
	[0x2f] = "uu", /* GNU_negative_offset_extended */
};

struct walk {
	struct elfrw_rbuf r;
	const uint8_t *first;
	const struct dwr_cie *cie;
	struct dwr_cfa_address *addresses;
	size_t max;
	long n;
	uint8_t flags;
};

static void add_address(struct walk *w, const uint8_t *at, uint8_t encoding, bool indexed)
{
	if (w->addresses && (size_t)w->n < w->max)
		w->addresses[w->n] =
			(struct dwr_cfa_address){ (uint32_t)(at - w->first), encoding, indexed };
	w->n++;
	w->flags |= DWR_CFA_HAS_ADDRESS;
}

/* One DW_OP expression (DWARF 5, section 2.5 and 7.7.1).  Operators that need a DIE or a unit have
 * no meaning here (section 6.4.2) and are taken as invalid, but for the indexed addresses, which
 * are reported. */
static bool walk_expression(struct walk *w, const uint8_t *start, uint64_t size)
{
	struct elfrw_rbuf r = elfrw_rbuf(start, (size_t)size);
	while (elfrw_rbuf_left(&r)) {
		uint8_t op = elfrw_rbuf_u8(&r);
		uint64_t reg = UINT64_MAX;
		switch (op) {
		case 0x03: /* addr */
			add_address(w, r.pos, DWR_PE_ABSPTR, false);
			elfrw_rbuf_skip(&r, w->cie->address_size);
			break;
		case 0x08:
		case 0x09:
		case 0x15:
		case 0x94:
		case 0x95: /* const1, pick, deref_size, xderef_size */
			elfrw_rbuf_skip(&r, 1);
			break;
		case 0x0a:
		case 0x0b:
		case 0x28:
		case 0x2f: /* const2, bra, skip */ elfrw_rbuf_skip(&r, 2); break;
		case 0x0c:
		case 0x0d: /* const4 */ elfrw_rbuf_skip(&r, 4); break;
		case 0x0e:
		case 0x0f: /* const8 */ elfrw_rbuf_skip(&r, 8); break;
		case 0x10:
		case 0x11:
		case 0x23:
		case 0x91:
		case 0x93: /* constu, consts, plus_uconst, fbreg, piece */
			(void)elfrw_rbuf_uleb(&r);
			break;
		case 0x70 ... 0x8f: /* breg */
			reg = op - 0x70u;
			(void)elfrw_rbuf_uleb(&r);
			break;
		case 0x50 ... 0x6f: /* reg */ reg = op - 0x50u; break;
		case 0x90: /* regx */ reg = elfrw_rbuf_uleb(&r); break;
		case 0x92: /* bregx */
			reg = elfrw_rbuf_uleb(&r);
			(void)elfrw_rbuf_uleb(&r);
			break;
		case 0x9d: /* bit_piece */
			(void)elfrw_rbuf_uleb(&r);
			(void)elfrw_rbuf_uleb(&r);
			break;
		case 0x9e: /* implicit_value */ elfrw_rbuf_skip(&r, elfrw_rbuf_uleb(&r)); break;
		case 0xa1:
		case 0xa2: /* addrx, constx */
		case 0xfb:
		case 0xfc: /* GNU_addr_index, GNU_const_index */
			add_address(w, r.pos, DWR_PE_ABSPTR, true);
			(void)elfrw_rbuf_uleb(&r);
			break;
		case 0x06:
		case 0x12:
		case 0x13:
		case 0x14:
		case 0x16 ... 0x22:
		case 0x24 ... 0x27:
		case 0x29 ... 0x2e:
		case 0x30 ... 0x4f: /* deref, stack and arithmetic operators, literals */
		case 0x96:
		case 0x9b:
		case 0x9c:
		case 0x9f:
		case 0xe0: /* nop, TLS address, call_frame_cfa, stack_value */ break;
		default: return false;
		}
		if (reg == w->cie->ra)
			w->flags |= DWR_CFA_USES_PC;
	}
	return elfrw_rbuf_ok(&r);
}

static bool walk_one(struct walk *w, uint8_t op)
{
	struct elfrw_rbuf *r = &w->r;
	switch (op & 0xc0) {
	case 0x40: /* advance_loc */ w->flags |= DWR_CFA_ADVANCES; return true;
	case 0x80: /* offset */ (void)elfrw_rbuf_uleb(r); return elfrw_rbuf_ok(r);
	case 0xc0: /* restore */ return true;
	}
	const char *operands = cfa_operands[op];
	if (!operands)
		return false;
	if ((op >= 0x01 && op <= 0x04) || op == 0x1d)
		w->flags |= DWR_CFA_ADVANCES;
	for (; *operands; operands++) {
		switch (*operands) {
		case 'u':
		case 's': (void)elfrw_rbuf_uleb(r); break;
		case 'e': {
			uint64_t size = elfrw_rbuf_uleb(r);
			const uint8_t *start = elfrw_rbuf_take(r, size);
			if (!start || !walk_expression(w, start, size))
				return false;
			break;
		}
		case 'a': {
			int size = dwr_pe_size(w->cie->fde_encoding, w->cie->address_size);
			if (size < 0)
				return false;
			add_address(w, r->pos, w->cie->fde_encoding, false);
			if (size)
				elfrw_rbuf_skip(r, (unsigned)size);
			else
				(void)elfrw_rbuf_uleb(r);
			break;
		}
		default: elfrw_rbuf_skip(r, (unsigned)(*operands - '0'));
		}
	}
	return elfrw_rbuf_ok(r);
}

long dwr_cfa_walk(const struct dwr_cie *cie, const uint8_t *insn, size_t insn_size, uint8_t *flags,
		  size_t *length, struct dwr_cfa_address *addresses, size_t max)
{
	struct walk w = { elfrw_rbuf(insn, insn_size), insn, cie, addresses, max, 0, 0 };
	const uint8_t *used = insn;
	while (elfrw_rbuf_left(&w.r)) {
		uint8_t op = elfrw_rbuf_u8(&w.r);
		if (!op)
			continue;
		if (!walk_one(&w, op))
			return -1;
		used = w.r.pos;
	}
	*flags = w.flags;
	*length = (size_t)(used - insn);
	return w.n;
}
