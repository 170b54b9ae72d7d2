/* term.h: what an attribute says, in terms that do not depend on where code is. */
#ifndef TESTS_JUDGES_DWARF_TERM_H
#define TESTS_JUDGES_DWARF_TERM_H
#include "tests/judges/dwarf/judge.h"
#include <dwarf.h>
#include <inttypes.h>

/* What an address means. Where one function ends and another begins, it may belong to either. */
enum jhow {
	BEGINS, /* the function that holds the byte */
	ENDS,   /* the function that holds the byte before */
	EITHER, /* a label: as BEGINS, or as ENDS where a function ends */
};

struct jname {
	uint32_t unit; /* whose code it is, or JNONE */
	uint64_t off;
};

enum jwhat {
	NOTHING, /* it cannot be compared, or means nothing */
	NUMBER,  /* `number` */
	BYTES,   /* `bytes`, `size` of them */
	PLACE,   /* one of `name`, in code */
};

struct jtoken {
	enum jwhat what;
	uint64_t number, size;
	const void *bytes;
	struct jname name[2];
};

struct jtokens {
	struct jtoken *v;
	size_t n, cap;
};

/* Which file is read. */
struct jside {
	struct judge *j;
	bool out;
};

/* A DIE of the input, and the one at its place in the output. */
struct jpair {
	Dwarf_Die a, b;
	unsigned depth;
	bool dead;       /* in a function that the linker dropped: its addresses mean nothing */
	uint32_t folded; /* the folded unit of the function around, or JNONE */
};

#define DIE_FMT "DIE %#" PRIx64 " (tag %#x, %s)"
#define DIE(p) \
	(uint64_t) dwarf_dieoffset(&(p)->a), (unsigned)dwarf_tag(&(p)->a), term_title(&(p)->a)

/* The name of the address VA in the function that holds the byte at BYTE. */
struct jname term_name_in(struct jside s, uint64_t va, uint64_t byte);
bool term_same_name(struct jname a, struct jname b);
struct jtoken term_place(struct jside s, uint64_t va, enum jhow how);
struct jtoken term_number(uint64_t x);
struct jtoken term_bytes(const void *p, uint64_t n);
void term_add(struct jtokens *s, struct jtoken t);
/* The operations of ATTR, to be freed. */
struct jtokens term_expression(struct jside s, Dwarf_Attribute *attr, const Dwarf_Op *op, size_t n);
/* Does B of the output say what A of the input says?  Frees both. */
bool term_same(struct jtokens a, struct jtokens b);
const char *term_title(Dwarf_Die *die);

/* list.c: the lists of locations that X and Y of both files state; their views. */
void judge_list(struct judge *j, struct jpair *p, Dwarf_Attribute *x, Dwarf_Attribute *y,
		bool views);
void judge_views(struct judge *j, struct jpair *p, Dwarf_Attribute v[2], Dwarf_Attribute list[2]);
#endif
