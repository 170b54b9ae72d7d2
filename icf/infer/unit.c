/* unit.c: the jump tables of one unit.
 *
 * A unit with a jump through a register refers to its tables by address.  A table is the run of
 * 4-byte distances from its own start that lead to instructions of the unit or of its cold part.
 * The table ends where a comparison of the index proves the end, or at the first word that leads
 * elsewhere or that something refers to.  jump.c finds the source of a jump's target in the code
 * before the jump.  A unit with an unexplained jump is pinned with all that it could jump to, so
 * that its tables, wherever they are, stay correct. */
#include "icf/infer/unit.h"
#include "icf/infer/effect.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/program/unit.h"
#include <stdlib.h>

/* Does unit A jump into the middle of unit B, which is no linkage section?  Then they are parts of
 * one function. */
static bool jumps_into(const struct icf_program *prog, uint32_t a, uint32_t b)
{
	const struct icf_unit *v = &prog->unit.data[b];
	return !prog->exec.data[v->sec].linkage && icf_jumps_inside(prog, &prog->unit.data[a], v);
}

static bool push_place(struct icf_places *to, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&to->v);
	if (slot)
		*slot = va;
	return slot != NULL;
}

static void sort_places(struct icf_places *p)
{
	size_t n = 0;
	if (p->v.len)
		qsort(p->v.data, p->v.len, sizeof *p->v.data, elfrw_u64_order);
	for (size_t i = 0; i < p->v.len; i++)
		if (n == 0 || p->v.data[n - 1] != p->v.data[i])
			p->v.data[n++] = p->v.data[i];
	p->v.len = n;
}

/* Index of the first place from VA on. */
static size_t first_place(const struct icf_places *p, uint64_t va)
{
	return LOWER_BOUND(0, p->v.len, mid, p->v.data[mid] < va);
}

/* Does the unit in f->t jump to TO? */
static bool branches_to(const struct icf_finder *f, uint64_t to)
{
	size_t k = first_place(&f->branches, to);
	return k < f->branches.v.len && f->branches.v.data[k] == to;
}

/* May a table of unit I (in f->t) lead to TO? */
static bool leads(const struct icf_finder *f, uint32_t i, uint64_t to)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	if (to - u->start < u->end - u->start)
		return icf_trace_bit(f->t.start.data, to - u->start);
	/* Impossible cases: clang lets them lead to the function's end, GCC to an empty cold part.
	 */
	uint32_t k = icf_unit_at(prog, to);
	if (to == u->end ||
	    (k == ICF_NONE && icf_unit_ending(prog, to) != ICF_NONE && branches_to(f, to)))
		return true;
	if (k == ICF_NONE)
		return false;
	/* Units that are not understood stay where they are. */
	bool named = branches_to(f, to);
	if (icf_is_dark(&prog->unit.data[k]))
		return named;
	/* A cold part: nothing calls it, or it jumps back. */
	if (!named && icf_bit(f->called, prog->unit.data[k].start) && !jumps_into(prog, k, i) &&
	    !jumps_into(prog, i, k))
		return false;
	return icf_bit(f->insn, to);
}

bool icf_distance_at(const struct icf_program *prog, uint64_t va, uint64_t *ret)
{
	const uint8_t *p = elfrw_image_at(prog->img, va, 4);
	if (!p)
		return false;
	*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
	return true;
}

struct icf_distances icf_distances_from(const struct icf_program *prog, uint64_t va)
{
	const struct elfrw_section *s = &prog->img->section[elfrw_image_section_at(prog->img, va)];
	const uint64_t off = va - s->hdr.sh_addr;
	if (!s->data || off >= s->hdr.sh_size)
		return (struct icf_distances){ .prog = prog, .va = va };
	return (struct icf_distances){ prog, s->data + off, va, (s->hdr.sh_size - off) / 4 };
}

/* An address that is not aligned as the entries are is an operand of a sum in another function. */
uint64_t icf_table_limit(const struct icf_program *prog, const struct icf_data_map *map,
			 uint64_t base, uint64_t most)
{
	uint64_t end = icf_next_named(prog, map, base, most), before = base;
	/* At the end of a section there is no next one. */
	while (((end - base) & 3) && end - base < most && end > before &&
	       icf_bit(&map->named, end)) {
		before = end;
		end = icf_next_named(prog, map, end, most - (end - base));
	}
	return end;
}

/* The number of entries of the table at BASE that jump J uses; 0: none. */
static uint64_t extent(const struct icf_finder *f, uint32_t i, uint64_t base,
		       const struct icf_jump *j)
{
	uint64_t room = (icf_table_limit(f->prog, f->map, base, UINT64_MAX) - base) / 4,
		 bound = j->bound, n = 0, word;
	/* What halves of addresses name is not known for certain, so nothing else shows the end. */
	if (f->prog->arch->low_form && !bound)
		return 0;
	if (j->cap && room > j->cap)
		room = j->cap;
	const struct icf_distances words = icf_distances_from(f->prog, base);
	for (; n < (bound && bound < room ? bound : room); n++) {
		if (!icf_distance_of(&words, n, &word) || !leads(f, i, base + word))
			break;
	}
	/* Compilers omit entries that they know to be unused; the next table then begins early.
	 * Otherwise a bound that the data contradicts proves nothing. */
	if (n < bound) {
		if (n < room || (icf_distance_of(&words, n, &word) && leads(f, i, base + word)))
			return 0;
	} else if (!bound && n < room && icf_distance_of(&words, n, &word)) {
		/* Is the word an entry, or the end? */
		uint32_t k = icf_in_exec(f->prog, base + word) ? icf_unit_at(f->prog, base + word)
							       : ICF_NONE;
		if (k != ICF_NONE && k != i && icf_is_dark(&f->prog->unit.data[k]))
			return 0;
	}
	return n;
}

void icf_set_unit_flag(struct icf_program *prog, uint32_t i, unsigned flag)
{
	__atomic_fetch_or(&prog->unit.data[i].flags, (__typeof__(prog->unit.data[i].flags))flag,
			  __ATOMIC_RELAXED);
}

void icf_pin_unit(struct icf_program *prog, uint32_t i)
{
	if (i != ICF_NONE)
		icf_set_unit_flag(prog, i, ICF_UNIT_PINNED);
}

/* Does the unit load 4 bytes at a fixed place, as of one table entry that the compiler knows? */
static bool loads_word(const struct icf_finder *f, uint32_t i, size_t k)
{
	const struct elfrw_insn *in = &f->t.insn.data[k].in;
	if (!(in->flags & ELFRW_INSN_MEM) || (!in->pcrel_size && !icf_low_at(f->prog, i, &f->t, k)))
		return false;
	struct elfrw_effect e = icf_effect_at(f->prog, i, &f->t, k);
	return (e.op == ELFRW_OP_SIGN_EXTEND && e.from == 4) ||
	       (e.op == ELFRW_OP_LOAD && e.width == 4);
}

/* Adds what halves of addresses in unit U may name. */
static struct elfrw_err *name_halves(struct icf_finder *f, const struct icf_unit *u)
{
	struct icf_places all = { 0 }, computed = { 0 };
	bool ok = icf_push_half_names(f->prog, u, &all, &computed);
	f->half_code = false;
	for (size_t k = 0; k < all.v.len && ok; k++)
		if (icf_in_exec(f->prog, all.v.data[k]))
			f->half_code = true;
		else
			ok = push_place(&f->bases, all.v.data[k]);
	for (size_t k = 0; k < computed.v.len && ok; k++)
		ok = icf_in_exec(f->prog, computed.v.data[k]) ||
		     push_place(&f->leas, computed.v.data[k]);
	VEC_FREE(&all.v);
	VEC_FREE(&computed.v);
	return ok ? NULL : &elfrw_err_nomem;
}

/* Finds the jump targets of unit I (in f->t), and its references outside of the code. */
static struct elfrw_err *find_names(struct icf_finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	uint64_t word;
	f->bases.v.len = f->leas.v.len = f->loads.v.len = f->branches.v.len = 0;
	ELFRW_TRY(icf_forget_labels(f, i));
	for (uint32_t r = 0; r < u->n_ref; r++) {
		if (ref[r].kind == ICF_REF_BRANCH && !push_place(&f->branches, ref[r].target))
			return &elfrw_err_nomem;
		if (ref[r].kind == ICF_REF_BRANCH || icf_in_exec(f->prog, ref[r].target) ||
		    icf_names_page(&ref[r]))
			continue;
		if (!push_place(&f->bases, ref[r].target) ||
		    ((ref[r].flags & ICF_REF_LEA) && !push_place(&f->leas, ref[r].target)))
			return &elfrw_err_nomem;
	}
	ELFRW_TRY(name_halves(f, u));
	for (size_t k = 0; k < f->t.insn.len; k++) {
		uint64_t to;
		bool computes;
		if (loads_word(f, i, k) && icf_names_place(f->prog, i, &f->t, k, &to, &computes) &&
		    icf_distance_at(f->prog, to, &word) && !push_place(&f->loads, to))
			return &elfrw_err_nomem;
	}
	sort_places(&f->branches);
	f->joins = ICF_MAYBE;
	sort_places(&f->bases);
	sort_places(&f->leas);
	sort_places(&f->loads);
	return NULL;
}

/* Entries further than this from the table's start are not searched. */
#define FAR 65536

/* Pins unit I, its jump targets, and all possible targets of tables that it refers to. */
static struct elfrw_err *pin_tables(struct icf_finder *f, uint32_t i)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	uint64_t word;
	icf_pin_unit(prog, i);
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (ref[r].kind == ICF_REF_BRANCH && !(ref[r].flags & ICF_REF_CALL))
			icf_pin_unit(prog, icf_unit_at(prog, ref[r].target));
	for (size_t k = 0; k < f->bases.v.len; k++) {
		uint64_t base = f->bases.v.data[k],
			 end = icf_table_limit(prog, f->map, base, UINT64_MAX);
		for (uint64_t p = base; p + 4 <= end && icf_distance_at(prog, p, &word); p += 4) {
			icf_pin_unit(prog, icf_unit_at(prog, base + word));
			icf_pin_unit(prog, icf_unit_at(prog, p + word));
			if (!icf_name_label(f, i, base + word))
				return &elfrw_err_nomem;
		}
	}
	for (size_t k = 0; k < f->leas.v.len; k++) {
		uint64_t base = f->leas.v.data[k];
		for (size_t l = first_place(&f->loads, base);
		     l < f->loads.v.len && f->loads.v.data[l] - base < FAR; l++)
			if (icf_distance_at(prog, f->loads.v.data[l], &word))
				icf_pin_unit(prog, icf_unit_at(prog, base + word));
	}
	return NULL;
}

/* A jump of unit I is unexplained: pins all that it could reach. */
static struct elfrw_err *pin_all(struct icf_finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	ELFRW_TRY(pin_tables(f, i));
	for (uint32_t r = 0; r < u->n_ref && !f->found->loose; r++)
		if (ref[r].kind != ICF_REF_BRANCH && icf_in_exec(f->prog, ref[r].target) &&
		    (!icf_names_page(&ref[r]) || f->half_code)) {
			/* An undelimited unit may be several functions: its jumps prove nothing. */
			if (!u->n_sym && !u->n_fde) {
				icf_set_unit_flag(f->prog, i, ICF_UNIT_RELATIVE);
				return NULL;
			}
			f->found->loose =
				"a jump that is not understood may add to an address of code";
			f->found->loose_at = u->start + ref[r].off;
		}
	return NULL;
}

static struct icf_candidate *candidate_at(struct icf_candidates *c, uint64_t base)
{
	size_t lo = LOWER_BOUND(0, c->v.len, mid, c->v.data[mid].base < base);
	return lo < c->v.len && c->v.data[lo].base == base ? &c->v.data[lo] : NULL;
}

/* Words examined in a candidate, and in a table that no jump of the unit can use. */
#define MAX_WORDS 1024
#define FEW_WORDS 4

/* Compilers align tables.  Only an unusual assembler's table is unaligned; its first entries are
 * examined. */
static uint64_t words_at(uint64_t base)
{
	return base & 3 ? FEW_WORDS : MAX_WORDS;
}

/* Do A and B jump into each other's middle?  Some answers are cached. */
static bool are_linked(struct icf_finder *f, uint32_t a, uint32_t b)
{
	size_t slot = (a * 31 + b) % (sizeof f->linked / sizeof *f->linked);
	if (f->linked[slot].a != a || f->linked[slot].b != b) {
		f->linked[slot].a = a;
		f->linked[slot].b = b;
		f->linked[slot].yes = jumps_into(f->prog, a, b) || jumps_into(f->prog, b, a);
	}
	return f->linked[slot].yes;
}

/* Could TO be a case of unit I (in f->t)? */
static bool may_lead(struct icf_finder *f, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	if (to - u->start < u->end - u->start)
		return icf_trace_bit(f->t.start.data, to - u->start);
	uint32_t k = icf_in_exec(f->prog, to) ? icf_unit_at(f->prog, to) : ICF_NONE;
	return k != ICF_NONE && are_linked(f, i, k);
}

/* The first of the words [FROM, N) behind BASE, up to the next named place, that may lead into unit
 * I; N: none. */
static uint64_t first_lead(struct icf_finder *f, uint32_t i, uint64_t base, uint64_t from,
			   uint64_t n)
{
	uint64_t room = (icf_table_limit(f->prog, f->map, base, 4 * n) - base) / 4, word;
	const struct icf_distances words = icf_distances_from(f->prog, base);
	for (uint64_t k = from; k < n && k < room && icf_distance_of(&words, k, &word); k++)
		if (word && !(f->last && icf_bit(&f->map->table, base + 4 * k)) &&
		    may_lead(f, i, base + word))
			return k;
	return n;
}

static struct elfrw_err *find_candidates(struct icf_finder *f, uint32_t i)
{
	f->cand.v.len = 0;
	for (size_t k = 0; k < f->leas.v.len; k++) {
		uint64_t base = f->leas.v.data[k], word;
		/* The first entry may lead to nowhere. */
		if (!icf_distance_at(f->prog, base, &word) ||
		    !(leads(f, i, base + word) ||
		      first_lead(f, i, base, 1, words_at(base)) < words_at(base)))
			continue;
		struct icf_candidate *c = VEC_PUSH(&f->cand.v);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct icf_candidate){ .base = base };
	}
	return NULL;
}

/* Is the word at P an entry of the candidate at BASE? */
static bool is_entry(struct icf_finder *f, uint64_t base, uint64_t p)
{
	const struct icf_candidate *c = candidate_at(&f->cand, base);
	return c && (p - base) % 4 == 0 && (p - base) / 4 < c->n;
}

/* Does unit I refer to data that leads into it and that no known jump uses?  Its distances may go
 * through memory on their way to the jump, or the compiler chose the entry. */
static bool find_missed(struct icf_finder *f, uint32_t i)
{
	const struct icf_candidates *c = &f->cand;
	for (size_t k = 0; k < c->v.len; k++) {
		const struct icf_candidate *one = &c->v.data[k];
		uint64_t n = words_at(one->base) + one->n,
			 hit = first_lead(f, i, one->base, one->n, n);
		if (hit < n && (k == 0 || one->base + 4 * hit - one[-1].base >= 4 * one[-1].n))
			return true;
	}
	for (size_t k = 0; k < f->loads.v.len; k++) {
		uint64_t p = f->loads.v.data[k], word = 0;
		icf_distance_at(f->prog, p, &word);
		for (size_t l = first_place(&f->leas, p < FAR ? 0 : p - FAR + 1);
		     l < f->leas.v.len && f->leas.v.data[l] <= p; l++)
			if (!is_entry(f, f->leas.v.data[l], p) &&
			    may_lead(f, i, f->leas.v.data[l] + word))
				return true;
	}
	return false;
}

bool icf_use_table(struct icf_finder *f, uint32_t i, const struct icf_jump *j)
{
	bool any = false;
	for (size_t k = 0; k < f->cand.v.len; k++) {
		struct icf_candidate *one = &f->cand.v.data[k];
		if (j->base && one->base != j->base)
			continue;
		uint64_t n = extent(f, i, one->base, j);
		any |= n > 0;
		if (n > one->n)
			one->n = n;
	}
	return any;
}

/* Does something refer to the inside of the object at BASE, at its word P? */
static bool is_cut(const struct icf_data_map *map, uint64_t base, uint64_t p)
{
	return (p != base && icf_bit(&map->named, p)) || icf_bit(&map->named, p + 1) ||
	       icf_bit(&map->named, p + 2) || icf_bit(&map->named, p + 3);
}

/* Does unit I (in f->t) jump to a unit such that one of the two jumps into the other's middle? */
static bool joins_another(struct icf_finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	for (size_t k = 0; k < f->branches.v.len; k++) {
		uint64_t to = f->branches.v.data[k];
		uint32_t o =
			to - u->start < u->end - u->start ? ICF_NONE : icf_unit_at(f->prog, to);
		if (o != ICF_NONE && are_linked(f, i, o))
			return true;
	}
	return false;
}

/* An offset between two labels of one unit survives a move of the unit.  An offset between a
 * function and its cold part does not, and no relocation reveals it.  FROM: the label to which
 * distances in data that the unit refers to are added.  *GOOD: they lead to labels of unit I, which
 * are then marked. */
struct elfrw_err *icf_name_labels(struct icf_finder *f, uint32_t i, uint64_t from, bool *good)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	*good = false;
	f->work += f->branches.v.len + f->bases.v.len;
	if (f->work > ICF_MAX_WORK)
		return NULL;
	if (f->joins == ICF_MAYBE)
		f->joins = joins_another(f, i) ? ICF_YES : ICF_NO;
	if (f->joins == ICF_YES)
		return NULL;
	for (size_t k = 0; k < f->bases.v.len; k++) {
		uint64_t base = f->bases.v.data[k], word;
		for (uint64_t p = base; !is_cut(f->map, base, p) && icf_distance_at(prog, p, &word);
		     p += 4) {
			uint64_t to = from + word;
			if (to - u->start >= u->end - u->start) {
				uint32_t o =
					icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
				if (o != ICF_NONE &&
				    (icf_is_dark(&prog->unit.data[o]) || leads(f, i, to)))
					return NULL;
				break;
			}
			if (!icf_trace_bit(f->t.start.data, to - u->start))
				break;
			if (!icf_name_label(f, i, to))
				return &elfrw_err_nomem;
		}
	}
	*good = true;
	return NULL;
}

static struct elfrw_err *push_table(struct icf_finder *f, uint32_t i, const struct icf_candidate *c)
{
	struct icf_inferred_table *t = VEC_PUSH(&f->found->table);
	if (!t)
		return &elfrw_err_nomem;
	*t = (struct icf_inferred_table){ c->base, f->prog->unit.data[i].start, (uint32_t)c->n };
	return NULL;
}

/* Measures the tables of unit I, which jumps.  *GOOD is false if one of its jumps is
 * unexplained. */
static struct elfrw_err *measure(struct icf_finder *f, uint32_t i, bool *ret)
{
	bool clean;
	ELFRW_TRY(icf_trace_unit(f->prog, i, &f->t, &clean));
	ELFRW_TRY(icf_trace_edges(f->prog, i, &f->t));
	ELFRW_TRY(find_names(f, i));
	ELFRW_TRY(find_candidates(f, i));
	return icf_measure_jumps(f, i, ret);
}

static struct elfrw_err *doubt(struct icf_finder *f, uint32_t i)
{
	uint32_t *slot = VEC_PUSH(&f->found->doubt);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = i;
	return NULL;
}

static struct elfrw_err *tables_of(struct icf_finder *f, uint32_t i)
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

/* Does unit I, which does not jump, refer to data that leads into it?  Its other half may jump
 * through that data. */
static struct elfrw_err *leads_home(struct icf_finder *f, uint32_t i, bool *ret)
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
		for (unsigned k = 0;
		     k < FEW_WORDS && !inside && icf_distance_at(prog, base + 4 * k, &word); k++)
			inside = base + word - u->start < u->end - u->start;
		if (!inside)
			continue;
		ELFRW_TRY(icf_trace_unit(prog, i, &f->t, &clean));
		*ret = first_lead(f, i, base, 0, FEW_WORDS) < FEW_WORDS;
	}
	return NULL;
}

/* All tables are known.  Tables that unit I refers to and that no known jump uses pin the unit. */
struct elfrw_err *icf_settle_unit(struct icf_finder *f, uint32_t i)
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
		ELFRW_TRY(find_names(f, i));
	}
	f->last = false;
	return good ? NULL : pin_tables(f, i);
}

struct elfrw_err *icf_find_unit_tables(struct icf_finder *f, uint32_t i)
{
	bool leads = false;
	if (__atomic_load_n(&f->prog->unit.data[i].flags, __ATOMIC_RELAXED) & ICF_UNIT_JUMPS)
		return tables_of(f, i);
	ELFRW_TRY(leads_home(f, i, &leads));
	return leads ? doubt(f, i) : NULL;
}

void icf_finder_deinit(struct icf_finder *f)
{
	VEC_FREE(&f->cand.v);
	VEC_FREE(&f->branches.v);
	VEC_FREE(&f->bases.v);
	VEC_FREE(&f->leas.v);
	VEC_FREE(&f->loads.v);
	VEC_FREE(&f->todo.v);
	VEC_FREE(&f->closed.v);
	VEC_FREE(&f->cases);
	VEC_FREE(&f->labels);
	icf_trace_deinit(&f->t);
}
