/* diff.h: the duplicated code of two builds of a program. */
#ifndef ICF_AUDIT_DIFF_H
#define ICF_AUDIT_DIFF_H
#include "icf/audit/audit.h"

struct icf_audit_change {
	uint32_t old, new; /* groups, or ICF_NONE: no group shares a name */
	int64_t delta;     /* of the saving */
};

struct icf_audit_family_change {
	uint32_t old, new;      /* names in the pools of the two audits, or ICF_NONE */
	uint64_t before, after; /* savings */
};

/* A function that is unused in one build only. */
struct icf_audit_unused_change {
	uint32_t unit;
	bool gone;     /* unused in the old build; else in the new one */
	bool other;    /* the other build has a function of that name */
	int64_t delta; /* bytes */
};

/* Starts as { 0 }. */
struct icf_audit_diff {
	const struct icf_audit *a[2]; /* old and new, borrowed */
	VEC(struct icf_audit_change)
	change; /* groups whose saving changed, the largest growth first */
	VEC(struct icf_audit_family_change) family; /* the same for families */
	VEC(struct icf_audit_unused_change)
	unused;            /* the same for functions that nothing uses */
	bool unused_known; /* in both builds */
	int64_t growth;    /* of the duplicated bytes, with the mode of the options */
	bool by_address;   /* one of them has no names: groups and families cannot be matched */
};

struct elfrw_err *icf_audit_compare_builds(struct icf_audit_diff *d, const struct icf_audit *old,
					   const struct icf_audit *new,
					   const struct icf_audit_options *opt);
void icf_audit_diff_deinit(struct icf_audit_diff *d);

void icf_audit_diff_text(FILE *f, const struct icf_audit_diff *d,
			 const struct icf_audit_options *opt);
void icf_audit_diff_json(FILE *f, const struct icf_audit_diff *d,
			 const struct icf_audit_options *opt);
#endif
