/* tail.h: bytes of a file that no header describes: data appended to it, and bytes between its
 * parts. */
#ifndef ELFRW_TAIL_H
#define ELFRW_TAIL_H
#include "elfrw/image.h"

/* The bytes behind the last section, segment or table of headers. */
struct elfrw_tail {
	uint64_t offset; /* in the file; the end of the file if nothing follows */
	uint64_t size;   /* bytes */
	bool headers;    /* the section headers end at OFFSET */
	bool zeros; /* it is a run of zeros too short to mean anything: it may stand at any offset
		     */
};

/* Finds the tail of the file IMG, which must not be a pair's view (pair.h).  Error: bytes other
 * than zeros stand between the parts that headers describe, and IMG is no debug file.  It is
 * unknown where such bytes belong. */
struct elfrw_err *elfrw_tail_find(const struct elfrw_image *img, struct elfrw_tail *ret);
#endif
