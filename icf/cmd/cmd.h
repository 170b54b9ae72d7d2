/* cmd.h: the subcommands.  Each prints, and returns the exit status; argv[0] is the subcommand's
 * name. */
#ifndef ICF_CMD_CMD_H
#define ICF_CMD_CMD_H
int icf_cmd_fold(int argc, char **argv);
int icf_cmd_dump(int argc, char **argv);
int icf_cmd_symbolize(int argc, char **argv);
int icf_cmd_inlines(int argc, char **argv);
int icf_cmd_verify(int argc, char **argv);
int icf_cmd_audit(int argc, char **argv);
int icf_cmd_profile(int argc, char **argv);
int icf_cmd_symbols(int argc, char **argv);
int icf_cmd_wrap(int argc, char **argv);

/* Prints "icfold: COMMAND: TEXT" and how to get help; returns the exit status.  COMMAND is NULL for
 * the fold command. */
int icf_usage_error(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints "icfold: FILE: TEXT" as one line on standard error, after all earlier standard output.
 * FILE may be NULL.  Names and contents of files are untrusted: characters that affect a terminal
 * are spelled out (elfrw/base/printable.h). */
void icf_message(const char *file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Folds as OPT says, and prints what OPT asks for, and errors.  With REFUSAL, an error from before
 * anything was written is stored there and not printed; the caller frees it. */
struct icf_options;
struct elfrw_err;
int icf_fold_file(const struct icf_options *opt, struct elfrw_err **refusal);
#endif
