/* pipeline.c: load -> units -> references -> partition -> plan -> apply, one direction only. */
#include "icf/pipeline.h"
#include "elfrw/base/heap.h"
#include "elfrw/base/parallel.h"
#include "elfrw/pair.h"
#include "elfrw/tail.h"
#include "icf/apply/call_query.h"
#include "icf/apply/debug.h"
#include "dwarf/symbolize/symbolize.h"
#include "icf/apply/debuglink.h"
#include "icf/program/unit.h"
#include "icf/fold/unloaded.h"
#include "icf/fold/unused.h"
#include "icf/refs/code_reloc.h"
#include "icf/refs/pool.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct icf_clock icf_now(void)
{
	struct timespec w, c;
	clock_gettime(CLOCK_MONOTONIC, &w);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &c);
	return (struct icf_clock){ (double)w.tv_sec + 1e-9 * (double)w.tv_nsec,
				   (double)c.tv_sec + 1e-9 * (double)c.tv_nsec };
}

void icf_pass_done(struct icf_run *run, const char *name, struct icf_clock start)
{
	struct icf_clock now = icf_now();
	if (run->n_passes < ICF_MAX_PASSES)
		run->pass[run->n_passes++] =
			(struct icf_pass){ name, now.wall - start.wall, now.cpu - start.cpu };
	icf_progress_step(&run->progress, name, now.wall);
}

/* Bytes behind a debug file, or between the parts of either file, have no place in the output. */
static struct elfrw_err *refuse_more(const struct elfrw_image *img)
{
	struct elfrw_tail tail;
	if (!img->pair)
		return elfrw_tail_find(img, &tail);
	ELFRW_TRY(elfrw_tail_find(&img->pair->program, &tail));
	ELFRW_TRY(elfrw_tail_find(&img->pair->debug, &tail));
	if (tail.size && !tail.zeros)
		return elfrw_error("%llu bytes that belong to no section follow debug file %s",
				   (unsigned long long)tail.size, img->pair->debug.path);
	return NULL;
}

/* Linkers write the addresses 0 and 1 for discarded code.  Unwind tables and debug information of
 * code there would be taken for tables of discarded code. */
static struct elfrw_err *refuse_zero(const struct elfrw_image *img)
{
	const struct elfrw_section *zero = NULL;
	bool described = false;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		uint64_t flags = s->hdr.sh_flags & (SHF_ALLOC | SHF_EXECINSTR);
		if (flags == (SHF_ALLOC | SHF_EXECINSTR) && s->hdr.sh_size && s->hdr.sh_addr <= 1)
			zero = s;
		described |= strncmp(s->name, ".eh_frame", 9) == 0 ||
			     strncmp(s->name, ".debug_", 7) == 0 ||
			     strncmp(s->name, ".zdebug_", 8) == 0;
	}
	if (!zero || !described)
		return NULL;
	return elfrw_error_at(
		zero->name, 0,
		"code at address %u, which stands for no code in unwind tables and debug information",
		(unsigned)zero->hdr.sh_addr);
}

/* Inputs that no rewriting of code and references can keep right. */
static struct elfrw_err *refuse(const struct elfrw_image *img)
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (strcmp(s->name, ".gopclntab") == 0 ||
		    strcmp(s->name, ".data.rel.ro.gopclntab") == 0 ||
		    strcmp(s->name, ".note.go.buildid") == 0)
			return elfrw_error(
				"is a Go program: its function tables (%s) cannot be rewritten",
				s->name);
		if (strcmp(s->name, ".svm_heap") == 0)
			return elfrw_error(
				"is a native image of Java: its heap (%s) holds distances in code that nothing describes",
				s->name);
		/* Linux and Xen.  Records of places inside functions, of many kinds, say where
		 * instructions are replaced when the processor is known; a copy that is folded
		 * away would not be replaced, and some kinds make sure of the old instruction. */
		if (strcmp(s->name, ".altinstructions") == 0)
			return elfrw_error_at(
				s->name, 0,
				"is a kernel that replaces its own instructions: they cannot be folded");
		if (strcmp(s->name, ".sframe") == 0)
			return elfrw_error_at(s->name, 0,
					      "stack frame tables of this kind are not supported");
		if (strcmp(s->name, ".BOLT.bolt_reserved") == 0 ||
		    strcmp(s->name, ".bolt.org.text") == 0)
			return elfrw_error_at(s->name, 0, "was rewritten by BOLT; fold it before");
	}
	ELFRW_TRY(refuse_zero(img));
	/* The layout begins with the headers and continues in address order.  With -Ttext=0x200
	 * mold puts the headers behind the code. */
	const Elf64_Phdr *first = NULL;
	for (uint32_t p = 0; p < img->n_phdrs && !img->separate; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type != PT_LOAD || !ph->p_filesz)
			continue;
		if (first && ph->p_offset < sizeof img->ehdr)
			return elfrw_error_at(
				NULL, img->ehdr.e_phoff + p * sizeof *ph,
				"the segment of the file's headers is not the first one");
		first = first ? first : ph;
	}
	return refuse_more(img);
}

static void count_sections(struct icf_run *run)
{
	for (uint32_t i = 1; i < run->img.n_sections; i++) {
		const struct elfrw_section *s = &run->img.section[i];
		if (strcmp(s->name, ".eh_frame") == 0) {
			run->eh_frame_before = s->hdr.sh_size;
			run->eh_frame_after = run->out.sec[i].size;
		}
		if ((s->hdr.sh_flags & SHF_EXECINSTR) && strncmp(s->name, ".text", 5) == 0) {
			run->text_before += s->hdr.sh_size;
			run->text_after += run->out.sec[i].size;
		}
	}
}

/* The data of a stage. */
struct job {
	struct icf_run *run;
	const struct icf_options *opt;
	struct icf_apply *apply; /* NULL while planning */
};

struct stage {
	const char *name; /* its name in --time-passes */
	struct elfrw_err *(*run)(const struct job *job);
};

/* Runs the stages in order, up to one that finds no room for the unwind tables or for thunks. */
static struct elfrw_err *run_stages(const struct job *job, const struct stage *stage, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct icf_clock start = icf_now();
		ELFRW_TRY(stage[i].run(job));
		icf_pass_done(job->run, stage[i].name, start);
		if (job->apply && job->apply->no_room)
			break;
	}
	return NULL;
}

static struct elfrw_err *load_symbols(const struct job *job)
{
	struct icf_run *run = job->run;
	run->prog.img = &run->img;
	run->prog.arch = run->img.arch;
	ELFRW_TRY(refuse(&run->img));
	return icf_load_symbols(&run->prog);
}

static struct elfrw_err *read_frames(const struct job *job)
{
	struct icf_run *run = job->run;
	return dwr_eh_frame_read(&run->prog.cfi, &run->img, run->img.arch->address_size);
}

static struct elfrw_err *find_units(const struct job *job)
{
	return icf_find_units(&job->run->prog);
}

static struct elfrw_err *find_refs(const struct job *job)
{
	struct icf_program *prog = &job->run->prog;
	ELFRW_TRY(icf_find_refs(prog, job->opt->threads));
	if (prog->arch->needs_relocs && !prog->mapped && !prog->inferred)
		return elfrw_error("has no mapping symbols, which tell code from data");
	icf_pin_all_astray(prog);
	return NULL;
}

static struct elfrw_err *find_datarefs(const struct job *job)
{
	ELFRW_TRY(icf_find_datarefs(&job->run->prog));
	return icf_check_pools(&job->run->prog);
}

static struct elfrw_err *infer_refs(const struct job *job)
{
	return icf_infer_refs(&job->run->prog, job->opt->threads);
}

static struct elfrw_err *resolve(const struct job *job)
{
	struct icf_program *prog = &job->run->prog;
	ELFRW_TRY(icf_glue_units(prog));
	icf_drop_tables(prog);
	ELFRW_TRY(icf_resolve(prog, job->opt->threads));
	return icf_find_pads(prog);
}

static struct elfrw_err *find_tables(const struct job *job)
{
	ELFRW_TRY(icf_find_tables(&job->run->prog, job->opt->threads));
	icf_pin_constants(&job->run->prog);
	ELFRW_TRY(icf_pin_tagged(&job->run->prog));
	return icf_pin_halves(&job->run->prog);
}

static struct elfrw_err *find_unused(const struct job *job)
{
	return icf_find_unused(&job->run->prog, job->opt,
			       job->run->ask_use ? &job->run->use : NULL);
}

static struct elfrw_err *find_eligible(const struct job *job)
{
	return icf_find_eligible(&job->run->prog, job->opt);
}

static struct elfrw_err *make_plan(const struct job *job)
{
	struct icf_run *run = job->run;
	icf_find_unloaded(&run->prog);
	ELFRW_TRY(icf_make_plan(&run->prog, job->opt, &run->plan));
	/* The record of the first folding could not be kept. */
	if ((run->plan.n_folded || run->plan.n_removed) && !job->opt->strip_debug &&
	    elfrw_image_section(&run->img, ".debug_icfold"))
		return elfrw_error_at(
			".debug_icfold", 0,
			"was folded before, and more could be folded now: fold the program that it was made from");
	return NULL;
}

static const struct stage looking[] = {
	{ "symbols", load_symbols },
	{ "frames", read_frames },
	{ "units", find_units },
	{ "decode", find_refs },
	{ "data references", find_datarefs },
	{ "inference", infer_refs },
	{ "resolve", resolve },
	{ "jump tables", find_tables },
};
static const struct stage choosing[] = {
	{ "unused", find_unused },
	{ "eligible", find_eligible },
	{ "partition, plan", make_plan },
};

static struct elfrw_err *start(const struct job *job)
{
	/* Planning has read most of the file; the rest reads the half that it needs. */
	elfrw_image_forget(&job->run->img);
	ELFRW_TRY(elfrw_output_init(&job->run->out, &job->run->img));
	return icf_apply_drops(job->apply);
}

static struct elfrw_err *apply_unwind(const struct job *job)
{
	return icf_apply_unwind(job->apply);
}

static struct elfrw_err *apply_code(const struct job *job)
{
	return icf_apply_code(job->apply);
}

static struct elfrw_err *apply_data(const struct job *job)
{
	return icf_apply_data(job->apply);
}

static struct elfrw_err *query_calls(const struct job *job)
{
	return icf_apply_query(job->apply);
}

static struct elfrw_err *apply_debug(const struct job *job)
{
	return icf_apply_debug(job->apply);
}

/* Stages that are run beside others. */
struct lane {
	const struct job *job;
	const struct stage *stage;
	size_t n;
};

static const struct stage code_lane[] = {
	{ "apply unwind", apply_unwind },
	{ "apply code", apply_code },
	{ "apply data", apply_data },
};
static const struct stage debug_lane[] = {
	{ "find calls", query_calls },
	{ "apply debug", apply_debug },
};

/* Runs lane I of ARG, an array of lanes. */
static struct elfrw_err *run_lane(void *arg, size_t i)
{
	const struct lane *l = (const struct lane *)arg + i;
	for (size_t k = 0; k < l->n; k++) {
		ELFRW_TRY(l->stage[k].run(l->job));
		if (i == 0 && l->job->apply->no_room)
			break;
	}
	return NULL;
}

/* Code and data are mostly one thread's work; the debug information does not depend on them. */
static struct elfrw_err *apply_lanes(const struct job *job)
{
	struct lane lane[] = { { job, code_lane, sizeof code_lane / sizeof *code_lane },
			       { job, debug_lane, sizeof debug_lane / sizeof *debug_lane } };
	ELFRW_TRY(elfrw_parallel(job->opt->threads, 2, run_lane, lane));
	return icf_take_debug(job->apply);
}

static struct elfrw_err *apply_calls(const struct job *job)
{
	return icf_apply_calls(job->apply, &job->run->calls);
}

static struct elfrw_err *apply_symbols(const struct job *job)
{
	struct icf_apply *a = job->apply;
	ELFRW_TRY(icf_apply_symbols(a));
	ELFRW_TRY(icf_apply_notes(a));
	ELFRW_TRY(icf_apply_unloaded(a));
	if (job->opt->emit_relocs)
		ELFRW_TRY(icf_apply_relocs(a));
	if (job->run->img.pair)
		ELFRW_TRY(icf_debuglink_add_link(&job->run->out, job->opt->debug_output));
	return NULL;
}

static struct elfrw_err *lay_out(const struct job *job)
{
	return elfrw_output_layout(&job->run->out);
}

static const struct stage applying[] = {
	{ "apply drops", start },       { "apply code, debug", apply_lanes },
	{ "apply calls", apply_calls }, { "apply symbols", apply_symbols },
	{ "layout", lay_out },
};

static struct elfrw_err *apply(struct icf_run *run, const struct icf_options *opt,
			       struct icf_apply *a)
{
	const struct job job = { run, opt, a };
	*a = (struct icf_apply){
		.prog = &run->prog,
		.plan = &run->plan,
		.opt = opt,
		.out = &run->out,
		.room = &run->room,
	};
	ELFRW_TRY(run_stages(&job, applying, sizeof applying / sizeof *applying));
	if (a->no_room)
		return NULL;
	run->n_thunk_bytes = a->n_thunk_bytes;
	run->note_size = a->note_size;
	run->n_vtables = a->n_vtables;
	run->n_vtables_left_out = a->n_vtables_left_out;
	count_sections(run);
	return NULL;
}

static struct elfrw_err *open_input(struct icf_run *run, const struct icf_options *opt)
{
	struct icf_clock t = icf_now();
	if (opt->debug_file && !(run->debug_file = strdup(opt->debug_file)))
		return &elfrw_err_nomem;
	if (opt->debug_output && !opt->debug_file) {
		ELFRW_TRY(dwr_sym_find_debug(opt->input, opt->debug_dir, &run->debug_file, NULL));
		if (!run->debug_file)
			return elfrw_error("no debug file is found for it; see --debug-file");
	}
	if (run->debug_file)
		ELFRW_TRY(elfrw_pair_open(&run->img, opt->input, run->debug_file));
	else
		ELFRW_TRY(elfrw_image_open(&run->img, opt->input));
	icf_pass_done(run, "open", t);
	return NULL;
}

static struct elfrw_err *plan(const struct job *job)
{
	ELFRW_TRY(run_stages(job, looking, sizeof looking / sizeof *looking));
	return run_stages(job, choosing, sizeof choosing / sizeof *choosing);
}

/* Plans (I = 0), or gets the memory for what is done next; ARG: a struct job. */
static struct elfrw_err *plan_or_prepare(void *arg, size_t i)
{
	const struct job *job = arg;
	return i == 0 ? plan(job) : dwr_rewrite_room_make(&job->run->img, &job->run->room);
}

struct elfrw_err *icf_run_plan(struct icf_run *run, const struct icf_options *opt)
{
	struct job job = { run, opt, NULL };
	ELFRW_TRY(open_input(run, opt));
	return plan(&job);
}

struct elfrw_err *icf_run_look(struct icf_run *run, const struct icf_options *opt)
{
	struct job job = { run, opt, NULL };
	ELFRW_TRY(open_input(run, opt));
	return run_stages(&job, looking, sizeof looking / sizeof *looking);
}

struct elfrw_err *icf_run_choose(struct icf_run *run, const struct icf_options *opt)
{
	struct job job = { run, opt, NULL };
	return run_stages(&job, choosing, sizeof choosing / sizeof *choosing);
}

struct elfrw_err *icf_looked_save(const struct icf_program *prog, struct icf_looked *ret)
{
	const size_t n = prog->unit.len;
	*ret = (struct icf_looked){ .flags = malloc((n + 1) * sizeof *ret->flags),
				    .reason = malloc(n + 1),
				    .loose = prog->loose,
				    .loose_at = prog->loose_at,
				    .n_pinned = prog->n_pinned };
	if (!ret->flags || !ret->reason) {
		icf_looked_deinit(ret);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < n; i++) {
		ret->flags[i] = prog->unit.data[i].flags;
		ret->reason[i] = prog->unit.data[i].reason;
	}
	return NULL;
}

void icf_looked_restore(const struct icf_looked *from, struct icf_program *prog)
{
	for (size_t i = 0; i < prog->unit.len; i++) {
		prog->unit.data[i].flags = from->flags[i];
		prog->unit.data[i].reason = from->reason[i];
	}
	prog->loose = from->loose;
	prog->loose_at = from->loose_at;
	prog->n_pinned = from->n_pinned;
	prog->mark.len = prog->dead.len = 0;
}

void icf_looked_deinit(struct icf_looked *looked)
{
	free(looked->flags);
	free(looked->reason);
	*looked = (struct icf_looked){ 0 };
}

static void release(struct icf_apply *a)
{
	free(a->symbol_index);
	dwr_rewrite_out_deinit(&a->rewritten);
	icf_shared_deinit(&a->shared);
	icf_call_query_deinit(&a->query);
	free(a->frame_moves.move);
	VEC_FREE(&a->frame_ref);
}

/* Applies the plan, or one that needs less, after A is released. */
static struct elfrw_err *apply_fitting(struct icf_run *run, const struct icf_options *opt,
				       struct icf_apply *a)
{
	release(a);
	struct elfrw_err *err = apply(run, opt, a);
	/* Twice at most: in place, the unwind tables do not change, and thunks lie in what they
	 * replace. */
	while (!err && a->no_room) {
		release(a);
		elfrw_output_deinit(&run->out);
		err = icf_plan_less(&run->prog, opt, &run->plan);
		if (!err)
			err = apply(run, opt, a);
	}
	return err;
}

static bool larger(const struct icf_run *run, const struct icf_options *opt)
{
	return !opt->allow_growth && run->out.file_size > elfrw_image_file_size(&run->img);
}

/* The record of the folding, or the debug information, would take more than the folding saves.  The
 * output is then the input byte for byte, except for what the options leave out. */
static struct elfrw_err *fold_nothing(struct icf_run *run, const struct icf_options *opt,
				      struct icf_apply *a)
{
	bool same = true;
	struct icf_clock t = icf_now();
	for (uint32_t i = 1; i < run->img.n_sections && same; i++)
		same = !icf_leaves_out(opt, &run->img.section[i]);
	run->growth = run->out.file_size - elfrw_image_file_size(&run->img);
	run->calls = (struct icf_call_stats){ 0 };
	run->text_before = run->text_after = 0;
	elfrw_output_deinit(&run->out);
	ELFRW_TRY(icf_plan_nothing(&run->prog, opt, &run->plan));
	if (!same) {
		struct icf_options none = *opt;
		none.mode = ICF_MODE_NONE;
		return apply_fitting(run, &none, a);
	}
	run->note_size = run->n_thunk_bytes = run->n_vtables = run->n_vtables_left_out = 0;
	ELFRW_TRY(elfrw_output_init(&run->out, &run->img));
	elfrw_output_same(&run->out);
	count_sections(run);
	icf_pass_done(run, "fold nothing", t);
	return NULL;
}

struct elfrw_err *icf_run_fold(struct icf_run *run, const struct icf_options *opt)
{
	struct job job = { run, opt, NULL };
	const bool ahead = opt->threads > 1 && !opt->strip_debug;
	ELFRW_TRY(open_input(run, opt));
	elfrw_heap_reserve(run->img.size / 2);
	/* Much of planning is one thread's work. */
	ELFRW_TRY(elfrw_parallel(opt->threads, ahead ? 2 : 1, plan_or_prepare, &job));
	struct icf_apply a = { 0 };
	struct elfrw_err *err = apply_fitting(run, opt, &a);
	dwr_rewrite_room_deinit(&run->room);
	if (!err && larger(run, opt))
		err = fold_nothing(run, opt, &a);
	if (!err)
		err = elfrw_output_tail_fits(&run->out);
	release(&a);
	return err;
}

void icf_run_release(struct icf_run *run)
{
	struct elfrw_output *out = &run->out;
	uint64_t file_size = out->file_size;
	uint32_t n_unsplit = out->n_unsplit;
	bool unchanged = out->unchanged;
	if (out->img)
		elfrw_output_deinit(out);
	out->file_size = file_size;
	out->n_unsplit = n_unsplit;
	out->unchanged = unchanged;
	/* The input stays mapped; forgotten pages are read again when needed. */
	elfrw_image_forget(&run->img);
}

void icf_run_deinit(struct icf_run *run)
{
	if (run->out.img)
		elfrw_output_deinit(&run->out);
	icf_plan_deinit(&run->plan);
	dwr_rewrite_room_deinit(&run->room);
	free(run->use);
	icf_program_deinit(&run->prog);
	elfrw_image_close(&run->img);
	free(run->debug_file);
}
