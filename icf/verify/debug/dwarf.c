/* dwarf.c: a file in the form of libdw, and checks that protect libdw. */
#include "icf/verify/debug/dwarf.h"
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* libdw reads strings up to a NUL, wherever it is. */
static bool is_open_ended(Elf_Scn *scn)
{
	const Elf_Data *data = elf_getdata(scn, NULL);
	return !data ||
	       (data->d_size && (!data->d_buf || ((const char *)data->d_buf)[data->d_size - 1]));
}

/* libdw ignores sections that it cannot decompress, even if memory was the reason.  A section that
 * was decompressed once stays so. */
static struct elfrw_err *decompress(struct icf_v *v, Elf *elf)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(elf, names, sh->sh_name) : NULL;
		if (!name || !(sh->sh_flags & SHF_COMPRESSED) || strncmp(name, ".debug_", 7) != 0)
			continue;
		errno = 0;
		if (elf_compress(scn, 0, 0) < 0 && errno == ENOMEM && !v->sure) {
			__atomic_store_n(&v->doubt, true, __ATOMIC_RELAXED);
			return &elfrw_err_nomem;
		}
	}
	return NULL;
}

/* Keeps the bytes of SCN, called NAME, if they are read here as well as by libdw, which has
 * decompressed them. */
static bool keep_section(struct icf_vdwarf *d, const char *name, Elf_Scn *scn)
{
	const struct {
		const char *name;
		const Elf_Data **data;
	} kept[] = { { "debug_loc", &d->loc[0] },
		     { "debug_loclists", &d->loc[1] },
		     { "debug_ranges", &d->ranges[0] },
		     { "debug_rnglists", &d->ranges[1] },
		     { "debug_abbrev", &d->abbrev } };
	if (name[0] != '.')
		return false;
	/* ".zdebug_" in the older way to compress. */
	bool old = name[1] == 'z';
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		if (strcmp(name + 1 + old, kept[i].name) != 0)
			continue;
		const Elf_Data *data = elf_getdata(scn, NULL);
		if (!old || !data || data->d_size < 4 || memcmp(data->d_buf, "ZLIB", 4) != 0)
			*kept[i].data = data;
		return true;
	}
	return false;
}

struct elfrw_err *icf_vdwarf_open(struct icf_v *v, const struct elfrw_image *img,
				  struct icf_vdwarf *ret)
{
	*ret = (struct icf_vdwarf){ 0 };
	icf_v_elf_open(img, &ret->file);
	if (ret->file.missing)
		return elfrw_error_errno(errno, "%s: cannot open", img->path);
	ret->elf = ret->file.elf;
	if (ret->elf)
		ELFRW_TRY(decompress(v, ret->elf));
	ret->dw = ret->elf ? dwarf_begin_elf(ret->elf, DWARF_C_READ, NULL) : NULL;
	if (!ret->elf)
		return elfrw_error("%s: libelf cannot read it: %s", img->path, elf_errmsg(-1));
	if (ret->dw && v->opt->no_memory)
		dwarf_new_oom_handler(ret->dw, v->opt->no_memory);
	size_t names;
	if (elf_getshdrstrndx(ret->elf, &names))
		return elfrw_error("%s: libelf cannot read it: %s", img->path, elf_errmsg(-1));
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(ret->elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(ret->elf, names, sh->sh_name) : NULL;
		if (name && !ret->dw && (sh->sh_flags & SHF_COMPRESSED) &&
		    strncmp(name, ".debug_", 7) == 0)
			ret->why = "it is compressed in a way that libdw does not know";
		if (name && keep_section(ret, name, scn))
			continue;
		if (ret->dw && name &&
		    (strcmp(name, ".debug_str") == 0 || strcmp(name, ".debug_line_str") == 0) &&
		    is_open_ended(scn)) {
			dwarf_end(ret->dw);
			ret->dw = NULL;
			ret->why = "a section of strings does not end with a NUL";
		}
	}
	return NULL;
}

void icf_vdwarf_close(struct icf_vdwarf *d)
{
	if (d->dw)
		dwarf_end(d->dw);
	icf_v_elf_close(&d->file);
	free(d->line);
	*d = (struct icf_vdwarf){ .file.fd = -1 };
}

Elf_Data *icf_vd_section(const struct icf_vdwarf *f, const char *want)
{
	size_t names;
	if (elf_getshdrstrndx(f->elf, &names))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(f->elf, names, sh->sh_name) : NULL;
		/* ".debug_str", or ".zdebug_str" in the older way to compress. */
		bool old = name && strncmp(name, ".z", 2) == 0 &&
			   strncmp(want, ".debug_", 7) == 0 && strcmp(name + 2, want + 1) == 0;
		if (!name || (strcmp(name, want) != 0 && !old) || sh->sh_type == SHT_NOBITS)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		if ((sh->sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
			return NULL;
		/* libdw may have done it already. */
		if (old && data && data->d_size >= 4 && memcmp(data->d_buf, "ZLIB", 4) == 0 &&
		    elf_compress_gnu(scn, 0, 0) < 0)
			return NULL;
		return elf_getdata(scn, NULL);
	}
	return NULL;
}

bool icf_v_ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (a[i].atom != b[i].atom || a[i].number != b[i].number ||
		    a[i].number2 != b[i].number2)
			return false;
	return true;
}
