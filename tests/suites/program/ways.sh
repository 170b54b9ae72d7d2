#!/bin/bash
# ways.sh: ways to functions that have no relocation.  A linker script's words hold addresses, or distances from some base; absolute
# symbols hold distances; without relocations, tables of an assembler count from their header.  Programs call functions by these, with
# equal functions in front that fold, so that the others would move.  Folded in every mode, they must do what they did, and verify must
# say so; icfold may also refuse, or fold less.  Output that differs is worst if verify calls it equal: this has a text of its own.
# Then the words are put into what icfold makes of the same program with zeros instead: verify must see that they lead astray.
# A program is built in one of several manners, which its name decides, and folded in two modes; WAYS=full: by both compilers, at both
# levels of optimisation, by all linkers, and in all modes.  TARGET=aarch64: for that machine.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/elf.sh
. "$TESTS/lib/elf.sh"
start_suite ways gcc
always_fold
WAYS=${WAYS:-}

cat >ways.h <<'END'
#include <stdint.h>
#include <stdio.h>
#pragma GCC visibility push(hidden)
#ifdef __clang__
#define ALONE __attribute__((noinline, used))
#else
#define ALONE __attribute__((noipa, used))
#endif
typedef int (*fn)(int);
static int seen[8];
#define TWIN(n) ALONE int n(int x) { for (int i = 0; i < (x & 3); i++) x = x * 5 + seen[x & 7]; seen[x & 7] ^= x & 15; return x + 17; }
#define WAY(n, k) LOCAL ALONE int n(int x) { return x * k + k; }
#ifndef LOCAL
#define LOCAL
#endif
#ifndef START
#define START __attribute__((visibility("default"))) main
#endif
TWIN(twin_a) TWIN(twin_b) TWIN(twin_c)
WAY(h1, 3) TWIN(twin_d) WAY(h2, 5) WAY(h3, 7) TWIN(twin_e) WAY(h4, 9) WAY(h5, 13) TWIN(twin_f) WAY(h6, 15)
/* These fold themselves. */
WAY(h7, 21) WAY(h8, 21)
static int twins(void) { return twin_a(1) + twin_b(2) + twin_c(3) + twin_d(4) + twin_e(5) + twin_f(6); }
#ifdef NAMED
#define SAME(f) ((f == h1) + 2 * (f == h2))
#else
#define SAME(f) 0
#endif
extern char __executable_start[], __ehdr_start[], _edata[], _DYNAMIC[], etext[];
int START(void);
END
# Words of TYPE in the table lead to functions; they count from FROM.  How the code gets at them: a function of their own (or none:
# INLINE), or one that gets the base from its caller (PASSED).
cat >words.c <<'END'
#include "ways.h"
extern const TYPE table[];
int other = 3, more[50] = { 1, 2 }, none[40];
const int fixed = 5;
__attribute__((section(".marks"))) const int mark = 7;
#define WORD(i) table[(i) * STRIDE + FIRST]
#ifdef PASSED
ALONE fn reach(uintptr_t from, const TYPE *word) { return (fn)(from + (intptr_t)*word); }
#define REACH(i) reach((uintptr_t)(FROM), &WORD(i))
#elif defined INLINE
#define REACH(i) ((fn)((uintptr_t)(FROM) + (intptr_t)WORD(i)))
#else
ALONE fn reach(long i) { return (fn)((uintptr_t)(FROM) + (intptr_t)WORD(i)); }
#define REACH reach
#endif
int START(void)
{
	long sum = twins();
	for (long i = 0; i < N; i++) {
		fn f = REACH(i);
		sum = sum * 3 + f(i) + SAME(f);
	}
	return printf("%ld %d %d %d %d %d\n", sum, other, more[1], none[2], fixed, mark) < 0;
}
END
# The table in assembler: FRONT is in front of it, WORDS are its words.  The base has a name; the table has one unless it is a local one.
cat >header.c <<'END'
#include "ways.h"
#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x
__asm__(".pushsection " PLACE "\n.balign 8\n.globl header\n.hidden header\n.type header, %object\nheader:\n" FRONT "\n.globl rows\n.hidden rows\nrows:\n" TABLE ":\n" WORDS "\n.size header, . - header\n.popsection");
extern const char header[];
#ifdef BY_ROWS
extern const TYPE rows[];
#else
#define rows ((const TYPE *)(header + LEAD))
#endif
#define WORD(i) rows[(i) * STRIDE + FIRST]
#ifdef PASSED
ALONE fn reach(const char *h, long i) { return (fn)(h + ((const TYPE *)(h + LEAD))[i * STRIDE + FIRST]); }
#define REACH(i) reach(header, i)
#elif defined INLINE
#define REACH(i) ((fn)(header + WORD(i)))
#else
ALONE fn reach(long i) { return (fn)(header + WORD(i)); }
#define REACH reach
#endif
int START(void)
{
	long sum = twins();
	for (long i = 0; i < N; i++) {
		fn f = REACH(i);
		sum = sum * 3 + f(i) + SAME(f);
	}
	return printf("%ld\n", sum) < 0;
}
END
# The distance OFF, an absolute symbol: as a number in code or from the GOT, and from data.
cat >absolute.c <<'END'
#include "ways.h"
int other = 3;
#ifdef STORED
__asm__(".pushsection " STORED "\n.balign 8\n.globl kept\n.hidden kept\nkept: " WORD " OFF\n.popsection");
extern const TYPE kept;
#else
#pragma GCC visibility push(default)
extern char OFF[];
#define kept (intptr_t)OFF
#endif
int START(void)
{
	long sum = twins() + h1(1) + h3(2) + h5(3);
	fn f = (fn)((uintptr_t)(FROM) SIGN kept);
	return printf("%ld %d %d %d\n", sum, f(3), SAME(f), other) < 0;
}
END
# Numbers that are nothing else.
cat >plain.c <<'END'
#include "ways.h"
#ifdef RANDOM
static unsigned numbers[256];
#endif
static const int table[] = { NUMBERS };
int other = 3;
ALONE int number(int i) { return table[i]; }
ALONE int all(void) { return h1(1) + h2(2) + h3(3) + h4(4) + h5(5) + h6(6) + h7(7) + h8(8); }
int START(void)
{
	long sum = twins() + all();
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
		sum = sum * 3 + number(i);
	return printf("%ld %d\n", sum, other) < 0;
}
END
cat >driver.c <<'END'
#include <dlfcn.h>
int main(int n, char **v)
{
	void *lib = n < 2 ? 0 : dlopen(v[1], RTLD_NOW);
	int (*run)(void) = lib ? (int (*)(void))dlsym(lib, "run") : 0;
	return run ? run() : 9;
}
END
gcc -O1 driver.c -o driver -ldl || { not_ok driver "does not build"; finish; }

# work IN FILE TO: FILE at work; its output goes to TO.  IN tells whether it is a library.
# shellcheck disable=SC2086
work() {
	local rc
	case $1 in *shared*) set -- "$1" "$2" "$3" ./driver ;; esac
	# What goes astray may run for ever.
	{ (ulimit -t 2 && exec timeout 20 $RUN ${4:-} "./$2"); } >"$3" 2>/dev/null
	rc=$?
	[ $rc = 0 ] || echo "exit status $rc" >>"$3"
	return $rc
}
# Limits that the README names: distances from etext, which moves; from functions, if there are few; lone distances.  (verify asks for
# more than one or two words.)
limits='^words/(etext|h4|main|run)/|^zeroed/(words/(start|data|image-quad)/[12]|header/long/1)|^header/(long/[12](/PASSED)?/pie|quad/1|distant)'
# judged NAME BAD: BAD is what is wrong.
judged() {
	# Other faults than those of the limits are none of them.
	if [[ $2 = *EQUAL* && $2 != *"but verify"* && $2 != *"no output"* && $1 =~ $limits ]]; then
		skip "$1" "a limit: ${2:0:100}"
	else
		check "$1" "$2" test -z "$2"
	fi
}
modes=(--icf=safe "--icf=all --gc-functions")
[ -z "$WAYS" ] || modes+=(--icf=all "--icf=all --in-place")
# try NAME IN: folds IN in all modes (by default, in two); tells of all that go wrong.
# shellcheck disable=SC2086
try() {
	local mode bad='' rc says
	work "$2" "$2" want || { not_ok "$1" "unfolded: $(tail -n 1 want)"; return; }
	for mode in "${modes[@]}"; do
		rm -f out
		"$ICFOLD" -q $mode "$2" -o out 2>log
		rc=$?
		if [ $rc != 0 ]; then
			# A refusal is one line.
			[ $rc -lt 126 ] && [ "$(grep -c '^icfold: ' log)" = 1 ] && [ ! -e out ] || bad+="; $mode: no output, and no clear refusal (exit status $rc): $(first_line log)"
			continue
		fi
		work "$2" out got
		"$ICFOLD" verify ${mode/--in-place/} "$2" out >log 2>&1
		case $? in 0) says= ;; *) says=$(tail -n 1 log | cut -c 1-100) ;; esac
		if ! cmp -s want got; then
			if [ -z "$says" ]; then bad+="; $mode: WRONG, AND VERIFY SAYS EQUAL"; else bad+="; $mode: wrong (verify objects)"; fi
			bad+=": prints $(first_line got), not $(first_line want)"
		elif [ -n "$says" ]; then
			bad+="; $mode: right, but verify objects: $says"
		fi
	done
	judged "$1" "${bad#; }"
}

# part_at FILE SECTION ADDRESS: where in the file the address is.
part_at() {
	local va off
	read -r va off _ < <(section_header "$1" "$2")
	echo $((0x$3 - 0x$va + 0x$off))
}
copy_part() { dd if="$1" of="$2" bs=1 skip="$3" seek="$4" count="$5" conv=notrunc 2>/dev/null; }
# zeroed NAME IN SECTION TABLE BYTES: IN with zeros for the table, folded; then the words as they were.  That is the output of an icfold
# that is blind to them: if it does not work, verify objects.
zeroed() {
	local name=$1 in=$2 section=$3 bytes=$5 table from to
	table=$(address_of "$in" "$4")
	[ -n "$table" ] || { not_ok "zeroed/$name" "no symbol $4"; return; }
	from=$(part_at "$in" "$section" "${table#0x}")
	cp "$in" zeros
	copy_part /dev/zero zeros 0 "$from" "$bytes"
	rm -f out
	"$ICFOLD" -q --icf=all zeros -o out 2>log || { skip "zeroed/$name" "refused: $(first_line log)"; return; }
	to=$(part_at out "$section" "${table#0x}")
	if ! "$ICFOLD" verify --icf=all zeros out >log 2>&1; then
		not_ok "zeroed/$name" "zeros: $(tail -n 1 log)"
		return
	fi
	copy_part "$in" out "$from" "$to" "$bytes"
	work "$in" "$in" want
	work "$in" out got
	if cmp -s want got; then
		skip "zeroed/$name" "works: nothing moved that the words lead to"
		return
	fi
	if "$ICFOLD" verify --icf=all "$in" out >log 2>&1; then
		judged "zeroed/$name" "VERIFY SAYS EQUAL: prints $(first_line got), not $(first_line want)"
	else
		ok "zeroed/$name"
	fi
}

# link OUT SOURCE COMPILER OPT LINKER KIND RELOCS FLAG...
link() {
	local out=$1 src=$2 cc=$3 opt=$4 ld=$5 kind=$6 relocs=$7
	shift 7
	case $kind in
	pie) set -- -fPIE -pie "$@" ;;
	nopie) set -- -fno-pie -no-pie "$@" ;;
	shared) set -- -fPIC -shared '-DSTART=__attribute__((visibility("default")))run' "$@" ;;
	esac
	[ "$relocs" = relocs ] && set -- "$@" -Wl,--emit-relocs
	[ "$cc" = gcc ] && set -- "$@" -fno-toplevel-reorder
	"$cc" "$opt" -w "-fuse-ld=$ld" -Wl,--build-id=none "$@" "$src" -o "$out" 2>log
}
# The ways of building: compiler, optimisation, linker.
if [ "$WAYS" = full ]; then
	builds=$(for cc in gcc clang; do for opt in -O1 -O2; do for ld in bfd lld gold mold; do echo "$cc $opt $ld"; done; done; done)
else
	builds=$'gcc -O2 bfd\nclang -O1 lld\ngcc -O1 gold\nclang -O2 mold'
fi
# What there is of these, and which linkers write words.
cat >probe.c <<'END'
extern const int table[];
const char text[] = "text";
TABLE
int START(void) { return table[0]; }
END
echo 'SECTIONS { .ways : { table = .; LONG(1) } } INSERT AFTER .rodata;' >probe.ld
there='' scripts='' sums=''
while read -r cc opt ld; do
	if ! have "$cc"; then
		reason="no $cc"
	elif ! link probe probe.c "$cc" "$opt" "$ld" pie relocs -DSTART=main '-DTABLE=const int table[4];'; then
		reason="no $ld: $(first_line log)"
	else
		there+="$cc $opt $ld"$'\n'
		if link probe probe.c "$cc" "$opt" "$ld" pie relocs -DSTART=main -DTABLE= -Wl,-T,probe.ld; then
			scripts+="$cc $opt $ld"$'\n'
		else
			skip "build/$cc/$opt/$ld/words" "$ld does not read such a script: $(first_line log)"
		fi
		if link probe probe.c "$cc" "$opt" "$ld" pie relocs -DSTART=main '-DTABLE=const int table[4];' -Wl,--defsym=OFF=table-text; then
			sums+="$cc $opt $ld"$'\n'
		else
			skip "build/$cc/$opt/$ld/absolute" "$ld does not subtract in --defsym: $(first_line log)"
		fi
		continue
	fi
	skip "build/$cc/$opt/$ld" "$reason"
done <<<"$builds"

# some LIST NAME: all of it, or the line that the name leads to: the same one whatever other programs there are.
some() {
	local sum
	if [ "$WAYS" = full ]; then
		echo "$1"
	else
		read -r sum _ < <(cksum <<<"$2")
		sed -n "$((sum / 8 % $(grep -c . <<<"$1") + 1))p" <<<"$1"
	fi
}

# by LINKER LIST: the ways of that linker, if not all are tried: for what the others do not show.
by() { [ "$WAYS" = full ] || grep "$1" <<<"$2"; }

# words NAME KINDS RELOCS FLAGS STATEMENTS [AFTER]: a program with words of a linker script, for each of the KINDS; with ZEROED=BYTES also
# the judgement of verify.  INPUT: what else is in their section; a linker lets the program write to a section of words alone.
words() {
	local name=$1 kinds=$2 relocs=$3 flags=$4 kind cc opt ld in
	printf 'SECTIONS { .ways : { %s . = ALIGN(8); table = .; %s } } INSERT AFTER %s;\n' "${INPUT-*(.marks)}" "$5" "${6:-.rodata}" >ways.ld
	while read -r cc opt ld; do
		[ "$cc" ] || continue
		for kind in $kinds; do
			in=words.$kind
			# shellcheck disable=SC2086
			if ! link "$in" words.c "$cc" "$opt" "$ld" "$kind" "$relocs" $flags -Wl,-T,ways.ld; then
				skip "words/$name/$kind/$relocs/$cc$opt/$ld" "$(first_line log)"
				continue
			fi
			try "words/$name/$kind/$relocs/$cc$opt/$ld" "$in"
			[ -z "${ZEROED:-}" ] || zeroed "words/$name/$kind/$relocs/$cc$opt/$ld" "$in" .ways table "$ZEROED"
		done
	done < <(some "${LINKERS:-$scripts}" "$*${INPUT-}")
}
# each STATEMENT BASE COUNT [BEFORE [BEHIND]]: the words for so many functions.
each() {
	local i
	for ((i = 1; i <= $3; i++)); do printf '%s %s(h%d%s) %s ' "${4:-}" "$1" "$i" "${2:+ - $2}" "${5:-}"; done
}
flags() { echo "-DTYPE=$1 -DFROM=$2 -DN=$3 -DSTRIDE=${4:-1} -DFIRST=${5:-0} ${6:-}"; }

# --- addresses: fixed ones, and those of a file that the loader puts elsewhere
for n in 1 2 3 8; do
	ZEROED=$((8 * n)) words "quad/$n" nopie relocs "$(flags uint64_t 0 $n)" "$(each QUAD '' $n)"
done
words long/1 nopie relocs "$(flags uint32_t 0 1)" "$(each LONG '' 1)"
words long/3 nopie relocs "$(flags uint32_t 0 3 1 0 -DNAMED)" "$(each LONG '' 3)"
words quad/inline nopie relocs "$(flags uint64_t 0 3 1 0 '-DINLINE -DNAMED')" "$(each QUAD '' 3)"
words quad/data nopie relocs "$(flags uint64_t 0 2)" "$(each QUAD '' 2)" .data
words quad/records nopie relocs "$(flags uint64_t 0 3 2 1)" "$(each QUAD '' 3 'LONG(7) LONG(9)')"
for n in 1 3 8; do
	ZEROED=$((8 * n)) words "image-quad/$n" "pie shared" relocs "$(flags uint64_t __ehdr_start $n)" "$(each QUAD '' $n)"
done
words image-long/3 pie relocs "$(flags uint32_t __executable_start 3 1 0 -DPASSED)" "$(each LONG '' 3)"
words image-quad/bare "pie shared" bare "$(flags uint64_t __ehdr_start 3)" "$(each QUAD '' 3)"

# --- distances
# Base in the script and in C; each with some number of words, as the list goes round.
counts=(1 2 3 8) turn=0
for base in 'table table' 'other &other' 'more more' 'none none' 'fixed &fixed' 'mark &mark' '__executable_start __executable_start' '_DYNAMIC _DYNAMIC' \
	'_edata _edata' 'etext etext' 'h4 h4' 'START START'; do
	for relocs in relocs bare; do
		for kind in pie nopie shared; do
			[ $relocs$kind = barenopie ] && continue # nothing moves
			read -r symbol from <<<"$base"
			[ "$kind$symbol" = sharedSTART ] && symbol=run from=run
			symbol=${symbol/START/main} from=${from/START/main}
			n=${counts[turn++ % 4]}
			read -r how named < <(case $((turn % 3)) in 0) echo "-DPASSED -DNAMED" ;; 1) echo ;; 2) echo "-DINLINE" ;; esac)
			[ -n "$WAYS" ] || [ "$kind" != shared ] || [ $((turn % 2)) = 0 ] || continue
			words "$symbol/$n${how:+/${how#-D}}" $kind $relocs "$(flags int32_t "$from" "$n" 1 0 "$how $named")" "$(each LONG "$symbol" "$n")"
		done
	done
done
for relocs in relocs bare; do
	for n in 1 2 3 8; do
		for INPUT in '*(.marks)' ''; do
			[ $n != 8 ] || [ "$INPUT" ] || [ "$WAYS" = full ] || continue
			mixed=${INPUT:+/mixed}
			LINKERS=$(grep bfd <<<"$scripts") ZEROED=$((4 * n)) words "own-place/$n$mixed" pie $relocs "$(flags int32_t '&WORD(i)' $n)" "$(each LONG . $n)"
			ZEROED=$((4 * n)) words "start/$n$mixed" pie $relocs "$(flags int32_t __executable_start $n)" "$(each LONG __executable_start $n)"
			ZEROED=$((4 * n)) words "data/$n$mixed" pie $relocs "$(flags int32_t '&other' $n)" "$(each LONG other $n)"
		done
	done
	unset INPUT
	words wide/3 pie $relocs "$(flags int64_t table 3)" "$(each QUAD table 3)"
	words wide-data/2 pie $relocs "$(flags int64_t '&other' 2)" "$(each QUAD other 2)"
	# Records with other fields.
	words record8 pie $relocs "$(flags int32_t '&other' 3 2 1)" "$(each LONG other 3 'LONG(5)')"
	words record12 pie $relocs "$(flags int32_t __executable_start 4 3 1 -DNAMED)" "$(each LONG __executable_start 4 'LONG(1000)' 'LONG(0xfffff000)')"
	words record16 pie $relocs "$(flags int64_t table 3 2 1)" "$(each QUAD table 3 'SHORT(1) BYTE(2) BYTE(3) LONG(4)')"
	# In other places.
	words in-data/3 pie $relocs "$(flags int32_t table 3)" "$(each LONG table 3)" .data
	words in-data/1 pie $relocs "$(flags int32_t __executable_start 1)" "$(each LONG __executable_start 1)" .data
	words behind-eh/2 pie $relocs "$(flags int32_t '&fixed' 2)" "$(each LONG fixed 2)" .eh_frame
done
words short/3 nopie relocs "$(flags int16_t h4 3)" "$(each SHORT h4 3)"
words short/1 pie relocs "$(flags int16_t twin_a 1)" "$(each SHORT twin_a 1)"
# Two functions, by one distance each from the other.
words pair nopie relocs "$(flags int32_t 'i?h1:h2' 2)" 'LONG(h1 - h2) LONG(h2 - h1)'

# --- distances in absolute symbols
absolute() { # NAME KIND FUNCTION BASE FLAG...: a number that may not be negative counts the other way.
	local name=$1 kind=$2 to=$3 base=$4 absolute="$*" cc opt ld
	shift 4
	while read -r cc opt ld; do
		[ "$cc" ] || continue
		if ! link "absolute.$kind" absolute.c "$cc" "$opt" "$ld" "$kind" relocs "$@" -DSIGN=+ "-Wl,--defsym=OFF=$to-$base" &&
			! link "absolute.$kind" absolute.c "$cc" "$opt" "$ld" "$kind" relocs "$@" -DSIGN=- "-Wl,--defsym=OFF=$base-$to"; then
			skip "absolute/$name/$kind/$cc$opt/$ld" "$(first_line log)"
		elif ! work "absolute.$kind" "absolute.$kind" want; then
			skip "absolute/$name/$kind/$cc$opt/$ld" "as linked, it does not work: the linker means something else"
		else
			try "absolute/$name/$kind/$cc$opt/$ld" "absolute.$kind"
		fi
	done < <(some "${LINKERS:-$sums}" "$absolute")
}
for base in 'main main' 'h4 h4' 'other &other' '__executable_start __executable_start'; do
	read -r symbol from <<<"$base"
	absolute "code/$symbol" nopie h2 "$symbol" "-DFROM=$from"
	LINKERS=$(by gold "$sums") absolute "got/$symbol" nopie h2 "$symbol" "-DFROM=$from" -DNAMED -fPIC -Wl,--no-relax
	absolute "quad/$symbol" pie h2 "$symbol" "-DFROM=$from" '-DSTORED=".data"' '-DWORD=".quad"' -DTYPE=int64_t
	absolute "long/$symbol" nopie h2 "$symbol" "-DFROM=$from" '-DSTORED=".rodata"' '-DWORD=".long"' -DTYPE=int32_t
done
absolute got/h4 pie h2 h4 -DFROM=h4 -fPIC -Wl,--no-relax
absolute quad/h4 shared h2 h4 -DFROM=h4 '-DSTORED=".data"' '-DWORD=".quad"' -DTYPE=int64_t
absolute back/main nopie h6 main -DFROM=main -DNAMED

# --- no relocations: a table behind its header
# header NAME KIND FLAGS FRONT WORDS ROW PLACE BYTES
header() {
	local name=$1 kind=$2 flags=$3 front=$4 list=$5 row=$6 place=$7 bytes=${8:-} cc opt ld in
	while read -r cc opt ld; do
		[ "$cc" ] || continue
		in=header.$kind name=header/$1/$kind/$cc$opt/$ld
		# shellcheck disable=SC2086
		if ! link "$in" header.c "$cc" "$opt" "$ld" "$kind" bare $flags "-DFRONT=\"$front\"" "-DWORDS=\"$list\"" "-DTABLE=\"$row\"" "-DPLACE=\"$place\""; then
			skip "$name" "$(grep -m 1 -E 'error|undefined' log | cut -c 1-160)"
			continue
		fi
		case ${flags##* } in -DSTRIP) strip -s "$in" ;; esac
		try "$name" "$in"
		[ -z "$bytes" ] || zeroed "$name" "$in" .rodata rows "$bytes"
	done < <(some "${LINKERS:-$there}" "$*")
}
# distances DIRECTIVE COUNT [BEFORE [BEHIND]]: from the header.
distances() {
	local i
	for ((i = 1; i <= $2; i++)); do printf '%s %s h%d - header %s\\n' "${3:+$3\\n}" "$1" "$i" "${4:+\\n$4}"; done
}
rodata='.rodata,\"a\",%progbits' front='.long 4, 100, 200, 300'
i32='-DTYPE=int32_t -DLEAD=16 -DFIRST=0 -DSTRIDE=1' i64='-DTYPE=int64_t -DLEAD=16 -DFIRST=0 -DSTRIDE=1'
for how in "" -DINLINE -DPASSED -DBY_ROWS; do
	for n in 1 2 4 8; do
		case $how.$n in -D*.8 | -DBY_ROWS.1) [ "$WAYS" = full ] || continue ;; esac
		header "long/$n${how:+/${how#-D}}" pie "$i32 -DN=$n $how" "$front" "$(distances .long $n)" table "$rodata" $((4 * n))
	done
	header "long/3${how:+/${how#-D}}/stripped" pie "$i32 -DN=3 $how -DSTRIP" "$front" "$(distances .long 3)" .Ltable "$rodata"
	header "long/4${how:+/${how#-D}}/lone-name" shared "$i32 -DN=4 -DNAMED $how" "$front" "$(distances .long 4)" .Ltable "$rodata"
	header "quad/3${how:+/${how#-D}}" pie "$i64 -DN=3 $how" "$front" "$(distances .quad 3)" table "$rodata"
done
header quad/1 shared "$i64 -DN=1" "$front" "$(distances .quad 1)" table "$rodata"
header local/4 pie "$i32 -DN=4 -DLOCAL=static" "$front" "$(distances .long 4)" table "$rodata"
header data/4 pie "$i32 -DN=4" "$front" "$(distances .long 4)" table '.data,\"aw\",%progbits'
LINKERS=$(by lld "$there") header own-section/2 pie "$i32 -DN=2" "$front" "$(distances .long 2)" table '.rows,\"a\",%progbits'
for how in "" -DPASSED -DSTRIP; do
	header "record8$how" pie "-DTYPE=int32_t -DLEAD=16 -DFIRST=1 -DSTRIDE=2 -DN=4 $how" "$front" "$(distances .long 4 '.long 5')" table "$rodata"
	header "record12$how" pie "-DTYPE=int32_t -DLEAD=16 -DFIRST=1 -DSTRIDE=3 -DN=4 $how" "$front" "$(distances .long 4 '.long 1000' '.long -4000')" table "$rodata"
	header "record16$how" shared "-DTYPE=int64_t -DLEAD=16 -DFIRST=1 -DSTRIDE=2 -DN=3 $how" "$front" "$(distances .quad 3 '.long 7, 70000')" table "$rodata"
	header "distant$how" pie "-DTYPE=int32_t -DLEAD=4096 -DFIRST=0 -DSTRIDE=1 -DN=3 $how" '.fill 1024, 4, 77' "$(distances .long 3)" table "$rodata"
	header "distant/1$how" pie "-DTYPE=int32_t -DLEAD=4096 -DFIRST=0 -DSTRIDE=1 -DN=1 $how" '.fill 512, 8, 0x1200000034' "$(distances .long 1)" table "$rodata"
done

# --- numbers that only look like that: the twins go all the same
plain() { # NAME NUMBERS
	local kind relocs cc opt ld name
	while read -r cc opt ld; do
		[ "$cc" ] || continue
		for kind in pie nopie shared; do
			for relocs in relocs bare; do
				[ $kind$relocs = nopiebare ] && continue
				name=plain/$1/$kind/$relocs/$cc$opt/$ld
				link "plain.$kind" plain.c "$cc" "$opt" "$ld" $kind $relocs "-DNUMBERS=$2" || { not_ok "$name" "$(first_line log)"; continue; }
				try "$name" "plain.$kind"
				"$ICFOLD" -q --icf=safe "plain.$kind" -o out 2>log
				check "$name/smaller" "code: $(code_bytes "plain.$kind") bytes before, $(code_bytes out) after" test "$(code_bytes out)" -lt "$(code_bytes "plain.$kind")"
			done
		done
	done < <(some "$there" "$*")
}
plain few 1,2,3
plain powers "$(for ((k = 0; k < 31; k++)); do printf '%d,%d,' $((1 << k)) $((-(1 << k))); done)"
plain checksum "$(for ((k = 1, x = 1; k < 200; k++)); do x=$(((x * 1103515245 + 12345) & 0xffffffff)) && printf '(int)%du,' $x; done)"
finish
