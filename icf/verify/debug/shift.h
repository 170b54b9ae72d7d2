/* shift.h: ranges and lists whose code only moved. */
#ifndef ICF_VERIFY_DEBUG_SHIFT_H
#define ICF_VERIFY_DEBUG_SHIFT_H
#include "icf/verify/debug/debug.h"

/* The current unit, as far as its lists depend on it. */
void icf_vshift_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);

/* The entries of two lists, which are read in step. */
struct icf_vshift {
	struct icf_vdebug *d;
	bool ranges; /* not locations */
	struct elfrw_rbuf r[2];
	uint64_t base[2];
	size_t n;      /* entries so far */
	uint64_t lo;   /* of the last one in IN */
	bool empty;    /* it has no code */
	uint32_t unit; /* its unit in IN */
	bool wrong; /* with ICF_VSHIFT_OTHER: IN's entry is in one unit, and OUT's is not its image
		     */
};
/* Begins with the lists of attributes X of IN and Y of OUT.  false: they may not be read here. */
bool icf_vshift_begin(struct icf_vdebug *d, bool ranges, Dwarf_Attribute *x, Dwarf_Attribute *y,
		      struct icf_vshift *ret);
enum icf_vshift_step {
	ICF_VSHIFT_END,  /* of both */
	ICF_VSHIFT_SAME, /* an entry of OUT is the image of IN's, of code in one unit */
	ICF_VSHIFT_OTHER /* libdw must say */
};
enum icf_vshift_step icf_vshift_next(struct icf_vshift *s);
/* Reads the next entry of one side (0: IN, 1: OUT) of lists of ranges.  *MORE: there was one.
 * false: it is of an unusual form; *MORE is then true. */
bool icf_vshift_one(struct icf_vshift *s, int side, bool *more, uint64_t *lo, uint64_t *hi);
/* Is the range [B_LO, B_HI) of OUT the image of [A_LO, A_HI), in one unit?  If there is code, the
 * unit is neither folded nor has a thunk.  *UNIT: that unit. */
bool icf_vshift_range(struct icf_vdebug *d, uint64_t a_lo, uint64_t a_hi, uint64_t b_lo,
		      uint64_t b_hi, uint32_t *unit);
/* Is each entry of the list of locations X of PAIR's DIE the one of Y, moved?  false: nothing is
 * checked.  Long lists are read once for all DIEs; MORE: what else their comparison depends on. */
bool icf_vshift_list(struct icf_vdebug *d, const struct icf_vdie_pair *pair, uint64_t more,
		     Dwarf_Attribute *x, Dwarf_Attribute *y);
/* Is Y, of PAIR's DIE, certainly not the image of the list of locations X?  For lists that libdw
 * cannot read. */
bool icf_vshift_is_wrong(struct icf_vdebug *d, const struct icf_vdie_pair *pair, Dwarf_Attribute *x,
			 Dwarf_Attribute *y);
/* Do the expressions P of IN and Q of OUT, of N bytes each, mean the same?  false: not known here.
 * Ask only for units with a list_version. */
bool icf_vshift_expr(struct icf_vdebug *d, const uint8_t *p, const uint8_t *q, size_t n);
#endif
