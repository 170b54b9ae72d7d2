/* process.h: set-up of the process before any command runs. */
#ifndef ICF_CMD_PROCESS_H
#define ICF_CMD_PROCESS_H

/* Opens closed descriptors among 0 to 2, so that no file becomes standard output by accident.  From
 * here on, if somebody truncates a mapped file, the process says so and exits with
 * ICF_EXIT_TROUBLE.  Prepares the heap (elfrw/base/heap.h). */
void icf_process_init(void);

/* From here on, a crash inside of libdw or libelf is reported in one line, and the process exits
 * with ICF_EXIT_TROUBLE.  These libraries check neither every allocation nor every byte of debug
 * information. */
void icf_process_libdw(void);
#endif
