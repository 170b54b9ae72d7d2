/* symbolize.h: from an address of an ELF file to function, file and line, inlined calls included.
 *
 * A handle belongs to one thread at a time.  Nothing is read before a query needs it, and what a
 * query needed is kept for the next one.  Strings that are handed out live as long as the handle.
 *
 *	struct dwr_sym *sym;
 *	struct elfrw_err *err = dwr_sym_open(path, NULL, &sym);
 *	struct dwr_sym_frames frames = { 0 };
 *	if (!err)
 *		err = dwr_sym_frames(sym, address, DWR_SYM_DEMANGLE, &frames);
 *	for (size_t i = 0; i < frames.len; i++)
 *		... frames.data[i].function ...
 *	dwr_sym_frames_deinit(&frames);
 *	dwr_sym_close(sym);
 *
 * Any little-endian ELF program, library or separate debug file of any machine; DWARF 2 to 5. */
#ifndef DWARF_SYMBOLIZE_SYMBOLIZE_H
#define DWARF_SYMBOLIZE_SYMBOLIZE_H
#include "dwarf/demangle/demangle.h"
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_sym;
struct dwr_icfold;
struct elfrw_image;

enum dwr_sym_path {
	DWR_SYM_ABSOLUTE, /* with the compilation directory in front */
	DWR_SYM_RELATIVE, /* as the line table says */
	DWR_SYM_BASENAME,
};

struct dwr_sym_options {
	enum dwr_sym_path path;
	bool own_only;          /* do not look for separate debug files */
	const char *debug_file; /* the separate debug file, borrowed during the open; NULL: search
				   for it */
	enum dwr_spelling spelling; /* of dwr_sym_demangle() */
	const char *debug_dir;      /* folder of debug files; borrowed during the open; NULL:
				       /usr/lib/debug below the sysroot */
	const char *sysroot; /* the root folder for the file; borrowed during the open; NULL: / */
	/* Mappings of PATH and of debug_file that are used instead of own ones, borrowed as long as
	 * the handle lives; NULL: none. */
	const struct elfrw_image *mapped, *debug_mapped;
};

/* Maps the file PATH and, if it has no debug information, its separate file, which is found by
 * build-id or .gnu_debuglink.  OPTIONS may be NULL.  Errors: cannot be opened, not ELF, big-endian,
 * a relocatable object.  A file without symbols or debug information is no error. */
struct elfrw_err *dwr_sym_open(const char *path, const struct dwr_sym_options *options,
			       struct dwr_sym **ret);
void dwr_sym_close(struct dwr_sym *sym); /* NULL is allowed */

enum {
	DWR_SYM_DEMANGLE = 1,    /* `function` is demangled */
	DWR_SYM_SHORT_NAMES = 2, /* names as in DW_AT_name, not linkage names; the symbol table is
				    not used then */
	DWR_SYM_NO_INLINES = 4, /* one frame: the place of the instruction, the name of the function
				   that holds it */
	DWR_SYM_NO_SYMTAB = 8,  /* names from the debug information alone */
	DWR_SYM_NO_DECL = 16,   /* names from the symbol table alone, and no start_file and
				   start_line: cheaper */
};

#define DWR_SYM_NO_DIE UINT64_MAX

struct dwr_sym_frame {
	const char *function; /* NULL: not known */
	const char *linkage;  /* the name before it was demangled; NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line, column, discriminator; /* 0: not known */
	const char *start_file;               /* where the function is declared; NULL: not known */
	uint32_t start_line;                  /* 0: not known */
	bool has_start_address;
	uint64_t start_address; /* of the function, or of its inlined copy */
	uint64_t die; /* .debug_info offset of the function or inlined copy, or DWR_SYM_NO_DIE */
	bool inlined; /* this frame's code was inlined into the next one */
};

/* An array that the caller zeroes once and reuses. */
struct dwr_sym_frames {
	struct dwr_sym_frame *data; /* owned */
	size_t len, cap;
};

/* Many queries will follow, one by one: prepares now what would otherwise be prepared during one of
 * them, when there have been some. */
void dwr_sym_expect_many(struct dwr_sym *sym);

/* Queries come in the order of their addresses from now on: little of what an earlier one needed is
 * kept. */
void dwr_sym_in_order(struct dwr_sym *sym);

/* The next queries are for these N addresses, in ascending order: those in one function are
 * answered by one walk over it.  ADDRESS is borrowed until the next call. */
void dwr_sym_will_ask(struct dwr_sym *sym, const uint64_t *address, size_t n);

/* The frames at ADDRESS (an address in the file, without a load address), innermost first; none if
 * nothing is known.  FLAGS: DWR_SYM_*.  Errors: out of memory; broken debug information counts as
 * unknown (see dwr_sym_warning). */
struct elfrw_err *dwr_sym_frames(struct dwr_sym *sym, uint64_t address, unsigned flags,
				 struct dwr_sym_frames *frames);
void dwr_sym_frames_deinit(struct dwr_sym_frames *frames);

/* The same for ADDRESS in a body that several functions share, for the function MEMBER (an index in
 * dwr_sym_note()->member): its own name, inlined frames, lines and discriminators.  For the kept
 * member, and for an address outside of the shared body (a member's thunk), this is
 * dwr_sym_frames. */
struct elfrw_err *dwr_sym_frames_for_member(struct dwr_sym *sym, uint64_t address, uint32_t member,
					    unsigned flags, struct dwr_sym_frames *frames);

/* The name of the function whose DIE is at the .debug_info offset DIE, as FLAGS want it; NULL in
 * *RET: it has none.  Errors: out of memory. */
struct elfrw_err *dwr_sym_die_name(struct dwr_sym *sym, uint64_t die, unsigned flags,
				   const char **ret);

/* The file of the debug information; *APART (may be NULL): it is not the file that was opened.
 * Borrowed; its machine may be one that is not folded. */
const struct elfrw_image *dwr_sym_debug_image(const struct dwr_sym *sym, bool *apart);

/* Finds the debug file of PATH, by build-id or .gnu_debuglink, where gdb searches: below DIR (NULL:
 * /usr/lib/debug), beside PATH, in its .debug.  The caller owns *RET; NULL: there is none, or PATH
 * has debug information itself (*OWN, may be NULL).  Errors: PATH cannot be opened, out of
 * memory. */
struct elfrw_err *dwr_sym_find_debug(const char *path, const char *dir, char **ret, bool *own);

/* The file's .debug_icfold, or NULL: none, or a broken one (see dwr_sym_warning).  Borrowed. */
const struct dwr_icfold *dwr_sym_note(struct dwr_sym *sym);

/* The same, but only if it belongs to the file with the debug information (dwr_sym_debug_image), as
 * dwr_callchain_open() requires. */
const struct dwr_icfold *dwr_sym_debug_note(struct dwr_sym *sym);

/* Index in dwr_sym_note()->group of the functions that share the body at ADDRESS; false: none
 * do. */
bool dwr_sym_group_at(struct dwr_sym *sym, uint64_t address, uint32_t *group);

/* The symbol that holds ADDRESS: of those at one address the largest, then the last.  A symbol of
 * size 0 extends to the next one.  Borrowed name. */
struct dwr_sym_symbol {
	const char *name;
	uint64_t address, size;
	const char *file;      /* of a local symbol: the STT_FILE symbol before it; NULL: none */
	bool in_other_section; /* at an address: it is only the last symbol before, without a size,
				* and its section ends before the address */
	bool several, object;  /* of dwr_sym_symbol_next() */
};
bool dwr_sym_symbol_at(struct dwr_sym *sym, uint64_t address, struct dwr_sym_symbol *ret);

/* The I-th address that symbols have, in ascending order, with the symbol for it as above, and *I
 * moves on.  SEVERAL: other symbols have it, too; OBJECT: it is one of data.  false: there are no
 * more. */
bool dwr_sym_symbol_next(struct dwr_sym *sym, size_t *i, struct dwr_sym_symbol *ret);

/* Finds the FROM-th or a later symbol named NAME: true, *RET, and in *FROM the index to continue
 * from; false: no more. */
bool dwr_sym_symbol_named(struct dwr_sym *sym, const char *name, size_t *from,
			  struct dwr_sym_symbol *ret);

/* The compilation unit and the line table's file at ADDRESS: strings as the debug information has
 * them (FILE as dwr_sym_options.path says), NULL where nothing is known.  Errors: out of memory. */
struct dwr_sym_source {
	const char *unit, *comp_dir, *file;
	uint32_t line; /* 0: not known */
};
struct elfrw_err *dwr_sym_source(struct dwr_sym *sym, uint64_t address, struct dwr_sym_source *ret);

/* NAME demangled (Itanium C++, Rust, D), as the spelling of the options says; NAME itself where
 * dwr_demangle() has nothing. */
const char *dwr_sym_demangle(struct dwr_sym *sym, const char *name);

/* Out of memory, if any result since the open is incomplete for that reason; else no error. */
struct elfrw_err *dwr_sym_complete(const struct dwr_sym *sym);

/* The first fault of the debug information that a query met, or NULL. */
const char *dwr_sym_warning(const struct dwr_sym *sym);

/* One inlined copy of a function, or one of its ranges. */
struct dwr_sym_inline {
	uint64_t unit;         /* .debug_info offset of the unit: copies come grouped by it */
	const char *name;      /* of the inlined function (linkage name when it has one) */
	const char *decl_file; /* where it is declared; NULL: not known */
	uint32_t decl_line;
	uint64_t low, high;    /* one range of the copy */
	const char *call_file; /* NULL: not known */
	uint32_t call_line, call_column;
	const char *caller; /* the function that it was inlined into, which may be an inlined copy
			       too; NULL: unknown */
	const char *outer;  /* the function whose code holds it; NULL: unknown */
	uint32_t member;    /* it belongs to this member of dwr_sym_note(), UINT32_MAX: to no folded
			       function */
};

/* Calls FN for each range of each inlined copy of the function FUNCTION (linkage, short, or
 * demangled name with or without parameters), in the order of the debug information; FN returns
 * false to stop.  ITEM's strings live as long as SYM. */
struct elfrw_err *dwr_sym_inlines(struct dwr_sym *sym, const char *function,
				  bool (*fn)(void *ctx, const struct dwr_sym_inline *item),
				  void *ctx);
#endif
