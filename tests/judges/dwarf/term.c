/* term.c: places and expressions in terms that do not depend on where code is. */
#include "tests/judges/dwarf/term.h"
#include <stdlib.h>
#include <string.h>

struct jname term_name_in(struct jside s, uint64_t va, uint64_t byte)
{
	const struct jmap *m = &s.j->map;
	uint32_t u = s.out ? jmap_find_new(m, byte) : jmap_find(m, byte);

	if (u != JNONE)
		return (struct jname){ m->unit[u].kept,
				       va - (s.out ? m->unit[u].new : m->unit[u].old) };
	u = s.out ? jmap_find_thunk(m, byte) : JNONE;
	if (u != JNONE && byte == m->unit[u].thunk)
		return (struct jname){ m->unit[u].kept, 0 };
	return (struct jname){ JNONE, 0 };
}

struct jtoken term_place(struct jside s, uint64_t va, enum jhow how)
{
	struct jtoken t = { .what = PLACE, .number = va };

	s.j->n_addrs += !s.out;
	if (!(s.out ? jmap_exec_out : jmap_exec_in)(&s.j->map, va) &&
	    !(how != BEGINS && va && term_name_in(s, va, va - 1).unit != JNONE))
		t.what = NUMBER;
	t.name[0] = term_name_in(s, va, how == ENDS && va ? va - 1 : va);
	t.name[1] = how == EITHER && va ? term_name_in(s, va, va - 1) : (struct jname){ JNONE, 0 };
	return t;
}

bool term_same_name(struct jname a, struct jname b)
{
	return a.unit != JNONE && a.unit == b.unit && a.off == b.off;
}

/* Is B of the output what A of the input is? */
static bool same(const struct jtoken *a, const struct jtoken *b)
{
	if (a->what == NOTHING)
		return true;
	if (a->what == NUMBER)
		return b->number == a->number && (b->what == NUMBER || b->what == PLACE);
	if (a->what == BYTES)
		return b->what == BYTES && a->size == b->size &&
		       !memcmp(a->bytes, b->bytes, a->size);
	/* Between two functions nothing has a place in the output. */
	if (a->name[0].unit == JNONE && a->name[1].unit == JNONE)
		return true;
	for (int i = 0; i < 4; i++)
		if (term_same_name(a->name[i & 1], b->name[i >> 1]))
			return true;
	return false;
}

void term_add(struct jtokens *s, struct jtoken t)
{
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 16;
		s->v = realloc(s->v, s->cap * sizeof(t));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = t;
}

struct jtoken term_number(uint64_t x)
{
	return (struct jtoken){ .what = NUMBER, .number = x };
}

struct jtoken term_bytes(const void *p, uint64_t n)
{
	return (struct jtoken){ .what = BYTES, .bytes = p, .size = n };
}

const char *term_title(Dwarf_Die *die)
{
	const char *n = dwarf_diename(die);

	return n ? n : "no name";
}

/* The address that operation OP of the attribute takes from .debug_addr. */
static struct jtoken indexed(struct jside s, Dwarf_Attribute *attr, const Dwarf_Op *op)
{
	Dwarf_Attribute x;
	Dwarf_Addr va;

	if (dwarf_getlocation_attr(attr, op, &x) || dwarf_formaddr(&x, &va)) {
		s.j->n_skipped++;
		return (struct jtoken){ 0 };
	}
	return term_place(s, va, BEGINS);
}

static void operation(struct jside s, Dwarf_Attribute *attr, const Dwarf_Op *op,
		      struct jtokens *ret)
{
	const uint8_t *block = (const uint8_t *)(uintptr_t)op->number2;

	term_add(ret, term_number(op->atom));
	term_add(ret, term_number(op->offset));
	switch (op->atom) {
	case DW_OP_addr: term_add(ret, term_place(s, op->number, BEGINS)); break;
	case DW_OP_addrx:
	case DW_OP_constx:
	case DW_OP_GNU_addr_index:
	case DW_OP_GNU_const_index: term_add(ret, indexed(s, attr, op)); break;
	case DW_OP_implicit_value:
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value: /* libdw: the length, and where the block is in memory */
		term_add(ret, term_bytes(block, op->number));
		break;
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
		term_add(ret, term_number(op->number));
		term_add(ret, term_bytes(block, *block + UINT64_C(1)));
		break;
	default: term_add(ret, term_number(op->number)); term_add(ret, term_number(op->number2));
	}
}

struct jtokens term_expression(struct jside s, Dwarf_Attribute *attr, const Dwarf_Op *op, size_t n)
{
	struct jtokens ret = { 0 };

	for (size_t i = 0; i < n; i++)
		operation(s, attr, &op[i], &ret);
	return ret;
}

/* Frees both. */
bool term_same(struct jtokens a, struct jtokens b)
{
	bool ok = a.n == b.n;

	for (size_t i = 0; i < a.n && ok; i++)
		ok = same(&a.v[i], &b.v[i]);
	free(a.v);
	free(b.v);
	return ok;
}
