/* icfold.c: libicfold; see icfold.h.  It turns dwarf/stack/lookup.h into an interface that may grow
 * without breaking those who use it. */
#include "icf/lib/icfold.h"
#include "dwarf/stack/lookup.h"
#include "dwarf/stack/memo.h"
#include "elfrw/base/vec.h"
#include "elfrw/image.h"
#include "elfrw/note.h"
#include "icf/cli/version.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* An answer with what its accessors hand out, which is borrowed from the lookup and the handle. */
struct answer {
	icfold_answer a; /* first: users have its address */
	const icfold_frame *frame;
	const char *const *candidate;
};

/* An answer that levels with the same number get again: places in the pools of the handle. */
struct kept {
	icfold_answer a;
	uint32_t frame, candidate;
	bool known;
};

#define MAX_KEPT (1 << 20) /* frames, and candidates, that are kept */

struct icfold {
	struct dwr_sym *sym;
	struct dwr_lookup *lookup;
	struct elfrw_err *err; /* of the last call; owned */
	struct answer answer;
	VEC(icfold_frame) frame; /* of an answer that is not kept */
	VEC(struct kept) kept;   /* by dwr_lookup_same() */
	VEC(icfold_frame) kept_frame;
	VEC(const char *) kept_candidate;
	size_t n_levels;
	unsigned flags; /* DWR_SYM_* */
	int fd;         /* of a copy in memory, or -1 */
};

const char *icfold_version(void)
{
	return ICF_VERSION;
}

/* Keeps ERR for icfold_message(). */
static int fail(icfold *p, struct elfrw_err *err)
{
	elfrw_err_free(p->err);
	p->err = err;
	if (!err)
		return ICFOLD_OK;
	return err == &elfrw_err_nomem ? ICFOLD_NO_MEMORY : ICFOLD_ERROR;
}

/* OPTIONS as the reader takes them; members that its caller does not know are 0. */
static struct elfrw_err *take_options(const icfold_options *options, icfold *p,
				      struct dwr_sym_options *ret)
{
	icfold_options o = { 0 };
	if (options && (!options->size || options->size > sizeof o))
		return elfrw_error(options->size ? "options of a later version of the library"
						 : "options that do not say their size");
	if (options)
		memcpy(&o, options, options->size);
	p->flags = (o.flags & ICFOLD_LINKAGE_NAMES ? 0 : DWR_SYM_DEMANGLE) |
		   (o.flags & ICFOLD_NO_INLINES ? DWR_SYM_NO_INLINES : 0);
	*ret = (struct dwr_sym_options){ .path = o.flags & ICFOLD_BASENAMES ? DWR_SYM_BASENAME
						 : o.flags & ICFOLD_RELATIVE_NAMES
							 ? DWR_SYM_RELATIVE
							 : DWR_SYM_ABSOLUTE,
					 .own_only = o.flags & ICFOLD_OWN_FILE_ONLY,
					 .debug_file = o.debug_file,
					 .spelling = o.flags & ICFOLD_GNU_NAMES ? DWR_SPELLING_GNU
										: DWR_SPELLING_LLVM,
					 .debug_dir = o.debug_dir,
					 .sysroot = o.sysroot };
	return NULL;
}

static struct elfrw_err *open_path(icfold *p, const char *path, const icfold_options *options)
{
	struct dwr_sym_options o;
	ELFRW_TRY(take_options(options, p, &o));
	ELFRW_TRY(dwr_sym_open(path, &o, &p->sym));
	return dwr_lookup_open(p->sym, path, &p->lookup);
}

/* A handle, with what is at FD (owned) or PATH.  ERR: it cannot be. */
static int open_handle(struct elfrw_err *err, int fd, const char *path,
		       const icfold_options *options, icfold **ret)
{
	icfold *p = *ret = calloc(1, sizeof *p);
	if (!p) {
		elfrw_err_free(err);
		if (fd >= 0)
			close(fd);
		return ICFOLD_NO_MEMORY;
	}
	p->fd = fd;
	int status = fail(p, err ? err : open_path(p, path, options));
	if (status == ICFOLD_NO_MEMORY) {
		icfold_close(p);
		*ret = NULL;
	}
	return status;
}

int icfold_open(const char *path, const icfold_options *options, icfold **ret)
{
	return open_handle(NULL, -1, path, options, ret);
}

int icfold_open_fd(int fd, const icfold_options *options, icfold **ret)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open_handle(NULL, -1, path, options, ret);
}

static struct elfrw_err *copy_memory(const char *data, size_t size, int *ret)
{
	*ret = memfd_create("icfold", MFD_CLOEXEC);
	if (*ret < 0)
		return elfrw_error_errno(errno, "cannot copy a file in memory");
	while (size) {
		ssize_t n = write(*ret, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return elfrw_error_errno(n ? errno : ENOSPC,
						 "cannot copy a file in memory");
		data += n;
		size -= (size_t)n;
	}
	return NULL;
}

int icfold_open_memory(const void *data, size_t size, const icfold_options *options, icfold **ret)
{
	char path[64];
	int fd;
	struct elfrw_err *err = copy_memory(data, size, &fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open_handle(err, fd, path, options, ret);
}

void icfold_close(icfold *p)
{
	if (!p)
		return;
	dwr_lookup_close(p->lookup);
	dwr_sym_close(p->sym);
	elfrw_err_free(p->err);
	VEC_FREE(&p->frame);
	VEC_FREE(&p->kept);
	VEC_FREE(&p->kept_frame);
	VEC_FREE(&p->kept_candidate);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

const char *icfold_message(const icfold *p)
{
	if (!p)
		return elfrw_err_text(&elfrw_err_nomem);
	return p->err ? elfrw_err_text(p->err) : "no error";
}

const char *icfold_warning(const icfold *p)
{
	return p && p->lookup ? dwr_lookup_warning(p->lookup) : NULL;
}

int icfold_is_folded(const icfold *p)
{
	return p && p->lookup && dwr_lookup_tables(p->lookup) &&
	       dwr_callchain_note(dwr_lookup_tables(p->lookup));
}

const uint8_t *icfold_build_id(const icfold *p, size_t *size)
{
	const struct elfrw_image *img = p && p->lookup ? dwr_lookup_image(p->lookup) : NULL;
	uint32_t n = 0;
	const uint8_t *id = img && img->arch ? elfrw_build_id(img, &n) : NULL;
	*size = n;
	return id;
}

int icfold_stack(icfold *p, const uint64_t *address, const uint64_t *vtable, size_t n)
{
	if (!p || !p->lookup)
		return ICFOLD_ERROR;
	p->n_levels = 0;
	int status = fail(p, dwr_lookup_resolve(p->lookup, address, vtable, n));
	if (status == ICFOLD_OK)
		p->n_levels = n;
	return status;
}

static struct elfrw_err *answer_level(icfold *p, size_t i)
{
	struct answer *a = &p->answer;
	struct dwr_level l;
	ELFRW_TRY(dwr_lookup_level(p->lookup, i, p->flags, &l));
	p->frame.len = 0;
	for (size_t k = 0; k < l.frames->len; k++) {
		const struct dwr_sym_frame *f = &l.frames->data[k];
		icfold_frame *slot = VEC_PUSH(&p->frame);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (icfold_frame){ .function = f->function,
					.linkage = f->linkage,
					.file = f->file,
					.line = f->line,
					.column = f->column,
					.discriminator = f->discriminator,
					.start_line = f->start_line,
					.start_address =
						f->has_start_address ? f->start_address : 0,
					.inlined = f->inlined };
	}
	*a = (struct answer){ .a = { .n_frames = p->frame.len,
				     .shared = l.merged,
				     .decided = l.decided,
				     .n_candidates = l.n_candidates,
				     .decided_by = l.by },
			      .frame = p->frame.data,
			      .candidate = l.candidate };
	return dwr_sym_complete(p->sym);
}

/* Keeps the answer for NUMBER.  Without memory it is asked for again. */
static void keep(icfold *p, uint32_t number)
{
	const struct answer *a = &p->answer;
	if (a->a.n_frames > MAX_KEPT - p->kept_frame.len ||
	    a->a.n_candidates > MAX_KEPT - p->kept_candidate.len)
		return;
	while (p->kept.len <= number)
		if (!VEC_PUSH(&p->kept))
			return;
	struct kept *k = &p->kept.data[number];
	*k = (struct kept){ .a = a->a,
			    .frame = (uint32_t)p->kept_frame.len,
			    .candidate = (uint32_t)p->kept_candidate.len };
	k->known = VEC_APPEND(&p->kept_frame, a->frame, a->a.n_frames) &&
		   VEC_APPEND(&p->kept_candidate, a->candidate, a->a.n_candidates);
}

int icfold_level(icfold *p, size_t i, const icfold_answer **ret)
{
	if (!p || !p->lookup)
		return ICFOLD_ERROR;
	if (i >= p->n_levels)
		return fail(p, elfrw_error("the stack has no level %zu", i));
	*ret = &p->answer.a;
	uint32_t number = dwr_lookup_same(p->lookup, i);
	if (number < p->kept.len && p->kept.data[number].known) {
		const struct kept *k = &p->kept.data[number];
		p->answer = (struct answer){ .a = k->a };
		if (k->a.n_frames)
			p->answer.frame = p->kept_frame.data + k->frame;
		if (k->a.n_candidates)
			p->answer.candidate = p->kept_candidate.data + k->candidate;
		return fail(p, NULL);
	}
	int status = fail(p, answer_level(p, i));
	if (status == ICFOLD_OK && number != DWR_MEMO_NONE)
		keep(p, number);
	return status;
}

int icfold_address(icfold *p, uint64_t address, const icfold_answer **ret)
{
	int status = icfold_stack(p, &address, NULL, 1);
	return status == ICFOLD_OK ? icfold_level(p, 0, ret) : status;
}

const icfold_frame *icfold_answer_frame(const icfold_answer *answer, size_t i)
{
	const struct answer *a = (const struct answer *)answer;
	return a && i < a->a.n_frames ? &a->frame[i] : NULL;
}

const char *icfold_answer_candidate(const icfold_answer *answer, size_t i)
{
	const struct answer *a = (const struct answer *)answer;
	return a && i < a->a.n_candidates ? a->candidate[i] : NULL;
}
