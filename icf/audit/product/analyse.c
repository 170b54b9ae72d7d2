/* analyse.c: see analyse.h.
 *
 * One run of the stages serves the plans of both modes and the search for what is unused, which
 * comes last because it changes the units.  Names stay as the linker wrote them: only those that
 * the report shows are made readable. */
#include "icf/audit/product/analyse.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/note.h"
#include "elfrw/pair.h"
#include "icf/fold/unused.h"
#include "icf/hash/hash.h"
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define TEXT_MAX 4096 /* longest string that is kept of a file */

struct reading {
	struct icf_audit a;
	struct icf_product_facts *facts;
	const struct icf_audit_options *opt;
	struct icf_pool pool;  /* of the file's strings */
	struct icf_hash *hash; /* by unit; owned */
};

/* Strings of a file start in its pool where they start in the spool. */
static struct elfrw_err *add(struct reading *r, const char *s, uint32_t *ret)
{
	size_t n = strnlen(s, TEXT_MAX);
	uint32_t id = icf_pool_add(&r->pool, s, n);
	if (id == ICF_POOL_NONE)
		return &elfrw_err_nomem;
	if (r->pool.start.data[id] >= ICF_PRODUCT_NO_TEXT)
		return elfrw_error("has too many names");
	*ret = (uint32_t)r->pool.start.data[id];
	return NULL;
}

static void hash_bytes(const void *p, size_t n, uint64_t ret[2])
{
	XXH128_hash_t h = XXH3_128bits(p, n);
	ret[0] = h.low64;
	ret[1] = h.high64;
}

static void hash_file(const struct icf_audit *a, struct icf_product_facts *facts)
{
	const struct elfrw_image *img = &a->run.img;
	const struct icf_program *prog = &a->run.prog;
	const struct elfrw_image *file = img->pair ? &img->pair->program : img;
	XXH3_state_t *s = XXH3_createState();
	uint32_t n = 0;
	hash_bytes(file->base, file->size, facts->content);
	if (s) {
		XXH3_128bits_reset(s);
		for (size_t e = 0; e < prog->exec.len; e++) {
			const struct elfrw_section *x = &img->section[prog->exec.data[e].shndx];
			if (x->data)
				XXH3_128bits_update(s, x->data, x->hdr.sh_size);
		}
		XXH128_hash_t h = XXH3_128bits_digest(s);
		facts->code_hash[0] = h.low64;
		facts->code_hash[1] = h.high64;
	}
	XXH3_freeState(s);
	const uint8_t *id = elfrw_build_id(img, &n);
	facts->has_build_id = id && s;
	if (id)
		memcpy(facts->build_id, id,
		       n < sizeof facts->build_id ? n : sizeof facts->build_id);
}

static struct elfrw_err *find_soname(struct reading *r)
{
	const struct elfrw_image *img = &r->a.run.img;
	const struct elfrw_section *s = img->dynamic ? &img->section[img->dynamic] : NULL;
	r->facts->soname = ICF_PRODUCT_NO_TEXT;
	for (uint64_t k = 0; s && s->data && k + sizeof(Elf64_Dyn) <= s->hdr.sh_size;
	     k += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + k, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		const char *name = d.d_tag == DT_SONAME
					   ? elfrw_image_string(img, s->hdr.sh_link, d.d_un.d_val)
					   : NULL;
		if (name && *name)
			return add(r, name, &r->facts->soname);
	}
	return NULL;
}

/* What --gc-functions would find.  Changes the units. */
static struct elfrw_err *find_unused(struct reading *r, const struct icf_options *base)
{
	struct icf_program *prog = &r->a.run.prog;
	struct icf_options opt = *base;
	opt.gc_functions = ICF_GC_OBJECTS;
	opt.strip_debug = true;
	if (icf_unused_obstacle(prog, &opt))
		return NULL;
	ELFRW_TRY(icf_find_unused(prog, &opt, NULL));
	r->facts->unused_known = true;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (!(u->flags & ICF_UNIT_UNUSED))
			continue;
		r->facts->unused_functions++;
		r->facts->unused += u->end - u->start;
	}
	return NULL;
}

void icf_product_facts_of(const struct icf_audit *a, struct icf_product_facts *f)
{
	hash_file(a, f);
	f->code = a->code;
	f->text = a->text;
	f->functions = a->functions;
	f->level = a->in_place            ? ICF_LEVEL_IN_PLACE
		   : a->run.prog.inferred ? ICF_LEVEL_INFERRED
					  : ICF_LEVEL_RELOCS;
	for (int m = 0; m < ICF_AUDIT_MODES; m++) {
		f->duplicated[m] = a->total[m].duplicated;
		f->folded[m] = a->total[m].folded;
		f->saved[m] =
			a->text > a->total[m].text_after ? a->text - a->total[m].text_after : 0;
	}
}

static struct elfrw_err *find_source(struct reading *r, uint64_t address,
				     struct icf_product_func *func)
{
	struct dwr_sym_source src;
	char path[TEXT_MAX];
	ELFRW_TRY(dwr_sym_source(r->a.sym, address, &src));
	if (src.file) {
		ELFRW_TRY(add(r, src.file, &func->source));
		func->line = src.line;
	}
	if (!src.unit)
		return NULL;
	if (src.comp_dir && *src.unit != '/')
		snprintf(path, sizeof path, "%s/%s", src.comp_dir, src.unit);
	else
		snprintf(path, sizeof path, "%s", src.unit);
	return add(r, path, &func->unit);
}

static struct elfrw_err *list_functions(struct reading *r, struct elfrw_wbuf *lines)
{
	const struct icf_program *prog = &r->a.run.prog;
	char number[32];
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		struct icf_product_func func = { .size = (uint32_t)(u->end - u->start),
						 .name = ICF_PRODUCT_NO_TEXT,
						 .source = ICF_PRODUCT_NO_TEXT,
						 .unit = ICF_PRODUCT_NO_TEXT };
		if (u->kind != ICF_UNIT_FUNC || u->end - u->start > UINT32_MAX)
			continue;
		func.hash[0] = r->hash[i].lo;
		func.hash[1] = r->hash[i].hi;
		func.flags |= u->flags & ICF_UNIT_EXPORTED ? ICF_PRODUCT_EXPORTED : 0;
		if (u->sym != ICF_NONE)
			ELFRW_TRY(add(r, icf_unit_name(prog, i, number), &func.name));
		if (r->a.sym)
			ELFRW_TRY(find_source(r, u->start, &func));
		elfrw_wbuf_bytes(lines, &func, sizeof func);
		r->facts->n_func++;
	}
	r->facts->n_strings = (uint32_t)r->pool.text.len;
	elfrw_wbuf_bytes(lines, r->pool.text.data, r->pool.text.len);
	return lines->bad ? &elfrw_err_nomem : NULL;
}

/* The symbolizer, if there is debug information to be asked for. */
static struct elfrw_err *open_sources(struct reading *r, const char *path)
{
	struct dwr_sym_options sym = { 0 };
	const struct elfrw_image *img = &r->a.run.img;
	if (r->opt->no_sources ||
	    (!r->a.run.debug_file && !elfrw_image_section(img, ".debug_line")))
		return NULL;
	struct elfrw_err *err = dwr_sym_open(path, &sym, &r->a.sym);
	if (err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err);
	return NULL;
}

static struct elfrw_err *read_file(struct reading *r, const char *path, struct elfrw_wbuf *lines)
{
	struct icf_options run = { .input = path, .mode = ICF_MODE_NONE, .threads = 1 };
	char *debug_file = NULL;
	struct elfrw_err *err = NULL;
	if (!r->opt->no_sources)
		err = dwr_sym_find_debug(path, NULL, &debug_file, NULL);
	if (err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err); /* the code below reports the fault of the file in other words */
	run.debug_file = debug_file;
	err = icf_audit_plan(&r->a, &run);
	free(debug_file);
	run.debug_file = NULL;
	if (err)
		return err;
	icf_product_facts_of(&r->a, r->facts);
	ELFRW_TRY(find_soname(r));
	r->hash = malloc((r->a.run.prog.unit.len + 1) * sizeof *r->hash);
	if (!r->hash)
		return &elfrw_err_nomem;
	ELFRW_TRY(icf_hash_functions(&r->a.run.prog, 1, r->hash));
	ELFRW_TRY(open_sources(r, path));
	ELFRW_TRY(list_functions(r, lines));
	return find_unused(r, &run);
}

struct elfrw_err *icf_product_read(const char *path, const struct icf_audit_options *opt,
				   struct icf_product_facts *facts, struct elfrw_wbuf *lines)
{
	struct reading *r = calloc(1, sizeof *r);
	if (!r)
		return &elfrw_err_nomem;
	*facts = (struct icf_product_facts){ 0 };
	r->facts = facts;
	r->opt = opt;
	struct elfrw_err *err = read_file(r, path, lines);
	icf_pool_deinit(&r->pool);
	icf_audit_deinit(&r->a);
	free(r->hash);
	free(r);
	return err;
}
