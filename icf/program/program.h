/* program.h: the model of the input program: units and the references between them.
 *
 * A *unit* is a run of code that moves as one rigid block: a function, a cold part, a linkage
 * section (.plt, .init, .fini), or unexplained bytes (opaque).  Units are sorted by address and
 * disjoint; the bytes between them are padding.  A *reference* is a field in code or data that
 * holds an address or a distance to one. */
#ifndef ICF_PROGRAM_PROGRAM_H
#define ICF_PROGRAM_PROGRAM_H
#include "dwarf/cfi.h"
#include "elfrw/blocks.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/vec.h"

#define ICF_NONE UINT32_MAX

enum icf_unit_kind {
	ICF_UNIT_FUNC,   /* has a function symbol or an FDE of its own */
	ICF_UNIT_RIGID,  /* moves, never folds: linkage sections, glued runs, code without a symbol
			  */
	ICF_UNIT_OPAQUE, /* not understood: neither moves nor folds */
};

/* Why a unit may not be folded; the last reasons: why it was not.  The tests run in this order. */
enum icf_reason {
	ICF_OK,
	ICF_NOT_A_FUNCTION,  /* linkage code, or code without a name */
	ICF_NOT_UNDERSTOOD,  /* bytes that do not decode: pinned */
	ICF_WRITABLE_CODE,   /* the program may write to it: pinned */
	ICF_DATA_AMONG_CODE, /* holds data, by mapping symbols or object symbols: pinned */
	ICF_NEAR_OPAQUE, /* bytes that are not understood could refer to it by an unknown distance:
			    pinned too */
	ICF_GLUED, /* falls through into its neighbour, or a short branch from there enters it */
	ICF_ENTRY_POINT,   /* e_entry, DT_INIT, DT_FINI */
	ICF_KEEP_UNIQUE,   /* the user asked for it */
	ICF_NAMED_SECTION, /* in a section that the program can delimit by __start_/__stop_ symbols,
			      or that is not where compilers put code */
	ICF_INNER_ENTRY,   /* a symbol or a data pointer names its middle */
	ICF_UNWIND,        /* its unwind rules or LSDA hold addresses or are not understood */
	ICF_UNIQUE,        /* nothing equals it */
	ICF_ADDRESS_OBSERVED, /* equal to another, but its address is observed and no thunk would
				 pay */
	ICF_PARTNER_STAYS,    /* equal, but it jumps into the middle of a unit that stays */
	ICF_NOT_WORTH,        /* equal, but the file would become larger */
	ICF_UNUSED,           /* nothing can reach it: removed (--gc-functions) */
	ICF_N_REASONS,
};

struct icf_unit {
	uint64_t start, end;
	uint32_t sec;   /* index into icf_program.exec */
	uint32_t sym;   /* first name at start (index into icf_program.sym), or ICF_NONE */
	uint32_t n_sym; /* symbols that lie in the unit, in address order, from sym_first */
	uint32_t sym_first;
	uint32_t fde, n_fde; /* into icf_program.cfi.by_pc */
	uint32_t ref, n_ref; /* into the refs of its chunk; icf_unit_refs() resolves them */
	uint32_t chunk;
	uint32_t flags;  /* ICF_UNIT_* */
	uint8_t kind;    /* enum icf_unit_kind */
	uint8_t reason;  /* enum icf_reason */
	uint8_t hotness; /* 0 hottest */
	/* Exponents of two, icf_find_alignments(): */
	uint8_t grain;       /* it moves by multiples of this */
	uint8_t promise;     /* what of that is more than what functions usually have */
	uint8_t entry_align; /* the alignment of its entry that observers of the address may rely on
			      */
	uint8_t read_align;  /* with ICF_UNIT_POOL: what loads of its literals ask for */
};

#define ICF_READ_ALIGN \
	6 /* exponent of two: the largest alignment that an instruction asks of what it reads */

#define ICF_UNIT_FUNC_SYMBOL 1 /* an STT_FUNC symbol stands at its start */
#define ICF_UNIT_OBSERVED    2 /* the program can observe the address of its entry */
#define ICF_UNIT_INNER \
	4 /* something other than a branch or its own jump table refers to an address inside it */
#define ICF_UNIT_FALLS    8 /* control may run off its end */
#define ICF_UNIT_ENDBR    16
#define ICF_UNIT_GLUED    32
#define ICF_UNIT_EXPORTED 64
#define ICF_UNIT_DATA_READ                                                                    \
	128 /* reads its own bytes, or names them: keeps its address modulo 64, or modulo its \
	       section's alignment if that is larger */
#define ICF_UNIT_PINNED 256 /* keeps its address */
#define ICF_UNIT_EXTENDED                                                      \
	512 /* begins before its function, with bytes that something refers to \
	     */
#define ICF_UNIT_JUMPS                                                                      \
	1024 /* has an indirect jump; this flag and the next are set only if references are \
		inferred */
#define ICF_UNIT_RELATIVE \
	2048 /* calls the sum of two numbers, or jumps to such a sum that is not understood */
#define ICF_UNIT_BLIND  4096  /* becomes opaque as soon as its references are known (infer/gap/) */
#define ICF_UNIT_UNUSED 8192  /* nothing can reach it: it is removed (fold/unused.c) */
#define ICF_UNIT_CALLS  16384 /* its last instruction is a call */
#define ICF_UNIT_PLAIN                                                                             \
	32768 /* no number in it can lead to code, as icf_find_doubtful() asks: seen if references \
		 are inferred */
#define ICF_UNIT_POOL                                                                          \
	65536 /* holds literals that only its own code reads (refs/pool.c); icf_decode() skips \
	       * them                                                                          \
	       */
#define ICF_UNIT_SLOT    262144 /* a virtual table holds its address */
#define ICF_UNIT_GUARDED 524288 /* that, and code takes its address: to compare the two */
#define ICF_UNIT_LABEL                                                                         \
	1048576 /* it computes the address of a place behind its start, and does not go there: \
		   somebody else gets to know it */
#define ICF_UNIT_PADDED                                                                          \
	131072 /* pinned, and the padding behind it stays, byte for byte: something may enter it \
		*/

enum icf_ref_kind {
	ICF_REF_BRANCH, /* PC-relative field of a direct call, jump or conditional jump */
	ICF_REF_PCREL,  /* PC-relative field of anything else: the address is computed or read */
	ICF_REF_ABS,    /* the field holds the address itself */
};

/* A reference in code: to a place outside of the unit, or to the unit's own entry except by a
 * branch. */
struct icf_ref {
	uint64_t target; /* old address */
	uint32_t off;    /* of the field, from the unit's start */
	uint32_t unit;   /* the unit that holds the target, or ICF_NONE */
	uint32_t table;  /* this unit's own jump table at target, or ICF_NONE */
	uint8_t form;    /* of the field: index into the architecture's forms */
	uint8_t origin;  /* from the field to the place that its distance counts from, in bytes */
	/* Of a low half: its high half is this many references before it.  Otherwise 0.
	 * refs/pair.c */
	uint8_t pair;
	uint8_t kind : 2;  /* enum icf_ref_kind */
	uint8_t flags : 6; /* ICF_REF_* */
};

#define ICF_REF_LEA \
	1 /* the address is computed; the instruction itself does not read memory there */
#define ICF_REF_CALL 2 /* BRANCH: a call, which returns */
#define ICF_REF_HALF                                                                          \
	4 /* a half of an address whose other halves are not all known: the high half names   \
	     `target`, its page, at any place; a low half keeps its bits.  All code that they \
	     could name is pinned */
#define ICF_REF_NAMED                                                                            \
	8 /* of a high half with ICF_REF_HALF: a relocation tells what its address is a part of. \
	     Only that is pinned */

#define ICF_REF_RELAXED                                                                         \
	16 /* a linker made this field, and a no-op, of an address in two halves: where it does \
	      not reach, they become halves again (elfrw_arch.expand) */

#define ICF_REF_OWN 32 /* names a literal of its own unit: counts from the unit's start */

enum icf_data_kind {
	ICF_DATA_ADDRESS,  /* the field holds the target */
	ICF_DATA_DISTANCE, /* a distance, and only the code that reads it knows from where; the
			      target is counted from the field's own place */
	ICF_DATA_ENTRY,    /* a distance to the target from the start of the field's jump table
			      (refs/table/table.c) */
	ICF_DATA_OFFSET,   /* a distance to a function that its relocation's symbol names, from
			      anywhere, or to a trap, from its own place */
};

#define ICF_QUIET        1 /* an init array, a slot of the PLT, a list of places that are patched */
#define ICF_QUIET_VTABLE 2 /* a slot of a virtual table */

/* A reference in data (alloc sections that hold no code and are not unwind tables). */
struct icf_dataref {
	uint64_t place;  /* old (and new) address of the field */
	uint64_t target; /* old address that is meant, as far as `kind` knows it */
	uint32_t unit;   /* the unit that holds the target, or ICF_NONE (a boundary, padding) */
	uint32_t table;  /* its jump table, or ICF_NONE */
	uint8_t size;
	uint8_t kind;    /* enum icf_data_kind */
	uint8_t dynamic; /* a dynamic relocation sets the field; the addend counts, not the field */
	uint8_t left; /* unknown origin of the distance: the field stays, and so do all its possible
			 targets */
	uint8_t quiet;   /* ICF_QUIET_*: does not make the address observable; 0: does */
	uint8_t dropped; /* the entry of a table that icf_drop_tables() is removing */
};

struct icf_table {
	uint64_t base;
	uint32_t entry, n; /* into icf_program.dataref */
	uint32_t owner;    /* its unit, or ICF_NONE: shared */
	uint32_t ref;      /* with an owner: the first of its references that names the table */
};

/* A jump table that was found from the code that uses it; see infer/infer.h. */
struct icf_inferred_table {
	uint64_t base, owner; /* addresses: of its first word, in the unit whose it is */
	uint32_t n;
};

struct icf_exec {
	uint32_t shndx;
	uint64_t start, end;
	uint32_t unit, n_units;
	bool writable; /* the program may change it: one opaque unit */
	bool linkage;  /* .plt*, .init, .fini: one rigid unit */
	bool named;    /* delimited by __start_/__stop_ symbols or a C identifier's name */
	bool apart;    /* named, or its name says that it is no usual place of code: nothing in it
			  folds */
	VEC(uint64_t) doubted; /* places of kept relocations that may belong elsewhere, ascending */
	uint8_t hotness;
};

/* Data among code, by mapping symbols (elfrw/arch/symbol.h). */
struct icf_data_run {
	uint64_t start, end;
};

/* A symbol of .symtab that lies in an executable section, sorted by address.  Of
 * mapping symbols there are those of code that has no other name. */
#define ICF_IN_DYNSYM 0x80000000u
struct icf_symbol {
	uint64_t value, size;
	uint32_t index; /* in .symtab, or in .dynsym and then with ICF_IN_DYNSYM */
	uint8_t type, bind, other;
	const char *name;
};

struct icf_dynreloc {
	uint64_t place;        /* r_offset */
	uint64_t addend;       /* or, for RELR, the word at the place */
	uint32_t shndx, index; /* the place of the relocation */
	uint8_t kind;          /* enum elfrw_reloc_kind */
	bool relr;
};

/* A static probe, see fold/probe.c. */
struct icf_probe {
	uint64_t pc, semaphore; /* addresses */
	const uint8_t *text;    /* provider, name, arguments; of the image */
	uint32_t size;          /* of text */
};

/* A landing pad of unit `from` that lies in another unit, see refs/pads.c. */
struct icf_pad {
	uint32_t from, unit;
};

/* Instructions that control cannot reach from the one before, and that no instruction of their unit
 * refers to. */
struct icf_island {
	uint64_t va;
	uint32_t unit;
	bool refers; /* its bytes, read as instructions, refer to something outside of the unit */
};

/* An operand of unit `unit` may be the distance of `to`, which is code, from a table of addresses.
 */
struct icf_far {
	uint64_t to;
	uint32_t unit;
};

/* What refs/look.c saw of the instructions of some units, in the units' order. */
struct icf_look {
	VEC(struct icf_island) island;
	VEC(struct icf_far) far;
};

/* A relocation whose value lies elsewhere than what its symbol names: refs/astray.c. */
struct icf_astray {
	Elf64_Sym sym;
	uint64_t place, value;
};

struct icf_chunk {
	VEC(struct icf_ref) ref;
	VEC(struct icf_astray) astray;
	struct icf_look look; /* only between decoding and inference */
};

#define ICF_NUMBER_BASES 4

struct icf_program {
	const struct elfrw_image *img;
	const struct elfrw_arch *arch;
	VEC(struct icf_exec) exec;
	VEC(struct icf_symbol) sym;
	VEC(struct icf_data_run) data; /* sorted by start, disjoint */
	VEC(struct icf_data_run)
	dead;        /* objects that nothing reaches (--gc-functions=objects): sorted,
			disjoint */
	bool mapped; /* there are mapping symbols, so all data among code is known */
	VEC(struct icf_unit) unit;
	VEC(struct icf_dataref) dataref; /* sorted by place */
	VEC(struct icf_table) table;
	VEC(struct icf_dynreloc) dynreloc;  /* sorted by place */
	struct elfrw_starts dynreloc_index; /* of them; of none if there is no index */
	VEC(struct icf_inferred_table) inferred_table;
	VEC(struct icf_probe) probe; /* sorted by pc */
	VEC(uint64_t) mark;          /* addresses that delimit parts of the code, ascending */
	VEC(struct icf_pad)
	pad; /* sorted by `from`; those of one unit in the order of its frames and call sites */
	bool probes_apart; /* functions with probes do not fold: no note can be removed */
	struct icf_chunk *chunk;
	uint32_t n_chunks;
	uint8_t *looked; /* by unit: what refs/look.c saw; NULL: nothing. Owned */
	uint64_t number_base[ICF_NUMBER_BASES]; /* with `looked`: icf_number_bases() */
	unsigned n_number_bases;
	uint8_t *insn; /* with `looked`: a bit for each byte from the start of the first executable
			  section to the end of the last: an instruction begins there. Owned */
	struct dwr_cfi cfi;         /* .eh_frame */
	uint32_t *fde_unit;         /* for each FDE of cfi: unit or ICF_NONE */
	struct elfrw_blocks blocks; /* of the units, see icf_unit_at() */
	bool compact_lsda;          /* every LSDA was understood */
	uint32_t n_pinned;
	bool inferred;     /* no relocations of code were kept; see infer/infer.h */
	const char *loose; /* why nothing may move (folding is then in place), or NULL */
	uint64_t loose_at; /* the place that shows it */
	bool short_words;  /* words of two bytes or one lead to code, by their relocations */
};

static inline const struct icf_ref *icf_unit_refs(const struct icf_program *prog,
						  const struct icf_unit *u)
{
	return u->n_ref ? prog->chunk[u->chunk].ref.data + u->ref : NULL;
}

static inline const struct elfrw_form *icf_ref_form(const struct icf_program *prog,
						    const struct icf_ref *ref)
{
	return &prog->arch->form[ref->form];
}

/* Does REF, which has ICF_REF_HALF, name a page and not a place? */
static inline bool icf_names_page(const struct icf_ref *ref)
{
	return (ref->flags & ICF_REF_HALF) && !ref->pair;
}

/* Is the PC-relative field of IN the high half of an address?  Its target is then a page. */
static inline bool icf_is_half(const struct elfrw_arch *arch, const struct elfrw_insn *in)
{
	return arch->low_form && elfrw_form_is_high(&arch->form[arch->pcrel_form(in)]);
}

/* The place that the number of REF, a reference of U, counts from.  A low half counts from the
 * place of its high half. */
static inline uint64_t icf_ref_place(const struct icf_unit *u, const struct icf_ref *ref)
{
	const struct icf_ref *r = ref - ref->pair;
	return u->start + r->off + r->origin;
}

/* REF is a reference of the owner of its table.  Does an earlier reference name the same table?
 * The meaning of the entries counts once. */
static inline bool icf_names_again(const struct icf_program *prog, const struct icf_ref *ref)
{
	const struct icf_table *t = &prog->table.data[ref->table];
	return t->owner != ICF_NONE &&
	       ref - icf_unit_refs(prog, &prog->unit.data[t->owner]) != t->ref;
}

/* The landing pads of unit I in other units; *N: how many.  refs/pads.c */
const struct icf_pad *icf_unit_pads(const struct icf_program *prog, uint32_t i, uint32_t *n);

/* The bytes of unit U. */
const uint8_t *icf_unit_bytes(const struct icf_program *prog, const struct icf_unit *u);

/* The end of the run of data among code that holds VA; VA: it is in none.  unit.c */
uint64_t icf_data_end(const struct icf_program *prog, uint64_t va);

/* Decodes the instruction of unit U at VA, as elfrw_arch.decode does; its bytes are at CODE, and
 * AVAIL may be read.  A literal reads as a trap: control does not get there. */
static inline unsigned icf_decode(const struct icf_program *prog, const struct icf_unit *u,
				  const uint8_t *code, size_t avail, uint64_t va,
				  struct elfrw_insn *ret)
{
	const struct elfrw_arch *arch = prog->arch;
	uint64_t end = u->flags & ICF_UNIT_POOL ? icf_data_end(prog, va) : va;
	if (end == va)
		return arch->decode(code, avail, va, ret);
	end = end < u->end ? end : u->end;
	arch->decode(arch->fill, arch->fill_size, 0, ret);
	ret->len = end - va < arch->fill_size ? (uint8_t)(end - va) : arch->fill_size;
	return ret->len;
}

/* The unit that holds VA, or ICF_NONE. */
uint32_t icf_unit_at(const struct icf_program *prog, uint64_t va);

/* The same for a series of places in order: LAST is the answer for the place before. */
static inline uint32_t icf_unit_near(const struct icf_program *prog, uint64_t va, uint32_t last)
{
	const struct icf_unit *u = last == ICF_NONE ? NULL : &prog->unit.data[last];
	return u && va >= u->start && va < u->end ? last : icf_unit_at(prog, va);
}

/* Is VA in an executable section?  Does one end there? */
bool icf_in_exec(const struct icf_program *prog, uint64_t va);
bool icf_ends_exec(const struct icf_program *prog, uint64_t va);

/* icf_first_dynreloc: the index of the first dynamic relocation at or behind PLACE.  The others:
 * the first dynamic relocation at PLACE, or NULL; the reference in data at PLACE, or NULL.  Both
 * lists are sorted by place.  refs/dataref.c. */
size_t icf_first_dynreloc(const struct icf_program *prog, uint64_t place);
const struct icf_dynreloc *icf_dynreloc_at(const struct icf_program *prog, uint64_t place);
const struct icf_dataref *icf_dataref_at(const struct icf_program *prog, uint64_t place);

/* Is PLACE in an object that nothing reaches? */
bool icf_in_dead(const struct icf_program *prog, uint64_t place);

/* A name for unit I: its first function symbol, or "0xADDRESS" written to BUF. */
const char *icf_unit_name(const struct icf_program *prog, uint32_t i, char buf[32]);

void icf_program_deinit(struct icf_program *prog);

/* Makes U opaque: it neither moves nor folds. */
void icf_make_opaque(struct icf_unit *u);

/* Text of a reason, for people. */
const char *icf_reason_text(enum icf_reason reason);
/* For people: the reason, if all code stays as it is since the program may write to it; or NULL. */
const char *icf_all_writable_text(const struct icf_program *prog);
/* The name of a reason in JSON and CSV; these names never change. */
const char *icf_reason_key(enum icf_reason reason);

/* The stages, in this order.  A later stage may pin units and split references that an earlier
 * stage found.  Only icf_drop_tables removes anything: jump tables. */
struct elfrw_err *icf_load_symbols(struct icf_program *prog);                /* symbols.c */
struct elfrw_err *icf_find_units(struct icf_program *prog);                  /* unit.c */
struct elfrw_err *icf_find_refs(struct icf_program *prog, unsigned threads); /* refs/ref.c */
struct elfrw_err *icf_find_datarefs(struct icf_program *prog);               /* refs/dataref.c */
/* Does nothing if the code has relocations.  Otherwise it appends the entries of jump tables to
 * `dataref`: the place, and as target what the field names if it counts from its own place, as a
 * linker's relocation does.  It sets ICF_UNIT_PINNED, makes units opaque if their bytes may not be
 * code, and sets `loose` if no proof is possible. */
struct elfrw_err *icf_infer_refs(struct icf_program *prog, unsigned threads); /* infer/infer.c */
struct elfrw_err *icf_glue_units(struct icf_program *prog);                   /* refs/glue.c */
/* Drops the inferred tables of units that turned out not to be understood, and pins the targets of
 * these tables.  Runs before icf_resolve(). */
void icf_drop_tables(struct icf_program *prog);                            /* infer/table.c */
struct elfrw_err *icf_resolve(struct icf_program *prog, unsigned threads); /* refs/glue.c */
/* Pins the units that are not understood, and all that they may refer to. */
struct elfrw_err *icf_pin_reach(struct icf_program *prog, unsigned threads); /* refs/reach.c */
/* Pins the functions whose addresses seem to hold a tag, and what lies there. */
struct elfrw_err *icf_pin_tagged(struct icf_program *prog); /* refs/tagged.c */
struct elfrw_err *icf_find_pads(struct icf_program *prog);  /* refs/pads.c */
struct elfrw_err *icf_find_tables(struct icf_program *prog,
				  unsigned threads); /* refs/table/table.c */
/* Pins the code that halves of addresses could name in a way that is not known. */
struct elfrw_err *icf_pin_halves(struct icf_program *prog); /* refs/pair.c */
/* Pins the code whose addresses are put into registers part by part. */
void icf_pin_constants(struct icf_program *prog); /* refs/constant.c */
#endif
