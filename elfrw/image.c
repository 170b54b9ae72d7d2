/* image.c: see image.h.  This file checks, once, every header field that later code relies on. */
#include "elfrw/image.h"
#include "elfrw/base/regular.h"
#include "elfrw/arch/arch.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool inside(uint64_t off, uint64_t size, uint64_t whole)
{
	return off <= whole && size <= whole - off;
}

struct elfrw_err *elfrw_image_map(struct elfrw_image *img, const char *path, size_t least)
{
	int fd = elfrw_open_regular(path);
	if (fd < 0)
		return errno == EISDIR   ? elfrw_error("is a directory")
		       : errno == EINVAL ? elfrw_error("not a regular file")
					 : elfrw_error_errno(errno, "cannot open");
	struct stat st;
	struct elfrw_err *err = NULL;
	if (fstat(fd, &st) != 0)
		err = elfrw_error_errno(errno, "cannot stat");
	else if (st.st_size < (off_t)least)
		err = elfrw_error("not an ELF file: too short");
	if (!err) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			err = elfrw_error_errno(errno, "cannot map");
		else {
			img->base = p;
			img->size = (size_t)st.st_size;
			img->mode = st.st_mode & 07777;
			img->uid = st.st_uid;
			img->gid = st.st_gid;
			img->dev = st.st_dev;
			img->ino = st.st_ino;
			img->mtime = st.st_mtim;
			img->fd = fd;
		}
	}
	if (err)
		close(fd);
	return err;
}

static struct elfrw_err *check_ehdr(struct elfrw_image *img)
{
	if (memcmp(img->base, ELFMAG, SELFMAG) != 0)
		return elfrw_error("not an ELF file");
	memcpy(&img->ehdr, img->base, sizeof img->ehdr);
	const Elf64_Ehdr *eh = &img->ehdr;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64)
		return elfrw_error("32-bit ELF is not supported");
	if (eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return elfrw_error("big-endian ELF is not supported");
	if (eh->e_ident[EI_VERSION] != EV_CURRENT || eh->e_version != EV_CURRENT)
		return elfrw_error("unknown ELF version");
	if (eh->e_type == ET_REL)
		return elfrw_error("is a relocatable object; link it first");
	if (eh->e_type == ET_CORE)
		return elfrw_error("is a core dump, not a program");
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return elfrw_error("not an executable or shared library (e_type %u)", eh->e_type);
	img->pic = eh->e_type == ET_DYN;
	ELFRW_TRY(elfrw_arch_find(eh, &img->arch));
	if (eh->e_ehsize < sizeof *eh)
		return elfrw_error("ELF header is too short (e_ehsize %u)", eh->e_ehsize);
	return NULL;
}

static struct elfrw_err *read_phdrs(struct elfrw_image *img)
{
	const Elf64_Ehdr *eh = &img->ehdr;
	if (eh->e_phnum == 0 && img->separate)
		return NULL;
	if (eh->e_phnum == 0)
		return elfrw_error("has no program headers");
	if (eh->e_phnum == PN_XNUM)
		return elfrw_error("too many program headers");
	if (eh->e_phentsize != sizeof(Elf64_Phdr))
		return elfrw_error("program headers of %u bytes are not supported",
				   eh->e_phentsize);
	uint64_t bytes = (uint64_t)eh->e_phnum * sizeof(Elf64_Phdr);
	if (!inside(eh->e_phoff, bytes, img->size))
		return elfrw_error_at(NULL, eh->e_phoff,
				      "truncated: program headers lie outside the file");
	img->phdr = malloc(bytes);
	if (!img->phdr)
		return &elfrw_err_nomem;
	memcpy(img->phdr, img->base + eh->e_phoff, bytes);
	img->n_phdrs = eh->e_phnum;
	uint64_t last_end = 0;
	for (uint32_t i = 0; i < img->n_phdrs && !img->separate; i++) {
		const Elf64_Phdr *ph = &img->phdr[i];
		uint64_t at = eh->e_phoff + i * sizeof *ph;
		if (ph->p_type == PT_NULL)
			continue;
		if (ph->p_filesz && !inside(ph->p_offset, ph->p_filesz, img->size))
			return elfrw_error_at(NULL, at,
					      "truncated: segment %u lies outside the file", i);
		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_memsz < ph->p_filesz || ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
			return elfrw_error_at(NULL, at, "segment %u has an impossible size", i);
		if (ph->p_align & (ph->p_align - 1))
			return elfrw_error_at(
				NULL, at, "segment %u has an alignment that is no power of two", i);
		if (ph->p_align > 1 && ((ph->p_vaddr - ph->p_offset) & (ph->p_align - 1)))
			return elfrw_error_at(
				NULL, at, "segment %u: offset and address differ modulo alignment",
				i);
		if (ph->p_vaddr < last_end)
			return elfrw_error_at(
				NULL, at,
				"loadable segments overlap, or their headers are not in the order of their addresses");
		last_end = ph->p_vaddr + ph->p_memsz;
	}
	return NULL;
}

static struct elfrw_err *check_section(const struct elfrw_image *img, uint32_t i)
{
	const struct elfrw_section *sec = &img->section[i];
	const Elf64_Shdr *sh = &sec->hdr;
	uint64_t at = img->ehdr.e_shoff + (uint64_t)i * sizeof *sh;
	static const struct {
		uint32_t type;
		uint64_t entsize;
		const char *what;
	} table[] = {
		{ SHT_SYMTAB, sizeof(Elf64_Sym), "symbol" },
		{ SHT_DYNSYM, sizeof(Elf64_Sym), "symbol" },
		{ SHT_RELA, sizeof(Elf64_Rela), "relocation" },
		{ SHT_REL, sizeof(Elf64_Rel), "relocation" },
		{ SHT_DYNAMIC, sizeof(Elf64_Dyn), "dynamic entry" },
		{ SHT_RELR, 8, "relative relocation" },
	};
	for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
		if (sh->sh_type != table[k].type || sh->sh_size == 0)
			continue;
		if (sh->sh_entsize != table[k].entsize || sh->sh_size % table[k].entsize)
			return elfrw_error_at(sec->name, 0,
					      "%s table has entries of %llu bytes in %llu bytes",
					      table[k].what, (unsigned long long)sh->sh_entsize,
					      (unsigned long long)sh->sh_size);
	}
	if (sh->sh_link >= img->n_sections)
		return elfrw_error_at(NULL, at, "section %s links to section %u of %u", sec->name,
				      sh->sh_link, img->n_sections);
	if ((sh->sh_type == SHT_RELA || sh->sh_type == SHT_REL) && !(sh->sh_flags & SHF_ALLOC) &&
	    sh->sh_info >= img->n_sections)
		return elfrw_error_at(NULL, at, "section %s applies to section %u of %u", sec->name,
				      sh->sh_info, img->n_sections);
	if (sh->sh_addralign & (sh->sh_addralign - 1))
		return elfrw_error_at(
			NULL, at, "section %s has an alignment that is no power of two", sec->name);
	if (!(sh->sh_flags & SHF_ALLOC) || sh->sh_size == 0 ||
	    (sh->sh_type == SHT_NOBITS && (sh->sh_flags & SHF_TLS)))
		return NULL;
	if (sh->sh_addr + sh->sh_size < sh->sh_addr)
		return elfrw_error_at(NULL, at, "section %s wraps around the address space",
				      sec->name);
	if (img->separate)
		return NULL;
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type != PT_LOAD || sh->sh_addr < ph->p_vaddr ||
		    !inside(sh->sh_addr - ph->p_vaddr, sh->sh_size, ph->p_memsz))
			continue;
		if (sh->sh_type == SHT_NOBITS)
			return NULL;
		if (inside(sh->sh_addr - ph->p_vaddr, sh->sh_size, ph->p_filesz) &&
		    sh->sh_addr - ph->p_vaddr == sh->sh_offset - ph->p_offset)
			return NULL;
	}
	return elfrw_error_at(NULL, at, "section %s lies outside the loadable segments", sec->name);
}

/* How many sections there are, and which one has their names. */
static struct elfrw_err *count_sections(struct elfrw_image *img)
{
	const Elf64_Ehdr *eh = &img->ehdr;
	if (eh->e_shoff == 0)
		return elfrw_error("has no section headers");
	if (eh->e_shentsize != sizeof(Elf64_Shdr))
		return elfrw_error("section headers of %u bytes are not supported",
				   eh->e_shentsize);
	if (!inside(eh->e_shoff, sizeof(Elf64_Shdr), img->size))
		return elfrw_error_at(NULL, eh->e_shoff,
				      "truncated: section headers lie outside the file");
	Elf64_Shdr first;
	memcpy(&first, img->base + eh->e_shoff, sizeof first);
	uint64_t n = eh->e_shnum ? eh->e_shnum : first.sh_size; /* gABI: where the real count stands
								   if it exceeds SHN_LORESERVE */
	if (n == 0 || n > (img->size - eh->e_shoff) / sizeof(Elf64_Shdr))
		return elfrw_error_at(NULL, eh->e_shoff,
				      "truncated: section headers lie outside the file");
	img->n_sections = (uint32_t)n;
	img->shstrndx = eh->e_shstrndx == SHN_XINDEX ? first.sh_link : eh->e_shstrndx;
	return NULL;
}

static struct elfrw_err *read_headers(struct elfrw_image *img)
{
	const Elf64_Ehdr *eh = &img->ehdr;
	uint32_t n = img->n_sections;
	img->section = calloc(n, sizeof *img->section);
	if (!img->section)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < n; i++) {
		struct elfrw_section *sec = &img->section[i];
		uint64_t at = eh->e_shoff + (uint64_t)i * sizeof sec->hdr;
		memcpy(&sec->hdr, img->base + at, sizeof sec->hdr);
		sec->name = "";
		if (i == 0 || sec->hdr.sh_type == SHT_NOBITS || sec->hdr.sh_type == SHT_NULL ||
		    sec->hdr.sh_size == 0)
			continue;
		if (!inside(sec->hdr.sh_offset, sec->hdr.sh_size, img->size))
			return elfrw_error_at(NULL, at,
					      "truncated: section %u lies outside the file", i);
		sec->data = img->base + sec->hdr.sh_offset;
	}
	if (img->shstrndx >= n || img->section[img->shstrndx].hdr.sh_type != SHT_STRTAB)
		return elfrw_error("has no section name table");
	for (uint32_t i = 1; i < n; i++) {
		const char *name =
			elfrw_image_string(img, img->shstrndx, img->section[i].hdr.sh_name);
		if (!name)
			return elfrw_error_at(NULL, eh->e_shoff + (uint64_t)i * sizeof(Elf64_Shdr),
					      "section %u has a bad name", i);
		img->section[i].name = name;
	}
	return NULL;
}

static struct elfrw_err *read_sections(struct elfrw_image *img)
{
	ELFRW_TRY(count_sections(img));
	ELFRW_TRY(read_headers(img));
	for (uint32_t i = 1; i < img->n_sections; i++) {
		ELFRW_TRY(check_section(img, i));
		uint32_t *slot = NULL;
		switch (img->section[i].hdr.sh_type) {
		case SHT_SYMTAB: slot = &img->symtab; break;
		case SHT_DYNSYM: slot = &img->dynsym; break;
		case SHT_DYNAMIC: slot = &img->dynamic; break;
		}
		if (slot && *slot)
			return elfrw_error("has two sections of the type of %s",
					   img->section[i].name);
		if (slot)
			*slot = i;
	}
	return elfrw_image_index_make(img);
}

static struct elfrw_err *open_image(struct elfrw_image *img, const char *path, bool separate)
{
	*img = (struct elfrw_image){ .path = path, .separate = separate };
	struct elfrw_err *err = elfrw_image_map(img, path, sizeof(Elf64_Ehdr));
	if (!err)
		err = check_ehdr(img);
	if (!err)
		err = read_phdrs(img);
	if (!err)
		err = read_sections(img);
	if (err)
		elfrw_image_close(img);
	return err;
}

struct elfrw_err *elfrw_image_open(struct elfrw_image *img, const char *path)
{
	return open_image(img, path, false);
}

struct elfrw_err *elfrw_image_open_separate(struct elfrw_image *img, const char *path)
{
	return open_image(img, path, true);
}

void elfrw_image_close(struct elfrw_image *img)
{
	if (img->view)
		img->view->close(img);
	else if (img->base) {
		munmap((void *)img->base, img->size);
		close(img->fd);
	}
	elfrw_image_index_free(img);
	free(img->section);
	free(img->phdr);
	*img = (struct elfrw_image){ 0 };
}

struct elfrw_err *elfrw_image_unchanged(const struct elfrw_image *img)
{
	struct stat st;
	if (img->view)
		return img->view->unchanged(img);
	if (fstat(img->fd, &st) != 0)
		return elfrw_error_errno(errno, "cannot stat");
	if (st.st_size < (off_t)img->size)
		return elfrw_error("was truncated while it was read");
	if (st.st_size != (off_t)img->size || st.st_mtim.tv_sec != img->mtime.tv_sec ||
	    st.st_mtim.tv_nsec != img->mtime.tv_nsec)
		return elfrw_error("was changed while it was read");
	return NULL;
}

uint8_t *elfrw_image_private_copy(const struct elfrw_image *img)
{
	if (img->view)
		return img->view->private_copy(img);
	void *p = mmap(NULL, img->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, img->fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void elfrw_image_forget(const struct elfrw_image *img)
{
	if (img->view)
		img->view->forget(img);
	else
		madvise((void *)img->base, img->size, MADV_DONTNEED);
}

void elfrw_image_forget_section(const struct elfrw_image *img, const char *name)
{
	const struct elfrw_section *s = elfrw_image_section(img, name);
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!s || !s->data || img->view)
		return;
	const uint64_t from = (s->hdr.sh_offset + page - 1) & ~(page - 1),
		       to = (s->hdr.sh_offset + s->hdr.sh_size) & ~(page - 1);
	if (from < to)
		madvise((void *)(img->base + from), to - from, MADV_DONTNEED);
}

size_t elfrw_image_file_size(const struct elfrw_image *img)
{
	return img->view ? img->view->file_size(img) : img->size;
}

uint64_t elfrw_image_page(const struct elfrw_image *img)
{
	uint64_t page = img->arch->page_min;
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type == PT_LOAD && ph->p_align > page)
			page = ph->p_align;
	}
	return page < img->arch->page_max ? page : img->arch->page_max;
}

const struct elfrw_section *elfrw_image_section(const struct elfrw_image *img, const char *name)
{
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (strcmp(img->section[i].name, name) == 0)
			return &img->section[i];
	return NULL;
}

/* Does section SH hold all of SYM?  A symbol without a size may stand at the end of SH. */
static bool holds_symbol(const Elf64_Shdr *sh, const Elf64_Sym *sym)
{
	uint64_t off = sym->st_value - sh->sh_addr;
	return sym->st_value >= sh->sh_addr && off <= sh->sh_size &&
	       (off < sh->sh_size || !sym->st_size || !sh->sh_size);
}

uint32_t elfrw_image_symbol_section(const struct elfrw_image *img, const Elf64_Sym *sym,
				    bool dynamic)
{
	uint32_t i = sym->st_shndx;
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	if (i == SHN_UNDEF || i >= SHN_LORESERVE || type == STT_TLS)
		return i;
	const Elf64_Shdr *sh = i < img->n_sections ? &img->section[i].hdr : NULL;
	bool loaded = sh && (sh->sh_flags & SHF_ALLOC);
	if (loaded && holds_symbol(sh, sym))
		return i;
	if (sh && !loaded &&
	    (!dynamic || (type == STT_OBJECT && holds_symbol(sh, sym) &&
			  sym->st_size <= sh->sh_size - (sym->st_value - sh->sh_addr))))
		return i;
	uint32_t found = elfrw_image_section_at(img, sym->st_value);
	return found ? found : i;
}

uint32_t elfrw_image_stand_in(const struct elfrw_image *img, const Elf64_Sym *sym, const bool *gone)
{
	uint32_t before = SHN_UNDEF, first = SHN_UNDEF, equal = SHN_UNDEF;
	bool tls = ELF64_ST_TYPE(sym->st_info) == STT_TLS;
	uint32_t at = tls ? 0 : elfrw_image_section_at(img, sym->st_value);
	if (at && !gone[at])
		return at;
	for (uint32_t i = 1; i < img->n_sections && i < SHN_LORESERVE; i++) {
		const Elf64_Shdr *sh = &img->section[i].hdr;
		if (gone[i])
			continue;
		if (!(sh->sh_flags & SHF_ALLOC)) {
			if (!equal && !tls && !sym->st_value && sym->st_size &&
			    sh->sh_size == sym->st_size)
				equal = i;
			continue;
		}
		if (tls && (sh->sh_flags & SHF_TLS))
			return i;
		if (!first)
			first = i;
		if (sh->sh_addr <= sym->st_value &&
		    (!before || sh->sh_addr >= img->section[before].hdr.sh_addr))
			before = i;
	}
	return equal ? equal : before && !tls ? before : first;
}

bool elfrw_image_is_writable(const struct elfrw_image *img, const struct elfrw_section *s)
{
	const Elf64_Shdr *sh = &s->hdr;
	bool ret = sh->sh_flags & SHF_WRITE;
	for (uint32_t i = 0; i < img->n_phdrs && !ret && !img->separate; i++) {
		const Elf64_Phdr *ph = &img->phdr[i];
		ret = ph->p_type == PT_LOAD && (ph->p_flags & PF_W) &&
		      ph->p_vaddr < sh->sh_addr + sh->sh_size &&
		      sh->sh_addr < ph->p_vaddr + ph->p_memsz;
	}
	return ret;
}

const uint8_t *elfrw_image_at(const struct elfrw_image *img, uint64_t va, uint64_t size)
{
	uint32_t i = elfrw_image_section_at(img, va);
	if (!i || !img->section[i].data)
		return NULL;
	uint64_t off = va - img->section[i].hdr.sh_addr;
	return inside(off, size, img->section[i].hdr.sh_size) ? img->section[i].data + off : NULL;
}

bool elfrw_image_kept_relocs(const struct elfrw_image *img, const struct elfrw_section *s)
{
	const struct elfrw_section *symtab = &img->section[s->hdr.sh_link];
	return s->hdr.sh_type == SHT_RELA && !(s->hdr.sh_flags & SHF_ALLOC) && s->data &&
	       (symtab->hdr.sh_type == SHT_SYMTAB || symtab->hdr.sh_type == SHT_DYNSYM) &&
	       symtab->data;
}

const char *elfrw_image_string(const struct elfrw_image *img, uint32_t shndx, uint64_t off)
{
	if (shndx == 0 || shndx >= img->n_sections || !img->section[shndx].data)
		return NULL;
	const struct elfrw_section *sec = &img->section[shndx];
	/* A table ends in NUL (gABI, "String Table"), and so does every string in it.  A table that
	 * does not end in NUL counts as empty: otherwise each string would have to be searched for
	 * its end, which may be that of the file. */
	if (off >= sec->hdr.sh_size || sec->data[sec->hdr.sh_size - 1])
		return NULL;
	return (const char *)sec->data + off;
}

void elfrw_image_span(const struct elfrw_image *img, uint64_t *lo, uint64_t *hi)
{
	*lo = UINT64_MAX;
	*hi = 0;
	for (unsigned i = 0; i < img->n_phdrs; i++) {
		const Elf64_Phdr *ph = &img->phdr[i];
		if (ph->p_type != PT_LOAD)
			continue;
		*lo = ph->p_vaddr < *lo ? ph->p_vaddr : *lo;
		*hi = ph->p_vaddr + ph->p_memsz > *hi ? ph->p_vaddr + ph->p_memsz : *hi;
	}
}
