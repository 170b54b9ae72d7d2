/* demangle.c: mangled names: how they are spelled, and that none takes much time or memory. */
#include "tests/unit/make/err_check.h"
#include "dwarf/demangle/demangle.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* A name of N copies of PART between HEAD and TAIL. */
static char *repeated(const char *head, const char *part, unsigned n, const char *tail)
{
	char *ret = malloc(strlen(head) + n * strlen(part) + strlen(tail) + 1), *p = ret;
	assert_non_null(ret);
	p = stpcpy(p, head);
	while (n--)
		p = stpcpy(p, part);
	stpcpy(p, tail);
	return ret;
}

/* Short names that libiberty would be busy with for hours, or make gigabytes of. */
static void hostile_names(void **state)
{
	(void)state;
	char *name[] = {
		strdup("_RNvC1a1bINvC1a1bFGzzzzzzzzz_EuE"),
		strdup("_RINvC1a1bFGzzzzzz_EuE"),
		strdup("_RIC1aDGzzzzzzzzz_EL_E"),
		repeated("_RINvC1a1bTTiiE", "TBb_Bb_E", 60, "EE"),
		repeated("_D", "1aFS", 200, ""),
		repeated("_D1a", "FS1a", 1000, "Z"),
		repeated("_D1a1bF", "HQbQd", 40, "Zv"),
		repeated("_Z1fI", "J", 300, "E"),
		repeated("_Z1f", "P", 1 << 20, "i"),
		repeated("_RNvC1a1b", "S", 1 << 20, "i"),
		repeated("_D1a", "A", 1 << 20, "i"),
		repeated("_ZN", "1a", 1 << 19, "Ev"),
	};
	/* Thirty seconds of processor time, however busy the machine is; the signal ends the test.
	 */
	struct itimerval limit = { .it_value = { .tv_sec = 30 } };
	assert_int_equal(setitimer(ITIMER_PROF, &limit, NULL), 0);
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		for (int spelling = 0; spelling <= DWR_SPELLING_GNU_SHORT; spelling++) {
			char *text;
			assert_true(dwr_demangle(name[i], (enum dwr_spelling)spelling, &text));
			assert_null(text);
		}
		free(name[i]);
	}
	/* Substitutions that double: what is shared is counted, not walked. */
	char dag[2000] = "_Z1f1AIiiE";
	for (unsigned k = 1; strlen(dag) < 900; k += 2)
		snprintf(dag + strlen(dag), sizeof dag - strlen(dag),
			 k == 1 ? "1BIS0_S0_E" : "1BIS%c%c_S%c%c_E", k < 37 ? '0' : '1',
			 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(k - 1) % 36], k < 37 ? '0' : '1',
			 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(k - 1) % 36]);
	char *text;
	assert_true(dwr_demangle(dag, DWR_SPELLING_LLVM, &text));
	assert_null(text);
	limit.it_value.tv_sec = 0;
	assert_int_equal(setitimer(ITIMER_PROF, &limit, NULL), 0);
}

static void spellings(void **state)
{
	(void)state;
	static const struct {
		enum dwr_spelling spelling;
		const char *name, *text;
	} t[] = {
		{ DWR_SPELLING_GNU, "_Z1fSt6vectorIS_IiEE", "f(std::vector<std::vector<int> >)" },
		{ DWR_SPELLING_GNU_SHORT, "_ZNK1A1fEi", "A::f" },
		{ DWR_SPELLING_GNU, "_Z1fi.cold", "f(int) [clone .cold]" },
		{ DWR_SPELLING_LLVM, "_Z2coPZ2coiE12_Z2coi.Frame.actor",
		  "co(co(int)::_Z2coi.Frame*) (.actor)" },
		{ DWR_SPELLING_GNU, "_Z2coPZ2coiE12_Z2coi.Frame.actor",
		  "co(co(int)::_Z2coi.Frame*) [clone .actor]" },
		{ DWR_SPELLING_GNU, "_ZN3foo3bar17h05af221e174051e9E", "foo::bar" },
		{ DWR_SPELLING_GNU, "_RNvC1a1b", "a::b" },
		{ DWR_SPELLING_LLVM, "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
		  "std::mem::align_of::<std::mem::Discriminant>" },
		{ DWR_SPELLING_LLVM, "_D3foo3barFiZv", "foo.bar(int)" },
		{ DWR_SPELLING_LLVM,
		  "_ZN4llvm10checkedAddIiEENSt9enable_ifIXsr3std9is_signedIT_EE5valueENS_8OptionalIS2_EEE4typeES2_S2_",
		  "std::enable_if<std::is_signed<int>::value, llvm::Optional<int>>::type llvm::checkedAdd<int>(int, int)" },
		{ DWR_SPELLING_GNU, "plain", NULL },
		{ DWR_SPELLING_GNU, "_Z1", NULL },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		char *text;
		assert_true(dwr_demangle(t[i].name, t[i].spelling, &text));
		if (t[i].text)
			assert_string_equal(text, t[i].text);
		else
			assert_null(text);
		free(text);
	}
}

/* The linker sends all calls here, those of libiberty as well (see the Makefile). */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static unsigned calls, fail_at; /* 0: none fails */

static bool fails(void)
{
	if (++calls != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

/* Each allocation that fails is reported, or makes no difference. */
static void failing_allocations(void **state)
{
	(void)state;
	static const char *const name[] = {
		"_Z1fSt6vectorIS_IiEE",
		"_Z1fi.cold",
		"_ZN3foo3bar17h05af221e174051e9E",
		"_RNvC1a1b",
		"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
		"_D3foo3barFiZv",
		"_D8demangle17__T4testS6symbolZv",
		"_D8demangle18__T2fnVAiA3i1i2i3Z2fnFZv",
		/* This name has two readings; the first one counts. */
		"_D3mod__T1tS43abcZxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxZv",
		"_ZN4llvm10checkedAddIiEENSt9enable_ifIXsr3std9is_signedIT_EE5valueENS_8OptionalIS2_EEE4typeES2_S2_",
	};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		for (int spelling = 0; spelling <= DWR_SPELLING_GNU_SHORT; spelling++) {
			char *good, *text;
			fail_at = calls = 0;
			assert_true(dwr_demangle(name[i], (enum dwr_spelling)spelling, &good));
			unsigned n = calls, told = 0;
			for (unsigned k = 1; k <= n; k++) {
				fail_at = k;
				calls = 0;
				bool ok = dwr_demangle(name[i], (enum dwr_spelling)spelling, &text);
				fail_at = 0;
				told += !ok;
				if (ok && good) {
					assert_non_null(text);
					assert_string_equal(text, good);
				} else
					assert_null(text);
				free(text);
			}
			if (good)
				assert_true(told > 0);
			free(good);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(hostile_names),
					    cmocka_unit_test(spellings),
					    cmocka_unit_test(failing_allocations) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
