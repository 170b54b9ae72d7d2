#!/bin/bash
# aarch64.sh: the debug information of AArch64 programs, call chains, cores, profiles and gdb: a share of the suites that ask
# this of programs for this machine.  TARGET=aarch64 with one of these suites runs all of it.  Programs are built by cross compilers
# and run by qemu, which also makes the cores; gdb-multiarch talks to qemu.  AARCH64=full: 15,000 chains and 120,000 places in the
# programs of corpus.sh besides.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite aarch64-debug python3 gdb-multiarch
bad=$(use_target aarch64)
[ -z "$bad" ] || { skip aarch64-debug "$bad"; finish; }
export TARGET=aarch64
[ "$(uname -m)" != aarch64 ] || { skip aarch64-debug "this machine is one: the suites themselves ask this of its programs"; finish; }

# suite PATH [VARIABLE=VALUE...]
suite() {
	local name
	name=$(basename "$1" .sh)
	env "${@:2}" bash "$TESTS/suites/$1" >"$name.log" 2>&1
	take "$name" "$name.log"
	check "$name/any" "nothing was tested" grep -q '^ok' "$name.log"
}
programs=()
if [ "${AARCH64:-}" = full ]; then
	export PROFILE=full
	for p in ninja protoc sqlite-g; do
		prog=$(bash "$TESTS/corpus.sh" $p 2>log) && programs+=("$prog") && continue
		skip "corpus/$p" "$(first_line log)"
		programs=()
		break
	done
fi
suite program/chains.sh CHAINS="${programs[*]:0:2}" CHAINS_COUNT=7500
suite debug/stack.sh
suite debug/core.sh
suite debug/gdb.sh
suite debug/perf.sh
suite tool/profile.sh
suite debug/dwarf.sh DWARF_ONLY="gcc-2-O0 gcc-4-O0 gcc-5-O2 clang-4-O2 types-5"

# --- places: three symbolizers, and icfold's own answers against llvm-symbolizer's -----------------------------------------
use_target aarch64
always_fold
for form in "g++ -O2" "clang++ -O1"; do
	n=virtual-$(tr -d ' +=' <<<"$form")
	# shellcheck disable=SC2086
	if ! $form -w -g -ffunction-sections "$FIXTURES/virtual/virtual.cc" -Wl,--emit-relocs -Wl,--build-id -lpthread -o "$n" >log 2>&1; then
		skip "places/$n" "does not build: $(first_line log)"
		continue
	fi
	if ICFOLD=$ICFOLD PLACES=1000 "$TESTS/suites/debug/debug.sh" "./$n" >log 2>&1; then
		ok "places/$n: $(grep -c right log) right, $(grep -oE '[0-9]+ places, [0-9]+ of them in folded functions' log | head -n 1)"
	else
		not_ok "places/$n" "$(grep -A 3 WRONG log | head -n 4 | tr '\n' ' ')"
	fi
	"$ICFOLD" -q "$n" -o "$n.folded" && COUNT=1000 bash "$TESTS/judges/agree_symbolize.sh" "$n.folded" >log 2>&1
	take "" log
done
for p in ${programs[@]+"${programs[@]}"}; do
	n=$(basename "$p")
	if PLACES=20000 "$TESTS/suites/debug/debug.sh" "$p" >log 2>&1; then
		ok "places/$n: $(grep -oE 'llvm-symbolizer: .*' log | tr '\n' ' ')"
	else
		not_ok "places/$n" "$(grep -A 3 WRONG log | head -n 4 | tr '\n' ' ')"
	fi
	"$ICFOLD" -q "$p" -o "$n.folded" && bash "$TESTS/judges/agree_symbolize.sh" "$n.folded" >log 2>&1
	take "" log
done
finish
