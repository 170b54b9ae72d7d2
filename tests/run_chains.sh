#!/bin/bash
# run_chains.sh: every level of random chains of direct calls in folded programs is named right, or reported undecided where two
# different chains really have the same addresses.
# A small program with mutual recursion always; others by CHAINS="FILE..." (linked with --emit-relocs, with debug
# information), CHAINS_COUNT chains each (default 5000).
. "$(dirname "$0")/lib.sh"
need_tool chains
have python3 || { skip chains "no python3"; finish; }
RESOLVER=${RESOLVER:-$BUILD/tests/test_callchain}
[ -x "$RESOLVER" ] || { not_ok chains "no $RESOLVER"; finish; }
make_work

# chains NAME FILE COUNT
chains() {
	if ! "$ICFOLD" -q --map="$WORK/$1.map" "$2" -o "$WORK/$1.folded" >"$WORK/$1.log" 2>&1; then
		not_ok "chains $1" "$(first_line "$WORK/$1.log")"
		return
	fi
	if python3 "$TESTS/chains.py" "$2" "$WORK/$1.folded" "$WORK/$1.map" "$RESOLVER" "$3" >"$WORK/$1.out" 2>&1; then
		ok "chains $1: $(tail -n 1 "$WORK/$1.out")"
	else
		not_ok "chains $1" "$(tail -n 4 "$WORK/$1.out" | tr '\n' ' ')"
	fi
}

CC=${CC:-gcc}
for opt in -O0 -O1 -O2; do
	if "$CC" -g $opt -ffunction-sections -Wl,--emit-relocs "$FIXTURES/calls_gcc/chains.c" -o "$WORK/chains$opt" 2>"$WORK/cc.log"; then
		chains "chains$opt" "$WORK/chains$opt" 2000
	else
		not_ok "chains$opt" "$(first_line "$WORK/cc.log")"
	fi
done
for f in ${CHAINS:-}; do
	chains "$(basename "$f")" "$f" "${CHAINS_COUNT:-5000}"
done
finish
