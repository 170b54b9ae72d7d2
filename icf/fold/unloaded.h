/* unloaded.h: sections that are neither loaded nor debug information, but may hold code
 * addresses. */
#ifndef ICF_FOLD_UNLOADED_H
#define ICF_FOLD_UNLOADED_H
#include "icf/program/program.h"

enum icf_unloaded {
	ICF_UNLOADED_PLAIN,  /* no addresses, or handled elsewhere (loaded, debug information, kept
				relocations) */
	ICF_UNLOADED_STACKS, /* .stack_sizes: one record for each function, which is rewritten or
				dropped with its function */
	ICF_UNLOADED_BLOCKS, /* .llvm_bb_addr_map: the same */
	ICF_UNLOADED_PSEUDO, /* .pseudo_probe: records, which stay as they are or are dropped with
				their function, see pseudo.h */
	ICF_UNLOADED_DROP,   /* addresses in a form that cannot be rewritten: the output drops the
				section if anything moves */
	ICF_UNLOADED_UNKNOWN,
};

enum icf_unloaded icf_unloaded_kind(const struct elfrw_image *img, uint32_t shndx);

/* Reads a record of a section of STACKS or BLOCKS at R, and moves R behind it.  Returns the offsets
 * in the section of its N addresses, of 8 bytes each; the first is the function's own.  false: it
 * is no such record, or has too many addresses. */
#define ICF_UNLOADED_FIELDS 64
bool icf_unloaded_record(const struct elfrw_section *s, struct elfrw_rbuf *r,
			 uint64_t field[ICF_UNLOADED_FIELDS], uint32_t *n);

/* If an unloaded section of unknown format holds the address of a function, nothing may move
 * (prog->loose). */
void icf_find_unloaded(struct icf_program *prog);
#endif
