/* branches.c: branches [-n N] [-g] [-t THUNKS] PROGRAM ARGUMENT...
 *             branches [-n N] [-g] [-t THUNKS] -v PROGRAM < TRACE
 *             branches [-n N] [-g] [-t THUNKS] -q PROGRAM < TRACE
 *
 * Runs PROGRAM (x86-64) instruction by instruction, and prints its taken branches in the form of
 * `perf script --show-mmap-events -F ip,brstack`: each line the last N branches, with no branch in
 * two lines.  With -g a call chain comes before each line.
 *
 * Branches that neither leave nor reach the program's own code are left out: those of libraries
 * differ from run to run.  THUNKS is a file of lines "START END" (hexadecimal, as linked): branches
 * from there do not count as one of the N and begin no line, so that the lines of a folded program
 * say the same as those of the program before.
 *
 * With -v the program is not run: TRACE is what valgrind --tool=lackey --trace-mem=yes says of its
 * run, which is the same for a hundredth of the time.  With -q PROGRAM is for AArch64, and TRACE is
 * what qemu-aarch64 -singlestep -d exec,nochain says.
 *
 * It knows the few opcodes that branch, and shares no code with icfold. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct range {
	uint64_t from, to;
};

struct record {
	uint64_t from, to;
};

enum { MOST = 1024, DEEPEST = 1 << 16 };

static struct range code, thunk[65536];
static unsigned n_thunks;
static const uint8_t *text; /* of the mapping `code` */
static struct record ring[MOST];
static unsigned n_ring, n_counted, window = 32;
static uint64_t stack[DEEPEST];
static unsigned depth;
static uint64_t entry;
static uint64_t shift; /* from addresses as linked */
static bool chains, aarch64;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static bool inside(uint64_t va)
{
	return va >= code.from && va < code.to;
}

static bool is_thunk(uint64_t va)
{
	unsigned low = 0, high = n_thunks; /* the first that ends behind VA */
	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		if (va < thunk[mid].to)
			high = mid;
		else
			low = mid + 1;
	}
	return low < n_thunks && va >= thunk[low].from;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct range *)a)->from, y = ((const struct range *)b)->from;
	return (x > y) - (x < y);
}

static void read_thunks(const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f)
		die(path);
	while (n_thunks < sizeof thunk / sizeof *thunk &&
	       fscanf(f, "%" SCNx64 " %" SCNx64, &thunk[n_thunks].from, &thunk[n_thunks].to) == 2) {
		thunk[n_thunks].from += shift;
		thunk[n_thunks].to += shift;
		n_thunks++;
	}
	fclose(f);
	qsort(thunk, n_thunks, sizeof *thunk, by_address);
}

/* From the file in FD, of which OFFSET is mapped to code.from. */
static void find_shift(int fd, uint64_t offset)
{
	Elf64_Ehdr e;
	Elf64_Phdr h;
	if (pread(fd, &e, sizeof e, 0) != sizeof e)
		die("ELF header");
	entry = e.e_entry;
	for (unsigned i = 0; i < e.e_phnum; i++)
		if (pread(fd, &h, sizeof h, (off_t)(e.e_phoff + i * sizeof h)) == sizeof h &&
		    h.p_type == PT_LOAD && h.p_flags & PF_X && offset >= (h.p_offset & ~0xfffull) &&
		    offset < h.p_offset + h.p_filesz)
			shift = code.from - (h.p_vaddr + (offset - h.p_offset));
}

/* Maps the code at OFFSET of PATH, whose real name is REAL, and says so as perf does. */
static void map_code(const char *path, const char *real, uint64_t offset)
{
	printf("PERF_RECORD_MMAP2 %d/%d: [0x%" PRIx64 "(0x%" PRIx64 ") @ 0x%" PRIx64
	       " 08:01 1 0]: r-xp %s\n",
	       7, 7, code.from, code.to - code.from, offset, real);
	int fd = open(path, O_RDONLY);
	text = mmap(NULL, code.to - code.from, PROT_READ, MAP_PRIVATE, fd, (off_t)offset);
	if (fd < 0 || text == MAP_FAILED)
		die(path);
	find_shift(fd, offset);
	close(fd);
}

/* The first executable mapping of PATH in process PID; prints it. */
static void find_code(pid_t pid, const char *path)
{
	char name[64], line[4500], *real = realpath(path, NULL);
	uint64_t offset;
	snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
	FILE *f = fopen(name, "r");
	if (!f || !real)
		die(name);
	while (fgets(line, sizeof line, f)) {
		char perm[8];
		line[strcspn(line, "\n")] = 0;
		if (!strstr(line, real) ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &code.from, &code.to, perm,
			   &offset) != 4 ||
		    perm[2] != 'x')
			continue;
		map_code(path, real, offset);
		fclose(f);
		free(real);
		return;
	}
	fprintf(stderr, "%s is not mapped\n", path);
	exit(2);
}

/* Does the instruction at P, whose address is VA, branch to TO?  *CALL, *RET: it is a call or a
 * return.  *LEN: of a call. */
static bool branches(const uint8_t *p, uint64_t va, uint64_t to, bool *call, bool *ret,
		     unsigned *len)
{
	const uint8_t *s = p;
	*call = *ret = false;
	while (*p == 0x66 || *p == 0xf2 || *p == 0xf3 || *p == 0x2e || *p == 0x3e || *p == 0x48)
		p++;
	if ((*p & 0xf8) == 0x40) /* REX */
		p++;
	unsigned op = *p;
	int32_t d;
	memcpy(&d, p + (op == 0x0f ? 2 : 1), 4);
	unsigned n = (unsigned)(p - s);
	if (op == 0xe8) {
		*call = true;
		*len = n + 5;
		return true;
	}
	if (op == 0xc3 || op == 0xc2)
		return *ret = true;
	if (op == 0xe9)
		return true;
	if (op == 0xeb)
		return true;
	if ((op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)
		return to == va + n + 2 + (uint64_t)(int64_t)(int8_t)p[1] && p[1] != 0;
	if (op == 0x0f && (p[1] & 0xf0) == 0x80)
		return to == va + n + 6 + (uint64_t)(int64_t)d && d != 0;
	if (op == 0xff && (p[1] >> 3 & 7) == 2) {
		unsigned mod = p[1] >> 6, rm = p[1] & 7;
		*call = true;
		*len = n + 2 + (mod != 3 && rm == 4) +
		       (mod == 1                            ? 1
			: mod == 2 || (mod == 0 && rm == 5) ? 4
							    : 0);
		if (mod == 0 && rm == 4 && (p[2] & 7) == 5)
			*len += 4;
		return true;
	}
	return op == 0xff && (p[1] >> 3 & 7) == 4;
}

/* The same of AArch64: b, bl, those with a condition, br, blr, ret (also with authentication). */
static bool branches_a64(uint32_t w, uint64_t va, uint64_t to, bool *call, bool *ret)
{
	*call = *ret = false;
	if ((w & 0x7c000000) == 0x14000000) {
		*call = w >> 31;
		return true;
	}
	if ((w & 0xfe000000) == 0xd6000000) {
		*call = (w >> 21 & 7) == 1;
		*ret = (w >> 21 & 7) == 2;
		return true;
	}
	bool may = (w & 0xff000010) == 0x54000000 || (w & 0x7c000000) == 0x34000000;
	return may && to != va + 4;
}

static void flush(uint64_t ip)
{
	if (chains) {
		printf("\t%16" PRIx64 "\n", ip);
		for (unsigned i = depth; i-- > 0;)
			printf("\t%16" PRIx64 "\n", stack[i]);
	} else
		printf("%17" PRIx64 " ", ip);
	for (unsigned i = n_ring; i-- > 0;)
		printf(" 0x%" PRIx64 "/0x%" PRIx64 "/P/-/-/0 ", ring[i].from, ring[i].to);
	puts(chains ? "\n" : "");
	n_ring = n_counted = 0;
}

static void record(uint64_t from, uint64_t to)
{
	bool counts = !is_thunk(from);
	if ((counts && n_counted == window) || n_ring == MOST)
		flush(from);
	if (!counts && !n_ring)
		return;
	n_counted += counts;
	ring[n_ring++] = (struct record){ from, to };
}

/* Lets the loader run. */
static void go_to_entry(pid_t pid)
{
	uint64_t at = entry + shift;
	struct user_regs_struct r;
	int status;
	errno = 0;
	long was = ptrace(PTRACE_PEEKTEXT, pid, at, NULL);
	if (errno || ptrace(PTRACE_POKETEXT, pid, at, (was & ~0xffl) | 0xcc) != 0 ||
	    ptrace(PTRACE_CONT, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid ||
	    !WIFSTOPPED(status) || ptrace(PTRACE_POKETEXT, pid, at, was) != 0 ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0 || r.rip != at + 1)
		die("entry");
	r.rip = at;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &r) != 0)
		die("entry");
}

/* The instruction at PC is executed after the one at LAST. */
static void step(uint64_t last, uint64_t pc)
{
	bool call = false, ret = false;
	unsigned len = 0;
	if (inside(last) && aarch64) {
		uint32_t w;
		memcpy(&w, text + (last - code.from), len = 4);
		if (branches_a64(w, last, pc, &call, &ret))
			record(last, pc);
	} else if (inside(last)) {
		if (branches(text + (last - code.from), last, pc, &call, &ret, &len))
			record(last, pc);
	} else if (inside(pc) && last)
		record(last, pc);
	if (call && depth < DEEPEST)
		stack[depth++] = last + len;
	else if (depth && (ret || (!inside(last) && inside(pc))) && stack[depth - 1] == pc)
		depth--;
}

static int trace(pid_t pid)
{
	uint64_t last = 0;
	int status;
	for (;;) {
		struct user_regs_struct r;
		if (ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0)
			die("PTRACE_GETREGS");
		step(last, r.rip);
		last = r.rip;
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0 ||
		    waitpid(pid, &status, 0) != pid)
			die("PTRACE_SINGLESTEP");
		if (WIFEXITED(status))
			break;
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != 5) {
			fprintf(stderr, "stopped by status %x\n", (unsigned)status);
			return 2;
		}
	}
	if (n_ring)
		flush(last);
	return WEXITSTATUS(status);
}

/* Where valgrind or qemu loads PATH: as linked, or at its own fixed place. */
static void find_loaded(const char *path)
{
	const uint64_t pie = aarch64 ? 0x5500000000 : 0x108000;
	Elf64_Ehdr e;
	Elf64_Phdr h;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || pread(fd, &e, sizeof e, 0) != sizeof e)
		die(path);
	for (unsigned i = 0; i < e.e_phnum && !text; i++) {
		if (pread(fd, &h, sizeof h, (off_t)(e.e_phoff + i * sizeof h)) != sizeof h ||
		    h.p_type != PT_LOAD || !(h.p_flags & PF_X))
			continue;
		char *real = realpath(path, NULL);
		uint64_t base = e.e_type == ET_DYN ? pie : 0;
		code.from = base + (h.p_vaddr & ~0xfffull);
		code.to = (base + h.p_vaddr + h.p_memsz + 0xfff) & ~0xfffull;
		map_code(path, real ? real : path, h.p_offset & ~0xfffull);
		free(real);
	}
	close(fd);
}

/* From the program's entry on. */
static int read_trace(void)
{
	char line[256];
	uint64_t pc, last = 0;
	bool begun = false;
	while (fgets(line, sizeof line, stdin)) {
		/* "I  ADDRESS,LENGTH", or "Trace N: HOST [CS/ADDRESS/FLAGS/FLAGS] NAME" */
		const char *at = aarch64 ? strchr(line, '/') : line;
		if (!at || line[0] != (aarch64 ? 'T' : 'I'))
			continue;
		pc = strtoull(at + 1, NULL, 16);
		begun |= pc == entry + shift;
		if (begun) {
			step(last, pc);
			last = pc;
		}
	}
	if (n_ring)
		flush(last);
	if (!begun)
		fputs("the trace does not reach the program's entry\n", stderr);
	return begun ? 0 : 2;
}

int main(int argc, char **argv)
{
	const char *thunks = NULL;
	int c, status, out;
	bool traced = false;
	while ((c = getopt(argc, argv, "+n:gt:vq")) != -1) {
		if (c == 'n')
			window = (unsigned)atoi(optarg);
		else if (c == 'g')
			chains = true;
		else if (c == 't')
			thunks = optarg;
		else if (c == 'v' || c == 'q')
			traced = true, aarch64 = c == 'q';
		else
			return 2;
	}
	if (optind >= argc || !window || window > MOST / 2)
		return 2;
	if (traced) {
		find_loaded(argv[optind]);
		if (thunks)
			read_thunks(thunks);
		return read_trace();
	}
	pid_t pid = fork();
	if (pid == 0) {
		personality(ADDR_NO_RANDOMIZE);
		if ((out = open("/dev/null", O_WRONLY)) >= 0)
			dup2(out, STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[optind], argv + optind);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		die(argv[optind]);
	find_code(pid, argv[optind]);
	if (thunks)
		read_thunks(thunks);
	go_to_entry(pid);
	return trace(pid);
}
