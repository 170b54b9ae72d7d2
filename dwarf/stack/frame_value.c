/* frame_value.c: see frame_value.h.
 *
 * DWARF expressions (DWARF 5, section 2.5) are evaluated as far as compilers use them for pointer
 * arguments; any other operator means "unknown".  DW_OP_entry_value is the value that the caller
 * passed (section 3.4.2), provided that the caller's call led directly here: after a tail call it
 * would be another function's argument.
 *
 * Cost: a walk over one function's DIEs for each question. */
#include "dwarf/stack/frame_value.h"
#include "dwarf/expr.h"
#include "elfrw/arch/arch.h"
#include <dwarf.h>

#define MAX_STACK   16
#define MAX_ENTRIES 8  /* from one caller to the next */
#define MAX_HOPS    16 /* from a DIE to the one with the value */

enum mode {
	AT_CALL, /* the value of a parameter when a call was made: no memory */
	NOW,
};

/* The expression that V of a DIE of UNIT is. */
struct expression {
	const uint8_t *data;
	size_t size;
	uint64_t off; /* in the section, for messages only */
};

void dwr_stack_deinit(struct dwr_stack *stack)
{
	dwr_abbrev_deinit(&stack->table);
	dwr_list_deinit(&stack->list);
}

/* A broken value counts as unknown. */
static bool fine(struct elfrw_err *err)
{
	elfrw_err_free(err);
	return !err;
}

static bool read_table(struct dwr_stack *st, const struct dwr_sym_unit *unit)
{
	static const uint16_t vendor[] = { DW_AT_GNU_call_site_value };
	static const uint8_t name[] = { DW_AT_location,      DW_AT_low_pc,
					DW_AT_frame_base,    DW_AT_artificial,
					DW_AT_type,          DW_AT_abstract_origin,
					DW_AT_specification, DW_AT_call_return_pc,
					DW_AT_call_value };
	struct dwr_want want = { .vendor = vendor, .n_vendor = 1 };
	for (unsigned i = 0; i < sizeof name; i++)
		DWR_WANT_NAME(&want, name[i]);
	struct dwr_bytes sec = dwr_sym_sec(st->sym, unit->file, DWR_ABBREV);
	return fine(dwr_abbrev_read(&st->table, sec.data, sec.size, unit->u.abbrev_off,
				    unit->u.params, &want));
}

static struct dwr_sym_unit *unit_around(struct dwr_stack *st, uint64_t die)
{
	struct dwr_sym_unit *unit = NULL;
	return fine(dwr_sym_unit_around(st->sym, dwr_sym_debug_file(st->sym), die, &unit)) ? unit
											   : NULL;
}

static bool walk_from(struct dwr_stack *st, const struct dwr_sym_unit *unit, uint64_t off,
		      struct dwr_cursor *ret)
{
	if (!unit || off < unit->u.die || off >= unit->u.end || !read_table(st, unit))
		return false;
	*ret = dwr_cursor_at_die(&unit->file->secs, &unit->u, &st->table, true, off);
	return true;
}

static bool next(struct dwr_cursor *cur, struct dwr_die *die)
{
	bool more;
	return fine(dwr_cursor_next(cur, die, &more)) && more;
}

/* The DIE at OFF alone. */
static bool read_die(struct dwr_stack *st, const struct dwr_sym_unit *unit, uint64_t off,
		     struct dwr_die *ret)
{
	struct dwr_cursor cur;
	return walk_from(st, unit, off, &cur) && next(&cur, ret);
}

/* The target of the reference V of UNIT; *UNIT becomes the target's unit. */
static bool reference(struct dwr_stack *st, struct dwr_sym_unit **unit, const struct dwr_value *v,
		      uint64_t *off)
{
	*off = dwr_sym_local_ref(*unit, v);
	if (*off != UINT64_MAX)
		return true;
	if (v->form != DW_FORM_ref_addr || (*unit)->file != dwr_sym_debug_file(st->sym))
		return false;
	*off = v->u;
	*unit = unit_around(st, v->u);
	return *unit != NULL;
}

static bool expression_of(const struct dwr_sym_unit *unit, const struct dwr_value *v,
			  struct expression *ret)
{
	switch (v ? v->form : 0) {
	case DW_FORM_exprloc:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		*ret = (struct expression){ unit->file->secs.sec[unit->u.sec].data + v->pos, v->u,
					    v->pos };
		return true;
	}
	return false;
}

/* The expression of the location list V that holds PC; false: none, or several. */
static bool list_at(struct dwr_stack *st, const struct dwr_sym_unit *unit,
		    const struct dwr_value *v, uint64_t pc, struct expression *ret)
{
	if (v->form != DW_FORM_sec_offset && v->form != DW_FORM_loclistx &&
	    v->form != DW_FORM_data4 && v->form != DW_FORM_data8)
		return false;
	bool v5 = unit->u.params.version >= 5, found = false;
	enum dwr_list_kind kind = v5 ? DWR_LIST_LOCLISTS : DWR_LIST_LOC;
	struct dwr_bytes sec = dwr_sym_sec(st->sym, unit->file, v5 ? DWR_LOCLISTS : DWR_LOC),
			 addr = dwr_sym_sec(st->sym, unit->file, DWR_ADDR);
	struct dwr_list_secs secs = { .addr = { ".debug_addr", addr.data, addr.size } };
	secs.list[kind] =
		(struct dwr_list_sec){ v5 ? ".debug_loclists" : ".debug_loc", sec.data, sec.size };
	uint64_t off = v->u;
	if (v->form == DW_FORM_loclistx &&
	    !fine(dwr_list_index(&secs, kind, &unit->cu, v->u, &off)))
		return false;
	if (!fine(dwr_list_read(&secs, kind, &unit->cu, off, DWR_LIST_NONE, &st->list)))
		return false;
	for (size_t i = 0; i < st->list.entry.len; i++) {
		const struct dwr_list_entry *e = &st->list.entry.data[i];
		if (e->how == DWR_LIST_DEFAULT || pc < e->begin || pc >= e->end)
			continue;
		if (found || e->expr > sec.size || e->expr_size > sec.size - e->expr)
			return false;
		found = true;
		*ret = (struct expression){ sec.data + e->expr, e->expr_size, e->expr };
	}
	return found;
}

/* ---- evaluation ---- */

struct eval {
	struct dwr_stack *st;
	size_t level;
	const struct dwr_sym_unit *unit;
	uint64_t function; /* the DIE whose frame base counts */
	enum mode mode;
	unsigned entries; /* callers gone through */
	bool in_base;     /* this is a frame base */
	uint64_t stack[MAX_STACK];
	unsigned n;
	bool is_register, is_value;
};

static bool evaluate(struct eval *e, const struct expression *x);
static bool passed(struct dwr_stack *st, size_t level, uint64_t die, unsigned reg, unsigned entries,
		   uint64_t *value);

static bool reg_value(const struct eval *e, uint64_t reg, uint64_t *value)
{
	const struct dwr_process *p = e->st->process;
	return reg < 64 && p->reg(p->ctx, e->level, (unsigned)reg, value);
}

/* The stack pointer before the call that made the frame: the caller's. */
static bool cfa(const struct eval *e, uint64_t *value)
{
	const struct dwr_process *p = e->st->process;
	return e->level + 1 < e->st->n &&
	       p->reg(p->ctx, e->level + 1, e->st->arch->dwarf_sp, value);
}

static bool frame_base(const struct eval *e, uint64_t *value)
{
	struct dwr_die die;
	struct expression x;
	if (e->in_base || !read_die(e->st, e->unit, e->function, &die))
		return false;
	const struct dwr_value *v = dwr_die_value(&die, DW_AT_frame_base);
	uint64_t at = e->st->addr[e->level] - (e->level != 0);
	if (!v || (!expression_of(e->unit, v, &x) && !list_at(e->st, e->unit, v, at, &x)))
		return false;
	struct eval base = { .st = e->st,
			     .level = e->level,
			     .unit = e->unit,
			     .function = e->function,
			     .mode = e->mode,
			     .in_base = true };
	if (!evaluate(&base, &x))
		return false;
	*value = base.stack[0];
	/* A register is the frame base only while the frame exists: not at its beginning or end,
	 * where the innermost level may be. */
	uint64_t top, depth = e->st->arch->frame_depth;
	return e->level || !base.is_register || (depth && cfa(e, &top) && *value + depth == top);
}

static bool entry_value(const struct eval *e, unsigned reg, uint64_t *value)
{
	struct dwr_stack *st = e->st;
	size_t outer = e->level + 1;
	uint64_t die;
	bool enters;
	return e->entries < MAX_ENTRIES && outer < st->n && st->addr[e->level] && st->addr[outer] &&
	       fine(dwr_callchain_enters(st->cc, st->addr[outer],
					 st->addr[e->level] - (e->level != 0), &enters)) &&
	       enters && dwr_stack_function(st, outer, &die) &&
	       passed(st, outer, die, reg, e->entries + 1, value);
}

static bool push(struct eval *e, uint64_t value)
{
	if (e->n == MAX_STACK)
		return false;
	e->stack[e->n++] = value;
	return true;
}

/* An operator with two arguments. */
static bool binary(struct eval *e, unsigned op)
{
	if (e->n < 2)
		return false;
	uint64_t b = e->stack[--e->n], *a = &e->stack[e->n - 1];
	switch (op) {
	case DW_OP_plus: *a += b; return true;
	case DW_OP_minus: *a -= b; return true;
	case DW_OP_and: *a &= b; return true;
	case DW_OP_or: *a |= b; return true;
	case DW_OP_mul: *a *= b; return true;
	case DW_OP_shl: *a = b < 64 ? *a << b : 0; return true;
	case DW_OP_shr: *a = b < 64 ? *a >> b : 0; return true;
	}
	return false;
}

static bool step(struct eval *e, const struct dwr_op *op)
{
	const struct dwr_process *p = e->st->process;
	uint64_t v;
	if (e->is_register || e->is_value)
		return false;
	if (op->op >= DW_OP_lit0 && op->op <= DW_OP_lit31)
		return push(e, op->op - DW_OP_lit0);
	if (op->op >= DW_OP_breg0 && op->op <= DW_OP_breg31)
		return reg_value(e, op->op - DW_OP_breg0, &v) && push(e, v + op->operand[0]);
	if ((op->op >= DW_OP_reg0 && op->op <= DW_OP_reg31) || op->op == DW_OP_regx) {
		e->is_register = true;
		return !e->n &&
		       reg_value(e,
				 op->op == DW_OP_regx ? op->operand[0]
						      : (uint64_t)op->op - DW_OP_reg0,
				 &v) &&
		       push(e, v);
	}
	switch (op->op) {
	case DW_OP_addr: return push(e, op->operand[0] + p->bias);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts: return push(e, op->operand[0]);
	case DW_OP_bregx: return reg_value(e, op->operand[0], &v) && push(e, v + op->operand[1]);
	case DW_OP_fbreg: return frame_base(e, &v) && push(e, v + op->operand[0]);
	case DW_OP_call_frame_cfa: return cfa(e, &v) && push(e, v);
	case DW_OP_plus_uconst:
		if (!e->n)
			return false;
		e->stack[e->n - 1] += op->operand[0];
		return true;
	case DW_OP_deref:
		return e->mode == NOW && e->n &&
		       p->memory(p->ctx, e->stack[e->n - 1], &e->stack[e->n - 1]);
	case DW_OP_stack_value: return e->is_value = true;
	case DW_OP_nop: return true;
	}
	return binary(e, op->op);
}

/* Leaves one value on E's stack. */
static bool evaluate(struct eval *e, const struct expression *x)
{
	struct dwr_expr_walk walk =
		dwr_expr_walk(x->data, x->size, e->unit->u.params, ".debug_info", x->off);
	struct dwr_op op;
	bool more, entry = false;
	uint64_t v;
	for (;;) {
		if (!fine(dwr_expr_next(&walk, &op, &more)))
			return false;
		if (!more)
			return e->n == 1 && !entry;
		if (entry) { /* the only operator inside of DW_OP_entry_value */
			if (op.depth != 1 || op.op < DW_OP_reg0 || op.op > DW_OP_reg31 ||
			    !entry_value(e, op.op - DW_OP_reg0, &v) || !push(e, v))
				return false;
			entry = false;
		} else if (op.depth)
			return false;
		else if (op.op == DW_OP_entry_value || op.op == DW_OP_GNU_entry_value) {
			if (e->is_register || e->is_value)
				return false;
			entry = true;
		} else if (!step(e, &op))
			return false;
	}
}

/* ---- questions ---- */

bool dwr_stack_function(struct dwr_stack *st, size_t level, uint64_t *die)
{
	struct dwr_sym_unit *unit;
	bool found;
	uint64_t at = st->addr[level];
	return at && fine(dwr_sym_unit_for(st->sym, at - (level != 0), &unit)) && unit &&
	       unit->file == dwr_sym_debug_file(st->sym) &&
	       fine(dwr_sym_function(st->sym, unit, at - (level != 0), die, &found)) && found;
}

/* Is the location V of a call site parameter register REG? */
static bool is_register(const struct dwr_sym_unit *unit, const struct dwr_value *v, unsigned reg)
{
	struct expression x;
	return expression_of(unit, v, &x) && x.size == 1 && reg < 32 &&
	       x.data[0] == DW_OP_reg0 + reg;
}

/* The expression for register REG at the call site of the function DIE that returns to SITE. */
static bool find_parameter(struct dwr_stack *st, const struct dwr_sym_unit *unit, uint64_t die,
			   uint64_t site, unsigned reg, struct expression *ret)
{
	struct dwr_cursor cur;
	struct dwr_die d;
	uint32_t inside = UINT32_MAX; /* depth of the call site's DIE */
	if (!walk_from(st, unit, die, &cur))
		return false;
	while (next(&cur, &d)) {
		if (d.depth <= inside)
			inside = UINT32_MAX;
		unsigned tag = d.abbrev->tag;
		bool gnu = tag == DW_TAG_GNU_call_site;
		if (gnu || tag == DW_TAG_call_site) {
			const struct dwr_value *pc =
				dwr_die_value(&d, gnu ? DW_AT_low_pc : DW_AT_call_return_pc);
			uint64_t at;
			if (pc &&
			    dwr_value_address(&unit->file->secs, &unit->u, &unit->root, pc, &at) &&
			    at == site)
				inside = d.depth;
		} else if (inside != UINT32_MAX &&
			   (tag == DW_TAG_call_site_parameter ||
			    tag == DW_TAG_GNU_call_site_parameter) &&
			   is_register(unit, dwr_die_value(&d, DW_AT_location), reg)) {
			const struct dwr_value *v = dwr_die_value(&d, DW_AT_call_value);
			return expression_of(
				unit, v ? v : dwr_die_value(&d, DW_AT_GNU_call_site_value), ret);
		}
	}
	return false;
}

static bool passed(struct dwr_stack *st, size_t level, uint64_t die, unsigned reg, unsigned entries,
		   uint64_t *value)
{
	const struct dwr_sym_unit *unit = unit_around(st, die);
	struct expression x;
	if (!st->addr[level] || !unit || !find_parameter(st, unit, die, st->addr[level], reg, &x))
		return false;
	struct eval e = { .st = st,
			  .level = level,
			  .unit = unit,
			  .function = die,
			  .mode = AT_CALL,
			  .entries = entries };
	if (!evaluate(&e, &x))
		return false;
	*value = e.stack[0];
	return true;
}

bool dwr_stack_passed(struct dwr_stack *st, size_t level, uint64_t die, unsigned reg,
		      uint64_t *value)
{
	return passed(st, level, die, reg, 0, value);
}

/* Is the parameter D of UNIT, or its origin, artificial? */
static bool is_artificial(struct dwr_stack *st, struct dwr_sym_unit *unit, struct dwr_die d)
{
	for (unsigned hops = 0; hops < MAX_HOPS; hops++) {
		const struct dwr_value *flag = dwr_die_value(&d, DW_AT_artificial),
				       *origin = dwr_die_value(&d, DW_AT_abstract_origin);
		uint64_t off;
		if (flag)
			return flag->u;
		if (!origin || !reference(st, &unit, origin, &off) || !read_die(st, unit, off, &d))
			return false;
	}
	return false;
}

bool dwr_stack_this(struct dwr_stack *st, size_t level, uint64_t die, uint64_t *value)
{
	struct dwr_sym_unit *unit = unit_around(st, die);
	struct dwr_cursor cur;
	struct dwr_die d;
	struct expression x;
	if (!walk_from(st, unit, die, &cur) || !next(&cur, &d))
		return false;
	while (next(&cur, &d) && (d.depth > 1 || d.abbrev->tag != DW_TAG_formal_parameter))
		;
	const struct dwr_value *v = d.depth == 1 && d.abbrev->tag == DW_TAG_formal_parameter
					    ? dwr_die_value(&d, DW_AT_location)
					    : NULL;
	if (!v)
		return false;
	bool always = expression_of(unit, v, &x);
	uint64_t at = st->addr[level] - (level != 0);
	if (!always && !list_at(st, unit, v, at, &x))
		return false;
	if (!is_artificial(st, unit, d))
		return false;
	struct eval e = { .st = st, .level = level, .unit = unit, .function = die, .mode = NOW };
	if (!evaluate(&e, &x))
		return false;
	*value = e.stack[0];
	if (e.is_register || e.is_value)
		/* Compilers do not mean a register for the whole function. */
		return !always || e.is_value;
	/* Unoptimized code first stores its arguments; before that the place holds something else.
	 */
	if (always && !level && !dwr_callchain_spills(st->cc, at))
		return false;
	return st->process->memory(st->process->ctx, *value, value);
}

bool dwr_stack_returns_plain(struct dwr_stack *st, uint64_t die)
{
	struct dwr_sym_unit *unit = unit_around(st, die);
	struct dwr_die d;
	uint64_t off = die;
	bool in_type = false;
	for (unsigned hops = 0; hops < MAX_HOPS && unit && read_die(st, unit, off, &d); hops++) {
		const struct dwr_value *type = dwr_die_value(&d, DW_AT_type), *v = type;
		switch (d.abbrev->tag) {
		case DW_TAG_subprogram:
			v = v ? v : dwr_die_value(&d, DW_AT_specification);
			v = v ? v : dwr_die_value(&d, DW_AT_abstract_origin);
			if (!v)
				return !in_type;
			break;
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!v) /* const void and the like */
				return in_type;
			break;
		case DW_TAG_base_type:
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
		case DW_TAG_rvalue_reference_type:
		case DW_TAG_enumeration_type:
		case DW_TAG_ptr_to_member_type:
		case DW_TAG_unspecified_type: return in_type;
		default: return false;
		}
		in_type |= type != NULL;
		if (!reference(st, &unit, v, &off))
			return false;
	}
	return false;
}
