/* count.c: branches and the code between them, counted, in the forms that other tools read.
 *
 * llvm-profgen: "N", N lines "from-to:count", "N", N lines "src->dst:count", counted from the first
 * executable segment (tools/llvm-profgen/PerfReader.cpp).  BOLT: "B from to count mispredicted", "F
 * from to count" for code that was run from FROM to TO, "f" if a branch from another function led
 * there (bolt/lib/Profile/DataAggregator.cpp).  AutoFDO: as llvm-profgen, with a block of
 * "address:count" between the two, in file offsets (sample_reader.cc).
 *
 * Cost: a look-up for each branch; memory for each different one. */
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "icf/profile/state.h"
#include <inttypes.h>

#define OUTSIDE 1 /* llvm-profgen's address of all code outside */

static size_t count_slot(const struct icf_prof_counter *c, uint64_t a, uint64_t b)
{
	uint64_t k = (a * 0x9e3779b97f4a7c15 ^ b) * 0xc2b2ae3d27d4eb4f;
	size_t i = (k ^ k >> 32) & (c->n_slots - 1);
	while (c->slot[i].used && (c->slot[i].a != a || c->slot[i].b != b))
		i = (i + 1) & (c->n_slots - 1);
	return i;
}

static bool grow(struct icf_prof_counter *c)
{
	struct icf_prof_counter more = { .n = c->n, .n_slots = c->n_slots ? 2 * c->n_slots : 4096 };
	more.slot = calloc(more.n_slots, sizeof *more.slot);
	if (!more.slot)
		return false;
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slot[i].used)
			more.slot[count_slot(&more, c->slot[i].a, c->slot[i].b)] = c->slot[i];
	free(c->slot);
	*c = more;
	return true;
}

struct elfrw_err *icf_prof_add(struct icf_prof_counter *c, uint64_t a, uint64_t b, uint64_t n,
			       uint64_t odd)
{
	if (2 * (c->n + 1) > c->n_slots && !grow(c))
		return &elfrw_err_nomem;
	struct icf_prof_count *k = &c->slot[count_slot(c, a, b)];
	c->n += !k->used;
	*k = (struct icf_prof_count){ a, b, k->n + n, k->odd + odd, true };
	return NULL;
}

/* Is A code that counts?  llvm-profgen takes procedure linkage tables for code outside. */
static bool is_there(const struct icf_profile *p, const struct icf_prof_address *a)
{
	if (!a->in || a->dropped)
		return false;
	for (unsigned i = 0; i < p->n_plt && p->in->to == ICF_PROFILE_PROFGEN; i++)
		if (a->other >= p->plt[i].start && a->other < p->plt[i].end)
			return false;
	return true;
}

/* The code from FROM, where a branch led, to TO, the next branch. */
static struct elfrw_err *add_range(struct icf_profile *p, const struct icf_prof_address *from,
				   const struct icf_prof_address *to)
{
	if (!is_there(p, from) || !is_there(p, to) || from->unit != to->unit ||
	    from->other > to->other)
		return NULL;
	bool inner = is_there(p, from - 1) && from[-1].unit == from->unit;
	return icf_prof_add(&p->ranges, from->other, to->other, p->count, inner ? 0 : p->count);
}

struct elfrw_err *icf_prof_count(struct icf_profile *p)
{
	const struct icf_prof_address *next = NULL;
	for (size_t i = 0; i < p->branch.len; i++) {
		const struct icf_prof_branch *b = &p->branch.data[i];
		const struct icf_prof_address *a = &p->address.data[b->from];
		if (b->thunk)
			continue;
		/* One end that is dropped is not the same as one outside. */
		bool from = is_there(p, &a[0]), to = is_there(p, &a[1]);
		if ((from || to) && !a[0].dropped && !a[1].dropped)
			ELFRW_TRY(icf_prof_add(&p->branches, from ? a[0].other : OUTSIDE,
					       to ? a[1].other : OUTSIDE, p->count,
					       b->missed ? p->count : 0));
		if (next)
			ELFRW_TRY(add_range(p, &a[1], next));
		next = &a[0];
	}
	for (size_t i = 0; i < p->frame.len && i < 1; i++) {
		const struct icf_prof_address *a = &p->address.data[p->frame.data[i].address];
		if (is_there(p, a))
			ELFRW_TRY(icf_prof_add(&p->addresses, a->other, 0, p->count, 0));
	}
	return NULL;
}

/* ---- output ---- */

static int count_order(const void *a, const void *b)
{
	const struct icf_prof_count *x = a, *y = b;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return x->b < y->b ? -1 : x->b > y->b;
}

/* Moves what was counted to the front, sorted. */
static void finish(struct icf_prof_counter *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slot[i].used)
			c->slot[n++] = c->slot[i];
	if (n)
		qsort(c->slot, n, sizeof *c->slot, count_order);
}

/* The first executable segment: of both programs, since it begins at the same place. */
static const Elf64_Phdr *first_segment(const struct icf_profile *p)
{
	const struct elfrw_image *img = &p->m->code;
	for (uint32_t i = 0; i < img->n_phdrs; i++)
		if (img->phdr[i].p_type == PT_LOAD && img->phdr[i].p_flags & PF_X)
			return &img->phdr[i];
	return NULL;
}

/* Branches to code outside say nothing to the compilers' tools, and AutoFDO has no address for code
 * outside. */
static bool is_wanted(const struct icf_profile *p, const struct icf_prof_count *k)
{
	return k->b != OUTSIDE && (k->a != OUTSIDE || p->in->to == ICF_PROFILE_PROFGEN);
}

static void put_pairs(const struct icf_profile *p, const struct icf_prof_counter *c, uint64_t base,
		      const char *arrow)
{
	FILE *out = p->in->out;
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		n += is_wanted(p, &c->slot[i]);
	fprintf(out, "%zu\n", n);
	for (size_t i = 0; i < c->n; i++)
		if (is_wanted(p, &c->slot[i]))
			fprintf(out, "%" PRIx64 "%s%" PRIx64 ":%" PRIu64 "\n", c->slot[i].a - base,
				arrow, c->slot[i].b - base, c->slot[i].n);
}

static void put_bolt(const struct icf_profile *p)
{
	FILE *out = p->in->out;
	for (size_t i = 0; i < p->branches.n; i++) {
		const struct icf_prof_count *k = &p->branches.slot[i];
		fprintf(out, "B %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n",
			k->a == OUTSIDE ? 0 : k->a, k->b == OUTSIDE ? 0 : k->b, k->n, k->odd);
	}
	for (size_t i = 0; i < p->ranges.n; i++) {
		const struct icf_prof_count *k = &p->ranges.slot[i];
		if (k->n > k->odd)
			fprintf(out, "F %" PRIx64 " %" PRIx64 " %" PRIu64 "\n", k->a, k->b,
				k->n - k->odd);
		if (k->odd)
			fprintf(out, "f %" PRIx64 " %" PRIx64 " %" PRIu64 "\n", k->a, k->b, k->odd);
	}
}

struct elfrw_err *icf_prof_put_counts(struct icf_profile *p)
{
	const Elf64_Phdr *h = first_segment(p);
	FILE *out = p->in->out;
	if (!p->counts.branches)
		return elfrw_error("the profile has no branch records, which this form is made of");
	if (!h)
		return elfrw_error("no executable segment");
	finish(&p->ranges);
	finish(&p->branches);
	finish(&p->addresses);
	uint64_t page = p->m->code.arch->page_min - 1;
	if (p->in->to == ICF_PROFILE_PROFGEN) {
		put_pairs(p, &p->ranges, h->p_vaddr & ~page, "-");
		put_pairs(p, &p->branches, h->p_vaddr & ~page, "->");
	} else if (p->in->to == ICF_PROFILE_AUTOFDO) {
		uint64_t base = h->p_vaddr - h->p_offset;
		put_pairs(p, &p->ranges, base, "-");
		fprintf(out, "%zu\n", p->addresses.n);
		for (size_t i = 0; i < p->addresses.n; i++)
			fprintf(out, "%" PRIx64 ":%" PRIu64 "\n", p->addresses.slot[i].a - base,
				p->addresses.slot[i].n);
		put_pairs(p, &p->branches, base, "->");
	} else
		put_bolt(p);
	return NULL;
}
