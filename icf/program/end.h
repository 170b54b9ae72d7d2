/* end.h: the label of a switch at the very end of its function.
 *
 * Where GCC for AArch64 puts the jump of a switch last, the label that the table counts from is the
 * end of the function: no byte of it, and the first one of whatever follows. */
#ifndef ICF_PROGRAM_END_H
#define ICF_PROGRAM_END_H
#include "icf/program/program.h"

/* Does REF, of unit I, name the unit's end as such a label?  That moves with the unit.  So it is if
 * the label, a sum with it and a jump to the sum are the unit's last instructions, perhaps with the
 * load of the table's entry between the first two: an address of the function behind the unit would
 * not get an offset before it is jumped to. */
bool icf_names_own_end(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref);
#endif
