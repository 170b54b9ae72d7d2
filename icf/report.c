/* report.c: see report.h. */
#include "elfrw/base/printable.h"
#include "icf/report.h"
#include "icf/fold/unloaded.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <string.h>

struct counts {
	uint32_t functions, by_reason[ICF_N_REASONS];
	uint64_t bytes_by_reason[ICF_N_REASONS];
	uint64_t saved; /* executable bytes */
};

static struct counts count(const struct icf_run *run)
{
	struct counts c = { 0 };
	for (size_t i = 0; i < run->prog.unit.len; i++) {
		const struct icf_unit *u = &run->prog.unit.data[i];
		c.functions += u->kind == ICF_UNIT_FUNC;
		c.by_reason[u->reason]++;
		c.bytes_by_reason[u->reason] += u->end - u->start;
	}
	c.saved = run->plan.code_before - run->plan.code_after;
	return c;
}

static double percent(uint64_t before, uint64_t after)
{
	return before ? 100.0 * ((double)after - (double)before) / (double)before : 0;
}

void icf_report_summary(FILE *f, const struct icf_run *run)
{
	struct counts c = count(run);
	fprintf(f,
		"folded %" PRIu32 " of %" PRIu32 " functions in %" PRIu32 " groups, %" PRIu32
		" with a thunk\n",
		run->plan.n_folded, c.functions, run->plan.n_groups, run->plan.n_thunks);
	const char *why = icf_all_writable_text(&run->prog);
	if (why)
		fprintf(f, "%s\n", why);
	if (run->plan.n_removed)
		fprintf(f, "removed %" PRIu32 " functions that nothing uses, %" PRIu64 " bytes\n",
			run->plan.n_removed, run->plan.removed_bytes);
	if (run->growth)
		fprintf(f,
			"not worth it: folded, the file would be %" PRIu64
			" bytes larger (--allow-growth)%s\n",
			run->growth, run->out.unchanged ? "; it is the input byte for byte" : "");
	fprintf(f, ".text %" PRIu64 " -> %" PRIu64 " bytes (%+.2f %%)\n", run->text_before,
		run->text_after, percent(run->text_before, run->text_after));
	if (run->plan.in_place) {
		uint64_t holes = 0;
		for (size_t i = 0; i < run->out.hole.len; i++)
			holes += run->out.hole.data[i].size;
		fprintf(f,
			"in place: code in use %" PRIu64 " -> %" PRIu64
			" bytes (%+.2f %%), %" PRIu64 " bytes of the file are holes\n",
			run->plan.code_before, run->plan.code_after,
			percent(run->plan.code_before, run->plan.code_after), holes);
	}
	size_t size = elfrw_image_file_size(&run->img);
	fprintf(f, "file  %zu -> %" PRIu64 " bytes (%+.2f %%)\n", size, run->out.file_size,
		percent(size, run->out.file_size));
	uint64_t record = run->note_size + run->calls.direct_size + run->calls.virtual_size;
	if (run->out.file_size > size && record)
		fprintf(f,
			"the record of what was folded takes %" PRIu64
			" bytes of it; --strip-all leaves it out\n",
			record);
}

void icf_report_stats(FILE *f, const struct icf_run *run, bool json)
{
	struct counts c = count(run);
	const struct {
		const char *key, *text;
		uint64_t v;
	} row[] = {
		{ "functions", "functions", c.functions },
		{ "groups", "groups of identical functions", run->plan.n_groups },
		{ "folded", "functions folded", run->plan.n_folded },
		{ "thunks", "  of these with a thunk", run->plan.n_thunks },
		{ "folded_bytes", "bytes of folded bodies", run->plan.folded_bytes },
		{ "removed", "unused functions removed", run->plan.n_removed },
		{ "removed_bytes", "  bytes", run->plan.removed_bytes },
		{ "thunk_bytes", "bytes of thunks", run->n_thunk_bytes },
		{ "text_before", ".text before", run->text_before },
		{ "text_after", ".text after", run->text_after },
		{ "code_before", "executable sections before", run->plan.code_before },
		{ "code_after", "executable sections after", run->plan.code_after },
		{ "eh_frame_before", ".eh_frame before", run->eh_frame_before },
		{ "eh_frame_after", ".eh_frame after", run->eh_frame_after },
		{ "dcall_entries", "entries of .debug_dcall", run->calls.direct },
		{ "dcall_bytes", "  bytes", run->calls.direct_size },
		{ "vcall_entries", "entries of .debug_vcall", run->calls.virtuals },
		{ "vcall_bytes", "  bytes", run->calls.virtual_size },
		{ "icfold_entries", "functions in .debug_icfold",
		  run->note_size ? run->plan.n_groups + run->plan.n_folded : 0 },
		{ "icfold_bytes", "  bytes", run->note_size },
		{ "vtables", "vtables described", run->n_vtables },
		{ "vtables_left_out", "  class not certain", run->n_vtables_left_out },
		{ "file_before", "file before", elfrw_image_file_size(&run->img) },
		{ "file_after", "file after", run->out.file_size },
		{ "rounds", "rounds of the partition", run->plan.rounds },
		{ "pinned", "pinned units", run->prog.n_pinned },
		{ "inferred", "references without relocations", run->prog.inferred },
		{ "in_place", "folded in place", run->plan.in_place },
		{ "growth_avoided", "growth that folding would cost", run->growth },
		{ "unchanged", "the output is the input", run->out.unchanged },
	};
	if (!json) {
		for (size_t i = 0; i < sizeof row / sizeof *row; i++)
			fprintf(f, "%-32s %12" PRIu64 "\n", row[i].text, row[i].v);
		for (int r = 0; r < ICF_N_REASONS; r++)
			fprintf(f, "%-46s %9" PRIu32 " %12" PRIu64 "\n", icf_reason_text(r),
				c.by_reason[r], c.bytes_by_reason[r]);
		return;
	}
	fputs("{\n", f);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		fprintf(f, "  \"%s\": %" PRIu64 ",\n", row[i].key, row[i].v);
	fputs("  \"reasons\": {\n", f);
	for (int r = 0; r < ICF_N_REASONS; r++)
		fprintf(f, "    \"%s\": { \"count\": %" PRIu32 ", \"bytes\": %" PRIu64 " }%s\n",
			icf_reason_key(r), c.by_reason[r], c.bytes_by_reason[r],
			r + 1 < ICF_N_REASONS ? "," : "");
	fputs("  }\n}\n", f);
}

void icf_report_folds(FILE *f, const struct icf_run *run)
{
	const struct icf_plan *plan = &run->plan;
	uint32_t n = (uint32_t)run->prog.unit.len;
	char buf[32];
	/* Members of one group, each list in address order, without sorting: chains through `next`.
	 */
	for (uint32_t k = 0; k < n; k++) {
		if (!(plan->map.unit[k].flags & ELFRW_UNIT_KEPT))
			continue;
		fputs("selected section ", f);
		elfrw_put_printable_line(f, icf_unit_name(&run->prog, k, buf));
		for (uint32_t i = plan->cls[k]; i < n; i++)
			if (plan->kept[i] == k && i != k) {
				fputs("  removing identical section ", f);
				elfrw_put_printable_line(f, icf_unit_name(&run->prog, i, buf));
			}
	}
}

void icf_report_removed(FILE *f, const struct icf_run *run)
{
	char buf[32];
	for (uint32_t i = 0; i < run->prog.unit.len; i++)
		if (run->prog.unit.data[i].flags & ICF_UNIT_UNUSED) {
			fputs("removing unused section ", f);
			elfrw_put_printable_line(f, icf_unit_name(&run->prog, i, buf));
		}
}

void icf_report_map(FILE *f, const struct icf_run *run)
{
	char buf[32];
	for (uint32_t i = 0; i < run->prog.unit.len; i++) {
		const struct elfrw_addrmap_unit *m = &run->plan.map.unit[i];
		fprintf(f, "%016" PRIx64 " %8" PRIx64 " %016" PRIx64 " ", m->old,
			m->old_end - m->old, m->body);
		elfrw_put_printable_line(f, icf_unit_name(&run->prog, i, buf));
	}
}

/* Reports whether folding was in place or compact, and why. */
static void report_way(FILE *f, const struct icf_run *run)
{
	if (run->prog.loose)
		fprintf(f, "icfold: in place: %s (address 0x%" PRIx64 ")\n", run->prog.loose,
			run->prog.loose_at);
	else
		fprintf(f, "icfold: %s, %s\n", run->plan.in_place ? "in place" : "compact",
			run->prog.inferred ? "references from the code and dynamic relocations"
					   : "references from relocations");
	if (run->growth)
		fprintf(f,
			"icfold: not worth it: folded, the file would be %" PRIu64
			" bytes larger; %s\n",
			run->growth,
			run->out.unchanged ? "the output is the input byte for byte"
					   : "nothing is folded");
}

/* Reports what could not be saved, and why. */
static void report_lost(FILE *f, const struct icf_run *run, const struct counts *c)
{
	const struct icf_plan *plan = &run->plan;
	if (plan->n_short)
		fprintf(f,
			"icfold: %" PRIu32
			" functions stay: no room for their thunks, or for the frame description of thunks\n",
			plan->n_short);
	if (plan->no_frame_room)
		fprintf(f,
			"icfold: in place: no room for the frame descriptions of code that would move apart\n");
	uint64_t gone = plan->folded_bytes - run->n_thunk_bytes;
	if (!plan->in_place && run->prog.n_pinned && plan->folded_bytes > run->n_thunk_bytes &&
	    gone > c->saved)
		fprintf(f,
			"icfold: %" PRIu64
			" bytes of folded code are gaps now, before code that stays where it was\n",
			gone - c->saved);
	for (int r = 0; r < ICF_N_REASONS; r++)
		if (c->by_reason[r])
			fprintf(f, "icfold: %7" PRIu32 " units, %10" PRIu64 " bytes: %s\n",
				c->by_reason[r], c->bytes_by_reason[r], icf_reason_text(r));
}

/* Reports the sections that were written, and those that were left out. */
static void report_tables(FILE *f, const struct icf_run *run)
{
	if (run->calls.direct_size)
		fprintf(f,
			"icfold: .debug_dcall: %zu entries, %" PRIu64
			" bytes; %zu calls without one: no debugging entry\n",
			run->calls.direct, run->calls.direct_size, run->calls.no_die);
	if (run->calls.virtual_size)
		fprintf(f, "icfold: .debug_vcall: %zu entries, %" PRIu64 " bytes\n",
			run->calls.virtuals, run->calls.virtual_size);
	if (run->note_size)
		fprintf(f, "icfold: .debug_icfold: %" PRIu32 " functions, %" PRIu64 " bytes\n",
			run->plan.n_groups + run->plan.n_folded, run->note_size);
	for (uint32_t i = 1; i < run->img.n_sections && run->plan.changes; i++)
		if (icf_unloaded_kind(&run->img, i) == ICF_UNLOADED_DROP ||
		    (icf_unloaded_kind(&run->img, i) == ICF_UNLOADED_PSEUDO &&
		     run->out.sec[i].drop)) {
			fputs("icfold: ", f);
			elfrw_put_printable(f, run->img.section[i].name);
			fputs(" is left out: it holds addresses in a form that is not rewritten\n",
			      f);
		}
	if (run->n_vtables || run->n_vtables_left_out)
		fprintf(f,
			"icfold: %" PRIu32 " vtables described, %" PRIu32
			" left out: their class is not certain\n",
			run->n_vtables, run->n_vtables_left_out);
	if (run->out.n_unsplit)
		fprintf(f, "icfold: %u holes stay in the file: no room for a program header\n",
			run->out.n_unsplit);
}

/* Reports each function that could not be folded or moved. */
static void report_units(FILE *f, const struct icf_program *prog)
{
	char buf[32];
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (u->reason == ICF_OK || u->reason == ICF_UNIQUE)
			continue;
		fputs("icfold: ", f);
		elfrw_put_printable(f, icf_unit_name(prog, i, buf));
		fprintf(f, ": %s\n", icf_reason_text(u->reason));
	}
}

void icf_report_verbose(FILE *f, const struct icf_run *run, unsigned level)
{
	struct counts c = count(run);
	fprintf(f, "icfold: %zu units, %zu data references, %zu jump tables, %u pinned\n",
		(size_t)run->prog.unit.len, (size_t)run->prog.dataref.len,
		(size_t)run->prog.table.len, run->prog.n_pinned);
	report_way(f, run);
	report_lost(f, run, &c);
	report_tables(f, run);
	if (level > 1)
		report_units(f, &run->prog);
}

void icf_report_passes(FILE *f, const struct icf_run *run)
{
	double wall = 0, cpu = 0;
	fprintf(f, "%-20s %9s %9s\n", "pass", "wall ms", "cpu ms");
	for (unsigned i = 0; i < run->n_passes; i++) {
		fprintf(f, "%-20s %9.2f %9.2f\n", run->pass[i].name, 1e3 * run->pass[i].seconds,
			1e3 * run->pass[i].cpu);
		wall += run->pass[i].seconds;
		cpu += run->pass[i].cpu;
	}
	fprintf(f, "%-20s %9.2f %9.2f\n", "total", 1e3 * wall, 1e3 * cpu);
}
