/* attributes.h: extended attributes, of which an access control list is one. */
#ifndef ELFRW_ATTRIBUTES_H
#define ELFRW_ATTRIBUTES_H
#include <sys/types.h>

/* Gives FD, which is to take the place of the file PATH, its extended attributes, as far as that is
 * allowed, and none other: with an access control list the bits that MODE has for the group say
 * what the list may give at most, and without it would give it to the group. Returns MODE, with the
 * group's own bits where the list could not be kept. */
mode_t elfrw_copy_attributes(const char *path, int fd, mode_t mode);
#endif
