/* leads.h: where words lead in code, for the search of what code that is not understood reaches
 * (reach.c): whether an instruction is there. */
#ifndef ICF_REFS_LEADS_H
#define ICF_REFS_LEADS_H
#include "icf/refs/ref.h"

enum icf_leads_to {
	ICF_LEADS_UNKNOWN, /* not asked yet */
	ICF_LEADS_NOWHERE,
	ICF_LEADS_TO_ITSELF, /* to code that is not understood, or to padding */
	ICF_LEADS_TO_CODE,   /* to an instruction */
};

#define ICF_LEADS_NEAR 256 /* bytes */

struct icf_leads {
	const struct icf_program *prog; /* borrowed */
	uint64_t lo, hi;                /* of the code */
	uint8_t *map;                   /* owned; an `enum icf_leads_to` for each byte of code, four
					   in a byte */
	uint8_t *near; /* owned; a bit for each ICF_LEADS_NEAR bytes of code: understood code is in
			  them or in as many bytes before */
};

/* PROG stays the caller's, has code, and outlives *RET; its units' kinds do not change.  False: out
 * of memory.  Release *RET in both cases. */
bool icf_leads_init(struct icf_leads *ret, const struct icf_program *prog);
void icf_leads_deinit(struct icf_leads *l);

/* Asks for the address TO, in the code, for the first time. */
void icf_leads_ask(struct icf_leads *l, uint64_t to);

/* Where does a word that means TO lead, in a unit that is not understood?  Never UNKNOWN. */
static inline enum icf_leads_to icf_leads(struct icf_leads *l, uint64_t to)
{
	uint64_t off = to - l->lo;
	if (off >= l->hi - l->lo)
		return ICF_LEADS_NOWHERE;
	enum icf_leads_to what = l->map[off >> 2] >> (off & 3) * 2 & 3;
	if (what != ICF_LEADS_UNKNOWN)
		return what;
	icf_leads_ask(l, to);
	return l->map[off >> 2] >> (off & 3) * 2 & 3;
}

/* False: no address from TO - ICF_LEADS_NEAR up to TO leads to an instruction. */
static inline bool icf_leads_near(const struct icf_leads *l, uint64_t to)
{
	uint64_t off = to - l->lo, block = off / ICF_LEADS_NEAR;
	return off < l->hi - l->lo + ICF_LEADS_NEAR && (l->near[block >> 3] >> (block & 7) & 1);
}
#endif
