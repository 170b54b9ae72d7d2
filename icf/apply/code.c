/* code.c: the executable sections of the output.  Every kept unit is copied to its new place, and
 * its reference fields are set there.  The gaps are traps; the thunks stand behind the code. */
#include "elfrw/base/align.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/apply/apply.h"
#include <stdlib.h>
#include <string.h>

/* Code that registers a frame table at startup refers to it by an address inside of the section
 * (__EH_FRAME_BEGIN__).  The new address is that of the first remaining record there. */
static uint64_t new_frame(const struct icf_apply *a, uint64_t target)
{
	const struct dwr_rw_moves *m = &a->frame_moves;
	uint64_t off = target - a->frame;
	size_t lo = LOWER_BOUND(0, m->n, mid, m->move[mid].old_end <= off);
	while (lo < m->n && m->move[lo].new == DWR_RW_GONE)
		lo++;
	if (lo == m->n)
		return target;
	return a->frame_new + m->move[lo].new + (off > m->move[lo].old ? off - m->move[lo].old : 0);
}

uint64_t icf_new_target(const struct icf_apply *a, uint32_t unit, uint64_t target, bool pointer)
{
	uint64_t new;
	if (unit == ICF_NONE) {
		if (target - a->frame < a->frame_size)
			return new_frame(a, target);
		elfrw_addrmap_point(&a->plan->map, target, &new);
		return new;
	}
	const struct elfrw_addrmap_unit *m = &a->plan->map.unit[unit];
	return elfrw_addrmap_in_unit(m, target, pointer);
}

uint64_t icf_new_ref_target(const struct icf_apply *a, const struct icf_unit *u,
			    const struct icf_ref *ref)
{
	if (ref->unit == ICF_NONE && ref->target - a->frame < a->frame_size &&
	    !icf_names_record(a, u->start + ref->off))
		return ref->target;
	return icf_new_target(a, ref->unit, ref->target, ref->kind != ICF_REF_BRANCH);
}

struct job {
	struct icf_apply *a;
	uint8_t **code; /* by executable section: the new bytes */
	uint32_t per;
};

static struct elfrw_err *set_ref(const struct icf_apply *a, const struct icf_unit *u,
				 const struct icf_ref *ref, uint64_t delta, uint8_t *field)
{
	const struct elfrw_form *form = icf_ref_form(a->prog, ref);
	if ((ref->flags & ICF_REF_HALF) && elfrw_form_is_low(form))
		return NULL;
	uint64_t to = ref->flags & ICF_REF_HALF ? ref->target : icf_new_ref_target(a, u, ref);
	uint64_t place = icf_ref_place(u, ref) + delta, before = a->prog->arch->fill_size;
	if (!elfrw_form_write(form, field, place, to) &&
	    !((ref->flags & ICF_REF_RELAXED) &&
	      a->prog->arch->expand(field - before, place - before, to)))
		return elfrw_error("reference at 0x%llx to 0x%llx does not fit any more",
				   (unsigned long long)(u->start + ref->off),
				   (unsigned long long)ref->target);
	return NULL;
}

/* Do the thunks, or the trap behind them, begin in the PAD bytes from VA on? */
static bool has_thunks(const struct icf_apply *a, uint64_t va, uint64_t pad)
{
	const struct elfrw_addrmap *map = &a->plan->map;
	uint64_t end =
		a->plan->n_folded ? map->trap_byte + a->prog->arch->fill_size : map->thunks_end;
	return end > map->thunks && map->thunks - va < pad;
}

static struct elfrw_err *move_units(void *arg, size_t part)
{
	struct job *job = arg;
	const struct icf_program *prog = job->a->prog;
	const struct elfrw_addrmap *map = &job->a->plan->map;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per; i < end && i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct elfrw_addrmap_unit *m = &map->unit[i];
		if (m->flags & ELFRW_UNIT_FOLDED) {
			if (map->in_place)
				elfrw_fill(prog->arch,
					   job->code[u->sec] +
						   (m->old - map->section[u->sec].new_start),
					   m->old, u->end - u->start);
			continue;
		}
		uint8_t *to = job->code[u->sec] + (m->body - map->section[u->sec].new_start);
		memcpy(to, icf_unit_bytes(prog, u), u->end - u->start);
		/* Padding that keeps its width stays as it was, unless thunks take some of it: what
		 * is left of it then fills another gap. */
		const struct icf_exec *e = &prog->exec.data[u->sec];
		bool last = i + 1 == e->unit + e->n_units;
		uint64_t pad = (last ? e->end : u[1].start) - u->end;
		uint64_t next = last ? map->section[u->sec].new_end : map->unit[i + 1].body;
		if (!map->in_place && !(last ? 0 : m[1].flags & ELFRW_UNIT_FOLDED) &&
		    next - m->body - (u->end - u->start) == pad &&
		    !has_thunks(job->a, m->body + (u->end - u->start), pad))
			memcpy(to + (u->end - u->start),
			       icf_unit_bytes(prog, u) + (u->end - u->start), pad);
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			ELFRW_TRY(set_ref(job->a, u, &ref[r], m->body - m->old, to + ref[r].off));
	}
	return NULL;
}

static struct elfrw_err *put_thunks(struct job *job)
{
	const struct icf_program *prog = job->a->prog;
	const struct elfrw_addrmap *map = &job->a->plan->map;
	for (uint32_t i = 0; i < map->n_units; i++) {
		const struct elfrw_addrmap_unit *m = &map->unit[i];
		if (!(m->flags & ELFRW_UNIT_THUNK))
			continue;
		uint32_t e = map->in_place ? prog->unit.data[i].sec : job->a->plan->thunk_exec;
		unsigned size =
			prog->arch
				->thunk(job->code[e] + (m->entry - map->section[e].new_start),
					m->entry, m->body,
					prog->unit.data[i].flags & ICF_UNIT_ENDBR)
				.size;
		if (!size || size > m->thunk_size)
			return elfrw_error("thunk for the function at 0x%llx does not reach it",
					   (unsigned long long)m->old);
		job->a->n_thunk_bytes += m->thunk_size;
	}
	return NULL;
}

/* The end of the folded bodies that follow each other from unit I on, without thunks between. */
static uint64_t end_of_bodies(const struct icf_program *prog, const struct elfrw_addrmap *map,
			      uint32_t *i)
{
	while (*i + 1 < map->n_units && prog->unit.data[*i + 1].sec == prog->unit.data[*i].sec &&
	       (map->unit[*i + 1].flags & ELFRW_UNIT_FOLDED) && !map->unit[*i + 1].thunk_size)
		++*i;
	return map->unit[*i].old_end;
}

/* Whole pages of folded bodies, behind their thunks, become zeros, with the padding between. */
static struct elfrw_err *empty_pages(struct job *job)
{
	const struct icf_program *prog = job->a->prog;
	const struct elfrw_addrmap *map = &job->a->plan->map;
	uint64_t page = elfrw_image_page(prog->img);
	for (uint32_t i = 0; i < map->n_units; i++) {
		const struct elfrw_addrmap_unit *m = &map->unit[i];
		if (!(m->flags & ELFRW_UNIT_FOLDED))
			continue;
		uint64_t from = elfrw_align_up(m->old + m->thunk_size, page),
			 to = end_of_bodies(prog, map, &i) & ~(page - 1);
		if (to <= from)
			continue;
		struct elfrw_hole *h = VEC_PUSH(&job->a->out->hole);
		if (!h)
			return &elfrw_err_nomem;
		*h = (struct elfrw_hole){ from, to - from };
		uint32_t e = prog->unit.data[i].sec;
		memset(job->code[e] + (from - map->section[e].new_start), 0, to - from);
	}
	return NULL;
}

struct elfrw_err *icf_apply_code(struct icf_apply *a)
{
	const struct icf_program *prog = a->prog;
	const struct elfrw_addrmap *map = &a->plan->map;
	struct job job = { a, calloc(prog->exec.len, sizeof(uint8_t *)), 512 };
	if (!job.code)
		return &elfrw_err_nomem;
	struct elfrw_err *err = NULL;
	for (uint32_t e = 0; e < prog->exec.len && !err; e++) {
		uint64_t size = map->section[e].new_end - map->section[e].new_start;
		uint8_t *p = malloc(size ? size : 1);
		if (!p) {
			err = &elfrw_err_nomem;
			break;
		}
		/* In place, the bytes between units stay, too. */
		if (map->in_place)
			memcpy(p, prog->img->section[prog->exec.data[e].shndx].data, size);
		else
			elfrw_fill(prog->arch, p, map->section[e].new_start, size);
		job.code[e] = p;
		elfrw_output_replace(a->out, prog->exec.data[e].shndx, p, size);
		a->out->sec[prog->exec.data[e].shndx].addr = map->section[e].new_start;
	}
	if (!err)
		err = elfrw_parallel(a->opt->threads, (prog->unit.len + job.per - 1) / job.per,
				     move_units, &job);
	if (!err)
		err = put_thunks(&job);
	if (!err && map->in_place)
		err = empty_pages(&job);
	free(job.code);
	return err;
}
