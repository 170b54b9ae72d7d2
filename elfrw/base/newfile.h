/* newfile.h: a file that appears under its name whole or not at all.
 *
 * elfrw_newfile_begin() makes a file without a name in PATH's folder (O_TMPFILE),
 * elfrw_newfile_commit() gives it the name PATH, replacing an older file (a symbolic link is
 * replaced, not followed; so do linkers).  What a killed process leaves behind is at most, for the
 * instant between two system calls, a complete file under a temporary name.  File systems without
 * unnamed files get a temporary name from the start.  While there is such a name the signals that
 * would end the process wait (they are blocked, and looked for with elfrw_newfile_interrupted()),
 * so that it is removed first: this needs no handler and no state outside of struct elfrw_newfile.
 *
 * A PATH that is no regular file (a device, a pipe, a descriptor such as /dev/stdout) cannot be
 * replaced and is written to on commit; what cannot seek gets the whole from memory.
 *
 * Several files may be under way at once if the last one begun is the first to be committed or
 * dropped. */
#ifndef ELFRW_BASE_NEWFILE_H
#define ELFRW_BASE_NEWFILE_H
#include "elfrw/base/err.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct elfrw_newfile {
	const char *path; /* borrowed */
	char *temp;       /* temporary name, NULL: none; owned */
	int fd;           /* to be written to, at any offset */
	int stream;       /* where the contents of FD go on commit, or -1 */
	bool open;
	bool in_place; /* FD is a device: its size cannot be set */
	bool held;     /* signals wait */
	sigset_t mask; /* the thread's before */
};

/* Are A and B one file, so that what is written to one takes the place of the other?  Of files that
 * are not there yet, the folder and the last part of the name tell.  Devices and pipes are no such
 * files. */
bool elfrw_newfile_same_place(const char *a, const char *b);

/* Starts PATH, which must outlive F.  MODE: permission bits; the umask is applied.  On an error F
 * needs no drop, and errors name neither PATH nor F. */
struct elfrw_err *elfrw_newfile_begin(struct elfrw_newfile *f, const char *path, mode_t mode);

/* Takes a temporary name away until the commit, which then has to copy the file: signals need not
 * wait meanwhile, and a fault leaves nothing behind.  To be called only on the file begun last. */
void elfrw_newfile_hide(struct elfrw_newfile *f);

/* Has the complete F the bytes and the mode of an older file at PATH?  Then it need not be
 * replaced. */
bool elfrw_newfile_is_same(const struct elfrw_newfile *f);

/* Puts the file in place; F is done with, also on an error, which leaves an older PATH as it was (a
 * stream excepted). */
struct elfrw_err *elfrw_newfile_commit(struct elfrw_newfile *f);

/* Gives up F, which may be { 0 } or committed. */
void elfrw_newfile_drop(struct elfrw_newfile *f);

/* SIZE bytes of DATA at OFF of F, however many calls that takes.  An error also when a signal waits
 * to end the process. */
struct elfrw_err *elfrw_newfile_write(const struct elfrw_newfile *f, const void *data,
				      uint64_t size, uint64_t off);

/* For a name that the caller makes besides: the signals that would end the process wait from here
 * on, past the end of F, the first of the files under way, until release with the same MASK. */
void elfrw_newfile_hold(struct elfrw_newfile *f, sigset_t *mask);
void elfrw_newfile_release(const sigset_t *mask);

/* Does a signal wait that will end the process when F is dropped? */
bool elfrw_newfile_interrupted(const struct elfrw_newfile *f);
#endif
