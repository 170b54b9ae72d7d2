/* package.h: the names of packages, as packages say them. */
#ifndef ICF_AUDIT_PACKAGE_H
#define ICF_AUDIT_PACKAGE_H
#include <stdbool.h>
#include <stddef.h>

#define ICF_PACKAGE 128 /* bytes of a name, with NUL; longer ones are cut */

/* Is FILE named as a package of dpkg, opkg, rpm or Alpine?  RET gets the name of the package, which
 * is the part of the file's name in front of the version. */
bool icf_package_of_file(const char *file, char ret[ICF_PACKAGE]);

/* Is MEMBER, which begins with the N bytes at TEXT, the control file of the package that it lies
 * in?  RET gets the name that it states. */
bool icf_package_of_control(const char *member, const void *text, size_t n, char ret[ICF_PACKAGE]);

struct elfrw_image;

/* The name in IMG's note of its package (type 0xcafe1a7e of owner FDO; systemd, "Package Metadata
 * for ELF Files"); false: it has none. */
bool icf_package_of_program(const struct elfrw_image *img, char ret[ICF_PACKAGE]);
#endif
