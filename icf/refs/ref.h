/* ref.h: decoding units into references. */
#ifndef ICF_REFS_REF_H
#define ICF_REFS_REF_H
#include "icf/refs/code_reloc.h"

struct icf_trace;

/* Decodes unit I, appends its references to CHUNK's and sets its flags.  A unit that does not
 * decode, or has a relocation that no instruction explains, becomes opaque.  T is scratch memory.
 * Error: something that no program may contain. */
struct elfrw_err *icf_decode_unit(struct icf_program *prog, uint32_t i, uint32_t chunk,
				  const struct elfrw_relocs *rel, struct icf_trace *t);

/* Makes units opaque if something enters them where no instruction begins.  entered.c. */
struct elfrw_err *icf_check_entered(struct icf_program *prog);

/* A relocation with the symbol SYM leads to VA.  Pins both if that is behind the function.
 * tagged.c. */
void icf_pin_tag(struct icf_program *prog, const Elf64_Sym *sym, uint64_t va);
#endif
