/* debug.h: what the files that compare debug information share.  libdw reads both files; nothing of
 * the reading or rewriting of debug information in this program takes part. */
#ifndef ICF_VERIFY_DEBUG_DEBUG_H
#define ICF_VERIFY_DEBUG_DEBUG_H
#include "icf/verify/debug/dwarf.h"
#include "icf/verify/debug/overlay.h"
#include "icf/verify/lines/row.h"

#define ICF_VD_ARTIFICIAL "<folded functions>"

/* All that the answer of a comparison depends on (seen.c). */
struct icf_vkey {
	uint64_t v[5];
};

/* One part of the units, worked on by one thread with handles of its own. */
struct icf_vdebug {
	struct icf_v *v;
	struct icf_vlog *log;
	enum dwr_policy policy;
	struct icf_vdwarf in, out;
	const struct icf_voverlay *overlay; /* of all DIEs, sorted by DIE */
	size_t n_overlay;
	uint32_t n_artificial;
	VEC(struct icf_vowner) owner; /* of units that share their code */
	uint64_t overlay_seen;        /* entries that belonged to a DIE of this part */
	struct icf_vrows
		group; /* rows of units that share their code: files are interned in `names` */
	struct icf_vrows artificial; /* rows of the artificial unit, the same */
	struct icf_vnames *names;
	const char *comp_dir;     /* of the unit at hand */
	struct icf_vplaces place; /* where IN's rows are */
	void *rows;               /* lines/lines.c: memory for rows */
	void *entries;            /* loc.c: the same for entries of location lists */
	void *abbrevs;            /* die.c: which pairs of abbreviations are the same */
	size_t n_abbrevs, cap_abbrevs;
	void *seen; /* seen.c: what was compared */
	uint32_t n_seen;
	struct icf_vkey unit_key; /* the unit at hand, as far as lists depend on it */
	uint32_t unit_id;         /* its number; UINT32_MAX: not asked for yet */
	void *ranges;             /* range.c: the lists that were right */
	const uint8_t *end[2];    /* where its DIEs end, in IN and OUT; NULL: not known */
};

/* die.c: the tree below A in IN and B in OUT, at the same offset, both of units. */
struct elfrw_err *icf_vd_tree(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
void icf_vd_tree_deinit(struct icf_vdebug *d);
/* range.c: the ranges of A in IN and B in OUT.  DEAD: of code that the linker left out. */
void icf_vd_ranges(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, bool dead);
void icf_vd_ranges_deinit(struct icf_vdebug *d);
/* loc.c: two expressions, and two location lists. */
const char *icf_vd_expr(struct icf_vdebug *d, Dwarf_Attribute *x, Dwarf_Op *a, size_t na,
			Dwarf_Attribute *y, Dwarf_Op *b, size_t nb);
void icf_vd_loclist(struct icf_vdebug *d, Dwarf_Die *die, bool dead, uint32_t folded,
		    Dwarf_Attribute *x, Dwarf_Attribute *y, bool views);
void icf_vd_loclist_deinit(struct icf_vdebug *d);
void icf_vd_views(struct icf_vdebug *d, Dwarf_Die *die, Dwarf_Attribute *va, Dwarf_Attribute *la,
		  Dwarf_Attribute *vb, Dwarf_Attribute *lb);
enum icf_vd_how { ICF_VD_POINT, ICF_VD_END, ICF_VD_POINTER };
/* Is B what the address A becomes? */
bool icf_vd_address(const struct icf_vdebug *d, enum icf_vd_how how, uint64_t a, uint64_t b,
		    uint64_t *want);
/* "DIE 0x2d (function NAME)" */
const char *icf_vd_die(Dwarf_Die *die, char buf[200]);

/* artificial.c: the unit that only OUT has, but for its rows and ranges. */
struct elfrw_err *icf_vd_artificial_unit(struct icf_vdebug *d);
/* dshape.c: .debug_aranges; then the headers of the sections that are made of sets. */
void icf_vd_aranges(struct icf_vdebug *d);
void icf_vd_headers(struct icf_vdebug *d);
void icf_vd_abbrevs(struct icf_vdebug *d);
/* dtables.c: these, .debug_frame, the indices, sections of strings. */
struct elfrw_err *icf_vd_tables(struct icf_vdebug *d);
#endif
