/* dump.c: icfold dump [OPTION]... FILE: prints .debug_icfold and the call tables for people or as
 * JSON. */
#include "elfrw/base/printable.h"
#include "dwarf/calls/calls.h"
#include "dwarf/sections.h"
#include "dwarf/calls/icfold_note.h"
#include "elfrw/image.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"Usage: icfold dump [OPTION]... FILE\n"
	"Print what folding recorded in FILE: the contents of .debug_icfold and the call tables.\n"
	"Without an option that selects parts: groups, removed functions if there are any, vtable\n"
	"slots and both call tables.\n"
	"\n"
	"      --map                  the address map: old address, size, new address of each unit\n"
	"      --groups               the functions that share one body\n"
	"      --removed              functions that nothing used, and that are gone\n"
	"      --slots                vtable slots whose function shares its body\n"
	"      --overlay              the PC ranges taken from debugging entries of folded functions\n"
	"      --dcall                direct calls of functions that share their body (.debug_dcall)\n"
	"      --vcall                virtual calls through slots with such a function (.debug_vcall)\n"
	"      --all                  everything\n"
	"      --json                 the same as one JSON object\n" ICF_USAGE_COMMON;

struct what {
	bool map, groups, removed, slots, overlay, dcall, vcall, json;
	bool few; /* nothing was asked for: what there is */
};

static const char *member_name(const struct dwr_icfold *note, const struct dwr_icfold_member *m)
{
	return m->n_names ? note->names[m->name] : "";
}

static void dump_map(const struct dwr_icfold *note, bool json)
{
	if (json)
		printf(",\n  \"map\": [");
	else
		printf("Address map (old address, size, new address):\n");
	for (uint32_t i = 0; i < note->map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &note->map.unit[i];
		if (json)
			printf("%s\n    { \"old\": \"0x%" PRIx64 "\", \"size\": %" PRIu64
			       ", \"new\": \"0x%" PRIx64 "\", \"folded\": %s, \"pinned\": %s }",
			       i ? "," : "", u->old, u->old_end - u->old, u->body,
			       u->flags & ELFRW_UNIT_FOLDED ? "true" : "false",
			       u->flags & ELFRW_UNIT_PINNED ? "true" : "false");
		else
			printf("  %016" PRIx64 " %8" PRIx64 " %016" PRIx64 "%s\n", u->old,
			       u->old_end - u->old, u->body,
			       u->flags & ELFRW_UNIT_REMOVED  ? " removed"
			       : u->flags & ELFRW_UNIT_FOLDED ? " folded"
			       : u->flags & ELFRW_UNIT_PINNED ? " pinned"
							      : "");
	}
	if (json)
		printf("\n  ]");
}

static void dump_member(const struct dwr_icfold *note, const struct dwr_icfold_member *m, bool kept,
			bool json)
{
	const struct elfrw_addrmap_unit *u = &note->map.unit[m->unit];
	static const char *const rows[] = { "none", "same", "own" };
	if (!json) {
		printf("  %-6s %016" PRIx64 " %6" PRIx64 " ", kept ? "kept" : "folded", u->old,
		       u->old_end - u->old);
		elfrw_put_printable(stdout, member_name(note, m));
		for (uint32_t n = 1; n < m->n_names; n++) {
			fputs(" = ", stdout);
			elfrw_put_printable(stdout, note->names[m->name + n]);
		}
		if (u->flags & ELFRW_UNIT_THUNK)
			printf(", thunk at %" PRIx64, u->entry);
		for (uint32_t d = 0; d < m->n_dies; d++)
			printf("%s%" PRIx64, d ? ", " : ", DIE ", note->dies[m->die + d].die);
		if (m->stand_in)
			printf(", DIE %" PRIx64 " stands in", m->stand_in);
		if (!kept)
			printf(", rows: %s",
			       rows[m->rows.status <= DWR_NOTE_ROWS_OWN ? m->rows.status : 0]);
		putchar('\n');
		return;
	}
	printf("{ \"names\": [");
	for (uint32_t n = 0; n < m->n_names; n++) {
		if (n)
			printf(", ");
		elfrw_put_json(stdout, note->names[m->name + n], "");
	}
	printf("], \"old\": \"0x%" PRIx64 "\", \"size\": %" PRIu64 ", \"kept\": %s, \"thunk\": ",
	       u->old, u->old_end - u->old, kept ? "true" : "false");
	if (u->flags & ELFRW_UNIT_THUNK)
		printf("\"0x%" PRIx64 "\"", u->entry);
	else
		printf("null");
	printf(", \"dies\": [");
	for (uint32_t d = 0; d < m->n_dies; d++)
		printf("%s\"0x%" PRIx64 "\"", d ? ", " : "", note->dies[m->die + d].die);
	printf("], \"stand_in\": ");
	if (m->stand_in)
		printf("\"0x%" PRIx64 "\"", m->stand_in);
	else
		printf("null");
	printf(", \"rows\": \"%s\" }",
	       rows[m->rows.status <= DWR_NOTE_ROWS_OWN ? m->rows.status : 0]);
}

static void dump_groups(const struct dwr_icfold *note, bool json)
{
	if (json)
		printf(",\n  \"groups\": [");
	else
		printf("Groups (%zu of %zu functions):\n", note->n_groups, note->n_members);
	for (size_t g = 0; g < note->n_groups; g++) {
		const struct dwr_icfold_group *group = &note->group[g];
		const struct dwr_icfold_member *first = &note->member[group->member];
		uint64_t at = note->map.unit[first->unit].body;
		if (json)
			printf("%s\n    { \"address\": \"0x%" PRIx64 "\", \"members\": [",
			       g ? "," : "", at);
		else
			printf("%016" PRIx64 ":\n", at);
		for (uint32_t m = 0; m < group->n_members; m++) {
			if (json)
				printf("%s\n      ", m ? "," : "");
			dump_member(note, first + m, m == 0, json);
		}
		if (json)
			printf(" ] }");
	}
	if (json)
		printf("\n  ]");
}

static void dump_removed(const struct dwr_icfold *note, bool json)
{
	if (json)
		printf(",\n  \"removed\": [");
	else
		printf("Removed functions (%zu):\n", note->n_removed);
	for (size_t i = 0; i < note->n_removed; i++) {
		const struct dwr_icfold_removed *x = &note->removed[i];
		const struct elfrw_addrmap_unit *u = &note->map.unit[x->unit];
		if (json)
			printf("%s\n    { \"old\": \"0x%" PRIx64 "\", \"size\": %" PRIu64
			       ", \"names\": [",
			       i ? "," : "", u->old, u->old_end - u->old);
		else
			printf("  %016" PRIx64 " %6" PRIx64 "%s", u->old, u->old_end - u->old,
			       x->n_names ? " " : "");
		for (uint32_t n = 0; n < x->n_names; n++) {
			const char *name = note->names[x->name + n];
			if (n)
				fputs(json ? ", " : " = ", stdout);
			if (json)
				elfrw_put_json(stdout, name, "");
			else
				elfrw_put_printable(stdout, name);
		}
		fputs(json ? "] }" : "\n", stdout);
	}
	if (json)
		printf("\n  ]");
}

static void dump_slots(const struct dwr_icfold *note, bool json)
{
	if (json)
		printf(",\n  \"slots\": [");
	else
		printf("Vtable slots (%zu):\n", note->n_vslots);
	for (size_t i = 0; i < note->n_vslots; i++) {
		const struct dwr_vslot *s = &note->vslot[i];
		uint32_t m = note->unit_member[s->unit];
		const char *name = m == UINT32_MAX ? "" : member_name(note, &note->member[m]);
		if (json) {
			printf("%s\n    { \"slot\": \"0x%" PRIx64 "\", \"function\": ",
			       i ? "," : "", s->slot);
			elfrw_put_json(stdout, name, "");
			printf(" }");
		} else {
			printf("  %016" PRIx64 " ", s->slot);
			elfrw_put_printable_line(stdout, name);
		}
	}
	if (json)
		printf("\n  ]");
}

static struct elfrw_err *dump_overlay(const struct dwr_icfold *note, bool json)
{
	struct dwr_icfold_walk walk = dwr_icfold_overlay(note);
	struct dwr_icfold_entry e;
	bool more, first = true;
	if (json)
		printf(",\n  \"overlay\": [");
	else
		printf("Overlay (%zu entries: DIE, then old ranges):\n", note->n_overlay);
	for (;;) {
		ELFRW_TRY(dwr_icfold_overlay_next(&walk, &e, &more));
		if (!more)
			break;
		if (json)
			printf("%s\n    { \"die\": \"0x%" PRIx64 "\", \"ranges\": [",
			       first ? "" : ",", e.die);
		else
			printf("  <%" PRIx64 ">", e.die);
		struct dwr_note_range r;
		for (bool one = true; dwr_icfold_range_next(&e, &r); one = false) {
			uint64_t at = note->map.unit[r.unit].old + r.start;
			if (json)
				printf("%s[\"0x%" PRIx64 "\", \"0x%" PRIx64 "\"]", one ? "" : ", ",
				       at, at + r.len);
			else
				printf(" [%" PRIx64 ",%" PRIx64 ")", at, at + r.len);
		}
		fputs(json ? "] }" : "\n", stdout);
		first = false;
	}
	if (json)
		printf("\n  ]");
	return NULL;
}

static struct elfrw_err *dump_calls(struct dwr_sections *secs, const struct what *what)
{
	struct dwr_units units = { 0 };
	struct dwr_calls calls = { 0 };
	ELFRW_TRY(dwr_sections_load(secs, DWR_INFO));
	ELFRW_TRY(dwr_sections_load(secs, DWR_TYPES));
	ELFRW_TRY(dwr_sections_load(secs, DWR_ABBREV));
	struct elfrw_err *err = dwr_units_read(secs, &units);
	if (!err)
		err = dwr_calls_read(secs, &units, &calls);
	if (!err && what->dcall) {
		printf(what->json
			       ? ",\n  \"dcall\": ["
			       : "Direct calls (%zu: return address, callee's DIE, caller's DIE):\n",
		       (size_t)calls.dcall.len);
		for (size_t i = 0; i < calls.dcall.len; i++) {
			const struct dwr_dcall *c = &calls.dcall.data[i];
			if (what->json)
				printf("%s\n    { \"site\": \"0x%" PRIx64
				       "\", \"callee\": \"0x%" PRIx64 "\", \"caller\": \"0x%" PRIx64
				       "\" }",
				       i ? "," : "", c->site, c->die, c->caller);
			else if (c->caller)
				printf("  %016" PRIx64 " <%" PRIx64 "> in <%" PRIx64 ">\n", c->site,
				       c->die, c->caller);
			else
				printf("  %016" PRIx64 " <%" PRIx64 ">\n", c->site, c->die);
		}
		if (what->json)
			printf("\n  ]");
	}
	if (!err && what->vcall) {
		printf(what->json ? ",\n  \"vcall\": ["
				  : "Virtual calls (%zu: return address, slot):\n",
		       (size_t)calls.vcall.len);
		for (size_t i = 0; i < calls.vcall.len; i++) {
			const struct dwr_vcall *c = &calls.vcall.data[i];
			if (what->json)
				printf("%s\n    { \"site\": \"0x%" PRIx64 "\", \"slot\": %" PRIu64
				       " }",
				       i ? "," : "", c->site, c->slot);
			else
				printf("  %016" PRIx64 " %" PRIu64 "\n", c->site, c->slot);
		}
		if (what->json)
			printf("\n  ]");
	}
	dwr_calls_deinit(&calls);
	dwr_units_deinit(&units);
	return err;
}

static struct elfrw_err *dump(const char *path, const struct what *what)
{
	struct elfrw_image img;
	struct dwr_sections secs = { 0 };
	struct dwr_icfold note = { 0 };
	static const char *const policy[] = { "overlay", "alias", "drop" };
	ELFRW_TRY(elfrw_image_open(&img, path));
	struct elfrw_err *err = dwr_sections_init(&secs, &img);
	if (!err)
		err = dwr_sections_load(&secs, DWR_ICFOLD);
	if (!err && !secs.sec[DWR_ICFOLD].size)
		err = elfrw_error(
			"has no .debug_icfold: nothing was folded in it, or its debug information was stripped");
	if (!err)
		err = dwr_icfold_read(&note, secs.sec[DWR_ICFOLD].data, secs.sec[DWR_ICFOLD].size);
	if (!err) {
		const char *p = policy[note.policy <= DWR_FOLDED_DROP ? note.policy : 0];
		if (what->json)
			printf("{\n  \"version\": %u, \"policy\": \"%s\"", note.version, p);
		else {
			elfrw_put_printable(stdout, path);
			printf(": .debug_icfold version %u, policy %s, %" PRIu32 " units\n",
			       note.version, p, note.map.n_units);
		}
		if (what->map)
			dump_map(&note, what->json);
		if (what->groups)
			dump_groups(&note, what->json);
		if (what->removed || (what->few && note.n_removed))
			dump_removed(&note, what->json);
		if (what->slots)
			dump_slots(&note, what->json);
		if (what->overlay)
			err = dump_overlay(&note, what->json);
		if (!err && (what->dcall || what->vcall))
			err = dump_calls(&secs, what);
		if (what->json)
			printf("\n}\n");
	}
	dwr_icfold_deinit(&note);
	dwr_sections_deinit(&secs);
	elfrw_image_close(&img);
	return err;
}

enum {
	OPT_MAP = 256,
	OPT_GROUPS,
	OPT_SLOTS,
	OPT_OVERLAY,
	OPT_DCALL,
	OPT_VCALL,
	OPT_ALL,
	OPT_JSON,
	OPT_REMOVED
};

static const struct option options[] = {
	{ "map", no_argument, NULL, OPT_MAP },         { "groups", no_argument, NULL, OPT_GROUPS },
	{ "removed", no_argument, NULL, OPT_REMOVED }, { "slots", no_argument, NULL, OPT_SLOTS },
	{ "overlay", no_argument, NULL, OPT_OVERLAY }, { "dcall", no_argument, NULL, OPT_DCALL },
	{ "vcall", no_argument, NULL, OPT_VCALL },     { "all", no_argument, NULL, OPT_ALL },
	{ "json", no_argument, NULL, OPT_JSON },       { 0 },
};

static bool asks_for_nothing(const struct what *what)
{
	return !what->map && !what->groups && !what->removed && !what->slots && !what->overlay &&
	       !what->dcall && !what->vcall;
}

int icf_cmd_dump(int argc, char **argv)
{
	struct what what = { 0 };
	struct icf_cmdline line = ICF_CMDLINE("dump", usage, argc, argv);
	icf_cmdline_init(&line, "", options);
	for (int c; (c = icf_cmdline_next(&line)) != -1;)
		switch (c) {
		case OPT_MAP: what.map = true; break;
		case OPT_GROUPS: what.groups = true; break;
		case OPT_REMOVED: what.removed = true; break;
		case OPT_SLOTS: what.slots = true; break;
		case OPT_OVERLAY: what.overlay = true; break;
		case OPT_DCALL: what.dcall = true; break;
		case OPT_VCALL: what.vcall = true; break;
		case OPT_ALL:
			what = (struct what){ true, true, true, true, true, true, true, what.json };
			break;
		case OPT_JSON: what.json = true; break;
		default: return line.status;
		}
	if (line.n != 1)
		return icf_usage_error("dump", "expected one FILE");
	const char *path = line.operand[0];
	if (asks_for_nothing(&what))
		what.groups = what.slots = what.dcall = what.vcall = what.few = true;
	struct elfrw_err *err = dump(path, &what);
	if (err) {
		icf_message(path, "%s", elfrw_err_text(err));
		elfrw_err_free(err);
		return ICF_EXIT_TROUBLE;
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		icf_message("standard output", "cannot write");
		return ICF_EXIT_TROUBLE;
	}
	return 0;
}
