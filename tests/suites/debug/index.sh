#!/bin/bash
# index.sh: .debug_names of folded programs.  The unit that icfold adds is in an index that was there: of one unit (whose entries do
# not say which), of several, of 64-bit DWARF, one of several indices; by clang, gdb and lld.  gdb and lldb say with the index what
# they say without it, and warn no more than of the unfolded program; llvm-dwarfdump finds the index consistent; icfold verify finds
# what was changed in it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite index clang readelf llvm-dwarfdump
always_fold
n=0
for f in one two three; do
	n=$((n + 1))
	{
		for ((i = 0; i < n; i++)); do echo; done
		cat <<-END
			namespace shapes { namespace $f { struct box { int a, b; }; } }
			int sum_$f(const shapes::$f::box *p, int n)
			{
				int s = 0;
				for (int i = 0; i < n; i++)
					s += p[i].a * 3 + p[i].b;
				return s;
			}
		END
	} >$f.cpp
done
cat >main.cpp <<-END
	extern "C" int printf(const char *, ...);
	#ifndef ALL
	namespace shapes { namespace one { struct box { int a, b; }; } namespace two { struct box { int a, b; }; }
	namespace three { struct box { int a, b; }; } }
	int sum_one(const shapes::one::box *, int), sum_two(const shapes::two::box *, int), sum_three(const shapes::three::box *, int);
	#endif
	int main(int argc, char **)
	{
		shapes::one::box a = { argc, 2 };
		shapes::two::box b = { argc, 3 };
		shapes::three::box c = { argc, 4 };
		printf("%d\n", sum_one(&a, 1) + 10 * sum_two(&b, 1) + 100 * sum_three(&c, 1));
		return 0;
	}
END
printf '#define ALL\n#include "one.cpp"\n#include "two.cpp"\n#include "three.cpp"\n#include "main.cpp"\n' >all.cpp
indices() { llvm-dwarfdump --debug-names "$1" 2>/dev/null | grep -c '^Name Index'; }
faults() { "${2:-llvm-dwarfdump}" --verify --debug-names "$1" 2>&1 | grep -vE '^Verifying' | sed 's/ @ 0x[0-9a-f]*//' | sort | uniq -c; }
# asked FILE [gdb]: breakpoints by name and by line, types.
asked() {
	if have gdb; then
		gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'break sum_one' -ex 'break sum_two' -ex 'break sum_three' -ex 'break two.cpp:8' \
			-ex 'break three.cpp:9' -ex 'info line sum_three' -ex 'ptype shapes::two::box' -ex 'ptype sum_three' -ex 'info line *sum_two' "$1" 2>&1 |
			grep -v '^warning: Section .debug_names\|^$'
	fi
	if [ "${2:-}" != gdb ] && have lldb; then
		lldb -b -X -o 'breakpoint set -n sum_two' -o 'breakpoint set -n sum_three' -o 'breakpoint set -f two.cpp -l 8' \
			-o 'breakpoint set -f three.cpp -l 9' -o 'type lookup shapes::three::box' "$1" 2>&1 | grep -vE 'Traceback|embedded_interpreter|File "<string>"|^Current exec|target create'
	fi
}
warnings() { gdb -nx -batch -iex 'set debuginfod enabled off' "$1" 2>&1 | grep -c 'warning: Section .debug_names'; }
# folded NAME IN [all|gdb|none]: IN has .debug_names.  The debuggers that say the same with and without the index, folded or not.
folded() {
	local n=index/$1 in=$2
	"$ICFOLD" -q --icf=all --verify "$in" -o "$in.folded" >why 2>&1 || { not_ok "$n" "$(first_line why)"; return; }
	check "$n-indices" "$(indices "$in.folded") indices of $(indices "$in")" [ "$(indices "$in")" -gt 0 -a "$(indices "$in")" = "$(indices "$in.folded")" ]
	local unit
	unit=$(readelf --debug-dump=info "$in.folded" 2>/dev/null | awk '/Compilation Unit @ offset/ { at = $5 } /DW_AT_name.*<folded functions>/ { sub(":", "", at); print at; exit }')
	check "$n-unit" "no index has the unit at $unit" grep -qE "CU\[[0-9]+\]: 0x0*${unit#0x}\$" <(llvm-dwarfdump --debug-names "$in.folded" 2>/dev/null)
	check "$n-dwarfdump" "$(diff <(faults "$in") <(faults "$in.folded") | sed -n 2,3p | tr '\n' ' ')" cmp -s <(faults "$in") <(faults "$in.folded")
	have llvm-dwarfdump-19 && check "$n-dwarfdump-19" "$(faults "$in.folded" llvm-dwarfdump-19 | head -n 1)" cmp -s <(faults "$in" llvm-dwarfdump-19) <(faults "$in.folded" llvm-dwarfdump-19)
	check "$n-run" "another output" [ "$("./$in")" = "$("./$in.folded")" ]
	if have gdb; then
		check "$n-warning" "gdb warns" [ "$(warnings "$in")" = "$(warnings "$in.folded")" ]
	fi
	[ "${3:-}" != none ] || return
	mkdir -p plain
	objcopy -R .debug_names "$in.folded" "plain/$in.folded"
	asked "$in.folded" "${3:-}" >have
	asked "plain/$in.folded" "${3:-}" >want
	check "$n-readers" "$(diff want have | grep '^[<>]' | head -n 3 | tr '\n' ' ')" cmp -s want have
}
# build OUT COMPILER FLAG...: OUT.MAIN..., one file or four.
build() {
	local out=$1 cc=$2 sources=$3 s o objects=
	shift 3
	for s in $sources; do
		o=$out.$s.o
		"$cc" -O2 -g -gdwarf-5 -fno-exceptions -c "$@" $s.cpp -o $o >why 2>&1 || return 1
		objects="$objects $o"
	done
	# shellcheck disable=SC2086
	"$cc" $objects -o "$out" -Wl,--emit-relocs ${LD:-} >why 2>&1
}
for c in clang clang-19; do
	have $c || { skip "index/$c" "no $c"; continue; }
	build one-$c $c all -gpubnames && folded one-$c one-$c
	build several-$c $c "one two three main" -gpubnames && folded several-$c several-$c
	build types-$c $c all -gpubnames -fdebug-types-section
	# clang 14 makes no index of type units.
	if readelf -SW types-$c | grep -q debug_names; then folded types-$c types-$c none; else skip index/types-$c "$c makes no index of type units"; fi
	build wide-$c $c all -gpubnames -gdwarf64 && folded wide-$c wide-$c none
done
# gdb 13 does not read the entries that lld merges, of folded and unfolded programs; and lld 19 fails with --emit-relocs.
if have clang-19 && have ld.lld-19 && clang-19 -fuse-ld=lld-19 several-clang-19.*.o -o merged -Wl,--debug-names >why 2>&1; then
	folded merged merged none
else
	skip index/merged "no lld that merges indices"
fi
if have gcc && have gdb-add-index; then
	for s in all "one two three main"; do
		name=gdb-$(wc -w <<<"$s")
		build $name g++ "$s" -fno-ipa-icf && gdb-add-index -dwarf-5 $name >why 2>&1
		if readelf -SW $name | grep -q debug_names; then
			folded $name $name gdb
		else
			skip index/$name "gdb-add-index makes none: $(first_line why)"
		fi
	done
else
	skip index/gdb "no gcc or gdb-add-index"
fi

# --- verify: each byte of the index that was changed.
"$ICFOLD" verify one-clang one-clang.folded >why 2>&1
check index/verify "$(tail -n 1 why)" grep -q '^equal' why
at=$((0x$(readelf -SW one-clang.folded | sed -n 's/.* \.debug_names *PROGBITS *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p')))
size=$((0x$(readelf -SW one-clang.folded | sed -n 's/.* \.debug_names *PROGBITS *[0-9a-f]* *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p')))
missed=
for ((i = 0; i < size; i += 7)); do
	cp one-clang.folded mutant
	printf "\\x$(printf %02x $(($(od -An -tu1 -j $((at + i)) -N 1 mutant) ^ 1)))" | dd of=mutant bs=1 seek=$((at + i)) conv=notrunc 2>/dev/null
	"$ICFOLD" verify one-clang mutant 2>&1 | grep -q 'index: .debug_names' || missed="$missed $i"
done
check index/verify-mutants "bytes$missed are not looked at" [ -z "$missed" -a "$size" -gt 100 ]
finish
