#!/bin/bash
# debug.sh: the debug information of folded real programs, judged by others' readers.
#
#   debug.sh [NAME...]   programs of corpus.sh, or paths of programs linked with --emit-relocs; default: ninja
#
# Each is folded with --icf=safe and all ($MODES), then: judge_dwarf (libdw: DIEs, ranges, location lists, line rows, unwind
# rows), judges/places.py ($PLACES random places, default 20000, by llvm-symbolizer; a tenth by addr2line and eu-addr2line) and
# lines.py (llvm-dwarfdump's line tables).  ICFOLD (build/icfold), ICFOLD_OPTS, JUDGE (build/tests/judge_dwarf), SEED.
# Exit code: 0 all right, 1 not.  Needs python3, elfutils, binutils, LLVM's tools; what is missing is skipped aloud.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
icfold=${ICFOLD:-$here/../build/icfold}
judge=${JUDGE:-$here/../build/tests/judge_dwarf}
places=${PLACES:-20000}
[ -x "$icfold" ] || { echo "debug.sh: no program $icfold" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/icfold-debug.XXXXXX")
trap 'rm -rf "$work"' EXIT
bad=0

have() { command -v "$1" >/dev/null 2>&1 || { echo "    skipped: no $1"; return 1; }; }

check() { # LABEL COMMAND...
	local label=$1 t rc=0
	shift
	t=$(date +%s%N)
	"$@" >"$work/log" 2>&1 || rc=$?
	t=$((($(date +%s%N) - t) / 10000000))
	printf '    %-13s %s, %d.%02d s\n' "$label" "$([ $rc = 0 ] && echo right || echo "WRONG (exit code $rc)")" $((t / 100)) $((t % 100))
	if [ $rc = 0 ]; then tail -n 2 "$work/log" | sed 's/^/      /'; else head -n 40 "$work/log" | sed 's/^/      /'; bad=$((bad + 1)); fi
}

[ $# -gt 0 ] || set -- ninja
for n; do
	case $n in */*) in=$n;; *) in=$("$here/corpus.sh" "$n");; esac
	for m in ${MODES:-safe all}; do
		echo "$n --icf=$m"
		# shellcheck disable=SC2086
		if ! "$icfold" -q ${ICFOLD_OPTS:-} --icf="$m" --map="$work/map" "$in" -o "$work/out"; then
			echo "    icfold FAILED"; bad=$((bad + 1)); continue
		fi
		if [ -x "$judge" ]; then check judge_dwarf "$judge" "$in" "$work/out" "$work/map"; else echo "    skipped: no $judge"; fi
		if have python3; then
			have llvm-symbolizer && check symbolizer "$here/judges/places.py" -n "$places" --seed "${SEED:-1}" "$in" "$work/out" "$work/map"
			have addr2line && check addr2line "$here/judges/places.py" -n $((places / 10)) --seed "${SEED:-1}" --tool addr2line \
				"$in" "$work/out" "$work/map"
			have eu-addr2line && check eu-addr2line "$here/judges/places.py" -n $((places / 10)) --seed "${SEED:-1}" \
				--tool eu-addr2line "$in" "$work/out" "$work/map"
			have llvm-dwarfdump && check lines "$here/judges/lines.py" "$in" "$work/out" "$work/map"
		fi
	done
done
[ $bad = 0 ] && echo "all right" || { echo "$bad wrong"; exit 1; }
