/* link_args.h: what a linker's command line asks for, as far as folding the result has to know. */
#ifndef ICF_CLI_LINK_ARGS_H
#define ICF_CLI_LINK_ARGS_H
#include "icf/cli/args.h"
#include <stdbool.h>

/* Starts as { 0 }. */
struct icf_link {
	bool driver;      /* a compiler that calls the linker, not the linker itself */
	bool plain;       /* its result is not folded: -r, or a compiler that is told not to link */
	bool emit_relocs; /* the result is to have relocations */
	bool strip_all;   /* the result is to have no symbols */
	const char *output;
	struct icf_args all;  /* the command with its response files read */
	struct icf_args edit; /* what was added and changed; [0] ends with NULL: the command that
				 links for folding */
	int response;         /* descriptor of a response file of ours, or 0 */
};

/* Reads the command ARGV[0..ARGC), NULL behind it: a linker (by its name: ld, ld.*, *-ld, lld,
 * gold, mold), else a compiler. Strings are borrowed from it. */
struct elfrw_err *icf_link_read(struct icf_link *link, int argc, char **argv);

/* Sets LINK->edit: the command with --emit-relocs and without what would strip the result, which
 * linkers do not do together. Call after icf_link_read. */
struct elfrw_err *icf_link_edit(struct icf_link *link, int argc, char **argv);

void icf_link_deinit(struct icf_link *link);
#endif
