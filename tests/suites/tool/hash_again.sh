#!/bin/bash
# hash_again.sh: icfold-format(5), HASHES, says enough for a second implementation: tests/judges/rehash.py, which shares no code with icfold,
# computes the same hashes of a program in assembly language.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool hash_again
JUDGE=$(readlink -f "$(dirname "$0")/../../judges/rehash.py")
make_work
cd "$WORK" || exit 1
have python3 || { skip hash-again "python3 is not installed"; finish; }
[ "$(uname -m)" = x86_64 ] || { skip hash-again "the program is for x86-64"; finish; }
for t in gcc objdump readelf; do have $t || { skip hash-again "$t is not installed"; finish; }; done

# Calls, imports with and without a slot, numbers, equal tables at two places, strings, records with addresses, variables, circles of two
# functions, twice, and of one.
cat >s.s <<'END'
	.macro FUNC name
	.section .text
	.globl \name
	.type \name, @function
	.p2align 4
\name:	.cfi_startproc
	.endm
	.macro ENDF name
	ret
	.cfi_endproc
	.size \name, .-\name
	.endm
	.macro GET name, what
	FUNC \name
	lea \what(%rip), %rax
	ENDF \name
	.endm
FUNC hello
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	lea text(%rip), %rdi
	call puts@PLT
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
ENDF hello
FUNC half
	mulsd point5(%rip), %xmm0
ENDF half
FUNC third
	mulsd point3(%rip), %xmm0
ENDF third
FUNC half_again
	mulsd point5_again(%rip), %xmm0
ENDF half_again
FUNC get
	mov counter(%rip), %eax
ENDF get
FUNC set
	mov %edi, counter(%rip)
ENDF set
FUNC get_other
	mov other(%rip), %eax
ENDF get_other
FUNC get_started
	mov started(%rip), %eax
ENDF get_started
FUNC odd
	call get
	dec %edi
	je .L1
	jmp even@PLT
.L1:
ENDF odd
FUNC even
	call set
	sub $2, %edi
	je .L2
	jmp odd@PLT
.L2:
ENDF even
FUNC odd2
	call get
	dec %edi
	je .L3
	jmp even2@PLT
.L3:
ENDF odd2
FUNC even2
	call set
	sub $2, %edi
	je .L4
	jmp odd2@PLT
.L4:
ENDF even2
FUNC self
	dec %edi
	jne .Lown
	call self
.Lown:	nop
ENDF self
GET first, table
GET second, table_again
GET function, half
GET record, object
GET text_of, text
GET text_again, same_text
FUNC through
	mov getpid@GOTPCREL(%rip), %rax
ENDF through
FUNC calls
	call first
	call second
	call half_again
	call through
	call text_again
ENDF calls
	.section .rodata
text:	.string "a text of some length"
same_text: .string "a text of some length"
	.p2align 3
table:	.byte 1, 2, 3, 200, 5, 6, 7, 201, 0, 0, 0, 0, 0, 0, 0, 0
table_again: .byte 1, 2, 3, 200, 5, 6, 7, 201, 0, 0, 0, 0, 0, 0, 0, 0
	.p2align 3
point5:	.quad 0x3fe0000000000000
point5_again: .quad 0x3fe0000000000000
point3:	.quad 0x3fd3333333333333
	.section .data.rel.ro, "aw"
	.p2align 3
object:	.quad 77, text, half, getpid
	.bss
	.p2align 2
counter: .zero 4
other:	.zero 4
	.data
	.p2align 2
started: .long 5
	.section .note.GNU-stack, "", @progbits
END
gcc -c s.s -o s.o || { not_ok hash-again-build "does not assemble"; finish; }
n=0
for l in bfd gold lld mold; do
	gcc -shared -Wl,--emit-relocs,-Bsymbolic -nostartfiles -fuse-ld=$l s.o -o lib$l.so 2>link.err || continue
	n=$((n + 1))
	"$ICFOLD" audit -q --rows=$l.jsonl lib$l.so
	python3 "$JUDGE" lib$l.so $l.jsonl >out 2>&1
	rc=$?
	check "hash-again-$l" "$(tail -3 out)" test $rc = 0
	check "hash-again-$l-all" "$(tail -1 out)" test "$(tail -1 out)" = "21 functions, 17 hashes, 0 differ"
done
[ $n != 0 ] || { skip hash-again "no linker: $(first_line link.err)"; finish; }

# It must be able to fail: another number in the data, which only the functions that read it may notice.
sed 's/0x3fd3333333333333/0x3fd3333333333334/' s.s >t.s
l=$(find . -maxdepth 1 -name '*.jsonl' | sort | head -1)
l=$(basename "$l" .jsonl)
gcc -c t.s -o t.o && gcc -shared -Wl,--emit-relocs,-Bsymbolic -nostartfiles -fuse-ld="$l" t.o -o other.so
python3 "$JUDGE" other.so "$l.jsonl" >out 2>&1
rc=$?
check hash-again-fails "status $rc: $(cat out)" test $rc = 1 -a "$(tail -1 out)" = "21 functions, 17 hashes, 1 differ"
check hash-again-fails-where "$(cat out)" grep -q '^third at ' out
finish
