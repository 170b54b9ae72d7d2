/* run.c: distances to functions in data, in any shape.
 *
 * A distance in data is W bytes long (2, 4 or 8) at any byte offset, in units of 1, 2, 4, 8 or 16
 * bytes.  It counts from
 *   - its own place, its own end (`.long f - . - 4`; a `call` kept as data), or any place within 64
 *     bytes: its record's start or end,
 *   - the last place before it that something refers to (a table, a vtable's address point) or 8
 *     bytes behind that place (a relative vtable's symbol),
 *   - an address that the program has otherwise: the file's first byte, an executable section's
 *     start, the global offset table.
 * Only the neighbouring words distinguish such words from numbers.  Few numbers, counted from their
 * own place or end, lead to the exact entry of a distant function.  So each such word counts as a
 * distance, unless a number like it is expected in a file with that much data and that many
 * functions.  The other shapes are believed only in company: at equal steps of at most 64 bytes,
 * words of the same shape lead to different functions, and no word between leads elsewhere (zeros
 * and distances to named data may: entries without a function).  The number required depends on how
 * easily numbers have this shape.  An object whose words all have it needs fewer.
 *
 * The targets are only kept in place: the functions are pinned, the words are never written.  A
 * lone distance from anything but its own place is not found here.  The code that adds it is found
 * if it calls or jumps to the sum (word.c).  Cost: one pass over the data for each word size, which
 * tries all shapes (scan.c); and the neighbours of the words that lead to an entry (judge.c). */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/infer/run/state.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

bool icf_holds_data(const struct elfrw_section *s)
{
	static const char *const other[] = { ".eh_frame", ".gcc_except_table", ".interp", ".got" };
	if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) || !s->data)
		return false;
	switch (s->hdr.sh_type) {
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_REL:
	case SHT_RELR:
	case SHT_HASH:
	case SHT_GNU_HASH:
	case SHT_DYNSYM:
	case SHT_DYNAMIC:
	case SHT_GNU_verdef:
	case SHT_GNU_verneed:
	case SHT_GNU_versym:
	case SHT_NOBITS: return false;
	}
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (strncmp(s->name, other[i], strlen(other[i])) == 0)
			return false;
	return true;
}

static void mark_entry(struct run_job *job, uint64_t va)
{
	if (va - job->lo < job->hi - job->lo)
		icf_set_bit(&job->entry, va);
}

/* Marks the entries of all functions, including glued ones and PLT entries. */
static bool mark_entries(struct run_job *job)
{
	const struct icf_program *prog = job->prog;
	if (!icf_bits_init(&job->entry, job->lo - MARGIN, job->hi + 2 * MARGIN))
		return false;
	for (size_t i = 0; i < prog->unit.len; i++)
		mark_entry(job, prog->unit.data[i].start);
	for (size_t i = 0; i < prog->sym.len; i++)
		if (prog->sym.data[i].type == STT_FUNC || prog->sym.data[i].type == STT_GNU_IFUNC)
			mark_entry(job, prog->sym.data[i].value);
	for (size_t i = 0; i < prog->cfi.fde.len; i++)
		mark_entry(job, prog->cfi.fde.data[i].pc_begin);
	for (size_t e = 0; e < prog->exec.len; e++)
		for (uint64_t va = prog->exec.data[e].start;
		     prog->exec.data[e].linkage && va < prog->exec.data[e].end; va += 16)
			mark_entry(job, va);
	return true;
}

/* Counts the entries, and marks the blocks that have some. */
static bool mark_near(struct run_job *job)
{
	uint64_t n = 0, bytes = ((job->entry.hi - job->entry.lo) >> 3) + 1;
	/* Read 8 at a time. */
	job->near = calloc((bytes >> 4) + 2 + 8, 1);
	if (!job->near)
		return false;
	for (uint64_t b = 0; b < bytes; b++) {
		if (!job->entry.bits[b])
			continue;
		n += (unsigned)__builtin_popcount(job->entry.bits[b]);
		/* No entry is in the margin, so there are 8 bytes before each. */
		job->near[b >> 4] |= (uint8_t)(1u << (b >> 1 & 7));
		job->near[(b - 1) >> 4] |= (uint8_t)(1u << ((b - 1) >> 1 & 7));
	}
	job->chance = (double)n / 4294967296.0;
	return true;
}

/* Marks the pages that words lead to, in any shape.  Windows begin up to MAX_AWAY bytes before the
 * place that a word leads to, and touch the blocks of 2 * MAX_AWAY bytes behind their first byte:
 * one byte of `near` more on each side. */
static bool mark_pages(struct run_job *job)
{
	_Static_assert(2 * MAX_AWAY <= 8 * 16, "of `near`, the byte before and the byte behind");
	uint64_t n = ((job->hi - job->entry.lo + MAX_AWAY) >> PAGE) + 1,
		 n_near = ((job->entry.hi - job->entry.lo) >> 7) + 2, marked = 0;
	job->page = calloc(n + 1, 1);
	if (!job->page)
		return false;
	for (uint64_t k = 0; k < n_near; k++) {
		if (!job->near[k])
			continue;
		for (uint64_t to = k ? k - 1 : 0; to <= k + 1; to++)
			if (to >> (PAGE - 7) < n)
				job->page[to >> (PAGE - 7)] = 1;
	}
	for (uint64_t i = 0; i < n; i++)
		marked += job->page[i];
	job->n_page = marked < n / 2 ? n : 0;
	return true;
}

/* For each distance between words, finds the steps at which words may be adjacent: the distance
 * itself, or a part of it that leaves room for MAX_GAP others. */
static void find_steps(struct run_job *job)
{
	for (unsigned d = 1; d <= MAX_REACH; d++)
		for (unsigned n = 1; n <= MAX_GAP + 1; n++)
			if (d % n == 0 && d / n <= MAX_STEP)
				job->step[d] |= (uint64_t)1 << (d / n - 1);
}

/* Marks words that the dynamic linker sets, and the words of jump tables. */
static bool mark_known(struct run_job *job)
{
	const struct icf_bits *table = &job->map->table;
	if (!icf_bits_init(&job->known, table->lo, table->hi))
		return false;
	memcpy(job->known.bits, table->bits, ((table->hi - table->lo) >> 3) + 1);
	for (size_t i = 0; i < job->prog->dynreloc.len; i++)
		for (unsigned k = 0; k < 8; k++)
			icf_set_bit(&job->known, job->prog->dynreloc.data[i].place + k);
	return true;
}

/* Addresses that words may count from if the program has them: by an instruction that computes
 * them, or by a pointer. */
struct wanted {
	unsigned n;
	uint64_t va[9];
	bool has[9];
};

static void want(struct wanted *w, uint64_t va)
{
	w->va[w->n++] = va;
}

static void meet(struct wanted *w, uint64_t va)
{
	for (unsigned i = 0; i < w->n; i++)
		w->has[i] |= w->va[i] == va;
}

static void find_wanted(const struct icf_program *prog, struct wanted *w)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].flags & ICF_REF_LEA)
				meet(w, ref[r].target);
	}
	for (size_t i = 0; i < prog->dynreloc.len; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			meet(w, prog->dynreloc.data[i].addend);
}

bool icf_asks_for_image(const struct icf_program *prog)
{
	static const char *const name[] = { "dladdr", "dladdr1", "dl_iterate_phdr", "dlinfo" };
	const struct elfrw_section *s = &prog->img->section[prog->img->dynsym];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const char *is =
			sym.st_shndx == SHN_UNDEF
				? elfrw_image_string(prog->img, s->hdr.sh_link, sym.st_name)
				: NULL;
		for (size_t k = 0; is && k < sizeof name / sizeof *name; k++)
			if (strcmp(is, name[k]) == 0)
				return true;
	}
	return false;
}

static void add_fixed(struct run_job *job, uint64_t va)
{
	for (unsigned i = 0; i < job->n_fixed; i++)
		if (job->fixed[i] == va)
			return;
	if (job->n_fixed < MAX_FIXED)
		job->fixed[job->n_fixed++] = va;
}

static void find_fixed(struct run_job *job)
{
	const struct icf_program *prog = job->prog;
	uint64_t image = UINT64_MAX;
	struct wanted w = { 0 };
	for (uint32_t p = 0; p < prog->img->n_phdrs; p++)
		if (prog->img->phdr[p].p_type == PT_LOAD && prog->img->phdr[p].p_vaddr < image)
			image = prog->img->phdr[p].p_vaddr;
	want(&w, image);
	for (size_t e = 0; e < prog->exec.len && e < 8; e++)
		if (!prog->exec.data[e].linkage)
			want(&w, prog->exec.data[e].start);
	find_wanted(prog, &w);
	w.has[0] = image != UINT64_MAX && (w.has[0] || icf_asks_for_image(prog));
	for (unsigned i = 0; i < w.n; i++)
		if (w.has[i])
			add_fixed(job, w.va[i]);
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		/* Few numbers lead from the global offset table to a function.  The code that
		 * computes its address may not be understood. */
		if (strncmp(s->name, ".got", 4) == 0)
			add_fixed(job, s->hdr.sh_addr);
	}
}

static struct elfrw_err *look_at(void *arg, size_t i)
{
	const struct run_job *job = arg;
	return icf_run_scan(job, &job->part.data[i]);
}

#define PART 262144 /* bytes in a part of several sections */

/* Makes the parts, for each word size: each section of some size, or several small ones. */
static struct elfrw_err *find_parts(struct run_job *job)
{
	for (uint32_t first = 0, n; first < job->sec.len; first += n) {
		uint64_t size = 0;
		for (n = 0; first + n < job->sec.len && (!n || size < PART); n++)
			size += job->sec.data[first + n].hdr.sh_size;
		for (unsigned word = 2; word <= 8; word *= 2) {
			struct run_part *slot = VEC_PUSH(&job->part);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = (struct run_part){ first, n, word };
		}
	}
	return NULL;
}

static struct elfrw_err *add_section(struct run_job *job, const struct elfrw_section *s)
{
	struct elfrw_section *slot = VEC_PUSH(&job->sec);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = *s;
	job->bytes += (double)s->hdr.sh_size;
	return NULL;
}

static struct elfrw_err *search(struct run_job *job, unsigned threads)
{
	const struct icf_program *prog = job->prog;
	struct elfrw_err *err = NULL;
	find_fixed(job);
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const Elf64_Shdr *sh = &prog->img->section[i].hdr;
		if ((sh->sh_flags & SHF_ALLOC) && sh->sh_addr + sh->sh_size + 16 > job->span)
			job->span = sh->sh_addr + sh->sh_size + 16;
	}
	find_steps(job);
	if (!mark_entries(job) || !mark_near(job) || !mark_pages(job) || !mark_known(job))
		err = &elfrw_err_nomem;
	if (!err)
		err = find_parts(job);
	if (!err)
		err = elfrw_parallel(threads, job->part.len, look_at, job);
	VEC_FREE(&job->part);
	icf_bits_deinit(&job->entry);
	free(job->near);
	free(job->page);
	icf_bits_deinit(&job->known);
	return err;
}

struct elfrw_err *icf_infer_runs(struct icf_program *prog, const struct icf_data_map *map,
				 unsigned threads)
{
	struct run_job job = { .prog = prog,
			       .map = map,
			       .lo = prog->exec.data[0].start,
			       .hi = prog->exec.data[prog->exec.len - 1].end };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 1; i < prog->img->n_sections && !err; i++)
		if (icf_holds_data(&prog->img->section[i]))
			err = add_section(&job, &prog->img->section[i]);
	if (!err)
		err = search(&job, threads);
	VEC_FREE(&job.sec);
	return err;
}

struct elfrw_err *icf_infer_opaque_runs(struct icf_program *prog, unsigned threads)
{
	struct icf_data_map map;
	ELFRW_TRY(icf_data_map_init(prog, &map));
	struct run_job job = { .prog = prog,
			       .map = &map,
			       .lo = prog->exec.data[0].start,
			       .hi = prog->exec.data[prog->exec.len - 1].end,
			       .lone = true };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (u->kind != ICF_UNIT_OPAQUE)
			continue;
		struct elfrw_section s = prog->img->section[prog->exec.data[u->sec].shndx];
		s.hdr.sh_addr = u->start;
		s.hdr.sh_size = u->end - u->start;
		s.data = icf_unit_bytes(prog, u);
		err = add_section(&job, &s);
	}
	if (!err)
		err = search(&job, threads);
	VEC_FREE(&job.sec);
	icf_data_map_deinit(&map);
	return err;
}
