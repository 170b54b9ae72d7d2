/* verify.c: the order of the verifier's steps.
 *
 * First the files are opened and the claim is read.  Then code is compared with code; then data,
 * with the tables found in the code; then everything that describes code and data.  Cost: one pass
 * over IN's code, one over the data, one over the debug information of both files. */
#include "elfrw/pair.h"
#include "elfrw/base/heap.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/regular.h"
#include "icf/verify/state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t count_wrong(const struct icf_vlog *log)
{
	uint64_t n = 0;
	for (int c = 0; c < ICF_VC_CHECKS; c++)
		n += log->wrong[c];
	return n;
}

/* If libdw and libelf run out of memory, they call the file broken or see less of it.  A later ERR,
 * or a difference, is then worthless.  errno is only a hint: malloc() leaves ENOMEM behind if a
 * thread's own arena had no room and another one had, which happens with the tables of large
 * programs.  There, ENOMEM counts only if something is wrong, and icf_verify() asks again. */
#define SMALL (32u << 20)
struct elfrw_err *icf_v_unless_nomem(struct icf_v *v, const struct icf_vlog *log,
				     struct elfrw_err *err)
{
	if (errno == ENOMEM)
		__atomic_store_n(&v->hint, true, __ATOMIC_RELAXED);
	errno = 0;
	if (!__atomic_load_n(&v->hint, __ATOMIC_RELAXED) || v->sure ||
	    (!err && !count_wrong(log) && v->claim.in.size > SMALL) || err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err);
	__atomic_store_n(&v->doubt, true, __ATOMIC_RELAXED);
	return &elfrw_err_nomem;
}

/* Is there a file to look at? */
static struct elfrw_err *can_read(const char *path)
{
	int fd = elfrw_open_regular(path);
	if (fd < 0 && (errno == EISDIR || errno == EINVAL))
		return elfrw_error("%s: is no regular file", path);
	if (fd < 0)
		return elfrw_error_errno(errno, "%s: cannot open", path);
	close(fd);
	return NULL;
}

struct elfrw_err *icf_v_named(const char *path, struct elfrw_err *err)
{
	return elfrw_err_about(path, err);
}

static struct elfrw_err *read_frames(struct icf_v *v)
{
	const struct elfrw_section *s = elfrw_image_section(&v->claim.in, ".eh_frame");
	v->claim.frame_lo = s ? s->hdr.sh_addr : 0;
	v->claim.frame_hi = s && s->data ? s->hdr.sh_addr + s->hdr.sh_size : v->claim.frame_lo;
	return icf_v_named(v->claim.in.path, dwr_eh_frame_read(&v->claim.cfi_in, &v->claim.in,
							       v->claim.arch->address_size));
}

/* Are code and debug information the same bytes at the same places?  Then the debug information is
 * as correct as it was, even about padding. */
static bool all_stayed(struct icf_v *v)
{
	uint32_t more = 0; /* sections of OUT */
	if (v->claim.has_note)
		return false;
	for (uint32_t i = 1; i < v->claim.out.n_sections; i++)
		more += icf_v_is_debug_name(v->claim.out.section[i].name);
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		const struct elfrw_section *a = &v->claim.in.section[i];
		if (!(a->hdr.sh_flags & SHF_EXECINSTR) && !icf_v_is_debug_name(a->name))
			continue;
		const struct elfrw_section *b =
			v->claim.to_out[i] ? &v->claim.out.section[v->claim.to_out[i]] : NULL;
		if (!b || a->hdr.sh_addr != b->hdr.sh_addr || a->hdr.sh_size != b->hdr.sh_size ||
		    a->hdr.sh_flags != b->hdr.sh_flags || !a->data != !b->data ||
		    (a->data && memcmp(a->data, b->data, a->hdr.sh_size) != 0))
			return false;
		more -= icf_v_is_debug_name(a->name);
		v->log.checked[ICF_VC_SECTION]++;
	}
	return !more;
}

/* Called after each step: a later step may change errno. */
#define STEP(expr) ELFRW_TRY(icf_v_unless_nomem(v, &v->log, expr))

/* Gives back the memory of what was read: the next steps read mostly other sections. */
static void forget(const struct icf_v *v)
{
	elfrw_image_forget(&v->claim.in);
	elfrw_image_forget(&v->claim.out);
}

/* What describes the code, besides debug information; takes one thread. */
static struct elfrw_err *check_tables(struct icf_v *v)
{
	STEP(icf_v_check_unwind(v));
	STEP(icf_v_check_symbols(&v->claim, &v->log));
	icf_v_check_lookups(&v->claim, &v->log);
	icf_v_check_places(&v->claim, &v->log);
	STEP(icf_v_check_note(v));
	STEP(icf_v_check_relocs(&v->claim, &v->words, &v->log));
	STEP(icf_v_check_file(&v->claim, &v->log));
	return NULL;
}

static struct elfrw_err *run(struct icf_v *v)
{
	v->claim.arch = v->claim.in.arch;
	ELFRW_TRY(icf_v_bound(&v->claim.in));
	ELFRW_TRY(icf_v_bound(&v->claim.out));
	ELFRW_TRY(icf_v_sections(v));
	if (v->incomplete)
		return icf_v_check_file(&v->claim, &v->log);
	ELFRW_TRY(read_frames(v));
	struct elfrw_err *err = icf_v_claim(v);
	if (err && err != &elfrw_err_nomem) {
		/* No claim: trouble, unless the file is also broken. */
		struct elfrw_err *more = icf_v_check_file(&v->claim, &v->log);
		uint64_t wrong = 0;
		for (int c = 0; c < ICF_VC_CHECKS; c++)
			wrong += v->log.wrong[c];
		if (!more && !wrong)
			return err;
		elfrw_err_free(err);
		return more;
	}
	ELFRW_TRY(err);
	STEP(icf_v_find_words(v));
	if (!v->claim.has_note)
		ELFRW_TRY(icf_v_extend_units(v));
	if (v->claim.inferred)
		STEP(icf_v_find_pads(v));
	icf_v_lost_range(v);
	STEP(icf_v_measure_data(v));
	forget(v);
	STEP(icf_v_check_code(v));
	STEP(icf_v_mark_guesses(v));
	forget(v);
	if (v->claim.inferred)
		STEP(icf_v_infer_words(v));
	STEP(icf_v_find_ends(v));
	STEP(icf_v_find_tables(v));
	STEP(icf_v_check_tables(v));
	STEP(icf_v_check_halves(v));
	forget(v);
	STEP(icf_v_check_layout(v));
	STEP(icf_v_check_slots(v));
	forget(v);
	STEP(icf_v_check_marks(&v->claim, &v->log));
	forget(v);
	STEP(icf_v_check_data(v));
	icf_v_check_bare(v);
	forget(v);
	icf_v_check_maps(v);
	icf_v_check_astray(v);
	forget(v);
	STEP(icf_v_check_dynamic(&v->claim, &v->words, &v->log));
	icf_v_check_removed(&v->claim, &v->words, v->opt->gc_functions, &v->log);
	STEP(icf_v_check_unreached(v));
	forget(v);
	return v->opt->no_debug || all_stayed(v) ? check_tables(v)
						 : icf_v_check_debug(v, check_tables);
}

/* Is OUT unchanged, because nothing was worth folding? */
static bool same_bytes(const struct icf_v *v)
{
	return !v->claim.in.pair && !v->claim.out.pair && v->claim.in.size == v->claim.out.size &&
	       memcmp(v->claim.in.base, v->claim.out.base, v->claim.in.size) == 0;
}

static int diff_order(const void *a, const void *b, void *arg)
{
	const struct icf_verify_diff *base = arg, *x = &base[*(const uint32_t *)a],
				     *y = &base[*(const uint32_t *)b];
	if (x->check != y->check)
		return x->check < y->check ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Delivers the differences by check, otherwise in the order in which they were found. */
static struct elfrw_err *deliver(struct icf_v *v, struct icf_verify_result *ret)
{
	struct icf_vlog *log = &v->log;
	uint32_t *order = malloc((log->diff.len + 1) * sizeof *order);
	if (!order || log->nomem || !VEC_RESERVE(&ret->diff, log->diff.len)) {
		free(order);
		return &elfrw_err_nomem;
	}
	for (uint32_t i = 0; i < log->diff.len; i++)
		order[i] = i;
	qsort_r(order, log->diff.len, sizeof *order, diff_order, log->diff.data);
	for (uint32_t i = 0; i < log->diff.len; i++)
		ret->diff.data[ret->diff.len++] = log->diff.data[order[i]];
	log->diff.len = 0;
	free(order);
	ret->equal = true;
	for (int c = 0; c < ICF_VC_CHECKS; c++) {
		ret->checked[c] = log->checked[c];
		ret->wrong[c] = log->wrong[c];
		ret->equal &= !log->wrong[c];
	}
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		ret->n_folded += (v->claim.unit.data[i].flags & ICF_V_FOLDED) != 0 &&
				 !icf_v_removed(&v->claim, i);
		ret->n_thunks += v->claim.unit.data[i].thunk != 0;
	}
	ret->n_units = (uint32_t)v->claim.unit.len;
	ret->n_removed = v->claim.n_removed;
	ret->places_undecided = v->places_undecided;
	ret->calls_undecided = v->calls_undecided;
	ret->from_note = v->claim.has_note;
	ret->same = same_bytes(v);
	return NULL;
}

static void deinit(struct icf_v *v)
{
	dwr_cfi_deinit(&v->claim.cfi_in);
	dwr_cfi_deinit(&v->claim.cfi_out);
	if (v->claim.has_note)
		dwr_icfold_deinit(&v->claim.note);
	if (v->claim.note_secs.image)
		dwr_sections_deinit(&v->claim.note_secs);
	icf_vlog_deinit(&v->log);
	VEC_FREE(&v->claim.exec);
	VEC_FREE(&v->claim.unit);
	VEC_FREE(&v->words.word);
	VEC_FREE(&v->words.table);
	VEC_FREE(&v->words.dynreloc);
	VEC_FREE(&v->words.end);
	VEC_FREE(&v->base);
	VEC_FREE(&v->objref);
	VEC_FREE(&v->pair);
	VEC_FREE(&v->alias);
	VEC_FREE(&v->span);
	VEC_FREE(&v->entered.v);
	VEC_FREE(&v->run);
	VEC_FREE(&v->named.v);
	VEC_FREE(&v->absolute.v);
	free(v->same);
	free(v->claim.exec_at);
	VEC_FREE(&v->frameref);
	VEC_FREE(&v->call);
	VEC_FREE(&v->jump);
	VEC_FREE(&v->taken);
	VEC_FREE(&v->pad);
	VEC_FREE(&v->site.v);
	free(v->claim.to_out);
	free(v->claim.from_out);
	elfrw_blocks_deinit(&v->claim.blocks);
	free(v->claim.by_new);
	free(v->claim.by_thunk);
	free(v->words.filter);
	elfrw_image_close(&v->claim.in);
	elfrw_image_close(&v->claim.out);
}

static struct elfrw_err *open_one(struct elfrw_image *img, const char *path, const char *debug_file)
{
	return debug_file ? elfrw_pair_open(img, path, debug_file) : elfrw_image_open(img, path);
}

/* SURE: ignore errno.  *DOUBT: errno mattered. */
static struct elfrw_err *compare(const char *in, const char *out,
				 const struct icf_verify_options *opt, bool sure, bool *doubt,
				 struct icf_verify_result *ret)
{
	struct icf_v v = { .opt = opt, .sure = sure };
	*ret = (struct icf_verify_result){ 0 };
	v.log.max = opt->max_diffs ? opt->max_diffs : 20;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	v.threads = elfrw_threads_for_limits(opt->threads ? opt->threads
					     : cpus > 0   ? (unsigned)cpus
							  : 1);
	struct elfrw_err *err = icf_v_named(in, open_one(&v.claim.in, in, opt->debug_in));
	if (!err) {
		/* A result that is no sound ELF file differs from a sound one. */
		struct elfrw_err *broken = open_one(&v.claim.out, out, opt->debug_out);
		if (broken && elfrw_err_is_system(broken))
			err = icf_v_named(out, broken);
		else if (broken) {
			icf_vlog_bad(&v.log, ICF_VC_FILE,
				     "file: %s: expected an ELF file, found: %s", out,
				     elfrw_err_text(broken));
			elfrw_err_free(broken);
		} else if (v.claim.out.arch != v.claim.in.arch)
			icf_vlog_bad(&v.log, ICF_VC_FILE, "machine: expected %s, found %s",
				     v.claim.in.arch->name, v.claim.out.arch->name);
		else if (same_bytes(&v))
			v.log.checked[ICF_VC_FILE]++;
		else {
			elfrw_heap_reserve(v.claim.in.size / 2);
			errno = 0;
			err = icf_v_unless_nomem(&v, &v.log, run(&v));
		}
	}
	if (!err)
		err = deliver(&v, ret);
	if (err)
		icf_verify_result_deinit(ret);
	*doubt = v.doubt;
	deinit(&v);
	return err;
}

struct elfrw_err *icf_verify(const char *in, const char *out, const struct icf_verify_options *opt,
			     struct icf_verify_result *ret)
{
	bool doubt;
	ELFRW_TRY(can_read(in));
	ELFRW_TRY(can_read(out));
	struct elfrw_err *err = compare(in, out, opt, false, &doubt, ret);
	if (!err || !doubt)
		return err;
	/* Either there was no memory, or something is wrong.  If there is memory now, the second
	 * answer counts. */
	void *much = malloc(64u << 20);
	if (!much)
		return err;
	free(much);
	return compare(in, out, opt, true, &doubt, ret);
}
