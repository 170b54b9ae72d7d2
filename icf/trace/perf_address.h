/* perf_address.h: the files of a profile that share code, and the places of `perf script`'s frames
 * in them. */
#ifndef ICF_TRACE_PERF_ADDRESS_H
#define ICF_TRACE_PERF_ADDRESS_H
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/image.h"
#include "elfrw/base/vec.h"

struct dwr_callchain;
struct dwr_icfold;

#define ICF_PERF_NO_OFFSET UINT64_MAX

/* The spellings of a name: as in the symbol table; demangled, with parameters (perf -v) or without
 * (perf). */
enum icf_perf_form { ICF_PERF_LINKAGE, ICF_PERF_FULL, ICF_PERF_SHORT };
#define ICF_PERF_FORMS 3

struct icf_perf_symbol {
	uint64_t address, size;
	const char *name; /* borrowed from an image */
};

/* The difference between addresses in a process and addresses as linked. */
struct icf_perf_shift {
	int64_t pid;
	uint64_t shift;
	bool used;
};

struct icf_perf_name {
	const char *linkage; /* NULL: empty slot */
	char *text;          /* owned */
};

struct icf_perf_module {
	char *path; /* owned */
	struct dwr_sym *sym;
	struct elfrw_image code,
		debug; /* debug: borrows from sym; used only if it is another file */
	struct dwr_callchain *cc;
	const struct dwr_icfold *note;      /* borrowed */
	VEC(struct icf_perf_symbol) symbol; /* functions by address */
	struct icf_perf_shift *shift;       /* by process; open hash table; owned, as the next */
	size_t n_shifts, n_shift_slots;
	struct icf_perf_name *name[ICF_PERF_FORMS]; /* open hash tables */
	size_t n_names[ICF_PERF_FORMS], n_name_slots[ICF_PERF_FORMS];
	uint64_t last;  /* the last correct shift */
	unsigned scans; /* scans of all symbols without result */
	bool complained;
};

/* Opens PATH.  *RET is NULL if the file has no .debug_icfold.  Errors: out of memory; with SURE
 * also a file that cannot be opened, or has none. */
struct elfrw_err *icf_perf_open(const char *path, const struct dwr_sym_options *options, bool sure,
				struct icf_perf_module **ret);
void icf_perf_close(struct icf_perf_module *m); /* NULL is allowed */

/* Process PID has mapped the file from OFFSET on to START. */
struct elfrw_err *icf_perf_mapped(struct icf_perf_module *m, int64_t pid, uint64_t start,
				  uint64_t offset);

/* What perf says of a frame. */
struct icf_perf_shown {
	int64_t pid;
	uint64_t ip;
	const char *name; /* of the function; borrowed; not terminated */
	size_t n_name;
	uint64_t offset; /* after the function's start; ICF_PERF_NO_OFFSET: perf does not say */
};

/* The address, as linked, of frame S.  *FOUND false: unknown. */
struct elfrw_err *icf_perf_address(struct icf_perf_module *m, const struct icf_perf_shown *s,
				   uint64_t *ret, bool *found);

/* The same, only from known mappings. */
bool icf_perf_known(struct icf_perf_module *m, const struct icf_perf_shown *s, uint64_t *ret);

/* The address, as linked, of the byte at OFFSET of the file; false: it is not loaded as code. */
bool icf_perf_offset(const struct icf_perf_module *m, uint64_t offset, uint64_t *ret);

/* LINKAGE in FORM.  LINKAGE must live as long as M; the result does.  NULL: out of memory. */
const char *icf_perf_spell(struct icf_perf_module *m, const char *linkage, enum icf_perf_form form);

/* The likely form of the N bytes at NAME. */
enum icf_perf_form icf_perf_form_of(const char *name, size_t n);

/* Is it the name LINKAGE in one of its forms? */
bool icf_perf_same_name(struct icf_perf_module *m, const char *linkage, const char *name, size_t n);
#endif
