#!/bin/bash
# in_place.sh: the code of units in programs that are folded in place.  A unit keeps its one range, since jumps are where its functions
# were; only the unit with the artificial unit's byte needs a list.  No range overlaps another, in one DIE or in two units, as
# llvm-dwarfdump reads them; readers find the lines that they find in the input; icfold verify finds a jump that is in two ranges.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite in_place gcc llvm-dwarfdump readelf perl
# In one.c two of the last three functions fold, in two.c the first two, the last ones of the program.
{
	printf 'int %s(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x + 3; return s; }\n' a b
	echo 'int e(int x) { return x * 7; }'
	printf 'int %s(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x + 3; return s; }\n' f
} >one.c
{
	printf 'int %s(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x + 3; return s; }\n' c d
	cat <<-'END'
		int a(int), b(int), e(int), f(int);
		int (*volatile all[])(int) = { a, b, c, d, e, f };
		int main(int n, char **v) { (void)v; return all[0](n) + all[1](n) + all[2](n) + all[3](n) + all[4](n) + all[5](n) - 22; }
	END
} >two.c

# lines READER FILE: what READER says of the functions that are whole in every output.
lines() { nm in."$v" | awk '$3 ~ /^(a|e|main)$/ { print "0x" $1 }' | "$1" -f -e "$2"; }

for v in 4 5; do
	if ! gcc -gdwarf-$v -O1 -fno-ipa-icf one.c two.c -Wl,--emit-relocs -o in.$v 2>log; then
		not_ok in_place/build/$v "$(first_line log)"
		continue
	fi
	for policy in overlay alias drop; do
		n=in_place/$v/$policy out=$policy.$v
		if ! "$ICFOLD" -q --allow-growth --in-place --debug-folded=$policy in.$v -o "$out" 2>log; then
			not_ok "$n" "$(first_line log)"
			continue
		fi
		check "$n/folds" "$(nm "$out" | grep -c ' [a-f]$') functions" [ "$("$ICFOLD" dump --groups "$out" | grep -cE '\b[a-f]\b')" -ge 4 ]
		# shellcheck disable=SC2086
		check "$n/runs" "it does not" $RUN ./"$out"
		llvm-dwarfdump --debug-info "$out" >info
		awk '/DW_TAG_compile_unit/ { unit = 1 } /^$/ { unit = 0 } unit && /DW_AT_(name|ranges|high_pc)/' info >units
		check "$n/one range" "$(tr '\n\t' '  ' <units)" awk 'was ~ /one\.c"/ && /high_pc/ { found = 1 } { was = $0 } END { exit !found }' units
		"$ICFOLD" verify in.$v "$out" >log 2>&1
		check "$n/verify" "$(grep -m 1 ': .*expected' log)" grep -qx equal log
		# With alias, functions share ranges, and so do units.
		[ $policy != alias ] || continue
		llvm-dwarfdump --verify "$out" >log
		check "$n/overlaps" "$(grep -m 1 overlapping log)" [ "$(grep -c overlapping log)" = 0 ]
		for t in addr2line eu-addr2line; do
			have $t || continue
			lines $t in.$v >want
			lines $t "$out" >got
			check "$n/$t" "$(diff want got | sed -n 2p)" cmp -s want got
		done
	done
done

# The list of two.c has the code behind the artificial unit's byte first.  It now begins at the last jump in front, which is in the
# second range, too.
at=$(readelf -SW overlay.4 | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".debug_ranges" { print "0x" $4 }')
od -An -v -t x8 -w16 -j "${at:-0}" overlay.4 | awk '$1 == "ffffffffffffffff" { print NR * 16, $2; exit }' >list
read -r in_list base <list
jump=$(nm overlay.4 | awk '$3 == "d" { print $1 }')
cp overlay.4 broken
perl -e 'open F, "+<", $ARGV[0]; seek F, $ARGV[1], 0; print F pack "Q<", $ARGV[2]' broken $((at + in_list)) $((0x$jump - 0x$base))
"$ICFOLD" verify in.4 broken >log 2>&1
check in_place/two_ranges "$(tail -n 1 log)" grep -q 'ranges: .*expected ranges that are apart' log
# A linker that folds leaves several sequences over one function.  Where icfold cuts them they end at one place.
cat >twice.cc <<'END'
volatile int sink;
struct Base { int b = 5; virtual int run(int x) { return x; } virtual ~Base() {} };
template <class T> struct Sub : virtual Base { int z = 3; int run(int x) override { return b + x * z; } ~Sub() override { sink = sink + 1; } };
struct A {}; struct B {}; struct C {}; struct D {};
template struct Sub<A>; template struct Sub<B>; template struct Sub<C>; template struct Sub<D>;
extern "C" void empty(int) { __builtin_unreachable(); }
int main(int n, char **) { Sub<A> a; Sub<B> b; Base *p = n > 1 ? static_cast<Base *>(&a) : &b; return p->run(n) - 8; }
END
for ld in gold lld; do
	g++ -g -O2 -ffunction-sections twice.cc -fuse-ld=$ld -Wl,--icf=all -o twice 2>log || { skip "in_place/twice/$ld" "$(first_line log)"; continue; }
	for mode in --icf=safe --icf=all; do
		"$ICFOLD" -q --allow-growth --in-place $mode twice -o twice.out 2>log
		check "in_place/twice/$ld$mode" "$(first_line log)" ./twice.out
		check "in_place/twice/$ld$mode/verify" "verify objects" "$ICFOLD" verify -q $mode twice twice.out
	done
done
# The views of a list of places of a function that the linker left out: readers complain if nothing is between them and the list.
cat >gone.c <<'END'
__attribute__((noinline, noclone)) int gone(int a, int b) { int s = a; for (int i = 0; i < b; i++) s += i * a; return s + b; }
__attribute__((noinline, noclone)) int one(int a, int b) { int s = a; for (int i = 0; i < b; i++) s ^= i * a; return s + b; }
__attribute__((noinline, noclone)) int two(int a, int b) { int s = a; for (int i = 0; i < b; i++) s ^= i * a; return s + b; }
int main(int n, char **v) { (void)v; return one(n, 2) - two(n, 2); }
END
for v in 4 5; do
	have eu-readelf || { skip in_place/gone "no eu-readelf"; continue; }
	if ! gcc -gdwarf-$v -O2 -fno-ipa-icf -ffunction-sections gone.c -Wl,--gc-sections -o gone 2>log || ! "$ICFOLD" -q --allow-growth --icf=all gone -o gone.out 2>log; then
		not_ok "in_place/gone/$v" "$(first_line log)"
		continue
	fi
	for f in gone gone.out; do eu-readelf --debug-dump $f 2>$f.says >/dev/null; done
	check "in_place/gone/$v" "$(first_line gone.out.says)" [ "$(wc -l <gone.out.says)" -le "$(wc -l <gone.says)" ]
done
finish
