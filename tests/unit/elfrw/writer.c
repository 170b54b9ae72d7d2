/* writer.c: the file that an output is written to: what it replaces, its owner, and what is left
 * if writing fails. */
#include "tests/unit/make/sample.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* How many entries are there in DIR? */
static unsigned entries(const char *dir)
{
	DIR *d = opendir(dir);
	assert_non_null(d);
	unsigned n = 0;
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static void holds(const char *path, const char *text)
{
	char buf[64] = "";
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(buf, 1, sizeof buf - 1, f) > 0);
	fclose(f);
	assert_string_equal(buf, text);
}

static void test_writer(void **state)
{
	(void)state;
	struct sample s;
	sample_open(&s, 0);
	s.img.mode = 0751;
	be_ok(elfrw_output_layout(&s.out));
	char dir[BE_PATH_SIZE], path[BE_PATH_SIZE + 16], other[BE_PATH_SIZE + 16];
	be_template(dir);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/out", dir);
	snprintf(other, sizeof other, "%s/other", dir);
	/* A new file gets the input's permissions that the umask leaves, without the set-user-ID
	 * and set-group-ID bits. */
	s.img.mode |= S_ISUID | S_ISGID;
	mode_t mask = umask(027);
	be_ok(elfrw_output_write(&s.out, path));
	umask(mask);
	struct stat st, st2;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(st.st_size, s.out.file_size);
	assert_int_equal(entries(dir), 1);
	/* An older file is replaced, not overwritten: who has it open, or another name for it,
	 * keeps it. */
	FILE *f = fopen(path, "w");
	fputs("older", f);
	fclose(f);
	assert_int_equal(link(path, other), 0);
	be_ok(elfrw_output_write(&s.out, path));
	holds(other, "older");
	assert_int_equal(stat(path, &st2), 0);
	assert_int_equal(st2.st_size, s.out.file_size);
	assert_int_equal(entries(dir), 2);
	unlink(path);
	unlink(other);
	/* A name without a directory. */
	char *cwd = getcwd(NULL, 0);
	assert_int_equal(chdir(dir), 0);
	be_ok(elfrw_output_write(&s.out, "plain"));
	assert_int_equal(access("plain", X_OK), 0);
	unlink("plain");
	assert_int_equal(chdir(cwd), 0);
	free(cwd);
	assert_int_equal(rmdir(dir), 0);
	sample_close(&s);
}

static void test_writer_failures(void **state)
{
	(void)state;
	struct sample s;
	sample_open(&s, 0);
	be_ok(elfrw_output_layout(&s.out));
	char dir[BE_PATH_SIZE], path[BE_PATH_SIZE + 16];
	be_template(dir);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/out", dir);
	FILE *f = fopen(path, "w");
	fputs("older", f);
	fclose(f);
	/* No room: the older file stays, and nothing else is left behind. */
	struct rlimit old, small;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ 0x1000, old.rlim_max };
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct elfrw_err *err = elfrw_output_write(&s.out, path);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, handler);
	be_fails(err, "File too large");
	holds(path, "older");
	assert_int_equal(entries(dir), 1);
	be_fails(elfrw_output_write(&s.out, dir), "is a directory");
	be_fails(elfrw_output_write(&s.out, "/nonexistent/dir/out"), "cannot create: No such file");
	be_fails(elfrw_output_write(&s.out, "/dev/full"), "cannot write: No space left");
	be_ok(elfrw_output_write(&s.out, "/dev/null"));
	assert_int_equal(stat("/dev/null", &(struct stat){ 0 }), 0);
	struct stat st;
	stat("/dev/null", &st);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(entries(dir), 1);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	sample_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writer),
		cmocka_unit_test(test_writer_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
