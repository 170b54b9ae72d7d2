/* table.c: reads line tables (see table.h). */
#include "tests/judges/dwarf/table.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is left to read; at its end, zeros come and `short_of` is set. */
struct input {
	const uint8_t *p, *end;
	bool short_of;
};

static uint64_t fixed(struct input *in, unsigned n)
{
	uint64_t x = 0;

	if ((size_t)(in->end - in->p) < n) {
		in->short_of = true;
		in->p = in->end;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		x |= (uint64_t)*in->p++ << 8 * i;
	return x;
}

static uint64_t leb(struct input *in, bool sign)
{
	uint64_t x = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = (uint8_t)fixed(in, 1);
		if (shift < 64)
			x |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while ((b & 0x80) && !in->short_of);
	return sign && shift < 64 && (b & 0x40) ? x | ~UINT64_C(0) << shift : x;
}

static const char *text(struct input *in)
{
	const uint8_t *start = in->p, *nul = memchr(start, 0, (size_t)(in->end - start));

	in->short_of |= !nul;
	in->p = nul ? nul + 1 : in->end;
	return nul ? (const char *)start : "";
}

static const char *text_at(struct jbytes s, uint64_t off)
{
	return off < s.n && memchr(s.p + off, 0, s.n - off) ? (const char *)s.p + off : NULL;
}

static uint32_t hash(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = h * 33 + (uint8_t)*s++;
	return h;
}

static void *grown(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		abort();
	return p;
}

static uint32_t number_of(struct jpaths *paths, const char *path)
{
	if (paths->n * 2 >= paths->n_slots) {
		paths->n_slots = paths->n_slots ? paths->n_slots * 2 : 256;
		paths->slot = grown(paths->slot, paths->n_slots * sizeof(*paths->slot));
		memset(paths->slot, 0, paths->n_slots * sizeof(*paths->slot));
		for (uint32_t i = 0; i < paths->n; i++) {
			uint32_t k = hash(paths->text[i]) % paths->n_slots;

			while (paths->slot[k])
				k = (k + 1) % paths->n_slots;
			paths->slot[k] = i + 1;
		}
	}
	uint32_t k = hash(path) % paths->n_slots;

	for (; paths->slot[k]; k = (k + 1) % paths->n_slots)
		if (!strcmp(paths->text[paths->slot[k] - 1], path))
			return paths->slot[k] - 1;
	if (paths->n == paths->cap) {
		paths->cap = paths->cap * 2 + 64;
		paths->text = grown(paths->text, paths->cap * sizeof(*paths->text));
	}
	paths->text[paths->n] = strdup(path);
	paths->slot[k] = ++paths->n;
	return paths->n - 1;
}

void jpaths_free(struct jpaths *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		free(p->text[i]);
	free(p->text);
	free(p->slot);
	*p = (struct jpaths){ 0 };
}

/* The header, while the table is read. */
struct header {
	const struct jline_sections *s;
	struct jpaths *paths;
	const char *comp_dir;
	unsigned version, offset_size;
	unsigned step, line_range, opcode_base;
	int line_base;
	bool first_stmt;
	const uint8_t *operands; /* of the standard opcodes, from 1 on */
	const char **dir;
	uint32_t *file; /* numbers of paths */
	size_t n_dirs, n_files;
};

/* Appends PART to PATH (4096 bytes), with a slash between; components "." vanish. */
static void join(char *path, const char *part)
{
	size_t n = strlen(path);

	while (*part) {
		size_t len = strcspn(part, "/");

		if (len && !(len == 1 && *part == '.') && n + len + 2 < 4096) {
			if (n && path[n - 1] != '/')
				path[n++] = '/';
			memcpy(path + n, part, len);
			n += len;
		}
		part += len + (part[len] == '/');
	}
	path[n] = 0;
}

static void start(char *path, const char *dir)
{
	strcpy(path, *dir == '/' ? "/" : "");
	join(path, dir);
}

static void add_file(struct header *h, const char *name, uint64_t dir)
{
	char path[4096] = "";
	/* Version 5 has the unit's directory as number 0; before, that had no entry. */
	const char *in = h->version >= 5    ? (dir < h->n_dirs ? h->dir[dir] : "?")
			 : !dir             ? ""
			 : dir <= h->n_dirs ? h->dir[dir - 1]
					    : "?";
	const char *base = h->version >= 5 && h->n_dirs && h->dir[0][0] == '/' ? h->dir[0]
			   : h->comp_dir                                       ? h->comp_dir
									       : "";

	if (*name == '/') {
		start(path, name);
	} else if (*in == '/') {
		start(path, in);
		join(path, name);
	} else {
		start(path, base);
		if (strcmp(in, base) != 0)
			join(path, in);
		join(path, name);
	}
	h->file = grown(h->file, (h->n_files + 1) * sizeof(*h->file));
	h->file[h->n_files++] = number_of(h->paths, path);
}

static void add_dir(struct header *h, const char *name)
{
	h->dir = grown(h->dir, (h->n_dirs + 1) * sizeof(*h->dir));
	h->dir[h->n_dirs++] = name;
}

/* One of the two lists of version 5 (section 6.2.4.1). */
static const char *entries(struct header *h, struct input *in, bool files)
{
	uint64_t what[256], form[256];
	unsigned n = (unsigned)fixed(in, 1);

	for (unsigned i = 0; i < n; i++) {
		what[i] = leb(in, false);
		form[i] = leb(in, false);
	}
	for (uint64_t count = leb(in, false); count && !in->short_of; count--) {
		const char *name = "";
		uint64_t dir = 0;

		for (unsigned i = 0; i < n; i++) {
			const char *t = NULL;
			uint64_t x = 0;

			switch (form[i]) {
			case DW_FORM_string: t = text(in); break;
			case DW_FORM_line_strp:
				t = text_at(h->s->line_str, fixed(in, h->offset_size));
				break;
			case DW_FORM_strp: t = text_at(h->s->str, fixed(in, h->offset_size)); break;
			case DW_FORM_udata: x = leb(in, false); break;
			case DW_FORM_data1: x = fixed(in, 1); break;
			case DW_FORM_data2: x = fixed(in, 2); break;
			case DW_FORM_data4: x = fixed(in, 4); break;
			case DW_FORM_data8: x = fixed(in, 8); break;
			case DW_FORM_data16:
				fixed(in, 8);
				fixed(in, 8);
				break;
			case DW_FORM_block:
				for (x = leb(in, false); x && !in->short_of; x--)
					fixed(in, 1);
				break;
			default: return "a form that has no business in a header";
			}
			if (what[i] == DW_LNCT_path && !t)
				return "a name outside of its section";
			if (what[i] == DW_LNCT_path)
				name = t;
			else if (what[i] == DW_LNCT_directory_index)
				dir = x;
		}
		if (files)
			add_file(h, name, dir);
		else
			add_dir(h, name);
	}
	return NULL;
}

static const char *read_names(struct header *h, struct input *in)
{
	if (h->version >= 5) {
		const char *why = entries(h, in, false);

		return why ? why : entries(h, in, true);
	}
	for (const char *t; *(t = text(in));)
		add_dir(h, t);
	for (const char *t; *(t = text(in));) {
		uint64_t dir = leb(in, false);

		leb(in, false);
		leb(in, false);
		add_file(h, t, dir);
	}
	return NULL;
}

/* The state machine of section 6.2.2. */
struct machine {
	struct jrow r;
	uint64_t file;
};

static void reset(struct machine *m, const struct header *h)
{
	*m = (struct machine){ .file = 1, .r.line = 1, .r.marks = h->first_stmt ? JM_STMT : 0 };
}

static void emit(struct jtable *t, struct machine *m, const struct header *h)
{
	uint64_t file = h->version >= 5 ? m->file : m->file - 1;

	if (t->n == t->cap) {
		t->cap = t->cap * 2 + 256;
		t->row = grown(t->row, t->cap * sizeof(*t->row));
	}
	m->r.path = file < h->n_files ? h->file[file] : number_of(h->paths, "?");
	t->row[t->n++] = m->r;
	m->r.marks &= JM_STMT;
	m->r.disc = 0;
}

static void extended(struct jtable *t, struct machine *m, struct header *h, struct input *in)
{
	uint64_t n = leb(in, false);

	if (!n || n > (size_t)(in->end - in->p)) {
		in->short_of = true;
		return;
	}
	struct input op = { in->p, in->p + n, false };

	in->p += n;
	switch (fixed(&op, 1)) {
	case DW_LNE_end_sequence:
		m->r.marks |= JM_END;
		emit(t, m, h);
		reset(m, h);
		break;
	case DW_LNE_set_address: m->r.addr = fixed(&op, n - 1 < 8 ? (unsigned)n - 1 : 8); break;
	case DW_LNE_set_discriminator: m->r.disc = (uint32_t)leb(&op, false); break;
	case DW_LNE_define_file: {
		const char *name = text(&op);

		add_file(h, name, leb(&op, false));
		break;
	}
	}
}

static void standard(unsigned opcode, struct machine *m, const struct header *h, struct input *in)
{
	switch (opcode) {
	case DW_LNS_advance_pc: m->r.addr += leb(in, false) * h->step; break;
	case DW_LNS_advance_line: m->r.line += (uint32_t)leb(in, true); break;
	case DW_LNS_set_file: m->file = leb(in, false); break;
	case DW_LNS_set_column: m->r.col = (uint32_t)leb(in, false); break;
	case DW_LNS_negate_stmt: m->r.marks ^= JM_STMT; break;
	case DW_LNS_set_basic_block: m->r.marks |= JM_BLOCK; break;
	case DW_LNS_const_add_pc:
		m->r.addr += (255 - h->opcode_base) / h->line_range * h->step;
		break;
	case DW_LNS_fixed_advance_pc: m->r.addr += fixed(in, 2); break;
	case DW_LNS_set_prologue_end: m->r.marks |= JM_PROLOGUE; break;
	case DW_LNS_set_epilogue_begin: m->r.marks |= JM_EPILOGUE; break;
	case DW_LNS_set_isa: m->r.isa = (uint32_t)leb(in, false); break;
	default:
		for (unsigned i = h->operands[opcode - 1]; i; i--)
			leb(in, false);
	}
}

static void run(struct jtable *t, struct header *h, struct input *in)
{
	struct machine m;

	reset(&m, h);
	while (in->p < in->end && !in->short_of) {
		unsigned opcode = (unsigned)fixed(in, 1);

		if (opcode >= h->opcode_base) {
			unsigned k = opcode - h->opcode_base;

			m.r.addr += k / h->line_range * h->step;
			m.r.line += (uint32_t)(h->line_base + (int)(k % h->line_range));
			emit(t, &m, h);
		} else if (!opcode) {
			extended(t, &m, h, in);
		} else if (opcode == DW_LNS_copy) {
			emit(t, &m, h);
		} else {
			standard(opcode, &m, h, in);
		}
	}
}

const char *jtable_read(struct jtable *t, struct jpaths *paths, const struct jline_sections *s,
			uint64_t off, const char *comp_dir)
{
	struct header h = { .s = s, .paths = paths, .comp_dir = comp_dir, .offset_size = 4 };

	if (off >= s->line.n)
		return "no table there";
	struct input in = { s->line.p + off, s->line.p + s->line.n, false };
	uint64_t size = fixed(&in, 4);

	if (size == 0xffffffff) {
		h.offset_size = 8;
		size = fixed(&in, 8);
	}
	if (size > (size_t)(in.end - in.p))
		return "longer than its section";
	in.end = in.p + size;
	h.version = (unsigned)fixed(&in, 2);
	if (h.version >= 5)
		fixed(&in, 2);
	uint64_t length = fixed(&in, h.offset_size);

	if (h.version < 2 || h.version > 5 || length > (size_t)(in.end - in.p))
		return "a header of an unknown kind";
	struct input program = { in.p + length, in.end, false };

	h.step = (unsigned)fixed(&in, 1);
	if (h.version >= 4 && fixed(&in, 1) != 1)
		return "several operations an instruction";
	h.first_stmt = fixed(&in, 1);
	h.line_base = (int8_t)fixed(&in, 1);
	h.line_range = (unsigned)fixed(&in, 1);
	h.opcode_base = (unsigned)fixed(&in, 1);
	h.operands = in.p;
	for (unsigned i = 1; i < h.opcode_base; i++)
		fixed(&in, 1);
	const char *why = h.line_range && h.opcode_base && !in.short_of ? read_names(&h, &in)
									: "a broken header";

	if (!why && (in.short_of || in.p != program.p))
		why = "a header of another length than it says";
	if (!why)
		run(t, &h, &program);
	free(h.dir);
	free(h.file);
	return why ? why : program.short_of ? "a program that is cut off" : NULL;
}

void jtable_free(struct jtable *t)
{
	free(t->row);
	*t = (struct jtable){ 0 };
}
