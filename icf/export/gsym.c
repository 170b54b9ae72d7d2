/* gsym.c: GSYM files, version 1, little-endian (LLVM's llvm/DebugInfo/GSYM), with the information
 * on merged functions and call sites that LLVM 20 has; older readers pass over it when they look
 * addresses up.
 *
 * The tables of names and files stand before the functions, which are encoded first.  So the whole
 * file is made in memory. */
#include "elfrw/note.h"
#include "icf/export/state.h"

enum { END_OF_LIST, LINE_TABLE, INLINE_INFO, MERGED_FUNCTIONS, CALL_SITES };
enum { HEADER_SIZE = 48, UUID_SIZE = 20 };

/* The line table's special opcodes: from FIRST on, for line steps from MIN on, RANGE of them. */
enum { SET_FILE = 1, ADVANCE_PC, ADVANCE_LINE, FIRST_SPECIAL };
#define MIN_STEP   (-4)
#define STEP_RANGE 15

#define INTERNAL_CALL 1

struct entry {
	uint64_t address;
	uint32_t off; /* of its information, from the first one's */
};

struct gsym {
	struct icf_export *x;
	struct icf_strings string; /* number 0: "" */
	struct icf_strings path;   /* file number 0 is none, so these are one more */
	struct elfrw_wbuf info;
	VEC(struct entry) entry;
	struct icf_export_function member; /* reused */
	VEC(char) text;                    /* reused */
};

/* The place of TEXT in the table of strings. */
static struct elfrw_err *string(struct gsym *g, const char *text, uint32_t *ret)
{
	uint32_t number;
	ELFRW_TRY(icf_strings_add(&g->string, text, strlen(text), &number));
	*ret = g->string.off.data[number];
	return NULL;
}

static struct elfrw_err *file_number(struct gsym *g, const char *path, uint32_t *ret)
{
	*ret = 0;
	if (!path)
		return NULL;
	ELFRW_TRY(icf_strings_add(&g->path, path, strlen(path), ret));
	++*ret;
	return NULL;
}

/* Begins information of TYPE; its end sets the length. */
static size_t begin(struct gsym *g, uint32_t type)
{
	elfrw_wbuf_u32(&g->info, type);
	elfrw_wbuf_u32(&g->info, 0);
	return g->info.len;
}

static void end(struct gsym *g, size_t start)
{
	if (!g->info.bad)
		elfrw_put32(g->info.data + start - 4, (uint32_t)(g->info.len - start));
}

/* ---- lines ---- */

struct line_state {
	uint64_t address;
	uint32_t file, line;
};

static void put_line(struct elfrw_wbuf *w, struct line_state *s, const struct line_state *to)
{
	int64_t step = (int64_t)to->line - (int64_t)s->line;
	uint64_t advance = to->address - s->address;
	if (to->file != s->file) {
		elfrw_wbuf_u8(w, SET_FILE);
		elfrw_wbuf_uleb(w, to->file);
	}
	bool special = step >= MIN_STEP && step < MIN_STEP + STEP_RANGE && advance < 256;
	uint64_t op = FIRST_SPECIAL + (uint64_t)(step - MIN_STEP) + advance * STEP_RANGE;
	if (special && op < 256)
		elfrw_wbuf_u8(w, (uint8_t)op);
	else {
		if (step) {
			elfrw_wbuf_u8(w, ADVANCE_LINE);
			elfrw_wbuf_sleb(w, step);
		}
		elfrw_wbuf_u8(w, ADVANCE_PC);
		elfrw_wbuf_uleb(w, advance);
	}
	*s = *to;
}

/* A row holds up to the next one: where no line is known, line 0 begins. */
static struct elfrw_err *put_lines(struct gsym *g, const struct icf_export_function *f)
{
	const struct dwr_sym_row *row = f->in.row.data;
	size_t n = f->in.row.len;
	uint64_t lo = f->piece->lo;
	uint32_t file;
	if (!n)
		return NULL;
	size_t start = begin(g, LINE_TABLE);
	elfrw_wbuf_sleb(&g->info, MIN_STEP);
	elfrw_wbuf_sleb(&g->info, MIN_STEP + STEP_RANGE - 1);
	elfrw_wbuf_uleb(&g->info, row[0].line);
	struct line_state s = { lo, 1, row[0].line };
	ELFRW_TRY(file_number(g, row[0].file, &file));
	if (row[0].lo > lo)
		put_line(&g->info, &s, &(struct line_state){ lo, file, 0 });
	for (size_t i = 0; i < n; i++) {
		ELFRW_TRY(file_number(g, row[i].file, &file));
		const struct line_state to = { row[i].lo, file, row[i].line };
		bool gap = i && row[i - 1].hi < row[i].lo;
		if (gap)
			put_line(&g->info, &s, &(struct line_state){ row[i - 1].hi, s.file, 0 });
		if (!i || gap || to.file != s.file || to.line != s.line)
			put_line(&g->info, &s, &to);
	}
	if (row[n - 1].hi < f->piece->hi)
		put_line(&g->info, &s, &(struct line_state){ row[n - 1].hi, s.file, 0 });
	elfrw_wbuf_u8(&g->info, 0);
	end(g, start);
	return NULL;
}

/* ---- inlined calls ---- */

/* A list of N ranges, counted from BASE, and what follows it: are there children, whose code it is,
 * and the place of the call. */
static void put_ranges(struct gsym *g, const struct dwr_sym_code *range, uint32_t n, uint64_t base)
{
	elfrw_wbuf_uleb(&g->info, n);
	for (uint32_t i = 0; i < n; i++) {
		elfrw_wbuf_uleb(&g->info, range[i].lo - base);
		elfrw_wbuf_uleb(&g->info, range[i].hi - range[i].lo);
	}
}

static void put_call(struct gsym *g, bool children, uint32_t name, uint32_t file, uint32_t line)
{
	elfrw_wbuf_u8(&g->info, children);
	elfrw_wbuf_u32(&g->info, name);
	elfrw_wbuf_uleb(&g->info, file);
	elfrw_wbuf_uleb(&g->info, line);
}

static const char *name_of(const char *linkage, const char *name)
{
	return linkage && *linkage ? linkage : name && *name ? name : "??";
}

static struct elfrw_err *put_inlines(struct gsym *g, const struct icf_export_function *f,
				     uint32_t name)
{
	const struct dwr_sym_code whole = { f->piece->lo, f->piece->hi };
	size_t n = f->in.copy.len;
	if (!n)
		return NULL;
	size_t start = begin(g, INLINE_INFO);
	put_ranges(g, &whole, 1, whole.lo);
	put_call(g, true, name, 0, 0);
	for (size_t i = 0; i < n; i++) {
		const struct dwr_sym_copy *c = &f->in.copy.data[i];
		uint32_t file, origin, next = i + 1 < n ? c[1].depth : 0;
		uint64_t base = c->parent == UINT32_MAX
					? whole.lo
					: f->in.range.data[f->in.copy.data[c->parent].range].lo;
		ELFRW_TRY(file_number(g, c->call_file, &file));
		ELFRW_TRY(string(g, name_of(c->linkage, c->function), &origin));
		put_ranges(g, &f->in.range.data[c->range], c->n, base);
		put_call(g, next > c->depth, origin, file, c->call_line);
		for (uint32_t d = c->depth; i + 1 < n && d > next; d--)
			elfrw_wbuf_uleb(&g->info, 0);
		for (uint32_t d = 0; i + 1 == n && d <= c->depth; d++)
			elfrw_wbuf_uleb(&g->info, 0);
	}
	end(g, start);
	return NULL;
}

/* ---- call sites ---- */

/* The regular expression that matches NAME alone. */
static struct elfrw_err *pattern(struct gsym *g, const char *name, uint32_t *ret)
{
	size_t n = strlen(name);
	g->text.len = 0;
	if (!VEC_RESERVE(&g->text, 2 * n + 3))
		return &elfrw_err_nomem;
	char *p = g->text.data;
	*p++ = '^';
	for (; *name; name++) {
		if (strchr("\\^$.[]|()*+?{}", *name))
			*p++ = '\\';
		*p++ = *name;
	}
	*p++ = '$';
	*p = 0;
	return string(g, g->text.data, ret);
}

static struct elfrw_err *put_call_sites(struct gsym *g, const struct icf_export_function *f)
{
	const struct icf_export *x = g->x;
	size_t from = icf_export_calls_of(x, f), start = 0;
	uint32_t n = 0;
	for (size_t i = from; i < x->call.len && x->call.data[i].site <= f->piece->hi; i++) {
		const struct icf_export_call *c = &x->call.data[i];
		if (!c->n || !icf_export_call_of(x, i, f))
			continue;
		if (!n++) {
			start = begin(g, CALL_SITES);
			elfrw_wbuf_u32(&g->info, 0);
		}
		elfrw_wbuf_u64(&g->info, c->site - f->piece->lo);
		elfrw_wbuf_u8(&g->info, INTERNAL_CALL);
		elfrw_wbuf_u32(&g->info, c->n);
		for (uint32_t k = 0; k < c->n; k++) {
			uint32_t off;
			ELFRW_TRY(pattern(g, x->callee.data[c->first + k], &off));
			elfrw_wbuf_u32(&g->info, off);
		}
	}
	if (n && !g->info.bad) {
		elfrw_put32(g->info.data + start, n);
		end(g, start);
	}
	return NULL;
}

/* ---- functions ---- */

/* The start of F's information, up to its inlined calls. */
static struct elfrw_err *put_head(struct gsym *g, const struct icf_export_function *f)
{
	uint32_t name;
	uint64_t size = f->piece->hi - f->piece->lo;
	if (size > UINT32_MAX)
		return elfrw_error("a function of 4 GiB, which GSYM cannot have");
	ELFRW_TRY(string(g, name_of(f->linkage, f->name), &name));
	elfrw_wbuf_u32(&g->info, (uint32_t)size);
	elfrw_wbuf_u32(&g->info, name);
	ELFRW_TRY(put_lines(g, f));
	return put_inlines(g, f, name);
}

static void put_tail(struct gsym *g)
{
	elfrw_wbuf_u32(&g->info, END_OF_LIST);
	elfrw_wbuf_u32(&g->info, 0);
}

/* The other functions of GROUP, which share PIECE with the one that was kept. */
static struct elfrw_err *put_merged(struct gsym *g, const struct dwr_sym_piece *piece,
				    const struct dwr_icfold_group *group)
{
	size_t start = begin(g, MERGED_FUNCTIONS);
	elfrw_wbuf_u32(&g->info, group->n_members - 1);
	for (uint32_t k = 1; k < group->n_members; k++) {
		elfrw_wbuf_u32(&g->info, 0);
		size_t at = g->info.len;
		ELFRW_TRY(icf_export_function(g->x, piece, group->member + k, &g->member));
		g->x->counts->crowded += g->member.in.crowded;
		ELFRW_TRY(put_head(g, &g->member));
		ELFRW_TRY(put_call_sites(g, &g->member));
		put_tail(g);
		end(g, at);
	}
	end(g, start);
	return NULL;
}

static struct elfrw_err *put_piece(struct gsym *g, const struct dwr_sym_piece *piece,
				   struct icf_export_function *f)
{
	const struct dwr_icfold_group *group = icf_export_group(g->x, piece);
	g->x->counts->shared += group != NULL;
	elfrw_wbuf_align(&g->info, 4);
	if (g->info.len > UINT32_MAX)
		return elfrw_error("more than 4 GiB of symbols, which GSYM cannot have");
	struct entry *e = VEC_PUSH(&g->entry);
	if (!e)
		return &elfrw_err_nomem;
	*e = (struct entry){ piece->lo, (uint32_t)g->info.len };
	ELFRW_TRY(icf_export_function(g->x, piece, UINT32_MAX, f));
	g->x->counts->crowded += f->in.crowded;
	if (group)
		f->member = group->member;
	ELFRW_TRY(put_head(g, f));
	if (group && group->n_members > 1)
		ELFRW_TRY(put_merged(g, piece, group));
	ELFRW_TRY(put_call_sites(g, f));
	put_tail(g);
	return g->info.bad ? &elfrw_err_nomem : NULL;
}

/* ---- the file ---- */

/* The table of files: folder and name of each. */
static struct elfrw_err *put_files(struct gsym *g, struct elfrw_wbuf *w)
{
	elfrw_wbuf_u32(w, (uint32_t)g->path.off.len + 1);
	elfrw_wbuf_u64(w, 0);
	for (uint32_t i = 0; i < g->path.off.len; i++) {
		const char *path = icf_strings_get(&g->path, i), *slash = strrchr(path, '/'),
			   *base = slash ? slash + 1 : path;
		size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
		uint32_t dir;
		ELFRW_TRY(icf_strings_add(&g->string, path, n, &dir));
		elfrw_wbuf_u32(w, g->string.off.data[dir]);
		uint32_t name;
		ELFRW_TRY(string(g, base, &name));
		elfrw_wbuf_u32(w, name);
	}
	return NULL;
}

/* The header, without where the strings are. */
static unsigned put_header(struct gsym *g, struct elfrw_wbuf *w)
{
	size_t n = g->entry.len;
	uint32_t id_size = 0;
	const uint8_t *id = elfrw_build_id(&g->x->code, &id_size);
	uint64_t base = n ? g->entry.data[0].address : 0,
		 span = n ? g->entry.data[n - 1].address - base : 0;
	unsigned width = span <= 0xff ? 1 : span <= 0xffff ? 2 : span <= UINT32_MAX ? 4 : 8;
	if (!id || id_size > UUID_SIZE)
		id_size = id ? UUID_SIZE : 0;
	elfrw_wbuf_u32(w, 0x4753594d);
	elfrw_wbuf_u16(w, 1);
	elfrw_wbuf_u8(w, (uint8_t)width);
	elfrw_wbuf_u8(w, (uint8_t)id_size);
	elfrw_wbuf_u64(w, base);
	elfrw_wbuf_u32(w, (uint32_t)n);
	elfrw_wbuf_u64(w, 0);
	uint8_t *uuid = elfrw_wbuf_grow(w, UUID_SIZE);
	if (uuid && id_size)
		memcpy(uuid, id, id_size);
	return width;
}

static struct elfrw_err *put_tables(struct gsym *g, struct elfrw_wbuf *w)
{
	size_t n = g->entry.len;
	unsigned width = put_header(g, w);
	for (size_t i = 0; i < n; i++)
		elfrw_wbuf_uint(w, g->entry.data[i].address - g->entry.data[0].address, width);
	elfrw_wbuf_align(w, 4);
	size_t offsets = w->len;
	elfrw_wbuf_grow(w, 4 * n);
	ELFRW_TRY(put_files(g, w));
	if (w->bad)
		return &elfrw_err_nomem;
	uint64_t strings = w->len, infos = (strings + g->string.bytes.len + 3) & ~UINT64_C(3);
	if (infos + g->info.len > UINT32_MAX)
		return elfrw_error("more than 4 GiB of symbols, which GSYM cannot have");
	elfrw_put32(w->data + 20, (uint32_t)strings);
	elfrw_put32(w->data + 24, (uint32_t)g->string.bytes.len);
	for (size_t i = 0; i < n; i++)
		elfrw_put32(w->data + offsets + 4 * i, (uint32_t)infos + g->entry.data[i].off);
	elfrw_wbuf_bytes(w, g->string.bytes.data, g->string.bytes.len);
	elfrw_wbuf_align(w, 4);
	return w->bad ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *icf_export_gsym(struct icf_export *x)
{
	struct gsym g = { .x = x };
	struct icf_export_function f = { 0 };
	struct elfrw_wbuf head = { 0 };
	uint32_t none;
	struct elfrw_err *err = icf_strings_add(&g.string, "", 0, &none);
	if (!err)
		err = icf_export_read_calls(x);
	for (size_t i = 0; i < x->pieces.len && !err; i++)
		err = put_piece(&g, &x->pieces.data[i], &f);
	if (!err)
		err = put_tables(&g, &head);
	if (!err) {
		fwrite(head.data, 1, head.len, x->in->out);
		if (g.info.len)
			fwrite(g.info.data, 1, g.info.len, x->in->out);
	}
	elfrw_wbuf_free(&head);
	elfrw_wbuf_free(&g.info);
	icf_strings_deinit(&g.string);
	icf_strings_deinit(&g.path);
	icf_export_function_deinit(&f);
	icf_export_function_deinit(&g.member);
	VEC_FREE(&g.entry);
	VEC_FREE(&g.text);
	return err;
}
