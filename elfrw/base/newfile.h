/* newfile.h: a file that appears under its name complete or not at all.
 *
 * elfrw_newfile_begin() makes a file without a name in PATH's folder (O_TMPFILE).
 * elfrw_newfile_commit() gives it the name PATH and replaces an older file.  A symbolic link is
 * replaced, not followed, as linkers do.  A killed process leaves at most a complete file under a
 * temporary name, for the instant between two system calls.
 *
 * File systems without unnamed files get a temporary name from the start.  While there is a
 * temporary name, signals that would end the process are blocked, and elfrw_newfile_interrupted()
 * looks for them, so that the name is removed first.  This needs no handler and no state outside of
 * struct elfrw_newfile.
 *
 * A PATH that is no regular file (a device, a pipe, a descriptor such as /dev/stdout) cannot be
 * replaced.  The commit writes to it.  A file that cannot seek gets the contents from memory.
 *
 * Several files may be open at once if the last one begun is the first to be committed or
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
	bool held;     /* signals are blocked */
	sigset_t mask; /* the thread's signal mask before */
};

/* Are A and B one file, so that writing one replaces the other?  Files that do not exist yet are
 * compared by folder and last part of the name.  Devices and pipes never count as one file. */
bool elfrw_newfile_same_place(const char *a, const char *b);

/* Starts PATH, which must outlive F.  MODE: permission bits, to which the umask is applied.  After
 * an error F needs no drop.  Errors name neither PATH nor F. */
struct elfrw_err *elfrw_newfile_begin(struct elfrw_newfile *f, const char *path, mode_t mode);

/* Removes a temporary name until the commit, which then has to copy the file.  Meanwhile signals
 * need not be blocked, and a crash leaves nothing behind.  Call this only on the file begun
 * last. */
void elfrw_newfile_hide(struct elfrw_newfile *f);

/* Does the complete F have the bytes and the mode of an older file at PATH?  Then that file need
 * not be replaced. */
bool elfrw_newfile_is_same(const struct elfrw_newfile *f);

/* Puts the file in place.  F is done with, also after an error.  An error leaves an older PATH
 * unchanged, unless PATH is a stream. */
struct elfrw_err *elfrw_newfile_commit(struct elfrw_newfile *f);

/* Gives up F, which may be { 0 } or committed. */
void elfrw_newfile_drop(struct elfrw_newfile *f);

/* Writes SIZE bytes of DATA at OFF of F, in as many calls as needed.  A pending signal that would
 * end the process is an error, too. */
struct elfrw_err *elfrw_newfile_write(const struct elfrw_newfile *f, const void *data,
				      uint64_t size, uint64_t off);

/* Blocks the signals that would end the process, for an additional name that the caller makes.  F
 * is the first of the open files.  The signals stay blocked past the end of F, until release with
 * the same MASK. */
void elfrw_newfile_hold(struct elfrw_newfile *f, sigset_t *mask);
void elfrw_newfile_release(const sigset_t *mask);

/* Is a signal pending that will end the process when F is dropped? */
bool elfrw_newfile_interrupted(const struct elfrw_newfile *f);
#endif
