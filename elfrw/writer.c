/* writer.c: writes a laid-out file; newfile.c puts it in place.  Unchanged sections are written
 * directly from the mapped input. */
#include "elfrw/output.h"
#include "elfrw/base/attributes.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Keeps the bytes between the sections of a segment that did not move: nothing refers to them, but
 * nothing says that they are unused.  [FROM, TO) are new addresses, equal to the old ones.  Bytes
 * of a section that is now shorter or elsewhere become zeros. */
static struct elfrw_err *write_gap(const struct elfrw_output *out, const struct elfrw_newfile *f,
				   const struct elfrw_piece *piece, uint64_t from, uint64_t to)
{
	const Elf64_Phdr *old = &out->img->phdr[piece->old];
	if (to > old->p_vaddr + old->p_filesz)
		to = old->p_vaddr + old->p_filesz;
	while (from < to) {
		uint32_t i = elfrw_image_section_from(out->img, from);
		const Elf64_Shdr *sh = i ? &out->img->section[i].hdr : NULL;
		uint64_t next = sh && sh->sh_addr < to ? sh->sh_addr : to;
		if (next <= from) {
			from = sh->sh_addr + sh->sh_size;
			continue;
		}
		const uint8_t *data = out->img->base + old->p_offset + (from - old->p_vaddr);
		/* Most gaps are zero padding, which is a hole in a new file. */
		if (f->in_place || data[0] != 0 || memcmp(data, data + 1, next - from - 1) != 0)
			ELFRW_TRY(elfrw_newfile_write(f, data, next - from,
						      piece->ph.p_offset +
							      (from - piece->ph.p_vaddr)));
		from = next;
	}
	return NULL;
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

static struct elfrw_err *write_piece(const struct elfrw_output *out, const struct elfrw_newfile *f,
				     const struct elfrw_piece *piece, struct part *part)
{
	const struct elfrw_image *img = out->img;
	const Elf64_Phdr *ph = &piece->ph;
	uint64_t end = ph->p_vaddr + ph->p_filesz;
	uint32_t n = 0;
	bool moved = false;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_outsec *s = &out->sec[i];
		const Elf64_Shdr *sh = &img->section[i].hdr;
		if (!(sh->sh_flags & SHF_ALLOC) || sh->sh_type == SHT_NOBITS || !s->size ||
		    s->addr < ph->p_vaddr || s->addr >= end)
			continue;
		moved |= s->addr != sh->sh_addr || s->size != sh->sh_size;
		part[n++] = (struct part){ s->addr, sh->sh_addr, sh->sh_addr + sh->sh_size, i };
	}
	qsort(part, n, sizeof *part, part_order);
	uint64_t at = ph->p_vaddr;
	for (uint32_t k = 0; k < n; k++) {
		const struct elfrw_outsec *s = &out->sec[part[k].i];
		if (!moved)
			ELFRW_TRY(write_gap(out, f, piece, at, s->addr));
		ELFRW_TRY(elfrw_newfile_write(f, s->data, s->size,
					      ph->p_offset + (s->addr - ph->p_vaddr)));
		at = s->addr + s->size;
	}
	return moved ? NULL : write_gap(out, f, piece, at, end);
}

/* Pages of zeros stay holes. */
static struct elfrw_err *write_same(const struct elfrw_image *img, const struct elfrw_newfile *f)
{
	static const uint8_t zeros[4096];
	for (size_t at = 0, end; at < img->size; at = end) {
		bool hole = !f->in_place;
		for (end = at; end < img->size; end += sizeof zeros) {
			size_t n = img->size - end < sizeof zeros ? img->size - end : sizeof zeros;
			bool zero = !f->in_place && memcmp(img->base + end, zeros, n) == 0;
			if (end == at)
				hole = zero;
			if (zero != hole)
				break;
		}
		if (end > img->size)
			end = img->size;
		if (!hole)
			ELFRW_TRY(elfrw_newfile_write(f, img->base + at, end - at, at));
	}
	return NULL;
}

static struct elfrw_err *write_all(const struct elfrw_output *out, const struct elfrw_newfile *f)
{
	const struct elfrw_image *img = out->img;
	struct part *part = malloc(img->n_sections * sizeof *part);
	if (!part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < out->piece.len && !err; i++)
		err = write_piece(out, f, &out->piece.data[i], part);
	free(part);
	for (uint32_t i = 1; i < img->n_sections && !err; i++) {
		const struct elfrw_outsec *s = &out->sec[i];
		if (s->drop || (img->section[i].hdr.sh_flags & SHF_ALLOC) ||
		    img->section[i].hdr.sh_type == SHT_NOBITS)
			continue;
		if (i == img->shstrndx)
			err = elfrw_newfile_write(f, out->shstrtab, out->shstrtab_size, s->offset);
		else if (s->size)
			err = elfrw_newfile_write(f, s->data, s->size, s->offset);
	}
	for (size_t i = 0; i < out->added.len && !err; i++)
		if (!out->added.data[i].debug)
			err = elfrw_newfile_write(f, out->added.data[i].data,
						  out->added.data[i].size,
						  out->added.data[i].offset);
	if (!err)
		err = elfrw_newfile_write(f, out->shdrs, (uint64_t)out->n_out * sizeof(Elf64_Shdr),
					  out->ehdr.e_shoff);
	/* In a pair's view the program is first. */
	if (!err && out->tail.size)
		err = elfrw_newfile_write(f, img->base + out->tail.offset, out->tail.size,
					  out->file_size - out->tail.size);
	if (!err)
		err = elfrw_newfile_write(f, out->phdr.data, out->phdr.len * sizeof(Elf64_Phdr),
					  out->ehdr.e_phoff);
	return err ? err : elfrw_newfile_write(f, &out->ehdr, sizeof out->ehdr, 0);
}

/* A file that replaces the input itself keeps all of its mode, the extended attributes and, if
 * allowed, the owner.  Set-user-ID and set-group-ID bits stay only if the owner does. */
static struct elfrw_err *keep_status(const struct elfrw_image *img, const char *path, int fd)
{
	struct stat st;
	mode_t mode = img->mode;
	if (fstat(fd, &st) != 0)
		return elfrw_error_errno(errno, "cannot stat");
	if ((st.st_uid != img->uid || st.st_gid != img->gid) && fchown(fd, img->uid, img->gid) != 0)
		mode &= 0777;
	mode = elfrw_copy_attributes(path, fd, mode);
	/* File systems without modes of their own may refuse. */
	if (fchmod(fd, mode) != 0 && errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return elfrw_error_errno(errno, "cannot set the mode");
	return NULL;
}

struct elfrw_err *elfrw_output_fill(const struct elfrw_output *out, const struct elfrw_newfile *f)
{
	struct stat st;
	/* Some file systems report a full disk only here.  Holes between sections stay holes. */
	if (!f->in_place && ftruncate(f->fd, (off_t)out->file_size) != 0)
		return elfrw_error_errno(errno, "cannot set the size");
	ELFRW_TRY(out->unchanged ? write_same(out->img, f) : write_all(out, f));
	/* File systems without holes need written zeros. */
	for (size_t i = 0; i < out->hole.len && !f->in_place; i++) {
		uint64_t off;
		if (elfrw_output_offset(out, out->hole.data[i].va, &off))
			(void)fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)off, (off_t)out->hole.data[i].size);
	}
	if (!f->in_place && f->stream < 0 && lstat(f->path, &st) == 0 &&
	    st.st_dev == out->img->dev && st.st_ino == out->img->ino)
		return keep_status(out->img, f->path, f->fd);
	return NULL;
}

struct elfrw_err *elfrw_output_begin(const struct elfrw_output *out, const char *path,
				     struct elfrw_newfile *ret)
{
	/* Set-user-ID and similar rights are not passed on: the new file may have another owner. */
	ELFRW_TRY(elfrw_newfile_begin(ret, path, out->img->mode & 0777));
	struct elfrw_err *err = elfrw_output_fill(out, ret);
	if (err)
		elfrw_newfile_drop(ret);
	return err;
}

struct elfrw_err *elfrw_output_write(const struct elfrw_output *out, const char *path)
{
	struct elfrw_newfile f;
	ELFRW_TRY(elfrw_output_begin(out, path, &f));
	return elfrw_newfile_commit(&f);
}
