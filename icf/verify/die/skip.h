/* skip.h: which DIEs of a unit need no reading. */
#ifndef ICF_VERIFY_DIE_SKIP_H
#define ICF_VERIFY_DIE_SKIP_H
#include "icf/verify/debug/debug.h"

/* The DIEs of an abbreviation whose values all have fixed sizes: every attribute stands at the same
 * place in each.  libdw reads one of them. */
struct icf_vshape {
	bool fixed; /* it is such an abbreviation */
	bool known; /* it was read, in this unit */
	int tag;
	uint32_t first, n;      /* its attributes, in icf_vskip.place */
	bool quick;             /* its values can be compared step by step (die.c) */
	uint32_t step, n_steps; /* in icf_vskip.step */
};

/* How to compare some bytes of the values of such a DIE. */
enum icf_vhow {
	ICF_VSTEP_SAME,  /* as bytes */
	ICF_VSTEP_POINT, /* an address of 8 bytes */
	ICF_VSTEP_END,   /* the same, behind an instruction */
	ICF_VSTEP_HIGH,  /* DW_AT_high_pc */
	ICF_VSTEP_RANGES,
	ICF_VSTEP_LIST, /* the place of a list of locations */
	ICF_VSTEP_VIEWS,
	ICF_VSTEP_OTHER
};
struct icf_vstep {
	uint32_t at, size; /* from the first value */
	uint16_t code, form;
	uint8_t how; /* enum icf_vhow */
};

/* An attribute of such a DIE. */
struct icf_vplace_of {
	uint16_t code, form;
	uint32_t at;          /* from the first value */
	unsigned char *other; /* of a value that is not in the DIE: where it is; or NULL */
};

/* A DIE to be read, at the same offset in both units.  Offsets are from the unit's DIE. */
struct icf_vtodo {
	uint32_t at, end;
	uint32_t abbrev; /* its number */
	uint32_t values; /* where they begin */
	uint32_t up;     /* the DIE of the list around it that is nearest; of the first: itself */
	bool alike;      /* equal abbreviations */
	bool equal;      /* and equal bytes */
	/* Set when it is checked: see struct icf_vdie_pair. */
	bool dead;
	uint32_t folded;
};

struct icf_vskip {
	VEC(struct icf_vtodo) todo;   /* in the order of the file; the unit's DIE is the first */
	VEC(struct icf_vshape) shape; /* by number of the abbreviation; of alike DIEs */
	VEC(struct icf_vplace_of) place;
	VEC(struct icf_vstep) step;
	bool tail;                       /* bytes behind the last DIE differ */
	uint64_t n_plain, n_expressions; /* DIEs that need no reading; their expressions */
	struct icf_vskip_tables *tables;
};

/* Compares the units of DIEs A and B.  false: their form is unusual or they differ in more than
 * values, so that all DIEs must be read. */
bool icf_vskip_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, struct icf_vskip *ret);
/* Memory for it, which all units of the part use. */
struct icf_vskip *icf_vskip_get(struct icf_vdebug *d);
void icf_vskip_deinit(struct icf_vdebug *d);
/* The end of the value of FORM at P, which ends at END at the latest; NULL: not known. */
const uint8_t *icf_vskip_value(unsigned form, const uint8_t *p, const uint8_t *end,
			       unsigned offset_size);
/* The size of values of FORM, if all have the same; or UINT32_MAX. */
uint32_t icf_vskip_size(unsigned form, unsigned offset_size);
#endif
