/* segment.c: a core with more segments than libdwfl can handle.
 *
 * For each segment libdwfl goes through a table of half of the segments below it
 * (dwfl_segment_report_module), and for each read through the program headers.  64 000 segments
 * take seconds, and a file can have millions.  libdwfl needs only the segments of modules; core.c
 * reads memory and knows all segments.  So for a core of more than MOST, libdwfl gets a copy of its
 * headers in memory with only MOST segments: those that begin as an ELF file does, the NEXT ones
 * behind each of these, which hold the rest of the module, and the largest of the others, which
 * hold the lists of the dynamic linker.  They are in address order, as the kernel writes them.
 *
 * Cost: nothing for other cores, n log n for these. */
#include "icf/trace/state.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST       8192
#define NEXT       16
#define MOST_NOTES 64 /* program headers of other kinds: the kernel writes one */

enum { HEAD, BEHIND, OTHER };

struct candidate {
	uint64_t start, size;
	size_t index; /* of the program header */
	uint8_t kind;
};

static int by_start(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_worth(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static bool begins_as_elf(const struct icf_unwind *u, const GElf_Phdr *ph)
{
	char magic[SELFMAG];
	return ph->p_filesz >= SELFMAG &&
	       pread(u->fd, magic, SELFMAG, (off_t)ph->p_offset) == SELFMAG &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

/* Sorts the N candidates C so that the first MOST are to be shown. */
static void choose(struct candidate *c, size_t n)
{
	qsort(c, n, sizeof *c, by_start);
	for (size_t i = 0, left = 0; i < n; i++) {
		if (c[i].kind == HEAD)
			left = NEXT;
		else if (left) {
			c[i].kind = BEHIND;
			left--;
		}
	}
	qsort(c, n, sizeof *c, by_worth);
}

/* Makes the program headers SHOWN all that u->core has. */
static struct elfrw_err *show(struct icf_unwind *u, const GElf_Phdr *shown, size_t n)
{
	GElf_Ehdr eh;
	elf_end(u->core);
	u->core = elf_begin(u->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	bool ok = u->core && gelf_getehdr(u->core, &eh);
	if (ok) {
		eh.e_phnum = (GElf_Half)n;
		ok = gelf_update_ehdr(u->core, &eh);
	}
	for (size_t i = 0; ok && i < n; i++) {
		GElf_Phdr ph = shown[i];
		ok = gelf_update_phdr(u->core, (int)i, &ph);
	}
	return ok ? NULL : elfrw_error("cannot be read: %s", elf_errmsg(-1));
}

/* Shows the first MOST of the N_C candidates C, behind N notes in SHOWN, which has room for
 * them. */
static struct elfrw_err *show_first(struct icf_unwind *u, struct candidate *c, size_t n_c,
				    GElf_Phdr *shown, size_t n)
{
	bool all = n_c <= MOST || c[MOST].kind == OTHER;
	size_t few = n_c < MOST ? n_c : MOST;
	qsort(c, few, sizeof *c, by_start);
	for (size_t i = 0; i < few; i++)
		if (!gelf_getphdr(u->core, (int)c[i].index, &shown[n++]))
			return elfrw_error("truncated: program header %zu is not in the file",
					   c[i].index);
	ELFRW_TRY(show(u, shown, n));
	if (all || u->truncated)
		return NULL;
	if (asprintf(&u->truncated, "too many segments: programs are looked for in %u of %zu", MOST,
		     n_c) >= 0)
		return NULL;
	u->truncated = NULL;
	return &elfrw_err_nomem;
}

struct elfrw_err *icf_unwind_few_segments(struct icf_unwind *u)
{
	size_t n, n_notes = 0;
	VEC(struct candidate) c = { 0 };
	if (elf_getphdrnum(u->core, &n) != 0 || n <= MOST)
		return NULL;
	GElf_Phdr *shown = malloc((MOST_NOTES + MOST) * sizeof *shown), ph;
	struct elfrw_err *err = shown ? NULL : &elfrw_err_nomem;
	for (size_t i = 0; i < n && !err; i++) {
		if (!gelf_getphdr(u->core, (int)i, &ph))
			continue;
		if (ph.p_type != PT_LOAD) {
			if (n_notes < MOST_NOTES)
				shown[n_notes++] = ph;
			continue;
		}
		struct candidate *x = VEC_PUSH(&c);
		if (x)
			*x = (struct candidate){ ph.p_vaddr, ph.p_memsz, i,
						 begins_as_elf(u, &ph) ? HEAD : OTHER };
		else
			err = &elfrw_err_nomem;
	}
	if (!err && c.len) {
		choose(c.data, c.len);
		err = show_first(u, c.data, c.len, shown, n_notes);
	}
	VEC_FREE(&c);
	free(shown);
	return err;
}
