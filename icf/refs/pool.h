/* pool.h: functions with literals among their code. */
#ifndef ICF_REFS_POOL_H
#define ICF_REFS_POOL_H
#include "elfrw/relocs.h"
#include "icf/program/program.h"

/* Finds the functions that alone read the literals among or behind their code, and makes units of
 * both, with ICF_UNIT_POOL.  REL: by executable section. */
struct elfrw_err *icf_find_pools(struct icf_program *prog, const struct elfrw_relocs *rel);
/* What of their literals is named by what is read later (words of data, exception tables, the
 * dynamic section): these units are not understood. */
struct elfrw_err *icf_check_pools(struct icf_program *prog);
/* Is VA among the literals of a unit with ICF_UNIT_POOL? */
bool icf_in_literals(const struct icf_program *prog, uint64_t va);
#endif
