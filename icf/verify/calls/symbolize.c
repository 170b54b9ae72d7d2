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
 * caches.  Each thread has its own handles, and takes part after part.  Cost: some microseconds for
 * each place that is asked for. */
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/sort.h"
#include "elfrw/pair.h"
#include "icf/verify/calls/calls.h"
#include "icf/verify/calls/places.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct side {
	struct dwr_sym *sym;
	struct dwr_sym_frames frames;
	struct icf_ventries ahead; /* addresses that will be asked for; ascending */
};

/* The symbolizers of one thread.  The parts that it checks come in ascending order. */
struct asker {
	struct side in, out;
	const char *same_in, *same_out;   /* two names that were compared and are equal */
	const char *alias_in, *alias_out; /* two names of one function */
};

struct part {
	struct icf_v *v;
	struct icf_vplaces *place;
	struct asker *by;
	struct icf_vlog log;
	uint32_t row_unit; /* the last unit with a row so far */
	uint64_t undecided;
	char *warning;  /* the symbolizer's of OUT by the end of this part; owned */
	bool warned_in; /* that of IN had one, too */
};

struct job {
	struct icf_v *v;
	struct part *part;
	struct asker *asker;
	const uint32_t *decided;
	bool lines; /* OUT has debug information */
	enum dwr_policy policy;
	size_t n, n_askers;
	atomic_size_t next; /* part that no asker has yet */
	const struct icf_vaside *aside;
};

static bool same_text(struct part *p, const char *a, const char *b)
{
	if (a == p->by->same_in && b == p->by->same_out)
		return true;
	if (!a || !b || strcmp(a, b) != 0)
		return a == b;
	p->by->same_in = a;
	p->by->same_out = b;
	return true;
}

/* Is NAME another name of the function that IN's frame F names? */
static bool is_alias(struct part *p, const struct dwr_sym_frame *f, const char *name)
{
	struct dwr_sym_symbol s;
	size_t from = 0;
	bool found = name && name == p->by->alias_out && f->function == p->by->alias_in;
	while (!found && name && f->has_start_address &&
	       dwr_sym_symbol_named(p->by->in.sym, name, &from, &s))
		found = s.address == f->start_address;
	if (found) {
		p->by->alias_in = f->function;
		p->by->alias_out = name;
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

/* Adds the frame's DIE to its text. */
static void show_die(const struct dwr_sym_frame *f, char *buf, size_t size)
{
	const size_t n = strlen(buf);
	if (f->die == DWR_SYM_NO_DIE)
		snprintf(buf + n, size - n, ", of no DIE");
	else
		snprintf(buf + n, size - n, ", of DIE 0x%llx", ICF_VX(f->die));
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
	const struct dwr_sym_frames *a = &p->by->in.frames, *b = &p->by->out.frames;
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
	const struct dwr_sym_frame *want = i < a->len ? &a->data[i] : NULL,
				   *have = i < b->len ? &b->data[i] : NULL;
	const char *expected = show(want, x, sizeof x), *found = show(have, y, sizeof y);
	if (want && have && strcmp(x, y) == 0) {
		show_die(want, x, sizeof x);
		show_die(have, y, sizeof y);
	}
	uint64_t old = v->claim.unit.data[u].old + off, new = v->claim.unit.data[u].body + off;
	icf_vlog_bad(&p->log, ICF_VC_SYMBOLIZE, "%s: %s (0x%llx -> 0x%llx): expected %s, found %s",
		     what, icf_v_where(&v->claim, old, name), ICF_VX(old), ICF_VX(new), expected,
		     found);
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
	ELFRW_TRY(dwr_sym_frames(p->by->in.sym, x->old, flags, &p->by->in.frames));
	if (!p->by->in.frames.len)
		return NULL;
	ELFRW_TRY(dwr_sym_frames(p->by->out.sym, x->entry, flags, &p->by->out.frames));
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
	ELFRW_TRY(dwr_sym_frames(p->by->in.sym, x->old + off, flags, &p->by->in.frames));
	if (!p->by->in.frames.len)
		return NULL;
	bool decided = !shared || (job->decided && job->decided[u] != UINT32_MAX);
	if (shared && decided)
		member = job->decided[u];
	/* Without a note there are only the names at an address. */
	if (shared && member == UINT32_MAX)
		return NULL;
	if (shared)
		ELFRW_TRY(dwr_sym_frames_for_member(p->by->out.sym, x->body + off, member, flags,
						    &p->by->out.frames));
	else
		ELFRW_TRY(dwr_sym_frames(p->by->out.sym, x->body + off, flags, &p->by->out.frames));
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
	struct icf_ventries *in = &p->by->in.ahead, *out = &p->by->out.ahead;
	if (!job->lines || job->policy != DWR_FOLDED_OVERLAY)
		return NULL;
	in->v.len = out->v.len = 0;
	for (size_t k = 0; next_question(job, p, &k, &q);) {
		const struct icf_vunit *x = &p->v->claim.unit.data[q.unit];
		uint64_t *a = VEC_PUSH(&in->v), *b = VEC_PUSH(&out->v);
		if (!a || !b)
			return &elfrw_err_nomem;
		*a = x->old + q.off;
		*b = x->body + q.off;
	}
	if (out->v.len)
		qsort(out->v.data, out->v.len, sizeof *out->v.data, elfrw_u64_order);
	dwr_sym_will_ask(p->by->in.sym, in->v.data, in->v.len);
	dwr_sym_will_ask(p->by->out.sym, out->v.data, out->v.len);
	p->row_unit = ICF_V_NONE;
	return NULL;
}

static struct elfrw_err *check_part(const struct job *job, struct part *p)
{
	struct asker *by = p->by;
	p->log.max = job->v->log.max;
	p->row_unit = ICF_V_NONE;
	ELFRW_TRY(icf_vplaces_sort(p->place));
	ELFRW_TRY(foretell(job, p));
	size_t asked = 0;
	struct question q;
	for (size_t k = 0; next_question(job, p, &k, &q);) {
		if (++asked % REMEMBERED == 0) {
			forget(&by->in);
			forget(&by->out);
		}
		ELFRW_TRY(check_place(job, p, q.unit, q.off, q.kinds));
	}
	dwr_sym_will_ask(by->in.sym, NULL, 0);
	dwr_sym_will_ask(by->out.sym, NULL, 0);
	const char *warning = dwr_sym_warning(by->out.sym);
	p->warned_in = dwr_sym_warning(by->in.sym);
	p->warning = warning ? strdup(warning) : NULL;
	return p->log.nomem || (warning && !p->warning) ? &elfrw_err_nomem : NULL;
}

/* Asker I - 1 takes part after part until there are no more. */
static struct elfrw_err *ask(void *arg, size_t i)
{
	struct job *job = arg;
	if (!i)
		return job->aside->fn(job->aside->arg);
	struct asker *by = &job->asker[i - 1];
	struct elfrw_err *err = NULL;
	for (size_t p; !err && (p = atomic_fetch_add(&job->next, 1)) < job->n;) {
		if (!by->out.sym) {
			ELFRW_TRY(open_side(&job->v->claim.in, &by->in));
			ELFRW_TRY(open_side(&job->v->claim.out, &by->out));
		}
		job->part[p].by = by;
		err = check_part(job, &job->part[p]);
	}
	close_side(&by->in);
	close_side(&by->out);
	return err;
}

/* Joins what was found in the parts.  Who checked which part is chance: so all that counts of the
 * symbolizers' warnings is the first part with one. */
static void merge(struct job *job)
{
	struct icf_v *v = job->v;
	const char *warning = NULL;
	bool warned_in = false;
	for (size_t i = 0; i < job->n && job->part; i++) {
		struct part *p = &job->part[i];
		v->places_undecided += p->undecided;
		icf_vlog_merge(&v->log, &p->log);
		warning = warning ? warning : p->warning;
		warned_in |= p->warned_in;
	}
	if (warning && !warned_in)
		icf_vlog_bad(&v->log, ICF_VC_SYMBOLIZE,
			     "debug information: expected no warning, found: %s", warning);
}

static void free_job(struct job *job)
{
	for (size_t i = 0; i < job->n && job->part; i++)
		free(job->part[i].warning);
	for (size_t i = 0; i < job->n_askers && job->asker; i++) {
		close_side(&job->asker[i].in);
		close_side(&job->asker[i].out);
	}
	free(job->part);
	free(job->asker);
}

struct elfrw_err *icf_v_check_symbolize(struct icf_v *v, struct icf_vplaces *place, size_t n,
					const uint32_t *decided, const struct icf_vaside *aside)
{
	struct job job = { .v = v,
			   .n = n,
			   .decided = decided,
			   .policy = v->claim.has_note ? v->claim.note.policy : DWR_FOLDED_OVERLAY,
			   .lines = icf_v_has_debug(&v->claim.out),
			   .aside = aside };
	/* Without debug information most of the work is to read the symbols: once, not by each
	 * thread. */
	job.n_askers = job.lines ? v->threads : 1;
	job.part = calloc(n, sizeof *job.part);
	job.asker = calloc(job.n_askers, sizeof *job.asker);
	struct elfrw_err *err =
		job.part && job.asker ? icf_vplaces_deal(v, place, n, job.lines) : &elfrw_err_nomem;
	for (size_t p = 0; p < n && job.part; p++) {
		job.part[p].v = v;
		job.part[p].place = &place[p];
	}
	if (!err)
		err = elfrw_parallel(v->threads, job.n_askers + 1, ask, &job);
	merge(&job);
	free_job(&job);
	return err;
}
