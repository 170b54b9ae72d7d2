/* archive.h: the ELF files in an archive or a package, as files without a name.
 *
 * libarchive reads the archive, in a process of its own: whatever a hostile archive does, only that
 * process ends.  No member is written under its name.  The process hands over one open file after
 * the other and waits for them to be taken, so that few of them take space at one time. */
#ifndef ICF_AUDIT_PRODUCT_ARCHIVE_H
#define ICF_AUDIT_PRODUCT_ARCHIVE_H
#include "elfrw/base/err.h"
#include "icf/audit/package.h"
#include <sys/types.h>

#define ICF_ARCHIVE_NAME 2048

struct icf_archive {
	pid_t pid;
	int socket;
};

struct icf_archive_member {
	int fd;                      /* to be closed by the caller; -1 with an error */
	uint64_t size;               /* bytes */
	char name[ICF_ARCHIVE_NAME]; /* in the archive; parts of nested archives end in ':' */
	char error[256];             /* not empty: what is wrong with the archive, or the member */
	bool none;                   /* with an error: it is no archive */
	bool elf;                    /* it begins as an ELF file does */
	char package[ICF_PACKAGE];   /* the name of the package that it is in; empty: none */
};

/* Starts to read PATH.  MEMORY: bytes of the largest member that is handed over; the process itself
 * may take half as many. */
struct elfrw_err *icf_archive_start(struct icf_archive *a, const char *path, uint64_t memory);

/* Waits for the next member, or error; false: there is no more. */
bool icf_archive_next(struct icf_archive *a, struct icf_archive_member *m);
void icf_archive_stop(struct icf_archive *a);

/* A new file without a name, or -1 and errno. */
int icf_archive_nameless(void);
#endif
