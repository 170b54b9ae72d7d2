/* unwind_dwfl.c: see unwind_dwfl.h.
 *
 * A process is stopped as a whole (PTRACE_SEIZE and PTRACE_INTERRUPT, which leave no trace in it),
 * so that registers, stacks and objects belong together; libdwfl then reads threads that it finds
 * stopped.
 *
 * Memory of a core is read from the file when it is asked for, and by us: libdwfl goes through a
 * list of all that it has read before, and through all segments.  It is asked for registers in a
 * session of its own.
 *
 * Cost: what libdwfl takes, some microseconds a frame, and the opening of the files that code is
 * found in. */
#include "dwarf/symbolize/debuginfod.h"
#include "elfrw/base/regular.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/search.h"
#include "icf/trace/unwind_dwfl.h"
#include <dirent.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FRAMES  65536 /* of one thread */
#define MAX_THREADS 65536

struct module {
	Dwfl_Module *mod; /* owned by the session */
	bool asked;
	const char *exe;     /* its file is said to be this; borrowed */
	pid_t pid;           /* of the running process that it is in, or 0 */
	const char *sysroot; /* what its name is below, or NULL; borrowed */
	char *found;         /* where its file was found; owned, or NULL */
	struct icf_unwind_module info;
};

struct segment {
	uint64_t start, size, off; /* what the file has of it */
};

struct tracee {
	pid_t tid;
	int signal; /* that it was about to be given */
};

/* A thread of a core where it stopped. */
struct start {
	struct icf_unwind *u;
	pid_t tid;
	const char *problem; /* its registers cannot be read; static */
	uint64_t pc, known;  /* bit R: reg[R] is known */
	Dwarf_Word reg[ICF_UNWIND_REGS];
};

struct icf_unwind {
	Dwfl_Callbacks callbacks;
	char *debug_path; /* owned */
	Dwfl *dwfl;
	Dwfl *registers; /* knows those of a core's threads; NULL: `dwfl` does */
	VEC(struct start) start;
	Elf *core;
	int fd;          /* of the core, or -1 */
	char *sysroot;   /* owned, or NULL */
	char *truncated; /* owned */
	pid_t pid;
	VEC(struct segment) segment; /* sorted by start */
	VEC(struct tracee) tracee;
	VEC(struct module) module;
	/* During icf_unwind_threads. */
	struct icf_unwind_thread thread;
	struct elfrw_err *err;
	struct elfrw_err *(*fn)(void *ctx, const struct icf_unwind_thread *thread);
	void *ctx;
};

static struct elfrw_err *dwfl_problem(const char *what)
{
	const char *text = dwfl_errmsg(-1);
	return elfrw_error("%s: %s", what, text ? text : "unknown error");
}

/* ---- modules ---- */

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

/* What is at PATH for the process may be another file than for us: the process is in a
 * container. */
static bool elsewhere(const char *path, pid_t pid, char *root, size_t size)
{
	struct stat here, there;
	int n = snprintf(root, size, "/proc/%d/root%s", (int)pid, path);
	if (n < 0 || (size_t)n >= size || stat(root, &there) != 0)
		return false;
	return stat(path, &here) != 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

static int find_process_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			    char **file, Elf **elf)
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

/* Lists the modules, each of which then knows its entry. */
static struct elfrw_err *list_modules(struct icf_unwind *u)
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

static uint32_t module_at(struct icf_unwind *u, uint64_t address)
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

/* The build-id of the file at PATH: its length in *N, 0 for none, and in ID (SIZE bytes) as much as
 * there is room for. */
static struct elfrw_err *file_build_id(const char *path, unsigned char *id, size_t size, size_t *n)
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

/* Whether the file at PATH has the build-id of MOD, or neither has one: then the name has to do. */
static bool same_build(Dwfl_Module *mod, const char *path)
{
	unsigned char id[64];
	const unsigned char *bits;
	GElf_Addr where;
	size_t n;
	struct elfrw_err *err = file_build_id(path, id, sizeof id, &n);
	elfrw_err_free(err);
	return !err && (dwfl_module_build_id(mod, &bits, &where) <= 0 ||
			(n <= sizeof id && has_build_id(mod, id, n)));
}

/* The module that is lowest in memory, or NULL: the program, which its libraries are above. */
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

/* EXE, with the build-id ID, is no file of the process: names the program's own build-id, too. */
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

/* The module that EXE, which has been given as the program's file, is the file of. */
static struct elfrw_err *place_exe(struct icf_unwind *u, const char *exe, const char *name)
{
	unsigned char id[64];
	size_t n;
	bool found = false;
	struct module *low = lowest(u);
	if (low && !exe)
		low->info.program = true;
	if (!exe)
		return NULL;
	ELFRW_TRY(file_build_id(exe, id, sizeof id, &n));
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
		/* Of files that it finds by the list of mappings in a core it does not keep the
		 * names. */
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

/* The file of MOD that a debuginfod server has, its path in M->found; -1: none. */
static int from_server(Dwfl_Module *mod, struct module *m, char **file)
{
	const unsigned char *id;
	GElf_Addr where;
	int n = dwfl_module_build_id(mod, &id, &where);
	if (n > 0 && !m->found)
		m->found = dwr_debuginfod_find(id, (size_t)n, DWR_DEBUGINFOD_EXECUTABLE);
	return m->found ? open_as(m->found, file) : -1;
}

/* Files of a core: the one that was given, what has its name below the sysroot, then as libdwfl
 * looks for them. */
static int find_core_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			 char **file, Elf **elf)
{
	struct module *m = *userdata;
	int fd = m && m->exe ? open_as(m->exe, file) : -1;
	if (fd < 0 && m && m->sysroot && name[0] == '/') {
		if (asprintf(&m->found, "%s%s", m->sysroot, name) < 0)
			m->found = NULL;
		if (m->found && same_build(mod, m->found))
			fd = open_as(m->found, file);
		if (fd < 0) {
			free(m->found);
			m->found = NULL;
		}
	}
	if (fd >= 0 || !m)
		return fd >= 0 ? fd : dwfl_build_id_find_elf(mod, userdata, name, base, file, elf);
	fd = dwfl_build_id_find_elf(mod, userdata, name, base, file, elf);
	/* It asks servers too, but does not say where it has put the file. */
	if (fd >= 0 && *file)
		return fd;
	int served = from_server(mod, m, file);
	if (served >= 0 && fd >= 0)
		close(fd);
	return served >= 0 ? served : fd;
}

static struct elfrw_err *begin(const struct icf_unwind_options *options, bool live,
			       struct icf_unwind **ret)
{
	struct icf_unwind *u = calloc(1, sizeof *u);
	if (!u)
		return &elfrw_err_nomem;
	*ret = u;
	u->fd = -1;
	if (options->sysroot && !(u->sysroot = strdup(options->sysroot)))
		return &elfrw_err_nomem;
	if (options->debug_dir && asprintf(&u->debug_path, ":.debug:%s", options->debug_dir) < 0) {
		u->debug_path = NULL;
		return &elfrw_err_nomem;
	}
	u->callbacks = (Dwfl_Callbacks){
		.find_elf = live ? find_process_elf : find_core_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = options->debug_dir ? &u->debug_path : NULL,
	};
	u->dwfl = dwfl_begin(&u->callbacks);
	return u->dwfl ? NULL : dwfl_problem("cannot start libdwfl");
}

/* ---- cores ---- */

static int segment_order(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static struct elfrw_err *read_segments(struct icf_unwind *u, uint64_t size)
{
	size_t n;
	if (elf_getphdrnum(u->core, &n) != 0 || !n)
		return elfrw_error("truncated: no program headers in the file");
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(u->core, (int)i, &ph))
			return elfrw_error("truncated: program header %zu is not in the file", i);
		bool out = ph.p_offset > size || size - ph.p_offset < ph.p_filesz;
		if (out && !u->truncated &&
		    asprintf(
			    &u->truncated,
			    "truncated: segment %zu goes on to offset 0x%llx, the file has 0x%llx bytes",
			    i, (unsigned long long)(ph.p_offset + ph.p_filesz),
			    (unsigned long long)size) < 0) {
			u->truncated = NULL;
			return &elfrw_err_nomem;
		}
		if (ph.p_type != PT_LOAD || ph.p_offset >= size || !ph.p_filesz)
			continue;
		struct segment *s = VEC_PUSH(&u->segment);
		if (!s)
			return &elfrw_err_nomem;
		*s = (struct segment){ ph.p_vaddr, out ? size - ph.p_offset : ph.p_filesz,
				       ph.p_offset };
	}
	if (u->segment.len)
		qsort(u->segment.data, u->segment.len, sizeof *u->segment.data, segment_order);
	return NULL;
}

static pid_t next_start(Dwfl *dwfl, void *arg, void **place)
{
	(void)dwfl;
	struct icf_unwind *u = arg;
	size_t i = *place ? (size_t)((struct start *)*place - u->start.data) + 1 : 0;
	if (i == u->start.len)
		return 0;
	*place = &u->start.data[i];
	return u->start.data[i].tid;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct start *s = arg;
	s->u->thread.problem = s->problem;
	if (s->problem)
		return false;
	for (int r = 0; r < ICF_UNWIND_REGS; r++)
		if ((s->known >> r & 1) && !dwfl_thread_state_registers(thread, r, 1, &s->reg[r]))
			return false;
	dwfl_thread_state_register_pc(thread, s->pc);
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *arg)
{
	(void)dwfl;
	uint64_t word;
	bool ok = icf_unwind_memory(arg, address, &word);
	if (ok)
		*ret = word;
	else
		dwfl_errno(); /* forgets what went wrong before: on_thread says that it was this */
	return ok;
}

static const Dwfl_Thread_Callbacks core_threads = { .next_thread = next_start,
						    .memory_read = read_word,
						    .set_initial_registers = set_registers };

/* Where words are not of eight bytes in our order, and where libdwfl cannot be asked for registers,
 * it reads memory, too. */
static bool reads_memory(const GElf_Ehdr *eh)
{
	return _ELFUTILS_PREREQ(0, 188) && elfrw_arch_for(eh->e_machine) &&
	       eh->e_ident[EI_CLASS] == ELFCLASS64 && eh->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* Attaches to the threads of the core; *PID < 0: dwfl_errmsg tells why not. */
static struct elfrw_err *attach_core(struct icf_unwind *u, const GElf_Ehdr *eh, int *pid)
{
	if (!reads_memory(eh)) {
		*pid = dwfl_core_file_attach(u->dwfl, u->core);
		return NULL;
	}
	u->registers = dwfl_begin(&u->callbacks);
	if (!u->registers)
		return dwfl_problem("cannot start libdwfl");
	*pid = dwfl_core_file_attach(u->registers, u->core);
	if (*pid >= 0 && !dwfl_attach_state(u->dwfl, u->core, *pid, &core_threads, u))
		*pid = -1;
	return NULL;
}

static struct elfrw_err *open_core(struct icf_unwind *u, const char *path,
				   const struct icf_unwind_options *options)
{
	struct stat st;
	GElf_Ehdr eh;
	u->fd = elfrw_open_regular(path);
	if (u->fd < 0)
		return errno == EISDIR   ? elfrw_error("is a directory")
		       : errno == EINVAL ? elfrw_error("not a regular file")
					 : elfrw_error_errno(errno, "cannot open");
	if (fstat(u->fd, &st) != 0)
		return elfrw_error_errno(errno, "cannot stat");
	elf_version(EV_CURRENT);
	u->core = elf_begin(u->fd, ELF_C_READ_MMAP, NULL);
	if (!u->core || elf_kind(u->core) != ELF_K_ELF || !gelf_getehdr(u->core, &eh))
		return elfrw_error("not a core file: not an ELF file");
	if (eh.e_type != ET_CORE)
		return elfrw_error("not a core file");
	ELFRW_TRY(read_segments(u, (uint64_t)st.st_size));
	dwfl_report_begin(u->dwfl);
	int n = dwfl_core_file_report(u->dwfl, u->core, options->exe);
	if (dwfl_report_end(u->dwfl, NULL, NULL) != 0 || n < 0)
		return u->truncated ? elfrw_error("%s", u->truncated)
				    : dwfl_problem("cannot read the core file");
	int pid;
	ELFRW_TRY(attach_core(u, &eh, &pid));
	if (pid < 0)
		return u->truncated ? elfrw_error("%s", u->truncated)
				    : dwfl_problem("cannot read the core file's threads");
	u->pid = pid;
	ELFRW_TRY(list_modules(u));
	return place_exe(u, options->exe, NULL);
}

struct elfrw_err *icf_unwind_core(const char *path, const struct icf_unwind_options *options,
				  struct icf_unwind **ret, const char **truncated)
{
	struct icf_unwind *u = NULL;
	struct elfrw_err *err = begin(options, false, &u);
	if (!err)
		err = open_core(u, path, options);
	if (err) {
		icf_unwind_close(u);
		return err;
	}
	*ret = u;
	*truncated = u->truncated;
	return NULL;
}

/* ---- processes ---- */

static bool traced(const struct icf_unwind *u, pid_t tid)
{
	for (size_t i = u->tracee.len; i-- > 0;)
		if (u->tracee.data[i].tid == tid)
			return true;
	return false;
}

/* Stops thread TID; *STOPPED false: it is no more, or refuses (then errno is in *WHY). */
static struct elfrw_err *stop(struct icf_unwind *u, pid_t tid, bool *stopped, int *why)
{
	*stopped = false;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		*why = errno;
		return NULL;
	}
	struct tracee *t = VEC_PUSH(&u->tracee);
	if (!t) {
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
		return &elfrw_err_nomem;
	}
	*t = (struct tracee){ .tid = tid };
	int status;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	while (waitpid(tid, &status, __WALL) < 0)
		if (errno != EINTR) {
			u->tracee.len--;
			return NULL;
		}
	if (!WIFSTOPPED(status)) {
		u->tracee.len--;
		return NULL;
	}
	if (status >> 16 ==
	    0) /* not our stop but a signal that came first: it gets it at the end */
		t->signal = WSTOPSIG(status);
	*stopped = true;
	return NULL;
}

/* Stops all threads, those that are made meanwhile too. */
static struct elfrw_err *freeze(struct icf_unwind *u, pid_t pid)
{
	char path[64];
	int why = 0;
	bool more = true;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	while (more) {
		more = false;
		DIR *dir = opendir(path);
		if (!dir)
			return errno == ENOENT ? elfrw_error("no such process")
					       : elfrw_error_errno(errno, "cannot read %s", path);
		struct elfrw_err *err = NULL;
		for (struct dirent *e; !err && (e = readdir(dir));) {
			pid_t tid = (pid_t)atoi(e->d_name);
			bool stopped = false;
			if (tid <= 0 || traced(u, tid) || u->tracee.len >= MAX_THREADS)
				continue;
			err = stop(u, tid, &stopped, &why);
			more |= stopped;
		}
		closedir(dir);
		ELFRW_TRY(err);
	}
	if (!u->tracee.len)
		return why ? elfrw_error_errno(why, "cannot stop the process")
			   : elfrw_error("the process has ended");
	return NULL;
}

static struct elfrw_err *open_process(struct icf_unwind *u, pid_t pid,
				      const struct icf_unwind_options *options)
{
	u->pid = pid;
	ELFRW_TRY(freeze(u, pid));
	dwfl_report_begin(u->dwfl);
	int rc = dwfl_linux_proc_report(u->dwfl, pid);
	if (dwfl_report_end(u->dwfl, NULL, NULL) != 0 || rc < 0)
		return dwfl_problem("cannot read the process");
	if (rc > 0)
		return elfrw_error_errno(rc, "cannot read the process");
	ELFRW_TRY(list_modules(u));
	char link[64], exe[4096];
	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, exe, sizeof exe - 1);
	exe[n > 0 ? n : 0] = 0;
	unsigned char want[64], got[64];
	size_t n_want = 0, n_got = 0;
	if (options->exe) {
		ELFRW_TRY(file_build_id(options->exe, got, sizeof got, &n_got));
		elfrw_err_free(file_build_id(link, want, sizeof want, &n_want));
	}
	if (n_want && (n_want != n_got || n_want > sizeof want || memcmp(want, got, n_want)))
		return elfrw_error("%s is not the program of this process: another build-id",
				   options->exe);
	ELFRW_TRY(place_exe(u, options->exe, exe));
	rc = dwfl_linux_proc_attach(u->dwfl, pid, true);
	if (rc < 0)
		return dwfl_problem("cannot read the process");
	if (rc > 0)
		return elfrw_error_errno(rc, "cannot read the process");
	return NULL;
}

struct elfrw_err *icf_unwind_process(pid_t pid, const struct icf_unwind_options *options,
				     struct icf_unwind **ret)
{
	struct icf_unwind *u = NULL;
	struct elfrw_err *err = begin(options, true, &u);
	if (!err)
		err = open_process(u, pid, options);
	if (err)
		icf_unwind_close(u);
	else
		*ret = u;
	return err;
}

void icf_unwind_close(struct icf_unwind *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	if (u->registers)
		dwfl_end(u->registers);
	for (size_t i = 0; i < u->tracee.len; i++)
		ptrace(PTRACE_DETACH, u->tracee.data[i].tid, NULL,
		       (void *)(intptr_t)u->tracee.data[i].signal);
	if (u->core)
		elf_end(u->core);
	if (u->fd >= 0)
		close(u->fd);
	VEC_FREE(&u->segment);
	VEC_FREE(&u->start);
	VEC_FREE(&u->tracee);
	for (size_t i = 0; i < u->module.len; i++)
		free(u->module.data[i].found);
	VEC_FREE(&u->module);
	free(u->sysroot);
	VEC_FREE(&u->thread.frame);
	free(u->truncated);
	free(u->debug_path);
	free(u);
}

pid_t icf_unwind_pid(const struct icf_unwind *u)
{
	return u->pid;
}

bool icf_unwind_memory(struct icf_unwind *u, uint64_t address, uint64_t *word)
{
	if (!u->core) {
		struct iovec here = { word, 8 }, there = { (void *)(uintptr_t)address, 8 };
		return process_vm_readv(u->pid, &here, 1, &there, 1, 0) == 8;
	}
	size_t lo = LOWER_BOUND(0, u->segment.len, mid, u->segment.data[mid].start <= address);
	if (!lo)
		return false;
	const struct segment *s = &u->segment.data[lo - 1];
	uint64_t off = address - s->start;
	return off < s->size && s->size - off >= 8 &&
	       pread(u->fd, word, 8, (off_t)(s->off + off)) == 8;
}

/* ---- threads ---- */

static int on_start_frame(Dwfl_Frame *state, void *arg)
{
	struct start *s = arg;
	if (!dwfl_frame_pc(state, &s->pc, NULL))
		return DWARF_CB_OK;
	s->problem = NULL;
#if _ELFUTILS_PREREQ(0, 188)
	for (unsigned r = 0; r < ICF_UNWIND_REGS; r++)
		if (dwfl_frame_reg(state, r, &s->reg[r]) == 0)
			s->known |= UINT64_C(1) << r;
#endif
	return DWARF_CB_ABORT;
}

static int on_start(Dwfl_Thread *thread, void *arg)
{
	struct icf_unwind *u = arg;
	struct start *s = VEC_PUSH(&u->start);
	if (!s) {
		u->err = &elfrw_err_nomem;
		return DWARF_CB_ABORT;
	}
	*s = (struct start){ .u = u, .tid = dwfl_thread_tid(thread), .problem = "no registers" };
	if (dwfl_thread_getframes(thread, on_start_frame, s) < 0)
		s->problem = dwfl_errmsg(-1);
	return DWARF_CB_OK;
}

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct icf_unwind *u = arg;
	Dwarf_Addr pc;
	bool activation;
	if (!dwfl_frame_pc(state, &pc, &activation)) {
		u->thread.problem = "the return address of the last frame is not known";
		return DWARF_CB_ABORT;
	}
	if (u->thread.frame.len == MAX_FRAMES) {
		u->thread.problem = "it is too deep";
		return DWARF_CB_ABORT;
	}
	struct icf_unwind_frame *f = VEC_PUSH(&u->thread.frame);
	if (!f) {
		u->err = &elfrw_err_nomem;
		return DWARF_CB_ABORT;
	}
	f->pc = pc;
	f->activation = activation || u->thread.frame.len == 1;
	f->module = module_at(u, f->activation ? pc : pc - 1);
#if _ELFUTILS_PREREQ(0, 188)
	for (unsigned r = 0; r < ICF_UNWIND_REGS; r++)
		if (dwfl_frame_reg(state, r, &f->reg[r]) == 0)
			f->known |= UINT64_C(1) << r;
#endif
	return DWARF_CB_OK;
}

static int on_thread(Dwfl_Thread *thread, void *arg)
{
	struct icf_unwind *u = arg;
	u->thread.tid = dwfl_thread_tid(thread);
	u->thread.problem = NULL;
	u->thread.frame.len = 0;
	int rc = dwfl_thread_getframes(thread, on_frame, u);
	int error = rc < 0 ? dwfl_errno() : 0;
	if (!u->err && rc < 0 && !u->thread.problem)
		u->thread.problem = error ? dwfl_errmsg(error) : "address out of range";
	if (!u->err)
		u->err = u->fn(u->ctx, &u->thread);
	return u->err ? DWARF_CB_ABORT : DWARF_CB_OK;
}

struct elfrw_err *icf_unwind_threads(
	struct icf_unwind *u,
	struct elfrw_err *(*fn)(void *ctx, const struct icf_unwind_thread *thread), void *ctx)
{
	struct elfrw_err *broken = NULL;
	u->fn = fn;
	u->ctx = ctx;
	if (u->registers && !u->start.len && dwfl_getthreads(u->registers, on_start, u) < 0 &&
	    !u->err)
		broken = u->truncated ? elfrw_error("%s", u->truncated)
				      : dwfl_problem("cannot list the threads");
	int rc = u->err ? 0 : dwfl_getthreads(u->dwfl, on_thread, u);
	struct elfrw_err *err = u->err ? u->err : broken;
	if (err != broken)
		elfrw_err_free(broken);
	u->err = NULL;
	if (!err && rc < 0)
		err = u->truncated ? elfrw_error("%s", u->truncated)
				   : dwfl_problem("cannot list the threads");
	return err;
}
