#!/bin/bash
# unused.sh [NAME...]: what --gc-functions removes, alone and with folding, beside lld's and gold's --gc-sections of the same objects.
# NAMEs are programs of corpus.sh (default: those of ninja, ninja-nosec, protoc, llc that are there already; ninja-nosec is compiled
# without -ffunction-sections).  `make bench` runs it last.
#
# A row is a link of the objects by one linker: .text as linked, then the change by the linker's own --gc-sections, by that with
# --icf=all, and by icfold on that link: --gc-functions with --icf=none, safe, all.
# Goals, which stand below: alone, icfold removes at most half a point less than the better linker; with --icf=all at least as much;
# without -ffunction-sections the same as with it.  A fold with --gc-functions takes at most 1.1 times the processor time of
# one without (the fastest of RUNS, default 5).
# Exit status: 1 if a goal is missed.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_tool bench
make_work
corpus=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
runs=${RUNS:-5}

if [ $# = 0 ]; then
	for n in ninja ninja-nosec protoc llc; do [ -s "$corpus/$n.link" ] && set -- "$@" $n; done
fi
if [ $# = 0 ]; then
	echo "bench: no programs in $corpus with functions that nothing uses (tests/corpus.sh ninja builds one)"
	exit
fi

text_of() { # FILE: bytes of its sections .text*
	LC_ALL=C readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] *//' |
		awk '$1 ~ /^\.text/ && $7 ~ /X/ { print $5 }' | { n=0; while read -r h; do n=$((n + 0x$h)); done; echo "$n"; }
}
change() { # NEW OLD: in hundredths of a per cent, rounded
	awk -v n="$1" -v o="$2" 'BEGIN { printf "%.0f\n", o ? (n - o) * 10000 / o : 0 }'
}
show() { # hundredths
	if [ -z "$1" ]; then echo -; else awk -v p="$1" 'BEGIN { printf "%.2f%%\n", p / 100 }'; fi
}
# relinked NAME LINKER KIND OLD: the change of the text by a link of that kind; nothing if the linker cannot do it.
relinked() {
	local f
	f=$("$TESTS/corpus.sh" --relink "$1" "$2" "$3" 2>/dev/null) && change "$(text_of "$f")" "$4"
}
# folded IN OLD OPTION...: the same by icfold.
folded() {
	local in=$1 old=$2
	shift 2
	"$ICFOLD" -q --gc-functions "$@" "$in" -o "$WORK/out" 2>"$WORK/err" && change "$(text_of "$WORK/out")" "$old"
}
# seconds COMMAND...: processor time of the fastest run.
seconds() {
	local i best='' t
	for ((i = 0; i < runs; i++)); do
		t=$( { TIMEFORMAT='%U %S'; time "$@" >"$WORK/bench.out" 2>"$WORK/bench.err"; } 2>&1 | awk '{ print $1 + $2 }')
		if [ -z "$best" ] || awk -v a="$t" -v b="$best" 'BEGIN { exit !(a < b) }'; then best=$t; fi
	done
	echo "$best"
}

# goal NAME WHAT GOT WANT: one line below the table.
status=0
goal() {
	local word=met
	if [ "$3" -gt "$4" ]; then word=missed status=1; fi
	printf '%-12s %-22s %9s   goal %9s   %s\n' "$1" "$2" "$(show "$3")" "$(show "$4")" "$word"
}

echo "== bytes of .text without what nothing uses"
printf '%-12s %-5s %11s %14s %14s %14s %14s %14s\n' program ld .text --gc-sections "and --icf=all" "icfold none" "icfold safe" "icfold all"
declare -A best_gc best_all worst_gc worst_all
for n; do
	for ld in bfd lld gold; do
		in=$("$TESTS/corpus.sh" --relink "$n" "$ld" relocs 2>/dev/null) || { printf '%-12s %-5s cannot link\n' "$n" "$ld"; continue; }
		old=$(text_of "$in") gc=$(relinked "$n" "$ld" gc "$old") all=
		[ "$ld" = bfd ] || all=$(relinked "$n" "$ld" gc-all "$old")
		none=$(folded "$in" "$old" --icf=none) safe=$(folded "$in" "$old" --icf=safe) both=$(folded "$in" "$old" --icf=all)
		printf '%-12s %-5s %11d %14s %14s %14s %14s %14s\n' "$n" "$ld" "$old" "$(show "$gc")" "$(show "$all")" "$(show "$none")" \
			"$(show "$safe")" "$(show "$both")"
		if [ "$ld" != bfd ]; then
			[ -z "$gc" ] || [ "$gc" -ge "${best_gc[$n]:-1}" ] || best_gc[$n]=$gc
			[ -z "$all" ] || [ "$all" -ge "${best_all[$n]:-1}" ] || best_all[$n]=$all
		fi
		[ "${none:-0}" -le "${worst_gc[$n]:--10000}" ] || worst_gc[$n]=${none:-0}
		[ "${both:-0}" -le "${worst_all[$n]:--10000}" ] || worst_all[$n]=${both:-0}
	done
done
echo "== goals (of the linkers that icfold does worst on)"
for n; do
	# Linkers find next to nothing in objects that are not split.
	like=${n%-nosec}
	goal "$n" "--icf=none" "${worst_gc[$n]:-0}" $((${best_gc[$like]:-${best_gc[$n]:-0}} + 50))
	goal "$n" "--icf=all" "${worst_all[$n]:-0}" "${best_all[$like]:-${best_all[$n]:-0}}"
done
echo "== processor time of a fold with --gc-functions"
for n; do
	a=$(seconds "$ICFOLD" -q --icf=all "$corpus/$n" -o "$WORK/out")
	b=$(seconds "$ICFOLD" -q --icf=all --gc-functions "$corpus/$n" -o "$WORK/out")
	word=$(awk -v a="$a" -v b="$b" 'BEGIN { print (b <= 1.1 * a + .01 ? "met" : "missed") }')
	[ "$word" = met ] || status=1
	awk -v n="$n" -v a="$a" -v b="$b" -v w="$word" 'BEGIN { printf "%-12s %6.2f s, without %6.2f s, x %.2f   goal x 1.10   %s\n", n, b, a, (a > 0 ? b / a : 0), w }'
done
exit $status
