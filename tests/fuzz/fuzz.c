/* fuzz.c: see fuzz.h. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/rewrite/rewrite.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const fuzz_section_names[] = {
	".debug_info",     ".debug_types",    ".debug_abbrev",      ".debug_line",
	".debug_str",      ".debug_line_str", ".debug_str_offsets", ".debug_addr",
	".debug_aranges",  ".debug_ranges",   ".debug_rnglists",    ".debug_loc",
	".debug_loclists", ".debug_frame",    ".debug_names",       ".gdb_index",
	".debug_macro",    ".debug_dcall",    ".debug_vcall",       ".debug_icfold",
	".eh_frame",       ".eh_frame_hdr",   ".gcc_except_table",  ".data.rel.ro",
};
#define N_NAMES      (sizeof fuzz_section_names / sizeof *fuzz_section_names)
#define FIRST_LOADED 20

bool fuzz_ok(struct elfrw_err *err)
{
	if (!err)
		return true;
	FUZZ_HOLDS(elfrw_err_text(err)[0]);
	elfrw_err_free(err);
	return false;
}

void fuzz_image_init(struct fuzz_image *f, const uint8_t *data, size_t size)
{
	memset(f, 0, sizeof *f);
	f->img = (struct elfrw_image){ .path = "fuzz",
				       .arch = &elfrw_arch_x86_64,
				       .section = f->section,
				       .n_sections = 2,
				       .pic = true };
	f->section[0].name = "";
	f->section[1] = (struct elfrw_section){ ".text",
						{ .sh_type = SHT_PROGBITS,
						  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						  .sh_addr = FUZZ_CODE,
						  .sh_size = FUZZ_UNITS * FUZZ_UNIT_SIZE,
						  .sh_addralign = 16 },
						NULL };
	struct elfrw_rbuf r = elfrw_rbuf(data, size);
	while (elfrw_rbuf_left(&r) > 3 && f->img.n_sections < FUZZ_MAX_SECTIONS) {
		uint8_t flags = elfrw_rbuf_u8(&r);
		size_t n = elfrw_rbuf_u16(&r);
		if (n > elfrw_rbuf_left(&r))
			n = elfrw_rbuf_left(&r);
		const uint8_t *p = elfrw_rbuf_take(&r, n);
		unsigned id = (flags & FUZZ_ID) % N_NAMES, i = f->img.n_sections++;
		bool loaded = id >= FIRST_LOADED;
		snprintf(f->names[i], sizeof f->names[i], "%s%s",
			 flags & FUZZ_Z && !loaded ? ".z" : ".", fuzz_section_names[id] + 1);
		uint8_t *copy = malloc(n + !n); /* an allocation of its own, so that a sanitizer
						   sees reads beyond it */
		if (!copy)
			abort();
		memcpy(copy, p, n);
		f->section[i] = (struct elfrw_section){
			f->names[i],
			{ .sh_type = SHT_PROGBITS, .sh_size = n, .sh_addralign = 4 },
			copy
		};
		if (loaded) {
			f->section[i].hdr.sh_flags = SHF_ALLOC;
			f->section[i].hdr.sh_addr = FUZZ_DATA(id);
		} else if (flags & FUZZ_COMPRESSED)
			f->section[i].hdr.sh_flags = SHF_COMPRESSED;
		if (!n) { /* elfrw_image_open() gives an empty section no data, either */
			free(copy);
			f->section[i].data = NULL;
		}
	}
}

void fuzz_image_deinit(struct fuzz_image *f)
{
	for (uint32_t i = 2; i < f->img.n_sections; i++)
		free((void *)f->section[i].data);
}

const struct elfrw_section *fuzz_section(const struct fuzz_image *f, const char *name)
{
	static const struct elfrw_section none = { .name = "" };
	const struct elfrw_section *s = elfrw_image_section(&f->img, name);
	return s ? s : &none;
}

void fuzz_map_init(struct elfrw_addrmap *map)
{
	*map = (struct elfrw_addrmap){ .n_units = FUZZ_UNITS, .n_sections = 1 };
	map->unit = calloc(FUZZ_UNITS, sizeof *map->unit);
	map->section = calloc(1, sizeof *map->section);
	if (!map->unit || !map->section)
		abort();
	uint64_t at = FUZZ_CODE, thunk = FUZZ_CODE + FUZZ_UNITS * FUZZ_UNIT_SIZE;
	map->thunks = thunk;
	for (uint32_t i = 0; i < FUZZ_UNITS; i++) {
		struct elfrw_addrmap_unit *u = &map->unit[i];
		*u = (struct elfrw_addrmap_unit){ .old = FUZZ_CODE + i * FUZZ_UNIT_SIZE,
						  .old_end = FUZZ_CODE + (i + 1) * FUZZ_UNIT_SIZE,
						  .body = at,
						  .entry = at,
						  .kept = i };
		if (i % 4 != 1) {
			at += FUZZ_UNIT_SIZE;
			continue;
		}
		map->unit[i - 1].flags |= ELFRW_UNIT_KEPT;
		u->kept = i - 1;
		u->body = u->entry = map->unit[i - 1].body;
		u->flags = ELFRW_UNIT_FOLDED;
		if (i % 8 == 1) {
			u->flags |= ELFRW_UNIT_THUNK;
			u->thunk_size = 5;
			u->entry = thunk;
			thunk += 5;
		}
	}
	map->thunks_end = thunk;
	map->trap_byte = thunk;
	*map->section = (struct elfrw_addrmap_section){
		FUZZ_CODE, FUZZ_CODE + FUZZ_UNITS * FUZZ_UNIT_SIZE, FUZZ_CODE, thunk + 1, 1, false
	};
	if (!fuzz_ok(elfrw_addrmap_finish(map)))
		abort();
}

const char *fuzz_file(unsigned slot, const uint8_t *data, size_t size)
{
	static int fd[4];
	static char path[4][40];
	if (!fd[slot]) {
		fd[slot] = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(path[slot], sizeof path[slot], "/proc/self/fd/%d", fd[slot]);
	}
	if (fd[slot] < 0 || ftruncate(fd[slot], 0) != 0 ||
	    pwrite(fd[slot], data, size, 0) != (ssize_t)size || lseek(fd[slot], 0, SEEK_SET) != 0)
		abort();
	return path[slot];
}

void fuzz_rewrite(const uint8_t *data, size_t size, unsigned policy)
{
	struct fuzz_image f;
	struct elfrw_addrmap map;
	const char *name[FUZZ_UNITS];
	static const struct dwr_unit_alias alias[] = { { .unit = 1, .name = "alias" } };
	static const struct dwr_vslot vslot[] = { { 0x200000, 1 }, { 0x200010, 9 } };
	fuzz_image_init(&f, data, size);
	fuzz_map_init(&map);
	for (uint32_t i = 0; i < FUZZ_UNITS; i++)
		name[i] = i % 3 ? "f" : NULL;
	struct dwr_rewrite_in in = { .image = &f.img,
				     .map = &map,
				     .policy = (enum dwr_policy)policy,
				     .threads = 1,
				     .unit_name = name,
				     .alias = alias,
				     .n_aliases = 1,
				     .vslot = vslot,
				     .n_vslots = 2,
				     .producer = "fuzz" };
	struct dwr_rewrite_out out;
	if (fuzz_ok(dwr_rewrite(&in, &out))) {
		uint8_t sum = 0;
		for (uint32_t i = 0; i < out.n_sections; i++)
			for (size_t k = 0; k < out.section[i].size; k++)
				sum ^= out.section[i].data[k]; /* is all of it there? */
		FUZZ_HOLDS(sum == (uint8_t)(sum | 0));
		dwr_rewrite_out_deinit(&out);
	}
	elfrw_addrmap_deinit(&map);
	fuzz_image_deinit(&f);
}
