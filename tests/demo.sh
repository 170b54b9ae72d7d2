#!/bin/bash
# demo.sh: builds the C++ program in fixtures/demo, folds it, runs both, and prints what folding did.  TARGET=aarch64: for that machine,
# by a cross compiler, run by qemu.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
if [ ! -x "$ICFOLD" ]; then
	echo "demo: no program at $ICFOLD; run make first" >&2
	exit 1
fi
make_work
if [ -n "${TARGET:-}" ]; then
	bad=$(use_target "$TARGET")
	[ -z "$bad" ] || { echo "demo: $bad" >&2; exit 1; }
	use_target "$TARGET"
fi
load_recipe demo
echo "Building fixtures/demo: ${TARGET:+$TARGET-linux-gnu-}g++ -O2 -Wl,--emit-relocs${RUN:+; running by $RUN}"
if ! compile_fixture gcc -O2 pie "$WORK/obj" || ! link_fixture gcc bfd pie "$WORK/obj" "$WORK/demo"; then
	echo "demo: the example does not build" >&2
	exit 1
fi
# shellcheck disable=SC2086
$RUN "$WORK/demo" >"$WORK/demo.transcript" || exit 1
strip -o "$WORK/demo.stripped" "$WORK/demo"

stat_of() { sed -n "s/^ *\"$1\": *\([0-9]*\).*/\1/p" "$WORK/$2.json" | head -n 1; }
text_bytes() { readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".text" { print $5 }'; }
bad=0
printf '\n%-22s %9s %7s %7s %9s %9s %9s  %s\n' "" functions folded thunks .text code stripped "same output"
printf '%-22s %9s %7s %7s %9d %9d %9d\n' "before" "" "" "" "0x$(text_bytes "$WORK/demo")" \
	"$(code_bytes "$WORK/demo")" "$(file_bytes "$WORK/demo.stripped")"
for mode in safe all; do
	if ! "$ICFOLD" -q --icf=$mode --stats=json "$WORK/demo" -o "$WORK/$mode" >"$WORK/$mode.json"; then
		bad=1
		continue
	fi
	strip -o "$WORK/$mode.stripped" "$WORK/$mode"
	# shellcheck disable=SC2086
	$RUN "$WORK/$mode" >"$WORK/$mode.transcript"
	same=yes
	if ! cmp -s "$WORK/demo.transcript" "$WORK/$mode.transcript"; then same=NO bad=1; fi
	printf '%-22s %9s %7s %7s %9d %9d %9d  %s\n' "icfold --icf=$mode" "$(stat_of functions $mode)" "$(stat_of folded $mode)" \
		"$(stat_of thunks $mode)" "0x$(text_bytes "$WORK/$mode")" "$(code_bytes "$WORK/$mode")" \
		"$(file_bytes "$WORK/$mode.stripped")" "$same"
done
echo
echo "What was folded into what (the first groups of --icf=safe):"
"$ICFOLD" -q --print-icf-sections "$WORK/demo" -o "$WORK/listed" | { have c++filt && c++filt || cat; } |
	awk '/^selected/ && ++n > 3 { exit } { print "  " substr($0, 1, 118) }'
echo
echo "Output of the folded program:"
sed 's/^/  /' "$WORK/safe.transcript"
exit $bad
