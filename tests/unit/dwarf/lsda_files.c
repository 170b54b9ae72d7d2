/* lsda_files.c: exception tables of real programs.  Judges: their meaning before and after, and the
 * program itself, run with rebuilt tables. */
#include "tests/unit/make/frame_file.h"
#include "dwarf/lsda.h"
#include "elfrw/base/wbuf.h"
#include "elfrw/symtab.h"
#include <string.h>
#include <sys/stat.h>

/* The file at PATH, which has exception tables; else false. */
static bool open_file(struct frame_file *f, const char *path)
{
	if (!frame_file_open(f, path))
		return false;
	if (f->table && f->table->data)
		return true;
	frame_file_close(f);
	return false;
}

/* A map in which nothing moves, and the functions whose number (by address, those with an LSDA) is
 * FOLD modulo MOD are folded; MOD 0: none. */
static void make_map(struct elfrw_addrmap *map, const struct dwr_cfi *cfi, unsigned mod,
		     unsigned fold)
{
	unsigned with_lsda = 0;
	frame_units(map, cfi);
	be_ok(elfrw_addrmap_finish(map));
	for (uint32_t i = 0; i < map->n_units; i++) {
		uint32_t d = dwr_cfi_find(cfi, map->unit[i].old);
		assert_int_not_equal(d, UINT32_MAX);
		if (cfi->fde.data[d].lsda && mod && with_lsda++ % mod == fold)
			map->unit[i].flags = ELFRW_UNIT_FOLDED;
	}
}

/* The rebuilding of F's table, which stays where it is, through MAP. */
static struct dwr_rw_except_in except_in(const struct frame_file *f,
					 const struct elfrw_addrmap *map)
{
	return (struct dwr_rw_except_in){ .img = &f->img,
					  .cfi = &f->cfi,
					  .map = map,
					  .shndx = (uint32_t)(f->table - f->img.section),
					  .va = f->table->hdr.sh_addr };
}

static void check_meaning(const struct frame_file *f, const struct elfrw_addrmap *map,
			  const struct dwr_rw_except_out *out, uint64_t new_va)
{
	struct elfrw_section *section = malloc(f->img.n_sections * sizeof *section);
	struct elfrw_image now = f->img;
	size_t shndx = (size_t)(f->table - f->img.section);
	memcpy(section, f->img.section, f->img.n_sections * sizeof *section);
	section[shndx].data = out->data;
	section[shndx].hdr.sh_size = out->size;
	section[shndx].hdr.sh_addr = new_va;
	/* No other section may be found at the addresses of the table. */
	for (uint32_t i = 1; i < f->img.n_sections; i++)
		if (i != shndx && section[i].hdr.sh_addr > f->table->hdr.sh_addr)
			section[i].hdr.sh_flags &= ~(uint64_t)SHF_ALLOC;
	now.section = section;
	struct dwr_lsda x = { 0 }, y = { 0 };
	struct elfrw_wbuf a = { 0 }, b = { 0 };
	dwr_lsda_pads p = { 0 }, q = { 0 };
	for (uint32_t i = 0; i < f->cfi.fde.len; i++) {
		const struct dwr_fde *d = &f->cfi.fde.data[i];
		uint64_t lsda;
		if (!d->lsda || dwr_rw_fde_gone(&f->cfi, i, map))
			continue;
		a.len = b.len = p.len = q.len = 0;
		assert_true(dwr_rw_moved(&out->moves, d->lsda, &lsda));
		be_ok(dwr_lsda_read(&x, &f->img, d->lsda, d->pc_begin, d->pc_end));
		be_ok(dwr_lsda_read(&y, &now, lsda, d->pc_begin, d->pc_end));
		if (x.ttbase)
			assert_int_equal((lsda - d->lsda) % 4, 0);
		dwr_lsda_canon(&x, &a, &p);
		dwr_lsda_canon(&y, &b, &q);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.data, b.data, a.len);
		assert_int_equal(p.len, q.len);
		if (p.len)
			assert_memory_equal(p.data, q.data, p.len * sizeof *p.data);
	}
	dwr_lsda_deinit(&x);
	dwr_lsda_deinit(&y);
	elfrw_wbuf_free(&a);
	elfrw_wbuf_free(&b);
	VEC_FREE(&p);
	VEC_FREE(&q);
	free(section);
}

static void check_file(const char *path)
{
	struct frame_file f;
	struct elfrw_addrmap map;
	if (!open_file(&f, path))
		return;
	struct dwr_rw_except_in in = except_in(&f, &map);
	struct dwr_rw_except_out out;
	/* Dead blocks can only be those that the linker left. If there are some, the table may
	 * shrink; otherwise it stays the same. */
	make_map(&map, &f.cfi, 0, 0);
	be_ok(dwr_rw_gcc_except(&in, &out));
	assert_int_equal(out.unknown, 0);
	assert_int_equal(out.compacted, out.n_dead != 0);
	if (!out.compacted) {
		assert_int_equal(out.size, f.table->hdr.sh_size);
		assert_memory_equal(out.data, f.table->data, out.size);
	}
	check_meaning(&f, &map, &out, in.va);
	dwr_rw_except_deinit(&out);
	elfrw_addrmap_deinit(&map);
	for (int moved = 0; moved < 2; moved++) {
		make_map(&map, &f.cfi, 3, 1);
		in.va = f.table->hdr.sh_addr + (moved ? 0x40 : 0);
		be_ok(dwr_rw_gcc_except(&in, &out));
		assert_int_equal(out.unknown, 0);
		assert_true(out.compacted || !out.n_dead);
		assert_true(out.size < f.table->hdr.sh_size || !out.n_dead);
		check_meaning(&f, &map, &out, in.va);
		dwr_rw_except_deinit(&out);
		elfrw_addrmap_deinit(&map);
	}
	frame_file_close(&f);
}

static const char program[] =
	"#include <cstdio>\\n#include <stdexcept>\\n#include <string>\\n"
	"struct T { virtual ~T(); }; T::~T() { puts(\"~T\"); }\\n"
	"#define N __attribute__((noinline))\\n"
	"N void th(int c) { if (c == 1) throw std::runtime_error(\"x\"); if (c == 2) throw 5; if (c == 3) throw \"s\"; }\\n"
	/* The functions whose LSDAs the test takes away are never called, so they come first. */
	"N void unused1(int c) { T t; try { th(c); } catch (long i) { puts(\"long\"); } catch (char) { puts(\"c\"); } }\\n"
	"N void unused2(int c) throw(int, char, long) { T t; th(c); puts(\"\"); }\\n"
	"N int f(int c) { T t; try { th(c); } catch (std::exception &e) { return 1; } catch (int i) { return i; } "
	"catch (...) { return 7; } return 0; }\\n"
	"N void g(int c) throw(int, std::runtime_error) { std::string s(c, 97); th(c); puts(s.c_str()); }\\n"
	"N void h(int c) noexcept { std::string s(c, 97); th(c - 9); puts(s.c_str()); }\\n"
	"N int cold(int c) { std::string s(c, 98); try { if (__builtin_expect(c > 1000, 0)) throw std::logic_error(\"l\"); th(c); }"
	" catch (std::logic_error &) { return 3; } catch (int) { return 4; } return (int)s.size(); }\\n"
	"int main(int c, char **) { h(c); int r = f(1) * 1000 + f(2) * 100 + f(3) * 10 + cold(2); "
	"try { g(2); } catch (int i) { r += i; } if (c > 99) { unused1(c); unused2(c); } "
	"printf(\"%%d\\\\n\", r); return r != 1579; }\\n";

/* The file offset of an address in the program's own sections. */
static void patch(uint8_t *copy, const struct elfrw_section *sec, const uint8_t *data, size_t size)
{
	assert_true(size <= sec->hdr.sh_size);
	memset(copy + sec->hdr.sh_offset, 0, sec->hdr.sh_size);
	memcpy(copy + sec->hdr.sh_offset, data, size);
}

/* Folds unused1 and unused2 away. */
static void fold_unused(const struct frame_file *f, struct elfrw_addrmap *map)
{
	const struct elfrw_section *symtab = &f->img.section[f->img.symtab];
	unsigned found = 0;
	for (struct elfrw_symbols it = elfrw_symbols(symtab, 0); elfrw_symbols_next(&it);) {
		const char *name = elfrw_image_string(&f->img, symtab->hdr.sh_link, it.sym.st_name);
		if (!name || strncmp(name, "_Z7unused", 9))
			continue;
		uint32_t u = elfrw_addrmap_find(map, it.sym.st_value);
		assert_int_not_equal(u, ELFRW_NO_UNIT);
		map->unit[u].flags = ELFRW_UNIT_FOLDED;
		found++;
	}
	assert_true(found >= 2);
}

/* Writes SIZE bytes as a program at NAME, and runs it: it does what the one at PATH does. */
static void run_copy(const char *path, const char *name, const uint8_t *copy, size_t size)
{
	char line[1300];
	FILE *file = fopen(name, "wb");
	assert_int_equal(fwrite(copy, 1, size, file), size);
	fclose(file);
	chmod(name, 0755);
	snprintf(line, sizeof line, "%s > %s.out1 && %s > %s.out2 && cmp %s.out1 %s.out2", path,
		 scratch, name, scratch, scratch, scratch);
	assert_int_equal(system(line), 0);
}

/* Takes the LSDAs and FDEs of unused1 and unused2 out of the file, writes the three sections back
 * and runs the program. */
static void run_rebuilt(const char *path)
{
	struct frame_file f;
	struct elfrw_addrmap map;
	if (!open_file(&f, path))
		fail_msg("%s has no exception table", path);
	make_map(&map, &f.cfi, 0, 0);
	fold_unused(&f, &map);
	struct dwr_rw_except_in in = except_in(&f, &map);
	struct dwr_rw_except_out out;
	be_ok(dwr_rw_gcc_except(&in, &out));
	assert_true(out.compacted);
	struct dwr_rw_frame_in frames = frame_in(&f, &map);
	struct dwr_rw_frame_out eh;
	frames.lsda = &out.moves;
	be_ok(dwr_rw_eh_frame(&frames, &eh));
	assert_true(eh.n_dropped >= 2);
	uint8_t *copy = malloc(f.img.size);
	memcpy(copy, f.img.base, f.img.size);
	patch(copy, f.table, out.data, out.size);
	patch(copy, f.eh, eh.data, eh.size);
	if (frames.hdr)
		patch(copy, f.hdr, eh.hdr, eh.hdr_size);
	char name[600];
	snprintf(name, sizeof name, "%s.rebuilt", path);
	run_copy(path, name, copy, f.img.size);
	free(copy);
	dwr_rw_frame_deinit(&eh);
	dwr_rw_except_deinit(&out);
	elfrw_addrmap_deinit(&map);
	frame_file_close(&f);
}

static void test_compilers(void **state)
{
	(void)state;
	static const char *const commands[] = {
		"g++ -std=c++14 -O2 -fuse-ld=bfd",
		"g++ -std=c++14 -O2 -fuse-ld=gold",
		"g++ -std=c++14 -O2 -fuse-ld=lld",
		"g++ -std=c++14 -O2 -fuse-ld=mold",
		"g++ -std=c++14 -O2 -no-pie -fno-pie",
		"g++ -std=c++14 -O2 -static",
		"g++ -std=c++14 -O2 -mcmodel=large -fno-pie -no-pie",
		"g++ -std=c++14 -Os",
		"clang++-19 -std=c++14 -O2 -fuse-ld=lld",
		"clang++-19 -std=c++14 -O2 -fuse-ld=mold",
		"clang++-14 -std=c++14 -O2",
	};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		const char *path = compile(program, commands[i]);
		if (path) {
			check_file(path);
			run_rebuilt(path);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compilers),
	};
	return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
