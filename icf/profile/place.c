/* place.c: where the addresses of a profile are in the program, and what the code is there.
 *
 * An address in the text is as in the process.  The difference to the address as linked is known
 * from mappings (perf script --show-mmap-events), or from frames that name their function
 * (perf_address.h).  Without either, addresses are taken as linked.  A process without a mapping of
 * the program may have it from its parent, unless another file is mapped where the program would
 * be.  Such a mapping also ends one of the program: the process executes another one.
 *
 * What the code says of an address is cached: a profile repeats few addresses very often. */
#include "dwarf/return_address.h"
#include "dwarf/stack/callchain.h"
#include "elfrw/image.h"
#include "icf/profile/state.h"
#include <sys/stat.h>

#define PLACES    (1 << 18) /* slots; at most half are used */
#define PROCESSES (1 << 18)
#define OTHERS    (1 << 20) /* mappings of other files, of all processes */
#define MAX_LOOK  4096      /* of one process */

/* ---- the code ---- */

static size_t place_slot(uint64_t va)
{
	return (va * 0x9e3779b97f4a7c15) >> 46 & (PLACES - 1);
}

static struct elfrw_err *find_place(struct icf_profile *p, uint64_t va, struct icf_prof_place **ret)
{
	if (!p->place && !(p->place = calloc(PLACES, sizeof *p->place)))
		return &elfrw_err_nomem;
	if (p->n_places >= PLACES / 2) {
		memset(p->place, 0, PLACES * sizeof *p->place);
		p->n_places = 0;
	}
	size_t i = place_slot(va);
	while (p->place[i].used && p->place[i].va != va)
		i = (i + 1) & (PLACES - 1);
	struct icf_prof_place *k = &p->place[i];
	*ret = k;
	if (k->used)
		return NULL;
	p->n_places++;
	*k = (struct icf_prof_place){
		.va = va, .used = true, .kept = ICF_PROF_NONE, .p = dwr_branch_place(p->m->cc, va)
	};
	if (k->p.unit != DWR_BRANCH_NONE)
		k->kept = p->m->note->map.unit[k->p.unit].kept;
	return NULL;
}

struct elfrw_err *icf_prof_place(struct icf_profile *p, uint64_t va,
				 const struct icf_prof_place **ret)
{
	struct icf_prof_place *k = NULL;
	struct elfrw_err *err = find_place(p, va, &k);
	*ret = k;
	return err;
}

struct elfrw_err *icf_prof_site(struct icf_profile *p, uint64_t va, uint64_t *ret, bool *again)
{
	struct icf_prof_place *k;
	bool after = false;
	ELFRW_TRY(find_place(p, va, &k));
	if (!k->site_known) {
		/* perf shows return addresses; of stacks that it unwound, those minus one. */
		ELFRW_TRY(dwr_callchain_is_return(p->m->cc, va, &after, &k->again));
		k->site = after ? va : 0;
		if (!after)
			ELFRW_TRY(dwr_callchain_is_return(p->m->cc, va + 1, &after, &k->again));
		if (after && !k->site)
			k->site = va + 1;
		k->site_known = true;
	}
	*ret = k->site;
	if (again)
		*again = k->again;
	return NULL;
}

uint64_t icf_prof_other(const struct icf_profile *p, uint32_t unit, uint64_t va)
{
	const struct elfrw_addrmap_unit *u = &p->m->note->map.unit[unit];
	if (u->flags & ELFRW_UNIT_THUNK && va - u->entry < u->thunk_size)
		return u->old;
	return u->old + (va - u->body);
}

/* ---- the process ---- */

static void remember(struct icf_profile *p, uint64_t shift)
{
	unsigned i = 0, most = sizeof p->recent / sizeof *p->recent;
	while (i < p->n_recent && p->recent[i] != shift)
		i++;
	if (i == p->n_recent && p->n_recent < most)
		p->n_recent++;
	if (i == most)
		i--;
	memmove(p->recent + 1, p->recent, i * sizeof *p->recent);
	p->recent[0] = shift;
}

static struct icf_prof_process *process_slot(const struct icf_profile *p, int64_t pid)
{
	size_t i = ((uint64_t)pid * 0x9e3779b97f4a7c15) >> 40 & (PROCESSES - 1);
	while (p->process[i].used && p->process[i].pid != pid)
		i = (i + 1) & (PROCESSES - 1);
	return &p->process[i];
}

static struct elfrw_err *process_of(struct icf_profile *p, int64_t pid,
				    struct icf_prof_process **ret)
{
	if (!p->process && !(p->process = calloc(PROCESSES, sizeof *p->process)))
		return &elfrw_err_nomem;
	if (p->n_processes >= PROCESSES / 2) {
		memset(p->process, 0, PROCESSES * sizeof *p->process);
		p->n_processes = p->other.len = 0;
	}
	*ret = process_slot(p, pid);
	if (!(*ret)->used)
		**ret = (struct icf_prof_process){ .pid = pid, .other = ICF_PROF_NONE };
	p->n_processes += !(*ret)->used;
	(*ret)->used = true;
	return NULL;
}

static struct elfrw_err *learn(struct icf_profile *p, int64_t pid, uint64_t shift)
{
	struct icf_prof_process *k;
	ELFRW_TRY(process_of(p, pid, &k));
	k->shift = shift;
	k->mapped = true;
	k->ended = false;
	remember(p, shift);
	return NULL;
}

/* Is a part of the program's code where O is, if it is SHIFT away from where it was linked? */
static bool is_there(const struct icf_profile *p, const struct icf_prof_other *o, uint64_t shift)
{
	return o->start < p->hi + shift && o->end > p->lo + shift;
}

static void forget_others(struct icf_profile *p)
{
	for (size_t i = 0; i < PROCESSES; i++)
		p->process[i].other = ICF_PROF_NONE;
	p->other.len = 0;
}

struct elfrw_err *icf_prof_other_mapped(struct icf_profile *p, const struct icf_perf_mapping *m)
{
	struct icf_prof_process *k;
	ELFRW_TRY(process_of(p, m->pid, &k));
	if (p->other.len >= OTHERS)
		forget_others(p);
	struct icf_prof_other *o = VEC_PUSH(&p->other);
	if (!o)
		return &elfrw_err_nomem;
	*o = (struct icf_prof_other){ m->start, m->start + m->size, k->other };
	k->other = (uint32_t)(p->other.len - 1);
	if (k->mapped && is_there(p, o, k->shift)) {
		k->mapped = false;
		k->ended = true;
	}
	return NULL;
}

struct elfrw_err *icf_prof_mapped(struct icf_profile *p, const struct icf_perf_mapping *m)
{
	const struct elfrw_image *img = &p->m->code;
	uint64_t page = elfrw_image_page(img) - 1;
	for (uint32_t i = 0; i < img->n_phdrs; i++) {
		const Elf64_Phdr *h = &img->phdr[i];
		if (h->p_type == PT_LOAD && h->p_flags & PF_X &&
		    m->offset >= (h->p_offset & ~page) && m->offset < h->p_offset + h->p_filesz)
			return learn(p, m->pid,
				     m->start - (h->p_vaddr + (m->offset - h->p_offset)));
	}
	return NULL;
}

static bool is_file(struct icf_profile *p, const char *name, size_t n)
{
	struct stat st;
	char path[4096];
	const char *base = strrchr(p->in->file, '/'), *slash = memrchr(name, '/', n);
	base = base ? base + 1 : p->in->file;
	if (n > 10 && !memcmp(name + n - 10, " (deleted)", 10))
		n -= 10;
	size_t n_base = slash ? n - (size_t)(slash + 1 - name) : n;
	if (strlen(base) == n_base && !memcmp(name + n - n_base, base, n_base))
		return true;
	if (n >= sizeof path || !n || name[0] != '/' || !p->have_id)
		return false;
	memcpy(path, name, n);
	path[n] = 0;
	return stat(path, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino;
}

bool icf_prof_is_file(struct icf_profile *p, const char *name, size_t n)
{
	if (n >= sizeof p->last_dso || !n)
		return false;
	if (memcmp(p->last_dso, name, n) || p->last_dso[n]) {
		p->last_dso_is = is_file(p, name, n);
		memcpy(p->last_dso, name, n);
		p->last_dso[n] = 0;
	}
	return p->last_dso_is;
}

static bool inside(const struct icf_profile *p, uint64_t va)
{
	return va >= p->lo && va <= p->hi;
}

/* Process K has no mapping of the program of its own.  Can it have one from its parent, SHIFT away
 * from where it was linked? */
static bool may_inherit(const struct icf_profile *p, const struct icf_prof_process *k,
			uint64_t shift)
{
	uint32_t i = k->other;
	for (unsigned n = 0; i != ICF_PROF_NONE && n < MAX_LOOK; n++) {
		if (is_there(p, &p->other.data[i], shift))
			return false;
		i = p->other.data[i].next;
	}
	return true;
}

/* By the mappings that are known. */
static bool by_shift(const struct icf_profile *p, struct icf_prof_address *a)
{
	const struct icf_prof_process none = { .other = ICF_PROF_NONE }, *k = &none;
	if (p->pid >= 0 && p->n_processes)
		k = process_slot(p, p->pid);
	k = k->used ? k : &none;
	if (k->mapped) {
		a->va = a->raw - k->shift;
		return inside(p, a->va);
	}
	if (k->ended)
		return false;
	const uint64_t as_linked = 0, *shift = p->n_recent ? p->recent : &as_linked;
	for (unsigned i = 0; i < (p->n_recent ? p->n_recent : 1); i++) {
		a->va = a->raw - shift[i];
		if (inside(p, a->va) && may_inherit(p, k, shift[i]))
			return true;
	}
	return false;
}

/* Most versions of perf show callers as offsets in their file. */
static bool by_offset(const struct icf_profile *p, struct icf_prof_address *a)
{
	const struct elfrw_image *img = &p->m->code;
	for (uint32_t i = 0; i < img->n_phdrs; i++) {
		const Elf64_Phdr *h = &img->phdr[i];
		a->va = h->p_vaddr + (a->raw - h->p_offset);
		/* The old program's segment was longer. */
		bool fits = p->in->forward || a->va <= h->p_vaddr + h->p_memsz;
		if (h->p_type == PT_LOAD && h->p_flags & PF_X && a->raw >= h->p_offset && fits &&
		    inside(p, a->va))
			return true;
	}
	return false;
}

/* Of a frame whose file is not shown; SHOWN: its name, or NULL. */
static bool by_guess(struct icf_profile *p, struct icf_prof_address *a,
		     const struct icf_perf_shown *shown)
{
	if (by_shift(p, a))
		return true;
	if (!by_offset(p, a))
		return false;
	if (shown && !p->in->forward)
		return icf_perf_known(p->m, shown, &a->va);
	p->counts.nameless++;
	return false;
}

struct elfrw_err *icf_prof_locate(struct icf_profile *p, struct icf_prof_address *a,
				  const char *line, const struct icf_perf_parts *f)
{
	bool named = f && f->n_name && !icf_perf_is(line + f->name, f->n_name, "[unknown]");
	a->in = false;
	if (!f) {
		a->in = by_shift(p, a);
		return NULL;
	}
	const struct icf_perf_shown shown = { .pid = p->pid,
					      .ip = a->raw,
					      .name = line + f->name,
					      .n_name = f->n_name,
					      .offset = f->offset };
	if (!f->n_dso) {
		a->in = by_guess(p, a, named ? &shown : NULL);
		return NULL;
	}
	if (!icf_prof_is_file(p, line + f->dso, f->n_dso))
		return NULL;
	if (f->file_offset != ICF_PERF_NO_OFFSET) {
		a->in = icf_perf_offset(p->m, f->file_offset, &a->va) && inside(p, a->va);
		return NULL;
	}
	bool sure = p->n_recent || !named || p->in->forward;
	if (sure)
		a->in = (p->n_recent && by_shift(p, a)) || by_offset(p, a) || by_shift(p, a);
	if (a->in || !named || p->in->forward)
		return NULL;
	return icf_perf_address(p->m, &shown, &a->va, &a->in);
}
