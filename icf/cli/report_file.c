/* report_file.c: see report_file.h. */
#include "icf/cli/report_file.h"
#include "elfrw/base/err.h"
#include "elfrw/base/newfile.h"
#include "elfrw/base/regular.h"
#include "elfrw/image.h"
#include <string.h>
#include <unistd.h>

const char *icf_report_file(const char *file)
{
	return file && strcmp(file, "-") == 0 ? "/dev/stdout" : file;
}

static bool is_elf(const char *path)
{
	char magic[SELFMAG];
	int fd = elfrw_open_regular(path);
	if (fd < 0)
		return false;
	bool elf = pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
		   memcmp(magic, ELFMAG, sizeof magic) == 0;
	close(fd);
	return elf;
}

struct elfrw_err *icf_report_check(const char *path, const char *as, char *const *input, size_t n)
{
	if (!path)
		return NULL;
	for (size_t k = 0; k < n; k++)
		if (elfrw_newfile_same_place(path, input[k]))
			return elfrw_error("is the input and cannot be %s too", as);
	if (is_elf(path))
		return elfrw_error("is a program or a debug file and cannot be %s too", as);
	return NULL;
}

/* objcopy --only-keep-debug leaves code without contents. */
struct elfrw_err *icf_output_check(const char *path)
{
	struct elfrw_image img;
	if (!is_elf(path))
		return NULL;
	struct elfrw_err *err = elfrw_image_open_separate(&img, path);
	if (err) {
		elfrw_err_free(err); /* a broken file may be replaced */
		return NULL;
	}
	bool code = false, contents = false;
	for (uint32_t i = 1; i < img.n_sections; i++) {
		const Elf64_Shdr *sh = &img.section[i].hdr;
		bool is_code = (sh->sh_flags & SHF_ALLOC) && (sh->sh_flags & SHF_EXECINSTR);
		code |= is_code;
		contents |= is_code && sh->sh_type != SHT_NOBITS;
	}
	elfrw_image_close(&img);
	return code && !contents ? elfrw_error("is a debug file and cannot be the output too")
				 : NULL;
}
