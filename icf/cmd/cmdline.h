/* cmdline.h: the command line of the commands.  -h, -q, -v, -V and --threads are here, since they
 * mean the same in all commands.  Here is also the rule that options are not abbreviated
 * (--debug-file is not short for --debug-file-directory).  The fold command spells its options as
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

#define ICF_CMDLINE_OPTIONS 48 /* of a command and the shared options */

struct icf_cmdline {
	const char *command, *usage; /* borrowed, as all strings here */
	int argc;
	char **argv;
	char **operand; /* the N arguments that are no options, after the end; they lie in ARGV */
	int n;
	bool quiet;
	unsigned verbose;
	unsigned threads; /* 1 to 64 */
	int which;        /* of the last option: its index in the given options, or -1 */
	int status;       /* with ICF_CMDLINE_EXIT */
	char shorts[40];
	struct option all[ICF_CMDLINE_OPTIONS + 1];
};

#define ICF_CMDLINE_EXIT (-2)

/* The start of a command line.  ARGV[0] is the command's name, which is skipped. */
#define ICF_CMDLINE(command_, usage_, argc_, argv_)                                        \
	{                                                                                  \
		.command = (command_), .usage = (usage_), .argc = (argc_), .argv = (argv_) \
	}

/* SHORTS: the command's one-letter options in the form of getopt().  OPTIONS: its long options,
 * ended by { 0 }. */
void icf_cmdline_init(struct icf_cmdline *c, const char *shorts, const struct option *options);

/* The next option; its value is in optarg.  -1: the end.  ICF_CMDLINE_EXIT: exit with C->status;
 * nothing more to print. */
int icf_cmdline_next(struct icf_cmdline *c);

/* Prints TEXT, a help, on standard output; returns the exit status. */
int icf_print_help(const char *text);

/* The same for the version, and what this build can do (icf/cmd/version.c). */
int icf_print_version(void);
#endif
