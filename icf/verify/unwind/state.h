/* state.h: shared by the files that compare unwind tables. */
#ifndef ICF_VERIFY_UNWIND_STATE_H
#define ICF_VERIFY_UNWIND_STATE_H
#include "icf/verify/state.h"

typedef VEC(uint64_t) addresses;

struct icf_vunwind {
	struct icf_v *v;
	addresses table_in, table_out; /* the starts of exception tables, sorted */
	uint8_t *matched;              /* by FDE of OUT */
};

/* The first FDE of CFI that begins at VA and is not empty, or ICF_V_NONE. */
uint32_t icf_vunwind_fde_at(const struct dwr_cfi *cfi, uint64_t va);
/* The difference between the CIE A of IN and B of OUT; NULL: none. */
const char *icf_vunwind_cie_differs(const struct icf_v *v, const struct dwr_cie *a,
				    const struct dwr_cie *b);
/* Have the FDE A of IN and B of OUT the same bytes, except for the places of the CIE, the code and
 * the exception table?  true, too, if they are laid out in different ways. */
bool icf_vunwind_same_record(const struct icf_v *v, const struct dwr_fde *a,
			     const struct dwr_fde *b);
/* The size of a pointer in this encoding; 0: no fixed size. */
unsigned icf_vunwind_pointer_size(uint8_t encoding, uint8_t address_size);

/* lsda.c: compares the exception tables of A in IN and B in OUT, whose code was proved to be the
 * same.  ALIAS: one unit replaces another.  KEPT: a thunk at its function's place, whose table must
 * be unchanged. */
struct elfrw_err *icf_vunwind_lsda(struct icf_vunwind *w, const struct dwr_fde *a,
				   const struct dwr_fde *b, bool alias, bool kept);

/* thunk.c: checks what OUT has in addition to the image of IN's descriptions: thunks' frames. */
struct elfrw_err *icf_vunwind_rest(struct icf_vunwind *w);
/* Does F describe a thunk, and no unit's copy? */
bool icf_vunwind_is_thunk_frame(const struct icf_v *v, const struct dwr_fde *f);

/* hdr.c: code that refers to a record of the table; then .eh_frame_hdr. */
void icf_vunwind_refs(struct icf_v *v);
struct elfrw_err *icf_vunwind_hdr(const struct icf_vclaim *c, struct icf_vlog *log);

/* rows.c: a sample of rows, as libdw evaluates them in both files. */
void icf_vunwind_rows(const struct icf_vclaim *c, struct icf_vlog *log);
#endif
