/* debug.h: what the files that compare debug information share.  libdw reads both files; nothing of
 * the reading or rewriting of debug information in this program takes part. */
#ifndef ICF_VERIFY_DEBUG_DEBUG_H
#define ICF_VERIFY_DEBUG_DEBUG_H
#include "icf/verify/state.h"
#include <elfutils/libdw.h>

#define ICF_VD_ARTIFICIAL "<folded functions>"

/* A line row.  addr is in OUT; alt is another place that is right as well, or 0. */
struct icf_vrow {
	uint64_t addr, alt;
	const char *file; /* owned by libdw or by the list of rows that outlives a handle */
	int line, col;
	unsigned flags, isa, disc;
	uint32_t unit;  /* of IN */
	uint64_t cu;    /* offset of the unit of debug information */
	uint32_t order; /* among the rows of its list */
	bool optional, used;
	bool empty; /* it stands where its sequence ends, and covers nothing */
	bool first; /* the first of its sequence at the address; known where a function with a thunk
		       begins */
};

enum { /* flags */
       ICF_VROW_STMT = 1,
       ICF_VROW_BLOCK = 2,
       ICF_VROW_PROLOGUE = 4,
       ICF_VROW_EPILOGUE = 8,
       ICF_VROW_END = 16,
};

struct icf_vrows {
	VEC(struct icf_vrow) v;
	bool nomem;
	bool told; /* all that are empty or first are known */
	bool odd;  /* an operation of the table has another length than its operands, or is unknown
		    */
};

/* A range that .debug_icfold keeps for a DIE. */
struct icf_voverlay {
	uint64_t die;
	uint32_t unit;
	uint64_t start, len;
};

/* A function's DIE one of whose ranges begins where UNIT does. */
struct icf_vowner {
	uint32_t unit;
	uint64_t die;
};

/* One file as libdw has it. */
struct icf_vdwarf {
	struct icf_velf file;
	Elf *elf;               /* file.elf */
	Dwarf *dw;              /* NULL: no debug information */
	const char *why;        /* there is some that libdw had better not see; static */
	uint8_t *line;          /* .debug_line with other numbers (icf_vd_narrow), or NULL; owned */
	const Elf_Data *loc[2]; /* .debug_loc, .debug_loclists as bytes; NULL: none */
};

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

/* seen.c: what was compared in this part and found right.  D->log->nomem is set where there is no
 * memory. */
enum icf_vseen_what {
	ICF_VSEEN_UNIT,
	ICF_VSEEN_LINES,
	ICF_VSEEN_RANGES,
	ICF_VSEEN_UNREADABLE,
	ICF_VSEEN_LOCATIONS
};
enum {
	ICF_VSEEN_LONG = 8
}; /* entries: shorter lists are compared again sooner than they are looked up */
bool icf_vseen(const struct icf_vdebug *d, const struct icf_vkey *key);
uint32_t icf_vseen_add(struct icf_vdebug *d,
		       const struct icf_vkey *key); /* a number for each key */
void icf_vseen_deinit(struct icf_vdebug *d);
/* The units of DIEs A and B are next. */
void icf_vseen_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
/* The key of the lists that X of IN and Y of OUT state, MORE being what else the answer depends on;
 * false: they have none. */
bool icf_vseen_list(struct icf_vdebug *d, enum icf_vseen_what what, uint64_t more,
		    Dwarf_Attribute *x, Dwarf_Attribute *y, struct icf_vkey *ret);

/* lines/wide.c: replaces what libdw has no room for in DATA, the line tables before libdw reads the
 * first one.  *COPY: what DATA holds then, to be freed behind the handle, or NULL. */
struct elfrw_err *icf_vd_narrow(Elf_Data *data, uint8_t **copy);

/* A set of addresses of OUT, cut at units. */
struct icf_vpiece {
	uint32_t unit;
	uint64_t lo, hi;
};
struct icf_vset {
	VEC(struct icf_vpiece) v;
	VEC(uint32_t) thunk; /* units whose thunk belongs to it */
	bool nomem;
};
void icf_vset_free(struct icf_vset *s);
/* Adds what the range [LO, HI) of IN has to become; whole folded functions also give their
 * thunk. */
void icf_vset_expect(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi);
/* Adds the range [LO, HI) of OUT; false: it begins or ends in fill, or inside of a thunk. */
bool icf_vset_add(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi);
/* NULL if equal, else what differs in BUF.  THUNKS: the thunks must be there; otherwise they
 * may. */
const char *icf_vset_differ(struct icf_vset *want, struct icf_vset *have,
			    const struct icf_vdebug *d, bool thunks, char *buf, size_t size);

/* bound.c: an error, where libdw would take much more time or memory for F, which IMG is read from,
 * than any size of it explains. */
struct elfrw_err *icf_vd_bound(const struct icf_vdwarf *f, const struct elfrw_image *img);

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

/* lines/lines.c: the line table of one unit; lines/folded.c: with the rows of all parts in ALL,
 * those of folded functions. */
struct elfrw_err *icf_vd_lines(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
struct elfrw_err *icf_vd_artificial_lines(struct icf_vdebug *d, Dwarf_Die *b);
struct elfrw_err *icf_vd_folded_lines(struct icf_vdebug *all);
void icf_vd_lines_deinit(struct icf_vdebug *d);
/* lines/header.c: directories, files and opcodes of the table of A in IN and B in OUT. */
void icf_vd_line_header(struct icf_vdebug *d, uint64_t cu, Dwarf_Die *a, Dwarf_Die *b);
void icf_vd_line_headers(struct icf_vdebug *d); /* the same of all tables, named by a unit or not */
/* lines/tail.c: sets `empty` and `first` in the rows of the table at OFF of .debug_line, in libdw's
 * order. */
struct elfrw_err *icf_vd_line_tails(const struct icf_v *v, const Elf_Data *section, uint64_t off,
				    struct icf_vrows *rows);
/* lines/names.c: file names that outlive the handle they were read with: the same pointer for the
 * same text. */
struct icf_vnames *icf_vnames_create(void);
void icf_vnames_destroy(struct icf_vnames *names);
const char *icf_vnames_get(struct icf_vnames *names, const char *text);

/* verify/calls/slots.c: the slot that the indirect call (or jump) of a unit shows which returns to
 * SITE, an address of IN; UINT64_MAX: none. *FOUND: there is such a call.  Units are best asked for
 * in their order. */
struct icf_vslots *icf_vslots_create(const struct icf_v *v); /* NULL: no memory */
void icf_vslots_destroy(struct icf_vslots *s);
struct elfrw_err *icf_vslots_get(struct icf_vslots *s, uint32_t unit, uint64_t site, bool *found,
				 uint64_t *slot);
/* artificial.c: the unit that only OUT has, but for its rows and ranges. */
struct elfrw_err *icf_vd_artificial_unit(struct icf_vdebug *d);
/* lines/own_files.c: the same of its line table: its header, its files, its sequences. */
struct elfrw_err *icf_vd_own_table(struct icf_vdebug *d, Dwarf_Die *unit);
/* lines/sequences.c: the sequence that the note names for a folded unit begins with the address of
 * its code. */
void icf_vd_sequence(struct icf_vdebug *d, uint32_t u);
/* dshape.c: .debug_aranges; then the headers of the sections that are made of sets. */
void icf_vd_aranges(struct icf_vdebug *d);
void icf_vd_headers(struct icf_vdebug *d);
void icf_vd_abbrevs(struct icf_vdebug *d);
/* dtables.c: these, .debug_frame, the indices, sections of strings. */
struct elfrw_err *icf_vd_tables(struct icf_vdebug *d);
/* The bytes of a section, decompressed; NULL: there is none, or none that can be read.  Borrowed
 * from libelf. */
const Elf_Data *icf_vd_section(const struct icf_vdwarf *f, const char *name);
/* verify/calls/calls.c: .debug_dcall and .debug_vcall. */
struct elfrw_err *icf_v_check_calls(struct icf_v *v, struct icf_vdwarf *in, struct icf_vdwarf *out);

/* verify/calls/resolve.c: what the call tables of OUT make of stacks.  (*DECIDED)[unit]: the member
 * of the note that the unit is by a stack which decides it, UINT32_MAX: there is none; to be
 * freed. */
struct elfrw_err *icf_v_resolve_calls(struct icf_v *v, uint32_t **decided);

/* verify/calls/symbolize.c: what the symbolizer says of OUT against what it says of IN, at all
 * places of PART (N of them, in the order of the units of debug information), at the starts of all
 * units and at all calls. */
struct elfrw_err *icf_v_check_symbolize(struct icf_v *v, struct icf_vplaces *part, size_t n);

/* loc.c: the same operations? */
bool icf_v_ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb);
#endif
