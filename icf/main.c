/* main.c: picks the subcommand; without one, icfold folds. */
#include "icf/cmd.h"

int main(int argc, char **argv)
{
	return icf_cmd_fold(argc, argv);
}
