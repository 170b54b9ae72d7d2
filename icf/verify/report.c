/* report.c: counts and differences: how they are recorded and printed. */
#include "elfrw/base/printable.h"
#include "icf/verify/state.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[ICF_VC_CHECKS] = {
	[ICF_VC_CLAIM] = "units of the map",
	[ICF_VC_PADDING] = "padding that is gone",
	[ICF_VC_CODE] = "instructions",
	[ICF_VC_BRANCH] = "branches to other functions",
	[ICF_VC_ADDRESS] = "addresses in code",
	[ICF_VC_FALL] = "falling through",
	[ICF_VC_FOLD] = "folded functions",
	[ICF_VC_THUNK] = "thunks",
	[ICF_VC_OBSERVED] = "observed addresses",
	[ICF_VC_FILL] = "bytes between functions",
	[ICF_VC_TABLE] = "jump table entries",
	[ICF_VC_WORD] = "code addresses in data",
	[ICF_VC_DATA] = "bytes of data",
	[ICF_VC_DYNRELOC] = "dynamic relocations",
	[ICF_VC_DYNAMIC] = "dynamic section, entry point",
	[ICF_VC_FRAME] = "frame descriptions",
	[ICF_VC_FRAME_ROW] = "unwind rows (libdw)",
	[ICF_VC_LSDA] = "exception tables",
	[ICF_VC_FRAME_HDR] = ".eh_frame_hdr entries",
	[ICF_VC_SYMBOL] = "symbols",
	[ICF_VC_LOOKUP] = "names in the hash tables",
	[ICF_VC_NOTE] = "notes",
	[ICF_VC_RELOC] = "kept relocations",
	[ICF_VC_SECTION] = "sections",
	[ICF_VC_SEGMENT] = "segments",
	[ICF_VC_FILE] = "headers and file layout",
	[ICF_VC_DIE] = "DIEs",
	[ICF_VC_DIE_ADDRESS] = "addresses in DIEs",
	[ICF_VC_DIE_RANGE] = "ranges of DIEs",
	[ICF_VC_LOCATION] = "locations",
	[ICF_VC_LINE] = "line rows",
	[ICF_VC_FOLDED_LINE] = "line rows of folded functions",
	[ICF_VC_OVERLAY] = "ranges kept for folded functions",
	[ICF_VC_ARANGE] = "address ranges of units",
	[ICF_VC_INDEX] = "indices",
	[ICF_VC_CALL] = "call table entries",
	[ICF_VC_RESOLVE] = "calls of shared functions resolved",
	[ICF_VC_VIRTUAL] = "vtable slots resolved",
	[ICF_VC_SYMBOLIZE] = "places symbolized",
	[ICF_VC_REMOVED] = "removed code that nothing reaches",
};

const char *icf_verify_check_name(enum icf_verify_check check)
{
	return names[check];
}

void icf_vlog_bad(struct icf_vlog *log, enum icf_verify_check check, const char *fmt, ...)
{
	if (log->wrong[check]++ >= log->max)
		return;
	struct icf_verify_diff *d = VEC_PUSH(&log->diff);
	va_list ap;
	if (!d) {
		log->nomem = true;
		return;
	}
	d->check = (uint8_t)check;
	va_start(ap, fmt);
	if (vasprintf(&d->text, fmt, ap) < 0) {
		log->nomem = true;
		log->diff.len--;
	}
	va_end(ap);
}

void icf_vlog_merge(struct icf_vlog *to, struct icf_vlog *from)
{
	uint64_t had[ICF_VC_CHECKS];
	memcpy(had, to->wrong, sizeof had);
	for (int c = 0; c < ICF_VC_CHECKS; c++) {
		to->checked[c] += from->checked[c];
		to->wrong[c] += from->wrong[c];
	}
	for (size_t i = 0; i < from->diff.len; i++) {
		struct icf_verify_diff *d = &from->diff.data[i],
				       *slot = had[d->check]++ < to->max ? VEC_PUSH(&to->diff)
									 : NULL;
		if (slot)
			*slot = *d;
		else
			free(d->text);
	}
	to->nomem |= from->nomem;
	from->diff.len = 0;
	icf_vlog_deinit(from);
}

void icf_vlog_deinit(struct icf_vlog *log)
{
	for (size_t i = 0; i < log->diff.len; i++)
		free(log->diff.data[i].text);
	VEC_FREE(&log->diff);
	*log = (struct icf_vlog){ .max = log->max };
}

void icf_verify_result_deinit(struct icf_verify_result *result)
{
	for (size_t i = 0; i < result->diff.len; i++)
		free(result->diff.data[i].text);
	VEC_FREE(&result->diff);
	*result = (struct icf_verify_result){ 0 };
}

static bool merged(const struct icf_verify_result *r)
{
	for (size_t i = 0; i < r->diff.len; i++)
		if (r->diff.data[i].check == ICF_VC_OBSERVED &&
		    strncmp(r->diff.data[i].text, "merged:", 7) == 0)
			return true;
	return false;
}

void icf_verify_print(FILE *f, const struct icf_verify_result *r, bool verbose)
{
	fprintf(f, "%-36s %12s %9s\n", "check", "checked", "wrong");
	for (int c = 0; c < ICF_VC_CHECKS; c++)
		if (verbose || r->checked[c] || r->wrong[c])
			fprintf(f, "%-36s %12llu %9llu\n", names[c], ICF_VX(r->checked[c]),
				ICF_VX(r->wrong[c]));
	if (r->same)
		fputs("the same bytes, nothing was folded\n", f);
	else
		fprintf(f,
			"%u functions and other runs of code, %u of them folded, %u thunks; map from %s\n",
			r->n_units, r->n_folded, r->n_thunks,
			r->from_note ? ".debug_icfold" : "symbols");
	if (r->n_removed)
		fprintf(f, "%u functions that nothing uses are removed\n", r->n_removed);
	if (r->checked[ICF_VC_SYMBOLIZE]) {
		uint64_t calls = r->checked[ICF_VC_RESOLVE] + r->checked[ICF_VC_VIRTUAL],
			 wrong = r->wrong[ICF_VC_RESOLVE] + r->wrong[ICF_VC_VIRTUAL];
		fprintf(f,
			"symbolized: %llu places decided, %llu undecided with candidates, %llu wrong\n",
			ICF_VX(r->checked[ICF_VC_SYMBOLIZE] - r->wrong[ICF_VC_SYMBOLIZE] -
			       r->places_undecided),
			ICF_VX(r->places_undecided), ICF_VX(r->wrong[ICF_VC_SYMBOLIZE]));
		if (calls)
			fprintf(f,
				"resolved: %llu calls decided, %llu undecided with candidates, %llu wrong\n",
				ICF_VX(calls - wrong - r->calls_undecided),
				ICF_VX(r->calls_undecided), ICF_VX(wrong));
	}
	for (size_t i = 0; i < r->diff.len; i++) {
		const struct icf_verify_diff *d = &r->diff.data[i];
		fprintf(f, "%s: ", names[d->check]);
		elfrw_put_printable_line(f, d->text);
		bool last = i + 1 == r->diff.len || r->diff.data[i + 1].check != d->check;
		size_t n = 1;
		while (n <= i && r->diff.data[i - n].check == d->check)
			n++;
		if (last && r->wrong[d->check] > n)
			fprintf(f, "%s: %llu more\n", names[d->check],
				ICF_VX(r->wrong[d->check] - n));
	}
	if (merged(r))
		fputs("note: functions that share one address are as they should be after icfold --icf=all: verify --icf=all allows them\n",
		      f);
	fputs(r->equal ? "equal\n" : "different\n", f);
}

void icf_verify_print_differences(FILE *f, const char *name, const struct icf_verify_result *r)
{
	uint64_t wrong = 0;
	for (size_t i = 0; i < r->diff.len; i++) {
		fputs("icfold: ", f);
		elfrw_put_printable(f, name);
		fprintf(f, ": %s: ", names[r->diff.data[i].check]);
		elfrw_put_printable_line(f, r->diff.data[i].text);
	}
	for (int c = 0; c < ICF_VC_CHECKS; c++)
		wrong += r->wrong[c];
	fputs("icfold: ", f);
	elfrw_put_printable(f, name);
	fprintf(f, ": is not what it should be (%llu differences); not written\n", ICF_VX(wrong));
}

void icf_verify_print_json(FILE *f, const char *in, const char *out,
			   const struct icf_verify_result *r)
{
	fputs("{\"in\": ", f);
	elfrw_put_json(f, in, "");
	fputs(", \"out\": ", f);
	elfrw_put_json(f, out, "");
	fprintf(f,
		", \"equal\": %s, \"units\": %u, \"folded\": %u, \"thunks\": %u, \"removed\": %u, \"map\": \"%s\", "
		"\"undecided_places\": %llu, \"undecided_calls\": %llu, \"checks\": [",
		r->equal ? "true" : "false", r->n_units, r->n_folded, r->n_thunks, r->n_removed,
		r->same        ? "none"
		: r->from_note ? "note"
			       : "symbols",
		ICF_VX(r->places_undecided), ICF_VX(r->calls_undecided));
	for (int c = 0; c < ICF_VC_CHECKS; c++) {
		fputs(c ? ", {\"check\": " : "{\"check\": ", f);
		elfrw_put_json(f, names[c], "");
		fprintf(f, ", \"checked\": %llu, \"wrong\": %llu}", ICF_VX(r->checked[c]),
			ICF_VX(r->wrong[c]));
	}
	fputs("], \"differences\": [", f);
	for (size_t i = 0; i < r->diff.len; i++) {
		fputs(i ? ", {\"check\": " : "{\"check\": ", f);
		elfrw_put_json(f, names[r->diff.data[i].check], "");
		fputs(", \"text\": ", f);
		elfrw_put_json(f, r->diff.data[i].text, "");
		putc('}', f);
	}
	fputs("]}\n", f);
}
