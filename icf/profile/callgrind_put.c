/* callgrind_put.c: writes callgrind.out for the other program.
 *
 * What the text says of one function is held until the next function begins, divided among the
 * functions that share the code, and written function by function.  Numbers of names are new ones;
 * positions are absolute.
 *
 * A thunk does not exist in the other program: its call is left out, and its own costs are those of
 * its function's first instruction. */
#include "elfrw/base/printable.h"
#include "icf/profile/callgrind.h"
#include <ctype.h>
#include <inttypes.h>

/* A line for the output, with a call's or jump's second one. */
struct icf_cg_out {
	uint32_t owner; /* the function: a unit; ICF_PROF_NONE: of another file */
	size_t order;
	enum icf_cg_kind kind;
	bool conditional;
	uint32_t fl, fn, file, cob, cfile, cfn;
	struct icf_cg_place at, to;
	uint64_t n, executed;
	size_t cost; /* into the costs */
	unsigned n_costs;
};

/* ---- names and lines ---- */

/* The function's name without the callers that --separate-callers adds; a level of recursion
 * stays. */
static size_t without_callers(const char *s, size_t n)
{
	const char *end = s + n, *c = s;
	while ((c = memchr(c, '\'', (size_t)(end - c)))) {
		const char *k = c + 1;
		while (k < end && isdigit((unsigned char)*k))
			k++;
		if (k == c + 1 || (k < end && *k != '\''))
			return (size_t)(c - s);
		c = k;
		if (k == end)
			break;
	}
	return n;
}

/* The number of S, which is not of the text. */
static struct elfrw_err *intern_other(struct icf_prof_callgrind *c, const char *s, uint32_t *ret)
{
	ELFRW_TRY(icf_cg_intern(c, 0, s, strlen(s), ret));
	c->name.data[*ret].other |= c->name.data[*ret].s == s;
	return NULL;
}

/* The same of S, which is handed over. */
static struct elfrw_err *intern_own(struct icf_prof_callgrind *c, char *s, uint32_t *ret)
{
	struct elfrw_err *err = s ? intern_other(c, s, ret) : &elfrw_err_nomem;
	bool taken = !err && c->name.data[*ret].s == s;
	char **slot = taken ? VEC_PUSH(&c->own) : NULL;
	if (slot)
		*slot = s;
	else if (taken) /* the number keeps S: it is never used again */
		return &elfrw_err_nomem;
	else
		free(s);
	return err;
}

/* The name of function UNIT, which the text calls RAW. */
static struct elfrw_err *name_of(struct icf_profile *p, uint32_t unit, uint32_t raw, uint32_t *ret)
{
	struct icf_prof_callgrind *c = p->callgrind;
	const struct dwr_icfold *note = p->m->note;
	const struct icf_cg_name r = c->name.data[raw];
	size_t n = without_callers(r.s, r.n);
	uint32_t m = unit == ICF_PROF_NONE ? ICF_PROF_NONE : note->unit_member[unit];
	const char *level = memrchr(r.s, '\'', n);
	size_t n_level = level ? n - (size_t)(level - r.s) : 0;
	char *s = NULL;
	if (unit != ICF_PROF_NONE && n == 18 && !memcmp(r.s, "0x", 2)) { /* without a symbol */
		const uint64_t va = strtoull(r.s, NULL, 16);
		if (asprintf(&s, "0x%016" PRIx64, icf_prof_other(p, unit, va)) < 0)
			return &elfrw_err_nomem;
		return intern_own(c, s, ret);
	}
	if (m == ICF_PROF_NONE || !note->member[m].n_names)
		return icf_cg_intern(c, 0, r.s, n, ret);
	const char *linkage = note->names[note->member[m].name];
	const char *text =
		icf_perf_spell(p->m, linkage, c->linkage ? ICF_PERF_LINKAGE : ICF_PERF_FULL);
	if (!text || asprintf(&s, "%s%.*s", text, (int)n_level, level ? level : "") < 0)
		return &elfrw_err_nomem;
	return intern_own(c, s, ret);
}

/* The file and line of address VA of the folded program in function UNIT; FILE and LINE are those
 * of the text, which are the kept function's. */
static struct elfrw_err *line_of(struct icf_profile *p, uint32_t unit, uint64_t va, uint32_t *file,
				 uint64_t *line)
{
	struct icf_prof_callgrind *c = p->callgrind;
	const struct dwr_icfold *note = p->m->note;
	uint32_t m = note->unit_member[unit];
	if (m == ICF_PROF_NONE || note->map.unit[unit].kept == unit)
		return NULL;
	uint32_t kept = note->group[note->member[m].group].member;
	const unsigned flags = DWR_SYM_NO_INLINES | DWR_SYM_NO_DECL;
	ELFRW_TRY(dwr_sym_frames_for_member(p->m->sym, va, m, flags, &c->frames));
	if (!c->frames.len || !c->frames.data[0].file)
		return NULL;
	const char *path = c->frames.data[0].file;
	*line = c->frames.data[0].line;
	ELFRW_TRY(dwr_sym_frames_for_member(p->m->sym, va, kept, flags, &c->kept_frames));
	/* Valgrind spells paths in another way: the same file keeps its name. */
	if (c->kept_frames.len && c->kept_frames.data[0].file &&
	    !strcmp(c->kept_frames.data[0].file, path))
		return NULL;
	return intern_other(c, path, file);
}

/* ---- dividing ---- */

static struct elfrw_err *add_out(struct icf_prof_callgrind *c, const struct icf_cg_out *o,
				 const uint64_t *cost)
{
	if (!elfrw_vec_grow((void **)&c->out, &c->out_cap, c->n_out + 1, sizeof *c->out))
		return &elfrw_err_nomem;
	c->out[c->n_out] = *o;
	c->out[c->n_out].order = c->n_out;
	c->out[c->n_out].cost = c->cost.len;
	c->n_out++;
	return VEC_APPEND(&c->cost, cost, o->n_costs) ? NULL : &elfrw_err_nomem;
}

/* The line of item K in function UNIT, whose names and places are found here. */
static struct elfrw_err *start_out(struct icf_profile *p, const struct icf_cg_item *k,
				   uint32_t unit, struct icf_cg_out *o)
{
	*o = (struct icf_cg_out){ .owner = unit,
				  .kind = k->kind,
				  .conditional = k->conditional,
				  .fl = k->fl,
				  .file = k->file,
				  .cob = k->cob,
				  .cfile = k->cfile,
				  .cfn = k->cfn,
				  .at = k->at,
				  .to = k->to,
				  .n = k->n,
				  .executed = k->executed,
				  .n_costs = k->n_costs };
	ELFRW_TRY(name_of(p, unit, k->fn, &o->fn));
	if (unit == ICF_PROF_NONE)
		return NULL;
	const struct elfrw_addrmap_unit *u = &p->m->note->map.unit[unit];
	uint64_t line = 0;
	o->at.addr = icf_prof_other(p, unit, k->at.addr);
	ELFRW_TRY(line_of(p, unit, u->body, &o->fl, &line));
	bool thunk = u->flags & ELFRW_UNIT_THUNK && k->at.addr - u->entry < u->thunk_size;
	return line_of(p, unit, thunk ? u->body : k->at.addr, &o->file, &o->at.line);
}

/* The target of a call or jump, in function UNIT. */
static struct elfrw_err *set_target(struct icf_profile *p, const struct icf_cg_item *k,
				    uint32_t unit, struct icf_cg_out *o)
{
	uint64_t line = 0;
	if (k->cfn)
		ELFRW_TRY(name_of(p, unit, k->cfn, &o->cfn));
	if (unit == ICF_PROF_NONE)
		return NULL;
	o->to.addr = icf_prof_other(p, unit, k->to.addr);
	ELFRW_TRY(line_of(p, unit, p->m->note->map.unit[unit].body, &o->cfile, &line));
	o->to.line = line && k->to.addr == p->m->note->map.unit[unit].body ? line : o->to.line;
	return NULL;
}

/* Makes room for N parts of the costs and of the calls of an item. */
static bool make_parts(struct icf_prof_callgrind *c, size_t n)
{
	return VEC_RESERVE(&c->part, n) && VEC_RESERVE(&c->whole, (ICF_ARC_EVENTS + 2) * n);
}

/* The costs of part I of N, as they were divided. */
static bool part_costs(const struct icf_prof_callgrind *c, const struct icf_cg_item *k, size_t i,
		       size_t n, uint64_t *cost)
{
	bool any = false;
	for (unsigned e = 0; e < k->n_costs; e++) {
		cost[e] = c->whole.data[(e + 2) * n + i];
		any |= cost[e] != 0;
	}
	return any;
}

/* Costs, or jumps, in context F. */
static struct elfrw_err *divide_costs(struct icf_profile *p, const struct icf_cg_item *k,
				      const struct icf_arc_context *f)
{
	struct icf_prof_callgrind *c = p->callgrind;
	size_t n = f->n;
	uint64_t cost[ICF_ARC_EVENTS];
	const double *calls = icf_arcs_share(&c->arcs, f, -1);
	if (!make_parts(c, n + 1))
		return &elfrw_err_nomem;
	icf_arcs_divide(k->n, calls, NULL, n, c->whole.data);
	icf_arcs_divide(k->executed, calls, NULL, n, c->whole.data + n);
	for (unsigned e = 0; e < k->n_costs; e++)
		icf_arcs_divide(k->cost[e], icf_arcs_share(&c->arcs, f, (int)e),
				c->arcs.carry.data + f->share + (e + 1) * n, n,
				c->whole.data + (e + 2) * n);
	for (uint32_t i = 0; i < n; i++) {
		struct icf_cg_out o;
		uint32_t unit = icf_arcs_unit(p, f, i);
		bool any = part_costs(c, k, i, n, cost);
		uint64_t jumps = c->whole.data[i], executed = c->whole.data[n + i];
		if (!any && !jumps && !executed)
			continue;
		ELFRW_TRY(start_out(p, k, unit, &o));
		o.n = jumps;
		o.executed = executed;
		if (k->kind == ICF_CG_JUMP) {
			const struct icf_prof_place *t;
			ELFRW_TRY(icf_prof_place(p, k->to.addr, &t));
			bool same = t->kept == f->unit || f->thunk;
			ELFRW_TRY(set_target(p, k, same ? unit : t->kept, &o));
			ELFRW_TRY(line_of(p, unit, k->to.addr, &o.cfile, &o.to.line));
		}
		ELFRW_TRY(add_out(c, &o, cost));
	}
	return NULL;
}

/* What calls are divided by: part I is of the edge E or, of a call that leaves the program, of the
 * function I. */
static void set_parts(struct icf_prof_callgrind *c, const struct icf_arc_edge *edge,
		      const struct icf_arc_context *f, size_t n, int event)
{
	const double *share = f ? icf_arcs_share(&c->arcs, f, event) : NULL;
	for (size_t i = 0; i < n; i++)
		c->part.data[i] =
			(edge ? edge[i].part : 1) * (share ? share[edge ? edge[i].i : i] : 1);
}

/* A call from context F (NULL: outside) to the program, by ARC, or to another file (NULL). */
static struct elfrw_err *divide_call(struct icf_profile *p, const struct icf_cg_item *k,
				     const struct icf_arc_context *f, const struct icf_arc *arc)
{
	struct icf_prof_callgrind *c = p->callgrind;
	const struct icf_arc_edge *edge = arc ? c->arcs.edge.data + arc->edge : NULL;
	size_t n = arc ? arc->n_edges : f ? f->n : 1;
	uint64_t cost[ICF_ARC_EVENTS];
	if (!make_parts(c, n + 1))
		return &elfrw_err_nomem;
	set_parts(c, edge, f, n, -1);
	icf_arcs_divide(k->n, c->part.data, NULL, n, c->whole.data);
	for (unsigned e = 0; e < k->n_costs; e++) {
		set_parts(c, edge, f, n, (int)e);
		icf_arcs_divide(k->cost[e], c->part.data, NULL, n, c->whole.data + (e + 2) * n);
	}
	for (size_t i = 0; i < n; i++) {
		struct icf_cg_out o;
		if (!part_costs(c, k, i, n, cost) && !c->whole.data[i])
			continue;
		uint32_t from =
			f ? icf_arcs_unit(p, f, edge ? edge[i].i : (uint32_t)i) : ICF_PROF_NONE;
		ELFRW_TRY(start_out(p, k, from, &o));
		o.n = c->whole.data[i];
		uint32_t to = ICF_PROF_NONE;
		if (arc)
			to = icf_arcs_unit(p, &c->arcs.context.data[arc->to], edge[i].k);
		ELFRW_TRY(set_target(p, k, to, &o));
		ELFRW_TRY(add_out(c, &o, cost));
	}
	return NULL;
}

/* Divides item K; *ARC counts the arcs, which come in the order in which they were found. */
static struct elfrw_err *divide(struct icf_profile *p, const struct icf_cg_item *k, size_t *arc)
{
	struct icf_prof_callgrind *c = p->callgrind;
	struct icf_arcs *a = &c->arcs;
	uint32_t from = ICF_PROF_NONE, to = ICF_PROF_NONE;
	struct icf_cg_out o;
	if (icf_cg_is_program(p, k->ob))
		ELFRW_TRY(icf_arcs_context(p, a, k->fn, k->at.addr, &from));
	const struct icf_arc_context *f = from == ICF_PROF_NONE ? NULL : &a->context.data[from];
	if (k->kind != ICF_CG_CALL) {
		if (f)
			return divide_costs(p, k, f);
		ELFRW_TRY(start_out(p, k, ICF_PROF_NONE, &o));
		if (k->kind == ICF_CG_JUMP)
			ELFRW_TRY(set_target(p, k, ICF_PROF_NONE, &o));
		return add_out(c, &o, k->cost);
	}
	if (icf_cg_is_program(p, k->cob))
		ELFRW_TRY(icf_arcs_context(p, a, k->cfn, k->to.addr, &to));
	if (to == ICF_PROF_NONE)
		return divide_call(p, k, f, NULL);
	const struct icf_arc *it = &a->arc.data[(*arc)++];
	if (f && f->thunk && p->m->note->map.unit[f->unit].kept == a->context.data[to].unit)
		return NULL;
	return divide_call(p, k, f, it);
}

/* ---- writing ---- */

static void put_name(struct icf_profile *p, const char *key, uint8_t kind, uint32_t name)
{
	struct icf_cg_name *n = &p->callgrind->name.data[name];
	FILE *out = p->in->out;
	fprintf(out, "%s=(%" PRIu32 ")", key, name);
	if (!(n->defined & 1 << kind)) {
		fputc(' ', out);
		if (n->other)
			elfrw_put_printable(out, n->s);
		else
			fwrite(n->s, 1, n->n, out);
		n->defined |= (uint8_t)(1 << kind);
	}
	fputc('\n', out);
}

static void put_place(struct icf_profile *p, const struct icf_cg_place *at)
{
	fprintf(p->in->out, "0x%" PRIx64, at->addr);
	if (p->callgrind->lines)
		fprintf(p->in->out, " %" PRIu64, at->line);
}

static void put_out(struct icf_profile *p, const struct icf_cg_out *o, uint32_t ob)
{
	struct icf_prof_callgrind *c = p->callgrind;
	FILE *out = p->in->out;
	if (o->fl != c->last_fl || o->fn != c->last_fn) {
		fputc('\n', out);
		put_name(p, "fl", ICF_CG_FL, o->fl);
		put_name(p, "fn", ICF_CG_FN, o->fn);
		c->last_fl = c->last_file = o->fl;
		c->last_fn = o->fn;
	}
	if (o->file != c->last_file) {
		put_name(p, o->file == o->fl ? "fe" : "fi", ICF_CG_FL, o->file);
		c->last_file = o->file;
	}
	bool call = o->kind == ICF_CG_CALL;
	if (call && o->cob != ob)
		put_name(p, "cob", ICF_CG_OB, o->cob);
	if (call || (o->kind == ICF_CG_JUMP && o->cfile != o->file))
		put_name(p, call ? "cfi" : "jfi", ICF_CG_FL, o->cfile);
	if (o->kind != ICF_CG_COST && o->cfn)
		put_name(p, call ? "cfn" : "jfn", ICF_CG_FN, o->cfn);
	if (o->kind != ICF_CG_COST) {
		fprintf(out, "%s=%" PRIu64,
			call             ? "calls"
			: o->conditional ? "jcnd"
					 : "jump",
			o->n);
		if (o->conditional)
			fprintf(out, "/%" PRIu64, o->executed);
		fputc(' ', out);
		put_place(p, &o->to);
		fputc('\n', out);
	}
	put_place(p, &o->at);
	fputc(' ', out);
	for (unsigned e = 0; e < o->n_costs; e++)
		fprintf(out, "%s%" PRIu64, e ? " " : "", c->cost.data[o->cost + e]);
	fputc('\n', out);
}

static int out_order(const void *a, const void *b)
{
	const struct icf_cg_out *x = a, *y = b;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Writes what was divided of a function of object OB. */
static void flush(struct icf_profile *p, uint32_t ob)
{
	struct icf_prof_callgrind *c = p->callgrind;
	if (!c->n_out)
		return;
	qsort(c->out, c->n_out, sizeof *c->out, out_order);
	if (ob != c->last_ob) {
		fputc('\n', p->in->out);
		put_name(p, "ob", ICF_CG_OB, ob);
		c->last_ob = ob;
		c->last_fn = 0;
	}
	for (size_t i = 0; i < c->n_out; i++)
		put_out(p, &c->out[i], ob);
	c->n_out = c->cost.len = 0;
}

struct elfrw_err *icf_cg_put(struct icf_profile *p)
{
	struct icf_prof_callgrind *c = p->callgrind;
	struct icf_cg_item k, last = { 0 };
	size_t arc = 0;
	bool more;
	for (;;) {
		ELFRW_TRY(icf_cg_next(c, &k, &more));
		if (!more)
			break;
		if (k.kind == ICF_CG_OTHER) {
			if (!k.n_text && c->last_ob) /* between functions */
				continue;
			flush(p, last.ob);
			fprintf(p->in->out, "%.*s\n", (int)k.n_text, k.text);
			c->last_fn = 0;
			continue;
		}
		if (k.ob != last.ob || k.fl != last.fl || k.fn != last.fn)
			flush(p, last.ob);
		last = k;
		ELFRW_TRY(divide(p, &k, &arc));
	}
	flush(p, last.ob);
	return NULL;
}
