/* cfa.c: walks call frame instructions (DWARF 5, section 6.4.2 and 7.24; GNU and AArch64
 * extensions) and the expressions in them, for three questions that need operand boundaries.  Where
 * does the padding begin (a zero byte may be an operand or DW_CFA_nop)?  Which fields hold
 * addresses?  Do the rules depend on the place of the code?  One pass over the bytes. */
#include "dwarf/cfi.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

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

/* Operands of DW_OP operators (DWARF 5, section 7.7.1), letters as above, except: u a LEB128, r a
 * register as a LEB128, x an index into .debug_addr.  NULL: an unknown operator, or one that needs
 * a DIE or a unit, which has no meaning here (section 6.4.2). */
static const char *const op_operands[256] = {
	[DW_OP_addr] = "a",
	[DW_OP_deref] = "",
	[DW_OP_const1u] = "1",
	[DW_OP_const1s] = "1",
	[DW_OP_const2u] = "2",
	[DW_OP_const2s] = "2",
	[DW_OP_const4u] = "4",
	[DW_OP_const4s] = "4",
	[DW_OP_const8u] = "8",
	[DW_OP_const8s] = "8",
	[DW_OP_constu] = "u",
	[DW_OP_consts] = "u",
	[DW_OP_dup... DW_OP_over] = "",
	[DW_OP_pick] = "1",
	[DW_OP_swap... DW_OP_plus] = "",
	[DW_OP_plus_uconst] = "u",
	[DW_OP_shl... DW_OP_xor] = "",
	[DW_OP_bra] = "2",
	[DW_OP_eq... DW_OP_ne] = "",
	[DW_OP_skip] = "2",
	[DW_OP_lit0... DW_OP_reg31] = "", /* the register is in the operator */
	[DW_OP_breg0... DW_OP_breg31] = "u",
	[DW_OP_regx] = "r",
	[DW_OP_fbreg] = "u",
	[DW_OP_bregx] = "ru",
	[DW_OP_piece] = "u",
	[DW_OP_deref_size] = "1",
	[DW_OP_xderef_size] = "1",
	[DW_OP_nop] = "",
	[DW_OP_form_tls_address] = "",
	[DW_OP_call_frame_cfa] = "",
	[DW_OP_bit_piece] = "uu",
	[DW_OP_implicit_value] = "b",
	[DW_OP_stack_value] = "",
	[DW_OP_addrx] = "x",
	[DW_OP_constx] = "x",
	[DW_OP_GNU_push_tls_address] = "",
	[0xfb] = "x", /* GNU_addr_index */
	[0xfc] = "x", /* GNU_const_index */
};

struct walk {
	struct elfrw_rbuf r;
	const uint8_t *first;
	const struct dwr_cie *cie;
	struct dwr_cfa_walk *found;
	long n;
	uint8_t flags;
};

static void add_address(struct walk *w, const uint8_t *at, uint8_t encoding, bool indexed)
{
	if (w->found->address && (size_t)w->n < w->found->max)
		w->found->address[w->n] =
			(struct dwr_cfa_address){ (uint32_t)(at - w->first), encoding, indexed };
	w->n++;
	w->flags |= DWR_CFA_HAS_ADDRESS;
}

/* One DW_OP expression. */
static bool walk_expression(struct walk *w, const uint8_t *start, uint64_t size)
{
	struct elfrw_rbuf r = elfrw_rbuf(start, (size_t)size);
	while (elfrw_rbuf_left(&r)) {
		uint8_t op = elfrw_rbuf_u8(&r);
		const char *operands = op_operands[op];
		uint64_t reg = UINT64_MAX;
		if (!operands)
			return false;
		if (op >= DW_OP_reg0 && op <= DW_OP_breg31)
			reg = (op - DW_OP_reg0) % 32;
		for (; *operands; operands++) {
			switch (*operands) {
			case 'a':
				add_address(w, r.pos, DWR_PE_ABSPTR, false);
				elfrw_rbuf_skip(&r, w->cie->address_size);
				break;
			case 'x':
				add_address(w, r.pos, DWR_PE_ABSPTR, true);
				(void)elfrw_rbuf_uleb(&r);
				break;
			case 'r': reg = elfrw_rbuf_uleb(&r); break;
			case 'u': (void)elfrw_rbuf_uleb(&r); break;
			case 'b': elfrw_rbuf_skip(&r, elfrw_rbuf_uleb(&r)); break;
			default: elfrw_rbuf_skip(&r, (unsigned)(*operands - '0'));
			}
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

long dwr_cfa_walk(const struct dwr_cie *cie, const uint8_t *insn, size_t insn_size,
		  struct dwr_cfa_walk *ret)
{
	struct walk w = { elfrw_rbuf(insn, insn_size), insn, cie, ret, 0, 0 };
	const uint8_t *used = insn;
	while (elfrw_rbuf_left(&w.r)) {
		uint8_t op = elfrw_rbuf_u8(&w.r);
		if (!op)
			continue;
		if (!walk_one(&w, op))
			return -1;
		used = w.r.pos;
	}
	ret->flags = w.flags;
	ret->length = (size_t)(used - insn);
	return w.n;
}
