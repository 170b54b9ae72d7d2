#!/bin/bash
# astray.sh: numbers that lie elsewhere than what they name.  Tables are addressed with a bias, pointers to functions hold tags in their
# high bits or count from elsewhere, and code adds to addresses in many ways.  All that is C or a few lines of assembler; the programs are
# linked so that code is next to data, folded in every mode, and must do what they did.
# TARGET=aarch64: the C programs for that machine.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/elf.sh
. "$TESTS/lib/elf.sh"
# shellcheck source=tests/lib/plant.sh
. "$TESTS/lib/plant.sh"
start_suite astray
always_fold

# Twins in front of what is of interest, and behind it, so that it would move.
cat >twins.h <<'END'
#include <stdint.h>
#include <stdio.h>
#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone, no_icf))
#endif
static int seen[8];
#define TWIN(n) ALONE int n(int x) { for (int i = 0; i < (x & 3); i++) x = x * 5 + seen[x & 7]; seen[x & 7] ^= x & 15; return x + 17; }
TWIN(twin_a) TWIN(twin_b) TWIN(twin_c)
#define END_TWINS TWIN(twin_d) TWIN(twin_e)
END
# A table whose first 100 numbers nobody needs is addressed as if it had them.
cat >bias.c <<'END'
#include "twins.h"
static const int table[40] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31, 32, 33, 34, 45, 56, 67, 78, 89, 90 };
static const int *volatile kept = table + BIAS;
ALONE int look(long i) { return table[i + BIAS] + table[i + BIAS + 3]; }
ALONE int look_kept(long i) { return kept[i]; }
END_TWINS
int main(void)
{
	long sum = twin_a(1) + twin_b(2) + twin_c(3) + twin_d(4) + twin_e(5);
	for (long i = 0; i < 10; i++)
		sum = sum * 3 + look(i - BIAS) + look_kept(i - BIAS);
	return printf("%ld\n", sum) < 0;
}
END
# Pointers with tags.
cat >tag.c <<'END'
#include "twins.h"
KIND ALONE int one(int x) { return x * 7 + 1; }
END_TWINS
KIND ALONE int two(int x) { return x * 9 + 2; }
static uintptr_t pointer[] = { (uintptr_t)one + TAG, (uintptr_t)two + TAG };
uintptr_t *volatile p = pointer;
int main(void)
{
	long sum = twin_a(1) + twin_b(2) + twin_c(3) + twin_d(4) + twin_e(5);
	for (int i = 0; i < 2; i++)
		sum = sum * 3 + ((int (*)(int))(p[i] - TAG))(i);
	return printf("%ld\n", sum + one(4) + two(5)) < 0;
}
END

# try NAME IN: folds IN in all modes.  RUN has words.
# shellcheck disable=SC2086
try() {
	local mode bad=
	$RUN ./"$2" >want 2>&1 || { not_ok "$1" "unfolded: exit status not 0"; return; }
	for mode in --icf=safe --icf=all "--icf=all --in-place" "--icf=all --gc-functions"; do
		if ! "$ICFOLD" -q $mode "$2" -o out 2>log; then
			[[ $MACHINE$mode = aarch64*gc-functions ]] && continue # needs relocations there
			bad="$mode: $(first_line log)"
			break
		fi
		{ $RUN ./out; } >got 2>&1
		cmp -s want got || { bad="$mode: prints $(first_line got), not $(first_line want)"; break; }
		"$ICFOLD" verify ${mode/--in-place/} "$2" out >log 2>&1 || { bad="$mode: verify: $(tail -n 1 log)"; break; }
	done
	check "$1" "$bad" test -z "$bad"
}
# link NAME SOURCE COMPILER KIND LINKER RELOCS FLAG...: a program.
link() {
	local out=$1 src=$2 cc=$3 kind=$4 ld=$5 relocs=$6 pic=-fPIE
	shift 6
	[ "$kind" = -pie ] || pic=-fno-pie
	[ "$relocs" = relocs ] && set -- "$@" -Wl,--emit-relocs
	[ "$cc" = gcc ] && pic="$pic -fno-toplevel-reorder"
	# shellcheck disable=SC2086
	"$cc" -O2 -w $pic "$kind" "-fuse-ld=$ld" "$@" "$src" -o "$out" 2>log && return
	if grep -qE 'invalid linker name|cannot find .ld.|unable to find|unrecognized.*-fuse-ld' log; then skip "$out" "no $ld"; else not_ok "$out" "$(first_line log)"; fi
	return 1
}

for cc in gcc clang; do
	have $cc || { skip "$cc" "no $cc"; continue; }
	# gold has .rodata right behind .text, lld and mold have it in front; the bias leads from one into the other.
	for place in "gold -no-pie -100" "gold -pie -100" "bfd -no-pie -100 -Wl,-z,noseparate-code" "bfd -pie -100 -Wl,-z,noseparate-code" "lld -no-pie 1400" "lld -pie 1400" "mold -no-pie 1250" "mold -pie 1250" \
		"gold -no-pie -60" "gold -no-pie -40" "lld -pie 1300"; do
		read -r ld kind bias more <<<"$place"
		# shellcheck disable=SC2086
		link "bias.$cc.$ld.$kind.$bias" bias.c $cc "$kind" "$ld" relocs "-DBIAS=($bias)" $more && try "bias/$cc/$ld/$kind/$bias" "bias.$cc.$ld.$kind.$bias"
	done
	# Functions that others know, and functions of the file's own, which have no symbol in relocations.
	for tag in '1UL<<48' '1UL<<63' '0x55UL<<56' 0x1000000 0x1000 -4096L 32; do
		for how in "-pie relocs bfd" "-pie relocs lld" "-no-pie relocs bfd" "-no-pie relocs gold" "-pie bare bfd" "-no-pie bare bfd"; do
			read -r kind relocs ld <<<"$how"
			for static in '' static; do
				# Without relocations, or without a symbol in them, nothing tells what a number in other code means, or close to it.
				case $relocs$static.$tag in bare*0x1000* | bare*-4096L | bare*.32 | relocsstatic.0x1000 | relocsstatic.-4096L | relocsstatic.32) continue ;; esac
				name=tag.$cc.$kind.$relocs.$ld.$tag.${static:-global}
				link "$name" tag.c $cc "$kind" "$ld" "$relocs" "-DTAG=($tag)" "-DKIND=$static" && try "${name//.//}" "$name"
			done
		done
	done
done

# --- sums -------------------------------------------------------------------------------------------------------------------
# `test` reaches the function `to` by a distance from `from` that the assembler resolved; no relocation tells.  Twins lie between them.
cat >sums.inc <<'END'
	.macro function name
	.p2align 4
	.globl \name
	.hidden \name
	.type \name, %function
\name:	.cfi_startproc
	.endm
	.macro done name
	.cfi_endproc
	.size \name, . - \name
	.endm
END
case $MACHINE in
x86_64)
	cat >>sums.inc <<'END'
	.macro plus name, n
	function \name
	lea \n(%rdi), %eax
	ret
	done \name
	.endm
	.macro twin name
	function \name
	lea 7(%rdi,%rdi,2), %eax
	xor $85, %eax
	add $9, %eax
	imul $77, %eax
	ret
	done \name
	.endm
END
	# Distances up to 127 and beyond; DIST is the distance.
	sums='and lea from(%rip), %rax; and $-16, %rax; add $DIST, %rax; jmp *%rax
xor lea from(%rip), %rax; xor $1, %rax; dec %rax; add $DIST, %rax; jmp *%rax
bts lea from(%rip), %rax; bts $0, %rax; add $DIST-1, %rax; jmp *%rax
rotated lea from(%rip), %rax; rol $8, %rax; ror $8, %rax; add $DIST, %rax; jmp *%rax
bswap lea from(%rip), %rcx; bswap %rcx; bswap %rcx; add $DIST, %rcx; jmp *%rcx
not lea from(%rip), %rax; not %rax; sub $DIST, %rax; not %rax; jmp *%rax
neg lea from(%rip), %rax; neg %rax; sub $DIST, %rax; neg %rax; jmp *%rax
xchg lea from(%rip), %rcx; xchg %rcx, %rax; add $DIST, %rax; jmp *%rax
xadd mov $DIST, %eax; lea from(%rip), %rdx; xadd %rax, %rdx; jmp *%rdx
adc lea from(%rip), %rax; mov $DIST, %ecx; stc; adc %rcx, %rax; dec %rax; jmp *%rax
sbb lea from(%rip), %rax; mov $-DIST, %rcx; clc; sbb %rcx, %rax; jmp *%rax
sub lea from(%rip), %rax; mov $-DIST, %ecx; movslq %ecx, %rcx; sub %rcx, %rax; jmp *%rax
pushed lea from(%rip), %rax; push %rax; pop %rcx; add $DIST, %rcx; jmp *%rcx
loop lea from(%rip), %rcx; mov $DIST, %edx; 1: inc %rcx; dec %edx; jnz 1b; jmp *%rcx
own 1: lea 1b(%rip), %rax; mov $(to - 1b), %ecx; add %rcx, %rax; jmp *%rax
number lea from(%rip), %rax; mov $DIST, %ecx; add %rcx, %rax; jmp *%rax'
	;;
*)
	cat >>sums.inc <<'END'
	.macro plus name, n
	function \name
	add x0, x0, #\n
	ret
	done \name
	.endm
	.macro twin name
	function \name
	add x0, x0, x0, lsl #2
	eor x0, x0, #255
	add x0, x0, x0, lsl #3
	eor x0, x0, #7
	ret
	done \name
	.endm
END
	sums='post adr x1, from; ldr w2, [x1], #(DIST); br x1
pre adr x1, from; ldr w2, [x1, #(DIST)]!; br x1
pair adr x1, from; ldp x2, x3, [x1], #(DIST); br x1
link mov x9, x30; bl 8f; 8: add x1, x30, #(to - 8b); mov x30, x9; br x1
own 8: adr x1, 8b; mov x2, #(to - 8b); add x1, x1, x2; br x1
reversed adr x1, from; mov x2, #-(DIST); sub x2, x2, x1; neg x2, x2; br x2
and adr x1, from; and x1, x1, #-8; add x1, x1, #(DIST); br x1
number adr x1, from; mov x2, #(DIST); add x1, x1, x2; br x1
literal ldr x2, 9f; adr x1, from; add x1, x1, x2; br x1; .p2align 3; 9: .quad DIST
literal4 ldr w2, 9f; adr x1, from; add x1, x1, x2; br x1; .p2align 3; 9: .word DIST'
	;;
esac
cat >sums.c <<'END'
#include <stdio.h>
#define F(n) extern __attribute__((visibility("hidden"))) int n(int);
F(test) F(same) F(from) F(to) F(twin_a) F(twin_b) F(twin_c) F(twin_d)
int main(void)
{
	return printf("%d %d %d %d %d\n", test(3), same(3), from(4), to(5), twin_a(1) + twin_b(2) + twin_c(3) + twin_d(4)) < 0;
}
END
while read -r name code; do
	for pie in -pie -no-pie; do
		for relocs in relocs bare; do
			# Without relocations and with fixed addresses, nothing moves; and numbers are addresses.
			{
				cat sums.inc
				printf '\t.text\n\ttwin twin_a\n\tfunction test\n%s\n\tdone test\n' "${code//DIST/(to - from)}"
				# Its twin, in another place, goes elsewhere.
				printf '\tplus behind_test, 17\n\ttwin twin_b\n\tplus from, 5\n\ttwin twin_c\n\tfunction same\n%s\n\tdone same\n\ttwin twin_d\n\tplus to, 33\n' "${code//DIST/(to - from)}"
				echo '	.section .note.GNU-stack, "", %progbits'
			} >sums.s
			flags=("-Wl,--emit-relocs")
			[ $relocs = relocs ] || flags=()
			pic=-fPIE
			[ $pie = -pie ] || pic=-fno-pie
			gcc -O1 $pic sums.c sums.s $pie "${flags[@]}" -o sums 2>log || { not_ok "sums/$name" "$(first_line log)"; continue; }
			try "sums/$name/$pie/$relocs" sums
		done
	done
done <<<"$sums"

# --- a folder that does not know: verify does
ROOT_SUITE=$WORK
# unknown NAME FILE SED REGEX IN: an icfold with that fault breaks IN; verify says why.
unknown() {
	local name=$1 in=$5
	[ -x "$in" ] || { skip "unknown/$name" "no $in"; return; }
	cd "$ROOT" && plant "unknown/$name" "$2" "$3"
	cd "$ROOT_SUITE" || return
	[ -x "$name" ] || return
	"./$name" -q --allow-growth --icf=all "$in" -o wrong 2>log || { not_ok "unknown/$name" "$(first_line log)"; return; }
	# shellcheck disable=SC2086
	check "unknown/$name/breaks" "the program works as before" test "$($RUN ./"$in" 2>&1)" != "$({ $RUN ./wrong; } 2>&1)"
	"$ICFOLD" verify --icf=all "$in" wrong >log 2>&1
	check "unknown/$name" "$(tail -n 1 log)" grep -q "$4" log
}
PATH=${PATH#"$WORK/tools:"}
moved='expected .* where it was, found that it moved'
unknown data icf/refs/astray 's/return icf_in_exec(prog, value);/return false;/' "address: .*$moved" bias.gcc.gold.-no-pie.-60
unknown code icf/refs/astray 's/return !u || .*/return false;/' "address: .* is 0x1000000[0-9a-f]*: $moved" 'tag.gcc.-pie.relocs.bfd.1UL<<48.global'
unknown section icf/refs/astray 's/return !icf_in_exec(prog, value) .*/return false;/' "address: .*$moved" 'tag.gcc.-pie.relocs.bfd.1UL<<48.static'
unknown bare icf/infer/infer 's/^\tjudge_outside(prog);/;/' 'expected all functions where they were' 'tag.gcc.-pie.bare.bfd.1UL<<63.global'
finish
