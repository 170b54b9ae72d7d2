/* regular.h: opening files whose names others have chosen. */
#ifndef ELFRW_BASE_REGULAR_H
#define ELFRW_BASE_REGULAR_H

/* Opens PATH for reading when it is a regular file: a descriptor, or -1 and errno, EISDIR for a
 * directory and EINVAL for whatever else there is: a pipe would be waited for, and opening a device
 * may already do something. */
int elfrw_open_regular(const char *path);

/* The path of the file that has the name NAME for those who have ROOT as their root: nothing in it,
 * neither ".." nor symbolic links, leads out of ROOT.  Owned by the caller; NULL: there is none, or
 * no memory. */
char *elfrw_path_below(const char *root, const char *name);
#endif
