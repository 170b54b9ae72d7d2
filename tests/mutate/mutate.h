/* mutate.h: shared by the files of mutate: what is known of the files, and how places are found. */
#ifndef TESTS_MUTATE_MUTATE_H
#define TESTS_MUTATE_MUTATE_H
#include "dwarf/cfi.h"
#include "dwarf/sections.h"
#include "dwarf/calls/icfold_layout.h"
#include "dwarf/calls/icfold_note.h"
#include "dwarf/lsda.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/tail.h"
#include "elfrw/base/vec.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A field of the output file. */
struct place {
	uint64_t off;
	unsigned size;
	uint64_t moved; /* for MOVE: by how much */
	/* For BOTH: what the field becomes, and the place and the value of the input's. */
	uint64_t value, in_off, in_value;
};

struct ctx {
	struct elfrw_image in, out;
	struct dwr_icfold note;
	struct dwr_cfi cfi;
	bool has_note;
	VEC(struct place) place;
	/* What the kind asks for: a section, a tag, an attribute, an index. */
	const char *name;
	long arg;
};

void mutate_die(const char *what);
void mutate_check(struct elfrw_err *err);
/* Adds the SIZE bytes at P of the mapped output, or those at a file offset, to the places. */
void mutate_add(struct ctx *c, const void *p, unsigned size);
void mutate_add_moved(struct ctx *c, const void *p, unsigned size, uint64_t moved);
void mutate_add_off(struct ctx *c, uint64_t off, unsigned size);
/* The field at P, which becomes VALUE, and the one at IN_P of the input, which becomes IN_VALUE. */
void mutate_add_both(struct ctx *c, const void *p, uint64_t value, const void *in_p,
		     uint64_t in_value, unsigned size);
const struct elfrw_section *mutate_section(struct ctx *c, const char *name);
bool mutate_in_code(const struct elfrw_image *img, uint64_t va);

/* Reads into *L the exception table of the first FDE that has one, from the *I-th FDE on, and sets
 * *I to the FDE behind it. False: there is none. The caller frees *L by dwr_lsda_deinit(). */
bool mutate_next_lsda(const struct ctx *c, size_t *i, struct dwr_lsda *l);

/* What `arg` means to some of the finders. */
enum { RELA_CODE, RELA_DATA, RELA_OFFSET, RELA_INFO, RELA_SYMBOLIC };
enum { FDE_BEGIN, FDE_RANGE, FDE_INSN, FDE_CIE, FDE_LSDA, FDE_LENGTH };
enum { SYM_ANY, SYM_FUNC, SYM_OBJECT, SYM_FOLDED };
enum { LINE_LENGTH = 98, LINE_HEADER = 99, LINE_SPECIAL = 100, LINE_EXTENDED = 200 };
enum {
	A64_PAGE,
	A64_NEAR,
	A64_LOW_ADD,
	A64_LOW_LOAD,
	A64_LOW_STORE,
	A64_CALL,
	A64_JUMP,
	A64_CONDITION,
	A64_ZERO,
	A64_BIT,
	A64_PART,
	A64_LITERAL
};
enum { LIST_MOVED, LIST_FOLDED, LIST_SHARED };
enum { NOTE_TRAP_BYTE = 24 }; /* its place in the header of .debug_icfold */
#define PHDR(type, field)      ((long)(type) << 8 | (long)offsetof(Elf64_Phdr, field))
#define ATTR(code, form, size) ((long)(code) | (long)(form) << 16 | (long)(size) << 32)

/* The finders: each adds the places of its kind. */
void mutate_a64_insns(struct ctx *c);
void mutate_a64_mapping(struct ctx *c);
void mutate_a64_pads(struct ctx *c);
void mutate_a64_rules(struct ctx *c);
void mutate_addresses(struct ctx *c);
void mutate_aranges(struct ctx *c);
void mutate_artificial_ops(struct ctx *c);
void mutate_attrs(struct ctx *c);
void mutate_bytes(struct ctx *c);
void mutate_call_table(struct ctx *c);
void mutate_cies(struct ctx *c);
void mutate_children(struct ctx *c);
void mutate_code_abs(struct ctx *c);
void mutate_code_abs_data(struct ctx *c);
void mutate_code_calls(struct ctx *c);
void mutate_code_colds(struct ctx *c);
void mutate_code_disps(struct ctx *c);
void mutate_code_fill(struct ctx *c);
void mutate_code_imms(struct ctx *c);
void mutate_code_indirect(struct ctx *c);
void mutate_code_inner(struct ctx *c);
void mutate_code_last(struct ctx *c);
void mutate_code_lea_code(struct ctx *c);
void mutate_code_lea_data(struct ctx *c);
void mutate_code_loads(struct ctx *c);
void mutate_code_numbers(struct ctx *c);
void mutate_code_numbers_inside(struct ctx *c);
void mutate_code_opcodes(struct ctx *c);
void mutate_code_operands(struct ctx *c);
void mutate_code_tails(struct ctx *c);
void mutate_code_words(struct ctx *c);
void mutate_compression(struct ctx *c);
void mutate_dynamic(struct ctx *c);
void mutate_dynamic_relocs(struct ctx *c);
void mutate_dynamic_tags(struct ctx *c);
void mutate_ehdr(struct ctx *c);
void mutate_empty_entries(struct ctx *c);
void mutate_entry_values(struct ctx *c);
void mutate_expressions(struct ctx *c);
void mutate_fde_lengths(struct ctx *c);
void mutate_fdes(struct ctx *c);
void mutate_frame_end(struct ctx *c);
void mutate_frame_hdr(struct ctx *c);
void mutate_frame_hdr_pairs(struct ctx *c);
void mutate_gaps(struct ctx *c);
void mutate_gdb_index(struct ctx *c);
void mutate_gdb_part(struct ctx *c);
void mutate_gdb_pool(struct ctx *c);
void mutate_irelative(struct ctx *c);
void mutate_lists(struct ctx *c);
void mutate_line_ops(struct ctx *c);
void mutate_lsda_bytes(struct ctx *c);
void mutate_lsda_sites(struct ctx *c);
void mutate_lsda_types(struct ctx *c);
void mutate_note_header(struct ctx *c);
void mutate_note_header_bytes(struct ctx *c);
void mutate_note_part(struct ctx *c);
void mutate_note_sequences(struct ctx *c);
void mutate_note_rows(struct ctx *c);
void mutate_numbers(struct ctx *c);
void mutate_null_section(struct ctx *c);
void mutate_null_symbol(struct ctx *c);
void mutate_phdr_order(struct ctx *c);
void mutate_phdrs(struct ctx *c);
void mutate_pointed_at(struct ctx *c);
void mutate_relas(struct ctx *c);
void mutate_set_headers(struct ctx *c);
void mutate_shdrs(struct ctx *c);
void mutate_sym_infos(struct ctx *c);
void mutate_sym_names(struct ctx *c);
void mutate_sym_others(struct ctx *c);
void mutate_sym_shndx(struct ctx *c);
void mutate_sym_sizes(struct ctx *c);
void mutate_sym_stale(struct ctx *c);
void mutate_sym_values(struct ctx *c);
void mutate_tail(struct ctx *c);
void mutate_sym_whole(struct ctx *c);
void mutate_table_entries(struct ctx *c);
void mutate_table_ends(struct ctx *c);
void mutate_thunk_bodies(struct ctx *c);
void mutate_thunk_jumps(struct ctx *c);
void mutate_thunk_opcodes(struct ctx *c);
void mutate_thunk_tails(struct ctx *c);
void mutate_unit_headers(struct ctx *c);
void mutate_words(struct ctx *c);
#endif
