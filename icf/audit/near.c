/* near.c: why a function equals no other, and which functions differ from others in a single value.
 *
 * Every function gets four hashes: of its instructions without references, constants and offsets;
 * of its code without references; and, for each mode, of its code with the meaning of references.
 * Functions that share the third hash but not the class have different unwind rules.  Functions
 * that share the second refer to different things.  Functions that share the first have different
 * constants.  The results are figures of a report, so equal hashes (128 bits) count as equal.
 *
 * Near misses: for functions with equal instructions, the values in the fields form a vector.  Two
 * vectors make a pair if they agree except at one place, or except at all places that hold one
 * value (a callee that is called three times).  For every member and every such set of places, the
 * rest is hashed.  The hash is a sum, so leaving fields out is a subtraction.  Equal sums are
 * compared in full.  Cost: one pass over all code, then one entry for each field of a function in a
 * bucket. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "icf/audit/audit.h"
#include "icf/audit/near.h"
#include <stdlib.h>
#include <string.h>

#define PART  512
#define LEAST 16 /* bytes of a function from which a near miss is worth listing */

struct key {
	struct icf_hash shape, code, meant[ICF_AUDIT_MODES];
	uint32_t unit;
	bool rival; /* may be folded, keeps its own code, and is large enough */
};

struct compare {
	struct icf_audit *a;
	const struct icf_audit_options *opt;
	struct key *key;
	uint32_t n;
};

static enum icf_mode mode_of(int m)
{
	return m == ICF_AUDIT_ALL ? ICF_MODE_ALL : ICF_MODE_SAFE;
}

/* The meaning of a reference as a number: its target's class, its address, or the contents of the
 * jump table. */
static uint64_t meaning(const struct icf_audit *a, int mode, const struct icf_unit *u,
			const struct icf_ref *ref)
{
	const struct icf_program *prog = &a->run.prog;
	const uint32_t *cls = a->plan[mode].cls;
	switch (icf_ref_meaning(prog, mode_of(mode), ref)) {
	case ICF_MEANS_CLASS:
		return icf_hash_mix(icf_hash_mix(1, cls[ref->unit]),
				    ref->target - prog->unit.data[ref->unit].start);
	case ICF_MEANS_TABLE: {
		const struct icf_table *t = &prog->table.data[ref->table];
		if (icf_names_again(prog, ref))
			return icf_hash_mix(4, t->ref);
		uint64_t h = icf_hash_mix(2, t->n);
		for (uint32_t i = 0; i < t->n; i++) {
			const struct icf_dataref *d = &prog->dataref.data[t->entry + i];
			uint32_t to = d->unit;
			if (to == ICF_NONE)
				h = icf_hash_mix(h, d->target);
			else
				h = icf_hash_mix(icf_hash_mix(h, &prog->unit.data[to] == u
									 ? ICF_NONE
									 : cls[to]),
						 d->target - prog->unit.data[to].start);
		}
		return h;
	}
	case ICF_MEANS_OWN: return icf_hash_mix(5, ref->target - u->start);
	default: return icf_hash_mix(3, ref->target);
	}
}

/* The numbers in instruction IN of CODE, at POS, that are none of its N references. */
static struct elfrw_err *add_plain(struct icf_near_scratch *s, const struct elfrw_insn *in,
				   const uint8_t *code, size_t pos, const struct icf_ref *ref,
				   uint32_t n)
{
	const struct {
		uint8_t off, size, kind;
	} plain[] = { { in->disp_off, in->disp_size, ICF_NEAR_OFFSET },
		      { in->imm_off, in->imm_size, ICF_NEAR_CONSTANT } };
	for (int k = 0; k < 2; k++) {
		bool taken = plain[k].size == 0;
		for (uint32_t q = 0; q < n && !taken; q++)
			taken = ref[q].off == pos + plain[k].off;
		if (taken)
			continue;
		struct icf_near_field *f = VEC_PUSH(&s->field);
		if (!f)
			return &elfrw_err_nomem;
		*f = (struct icf_near_field){ .off = (uint32_t)pos + plain[k].off,
					      .size = plain[k].size,
					      .ref = ICF_NONE,
					      .kind = plain[k].kind,
					      .value = elfrw_get_le(code + pos + plain[k].off,
								    plain[k].size) };
	}
	return NULL;
}

struct elfrw_err *icf_near_fields(const struct icf_audit *a, uint32_t i, struct icf_near_scratch *s)
{
	const struct icf_program *prog = &a->run.prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	const uint8_t *code = icf_unit_bytes(prog, u);
	size_t size = (size_t)(u->end - u->start),
	       avail = (size_t)(prog->exec.data[u->sec].end - u->start);
	s->field.len = s->code.len = 0;
	if (!VEC_RESERVE(&s->code, size + 1))
		return &elfrw_err_nomem;
	memcpy(s->code.data, code, size);
	s->code.len = size;
	/* References in the order of their places: two of one instruction may be in reverse order.
	 */
	struct elfrw_insn in;
	uint32_t r = 0;
	for (size_t pos = 0; pos < size; pos += in.len) {
		if (!icf_decode(prog, u, code + pos, avail - pos, u->start + pos, &in) ||
		    in.len > size - pos)
			break;
		uint32_t first = r;
		for (; r < u->n_ref && ref[r].off < pos + in.len; r++) {
			struct icf_near_field *f = VEC_PUSH(&s->field);
			if (!f)
				return &elfrw_err_nomem;
			*f = (struct icf_near_field){
				.off = ref[r].off,
				.size = icf_ref_form(prog, &ref[r])->bytes,
				.ref = r,
				.value = meaning(a, ICF_AUDIT_ALL, u, &ref[r]),
				.kind = ref[r].table != ICF_NONE        ? ICF_NEAR_TABLE
					: ref[r].kind == ICF_REF_BRANCH ? ICF_NEAR_CALLEE
									: ICF_NEAR_ADDRESS
			};
		}
		ELFRW_TRY(add_plain(s, &in, code, pos, ref + first, r - first));
	}
	for (size_t k = 0; k < s->field.len; k++)
		if (s->field.data[k].off + s->field.data[k].size <= size)
			memset(s->code.data + s->field.data[k].off, 0, s->field.data[k].size);
	return NULL;
}

void icf_near_scratch_deinit(struct icf_near_scratch *s)
{
	VEC_FREE(&s->field);
	VEC_FREE(&s->code);
}

/* ---- the four hashes ---- */

static struct elfrw_err *hash_one(struct compare *c, struct key *k, struct icf_near_scratch *s,
				  struct icf_canon_scratch *canon)
{
	const struct icf_audit *a = c->a;
	const struct icf_program *prog = &a->run.prog;
	const struct icf_unit *u = &prog->unit.data[k->unit];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	struct icf_hash unwind = { 0 };
	ELFRW_TRY(icf_near_fields(a, k->unit, s));
	k->shape = icf_hash_bytes(s->code.data, s->code.len);
	memcpy(s->code.data, icf_unit_bytes(prog, u), s->code.len);
	for (uint32_t r = 0; r < u->n_ref; r++)
		elfrw_form_blank(icf_ref_form(prog, &ref[r]), s->code.data + ref[r].off);
	k->code = icf_hash_bytes(s->code.data, s->code.len);
	for (int m = 0; m < ICF_AUDIT_MODES; m++) {
		k->meant[m] = k->code;
		for (uint32_t r = 0; r < u->n_ref; r++) {
			uint64_t v = meaning(a, m, u, &ref[r]);
			k->meant[m].lo = icf_hash_mix(k->meant[m].lo, v);
			k->meant[m].hi = icf_hash_mix(k->meant[m].hi, ~v);
		}
	}
	if (k->rival) {
		ELFRW_TRY(icf_hash_unwind(prog, k->unit, canon, &unwind));
		/* Rivals must have the same unwind rules, too. */
		k->shape.lo = icf_hash_mix(k->shape.lo, unwind.lo);
		k->shape.hi = icf_hash_mix(k->shape.hi, unwind.hi);
	}
	return NULL;
}

static struct elfrw_err *hash_part(void *arg, size_t part)
{
	struct compare *c = arg;
	struct icf_near_scratch s = { 0 };
	struct icf_canon_scratch canon = { 0 };
	ELFRW_TRY(icf_canon_scratch_init(&canon));
	struct elfrw_err *err = NULL;
	for (size_t i = part * PART; i < (part + 1) * PART && i < c->n && !err; i++)
		err = hash_one(c, &c->key[i], &s, &canon);
	icf_near_scratch_deinit(&s);
	icf_canon_scratch_deinit(&canon);
	return err;
}

/* ---- who is alone, and why ---- */

static const struct icf_hash *hash_at(const struct key *k, unsigned which)
{
	return which == 0 ? &k->shape : which == 1 ? &k->code : &k->meant[which - 2];
}

static int hash_order(const void *p, const void *q, void *ctx)
{
	const struct key *x = p, *y = q;
	unsigned which = *(const unsigned *)ctx;
	const struct icf_hash *a = hash_at(x, which), *b = hash_at(y, which);
	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static bool same_hash(const struct key *x, const struct key *y, unsigned which)
{
	const struct icf_hash *a = hash_at(x, which), *b = hash_at(y, which);
	return a->hi == b->hi && a->lo == b->lo;
}

/* Gives a better reason to the lone members of each run of equal hashes.  Stronger likenesses come
 * first. */
static void explain(struct compare *c, unsigned which)
{
	struct icf_audit *a = c->a;
	qsort_r(c->key, c->n, sizeof *c->key, hash_order, &which);
	for (uint32_t i = 0; i < c->n;) {
		uint32_t k = i + 1, may = 0;
		while (k < c->n && same_hash(&c->key[i], &c->key[k], which))
			k++;
		for (uint32_t j = i; j < k; j++)
			may += a->run.prog.unit.data[c->key[j].unit].reason == ICF_OK;
		for (uint32_t j = i; j < k && k - i > 1; j++) {
			uint8_t *why = a->unit[c->key[j].unit].why;
			for (int m = 0; m < ICF_AUDIT_MODES; m++) {
				if (why[m] != ICF_UNIQUE)
					continue;
				if (which >= 2)
					why[m] = (int)which - 2 != m ? ICF_UNIQUE
						 : may > 1           ? ICF_WHY_UNWIND
								     : ICF_WHY_TWIN_STAYS;
				else
					why[m] = which == 1 ? ICF_WHY_REFERS : ICF_WHY_CONSTANT;
			}
		}
		i = k;
	}
}

/* Equal with --icf=all, alone with --icf=safe: only addresses that must stay distinct differ. */
static void explain_safe(struct icf_audit *a)
{
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		uint8_t *why = a->unit[i].why;
		if (why[ICF_AUDIT_SAFE] == ICF_UNIQUE && why[ICF_AUDIT_ALL] >= ICF_WHY_KEPT &&
		    why[ICF_AUDIT_ALL] <= ICF_WHY_THUNK)
			why[ICF_AUDIT_SAFE] = ICF_WHY_DISTINCT;
	}
}

static struct elfrw_err *find_near(struct compare *c)
{
	struct icf_near_search s;
	ELFRW_TRY(icf_near_init(&s, c->a));
	unsigned which = 0;
	struct elfrw_err *err = NULL;
	/* Only rivals are left.  Their shapes include the unwind rules. */
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->key[i].rival)
			c->key[n++] = c->key[i];
	if (n)
		qsort_r(c->key, n, sizeof *c->key, hash_order, &which);
	for (uint32_t i = 0; i < n && !err;) {
		uint32_t k = i + 1;
		while (k < n && same_hash(&c->key[i], &c->key[k], which))
			k++;
		s.rival.len = 0;
		for (uint32_t j = i; j < k && k - i > 1 && !err; j++) {
			uint32_t *slot = VEC_PUSH(&s.rival);
			if (slot)
				*slot = c->key[j].unit;
			else
				err = &elfrw_err_nomem;
		}
		if (!err && k - i > 1)
			err = icf_near_bucket(&s);
		i = k;
	}
	if (!err)
		err = icf_near_finish(&s, c->opt);
	icf_near_deinit(&s);
	return err;
}

static struct elfrw_err *compare(struct icf_audit *a, const struct icf_audit_options *opt,
				 bool near)
{
	const struct icf_program *prog = &a->run.prog;
	struct compare c = { .a = a,
			     .opt = opt,
			     .key = malloc((prog->unit.len + 1) * sizeof *c.key) };
	if (!c.key)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		bool rival = u->reason == ICF_OK && a->plan[ICF_AUDIT_ALL].kept[i] == i &&
			     u->end - u->start >= LEAST;
		if (u->kind == ICF_UNIT_FUNC)
			c.key[c.n++] = (struct key){ .unit = i, .rival = rival };
	}
	struct elfrw_err *err =
		elfrw_parallel(opt->threads, (c.n + PART - 1) / PART, hash_part, &c);
	if (!err) {
		explain(&c, 2 + ICF_AUDIT_ALL);
		explain(&c, 2 + ICF_AUDIT_SAFE);
		explain_safe(a);
		explain(&c, 1);
		explain(&c, 0);
		err = near ? find_near(&c) : NULL;
	}
	free(c.key);
	return err;
}

struct elfrw_err *icf_audit_compare(struct icf_audit *a, const struct icf_audit_options *opt)
{
	return compare(a, opt, true);
}

struct elfrw_err *icf_audit_explain(struct icf_audit *a, unsigned threads)
{
	const struct icf_audit_options opt = { .threads = threads };
	return compare(a, &opt, false);
}
