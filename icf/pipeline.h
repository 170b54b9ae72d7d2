/* pipeline.h: the stages of the main job in their order. */
#ifndef ICF_PIPELINE_H
#define ICF_PIPELINE_H
#include "icf/apply.h"
#include "icf/options.h"
#include "icf/plan.h"

#define ICF_MAX_PASSES 24

struct icf_pass {
	const char *name;
	double seconds, cpu;
};

/* The whole run; everything in it is owned. */
struct icf_run {
	struct elfrw_image img;
	struct icf_program prog;
	struct icf_plan plan;
	struct elfrw_output out;
	struct icf_pass pass[ICF_MAX_PASSES];
	unsigned n_passes;
	uint64_t eh_frame_before, eh_frame_after;
	uint64_t text_before, text_after; /* sections named .text and .text.* */
	uint64_t n_thunk_bytes;
	long peak_kib;
};

/* Loads, plans and applies: RUN->out is then laid out and ready to be written.  RUN starts as { 0 }. */
struct elfrw_err *icf_run_fold(struct icf_run *run, const struct icf_options *opt);

/* Adds the pass NAME that began at START (icf_now()). */
struct icf_clock {
	double wall, cpu;
};
struct icf_clock icf_now(void);
void icf_pass_done(struct icf_run *run, const char *name, struct icf_clock start);

void icf_run_deinit(struct icf_run *run);
#endif
