/* expr.h: DWARF expressions (DWARF 5, section 2.5 and 7.7; GNU and LLVM extensions), walked and
 * mapped.
 *
 * Nothing is evaluated: only the places of each operator's operands matter, and which of them hold
 * addresses. */
#ifndef DWARF_EXPR_H
#define DWARF_EXPR_H
#include "dwarf/abbrev.h"
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_addrmap;

/* Expressions may nest (DW_OP_entry_value); deeper than this is an error. */
#define DWR_EXPR_MAX_DEPTH 4

/* Offsets count bytes from the start of the (outermost) expression. */
struct dwr_op {
	uint8_t op;          /* DW_OP_* */
	uint8_t depth;       /* 0: in the outermost expression */
	uint8_t n_operands;  /* 0 to 3; a block counts as its length, then its contents */
	uint32_t user;       /* DW_OP_LLVM_user: the operation behind it */
	uint64_t off, end;   /* operator and operands; for an operator that contains an expression,
				`end` includes that */
	uint64_t operand[3]; /* signed ones as two's complement; for a block's contents: their size
			      */
	uint64_t operand_off[3];
};

/* A walk; the bytes are borrowed. */
struct dwr_expr_walk {
	const uint8_t *data;
	size_t pos, size;
	struct dwr_form_params params;
	unsigned depth;
	size_t stop[DWR_EXPR_MAX_DEPTH + 1]; /* where the expression of each depth ends */
	const char *section; /* for messages: the section that DATA lies in, and where */
	uint64_t section_off;
};

/* A walk over DATA.  SECTION and SECTION_OFF say where DATA begins, for messages; SECTION is
 * borrowed. */
struct dwr_expr_walk dwr_expr_walk(const uint8_t *data, size_t size, struct dwr_form_params params,
				   const char *section, uint64_t section_off);

/* The next operator in file order (after DW_OP_entry_value: those of the expression in it, one
 * level deeper); *MORE false at the end.  Errors: an unknown operator, operands past the end, too
 * deep nesting. */
struct elfrw_err *dwr_expr_next(struct dwr_expr_walk *walk, struct dwr_op *op, bool *more);

/* What dwr_expr_map reports. */
enum dwr_expr_ref {
	DWR_EXPR_ADDRX,  /* VALUE: index in .debug_addr of an address that is used as a value */
	DWR_EXPR_CONSTX, /* VALUE: index in .debug_addr of a number that is no address of code or
			    data (thread-local offset) */
	DWR_EXPR_TYPE, /* VALUE: offset of a base type DIE relative to the unit, 0: generic type */
	DWR_EXPR_UNIT_DIE, /* VALUE: offset of another DIE relative to the unit (call2, call4,
			      parameter_ref) */
	DWR_EXPR_INFO_DIE, /* VALUE: offset of a DIE in .debug_info (call_ref, implicit_pointer,
			      variable_value) */
};

/* Called for an operand at byte POS of the expression.  An error ends the mapping and is
 * returned. */
typedef struct elfrw_err *dwr_expr_fn(void *arg, enum dwr_expr_ref ref, uint64_t value,
				      const struct dwr_op *op);

/* How expressions are mapped. */
struct dwr_expr_mapping {
	const struct elfrw_addrmap *map; /* borrowed */
	dwr_expr_fn *fn; /* called for references other than addresses; may be NULL */
	void *arg;       /* FN's */
	bool changed;    /* result: a byte changed; else left alone */
};

/* Maps the addresses in DATA in place.  The operand of DW_OP_addr is a pointer
 * (elfrw_addrmap_pointer), unless the next operator turns it into a thread-local offset.  No length
 * changes.  Errors: as dwr_expr_next; an encoded address that is not absolute. */
struct elfrw_err *dwr_expr_map(uint8_t *data, size_t size, struct dwr_form_params params,
			       const char *section, uint64_t section_off,
			       struct dwr_expr_mapping *mapping);
#endif
