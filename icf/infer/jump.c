/* jump.c: how an indirect jump gets its target, read backwards from the jump.
 *
 *	compare	index, N; jump to default if above
 *	address	base = table
 *	load	distance = base[index], 4 bytes, sign-extended
 *	add	distance += base
 *	jump	distance
 *
 * This also covers the orders and variants that GCC and LLVM produce: a distant lea (hoisted out of
 * a loop, spilled), a load in two instructions (-O0), a bound that a mask or a comparison of the
 * byte in memory proves.  defs.c finds all writers of a register that reach the jump. */
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"
#include "icf/program/end.h"

/* What the high halves D name, if they all name one page; else 0. */
static uint64_t only_page(const struct icf_program *prog, const struct icf_trace *t,
			  const struct icf_defs *d)
{
	uint64_t page = d->n && !d->full ? t->insn.data[d->def[0].at].in.target : 0;
	for (unsigned k = 0; k < d->n; k++) {
		const struct elfrw_insn *in = &t->insn.data[d->def[k].at].in;
		if (d->def[k].kind != ICF_DEF_ADDRESS || !in->pcrel_size ||
		    !icf_is_half(prog->arch, in) || in->target != page)
			return 0;
	}
	return page;
}

/* All definitions of register R that reach instruction AT.  Sums with a low half are addresses, if
 * only one high half reaches them: a compiler may put it into a register once, for many places. */
static struct icf_defs defs_of(const struct icf_program *prog, uint32_t unit, struct icf_trace *t,
			       size_t at, unsigned r, bool past_calls)
{
	struct icf_defs d = icf_defs_reaching(prog, unit, t, at, r, past_calls);
	for (unsigned k = 0; k < d.n && prog->arch->low_form; k++) {
		const struct elfrw_insn *in = &t->insn.data[d.def[k].at].in;
		if (d.def[k].kind != ICF_DEF_OTHER ||
		    !prog->arch->low_form(in, icf_code_of(prog, unit, t, d.def[k].at)))
			continue;
		struct icf_defs high =
			icf_defs_reaching(prog, unit, t, d.def[k].at, in->base, true);
		d.def[k].page = only_page(prog, t, &high);
		if (d.def[k].page)
			d.def[k].kind = ICF_DEF_ADDRESS;
	}
	return d;
}

static struct icf_defs reaching(const struct icf_program *prog, uint32_t unit, struct icf_trace *t,
				size_t at, unsigned r)
{
	return defs_of(prog, unit, t, at, r, true);
}

/* The address that D, of kind ICF_DEF_ADDRESS, is. */
static uint64_t address_of(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			   const struct icf_def *d)
{
	const struct elfrw_arch *arch = prog->arch;
	const uint8_t *code = icf_code_of(prog, unit, t, d->at);
	if (!d->page)
		return icf_address_at(prog, unit, t, d->at);
	return elfrw_form_read(&arch->form[arch->low_form(&t->insn.data[d->at].in, code)], code,
			       d->page);
}

static bool all(const struct icf_defs *d, enum icf_def_kind kind)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->def[i].kind != kind)
			return false;
	return d->n && !d->full;
}

static bool has(const struct icf_defs *d, enum icf_def_kind kind)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->def[i].kind == kind)
			return true;
	return d->full;
}

static struct icf_jump unknown(void)
{
	return (struct icf_jump){ .kind = ICF_JUMP_UNKNOWN };
}

static bool find_distances(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t)
{
	for (size_t i = 0; i < t->insn.len; i++) {
		const struct elfrw_insn *in = &t->insn.data[i].in;
		bool indexed = (in->flags & ELFRW_INSN_MEM) && in->index != ELFRW_REG_NONE;
		if (in->flags & ELFRW_INSN_MEM && !indexed)
			continue;
		struct elfrw_effect e = icf_effect_at(prog, unit, t, i);
		/* Without optimization, the distance is extended later, in one register. */
		if (indexed ? icf_loads_entry(prog, &e)
			    : e.op == ELFRW_OP_SIGN_EXTEND && e.dst == e.a &&
				      e.dst == prog->arch->model->result)
			return true;
	}
	return false;
}

/* Does the unit load distances from tables?  An interpreter asks for each of its jumps. */
static bool loads_distances(const struct icf_program *prog, uint32_t unit, struct icf_trace *t)
{
	if (t->distances == ICF_MAYBE)
		t->distances = find_distances(prog, unit, t) ? ICF_YES : ICF_NO;
	return t->distances == ICF_YES;
}

static bool push_jump(struct icf_jumps *ret, struct icf_jump j)
{
	for (unsigned i = 0; i < ret->n; i++)
		if (ret->jump[i].group == j.group && ret->jump[i].base == j.base &&
		    ret->jump[i].table == j.table && ret->jump[i].kind == j.kind) {
			ret->jump[i].open |= j.open;
			return true;
		}
	if (ret->n == sizeof ret->jump / sizeof *ret->jump)
		return false;
	ret->jump[ret->n++] = j;
	return true;
}

/* The two parts of a sum: a distance, and the address that it counts from. */
struct sum {
	struct icf_defs dist, base;
	bool loaded; /* the distance was seen to come from a table */
};

static void swap_parts(struct sum *s)
{
	struct icf_defs swap = s->dist;
	s->dist = s->base;
	s->base = swap;
}

/* Finds the parts of sum D. */
static void find_parts(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
		       const struct icf_def *d, struct sum *s)
{
	bool two = d->kind == ICF_DEF_ADD;
	s->dist = reaching(prog, i, t, d->at, two ? d->a : d->reg);
	s->base.n = 0;
	s->base.full = false;
	if (two) {
		s->base = reaching(prog, i, t, d->at, d->b);
		/* What is shifted is the distance. */
		if (d->shift || !all(&s->dist, ICF_DEF_DIST))
			swap_parts(s);
	}
	/* A distance may come from the stack. */
	s->loaded = all(&s->dist, ICF_DEF_DIST);
	if (!s->loaded && !d->shift && !has(&s->base, ICF_DEF_ADDRESS))
		swap_parts(s);
}

/* The shape of a table whose entries D adds, from a LABEL or from its start; NULL: no compiler
 * makes such tables. */
static const struct elfrw_table_shape *shape_of(const struct icf_program *prog, const struct sum *s,
						const struct icf_def *d, bool label)
{
	const struct elfrw_model *m = prog->arch->model;
	unsigned size = s->loaded ? s->dist.def[0].size : 4;
	bool sign = !s->loaded || s->dist.def[0].sign;
	for (unsigned k = 1; s->loaded && k < s->dist.n; k++)
		if (s->dist.def[k].size != size || s->dist.def[k].sign != sign)
			return NULL;
	/* The sum extends the entry, or what the load extended already. */
	if (d->part && d->part == size)
		sign = d->sign;
	else if (d->part && (d->part < size || (sign && !d->sign)))
		return NULL;
	for (unsigned i = 0; i < m->n_tables; i++)
		if (m->table[i].size == size && m->table[i].sign == sign &&
		    m->table[i].shift == d->shift && m->table[i].label == label)
			return &m->table[i];
	return NULL;
}

static bool is_packed(const struct elfrw_table_shape *s)
{
	return s->size < 4 || s->shift;
}

/* Addresses that a register may hold.  Paths that are never executed contribute other values; the
 * data shows which of them is a table. */
struct addresses {
	uint64_t va[8];
	unsigned n;
	bool full;
};

static void add_address(struct addresses *a, uint64_t va)
{
	for (unsigned k = 0; k < a->n; k++)
		if (a->va[k] == va)
			return;
	if (a->n < sizeof a->va / sizeof *a->va)
		a->va[a->n++] = va;
	else
		a->full = true;
}

static void add_addresses(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
			  const struct icf_defs *d, struct addresses *ret)
{
	ret->full |= d->full;
	for (unsigned k = 0; k < d->n; k++)
		if (d->def[k].kind == ICF_DEF_ADDRESS)
			add_address(ret, address_of(prog, i, t, &d->def[k]));
}

/* A sum that a jump goes to. */
struct switch_at {
	const struct icf_def *def;
	const struct sum *sum;
	const struct addresses *tables; /* of small entries */
	struct icf_jump jump;           /* what is known without the sum's base */
};

/* Is the address that instruction AT computes a label at the unit's end? */
static bool is_own_end(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
		       size_t at)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	uint32_t k = (uint32_t)LOWER_BOUND(0, u->n_ref, mid, ref[mid].off < t->insn.data[at].pos);
	return k < u->n_ref && ref[k].off == t->insn.data[at].pos &&
	       icf_names_own_end(prog, i, &ref[k]);
}

/* Adds the tables at the addresses that the jump counts from.  Paths that are never executed
 * contribute other values; the data shows which of the addresses are tables. */
static bool push_tables(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
			const struct switch_at *w, struct icf_jumps *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	bool any = false;
	for (unsigned k = 0; k < w->sum->base.n; k++) {
		const struct icf_def *b = &w->sum->base.def[k];
		struct icf_jump j = w->jump;
		j.base = 0;
		if (b->kind == ICF_DEF_ADDRESS) {
			j.base = address_of(prog, i, t, b);
			if (j.base - u->start < u->end - u->start ||
			    (j.base == u->end && is_own_end(prog, i, t, b->at)))
				j.kind = ICF_JUMP_LOCAL;
		} else if (b->kind != ICF_DEF_LOAD) /* spilled */
			continue;
		j.shape = shape_of(prog, w->sum, w->def, j.kind == ICF_JUMP_LOCAL);
		if (!j.shape || (is_packed(j.shape) && !w->tables->n))
			return false;
		for (unsigned n = 0; n == 0 || (is_packed(j.shape) && n < w->tables->n); n++) {
			j.table = is_packed(j.shape) ? w->tables->va[n] : 0;
			if (!push_jump(ret, j))
				return false;
		}
		any = true;
	}
	return any;
}

/* The register that instruction K of the unit stores at DISP of the frame that LOAD reads, or
 * ELFRW_REG_NONE. */
static unsigned stored_at(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
			  size_t k, const struct elfrw_insn *load, int64_t disp)
{
	const struct elfrw_insn *st = &t->insn.data[k].in;
	if (!(st->flags & ELFRW_INSN_MEM) || st->base != load->base || st->index != ELFRW_REG_NONE)
		return ELFRW_REG_NONE;
	struct elfrw_effect e = icf_effect_at(prog, i, t, k);
	/* A changed base would be another frame. */
	bool more = e.op == ELFRW_OP_STORE_MORE && !e.writes;
	if ((e.op != ELFRW_OP_STORE && !more) || e.width != 8)
		return ELFRW_REG_NONE;
	return e.disp == disp ? e.a : more && e.disp + 8 == disp ? e.b : ELFRW_REG_NONE;
}

/* The addresses that the unit stores where instruction AT loads from its frame. */
static void add_spilled(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
			struct addresses *ret)
{
	const struct elfrw_insn *load = &t->insn.data[at].in;
	int64_t disp = icf_effect_at(prog, i, t, at).disp;
	for (size_t k = 0; k < t->insn.len; k++) {
		unsigned r = stored_at(prog, i, t, k, load, disp);
		if (r == ELFRW_REG_NONE)
			continue;
		struct icf_defs d = reaching(prog, i, t, k, r);
		add_addresses(prog, i, t, &d, ret);
	}
}

/* Where the table may be that the load AT reads.  None: unknown. */
static struct addresses tables_of(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				  size_t at)
{
	struct addresses ret = { .n = 0 };
	struct icf_defs d = reaching(prog, i, t, at, t->insn.data[at].in.base);
	add_addresses(prog, i, t, &d, &ret);
	if (!ret.n && d.n == 1 && !d.full && d.def[0].kind == ICF_DEF_LOAD &&
	    icf_from_frame(prog, &t->insn.data[d.def[0].at].in))
		add_spilled(prog, i, t, d.def[0].at, &ret);
	if (ret.full)
		ret.n = 0;
	return ret;
}

/* The jump goes to the sum D of a table's address and a distance. */
static bool through_table(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
			  const struct icf_def *d, unsigned group, struct icf_jumps *ret)
{
	struct sum s;
	find_parts(prog, i, t, d, &s);
	/* A sum with neither a distance nor a table's address does not use a table. */
	if (!s.loaded && !has(&s.base, ICF_DEF_ADDRESS))
		return !has(&s.dist, ICF_DEF_DIST) && !has(&s.base, ICF_DEF_DIST);
	/* A value loaded as 8 bytes from elsewhere may be an 8-byte distance, which belongs to no
	 * table known here. */
	for (unsigned k = 0; !s.loaded && k < s.dist.n; k++)
		if (s.dist.def[k].kind == ICF_DEF_LOAD &&
		    !icf_from_frame(prog, &t->insn.data[s.dist.def[k].at].in))
			return false;
	if (!s.loaded && d->kind == ICF_DEF_ADD_MEM)
		return false;
	struct icf_jump j = { .kind = ICF_JUMP_TABLE, .group = group };
	struct addresses tables = { .n = 0 };
	/* With several loads, no single bound counts. */
	if (s.loaded && s.dist.n == 1) {
		size_t at = s.dist.def[0].at;
		const struct elfrw_insn *l = &t->insn.data[at].in;
		bool indexed = l->index != ELFRW_REG_NONE && l->scale == s.dist.def[0].size;
		if (s.dist.def[0].size < 4 || d->shift) {
			tables = tables_of(prog, i, t, at);
			j.bound = 1;
			j.open = true;
			if (indexed)
				j.bound = icf_find_packed_bound(prog, i, t, at, l->index, &j.open);
		} else if (indexed) {
			j.bound = icf_find_bound(prog, i, t, at, l->index, &j.cap);
		}
	}
	if (d->kind == ICF_DEF_ADD_MEM)
		return (j.shape = shape_of(prog, &s, d, false)) && push_jump(ret, j);
	const struct switch_at w = { d, &s, &tables, j };
	return push_tables(prog, i, t, &w, ret);
}

/* The register that indirect call or jump IN goes to, or ELFRW_REG_NONE. */
static unsigned target_register(const struct icf_program *prog, uint32_t i,
				const struct icf_trace *t, size_t at)
{
	if (t->insn.data[at].in.flags & ELFRW_INSN_MEM)
		return ELFRW_REG_NONE;
	return icf_effect_at(prog, i, t, at).a;
}

bool icf_call_adds(const struct icf_program *prog, uint32_t i, const struct icf_trace *t, size_t at)
{
	unsigned r = target_register(prog, i, t, at);
	if (r == ELFRW_REG_NONE)
		return false;
	for (size_t k = at, n = 0; k-- > 0 && n < 16 && !icf_ends_block(&t->insn.data[k].in); n++) {
		struct icf_def d = icf_effect(prog, i, t, k, r);
		if (d.kind == ICF_DEF_COPY && d.a != ELFRW_REG_NONE)
			r = d.a;
		else if (d.kind == ICF_DEF_OTHER && prog->arch->low_form &&
			 prog->arch->low_form(&t->insn.data[k].in, icf_code_of(prog, i, t, k)))
			return false; /* an address in two halves */
		else if (d.kind != ICF_DEF_NONE)
			return d.kind == ICF_DEF_ADD || d.kind == ICF_DEF_ADD_MEM ||
			       d.kind == ICF_DEF_OTHER;
	}
	return false;
}

/* The jump goes to the contents of a frame slot: some paths store sums there, others store
 * pointers. */
static bool through_slot(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
			 struct icf_jumps *ret)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	int64_t disp = icf_effect_at(prog, i, t, at).disp;
	unsigned group = 0;
	if (in->pcrel_size || !icf_from_frame(prog, in) || !loads_distances(prog, i, t))
		return true;
	for (size_t k = 0; k < t->insn.len; k++) {
		const struct elfrw_insn *st = &t->insn.data[k].in;
		if (!(st->flags & ELFRW_INSN_MEM) || st->base != in->base ||
		    st->index != ELFRW_REG_NONE)
			continue;
		struct elfrw_effect e = icf_effect_at(prog, i, t, k);
		if (e.op != ELFRW_OP_STORE || e.width != 8 || e.a == ELFRW_REG_NONE ||
		    e.disp != disp)
			continue;
		struct icf_defs d = icf_defs_reaching(prog, i, t, k, e.a, false);
		for (unsigned n = 0; n < d.n; n++)
			if (d.def[n].kind == ICF_DEF_ADD &&
			    !through_table(prog, i, t, &d.def[n], group++, ret))
				return false;
	}
	return true;
}

/* Does DEF give a jump a pointer that leads out of the unit?  A sum with a distance may have been
 * kept in the frame. */
static bool leads_out(const struct icf_program *prog, const struct icf_trace *t,
		      const struct icf_def *d)
{
	switch (d->kind) {
	case ICF_DEF_LOAD:
		return t->sealed && (t->plain || !icf_from_frame(prog, &t->insn.data[d->at].in));
	case ICF_DEF_RESULT:
	case ICF_DEF_ENTRY:
	case ICF_DEF_NUMBER:
	case ICF_DEF_ADDRESS: return t->sealed;
	default: return false;
	}
}

/* All definitions of register R that reach jump AT.  Behind a call only sums of tables matter: few
 * functions preserve such a register. */
static struct icf_defs all_reaching(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				    size_t at, unsigned r)
{
	struct icf_defs d = defs_of(prog, i, t, at, r, false), more = { .n = 0 };
	unsigned sure = d.n;
	bool behind = false;
	for (unsigned k = 0; k < sure; k++)
		behind |= d.def[k].kind != ICF_DEF_CUT && d.def[k].kind != ICF_DEF_ENTRY &&
			  t->insn.data[d.def[k].at].in.kind == ELFRW_INSN_CALL;
	if (behind)
		more = reaching(prog, i, t, at, r);
	for (unsigned k = 0; k < more.n; k++) {
		bool seen = more.def[k].kind != ICF_DEF_ADD && more.def[k].kind != ICF_DEF_ADD_MEM;
		for (unsigned n = 0; n < sure && !seen; n++)
			seen = d.def[n].at == more.def[k].at && d.def[n].kind == more.def[k].kind;
		if (!seen && d.n < ICF_MAX_DEFS)
			d.def[d.n++] = more.def[k];
		else if (!seen)
			d.full = true;
	}
	return d;
}

/* Is the effect of a jump to the value of ONE known? */
static bool is_known(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
		     const struct icf_def *one)
{
	switch (one->kind) {
	case ICF_DEF_LOAD:
	case ICF_DEF_RESULT:
	case ICF_DEF_ENTRY:
	case ICF_DEF_ADDRESS:
	case ICF_DEF_NUMBER:
	case ICF_DEF_SMALL:
	case ICF_DEF_DIST: return true;
	case ICF_DEF_CUT: return !loads_distances(prog, i, t);
	default: return false;
	}
}

void icf_classify_jump(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
		       struct icf_jumps *ret)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	*ret = (struct icf_jumps){ .n = 0 };
	if (in->flags & ELFRW_INSN_MEM) {
		if (!through_slot(prog, i, t, at, ret)) {
			*ret = (struct icf_jumps){ .adds = true };
			push_jump(ret, unknown());
		} else
			ret->closed =
				!ret->n && t->sealed && (t->plain || !icf_from_frame(prog, in));
		return;
	}
	struct icf_defs d = { .full = true };
	bool closed = true;
	unsigned r = target_register(prog, i, t, at);
	if (r != ELFRW_REG_NONE)
		d = all_reaching(prog, i, t, at, r);
	for (unsigned k = 0; k < d.n; k++) {
		const struct icf_def *one = &d.def[k];
		bool sum = one->kind == ICF_DEF_ADD || one->kind == ICF_DEF_ADD_MEM;
		unsigned before = ret->n;
		bool known =
			sum ? through_table(prog, i, t, one, k, ret) : is_known(prog, i, t, one);
		closed &= ret->n > before || leads_out(prog, t, one);
		ret->adds |= !known && (sum || one->kind == ICF_DEF_OTHER);
		d.full |= !known;
	}
	if (d.full && (loads_distances(prog, i, t) || !d.n)) {
		ret->n = 0;
		push_jump(ret, unknown());
	}
	ret->closed = closed && d.n && !d.full;
	for (unsigned k = 0; k < ret->n; k++)
		ret->closed &= ret->jump[k].kind == ICF_JUMP_TABLE;
}
