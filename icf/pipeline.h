/* pipeline.h: the stages of the main job in their order. */
#ifndef ICF_PIPELINE_H
#define ICF_PIPELINE_H
#include "icf/apply/calls.h"
#include "icf/cli/options.h"
#include "icf/fold/plan.h"
#include "icf/cli/progress.h"

#define ICF_MAX_PASSES 24

struct icf_pass {
	const char *name;
	double seconds, cpu;
};

/* The whole run; everything in it is owned. */
struct icf_run {
	char *debug_file; /* of the input, which is part of `img` then; or NULL */
	struct elfrw_image img;
	struct icf_program prog;
	struct icf_plan plan;
	struct elfrw_output out;
	struct icf_pass pass[ICF_MAX_PASSES];
	unsigned n_passes;
	struct icf_progress progress; /* set before the start to be told of each pass */
	uint64_t eh_frame_before, eh_frame_after;
	uint64_t text_before, text_after; /* sections named .text and .text.* */
	uint64_t n_thunk_bytes;
	struct icf_call_stats calls;
	uint64_t note_size; /* of .debug_icfold */
	uint64_t growth;    /* bytes that folding would have added to the file, so that nothing was
			       folded; 0: it was */
	uint32_t n_vtables, n_vtables_left_out;
	long peak_kib;
};

/* Loads, plans and applies: RUN->out is then laid out and ready to be written.  RUN starts as { 0
 * }, but for `progress`. */
struct elfrw_err *icf_run_fold(struct icf_run *run, const struct icf_options *opt);

/* Loads and plans, and leaves it at that.  RUN starts as { 0 }. */
struct elfrw_err *icf_run_plan(struct icf_run *run, const struct icf_options *opt);

struct icf_clock {
	double wall, cpu; /* seconds */
};
struct icf_clock icf_now(void);

/* Adds the pass NAME, which began at START, to what --time-passes prints. */
void icf_pass_done(struct icf_run *run, const char *name, struct icf_clock start);

/* Gives back what only the writing of the output needs, once that is written; the reports still
 * work. */
void icf_run_release(struct icf_run *run);
void icf_run_deinit(struct icf_run *run);
#endif
