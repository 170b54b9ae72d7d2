#!/bin/bash
# linkers.sh [NAME...]: what folding saves beside the linkers and BOLT, and what it does to debug information; the NAMEs are
# programs of corpus.sh (default: those of ninja, protoc, llc that are there already).  `make bench` runs it after bench.sh.
#
# Sizes are by suites/tool/size.sh.  Wrong places: the share of 20000 random places about which llvm-symbolizer says something else
# than about the same link unfolded (judges/linker_places.py; for icfold judges/places.py).  BOLT: the saving that `llvm-bolt -icf`
# reports, its time and memory; left out if the machine's memory is less than fifty times the program.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_tool bench
make_work
corpus=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
bolt=
for t in llvm-bolt llvm-bolt-{20,19,18,17,16}; do have $t && bolt=$t && break; done

if [ $# = 0 ]; then
	for n in ninja protoc llc; do [ -s "$corpus/$n.link" ] && set -- "$@" $n; done
fi
if [ $# = 0 ]; then
	echo "bench: no programs in $corpus to compare linkers with (tests/corpus.sh ninja builds one)"
	exit
fi
echo "== bytes of .text"
"$TESTS/suites/tool/size.sh" "$@"

if have python3 && have llvm-symbolizer; then
	echo "== places in functions that llvm-symbolizer takes for others"
	for n; do
		readelf -SW "$corpus/$n" | grep -q ' \.debug_info' || continue
		for ld in lld gold mold; do
			plain=$("$TESTS/corpus.sh" --relink "$n" $ld plain 2>/dev/null) && all=$("$TESTS/corpus.sh" --relink "$n" $ld all 2>/dev/null) || continue
			printf '%-10s %-7s %s\n' "$n" $ld "$("$TESTS/judges/linker_places.py" "$plain" "$all")"
		done
		"$ICFOLD" -q --icf=all --map="$WORK/map" "$corpus/$n" -o "$WORK/out" &&
			printf '%-10s %-7s %s\n' "$n" icfold "$("$TESTS/judges/places.py" "$corpus/$n" "$WORK/out" "$WORK/map" | head -n 1)"
	done
fi

if [ -n "$bolt" ] && have /usr/bin/time; then
	echo "== $bolt -icf"
	for n; do
		if awk -v size="$(file_bytes "$corpus/$n")" '/^MemAvailable/ { exit $2 * 1024 >= 50 * size }' /proc/meminfo; then
			echo "$n: too little memory for BOLT"
			continue
		fi
		debug=
		readelf -SW "$corpus/$n" | grep -q ' \.debug_info' && debug=--update-debug-sections
		if /usr/bin/time -q -f '%e %M' -o "$WORK/time" "$bolt" -icf $debug "$corpus/$n" -o "$WORK/out" >"$WORK/log" 2>&1; then
			read -r secs kib <"$WORK/time"
			saved=$(sed -n 's/.*will save \([0-9.]*\) KB.*/\1/p' "$WORK/log")
			text=$(readelf -SW "$corpus/$n" | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".text" { print $5 }')
			awk -v n="$n" -v s="${saved:-0}" -v text=$((0x$text)) -v t="$secs" -v k="$kib" -v a="$(file_bytes "$corpus/$n")" -v b="$(file_bytes "$WORK/out")" 'BEGIN {
				printf "%-10s would save %.1f KB (%.2f %%), file %d -> %d bytes, %.1f s, %.0f MB\n", n, s, 100 * 1024 * s / text, a, b, t, k / 1024 }'
		else
			echo "$n: $(tail -n 1 "$WORK/log" | cut -c 1-160)"
		fi
	done
fi
