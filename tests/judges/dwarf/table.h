/* table.h: one line table, read by the judge itself (DWARF 5, section 6.2; DWARF 2 to 4, the same
 * section): sequence by sequence, as the program of opcodes makes them. */
#ifndef TESTS_JUDGES_DWARF_TABLE_H
#define TESTS_JUDGES_DWARF_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jbytes {
	const uint8_t *p;
	size_t n;
};

/* The matrix's registers at one row. */
struct jrow {
	uint64_t addr;
	uint32_t path; /* number of the file's whole path in struct jpaths */
	uint32_t line, col, disc, isa;
	uint8_t marks; /* JM_* */
};
enum { JM_STMT = 1, JM_BLOCK = 2, JM_PROLOGUE = 4, JM_EPILOGUE = 8, JM_END = 16 };

/* Paths, each once. */
struct jpaths {
	char **text;
	uint32_t n, cap;
	uint32_t *slot; /* by hash: number + 1 */
	uint32_t n_slots;
};
void jpaths_free(struct jpaths *p);

struct jtable {
	struct jrow *row; /* each sequence ends with a row that is JM_END */
	size_t n, cap;
};
void jtable_free(struct jtable *t);

struct jline_sections {
	struct jbytes line, line_str, str;
};
/* Reads the table at OFF; COMP_DIR is what relative names count from, or NULL.  NULL: done; else
 * what is wrong with it. */
const char *jtable_read(struct jtable *ret, struct jpaths *paths, const struct jline_sections *s,
			uint64_t off, const char *comp_dir);
#endif
