/* align.c: by how much a unit may be moved, and what the address of its entry promises.
 *
 * No linked file says what alignment a function asked for.  The estimate is the largest power of
 * two that divides the function's address, up to its section's alignment, which is the largest that
 * anything in the section asked for.  Most functions asked for less, and a smaller alignment lets a
 * function move further.  So the estimate applies only to functions whose address somebody may look
 * at (tags in low bits, a page found by its number), to functions at a multiple of the section's
 * alignment, and to functions that the padding before them shows to be aligned.  All others keep
 * only what functions usually have.
 *
 * Assumptions: code that looks at low bits of an address got the address from a reference, from a
 * symbol that other modules see, or from a function symbol.  Nothing is aligned to more than its
 * section, unless the padding before it shows that (a linker script's ALIGN).  verify checks every
 * such address in both files (verify/align.c).  Cost: one pass over units and symbols, and over the
 * references of units with references into their middle. */
#include "icf/fold/fold.h"

/* Larger than any page, and small enough that no sum of an address and an alignment overflows. */
#define MAX_ALIGN 30

static uint8_t larger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

/* Alignments are exponents of two, here and below.  of_section(): that of section E; shown(): that
 * of the address VA, at most LIMIT. */
static uint8_t of_section(const struct icf_program *prog, const struct icf_exec *e)
{
	/* An even address stays even, whatever the section asks for: many tag it. */
	uint64_t align = prog->img->section[e->shndx].hdr.sh_addralign;
	uint8_t ret = align > 1 ? (uint8_t)__builtin_ctzll(align) : 1;
	return ret < MAX_ALIGN ? ret : MAX_ALIGN;
}

static uint8_t shown(uint64_t va, uint8_t limit)
{
	uint8_t low = va ? (uint8_t)__builtin_ctzll(va) : limit;
	return low < limit ? low : limit;
}

/* The smallest alignment that explains why the unit at START does not begin at BEFORE, where the
 * unit before it ends; 0: none. */
static uint8_t by_padding(uint64_t before, uint64_t start)
{
	uint64_t gap = start - before;
	uint8_t a = gap ? (uint8_t)(64 - __builtin_clzll(gap)) : 0;
	return gap && a <= MAX_ALIGN && shown(start, MAX_ALIGN) >= a ? a : 0;
}

/* The alignment that unit I must keep, judged by its start; 0: only what functions usually have,
 * which is *LEAST. */
static uint8_t by_start(const struct icf_program *prog, uint32_t i, uint8_t section, uint8_t usual,
			uint8_t *least)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_exec *e = &prog->exec.data[u->sec];
	uint8_t limit = section < usual ? section : usual;
	uint8_t full = shown(u->start, section);
	*least = shown(u->start, limit);
	if (i == e->unit)
		return full;
	uint8_t padding = by_padding(prog->unit.data[i - 1].end, u->start);
	if (padding > limit)
		return larger(full, padding);
	bool told = full == section && (uint64_t)1 << section > prog->arch->start_align;
	return told || (u->flags & ICF_UNIT_OBSERVED) ? larger(full, *least) : 0;
}

/* Something refers to VA, inside of a unit.  It may be the unit's address with a tag in the bits
 * that the alignment leaves free: then the unit keeps its alignment. */
static void keep_tag(struct icf_program *prog, uint32_t unit, uint64_t va)
{
	struct icf_unit *u = &prog->unit.data[unit];
	uint8_t start = shown(u->start, of_section(prog, &prog->exec.data[u->sec]));
	if (va - u->start < (uint64_t)1 << start)
		u->promise = larger(u->promise, start);
	u->grain = larger(u->grain, u->promise);
}

/* Something refers to VA, inside of a unit: the unit keeps the alignment of VA. */
static void keep_point(struct icf_program *prog, uint32_t unit, uint64_t va)
{
	struct icf_unit *u = &prog->unit.data[unit];
	u->promise = larger(u->promise, shown(va, of_section(prog, &prog->exec.data[u->sec])));
	u->grain = larger(u->grain, u->promise);
}

static void keep_symbols(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		for (uint32_t s = u->sym_first; s < u->sym_first + u->n_sym; s++) {
			const struct icf_symbol *sym = &prog->sym.data[s];
			if (sym->value != u->start &&
			    (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC ||
			     sym->bind != STB_LOCAL))
				keep_point(prog, i, sym->value);
		}
	}
}

static void keep_references(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].unit != ICF_NONE && ref[r].kind != ICF_REF_BRANCH &&
			    (prog->unit.data[ref[r].unit].flags & ICF_UNIT_INNER)) {
				keep_point(prog, ref[r].unit, ref[r].target);
				if (ref[r].unit != i)
					keep_tag(prog, ref[r].unit, ref[r].target);
			}
	}
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (d->unit != ICF_NONE && d->table == ICF_NONE &&
		    (prog->unit.data[d->unit].flags & ICF_UNIT_INNER)) {
			keep_point(prog, d->unit, d->target);
			if (!d->quiet)
				keep_tag(prog, d->unit, d->target);
		}
	}
}

void icf_find_alignments(struct icf_program *prog)
{
	uint8_t usual = (uint8_t)__builtin_ctz(prog->arch->function_align);
	bool inner = false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		uint8_t section = of_section(prog, &prog->exec.data[u->sec]);
		uint8_t least;
		u->promise = by_start(prog, i, section, usual, &least);
		u->entry_align = u->flags & ICF_UNIT_OBSERVED ? shown(u->start, section) : 0;
		if (u->flags & ICF_UNIT_DATA_READ)
			u->promise = larger(u->promise,
					    section > ICF_READ_ALIGN ? section : ICF_READ_ALIGN);
		if (u->flags & ICF_UNIT_POOL)
			u->promise = larger(u->promise, u->read_align);
		u->grain = larger(u->promise, least);
		inner |= (u->flags & ICF_UNIT_INNER) != 0;
	}
	keep_symbols(prog);
	if (inner)
		keep_references(prog);
}
