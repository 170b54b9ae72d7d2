/* cmd.h: the subcommands.  Each prints, and returns the exit status; argv[0] is the subcommand's name. */
#ifndef ICF_CMD_H
#define ICF_CMD_H
int icf_cmd_fold(int argc, char **argv);
int icf_cmd_dump(int argc, char **argv);
int icf_cmd_symbolize(int argc, char **argv);
int icf_cmd_inlines(int argc, char **argv);
int icf_cmd_verify(int argc, char **argv);
#endif
