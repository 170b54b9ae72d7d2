/* program.h: where the program of a line table begins, and how long its opcodes are, for walks that
 * look at opcodes without libdw. */
#ifndef ICF_VERIFY_LINES_PROGRAM_H
#define ICF_VERIFY_LINES_PROGRAM_H
#include "elfrw/base/rbuf.h"

struct icf_vline_program {
	unsigned version, base; /* opcodes from `base` on are special */
	uint64_t header;        /* bytes of the header behind its own length field */
	const uint8_t *length;  /* operands of opcode N are length[N - 1]; borrowed */
};

/* Reads the header behind the length field of a table (DWARF 2 to 5, section 6.2.4) and moves R to
 * the program.  WIDE: 64-bit DWARF.  false: it cannot be read. */
static inline bool icf_vline_program(struct elfrw_rbuf *r, bool wide, struct icf_vline_program *ret)
{
	ret->version = elfrw_rbuf_u16(r);
	if (ret->version >= 5)
		elfrw_rbuf_u16(r); /* sizes of addresses and segments */
	ret->header = wide ? elfrw_rbuf_u64(r) : elfrw_rbuf_u32(r);
	const uint64_t program = elfrw_rbuf_off(r) + ret->header;
	elfrw_rbuf_skip(r, ret->version >= 4 ? 5 : 4);
	ret->base = elfrw_rbuf_u8(r);
	ret->length = elfrw_rbuf_take(r, ret->base ? ret->base - 1 : 0);
	if (!elfrw_rbuf_ok(r) || !ret->length)
		return false;
	elfrw_rbuf_seek(r, program);
	return true;
}
#endif
