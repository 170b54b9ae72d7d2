#!/bin/bash
# run_relocs.sh: relocations that --emit-relocs kept and that do not say all.
#
#   names    local symbols were stripped after the link, or left out by it: jump tables and split-off parts are found all the same
#   nosymtab relocations without a symbol table (gold -s): as good as none
#   layouts  segments without page alignment, headers in no segment, traps behind the code
# PARTS="names" runs some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# judge NAME IN [MODE...]: IN folded in each mode (none safe all in-place) runs as it did, and verify agrees.  The outputs are IN.MODE, what
# --stats=json says IN.MODE.stats.
judge() {
	local name=$1 in=$2 mode opts bad
	shift 2
	[ $# = 0 ] && set -- none safe all in-place
	{ timeout 20 "$in" || echo "exit status $?"; } >"$in.want" 2>&1
	for mode in "$@"; do
		opts=--icf=$mode bad=
		[ "$mode" = in-place ] && opts="--icf=safe --in-place"
		# shellcheck disable=SC2086
		if ! timeout 60 "$ICFOLD" -q --stats=json $opts "$in" -o "$in.$mode" >"$in.$mode.stats" 2>"$in.log"; then
			bad="icfold: $(first_line "$in.log")"
		elif { timeout 20 "$in.$mode" || echo "exit status $?"; } >"$in.got" 2>&1; ! cmp -s "$in.want" "$in.got"; then
			bad="prints something else: $(diff "$in.want" "$in.got" | sed -n 2,3p | tr '\n' ' ')"
		elif [ "$mode" != none ] && ! "$ICFOLD" verify "${opts%% *}" "$in" "$in.$mode" >"$in.log" 2>&1; then
			bad="verify: $(grep -E "^[a-z][a-z ,()._]*: " "$in.log" | grep -vE "^(symbolized|resolved): .* 0 wrong" | head -n 1)"
		fi 2>/dev/null
		if [ -n "$bad" ]; then not_ok "$name/$mode" "$bad"; else ok "$name/$mode"; fi
	done
}
stat_of() { sed -n "s/^ *\"$2\": \([0-9]*\),*$/\1/p" "$1" | head -n 1; }

# mutants NAME NAMED IN OUT KIND...: OUT broken, in places that are found with the symbols of NAMED; verify notices.
mutants() {
	local name=$1 named=$2 in=$3 out=$4 kind i n what bad
	shift 4
	for kind in "$@"; do
		n=0 bad=
		for i in 0 1 2; do
			what=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$BUILD/tests/mutate" "$kind" $i 3 "$named" "$out" "$in.mutant" 2>/dev/null) || continue
			n=$((n + 1))
			"$ICFOLD" verify "$in" "$in.mutant" >/dev/null 2>&1
			[ $? = 1 ] || bad="$bad $what"
		done
		check "$name/mutant/$kind" "of $n survived:$bad" test $n != 0 -a -z "$bad"
	done
}

# --- names ------------------------------------------------------------------------------------------------------------
# Each table has an entry for a split-off part, which counted from its own place would name the padding behind that part.
names_part() {
	local d=$WORK/names ld how in
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#include <setjmp.h>
		#include <stdio.h>
		#define N static __attribute__((noinline, noclone))
		jmp_buf escape;
		volatile int w;
		__attribute__((noinline, cold, noreturn)) void die(int n) { printf("%d\n", n); longjmp(escape, 1); }
		#define CASES(x) case x: w += 17 * x; break; case x + 1: w ^= 3 + x; break; case x + 2: w -= x; break; case x + 3: w *= x + 5; break;
		#define FUNCTION(name, k) N int name(unsigned n) { switch (n) { \
			CASES(0) CASES(4) CASES(8) CASES(12) CASES(16) CASES(20) CASES(24) CASES(28) CASES(32) CASES(36) case 40: die(k); } return w + k; }
		FUNCTION(a1, 1) FUNCTION(a2, 1) FUNCTION(b1, 2) FUNCTION(b2, 2) FUNCTION(c, 3)
		int main(void)
		{
			for (volatile unsigned i = 0; i < 41; i++)
				if (!setjmp(escape))
					printf("%d %d %d %d %d\n", a1(i), a2(i), b1(i), b2(i), c(i));
			for (int (*volatile f)(unsigned) = c, i = 40; i < 41; i++)
				if (!setjmp(escape))
					printf("%d\n", f(40));
			return 0;
		}
	END
	gcc -O2 -fno-ipa-icf -fPIE -falign-functions=1024 -c "$d/p.c" -o "$d/p.o" 2>"$d/log" || not_ok names "does not compile: $(first_line "$d/log")"
	for ld in bfd gold lld mold static; do
		for how in whole strip-x strip-unneeded discard-all; do
			in=$d/$ld.$how
			# mold stops with an assertion.
			[ "$ld.$how" = mold.discard-all ] && continue
			[ $ld = static ] && [ $how != strip-x ] && continue
			set -- -pie -fuse-ld=$ld
			[ $ld = static ] && set -- -static -no-pie -fuse-ld=bfd
			[ $how = discard-all ] && set -- "$@" -Wl,--discard-all
			if ! gcc "$@" -Wl,--emit-relocs "$d/p.o" -o "$in" 2>"$d/log"; then
				skip "names/$ld.$how" "does not link: $(tail -n 1 "$d/log" | cut -c 1-120)"
				continue
			fi
			[ $how = strip-x ] && strip -x "$in"
			[ $how = strip-unneeded ] && strip --strip-unneeded "$in"
			judge "names/$ld.$how" "$in"
			[ $ld = static ] || check "names/$ld.$how/folds" "$(stat_of "$in.safe.stats" folded) folded, $(stat_of "$in.safe.stats" pinned) pinned" \
				test "$(stat_of "$in.safe.stats" folded)" -ge 2 -a "$(stat_of "$in.safe.stats" pinned)" = 0
		done
		[ $ld = static ] || mutants names/$ld "$d/$ld.whole" "$d/$ld.strip-x" "$d/$ld.strip-x.safe" table-entry table-entry-not-rewritten table-entries-swapped
	done
}

# --- nosymtab ---------------------------------------------------------------------------------------------------------
nosymtab_part() {
	local d=$WORK/nosymtab in
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#define N __attribute__((noinline, noclone))
		volatile int w;
		N static int a(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		N static int b(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		int main(void) { return a(3) + b(4) != 42; }
	END
	in=$d/in
	if ! gcc -O1 -fPIE -pie -s -fuse-ld=gold -Wl,--emit-relocs "$d/p.c" -o "$in" 2>"$d/log" || ! readelf -SW "$in" | grep -q ' \.rela\.text '; then
		skip nosymtab "gold does not link: $(tail -n 1 "$d/log" | cut -c 1-120)"
		return
	fi
	judge nosymtab "$in"
	check nosymtab/folds "$(stat_of "$in.safe.stats" folded) folded" test "$(stat_of "$in.safe.stats" folded)" = 1
	"$ICFOLD" -v --emit-relocs "$in" -o "$in.kept" >"$d/log" 2>&1
	check nosymtab/inferred "$(first_line "$d/log")" grep -q '^icfold: compact, references from the code' "$d/log"
	check nosymtab/dropped "relocations that say nothing are kept" test -z "$(readelf -SW "$in.kept" | grep ' \.rela\.text ')"
}

# --- layouts ----------------------------------------------------------------------------------------------------------
layouts_part() {
	local d=$WORK/layouts kind ld flags name
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#include <stdio.h>
		#define N __attribute__((noinline, noclone))
		volatile int w;
		N static int a(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		N static int b(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		int main(void) { printf("%d %d\n", a(3), b(4)); return 0; }
	END
	gcc -O1 -fno-pic -c "$d/p.c" -o "$d/p.o"
	while read -r kind ld flags; do
		name=layouts/$kind.$ld.$flags
		# shellcheck disable=SC2086
		if ! gcc -no-pie ${kind#dynamic} -fuse-ld="$ld" -Wl,--emit-relocs -Wl,$flags "$d/p.o" -o "$d/in" 2>"$d/log"; then
			skip "$name" "does not link: $(tail -n 1 "$d/log" | cut -c 1-120)"
		else
			judge "$name" "$d/in" safe in-place
		fi
	done <<-'END'
	-static lld -N
	-static lld -z,separate-code
	dynamic lld -z,separate-loadable-segments
	dynamic lld --no-rosegment
	dynamic bfd -z,noseparate-code
	END
}

need_tool relocs
make_work
PARTS=${PARTS:-names nosymtab layouts}
for part in $PARTS; do "${part}_part"; done
finish
