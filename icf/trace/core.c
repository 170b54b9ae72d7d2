/* core.c: a core file: its segments, its memory, and where its threads stopped.
 *
 * We read memory from the file on demand ourselves, since libdwfl goes through a list of all
 * earlier reads, and through all segments.  A session of its own asks libdwfl for registers. */
#include "elfrw/arch/arch.h"
#include "elfrw/base/regular.h"
#include "elfrw/base/search.h"
#include "icf/trace/state.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
	bool ok = icf_unwind_core_word(arg, address, &word);
	if (ok)
		*ret = word;
	else
		dwfl_errno(); /* clears earlier errors, so that on_thread reports this one */
	return ok;
}

static const Dwfl_Thread_Callbacks core_threads = { .next_thread = next_start,
						    .memory_read = read_word,
						    .set_initial_registers = set_registers };

/* If words are not 8 bytes in our byte order, or libdwfl cannot give registers, libdwfl reads
 * memory, too. */
static bool reads_memory(const GElf_Ehdr *eh)
{
	return _ELFUTILS_PREREQ(0, 188) && elfrw_arch_of(eh) &&
	       eh->e_ident[EI_CLASS] == ELFCLASS64 && eh->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* Attaches to the threads of the core; *PID < 0: see dwfl_errmsg. */
static struct elfrw_err *attach_core(struct icf_unwind *u, const GElf_Ehdr *eh, int *pid)
{
	if (!reads_memory(eh)) {
		*pid = dwfl_core_file_attach(u->dwfl, u->core);
		return NULL;
	}
	u->registers = dwfl_begin(&u->callbacks);
	if (!u->registers)
		return icf_unwind_problem("cannot start libdwfl");
	*pid = dwfl_core_file_attach(u->registers, u->core);
	if (*pid >= 0 && !dwfl_attach_state(u->dwfl, u->core, *pid, &core_threads, u))
		*pid = -1;
	return NULL;
}

static struct elfrw_err *report_modules(struct icf_unwind *u, const GElf_Ehdr *eh, const char *exe)
{
	struct elfrw_err *err = NULL;
	bool bare = reads_memory(eh) && icf_unwind_lacks_headers(u);
	/* Of relative names libdwfl opens none (icf/cmd/open_libdw.c). */
	char *full = exe ? realpath(exe, NULL) : NULL;
	const char *file = full ? full : exe;
	dwfl_report_begin(u->dwfl);
	int n = dwfl_core_file_report(u->dwfl, u->core, bare ? NULL : file);
	if (bare && n >= 0)
		err = icf_unwind_report_loaded(u, file);
	free(full);
	if ((dwfl_report_end(u->dwfl, NULL, NULL) != 0 || n < 0) && !err)
		return u->truncated ? elfrw_error("%s", u->truncated)
				    : icf_unwind_problem("cannot read the core file");
	return err;
}

struct elfrw_err *icf_unwind_open_core(struct icf_unwind *u, const char *path,
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
	ELFRW_TRY(icf_unwind_few_segments(u));
	ELFRW_TRY(report_modules(u, &eh, options->exe));
	int pid = -1;
	ELFRW_TRY(attach_core(u, &eh, &pid));
	if (pid < 0)
		return u->truncated ? elfrw_error("%s", u->truncated)
				    : icf_unwind_problem("cannot read the core file's threads");
	u->pid = pid;
	ELFRW_TRY(icf_unwind_list_modules(u));
	struct elfrw_err *err = icf_unwind_place_exe(u, options->exe, NULL);
	if (!err || !u->truncated || err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err); /* what is missing could say which file it is */
	return elfrw_error("%s", u->truncated);
}

bool icf_unwind_core_word(struct icf_unwind *u, uint64_t address, uint64_t *word)
{
	size_t lo = LOWER_BOUND(0, u->segment.len, mid, u->segment.data[mid].start <= address);
	if (!lo)
		return false;
	const struct segment *s = &u->segment.data[lo - 1];
	uint64_t off = address - s->start;
	return off < s->size && s->size - off >= 8 &&
	       pread(u->fd, word, 8, (off_t)(s->off + off)) == 8;
}

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

int icf_unwind_read_starts(struct icf_unwind *u)
{
	return u->registers && !u->start.len ? dwfl_getthreads(u->registers, on_start, u) : 0;
}
