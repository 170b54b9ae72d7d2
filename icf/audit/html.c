/* html.c: the audit as one page for a web browser.
 *
 * The page's style, body and script are in icf/audit/page/; the data goes between them as JSON.
 * The data must stay small for programs of 100,000 functions.  So names are cut into parts.  The
 * parts are nodes of two trees (namespaces and classes; folders and files) over one table of
 * strings.  A function is a size, a node in each tree, the string of its last part, and a letter
 * for its fate.  Growing numbers are written as differences. */
#include "elfrw/base/printable.h"
#include "elfrw/base/newfile.h"
#include "icf/audit/audit.h"
#include "icf/audit/name.h"
#include "icf/audit/page.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PART_COLUMNS     64
#define MAX_ROWS         1000 /* of a table */
#define MAX_NEAR         250
#define MAX_NEAR_MEMBERS 8

struct tree {
	struct icf_pool path; /* the path of each node, parts divided by SEPARATOR; its number is
				 the node's */
	VEC(uint32_t) parent;
	VEC(uint32_t) name; /* strings */
};

#define SEPARATOR '\x1f'

struct page {
	FILE *f;
	const struct icf_audit *a;
	const struct icf_audit_options *opt;
	struct icf_pool string;
	struct tree scope, source;
	VEC(uint32_t) leaf;     /* by unit: string */
	VEC(uint32_t) in_scope; /* by unit: node */
	VEC(uint32_t) in_source;
	char buf[8192], path[16384];
};

static uint32_t string(struct page *p, const char *s)
{
	return icf_pool_add(&p->string, s, strlen(s));
}

/* The node of p->path, whose last part is S; false: out of memory. */
static bool add_node(struct page *p, struct tree *t, uint32_t parent, const char *s, uint32_t *ret)
{
	*ret = icf_pool_add(&t->path, p->path, strlen(p->path));
	if (*ret == ICF_POOL_NONE)
		return false;
	if (*ret < t->parent.len)
		return true;
	uint32_t *up = VEC_PUSH(&t->parent), *name = VEC_PUSH(&t->name);
	if (!up || !name)
		return false;
	*up = parent;
	*name = string(p, s);
	return *name != ICF_POOL_NONE;
}

/* Moves *NODE to its child S, which is made if it does not exist. */
static bool descend(struct page *p, struct tree *t, const char *s, uint32_t *node)
{
	size_t n = strlen(p->path), m = strlen(s);
	if (n + m + 2 > sizeof p->path)
		return true;
	p->path[n] = SEPARATOR;
	memcpy(p->path + n + 1, s, m + 1);
	return add_node(p, t, *node, s, node);
}

static bool start(struct page *p, struct tree *t, uint32_t *node)
{
	p->path[0] = 0;
	return add_node(p, t, 0, "", node);
}

static bool place_scope(struct page *p, uint32_t i)
{
	struct icf_name n;
	uint32_t node, *leaf = VEC_PUSH(&p->leaf), *in = VEC_PUSH(&p->in_scope);
	if (!leaf || !in || !start(p, &p->scope, &node))
		return false;
	if (p->a->run.prog.unit.data[i].sym == ICF_NONE) {
		/* Without a name: the address adds nothing to the place in the list. */
		*leaf = string(p, icf_audit_name(p->a, i));
		*in = node;
		return *leaf != ICF_POOL_NONE;
	}
	icf_name_parse(&n, icf_audit_name(p->a, i));
	for (unsigned k = 0; k + 1 < n.n; k++) {
		/* The instances of a class template have a common parent node "vector<>". */
		size_t base = icf_name_base(&n, k);
		if (base < n.part[k].end - n.part[k].begin && base < 200 &&
		    n.text[n.part[k].begin + base] == '<') {
			snprintf(p->buf, sizeof p->buf, "%.*s<>", (int)base,
				 n.text + n.part[k].begin);
			if (!descend(p, &p->scope, p->buf, &node))
				return false;
		}
		icf_name_part_brief(&n, k, PART_COLUMNS, p->buf, sizeof p->buf);
		if (!descend(p, &p->scope, p->buf, &node))
			return false;
	}
	icf_name_part_brief(&n, n.n - 1, PART_COLUMNS, p->buf, sizeof p->buf);
	*leaf = string(p, p->buf);
	*in = node;
	return *leaf != ICF_POOL_NONE;
}

static bool place_source(struct page *p, uint32_t i)
{
	const uint32_t *key = p->a->unit[i].key;
	uint32_t node, k = key[ICF_DIM_FILE] != ICF_NONE ? key[ICF_DIM_FILE] : key[ICF_DIM_UNIT],
		       *in = VEC_PUSH(&p->in_source);
	if (!in || !start(p, &p->source, &node))
		return false;
	if (k == ICF_NONE) {
		if (!descend(p, &p->source, "(not known)", &node))
			return false;
		*in = node;
		return true;
	}
	snprintf(p->buf, sizeof p->buf, "%s", icf_pool_text(&p->a->pool, k));
	char *save = NULL;
	for (char *part = strtok_r(p->buf, "/", &save); part; part = strtok_r(NULL, "/", &save))
		if (!descend(p, &p->source, part, &node))
			return false;
	*in = node;
	return true;
}

static void put_numbers(struct page *p, const char *key, const uint32_t *v, size_t n,
			bool differences)
{
	uint32_t last = 0;
	fprintf(p->f, ",\"%s\":[", key);
	for (size_t i = 0; i < n; i++) {
		if (differences)
			fprintf(p->f, "%s%" PRId64, i ? "," : "", (int64_t)v[i] - (int64_t)last);
		else
			fprintf(p->f, "%s%" PRIu32, i ? "," : "", v[i]);
		last = v[i];
	}
	fputc(']', p->f);
}

static void put_tree(struct page *p, const char *key, const struct tree *t)
{
	fprintf(p->f, ",\"%s\":{\"of\":0", key);
	put_numbers(p, "parent", t->parent.data, t->parent.len, true);
	put_numbers(p, "name", t->name.data, t->name.len, true);
	fputc('}', p->f);
}

/* One letter for the fate of each unit, in the order of enum icf_reason and icf_why. */
static void put_letters(struct page *p, const char *key, int mode)
{
	fprintf(p->f, ",\"%s\":\"", key);
	for (uint32_t i = 0; i < p->a->run.prog.unit.len; i++)
		fputc('A' + p->a->unit[i].why[mode], p->f);
	fputc('"', p->f);
}

static struct elfrw_err *put_functions(struct page *p)
{
	const struct icf_audit *a = p->a;
	uint32_t n = (uint32_t)a->run.prog.unit.len;
	for (uint32_t i = 0; i < n; i++)
		if (!place_scope(p, i) || !place_source(p, i))
			return &elfrw_err_nomem;
	put_tree(p, "scopes", &p->scope);
	put_tree(p, "sources", &p->source);
	fputs(",\"size\":[", p->f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(p->f, "%s%" PRIu64, i ? "," : "", icf_audit_size(a, i));
	fputc(']', p->f);
	put_numbers(p, "leaf", p->leaf.data, n, true);
	put_numbers(p, "scope", p->in_scope.data, n, true);
	put_numbers(p, "source", p->in_source.data, n, true);
	put_letters(p, "why_all", ICF_AUDIT_ALL);
	put_letters(p, "why_safe", ICF_AUDIT_SAFE);
	/* Savings follow from the size, except for thunks. */
	fputs(",\"thunks\":{", p->f);
	bool any = false;
	for (uint32_t i = 0; i < n; i++)
		if (a->unit[i].why[ICF_AUDIT_SAFE] == ICF_WHY_THUNK) {
			fprintf(p->f, "%s\"%" PRIu32 "\":%" PRIu32, any ? "," : "", i,
				a->plan[ICF_AUDIT_SAFE].map.unit[i].thunk_size);
			any = true;
		}
	fputc('}', p->f);
	return NULL;
}

static void put_groups(struct page *p)
{
	const struct icf_audit *a = p->a;
	fputs(",\"groups\":[", p->f);
	for (size_t k = 0; k < a->group.len && (!p->opt->top || k < p->opt->top); k++) {
		const struct icf_audit_group *g = &a->group.data[k];
		fprintf(p->f, "%s[%" PRIu32 ",%" PRIu64 ",%" PRIu64, k ? "," : "", g->keeper,
			g->saving[ICF_AUDIT_ALL], g->saving[ICF_AUDIT_SAFE]);
		uint32_t last = 0;
		for (uint32_t i = g->member; i < g->member + g->count; i++) {
			fprintf(p->f, ",%" PRIu32, a->member.data[i] - last);
			last = a->member.data[i];
		}
		fputc(']', p->f);
	}
	fputc(']', p->f);
}

static struct elfrw_err *put_tables(struct page *p)
{
	fputs(",\"tables\":{\"of\":0", p->f);
	for (int d = 0; d < ICF_N_DIMS; d++) {
		icf_audit_rows rows = { 0 };
		ELFRW_TRY(icf_audit_table(p->a, p->opt, d, &rows));
		fprintf(p->f, ",\"%s\":[", icf_dimension_key(d));
		uint32_t n = 0, known = 0;
		for (size_t k = 0; k < rows.len; k++)
			known += rows.data[k].key != ICF_NONE;
		for (size_t k = 0; k < rows.len && n < MAX_ROWS && known; k++) {
			const struct icf_audit_row *r = &rows.data[k];
			if (!r->saving[0] && !r->saving[1])
				continue;
			uint32_t name =
				string(p, r->key == ICF_NONE ? "(not known)"
							     : icf_pool_text(&p->a->pool, r->key));
			fprintf(p->f,
				"%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
				n++ ? "," : "", name, r->count, r->bytes, r->saving[ICF_AUDIT_ALL],
				r->saving[ICF_AUDIT_SAFE]);
			if (name == ICF_POOL_NONE) {
				VEC_FREE(&rows);
				return &elfrw_err_nomem;
			}
		}
		fputc(']', p->f);
		VEC_FREE(&rows);
	}
	fputc('}', p->f);
	return NULL;
}

static struct elfrw_err *put_unused_tables(struct page *p)
{
	fputs(",\"tables\":{\"of\":0", p->f);
	for (int d = 0; d < ICF_N_DIMS; d++) {
		icf_audit_rows rows = { 0 };
		struct elfrw_err *err = icf_audit_unused_table(p->a, p->opt, d, &rows);
		bool known = rows.len && (rows.len > 1 || rows.data[0].key != ICF_NONE);
		fprintf(p->f, ",\"%s\":[", icf_dimension_key(d));
		for (size_t k = 0; k < rows.len && k < MAX_ROWS && known && !err; k++) {
			const struct icf_audit_row *r = &rows.data[k];
			uint32_t name =
				string(p, r->key == ICF_NONE ? "(not known)"
							     : icf_pool_text(&p->a->pool, r->key));
			fprintf(p->f,
				"%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64 "]",
				k ? "," : "", name, r->unused, r->unused_bytes, r->count, r->bytes);
			if (name == ICF_POOL_NONE)
				err = &elfrw_err_nomem;
		}
		fputc(']', p->f);
		VEC_FREE(&rows);
		if (err)
			return err;
	}
	fputc('}', p->f);
	return NULL;
}

/* All of them are on the map; `list` has those that pass the filter, most bytes first. */
static struct elfrw_err *put_unused(struct page *p)
{
	const struct icf_audit_unused *u = &p->a->unused;
	uint64_t text = p->a->text;
	uint32_t last = 0;
	bool any = false;
	fputs(",\"unused\":{\"obstacle\":", p->f);
	icf_put_json(p->f, u->obstacle ? u->obstacle : "");
	fprintf(p->f, ",\"functions\":%" PRIu32 ",\"bytes\":%" PRIu64, u->functions, u->bytes);
	if (u->is)
		fprintf(p->f,
			",\"saved\":{\"none\":%" PRIu64 ",\"all\":%" PRIu64 ",\"safe\":%" PRIu64
			"}",
			text - u->alone, text - u->with[ICF_AUDIT_ALL],
			text - u->with[ICF_AUDIT_SAFE]);
	fputs(",\"units\":[", p->f);
	for (uint32_t i = 0; i < p->a->run.prog.unit.len && u->is; i++)
		if (u->is[i]) {
			fprintf(p->f, "%s%" PRIu32, any ? "," : "", i - last);
			last = i;
			any = true;
		}
	icf_audit_units list = { 0 };
	struct elfrw_err *err = icf_audit_unused_list(p->a, p->opt, &list);
	fputs("],\"list\":[", p->f);
	for (size_t k = 0; k < list.len && k < MAX_ROWS && (!p->opt->top || k < p->opt->top); k++)
		fprintf(p->f, "%s%" PRIu32, k ? "," : "", list.data[k]);
	fputc(']', p->f);
	VEC_FREE(&list);
	if (!err)
		err = put_unused_tables(p);
	fputc('}', p->f);
	return err;
}

static void put_reasons(struct page *p)
{
	fputs(",\"reasons\":[", p->f);
	for (unsigned w = 0; w < ICF_N_WHYS; w++) {
		fprintf(p->f, "%s[\"%s\",", w ? "," : "", icf_why_key(w));
		icf_put_json(p->f, icf_why_text(w));
		fputc(']', p->f);
	}
	fputc(']', p->f);
}

static void put_near(struct page *p)
{
	const struct icf_audit *a = p->a;
	fprintf(p->f, ",\"n_near\":%" PRIu32 ",\"near\":[", a->n_near);
	for (size_t k = 0; k < a->near.len && k < MAX_NEAR; k++) {
		const struct icf_audit_near *n = &a->near.data[k];
		fprintf(p->f,
			"%s[%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",\"%s\",%" PRIu32 ",%" PRIu32 ",[",
			k ? "," : "", n->saving, n->count, n->size, icf_near_kind_text(n->kind),
			n->off, n->places);
		for (uint32_t i = 0; i < n->count && i < MAX_NEAR_MEMBERS; i++) {
			const struct icf_audit_near_member *m = &a->near_member.data[n->member + i],
							   *o = i ? m - 1 : m + 1;
			icf_name_contrast(icf_audit_name(a, m->unit), icf_audit_name(a, o->unit),
					  120, p->buf, sizeof p->buf);
			fputs(i ? ",[" : "[", p->f);
			icf_put_json(p->f, p->buf);
			const char *value = icf_pool_text(&a->pool, m->text);
			if (n->kind == ICF_NEAR_CALLEE ||
			    (n->kind == ICF_NEAR_ADDRESS && *value != '"')) {
				icf_name_contrast(value, icf_pool_text(&a->pool, o->text), 100,
						  p->buf, sizeof p->buf);
				value = p->buf;
			}
			fputc(',', p->f);
			icf_put_json(p->f, value);
			fputc(']', p->f);
		}
		fputs("]]", p->f);
	}
	fputc(']', p->f);
}

static void put_totals(struct page *p, int m)
{
	const struct icf_audit_totals *t = &p->a->total[m];
	fprintf(p->f,
		",\"%s\":{\"folded\":%" PRIu32 ",\"groups\":%" PRIu32 ",\"thunks\":%" PRIu32
		",\"duplicated\":%" PRIu64 ",\"thunk_bytes\":%" PRIu64 ",\"saved\":%" PRIu64 "}",
		m == ICF_AUDIT_ALL ? "all" : "safe", t->folded, t->groups, t->thunks, t->duplicated,
		t->thunk_bytes,
		p->a->in_place ? t->duplicated - t->thunk_bytes : p->a->text - t->text_after);
}

static void put_advice(struct page *p)
{
	struct icf_advice x[ICF_ADVICE];
	fputc(',', p->f);
	icf_advice_json(p->f, x, icf_audit_advise(p->a, x));
}

static struct elfrw_err *put_data(FILE *f, void *ctx)
{
	struct page *p = ctx;
	p->f = f;
	const struct icf_audit *a = p->a;
	const char *slash = strrchr(a->run.img.path, '/');
	fputs("{\"version\":\"" ICF_VERSION "\",\"file\":", p->f);
	icf_put_json(p->f, slash ? slash + 1 : a->run.img.path);
	fputs(",\"path\":", p->f);
	icf_put_json(p->f, a->run.img.path);
	fputs(",\"root\":", p->f);
	icf_put_json(p->f, a->root ? a->root : "");
	fputs(",\"filter\":", p->f);
	icf_put_json(p->f, p->opt->filter ? p->opt->filter : "");
	fprintf(p->f, ",\"mode\":\"%s\"", p->opt->mode == ICF_AUDIT_ALL ? "all" : "safe");
	fprintf(p->f, ",\"in_place\":%s,\"by_address\":%s", a->in_place ? "true" : "false",
		a->by_address ? "true" : "false");
	fprintf(p->f, ",\"writable\":%s", icf_all_writable_text(&a->run.prog) ? "true" : "false");
	fprintf(p->f, ",\"from_debug\":%" PRIu32 ",\"from_symbols\":%" PRIu32, a->from_debug,
		a->from_symbols);
	fprintf(p->f, ",\"functions\":%" PRIu32 ",\"text\":%" PRIu64 ",\"code\":%" PRIu64,
		a->functions, a->text, a->code);
	put_totals(p, ICF_AUDIT_ALL);
	put_totals(p, ICF_AUDIT_SAFE);
	put_advice(p);
	ELFRW_TRY(put_functions(p));
	put_groups(p);
	ELFRW_TRY(put_tables(p));
	ELFRW_TRY(put_unused(p));
	put_reasons(p);
	put_near(p);
	fputs(",\"strings\":[", p->f);
	for (uint32_t i = 0; i < p->string.start.len; i++) {
		if (i)
			fputc(',', p->f);
		icf_put_json(p->f, icf_pool_text(&p->string, i));
	}
	fputs("]}", p->f);
	return NULL;
}

struct elfrw_err *icf_audit_write_html(const char *path, const struct icf_audit *a,
				       const struct icf_audit_options *opt)
{
	struct page *p = calloc(1, sizeof *p);
	if (!p)
		return &elfrw_err_nomem;
	const char *name = a->run.img.path, *slash = strrchr(name, '/');
	*p = (struct page){ .a = a, .opt = opt };
	struct elfrw_err *err =
		icf_page_write(path, &(struct icf_page){ .title = slash ? slash + 1 : name,
							 .body = icf_page_body,
							 .script = icf_page_script,
							 .put_data = put_data,
							 .ctx = p });
	icf_pool_deinit(&p->string);
	struct tree *tree[] = { &p->scope, &p->source };
	for (int k = 0; k < 2; k++) {
		icf_pool_deinit(&tree[k]->path);
		VEC_FREE(&tree[k]->parent);
		VEC_FREE(&tree[k]->name);
	}
	VEC_FREE(&p->leaf);
	VEC_FREE(&p->in_scope);
	VEC_FREE(&p->in_source);
	free(p);
	return err;
}
