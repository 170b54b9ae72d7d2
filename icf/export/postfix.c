/* postfix.c: see postfix.h.
 *
 * A DWARF expression is computed as far as its values are known, and written out where they are
 * not.  The address of the instruction itself is known, up to where the program is loaded, which
 * is a multiple of the page size: linkers' rules for the entries of a procedure linkage table
 * depend on its low bits. */
#include "icf/export/postfix.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>

#define MAX_VALUES 8

/* TEXT (empty: 0) + number. */
struct value {
	char text[ICF_POSTFIX_SIZE];
	int64_t number;
	bool placed; /* the program's load address is missing */
};

struct machine {
	const struct icf_postfix_at *at;
	struct value value[MAX_VALUES];
	unsigned n;
};

const char *icf_postfix_register(const struct icf_postfix_at *at, uint64_t reg)
{
	return reg < at->arch->n_breakpad_registers ? at->arch->breakpad_register[reg] : NULL;
}

/* Writes V out; false: too long, or not to be said. */
static bool spell(const struct value *v, char ret[ICF_POSTFIX_SIZE])
{
	int n;
	if (v->placed)
		return false;
	if (!*v->text)
		n = snprintf(ret, ICF_POSTFIX_SIZE, "%" PRId64, v->number);
	else if (v->number)
		n = snprintf(ret, ICF_POSTFIX_SIZE, "%s %" PRId64 " +", v->text, v->number);
	else
		n = snprintf(ret, ICF_POSTFIX_SIZE, "%s", v->text);
	return n < ICF_POSTFIX_SIZE;
}

static struct value *push(struct machine *m)
{
	if (m->n == MAX_VALUES)
		return NULL;
	m->value[m->n] = (struct value){ 0 };
	return &m->value[m->n++];
}

static bool push_number(struct machine *m, uint64_t number)
{
	struct value *v = push(m);
	if (v)
		v->number = (int64_t)number;
	return v;
}

static bool push_register(struct machine *m, uint64_t reg, int64_t add)
{
	const char *name = icf_postfix_register(m->at, reg);
	struct value *v = name ? push(m) : NULL;
	if (!v)
		return false;
	v->number = add;
	if (reg == m->at->cie->ra && reg != m->at->arch->dwarf_sp) {
		v->number += (int64_t)m->at->pc;
		v->placed = true;
	} else
		snprintf(v->text, sizeof v->text, "%s", name);
	return true;
}

/* A * B and the like, where one is known and the other may not be. */
static bool combine(struct value *a, const struct value *b, char op)
{
	struct value was = *a;
	char left[ICF_POSTFIX_SIZE];
	if (*b->text || b->placed || !spell(&was, left))
		return false;
	a->number = 0;
	return snprintf(a->text, sizeof a->text, "%s %" PRId64 " %c", left, b->number, op) <
	       (int)sizeof a->text;
}

static bool add(struct value *a, const struct value *b)
{
	if (*a->text && *b->text) {
		char left[ICF_POSTFIX_SIZE], right[ICF_POSTFIX_SIZE];
		if (!spell(a, left) || !spell(b, right))
			return false;
		a->number = 0;
		return snprintf(a->text, sizeof a->text, "%s %s +", left, right) <
		       (int)sizeof a->text;
	}
	if (a->placed && b->placed)
		return false;
	if (*b->text)
		memcpy(a->text, b->text, sizeof a->text);
	a->number = (int64_t)((uint64_t)a->number + (uint64_t)b->number);
	a->placed |= b->placed;
	return true;
}

/* Two numbers; the low bits of a place are known. */
static bool compute(struct value *a, const struct value *b, uint8_t op)
{
	uint64_t x = (uint64_t)a->number, y = (uint64_t)b->number;
	if (a->placed && op == DW_OP_and && y < 4096)
		a->placed = false;
	if (a->placed || b->placed)
		return false;
	switch (op) {
	case DW_OP_and: x &= y; break;
	case DW_OP_or: x |= y; break;
	case DW_OP_xor: x ^= y; break;
	case DW_OP_mul: x *= y; break;
	case DW_OP_shl: x = y < 64 ? x << y : 0; break;
	case DW_OP_shr: x = y < 64 ? x >> y : 0; break;
	case DW_OP_eq: x = x == y; break;
	case DW_OP_ne: x = x != y; break;
	case DW_OP_ge: x = a->number >= b->number; break;
	case DW_OP_gt: x = a->number > b->number; break;
	case DW_OP_le: x = a->number <= b->number; break;
	case DW_OP_lt: x = a->number < b->number; break;
	default: return false;
	}
	a->number = (int64_t)x;
	return true;
}

static bool binary(struct machine *m, uint8_t op)
{
	if (m->n < 2)
		return false;
	struct value *a = &m->value[m->n - 2], *b = &m->value[m->n - 1];
	m->n--;
	if (op == DW_OP_plus)
		return add(a, b);
	if (op == DW_OP_minus) {
		if (*b->text || b->placed)
			return false;
		a->number = (int64_t)((uint64_t)a->number - (uint64_t)b->number);
		return true;
	}
	if (!*a->text && !*b->text)
		return compute(a, b, op);
	uint64_t low = -(uint64_t)b->number; /* and with -16: round down to a multiple of 16 */
	if (op == DW_OP_and && !*b->text && b->number < 0 && !(low & (low - 1))) {
		struct value by = { .number = (int64_t)low };
		return combine(a, &by, '@');
	}
	return op == DW_OP_mul && combine(a, b, '*');
}

static bool deref(struct machine *m)
{
	struct value *v = m->n ? &m->value[m->n - 1] : NULL;
	char address[ICF_POSTFIX_SIZE];
	if (!v || !spell(v, address))
		return false;
	v->number = 0;
	return snprintf(v->text, sizeof v->text, "%s ^", address) < (int)sizeof v->text;
}

static bool execute(struct machine *m, struct elfrw_rbuf *r, uint8_t op)
{
	uint64_t reg;
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return push_number(m, op - DW_OP_lit0);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return push_register(m, op - DW_OP_breg0, elfrw_rbuf_sleb(r));
	switch (op) {
	case DW_OP_const1u: return push_number(m, elfrw_rbuf_u8(r));
	case DW_OP_const1s: return push_number(m, (uint64_t)(int8_t)elfrw_rbuf_u8(r));
	case DW_OP_const2u: return push_number(m, elfrw_rbuf_u16(r));
	case DW_OP_const2s: return push_number(m, (uint64_t)(int16_t)elfrw_rbuf_u16(r));
	case DW_OP_const4u: return push_number(m, elfrw_rbuf_u32(r));
	case DW_OP_const4s: return push_number(m, (uint64_t)(int32_t)elfrw_rbuf_u32(r));
	case DW_OP_constu: return push_number(m, elfrw_rbuf_uleb(r));
	case DW_OP_consts: return push_number(m, (uint64_t)elfrw_rbuf_sleb(r));
	case DW_OP_bregx:
		reg = elfrw_rbuf_uleb(r);
		return push_register(m, reg, elfrw_rbuf_sleb(r));
	case DW_OP_deref: return deref(m);
	case DW_OP_nop: return true;
	case DW_OP_plus_uconst: return push_number(m, elfrw_rbuf_uleb(r)) && binary(m, DW_OP_plus);
	case DW_OP_dup: {
		struct value *v = m->n ? push(m) : NULL;
		if (v)
			*v = m->value[m->n - 2];
		return v;
	}
	}
	return binary(m, op);
}

/* The value of an expression; CFA: it begins with the CFA. */
static bool evaluate(const struct icf_postfix_at *at, const struct icf_rule *rule, bool cfa,
		     struct value *ret)
{
	struct machine m = { .at = at };
	struct elfrw_rbuf r = elfrw_rbuf(rule->expression, rule->size);
	if (cfa)
		snprintf(push(&m)->text, ICF_POSTFIX_SIZE, ".cfa");
	while (elfrw_rbuf_left(&r))
		if (!execute(&m, &r, elfrw_rbuf_u8(&r)) || !elfrw_rbuf_ok(&r))
			return false;
	if (!m.n)
		return false;
	*ret = m.value[m.n - 1];
	return true;
}

bool icf_postfix_cfa(const struct icf_postfix_at *at, const struct icf_rule *cfa,
		     char ret[ICF_POSTFIX_SIZE])
{
	struct value v;
	if (cfa->kind == ICF_RULE_EXPRESSION)
		return evaluate(at, cfa, false, &v) && spell(&v, ret);
	const char *name = icf_postfix_register(at, cfa->reg);
	if (cfa->kind != ICF_RULE_OFFSET || !name)
		return false;
	return snprintf(ret, ICF_POSTFIX_SIZE, "%s %" PRId64 " +", name, cfa->number) <
	       ICF_POSTFIX_SIZE;
}

bool icf_postfix_rule(const struct icf_postfix_at *at, const struct icf_rule *rule, uint64_t reg,
		      char ret[ICF_POSTFIX_SIZE])
{
	const char *name =
		icf_postfix_register(at, rule->kind == ICF_RULE_REGISTER ? rule->reg : reg);
	struct value v;
	*ret = 0;
	switch (rule->kind) {
	case ICF_RULE_OFFSET:
	case ICF_RULE_VAL_OFFSET:
		snprintf(ret, ICF_POSTFIX_SIZE, ".cfa %" PRId64 " +%s", rule->number,
			 rule->kind == ICF_RULE_OFFSET ? " ^" : "");
		return true;
	case ICF_RULE_SAME:
	case ICF_RULE_REGISTER:
		if (name)
			snprintf(ret, ICF_POSTFIX_SIZE, "%s", name);
		return name;
	case ICF_RULE_EXPRESSION:
	case ICF_RULE_VAL_EXPRESSION:
		if (!evaluate(at, rule, true, &v) || !spell(&v, ret))
			return false;
		if (rule->kind == ICF_RULE_EXPRESSION) {
			size_t n = strlen(ret);
			if (n + 3 > ICF_POSTFIX_SIZE)
				return false;
			memcpy(ret + n, " ^", 3);
		}
		return true;
	}
	return true;
}
