/* debug.h: shared by the files that compare debug information.  libdw reads both files.  The
 * readers and writers of debug information in dwarf/ are not used. */
#ifndef ICF_VERIFY_DEBUG_DEBUG_H
#define ICF_VERIFY_DEBUG_DEBUG_H
#include "icf/verify/debug/dwarf.h"
#include "icf/verify/debug/overlay.h"
#include "icf/verify/lines/row.h"
#include <dwarf.h>

#define ICF_VD_ARTIFICIAL "<folded functions>"

/* Everything that the result of a comparison depends on (seen.c). */
struct icf_vkey {
	uint64_t v[5];
};

/* The bases of the sets of .debug_rnglists or .debug_loclists, in the order of the sections. */
struct icf_vlist_base {
	uint64_t in, out;
};
struct icf_vlist_bases {
	VEC(struct icf_vlist_base) v;
	bool known;
};

/* One part of the units.  One thread works on it with its own handles. */
struct icf_vdebug {
	struct icf_v *v;
	struct icf_vlog *log;
	enum dwr_policy policy;
	struct icf_vdwarf in, out;
	const struct icf_voverlay *overlay; /* of all DIEs, sorted by DIE */
	size_t n_overlay, near_overlay;     /* near_overlay: where the next DIE's may begin */
	uint32_t n_artificial;
	VEC(struct icf_vowner) owner; /* of units that share their code */
	uint64_t overlay_seen;        /* entries that belonged to a DIE of this part */
	struct icf_vrows
		group; /* rows of units that share their code: files are interned in `names` */
	struct icf_vrows artificial;  /* rows of the artificial unit, the same */
	struct icf_vrow_refs by_unit; /* `group` of all parts, by unit, table and address */
	struct icf_vnames *names;
	uint64_t own_program; /* offset in OUT's .debug_line of the artificial table's first opcode;
				 0: not read */
	uint64_t own_table;   /* if it is read: its place */
	uint64_t own_text;    /* bytes at the end of OUT's .debug_line_str that only the
				 artificial table needs */
	const char *comp_dir; /* of the current unit */
	/* rows.c: the last file name that was made whole, its directory, and the result. */
	const char *kept_file, *kept_dir, *kept_name;
	struct icf_vplaces place;     /* places of IN's rows */
	void *rows;                   /* lines/lines.c: memory for rows */
	void *entries;                /* loc.c: the same for entries of location lists */
	struct icf_vskip *skip;       /* skip.c: memory for units */
	struct icf_vseen_table *seen; /* seen.c: completed comparisons */
	struct icf_vkey unit_key;     /* the current unit, as far as lists depend on it */
	uint32_t unit_id;             /* its number; UINT32_MAX: not yet asked for */
	void *ranges;                 /* range.c: the lists that were right */
	const uint8_t *end[2];        /* the end of its DIEs, in IN and OUT; NULL: unknown */
	unsigned offset_size;         /* of both units, if skip.c or shift.c reads them */
	/* shift.c: the version of both units, 0: their lists are left to libdw; what offsets in
	 * lists of IN and OUT count from; a unit of code where the next list may be. */
	unsigned list_version;
	uint64_t list_base[2];
	uint32_t near;
	struct icf_vlist_bases bases[2]; /* dshape.c: of location lists, of ranges */
};

/* A DIE of IN and its image in OUT. */
struct icf_vdie_pair {
	Dwarf_Die a, b;
	int tag;
	bool dead; /* inside of a function that the linker left out: its addresses are meaningless
		    */
	uint32_t folded;          /* the folded unit of the function around, or NONE */
	bool alike;               /* it is known that the abbreviations have the same bytes */
	bool equal;               /* and that the DIEs have */
	const uint8_t *end;       /* where IN's ends; NULL: not known */
	uint32_t values;          /* if alike: bytes before the values of either */
	struct icf_vshape *shape; /* if alike: what is known of such DIEs; or NULL */
};

/* The attributes of a DIE that say which code it has; NULL: it has none of that kind. */
struct icf_vbounds {
	Dwarf_Attribute *low, *high, *list;
};

/* "DIE 0x2d (function NAME)" */
const char *icf_vd_die(Dwarf_Die *die, char buf[200]);
/* Checks the pair P of DIEs. */
void icf_vd_die_check(struct icf_vdebug *d, struct icf_vdie_pair *p);
/* tree.c: compares the trees below A in IN and B in OUT, which are at the same offset, both of
 * units. */
struct elfrw_err *icf_vd_tree(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
/* range.c: compares the ranges of A in IN and B in OUT.  DEAD: of code that the linker left out. */
void icf_vd_ranges(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, bool dead);
/* The same, if it is clear that they are right; false: nothing is checked. */
bool icf_vd_ranges_moved(struct icf_vdebug *d, struct icf_vdie_pair *p, const struct icf_vbounds *x,
			 const struct icf_vbounds *y);
/* The same for code of a folded function, all of which the DIE has lost. */
bool icf_vd_ranges_lost(struct icf_vdebug *d, struct icf_vdie_pair *p, const struct icf_vbounds *x,
			const struct icf_vbounds *y);
void icf_vd_ranges_deinit(struct icf_vdebug *d);
/* loc.c: compare two expressions, of attributes of IN and OUT, and the location lists X and Y of a
 * pair of DIEs. */
struct icf_vexpr {
	Dwarf_Attribute *attr;
	Dwarf_Op *op;
	size_t n;
};
const char *icf_vd_expr(struct icf_vdebug *d, const struct icf_vexpr *x, const struct icf_vexpr *y);
void icf_vd_loclist(struct icf_vdebug *d, struct icf_vdie_pair *pair, Dwarf_Attribute *x,
		    Dwarf_Attribute *y, bool views);
void icf_vd_loclist_deinit(struct icf_vdebug *d);
void icf_vd_views(struct icf_vdebug *d, Dwarf_Die *die, Dwarf_Attribute *va, Dwarf_Attribute *la,
		  Dwarf_Attribute *vb, Dwarf_Attribute *lb);
/* set.c: the image of the end address VA, by the unit that holds the byte before it; false: none
 * does. */
bool icf_vd_end(const struct icf_v *v, uint64_t va, uint64_t *ret);
enum icf_vd_how { ICF_VD_POINT, ICF_VD_END, ICF_VD_POINTER };
/* Is B the image of the address A? */
bool icf_vd_address(const struct icf_vdebug *d, enum icf_vd_how how, uint64_t a, uint64_t b,
		    uint64_t *want);
/* The place in another section that X holds, as dwarf_formudata() gives it, which takes long; the
 * caller compares it with the section's size.  false: X is no such place. */
static inline bool icf_vd_place(const struct icf_vdebug *d, Dwarf_Attribute *x, uint64_t *ret)
{
	Dwarf_Word w;
	if (x->form == DW_FORM_sec_offset && d->list_version && d->offset_size == 4) {
		*ret = elfrw_get32(x->valp);
		return true;
	}
	if (dwarf_formudata(x, &w))
		return false;
	*ret = w;
	return true;
}

/* artificial.c: the unit that only OUT has, except for its rows and ranges. */
struct elfrw_err *icf_vd_artificial_unit(struct icf_vdebug *d);
/* dshape.c: .debug_aranges; the headers of sections that consist of sets. */
/* Compares the headers of the units of A in IN and B in OUT. */
void icf_vd_header(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
/* Are X of IN and Y of OUT the base of the same set of RANGES, or of location lists? */
bool icf_vd_same_base(struct icf_vdebug *d, bool ranges, Dwarf_Attribute *x, Dwarf_Attribute *y);
void icf_vd_aranges(struct icf_vdebug *d);
void icf_vd_headers(struct icf_vdebug *d);
void icf_vd_abbrevs(struct icf_vdebug *d);
/* names.c: .debug_names. */
struct elfrw_err *icf_vd_names(struct icf_vdebug *d);
/* dtables.c: these, .debug_frame, the indices, sections of strings. */
struct elfrw_err *icf_vd_tables(struct icf_vdebug *d);
#endif
