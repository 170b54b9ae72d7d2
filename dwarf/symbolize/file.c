/* file.c: opens the files of a symbolizer, which are more kinds than can be folded.
 *
 * They may be of any machine, ELF-32, separate debug files (whose loaded sections have no
 * contents), or files without section headers.  So headers are checked only as far as they are
 * used, and a section outside of the file is empty.  ELF-32 headers are widened, so everything
 * above sees one kind of image.  Formats: System V gABI chapter 4; .gnu_debuglink,
 * .gnu_debugaltlink and the build-id folders as in the GDB manual, "Separate Debug Files". */
#include "dwarf/symbolize/state.h"
#include "dwarf/symbolize/debuginfod.h"
#include "elfrw/arch/machine.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/regular.h"
#include "elfrw/note.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

static struct elfrw_err *read_ehdr(struct elfrw_image *img)
{
	const uint8_t *id = img->base;
	Elf64_Ehdr *eh = &img->ehdr;
	if (memcmp(id, ELFMAG, SELFMAG) != 0)
		return elfrw_error("not an ELF file");
	if (id[EI_DATA] != ELFDATA2LSB)
		return elfrw_error("big-endian ELF is not supported");
	if (id[EI_CLASS] == ELFCLASS32) {
		Elf32_Ehdr e;
		memcpy(&e, img->base, sizeof e);
		elfrw_widen_header(eh, &e);
	} else if (id[EI_CLASS] == ELFCLASS64 && img->size >= sizeof *eh)
		memcpy(eh, img->base, sizeof *eh);
	else
		return elfrw_error("not an ELF file of a known class");
	if (eh->e_type == ET_CORE)
		return elfrw_error("is a core dump, not a program");
	img->pic = eh->e_type == ET_DYN;
	return NULL;
}

static void widen_shdr(const uint8_t *p, bool is64, Elf64_Shdr *ret)
{
	if (is64) {
		memcpy(ret, p, sizeof *ret);
		return;
	}
	Elf32_Shdr s;
	memcpy(&s, p, sizeof s);
	*ret = (Elf64_Shdr){ s.sh_name, s.sh_type, s.sh_flags, s.sh_addr,      s.sh_offset,
			     s.sh_size, s.sh_link, s.sh_info,  s.sh_addralign, s.sh_entsize };
}

/* The compression header of ELF-32 is smaller: makes a copy of the section with the large one. */
static struct elfrw_err *widen_chdr(struct dwr_sym_file *file, struct elfrw_section *s)
{
	Elf32_Chdr old;
	if (s->hdr.sh_size < sizeof old) {
		s->data = NULL;
		s->hdr.sh_size = 0;
		return NULL;
	}
	memcpy(&old, s->data, sizeof old);
	size_t n = s->hdr.sh_size - sizeof old;
	uint8_t *copy = malloc(sizeof(Elf64_Chdr) + n), **slot;
	if (!copy)
		return &elfrw_err_nomem;
	if (!(slot = VEC_PUSH(&file->copies))) {
		free(copy);
		return &elfrw_err_nomem;
	}
	*slot = copy;
	Elf64_Chdr wide = { .ch_type = old.ch_type,
			    .ch_size = old.ch_size,
			    .ch_addralign = old.ch_addralign };
	memcpy(copy, &wide, sizeof wide);
	memcpy(copy + sizeof wide, s->data + sizeof old, n);
	s->data = copy;
	s->hdr.sh_size = sizeof wide + n;
	return NULL;
}

static struct elfrw_err *read_sections(struct dwr_sym_file *file)
{
	struct elfrw_image *img = &file->image;
	const Elf64_Ehdr *eh = &img->ehdr;
	bool is64 = eh->e_ident[EI_CLASS] == ELFCLASS64;
	size_t entry = is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	if (!eh->e_shoff)
		return NULL;
	if (eh->e_shentsize != entry || eh->e_shoff > img->size || img->size - eh->e_shoff < entry)
		return elfrw_error("truncated: section headers lie outside the file");
	Elf64_Shdr first;
	widen_shdr(img->base + eh->e_shoff, is64, &first);
	uint64_t n = eh->e_shnum ? eh->e_shnum : first.sh_size;
	if (n > (img->size - eh->e_shoff) / entry)
		return elfrw_error("truncated: section headers lie outside the file");
	img->section = calloc(n ? n : 1, sizeof *img->section);
	if (!img->section)
		return &elfrw_err_nomem;
	img->n_sections = (uint32_t)n;
	for (uint32_t i = 0; i < n; i++) {
		struct elfrw_section *s = &img->section[i];
		widen_shdr(img->base + eh->e_shoff + i * entry, is64, &s->hdr);
		s->name = "";
		if (i == 0 || s->hdr.sh_type == SHT_NOBITS || s->hdr.sh_type == SHT_NULL ||
		    !s->hdr.sh_size)
			continue;
		if (s->hdr.sh_offset > img->size || img->size - s->hdr.sh_offset < s->hdr.sh_size)
			s->hdr.sh_size = 0;
		else
			s->data = img->base + s->hdr.sh_offset;
	}
	img->shstrndx = eh->e_shstrndx == SHN_XINDEX ? first.sh_link : eh->e_shstrndx;
	for (uint32_t i = 1; i < n; i++) {
		struct elfrw_section *s = &img->section[i];
		const char *name = elfrw_image_string(img, img->shstrndx, s->hdr.sh_name);
		if (name)
			s->name = name;
		if (!is64 && s->data && s->hdr.sh_flags & SHF_COMPRESSED)
			ELFRW_TRY(widen_chdr(file, s));
		if (s->hdr.sh_type == SHT_SYMTAB && !img->symtab)
			img->symtab = i;
		if (s->hdr.sh_type == SHT_DYNSYM && !img->dynsym)
			img->dynsym = i;
	}
	return NULL;
}

static struct elfrw_err *map_file(struct dwr_sym_file *file, const struct elfrw_image *mapped)
{
	struct elfrw_image *img = &file->image;
	img->path = file->path;
	img->fd = -1;
	if (mapped) {
		file->borrowed = true;
		img->base = mapped->base;
		img->size = mapped->size;
		return NULL;
	}
	ELFRW_TRY(elfrw_image_map(img, img->path, sizeof(Elf32_Ehdr)));
	close(img->fd);
	img->fd = -1;
	return NULL;
}

static struct elfrw_err *open_into(struct dwr_sym_file *file, const char *path,
				   const struct elfrw_image *mapped, bool supplementary)
{
	file->path = strdup(path);
	if (!file->path)
		return &elfrw_err_nomem;
	ELFRW_TRY(map_file(file, mapped));
	ELFRW_TRY(read_ehdr(&file->image));
	if (file->image.ehdr.e_type == ET_REL &&
	    !supplementary) /* which is what dwz makes its common file */
		return elfrw_error("is a relocatable object; its code has no addresses yet");
	ELFRW_TRY(read_sections(file));
	struct elfrw_err *err = dwr_sections_init(&file->secs, &file->image);
	if (err) { /* the symbol table may still be good */
		if (err == &elfrw_err_nomem)
			return err;
		elfrw_err_free(err);
		memset(&file->secs, 0, sizeof file->secs);
	}
	file->n_abbrevs = DWR_SYM_ABBREVS;
	file->code_low = UINT64_MAX;
	for (uint32_t i = 1; i < file->image.n_sections; i++) {
		const Elf64_Shdr *sh = &file->image.section[i].hdr;
		if (sh->sh_flags & SHF_EXECINSTR && sh->sh_flags & SHF_ALLOC && sh->sh_size &&
		    sh->sh_addr < file->code_low)
			file->code_low = sh->sh_addr;
	}
	if (file->code_low == UINT64_MAX)
		file->code_low = 0;
	return NULL;
}

static struct elfrw_err *open_file(const char *path, const struct elfrw_image *mapped,
				   bool supplementary, struct dwr_sym_file **ret)
{
	struct dwr_sym_file *file = calloc(1, sizeof *file);
	struct elfrw_err *err =
		file ? open_into(file, path, mapped, supplementary) : &elfrw_err_nomem;
	if (err)
		dwr_sym_file_close(file);
	else
		*ret = file;
	return err;
}

struct elfrw_err *dwr_sym_file_open(const char *path, const struct elfrw_image *mapped,
				    struct dwr_sym_file **ret)
{
	return open_file(path, mapped, false, ret);
}

void dwr_sym_file_close(struct dwr_sym_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < file->n_slots; i++)
		if (file->unit[i]) {
			VEC_FREE(&file->unit[i]->funcs);
			free(file->unit[i]);
		}
	free(file->unit);
	VEC_FREE(&file->unit_off);
	for (size_t i = 0; i < file->n_line_slots; i++)
		dwr_lines_free(file->lines[i]);
	free(file->lines);
	for (unsigned i = 0; i < DWR_SYM_ABBREVS; i++)
		dwr_abbrev_deinit(&file->abbrev[i]);
	dwr_sections_deinit(&file->secs);
	for (size_t i = 0; i < file->copies.len; i++)
		free(file->copies.data[i]);
	VEC_FREE(&file->copies);
	if (file->image.base && !file->borrowed)
		munmap((void *)file->image.base, file->image.size);
	free(file->image.section);
	free(file->path);
	free(file);
}

bool dwr_sym_file_has_debug(const struct dwr_sym_file *file)
{
	return file->secs.sec[DWR_INFO].shndx != 0;
}

/* The build-id of FILE (GNU note type 3) as hexadecimal text; false: none. */
static bool build_id(const struct dwr_sym_file *file, char *text, size_t size)
{
	uint32_t n;
	const uint8_t *id = elfrw_build_id(&file->image, &n);
	if (!id || n < 2 || n * UINT64_C(2) + 1 > size)
		return false;
	for (uint32_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return true;
}

/* PATH without SYSROOT at its beginning, spelled as it is or without links; NULL: it is not below
 * SYSROOT.  The only error is out of memory. */
static struct elfrw_err *inside(const char *path, const char *sysroot, const char **ret)
{
	char *real = *sysroot ? realpath(sysroot, NULL) : NULL;
	const char *root[] = { sysroot, real };
	*ret = NULL;
	if (*sysroot && !real && errno == ENOMEM)
		return &elfrw_err_nomem;
	for (unsigned i = 0; i < 2 && !*ret; i++) {
		size_t n = root[i] ? strlen(root[i]) : 0;
		while (n && root[i][n - 1] == '/')
			n--;
		if (root[i] && *root[i] && !strncmp(path, root[i], n) && path[n] == '/')
			*ret = path + n;
	}
	free(real);
	return NULL;
}

/* The path to open for PATH: if PATH is below SYSROOT, that of what it names there.  *RET NULL:
 * there is nothing.  The only error is out of memory. */
static struct elfrw_err *resolve(const char *path, const char *sysroot, char **ret)
{
	const char *below;
	ELFRW_TRY(inside(path, sysroot, &below));
	errno = 0;
	*ret = below ? elfrw_path_below(sysroot, below) : strdup(path);
	return *ret || errno != ENOMEM ? NULL : &elfrw_err_nomem;
}

/* Opens PATH if it is an ELF file with debug information and, unless these are NULL, with the
 * build-id ID and the CRC of .gnu_debuglink.  Otherwise *RET is unchanged.  The only error is out
 * of memory. */
static struct elfrw_err *try_open(const char *path, const char *id, const uint32_t *crc,
				  const char *sysroot, struct dwr_sym_file **ret)
{
	struct dwr_sym_file *file;
	char text[132], *real;
	ELFRW_TRY(resolve(path, sysroot, &real));
	if (!real)
		return NULL;
	struct elfrw_err *err = open_file(real, NULL, true, &file);
	free(real);
	if (err == &elfrw_err_nomem)
		return err;
	if (err) {
		elfrw_err_free(err);
		return NULL;
	}
	bool ok = dwr_sym_file_has_debug(file);
	if (ok && id)
		ok = build_id(file, text, sizeof text) && !strcmp(text, id);
	if (ok && crc) {
		uLong sum = crc32(0, NULL, 0);
		for (size_t at = 0; at < file->image.size;) {
			size_t n =
				file->image.size - at > 1 << 30 ? 1 << 30 : file->image.size - at;
			sum = crc32(sum, file->image.base + at, (uInt)n);
			at += n;
		}
		ok = (uint32_t)sum == *crc;
	}
	if (ok)
		*ret = file;
	else
		dwr_sym_file_close(file);
	return NULL;
}

/* What the link PATH says, even if nothing is there (a file that has no name yet, /proc/self/fd/3);
 * NULL: it is no link, or out of memory (errno). */
static char *link_text(const char *path)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof text);
	return n > 0 && n < (ssize_t)sizeof text && *text == '/' ? strndup(text, (size_t)n) : NULL;
}

/* The folder of PATH, "/" at the end included; owned by the caller, or NULL. */
static char *folder_of(const char *path)
{
	char *real = realpath(path, NULL);
	if (!real && errno == ENOENT)
		real = link_text(path);
	char *slash = real ? strrchr(real, '/') : NULL;
	if (slash)
		slash[1] = 0;
	return real;
}

static struct elfrw_err *by_debuglink(const struct dwr_sym_file *file,
				      const struct dwr_sym_places *places,
				      struct dwr_sym_file **ret)
{
	const struct elfrw_section *s = elfrw_image_section(&file->image, ".gnu_debuglink");
	if (!s || !s->data)
		return NULL;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	const char *name = elfrw_rbuf_cstr(&r);
	elfrw_rbuf_seek(&r, (elfrw_rbuf_off(&r) + 3) & ~(size_t)3);
	uint32_t crc = elfrw_rbuf_u32(&r);
	bool sound = elfrw_rbuf_ok(&r) && *name && !strchr(name, '/');
	char *dir = sound ? folder_of(file->path) : NULL;
	struct elfrw_err *err = sound && !dir && errno == ENOMEM ? &elfrw_err_nomem : NULL;
	const char *below = NULL;
	if (dir)
		err = inside(dir, places->sysroot, &below);
	if (!below)
		below = dir;
	for (unsigned i = 0; dir && i < 3 && !*ret && !err; i++) {
		char *path;
		int n = i == 2 ? asprintf(&path, "%s%s%s", places->debug_dir, below, name)
			       : asprintf(&path, "%s%s%s", dir, i ? ".debug/" : "", name);
		if (n < 0)
			err = &elfrw_err_nomem;
		else {
			err = try_open(path, NULL, &crc, places->sysroot, ret);
			free(path);
		}
	}
	free(dir);
	return err;
}

struct elfrw_err *dwr_sym_file_fits(const struct dwr_sym_file *file,
				    const struct dwr_sym_file *debug)
{
	char id[132], other[132];
	if (!build_id(file, id, sizeof id) || !build_id(debug, other, sizeof other) ||
	    !strcmp(id, other))
		return NULL;
	return elfrw_error("%s is not its debug file: the build-ids are %s and %s", debug->path, id,
			   other);
}

/* The file of build-id ID, as text, from a debuginfod server. */
static struct elfrw_err *ask_server(const char *id, struct dwr_sym_file **ret)
{
	unsigned char bytes[66];
	size_t n = strlen(id) / 2;
	for (size_t i = 0; i < n; i++)
		sscanf(id + 2 * i, "%2hhx", &bytes[i]);
	char *path = dwr_debuginfod_find(bytes, n, DWR_DEBUGINFOD_DEBUGINFO);
	struct elfrw_err *err = path ? try_open(path, id, NULL, "", ret) : NULL;
	free(path);
	return err;
}

struct elfrw_err *dwr_sym_file_from_server(const struct dwr_sym_file *file,
					   struct dwr_sym_file **ret)
{
	char id[132];
	*ret = NULL;
	return build_id(file, id, sizeof id) ? ask_server(id, ret) : NULL;
}

struct elfrw_err *dwr_sym_file_separate(const struct dwr_sym_file *file,
					const struct dwr_sym_places *places,
					struct dwr_sym_file **ret)
{
	char id[132], *path;
	*ret = NULL;
	if (build_id(file, id, sizeof id)) {
		if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", places->debug_dir, id, id + 2) <
		    0)
			return &elfrw_err_nomem;
		struct elfrw_err *err = try_open(path, id, NULL, places->sysroot, ret);
		free(path);
		ELFRW_TRY(err);
	}
	return *ret ? NULL : by_debuglink(file, places, ret);
}

/* Records out of memory, and drops any other error. */
static void note_memory(struct elfrw_err *err, bool *nomem)
{
	*nomem |= err == &elfrw_err_nomem;
	elfrw_err_free(err);
}

/* The path that the name of a supplementary file means in FILE: NAME itself, below the sysroot if
 * FILE is, or NAME beside FILE.  NULL: there is none, or out of memory (errno). */
static char *supplementary_path(const struct dwr_sym_file *file, const char *name,
				const char *sysroot)
{
	char *dir = folder_of(file->path), *path = NULL;
	const char *below = NULL;
	struct elfrw_err *err = dir ? inside(dir, sysroot, &below) : NULL;
	const char *from = *name != '/' ? dir : below ? sysroot : "";
	if (dir && (err || asprintf(&path, "%s%s", from, name) < 0)) {
		path = NULL;
		errno = ENOMEM;
	}
	free(dir);
	return path;
}

struct elfrw_err *dwr_sym_file_supplementary(const struct dwr_sym_file *file,
					     const struct dwr_sym_places *places,
					     struct dwr_sym_file **ret)
{
	const struct elfrw_section *s = elfrw_image_section(&file->image, ".gnu_debugaltlink");
	*ret = NULL;
	if (!s || !s->data)
		return NULL;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	const char *name = elfrw_rbuf_cstr(&r);
	size_t n = elfrw_rbuf_left(&r);
	const uint8_t *bytes = elfrw_rbuf_take(&r, n);
	char id[132], *path;
	bool nomem = false;
	if (!elfrw_rbuf_ok(&r) || n < 2 || n * 2 + 1 > sizeof id)
		return NULL;
	for (size_t i = 0; i < n; i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	path = supplementary_path(file, name, places->sysroot);
	nomem |= !path && errno == ENOMEM;
	if (path)
		note_memory(try_open(path, id, NULL, places->sysroot, ret), &nomem);
	free(path);
	if (!*ret &&
	    asprintf(&path, "%s/.build-id/%.2s/%s.debug", places->debug_dir, id, id + 2) >= 0) {
		note_memory(try_open(path, id, NULL, places->sysroot, ret), &nomem);
		free(path);
	} else if (!*ret)
		nomem = true;
	if (!*ret)
		note_memory(ask_server(id, ret), &nomem);
	return nomem ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *dwr_sym_find_debug(const char *path, const char *dir, char **ret, bool *own)
{
	struct dwr_sym_file *file, *debug = NULL;
	const struct dwr_sym_places places = { dir ? dir : "/usr/lib/debug", "" };
	*ret = NULL;
	ELFRW_TRY(dwr_sym_file_open(path, NULL, &file));
	struct elfrw_err *err = NULL;
	bool has = dwr_sym_file_has_debug(file);
	if (own)
		*own = has;
	if (!has)
		err = dwr_sym_file_separate(file, &places, &debug);
	if (debug && !(*ret = strdup(debug->path)))
		err = &elfrw_err_nomem;
	dwr_sym_file_close(debug);
	dwr_sym_file_close(file);
	return err;
}
