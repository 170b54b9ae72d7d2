/* export.h: what icfold knows of a program's code, in the formats of other people's tools. */
#ifndef ICF_EXPORT_EXPORT_H
#define ICF_EXPORT_EXPORT_H
#include "dwarf/symbolize/symbolize.h"
#include <stdio.h>

enum icf_export_format {
	ICF_EXPORT_NONE,
	ICF_EXPORT_BREAKPAD, /* text symbol file of Breakpad */
	ICF_EXPORT_GSYM,     /* symbol file of LLVM */
	ICF_EXPORT_JSON,
	ICF_EXPORT_FORMATS
};

struct icf_export_in {
	const char *file;
	const char *name; /* of the program in the output; NULL: the last part of FILE */
	const struct dwr_sym_options *options;
	enum icf_export_format format;
	FILE *out; /* the caller sees whether writing failed */
};

/* What was written. */
struct icf_export_counts {
	uint64_t functions; /* pieces of code, of which */
	uint64_t shared;    /* are of several functions */
	uint64_t crowded;   /* have more inlined calls than are written: none is */
	char *warning;      /* of the debug information, or NULL; the caller frees it */
};

/* Writes the symbols of IN.  Errors: a file that cannot be read, of a machine that is not known,
 * with broken unwind tables; out of memory. */
struct elfrw_err *icf_export(const struct icf_export_in *in, struct icf_export_counts *counts);
#endif
