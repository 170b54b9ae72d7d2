/* apply.h: carries out the plan: one producer of edits for each kind of contents.  None of them
 * decides anything. */
#ifndef ICF_APPLY_APPLY_H
#define ICF_APPLY_APPLY_H
#include "dwarf/calls/call_sites.h"
#include "dwarf/folding.h"
#include "dwarf/rewrite/rewrite.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/base/vec.h"
#include "elfrw/output.h"
#include "icf/fold/plan.h"
#include "icf/program/call_scan.h"

/* What icf_apply_debug() reports of functions that share their code. */
struct icf_shared {
	const char **name;                /* by unit: its primary name, or NULL; owned */
	VEC(struct dwr_unit_alias) alias; /* sorted by unit */
	VEC(struct dwr_vslot) vslot;      /* sorted by slot: slots that held such a function */
	struct dwr_note_die *die;         /* sorted by unit, then DIE; owned */
	size_t n_dies;
	bool noted; /* .debug_icfold is in the output */
};

/* What the call tables need of .debug_info (call_query.h). */
struct icf_call_query {
	struct icf_calls found; /* the calls in the code; owned */
	bool scanned;           /* `found` is filled */
	const char **name;      /* of functions that may have no DIE of their own; owned array */
	uint32_t *unit;         /* the same: their units, ascending; owned */
	size_t n;
	uint32_t *shared; /* all units that share code and take part in calls; owned */
	size_t n_shared;
	struct dwr_call_wanted wanted; /* the question */
	struct dwr_call_found answer;  /* owned */
	bool answered;
};

/* A field of code, in section SHNDX. */
struct icf_frame_ref {
	uint64_t place, target;
	uint32_t shndx;
};

struct icf_apply {
	const struct icf_program *prog;
	const struct icf_plan *plan;
	const struct icf_options *opt;
	struct elfrw_output *out;
	uint32_t *symbol_index; /* of .symtab: old index to new index (UINT32_MAX: dropped), or
				   NULL: unchanged; owned */
	uint64_t n_thunk_bytes;
	uint64_t note_size; /* of .debug_icfold */
	struct icf_shared shared;
	struct icf_call_query query;
	struct dwr_rewrite_room *room;          /* for the input's .debug_info; borrowed */
	struct dwr_rewrite_out rewritten;       /* by icf_apply_debug(); owned */
	uint32_t n_vtables, n_vtables_left_out; /* described in the debug information; left out
						   because the class is uncertain */
	bool typed;   /* names of folded functions keep their type: relocations are kept */
	bool no_room; /* the unwind tables of this plan are too long, or there is no place for its
		       * thunks that debug information could state: nothing can be applied */
	/* .eh_frame: old address and size, new address, and the new places of its records (set by
	 * icf_apply_unwind; owned). */
	uint64_t frame, frame_size, frame_new;
	struct dwr_rw_moves frame_moves;
	/* The addresses in code that name a record of it, by place; before icf_find_frame_refs()
	 * all that lie in it.  Owned. */
	VEC(struct icf_frame_ref) frame_ref;
};

/* Does the output lack section S of the input, whatever is folded? */
bool icf_leaves_out(const struct icf_options *opt, const struct elfrw_section *s);

/* The new value of a reference to TARGET in unit UNIT (or ICF_NONE).  POINTER: the program can look
 * at the address, so it stands for the function; otherwise it stands for the code. */
uint64_t icf_new_target(const struct icf_apply *a, uint32_t unit, uint64_t target, bool pointer);

/* The same for the reference REF of unit U. */
uint64_t icf_new_ref_target(const struct icf_apply *a, const struct icf_unit *u,
			    const struct icf_ref *ref);

/* Is UNIT (or ICF_NONE) one that nothing reaches, and gone? */
static inline bool icf_is_removed(const struct icf_apply *a, uint32_t unit)
{
	return unit != ICF_NONE && (a->plan->map.unit[unit].flags & ELFRW_UNIT_REMOVED);
}

struct elfrw_err *icf_apply_drops(
	struct icf_apply *a); /* syms.c: drops the sections that the output does not have */
struct elfrw_err *icf_apply_unwind(
	struct icf_apply *a); /* unwind.c: .eh_frame, .eh_frame_hdr, .gcc_except_table */
struct elfrw_err *icf_apply_referenced(
	struct icf_apply *a); /* referenced.c: sets `referenced` of sections that could move */
struct elfrw_err *icf_find_frame_refs(struct icf_apply *a,
				      uint32_t frame); /* frame.c: a->frame_ref; section FRAME */
/* Does the field of code at PLACE name a record of the unwind table?  frame.c */
bool icf_names_record(const struct icf_apply *a, uint64_t place);
struct elfrw_err *icf_apply_code(struct icf_apply *a); /* code.c: executable sections, thunks */
struct elfrw_err *icf_apply_data(
	struct icf_apply *a); /* data.c: fields, tables, dynamic relocations, .dynamic, e_entry */
struct elfrw_err *icf_apply_symbols(struct icf_apply *a); /* syms.c: .symtab, .dynsym */
struct elfrw_err *icf_apply_notes(
	struct icf_apply *a); /* notes.c: build-id, SDT probes, other unloaded sections */
struct elfrw_err *icf_apply_unloaded(
	struct icf_apply *a); /* unloaded.c: stack sizes, maps of basic blocks */
struct elfrw_err *icf_apply_relocs(
	struct icf_apply *a); /* relocs.c: kept relocations, for --emit-relocs */
#endif
