/* link_args.c: how linkers' and compilers' command lines are read and changed. */
#include "tests/unit/make/elf.h"
#include "icf/cli/link_args.h"
#include <fcntl.h>
#include <unistd.h>

#define MAX_ARGS 24

/* Splits LINE at spaces into ARGV; the text is the caller's to free. */
static char *words(const char *line, char **argv, int *argc)
{
	char *text = strdup(line), *save = NULL;
	*argc = 0;
	for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save))
		argv[(*argc)++] = s;
	argv[*argc] = NULL;
	return text;
}

static void test_read(void **state)
{
	(void)state;
	static const struct {
		const char *line, *output;
		bool driver, plain, relocs, strip;
	} t[] = {
		{ "ld a.o", "a.out", 0, 0, 0, 0 },
		{ "/usr/bin/x86_64-linux-gnu-ld.bfd a.o -o x", "x", 0, 0, 0, 0 },
		{ "ld.lld a.o -ox", "x", 0, 0, 0, 0 },
		{ "ld-new a.o -o x -o y", "y", 0, 0, 0, 0 },
		{ "arm-ld a.o --output=x=y", "x=y", 0, 0, 0, 0 },
		{ "mold a.o --output x", "x", 0, 0, 0, 0 },
		{ "ld a.o -o", "a.out", 0, 0, 0, 0 },
		{ "ld -r a.o", "a.out", 0, 1, 0, 0 },
		{ "ld -i a.o", "a.out", 0, 1, 0, 0 },
		{ "ld -Ur a.o", "a.out", 0, 1, 0, 0 },
		{ "ld -relocatable a.o", "a.out", 0, 1, 0, 0 },
		{ "ld --relocatable a.o", "a.out", 0, 1, 0, 0 },
		{ "ld -q a.o -s", "a.out", 0, 0, 1, 1 },
		{ "ld -emit-relocs a.o --strip-all", "a.out", 0, 0, 1, 1 },
		{ "ld -strip-all a.o -S -x", "a.out", 0, 0, 0, 1 },
		{ "ld -soname -r -rpath -s -h -q --defsym -r -z -s a.o", "a.out", 0, 0, 0, 0 },
		{ "ld -Map -o a.o -plugin -r -plugin-opt -s", "a.out", 0, 0, 0, 0 },
		{ "ld -rpath=-r -omagic a.o", "magic", 0, 0, 0, 0 },
		{ "gcc a.o", "a.out", 1, 0, 0, 0 },
		{ "clang++-19 -o x a.o -s", "x", 1, 0, 0, 1 },
		{ "gcc -ox a.o -Wl,-s", "x", 1, 0, 0, 1 },
		{ "gcc a.o -Wl,-O1,--strip-all,-q", "a.out", 1, 0, 1, 1 },
		{ "gcc a.o -Xlinker -s -Xlinker -q", "a.out", 1, 0, 1, 1 },
		{ "gcc a.o -Wl,-soname -Wl,-s", "a.out", 1, 0, 0, 0 },
		{ "gcc a.o -Xlinker -z -Xlinker -s", "a.out", 1, 0, 0, 0 },
		{ "gcc -c a.c -o a.o", "a.o", 1, 1, 0, 0 },
		{ "gcc -MF -c -x -E -include -S a.c", "a.out", 1, 0, 0, 0 },
		{ "gcc -r a.o", "a.out", 1, 1, 0, 0 },
		{ "gcc -v", "a.out", 1, 1, 0, 0 },
		{ "gcc -v -L x -l y -D z", "a.out", 1, 1, 0, 0 },
		{ "gcc -x c -", "a.out", 1, 0, 0, 0 },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct icf_link link = { 0 };
		char *argv[MAX_ARGS];
		int argc;
		char *text = words(t[i].line, argv, &argc);
		be_ok(icf_link_read(&link, argc, argv));
		if (strcmp(link.output, t[i].output) != 0 || link.driver != t[i].driver ||
		    link.plain != t[i].plain || link.emit_relocs != t[i].relocs ||
		    link.strip_all != t[i].strip)
			fail_msg("%s: output %s, driver %d, plain %d, relocations %d, strip %d",
				 t[i].line, link.output, link.driver, link.plain, link.emit_relocs,
				 link.strip_all);
		icf_link_deinit(&link);
		free(text);
	}
}

static void test_edit(void **state)
{
	(void)state;
	static const char *const t[][2] = {
		{ "ld a.o -o x", "ld --emit-relocs a.o -o x" },
		{ "ld -s a.o --strip-all -strip-all -o x", "ld --emit-relocs a.o -o x" },
		{ "lld -flavor gnu a.o", "lld -flavor gnu --emit-relocs a.o" },
		{ "lld -flavor gnu -s a.o", "lld -flavor gnu --emit-relocs a.o" },
		{ "gcc a.o", "gcc -Wl,--emit-relocs a.o" },
		{ "gcc -s a.o -Wl,-s", "gcc -Wl,--emit-relocs a.o" },
		{ "gcc a.o -Wl,-O1,-s,-z,now,--strip-all",
		  "gcc -Wl,--emit-relocs a.o -Wl,-O1,-z,now" },
		{ "gcc a.o -Xlinker -s -Xlinker -O1", "gcc -Wl,--emit-relocs a.o -Xlinker -O1" },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct icf_link link = { 0 };
		char *argv[MAX_ARGS], got[400] = "";
		int argc;
		char *text = words(t[i][0], argv, &argc);
		be_ok(icf_link_read(&link, argc, argv));
		be_ok(icf_link_edit(&link, argc, argv));
		assert_null(link.edit.v[link.edit.n - 1]);
		for (size_t k = 0; k + 1 < link.edit.n; k++) {
			strcat(got, k ? " " : "");
			strcat(got, link.edit.v[k]);
		}
		assert_string_equal(got, t[i][1]);
		icf_link_deinit(&link);
		free(text);
	}
}

/* Arguments from a response file are handed on in a new response file, whatever they contain. */
static void test_response(void **state)
{
	(void)state;
	char path[] = "/tmp/icfold-test-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	static const char text[] = "-o 'a b' \"\" c\\\\d 'it\"s' -s\n--defsym=x=1";
	assert_int_equal(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
	close(fd);
	char arg[64];
	snprintf(arg, sizeof arg, "@%s", path);
	char *argv[] = { (char *)"ld", arg, NULL };
	struct icf_link link = { 0 };
	be_ok(icf_link_read(&link, 2, argv));
	assert_string_equal(link.output, "a b");
	assert_true(link.strip_all);
	be_ok(icf_link_edit(&link, 2, argv));
	assert_int_equal(link.edit.n, 4);
	struct icf_args again = { 0 };
	be_ok(icf_args_expand(&again, link.edit.v[2]));
	static const char *const want[] = { "-o", "a b", "", "c\\d", "it\"s", "--defsym=x=1" };
	assert_int_equal(again.n, 6);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(again.v[i], want[i]);
	icf_args_deinit(&again);
	icf_link_deinit(&link);
	/* If no argument has to be removed, the response file is handed on as it is. */
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "-o x", 4), 4);
	close(fd);
	be_ok(icf_link_read(&link, 2, argv));
	be_ok(icf_link_edit(&link, 2, argv));
	assert_string_equal(link.edit.v[2], arg);
	icf_link_deinit(&link);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_edit),
		cmocka_unit_test(test_response),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
