#!/bin/bash
# long.sh: everything that takes too long for every change: the whole of each suite that `make check` runs a share of, the suites
# under the sanitizers, and the decoder against another one over all programs of this machine.  `make check-long` runs it.
# PARTS="NAME..." runs only these (default: all; --list prints them).  Ends with one line a part; exit status 1 if one failed.
. "$(dirname "$0")/lib.sh"
cd "$ROOT" || exit 1

# name, minutes on two idle processors (measured on shares, 2.9 GHz), what
parts() {
	cat <<'LIST'
faults    4 signals and parallel runs, ten times as many as usual
mutants   3 every mutant of every file
hostile  20 a tenth of all kinds of damage at all places, and of failing allocations (EVERY=1 ALLOC_EVERY=1: all, three hours)
matrix   40 every combination of fixture, compiler, linker, optimisation and kind of output
aarch64  25 programs for AArch64: every pair of the matrix's values, with and without relocations; other flags; places and stacks of ninja, protoc and sqlite
sanitize 20 all suites with AddressSanitizer and UndefinedBehaviorSanitizer
system   75 every program and library of this machine folded and verified; some do real work
products  4 audits of what elfutils is tested with, and of every program and library of this machine as one product
profile   9 programs executed step by step, ninja and protoc among them: their profiles translated, and read by others; a gigabyte of text
pgo       4 ninja built by clang with the translated profile and with its own: the same bytes
symbols   5 symbol files of ninja, protoc and sqlite, place by place against llvm-symbolizer; every fixture's members
clients  15 every reader of programs that is installed, on every kind of folded program
archives  3 whole static libraries without the functions that a program does not use
unused    4 programs of all kinds, for AArch64 too, without the functions that nothing uses
limits    6 2^24 symbols, code of 1 GiB, debug information of 4 GiB (5 GB of disk, 6 GB of memory)
library   2 the library in 16 threads under ThreadSanitizer
host      5 icfold built for AArch64 and run by qemu: unit tests, the command line, and the same bytes as here
release   6 Debian and RPM packages, installed in a new system and purged
bazel     2 the rule for Bazel, in its sandbox and from its cache
decoder   4 every instruction form, and every program and library of this machine, against Zydis
LIST
}
part() { # NAME
	case $1 in
	faults) FAULTS=full bash tests/check.sh suites/tool/faults.sh ;;
	mutants) MUTANTS=full bash tests/check.sh suites/tool/mutants.sh; ONLY=. FILES=99 bash tests/check.sh suites/tool/mutants_a64.sh ;;
	hostile) HOSTILE=full EVERY=${EVERY:-10} ALLOC_EVERY=${ALLOC_EVERY:-10} bash tests/check.sh suites/tool/hostile.sh ;;
	matrix) MATRIX=full bash tests/check.sh suites/program/matrix.sh ;;
	aarch64) AARCH64=full bash tests/check.sh suites/program/aarch64.sh suites/program/aarch64_linkers.sh suites/program/aarch64_traps.sh suites/debug/aarch64.sh ;;
	sanitize) make --no-print-directory BUILD="$BUILD" sanitize ;;
	system) make --no-print-directory BUILD="$BUILD" system-check ;;
	products) PRODUCT=full bash tests/check.sh suites/tool/product_bad.sh ;;
	profile) PROFILE=full bash tests/check.sh suites/tool/profile.sh ;;
	pgo) PGO=full bash tests/check.sh suites/tool/pgo.sh ;;
	symbols) SYMBOLS=full SYMBOLIZE=full bash tests/check.sh suites/tool/symbols.sh suites/debug/symbolize.sh ;;
	clients) CLIENTS=full bash tests/check.sh suites/clients ;;
	archives) ARCHIVES=full bash tests/check.sh suites/program/archives.sh ;;
	unused) UNUSED=full bash tests/check.sh suites/program/unused.sh suites/program/unused_a64.sh ;;
	limits) LIMITS=full bash tests/check.sh suites/tool/limits.sh ;;
	library) LIBRARY=full bash tests/check.sh suites/tool/library.sh ;;
	host) HOST=full bash tests/check.sh suites/tool/host.sh ;;
	release) RELEASE=full bash tests/check.sh suites/tool/release.sh ;;
	bazel) BAZEL=full bash tests/check.sh suites/tool/bazel.sh ;;
	decoder) make --no-print-directory BUILD="$BUILD" check-decoder ;;
	esac
}

if [ "${1:-}" = --list ]; then
	parts
	exit
fi
wanted=${PARTS:-$(parts | awk '{ print $1 }')}
# Suites have parts of their own under the same name.
unset PARTS
for p in $wanted; do
	if ! parts | grep -q "^$p "; then
		echo "check-long: no part is called $p; there are: $(parts | awk '{ print $1 }' | tr '\n' ' ')" >&2
		exit 2
	fi
done
# shellcheck disable=SC2086
parts | awk -v wanted=" $(echo $wanted) " -v n="$(nproc)" '
	index(wanted, " " $1 " ") { sum += $2; t = $1; m = $2; $1 = $2 = ""; printf "%-9s about %3d min %s\n", t, m, $0 }
	END { printf "check-long: about %d minutes on two idle processors; this machine has %d\n", sum, n }'
results=()
bad=0
for p in $wanted; do
	echo "== $p"
	start=$SECONDS
	if part "$p"; then word=ok; else word='not ok' bad=1; fi
	results+=("$(printf '%-7s %-9s %5d s' "$word" "$p" $((SECONDS - start)))")
done
echo "== all"
printf '%s\n' "${results[@]}"
exit $bad
