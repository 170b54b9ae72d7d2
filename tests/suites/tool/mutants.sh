#!/bin/bash
# mutants.sh: does `icfold verify` notice every single thing that is wrong?
#
# Good outputs, which verify must call equal, are broken in one place at a time by mutate (tests/mutate/mutate.c); verify must call
# each of these different, with exit status 1.  One line a kind of mutant.  By default a kind is tried at PLACES (2; full: 3) places of the
# first FILES (2) files that have any; MUTANTS=full tries all files.  ONLY=REGEX limits a run to kinds with such names.
# TARGET=aarch64: of programs for that machine, by cross compilers, with kinds of its own.
. "$(dirname "$0")/../../lib.sh"
. "$(dirname "$0")/../../lib/fool.sh"
MUTATE=${MUTATE:-$BUILD/tests/mutate}

# verify_pair IN OUT [FILE]: verify, of FILE instead of OUT, as OUT was made.
verify_pair() {
	local how=()
	case $2 in */removed.out) how=(--gc-functions) ;; esac
	timeout 400 "$ICFOLD" verify ${how[@]+"${how[@]}"} "$1" "${3:-$2}"
}

# one KIND: all its mutants.  The list of good pairs is in $WORK/good: "IN OUT" lines.
if [ "${1:-}" = --one ]; then
	kind=$2 n=0 files=0 bad='' strange=''
	new=$WORK/mutant.$kind
	while read -r in out; do
		hit=0
		for i in $(seq 0 $((PLACES - 1))); do
			# mutate exits without freeing its memory.
			what=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" "$i" "$PLACES" "$in" "$out" "$new" 2>"$new.err")
			rc=$?
			[ $rc = 3 ] && continue
			if [ $rc != 0 ]; then
				strange="mutate: $(first_line "$new.err")"
				continue
			fi
			hit=1
			n=$((n + 1))
			of=$in
			[ ! -e "$new.in" ] || of=$new.in
			verify_pair "$of" "$out" "$new" >"$new.out" 2>"$new.err"
			rc=$?
			case $rc in
			1) ;;
			0) bad="$bad $(basename "$out") ($what)" ;;
			*) strange="exit status $rc for $(basename "$out") ($what): $(first_line "$new.err")" ;;
			esac
		done
		files=$((files + hit))
		[ "${MUTANTS:-quick}" != full ] && [ $files -ge "$FILES" ] && break
	done <"$WORK/good"
	rm -f "$new" "$new.in" "$new.out" "$new.err"
	if [ -n "$bad" ]; then
		echo "not ok mutant/$kind: survived in$(echo "$bad" | cut -c 1-300)"
	elif [ -n "$strange" ]; then
		echo "not ok mutant/$kind: $strange"
	elif [ $n = 0 ] && [ -n "${TARGET:-}" ] && [[ $kind != a64-* ]]; then
		echo "skip mutant/$kind: no file has such a place"
	elif [ $n = 0 ]; then
		echo "not ok mutant/$kind: no file has such a place"
	else
		echo "ok mutant/$kind: $n"
	fi
	exit 0
fi

need_tool mutants
[ -n "${TARGET:-}" ] || x86_only mutants mutants_a64
if [ ! -x "$MUTATE" ]; then
	not_ok mutants "no program at $MUTATE"
	finish
fi
make_work
always_fold
[ "${MUTANTS:-}" != full ] || PLACES=${PLACES:-3}
export PLACES=${PLACES:-2} FILES=${FILES:-2} MUTATE
: >"$WORK/good"

# unbuilt NAME: skips what $WORK/NAME.log says does not build.
unbuilt() { skip "mutants/$1" "does not build: $(tail -n 1 "$WORK/$1.log" | cut -c 1-120)"; }
# fold_good NAME [OPTION...]: folds $WORK/NAME; the pair is one for mutants if verify calls it equal.  One line.
fold_good() {
	local name=$1 in=$WORK/$1 out=$WORK/$1.out
	shift
	if ! "$ICFOLD" "$@" "$in" -o "$out" >/dev/null 2>"$in.log"; then
		not_ok "mutants/$name" "does not fold: $(first_line "$in.log")"
	elif ! verify_pair "$in" "$out" >"$in.log" 2>&1; then
		not_ok "mutants/$name" "verify calls a good output different: $(grep ': ' "$in.log" | head -n 1 | cut -c 1-200)"
	else
		ok "mutants/$name"
		echo "$in $out" >>"$WORK/good"
	fi
}
# good NAME FIXTURE COMPILER LINKER TYPE FLAGS [LINKFLAG...]: builds, folds (with the option FOLD), verifies; one line.
good() {
	local name=$1 fixture=$2 cc=$3 ld=$4 type=$5 flags=$6 in=$WORK/$1
	shift 6
	load_recipe "$fixture"
	if ! have "$cc" || ! { compile_fixture "$cc" "$flags" "$type" "$WORK/obj.$name" && link_fixture "$cc" "$ld" "$type" "$WORK/obj.$name" "$in" "$@"; } >"$in.log" 2>&1; then
		unbuilt "$name"
		return
	fi
	fold_good "$name" ${FOLD:+"$FOLD"}
}

# Virtual calls of every kind: the slot's address is computed first, or loaded long before the call, or known on two ways only.
slots() {
	local cc=$1 o=$2 in=$WORK/slots.$1$2 i n=0 bad=''
	have "$cc" || { skip "mutants/slots/$cc$o" "no $cc"; return; }
	cat >"$WORK/slots.cc" <<-'END'
		struct A { virtual int zero(int) = 0; virtual int one(int) = 0; };
		template <int I> struct D : A { int zero(int x) override { return x * 3; } int one(int x) override { return x * 5; } };
		volatile int number = 1;
		A *make(int n) { static D<0> a; static D<1> b; return n & 1 ? static_cast<A *>(&a) : &b; }
		int call(A *p, int x) { return p->zero(p->zero(x) + make(x)->zero(p->one(x))) + p->one(make(1)->one(x)); }
		int main() { return call(make(number), 4) == 0; }
	END
	if ! "$cc" "$o" -g -fPIE -pie -Wl,--emit-relocs "$WORK/slots.cc" -o "$in" >"$in.log" 2>&1; then
		skip "mutants/slots/$cc$o" "does not build: $(tail -n 1 "$in.log" | cut -c 1-120)"
		return
	fi
	"$ICFOLD" --icf=all "$in" -o "$in.out" >/dev/null 2>"$in.log" && "$ICFOLD" verify --icf=all "$in" "$in.out" >"$in.log" 2>&1 || bad=" the good output"
	for i in $(seq 0 7); do
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" vcall-slot "$i" 8 "$in" "$in.out" "$in.new" >"$in.what" 2>/dev/null || continue
		n=$((n + 1))
		"$ICFOLD" verify --icf=all "$in" "$in.new" >/dev/null 2>&1
		[ $? = 1 ] || bad="$bad $(cat "$in.what")"
	done
	check "mutant/slots/$cc$o" "survived:$bad of $n" test -z "$bad" -a "$n" -gt 4
}

# Line tables whose sequences only move, as a section for each function makes them: verify compares these without reading rows.
moved_lines() {
	local in=$WORK/moved kind i n=0 bad=''
	cat >"$WORK/moved.c" <<-'END'
		#include <stdio.h>
		volatile int g;
		__attribute__((noinline)) int a(int x) { for (int i = 0; i < x; i++) g += i * x; return g; }
		__attribute__((noinline)) int b(int x) { for (int i = 0; i < x; i++) g += i * x; return g; }
		__attribute__((noinline)) int c(int x) {
			if (x > 3) g = 5;
			puts("x"); for (int i = 0; i < x; i++) g ^= i * x; return g;
		}
		int main(void) { return a(1) + b(2) + c(4) == 7; }
	END
	if ! gcc -O2 -g -ffunction-sections -Wl,--emit-relocs "$WORK/moved.c" -o "$in" >"$in.log" 2>&1; then
		skip "mutants/moved-lines" "does not build: $(tail -n 1 "$in.log" | cut -c 1-120)"
		return
	fi
	"$ICFOLD" --icf=all "$in" -o "$in.out" >/dev/null 2>"$in.log" && "$ICFOLD" verify --icf=all "$in" "$in.out" >"$in.log" 2>&1 || bad=" the good output"
	for kind in line-special line-column line-is-stmt line-address line-discriminator; do
		for i in $(seq 0 5); do
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" "$i" 6 "$in" "$in.out" "$in.new" >"$in.what" 2>/dev/null || continue
			n=$((n + 1))
			"$ICFOLD" verify --icf=all "$in" "$in.new" >/dev/null 2>&1
			[ $? = 1 ] || bad="$bad $kind $(cat "$in.what")"
		done
	done
	check "mutant/moved-lines" "survived:$bad of $n" test -z "$bad" -a "$n" -gt 20
}

# Functions of one group with rows of their own, inlined copies, and lists, in sections of their own.  Verify compares their DIEs value
# by value, makes IN's rows itself, and asks the symbolizer for a share of the places in shared code: all but the first DIE of each
# kind, and any row, must still be compared.
moved_dies() {
	local cc=$1 opt=$2 in=$WORK/dies.$1$2 kind i n=0 bad=''
	have "$cc" || { skip "mutants/moved-dies/$cc$opt" "no $cc"; return; }
	cat >"$WORK/dies.c" <<-'END'
		volatile int g;
		static inline int in(int x) { int r = 0; for (int i = 0; i < x; i++) { int k = g; g += i * k; r ^= g; } return r; }
		#define SAME(name) __attribute__((noinline)) int name(int x)
		SAME(a) { return in(x) + in(x + 1); }
		SAME(b) { return in(x)
			+ in(x + 1); }
		SAME(c) {
			return in(x)

			+ in(x + 1); }
		SAME(d) {

			return

			in(x) + in(x + 1); }
		SAME(e) { int k = g; for (int i = 0; i < k; i++) { int m = x + i; g += m; } return in(k) + a(k); }
		SAME(f) { int k = g; if (x > 3) { int m = k * x; g = m; } return in(k) ^ b(k); }
		SAME(h) { int k = g + 1; if (x > 5) { int m = k - x; g = m; } return in(k) ^ c(k); }
		int main(void) { return a(1) + b(2) + c(4) + d(5) + e(6) + f(7) + h(8) == 7; }
	END
	if ! "$cc" -O2 "$opt" -ffunction-sections -Wl,--emit-relocs "$WORK/dies.c" -o "$in" >"$in.log" 2>&1; then
		skip "mutants/moved-dies/$cc$opt" "does not build: $(tail -n 1 "$in.log" | cut -c 1-120)"
		return
	fi
	"$ICFOLD" --icf=all "$in" -o "$in.out" >/dev/null 2>"$in.log" && "$ICFOLD" verify --icf=all "$in" "$in.out" >"$in.log" 2>&1 || bad=" the good output"
	for kind in map-rows-swapped map-overlay die-low-pc die-high-pc die-return-pc die-entry-pc die-ranges die-location-list die-decl-line die-call-line \
		die-call-file die-type die-origin die-call-origin die-sibling die-number die-expression die-entry-value range-list location-list \
		location-base location-bounds location-operation location-views folded-line folded-lines-swapped folded-line-advance folded-column \
		folded-line-address; do
		for i in $(seq 0 7); do
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" "$i" 8 "$in" "$in.out" "$in.new" >"$in.what" 2>/dev/null || continue
			n=$((n + 1))
			"$ICFOLD" verify --icf=all "$in" "$in.new" >/dev/null 2>&1
			[ $? = 1 ] || bad="$bad $kind $(cat "$in.what")"
		done
	done
	check "mutant/moved-dies/$cc$opt" "survived:$bad of $n" test -z "$bad" -a "$n" -gt 80
}

if [ -n "${TARGET:-}" ]; then
	bad=$(use_target "$TARGET")
	[ -z "$bad" ] || { skip mutants "$bad"; finish; }
	use_target "$TARGET"
	good asm asm_a64 gcc bfd pie "-O2 -g"
	good eh eh gcc bfd pie "-O2 -g -mbranch-protection=standard"
	good addr addr gcc lld nopie "-O2 -g"
	good switches switches clang lld nopie "-O2 -g"
	good demo demo clang lld pie "-O2 -g"
	good hotcold hotcold gcc mold pie "-O2 -g"
	good init init gcc gold so "-O2 -g"
	good recur recur gcc bfd pie "-O2 -g" -Wl,-z,pack-relative-relocs
	good literal literals gcc bfd pie "-O2 -g -mpc-relative-literal-loads"
	good large literals gcc lld nopie "-O2 -g -mcmodel=large"
	FOLD=--emit-relocs good relocs eh gcc bfd so "-O2"
	FOLD=--in-place good stay switches gcc bfd pie "-O2 -g"
else
	good eh eh gcc bfd pie "-O2 -g"
	good addr addr gcc bfd nopie "-O2 -g -fcf-protection=full"
	good switches switches clang lld nopie "-O2 -g"
	good init init gcc gold so "-O2 -g"
	good demo demo clang lld pie "-O2 -g" -Wl,--gdb-index
	good addr4 addr gcc bfd so "-O2 -gdwarf-4"
	good hotcold hotcold gcc mold pie "-O2 -g"
	good recur recur gcc bfd pie "-O2 -g" -Wl,-z,pack-relative-relocs
	good plain c_plain clang bfd pie "-O2 -g"
	good asm asm gcc bfd static "-O2"
	good names demo clang lld pie "-O2 -gdwarf-5 -gpubnames"
	good name c_plain clang bfd pie "-O2 -gdwarf-5 -gpubnames"
	good macros c_plain gcc bfd pie "-O2 -g3"
	good types eh gcc gold pie "-O2 -g -fdebug-types-section -ggnu-pubnames" -Wl,--gdb-index
	good strings hotcold clang lld pie "-O2 -gdwarf-5"
	good types4 hotcold gcc bfd pie "-O2 -gdwarf-4 -fdebug-types-section"
	good wide hotcold gcc bfd pie "-O2 -gdwarf-5 -gdwarf64"
	good aborts init gcc mold staticpie "-O2"
	# GCC's location lists, which it means absolute beside a unit with an address, cover any code.
	good strict demo gcc bfd pie "-O2 -gdwarf-2 -gstrict-dwarf"
	FOLD=--emit-relocs good relocs init gcc bfd so "-O2 -g"
	FOLD=--gc-functions good removed unused gcc bfd pie "-O2 -g"
	FOLD=--in-place good stay switches gcc bfd pie "-O2 -g"
	# Call tables of GCC 4.5.
	if gcc "$FIXTURES/calls_gcc/calls.S" -Wl,--emit-relocs -o "$WORK/calls" >"$WORK/calls.log" 2>&1; then fold_good calls; else unbuilt calls; fi
	# Lists of places in code, without relocations: some functions move; in place, others stand for two.
	for how in moves stays; do
		if ! build_fool gcc "$FOOL/code/listed.c" "$WORK" "$WORK/listed.$how" -g >"$WORK/listed.$how.log" 2>&1; then
			unbuilt "listed.$how"
		elif [ $how = moves ]; then
			fold_good listed.moves
		else
			fold_good listed.stays --in-place
		fi
	done
	# Like Debian's libraries of rustc (make_stale in tests/lib.sh).
	if make_stale "$WORK" "$WORK/stale" >"$WORK/stale.log" 2>&1; then fold_good stale; else not_ok mutants/stale "cannot be made: $(first_line "$WORK/stale.log")"; fi
	# A payload behind the program.
	{ cat "$WORK/plain" && echo "what is appended"; } >"$WORK/tail"
	fold_good tail
	for cc in g++ clang++; do slots $cc -O0; slots $cc -O1; done
	moved_lines
	moved_dies gcc -gdwarf-5
	moved_dies gcc -gdwarf-4
	moved_dies clang -g
fi
if [ ! -s "$WORK/good" ]; then
	not_ok mutants "nothing to break"
	finish
fi

# What two wrong ways of folding look like: addresses merged where they must not be, and another program's output.
read -r in out <"$WORK/good"
check mutant/other-output "survived" test "$("$ICFOLD" verify "$(sed -n 2p "$WORK/good" | cut -d' ' -f1)" "$out" >/dev/null 2>&1; echo $?)" != 0
for name in addr addr4; do
	[ -f "$WORK/$name.out" ] || continue
	"$ICFOLD" --icf=all "$WORK/$name" -o "$WORK/merged" 2>/dev/null
	check "mutant/merged-addresses/$name" "survived" test "$("$ICFOLD" verify "$WORK/$name" "$WORK/merged" >/dev/null 2>&1; echo $?)" = 1
	check "mutants/merged-addresses-allowed/$name" "refused" "$ICFOLD" verify --icf=all "$WORK/$name" "$WORK/merged" >/dev/null
done

own=$("$MUTATE" --list | if [ -n "${TARGET:-}" ]; then cat; else grep -v '^a64-'; fi)
grep -E "${ONLY:-.}" <<<"$own" | xargs -P "$JOBS" -n 1 bash "$0" --one >"$WORK/result"
cat "$WORK/result"
grep -q '^not ok' "$WORK/result" && failures=$((failures + 1))
echo "# $(awk '/^ok/ { n += $NF } END { print n + 0 }' "$WORK/result") mutants reported"
finish
