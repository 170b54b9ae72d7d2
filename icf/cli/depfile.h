/* depfile.h: the files that a result was made from, as a rule for make and ninja. */
#ifndef ICF_CLI_DEPFILE_H
#define ICF_CLI_DEPFILE_H
#include "icf/cli/options.h"
#include <stdio.h>

/* An error if a file of the rule has a name that cannot be written in a rule. */
struct elfrw_err *icf_depfile_check(const struct icf_options *opt);

/* Writes "OUTPUT: INPUT FILE...".  FILE: the lists and response files that were read. */
void icf_depfile_print(FILE *f, const struct icf_options *opt);
#endif
