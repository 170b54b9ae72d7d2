/* state.h: shared by the parts of the search for distances in data; run.c explains the search. */
#ifndef ICF_INFER_RUN_STATE_H
#define ICF_INFER_RUN_STATE_H
#include "elfrw/base/rbuf.h"
#include "icf/infer/parts.h"

#define MAX_STEP 64 /* bytes from one word of a table to the next */
#define MAX_AWAY 64 /* bytes from a word to the start or end of its record, at most */
#define MAX_GAP  8  /* entries in a row without a function */
#define MAX_REACH \
	(MAX_STEP * (MAX_GAP + 1)) /* bytes from one function of a table to the next, at most */
#define MAX_SHIFT 4  /* words of 4 or 8 bytes count in units of up to 1 << MAX_SHIFT bytes */
#define PAGE      9  /* pages of 1 << PAGE bytes */
#define MAX_FIXED 32 /* addresses that words of any section are counted from */
#define MARGIN    (2 * MAX_AWAY) /* bytes before the code that `entry` covers */

enum base {
	FROM_PLACE, /* plus `away` */
	FROM_NAME,  /* plus `away` */
	FROM_FIXED,
};

struct shape {
	uint8_t size, shift, base;
	bool sign; /* the word may be negative */
	int away;
	uint64_t fixed;
};

struct run_job {
	struct icf_program *prog;
	const struct icf_data_map *map;
	struct icf_bits entry; /* the entries of functions; from MARGIN bytes before the code to a
				  little behind it */
	uint8_t *near;   /* owned; a bit for each 16 bytes of `entry`: there is an entry in them
			    or in the 8 bytes behind them */
	uint8_t *page;   /* owned; a byte for each page of `entry`: the window of some shape has an
			    entry, if the word leads into this page.  `page[n_page]` is 0. */
	uint64_t n_page; /* 0: `page` would exclude little */
	struct icf_bits known; /* bytes of data with an explanation */
	uint64_t lo, hi;       /* of the code */
	uint64_t span;         /* the largest distance between any two places */
	uint64_t fixed[MAX_FIXED];
	unsigned n_fixed;
	double chance; /* probability that a random 4-byte word, counted from anywhere, leads to an
			  entry */
	double bytes;  /* of data */
	bool lone;     /* each lone word is believed */
	uint64_t step[MAX_REACH + 1];  /* by distance between two words: the steps at which the two
					  may be adjacent; bit k - 1: k bytes */
	VEC(struct elfrw_section) sec; /* with data; only the array is owned */
	VEC(struct run_part) part;
};

/* Sections that are searched, one after the other, for words of one size. */
struct run_part {
	uint32_t first, n;
	unsigned size;
};

/* A word that leads to an entry. */
struct hit {
	uint64_t va, base, to;
};

/* What is known of a long run, for later hits in it: from each of them, the same step leads along
 * the rest of the run. */
struct told {
	uint64_t first, last; /* places */
	uint64_t object; /* the start of the object in which a hit of it was judged last, or NOWHERE
			  */
	bool all; /* nothing is left to be learnt: it is believed, or has too few functions */
};
#define NOWHERE UINT64_MAX

/* A shape, and its hits. */
struct kind {
	struct shape sh;
	unsigned enough;     /* number of functions in a row that cannot be chance */
	unsigned alone;      /* the same in an object that holds nothing else */
	uint64_t step;       /* steps at which its tables can stand; bit k - 1: k bytes */
	bool lone;           /* lone words count */
	VEC(struct hit) hit; /* by place; those before `next` were judged */
	size_t next;
	struct told *told; /* owned; the last long run of each step and column, or NULL: none yet */
};

/* Words lead into the code from behind it, or on into it from all other places. */
enum side { SIDE_BACK, SIDE_ON };

/* Shapes that differ only in `away`. */
struct probe {
	struct shape sh;  /* `away`: of the window's first bit */
	uint64_t want[3]; /* the bits of the window that matter, WINDOW each */
	bool record;  /* each bit of the window is a shape; else the first bit is one shape, and the
			 others are the other */
	uint8_t side; /* enum side, in the block that was read last */
	uint32_t kind; /* of the first shape */
};

/* Words from LO to HI; none if HI < LO. */
struct range {
	int64_t lo, hi;
};

#define BLOCK 1024
struct block {
	unsigned n;
	uint64_t va[BLOCK], word[BLOCK];
	uint64_t name[BLOCK];  /* the last place up to `va` that something refers to */
	struct range back, on; /* the words that may matter to the probes of each side */
};

/* One section, one word size. */
struct look {
	const struct run_job *job;
	const struct elfrw_section *sec;
	unsigned size;
	VEC(struct kind) kind;
	VEC(struct probe) probe;
	uint64_t name, seen; /* the last place up to `seen` that something refers to */
	uint64_t start,
		end; /* of the object in the last question: from one named place to the next */
};

static inline uint64_t icf_run_word(const struct elfrw_section *s, uint64_t va,
				    const struct shape *sh)
{
	const uint8_t *p = s->data + (va - s->hdr.sh_addr);
	if (sh->size == 4)
		return (uint64_t)(int64_t)(int32_t)elfrw_get32(p) << sh->shift;
	if (sh->size == 8)
		return elfrw_get64(p) << sh->shift;
	return (sh->sign ? (uint64_t)(int64_t)(int16_t)elfrw_get16(p) : elfrw_get16(p))
	       << sh->shift;
}

static inline bool icf_run_in(const struct range *r, uint64_t w)
{
	return ((int64_t)w >= r->lo) & ((int64_t)w <= r->hi);
}

/* read.c: reads words from VA on into B, until B is full, or END or a place before it is reached.
 * Leaves out zeros and words that no probe would find.  Sets B's ranges and the sides of L's
 * probes. Returns the next place. */
uint64_t icf_run_read(struct look *l, struct block *b, uint64_t va, uint64_t end);

/* scan.c: searches PART of JOB. */
struct elfrw_err *icf_run_scan(const struct run_job *job, const struct run_part *part);

/* judge.c: does anything else explain a byte of the SIZE bytes at VA? */
bool icf_run_is_known(const struct run_job *job, uint64_t va, unsigned size);

/* Fills in the limits for KIND's shape; false: the shape is never believed. */
bool icf_run_kind(const struct run_job *job, struct kind *kind);

/* Judges hits of K; all places before UPTO have been searched. */
void icf_run_judge(struct look *l, struct kind *k, uint64_t upto);
#endif
