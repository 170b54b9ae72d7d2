/* mutate.c: breaks one thing in a good output, to see whether `icfold verify` notices.
 *
 *   mutate --list                      the kinds of mutants, one a line
 *   mutate KIND I N IN OUT NEW         writes NEW: OUT with the I-th of N places of that kind
 *                                      changed; some kinds change IN as well and write
 *                                      NEW.in
 *
 * A kind is a way to find places (fields of a given meaning) and a change.  The places of a kind
 * are spread evenly over the file.  Exit status: 0 done, one line says what was changed; 3 there is
 * no such place in this file; 2 trouble. */
#include "tests/mutate/mutate.h"
#include <dwarf.h>
#include <stdio.h>

void mutate_die(const char *what)
{
	fprintf(stderr, "mutate: %s\n", what);
	exit(2);
}

void mutate_check(struct elfrw_err *err)
{
	if (err)
		mutate_die(elfrw_err_text(err));
}

void mutate_add(struct ctx *c, const void *p, unsigned size)
{
	struct place *x = VEC_PUSH(&c->place);
	if (!x)
		mutate_die("out of memory");
	*x = (struct place){ (uint64_t)((const uint8_t *)p - c->out.base), size, 0 };
}

void mutate_add_moved(struct ctx *c, const void *p, unsigned size, uint64_t moved)
{
	mutate_add(c, p, size);
	c->place.data[c->place.len - 1].moved = moved;
}

void mutate_add_both(struct ctx *c, const void *p, uint64_t value, const void *in_p,
		     uint64_t in_value, unsigned size)
{
	mutate_add(c, p, size);
	struct place *x = &c->place.data[c->place.len - 1];
	x->value = value;
	x->in_off = (uint64_t)((const uint8_t *)in_p - c->in.base);
	x->in_value = in_value;
}

void mutate_add_off(struct ctx *c, uint64_t off, unsigned size)
{
	if (off <= c->out.size && size <= c->out.size - off)
		mutate_add(c, c->out.base + off, size);
}

const struct elfrw_section *mutate_section(struct ctx *c, const char *name)
{
	const struct elfrw_section *s = elfrw_image_section(&c->out, name);
	return s && s->data ? s : NULL;
}

bool mutate_in_code(const struct elfrw_image *img, uint64_t va)
{
	uint32_t s = elfrw_image_section_at(img, va);
	return s && (img->section[s].hdr.sh_flags & SHF_EXECINSTR);
}

/* --- the kinds --------------------------------------------------------- */

/* RESTORE: what IN has at the same address.  BOTH: a pair of files, with what a wrong way of
 * folding would make of another input. */
enum edit { ADD, MOVE, XOR, SWAP, COPY, ZERO, RESTORE, BOTH, CUT, APPEND };

struct kind {
	const char *name;
	void (*find)(struct ctx *c);
	const char *section;
	long arg;
	enum edit edit;
	int64_t by;
};

#define EHDR(field) \
	((long)offsetof(Elf64_Ehdr, field) | (long)sizeof(((Elf64_Ehdr *)0)->field) << 8)
#define RELA(field) \
	((long)offsetof(Elf64_Rela, field) | (long)sizeof(((Elf64_Rela *)0)->field) << 8)
#define SHDR(field) \
	((long)offsetof(Elf64_Shdr, field) | (long)sizeof(((Elf64_Shdr *)0)->field) << 8)

/* One line a kind: many lines are alike on purpose. */
static const struct kind kinds[] = {
	{ "call-target", mutate_code_calls, NULL, 0, ADD, 16 },
	{ "call-target-by-one", mutate_code_calls, NULL, 0, ADD, 1 },
	{ "calls-swapped", mutate_code_calls, NULL, 0, SWAP, 0 },
	{ "tail-jump", mutate_code_tails, NULL, 0, ADD, -2 },
	{ "jump-to-cold-part", mutate_code_colds, NULL, 0, ADD, 1 },
	{ "inner-branch", mutate_code_inner, NULL, 0, ADD, 1 },
	{ "function-address", mutate_code_lea_code, NULL, 0, ADD, 16 },
	{ "data-address", mutate_code_lea_data, NULL, 0, ADD, 8 },
	{ "data-load", mutate_code_loads, NULL, 0, ADD, 4 },
	{ "slot-of-indirect-call", mutate_code_indirect, NULL, 0, ADD, 8 },
	{ "opcode", mutate_code_opcodes, NULL, 0, XOR, 2 },
	{ "operand", mutate_code_operands, NULL, 0, XOR, 8 },
	{ "immediate", mutate_code_imms, NULL, 0, ADD, 1 },
	{ "displacement", mutate_code_disps, NULL, 0, ADD, 8 },
	{ "number-of-trap", mutate_code_numbers, NULL, 0, MOVE, 0 },
	{ "number-corrected", mutate_code_numbers_inside, NULL, 0, BOTH, 0 },
	{ "last-byte-of-function", mutate_code_last, NULL, 0, XOR, 1 },
	{ "absolute-function-address", mutate_code_abs, NULL, 0, ADD, 16 },
	{ "absolute-data-address", mutate_code_abs_data, NULL, 0, ADD, 4 },
	{ "fill-to-nop", mutate_code_fill, NULL, 0, XOR, 0xcc ^ 0x90 },
	{ "fill-to-ret", mutate_code_fill, NULL, 0, XOR, 0xcc ^ 0xc3 },
	{ "thunk-target", mutate_thunk_jumps, NULL, 0, ADD, 2 },
	{ "thunks-swapped", mutate_thunk_jumps, NULL, 0, SWAP, 0 },
	{ "thunk-calls", mutate_thunk_opcodes, NULL, 0, XOR, 1 },
	{ "thunk-tail", mutate_thunk_tails, NULL, 0, XOR, 0x55 },
	{ "thunk-traps", mutate_thunk_opcodes, NULL, 0, XOR, 0xe9 ^ 0xcc },
	{ "thunk-body-to-nop", mutate_thunk_bodies, NULL, 0, XOR, 0xcc ^ 0x90 },
	{ "plt-byte", mutate_bytes, ".plt", 0, XOR, 4 },
	{ "init-byte", mutate_bytes, ".init", 0, XOR, 4 },
	{ "fini-byte", mutate_bytes, ".fini", 0, XOR, 4 },
	{ "table-entry", mutate_table_entries, NULL, 0, ADD, 1 },
	{ "table-entries-swapped", mutate_table_entries, NULL, 0, SWAP, 0 },
	{ "table-entry-copied", mutate_table_entries, NULL, 0, COPY, 0 },
	{ "table-entry-zero", mutate_table_entries, NULL, 0, ZERO, 0 },
	{ "table-entry-not-rewritten", mutate_table_entries, NULL, 0, RESTORE, 0 },
	{ "word-behind-table", mutate_table_ends, NULL, 0, ADD, -16 },
	{ "code-word", mutate_code_words, NULL, 0, ADD, 1 },
	{ "code-words-swapped", mutate_code_words, NULL, 0, SWAP, 0 },
	{ "list-word-to-moved", mutate_lists, NULL, LIST_MOVED, BOTH, 0 },
	{ "list-word-to-folded", mutate_lists, NULL, LIST_FOLDED, BOTH, 0 },
	{ "list-word-to-shared", mutate_lists, NULL, LIST_SHARED, BOTH, 0 },
	{ "relative-code-addend", mutate_dynamic_relocs, NULL, RELA_CODE, ADD, 1 },
	{ "relative-code-addend-copied", mutate_dynamic_relocs, NULL, RELA_CODE, COPY, 0 },
	{ "relative-data-addend", mutate_dynamic_relocs, NULL, RELA_DATA, ADD, 8 },
	{ "symbolic-addend", mutate_dynamic_relocs, NULL, RELA_SYMBOLIC, ADD, 8 },
	{ "relocation-place", mutate_dynamic_relocs, NULL, RELA_OFFSET, ADD, 8 },
	{ "relocation-type", mutate_dynamic_relocs, NULL, RELA_INFO, XOR, 1 },
	{ "relocation-symbol", mutate_dynamic_relocs, NULL, RELA_INFO, ADD, INT64_C(1) << 32 },
	{ "relocation-gone", mutate_dynamic_relocs, NULL, RELA_INFO, ZERO, 0 },
	{ "irelative-addend", mutate_irelative, NULL, 0, ADD, 16 },
	{ "relr-word", mutate_words, ".relr.dyn", 0, XOR, 2 },
	{ "got-word", mutate_words, ".got", 0, ADD, 8 },
	{ "got-plt-word", mutate_words, ".got.plt", 0, ADD, 8 },
	{ "init-array-word", mutate_words, ".init_array", 0, ADD, 1 },
	{ "fini-array-word", mutate_words, ".fini_array", 0, ADD, 1 },
	{ "relro-word", mutate_words, ".data.rel.ro", 0, ADD, 8 },
	{ "rodata-byte", mutate_bytes, ".rodata", 0, XOR, 1 },
	{ "data-byte", mutate_bytes, ".data", 0, XOR, 1 },
	{ "tdata-byte", mutate_bytes, ".tdata", 0, XOR, 1 },
	{ "interp-byte", mutate_bytes, ".interp", 0, XOR, 1 },
	{ "dt-init", mutate_dynamic, NULL, DT_INIT, ADD, 4 },
	{ "dt-fini", mutate_dynamic, NULL, DT_FINI, ADD, 4 },
	{ "dt-value", mutate_dynamic, NULL, 0, ADD, 1 },
	{ "dt-tag", mutate_dynamic_tags, NULL, 0, XOR, 1 },
	{ "entry-point", mutate_ehdr, NULL, EHDR(e_entry), ADD, 1 },
	{ "fde-begin", mutate_fdes, NULL, FDE_BEGIN, ADD, 1 },
	{ "fde-range", mutate_fdes, NULL, FDE_RANGE, ADD, 1 },
	{ "fde-range-zero", mutate_fdes, NULL, FDE_RANGE, ZERO, 0 },
	{ "fde-rules", mutate_fdes, NULL, FDE_INSN, ADD, 1 },
	{ "fde-cie", mutate_fdes, NULL, FDE_CIE, ADD, 8 },
	{ "fde-lsda", mutate_fdes, NULL, FDE_LSDA, ADD, 2 },
	{ "fde-lsda-none", mutate_fdes, NULL, FDE_LSDA, ZERO, 0 },
	{ "fde-length", mutate_fdes, NULL, FDE_LENGTH, ADD, 4 },
	{ "fde-ends-table", mutate_fdes, NULL, FDE_LENGTH, ZERO, 0 },
	{ "cie-rules", mutate_cies, NULL, 0, ADD, 1 },
	{ "cie-personality", mutate_cies, NULL, 1, ADD, 8 },
	{ "cie-data-alignment", mutate_cies, NULL, 2, XOR, 1 },
	{ "fde-augmentation-length", mutate_fde_lengths, NULL, 0, XOR, 1 },
	{ "frame-end", mutate_frame_end, NULL, 0, ADD, 4 },
	{ "lsda-site-start", mutate_lsda_sites, NULL, 0, XOR, 1 },
	{ "lsda-site-length", mutate_lsda_sites, NULL, 1, XOR, 1 },
	{ "lsda-landing-pad", mutate_lsda_sites, NULL, 2, XOR, 1 },
	{ "lsda-action", mutate_lsda_sites, NULL, 3, XOR, 2 },
	{ "lsda-no-action", mutate_lsda_sites, NULL, 3, ZERO, 0 },
	{ "lsda-byte", mutate_lsda_bytes, NULL, 0, XOR, 1 },
	{ "lsda-type", mutate_lsda_types, NULL, 0, ADD, 8 },
	{ "lsda-types-swapped", mutate_lsda_types, NULL, 0, SWAP, 0 },
	{ "frame-hdr-address", mutate_frame_hdr, NULL, 0, ADD, 1 },
	{ "frame-hdr-record", mutate_frame_hdr, NULL, 4, ADD, 4 },
	{ "frame-hdr-swapped", mutate_frame_hdr_pairs, NULL, 0, SWAP, 0 },
	{ "frame-hdr-pointer", mutate_frame_hdr, NULL, -4, ADD, 4 },
	{ "frame-hdr-count", mutate_frame_hdr, NULL, -8, ADD, -1 },
	{ "symbol-value", mutate_sym_values, ".symtab", SYM_FUNC, ADD, 1 },
	{ "symbol-value-copied", mutate_sym_values, ".symtab", SYM_FUNC, COPY, 0 },
	{ "symbol-size", mutate_sym_sizes, ".symtab", SYM_FUNC, ADD, 1 },
	{ "folded-symbol-value", mutate_sym_values, ".symtab", SYM_FOLDED, ADD, 2 },
	{ "folded-symbol-size", mutate_sym_sizes, ".symtab", SYM_FOLDED, ADD, 16 },
	{ "symbol-type", mutate_sym_infos, ".symtab", SYM_ANY, XOR, 1 },
	{ "symbol-binding", mutate_sym_infos, ".symtab", SYM_ANY, XOR, 0x20 },
	{ "symbol-visibility", mutate_sym_others, ".symtab", SYM_ANY, XOR, 2 },
	{ "symbol-name", mutate_sym_names, ".symtab", SYM_ANY, ADD, 1 },
	{ "symbol-section", mutate_sym_shndx, ".symtab", SYM_FUNC, ADD, 1 },
	{ "symbols-swapped", mutate_sym_whole, ".symtab", SYM_FUNC, SWAP, 0 },
	{ "data-symbol-value", mutate_sym_values, ".symtab", SYM_OBJECT, ADD, 8 },
	{ "strtab-byte", mutate_bytes, ".strtab", 0, XOR, 1 },
	{ "dynsym-value", mutate_sym_values, ".dynsym", SYM_FUNC, ADD, 2 },
	{ "dynsym-size", mutate_sym_sizes, ".dynsym", SYM_FUNC, ADD, 1 },
	{ "dynsym-type", mutate_sym_infos, ".dynsym", SYM_FUNC, XOR, 2 },
	{ "dynsym-name", mutate_sym_names, ".dynsym", SYM_ANY, ADD, 1 },
	{ "dynsym-section", mutate_sym_shndx, ".dynsym", SYM_ANY, ADD, 1 },
	{ "dynsym-undefined", mutate_sym_shndx, ".dynsym", SYM_FUNC, ZERO, 0 },
	{ "stale-symbol-undefined", mutate_sym_stale, NULL, 0, ZERO, 0 },
	{ "stale-symbol-section", mutate_sym_stale, NULL, 0, ADD, 1 },
	{ "dynstr-byte", mutate_bytes, ".dynstr", 0, XOR, 1 },
	{ "gnu-hash-byte", mutate_bytes, ".gnu.hash", 0, XOR, 1 },
	{ "version-byte", mutate_bytes, ".gnu.version", 0, XOR, 1 },
	{ "version-need-byte", mutate_bytes, ".gnu.version_r", 0, XOR, 1 },
	{ "symbol-zero", mutate_null_symbol, ".symtab", 0, XOR, 1 },
	{ "dynsym-zero", mutate_null_symbol, ".dynsym", 0, XOR, 1 },
	{ "kept-relocation-addend", mutate_relas, ".rela.text", RELA(r_addend), ADD, 1 },
	{ "kept-relocation-type", mutate_relas, ".rela.text", RELA(r_info), XOR, 1 },
	{ "kept-relocation-symbol", mutate_relas, ".rela.text", RELA(r_info), ADD,
	  INT64_C(1) << 32 },
	{ "kept-relocation-place", mutate_relas, ".rela.text", RELA(r_offset), ADD, 1 },
	{ "kept-init-relocation", mutate_relas, ".rela.init", RELA(r_addend), ADD, 1 },
	{ "kept-probe-place", mutate_relas, ".rela.note.stapsdt", RELA(r_offset), ADD, 8 },
	{ "kept-probe-addend", mutate_relas, ".rela.note.stapsdt", RELA(r_addend), ADD, 1 },
	{ "load-offset", mutate_phdrs, NULL, PHDR(PT_LOAD, p_offset), ADD, 4096 },
	{ "load-offset-by-one", mutate_phdrs, NULL, PHDR(PT_LOAD, p_offset), ADD, 1 },
	{ "load-address", mutate_phdrs, NULL, PHDR(PT_LOAD, p_vaddr), ADD, 4096 },
	{ "load-file-size", mutate_phdrs, NULL, PHDR(PT_LOAD, p_filesz), ADD, -16 },
	{ "load-memory-size", mutate_phdrs, NULL, PHDR(PT_LOAD, p_memsz), ADD, -16 },
	{ "load-protection", mutate_phdrs, NULL, PHDR(PT_LOAD, p_flags), XOR, PF_W },
	{ "load-not-executable", mutate_phdrs, NULL, PHDR(PT_LOAD, p_flags), XOR, PF_X },
	{ "load-memory-grown", mutate_phdrs, NULL, PHDR(PT_LOAD, p_memsz), ADD, 8 },
	{ "load-physical-address", mutate_phdrs, NULL, PHDR(PT_LOAD, p_paddr), ADD, 4096 },
	{ "load-alignment-less", mutate_phdrs, NULL, PHDR(PT_LOAD, p_align), XOR, 0x1000 | 0x800 },
	{ "interp-behind-load", mutate_phdr_order, NULL, 0, SWAP, 0 },
	{ "stack-offset", mutate_phdrs, NULL, PHDR(PT_GNU_STACK, p_offset), ADD, 4096 },
	{ "load-alignment", mutate_phdrs, NULL, PHDR(PT_LOAD, p_align), XOR, 0x1000 | 0x10 },
	{ "load-type", mutate_phdrs, NULL, PHDR(PT_LOAD, p_type), ZERO, 0 },
	{ "dynamic-segment", mutate_phdrs, NULL, PHDR(PT_DYNAMIC, p_vaddr), ADD, 16 },
	{ "interp-segment", mutate_phdrs, NULL, PHDR(PT_INTERP, p_offset), ADD, 1 },
	{ "frame-segment", mutate_phdrs, NULL, PHDR(PT_GNU_EH_FRAME, p_vaddr), ADD, 4 },
	{ "frame-segment-size", mutate_phdrs, NULL, PHDR(PT_GNU_EH_FRAME, p_memsz), ADD, -8 },
	{ "relro-size", mutate_phdrs, NULL, PHDR(PT_GNU_RELRO, p_memsz), ADD, -4096 },
	{ "tls-size", mutate_phdrs, NULL, PHDR(PT_TLS, p_memsz), ADD, 8 },
	{ "tls-alignment", mutate_phdrs, NULL, PHDR(PT_TLS, p_align), ADD, 8 },
	{ "stack-protection", mutate_phdrs, NULL, PHDR(PT_GNU_STACK, p_flags), XOR, PF_X },
	{ "note-segment", mutate_phdrs, NULL, PHDR(PT_NOTE, p_offset), ADD, 4 },
	{ "phdr-segment", mutate_phdrs, NULL, PHDR(PT_PHDR, p_memsz), ADD, 56 },
	{ "file-type", mutate_ehdr, NULL, EHDR(e_type), XOR, 1 },
	{ "file-machine", mutate_ehdr, NULL, EHDR(e_machine), ADD, 1 },
	{ "file-flags", mutate_ehdr, NULL, EHDR(e_flags), ADD, 1 },
	{ "program-header-count", mutate_ehdr, NULL, EHDR(e_phnum), ADD, -1 },
	{ "program-header-offset", mutate_ehdr, NULL, EHDR(e_phoff), ADD, 8 },
	{ "section-header-count", mutate_ehdr, NULL, EHDR(e_shnum), ADD, -1 },
	{ "section-header-offset", mutate_ehdr, NULL, EHDR(e_shoff), ADD, 8 },
	{ "section-names", mutate_ehdr, NULL, EHDR(e_shstrndx), ADD, -1 },
	{ "section-address", mutate_shdrs, "", SHDR(sh_addr), ADD, 16 },
	{ "section-offset", mutate_shdrs, "", SHDR(sh_offset), ADD, 16 },
	{ "section-size", mutate_shdrs, "", SHDR(sh_size), ADD, -8 },
	{ "section-flags", mutate_shdrs, "", SHDR(sh_flags), XOR, SHF_WRITE },
	{ "section-type", mutate_shdrs, "", SHDR(sh_type), ADD, 1 },
	{ "section-link", mutate_shdrs, ".dynsym", SHDR(sh_link), ADD, 1 },
	{ "section-info", mutate_shdrs, ".symtab", SHDR(sh_info), ADD, 1 },
	{ "section-name", mutate_shdrs, "", SHDR(sh_name), ADD, 1 },
	{ "section-alignment", mutate_shdrs, "", SHDR(sh_addralign), ADD, 1 },
	{ "section-zero", mutate_null_section, NULL, 0, XOR, 1 },
	{ "section-link-of-none", mutate_shdrs, ".text", SHDR(sh_link), ADD, 1 },
	{ "section-offset-of-none", mutate_shdrs, ".bss", SHDR(sh_offset), ADD, 16 },
	{ "section-offset-of-thread-zeros", mutate_shdrs, ".tbss", SHDR(sh_offset), ADD, 16 },
	{ "section-offset-of-empty", mutate_shdrs, ".tm_clone_table", SHDR(sh_offset), ADD, 16 },
	{ "debug-section-flags", mutate_shdrs, ".debug_info", SHDR(sh_flags), XOR, SHF_WRITE },
	{ "debug-section-address", mutate_shdrs, ".debug_line", SHDR(sh_addr), ADD, 16 },
	{ "debug-section-alignment", mutate_shdrs, ".debug_info", SHDR(sh_addralign), ADD, 1 },
	{ "added-section-link", mutate_shdrs, ".debug_icfold", SHDR(sh_link), ADD, 1 },
	{ "compression-header", mutate_compression, ".debug_icfold", 0, XOR, 1 },
	{ "byte-between-sections", mutate_gaps, NULL, 0, XOR, 1 },
	{ "truncated", NULL, NULL, 0, CUT, 64 },
	{ "truncated-half", NULL, NULL, 0, CUT, 0 },
	{ "tail-byte", mutate_tail, NULL, 0, XOR, 1 },
	{ "appended", NULL, NULL, 0, APPEND, 64 },
	{ "appended-byte", NULL, NULL, 0, APPEND, 1 },
	{ "comment-byte", mutate_bytes, ".comment", 0, XOR, 1 },
	{ "property-note", mutate_bytes, ".note.gnu.property", 0, XOR, 1 },
	{ "abi-note", mutate_bytes, ".note.ABI-tag", 0, XOR, 1 },
	{ "probe-note", mutate_bytes, ".note.stapsdt", 0, XOR, 1 },
	{ "map-sections", mutate_note_part, NULL, NOTE_SECTIONS, XOR, 1 },
	{ "map-units", mutate_note_part, NULL, NOTE_MAP, XOR, 1 },
	{ "map-groups", mutate_note_part, NULL, NOTE_GROUPS, XOR, 1 },
	{ "map-sequences", mutate_note_sequences, NULL, 0, ADD, 1 },
	{ "map-rows-swapped", mutate_note_rows, NULL, 0, SWAP, 0 },
	{ "map-slots", mutate_note_part, NULL, NOTE_VSLOTS, XOR, 1 },
	{ "map-overlay", mutate_note_part, NULL, NOTE_OVERLAY, XOR, 1 },
	{ "map-names", mutate_note_part, NULL, NOTE_STRINGS, XOR, 1 },
	{ "map-removed", mutate_note_part, NULL, NOTE_REMOVED, XOR, 1 },
	{ "map-header", mutate_note_header_bytes, NULL, 0, XOR, 1 },
	{ "map-magic", mutate_note_header, NULL, 0 | 8 << 8, XOR, 1 },
	{ "map-artificial-unit", mutate_note_header, NULL, 16 | 8 << 8, ADD, 1 },
	{ "map-trap-byte", mutate_note_header, NULL, NOTE_TRAP_BYTE | 8 << 8, ADD, -16 },
	{ "map-thunks", mutate_note_header, NULL, 32 | 8 << 8, ADD, 6 },
	{ "die-low-pc", mutate_attrs, NULL, ATTR(DW_AT_low_pc, DW_FORM_addr, 8), ADD, 1 },
	{ "die-high-pc", mutate_attrs, NULL, ATTR(DW_AT_high_pc, DW_FORM_data8, 8), ADD, 1 },
	{ "die-entry-pc", mutate_attrs, NULL, ATTR(DW_AT_entry_pc, DW_FORM_addr, 8), ADD, 1 },
	{ "die-return-pc", mutate_attrs, NULL, ATTR(DW_AT_call_return_pc, DW_FORM_addr, 8), ADD,
	  1 },
	{ "die-linkage-name", mutate_attrs, NULL, ATTR(DW_AT_linkage_name, DW_FORM_strp, 4), ADD,
	  1 },
	{ "die-call-file", mutate_attrs, NULL, ATTR(DW_AT_call_file, 0, 1), XOR, 1 },
	{ "die-name", mutate_attrs, NULL, ATTR(DW_AT_name, DW_FORM_strp, 4), ADD, 1 },
	{ "die-decl-line", mutate_attrs, NULL, ATTR(DW_AT_decl_line, 0, 1), XOR, 1 },
	{ "die-call-line", mutate_attrs, NULL, ATTR(DW_AT_call_line, 0, 1), XOR, 1 },
	{ "die-type", mutate_attrs, NULL, ATTR(DW_AT_type, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-origin", mutate_attrs, NULL, ATTR(DW_AT_abstract_origin, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-call-origin", mutate_attrs, NULL, ATTR(DW_AT_call_origin, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-sibling", mutate_attrs, NULL, ATTR(DW_AT_sibling, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-member-place", mutate_attrs, NULL, ATTR(DW_AT_data_member_location, 0, 1), XOR, 1 },
	{ "die-constant", mutate_attrs, NULL, ATTR(DW_AT_const_value, 0, 1), XOR, 1 },
	{ "die-number", mutate_numbers, NULL, 0, XOR, 1 },
	{ "die-byte-size", mutate_attrs, NULL, ATTR(DW_AT_byte_size, 0, 1), XOR, 1 },
	{ "die-ranges", mutate_attrs, NULL, ATTR(DW_AT_ranges, DW_FORM_sec_offset, 4), ADD, 1 },
	{ "die-location-list", mutate_attrs, NULL, ATTR(DW_AT_location, DW_FORM_sec_offset, 4), ADD,
	  1 },
	{ "die-line-table", mutate_attrs, NULL, ATTR(DW_AT_stmt_list, DW_FORM_sec_offset, 4), ADD,
	  1 },
	{ "die-line-table-copied", mutate_attrs, NULL, ATTR(DW_AT_stmt_list, DW_FORM_sec_offset, 4),
	  COPY, 0 },
	{ "die-macros", mutate_attrs, NULL, ATTR(DW_AT_macros, DW_FORM_sec_offset, 4), ADD, 1 },
	{ "die-type-copied", mutate_attrs, NULL, ATTR(DW_AT_type, DW_FORM_ref4, 4), COPY, 0 },
	{ "die-name-copied", mutate_attrs, NULL, ATTR(DW_AT_name, DW_FORM_strp, 4), COPY, 0 },
	{ "die-index-copied", mutate_attrs, NULL, ATTR(DW_AT_name, DW_FORM_strx1, 1), COPY, 0 },
	{ "die-signature", mutate_attrs, NULL, ATTR(DW_AT_type, DW_FORM_ref_sig8, 8), COPY, 0 },
	{ "die-address-index", mutate_attrs, NULL, ATTR(DW_AT_low_pc, DW_FORM_addrx, 1), ADD, 1 },
	{ "die-high-pc-copied", mutate_attrs, NULL, ATTR(DW_AT_high_pc, DW_FORM_data8, 8), COPY,
	  0 },
	{ "string-base", mutate_attrs, NULL, ATTR(DW_AT_str_offsets_base, 0, 4), ADD, 4 },
	{ "address-base", mutate_attrs, NULL, ATTR(DW_AT_addr_base, 0, 4), ADD, 8 },
	{ "range-base", mutate_attrs, NULL, ATTR(DW_AT_rnglists_base, 0, 4), ADD, 4 },
	{ "location-list-base", mutate_attrs, NULL, ATTR(DW_AT_loclists_base, 0, 4), ADD, 4 },
	{ "unit-header", mutate_unit_headers, ".debug_info", 0, XOR, 1 },
	{ "type-unit-header", mutate_unit_headers, ".debug_types", 0, XOR, 1 },
	{ "die-expression", mutate_expressions, NULL, 0, XOR, 4 },
	{ "die-entry-value", mutate_entry_values, NULL, 0, XOR, 1 },
	{ "range-list", mutate_pointed_at, ".debug_rnglists",
	  ATTR(DW_AT_ranges, DW_FORM_sec_offset, 1), ADD, 1 },
	{ "range-bounds", mutate_pointed_at, ".debug_rnglists",
	  ATTR(DW_AT_ranges, DW_FORM_sec_offset, 10), ADD, 1 },
	{ "range-list-4", mutate_pointed_at, ".debug_ranges",
	  ATTR(DW_AT_ranges, DW_FORM_sec_offset, 0), ADD, 1 },
	{ "location-list", mutate_pointed_at, ".debug_loclists",
	  ATTR(DW_AT_location, DW_FORM_sec_offset, 1), ADD, 1 },
	{ "location-base", mutate_pointed_at, ".debug_loclists",
	  ATTR(DW_AT_location, DW_FORM_sec_offset, 8), ADD, 1 },
	{ "location-bounds", mutate_pointed_at, ".debug_loclists",
	  ATTR(DW_AT_location, DW_FORM_sec_offset, 10), ADD, 1 },
	{ "location-base-4", mutate_pointed_at, ".debug_loc",
	  ATTR(DW_AT_location, DW_FORM_data4, 4), XOR, 1 },
	{ "location-empty-start", mutate_empty_entries, NULL, 0, XOR, INT64_C(1) << 31 },
	{ "location-empty-operation", mutate_empty_entries, NULL, 1, XOR, 1 },
	{ "location-operation", mutate_pointed_at, ".debug_loclists",
	  ATTR(DW_AT_location, DW_FORM_sec_offset, 11), XOR, 1 },
	{ "location-views", mutate_pointed_at, ".debug_loclists",
	  ATTR(DW_AT_GNU_locviews, DW_FORM_sec_offset, 0), ADD, 1 },
	{ "abbreviation", mutate_bytes, ".debug_abbrev", 0, XOR, 1 },
	{ "abbreviation-children", mutate_children, NULL, 0, XOR, 0x40 },
	{ "debug-string", mutate_bytes, ".debug_str", 0, XOR, 1 },
	{ "line-string", mutate_bytes, ".debug_line_str", 0, XOR, 1 },
	{ "line-header", mutate_line_ops, NULL, LINE_HEADER, XOR, 1 },
	{ "line-special", mutate_line_ops, NULL, LINE_SPECIAL, ADD, 1 },
	{ "line-advance-pc", mutate_line_ops, NULL, DW_LNS_advance_pc, XOR, 1 },
	{ "line-advance-line", mutate_line_ops, NULL, DW_LNS_advance_line, XOR, 1 },
	{ "line-column", mutate_line_ops, NULL, DW_LNS_set_column, XOR, 1 },
	{ "line-file", mutate_line_ops, NULL, DW_LNS_set_file, ADD, 2 },
	{ "line-is-stmt", mutate_line_ops, NULL, DW_LNS_negate_stmt, ADD, 1 },
	{ "line-address", mutate_line_ops, NULL, LINE_EXTENDED + DW_LNE_set_address, ADD, 1 },
	{ "line-discriminator", mutate_line_ops, NULL, LINE_EXTENDED + DW_LNE_set_discriminator,
	  XOR, 1 },
	{ "line-operation-length", mutate_line_ops, NULL, LINE_LENGTH, ADD, 1 },
	{ "folded-line-header", mutate_artificial_ops, NULL, LINE_HEADER, XOR, 1 },
	{ "folded-line", mutate_artificial_ops, NULL, LINE_SPECIAL, ADD, 1 },
	{ "folded-line-advance", mutate_artificial_ops, NULL, DW_LNS_advance_line, XOR, 1 },
	{ "folded-lines-swapped", mutate_artificial_ops, NULL, LINE_SPECIAL, SWAP, 0 },
	{ "folded-line-copied", mutate_artificial_ops, NULL, LINE_SPECIAL, COPY, 0 },
	{ "folded-column", mutate_artificial_ops, NULL, DW_LNS_set_column, XOR, 1 },
	{ "folded-file", mutate_artificial_ops, NULL, DW_LNS_set_file, XOR, 1 },
	{ "folded-line-hiding", mutate_artificial_ops, NULL, LINE_EXTENDED + DW_LNE_lo_user, XOR,
	  1 },
	{ "folded-line-address", mutate_artificial_ops, NULL, LINE_EXTENDED + DW_LNE_set_address,
	  ADD, 1 },
	{ "arange-address", mutate_aranges, NULL, 0, ADD, 1 },
	{ "arange-length", mutate_aranges, NULL, 1, ADD, 1 },
	{ "arange-ends", mutate_set_headers, ".debug_aranges", 0, XOR, 1 },
	{ "range-list-header", mutate_set_headers, ".debug_rnglists", 12, XOR, 1 },
	{ "location-list-header", mutate_set_headers, ".debug_loclists", 12, XOR, 1 },
	{ "address-header", mutate_set_headers, ".debug_addr", 8, XOR, 1 },
	{ "debug-address", mutate_addresses, NULL, 0, ADD, 1 },
	{ "dcall-site", mutate_call_table, ".debug_dcall", 0, ADD, 1 },
	{ "dcall-callee", mutate_call_table, ".debug_dcall", 1, XOR, 1 },
	{ "dcall-caller", mutate_call_table, ".debug_dcall", 2, XOR, 1 },
	{ "dcall-callee-copied", mutate_call_table, ".debug_dcall", 3, COPY, 0 },
	{ "dcall-callees-swapped", mutate_call_table, ".debug_dcall", 3, SWAP, 0 },
	{ "dcall-entry-copied", mutate_call_table, ".debug_dcall", 4, COPY, 0 },
	{ "vcall-site", mutate_call_table, ".debug_vcall", 0, ADD, 1 },
	{ "vcall-slot", mutate_call_table, ".debug_vcall", 1, XOR, 1 },
	{ "vcall-entry-copied", mutate_call_table, ".debug_vcall", 4, COPY, 0 },
	{ "gdb-index-start", mutate_gdb_index, NULL, 0, ADD, 1 },
	{ "gdb-index-end", mutate_gdb_index, NULL, 8, ADD, 1 },
	{ "gdb-index-unit", mutate_gdb_index, NULL, 16, XOR, 1 },
	{ "gdb-index-unit-list", mutate_gdb_part, NULL, 0, ADD, 1 },
	{ "gdb-index-type-units", mutate_gdb_part, NULL, 1, ADD, 1 },
	{ "gdb-index-symbols", mutate_gdb_part, NULL, 3, ADD, 1 },
	{ "gdb-index-pool", mutate_gdb_pool, NULL, 0, XOR, 1 },
	{ "names-byte", mutate_bytes, ".debug_names", 0, XOR, 1 },
	{ "macro-byte", mutate_bytes, ".debug_macro", 0, XOR, 1 },
	{ "string-offset", mutate_bytes, ".debug_str_offsets", 0, XOR, 1 },
	/* The number of a packed field, one more, in the units of the field; another register. */
	{ "a64-page", mutate_a64_insns, NULL, A64_PAGE, ADD, 1 << 5 },
	{ "a64-page-by-one", mutate_a64_insns, NULL, A64_PAGE, XOR, 1 << 29 },
	{ "a64-page-copied", mutate_a64_insns, NULL, A64_PAGE, COPY, 0 },
	{ "a64-page-register", mutate_a64_insns, NULL, A64_PAGE, XOR, 1 },
	{ "a64-page-near", mutate_a64_insns, NULL, A64_PAGE, XOR, INT64_C(1) << 31 },
	{ "a64-near", mutate_a64_insns, NULL, A64_NEAR, ADD, 1 << 5 },
	{ "a64-low-add", mutate_a64_insns, NULL, A64_LOW_ADD, ADD, 1 << 10 },
	{ "a64-low-add-shifted", mutate_a64_insns, NULL, A64_LOW_ADD, XOR, 1 << 22 },
	{ "a64-low-base", mutate_a64_insns, NULL, A64_LOW_ADD, XOR, 1 << 5 },
	{ "a64-low-load", mutate_a64_insns, NULL, A64_LOW_LOAD, ADD, 1 << 10 },
	{ "a64-low-size", mutate_a64_insns, NULL, A64_LOW_LOAD, XOR, 1 << 30 },
	{ "a64-low-store", mutate_a64_insns, NULL, A64_LOW_STORE, ADD, 1 << 10 },
	{ "a64-call", mutate_a64_insns, NULL, A64_CALL, ADD, 1 },
	{ "a64-call-to-jump", mutate_a64_insns, NULL, A64_CALL, XOR, INT64_C(1) << 31 },
	{ "a64-jump", mutate_a64_insns, NULL, A64_JUMP, ADD, 1 },
	{ "a64-condition", mutate_a64_insns, NULL, A64_CONDITION, ADD, 1 << 5 },
	{ "a64-other-condition", mutate_a64_insns, NULL, A64_CONDITION, XOR, 1 },
	{ "a64-zero", mutate_a64_insns, NULL, A64_ZERO, ADD, 1 << 5 },
	{ "a64-zero-inverted", mutate_a64_insns, NULL, A64_ZERO, XOR, 1 << 24 },
	{ "a64-bit", mutate_a64_insns, NULL, A64_BIT, ADD, 1 << 5 },
	{ "a64-bit-number", mutate_a64_insns, NULL, A64_BIT, XOR, 1 << 19 },
	{ "a64-part", mutate_a64_insns, NULL, A64_PART, ADD, 1 << 5 },
	{ "a64-literal", mutate_a64_insns, NULL, A64_LITERAL, ADD, 1 << 5 },
	{ "a64-literal-size", mutate_a64_insns, NULL, A64_LITERAL, XOR, 1 << 30 },
	{ "a64-literal-copied", mutate_a64_insns, NULL, A64_LITERAL, COPY, 0 },
	{ "a64-thunk-pad", mutate_a64_pads, NULL, 0, XOR, 0xd503245f ^ 0xd503201f },
	{ "a64-mapping-value", mutate_a64_mapping, NULL, 0, ADD, 4 },
	{ "a64-mapping-names-swapped", mutate_a64_mapping, NULL, 1, SWAP, 0 },
	{ "a64-data-word", mutate_a64_mapping, NULL, 2, ADD, 1 },
	{ "a64-data-word-swapped", mutate_a64_mapping, NULL, 2, SWAP, 0 },
	{ "a64-sign-gone", mutate_a64_rules, NULL, 0x2d, ZERO, 0 },
	{ "a64-sign-with-counter", mutate_a64_rules, NULL, 0x2d, XOR, 1 },
	{ "a64-remember-gone", mutate_a64_rules, NULL, 0x0a, ZERO, 0 },
	{ "a64-restore-gone", mutate_a64_rules, NULL, 0x0b, ZERO, 0 },
};

/* Changes place I of BUF; false: the change makes no difference. */
static bool edit(const struct ctx *c, const struct kind *k, size_t i, uint8_t *buf)
{
	struct place a = c->place.data[i], b = c->place.data[(i + 1) % c->place.len];
	uint8_t *p = buf + a.off, *q = buf + b.off, keep[64];
	uint64_t v = a.size <= 8 ? elfrw_get_le(p, a.size) : 0;
	memcpy(keep, p, a.size);
	switch (k->edit) {
	case ADD: elfrw_put_le(p, v + (uint64_t)k->by, a.size); break;
	case MOVE: elfrw_put_le(p, v + a.moved, a.size); break;
	case BOTH: elfrw_put_le(p, a.value, a.size); return true;
	case XOR: elfrw_put_le(p, v ^ (uint64_t)k->by, a.size); break;
	case ZERO: memset(p, 0, a.size); break;
	case COPY: memcpy(p, q, a.size); break;
	case RESTORE:
		for (uint32_t n = 0; n < c->out.n_phdrs; n++) {
			const Elf64_Phdr *ph = &c->out.phdr[n];
			if (ph->p_type != PT_LOAD || a.off < ph->p_offset ||
			    a.off - ph->p_offset + a.size > ph->p_filesz)
				continue;
			const uint8_t *was = elfrw_image_at(
				&c->in, ph->p_vaddr + (a.off - ph->p_offset), a.size);
			if (was)
				memcpy(p, was, a.size);
		}
		break;
	case SWAP:
		memcpy(p, q, a.size);
		memcpy(q, keep, a.size);
		break;
	default: return false;
	}
	return memcmp(keep, p, a.size) != 0;
}

static void write_file(const char *path, const uint8_t *p, size_t size)
{
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(p, 1, size, f) != size || fclose(f) != 0)
		mutate_die("cannot write");
}

/* Writes NEW.in: the input with the field that belongs to place A. */
static void write_input(const struct ctx *c, const struct place *a, const char *new)
{
	char path[4096];
	uint8_t *buf = malloc(c->in.size);
	if (!buf || (size_t)snprintf(path, sizeof path, "%s.in", new) >= sizeof path)
		mutate_die("out of memory");
	memcpy(buf, c->in.base, c->in.size);
	elfrw_put_le(buf + a->in_off, a->in_value, a->size);
	write_file(path, buf, c->in.size);
	free(buf);
}

int main(int argc, char **argv)
{
	struct ctx c = { 0 };
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
			puts(kinds[i].name);
		return 0;
	}
	if (argc != 7)
		mutate_die("usage: mutate KIND I N IN OUT NEW");
	const struct kind *k = kinds;
	while (k < kinds + sizeof kinds / sizeof *kinds && strcmp(k->name, argv[1]) != 0)
		k++;
	if (k == kinds + sizeof kinds / sizeof *kinds)
		mutate_die("no such kind");
	size_t index = strtoul(argv[2], NULL, 10), of = strtoul(argv[3], NULL, 10);
	mutate_check(elfrw_image_open(&c.in, argv[4]));
	mutate_check(elfrw_image_open(&c.out, argv[5]));
	struct dwr_sections secs; /* as long as the note */
	mutate_check(dwr_sections_init(&secs, &c.out));
	mutate_check(dwr_sections_load(&secs, DWR_ICFOLD));
	const struct dwr_section *note = &secs.sec[DWR_ICFOLD];
	c.has_note = note->size != 0;
	if (c.has_note)
		mutate_check(dwr_icfold_read(&c.note, note->data, note->size));
	mutate_check(dwr_eh_frame_read(&c.cfi, &c.out, 8));
	c.name = k->section;
	c.arg = k->arg;
	size_t size = c.out.size;
	uint8_t *buf = calloc(1, size + 4096);
	if (!buf || !of || index >= of)
		mutate_die("bad arguments");
	memcpy(buf, c.out.base, size);
	if (k->edit == CUT)
		size -= k->by ? (size_t)k->by * (index + 1) : size / 2 + index * 1000;
	else if (k->edit == APPEND)
		size += (size_t)k->by * (index + 1);
	else {
		k->find(&c);
		if (!c.place.len)
			return 3;
		size_t i = (2 * index + 1) * c.place.len / (2 * of), tries = 0;
		while (!edit(&c, k, i, buf)) {
			memcpy(buf, c.out.base, size);
			i = (i + 1) % c.place.len;
			if (++tries > 200 || tries > c.place.len)
				return 3;
		}
		printf("%s: %zu of %zu places, file offset 0x%llx\n", k->name, i, c.place.len,
		       (unsigned long long)c.place.data[i].off);
		if (k->edit == BOTH)
			write_input(&c, &c.place.data[i], argv[6]);
	}
	write_file(argv[6], buf, size);
	return 0;
}
