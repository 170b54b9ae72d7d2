/* elf.c: a file in the form of libelf and libdw. */
#include "icf/verify/state.h"
#include <fcntl.h>
#include <libelf.h>
#include <sys/mman.h>
#include <unistd.h>

/* Will libelf write to the file's bytes?  When it decompresses a section it changes the header. */
static bool has_compressed(const struct elfrw_image *img)
{
	for (uint32_t i = 1; i < img->n_sections; i++)
		if ((img->section[i].hdr.sh_flags & SHF_COMPRESSED) ||
		    strncmp(img->section[i].name, ".zdebug", 7) == 0)
			return true;
	return false;
}

/* Otherwise all handles read the image itself: each mapping of its own would have its own pages to
 * fault in, and to count. */
void icf_v_elf_open(const struct elfrw_image *img, struct icf_velf *ret)
{
	*ret = (struct icf_velf){ .fd = -1, .size = img->size };
	if (img->pair) {
		/* A pair is in no single file. */
		ret->copy = elfrw_image_private_copy(img);
		ret->elf = ret->copy ? elf_memory((char *)ret->copy, img->size) : NULL;
		return;
	}
	if (!has_compressed(img)) {
		/* libelf has no interface for bytes that are const. */
		ret->elf = elf_memory((char *)(uintptr_t)img->base, img->size);
		return;
	}
	ret->fd = open(img->path, O_RDONLY | O_CLOEXEC);
	ret->missing = ret->fd < 0;
	ret->elf = ret->missing ? NULL : elf_begin(ret->fd, ELF_C_READ_MMAP, NULL);
}

void icf_v_elf_close(struct icf_velf *e)
{
	if (e->elf)
		elf_end(e->elf);
	if (e->fd >= 0)
		close(e->fd);
	if (e->copy)
		munmap(e->copy, e->size);
	*e = (struct icf_velf){ .fd = -1 };
}
