/* link_args.h: what a linker's command line says about its result, as far as folding needs it. */
#ifndef ICF_CLI_LINK_ARGS_H
#define ICF_CLI_LINK_ARGS_H
#include "icf/cli/args.h"
#include <stdbool.h>

/* Starts as { 0 }. */
struct icf_link {
	bool driver;      /* a compiler that calls the linker, not the linker itself */
	bool plain;       /* its result is not folded: -r, or a compiler that does not link */
	bool emit_relocs; /* the result must have relocations */
	bool strip_all;   /* the result must have no symbols */
	const char *output;
	struct icf_args all;  /* the command with response files expanded */
	struct icf_args edit; /* added and changed arguments; [0] ends with NULL: the command that
				 links for folding */
	int response;         /* descriptor of our own response file, or 0 */
};

/* Reads the command ARGV[0..ARGC), with NULL behind it.  A command named ld, ld.*, *-ld, lld, gold
 * or mold is a linker; any other is a compiler.  Strings are borrowed from ARGV. */
struct elfrw_err *icf_link_read(struct icf_link *link, int argc, char **argv);

/* Sets LINK->edit: the command with --emit-relocs and without options that strip, since linkers do
 * not combine the two.  Call icf_link_read first. */
struct elfrw_err *icf_link_edit(struct icf_link *link, int argc, char **argv);

void icf_link_deinit(struct icf_link *link);
#endif
