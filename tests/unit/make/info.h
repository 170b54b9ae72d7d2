/* info.h: hand-made images, maps and units for the tests of DIEs and of .debug_icfold. */
#ifndef TESTS_UNIT_MAKE_INFO_H
#define TESTS_UNIT_MAKE_INFO_H
#include "tests/unit/make/err_check.h"
#include "dwarf/calls/icfold_note.h"
#include "dwarf/info.h"
#include "dwarf/lists.h"
#include "dwarf/rewrite/rewrite.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/wbuf.h"
#include <dwarf.h>
#include <zlib.h>
#include <zstd.h>

/* ---- a map: A kept, B folded into it, C moved, D folded with a thunk, E moved ---- */

enum { A = 0x1000, B = 0x1020, C = 0x1040, D = 0x1060, E = 0x1080, END = 0x10a0 };
enum {
	NEW_A = 0x1000,
	NEW_C = 0x1020,
	NEW_E = 0x1040,
	THUNK = 0x1060,
	THUNK_SIZE = 5,
	TRAP = 0x1070
};

static inline void make_map(struct elfrw_addrmap *map)
{
	static const struct elfrw_addrmap_unit units[] = {
		{ A, B, NEW_A, NEW_A, 0, 0, ELFRW_UNIT_KEPT },
		{ B, C, NEW_A, NEW_A, 0, 0, ELFRW_UNIT_FOLDED },
		{ C, D, NEW_C, NEW_C, 2, 0, 0 },
		{ D, E, NEW_A, THUNK, 0, THUNK_SIZE, ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
		{ E, END, NEW_E, NEW_E, 4, 0, 0 },
	};
	*map = (struct elfrw_addrmap){ .n_units = 5,
				       .n_sections = 1,
				       .trap_byte = TRAP,
				       .thunks = THUNK,
				       .thunks_end = THUNK + THUNK_SIZE };
	map->unit = malloc(sizeof units);
	memcpy(map->unit, units, sizeof units);
	map->section = malloc(sizeof *map->section);
	*map->section = (struct elfrw_addrmap_section){ A, END, A, TRAP + 1, 1, false };
	be_ok(elfrw_addrmap_finish(map));
}

/* ---- an image in memory ---- */

#define MAX_SECTIONS 12

struct fake {
	struct elfrw_image image;
	struct elfrw_section section[MAX_SECTIONS];
	struct elfrw_addrmap map;
	const char *names[8];
};

static inline void fake_init(struct fake *f)
{
	memset(f, 0, sizeof *f);
	make_map(&f->map);
	f->image = (struct elfrw_image){ .path = "fake",
					 .arch = elfrw_arch_for(EM_X86_64),
					 .section = f->section,
					 .n_sections = 2 };
	f->section[0].name = "";
	f->section[1] = (struct elfrw_section){ ".text",
						{ .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						  .sh_addr = A,
						  .sh_size = END - A,
						  .sh_type = SHT_PROGBITS },
						NULL };
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	memcpy(f->names, names, sizeof names);
}

static inline void fake_add(struct fake *f, const char *name, const void *data, size_t size,
			    uint64_t flags)
{
	assert_true(f->image.n_sections < MAX_SECTIONS);
	f->section[f->image.n_sections++] = (struct elfrw_section){
		name,
		{ .sh_flags = flags, .sh_type = SHT_PROGBITS, .sh_size = size, .sh_addralign = 1 },
		data
	};
}

static inline struct elfrw_err *fake_rewrite(struct fake *f, enum dwr_policy policy,
					     unsigned threads, struct dwr_rewrite_out *out)
{
	static const struct dwr_unit_alias alias[] = { { .unit = 1, .name = "b2" } };
	static const struct dwr_vslot vslot[] = { { 0x4000, 1 }, { 0x4010, 3 } };
	struct dwr_rewrite_in in = { .image = &f->image,
				     .map = &f->map,
				     .policy = policy,
				     .threads = threads,
				     .unit_name = f->names,
				     .alias = alias,
				     .n_aliases = 1,
				     .vslot = vslot,
				     .n_vslots = 2,
				     .producer = "test" };
	return dwr_rewrite(&in, out);
}

static inline const struct dwr_section_out *out_section(const struct dwr_rewrite_out *out,
							const char *name)
{
	for (uint32_t i = 0; i < out->n_sections; i++)
		if (!strcmp(out->section[i].name, name))
			return &out->section[i];
	return NULL;
}

/* ---- units ---- */

struct unit {
	struct elfrw_wbuf info, abbrev;
	unsigned version, offset;
	size_t length_at, abbrev_at;
};

static inline void unit_begin(struct unit *u, unsigned version, unsigned offset, unsigned type)
{
	u->version = version;
	u->offset = offset;
	if (offset == 8)
		elfrw_wbuf_u32(&u->info, 0xffffffff);
	u->length_at = u->info.len;
	elfrw_wbuf_uint(&u->info, 0, offset);
	elfrw_wbuf_u16(&u->info, (uint16_t)version);
	if (version >= 5) {
		elfrw_wbuf_u8(&u->info, (uint8_t)type);
		elfrw_wbuf_u8(&u->info, 8);
	}
	u->abbrev_at = u->abbrev.len;
	elfrw_wbuf_uint(&u->info, u->abbrev.len, offset);
	if (version < 5)
		elfrw_wbuf_u8(&u->info, 8);
	if (version >= 5 && type == DW_UT_skeleton)
		elfrw_wbuf_u64(&u->info, 0x1234);
}

static inline void unit_end(struct unit *u)
{
	elfrw_put_le(u->info.data + u->length_at, u->info.len - u->length_at - u->offset,
		     u->offset);
	elfrw_wbuf_u8(&u->abbrev, 0);
}

static inline void unit_free(struct unit *u)
{
	elfrw_wbuf_free(&u->info);
	elfrw_wbuf_free(&u->abbrev);
}

/* A declaration: pairs of attribute and form up to a 0; behind DW_FORM_implicit_const its value. */
static inline void declare(struct unit *u, uint64_t code, unsigned tag, int children, ...)
{
	va_list ap;
	elfrw_wbuf_uleb(&u->abbrev, code);
	elfrw_wbuf_uleb(&u->abbrev, tag);
	elfrw_wbuf_u8(&u->abbrev, (uint8_t)children);
	va_start(ap, children);
	for (unsigned name; (name = va_arg(ap, unsigned));) {
		unsigned form = va_arg(ap, unsigned);
		elfrw_wbuf_uleb(&u->abbrev, name);
		elfrw_wbuf_uleb(&u->abbrev, form);
		if (form == DW_FORM_implicit_const)
			elfrw_wbuf_sleb(&u->abbrev, va_arg(ap, int));
	}
	va_end(ap);
	elfrw_wbuf_u16(&u->abbrev, 0);
}

static inline void add_unit_sections(struct fake *f, const struct unit *u)
{
	fake_add(f, ".debug_info", u->info.data, u->info.len, 0);
	fake_add(f, ".debug_abbrev", u->abbrev.data, u->abbrev.len, 0);
}
#endif
