/* hash.h: a hash of each function that means the same everywhere.
 *
 * The hash says what a function does, and neither where it is nor how its program was linked.  Two
 * links of one object have equal hashes: at other addresses, by other linkers, stripped or not.
 * Equal hashes in several files mean equal functions.  The definition is in icfold-format(5),
 * "HASHES"; whatever changes it changes ICF_HASH_VERSION.  Hashes are for reports: nothing folds
 * because of them. */
#ifndef ICF_HASH_HASH_H
#define ICF_HASH_HASH_H
#include "icf/fold/fold.h"

#define ICF_HASH_VERSION 3
#define ICF_HASH_TEXT    33 /* bytes of a hash in text, with NUL */

/* Sets RET[i], for each unit i of PROG, to the hash of the unit.  PROG has gone through the stages
 * up to icf_find_eligible() (icf_run_plan); the mode, reasons and plan do not matter.  RET has room
 * for prog->unit.len.  Units that are no functions have hashes, too.  The hash of a unit that is
 * not understood (ICF_UNIT_OPAQUE) counts its bytes as they are.  Takes about as long as a plan,
 * and memory in proportion to the units, references and relocations.  Errors: out of memory; an
 * exception table that cannot be read. */
struct elfrw_err *icf_hash_functions(const struct icf_program *prog, unsigned threads,
				     struct icf_hash *ret);

/* 32 hexadecimal digits; they sort as the hashes do. */
void icf_hash_text(const struct icf_hash *hash, char ret[ICF_HASH_TEXT]);
#endif
