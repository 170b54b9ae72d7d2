/* elf.c: a file as an image, with its symbols, vtables, sections of debug information and call
 * chains. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/stack/callchain.h"
#include "dwarf/calls/vtables.h"
#include "icf/program/program.h"
#include <string.h>

static void ask(struct elfrw_image *img)
{
	size_t sum = 0;
	for (uint32_t i = 0; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		sum += strlen(s->name) + (s->data ? s->data[0] + s->data[s->hdr.sh_size - 1] : 0u);
		const char *str = elfrw_image_string(img, i, 1);
		sum += str ? strlen(str) : 0;
		(void)elfrw_image_at(img, s->hdr.sh_addr, s->hdr.sh_size);
		(void)elfrw_image_at(img, s->hdr.sh_addr + s->hdr.sh_size - 1, 8);
	}
	FUZZ_HOLDS(sum + 1);
	struct icf_program prog = { .img = img, .arch = img->arch };
	(void)fuzz_ok(icf_load_symbols(&prog));
	icf_program_deinit(&prog);
	struct dwr_vtables vt = { 0 };
	if (fuzz_ok(dwr_vtables_read(img, img, &vt))) {
		for (size_t i = 0; i < vt.table.len && i < 16; i++)
			(void)dwr_vtables_value(img, &vt, vt.table.data[i].point);
		dwr_vtables_deinit(&vt);
	}
	struct dwr_callchain *cc;
	if (!fuzz_ok(dwr_callchain_open(img, NULL, NULL, &cc)))
		return;
	struct dwr_chain chain = { 0 };
	uint64_t addr[8], vtable[8] = { 0, 1, img->ehdr.e_entry };
	for (unsigned i = 0; i < 8; i++)
		addr[i] = img->ehdr.e_entry + i * 9;
	const struct dwr_icfold *note = dwr_callchain_note(cc);
	for (unsigned i = 0; note && i < 8 && i < note->n_groups; i++)
		addr[i] = note->map.unit[note->member[note->group[i].member].unit].body + 1;
	if (fuzz_ok(dwr_callchain_resolve(cc, addr, vtable, 8, &chain)))
		FUZZ_HOLDS(chain.frame.len == 8);
	dwr_chain_deinit(&chain);
	dwr_callchain_close(cc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elfrw_image img;
	if (fuzz_ok(elfrw_image_open(&img, fuzz_file(0, data, size)))) {
		ask(&img);
		elfrw_image_close(&img);
	}
	return 0;
}
