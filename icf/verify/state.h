/* state.h: shared by the files of the verifier: both files, the claim, and the log of
 * differences. */
#ifndef ICF_VERIFY_STATE_H
#define ICF_VERIFY_STATE_H
#include "icf/verify/claim.h"
#include "icf/verify/log.h"
#include "icf/verify/words.h"
#include <string.h>

#define ICF_V_SLOTS 256

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
	bool named; /* by a kept relocation */
	uint64_t at, target, found;
};

/* A reference of IN's code to data, at `place`. */
struct icf_vobjref {
	uint64_t place, target;
};

/* A direct call or jump in IN to the entry of a function that shares its code. */
struct icf_vcall {
	uint32_t unit, target;
	uint64_t site; /* the address behind it in IN */
	bool optional; /* a jump, a call through linkage code, or perhaps a guess */
	bool guess;    /* its caller takes the address of a function that has the same code and
			  address as the callee: calls/guess.c */
};

/* Code in IN takes the address of a function that shares its code. */
struct icf_vtaken {
	uint32_t unit, target;
	bool loaded; /* from the global offset table, perhaps only to call it */
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

/* The code between two halves of an address, the lower of which changed: from one instruction of
 * the unit to another. */
struct icf_vspan {
	uint32_t unit, from, to; /* from the unit's start */
};

/* Addresses in IN's code. */
struct icf_ventries {
	VEC(uint64_t) v;
};

/* Data among IN's code, by mapping symbols. */
struct icf_vrun {
	uint64_t start, end;
};

struct icf_v {
	const struct icf_verify_options *opt;
	bool sure, hint, doubt; /* see icf_v_unless_nomem() */
	unsigned threads;
	struct icf_vlog log;
	struct icf_vclaim claim;
	struct icf_vwords words;
	uint64_t image;     /* the first address of IN */
	uint64_t data_size; /* bytes of IN's data that may hold distances */
	bool incomplete;    /* OUT lacks loaded sections: nothing else can be compared */
	VEC(struct icf_vbase) base;
	VEC(struct icf_vpair) pair;
	VEC(struct icf_vobjref) objref; /* to places in [lost_lo, lost_hi], of code that is there */
	uint64_t lost_lo, lost_hi;      /* the sections with words that led to removed code */
	VEC(struct icf_valias) alias;   /* the proved pairs, from which all others follow */
	uint32_t *same; /* by unit: equal numbers for the same code, by `alias`; NULL: no two are
			   the same; owned */
	VEC(struct icf_vframeref) frameref;
	VEC(struct icf_vcall) call;      /* in the order of the code */
	VEC(struct icf_vjump) jump;      /* the same */
	VEC(struct icf_vtaken) taken;    /* the same; only if addresses may merge */
	VEC(struct icf_vpad) pad;        /* sorted */
	VEC(struct icf_vrun) run;        /* sorted, disjoint */
	VEC(struct icf_vspan) span;      /* in the order of the code */
	struct icf_ventries absolute;    /* numbers that are symbols of IN */
	struct icf_ventries named;       /* without relocations of IN's code: places in data that
					    something refers to; sorted */
	struct icf_ventries entered;     /* if there may be spans: references to code */
	struct icf_vplaces site;         /* the last bytes of all calls, in the order of the code */
	uint64_t slot_site[ICF_V_SLOTS]; /* by vtable slot: a call through it in OUT, in code that
					    is not shared; 0: none */
	uint64_t places_undecided, calls_undecided;
};

/* map.c */
struct elfrw_err *icf_v_sections(struct icf_v *v); /* pairs the sections */
struct elfrw_err *icf_v_claim(struct icf_v *v);
struct elfrw_err *icf_v_index(struct icf_v *v); /* for the look-ups; again when units changed */
/* symclaim.c: makes the claim if there is no note. */
struct elfrw_err *icf_v_claim_from_symbols(struct icf_v *v);
/* Padding that a word of data refers to (the no-ops before a patchable function) belongs to the
 * unit behind it. */
struct elfrw_err *icf_v_extend_units(struct icf_v *v);

/* verify/code/literal.c: after the check of the code.  Is VA among literals of a unit, which it
 * alone knows?  What is at PLACE may lead to VA: if that is so, all must stay, with what they
 * could lead to as code. */
bool icf_v_in_literals(const struct icf_v *v, uint64_t va);
void icf_v_check_led(struct icf_v *v, uint64_t place, uint64_t va);
/* verify/data/refs.c: words of data that refer to code; tables. */
struct elfrw_err *icf_v_find_words(struct icf_v *v);
struct elfrw_err *icf_v_find_tables(struct icf_v *v);
struct elfrw_err *icf_v_sort_words(struct icf_v *v); /* call again after words were added */
/* verify/data/astray.c: do numbers that no reference follows still name what they did? */
void icf_v_check_astray(struct icf_v *v);
/* verify/data/ends.c: where tables must end; then, where a table at VA ends at the latest if the
 * next one begins at NEXT. */
struct elfrw_err *icf_v_find_ends(struct icf_v *v);
uint64_t icf_v_table_limit(const struct icf_v *v, uint64_t va, uint64_t next);
/* verify/data/reach.c: words of unknown origin; sets their `still`. */
struct elfrw_err *icf_v_check_reach(const struct icf_vclaim *c, const struct icf_vwords *words,
				    struct icf_vlog *log);
/* verify/data/sum.c: the references of one unit: to code, and to anything else.  Only the first
 * ones are kept. */
struct icf_vnamed {
	uint64_t code[16], data[48];
	unsigned n_code, n_data;
	uint64_t computes; /* bit K: the address data[K], of data, is computed */
};

static inline void icf_v_name_data(struct icf_vnamed *n, uint64_t va, bool computes)
{
	if (n->n_data == sizeof n->data / sizeof *n->data)
		return;
	n->computes |= (uint64_t)computes << n->n_data;
	n->data[n->n_data++] = va;
}

/* Do distances that the unit seems to add to a function's address still lead to the same places? */
void icf_v_check_sums(const struct icf_v *v, struct icf_vlog *log, const struct icf_vnamed *named);
/* verify/data/based.c: do words that the unit seems to add to an address of data still lead to the
 * same functions? */
void icf_v_check_based(const struct icf_v *v, struct icf_vlog *log, const struct icf_vnamed *named);
/* The same for all units, if IN has no relocations of its code and all tables are known. */
struct elfrw_err *icf_v_check_all_based(struct icf_v *v);
/* Numbers that count from the first byte of IN; if it has relocations of its code, words without
 * one that are addresses, or count from their own place. */
void icf_v_check_bare(struct icf_v *v);
/* Sets `image`, `data_size` and `absolute`; call it first. */
struct elfrw_err *icf_v_measure_data(struct icf_v *v);
/* verify/data/infer.c: if IN has no relocations of its code; runs after the check of the code. */
struct elfrw_err *icf_v_infer_words(struct icf_v *v);
/* verify/data/gap.c: the same, for data that undelimited code uses.  NAME: places in data with
 * references to them, sorted. */
struct elfrw_err *icf_v_check_gaps(struct icf_v *v, const uint64_t *name, size_t n_names);
/* verify/data/distance.c: the same, for words that no known code reads.  NAME: places in data with
 * references to them, sorted. */
struct elfrw_err *icf_v_check_distances(struct icf_v *v, const uint64_t *name, size_t n_names);
/* verify/data/listed.c: the same, for lists of places inside of functions. */
void icf_v_check_listed(struct icf_v *v);
/* The same, with relocations and without: lists that name functions, and tell of places in them. */
void icf_v_check_maps(struct icf_v *v);
/* verify/data/opaque.c: the same, in bytes that are not understood, for words that lead to any
 * instruction. */
struct elfrw_err *icf_v_check_opaque(struct icf_v *v);
/* verify/data/unreached.c: without relocations, does any number lead to what was removed?  Call it
 * when the tables are known. */
struct elfrw_err *icf_v_check_unreached(struct icf_v *v);
/* pad.c: fills pad and `mixed`, if IN has no relocations of its code. */
struct elfrw_err *icf_v_find_pads(struct icf_v *v);
/* The bytes of padding at VA, which is then no instruction.  Asked only if the byte there is 0. */
uint64_t icf_v_pad(const struct icf_v *v, uint64_t va);

/* elf.c: an image for libelf and libdw.  elf NULL: see elf_errmsg(). */
struct Elf;
struct icf_velf {
	struct Elf *elf;
	int fd;
	bool missing;  /* the file cannot be opened; see errno */
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

void icf_v_check_alignment(const struct icf_vclaim *c, const struct icf_vwords *words,
			   struct icf_vlog *log); /* runs when all observed functions are known */
/* removed.c: does anything else than code and data lead to what was removed?  ALLOWED: code may be
 * removed at all. */
void icf_v_check_removed(const struct icf_vclaim *c, const struct icf_vwords *words, bool allowed,
			 struct icf_vlog *log);
/* object.c: icf_v_lost_range sets lost_lo and lost_hi; the other one sets `lost` of words, and
 * checks that nothing reaches them. */
void icf_v_lost_range(struct icf_v *v);
struct elfrw_err *icf_v_check_objects(struct icf_v *v);
/* data/unread.c: jump tables of removed functions, when all tables are known. */
struct elfrw_err *icf_v_check_unread(struct icf_v *v);
/* mark.c: labels that delimit parts of the code. */
struct elfrw_err *icf_v_check_marks(const struct icf_vclaim *c, struct icf_vlog *log);

/* The checks. */
struct elfrw_err *icf_v_check_code(struct icf_v *v);   /* code/code.c; fills base and pair */
struct elfrw_err *icf_v_mark_guesses(struct icf_v *v); /* calls/guess.c; sets `guess` of calls */
/* data/slot.c: does code take the address of W's function, and may addresses not merge?  Then W, a
 * slot of a virtual table, must hold this address.  icf_v_check_slots(): no slot of another
 * function may hold it. */
bool icf_v_is_compared(const struct icf_v *v, const struct icf_vword *w);
struct elfrw_err *icf_v_check_slots(struct icf_v *v);
struct elfrw_err *icf_v_check_halves(struct icf_v *v); /* code/half.c; when all tables are known */

/* Code that is read from top to bottom, whatever control does: the high half that was put into each
 * register last.  FORM NULL: none. */
struct icf_vhighs {
	struct {
		const struct elfrw_form *form;
		uint64_t place;
	} reg[32];
};
/* Call it for each instruction in turn.  IN, decoded from CODE, adds a low half to one of these:
 * *RET is what both name.  code/half.c */
bool icf_v_names(const struct icf_vclaim *c, struct icf_vhighs *h, const struct elfrw_insn *in,
		 const uint8_t *code, uint64_t *ret);
struct elfrw_err *icf_v_check_layout(
	struct icf_v *v); /* layout.c: padding, thunks, fill, observed */
/* layout.c: is [START, END) of IN, in E, padding? */
bool icf_v_is_padding(const struct icf_vclaim *c, const struct icf_vexec *e, uint64_t start,
		      uint64_t end);
struct elfrw_err *icf_v_check_tables(struct icf_v *v); /* verify/data/data.c */
struct elfrw_err *icf_v_check_data(struct icf_v *v);   /* verify/data/data.c */
struct elfrw_err *icf_v_check_dynamic(
	const struct icf_vclaim *c, const struct icf_vwords *words,
	struct icf_vlog *log); /* verify/data/dynamic.c: dynamic relocations, .dynamic, entry */
struct elfrw_err *icf_v_check_unwind(struct icf_v *v); /* unwind/unwind.c */
struct elfrw_err *icf_v_check_symbols(const struct icf_vclaim *c,
				      struct icf_vlog *log); /* symbols.c */
/* symbols.c: the section of S of IN; DYNAMIC: S is of .dynsym. */
uint32_t icf_v_stands_in(const struct icf_vclaim *c, const Elf64_Sym *s, bool dynamic);
void icf_v_check_places(const struct icf_vclaim *c, struct icf_vlog *log);  /* file/place.c */
void icf_v_check_lookups(const struct icf_vclaim *c, struct icf_vlog *log); /* lookup.c */
struct elfrw_err *icf_v_bound(
	const struct elfrw_image *img); /* verify/debug/bound.c: an error if names would take the
					   square of the file's size */
struct elfrw_err *icf_v_check_file(
	const struct icf_vclaim *c,
	struct icf_vlog *log); /* file/file.c: headers, sections, segments */
struct elfrw_err *icf_v_check_relocs(
	const struct icf_vclaim *c, const struct icf_vwords *words,
	struct icf_vlog *log); /* verify/data/relocs.c: kept relocations of OUT */
struct elfrw_err *icf_v_check_note(
	struct icf_v *v); /* verify/data/note.c: notes and .debug_icfold */
/* verify/data/unloaded.c: does S consist of records about functions?  Is B the image of A?  Do the
 * bytes of A hold old places of code? */
bool icf_v_is_records(const struct elfrw_section *s);
void icf_v_check_records(const struct icf_vclaim *c, struct icf_vlog *log,
			 const struct elfrw_section *a, const struct elfrw_section *b);
struct elfrw_err *icf_v_check_pseudo(
	const struct icf_vclaim *c, struct icf_vlog *log, const struct elfrw_section *a,
	const struct elfrw_section *b); /* verify/data/pseudo.c: .pseudo_probe */
void icf_v_check_stale(const struct icf_vclaim *c, struct icf_vlog *log,
		       const struct elfrw_section *a);
/* verify/debug/debug.c.  Does OTHER meanwhile, which writes to the common log. */
struct elfrw_err *icf_v_check_debug(struct icf_v *v, struct elfrw_err *(*other)(struct icf_v *v));

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

#endif
