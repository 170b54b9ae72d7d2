/* line.c: line tables, for look-ups by address.
 *
 * Rows are never stored.  One pass over a program finds its sequences and records the state of the
 * line number machine every 64 rows.  A look-up searches both and runs the machine over at most
 * that many rows.  That costs a quarter of a microsecond, and 32 bytes for 64 rows, for which a
 * table of rows needs 2.5 KB.  dwarf/line.h and line_step.h read headers, file tables and
 * programs. */
#include "dwarf/line_step.h"
#include "dwarf/symbolize/state.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"

#define ROWS_PER_STOP 64

/* A row, and where the program continues after it. */
struct stop {
	uint64_t address, off;
	struct dwr_place place;
};

struct seq {
	uint64_t lo, hi, off; /* off: of its first opcode */
	uint32_t stop, n_stops;
};

/* The end of a look-up.  If the next one asks for a later address, it continues from there. */
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

/* Runs to the next row or the end of a sequence. */
static inline __attribute__((always_inline)) enum dwr_line_event run_here(
	const struct dwr_line_header *h, struct dwr_line_state *m)
{
	for (;;) {
		enum dwr_line_event event =
			dwr_line_step(h, m, DWR_LINE_ROWS | DWR_LINE_ADDRESS | DWR_LINE_PLACE);
		if (event != DWR_LINE_ODD_SET)
			return event;
		elfrw_rbuf_seek(&m->r, m->ext.end_off); /* not a valid address */
	}
}

static enum dwr_line_event run(const struct dwr_line_header *h, struct dwr_line_state *m)
{
	return run_here(h, m);
}

/* The place in the machine's registers. */
static inline struct dwr_place place_of(const struct dwr_line_state *m)
{
	return (struct dwr_place){ m->row.file, m->row.line, m->row.column, m->row.discriminator };
}

/* The machine behind the row at ADDRESS with PLACE, at offset OFF. */
static struct dwr_line_state machine_at(const struct dwr_line_header *h, uint64_t off,
					uint64_t address, const struct dwr_place *place)
{
	struct dwr_line_state m = dwr_line_start(h, off);
	m.row.address = address;
	m.row.file = place->file;
	m.row.line = place->line;
	m.row.column = place->column;
	return m;
}

static int by_end(const void *a, const void *b)
{
	const struct seq *x = a, *y = b;
	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static struct elfrw_err *push_stop(struct dwr_lines *l, struct stop stop)
{
	struct stop *slot = VEC_PUSH(&l->stop);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = stop;
	return NULL;
}

/* Keeps SEQ with its stops, if it has CODE. */
static struct elfrw_err *push_seq(struct dwr_lines *l, struct seq *seq, bool code)
{
	if (!code) {
		l->stop.len = seq->stop;
		return NULL;
	}
	struct seq *slot = VEC_PUSH(&l->seq);
	if (!slot)
		return &elfrw_err_nomem;
	seq->n_stops = (uint32_t)l->stop.len - seq->stop;
	*slot = *seq;
	return NULL;
}

static void sort_seqs(struct dwr_lines *l)
{
	bool sorted = true;
	for (size_t i = 1; i < l->seq.len && sorted; i++)
		sorted = by_end(&l->seq.data[i - 1], &l->seq.data[i]) <= 0;
	if (!sorted)
		qsort(l->seq.data, l->seq.len, sizeof *l->seq.data, by_end);
}

static struct elfrw_err *scan(struct dwr_lines *l, uint64_t code_low)
{
	const struct dwr_line_header *h = &l->h;
	struct dwr_line_state m = dwr_line_start(h, h->program);
	struct seq seq = { .off = h->program, .stop = 0 };
	unsigned since = 0; /* rows since the last stop or the start */
	bool rows = false;
	enum dwr_line_event event;
	l->scanned = true;
	while ((event = run_here(h, &m)) == DWR_LINE_AT_ROW || event == DWR_LINE_AT_SEQUENCE_END) {
		if (event == DWR_LINE_AT_ROW) {
			if (!rows)
				seq.lo = m.row.address;
			rows = true;
			if (++since > ROWS_PER_STOP) {
				ELFRW_TRY(push_stop(l, (struct stop){ m.row.address,
								      elfrw_rbuf_off(&m.r),
								      place_of(&m) }));
				since = 0;
			}
			m.row.discriminator = 0;
			continue;
		}
		seq.hi = m.row.address;
		ELFRW_TRY(push_seq(l, &seq, rows && seq.lo < seq.hi && seq.lo >= code_low));
		seq = (struct seq){ .off = elfrw_rbuf_off(&m.r), .stop = (uint32_t)l->stop.len };
		rows = false;
		since = 0;
		dwr_line_reset(h, &m);
	}
	l->defines_files = m.defines_files;
	/* Look-ups go on in what was read of a broken program. */
	sort_seqs(l);
	if (event == DWR_LINE_BROKEN)
		return elfrw_error_at(h->section, elfrw_rbuf_off(&m.r),
				      "line number program ends inside an opcode");
	return NULL;
}

/* Runs M while rows are at or below ADDRESS; A gets the last such row. */
static bool run_to(const struct dwr_lines *l, struct dwr_line_state *m, uint64_t address,
		   bool found, struct after *a)
{
	while (run(&l->h, m) == DWR_LINE_AT_ROW && m->row.address <= address) {
		a->place = place_of(m);
		a->address = m->row.address;
		a->off = elfrw_rbuf_off(&m->r);
		m->row.discriminator = 0;
		found = true;
	}
	return found;
}

static bool find_in_seq(struct dwr_lines *l, const struct seq *seq, uint64_t address,
			struct dwr_place *ret)
{
	struct after *a = &l->after;
	size_t lo = LOWER_BOUND(seq->stop, seq->stop + seq->n_stops, mid,
				l->stop.data[mid].address <= address);
	const struct stop *stop = lo > seq->stop ? &l->stop.data[lo - 1] : NULL;
	bool found = a->seq == seq && a->address <= address && (!stop || stop->off <= a->off);
	if (!found && stop) {
		*a = (struct after){ seq, stop->place, stop->address, stop->off };
		found = true;
	}
	struct dwr_line_state m = found ? machine_at(&l->h, a->off, a->address, &a->place)
					: dwr_line_start(&l->h, seq->off);
	found = run_to(l, &m, address, found, a);
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

bool dwr_lines_find_sure(struct dwr_lines *l, uint64_t address, struct dwr_place *ret, uint32_t *n)
{
	const struct seq *seq = first_holding(l, address);
	struct dwr_place other;
	uint32_t agree = 1;
	if (!seq || !find_in_seq(l, seq, address, ret))
		return false;
	for (; (seq = holding(l, (size_t)(seq - l->seq.data) + 1, address)); agree++)
		if (find_in_seq(l, seq, address, &other) && memcmp(&other, ret, sizeof other))
			return false;
	*n = agree;
	return true;
}

/* The first row of SEQ at ADDRESS itself; false: there is none. */
static bool first_row_at(const struct dwr_lines *l, const struct seq *seq, uint64_t address,
			 struct dwr_place *ret)
{
	size_t lo = LOWER_BOUND(seq->stop, seq->stop + seq->n_stops, mid,
				l->stop.data[mid].address < address);
	const struct stop *stop = lo > seq->stop ? &l->stop.data[lo - 1] : NULL;
	struct dwr_line_state m = stop ? machine_at(&l->h, stop->off, stop->address, &stop->place)
				       : dwr_line_start(&l->h, seq->off);
	enum dwr_line_event event;
	while ((event = run(&l->h, &m)) == DWR_LINE_AT_ROW && m.row.address < address)
		m.row.discriminator = 0;
	*ret = place_of(&m);
	return event == DWR_LINE_AT_ROW && m.row.address == address;
}

bool dwr_lines_at(const struct dwr_lines *l, uint64_t address, struct dwr_lines_at *ret)
{
	const struct seq *seq = first_holding(l, address);
	for (ret->n = 0; seq; ret->n++) {
		if (ret->n == DWR_LINES_AT)
			return false;
		ret->seq[ret->n] = (uint32_t)(seq - l->seq.data);
		if (!first_row_at(l, seq, address, &ret->first[ret->n]))
			ret->first[ret->n] = (struct dwr_place){ 0 };
		seq = holding(l, (size_t)(seq - l->seq.data) + 1, address);
	}
	return true;
}

bool dwr_lines_find_at(struct dwr_lines *l, const struct dwr_lines_at *seqs, uint64_t address,
		       struct dwr_place *ret)
{
	struct dwr_place place;
	for (uint32_t i = 0; i < seqs->n; i++) {
		const struct seq *seq = &l->seq.data[seqs->seq[i]];
		if (address < seq->lo || address >= seq->hi ||
		    !find_in_seq(l, seq, address, i ? &place : ret) ||
		    (i && memcmp(&place, ret, sizeof place)))
			return false;
	}
	return seqs->n;
}

bool dwr_lines_find_in(const struct dwr_lines *l, uint64_t off, uint32_t n, uint64_t address,
		       struct dwr_place *ret)
{
	if (off >= l->h.end - l->h.program)
		return false;
	struct dwr_line_state m = dwr_line_start(&l->h, l->h.program + off);
	for (uint32_t i = 0; i < n; i++) {
		struct dwr_place best = { 0 };
		bool below = false;
		enum dwr_line_event event;
		while ((event = run(&l->h, &m)) == DWR_LINE_AT_ROW) {
			if (m.row.address <= address) {
				best = place_of(&m);
				below = true;
			}
			m.row.discriminator = 0;
		}
		if (event != DWR_LINE_AT_SEQUENCE_END)
			return false;
		if (below && address < m.row.address) {
			*ret = best;
			return true;
		}
		dwr_line_reset(&l->h, &m);
	}
	return false;
}

/* ---- all that a table says of a range ---- */

/* Adds [LO, HI) as far as it lies in [FROM, TO). */
static struct elfrw_err *push_run(struct dwr_sym_runs *runs, const struct dwr_sym_run *run,
				  uint64_t from, uint64_t to)
{
	uint64_t lo = run->lo > from ? run->lo : from, hi = run->hi < to ? run->hi : to;
	if (lo >= hi)
		return NULL;
	struct dwr_sym_run *slot = VEC_PUSH(runs);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct dwr_sym_run){ lo, hi, run->place };
	return NULL;
}

/* A walk over a sequence. */
struct walk {
	const struct dwr_line_header *h;
	struct dwr_line_state m;
	struct dwr_sym_run run;   /* of the last row */
	bool some;                /* there was one */
	uint64_t from, to;        /* what is asked for */
	enum dwr_line_event last; /* what ended it */
};

/* Walks to the end of the sequence, or past what is asked for. */
static struct elfrw_err *walk_runs(struct walk *w, struct dwr_sym_runs *runs)
{
	struct dwr_sym_run *r = &w->run;
	for (;;) {
		w->last = run(w->h, &w->m);
		if (w->last != DWR_LINE_AT_ROW && w->last != DWR_LINE_AT_SEQUENCE_END)
			return NULL;
		r->hi = w->m.row.address;
		if (w->some && r->hi > r->lo)
			ELFRW_TRY(push_run(runs, r, w->from, w->to));
		if (w->last == DWR_LINE_AT_SEQUENCE_END)
			return NULL;
		/* A row below the one before it counts from there on. */
		if (!w->some || w->m.row.address > r->lo)
			r->lo = w->m.row.address;
		r->place = place_of(&w->m);
		w->some = true;
		w->m.row.discriminator = 0;
		if (r->lo >= w->to)
			return NULL;
	}
}

/* The part [FROM, TO) of SEQ. */
static struct elfrw_err *runs_of_seq(const struct dwr_lines *l, const struct seq *seq,
				     uint64_t from, uint64_t to, struct dwr_sym_runs *runs)
{
	struct walk w = { .h = &l->h, .from = from, .to = to };
	size_t s = LOWER_BOUND(seq->stop, seq->stop + seq->n_stops, mid,
			       l->stop.data[mid].address <= from);
	if (s > seq->stop) {
		const struct stop *stop = &l->stop.data[s - 1];
		w.run = (struct dwr_sym_run){ stop->address, 0, stop->place };
		w.some = true;
		w.m = machine_at(&l->h, stop->off, stop->address, &stop->place);
	} else
		w.m = dwr_line_start(&l->h, seq->off);
	return walk_runs(&w, runs);
}

struct elfrw_err *dwr_lines_runs(const struct dwr_lines *l, uint64_t lo, uint64_t hi,
				 struct dwr_sym_runs *runs)
{
	size_t i = LOWER_BOUND(0, l->seq.len, mid, l->seq.data[mid].hi <= lo);
	while (lo < hi && i < l->seq.len) {
		const struct seq *seq = first_holding(l, lo);
		uint64_t end = seq ? seq->hi : hi;
		/* One that ends earlier comes first as soon as it begins. */
		for (size_t k = i; k < l->seq.len && k < i + MAX_TRIES; k++) {
			if (seq == &l->seq.data[k])
				break;
			if (l->seq.data[k].lo > lo && l->seq.data[k].lo < end)
				end = l->seq.data[k].lo;
		}
		if (seq)
			ELFRW_TRY(runs_of_seq(l, seq, lo, end < hi ? end : hi, runs));
		lo = end;
		while (i < l->seq.len && l->seq.data[i].hi <= lo)
			i++;
	}
	return NULL;
}

struct elfrw_err *dwr_lines_runs_at(const struct dwr_lines *l, const struct dwr_lines_at *seqs,
				    uint64_t lo, uint64_t hi, struct dwr_sym_runs *runs)
{
	return seqs->n ? runs_of_seq(l, &l->seq.data[seqs->seq[0]], lo, hi, runs) : NULL;
}

struct elfrw_err *dwr_lines_runs_in(const struct dwr_lines *l, uint64_t off, uint32_t n,
				    uint64_t lo, uint64_t hi, struct dwr_sym_runs *runs)
{
	struct walk w = { .h = &l->h, .from = lo, .to = hi };
	if (off >= l->h.end - l->h.program)
		return NULL;
	w.m = dwr_line_start(&l->h, l->h.program + off);
	for (uint32_t i = 0; i < n; i++) {
		w.some = false;
		ELFRW_TRY(walk_runs(&w, runs));
		while (w.last == DWR_LINE_AT_ROW)
			w.last = run(&l->h, &w.m);
		if (w.last != DWR_LINE_AT_SEQUENCE_END)
			return NULL;
		dwr_line_reset(&l->h, &w.m);
	}
	return NULL;
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
