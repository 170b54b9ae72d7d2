/* near.h: private to audit_near.c, audit_near_search.c, audit_near_text.c: the search for near
 * misses. */
#ifndef ICF_AUDIT_NEAR_H
#define ICF_AUDIT_NEAR_H
#include "icf/audit/audit.h"

/* A value in the code that another function's code could have differently. */
struct icf_near_field {
	uint64_t value; /* of a reference: what it means, hashed; else the bytes as a number */
	uint32_t off;   /* from the unit's start */
	uint32_t ref;   /* among the unit's references, or ICF_NONE */
	uint8_t size;
	uint8_t kind; /* enum icf_near_kind */
};

struct icf_near_scratch {
	VEC(struct icf_near_field) field;
	VEC(uint8_t) code; /* with the fields zeroed */
};

/* The fields of unit I, by place, and its code without them. */
struct elfrw_err *icf_near_fields(const struct icf_audit *a, uint32_t i,
				  struct icf_near_scratch *s);
void icf_near_scratch_deinit(struct icf_near_scratch *s);

/* One member of a bucket without one value. */
struct icf_near_entry {
	uint64_t places; /* hash of the set of places that were left out */
	uint64_t rest;   /* hash of the others and what they hold */
	uint32_t member; /* in the bucket */
	uint32_t field;  /* the first place of the set */
};

struct icf_near_search {
	struct icf_audit *a;
	VEC(uint32_t) rival;              /* the bucket: units whose instructions are the same */
	VEC(struct icf_near_field) field; /* of all members, as many for each */
	VEC(struct icf_near_entry) entry;
	VEC(uint32_t) order;
	struct icf_near_scratch first, other;
};

struct elfrw_err *icf_near_init(struct icf_near_search *s, struct icf_audit *a);
void icf_near_deinit(struct icf_near_search *s);

/* Adds what is found among s->rival to the audit. */
struct elfrw_err *icf_near_bucket(struct icf_near_search *s);

/* Sorts and cuts the list, and says what the values are (near_text.c). */
struct elfrw_err *icf_near_finish(struct icf_near_search *s, const struct icf_audit_options *opt);
struct elfrw_err *icf_near_describe(struct icf_audit *a);
#endif
