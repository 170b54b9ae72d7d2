/* file.c: the files that a log names, and where the process had them.
 *
 * A log tells where a file was by lines of /proc/PID/maps, or by a frame with both the address and
 * the place in the file. */
#include "elfrw/image.h"
#include "elfrw/note.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/log/state.h"
#include <limits.h>
#include <sys/stat.h>
#include <xxhash.h>

#define MAX_MAPPED 4096 /* mappings in mind */
#define MAX_FILES  4096 /* files that are open: all others are left alone */
#define MISSING    8192 /* room for names of files that are not there; half of it is used */
#define MESSAGES   100  /* of these */
#define PAGE       UINT64_C(4096)

static bool same_base(const char *a, size_t n, const char *b)
{
	const char *slash = memrchr(a, '/', n), *base = strrchr(b, '/');
	size_t skip = slash ? (size_t)(slash + 1 - a) : 0;
	base = base ? base + 1 : b;
	return strlen(base) == n - skip && !memcmp(base, a + skip, n - skip);
}

static bool has_build_id(const struct icf_log_file *f, const char *id, size_t n_id)
{
	const struct elfrw_image *img = icf_stack_image(f->stack);
	uint32_t n;
	const uint8_t *own = img->arch ? elfrw_build_id(img, &n) : NULL;
	if (!own || !n_id)
		return true;
	for (size_t i = 0; i < n && 2 * i + 1 < n_id; i++) {
		char hex[3];
		snprintf(hex, sizeof hex, "%02x", own[i]);
		if (memcmp(hex, id + 2 * i, 2))
			return false;
	}
	return n_id == 2 * (size_t)n;
}

/* Opens the file at F->path. */
static struct elfrw_err *open_file(const struct icf_log *g, struct icf_log_file *f)
{
	struct dwr_sym_options options = *g->in->options;
	if (!g->in->obj || f != g->file.data[0])
		options.debug_file = NULL; /* that of the user's file */
	ELFRW_TRY(dwr_sym_open(f->path, &options, &f->sym));
	f->in = (struct icf_sym_stack_in){ .sym = f->sym,
					   .path = f->path,
					   .style = g->in->style,
					   .flags = g->in->flags,
					   .inlines = g->in->inlines };
	return icf_stack_open(&f->in, &f->stack);
}

static void close_file(struct icf_log_file *f)
{
	icf_stack_close(f->stack);
	dwr_sym_close(f->sym);
	free(f->name);
	free(f->path);
	free(f);
}

/* Says that a file is not there.  A log may name any number of them. */
static void miss(struct icf_log *g, const char *name)
{
	/* [vdso] and the like are no files, and words may look like frames */
	if (!strchr(name, '/') || g->messages > MESSAGES)
		return;
	if (g->messages++ < MESSAGES)
		icf_message(name, "not there; its frames stay as they are");
	else
		icf_message(name, "not there, and no more is said of such files");
}

/* Another name may be that of a file that is open; *RET is then this file.  A log may spell one
 * name in any number of ways. */
static struct elfrw_err *find_again(struct icf_log *g, const struct icf_log_file *f, uint32_t *ret)
{
	for (uint32_t i = 0; i < g->file.len; i++) {
		const struct icf_log_file *k = g->file.data[i];
		if (k == f || !k->sym || k->dev != f->dev || k->ino != f->ino)
			continue;
		*ret = i;
		if (g->alias.len >= MAX_FILES) /* the next time it is left alone */
			return NULL;
		struct icf_log_alias *a = VEC_PUSH(&g->alias);
		if (!a)
			return &elfrw_err_nomem;
		*a = (struct icf_log_alias){ strdup(f->name), i };
		return a->name ? NULL : &elfrw_err_nomem;
	}
	return NULL;
}

/* Opens F, and reports why it cannot be used: its SYM is then NULL.  *RET: it is this file. */
static struct elfrw_err *try_open(struct icf_log *g, struct icf_log_file *f, uint32_t *ret)
{
	struct stat st;
	if (stat(f->path, &st) != 0 || !S_ISREG(st.st_mode)) {
		miss(g, f->name);
		return NULL;
	}
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	ELFRW_TRY(find_again(g, f, ret));
	if (*ret != ICF_LOG_NO_FILE)
		return NULL;
	struct elfrw_err *err = open_file(g, f);
	if (!err || err == &elfrw_err_nomem)
		return err;
	icf_message(f->path, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	icf_stack_close(f->stack);
	dwr_sym_close(f->sym);
	f->stack = NULL;
	f->sym = NULL;
	return NULL;
}

/* Where a file without a directory in its NAME is, as TSan shows all: beside the user's file, if it
 * is there; of *N bytes; else, and for other names, nothing is put before it. */
static const char *beside(const struct icf_log *g, const char *name, size_t n, size_t *n_ret)
{
	const char *obj = g->in->obj, *slash = obj ? strrchr(obj, '/') : NULL;
	struct stat st;
	char path[PATH_MAX];
	*n_ret = 0;
	if (!slash || memchr(name, '/', n))
		return "";
	size_t dir = (size_t)(slash + 1 - obj);
	if (dir + n >= sizeof path)
		return "";
	memcpy(path, obj, dir);
	memcpy(path + dir, name, n);
	path[dir + n] = 0;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return "";
	*n_ret = dir;
	return obj;
}

/* Adds a file that logs call NAME, of N bytes, and that is at PATH. */
static struct elfrw_err *add_file(struct icf_log *g, const char *name, size_t n, const char *root,
				  struct icf_log_file **ret)
{
	size_t n_root;
	const char *dir = beside(g, name, n, &n_root);
	struct icf_log_file *f = calloc(1, sizeof *f), **slot = f ? VEC_PUSH(&g->file) : NULL;
	if (!slot) {
		free(f);
		return &elfrw_err_nomem;
	}
	*slot = *ret = f;
	f->name = strndup(name, n);
	if (asprintf(&f->path, "%s%.*s%.*s", root, (int)n_root, dir, (int)n, name) < 0)
		f->path = NULL;
	return f->name && f->path ? NULL : &elfrw_err_nomem;
}

struct elfrw_err *icf_log_open_obj(struct icf_log *g)
{
	struct icf_log_file *f;
	struct stat st;
	const char *obj = g->in->obj;
	if (!obj)
		return NULL;
	ELFRW_TRY(add_file(g, obj, strlen(obj), "", &f));
	ELFRW_TRY(elfrw_err_about(obj, open_file(g, f)));
	if (stat(f->path, &st) == 0) {
		f->dev = st.st_dev;
		f->ino = st.st_ino;
	}
	f->has_bias = g->in->has_base;
	f->bias = g->in->base - icf_log_lowest(f);
	return NULL;
}

/* Where the name of N bytes is among those of files that are not there, or would be. */
static uint64_t *missing_slot(struct icf_log *g, const char *name, size_t n)
{
	uint64_t hash = XXH3_64bits(name, n) | 1; /* 0: free */
	size_t i = hash >> 32 & (MISSING - 1);
	while (g->missing[i] && g->missing[i] != hash)
		i = (i + 1) & (MISSING - 1);
	if (g->missing[i])
		return &g->missing[i];
	if (2 * g->n_missing >= MISSING) { /* they are looked for again */
		memset(g->missing, 0, MISSING * sizeof *g->missing);
		g->n_missing = 0;
		i = hash >> 32 & (MISSING - 1);
	}
	g->missing[i] = hash;
	g->n_missing++;
	return NULL;
}

/* A file that the log has not named before, or one that is not there. */
static struct elfrw_err *new_file(struct icf_log *g, const char *name, size_t n, uint32_t *ret)
{
	const char *root = g->in->options->sysroot;
	struct icf_log_file *f;
	if (!g->missing && !(g->missing = calloc(MISSING, sizeof *g->missing)))
		return &elfrw_err_nomem;
	if (g->file.len == MAX_FILES || missing_slot(g, name, n))
		return NULL;
	ELFRW_TRY(add_file(g, name, n, root && *name == '/' ? root : "", &f));
	ELFRW_TRY(try_open(g, f, ret));
	if (f->sym)
		*ret = (uint32_t)g->file.len - 1;
	else
		close_file(g->file.data[--g->file.len]);
	return NULL;
}

struct elfrw_err *icf_log_file_of(struct icf_log *g, const char *name, size_t n, const char *id,
				  size_t n_id, uint32_t *ret)
{
	*ret = ICF_LOG_NO_FILE;
	for (uint32_t i = 0; i < g->file.len && *ret == ICF_LOG_NO_FILE; i++) {
		const struct icf_log_file *f = g->file.data[i];
		if ((strlen(f->name) == n && !memcmp(f->name, name, n)) ||
		    (!i && g->in->obj && same_base(name, n, g->in->obj)))
			*ret = i;
	}
	for (size_t i = 0; i < g->alias.len && *ret == ICF_LOG_NO_FILE; i++)
		if (strlen(g->alias.data[i].name) == n && !memcmp(g->alias.data[i].name, name, n))
			*ret = g->alias.data[i].file;
	if (*ret == ICF_LOG_NO_FILE)
		ELFRW_TRY(new_file(g, name, n, ret));
	if (*ret == ICF_LOG_NO_FILE)
		return NULL;
	struct icf_log_file *f = g->file.data[*ret];
	if (has_build_id(f, id, n_id))
		return NULL;
	if (!f->complained)
		icf_message(f->path,
			    "has another build-id than the log's; its frames stay as they are");
	f->complained = true;
	*ret = ICF_LOG_NO_FILE;
	return NULL;
}

void icf_log_close_files(struct icf_log *g)
{
	for (size_t i = 0; i < g->file.len; i++)
		close_file(g->file.data[i]);
	for (size_t i = 0; i < g->alias.len; i++)
		free(g->alias.data[i].name);
	VEC_FREE(&g->file);
	VEC_FREE(&g->alias);
	VEC_FREE(&g->mapped);
	free(g->missing);
}

/* ---- addresses ---- */

uint64_t icf_log_lowest(const struct icf_log_file *f)
{
	const struct elfrw_image *img = icf_stack_image(f->stack);
	for (uint32_t i = 0; i < img->n_phdrs; i++)
		if (img->phdr[i].p_type == PT_LOAD)
			return img->phdr[i].p_vaddr & ~(PAGE - 1);
	return 0;
}

uint64_t icf_log_code(const struct icf_log_file *f)
{
	const struct elfrw_image *img = icf_stack_image(f->stack);
	for (uint32_t i = 0; i < img->n_phdrs; i++)
		if (img->phdr[i].p_type == PT_LOAD && (img->phdr[i].p_flags & PF_X))
			return img->phdr[i].p_offset & ~(PAGE - 1);
	return 0;
}

bool icf_log_from_offset(const struct icf_log_file *f, uint64_t offset, uint64_t *ret)
{
	const struct elfrw_image *img = icf_stack_image(f->stack);
	for (uint32_t i = 0; i < img->n_phdrs; i++) {
		const Elf64_Phdr *p = &img->phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || offset < p->p_offset ||
		    offset - p->p_offset >= p->p_filesz)
			continue;
		*ret = p->p_vaddr + (offset - p->p_offset);
		return true;
	}
	return false;
}

bool icf_log_is_code(const struct icf_log_file *f, uint64_t address)
{
	const struct elfrw_image *img = icf_stack_image(f->stack);
	for (uint32_t i = 0; i < img->n_phdrs; i++) {
		const Elf64_Phdr *p = &img->phdr[i];
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address >= p->p_vaddr &&
		    address - p->p_vaddr <= p->p_memsz)
			return true;
	}
	return false;
}

struct elfrw_err *icf_log_map(struct icf_log *g, const struct icf_log_mapping *m, const char *line)
{
	static const char deleted[] = " (deleted)";
	const char *name = line + m->file.at;
	size_t n = m->file.n, d = strlen(deleted);
	uint32_t file;
	/* Another file may have the name now; the user's is the one that was meant. */
	if (g->in->obj && n > d && !memcmp(name + n - d, deleted, d) &&
	    same_base(name, n - d, g->in->obj))
		n -= d;
	ELFRW_TRY(icf_log_file_of(g, name, n, NULL, 0, &file));
	if (file == ICF_LOG_NO_FILE)
		return NULL;
	if (g->mapped.len == MAX_MAPPED) { /* the older half is forgotten */
		g->mapped.len = MAX_MAPPED / 2;
		memmove(g->mapped.data, g->mapped.data + MAX_MAPPED / 2,
			g->mapped.len * sizeof *g->mapped.data);
	}
	struct icf_log_mapped *slot = VEC_PUSH(&g->mapped);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct icf_log_mapped){ m->start, m->end, m->offset, file };
	return NULL;
}

bool icf_log_from_address(const struct icf_log *g, uint64_t address, uint32_t *file, uint64_t *ret)
{
	for (size_t i = g->mapped.len; i-- > 0;) {
		const struct icf_log_mapped *m = &g->mapped.data[i];
		*file = m->file;
		if (address >= m->start && address < m->end)
			return icf_log_from_offset(g->file.data[m->file],
						   address - m->start + m->offset, ret);
	}
	for (uint32_t i = (uint32_t)g->file.len; i-- > 0;) {
		const struct icf_log_file *f = g->file.data[i];
		bool fixed = f->sym && icf_stack_image(f->stack)->ehdr.e_type == ET_EXEC;
		*file = i;
		*ret = fixed ? address : address - f->bias;
		if (f->sym && (f->has_bias || fixed) && icf_log_is_code(f, *ret))
			return true;
	}
	return false;
}
