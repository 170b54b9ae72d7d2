/* cmdline.h: the command line of the commands.  What they share is here: -h, -q, -v, -V and
 * --threads, which mean the same in all of them, and the rule that an option has its whole name
 * (--debug-file is not short for --debug-file-directory).  Folding itself spells its options as
 * linkers do (cli/options.h), and takes these too. */
#ifndef ICF_CMD_CMDLINE_H
#define ICF_CMD_CMDLINE_H
#include "icf/cli/values.h"
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of all commands. */
enum { ICF_EXIT_OK, ICF_EXIT_NO, ICF_EXIT_TROUBLE };

/* The end of every command's --help. */
#define ICF_USAGE_COMMON                                                           \
	"      --threads=N            use N threads (default: all processors)\n"   \
	"  -q, --quiet                print no remarks: results and errors only\n" \
	"  -v, --verbose              say more\n"                                  \
	"  -h, --help                 print this help\n"                           \
	"  -V, --version              print the version\n"

#define ICF_CMDLINE_OPTIONS 48 /* of a command and the shared ones */

struct icf_cmdline {
	const char *command, *usage; /* borrowed, as all strings here */
	int argc;
	char **argv;
	char **operand; /* what is not an option, N of them, after the end; lie in ARGV */
	int n;
	bool quiet;
	unsigned verbose;
	unsigned threads; /* 1 to 64 */
	int which;        /* of the last option: its index in the options given, or -1 */
	int status;       /* with ICF_CMDLINE_EXIT */
	char shorts[40];
	struct option all[ICF_CMDLINE_OPTIONS + 1];
};

#define ICF_CMDLINE_EXIT (-2)

/* The start of a command line: ARGV[0] is the command's name, not looked at. */
#define ICF_CMDLINE(command_, usage_, argc_, argv_)                                        \
	{                                                                                  \
		.command = (command_), .usage = (usage_), .argc = (argc_), .argv = (argv_) \
	}

/* SHORTS are the command's one-letter options as getopt() wants them, OPTIONS its long ones, ended
 * by { 0 }. */
void icf_cmdline_init(struct icf_cmdline *c, const char *shorts, const struct option *options);

/* The next option, its value in optarg; -1 at the end; ICF_CMDLINE_EXIT: all is said, exit with
 * C->status. */
int icf_cmdline_next(struct icf_cmdline *c);

/* Prints TEXT, a help or a version, on standard output; returns the exit status. */
int icf_print_help(const char *text);
#endif
