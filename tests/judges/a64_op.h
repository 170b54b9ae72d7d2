/* a64_op.h: the operations that have a name of their own, for the judge of AArch64. */
#ifndef TESTS_JUDGES_A64_OP_H
#define TESTS_JUDGES_A64_OP_H
#include "tests/judges/a64_said.h"

struct elfrw_insn;
struct elfrw_effect;

/* How the named operation of E, of instruction IN, differs from what the text says, or NULL. */
const char *op_differs(const struct said *s, const struct elfrw_insn *in,
		       const struct elfrw_effect *e);
#endif
