#!/bin/bash
# host.sh: icfold on AArch64: built by a cross compiler, with the libraries of Debian's arm64 packages, and run by qemu.  It builds
# without warnings, its unit tests pass, its command line behaves (tool/cli), and all that it says and writes of programs for
# x86-64 and for AArch64 is the same, byte for byte, as what the icfold of this machine says and writes (same.sh).
# HOST=full fetches the packages (18 MB) into $BUILD/host-aarch64 and keeps them there; HOST_ROOT=DIR: they are unpacked in DIR.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool host
[ "$(uname -m)" != aarch64 ] || { skip host "this machine is one"; finish; }
kept=$BUILD/host-aarch64 # with the objects of the last run
root=${HOST_ROOT:-$kept/tree}
if [ -z "${HOST_ROOT:-}" ] && [ "${HOST:-}" != full ]; then
	skip host "five minutes, and packages to fetch; HOST=full, or make check-long, runs it"
	finish
fi
for c in aarch64-linux-gnu-gcc qemu-aarch64; do
	have $c || { skip host "no $c"; finish; }
done
if [ -z "${HOST_ROOT:-}" ]; then
	. "$TESTS/lib/arm64.sh"
	if ! have apt-get || ! arm64_system "$kept" "libc6-dev libdw-dev libelf-dev libxxhash-dev zlib1g-dev libzstd-dev libiberty-dev libarchive-dev libcmocka-dev"; then
		skip host "the arm64 packages cannot be fetched"
		finish
	fi
fi
make_work
emulator="qemu-aarch64 -L $root"

# --- the build
cd "$ROOT" || exit 1
mapfile -t tests < <(for t in tests/unit/*/*.c; do echo "$kept/build/${t%.c}"; done)
make -s -j"$JOBS" BUILD="$kept/build" CC="aarch64-linux-gnu-gcc --sysroot=$root" all lib "${tests[@]}" >"$WORK/log" 2>&1
rc=$?
check host/builds "status $rc: $(first_line "$WORK/log")" test $rc = 0
check host/no-warnings "$(first_line "$WORK/log")" test ! -s "$WORK/log"
[ $rc = 0 ] || finish
check host/machine "the program is for another machine" grep -q 'AArch64' <(readelf -h "$kept/build/icfold")
check host/library "$(nm "$kept/build/libicfold.a" 2>&1 | head -n 1)" grep -q ' T icfold_' <(nm "$kept/build/libicfold.a")

# --- unit tests
failed='' n=0
for t in "${tests[@]}"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	timeout 600 $emulator "$t" >"$WORK/unit" 2>&1 || failed="$failed ${t#"$kept"/build/tests/} ($(grep -m 1 -E 'FAILED|error' "$WORK/unit"))"
done
check host/unit "$failed" test -z "$failed" -a $n -gt 30

# --- the command line
printf '#!/bin/sh\nexec %s %s "$@"\n' "$emulator" "$kept/build/icfold" >"$WORK/emulated"
chmod +x "$WORK/emulated"
ICFOLD=$WORK/emulated bash "$TESTS/suites/tool/cli.sh" >"$WORK/cli" 2>&1
take cli "$WORK/cli"
check host/cli "nothing was tested" grep -q '^ok' "$WORK/cli"

# --- the same bytes
here=$ICFOLD
host_inputs() { # MACHINE
	local f gz
	for f in recur eh; do
		load_recipe $f
		for gz in none zlib; do
			compile_fixture gcc "-O2 -g" pie "$WORK/objects/$1.$f" && link_fixture gcc bfd pie "$WORK/objects/$1.$f" "$WORK/$f.$1.$gz" \
				-Wl,--compress-debug-sections=$gz || return
		done
	done
}
if [ "$(uname -m)" = x86_64 ]; then
	host_inputs x86_64 2>"$WORK/log" || not_ok host/same/x86_64 "$(first_line "$WORK/log")"
	TARGET='' FIXTURES_TOO=no PLACES=3000 STACKS=20 bash "$TESTS/same.sh" "$here" "$WORK/emulated" "$WORK"/*.x86_64.* >"$WORK/said" 2>&1
	take host/x86_64 "$WORK/said"
	check host/same/x86_64 "$(first_line "$WORK/said")" test "$(grep -c '^ok' "$WORK/said")" -ge 4
fi
(use_target aarch64 && host_inputs aarch64) 2>"$WORK/log" || not_ok host/same/aarch64 "$(first_line "$WORK/log")"
TARGET=aarch64 FIXTURES_TOO=no PLACES=3000 STACKS=20 bash "$TESTS/same.sh" "$here" "$WORK/emulated" "$WORK"/*.aarch64.* >"$WORK/said" 2>&1
take host/aarch64 "$WORK/said"
check host/same/aarch64 "$(first_line "$WORK/said")" test "$(grep -c '^ok' "$WORK/said")" -ge 4
finish
