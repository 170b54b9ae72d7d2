/* log_frame.h: a stack frame in the text of a log. */
#ifndef ICF_TRACE_LOG_FRAME_H
#define ICF_TRACE_LOG_FRAME_H
#include <stdbool.h>
#include <stdint.h>

/* What a line looks like.  Where the formats come from: compiler-rt's sanitizer_stacktrace_printer,
 * glibc's debug/backtracesyms.c, strace's unwind.c, glog's and abseil's symbolizers, Rust's
 * library/std/src/backtrace, Linux' arch/x86/mm/fault.c, arch/x86/kernel/traps.c and mm/util.c. */
enum icf_log_form {
	ICF_LOG_SANITIZER, /* #N 0xADDRESS  (FILE+0xOFFSET) (BuildId: ID); with "in NAME" before;
			    * #N 0xADDRESS in NAME SOURCE */
	ICF_LOG_THREAD,    /* #N <null> <null> (FILE+0xOFFSET) (BuildId: ID);
			    * #N NAME SOURCE (FILE+0xOFFSET) (BuildId: ID) */
	ICF_LOG_GLIBC,     /* FILE(NAME+0xOFFSET) [0xADDRESS]; FILE(+0xOFFSET) [0xADDRESS];
			    * FILE[0xADDRESS] */
	ICF_LOG_STRACE,    /* > FILE(NAME+0xINTO) [0xOFFSET] */
	ICF_LOG_GLOG,      /* @ 0xADDRESS NAME */
	ICF_LOG_RUST,      /* N: 0xADDRESS - NAME, with more lines behind; or <unknown> */
	ICF_LOG_KERNEL,    /* ip ADDRESS sp ... in FILE[OFFSET,START+SIZE]; or ip:ADDRESS sp:... */
	ICF_LOG_OFFSET,    /* anything with FILE+0xOFFSET */
};

/* Bytes of the line; n == 0: none. */
struct icf_log_part {
	uint32_t at, n;
};

struct icf_log_frame {
	enum icf_log_form form;
	struct icf_log_part prefix; /* what stands before the frame; OFFSET: as far as it is about
				       the line's writer */
	struct icf_log_part number, file, build_id;
	struct icf_log_part name;  /* of a sanitizer's frame: NAME SOURCE */
	struct icf_log_part place; /* SANITIZER: (FILE+0xOFFSET) and what belongs to it */
	struct icf_log_part cut;   /* what the answer stands in place of; n == 0: it is put there */
	bool has_number, has_address, has_offset;
	bool json;        /* the frame is in a JSON string, which CUT does not reach behind */
	uint64_t n;       /* the frame's number */
	uint64_t address; /* in the process */
	uint64_t offset;  /* of the place in the file; with NAME: after the symbol's start */
	bool in_file;     /* OFFSET counts bytes of the file, not addresses as linked */
	bool in_code;     /* OFFSET counts from where the code was mapped */
	bool in_module;   /* OFFSET counts from where the file's first segment was mapped */
	uint64_t into;    /* STRACE with NAME: the place's distance from the symbol's start */
};
#endif
