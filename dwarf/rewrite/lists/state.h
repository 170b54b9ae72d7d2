/* state.h: private to this folder: the state of one rewriting of the list sections. */
#ifndef DWARF_REWRITE_LISTS_STATE_H
#define DWARF_REWRITE_LISTS_STATE_H
#include "dwarf/rewrite/lists/list.h"

/* There may be millions: without the padding. */
struct __attribute__((packed, aligned(4))) dwr_lists_key {
	uint64_t key;
	uint32_t index;
};

struct dwr_lists_chunk {
	struct dwr_list_work w;
	uint32_t first, n; /* in order[] */
	uint32_t contrib;  /* DWARF 5: index of the contribution */
	uint64_t base;     /* where its bytes are in the new section */
	uint8_t kind;
};

/* Consecutive uses of the caller's that are counted and sorted together. */
struct dwr_lists_slice {
	uint32_t n[DWR_LIST_KINDS];  /* uses of each section */
	uint32_t at[DWR_LIST_KINDS]; /* where their keys begin in order[] */
};
#define DWR_LISTS_SLICE 16384 /* uses */

/* One of the sections. */
struct dwr_lists_part {
	uint32_t first, n; /* keys in order[] */
	uint32_t first_chunk, n_chunks;
	uint32_t first_synth; /* made-up uses of this section */
	struct dwr_list_contribs contribs;
	uint64_t *new_base; /* by contribution: its base in the output */
	uint64_t *table;    /* all offset tables, one after the other: the new list offset, while
			       reading the use */
	uint32_t *table_at; /* by contribution: where its table begins in TABLE */
};

struct dwr_lists_run {
	const struct dwr_rw_lists_in *in;
	VEC(struct dwr_list_use) made_up; /* uses beyond the caller's */
	size_t n_by_kind[DWR_LIST_KINDS]; /* the caller's uses */
	struct dwr_lists_slice *slice;
	size_t n_slices;
	struct dwr_lists_key *order;
	struct dwr_ranger ranger;
	struct dwr_list_budget budget[DWR_LIST_KINDS];
	struct dwr_lists_part part[DWR_LIST_KINDS];
	VEC(struct dwr_lists_chunk) chunk;
};

/* Uses are numbered through: the caller's, then those made up. */
static inline struct dwr_list_use *dwr_lists_use(const struct dwr_lists_run *r, size_t i)
{
	return i < r->in->n_uses ? &r->in->use[i] : &r->made_up.data[i - r->in->n_uses];
}

static inline size_t dwr_lists_count(const struct dwr_lists_run *r)
{
	return r->in->n_uses + r->made_up.len;
}

/* ---- uses.c ---- */

/* Sorts by key, equal keys in their order: least significant digits first, only those that
 * occur. */
void dwr_lists_sort(struct dwr_lists_key *a, struct dwr_lists_key *tmp, size_t n);

/* The place in part->table of an indexed use, or NULL. */
uint64_t *dwr_lists_table_entry(const struct dwr_lists_run *r, const struct dwr_list_use *use);

/* Adds a use for each entry of an offset table that no DIE uses.  The unit is one with this
 * contribution as its own.  Without such a unit nobody can read the list, and the entry gets any
 * valid offset. */
struct elfrw_err *dwr_lists_make_up(struct dwr_lists_run *r, unsigned kind);

/* Sorts the uses of each section by list offset, equal offsets in their order. */
struct elfrw_err *dwr_lists_sort_uses(struct dwr_lists_run *r);

/* Cuts the sorted uses of section KIND into chunks. */
struct elfrw_err *dwr_lists_cut(struct dwr_lists_run *r, unsigned kind);

/* ---- chunk.c ---- */

/* Rewrites the lists of chunk INDEX of ARG, a struct dwr_lists_run. */
struct elfrw_err *dwr_lists_rewrite_chunk(void *arg, size_t index);

/* ---- assemble.c ---- */

/* Appends the new section KIND to OUT, and gives the uses their final offsets. */
struct elfrw_err *dwr_lists_assemble(struct dwr_lists_run *r, unsigned kind,
				     struct elfrw_wbuf *out);

/* Appends the lists that the input does not have; in DWARF 5 as contributions of their own. */
struct elfrw_err *dwr_lists_add(struct dwr_lists_run *r, unsigned kind, struct elfrw_wbuf *out);
#endif
