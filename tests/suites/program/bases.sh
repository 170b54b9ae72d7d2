#!/bin/bash
# bases.sh: ways to functions that no relocation tells of: words that a linker script writes, distances in absolute symbols, and (without
# relocations) an assembler's distances from other data.  Each program calls functions through such words; twins in front of these fold, so
# that they would move.  The folded program must do what it did, in every mode, and verify must call it equal; it must object to a fold that
# lacks the rule.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/plant.sh
. "$TESTS/lib/plant.sh"
start_suite bases
always_fold
x86_only bases

cat >ways.h <<'C'
#include <stdint.h>
#include <stdio.h>
#ifdef __clang__
#define ALONE __attribute__((noinline, used))
#else
#define ALONE __attribute__((noinline, noclone, no_icf, used))
#endif
static int seen[8];
#define TWIN(n) ALONE int n(int x) { for (int i = 0; i < (x & 3); i++) x = x * 5 + seen[x & 7]; seen[x & 7] ^= x & 15; return x + 17; }
TWIN(twin_a) TWIN(twin_b) TWIN(twin_c) TWIN(twin_d)
ALONE int h1(int x) { return x + 1; }
ALONE int h2(int x) { return x * 2; }
ALONE int h3(int x) { return x * 3 - 7; }
ALONE int h4(int x) { return x * 4 + 9; }
typedef int (*fn)(int);
static int twins(void) { return twin_a(1) + twin_b(2) + twin_c(3) + twin_d(4); }
C
# Words of a linker script.  TYPE: of one; FROM: what it counts from.
cat >script.c <<'C'
#include "ways.h"
extern const TYPE table[];
extern char __executable_start[], _edata[];
int other = 3;
const int fixed = 5;
ALONE fn way(long i) { return (fn)((char *)FROM + (intptr_t)table[i * STRIDE + FIRST]); }
int main(void)
{
	int sum = twins();
	for (int i = 0; i < N; i++) {
		fn f = way(i);
		sum = sum * 3 + f(i) + (f == h1) + 2 * (f == h2);
	}
	return printf("%d %d %d\n", sum, other, fixed) < 0;
}
C
# A distance in an absolute symbol.
cat >absolute.c <<'C'
#include "ways.h"
extern char OFF[], __executable_start[];
int other = 3;
int main(void)
{
	int sum = twins() + h1(1) + h3(2) + h4(3);
	fn f = (fn)((char *)FROM + (intptr_t)OFF);
	return printf("%d %d %d\n", sum, f(3), other) < 0;
}
C
# A table behind its header, with a symbol of its own; the user has the header's address.
cat >header.c <<'C'
#include "ways.h"
__asm__(".section .rodata\n.balign 8\n.globl header\n.hidden header\n.type header, @object\nheader: .long 4, 100, 200, 300\n"
	"table: .long " WORDS "\n.size header, . - header\n.previous\n");
extern const struct { int n, more[3], off[16]; } header;
#ifdef PASSED
ALONE fn pick(const void *h, int i) { return (fn)((char *)h + ((const int *)h)[4 + i * STRIDE]); }
#define WAY(i) pick(&header, i)
#else
ALONE fn way(int i) { return (fn)((char *)&header + header.off[i * STRIDE]); }
#define WAY way
#endif
int main(void)
{
	int sum = twins();
	for (int i = 0; i < header.n; i++)
		sum = sum * 3 + WAY(i)(i) + (WAY(i) == h1);
	return printf("%d\n", sum) < 0;
}
C

# try NAME IN: folds IN in all modes.
try() {
	local mode bad=
	./"$2" >want 2>&1 || { not_ok "$1" "unfolded: exit status not 0"; return; }
	for mode in --icf=safe --icf=all "--icf=all --in-place" "--icf=all --gc-functions"; do
		# shellcheck disable=SC2086
		if ! "$ICFOLD" -q $mode "$2" -o out 2>log; then
			bad="$mode: $(first_line log)"
			break
		fi
		# shellcheck disable=SC2086
		"$ICFOLD" verify ${mode/--in-place/} "$2" out >log 2>&1 || bad="$mode: verify: $(tail -n 1 log)"
		{ ./out; } >got 2>&1
		cmp -s want got || bad="$mode: prints $(first_line got), not $(first_line want); verify says $(tail -n 1 log)"
		[ -z "$bad" ] || break
	done
	check "$1" "$bad" test -z "$bad"
}
# script NAME KIND FLAGS STATEMENT...: the words are those statements, in a section of their own.
script() {
	local name=$1 kind=$2 flags=$3 cc
	shift 3
	printf 'SECTIONS { .ways : { . = ALIGN(8); table = .; %s } } INSERT AFTER %s;\n' "$*" "${AFTER:-.rodata}" >ways.ld
	for cc in gcc clang; do
		have $cc || { skip "script/$name/$cc" "no $cc"; continue; }
		# shellcheck disable=SC2086
		if $cc -O2 $kind $flags script.c -Wl,-T,ways.ld -Wl,-q -o in 2>log; then
			try "script/$name/$cc" in
		else
			skip "script/$name/$cc" "does not link: $(tail -n 1 log | cut -c 1-100)"
		fi
	done
}
words() { # STATEMENT FROM: of the four functions
	local f
	for f in h1 h2 h3 h4; do printf '%s(%s%s) ' "$1" "$f" "${2:+ - $2}"; done
}
four="-DN=4 -DSTRIDE=1 -DFIRST=0"
# shellcheck disable=SC2086,SC2046
{
	script addresses "-fno-pie -no-pie" "$four -DTYPE=uint64_t -DFROM=0" $(words QUAD)
	script short-addresses "-fno-pie -no-pie" "$four -DTYPE=uint32_t -DFROM=0" $(words LONG)
	script one-address "-fno-pie -no-pie" "-DN=1 -DSTRIDE=1 -DFIRST=0 -DTYPE=uint64_t -DFROM=0" "QUAD(h2)"
	AFTER=.data script address-in-data "-fno-pie -no-pie" "-DN=1 -DSTRIDE=1 -DFIRST=0 -DTYPE=uint64_t -DFROM=0" "QUAD(h2)"
	script records "-fno-pie -no-pie" "-DN=3 -DSTRIDE=2 -DFIRST=1 -DTYPE=uint64_t -DFROM=0" "QUAD(7) QUAD(h1) QUAD(8) QUAD(h2) QUAD(9) QUAD(h3)"
	for kind in "-fno-pie -no-pie" "-fPIE -pie"; do
		n=${kind##*-}
		script table/$n "$kind" "$four -DTYPE=int32_t -DFROM=table" $(words LONG table)
		script wide-table/$n "$kind" "$four -DTYPE=int64_t -DFROM=table" $(words QUAD table)
		script one-distance/$n "$kind" "-DN=1 -DSTRIDE=1 -DFIRST=0 -DTYPE=int32_t -DFROM=table" "LONG(h2 - table)"
		script image/$n "$kind" "$four -DTYPE=int32_t -DFROM=__executable_start" $(words LONG __executable_start)
		script data/$n "$kind" "$four -DTYPE=int32_t -DFROM=(&other)" $(words LONG other)
		script constant/$n "$kind" "$four -DTYPE=int32_t -DFROM=(&fixed)" $(words LONG fixed)
		script end/$n "$kind" "$four -DTYPE=int32_t -DFROM=_edata" $(words LONG _edata)
		script two/$n "$kind" "-DN=2 -DSTRIDE=1 -DFIRST=0 -DTYPE=int32_t -DFROM=(&other)" "LONG(h2 - other) LONG(h1 - other)"
		script places/$n "$kind" "$four -DTYPE=int32_t -DFROM=&table[i]" "LONG(h1 - .) LONG(h2 - .) LONG(h3 - .) LONG(h4 - .)"
		script records-of-image/$n "$kind" "-DN=4 -DSTRIDE=3 -DFIRST=1 -DTYPE=int32_t -DFROM=__executable_start" \
			$(for f in h1 h2 h3 h4; do echo "LONG(5) LONG($f - __executable_start) LONG(77)"; done)
	done
	# Counted from the file's first byte: what a linker puts into a position-independent file.
	script image-addresses "-fPIE -pie" "$four -DTYPE=uint64_t -DFROM=__executable_start" $(words QUAD)
}

for ld in bfd gold lld; do
	for from in main h1 '&other' __executable_start; do
		base=${from#&} name=absolute/$ld/${from#&}
		if ! gcc -O2 -fno-pie -no-pie -fuse-ld=$ld "-DFROM=($from)" absolute.c -Wl,--defsym=OFF=h2-"$base" -Wl,-q -o in 2>log; then
			skip "$name" "does not link: $(tail -n 1 log | cut -c 1-100)"
		elif ! ./in >/dev/null 2>&1; then
			skip "$name" "does not work"
		else
			try "$name" in
		fi
	done
done

# Without relocations.
for cc in gcc clang; do
	have $cc || { skip header/$cc "no $cc"; continue; }
	for how in "" -DPASSED; do
		for stride in 1 2 3; do
			list=$(for f in h1 h2 h3 h4; do printf '%s - header, ' $f; for ((k = 1; k < stride; k++)); do printf '%d, ' $((5 * k)); done; done)
			for opt in -O1 -O2; do
				name=header/$cc/$stride$opt$how
				if ! $cc $opt -fPIE -pie $how -DSTRIDE=$stride "-DWORDS=\"${list%, }\"" header.c -o in 2>log; then
					not_ok "$name" "$(tail -n 1 log)"
					continue
				fi
				try "$name" in
				strip -s in -o in.s && try "$name/stripped" in.s
			done
		done
	done
done

# Numbers that are none of this cost nothing: the twins go.
cat >plain.c <<'C'
#include "ways.h"
static const int numbers[] = { -1, -2, -30, -4000000, 5, 600, 7000, 80000, 0x500000, 0x7fffffff, 0x12345678 };
int main(int n, char **v) { (void)v; return printf("%d %d\n", twins(), numbers[n]) < 0; }
C
for kind in "-fno-pie -no-pie" "-fPIE -pie"; do
	# shellcheck disable=SC2086
	gcc -O2 $kind plain.c -Wl,-q -o in && try "plain/${kind##*-}" in
	"$ICFOLD" -v --icf=all in -o out 2>log
	check "plain/${kind##*-}/folds" "$(first_line log)" grep -q ' 0 pinned' log
done

# verify sees a fold that lacks the rule.
cd "$ROOT" || exit 1
plant bases/blind icf/infer/infer 's/^\ticf_infer_absolute(prog);//; s/ELFRW_TRY(icf_infer_bare(prog, NULL, threads));//; s/err = icf_infer_bare(prog, &map, threads);/;/'
cd "$WORK" || exit 1
# blind NAME FLAGS: of the program IN.
blind() {
	"$WORK/blind" -q --allow-growth --icf=all in -o out 2>log || { not_ok "blind/$1" "$(first_line log)"; return; }
	{ ./out; } >got 2>&1
	check "blind/$1/breaks" "it works" test "$(cat got)" != "$(./in)"
	"$ICFOLD" verify --icf=all in out >log 2>&1
	check "blind/$1" "$(tail -n 1 log)" grep -qE 'distance: word|difference: ' log
}
if [ -x "$WORK/blind" ]; then
	printf 'SECTIONS { .ways : { . = ALIGN(8); table = .; %s } } INSERT AFTER .rodata;\n' "$(words QUAD)" >ways.ld
	# shellcheck disable=SC2086
	gcc -O2 -fno-pie -no-pie $four -DTYPE=uint64_t -DFROM=0 script.c -Wl,-T,ways.ld -Wl,-q -o in && blind addresses
	printf 'SECTIONS { .ways : { . = ALIGN(8); table = .; %s } } INSERT AFTER .rodata;\n' "$(words LONG other)" >ways.ld
	# shellcheck disable=SC2086
	gcc -O2 -fPIE -pie $four -DTYPE=int32_t "-DFROM=(&other)" script.c -Wl,-T,ways.ld -Wl,-q -o in && blind data
	# shellcheck disable=SC2086
	gcc -O2 -fPIE -pie $four -DTYPE=int32_t "-DFROM=(&other)" script.c -Wl,-T,ways.ld -o in && blind data-bare
	gcc -O2 -fno-pie -no-pie -DFROM=__executable_start absolute.c -Wl,--defsym=OFF=h2-__executable_start -Wl,-q -o in && blind absolute
	gcc -O2 -fPIE -pie -DSTRIDE=1 '-DWORDS="h1 - header, h2 - header, h3 - header, h4 - header"' header.c -o in && blind header
fi
finish
