/* list.h: one list through the address map; private to this folder. */
#ifndef DWARF_REWRITE_LISTS_LIST_H
#define DWARF_REWRITE_LISTS_LIST_H
#include "dwarf/rewrite/lists/lists.h"
#include "elfrw/base/wbuf.h"
#include <stdatomic.h>

/* Shared by all threads.  In hostile input lists may overlap and ranges may cover everything, each
 * time at full cost.  So the work is counted and limited. */
struct dwr_list_budget {
	atomic_uint_fast64_t bytes, max_bytes; /* bytes of lists read */
	atomic_uint_fast64_t units, max_units; /* units that ranges were cut at */
};

/* An entry of .debug_addr that is to have VALUE. */
struct dwr_list_wish {
	uint64_t slot, value;
	uint8_t size;
};

/* An address field of fixed size in the bytes of a list. */
struct dwr_list_patch {
	uint64_t off, value; /* off: in the input section */
	uint8_t size;
};

/* Bytes of a section. */
struct dwr_list_span {
	uint64_t off, size;
};

enum { DWR_OUT_MAPPED, DWR_OUT_RAW, DWR_OUT_DEFAULT };

/* An entry to encode. */
struct dwr_list_out {
	uint64_t begin, end;
	uint64_t view[2];
	const struct dwr_list_entry *src; /* NULL: a range that is not in the input */
	uint8_t mode; /* DWR_OUT_*; RAW: the map does not cover it, it stays as in the input */
};

struct dwr_list_outs {
	struct dwr_list_out *data;
	size_t len, cap;
};

/* One worker's state. */
struct dwr_list_work {
	const struct dwr_rw_lists_in *in; /* borrowed, as the next two */
	const struct dwr_ranger *ranger;
	struct dwr_list_budget *budget;

	struct elfrw_wbuf out;
	VEC(struct dwr_list_wish) wish;
	VEC(struct dwr_list_taken) taken;
	uint32_t patched, encoded;

	/* Scratch. */
	struct dwr_list list;
	struct dwr_pieces pieces;
	struct dwr_list_outs outs;
	VEC(struct dwr_list_patch) patch;
	VEC(struct dwr_list_span) span;
	VEC(uint64_t) convert;
	struct elfrw_wbuf expr, expr2;
	uint32_t unit; /* where the last look-up ended */
	uint64_t read; /* bytes of lists that are not counted in the budget yet */
};

/* Offsets in the worker's `out`. */
struct dwr_list_result {
	uint64_t views, off, end; /* views == off: none, or inline */
	uint64_t in_end;          /* end of the list in the input section */
	bool empty;
};

void dwr_list_work_deinit(struct dwr_list_work *w);

/* Appends the list of USE, rewritten, to W->out, and what it lost to W->taken, as of use number
 * USE_INDEX. */
struct elfrw_err *dwr_list_rewrite(struct dwr_list_work *w, const struct dwr_list_use *use,
				   uint32_t use_index, struct dwr_list_result *ret);

/* Where a list's location views stand. */
enum dwr_list_views {
	DWR_VIEWS_NONE,
	DWR_VIEWS_BEFORE, /* in front of the list: DW_AT_GNU_locviews */
	DWR_VIEWS_INLINE, /* in the list: DW_LLE_GNU_view_pair */
};

/* Appends the list of the entries OUTS (with their views, and the end) to W->out. */
struct elfrw_err *dwr_list_encode(struct dwr_list_work *w, enum dwr_list_kind kind,
				  const struct dwr_list_cu *cu, const struct dwr_list_outs *outs,
				  enum dwr_list_views views, struct dwr_list_result *ret);

/* Counts BYTES more that are read or made for lists; error: the total is out of proportion to the
 * section. */
struct elfrw_err *dwr_list_charge(struct dwr_list_budget *b, uint64_t bytes);
/* The same for bytes that the worker read; and for what is left when it is done. */
struct elfrw_err *dwr_list_charge_read(struct dwr_list_work *w, uint64_t bytes);
struct elfrw_err *dwr_list_charge_rest(struct dwr_list_work *w);

/* Is the list of USE one of the usual ones, whose code moves as a whole?  Then *END: its end; *N:
 * its entries; and the changes are in W->patch, which was empty. */
bool dwr_list_is_simple(struct dwr_list_work *w, const struct dwr_list_use *use, uint64_t *end,
			size_t *n);

/* The unit that a list of the usual kind describes, or NULL. */
const struct elfrw_addrmap_unit *dwr_list_simple_owner(const struct dwr_list_work *w,
						       const struct dwr_list_use *use);

/* Is the expression of [P, END) made of usual operators, which hold no address? */
bool dwr_list_is_plain(const uint8_t *p, const uint8_t *end, unsigned offset_size);

/* Does [BEGIN, END) move with U, for a list of PURPOSE? */
static inline bool dwr_list_moves_with(const struct elfrw_addrmap_unit *u, uint8_t purpose,
				       uint64_t begin, uint64_t end)
{
	return begin >= u->old && end >= begin && end <= u->old_end &&
	       (begin < u->old_end || purpose == DWR_FOR_LOCATION);
}

/* Moves *P behind a ULEB128 number; false: it goes past END or is too long. */
static inline bool dwr_list_uleb(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; *p < end && shift < 63; shift += 7) {
		uint8_t byte = *(*p)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* shift.c: appends the list of USE to W->out if it has only pairs, which count from the base of
 * their unit of debug information, and its code moves as a whole, but otherwise than that base.
 * *OK false: it is another list, and nothing was appended. */
struct elfrw_err *dwr_list_shift(struct dwr_list_work *w, const struct dwr_list_use *use,
				 struct dwr_list_result *ret, bool *ok);

/* Appends the pair of views that an empty list has, which nobody reads: without any, the list and
 * its views would be at one offset, of which readers complain. */
static inline void dwr_list_no_views(struct elfrw_wbuf *out)
{
	elfrw_wbuf_uleb(out, 0);
	elfrw_wbuf_uleb(out, 0);
}

/* Appends the views of N entries, if USE has any. */
struct elfrw_err *dwr_list_copy_views(struct dwr_list_work *w, const struct dwr_list_use *use,
				      size_t n);

/* May a list state VALUE by referring to entry SLOT of .debug_addr, whose old value is OLD?  If so,
 * that is recorded as a wish. */
struct elfrw_err *dwr_list_want_slot(struct dwr_list_work *w, uint64_t slot, unsigned size,
				     uint64_t old, uint64_t value, bool *ret);

/* Maps the expression at EXPR, a copy of the bytes SPAN of section SEC, in place.  *FITS false:
 * some indices into .debug_addr cannot stay; the offsets of these operators are in W->convert. */
struct elfrw_err *dwr_list_map_expr(struct dwr_list_work *w, const struct dwr_list_sec *sec,
				    const struct dwr_list_cu *cu, uint8_t *expr,
				    struct dwr_list_span span, bool *fits);
#endif
