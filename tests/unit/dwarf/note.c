/* note.c: .debug_icfold, written and read. */
#include "tests/unit/make/info.h"

/* What the note of F says. */
static void check_note(const struct fake *f, const uint8_t *data, size_t size)
{
	struct dwr_icfold n;
	be_ok(dwr_icfold_read(&n, data, size));
	assert_int_equal(n.map.n_units, f->map.n_units);
	for (uint32_t i = 0; i < n.map.n_units; i++)
		assert_memory_equal(&n.map.unit[i], &f->map.unit[i],
				    offsetof(struct elfrw_addrmap_unit, flags) + 1);
	assert_int_equal(n.map.n_sections, 1);
	assert_memory_equal(&n.map.section[0], &f->map.section[0],
			    offsetof(struct elfrw_addrmap_section, end_taken) + 1);
	assert_int_equal(n.map.trap_byte, TRAP);
	uint64_t va;
	assert_true(elfrw_addrmap_pointer(&n.map, D, &va));
	assert_int_equal(va, THUNK);
	assert_int_equal(n.n_groups, 1);
	assert_int_equal(n.group[0].n_members, 3);
	static const struct {
		uint32_t unit;
		const char *names[2];
	} want[] = { { 0, { "a" } }, { 1, { "b", "b2" } }, { 3, { "d" } } };
	for (unsigned i = 0; i < 3; i++) {
		const struct dwr_icfold_member *m = &n.member[n.group[0].member + i];
		assert_int_equal(m->unit, want[i].unit);
		assert_int_equal(m->n_names, want[i].names[1] ? 2 : 1);
		for (unsigned k = 0; k < m->n_names; k++)
			assert_string_equal(n.names[m->name + k], want[i].names[k]);
		assert_int_equal(n.unit_member[m->unit], n.group[0].member + i);
	}
	assert_int_equal(n.unit_member[2], UINT32_MAX);
	assert_int_equal(n.n_vslots, 2);
	assert_int_equal(n.vslot[1].slot, 0x4010);
	assert_int_equal(n.vslot[1].unit, 3);
	dwr_icfold_deinit(&n);
}

static void damage(const uint8_t *data, size_t size)
{
	struct dwr_icfold n;
	/* Every truncation is an error. A changed byte gives an error or a note. */
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);
		memcpy(copy, data, cut);
		struct elfrw_err *err = dwr_icfold_read(&n, copy, cut);
		assert_non_null(err);
		elfrw_err_free(err);
		free(copy);
	}
	for (size_t i = 0; i < size; i++)
		for (unsigned v = 0; v < 256; v += 5) {
			uint8_t *copy = malloc(size);
			memcpy(copy, data, size);
			copy[i] = (uint8_t)v;
			struct elfrw_err *err = dwr_icfold_read(&n, copy, size);
			if (!err)
				dwr_icfold_deinit(&n);
			elfrw_err_free(err);
			free(copy);
		}
}

/* The section that a rewriting of F makes, decompressed; *SIZE: its size. */
static uint8_t *make_note(struct fake *f, uLongf *size)
{
	struct dwr_rewrite_out out;
	be_ok(fake_rewrite(f, DWR_FOLDED_OVERLAY, 1, &out)); /* no debug information at all */
	assert_int_equal(out.n_sections, 1);
	assert_string_equal(out.section[0].name, ".debug_icfold");
	assert_int_equal(out.section[0].shndx, 0);
	/* Compressed (gABI), since there is no debug information whose form could be followed. */
	assert_int_equal(out.section[0].sh_flags, SHF_COMPRESSED);
	assert_int_equal(out.section[0].sh_addralign, 8);
	Elf64_Chdr chdr;
	assert_true(out.section[0].size > sizeof chdr);
	memcpy(&chdr, out.section[0].data, sizeof chdr);
	assert_int_equal(chdr.ch_type, ELFCOMPRESS_ZLIB);
	assert_int_equal(chdr.ch_addralign, 1);
	*size = chdr.ch_size;
	uint8_t *data = malloc(*size);
	assert_non_null(data);
	assert_int_equal(uncompress(data, size, out.section[0].data + sizeof chdr,
				    out.section[0].size - sizeof chdr),
			 Z_OK);
	assert_int_equal(*size, chdr.ch_size);
	dwr_rewrite_out_deinit(&out);
	return data;
}

static void note_round_trip(void **state)
{
	(void)state;
	struct fake f;
	uLongf size;
	fake_init(&f);
	uint8_t *data = make_note(&f, &size);
	assert_int_equal(elfrw_get16(data + 8), DWR_ICFOLD_VERSION);
	check_note(&f, data, size);
	damage(data, size);
	free(data);
	elfrw_addrmap_deinit(&f.map);
}

/* A unit that nothing used: it has no place, and its name is kept. */
static void removed_unit(void **state)
{
	(void)state;
	struct fake f;
	uLongf size;
	fake_init(&f);
	f.map.unit[2] = (struct elfrw_addrmap_unit){
		C, D, 0, 0, 2, 0, ELFRW_UNIT_FOLDED | ELFRW_UNIT_REMOVED
	};
	uint8_t *data = make_note(&f, &size);
	assert_int_equal(elfrw_get16(data + 8), DWR_ICFOLD_VERSION_REMOVED);
	check_note(&f, data, size);
	struct dwr_icfold n;
	be_ok(dwr_icfold_read(&n, data, size));
	assert_int_equal(n.version, DWR_ICFOLD_VERSION_REMOVED);
	assert_int_equal(n.n_removed, 1);
	assert_int_equal(n.removed[0].unit, 2);
	assert_int_equal(n.removed[0].n_names, 1);
	assert_string_equal(n.names[n.removed[0].name], "c");
	dwr_icfold_deinit(&n);
	damage(data, size);
	free(data);
	elfrw_addrmap_deinit(&f.map);
}

/* A map that changes nothing: no section, no note. */
static void nothing_to_do(void **state)
{
	(void)state;
	struct fake f;
	fake_init(&f);
	for (uint32_t i = 0; i < f.map.n_units; i++)
		f.map.unit[i] = (struct elfrw_addrmap_unit){ f.map.unit[i].old,
							     f.map.unit[i].old_end,
							     f.map.unit[i].old,
							     f.map.unit[i].old,
							     i,
							     0,
							     0 };
	struct dwr_rewrite_out out;
	be_ok(fake_rewrite(&f, DWR_FOLDED_OVERLAY, 1, &out));
	assert_int_equal(out.n_sections, 0);
	dwr_rewrite_out_deinit(&out);
	elfrw_addrmap_deinit(&f.map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(note_round_trip),
		cmocka_unit_test(removed_unit),
		cmocka_unit_test(nothing_to_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
