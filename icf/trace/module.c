/* module.c: the programs and libraries in a core or process, and their files. */
#include "dwarf/symbolize/debuginfod.h"
#include "elfrw/base/regular.h"
#include "icf/trace/state.h"
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_as(const char *path, char **file)
{
	int fd = elfrw_open_regular(path);
	if (fd < 0)
		return -1;
	*file = strdup(path);
	if (*file)
		return fd;
	close(fd);
	return -1;
}

/* If the process is in a container, PATH may name another file there than here. */
static bool elsewhere(const char *path, pid_t pid, char *root, size_t size)
{
	struct stat here, there;
	int n = snprintf(root, size, "/proc/%d/root%s", (int)pid, path);
	if (n < 0 || (size_t)n >= size || stat(root, &there) != 0)
		return false;
	return stat(path, &here) != 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

int icf_unwind_find_process_elf(Dwfl_Module *mod, void **userdata, const char *name,
				Dwarf_Addr base, char **file, Elf **elf)
{
	struct module *m = *userdata;
	char root[4096 + 64];
	int fd = m && m->exe ? open_as(m->exe, file) : -1;
	if (fd < 0 && m && name[0] == '/' && elsewhere(name, m->pid, root, sizeof root))
		fd = open_as(root, file);
	return fd >= 0 ? fd : dwfl_linux_proc_find_elf(mod, userdata, name, base, file, elf);
}

static int add_module(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr start,
		      void *arg)
{
	(void)userdata;
	(void)start;
	struct icf_unwind *u = arg;
	struct module *m = VEC_PUSH(&u->module);
	if (!m) {
		u->err = &elfrw_err_nomem;
		return DWARF_CB_ABORT;
	}
	*m = (struct module){
		.mod = mod, .pid = u->pid, .sysroot = u->sysroot, .info = { .name = name }
	};
	return DWARF_CB_OK;
}

/* Lists the modules and gives each its entry. */
struct elfrw_err *icf_unwind_list_modules(struct icf_unwind *u)
{
	dwfl_getmodules(u->dwfl, add_module, u, 0);
	for (size_t i = 0; i < u->module.len; i++) {
		void **userdata;
		dwfl_module_info(u->module.data[i].mod, &userdata, NULL, NULL, NULL, NULL, NULL,
				 NULL);
		*userdata = &u->module.data[i];
	}
	return u->err;
}

uint32_t icf_unwind_module_at(struct icf_unwind *u, uint64_t address)
{
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, address);
	void **userdata = NULL;
	if (!mod)
		return ICF_NO_MODULE;
	dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	return userdata && *userdata ? (uint32_t)((struct module *)*userdata - u->module.data)
				     : ICF_NO_MODULE;
}

size_t icf_unwind_n_modules(const struct icf_unwind *u)
{
	return u->module.len;
}

/* The build-id of the file at PATH: its length in *N (0: none), and in ID (SIZE bytes) as much as
 * fits. */
struct elfrw_err *icf_unwind_file_id(const char *path, unsigned char *id, size_t size, size_t *n)
{
	struct elfrw_err *err = NULL;
	const void *bits;
	int fd = elfrw_open_regular(path);
	if (fd < 0)
		return elfrw_error_errno(errno, "cannot open %s", path);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	ssize_t len = 0;
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		err = elfrw_error("%s is not an ELF file", path);
	else
		len = dwelf_elf_gnu_build_id(elf, &bits);
	*n = len > 0 ? (size_t)len : 0;
	if (*n)
		memcpy(id, bits, *n < size ? *n : size);
	if (elf)
		elf_end(elf);
	close(fd);
	return err;
}

static bool has_build_id(Dwfl_Module *mod, const unsigned char *id, size_t n)
{
	const unsigned char *bits;
	GElf_Addr where;
	int len = dwfl_module_build_id(mod, &bits, &where);
	return len > 0 && (size_t)len == n && !memcmp(bits, id, n);
}

/* Does the file at PATH have the build-id of MOD, or do both have none?  Then the name must
 * suffice. */
static bool same_build(Dwfl_Module *mod, const char *path)
{
	unsigned char id[64];
	const unsigned char *bits;
	GElf_Addr where;
	size_t n;
	struct elfrw_err *err = icf_unwind_file_id(path, id, sizeof id, &n);
	elfrw_err_free(err);
	return !err && (dwfl_module_build_id(mod, &bits, &where) <= 0 ||
			(n <= sizeof id && has_build_id(mod, id, n)));
}

/* The module at the lowest address, or NULL.  This is the program: its libraries are above it. */
static struct module *lowest(struct icf_unwind *u)
{
	struct module *ret = NULL;
	Dwarf_Addr least = 0, start;
	for (size_t i = 0; i < u->module.len; i++) {
		dwfl_module_info(u->module.data[i].mod, NULL, &start, NULL, NULL, NULL, NULL, NULL);
		if (!ret || start < least) {
			ret = &u->module.data[i];
			least = start;
		}
	}
	return ret;
}

static void id_text(char text[2 * 64 + 1], const unsigned char *id, size_t n)
{
	text[0] = 0;
	for (size_t i = 0; i < n && i < 64; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

/* EXE, with the build-id ID, is no file of the process.  The error also names the program's own
 * build-id. */
static struct elfrw_err *misplaced(struct icf_unwind *u, const char *exe, const unsigned char *id,
				   size_t n)
{
	char has[2 * 64 + 1], want[2 * 64 + 1] = "";
	const unsigned char *bits;
	GElf_Addr where;
	const struct module *low = lowest(u);
	int len = low ? dwfl_module_build_id(low->mod, &bits, &where) : 0;
	id_text(has, id, n);
	if (len > 0)
		id_text(want, bits, (size_t)len);
	return elfrw_error(
		"%s is not a file of this process: its build-id is %s, no build-id is the same, and that of %s is %s",
		exe, has, low ? low->info.name : "the program", *want ? want : "not known");
}

/* Finds the module of EXE, which was given as the program's file. */
struct elfrw_err *icf_unwind_place_exe(struct icf_unwind *u, const char *exe, const char *name)
{
	unsigned char id[64];
	size_t n;
	bool found = false;
	struct module *low = lowest(u);
	if (low && !exe)
		low->info.program = true;
	if (!exe)
		return NULL;
	ELFRW_TRY(icf_unwind_file_id(exe, id, sizeof id, &n));
	for (size_t i = 0; i < u->module.len; i++) {
		struct module *m = &u->module.data[i];
		if (name ? strcmp(m->info.name, name)
			 : !n || n > sizeof id || !has_build_id(m->mod, id, n))
			continue;
		m->exe = exe;
		m->info.program = true;
		found = true;
	}
	return found || name || !n ? NULL : misplaced(u, exe, id, n < sizeof id ? n : sizeof id);
}

/* Looks for the file of M below the sysroot; its path goes to M->found.  false: it is not there. */
static bool find_below(struct module *m)
{
	if (!m->found && m->info.name[0] == '/')
		m->found = elfrw_path_below(m->sysroot, m->info.name);
	if (m->found && same_build(m->mod, m->found))
		return true;
	free(m->found);
	m->found = NULL;
	return false;
}

const struct icf_unwind_module *icf_unwind_module(struct icf_unwind *u, uint32_t index)
{
	struct module *m = &u->module.data[index];
	GElf_Addr bias;
	if (m->asked)
		return &m->info;
	m->asked = true;
	if (dwfl_module_getelf(m->mod, &bias)) {
		dwfl_module_info(m->mod, NULL, NULL, NULL, NULL, NULL, &m->info.path, NULL);
		if (m->exe)
			m->info.path = m->exe;
		if (m->found)
			m->info.path = m->found;
		/* libdwfl does not keep the names of files that it finds by the list of mappings in
		 * a core.  It knows of no sysroot there. */
		if (!m->info.path && m->sysroot && find_below(m))
			m->info.path = m->found;
		if (!m->info.path && !m->sysroot && m->info.name[0] == '/' &&
		    same_build(m->mod, m->info.name))
			m->info.path = m->info.name;
		m->info.bias = m->info.path ? bias : 0;
	}
	return &m->info;
}

const char *icf_unwind_symbol(struct icf_unwind *u, uint64_t address)
{
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, address);
	GElf_Off off;
	GElf_Sym sym;
	return mod ? dwfl_module_addrinfo(mod, address, &off, &sym, NULL, NULL, NULL) : NULL;
}

/* Gets the file of MOD from a debuginfod server; its path goes to M->found; -1: none. */
static int from_server(Dwfl_Module *mod, struct module *m, char **file)
{
	const unsigned char *id;
	GElf_Addr where;
	int n = dwfl_module_build_id(mod, &id, &where);
	if (n > 0 && !m->found)
		m->found = dwr_debuginfod_find(id, (size_t)n, DWR_DEBUGINFOD_EXECUTABLE);
	return m->found ? open_as(m->found, file) : -1;
}

/* Finds files of a core: first the given file, then the file of that name below the sysroot, then
 * as libdwfl does. */
int icf_unwind_find_core_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			     char **file, Elf **elf)
{
	struct module *m = *userdata;
	int fd = m && m->exe ? open_as(m->exe, file) : -1;
	if (fd < 0 && m && m->sysroot && find_below(m))
		fd = open_as(m->found, file);
	if (fd >= 0 || !m)
		return fd >= 0 ? fd : dwfl_build_id_find_elf(mod, userdata, name, base, file, elf);
	fd = dwfl_build_id_find_elf(mod, userdata, name, base, file, elf);
	/* libdwfl asks servers, too, but does not say where it has put the file. */
	if (fd >= 0 && *file)
		return fd;
	int served = from_server(mod, m, file);
	if (served >= 0 && fd >= 0)
		close(fd);
	return served >= 0 ? served : fd;
}
