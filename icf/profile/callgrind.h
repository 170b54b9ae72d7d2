/* callgrind.h: the text of callgrind.out (Callgrind Format Specification, version 1), line by line;
 * shared by its reader and its writer.
 *
 *	while (!(err = icf_cg_next(c, &item, &more)) && more) ...
 *	icf_cg_rewind(c); */
#ifndef ICF_PROFILE_CALLGRIND_H
#define ICF_PROFILE_CALLGRIND_H
#include "icf/profile/arcs.h"

/* A name (of an object, a file, a function), or, with a KIND, the number that stands for one. */
struct icf_cg_name {
	const char *s; /* borrowed */
	uint32_t n;
	uint8_t kind;    /* 0: a name; else the kind of what it is the number of */
	uint8_t defined; /* in the output: bit K for kind K */
	bool other;      /* it is not of the text, and ends in a zero */
	uint32_t value;  /* of a number: the name */
};

enum { ICF_CG_OB = 1, ICF_CG_FL, ICF_CG_FN }; /* kinds of names */

struct icf_cg_place {
	uint64_t addr, line;
};

enum icf_cg_kind {
	ICF_CG_OTHER, /* a line of a header, a comment, an empty line: `text` */
	ICF_CG_COST,
	ICF_CG_CALL,
	ICF_CG_JUMP,
};

struct icf_cg_item {
	enum icf_cg_kind kind;
	const char *text;
	size_t n_text;
	uint32_t ob, fl, fn, file; /* names; FL is the function's file, FILE that of the place */
	uint32_t cob, cfile, cfn;  /* of a callee, or of the target of a jump */
	struct icf_cg_place at, to;
	uint64_t n, executed; /* calls, or jumps; EXECUTED: conditional jumps that did not jump,
				 too */
	bool conditional;
	unsigned n_costs; /* as in the text */
	uint64_t cost[ICF_ARC_EVENTS];
};

struct icf_prof_callgrind {
	uint8_t *data; /* the text; owned */
	size_t size, pos;
	char *path; /* of the text, for messages; owned */
	uint64_t line;
	bool lines; /* positions have a line */
	bool body;  /* events are known */
	struct icf_cg_item now;
	VEC(struct icf_cg_name) name;
	uint32_t *slot; /* of names: 1 + index; open hash table; owned */
	size_t n_slots;
	VEC(char *) own; /* strings that are not of the text; owned, as they are */
	bool linkage;    /* names are not demangled */
	struct icf_arcs arcs;
	/* The writer's. */
	struct dwr_sym_frames frames, kept_frames;
	struct icf_cg_out *out; /* of the function that is read; owned */
	size_t n_out, out_cap;
	VEC(uint64_t) cost;
	VEC(double) part;
	VEC(uint64_t) whole;
	uint32_t last_ob, last_fl, last_fn, last_file;
};

/* The number of the name of N bytes at S.  KIND: see above. */
struct elfrw_err *icf_cg_intern(struct icf_prof_callgrind *c, uint8_t kind, const char *s, size_t n,
				uint32_t *ret);

/* The next line that says something; *MORE false at the end. */
struct elfrw_err *icf_cg_next(struct icf_prof_callgrind *c, struct icf_cg_item *item, bool *more);
void icf_cg_rewind(struct icf_prof_callgrind *c);

/* Is object OB the program? */
bool icf_cg_is_program(struct icf_profile *p, uint32_t ob);

/* callgrind_put.c: writes the text, divided as the arcs say. */
struct elfrw_err *icf_cg_put(struct icf_profile *p);
#endif
