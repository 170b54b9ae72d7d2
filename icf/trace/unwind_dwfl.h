/* unwind_dwfl.h: the stacks of a core file or of a running process, unwound by libdwfl
 * (elfutils). */
#ifndef ICF_TRACE_UNWIND_DWFL_H
#define ICF_TRACE_UNWIND_DWFL_H
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ICF_UNWIND_REGS 33 /* DWARF numbers that are kept */
#define ICF_NO_MODULE   UINT32_MAX

struct icf_unwind;

/* A program or library in the process. */
struct icf_unwind_module {
	const char *name; /* its name in the process; borrowed, as are the others */
	const char *path; /* its file; NULL: none was found */
	bool program;     /* no library: lowest in memory, or given as the program's file */
	uint64_t bias;    /* loaded minus linked address; 0 without a file */
};

struct icf_unwind_frame {
	uint64_t pc;     /* or return address */
	bool activation; /* a PC: of the innermost frame, or of one that a signal interrupted */
	uint32_t module; /* index, or ICF_NO_MODULE */
	uint64_t known;  /* bit R: reg[R] is known */
	uint64_t reg[ICF_UNWIND_REGS]; /* of the running program, by DWARF number */
};

struct icf_unwind_thread {
	pid_t tid;
	VEC(struct icf_unwind_frame) frame; /* innermost first */
	const char *problem;                /* why the stack ends early; NULL: it is complete */
};

struct icf_unwind_options {
	const char *exe;     /* the program's file; NULL: the one that the process or core names */
	const char *sysroot; /* the root folder of the core; NULL: / */
	const char *debug_dir; /* folder of separate debug files; NULL: the usual places */
};

/* Opens the core file PATH.  OPTIONS is borrowed.  A truncated core is opened if possible;
 * *TRUNCATED then describes the fault (owned by *RET; else NULL).  Errors: not a core, or nothing
 * in it to unwind. */
struct elfrw_err *icf_unwind_core(const char *path, const struct icf_unwind_options *options,
				  struct icf_unwind **ret, const char **truncated);

/* Stops the process PID with all its threads until icf_unwind_close.  Errors: no such process, not
 * permitted. */
struct elfrw_err *icf_unwind_process(pid_t pid, const struct icf_unwind_options *options,
				     struct icf_unwind **ret);
void icf_unwind_close(struct icf_unwind *u); /* NULL is allowed */

pid_t icf_unwind_pid(const struct icf_unwind *u);

/* Calls FN for each thread; THREAD is valid during the call.  An error of FN ends the loop and is
 * returned. */
struct elfrw_err *icf_unwind_threads(
	struct icf_unwind *u,
	struct elfrw_err *(*fn)(void *ctx, const struct icf_unwind_thread *thread), void *ctx);

size_t icf_unwind_n_modules(const struct icf_unwind *u);

/* The name in the process of library INDEX of those that are no modules since their files were not
 * found; NULL: there are no more. */
const char *icf_unwind_absent(const struct icf_unwind *u, size_t index);

/* Module INDEX.  Its file is searched on the first call. */
const struct icf_unwind_module *icf_unwind_module(struct icf_unwind *u, uint32_t index);

/* The 8 bytes at ADDRESS; false: not mapped, or not in the core. */
bool icf_unwind_memory(struct icf_unwind *u, uint64_t address, uint64_t *word);

/* The name of the symbol that holds ADDRESS in a module without a file, or NULL. */
const char *icf_unwind_symbol(struct icf_unwind *u, uint64_t address);
#endif
