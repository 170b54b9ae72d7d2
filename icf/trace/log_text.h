/* log_text.h: recognises stack frames and mappings in the text of logs. */
#ifndef ICF_TRACE_LOG_TEXT_H
#define ICF_TRACE_LOG_TEXT_H
#include "icf/trace/log_frame.h"
#include <stddef.h>

/* Parses the N bytes of the line at S, without its newline. */
bool icf_log_parse(const char *s, size_t n, struct icf_log_frame *ret);

/* A line of /proc/PID/maps with a file that is mapped as code. */
struct icf_log_mapping {
	uint64_t start, end, offset;
	struct icf_log_part file;
};
bool icf_log_parse_mapping(const char *s, size_t n, struct icf_log_mapping *ret);
#endif
