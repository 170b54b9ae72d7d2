/* frame.c: turns perf's lines into frames: the file, the address in the file, and whether the
 * address is in shared code. */
#include "dwarf/return_address.h"
#include "icf/cmd/perf/state.h"
#include "icf/cmd/cmd.h"
#include <sys/stat.h>

#define MAX_MODULES 4096      /* files that are open: all others are left alone */
#define MAX_NAMES   (1 << 16) /* of files, before all are forgotten */
#define NAME_SLOTS  (2 * MAX_NAMES)

static bool same_base(const char *a, size_t n, const char *b)
{
	const char *slash = memrchr(a, '/', n), *base = strrchr(b, '/');
	if (slash) {
		n -= (size_t)(slash + 1 - a);
		a = slash + 1;
	}
	base = base ? base + 1 : b;
	return strlen(base) == n && !memcmp(a, base, n);
}

/* Opens the file PATH, unless it is open under another name. */
static struct elfrw_err *open_module(struct icf_perf *p, const char *path, const struct stat *st,
				     uint32_t *ret)
{
	struct icf_perf_module *m = NULL;
	for (size_t i = 0; i < p->file.len; i++)
		if (p->file.data[i].dev == st->st_dev && p->file.data[i].ino == st->st_ino) {
			*ret = (uint32_t)i;
			return NULL;
		}
	if (p->module.len >= MAX_MODULES)
		return NULL;
	ELFRW_TRY(icf_perf_open(path, p->in->options, false, &m));
	if (!m)
		return NULL;
	struct icf_perf_file *file = VEC_PUSH(&p->file);
	struct icf_perf_module **slot = file ? VEC_PUSH(&p->module) : NULL;
	if (!slot) {
		icf_perf_close(m);
		return &elfrw_err_nomem;
	}
	*file = (struct icf_perf_file){ st->st_dev, st->st_ino };
	*slot = m;
	*ret = (uint32_t)(p->module.len - 1);
	return NULL;
}

/* The module for D, of whose name N bytes are the file's. */
static struct elfrw_err *open_dso(struct icf_perf *p, struct icf_perf_dso *d, size_t n)
{
	struct stat st;
	bool there = n == strlen(d->name) && stat(d->name, &st) == 0 && S_ISREG(st.st_mode);
	if (p->in->obj) {
		bool it = (there && p->have_id && st.st_dev == p->dev && st.st_ino == p->ino) ||
			  same_base(d->name, n, p->in->obj);
		d->module = it ? 0 : ICF_PERF_NO_MODULE;
		return NULL;
	}
	return there && d->name[0] != '[' ? open_module(p, d->name, &st, &d->module) : NULL;
}

void icf_perf_forget_files(struct icf_perf *p)
{
	for (size_t i = 0; i < p->dso.len; i++)
		free(p->dso.data[i].name);
	p->dso.len = p->last_dso = 0;
	if (p->dso_slot)
		memset(p->dso_slot, 0, NAME_SLOTS * sizeof *p->dso_slot);
}

static bool is_dso(const struct icf_perf *p, size_t i, const char *name, size_t n)
{
	return i < p->dso.len && p->dso.data[i].n == n && !memcmp(p->dso.data[i].name, name, n);
}

/* Where the name of N bytes is in the table, or would be. */
static uint32_t *dso_slot(const struct icf_perf *p, const char *name, size_t n)
{
	size_t i = XXH3_64bits(name, n) & (NAME_SLOTS - 1);
	while (p->dso_slot[i] && !is_dso(p, p->dso_slot[i] - 1, name, n))
		i = (i + 1) & (NAME_SLOTS - 1);
	return &p->dso_slot[i];
}

struct elfrw_err *icf_perf_module_of(struct icf_perf *p, const char *name, size_t n, uint32_t *ret)
{
	uint32_t *at = NULL;
	if (!p->dso_slot && !(p->dso_slot = calloc(NAME_SLOTS, sizeof *p->dso_slot)))
		return &elfrw_err_nomem;
	if (!is_dso(p, p->last_dso, name, n)) {
		if (p->dso.len >= MAX_NAMES)
			icf_perf_forget_files(p);
		at = dso_slot(p, name, n);
		p->last_dso = *at ? *at - 1 : p->dso.len;
	}
	if (!at || *at) {
		*ret = p->dso.data[p->last_dso].module;
		return NULL;
	}
	/* A removed file is looked for only under the name that the user gave. */
	size_t len = n > 10 && !memcmp(name + n - 10, " (deleted)", 10) ? n - 10 : n;
	struct icf_perf_dso d = { malloc(n + 1), n, ICF_PERF_NO_MODULE };
	if (d.name) {
		memcpy(d.name, name, n);
		d.name[n] = 0;
	}
	struct elfrw_err *err = d.name ? open_dso(p, &d, len) : &elfrw_err_nomem;
	struct icf_perf_dso *slot = err ? NULL : VEC_PUSH(&p->dso);
	if (!slot) {
		free(d.name);
		return err ? err : &elfrw_err_nomem;
	}
	*slot = d;
	*at = (uint32_t)p->dso.len;
	*ret = d.module;
	return NULL;
}

/* Fills the fields that follow from the address in the file. */
static struct elfrw_err *fill_place(struct icf_perf *p, struct icf_perf_place *k)
{
	struct icf_perf_module *m = p->module.data[k->module];
	uint32_t a, b;
	bool after = false;
	k->shared_pc = dwr_sym_group_at(m->sym, k->pc, &a);
	ELFRW_TRY(dwr_callchain_is_return(m->cc, k->pc + 1, &after, &k->again));
	k->site = k->pc + after;
	if (!after)
		ELFRW_TRY(dwr_callchain_is_return(m->cc, k->pc, &after, &k->again));
	/* A call at the very end returns to what perf takes for the next function.  That frame
	 * stays unchanged. */
	k->shared = k->shared_pc && dwr_sym_group_at(m->sym, dwr_call_at(k->site), &b) && a == b;
	return NULL;
}

/* Frame F of the line at S. */
static struct icf_perf_shown shown(const struct icf_perf *p, const char *s,
				   const struct icf_perf_parts *f)
{
	return (struct icf_perf_shown){ .pid = p->pid,
					.ip = f->address,
					.name = s + f->name,
					.n_name = f->n_name,
					.offset = f->offset };
}

static struct elfrw_err *find_place(struct icf_perf *p, const char *s,
				    const struct icf_perf_parts *f, struct icf_perf_place *k)
{
	bool found = true;
	ELFRW_TRY(icf_perf_module_of(p, s + f->dso, f->n_dso, &k->module));
	if (k->module == ICF_PERF_NO_MODULE || icf_perf_is(s + f->name, f->n_name, "[unknown]"))
		return NULL;
	struct icf_perf_module *m = p->module.data[k->module];
	if (f->file_offset != ICF_PERF_NO_OFFSET)
		found = icf_perf_offset(m, f->file_offset, &k->pc);
	else {
		const struct icf_perf_shown frame = shown(p, s, f);
		ELFRW_TRY(icf_perf_address(m, &frame, &k->pc, &found));
	}
	if (found)
		return fill_place(p, k);
	k->pc = 0;
	if (!m->complained)
		icf_message(
			m->path, "%s",
			"frames are left as they are where the address in the file cannot be told "
			"(perf script -F +symoff shows more)");
	m->complained = true;
	return NULL;
}

/* The place of a frame that names its file. */
static struct elfrw_err *look_up(struct icf_perf *p, struct icf_perf_line *l)
{
	const char *s = p->text.data + l->at;
	const struct icf_perf_parts *f = &l->f;
	XXH128_hash_t key = XXH3_128bits_withSeed(
		s + f->ip, f->end - f->ip, f->offset == ICF_PERF_NO_OFFSET ? (uint64_t)p->pid : 0);
	if (p->n_known >= ICF_PERF_KNOWN) {
		memset(p->known, 0, ICF_PERF_SLOTS * sizeof *p->known);
		p->n_known = 0;
	}
	size_t i = key.low64 & (ICF_PERF_SLOTS - 1);
	while (p->known[i].used && !icf_perf_same_key(p->known[i].key, key))
		i = (i + 1) & (ICF_PERF_SLOTS - 1);
	if (!p->known[i].used) {
		p->known[i] = (struct icf_perf_known_frame){ key,
							     true,
							     { .module = ICF_PERF_NO_MODULE } };
		p->n_known++;
		ELFRW_TRY(find_place(p, s, f, &p->known[i].place));
	}
	l->place = p->known[i].place;
	return NULL;
}

/* The place of a function that perf takes for an inlined call. */
static struct elfrw_err *look_up_orphan(struct icf_perf *p, struct icf_perf_line *l)
{
	const struct icf_perf_shown frame = shown(p, p->text.data + l->at, &l->f);
	for (uint32_t m = 0; m < p->module.len; m++)
		if (icf_perf_known(p->module.data[m], &frame, &l->place.pc)) {
			l->place.module = m;
			return fill_place(p, &l->place);
		}
	return NULL;
}

static bool same_ip(const struct icf_perf *p, const struct icf_perf_line *a,
		    const struct icf_perf_line *b)
{
	return a->f.n_ip == b->f.n_ip &&
	       !memcmp(p->text.data + a->at + a->f.ip, p->text.data + b->at + b->f.ip, a->f.n_ip);
}

/* Does the next frame repeat the frame of line I without having called it? */
static bool is_double(const struct icf_perf *p, size_t i)
{
	const struct icf_perf_line *a = &p->line.data[i], *b = a + 1;
	return i + 1 < p->line.len && b->is_frame && !b->f.inlined && b->place.pc &&
	       !b->place.again && same_ip(p, a, b);
}

struct elfrw_err *icf_perf_frames(struct icf_perf *p)
{
	for (size_t i = 0; i < p->line.len; i++) {
		struct icf_perf_line *l = &p->line.data[i];
		if (l->is_frame && !l->f.inlined)
			ELFRW_TRY(look_up(p, l));
	}
	size_t next = 0; /* the frame in which the line in hand was inlined */
	for (size_t i = 0; i < p->line.len; i++) {
		struct icf_perf_line *l = &p->line.data[i];
		const char *dso = p->text.data + l->at + l->f.dso;
		if (!l->is_frame)
			continue;
		if (l->f.inlined) {
			p->inlines_seen = true;
			size_t k = next > i ? next : i + 1; /* the same one for all its lines */
			while (k < p->line.len &&
			       (!p->line.data[k].is_frame ||
				(p->line.data[k].f.inlined && same_ip(p, l, &p->line.data[k]))))
				k++;
			next = k;
			if (k == p->line.len || !same_ip(p, l, &p->line.data[k]))
				ELFRW_TRY(look_up_orphan(p, l));
			if (!l->place.pc)
				continue;
		} else if (is_double(p, i)) {
			l->f.inlined = p->inlines_seen = true;
			continue;
		}
		/* Frames of the kernel, "[kernel.kallsyms]" or "[MODULE]", do not call the program.
		 * The frame that they interrupted is a PC. */
		if (!p->frame.len && l->f.n_dso && *dso == '[' &&
		    !icf_perf_is(dso, l->f.n_dso, "[vdso]") &&
		    !icf_perf_is(dso, l->f.n_dso, "[unknown]"))
			continue;
		const struct icf_perf_place *k = &l->place;
		bool pc = !p->frame.len;
		struct icf_perf_frame *frame = VEC_PUSH(&p->frame);
		if (!frame)
			return &elfrw_err_nomem;
		l->frame = (uint32_t)(p->frame.len - 1);
		*frame = (struct icf_perf_frame){ k->module,
						  k->pc && (pc ? k->shared_pc : k->shared),
						  pc ? k->pc : k->site, UINT32_MAX };
	}
	return NULL;
}
