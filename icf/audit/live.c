/* live.c: see live.h.
 *
 * The marking noted for each unit what it came from (icf/fold/unused.h).  A way is read backwards
 * from the function to the root.  As the marking goes breadth first, ways are short; in a program
 * that is one long chain of calls they are not, so the ways of many functions are cut.
 *
 * The text has the form of lld's --why-live: "live symbol: NAME", then ">>> kept live by NAME" for
 * each step, and what that one does. */
#include "icf/audit/live.h"
#include "dwarf/demangle/demangle.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/printable.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/audit/name.h"
#include "icf/cli/version.h"
#include "icf/fold/unused.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS      100  /* of a way, if there are several functions */
#define NAME_MAX_SHOWN 4096 /* in a broken file names may be suffixes of one string */

/* An object of data, by address. */
struct object {
	uint64_t start, size;
	const char *name;
};

/* A unit that is asked for. */
struct asked {
	uint32_t unit;
	uint32_t sym; /* the symbol that the user means, if the unit has another name; or
			 ICF_NONE */
};

/* A function that is not used: who refers to it. */
struct referrers {
	uint32_t first, n; /* unused, too */
};

struct live {
	FILE *f;
	const struct icf_run *run;
	const struct icf_program *prog;
	bool json;
	bool cut;
	VEC(struct asked) asked; /* by address */
	VEC(struct object) object;
	struct referrers *by; /* by unit; NULL: every unit asked for is used */
};

/* ---- names ---- */

/* Writes NAME, or the beginning of a very long one. */
static struct elfrw_err *put_text(const struct live *l, const char *name)
{
	char *text = strndup(name, NAME_MAX_SHOWN);
	if (!text)
		return &elfrw_err_nomem;
	if (l->json)
		elfrw_put_json(l->f, text, ELFRW_JSON_PAGE);
	else
		elfrw_put_printable(l->f, text);
	free(text);
	return NULL;
}

/* Writes the readable form of the linkage name NAME. */
static struct elfrw_err *put_name(const struct live *l, const char *name)
{
	char *text = NULL;
	if (!dwr_demangle(name, DWR_SPELLING_LLVM, &text))
		return &elfrw_err_nomem;
	struct elfrw_err *err = put_text(l, text ? text : name);
	free(text);
	return err;
}

static struct elfrw_err *put_unit(const struct live *l, uint32_t i)
{
	char number[32];
	return put_name(l, icf_unit_name(l->prog, i, number));
}

static bool is_pattern(const char *s)
{
	return strpbrk(s, "*?[\\") != NULL;
}

/* Names such as operator[] are no patterns. */
static bool fits(const char *pattern, const char *name)
{
	return strcmp(pattern, name) == 0 ||
	       (is_pattern(pattern) && fnmatch(pattern, name, 0) == 0);
}

/* Does PATTERN mean TEXT, a readable name?  Return types and parameters may be left out. */
static bool fits_readable(const char *pattern, const char *text, bool *nomem)
{
	struct icf_name name;
	if (fits(pattern, text))
		return true;
	icf_name_parse(&name, text);
	char *bare =
		strndup(text + name.part[0].begin, name.part[name.n - 1].end - name.part[0].begin);
	bool yes = bare && fits(pattern, bare);
	*nomem |= !bare;
	free(bare);
	return yes;
}

/* Sets the bit of each pattern that means NAME.  Returns whether one does. */
static bool match(const struct icf_live_query *q, const char *name, uint8_t *found, bool *nomem)
{
	char *text = NULL;
	bool any = false;
	if (!dwr_demangle(name, DWR_SPELLING_LLVM, &text))
		*nomem = true;
	for (size_t k = 0; k < q->n; k++)
		if (fits(q->pattern[k], name) ||
		    (text && fits_readable(q->pattern[k], text, nomem)))
			found[k] = any = true;
	free(text);
	return any;
}

static struct elfrw_err *find_units(struct live *l, const struct icf_live_query *q, uint8_t *found)
{
	bool nomem = false;
	char number[32];
	for (uint32_t i = 0; i < l->prog->unit.len; i++) {
		const struct icf_unit *u = &l->prog->unit.data[i];
		bool own = match(q, icf_unit_name(l->prog, i, number), found, &nomem);
		uint32_t other = ICF_NONE;
		for (uint32_t s = u->sym_first; s < u->sym_first + u->n_sym; s++)
			if (match(q, l->prog->sym.data[s].name, found, &nomem) && other == ICF_NONE)
				other = s;
		bool any = own || other != ICF_NONE;
		struct asked *to = any ? VEC_PUSH(&l->asked) : NULL;
		if (nomem || (any && !to))
			return &elfrw_err_nomem;
		if (to)
			*to = (struct asked){ i, own ? ICF_NONE : other };
	}
	return NULL;
}

/* ---- data ---- */

static int object_order(const void *p, const void *q)
{
	const struct object *x = p, *y = q;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return strcmp(x->name, y->name);
}

static struct elfrw_err *find_objects(struct live *l)
{
	for (struct elfrw_all_symbols it = { .img = l->prog->img }; elfrw_all_symbols_next(&it);) {
		const struct elfrw_section *s = &l->prog->img->section[it.table];
		if (ELF64_ST_TYPE(it.sym.st_info) != STT_OBJECT || !it.sym.st_size)
			continue;
		const char *name = elfrw_image_string(l->prog->img, s->hdr.sh_link, it.sym.st_name);
		struct object *o = name && *name ? VEC_PUSH(&l->object) : NULL;
		if (name && *name && !o)
			return &elfrw_err_nomem;
		if (o)
			*o = (struct object){ it.sym.st_value, it.sym.st_size, name };
	}
	if (l->object.len)
		qsort(l->object.data, l->object.len, sizeof *l->object.data, object_order);
	return NULL;
}

/* The object that holds VA, or NULL. */
static const struct object *object_at(const struct live *l, uint64_t va)
{
	size_t k = LOWER_BOUND(0, l->object.len, mid, l->object.data[mid].start <= va);
	/* Of several at one place, the first is the largest. */
	while (k && k > 1 && l->object.data[k - 2].start == l->object.data[k - 1].start)
		k--;
	const struct object *o = k ? &l->object.data[k - 1] : NULL;
	return o && va - o->start < o->size ? o : NULL;
}

/* ---- what a step is ---- */

/* The reference of unit I at PLACE.  References are in the order of their places. */
static const struct icf_ref *ref_at(const struct live *l, uint32_t i, uint64_t place)
{
	const struct icf_unit *u = &l->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(l->prog, u);
	size_t r = LOWER_BOUND(0, u->n_ref, mid, u->start + ref[mid].off < place);
	return r < u->n_ref && u->start + ref[r].off == place ? &ref[r] : NULL;
}

struct kind {
	const char *key, *text;
};

/* What unit FROM does to the one that it keeps. */
static struct kind step_kind(const struct live *l, const struct icf_use *use)
{
	switch (use->kind) {
	case ICF_USE_TABLE: return (struct kind){ "jump_table", "whose jump table leads to it" };
	case ICF_USE_PAD: return (struct kind){ "landing_pad", "whose landing pad it holds" };
	case ICF_USE_FALLS: return (struct kind){ "falls_through", "which runs into it" };
	case ICF_USE_RELOC: return (struct kind){ "relocation", "a relocation of which names it" };
	case ICF_USE_OBJECT: return (struct kind){ "vtable", "which uses a virtual table with it" };
	}
	const struct icf_ref *ref = ref_at(l, use->from, use->place);
	if (ref && ref->kind == ICF_REF_BRANCH)
		return ref->flags & ICF_REF_CALL ? (struct kind){ "call", "which calls it" }
						 : (struct kind){ "jump", "which jumps to it" };
	return (struct kind){ "address", "which takes its address" };
}

static struct kind root_kind(const struct live *l, const struct icf_use *use)
{
	static const struct kind kind[] = {
		[ICF_USE_ENTRY] = { "entry", "the entry point" },
		[ICF_USE_DYNAMIC] = { "dynamic",
				      "called by the dynamic loader (DT_INIT, DT_FINI)" },
		[ICF_USE_EXPORT] = { "export", "in the dynamic symbol table" },
		[ICF_USE_DATA] = { "data", "a word of data" },
		[ICF_USE_PERSONALITY] = { "personality",
					  "the personality routine of unwind tables" },
		[ICF_USE_PROBE] = { "probe", "a static probe in it" },
		[ICF_USE_DELIMITED] = { "delimited",
					"in a part of the code that the program delimits" },
		[ICF_USE_KEEP] = { "keep", "--keep" },
		[ICF_USE_DOUBT] = { "doubt", "a number may lead to it, no relocations tell" },
		[ICF_USE_PINNED] = { "pinned",
				     "keeps its address, something unknown may refer to it" },
		[ICF_USE_LINKAGE] = { "linkage", "linkage code" },
		[ICF_USE_NO_FUNCTION] = { "no_function", "no function of its own" },
		[ICF_USE_UNWIND] = { "unwind", "its unwind rules hold addresses" },
		[ICF_USE_IFUNC] = { "ifunc", "the dynamic loader calls it to choose a function" },
		[ICF_USE_RELOC] = { "relocation", "named by a relocation that stays" },
		[ICF_USE_OBJECT] = { "vtable", "in a virtual table that data refers to" },
	};
	const struct elfrw_image *img = l->prog->img;
	uint32_t s = use->place ? elfrw_image_section_at(img, use->place) : 0;
	if (use->kind == ICF_USE_DATA && s && img->section[s].hdr.sh_type == SHT_INIT_ARRAY)
		return (struct kind){ "init_array", "called when the program starts" };
	if (use->kind == ICF_USE_DATA && s && img->section[s].hdr.sh_type == SHT_PREINIT_ARRAY)
		return (struct kind){ "init_array", "called when the program starts" };
	if (use->kind == ICF_USE_DATA && s && img->section[s].hdr.sh_type == SHT_FINI_ARRAY)
		return (struct kind){ "fini_array", "called when the program ends" };
	return kind[use->kind];
}

/* The reason why unit I is pinned or no function; ICF_OK: none is known. */
static enum icf_reason unit_reason(const struct live *l, uint32_t i, const struct icf_use *use)
{
	enum icf_reason r = l->prog->unit.data[i].reason;
	bool says = r == ICF_NOT_UNDERSTOOD || r == ICF_WRITABLE_CODE || r == ICF_DATA_AMONG_CODE ||
		    r == ICF_NEAR_OPAQUE || r == ICF_GLUED || r == ICF_NOT_A_FUNCTION ||
		    r == ICF_UNWIND;
	return (use->kind == ICF_USE_PINNED || use->kind == ICF_USE_NO_FUNCTION) && says ? r
											 : ICF_OK;
}

/* ---- text ---- */

static struct elfrw_err *text_root(const struct live *l, uint32_t i)
{
	const struct icf_use *use = &l->run->use[i];
	const struct elfrw_image *img = l->prog->img;
	enum icf_reason reason = unit_reason(l, i, use);
	uint32_t s = use->place ? elfrw_image_section_at(img, use->place) : 0;
	const struct object *o = use->place ? object_at(l, use->place) : NULL;
	fprintf(l->f, ">>> root: %s",
		reason != ICF_OK ? icf_reason_text(reason) : root_kind(l, use).text);
	if (s) {
		fputs(" at ", l->f);
		elfrw_put_printable(l->f, img->section[s].name);
		fprintf(l->f, "+0x%" PRIx64, use->place - img->section[s].hdr.sh_addr);
	}
	if (o) {
		fputs(", in ", l->f);
		ELFRW_TRY(put_name(l, o->name));
		fprintf(l->f, "+0x%" PRIx64, use->place - o->start);
	}
	fputc('\n', l->f);
	return NULL;
}

static struct elfrw_err *text_unused(const struct live *l, uint32_t i)
{
	const struct referrers *by = &l->by[i];
	if (!by->n) {
		fputs(">>> nothing refers to it\n", l->f);
		return NULL;
	}
	fputs(">>> referred to only by what is unused: ", l->f);
	ELFRW_TRY(put_unit(l, by->first));
	if (by->n > 1)
		fprintf(l->f, " and %" PRIu32 " more", by->n - 1);
	fputc('\n', l->f);
	return NULL;
}

/* "SYMBOL in UNIT": the unit is a run of functions; "SYMBOL = UNIT": both names are at one place.
 */
static struct elfrw_err *text_asked(const struct live *l, const struct asked *a)
{
	const struct icf_symbol *s = a->sym == ICF_NONE ? NULL : &l->prog->sym.data[a->sym];
	bool unused = l->run->use[a->unit].kind == ICF_USE_NONE;
	fputs(unused ? "unused symbol: " : "live symbol: ", l->f);
	if (s) {
		ELFRW_TRY(put_name(l, s->name));
		fputs(s->value == l->prog->unit.data[a->unit].start ? " = " : " in ", l->f);
	}
	ELFRW_TRY(put_unit(l, a->unit));
	fputc('\n', l->f);
	return NULL;
}

static struct elfrw_err *text_way(const struct live *l, const struct asked *a)
{
	uint32_t i = a->unit;
	ELFRW_TRY(text_asked(l, a));
	if (l->run->use[i].kind == ICF_USE_NONE)
		return text_unused(l, i);
	for (unsigned n = 0; l->run->use[i].from != ICF_NONE; i = l->run->use[i].from) {
		const struct icf_use *use = &l->run->use[i];
		if (l->cut && n++ == MAX_STEPS) {
			fputs(">>> and so on: ask for this one alone\n", l->f);
			return NULL;
		}
		fputs(">>> kept live by ", l->f);
		ELFRW_TRY(put_unit(l, use->from));
		fprintf(l->f, ", %s", step_kind(l, use).text);
		if (use->place)
			fprintf(l->f, " at +0x%" PRIx64,
				use->place - l->prog->unit.data[use->from].start);
		fputc('\n', l->f);
	}
	return text_root(l, i);
}

/* ---- JSON ---- */

static struct elfrw_err *json_unit(const struct live *l, const char *key, uint32_t i)
{
	char number[32];
	fprintf(l->f, "\"%s\": ", key);
	ELFRW_TRY(put_unit(l, i));
	fputs(", \"symbol\": ", l->f);
	ELFRW_TRY(put_text(l, icf_unit_name(l->prog, i, number)));
	fprintf(l->f, ", \"address\": \"0x%" PRIx64 "\"", l->prog->unit.data[i].start);
	return NULL;
}

static struct elfrw_err *json_root(const struct live *l, uint32_t i)
{
	const struct icf_use *use = &l->run->use[i];
	const struct elfrw_image *img = l->prog->img;
	enum icf_reason reason = unit_reason(l, i, use);
	uint32_t s = use->place ? elfrw_image_section_at(img, use->place) : 0;
	const struct object *o = use->place ? object_at(l, use->place) : NULL;
	struct kind kind = root_kind(l, use);
	fprintf(l->f, "{ \"kind\": \"%s\", \"text\": \"%s\"", kind.key, kind.text);
	if (reason != ICF_OK)
		fprintf(l->f, ", \"reason\": \"%s\"", icf_reason_key(reason));
	if (use->place)
		fprintf(l->f, ", \"place\": \"0x%" PRIx64 "\"", use->place);
	if (s) {
		fputs(", \"section\": ", l->f);
		elfrw_put_json(l->f, img->section[s].name, ELFRW_JSON_PAGE);
		fprintf(l->f, ", \"offset\": %" PRIu64, use->place - img->section[s].hdr.sh_addr);
	}
	if (o) {
		fputs(", \"object\": ", l->f);
		ELFRW_TRY(put_name(l, o->name));
		fprintf(l->f, ", \"object_offset\": %" PRIu64, use->place - o->start);
	}
	fputs(" }", l->f);
	return NULL;
}

static struct elfrw_err *json_chain(const struct live *l, uint32_t i)
{
	unsigned n = 0;
	for (; l->run->use[i].from != ICF_NONE && !(l->cut && n == MAX_STEPS); n++) {
		const struct icf_use *use = &l->run->use[i];
		fprintf(l->f, "%s\n        { \"kind\": \"%s\", ", n ? "," : "",
			step_kind(l, use).key);
		ELFRW_TRY(json_unit(l, "name", use->from));
		if (use->place)
			fprintf(l->f, ", \"place\": \"0x%" PRIx64 "\"", use->place);
		fputs(" }", l->f);
		i = use->from;
	}
	fputs(" ],\n      \"root\": ", l->f);
	if (l->run->use[i].from == ICF_NONE)
		return json_root(l, i);
	fputs("null", l->f);
	return NULL;
}

static struct elfrw_err *json_way(const struct live *l, const struct asked *a)
{
	uint32_t i = a->unit;
	const struct icf_unit *u = &l->prog->unit.data[i];
	bool is_live = l->run->use[i].kind != ICF_USE_NONE;
	fputs("    { ", l->f);
	ELFRW_TRY(json_unit(l, "name", i));
	if (a->sym != ICF_NONE) {
		fputs(", \"asked_for\": ", l->f);
		ELFRW_TRY(put_name(l, l->prog->sym.data[a->sym].name));
	}
	fprintf(l->f, ", \"bytes\": %" PRIu64 ", \"live\": %s", u->end - u->start,
		is_live ? "true" : "false");
	if (is_live) {
		fputs(",\n      \"chain\": [", l->f);
		ELFRW_TRY(json_chain(l, i));
	} else {
		fprintf(l->f, ", \"unused_referrers\": %" PRIu32, l->by[i].n);
		if (l->by[i].n) {
			fputs(",\n      \"referrer\": { ", l->f);
			ELFRW_TRY(json_unit(l, "name", l->by[i].first));
			fputs(" }", l->f);
		}
	}
	fputs(" }", l->f);
	return NULL;
}

/* ---- unused functions ---- */

static void refer(struct live *l, uint32_t from, uint32_t to)
{
	if (to != ICF_NONE && to != from && !l->by[to].n++)
		l->by[to].first = from;
}

/* Fills l->by.  What is used refers to nothing that is unused. */
static struct elfrw_err *find_referrers(struct live *l)
{
	const struct icf_program *prog = l->prog;
	l->by = calloc(prog->unit.len + 1, sizeof *l->by);
	if (!l->by)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		uint32_t n, last = ICF_NONE;
		for (uint32_t r = 0; r < u->n_ref; last = ref[r++].unit)
			if (ref[r].unit != last)
				refer(l, i, ref[r].unit);
		const struct icf_pad *pad = icf_unit_pads(prog, i, &n);
		for (uint32_t k = 0; k < n; k++)
			refer(l, i, pad[k].unit);
	}
	return NULL;
}

static struct elfrw_err *print_all(struct live *l)
{
	bool unused = false;
	for (size_t k = 0; k < l->asked.len; k++)
		unused |= l->run->use[l->asked.data[k].unit].kind == ICF_USE_NONE;
	ELFRW_TRY(find_objects(l));
	if (unused)
		ELFRW_TRY(find_referrers(l));
	if (l->json) {
		fputs("{\n  \"icfold\": \"" ICF_VERSION "\",\n  \"file\": ", l->f);
		elfrw_put_json(l->f, l->prog->img->path, ELFRW_JSON_PAGE);
		fputs(",\n  \"functions\": [", l->f);
	}
	for (size_t k = 0; k < l->asked.len; k++) {
		const struct asked *a = &l->asked.data[k];
		if (l->json)
			fputs(k ? ",\n" : "\n", l->f);
		ELFRW_TRY(l->json ? json_way(l, a) : text_way(l, a));
	}
	if (l->json)
		fputs(" ]\n}\n", l->f);
	return NULL;
}

struct elfrw_err *icf_live_analyse(struct icf_run *run, const char *path, unsigned threads,
				   const char **obstacle)
{
	struct icf_options opt = { .input = path,
				   .mode = ICF_MODE_NONE,
				   .threads = threads,
				   .gc_functions = ICF_GC_OBJECTS };
	/* The record of an earlier folding, which the output could not keep, does not matter. */
	opt.strip_debug = true;
	char *debug_file = NULL;
	struct elfrw_err *err = dwr_sym_find_debug(path, NULL, &debug_file, NULL);
	if (err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err); /* the code below reports the fault of the file in other words */
	opt.debug_file = debug_file;
	run->ask_use = true;
	err = icf_run_plan(run, &opt);
	free(debug_file);
	opt.debug_file = NULL;
	*obstacle = err ? NULL : icf_unused_obstacle(&run->prog, &opt);
	return err;
}

struct elfrw_err *icf_live_print(FILE *f, const struct icf_run *run,
				 const struct icf_live_query *query, const char **missing)
{
	*missing = NULL;
	if (!run->use || !query->n)
		return NULL;
	struct live l = { .f = f, .run = run, .prog = &run->prog, .json = query->json };
	uint8_t *found = calloc(query->n, 1);
	struct elfrw_err *err = found ? find_units(&l, query, found) : &elfrw_err_nomem;
	for (size_t k = query->n; !err && k--;)
		if (!found[k])
			*missing = query->pattern[k];
	l.cut = l.asked.len > 1;
	if (!err)
		err = print_all(&l);
	free(found);
	VEC_FREE(&l.asked);
	VEC_FREE(&l.object);
	free(l.by);
	return err;
}
