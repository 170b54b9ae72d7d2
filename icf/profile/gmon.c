/* gmon.c: gmon.out, gprof's profile: a histogram of PCs, and arcs (sys/gmon_out.h).
 *
 * An arc has the address that the call returns to, and one in the callee.  The C library keeps the
 * former in steps of 16 bytes, so that an arc can be of any call there.
 *
 * The histogram is divided by calls, as gprof itself divides the time of a callee. */
#include "elfrw/base/rbuf.h"
#include "icf/profile/arcs.h"
#include <inttypes.h>
#include <sys/gmon_out.h>

#define HEADER 20
#define HIST   40 /* the header of a histogram */
#define STEP   16 /* bytes of code: what an arc's first address stands for */
#define GAP    64 /* bytes without code at the start of what a counter stands for */

#define MAX_COUNTERS (1 << 26) /* that are written; of more code, each counts more bytes */
#define COUNTERS     (1 << 20) /* that are written for any program, and 16 for a byte of it */
#define MAX_OUTPUT   (1 << 26) /* bytes of histograms, and 16 times as many as were read */
#define MAX_WIDTH    (1 << 20)

/* A histogram: N counters for the addresses from LO to HI. */
struct hist {
	uint64_t lo, hi;
	uint32_t n;
	double *count;    /* owned */
	uint8_t tail[20]; /* the rest of the header: rate and dimension */
};

struct raw_arc {
	uint64_t from, self;
	uint64_t n;
};

struct icf_prof_gmon {
	struct icf_arcs arcs;
	VEC(struct hist) hist;
	VEC(struct raw_arc) arc;
	VEC(struct raw_arc) result;
	struct hist out;
	uint8_t header[HEADER];
};

void icf_prof_gmon_close(struct icf_prof_gmon *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->hist.len; i++)
		free(g->hist.data[i].count);
	free(g->out.count);
	icf_arcs_deinit(&g->arcs);
	VEC_FREE(&g->hist);
	VEC_FREE(&g->arc);
	VEC_FREE(&g->result);
	free(g);
}

/* ---- reading ---- */

static struct elfrw_err *read_hist(struct icf_prof_gmon *g, struct elfrw_rbuf *r)
{
	const uint8_t *h = elfrw_rbuf_take(r, HIST);
	uint32_t n = h ? elfrw_get32(h + 16) : 0;
	const uint8_t *count = elfrw_rbuf_take(r, 2 * (uint64_t)n);
	if (!count || !n)
		return count ? NULL : elfrw_error("a histogram does not fit into the file");
	struct hist *k = VEC_PUSH(&g->hist);
	if (!k)
		return &elfrw_err_nomem;
	*k = (struct hist){ .lo = elfrw_get64(h), .hi = elfrw_get64(h + 8), .n = n };
	memcpy(k->tail, h + 20, sizeof k->tail);
	if (k->hi <= k->lo || k->hi - k->lo < n)
		return elfrw_error("a histogram has no addresses");
	if (memcmp(k->tail, g->hist.data[0].tail, sizeof k->tail) != 0)
		return elfrw_error("histograms of different clocks");
	k->count = malloc(n * sizeof *k->count);
	for (uint32_t i = 0; i < n && k->count; i++)
		k->count[i] = elfrw_get16(count + 2 * (size_t)i);
	return k->count ? NULL : &elfrw_err_nomem;
}

static struct elfrw_err *read_arc(struct icf_prof_gmon *g, struct elfrw_rbuf *r)
{
	const uint8_t *b = elfrw_rbuf_take(r, 20);
	if (!b)
		return elfrw_error("an arc does not fit into the file");
	struct raw_arc *a = VEC_PUSH(&g->arc);
	if (!a)
		return &elfrw_err_nomem;
	*a = (struct raw_arc){ elfrw_get64(b), elfrw_get64(b + 8), elfrw_get32(b + 16) };
	return NULL;
}

static struct elfrw_err *read_records(struct icf_prof_gmon *g, struct elfrw_rbuf *r)
{
	const uint8_t *h = elfrw_rbuf_take(r, HEADER);
	if (!h || memcmp(h, GMON_MAGIC, 4) != 0)
		return elfrw_error("it is no gmon.out");
	if (elfrw_get32(h + 4) != GMON_VERSION)
		return elfrw_error("gmon.out of version %" PRIu32 "; 1 can be read",
				   elfrw_get32(h + 4));
	memcpy(g->header, h, HEADER);
	while (elfrw_rbuf_left(r)) {
		const uint8_t tag = *elfrw_rbuf_take(r, 1);
		if (tag == GMON_TAG_TIME_HIST)
			ELFRW_TRY(read_hist(g, r));
		else if (tag == GMON_TAG_CG_ARC)
			ELFRW_TRY(read_arc(g, r));
		else
			return elfrw_error("at byte %zu there is a record of kind %u, which is "
					   "neither a histogram nor an arc",
					   elfrw_rbuf_off(r) - 1, tag);
	}
	return NULL;
}

struct elfrw_err *icf_prof_gmon_read(struct icf_profile *p, int fd, const char *name)
{
	uint8_t *data;
	size_t size;
	if (!p->gmon && !(p->gmon = calloc(1, sizeof *p->gmon)))
		return &elfrw_err_nomem;
	ELFRW_TRY(icf_prof_read_all(fd, name, &data, &size));
	struct elfrw_rbuf r = elfrw_rbuf(data, size);
	struct elfrw_err *err = elfrw_err_about(name, read_records(p->gmon, &r));
	free(data);
	return err;
}

/* ---- arcs ---- */

static int arc_order(const void *a, const void *b)
{
	const struct raw_arc *x = a, *y = b;
	if (x->self != y->self)
		return x->self < y->self ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Several calls of one place become one. */
static void add_up(struct raw_arc *arc, size_t *n)
{
	size_t to = 0;
	if (*n)
		qsort(arc, *n, sizeof *arc, arc_order);
	for (size_t i = 0; i < *n; i++)
		if (to && arc_order(&arc[to - 1], &arc[i]) == 0)
			arc[to - 1].n += arc[i].n;
		else
			arc[to++] = arc[i];
	*n = to;
}

/* Does the call of mcount() itself return to VA?  The callee's address in each arc is such a
 * place. */
static bool is_mcount(const struct icf_prof_gmon *g, uint64_t va)
{
	size_t lo = 0, hi = g->arc.len;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (g->arc.data[mid].self < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < g->arc.len && g->arc.data[lo].self == va;
}

/* Calls of one body, whose context is FROM. */
struct sites {
	struct icf_arc_site site[STEP];
	uint32_t n, from;
};

/* The calls from ARC->from on, in STEP bytes, that can have led to context TO. */
static struct elfrw_err *find_sites(struct icf_profile *p, const struct raw_arc *arc, uint32_t step,
				    uint32_t to, struct sites *ret)
{
	struct icf_prof_gmon *g = p->gmon;
	uint32_t group = g->arcs.context.data[to].group, first = ICF_PROF_NONE;
	ELFRW_TRY(icf_arcs_context(p, &g->arcs, 0, arc->from, &ret->from));
	ret->n = 0;
	for (uint64_t va = arc->from; va - arc->from < step; va++) {
		const struct icf_prof_place *k;
		uint64_t returns;
		bool leads = true;
		uint32_t here;
		ELFRW_TRY(icf_prof_site(p, va, &returns, NULL));
		if (returns != va || !va || is_mcount(g, va))
			continue;
		ELFRW_TRY(icf_prof_place(p, va - 1, &k));
		if (group != ICF_PROF_NONE && k->p.unit != DWR_BRANCH_NONE)
			ELFRW_TRY(dwr_branch_leads(p->m->cc, k->p.unit, va, group, &leads));
		if (!leads)
			continue;
		ELFRW_TRY(icf_arcs_context(p, &g->arcs, 0, va - 1, &here));
		if (first == ICF_PROF_NONE)
			first = ret->from = here;
		if (here != first) { /* calls of two functions: nothing is decided */
			ret->n = 0;
			return NULL;
		}
		ret->site[ret->n++] = (struct icf_arc_site){ va, ICF_PROF_LEFT };
	}
	return NULL;
}

/* Does the C library that wrote G keep where calls come from in steps? */
static uint32_t step_of(const struct icf_prof_gmon *g)
{
	uint64_t lo = g->hist.len ? g->hist.data[0].lo : 0;
	for (size_t i = 0; i < g->arc.len; i++)
		if ((g->arc.data[i].from - lo) % STEP)
			return 1;
	return STEP;
}

static struct elfrw_err *add_arcs(struct icf_profile *p, uint32_t step)
{
	struct icf_prof_gmon *g = p->gmon;
	for (size_t i = 0; i < g->arc.len; i++) {
		const struct raw_arc *r = &g->arc.data[i];
		struct icf_arc arc = { .start = true, .n = r->n };
		struct sites sites;
		ELFRW_TRY(icf_arcs_context(p, &g->arcs, 0, r->self, &arc.to));
		if (arc.to == ICF_PROF_NONE)
			return elfrw_error("an arc leads to %" PRIx64 ", where the program has no "
					   "code: it is of another program",
					   r->self);
		ELFRW_TRY(find_sites(p, r, step, arc.to, &sites));
		arc.from = sites.from;
		ELFRW_TRY(icf_arcs_add(&g->arcs, &arc, sites.site, sites.n, NULL));
	}
	return NULL;
}

/* ---- the other program's ---- */

/* Where calls of UNIT, which return to SITE, come from, in steps that do not leave the function. */
static uint64_t from_of(const struct icf_profile *p, uint32_t unit, uint64_t site, uint32_t step)
{
	uint64_t old = p->m->note->map.unit[unit].old, va = icf_prof_other(p, unit, site);
	va -= (va - p->gmon->out.lo) % step;
	return va < old ? old : va;
}

static struct elfrw_err *put_arc(struct icf_profile *p, const struct raw_arc *raw,
				 const struct icf_arc *arc, uint32_t step)
{
	struct icf_arcs *a = &p->gmon->arcs;
	const struct icf_arc_context *to = &a->context.data[arc->to], *from = NULL;
	double *part = calloc(arc->n_edges + 1, sizeof *part);
	uint64_t *n = calloc(arc->n_edges + 1, sizeof *n);
	struct elfrw_err *err = part && n ? NULL : &elfrw_err_nomem;
	if (arc->from != ICF_PROF_NONE)
		from = &a->context.data[arc->from];
	for (size_t k = 0; k < arc->n_edges && !err; k++) {
		const struct icf_arc_edge *e = &a->edge.data[arc->edge + k];
		part[k] = e->part * (from ? icf_arcs_share(a, from, -1)[e->i] : 1);
	}
	if (!err)
		icf_arcs_divide(arc->n, part, NULL, arc->n_edges, n);
	for (size_t k = 0; k < arc->n_edges && !err; k++) {
		const struct icf_arc_edge *e = &a->edge.data[arc->edge + k];
		uint64_t site = arc->n_sites ? a->site.data[arc->site].site : raw->from;
		struct raw_arc *o = n[k] ? VEC_PUSH(&p->gmon->result) : NULL;
		if (o)
			*o = (struct raw_arc){
				from ? from_of(p, icf_arcs_unit(p, from, e->i), site, step)
				     : raw->from,
				icf_prof_other(p, icf_arcs_unit(p, to, e->k), raw->self), n[k]
			};
		else if (n[k])
			err = &elfrw_err_nomem;
	}
	free(part);
	free(n);
	return err;
}

/* ---- the histogram ---- */

/* A counter of WIDTH bytes at VA: the context of the code in it. */
static struct elfrw_err *context_of(struct icf_profile *p, uint64_t *va, uint64_t width,
				    uint32_t *ret)
{
	uint64_t start = *va;
	*ret = ICF_PROF_NONE;
	for (uint64_t i = 0; i < width && i < GAP && *ret == ICF_PROF_NONE; i++) {
		*va = start + i;
		if (*va < p->lo || *va > p->hi)
			continue;
		ELFRW_TRY(icf_arcs_context(p, &p->gmon->arcs, 0, *va, ret));
	}
	return NULL;
}

static void add_time(struct icf_profile *p, uint64_t va, uint64_t width, uint64_t n)
{
	struct hist *o = &p->gmon->out;
	if (va >= o->lo && va < o->hi)
		o->count[(va - o->lo) / width] += (double)n;
	else
		p->counts.nowhere += n;
}

/* N samples of the STEP bytes at VA. */
static struct elfrw_err *divide_time(struct icf_profile *p, uint64_t va, uint64_t step,
				     uint64_t width, uint64_t n)
{
	struct icf_arcs *a = &p->gmon->arcs;
	uint32_t at;
	ELFRW_TRY(context_of(p, &va, step, &at));
	if (at == ICF_PROF_NONE) {
		add_time(p, va, width, n);
		return NULL;
	}
	const struct icf_arc_context *c = &a->context.data[at];
	uint64_t *part = calloc(c->n + 1, sizeof *part);
	if (!part)
		return &elfrw_err_nomem;
	icf_arcs_divide(n, icf_arcs_share(a, c, -1), a->carry.data + c->share, c->n, part);
	for (uint32_t i = 0; i < c->n; i++)
		if (part[i])
			add_time(p, icf_prof_other(p, icf_arcs_unit(p, c, i), va), width, part[i]);
	free(part);
	return NULL;
}

/* The counters of the profile; DIVIDE: their time, in counters of WIDTH bytes, else their contexts
 * alone. */
static struct elfrw_err *walk_hist(struct icf_profile *p, uint64_t width, bool divide)
{
	for (size_t i = 0; i < p->gmon->hist.len; i++) {
		const struct hist *h = &p->gmon->hist.data[i];
		double step = (double)(h->hi - h->lo) / h->n;
		uint64_t wide = icf_prof_whole(step + 0.5);
		for (uint32_t k = 0; k < h->n; k++) {
			uint64_t va = h->lo + (uint64_t)(step * k), n = (uint64_t)h->count[k];
			uint32_t at;
			if (n && divide)
				ELFRW_TRY(divide_time(p, va, wide, width, n));
			else if (n)
				ELFRW_TRY(context_of(p, &va, wide, &at));
		}
	}
	return NULL;
}

/* The histogram of the other program: one counter for WIDTH bytes. */
static struct elfrw_err *open_hist(struct icf_profile *p, uint64_t *width)
{
	struct icf_prof_gmon *g = p->gmon;
	const struct elfrw_addrmap *map = &p->m->note->map;
	struct hist *o = &g->out;
	*width = 4;
	if (g->hist.len)
		*width = icf_prof_whole((double)(g->hist.data[0].hi - g->hist.data[0].lo) /
						g->hist.data[0].n +
					0.5);
	*width = *width < 2 ? 2 : *width > MAX_WIDTH ? MAX_WIDTH : *width;
	o->lo = g->hist.len && g->hist.data[0].lo < map->lo ? g->hist.data[0].lo : map->lo;
	o->lo -= o->lo % STEP;
	uint64_t most = COUNTERS + 16 * (uint64_t)p->m->code.size;
	most = most < MAX_COUNTERS ? most : MAX_COUNTERS;
	while ((map->hi - o->lo) / *width >= most)
		*width *= 2;
	o->n = (uint32_t)((map->hi - o->lo) / *width + 1);
	o->hi = o->lo + o->n * *width;
	o->count = calloc(o->n, sizeof *o->count);
	return o->count ? NULL : &elfrw_err_nomem;
}

/* ---- writing ---- */

static void put_word(FILE *out, uint64_t v, unsigned size)
{
	uint8_t b[8];
	for (unsigned i = 0; i < size; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	fwrite(b, 1, size, out);
}

/* Counters that are too large need several histograms, all of the whole program. */
static struct elfrw_err *check_hist(const struct icf_profile *p)
{
	const struct hist *o = &p->gmon->out;
	double most = 0, may = MAX_OUTPUT;
	for (size_t i = 0; i < p->gmon->hist.len; i++)
		may += 16.0 * (HIST + 2.0 * p->gmon->hist.data[i].n);
	for (uint32_t i = 0; i < o->n; i++)
		most = o->count[i] > most ? o->count[i] : most;
	if (most / UINT16_MAX * (HIST + 2.0 * o->n) <= may)
		return NULL;
	return elfrw_error("too many samples of one place: its counters would need %.0f histograms",
			   most / UINT16_MAX + 1);
}

/* Readers add up histograms of the same addresses: counters that are too large need several. */
static void put_hist(const struct icf_profile *p)
{
	struct hist *o = &p->gmon->out;
	FILE *out = p->in->out;
	for (bool more = p->gmon->hist.len > 0; more;) {
		more = false;
		fputc(GMON_TAG_TIME_HIST, out);
		put_word(out, o->lo, 8);
		put_word(out, o->hi, 8);
		put_word(out, o->n, 4);
		fwrite(p->gmon->hist.data[0].tail, 1, sizeof o->tail, out);
		for (uint32_t i = 0; i < o->n; i++) {
			double now = o->count[i] < UINT16_MAX ? o->count[i] : UINT16_MAX;
			put_word(out, (uint64_t)now, 2);
			o->count[i] -= now;
			more |= o->count[i] > 0;
		}
	}
}

static void put_arcs(const struct icf_profile *p)
{
	FILE *out = p->in->out;
	for (size_t i = 0; i < p->gmon->result.len; i++) {
		const struct raw_arc *r = &p->gmon->result.data[i];
		for (uint64_t left = r->n; left;) {
			uint64_t now = left < UINT32_MAX ? left : UINT32_MAX;
			fputc(GMON_TAG_CG_ARC, out);
			put_word(out, r->from, 8);
			put_word(out, r->self, 8);
			put_word(out, now, 4);
			left -= now;
		}
	}
}

struct elfrw_err *icf_prof_gmon_put(struct icf_profile *p)
{
	struct icf_prof_gmon *g = p->gmon;
	uint32_t step = g ? step_of(g) : 1;
	uint64_t width;
	if (!g || (!g->arc.len && !g->hist.len))
		return elfrw_error("the profile has no samples and no calls");
	add_up(g->arc.data, &g->arc.len);
	ELFRW_TRY(open_hist(p, &width));
	ELFRW_TRY(add_arcs(p, step));
	ELFRW_TRY(walk_hist(p, width, false));
	ELFRW_TRY(icf_arcs_solve(p, &g->arcs));
	for (size_t i = 0; i < g->arc.len; i++)
		ELFRW_TRY(put_arc(p, &g->arc.data[i], &g->arcs.arc.data[i], step));
	ELFRW_TRY(walk_hist(p, width, true));
	ELFRW_TRY(check_hist(p));
	add_up(g->result.data, &g->result.len);
	fwrite(g->header, 1, HEADER, p->in->out);
	put_hist(p);
	put_arcs(p);
	icf_arcs_count(p, &g->arcs);
	return NULL;
}
