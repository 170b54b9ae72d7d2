/* state.h: the words of four bytes from a place in data up to the next named one, for gap.c: which
 * of them may matter. */
#ifndef ICF_INFER_GAP_STATE_H
#define ICF_INFER_GAP_STATE_H
#include "elfrw/base/rbuf.h"
#include "icf/infer/parts.h"

struct icf_row_tree;

/* What rows of one program share. */
struct icf_rows {
	const struct icf_program *prog; /* borrowed */
	const struct icf_data_map *map; /* borrowed; does not change */
	struct icf_row_section *section;
};

struct icf_row {
	const uint8_t *word; /* borrowed */
	uint64_t n;
	uint64_t first;                  /* of `word` in the tree */
	const struct icf_row_tree *tree; /* borrowed */
	struct icf_bits *seen;           /* borrowed; by offset in the section */
	uint64_t off;                    /* in the section */
};

struct elfrw_err *icf_rows_init(const struct icf_program *prog, const struct icf_data_map *map,
				struct icf_rows *ret);
void icf_rows_deinit(struct icf_rows *rows);

/* The words from VA up to the next named place, or with WHOLE up to the next whose distance from VA
 * is a multiple of 4 (icf_table_limit), or up to the end of VA's section.  None where there is no
 * data. */
struct elfrw_err *icf_row_at(struct icf_rows *rows, uint64_t va, bool whole, struct icf_row *ret);

/* Numbers from LO to HI. */
struct icf_row_span {
	int64_t lo, hi;
};

/* The first word of R, from word K on, that is one of ALL and none of IDLE; R->n: there is none.
 * ALL must have room for each distance from R's section to code, or for all numbers. */
uint64_t icf_row_next(const struct icf_row *r, uint64_t k, const struct icf_row_span *all,
		      const struct icf_row_span *idle);

/* Is word K of R, and so each behind it, seen for the second time? */
static inline bool icf_row_see(const struct icf_row *r, uint64_t k)
{
	bool again = icf_bit(r->seen, r->off + 4 * k);
	icf_set_bit(r->seen, r->off + 4 * k);
	return again;
}

static inline int64_t icf_row_word(const struct icf_row *r, uint64_t k)
{
	return (int32_t)elfrw_get32(r->word + 4 * k);
}
#endif
