/* main.c: picks the subcommand; without one, icfold folds. */
#include "icf/cmd.h"
#include <stddef.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} command[] = {
		{ "fold", icf_cmd_fold },
		{ "dump", icf_cmd_dump },
		{ "symbolize", icf_cmd_symbolize },
		{ "inlines", icf_cmd_inlines },
		{ "verify", icf_cmd_verify },
	};
	for (size_t i = 0; argc > 1 && i < sizeof command / sizeof *command; i++)
		if (strcmp(argv[1], command[i].name) == 0)
			return command[i].run(argc - 1, argv + 1);
	return icf_cmd_fold(argc, argv);
}
