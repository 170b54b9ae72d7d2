/* perf_text.h: parses the lines of `perf script` (Linux: tools/perf/builtin-script.c and
 * util/evsel_fprintf.c). */
#ifndef ICF_TRACE_PERF_TEXT_H
#define ICF_TRACE_PERF_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame: "IP NAME+0xOFFSET (FILE)"; names are places in the line. */
struct icf_perf_parts {
	uint32_t ip, n_ip, name, n_name, dso, n_dso, end; /* end: without the newline */
	uint64_t address, offset;                         /* UINT64_MAX: not shown */
	uint64_t file_offset;                             /* the same, of "(FILE+0xOFFSET)" */
	bool inlined;
};

/* A mapping of a file as code: PERF_RECORD_MMAP2 PID/TID: [START(LENGTH) @ OFFSET ...]: PERM PATH
 */
struct icf_perf_mapping {
	int64_t pid;
	uint64_t start, size, offset;
	const char *path; /* in the line, to its end */
};

/* Each function parses the line from S to END, which has no newline.  The frame begins at C. */
bool icf_perf_parse_frame(const char *s, const char *c, const char *end,
			  struct icf_perf_parts *ret);

/* Parses the frame at the end of a sample's line: behind the last ": " that a number follows. */
bool icf_perf_parse_sample(const char *s, const char *end, struct icf_perf_parts *ret);

/* The same of a frame that perf was not asked to show whole: "IP", "IP (FILE)", or, in a call
 * chain, "IP NAME+0xOFFSET".  N_NAME or N_DSO is 0. */
bool icf_perf_parse_bare(const char *s, const char *c, const char *end, struct icf_perf_parts *ret);

/* Does the line, of a sample without a call chain, end with a frame of the last kind? */
bool icf_perf_ends_bare(const char *s, const char *end);

bool icf_perf_parse_mapping(const char *s, const char *end, struct icf_perf_mapping *ret);

/* The process in the line of a sample, from *AT to *BEHIND, or the thread if perf shows only that.
 * The command before it can have blanks, numbers and colons. */
bool icf_perf_find_pid(const char *s, const char *end, const char **at, const char **behind,
		       int64_t *pid);
int64_t icf_perf_parse_pid(const char *s, const char *end); /* -1: none */

/* Are the N bytes at S TEXT? */
bool icf_perf_is(const char *s, size_t n, const char *text);
#endif
