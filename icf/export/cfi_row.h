/* cfi_row.h: the unwind rules at each address of a frame description (DWARF 5, section 6.4). */
#ifndef ICF_EXPORT_CFI_ROW_H
#define ICF_EXPORT_CFI_ROW_H
#include "dwarf/cfi.h"

#define ICF_CFI_REGISTERS 96 /* that rules are kept for */

enum icf_rule_kind {
	ICF_RULE_NONE, /* nothing was said */
	ICF_RULE_UNDEFINED,
	ICF_RULE_SAME,
	ICF_RULE_OFFSET,     /* saved at CFA + number; the CFA's own: register + number */
	ICF_RULE_VAL_OFFSET, /* is CFA + number */
	ICF_RULE_REGISTER,   /* is in register `reg` */
	ICF_RULE_EXPRESSION, /* saved at the expression's value; the CFA's own: is it */
	ICF_RULE_VAL_EXPRESSION,
};

struct icf_rule {
	uint8_t kind;
	uint32_t reg;
	int64_t number;
	const uint8_t *expression; /* borrowed from the section */
	uint32_t size;
};

struct icf_cfi_row {
	uint64_t lo, hi;
	struct icf_rule cfa; /* ICF_RULE_OFFSET from `reg`, or ICF_RULE_EXPRESSION */
	struct icf_rule reg[ICF_CFI_REGISTERS];
};

/* Calls FN for each row of FDE, in ascending order.  FN returns false to stop.  false: rules that
 * cannot be followed (an unknown instruction, states nested too deeply). */
bool icf_cfi_rows(const struct dwr_cfi *cfi, const struct dwr_fde *fde,
		  bool (*fn)(void *ctx, const struct icf_cfi_row *row), void *ctx);
#endif
