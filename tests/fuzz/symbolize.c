/* symbolize.c: a file that is asked for addresses in it, inlined copies, and members of groups. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/calls/icfold_note.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/rbuf.h"
#include <string.h>

static bool stop(void *ctx, const struct dwr_sym_inline *item)
{
	(void)item;
	return ++*(unsigned *)ctx < 50;
}

static size_t length(const struct dwr_sym_frames *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->len; i++) {
		const struct dwr_sym_frame *fr = &f->data[i];
		n += (fr->function ? strlen(fr->function) : 0) +
		     (fr->linkage ? strlen(fr->linkage) : 0) + (fr->file ? strlen(fr->file) : 0) +
		     (fr->start_file ? strlen(fr->start_file) : 0);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwr_sym_options opt = { .own_only = true, .path = size > 9 ? data[9] % 3 : 0 };
	struct dwr_sym *sym;
	if (!fuzz_ok(dwr_sym_open(fuzz_file(0, data, size), &opt, &sym)))
		return 0;
	struct dwr_sym_frames frames = { 0 };
	struct dwr_sym_symbol s = { 0 };
	unsigned flags = size > 10 ? data[10] & 15 : 0;
	uint64_t entry = size > 32 ? elfrw_get64(data + 24) : 0;
	size_t n = 0;
	for (unsigned i = 0; i < 48; i++) {
		if (fuzz_ok(dwr_sym_frames(sym, entry + i * 13, flags ^ (i & 3), &frames)))
			n += length(&frames);
		if (dwr_sym_symbol_at(sym, entry + i * 13, &s))
			n += strlen(dwr_sym_demangle(sym, s.name));
	}
	size_t from = 0;
	if (s.name)
		(void)dwr_sym_symbol_named(sym, s.name, &from, &s);
	unsigned count = 0;
	(void)fuzz_ok(dwr_sym_inlines(sym, s.name ? s.name : "main", stop, &count));
	(void)fuzz_ok(dwr_sym_inlines(sym, "in", stop, &count));
	const struct dwr_icfold *note = dwr_sym_note(sym);
	for (uint32_t m = 0; note && m < note->n_members && m < 32; m++) {
		uint32_t group;
		uint64_t at = note->map.unit[note->member[m].unit].body;
		(void)dwr_sym_group_at(sym, at, &group);
		if (fuzz_ok(dwr_sym_frames_for_member(sym, at + m % 7, m, flags, &frames)))
			n += length(&frames);
	}
	n += dwr_sym_warning(sym) ? strlen(dwr_sym_warning(sym)) : 0;
	FUZZ_HOLDS(n + 1);
	dwr_sym_frames_deinit(&frames);
	dwr_sym_close(sym);
	return 0;
}
