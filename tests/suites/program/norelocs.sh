#!/bin/bash
# norelocs.sh: programs that were linked without --emit-relocs, judged by their own work and by the same link with relocations.
#
#   matrix    a share of the combinations of matrix.sh
#   same      each fixture's PIE: the result is what the same link with relocations gives; in place, nothing moves
#   switches  random programs full of switches (gen_switch.py)
#   zeros     zeros in front of a function that nothing delimits: the function is not read from a wrong first byte
#   middle    a table of distances, with addresses in the middle of its entries: these end no table
#   chance    bytes that code reads by an index and that look like a distance into a function that nobody calls
#   exchange  calls of what was exchanged with memory, which are no calls of sums
#   landing   a jump table that leads into the middle of a part that begins with a landing pad
#   shapes    tables of distances to functions in each shape, which no code reads (gen_shapes.py; for AArch64, too)
# PARTS="same zeros" runs some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/elf.sh
. "$TESTS/lib/elf.sh"

# --- the result with relocations and the one without ----------------------------------------------------------------
# same_one FIXTURE COMPILER LINKER
same_one() {
	local fixture=$1 cc=$2 ld=$3 name=same/$1.$2.$3 d=$WORK/same.$1.$2.$3 s bad a b before=$failures at in exact
	load_recipe "$fixture"
	fixture_fits || { skip "$name" "has no sources for this machine"; return; }
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
	case $fixture in asm | hotcold | init | unused) exact=no ;; esac
	sections_differ "$d/relocs" "$d/plain" .text && exact=no
	if [ $exact = yes ]; then
		for s in .text .rodata .eh_frame; do
			sections_differ "$d/relocs" "$d/plain" $s && continue
			sections_differ "$d/relocs.out" "$d/plain.out" $s && not_ok "$name" "$s is not what it is with relocations"
		done
	elif [ "$fixture" != asm ]; then
		a=$(($(section_size "$d/relocs" .text) - $(section_size "$d/relocs.out" .text)))
		b=$(($(section_size "$d/plain" .text) - $(section_size "$d/plain.out" .text)))
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
		# A return address belongs to the function that holds the call.
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

# Zeros before a function that nothing delimits and only data refers to.  A decoder may read the zeros as an instruction that
# includes the function's first bytes.
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
# Bytes that the code reads by an index, and that, taken for a distance, lead into a function that nobody calls.
chance_part() {
	local d=$WORK/chance level bad
	mkdir -p "$d"
	cat >"$d/a.c" <<-'END'
		#include <stdio.h>
		int f1(int a) { for (int i = 0; i < a; i++) printf("%d\n", a); return a * 17 + 3; }
		int f2(int a) { for (int i = 0; i < a; i++) printf("%d\n", a); return a * 17 + 3; }
		/* Nothing leads to this function. */
		__attribute__((used)) static int unused(int a) { for (int i = 0; i < a; i++) { printf("%d ", a); __asm__ volatile("middle: nop"); } return a * 5; }
		/* Bytes which, as a distance, lead into `unused`. */
		__asm__(".section .rodata\n.balign 32\nchance: .long middle - chance, 0x1020304, 0, 0\n.text");
		extern const unsigned char chance[16] __attribute__((visibility("hidden")));
		int kind(int n, unsigned i)
		{
			int c = i < 16 ? chance[i] : 0;
			switch (n) {
			case 0: return c + f1(1);
			case 1: return c * 3 + printf("one\n");
			case 2: return c ^ 77;
			case 3: return f2(c & 3);
			case 4: return printf("four %d\n", c);
			case 5: return c - 9;
			case 6: puts("six"); return 6;
			}
			return f2(2);
		}
		int main(int n, char **v) { (void)v; int s = 0; for (int i = 0; i < 9; i++) s += kind(i, n * i); return s == 7; }
	END
	for level in -O0 -O1 -O2; do
		if ! gcc $level -fPIE -pie -s -fno-ipa-icf "$d/a.c" -o "$d/in" >"$d/log" 2>&1; then
			not_ok "chance/$level" "does not build: $(first_line "$d/log")"
			continue
		fi
		bad=
		"$ICFOLD" -q "$d/in" -o "$d/out" 2>"$d/log" || bad=$(first_line "$d/log")
		[ -n "$bad" ] || { "$d/in" >"$d/want"; "$d/out" >"$d/got"; cmp -s "$d/want" "$d/got"; } || bad="prints something else"
		[ -n "$bad" ] || "$ICFOLD" verify "$d/in" "$d/out" >"$d/log" 2>&1 || bad="verify: $(grep -m 1 expected "$d/log")"
		if [ -n "$bad" ]; then not_ok "chance/$level" "$bad"; else ok "chance/$level"; fi
	done
}

# In a large program a lone word that looks like a distance to a function pins it only if code calls sums.  What was exchanged with
# memory was there before, and is no sum.
exchange_part() {
	local d=$WORK/exchange how taken n
	mkdir -p "$d"
	for how in 'xchg %rax, handler(%rip)' 'lock xadd %rax, handler(%rip)' 'lock cmpxchg %rcx, handler(%rip)' 'add handler(%rip), %rax'; do
		{
			printf '.text\n.globl main\nmain: .cfi_startproc\nsub $8, %%rsp\nxor %%eax, %%eax\nxor %%ecx, %%ecx\n%s\ntest %%rax, %%rax\nje 1f\ncall *%%rax\n1: xor %%eax, %%eax\nadd $8, %%rsp\nret\n.cfi_endproc\n' "$how"
			printf '.macro function name, n\n.p2align 4\n.globl \\name\n.type \\name, @function\n\\name: .cfi_startproc\nlea \\n(%%rdi), %%eax\nret\n.cfi_endproc\n.size \\name, .-\\name\n.endm\n'
			for n in $(seq 400); do echo "function f$n, $((n / 2))"; done
			printf 'function lonely, 7\n.section .rodata\n.p2align 4\n.globl number\nnumber: .long lonely - ., 0, 0, 0\n.zero 4000000\n.data\nhandler: .quad 0\n.section .note.GNU-stack\n'
		} >"$d/a.s"
		if ! gcc -pie "$d/a.s" -o "$d/in" >"$d/log" 2>&1; then
			not_ok "exchange/$how" "does not build: $(first_line "$d/log")"
			continue
		fi
		"$ICFOLD" -v -v --icf=all --allow-growth "$d/in" -o "$d/out" 2>"$d/log"
		taken=$(grep -c '^icfold: lonely: within reach' "$d/log")
		case $how in
		add*) check "exchange/$how" "the word is not seen" [ "$taken" = 1 ] ;;
		*) check "exchange/$how" "$(grep -m 1 lonely "$d/log")" [ "$taken" = 0 ] ;;
		esac
	done
}

# Half of a function begins with a landing pad, and the first entry of a jump table, which alone leads to this half, into its middle.
landing_part() {
	local d=$WORK/landing mode bad
	mkdir -p "$d"
	cat >"$d/a.s" <<-'END'
			.text
			.globl sw
			.type sw, @function
		sw:	.cfi_startproc
			cmp $3, %edi
			ja 9f
			lea table(%rip), %rdx
			mov %edi, %edi
			movslq (%rdx,%rdi,4), %rax
			add %rdx, %rax
			jmp *%rax
		1:	mov $1, %eax
			ret
		3:	mov $3, %eax
			ret
		9:	xor %eax, %eax
			ret
			.cfi_endproc
			.size sw, . - sw
			.section .text.unlikely, "ax"
			.type sw.cold, @function
		sw.cold:
			.cfi_startproc
			.cfi_personality 0x9b, DW.ref.__gcc_personality_v0
			.cfi_lsda 0x1b, exceptions
			mov $9, %eax
			ret
		2:	mov $2, %eax
			ret
		4:	mov $4, %eax
			ret
			.cfi_endproc
			.size sw.cold, . - sw.cold
			.section .gcc_except_table, "a"
		exceptions: .byte 0xff, 0xff, 1, 4, 0, 1, 0, 0
			.section .rodata
			.p2align 2
		table:	.long 2b-table, 1b-table, 3b-table, 4b-table
			.hidden DW.ref.__gcc_personality_v0
			.weak DW.ref.__gcc_personality_v0
			.section .data.rel.local.DW.ref.__gcc_personality_v0,"awG",@progbits,DW.ref.__gcc_personality_v0,comdat
			.align 8
		DW.ref.__gcc_personality_v0: .quad __gcc_personality_v0
			.section .note.GNU-stack,"",@progbits
	END
	cat >"$d/m.c" <<-'END'
		#include <stdio.h>
		__attribute__((section(".text.unlikely"))) int a1(int a) { for (int i = 0; i < a; i++) printf("%d\n", a); return a * 17 + 3; }
		__attribute__((section(".text.unlikely"))) int a2(int a) { for (int i = 0; i < a; i++) printf("%d\n", a); return a * 17 + 3; }
		int sw(unsigned);
		int main(int n, char **v) { (void)v; printf("%d\n", a1(n) + a2(n)); for (unsigned i = 0; i < 6; i++) printf("%d\n", sw(i)); return 0; }
	END
	if ! gcc -O2 -fno-ipa-icf -fPIE -pie -s "$d/m.c" "$d/a.s" -lgcc_eh -lgcc_s -o "$d/in" >"$d/log" 2>&1; then
		not_ok landing "does not build: $(first_line "$d/log")"
		return
	fi
	"$d/in" >"$d/want"
	for mode in safe all; do
		bad=
		"$ICFOLD" -q --icf=$mode "$d/in" -o "$d/out" 2>"$d/log" || bad=$(first_line "$d/log")
		[ -n "$bad" ] || { "$d/out" >"$d/got" && cmp -s "$d/want" "$d/got"; } || bad="prints something else"
		[ -n "$bad" ] || "$ICFOLD" verify --icf=$mode "$d/in" "$d/out" >"$d/log" 2>&1 || bad="verify: $(grep -m 1 expected "$d/log")"
		if [ -n "$bad" ]; then not_ok "landing/$mode" "$bad"; else ok "landing/$mode"; fi
	done
}
# Code refers to addresses in the middle of a table's entries: such addresses do not end the table.
middle_part() {
	local d=$WORK/middle mode bad
	mkdir -p "$d"
	cat >"$d/a.s" <<-'END'
			.include "functions.inc"
			.globl sw, peek
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
	END
	cat >"$d/m.c" <<-'END'
		#include <stdio.h>
		int a1(int), a2(int), sw(unsigned), peek(void);
		int main(void) { printf("%d\n", a1(1) + a2(2) + peek()); for (unsigned i = 0; i < 9; i++) printf("%d\n", sw(i)); return 0; }
	END
	if ! gcc -O2 -fPIE -pie -s "-Wa,-I$TESTS/lib" "$d/a.s" "$d/m.c" -o "$d/in" >"$d/log" 2>&1; then
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
x86_only norelocs norelocs_a64
make_work
always_fold
make_driver || { not_ok norelocs "cannot build the driver"; finish; }
PARTS=${PARTS:-matrix same switches zeros middle chance exchange landing shapes}

if part_wanted matrix; then
	# Both compilers, all linkers, O0, O2 and Os, all kinds of output.
	RELOCS=no ONLY=${MATRIX_ONLY:-'^(switches|c_plain) .* (pie|so|staticpie) |^(asm|recur) .* (nopie|static) '} bash "$TESTS/suites/program/matrix.sh" >"$WORK/result"
	take matrix "$WORK/result"
fi
if part_wanted same; then
	all_fixtures | awk 'BEGIN { split("gcc bfd,clang gold,gcc lld,clang mold", w, ",") } { print $1, w[NR % 4 + 1] }' |
		xargs -P "$JOBS" -L 1 bash "$0" --same >"$WORK/result"
	take '' "$WORK/result"
	options_part
	stack_part
fi
part_wanted zeros && zeros_part
part_wanted middle && middle_part
part_wanted chance && chance_part
part_wanted exchange && exchange_part
part_wanted landing && landing_part
if part_wanted shapes; then
	if have python3; then
		prefixes=(-)
		have aarch64-linux-gnu-ld && prefixes+=(aarch64-linux-gnu-)
		python3 "$TESTS/judges/gen_shapes.py" "$ICFOLD" "$WORK" "${prefixes[@]}" >"$WORK/result" 2>"$WORK/log" ||
			echo "not ok shapes: $(tail -n 1 "$WORK/log")" >>"$WORK/result"
		take '' "$WORK/result"
	else
		skip shapes "no python3"
	fi
fi
if part_wanted switches; then
	if have python3; then
		# Seeds that once failed, each for another reason.
		echo 1 5 12 21 26 52 60 119 130 211 246 419 | xargs -P "$JOBS" -n 6 python3 "$TESTS/judges/gen_switch.py" --check "$ICFOLD" "$WORK" >"$WORK/result"
		take '' "$WORK/result"
	else
		skip switches "no python3"
	fi
fi
finish
