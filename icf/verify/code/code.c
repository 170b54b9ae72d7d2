/* code.c: compares the instructions of both files in lockstep.
 *
 * For every claimed unit, kept or folded, the instructions at its old place in IN are compared with
 * the bytes at its claimed place in OUT.  Outside of reference fields each byte must be the same.
 * Each reference field must lead to the image of its old target.  A folded unit's place is the copy
 * of another unit, so the same comparison proves the fold: the references of both lead to the same
 * things.
 *
 * Two cases need a second look.  If such a pair refers to two different places in data, these must
 * be jump tables of the same meaning, which is known once all tables are.  If the pair branches to
 * two different units, these must be the same code.  That is assumed, recorded and proved like a
 * fold, until no new assumption appears.
 *
 * One pass over IN's code, in parts that threads take in turn; only IN is decoded. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/sort.h"
#include "elfrw/arch/symbol.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <stdlib.h>
#include <string.h>

#define PART 256 /* units */
#define KEPT 64  /* parts whose pages are kept in memory */

static struct elfrw_err *check_part(void *arg, size_t p)
{
	struct icf_vcode_job *job = arg;
	struct icf_vcode_part *part = &job->part[p];
	part->log.max = job->v->log.max;
	for (uint32_t i = (uint32_t)p * PART; i < (p + 1) * PART && i < job->v->claim.unit.len; i++)
		icf_vcode_unit(job, part, i, &job->v->claim.unit.data[i]);
	/* Other parts are elsewhere; what a thread still needs is read again. */
	if (p % KEPT == KEPT - 1) {
		elfrw_image_forget(&job->v->claim.in);
		elfrw_image_forget(&job->v->claim.out);
	}
	return part->log.nomem ? &elfrw_err_nomem : NULL;
}

/* Is SYM, of table S, a mapping symbol with data behind it? */
static bool begins_data(const struct elfrw_image *img, const struct elfrw_section *s,
			const Elf64_Sym *sym)
{
	const char *name = elfrw_image_string(img, s->hdr.sh_link, sym->st_name);
	return name && elfrw_symbol_is_mapping(&img->ehdr, ELF64_ST_TYPE(sym->st_info), name) &&
	       elfrw_symbol_begins_data(name);
}

static struct elfrw_err *find_objects(struct icf_vcode_job *job)
{
	const struct elfrw_image *img = &job->v->claim.in;
	const struct elfrw_section *s = &img->section[img->symtab];
	for (struct elfrw_symbols it = elfrw_symbols(img->symtab ? s : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_shndx >= img->n_sections ||
		    !(img->section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR) ||
		    (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT && !begins_data(img, s, &sym)))
			continue;
		uint64_t *slot = VEC_PUSH(&job->objects);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = sym.st_value;
	}
	if (job->objects.len)
		qsort(job->objects.data, job->objects.len, sizeof *job->objects.data,
		      elfrw_u64_order);
	return NULL;
}

/* Adds FROM to TO and frees it; sets *OK to false where there is no memory. */
#define GATHER(to, from, ok) (*(ok) &= VEC_APPEND(to, (from)->data, (from)->len), VEC_FREE(from))

static struct elfrw_err *gather(struct icf_vcode_job *job, struct icf_vcode_part *part)
{
	struct icf_v *v = job->v;
	bool ok = true;
	icf_vlog_merge(&v->log, &part->log);
	GATHER(&v->call, &part->call, &ok);
	GATHER(&v->jump, &part->jump, &ok);
	GATHER(&v->taken, &part->taken, &ok);
	GATHER(&v->site.v, &part->site.v, &ok);
	GATHER(&v->frameref, &part->frameref, &ok);
	GATHER(&v->base, &part->base, &ok);
	GATHER(&v->objref, &part->objref, &ok);
	GATHER(&v->pair, &part->pair, &ok);
	GATHER(&v->alias, &part->alias, &ok);
	GATHER(&v->span, &part->span, &ok);
	GATHER(&v->entered.v, &part->entered.v, &ok);
	GATHER(&job->outside, &part->outside, &ok);
	VEC_FREE(&part->inner);
	VEC_FREE(&part->whole);
	VEC_FREE(&part->place);
	return ok ? NULL : &elfrw_err_nomem;
}

static uint32_t root(uint32_t *same, uint32_t i)
{
	while (same[i] != i)
		i = same[i] = same[same[i]];
	return i;
}

/* Proves the recorded assumptions, and those that these proofs make.  "Is the same code as" is an
 * equivalence.  Each pair is proved while the others are assumed, so a pair that follows from
 * earlier ones needs no proof of its own.  So there are at most as many proofs as units, although
 * two rings of functions could pair in any combination. */
static struct elfrw_err *check_aliases(struct icf_vcode_job *job)
{
	struct icf_v *v = job->v;
	struct icf_vcode_part part = { .log.max = v->log.max };
	struct elfrw_err *err = NULL;
	size_t n = 0;
	if (!v->alias.len)
		return NULL;
	v->same = malloc(v->claim.unit.len * sizeof *v->same);
	if (!v->same)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->claim.unit.len; i++)
		v->same[i] = i;
	for (size_t i = 0; i < v->alias.len && !err; i++) {
		struct icf_valias a = v->alias.data[i];
		uint32_t x = root(v->same, a.unit), y = root(v->same, a.other);
		if (x == y)
			continue;
		v->same[x] = y;
		v->alias.data[n++] = a;
		struct icf_vunit u = v->claim.unit.data[a.unit];
		u.flags = ICF_V_FOLDED;
		u.kept = a.other;
		u.body = v->claim.unit.data[a.other].body;
		icf_vcode_unit(job, &part, a.unit, &u);
		err = part.log.nomem ? &elfrw_err_nomem : NULL;
		struct elfrw_err *e = gather(job, &part);
		err = err ? err : e;
	}
	v->alias.len = n;
	for (uint32_t i = 0; i < v->claim.unit.len; i++)
		v->same[i] = root(v->same, i);
	return err;
}

/* Sets `still` of the executable sections. */
static void find_still(struct icf_v *v)
{
	for (size_t i = 0; i < v->claim.exec.len; i++)
		v->claim.exec.data[i].still = true;
	for (size_t i = 0; i < v->claim.unit.len; i++)
		if (v->claim.unit.data[i].entry != v->claim.unit.data[i].old)
			v->claim.exec.data[v->claim.unit.data[i].exec].still = false;
}

struct elfrw_err *icf_v_check_code(struct icf_v *v)
{
	struct icf_vcode_job job = { .v = v, .got = elfrw_image_section(&v->claim.in, ".got") };
	size_t n = (v->claim.unit.len + PART - 1) / PART;
	find_still(v);
	icf_vcode_find_padding(&v->claim);
	job.rel = calloc(v->claim.exec.len, sizeof *job.rel);
	job.part = calloc(n + 1, sizeof *job.part);
	struct elfrw_err *err = job.rel && job.part ? find_objects(&job) : &elfrw_err_nomem;
	if (!err)
		err = icf_vcode_find_literals(&job);
	for (size_t i = 0; i < v->claim.exec.len && !err; i++)
		err = icf_v_named(v->claim.in.path, elfrw_relocs_open(&job.rel[i], &v->claim.in,
								      v->claim.exec.data[i].in));
	if (!err)
		err = elfrw_parallel(v->threads, n, check_part, &job);
	for (size_t i = 0; i < n && job.part; i++) {
		struct elfrw_err *e = gather(&job, &job.part[i]);
		if (!err)
			err = e;
	}
	if (!err)
		err = check_aliases(&job);
	if (!err) {
		struct icf_vcode_part part = { .log.max = v->log.max };
		icf_vcode_check_outside(&job, &part);
		err = part.log.nomem ? &elfrw_err_nomem : NULL;
		struct elfrw_err *e = gather(&job, &part);
		err = err ? err : e;
	}
	for (size_t i = 0; i < v->claim.exec.len && job.rel; i++)
		elfrw_relocs_close(&job.rel[i]);
	VEC_FREE(&job.objects);
	VEC_FREE(&job.outside);
	free(job.rel);
	free(job.part);
	return err;
}
