/* pool.h: functions with literals among their code. */
#ifndef ICF_REFS_POOL_H
#define ICF_REFS_POOL_H
#include "elfrw/relocs.h"
#include "icf/program/program.h"

/* Finds the functions that alone read the literals among or behind their code, and makes units of
 * both, with ICF_UNIT_POOL.  REL: by executable section. */
struct elfrw_err *icf_find_pools(struct icf_program *prog, const struct elfrw_relocs *rel);
#endif
