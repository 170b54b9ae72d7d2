/* profile.h: a profile of a folded program, written for the program as it was before.
 *
 * A sample in shared code is attributed to the function that was called there: by the branch that
 * led there, by the place that the function returned to, or by the call chain.  .debug_icfold has
 * the old addresses; the old file is not needed.
 *
 *	struct icf_profile *p;
 *	err = icf_profile_open(&in, &p);
 *	err = icf_profile_read(p, fd, "perf.txt");
 *	err = icf_profile_finish(p, &counts);
 *	icf_profile_close(p); */
#ifndef ICF_PROFILE_PROFILE_H
#define ICF_PROFILE_PROFILE_H
#include "dwarf/symbolize/symbolize.h"
#include <stdio.h>

struct icf_profile;

enum icf_profile_to {
	ICF_PROFILE_PERFSCRIPT, /* the same text */
	ICF_PROFILE_PROFGEN,    /* llvm-profgen --unsymbolized-profile */
	ICF_PROFILE_BOLT,       /* perf2bolt --pa */
	ICF_PROFILE_AUTOFDO,    /* create_llvm_prof --profiler=text */
	ICF_PROFILE_PPROF,      /* profile.proto, compressed */
	ICF_PROFILE_COLLAPSED,  /* stacks for flame graphs */
	ICF_PROFILE_GMON,       /* gmon.out, made of gmon.out */
	ICF_PROFILE_CALLGRIND,  /* callgrind.out, made of callgrind.out */
};

enum icf_profile_undecided {
	ICF_PROFILE_KEPT,   /* to the function whose code was kept */
	ICF_PROFILE_DROP,   /* to none */
	ICF_PROFILE_SPREAD, /* to all possible functions in turn */
};

struct icf_profile_in {
	const char *file; /* the folded program */
	const struct dwr_sym_options *options;
	enum icf_profile_to to;
	enum icf_profile_undecided undecided;
	bool forward;      /* the profile is of the old program, and is wanted for the folded one */
	const char *event; /* only samples of this event; NULL: all */
	FILE *out;         /* borrowed */
};

struct icf_profile_counts {
	uint64_t samples, branches, frames; /* read, in any file */
	uint64_t places; /* addresses in FILE that are a sample, an end of a branch, or a caller; of
			    gmon.out and callgrind.out: calls */
	uint64_t shared, undecided; /* of PLACES: in shared code; of these, undecided */
	uint64_t alike;    /* of UNDECIDED: among functions of one name, which compilers make of one
			      inline function in several files */
	uint64_t nowhere;  /* of PLACES: in code that has no place in the other program */
	uint64_t nameless; /* callers without a file that may be offsets in the program */
	uint64_t odd, first_odd; /* lines that could not be read, and the number of the first */
	bool events_differ;      /* samples of several events were counted together */
};

/* Errors: FILE cannot be opened, or has no .debug_icfold; out of memory.  IN is borrowed. */
struct elfrw_err *icf_profile_open(const struct icf_profile_in *in, struct icf_profile **ret);

/* Reads the text of `perf script` from FD, or what the output needs; NAME is for messages.  Errors:
 * it cannot be read, is another kind of file, or has nothing that the output can be made of; out of
 * memory. */
struct elfrw_err *icf_profile_read(struct icf_profile *p, int fd, const char *name);

/* The profile at FD, by its first bytes, if it can be written in one form alone (gmon.out,
 * callgrind.out); false: it is another one, or FD cannot seek. */
bool icf_profile_sniff(int fd, enum icf_profile_to *ret);

/* Writes what was not written yet.  Errors: there was no sample; out of memory. */
struct elfrw_err *icf_profile_finish(struct icf_profile *p, struct icf_profile_counts *ret);

void icf_profile_close(struct icf_profile *p); /* NULL is allowed */
#endif
