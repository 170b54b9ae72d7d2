/* text.c: text that the program reads: addresses, stacks, profiles and logs on standard input,
 * response files, lists of names.
 *
 * The first byte chooses among these. For addresses and stacks, symbolize gets a file without
 * sections; for a profile or a log, the files that it names. */
#include "tests/fuzz/fuzz.h"
#include "icf/cmd/cmd.h"
#include "icf/cli/options.h"
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* EXTRA: options.  TEXT, or NULL: a profile or a log, and the files that it names. */
static void symbolize(const char *input, const char *text, const char *const *extra, int n)
{
	static const Elf64_Ehdr empty = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
						       ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
					  .e_type = ET_DYN,
					  .e_machine = EM_X86_64,
					  .e_version = EV_CURRENT,
					  .e_ehsize = sizeof empty };
	char *argv[12] = { (char *)"symbolize", (char *)"-e",
			   (char *)fuzz_file(2, (const uint8_t *)&empty, sizeof empty) };
	int argc = text ? 1 : 3, in = open(input, O_RDONLY | O_CLOEXEC), was = dup(0), out = dup(1),
	    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < n; i++)
		argv[argc++] = (char *)extra[i];
	if (text)
		argv[argc++] = (char *)text;
	fflush(stdout);
	if (in < 0 || was < 0 || out < 0 || null < 0 || dup2(in, 0) < 0 || dup2(null, 1) < 0)
		abort();
	(void)icf_cmd_symbolize(argc, argv);
	fflush(stdout);
	if (dup2(was, 0) < 0 || dup2(out, 1) < 0)
		abort();
	close(in);
	close(was);
	close(out);
	close(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const json[] = { "--output-style=JSON", "-p" },
				 *const gnu[] = { "--output-style=GNU", "-a", "-f" },
				 *const stack[] = { "--stack", "--output-style=JSON" };
	if (!size)
		return 0;
	const char *path = fuzz_file(0, data + 1, size - 1);
	char at[64];
	switch (data[0] % 5) {
	case 0: symbolize(path, NULL, json, 2); break;
	case 1: symbolize(path, NULL, gnu, 3); break;
	case 2:
		if (data[0] & 0x80)
			symbolize(path, data[0] & 0x40 ? "--log" : "--perf", NULL, 0);
		else
			symbolize(path, NULL, stack, 2);
		break;
	default: {
		snprintf(at, sizeof at, data[0] % 5 == 3 ? "@%s" : "--keep-unique-file=%s", path);
		char *argv[] = { (char *)"icfold", at,  (char *)"in", (char *)"-o",
				 (char *)"out",    NULL };
		struct icf_options opt;
		(void)fuzz_ok(icf_options_parse(&opt, 5, argv));
		icf_options_deinit(&opt);
	}
	}
	return 0;
}
