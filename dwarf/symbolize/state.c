/* state.c: shared by all parts of a symbolizer: strings that live as long as it does, warnings, its
 * files and their sections. */
#include "dwarf/symbolize/state.h"
#include <stdlib.h>
#include <string.h>

struct dwr_arena_chunk {
	struct dwr_arena_chunk *next;
	char data[];
};

void *dwr_arena_alloc(struct dwr_arena *a, size_t size)
{
	if (size > a->size - a->used) {
		size_t n = size > 1 << 16 ? size : 1 << 16;
		struct dwr_arena_chunk *c = malloc(sizeof *c + n);
		if (!c)
			return NULL;
		c->next = a->chunk;
		*a = (struct dwr_arena){ .chunk = c, .size = n };
	}
	void *p = a->chunk->data + a->used;
	a->used += size;
	return p;
}

void dwr_arena_deinit(struct dwr_arena *a)
{
	for (struct dwr_arena_chunk *c = a->chunk, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct dwr_arena){ 0 };
}

struct elfrw_err *dwr_sym_warn(struct dwr_sym *sym, struct elfrw_err *err)
{
	if (err == &elfrw_err_nomem)
		return err;
	if (err && !sym->warning && !(sym->warning = strdup(elfrw_err_text(err))))
		sym->nomem = true;
	elfrw_err_free(err);
	return NULL;
}

void dwr_sym_forget(struct dwr_sym *sym, struct elfrw_err *err)
{
	if (err == &elfrw_err_nomem)
		sym->nomem = true;
	elfrw_err_free(err);
}

struct dwr_sym_file *dwr_sym_alt(struct dwr_sym *sym)
{
	if (!sym->alt_tried) {
		sym->alt_tried = true;
		const struct dwr_sym_places places = { sym->debug_dir, sym->sysroot };
		dwr_sym_forget(sym, dwr_sym_file_supplementary(sym->debug, &places, &sym->alt));
	}
	return sym->alt;
}

struct dwr_bytes dwr_sym_sec(struct dwr_sym *sym, struct dwr_sym_file *file, enum dwr_sec id)
{
	struct dwr_section *sec = &file->secs.sec[id];
	if (!sec->loaded && file->secs.image) {
		struct elfrw_err *err = dwr_sections_load(&file->secs, id);
		if (err) {
			dwr_sym_forget(sym, dwr_sym_warn(sym, err));
			sec->loaded = true;
		}
	}
	return (struct dwr_bytes){ sec->data, sec->size };
}

struct dwr_sym_file *dwr_sym_debug_file(const struct dwr_sym *sym)
{
	return sym->debug;
}

const struct elfrw_image *dwr_sym_debug_image(const struct dwr_sym *sym, bool *apart)
{
	if (apart)
		*apart = sym->debug != sym->main;
	return &sym->debug->image;
}
