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
int icf_cmd_wrap(int argc, char **argv);

/* Prints "icfold: COMMAND: TEXT" and how to get help; returns the exit status.  COMMAND is NULL for
 * folding itself. */
int icf_usage_error(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints "icfold: FILE: TEXT" on standard error, after what standard output has so far; FILE may be
 * NULL.  Names of files and what files hold may be anything: what a terminal acts on is spelled out
 * (elfrw/base/printable.h), and the line is one line. */
void icf_message(const char *file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Folds as OPT says and prints what OPT asks for and errors.  With REFUSAL, an error from before
 * anything was written is given there to be freed, and not printed. */
struct icf_options;
struct elfrw_err;
int icf_fold_file(const struct icf_options *opt, struct elfrw_err **refusal);
#endif
