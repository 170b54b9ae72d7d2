/* The verifier as a function: equal and different files, trouble, the report, and that no output,
 * however broken, does more than differ.  What it finds in good and in mutated programs of every
 * kind is the business of suites/tool/mutants.sh. */
#include "tests/unit/make/err_check.h"
#include "icf/pipeline.h"
#include "icf/verify/verify.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const char source[] =
	"#include <stdio.h>\n"
	"#define COPY(n) static __attribute__((noipa, no_icf)) int f##n(int x, int y) { \\\n"
	"	switch (x) { case 0: return y * 3; case 1: return y / 7; case 2: return y - 5; case 3: return y ^ 77; \\\n"
	"	case 4: return y << 3; case 5: printf(\"%d\\n\", y); return 1; } return x + y; }\n"
	"COPY(1) COPY(2) COPY(3)\n"
	"int (*const volatile table[])(int, int) = { f1, f2 };\n"
	"int main(int argc, char **argv) { (void)argv; return f1(argc, argc) + f2(argc, argc) + f3(argc, argc) + table[argc & 1](1, 2); }\n";

static const char *path(const char *name)
{
	static char buf[4][256];
	static int n;
	char *p = buf[n++ % 4];
	snprintf(p, 256, "%s/%s", dir, name);
	return p;
}

static void spill(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(path(name), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static char *slurp(const char *name, size_t *size)
{
	FILE *f = fopen(path(name), "rb");
	assert_non_null(f);
	struct stat st;
	assert_int_equal(fstat(fileno(f), &st), 0);
	char *p = malloc((size_t)st.st_size + 1);
	assert_non_null(p);
	*size = fread(p, 1, (size_t)st.st_size, f);
	fclose(f);
	return p;
}

static int setup(void **state)
{
	(void)state;
	char cmd[600];
	const char *tmp = getenv("TMPDIR");
	snprintf(dir, sizeof dir, "%.40s/verify.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	FILE *f = fopen(path("t.c"), "w");
	if (!f || fputs(source, f) < 0 || fclose(f) != 0)
		return -1;
	snprintf(cmd, sizeof cmd, "cd %s && gcc -O2 -g -Wl,--emit-relocs t.c -o in", dir);
	if (system(cmd) != 0)
		return -1;
	struct icf_options opt;
	char in[256], out[256];
	snprintf(in, sizeof in, "%s", path("in"));
	snprintf(out, sizeof out, "%s", path("out"));
	char *argv[] = { "icfold", in, "-o", out, NULL };
	struct icf_run run = { 0 };
	struct elfrw_err *err = icf_options_parse(&opt, 4, argv);
	if (!err)
		err = icf_run_fold(&run, &opt);
	if (!err)
		err = elfrw_output_write(&run.out, out);
	if (err)
		fprintf(stderr, "%s\n", elfrw_err_text(err));
	icf_run_deinit(&run);
	icf_options_deinit(&opt);
	return err ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	char cmd[128];
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd);
}

static struct icf_verify_result verify(const char *in, const char *out, unsigned threads)
{
	struct icf_verify_options opt = { .threads = threads };
	struct icf_verify_result r;
	be_ok(icf_verify(path(in), path(out), &opt, &r));
	return r;
}

static void test_equal(void **state)
{
	(void)state;
	struct icf_verify_result r = verify("in", "out", 1);
	for (size_t i = 0; i < r.diff.len; i++)
		print_message("%s: %s\n", icf_verify_check_name(r.diff.data[i].check),
			      r.diff.data[i].text);
	assert_true(r.equal);
	assert_true(r.from_note);
	assert_true(r.n_folded >= 2);
	assert_true(r.n_thunks >= 1);
	static const enum icf_verify_check must[] = {
		ICF_VC_CLAIM,     ICF_VC_CODE,     ICF_VC_BRANCH,    ICF_VC_FOLD,
		ICF_VC_THUNK,     ICF_VC_OBSERVED, ICF_VC_TABLE,     ICF_VC_WORD,
		ICF_VC_DATA,      ICF_VC_DYNRELOC, ICF_VC_FRAME,     ICF_VC_FRAME_ROW,
		ICF_VC_FRAME_HDR, ICF_VC_SYMBOL,   ICF_VC_SECTION,   ICF_VC_SEGMENT,
		ICF_VC_FILE,      ICF_VC_DIE,      ICF_VC_DIE_RANGE, ICF_VC_LINE,
		ICF_VC_CALL,      ICF_VC_RESOLVE,  ICF_VC_SYMBOLIZE
	};
	for (size_t i = 0; i < sizeof must / sizeof *must; i++)
		if (!r.checked[must[i]])
			fail_msg("nothing checked: %s", icf_verify_check_name(must[i]));
	icf_verify_result_deinit(&r);
}

/* The claim without a note comes from the symbols. */
static void test_symbols(void **state)
{
	(void)state;
	char cmd[300];
	snprintf(cmd, sizeof cmd, "cd %s && objcopy -R .debug_icfold --strip-debug out bare", dir);
	assert_int_equal(system(cmd), 0);
	struct icf_verify_result r = verify("in", "bare", 1);
	/* objcopy writes the file anew; what counts is that the code was found. */
	assert_false(r.from_note);
	assert_true(r.n_folded >= 2);
	assert_int_equal(r.wrong[ICF_VC_CODE] + r.wrong[ICF_VC_FOLD] + r.wrong[ICF_VC_BRANCH] +
				 r.wrong[ICF_VC_CLAIM],
			 0);
	icf_verify_result_deinit(&r);
}

static void test_trouble(void **state)
{
	(void)state;
	struct icf_verify_options opt = { 0 };
	struct icf_verify_result r;
	be_fails(icf_verify(path("nothing"), path("out"), &opt, &r), "nothing");
	struct elfrw_err *err = icf_verify(path("in"), dir, &opt, &r);
	assert_non_null(err);
	elfrw_err_free(err);
	/* An input that is no program is trouble, an output that is none differs. */
	spill("text", "hello\n", 6);
	err = icf_verify(path("text"), path("out"), &opt, &r);
	assert_non_null(err);
	elfrw_err_free(err);
	r = verify("in", "text", 1);
	assert_false(r.equal);
	assert_int_equal(r.wrong[ICF_VC_FILE], 1);
	icf_verify_result_deinit(&r);
}

/* The text of the differences is the same for any number of threads. */
static void test_threads(void **state)
{
	(void)state;
	size_t size;
	char *p = slurp("out", &size), *text[2] = { 0 };
	for (size_t i = 5000; i + 4000 < size; i += 401)
		p[i] ^= 1;
	/* The headers stay whole. */
	spill("many", p, size);
	free(p);
	for (int k = 0; k < 2; k++) {
		size_t n;
		FILE *f = open_memstream(&text[k], &n);
		struct icf_verify_result r = verify("in", "many", k ? 5 : 1);
		icf_verify_print(f, &r, true);
		icf_verify_result_deinit(&r);
		fclose(f);
	}
	assert_string_equal(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}

static void test_report(void **state)
{
	(void)state;
	struct icf_verify_result r = { .n_units = 3 };
	for (int i = 0; i < 2; i++) {
		struct icf_verify_diff *d = VEC_PUSH(&r.diff);
		assert_non_null(d);
		d->check = ICF_VC_BRANCH;
		d->text = strdup(i ? "branch: g (0x1 -> 0x2): expected 0x3, found 0x4"
				   : "branch: \"f\\g\"\n (0x1 -> 0x2): expected 0x3, found 0x5");
	}
	r.checked[ICF_VC_BRANCH] = 10;
	r.wrong[ICF_VC_BRANCH] = 7;
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	icf_verify_print(f, &r, false);
	fclose(f);
	assert_non_null(strstr(text, "branch: g (0x1 -> 0x2): expected 0x3, found 0x4"));
	assert_non_null(strstr(text, ": 5 more\n"));
	assert_non_null(strstr(text, "different\n"));
	assert_null(strstr(text, "symbols  "));
	free(text);
	f = open_memstream(&text, &n);
	icf_verify_print_json(f, "a\"b", "c", &r);
	fclose(f);
	assert_non_null(strstr(text, "\"in\": \"a\\\"b\""));
	assert_non_null(strstr(text, "\"equal\": false"));
	assert_non_null(strstr(text, "\\\"f\\\\g\\\"\\n (0x1"));
	free(text);
	icf_verify_result_deinit(&r);
}

/* Random damage causes no crash and no endless loop. An output that is called equal has changed in
 * nothing that counts (in the build-id). */
static void test_damage(void **state)
{
	(void)state;
	size_t size;
	char *p = slurp("out", &size);
	uint64_t seed = 0x9e3779b97f4a7c15;
	unsigned equal = 0;
	for (int round = 0; round < 120; round++) {
		char *q = malloc(size + 8);
		assert_non_null(q);
		memcpy(q, p, size);
		size_t n = size;
		for (int k = 0; k <= round % 4; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* Every other time in the headers. */
			size_t at = (size_t)(seed >> 20) % (round & 1 ? size : 1024);
			uint64_t v = seed >> 33 & 1 ? UINT64_MAX : seed >> 7;
			memcpy(q + (at + 8 < size ? at : size - 8), &v, round % 3 ? 1 : 8);
		}
		if (round % 10 == 9)
			n = (size_t)(seed >> 13) % size;
		spill("damaged", q, n);
		free(q);
		struct icf_verify_options opt = { .threads = 1 };
		struct icf_verify_result r = { 0 };
		struct elfrw_err *err = icf_verify(path("in"), path("damaged"), &opt, &r);
		equal += !err && r.equal;
		elfrw_err_free(err);
		icf_verify_result_deinit(&r);
	}
	/* A byte may have been overwritten with itself. */
	assert_true(equal <= 3);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),   cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_trouble), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_report),  cmocka_unit_test(test_damage),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
