/* probe.h: notes, and the static probes among them. */
#ifndef ICF_FOLD_PROBE_H
#define ICF_FOLD_PROBE_H
#include "elfrw/base/wbuf.h"
#include "elfrw/note.h"
#include "icf/cli/options.h"
#include "icf/program/program.h"

/* Calls FN for each note of S, with the 4-byte alignment that all of these use.  Error: FN's, or a
 * note that is cut off. */
struct elfrw_err *icf_each_note(const struct elfrw_section *s,
				struct elfrw_err *(*fn)(void *arg, const struct elfrw_note *note),
				void *arg);

bool icf_is_probe(const struct elfrw_note *n);
bool icf_has_probes(const struct elfrw_section *s); /* S: of notes */

/* Fills PROG's probes, sorted by PC. */
struct elfrw_err *icf_find_probes(struct icf_program *prog, const struct icf_options *opt);

/* Appends the meaning of UNIT's probes to W; nothing if there are none. */
void icf_put_probes(const struct icf_program *prog, uint32_t unit, struct elfrw_wbuf *w);
#endif
