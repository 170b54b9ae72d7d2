/* infer_table.c: position-independent jump tables without relocations.
 *
 * A unit with a jump through a register names its tables by address.  A table is the run of 4-byte distances from its own
 * start that lead to instructions of that unit or of its split-off part; it ends where a comparison of the index proves, or
 * else at the first word that leads elsewhere or that something names.  What a jump takes its target from is read from
 * the code before it (infer_jump.c); a unit one of whose jumps cannot be accounted for is pinned with all that it could
 * jump to, so that its tables, wherever they are, stay right. */
#include "elfrw/parallel.h"
#include "elfrw/rbuf.h"
#include "icf/infer_parts.h"
#include "icf/unit.h"
#include <stdlib.h>
#include <string.h>

/* Data that unit I names and whose first word leads into it. */
struct candidate {
	uint64_t base;
	uint64_t n; /* entries that its jumps can use; 0: none goes through it */
};

struct candidates {
	VEC(struct candidate) v;
};

/* What was found in a run of units. */
struct found {
	VEC(struct icf_inferred_table) table;
	struct icf_places named; /* labels that tables lead to */
	VEC(uint32_t) doubt;     /* units to look at again when all tables are known */
	const char *loose;       /* the first reason why nothing may move, and where */
	uint64_t loose_at;
};

/* Reads units; one for each run of units, so that several can work at the same time.  Of the program it writes flags only, by or-ing. */
struct finder {
	struct icf_program *prog;
	const struct icf_data_map *map;
	const struct icf_bits *called; /* unit entries that a call, an address or a symbol of a function names; by byte of code */
	struct found *found;
	bool last; /* all tables are known: their words are explained */
	struct icf_trace t, other;
	uint32_t other_unit;    /* that `other` holds, or ICF_NONE */
	struct candidates cand; /* of the unit that `t` holds */
	struct { uint32_t a, b; bool yes; } linked[64]; /* answers of are_linked() */
	struct icf_places loads; /* where the unit that `t` holds loads 4 bytes from a fixed place */
};

/* The executable sections' entries that are functions to someone. */
static struct elfrw_err *find_called(const struct icf_program *prog, struct icf_bits *called)
{
	if (!icf_bits_init(called, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].kind != ICF_REF_BRANCH || icf_unit_bytes(prog, u)[ref[r].off - 1] == 0xe8)
				icf_set_bit(called, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		icf_set_bit(called, prog->dataref.data[i].target);
	for (size_t i = 0; i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		/* Split-off parts have local names; the search is too slow for all the others. */
		if (s->type == STT_FUNC && !(s->bind == STB_LOCAL && strstr(s->name, ".cold")))
			icf_set_bit(called, s->value);
	}
	return NULL;
}

/* Does an instruction of unit I begin at VA? */
static struct elfrw_err *is_insn(struct finder *f, uint32_t i, uint64_t va, bool *ret)
{
	if (f->other_unit != i) {
		bool clean;
		f->other_unit = ICF_NONE;
		ELFRW_TRY(icf_trace_unit(f->prog, i, &f->other, &clean));
		f->other_unit = i;
	}
	*ret = icf_trace_bit(f->other.start.data, va - f->prog->unit.data[i].start);
	return NULL;
}

/* Does unit A jump into the middle of unit B, which is no linker's?  Then they are parts of one function. */
static bool jumps_into(const struct icf_program *prog, uint32_t a, uint32_t b)
{
	const struct icf_unit *v = &prog->unit.data[b];
	return !prog->exec.data[v->sec].linkage && icf_jumps_inside(prog, &prog->unit.data[a], v);
}

static bool branches_to(const struct icf_program *prog, const struct icf_unit *u, uint64_t to)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (ref[r].kind == ICF_REF_BRANCH && ref[r].target == to)
			return true;
	return false;
}

/* May a table of unit I (which f->t holds) lead to TO? */
static struct elfrw_err *leads(struct finder *f, uint32_t i, uint64_t to, bool *ret)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	*ret = false;
	if (to - u->start < u->end - u->start) {
		*ret = icf_trace_bit(f->t.start.data, to - u->start);
		return NULL;
	}
	/* Cases that cannot happen: clang lets them lead to the function's end, GCC to a split-off part without code. */
	uint32_t k = icf_unit_at(prog, to);
	if (to == u->end || (k == ICF_NONE && icf_unit_ending(prog, to) != ICF_NONE && branches_to(prog, u, to))) {
		*ret = true;
		return NULL;
	}
	if (k == ICF_NONE || prog->unit.data[k].kind == ICF_UNIT_OPAQUE)
		return NULL;
	/* A split-off part: nobody calls it, or it jumps back. */
	if (icf_bit(f->called, prog->unit.data[k].start) && !jumps_into(prog, k, i) && !jumps_into(prog, i, k))
		return NULL;
	return is_insn(f, k, to, ret);
}

static bool word_at(const struct icf_program *prog, uint64_t va, uint64_t *ret)
{
	const uint8_t *p = elfrw_image_at(prog->img, va, 4);
	if (!p)
		return false;
	*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
	return true;
}

/* Where a table at BASE ends at the latest: where something else can begin.  What is not aligned as its entries are is an address
 * that something is added to, in some other function. */
static uint64_t table_limit(const struct icf_program *prog, const struct icf_data_map *map, uint64_t base)
{
	uint64_t end = icf_next_named(prog, map, base);
	while (((end - base) & 3) && icf_bit(&map->named, end))
		end = icf_next_named(prog, map, end);
	return end;
}

/* The number of entries of the table at BASE that jump J goes through, 0: none. */
static struct elfrw_err *extent(struct finder *f, uint32_t i, uint64_t base, const struct icf_jump *j, uint64_t *ret)
{
	uint64_t room = (table_limit(f->prog, f->map, base) - base) / 4, bound = j->bound, n = 0, word;
	*ret = 0;
	if (j->cap && room > j->cap)
		room = j->cap;
	for (; n < (bound && bound < room ? bound : room); n++) {
		bool good;
		if (!word_at(f->prog, base + 4 * n, &word))
			break;
		ELFRW_TRY(leads(f, i, base + word, &good));
		if (!good)
			break;
	}
	/* Compilers leave entries out that they know to be unused; the next table then begins early.  Otherwise a proof that
	 * the data does not bear out is none. */
	if (n < bound) {
		bool good = n < room;
		if (!good && word_at(f->prog, base + 4 * n, &word))
			ELFRW_TRY(leads(f, i, base + word, &good));
		if (good)
			return NULL;
	}
	*ret = n;
	return NULL;
}

/* Of units that others may look at, too. */
static void set_flag(struct icf_program *prog, uint32_t i, unsigned flag)
{
	__atomic_fetch_or(&prog->unit.data[i].flags, (__typeof__(prog->unit.data[i].flags))flag, __ATOMIC_RELAXED);
}

static void pin(struct icf_program *prog, uint32_t i)
{
	if (i != ICF_NONE)
		set_flag(prog, i, ICF_UNIT_PINNED);
}

/* A load of 4 bytes at a fixed place, as of one entry of a table that the compiler knows. */
static bool loads_word(const struct elfrw_insn *in)
{
	return in->opcode_map == 0 && in->pcrel_size && (in->flags & ELFRW_INSN_MEM) &&
	       (in->opcode == 0x63 || (in->opcode == 0x8b && !(in->flags & ELFRW_INSN_REX_W)));
}

static struct elfrw_err *find_loads(struct finder *f)
{
	uint64_t word;
	f->loads.v.len = 0;
	for (size_t k = 0; k < f->t.insn.len; k++) {
		const struct elfrw_insn *in = &f->t.insn.data[k].in;
		if (!loads_word(in) || !word_at(f->prog, in->target, &word))
			continue;
		uint64_t *slot = VEC_PUSH(&f->loads.v);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = in->target;
	}
	return NULL;
}

/* Entries further than this from their table's start are not looked for. */
#define FAR 65536

/* TO is a label of unit I, if it lies there. */
static bool name_label(struct finder *f, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	if (to - u->start >= u->end - u->start)
		return true;
	uint64_t *slot = VEC_PUSH(&f->found->named.v);
	if (slot)
		*slot = to;
	return slot != NULL;
}

/* Unit I, what it jumps to, and whatever a table that it names could mean stay. */
static struct elfrw_err *pin_tables(struct finder *f, uint32_t i)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	pin(prog, i);
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		if (ref[r].kind == ICF_REF_BRANCH) {
			if (icf_unit_bytes(prog, u)[ref[r].off - 1] != 0xe8)
				pin(prog, icf_unit_at(prog, base));
			continue;
		}
		if (icf_in_exec(prog, base))
			continue;
		uint64_t end = table_limit(prog, f->map, base);
		for (uint64_t p = base; p + 4 <= end && word_at(prog, p, &word); p += 4) {
			pin(prog, icf_unit_at(prog, base + word));
			pin(prog, icf_unit_at(prog, p + word));
			if (!name_label(f, i, base + word))
				return &elfrw_err_nomem;
		}
		if (!(ref[r].flags & ICF_REF_LEA))
			continue;
		for (size_t k = 0; k < f->loads.v.len; k++)
			if (f->loads.v.data[k] - base < FAR && word_at(prog, f->loads.v.data[k], &word))
				pin(prog, icf_unit_at(prog, base + word));
	}
	return NULL;
}

/* A jump of unit I is not accounted for. */
static struct elfrw_err *pin_all(struct finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	ELFRW_TRY(pin_tables(f, i));
	for (uint32_t r = 0; r < u->n_ref && !f->found->loose; r++)
		if (ref[r].kind != ICF_REF_BRANCH && icf_in_exec(f->prog, ref[r].target)) {
			f->found->loose = "a jump that is not understood may add to an address of code";
			f->found->loose_at = u->start + ref[r].off;
		}
	return NULL;
}

static struct candidate *candidate_at(struct candidates *c, uint64_t base)
{
	for (size_t i = 0; i < c->v.len; i++)
		if (c->v.data[i].base == base)
			return &c->v.data[i];
	return NULL;
}

/* Words of a candidate that are looked at, and of a table that no jump of the unit can go through. */
#define MAX_WORDS 1024
#define FEW_WORDS 4

/* Do A and B jump into each other's middle?  Remembers some answers. */
static bool are_linked(struct finder *f, uint32_t a, uint32_t b)
{
	size_t slot = (a * 31 + b) % (sizeof f->linked / sizeof *f->linked);
	if (f->linked[slot].a != a || f->linked[slot].b != b) {
		f->linked[slot].a = a;
		f->linked[slot].b = b;
		f->linked[slot].yes = jumps_into(f->prog, a, b) || jumps_into(f->prog, b, a);
	}
	return f->linked[slot].yes;
}

/* Could TO be a case of unit I (which f->t holds)? */
static bool may_lead(struct finder *f, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	if (to - u->start < u->end - u->start)
		return icf_trace_bit(f->t.start.data, to - u->start);
	uint32_t k = icf_in_exec(f->prog, to) ? icf_unit_at(f->prog, to) : ICF_NONE;
	return k != ICF_NONE && are_linked(f, i, k);
}

/* The first of the words [FROM, N) behind BASE, up to what something names, that may lead into unit I; N: none. */
static uint64_t first_lead(struct finder *f, uint32_t i, uint64_t base, uint64_t from, uint64_t n)
{
	uint64_t room = (table_limit(f->prog, f->map, base) - base) / 4, word;
	for (uint64_t k = from; k < n && k < room && word_at(f->prog, base + 4 * k, &word); k++)
		if (word && !(f->last && icf_bit(&f->map->table, base + 4 * k)) && may_lead(f, i, base + word))
			return k;
	return n;
}

static struct elfrw_err *find_candidates(struct finder *f, uint32_t i)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	f->cand.v.len = 0;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		bool good;
		if (ref[r].kind == ICF_REF_BRANCH || !(ref[r].flags & ICF_REF_LEA) || icf_in_exec(prog, base) || !word_at(prog, base, &word))
			continue;
		/* The first entry may lead to nowhere. */
		ELFRW_TRY(leads(f, i, base + word, &good));
		good = good || first_lead(f, i, base, 1, MAX_WORDS) < MAX_WORDS;
		if (!good || candidate_at(&f->cand, base))
			continue;
		struct candidate *c = VEC_PUSH(&f->cand.v);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct candidate){ .base = base };
	}
	return NULL;
}

/* Is the word at P an entry of the candidate at BASE? */
static bool is_entry(struct finder *f, uint64_t base, uint64_t p)
{
	const struct candidate *c = candidate_at(&f->cand, base);
	return c && (p - base) % 4 == 0 && (p - base) / 4 < c->n;
}

/* Does unit I name data that leads into it and that no jump was found to use?  Its distances may go through memory on their way to the
 * jump, or the compiler chose the entry. */
static bool find_missed(struct finder *f, uint32_t i)
{
	const struct candidates *c = &f->cand;
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (size_t k = 0; k < c->v.len; k++) {
		const struct candidate *one = &c->v.data[k];
		uint64_t n = MAX_WORDS + one->n, hit = first_lead(f, i, one->base, one->n, n);
		for (size_t o = 0; o < c->v.len && hit < n; o++)
			if (one->base + 4 * hit - c->v.data[o].base < 4 * c->v.data[o].n)
				hit = n;
		if (hit < n)
			return true;
	}
	for (size_t k = 0; k < f->loads.v.len; k++) {
		uint64_t p = f->loads.v.data[k], word = 0;
		word_at(prog, p, &word);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if ((ref[r].flags & ICF_REF_LEA) && p - ref[r].target < FAR && !is_entry(f, ref[r].target, p) &&
			    may_lead(f, i, ref[r].target + word))
				return true;
	}
	return false;
}

/* Measures the candidates that jump J may go through (any one when its table is not seen). */
static struct elfrw_err *use(struct finder *f, uint32_t i, const struct icf_jump *j, bool *any)
{
	for (size_t k = 0; k < f->cand.v.len; k++) {
		struct candidate *one = &f->cand.v.data[k];
		uint64_t n;
		if (j->base && one->base != j->base)
			continue;
		ELFRW_TRY(extent(f, i, one->base, j, &n));
		*any |= n > 0;
		if (n > one->n)
			one->n = n;
	}
	return NULL;
}

/* A distance between labels of one unit stays what it is; between the parts of a split function nobody sees it.  FROM: the label that
 * distances are added to, in data that the unit names; *GOOD: they lead to labels of unit I, which then have a name. */
static struct elfrw_err *name_labels(struct finder *f, uint32_t i, uint64_t from, bool *good)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	*good = true;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		if (ref[r].kind == ICF_REF_BRANCH) {
			uint32_t o = icf_unit_at(prog, base);
			if (o != ICF_NONE && *good && are_linked(f, i, o))
				*good = false;
			continue;
		}
		if (icf_in_exec(prog, base))
			continue;
		uint64_t end = icf_next_named(prog, f->map, base);
		for (uint64_t p = base; p + 4 <= end && word_at(prog, p, &word); p += 4) {
			uint64_t to = from + word;
			if (to - u->start >= u->end - u->start) {
				uint32_t o = icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
				bool out = o != ICF_NONE && prog->unit.data[o].kind == ICF_UNIT_OPAQUE;
				if (o != ICF_NONE && !out)
					ELFRW_TRY(leads(f, i, to, &out));
				if (out)
					*good = false;
				break;
			}
			if (!icf_trace_bit(f->t.start.data, to - u->start))
				break;
			if (!name_label(f, i, to))
				return &elfrw_err_nomem;
		}
	}
	return NULL;
}

static struct elfrw_err *push_table(struct finder *f, uint32_t i, const struct candidate *c)
{
	struct icf_inferred_table *t = VEC_PUSH(&f->found->table);
	if (!t)
		return &elfrw_err_nomem;
	*t = (struct icf_inferred_table){ c->base, f->prog->unit.data[i].start, (uint32_t)c->n };
	return NULL;
}

/* Measures the tables of unit I, which jumps.  *GOOD is false when one of its jumps cannot be accounted for. */
static struct elfrw_err *measure(struct finder *f, uint32_t i, bool *ret)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	bool clean, good = true;
	f->other_unit = ICF_NONE;
	ELFRW_TRY(icf_trace_unit(prog, i, &f->t, &clean));
	ELFRW_TRY(icf_trace_edges(prog, i, &f->t));
	ELFRW_TRY(find_candidates(f, i));
	ELFRW_TRY(find_loads(f));
	for (size_t k = 0; k < f->t.insn.len && good; k++) {
		const struct elfrw_insn *in = &f->t.insn.data[k].in;
		/* A sum with a label may have been kept in memory. */
		if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && in->target - u->start < u->end - u->start && in->target != u->start)
			ELFRW_TRY(name_labels(f, i, in->target, &good));
		if (in->kind != ELFRW_INSN_JMP_IND)
			continue;
		struct icf_jumps j;
		icf_classify_jump(prog, i, &f->t, k, &j);
		if (j.adds)
			set_flag(prog, i, ICF_UNIT_RELATIVE);
		for (unsigned n = 0; n < j.n && good;) {
			unsigned group = j.jump[n].group;
			for (good = false; n < j.n && j.jump[n].group == group; n++)
				if (j.jump[n].kind == ICF_JUMP_LOCAL) {
					bool local;
					ELFRW_TRY(name_labels(f, i, j.jump[n].base, &local));
					good |= local;
				} else if (j.jump[n].kind == ICF_JUMP_TABLE)
					ELFRW_TRY(use(f, i, &j.jump[n], &good));
		}
	}
	*ret = good;
	return NULL;
}

static struct elfrw_err *doubt(struct finder *f, uint32_t i)
{
	uint32_t *slot = VEC_PUSH(&f->found->doubt);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = i;
	return NULL;
}

static struct elfrw_err *tables_of(struct finder *f, uint32_t i)
{
	bool good;
	ELFRW_TRY(measure(f, i, &good));
	if (!good)
		return pin_all(f, i);
	if (find_missed(f, i))
		ELFRW_TRY(doubt(f, i));
	for (size_t k = 0; k < f->cand.v.len; k++)
		if (f->cand.v.data[k].n)
			ELFRW_TRY(push_table(f, i, &f->cand.v.data[k]));
	return NULL;
}

/* Does unit I, which does not jump, name data that leads into it?  Its other half may jump through that. */
static struct elfrw_err *leads_home(struct finder *f, uint32_t i, bool *ret)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	*ret = false;
	for (uint32_t r = 0; r < u->n_ref && !*ret; r++) {
		uint64_t base = ref[r].target, word;
		bool clean, inside = false;
		if (!(ref[r].flags & ICF_REF_LEA) || icf_in_exec(prog, base))
			continue;
		for (unsigned k = 0; k < FEW_WORDS && !inside && word_at(prog, base + 4 * k, &word); k++)
			inside = base + word - u->start < u->end - u->start;
		if (!inside)
			continue;
		f->other_unit = ICF_NONE;
		ELFRW_TRY(icf_trace_unit(prog, i, &f->t, &clean));
		*ret = first_lead(f, i, base, 0, FEW_WORDS) < FEW_WORDS;
	}
	return NULL;
}

/* All tables are known now: what unit I names and no jump was found to use keeps the unit where it is. */
static struct elfrw_err *settle(struct finder *f, uint32_t i)
{
	bool good = true;
	if (f->prog->unit.data[i].flags & ICF_UNIT_JUMPS) {
		ELFRW_TRY(measure(f, i, &good));
		f->last = true;
		good = good && !find_missed(f, i);
	} else {
		f->last = true;
		ELFRW_TRY(leads_home(f, i, &good));
		good = !good;
		ELFRW_TRY(find_loads(f));
	}
	f->last = false;
	return good ? NULL : pin_tables(f, i);
}

struct table_job {
	struct icf_program *prog;
	const struct icf_data_map *map;
	const struct icf_bits *called;
	uint32_t per; /* units of a part */
	struct found *part;
};

static struct elfrw_err *look_at(void *arg, size_t part)
{
	const struct table_job *job = arg;
	struct icf_program *prog = job->prog;
	struct finder f = { .prog = prog, .map = job->map, .called = job->called, .found = &job->part[part], .other_unit = ICF_NONE };
	struct elfrw_err *err = NULL;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per; i < end && i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		bool leads = false;
		if (u->kind == ICF_UNIT_OPAQUE)
			continue;
		if (__atomic_load_n(&u->flags, __ATOMIC_RELAXED) & ICF_UNIT_JUMPS)
			err = tables_of(&f, i);
		else
			err = leads_home(&f, i, &leads);
		if (!err && leads)
			err = doubt(&f, i);
	}
	VEC_FREE(&f.cand.v);
	VEC_FREE(&f.loads.v);
	icf_trace_deinit(&f.t);
	icf_trace_deinit(&f.other);
	return err;
}

static int table_order(const void *a, const void *b)
{
	const struct icf_inferred_table *x = a, *y = b;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* The references of all tables' entries. */
static struct elfrw_err *push_entries(struct icf_program *prog, struct icf_data_map *map, struct icf_places *named)
{
	uint64_t widest = 0, widest_end = 0; /* the table that reaches furthest so far */
	for (size_t i = 0; i < prog->inferred_table.len; i++) {
		const struct icf_inferred_table *t = &prog->inferred_table.data[i];
		for (uint64_t k = 0; k < t->n; k++) {
			uint64_t place = t->base + 4 * k, word;
			if (!word_at(prog, place, &word))
				break;
			bool known = icf_bit(&map->table, place) || icf_bit(&map->table, place + 3);
			if (known && t->base == widest)
				continue;
			/* The word counts from two places: both meanings hold if nothing of it moves. */
			if (known) {
				pin(prog, icf_unit_at(prog, t->base + word));
				pin(prog, icf_unit_at(prog, widest + word));
				continue;
			}
			struct icf_dataref *d = VEC_PUSH(&prog->dataref);
			uint64_t *to = VEC_PUSH(&named->v);
			if (!d || !to)
				return &elfrw_err_nomem;
			*d = (struct icf_dataref){ .place = place, .target = place + word, .unit = ICF_NONE, .table = ICF_NONE, .size = 4, .pcrel = 1 };
			*to = t->base + word;
			for (unsigned b = 0; b < 4; b++)
				icf_set_bit(&map->table, place + b);
		}
		if (t->base + 4 * (uint64_t)t->n > widest_end) {
			widest = t->base;
			widest_end = t->base + 4 * (uint64_t)t->n;
		}
	}
	return NULL;
}

/* Puts together what the parts found, in their order. */
static struct elfrw_err *join(struct table_job *job, size_t n, struct icf_places *named, struct found *ret)
{
	for (size_t i = 0; i < n; i++) {
		const struct found *p = &job->part[i];
		if (p->loose)
			icf_infer_loose(job->prog, p->loose_at, p->loose);
		if (!VEC_APPEND(&job->prog->inferred_table, p->table.data, p->table.len) ||
		    !VEC_APPEND(&named->v, p->named.v.data, p->named.v.len) || !VEC_APPEND(&ret->doubt, p->doubt.data, p->doubt.len))
			return &elfrw_err_nomem;
	}
	if (job->prog->inferred_table.len)
		qsort(job->prog->inferred_table.data, job->prog->inferred_table.len, sizeof *job->prog->inferred_table.data, table_order);
	return NULL;
}

static void found_deinit(struct found *f)
{
	VEC_FREE(&f->table);
	VEC_FREE(&f->named.v);
	VEC_FREE(&f->doubt);
}

struct elfrw_err *icf_infer_tables(struct icf_program *prog, unsigned threads, struct icf_data_map *map, struct icf_places *named)
{
	struct icf_bits called = { 0 };
	struct found all = { 0 };
	struct table_job job = { .prog = prog, .map = map, .called = &called, .per = 256 };
	size_t n = (prog->unit.len + job.per - 1) / job.per;
	job.part = calloc(n + 1, sizeof *job.part);
	if (!job.part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = find_called(prog, &called);
	if (!err)
		err = elfrw_parallel(threads, n, look_at, &job);
	if (!err)
		err = join(&job, n, named, &all);
	if (!err)
		err = push_entries(prog, map, named);
	struct finder f = { .prog = prog, .map = map, .called = &called, .found = &all, .other_unit = ICF_NONE };
	for (size_t i = 0; i < all.doubt.len && !err; i++)
		err = settle(&f, all.doubt.data[i]);
	if (!err && !VEC_APPEND(&named->v, all.named.v.data, all.named.v.len))
		err = &elfrw_err_nomem;
	VEC_FREE(&f.cand.v);
	VEC_FREE(&f.loads.v);
	icf_trace_deinit(&f.t);
	icf_trace_deinit(&f.other);
	for (size_t i = 0; i < n; i++)
		found_deinit(&job.part[i]);
	free(job.part);
	found_deinit(&all);
	icf_bits_deinit(&called);
	return err;
}

void icf_drop_tables(struct icf_program *prog)
{
	for (size_t i = 0; i < prog->inferred_table.len; i++) {
		const struct icf_inferred_table *t = &prog->inferred_table.data[i];
		uint32_t owner = icf_unit_at(prog, t->owner);
		if (owner == ICF_NONE || prog->unit.data[owner].kind != ICF_UNIT_OPAQUE)
			continue;
		size_t lo = 0, hi = prog->dataref.len;
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			if (prog->dataref.data[mid].place < t->base)
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < prog->dataref.len && prog->dataref.data[lo].place < t->base + 4 * (uint64_t)t->n; lo++) {
			struct icf_dataref *d = &prog->dataref.data[lo];
			pin(prog, icf_unit_at(prog, t->base + (d->target - d->place)));
			d->size = 0;
		}
	}
	size_t n = 0;
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].size)
			prog->dataref.data[n++] = prog->dataref.data[i];
	prog->dataref.len = n;
}
