#!/bin/bash
# aarch64.sh [NAME...]: programs for AArch64: what folding saves beside the linkers, and how fast it is beside the same programs for this
# machine.  NAMEs are programs of corpus.sh (default: those of ninja, ninja-nosec, sqlite-g, protoc, python that TARGET=aarch64 corpus.sh
# has built already).  `make bench` runs it last.
#
# Sizes are by suites/tool/size.sh, for programs that are C++ ($SIZES: others).  Goals: --icf=all saves at least what the linker's does,
# and on bfd's program what the best linker's does; safe is at most 0.3 points behind.
# Speed is processor time, one thread, for each byte of code, the fastest of RUNS (default 3).  Goal: at most 1.2 times this machine's.
# Debug information takes most of the time, so there is a row without it.
# Exit status: 1 if a goal is missed.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_tool bench
make_work
corpus=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
arm=$corpus/aarch64
runs=${RUNS:-3}
status=0

if ! have aarch64-linux-gnu-gcc; then
	echo "bench: no aarch64-linux-gnu-gcc: nothing about AArch64"
	exit
fi
if [ $# = 0 ]; then
	for n in ninja ninja-nosec sqlite-g protoc python; do [ -s "$arm/$n" ] && set -- "$@" $n; done
fi
if [ $# = 0 ]; then
	echo "bench: no programs for AArch64 in $arm (TARGET=aarch64 tests/corpus.sh ninja builds one)"
	exit
fi

echo "== AArch64: bytes of .text"
sizes=()
for n; do case " ${SIZES:-ninja ninja-nosec protoc} " in *" $n "*) sizes+=("$n") ;; esac; done
if [ ${#sizes[@]} != 0 ]; then
	TARGET=aarch64 "$TESTS/suites/tool/size.sh" "${sizes[@]}" | tee "$WORK/sizes" || :
	# The columns: program, linker, .text, the linker's safe and all, icfold's safe and all.
	awk 'function points(s) { sub(/%/, "", s); return s == "-" ? 0 : s + 0 }
		NR > 1 && NF == 7 {
			row[++n] = $0
			if (points($5) < best[$1] + 0) best[$1] = points($5)
		}
		END {
			for (i = 1; i <= n; i++) {
				split(row[i], f)
				all = points(f[7]); safe = points(f[6])
				goal = f[5] == "-" ? best[f[1]] + 0 : points(f[5])
				printf "%-14s %-5s all %7.2f%%   goal %7.2f%%   %-6s   safe - all %5.2f   goal 0.30   %s\n", f[1], f[2], all, goal,
					all <= goal + 0.005 ? "met" : "missed", safe - all, safe - all <= 0.305 ? "met" : "missed"
				bad += all > goal + 0.005 || safe - all > 0.305
			}
			exit bad > 0
		}' "$WORK/sizes" || status=1
fi

# cost FILE OPTION...: processor time of the fastest run, bytes of code, and picoseconds for each.
cost() {
	local f=$1 i t best='' code
	shift
	for ((i = 0; i < runs; i++)); do
		t=$( { TIMEFORMAT='%U %S'; time "$ICFOLD" -q --icf=all --threads=1 --stats=json "$@" "$f" -o "$WORK/out" >"$WORK/json" 2>"$WORK/err"; } 2>&1 |
			awk '{ print $1 + $2 }')
		if [ -z "$best" ] || awk -v a="$t" -v b="$best" 'BEGIN { exit !(a < b) }'; then best=$t; fi
	done
	code=$(sed -n 's/^  "code_before": \([0-9]*\),*$/\1/p' "$WORK/json")
	rm -f "$WORK/out"
	awk -v s="$best" -v c="${code:-0}" 'BEGIN { print s, c, c ? 1e12 * s / c : 0 }'
}
echo "== AArch64: processor time for each byte of code"
printf '%-12s %-13s %10s %8s %10s   %10s %8s %10s   %6s\n' program "" AArch64 seconds ns/byte "$(uname -m)" seconds ns/byte ratio
for n; do
	[ -s "$corpus/$n" ] || { echo "$n: not there for this machine"; continue; }
	for o in "" --strip-debug; do
		# shellcheck disable=SC2086
		a=$(cost "$arm/$n" $o)
		# shellcheck disable=SC2086
		b=$(cost "$corpus/$n" $o)
		awk -v n="$n" -v o="${o#--}" -v a="$a" -v b="$b" 'BEGIN {
			split(a, x); split(b, y)
			ratio = y[3] ? x[3] / y[3] : 0
			printf "%-12s %-13s %10d %8.2f %10.1f   %10d %8.2f %10.1f   %6.2f   goal 1.20   %s\n", n, o, x[2], x[1], x[3] / 1000, y[2], y[1],
				y[3] / 1000, ratio, ratio <= 1.2 ? "met" : "missed"
			exit ratio > 1.2 }' || status=1
	done
done
exit $status
