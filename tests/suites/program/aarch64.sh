#!/bin/bash
# aarch64.sh: programs for AArch64, built by cross compilers and run by qemu: what no fixture shows, then a share of the fixtures'
# matrix.  SHARE=REGEX: other combinations.  AARCH64=full: the whole selection of matrix.sh, with and without relocations, and a part
# of it with other flags for the compilers and linkers; with PIECE=3/20 the third of twenty parts of each.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite aarch64

# --- twins: the program that most of this folds --------------------------------------------------------------------------
cat >twins.c <<'END'
#include <stdio.h>
#define TWIN(name) __attribute__((noinline)) int name(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; printf("%d\n", x); return x * 3 + 1; }
TWIN(one) TWIN(two) TWIN(three)
int (*table[])(int) = { one, two };
int main(int argc, char **argv)
{
	(void)argv;
	int sum = one(5) + two(7) + three(200) + table[argc & 1](4);
	printf("%d %d\n", sum, table[0] == table[1]);
	return 0;
}
END
while read -r name flags; do
	# shellcheck disable=SC2086
	if ! gcc -O1 -fno-ipa-icf twins.c -Wl,--emit-relocs $flags -o "$name" >"$name.log" 2>&1; then
		not_ok "$name" "does not build: $(first_line "$name.log")"
		continue
	fi
	run_both "$name"
	check "$name/folds" "nothing is folded" test "$(stat -c %s "$name.log")" = 0 -a -n "$(all_folded "$name.safe")"
done <<'END'
twins.pages4 -Wl,-z,max-page-size=4096
twins.pages16 -Wl,-z,max-page-size=16384
twins.protected -mbranch-protection=standard
twins.noatomics -mno-outline-atomics
twins.tiny -mcmodel=tiny -fno-pie -no-pie
twins.large -mcmodel=large -fno-pie -no-pie
twins.separate -Wl,-z,separate-code
twins.relr -Wl,-z,pack-relative-relocs
END

# The thunk of a function with a landing pad begins with one.
thunk=$(readelf -sW twins.protected.safe | awk '($8 == "one" || $8 == "two") && $3 == 8 { print $2; exit }')
check thunk/landing-pad "its first instruction is no bti c" \
	grep -q 'bti	c' <(objdump -d --start-address=0x"$thunk" --stop-address=$((0x$thunk + 4)) twins.protected.safe)

# Without mapping symbols, relocations do not tell data from code.
strip -w -N '$x*' -N '$d*' twins.pages4 -o nomapping
check no-mapping/relocations "strip removed them" grep -q R_AARCH64_CALL26 <(readelf -rW nomapping)
if "$ICFOLD" -q nomapping -o nomapping.out >nomapping.log 2>&1; then
	not_ok no-mapping "folded"
else
	check no-mapping "another message: $(first_line nomapping.log)" grep -q 'no mapping symbols' nomapping.log
fi

# Mapping symbols are no names: a tool may take the names of static functions away, and leave these where the functions begin.
sed 's/^#define TWIN(name) /&static /; s/table\[0\] == table\[1\]/0/' twins.c >static.c
for g in '' -g; do
	if ! gcc -O1 -fno-ipa-icf -ffunction-sections $g static.c -o "discarded$g" >discarded.log 2>&1 || ! strip -N one -N two -N three "discarded$g" 2>>discarded.log; then
		not_ok "discarded$g" "does not build: $(first_line discarded.log)"
		continue
	fi
	for mode in all safe; do
		run_both "discarded$g" $mode
		check "discarded$g/$mode/folds" "nothing is folded" grep -q ' folded ' <("$ICFOLD" dump --groups "discarded$g.$mode")
		check "discarded$g/$mode/names" "a mapping symbol is given as a name" test -z "$("$ICFOLD" dump --groups "discarded$g.$mode" | grep -F '$x')"
	done
done

# --- erratum 843419 ------------------------------------------------------------------------------------------------------
# Closing up by the size of the folded function would bring the adrp of `victim` to 0xff8 of its page.
cat >erratum.s <<'END'
	.macro body name
	.p2align 4
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	.rept 0xff0 / 4 - 2
	add	x0, x0, #1
	.endr
	add	x0, x0, #2
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm
	.text
	.p2align 12
	body first
	body second
	.p2align 4
	.globl victim
	.type victim, %function
victim:
	.cfi_startproc
	add	x0, x0, #3
	add	x0, x0, #4
	adrp	x1, datum
	ldr	x2, [sp]
	ldr	x3, [x1, #:lo12:datum]
	add	x0, x0, x3
	ret
	.cfi_endproc
	.size victim, . - victim
	.data
	.p2align 3
datum:	.quad	1000
END
cat >erratum.c <<'END'
#include <stdio.h>
long first(long), second(long), victim(long);
int main(void) { printf("%ld %ld %ld\n", first(1), second(2), victim(3)); return 0; }
END
gcc -O1 erratum.c erratum.s -Wl,--emit-relocs -o erratum
run_both erratum
was=$(($(address_of erratum victim) + 8 & 0xfff)) now=$(($(address_of erratum.safe victim) + 8 & 0xfff))
check erratum/moved "victim stays" test "$(address_of erratum victim)" != "$(address_of erratum.safe victim)"
check erratum/place "adrp at $now of its page, before at $was" test $now != 4088 -a $now != 4092 -a $was != 4088 -a $was != 4092

# --- alignment -----------------------------------------------------------------------------------------------------------
# Compilers align a function to 16 if that takes at most 11 bytes; linkers cannot do without.  What moves keeps 8 where 16 takes 12,
# unless the program knows the address, perhaps with a tag in the bits that are 0.
cat macros.s - >padding.s <<'END'
	.macro ends_at_4 name, n, adds=4
	function \name
	.rept \adds
	add	x0, x0, #\n
	.endr
	ret
	done \name
	.p2align 4
	.endm
	.text
	.p2align 6
	ends_at_4 zeroth, 9, 3
	ends_at_4 spare_a, 1
	ends_at_4 spare_b, 1
	ends_at_4 first, 2
	ends_at_4 second, 3
	ends_at_4 known, 4
	ends_at_4 third, 5
	ends_at_4 fourth, 6
	ends_at_4 entered, 7, 8
	ends_at_4 last, 8
	ends_at_4 plain, 9
	ends_at_4 tagged, 10
	.section .data.rel,"aw"
	.p2align 3
	.globl table
table:	.quad	known, entered + 32, tagged + 13
END
{
	main_of zeroth spare_a spare_b first second known third fourth entered last plain tagged
	echo 'extern __attribute__((visibility("hidden"))) long (*table[])(long);'
	echo '__attribute__((constructor)) static void show(void) { printf("%d %ld\n", (int)((long)table[0] & 15), table[1](1)); }'
} >padding.c
gcc -O1 padding.c padding.s -Wl,--emit-relocs -o padding
run_both padding
at() { # NAME: where padding's function NAME is, in its 16 bytes: before folding and after
	echo $(($(address_of padding "$1") & 15)) $(($(address_of padding.safe "$1") & 15))
}
for name in first third last; do
	check padding/$name "at $(at $name) of 16 bytes" test "$(at $name)" = "0 8"
done
for name in known entered tagged; do
	check padding/$name "at $(at $name) of 16 bytes" test "$(at $name)" = "0 0"
done
"$ICFOLD" -q --icf=none padding -o padding.none
for name in first last; do
	check padding/none/$name "it moves" test "$(address_of padding $name)" = "$(address_of padding.none $name)"
done

# --- data among code -----------------------------------------------------------------------------------------------------
# Literals, an island that two functions use, words that look like instructions, and a part of an address in each move.
cat macros.s - >data.s <<'END'
	.text
	function pool
	ldr	x0, =0x123456789abcdef0
	ret
	.ltorg
	done pool
	function first
	ldr	x1, island
	add	x0, x0, x1
	ret
	done first
	.p2align 3
island:	.quad	77
	.word	0x94000010, 0xb0000001
	function second
	ldr	x1, island
	sub	x0, x0, x1
	ret
	done second
	function near
	tbz	x0, #0, 1f
	b	first
1:	b	second
	done near
	function pieces
	movz	x0, #:abs_g0_nc:pointed
	movk	x0, #:abs_g1_nc:pointed
	movk	x0, #:abs_g2_nc:pointed
	movk	x0, #:abs_g3:pointed
	ret
	done pieces
	function spare_a
	add	x0, x0, #21
	mov	x1, #5
	mul	x0, x0, x1
	ret
	done spare_a
	function spare_b
	add	x0, x0, #21
	mov	x1, #5
	mul	x0, x0, x1
	ret
	done spare_b
	function pointed
	add	x0, x0, #9
	ret
	done pointed
END
cat >data.c <<'END'
#include <stdio.h>
long pool(void), first(long), second(long), near(long), spare_a(long), spare_b(long), pointed(long);
long (*pieces(void))(long);
int main(void)
{
	printf("%lx %ld %ld %ld %ld\n", pool(), first(1), second(100), near(2), near(3));
	printf("%ld %ld %ld %d\n", spare_a(1), spare_b(1), pieces()(5), pieces() == pointed);
	return 0;
}
END
gcc -O1 -fno-pie -no-pie data.c data.s -Wl,--emit-relocs -o data
run_both data
run_both data all
# shellcheck disable=SC2016
check data/mapping "other mapping symbols" \
	test "$(readelf -sW data | grep -c ' \$[dx]$')" = "$(readelf -sW data.all | grep -c ' \$[dx]$')"

# --- literal pools -------------------------------------------------------------------------------------------------------
# Behind, between and in front of functions, for one or two of them; addresses, numbers, distances of 1 to 8 bytes from elsewhere.  With
# and without relocations, functions with a pool stay, and so does what its words lead to.  Twins around them fold.
cat macros.s - >pools.s <<'END'
	.text
	twin	twin_a
	leaf	leaf_a, 5
	twin	twin_b
	twin	twin_c
	leaf	leaf_b, 6
	.ifndef	pie
	function literal
	ldr	x1, =leaf_c
	br	x1
	done literal
	twin	twin_d
	.p2align 3
front:	.quad	leaf_d, 99
	function after
	adrp	x1, front
	ldr	x1, [x1, #:lo12:front]
	adrp	x2, front + 8
	ldr	x2, [x2, #:lo12:front + 8]
	add	x0, x0, x2
	br	x1
	done after
	twin	twin_e
	function inside
	ldr	x1, 1f
	br	x1
	.p2align 3
1:	.quad	leaf_d
	done inside
	leaf	leaf_c, 7
	twin	twin_f
	leaf	leaf_d, 8
	.endif
	function first
	ldr	x1, island
	add	x0, x0, x1
	ret
	done first
	.p2align 3
island:	.quad	0x123456789abcdef0
	function second
	ldr	x1, island
	sub	x0, x0, x1
	ret
	done second
	twin	twin_g
	/* From a function, by a pool that others separate from it.  Nothing folds beside such a sum. */
	.ifndef	no_sum
	function distance
	adr	x1, leaf_a
	adrp	x2, far
	ldrsw	x2, [x2, #:lo12:far]
	add	x2, x2, x1
	br	x2
	done distance
	.endif
	twin	twin_h
	leaf	leaf_e, 9
	.p2align 3
far:	.word	leaf_b - leaf_a
	/* From a label, in words. */
	.ifndef	no_sum
	function narrow
	and	x1, x0, #1
	adr	x2, table
	ldrb	w3, [x2, x1]
	adr	x2, base
	add	x2, x2, w3, uxtb #2
	br	x2
	done narrow
	.endif
table:	.byte	(leaf_g - base) / 4, (leaf_f - base) / 4
	function base
	add	x0, x0, #77
	ret
	done base
	twin	twin_i
	twin	twin_j
	leaf	leaf_f, 10
	twin	twin_k
	leaf	leaf_g, 11
	.section .note.GNU-stack, "", %progbits
END
for kind in nopie pie; do
	list="twin_a leaf_a twin_b leaf_b first second twin_g distance leaf_e narrow base twin_j twin_k leaf_g"
	[ $kind = pie ] || list="$list literal after inside"
	{
		echo '#include <stdio.h>'
		# shellcheck disable=SC2086
		printf 'extern __attribute__((visibility("hidden"))) long %s(long);\n' $list
		echo 'int main(void) {'
		# shellcheck disable=SC2086
		printf 'printf("%%lx\\n", %s(7));\n' $list
		echo 'return 0; }'
	} >pools.c
	cp pools.c pools.$kind.c
	flags="-fno-pie -no-pie"
	[ $kind = nopie ] || flags="-fPIE -pie -Wa,--defsym,pie=1"
	for relocs in --emit-relocs --no-gc-sections; do
		name=pools.$kind.${relocs#--}
		# shellcheck disable=SC2086
		gcc -O1 pools.c pools.s $flags -Wl,$relocs -o "$name"
		run_both "$name"
		run_both "$name" all
	done
	"$ICFOLD" -v "$name" -o "$name.out" 2>pools.said
	check "pools.$kind/reason" "$(first_line pools.said)" grep -q 'data among code, pinned' pools.said
done
name=pools.nopie.emit-relocs
check pools/audit "no such reason" grep -q 'data among code, pinned' <("$ICFOLD" audit "$name")
check pools/folds-not "$(all_folded "$name.all")" test -z "$(all_folded "$name.all")"
sed '/ distance(/d; / narrow(/d' pools.nopie.c >pools.c
gcc -O1 pools.c pools.s -fno-pie -no-pie -Wa,--defsym,no_sum=1 -Wl,--emit-relocs -o pools.plain
run_both pools.plain all
check pools/folds "nothing" test -n "$(all_folded pools.plain.all)"
# Each word of a pool: another number, another address, another distance.
if have python3; then
	base=$(readelf -SW "$name.all" | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".text" { print "0x" $4 " - 0x" $3 }')
	for word in island front far table; do
		cp "$name.all" pools.wrong
		python3 -c 'import sys; f = open("pools.wrong", "r+b"); at = int(sys.argv[1]); f.seek(at); b = f.read(1)[0] ^ 8; f.seek(at); f.write(bytes([b]))' \
			$(($(address_of "$name.all" $word) + base))
		check "pools/mutant $word" "verify calls it equal" \
			test "$("$ICFOLD" verify --icf=all "$name" pools.wrong >/dev/null 2>&1; echo $?)" = 1
	done
fi

# --- signed return addresses ---------------------------------------------------------------------------------------------
# DW_CFA_AARCH64_negate_ra_state (0x2d) and .._with_pc (0x2c), which stands for its own place, with remembered rows.  Equal functions fold;
# those that differ only in that operation, or in its place, do not.
cat macros.s - >signed.s <<'END'
	.macro signed name, operation, early=0
	.p2align 4
	.globl \name
	.hidden \name
	.type \name, %function
\name:
	.cfi_startproc
	.if \early
	.cfi_escape \operation
	.endif
	hint	#25
	.ifeq \early
	.cfi_escape \operation
	.endif
	link
	.cfi_remember_state
	cbz	x0, 1f
	bl	leaf
	unlink
	hint	#29
	.cfi_escape \operation
	ret
1:	.cfi_restore_state
	add	x0, x0, #9
	unlink
	hint	#29
	.cfi_escape \operation
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm
	.text
	.type	leaf, %function
leaf:	.cfi_startproc
	add	x0, x0, #7
	ret
	.cfi_endproc
	.size	leaf, . - leaf
	signed	plain_a, 0x2d
	signed	plain_b, 0x2d
	signed	with_a, 0x2c
	signed	with_b, 0x2c
	signed	with_c, 0x2c, 1
	.section .note.GNU-stack, "", %progbits
END
cat >signed.c <<'END'
#include <stdio.h>
long plain_a(long), plain_b(long), with_a(long), with_b(long), with_c(long);
int main(void) { printf("%ld %ld %ld %ld %ld\n", plain_a(1), plain_b(2), with_a(3), with_b(4), with_c(0)); return 0; }
END
if have ld.lld && gcc -O1 signed.c signed.s -fuse-ld=lld -Wl,--emit-relocs -o signed 2>signed.log; then
	run_both signed
	run_both signed all
	check signed/folds "$(all_folded signed.all)" \
		test "$(all_folded signed.all)" = "plain_b, with_b, "
else
	skip signed "does not link"
fi

# --- the fixtures --------------------------------------------------------------------------------------------------------
TARGET=aarch64 ONLY=${SHARE:-'^(asm_a64|c_plain.gcc.O2|demo.*(O2|Os)|eh.gcc.O0.pie|hotcold.clang|init.gcc.O0.so|recur.gcc.Os|switches.gcc.Os|unwind.gcc.O0.so|addr.clang)'} \
	bash "$TESTS/suites/program/matrix.sh" >matrix.log 2>&1
take matrix matrix.log
[ "${PIECE:-}" ] || check matrix/any "no combination ran" grep -q '^ok' matrix.log
# What looks like the address of the last function of .text with a tag is a function of the section behind it.
# A unit's last row stands at the end of its sequence, and libdw calls it an end, too.
MATRIX=full TARGET=aarch64 ONLY='^(init clang Os pie plain nodebug|eh gcc O2 pie plain debug)' bash "$TESTS/suites/program/matrix.sh" >next.log 2>&1
take next next.log

# matrix NAME ONLY [FLAG...]
matrix() {
	local name=$1 only=$2
	shift 2
	FLAGS=$* TARGET=aarch64 ONLY=$only bash "$TESTS/suites/program/matrix.sh" >"$name.log" 2>&1
	take "$name" "$name.log"
	[ "${PIECE:-}" ] || check "$name/any" "no combination ran" grep -q '^ok' "$name.log"
}
if [ "${AARCH64:-}" = full ]; then
	matrix all .
	RELOCS=no matrix bare .
	while read -r name only flags; do
		# shellcheck disable=SC2086
		matrix "$name" "${only//_/ }" $flags
		# shellcheck disable=SC2086
		RELOCS=no matrix "bare-$name" "${only//_/ }" $flags
	done <<'END'
bti ^(eh|demo|unwind).gcc -mbranch-protection=standard
bti-clang ^(demo|recur).clang -mbranch-protection=standard
tiny ^(recur|c.plain|addr).gcc.O[02s].nopie -mcmodel=tiny
large ^(demo|switches|c.plain|recur|hotcold|addr).*_(nopie|static)_ -mcmodel=large
page4 ^(eh|hotcold) -Wl,-z,max-page-size=4096
page16 ^(init|unused) -Wl,-z,max-page-size=16384
dwarf2 ^(demo|unwind).gcc -gdwarf-2
dwarf3 ^(hotcold|eh).gcc -gdwarf-3
zlib ^(demo|eh|recur) -g -gz=zlib
O1 ^(hotcold|init|addr|c.plain|unwind).*_O2_ -O1
O3 ^(demo|eh|switches|recur|hotcold).*_O2_ -O3
lse ^(recur|c.plain).gcc -march=armv8.1-a+lse
outline ^(init|recur).gcc -moutline-atomics
literals ^(demo|c.plain|recur).gcc -mpc-relative-literal-loads
relr ^(init|addr)[^,]*_(bfd|lld|mold)$ -Wl,-z,pack-relative-relocs
END
fi
finish
