/* symbolize.c: addresses of OUT through the symbolizer, as a user asks for them.
 *
 * For starts of functions, line rows and calls, the symbolizer's answers for IN
 * and for the same place in OUT must agree: function, file, line, column and discriminator.  At
 * calls, which make up stacks, all inlined frames must agree as well.  In shared code the
 * symbolizer is asked for the function that the stack decides (resolve.c).  If no stack decides,
 * the right function must be one of the candidates, and the place counts as undecided.
 *
 * In code that no other function shares, answers within a function follow from what is compared
 * elsewhere: each DIE has the image of its ranges (range.c), each row is at the image of its place
 * (lines.c), and no other DIE or row claims such code, or it would be wrong there.  The symbolizer,
 * which is the same for both files, then finds the same at the same distance from the function's
 * start.  So there only one start in four is asked for, and one place in 256 besides.
 *
 * In shared code the answers for rows and calls follow in the same way: the note has, for each
 * function, what its DIEs lost (range.c, overlay.c), and its rows are those of the kept function or
 * stand where the note says (folded.c, own_rows.c).  So there the starts are asked for, one call in
 * four, and one row in 16.  With overlapping ranges and rows (the policy `alias`) and without debug
 * information all places are asked for.
 *
 * The places are in the order of IN's code, so that both symbolizers find most data in their
 * caches.  Each thread has its own part and handles.  Cost: some microseconds for each place that
 * is asked for. */
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/sort.h"
#include "elfrw/pair.h"
#include "icf/verify/calls/calls.h"
#include <stdlib.h>
#include <string.h>

struct side {
	struct dwr_sym *sym;
	struct dwr_sym_frames frames;
	struct icf_ventries ahead; /* addresses that will be asked for; ascending */
};

struct part {
	struct icf_v *v;
	struct icf_vplaces *place;
	struct icf_vlog log;
	struct side in, out;
	const char *same_in, *same_out;   /* two names that were compared and are equal */
	const char *alias_in, *alias_out; /* two names of one function */
	uint32_t row_unit;                /* the last unit with a row so far */
	uint64_t undecided;
};

struct job {
	struct icf_v *v;
	struct part *part;
	const uint32_t *decided;
	bool lines; /* OUT has debug information */
	enum dwr_policy policy;
	size_t n;
	const struct icf_vaside *aside;
};

/* A counting sort, 16 bits at a time: there are about a million places. */
static struct elfrw_err *sort_places(struct icf_vplaces *p)
{
	size_t n = p->v.len, (*count)[1 << 16] = calloc(1, sizeof *count);
	icf_vplace *from = p->v.data, *to = malloc((n + 1) * sizeof *to), all = 0;
	struct elfrw_err *err = count && to ? NULL : &elfrw_err_nomem;
	for (size_t i = 0; i < n; i++)
		all |= from[i];
	for (unsigned shift = 0; shift < 64 && !err; shift += 16) {
		if (!(all >> shift & 0xffff))
			continue;
		memset(count, 0, sizeof *count);
		for (size_t i = 0; i < n; i++)
			(*count)[from[i] >> shift & 0xffff]++;
		for (size_t i = 0, sum = 0; i < 1 << 16; i++) {
			size_t here = (*count)[i];
			(*count)[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			to[(*count)[from[i] >> shift & 0xffff]++] = from[i];
		icf_vplace *t = from;
		from = to;
		to = t;
	}
	if (!err && from != p->v.data) {
		p->v.data = from;
		p->v.cap = n + 1;
	}
	free(to);
	free(count);
	return err;
}

static bool same_text(struct part *p, const char *a, const char *b)
{
	if (a == p->same_in && b == p->same_out)
		return true;
	if (!a || !b || strcmp(a, b) != 0)
		return a == b;
	p->same_in = a;
	p->same_out = b;
	return true;
}

/* Is NAME another name of the function that IN's frame F names? */
static bool is_alias(struct part *p, const struct dwr_sym_frame *f, const char *name)
{
	struct dwr_sym_symbol s;
	size_t from = 0;
	bool found = name && name == p->alias_out && f->function == p->alias_in;
	while (!found && name && f->has_start_address &&
	       dwr_sym_symbol_named(p->in.sym, name, &from, &s))
		found = s.address == f->start_address;
	if (found) {
		p->alias_in = f->function;
		p->alias_out = name;
	}
	return found;
}

static const char *show(const struct dwr_sym_frame *f, char *buf, size_t size)
{
	if (!f)
		return "nothing";
	snprintf(buf, size, "%.300s at %.300s:%u:%u disc %u", f->function ? f->function : "??",
		 f->file ? f->file : "??", f->line, f->column, f->discriminator);
	return buf;
}

/* How to compare a place. */
struct how {
	bool lines;  /* file, line, DIE */
	bool unsure; /* OUT may also have no line here */
	/* OUT has rows for this function alone, which lines/ compares.  If no unit of IN claims the
	 * function (constructors that GCC's sanitizers add), these rows say more than the
	 * symbolizer says of IN. */
	bool rows;
	bool name; /* the outermost function's name */
};

static bool frame_same(struct part *p, const struct dwr_sym_frame *a, const struct dwr_sym_frame *b,
		       const struct how *how, bool outermost)
{
	bool more = how->rows && !a->line && a->die == DWR_SYM_NO_DIE && b->die == DWR_SYM_NO_DIE;
	if (how->lines && !(how->unsure && !b->line) && !more &&
	    (a->line != b->line || a->column != b->column || a->discriminator != b->discriminator ||
	     a->die != b->die ||
	     (a->file != b->file && a->line &&
	      (!a->file || !b->file || strcmp(a->file, b->file) != 0))))
		return false;
	if (outermost && !how->name)
		return true;
	return same_text(p, a->function, b->function) || (outermost && is_alias(p, a, b->function));
}

/* The line comes from a row of this unit at or before the place.  Otherwise it comes from a row
 * before the unit, which need not be before the unit's copy. */
static bool compare(struct part *p, uint32_t u, uint64_t off, const char *what, struct how how)
{
	const struct icf_v *v = p->v;
	const struct dwr_sym_frames *a = &p->in.frames, *b = &p->out.frames;
	char name[200], x[800], y[800];
	p->log.checked[ICF_VC_SYMBOLIZE]++;
	const struct dwr_sym_frame *outer = &a->data[a->len - 1];
	/* A symbol outside of the unit is only the nearest one before it. */
	how.name =
		outer->function && !(outer->has_start_address &&
				     outer->start_address - v->claim.unit.data[u].old >=
					     v->claim.unit.data[u].end - v->claim.unit.data[u].old);
	size_t i = 0;
	/* IN's answer may come only from a symbol without a size somewhere before the place. */
	bool far = a->len == 1 && !how.name && !outer->line && outer->die == DWR_SYM_NO_DIE;
	bool same = how.lines ? a->len == b->len || (far && !b->len) : b->len || !how.name;
	if (how.lines && b->len)
		for (; i < a->len && same; i++)
			same = frame_same(p, &a->data[i], &b->data[i], &how, i + 1 == a->len);
	else if (same && how.name)
		same = frame_same(p, outer, &b->data[b->len - 1], &how, true);
	if (same)
		return true;
	i -= i != 0;
	uint64_t old = v->claim.unit.data[u].old + off, new = v->claim.unit.data[u].body + off;
	icf_vlog_bad(&p->log, ICF_VC_SYMBOLIZE, "%s: %s (0x%llx -> 0x%llx): expected %s, found %s",
		     what, icf_v_where(&v->claim, old, name), ICF_VX(old), ICF_VX(new),
		     show(i < a->len ? &a->data[i] : NULL, x, sizeof x),
		     show(i < b->len ? &b->data[i] : NULL, y, sizeof y));
	return false;
}

/* How to compare the places of unit U.  MEMBER: U's in the note, or UINT32_MAX. */
static struct how how_of(const struct job *job, const struct part *p, uint32_t u, uint32_t member)
{
	const struct icf_v *v = p->v;
	bool folded = v->claim.unit.data[u].flags & ICF_V_FOLDED;
	bool shared = member != UINT32_MAX || folded;
	struct how how = { .lines = job->lines, .unsure = p->row_unit != u };
	how.rows = folded && member != UINT32_MAX &&
		   v->claim.note.member[member].rows.status == DWR_NOTE_ROWS_OWN;
	if (folded && (job->policy == DWR_FOLDED_DROP || !v->claim.has_note))
		how.lines = false;
	if (shared && job->policy == DWR_FOLDED_ALIAS)
		how.unsure = true;
	return how;
}

/* What the symbolizer need not look for at a place of these kinds. */
static unsigned flags_of(const struct job *job, unsigned kinds)
{
	/* Without debug information OUT has only symbols, and says nothing of a function without
	 * one. */
	if (!job->lines)
		return DWR_SYM_NO_INLINES | DWR_SYM_NO_DECL;
	/* For rows the DIE of the frame is compared, and a DIE's names do not change.  So names are
	 * asked for only at starts and calls. */
	return kinds & 1u << ICF_VP_CALL    ? 0
	       : kinds & 1u << ICF_VP_START ? DWR_SYM_NO_INLINES
					    : DWR_SYM_NO_INLINES | DWR_SYM_NO_DECL;
}

/* The thunk of unit U is named like its function, and shows the line that it begins with. */
static struct elfrw_err *check_thunk(const struct job *job, struct part *p, uint32_t u,
				     struct how how)
{
	const struct icf_vunit *x = &p->v->claim.unit.data[u];
	/* All frames: the innermost may be an inlined copy, which the thunk has not.  An alias' DIE
	 * has the body's addresses alone. */
	unsigned flags = !job->lines || job->policy == DWR_FOLDED_ALIAS
				 ? DWR_SYM_NO_INLINES | DWR_SYM_NO_DECL
				 : 0;
	ELFRW_TRY(dwr_sym_frames(p->in.sym, x->old, flags, &p->in.frames));
	if (!p->in.frames.len)
		return NULL;
	ELFRW_TRY(dwr_sym_frames(p->out.sym, x->entry, flags, &p->out.frames));
	how.lines = false;
	compare(p, u, 0, "thunk", how);
	return NULL;
}

static struct elfrw_err *check_place(const struct job *job, struct part *p, uint32_t u,
				     uint64_t off, unsigned kinds)
{
	const struct icf_v *v = p->v;
	const struct icf_vunit *x = &v->claim.unit.data[u];
	uint32_t member = v->claim.has_note ? v->claim.note.unit_member[u] : UINT32_MAX;
	bool folded = x->flags & ICF_V_FOLDED, shared = member != UINT32_MAX || folded;
	unsigned flags = flags_of(job, kinds);
	struct how how = how_of(job, p, u, member);
	/* Where only the outermost function is compared, the innermost may be an inlined copy. */
	if (job->lines && !how.lines)
		flags = 0;
	ELFRW_TRY(dwr_sym_frames(p->in.sym, x->old + off, flags, &p->in.frames));
	if (!p->in.frames.len)
		return NULL;
	bool decided = !shared || (job->decided && job->decided[u] != UINT32_MAX);
	if (shared && decided)
		member = job->decided[u];
	/* Without a note there are only the names at an address. */
	if (shared && member == UINT32_MAX)
		return NULL;
	if (shared)
		ELFRW_TRY(dwr_sym_frames_for_member(p->out.sym, x->body + off, member, flags,
						    &p->out.frames));
	else
		ELFRW_TRY(dwr_sym_frames(p->out.sym, x->body + off, flags, &p->out.frames));
	if (compare(p, u, off,
		    kinds & 1u << ICF_VP_CALL  ? "call"
		    : kinds & 1u << ICF_VP_ROW ? "line"
					       : "start",
		    how))
		p->undecided += !decided;
	return !off && x->thunk && folded ? check_thunk(job, p, u, how) : NULL;
}

static struct elfrw_err *open_side(const struct elfrw_image *img, struct side *s)
{
	const struct elfrw_pair *pair = img->pair;
	struct dwr_sym_options opt = { .own_only = true,
				       .debug_file = pair ? pair->debug.path : NULL,
				       .mapped = pair ? &pair->program : img,
				       .debug_mapped = pair ? &pair->debug : NULL };
	const char *path = img->path;
	ELFRW_TRY(elfrw_err_about(path, dwr_sym_open(path, &opt, &s->sym)));
	dwr_sym_in_order(s->sym);
	return NULL;
}

static void close_side(struct side *s)
{
	dwr_sym_frames_deinit(&s->frames);
	VEC_FREE(&s->ahead.v);
	dwr_sym_close(s->sym);
	*s = (struct side){ 0 };
}

/* Gives back the memory of what the symbolizer read so far: later places are elsewhere. */
static void forget(const struct side *s)
{
	bool apart;
	const struct elfrw_image *img = dwr_sym_debug_image(s->sym, &apart);
	if (img)
		elfrw_image_forget(img);
}

#define REMEMBERED 8192 /* places that a thread asks for between two times of giving back */

/* Of so many places in code that nothing shares, starts of such code, calls in shared code, and
 * rows there, one is asked for. */
enum { EACH_INSIDE = 256, EACH_START = 4, EACH_CALL = 4, EACH_ROW = 16 };

/* Picks one of EACH places, whatever the parts are. */
static bool is_picked(uint32_t u, uint32_t off, unsigned each)
{
	return (((uint64_t)u << 32 | off) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % each == 0;
}

/* May the place at OFF of unit U, of these kinds, be left out?  See the first comment. */
static bool is_implied(const struct job *job, const struct part *p, uint32_t u, uint32_t off,
		       unsigned kinds)
{
	const struct icf_vclaim *c = &p->v->claim;
	const struct icf_vunit *x = &c->unit.data[u];
	bool shared = x->shared || x->thunk || (x->flags & ICF_V_FOLDED) ||
		      (c->has_note && c->note.unit_member[u] != UINT32_MAX);
	if (!job->lines || job->policy == DWR_FOLDED_ALIAS)
		return false;
	if (!shared)
		return !is_picked(u, off, off ? EACH_INSIDE : EACH_START);
	if (!off || job->policy != DWR_FOLDED_OVERLAY || !c->has_note)
		return false;
	return !is_picked(u, off, kinds & 1u << ICF_VP_CALL ? EACH_CALL : EACH_ROW);
}

/* A place that is asked for. */
struct question {
	uint32_t unit, off;
	unsigned kinds;
};

/* The next place of P's list from *K on that is asked for; false: there is none. */
static bool next_question(const struct job *job, struct part *p, size_t *k, struct question *ret)
{
	const icf_vplace *place = p->place->v.data;
	const size_t n = p->place->v.len;
	while (*k < n) {
		const icf_vplace at = place[*k];
		struct question q = { (uint32_t)(at >> 32), (uint32_t)at >> 2, 0 };
		for (; *k < n && place[*k] >> 2 == at >> 2; ++*k)
			q.kinds |= 1u << (place[*k] & 3);
		if (q.kinds & 1u << ICF_VP_ROW)
			p->row_unit = q.unit;
		*ret = q;
		if (!is_implied(job, p, q.unit, q.off, q.kinds))
			return true;
	}
	return false;
}

/* Tells the symbolizers which addresses they will be asked for: those in one function then take one
 * walk over it.  Where all places are asked for, the lists would be too long. */
static struct elfrw_err *foretell(const struct job *job, struct part *p)
{
	struct question q;
	if (!job->lines || job->policy != DWR_FOLDED_OVERLAY)
		return NULL;
	for (size_t k = 0; next_question(job, p, &k, &q);) {
		const struct icf_vunit *x = &p->v->claim.unit.data[q.unit];
		uint64_t *in = VEC_PUSH(&p->in.ahead.v), *out = VEC_PUSH(&p->out.ahead.v);
		if (!in || !out)
			return &elfrw_err_nomem;
		*in = x->old + q.off;
		*out = x->body + q.off;
	}
	if (p->out.ahead.v.len)
		qsort(p->out.ahead.v.data, p->out.ahead.v.len, sizeof *p->out.ahead.v.data,
		      elfrw_u64_order);
	dwr_sym_will_ask(p->in.sym, p->in.ahead.v.data, p->in.ahead.v.len);
	dwr_sym_will_ask(p->out.sym, p->out.ahead.v.data, p->out.ahead.v.len);
	p->row_unit = ICF_V_NONE;
	return NULL;
}

static struct elfrw_err *check_part(void *arg, size_t i)
{
	struct job *job = arg;
	if (!i)
		return job->aside->fn(job->aside->arg);
	struct part *p = &job->part[i - 1];
	struct icf_vplaces *list = p->place;
	p->log.max = job->v->log.max;
	p->row_unit = ICF_V_NONE;
	ELFRW_TRY(open_side(&p->v->claim.in, &p->in));
	ELFRW_TRY(open_side(&p->v->claim.out, &p->out));
	ELFRW_TRY(sort_places(list));
	ELFRW_TRY(foretell(job, p));
	size_t asked = 0;
	struct question q;
	for (size_t k = 0; next_question(job, p, &k, &q);) {
		if (++asked % REMEMBERED == 0) {
			forget(&p->in);
			forget(&p->out);
		}
		ELFRW_TRY(check_place(job, p, q.unit, q.off, q.kinds));
	}
	const char *warning = dwr_sym_warning(p->out.sym);
	if (warning && !dwr_sym_warning(p->in.sym))
		icf_vlog_bad(&p->log, ICF_VC_SYMBOLIZE,
			     "debug information: expected no warning, found: %s", warning);
	close_side(&p->in);
	close_side(&p->out);
	return p->log.nomem ? &elfrw_err_nomem : NULL;
}

/* Gives the starts of all units, and all calls, to the part that has the unit's rows. */
static struct elfrw_err *deal(struct icf_v *v, struct icf_vplaces *part, size_t n, bool calls)
{
	uint8_t *owner = malloc(v->claim.unit.len + 1);
	struct elfrw_err *err = owner ? NULL : &elfrw_err_nomem;
	for (size_t u = 0; !err && u < v->claim.unit.len; u++)
		owner[u] = (uint8_t)(u * n / v->claim.unit.len);
	for (size_t p = n; p-- > 0 && !err;)
		for (size_t i = 0; i < part[p].v.len; i++)
			owner[part[p].v.data[i] >> 32] = (uint8_t)p;
	/* Several tables may describe one unit. */
	for (size_t p = 0; p < n && !err; p++) {
		size_t kept = 0;
		for (size_t i = 0; i < part[p].v.len && !err; i++) {
			icf_vplace x = part[p].v.data[i];
			icf_vplace *slot = owner[x >> 32] == p ? &part[p].v.data[kept++]
							       : VEC_PUSH(&part[owner[x >> 32]].v);
			if (slot)
				*slot = x;
			else
				err = &elfrw_err_nomem;
		}
		part[p].v.len = kept;
	}
	for (uint32_t u = 0; !err && u < v->claim.unit.len; u++)
		if (!icf_vplace_add(&part[owner[u]], u, 0, ICF_VP_START))
			err = &elfrw_err_nomem;
	for (size_t i = 0; !err && calls && i < v->site.v.len; i++) {
		icf_vplace *slot = VEC_PUSH(&part[owner[v->site.v.data[i] >> 32]].v);
		if (slot)
			*slot = v->site.v.data[i];
		else
			err = &elfrw_err_nomem;
	}
	VEC_FREE(&v->site.v);
	free(owner);
	return err;
}

/* Joins the N parts to WANTED ones.  Neighbours are joined, since a symbolizer caches what is
 * near. */
static struct elfrw_err *join(struct icf_vplaces *part, size_t *n, size_t wanted)
{
	size_t old = *n, new = wanted < old ? wanted : old;
	for (size_t i = 0; i < old; i++) {
		struct icf_vplaces *to = &part[i * new / old], *from = &part[i];
		if (to == from || !from->v.len)
			continue;
		if (!VEC_RESERVE(&to->v, to->v.len + from->v.len))
			return &elfrw_err_nomem;
		memcpy(to->v.data + to->v.len, from->v.data, from->v.len * sizeof *from->v.data);
		to->v.len += from->v.len;
		VEC_FREE(&from->v);
	}
	*n = new;
	return NULL;
}

struct elfrw_err *icf_v_check_symbolize(struct icf_v *v, struct icf_vplaces *place, size_t n,
					const uint32_t *decided, const struct icf_vaside *aside)
{
	struct job job = { .v = v,
			   .decided = decided,
			   .policy = v->claim.has_note ? v->claim.note.policy : DWR_FOLDED_OVERLAY,
			   .lines = icf_v_has_debug(&v->claim.out),
			   .aside = aside };
	/* Without debug information most of the work is to read the symbols: once, not by each
	 * thread. */
	ELFRW_TRY(join(place, &n, job.lines ? v->threads : 1));
	job.n = n;
	job.part = calloc(n, sizeof *job.part);
	struct elfrw_err *err = job.part ? deal(v, place, n, job.lines) : &elfrw_err_nomem;
	for (size_t p = 0; p < n && job.part; p++) {
		job.part[p].v = v;
		job.part[p].place = &place[p];
	}
	if (!err)
		err = elfrw_parallel(v->threads, n + 1, check_part, &job);
	for (size_t p = 0; p < n && job.part; p++) {
		struct part *x = &job.part[p];
		v->places_undecided += x->undecided;
		icf_vlog_merge(&v->log, &x->log);
		close_side(&x->in);
		close_side(&x->out);
	}
	free(job.part);
	return err;
}
