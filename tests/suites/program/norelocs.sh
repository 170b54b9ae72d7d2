#!/bin/bash
# norelocs.sh: programs that were linked without --emit-relocs.
#
#   matrix    a share of the combinations of matrix.sh
#   same      each fixture's PIE: the result is what the same link with relocations gives; in place, nothing moves
#   fool      programs that are made to mislead the inference (fixtures/fool): they run as before, and what must stay stays
#   mutants   jump tables and thunks of good outputs, broken: `icfold verify` notices each
#   distances words of tables in data, made to lead to what moved: `icfold verify` notices each
#   switches  random programs full of switches (gen_switch.py)
# PARTS="fool same" runs some.  ONLY=REGEX limits fool to names that match.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
FOOL=$FIXTURES/fool

# --- programs made to fool the inference ----------------------------------------------------------------------------
directive() { # FILE NAME: what a file says of itself
	sed -n "s/^ \* $2: *\(.*[^ ]\) *\(\*\/\)\{0,1\}$/\1/p; s/^\/\* $2: *\(.*\)/\1/p" "$1" | sed 's/ *\*\/$//' | tr '\n' ' '
}

# map_of FILE NAME: "OLD NEW" of a unit, from what --map wrote.
map_of() { awk -v name="$2" '$4 == name { print $1, $3 }' "$1"; }

# fool_one FILE COMPILER OPT
fool_one() {
	local src=$FOOL/$1 cc=$2 opt=$3 name=fool/${1%.*}.$2.$3 d mode in opts n was now bad before=$failures
	d=$WORK/fool.$1.$2.$3
	mkdir -p "$d"
	if [ -n "$(directive "$src" only)" ] && [[ " $(directive "$src" only) " != *" ${cc%-*} "* ]]; then
		return
	fi
	if ! have "$cc"; then
		skip "$name" "no $cc"
		return
	fi
	# shellcheck disable=SC2046
	if ! {
		for part in before after; do
			"$cc" -O2 -fPIE -w -DPART=$part -c "$FOOL/twins.c" -o "$d/$part.o" || exit 1
		done
		"$(compiler_of "$cc" "$src")" "-$opt" -fPIE -w $(directive "$src" flags) -c "$src" -o "$d/x.o" &&
			"$(compiler_of "$cc" "$src")" -pie $(directive "$src" ldflags) "$d/before.o" "$d/x.o" "$d/after.o" -o "$d/in"
	} >"$d/log" 2>&1; then
		not_ok "$name" "does not build: $(first_line "$d/log")"
		return
	fi
	if ! timeout 300 "$d/in" >"$d/expected" 2>&1; then
		not_ok "$name" "unfolded: exit status not 0"
		return
	fi
	strip "$d/in" -o "$d/stripped"
	for mode in safe all in-place stripped; do
		in=$d/in opts="--icf=$mode"
		[ $mode = in-place ] && opts="--icf=all --in-place"
		[ $mode = stripped ] && opts="--icf=all" in=$d/stripped
		# shellcheck disable=SC2086
		if ! timeout 300 "$ICFOLD" -q --stats=json $opts --map="$d/map" "$in" -o "$d/out" >"$d/stats" 2>"$d/log"; then
			not_ok "$name/$mode" "icfold: $(first_line "$d/log")"
			continue
		fi
		{ timeout 300 "$d/out" >"$d/got" 2>&1 || echo "exit status $?" >>"$d/got"; } 2>/dev/null
		cmp -s "$d/expected" "$d/got" || not_ok "$name/$mode" "prints something else: $(diff "$d/expected" "$d/got" | sed -n 2,3p | tr '\n' ' ')"
		bad=$("$ICFOLD" verify "${opts%% *}" "$in" "$d/out" 2>&1 | grep -E '^[a-z][a-z ,()._]*: ' | grep -vE '^((symbolized|resolved): .* 0 wrong|the same bytes: )' | head -n 1)
		[ -z "$bad" ] || not_ok "$name/$mode" "verify: $bad"
		case "$mode $(directive "$src" level)" in
		[sa]*" compact ") grep -q '"in_place": 1' "$d/stats" && not_ok "$name/$mode" "in place" ;;
		"safe in place " | "all in place ") grep -q '"in_place": 1' "$d/stats" || not_ok "$name/$mode" "not in place" ;;
		esac
		[ $mode = stripped ] && continue
		for n in $(directive "$src" stays); do
			read -r was now < <(map_of "$d/map" "$n")
			[ -n "$was" ] || not_ok "$name/$mode" "no function $n"
			[ "$was" = "$now" ] || not_ok "$name/$mode" "$n did not stay: it was at $was and is at $now"
		done
		grep -q '"in_place": 1' "$d/stats" && continue
		for n in $(directive "$src" moves); do
			read -r was now < <(map_of "$d/map" "$n")
			[ "$was" != "$now" ] || not_ok "$name/$mode" "$n was not moved"
		done
	done
	[ "$failures" = "$before" ] && ok "$name"
	[ -n "${KEEP:-}" ] || rm -rf "$d"
}

if [ "${1:-}" = --fool ]; then
	fool_one "$2" "$3" "$4"
	exit 0
fi

# --- the result with relocations and the one without ----------------------------------------------------------------
# section_of FILE NAME: its bytes.
section_of() { objcopy -O binary -j "$2" "$1" "$1.section" 2>/dev/null && cat "$1.section"; }
section_size() { readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] //' | awk -v n="$2" '$1 == n { print $5 }'; }
differ() { ! cmp -s <(section_of "$1" "$3") <(section_of "$2" "$3"); }

# same_one FIXTURE COMPILER LINKER
same_one() {
	local fixture=$1 cc=$2 ld=$3 name=same/$1.$2.$3 d=$WORK/same.$1.$2.$3 s bad a b before=$failures at in exact
	load_recipe "$fixture"
	mkdir -p "$d"
	if ! have "$cc"; then
		skip "$name" "no $cc"
		return
	fi
	if ! { compile_fixture "$cc" -O2 pie "$d/obj" && link_fixture "$cc" "$ld" pie "$d/obj" "$d/relocs" && RELOCS=no link_fixture "$cc" "$ld" pie "$d/obj" "$d/plain"; } \
		>"$d/log" 2>&1; then
		bad=$(linker_limit "$d/log")
		if [ -n "$bad" ]; then skip "$name" "$bad"; else not_ok "$name" "does not build: $(first_line "$d/log")"; fi
		return
	fi
	for s in relocs plain; do
		if ! "$ICFOLD" -q "$d/$s" -o "$d/$s.out" 2>"$d/log"; then
			not_ok "$name" "icfold: $(first_line "$d/log")"
			return
		fi
	done
	# Assembler is pinned where it cannot be proved; sections that a program can delimit stay.
	exact=yes
	case $fixture in asm | hotcold | init) exact=no ;; esac
	differ "$d/relocs" "$d/plain" .text && exact=no
	if [ $exact = yes ]; then
		for s in .text .rodata .eh_frame; do
			differ "$d/relocs" "$d/plain" $s && continue
			differ "$d/relocs.out" "$d/plain.out" $s && not_ok "$name" "$s is not what it is with relocations"
		done
	elif [ "$fixture" != asm ]; then
		a=$((0x$(section_size "$d/relocs" .text) - 0x$(section_size "$d/relocs.out" .text)))
		b=$((0x$(section_size "$d/plain" .text) - 0x$(section_size "$d/plain.out" .text)))
		[ $((b * 100)) -ge $((a * 95)) ] || not_ok "$name" "$b bytes saved; $a with relocations"
	fi
	"$ICFOLD" verify "$d/plain" "$d/plain.out" >"$d/log" 2>&1 || not_ok "$name" "verify: $(grep ': ' "$d/log" | head -n 1)"
	# In place: the same addresses, and the program runs.
	if "$ICFOLD" -q --in-place "$d/plain" -o "$d/place" 2>"$d/log"; then
		[ -e "$d/plain.plugin.so" ] && cp "$d/plain.plugin.so" "$d/place.plugin.so"
		bad=$(check_transcripts pie "$d/place" 0)
		[ -z "$bad" ] || not_ok "$name/in-place" "$bad"
		"$ICFOLD" verify "$d/plain" "$d/place" >"$d/log" 2>&1 || not_ok "$name/in-place" "verify: $(grep ': ' "$d/log" | head -n 1)"
		for in in plain place; do nm "$d/$in" | grep -i ' [tiw] ' | sort >"$d/$in.nm"; done
		cmp -s "$d/plain.nm" "$d/place.nm" || not_ok "$name/in-place" "addresses changed: $(diff "$d/plain.nm" "$d/place.nm" | sed -n 2,3p | tr '\n' ' ')"
	else
		not_ok "$name/in-place" "icfold: $(first_line "$d/log")"
	fi
	# A few addresses: the same names and lines as in the output of the link with relocations, in place the same as in the input.
	if [ $exact = yes ]; then
		for at in $(nm "$d/plain.out" | awk 'tolower($2) == "t" { print "0x" $1 }' | sort -u | awk 'NR % 7 == 3 && n++ < 8'); do
			cmp -s <("$ICFOLD" symbolize --obj="$d/plain.out" "$at" 2>&1) <("$ICFOLD" symbolize --obj="$d/relocs.out" "$at" 2>&1) ||
				not_ok "$name/symbolize" "other answers about $at"
		done
	fi
	[ "$failures" = "$before" ] && ok "$name"
	[ -n "${KEEP:-}" ] || rm -rf "$d"
}

# --- what the options say --------------------------------------------------------------------------------------------
options_part() {
	local d=$WORK/options
	load_recipe switches
	mkdir -p "$d"
	if ! { compile_fixture gcc "-O2" pie "$d/obj" && RELOCS=no link_fixture gcc bfd pie "$d/obj" "$d/pie" && compile_fixture gcc "-O2" nopie "$d/obj" &&
		RELOCS=no link_fixture gcc bfd nopie "$d/obj" "$d/nopie" && link_fixture gcc bfd pie "$d/obj" "$d/relocs"; } >"$d/log" 2>&1; then
		not_ok options "does not build: $(first_line "$d/log")"
		return
	fi
	"$ICFOLD" --require-compact "$d/nopie" -o "$d/out" >"$d/log" 2>"$d/err"
	check options/require-compact/status "exit status is not 1" test $? = 1
	check options/require-compact/reason "$(first_line "$d/err")" grep -q 'nothing may move: its addresses are fixed' "$d/err"
	check options/require-compact/no-output "there is an output" test ! -e "$d/out"
	check options/require-compact/pie "refused" "$ICFOLD" -q --require-compact "$d/pie" -o "$d/out"
	"$ICFOLD" -v "$d/pie" -o "$d/out" >"$d/log" 2>&1
	check options/level/compact "$(first_line "$d/log")" grep -q '^icfold: compact, references from the code' "$d/log"
	"$ICFOLD" -v "$d/relocs" -o "$d/out" >"$d/log" 2>&1
	check options/level/relocations "$(first_line "$d/log")" grep -q '^icfold: compact, references from relocations' "$d/log"
	"$ICFOLD" -v "$d/nopie" -o "$d/out" >"$d/log" 2>&1
	check options/level/fixed "$(first_line "$d/log")" grep -q '^icfold: in place: its addresses are fixed' "$d/log"
	"$ICFOLD" -v --in-place "$d/pie" -o "$d/out" >"$d/log" 2>&1
	check options/level/in-place "$(first_line "$d/log")" grep -q '^icfold: in place' "$d/log"
}

# Call stacks through folded functions, compact and in place: the names that gdb has for the input's.
stack_part() {
	local d=$WORK/stack out opts want got at name first
	load_recipe unwind
	mkdir -p "$d"
	if ! { compile_fixture gcc "-O2 -g -fno-inline" pie "$d/obj" && RELOCS=no link_fixture gcc bfd pie "$d/obj" "$d/in"; } >"$d/log" 2>&1; then
		not_ok stack "does not build: $(first_line "$d/log")"
		return
	fi
	if ! have gdb; then
		skip stack "no gdb"
		return
	fi
	# "ADDRESS NAME" of each frame of the program's own; it is loaded where gdb has always loaded it.
	gdb -batch -nx -ex 'set startup-with-shell off' -ex 'set width 0' -ex 'break *stop_here' -ex run -ex 'ignore 1 5' -ex continue -ex "print/x \$pc" -ex bt "$d/in" 2>/dev/null |
		sed -nE 's/^\$[0-9]+ = 0x(5555[0-9a-f]+)/\1 stop_here/p; s/^#[1-9][0-9]* +0x0*(5555[0-9a-f]+) in ([^ ]+) .*/\1 \2/p' |
		while read -r at name; do printf '%016x %s\n' $((0x$at - 0x555555554000)) "$name"; done >"$d/frames"
	want=$(awk '{ print $2 }' "$d/frames" | tr '\n' ' ')
	check stack/gdb "gdb's frames: $want" test "$(wc -l <"$d/frames")" -ge 4
	for out in compact place; do
		opts=--icf=all
		[ $out = place ] && opts=--in-place
		if ! "$ICFOLD" -q $opts --map="$d/map" "$d/in" -o "$d/$out" 2>"$d/log"; then
			not_ok "stack/$out" "icfold: $(first_line "$d/log")"
			continue
		fi
		# Return addresses belong to the function that the call is in.
		first=1
		while read -r at _; do
			awk -v at="$at" -v first=$first '
				function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
				{ o = hex($1); a = hex(at); if (a - !first >= o && a - !first < o + hex($2)) printf "0x%x\n", hex($3) + a - o }' "$d/map"
			first=0
		done <"$d/frames" >"$d/addresses"
		got=$("$ICFOLD" symbolize --stack --no-inlines -p -s --obj="$d/$out" <"$d/addresses" 2>&1 | sed -E 's/ at .*//; s/ .*//' | grep . | tr '\n' ' ')
		check "stack/$out" "$got instead of $want" test "$got" = "$want"
	done
}

# --- mutants ----------------------------------------------------------------------------------------------------------
# The places of jump tables are taken from a link with relocations that is the same otherwise.
mutants_part() {
	local d=$WORK/mutants mutate=$BUILD/tests/mutate kind i n ld fixture cc out what rc bad
	mkdir -p "$d"
	if [ ! -x "$mutate" ]; then
		not_ok mutants "no program at $mutate"
		return
	fi
	for what in "switches gcc bfd" "switches clang gold" "demo clang mold" "hotcold gcc bfd"; do
		read -r fixture cc ld <<<"$what"
		load_recipe "$fixture"
		if ! have "$cc" || ! { compile_fixture "$cc" -O2 pie "$d/obj.$fixture.$cc" && link_fixture "$cc" "$ld" pie "$d/obj.$fixture.$cc" "$d/$fixture.$ld.relocs" &&
			RELOCS=no link_fixture "$cc" "$ld" pie "$d/obj.$fixture.$cc" "$d/$fixture.$ld"; } >"$d/log" 2>&1; then
			skip "mutants/$fixture.$cc.$ld" "does not build: $(first_line "$d/log")"
		elif differ "$d/$fixture.$ld" "$d/$fixture.$ld.relocs" .text || differ "$d/$fixture.$ld" "$d/$fixture.$ld.relocs" .rodata; then
			skip "mutants/$fixture.$cc.$ld" "the link with relocations is not the same"
		else
			"$ICFOLD" -q "$d/$fixture.$ld" -o "$d/$fixture.$ld.out" && echo "$d/$fixture.$ld $d/$fixture.$ld.out" >>"$d/good"
			"$ICFOLD" -q --in-place "$d/$fixture.$ld" -o "$d/$fixture.$ld.place" && echo "$d/$fixture.$ld $d/$fixture.$ld.place" >>"$d/good"
		fi
	done
	while read -r kind; do
		n=0 bad=
		while read -r in out; do
			for i in 0 1 2; do
				what=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$mutate" "$kind" $i 3 "$in.relocs" "$out" "$d/new" 2>/dev/null) || continue
				n=$((n + 1))
				"$ICFOLD" verify "$in" "$d/new" >"$d/log" 2>&1
				rc=$?
				[ $rc = 1 ] || bad="$bad ${out##*/} ($what, exit status $rc)"
			done
		done <"$d/good"
		if [ -n "$bad" ]; then
			not_ok "mutants/$kind" "survived in$(cut -c 1-300 <<<"$bad")"
		else
			check "mutants/$kind" "no file has such a place" test $n != 0
		fi
	done <<-END
	table-entry
	table-entry-not-rewritten
	table-entries-swapped
	table-entry-zero
	word-behind-table
	thunk-target
	thunks-swapped
	thunk-traps
	thunk-calls
	thunk-body-to-nop
	END
}

# Distances in data of both files lead to a function that moved: verify objects to each.
address_of() { nm "$1" | awk -v name="$2" '$3 == name { print "0x" $1; exit }'; } # FILE SYMBOL
# put_word FILE ADDRESS SIZE VALUE [SECTION]: writes a word into .rodata.
put_word() {
	local va off i bytes=
	read -r va off < <(readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] //' | awk -v s="${5:-.rodata}" '$1 == s { print "0x" $3, "0x" $4 }')
	for ((i = 0; i < $3; i++)); do bytes+=$(printf '\\x%02x' $(($4 >> (8 * i) & 255))); done
	printf '%b' "$bytes" | dd of="$1" bs=1 seek=$(($2 - va + off)) conv=notrunc 2>/dev/null
}
distances_part() {
	local d=$WORK/distances src symbol at from size unit mode was now to rc table f i
	mkdir -p "$d"
	for src in packed based unbounded; do
		if ! { gcc -O2 -fPIE -w -DPART=before -c "$FOOL/twins.c" -o "$d/before.o" && gcc -O2 -fPIE -w -DPART=after -c "$FOOL/twins.c" -o "$d/after.o" &&
			gcc -O2 -fPIE -fno-toplevel-reorder -w -c "$FOOL/$src.c" -o "$d/x.o" && gcc -pie "$d/before.o" "$d/x.o" "$d/after.o" -o "$d/$src"; } >"$d/log" 2>&1; then
			not_ok "distances/$src" "does not build: $(first_line "$d/log")"
			return
		fi
	done
	# What no assembler writes, but a tool behind the linker may: words in coarser units from their table, and from the file's first byte.
	cat >"$d/filled.c" <<-'SOURCE'
		#include "fool.h"
		#define F(n, k) NOINLINE int n(int x) { return x * k + 1; }
		F(p0, 3) F(p1, 5) F(p2, 7) F(p3, 9) F(p4, 11) F(p5, 13) F(p6, 15) F(p7, 17) F(twin, 5)
		__asm__(".section .rodata\n.balign 16\n.globl scaled\n.hidden scaled\nscaled: .fill 8, 4, 0\n.globl image\n.hidden image\n"
			"image: .fill 8, 4, 0\n.globl rest\n.hidden rest\nrest: .long 0x12345678\n.text\n");
		extern const int32_t scaled[], image[];
		extern const char __ehdr_start[];
		int (*const keep[])(int) = { p0, p1, p2, p3, p4, p5, p6, p7 };
		static NOINLINE void *sum(const void *from, int64_t away) { return (void *)((uintptr_t)from + (uintptr_t)away); }
		int main(void)
		{
			BEGIN;
			for (volatile int i = 0; i < 8; i++) {
				show("scaled", ((int (*)(int))sum(scaled, scaled[i] * 4L))(i));
				show("image", ((int (*)(int))sum(__ehdr_start, image[i]))(i));
			}
			show("twin", twin(4));
			END;
			return 0;
		}
	SOURCE
	if ! gcc -O2 -fPIE -w -fno-toplevel-reorder "-I$FOOL" -c "$d/filled.c" -o "$d/x.o" 2>"$d/log" || ! gcc -pie "$d/before.o" "$d/x.o" "$d/after.o" -o "$d/filled" 2>"$d/log"; then
		not_ok distances/filled "does not build: $(first_line "$d/log")"
		return
	fi
	for i in 0 1 2 3 4 5 6 7; do
		put_word "$d/filled" $(($(address_of "$d/filled" scaled) + 4 * i)) 4 $((($(address_of "$d/filled" p$i) - $(address_of "$d/filled" scaled)) / 4))
		put_word "$d/filled" $(($(address_of "$d/filled" image) + 4 * i)) 4 $(($(address_of "$d/filled" p$i)))
	done
	"$d/filled" >"$d/want"
	for mode in safe all; do
		"$ICFOLD" -q --icf=$mode "$d/filled" -o "$d/out" 2>"$d/log" && "$d/out" >"$d/got" 2>&1
		check "distances/filled.$mode" "$(first_line "$d/log") $(diff "$d/want" "$d/got" | sed -n 2,3p)" cmp -s "$d/want" "$d/got"
	done
	# Program, table, place of the word in it, place that it counts from (in the table, or a symbol), size, bytes of its unit.
	while read -r src table at from size unit; do
		for mode in safe all; do
			"$ICFOLD" -q --icf=$mode --map="$d/map" "$d/$src" -o "$d/out" 2>"$d/log" || { not_ok "distances/$src" "icfold: $(first_line "$d/log")"; continue; }
			read -r was now < <(map_of "$d/map" twins_after)
			check "distances/$src.$table+$at.$mode/moves" "twins_after stayed at $now" test "$was" != "$now"
			"$ICFOLD" verify --icf=$mode "$d/$src" "$d/out" >"$d/log" 2>&1 || not_ok "distances/$src.$mode" "verify: $(first_line "$d/log")"
			symbol=$(address_of "$d/$src" "$table")
			case $from in *TABLE) to=$((0x$was - $(address_of "$d/$src" _${from}_))) ;; IMAGE) to=$((0x$was)) ;; *) to=$((0x$was - symbol - from)) ;; esac
			for f in in new; do cp "$d/$([ $f = in ] && echo "$src" || echo out)" "$d/$f" && put_word "$d/$f" $((symbol + at)) "$size" $((to / unit)); done
			"$ICFOLD" verify --icf=$mode "$d/in" "$d/new" >"$d/log" 2>&1
			rc=$?
			check "distances/$src.$table+$at.$mode" "exit status $rc" test $rc = 1
			check "distances/$src.$table+$at.$mode/why" "$(first_line "$d/log")" grep -Eq 'distances at 0x.*expected twins_after|distance: \.rodata\+0x.*, of twins_after' "$d/log"
		done
	done <<-END
	packed calls 6 10 4 1
	packed tags 8 12 4 1
	packed wides 3 3 8 1
	packed from_start 25 20 4 1
	packed from_end 27 40 4 1
	packed behind 1 5 4 1
	based words 4 0 4 1
	based wide 8 0 8 1
	based halves 4 0 2 1
	based offsets 8 GLOBAL_OFFSET_TABLE 8 1
	filled scaled 8 0 4 4
	filled image 12 IMAGE 4 1
	unbounded doors 4 0 4 1
	END
}

# The same from bytes that are not understood, and from tables that only these name: by a branch, to a function, to a switch's cases.
opaque_part() {
	local d=$WORK/opaque mode was now room kind section rc f k
	local -a to
	mkdir -p "$d"
	if ! { gcc -O2 -fPIE -w -DPART=before -c "$FOOL/twins.c" -o "$d/before.o" && gcc -O2 -fPIE -w -DPART=after -c "$FOOL/twins.c" -o "$d/after.o" &&
		gcc -O2 -fPIE -w -c "$FOOL/reach.c" -o "$d/x.o" && gcc -pie "$d/before.o" "$d/x.o" "$d/after.o" -o "$d/in"; } >"$d/log" 2>&1; then
		not_ok opaque "does not build: $(first_line "$d/log")"
		return
	fi
	mapfile -t to < <(objdump -d "$d/in" | sed -n '/<twins_after>:$/,/^$/s/^ *\([0-9a-f]*\):.*/0x\1/p' | head -n 4)
	for mode in safe all; do
		"$ICFOLD" -q --icf=$mode --map="$d/map" "$d/in" -o "$d/out" 2>"$d/log" || { not_ok "opaque/$mode" "icfold: $(first_line "$d/log")"; continue; }
		read -r was now < <(map_of "$d/map" twins_after)
		check "opaque/$mode/moves" "twins_after stayed at $now" test "$was" != "$now"
		check "opaque/$mode/equal" "verify objects" "$ICFOLD" verify -q --icf=$mode "$d/in" "$d/out"
		for kind in branch word row data; do
			room=$(($(address_of "$d/in" other_neighbour) - 32)) section=.text
			[ $kind = data ] && room=$(($(address_of "$d/in" _IO_stdin_used) + 4)) section=.rodata
			for f in in out; do
				cp "$d/$f" "$d/$f.new"
				case $kind in
				branch) put_word "$d/$f.new" $room 1 $((0xe8)) $section; put_word "$d/$f.new" $((room + 1)) 4 $((to[0] - room - 5)) $section ;;
				word) put_word "$d/$f.new" $((room + 3)) 4 $((to[0] - room - 3)) $section ;;
				*) for k in 0 1 2 3; do put_word "$d/$f.new" $((room + 4 * k)) 4 $((to[k] - room)) $section; done ;;
				esac
			done
			"$ICFOLD" verify --icf=$mode "$d/in.new" "$d/out.new" >"$d/log" 2>&1
			rc=$?
			check "opaque/$mode/$kind" "exit status $rc" test $rc = 1
			check "opaque/$mode/$kind/why" "$(first_line "$d/log")" grep -q 'not understood.*\(moved\|twins_after\|0x'"${to[0]#0x}"'\)\|distance: .*twins_after' "$d/log"
		done
	done
}

# Zeros before a function that nothing delimits, and that only data leads to: they may be read as the beginning of an instruction that
# swallows the function's first bytes.
zeros_part() {
	local d=$WORK/zeros n ld mode out bad
	mkdir -p "$d"
	cat >"$d/m.c" <<-'END'
		#include <stdio.h>
		#define N __attribute__((noinline, noclone))
		volatile int w;
		N int a1(int x) { w += x; return x * 3 + w; }
		N int a2(int x) { w += x; return x * 3 + w; }
		N int a3(int x) { w += x; return x * 3 + w; }
		N int b1(int x) { w += x; printf("%d\n", x); return x * 5 + w; }
		N int b2(int x) { w += x; printf("%d\n", x); return x * 5 + w; }
		N int last(int x) { w -= x; return x * 7 + w; }
		extern int (*table[])(int);
		int main(void)
		{
			int s = table[0](1) + table[1](2) + a1(1) + a2(2) + a3(3) + b1(4) + b2(5) + last(6);
			printf("%d\n", s);
			return 0;
		}
	END
	for n in 1 2 3 5 13; do
		cat >"$d/g.s" <<-END
			.text
			.type first, @function
			first: lea 1(%rdi), %eax
			ret
			.zero $n
			.type second, @function
			second: jmp last
			ret
			.section .data.rel.local, "aw"
			.globl table
			table: .quad first, second
			.section .note.GNU-stack, "", @progbits
		END
		for ld in bfd mold; do
			for mode in safe all; do
				out=$d/out
				if ! gcc -O2 -fPIE -pie -fuse-ld=$ld -s "$d/g.s" "$d/m.c" -o "$d/in" >"$d/log" 2>&1; then
					skip "zeros/$n.$ld" "does not link: $(first_line "$d/log")"
					break
				fi
				bad=
				"$d/in" >"$d/want"
				"$ICFOLD" -q --icf=$mode "$d/in" -o "$out" 2>"$d/log" || bad=$(first_line "$d/log")
				[ -n "$bad" ] || { "$out" >"$d/got" && cmp -s "$d/want" "$d/got"; } || bad="prints something else"
				[ -n "$bad" ] || "$ICFOLD" verify --icf=$mode "$d/in" "$out" >"$d/log" 2>&1 || bad="verify: $(tail -n 2 "$d/log" | head -n 1)"
				if [ -n "$bad" ]; then not_ok "zeros/$n.$ld.$mode" "$bad"; else ok "zeros/$n.$ld.$mode"; fi
			done
		done
	done
}

# A table of distances with addresses in the middle of its entries that code looks at: they end no table.
middle_part() {
	local d=$WORK/middle mode bad
	mkdir -p "$d"
	cat >"$d/a.s" <<-'END'
			.text
			.macro fun name
			.globl \name
			.type \name,@function
			.p2align 4
		\name:
			.cfi_startproc
			.endm
			.macro end name
			.cfi_endproc
			.size \name, . - \name
			.endm
			.macro twin name
			fun \name
			lea (%rdi,%rdi,2), %eax
			xor $0x1234567, %eax
			imul $77, %eax, %eax
			sub $1, %eax
			ret
			end \name
			.endm
			twin a1
			fun sw
			cmp $7, %edi
			ja 9f
			lea table(%rip), %rdx
			mov %edi, %edi
			movslq (%rdx,%rdi,4), %rax
			add %rdx, %rax
			jmp *%rax
		1:	mov $1, %eax
			ret
		2:	mov $2, %eax
			ret
		3:	mov $3, %eax
			ret
		9:	xor %eax, %eax
			ret
		4:	mov $4, %eax
			ret
			end sw
			twin a2
			fun peek
			lea table+10(%rip), %rax
			movzbl (%rax), %eax
			movzbl table+5(%rip), %ecx
			mov $1, %eax
			ret
			end peek
			.section .rodata
			.p2align 2
		table:	.long 1b-table, 2b-table, 3b-table, 4b-table, 4b-table, 1b-table, 4b-table, 4b-table
			.zero 4
			.section .note.GNU-stack,"",@progbits
	END
	cat >"$d/m.c" <<-'END'
		#include <stdio.h>
		int a1(int), a2(int), sw(unsigned), peek(void);
		int main(void) { printf("%d\n", a1(1) + a2(2) + peek()); for (unsigned i = 0; i < 9; i++) printf("%d\n", sw(i)); return 0; }
	END
	if ! gcc -O2 -fPIE -pie -s "$d/a.s" "$d/m.c" -o "$d/in" >"$d/log" 2>&1; then
		not_ok middle "does not build: $(first_line "$d/log")"
		return
	fi
	"$d/in" >"$d/want"
	for mode in safe all; do
		bad=
		"$ICFOLD" -q --icf=$mode "$d/in" -o "$d/out" 2>"$d/log" || bad=$(first_line "$d/log")
		[ -n "$bad" ] || { "$d/out" >"$d/got" && cmp -s "$d/want" "$d/got"; } || bad="prints something else"
		[ -n "$bad" ] || "$ICFOLD" verify --icf=$mode "$d/in" "$d/out" >"$d/log" 2>&1 || bad="verify: $(tail -n 2 "$d/log" | head -n 1)"
		if [ -n "$bad" ]; then not_ok "middle/$mode" "$bad"; else ok "middle/$mode"; fi
	done
}

if [ "${1:-}" = --same ]; then
	same_one "$2" "$3" "$4"
	exit 0
fi

need_tool norelocs
make_work
always_fold
make_driver || { not_ok norelocs "cannot build the driver"; finish; }
PARTS=${PARTS:-matrix same fool mutants distances opaque switches zeros middle}
# part NAME: is it wanted?
part() { [[ " $PARTS " == *" $1 "* ]]; }
# Lines of what ran elsewhere, under names of their own.
take() { sed -E "s#^(ok|not ok|skip) #\\1 ${1:+$1/}#" "$2"; grep -q '^not ok' "$2" && failures=$((failures + 1)); }

if part matrix; then
	# Both compilers, all linkers, O0, O2 and Os, all kinds of output.
	RELOCS=no ONLY=${MATRIX_ONLY:-'^(switches|c_plain) .* (pie|so|staticpie) |^(asm|recur) .* (nopie|static) '} bash "$TESTS/suites/program/matrix.sh" >"$WORK/result"
	take matrix "$WORK/result"
fi
if part same; then
	all_fixtures | awk 'BEGIN { split("gcc bfd,clang gold,gcc lld,clang mold", w, ",") } { print $1, w[NR % 4 + 1] }' |
		xargs -P "$JOBS" -L 1 bash "$0" --same >"$WORK/result"
	take '' "$WORK/result"
	options_part
	stack_part
fi
part mutants && mutants_part
part distances && distances_part
part opaque && opaque_part
part zeros && zeros_part
part middle && middle_part
if part switches; then
	if have python3; then
		# The first that something was wrong with, each in a way of its own.
		echo 1 5 12 21 26 52 60 119 130 211 246 419 | xargs -P "$JOBS" -n 6 python3 "$TESTS/judges/gen_switch.py" --check "$ICFOLD" "$WORK" >"$WORK/result"
		take '' "$WORK/result"
	else
		skip switches "no python3"
	fi
fi
case " $PARTS " in *" fool "*)
	(cd "$FOOL" && ls) | grep -E '\.(c|cc)$' | grep -v '^twins\.c$' | grep -E -- "${ONLY:-.}" |
		while read -r f; do printf '%s gcc O2\n%s clang O2\n' "$f" "$f"; done |
		xargs -P "$JOBS" -L 1 bash "$0" --fool >"$WORK/result"
	cat "$WORK/result"
	grep -q '^not ok' "$WORK/result" && failures=$((failures + 1))
	;;
esac
finish
