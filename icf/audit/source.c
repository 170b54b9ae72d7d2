/* source.c: the names of functions and where they come from.
 *
 * Families and namespaces come from the demangled names.  Sources come from the debug information,
 * by one look-up in the line table for each function's first byte.  Without debug information they
 * come from the file symbols (STT_FILE), which stand before the local symbols of each object.
 * Linkers lay out one object after the other, so a global function between two local ones of the
 * same object belongs to that object, too.  A linked program does not record archives: the folder
 * of the compilation unit stands for the library.
 *
 * Cost: for llc (71,000 functions, no debug information) 0.3 s, nearly all of it demangling. */
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/symtab.h"
#include "icf/audit/audit.h"
#include "icf/audit/name.h"
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 8192
#define NAME_MAX_SHOWN                                                                             \
	4096 /* longest name; in a broken file names may be suffixes of one string, each kept as a \
		copy; few compilers' names are longer */

struct sources {
	struct icf_audit *a;
	struct icf_pool classes; /* scopes that are classes, not namespaces */
	uint32_t *unit_path;     /* by unit: absolute path of the compilation unit, in the pool */
	uint32_t *comp_dir;
	uint32_t *file_path;
	char buf[TEXT_MAX];
};

static struct elfrw_err *add(struct sources *s, const char *text, size_t n, uint32_t *ret)
{
	*ret = icf_pool_add(&s->a->pool, text, n);
	return *ret == ICF_POOL_NONE ? &elfrw_err_nomem : NULL;
}

/* ---- names ---- */

static struct elfrw_err *take_names(struct sources *s, const regex_t *filter)
{
	struct icf_audit *a = s->a;
	char number[32];
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		struct icf_audit_unit *u = &a->unit[i];
		const char *linkage = icf_unit_name(&a->run.prog, i, number);
		const char *name = a->sym ? dwr_sym_demangle(a->sym, linkage) : linkage;
		ELFRW_TRY(add(s, name, strnlen(name, NAME_MAX_SHOWN), &u->name));
		u->match = !filter || regexec(filter, name, 0, NULL, 0) == 0 ||
			   regexec(filter, linkage, 0, NULL, 0) == 0;
		a->n_match += u->match && a->run.prog.unit.data[i].kind == ICF_UNIT_FUNC;
	}
	return NULL;
}

/* A scope that has a constructor, a destructor or a const member function is a class. */
static struct elfrw_err *find_classes(struct sources *s)
{
	for (uint32_t i = 0; i < s->a->run.prog.unit.len; i++) {
		struct icf_name n;
		icf_name_parse(&n, icf_audit_name(s->a, i));
		if (icf_name_class(&n, s->buf, sizeof s->buf) &&
		    icf_pool_add(&s->classes, s->buf, strlen(s->buf)) == ICF_POOL_NONE)
			return &elfrw_err_nomem;
	}
	return NULL;
}

static struct elfrw_err *take_scopes(struct sources *s)
{
	struct icf_audit *a = s->a;
	ELFRW_TRY(find_classes(s));
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		struct icf_name n;
		if (a->run.prog.unit.data[i].sym == ICF_NONE)
			continue;
		/* The name lies in the pool, which may grow below and move the text.  Offsets stay
		 * valid. */
		char *text = strdup(icf_audit_name(a, i));
		if (!text)
			return &elfrw_err_nomem;
		icf_name_parse(&n, text);
		icf_name_family(&n, s->buf, sizeof s->buf);
		struct elfrw_err *err =
			add(s, s->buf, strlen(s->buf), &a->unit[i].key[ICF_DIM_FAMILY]);
		if (!err) {
			icf_name_namespace(&n, &s->classes, s->buf, sizeof s->buf);
			err = add(s, s->buf, strlen(s->buf), &a->unit[i].key[ICF_DIM_NAMESPACE]);
		}
		free(text);
		if (err)
			return err;
	}
	return NULL;
}

/* ---- paths ---- */

void icf_audit_normalise(char *path)
{
	char *out = path;
	bool absolute = *path == '/';
	size_t floor = absolute; /* behind the parts that cannot be removed */
	if (absolute)
		out++;
	for (char *in = path; *in;) {
		while (*in == '/')
			in++;
		size_t n = strcspn(in, "/");
		if (n == 2 && in[0] == '.' && in[1] == '.') {
			if ((size_t)(out - path) > floor) {
				do
					out--;
				while ((size_t)(out - path) > floor && out[-1] != '/');
			} else if (!absolute) {
				memmove(out, "../", 3);
				out += 3;
				floor = (size_t)(out - path);
			}
		} else if (n && !(n == 1 && in[0] == '.')) {
			memmove(out, in, n);
			out += n;
			if (in[n] == '/')
				*out++ = '/';
		}
		in += n;
	}
	if ((size_t)(out - path) > 1 && out[-1] == '/')
		out--;
	*out = 0;
}

/* Adds DIR/NAME, normalised, to the pool. */
static struct elfrw_err *add_path(struct sources *s, const char *dir, const char *name,
				  uint32_t *ret)
{
	size_t nd = dir && *name != '/' ? strlen(dir) : 0, nn = strlen(name);
	if (nd + nn + 2 > sizeof s->buf)
		return NULL;
	if (nd) {
		memcpy(s->buf, dir, nd);
		s->buf[nd++] = '/';
	}
	memcpy(s->buf + nd, name, nn + 1);
	icf_audit_normalise(s->buf);
	return *s->buf ? add(s, s->buf, strlen(s->buf), ret) : NULL;
}

static struct elfrw_err *take_debug(struct sources *s)
{
	struct icf_audit *a = s->a;
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		const struct icf_unit *u = &a->run.prog.unit.data[i];
		struct dwr_sym_source src;
		if (u->kind != ICF_UNIT_FUNC)
			continue;
		ELFRW_TRY(dwr_sym_source(a->sym, u->start, &src));
		if (src.unit)
			ELFRW_TRY(add_path(s, src.comp_dir, src.unit, &s->unit_path[i]));
		if (src.comp_dir)
			ELFRW_TRY(add_path(s, NULL, src.comp_dir, &s->comp_dir[i]));
		if (src.file)
			ELFRW_TRY(add_path(s, NULL, src.file, &s->file_path[i]));
		a->from_debug += src.unit != NULL;
	}
	const char *warning = dwr_sym_warning(a->sym);
	if (warning && !(a->warning = strdup(warning)))
		return &elfrw_err_nomem;
	return NULL;
}

/* The length of the longest folder that A and B share. */
static size_t common_folder(const char *a, const char *b)
{
	size_t last = 0;
	for (size_t i = 0;; i++) {
		bool ea = !a[i] || a[i] == '/', eb = !b[i] || b[i] == '/';
		if (ea && eb)
			last = i;
		if (!a[i] || a[i] != b[i])
			return last;
	}
}

/* The folder that holds both the build folder of most functions and the sources compiled there. */
static struct elfrw_err *find_root(struct sources *s)
{
	struct icf_audit *a = s->a;
	uint32_t n = (uint32_t)a->run.prog.unit.len, best = ICF_POOL_NONE;
	uint32_t *count = calloc(a->pool.start.len + 1, sizeof *count);
	if (!count)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < n; i++)
		if (s->comp_dir[i] != ICF_POOL_NONE && s->unit_path[i] != ICF_POOL_NONE)
			count[s->comp_dir[i]]++;
	for (size_t k = 0; k < a->pool.start.len; k++)
		if (count[k] && (best == ICF_POOL_NONE || count[k] > count[best]))
			best = (uint32_t)k;
	free(count);
	if (best == ICF_POOL_NONE)
		return NULL;
	a->root = strdup(icf_pool_text(&a->pool, best));
	if (!a->root)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < n; i++) {
		if (s->comp_dir[i] != best || s->unit_path[i] == ICF_POOL_NONE)
			continue;
		const char *path = icf_pool_text(&a->pool, s->unit_path[i]);
		size_t len = common_folder(a->root, path);
		/* Do not give up the root because of one generated file in /tmp. */
		if (len > 1)
			a->root[len] = 0;
	}
	return NULL;
}

/* PATH as it is shown: relative to the root if it lies below. */
static const char *shown(const struct icf_audit *a, const char *path)
{
	size_t n = a->root ? strlen(a->root) : 0;
	return n > 1 && strncmp(path, a->root, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

void icf_audit_library(const char *path, char *buf, size_t size)
{
	static const char *const parent[] = { "third_party/", "third-party/", "thirdparty/",
					      "3rdparty/",    "external/",    "vendor/",
					      "deps/",        "_deps/",       "subprojects/" };
	for (size_t k = 0; k < sizeof parent / sizeof *parent; k++) {
		const char *p = strstr(path, parent[k]);
		if (!p || (p > path && p[-1] != '/'))
			continue;
		size_t n = (size_t)(p - path) + strlen(parent[k]);
		size_t m = n + strcspn(path + n, "/");
		if (path[m] == '/' && m < size) {
			memcpy(buf, path, m);
			buf[m] = 0;
			return;
		}
	}
	const char *slash = strrchr(path, '/');
	snprintf(buf, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static struct elfrw_err *take_paths(struct sources *s)
{
	struct icf_audit *a = s->a;
	ELFRW_TRY(find_root(s));
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		uint32_t *key = a->unit[i].key;
		if (s->unit_path[i] != ICF_POOL_NONE) {
			char *path = strdup(shown(a, icf_pool_text(&a->pool, s->unit_path[i])));
			if (!path)
				return &elfrw_err_nomem;
			struct elfrw_err *err = add(s, path, strlen(path), &key[ICF_DIM_UNIT]);
			if (!err) {
				icf_audit_library(path, s->buf, sizeof s->buf);
				err = add(s, s->buf, strlen(s->buf), &key[ICF_DIM_LIBRARY]);
			}
			free(path);
			if (err)
				return err;
		}
		if (s->file_path[i] != ICF_POOL_NONE) {
			snprintf(s->buf, sizeof s->buf, "%s",
				 shown(a, icf_pool_text(&a->pool, s->file_path[i])));
			ELFRW_TRY(add(s, s->buf, strlen(s->buf), &key[ICF_DIM_FILE]));
			char *slash = strrchr(s->buf, '/');
			if (slash)
				*slash = 0;
			else
				strcpy(s->buf, ".");
			ELFRW_TRY(add(s, s->buf, strlen(s->buf), &key[ICF_DIM_DIRECTORY]));
		}
	}
	return NULL;
}

/* ---- file symbols ---- */

/* By index in .symtab: the name of the file that a local symbol comes from, NULL for others.  The
 * caller frees it. */
static const char **read_file_symbols(const struct icf_audit *a, size_t *n)
{
	const struct elfrw_image *img = &a->run.img;
	const struct elfrw_section *t = &img->section[img->symtab];
	*n = img->symtab ? elfrw_symbols_count(t) : 0;
	const char **file = calloc(*n + 1, sizeof *file), *current = NULL;
	for (struct elfrw_symbols it = elfrw_symbols(file && *n ? t : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (ELF64_ST_TYPE(sym.st_info) == STT_FILE) {
			current = elfrw_image_string(img, t->hdr.sh_link, sym.st_name);
			if (current && !*current)
				current = NULL;
		} else if (ELF64_ST_BIND(sym.st_info) == STB_LOCAL)
			file[it.index] = current;
	}
	return file;
}

static struct elfrw_err *take_file_symbols(struct sources *s)
{
	struct icf_audit *a = s->a;
	const struct icf_program *prog = &a->run.prog;
	size_t n_sym;
	const char **file = read_file_symbols(a, &n_sym);
	if (!file)
		return &elfrw_err_nomem;
	uint32_t n = (uint32_t)prog->unit.len, before = ICF_NONE;
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < n && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		uint32_t *key = &a->unit[i].key[ICF_DIM_UNIT];
		if (before != ICF_NONE && prog->unit.data[before].sec != u->sec)
			before = ICF_NONE;
		if (*key != ICF_NONE || u->sym == ICF_NONE ||
		    prog->sym.data[u->sym].index >= n_sym || !file[prog->sym.data[u->sym].index])
			continue;
		const char *name = file[prog->sym.data[u->sym].index];
		err = add(s, name, strlen(name), key);
		a->from_symbols += u->kind == ICF_UNIT_FUNC;
		if (!err && before != ICF_NONE && a->unit[before].key[ICF_DIM_UNIT] == *key)
			for (uint32_t k = before + 1; k < i; k++) {
				/* A function between them that has a source of its own comes from
				 * elsewhere. */
				if (a->unit[k].key[ICF_DIM_UNIT] != ICF_NONE)
					continue;
				a->unit[k].key[ICF_DIM_UNIT] = *key;
				a->from_symbols += prog->unit.data[k].kind == ICF_UNIT_FUNC;
			}
		before = i;
	}
	free(file);
	return err;
}

static struct elfrw_err *take_sources(struct sources *s)
{
	uint32_t n = (uint32_t)s->a->run.prog.unit.len;
	s->unit_path = malloc((3 * (size_t)n + 1) * sizeof *s->unit_path);
	if (!s->unit_path)
		return &elfrw_err_nomem;
	memset(s->unit_path, 0xff, (3 * (size_t)n + 1) * sizeof *s->unit_path);
	s->comp_dir = s->unit_path + n;
	s->file_path = s->comp_dir + n;
	if (s->a->sym)
		ELFRW_TRY(take_debug(s));
	ELFRW_TRY(take_paths(s));
	return take_file_symbols(s);
}

struct elfrw_err *icf_audit_names(struct icf_audit *a, const struct icf_audit_options *opt)
{
	regex_t regex;
	if (opt->filter) {
		int bad = regcomp(&regex, opt->filter, REG_EXTENDED | REG_NOSUB);
		if (bad)
			return elfrw_error("--filter=%s: not a regular expression", opt->filter);
	}
	struct sources *s = calloc(1, sizeof *s);
	struct elfrw_err *err = s ? NULL : &elfrw_err_nomem;
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++)
		for (int d = 0; d < ICF_N_DIMS; d++)
			a->unit[i].key[d] = ICF_NONE;
	if (!err) {
		struct dwr_sym_options sym = { .own_only = opt->no_sources };
		s->a = a;
		/* Without a symbolizer, names stay as they are and sources are unknown. */
		err = dwr_sym_open(a->run.img.path, &sym, &a->sym);
		if (err != &elfrw_err_nomem) {
			elfrw_err_free(err);
			err = take_names(s, opt->filter ? &regex : NULL);
		}
	}
	if (!err)
		err = take_scopes(s);
	if (!err && !opt->no_sources)
		err = take_sources(s);
	if (!err && a->sym)
		err = dwr_sym_complete(a->sym);
	if (s) {
		icf_pool_deinit(&s->classes);
		free(s->unit_path);
	}
	free(s);
	if (opt->filter)
		regfree(&regex);
	return err;
}
