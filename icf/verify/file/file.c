/* file.c: ELF header, sections and segments of OUT.  They must follow from those of IN, and the
 * file itself must be sound: nothing overlaps, everything lies where a header says, and offsets are
 * congruent to addresses. */
#include "elfrw/arch/machine.h"
#include "elfrw/pair.h"
#include "icf/verify/file/state.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

struct extent {
	uint64_t start, end;
	const char *name;
};

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Is the byte at offset AT of OUT the same as IN's at that address, in no section there either? */
static bool was_there(const struct icf_vclaim *c, uint64_t at)
{
	for (uint32_t p = 0; p < c->out.n_phdrs; p++) {
		const Elf64_Phdr *ph = &c->out.phdr[p];
		if (ph->p_type != PT_LOAD || at < ph->p_offset || at - ph->p_offset >= ph->p_filesz)
			continue;
		uint64_t va = at - ph->p_offset + ph->p_vaddr;
		const Elf64_Phdr *old = icf_vfile_load_at(&c->in, va, 1);
		for (uint32_t i = 1; i < c->in.n_sections; i++) {
			const Elf64_Shdr *sh = &c->in.section[i].hdr;
			if ((sh->sh_flags & SHF_ALLOC) && sh->sh_type != SHT_NOBITS &&
			    va - sh->sh_addr < sh->sh_size)
				return false;
		}
		return old && va - old->p_vaddr < old->p_filesz &&
		       c->in.base[old->p_offset + (va - old->p_vaddr)] == c->out.base[at];
	}
	return false;
}

/* The names of sections must be those that the headers of OUT use; all others must be IN's. */
static struct elfrw_err *check_section_names(struct icf_vlog *log, const struct elfrw_image *in,
					     const struct elfrw_image *out)
{
	const struct elfrw_section *a = &in->section[in->shstrndx],
				   *b = &out->section[out->shstrndx];
	if (!out->shstrndx || !b->data || !b->hdr.sh_size)
		return NULL;
	uint64_t size = b->hdr.sh_size;
	uint8_t *used = calloc(size, 1);
	if (!used)
		return &elfrw_err_nomem;
	bool ok = !b->data[0] && !b->data[size - 1];
	for (uint32_t k = 1; k < out->n_sections; k++)
		for (uint64_t at = out->section[k].hdr.sh_name; at < size && !used[at]; at++) {
			used[at] = 1;
			if (!b->data[at])
				break;
		}
	for (uint64_t at = 0; at < size && ok; at++) {
		uint64_t n = 0;
		while (at + n < size && !used[at + n] && b->data[at + n])
			n++;
		ok = !n || (a->data && memmem(a->data, a->hdr.sh_size, b->data + at, n));
		at += n;
	}
	if (!ok)
		icf_vlog_bad(log, ICF_VC_SECTION,
			     "names: %s: expected those of the sections, found others", b->name);
	free(used);
	return NULL;
}

/* The stripped file of a pair must name a debug file and have its checksum (gdb manual, "Debugging
 * Information in Separate Files").  The file may have another name by now; with `icfold --verify`
 * it does not have its name yet. */
static void check_link(struct icf_vlog *log, const struct elfrw_pair *pair)
{
	const struct elfrw_section *s = elfrw_image_section(&pair->program, ".gnu_debuglink");
	if (!s || !s->data)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	const char *name = elfrw_rbuf_cstr(&r);
	log->checked[ICF_VC_NOTE]++;
	bool zeros = true;
	while (elfrw_rbuf_ok(&r) && (elfrw_rbuf_off(&r) & 3))
		zeros &= !elfrw_rbuf_u8(&r);
	uint32_t sum = elfrw_rbuf_u32(&r);
	if (!elfrw_rbuf_ok(&r) || elfrw_rbuf_left(&r) || !zeros ||
	    sum != elfrw_crc32(pair->debug.base, pair->debug.size) || !*name || strchr(name, '/'))
		icf_vlog_bad(
			log, ICF_VC_NOTE,
			"link: .gnu_debuglink: expected a name and the checksum of the debug file, found others");
}

static uint64_t headers_end(const struct elfrw_image *img)
{
	return img->ehdr.e_shoff + (uint64_t)img->n_sections * sizeof(Elf64_Shdr);
}

/* The end of what headers describe in IN. */
static uint64_t end_of(const struct elfrw_image *in)
{
	uint64_t end = headers_end(in),
		 at = in->ehdr.e_phoff + (uint64_t)in->n_phdrs * sizeof(Elf64_Phdr);
	if (at > end)
		end = at;
	for (uint32_t i = 1; i < in->n_sections; i++) {
		at = in->section[i].hdr.sh_offset + in->section[i].hdr.sh_size;
		if (in->section[i].data && at > end)
			end = at;
	}
	for (uint32_t p = 0; p < in->n_phdrs && !in->separate; p++) {
		at = in->phdr[p].p_offset + in->phdr[p].p_filesz;
		if (in->phdr[p].p_type != PT_NULL && in->phdr[p].p_filesz && at > end)
			end = at;
	}
	return end < in->size ? end : in->size;
}

/* Behind the END of OUT must be the data appended to IN, and nothing else.  It must be at the same
 * place relative to the start of the file and to the section headers before it.  Fewer than 16
 * zeros may be anywhere. */
static void check_end(struct icf_vlog *log, const struct elfrw_image *in,
		      const struct elfrw_image *out, uint64_t end)
{
	uint64_t was = end_of(in), size = in->size - was, zeros = 0;
	log->checked[ICF_VC_FILE]++;
	if (out->size < end || out->size - end < size) {
		icf_vlog_bad(log, ICF_VC_FILE, "end: expected %llu bytes behind 0x%llx, found less",
			     ICF_VX(size), ICF_VX(end));
		return;
	}
	while (zeros < size && !in->base[was + zeros])
		zeros++;
	bool any = zeros == size && size < 16;
	uint64_t want = any ? end : was, at = out->size - size;
	bool moved = at != want || (!any && headers_end(in) == was && headers_end(out) != was);
	for (uint64_t k = end; k < at && !moved; k++)
		moved = out->base[k] != 0;
	if (moved)
		icf_vlog_bad(
			log, ICF_VC_FILE,
			"end: expected %llu bytes that are appended at 0x%llx, right behind what is before them, found 0x%llx",
			ICF_VX(size), ICF_VX(want), ICF_VX(at));
	else if (size && memcmp(in->base + was, out->base + at, size) != 0)
		icf_vlog_bad(
			log, ICF_VC_FILE,
			"end: expected the bytes that are appended to the input at 0x%llx, found others",
			ICF_VX(at));
}

/* Checks the fields of the ELF header that no fold changes. */
static void check_header(struct icf_vlog *log, const struct elfrw_image *in,
			 const struct elfrw_image *out)
{
	const Elf64_Ehdr *a = &in->ehdr, *b = &out->ehdr;
	log->checked[ICF_VC_FILE]++;
	if (memcmp(a->e_ident, b->e_ident, EI_NIDENT) != 0 || a->e_type != b->e_type ||
	    !elfrw_same_arch(a, b) || a->e_version != b->e_version || a->e_flags != b->e_flags ||
	    a->e_ehsize != b->e_ehsize || a->e_phentsize != b->e_phentsize ||
	    a->e_shentsize != b->e_shentsize)
		icf_vlog_bad(
			log, ICF_VC_FILE,
			"header: expected the input's identification, type, machine and flags, found others");
	if (a->e_phoff != b->e_phoff && !out->separate)
		icf_vlog_bad(log, ICF_VC_FILE,
			     "program headers: expected at 0x%llx, found at 0x%llx",
			     ICF_VX(a->e_phoff), ICF_VX(b->e_phoff));
}

/* Writes the parts of the file OUT to E, by offset, and returns how many they are.  E has room for
 * the three headers and all sections. */
static uint32_t list_extents(const struct elfrw_image *out, struct extent *e)
{
	const Elf64_Ehdr *b = &out->ehdr;
	uint32_t n = 0;
	e[n++] = (struct extent){ 0, b->e_ehsize, "ELF header" };
	e[n++] = (struct extent){ b->e_phoff,
				  b->e_phoff + (uint64_t)out->n_phdrs * sizeof(Elf64_Phdr),
				  "program headers" };
	e[n++] = (struct extent){ b->e_shoff,
				  b->e_shoff + (uint64_t)out->n_sections * sizeof(Elf64_Shdr),
				  "section headers" };
	for (uint32_t k = 1; k < out->n_sections; k++) {
		const Elf64_Shdr *s = &out->section[k].hdr;
		if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && s->sh_size)
			e[n++] = (struct extent){ s->sh_offset, s->sh_offset + s->sh_size,
						  out->section[k].name };
	}
	qsort(e, n, sizeof *e, extent_order);
	return n;
}

/* Checks that the N parts E of OUT lie in the file, that no two overlap, and that the bytes between
 * them are zero or those of the input. */
static void check_extents(const struct icf_vclaim *c, struct icf_vlog *log,
			  const struct elfrw_image *out, const struct extent *e, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		log->checked[ICF_VC_FILE]++;
		if (k && e[k].start < e[k - 1].end)
			icf_vlog_bad(
				log, ICF_VC_FILE,
				"overlap: %s and %s at 0x%llx: expected 0x%llx or later, found 0x%llx",
				e[k - 1].name, e[k].name, ICF_VX(e[k].start), ICF_VX(e[k - 1].end),
				ICF_VX(e[k].start));
		/* Bytes between are loaded, too. */
		for (uint64_t at = k ? e[k - 1].end : 0; k && at < e[k].start && at < out->size;
		     at++)
			if (out->base[at] && (out->separate || !was_there(c, at))) {
				icf_vlog_bad(
					log, ICF_VC_FILE,
					"gap: byte 0x%llx, before %s: expected 0, found 0x%02x",
					ICF_VX(at), e[k].name, out->base[at]);
				break;
			}
		if (e[k].end > out->size || e[k].end < e[k].start)
			icf_vlog_bad(log, ICF_VC_FILE,
				     "bounds: %s: expected to end before 0x%llx, found 0x%llx",
				     e[k].name, ICF_VX(out->size), ICF_VX(e[k].end));
	}
}

static struct elfrw_err *check_layout(const struct icf_vclaim *c, struct icf_vlog *log,
				      const struct elfrw_image *in, const struct elfrw_image *out)
{
	check_header(log, in, out);
	struct extent *e = malloc((out->n_sections + 3) * sizeof *e);
	if (!e)
		return &elfrw_err_nomem;
	uint32_t n = list_extents(out, e);
	check_extents(c, log, out, e, n);
	uint64_t end = e[n - 1].end;
	free(e);
	icf_vfile_null(log, out);
	ELFRW_TRY(check_section_names(log, in, out));
	check_end(log, in, out, end);
	return NULL;
}

struct elfrw_err *icf_v_check_file(const struct icf_vclaim *c, struct icf_vlog *log)
{
	icf_vfile_sections(c, log);
	icf_vfile_loads(c, log);
	icf_vfile_segments(c, log);
	const struct elfrw_pair *a = c->in.pair, *b = c->out.pair;
	if (b)
		check_link(log, b);
	if (b)
		ELFRW_TRY(check_layout(c, log, a ? &a->debug : &c->in, &b->debug));
	return check_layout(c, log, a ? &a->program : &c->in, b ? &b->program : &c->out);
}
