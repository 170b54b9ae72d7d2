/* state.h: private to this folder: the parts of a symbolizer.
 *
 * A query goes down level by level.  Each level is built on first use: the units' intervals
 * (units.c), one unit's functions (func.c), one function's inlined copies (body.c), one line
 * table's sequences (line.c), names of the entries that are printed (die.c). */
#ifndef DWARF_SYMBOLIZE_STATE_H
#define DWARF_SYMBOLIZE_STATE_H
#include "dwarf/calls/icfold_note.h"
#include "dwarf/line.h"
#include "dwarf/symbolize/file.h"
#include "dwarf/symbolize/unit.h"

/* ---- strings that live as long as the handle (file.c) ---- */

struct dwr_arena {
	struct dwr_arena_chunk *chunk; /* the newest first; owned */
	size_t used, size;             /* of the newest */
};
void *dwr_arena_alloc(struct dwr_arena *arena, size_t size); /* unaligned; NULL: out of memory */
void dwr_arena_deinit(struct dwr_arena *arena);

/* ---- line tables (line.c) ---- */

struct dwr_lines;

struct dwr_place {
	uint32_t file, line, column, discriminator;
};

#define DWR_SYM_BODIES          4096
#define DWR_SYM_BODIES_IN_ORDER 128
#define DWR_SYM_DECLS           2048

/* A function (node 0) or an inlined copy in it. */
struct dwr_sym_node {
	uint64_t die;
	uint32_t parent; /* index of the node around it */
};

struct dwr_sym_nodes {
	struct dwr_sym_node *data; /* owned; in the order of the DIEs */
	size_t len, cap;
};

/* An address in a function, and the innermost node that holds it. */
struct dwr_sym_answer {
	uint64_t address;
	uint32_t node;
};

struct dwr_sym_answers {
	struct dwr_sym_answer *data; /* owned */
	size_t len, cap;
};

struct dwr_sym_body {
	const struct dwr_sym_unit *unit; /* NULL: not filled */
	uint64_t die;                    /* the function's */
	uint32_t member;   /* of the note; UINT32_MAX: as the debug information has it */
	uint32_t walks;    /* so far, each for some addresses */
	bool many;         /* there are so many ranges that only the whole is worth a walk */
	uint32_t searched; /* look-ups in spans that were not flat */
	bool whole;        /* spans has all of the function; else node has what the answers need */
	bool flat;         /* ... and is a flat table */
	struct dwr_spans spans; /* id: index of the node */
	struct dwr_sym_nodes node;
	struct dwr_sym_answers answer; /* ascending */
};

/* Values of a DIE or of one that it refers to. */
struct dwr_sym_decl {
	const char *name, *linkage; /* NULL: none */
	const char *file;
	uint32_t line;
};

struct dwr_sym_decl_of {
	const struct dwr_sym_unit *unit; /* NULL: empty */
	uint64_t die;
	struct dwr_sym_decl decl;
};

struct dwr_sym {
	struct dwr_sym_file *main;  /* what was opened */
	struct dwr_sym_file *debug; /* where the debug information is: main, or a file of its own */
	struct dwr_sym_file *alt;   /* supplementary file (dwz), or NULL */
	bool alt_tried;
	enum dwr_sym_path path;
	char *debug_dir;       /* owned */
	char *sysroot;         /* owned; "": none */
	char *warning;         /* owned */
	bool nomem;            /* something is missing because memory ran out */
	const uint64_t *ahead; /* of dwr_sym_will_ask(); borrowed */
	size_t n_ahead;
	struct dwr_arena arena;

	struct dwr_spans units; /* id: offset of the unit */
	VEC(uint64_t) bare;     /* units that do not say what code they have */
	bool units_read, others_read,
		bare_read; /* .debug_aranges; units that it does not list; bare */

	struct dwr_sym_body body[DWR_SYM_BODIES];   /* a cache */
	unsigned n_bodies;                          /* that are used */
	struct dwr_sym_decl_of decl[DWR_SYM_DECLS]; /* a cache */

	struct dwr_symtab *symtab; /* owned; NULL: not read yet */
	struct dwr_icfold note;
	bool note_read, has_note;
	const struct dwr_sym_file *note_file; /* that `note` is of */
	VEC(uint32_t) group_order;            /* groups with their bodies ascending */

	struct dwr_demangled *demangled; /* hash table by name; owned */
	size_t n_demangled, n_demangled_slots;
	enum dwr_spelling spelling;
};

/* Keeps the text of ERR as the warning if it is the first, and frees ERR.  Out of memory is no
 * warning: it is returned. */
struct elfrw_err *dwr_sym_warn(struct dwr_sym *sym, struct elfrw_err *err);

/* For work that continues in spite of ERR: frees ERR.  Out of memory makes the query fail in the
 * end. */
void dwr_sym_forget(struct dwr_sym *sym, struct elfrw_err *err);

/* The supplementary file of SYM's debug information, opened at the first call; NULL: none, or not
 * found. */
struct dwr_sym_file *dwr_sym_alt(struct dwr_sym *sym);

/* ---- units.c ---- */

/* Lists the offsets of all units of FILE in file->unit_off. */
struct elfrw_err *dwr_sym_all_units(struct dwr_sym *sym, struct dwr_sym_file *file);

/* Completes sym->units: all units with their code. */
struct elfrw_err *dwr_sym_unit_spans(struct dwr_sym *sym);

/* ---- die.c ---- */

/* The values of one DIE that a symbolizer needs, as in the file; `form` 0: not there. */
struct dwr_sym_die {
	const struct dwr_sym_unit *unit;
	uint64_t off;
	uint32_t tag;
	bool children;
	struct dwr_value name, linkage, origin, spec, low, high, ranges, decl_file, decl_line,
		call_file, call_line, call_column, discriminator, comp_dir;
};

/* Reads the DIE at OFF of UNIT; false: no valid DIE. */
bool dwr_sym_die_read(struct dwr_sym *sym, const struct dwr_sym_unit *unit, uint64_t off,
		      struct dwr_sym_die *ret);

/* The code of a DIE: DW_AT_low_pc, DW_AT_high_pc, DW_AT_ranges; each may be NULL. */
struct dwr_sym_extent {
	const struct dwr_value *low, *high, *ranges;
};

/* Adds the ranges of code of a DIE to SPANS as ID, those of deleted code left out. */
struct elfrw_err *dwr_sym_ranges(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				 const struct dwr_sym_extent *extent, uint64_t id,
				 struct dwr_spans *spans);

/* The size of a list, 0 after an error, and that of its section. */
struct dwr_sym_list_bytes {
	uint64_t list, section;
};

/* The parts of that: the range that low_pc and high_pc say, if they do (*FOUND); where the list
 * that RANGES states is; the ranges of the list at OFF, none if it is broken. */
struct elfrw_err *dwr_sym_range(const struct dwr_sym_unit *unit,
				const struct dwr_sym_extent *extent, uint64_t id,
				struct dwr_spans *spans, bool *found);
struct elfrw_err *dwr_sym_list_off(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				   const struct dwr_value *ranges, uint64_t *ret);
struct elfrw_err *dwr_sym_list_ranges(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				      uint64_t off, uint64_t id, struct dwr_spans *spans,
				      struct dwr_sym_list_bytes *ret);

/* The range of code that low_pc and high_pc say, empty for deleted code; false: they say none. */
bool dwr_sym_low_high(const struct dwr_sym_unit *unit, const struct dwr_sym_extent *extent,
		      struct dwr_span *ret);

/* The DIE that DW_AT_specification or, without one, DW_AT_abstract_origin of DIE refers to; false:
 * none. */
bool dwr_sym_die_origin(struct dwr_sym *sym, const struct dwr_sym_die *die,
			struct dwr_sym_die *ret);

/* The string of a value, through the supplementary file if needed, or NULL. */
const char *dwr_sym_string(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
			   const struct dwr_value *v);

/* Fills *RET; unknown strings are NULL. */
void dwr_sym_die_decl(struct dwr_sym *sym, const struct dwr_sym_die *die, struct dwr_sym_decl *ret);

/* UNIT's abbreviation table with the attributes for places of code.  Valid until the next call of
 * this, or of anything that reads DIEs of other units. */
struct elfrw_err *dwr_sym_abbrev(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				 const struct dwr_abbrev_table **ret);

/* The same into a table of the caller's (see dwr_abbrev_read). */
struct elfrw_err *dwr_sym_abbrev_read(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				      struct dwr_abbrev_table *table);

/* ---- stated.c ---- */

/* A list that the entry ID of UNIT states. */
struct dwr_sym_list {
	const struct dwr_sym_unit *unit;
	uint64_t off, id;
};

struct dwr_sym_stated {
	struct dwr_sym_list *data; /* owned */
	size_t len, cap;
};

/* As dwr_sym_ranges(), but a list goes to STATED.  dwr_sym_read_stated() reads it later, for a
 * table that is then made flat: of several entries with one list only the one with the highest id
 * is added (LOWEST: the lowest).  That also frees STATED. */
struct elfrw_err *dwr_sym_state(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				const struct dwr_sym_extent *extent, uint64_t id,
				struct dwr_sym_stated *stated, struct dwr_spans *spans);
struct elfrw_err *dwr_sym_read_stated(struct dwr_sym *sym, struct dwr_sym_stated *stated,
				      bool lowest, struct dwr_spans *spans);

/* ---- func.c ---- */

enum dwr_sym_funcs {
	DWR_FUNCS_FEW = 1, /* those inside of functions and of types may be missing */
	DWR_FUNCS_OUTER,   /* those inside of functions may be missing */
	DWR_FUNCS_ALL,
};

/* Finds the functions of UNIT for unit->funcs, WHICH or more. */
struct elfrw_err *dwr_sym_functions(struct dwr_sym *sym, struct dwr_sym_unit *unit,
				    enum dwr_sym_funcs which);

/* Moves CUR behind the insides of DIE, its last one, if SIBLING says where they end. */
bool dwr_sym_step_over(const struct dwr_sym_unit *unit, struct dwr_cursor *cur,
		       const struct dwr_die *die, const struct dwr_value *sibling);

/* ---- body.c ---- */

/* A place in a function: the innermost node, and the nodes around it in body->node. */
struct dwr_sym_inside {
	const struct dwr_sym_body *body;
	uint32_t node;
};

/* The place of ADDRESS in the function DIE of UNIT; ret->body->node is empty if the DIE cannot be
 * read.  MEMBER: by the note's ranges for it, as addresses of the shared body; UINT32_MAX: by those
 * of the debug information.  *RET is valid until the next call. */
struct elfrw_err *dwr_sym_body_at(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  uint64_t die, uint32_t member, uint64_t address,
				  struct dwr_sym_inside *ret);

/* The whole of that function, laid out flat; *RET has no nodes if the DIE cannot be read.  Valid
 * until the next call of this or of dwr_sym_body_at(). */
struct elfrw_err *dwr_sym_body_of(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  uint64_t die, uint32_t member, const struct dwr_sym_body **ret);

/* ---- symbolize.c ---- */

/* The own function of MEMBER at ADDRESS of the shared body: RET->body NULL: none. */
struct elfrw_err *dwr_sym_member_body(struct dwr_sym *sym, uint32_t member, uint64_t address,
				      struct dwr_sym_unit **unit, struct dwr_sym_inside *ret);

/* ---- alias.c ---- */

/* Policy alias: the place of MEMBER at ADDRESS of the shared body, by the line table of UNIT, which
 * has a DIE of it; false in *FOUND: not known, since sequences of several functions disagree. */
struct elfrw_err *dwr_sym_alias_place(struct dwr_sym *sym, uint32_t member,
				      struct dwr_sym_unit *unit, uint64_t address,
				      struct dwr_place *ret, bool *found);

/* ---- line.c ---- */

/* A run of code with one place. */
struct dwr_sym_run {
	uint64_t lo, hi;
	struct dwr_place place;
};

struct dwr_sym_runs {
	struct dwr_sym_run *data; /* owned */
	size_t len, cap;
};

/* Appends what dwr_lines_find() says of [LO, HI), in ascending order. */
struct elfrw_err *dwr_lines_runs(const struct dwr_lines *lines, uint64_t lo, uint64_t hi,
				 struct dwr_sym_runs *runs);

/* The same for dwr_lines_find_in(), in the order of the sequences. */
struct elfrw_err *dwr_lines_runs_in(const struct dwr_lines *lines, uint64_t off, uint32_t n,
				    uint64_t lo, uint64_t hi, struct dwr_sym_runs *runs);

/* Appends the runs of dwr_sym_alias_place() in [LO, HI) (alias.c). */
struct elfrw_err *dwr_sym_alias_runs(struct dwr_sym *sym, uint32_t member,
				     struct dwr_sym_unit *unit, uint64_t lo, uint64_t hi,
				     struct dwr_sym_runs *runs);

#define DWR_LINES_AT 64

/* Sequences that hold an address. */
struct dwr_lines_at {
	uint32_t n;
	uint32_t seq[DWR_LINES_AT];
	struct dwr_place first[DWR_LINES_AT]; /* each one's first row there; line 0: none */
};

/* All sequences that hold ADDRESS; false: there are more than DWR_LINES_AT. */
bool dwr_lines_at(const struct dwr_lines *lines, uint64_t address, struct dwr_lines_at *ret);

/* Looks ADDRESS up in the sequences SEQS; false: one of them does not hold it, or they disagree. */
bool dwr_lines_find_at(struct dwr_lines *lines, const struct dwr_lines_at *seqs, uint64_t address,
		       struct dwr_place *ret);

/* As dwr_lines_runs(), by the first of SEQS. */
struct elfrw_err *dwr_lines_runs_at(const struct dwr_lines *lines, const struct dwr_lines_at *seqs,
				    uint64_t lo, uint64_t hi, struct dwr_sym_runs *runs);

/* The line table of UNIT, indexed at the first call; NULL in unit->lines: none. */
struct elfrw_err *dwr_sym_unit_lines(struct dwr_sym *sym, struct dwr_sym_unit *unit);
void dwr_lines_free(struct dwr_lines *lines);

/* Looks ADDRESS up in the table; false: not found. */
bool dwr_lines_find(struct dwr_lines *lines, uint64_t address, struct dwr_place *ret);

/* The same, but also false if overlapping sequences disagree.  N: how many agree. */
bool dwr_lines_find_sure(struct dwr_lines *lines, uint64_t address, struct dwr_place *ret,
			 uint32_t *n);

/* The same, looking only at the N sequences from OFF on, which counts from the first opcode. */
bool dwr_lines_find_in(const struct dwr_lines *lines, uint64_t off, uint32_t n, uint64_t address,
		       struct dwr_place *ret);

/* The path of file INDEX of the table of UNIT, or NULL. */
const char *dwr_sym_file_name(struct dwr_sym *sym, const struct dwr_sym_unit *unit, uint64_t index);

/* ---- symtab.c ---- */

void dwr_symtab_free(struct dwr_symtab *symtab);

/* Do all symbols come from .dynsym? */
bool dwr_symtab_is_dynamic(struct dwr_sym *sym);

/* ---- demangle.c ---- */

void dwr_sym_demangled_free(struct dwr_sym *sym);
#endif
