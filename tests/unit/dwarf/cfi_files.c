/* cfi_files.c: unwind tables of real programs.  Judges: libdw for what is read and for what is
 * written; the input's own bytes for the identity map. */
#include "tests/unit/make/frame_file.h"
#include "elfrw/base/rbuf.h"
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

/* libdw, walking the same bytes, sees the same records. */
static void judge_records(const struct dwr_cfi *cfi, const uint8_t *ident)
{
	Elf_Data data = { .d_buf = (void *)cfi->data,
			  .d_type = ELF_T_BYTE,
			  .d_size = cfi->size,
			  .d_align = 1,
			  .d_version = EV_CURRENT };
	Dwarf_Off off = 0, next;
	Dwarf_CFI_Entry entry;
	size_t cies = 0, fdes = 0;
	int rc;
	while ((rc = dwarf_next_cfi(ident, &data, cfi->is_eh, off, &next, &entry)) == 0) {
		if (dwarf_cfi_cie_p(&entry)) {
			const struct dwr_cie *c = &cfi->cie.data[cies++];
			assert_true(cies <= cfi->cie.len);
			assert_int_equal(c->off, off);
			assert_int_equal(c->ra, entry.cie.return_address_register);
			assert_int_equal(c->code_align, entry.cie.code_alignment_factor);
			assert_int_equal(c->data_align, entry.cie.data_alignment_factor);
			assert_ptr_equal(c->insn, entry.cie.initial_instructions);
		} else {
			const struct dwr_fde *d = &cfi->fde.data[fdes++];
			assert_true(fdes <= cfi->fde.len);
			assert_int_equal(d->off, off);
			assert_int_equal(cfi->cie.data[d->cie].off, entry.fde.CIE_pointer);
			assert_ptr_equal(d->off + d->size + cfi->data, entry.fde.end);
		}
		off = next;
	}
	assert_int_equal(rc, 1);
	assert_int_equal(cies, cfi->cie.len);
	assert_int_equal(fdes, cfi->fde.len);
}

/* libdw, looking up by address in the file, finds the same ranges. */
static void judge_ranges(const struct frame_file *f, const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	size_t step = f->cfi.fde.len / 500 + 1;
	for (size_t i = 0; i < f->cfi.fde.len; i += step) {
		const struct dwr_fde *d = &f->cfi.fde.data[i];
		const struct dwr_cie *c = &f->cfi.cie.data[d->cie];
		Dwarf_Frame *frame;
		Dwarf_Addr from, to;
		bool signal;
		if (d->pc_begin == d->pc_end || !d->pc_begin)
			continue;
		assert_int_equal(dwarf_cfi_addrframe(cfi, d->pc_begin, &frame), 0);
		assert_int_equal(dwarf_frame_info(frame, &from, &to, &signal), c->ra);
		assert_int_equal(from, d->pc_begin);
		assert_true(to <= d->pc_end);
		assert_int_equal(signal, c->signal_frame);
		free(frame);
		assert_int_equal(dwr_cfi_find(&f->cfi, d->pc_end - 1), i);
	}
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
}

/* Every FDE is in the table, in order, and every entry names its FDE. */
static void check_hdr(const uint8_t *hdr, size_t size, uint64_t va, const struct dwr_cfi *cfi)
{
	if (hdr[2] == DWR_PE_OMIT)
		return;
	uint32_t n = elfrw_get32(hdr + 8);
	assert_int_equal(size, 12 + 8 * (size_t)n);
	assert_int_equal(va + 4 + (int32_t)elfrw_get32(hdr + 4), cfi->va);
	uint64_t last = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t pc = va + (int32_t)elfrw_get32(hdr + 12 + 8 * i),
			 at = va + (int32_t)elfrw_get32(hdr + 16 + 8 * i);
		assert_true(pc > last);
		last = pc;
		size_t lo = 0, hi = cfi->fde.len;
		while (hi - lo > 1) {
			size_t mid = lo + (hi - lo) / 2;
			if (cfi->fde.data[mid].off <= at - cfi->va)
				lo = mid;
			else
				hi = mid;
		}
		assert_int_equal(cfi->fde.data[lo].off, at - cfi->va);
		assert_int_equal(cfi->fde.data[lo].pc_begin, pc);
	}
	/* All of them, but for the empty ones that share an address with another. */
	size_t missing = 0;
	for (size_t i = 1; i < cfi->fde.len; i++)
		missing += cfi->fde.data[cfi->by_pc[i]].pc_begin ==
			   cfi->fde.data[cfi->by_pc[i - 1]].pc_begin;
	assert_int_equal(n + missing, cfi->fde.len);
}

/* One unit per FDE; STEP: bytes by which each moves further, FOLD: each FOLD-th unit is folded into
 * its predecessor (0: none). */
static void make_map(struct elfrw_addrmap *map, const struct dwr_cfi *cfi, uint64_t step,
		     unsigned fold)
{
	uint64_t delta = 0;
	frame_units(map, cfi);
	for (uint32_t i = 0; i < map->n_units; i++) {
		struct elfrw_addrmap_unit *u = &map->unit[i];
		if (fold && i % fold == 1) {
			u->flags = ELFRW_UNIT_FOLDED;
			u->body = u->entry = u[-1].body;
			u->kept = i - 1;
		} else {
			u->body = u->entry = u->old + delta;
			delta += step;
		}
	}
	map->section->new_end += delta;
	be_ok(elfrw_addrmap_finish(map));
}

/* BYTES of thunks, for the folded units. */
static void make_thunks(struct elfrw_addrmap *map, uint64_t bytes)
{
	map->thunks = map->section[0].new_end;
	map->thunks_end = map->section[0].new_end = map->thunks + bytes;
	for (uint32_t i = 0; i < map->n_units; i++)
		if (map->unit[i].flags & ELFRW_UNIT_FOLDED)
			map->unit[i].flags |= ELFRW_UNIT_THUNK;
}

/* .debug_frame under the identity, and without a third of its functions. */
static void check_debug_frame(const struct frame_file *f)
{
	const struct elfrw_section *sec = elfrw_image_section(&f->img, ".debug_frame");
	if (!sec || !sec->data || (sec->hdr.sh_flags & SHF_COMPRESSED))
		return;
	struct dwr_cfi cfi, now;
	struct elfrw_addrmap map = { 0 };
	be_ok(dwr_cfi_read(&cfi, sec->name, (struct dwr_bytes){ sec->data, sec->hdr.sh_size }, 0,
			   false, 8));
	judge_records(&cfi, f->img.base);
	struct dwr_rw_frame_in in = { .cfi = &cfi, .map = &map, .arch = &elfrw_arch_x86_64 };
	struct dwr_rw_frame_out out;
	be_ok(dwr_rw_debug_frame(&in, &out));
	assert_int_equal(out.size, cfi.size);
	assert_memory_equal(out.data, cfi.data, cfi.size);
	dwr_rw_frame_deinit(&out);
	make_map(&map, &f->cfi, 16, 3);
	make_thunks(&map, 0x10);
	be_ok(dwr_rw_debug_frame(&in, &out));
	be_ok(dwr_cfi_read(&now, sec->name, (struct dwr_bytes){ out.data, out.size }, 0, false, 8));
	judge_records(&now, f->img.base);
	assert_int_equal(now.fde.len, out.n_fdes);
	assert_int_equal(now.fde.data[now.fde.len - 1].pc_begin, map.thunks);
	uint32_t k = 0;
	for (uint32_t i = 0; i < cfi.fde.len; i++) {
		uint64_t to;
		if (dwr_rw_fde_gone(&cfi, i, &map))
			continue;
		elfrw_addrmap_point(&map, cfi.fde.data[i].pc_begin, &to);
		assert_int_equal(now.fde.data[k++].pc_begin, to);
	}
	assert_int_equal(now.fde.len, k + 1);
	dwr_cfi_deinit(&now);
	dwr_cfi_deinit(&cfi);
	dwr_rw_frame_deinit(&out);
	elfrw_addrmap_deinit(&map);
}

/* Nothing moves: the same bytes, with an empty map and with one unit for each function. */
static void check_still(const struct frame_file *f)
{
	for (int with_units = 0; with_units < 2; with_units++) {
		struct elfrw_addrmap map = { 0 };
		if (with_units)
			make_map(&map, &f->cfi, 0, 0);
		struct dwr_rw_frame_in in = frame_in(f, &map);
		struct dwr_rw_frame_out out;
		be_ok(dwr_rw_eh_frame(&in, &out));
		assert_int_equal(out.size, f->cfi.size);
		assert_memory_equal(out.data, f->cfi.data, out.size);
		if (in.hdr) {
			assert_true(out.hdr_size <= in.hdr_size);
			assert_memory_equal(out.hdr, in.hdr, out.hdr_size);
			for (size_t i = out.hdr_size; i < in.hdr_size; i++)
				assert_int_equal(in.hdr[i], 0);
			check_hdr(out.hdr, out.hdr_size, in.hdr_va, &f->cfi);
		}
		dwr_rw_frame_deinit(&out);
		elfrw_addrmap_deinit(&map);
	}
}

/* FDE E of NOW is FDE D of F, moved to BODY. */
static void check_moved_fde(const struct frame_file *f, const struct dwr_fde *d,
			    const struct dwr_cfi *now, const struct dwr_fde *e, uint64_t body)
{
	assert_int_equal(e->pc_begin, body);
	assert_int_equal(e->pc_end - e->pc_begin, d->pc_end - d->pc_begin);
	assert_int_equal(e->lsda, d->lsda);
	assert_int_equal(e->insn_size, d->insn_size);
	assert_memory_equal(e->insn, d->insn, d->insn_size);
	const struct dwr_cie *c = &f->cfi.cie.data[d->cie], *g = &now->cie.data[e->cie];
	assert_int_equal(c->personality, g->personality);
	assert_string_equal(c->augmentation, g->augmentation);
	assert_int_equal(c->insn_size, g->insn_size);
	assert_memory_equal(c->insn, g->insn, c->insn_size);
}

/* Each FDE of F is in NOW, unless its function is folded; returns the number of FDEs in NOW. */
static uint32_t check_fdes(const struct frame_file *f, const struct elfrw_addrmap *map,
			   const struct dwr_rw_frame_out *out, const struct dwr_cfi *now)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < f->cfi.fde.len; i++) {
		const struct dwr_fde *d = &f->cfi.fde.data[i];
		uint32_t u = elfrw_addrmap_find(map, d->pc_begin);
		uint64_t off;
		bool there = dwr_rw_moved(&out->moves, d->off, &off);
		assert_int_equal(there, !dwr_rw_fde_gone(&f->cfi, i, map));
		if (u == ELFRW_NO_UNIT || map->unit[u].old != d->pc_begin ||
		    map->unit[u].old_end != d->pc_end) {
			k += there; /* the FDE overlaps another or is empty */
			continue;
		}
		assert_int_equal(there, !(map->unit[u].flags & ELFRW_UNIT_FOLDED));
		if (!there)
			continue;
		const struct dwr_fde *e = &now->fde.data[k++];
		assert_int_equal(e->off, off);
		check_moved_fde(f, d, now, e, map->unit[u].body);
	}
	return k;
}

/* Everything moves, one function of three is folded, and there are thunks. */
static void check_moved(const struct frame_file *f)
{
	struct elfrw_addrmap map;
	make_map(&map, &f->cfi, 16, 3);
	/* Thunks get no FDE if none of them stands for a function that had one. */
	map.thunks = map.section[0].new_end;
	map.thunks_end = map.thunks + 0x50;
	struct dwr_rw_frame_in in = frame_in(f, &map);
	struct dwr_rw_frame_out out;
	be_ok(dwr_rw_eh_frame(&in, &out));
	size_t without = out.n_fdes;
	dwr_rw_frame_deinit(&out);
	make_thunks(&map, 0x50);
	in = frame_in(f, &map);
	be_ok(dwr_rw_eh_frame(&in, &out));
	struct dwr_cfi now;
	be_ok(dwr_cfi_read(&now, ".eh_frame", (struct dwr_bytes){ out.data, out.size }, in.va, true,
			   8));
	judge_records(&now, f->img.base);
	if (in.hdr)
		check_hdr(out.hdr, out.hdr_size, in.hdr_va, &now);
	uint32_t k = check_fdes(f, &map, &out, &now);
	assert_int_equal(now.fde.len, k + 1);
	assert_int_equal(out.n_fdes, k + 1);
	assert_int_equal(without, k);
	assert_int_equal(now.fde.data[k].pc_begin, map.thunks);
	assert_int_equal(now.fde.data[k].pc_end, map.thunks_end);
	assert_int_equal(now.terminator.len, f->cfi.terminator.len);
	for (size_t i = 0; i < now.cie.len; i++)
		assert_true(now.cie.data[i].used);
	dwr_cfi_deinit(&now);
	dwr_rw_frame_deinit(&out);
	elfrw_addrmap_deinit(&map);
}

static void check_file(const char *path)
{
	struct frame_file f;
	if (!frame_file_open(&f, path))
		return;
	judge_records(&f.cfi, f.img.base);
	if (f.cfi.fde.len) {
		judge_ranges(&f, path);
		check_debug_frame(&f);
		check_still(&f);
		check_moved(&f);
	}
	frame_file_close(&f);
}

static const char program[] =
	"#include <cstdio>\\n#include <stdexcept>\\n#include <string>\\n#include <vector>\\n"
	"struct T { virtual ~T(); }; T::~T() { puts(\"~T\"); }\\n"
	"__attribute__((noinline)) void th(int c) { if (c == 1) throw std::runtime_error(\"x\"); if (c == 2) throw 5; }\\n"
	"__attribute__((noinline)) int f(int c) { T t; try { th(c); } catch (std::exception &e) { return 1; } catch (int i) "
	"{ return i; } return 0; }\\n"
	"__attribute__((noinline)) void g(int c) noexcept { std::string s(c, 97); th(c - 9); puts(s.c_str()); }\\n"
	"int main(int c, char **) { std::vector<int> v; v.push_back(c); g(c); return f(1) + f(2) + f(v[0] - 1) - 6; }\\n";

static void test_linkers(void **state)
{
	(void)state;
	static const char *const commands[] = {
		"g++ -O2 -fuse-ld=bfd",
		"g++ -O2 -fuse-ld=gold",
		"g++ -O2 -fuse-ld=lld",
		"g++ -O2 -fuse-ld=mold",
		"g++ -O2 -no-pie -fno-pie",
		"g++ -O2 -static",
		"g++ -O2 -mcmodel=large -fno-pie -no-pie",
		"clang++-19 -O2 -fuse-ld=lld",
		"clang++-19 -O2 -fuse-ld=mold",
		"clang++-14 -O2",
		"g++ -O2 -Wl,--no-eh-frame-hdr",
		"echo \"__asm__(\\\".cfi_sections .eh_frame, .debug_frame\\\");\" > d.h && g++ -O2 -include d.h",
	};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		const char *path = compile(program, commands[i]);
		if (path)
			check_file(path);
	}
}

static void test_self(void **state)
{
	(void)state;
	check_file("/proc/self/exe");
}

static int setup(void **state)
{
	elf_version(EV_CURRENT);
	return scratch_make(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linkers),
		cmocka_unit_test(test_self),
	};
	return cmocka_run_group_tests(tests, setup, scratch_remove);
}
