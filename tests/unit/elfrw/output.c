/* output.c: edits and layout of an output file: every result is written, opened again and compared
 * piece by piece. */
#include "tests/unit/make/sample.h"

static const Elf64_Phdr *segment(const struct elfrw_image *img, uint32_t type)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++)
		if (img->phdr[p].p_type == type)
			return &img->phdr[p];
	return NULL;
}

static void check_sections(const struct sample *s, const struct elfrw_image *res)
{
	const struct elfrw_output *out = &s->out;
	uint32_t dropped = 0;
	for (uint32_t i = 1; i < s->img.n_sections; i++) {
		const struct elfrw_outsec *o = &out->sec[i];
		const Elf64_Shdr *old = &s->img.section[i].hdr;
		if (o->drop) {
			assert_int_equal(o->index, 0);
			dropped++;
			continue;
		}
		const struct elfrw_section *n = &res->section[o->index];
		assert_string_equal(n->name, s->img.section[i].name);
		assert_int_equal(n->hdr.sh_type, old->sh_type);
		assert_int_equal(n->hdr.sh_addr, o->addr);
		assert_int_equal(n->hdr.sh_entsize, old->sh_entsize);
		assert_int_equal(n->hdr.sh_link, old->sh_link ? out->sec[old->sh_link].index : 0);
		if (i == s->img.shstrndx)
			continue;
		assert_int_equal(n->hdr.sh_size, o->size);
		if (n->data && o->size)
			assert_memory_equal(n->data, o->data, o->size);
		if ((old->sh_flags & SHF_ALLOC) && o->size && n->data) {
			uint64_t off;
			assert_true(elfrw_output_offset(out, o->addr, &off));
			assert_int_equal(off, n->hdr.sh_offset);
		}
	}
	assert_int_equal(res->n_sections, s->img.n_sections - dropped + out->added.len);
	for (size_t i = 0; i < out->added.len; i++) {
		const struct elfrw_newsec *a = &out->added.data[i];
		const struct elfrw_section *n = &res->section[res->n_sections - out->added.len + i];
		assert_string_equal(n->name, a->name);
		assert_int_equal(n->hdr.sh_size, a->size);
		if (a->size)
			assert_memory_equal(n->data, a->data, a->size);
		assert_int_equal(n->hdr.sh_offset % a->align, 0);
	}
}

/* Memory is in order and congruent (the image checks both), no page longer than need be, and the
 * program headers are where PT_PHDR says, under no section. */
static void check_segments(const struct sample *s, const struct elfrw_image *res)
{
	const struct elfrw_output *out = &s->out;
	const Elf64_Phdr *ph = segment(res, PT_PHDR), *load = segment(res, PT_LOAD);
	uint64_t table = res->n_phdrs * sizeof *ph;
	assert_int_equal(ph == NULL, out->no_pt_phdr);
	if (ph) {
		assert_int_equal(ph->p_offset, res->ehdr.e_phoff);
		assert_int_equal(ph->p_filesz, table);
		assert_int_equal(ph->p_vaddr, load->p_vaddr + ph->p_offset);
	}
	assert_true(load->p_offset == 0 && res->ehdr.e_phoff + table <= load->p_filesz);
	assert_int_equal(res->n_phdrs, s->img.n_phdrs + out->n_split - out->no_pt_phdr);
	uint64_t end = 0;
	for (uint32_t p = 0; p < res->n_phdrs; p++) {
		const Elf64_Phdr *l = &res->phdr[p];
		if (l->p_type != PT_LOAD)
			continue;
		assert_int_equal(l->p_vaddr, l->p_paddr);
		assert_int_equal(l->p_offset, end + ((l->p_vaddr - end) & (l->p_align - 1)));
		end = l->p_offset + l->p_filesz;
	}
	for (uint32_t i = 1; i < res->n_sections; i++)
		if ((res->section[i].hdr.sh_flags & SHF_ALLOC) && res->section[i].hdr.sh_size)
			assert_true(res->section[i].hdr.sh_addr >=
				    load->p_vaddr + res->ehdr.e_phoff + table);
}

static void check_symbols(const struct sample *s, const struct elfrw_image *res)
{
	const struct elfrw_outsec *out = s->out.sec;
	const struct elfrw_section *sym = &res->section[res->symtab];
	for (size_t k = 1; k < sym->hdr.sh_size / sizeof(Elf64_Sym); k++) {
		Elf64_Sym a, b;
		memcpy(&a, s->img.section[s->img.symtab].data + k * sizeof a, sizeof a);
		memcpy(&b, sym->data + k * sizeof b, sizeof b);
		assert_string_equal(elfrw_image_string(res, sym->hdr.sh_link, b.st_name),
				    elfrw_image_string(&s->img, STRTAB, a.st_name));
		if (a.st_shndx >= SHN_LORESERVE) {
			assert_memory_equal(&a, &b, sizeof a);
			continue;
		}
		assert_int_equal(b.st_shndx, out[a.st_shndx].index);
		assert_int_equal(b.st_value - out[a.st_shndx].addr,
				 a.st_value - s->img.section[a.st_shndx].hdr.sh_addr);
	}
}

/* Lays out, writes, opens the result as RES and compares everything with what was asked for. */
static void finish(struct sample *s, struct elfrw_image *res)
{
	struct elfrw_output *out = &s->out;
	be_ok(elfrw_output_layout(out));
	char path[BE_PATH_SIZE];
	be_save("old", 3, path);
	be_ok(elfrw_output_write(out, path));
	be_ok(elfrw_image_open(res, path));
	unlink(path);
	res->path = "output";
	assert_int_equal(res->size, out->file_size);
	assert_int_equal(res->ehdr.e_entry, out->entry);
	assert_int_equal(res->n_sections, out->n_out);
	check_sections(s, res);
	check_segments(s, res);
	check_symbols(s, res);
}

static void test_same(void **state)
{
	(void)state;
	static const unsigned how[] = { 0, SLACK, NO_NOTES, FIRST, FIRST | SLACK, BIG, ONE_STRTAB };
	for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, how[k]);
		finish(&s, &res);
		assert_int_equal(s.out.n_split + s.out.n_unsplit, 0);
		for (uint32_t p = 0; p < res.n_phdrs && !(how[k] & BIG); p++) {
			/* The sample has empty pages between its segments; they leave the file. */
			Elf64_Phdr want = s.img.phdr[p];
			assert_true(res.phdr[p].p_offset <= want.p_offset);
			want.p_offset = res.phdr[p].p_offset;
			assert_memory_equal(&res.phdr[p], &want, sizeof want);
		}
		assert_true(res.size <= s.img.size + 64);
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

static void test_drop(void **state)
{
	(void)state;
	for (unsigned how = 0; how <= ONE_STRTAB; how += ONE_STRTAB) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, how);
		elfrw_output_drop(&s.out, COMMENT);
		elfrw_output_drop(&s.out, RELA);
		finish(&s, &res);
		assert_null(elfrw_image_section(&res, ".comment"));
		assert_int_equal(res.section[RELA_DEBUG - 2].hdr.sh_type, SHT_RELA);
		assert_int_equal(res.symtab, SYMTAB - 2);
		assert_int_equal(res.section[res.symtab].hdr.sh_link, STRTAB - 2);
		assert_true(res.size < s.img.size);
		elfrw_image_close(&res);
		sample_close(&s);
		/* The relocations that stay apply to their section's new number. */
		sample_open(&s, how);
		elfrw_output_drop(&s.out, COMMENT);
		finish(&s, &res);
		assert_int_equal(res.section[RELA - 1].hdr.sh_info, TEXT);
		assert_int_equal(res.section[RELA - 1].hdr.sh_link, SYMTAB - 1);
		assert_int_equal(res.section[RELA_DEBUG - 1].hdr.sh_info, DEBUG - 1);
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

static uint8_t *bytes(size_t n, unsigned seed)
{
	uint8_t *p = malloc(n ? n : 1);
	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 13 + seed);
	return p;
}

static void test_add(void **state)
{
	(void)state;
	for (unsigned how = 0; how <= ONE_STRTAB; how += ONE_STRTAB) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, how);
		be_ok(elfrw_output_add(&s.out, ".note.new", bytes(33, 1), 33, 0, 4));
		be_ok(elfrw_output_add(&s.out, ".debug_new", bytes(100, 2), 100, 0, 64));
		be_ok(elfrw_output_add(&s.out, ".empty", bytes(0, 3), 0, 0, 1));
		elfrw_output_drop(&s.out, COMMENT);
		finish(&s, &res);
		assert_int_equal(res.n_sections, s.img.n_sections + 2);
		assert_non_null(elfrw_image_section(&res, ".debug_new"));
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

static void test_edit(void **state)
{
	(void)state;
	struct sample s;
	struct elfrw_image res;
	sample_open(&s, 0);
	uint8_t *p, *q;
	be_ok(elfrw_output_edit(&s.out, TEXT, &p));
	assert_memory_equal(p, s.img.section[TEXT].data, 0x5ff0);
	p[3] ^= 0xff;
	assert_int_not_equal(p[3], s.img.section[TEXT].data[3]); /* the input stays as it is */
	be_ok(elfrw_output_at(&s.out, s.text + 0x10 + 3, 4, &q));
	assert_ptr_equal(q, p + 3);
	be_ok(elfrw_output_at(&s.out, s.text + 0x5fff, 1, &q));
	assert_ptr_equal(q, p + 0x5fef);
	be_ok(elfrw_output_at(&s.out, s.text + 0x5fff, 2, &q));
	assert_null(q); /* over the section's end */
	be_ok(elfrw_output_at(&s.out, 0, 1, &q));
	assert_null(q);
	be_ok(elfrw_output_at(&s.out, s.data + 0x180, 1, &q));
	assert_null(q); /* zeros are not in the file */
	be_ok(elfrw_output_edit(&s.out, BSS, &q));
	assert_null(q);
	/* New contents, twice; they can be edited too. */
	elfrw_output_replace(&s.out, COMMENT, bytes(10, 1), 10);
	elfrw_output_replace(&s.out, COMMENT, bytes(500, 2), 500);
	be_ok(elfrw_output_edit(&s.out, COMMENT, &q));
	q[499] = 0xee;
	elfrw_output_replace(&s.out, EXCEPT, bytes(0x300, 4), 0x300);
	s.out.entry = s.text;
	finish(&s, &res);
	assert_int_equal(res.section[COMMENT].data[499], 0xee);
	assert_int_equal(res.section[TEXT].data[3], p[3]);
	assert_int_equal(res.ehdr.e_entry, s.text);
	elfrw_image_close(&res);
	sample_close(&s);
}

/* .text becomes shorter by CUT bytes and .fini follows it. */
static void shrink_text(struct sample *s, uint64_t cut)
{
	s->out.sec[TEXT].size -= cut;
	s->out.sec[FINI].addr -= cut;
}

static void test_shrink(void **state)
{
	(void)state;
	static const unsigned how[] = { 0, FIRST, BIG };
	static const uint64_t cut[] = { 0,      1,      0x1f,   0x20,   0x21,  0xfff,
					0x1000, 0x1020, 0x1021, 0x4000, 0x5ff0 };
	for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
		uint64_t whole = 0; /* offset of the data when nothing was cut */
		for (size_t c = 0; c < sizeof cut / sizeof *cut; c++) {
			struct sample s;
			struct elfrw_image res;
			sample_open(&s, how[h]);
			shrink_text(&s, cut[c]);
			finish(&s, &res);
			const Elf64_Phdr *x = &res.phdr[3], *d = &res.phdr[5];
			assert_int_equal(x->p_flags, PF_R | PF_X);
			assert_int_equal(x->p_vaddr, s.text);
			assert_int_equal(x->p_filesz, 0x6020 - cut[c]);
			assert_int_equal(x->p_memsz, 0x6020 - cut[c]);
			/* Data keeps its address and its zeros; whole pages leave the file. */
			assert_int_equal(d->p_vaddr, s.data);
			assert_int_equal(d->p_filesz, 0x100);
			assert_int_equal(d->p_memsz, 0x1100);
			if (cut[c] == 0)
				whole = d->p_offset;
			assert_true(how[h] == BIG || whole - d->p_offset + 0x1000 > cut[c]);
			assert_int_equal((whole - d->p_offset) % 0x1000, 0);
			assert_int_equal(d->p_align, s.img.phdr[5].p_align);
			assert_int_equal(s.out.n_split + s.out.n_unsplit, 0);
			elfrw_image_close(&res);
			sample_close(&s);
		}
	}
}

/* .eh_frame loses CUT bytes; what is behind it keeps its address. */
static void hole(struct sample *s, uint64_t cut)
{
	s->out.sec[EH_FRAME].size -= cut;
}

static void test_small_hole(void **state)
{
	(void)state;
	/* .eh_frame has 0x5000 bytes from 0x800 on, and the next section begins at 0x5800. So less
	 * than one whole page becomes free. */
	struct sample s;
	struct elfrw_image res;
	sample_open(&s, SLACK);
	hole(&s, 0x17ff);
	finish(&s, &res);
	assert_int_equal(s.out.n_split + s.out.n_unsplit, 0);
	assert_int_equal(segment(&res, PT_GNU_EH_FRAME)->p_filesz, 0x5000 - 0x17ff);
	assert_int_equal(segment(&res, PT_GNU_EH_FRAME)->p_memsz, 0x5000 - 0x17ff);
	elfrw_image_close(&res);
	sample_close(&s);
}

static void test_split(void **state)
{
	(void)state;
	static const unsigned how[] = { SLACK, SLACK | NO_NOTES, SLACK | FIRST };
	for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, how[h]);
		hole(&s, 0x3000);
		finish(&s, &res);
		assert_int_equal(s.out.n_split, 1);
		assert_int_equal(s.out.n_unsplit, 0);
		assert_int_equal(res.n_phdrs, s.img.n_phdrs + 1);
		assert_true(res.size + 2 * 0x1000 < s.img.size);
		/* Nothing that stood behind the headers had to go. */
		for (uint32_t i = INTERP; i <= HASH; i++)
			assert_int_equal(res.section[i].hdr.sh_addr, s.img.section[i].hdr.sh_addr);
		assert_int_equal(segment(&res, PT_GNU_EH_FRAME)->p_filesz, 0x2000);
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

/* Offsets stay congruent modulo 2 MiB: cutting the segment would gain nothing. */
static void test_large_pages(void **state)
{
	(void)state;
	struct sample s;
	struct elfrw_image res;
	sample_open(&s, SLACK | BIG);
	hole(&s, 0x3000);
	finish(&s, &res);
	assert_int_equal(s.out.n_split + s.out.n_unsplit, 0);
	for (uint32_t p = 0; p < res.n_phdrs; p++)
		assert_int_equal(res.phdr[p].p_align, s.img.phdr[p].p_align);
	elfrw_image_close(&res);
	sample_close(&s);
}

/* No room for one more program header, but what is in the way may go into the hole. */
static void make_room(unsigned how)
{
	struct sample s;
	struct elfrw_image res;
	sample_open(&s, how);
	hole(&s, 0x3000);
	finish(&s, &res);
	if (s.out.n_split) {
		uint64_t moved =
			res.section[INTERP].hdr.sh_addr - s.img.section[INTERP].hdr.sh_addr;
		assert_true(moved > 0);
		for (uint32_t i = INTERP; i <= NOTE_B; i++) /* as one block */
			assert_int_equal(res.section[i].hdr.sh_addr - s.img.section[i].hdr.sh_addr,
					 moved);
		assert_int_equal(moved % 64, 0);
		assert_int_equal(segment(&res, PT_INTERP)->p_vaddr,
				 res.section[INTERP].hdr.sh_addr);
		assert_int_equal(segment(&res, PT_INTERP)->p_offset,
				 res.section[INTERP].hdr.sh_offset);
		assert_int_equal(segment(&res, PT_NOTE)->p_vaddr, res.section[NOTE_A].hdr.sh_addr);
		assert_int_equal(segment(&res, PT_NOTE)->p_offset,
				 res.section[NOTE_A].hdr.sh_offset);
		assert_int_equal(segment(&res, PT_NOTE)->p_filesz, 0x44);
		assert_true(res.size + 0x1000 < s.img.size);
	}
	assert_int_equal(s.out.n_split + s.out.n_unsplit, 1);
	assert_int_equal(res.section[HASH].hdr.sh_addr, s.img.section[HASH].hdr.sh_addr);
	elfrw_image_close(&res);
	sample_close(&s);
}

static void test_room_same_segment(void **state)
{
	(void)state;
	make_room(FIRST);
}

static void test_room_other_segment(void **state)
{
	(void)state;
	make_room(0);
}

static void test_no_room(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, k == 2 ? FIRST : k == 1 ? NO_NOTES | FIRST : NO_NOTES);
		if (k == 2)
			s.out.sec[NOTE_A].referenced = true; /* something knows its address */
		hole(&s, 0x3000);
		finish(&s, &res);
		/* A program without an interpreter needs no PT_PHDR. */
		assert_int_equal(s.out.no_pt_phdr, k < 2);
		assert_int_equal(s.out.n_split, k < 2);
		assert_int_equal(s.out.n_unsplit, k == 2);
		for (uint32_t i = INTERP; i <= HASH; i++)
			assert_int_equal(res.section[i].hdr.sh_addr, s.img.section[i].hdr.sh_addr);
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

static void test_room_too_small(void **state)
{
	(void)state;
	for (unsigned first = 0; first <= FIRST; first += FIRST) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, LONG_NOTE | first);
		hole(&s, 0x2800);
		finish(&s, &res);
		assert_int_equal(s.out.n_split, 0);
		assert_int_equal(s.out.n_unsplit, 1);
		assert_int_equal(res.section[NOTE_B].hdr.sh_addr,
				 s.img.section[NOTE_B].hdr.sh_addr);
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

/* Several edits at once. */
static void test_all_together(void **state)
{
	(void)state;
	static const unsigned how[] = {
		SLACK, FIRST, SLACK | FIRST, SLACK | BIG, SLACK | ONE_STRTAB, NO_NOTES
	};
	for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
		struct sample s;
		struct elfrw_image res;
		sample_open(&s, how[h]);
		shrink_text(&s, 0x2345);
		hole(&s, 0x2abc);
		elfrw_output_drop(&s.out, RELA);
		elfrw_output_replace(&s.out, DEBUG, bytes(3000, 5), 3000);
		be_ok(elfrw_output_add(&s.out, ".debug_icfold", bytes(70, 6), 70, 0, 8));
		s.out.sec[EXCEPT].size = 0; /* nothing is left of it */
		finish(&s, &res);
		assert_non_null(elfrw_image_section(&res, ".debug_icfold"));
		elfrw_image_close(&res);
		sample_close(&s);
	}
}

static void test_overlap(void **state)
{
	(void)state;
	struct sample s;
	sample_open(&s, 0);
	s.out.sec[FINI].addr -= 1;
	be_fails(elfrw_output_layout(&s.out), "internal: sections overlap");
	sample_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_edit),
		cmocka_unit_test(test_shrink),
		cmocka_unit_test(test_small_hole),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_large_pages),
		cmocka_unit_test(test_room_same_segment),
		cmocka_unit_test(test_room_other_segment),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_room_too_small),
		cmocka_unit_test(test_all_together),
		cmocka_unit_test(test_overlap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
