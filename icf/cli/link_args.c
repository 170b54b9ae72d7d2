/* link_args.c: see link_args.h.
 *
 * Only the options that matter here are known.  Of the others, only those that take the next
 * argument as a value are known, so that a value is not taken for an option.  The spellings are
 * those of GNU ld, gold, lld and mold.  Long options have one dash or two; those that begin with o
 * need two, since -o with one dash is an option of its own. */
#include "icf/cli/link_args.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool in_list(const char *const *list, const char *s)
{
	for (; *list; list++)
		if (strcmp(*list, s) == 0)
			return true;
	return false;
}

static bool is_linker(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	static const char *const other[] = { "ld", "lld", "gold", "mold", "wild", NULL };
	size_t n = strlen(name);
	return in_list(other, name) || strncmp(name, "ld.", 3) == 0 ||
	       strncmp(name, "ld-", 3) == 0 || strncmp(name, "lld-", 4) == 0 ||
	       (n > 3 && strcmp(name + n - 3, "-ld") == 0) || strstr(name, "-ld.");
}

/* Is ARG the linker's long option NAME? */
static bool is_long(const char *arg, const char *name)
{
	return arg[0] == '-' && strcmp(arg + 1 + (arg[1] == '-'), name) == 0;
}

static bool is_strip(const char *arg)
{
	return strcmp(arg, "-s") == 0 || is_long(arg, "strip-all");
}

static bool takes_value(const char *arg)
{
	static const char *const letter[] = { "-A", "-a", "-b", "-c", "-e", "-f", "-F",
					      "-G", "-h", "-L", "-l", "-m", "-P", "-R",
					      "-T", "-u", "-y", "-Y", "-z", NULL };
	static const char *const word[] = { "Map",
					    "audit",
					    "architecture",
					    "auxiliary",
					    "defsym",
					    "depaudit",
					    "dependency-file",
					    "dynamic-linker",
					    "dynamic-list",
					    "entry",
					    "export-dynamic-symbol",
					    "export-dynamic-symbol-list",
					    "filter",
					    "fini",
					    "flavor",
					    "format",
					    "init",
					    "just-symbols",
					    "library",
					    "library-path",
					    "mri-script",
					    "oformat",
					    "plugin",
					    "plugin-opt",
					    "require-defined",
					    "retain-symbols-file",
					    "rpath",
					    "rpath-link",
					    "script",
					    "section-start",
					    "soname",
					    "sysroot",
					    "trace-symbol",
					    "undefined",
					    "version-script",
					    "wrap",
					    NULL };
	return in_list(letter, arg) ||
	       (arg[0] == '-' && arg[1] && in_list(word, arg + 1 + (arg[1] == '-')));
}

/* Reads one argument of the linker.  NEXT is the one behind it, or NULL.  Returns true if NEXT is
 * its value. */
static bool linker_arg(struct icf_link *link, const char *arg, const char *next)
{
	if (strcmp(arg, "-r") == 0 || strcmp(arg, "-i") == 0 || strcmp(arg, "-Ur") == 0 ||
	    is_long(arg, "relocatable"))
		link->plain = true;
	else if (strcmp(arg, "-q") == 0 || is_long(arg, "emit-relocs"))
		link->emit_relocs = true;
	else if (is_strip(arg))
		link->strip_all = true;
	else if (strncmp(arg, "--output=", 9) == 0)
		link->output = arg + 9;
	else if (strcmp(arg, "-o") == 0 || strcmp(arg, "--output") == 0) {
		if (next)
			link->output = next;
		return true;
	} else if (strncmp(arg, "-o", 2) == 0)
		link->output = arg + 2;
	return takes_value(arg);
}

/* Reads the arguments that a compiler passes to the linker, one by one.  SKIP: the next one is a
 * value. */
static struct elfrw_err *handed_on(struct icf_link *link, char *list, bool *skip)
{
	char *save = NULL;
	ELFRW_TRY(icf_args_own(&link->edit, list));
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save))
		*skip = *skip ? false : linker_arg(link, s, NULL);
	return NULL;
}

/* Compiler options that prevent linking. */
static const char *const no_link[] = { "-c", "-S",        "-E",   "-M", "-MM", "-fsyntax-only",
				       "-r", "--version", "-###", NULL };

/* Compiler options whose value is the next argument. */
/* clang-format off */
static const char *const with_value[] = {
	"-A", "-B", "-D", "-I", "-L", "-MF", "-MQ", "-MT", "-T", "-U", "-Xassembler", "-Xclang",
	"-Xpreprocessor", "-arch", "-aux-info", "-dumpbase", "-e", "-idirafter", "-imacros",
	"-include", "-include-pch", "-iquote", "-isysroot", "-isystem", "-l", "-mllvm", "-target",
	"-u", "-x", "-z", "--param", NULL,
};
/* clang-format on */

static struct elfrw_err *read_driver(struct icf_link *link)
{
	bool skip = false, has_input = false;
	for (size_t i = 1; i < link->all.n; i++) {
		const char *arg = link->all.v[i],
			   *next = i + 1 < link->all.n ? link->all.v[i + 1] : NULL;
		if (strncmp(arg, "-Wl,", 4) == 0)
			ELFRW_TRY(handed_on(link, strdup(arg + 4), &skip));
		else if (strcmp(arg, "-Xlinker") == 0 && next) {
			ELFRW_TRY(handed_on(link, strdup(next), &skip));
			i++;
		} else if (strcmp(arg, "-o") == 0 && next) {
			link->output = next;
			i++;
		} else if (strncmp(arg, "-o", 2) == 0 && arg[2])
			link->output = arg + 2;
		else if (strcmp(arg, "-s") == 0)
			link->strip_all = true;
		else if (in_list(no_link, arg))
			link->plain = true;
		else if (in_list(with_value, arg))
			i++;
		else if (arg[0] != '-' || !arg[1])
			has_input = true;
	}
	/* An option that we add would count as an input. */
	link->plain |= !has_input;
	return NULL;
}

struct elfrw_err *icf_link_read(struct icf_link *link, int argc, char **argv)
{
	link->output = "a.out";
	link->driver = !is_linker(argv[0]);
	for (int i = 0; i < argc; i++)
		ELFRW_TRY(icf_args_expand(&link->all, argv[i]));
	if (link->driver)
		return read_driver(link);
	for (size_t i = 1; i < link->all.n; i++)
		i += linker_arg(link, link->all.v[i],
				i + 1 < link->all.n ? link->all.v[i + 1] : NULL);
	return NULL;
}

/* A compiler's argument without the strip options in it: ARG itself, another text of LINK, or NULL
 * if nothing is left. */
static struct elfrw_err *without_strip(struct icf_link *link, const char *arg, const char **ret)
{
	*ret = arg;
	if (strncmp(arg, "-Wl,", 4) != 0) {
		if (is_strip(arg))
			*ret = NULL;
		return NULL;
	}
	char *text = strdup(arg), *out = malloc(strlen(arg) + 1), *save = NULL;
	struct elfrw_err *err = icf_args_own(&link->edit, text);
	if (!err) {
		err = icf_args_own(&link->edit, out);
		out = err ? NULL : out;
	} else
		free(out);
	if (err)
		return err;
	size_t n = 0, kept = 0;
	for (char *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save))
		if (!is_strip(s)) {
			n += (size_t)sprintf(out + n, n ? ",%s" : "%s", s);
			kept++;
		}
	*ret = kept > 1 ? out : NULL;
	return NULL;
}

/* Makes an unnamed response file of the arguments [FROM, N), since they may be too many for a
 * command line. */
static struct elfrw_err *to_response(struct icf_link *link, size_t from)
{
	struct icf_args *e = &link->edit;
	int fd = memfd_create("icfold-arguments", 0);
	FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "we");
	if (!f) {
		struct elfrw_err *err = elfrw_error_errno(errno, "cannot create a response file");
		if (fd >= 0)
			close(fd);
		return err;
	}
	link->response = fd;
	for (size_t i = from; i < e->n; i++) {
		if (!*e->v[i])
			fputs("\"\"", f);
		for (const char *s = e->v[i]; *s; s++) {
			if (strchr(" \t\n\v\f\r\"'\\", *s))
				fputc('\\', f);
			fputc(*s, f);
		}
		fputc('\n', f);
	}
	bool bad = fflush(f) != 0 || ferror(f);
	fclose(f);
	char *name;
	if (bad || asprintf(&name, "@/proc/self/fd/%d", fd) < 0)
		return elfrw_error("cannot write a response file");
	e->n = from;
	ELFRW_TRY(icf_args_own(e, name));
	return icf_args_push(e, name);
}

struct elfrw_err *icf_link_edit(struct icf_link *link, int argc, char **argv)
{
	struct icf_args *e = &link->edit;
	/* The option that selects lld's flavour must stay first. */
	int front = !link->driver && argc > 3 && is_long(argv[1], "flavor") ? 3 : 1;
	for (int i = 0; i < front; i++)
		ELFRW_TRY(icf_args_push(e, argv[i]));
	ELFRW_TRY(icf_args_push(e, link->driver ? "-Wl,--emit-relocs" : "--emit-relocs"));
	size_t from = e->n;
	if (!link->strip_all) {
		for (int i = front; i < argc; i++)
			ELFRW_TRY(icf_args_push(e, argv[i]));
		return icf_args_push(e, NULL);
	}
	for (size_t i = (size_t)front; i < link->all.n; i++) {
		const char *arg = link->all.v[i];
		if (strcmp(arg, "-Xlinker") == 0 && i + 1 < link->all.n &&
		    is_strip(link->all.v[i + 1])) {
			i++;
			continue;
		}
		ELFRW_TRY(without_strip(link, arg, &arg));
		if (arg)
			ELFRW_TRY(icf_args_push(e, arg));
	}
	if (link->all.n_text)
		ELFRW_TRY(to_response(link, from));
	return icf_args_push(e, NULL);
}

void icf_link_deinit(struct icf_link *link)
{
	if (link->response)
		close(link->response);
	icf_args_deinit(&link->all);
	icf_args_deinit(&link->edit);
	*link = (struct icf_link){ 0 };
}
