/* verify.h: is OUT the program IN with functions folded, and nothing else?
 *
 * The address map and the groups that OUT states (.debug_icfold, or the symbols of both files) are
 * only a claim.  Everything is proved again from the bytes of the two files.  The proof shares only
 * some readers with the code that made OUT.  A fault in one of these could blind both.  They are,
 * with their independent checks:
 *
 * 	the ELF reader, and the reader of bytes     readelf, the dynamic linker, fuzzing
 * 	the decoder of instructions, the kinds      Zydis (make check-decoder), the folded
 * 	of relocations                              program's own work (tool/planted)
 * 	records of .eh_frame (dwarf/cfi.h)          libdw, which evaluates rows of both files here
 * 	.debug_icfold, the call tables, vtables     gdb, and programs that know the right answer
 *
 * The verifier reads everything else in its own way, or by libdw: the meaning of instructions,
 * exception tables (unwind/except.h), jump tables and words, symbols, notes, debug information. */
#ifndef ICF_VERIFY_VERIFY_H
#define ICF_VERIFY_VERIFY_H
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What is checked; the order is the order of the report. */
enum icf_verify_check {
	ICF_VC_CLAIM,   /* units of the claimed map */
	ICF_VC_PADDING, /* input bytes in no unit */
	ICF_VC_CODE,    /* instructions, byte for byte outside of references */
	ICF_VC_BRANCH,  /* branches into other units */
	ICF_VC_ADDRESS, /* other references in code */
	ICF_VC_FALL,    /* control that runs off a unit's end */
	ICF_VC_FOLD,    /* folded units proved equal to their kept copies */
	ICF_VC_THUNK,
	ICF_VC_OBSERVED, /* observed functions with an address of their own */
	ICF_VC_FILL,     /* output code in no unit and no thunk */
	ICF_VC_TABLE,    /* jump table entries */
	ICF_VC_WORD,     /* code addresses in data */
	ICF_VC_DATA,     /* bytes of data */
	ICF_VC_DYNRELOC,
	ICF_VC_DYNAMIC,   /* .dynamic, entry point */
	ICF_VC_FRAME,     /* FDEs */
	ICF_VC_FRAME_ROW, /* rows of the unwind rules as libdw evaluates them */
	ICF_VC_LSDA,
	ICF_VC_FRAME_HDR, /* entries of .eh_frame_hdr */
	ICF_VC_SYMBOL,
	ICF_VC_LOOKUP, /* names found through the hash tables */
	ICF_VC_NOTE,   /* build-id, probes, .debug_icfold itself */
	ICF_VC_RELOC,  /* kept relocations */
	ICF_VC_SECTION,
	ICF_VC_SEGMENT,
	ICF_VC_FILE, /* ELF header, bounds and overlaps in the file */
	ICF_VC_DIE,  /* attributes of DIEs without addresses */
	ICF_VC_DIE_ADDRESS,
	ICF_VC_DIE_RANGE,
	ICF_VC_LOCATION,
	ICF_VC_LINE,
	ICF_VC_FOLDED_LINE, /* line rows of folded functions */
	ICF_VC_OVERLAY,     /* ranges that .debug_icfold keeps for folded functions' DIEs */
	ICF_VC_ARANGE,
	ICF_VC_INDEX,     /* .gdb_index, .debug_names */
	ICF_VC_CALL,      /* call tables */
	ICF_VC_RESOLVE,   /* direct calls of functions that share their code: the function that the
			     stack gives */
	ICF_VC_VIRTUAL,   /* the same for slots of vtables */
	ICF_VC_SYMBOLIZE, /* the symbolizer's answers for places in code */
	ICF_VC_REMOVED,   /* nothing reaches what was removed */
	ICF_VC_CHECKS,
};

enum icf_verify_mode {
	ICF_VERIFY_SAFE, /* no two observed functions at one address */
	ICF_VERIFY_ALL,  /* addresses may have been merged */
};

struct icf_verify_options {
	enum icf_verify_mode mode;
	unsigned threads;   /* 0: one for each processor; the result does not depend on it */
	unsigned max_diffs; /* texts kept for each check; 0: 20 */
	const char *debug_in, *debug_out; /* the separate debug files of IN and OUT; NULL: the debug
					     information is in the files */
	bool gc_functions;                /* functions that nothing reaches may be missing */
	bool no_debug;                    /* skip the debug information */
	void (*no_memory)(void)
		__attribute__((noreturn)); /* called if libdw runs out of memory, and ends the
					      process; NULL: libdw ends it itself */
};

struct icf_verify_diff {
	uint8_t check; /* enum icf_verify_check */
	char *text;    /* "what: where (old -> new): expected ..., found ..."; owned */
};

struct icf_verify_result {
	uint64_t checked[ICF_VC_CHECKS], wrong[ICF_VC_CHECKS];
	VEC(struct icf_verify_diff) diff; /* by check, then in the order of the files */
	uint32_t n_units, n_folded, n_thunks, n_removed;
	/* For ICF_VC_SYMBOLIZE: places in shared code whose function cannot be known.  For
	 * ICF_VC_RESOLVE and ICF_VC_VIRTUAL: calls that could have called several functions. */
	uint64_t places_undecided, calls_undecided;
	bool from_note; /* the claim came from .debug_icfold */
	bool same;      /* both files are the same bytes, which needs no proof: no check ran */
	bool has_debug; /* OUT has debug information, and it was compared */
	bool equal;
};

/* Compares the files IN and OUT.  RET is filled even if they differ.  An error is trouble that
 * leaves the question open: a file that cannot be read, an input that is not understood, a missing
 * claim. */
struct elfrw_err *icf_verify(const char *in, const char *out, const struct icf_verify_options *opt,
			     struct icf_verify_result *ret);
void icf_verify_result_deinit(struct icf_verify_result *result);

const char *icf_verify_check_name(enum icf_verify_check check);

/* Prints the table of checks and the differences; VERBOSE: also checks that had nothing to do. */
void icf_verify_print(FILE *f, const struct icf_verify_result *result, bool verbose);
/* Prints only the differences, as messages about the file NAME. */
void icf_verify_print_differences(FILE *f, const char *name,
				  const struct icf_verify_result *result);
void icf_verify_print_json(FILE *f, const char *in, const char *out,
			   const struct icf_verify_result *result);
#endif
