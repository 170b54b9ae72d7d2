/* version.c: what `icfold --version` prints.
 *
 * The first line is for programs.  The others are for people who ask whether this build reads their
 * file, and for bug reports: they name the libraries as they are loaded, not as they were at build
 * time. */
#include "elfrw/arch/arch.h"
#include "icf/cli/version.h"
#include "icf/cmd/cmdline.h"
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

int icf_print_version(void)
{
	char text[1024], machines[128] = "";
	size_t n = 0;
	const struct elfrw_arch *arch;
	for (size_t i = 0; (arch = elfrw_arch_nth(i)) && n < sizeof machines; i++)
		n += (size_t)snprintf(machines + n, sizeof machines - n, " %s", arch->name);
	unsigned xxh = XXH_versionNumber();
	snprintf(text, sizeof text,
		 "icfold " ICF_VERSION "\n"
		 "Architectures:%s\n"
		 "Debug information: DWARF 2 3 4 5\n"
		 "Compressed sections: zlib zstd\n"
		 "Debug files: build-id debuglink dwz debuginfod\n"
		 "Profiles: perfscript profgen bolt autofdo pprof collapsed gmon callgrind\n"
		 "Libraries: elfutils/%s zlib/%s zstd/%s xxhash/%u.%u.%u\n",
		 machines, dwfl_version(NULL), zlibVersion(), ZSTD_versionString(), xxh / 10000,
		 xxh / 100 % 100, xxh % 100);
	return icf_print_help(text);
}
