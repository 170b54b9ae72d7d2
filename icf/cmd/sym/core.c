/* core.c: see core.h.
 *
 * Each file's tables decide the file's own frames: each file gets the stack without the addresses
 * of other files; then the stack is printed level by level.  A frame that a signal interrupted has
 * a PC, not a return address, and did not call the handler.  So the stack is cut there, and the
 * parts are decided separately.
 *
 * The objects in memory decide virtual calls that the tables leave open (dwarf/stack/receiver.h).
 * Then the stack is decided once more, since a caller that is now known may decide its callee. */
#include "icf/cmd/sym/core.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "dwarf/stack/receiver.h"
#include "icf/cmd/sym/stack.h"
#include "icf/cmd/process.h"
#include "icf/trace/unwind_dwfl.h"
#include <errno.h>
#include <inttypes.h>

static const char LIBRARY_GONE[] =
	"not there, or not the file that ran; --sysroot=DIR says where the files are";

/* A file of the process. */
struct file {
	bool asked;
	struct dwr_sym *sym; /* NULL: there is none, or it cannot be read */
	struct icf_sym_stack_in in;
	struct icf_stack *stack; /* NULL when SYM is */
	uint64_t bias;
	uint32_t part; /* the part of a stack that it was asked about last */
};

struct session {
	const struct icf_core_in *in;
	const char *what; /* for messages */
	struct icf_unwind *unwind;
	struct file *file;             /* owned; by module */
	VEC(uint64_t) address, vtable; /* scratch, as are the others */
	VEC(bool) ending;
	struct dwr_sym_frames frames;
	const struct icf_unwind_frame *part; /* the levels of the current part */
	size_t n;
	uint32_t n_parts;
	bool any, lacking; /* a stack was printed; a file was missing */
};

static void complain(const char *file, const char *text)
{
	icf_message(file, "%s", text);
}

/* The file of module INDEX, opened on the first call. */
static struct elfrw_err *file_of(struct session *s, uint32_t index, struct file **ret)
{
	struct file *f = *ret = &s->file[index];
	if (f->asked)
		return NULL;
	f->asked = true;
	const struct icf_unwind_module *m = icf_unwind_module(s->unwind, index);
	if (!m->path) {
		if (m->name[0] != '/')
			return NULL;
		if (m->program)
			complain(m->name,
				 "not there, or not the file that ran; give it with -e FILE");
		else
			complain(m->name, LIBRARY_GONE);
		s->lacking = true;
		return NULL;
	}
	struct dwr_sym_options options = *s->in->options;
	if (!m->program)
		options.debug_file = NULL; /* that of the program */
	struct elfrw_err *err = dwr_sym_open(m->path, &options, &f->sym);
	if (err == &elfrw_err_nomem)
		return err;
	if (err) {
		f->sym = NULL;
		complain(m->path, elfrw_err_text(err));
		s->lacking = true;
		elfrw_err_free(err);
		return NULL;
	}
	f->bias = m->bias;
	f->in = (struct icf_sym_stack_in){ f->sym,         m->path, s->in->style, s->in->flags,
					   s->in->inlines, 0,       true };
	return icf_stack_open(&f->in, &f->stack);
}

/* ---- objects ---- */

static bool read_memory(void *ctx, uint64_t address, uint64_t *word)
{
	const struct session *s = ctx;
	return icf_unwind_memory(s->unwind, address, word);
}

static bool read_register(void *ctx, size_t level, unsigned reg, uint64_t *value)
{
	const struct session *s = ctx;
	if (level >= s->n || reg >= ICF_UNWIND_REGS || !(s->part[level].known >> reg & 1))
		return false;
	*value = s->part[level].reg[reg];
	return true;
}

/* Does some file have a vtable of the class?  Then the class's destructor changes the object's
 * vtable pointer. */
static struct elfrw_err *is_polymorphic(struct session *s, const char *cls, size_t len, bool *ret)
{
	char name[1024];
	*ret = true;
	if (!len || len > sizeof name - 8)
		return NULL;
	for (uint32_t i = 0; i < icf_unwind_n_modules(s->unwind); i++) {
		struct dwr_sym_symbol symbol;
		struct file *f;
		ELFRW_TRY(file_of(s, i, &f));
		for (int nested = 0; nested < 2 && f->sym; nested++) {
			size_t from = 0;
			snprintf(name, sizeof name, nested ? "_ZTVN%.*sE" : "_ZTV%.*s", (int)len,
				 cls);
			if (dwr_sym_symbol_named(f->sym, name, &from, &symbol))
				return NULL;
		}
	}
	*ret = false;
	return NULL;
}

/* Fills s->ending. */
static struct elfrw_err *find_destructors(struct session *s)
{
	if (!VEC_RESERVE(&s->ending, s->n))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < s->n; i++) {
		const struct icf_unwind_frame *u = &s->part[i];
		struct file *f = NULL;
		s->ending.data[i] = false;
		if (u->module != ICF_NO_MODULE)
			ELFRW_TRY(file_of(s, u->module, &f));
		if (!f || !f->sym)
			continue;
		ELFRW_TRY(dwr_sym_frames(f->sym, u->pc - f->bias - !u->activation, 0, &s->frames));
		for (size_t k = 0; k < s->frames.len && !s->ending.data[i]; k++) {
			const char *cls;
			size_t len;
			if (dwr_names_destructor(s->frames.data[k].linkage, &cls, &len))
				ELFRW_TRY(is_polymorphic(s, cls, len, &s->ending.data[i]));
		}
	}
	return NULL;
}

/* Decides from objects what the tables of F left open in s->address. */
static struct elfrw_err *ask_objects(struct session *s, struct file *f)
{
	const struct dwr_chain *chain = icf_stack_chain(f->stack);
	bool open = false, known = false;
	for (size_t i = 0; i < s->n; i++)
		open |= chain->frame.data[i].merged && !chain->frame.data[i].decided;
	if (!open)
		return NULL;
	ELFRW_TRY(find_destructors(s));
	if (!VEC_RESERVE(&s->vtable, s->n))
		return &elfrw_err_nomem;
	memset(s->vtable.data, 0, s->n * sizeof *s->vtable.data);
	struct dwr_process process = { s, read_memory, read_register, f->bias };
	struct dwr_stack stack = { .sym = f->sym,
				   .cc = icf_stack_tables(f->stack),
				   .arch = icf_stack_image(f->stack)->arch,
				   .process = &process,
				   .addr = s->address.data,
				   .n = s->n };
	struct elfrw_err *err = dwr_receiver_vtables(&stack, chain, s->ending.data, s->vtable.data);
	dwr_stack_deinit(&stack);
	ELFRW_TRY(err);
	for (size_t i = 0; i < s->n; i++)
		known |= s->vtable.data[i] != 0;
	return known ? icf_stack_resolve(f->stack, s->address.data, s->vtable.data, s->n) : NULL;
}

/* Asks the tables of module INDEX about one part of a stack. */
static struct elfrw_err *decide(struct session *s, uint32_t index)
{
	struct file *f;
	ELFRW_TRY(file_of(s, index, &f));
	if (!f->stack || f->part == s->n_parts)
		return NULL;
	f->part = s->n_parts;
	if (!VEC_RESERVE(&s->address, s->n))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < s->n; i++)
		s->address.data[i] = s->part[i].module == index ? s->part[i].pc - f->bias : 0;
	ELFRW_TRY(icf_stack_resolve(f->stack, s->address.data, NULL, s->n));
	return icf_stack_tables(f->stack) ? ask_objects(s, f) : NULL;
}

/* ---- output ---- */

/* A frame in no file. */
static void print_bare(struct session *s, const struct icf_unwind_frame *u, unsigned depth)
{
	const struct icf_sym_style *style = s->in->style;
	const struct icf_unwind_module *m =
		u->module == ICF_NO_MODULE ? NULL : icf_unwind_module(s->unwind, u->module);
	struct dwr_sym_frame frame = { .die = DWR_SYM_NO_DIE };
	char text[512];
	frame.function = m ? icf_unwind_symbol(s->unwind, u->pc - !u->activation) : NULL;
	if (m && !frame.function && style->output != ICF_SYM_JSON) {
		snprintf(text, sizeof text, "?? (%s)", m->name);
		frame.function = text;
	}
	struct icf_sym_answer a = {
		.module = m ? m->name : "", .address = &u->pc, .frame = &frame, .n = 1
	};
	icf_sym_print(stdout, style, &a, depth);
}

/* Prints levels FROM to TO of THREAD, up to a frame that a signal interrupted. */
static struct elfrw_err *print_part(struct session *s, const struct icf_unwind_thread *thread,
				    size_t from, size_t to)
{
	const struct icf_sym_style *style = s->in->style;
	bool json = style->output == ICF_SYM_JSON;
	unsigned depth = json ? 2 : 0;
	s->part = thread->frame.data + from;
	s->n = to - from;
	s->n_parts++;
	for (size_t i = 0; i < s->n; i++)
		if (s->part[i].module != ICF_NO_MODULE)
			ELFRW_TRY(decide(s, s->part[i].module));
	for (size_t i = 0; i < s->n; i++) {
		const struct icf_unwind_frame *u = &s->part[i];
		if (json && from + i)
			putchar(',');
		if (json && style->pretty)
			printf("\n%*s", 2 * (int)depth, "");
		struct file *f = u->module == ICF_NO_MODULE ? NULL : &s->file[u->module];
		if (f && f->stack)
			ELFRW_TRY(icf_stack_print(f->stack, i, u->pc, depth));
		else
			print_bare(s, u, depth);
	}
	return NULL;
}

static struct elfrw_err *print_thread(void *ctx, const struct icf_unwind_thread *thread)
{
	struct session *s = ctx;
	const struct icf_sym_style *style = s->in->style;
	bool json = style->output == ICF_SYM_JSON;
	size_t n = thread->frame.len, from = 0;
	s->any |= n != 0;
	if (json)
		fputs(style->pretty ? "{\n  \"Frames\": [" : "{\"Frames\":[", stdout);
	else
		printf("TID %d:\n", (int)thread->tid);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && !thread->frame.data[i].activation)
			continue;
		ELFRW_TRY(print_part(s, thread, from, i));
		from = i;
	}
	if (json)
		printf(style->pretty ? "%s],\n  \"PID\": %d,\n  \"TID\": %d\n}\n"
				     : "%s],\"PID\":%d,\"TID\":%d}\n",
		       style->pretty && n ? "\n  " : "", (int)icf_unwind_pid(s->unwind),
		       (int)thread->tid);
	else
		putchar('\n');
	fflush(stdout);
	if (thread->problem) {
		char text[256];
		snprintf(text, sizeof text, "thread %d: the stack is not complete: %s",
			 (int)thread->tid, thread->problem);
		complain(s->what, text);
	}
	return NULL;
}

static bool parse_pid(const char *text, pid_t *ret)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	*ret = (pid_t)n;
	return end != text && !*end && !errno && n > 0 && n <= INT32_MAX;
}

static void complain_of_absent(struct session *s)
{
	const char *name;
	size_t n = 0;
	while ((name = icf_unwind_absent(s->unwind, n++))) {
		complain(name, LIBRARY_GONE);
		s->lacking = true;
	}
	if (!icf_unwind_n_modules(s->unwind)) {
		complain(s->what,
			 "does not say which programs it is of; give the program with -e FILE");
		s->lacking = true;
	}
}

static struct elfrw_err *run(struct session *s, const char **truncated)
{
	const struct icf_core_in *in = s->in;
	struct icf_unwind_options options = { in->exe, in->options->sysroot,
					      in->options->debug_dir };
	pid_t pid;
	icf_process_libdw();
	if (in->core)
		ELFRW_TRY(icf_unwind_core(in->core, &options, &s->unwind, truncated));
	else if (!parse_pid(in->pid, &pid))
		return elfrw_error("not the number of a process");
	else
		ELFRW_TRY(icf_unwind_process(pid, &options, &s->unwind));
	complain_of_absent(s);
	s->file = calloc(icf_unwind_n_modules(s->unwind) + 1, sizeof *s->file);
	if (!s->file)
		return &elfrw_err_nomem;
	if (in->style->output != ICF_SYM_JSON)
		printf("PID %d - %s\n", (int)icf_unwind_pid(s->unwind),
		       in->core ? "core" : "process");
	return icf_unwind_threads(s->unwind, print_thread, s);
}

int icf_sym_core(const struct icf_core_in *in)
{
	struct session s = { .in = in };
	const char *truncated = NULL;
	char name[64];
	snprintf(name, sizeof name, "process %.40s", in->core ? "" : in->pid);
	s.what = in->core ? in->core : name;
	struct elfrw_err *err = run(&s, &truncated);
	if (err)
		complain(s.what, elfrw_err_text(err));
	else if (truncated)
		complain(s.what, truncated);
	else if (!s.any)
		complain(s.what, "no stack to print");
	for (size_t i = 0; s.file && i < icf_unwind_n_modules(s.unwind); i++) {
		if (s.file[i].stack)
			icf_stack_warn(s.file[i].stack);
		icf_stack_close(s.file[i].stack);
		dwr_sym_close(s.file[i].sym);
	}
	icf_unwind_close(s.unwind);
	free(s.file);
	VEC_FREE(&s.address);
	VEC_FREE(&s.vtable);
	VEC_FREE(&s.ending);
	dwr_sym_frames_deinit(&s.frames);
	bool failed = err || truncated || !s.any || s.lacking;
	elfrw_err_free(err);
	return failed ? ICF_EXIT_TROUBLE : ICF_EXIT_OK;
}
