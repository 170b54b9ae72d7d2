#!/bin/bash
# aarch64_literals.sh: functions with literals among or behind their code.  What their own code alone loads moves and folds with them;
# everything else stays, with what it may refer to.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite aarch64_literals

# --- what compilers make -------------------------------------------------------------------------------------------------
# twins FILE NAME...: of each pair of functions, _ZNAMEILi1E and _ZNAMEILi2E, one is folded.
twins() {
	local file=$1 list name
	shift
	list=$(all_folded "$file")
	for name; do
		case $list in *"${name}ILi1E"* | *"${name}ILi2E"*) ;; *) return 1 ;; esac
	done
}
while read -r name flags; do
	for opt in O1 O2 Os; do
		for ld in bfd lld mold gold; do
			have "ld.$ld" || [ $ld = bfd ] || continue
			# shellcheck disable=SC2086
			if ! g++ -$opt -g -fno-ipa-icf "$FIXTURES/literals/main.cc" $flags -fuse-ld=$ld -Wl,--emit-relocs -o "$name.$opt.$ld" >log 2>&1; then
				skip "$name.$opt.$ld" "does not build: $(first_line log)"
				continue
			fi
			run_both "$name.$opt.$ld"
			run_both "$name.$opt.$ld" all
			# gold misplaces relocations; mold puts stubs behind the literals, and marks them as data.
			case $ld in gold | mold) continue ;; esac
			# The address of a page may have no low half: what has it at a page's start stays.
			if readelf -rW "$name.$opt.$ld" | python3 -c 'import sys
for line in sys.stdin:
    x = line.split()
    if "PG_HI21" in line and x[4] == ".text" and (int(x[3], 16) + int(x[6], 16)) % 4096 == 0:
        sys.exit(0)
sys.exit(1)'; then
				skip "$name.$opt.$ld/folds" "a literal begins a page"
				continue
			fi
			check "$name.$opt.$ld/folds" "$(all_folded "$name.$opt.$ld.all")" twins "$name.$opt.$ld.all" sum guarded cases pointer
		done
	done
done <<'END'
large -mcmodel=large -fno-pie -no-pie
literal -mpc-relative-literal-loads -fno-pie -no-pie
literal-pie -mpc-relative-literal-loads
END

# --- what assembler makes: these fold -------------------------------------------------------------------------------------
cat macros.s - >good.s <<'END'
	.macro one_in name
	function \name
	ldr	x1, =0x123456789abcdef0
	eor	x0, x0, x1
	ldr	x1, =counter
	ldr	x2, [x1]
	add	x2, x2, #1
	str	x2, [x1]
	add	x0, x0, x2
	ret
	.ltorg
	done \name
	.endm
	.macro one_behind name
	function \name
	ldr	x1, =leaf
	stp	x29, x30, [sp, #-16]!
	blr	x1
	ldp	x29, x30, [sp], #16
	ldrsw	x1, 2f
	add	x0, x0, x1
	ret
	done \name
	.ltorg
	.p2align 2
2:	.word	0x87654321
	.endm
	.macro vectors name
	function \name
	fmov	d0, x0
	ldr	d1, 3f
	fadd	d0, d0, d1
	ldr	s1, 4f
	prfm	pldl1keep, 5f
	fcvt	d1, s1
	b	6f
	.p2align 4
5:	.quad	0x3ff4444444444444, 0x4012345678abcdef
3:	.double	3.25e10
4:	.single	-1.75
6:	fmul	d0, d0, d1
	ldr	q1, 5b
	faddp	v1.2d, v1.2d, v1.2d
	fadd	d0, d0, d1
	fcvtzs	x0, d0
	ret
	done \name
	.endm
	.macro half name
	function \name
	adrp	x1, 7f
	ldr	x1, [x1, #:lo12:7f]
	adrp	x2, 8f
	ldr	w2, [x2, #:lo12:8f]
	add	x0, x0, x1
	eor	x0, x0, x2, lsl #7
	ret
	done \name
	.p2align 3
7:	.quad	counter
8:	.word	0xfedcba98
	.endm
	/* The linker fills the gap behind these with no-ops. */
	.macro filled name
	.section .text.\name, "ax"
	function \name
	ldr	d0, 9f
	fcvtzs	x1, d0
	add	x0, x0, x1
	ret
	done \name
9:	.double	3.25e10
	.endm
	.macro filled_in name
	.section .text.\name, "ax"
	function \name
	ldr	d0, 9f
	fcvtzs	x1, d0
	sub	x0, x0, x1
	ret
9:	.double	4.25e10
	done \name
	.endm
	.text
	function leaf
	add	x0, x0, #7
	ret
	done leaf
	.irp	n, a, b, c
	one_in	in_\n
	one_behind behind_\n
	vectors	vector_\n
	half	half_\n
	filled	filled_\n
	filled_in within_\n
	.text
	.endr
	/* Other literals, another one of the same literals. */
	function other_a
	ldr	x1, =0x123456789abcdef1
	eor	x0, x0, x1
	ret
	.ltorg
	done other_a
	function other_b
	ldr	x1, =0x123456789abcdef2
	eor	x0, x0, x1
	ret
	.ltorg
	done other_b
	function which_a
	ldr	d0, 1f
	ldr	d1, 2f
	fsub	d0, d0, d1
	fcvtzs	x0, d0
	ret
	.p2align 3
1:	.double	1.5e3
2:	.double	2.5e4
	done which_a
	function which_b
	ldr	d0, 2f
	ldr	d1, 1f
	fsub	d0, d0, d1
	fcvtzs	x0, d0
	ret
	.p2align 3
1:	.double	1.5e3
2:	.double	2.5e4
	done which_b
	.data
	.p2align 3
counter: .quad	0
	.section .note.GNU-stack, "", %progbits
END
main_of leaf in_a in_b in_c behind_a behind_b behind_c vector_a vector_b vector_c other_a other_b which_a which_b filled_a filled_b filled_c within_a within_b within_c >good.c
# The addresses that these return differ between files.
sed -i 's/^int main(void) {/long half_a(long), half_b(long), half_c(long);\nint main(void) { printf("%ld %ld\\n", half_a(7) - half_b(7), half_a(7) - half_c(7));/' good.c
for ld in bfd gold lld mold; do
	have "ld.$ld" || [ $ld = bfd ] || continue
	gcc -O1 -fno-pie -no-pie good.c good.s -fuse-ld=$ld -Wl,--emit-relocs -o good.$ld || continue
	run_both good.$ld
	run_both good.$ld all
	case $ld in gold | mold) continue ;; esac
	check good.$ld/folds "$(all_folded good.$ld.all)" folded good.$ld.all in_b in_c behind_b behind_c vector_b vector_c half_b half_c filled_b filled_c within_b within_c
	for name in other_a other_b which_a which_b; do
		check "good.$ld/$name" "folded" test -z "$(all_folded good.$ld.all | grep -w $name)"
	done
done

verifies() { "$ICFOLD" verify --icf=all "$1" "$2" >/dev/null 2>&1; }

# Disassemblers see code as code, and literals as data.
code() { objdump -d --no-show-raw-insn --disassemble="$2" "$1" | awk '$2 == ".word" { n++ } END { print n + 0 }'; }
for name in in_a vector_a half_a leaf; do
	check "good.bfd/mapping/$name" "$(code good.bfd.all $name) words, before $(code good.bfd $name)" test "$(code good.bfd.all $name)" = "$(code good.bfd $name)"
done
# The relocations that the output keeps are those of its literals.
"$ICFOLD" -q --icf=all --emit-relocs good.bfd -o good.relocs
check good.bfd/emit-relocs "$("$ICFOLD" verify --icf=all good.bfd good.relocs 2>&1 | tail -n 1)" verifies good.bfd good.relocs
at=$(address_of good.relocs in_a) words=0
for place in $(readelf -rW good.relocs | awk '$3 == "R_AARCH64_ABS64" { print $1 }'); do
	[ $((0x$place)) -ge $((at)) ] && [ $((0x$place)) -lt $((at + 80)) ] && words=$((words + 1))
done
check good.bfd/literal-relocs "$words" test "$words" -ge 1
# Without a record, symbols tell what became of the functions.
objcopy -R .debug_icfold good.bfd.all good.bare
check good.bfd/by-symbols "$("$ICFOLD" verify --icf=all good.bfd good.bare 2>&1 | tail -n 1)" verifies good.bfd good.bare

# add FILE ADDRESS SIZE NUMBER: adds to the field of SIZE bytes at ADDRESS (0: the entry point).
add() {
	python3 -c '
import struct, sys
f = open(sys.argv[1], "r+b")
va, size, number = (int(x, 0) for x in sys.argv[2:])
elf = f.read()
phoff, n = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
heads = [struct.unpack_from("<IIQQQQ", elf, phoff + 56 * i) for i in range(n)]
at = next((h[2] + va - h[3] for h in heads if h[0] == 1 and h[3] <= va < h[3] + h[5]), 24)
f.seek(at)
f.write(((int.from_bytes(elf[at:at + size], "little") + number) % 256 ** size).to_bytes(size, "little"))' "$@"
}
# Both files with the same change: what leads among literals does not escape the verifier, either.
if have python3; then
	# The entry point.
	for name in in_b other_a; do
		cp good.bfd entered.in
		cp good.bfd.all entered.out
		add entered.in 0 8 $(($(address_of good.bfd $name) + 32 - $(address_of good.bfd _start)))
		add entered.out 0 8 $(($(address_of good.bfd.all $name) + 32 - $(address_of good.bfd.all _start)))
		[ $name = in_b ] || { add entered.in 0 8 -16 && add entered.out 0 8 -16; }
		"$ICFOLD" verify --icf=all entered.in entered.out >entered.said 2>&1
		check "good.bfd/entered/$name" "$(tail -n 1 entered.said)" grep -q 'literal\|not understood' entered.said
	done
	fold_to entered.in all
	check good.bfd/entered "other_a moved" test "$(address_of entered.in other_a)" = "$(address_of entered.in.all other_a)"
	# An entry of a jump table, and a landing pad.
	cat macros.s - >led.s <<-'END'
		.text
		twin	before_a
		twin	before_b
		function led
		.cfi_personality 0x1b, first
		.cfi_lsda 0x1b, exceptions
		adrp	x1, table
		add	x1, x1, #:lo12:table
		and	x2, x0, #1
		ldrsw	x2, [x1, x2, lsl #2]
		add	x1, x1, x2
		ldr	w3, 1f
		add	x0, x0, x3
		br	x1
	2:	add	x0, x0, #3
		ret
	1:	.word	0xd65f03c0
		done	led
		leaf	first, 3
		.section .gcc_except_table, "a"
	exceptions: .byte 0xff, 0xff, 1, 4, 0, 4
	pad:	.byte	32, 0
		.section .rodata
		.p2align 2
	table:	.word	2b - table
		.word	2b - table
		.section .note.GNU-stack, "", %progbits
	END
	main_of before_a before_b led first >led.c
	gcc -O1 -fno-pie -no-pie led.c led.s -Wl,--emit-relocs -o led
	run_both led all
	check led/moves "led stays" test "$(address_of led led)" != "$(address_of led.all led)"
	for change in "entry table+4 4 8" "pad pad 1 8"; do
		read -r name place size number <<<"$change"
		cp led led.in
		cp led.all led.out
		add led.in "$(($(address_of led "${place%+*}") + 0${place#"${place%+*}"}))" "$size" "$number"
		add led.out "$(($(address_of led.all "${place%+*}") + 0${place#"${place%+*}"}))" "$size" "$number"
		"$ICFOLD" verify --icf=all led.in led.out >led.said 2>&1
		check "led/$name" "$(tail -n 1 led.said)" grep -q 'literal\|not understood' led.said
		fold_to led.in all
		check "led/$name/stays" "led moved" test "$(address_of led.in led)" = "$(address_of led.in.all led)"
	done
fi

# Each literal, and the load of each: another one.
if have python3; then
	base=$(readelf -SW good.bfd.all | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".text" { print "0x" $4 " - 0x" $3 }')
	n=0 wrong=
	for name in in_a behind_a vector_a half_a other_a; do
		from=$(($(address_of good.bfd.all $name)))
		for ((off = 0; off < 84; off += 4)); do
			cp good.bfd.all bad
			python3 -c 'import sys; f = open("bad", "r+b"); at = int(sys.argv[1]); f.seek(at); b = f.read(1)[0] ^ 32; f.seek(at); f.write(bytes([b]))' $((from + off + base))
			n=$((n + 1))
			"$ICFOLD" verify --icf=all good.bfd bad >bad.said 2>&1 && wrong="$wrong $name+$off"
		done
	done
	check good.bfd/mutants "equal with a change at$wrong" test -z "$wrong" -a $n = 105
fi

# --- what may not move ----------------------------------------------------------------------------------------------------
# Each case is two functions that would be the same; they and what they may refer to stay.
# case NAME: reads the body of `NAME_a` and `NAME_b`, with \n in place of _a and _b.
bad_case() {
	local name=$1
	{
		cat macros.s
		printf '\t.macro both n\n'
		cat
		printf '\t.endm\n\t.text\n'
		printf '\ttwin\tbefore_a\n\tleaf\tfirst, 3\n\tboth\t_a\n\tleaf\tsecond, 4\n\ttwin\tbefore_b\n\tboth\t_b\n\tleaf\tthird, 5\n'
		printf '\t.section .note.GNU-stack, "", %%progbits\n'
	} >"$name.s"
	main_of before_a first f_a second before_b f_b third >"$name.c"
	if ! gcc -O1 -fno-pie -no-pie "$name.c" "$name.s" -Wl,--emit-relocs -o "$name" >"$name.log" 2>&1; then
		not_ok "bad/$name" "does not build: $(first_line "$name.log")"
		return
	fi
	run_both "$name"
	run_both "$name" all
	check "bad/$name" "folded: $(all_folded "$name.all")" test -z "$(all_folded "$name.all" | grep -w 'f_[ab]')"
}
bad_case computed <<'END'
	function f\n
	and	x1, x0, #1
	adr	x2, 1f
	ldr	x0, [x2, x1, lsl #3]
	ret
	.p2align 3
1:	.quad	0x1111111111111111, 0x2222222222222222
	done f\n
END
bad_case escaping <<'END'
	function f\n
	adr	x0, 1f
	b	get\n
	.p2align 3
1:	.quad	0x1111111111111111
	done f\n
	function get\n
	ldr	x0, [x0]
	ret
	done get\n
END
bad_case escaping-halves <<'END'
	function f\n
	adrp	x0, 1f
	add	x0, x0, #:lo12:1f
	ldr	x0, [x0]
	ret
	done f\n
	.p2align 3
1:	.quad	0x1111111111111111
END
bad_case shared <<'END'
	function f\n
	ldr	x1, island\n
	add	x0, x0, x1
	b	rest\n
	done f\n
	.p2align 3
island\n: .quad	0x1111111111111111
	function rest\n
	ldr	x1, island\n
	sub	x0, x0, x1
	add	x0, x0, #1
	ret
	done rest\n
END
bad_case shared-behind <<'END'
	function f\n
	ldr	x1, 1f
	add	x0, x0, x1
	b	rest\n
	done f\n
	function rest\n
	ldr	x1, 1f
	sub	x0, x0, x1
	add	x0, x0, #1
	ret
	done rest\n
	.p2align 3
1:	.quad	0x1111111111111111
END
bad_case pointed <<'END'
	function f\n
	ldr	x1, 1f
	adrp	x2, to\n
	ldr	x2, [x2, #:lo12:to\n]
	ldr	x2, [x2]
	sub	x0, x1, x2
	ret
	.p2align 3
1:	.quad	0x1111111111111111
	done f\n
	.pushsection .data
	.p2align 3
to\n: .quad	1b
	.popsection
END
bad_case start <<'END'
	.p2align 4
	.type	pool\n, %function
pool\n:
1:	.quad	0x1111111111111111
f\n:
	.globl	f\n
	.hidden	f\n
	ldr	x1, 1b
	add	x0, x0, x1
	ret
	.size	pool\n, . - pool\n
END
bad_case entered <<'END'
	function f\n
	ldr	w1, 1f
	add	x0, x0, x1
	b	1f
	.p2align 2
1:	.word	0xd65f03c0	/* ret */
	done f\n
END
bad_case runs-into <<'END'
	function f\n
	ldr	w1, 1f
	add	x0, x0, x1
1:	.word	0xd503201f	/* nop */
	ret
	done f\n
END
bad_case marked <<'END'
	function f\n
	ldr	w1, 1f
	add	x0, x0, x1
	ret
1:	.inst	0x94000002
	done f\n
END
bad_case distance <<'END'
	function f\n
	adr	x1, first
	ldr	w2, 1f
	add	x1, x1, x2
	br	x1
1:	.word	third - first
	done f\n
END
bad_case distance-units <<'END'
	function f\n
	adr	x1, first
	ldrsw	x2, 1f
	add	x1, x1, x2, lsl #2
	br	x1
1:	.word	(third - first) / 4
	done f\n
END
bad_case distance-loaded <<'END'
	function f\n
	ldr	x1, 1f
	ldr	x2, 2f
	add	x1, x1, x2
	br	x1
	.p2align 3
1:	.quad	first
2:	.quad	third - first
	done f\n
END
bad_case stored <<'END'
	function f\n
	cbnz	x0, 2f
	adrp	x1, 1f
	str	x0, [x1, #:lo12:1f]
2:	ldr	x1, 1f
	add	x0, x0, x1
	ret
	done f\n
	.p2align 3
1:	.quad	0x1111111111111111
END
bad_case beyond <<'END'
	function f\n
	ldr	x1, 1f
	lsr	x1, x1, #32
	add	x0, x0, x1
	b	2f
	.p2align 3
	nop
1:	.word	0x11111111
2:	ret
	done f\n
END
bad_case part <<'END'
	function f\n
	ldr	w1, 1f
	ldr	w2, 1f + 4
	orr	x1, x1, x2, lsl #32
	br	x1
	.p2align 3
1:	.quad	third
	done f\n
END
bad_case small <<'END'
	function f\n
	adrp	x1, 1f
	ldrh	w1, [x1, #:lo12:1f]
	adr	x2, first
	add	x2, x2, x1
	br	x2
	done f\n
	.p2align 2
1:	.hword	third - first, 0
END
bad_case jumped-to <<'END'
	function f\n
	ldr	x2, 1f
	adr	x1, 2f
	add	x1, x1, #4
	fmov	d0, x2
	br	x1
	.p2align 3
1:	.quad	0x3ff4444444444444
2:	ret
	.word	0x91001400, 0xd65f03c0	/* add x0, x0, #5; ret */
	done f\n
END
bad_case jumped-to-filled <<'END'
	function f\n
	ldr	d0, 1f
	adr	x1, 2f
	add	x1, x1, #4
	br	x1
	.p2align 3
1:	.quad	0x3ff4444444444444
2:	ret
	.word	0xd503201f, 0x91001400, 0xd65f03c0	/* nop; add x0, x0, #5; ret */
	done f\n
END
bad_case unread-half <<'END'
	function f\n
	ldr	s0, 1f
	adr	x1, 1f - 4
	add	x1, x1, #8
	br	x1
	nop
1:	.word	0x3ff44444, 0xd65f03c0	/* ret */
	done f\n
END
bad_case landing-pad <<'END'
	function f\n
	.cfi_personality 0x1b, first
	.cfi_lsda 0x1b, exceptions\n
	ldr	w1, 1f
	add	x0, x0, x1
	ret
1:	.word	0xd65f03c0	/* ret */
	done f\n
	.pushsection .gcc_except_table, "a"
exceptions\n: .byte 0xff, 0xff, 1, 4, 0, 4, 12, 0
	.popsection
END
bad_case table <<'END'
	function f\n
	adrp	x1, table\n
	add	x1, x1, #:lo12:table\n
	and	x2, x0, #1
	ldrsw	x2, [x1, x2, lsl #2]
	add	x1, x1, x2
	ldr	w3, 1f
	add	x0, x0, x3
	br	x1
2:	add	x0, x0, #3
	ret
1:	.word	0xd65f03c0	/* ret */
	done f\n
	.pushsection .rodata
	.p2align 2
table\n: .word	2b - table\n, 1b - table\n
	.popsection
END
bad_case label <<'END'
	function f\n
	ldr	x1, 1f
	br	x1
2:	add	x0, x0, #9
	ret
	.p2align 3
1:	.quad	2b
	done f\n
END
# A number is added to the address in a literal: what both name stays.
cat macros.s - >sum.s <<'END'
	.text
	twin	twin_a
	function adds
	ldr	x1, 1f
	add	x1, x1, #(third - first)
	br	x1
	.p2align 3
1:	.quad	first
	done adds
	leaf	first, 3
	twin	twin_b
	twin	twin_c
	leaf	third, 5
	.section .note.GNU-stack, "", %progbits
END
main_of twin_a adds first twin_b twin_c third >sum.c
gcc -O1 -fno-pie -no-pie sum.c sum.s -Wl,--emit-relocs -o sum
run_both sum
run_both sum all

# --- code that looks like a table ---------------------------------------------------------------------------------------
# `asks` names two functions, and the halfwords of the second one's code are distances from the first one to starts of functions, in units
# of 16 bytes.  They are code.
{
	cat macros.s
	cat <<'END'
	.macro filler name, n
	function \name
	.rept \n
	add	x0, x0, #3
	.endr
	ret
	done \name
	.endm
	.text
	leaf from, 9
	twin twin_a
	twin twin_b
	filler fill, 219
	filler at400, 255
	filler at800, 255
	filler atc00, 10495
	leaf atb000, 4
	leaf atb010, 5
	leaf atb020, 6
	function row
	.inst	0x0b000040, 0x0b010080, 0x0b0200c0 // add w0, w2, w0; add w0, w4, w1; add w0, w6, w2
	ret
	done row
	function asks
	link
	mov	w2, #5
	mov	w6, #7
	adrp	x9, from
	add	x9, x9, :lo12:from
	adrp	x10, row
	add	x10, x10, :lo12:row
	blr	x10
	blr	x9
	unlink
	ret
	done asks
END
} >tablelike.s
main_of asks twin_a twin_b fill at400 at800 atc00 atb000 atb010 atb020 >tablelike.c
if gcc -O1 tablelike.c tablelike.s -Wl,--emit-relocs -o tablelike >log 2>&1; then
	words=$(objdump -d tablelike | awk '/<(from|at400|atb020)>:$/ { print $1 }' | tr '\n' ' ')
	# shellcheck disable=SC2086
	set -- $words
	check tablelike/distances "$words" test $((0x$2 - 0x$1)) = $((0x400)) -a $((0x$3 - 0x$1)) = $((0xb020))
	run_both tablelike
	run_both tablelike all
	check tablelike/folds "$(all_folded tablelike.all)" folded tablelike.all twin_b
else
	not_ok tablelike "$(first_line log)"
fi
finish
