/* regular.h: opening files with untrusted names. */
#ifndef ELFRW_BASE_REGULAR_H
#define ELFRW_BASE_REGULAR_H

/* Opens PATH for reading if it is a regular file.  Returns a descriptor, or -1 and errno: EISDIR
 * for a directory, EINVAL for other kinds of files.  Opening a pipe could block, and opening a
 * device can have effects. */
int elfrw_open_regular(const char *path);

/* The path of the file that NAME names for a process whose root is ROOT.  Nothing in NAME, neither
 * ".." nor symbolic links, leads out of ROOT.  The caller frees the path.  NULL: no such file, or
 * out of memory. */
char *elfrw_path_below(const char *root, const char *name);
#endif
