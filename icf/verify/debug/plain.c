/* plain.c: what cannot have changed if its bytes have not.
 *
 * A value that is a number, a flag or a reference inside of .debug_info means the same if its bytes
 * are the same, since every DIE must be where it was.  A string's place means the same string,
 * since the sections of strings are compared as a whole (dtables.c).  Addresses and places in other
 * sections may mean something else in the other file, and are never plain. */
#include "icf/verify/debug/plain.h"
#include <dwarf.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif

bool icf_vplain_attr(unsigned name, unsigned form)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_entry_pc:
	case DW_AT_ranges:
	case DW_AT_stmt_list:
	case DW_AT_macros:
	case DW_AT_macro_info:
	case DW_AT_GNU_macros:
	case DW_AT_call_return_pc:
	case DW_AT_call_pc:
	case DW_AT_GNU_locviews:
	case DW_AT_LLVM_stmt_sequence: return false;
	}
	switch (form) {
	case DW_FORM_string:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data16:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_implicit_const:
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
	case DW_FORM_ref_addr:
	case DW_FORM_ref_sig8: return true;
	case DW_FORM_data4:
	case DW_FORM_data8:
		/* In DWARF 2 and 3 these may be places in other sections. */
		return name == DW_AT_byte_size || name == DW_AT_decl_line ||
		       name == DW_AT_const_value || name == DW_AT_decl_file ||
		       name == DW_AT_call_line;
	default: return false;
	}
}

bool icf_vplain_is_location(unsigned name)
{
	switch (name) {
	case DW_AT_location:
	case DW_AT_string_length:
	case DW_AT_return_addr:
	case DW_AT_data_member_location:
	case DW_AT_frame_base:
	case DW_AT_segment:
	case DW_AT_static_link:
	case DW_AT_use_location:
	case DW_AT_vtable_elem_location:
	case DW_AT_data_location:
	case DW_AT_call_value:
	case DW_AT_call_data_value:
	case DW_AT_call_data_location:
	case DW_AT_call_target:
	case DW_AT_call_target_clobbered:
	case DW_AT_GNU_call_site_value:
	case DW_AT_GNU_call_site_data_value:
	case DW_AT_GNU_call_site_target:
	case DW_AT_GNU_call_site_target_clobbered:
	case DW_AT_lower_bound:
	case DW_AT_upper_bound:
	case DW_AT_count:
	case DW_AT_byte_size:
	case DW_AT_allocated:
	case DW_AT_associated:
	case DW_AT_rank: return true;
	default: return false;
	}
}

bool icf_vplain_is_block(unsigned form)
{
	return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 ||
	       form == DW_FORM_block2 || form == DW_FORM_block4;
}

/* Operations without operands. */
static bool is_bare(unsigned op)
{
	if ((op >= DW_OP_lit0 && op <= DW_OP_reg31) || (op >= DW_OP_abs && op <= DW_OP_plus) ||
	    (op >= DW_OP_shl && op <= DW_OP_xor) || (op >= DW_OP_eq && op <= DW_OP_ne))
		return true;
	switch (op) {
	case DW_OP_deref:
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_swap:
	case DW_OP_rot:
	case DW_OP_nop:
	case DW_OP_call_frame_cfa:
	case DW_OP_stack_value:
	case DW_OP_push_object_address:
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
	case DW_OP_GNU_uninit: return true;
	default: return false;
	}
}

/* The bytes of OP's first operand, if all have as many; or 0. */
static unsigned operand_size(unsigned op, unsigned offset_size)
{
	switch (op) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type: return 1;
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_bra:
	case DW_OP_skip: return 2;
	case DW_OP_const4u:
	case DW_OP_const4s: return 4;
	case DW_OP_const8u:
	case DW_OP_const8s: return 8;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer: return offset_size;
	default: return 0;
	}
}

/* Skips the operands of OP; false: it may hold an address, or is not known here.  libdw does not
 * know DW_OP_GNU_uninit; loc.c tells of a difference in a list with it. */
static bool skip_operands(struct elfrw_rbuf *r, unsigned op, unsigned offset_size)
{
	unsigned fixed = operand_size(op, offset_size);
	elfrw_rbuf_skip(r, fixed);
	switch (op) {
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_plus_uconst:
	case DW_OP_regx:
	case DW_OP_fbreg:
	case DW_OP_piece:
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer: elfrw_rbuf_uleb(r); return true;
	case DW_OP_bregx:
	case DW_OP_bit_piece:
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		elfrw_rbuf_uleb(r);
		elfrw_rbuf_uleb(r);
		return true;
	case DW_OP_implicit_value: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); return true;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value: {
		/* One operation in nearly all; others are left to libdw. */
		uint64_t n = elfrw_rbuf_uleb(r);
		const uint8_t *p = elfrw_rbuf_take(r, n);
		return p && n == 1 && *p >= DW_OP_reg0 && *p <= DW_OP_reg31;
	}
	}
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return elfrw_rbuf_uleb(r), true;
	return fixed || is_bare(op);
}

bool icf_vplain_operation(struct elfrw_rbuf *r, unsigned offset_size)
{
	return skip_operands(r, elfrw_rbuf_u8(r), offset_size) && elfrw_rbuf_ok(r);
}

bool icf_vplain_expr(const uint8_t *p, size_t size, unsigned offset_size)
{
	struct elfrw_rbuf r = elfrw_rbuf(p, size);
	while (elfrw_rbuf_left(&r))
		if (!icf_vplain_operation(&r, offset_size))
			return false;
	return elfrw_rbuf_ok(&r);
}
