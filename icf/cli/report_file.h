/* report_file.h: which files a report, or an output, may take the place of. */
#ifndef ICF_CLI_REPORT_FILE_H
#define ICF_CLI_REPORT_FILE_H
#include <stddef.h>

struct elfrw_err;

/* The path, for elfrw_newfile_begin(), of a report that was asked for as FILE: "-" is standard
 * output, as for linkers.  NULL: NULL. */
const char *icf_report_file(const char *file);

/* May the report PATH, called AS in the message, be written?  Not over one of the N inputs, nor
 * over any ELF file: that is a program, or a debug file that some program needs, and no report.
 * PATH may be NULL: none is asked for. */
struct elfrw_err *icf_report_check(const char *path, const char *as, char *const *input, size_t n);

/* May the program PATH be written?  Not over a separate debug file. */
struct elfrw_err *icf_output_check(const char *path);
#endif
