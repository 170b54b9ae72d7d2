/* unit.h: shared by the stages that divide and glue units. */
#ifndef ICF_PROGRAM_UNIT_H
#define ICF_PROGRAM_UNIT_H
#include "icf/program/program.h"

/* Do the bytes of [START, END), inside one executable section, consist of no-ops, traps or zeros
 * only? */
bool icf_is_padding(const struct icf_program *prog, uint64_t start, uint64_t end);

/* Is any byte of [START, END) data, by mapping symbols? */
bool icf_has_data(const struct icf_program *prog, uint64_t start, uint64_t end);

/* The unit that ends at VA, or ICF_NONE. */
uint32_t icf_unit_ending(const struct icf_program *prog, uint64_t va);

/* May a linker delimit a section of this name by __start_ and __stop_ symbols? */
bool icf_is_c_identifier(const char *s);

/* Rebuilds the address look-up and the sections' unit ranges after a change of `unit`. */
struct elfrw_err *icf_index_units(struct icf_program *prog);

/* Rebuilds each unit's symbols and FDEs after a change of `unit`. */
struct elfrw_err *icf_attach(struct icf_program *prog);
/* The same for unit I alone, which has grown. */
void icf_attach_unit(struct icf_program *prog, uint32_t i);

/* Frees what refs/look.c saw while the code was decoded. */
void icf_forget_looks(struct icf_program *prog);
#endif
