/* file.h: the files of a symbolizer, which are more kinds than can be folded, and the places of
 * their debug files. */
#ifndef DWARF_SYMBOLIZE_FILE_H
#define DWARF_SYMBOLIZE_FILE_H
#include "dwarf/abbrev.h"
#include "dwarf/sections.h"
#include "elfrw/image.h"
#include "elfrw/base/vec.h"

struct dwr_sym_unit;

#define DWR_SYM_ABBREVS          512
#define DWR_SYM_ABBREVS_IN_ORDER 128

/* One ELF file with debug information. */
struct dwr_sym_file {
	struct elfrw_image image;
	bool borrowed;            /* the mapping of image */
	char *path;               /* owned */
	VEC(uint8_t *) copies;    /* sections that had to be converted; owned */
	struct dwr_sections secs; /* empty if the file's debug sections are invalid */
	uint64_t code_low; /* the lowest address of an executable section; a range below it is of
			      deleted code */
	struct dwr_sym_unit **unit; /* open hash table by offset; owned, as the units */
	size_t n_units, n_slots;
	VEC(uint64_t) unit_off; /* of all units, ascending; see all_units */
	bool all_units;
	struct dwr_lines **lines; /* open hash table by offset; owned */
	size_t n_lines, n_line_slots;
	struct dwr_abbrev_table abbrev[DWR_SYM_ABBREVS]; /* a cache by offset */
	unsigned n_abbrevs;                              /* that are used */
};

/* MAPPED: a mapping of PATH to use, borrowed; or NULL. */
struct elfrw_err *dwr_sym_file_open(const char *path, const struct elfrw_image *mapped,
				    struct dwr_sym_file **ret);
void dwr_sym_file_close(struct dwr_sym_file *file);
bool dwr_sym_file_has_debug(const struct dwr_sym_file *file);

/* Where debug files are.  SYSROOT: the root of FILE's machine, "": this one's.  What is asked for
 * below a sysroot is not found outside of it, whatever names and links in it say. */
struct dwr_sym_places {
	const char *debug_dir, *sysroot; /* borrowed */
};

/* Finds the separate debug file of FILE; *RET NULL: none.  It is below DEBUG_DIR by build-id, or
 * beside FILE or below DEBUG_DIR by .gnu_debuglink (with FILE's folder as seen from SYSROOT). */
struct elfrw_err *dwr_sym_file_separate(const struct dwr_sym_file *file,
					const struct dwr_sym_places *places,
					struct dwr_sym_file **ret);

/* The same from a debuginfod server (debuginfod.h). */
struct elfrw_err *dwr_sym_file_from_server(const struct dwr_sym_file *file,
					   struct dwr_sym_file **ret);

/* An error that names both build-ids, if DEBUG has another one than FILE. */
struct elfrw_err *dwr_sym_file_fits(const struct dwr_sym_file *file,
				    const struct dwr_sym_file *debug);

/* Finds the supplementary file (dwz) of FILE's debug information: beside FILE, by build-id below
 * DEBUG_DIR, or from a server; *RET NULL: none, or not found.  Out of memory is reported even if
 * another way led to the file afterwards. */
struct elfrw_err *dwr_sym_file_supplementary(const struct dwr_sym_file *file,
					     const struct dwr_sym_places *places,
					     struct dwr_sym_file **ret);
#endif
