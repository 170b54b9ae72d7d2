/* options.h: the command line of the fold command as a const value. */
#ifndef ICF_CLI_OPTIONS_H
#define ICF_CLI_OPTIONS_H
#include "icf/cli/args.h"
#include <stdbool.h>
#include <stddef.h>

enum icf_mode { ICF_MODE_SAFE, ICF_MODE_ALL, ICF_MODE_NONE };
/* What may be found unused: nothing; functions; also virtual tables, with the functions that only
 * they refer to. */
enum icf_gc { ICF_GC_NONE, ICF_GC_FUNCTIONS, ICF_GC_OBJECTS };
enum icf_stats { ICF_STATS_NONE, ICF_STATS_TEXT, ICF_STATS_JSON };

struct icf_options {
	const char *input, *output;
	enum icf_mode mode;
	bool no_thunks;
	const char **keep_unique; /* owned array of borrowed names */
	size_t n_keep_unique;
	enum icf_gc gc_functions;
	const char **keep; /* the same: names and patterns of functions that are used */
	size_t n_keep;
	const char **why_live; /* the same: names and patterns of functions to say why they stay */
	size_t n_why_live;
	bool print_gc;
	const char *print_gc_file; /* NULL: standard output */
	bool print_sections;
	const char *print_sections_file; /* NULL: standard output */
	const char *map_file;            /* NULL: none */
	const char *depfile;             /* NULL: none */
	bool standard_output;            /* the map or the depfile is asked for there */
	const char *debug_file;          /* the input's separate debug file; NULL: search for it */
	const char *debug_output;        /* NULL: separate debug files are left alone */
	const char *debug_dir;           /* folder of debug files; NULL: the default */
	enum icf_stats stats;
	bool strip_debug;
	bool strip_all; /* implies strip_debug */
	bool emit_relocs;
	bool in_place, require_compact;
	bool allow_growth; /* the output may be larger than the input */
	bool emit_vtables;
	bool keep_build_id;
	bool write_if_changed;
	bool verify;      /* prove the output before it gets its name */
	int debug_folded; /* enum dwr_policy (dwarf/folding.h) */
	unsigned threads;
	bool quiet;
	enum icf_summary {
		ICF_SUMMARY_AUTO,
		ICF_SUMMARY_ALWAYS,
		ICF_SUMMARY_NEVER
	} summary; /* auto: on a terminal */
	unsigned verbose;
	bool time_passes;
	bool help, version;
	bool misused; /* after an error: the command line is wrong, not a file that it names */

	struct icf_args args; /* the strings above lie here or in argv */
};

/* Parses ARGV[1..].  Response files (@FILE) are expanded.  The error's text is the whole
 * message. */
struct elfrw_err *icf_options_parse(struct icf_options *opt, int argc, char **argv);
void icf_options_deinit(struct icf_options *opt);
#endif
