/* elf.c: a file in the form of libelf and libdw. */
#include "icf/verify/state.h"
#include <fcntl.h>
#include <libelf.h>
#include <sys/mman.h>
#include <unistd.h>

void icf_v_elf_open(const struct elfrw_image *img, struct icf_velf *ret)
{
	*ret = (struct icf_velf){ .fd = -1, .size = img->size };
	if (img->pair) {
		/* A pair is in no single file.  When libelf decompresses a section it changes the
		 * header. */
		ret->copy = elfrw_image_private_copy(img);
		ret->elf = ret->copy ? elf_memory((char *)ret->copy, img->size) : NULL;
		return;
	}
	ret->fd = open(img->path, O_RDONLY | O_CLOEXEC);
	ret->elf = ret->fd < 0 ? NULL : elf_begin(ret->fd, ELF_C_READ_MMAP, NULL);
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
