/* ask.h: the jump tables of single units, for files with relocations; see infer.h. */
#ifndef ICF_INFER_ASK_H
#define ICF_INFER_ASK_H
#include "icf/infer/unit.h"

/* Starts as { .prog = PROG }.  The first question makes the maps. */
struct icf_asker {
	struct icf_program *prog;
	bool ready;
	struct icf_bits insn, called;
	struct icf_data_map map;
	struct icf_found found;
	struct icf_finder finder;
};

/* The number of words that the jumps of unit I use in a table of 4-byte distances at BASE; *RET is
 * 0 if this is not known.  May pin units, as without relocations. */
struct elfrw_err *icf_ask_table(struct icf_asker *ask, uint32_t i, uint64_t base, uint32_t *ret);

void icf_asker_deinit(struct icf_asker *ask);
#endif
