/* line.c: line tables, for look-ups by address.
 *
 * Rows are never stored.  One pass over a program finds its sequences and, every 64 rows, notes the
 * state of the line number machine; a look-up searches both and runs the machine over at most that
 * many rows.  That costs a quarter of a microsecond and 32 bytes for 64 rows, where a table of rows
 * has 2.5 KB.  Format: DWARF 5, section 6.2; headers and file tables are read by line.c. */
#include "dwarf/symbolize/state.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

#define ROWS_PER_STOP 64

struct state {
	uint64_t address;
	struct dwr_place place; /* the discriminator: of the row to come */
};

/* A row, and where the program goes on after it. */
struct stop {
	uint64_t address, off;
	struct dwr_place place;
};

struct seq {
	uint64_t lo, hi, off; /* off: of its first opcode */
	uint32_t stop, n_stops;
};

/* Where a look-up ended: the next one, when it asks for a later address, goes on from there. */
struct after {
	const struct seq *seq;  /* NULL: nowhere */
	struct dwr_place place; /* of the last row at or below the address */
	uint64_t address, off;  /* of that row, and where the program goes on after it */
};

struct dwr_lines {
	uint64_t off; /* of the header */
	struct dwr_line_header h;
	VEC(struct seq) seq; /* by end address, then in the order of the program */
	VEC(struct stop) stop;
	bool scanned, defines_files;
	bool files_read;
	struct after after; /* where the last look-up ended */
	struct dwr_line_files files;
	const char **path; /* by file, NULL: not made yet; owned, the strings are the handle's */
};

enum event { EV_END, EV_ROW, EV_END_SEQUENCE, EV_BROKEN };

static void reset(struct state *s)
{
	*s = (struct state){ .place = { .file = 1, .line = 1 } };
}

/* Runs to the next row or the end of a sequence. */
static inline enum event run(const struct dwr_line_header *h, struct elfrw_rbuf *r, struct state *s,
			     bool *defines)
{
	const uint8_t base = h->opcode_base;
	while (r->pos < r->end) {
		uint8_t op = *r->pos++;
		if (op >= base) {
			s->place.line += (uint32_t)(int32_t)h->line_advance[op];
			s->address += h->advance[op];
			return EV_ROW;
		}
		switch (op) {
		case 0: {
			uint64_t len = elfrw_rbuf_uleb(r);
			const uint8_t *arg = elfrw_rbuf_take(r, len);
			if (!arg)
				return EV_BROKEN;
			if (!len)
				break;
			if (*arg == DW_LNE_end_sequence)
				return EV_END_SEQUENCE;
			if (*arg == DW_LNE_set_address && len >= 2 && len <= 9)
				s->address = elfrw_get_le(arg + 1, (unsigned)len - 1);
			else if (*arg == DW_LNE_set_discriminator) {
				struct elfrw_rbuf a = elfrw_rbuf(arg + 1, len - 1);
				s->place.discriminator = (uint32_t)elfrw_rbuf_uleb(&a);
			} else if (*arg == DW_LNE_define_file)
				*defines = true;
			break;
		}
		case DW_LNS_copy: return EV_ROW;
		case DW_LNS_advance_pc:
			s->address += elfrw_rbuf_uleb(r) * h->min_inst_length;
			break;
		case DW_LNS_advance_line: s->place.line += (uint32_t)elfrw_rbuf_sleb(r); break;
		case DW_LNS_set_file: s->place.file = (uint32_t)elfrw_rbuf_uleb(r); break;
		case DW_LNS_set_column: s->place.column = (uint32_t)elfrw_rbuf_uleb(r); break;
		case DW_LNS_negate_stmt:
		case DW_LNS_set_basic_block:
		case DW_LNS_set_prologue_end:
		case DW_LNS_set_epilogue_begin: break;
		case DW_LNS_const_add_pc: s->address += h->advance[255]; break;
		case DW_LNS_fixed_advance_pc: s->address += elfrw_rbuf_u16(r); break;
		default:
			for (unsigned i = 0; i < h->lengths[op - 1]; i++)
				elfrw_rbuf_uleb(r);
		}
		if (!elfrw_rbuf_ok(r))
			return EV_BROKEN;
	}
	return EV_END;
}

static struct elfrw_rbuf program_at(const struct dwr_line_header *h, uint64_t off)
{
	struct elfrw_rbuf r = elfrw_rbuf(h->data, h->end);
	elfrw_rbuf_seek(&r, off);
	return r;
}

static int by_end(const void *a, const void *b)
{
	const struct seq *x = a, *y = b;
	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static struct elfrw_err *scan(struct dwr_lines *l, uint64_t code_low)
{
	const struct dwr_line_header *h = &l->h;
	struct elfrw_rbuf r = program_at(h, h->program);
	struct state s;
	struct seq seq = { .off = h->program, .stop = 0 };
	unsigned since = 0; /* rows since the last stop or the start */
	bool rows = false;
	l->scanned = true;
	reset(&s);
	for (;;) {
		enum event ev = run(h, &r, &s, &l->defines_files);
		if (ev == EV_END)
			break;
		if (ev == EV_BROKEN)
			return elfrw_error_at(h->section, elfrw_rbuf_off(&r),
					      "line number program ends inside an opcode");
		if (ev == EV_ROW) {
			if (!rows)
				seq.lo = s.address;
			rows = true;
			if (++since > ROWS_PER_STOP) {
				struct stop *stop = VEC_PUSH(&l->stop);
				if (!stop)
					return &elfrw_err_nomem;
				*stop = (struct stop){ s.address, elfrw_rbuf_off(&r), s.place };
				since = 0;
			}
			s.place.discriminator = 0;
			continue;
		}
		seq.hi = s.address;
		if (rows && seq.lo < seq.hi && seq.lo >= code_low) {
			struct seq *slot = VEC_PUSH(&l->seq);
			if (!slot)
				return &elfrw_err_nomem;
			seq.n_stops = (uint32_t)l->stop.len - seq.stop;
			*slot = seq;
		} else
			l->stop.len = seq.stop;
		seq = (struct seq){ .off = elfrw_rbuf_off(&r), .stop = (uint32_t)l->stop.len };
		rows = false;
		since = 0;
		reset(&s);
	}
	bool sorted = true;
	for (size_t i = 1; i < l->seq.len && sorted; i++)
		sorted = by_end(&l->seq.data[i - 1], &l->seq.data[i]) <= 0;
	if (!sorted)
		qsort(l->seq.data, l->seq.len, sizeof *l->seq.data, by_end);
	return NULL;
}

/* Runs from state S at R on, as long as rows are at or below ADDRESS; the last such row is in A. */
static bool run_to(const struct dwr_lines *l, struct elfrw_rbuf *r, struct state *s,
		   uint64_t address, bool found, struct after *a)
{
	bool defines;
	while (run(&l->h, r, s, &defines) == EV_ROW && s->address <= address) {
		a->place = s->place;
		a->address = s->address;
		a->off = elfrw_rbuf_off(r);
		s->place.discriminator = 0;
		found = true;
	}
	return found;
}

static bool find_in_seq(struct dwr_lines *l, const struct seq *seq, uint64_t address,
			struct dwr_place *ret)
{
	struct after *a = &l->after;
	struct state s;
	reset(&s);
	size_t lo = LOWER_BOUND(seq->stop, seq->stop + seq->n_stops, mid,
				l->stop.data[mid].address <= address);
	struct elfrw_rbuf r = program_at(&l->h, seq->off);
	const struct stop *stop = lo > seq->stop ? &l->stop.data[lo - 1] : NULL;
	bool found = a->seq == seq && a->address <= address && (!stop || stop->off <= a->off);
	if (!found && stop)
		*a = (struct after){ seq, stop->place, stop->address, stop->off };
	if (found || stop) {
		s = (struct state){ a->address, a->place };
		s.place.discriminator = 0;
		elfrw_rbuf_seek(&r, a->off);
		found = true;
	}
	found = run_to(l, &r, &s, address, found, a);
	a->seq = found ? seq : NULL;
	*ret = a->place;
	return found;
}

#define MAX_TRIES 64

/* The first sequence from FROM on that holds ADDRESS, or NULL.  Sequences may overlap: the first to
 * end behind ADDRESS need not hold it. */
static const struct seq *holding(const struct dwr_lines *l, size_t from, uint64_t address)
{
	for (unsigned tries = 0; from < l->seq.len && tries < MAX_TRIES; from++, tries++)
		if (l->seq.data[from].lo <= address)
			return &l->seq.data[from];
	return NULL;
}

static const struct seq *first_holding(const struct dwr_lines *l, uint64_t address)
{
	size_t lo = LOWER_BOUND(0, l->seq.len, mid, l->seq.data[mid].hi <= address);
	return holding(l, lo, address);
}

bool dwr_lines_find(struct dwr_lines *l, uint64_t address, struct dwr_place *ret)
{
	const struct seq *seq = first_holding(l, address);
	return seq && find_in_seq(l, seq, address, ret);
}

bool dwr_lines_find_sure(struct dwr_lines *l, uint64_t address, struct dwr_place *ret)
{
	const struct seq *seq = first_holding(l, address);
	struct dwr_place other;
	if (!seq || !find_in_seq(l, seq, address, ret))
		return false;
	while ((seq = holding(l, (size_t)(seq - l->seq.data) + 1, address)))
		if (find_in_seq(l, seq, address, &other) && memcmp(&other, ret, sizeof other))
			return false;
	return true;
}

bool dwr_lines_find_in(const struct dwr_lines *l, uint64_t off, uint32_t n, uint64_t address,
		       struct dwr_place *ret)
{
	if (off < l->h.program || off >= l->h.end)
		return false;
	struct elfrw_rbuf r = program_at(&l->h, off);
	for (uint32_t i = 0; i < n; i++) {
		struct state s;
		struct dwr_place best = { 0 };
		bool defines, below = false;
		enum event ev;
		reset(&s);
		while ((ev = run(&l->h, &r, &s, &defines)) == EV_ROW) {
			if (s.address <= address) {
				best = s.place;
				below = true;
			}
			s.place.discriminator = 0;
		}
		if (ev != EV_END_SEQUENCE)
			return false;
		if (below && address < s.address) {
			*ret = best;
			return true;
		}
	}
	return false;
}

static size_t slot_of(uint64_t off, size_t n_slots)
{
	return (size_t)((off * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (n_slots - 1);
}

static struct elfrw_err *table_at(struct dwr_sym *sym, struct dwr_sym_file *f, uint64_t off,
				  struct dwr_lines **ret)
{
	*ret = NULL;
	if (2 * f->n_lines >= f->n_line_slots) {
		size_t n = f->n_line_slots ? 2 * f->n_line_slots : 64;
		struct dwr_lines **t = calloc(n, sizeof(*t));
		if (!t)
			return &elfrw_err_nomem;
		for (size_t i = 0; i < f->n_line_slots; i++)
			if (f->lines[i]) {
				size_t k = slot_of(f->lines[i]->off, n);
				while (t[k])
					k = (k + 1) & (n - 1);
				t[k] = f->lines[i];
			}
		free(f->lines);
		f->lines = t;
		f->n_line_slots = n;
	}
	size_t k = slot_of(off, f->n_line_slots);
	for (; f->lines[k]; k = (k + 1) & (f->n_line_slots - 1))
		if (f->lines[k]->off == off) {
			*ret = f->lines[k];
			return NULL;
		}
	struct dwr_lines *l = calloc(1, sizeof *l);
	if (!l)
		return &elfrw_err_nomem;
	l->off = off;
	struct elfrw_err *err =
		dwr_line_header_read(".debug_line", dwr_sym_sec(sym, f, DWR_LINE), off, &l->h);
	if (err) {
		free(l);
		return dwr_sym_warn(sym, err);
	}
	f->lines[k] = l;
	f->n_lines++;
	*ret = l;
	return NULL;
}

static struct elfrw_err *unit_table(struct dwr_sym *sym, struct dwr_sym_unit *unit)
{
	if (unit->lines_read || !unit->root.has_line)
		return NULL;
	unit->lines_read = true;
	return table_at(sym, unit->file, unit->root.line, &unit->lines);
}

struct elfrw_err *dwr_sym_unit_lines(struct dwr_sym *sym, struct dwr_sym_unit *unit)
{
	ELFRW_TRY(unit_table(sym, unit));
	if (!unit->lines || unit->lines->scanned)
		return NULL;
	struct elfrw_err *err = scan(unit->lines, unit->file->code_low);
	return err ? dwr_sym_warn(sym, err) : NULL;
}

void dwr_lines_free(struct dwr_lines *l)
{
	if (!l)
		return;
	VEC_FREE(&l->seq);
	VEC_FREE(&l->stop);
	dwr_line_files_deinit(&l->files);
	free(l->path);
	free(l);
}

/* ---- names of files ---- */

/* Absolute on any system that the debug information may come from. */
static bool is_absolute(const char *p)
{
	if (*p == '/' || *p == '\\')
		return true;
	bool drive = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
	return drive && p[1] == ':' && (p[2] == '/' || p[2] == '\\');
}

static const char *join(struct dwr_sym *sym, const char *const *part, unsigned n)
{
	size_t size = 1;
	for (unsigned i = 0; i < n; i++)
		size += strlen(part[i]) + 1;
	char *s = dwr_arena_alloc(&sym->arena, size), *p = s;
	if (!s) {
		sym->nomem = true;
		return NULL;
	}
	for (unsigned i = 0; i < n; i++) {
		const char *from = part[i];
		if (!*from)
			continue;
		if (p > s && p[-1] == '/')
			while (*from == '/')
				from++;
		else if (p > s && *from != '/')
			*p++ = '/';
		p = stpcpy(p, from);
	}
	*p = 0;
	return s;
}

static const char *make_path(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
			     const struct dwr_lines *l, uint64_t index)
{
	const struct dwr_line_file *file = &l->files.file.data[index];
	if (is_absolute(file->name))
		return file->name;
	if (sym->path == DWR_SYM_BASENAME) {
		const char *slash = strrchr(file->name, '/');
		return slash ? slash + 1 : file->name;
	}
	/* Directory 0 is the compilation directory; before DWARF 5 it has no entry of its own. */
	const char *part[3] = { "", "", file->name };
	bool v5 = l->h.version >= 5;
	if (file->dir < l->files.dir.len && (file->dir || (v5 && sym->path != DWR_SYM_RELATIVE)))
		part[1] = l->files.dir.data[file->dir];
	if (sym->path == DWR_SYM_ABSOLUTE && unit->root.comp_dir && !is_absolute(part[1]) &&
	    (!v5 || file->dir))
		part[0] = unit->root.comp_dir;
	return join(sym, part, 3);
}

static struct elfrw_err *read_files(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				    struct dwr_lines *l)
{
	struct dwr_line_strings str = { dwr_sym_sec(sym, unit->file, DWR_LINE_STR),
					dwr_sym_sec(sym, unit->file, DWR_STR),
					dwr_sym_sec(sym, unit->file, DWR_STR_OFFSETS) };
	l->files_read = true;
	ELFRW_TRY(dwr_line_files_read(&l->h, &str, unit->root.str_offsets_base, l->defines_files,
				      &l->files));
	l->path = calloc(l->files.file.len + 1, sizeof *l->path);
	return l->path ? NULL : &elfrw_err_nomem;
}

const char *dwr_sym_file_name(struct dwr_sym *sym, const struct dwr_sym_unit *const_unit,
			      uint64_t index)
{
	struct dwr_sym_unit *unit = (struct dwr_sym_unit *)const_unit; /* only its caches change */
	struct elfrw_err *err = unit_table(sym, unit);
	struct dwr_lines *l = unit->lines;
	if (!err && l && !l->files_read) {
		err = read_files(sym, unit, l);
		if (err && !l->path)
			l->files.file.len = 0;
	}
	if (err) {
		dwr_sym_forget(sym, dwr_sym_warn(sym, err));
		return NULL;
	}
	if (!l || index >= l->files.file.len || (index == 0 && l->h.version < 5))
		return NULL;
	if (!l->path[index])
		l->path[index] = make_path(sym, unit, l, index);
	return l->path[index];
}
