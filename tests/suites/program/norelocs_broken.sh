#!/bin/bash
# norelocs_broken.sh: good outputs of programs that were linked without --emit-relocs, broken on purpose: verify notices each.
#
#   mutants   jump tables and thunks, broken by tests/mutate
#   distances words of tables in data, made to lead to a function that moved
#   opaque    the same words in bytes that are not understood, and in tables that only such bytes name
# PARTS="mutants opaque" runs some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/elf.sh
. "$TESTS/lib/elf.sh"
# shellcheck source=tests/lib/fool.sh
. "$TESTS/lib/fool.sh"
PARTS=${PARTS:-mutants distances opaque}

# --- mutants ----------------------------------------------------------------------------------------------------------
# A link with relocations, whose code is the same, gives the places of jump tables.
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
		elif sections_differ "$d/$fixture.$ld" "$d/$fixture.$ld.relocs" .text || sections_differ "$d/$fixture.$ld" "$d/$fixture.$ld.relocs" .rodata; then
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

# In the data of both files, a distance is made to lead to a function that moved: verify must object.
distances_part() {
	local d=$WORK/distances src symbol at from size unit mode was now to rc table f i
	mkdir -p "$d"
	for src in distance/packed distance/based code/unbounded; do
		if ! build_fool gcc "$FOOL/$src.c" "$d" "$d/${src##*/}" -fno-toplevel-reorder >"$d/log" 2>&1; then
			not_ok "distances/$src" "does not build: $(first_line "$d/log")"
			return
		fi
	done
	# Words that no assembler writes, but a tool behind the linker may: in units of more than one byte, from their table and from the
	# file's first byte.
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
	if ! build_fool gcc "$d/filled.c" "$d" "$d/filled" -fno-toplevel-reorder >"$d/log" 2>&1; then
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

# The same in bytes that are not understood, and in tables that only such bytes name: a branch, a distance to a function, distances
# to a switch's cases.
opaque_part() {
	local d=$WORK/opaque mode was now room kind section rc f k
	local -a to
	mkdir -p "$d"
	if ! build_fool gcc "$FOOL/code/reach.c" "$d" "$d/in" >"$d/log" 2>&1; then
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

need_tool norelocs
make_work
always_fold
part_wanted mutants && mutants_part
part_wanted distances && distances_part
part_wanted opaque && opaque_part
finish
