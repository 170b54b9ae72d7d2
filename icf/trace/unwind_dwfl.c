/* unwind_dwfl.c: see unwind_dwfl.h.
 *
 * Opening and closing (cores: core.c, processes: process.c), and the frames of each thread.
 *
 * Cost: that of libdwfl, some microseconds a frame, and opening the files that hold the code. */
#include "dwarf/return_address.h"
#include "icf/trace/state.h"
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_FRAMES 65536 /* of one thread, at most */

struct elfrw_err *icf_unwind_problem(const char *what)
{
	const char *text = dwfl_errmsg(-1);
	return elfrw_error("%s: %s", what, text ? text : "unknown error");
}

static struct elfrw_err *begin(const struct icf_unwind_options *options, bool live,
			       struct icf_unwind **ret)
{
	struct icf_unwind *u = calloc(1, sizeof *u);
	if (!u)
		return &elfrw_err_nomem;
	*ret = u;
	u->fd = -1;
	if (options->sysroot && !(u->sysroot = strdup(options->sysroot)))
		return &elfrw_err_nomem;
	if (options->debug_dir && asprintf(&u->debug_path, ":.debug:%s", options->debug_dir) < 0) {
		u->debug_path = NULL;
		return &elfrw_err_nomem;
	}
	u->callbacks = (Dwfl_Callbacks){
		.find_elf = live ? icf_unwind_find_process_elf : icf_unwind_find_core_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = options->debug_dir ? &u->debug_path : NULL,
	};
	u->dwfl = dwfl_begin(&u->callbacks);
	return u->dwfl ? NULL : icf_unwind_problem("cannot start libdwfl");
}

struct elfrw_err *icf_unwind_core(const char *path, const struct icf_unwind_options *options,
				  struct icf_unwind **ret, const char **truncated)
{
	struct icf_unwind *u = NULL;
	struct elfrw_err *err = begin(options, false, &u);
	if (!err)
		err = icf_unwind_open_core(u, path, options);
	if (err) {
		icf_unwind_close(u);
		return err;
	}
	*ret = u;
	*truncated = u->truncated;
	return NULL;
}

struct elfrw_err *icf_unwind_process(pid_t pid, const struct icf_unwind_options *options,
				     struct icf_unwind **ret)
{
	struct icf_unwind *u = NULL;
	struct elfrw_err *err = begin(options, true, &u);
	if (!err)
		err = icf_unwind_open_process(u, pid, options);
	if (err)
		icf_unwind_close(u);
	else
		*ret = u;
	return err;
}

void icf_unwind_close(struct icf_unwind *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	if (u->registers)
		dwfl_end(u->registers);
	icf_unwind_thaw(u);
	if (u->core)
		elf_end(u->core);
	if (u->fd >= 0)
		close(u->fd);
	VEC_FREE(&u->segment);
	VEC_FREE(&u->start);
	for (size_t i = 0; i < u->module.len; i++)
		free(u->module.data[i].found);
	VEC_FREE(&u->module);
	for (size_t i = 0; i < u->absent.len; i++)
		free(u->absent.data[i]);
	VEC_FREE(&u->absent);
	free(u->sysroot);
	VEC_FREE(&u->thread.frame);
	free(u->truncated);
	free(u->debug_path);
	free(u);
}

pid_t icf_unwind_pid(const struct icf_unwind *u)
{
	return u->pid;
}

bool icf_unwind_memory(struct icf_unwind *u, uint64_t address, uint64_t *word)
{
	struct iovec here = { word, 8 }, there = { (void *)(uintptr_t)address, 8 };
	return u->core ? icf_unwind_core_word(u, address, word)
		       : process_vm_readv(u->pid, &here, 1, &there, 1, 0) == 8;
}

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct icf_unwind *u = arg;
	Dwarf_Addr pc;
	bool activation;
	if (!dwfl_frame_pc(state, &pc, &activation)) {
		u->thread.problem = "the return address of the last frame is not known";
		return DWARF_CB_ABORT;
	}
	if (u->thread.frame.len == MAX_FRAMES) {
		u->thread.problem = "it is too deep";
		return DWARF_CB_ABORT;
	}
	struct icf_unwind_frame *f = VEC_PUSH(&u->thread.frame);
	if (!f) {
		u->err = &elfrw_err_nomem;
		return DWARF_CB_ABORT;
	}
	f->pc = pc;
	f->activation = activation || u->thread.frame.len == 1;
	f->module = icf_unwind_module_at(u, f->activation ? pc : dwr_call_at(pc));
#if _ELFUTILS_PREREQ(0, 188)
	for (unsigned r = 0; r < ICF_UNWIND_REGS; r++)
		if (dwfl_frame_reg(state, r, &f->reg[r]) == 0)
			f->known |= UINT64_C(1) << r;
#endif
	return DWARF_CB_OK;
}

static int on_thread(Dwfl_Thread *thread, void *arg)
{
	struct icf_unwind *u = arg;
	u->thread.tid = dwfl_thread_tid(thread);
	u->thread.problem = NULL;
	u->thread.frame.len = 0;
	int rc = dwfl_thread_getframes(thread, on_frame, u);
	int error = rc < 0 ? dwfl_errno() : 0;
	if (!u->err && rc < 0 && !u->thread.problem)
		u->thread.problem = error ? dwfl_errmsg(error) : "address out of range";
	if (!u->err)
		u->err = u->fn(u->ctx, &u->thread);
	return u->err ? DWARF_CB_ABORT : DWARF_CB_OK;
}

struct elfrw_err *icf_unwind_threads(
	struct icf_unwind *u,
	struct elfrw_err *(*fn)(void *ctx, const struct icf_unwind_thread *thread), void *ctx)
{
	struct elfrw_err *broken = NULL;
	u->fn = fn;
	u->ctx = ctx;
	if (icf_unwind_read_starts(u) < 0 && !u->err)
		broken = u->truncated ? elfrw_error("%s", u->truncated)
				      : icf_unwind_problem("cannot list the threads");
	int rc = u->err ? 0 : dwfl_getthreads(u->dwfl, on_thread, u);
	struct elfrw_err *err = u->err ? u->err : broken;
	if (err != broken)
		elfrw_err_free(broken);
	u->err = NULL;
	if (!err && rc < 0)
		err = u->truncated ? elfrw_error("%s", u->truncated)
				   : icf_unwind_problem("cannot list the threads");
	return err;
}
