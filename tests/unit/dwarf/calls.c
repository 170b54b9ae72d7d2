/* calls.c: the call tables' reader and writer, on sections made here; and virtual calls in code.
 * `calls --dump FILE` prints a file's tables: "dcall SITE CALLER CALLEE" and "vcall SITE SLOT"
 * in hexadecimal. */
#include "dwarf/calls/calls.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/wbuf.h"
#include "icf/program/call_scan.h"
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#define TEXT      0x1000
#define TEXT_SIZE 0x1000

/* .debug_info: two units.  Abbreviation 1: compile unit, 2: subprogram, 3: lexical block; no
 * attributes. */
static const uint8_t abbrev[] = { 1, 0x11, 1, 0, 0, 2, 0x2e, 0, 0, 0, 3, 0x0b, 0, 0, 0, 0 };
#define UNIT(...) 7 + sizeof((uint8_t[]){ __VA_ARGS__ }), 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, __VA_ARGS__
static const uint8_t info[] = {
	UNIT(1, 2, 3, 2, 0), /* 0x00; functions at 0xc, 0xe; block at 0xd */
	UNIT(1, 3, 2, 2, 0), /* 0x10; functions at 0x1d, 0x1e; block at 0x1c */
};
#define SECOND 0x10

struct file {
	struct elfrw_section section[6];
	struct elfrw_image img;
	struct dwr_sections secs;
	struct dwr_units units;
	struct dwr_calls calls;
};

static void section(struct file *f, unsigned i, const char *name, const void *data, size_t size)
{
	f->section[i].name = name;
	f->section[i].data = size ? data : NULL;
	f->section[i].hdr.sh_size = size;
	f->section[i].hdr.sh_type = SHT_PROGBITS;
	f->section[i].hdr.sh_addralign = 1;
}

/* Reads the two tables; the text of the error, or NULL. */
static const char *read_tables(struct file *f, const void *dcall, size_t dcall_size,
			       const void *vcall, size_t vcall_size)
{
	static char text[256];
	memset(f, 0, sizeof *f);
	section(f, 0, "", NULL, 0);
	section(f, 1, ".text", NULL, 0);
	f->section[1].hdr.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	f->section[1].hdr.sh_addr = TEXT;
	f->section[1].hdr.sh_size = TEXT_SIZE;
	section(f, 2, ".debug_info", info, sizeof info);
	section(f, 3, ".debug_abbrev", abbrev, sizeof abbrev);
	section(f, 4, ".debug_dcall", dcall, dcall_size);
	section(f, 5, ".debug_vcall", vcall, vcall_size);
	f->img = (struct elfrw_image){
		.arch = &elfrw_arch_x86_64, .section = f->section, .n_sections = 6, .path = "test"
	};
	assert_null(dwr_sections_init(&f->secs, &f->img));
	assert_null(dwr_units_read(&f->secs, &f->units));
	struct elfrw_err *err = dwr_calls_read(&f->secs, &f->units, &f->calls);
	if (!err)
		return NULL;
	snprintf(text, sizeof text, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return text;
}

static void done(struct file *f)
{
	dwr_calls_deinit(&f->calls);
	dwr_units_deinit(&f->units);
	dwr_sections_deinit(&f->secs);
}

/* A contribution under construction. */
static size_t begin(struct elfrw_wbuf *w, bool gcc, bool direct, uint32_t debug_info)
{
	size_t at = w->len;
	elfrw_wbuf_u32(w, 0);
	elfrw_wbuf_uint(w, 4, gcc ? 2 : 1);
	if (direct)
		elfrw_wbuf_u32(w, debug_info);
	elfrw_wbuf_u8(w, 8);
	return at;
}

static void entry(struct elfrw_wbuf *w, bool gcc, uint64_t site, uint64_t number)
{
	elfrw_wbuf_uint(w, site, gcc ? 4 : 8);
	elfrw_wbuf_uleb(w, number);
}

static void end(struct elfrw_wbuf *w, size_t at)
{
	elfrw_put32(w->data + at, (uint32_t)(w->len - at - 4));
}

static void expect(const struct file *f, size_t i, uint64_t site, uint64_t die, uint64_t caller)
{
	assert_true(i < f->calls.dcall.len);
	assert_int_equal(f->calls.dcall.data[i].site, site);
	assert_int_equal(f->calls.dcall.data[i].die, die);
	assert_int_equal(f->calls.dcall.data[i].caller, caller);
}

static void both_dialects(void **state)
{
	(void)state;
	struct elfrw_wbuf d = { 0 }, v = { 0 };
	struct file f;
	/* GCC's form: offsets count from the second unit. */
	size_t at = begin(&d, true, true, SECOND);
	entry(&d, true, 0, 0xd);
	entry(&d, true, 0x1005, 0xe);
	entry(&d, true, 0x1010, 0xd);
	entry(&d, true, 0, 0xe);
	entry(&d, true, 0x1020, 0xd);
	end(&d, at);
	/* The proposal's form: offsets count from .debug_info. */
	at = begin(&d, false, true, SECOND);
	entry(&d, false, 0x1030, 0x1d);
	entry(&d, false, 0x2000, 0xc);
	end(&d, at);
	/* The proposal's form with offsets that count from the second unit. Counted from
	 * .debug_info, 0xd would be a block. */
	at = begin(&d, false, true, SECOND);
	entry(&d, false, 0x1040, 0xd);
	end(&d, at);
	at = begin(&v, true, false, 0);
	entry(&v, true, 0x1050, 3);
	end(&v, at);
	at = begin(&v, false, false, 0);
	entry(&v, false, 0x1060, 300);
	end(&v, at);
	const char *err = read_tables(&f, d.data, d.len, v.data, v.len);
	if (err)
		fail_msg("%s", err);
	assert_int_equal(f.calls.n_dcall_units, 3);
	assert_int_equal(f.calls.n_vcall_units, 2);
	assert_int_equal(f.calls.n_gcc_units, 2);
	assert_int_equal(f.calls.dcall.len, 6);
	expect(&f, 0, 0x1005, 0x1e, 0x1d);
	expect(&f, 1, 0x1010, 0x1d, 0x1d);
	expect(&f, 2, 0x1020, 0x1d, 0x1e);
	expect(&f, 3, 0x1030, 0x1d, 0);
	expect(&f, 4, 0x2000, 0xc, 0);
	expect(&f, 5, 0x1040, 0x1d, 0);
	assert_int_equal(f.calls.vcall.len, 2);
	assert_int_equal(f.calls.vcall.data[0].slot, 3);
	assert_int_equal(f.calls.vcall.data[1].site, 0x1060);
	assert_int_equal(f.calls.vcall.data[1].slot, 300);
	done(&f);
	elfrw_wbuf_free(&d);
	elfrw_wbuf_free(&v);
}

static void long_units(void **state)
{
	(void)state;
	struct elfrw_wbuf d = { 0 };
	struct file f;
	for (int gcc = 0; gcc < 2; gcc++) {
		elfrw_wbuf_u32(&d, 0xffffffff);
		elfrw_wbuf_u64(&d, (gcc ? 2 : 1) + 8 + 1 + 9);
		elfrw_wbuf_uint(&d, 4, gcc ? 2 : 1);
		elfrw_wbuf_u64(&d, gcc ? SECOND : 0);
		elfrw_wbuf_u8(&d, 8);
		elfrw_wbuf_u64(&d, 0x1234);
		elfrw_wbuf_uleb(&d, gcc ? 0xe : 0xc);
	}
	const char *err = read_tables(&f, d.data, d.len, NULL, 0);
	if (err)
		fail_msg("%s", err);
	assert_int_equal(f.calls.n_gcc_units, 1);
	expect(&f, 0, 0x1234, 0xc, 0);
	expect(&f, 1, 0x1234, 0x1e, 0);
	done(&f);
	elfrw_wbuf_free(&d);
}

static void refused(void **state)
{
	(void)state;
	struct file f;
	for (int gcc = 0; gcc < 2; gcc++)
		for (int what = 0; what < 6; what++) {
			struct elfrw_wbuf d = { 0 };
			size_t at = begin(&d, gcc, true, SECOND);
			entry(&d, gcc,
			      what == 0   ? 0x900
			      : what == 1 ? 0x2001
					  : 0x1100,
			      what == 2 ? 0xc
			      : gcc     ? 0xd
					: 0x1d);
			if (what == 3)
				elfrw_wbuf_u8(&d, 0);
			end(&d, at);
			size_t len = d.len - (what == 4);
			if (what == 5)
				d.data[4] = 5;
			/* In one reading of the proposal's form 0xc is a function. In that case a
			 * truncated table of virtual calls is read instead. */
			bool other = what == 2 && !gcc;
			assert_non_null(read_tables(&f, d.data, other ? 0 : len, other ? "x" : NULL,
						    other));
			done(&f);
			elfrw_wbuf_free(&d);
		}
}

static void written(void **state)
{
	(void)state;
	struct dwr_dcall c[] = {
		{ 0x1200, 0x1d, 0xe }, { 0x1100, 0xc, 0 }, { 0x1200, 0x1e, 0xc },
		{ 0x1010, 0xe, 0 },    { 0x1100, 0xc, 0 }, { 0x1080, 0xc, 0xe },
	};
	struct dwr_vcall v[] = { { 0x1300, 9 }, { 0x1250, 200 }, { 0x1300, 9 } };
	size_t n = 6, nv = 3, size, vsize;
	uint8_t *data, *vdata;
	assert_null(dwr_dcall_write(c, &n, 8, &data, &size));
	assert_null(dwr_vcall_write(v, &nv, 8, &vdata, &vsize));
	assert_int_equal(n, 5);
	assert_int_equal(nv, 2);
	static const uint8_t head[] = { 0,    0,    0, 0, 4, 0, 0, 0, 0,   8,
					0x10, 0x10, 0, 0, 0, 0, 0, 0, 0x0e };
	assert_int_equal(elfrw_get32(data), size - 4);
	assert_memory_equal(data + 4, head + 4, sizeof head - 4);
	struct file f;
	const char *err = read_tables(&f, data, size, vdata, vsize);
	if (err)
		fail_msg("%s", err);
	assert_int_equal(f.calls.dcall.len, 5);
	expect(&f, 0, 0x1010, 0xe, 0);
	expect(&f, 1, 0x1100, 0xc, 0);
	expect(&f, 2, 0x1200, 0x1e, 0xc);
	expect(&f, 3, 0x1080, 0xc, 0xe);
	expect(&f, 4, 0x1200, 0x1d, 0xe);
	assert_int_equal(f.calls.vcall.data[0].slot, 200);
	assert_int_equal(f.calls.vcall.data[1].site, 0x1300);
	done(&f);
	free(data);
	free(vdata);
	n = 0;
	assert_null(dwr_dcall_write(c, &n, 8, &data, &size));
	assert_null(data);
}

/* Any bytes: an answer or an error. */
static void noise(void **state)
{
	(void)state;
	uint32_t seed = 12345;
	struct elfrw_wbuf d = { 0 };
	size_t at = begin(&d, true, true, SECOND);
	for (unsigned i = 0; i < 20; i++)
		entry(&d, true, 0x1001 + i, 0xd);
	end(&d, at);
	for (unsigned round = 0; round < 3000; round++) {
		uint8_t copy[256];
		size_t len = d.len < sizeof copy ? d.len : sizeof copy;
		memcpy(copy, d.data, len);
		for (unsigned k = 0; k < 3; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 8) % (k ? len : 12)] = (uint8_t)(seed >> 24);
		}
		struct file f;
		uint8_t *exact = malloc(len);
		memcpy(exact, copy, len);
		read_tables(&f, exact, len - round % 3, exact, round % len);
		done(&f);
		free(exact);
	}
	elfrw_wbuf_free(&d);
}

/* Virtual calls in code.  The program is one unit; SLOT ICF_NONE: nothing may be found. */
static void check_code(const char *name, const uint8_t *code, size_t size, const uint64_t *label,
		       size_t n_labels, uint32_t slot)
{
	static const char mangled[] = "_Z1fv";
	struct icf_exec exec = { .shndx = 1, .start = TEXT, .end = TEXT + size, .n_units = 1 };
	struct icf_unit unit = {
		.start = TEXT, .end = TEXT + size, .kind = ICF_UNIT_FUNC, .n_sym = 1
	};
	struct icf_symbol sym = { .value = TEXT, .size = size, .name = mangled };
	struct elfrw_section sec[2] = { { .name = "" }, { .name = ".text", .data = code } };
	sec[1].hdr = (Elf64_Shdr){ .sh_addr = TEXT,
				   .sh_size = size,
				   .sh_type = SHT_PROGBITS,
				   .sh_flags = SHF_ALLOC | SHF_EXECINSTR };
	struct elfrw_image img = { .section = sec, .n_sections = 2, .arch = &elfrw_arch_x86_64 };
	struct icf_program prog = { .img = &img, .arch = &elfrw_arch_x86_64 };
	prog.exec.data = &exec;
	prog.exec.len = 1;
	prog.unit.data = &unit;
	prog.unit.len = 1;
	prog.sym.data = &sym;
	prog.sym.len = 1;
	struct icf_labels labels = { 0 };
	for (size_t i = 0; i < n_labels; i++)
		*VEC_PUSH(&labels) = label[i];
	struct icf_calls calls = { 0 };
	assert_null(icf_scan_virtual(&prog, 0, &labels, &calls));
	if (calls.vcall.len + calls.indirect.len != 1)
		fail_msg("%s: %zu calls", name, calls.vcall.len + calls.indirect.len);
	if ((slot == ICF_NONE) != (calls.vcall.len == 0))
		fail_msg("%s: a virtual call is %s", name, calls.vcall.len ? "seen" : "not seen");
	if (calls.vcall.len && calls.vcall.data[0].slot != slot)
		fail_msg("%s: slot %u", name, calls.vcall.data[0].slot);
	icf_calls_deinit(&calls);
	VEC_FREE(&labels);
}

#define CODE(name, slot, ...)                                     \
	do {                                                      \
		static const uint8_t c[] = { __VA_ARGS__, 0xc3 }; \
		check_code(name, c, sizeof c, NULL, 0, slot);     \
	} while (0)

static void virtual_calls(void **state)
{
	(void)state;
	CODE("mov (%rdi),%rax; call *0x18(%rax)", 3, 0x48, 0x8b, 0x07, 0xff, 0x50, 0x18);
	CODE("mov (%rdi),%rax; call *(%rax)", 0, 0x48, 0x8b, 0x07, 0xff, 0x10);
	CODE("mov (%rbx),%rax; mov %rbx,%rdi; call *0x10(%rax)", 2, 0x48, 0x8b, 0x03, 0x48, 0x89,
	     0xdf, 0xff, 0x50, 0x10);
	CODE("mov (%rbx),%rax; mov 8(%rax),%rcx; mov %rbx,%rdi; call *%rcx", 1, 0x48, 0x8b, 0x03,
	     0x48, 0x8b, 0x48, 0x08, 0x48, 0x89, 0xdf, 0xff, 0xd1);
	CODE("lea 0x10(%rbx),%rdi; mov 0x10(%rbx),%rax; call *8(%rax)", 1, 0x48, 0x8d, 0x7b, 0x10,
	     0x48, 0x8b, 0x43, 0x10, 0xff, 0x50, 0x08);
	CODE("mov (%rsi),%rax; call *8(%rax)", 1, 0x48, 0x8b, 0x06, 0xff, 0x50, 0x08);
	CODE("mov -8(%rbp),%rax; mov (%rax),%rax; mov (%rax),%rdx; mov -8(%rbp),%rax; mov %rax,%rdi; call *%rdx",
	     0, 0x48, 0x8b, 0x45, 0xf8, 0x48, 0x8b, 0x00, 0x48, 0x8b, 0x10, 0x48, 0x8b, 0x45, 0xf8,
	     0x48, 0x89, 0xc7, 0xff, 0xd2);
	/* No virtual calls: another object, another offset, a changed register, a store between two
	 * loads, an offset inside a slot, 32 bits. */
	CODE("mov (%rbx),%rax; call *8(%rax)", ICF_NONE, 0x48, 0x8b, 0x03, 0xff, 0x50, 0x08);
	CODE("mov 8(%rdi),%rax; call *8(%rax)", ICF_NONE, 0x48, 0x8b, 0x47, 0x08, 0xff, 0x50, 0x08);
	CODE("mov (%rdi),%rax; add %rcx,%rax; call *8(%rax)", ICF_NONE, 0x48, 0x8b, 0x07, 0x48,
	     0x01, 0xc8, 0xff, 0x50, 0x08);
	CODE("mov (%rdi),%rax; xor %edi,%edi; call *8(%rax)", ICF_NONE, 0x48, 0x8b, 0x07, 0x31,
	     0xff, 0xff, 0x50, 0x08);
	CODE("mov (%rdi),%rax; call *4(%rax)", ICF_NONE, 0x48, 0x8b, 0x07, 0xff, 0x50, 0x04);
	CODE("mov (%rdi),%eax; call *8(%rax)", ICF_NONE, 0x8b, 0x07, 0xff, 0x50, 0x08);
	CODE("-8(%rbp) changes", ICF_NONE, 0x48, 0x8b, 0x45, 0xf8, 0x48, 0x8b, 0x00, 0x48, 0x89,
	     0x4d, 0xf8, 0x48, 0x8b, 0x7d, 0xf8, 0xff, 0x10);
	CODE("call *8(%rax) alone", ICF_NONE, 0xff, 0x50, 0x08);
	CODE("pop changes rax", ICF_NONE, 0x48, 0x8b, 0x07, 0x58, 0xff, 0x50, 0x08);
	CODE("mul changes rax", ICF_NONE, 0x48, 0x8b, 0x07, 0x48, 0xf7, 0xe1, 0xff, 0x50, 0x08);
}

static void labels(void **state)
{
	(void)state;
	/* mov (%rdi),%rax; je 1f; ret; 1: call *8(%rax): reached by that jump alone, or by a second
	 * jump, too. */
	static const uint8_t jump[] = {
		0x48, 0x8b, 0x07, 0x74, 0x01, 0xc3, 0xff, 0x50, 0x08, 0xc3
	};
	static const uint64_t at[] = { TEXT + 6, TEXT + 6 };
	check_code("one jump", jump, sizeof jump, at, 1, 1);
	check_code("two jumps", jump, sizeof jump, at, 2, ICF_NONE);
	/* mov (%rdi),%rax; 1: call *8(%rax): control falls through to the label; in the second case
	 * a jump leads there, too. */
	static const uint8_t fall[] = { 0x48, 0x8b, 0x07, 0xff, 0x50, 0x08, 0xc3 };
	static const uint64_t join[] = { TEXT + 3 };
	check_code("no label", fall, sizeof fall, NULL, 0, 1);
	check_code("a label between", fall, sizeof fall, join, 1, ICF_NONE);
}

static int dump(const char *path)
{
	struct elfrw_image img;
	struct dwr_sections secs;
	struct dwr_units units = { 0 };
	struct dwr_calls calls = { 0 };
	struct elfrw_err *err = elfrw_image_open(&img, path);
	if (!err) {
		err = dwr_sections_init(&secs, &img);
		if (!err)
			err = dwr_units_read(&secs, &units);
		if (!err)
			err = dwr_calls_read(&secs, &units, &calls);
		for (size_t i = 0; i < calls.dcall.len; i++)
			printf("dcall %llx %llx %llx\n",
			       (unsigned long long)calls.dcall.data[i].site,
			       (unsigned long long)calls.dcall.data[i].caller,
			       (unsigned long long)calls.dcall.data[i].die);
		for (size_t i = 0; i < calls.vcall.len; i++)
			printf("vcall %llx %llx\n", (unsigned long long)calls.vcall.data[i].site,
			       (unsigned long long)calls.vcall.data[i].slot);
		dwr_calls_deinit(&calls);
		dwr_units_deinit(&units);
		dwr_sections_deinit(&secs);
		elfrw_image_close(&img);
	}
	if (!err)
		return 0;
	fprintf(stderr, "%s\n", elfrw_err_text(err));
	elfrw_err_free(err);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--dump") == 0)
		return dump(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_dialects), cmocka_unit_test(long_units),
		cmocka_unit_test(refused),       cmocka_unit_test(written),
		cmocka_unit_test(noise),         cmocka_unit_test(virtual_calls),
		cmocka_unit_test(labels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
