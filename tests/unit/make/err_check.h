/* err_check.h: what tests expect of a function that returns an error. */
#ifndef TESTS_UNIT_MAKE_ERR_CHECK_H
#define TESTS_UNIT_MAKE_ERR_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "elfrw/base/err.h"

/* No error, or the test fails with its text, at the line of the caller. */
#define be_ok(err) be_ok_at((err), __FILE__, __LINE__)
static inline void be_ok_at(struct elfrw_err *err, const char *file, int line)
{
	if (!err)
		return;
	print_error("%s\n", elfrw_err_text(err));
	_fail(file, line);
}

/* An error whose text holds PART. */
#define be_fails(err, part) be_fails_at((err), (part), __FILE__, __LINE__)
static inline void be_fails_at(struct elfrw_err *err, const char *part, const char *file, int line)
{
	if (!err || !strstr(elfrw_err_text(err), part)) {
		print_error("%s%s; expected: %s\n", err ? "error: " : "no error",
			    err ? elfrw_err_text(err) : "", part);
		_fail(file, line);
	}
	elfrw_err_free(err);
}
#endif
