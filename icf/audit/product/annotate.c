/* annotate.c: what a change added that was there already, in the forms that reviews show beside the
 * changed lines.
 *
 * GitHub: "Workflow commands".  GitLab: "Code Quality report format".  SARIF: OASIS, version 2.1.0
 * (errata 01).  Without debug information the place is the program itself. */
#include "dwarf/demangle/demangle.h"
#include "elfrw/base/printable.h"
#include "icf/audit/product/diff.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define TEXT_MAX 4096
#define SHOWN    300 /* characters of a name */

/* A function in the words of an annotation. */
struct place {
	char path[TEXT_MAX];
	uint32_t line; /* 0: not known */
	char name[SHOWN + 4];
	const char *file; /* program; borrowed */
};

static void take_place(const struct icf_product *p, const struct icf_product_member *m,
		       struct place *ret)
{
	const struct icf_product_func *x = &icf_product_funcs(p, m->file)[m->func];
	const char *name = icf_product_text(p, m->file, x->name);
	const char *source = icf_product_text(p, m->file, x->source);
	char *readable = NULL, cwd[TEXT_MAX];
	ret->file = p->file.data[m->file].name;
	ret->line = source ? x->line : 0;
	snprintf(ret->path, sizeof ret->path, "%s", source ? source : ret->file);
	icf_audit_normalise(ret->path);
	size_t n = getcwd(cwd, sizeof cwd) ? strlen(cwd) : 0;
	if (n > 1 && strncmp(ret->path, cwd, n) == 0 && ret->path[n] == '/')
		memmove(ret->path, ret->path + n + 1, strlen(ret->path + n + 1) + 1);
	if (name && dwr_demangle(name, 0, &readable) && readable)
		name = readable;
	name = name ? name : "a function without a name";
	snprintf(ret->name, sizeof ret->name, "%.*s%s", SHOWN, name,
		 strlen(name) > SHOWN ? "..." : "");
	free(readable);
}

/* "int f() (120 bytes) was there already: as g() in src/b.cc:10, of libx.so" */
static void message(const struct icf_product_added *x, const struct place *a,
		    const struct place *first, char *buf, size_t size)
{
	char line[16] = "";
	if (first->line)
		snprintf(line, sizeof line, ":%" PRIu32, first->line);
	snprintf(buf, size,
		 "%s (%" PRIu32 " bytes, in %s) is code that was there already: %s, %s%s%s%s",
		 a->name, x->size, a->file, first->name, first->path, line,
		 first->line ? ", in " : "", first->line ? first->file : "");
}

static size_t shown(const struct icf_product_diff *d, const struct icf_audit_options *opt)
{
	return opt->top && opt->top < d->added.len ? opt->top : d->added.len;
}

/* ALSO: characters to be spelled out as well. */
static void put_github(FILE *f, const char *s, const char *also)
{
	char special[8];
	snprintf(special, sizeof special, "%%\r\n%s", also);
	while (*s) {
		size_t n = strcspn(s, special);
		elfrw_put_printable_n(f, s, n);
		s += n;
		if (*s)
			fprintf(f, "%%%02X", (unsigned char)*s++);
	}
}

void icf_product_github(FILE *f, const struct icf_product_diff *d,
			const struct icf_audit_options *opt)
{
	char text[2 * TEXT_MAX];
	struct place a, first;
	for (size_t k = 0; k < shown(d, opt); k++) {
		const struct icf_product_added *x = &d->added.data[k];
		take_place(d->p[1], &x->added, &a);
		take_place(d->p[1], &x->first, &first);
		message(x, &a, &first, text, sizeof text);
		fputs("::warning file=", f);
		put_github(f, a.path, ":,");
		if (a.line)
			fprintf(f, ",line=%" PRIu32, a.line);
		fputs(",title=Duplicated code::", f);
		put_github(f, text, "");
		fputc('\n', f);
	}
}

static void put_hash(FILE *f, const struct icf_product *p, const struct icf_product_member *m)
{
	const uint64_t *h = icf_product_funcs(p, m->file)[m->func].hash;
	fprintf(f, "%016" PRIx64 "%016" PRIx64, h[1], h[0]);
}

/* GitLab tells by the fingerprints what is new: the same finding has the same in the report of
 * another commit, whatever else is found there, and no two findings of a report have the same.  So
 * they are made of names; a function's hash also depends on who else uses its variables. */
struct fingerprints {
	struct icf_pool seen;
	VEC(uint32_t) count; /* by text of `seen` */
};

static void put_fingerprint(FILE *f, struct fingerprints *fp, const struct icf_product *p,
			    const struct icf_product_member *m, size_t k)
{
	const struct icf_product_func *x = &icf_product_funcs(p, m->file)[m->func];
	const struct icf_product_file *file = &p->file.data[m->file];
	const char *name = icf_product_text(p, m->file, x->name);
	char text[TEXT_MAX];
	if (name)
		snprintf(text, sizeof text, "%s:%s", file->name + file->rel, name);
	else
		snprintf(text, sizeof text, "%s:%016" PRIx64 "%016" PRIx64, file->name + file->rel,
			 x->hash[1], x->hash[0]);
	XXH128_hash_t h = XXH3_128bits(text, strlen(text));
	snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, (uint64_t)h.high64,
		 (uint64_t)h.low64);
	fputs(text, f);
	uint32_t id = icf_pool_add(&fp->seen, text, strlen(text));
	if (id != ICF_POOL_NONE && id == fp->count.len) {
		uint32_t *fresh = VEC_PUSH(&fp->count);
		if (fresh)
			*fresh = 0;
	}
	if (id < fp->count.len)
		k = fp->count.data[id]++;
	if (k)
		fprintf(f, "-%zx", k);
}

void icf_product_gitlab(FILE *f, const struct icf_product_diff *d,
			const struct icf_audit_options *opt)
{
	char text[2 * TEXT_MAX];
	struct place a, first;
	struct fingerprints fp = { 0 };
	fputc('[', f);
	for (size_t k = 0; k < shown(d, opt); k++) {
		const struct icf_product_added *x = &d->added.data[k];
		take_place(d->p[1], &x->added, &a);
		take_place(d->p[1], &x->first, &first);
		message(x, &a, &first, text, sizeof text);
		fprintf(f, "%s\n  { \"description\": ", k ? "," : "");
		icf_put_json(f, text);
		fputs(", \"check_name\": \"duplicated-function\", \"severity\": \"minor\", \"fingerprint\": \"",
		      f);
		put_fingerprint(f, &fp, d->p[1], &x->added, k);
		fputs("\", \"location\": { \"path\": ", f);
		icf_put_json(f, a.path);
		fprintf(f, ", \"lines\": { \"begin\": %" PRIu32 " } } }", a.line ? a.line : 1);
	}
	fputs(" ]\n", f);
	icf_pool_deinit(&fp.seen);
	VEC_FREE(&fp.count);
}

/* PATH as a URI reference (RFC 3986), in quotes. */
static void put_uri(FILE *f, const char *path)
{
	fputs(*path == '/' ? "\"file://" : "\"", f);
	for (; *path; path++)
		if ((*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
		    (*path >= '0' && *path <= '9') || strchr("/-._~+@", *path))
			fputc(*path, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*path);
	fputc('"', f);
}

static void put_location(FILE *f, const struct place *p)
{
	fputs("\"physicalLocation\": { \"artifactLocation\": { \"uri\": ", f);
	put_uri(f, p->path);
	fputs(" }", f);
	if (p->line)
		fprintf(f, ", \"region\": { \"startLine\": %" PRIu32 " }", p->line);
	fputs(" }", f);
}

void icf_product_sarif(FILE *f, const struct icf_product_diff *d,
		       const struct icf_audit_options *opt)
{
	char text[2 * TEXT_MAX];
	struct place a, first;
	fputs("{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
	      "  \"version\": \"2.1.0\",\n  \"runs\": [ {\n"
	      "    \"tool\": { \"driver\": { \"name\": \"icfold\", \"version\": \"" ICF_VERSION
	      "\",\n"
	      "      \"rules\": [ { \"id\": \"duplicated-function\",\n"
	      "        \"shortDescription\": { \"text\": \"A function whose code was there already\" } } ] } },\n"
	      "    \"results\": [",
	      f);
	for (size_t k = 0; k < shown(d, opt); k++) {
		const struct icf_product_added *x = &d->added.data[k];
		take_place(d->p[1], &x->added, &a);
		take_place(d->p[1], &x->first, &first);
		message(x, &a, &first, text, sizeof text);
		fprintf(f,
			"%s\n      { \"ruleId\": \"duplicated-function\", \"level\": \"warning\",\n"
			"        \"message\": { \"text\": ",
			k ? "," : "");
		icf_put_json(f, text);
		fputs(" },\n        \"locations\": [ { ", f);
		put_location(f, &a);
		fputs(" } ],\n        \"relatedLocations\": [ { \"id\": 1, ", f);
		put_location(f, &first);
		fputs(", \"message\": { \"text\": \"the first copy\" } } ],\n"
		      "        \"partialFingerprints\": { \"functionHash/v1\": \"",
		      f);
		put_hash(f, d->p[1], &x->added);
		fputs("\" } }", f);
	}
	fputs(" ] } ]\n}\n", f);
}
