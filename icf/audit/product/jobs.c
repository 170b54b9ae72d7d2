/* jobs.c: see jobs.h.
 *
 * The largest files come first, so that no large one is left for the end, and small ones go to a
 * process several at a time: a process costs milliseconds, most of them for memory that the system
 * clears and takes back, which the next file of the same process uses again.  As many processes run
 * as there are threads to be used, but no more than their expected memory has room for.  A file
 * that needs more than expected is tried once more with several times as much, beside others if
 * there is room, so that no processor waits for it at the end; then alone, with all of the memory.
 *
 * A process writes the functions of its files to the spool, where an offset that all processes
 * share says which part is free, and a message of fixed size to its pipe. */
#include "icf/audit/product/jobs.h"
#include "elfrw/base/heap.h"
#include "icf/audit/product/analyse.h"
#include "icf/audit/product/archive.h"
#include "icf/audit/product/collect.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH       256         /* most files of one process */
#define BATCH_LEAST (512 << 10) /* bytes */
#define BATCH_MOST  (16 << 20)
#define MAX_JOBS    64
#define WHY         480
#define DIGEST      64 /* hexadecimal digits, SHA-256 */
#define SECOND_TRY  4  /* times the memory of the first one */
enum { LAST_ATTEMPT = 2 };

/* Memory that the analysis of a file of SIZE bytes may be expected to take.  Programs of this
 * machine take 3 times their size, a few with little else than code 4 times. */
static uint64_t expected(uint64_t size)
{
	return (48ULL << 20) + 5 * size;
}

struct message {
	uint32_t file;
	bool ok, no_memory;
	struct icf_product_facts facts;
	char why[WHY];
};

struct job {
	pid_t pid;
	int pipe;
	uint64_t memory;
	uint32_t n, reported; /* files; they report in order */
	uint32_t id[BATCH];
};

struct run {
	struct icf_product *p;
	const struct icf_product_options *opt;
	_Atomic uint64_t *end; /* of the spool; shared with the processes */
	VEC(uint32_t) queue;   /* files that wait, the next one last */
	VEC(uint32_t) again;   /* files that need more memory than expected */
	uint64_t waiting;      /* bytes of the files in queue */
	struct job job[MAX_JOBS];
	unsigned n_jobs, threads;
	uint64_t memory; /* of the jobs that run */
	struct icf_archive archive;
	size_t next_archive; /* index of a file */
	uint32_t reading;    /* the archive that is read, or ICF_NONE */
	size_t n_before;     /* files before its members */
	uint32_t finished;
	double shown;
	int width;
};

static bool write_at(int fd, const void *data, size_t n, uint64_t off)
{
	const char *p = data;
	while (n) {
		ssize_t k = pwrite(fd, p, n, (off_t)off);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		off += (uint64_t)k;
		n -= (size_t)k;
	}
	return true;
}

/* ---- in the process of a job ---- */

static void analyse(const struct run *r, uint32_t id, struct message *m)
{
	const struct icf_product_file *f = &r->p->file.data[id];
	char path[32];
	struct elfrw_wbuf lines = { 0 };
	*m = (struct message){ .file = id };
	snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
	const struct icf_product_reader *own = r->opt->reader;
	const char *open = f->path ? f->path : path;
	struct elfrw_err *err = own ? own->read(own, f, open, &m->facts, &lines)
				    : icf_product_read(open, &r->opt->audit, &m->facts, &lines);
	if (!err) {
		m->facts.kept = lines.len;
		m->facts.spool = atomic_fetch_add(r->end, (lines.len + 15) & ~(size_t)15);
		if (!write_at(r->p->spool, lines.data, lines.len, m->facts.spool))
			err = elfrw_error_errno(errno, "cannot write a temporary file");
	}
	elfrw_wbuf_free(&lines);
	m->ok = !err;
	m->no_memory = err == &elfrw_err_nomem;
	if (err)
		snprintf(m->why, sizeof m->why, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
}

static void work(const struct run *r, const struct job *job, int pipe)
{
	struct rlimit limit = { job->memory, job->memory };
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!ELFRW_SANITIZED) /* takes more, for itself */
		setrlimit(RLIMIT_DATA, &limit);
	limit = (struct rlimit){ 0, 0 };
	setrlimit(RLIMIT_CORE, &limit);
	elfrw_heap_reserve(job->memory / 2);
	for (uint32_t k = 0; k < job->n; k++) {
		struct message m;
		analyse(r, job->id[k], &m);
		if (write(pipe, &m, sizeof m) != sizeof m)
			_exit(1);
	}
	_exit(0);
}

/* ---- in the process that waits for them ---- */

static void show_progress(struct run *r)
{
	FILE *f = r->opt->progress;
	double now = icf_now().wall;
	if (!f || now - r->shown < 0.2)
		return;
	char text[80];
	size_t all = r->finished + r->queue.len + r->again.len;
	for (unsigned k = 0; k < r->n_jobs; k++)
		all += r->job[k].n - r->job[k].reported;
	int n = snprintf(text, sizeof text, "icfold: %u of %zu files", r->finished, all);
	fprintf(f, "\r%-*s", r->width, text);
	fflush(f);
	r->width = n;
	r->shown = now;
}

static struct elfrw_err *enqueue(struct run *r, uint32_t file)
{
	uint32_t *q = VEC_PUSH(&r->queue);
	if (!q)
		return &elfrw_err_nomem;
	*q = file;
	r->waiting += r->p->file.data[file].size;
	return NULL;
}

static void close_member(struct icf_product_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* Does an error, as elfrw/image.h words them, say that the file has an end that is not there? */
static bool is_truncated(const char *why)
{
	return strncmp(why, "truncated: ", 11) == 0;
}

static struct elfrw_err *take_message(struct run *r, const struct message *m, bool alone)
{
	struct icf_product_file *f = &r->p->file.data[m->file];
	if (m->no_memory && f->attempt < LAST_ATTEMPT && !alone) {
		f->attempt++;
		uint32_t *again = VEC_PUSH(&r->again);
		if (!again)
			return &elfrw_err_nomem;
		*again = m->file;
		return NULL;
	}
	r->finished++;
	close_member(f);
	f->facts = m->facts;
	f->state = ICF_FILE_DONE;
	/* A file that ends too early was once longer: something is missing. */
	f->unread = m->no_memory || (!m->ok && is_truncated(m->why));
	if (m->no_memory)
		return icf_product_bad(f, "needs more memory than --memory allows");
	return m->ok ? NULL : icf_product_bad(f, "%s", m->why);
}

/* The process that analysed F ended with STATUS. */
static struct elfrw_err *blame(struct icf_product_file *f, int status)
{
	struct stat st;
	f->unread = true;
	if (f->path && stat(f->path, &st) == 0 && (uint64_t)st.st_size < f->size)
		return icf_product_bad(f, "was truncated while it was read");
	if (WIFSIGNALED(status))
		return icf_product_bad(f, "its analysis was ended by signal %d (%s)",
				       WTERMSIG(status), strsignal(WTERMSIG(status)));
	return icf_product_bad(f, "its analysis ended early");
}

/* The process of JOB ended.  The file that it was at gets the blame; those behind it go to
 * others. */
static struct elfrw_err *end_job(struct run *r, struct job *job)
{
	struct elfrw_err *err = NULL;
	int status = 0;
	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(job->pipe);
	if (job->reported < job->n) {
		struct icf_product_file *f = &r->p->file.data[job->id[job->reported]];
		r->finished++;
		close_member(f);
		err = blame(f, status);
	}
	for (uint32_t k = job->reported + 1; k < job->n && !err; k++)
		err = enqueue(r, job->id[k]);
	r->memory -= job->memory;
	*job = r->job[--r->n_jobs];
	return err;
}

static struct elfrw_err *start_job(struct run *r, struct job *job)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return elfrw_error_errno(errno, "cannot start a process");
	fflush(NULL);
	job->pid = fork();
	if (job->pid == 0) {
		close(pipes[0]);
		work(r, job, pipes[1]);
	}
	int e = errno;
	close(pipes[1]);
	job->pipe = pipes[0];
	if (job->pid < 0) {
		close(pipes[0]);
		return elfrw_error_errno(e, "cannot start a process");
	}
	r->memory += job->memory;
	r->job[r->n_jobs++] = *job;
	return NULL;
}

/* The bytes that one of several processes may take at once: towards the end less, so that all end
 * at about the same time. */
static uint64_t batch_bytes(const struct run *r)
{
	const uint64_t share = r->waiting / (4 * r->threads);
	return share < BATCH_LEAST ? BATCH_LEAST : share > BATCH_MOST ? BATCH_MOST : share;
}

/* Is there room for a process that takes MEMORY? */
static bool has_room(const struct run *r, uint64_t memory)
{
	return !r->n_jobs || (r->memory <= r->opt->memory && memory <= r->opt->memory - r->memory);
}

/* Makes a job of the last file that needs more memory than expected, if there is room for it. */
static bool try_again(struct run *r, struct job *job)
{
	if (!r->again.len)
		return false;
	const uint32_t id = r->again.data[r->again.len - 1];
	const struct icf_product_file *f = &r->p->file.data[id];
	uint64_t memory = SECOND_TRY * expected(f->size);
	if (f->attempt == LAST_ATTEMPT || memory > r->opt->memory)
		memory = r->opt->memory;
	if (!has_room(r, memory))
		return false;
	*job = (struct job){ .memory = memory, .n = 1, .id = { id } };
	r->again.len--;
	return true;
}

/* Makes a job of the next files in the queue, if there is room for it. */
static bool take_batch(struct run *r, struct job *job)
{
	if (!r->queue.len)
		return false;
	const struct icf_product_file *f = &r->p->file.data[r->queue.data[r->queue.len - 1]];
	uint64_t most = batch_bytes(r), bytes = 0;
	uint64_t memory = expected(f->size);
	memory = memory < r->opt->memory ? memory : r->opt->memory;
	if (!has_room(r, memory))
		return false;
	*job = (struct job){ .memory = memory };
	while (r->queue.len && job->n < BATCH) {
		uint32_t id = r->queue.data[r->queue.len - 1];
		const uint64_t size = r->p->file.data[id].size;
		bytes += size;
		if (job->n && bytes > most)
			break;
		job->id[job->n++] = id;
		r->queue.len--;
		r->waiting -= size;
	}
	return true;
}

/* Starts the next job if there is room for it. */
static struct elfrw_err *start_next(struct run *r, bool *started)
{
	struct job job;
	*started = try_again(r, &job) || take_batch(r, &job);
	return *started ? start_job(r, &job) : NULL;
}

/* Is archive AT about programs: was it asked for, or did it have some so far?  If such a one cannot
 * be read, something is missing.  Below a folder, most archives are about something else. */
static bool has_programs(const struct run *r, uint32_t at)
{
	const struct icf_product *p = r->p;
	if (p->file.data[at].asked)
		return true;
	for (size_t k = r->n_before; k < p->file.len; k++)
		if (p->file.data[k].state != ICF_FILE_BAD)
			return true;
	return false;
}

/* Layers of container images are named by a digest of their contents (OCI: blobs/sha256/DIGEST,
 * Docker: DIGEST/layer.tar), which is another one in each build.  Where the name of what is in them
 * begins, in NAME from AT on. */
static size_t behind_digests(const char *name, size_t at)
{
	size_t digits = 0;
	bool digest = false;
	for (size_t k = at; k < strlen(name); k++) {
		digits = isxdigit((unsigned char)name[k]) ? digits + 1 : 0;
		digest |= digits == DIGEST;
		if (name[k] == ':' && digest) {
			at = k + 1;
			digest = false;
		}
	}
	return at;
}

/* Takes the next member of the archives, when nothing else waits. */
static struct elfrw_err *next_member(struct run *r)
{
	struct icf_product *p = r->p;
	while (r->reading == ICF_NONE && r->next_archive < p->file.len) {
		uint32_t k = (uint32_t)r->next_archive++;
		if (p->file.data[k].state != ICF_FILE_ARCHIVE)
			continue;
		r->reading = k;
		r->n_before = p->file.len;
		ELFRW_TRY(icf_archive_start(&r->archive, p->file.data[k].path, r->opt->memory));
	}
	if (r->reading == ICF_NONE)
		return NULL;
	struct icf_archive_member m;
	bool more = icf_archive_next(&r->archive, &m);
	/* A file that nobody called an archive, and that is none. */
	if (more && m.none && !m.name[0] && !p->file.data[r->reading].asked &&
	    !icf_product_archive_name(p->file.data[r->reading].name))
		return NULL;
	if (!more || (m.error[0] && r->archive.pid == 0)) {
		icf_archive_stop(&r->archive);
		r->archive.pid = 0;
		const uint32_t at = r->reading;
		r->reading = ICF_NONE;
		/* Most archives below a folder have no programs, as most files. */
		p->file.data[at].unread = m.error[0] && has_programs(r, at);
		if (!m.error[0] && p->file.len == r->n_before && p->file.data[at].asked)
			snprintf(m.error, sizeof m.error, "has no ELF files in it");
		return m.error[0] ? icf_product_bad(&p->file.data[at], "%s", m.error) : NULL;
	}
	const bool unread = m.error[0] && (m.elf || has_programs(r, r->reading));
	const struct icf_product_file *of = &p->file.data[r->reading];
	size_t n = strlen(of->name) + strlen(m.name) + 2, at = of->rel;
	/* Of an archive that was asked for, the members' names alone are the same in another. */
	if (!strchr(of->name + at, '/'))
		at = strlen(of->name) + 1;
	char *name = malloc(n);
	struct icf_product_file *f = NULL;
	if (name) {
		snprintf(name, n, "%s%s%s", of->name, *m.name ? ":" : "", m.name);
		f = icf_product_add(p, name, NULL, ICF_FILE_WAITS);
	}
	free(name);
	if (f && m.package[0] && !(f->package = strdup(m.package)))
		f = NULL;
	if (!f) {
		if (m.fd >= 0)
			close(m.fd);
		return &elfrw_err_nomem;
	}
	f->unread = unread;
	at = behind_digests(f->name, at);
	f->rel = at < strlen(f->name) ? at : 0;
	f->size = m.size;
	f->fd = m.fd;
	if (m.fd >= 0)
		ELFRW_TRY(enqueue(r, (uint32_t)(p->file.len - 1)));
	return m.error[0] ? icf_product_bad(f, "%s", m.error) : NULL;
}

static struct elfrw_err *wait_for_jobs(struct run *r)
{
	struct pollfd fd[MAX_JOBS];
	for (unsigned k = 0; k < r->n_jobs; k++)
		fd[k] = (struct pollfd){ .fd = r->job[k].pipe, .events = POLLIN };
	if (poll(fd, r->n_jobs, 1000) < 0 && errno != EINTR)
		return elfrw_error_errno(errno, "cannot wait for a process");
	/* From the end: the last job takes the place of one that ends. */
	for (unsigned k = r->n_jobs; k-- > 0;) {
		struct job *job = &r->job[k];
		struct message m;
		if (!fd[k].revents)
			continue;
		ssize_t n = read(job->pipe, &m, sizeof m);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == (ssize_t)sizeof m && job->reported < job->n &&
		    m.file == job->id[job->reported]) {
			job->reported++;
			ELFRW_TRY(take_message(r, &m, job->memory == r->opt->memory));
		} else
			ELFRW_TRY(end_job(r, job));
	}
	return NULL;
}

static struct elfrw_err *run_all(struct run *r)
{
	for (;;) {
		bool started = true;
		while (started && r->n_jobs < r->threads) {
			if (!r->queue.len)
				ELFRW_TRY(next_member(r));
			ELFRW_TRY(start_next(r, &started));
			/* An archive may have said something other than a member. */
			started |= !r->queue.len && r->reading != ICF_NONE;
		}
		show_progress(r);
		if (r->n_jobs)
			ELFRW_TRY(wait_for_jobs(r));
		else if (!r->queue.len && !r->again.len && r->reading == ICF_NONE &&
			 r->next_archive >= r->p->file.len)
			return NULL;
	}
}

static int size_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product_file *file = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (file[x].size != file[y].size)
		return file[x].size < file[y].size ? -1 : 1;
	return x > y ? -1 : x < y;
}

static struct elfrw_err *fill_queue(struct run *r)
{
	for (size_t k = 0; k < r->p->file.len; k++) {
		if (r->p->file.data[k].state != ICF_FILE_WAITS)
			continue;
		ELFRW_TRY(enqueue(r, (uint32_t)k));
	}
	if (r->queue.len)
		qsort_r(r->queue.data, r->queue.len, sizeof *r->queue.data, size_order,
			r->p->file.data);
	return NULL;
}

struct elfrw_err *icf_product_run(struct icf_product *p, const struct icf_product_options *opt)
{
	struct run *r = calloc(1, sizeof *r);
	if (!r)
		return &elfrw_err_nomem;
	r->p = p;
	r->opt = opt;
	r->reading = ICF_NONE;
	r->threads = opt->audit.threads < MAX_JOBS ? opt->audit.threads : MAX_JOBS;
	r->end = mmap(NULL, sizeof *r->end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	struct elfrw_err *err = r->end == MAP_FAILED ? &elfrw_err_nomem : NULL;
	p->spool = icf_archive_nameless();
	if (!err && p->spool < 0)
		err = elfrw_error_errno(errno, "cannot make a temporary file");
	if (!err)
		err = fill_queue(r);
	if (!err)
		err = run_all(r);
	for (unsigned k = 0; k < r->n_jobs; k++) {
		kill(r->job[k].pid, SIGKILL);
		waitpid(r->job[k].pid, NULL, 0);
		close(r->job[k].pipe);
	}
	icf_archive_stop(&r->archive);
	for (size_t k = 0; k < p->file.len; k++)
		close_member(&p->file.data[k]);
	if (r->width) {
		fprintf(opt->progress, "\r%*s\r", r->width, "");
		fflush(opt->progress);
	}
	if (!err)
		p->map_size = *r->end;
	if (r->end != MAP_FAILED)
		munmap((void *)r->end, sizeof *r->end);
	VEC_FREE(&r->queue);
	VEC_FREE(&r->again);
	free(r);
	return err;
}
