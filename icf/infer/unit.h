/* unit.h: the jump tables of one unit, for table.c, which asks for all units. */
#ifndef ICF_INFER_UNIT_H
#define ICF_INFER_UNIT_H
#include "elfrw/base/rbuf.h"
#include "icf/infer/parts.h"

/* Data that unit I refers to and whose first word leads into the unit. */
struct icf_candidate {
	uint64_t base;
	uint64_t n; /* entries that its jumps can use; 0: no jump uses it */
};

struct icf_candidates {
	VEC(struct icf_candidate) v; /* by base */
};

/* The results of a run of units. */
struct icf_found {
	VEC(struct icf_inferred_table) table;
	struct icf_places named; /* labels that tables lead to */
	VEC(uint32_t) doubt;     /* units to examine again when all tables are known */
	const char *loose;       /* the first reason why nothing may move, and where */
	uint64_t loose_at;
};

/* Reads units.  Each run of units has its own, so that several can work in parallel.  It changes
 * only flags of the program, by or-ing. */
struct icf_finder {
	struct icf_program *prog;
	const struct icf_data_map *map;
	const struct icf_bits *insn;   /* where instructions begin */
	const struct icf_bits *called; /* unit entries that a call, an address or a function symbol
					  refers to; by byte of code */
	const struct icf_bits *joined; /* places that other units jump to; NULL: unknown */
	struct icf_found *found;
	bool last; /* all tables are known: their words have an explanation */
	struct icf_trace t;
	struct icf_candidates cand; /* of the unit that `t` holds */
	struct {
		uint32_t a, b;
		bool yes;
	} linked[64];               /* answers of are_linked() */
	struct icf_places branches; /* its jump targets and callees; ascending */
	uint8_t joins; /* it and a unit in `branches` are joined by a jump into a middle: ICF_MAYBE
			  until asked */
	struct icf_places bases,
		leas;   /* the data that it refers to; that whose address it computes; ascending */
	bool half_code; /* halves of addresses in it may name code */
	struct icf_places loads;    /* fixed places from which the unit in `t` loads 4 bytes */
	struct icf_indices todo;    /* unexplained jumps of that unit */
	struct icf_indices closed;  /* jumps that were just explained */
	VEC(uint8_t) labels;        /* its labels in found->named, a bit for each byte */
	uint64_t work;              /* spent on its labels; at most ICF_MAX_WORK */
	bool adds;                  /* one of `todo` may go to another sum */
	VEC(struct icf_edge) cases; /* the targets of some of them */
};

void icf_finder_deinit(struct icf_finder *f);

/* Finds the tables that unit I jumps through.  If a jump is unexplained, pins the unit with all
 * that it could jump to.  Doubtful units go to f->found->doubt. */
struct elfrw_err *icf_find_unit_tables(struct icf_finder *f, uint32_t i);

/* All tables are known now (f->map).  Unit I was in doubt: data that it refers to and that no known
 * jump uses pins it. */
struct elfrw_err *icf_settle_unit(struct icf_finder *f, uint32_t i);

/* The latest end of a table of 4-byte words at BASE: where something else can begin, at most MOST
 * bytes on. */
uint64_t icf_table_limit(const struct icf_program *prog, const struct icf_data_map *map,
			 uint64_t base, uint64_t most);

/* Pins unit I, which may be ICF_NONE. */
void icf_pin_unit(struct icf_program *prog, uint32_t i);

/* The 4-byte distance at VA; false: there is no data. */
bool icf_distance_at(const struct icf_program *prog, uint64_t va, uint64_t *ret);

/* The distances from VA on.  N of them lie in one section, at P. */
struct icf_distances {
	const struct icf_program *prog;
	const uint8_t *p;
	uint64_t va, n;
};
struct icf_distances icf_distances_from(const struct icf_program *prog, uint64_t va);

/* Distance K of D; false: there is no data. */
static inline bool icf_distance_of(const struct icf_distances *d, uint64_t k, uint64_t *ret)
{
	if (k >= d->n)
		return icf_distance_at(d->prog, d->va + 4 * k, ret);
	*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(d->p + 4 * k);
	return true;
}

/* Parts of the work on unit I, which f->t holds. */

/* Sets FLAG of unit I, which others may look at, too. */
void icf_set_unit_flag(struct icf_program *prog, uint32_t i, unsigned flag);

/* Measures the candidates that jump J may go through (any one if its table is not seen); false:
 * there is none. */
bool icf_use_table(struct icf_finder *f, uint32_t i, const struct icf_jump *j);

/* Labels of one unit times references in it, at most. */
#define ICF_MAX_WORK 50000000

/* Begins with the labels of unit I.  measure.c. */
struct elfrw_err *icf_forget_labels(struct icf_finder *f, uint32_t i);

/* Marks TO as a label of unit I, if it lies there; false: out of memory.  measure.c. */
bool icf_name_label(struct icf_finder *f, uint32_t i, uint64_t to);

/* FROM is a label that distances in the data that the unit names are added to.  *GOOD: they lead to
 * labels of unit I, which then have a name. */
struct elfrw_err *icf_name_labels(struct icf_finder *f, uint32_t i, uint64_t from, bool *good);

/* Measures the tables of the unit's indirect jumps.  *RET is false when one of them cannot be
 * accounted for.  measure.c. */
struct elfrw_err *icf_measure_jumps(struct icf_finder *f, uint32_t i, bool *ret);
#endif
