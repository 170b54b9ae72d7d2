/* The parts that tell which object a virtual function was called on; tests/suites/debug/core.sh
 * tests them together. */
#include "dwarf/stack/receiver.h"
#include "dwarf/stack/value_track.h"
#include "elfrw/arch/effect.h"
#include "elfrw/image.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void destructor_names(void **state)
{
	(void)state;
	static const struct {
		const char *name, *cls;
		bool is;
	} test[] = {
		{ "_ZN4TileD1Ev", "4Tile", true },
		{ "_ZN4TileD0Ev", "4Tile", true },
		{ "_ZN1a1bD2Ev", "1a1b", true },
		{ "_ZNSt9exceptionD1Ev", "St9exception", true },
		{ "_ZN3BoxIiED5Ev", "3BoxIiE", true },
		{ "_ZN3BoxD2B5cxx11Ev", "3Box", true },
		{ "_ZN3BoxD1Ev.cold", "3Box", true },
		{ "_ZThn8_N3BoxD1Ev", NULL, true },
		{ "~Box", NULL, true },
		{ "_ZN3BoxC1Ev", NULL, false },
		{ "_ZN4Tile4growEl", NULL, false },
		{ "main", NULL, false },
		{ "D1Ev", NULL, false },
		{ "", NULL, false },
		{ NULL, NULL, false },
	};
	for (size_t i = 0; i < sizeof test / sizeof *test; i++) {
		const char *cls;
		size_t len;
		assert_int_equal(dwr_names_destructor(test[i].name, &cls, &len), test[i].is);
		assert_int_equal(len, test[i].cls ? strlen(test[i].cls) : 0);
		if (test[i].cls)
			assert_memory_equal(cls, test[i].cls, len);
	}
}

/* The virtual call that ends CODE; *KEPT tells whether rbx then is the object. */
static bool track(const char *code, size_t size, struct dwr_track_call *call, bool *kept)
{
	const struct elfrw_model *m = elfrw_arch_x86_64.model;
	struct dwr_track t = { .model = m };
	bool found = false;
	dwr_track_forget_all(&t);
	for (size_t at = 0; at < size;) {
		struct elfrw_insn in;
		struct elfrw_effect e;
		const uint8_t *p = (const uint8_t *)code + at;
		assert_true(elfrw_arch_x86_64.decode(p, size - at, at, &in));
		m->effect(&in, p, &e);
		if (in.kind == ELFRW_INSN_CALL_IND)
			found = dwr_track_virtual(&t, &in, &e, call);
		else
			dwr_track_step(&t, &in, &e);
		at += in.len;
	}
	*kept = found && t.s.reg[3].id == call->object.id && t.s.reg[3].add == call->object.add;
	dwr_track_deinit(&t);
	return found;
}

#define TRACK(code) track(code, sizeof code - 1, &call, &kept)

static void tracked_calls(void **state)
{
	(void)state;
	struct dwr_track_call call;
	bool kept;
	/* mov %rdi,%rbx; mov (%rdi),%rax; call *0x20(%rax) */
	assert_true(TRACK("\x48\x89\xfb\x48\x8b\x07\xff\x50\x20"));
	assert_true(kept && call.slot == 4 && !call.second);
	/* mov (%rbx),%rax; mov %rbx,%rdi; mov 0x18(%rax),%rdx; call *%rdx */
	assert_true(TRACK("\x48\x8b\x03\x48\x89\xdf\x48\x8b\x50\x18\xff\xd2"));
	assert_true(kept && call.slot == 3 && !call.second);
	/* mov %rsi,%rbx; mov (%rsi),%rax; call *0x10(%rax): rdi is for the result */
	assert_true(TRACK("\x48\x89\xf3\x48\x8b\x06\xff\x50\x10"));
	assert_true(kept && call.slot == 2 && call.second);
	/* lea 8(%rbx),%rdi; mov 8(%rbx),%rax; call *(%rax): a second base */
	assert_true(TRACK("\x48\x8d\x7b\x08\x48\x8b\x43\x08\xff\x10"));
	assert_true(!kept && call.slot == 0 && call.object.add == 8);
	/* mov %rdi,%rbx; mov (%rdi),%rax; xor %ebx,%ebx; call *0x20(%rax) */
	assert_true(TRACK("\x48\x89\xfb\x48\x8b\x07\x31\xdb\xff\x50\x20"));
	assert_false(kept);
	/* mov (%rdi),%rax; mov %rbx,%rdi; call *0x20(%rax): another object's vtable */
	assert_false(TRACK("\x48\x8b\x07\x48\x89\xdf\xff\x50\x20"));
	/* mov 8(%rbx),%rax; mov (%rax),%rax; shl $4,%edx; add %rbx,%rcx; mov 8(%rbx),%rdi;
	 * call *0x18(%rax): the same word of memory, whatever was computed between */
	assert_true(TRACK("\x48\x8b\x43\x08\x48\x8b\x00\xc1\xe2\x04\x48\x01\xd9\x48\x8b\x7b\x08"
			  "\xff\x50\x18"));
	assert_true(call.slot == 3 && !call.second);
	/* The same with mov %rdx,(%rcx) between. */
	assert_false(TRACK("\x48\x8b\x43\x08\x48\x8b\x00\x48\x89\x11\x48\x8b\x7b\x08\xff\x50\x18"));
	/* mov (%rdi),%eax; call *0x20(%rax): half a pointer */
	assert_false(TRACK("\x8b\x07\xff\x50\x20"));
}

/* The image that a symbolizer has is at home on all machines. */
static void no_machine(void **state)
{
	(void)state;
	struct elfrw_image img, debug;
	struct dwr_callchain *cc = NULL;
	assert_null(elfrw_image_open(&img, "/proc/self/exe"));
	debug = img;
	debug.arch = NULL;
	assert_null(dwr_callchain_open(&img, &debug, NULL, &cc));
	assert_non_null(cc);
	dwr_callchain_close(cc);
	struct elfrw_err *err = dwr_callchain_open(&debug, NULL, NULL, &cc);
	assert_non_null(err);
	elfrw_err_free(err);
	debug.ehdr.e_machine = EM_386;
	err = dwr_callchain_open(&img, &debug, NULL, &cc);
	assert_non_null(err);
	elfrw_err_free(err);
	elfrw_image_close(&img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(destructor_names),
		cmocka_unit_test(tracked_calls),
		cmocka_unit_test(no_machine),
	};
	return cmocka_run_group_tests_name("receiver", tests, NULL, NULL);
}
