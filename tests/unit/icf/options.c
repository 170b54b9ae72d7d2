/* options.c: every form of every option, response files, name files, and the texts of all
 * refusals. */
#include "tests/unit/make/elf.h"
#include "dwarf/rewrite/rewrite.h"
#include "icf/cli/options.h"
#include <sys/stat.h>

#define MAX_ARGS 16

/* Parses the NULL-terminated arguments; the options are the caller's to free, even after an
 * error. */
static struct elfrw_err *parse(struct icf_options *opt, ...)
{
	char *argv[MAX_ARGS] = { (char *)"icfold" };
	int argc = 1;
	va_list ap;
	va_start(ap, opt);
	for (char *s; (s = va_arg(ap, char *));)
		argv[argc++] = s;
	va_end(ap);
	return icf_options_parse(opt, argc, argv);
}

#define PARSE(...) be_ok(parse(&opt, __VA_ARGS__, "in", "-o", "out", NULL))
#define REFUSE(text, ...)                                        \
	do {                                                     \
		struct icf_options opt_;                         \
		be_fails(parse(&opt_, __VA_ARGS__, NULL), text); \
		icf_options_deinit(&opt_);                       \
	} while (0)

static void test_defaults(void **state)
{
	(void)state;
	struct icf_options opt;
	be_ok(parse(&opt, "in", "-o", "out", NULL));
	assert_string_equal(opt.input, "in");
	assert_string_equal(opt.output, "out");
	assert_int_equal(opt.mode, ICF_MODE_SAFE);
	assert_int_equal(opt.stats, ICF_STATS_NONE);
	assert_int_equal(opt.debug_folded, DWR_FOLDED_OVERLAY);
	assert_true(opt.threads >= 1 && opt.threads <= 64);
	assert_false(opt.no_thunks || opt.print_sections || opt.strip_debug || opt.emit_relocs ||
		     opt.keep_build_id || opt.quiet || opt.time_passes || opt.help || opt.version);
	assert_null(opt.map_file);
	assert_null(opt.print_sections_file);
	assert_int_equal(opt.verbose, 0);
	assert_int_equal(opt.n_keep_unique, 0);
	icf_options_deinit(&opt);
	icf_options_deinit(&opt);
}

static void test_output(void **state)
{
	(void)state;
	static const char *const form[][3] = { { "-o", "out" },    { "-oout" },
					       { "-o=out" },       { "--output", "out" },
					       { "--output=out" }, { "-output", "out" },
					       { "-output=out" } };
	for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
		struct icf_options opt;
		be_ok(parse(&opt, form[i][0], form[i][1] ? form[i][1] : "in",
			    form[i][1] ? "in" : NULL, NULL));
		assert_string_equal(opt.output, "out");
		assert_string_equal(opt.input, "in");
		icf_options_deinit(&opt);
	}
	struct icf_options opt;
	be_ok(parse(&opt, "-o", "a", "in", "-o", "b", NULL)); /* the last one counts */
	assert_string_equal(opt.output, "b");
	icf_options_deinit(&opt);
	be_ok(parse(&opt, "-o", "-", "-", NULL)); /* a dash alone is a name */
	assert_string_equal(opt.input, "-");
	icf_options_deinit(&opt);
	REFUSE("option '-o' requires an argument", "in", "-o");
	REFUSE("option '--output' requires an argument", "in", "--output");
	REFUSE("no output file", "in");
	REFUSE("no input file", "-o", "out");
	REFUSE("no input file", "-q");
	REFUSE("more than one input: a and b", "a", "b", "-o", "out");
}

static void test_flags(void **state)
{
	(void)state;
	static const struct {
		const char *arg;
		size_t off;
	} flag[] = {
#define F(arg, field) { arg, offsetof(struct icf_options, field) }
		F("--no-thunks", no_thunks),
		F("-no-thunks", no_thunks),
		F("--emit-vtables", emit_vtables),
		F("--strip-debug", strip_debug),
		F("-strip-debug", strip_debug),
		F("--emit-relocs", emit_relocs),
		F("-emit-relocs", emit_relocs),
		F("--keep-build-id", keep_build_id),
		F("--quiet", quiet),
		F("--write-if-changed", write_if_changed),
		F("-write-if-changed", write_if_changed),
		F("-quiet", quiet),
		F("-q", quiet),
		F("--time-passes", time_passes),
		F("--help", help),
		F("-help", help),
		F("-h", help),
		F("--version", version),
		F("-version", version),
		F("-V", version),
		F("--print-icf-sections", print_sections),
		F("-print-icf-sections", print_sections),
#undef F
	};
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++) {
		struct icf_options opt;
		PARSE(flag[i].arg);
		for (size_t k = 0; k < sizeof flag / sizeof *flag; k++)
			assert_int_equal(*(bool *)((char *)&opt + flag[k].off),
					 flag[k].off == flag[i].off);
		icf_options_deinit(&opt);
	}
}

static void test_flags_together(void **state)
{
	(void)state;
	struct icf_options opt;
	PARSE("--strip-all");
	assert_true(opt.strip_all && opt.strip_debug);
	icf_options_deinit(&opt);
	REFUSE("unrecognized option '-s'; is '--strip-all' meant?", "-s", "in", "-o", "out");
	REFUSE("--strip-all and --emit-relocs may not be used together", "--strip-all",
	       "--emit-relocs", "in", "-o", "out");
	PARSE("-v", "--verbose", "-verbose");
	assert_int_equal(opt.verbose, 3);
	icf_options_deinit(&opt);
	/* Help and version need no files. */
	be_ok(parse(&opt, "--help", NULL));
	icf_options_deinit(&opt);
	be_ok(parse(&opt, "-V", NULL));
	icf_options_deinit(&opt);
	REFUSE("unrecognized option '--quiet=yes'", "--quiet=yes");
	REFUSE("unrecognized option '--quie'", "--quie");
	REFUSE("unrecognized option '--q'", "--q");
	REFUSE("unrecognized option '--v'", "--v");
	REFUSE("unrecognized option '-x'", "-x");
	REFUSE("unrecognized option '--output-foo'", "--output-foo");
	REFUSE("unrecognized option '--icfx=all'", "--icfx=all");
}

static void test_modes(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		enum icf_mode mode;
	} icf[] = {
		{ "--icf=safe", "-q", ICF_MODE_SAFE }, { "--icf=all", "-q", ICF_MODE_ALL },
		{ "--icf=none", "-q", ICF_MODE_NONE }, { "--icf", "all", ICF_MODE_ALL },
		{ "-icf=all", "-q", ICF_MODE_ALL },    { "-icf", "none", ICF_MODE_NONE },
	};
	struct icf_options opt;
	for (size_t i = 0; i < sizeof icf / sizeof *icf; i++) {
		PARSE(icf[i].a, icf[i].b);
		assert_int_equal(opt.mode, icf[i].mode);
		icf_options_deinit(&opt);
	}
	REFUSE("--icf=most: must be safe, all or none", "--icf=most");
	REFUSE("--icf=: must be safe", "--icf=");
	REFUSE("option '--icf' requires an argument", "--icf");
}

static void test_outputs(void **state)
{
	(void)state;
	struct icf_options opt;
	PARSE("--stats");
	assert_int_equal(opt.stats, ICF_STATS_TEXT);
	icf_options_deinit(&opt);
	PARSE("--stats=text");
	assert_int_equal(opt.stats, ICF_STATS_TEXT);
	icf_options_deinit(&opt);
	PARSE("--stats=json");
	assert_int_equal(opt.stats, ICF_STATS_JSON);
	icf_options_deinit(&opt);
	REFUSE("--stats=xml: must be", "--stats=xml");

	static const char *const map[][2] = { { "--map=m", "-q" },
					      { "--map", "m" },
					      { "-map=m", "-q" },
					      { "--Map=m", "-q" },
					      { "-Map", "m" } };
	for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
		PARSE(map[i][0], map[i][1]);
		assert_string_equal(opt.map_file, "m");
		icf_options_deinit(&opt);
	}
	REFUSE("option '--map' requires an argument", "in", "--map");

	PARSE("--print-icf-sections=p");
	assert_true(opt.print_sections);
	assert_string_equal(opt.print_sections_file, "p");
	icf_options_deinit(&opt);
}

static void test_threads(void **state)
{
	(void)state;
	struct icf_options opt;
	static const struct {
		const char *arg;
		unsigned n;
	} threads[] = {
		{ "--threads=1", 1 },   { "--threads=64", 64 },   { "-threads=7", 7 },
		{ "--threads=65", 64 }, { "--threads=1024", 64 },
	};
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
		PARSE(threads[i].arg);
		assert_int_equal(opt.threads, threads[i].n);
		icf_options_deinit(&opt);
	}
	static const char *const bad[] = {
		"0", "-1", "", "x", "3x", "1025", "99999999999999999999999", "0x4", " -4"
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		REFUSE("must be a number from 1 to 1024", "--threads", bad[i]);
	REFUSE("option '--threads' requires an argument", "--threads");
}

static void test_folded(void **state)
{
	(void)state;
	struct icf_options opt;
	static const struct {
		const char *arg;
		int policy;
	} folded[] = { { "--debug-folded=overlay", DWR_FOLDED_OVERLAY },
		       { "--debug-folded=alias", DWR_FOLDED_ALIAS },
		       { "-debug-folded=drop", DWR_FOLDED_DROP } };
	for (size_t i = 0; i < sizeof folded / sizeof *folded; i++) {
		PARSE(folded[i].arg);
		assert_int_equal(opt.debug_folded, folded[i].policy);
		icf_options_deinit(&opt);
	}
	REFUSE("--debug-folded=x: must be overlay, alias or drop", "--debug-folded=x");
	REFUSE("option '--debug-folded' requires an argument", "--debug-folded");
}

static void test_dashes(void **state)
{
	(void)state;
	struct icf_options opt;
	be_ok(parse(&opt, "-o", "out", "--", "-q", NULL));
	assert_string_equal(opt.input, "-q");
	assert_false(opt.quiet);
	icf_options_deinit(&opt);
	REFUSE("no input file", "-o", "out", "--");
	/* A value may look like an option. */
	be_ok(parse(&opt, "-o", "--help", "in", NULL));
	assert_string_equal(opt.output, "--help");
	assert_false(opt.help);
	icf_options_deinit(&opt);
}

static void test_gc_functions(void **state)
{
	(void)state;
	struct icf_options opt;
	PARSE("--icf=none");
	assert_false(opt.gc_functions);
	icf_options_deinit(&opt);
	PARSE("--gc-functions=functions");
	assert_int_equal(opt.gc_functions, ICF_GC_FUNCTIONS);
	icf_options_deinit(&opt);
	PARSE("--gc-functions", "--gc-functions=objects");
	assert_int_equal(opt.gc_functions, ICF_GC_OBJECTS);
	icf_options_deinit(&opt);
	REFUSE("must be", "--gc-functions=all");
	PARSE("--gc-functions", "--keep=a*", "--keep", "b", "-keep=c", "--print-gc-functions=list");
	assert_true(opt.gc_functions);
	assert_int_equal(opt.n_keep, 3);
	assert_int_equal(opt.n_keep_unique, 0);
	assert_string_equal(opt.keep[0], "a*");
	assert_string_equal(opt.keep[2], "c");
	assert_true(opt.print_gc);
	assert_string_equal(opt.print_gc_file, "list");
	icf_options_deinit(&opt);
	PARSE("--gc-functions", "--why-live=a*", "--why-live", "b");
	assert_int_equal(opt.n_why_live, 2);
	assert_string_equal(opt.why_live[1], "b");
	icf_options_deinit(&opt);
	REFUSE("option '--keep' requires an argument", "--keep");
	REFUSE("--why-live needs --gc-functions", "--why-live=a", "in", "-o", "out");
}

static void test_keep_unique(void **state)
{
	(void)state;
	struct icf_options opt;
	PARSE("--keep-unique=a", "--keep-unique", "b", "-keep-unique=c");
	assert_int_equal(opt.n_keep_unique, 3);
	assert_string_equal(opt.keep_unique[0], "a");
	assert_string_equal(opt.keep_unique[1], "b");
	assert_string_equal(opt.keep_unique[2], "c");
	icf_options_deinit(&opt);
	REFUSE("option '--keep-unique' requires an argument", "--keep-unique");

	char path[BE_PATH_SIZE];
	static const char names[] =
		"# comment\nfoo\n\n  bar baz \t\r\n\t# another\n_ZN1aE\r\n   \nlast";
	be_save(names, sizeof names - 1, path);
	PARSE("--keep-unique=a", "--keep-unique-file", path);
	static const char *const want[] = { "a", "foo", "bar baz", "_ZN1aE", "last" };
	assert_int_equal(opt.n_keep_unique, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(opt.keep_unique[i], want[i]);
	icf_options_deinit(&opt);
	char arg[BE_PATH_SIZE + 32];
	snprintf(arg, sizeof arg, "-keep-unique-file=%s", path);
	PARSE(arg);
	assert_int_equal(opt.n_keep_unique, 4);
	icf_options_deinit(&opt);
	unlink(path);
	be_save("", 0, path);
	PARSE("--keep-unique-file", path);
	assert_int_equal(opt.n_keep_unique, 0);
	icf_options_deinit(&opt);
	unlink(path);
	REFUSE("option '--keep-unique-file' requires an argument", "--keep-unique-file");
	snprintf(arg, sizeof arg, "%s: cannot open: No such file", path);
	REFUSE(arg, "--keep-unique-file", path);
	REFUSE("/: not a small regular file", "--keep-unique-file=/");
	REFUSE("/dev/null: not a small regular file", "--keep-unique-file=/dev/null");
}

/* Writes TEXT to a new file and "@PATH" to ARG. */
static void response(const char *text, char arg[BE_PATH_SIZE + 1])
{
	arg[0] = '@';
	be_save(text, strlen(text), arg + 1);
}

static void test_response(void **state)
{
	(void)state;
	struct icf_options opt;
	char arg[BE_PATH_SIZE + 1], outer[BE_PATH_SIZE + 1], text[BE_PATH_SIZE + 64];
	response(
		" --keep-unique=plain\n\t--keep-unique \"two words\"\r\n--keep-unique='single \"q\"' --keep-unique=\"a'b\"\f"
		"--keep-unique=back\\ slash\v--keep-unique=\"esc\\\"aped\" --keep-unique='it\\'s' --keep-unique=\"\" --keep-unique=pre\"fix\"ed\n"
		"--keep-unique=end\\",
		arg);
	PARSE(arg);
	static const char *const want[] = { "plain",      "two words", "single \"q\"", "a'b",
					    "back slash", "esc\"aped", "it's",         "",
					    "prefixed",   "end\\" };
	assert_int_equal(opt.n_keep_unique, sizeof want / sizeof *want);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_string_equal(opt.keep_unique[i], want[i]);
	/* A nested response file: its arguments keep their place among the others. */
	snprintf(text, sizeof text, "--keep-unique=before '%s' --keep-unique=after", arg);
	icf_options_deinit(&opt);
	response(text, outer);
	PARSE("--keep-unique=first", outer);
	assert_int_equal(opt.n_keep_unique, 13);
	assert_string_equal(opt.keep_unique[0], "first");
	assert_string_equal(opt.keep_unique[1], "before");
	assert_string_equal(opt.keep_unique[2], "plain");
	assert_string_equal(opt.keep_unique[12], "after");
	icf_options_deinit(&opt);
	unlink(arg + 1);
	unlink(outer + 1);
	/* The value of an option may come from a file; an empty file is nothing at all. */
	response("out in", arg);
	be_ok(parse(&opt, "-o", arg, NULL));
	assert_string_equal(opt.output, "out");
	assert_string_equal(opt.input, "in");
	icf_options_deinit(&opt);
	unlink(arg + 1);
	response(" \n", arg);
	PARSE(arg, arg);
	assert_int_equal(opt.args.n_text, 2);
	icf_options_deinit(&opt);
	unlink(arg + 1);
	/* A quote that is never closed ends with the file. */
	response("--keep-unique 'open end ", arg);
	PARSE(arg);
	assert_string_equal(opt.keep_unique[0], "open end ");
	icf_options_deinit(&opt);
	unlink(arg + 1);
}

static void test_response_errors(void **state)
{
	(void)state;
	struct icf_options opt;
	char arg[BE_PATH_SIZE + 1], text[BE_PATH_SIZE + 64];
	/* @NAME is an ordinary argument if there is no such file. */
	be_ok(parse(&opt, "@/nonexistent/file", "-o", "out", NULL));
	assert_string_equal(opt.input, "@/nonexistent/file");
	icf_options_deinit(&opt);
	be_ok(parse(&opt, "@", "-o", "out", NULL));
	assert_string_equal(opt.input, "@");
	icf_options_deinit(&opt);
	REFUSE("/: not a small regular file", "@/");
	/* A file that names itself. */
	response("", arg);
	FILE *f = fopen(arg + 1, "w");
	fprintf(f, "-q %s", arg);
	fclose(f);
	snprintf(text, sizeof text, "%s: response files are nested too deeply", arg);
	REFUSE(text, arg);
	unlink(arg + 1);
	response("--keep-unique", arg);
	REFUSE("option '--keep-unique' requires an argument", arg);
	unlink(arg + 1);
}

/* More arguments than the first allocation holds. */
static void test_many(void **state)
{
	(void)state;
	struct elfrw_err *err;
	struct icf_options opt;
	char *text = malloc(100000), *p = text, arg[BE_PATH_SIZE + 1];
	for (int i = 0; i < 1000; i++)
		p += sprintf(p, "--keep-unique=name%d -v ", i);
	response(text, arg);
	err = parse(&opt, arg, "in", "-o", "out", NULL);
	unlink(arg + 1);
	be_ok(err);
	assert_int_equal(opt.n_keep_unique, 1000);
	assert_int_equal(opt.verbose, 1000);
	assert_string_equal(opt.keep_unique[999], "name999");
	icf_options_deinit(&opt);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),        cmocka_unit_test(test_output),
		cmocka_unit_test(test_flags),           cmocka_unit_test(test_flags_together),
		cmocka_unit_test(test_modes),           cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_threads),         cmocka_unit_test(test_folded),
		cmocka_unit_test(test_dashes),          cmocka_unit_test(test_keep_unique),
		cmocka_unit_test(test_gc_functions),    cmocka_unit_test(test_response),
		cmocka_unit_test(test_response_errors), cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
