/* log.h: what a check found: counts, and differences. */
#ifndef ICF_VERIFY_LOG_H
#define ICF_VERIFY_LOG_H
#include "icf/verify/verify.h"

/* Counts and differences of one part of the work; merged in the order of the parts. */
struct icf_vlog {
	uint64_t checked[ICF_VC_CHECKS], wrong[ICF_VC_CHECKS];
	VEC(struct icf_verify_diff) diff;
	unsigned max;
	bool nomem;
};

void icf_vlog_bad(struct icf_vlog *log, enum icf_verify_check check, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Moves everything of FROM to TO. */
void icf_vlog_merge(struct icf_vlog *to, struct icf_vlog *from);
void icf_vlog_deinit(struct icf_vlog *log);

/* For %llx and %llu. */
#define ICF_VX(x) ((unsigned long long)(x))
#endif
