/* progress.c: the line that shows how far a long run is: on a terminal only, not too early, and
 * removed at the end. */
#include "icf/cli/progress.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

struct terminal {
	int master;
	FILE *f;
};

static void open_terminal(struct terminal *t)
{
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	if (t->master < 0 || grantpt(t->master) != 0 || unlockpt(t->master) != 0)
		skip();
	int fd = open(ptsname(t->master), O_RDWR | O_NOCTTY);
	if (fd < 0)
		skip();
	struct termios raw;
	assert_int_equal(tcgetattr(fd, &raw), 0);
	cfmakeraw(&raw);
	tcsetattr(fd, TCSANOW, &raw);
	t->f = fdopen(fd, "w");
	assert_non_null(t->f);
}

/* What came since the last call; TEXT has room for 4096 bytes. */
static const char *seen(struct terminal *t, char *text)
{
	fflush(t->f);
	ssize_t n = read(t->master, text, 4095);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static void close_terminal(struct terminal *t)
{
	fclose(t->f);
	close(t->master);
}

static void test_terminal(void **state)
{
	(void)state;
	struct terminal t;
	char text[4096];
	open_terminal(&t);
	struct icf_progress p;
	icf_progress_init(&p, t.f, 100, 2);
	icf_progress_step(&p, "open", 100.5);
	icf_progress_step(&p, "symbols", 101.99);
	assert_string_equal(seen(&t, text), "");
	icf_progress_step(&p, "data references", 102);
	assert_string_equal(seen(&t, text),
			    "\ricfold: 3 steps in 2.0 s, the last: data references");
	/* A shorter line covers all of the longer one. */
	icf_progress_step(&p, "units", 103.25);
	assert_string_equal(seen(&t, text),
			    "\ricfold: 4 steps in 3.2 s, the last: units          ");
	icf_progress_end(&p);
	assert_string_equal(seen(&t, text), "\r                                         \r");
	/* After the end nothing more is shown. */
	icf_progress_step(&p, "write", 110);
	icf_progress_end(&p);
	assert_string_equal(seen(&t, text), "");
	close_terminal(&t);
}

static void test_short_run(void **state)
{
	(void)state;
	struct terminal t;
	char text[4096];
	open_terminal(&t);
	struct icf_progress p;
	icf_progress_init(&p, t.f, 100, 2);
	for (int i = 0; i < 20; i++)
		icf_progress_step(&p, "step", 100 + i * 0.09);
	icf_progress_end(&p);
	assert_string_equal(seen(&t, text), "");
	close_terminal(&t);
}

/* No line is longer than a terminal is wide. */
static void test_long_name(void **state)
{
	(void)state;
	struct terminal t;
	char text[4096], name[300];
	open_terminal(&t);
	struct icf_progress p;
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	icf_progress_init(&p, t.f, 0, 0);
	icf_progress_step(&p, name, 1);
	assert_int_equal(strlen(seen(&t, text)), 73);
	icf_progress_step(&p, "x", 2);
	assert_int_equal(strlen(seen(&t, text)), 73);
	icf_progress_end(&p);
	close_terminal(&t);
}

static void test_no_terminal(void **state)
{
	(void)state;
	int fd[2];
	assert_int_equal(pipe(fd), 0);
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	FILE *f = fdopen(fd[1], "w");
	struct icf_progress p;
	icf_progress_init(&p, f, 0, 2);
	icf_progress_step(&p, "open", 5);
	icf_progress_step(&p, "symbols", 500);
	icf_progress_end(&p);
	fclose(f);
	char c;
	assert_int_equal(read(fd[0], &c, 1), 0);
	close(fd[0]);
	/* Never started. */
	struct icf_progress silent = { 0 };
	icf_progress_step(&silent, "open", 5);
	icf_progress_end(&silent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_short_run),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_no_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
