/* callchain.h: which function was called at every level of a stack, in a program whose functions
 * share code.
 *
 * A return address says which function the caller called (.debug_dcall), or through which vtable
 * slot (.debug_vcall).  Where the caller shares its code too, that depends on which function the
 * caller is, so a stack is decided from its outermost frame inward.  A call that reaches the
 * frame's code by tail calls is followed through the jumps of the code.  What these do not decide
 * stays undecided, with all candidates: nothing is guessed.
 *
 *	struct dwr_callchain *cc;
 *	err = dwr_callchain_open(&img, NULL, NULL, &cc);
 *	err = dwr_callchain_resolve(cc, addr, NULL, n, &chain);
 *	for (i = 0; i < n; i++) ... chain.frame.data[i] ...
 *	dwr_chain_deinit(&chain);
 *	dwr_callchain_close(cc); */
#ifndef DWARF_STACK_CALLCHAIN_H
#define DWARF_STACK_CALLCHAIN_H
#include "dwarf/calls/icfold_note.h"
#include "dwarf/stack/memo.h"
#include "elfrw/base/vec.h"

struct elfrw_image;
struct dwr_callchain;
struct dwr_vtables;
struct dwr_calls;

enum dwr_chain_by {
	DWR_BY_NOTHING,  /* undecided, or there was nothing to decide */
	DWR_BY_DCALL,    /* the call site names the function */
	DWR_BY_VCALL,    /* the call site names a vtable slot, which is enough, or with the vtable's
			    address */
	DWR_BY_TAILCALL, /* of the functions that share the code, only this one is reached by jumps
			    from the callee */
	DWR_BY_UNIQUE, /* the address itself decides (a thunk), or only one function is possible */
};

/* One function that a frame could be in. */
struct dwr_chain_member {
	uint32_t member; /* index in the note's `member`; UINT32_MAX without a note */
	uint64_t die;    /* its DIE, .debug_info offset; 0: it has none */
};

struct dwr_chain_frame {
	bool merged; /* several functions share the code at this address (otherwise all other fields
			are 0) */
	bool decided;      /* there is exactly one candidate */
	uint8_t by;        /* enum dwr_chain_by */
	uint32_t group;    /* index in the note's `group`; UINT32_MAX without a note */
	uint32_t first, n; /* the candidates, in the order of the group: index in dwr_chain.member,
			      and how many */
	uint32_t same;     /* levels with this number are all alike, address included;
			      DWR_MEMO_NONE: it has none */
};

struct dwr_chain {
	VEC(struct dwr_chain_frame) frame;
	VEC(struct dwr_chain_member) member;
};

/* Prepares CODE, and DEBUG, the file with its debug information, or NULL if that is CODE itself.
 * NOTE: the .debug_icfold of that file (dwr_sym_debug_note), or NULL: read here.  All are borrowed
 * for the life of *RET; DEBUG's arch may be NULL.  For a file without .debug_icfold only its call
 * tables are used: a frame is then merged if the call site has an entry.  Errors: tables that
 * cannot be read, a machine that icfold does not know. */
struct elfrw_err *dwr_callchain_open(const struct elfrw_image *code,
				     const struct elfrw_image *debug, const struct dwr_icfold *note,
				     struct dwr_callchain **ret);
void dwr_callchain_close(struct dwr_callchain *cc);

/* The decoded .debug_icfold section, or NULL; borrowed. */
const struct dwr_icfold *dwr_callchain_note(const struct dwr_callchain *cc);

/* The call tables; direct calls by site, caller and DIE, virtual ones by site and slot. */
const struct dwr_calls *dwr_callchain_calls(const struct dwr_callchain *cc);

/* The K-th function (unit of the address map) that the DIE at .debug_info offset DIE describes a
 * part of; UINT32_MAX: there are not so many. */
uint32_t dwr_callchain_die_unit(const struct dwr_callchain *cc, uint64_t die, size_t k);

/* Decides the stack ADDR (N addresses as linked, innermost first: a PC, then return addresses).
 * VTABLE, unless NULL, holds for each level the vtable address (as linked) of the object that the
 * level's function was called on; 0: unknown.  *CHAIN is emptied first and keeps its memory; zero
 * it before the first use.  Addresses outside of known code say nothing of the frame inside.
 * Errors: out of memory.  Not for several threads at once on one CC. */
struct elfrw_err *dwr_callchain_resolve(struct dwr_callchain *cc, const uint64_t *addr,
					const uint64_t *vtable, size_t n, struct dwr_chain *chain);
void dwr_chain_deinit(struct dwr_chain *chain);

/* ---- for those who look into a stopped program (receiver.h); all need the note ---- */

/* The slot of the call that returns to SITE; false: .debug_vcall does not have the site. */
bool dwr_callchain_vcall(const struct dwr_callchain *cc, uint64_t site, uint64_t *slot);

/* The file's vtables, read at the first call; borrowed. */
struct elfrw_err *dwr_callchain_vtables(struct dwr_callchain *cc, const struct dwr_vtables **ret);

/* Does a call through the vtable slot at address PLACE lead into the code of GROUP, possibly by
 * jumps? */
enum dwr_chain_leads { DWR_LEADS_NOT, DWR_LEADS_THERE, DWR_LEADS_PERHAPS };
struct elfrw_err *dwr_callchain_leads(struct dwr_callchain *cc, uint64_t place, uint32_t group,
				      enum dwr_chain_leads *ret);

/* Does the call that returns to SITE enter the code that holds address AT at its start and only
 * there?  It does if it is a direct call, and no jumps lead from that code back to it. */
struct elfrw_err *dwr_callchain_enters(struct dwr_callchain *cc, uint64_t site, uint64_t at,
				       bool *ret);

/* What the code before the virtual call that returns to SITE shows of the object: which argument it
 * is and, if the callee preserves it, the register (DWARF number, as unwound for the caller) and
 * the object's distance from the register's value in bytes. */
struct dwr_chain_object {
	bool second; /* argument: the first says where to put the result */
	bool has_reg;
	unsigned reg;
	int64_t add;
};
struct elfrw_err *dwr_callchain_object(struct dwr_callchain *cc, uint64_t site,
				       struct dwr_chain_object *ret, bool *found);

/* Calls FN for every address operand of instructions in the body around AT, until FN returns
 * false. */
void dwr_callchain_operands(struct dwr_callchain *cc, uint64_t at,
			    bool (*fn)(void *ctx, uint64_t address), void *ctx);

/* Has the body around AT stored its first arguments in its frame before AT? */
bool dwr_callchain_spills(struct dwr_callchain *cc, uint64_t at);

/* Does a call return to SITE?  *AGAIN: could it have called the very code that holds it?  Needs the
 * note. */
struct elfrw_err *dwr_callchain_is_return(struct dwr_callchain *cc, uint64_t site, bool *ret,
					  bool *again);

/* "dcall", "vcall", "tailcall", "unique", or NULL. */
const char *dwr_chain_by_text(enum dwr_chain_by by);
#endif
