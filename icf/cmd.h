/* cmd.h: the subcommands.  Each prints, and returns the exit status. */
#ifndef ICF_CMD_H
#define ICF_CMD_H
int icf_cmd_fold(int argc, char **argv);
#endif
