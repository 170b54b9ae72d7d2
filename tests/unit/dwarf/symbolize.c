/* The symbolizer.  Judges: painting by hand for the flat tables; libdw over this very program for
 * lines and functions; damaged copies of it for what must not happen.
 *
 * With two arguments, ORIGINAL and FOLDED: every byte of every folded function must give the same
 * frames in the folded file, asked for as that member, as it gave in the original. */
#include "tests/unit/make/err_check.h"
#include "dwarf/calls/icfold_note.h"
#include "dwarf/symbolize/state.h"
#include "dwarf/symbolize/symbolize.h"
#include <elfutils/libdw.h>
#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- flat tables ---- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8;
}

static void flatten_paints(void **state)
{
	(void)state;
	for (uint32_t seed = 1, round = 0; round < 2000; round++) {
		struct dwr_spans spans = { 0 };
		int paint[64];
		memset(paint, 0xff, sizeof paint);
		unsigned n = next_random(&seed) % 12;
		for (unsigned id = 0; id < n; id++) {
			unsigned lo = next_random(&seed) % 64,
				 hi = lo + next_random(&seed) % (64 - lo);
			be_ok(dwr_spans_add(&spans, lo, hi, id));
			for (unsigned i = lo; i < hi; i++)
				paint[i] = (int)id;
		}
		be_ok(dwr_spans_flatten(&spans, false));
		for (size_t i = 1; i < spans.len; i++)
			assert_true(spans.data[i - 1].hi <= spans.data[i].lo);
		for (unsigned i = 0; i < 64; i++) {
			const struct dwr_span *s = dwr_spans_find(&spans, i);
			assert_int_equal(s ? (int)s->id : -1, paint[i]);
		}
		free(spans.data);
	}
}

/* Where units overlap, the one that began earlier continues; then the one with the lowest offset.
 */
static void flatten_keeps(void **state)
{
	(void)state;
	struct dwr_spans spans = { 0 };
	be_ok(dwr_spans_add(&spans, 10, 20, 7));
	be_ok(dwr_spans_add(&spans, 15, 30, 3));
	be_ok(dwr_spans_add(&spans, 15, 25, 1));
	be_ok(dwr_spans_flatten(&spans, true));
	assert_int_equal(spans.len, 3);
	assert_int_equal(spans.data[0].id, 7);
	assert_int_equal(spans.data[0].hi, 20);
	assert_int_equal(spans.data[1].id, 1);
	assert_int_equal(spans.data[1].hi, 25);
	assert_int_equal(spans.data[2].id, 3);
	assert_int_equal(spans.data[2].hi, 30);
	free(spans.data);
}

/* ---- names ---- */

static void names(void **state)
{
	(void)state;
	struct dwr_sym *sym;
	be_ok(dwr_sym_open("/proc/self/exe", NULL, &sym));
	static const char *const pair[][2] = {
		{ "main", "main" },
		{ "_Z", "_Z" },
		{ "_", "_" },
		{ "", "" },
		{ "_Z3fooi", "foo(int)" },
		{ "_Z3foov.part.0.cold", "foo() (.part.0.cold)" },
		{ "_ZSt4swapISt6vectorIS0_IiSaIiEESaIS2_EEEvRT_S6_",
		  "void std::swap<std::vector<std::vector<int, std::allocator<int>>, std::allocator<std::vector<int, "
		  "std::allocator<int>>>>>(std::vector<std::vector<int, std::allocator<int>>, std::allocator<std::vector<int, "
		  "std::allocator<int>>>>&, std::vector<std::vector<int, std::allocator<int>>, std::allocator<std::vector<int, "
		  "std::allocator<int>>>>&)" },
		{ "_ZZ4mainENKUliE_clEi", "main::'lambda'(int)::operator()(int) const" },
		{ "_ZZ4mainENKUliE1_clEi", "main::'lambda1'(int)::operator()(int) const" },
		{ "_ZlsIiEvT_", "void operator<<<int>(int)" },
		{ "_ZltIiEvT_", "void operator<<int>(int)" },
	};
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		const char *s = dwr_sym_demangle(sym, pair[i][0]);
		assert_string_equal(s, pair[i][1]);
		assert_ptr_equal(dwr_sym_demangle(sym, pair[i][0]),
				 pair[i][0][0] == '_' ? s : pair[i][0]);
	}
	dwr_sym_close(sym);
}

/* ---- this program, as libdw sees it ---- */

struct self {
	struct dwr_sym *sym;
	struct dwr_sym_frames frames;
	unsigned lines, functions;
};

static int check_function(Dwarf_Die *die, void *arg)
{
	struct self *self = arg;
	Dwarf_Addr low, high;
	if (dwarf_lowpc(die, &low) || dwarf_highpc(die, &high) || low >= high ||
	    dwarf_hasattr(die, DW_AT_linkage_name))
		return DWARF_CB_OK;
	be_ok(dwr_sym_frames(self->sym, low + (high - low) / 2, DWR_SYM_SHORT_NAMES,
			     &self->frames));
	assert_true(self->frames.len > 0);
	const struct dwr_sym_frame *f = &self->frames.data[self->frames.len - 1];
	assert_string_equal(f->function, dwarf_diename(die));
	assert_int_equal(f->die, dwarf_dieoffset(die));
	assert_true(f->has_start_address && f->start_address == low);
	self->functions++;
	return DWARF_CB_OK;
}

static void check_lines(struct self *self, Dwarf_Die *cu)
{
	Dwarf_Lines *lines;
	size_t n;
	if (dwarf_getsrclines(cu, &lines, &n))
		return;
	for (size_t i = 0; i + 1 < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i), *next = dwarf_onesrcline(lines, i + 1);
		Dwarf_Addr a, b;
		bool end;
		int line, column;
		unsigned disc;
		dwarf_lineendsequence(l, &end);
		dwarf_lineaddr(l, &a);
		dwarf_lineaddr(next, &b);
		if (end || a >= b)
			continue;
		dwarf_lineno(l, &line);
		dwarf_linecol(l, &column);
		dwarf_linediscriminator(l, &disc);
		be_ok(dwr_sym_frames(self->sym, b - 1, 0, &self->frames));
		assert_true(self->frames.len > 0);
		const struct dwr_sym_frame *f = &self->frames.data[0];
		assert_int_equal(f->line, line);
		assert_int_equal(f->column, column);
		assert_int_equal(f->discriminator, disc);
		/* libdw leaves out the compilation directory in front of a relative one. */
		const char *file = dwarf_linesrc(l, NULL, NULL);
		size_t more = strlen(f->file) - strlen(file);
		assert_true(strlen(f->file) >= strlen(file) && !strcmp(f->file + more, file));
		self->lines++;
	}
}

static void agrees_with_libdw(void **state)
{
	(void)state;
	struct self self = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY);
	Dwarf *dw = dwarf_begin(fd, DWARF_C_READ);
	if (!dw) {
		close(fd);
		skip();
	}
	be_ok(dwr_sym_open("/proc/self/exe", NULL, &self.sym));
	Dwarf_Off off = 0, next;
	size_t head;
	for (; !dwarf_nextcu(dw, off, &next, &head, NULL, NULL, NULL); off = next) {
		Dwarf_Die cu;
		if (!dwarf_offdie(dw, off + head, &cu))
			continue;
		check_lines(&self, &cu);
		dwarf_getfuncs(&cu, check_function, &self, 0);
	}
	assert_true(self.functions > 50 && self.lines > 500);
	assert_null(dwr_sym_warning(self.sym));
	dwr_sym_frames_deinit(&self.frames);
	dwr_sym_close(self.sym);
	dwarf_end(dw);
	close(fd);
}

/* ---- damage ---- */

static void *read_self(size_t *size)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	off_t n = lseek(fd, 0, SEEK_END);
	char *data = malloc((size_t)n);
	for (off_t at = 0; data && at < n;) {
		ssize_t got = pread(fd, data + at, (size_t)(n - at), at);
		assert_true(got > 0);
		at += got;
	}
	close(fd);
	*size = (size_t)n;
	return data;
}

static void survives_damage(void **state)
{
	(void)state;
	size_t size;
	uint8_t *good = read_self(&size), *bad = malloc(size);
	char path[] = "/tmp/icfold-test.XXXXXX";
	int fd = mkstemp(path);
	assert_true(good && bad && fd >= 0);
	struct dwr_sym *sym;
	struct dwr_sym_frames frames = { 0 };
	be_ok(dwr_sym_open("/proc/self/exe", NULL, &sym));
	uint64_t low = sym->main->code_low;
	uint64_t place[8], place_size[8];
	unsigned n = 0;
	for (unsigned id = 0; id < DWR_SECS && n < 8; id++)
		if (sym->main->secs.sec[id].shndx) {
			const Elf64_Shdr *sh =
				&sym->main->image.section[sym->main->secs.sec[id].shndx].hdr;
			place[n] = sh->sh_offset;
			place_size[n++] = sh->sh_size;
		}
	dwr_sym_close(sym);
	for (uint32_t seed = 7, round = 0; n && round < 150; round++) {
		memcpy(bad, good, size);
		unsigned which = next_random(&seed) % n;
		for (unsigned i = 0; i < 20 + round; i++)
			bad[place[which] + next_random(&seed) % place_size[which]] =
				(uint8_t)next_random(&seed);
		size_t whole =
			round % 16 == 15
				? size * 3 / 4
				: size; /* cut off: sections, or their headers, are missing */
		assert_int_equal(pwrite(fd, bad, size, 0), (ssize_t)size);
		assert_int_equal(ftruncate(fd, (off_t)whole), 0);
		struct elfrw_err *err = dwr_sym_open(path, NULL, &sym);
		if (err) {
			elfrw_err_free(err);
			continue;
		}
		for (unsigned i = 0; i < 200; i++)
			be_ok(dwr_sym_frames(sym, low + next_random(&seed) % (size / 8),
					     DWR_SYM_DEMANGLE, &frames));
		dwr_sym_close(sym);
	}
	dwr_sym_frames_deinit(&frames);
	unlink(path);
	close(fd);
	free(good);
	free(bad);
}

static void refuses(void **state)
{
	(void)state;
	static const char *const bad[] = { "/nonexistent/file", "/", "/dev/null", "/etc/passwd" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct dwr_sym *sym;
		struct elfrw_err *err = dwr_sym_open(bad[i], NULL, &sym);
		assert_non_null(err);
		elfrw_err_free(err);
	}
}

/* ---- folded members ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_frames(const struct dwr_sym_frames *a, const struct dwr_sym_frames *b)
{
	if (a->len != b->len)
		return false;
	for (size_t i = 0; i < a->len; i++) {
		const struct dwr_sym_frame *x = &a->data[i], *y = &b->data[i];
		/* The function itself may have several names. Without lines, a name that symbols of
		 * several files have does not tell the file. */
		if ((!same_text(x->file, y->file) && (x->line || y->file)) || x->line != y->line ||
		    x->column != y->column || x->discriminator != y->discriminator ||
		    x->start_line != y->start_line ||
		    (i + 1 < a->len && !same_text(x->function, y->function)))
			return false;
	}
	return true;
}

static void show(const char *title, const struct dwr_sym_frames *f)
{
	for (size_t i = 0; i < f->len; i++)
		printf("#   %s %s %s:%u:%u\n", title,
		       f->data[i].function ? f->data[i].function : "??",
		       f->data[i].file ? f->data[i].file : "??", f->data[i].line,
		       f->data[i].column);
}

/* Is FRAME's name one of the member's? */
static bool named(const struct dwr_icfold *note, const struct dwr_icfold_member *m,
		  const struct dwr_sym_frame *frame)
{
	for (uint32_t i = 0; i < m->n_names; i++)
		if (same_text(note->names[m->name + i], frame->function))
			return true;
	return !m->n_names;
}

static int compare(const char *original, const char *folded)
{
	struct dwr_sym *was, *is;
	struct dwr_sym_frames a = { 0 }, b = { 0 };
	unsigned long bytes = 0, members = 0, different = 0;
	be_ok(dwr_sym_open(original, NULL, &was));
	be_ok(dwr_sym_open(folded, NULL, &is));
	const struct dwr_icfold *note = dwr_sym_note(is);
	if (!note) {
		printf("not ok members: no .debug_icfold in %s\n", folded);
		return 1;
	}
	for (uint32_t i = 0; i < note->n_members; i++) {
		const struct dwr_icfold_member *m = &note->member[i];
		const struct elfrw_addrmap_unit *u = &note->map.unit[m->unit];
		uint32_t group;
		members += (u->flags & ELFRW_UNIT_FOLDED) != 0;
		if (!dwr_sym_group_at(is, u->body, &group) || group != m->group) {
			printf("not ok members: no group at 0x%llx\n", (unsigned long long)u->body);
			return 1;
		}
		for (uint64_t at = 0; at < u->old_end - u->old; at++, bytes++) {
			be_ok(dwr_sym_frames(was, u->old + at, 0, &a));
			be_ok(dwr_sym_frames_for_member(is, u->body + at, i, 0, &b));
			/* A kept function has whatever name a look-up without a member gives. */
			if (same_frames(&a, &b) && b.len &&
			    (!(u->flags & ELFRW_UNIT_FOLDED) || named(note, m, &b.data[b.len - 1])))
				continue;
			if (different++ < 5) {
				printf("# 0x%llx, now 0x%llx, of %s\n",
				       (unsigned long long)(u->old + at),
				       (unsigned long long)(u->body + at),
				       m->n_names ? note->names[m->name] : "??");
				show("was", &a);
				show("is ", &b);
			}
		}
	}
	printf("# %lu folded functions, %lu bytes looked up, %lu different\n", members, bytes,
	       different);
	if (different)
		printf("not ok members: %lu of %lu addresses give other frames\n", different,
		       bytes);
	else
		puts("ok members");
	dwr_sym_frames_deinit(&a);
	dwr_sym_frames_deinit(&b);
	dwr_sym_close(was);
	dwr_sym_close(is);
	return different != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return compare(argv[1], argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flatten_paints),  cmocka_unit_test(flatten_keeps),
		cmocka_unit_test(names),           cmocka_unit_test(agrees_with_libdw),
		cmocka_unit_test(survives_damage), cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
