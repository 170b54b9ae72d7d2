/* state.h: shared by the unwinding files of icf/trace/: a core or process, its modules, threads and
 * memory. */
#ifndef ICF_TRACE_STATE_H
#define ICF_TRACE_STATE_H
#include "icf/trace/unwind_dwfl.h"
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>

struct module {
	Dwfl_Module *mod; /* owned by the session */
	bool asked;
	const char *exe;     /* the path given for its file; borrowed */
	pid_t pid;           /* the running process that it is in, or 0 */
	const char *sysroot; /* the folder that its name is below, or NULL; borrowed */
	char *found;         /* where its file was found; owned, or NULL */
	struct icf_unwind_module info;
};

struct segment {
	uint64_t start, size, off; /* the part of it in the file */
};

struct tracee {
	pid_t tid;
	int signal; /* signal that it was about to get */
};

/* A thread of a core where it stopped. */
struct start {
	struct icf_unwind *u;
	pid_t tid;
	const char *problem; /* its registers cannot be read; static */
	uint64_t pc, known;  /* bit R: reg[R] is known */
	Dwarf_Word reg[ICF_UNWIND_REGS];
};

struct icf_unwind {
	Dwfl_Callbacks callbacks;
	char *debug_path; /* owned */
	Dwfl *dwfl;
	Dwfl *registers; /* knows the registers of a core's threads; NULL: `dwfl` does */
	VEC(struct start) start;
	Elf *core;
	int fd;          /* of the core, or -1 */
	char *sysroot;   /* owned, or NULL */
	char *truncated; /* owned */
	pid_t pid;
	VEC(struct segment) segment; /* sorted by start */
	VEC(struct tracee) tracee;
	VEC(struct module) module;
	VEC(char *) absent; /* names of libraries whose files were not found; owned */
	/* During icf_unwind_threads. */
	struct icf_unwind_thread thread;
	struct elfrw_err *err;
	struct elfrw_err *(*fn)(void *ctx, const struct icf_unwind_thread *thread);
	void *ctx;
};

/* An error of WHAT and libdwfl's last error message. */
struct elfrw_err *icf_unwind_problem(const char *what);

/* core.c: opens the core at PATH. */
struct elfrw_err *icf_unwind_open_core(struct icf_unwind *u, const char *path,
				       const struct icf_unwind_options *options);
/* Reads where the threads stopped, if that is our job.  < 0: see dwfl_errmsg; out of memory sets
 * u->err. */
int icf_unwind_read_starts(struct icf_unwind *u);
/* As icf_unwind_memory. */
bool icf_unwind_core_word(struct icf_unwind *u, uint64_t address, uint64_t *word);

/* segment.c: a core with too many segments for libdwfl: shows libdwfl those that it needs; may
 * replace u->core. */
struct elfrw_err *icf_unwind_few_segments(struct icf_unwind *u);

/* loaded.c: reports to libdwfl what a core without ELF headers had loaded: the program EXE (NULL:
 * it is not known), and its libraries. */
bool icf_unwind_lacks_headers(struct icf_unwind *u);
struct elfrw_err *icf_unwind_report_loaded(struct icf_unwind *u, const char *exe);

/* process.c: stops the process PID and opens it; icf_unwind_thaw lets it continue. */
struct elfrw_err *icf_unwind_open_process(struct icf_unwind *u, pid_t pid,
					  const struct icf_unwind_options *options);
void icf_unwind_thaw(struct icf_unwind *u);

/* module.c */
/* Lists the modules and gives each its entry. */
struct elfrw_err *icf_unwind_list_modules(struct icf_unwind *u);
uint32_t icf_unwind_module_at(struct icf_unwind *u, uint64_t address);
/* The build-id of the file at PATH: its length in *N (0: none), and in ID (SIZE bytes) as much as
 * fits. */
struct elfrw_err *icf_unwind_file_id(const char *path, unsigned char *id, size_t size, size_t *n);
/* EXE was given as the program's file.  Assigns it to the module named NAME, or (NULL) to those
 * with its build-id.  EXE NULL: no file was given.  Error: it is the file of no module. */
struct elfrw_err *icf_unwind_place_exe(struct icf_unwind *u, const char *exe, const char *name);
/* Callbacks of libdwfl: the files of a core's and of a process's modules. */
int icf_unwind_find_core_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			     char **file, Elf **elf);
int icf_unwind_find_process_elf(Dwfl_Module *mod, void **userdata, const char *name,
				Dwarf_Addr base, char **file, Elf **elf);
#endif
