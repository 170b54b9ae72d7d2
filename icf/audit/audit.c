/* audit.c: see audit.h.  Units, references and tables are found once; then it is asked what is
 * unused, and each mode makes a plan for the same program.  Only the plans, and the reasons that
 * they set, depend on the mode. */
#include "icf/audit/audit.h"
#include "dwarf/symbolize/symbolize.h"
#include <stdlib.h>
#include <string.h>

/* Copies the plan's result for every unit in MODE. */
static void take_reasons(struct icf_audit *a, int mode)
{
	const struct icf_plan *plan = &a->plan[mode];
	struct icf_audit_totals *t = &a->total[mode];
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		const struct elfrw_addrmap_unit *m = &plan->map.unit[i];
		struct icf_audit_unit *u = &a->unit[i];
		u->why[mode] = a->run.prog.unit.data[i].reason;
		if (m->flags & ELFRW_UNIT_FOLDED) {
			u->why[mode] = m->thunk_size ? ICF_WHY_THUNK : ICF_WHY_FOLDED;
			uint64_t size = icf_audit_size(a, i);
			u->saving[mode] =
				size > m->thunk_size ? (uint32_t)(size - m->thunk_size) : 0;
			t->duplicated += size;
			t->thunk_bytes += m->thunk_size;
		} else if (m->flags & ELFRW_UNIT_KEPT)
			u->why[mode] = ICF_WHY_KEPT;
		else if (u->why[mode] ==
			 ICF_OK) /* the first of a class whose other members stay, too */
			u->why[mode] = ICF_ADDRESS_OBSERVED;
	}
	a->in_place = plan->in_place;
	t->folded = plan->n_folded;
	t->groups = plan->n_groups;
	t->thunks = plan->n_thunks;
	for (uint32_t e = 0; e < plan->map.n_sections; e++) {
		const struct elfrw_addrmap_section *s = &plan->map.section[e];
		if (strncmp(a->run.img.section[s->shndx].name, ".text", 5) == 0)
			t->text_after += s->new_end - s->new_start;
	}
}

static struct elfrw_err *plan_both(struct icf_audit *a, struct icf_options *opt)
{
	struct icf_program *prog = &a->run.prog;
	uint8_t *reason = malloc(prog->unit.len + 1);
	struct elfrw_err *err = reason ? NULL : &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++)
		reason[i] = prog->unit.data[i].reason;
	for (int m = 0; m < ICF_AUDIT_MODES && !err; m++) {
		for (uint32_t i = 0; i < prog->unit.len; i++)
			prog->unit.data[i].reason = reason[i];
		opt->mode = m == ICF_AUDIT_ALL ? ICF_MODE_ALL : ICF_MODE_SAFE;
		err = m == ICF_AUDIT_ALL
			      ? icf_make_plan(prog, opt, &a->plan[m])
			      : icf_make_safe_plan(prog, opt, &a->plan[ICF_AUDIT_ALL], &a->plan[m]);
		if (!err)
			take_reasons(a, m);
	}
	for (uint32_t i = 0; i < prog->unit.len && !err; i++)
		prog->unit.data[i].reason = reason[i];
	free(reason);
	return err;
}

static bool has_function_symbols(const struct icf_program *prog)
{
	for (size_t i = 0; i < prog->sym.len; i++)
		if (prog->sym.data[i].type == STT_FUNC || prog->sym.data[i].type == STT_GNU_IFUNC)
			return true;
	return false;
}

static void measure(struct icf_audit *a)
{
	for (size_t e = 0; e < a->run.prog.exec.len; e++) {
		const struct icf_exec *x = &a->run.prog.exec.data[e];
		a->code += x->end - x->start;
		if (strncmp(a->run.img.section[x->shndx].name, ".text", 5) == 0)
			a->text += x->end - x->start;
	}
	a->by_address = true;
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		const struct icf_unit *u = &a->run.prog.unit.data[i];
		a->functions += u->kind == ICF_UNIT_FUNC;
		a->by_address &= u->sym == ICF_NONE || !(u->flags & ICF_UNIT_FUNC_SYMBOL);
	}
	/* Code that stays as it is is not cut into functions, whatever names it has. */
	if (!a->functions && has_function_symbols(&a->run.prog))
		a->by_address = false;
}

/* What follows icf_run_look(). */
static struct elfrw_err *choose(struct icf_audit *a, struct icf_options *run)
{
	ELFRW_TRY(icf_run_choose(&a->run, run));
	a->unit = calloc(a->run.prog.unit.len + 1, sizeof *a->unit);
	if (!a->unit)
		return &elfrw_err_nomem;
	measure(a);
	return plan_both(a, run);
}

struct elfrw_err *icf_audit_plan(struct icf_audit *a, struct icf_options *run)
{
	ELFRW_TRY(icf_run_look(&a->run, run));
	return choose(a, run);
}

struct elfrw_err *icf_audit_analyse(struct icf_audit *a, const char *path,
				    const struct icf_audit_options *opt)
{
	struct icf_options run = { .input = path, .mode = ICF_MODE_NONE, .threads = opt->threads };
	char *debug_file = NULL;
	struct elfrw_err *err = dwr_sym_find_debug(path, NULL, &debug_file, NULL);
	if (err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err); /* the code below reports the fault of the file in other words */
	run.debug_file = debug_file;
	err = icf_run_look(&a->run, &run);
	if (!err)
		err = icf_audit_find_unused(&a->unused, &a->run, &run);
	if (!err)
		err = choose(a, &run);
	free(debug_file);
	if (err)
		return err;
	ELFRW_TRY(icf_audit_names(a, opt));
	ELFRW_TRY(icf_audit_groups(a, opt));
	return icf_audit_compare(a, opt);
}

void icf_audit_deinit(struct icf_audit *a)
{
	for (int m = 0; m < ICF_AUDIT_MODES; m++)
		icf_plan_deinit(&a->plan[m]);
	dwr_sym_close(a->sym);
	icf_run_deinit(&a->run);
	icf_pool_deinit(&a->pool);
	free(a->unit);
	free(a->unused.is);
	free(a->unused.obstacle);
	VEC_FREE(&a->group);
	VEC_FREE(&a->member);
	VEC_FREE(&a->near);
	VEC_FREE(&a->near_member);
	free(a->root);
	free(a->warning);
}

const char *icf_why_text(unsigned why)
{
	static const char *const text[ICF_N_WHYS] = {
		[ICF_UNIQUE] = "no other function has such code",
		[ICF_ADDRESS_OBSERVED] = "address observed, and a thunk would not pay",
		[ICF_WHY_KEPT] = "kept for others",
		[ICF_WHY_FOLDED] = "folded",
		[ICF_WHY_THUNK] = "folded, with a thunk (address observed)",
		[ICF_WHY_TWIN_STAYS] = "equal only to code that may not be folded",
		[ICF_WHY_UNWIND] = "other unwind rules or exception table (LSDA)",
		[ICF_WHY_DISTINCT] = "takes addresses that must stay distinct",
		[ICF_WHY_REFERS] = "same code, but refers to something else",
		[ICF_WHY_CONSTANT] = "same instructions, but other constants",
	};
	return text[why] ? text[why] : icf_reason_text(why);
}

const char *icf_why_key(unsigned why)
{
	/* Two names are older than icf_reason_key. */
	static const char *const text[ICF_N_WHYS] = {
		[ICF_OK] = "ok",
		[ICF_UNWIND] = "unwind_holds_addresses",
		[ICF_WHY_KEPT] = "kept",
		[ICF_WHY_FOLDED] = "folded",
		[ICF_WHY_THUNK] = "folded_thunk",
		[ICF_WHY_TWIN_STAYS] = "twin_stays",
		[ICF_WHY_UNWIND] = "unwind_differs",
		[ICF_WHY_DISTINCT] = "address_distinct",
		[ICF_WHY_REFERS] = "reference_differs",
		[ICF_WHY_CONSTANT] = "constant_differs",
	};
	if (text[why])
		return text[why];
	return why < ICF_N_REASONS ? icf_reason_key(why) : "other";
}

const char *icf_dimension_key(enum icf_dimension dim)
{
	static const char *const text[ICF_N_DIMS] = {
		[ICF_DIM_FAMILY] = "families",   [ICF_DIM_NAMESPACE] = "namespaces",
		[ICF_DIM_LIBRARY] = "libraries", [ICF_DIM_DIRECTORY] = "directories",
		[ICF_DIM_FILE] = "files",        [ICF_DIM_UNIT] = "compilation_units",
	};
	return text[dim];
}

const char *icf_near_kind_text(unsigned kind)
{
	static const char *const text[] = { [ICF_NEAR_CALLEE] = "callee",
					    [ICF_NEAR_ADDRESS] = "address",
					    [ICF_NEAR_TABLE] = "jump table",
					    [ICF_NEAR_CONSTANT] = "constant",
					    [ICF_NEAR_OFFSET] = "offset" };
	return text[kind];
}
