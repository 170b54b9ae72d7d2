/* product.c: see product.h.  The steps, the sums, and what the reports share. */
#include "icf/audit/product/product.h"
#include "icf/audit/product/collect.h"
#include "icf/audit/product/jobs.h"
#include "icf/audit/product/share.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct elfrw_err *map_spool(struct icf_product *p)
{
	if (!p->map_size || ftruncate(p->spool, (off_t)p->map_size) != 0)
		return NULL;
	void *map = mmap(NULL, p->map_size, PROT_READ, MAP_SHARED, p->spool, 0);
	if (map == MAP_FAILED)
		return elfrw_error_errno(errno, "cannot map a temporary file");
	p->map = map;
	return NULL;
}

const struct icf_product_func *icf_product_funcs(const struct icf_product *p, uint32_t file)
{
	return (const struct icf_product_func *)icf_product_kept(p, file);
}

const uint8_t *icf_product_kept(const struct icf_product *p, uint32_t file)
{
	return p->map + p->file.data[file].facts.spool;
}

const char *icf_product_text(const struct icf_product *p, uint32_t file, uint32_t off)
{
	const struct icf_product_facts *f = &p->file.data[file].facts;
	if (off >= f->n_strings)
		return NULL;
	return (const char *)(icf_product_funcs(p, file) + f->n_func) + off;
}

/* Files that turned out to be copies: the same bytes (members of archives), or the same build-id
 * and code (a program and the same without symbols). */
static bool same_program(const struct icf_product_facts *a, const struct icf_product_facts *b)
{
	if (memcmp(a->content, b->content, sizeof a->content) == 0)
		return true;
	return a->has_build_id && b->has_build_id &&
	       memcmp(a->build_id, b->build_id, sizeof a->build_id) == 0 &&
	       memcmp(a->code_hash, b->code_hash, sizeof a->code_hash) == 0;
}

/* Of the same code, the largest file comes first: it is the one with symbols. */
static int code_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product_file *file = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = memcmp(file[x].facts.code_hash, file[y].facts.code_hash,
		       sizeof file[x].facts.code_hash);
	if (!c && file[x].size != file[y].size)
		return file[x].size > file[y].size ? -1 : 1;
	return c ? c : x < y ? -1 : x > y;
}

static struct elfrw_err *find_copies(struct icf_product *p)
{
	uint32_t *id = malloc((p->file.len + 1) * sizeof *id), n = 0;
	struct icf_product_file *file = p->file.data;
	if (!id)
		return &elfrw_err_nomem;
	for (size_t k = 0; k < p->file.len; k++)
		if (file[k].state == ICF_FILE_DONE)
			id[n++] = (uint32_t)k;
	if (n)
		qsort_r(id, n, sizeof *id, code_order, file);
	for (uint32_t k = 0, e; k < n; k = e) {
		e = k + 1;
		while (e < n && memcmp(file[id[k]].facts.code_hash, file[id[e]].facts.code_hash,
				       sizeof file[id[k]].facts.code_hash) == 0)
			e++;
		for (uint32_t i = k + 1; i < e; i++)
			for (uint32_t o = k; o < i; o++)
				if (file[id[o]].state == ICF_FILE_DONE &&
				    same_program(&file[id[o]].facts, &file[id[i]].facts)) {
					file[id[i]].state = ICF_FILE_COPY;
					file[id[i]].copy_of = id[o];
					break;
				}
	}
	free(id);
	return NULL;
}

/* A file whose first copy could not be analysed cannot be, either, and for the same reason. */
static struct elfrw_err *settle_copies(struct icf_product *p)
{
	for (size_t k = 0; k < p->file.len; k++) {
		struct icf_product_file *f = &p->file.data[k];
		if (f->state != ICF_FILE_COPY)
			continue;
		while (p->file.data[f->copy_of].state == ICF_FILE_COPY)
			f->copy_of = p->file.data[f->copy_of].copy_of;
		const struct icf_product_file *of = &p->file.data[f->copy_of];
		if (of->state == ICF_FILE_BAD)
			ELFRW_TRY(icf_product_bad(f, "%s", of->why));
		else {
			const uint64_t content[2] = { f->facts.content[0], f->facts.content[1] };
			f->facts = of->facts;
			memcpy(f->facts.content, content, sizeof content);
		}
	}
	return NULL;
}

static void add_up(struct icf_product *p)
{
	struct icf_product_facts *t = &p->total;
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *f = &p->file.data[k];
		p->done += f->state == ICF_FILE_DONE;
		p->copies += f->state == ICF_FILE_COPY;
		p->bad += f->state == ICF_FILE_BAD;
		if (f->state != ICF_FILE_DONE)
			continue;
		t->code += f->facts.code;
		t->text += f->facts.text;
		t->functions += f->facts.functions;
		t->unused += f->facts.unused;
		t->unused_functions += f->facts.unused_functions;
		t->unused_known |= f->facts.unused_known;
		for (int m = 0; m < ICF_AUDIT_MODES; m++) {
			t->duplicated[m] += f->facts.duplicated[m];
			t->saved[m] += f->facts.saved[m];
			t->folded[m] += f->facts.folded[m];
		}
	}
}

struct elfrw_err *icf_product_analyse(struct icf_product *p, char **operand, int n,
				      const struct icf_product_options *opt)
{
	ELFRW_TRY(icf_product_collect(p, operand, n));
	ELFRW_TRY(icf_product_mark_copies(p));
	ELFRW_TRY(icf_product_run(p, opt));
	ELFRW_TRY(find_copies(p));
	ELFRW_TRY(settle_copies(p));
	add_up(p);
	ELFRW_TRY(map_spool(p));
	return opt->reader ? NULL : icf_product_share(p, &opt->audit);
}

void icf_product_deinit(struct icf_product *p)
{
	for (size_t k = 0; k < p->file.len; k++) {
		free(p->file.data[k].name);
		free(p->file.data[k].path);
		free(p->file.data[k].package);
		free(p->file.data[k].why);
	}
	VEC_FREE(&p->file);
	VEC_FREE(&p->group);
	VEC_FREE(&p->member);
	VEC_FREE(&p->pair);
	icf_pool_deinit(&p->pool);
	if (p->map)
		munmap((void *)p->map, p->map_size);
	if (p->spool >= 0)
		close(p->spool);
	*p = (struct icf_product){ .spool = -1 };
}

const char *icf_product_level_key(unsigned level)
{
	static const char *const text[] = { [ICF_LEVEL_RELOCS] = "relocations",
					    [ICF_LEVEL_INFERRED] = "inferred",
					    [ICF_LEVEL_IN_PLACE] = "in-place" };
	return text[level];
}
