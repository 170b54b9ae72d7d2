/* state.h: shared by the files of the verifier: both files, the claim, and the log of
 * differences. */
#ifndef ICF_VERIFY_STATE_H
#define ICF_VERIFY_STATE_H
#include "dwarf/cfi.h"
#include "dwarf/sections.h"
#include "dwarf/calls/icfold_note.h"
#include "elfrw/blocks.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "icf/verify/verify.h"

#define ICF_V_NONE  UINT32_MAX
#define ICF_V_SLOTS 256

/* Counts and differences of one part of the work; merged in the order of the parts. */
struct icf_vlog {
	uint64_t checked[ICF_VC_CHECKS], wrong[ICF_VC_CHECKS];
	VEC(struct icf_verify_diff) diff;
	unsigned max;
	bool nomem;
};

void icf_vlog_bad(struct icf_vlog *log, enum icf_verify_check check, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Moves everything of FROM to TO. */
void icf_vlog_merge(struct icf_vlog *to, struct icf_vlog *from);
void icf_vlog_deinit(struct icf_vlog *log);

#define ICF_V_FOLDED 1
#define ICF_V_PINNED 2

/* A claimed unit: the bytes [old, end) of IN are at `body` in OUT, and `entry` is its address for
 * observers. */
#define ICF_V_NAMED  1
#define ICF_V_JUMPED 2

struct icf_vunit {
	uint64_t old, end, body, entry;
	uint32_t kept;  /* whose copy it uses; its own index unless folded */
	uint32_t thunk; /* bytes of the thunk at `entry`, 0: none */
	uint32_t exec;  /* index into exec */
	uint8_t flags;  /* of the claim */
	bool shared;    /* others are folded into it */
	bool endbr;     /* found: begins with a landing pad of indirect branches */
	bool opaque;    /* found: no code, or code that is not understood; it did not move */
	bool mixed;     /* found: something leads into the middle of an apparent instruction */
	bool computes; /* found: jumps to a target in a register or memory, or returns to an address
			  that it stored */
	uint8_t observed; /* found while code and data are read: any thread may set it */
	uint8_t named; /* found, in the same way: something other than a table of distances leads to
			  its start; ICF_V_JUMPED: only jumps do */
};

/* An executable section of both files. */
struct icf_vexec {
	uint32_t in, out; /* section indices */
	uint64_t old, old_end, new, new_end;
	const uint8_t *old_data, *new_data;
	uint32_t unit, n_units;
};

/* A field of data that refers to code. */
struct icf_vword {
	uint64_t place;     /* address in both files */
	uint64_t target;    /* its target in IN */
	uint64_t want, alt; /* the required address in OUT; either of the two */
	uint32_t table;     /* jump table, or ICF_V_NONE */
	uint8_t size;
	uint8_t kind; /* enum icf_vword_kind */
	bool quiet;   /* does not make the address observable */
	bool stored;  /* DYNAMIC: the field holds the address, too */
	bool still;   /* RELATIVE: unknown origin; the field must be unchanged */
};

enum icf_vword_kind {
	ICF_VW_FIELD,    /* the field holds the address */
	ICF_VW_DYNAMIC,  /* a dynamic relocation's addend holds the address; the field may hold it,
			    too */
	ICF_VW_RELATIVE, /* the field holds a distance, from its own place or a table's start */
	ICF_VW_OFFSET,   /* a distance to a function's symbol from an unknown place, or to a listed
			    trap from its own place */
};

struct icf_vtable {
	uint64_t base;
	uint32_t word, n; /* into word */
	uint32_t owner;   /* the only unit that refers to it, or ICF_V_NONE */
	bool none;        /* found: its entries lead elsewhere, so it is no table */
};

/* An address that code refers to, at which a word stands. */
struct icf_vbase {
	uint64_t va;
	uint32_t unit;
	bool loads; /* the instruction reads or writes this very place, instead of computing its
		       address */
};

/* A folded unit refers to other data than its kept copy: correct only if both are jump tables with
 * the same meaning. */
struct icf_vpair {
	uint32_t unit, kept;
	uint64_t at;   /* of the instruction in IN */
	uint64_t a, b; /* tables: in IN; in OUT */
};

/* A folded unit's copy branches to another unit than the folded unit did: correct only if both
 * targets are the same code, which is proved in turn. */
struct icf_valias {
	uint32_t unit, other; /* other: the unit that replaces it there */
};

/* A reference from code into an unwind table. */
struct icf_vframeref {
	uint32_t unit;
	uint64_t at, target, found;
};

/* A direct call or jump in IN to the entry of a function that shares its code. */
struct icf_vcall {
	uint32_t unit, target;
	uint64_t site; /* the address behind it in IN */
	bool optional; /* a jump, or a call through linkage code */
};

/* A direct jump in IN from one unit into another. */
struct icf_vjump {
	uint32_t unit, target;
	bool inside; /* not to its start */
};

/* Zeros in a unit of IN that are between two functions. */
struct icf_vpad {
	uint64_t va;
	uint32_t size;
};

/* A place in IN's code: number of the unit, bytes from its start, kind.  The order of these numbers
 * is that of the addresses. */
typedef uint64_t icf_vplace;
enum icf_vplace_kind { ICF_VP_START, ICF_VP_ROW, ICF_VP_CALL };
#define ICF_VP_MAX_OFF (UINT64_C(1) << 30)
struct icf_vplaces {
	VEC(icf_vplace) v;
};

static inline bool icf_vplace_add(struct icf_vplaces *p, uint32_t unit, uint64_t off,
				  enum icf_vplace_kind kind)
{
	icf_vplace x = (uint64_t)unit << 32 | off << 2 | kind;
	if (off >= ICF_VP_MAX_OFF || (p->v.len && p->v.data[p->v.len - 1] == x))
		return true;
	icf_vplace *slot = VEC_PUSH(&p->v);
	if (slot)
		*slot = x;
	return slot != NULL;
}

struct icf_vdynreloc {
	uint64_t place, addend;
	uint64_t value; /* of its symbol, 0 without one */
	uint8_t kind;   /* enum elfrw_reloc_kind */
	bool relr;
};

struct icf_v {
	const struct icf_verify_options *opt;
	bool sure, hint, doubt; /* see icf_v_unless_nomem() */
	unsigned threads;
	struct elfrw_image in, out;
	const struct elfrw_arch *arch;
	struct icf_vlog log;
	uint32_t *to_out;   /* by section of IN: section of OUT, 0: dropped */
	bool incomplete;    /* OUT lacks loaded sections: nothing else can be compared */
	uint32_t *from_out; /* by section of OUT: section of IN, 0: added */
	bool inferred;      /* IN has no relocations of its code: distances in data must be found */
	uint64_t moved_lo, moved_hi; /* addresses of IN's data sections that moved; empty: none */
	VEC(struct icf_vexec) exec;  /* sorted by old */
	uint32_t *exec_at; /* by section of IN: its index in exec + 1, 0: not executable; owned */
	VEC(struct icf_vunit) unit; /* sorted by old */
	struct elfrw_blocks blocks; /* of [lo, hi): the units */
	uint64_t lo, hi;
	uint32_t *by_new; /* units that are not folded, sorted by body; owned */
	uint32_t n_new;
	uint32_t *by_thunk; /* units with a thunk, sorted by its address; owned */
	uint32_t n_thunk;
	struct dwr_sections note_secs; /* of OUT, for its .debug_icfold */
	struct dwr_icfold note;        /* when has_note */
	bool has_note;
	VEC(struct icf_vword) word;         /* sorted by place */
	VEC(struct icf_vtable) table;       /* sorted by base */
	VEC(struct icf_vdynreloc) dynreloc; /* of IN, sorted by place */
	uint8_t *filter; /* which 64-byte lines from word[0].place on have a word */
	uint64_t filter_lo, filter_hi;
	VEC(struct icf_vbase) base;
	VEC(struct icf_vpair) pair;
	VEC(struct icf_valias) alias; /* the proved pairs, from which all others follow */
	uint32_t *same; /* by unit: equal numbers for the same code, by `alias`; NULL: no two are
			   the same; owned */
	VEC(struct icf_vframeref) frameref;
	VEC(struct icf_vcall) call;      /* in the order of the code */
	VEC(struct icf_vjump) jump;      /* the same */
	VEC(struct icf_vpad) pad;        /* sorted */
	struct icf_vplaces site;         /* the last bytes of all calls, in the order of the code */
	uint64_t slot_site[ICF_V_SLOTS]; /* by vtable slot: a call through it in OUT, in code that
					    is not shared; 0: none */
	uint64_t places_undecided, calls_undecided;
	uint64_t frame_lo, frame_hi; /* IN's .eh_frame */
	struct dwr_cfi cfi_in, cfi_out;
};

/* map.c */
struct elfrw_err *icf_v_sections(struct icf_v *v); /* pairs the sections */
struct elfrw_err *icf_v_claim(struct icf_v *v);
struct elfrw_err *icf_v_index(struct icf_v *v); /* for the look-ups; again when units changed */
uint32_t icf_v_find(const struct icf_v *v, uint64_t va); /* the unit that holds VA */
uint32_t icf_v_find_after(const struct icf_v *v,
			  uint64_t va); /* the same, or the first one behind VA */
uint32_t icf_v_find_end(const struct icf_v *v,
			uint64_t va); /* the unit that ends at VA, or holds VA - 1 */
uint32_t icf_v_find_new(const struct icf_v *v,
			uint64_t va); /* the unit whose copy holds VA of OUT */
uint32_t icf_v_find_thunk(const struct icf_v *v,
			  uint64_t va);                 /* the unit whose thunk holds VA of OUT */
bool icf_v_in_exec(const struct icf_v *v, uint64_t va); /* of IN */
const struct icf_vexec *icf_v_out_exec(const struct icf_v *v, uint64_t va); /* of OUT, or NULL */
const struct icf_vexec *icf_v_exec_of(const struct icf_v *v,
				      uint32_t shndx); /* what section SHNDX of IN is, or NULL */
/* The image of the code at VA; false: in no unit (*RET is then the new end, if VA is the end of a
 * section). */
bool icf_v_code(const struct icf_v *v, uint64_t va, uint64_t *ret);
/* The image of the address VA for observers. */
bool icf_v_pointer(const struct icf_v *v, uint64_t va, uint64_t *ret);
/* The image of a label at VA: the end of a unit is a place, too. */
bool icf_v_label(const struct icf_v *v, uint64_t va, uint32_t owner, uint64_t *ret);
/* The image of data at VA. */
uint64_t icf_v_data(const struct icf_v *v, uint64_t va);
/* "NAME+0xOFF" for an address of IN's code, for messages. */
const char *icf_v_where(const struct icf_v *v, uint64_t va, char buf[200]);

/* symclaim.c: makes the claim if there is no note. */
struct elfrw_err *icf_v_claim_from_symbols(struct icf_v *v);
/* Padding that a word of data refers to (the no-ops before a patchable function) belongs to the
 * unit behind it. */
struct elfrw_err *icf_v_extend_units(struct icf_v *v);

/* verify/data/refs.c: words of data that refer to code; tables. */
struct elfrw_err *icf_v_find_words(struct icf_v *v);
struct elfrw_err *icf_v_find_tables(struct icf_v *v);
struct elfrw_err *icf_v_sort_words(struct icf_v *v); /* call again after words were added */
/* verify/data/reach.c: words of unknown origin; sets their `still`. */
struct elfrw_err *icf_v_check_reach(struct icf_v *v);
/* verify/data/sum.c: the references of one unit: to code, and to anything else.  Only the first
 * ones are kept. */
struct icf_vnamed {
	uint64_t code[16], data[48];
	unsigned n_code, n_data;
};
/* Do distances that the unit seems to add to a function's address still lead to the same places? */
void icf_v_check_sums(const struct icf_v *v, struct icf_vlog *log, const struct icf_vnamed *named);
/* verify/data/infer.c: if IN has no relocations of its code; runs after the check of the code. */
struct elfrw_err *icf_v_infer_words(struct icf_v *v);
/* verify/data/gap.c: the same, for data that undelimited code uses.  NAME: places in data with
 * references to them, sorted. */
struct elfrw_err *icf_v_check_gaps(struct icf_v *v, const uint64_t *name, size_t n_names);
/* verify/data/distance.c: the same, for words that no known code reads.  NAME: places in data with
 * references to them, sorted. */
struct elfrw_err *icf_v_check_distances(struct icf_v *v, const uint64_t *name, size_t n_names);
/* verify/data/opaque.c: the same, in bytes that are not understood, for words that lead to any
 * instruction. */
struct elfrw_err *icf_v_check_opaque(struct icf_v *v);
/* pad.c: fills pad and `mixed`, if IN has no relocations of its code. */
struct elfrw_err *icf_v_find_pads(struct icf_v *v);
/* The bytes of padding at VA, which is then no instruction.  Asked only if the byte there is 0. */
uint64_t icf_v_pad(const struct icf_v *v, uint64_t va);
/* The first dynamic relocation of PLACE in IN, or NULL. */
const struct icf_vdynreloc *icf_v_dynreloc_at(const struct icf_v *v, uint64_t place);
/* The first word at or after PLACE. */
size_t icf_v_word_from(const struct icf_v *v, uint64_t place);
bool icf_v_may_have_word(const struct icf_v *v, uint64_t va);
/* The symbol of a kept relocation; false: no such symbol. */
bool icf_v_reloc_symbol(const struct elfrw_image *img, uint32_t symtab, const Elf64_Rela *r,
			Elf64_Sym *ret);

/* elf.c: an image for libelf and libdw.  elf NULL: see elf_errmsg(). */
struct Elf;
struct icf_velf {
	struct Elf *elf;
	int fd;
	uint8_t *copy; /* of a pair; libelf may write to it */
	size_t size;
};
void icf_v_elf_open(const struct elfrw_image *img, struct icf_velf *ret);
void icf_v_elf_close(struct icf_velf *e); /* may be { .fd = -1 } */

/* verify.c: ERR as "PATH: ERR"; takes ownership of it.  NULL and out of memory are returned
 * unchanged. */
struct elfrw_err *icf_v_named(const char *path, struct elfrw_err *err);
/* verify.c: ERR; or out of memory, if errno says so and something went wrong: ERR, or an entry of
 * LOG. */
struct elfrw_err *icf_v_unless_nomem(struct icf_v *v, const struct icf_vlog *log,
				     struct elfrw_err *err);

/* verify/data/probe.c: compares the notes of section A of IN and B of OUT, which are not loaded and
 * have probes.  Do folded functions have the probes of their kept copies? */
bool icf_v_has_probes(const struct elfrw_section *s);
void icf_v_check_notes(struct icf_v *v, const struct elfrw_section *a,
		       const struct elfrw_section *b);
struct elfrw_err *icf_v_check_probes(struct icf_v *v);

/* align.c: the address OLD of IN's code is NEW in OUT.  Does it keep its alignment, up to its
 * section's?  In no unit: true. */
bool icf_v_stays_aligned(const struct icf_v *v, uint64_t old, uint64_t new);
void icf_v_check_alignment(struct icf_v *v); /* runs when all observed functions are known */
/* mark.c: labels that delimit parts of the code. */
struct elfrw_err *icf_v_check_marks(struct icf_v *v);

/* The checks. */
struct elfrw_err *icf_v_check_code(struct icf_v *v); /* code/code.c; fills base and pair */
struct elfrw_err *icf_v_check_layout(
	struct icf_v *v); /* layout.c: padding, thunks, fill, observed */
struct elfrw_err *icf_v_check_tables(struct icf_v *v); /* verify/data/data.c */
struct elfrw_err *icf_v_check_data(struct icf_v *v);   /* verify/data/data.c */
struct elfrw_err *icf_v_check_dynamic(
	struct icf_v *v); /* verify/data/dynamic.c: dynamic relocations, .dynamic, entry */
struct elfrw_err *icf_v_check_unwind(struct icf_v *v);  /* unwind/unwind.c */
struct elfrw_err *icf_v_check_symbols(struct icf_v *v); /* symbols.c */
struct elfrw_err *icf_v_bound(
	const struct elfrw_image *img); /* verify/debug/bound.c: an error if names would take the
					   square of the file's size */
struct elfrw_err *icf_v_check_file(struct icf_v *v); /* file/file.c: headers, sections, segments */
struct elfrw_err *icf_v_check_relocs(
	struct icf_v *v); /* verify/data/relocs.c: kept relocations of OUT */
struct elfrw_err *icf_v_check_note(
	struct icf_v *v); /* verify/data/note.c: notes and .debug_icfold */
/* verify/data/unloaded.c: does S consist of records about functions?  Is B the image of A?  Do the
 * bytes of A hold old places of code? */
bool icf_v_is_records(const struct elfrw_section *s);
void icf_v_check_records(struct icf_v *v, const struct elfrw_section *a,
			 const struct elfrw_section *b);
void icf_v_check_stale(struct icf_v *v, const struct elfrw_section *a);
struct elfrw_err *icf_v_check_debug(struct icf_v *v); /* verify/debug/debug.c */

static inline bool icf_v_is_debug_name(const char *name)
{
	return strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0 ||
	       strcmp(name, ".gdb_index") == 0;
}

/* Does IMG have debug information, perhaps in the older compressed form? */
static inline bool icf_v_has_debug(const struct elfrw_image *img)
{
	return elfrw_image_section(img, ".debug_info") || elfrw_image_section(img, ".zdebug_info");
}

static inline bool icf_v_is_unwind_name(const char *name)
{
	return strcmp(name, ".eh_frame") == 0 || strcmp(name, ".eh_frame_hdr") == 0 ||
	       strncmp(name, ".gcc_except_table", 17) == 0;
}

#define ICF_VX(x) ((unsigned long long)(x))
#endif
