/* state.h: shared by perf.c and its parts: one sample of perf's text, and the cached results of
 * earlier frames and stacks. */
#ifndef ICF_CMD_PERF_STATE_H
#define ICF_CMD_PERF_STATE_H
#include "dwarf/stack/callchain.h"
#include "icf/cmd/perf/perf.h"
#include "icf/trace/perf_address.h"
#include "icf/trace/perf_text.h"
#include <sys/types.h>
#include <xxhash.h>

#define ICF_PERF_KNOWN     (1 << 17) /* entries of a cache before it is emptied */
#define ICF_PERF_SLOTS     (2 * ICF_PERF_KNOWN)
#define ICF_PERF_NO_MODULE UINT32_MAX

/* A file as perf names it. */
struct icf_perf_dso {
	char *name; /* owned */
	size_t n;
	uint32_t module;
};

/* The file of a module.  A profile may name one file in any number of ways. */
struct icf_perf_file {
	dev_t dev;
	ino_t ino;
};

/* Which of the functions that share code is meant in a stack. */
struct icf_perf_answer {
	bool decided;
	uint32_t member;   /* the decided function, or the kept one */
	uint32_t first, n; /* candidates, in perf.candidate; if they are the whole group, members
			      from MEMBER on */
	bool all;
	char *text[ICF_PERF_FORMS]; /* texts of an undecided answer; owned */
};

/* Where a frame is. */
struct icf_perf_place {
	uint32_t module;        /* ICF_PERF_NO_MODULE: in no file with tables */
	bool shared_pc, shared; /* in shared code, as a PC, or as a return address */
	bool again;        /* a call that returns there could have called the code that holds it */
	uint64_t pc, site; /* 0: unknown; where a call there returns to */
};

struct icf_perf_known_frame {
	XXH128_hash_t key;
	bool used;
	struct icf_perf_place place;
};

struct icf_perf_known_stack {
	XXH128_hash_t key;
	bool used;
	uint32_t answer; /* the first of one answer for each frame; UINT32_MAX: none */
};

struct icf_perf_line {
	uint32_t at, n; /* in perf.text */
	bool is_frame;
	struct icf_perf_parts f;
	struct icf_perf_place place;
	uint32_t frame; /* index in perf.frame, UINT32_MAX: none */
};

struct icf_perf_frame {
	uint32_t module;
	bool shared;
	uint64_t address; /* a PC or a return address; 0: unknown */
	uint32_t answer;  /* UINT32_MAX: none */
};

struct icf_perf {
	const struct icf_sym_perf_in *in;
	dev_t dev;
	ino_t ino;
	bool have_id;
	VEC(struct icf_perf_module *) module;
	VEC(struct icf_perf_file) file; /* by module, unless the user names the only one */
	VEC(struct icf_perf_dso) dso;
	uint32_t *dso_slot; /* 1 + index; open hash table; owned */
	size_t last_dso;
	int64_t pid;
	uint64_t fileless; /* frames that perf shows with a name and no file */
	/* The current sample. */
	VEC(char) text;
	VEC(struct icf_perf_line) line;
	VEC(struct icf_perf_frame) frame;
	bool chain;        /* its first line belongs to a call chain */
	bool inlines_seen; /* perf shows inlined calls */
	VEC(uint64_t) address;
	struct dwr_chain answer_chain;
	struct dwr_sym_frames frames;
	/* The caches. */
	struct icf_perf_known_frame *known;
	size_t n_known;
	struct icf_perf_known_stack *stack;
	size_t n_stacks;
	VEC(struct icf_perf_answer) answer;
	VEC(uint32_t) candidate;
};

static inline bool icf_perf_same_key(XXH128_hash_t a, XXH128_hash_t b)
{
	return a.low64 == b.low64 && a.high64 == b.high64;
}

/* frame.c */

/* The module for the file that perf calls NAME, of N bytes; ICF_PERF_NO_MODULE if it has no tables.
 * Errors: the file cannot be read, out of memory. */
struct elfrw_err *icf_perf_module_of(struct icf_perf *p, const char *name, size_t n, uint32_t *ret);

/* Forgets the names of files; modules stay. */
void icf_perf_forget_files(struct icf_perf *p);

/* Makes P's frames from its lines. */
struct elfrw_err *icf_perf_frames(struct icf_perf *p);

/* answer.c */

/* Answers for P's frames LO to HI, all in shared code of one file.  The frame around them counts if
 * it is in the same file. */
struct elfrw_err *icf_perf_answer(struct icf_perf *p, size_t lo, size_t hi);

/* Empties the caches of stacks and answers. */
void icf_perf_forget(struct icf_perf *p);

/* A linkage name of MEMBER, whose code holds ADDRESS; "??" if there is none.  Borrowed. */
const char *icf_perf_linkage(struct icf_perf *p, struct icf_perf_module *m, uint32_t member,
			     uint64_t address);

/* The name of the undecided answer A, KEPT[one of: A|B], without parameters, since scripts end a
 * name at a parenthesis.  Borrowed from A. */
struct elfrw_err *icf_perf_undecided(struct icf_perf *p, struct icf_perf_module *m,
				     struct icf_perf_answer *a, uint64_t address,
				     enum icf_perf_form form, const char **ret);
#endif
