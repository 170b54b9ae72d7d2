/* printable.h: text of files, which may be anything, on its way to a terminal. */
#ifndef ELFRW_BASE_PRINTABLE_H
#define ELFRW_BASE_PRINTABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the N bytes at S to F, with what a terminal or a reader of lines acts on spelled out:
 * control characters as \n, \t, \x1b; bytes that are no UTF-8 as \xff; what changes the direction
 * of text or ends a line in Unicode as \u202e. */
void elfrw_put_printable_n(FILE *f, const char *s, size_t n);
void elfrw_put_printable(FILE *f, const char *s);
/* The same and the end of the line. */
void elfrw_put_printable_line(FILE *f, const char *s);

/* The length of the UTF-8 sequence at S, of at most N > 0 bytes, and in *CODE its character; 0, and
 * 0: there is none. */
size_t elfrw_utf8_bytes(const char *s, size_t n, unsigned *code);

/* The bytes at S that are to be shown as they are (0 for the others), at most N > 0, and in *CODE
 * what they say. */
size_t elfrw_plain_bytes(const char *s, size_t n, unsigned *code);

/* The same text as a string that the caller frees; S itself, not to be freed, when nothing has to
 * be spelled out; NULL: out of memory. */
char *elfrw_printable(const char *s);

/* TEXT as a JSON string, quotes included.  What is no UTF-8 becomes U+FFFD; what a terminal acts
 * on, and each character of ALSO, is written as an escape. */
void elfrw_put_json(FILE *f, const char *text, const char *also);
#define ELFRW_JSON_PAGE "<>&" /* what could end an HTML script element */
#endif
