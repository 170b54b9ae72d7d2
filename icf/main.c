/* main.c: picks the subcommand; without one, icfold folds. */
#include "icf/cmd.h"
#include "icf/process.h"
#include <stddef.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
		int trouble; /* exit status when that is not 1 */
	} command[] = {
		{ "fold", icf_cmd_fold },
		{ "dump", icf_cmd_dump },
		{ "symbolize", icf_cmd_symbolize },
		{ "inlines", icf_cmd_inlines },
		{ "verify", icf_cmd_verify, 2 },
		{ "audit", icf_cmd_audit, 2 },
		{ "--linker-wrapper", icf_cmd_wrap },
	};
	for (size_t i = 0; argc > 1 && i < sizeof command / sizeof *command; i++)
		if (strcmp(argv[1], command[i].name) == 0) {
			icf_process_init(command[i].trouble ? command[i].trouble : 1);
			return command[i].run(argc - 1, argv + 1);
		}
	icf_process_init(1);
	return icf_cmd_fold(argc, argv);
}
