/* pool_named.c: do other things than code and relocations name the literals of a unit?
 *
 * The entry point, the dynamic section, words of data and exception tables could.  Control may come
 * from there, so what they name may be code.  Jump tables: table/check.c.
 *
 * Cost: nothing without such units; else linear in the exception tables and the words of data. */
#include "icf/refs/pool.h"
#include "dwarf/lsda.h"
#include "icf/program/unit.h"
#include <string.h>

bool icf_in_literals(const struct icf_program *prog, uint64_t va)
{
	uint32_t i = prog->data.len && icf_in_exec(prog, va) ? icf_unit_at(prog, va) : ICF_NONE;
	return i != ICF_NONE && (prog->unit.data[i].flags & ICF_UNIT_POOL) &&
	       icf_data_end(prog, va) != va;
}

/* Something that is no code of the unit leads to VA: what is there are no literals. */
static void lead(struct icf_program *prog, uint64_t va)
{
	if (!icf_in_literals(prog, va))
		return;
	struct icf_unit *u = &prog->unit.data[icf_unit_at(prog, va)];
	icf_make_opaque(u);
	u->reason = ICF_DATA_AMONG_CODE;
}

static void lead_from_dynamic(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	const struct elfrw_section *s = &img->section[img->dynamic];
	for (size_t i = 0; img->dynamic && s->data && i < s->hdr.sh_size / sizeof(Elf64_Dyn); i++) {
		Elf64_Dyn d;
		memcpy(&d, s->data + i * sizeof d, sizeof d);
		if (d.d_tag == DT_NULL)
			return;
		if (elfrw_dynamic_is_code(prog->arch, d.d_tag))
			lead(prog, d.d_un.d_ptr);
	}
}

/* Landing pads. */
static struct elfrw_err *lead_from_exceptions(struct icf_program *prog)
{
	struct dwr_lsda lsda = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t k = 0; k < prog->cfi.fde.len && !err; k++) {
		const struct dwr_fde *fde = &prog->cfi.fde.data[k];
		if (!fde->lsda || fde->pc_end <= fde->pc_begin)
			continue;
		err = dwr_lsda_read(&lsda, prog->img, fde->lsda, fde->pc_begin, fde->pc_end);
		for (size_t s = 0; !err && s < lsda.site.len; s++)
			lead(prog, lsda.site.data[s].landing_pad);
		if (err && err != &elfrw_err_nomem) {
			/* The comparison of units reports this error. */
			elfrw_err_free(err);
			err = NULL;
		}
	}
	dwr_lsda_deinit(&lsda);
	return err;
}

struct elfrw_err *icf_check_pools(struct icf_program *prog)
{
	bool any = false;
	for (size_t i = 0; i < prog->unit.len && !any; i++)
		any = prog->unit.data[i].flags & ICF_UNIT_POOL;
	if (!any)
		return NULL;
	lead(prog, prog->img->ehdr.e_entry);
	lead_from_dynamic(prog);
	/* What distances count from is known later (table/check.c). */
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].kind != ICF_DATA_DISTANCE)
			lead(prog, prog->dataref.data[i].target);
	return lead_from_exceptions(prog);
}
