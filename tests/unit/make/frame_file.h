/* frame_file.h: unwind tables of real programs, compiled for the test, and address maps over their
 * functions. */
#ifndef TESTS_UNIT_MAKE_FRAME_FILE_H
#define TESTS_UNIT_MAKE_FRAME_FILE_H
#include "tests/unit/make/err_check.h"
#include "dwarf/cfi.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include <stdio.h>
#include <stdlib.h>

struct frame_file {
	struct elfrw_image img;
	const struct elfrw_section *eh, *hdr, *table; /* NULL: none */
	struct dwr_cfi cfi;
};

/* false: the file has no .eh_frame; else closed by frame_file_close(). */
static inline bool frame_file_open(struct frame_file *f, const char *path)
{
	be_ok(elfrw_image_open(&f->img, path));
	f->eh = elfrw_image_section(&f->img, ".eh_frame");
	f->hdr = elfrw_image_section(&f->img, ".eh_frame_hdr");
	f->table = elfrw_image_section(&f->img, ".gcc_except_table");
	if (!f->eh || !f->eh->data) {
		elfrw_image_close(&f->img);
		return false;
	}
	be_ok(dwr_eh_frame_read(&f->cfi, &f->img, 8));
	return true;
}

static inline void frame_file_close(struct frame_file *f)
{
	dwr_cfi_deinit(&f->cfi);
	elfrw_image_close(&f->img);
}

/* The rewriting of F's .eh_frame, which stays where it is, through MAP. */
static inline struct dwr_rw_frame_in frame_in(const struct frame_file *f,
					      const struct elfrw_addrmap *map)
{
	struct dwr_rw_frame_in in = {
		.cfi = &f->cfi, .map = map, .arch = &elfrw_arch_x86_64, .va = f->cfi.va
	};
	if (f->hdr && f->hdr->data) { /* a static program may have none */
		in.hdr = f->hdr->data;
		in.hdr_size = f->hdr->hdr.sh_size;
		in.hdr_va = f->hdr->hdr.sh_addr;
	}
	return in;
}

/* One unit per FDE (overlapping ones left out), in one section around them all; nothing moves.
 * To be finished by elfrw_addrmap_finish(). */
static inline void frame_units(struct elfrw_addrmap *map, const struct dwr_cfi *cfi)
{
	*map = (struct elfrw_addrmap){ 0 };
	map->unit = calloc(cfi->fde.len + 1, sizeof *map->unit);
	map->section = calloc(1, sizeof *map->section);
	map->n_sections = 1;
	for (size_t i = 0; i < cfi->fde.len; i++) {
		const struct dwr_fde *d = &cfi->fde.data[cfi->by_pc[i]];
		struct elfrw_addrmap_unit *u = &map->unit[map->n_units];
		if (d->pc_begin == d->pc_end || (map->n_units && d->pc_begin < u[-1].old_end))
			continue;
		*u = (struct elfrw_addrmap_unit){
			d->pc_begin, d->pc_end, d->pc_begin, d->pc_begin, map->n_units, 0, 0
		};
		map->n_units++;
	}
	struct elfrw_addrmap_section *s = map->section;
	s->old = s->new_start = map->unit[0].old;
	s->old_end = s->new_end = map->unit[map->n_units - 1].old_end;
}

static char *scratch; /* the folder for what is compiled */

/* Compiles PROGRAM (a format of printf(1), C++) with COMMAND into the scratch folder; NULL when
 * that compiler or linker is missing. */
static inline const char *compile(const char *program, const char *command)
{
	static char path[512];
	char line[8192];
	snprintf(path, sizeof path, "%s/t", scratch);
	snprintf(line, sizeof line, "printf '%s' > %s/t.cc && cd %s && %s t.cc -o t 2>/dev/null",
		 program, scratch, scratch, command);
	if (system(line)) {
		print_message("         skipped: %s\n", command);
		return NULL;
	}
	return path;
}

static inline int scratch_make(void **state)
{
	(void)state;
	char name[] = "/tmp/test_frames.XXXXXX";
	scratch = mkdtemp(name) ? strdup(name) : NULL;
	return scratch ? 0 : -1;
}

static inline int scratch_remove(void **state)
{
	(void)state;
	char line[600];
	snprintf(line, sizeof line, "rm -rf %s", scratch);
	int rc = system(line);
	free(scratch);
	return rc;
}
#endif
