/* place.c: programs whose places other things know: a boot loader, a memory protection unit, the
 * processor's exceptions.  Firmware and kernels are such programs.
 *
 * Where a segment is loaded elsewhere than it runs (its physical address, ELF's LMA), start-up code
 * copies it, by addresses that the linker script computed from both: `LOADADDR(.data)`, or the end
 * of the code before it.  Nobody could tell these from others, so nothing moves. */
#include "icf/infer/parts.h"
#include "icf/infer/unit.h"

#define PAGE     UINT64_C(4096)
#define ENTRIES  16 /* of a table of vectors */
#define AT_LEAST 4  /* of them, in a row, that nothing names */

/* Does anything have the address VA? */
static bool is_named(const struct icf_program *prog, uint64_t va)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].target == va)
				return true;
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].target == va)
			return true;
	return false;
}

/* Sets the bits (of all code) of what anything refers to. */
static bool mark_targets(const struct icf_program *prog, struct icf_bits *ret)
{
	if (!icf_bits_init(ret, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			icf_set_bit(ret, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		icf_set_bit(ret, prog->dataref.data[i].target);
	return true;
}

static void judge_layout(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		/* Some tools leave the field empty. */
		if (ph->p_type == PT_LOAD && ph->p_memsz && ph->p_paddr &&
		    ph->p_paddr != ph->p_vaddr)
			icf_infer_loose(prog, ph->p_vaddr,
					"it is loaded elsewhere than it runs (physical address)");
	}
	if (img->ehdr.e_entry && !icf_in_exec(prog, img->ehdr.e_entry))
		icf_infer_loose(prog, img->ehdr.e_entry, "the entry point is not in its code");
	/* Pages of code get their permissions by such an end.  If the code became shorter, it
	 * would be the end of no page. */
	for (size_t e = 0; e < prog->exec.len; e++) {
		const uint64_t end = prog->exec.data[e].end;
		if (end % PAGE == 0 && elfrw_image_section_at(img, end) == 0 && is_named(prog, end))
			icf_infer_loose(prog, end,
					"the program has the address of its code's last page");
	}
}

/* Do functions begin at the first AT_LEAST places of a table of vectors at unit FIRST? */
static bool looks_like_vectors(const struct icf_program *prog, uint32_t first)
{
	const struct icf_unit *u = &prog->unit.data[first];
	for (uint32_t k = 1; k < AT_LEAST; k++)
		if (first + k >= prog->unit.len ||
		    u[k].start != u->start + k * (uint64_t)prog->arch->vectors_step)
			return false;
	return u->start % prog->arch->vectors_align == 0;
}

/* The processor enters the table's functions by their distance from its start, which alone is
 * named. */
static struct elfrw_err *pin_vectors(struct icf_program *prog)
{
	const uint64_t size = (uint64_t)ENTRIES * prog->arch->vectors_step;
	struct icf_bits named = { 0 };
	if (!prog->arch->vectors_align)
		return NULL;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		if (!looks_like_vectors(prog, i))
			continue;
		if (!named.bits && !mark_targets(prog, &named))
			return &elfrw_err_nomem;
		bool alone = true;
		for (uint32_t k = 1; k < AT_LEAST; k++)
			alone &= !icf_bit(&named, prog->unit.data[i + k].start);
		for (uint32_t k = i; k < prog->unit.len && alone &&
				     prog->unit.data[k].start < prog->unit.data[i].start + size;
		     k++)
			icf_pin_unit(prog, k);
	}
	icf_bits_deinit(&named);
	return NULL;
}

struct elfrw_err *icf_infer_places(struct icf_program *prog)
{
	/* Such a word holds a distance from anywhere, to anywhere in a function. */
	for (uint32_t i = 0; i < prog->unit.len && prog->short_words; i++)
		icf_pin_unit(prog, i);
	judge_layout(prog);
	return pin_vectors(prog);
}
