/* main.c: picks the subcommand; without one, icfold folds. */
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/cmd/process.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} command[] = {
	{ "fold", icf_cmd_fold },
	{ "dump", icf_cmd_dump },
	{ "symbolize", icf_cmd_symbolize },
	{ "inlines", icf_cmd_inlines },
	{ "verify", icf_cmd_verify },
	{ "audit", icf_cmd_audit },
	{ "profile", icf_cmd_profile },
	{ "symbols", icf_cmd_symbols },
	{ "--linker-wrapper", icf_cmd_wrap },
};
enum { N_COMMANDS = sizeof command / sizeof *command };

static const struct command *find(const char *name)
{
	for (int i = 0; i < N_COMMANDS; i++)
		if (strcmp(name, command[i].name) == 0)
			return &command[i];
	return NULL;
}

/* Is WORD no file, but close to the name of a command, *MEANT? */
static bool is_mistaken(const char *word, const char **meant)
{
	const char *names[N_COMMANDS + 1];
	for (int i = 0; i < N_COMMANDS; i++)
		names[i] = command[i].name;
	names[N_COMMANDS] = "help";
	if (*word == '-' || *word == '@' || access(word, F_OK) == 0)
		return false;
	*meant = icf_suggest(word, names, N_COMMANDS + 1);
	return *meant != NULL;
}

static int unknown(const char *word, const char *meant)
{
	if (meant)
		return icf_usage_error(NULL,
				       "'%s' is neither a command nor a file; did you mean '%s'?",
				       word, meant);
	return icf_usage_error(NULL, "'%s' is no command", word);
}

/* icfold help [COMMAND] */
static int help(int argc, char **argv)
{
	const struct command *c = argc > 1 ? find(argv[1]) : &command[0];
	const char *meant = NULL;
	if (argc > 2)
		return icf_usage_error(NULL, "help: expected one command");
	if (!c && is_mistaken(argv[1], &meant))
		return unknown(argv[1], meant);
	if (!c)
		return unknown(argv[1], NULL);
	return c->run(2, (char *[]){ argv[0], "--help", NULL });
}

int main(int argc, char **argv)
{
	const char *meant;
	icf_process_init();
	const struct command *c = argc > 1 ? find(argv[1]) : NULL;
	if (c)
		return c->run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "help") == 0)
		return help(argc - 1, argv + 1);
	if (argc > 1 && is_mistaken(argv[1], &meant))
		return unknown(argv[1], meant);
	return icf_cmd_fold(argc, argv);
}
