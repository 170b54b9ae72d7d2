/* apply_relocs.c: the kept relocations of the output, for --emit-relocs. */
#include "icf/apply.h"

struct elfrw_err *icf_apply_relocs(struct icf_apply *a)
{
	(void)a;
	return elfrw_error("--emit-relocs is not supported yet");
}
