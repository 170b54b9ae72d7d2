/* cfi_row.c: see cfi_row.h.  dwarf/cfi.h has checked the instructions and where they end. */
#include "icf/export/cfi_row.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

#define MAX_STATES 16 /* that DW_CFA_remember_state keeps */

struct machine {
	const struct dwr_cfi *cfi;
	const struct dwr_fde *fde;
	const struct dwr_cie *cie;
	bool (*fn)(void *ctx, const struct icf_cfi_row *row);
	void *ctx;
	struct elfrw_rbuf r;
	struct icf_cfi_row row, initial, kept[MAX_STATES];
	unsigned n_kept;
	bool stopped;
};

static void set(struct machine *m, uint64_t reg, struct icf_rule rule)
{
	if (reg < ICF_CFI_REGISTERS)
		m->row.reg[reg] = rule;
}

static struct icf_rule numbered(enum icf_rule_kind kind, int64_t number)
{
	return (struct icf_rule){ .kind = (uint8_t)kind, .number = number };
}

static struct icf_rule expression(struct machine *m, enum icf_rule_kind kind)
{
	uint64_t size = elfrw_rbuf_uleb(&m->r);
	const uint8_t *p = elfrw_rbuf_take(&m->r, size);
	return (struct icf_rule){ .kind = (uint8_t)kind,
				  .expression = p,
				  .size = p ? (uint32_t)size : 0 };
}

/* The rules so far hold up to address TO. */
static void advance(struct machine *m, uint64_t to)
{
	const struct dwr_fde *f = m->fde;
	m->row.hi = to < f->pc_end ? to : f->pc_end;
	if (m->row.hi <= m->row.lo)
		return;
	if (!m->stopped)
		m->stopped = !m->fn(m->ctx, &m->row);
	m->row.lo = m->row.hi;
}

static void step(struct machine *m, uint64_t n)
{
	uint64_t left = m->fde->pc_end - m->row.lo, unit = m->cie->code_align;
	advance(m, unit && n > left / unit ? m->fde->pc_end : m->row.lo + n * unit);
}

static int64_t factored(const struct machine *m, uint64_t n)
{
	return (int64_t)(n * (uint64_t)m->cie->data_align);
}

static bool remember(struct machine *m, bool restore)
{
	if (restore ? !m->n_kept : m->n_kept == MAX_STATES)
		return false;
	if (!restore) {
		m->kept[m->n_kept++] = m->row;
		return true;
	}
	uint64_t lo = m->row.lo;
	m->row = m->kept[--m->n_kept];
	m->row.lo = lo;
	return true;
}

/* Instructions that define the CFA. */
static void define(struct machine *m, uint8_t op)
{
	struct icf_rule *cfa = &m->row.cfa;
	bool with_register =
		op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_register;
	if (op == DW_CFA_def_cfa_expression) {
		*cfa = expression(m, ICF_RULE_EXPRESSION);
		return;
	}
	if (with_register)
		cfa->reg = (uint32_t)elfrw_rbuf_uleb(&m->r);
	cfa->kind = ICF_RULE_OFFSET;
	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_offset)
		cfa->number = (int64_t)elfrw_rbuf_uleb(&m->r);
	else if (op != DW_CFA_def_cfa_register)
		cfa->number = factored(m, (uint64_t)elfrw_rbuf_sleb(&m->r));
}

/* Instructions with a register that they give a rule. */
static bool rule(struct machine *m, uint8_t op)
{
	struct elfrw_rbuf *r = &m->r;
	uint64_t reg = elfrw_rbuf_uleb(r);
	switch (op) {
	case DW_CFA_offset_extended:
		set(m, reg, numbered(ICF_RULE_OFFSET, factored(m, elfrw_rbuf_uleb(r))));
		return true;
	case DW_CFA_offset_extended_sf:
		set(m, reg, numbered(ICF_RULE_OFFSET, factored(m, (uint64_t)elfrw_rbuf_sleb(r))));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		set(m, reg, numbered(ICF_RULE_OFFSET, -factored(m, elfrw_rbuf_uleb(r))));
		return true;
	case DW_CFA_val_offset:
		set(m, reg, numbered(ICF_RULE_VAL_OFFSET, factored(m, elfrw_rbuf_uleb(r))));
		return true;
	case DW_CFA_val_offset_sf:
		set(m, reg,
		    numbered(ICF_RULE_VAL_OFFSET, factored(m, (uint64_t)elfrw_rbuf_sleb(r))));
		return true;
	case DW_CFA_register:
		set(m, reg,
		    (struct icf_rule){ .kind = ICF_RULE_REGISTER,
				       .reg = (uint32_t)elfrw_rbuf_uleb(r) });
		return true;
	case DW_CFA_restore_extended:
		if (reg < ICF_CFI_REGISTERS)
			m->row.reg[reg] = m->initial.reg[reg];
		return true;
	case DW_CFA_undefined: set(m, reg, numbered(ICF_RULE_UNDEFINED, 0)); return true;
	case DW_CFA_same_value: set(m, reg, numbered(ICF_RULE_SAME, 0)); return true;
	case DW_CFA_expression: set(m, reg, expression(m, ICF_RULE_EXPRESSION)); return true;
	case DW_CFA_val_expression:
		set(m, reg, expression(m, ICF_RULE_VAL_EXPRESSION));
		return true;
	}
	return false;
}

static bool set_location(struct machine *m)
{
	uint64_t raw, to,
		at = m->cfi->va + (uint64_t)(m->r.pos - m->cfi->data); /* of the operand */
	if (!dwr_pe_read(&m->r, m->cie->fde_encoding, m->cie->address_size, at, &raw, &to))
		return false;
	if (to > m->row.lo)
		advance(m, to);
	return true;
}

static bool execute(struct machine *m, uint8_t op)
{
	struct elfrw_rbuf *r = &m->r;
	switch (op & 0xc0) {
	case DW_CFA_advance_loc: step(m, op & 63); return true;
	case DW_CFA_offset:
		set(m, op & 63, numbered(ICF_RULE_OFFSET, factored(m, elfrw_rbuf_uleb(r))));
		return true;
	case DW_CFA_restore: m->row.reg[op & 63] = m->initial.reg[op & 63]; return true;
	}
	switch (op) {
	case DW_CFA_nop:
	case 0x2c: /* AARCH64_negate_ra_state_with_pc */
	case DW_CFA_GNU_window_save /* AARCH64_negate_ra_state */: return true;
	case DW_CFA_GNU_args_size: (void)elfrw_rbuf_uleb(r); return true;
	case DW_CFA_set_loc: return set_location(m);
	case DW_CFA_advance_loc1: step(m, elfrw_rbuf_u8(r)); return true;
	case DW_CFA_advance_loc2: step(m, elfrw_rbuf_u16(r)); return true;
	case DW_CFA_advance_loc4: step(m, elfrw_rbuf_u32(r)); return true;
	case DW_CFA_MIPS_advance_loc8: step(m, elfrw_rbuf_u64(r)); return true;
	case DW_CFA_remember_state: return remember(m, false);
	case DW_CFA_restore_state: return remember(m, true);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression: define(m, op); return true;
	}
	return rule(m, op);
}

static bool run(struct machine *m, const uint8_t *insn, size_t size)
{
	m->r = elfrw_rbuf(insn, size);
	while (elfrw_rbuf_left(&m->r) && !m->stopped)
		if (!execute(m, elfrw_rbuf_u8(&m->r)) || !elfrw_rbuf_ok(&m->r))
			return false;
	return true;
}

bool icf_cfi_rows(const struct dwr_cfi *cfi, const struct dwr_fde *fde,
		  bool (*fn)(void *ctx, const struct icf_cfi_row *row), void *ctx)
{
	struct machine m = { .cfi = cfi, .fde = fde, .fn = fn, .ctx = ctx };
	m.cie = &cfi->cie.data[fde->cie];
	m.row.lo = m.row.hi = fde->pc_end; /* in a CIE, nothing advances */
	if (!run(&m, m.cie->insn, m.cie->insn_size))
		return false;
	m.row.lo = m.row.hi = fde->pc_begin;
	m.initial = m.row;
	if (!run(&m, fde->insn, fde->insn_size))
		return false;
	advance(&m, fde->pc_end);
	return true;
}
