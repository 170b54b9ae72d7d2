/* lsda.h: language-specific data areas (.gcc_except_table), by meaning.
 *
 * The layout is that of the personality routines of GCC and LLVM (C, C++, Rust, Ada, Go, D,
 * Objective-C): Itanium C++ ABI, "Exception Handling Tables", as GCC's
 * output_function_exception_table() writes it and libgcc/libstdc++ read it.  A personality routine
 * of another kind may use other bytes, which usually fail to parse. */
#ifndef DWARF_LSDA_H
#define DWARF_LSDA_H
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_image;
struct elfrw_wbuf;

/* A type table entry that a chain uses.  addr: the type_info's VA or, with `indirect`, the VA of
 * the slot that holds it; 0: every type (catch (...)). */
struct dwr_lsda_type {
	uint64_t addr;
	bool indirect;
};

/* One action.  filter: the number that the landing pad receives and compares: > 0 a catch (one
 * type), 0 a cleanup (no types), < 0 an exception specification (the allowed types; none for
 * throw()). */
struct dwr_lsda_action {
	int64_t filter;
	uint32_t type, n_types; /* index of the first in dwr_lsda.type */
};

struct dwr_lsda_site {
	uint64_t start, len;  /* the call site, relative to the region start (FDE's pc_begin) */
	uint64_t landing_pad; /* VA, 0: none */
	uint32_t action, n_actions; /* index of the first in dwr_lsda.action; 0 actions: cleanup
				       only, if there is a pad */
};

/* A field that holds an encoded pointer to a type. */
struct dwr_lsda_field {
	uint64_t va;      /* of the field */
	uint64_t addr;    /* its meaning before indirection; 0: no type */
	uint8_t encoding; /* DWR_PE_* */
	uint8_t size;     /* bytes */
	bool used; /* a chain uses it; else it only lies between the actions seen and the table's
		      end, and those behind the last used one may be something else */
};

/* Reusable for the next dwr_lsda_read() without freeing; starts as { 0 }. */
struct dwr_lsda {
	uint64_t start,
		end; /* VA: all its bytes (header, call sites, actions, type table, specifications),
		      * and with them the headers and call sites of its function's later ranges */
	uint64_t region_start; /* the FUNC_START given */
	uint64_t lpstart;      /* VA that landing pads are relative to */
	uint64_t lpstart_va;   /* VA of the explicit LPStart field, or 0: omitted, lpstart is
				  region_start */
	uint64_t sites_end;    /* VA behind its call sites: the action table, or the header of the
				  function's next range */
	uint64_t actions;      /* VA of the action table */
	uint64_t ttbase;       /* VA of the end of the type table, or 0: none */
	uint32_t shndx;        /* of the section that holds it */
	uint8_t lpstart_encoding, ttype_encoding, site_encoding; /* DWR_PE_* */
	uint8_t lpstart_size; /* bytes of the explicit LPStart field */
	VEC(struct dwr_lsda_site) site;
	VEC(struct dwr_lsda_action) action;
	VEC(struct dwr_lsda_type) type;
	VEC(struct dwr_lsda_field)
	field; /* the type table, from its end downwards: filter 1, 2, ... */
};

/* Decodes the LSDA at LSDA_VA of the function [FUNC_START, FUNC_END), the range of its FDE.
 * Errors: out of its section, unknown or unusable encodings (datarel and the like; absolute
 * pointers in a file that is relocated at run time), cyclic or overlong action chains, call sites
 * outside of the function.  After an error RET may only be reused or freed. */
struct elfrw_err *dwr_lsda_read(struct dwr_lsda *ret, const struct elfrw_image *img,
				uint64_t lsda_va, uint64_t func_start, uint64_t func_end);
void dwr_lsda_deinit(struct dwr_lsda *lsda);

/* Appends the meaning to OUT.  Equal bytes mean the same call sites (relative to the function),
 * actions (including filter values, which the code at the landing pad compares), types and
 * specifications, whatever the layout.  Of landing pads only their presence is included; their VAs
 * are appended to PADS in call-site order.  Out of memory: OUT->bad. */
typedef VEC(uint64_t) dwr_lsda_pads;
void dwr_lsda_canon(const struct dwr_lsda *lsda, struct elfrw_wbuf *out, dwr_lsda_pads *pads);
#endif
