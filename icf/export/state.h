/* state.h: private to this folder: the program as the writers see it, piece by piece. */
#ifndef ICF_EXPORT_STATE_H
#define ICF_EXPORT_STATE_H
#include "dwarf/calls/icfold_note.h"
#include "dwarf/stack/lookup.h"
#include "dwarf/symbolize/pieces.h"
#include "elfrw/base/wbuf.h"
#include "elfrw/image.h"
#include "icf/export/export.h"

/* A call whose callee shares its code with others. */
struct icf_export_call {
	uint64_t site;     /* the return address */
	uint64_t slot;     /* of a virtual table; UINT64_MAX: a direct call */
	uint32_t caller;   /* member that makes it; UINT32_MAX: any that has the code */
	uint32_t first, n; /* the names of functions that it may call, in icf_export.callee */
};

struct icf_export {
	const struct icf_export_in *in;
	const char *name; /* of the program, without folders */
	struct dwr_sym *sym;
	struct elfrw_image code;
	bool has_code;
	const struct dwr_icfold *note; /* or NULL */
	uint64_t base;                 /* the address of the first segment */
	struct dwr_sym_pieces pieces;
	struct dwr_sym_frames frames; /* scratch */
	struct icf_export_counts *counts;
	struct dwr_lookup *lookup; /* the call tables, if a writer has asked for them */
	struct {
		struct icf_export_call *data; /* sorted by site, caller, slot */
		size_t len, cap;
	} call;
	VEC(const char *) callee;
};

/* A function that a piece of code is of: one of several, if they share it. */
struct icf_export_function {
	const struct dwr_sym_piece *piece;
	uint32_t member;     /* of the note; UINT32_MAX: the code is not shared */
	const char *name;    /* demangled; NULL: not known */
	const char *linkage; /* NULL: not known */
	const char *file;    /* where it is declared; NULL: not known */
	uint32_t line;       /* the same; 0: not known */
	struct dwr_sym_insides in;
};

/* The group of functions that share PIECE; NULL: none do. */
const struct dwr_icfold_group *icf_export_group(struct icf_export *x,
						const struct dwr_sym_piece *piece);

/* Fills *RET, which the caller zeroes once and reuses, for PIECE as MEMBER's code (UINT32_MAX: it
 * is not shared). */
struct elfrw_err *icf_export_function(struct icf_export *x, const struct dwr_sym_piece *piece,
				      uint32_t member, struct icf_export_function *ret);
void icf_export_function_deinit(struct icf_export_function *f);

/* Fills x->call. */
struct elfrw_err *icf_export_read_calls(struct icf_export *x);

/* The first of x->call in the code of F.  Those that follow are in order; icf_export_call_of()
 * says which are F's. */
size_t icf_export_calls_of(const struct icf_export *x, const struct icf_export_function *f);
bool icf_export_call_of(const struct icf_export *x, size_t i, const struct icf_export_function *f);

/* Strings with numbers, from 0 in the order of their first use (strings.c).  Zero it at first. */
struct icf_strings {
	struct elfrw_wbuf bytes; /* the strings, each with its NUL */
	VEC(uint32_t) off;       /* by number: where in bytes */
	uint32_t *slot;          /* open hash table: 1 + number; owned */
	size_t n_slots;
};

/* The number of the string S of N letters.  Errors: out of memory, more than 4 GiB. */
struct elfrw_err *icf_strings_add(struct icf_strings *s, const char *text, size_t n, uint32_t *ret);
const char *icf_strings_get(const struct icf_strings *s, uint32_t number);
void icf_strings_deinit(struct icf_strings *s);

/* The writers. */
struct elfrw_err *icf_export_breakpad(struct icf_export *x);
struct elfrw_err *icf_export_gsym(struct icf_export *x);
struct elfrw_err *icf_export_json(struct icf_export *x);

/* The unwind rules, for Breakpad (cfi.c). */
struct elfrw_err *icf_export_cfi(struct icf_export *x);
#endif
