/* debug.c: the debug information of both files, unit by unit.
 *
 * libdw is not made for several threads, so each part of the units has its own handles.  The parts
 * are runs of units of about the same size.  Their results are joined in order, so the result does
 * not depend on their number.  There are more parts than threads: libdw's memory for a part is
 * freed before the next part begins. */
#include "elfrw/base/parallel.h"
#include "icf/verify/calls/calls.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/overlay.h"
#include "icf/verify/debug/seen.h"
#include "icf/verify/debug/set.h"
#include "icf/verify/die/skip.h"
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/names.h"
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARTS        32
#define PARTS_PER_THREAD 8

struct job {
	struct icf_v *v;
	struct elfrw_err *(*other)(struct icf_v *v); /* icf_v_check_debug()'s */
	struct icf_vdwarf *in, *out;                 /* of the whole files */
	uint32_t *decided;                           /* icf_v_resolve_calls(); owned */
	struct icf_vdebug *part;
	struct icf_vlog *log;
	uint64_t *first; /* by part: offset of its first unit, counted through .debug_info and
			    .debug_types */
	size_t n;
};

/* A position that orders the units of both sections. */
static uint64_t position(Dwarf_Die *die, Dwarf_CU *cu, bool types)
{
	(void)cu;
	return (uint64_t)dwarf_dieoffset(die) | (types ? UINT64_C(1) << 63 : 0);
}

struct walk {
	Dwarf *dw;
	Dwarf_CU *cu;
	Dwarf_Die die;
	uint64_t last;
	uint8_t type;
	bool types, more;
};

static void next(struct walk *w)
{
	Dwarf_Half version;
	w->more = dwarf_get_units(w->dw, w->cu, &w->cu, &version, &w->type, &w->die, NULL) == 0;
	if (!w->more)
		return;
	/* DWARF 4 has its type units in .debug_types, which comes behind .debug_info (DWARF 4,
	 * section 3.1.3). */
	w->types = version < 5 && w->type == DW_UT_type;
	w->last = (uint64_t)dwarf_dieoffset(&w->die);
}

static bool is_artificial(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	return name && strcmp(name, ICF_VD_ARTIFICIAL) == 0;
}

/* The artificial unit may not claim an address of the program. */
static struct elfrw_err *check_artificial(struct icf_vdebug *d, Dwarf_Die *die)
{
	struct icf_vset want = { 0 }, have = { 0 };
	Dwarf_Addr base, lo, hi;
	char buf[200];
	uint64_t trap = d->v->claim.has_note ? d->v->claim.note.map.trap_byte : 0;
	for (ptrdiff_t off = 0; (off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0;) {
		icf_vset_add(&have, d, lo, hi);
		if (d->v->claim.has_note && (lo != trap || hi != trap + 1))
			icf_vlog_bad(
				d->log, ICF_VC_DIE_RANGE,
				"ranges: artificial unit: expected the trap byte 0x%llx, found 0x%llx to 0x%llx",
				ICF_VX(trap), ICF_VX(lo), ICF_VX(hi));
	}
	const char *why = icf_vset_differ(&want, &have, d, false, buf, sizeof buf);
	d->log->checked[ICF_VC_DIE_RANGE]++;
	d->n_artificial++;
	if (why)
		icf_vlog_bad(d->log, ICF_VC_DIE_RANGE, "ranges: artificial unit: %s", why);
	icf_vset_free(&want);
	icf_vset_free(&have);
	if (d->v->claim.has_note && d->v->claim.note.artificial_unit != UINT64_MAX) {
		Dwarf_Off unit = (Dwarf_Off)dwarf_dieoffset(die) - dwarf_cuoffset(die);
		if (unit != d->v->claim.note.artificial_unit)
			icf_vlog_bad(d->log, ICF_VC_NOTE,
				     "artificial unit: expected at 0x%llx, found at 0x%llx",
				     ICF_VX(d->v->claim.note.artificial_unit), ICF_VX(unit));
	}
	/* The unit may be there for other things than line rows. */
	Dwarf_Attribute attr;
	return dwarf_attr(die, DW_AT_stmt_list, &attr) ? icf_vd_artificial_lines(d, die) : NULL;
}

static struct elfrw_err *check_units(const struct job *job, size_t p)
{
	struct icf_vdebug *d = &job->part[p];
	uint64_t from = job->first[p], to = p + 1 < job->n ? job->first[p + 1] : UINT64_MAX;
	ELFRW_TRY(icf_vdwarf_open(d->v, &d->v->claim.in, &d->in));
	ELFRW_TRY(icf_vdwarf_open(d->v, &d->v->claim.out, &d->out));
	if (!d->in.dw || !d->out.dw)
		return elfrw_error("%s: cannot read the debug information: %s", d->v->claim.in.path,
				   dwarf_errmsg(-1));
	struct walk a = { .dw = d->in.dw }, b = { .dw = d->out.dw };
	next(&a);
	next(&b);
	while (a.more || b.more) {
		/* Only OUT may have additional units. */
		bool same = a.more && b.more &&
			    dwarf_dieoffset(&a.die) == dwarf_dieoffset(&b.die) &&
			    a.types == b.types;
		uint64_t at = a.more && (same || !b.more || !is_artificial(&b.die))
				      ? position(&a.die, a.cu, a.types)
				      : position(&b.die, b.cu, b.types);
		bool mine = at >= from && at < to;
		if (!same && b.more && is_artificial(&b.die)) {
			if (mine)
				ELFRW_TRY(check_artificial(d, &b.die));
			next(&b);
			continue;
		}
		if (!same || a.type != b.type) {
			if (mine)
				icf_vlog_bad(d->log, ICF_VC_DIE,
					     "unit: expected at 0x%llx, found at 0x%llx",
					     ICF_VX(a.more ? dwarf_dieoffset(&a.die) : 0),
					     ICF_VX(b.more ? dwarf_dieoffset(&b.die) : 0));
			return NULL;
		}
		if (mine) {
			ELFRW_TRY(icf_vd_tree(d, &a.die, &b.die));
			if (!is_artificial(&a.die))
				ELFRW_TRY(icf_vd_lines(d, &a.die, &b.die));
		}
		next(&a);
		next(&b);
	}
	return NULL;
}

/* Checks the call tables, with the handles of the whole files, which no part uses. */
static struct elfrw_err *check_calls(struct job *job)
{
	ELFRW_TRY(icf_v_check_calls(job->v, job->in, job->out));
	return icf_v_resolve_calls(job->v, &job->decided);
}

/* Checks what needs nothing of the parts.  Nothing else writes to the common log meanwhile. */
static struct elfrw_err *check_beside(struct job *job)
{
	int was = errno; /* errno of earlier steps, if this is the caller's thread */
	errno = 0;
	struct elfrw_err *err = job->other(job->v);
	if (!err)
		err = icf_v_unless_nomem(job->v, &job->v->log, check_calls(job));
	if (errno != ENOMEM)
		errno = was;
	return err;
}

static struct elfrw_err *check_part(void *arg, size_t i)
{
	if (!i)
		return check_beside(arg);
	/* The last part has the unit that was added, whose lines take long: it comes first. */
	const size_t p = ((const struct job *)arg)->n - i;
	int was = errno;
	errno = 0;
	struct icf_vdebug *d = &((const struct job *)arg)->part[p];
	d->in.file.fd = d->out.file.fd = -1;
	struct elfrw_err *err = icf_v_unless_nomem(d->v, d->log, check_units(arg, p));
	icf_vskip_deinit(d);
	icf_vd_lines_deinit(d);
	icf_vd_loclist_deinit(d);
	icf_vd_ranges_deinit(d);
	icf_vseen_deinit(d);
	icf_vdwarf_close(&d->in);
	icf_vdwarf_close(&d->out);
	if (errno != ENOMEM)
		errno = was;
	return err;
}

/* Cuts the units of IN into JOB->n parts of about the same size. */
static void cut_units(struct icf_vdwarf *in, struct job *job)
{
	struct walk w = { .dw = in->dw };
	uint64_t total = 0, done = 0, prev = 0;
	for (next(&w); w.more; next(&w))
		if (!w.types)
			total = w.last;
	size_t p = 1;
	w = (struct walk){ .dw = in->dw };
	job->first[0] = 0;
	for (next(&w); w.more && p < job->n; next(&w)) {
		if (!w.types)
			done = w.last;
		if (prev && done >= total / job->n * p)
			job->first[p++] = position(&w.die, w.cu, w.types);
		prev = 1;
	}
	job->n = p;
}

static void free_parts(struct job *job, size_t n)
{
	for (size_t p = 0; p < n && job->part; p++) {
		VEC_FREE(&job->part[p].owner);
		VEC_FREE(&job->part[p].bases[0].v);
		VEC_FREE(&job->part[p].bases[1].v);
		VEC_FREE(&job->part[p].group.v);
		VEC_FREE(&job->part[p].artificial.v);
		icf_vnames_destroy(job->part[p].names);
	}
	free(job->part);
	free(job->log);
	free(job->first);
}

/* Makes JOB->n parts, each with a log of its own; ALL says what they have in common. */
static struct elfrw_err *make_parts(struct job *job, const struct icf_vdebug *all)
{
	job->part = calloc(job->n, sizeof *job->part);
	job->log = calloc(job->n, sizeof *job->log);
	job->first = calloc(job->n, sizeof *job->first);
	if (!job->part || !job->log || !job->first)
		return &elfrw_err_nomem;
	for (size_t p = 0; p < job->n; p++) {
		job->log[p].max = all->log->max;
		job->part[p] = (struct icf_vdebug){ .v = all->v,
						    .log = &job->log[p],
						    .policy = all->policy,
						    .overlay = all->overlay,
						    .n_overlay = all->n_overlay,
						    .in.file.fd = -1,
						    .out.file.fd = -1,
						    .names = icf_vnames_create() };
		if (!job->part[p].names)
			return &elfrw_err_nomem;
	}
	return NULL;
}

/* The rows that the N parts at D kept, for ALL.  Mostly one part has the artificial unit. */
static struct elfrw_err *gather_rows(struct icf_vdebug *all, struct icf_vdebug *d, size_t n)
{
	const struct icf_vrows **group = malloc((n + 1) * sizeof *group);
	struct elfrw_err *err = group ? NULL : &elfrw_err_nomem;
	for (size_t p = 0; p < n && !err; p++) {
		group[p] = &d[p].group;
		if (!icf_vrows_join(&all->artificial, &d[p].artificial))
			err = &elfrw_err_nomem;
	}
	if (!err)
		err = icf_vrows_gather(&all->by_unit, group, n, all->v->claim.unit.len);
	free(group);
	return err;
}

/* The results of the N parts at D, which stay, for ALL. */
static struct elfrw_err *gather(struct icf_vdebug *all, struct icf_vdebug *d, size_t n)
{
	for (size_t p = 0; p < n; p++) {
		all->overlay_seen += d[p].overlay_seen;
		all->n_artificial += d[p].n_artificial;
		if (!VEC_APPEND(&all->owner, d[p].owner.data, d[p].owner.len))
			return &elfrw_err_nomem;
	}
	return gather_rows(all, d, n);
}

/* Checks that need the results of all parts. */
static struct elfrw_err *check_whole(struct icf_vdebug *all, struct job *job)
{
	struct icf_v *v = all->v;
	ELFRW_TRY(gather(all, job->part, job->n));
	if (v->claim.has_note &&
	    (v->claim.note.artificial_unit != UINT64_MAX) != (all->n_artificial != 0))
		icf_vlog_bad(&v->log, ICF_VC_NOTE, "artificial unit: expected %s, found %u",
			     v->claim.note.artificial_unit != UINT64_MAX ? "one" : "none",
			     all->n_artificial);
	if (all->overlay_seen != all->n_overlay)
		icf_vlog_bad(
			&v->log, ICF_VC_OVERLAY,
			"overlay: expected ranges of DIEs that lost them, found %llu of others",
			ICF_VX(all->n_overlay - all->overlay_seen));
	if (v->claim.has_note)
		ELFRW_TRY(icf_voverlay_owners(v, all->owner.data, all->owner.len, all->overlay,
					      all->n_overlay));
	ELFRW_TRY(icf_vd_artificial_unit(all));
	ELFRW_TRY(icf_vd_folded_lines(all));
	return icf_vd_tables(all);
}

/* The comparison of the debug information of both files. */
struct comparison {
	struct icf_v *v;
	struct icf_vdwarf in, out;
	struct job job;
	struct icf_vdebug all; /* the results of all parts */
	struct icf_voverlay *overlay;
	size_t n_parts;
	bool done; /* the parts are compared */
};

static struct elfrw_err *run_parts(struct comparison *c, struct icf_vplaces *place)
{
	struct icf_v *v = c->v;
	struct job *job = &c->job;
	struct icf_vdebug *all = &c->all;
	*all = (struct icf_vdebug){ .v = v,
				    .log = &v->log,
				    .policy = v->claim.has_note ? v->claim.note.policy
								: DWR_FOLDED_OVERLAY,
				    .in = c->in,
				    .out = c->out };
	job->n = c->n_parts;
	ELFRW_TRY(icf_voverlay_read(v, &c->overlay, &all->n_overlay));
	all->overlay = c->overlay;
	ELFRW_TRY(make_parts(job, all));
	all->names = job->part[0].names;
	cut_units(&c->in, job);
	struct elfrw_err *err = elfrw_parallel(v->threads, job->n + 1, check_part, job);
	for (size_t p = 0; p < job->n; p++) {
		place[p] = job->part[p].place;
		icf_vlog_merge(&v->log, &job->log[p]);
	}
	c->done = !err;
	return err;
}

/* What is left to do beside the symbolizer. */
static struct elfrw_err *finish(void *arg)
{
	struct comparison *c = arg;
	int was = errno;
	errno = 0;
	struct elfrw_err *err = icf_v_unless_nomem(c->v, &c->v->log,
						   c->done ? check_whole(&c->all, &c->job) : NULL);
	if (errno != ENOMEM)
		errno = was;
	return err;
}

static void free_comparison(struct comparison *c)
{
	VEC_FREE(&c->all.owner);
	VEC_FREE(&c->all.by_unit.v);
	VEC_FREE(&c->all.artificial.v);
	free_parts(&c->job, c->n_parts);
	free(c->job.decided);
	free(c->overlay);
	icf_vdwarf_close(&c->in);
	icf_vdwarf_close(&c->out);
}

static struct elfrw_err *open_side(void *arg, size_t i)
{
	struct comparison *c = arg;
	return icf_vdwarf_open(c->v, i ? &c->v->claim.out : &c->v->claim.in, i ? &c->out : &c->in);
}

/* Reports sections of debug information that OUT lacks; true: there is debug information to be
 * compared.  All or nothing: it may be stripped as a whole. */
static bool check_sections(struct icf_v *v)
{
	bool any = false;
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++)
		any |= v->claim.to_out[i] &&
		       (strcmp(v->claim.in.section[i].name, ".debug_info") == 0 ||
			strcmp(v->claim.in.section[i].name, ".zdebug_info") == 0);
	for (uint32_t i = 1; i < v->claim.in.n_sections && any; i++) {
		v->log.checked[ICF_VC_SECTION] += icf_v_is_debug_name(v->claim.in.section[i].name);
		if (icf_v_is_debug_name(v->claim.in.section[i].name) && !v->claim.to_out[i])
			icf_vlog_bad(&v->log, ICF_VC_SECTION,
				     "section: %s: expected in the output, found nothing",
				     v->claim.in.section[i].name);
	}
	for (uint32_t i = 1; i < v->claim.in.n_sections && !any && icf_v_has_debug(&v->claim.in);
	     i++)
		if (icf_v_is_debug_name(v->claim.in.section[i].name) && v->claim.to_out[i])
			icf_vlog_bad(&v->log, ICF_VC_SECTION,
				     "section: %s: expected nothing without .debug_info, found it",
				     v->claim.in.section[i].name);
	return any;
}

/* Opens both files and compares their units. */
static struct elfrw_err *compare_units(struct comparison *c, struct icf_vplaces *place)
{
	struct icf_v *v = c->v;
	const bool any = check_sections(v);
	elf_version(EV_CURRENT);
	ELFRW_TRY(elfrw_parallel(v->threads, 2, open_side, c));
	if (any) {
		ELFRW_TRY(icf_vd_bound(&c->in, &v->claim.in));
		ELFRW_TRY(icf_vd_bound(&c->out, &v->claim.out));
	}
	if (any && !c->in.dw)
		return elfrw_error("%s: libdw cannot read its debug information: %s",
				   v->claim.in.path, c->in.why ? c->in.why : dwarf_errmsg(-1));
	if (any && c->out.dw)
		return run_parts(c, place);
	if (any)
		icf_vlog_bad(&v->log, ICF_VC_DIE,
			     "debug information: expected some that libdw reads, found: %s",
			     c->out.why ? c->out.why : dwarf_errmsg(-1));
	else if (v->claim.has_note && v->claim.note.artificial_unit != UINT64_MAX)
		icf_vlog_bad(
			&v->log, ICF_VC_NOTE,
			"artificial unit: expected none without debug information, found 0x%llx",
			ICF_VX(v->claim.note.artificial_unit));
	return check_beside(&c->job);
}

static void forget_section(const struct icf_v *v, const char *name)
{
	elfrw_image_forget_section(&v->claim.in, name);
	elfrw_image_forget_section(&v->claim.out, name);
}

struct elfrw_err *icf_v_check_debug(struct icf_v *v, struct elfrw_err *(*other)(struct icf_v *v))
{
	struct icf_vplaces place[MAX_PARTS] = { 0 };
	struct comparison c = { .v = v, .in.file.fd = -1, .out.file.fd = -1 };
	c.n_parts = v->threads < MAX_PARTS / PARTS_PER_THREAD ? v->threads * PARTS_PER_THREAD
							      : MAX_PARTS;
	c.job = (struct job){ .v = v, .other = other, .in = &c.in, .out = &c.out };
	struct elfrw_err *err = compare_units(&c, place);
	/* No symbolizer reads the places of variables. */
	forget_section(v, ".debug_loclists");
	forget_section(v, ".debug_loc");
	if (!err)
		err = icf_v_check_symbolize(v, place, c.n_parts, c.job.decided,
					    &(struct icf_vaside){ finish, &c });
	free_comparison(&c);
	for (size_t p = 0; p < c.n_parts; p++)
		VEC_FREE(&place[p].v);
	return err;
}
