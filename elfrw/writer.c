/* writer.c: puts a laid-out file on disk, whole or not at all.
 *
 * The file is written without a name (O_TMPFILE) in the output's directory, linked to a temporary name when it is
 * complete and renamed: a killed process leaves nothing behind.  File systems without unnamed files get a temporary
 * file from the start.  Unchanged sections are written straight from the mapped input. */
#include "elfrw/output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct elfrw_err *write_at(int fd, const void *data, uint64_t size, uint64_t off)
{
	const char *p = data;
	while (size) {
		ssize_t n = pwrite(fd, p, size > (1u << 30) ? 1u << 30 : size, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return elfrw_error_errno(n < 0 ? errno : ENOSPC, "cannot write");
		p += n;
		off += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return NULL;
}

/* The bytes between sections of a segment that did not move are kept: nothing names them, but nothing was said about them
 * either.  [FROM, TO) are new addresses, the same as the old ones. */
static struct elfrw_err *write_gap(const struct elfrw_output *out, int fd, const struct elfrw_piece *piece, uint64_t from, uint64_t to)
{
	const Elf64_Phdr *old = &out->img->phdr[piece->old];
	if (to > old->p_vaddr + old->p_filesz)
		to = old->p_vaddr + old->p_filesz;
	if (to <= from)
		return NULL;
	return write_at(fd, out->img->base + old->p_offset + (from - old->p_vaddr), to - from, piece->ph.p_offset + (from - piece->ph.p_vaddr));
}

struct part {
	uint64_t addr, old_addr, old_end;
	uint32_t i;
};

static int part_order(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

static struct elfrw_err *write_piece(const struct elfrw_output *out, int fd, const struct elfrw_piece *piece, struct part *part)
{
	const struct elfrw_image *img = out->img;
	const Elf64_Phdr *ph = &piece->ph;
	uint64_t end = ph->p_vaddr + ph->p_filesz;
	uint32_t n = 0;
	bool moved = false;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_outsec *s = &out->sec[i];
		const Elf64_Shdr *sh = &img->section[i].hdr;
		if (!(sh->sh_flags & SHF_ALLOC) || sh->sh_type == SHT_NOBITS || !s->size || s->addr < ph->p_vaddr || s->addr >= end)
			continue;
		moved |= s->addr != sh->sh_addr || s->size != sh->sh_size;
		part[n++] = (struct part){ s->addr, sh->sh_addr, sh->sh_addr + sh->sh_size, i };
	}
	qsort(part, n, sizeof *part, part_order);
	uint64_t at = ph->p_vaddr;
	for (uint32_t k = 0; k < n; k++) {
		const struct elfrw_outsec *s = &out->sec[part[k].i];
		if (!moved)
			ELFRW_TRY(write_gap(out, fd, piece, at, s->addr));
		ELFRW_TRY(write_at(fd, s->data, s->size, ph->p_offset + (s->addr - ph->p_vaddr)));
		at = s->addr + s->size;
	}
	return moved ? NULL : write_gap(out, fd, piece, at, end);
}

static struct elfrw_err *write_all(const struct elfrw_output *out, int fd)
{
	const struct elfrw_image *img = out->img;
	struct part *part = malloc(img->n_sections * sizeof *part);
	if (!part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < out->piece.len && !err; i++)
		err = write_piece(out, fd, &out->piece.data[i], part);
	free(part);
	for (uint32_t i = 1; i < img->n_sections && !err; i++) {
		const struct elfrw_outsec *s = &out->sec[i];
		if (s->drop || (img->section[i].hdr.sh_flags & SHF_ALLOC) || img->section[i].hdr.sh_type == SHT_NOBITS)
			continue;
		if (i == img->shstrndx)
			err = write_at(fd, out->shstrtab, out->shstrtab_size, s->offset);
		else if (s->size)
			err = write_at(fd, s->data, s->size, s->offset);
	}
	for (size_t i = 0; i < out->added.len && !err; i++)
		err = write_at(fd, out->added.data[i].data, out->added.data[i].size, out->added.data[i].offset);
	if (!err)
		err = write_at(fd, out->shdrs, (uint64_t)out->n_out * sizeof(Elf64_Shdr), out->ehdr.e_shoff);
	if (!err)
		err = write_at(fd, out->phdr.data, out->phdr.len * sizeof(Elf64_Phdr), out->ehdr.e_phoff);
	return err ? err : write_at(fd, &out->ehdr, sizeof out->ehdr, 0);
}

/* "DIR/.NAME.icfold-PID-TRY", in memory that the caller frees; NULL: out of memory. */
static char *temp_name(const char *path, unsigned try)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path + 1) : 0;
	char *name;
	if (asprintf(&name, "%.*s.%s.icfold-%ld-%u", dir, path, path + dir, (long)getpid(), try) < 0)
		return NULL;
	return name;
}

static char *dir_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static struct elfrw_err *fill(const struct elfrw_output *out, int fd)
{
	/* Some file systems tell only here that there is no room; holes between sections stay holes. */
	if (ftruncate(fd, (off_t)out->file_size) != 0)
		return elfrw_error_errno(errno, "cannot set the size");
	ELFRW_TRY(write_all(out, fd));
	if (fchmod(fd, out->img->mode) != 0)
		return elfrw_error_errno(errno, "cannot set the mode");
	return NULL;
}

/* Gives the unnamed file FD the name PATH, replacing an older file. */
static struct elfrw_err *link_in_place(int fd, const char *path)
{
	char proc[64];
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
	for (unsigned try = 0; try < 100; try++) {
		char *name = temp_name(path, try);
		if (!name)
			return &elfrw_err_nomem;
		struct elfrw_err *err = NULL;
		if (linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0) {
			int e = errno;
			free(name);
			if (e == EEXIST)
				continue;
			return elfrw_error_errno(e, "cannot create");
		}
		if (rename(name, path) != 0) {
			err = elfrw_error_errno(errno, "cannot replace");
			unlink(name);
		}
		free(name);
		return err;
	}
	return elfrw_error("cannot create: too many temporary files");
}

static struct elfrw_err *write_named(const struct elfrw_output *out, const char *path)
{
	for (unsigned try = 0; try < 100; try++) {
		char *name = temp_name(path, try);
		if (!name)
			return &elfrw_err_nomem;
		int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0) {
			int e = errno;
			free(name);
			if (e == EEXIST)
				continue;
			return elfrw_error_errno(e, "cannot create");
		}
		struct elfrw_err *err = fill(out, fd);
		if (close(fd) != 0 && !err)
			err = elfrw_error_errno(errno, "cannot write");
		if (!err && rename(name, path) != 0)
			err = elfrw_error_errno(errno, "cannot replace");
		if (err)
			unlink(name);
		free(name);
		return err;
	}
	return elfrw_error("cannot create: too many temporary files");
}

static struct elfrw_err *write_device(const struct elfrw_output *out, const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return elfrw_error_errno(errno, "cannot open");
	struct elfrw_err *err = write_all(out, fd);
	close(fd);
	return err;
}

struct elfrw_err *elfrw_output_write(const struct elfrw_output *out, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? elfrw_error("is a directory") : write_device(out, path);
	char *dir = dir_name(path);
	if (!dir)
		return &elfrw_err_nomem;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	free(dir);
	if (fd < 0)
		return write_named(out, path);
	struct elfrw_err *err = fill(out, fd);
	if (!err)
		err = link_in_place(fd, path);
	if (close(fd) != 0 && !err)
		err = elfrw_error_errno(errno, "cannot write");
	return err;
}
