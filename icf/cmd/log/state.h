/* state.h: shared by log.c and its parts: the files of a log, and the stack in hand. */
#ifndef ICF_CMD_LOG_STATE_H
#define ICF_CMD_LOG_STATE_H
#include "elfrw/base/vec.h"
#include "icf/cmd/log/log.h"
#include "icf/cmd/sym/stack.h"
#include "icf/trace/log_text.h"
#include <sys/types.h>

#define ICF_LOG_NO_FILE UINT32_MAX

/* A file as logs name it. */
struct icf_log_file {
	char *name, *path;   /* owned; path: where it is */
	struct dwr_sym *sym; /* NULL: not open (yet) */
	struct icf_sym_stack_in in;
	struct icf_stack *stack;
	bool has_bias; /* it was loaded BIAS bytes above its addresses as linked */
	uint64_t bias;
	bool complained; /* of its build-id */
	dev_t dev;
	ino_t ino;
};

/* Another name of an open file. */
struct icf_log_alias {
	char *name; /* owned */
	uint32_t file;
};

struct icf_log_mapped {
	uint64_t start, end, offset;
	uint32_t file;
};

struct icf_log_line {
	uint32_t at, n; /* in icf_log.text; with the newline */
	uint32_t first; /* of N: the line itself; Rust has its place and inlined calls behind it */
	struct icf_log_frame f;
	uint32_t inner, n_inner; /* in icf_log.inner: the lines behind it that are of the same
				    place, one for each function that it was inlined into */
	uint32_t file;           /* ICF_LOG_NO_FILE: unknown */
	bool pc;          /* the address is that of the instruction, not of the one to return to */
	uint64_t address; /* as linked: the instruction's, or the one to return to */
};

struct icf_log {
	const struct icf_sym_log_in *in;
	VEC(struct icf_log_file *) file;
	VEC(struct icf_log_alias) alias;
	VEC(struct icf_log_mapped) mapped; /* the newest last */
	uint64_t *missing;                 /* hashes of names of files that are not there; owned */
	uint32_t n_missing, messages;
	/* the stack in hand */
	VEC(char) text;
	VEC(struct icf_log_line) line;
	VEC(struct icf_log_line) inner;
	VEC(uint64_t) address;
	struct dwr_sym_frames frames;
	bool warned; /* of addresses whose files nobody knows */
};

static inline const char *icf_log_at(const struct icf_log *g, const struct icf_log_line *l,
				     struct icf_log_part p)
{
	return g->text.data + l->at + p.at;
}

/* file.c */

/* The file that a log calls NAME, of N bytes; with ID, of N_ID digits, only the one with this
 * build-id.  ICF_LOG_NO_FILE: not there. */
struct elfrw_err *icf_log_file_of(struct icf_log *g, const char *name, size_t n, const char *id,
				  size_t n_id, uint32_t *ret);

/* The user's file becomes file 0. */
struct elfrw_err *icf_log_open_obj(struct icf_log *g);

/* Is ADDRESS, as linked, in F's code, or at its end? */
bool icf_log_is_code(const struct icf_log_file *f, uint64_t address);

/* A line of the log says where FILE is. */
struct elfrw_err *icf_log_map(struct icf_log *g, const struct icf_log_mapping *m, const char *line);

/* The address as linked where F's first segment begins, rounded down to a page. */
uint64_t icf_log_lowest(const struct icf_log_file *f);

/* The offset in the file of F's first segment with code, rounded down to a page. */
uint64_t icf_log_code(const struct icf_log_file *f);

/* The address as linked of the byte at OFFSET of F; false: it is not loaded as code. */
bool icf_log_from_offset(const struct icf_log_file *f, uint64_t offset, uint64_t *ret);

/* Finds the file and the address as linked of ADDRESS in the process; false: unknown. */
bool icf_log_from_address(const struct icf_log *g, uint64_t address, uint32_t *file, uint64_t *ret);

void icf_log_close_files(struct icf_log *g);

/* place.c */

/* Finds the places of the frames in hand. */
struct elfrw_err *icf_log_places(struct icf_log *g);

/* group.c */

/* Makes one line in hand of the lines that a sanitizer wrote for the calls inlined at one place. */
struct elfrw_err *icf_log_group(struct icf_log *g);

/* Do the names in line L, which a sanitizer wrote, fit the answer A? */
struct elfrw_err *icf_log_is_right(struct icf_log *g, const struct icf_log_line *l,
				   const struct icf_sym_answer *a, bool *ret);

/* Line I of those that L was made of; L itself is the first one. */
const struct icf_log_line *icf_log_inner(const struct icf_log *g, const struct icf_log_line *l,
					 size_t i);

/* source.c */

/* Can lines that begin with the N_A bytes at A and the N_B at B be of one writer? */
bool icf_log_same_source(const char *a, size_t n_a, const char *b, size_t n_b);

/* name.c */

/* How many of the bytes at L's CUT are a name of the function of A, or say that it has none. */
size_t icf_log_name_bytes(const struct icf_log *g, const struct icf_log_line *l,
			  const struct icf_sym_answer *a);

/* May the N bytes at TEXT have the name of FUNCTION, in another spelling? */
bool icf_log_may_name(const char *text, size_t n, const char *function);

/* print.c */

/* Prints line L with the answer A.  A frame with a number gets *SHIFT more than it had; the calls
 * inlined there get numbers of their own, and *SHIFT grows by them. */
void icf_log_print(const struct icf_log *g, const struct icf_log_line *l,
		   const struct icf_sym_answer *a, uint64_t *shift);
#endif
