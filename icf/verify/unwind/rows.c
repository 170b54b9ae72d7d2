/* rows.c: libdw, which shares no code with this program, evaluates a sample of rows of the unwind
 * rules in both files. */
#include "icf/verify/debug/debug.h"
#include "icf/verify/unwind/state.h"
#include <stdlib.h>

/* REGS: the number of registers that rules may describe. */
static const char *rows_differ(Dwarf_Frame *a, Dwarf_Frame *b, int regs)
{
	Dwarf_Op *x, *y, mx[3], my[3];
	size_t nx, ny;
	bool sa, sb;
	if (dwarf_frame_info(a, NULL, NULL, &sa) != dwarf_frame_info(b, NULL, NULL, &sb) ||
	    sa != sb)
		return "return address column or kind of frame";
	/* libdw cannot evaluate all of them. */
	int ca = dwarf_frame_cfa(a, &x, &nx), cb = dwarf_frame_cfa(b, &y, &ny);
	if (!ca != !cb || (!ca && !icf_v_ops_same(x, nx, y, ny)))
		return "canonical frame address";
	for (int r = 0; r < regs; r++) {
		int ra = dwarf_frame_register(a, r, mx, &x, &nx),
		    rb = dwarf_frame_register(b, r, my, &y, &ny);
		if (ra != rb || (!ra && (!icf_v_ops_same(x, nx, y, ny) || (!nx && !x != !y))))
			return "register rule";
	}
	return NULL;
}

#define MAX_SAMPLES 2048

/* Compares libdw's rows at the start, in the middle and at the end of up to MAX_SAMPLES
 * descriptions. */
static void sample_rows(const struct icf_vclaim *c, struct icf_vlog *log, Dwarf_CFI *in,
			Dwarf_CFI *out)
{
	size_t n = c->cfi_in.fde.len, step = n / MAX_SAMPLES + 1;
	for (size_t k = 0; k < n; k += step) {
		const struct dwr_fde *f = &c->cfi_in.fde.data[c->cfi_in.by_pc[k]];
		uint64_t size = f->pc_end - f->pc_begin, place[3] = { 0, size / 2, size - 1 }, new;
		if (f->pc_end <= f->pc_begin || icf_v_removed(c, icf_v_find(c, f->pc_begin)) ||
		    !icf_v_code(c, f->pc_begin, &new))
			continue;
		for (int p = 0; p < 3; p++) {
			Dwarf_Frame *a = NULL, *b = NULL;
			const char *what = NULL;
			char name[200];
			if (dwarf_cfi_addrframe(in, f->pc_begin + place[p], &a) == 0) {
				log->checked[ICF_VC_FRAME_ROW]++;
				what = dwarf_cfi_addrframe(out, new + place[p], &b)
					       ? "row"
					       : rows_differ(a, b, c->arch->dwarf_registers);
			}
			if (what)
				icf_vlog_bad(
					log, ICF_VC_FRAME_ROW,
					"row: %s (0x%llx -> 0x%llx): expected the same %s, found another",
					icf_v_where(c, f->pc_begin + place[p], name),
					ICF_VX(f->pc_begin + place[p]), ICF_VX(new + place[p]),
					what);
			free(a);
			free(b);
		}
	}
}

void icf_vunwind_rows(const struct icf_vclaim *c, struct icf_vlog *log)
{
	struct icf_velf a, b;
	elf_version(EV_CURRENT);
	icf_v_elf_open(&c->in, &a);
	icf_v_elf_open(&c->out, &b);
	Dwarf_CFI *x = a.elf ? dwarf_getcfi_elf(a.elf) : NULL,
		  *y = b.elf ? dwarf_getcfi_elf(b.elf) : NULL;
	if (x && y)
		sample_rows(c, log, x, y);
	else if (x)
		icf_vlog_bad(log, ICF_VC_FRAME_ROW,
			     "table: .eh_frame: expected one that libdw reads, found: %s",
			     dwarf_errmsg(-1));
	if (x)
		dwarf_cfi_end(x);
	if (y)
		dwarf_cfi_end(y);
	icf_v_elf_close(&a);
	icf_v_elf_close(&b);
}
