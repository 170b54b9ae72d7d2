/* near.h: the search for near misses; private to near.c, near_search.c and near_text.c. */
#ifndef ICF_AUDIT_NEAR_H
#define ICF_AUDIT_NEAR_H
#include "icf/audit/audit.h"

/* A value in the code that may differ in another function with the same instructions. */
struct icf_near_field {
	uint64_t value; /* of a reference: a hash of its meaning; else the bytes as a number */
	uint32_t off;   /* from the unit's start */
	uint32_t ref;   /* index among the unit's references, or ICF_NONE */
	uint8_t size;
	uint8_t kind; /* enum icf_near_kind */
};

struct icf_near_scratch {
	VEC(struct icf_near_field) field;
	VEC(uint8_t) code; /* with the fields zeroed */
};

/* The fields of unit I in the order of their places, and its code without them. */
struct elfrw_err *icf_near_fields(const struct icf_audit *a, uint32_t i,
				  struct icf_near_scratch *s);
void icf_near_scratch_deinit(struct icf_near_scratch *s);

/* One member of a bucket with one value left out. */
struct icf_near_entry {
	uint64_t places; /* hash of the set of places that were left out */
	uint64_t rest;   /* hash of the other places and their values */
	uint32_t member; /* in the bucket */
	uint32_t field;  /* the first place of the set */
};

struct icf_near_search {
	struct icf_audit *a;
	VEC(uint32_t) rival;              /* the bucket: units with the same instructions */
	VEC(struct icf_near_field) field; /* of all members, the same number for each */
	VEC(struct icf_near_entry) entry;
	VEC(uint32_t) order;
	struct icf_near_scratch first, other;
};

struct elfrw_err *icf_near_init(struct icf_near_search *s, struct icf_audit *a);
void icf_near_deinit(struct icf_near_search *s);

/* Adds the near misses among s->rival to the audit. */
struct elfrw_err *icf_near_bucket(struct icf_near_search *s);

/* icf_near_finish sorts and cuts the list.  icf_near_describe describes the values
 * (near_text.c). */
struct elfrw_err *icf_near_finish(struct icf_near_search *s, const struct icf_audit_options *opt);
struct elfrw_err *icf_near_describe(struct icf_audit *a);
#endif
