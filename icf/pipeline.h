/* pipeline.h: the stages of a fold in their order. */
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
	char *debug_file; /* of the input, and then part of `img`; or NULL */
	struct elfrw_image img;
	struct icf_program prog;
	bool ask_use;        /* set before the start: fill `use` */
	struct icf_use *use; /* by unit: why it stays (fold/unused.h); or NULL */
	struct icf_plan plan;
	struct dwr_rewrite_room room; /* made while planning; empty once it is used */
	struct elfrw_output out;
	struct icf_pass pass[ICF_MAX_PASSES];
	unsigned n_passes;
	struct icf_progress progress; /* set before the start to report each pass */
	uint64_t eh_frame_before, eh_frame_after;
	uint64_t text_before, text_after; /* sections named .text and .text.* */
	uint64_t n_thunk_bytes;
	struct icf_call_stats calls;
	uint64_t note_size; /* of .debug_icfold */
	uint64_t growth; /* bytes by which folding would have enlarged the file, so that nothing was
			    folded; 0: it was folded */
	uint32_t n_vtables, n_vtables_left_out;
	long peak_kib;
};

/* Loads, plans and applies.  RUN->out is then laid out and ready to be written.  RUN starts as { 0
 * }, except for `progress`. */
struct elfrw_err *icf_run_fold(struct icf_run *run, const struct icf_options *opt);

/* Loads and plans only.  RUN starts as { 0 }. */
struct elfrw_err *icf_run_plan(struct icf_run *run, const struct icf_options *opt);

/* The same in two steps.  icf_run_look: units, references and tables, for which only OPT->threads
 * and the files' names matter.  icf_run_choose: what is unused, what may fold, and the plan. */
struct elfrw_err *icf_run_look(struct icf_run *run, const struct icf_options *opt);
struct elfrw_err *icf_run_choose(struct icf_run *run, const struct icf_options *opt);

/* What of a program the second step changes and the next one does not find anew. */
struct icf_looked {
	uint32_t *flags; /* by unit; owned, as `reason` is */
	uint8_t *reason;
	const char *loose;
	uint64_t loose_at;
	uint32_t n_pinned;
};

/* Saves it between the steps; restores it, so that the second step can be taken again.  The plan
 * is the caller's to free before. */
struct elfrw_err *icf_looked_save(const struct icf_program *prog, struct icf_looked *ret);
void icf_looked_restore(const struct icf_looked *from, struct icf_program *prog);
void icf_looked_deinit(struct icf_looked *looked);

struct icf_clock {
	double wall, cpu; /* seconds */
};
struct icf_clock icf_now(void);

/* Adds the pass NAME, which began at START, to what --time-passes prints. */
void icf_pass_done(struct icf_run *run, const char *name, struct icf_clock start);

/* Frees what only the writing of the output needs, once the output is written.  The reports still
 * work. */
void icf_run_release(struct icf_run *run);
void icf_run_deinit(struct icf_run *run);
#endif
