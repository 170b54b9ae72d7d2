/* aarch64.h: the forms of references in AArch64 code, by number: indices into the table of
 * aarch64.c. */
#ifndef ELFRW_ARCH_AARCH64_H
#define ELFRW_ARCH_AARCH64_H

enum elfrw_a64_form {
	ELFRW_A64_BRANCH26 = 1,
	ELFRW_A64_BRANCH19, /* conditional branches, and loads of literals */
	ELFRW_A64_BRANCH14,
	ELFRW_A64_BRANCH9,
	ELFRW_A64_ADR21,
	ELFRW_A64_PAGE21,
	ELFRW_A64_LOW12, /* and ELFRW_A64_LOW12 + n: scaled by 2^n */
	ELFRW_A64_LOW12_LAST = ELFRW_A64_LOW12 + 4,
	ELFRW_A64_PART16,
	ELFRW_A64_ABS64,
};
#endif
