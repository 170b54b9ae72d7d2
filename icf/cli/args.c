/* args.c: see args.h.  Nesting is limited.  A text is split in place; no word is copied. */
#include "icf/cli/args.h"
#include "elfrw/base/regular.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 16
#define MAX_FILES 2000 /* a file may name itself more than once */

struct elfrw_err *icf_args_push(struct icf_args *a, const char *s)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 32;
		const char **v = realloc(a->v, cap * sizeof *v);
		if (!v)
			return &elfrw_err_nomem;
		a->v = v;
		a->cap = cap;
	}
	a->v[a->n++] = s;
	return NULL;
}

struct elfrw_err *icf_args_own(struct icf_args *a, char *text)
{
	char **list = text ? realloc(a->text, (a->n_text + 1) * sizeof *list) : NULL;
	if (!list) {
		free(text);
		return &elfrw_err_nomem;
	}
	a->text = list;
	a->text[a->n_text++] = text;
	return NULL;
}

static struct elfrw_err *note_file(struct icf_args *a, const char *path)
{
	const char **list = realloc(a->file, (a->n_file + 1) * sizeof *list);
	if (!list)
		return &elfrw_err_nomem;
	a->file = list;
	a->file[a->n_file++] = path;
	return NULL;
}

struct elfrw_err *icf_args_read_text(struct icf_args *a, const char *path, char **ret)
{
	if (a->n_file >= MAX_FILES)
		return elfrw_error("%s: too many response files", path);
	int fd = elfrw_open_regular(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		int e = errno;
		if (fd >= 0)
			close(fd);
		return e == EINVAL || e == EISDIR
			       ? elfrw_error("%s: not a small regular file", path)
			       : elfrw_error_errno(e, "%s: cannot open", path);
	}
	struct stat st;
	char *text;
	struct elfrw_err *err = NULL;
	if (fstat(fileno(f), &st) != 0 || st.st_size > 64 << 20)
		err = elfrw_error("%s: not a small regular file", path);
	else if (!(text = malloc((size_t)st.st_size + 1)))
		err = &elfrw_err_nomem;
	else {
		text[fread(text, 1, (size_t)st.st_size, f)] = 0;
		int e = errno;
		err = icf_args_own(a, text);
		if (!err && ferror(f))
			err = elfrw_error_errno(e, "%s: cannot read", path);
		if (!err)
			err = note_file(a, path);
		if (!err)
			*ret = text;
	}
	fclose(f);
	return err;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct elfrw_err *split(struct icf_args *out, char *p)
{
	for (;;) {
		while (is_space(*p))
			p++;
		if (!*p)
			return NULL;
		char *word = p, *to = p, quote = 0;
		for (; *p && (quote || !is_space(*p)); p++) {
			if (*p == '\\' && p[1])
				*to++ = *++p;
			else if (quote && *p == quote)
				quote = 0;
			else if (!quote && (*p == '"' || *p == '\''))
				quote = *p;
			else
				*to++ = *p;
		}
		bool last = !*p;
		*to = 0;
		ELFRW_TRY(icf_args_push(out, word));
		if (last)
			return NULL;
		p++;
	}
}

static struct elfrw_err *expand(struct icf_args *a, const char *arg, unsigned depth)
{
	if (arg[0] != '@' || !arg[1] || access(arg + 1, F_OK) != 0)
		return icf_args_push(a, arg);
	if (depth > MAX_DEPTH)
		return elfrw_error("%s: response files are nested too deeply", arg);
	char *text;
	struct icf_args inner = { 0 };
	struct elfrw_err *err = icf_args_read_text(a, arg + 1, &text);
	if (!err)
		err = split(&inner, text);
	for (size_t i = 0; i < inner.n && !err; i++)
		err = expand(a, inner.v[i], depth + 1);
	free(inner.v);
	return err;
}

struct elfrw_err *icf_args_expand(struct icf_args *a, const char *arg)
{
	return expand(a, arg, 0);
}

void icf_args_deinit(struct icf_args *a)
{
	for (size_t i = 0; i < a->n_text; i++)
		free(a->text[i]);
	free(a->text);
	free(a->file);
	free(a->v);
	*a = (struct icf_args){ 0 };
}
