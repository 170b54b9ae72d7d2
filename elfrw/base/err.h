/* err.h: the one error value of the program.
 *
 * Every function that can fail returns a struct elfrw_err *; NULL means success.  The function that
 * sees the fault makes the text, callers pass the error up unchanged, and only commands print it.
 * Out of memory is a static object, so reporting it cannot fail. */
#ifndef ELFRW_BASE_ERR_H
#define ELFRW_BASE_ERR_H
#include <stdbool.h>
#include <stdint.h>

struct elfrw_err;

/* The static out-of-memory error.  elfrw_err_free() on it does nothing. */
extern struct elfrw_err elfrw_err_nomem;

/* A new error with a printf-style text.  Never NULL (falls back to elfrw_err_nomem). */
struct elfrw_err *elfrw_error(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));

/* The same with a place: "TEXT (SECTION, offset 0xOFF)".  OFF counts bytes from the start of
 * SECTION.  SECTION is copied.  If SECTION is NULL, OFF is a file offset: "(file offset 0xOFF)". */
struct elfrw_err *elfrw_error_at(const char *section, uint64_t off, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), returns_nonnull));

/* The same with ": STRERROR(ERRNUM)" appended; ENOMEM is the out-of-memory error. */
struct elfrw_err *elfrw_error_errno(int errnum, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

/* Is ERR an error of the system (a missing file, a full disk, out of memory) rather than of a
 * file's contents? */
bool elfrw_err_is_system(const struct elfrw_err *err);

/* Puts "WHAT: " before the text of ERR, and takes ownership of ERR.  The kind of error stays.  Out
 * of memory and NULL are returned unchanged. */
struct elfrw_err *elfrw_err_about(const char *what, struct elfrw_err *err);

/* The whole message, without trailing newline; borrowed from ERR. */
const char *elfrw_err_text(const struct elfrw_err *err);

void elfrw_err_free(struct elfrw_err *err);

/* Return from the enclosing function when EXPR gives an error. */
#define ELFRW_TRY(expr)                                    \
	do {                                               \
		struct elfrw_err *elfrw_try_err_ = (expr); \
		if (elfrw_try_err_)                        \
			return elfrw_try_err_;             \
	} while (0)
#endif
