/* verify_die.c: every DIE of a unit against the DIE at the same offset of OUT.
 *
 * Both trees are walked side by side.  Attributes that hold no address must be equal; addresses, ranges, location lists and
 * expressions must be what the map makes of IN's.  A folded function's DIE, and those of its scopes, cover nothing but its
 * thunk any more; what they lost is in the overlay.  Most DIEs (types, declarations) have no attribute that could change:
 * for those it is enough that the same abbreviation is followed by the same bytes. */
#include "icf/verify_debug.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif
#define MAX_ATTRS 96
#define MAX_DEPTH 1024

struct attrs {
	Dwarf_Attribute v[MAX_ATTRS];
	unsigned n;
};

/* Where the walk is. */
struct place {
	Dwarf_Die a, b;
	bool dead;       /* inside of a function that the linker left out: its addresses mean nothing */
	uint32_t folded; /* the folded unit of the function around, or NONE */
};

/* Abbreviation A of IN and B of OUT, by address: SAME: equal, and nothing in it can change. */
struct abbrev {
	const void *a, *b;
	bool same;
};

void icf_vd_tree_deinit(struct icf_vdebug *d)
{
	free(d->abbrevs);
	d->abbrevs = NULL;
	d->n_abbrevs = d->cap_abbrevs = 0;
}

static bool is_plain(unsigned name, unsigned form)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_entry_pc:
	case DW_AT_ranges:
	case DW_AT_stmt_list:
	case DW_AT_macros:
	case DW_AT_macro_info:
	case DW_AT_GNU_macros:
	case DW_AT_call_return_pc:
	case DW_AT_call_pc:
	case DW_AT_GNU_locviews:
	case DW_AT_LLVM_stmt_sequence:
		return false;
	}
	switch (form) {
	case DW_FORM_string:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data16:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_implicit_const:
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
	case DW_FORM_ref_addr:
	case DW_FORM_ref_sig8:
		return true;
	case DW_FORM_data4:
	case DW_FORM_data8:
		/* In DWARF 2 and 3 these may be places in other sections. */
		return name == DW_AT_byte_size || name == DW_AT_decl_line || name == DW_AT_const_value || name == DW_AT_decl_file || name == DW_AT_call_line;
	default:
		return false;
	}
}

static bool compare_abbrevs(Dwarf_Abbrev *a, Dwarf_Abbrev *b)
{
	size_t na, nb;
	if (a->code != b->code || dwarf_getabbrevtag(a) != dwarf_getabbrevtag(b) || dwarf_abbrevhaschildren(a) != dwarf_abbrevhaschildren(b) ||
	    dwarf_getattrcnt(a, &na) || dwarf_getattrcnt(b, &nb) || na != nb)
		return false;
	for (size_t i = 0; i < na; i++) {
		unsigned xn, xf, yn, yf;
		Dwarf_Sword xc = 0, yc = 0;
		if (dwarf_getabbrevattr_data(a, i, &xn, &xf, &xc, NULL) || dwarf_getabbrevattr_data(b, i, &yn, &yf, &yc, NULL))
			return false;
		if (xn != yn || xf != yf || (xf == DW_FORM_implicit_const && xc != yc) || !is_plain(xn, xf))
			return false;
	}
	return true;
}
