/* postfix.h: rules and DWARF expressions in Breakpad's postfix language, which has + - * / % @ (the
 * left operand rounded down to a multiple of the right one) and ^ (the word at an address). */
#ifndef ICF_EXPORT_POSTFIX_H
#define ICF_EXPORT_POSTFIX_H
#include "elfrw/arch/arch.h"
#include "icf/export/cfi_row.h"

#define ICF_POSTFIX_SIZE 256

/* Where a rule holds. */
struct icf_postfix_at {
	const struct elfrw_arch *arch;
	const struct dwr_cie *cie;
	uint64_t pc;
};

/* Breakpad's name of register REG, or NULL. */
const char *icf_postfix_register(const struct icf_postfix_at *at, uint64_t reg);

/* Writes the rule for the CFA, or for a register: RET is "" if there is nothing to say, or nothing
 * is known.  false: a rule that the language cannot express. */
bool icf_postfix_cfa(const struct icf_postfix_at *at, const struct icf_rule *cfa,
		     char ret[ICF_POSTFIX_SIZE]);
bool icf_postfix_rule(const struct icf_postfix_at *at, const struct icf_rule *rule, uint64_t reg,
		      char ret[ICF_POSTFIX_SIZE]);
#endif
