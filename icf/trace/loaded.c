/* loaded.c: the program and the libraries of a core that has no ELF headers.
 *
 * libdwfl finds modules by the ELF headers in a core's memory, and checks their build-ids.  qemu
 * leaves all code out of its cores, and with it the headers; so does Linux if coredump_filter says
 * so.  Then the auxiliary vector says where the program is, and the dynamic linker's list (struct
 * r_debug of <link.h>) where its libraries are.  libdwfl knows this list too, but it knows no
 * sysroot for it, takes any file of the name, and finds no static programs.
 *
 * There is no build-id to compare.  So the program is the file that the user gives, and it must
 * have the entry and the program headers of the process.  Of a file with a dynamic table, the
 * table must be the one in memory; of others, nearly all addresses of code in data.
 *
 * Cost: some reads for each library. */
#include "elfrw/arch/arch.h"
#include "elfrw/base/regular.h"
#include "icf/trace/state.h"
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_LIBRARIES 4096
#define MOST_DYNAMIC   1024
#define MOST_POINTERS  8192

struct process {
	uint64_t entry, phdr, phnum; /* of the auxiliary vector */
	uint64_t list;               /* where struct r_debug is; 0: not known */
	uint64_t interp_at;          /* where the program has the dynamic linker's name */
	char interp[256];
};

/* Reads the auxiliary vector out of the notes PH; each number stays 0 if it is not there. */
static void read_auxv(struct icf_unwind *u, const GElf_Phdr *ph, struct process *p)
{
	Elf_Data *notes = elf_getdata_rawchunk(u->core, (int64_t)ph->p_offset, ph->p_filesz,
					       ph->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	GElf_Nhdr nh;
	size_t name, desc;
	for (size_t at = 0; notes && (at = gelf_getnote(notes, at, &nh, &name, &desc)) > 0;) {
		if (nh.n_type != NT_AUXV)
			continue;
		for (size_t i = 0; nh.n_descsz - i >= sizeof(Elf64_auxv_t);
		     i += sizeof(Elf64_auxv_t)) {
			Elf64_auxv_t a;
			memcpy(&a, (const char *)notes->d_buf + desc + i, sizeof a);
			if (a.a_type == AT_ENTRY)
				p->entry = a.a_un.a_val;
			if (a.a_type == AT_PHDR)
				p->phdr = a.a_un.a_val;
			if (a.a_type == AT_PHNUM)
				p->phnum = a.a_un.a_val;
		}
	}
}

static void read_process(struct icf_unwind *u, struct process *p)
{
	size_t n;
	GElf_Phdr ph;
	*p = (struct process){ 0 };
	if (elf_getphdrnum(u->core, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(u->core, (int)i, &ph) && ph.p_type == PT_NOTE)
			read_auxv(u, &ph, p);
}

bool icf_unwind_lacks_headers(struct icf_unwind *u)
{
	struct process p;
	uint64_t word;
	read_process(u, &p);
	return p.phdr && !icf_unwind_core_word(u, p.phdr, &word);
}

/* Does a word of the dynamic table hold an address, which the dynamic linker may relocate there? */
static bool is_pointer(int64_t tag)
{
	return tag == DT_PLTGOT || tag == DT_HASH || tag == DT_STRTAB || tag == DT_SYMTAB ||
	       tag == DT_RELA || tag == DT_REL || tag == DT_JMPREL || tag == DT_RELR ||
	       tag == DT_VERSYM || (tag >= DT_ADDRRNGLO && tag <= DT_ADDRRNGHI);
}

static bool find_phdr(Elf *elf, uint32_t type, GElf_Phdr *ret)
{
	size_t n;
	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, ret) && ret->p_type == type)
			return true;
	return false;
}

/* Is the dynamic table of ELF, loaded BIAS above its linked address, the one in memory?  Sets
 * *DEBUG to the value of DT_DEBUG in memory. */
static bool same_dynamic(struct icf_unwind *u, Elf *elf, const GElf_Phdr *ph, uint64_t bias,
			 uint64_t *debug)
{
	uint64_t n = ph->p_filesz / sizeof(Elf64_Dyn);
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_DYN);
	for (size_t i = 0; data && i < n && i < MOST_DYNAMIC; i++) {
		uint64_t at = bias + ph->p_vaddr + i * sizeof(Elf64_Dyn), tag, value;
		GElf_Dyn d;
		if (!gelf_getdyn(data, (int)i, &d) || !icf_unwind_core_word(u, at, &tag) ||
		    !icf_unwind_core_word(u, at + 8, &value) || tag != (uint64_t)d.d_tag)
			return false;
		if (d.d_tag == DT_NULL)
			return true;
		if (d.d_tag == DT_DEBUG)
			*debug = value;
		else if (value != d.d_un.d_val &&
			 !(is_pointer(d.d_tag) && value == d.d_un.d_val + bias))
			return false;
	}
	return false;
}

/* Can the process have been started from ELF, the program, at *BIAS? */
static bool is_program(const struct process *p, Elf *elf, const GElf_Ehdr *eh, uint64_t *bias)
{
	size_t n;
	*bias = p->entry - eh->e_entry;
	if (eh->e_type == ET_EXEC && *bias)
		return false;
	if (elf_getphdrnum(elf, &n) != 0 || n != p->phnum)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    ph.p_offset <= eh->e_phoff && eh->e_phoff - ph.p_offset < ph.p_filesz)
			return *bias + ph.p_vaddr + eh->e_phoff - ph.p_offset == p->phdr;
	}
	return false;
}

static bool is_code(Elf *elf, uint64_t address)
{
	GElf_Shdr sh;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_flags & SHF_EXECINSTR &&
		    address - sh.sh_addr < sh.sh_size)
			return true;
	return false;
}

/* ELF has no dynamic table.  Do nearly all addresses of code in the data that is read-only after
 * the start (PT_GNU_RELRO) stand in memory as they do in ELF?  The start resolves some of them
 * anew. This tells a folded program from the unfolded one. */
static bool same_pointers(struct icf_unwind *u, Elf *elf)
{
	GElf_Phdr ph;
	size_t same = 0, other = 0;
	if (!find_phdr(elf, PT_GNU_RELRO, &ph))
		return true;
	uint64_t size = ph.p_filesz < MOST_POINTERS * 8 ? ph.p_filesz : MOST_POINTERS * 8;
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, size, ELF_T_BYTE);
	for (uint64_t at = 0; data && size - at >= 8; at += 8) {
		uint64_t is, was;
		memcpy(&was, (const char *)data->d_buf + at, 8);
		if (!is_code(elf, was) || !icf_unwind_core_word(u, ph.p_vaddr + at, &is))
			continue;
		same += is == was;
		other += is != was;
	}
	return other <= same / 8;
}

static void read_interp(struct process *p, Elf *elf, uint64_t bias)
{
	GElf_Phdr ph;
	Elf_Data *data;
	if (!find_phdr(elf, PT_INTERP, &ph) || !ph.p_filesz || ph.p_filesz > sizeof p->interp)
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
	if (!data)
		return;
	memcpy(p->interp, data->d_buf, ph.p_filesz);
	p->interp[ph.p_filesz - 1] = 0;
	p->interp_at = bias + ph.p_vaddr;
}

/* Is ELF, which is not checked yet, the program of P, or (L) the library of L?  Sets *BIAS, and of
 * a program what P lacks. */
static bool is_loaded(struct icf_unwind *u, struct process *p, Elf *elf, const struct link_map *l,
		      uint64_t *bias)
{
	GElf_Ehdr eh, core;
	GElf_Phdr ph;
	uint64_t debug = 0;
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    !gelf_getehdr(u->core, &core) || eh.e_machine != core.e_machine ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	bool dynamic = find_phdr(elf, PT_DYNAMIC, &ph);
	if (l) {
		*bias = l->l_addr;
		return dynamic && *bias + ph.p_vaddr == (uintptr_t)l->l_ld &&
		       same_dynamic(u, elf, &ph, *bias, &debug);
	}
	if (!is_program(p, elf, &eh, bias) ||
	    !(dynamic ? same_dynamic(u, elf, &ph, *bias, &p->list) : same_pointers(u, elf)))
		return false;
	read_interp(p, elf, *bias);
	return true;
}

/* Reports the file PATH to libdwfl as the module NAME if it is what was loaded (is_loaded). */
static bool report(struct icf_unwind *u, struct process *p, const char *path, const char *name,
		   const struct link_map *l)
{
	uint64_t bias = 0;
	int fd = elfrw_open_regular(path);
	if (fd < 0)
		return false;
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool ok = elf && is_loaded(u, p, elf, l, &bias);
	if (elf)
		elf_end(elf);
	ok = ok && dwfl_report_elf(u->dwfl, name, path, fd, bias, true);
	if (!ok)
		close(fd);
	return ok;
}

/* The text at ADDRESS, into RET; false: it is not in the core, or too long. */
static bool read_text(struct icf_unwind *u, uint64_t address, char *ret, size_t size)
{
	uint64_t word;
	for (size_t at = 0; at + 8 <= size && icf_unwind_core_word(u, address + at, &word);
	     at += 8) {
		memcpy(ret + at, &word, 8);
		if (memchr(ret + at, 0, 8))
			return true;
	}
	return false;
}

static struct elfrw_err *add_absent(struct icf_unwind *u, const char *name)
{
	char *copy = strdup(name), **slot = copy ? VEC_PUSH(&u->absent) : NULL;
	if (!slot) {
		free(copy);
		return &elfrw_err_nomem;
	}
	*slot = copy;
	return NULL;
}

static struct elfrw_err *report_library(struct icf_unwind *u, struct process *p,
					const struct link_map *l)
{
	char name[4096];
	uint64_t at = (uintptr_t)l->l_name;
	if (at == p->interp_at)
		memcpy(name, p->interp, sizeof p->interp);
	else if (!read_text(u, at, name, sizeof name))
		return NULL;
	if (*name != '/') /* the program itself, or one that the kernel made */
		return NULL;
	char *path = u->sysroot ? elfrw_path_below(u->sysroot, name) : strdup(name);
	bool ok = path && report(u, p, path, name, l);
	free(path);
	return ok ? NULL : add_absent(u, name);
}

struct elfrw_err *icf_unwind_report_loaded(struct icf_unwind *u, const char *exe)
{
	struct process p;
	read_process(u, &p);
	if (!exe || !report(u, &p, exe, exe, NULL) || !p.list)
		return NULL;
	uint64_t next;
	if (!icf_unwind_core_word(u, p.list + offsetof(struct r_debug, r_map), &next))
		return NULL;
	for (unsigned i = 0; next && i < MOST_LIBRARIES; i++) {
		uint64_t word[4]; /* the first members of struct link_map */
		for (unsigned k = 0; k < 4; k++)
			if (!icf_unwind_core_word(u, next + 8 * k, &word[k]))
				return NULL;
		struct link_map l = { .l_addr = word[0],
				      .l_name = (char *)(uintptr_t)word[1],
				      .l_ld = (ElfW(Dyn) *)(uintptr_t)word[2] };
		ELFRW_TRY(report_library(u, &p, &l));
		next = word[3];
	}
	return NULL;
}

const char *icf_unwind_absent(const struct icf_unwind *u, size_t index)
{
	return index < u->absent.len ? u->absent.data[index] : NULL;
}
