/* pprof.c: stacks as pprof's profile.proto (github.com/google/pprof, proto/profile.proto),
 * compressed by gzip.
 *
 * Functions, lines and inlined calls are in it, so pprof needs no program.  A place that is
 * undecided has Location.is_folded, which says that other functions have this address, too. */
#include "elfrw/arch/arch.h"
#include "elfrw/base/wbuf.h"
#include "elfrw/image.h"
#include "icf/profile/stack.h"
#include "icf/profile/state.h"
#include <zlib.h>

/* Field numbers. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRINGS,
};

struct text_slot {
	const char *text; /* borrowed; NULL: empty */
	uint64_t number;
};

struct pprof {
	struct icf_profile *p;
	struct elfrw_wbuf out, functions, strings;
	struct text_slot *slot; /* open hash table; owned */
	size_t n_texts, n_slots;
	VEC(const char *) function; /* names by id - 1, and files */
	VEC(const char *) mapping;  /* files by id - 1 */
	VEC(char *) owned;
	struct dwr_sym_frames frames;
	bool nomem;
};

static void put_key(struct elfrw_wbuf *w, unsigned field, unsigned type)
{
	elfrw_wbuf_uleb(w, field << 3 | type);
}

static void put_number(struct elfrw_wbuf *w, unsigned field, uint64_t v)
{
	if (!v)
		return;
	put_key(w, field, 0);
	elfrw_wbuf_uleb(w, v);
}

static void put_bytes(struct elfrw_wbuf *w, unsigned field, const void *s, size_t n)
{
	put_key(w, field, 2);
	elfrw_wbuf_uleb(w, n);
	elfrw_wbuf_bytes(w, s, n);
}

/* Appends the message M, and empties it. */
static void put_message(struct pprof *f, struct elfrw_wbuf *w, unsigned field, struct elfrw_wbuf *m)
{
	put_bytes(w, field, m->data, m->len);
	f->nomem |= m->bad;
	m->len = 0;
}

static struct text_slot *text_slot(struct pprof *f, const char *s)
{
	size_t i = XXH3_64bits(s, strlen(s)) & (f->n_slots - 1);
	while (f->slot[i].text && strcmp(f->slot[i].text, s) != 0)
		i = (i + 1) & (f->n_slots - 1);
	return &f->slot[i];
}

static bool more_texts(struct pprof *f)
{
	struct text_slot *old = f->slot;
	size_t n = f->n_slots;
	f->n_slots = n ? 2 * n : 1024;
	f->slot = calloc(f->n_slots, sizeof *f->slot);
	if (!f->slot) {
		f->slot = old;
		f->n_slots = n;
		f->nomem = true;
		return false;
	}
	for (size_t i = 0; i < n; i++)
		if (old[i].text)
			*text_slot(f, old[i].text) = old[i];
	free(old);
	return true;
}

/* The number of string S, which is copied. */
static uint64_t text_number(struct pprof *f, const char *s)
{
	if (2 * (f->n_texts + 1) > f->n_slots && !more_texts(f))
		return 0;
	struct text_slot *t = text_slot(f, s);
	if (t->text)
		return t->number;
	char *copy = strdup(s), **slot = copy ? VEC_PUSH(&f->owned) : NULL;
	if (!slot) {
		free(copy);
		f->nomem = true;
		return 0;
	}
	*slot = copy;
	*t = (struct text_slot){ copy, f->n_texts++ };
	put_bytes(&f->strings, PROFILE_STRINGS, copy, strlen(copy));
	return t->number;
}

/* The id of the function NAME; each line has its own. */
static uint64_t put_function(struct pprof *f, const char *name, const char *linkage,
			     const char *file, uint32_t start)
{
	struct elfrw_wbuf m = { 0 };
	const char **slot = VEC_PUSH(&f->function);
	if (!slot) {
		f->nomem = true;
		return 0;
	}
	put_number(&m, 1, f->function.len);
	put_number(&m, 2, text_number(f, name));
	put_number(&m, 3, text_number(f, linkage ? linkage : name));
	put_number(&m, 4, file ? text_number(f, file) : 0);
	put_number(&m, 5, start);
	put_message(f, &f->functions, PROFILE_FUNCTION, &m);
	elfrw_wbuf_free(&m);
	return f->function.len;
}

static void put_line(struct pprof *f, struct elfrw_wbuf *location, uint64_t function, uint32_t line)
{
	struct elfrw_wbuf m = { 0 };
	put_number(&m, 1, function);
	put_number(&m, 2, line);
	put_message(f, location, 4, &m);
	elfrw_wbuf_free(&m);
}

/* The id of the mapping of FILE. */
static uint64_t mapping_of(struct pprof *f, const char *file)
{
	for (size_t i = 0; i < f->mapping.len; i++)
		if (strcmp(f->mapping.data[i], file) == 0)
			return i + 1;
	const char **slot = VEC_PUSH(&f->mapping);
	if (!slot) {
		f->nomem = true;
		return 0;
	}
	*slot = file;
	return f->mapping.len;
}

static struct elfrw_err *put_location(struct pprof *f, const struct icf_prof_level *l, uint64_t id)
{
	struct icf_profile *p = f->p;
	struct elfrw_wbuf m = { 0 };
	uint64_t at = l->va - l->ret;
	put_number(&m, 1, id);
	put_number(&m, 2,
		   mapping_of(f, l->in               ? p->in->file
				 : l->dso && *l->dso ? l->dso
						     : "[unknown]"));
	put_number(&m, 3, l->address);
	f->frames.len = 0;
	struct elfrw_err *err = NULL;
	if (l->in && l->member != ICF_PROF_NONE)
		err = dwr_sym_frames_for_member(p->m->sym, at, l->member, DWR_SYM_DEMANGLE,
						&f->frames);
	else if (l->in)
		err = dwr_sym_frames(p->m->sym, at, DWR_SYM_DEMANGLE, &f->frames);
	for (size_t i = 0; i < f->frames.len && !err; i++) {
		const struct dwr_sym_frame *k = &f->frames.data[i];
		bool outer = i + 1 == f->frames.len; /* its name may be of the wrong member */
		put_line(f, &m,
			 put_function(f, outer || !k->function ? l->name : k->function,
				      outer ? NULL : k->linkage, k->file, k->start_line),
			 k->line);
	}
	if (!f->frames.len)
		put_line(f, &m, put_function(f, l->name, NULL, NULL, 0), 0);
	put_number(&m, 5, l->undecided);
	put_message(f, &f->out, PROFILE_LOCATION, &m);
	elfrw_wbuf_free(&m);
	return err;
}

static void put_type(struct pprof *f, const char *type, const char *unit)
{
	struct elfrw_wbuf m = { 0 };
	put_number(&m, 1, text_number(f, type));
	put_number(&m, 2, text_number(f, unit));
	put_message(f, &f->out, PROFILE_SAMPLE_TYPE, &m);
	elfrw_wbuf_free(&m);
}

static void put_sample(struct pprof *f, const struct icf_prof_counted *c)
{
	struct elfrw_wbuf m = { 0 }, list = { 0 };
	for (uint32_t k = 0; k < c->n; k++)
		elfrw_wbuf_uleb(&list, f->p->stack->item.data[c->at + k] + 1);
	put_message(f, &m, 1, &list);
	elfrw_wbuf_uleb(&list, c->count);
	elfrw_wbuf_uleb(&list, c->weight);
	put_message(f, &m, 2, &list);
	put_message(f, &f->out, PROFILE_SAMPLE, &m);
	elfrw_wbuf_free(&m);
	elfrw_wbuf_free(&list);
}

/* Of the program the place of its code is known; of other files only that they are there. */
static void put_mapping(struct pprof *f, size_t i)
{
	const struct elfrw_image *img = &f->p->m->code;
	struct elfrw_wbuf m = { 0 };
	bool own = strcmp(f->mapping.data[i], f->p->in->file) == 0;
	put_number(&m, 1, i + 1);
	for (uint32_t k = 0; k < img->n_phdrs && own; k++) {
		const Elf64_Phdr *h = &img->phdr[k];
		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
			continue;
		uint64_t page = img->arch->page_min - 1, end = h->p_vaddr + h->p_memsz;
		const struct elfrw_addrmap *map = &f->p->m->note->map;
		for (uint32_t s = 0; s < map->n_sections; s++)
			if (map->section[s].old_end > end)
				end = map->section[s].old_end;
		put_number(&m, 2, h->p_vaddr & ~page);
		put_number(&m, 3, (end + page) & ~page);
		put_number(&m, 4, h->p_offset & ~page);
		break;
	}
	put_number(&m, 5, text_number(f, f->mapping.data[i]));
	put_number(&m, 7, 1);
	put_number(&m, 8, own);
	put_number(&m, 9, own);
	put_number(&m, 10, own);
	put_message(f, &f->out, PROFILE_MAPPING, &m);
	elfrw_wbuf_free(&m);
}

static struct elfrw_err *compress_to(FILE *out, const struct elfrw_wbuf *w)
{
	uint8_t buf[65536];
	z_stream z = { 0 };
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return &elfrw_err_nomem;
	size_t at = 0;
	int rc = Z_OK;
	while (rc == Z_OK) {
		if (!z.avail_in && at < w->len) {
			size_t n = w->len - at < (1u << 30) ? w->len - at : 1u << 30;
			z.next_in = w->data + at;
			z.avail_in = (unsigned)n;
			at += n;
		}
		z.next_out = buf;
		z.avail_out = sizeof buf;
		rc = deflate(&z, at == w->len ? Z_FINISH : Z_NO_FLUSH);
		fwrite(buf, 1, sizeof buf - z.avail_out, out);
	}
	deflateEnd(&z);
	return rc == Z_STREAM_END ? NULL : elfrw_error("zlib: compression failed");
}

static struct elfrw_err *put_all(struct pprof *f)
{
	const struct icf_prof_stack *s = f->p->stack;
	text_number(f, "");
	put_type(f, "samples", "count");
	put_type(f, f->p->first_event[0] ? f->p->first_event : "period", "events");
	mapping_of(f, f->p->in->file); /* the first one is the program's */
	for (size_t i = 0; i < s->stack.len; i++)
		put_sample(f, &s->stack.data[i]);
	for (size_t i = 0; i < s->level.len; i++)
		ELFRW_TRY(put_location(f, &s->level.data[i], i + 1));
	for (size_t i = 0; i < f->mapping.len; i++)
		put_mapping(f, i);
	elfrw_wbuf_bytes(&f->out, f->functions.data, f->functions.len);
	elfrw_wbuf_bytes(&f->out, f->strings.data, f->strings.len);
	if (f->nomem || f->out.bad || f->functions.bad || f->strings.bad)
		return &elfrw_err_nomem;
	return compress_to(f->p->in->out, &f->out);
}

struct elfrw_err *icf_prof_put_pprof(struct icf_profile *p)
{
	struct pprof f = { .p = p };
	struct elfrw_err *err = put_all(&f);
	for (size_t i = 0; i < f.owned.len; i++)
		free(f.owned.data[i]);
	VEC_FREE(&f.owned);
	VEC_FREE(&f.function);
	VEC_FREE(&f.mapping);
	elfrw_wbuf_free(&f.out);
	elfrw_wbuf_free(&f.functions);
	elfrw_wbuf_free(&f.strings);
	dwr_sym_frames_deinit(&f.frames);
	free(f.slot);
	return err;
}
