/* state.h: shared by the files of icf/hash/.
 *
 * The program becomes a graph.  Nodes 0 to n_units - 1 are the units.  The nodes after them are the
 * *places*: all addresses outside of units that something refers to, ascending.  A node's form is
 * what it is without what it refers to; its edges are the nodes that it refers to, in order. */
#ifndef ICF_HASH_STATE_H
#define ICF_HASH_STATE_H
#include "elfrw/base/wbuf.h"
#include "icf/hash/hash.h"

enum icf_place_kind {
	ICF_PLACE_CONSTANT, /* contents that do not change once the program is loaded */
	ICF_PLACE_VARIABLE,
	ICF_PLACE_NAMED, /* a variable with a dynamic symbol */
	ICF_PLACE_OTHER, /* in no data: the file's headers, ends of sections, gaps of code */
};

struct icf_place {
	uint64_t va, end;    /* CONSTANT: its bytes, without the zeros that fill a gap */
	struct icf_hash key; /* who uses it, see name_places() */
	uint32_t sym;        /* NAMED: index in .dynsym */
	uint8_t kind;
	uint8_t rank; /* of the use that `key` is; 0: none */
	bool nothing; /* VARIABLE: no byte of the program is there */
	uint8_t read; /* bytes that direct reads read at most; 0: not known */
	bool copy;    /* NAMED: the data of another file, copied here when the program starts */
	bool taken; /* more than a direct read refers to it: data, or code that takes its address */
	bool text;  /* CONSTANT: a string that linkers merge with equal ones, mostly */
};

/* What an address means.  Import: the symbol SYM of .dynsym.  Else node NODE; OFF: from the start
 * of the unit. */
enum icf_means_kind { ICF_TO_NODE, ICF_TO_IMPORT, ICF_TO_NUMBER };
struct icf_means {
	uint8_t kind;
	uint32_t node, sym;
	uint64_t off; /* IMPORT: the addend; NUMBER: it itself */
};

struct icf_hasher {
	const struct icf_program *prog;
	unsigned threads;
	uint32_t n_units, n; /* nodes */
	VEC(struct icf_place) place;
	struct elfrw_starts place_index;   /* of them, when all are known */
	struct elfrw_starts dataref_index; /* of the program's references in data */
	const char **version; /* by symbol of .dynsym; borrowed from the image; or NULL */
	uint32_t n_versions;
	struct icf_hash *form; /* by node */
	uint32_t *first;       /* by node: of its edges; n + 1 */
	uint32_t *edge;
};

typedef VEC(struct icf_ref) icf_ref_list;

/* What VA means; 0: nothing known. */
struct icf_known {
	uint64_t va;
	struct icf_means means;
};

#define ICF_KNOWN 256

/* A form under construction, of one thread; starts as { 0 } */
struct icf_form {
	struct elfrw_wbuf buf;
	icf_ref_list ref;
	uint32_t n_ref; /* of the unit */
	icf_unit_list edge;
	struct icf_known known[ICF_KNOWN]; /* addresses that were asked for last */
	void *lsda;
};

/* What is mixed into a hash; part of the hash's definition. */
enum {
	ICF_MIX_VARIABLE = 65,
	ICF_MIX_NUMBER,
	ICF_MIX_NODE,
	ICF_MIX_COLOUR,
	ICF_MIX_ROUND,
	ICF_MIX_CIRCLE,
	ICF_MIX_MEMBER
};

static inline struct icf_hash icf_hash_mixed(uint8_t what, struct icf_hash hash, uint64_t number)
{
	uint64_t word[4] = { what, hash.lo, hash.hi, number };
	return icf_hash_bytes(word, sizeof word);
}

static inline int icf_hash_cmp(const struct icf_hash *x, const struct icf_hash *y)
{
	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* ---- circle.c ---- */

/* Turns the forms of the first nodes of all classes into hashes of what they mean.  CLS: the
 * coarsest stable partition, by lowest nodes. */
struct elfrw_err *icf_hash_circles(struct icf_hasher *h, const uint32_t *cls);

/* ---- symbol.c ---- */

/* Reads the versions of .dynsym's symbols.  Damaged tables give no versions. */
struct elfrw_err *icf_hash_versions(struct icf_hasher *h);
/* Appends name and version of symbol SYM of .dynsym. */
void icf_put_import(const struct icf_hasher *h, uint32_t sym, struct elfrw_wbuf *w);

/* ---- half.c ---- */

/* Adds to LIST, the references of U by place, the low halves of addresses that are not among them,
 * and completes the high halves that have some.  false: out of memory. */
bool icf_hash_halves(const struct icf_program *prog, const struct icf_unit *u, icf_ref_list *list);

/* ---- place.c ---- */

/* The references of a unit; *N of them.  Nobody vouches for those of a unit that is not understood:
 * they are the PC-relative fields that are seen when its bytes are taken for code.  SCRATCH holds
 * them.  NULL with *N > 0: out of memory. */
const struct icf_ref *icf_hash_refs(const struct icf_program *prog, uint32_t unit,
				    icf_ref_list *scratch, uint32_t *n);

struct elfrw_err *icf_hash_find_places(struct icf_hasher *h);

/* ---- string.c ---- */

/* Text without a NUL; ENDS: not longer, else nobody looked at TO yet. */
struct icf_text {
	const uint8_t *from, *to; /* borrowed */
	bool ends;
};

/* The length of the string at S and VA; -1: there is none.  T: the text that was read last; starts
 * as { 0 }.  LIMIT: bytes in the section; NEXT: bytes up to where something refers to; BEHIND_TEXT:
 * it may be the end of another string, which code names where it copies that string.  Behind a
 * string other strings may lie that nothing refers to: a compiler put the characters into
 * instructions, or names their ends alone.  Numbers can look like short strings. */
int64_t icf_string_length(struct icf_text *t, const uint8_t *s, uint64_t va, uint64_t limit,
			  uint64_t next, bool behind_text);
/* Is the byte at OFF in S the NUL of a string of some length? */
bool icf_is_behind_text(const struct elfrw_section *s, uint64_t off);
/* The first place in the SIZE bytes at VA, behind the first, where a string begins that nothing
 * refers to; or SIZE.  It stands behind a zero: texts without one, as Rust has them, stay whole. */
uint64_t icf_before_text(const uint8_t *s, uint64_t va, uint64_t size);

/* ---- means.c ---- */

/* The symbol of .dynsym that D names; 0: none. */
uint32_t icf_hash_dynreloc_symbol(const struct icf_program *prog, const struct icf_dynreloc *d);
/* What VA means: code by its unit; a stub of a PLT by what its slot holds. */
struct icf_means icf_hash_resolve(const struct icf_hasher *h, uint64_t va);
/* What the 8 bytes at VA hold, if that is an address or an import; false: something else. */
bool icf_hash_word(const struct icf_hasher *h, uint64_t va, struct icf_means *ret);
/* The first reference in data from VA on; their number if there is none.  The one at VA, or NULL.
 */
size_t icf_hash_first_dataref(const struct icf_hasher *h, uint64_t va);
const struct icf_dataref *icf_hash_dataref_at(const struct icf_hasher *h, uint64_t va);
/* icf_hash_word() if D is the dynamic relocation at VA, or NULL: there is none. */
bool icf_hash_known_word(const struct icf_hasher *h, uint64_t va, const struct icf_dynreloc *d,
			 struct icf_means *ret);
/* Is VA a slot of a global offset table?  TAKEN: only its address is taken, which code does of
 * slots for thread-local variables, and of the table's ends. */
bool icf_hash_is_slot(const struct icf_hasher *h, uint64_t va, bool taken);
/* The same for a slot of a GOT, which always holds something. */
struct icf_means icf_hash_slot(const struct icf_hasher *h, uint64_t va);

/* ---- form.c, data.c: put the form of a node into F and its edges into F->edge ---- */

struct elfrw_err *icf_form_unit(const struct icf_hasher *h, uint32_t unit, struct icf_form *f);
struct elfrw_err *icf_form_place(const struct icf_hasher *h, uint32_t place, struct icf_form *f);
void icf_form_deinit(struct icf_form *f);
/* Appends what an address means, and the edge. */
void icf_put_means(const struct icf_hasher *h, struct icf_means m, struct icf_form *f);
#endif
