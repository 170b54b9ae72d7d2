/* unloaded.h: sections that are not loaded, are no debug information, and may hold addresses of
 * code all the same. */
#ifndef ICF_FOLD_UNLOADED_H
#define ICF_FOLD_UNLOADED_H
#include "icf/program/program.h"

enum icf_unloaded {
	ICF_UNLOADED_PLAIN,  /* no addresses, or others see to them (loaded, debug information, kept
				relocations) */
	ICF_UNLOADED_STACKS, /* .stack_sizes: one record a function, which is rewritten or left out
				with its function */
	ICF_UNLOADED_BLOCKS, /* .llvm_bb_addr_map: the same */
	ICF_UNLOADED_DROP,   /* addresses in a form that is not rewritten: the output has no such
				section when anything moves */
	ICF_UNLOADED_UNKNOWN,
};

enum icf_unloaded icf_unloaded_kind(const struct elfrw_image *img, uint32_t shndx);

/* A record of a section of STACKS or BLOCKS at R, which moves behind it: the offsets in the section
 * of N addresses, of 8 bytes each; the first is the function's own.  False: it is no such record,
 * or has more addresses than there is room for. */
#define ICF_UNLOADED_FIELDS 64
bool icf_unloaded_record(const struct elfrw_section *s, struct elfrw_rbuf *r,
			 uint64_t field[ICF_UNLOADED_FIELDS], uint32_t *n);

/* Where an unloaded section of a kind that nobody knows holds the address of a function, nothing
 * may move (prog->loose). */
void icf_find_unloaded(struct icf_program *prog);
#endif
