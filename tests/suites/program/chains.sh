#!/bin/bash
# chains.sh: every level of random chains of direct calls in folded programs is named right, or is reported as undecided if two
# different chains have the same addresses.  chains.py knows the chains from the unfolded program.  A virtual call is named right if
# the vtable's address is given; otherwise the right function is among the candidates.  Call tables in GCC's dialect are read.
#
# Small programs always; CHAINS="FILE..." adds others (linked with --emit-relocs, with debug information).  CHAINS_COUNT: the number
# of chains for each (5000).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool chains
have python3 || { skip chains "no python3"; finish; }
RESOLVER=${RESOLVER:-$BUILD/tests/unit/dwarf/callchain}
DUMPER=${DUMPER:-$BUILD/tests/unit/dwarf/calls}
for p in "$RESOLVER" "$DUMPER"; do
	[ -x "$p" ] || { not_ok chains "no $p"; finish; }
done
make_work
for_target chains

fold() { # NAME FILE
	"$ICFOLD" -q --map="$WORK/$1.map" "$2" -o "$WORK/$1.folded" >"$WORK/$1.log" 2>&1 && return
	not_ok "chains $1" "$(first_line "$WORK/$1.log")"
	return 1
}
# judge NAME SCRIPT ARG...
judge() {
	local name=$1 script=$2
	shift 2
	if python3 "$TESTS/judges/$script" "$@" >"$WORK/out" 2>&1; then
		ok "$name: $(tail -n 1 "$WORK/out")"
	else
		not_ok "$name" "$(tail -n 4 "$WORK/out" | tr '\n' ' ')"
	fi
}
chains() { # NAME FILE COUNT
	judge "chains $1" chains.py "$2" "$WORK/$1.folded" "$WORK/$1.map" "$RESOLVER" "$3"
}
vcalls() { # NAME FILE COUNT
	judge "vcalls $1" vcalls.py "$2" "$WORK/$1.folded" "$WORK/$1.map" "$RESOLVER" "$DUMPER" "$3"
}
build() { # OUT SOURCE FLAG...
	local out=$1 source=$2 cc=${CC:-gcc}
	shift 2
	case $source in *.cc) cc=${CXX:-g++} ;; esac
	"$cc" "$FIXTURES/calls_gcc/$source" "$@" -Wl,--emit-relocs -o "$WORK/$out" >"$WORK/cc.log" 2>&1 && return
	not_ok "$out" "$(first_line "$WORK/cc.log")"
	return 1
}

for opt in -O0 -O1 -O2; do
	build "chains$opt" chains.c -g $opt -ffunction-sections && fold "chains$opt" "$WORK/chains$opt" && chains "chains$opt" "$WORK/chains$opt" 1500
	for pie in -pie -no-pie; do
		n=shapes$opt$pie
		build "$n" shapes.cc -g $opt -ffunction-sections $pie && fold "$n" "$WORK/$n" && vcalls "$n" "$WORK/$n" 1000
	done
done

# Functions without a DIE: compilers write none if only lines are asked for, or nothing.
if have clang; then
	for dwarf in 2 3 4 5; do
		n=lines-dwarf$dwarf
		CC=clang build "$n" chains.c -gline-tables-only -gdwarf-$dwarf -O1 -ffunction-sections && fold "$n" "$WORK/$n" && chains "$n" "$WORK/$n" 1500
	done
else
	skip lines "no clang"
fi
echo 'int described(int x) { return x; }' >"$WORK/described.c"
build some chains.c -g0 -O1 -ffunction-sections -fno-ipa-icf -g "$WORK/described.c" && fold some "$WORK/some" && chains some "$WORK/some" 1500

# Only the input's call tables say what main calls indirectly: leaf_b by a pointer, and slot 1 of B's vtable.
if build gcc_tables calls.S && fold gcc_tables "$WORK/gcc_tables"; then
	f=$WORK/gcc_tables.folded
	at() { symbol_value "$f" "$1"; }
	was() { symbol_value "$WORK/gcc_tables" "$1"; }
	check "GCC's call tables: as many entries" "$("$DUMPER" --dump "$f" 2>&1 | tr '\n' ' ')" test "$("$DUMPER" --dump "$f" | cut -d ' ' -f 1 | tr '\n' ' ')" = "dcall dcall vcall "
	printf '%s\n' "$(at leaf_b)" "$(at ret_direct)" '' "$(at leaf_b)" "$(at ret_indirect)" '' "$(at _ZN1B1fEv)" "$(at ret_virtual)" '' >"$WORK/stacks"
	printf '%s %x\n%s\n\n' "$(at _ZN1B1fEv)" $((0x$(at _ZTV1B) + 16)) "$(at ret_virtual)" >>"$WORK/stacks"
	printf '%s\n-\n\n' "dcall $(was leaf_a)" "dcall $(was leaf_b)" "? $(was _ZN1A1fEv) $(was _ZN1B1fEv)" "vcall $(was _ZN1B1fEv)" >"$WORK/want"
	"$RESOLVER" --resolve "$f" <"$WORK/stacks" >"$WORK/got" 2>&1
	check "GCC's call tables: names" "$(diff "$WORK/want" "$WORK/got" | tr '\n' ' ' | cut -c 1-160)" cmp -s "$WORK/want" "$WORK/got"
	check "GCC's call tables: not folded, no tables" "tables" test -z "$("$ICFOLD" -q --icf=none "$WORK/gcc_tables" -o "$WORK/none" && readelf -SW "$WORK/none" | grep -E 'debug_[dv]call')"
fi

for f in ${CHAINS:-}; do
	n=$(basename "$f")
	fold "$n" "$f" || continue
	chains "$n" "$f" "${CHAINS_COUNT:-5000}"
	vcalls "$n" "$f" "${CHAINS_COUNT:-5000}"
done
finish
