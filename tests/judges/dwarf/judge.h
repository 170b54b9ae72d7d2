/* judge.h: shared by the files of judge_dwarf, which checks with libdw alone that the debug
 * information of a folded program is that of the input carried through the address map.  It uses
 * nothing of the program it judges. */
#ifndef TESTS_JUDGES_DWARF_JUDGE_H
#define TESTS_JUDGES_DWARF_JUDGE_H
#include "tests/judges/dwarf/table.h"
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of the map file. */
struct junit {
	uint64_t old, size, new;
	const char *name; /* owned by the map */
	uint32_t kept; /* index of the unit whose code this one uses; its own index unless folded */
	bool folded;
	bool has_folded; /* others use its code */
	bool guessed; /* which unit of its group is the kept one could not be told from the files */
	uint64_t thunk; /* address of its thunk in the output, 0 if none */
	uint64_t thunk_size;
	bool has_line, thunk_has_line; /* thunk.c: libdw found one */
};

struct jmap {
	struct junit *unit; /* sorted by old */
	uint32_t n;
	uint32_t *by_new; /* the units that are not folded, sorted by new address */
	uint32_t n_new;
	uint32_t *thunk; /* the units that have a thunk, sorted by its address */
	uint32_t n_thunk;
	uint64_t (*exec_in)[2], (*exec_out)[2]; /* executable sections, half-open */
	uint32_t n_exec_in, n_exec_out;
	char *text;
};

#define JNONE UINT32_MAX

/* Sets AT to the first of the indices 0 to N for which IS_BEFORE, an expression of AT, does not
 * hold.  It holds for the first ones only, and is not asked about N. */
#define JFIRST(at, n, is_before)                                  \
	do {                                                      \
		size_t lo_ = 0, hi_ = (n);                        \
		while (lo_ < hi_) {                               \
			(at) = (uint32_t)(lo_ + (hi_ - lo_) / 2); \
			if (is_before)                            \
				lo_ = (size_t)(at) + 1;           \
			else                                      \
				hi_ = (at);                       \
		}                                                 \
		(at) = (uint32_t)lo_;                             \
	} while (0)

/* Reads the map file PATH; the symbol tables of both files tell which unit of a group is the kept
 * one and where thunks are.  Prints a message and returns false when it cannot. */
bool jmap_load(struct jmap *map, const char *path, Elf *in, Elf *out);
void jmap_free(struct jmap *map);

/* The unit that holds an address of the input (the byte there; for an end address, the byte
 * before). */
uint32_t jmap_find(const struct jmap *map, uint64_t va);
/* The kept unit that holds an address of the output, and the unit whose thunk holds it. */
uint32_t jmap_find_new(const struct jmap *map, uint64_t va);
uint32_t jmap_find_thunk(const struct jmap *map, uint64_t va);
bool jmap_exec_in(const struct jmap *map, uint64_t va);
bool jmap_exec_out(const struct jmap *map, uint64_t va);
/* Where the byte at VA, or the end VA, is in the output; false: between units. */
bool jmap_point(const struct jmap *map, uint64_t va, uint64_t *ret);
bool jmap_end(const struct jmap *map, uint64_t va, uint64_t *ret);

enum jpolicy { J_OVERLAY, J_ALIAS, J_DROP };

/* The kinds of fault that are counted, each with its own limit of printed lines. */
enum jkind {
	J_TREE,
	J_ATTR,
	J_ADDR,
	J_RANGE,
	J_LOC,
	J_VIEW,
	J_LINE,
	J_FOLDED_LINE,
	J_THUNK_LINE,
	J_ARANGE,
	J_FRAME,
	J_KINDS
};

/* Sections that are read without libdw. */
enum jsection { JS_LOC, JS_LOCLISTS, JS_LINE, JS_LINE_STR, JS_STR, J_SECTIONS };

struct judge {
	struct jmap map;
	Dwarf *in, *out;
	Elf *elf_in, *elf_out;
	struct jbytes sec[2][J_SECTIONS]; /* [output]: of handles of their own; none: empty */
	enum jpolicy policy;
	unsigned max; /* faults printed of each kind */
	uint64_t wrong[J_KINDS];
	uint64_t n_dies, n_attrs, n_addrs, n_ranges, n_locs, n_views, n_rows, n_folded_rows,
		n_thunk_rows, n_aranges, n_frames, n_skipped;
	struct jlines *lines; /* line.c: what is known of line tables */
};

/* Counts a fault and prints it unless too many of its kind were printed. */
void judge_wrong(struct judge *j, enum jkind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A set of addresses cut at units: what a list of ranges means after the map. */
struct jpiece {
	uint32_t unit;
	uint64_t lo, hi; /* in the output */
};
struct jset {
	struct jpiece *v;
	size_t n, cap;
	uint32_t *thunks; /* units whose thunk may (input) or does (output) belong to it */
	size_t n_thunks, cap_thunks;
};
void jset_free(struct jset *s);
/* Adds what the input range [LO, HI) must become. */
void jset_expect(struct jset *s, const struct judge *j, uint64_t lo, uint64_t hi);
/* Adds the output range [LO, HI); false: a part of it that is not empty lies in no executable
 * section. */
bool jset_add(struct jset *s, const struct judge *j, uint64_t lo, uint64_t hi);
/* Compares; NULL if equal, else a text in BUF.  THUNKS: the expected thunks must be there;
 * otherwise they may. */
const char *jset_differ(struct jset *want, struct jset *have, const struct judge *j, bool thunks,
			char *buf, size_t size);

/* die.c: the DIEs of one unit, A in the input and B in the output. */
void judge_unit(struct judge *j, Dwarf_Die *a, Dwarf_Die *b);
/* line.c: the line table of one unit. */
void judge_lines(struct judge *j, Dwarf_Die *a, Dwarf_Die *b);
/* folded.c: the line table of the artificial unit; at the end, what is missing in that table. */
void judge_folded_lines(struct judge *j, Dwarf_Die *b);
void judge_lines_done(struct judge *j);
/* thunk.c: the rows of thunks in one unit, as libdw reads them; thunks without a row. */
void judge_thunks(struct judge *j, Dwarf_Die *a, Dwarf_Die *b);
void judge_thunks_done(struct judge *j);
/* frame.c: .debug_aranges; .eh_frame and .debug_frame. */
void judge_aranges(struct judge *j);
void judge_frames(struct judge *j);
#endif
