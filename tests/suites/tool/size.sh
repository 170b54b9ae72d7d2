#!/bin/bash
# size.sh: bytes of .text after folding, beside what each linker makes of the same objects.
#
#   size.sh [NAME...]      default: ninja; the names of corpus.sh
#
# For each linker ($LINKERS, default: bfd gold lld mold): .text without folding, the change by the linker's own --icf=safe
# and --icf=all, and by icfold on the unfolded program of that linker ($ICFOLD, default build/icfold, with $ICFOLD_OPTS).
# .text: the sum of all executable sections whose name begins with .text.  "-": the linker cannot do it.
# Exit code: 1 if icfold's --icf=all saves less than the best linker does, or its default less than the best safe linker.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
icfold=${ICFOLD:-$here/../build/icfold}
[ -x "$icfold" ] || { echo "size.sh: no program $icfold" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/icfold-size.XXXXXX")
trap 'rm -rf "$work"' EXIT

text_of() { # FILE
	[ -n "$1" ] && LC_ALL=C readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] *//' |
		awk '$1 ~ /^\.text/ && $7 ~ /X/ { print $5 }' | { n=0; while read -r h; do n=$((n + 0x$h)); done; echo "$n"; }
}

percent() { # NEW OLD: the change in hundredths of a per cent
	[ -n "$1" ] && [ "$2" -gt 0 ] && echo $((($1 - $2) * 10000 / $2))
}

show() { # hundredths
	if [ -z "$1" ]; then echo -; else awk -v p="$1" 'BEGIN { printf "%.2f%%\n", p / 100 }'; fi
}

bad=0 failed=0
printf '%-14s %-5s %12s %10s %10s %12s %12s\n' program ld .text "ld safe" "ld all" "icfold safe" "icfold all"
[ $# -gt 0 ] || set -- ninja
for n; do
	best_safe=0 best_all=0 worst_safe=-10000 worst_all=-10000
	for ld in ${LINKERS:-bfd gold lld mold}; do
		in=$("$here/corpus.sh" --relink "$n" "$ld" relocs 2>/dev/null) || { printf '%-14s %-5s cannot link\n' "$n" "$ld"; continue; }
		plain=$(text_of "$in")
		ls='' la=''
		if [ "$ld" != bfd ]; then
			f=$("$here/corpus.sh" --relink "$n" "$ld" safe 2>/dev/null) && ls=$(percent "$(text_of "$f")" "$plain")
			f=$("$here/corpus.sh" --relink "$n" "$ld" all 2>/dev/null) && la=$(percent "$(text_of "$f")" "$plain")
		fi
		is='' ia=''
		for m in safe all; do
			# shellcheck disable=SC2086
			if "$icfold" -q ${ICFOLD_OPTS:-} --icf=$m "$in" -o "$work/o"; then
				p=$(percent "$(text_of "$work/o")" "$plain")
			else
				p='' failed=1
			fi
			if [ $m = safe ]; then is=$p; else ia=$p; fi
		done
		printf '%-14s %-5s %12d %10s %10s %12s %12s\n' "$n" "$ld" "$plain" "$(show "$ls")" "$(show "$la")" "$(show "$is")" "$(show "$ia")"
		[ -z "$ls" ] || [ "$ls" -ge "$best_safe" ] || best_safe=$ls
		[ -z "$la" ] || [ "$la" -ge "$best_all" ] || best_all=$la
		[ "${is:-0}" -le "$worst_safe" ] || worst_safe=${is:-0}
		[ "${ia:-0}" -le "$worst_all" ] || worst_all=${ia:-0}
	done
	if [ "$worst_safe" -gt "$best_safe" ] || [ "$worst_all" -gt "$best_all" ]; then
		echo "$n: icfold saves less (safe $(show "$worst_safe"), all $(show "$worst_all")) than the best linker" \
			"(safe $(show "$best_safe"), all $(show "$best_all"))"
		bad=1
	fi
done
[ $failed = 0 ] || { echo "icfold failed"; exit 1; }
exit $bad
