/* pair.c: see pair.h.
 *
 * Every loaded section must be in both files, with the same name, address and size.  Then the other
 * sections of both files belong to one link, unless build-id or checksum say otherwise.  Cost: one
 * pass over the debug file for the checksum. */
#include "elfrw/pair.h"
#include "elfrw/note.h"
#include "elfrw/arch/machine.h"
#include "elfrw/base/align.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

uint32_t elfrw_crc32(const uint8_t *data, size_t size)
{
	uLong sum = crc32(0, NULL, 0);
	for (size_t at = 0; at < size;) {
		size_t n = size - at > 1u << 30 ? 1u << 30 : size - at;
		sum = crc32(sum, data + at, (uInt)n);
		at += n;
	}
	return (uint32_t)sum;
}

static bool has_debug(const struct elfrw_image *img)
{
	return elfrw_image_section(img, ".debug_info") || elfrw_image_section(img, ".zdebug_info");
}

static struct elfrw_err *check_crc(const struct elfrw_image *program,
				   const struct elfrw_image *debug)
{
	const struct elfrw_section *s = elfrw_image_section(program, ".gnu_debuglink");
	if (!s || !s->data)
		return NULL;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	elfrw_rbuf_cstr(&r);
	elfrw_rbuf_seek(&r, (elfrw_rbuf_off(&r) + 3) & ~(size_t)3);
	uint32_t want = elfrw_rbuf_u32(&r);
	if (!elfrw_rbuf_ok(&r))
		return elfrw_error_at(s->name, 0, "names no file and no checksum");
	uint32_t is = elfrw_crc32(debug->base, debug->size);
	elfrw_image_forget(debug);
	if (is != want)
		return elfrw_error(
			"debug file %s has the checksum 0x%08x, .gnu_debuglink says 0x%08x",
			debug->path, is, want);
	return NULL;
}

static struct elfrw_err *check_identity(const struct elfrw_image *program,
					const struct elfrw_image *debug)
{
	uint32_t n = 0, m = 0;
	if (has_debug(program))
		return elfrw_error("has debug information of its own, besides debug file %s",
				   debug->path);
	if (!has_debug(debug) && !debug->symtab)
		return elfrw_error("debug file %s has neither symbols nor debug information",
				   debug->path);
	if (program->dev == debug->dev && program->ino == debug->ino)
		return elfrw_error("debug file %s is the program itself", debug->path);
	if (!elfrw_same_arch(&program->ehdr, &debug->ehdr) ||
	    program->ehdr.e_type != debug->ehdr.e_type)
		return elfrw_error("debug file %s is of another kind of file", debug->path);
	const uint8_t *a = elfrw_build_id(program, &n), *b = elfrw_build_id(debug, &m);
	if (a && b && (n != m || memcmp(a, b, n) != 0))
		return elfrw_error("debug file %s has another build-id: it is of another program",
				   debug->path);
	return check_crc(program, debug);
}

/* Section headers with references to string tables, which differ when the symbols do. */
static bool is_table(const Elf64_Shdr *sh)
{
	return sh->sh_type == SHT_STRTAB || sh->sh_type == SHT_SYMTAB ||
	       sh->sh_type == SHT_SYMTAB_SHNDX;
}

static bool is_reloc(const Elf64_Shdr *sh)
{
	return !(sh->sh_flags & SHF_ALLOC) && (sh->sh_type == SHT_RELA || sh->sh_type == SHT_REL);
}

/* Is section I of the program not part of the view?  Kept relocations come from the debug file if
 * it has them, too. */
static bool left_out(const struct elfrw_pair *pair, uint32_t i)
{
	const struct elfrw_section *s = &pair->program.section[i];
	if (strcmp(s->name, ".gnu_debuglink") == 0)
		return true;
	for (uint32_t k = 1; k < pair->debug.n_sections && is_reloc(&s->hdr); k++)
		if (is_reloc(&pair->debug.section[k].hdr) &&
		    strcmp(pair->debug.section[k].name, s->name) == 0)
			return true;
	return false;
}

static bool matches(const struct elfrw_section *a, const struct elfrw_section *b)
{
	if (strcmp(a->name, b->name) != 0 || ((a->hdr.sh_flags ^ b->hdr.sh_flags) & SHF_ALLOC))
		return false;
	if (a->hdr.sh_flags & SHF_ALLOC)
		return a->hdr.sh_addr == b->hdr.sh_addr && a->hdr.sh_size == b->hdr.sh_size;
	if (is_reloc(&a->hdr)) /* eu-strip leaves those of code in the program */
		return b->hdr.sh_type == SHT_NOBITS && a->hdr.sh_size == b->hdr.sh_size;
	return !is_table(&a->hdr) && a->hdr.sh_size == b->hdr.sh_size &&
	       (!a->data || !b->data || memcmp(a->data, b->data, a->hdr.sh_size) == 0);
}

/* MAP: by section of the program, its index in the debug file; 0: none.  Both files have their
 * sections in the same order. */
static struct elfrw_err *match_sections(const struct elfrw_image *program,
					const struct elfrw_image *debug, uint32_t *map)
{
	uint32_t next = 1;
	for (uint32_t i = 1; i < program->n_sections; i++) {
		const struct elfrw_section *s = &program->section[i];
		uint32_t k = next;
		if (i == program->shstrndx) {
			map[i] = debug->shstrndx;
			continue;
		}
		while (k < debug->n_sections && !matches(s, &debug->section[k]))
			k++;
		if (k < debug->n_sections && k != debug->shstrndx) {
			for (; next < k; next++) {
				const Elf64_Shdr *sh = &debug->section[next].hdr;
				if ((sh->sh_flags & SHF_ALLOC) && sh->sh_size)
					return elfrw_error(
						"debug file %s has section %s at 0x%llx with %llu bytes, which the program has not",
						debug->path, debug->section[next].name,
						(unsigned long long)sh->sh_addr,
						(unsigned long long)sh->sh_size);
			}
			map[i] = k;
			next = k + 1;
		} else if ((s->hdr.sh_flags & SHF_ALLOC) && s->hdr.sh_size)
			return elfrw_error(
				"section %s at 0x%llx with %llu bytes is not in debug file %s",
				s->name, (unsigned long long)s->hdr.sh_addr,
				(unsigned long long)s->hdr.sh_size, debug->path);
	}
	for (; next < debug->n_sections; next++)
		if ((debug->section[next].hdr.sh_flags & SHF_ALLOC) &&
		    debug->section[next].hdr.sh_size)
			return elfrw_error(
				"debug file %s has section %s, which the program has not",
				debug->path, debug->section[next].name);
	return NULL;
}

static uint64_t page_up(uint64_t v)
{
	return elfrw_align_up(v, (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Maps both files into SIZE bytes of private, writable memory; NULL: see errno. */
static uint8_t *map_both(const struct elfrw_pair *pair, size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (mmap(p, pair->program.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 pair->program.fd, 0) != MAP_FAILED &&
	    mmap(p + pair->second, pair->debug.size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_FIXED, pair->debug.fd, 0) != MAP_FAILED)
		return p;
	int e = errno;
	munmap(p, size);
	errno = e;
	return NULL;
}

static uint8_t *pair_private_copy(const struct elfrw_image *img)
{
	uint8_t *p = map_both(img->pair, img->size);
	for (size_t i = 0; p && i < img->pair->patch.len; i++)
		memcpy(p + img->pair->patch.data[i].off, img->base + img->pair->patch.data[i].off,
		       img->pair->patch.data[i].size);
	return p;
}

static void pair_close(struct elfrw_image *img)
{
	struct elfrw_pair *pair = img->pair;
	if (img->base)
		munmap((void *)img->base, img->size);
	elfrw_image_close(&pair->program);
	elfrw_image_close(&pair->debug);
	VEC_FREE(&pair->patch);
	free(pair);
	img->pair = NULL;
}

static struct elfrw_err *pair_unchanged(const struct elfrw_image *img)
{
	ELFRW_TRY(elfrw_image_unchanged(&img->pair->debug));
	return elfrw_image_unchanged(&img->pair->program);
}

/* Forgets only the debug file's bytes: parts of the view are in no file. */
static void pair_forget(const struct elfrw_image *img)
{
	madvise((void *)(img->base + img->pair->second), img->pair->debug.size, MADV_DONTNEED);
}

static size_t pair_file_size(const struct elfrw_image *img)
{
	return img->pair->program.size;
}

static const struct elfrw_image_view pair_view = { pair_close, pair_unchanged, pair_private_copy,
						   pair_forget, pair_file_size };

static struct elfrw_err *add_patch(struct elfrw_pair *pair, uint64_t off, uint64_t size)
{
	struct elfrw_patch *p = VEC_PUSH(&pair->patch);
	if (!p)
		return &elfrw_err_nomem;
	*p = (struct elfrw_patch){ off, size };
	return NULL;
}

static bool info_is_section(const Elf64_Shdr *sh)
{
	return (sh->sh_flags & SHF_INFO_LINK) || sh->sh_type == SHT_REL || sh->sh_type == SHT_RELA;
}

/* Makes section TO of the view from section I of the program. */
static void take_program(struct elfrw_image *img, uint32_t to, uint32_t i, const uint32_t *map)
{
	const struct elfrw_pair *pair = img->pair;
	const struct elfrw_section *s = &pair->program.section[i];
	struct elfrw_section *ret = &img->section[to];
	uint32_t name = ret->hdr.sh_name;
	ret->in_program = i;
	/* The debug file's section has contents where the program's section has the same or none.
	 */
	if (!(s->hdr.sh_flags & SHF_ALLOC) && ret->data)
		return;
	ret->hdr = s->hdr;
	ret->hdr.sh_name = name;
	ret->hdr.sh_link = map[s->hdr.sh_link];
	if (info_is_section(&s->hdr) && s->hdr.sh_info < pair->program.n_sections)
		ret->hdr.sh_info = map[s->hdr.sh_info];
	ret->data = s->data ? img->base + s->hdr.sh_offset : NULL;
}

/* How many symbols of table S have values in the sections that they name, taken as sections of
 * IMG? */
static size_t fitting(const struct elfrw_image *img, const struct elfrw_section *s)
{
	size_t n = 0;
	for (struct elfrw_symbols it = elfrw_symbols(s, 0); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const Elf64_Shdr *sh =
			sym.st_shndx < img->n_sections ? &img->section[sym.st_shndx].hdr : NULL;
		n += sh && sym.st_shndx != SHN_UNDEF && sym.st_value >= sh->sh_addr &&
		     sym.st_value - sh->sh_addr < sh->sh_size;
	}
	return n;
}

/* The program's symbols use the program's section numbers, except those of .dynsym that GNU strip
 * did not renumber. */
static struct elfrw_err *renumber(struct elfrw_image *img, uint8_t *base,
				  const struct elfrw_section *s, const uint32_t *map)
{
	uint8_t *p = base + s->hdr.sh_offset;
	bool changed = false;
	if (fitting(&img->pair->debug, s) > fitting(&img->pair->program, s))
		return NULL;
	for (struct elfrw_symbols it = elfrw_symbols_in(p, s->hdr.sh_size, 0);
	     elfrw_symbols_next(&it);) {
		Elf64_Sym sym = it.sym;
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE)
			continue;
		uint32_t to = sym.st_shndx < img->pair->program.n_sections ? map[sym.st_shndx] : 0;
		/* The section is not part of the view: use a number of no section, so that the
		 * layout finds another. */
		if (to == 0)
			to = s->hdr.sh_type == SHT_DYNSYM ? SHN_LORESERVE - 1 : sym.st_shndx;
		if (to == sym.st_shndx)
			continue;
		sym.st_shndx = (uint16_t)to;
		memcpy(p + it.index * sizeof sym, &sym, sizeof sym);
		changed = true;
	}
	return changed ? add_patch(img->pair, s->hdr.sh_offset, s->hdr.sh_size) : NULL;
}

/* Where the view's own bytes are: behind the two files, the names and then the section headers. */
struct view {
	uint8_t *base;
	uint64_t names, shdrs;
	uint64_t names_size; /* of those written so far */
	size_t size;
};

/* Maps both files and the view's own bytes. */
static struct elfrw_err *map_view(struct elfrw_image *img, uint32_t extra, size_t extra_names,
				  struct view *ret)
{
	struct elfrw_pair *pair = img->pair;
	const struct elfrw_image *debug = &pair->debug;
	const struct elfrw_section *names = &debug->section[debug->shstrndx];
	uint32_t n = debug->n_sections + extra;
	pair->second = page_up(pair->program.size);
	ret->names = pair->second + page_up(debug->size);
	ret->names_size = names->hdr.sh_size;
	ret->shdrs = elfrw_align_up(ret->names + names->hdr.sh_size + extra_names, 8);
	ret->size = ret->shdrs + (uint64_t)n * sizeof(Elf64_Shdr);
	ret->base = map_both(pair, ret->size);
	if (!ret->base)
		return elfrw_error_errno(errno, "cannot map it with debug file %s", debug->path);
	img->base = ret->base;
	img->size = ret->size;
	img->section = calloc(n, sizeof *img->section);
	if (!img->section)
		return &elfrw_err_nomem;
	img->n_sections = n;
	img->shstrndx = debug->shstrndx;
	if (names->data)
		memcpy(ret->base + ret->names, names->data, names->hdr.sh_size);
	return NULL;
}

/* The sections of both files, those of the program at MAP's numbers. */
static struct elfrw_err *take_sections(struct elfrw_image *img, struct view *view, uint32_t *map)
{
	struct elfrw_pair *pair = img->pair;
	const struct elfrw_image *program = &pair->program, *debug = &pair->debug;
	for (uint32_t i = 1; i < debug->n_sections; i++) {
		struct elfrw_section *s = &img->section[i];
		s->hdr = debug->section[i].hdr;
		s->hdr.sh_offset += pair->second;
		s->data = debug->section[i].data ? view->base + s->hdr.sh_offset : NULL;
		s->in_debug = i;
	}
	uint32_t next = debug->n_sections;
	for (uint32_t i = 1; i < program->n_sections; i++)
		if (map[i] == 0 && !left_out(pair, i))
			map[i] = next++;
	img->section[0].hdr = program->section[0].hdr;
	for (uint32_t i = 1; i < program->n_sections; i++) {
		if (!map[i])
			continue;
		struct elfrw_section *s = &img->section[map[i]];
		if (map[i] >= debug->n_sections) {
			s->hdr.sh_name = (uint32_t)view->names_size;
			strcpy((char *)view->base + view->names + view->names_size,
			       program->section[i].name);
			view->names_size += strlen(program->section[i].name) + 1;
		}
		take_program(img, map[i], i, map);
		if (elfrw_holds_symbols(s) && s->data < view->base + pair->second)
			ELFRW_TRY(renumber(img, view->base, &program->section[i], map));
	}
	struct elfrw_section *str = &img->section[img->shstrndx];
	str->hdr.sh_offset = view->names;
	str->hdr.sh_size = view->names_size;
	str->data = view->base + view->names;
	return NULL;
}

/* Puts headers and names behind the two files.  EXTRA sections of the program, with EXTRA_NAMES
 * bytes of names, are not in the debug file. */
static struct elfrw_err *make_view(struct elfrw_image *img, uint32_t extra, size_t extra_names,
				   uint32_t *map)
{
	struct elfrw_pair *pair = img->pair;
	struct view view;
	ELFRW_TRY(map_view(img, extra, extra_names, &view));
	ELFRW_TRY(take_sections(img, &view, map));
	/* Symbols and relocations go together; the linker puts the symbols behind the relocations.
	 */
	bool own_relocs = false;
	for (uint32_t i = 0; i < img->n_sections; i++) {
		struct elfrw_section *s = &img->section[i];
		s->name = i ? (const char *)view.base + view.names + s->hdr.sh_name : "";
		memcpy(view.base + view.shdrs + (uint64_t)i * sizeof s->hdr, &s->hdr,
		       sizeof s->hdr);
		if (s->hdr.sh_type == SHT_SYMTAB && (!img->symtab || own_relocs))
			img->symtab = i;
		own_relocs |= s->in_program && is_reloc(&s->hdr);
		if (s->hdr.sh_type == SHT_DYNSYM)
			img->dynsym = i;
		if (s->hdr.sh_type == SHT_DYNAMIC)
			img->dynamic = i;
	}
	img->ehdr = pair->program.ehdr;
	img->ehdr.e_shoff = view.shdrs;
	img->ehdr.e_shnum = (uint16_t)img->n_sections;
	img->ehdr.e_shstrndx = (uint16_t)img->shstrndx;
	memcpy(view.base, &img->ehdr, sizeof img->ehdr);
	ELFRW_TRY(add_patch(pair, 0, sizeof img->ehdr));
	ELFRW_TRY(add_patch(pair, view.names, view.size - view.names));
	if (mprotect(view.base, view.size, PROT_READ) != 0)
		return elfrw_error_errno(errno, "cannot protect its memory");
	return NULL;
}

static struct elfrw_err *join(struct elfrw_image *img)
{
	const struct elfrw_image *program = &img->pair->program, *debug = &img->pair->debug;
	ELFRW_TRY(check_identity(program, debug));
	if (program->symtab && program->section[program->symtab].hdr.sh_link == program->shstrndx)
		return elfrw_error(
			"names of sections and symbols are in one section: not supported with a debug file");
	uint32_t *map = calloc(program->n_sections, sizeof *map), extra = 0;
	if (!map)
		return &elfrw_err_nomem;
	struct elfrw_err *err = match_sections(program, debug, map);
	size_t extra_names = 0;
	for (uint32_t i = 1; i < program->n_sections; i++)
		if (!map[i] && !left_out(img->pair, i)) {
			extra++;
			extra_names += strlen(program->section[i].name) + 1;
		}
	if (!err && (uint64_t)debug->n_sections + extra >= SHN_LORESERVE)
		err = elfrw_error("too many sections");
	if (!err)
		err = make_view(img, extra, extra_names, map);
	free(map);
	return err;
}

struct elfrw_err *elfrw_pair_open(struct elfrw_image *img, const char *path, const char *debug_path)
{
	*img = (struct elfrw_image){ .path = path, .fd = -1 };
	struct elfrw_pair *pair = calloc(1, sizeof *pair);
	if (!pair)
		return &elfrw_err_nomem;
	img->pair = pair;
	img->view = &pair_view;
	struct elfrw_err *err = elfrw_image_open(&pair->program, path);
	if (!err && (err = elfrw_image_open_separate(&pair->debug, debug_path)) &&
	    err != &elfrw_err_nomem) {
		struct elfrw_err *named =
			elfrw_error("debug file %s: %s", debug_path, elfrw_err_text(err));
		elfrw_err_free(err);
		err = named;
	}
	if (!err) {
		const struct elfrw_image *p = &pair->program;
		img->mode = p->mode;
		img->uid = p->uid;
		img->gid = p->gid;
		img->dev = p->dev;
		img->ino = p->ino;
		img->mtime = p->mtime;
		img->arch = p->arch;
		img->pic = p->pic;
		img->phdr = malloc(p->n_phdrs * sizeof *img->phdr);
		if (img->phdr) {
			memcpy(img->phdr, p->phdr, p->n_phdrs * sizeof *img->phdr);
			img->n_phdrs = p->n_phdrs;
			err = join(img);
			if (!err)
				err = elfrw_image_index_make(img);
		} else
			err = &elfrw_err_nomem;
	}
	if (err)
		elfrw_image_close(img);
	return err;
}
