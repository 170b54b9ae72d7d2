/* process.h: what is arranged once, before any command runs. */
#ifndef ICF_CMD_PROCESS_H
#define ICF_CMD_PROCESS_H

/* Descriptors 0 to 2 are taken from here on, so that no file that is opened becomes standard output
 * by accident; and when a file that is mapped is truncated by somebody else, the process says so
 * and exits with ICF_EXIT_TROUBLE. */
void icf_process_init(void);

/* From here on a crash inside of libdw or libelf, which do not look at the result of every
 * allocation and not at every byte of debug information, is told in one line, and the process exits
 * with ICF_EXIT_TROUBLE. */
void icf_process_libdw(void);
#endif
