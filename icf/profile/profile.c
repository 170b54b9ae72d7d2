/* profile.c: see profile.h.  A sample is read (text.c), located (place.c), attributed (decide.c,
 * solve.c), and written or counted. */
#include "icf/profile/arcs.h"
#include "icf/profile/stack.h"
#include "icf/profile/state.h"
#include "elfrw/image.h"
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

static void find_linkage(struct icf_profile *p)
{
	const struct elfrw_addrmap *map = &p->m->note->map;
	for (uint32_t i = 0; i < map->n_sections && p->n_plt < 4; i++) {
		const struct elfrw_addrmap_section *s = &map->section[i];
		uint32_t shndx = elfrw_image_section_at(&p->m->code, s->new_start);
		if (!shndx || strcmp(p->m->code.section[shndx].name, ".plt") != 0)
			continue;
		p->plt[p->n_plt].start = p->in->forward ? s->new_start : s->old;
		p->plt[p->n_plt++].end = p->in->forward ? s->new_end : s->old_end;
	}
}

static struct elfrw_err *prepare(struct icf_profile *p)
{
	const struct elfrw_addrmap *map;
	struct stat st;
	ELFRW_TRY(icf_perf_open(p->in->file, p->in->options, true, &p->m));
	p->have_id = stat(p->in->file, &st) == 0;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	map = &p->m->note->map;
	p->lo = p->in->forward ? map->lo : UINT64_MAX;
	p->hi = p->in->forward ? map->hi : 0;
	for (uint32_t i = 0; i < map->n_sections && !p->in->forward; i++) {
		const struct elfrw_addrmap_section *s = &map->section[i];
		p->lo = s->new_start < p->lo ? s->new_start : p->lo;
		p->hi = s->new_end > p->hi ? s->new_end : p->hi;
	}
	if (!p->in->forward && map->thunks < map->thunks_end) {
		p->lo = map->thunks < p->lo ? map->thunks : p->lo;
		p->hi = map->thunks_end > p->hi ? map->thunks_end : p->hi;
	}
	find_linkage(p);
	p->turn = calloc(p->m->note->n_groups + 1, sizeof *p->turn);
	return p->turn ? icf_prof_stack_open(p) : &elfrw_err_nomem;
}

struct elfrw_err *icf_profile_open(const struct icf_profile_in *in, struct icf_profile **ret)
{
	struct icf_profile *p = calloc(1, sizeof *p);
	*ret = NULL;
	if (!p)
		return &elfrw_err_nomem;
	p->in = in;
	p->pid = -1;
	p->count = p->weight = 1;
	struct elfrw_err *err = prepare(p);
	if (err)
		icf_profile_close(p);
	else
		*ret = p;
	return err;
}

void icf_profile_close(struct icf_profile *p)
{
	if (!p)
		return;
	icf_prof_stack_close(p);
	icf_prof_gmon_close(p->gmon);
	icf_prof_callgrind_close(p->callgrind);
	icf_perf_close(p->m);
	VEC_FREE(&p->text);
	VEC_FREE(&p->address);
	VEC_FREE(&p->branch);
	VEC_FREE(&p->frame);
	dwr_sym_frames_deinit(&p->inlined);
	VEC_FREE(&p->act);
	VEC_FREE(&p->edge);
	VEC_FREE(&p->pool);
	VEC_FREE(&p->scratch);
	VEC_FREE(&p->answer_pool);
	free(p->process);
	VEC_FREE(&p->other);
	free(p->turn);
	free(p->place);
	free(p->answer);
	free(p->ranges.slot);
	free(p->branches.slot);
	free(p->addresses.slot);
	free(p);
}

static struct elfrw_err *put_sample(struct icf_profile *p)
{
	p->counts.samples += p->count;
	p->counts.branches += p->branch.len;
	ELFRW_TRY(icf_prof_inlined(p));
	ELFRW_TRY(icf_prof_decide(p));
	switch (p->in->to) {
	case ICF_PROFILE_PERFSCRIPT: return icf_prof_put_script(p);
	case ICF_PROFILE_PROFGEN:
	case ICF_PROFILE_BOLT:
	case ICF_PROFILE_AUTOFDO: return icf_prof_count(p);
	case ICF_PROFILE_PPROF:
	case ICF_PROFILE_COLLAPSED: return icf_prof_stack_add(p);
	case ICF_PROFILE_GMON:
	case ICF_PROFILE_CALLGRIND: break; /* no text of perf is read */
	}
	return NULL;
}

struct elfrw_err *icf_prof_flush(struct icf_profile *p)
{
	struct elfrw_err *err = NULL;
	if (p->address.len && !p->skipped)
		err = put_sample(p);
	else if (!p->skipped && p->in->to == ICF_PROFILE_PERFSCRIPT)
		fwrite(p->text.data ? p->text.data : "", 1, p->text.len, p->in->out);
	if (p->address.len || p->text.len == 0 || p->chain) {
		p->count = p->weight = 1;
		p->pid = -1;
		p->n_comm = 0;
		p->skipped = p->in->event != NULL;
	}
	p->text.len = p->address.len = p->branch.len = p->frame.len = 0;
	p->chain = false;
	return err;
}

bool icf_profile_sniff(int fd, enum icf_profile_to *ret)
{
	char b[512];
	ssize_t n = pread(fd, b, sizeof b, 0);
	if (n > 4 && !memcmp(b, "gmon", 4)) {
		*ret = ICF_PROFILE_GMON;
		return true;
	}
	*ret = ICF_PROFILE_CALLGRIND;
	return n > 20 && (!memcmp(b, "# callgrind format", 18) ||
			  memmem(b, (size_t)n, "creator: callgrind", 18));
}

struct elfrw_err *icf_profile_read(struct icf_profile *p, int fd, const char *name)
{
	switch (p->in->to) {
	case ICF_PROFILE_GMON: return icf_prof_gmon_read(p, fd, name);
	case ICF_PROFILE_CALLGRIND: return icf_prof_callgrind_read(p, fd, name);
	default: return icf_prof_read_text(p, fd, name);
	}
}

static struct elfrw_err *finish_samples(struct icf_profile *p)
{
	if (!p->counts.samples && p->counts.odd)
		return elfrw_error(
			"no sample can be read: line %" PRIu64 " has branches or places "
			"in another form than that of perf script's fields ip and brstack",
			p->counts.first_odd);
	if (!p->counts.samples)
		return elfrw_error(p->in->event ? "the profile has no sample of event %s"
						: "the profile has no samples: it is not the text "
						  "of perf script",
				   p->in->event);
	switch (p->in->to) {
	case ICF_PROFILE_PROFGEN:
	case ICF_PROFILE_BOLT:
	case ICF_PROFILE_AUTOFDO: return icf_prof_put_counts(p);
	case ICF_PROFILE_PPROF:
	case ICF_PROFILE_COLLAPSED: return icf_prof_stack_put(p);
	default: return NULL;
	}
}

struct elfrw_err *icf_profile_finish(struct icf_profile *p, struct icf_profile_counts *ret)
{
	struct elfrw_err *err = p->in->to == ICF_PROFILE_GMON        ? icf_prof_gmon_put(p)
				: p->in->to == ICF_PROFILE_CALLGRIND ? icf_prof_callgrind_put(p)
								     : finish_samples(p);
	*ret = p->counts;
	return err;
}
