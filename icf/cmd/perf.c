/* perf.c: icfold symbolize --perf: the text of `perf script` with names of functions replaced.
 *
 * A frame is the address, the name (with +0xOFFSET or not), and the file in brackets; frames of a
 * call chain begin with a tab and end with an empty line, a sample without one has its frame at the
 * end of its line.  Before a frame stand those of the calls that were inlined there, with
 * "(inlined)" for the file.  Nothing else is touched.  (tools/perf/builtin-script.c and
 * util/evsel_fprintf.c of Linux.)  Where the symbol that perf chose among those at one address is
 * not the name in the debug information, perf takes the function itself for an inlined call: a line
 * "(inlined)" that no line of the same address follows, and that names the function there.  Where
 * its name for the inlined call is that of the function, the line is there twice.
 *
 * Callers are return addresses, or, in chains that perf unwound by DWARF, one less: what follows a
 * call is taken.
 *
 * One sample is held at a time.  Frames and stacks repeat: the text of a frame, and the addresses
 * of frames in shared code together with the next one outwards, which is all that they depend on,
 * are keys (128 bits of hash) to what is known. */
#include "icf/cmd/perf.h"
#include "dwarf/stack/callchain.h"
#include "elfrw/base/printable.h"
#include "icf/cmd/cmd.h"
#include "icf/trace/perf_address.h"
#include "icf/trace/perf_text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define BUFFER          (1 << 18)
#define MAX_LINES       32768     /* of one sample */
#define MAX_KNOWN       (1 << 17) /* entries of a table before it is emptied */
#define MOST_CANDIDATES 8         /* that are named */
#define NO_MODULE       UINT32_MAX

/* A file as perf names it. */
struct dso {
	char *name; /* owned */
	size_t n;
	uint32_t module;
};

/* What a function that several share is called in a stack. */
struct answer {
	bool decided;
	uint32_t member;   /* the one, or the kept one */
	uint32_t first, n; /* candidates, in perf.candidate, or, when they are all of the group,
			      members from MEMBER on */
	bool all;
	char *text[ICF_PERF_FORMS]; /* of what is undecided; owned */
};

/* Where a frame is. */
struct place {
	uint32_t module;        /* NO_MODULE: in no file with tables */
	bool shared_pc, shared; /* in shared code, taken as a PC, or as a return address */
	bool again;        /* a call returns there that could have called the code that it is in */
	uint64_t pc, site; /* 0: not known; what a call there returns to */
};

struct known_frame {
	XXH128_hash_t key;
	bool used;
	struct place place;
};

struct known_stack {
	XXH128_hash_t key;
	bool used;
	uint32_t answer; /* the first of as many as there are frames; UINT32_MAX for none */
};

struct line {
	uint32_t at, n; /* in perf.text */
	bool is_frame;
	struct icf_perf_parts f;
	struct place place;
	uint32_t frame; /* index in perf.frame, UINT32_MAX: none */
};

struct frame {
	uint32_t module;
	bool shared;
	uint64_t address; /* a PC or where a call returns to; 0: not known */
	uint32_t answer;  /* UINT32_MAX: none */
};

struct perf {
	const struct icf_sym_perf_in *in;
	dev_t dev;
	ino_t ino;
	bool have_id;
	VEC(struct icf_perf_module *) module;
	VEC(struct dso) dso;
	size_t last_dso;
	int64_t pid;
	/* The sample. */
	VEC(char) text;
	VEC(struct line) line;
	VEC(struct frame) frame;
	bool chain;        /* its first line is that of a call chain */
	bool inlines_seen; /* perf shows inlined calls */
	VEC(uint64_t) address;
	struct dwr_chain answer_chain;
	struct dwr_sym_frames frames;
	/* What is known. */
	struct known_frame *known;
	size_t n_known;
	struct known_stack *stack;
	size_t n_stacks;
	VEC(struct answer) answer;
	VEC(uint32_t) candidate;
};

#define SLOTS (2 * MAX_KNOWN)

/* ---- files ---- */

static void complain(const char *file, const char *text)
{
	icf_message(file, "%s", text);
}

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

/* The module for D, of whose name N bytes are the file's. */
static struct elfrw_err *open_dso(struct perf *p, struct dso *d, size_t n)
{
	struct icf_perf_module *m = NULL;
	struct stat st;
	bool there = n == strlen(d->name) && stat(d->name, &st) == 0 && S_ISREG(st.st_mode);
	if (p->in->obj) {
		bool it = (there && p->have_id && st.st_dev == p->dev && st.st_ino == p->ino) ||
			  same_base(d->name, n, p->in->obj);
		d->module = it ? 0 : NO_MODULE;
		return NULL;
	}
	if (there && d->name[0] != '[')
		ELFRW_TRY(icf_perf_open(d->name, p->in->options, false, &m));
	if (!m)
		return NULL;
	struct icf_perf_module **slot = VEC_PUSH(&p->module);
	if (!slot) {
		icf_perf_close(m);
		return &elfrw_err_nomem;
	}
	*slot = m;
	d->module = (uint32_t)(p->module.len - 1);
	return NULL;
}

static struct elfrw_err *module_of(struct perf *p, const char *name, size_t n, uint32_t *ret)
{
	for (size_t i = 0; i < p->dso.len; i++) {
		size_t k = (p->last_dso + i) % p->dso.len;
		if (p->dso.data[k].n == n && !memcmp(p->dso.data[k].name, name, n)) {
			p->last_dso = k;
			*ret = p->dso.data[k].module;
			return NULL;
		}
	}
	/* The file that was removed is looked for only under the name that the user gave. */
	size_t len = n > 10 && !memcmp(name + n - 10, " (deleted)", 10) ? n - 10 : n;
	struct dso d = { malloc(n + 1), n, NO_MODULE };
	if (d.name) {
		memcpy(d.name, name, n);
		d.name[n] = 0;
	}
	struct elfrw_err *err = d.name ? open_dso(p, &d, len) : &elfrw_err_nomem;
	struct dso *slot = err ? NULL : VEC_PUSH(&p->dso);
	if (!slot) {
		free(d.name);
		return err ? err : &elfrw_err_nomem;
	}
	*slot = d;
	*ret = d.module;
	return NULL;
}

static struct elfrw_err *take_mapping(struct perf *p, const char *s, const char *end)
{
	struct icf_perf_mapping m;
	uint32_t module;
	if (!icf_perf_parse_mapping(s, end, &m))
		return NULL;
	ELFRW_TRY(module_of(p, m.path, (size_t)(end - m.path), &module));
	return module == NO_MODULE
		       ? NULL
		       : icf_perf_mapped(p->module.data[module], m.pid, m.start, m.offset);
}

/* ---- frames ---- */

static bool same_key(XXH128_hash_t a, XXH128_hash_t b)
{
	return a.low64 == b.low64 && a.high64 == b.high64;
}

static void forget(struct perf *p)
{
	for (size_t i = 0; i < p->answer.len; i++)
		for (unsigned f = 0; f < ICF_PERF_FORMS; f++)
			free(p->answer.data[i].text[f]);
	p->answer.len = p->candidate.len = p->n_stacks = 0;
	memset(p->stack, 0, SLOTS * sizeof *p->stack);
}

/* What follows from the address in the file. */
static struct elfrw_err *fill_place(struct perf *p, struct place *k)
{
	struct icf_perf_module *m = p->module.data[k->module];
	uint32_t a, b;
	bool after = false;
	k->shared_pc = dwr_sym_group_at(m->sym, k->pc, &a);
	ELFRW_TRY(dwr_callchain_is_return(m->cc, k->pc + 1, &after, &k->again));
	k->site = k->pc + after;
	if (!after)
		ELFRW_TRY(dwr_callchain_is_return(m->cc, k->pc, &after, &k->again));
	/* A call at the very end returns to what perf takes for the next function: that is left as
	 * it is. */
	k->shared = k->shared_pc && dwr_sym_group_at(m->sym, k->site - 1, &b) && a == b;
	return NULL;
}

static struct elfrw_err *find_place(struct perf *p, const char *s, const struct icf_perf_parts *f,
				    struct place *k)
{
	bool found = true;
	ELFRW_TRY(module_of(p, s + f->dso, f->n_dso, &k->module));
	if (k->module == NO_MODULE || icf_perf_is(s + f->name, f->n_name, "[unknown]"))
		return NULL;
	struct icf_perf_module *m = p->module.data[k->module];
	if (f->file_offset != ICF_PERF_NO_OFFSET)
		found = icf_perf_offset(m, f->file_offset, &k->pc);
	else
		ELFRW_TRY(icf_perf_address(m, p->pid, f->address, s + f->name, f->n_name, f->offset,
					   &k->pc, &found));
	if (found)
		return fill_place(p, k);
	k->pc = 0;
	if (!m->complained)
		complain(m->path,
			 "frames are left as they are where the address in the file cannot be told "
			 "(perf script -F +symoff shows more)");
	m->complained = true;
	return NULL;
}

/* The place of a frame that names its file. */
static struct elfrw_err *look_up(struct perf *p, struct line *l)
{
	const char *s = p->text.data + l->at;
	const struct icf_perf_parts *f = &l->f;
	XXH128_hash_t key = XXH3_128bits_withSeed(
		s + f->ip, f->end - f->ip, f->offset == ICF_PERF_NO_OFFSET ? (uint64_t)p->pid : 0);
	if (p->n_known >= MAX_KNOWN) {
		memset(p->known, 0, SLOTS * sizeof *p->known);
		p->n_known = 0;
	}
	size_t i = key.low64 & (SLOTS - 1);
	while (p->known[i].used && !same_key(p->known[i].key, key))
		i = (i + 1) & (SLOTS - 1);
	if (!p->known[i].used) {
		p->known[i] = (struct known_frame){ key, true, { .module = NO_MODULE } };
		p->n_known++;
		ELFRW_TRY(find_place(p, s, f, &p->known[i].place));
	}
	l->place = p->known[i].place;
	return NULL;
}

/* The place of a function that perf takes for an inlined call. */
static struct elfrw_err *look_up_orphan(struct perf *p, struct line *l)
{
	const char *s = p->text.data + l->at;
	for (uint32_t m = 0; m < p->module.len; m++)
		if (icf_perf_known(p->module.data[m], p->pid, l->f.address, s + l->f.name,
				   l->f.n_name, l->f.offset, &l->place.pc)) {
			l->place.module = m;
			return fill_place(p, &l->place);
		}
	return NULL;
}

static bool same_ip(const struct perf *p, const struct line *a, const struct line *b)
{
	return a->f.n_ip == b->f.n_ip &&
	       !memcmp(p->text.data + a->at + a->f.ip, p->text.data + b->at + b->f.ip, a->f.n_ip);
}

/* Is the frame of line I shown once more by the next one, which has not called it? */
static bool is_double(const struct perf *p, size_t i)
{
	const struct line *a = &p->line.data[i], *b = a + 1;
	return i + 1 < p->line.len && b->is_frame && !b->f.inlined && b->place.pc &&
	       !b->place.again && same_ip(p, a, b);
}

/* Makes the frames of the machine from the lines. */
static struct elfrw_err *make_frames(struct perf *p)
{
	for (size_t i = 0; i < p->line.len; i++) {
		struct line *l = &p->line.data[i];
		if (l->is_frame && !l->f.inlined)
			ELFRW_TRY(look_up(p, l));
	}
	for (size_t i = 0; i < p->line.len; i++) {
		struct line *l = &p->line.data[i];
		const char *dso = p->text.data + l->at + l->f.dso;
		if (!l->is_frame)
			continue;
		if (l->f.inlined) {
			p->inlines_seen = true;
			size_t k = i + 1;
			while (k < p->line.len &&
			       (!p->line.data[k].is_frame ||
				(p->line.data[k].f.inlined && same_ip(p, l, &p->line.data[k]))))
				k++;
			if (k == p->line.len || !same_ip(p, l, &p->line.data[k]))
				ELFRW_TRY(look_up_orphan(p, l));
			if (!l->place.pc)
				continue;
		} else if (is_double(p, i)) {
			l->f.inlined = p->inlines_seen = true;
			continue;
		}
		/* Frames of the kernel, "[kernel.kallsyms]" or "[MODULE]", are no callers of the
		 * program's: what they interrupted is a PC. */
		if (!p->frame.len && l->f.n_dso && *dso == '[' &&
		    !icf_perf_is(dso, l->f.n_dso, "[vdso]") &&
		    !icf_perf_is(dso, l->f.n_dso, "[unknown]"))
			continue;
		const struct place *k = &l->place;
		bool pc = !p->frame.len;
		struct frame *frame = VEC_PUSH(&p->frame);
		if (!frame)
			return &elfrw_err_nomem;
		l->frame = (uint32_t)(p->frame.len - 1);
		*frame = (struct frame){ k->module, k->pc && (pc ? k->shared_pc : k->shared),
					 pc ? k->pc : k->site, UINT32_MAX };
	}
	return NULL;
}

/* Adds a line of N bytes to the sample; F: what it says as a frame, or NULL. */
static struct elfrw_err *add_line(struct perf *p, const char *s, size_t n,
				  const struct icf_perf_parts *f)
{
	struct line *l = VEC_PUSH(&p->line);
	if (!l || !VEC_RESERVE(&p->text, p->text.len + n))
		return &elfrw_err_nomem;
	memcpy(p->text.data + p->text.len, s, n);
	*l = (struct line){ .at = (uint32_t)p->text.len,
			    .n = (uint32_t)n,
			    .is_frame = f,
			    .place.module = NO_MODULE,
			    .frame = UINT32_MAX };
	if (f)
		l->f = *f;
	p->text.len += n;
	return NULL;
}

/* ---- stacks ---- */

/* Decides frames LO to HI, all in shared code of one file. */
static struct elfrw_err *resolve(struct perf *p, size_t lo, size_t hi, uint32_t *ret)
{
	struct icf_perf_module *m = p->module.data[p->frame.data[lo].module];
	bool pc = lo == 0;
	ELFRW_TRY(dwr_callchain_resolve(m->cc, p->address.data, NULL, p->address.len,
					&p->answer_chain));
	*ret = (uint32_t)p->answer.len;
	for (size_t i = lo; i < hi; i++) {
		const struct dwr_chain_frame *f = &p->answer_chain.frame.data[i - lo + !pc];
		struct answer *a = VEC_PUSH(&p->answer);
		if (!a)
			return &elfrw_err_nomem;
		*a = (struct answer){ .member = UINT32_MAX,
				      .first = (uint32_t)p->candidate.len,
				      .n = f->n };
		if (!f->merged || f->group == UINT32_MAX)
			continue;
		a->decided = f->decided;
		a->all = f->n == m->note->group[f->group].n_members;
		a->member = f->decided ? p->answer_chain.member.data[f->first].member
				       : m->note->group[f->group].member;
		for (uint32_t k = 0; k < f->n && !a->all; k++) {
			uint32_t *c = VEC_PUSH(&p->candidate);
			if (!c)
				return &elfrw_err_nomem;
			*c = p->answer_chain.member.data[f->first + k].member;
		}
	}
	return NULL;
}

/* The answers for frames LO to HI, with the frame around them when that is in the same file. */
static struct elfrw_err *answer_run(struct perf *p, size_t lo, size_t hi)
{
	p->address.len = 0;
	if (!VEC_RESERVE(&p->address, hi - lo + 2))
		return &elfrw_err_nomem;
	if (lo) /* what follows is no PC */
		p->address.data[p->address.len++] = 0;
	for (size_t i = lo; i < hi; i++)
		p->address.data[p->address.len++] = p->frame.data[i].address;
	if (hi < p->frame.len && p->frame.data[hi].module == p->frame.data[lo].module)
		p->address.data[p->address.len++] = p->frame.data[hi].address;
	XXH128_hash_t key =
		XXH3_128bits_withSeed(p->address.data, p->address.len * sizeof *p->address.data,
				      p->frame.data[lo].module);
	size_t i = key.low64 & (SLOTS - 1);
	while (p->stack[i].used && !same_key(p->stack[i].key, key))
		i = (i + 1) & (SLOTS - 1);
	if (!p->stack[i].used) {
		p->stack[i] = (struct known_stack){ key, true, UINT32_MAX };
		p->n_stacks++;
		ELFRW_TRY(resolve(p, lo, hi, &p->stack[i].answer));
	}
	for (size_t k = lo; k < hi; k++)
		p->frame.data[k].answer = p->stack[i].answer + (uint32_t)(k - lo);
	return NULL;
}

static const char *linkage_of(struct perf *p, struct icf_perf_module *m, uint32_t member,
			      uint64_t address)
{
	const struct dwr_icfold_member *k = &m->note->member[member];
	if (k->n_names)
		return m->note->names[k->name];
	struct elfrw_err *err = dwr_sym_frames_for_member(m->sym, address, member, 0, &p->frames);
	if (err)
		elfrw_err_free(err);
	return !err && p->frames.len && p->frames.data[p->frames.len - 1].function
		       ? p->frames.data[p->frames.len - 1].function
		       : "??";
}

/* The name of what is undecided: KEPT[one of: A|B], without parameters, at whose bracket scripts
 * end a name. */
static struct elfrw_err *undecided_name(struct perf *p, struct icf_perf_module *m, struct answer *a,
					uint64_t address, enum icf_perf_form form, const char **ret)
{
	enum icf_perf_form f = form == ICF_PERF_LINKAGE ? form : ICF_PERF_SHORT;
	if (a->text[f]) {
		*ret = a->text[f];
		return NULL;
	}
	const char *name[MOST_CANDIDATES + 1],
		*kept = icf_perf_spell(m, linkage_of(p, m, a->member, address), f);
	uint32_t n = 0, more = 0;
	for (uint32_t i = 0; i < a->n; i++) {
		const char *s = icf_perf_spell(
			m,
			linkage_of(p, m, a->all ? a->member + i : p->candidate.data[a->first + i],
				   address),
			f);
		bool there = false;
		for (uint32_t k = 0; k < n && s; k++)
			there |= !strcmp(name[k], s);
		if (!s)
			return &elfrw_err_nomem;
		if (there)
			continue;
		if (n < MOST_CANDIDATES)
			name[n++] = s;
		else
			more++;
	}
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!kept || !out) {
		if (out) {
			fclose(out);
			free(text);
		}
		return &elfrw_err_nomem;
	}
	if (n == 1) /* overloaded functions: nothing to tell apart in this form */
		fputs(name[0], out);
	else {
		fprintf(out, "%s[one of: ", kept);
		for (uint32_t i = 0; i < n; i++)
			fprintf(out, "%s%s", i ? "|" : "", name[i]);
		fprintf(out, more ? "|%" PRIu32 " more]" : "]", more);
	}
	if (fclose(out) != 0) {
		free(text);
		return &elfrw_err_nomem;
	}
	*ret = a->text[f] = text;
	return NULL;
}

/* Is the N bytes at NAME what one of the names of MEMBER looks like? */
static bool is_named(struct icf_perf_module *m, uint32_t member, const char *name, size_t n)
{
	const struct dwr_icfold_member *k = &m->note->member[member];
	for (uint32_t i = 0; i < k->n_names; i++)
		if (icf_perf_same_name(m, m->note->names[k->name + i], name, n))
			return true;
	return false;
}

/* ---- output ---- */

static void put_named(const struct perf *p, const struct line *l, const char *name)
{
	const char *s = p->text.data + l->at;
	fwrite(s, 1, l->f.name, stdout);
	elfrw_put_printable(stdout, name);
	fwrite(s + l->f.name + l->f.n_name, 1, l->n - l->f.name - l->f.n_name, stdout);
}

static void put_line(const struct perf *p, const struct line *l)
{
	fwrite(p->text.data + l->at, 1, l->n, stdout);
}

static const char *inlined_name(struct icf_perf_module *m, const struct dwr_sym_frame *f,
				enum icf_perf_form form)
{
	return f->linkage ? icf_perf_spell(m, f->linkage, form) : f->function ? f->function : "??";
}

/* The lines FIRST to LAST, those of calls that are inlined at LAST, which is the frame of a decided
 * function. */
static struct elfrw_err *put_decided(struct perf *p, size_t first, size_t last,
				     struct icf_perf_module *m, const struct answer *a, uint64_t at)
{
	const struct line *l = &p->line.data[last];
	const char *text = p->text.data + l->at;
	enum icf_perf_form form = icf_perf_form_of(text + l->f.name, l->f.n_name);
	bool kept = m->note->group[m->note->member[a->member].group].member == a->member,
	     inlines = p->inlines_seen && !kept;
	size_t n = last - first, want = n;
	const char *name;
	if (inlines) {
		ELFRW_TRY(dwr_sym_frames_for_member(m->sym, at, a->member, DWR_SYM_DEMANGLE,
						    &p->frames));
		want = p->frames.len ? p->frames.len - 1 : 0;
	}
	for (size_t i = 0; i < want; i++) {
		const struct line *k = i < n ? &p->line.data[first + i] : l;
		if (!inlines) {
			put_line(p, k);
			continue;
		}
		if (!(name = inlined_name(m, &p->frames.data[i],
					  i < n ? icf_perf_form_of(p->text.data + k->at + k->f.name,
								   k->f.n_name)
						: form)))
			return &elfrw_err_nomem;
		if (i < n)
			put_named(p, k, name);
		else { /* where the kept function has no inlined call */
			const char *open = memrchr(text, '(', l->n);
			fwrite(text, 1, l->f.name, stdout);
			elfrw_put_printable(stdout, name);
			fwrite(text + l->f.name + l->f.n_name, 1,
			       (size_t)(open - text) - l->f.name - l->f.n_name, stdout);
			fputs("(inlined)\n", stdout);
		}
	}
	if (is_named(m, a->member, text + l->f.name, l->f.n_name)) {
		put_line(p, l);
		return NULL;
	}
	if (!(name = icf_perf_spell(m, linkage_of(p, m, a->member, at), form)))
		return &elfrw_err_nomem;
	put_named(p, l, name);
	return NULL;
}

/* Prints the sample and forgets it. */
static struct elfrw_err *flush_sample(struct perf *p)
{
	struct elfrw_err *err = make_frames(p);
	if (p->n_stacks >= MAX_KNOWN / 2 || p->answer.len >= 2 * MAX_KNOWN ||
	    p->candidate.len >= 4 * MAX_KNOWN)
		forget(p);
	for (size_t i = 0; i < p->frame.len && !err;) {
		size_t hi = i;
		while (hi < p->frame.len && p->frame.data[hi].shared &&
		       p->frame.data[hi].module == p->frame.data[i].module)
			hi++;
		if (hi > i)
			err = answer_run(p, i, hi);
		i = hi > i ? hi : i + 1;
	}
	size_t inlined = 0; /* lines of inlined calls that wait for their function's */
	for (size_t i = 0; i < p->line.len && !err; i++) {
		const struct line *l = &p->line.data[i];
		const struct frame *f = l->frame == UINT32_MAX ? NULL : &p->frame.data[l->frame];
		struct answer *a = f && f->answer != UINT32_MAX ? &p->answer.data[f->answer] : NULL;
		if (l->is_frame && l->f.inlined && !f) {
			inlined++;
			continue;
		}
		struct icf_perf_module *m = a ? p->module.data[f->module] : NULL;
		uint64_t at = f ? f->address - (l->frame != 0) : 0;
		if (a && a->decided) {
			err = put_decided(p, i - inlined, i, m, a, at);
			inlined = 0;
			continue;
		}
		for (; inlined; inlined--)
			put_line(p, l - inlined);
		if (a && a->member != UINT32_MAX) {
			const char *name;
			err = undecided_name(
				p, m, a, at,
				icf_perf_form_of(p->text.data + l->at + l->f.name, l->f.n_name),
				&name);
			if (!err)
				put_named(p, l, name);
		} else
			put_line(p, l);
	}
	for (; inlined; inlined--)
		put_line(p, p->line.data + p->line.len - inlined);
	p->text.len = p->line.len = p->frame.len = 0;
	p->chain = false;
	return err;
}

/* ---- input ---- */

/* A line of N bytes, of which the last is its newline if it has one. */
static struct elfrw_err *take_line(struct perf *p, const char *s, size_t n)
{
	const char *end = s + n, *c = s;
	struct icf_perf_parts f;
	while (end > s && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	while (c < end && (*c == ' ' || *c == '\t'))
		c++;
	bool indented = c > s;
	if (c == end) {
		ELFRW_TRY(flush_sample(p));
		fwrite(s, 1, n, stdout);
		return NULL;
	}
	if (p->line.len >= MAX_LINES)
		ELFRW_TRY(flush_sample(p));
	if (indented && (*s == '\t' || p->chain) && icf_perf_parse_frame(s, c, end, &f) &&
	    (*s == '\t' || !memmem(s + f.name, f.n_name, ": ", 2)))
		return add_line(p, s, n, &f);
	if (indented && p->line.len) /* more about the frame before: its source line */
		return add_line(p, s, n, NULL);
	ELFRW_TRY(flush_sample(p));
	if (memmem(s, (size_t)(end - s), "PERF_RECORD_MMAP", 16)) {
		fwrite(s, 1, n, stdout);
		return take_mapping(p, s, end);
	}
	p->pid = icf_perf_parse_pid(s, end);
	if ((indented && icf_perf_parse_frame(s, c, end, &f) &&
	     !memmem(s + f.name, f.n_name, ": ", 2)) ||
	    icf_perf_parse_sample(s, end, &f)) {
		ELFRW_TRY(add_line(p, s, n, &f));
		return flush_sample(p);
	}
	p->chain = true;
	fwrite(s, 1, n, stdout);
	return NULL;
}

static struct elfrw_err *copy(struct perf *p, int fd, const char *path, char *buf)
{
	size_t len = 0;
	bool inside = false; /* of a line that is longer than the buffer, and no frame */
	for (;;) {
		ssize_t got = read(fd, buf + len, BUFFER - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return elfrw_error_errno(errno, "cannot read %s", path);
		len += (size_t)got;
		char *s = buf, *nl;
		while ((nl = memchr(s, '\n', len - (size_t)(s - buf))) ||
		       (got == 0 && s < buf + len)) {
			size_t n = nl ? (size_t)(nl + 1 - s) : len - (size_t)(s - buf);
			if (inside)
				fwrite(s, 1, n, stdout);
			else
				ELFRW_TRY(take_line(p, s, n));
			inside = false;
			s += n;
		}
		len -= (size_t)(s - buf);
		memmove(buf, s, len);
		if (len == BUFFER) {
			ELFRW_TRY(flush_sample(p));
			fwrite(buf, 1, len, stdout);
			inside = true;
			len = 0;
		}
		if (got == 0 || ferror(stdout))
			break;
		if (!len && !p->line.len)
			fflush(stdout); /* nothing is kept from a reader while perf has nothing to
					   say */
	}
	return flush_sample(p);
}

static struct elfrw_err *run(struct perf *p, char **arg, int n)
{
	struct elfrw_err *err = NULL;
	struct stat st;
	if (p->in->obj) {
		struct icf_perf_module **m = VEC_PUSH(&p->module);
		if (!m)
			return &elfrw_err_nomem;
		*m = NULL;
		ELFRW_TRY(elfrw_err_about(p->in->obj,
					  icf_perf_open(p->in->obj, p->in->options, true, m)));
		p->have_id = stat(p->in->obj, &st) == 0;
		p->dev = st.st_dev;
		p->ino = st.st_ino;
	}
	char *buf = malloc(BUFFER);
	p->known = calloc(SLOTS, sizeof *p->known);
	p->stack = calloc(SLOTS, sizeof *p->stack);
	if (!buf || !p->known || !p->stack)
		err = &elfrw_err_nomem;
	if (!err && !n)
		err = copy(p, STDIN_FILENO, "standard input", buf);
	for (int i = 0; i < n && !err; i++) {
		int fd = strcmp(arg[i], "-") ? open(arg[i], O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
		if (fd < 0)
			err = elfrw_error_errno(errno, "cannot open %s", arg[i]);
		else
			err = copy(p, fd, arg[i], buf);
		if (fd > STDIN_FILENO)
			close(fd);
	}
	free(buf);
	return err;
}

struct elfrw_err *icf_sym_perf(const struct icf_sym_perf_in *in, char **arg, int n)
{
	struct perf p = { .in = in, .pid = -1 };
	struct elfrw_err *err = run(&p, arg, n);
	if (p.stack)
		forget(&p);
	for (size_t i = 0; i < p.module.len; i++)
		icf_perf_close(p.module.data[i]);
	for (size_t i = 0; i < p.dso.len; i++)
		free(p.dso.data[i].name);
	VEC_FREE(&p.module);
	VEC_FREE(&p.dso);
	VEC_FREE(&p.text);
	VEC_FREE(&p.line);
	VEC_FREE(&p.frame);
	VEC_FREE(&p.address);
	VEC_FREE(&p.answer);
	VEC_FREE(&p.candidate);
	dwr_chain_deinit(&p.answer_chain);
	dwr_sym_frames_deinit(&p.frames);
	free(p.known);
	free(p.stack);
	return err;
}
