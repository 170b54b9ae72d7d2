/* err.c: see err.h. */
#include "elfrw/base/err.h"
#include "elfrw/base/printable.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct elfrw_err {
	char *text; /* owned, except for the static object */
	bool system;
};

static char nomem_text[] = "out of memory";
struct elfrw_err elfrw_err_nomem = { nomem_text, true };

/* Takes ownership of TEXT (may be NULL after a failed allocation).  TEXT may quote arbitrary bytes
 * of a file.  The message becomes one line without control characters. */
static struct elfrw_err *make(char *text)
{
	char *shown = text ? elfrw_printable(text) : NULL;
	if (shown != text) {
		free(text);
		text = shown;
	}
	struct elfrw_err *err = text ? malloc(sizeof *err) : NULL;
	if (!err) {
		free(text);
		return &elfrw_err_nomem;
	}
	err->text = text;
	err->system = false;
	return err;
}

static char *format(const char *fmt, va_list ap)
{
	char *text;
	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

struct elfrw_err *elfrw_error(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = format(fmt, ap);
	va_end(ap);
	return make(text);
}

struct elfrw_err *elfrw_error_at(const char *section, uint64_t off, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = format(fmt, ap), *whole = NULL;
	va_end(ap);
	if (!text)
		return &elfrw_err_nomem;
	int n = section ? asprintf(&whole, "%s (%s, offset 0x%llx)", text, section,
				   (unsigned long long)off)
			: asprintf(&whole, "%s (file offset 0x%llx)", text,
				   (unsigned long long)off);
	free(text);
	return make(n < 0 ? NULL : whole);
}

struct elfrw_err *elfrw_error_errno(int errnum, const char *fmt, ...)
{
	va_list ap;
	if (errnum == ENOMEM) /* out of memory is always the same error */
		return &elfrw_err_nomem;
	va_start(ap, fmt);
	char *text = format(fmt, ap), *whole = NULL;
	va_end(ap);
	if (!text)
		return &elfrw_err_nomem;
	int n = asprintf(&whole, "%s: %s", text, strerror(errnum));
	free(text);
	struct elfrw_err *err = make(n < 0 ? NULL : whole);
	err->system = true;
	return err;
}

struct elfrw_err *elfrw_err_about(const char *what, struct elfrw_err *err)
{
	if (!err || err == &elfrw_err_nomem)
		return err;
	struct elfrw_err *whole = elfrw_error("%s: %s", what, err->text);
	if (whole != &elfrw_err_nomem)
		whole->system = err->system;
	elfrw_err_free(err);
	return whole;
}

bool elfrw_err_is_system(const struct elfrw_err *err)
{
	return err->system;
}

const char *elfrw_err_text(const struct elfrw_err *err)
{
	return err->text;
}

void elfrw_err_free(struct elfrw_err *err)
{
	if (!err || err == &elfrw_err_nomem)
		return;
	free(err->text);
	free(err);
}
