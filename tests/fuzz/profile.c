/* profile.c: a profile or a log, and the program that it is of.
 *
 * Input: options (1 byte), size of the program (3 bytes, little-endian), the program, the text.  In
 * the text, byte 1 stands for the program's name, which is another one in each process.  A gmon.out
 * is taken as it is. */
#include "tests/fuzz/fuzz.h"
#include "elfrw/base/vec.h"
#include "icf/cmd/cmd.h"
#include "icf/profile/profile.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef VEC(uint8_t) bytes;

static const char *named(const uint8_t *text, size_t size, const char *program)
{
	bytes b = { 0 };
	for (size_t i = 0; i < size; i++) {
		bool name =
			text[i] == 1 && b.len < 1 << 18 && !(size > 4 && !memcmp(text, "gmon", 4));
		if (!VEC_APPEND(&b, name ? (const uint8_t *)program : text + i,
				name ? strlen(program) : 1))
			abort();
	}
	const char *path = fuzz_file(1, b.data ? b.data : text, b.len);
	VEC_FREE(&b);
	return path;
}

static void translate(const char *program, const char *text, unsigned how)
{
	static const struct dwr_sym_options opt = { .own_only = true };
	struct icf_profile_in in = { .file = program,
				     .options = &opt,
				     .to = (enum icf_profile_to)(how % 6),
				     .undecided = (enum icf_profile_undecided)(how / 8 % 3),
				     .forward = how & 0x40,
				     .event = how & 0x80 ? "cycles:u" : NULL,
				     .out = fopen("/dev/null", "w") };
	struct icf_profile *p = NULL;
	struct icf_profile_counts counts = { 0 };
	int fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !in.out)
		abort();
	if (icf_profile_sniff(fd, &in.to))
		in.forward = false;
	if (fuzz_ok(icf_profile_open(&in, &p)) && fuzz_ok(icf_profile_read(p, fd, "text")) &&
	    fuzz_ok(icf_profile_finish(p, &counts))) {
		FUZZ_HOLDS(counts.undecided <= counts.shared && counts.shared <= counts.places);
		FUZZ_HOLDS(!in.forward || !counts.undecided);
	}
	icf_profile_close(p);
	fclose(in.out);
	close(fd);
}

static void symbolize(const char *program, const char *text, const char *mode)
{
	char *argv[] = { (char *)"symbolize", (char *)mode, (char *)"-e", (char *)program,
			 (char *)"-q",        (char *)text, NULL };
	int out = dup(1), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fflush(stdout);
	if (out < 0 || null < 0 || dup2(null, 1) < 0)
		abort();
	(void)icf_cmd_symbolize(6, argv);
	fflush(stdout);
	if (dup2(out, 1) < 0)
		abort();
	close(out);
	close(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	size_t n = data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16;
	if (n > size - 4)
		n = size - 4;
	const char *program = fuzz_file(0, data + 4, n);
	const char *text = named(data + 4 + n, size - 4 - n, program);
	switch (data[0] % 8) {
	case 6: symbolize(program, text, "--perf"); break;
	case 7: symbolize(program, text, "--log"); break;
	default: translate(program, text, data[0]);
	}
	return 0;
}
