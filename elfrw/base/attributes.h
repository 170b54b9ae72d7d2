/* attributes.h: extended attributes; an access control list is one of them. */
#ifndef ELFRW_BASE_ATTRIBUTES_H
#define ELFRW_BASE_ATTRIBUTES_H
#include <sys/types.h>

/* Gives FD the extended attributes of the file PATH, as far as that is allowed, and no others.  FD
 * is to take the place of PATH.  If there is an access control list, the group bits of MODE are the
 * most that the list may grant; without the list they would be the group's rights.  Returns MODE,
 * with the group's own bits if the list could not be kept. */
mode_t elfrw_copy_attributes(const char *path, int fd, mode_t mode);
#endif
