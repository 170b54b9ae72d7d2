/* tail.h: bytes of a file that no header describes: what was put behind it, and what lies between
 * its parts. */
#ifndef ELFRW_TAIL_H
#define ELFRW_TAIL_H
#include "elfrw/image.h"

/* What follows the last section, segment or table of headers. */
struct elfrw_tail {
	uint64_t offset; /* in the file; its end when nothing follows */
	uint64_t size;   /* bytes */
	bool headers;    /* the section headers end at OFFSET */
	bool zeros; /* it is so short a run of zeros that it can mean nothing: it may stand at any
		       offset */
};

/* Finds the tail of the file IMG, which is no pair's view (pair.h).  An error: bytes other than
 * zeros stand between what headers describe, of a file that is no debug file; nobody could tell
 * where they belong. */
struct elfrw_err *elfrw_tail_find(const struct elfrw_image *img, struct elfrw_tail *ret);
#endif
