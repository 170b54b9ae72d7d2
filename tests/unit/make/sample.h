/* sample.h: a program of all kinds of sections and segments, for the tests of what is written. */
#ifndef TESTS_UNIT_MAKE_SAMPLE_H
#define TESTS_UNIT_MAKE_SAMPLE_H
#include "elfrw/output.h"
#include "tests/unit/make/elf.h"

/* Sections of the sample, by index. */
enum {
	INTERP = 1,
	NOTE_A,
	NOTE_B,
	HASH,
	INIT,
	TEXT,
	FINI,
	RODATA,
	EH_FRAME,
	EXCEPT,
	DATA,
	BSS,
	COMMENT,
	DEBUG,
	RELA,
	RELA_DEBUG,
	SYMTAB,
	STRTAB,
	SHSTRTAB
};

/* Variants of the sample. */
#define SLACK      1 /* there is room behind the program headers */
#define NO_NOTES   2 /* nothing behind the program headers may move; no interpreter */
#define FIRST      4 /* the read-only data is in the first segment, with the headers */
#define BIG        8 /* segments are aligned to 2 MiB */
#define ONE_STRTAB 16
#define LONG_NOTE  32 /* what could move is longer than the hole */

struct sample {
	struct elfrw_image img;
	struct elfrw_output out;
	uint64_t text, ro, data; /* where those segments begin */
};

/* Where the sections of a sample begin, and how long the one is that may not fit. */
struct sample_places {
	uint64_t notes, note_b;
	uint64_t step; /* the segments' alignment */
};

enum { SAMPLE_PHDRS = 10, SAMPLE_RO = 0x5b00 };

static inline void sample_sections(struct sample *s, struct be *b, unsigned how,
				   const struct sample_places *p)
{
	uint64_t at = p->notes, step = p->step;
	uint32_t note = how & NO_NOTES ? SHT_PROGBITS : SHT_NOTE, code = SHF_ALLOC | SHF_EXECINSTR;
	be_filled(b, how & NO_NOTES ? ".other" : ".interp", SHT_PROGBITS, SHF_ALLOC, at, 0x1c, 1);
	be_filled(b, ".note.a", note, SHF_ALLOC, at + 0x1c, 0x20, 2);
	be_filled(b, ".note.b", note, SHF_ALLOC, at + 0x3c, p->note_b, 3);
	be_filled(b, ".hash", SHT_PROGBITS, SHF_ALLOC, at + 0x3c + p->note_b, 0x40, 4);
	s->ro = how & FIRST ? BE_BASE + 0x800 + (p->note_b & 0xf000) : 0;
	s->text = BE_BASE + (how & FIRST ? 0xb000 : how & LONG_NOTE ? 0x4000 : step);
	be_filled(b, ".init", SHT_PROGBITS, code, s->text, 0x10, 5);
	be_filled(b, ".text", SHT_PROGBITS, code, s->text + 0x10, 0x5ff0, 6);
	be_filled(b, ".fini", SHT_PROGBITS, code, s->text + 0x6000, 0x20, 7);
	if (!s->ro)
		s->ro = (s->text + 0x6020 + step - 1) / step * step;
	be_filled(b, ".rodata", SHT_PROGBITS, SHF_ALLOC, s->ro, 0x800, 8);
	be_filled(b, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, s->ro + 0x800, 0x5000, 9);
	be_filled(b, ".gcc_except_table", SHT_PROGBITS, SHF_ALLOC, s->ro + 0x5800, 0x300, 10);
	uint64_t before = how & FIRST ? s->text + 0x6020 : s->ro + SAMPLE_RO;
	s->data = (before + 2 * step - 1) / step * step + 0xb00;
	be_filled(b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, s->data, 0x100, 11);
	be_section(b, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, s->data + 0x100, NULL, 0x1000);
	be_filled(b, ".comment", SHT_PROGBITS, 0, 0, 40, 12);
	be_filled(b, ".debug", SHT_PROGBITS, 0, 0, 77, 13);
}

static inline void sample_segments(const struct sample *s, struct be *b, unsigned how,
				   const struct sample_places *p)
{
	uint64_t align = p->step, table = SAMPLE_PHDRS * sizeof(Elf64_Phdr),
		 first = (how & FIRST ? s->ro + SAMPLE_RO : p->notes + 0x7c + p->note_b) - BE_BASE;
	be_segment(b, PT_PHDR, PF_R, BE_BASE + sizeof(Elf64_Ehdr), table, table, 8);
	be_segment(b, how & NO_NOTES ? PT_NULL : PT_INTERP, PF_R, p->notes, 0x1c, 0x1c, 1);
	be_segment(b, PT_LOAD, PF_R, BE_BASE, first, first, align);
	be_segment(b, PT_LOAD, PF_R | PF_X, s->text, 0x6020, 0x6020, align);
	if (how & FIRST)
		be_segment(b, PT_NULL, 0, 0, 0, 0, 0);
	else
		be_segment(b, PT_LOAD, PF_R, s->ro, SAMPLE_RO, SAMPLE_RO, align);
	be_segment(b, PT_LOAD, PF_R | PF_W, s->data, 0x100, 0x1100, align);
	be_segment(b, how & NO_NOTES ? PT_NULL : PT_NOTE, PF_R, p->notes + 0x1c, 0x20 + p->note_b,
		   0x20 + p->note_b, 4);
	be_segment(b, PT_GNU_EH_FRAME, PF_R, s->ro + 0x800, 0x5000, 0x5000, 4);
	be_segment(b, PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 16);
	be_segment(b, PT_GNU_RELRO, PF_R, s->data, 0x100, 0x100, 1);
	assert_int_equal(b->n_ph, SAMPLE_PHDRS);
}

static inline void sample_symbols(const struct sample *s, struct be *b, uint64_t notes)
{
	be_symbol(b, "in_note", notes + 0x40, 0, ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), NOTE_B);
	uint32_t f =
		be_symbol(b, "f", s->text + 0x10, 16, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), TEXT);
	be_symbol(b, "in_debug", 0, 0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), DEBUG);
	be_symbol(b, "in_comment", 0, 0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), COMMENT);
	be_symbol(b, "absolute", 42, 0, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), SHN_ABS);
	be_reloc(b, TEXT, s->text + 0x20, R_X86_64_PC32, f, -4);
	be_reloc(b, DEBUG, 8, R_X86_64_64, f, 0);
}

static inline void sample_open(struct sample *s, unsigned how)
{
	struct be b;
	struct sample_places p = {
		.notes = BE_BASE + sizeof(Elf64_Ehdr) + SAMPLE_PHDRS * sizeof(Elf64_Phdr) +
			 (how & SLACK ? 0x100 : 0),
		.note_b = how & LONG_NOTE ? 0x3024 : 0x24,
		.step = how & BIG ? 0x200000 : 0x1000,
	};
	be_init(&b, ET_EXEC);
	b.one_strtab = how & ONE_STRTAB;
	sample_sections(s, &b, how, &p);
	b.entry = s->text + 0x10;
	sample_segments(s, &b, how, &p);
	sample_symbols(s, &b, p.notes);
	size_t size;
	uint8_t *bytes = be_build(&b, &size);
	assert_int_equal(b.symtab, SYMTAB);
	be_ok(be_open(bytes, size, &s->img));
	free(bytes);
	be_deinit(&b);
	be_ok(elfrw_output_init(&s->out, &s->img));
}

static inline void sample_close(struct sample *s)
{
	elfrw_output_deinit(&s->out);
	elfrw_image_close(&s->img);
}
#endif
