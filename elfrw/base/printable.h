/* printable.h: untrusted text for a terminal. */
#ifndef ELFRW_BASE_PRINTABLE_H
#define ELFRW_BASE_PRINTABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the N bytes at S to F.  Characters that affect a terminal or a reader of lines are spelled
 * out: control characters as \n, \t, \x1b; bytes that are not UTF-8 as \xff; characters that change
 * the direction of text or end a line in Unicode as \u202e. */
void elfrw_put_printable_n(FILE *f, const char *s, size_t n);
void elfrw_put_printable(FILE *f, const char *s);
/* The same, followed by a newline. */
void elfrw_put_printable_line(FILE *f, const char *s);

/* The length of the UTF-8 sequence at S, of at most N > 0 bytes; *CODE is its character.  Returns 0
 * and sets *CODE to 0 if there is none. */
size_t elfrw_utf8_bytes(const char *s, size_t n, unsigned *code);

/* The number of bytes at S that can be shown unchanged, at most N > 0; 0: they must be spelled out.
 * *CODE is their character. */
size_t elfrw_plain_bytes(const char *s, size_t n, unsigned *code);

/* The same text as a string that the caller frees.  Returns S itself, which must not be freed, if
 * nothing has to be spelled out.  NULL: out of memory. */
char *elfrw_printable(const char *s);

/* Writes TEXT as a JSON string with quotes.  Bytes that are not UTF-8 become U+FFFD.  Characters
 * that affect a terminal, and each character of ALSO, are written as escapes. */
void elfrw_put_json(FILE *f, const char *text, const char *also);
void elfrw_put_json_text(FILE *f, const char *text, const char *also); /* without the quotes */
#define ELFRW_JSON_PAGE "<>&" /* characters that could end an HTML script element */
#endif
