/* state.h: shared by the files of this folder: one sample, how its addresses are attributed, and
 * what is counted. */
#ifndef ICF_PROFILE_STATE_H
#define ICF_PROFILE_STATE_H
#include "dwarf/calls/icfold_note.h"
#include "dwarf/stack/branch.h"
#include "elfrw/base/vec.h"
#include "icf/profile/profile.h"
#include "icf/trace/perf_address.h"
#include "icf/trace/perf_text.h"
#include <sys/types.h>

#define ICF_PROF_NONE UINT32_MAX

/* An address in the text of a sample. */
struct icf_prof_address {
	uint32_t at, n; /* place in the text, with 0x */
	uint64_t raw;   /* as in the text */
	uint64_t va;    /* as linked */
	uint64_t other; /* in the other program, as linked */
	uint32_t act;   /* ICF_PROF_NONE: not in the program */
	uint32_t unit;  /* the function that it is attributed to; ICF_PROF_NONE: none */
	bool in;        /* it is in the program */
	bool ret;       /* it is a return address, and what it says is of the byte before */
	bool undecided;
	bool dropped; /* it has no place in the other program, or is undecided and not wanted */
};

/* A branch; its ends are sample.address[FROM] and [FROM + 1]. */
struct icf_prof_branch {
	uint32_t from;
	uint32_t at, end; /* place in the text */
	bool thunk;       /* from a thunk to its function: nothing in the other program */
	bool missed;      /* it was mispredicted */
};

/* A level of the call chain; without one, the place of the sample is one level. */
struct icf_prof_frame {
	uint32_t address;        /* index; of an inlined call: that of the function around it */
	struct icf_perf_parts f; /* places count from LINE; n_name is 0 if there is no name */
	uint32_t line;
	bool inlined;
};

/* One activation of a function during a sample, or one of code outside of the program. */
struct icf_prof_act {
	uint32_t unit;   /* whose code; ICF_PROF_NONE: outside */
	uint32_t group;  /* ICF_PROF_NONE: the unit is the function */
	uint32_t first;  /* the activation at this depth that the call led to */
	uint32_t parent; /* of the first one: the caller; ICF_PROF_NONE: unknown */
	uint64_t site;   /* of the first one: where it returns to; 0: unknown */
	uint32_t set, n; /* the members that it can be, in the pool or, if FULL, all of the group */
	bool full;
	bool undecided; /* chosen, not decided */
	bool alike;     /* among functions of one name: copies of one function */
};

enum icf_prof_how { ICF_PROF_ENTERED, ICF_PROF_LEFT, ICF_PROF_PART, ICF_PROF_POINTED };

/* Activation FROM, by its branch before SITE, leads to TO. */
struct icf_prof_edge {
	uint32_t from, to;
	uint64_t site;
	enum icf_prof_how how;
};

struct icf_prof_place {
	uint64_t va;
	bool used;
	uint32_t kept; /* the unit whose code is executed there */
	uint64_t site; /* where a call there returns to if the address is of a caller; 0: no call */
	bool site_known;
	bool again; /* that call can lead to the code that holds it */
	struct dwr_branch_place p;
};

/* Function FROM has a branch before SITE, which led to code of GROUP. */
struct icf_prof_question {
	uint64_t site;
	uint32_t from, group;
	enum icf_prof_how how;
};

/* A cached answer of branch.h: members. */
struct icf_prof_answer {
	struct icf_prof_question q;
	bool used;
	uint32_t first, n; /* in the pool of answers; N 0: any */
};

/* What is known of a process. */
struct icf_prof_process {
	int64_t pid;
	uint64_t shift;           /* if the program is MAPPED in it */
	uint32_t other;           /* the last mapping of another file, ICF_PROF_NONE: none */
	bool used, mapped, ended; /* ENDED: it was, until another file took its place */
};

/* A mapping of another file as code. */
struct icf_prof_other {
	uint64_t start, end;
	uint32_t next; /* the one before it in its process */
};

struct icf_prof_count {
	uint64_t a, b;
	uint64_t n, odd; /* ODD: mispredicted */
	bool used;
};

struct icf_prof_counter {
	struct icf_prof_count *slot; /* open hash table; owned */
	size_t n, n_slots;
};

struct icf_prof_stack;
struct icf_prof_gmon;
struct icf_prof_callgrind;

struct icf_profile {
	const struct icf_profile_in *in;
	struct icf_perf_module *m;
	struct icf_profile_counts counts;
	dev_t dev;
	ino_t ino;
	bool have_id;
	uint64_t lo, hi; /* the executable sections in the program of the profile, as linked */
	struct {
		uint64_t start, end;
	} plt[4]; /* procedure linkage tables in the other program */
	unsigned n_plt;
	/* Where the program was mapped, and others in its stead. */
	struct icf_prof_process *process; /* open hash table; owned */
	size_t n_processes;
	VEC(struct icf_prof_other) other;
	uint64_t recent[8]; /* the last different shifts, the newest first */
	unsigned n_recent;
	/* The sample. */
	uint64_t line; /* number of the line that is read */
	VEC(char) text;
	VEC(struct icf_prof_address) address;
	VEC(struct icf_prof_branch) branch; /* the newest first */
	VEC(struct icf_prof_frame) frame;
	bool chain;   /* lines of a call chain may follow */
	bool skipped; /* of another event */
	bool inlines; /* perf was asked for inlined calls */
	int64_t pid;
	uint64_t count, weight;
	uint32_t comm, n_comm;
	char event[64]; /* of the sample */
	char first_event[64];
	char last_dso[256];
	bool last_dso_is;
	/* Its attribution. */
	VEC(struct icf_prof_act) act;
	VEC(struct icf_prof_edge) edge;
	VEC(uint32_t) pool;
	VEC(uint32_t) scratch;
	uint32_t *turn;                /* by group: the next one of --undecided=spread; owned */
	struct dwr_sym_frames inlined; /* of the frame in hand */
	/* Caches. */
	struct icf_prof_place *place;
	size_t n_places;
	struct icf_prof_answer *answer;
	size_t n_answers;
	VEC(uint32_t) answer_pool;
	/* The output. */
	struct icf_prof_counter ranges, branches, addresses;
	struct icf_prof_stack *stack;
	struct icf_prof_gmon *gmon;
	struct icf_prof_callgrind *callgrind;
};

/* profile.c: hands on the sample that was read, and clears it. */
struct elfrw_err *icf_prof_flush(struct icf_profile *p);

/* text.c: the text of `perf script`, as icf_profile_read(). */
struct elfrw_err *icf_prof_read_text(struct icf_profile *p, int fd, const char *name);

/* place.c */
struct elfrw_err *icf_prof_place(struct icf_profile *p, uint64_t va,
				 const struct icf_prof_place **ret);
/* AGAIN may be NULL. */
struct elfrw_err *icf_prof_site(struct icf_profile *p, uint64_t va, uint64_t *ret, bool *again);
/* The program, or another file, is now mapped at M. */
struct elfrw_err *icf_prof_mapped(struct icf_profile *p, const struct icf_perf_mapping *m);
struct elfrw_err *icf_prof_other_mapped(struct icf_profile *p, const struct icf_perf_mapping *m);
bool icf_prof_is_file(struct icf_profile *p, const char *name, size_t n);

/* Fills VA and IN of an address that the text shows as RAW.  F: its frame at LINE, or NULL. */
struct elfrw_err *icf_prof_locate(struct icf_profile *p, struct icf_prof_address *a,
				  const char *line, const struct icf_perf_parts *f);

/* The address in the other program of A, which function UNIT executes. */
uint64_t icf_prof_other(const struct icf_profile *p, uint32_t unit, uint64_t va);

/* decide.c: attributes the addresses of the sample. */
struct elfrw_err *icf_prof_decide(struct icf_profile *p);

/* solve.c */
struct elfrw_err *icf_prof_solve(struct icf_profile *p);
uint32_t icf_prof_candidate(const struct icf_profile *p, const struct icf_prof_act *a, uint32_t k);
/* Leaves of A's candidates those among the N members SET; false: none would be left. */
bool icf_prof_meet(struct icf_profile *p, struct icf_prof_act *a, const uint32_t *set, size_t n,
		   bool *changed, bool *nomem);

/* The members that Q's branch can lead to; N 0: any.  RET is valid until the next call. */
struct elfrw_err *icf_prof_answer(struct icf_profile *p, const struct icf_prof_question *q,
				  const uint32_t **ret, size_t *n);

/* inlined.c */

/* Tells calls that were inlined from frames, where perf shows the one as the other. */
struct elfrw_err *icf_prof_inlined(struct icf_profile *p);

/* Writes the lines of frames FIRST to LAST, calls inlined at LAST, and the line of LAST itself. */
struct elfrw_err *icf_prof_put_inlined(struct icf_profile *p, size_t first, size_t last,
				       size_t *pos);

/* script.c: the sample as text.  The pieces write the text from *POS on. */
struct elfrw_err *icf_prof_put_script(struct icf_profile *p);
void icf_prof_put_address(const struct icf_profile *p, const struct icf_prof_address *a,
			  size_t *pos);
struct elfrw_err *icf_prof_put_frame(struct icf_profile *p, const struct icf_prof_frame *f,
				     size_t *pos);
/* The name of the function that A is attributed to, if frame F shows another one; else NULL. */
struct elfrw_err *icf_prof_other_name(struct icf_profile *p, const struct icf_prof_address *a,
				      const struct icf_prof_frame *f, const char **ret);
void icf_prof_put_mapping(struct icf_profile *p, const char *s, size_t n,
			  const struct icf_perf_mapping *m);

/* count.c */
struct elfrw_err *icf_prof_count(struct icf_profile *p);
struct elfrw_err *icf_prof_put_counts(struct icf_profile *p);
struct elfrw_err *icf_prof_add(struct icf_prof_counter *c, uint64_t a, uint64_t b, uint64_t n,
			       uint64_t odd);
#endif
