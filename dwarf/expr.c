/* expr.c: see expr.h.
 *
 * One short string describes the operands of each operator; the walk interprets it.  Location lists
 * hold millions of expressions of one or two operators, so a step costs a table look-up and no
 * allocation.  Branches (DW_OP_bra, DW_OP_skip) are not followed: producers lay operators out
 * without gaps, and all tools that dump expressions read them so. */
#include "dwarf/expr.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>
#include <string.h>

/* Operators that <dwarf.h> does not have. */
enum {
	OP_LLVM_USER = 0xe9,
	OP_PGI_OMP_THREAD_NUM = 0xf8,
	OP_GNU_ADDR_INDEX = 0xfb,
	OP_GNU_CONST_INDEX = 0xfc
};

/* One letter for each operand: 1 2 4 8 unsigned and i j k l signed numbers of 1, 2, 4 and 8 bytes,
 * u ULEB128, s SLEB128, a an address, o an offset into .debug_info, b a block behind a ULEB128
 * length, c one behind a 1-byte length, e an expression behind a ULEB128 length, p an encoded
 * pointer, x the operations of DW_OP_LLVM_user. */
static const char *const operands[256] = {
	[DW_OP_addr] = "a",
	[DW_OP_deref] = "",
	[DW_OP_const1u] = "1",
	[DW_OP_const1s] = "i",
	[DW_OP_const2u] = "2",
	[DW_OP_const2s] = "j",
	[DW_OP_const4u] = "4",
	[DW_OP_const4s] = "k",
	[DW_OP_const8u] = "8",
	[DW_OP_const8s] = "l",
	[DW_OP_constu] = "u",
	[DW_OP_consts] = "s",
	[DW_OP_dup... DW_OP_over] = "",
	[DW_OP_pick] = "1",
	[DW_OP_swap... DW_OP_plus] = "",
	[DW_OP_plus_uconst] = "u",
	[DW_OP_shl... DW_OP_xor] = "",
	[DW_OP_bra] = "j",
	[DW_OP_eq... DW_OP_ne] = "",
	[DW_OP_skip] = "j",
	[DW_OP_lit0... DW_OP_lit31] = "",
	[DW_OP_reg0... DW_OP_reg31] = "",
	[DW_OP_breg0... DW_OP_breg31] = "s",
	[DW_OP_regx] = "u",
	[DW_OP_fbreg] = "s",
	[DW_OP_bregx] = "us",
	[DW_OP_piece] = "u",
	[DW_OP_deref_size] = "1",
	[DW_OP_xderef_size] = "1",
	[DW_OP_nop] = "",
	[DW_OP_push_object_address] = "",
	[DW_OP_call2] = "2",
	[DW_OP_call4] = "4",
	[DW_OP_call_ref] = "o",
	[DW_OP_form_tls_address] = "",
	[DW_OP_call_frame_cfa] = "",
	[DW_OP_bit_piece] = "uu",
	[DW_OP_implicit_value] = "b",
	[DW_OP_stack_value] = "",
	[DW_OP_implicit_pointer] = "os",
	[DW_OP_addrx] = "u",
	[DW_OP_constx] = "u",
	[DW_OP_entry_value] = "e",
	[DW_OP_const_type] = "uc",
	[DW_OP_regval_type] = "uu",
	[DW_OP_deref_type] = "1u",
	[DW_OP_xderef_type] = "1u",
	[DW_OP_convert] = "u",
	[DW_OP_reinterpret] = "u",
	[DW_OP_GNU_push_tls_address] = "",
	[OP_LLVM_USER] = "x",
	[DW_OP_GNU_uninit] = "",
	[DW_OP_GNU_encoded_addr] = "p",
	[DW_OP_GNU_implicit_pointer] = "os",
	[DW_OP_GNU_entry_value] = "e",
	[DW_OP_GNU_const_type] = "uc",
	[DW_OP_GNU_regval_type] = "uu",
	[DW_OP_GNU_deref_type] = "1u",
	[DW_OP_GNU_convert] = "u",
	[OP_PGI_OMP_THREAD_NUM] = "",
	[DW_OP_GNU_reinterpret] = "u",
	[DW_OP_GNU_parameter_ref] = "4",
	[OP_GNU_ADDR_INDEX] = "u",
	[OP_GNU_CONST_INDEX] = "u",
	[DW_OP_GNU_variable_value] = "o",
};

/* Behind DW_OP_LLVM_user ("DWARF Extensions For Heterogeneous Debugging", LLVM documentation): nop,
 * form_aspace_address, push_lane, offset, offset_uconst, bit_offset, call_frame_entry_reg,
 * undefined, aspace_bregx, piece_end, extend, select_bit_piece. */
static const char *const user_operands[] = {
	NULL, "", "", "", "", "u", "", "u", "", "us", "", "uu", "uu",
};

struct dwr_expr_walk dwr_expr_walk(const uint8_t *data, size_t size, struct dwr_form_params params,
				   const char *section, uint64_t section_off)
{
	struct dwr_expr_walk w = { .data = data,
				   .size = size,
				   .params = params,
				   .section = section,
				   .section_off = section_off };
	w.stop[0] = size;
	return w;
}

/* Size of a pointer in encoding ENC (DW_EH_PE_*), 0: not one of fixed size. */
static unsigned encoded_size(const struct dwr_expr_walk *w, uint8_t enc)
{
	switch (enc & 0x0f) {
	case DW_EH_PE_absptr: return w->params.address_size;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2: return 2;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4: return 4;
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: return 8;
	}
	return 0;
}

static uint64_t sign_extend(uint64_t v, unsigned size)
{
	unsigned shift = 64 - 8 * size;
	return (uint64_t)((int64_t)(v << shift) >> shift);
}

static void add_operand(struct dwr_op *op, const struct dwr_expr_walk *w, const uint8_t *pos,
			uint64_t value)
{
	if (op->n_operands == 3)
		return; /* no operator has more */
	op->operand_off[op->n_operands] = (uint64_t)(pos - w->data);
	op->operand[op->n_operands++] = value;
}

/* Reads the operands that SPEC lists; false: past the end, or an unknown operation. */
static bool read_operands(struct dwr_expr_walk *w, struct dwr_op *op, struct elfrw_rbuf *r,
			  const char *spec)
{
	for (; *spec; spec++) {
		const uint8_t *pos = r->pos;
		unsigned n;
		uint64_t v;
		switch (*spec) {
		case '1':
		case '2':
		case '4':
		case '8':
			add_operand(op, w, pos, elfrw_rbuf_uint(r, (unsigned)(*spec - '0')));
			break;
		case 'i':
		case 'j':
		case 'k':
		case 'l':
			n = 1u << (*spec - 'i');
			add_operand(op, w, pos, sign_extend(elfrw_rbuf_uint(r, n), n));
			break;
		case 'u': add_operand(op, w, pos, elfrw_rbuf_uleb(r)); break;
		case 's': add_operand(op, w, pos, (uint64_t)elfrw_rbuf_sleb(r)); break;
		case 'a':
			add_operand(op, w, pos, elfrw_rbuf_uint(r, w->params.address_size));
			break;
		case 'o': /* like DW_FORM_ref_addr, which had the size of an address in DWARF 2 */
			n = w->params.version < 3 ? w->params.address_size : w->params.offset_size;
			add_operand(op, w, pos, elfrw_rbuf_uint(r, n));
			break;
		case 'b':
		case 'c':
		case 'e':
			v = *spec == 'c' ? elfrw_rbuf_u8(r) : elfrw_rbuf_uleb(r);
			add_operand(op, w, pos, v);
			add_operand(op, w, r->pos, v);
			elfrw_rbuf_skip(r, v);
			break;
		case 'p':
			v = elfrw_rbuf_u8(r);
			add_operand(op, w, pos, v);
			n = encoded_size(w, (uint8_t)v);
			if (!n)
				return false;
			pos = r->pos;
			add_operand(op, w, pos, elfrw_rbuf_uint(r, n));
			break;
		case 'x':
			v = elfrw_rbuf_uleb(r);
			if (v >= sizeof user_operands / sizeof *user_operands || !user_operands[v])
				return false;
			op->user = (uint32_t)v;
			if (!read_operands(w, op, r,
					   user_operands[v])) /* one level: no 'x' in there */
				return false;
			break;
		}
	}
	return elfrw_rbuf_ok(r);
}

struct elfrw_err *dwr_expr_next(struct dwr_expr_walk *w, struct dwr_op *op, bool *more)
{
	while (w->depth && w->pos == w->stop[w->depth])
		w->depth--;
	*more = w->pos < w->stop[w->depth];
	if (!*more)
		return NULL;

	size_t off = w->pos;
	op->op = w->data[off];
	op->depth = (uint8_t)w->depth;
	op->n_operands = 0;
	op->user = 0;
	op->off = off;
	const char *spec = operands[op->op];
	if (!spec)
		return elfrw_error_at(w->section, w->section_off + off,
				      "unknown operator 0x%02x in a DWARF expression", op->op);
	size_t end = off + 1;
	if (*spec) {
		struct elfrw_rbuf r = elfrw_rbuf(w->data + end, w->stop[w->depth] - end);
		if (!read_operands(w, op, &r, spec))
			return elfrw_error_at(
				w->section, w->section_off + off,
				"operands of operator 0x%02x in a DWARF expression: past its end or unknown",
				op->op);
		end += elfrw_rbuf_off(&r);
	}
	op->end = end;
	w->pos = end;
	if (*spec == 'e') {
		if (w->depth == DWR_EXPR_MAX_DEPTH)
			return elfrw_error_at(w->section, w->section_off + off,
					      "DWARF expression nested too deeply");
		w->pos = (size_t)op->operand_off[1];
		w->stop[++w->depth] = end;
	}
	return NULL;
}

/* Does the next operator turn OP's number into a thread-local offset?  Then the number is no
 * address, even with DW_OP_addr (old GCC, and targets without a data directive for such
 * offsets). */
static bool is_tls(const struct dwr_expr_walk *w, const struct dwr_op *op)
{
	if (op->end >= w->stop[op->depth])
		return false;
	uint8_t next = w->data[op->end];
	return next == DW_OP_form_tls_address || next == DW_OP_GNU_push_tls_address;
}

static void put_address(uint8_t *p, unsigned size, uint64_t old, struct dwr_expr_mapping *mapping)
{
	uint64_t new;
	elfrw_addrmap_pointer(mapping->map, old, &new);
	if (new == old)
		return;
	elfrw_put_le(p, new, size);
	mapping->changed = true;
}

/* The reference that OP makes; *WHICH: its operand; -1: none. */
static int reference_of(const struct dwr_expr_walk *w, const struct dwr_op *op, unsigned *which)
{
	*which = 0;
	switch (op->op) {
	case DW_OP_addrx:
	case OP_GNU_ADDR_INDEX: return is_tls(w, op) ? DWR_EXPR_CONSTX : DWR_EXPR_ADDRX;
	case DW_OP_constx:
	case OP_GNU_CONST_INDEX: return DWR_EXPR_CONSTX;
	case DW_OP_const_type:
	case DW_OP_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_const_type:
	case DW_OP_GNU_convert:
	case DW_OP_GNU_reinterpret: return DWR_EXPR_TYPE;
	case DW_OP_regval_type:
	case DW_OP_deref_type:
	case DW_OP_xderef_type:
	case DW_OP_GNU_regval_type:
	case DW_OP_GNU_deref_type: *which = 1; return DWR_EXPR_TYPE;
	case DW_OP_call2:
	case DW_OP_call4:
	case DW_OP_GNU_parameter_ref: return DWR_EXPR_UNIT_DIE;
	case DW_OP_call_ref:
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
	case DW_OP_GNU_variable_value: return DWR_EXPR_INFO_DIE;
	}
	return -1;
}

struct elfrw_err *dwr_expr_map(uint8_t *data, size_t size, struct dwr_form_params params,
			       const char *section, uint64_t section_off,
			       struct dwr_expr_mapping *mapping)
{
	struct dwr_expr_walk w = dwr_expr_walk(data, size, params, section, section_off);
	struct dwr_op op;
	for (;;) {
		bool more;
		unsigned which;
		ELFRW_TRY(dwr_expr_next(&w, &op, &more));
		if (!more)
			return NULL;
		if (op.op == DW_OP_addr) {
			if (!is_tls(&w, &op))
				put_address(data + op.operand_off[0], params.address_size,
					    op.operand[0], mapping);
			continue;
		}
		if (op.op == DW_OP_GNU_encoded_addr) {
			unsigned n = encoded_size(&w, (uint8_t)op.operand[0]);
			if (op.operand[0] & 0xf0 || n < params.address_size)
				return elfrw_error_at(
					section, section_off + op.off,
					"encoded address in a DWARF expression: expected an absolute one,"
					" found encoding 0x%02x",
					(unsigned)op.operand[0]);
			put_address(data + op.operand_off[1], n, op.operand[1], mapping);
			continue;
		}
		int ref = reference_of(&w, &op, &which);
		if (ref >= 0 && mapping->fn)
			ELFRW_TRY(mapping->fn(mapping->arg, (enum dwr_expr_ref)ref,
					      op.operand[which], &op));
	}
}
