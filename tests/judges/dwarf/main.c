/* main.c: is the debug information of OUT that of IN, carried through the map of the fold?
 *
 *   judge_dwarf [--policy=overlay|alias|drop] [--max=N] [--no-lines] IN OUT MAP
 *
 * MAP is what icfold --map wrote.  libdw reads both files: every DIE with all its attributes,
 * ranges, location lists and expressions, every row of the line tables, .debug_aranges, .eh_frame
 * and .debug_frame.  Files without debug information are fine: then the unwind tables are compared.
 * Exit code: 0 all right, 1 faults, 2 it could not be judged. */
#include "tests/judges/dwarf/judge.h"
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kind_names[J_KINDS] = { "tree",     "attribute",       "address",
						 "ranges",   "location",        "views",
						 "line row", "folded line row", "thunk line row",
						 "aranges",  "unwind row" };

void judge_wrong(struct judge *j, enum jkind kind, const char *fmt, ...)
{
	va_list ap;

	if (j->wrong[kind]++ >= j->max)
		return;
	printf("WRONG %s: ", kind_names[kind]);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* The next unit of .debug_info and .debug_types; skeletons without their other half are units
 * too. */
static bool next_unit(Dwarf *d, Dwarf_CU **cu, Dwarf_Die *die, uint8_t *type)
{
	Dwarf_Half version;

	return dwarf_get_units(d, *cu, cu, &version, type, die, NULL) == 0;
}

static bool is_artificial(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name && !strcmp(name, "<folded functions>");
}

/* The artificial unit may not claim an address of the program. */
static void check_artificial(struct judge *j, Dwarf_Die *die)
{
	struct jset want = { 0 }, have = { 0 };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	char buf[512];
	const char *why;

	while ((off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0)
		jset_add(&have, j, lo, hi);
	why = jset_differ(&want, &have, j, false, buf, sizeof(buf));
	if (why)
		judge_wrong(j, J_RANGE, "the artificial unit: %s", why);
	jset_free(&have);
}

static void judge_units(struct judge *j, bool lines)
{
	Dwarf_CU *ca = NULL, *cb = NULL;
	Dwarf_Die a, b;
	uint8_t ta, tb;
	bool more_a = next_unit(j->in, &ca, &a, &ta), more_b = next_unit(j->out, &cb, &b, &tb);

	while (more_a || more_b) {
		/* An input that was folded before has artificial units, too. Only those that it
		 * does not have are new. */
		if (more_b && is_artificial(&b) &&
		    !(more_a && is_artificial(&a) && dwarf_dieoffset(&a) == dwarf_dieoffset(&b))) {
			check_artificial(j, &b);
			if (lines)
				judge_folded_lines(j, &b);
			more_b = next_unit(j->out, &cb, &b, &tb);
			continue;
		}
		if (!more_a || !more_b || ta != tb || dwarf_dieoffset(&a) != dwarf_dieoffset(&b)) {
			judge_wrong(j, J_TREE,
				    "units part at %#" PRIx64 " in the input, %#" PRIx64
				    " in the output",
				    more_a ? (uint64_t)dwarf_dieoffset(&a) : 0,
				    more_b ? (uint64_t)dwarf_dieoffset(&b) : 0);
			return;
		}
		judge_unit(j, &a, &b);
		/* Type units share the tables of others. */
		if (lines && ta != DW_UT_type && ta != DW_UT_split_type && !is_artificial(&a)) {
			judge_lines(j, &a, &b);
			judge_thunks(j, &a, &b);
		}
		more_a = next_unit(j->in, &ca, &a, &ta);
		more_b = next_unit(j->out, &cb, &b, &tb);
	}
}

static bool has_info(Elf *e)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t shstrndx = 0;
	const char *name;

	elf_getshdrstrndx(e, &shstrndx);
	while ((scn = elf_nextscn(e, scn)))
		if (gelf_getshdr(scn, &sh) && (name = elf_strptr(e, shstrndx, sh.sh_name)) &&
		    (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info")))
			return sh.sh_size > 0;
	return false;
}

static Elf *open_elf(const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf *e = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);

	if (!e || elf_kind(e) != ELF_K_ELF) {
		fprintf(stderr, "judge_dwarf: %s: %s\n", path,
			fd < 0 ? strerror(errno) : "not an ELF file");
		exit(2);
	}
	return e;
}

/* The sections that are read as bytes, through a handle of their own: libdw decompresses for
 * itself. */
static Elf *load_sections(const char *path, struct jbytes *ret)
{
	static const char *const names[J_SECTIONS] = { "loc", "loclists", "line", "line_str",
						       "str" };
	Elf *e = open_elf(path);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t shstrndx = 0;

	elf_getshdrstrndx(e, &shstrndx);
	while ((scn = elf_nextscn(e, scn))) {
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(e, shstrndx, sh.sh_name) : NULL;
		bool old = name && !strncmp(name, ".zdebug_", 8);
		Elf_Data *d;

		if (!name || sh.sh_type == SHT_NOBITS || (!old && strncmp(name, ".debug_", 7)))
			continue;
		for (int i = 0; i < J_SECTIONS; i++) {
			if (strcmp(name + 7 + old, names[i]))
				continue;
			if ((sh.sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
				continue;
			if (old && elf_compress_gnu(scn, 0, 0) < 0)
				continue;
			d = elf_rawdata(scn, NULL);
			if (!d)
				d = elf_getdata(scn, NULL);
			if (d && d->d_buf)
				ret[i] = (struct jbytes){ d->d_buf, d->d_size };
		}
	}
	return e;
}

/* Reads the options; returns the index of the first argument behind them. */
static int options(struct judge *j, bool *lines, int argc, char **argv)
{
	int arg = 1;

	for (; arg < argc && !strncmp(argv[arg], "--", 2); arg++) {
		if (!strcmp(argv[arg], "--policy=overlay"))
			j->policy = J_OVERLAY;
		else if (!strcmp(argv[arg], "--policy=alias"))
			j->policy = J_ALIAS;
		else if (!strcmp(argv[arg], "--policy=drop"))
			j->policy = J_DROP;
		else if (!strncmp(argv[arg], "--max=", 6))
			j->max = (unsigned)strtoul(argv[arg] + 6, NULL, 10);
		else if (!strcmp(argv[arg], "--no-lines"))
			*lines = false;
		else
			arg = argc;
	}
	return arg;
}

/* Prints what was compared and what is wrong; returns how much that is. */
static uint64_t report(const struct judge *j)
{
	uint64_t total = 0;
	uint32_t folded = 0, guessed = 0;

	for (uint32_t i = 0; i < j->map.n; i++) {
		folded += j->map.unit[i].folded;
		guessed += j->map.unit[i].guessed;
	}
	printf("%" PRIu32 " units, %" PRIu32 " folded, %" PRIu32 " thunks", j->map.n, folded,
	       j->map.n_thunk);
	if (guessed)
		printf(" (%" PRIu32 " whose kept copy is a guess)", guessed);
	printf("; %" PRIu64 " DIEs, %" PRIu64 " attributes, %" PRIu64 " addresses, %" PRIu64
	       " range lists, %" PRIu64 " location entries, %" PRIu64 " view lists, %" PRIu64
	       " line rows, %" PRIu64 " folded line rows, %" PRIu64 " thunk line rows, %" PRIu64
	       " aranges, %" PRIu64 " unwind rows; %" PRIu64 " skipped\n",
	       j->n_dies, j->n_attrs, j->n_addrs, j->n_ranges, j->n_locs, j->n_views, j->n_rows,
	       j->n_folded_rows, j->n_thunk_rows, j->n_aranges, j->n_frames, j->n_skipped);
	for (int k = 0; k < J_KINDS; k++) {
		total += j->wrong[k];
		if (j->wrong[k])
			printf("%s: %" PRIu64 " wrong\n", kind_names[k], j->wrong[k]);
	}
	printf("%s\n", total ? "WRONG" : "right");
	return total;
}

int main(int argc, char **argv)
{
	struct judge j = { .max = 10 };
	bool lines = true;
	int arg = options(&j, &lines, argc, argv);

	if (argc - arg != 3) {
		fprintf(stderr,
			"usage: judge_dwarf [--policy=overlay|alias|drop] [--max=N] [--no-lines] IN OUT MAP\n");
		return 2;
	}
	elf_version(EV_CURRENT);
	j.elf_in = open_elf(argv[arg]);
	j.elf_out = open_elf(argv[arg + 1]);
	if (!jmap_load(&j.map, argv[arg + 2], j.elf_in, j.elf_out))
		exit(2);
	Elf *bytes_in = load_sections(argv[arg], j.sec[0]),
	    *bytes_out = load_sections(argv[arg + 1], j.sec[1]);

	j.in = dwarf_begin_elf(j.elf_in, DWARF_C_READ, NULL);
	j.out = dwarf_begin_elf(j.elf_out, DWARF_C_READ, NULL);
	if (j.in && !j.out) {
		judge_wrong(&j, J_TREE, "the output has no debug information: %s",
			    dwarf_errmsg(-1));
	} else if (j.in) {
		judge_units(&j, lines);
		if (lines) {
			judge_lines_done(&j);
			judge_thunks_done(&j);
		}
		judge_aranges(&j);
	}
	judge_frames(&j);
	if (has_info(j.elf_in) && !j.n_dies) {
		fprintf(stderr,
			"judge_dwarf: libdw cannot read .debug_info of the input (an unknown compression?)\n");
		exit(2);
	}

	uint64_t total = report(&j);

	dwarf_end(j.in);
	dwarf_end(j.out);
	elf_end(j.elf_in);
	elf_end(j.elf_out);
	elf_end(bytes_in);
	elf_end(bytes_out);
	jmap_free(&j.map);
	return total ? 1 : 0;
}
