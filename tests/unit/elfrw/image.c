/* image.c: what elfrw_image_open() accepts, what it refuses and with what words, and the look-ups
 * of an image. */
#include "tests/unit/make/elf.h"
#include "elfrw/arch/arch.h"
#include "elfrw/note.h"
#include <sys/mman.h>
#include <sys/stat.h>

enum { TEXT = 1, RODATA, DATA, BSS, TBSS, COMMENT, RELA, SYMTAB, STRTAB, SHSTRTAB, N_SECTIONS };

/* A program with one section of each sort; the sections have the indices above. */
static uint8_t *sample(size_t *size)
{
	struct be b;
	be_init(&b, ET_EXEC);
	b.entry = 0x401000;
	be_filled(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000, 0x40, 1);
	be_filled(&b, ".rodata", SHT_PROGBITS, SHF_ALLOC, 0x402000, 0x30, 2);
	be_filled(&b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x403000, 0x20, 3);
	be_section(&b, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0x403020, NULL, 0x100);
	be_section(&b, ".tbss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, 0x403000, NULL,
		   0x1000);
	be_filled(&b, ".comment", SHT_PROGBITS, 0, 0, 48, 4);
	be_segment(&b, PT_LOAD, PF_R, BE_BASE, 0x200, 0x200, 0x1000);
	be_segment(&b, PT_LOAD, PF_R | PF_X, 0x401000, 0x40, 0x40, 0x1000);
	be_segment(&b, PT_LOAD, PF_R, 0x402000, 0x30, 0x30, 0x1000);
	be_segment(&b, PT_LOAD, PF_R | PF_W, 0x403000, 0x20, 0x120, 0x1000);
	be_segment(&b, PT_NOTE, PF_R, 0x402000, 0x10, 0x10, 4);
	uint32_t sym = be_symbol(&b, "f", 0x401000, 16, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), TEXT);
	be_reloc(&b, TEXT, 0x401008, R_X86_64_PC32, sym, -4);
	uint8_t *f = be_build(&b, size);
	assert_int_equal(b.symtab, SYMTAB);
	assert_int_equal(b.n_sec, N_SECTIONS);
	be_deinit(&b);
	return f;
}

static void test_good(void **state)
{
	(void)state;
	size_t size;
	uint8_t *f = sample(&size);
	struct elfrw_image img;
	be_ok(be_open(f, size, &img));
	assert_int_equal(img.size, size);
	assert_memory_equal(img.base, f, size);
	assert_int_equal(img.n_sections, N_SECTIONS);
	assert_int_equal(img.n_phdrs, 5);
	assert_false(img.pic);
	assert_string_equal(img.arch->name, "x86-64");
	assert_int_equal(img.symtab, SYMTAB);
	assert_int_equal(img.dynsym, 0);
	assert_int_equal(img.dynamic, 0);
	assert_string_equal(img.section[RODATA].name, ".rodata");
	assert_string_equal(img.section[0].name, "");
	assert_null(img.section[BSS].data);
	assert_non_null(img.section[COMMENT].data);
	assert_ptr_equal(elfrw_image_section(&img, ".data"), &img.section[DATA]);
	assert_null(elfrw_image_section(&img, ".dat"));
	/* Section at an address: first and last byte, and beyond; thread-local zeros have no
	 * address. */
	assert_int_equal(elfrw_image_section_at(&img, 0x401000), TEXT);
	assert_int_equal(elfrw_image_section_at(&img, 0x40103f), TEXT);
	assert_int_equal(elfrw_image_section_at(&img, 0x401040), 0);
	assert_int_equal(elfrw_image_section_at(&img, 0x400fff), 0);
	assert_int_equal(elfrw_image_section_at(&img, 0x40311f), BSS);
	assert_int_equal(elfrw_image_section_at(&img, 0x403500), 0);
	/* Bytes at an address: whole ranges only. */
	assert_ptr_equal(elfrw_image_at(&img, 0x402000, 0x30), img.section[RODATA].data);
	assert_ptr_equal(elfrw_image_at(&img, 0x40202f, 1), img.section[RODATA].data + 0x2f);
	assert_null(elfrw_image_at(&img, 0x40202f, 2));
	assert_null(elfrw_image_at(&img, 0x402000, UINT64_MAX));
	assert_null(elfrw_image_at(&img, 0x403020, 1));
	assert_null(elfrw_image_at(&img, 0, 1));
	assert_string_equal(elfrw_image_string(&img, STRTAB, 1), "f");
	assert_string_equal(elfrw_image_string(&img, STRTAB, 2), "");
	assert_null(elfrw_image_string(&img, STRTAB, 3));
	assert_null(elfrw_image_string(&img, 0, 0));
	assert_null(elfrw_image_string(&img, N_SECTIONS, 0));
	assert_null(elfrw_image_string(&img, BSS, 0));
	/* A table that does not end in NUL is not searched for other ends. */
	struct elfrw_section table = img.section[STRTAB];
	img.section[STRTAB].data = (const uint8_t *)"\0f\0g";
	img.section[STRTAB].hdr.sh_size = 4;
	assert_null(elfrw_image_string(&img, STRTAB, 1));
	img.section[STRTAB] = table;
	/* A private copy does not change the image. */
	uint8_t *copy = elfrw_image_private_copy(&img);
	assert_non_null(copy);
	copy[0] ^= 0xff;
	assert_int_equal(img.base[0], ELFMAG0);
	munmap(copy, img.size);
	elfrw_image_close(&img);
	elfrw_image_close(&img);
	free(f);
}

struct spoil {
	uint8_t *f;
	size_t *size;
	Elf64_Ehdr *eh;
	Elf64_Phdr *ph;
	Elf64_Shdr *sh;
};

static void spoil_magic(struct spoil s)
{
	s.f[1] = 'X';
}
static void spoil_class(struct spoil s)
{
	s.eh->e_ident[EI_CLASS] = ELFCLASS32;
}
static void spoil_endian(struct spoil s)
{
	s.eh->e_ident[EI_DATA] = ELFDATA2MSB;
}
static void spoil_ident_version(struct spoil s)
{
	s.eh->e_ident[EI_VERSION] = 2;
}
static void spoil_version(struct spoil s)
{
	s.eh->e_version = 0;
}
static void spoil_rel(struct spoil s)
{
	s.eh->e_type = ET_REL;
}
static void spoil_core(struct spoil s)
{
	s.eh->e_type = ET_CORE;
}
static void spoil_type(struct spoil s)
{
	s.eh->e_type = 77;
}
static void spoil_machine(struct spoil s)
{
	s.eh->e_machine = EM_SPARC;
}
static void spoil_ehsize(struct spoil s)
{
	s.eh->e_ehsize = 52;
}
static void spoil_short(struct spoil s)
{
	*s.size = sizeof(Elf64_Ehdr) - 1;
}
static void spoil_empty(struct spoil s)
{
	*s.size = 0;
}
static void spoil_header_only(struct spoil s)
{
	*s.size = sizeof(Elf64_Ehdr);
}
static void spoil_no_phdrs(struct spoil s)
{
	s.eh->e_phnum = 0;
}
static void spoil_many_phdrs(struct spoil s)
{
	s.eh->e_phnum = PN_XNUM;
}
static void spoil_phentsize(struct spoil s)
{
	s.eh->e_phentsize = 32;
}
static void spoil_phoff(struct spoil s)
{
	s.eh->e_phoff = *s.size - 8;
}
static void spoil_phoff_wrap(struct spoil s)
{
	s.eh->e_phoff = UINT64_MAX - 8;
}
static void spoil_segment_outside(struct spoil s)
{
	s.ph[2].p_filesz = s.ph[2].p_memsz = *s.size;
}
static void spoil_segment_wrap(struct spoil s)
{
	s.ph[4].p_offset = UINT64_MAX - 3;
}
static void spoil_segment_size_wrap(struct spoil s)
{
	s.ph[4].p_filesz = UINT64_MAX - s.ph[4].p_offset + 0x100;
}
static void spoil_section_size_wrap(struct spoil s)
{
	s.sh[COMMENT].sh_size = UINT64_MAX - s.sh[COMMENT].sh_offset + 0x100;
}
static void spoil_memsz(struct spoil s)
{
	s.ph[1].p_memsz = 0x3f;
}
static void spoil_vaddr_wrap(struct spoil s)
{
	s.ph[3].p_memsz = UINT64_MAX - 0x1000;
}
static void spoil_palign(struct spoil s)
{
	s.ph[1].p_align = 0x1800;
}
static void spoil_congruence(struct spoil s)
{
	s.ph[1].p_vaddr += 8;
}
static void spoil_segment_order(struct spoil s)
{
	s.ph[1].p_memsz = 0x1001;
}
static void spoil_no_shoff(struct spoil s)
{
	s.eh->e_shoff = 0;
}
static void spoil_shentsize(struct spoil s)
{
	s.eh->e_shentsize = 40;
}
static void spoil_shoff(struct spoil s)
{
	s.eh->e_shoff = *s.size - 63;
}
static void spoil_shoff_wrap(struct spoil s)
{
	s.eh->e_shoff = UINT64_MAX - 63;
}
static void spoil_cut(struct spoil s)
{
	*s.size -= 1;
}
static void spoil_shnum(struct spoil s)
{
	s.eh->e_shnum = N_SECTIONS + 1;
}
static void spoil_shnum_zero(struct spoil s)
{
	s.eh->e_shnum = 0;
}
static void spoil_shnum_huge(struct spoil s)
{
	s.eh->e_shnum = 0;
	s.sh[0].sh_size = UINT64_MAX / 64 + 2;
}
static void spoil_section_outside(struct spoil s)
{
	s.sh[COMMENT].sh_size = *s.size;
}
static void spoil_section_wrap(struct spoil s)
{
	s.sh[COMMENT].sh_offset = UINT64_MAX - 7;
}
static void spoil_shstrndx(struct spoil s)
{
	s.eh->e_shstrndx = N_SECTIONS;
}
static void spoil_shstrndx_type(struct spoil s)
{
	s.eh->e_shstrndx = COMMENT;
}
static void spoil_shstrndx_x(struct spoil s)
{
	s.eh->e_shstrndx = SHN_XINDEX;
	s.sh[0].sh_link = N_SECTIONS + 3;
}
static void spoil_name(struct spoil s)
{
	s.sh[DATA].sh_name = (uint32_t)s.sh[SHSTRTAB].sh_size;
}
static void spoil_name_open(struct spoil s)
{
	s.f[s.sh[SHSTRTAB].sh_offset + s.sh[SHSTRTAB].sh_size - 1] = 'x';
	s.sh[DATA].sh_name = s.sh[SHSTRTAB].sh_name;
}
static void spoil_symtab_entsize(struct spoil s)
{
	s.sh[SYMTAB].sh_entsize = 16;
}
static void spoil_symtab_size(struct spoil s)
{
	s.sh[SYMTAB].sh_size -= 1;
}
static void spoil_rela_entsize(struct spoil s)
{
	s.sh[RELA].sh_entsize = 0;
}
static void retype(struct spoil s, uint32_t type, uint64_t entsize)
{
	s.sh[COMMENT].sh_type = type;
	s.sh[COMMENT].sh_entsize = entsize;
}
static void spoil_dynsym_entsize(struct spoil s)
{
	retype(s, SHT_DYNSYM, 23);
}
static void spoil_rel_entsize(struct spoil s)
{
	retype(s, SHT_REL, 24);
}
static void spoil_dynamic_entsize(struct spoil s)
{
	retype(s, SHT_DYNAMIC, 8);
}
static void spoil_relr_entsize(struct spoil s)
{
	retype(s, SHT_RELR, 16);
}
static void spoil_link(struct spoil s)
{
	s.sh[SYMTAB].sh_link = N_SECTIONS;
}
static void spoil_info(struct spoil s)
{
	s.sh[RELA].sh_info = N_SECTIONS;
}
static void spoil_addralign(struct spoil s)
{
	s.sh[TEXT].sh_addralign = 24;
}
static void spoil_two_symtabs(struct spoil s)
{
	retype(s, SHT_SYMTAB, 24);
}
static void spoil_wrap(struct spoil s)
{
	s.sh[BSS].sh_addr = UINT64_MAX - 8;
}
static void spoil_unloaded(struct spoil s)
{
	s.sh[RODATA].sh_addr = 0x500000;
}
static void spoil_offset(struct spoil s)
{
	s.sh[RODATA].sh_offset -= 0x10;
}
static void spoil_past_filesz(struct spoil s)
{
	s.sh[DATA].sh_size = 0x28;
}
static void spoil_bss_outside(struct spoil s)
{
	s.sh[BSS].sh_size = 0x101;
}
static void spoil_overlap(struct spoil s)
{
	s.sh[BSS].sh_addr -= 1;
}
static void spoil_same_place(struct spoil s)
{
	s.sh[RODATA].sh_addr = s.sh[TEXT].sh_addr + 0x10;
	s.sh[RODATA].sh_offset = s.sh[TEXT].sh_offset + 0x10;
}

/* Long: a table of one line for each refusal. */
static void test_refusals(void **state)
{
	(void)state;
	static const struct {
		void (*spoil)(struct spoil);
		const char *text;
	} list[] = {
		{ spoil_magic, "not an ELF file" },
		{ spoil_class, "32-bit ELF is not supported" },
		{ spoil_endian, "big-endian ELF is not supported" },
		{ spoil_ident_version, "unknown ELF version" },
		{ spoil_version, "unknown ELF version" },
		{ spoil_rel, "is a relocatable object" },
		{ spoil_core, "is a core dump" },
		{ spoil_type, "not an executable or shared library (e_type 77)" },
		{ spoil_machine, "machine 2 is not supported" },
		{ spoil_ehsize, "ELF header is too short (e_ehsize 52)" },
		{ spoil_short, "too short" },
		{ spoil_empty, "too short" },
		{ spoil_header_only,
		  "truncated: program headers lie outside the file (file offset 0x40)" },
		{ spoil_no_phdrs, "has no program headers" },
		{ spoil_many_phdrs, "too many program headers" },
		{ spoil_phentsize, "program headers of 32 bytes are not supported" },
		{ spoil_phoff, "truncated: program headers lie outside the file" },
		{ spoil_phoff_wrap, "truncated: program headers lie outside the file" },
		{ spoil_segment_outside, "truncated: segment 2 lies outside the file" },
		{ spoil_segment_wrap, "truncated: segment 4 lies outside the file" },
		{ spoil_segment_size_wrap, "truncated: segment 4 lies outside the file" },
		{ spoil_section_size_wrap, "truncated: section 6 lies outside the file" },
		{ spoil_memsz, "segment 1 has an impossible size" },
		{ spoil_vaddr_wrap, "segment 3 has an impossible size" },
		{ spoil_palign, "segment 1 has an alignment that is no power of two" },
		{ spoil_congruence, "segment 1: offset and address differ modulo alignment" },
		{ spoil_segment_order, "loadable segments overlap" },
		{ spoil_no_shoff, "has no section headers" },
		{ spoil_shentsize, "section headers of 40 bytes are not supported" },
		{ spoil_shoff, "truncated: section headers lie outside the file" },
		{ spoil_shoff_wrap, "truncated: section headers lie outside the file" },
		{ spoil_cut, "truncated: section headers lie outside the file" },
		{ spoil_shnum, "truncated: section headers lie outside the file" },
		{ spoil_shnum_zero, "truncated: section headers lie outside the file" },
		{ spoil_shnum_huge, "truncated: section headers lie outside the file" },
		{ spoil_section_outside, "truncated: section 6 lies outside the file" },
		{ spoil_section_wrap, "truncated: section 6 lies outside the file" },
		{ spoil_shstrndx, "has no section name table" },
		{ spoil_shstrndx_type, "has no section name table" },
		{ spoil_shstrndx_x, "has no section name table" },
		{ spoil_name, "section 3 has a bad name" },
		{ spoil_name_open, "section 1 has a bad name" },
		{ spoil_symtab_entsize,
		  "symbol table has entries of 16 bytes in 48 bytes (.symtab, offset 0x0)" },
		{ spoil_symtab_size, "symbol table has entries of 24 bytes in 47 bytes" },
		{ spoil_rela_entsize, "relocation table has entries of 0 bytes" },
		{ spoil_dynsym_entsize, "symbol table has entries of 23 bytes" },
		{ spoil_rel_entsize, "relocation table has entries of 24 bytes" },
		{ spoil_dynamic_entsize, "dynamic entry table has entries of 8 bytes" },
		{ spoil_relr_entsize, "relative relocation table has entries of 16 bytes" },
		{ spoil_link, "section .symtab links to section 11 of 11" },
		{ spoil_info, "applies to section 11 of 11" },
		{ spoil_addralign, "section .text has an alignment that is no power of two" },
		{ spoil_two_symtabs, "has two sections of the type of .symtab" },
		{ spoil_wrap, "section .bss wraps around the address space" },
		{ spoil_unloaded, "section .rodata lies outside the loadable segments" },
		{ spoil_offset, "section .rodata lies outside the loadable segments" },
		{ spoil_past_filesz, "section .data lies outside the loadable segments" },
		{ spoil_bss_outside, "section .bss lies outside the loadable segments" },
		{ spoil_overlap, "sections overlap at address 0x40301f" },
		{ spoil_same_place, "sections overlap at address 0x401010" },
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		size_t size;
		uint8_t *f = sample(&size);
		list[i].spoil((struct spoil){ f, &size, be_ehdr(f), be_phdr(f, 0), be_shdr(f, 0) });
		struct elfrw_image img;
		be_fails(be_open(f, size, &img), list[i].text);
		assert_null(img.base);
		assert_null(img.section);
		free(f);
	}
}

/* Fields that mean nothing where they stand do not matter. */
static void test_tolerated(void **state)
{
	(void)state;
	size_t size;
	uint8_t *f = sample(&size);
	be_phdr(f, 4)->p_type = PT_NULL;
	be_phdr(f, 4)->p_offset = UINT64_MAX;
	be_shdr(f, BSS)->sh_offset = UINT64_MAX;
	be_shdr(f, COMMENT)->sh_type = SHT_NULL;
	be_shdr(f, COMMENT)->sh_offset = UINT64_MAX;
	struct elfrw_image img;
	be_ok(be_open(f, size, &img));
	assert_null(img.section[COMMENT].data);
	elfrw_image_close(&img);
	/* An empty loaded section may stand anywhere; an empty table has no entries to be wrong. */
	be_shdr(f, RODATA)->sh_size = 0;
	be_shdr(f, RODATA)->sh_addr = 0x999999;
	be_shdr(f, RELA)->sh_size = 0;
	be_shdr(f, RELA)->sh_entsize = 0;
	be_ok(be_open(f, size, &img));
	elfrw_image_close(&img);
	/* The section count of a file with more sections than e_shnum can tell. */
	be_shdr(f, 0)->sh_size = N_SECTIONS;
	be_shdr(f, 0)->sh_link = SHSTRTAB;
	be_ehdr(f)->e_shnum = 0;
	be_ehdr(f)->e_shstrndx = SHN_XINDEX;
	be_ok(be_open(f, size, &img));
	assert_int_equal(img.n_sections, N_SECTIONS);
	assert_int_equal(img.shstrndx, SHSTRTAB);
	elfrw_image_close(&img);
	be_ehdr(f)->e_type = ET_DYN;
	be_ok(be_open(f, size, &img));
	assert_true(img.pic);
	elfrw_image_close(&img);
	free(f);
}

/* Whatever the file's length, opening it works or fails with a message. */
static void test_every_length(void **state)
{
	(void)state;
	size_t size;
	uint8_t *f = sample(&size);
	char path[BE_PATH_SIZE];
	be_save(f, size, path);
	for (size_t n = size; n-- > 0;) {
		if (n > 0x400 && n < size - 0x500 && n % 61)
			continue;
		assert_int_equal(truncate(path, (off_t)n), 0);
		struct elfrw_image img;
		struct elfrw_err *err = elfrw_image_open(&img, path);
		assert_non_null(err);
		elfrw_err_free(err);
	}
	unlink(path);
	free(f);
}

static void test_no_file(void **state)
{
	(void)state;
	struct elfrw_image img;
	be_fails(elfrw_image_open(&img, "/nonexistent/x"),
		 "cannot open: No such file or directory");
	be_fails(elfrw_image_open(&img, "/"), "is a directory");
	be_fails(elfrw_image_open(&img, "/dev/null"), "not a regular file");
	/* A pipe without a writer must not keep us waiting. */
	char path[BE_PATH_SIZE];
	be_save("", 0, path);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	be_fails(elfrw_image_open(&img, path), "not a regular file");
	unlink(path);
}

static void test_mode(void **state)
{
	(void)state;
	size_t size;
	uint8_t *f = sample(&size);
	char path[BE_PATH_SIZE];
	be_save(f, size, path);
	assert_int_equal(chmod(path, 0751), 0);
	struct elfrw_image img;
	be_ok(elfrw_image_open(&img, path));
	assert_int_equal(img.mode, 0751);
	assert_string_equal(img.path, path);
	elfrw_image_close(&img);
	unlink(path);
	free(f);
}

static void test_cut_notes(void **state)
{
	(void)state;
	/* One of 3 bytes, without padding behind it. */
	static const uint8_t bytes[19] = { 4, 0,   0,   0,   3, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0,
					   0, 'G', 'N', 'U', 0, 1, 2, 3 };
	struct elfrw_note note;
	for (size_t n = 0; n <= sizeof bytes; n++) {
		uint8_t *part = malloc(n + 1); /* so that a sanitizer sees a read beyond */
		assert_non_null(part);
		memcpy(part + 1, bytes, n);
		struct elfrw_rbuf r = elfrw_rbuf(part + 1, n);
		bool whole = elfrw_note_next(&r, 4, &note);
		assert_int_equal(whole, n == sizeof bytes);
		assert_int_equal(note.at, 0);
		/* Less than a note's header is padding. */
		assert_int_equal(r.bad, n >= 12 && n < sizeof bytes);
		if (whole) {
			assert_int_equal(note.size, 3);
			assert_int_equal(note.end, sizeof bytes);
			assert_memory_equal(note.data, bytes + 16, 3);
			assert_false(elfrw_note_next(&r, 4, &note));
			assert_false(r.bad);
		}
		free(part);
	}
}

static void test_note_owners(void **state)
{
	(void)state;
	static const struct {
		const char *owner;
		uint32_t size;
		bool gnu;
	} cases[] = { { "GNU", 4, true },       { "GNU\0", 5, false }, { "GNU\0x", 6, false },
		      { "GNU\0", 3, false },    { "GNUX", 5, false },  { "GN\0", 3, false },
		      { "GNU\0GNU", 8, false }, { "", 1, false },      { "", 0, false } };
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct elfrw_note note = { .owner = cases[i].owner,
					   .owner_size = cases[i].size,
					   .type = 3 };
		assert_int_equal(elfrw_note_is(&note, "GNU", 3), cases[i].gnu);
		assert_false(elfrw_note_is(&note, "GNU", 4));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_tolerated), cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_no_file),   cmocka_unit_test(test_mode),
		cmocka_unit_test(test_cut_notes), cmocka_unit_test(test_note_owners),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
