#!/bin/bash
# norelocs_a64.sh: programs for AArch64 that were linked without --emit-relocs, built by cross compilers and run by qemu: what no
# fixture shows, then a share of the fixtures' matrix (RELOCS=no TARGET=aarch64 matrix.sh runs all of it) and of gen_switch.py.
# SHARE=REGEX: other combinations; SEEDS="1 2": other programs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite norelocs_a64

# run_one NAME IN OUT OPTIONS...: folds IN, proves it, and compares what it prints with $base.want.
run_one() {
	local name=$1 in=$2 out=$3 mode=safe
	shift 3
	case " $* " in *--icf=all*) mode=all ;; esac
	if ! "$ICFOLD" -v "$@" "$in" -o "$out" >"$out.log" 2>&1; then
		not_ok "$name" "icfold: $(first_line "$out.log")"
	elif ! "$ICFOLD" verify --icf="$mode" "$in" "$out" >"$out.verdict" 2>&1; then
		not_ok "$name" "verify: $(grep expected "$out.verdict" | head -n 1 | cut -c 1-200)"
	elif ! run_program "$out.got" pie "./$out"; then
		not_ok "$name" "folded, it ends with $?"
	elif ! cmp -s "$base.want" "$out.got"; then
		not_ok "$name" "$(diff "$base.want" "$out.got" | sed -n 2,3p | tr '\n' ' ')"
	else
		ok "$name"
	fi
}

# run_all NAME: compactly, in place, stripped.
run_all() {
	base=$1
	if ! run_program "$1.want" pie "./$1"; then
		not_ok "$1" "unfolded, it ends with $?"
		return
	fi
	strip "$1" -o "$1.stripped"
	run_one "$1/safe" "$1" "$1.safe"
	run_one "$1/all" "$1" "$1.all" --icf=all
	run_one "$1/in-place" "$1" "$1.place" --in-place
	run_one "$1/stripped" "$1.stripped" "$1.stripped.out" --icf=all
}

# folds NAME.OUT: how many functions are folded.
folds() { "$ICFOLD" dump --groups "$1" 2>/dev/null | grep -cw folded; }

# Twins that fold, so that what stands behind them moves; `odd` is in assembler.
cat >main.c <<'END'
#include <stdio.h>
#define TWIN(name) __attribute__((noinline)) int name(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; printf("%d\n", x); return x * 3 + 1; }
TWIN(one) TWIN(two) TWIN(three) TWIN(four)
#define OTHER(name) __attribute__((noinline)) int name(int x) { for (int i = 0; i < x; i++) x += x > 77 ? -i : i; printf("%d!\n", x); return x * 5 + 2; }
OTHER(five) OTHER(six)
int odd(int x);
__attribute__((noinline)) int seven(int x) { printf("seven %d\n", x); return x ^ 21; }
__attribute__((noinline)) int eight(int x) { printf("eight %d\n", x); return x * 2 + 21; }
int (*volatile at[])(int) = { seven, eight, three };
int main(void)
{
	printf("%d\n", one(5) + two(7) + three(200) + four(3) + five(4) + six(9) + at[0](1) + at[1](2));
	for (int i = 0; i < 4; i++)
		printf("%x\n", odd(i));
	return 0;
}
END

# filler NUMBER: a function of two pages, so that what is on either side shares none.
filler() {
	cat <<-END
			.type filler$1, @function
		filler$1:
			.cfi_startproc
			.rept 2048
			add w0, w0, $1
			.endr
			ret
			.cfi_endproc
			.size filler$1, . - filler$1
	END
}

# The frame of `odd`, which calls.
cat >frame.s <<'END'
	.macro begin_odd
	.globl odd
	.type odd, @function
odd:	.cfi_startproc
	stp x29, x30, [sp, -16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	.endm
	.macro end_odd
	ldp x29, x30, [sp], 16
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size odd, . - odd
	.endm
END
# build NAME FLAGS...: main.c with NAME.s.
build() {
	local name=$1
	shift
	{ echo '	.text'; cat frame.s; filler 1; cat; filler 2; echo '	.section .note.GNU-stack,"",@progbits'; } >"$name.s"
	if gcc -O1 -fno-ipa-icf -fno-toplevel-reorder main.c "$name.s" "$@" -o "$name" >"$name.log" 2>&1; then
		run_all "$name"
	else
		not_ok "$name" "does not build: $(first_line "$name.log")"
	fi
}

# Labels in data, one table a function: the folded function jumps through the other one's.
cat >goto.c <<'END'
#include <stdio.h>
#define BYTECODE(n) __attribute__((noinline, noclone)) int n(const unsigned char *p) \
	{ static void *const t[] = { &&a, &&b, &&c, &&d }; int acc = 1; goto *t[*p++]; \
	a: acc += 3; goto *t[*p++]; b: acc *= 5; goto *t[*p++]; c: acc ^= 0x33; goto *t[*p++]; d: return acc; }
BYTECODE(one) BYTECODE(two) BYTECODE(three)
int main(void) { unsigned char p[] = { 0, 1, 2, 1, 0, 2, 3 }; printf("%d %d %d\n", one(p), two(p), three(p)); return 0; }
END
for o in -O0 -O1 -O2; do
	if gcc $o -fno-ipa-icf goto.c -o goto$o >goto.log 2>&1; then run_all goto$o; else not_ok goto$o "$(first_line goto.log)"; fi
done

# --- halves ------------------------------------------------------------------------------------------------------------------
# One path has the high half, the other the low one, as GCC writes it: the function stays, and so does all in its page.
build split <<'END'
	begin_odd
	adrp x1, seven
	cbz w0, 1f
	adrp x1, eight
	add x1, x1, :lo12:eight
	b 2f
1:	add x1, x1, :lo12:seven
2:	blr x1
	end_odd
END

# Both halves in one run: the function moves with all others.
build whole <<'END'
	begin_odd
	adrp x1, seven
	add x1, x1, :lo12:seven
	blr x1
	end_odd
END
check whole/compact "$(grep -m 1 place whole.all.log)" grep -q '^icfold: compact, references from the code' whole.all.log
check whole/folds "$(folds whole.all) folded, 4 expected" test "$(folds whole.all)" -ge 4
check whole/moves "it stays" test "$(address_of whole.all seven)" != "$(address_of whole seven)"

# Between the halves, the return address is checked: that instruction uses no register that may hold them.
for r in 16 17; do
	build signed$r <<END
	.globl odd
	.type odd, @function
odd:	.cfi_startproc
	hint 25 // paciasp
	.cfi_negate_ra_state
	stp x29, x30, [sp, -16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	adrp x$r, seven
	ldp x29, x30, [sp], 16
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	hint 29 // autiasp
	.cfi_negate_ra_state
	add x$r, x$r, :lo12:seven
	cmp x$r, x0
	cset w0, eq
	ret
	.cfi_endproc
	.size odd, . - odd
END
	check signed$r/moves "it stays" test "$(address_of signed$r.all seven)" != "$(address_of signed$r seven)"
	# Others do: pacia1716, pacib1716, autia1716, autib1716; pacm, which makes the next instruction read more.
	for hint in 8 10 12 14 39; do
		for f in signed$r signed$r.all; do
			python3 - $f $hint >hint.log 2>&1 <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at = [k for k in range(0, len(data) - 8, 4) if struct.unpack_from("<2I", data, k)[0] == 0xd50323bf and data[k + 7] == 0x91]
assert len(at) == 1
struct.pack_into("<I", data, at[0], 0xd503201f | int(sys.argv[2]) << 5)
open(sys.argv[1].replace("signed", "hint"), "wb").write(data)
END
		done
		"$ICFOLD" verify --icf=all hint$r hint$r.all >hint.verdict 2>>hint.log
		check signed$r/hint$hint "$(tail -n 1 hint.verdict) $(first_line hint.log)" grep -q 'half of an address, used in an unknown way' hint.verdict
	done
done

# A number is added to the address of a function: the sum is another one, and both stay.
build sum <<'END'
	begin_odd
	adrp x1, near
	add x1, x1, :lo12:near
	add x1, x1, 68 // far - near
	blr x1
	end_odd
	.macro twin name
	.type \name, @function
\name:	.cfi_startproc
	add w0, w0, 5
	mul w0, w0, w0
	eor w0, w0, 63
	add w0, w0, w0, lsl 3
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm
	.type near, @function
near:	.cfi_startproc
	mov w0, 3
	ret
	.cfi_endproc
	.size near, . - near
	twin alike1
	twin alike2
	twin alike3
	.type far, @function
far:	.cfi_startproc
	add w0, w0, 9
	ret
	.cfi_endproc
	.size far, . - far
	.globl keep
	.type keep, @function
keep:	.cfi_startproc
	cbz w0, alike1
	cbnz w1, alike2
	b alike3
	.cfi_endproc
	.size keep, . - keep
END

# --- switches ----------------------------------------------------------------------------------------------------------------
# A table of small entries counts from a label of its function.  Each of these functions also names a function: if a jump was not
# understood, a distance might be added to that, and the program would stay in place.  Halves behind such a jump are no pair, so the
# function stays with its page.
cat >>frame.s <<'END'
	// The switch at label 9 by index \i, which four cases follow; \b: the register that leads to the table
	.macro switch i, b
	ldrb w4, [\b, \i, uxtw]
	adr x3, 9f
	add x4, x3, w4, sxtb 2
	br x4
9:	mov w0, 5
	b 8f
7:	adrp x1, here
	add x1, x1, :lo12:here
	blr x1
	b 8f
6:	mov w0, 77
8:
	.endm
	.macro cases
	.section .rodata
cases:	.byte (9b - 9b) / 4, (7b - 9b) / 4, (6b - 9b) / 4, (7b - 9b) / 4
	.text
	.endm
	.macro named
	.type here, @function
here:	.cfi_startproc
	eor w0, w0, 15
	ret
	.cfi_endproc
	.size here, . - here
	.endm
	.macro table
	adrp x2, cases
	add x2, x2, :lo12:cases
	.endm
END
# The comparison is in front of a call that does not return; the argument, and so what a call returns, would be the index.
build no-return <<'END'
	named
	.type stop, @function
stop:	.cfi_startproc
	bl abort
	.cfi_endproc
	.size stop, . - stop
	begin_odd
	cmp w0, 3
	b.ls 1f
	bl stop
1:	table
	switch w0, x2
	cases
	end_odd
END
# Nothing compares the index, an enumeration; and a part of a register.
build enumeration <<'END'
	named
	begin_odd
	table
	switch w0, x2
	cases
	end_odd
END
build field <<'END'
	named
	begin_odd
	lsl w0, w0, 5
	ubfx w5, w0, 5, 2
	table
	switch w5, x2
	cases
	end_odd
END
# On a path that is never executed, the register holds another address.
build other-address <<'END'
	named
	begin_odd
	stp x19, x20, [sp, -16]!
	table
	mov x19, x2
	cmp w0, 3
	b.ls 1f
	adrp x19, text
	add x19, x19, :lo12:text
	mov x0, x19
	bl abort
1:	switch w0, x19
	cases
	ldp x19, x20, [sp], 16
	end_odd
	.section .rodata
text:	.asciz "not a table"
	.text
END
# The function has a cold part, and each jumps into the other.
build cold <<'END'
	named
	begin_odd
	cmp w0, 3
	b.hi odd.cold
1:	table
	switch w0, x2
	cases
	end_odd
	.section .text.unlikely,"ax",@progbits
	.type odd.cold, @function
odd.cold: .cfi_startproc
	mov w0, 2
	b 1b
	.cfi_endproc
	.size odd.cold, . - odd.cold
	.text
END
for n in no-return enumeration field other-address cold; do
	check $n/compact "$(grep -m 1 place $n.all.log)" grep -q '^icfold: compact, references from the code' $n.all.log
	check $n/folds "$(folds $n.all) folded, 4 expected" test "$(folds $n.all)" -ge 4
done
# A table that nothing ends is followed by megabytes of bytes that lead to labels of its large function, which has many such jumps:
# neither memory nor time for each byte and jump.
build long <<'END'
	named
	begin_odd
	stp x19, x20, [sp, -16]!
	mov w19, w0
	.rept 24
	.rept 150
	add w0, w0, 1
	.endr
	table
	switch w19, x2
	.rept 150
	add w0, w0, 1
	.endr
	.endr
	cases
	ldp x19, x20, [sp], 16
	end_odd
	.section .rodata
	.set byte, 0
	.rept 2000000
	.byte byte & 255
	.set byte, byte + 1
	.endr
	.text
END
check long/compact "$(grep -m 1 place long.all.log)" grep -q '^icfold: compact, references from the code' long.all.log
(ulimit -v 300000 && exec "$ICFOLD" -q --icf=all --threads=1 long -o long.small) >long.small.log 2>&1
check long/memory "$(first_line long.small.log)" cmp -s long.all long.small
# The table leads into another function: that must not move.
build elsewhere <<'END'
	named
	begin_odd
	table
	ldrb w4, [x2, w0, uxtw]
	adr x3, 9f
	add x4, x3, w4, sxtb 2
	br x4
9:	adrp x1, here
	add x1, x1, :lo12:here
	end_odd
	.type further, @function
further: .cfi_startproc
	eor w0, w0, 7
	ldp x29, x30, [sp], 16
	ret
	.cfi_endproc
	.size further, . - further
	.section .rodata
cases:	.byte (further - 9b) / 4, 0, (further - 9b) / 4, 0
	.text
END
check elsewhere/level "$(grep -m 1 compact elsewhere.all.log)" grep -q '^icfold: in place: a jump that is not understood' elsewhere.all.log

# --- data among code ---------------------------------------------------------------------------------------------------------
# Words behind a function's end, which it reads; as instructions they would call functions that move.
build table <<'END'
	.globl odd
	.type odd, @function
odd:	.cfi_startproc
	adrp x1, words
	add x1, x1, :lo12:words
	ldr w0, [x1, w0, uxtw 2]
	ret
words:	bl six
	bl eight
	bl seven
	bl five
	.cfi_endproc
	.size odd, . - odd
END
# The same, read as literals.
build literal <<'END'
	.globl odd
	.type odd, @function
odd:	.cfi_startproc
	cbz w0, 1f
	ldr w0, 2f
	ret
1:	ldr w0, 3f
	ret
2:	bl eight
3:	b seven
	.cfi_endproc
	.size odd, . - odd
END
# In front of code that nothing delimits once symbols are gone; one path has the high half, others the low one.
build island <<'END'
	.globl odd
	.type odd, @function
odd:	.cfi_startproc
	adrp x1, words
	cbz w0, 1f
	add x1, x1, :lo12:words
	ldr w0, [x1, 4]
	b inner
1:	ldr w0, [x1, :lo12:words]
	b inner
	.cfi_endproc
	.size odd, . - odd
words:	bl eight
	bl seven
	bl five
inner:	eor w0, w0, 63
	ret
END

# --- kinds of output ---------------------------------------------------------------------------------------------------------
while read -r name flags; do
	# shellcheck disable=SC2086
	build "$name" $flags <<<"$(sed -n '/^\tbegin_odd/,/^\tend_odd/p' whole.s)"
done <<'END'
kind.protected -mbranch-protection=standard
kind.pages4 -Wl,-z,max-page-size=4096
kind.fixed -fno-pie -no-pie
kind.static -static
END
check kind.fixed/level "$(grep -m 1 place kind.fixed.safe.log)" grep -q '^icfold: in place: its addresses are fixed' kind.fixed.safe.log

# --- a share of what other tests do ------------------------------------------------------------------------------------------
RELOCS=no TARGET=aarch64 ONLY=${SHARE:-'^switches gcc O0 (pie|so) |^c_plain clang Os staticpie |^init gcc O0 nopie '} \
	bash "$TESTS/suites/program/matrix.sh" >result
take matrix result
if have python3; then
	# shellcheck disable=SC2086
	python3 "$TESTS/judges/gen_switch.py" --check "$ICFOLD" "$WORK" ${SEEDS:-2 6} >result
	take '' result
else
	skip switches "no python3"
fi
finish
