/* attributes.c: see attributes.h.
 *
 * Kept are the attributes that strip and objcopy keep by writing into the existing file: labels,
 * access control lists and users' notes.  Not kept are those that the kernel removes from a file
 * that is written to: capabilities and signatures of the contents. */
#include "elfrw/base/attributes.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define ACL  "system.posix_acl_access"
#define MOST 65536 /* bytes of one value, and of all names (XATTR_SIZE_MAX, XATTR_LIST_MAX) */

static int is_about_bytes(const char *name)
{
	return !strcmp(name, "security.capability") || !strcmp(name, "security.ima") ||
	       !strcmp(name, "security.evm");
}

/* The bits of the owning group in the list V of N bytes (struct posix_acl_xattr_header and _entry
 * of Linux: tag, permissions, id). */
static mode_t group_bits(const unsigned char *v, ssize_t n)
{
	for (ssize_t at = 4; at + 8 <= n; at += 8)
		if (v[at] == 4 && !v[at + 1])
			return (mode_t)(v[at + 2] & 7) << 3;
	return 0;
}

mode_t elfrw_copy_attributes(const char *path, int fd, mode_t mode)
{
	char *name = malloc(MOST), *value = malloc(MOST);
	mode_t without = mode;
	/* The folder may have given the file a default list. */
	fremovexattr(fd, ACL);
	/* The access control list comes first, since the mode depends on it. */
	ssize_t n = value ? lgetxattr(path, ACL, value, MOST) : -1;
	if (n >= 0 && fsetxattr(fd, ACL, value, (size_t)n, 0) != 0)
		without = (mode & ~(mode_t)070) |
			  (mode & group_bits((const unsigned char *)value, n));
	ssize_t all = name && value ? llistxattr(path, name, MOST) : -1;
	for (ssize_t at = 0; at < all; at += (ssize_t)strlen(name + at) + 1) {
		if (is_about_bytes(name + at) || !strcmp(name + at, ACL))
			continue;
		n = lgetxattr(path, name + at, value, MOST);
		if (n >= 0)
			fsetxattr(fd, name + at, value, (size_t)n, 0);
	}
	free(name);
	free(value);
	return without;
}
