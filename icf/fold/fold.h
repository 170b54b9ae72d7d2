/* fold.h: which functions are the same: eligibility, canonical form, partition. */
#ifndef ICF_FOLD_FOLD_H
#define ICF_FOLD_FOLD_H
#include "icf/cli/options.h"
#include "icf/program/program.h"

/* Sets every unit's `reason` (ICF_OK: may take part in folding) and its OBSERVED, INNER and
 * EXPORTED flags, and pins units whose unwind rules hold addresses.  Error: a name to be kept
 * unique names no function. */
struct elfrw_err *icf_find_eligible(struct icf_program *prog, const struct icf_options *opt);

/* Is a function of this name called by who finds it among the program's symbols?  Then nothing
 * else refers to it, and it must be a function of its own. */
bool icf_is_found_by_name(const char *name);

/* Sets every unit's `grain` and `entry_align`; icf_find_eligible() calls it last.  align.c */
void icf_find_alignments(struct icf_program *prog);

/* Fills PROG's marks.  icf_marks_before() counts the marks at VA or before it.  Two places with
 * equal counts are in the same part of the code. */
struct elfrw_err *icf_find_marks(struct icf_program *prog);
size_t icf_marks_before(const struct icf_program *prog, uint64_t va);

/* What a reference means when units are compared. */
enum icf_meaning {
	ICF_MEANS_ADDRESS, /* this very address: data, linkage code, an observed function */
	ICF_MEANS_CLASS,   /* any unit that is the same as the target's, at the same offset */
	ICF_MEANS_TABLE,   /* the unit's own jump table */
	ICF_MEANS_OWN,     /* its own literal, at the same offset */
};
enum icf_meaning icf_ref_meaning(const struct icf_program *prog, enum icf_mode mode,
				 const struct icf_ref *ref);

struct icf_hash {
	uint64_t lo, hi;
};

/* H combined with one more value, for hashes that only sort into buckets. */
static inline uint64_t icf_hash_mix(uint64_t h, uint64_t v)
{
	h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	h *= 0xff51afd7ed558ccdu;
	return h ^ (h >> 33);
}

/* Scratch memory of one thread; starts as { 0 }. */
struct icf_canon_scratch {
	struct elfrw_wbuf *buf;
	void *lsda;
};
struct elfrw_err *icf_canon_scratch_init(struct icf_canon_scratch *s);
void icf_canon_scratch_deinit(struct icf_canon_scratch *s);

/* The hash of unit I's canonical form.  It is equal for units that icf_same_form() calls the
 * same. */
struct elfrw_err *icf_hash_unit(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
				struct icf_canon_scratch *s, struct icf_hash *ret);

/* Parts of the canonical form: the hash of N bytes; the hash of the meaning of unwinding through
 * unit I (its rules, its landing pads). */
struct icf_hash icf_hash_bytes(const void *data, size_t n);
struct elfrw_err *icf_hash_unwind(const struct icf_program *prog, uint32_t i,
				  struct icf_canon_scratch *s, struct icf_hash *ret);

/* Puts unit I's canonical form into S. */
struct elfrw_err *icf_put_form(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
			       struct icf_canon_scratch *s);
/* Is unit B the same as the unit whose form A holds, except for the classes of the units that they
 * refer to?  This is a full comparison. */
struct elfrw_err *icf_same_form(const struct icf_program *prog, enum icf_mode mode,
				const struct icf_canon_scratch *a, uint32_t b,
				struct icf_canon_scratch *s, bool *ret);

/* Appends the units that I refers to by class, in the order of its canonical form. */
typedef VEC(uint32_t) icf_unit_list;
struct elfrw_err *icf_edges(const struct icf_program *prog, enum icf_mode mode, uint32_t i,
			    icf_unit_list *out);

/* The coarsest stable partition.  cls[i] is the lowest unit of i's class; a unit alone in its class
 * has its own index.  COARSE: NULL, or a partition of the same kind in which all units are together
 * that this one puts together: that of all, if this one is of fewer units or of mode safe. */
struct elfrw_err *icf_partition(const struct icf_program *prog, const struct icf_options *opt,
				const uint32_t *coarse, uint32_t *cls, uint32_t *rounds);
#endif
