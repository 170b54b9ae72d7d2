#!/bin/bash
# distances.sh: distances that the assembler wrote among code, and that have no relocation.
#
# A stub jumps to the sum of such a word and a place that the stub computes.  Nothing else leads to its target, which may not move
# therefore, although two functions in front of it are folded.  Each stub is judged twice: as icfold folds the program, and as an
# icfold folds it that does not look at these words.  The latter must break the program, and the sound verifier must say so.
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
need_tool distances
make_work
cd "$ROOT" || exit 1
. "$TESTS/lib/plant.sh"
plant distances/plant icf/refs/known 's/if (w == 0)/if (true)/' || finish

# The functions around a stub; `target` is not next to it, and not as near as that another rule of unknown bytes keeps it.
cat >"$WORK/frame.s" <<'END'
	.section .note.GNU-stack, "", %progbits
	.macro	small name, number
	function \name
	step	\number
	done	\name
	.endm
	.text
	twin	gone_a
	twin	gone_b
	small	before, 30
	function target
.Ltarget:
	step	31
	done	target
	small	behind, 32
	small	neighbour, 33
	function stub
END
cat "$TESTS/lib/a64.inc" - >"$WORK/aarch64.s" <<'END'
	.macro	step number
	add	x0, x0, #\number
	eor	x0, x0, #7
	ret
	.endm
	.macro	go word, width
	\width	x16, \word
1:	adr	x17, 1b
	add	x16, x16, x17
	br	x16
	nop
	nop
	.endm
END
cat >"$WORK/x86_64.s" <<'END'
	.macro	function name
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, %function
\name:
	.endm
	.macro	done name
	.size	\name, . - \name
	.endm
	.macro	step number
	lea	\number(%rdi), %rax
	xor	$7, %rax
	ret
	.endm
	.macro	twin name
	function \name
	mov	%rdi, %rax
	.rept	7
	lea	(%rax,%rax,4), %rax
	xor	$255, %rax
	.endr
	ret
	done	\name
	.endm
	.macro	go word, load
	\load	\word(%rip), %rax
	lea	1f(%rip), %rdx
1:	add	%rdx, %rax
	jmp	*%rax
	.byte	6, 6, 6
	.endm
END
main_of gone_a gone_b before behind neighbour stub >"$WORK/main.c"

# works PROGRAM: it prints what the unfolded one prints.
works() { { $RUN "$1" >"$WORK/got" 2>&1; } 2>/dev/null && cmp -s "$WORK/want" "$WORK/got"; }
verdict() { "$ICFOLD" verify "$WORK/in" "$1" >"$WORK/log" 2>&1; echo $?; }

# judge MACHINE NAME, with a stub on stdin
judge() {
	local name=distances/$1/$2
	{ cat "$WORK/$1.s" "$WORK/frame.s" -; echo "	done stub"; } >"$WORK/stub.s"
	if ! $CC "$WORK/main.c" "$WORK/stub.s" -O1 -fPIE -pie -Wl,--emit-relocs -o "$WORK/in" 2>"$WORK/log" || ! $RUN "$WORK/in" >"$WORK/want"; then
		not_ok "$name" "does not build or run: $(first_line "$WORK/log")"
	elif ! "$ICFOLD" -q --allow-growth "$WORK/in" -o "$WORK/out" 2>"$WORK/log" || ! "$WORK/plant" -q --allow-growth "$WORK/in" -o "$WORK/wrong" 2>"$WORK/log"; then
		not_ok "$name" "icfold: $(first_line "$WORK/log")"
	else
		check "$name/folds" "gone_b stays" eval '"$ICFOLD" dump --groups "$WORK/out" | grep -q "folded .* gone_b"'
		check "$name/runs" "the folded program breaks" works "$WORK/out"
		check "$name/equal" "verify: $(first_line "$WORK/log")" test "$(verdict "$WORK/out")" = 0
		check "$name/breaks" "the program works without the rule" eval '! works "$WORK/wrong"'
		check "$name/seen" "verify calls the broken program equal" test "$(verdict "$WORK/wrong")" = 1
	fi
}

if [ "$(uname -m)" = x86_64 ]; then
	CC=gcc RUN=
	judge x86_64 eight <<-'END'
		go 2f, mov
		.p2align 3
		2: .quad .Ltarget - 1b
	END
	judge x86_64 uneven <<-'END'
		go 2f, mov
		.p2align 3
		.byte 6
		2: .quad .Ltarget - 1b
		.byte 6
	END
	judge x86_64 four <<-'END'
		go 2f, movslq
		.p2align 3
		2: .long .Ltarget - 1b
		.byte 6, 6
	END
	judge x86_64 large <<-'END'
		go 2f, mov
		.fill 400, 1, 6
		.p2align 3
		2: .quad .Ltarget - 1b
	END
fi
bad=$(use_target aarch64)
[ -z "$bad" ] || { skip distances/aarch64 "$bad"; finish; }
use_target aarch64
CC=$WORK/tools/gcc
# The form of BFD's and gold's stubs for calls over more than 4 GiB.
judge aarch64 eight <<-'END'
	go 2f, ldr
	.p2align 3
	2: .quad .Ltarget - 1b
END
judge aarch64 uneven <<-'END'
	adr x16, 2f
	ldr x16, [x16]
	1: adr x17, 1b
	add x16, x16, x17
	br x16
	nop
	.byte 1, 2
	2: .quad .Ltarget - 1b
	.byte 1, 2, 3, 4, 5, 6
END
judge aarch64 four <<-'END'
	go 2f, ldrsw
	.p2align 3
	2: .word .Ltarget - 1b, 0
END
judge aarch64 large <<-'END'
	go 2f, ldr
	.rept 100
	nop
	.endr
	.p2align 3
	2: .quad .Ltarget - 1b
END
# More than 4 KiB: words count from the last place before them.  That the code loads from one does not make it such a place.
judge aarch64 huge <<-'END'
	go 2f, ldr
	ldr x16, 3f
	3: .quad 0
	.rept 1200
	nop
	.endr
	.p2align 3
	2: .quad .Ltarget - 1b
END
finish
