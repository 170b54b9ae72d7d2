/* output_debug.c: the debug file that goes with the output of a pair (pair.h).
 *
 * The file has the form that objcopy --only-keep-debug gives it.  It has the section headers of the
 * whole program.  Loaded sections have no contents, except notes, which hold the build-id.
 * Sections that are not loaded follow.  Program headers are those of the output with nothing in the
 * file, for readers that compare addresses.  Nothing is decided here: addresses and contents are
 * those of the output, which was laid out before. */
#include "elfrw/output.h"
#include "elfrw/base/align.h"
#include "elfrw/names.h"
#include "elfrw/pair.h"
#include "elfrw/symtab.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct job {
	const struct elfrw_output *out;
	const struct elfrw_image *img, *old; /* both of a pair; the older debug file */
	uint32_t *index;                     /* by section of the pair */
	uint64_t *offset;                    /* the same, then those of added sections */
	uint32_t *name;                      /* the same: offsets in the name table */
	struct elfrw_name_table names;       /* no data: the older file's table */
	Elf64_Shdr *shdr;
	uint32_t n; /* section headers */
	Elf64_Phdr *phdr;
	uint32_t n_phdrs;
	uint64_t end; /* of the file, so far */
};

static bool is_alloc(const struct job *j, uint32_t i)
{
	return j->img->section[i].hdr.sh_flags & SHF_ALLOC;
}

/* Does the older file's section have contents that the new one keeps? */
static bool has_contents(const struct job *j, uint32_t i)
{
	const struct elfrw_section *s = &j->old->section[j->img->section[i].in_debug];
	return s->data && (!is_alloc(j, i) || s->hdr.sh_type == SHT_NOTE);
}

/* Notes get the offsets that their segment would give them, if those are free. */
static void place_notes(struct job *j)
{
	uint64_t base = UINT64_MAX;
	for (uint32_t p = 0; p < j->n_phdrs && base == UINT64_MAX; p++)
		if (j->out->phdr.data[p].p_type == PT_LOAD && j->out->phdr.data[p].p_offset == 0)
			base = j->out->phdr.data[p].p_vaddr;
	for (uint32_t i = 1; i < j->img->n_sections; i++) {
		const struct elfrw_outsec *s = &j->out->sec[i];
		if (!s->debug || !is_alloc(j, i))
			continue;
		if (has_contents(j, i)) {
			uint64_t want = s->addr - base;
			j->end = want >= j->end && want - j->end < elfrw_image_page(j->img)
					 ? want
					 : elfrw_align_up(j->end, s->align);
		}
		j->offset[i] = j->end;
		if (has_contents(j, i))
			j->end += s->size;
	}
}

struct place {
	uint64_t offset;
	uint32_t i;
};

static int place_order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* Places what is not loaded, in the order of the older file; then added sections. */
static struct elfrw_err *place_others(struct job *j)
{
	uint32_t n = 0;
	struct place *list = malloc(j->img->n_sections * sizeof *list);
	if (!list)
		return &elfrw_err_nomem;
	for (uint32_t i = 1; i < j->img->n_sections; i++)
		if (j->out->sec[i].debug && !is_alloc(j, i))
			list[n++] = (struct place){
				j->old->section[j->img->section[i].in_debug].hdr.sh_offset, i
			};
	qsort(list, n, sizeof *list, place_order);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = list[k].i;
		j->end = elfrw_align_up(j->end, j->out->sec[i].align);
		j->offset[i] = j->end;
		if (has_contents(j, i))
			j->end += i == j->img->shstrndx ? j->names.size : j->out->sec[i].size;
	}
	free(list);
	for (size_t i = 0; i < j->out->added.len; i++) {
		const struct elfrw_newsec *s = &j->out->added.data[i];
		if (!s->debug)
			continue;
		j->end = elfrw_align_up(j->end, s->align);
		j->offset[j->img->n_sections + i] = j->end;
		j->end += s->size;
	}
	return NULL;
}

/* The names of the older file and of added sections.  Names of dropped sections stay only if
 * symbols may use the table too. */
static struct elfrw_err *make_names(struct job *j)
{
	const struct elfrw_section *old = &j->old->section[j->old->shstrndx];
	bool shared =
		j->old->symtab && j->old->section[j->old->symtab].hdr.sh_link == j->old->shstrndx;
	size_t n = j->img->n_sections + j->out->added.len;
	const char **name = calloc(n + 1, sizeof *name);
	if (!name)
		return &elfrw_err_nomem;
	for (size_t i = 1; i < n; i++) {
		const struct elfrw_newsec *new =
			i < j->img->n_sections ? NULL : &j->out->added.data[i - j->img->n_sections];
		if (new ? !new->debug : !j->out->sec[i].debug)
			continue;
		if (!new &&shared)
			j->name[i] = j->img->section[i].hdr.sh_name;
		else
			name[i] = new ? new->name : j->img->section[i].name;
	}
	struct elfrw_name_head head = { 0 };
	if (shared)
		head = (struct elfrw_name_head){ old->data, old->hdr.sh_size };
	struct elfrw_err *err = elfrw_names(name, n, head, j->name, &j->names);
	free(name);
	return err;
}

static void make_shdrs(struct job *j)
{
	uint32_t n = 1;
	for (uint32_t i = 1; i < j->img->n_sections; i++) {
		const struct elfrw_outsec *s = &j->out->sec[i];
		if (!s->debug)
			continue;
		const Elf64_Shdr *old = &j->old->section[j->img->section[i].in_debug].hdr;
		Elf64_Shdr *sh = &j->shdr[n++];
		*sh = *old;
		if (is_alloc(j, i) && !has_contents(j, i))
			sh->sh_type = SHT_NOBITS;
		else
			sh->sh_flags = s->flags;
		sh->sh_name = j->name[i];
		sh->sh_addr = s->addr;
		sh->sh_size = i == j->img->shstrndx ? j->names.size : s->size;
		sh->sh_addralign = s->align;
		sh->sh_offset = j->offset[i];
		/* The pair's sections are numbered as in the older file. */
		sh->sh_link = j->index[old->sh_link];
		if (old->sh_type == SHT_SYMTAB)
			sh->sh_info = s->info;
		else if (((old->sh_flags & SHF_INFO_LINK) ||
			  j->img->section[i].hdr.sh_type == SHT_RELA || old->sh_type == SHT_REL) &&
			 old->sh_info < j->old->n_sections)
			sh->sh_info = j->index[old->sh_info];
	}
	for (size_t i = 0; i < j->out->added.len; i++) {
		const struct elfrw_newsec *s = &j->out->added.data[i];
		if (s->debug)
			j->shdr[n++] = (Elf64_Shdr){ .sh_name = j->name[j->img->n_sections + i],
						     .sh_type = SHT_PROGBITS,
						     .sh_flags = s->flags,
						     .sh_offset = j->offset[j->img->n_sections + i],
						     .sh_size = s->size,
						     .sh_addralign = s->align };
	}
}

/* The new place of the contents that segment PH describes: [*START, *END), and the offset at which
 * it would start. */
static bool contents_of(const struct job *j, const Elf64_Phdr *ph, uint64_t *start, uint64_t *end)
{
	bool any = false;
	for (uint32_t i = 1; i < j->img->n_sections; i++) {
		const struct elfrw_outsec *s = &j->out->sec[i];
		if (!s->debug || !is_alloc(j, i) || !has_contents(j, i) || s->addr < ph->p_vaddr ||
		    s->addr - ph->p_vaddr >= ph->p_memsz)
			continue;
		if (!any)
			*start = j->offset[i] - (s->addr - ph->p_vaddr);
		any = j->offset[i] - (s->addr - ph->p_vaddr) == *start;
		if (!any)
			return false;
		*end = j->offset[i] + s->size;
	}
	return any;
}

static void make_phdrs(struct job *j)
{
	for (uint32_t p = 0; p < j->n_phdrs; p++) {
		Elf64_Phdr *ph = &j->phdr[p];
		uint64_t start = 0, end = 0;
		*ph = j->out->phdr.data[p];
		if (ph->p_type == PT_PHDR)
			continue;
		bool first = ph->p_type == PT_LOAD && ph->p_offset == 0;
		bool kept = contents_of(j, ph, &start, &end) &&
			    (ph->p_type != PT_LOAD || (first && start == 0));
		ph->p_filesz = kept ? end - start : 0;
		if (kept)
			ph->p_offset = start;
		else if (first || (!ph->p_vaddr && !ph->p_memsz))
			ph->p_offset = 0;
		else /* congruent to the address, as if it had contents */
			ph->p_offset = j->end + ((ph->p_vaddr - j->end) &
						 (ph->p_align > 1 ? ph->p_align - 1 : 0));
	}
}

/* Symbols name sections by index, and dropping changes indices. */
static uint8_t *renumber(const struct job *j, uint32_t i)
{
	const struct elfrw_outsec *s = &j->out->sec[i];
	uint8_t *p = malloc(s->size + 1);
	if (!p)
		return NULL;
	memcpy(p, s->data, s->size);
	for (struct elfrw_symbols it = elfrw_symbols_in(p, s->size, 0); elfrw_symbols_next(&it);) {
		Elf64_Sym sym = it.sym;
		uint32_t k = sym.st_shndx;
		if (k == SHN_UNDEF || k >= SHN_LORESERVE || k >= j->img->n_sections)
			continue;
		/* Notes may have made room for a program header. */
		const Elf64_Shdr *sh = &j->img->section[k].hdr;
		if (sh->sh_type == SHT_NOTE && (sh->sh_flags & SHF_ALLOC) &&
		    sym.st_value - sh->sh_addr <= sh->sh_size)
			sym.st_value += j->out->sec[k].addr - sh->sh_addr;
		sym.st_shndx = (uint16_t)j->index[k];
		memcpy(p + it.index * sizeof sym, &sym, sizeof sym);
	}
	return p;
}

static struct elfrw_err *write_section(const struct job *j, uint32_t i,
				       const struct elfrw_newfile *f)
{
	const struct elfrw_outsec *s = &j->out->sec[i];
	uint32_t type = j->img->section[i].hdr.sh_type;
	if (!s->debug || !has_contents(j, i))
		return NULL;
	if (i == j->img->shstrndx)
		return elfrw_newfile_write(f, j->names.data, j->names.size, j->offset[i]);
	if (!s->size || !s->data)
		return NULL;
	if (type != SHT_SYMTAB)
		return elfrw_newfile_write(f, s->data, s->size, j->offset[i]);
	uint8_t *p = renumber(j, i);
	struct elfrw_err *err =
		p ? elfrw_newfile_write(f, p, s->size, j->offset[i]) : &elfrw_err_nomem;
	free(p);
	return err;
}

static struct elfrw_err *write_all(const struct job *j, const struct elfrw_newfile *f)
{
	for (uint32_t i = 1; i < j->img->n_sections; i++)
		ELFRW_TRY(write_section(j, i, f));
	for (size_t i = 0; i < j->out->added.len; i++) {
		const struct elfrw_newsec *s = &j->out->added.data[i];
		if (s->debug)
			ELFRW_TRY(elfrw_newfile_write(f, s->data, s->size,
						      j->offset[j->img->n_sections + i]));
	}
	Elf64_Ehdr eh = j->old->ehdr;
	eh.e_entry = j->out->entry;
	eh.e_phnum = (uint16_t)j->n_phdrs;
	eh.e_phoff = j->n_phdrs ? sizeof eh : 0;
	eh.e_ehsize = sizeof eh;
	eh.e_shoff = elfrw_align_up(j->end, 8);
	eh.e_shnum = (uint16_t)j->n;
	eh.e_shstrndx = (uint16_t)j->index[j->img->shstrndx];
	ELFRW_TRY(elfrw_newfile_write(f, j->shdr, (uint64_t)j->n * sizeof *j->shdr, eh.e_shoff));
	ELFRW_TRY(elfrw_newfile_write(f, j->phdr, (uint64_t)j->n_phdrs * sizeof *j->phdr,
				      eh.e_phoff));
	return elfrw_newfile_write(f, &eh, sizeof eh, 0);
}

static struct elfrw_err *lay_out(struct job *j)
{
	uint32_t n = j->img->n_sections + (uint32_t)j->out->added.len;
	j->index = calloc(n, sizeof *j->index);
	j->offset = calloc(n, sizeof *j->offset);
	j->name = calloc(n, sizeof *j->name);
	j->shdr = calloc(n, sizeof *j->shdr);
	j->n_phdrs = j->old->n_phdrs ? (uint32_t)j->out->phdr.len : 0;
	j->phdr = calloc(j->n_phdrs + 1, sizeof *j->phdr);
	if (!j->index || !j->offset || !j->name || !j->shdr || !j->phdr)
		return &elfrw_err_nomem;
	j->n = 1;
	for (uint32_t i = 1; i < n; i++)
		if (i < j->img->n_sections ? j->out->sec[i].debug
					   : j->out->added.data[i - j->img->n_sections].debug)
			j->index[i] = j->n++;
	if (j->n >= SHN_LORESERVE)
		return elfrw_error("too many sections");
	ELFRW_TRY(make_names(j));
	j->end = sizeof(Elf64_Ehdr) + (uint64_t)j->n_phdrs * sizeof *j->phdr;
	place_notes(j);
	make_phdrs(j);
	ELFRW_TRY(place_others(j));
	make_shdrs(j);
	return NULL;
}

static struct elfrw_err *checksum(const struct elfrw_newfile *f, uint64_t size, uint32_t *ret)
{
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, f->fd, 0);
	if (p == MAP_FAILED)
		return elfrw_error_errno(errno, "cannot read back");
	*ret = elfrw_crc32(p, size);
	munmap(p, size);
	return NULL;
}

struct elfrw_err *elfrw_output_begin_debug(const struct elfrw_output *out, const char *path,
					   struct elfrw_newfile *ret, uint32_t *crc)
{
	struct job j = { .out = out, .img = out->img, .old = &out->img->pair->debug };
	ELFRW_TRY(elfrw_newfile_begin(ret, path, j.old->mode & 0777));
	struct elfrw_err *err =
		ret->in_place
			? elfrw_error("is a device, which cannot be read back for its checksum")
			: lay_out(&j);
	if (!err)
		err = write_all(&j, ret);
	if (!err)
		err = checksum(ret, elfrw_align_up(j.end, 8) + (uint64_t)j.n * sizeof *j.shdr, crc);
	free(j.index);
	free(j.offset);
	free(j.name);
	free(j.shdr);
	free(j.phdr);
	free(j.names.data);
	if (err)
		elfrw_newfile_drop(ret);
	return err;
}
