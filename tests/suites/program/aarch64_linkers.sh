#!/bin/bash
# aarch64_linkers.sh: what linkers for AArch64 add to a program or take from it: stubs for far calls, workarounds for errata of
# Cortex-A53, guarded pages, references at the end of their reach.  Built by cross compilers, run by qemu.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite aarch64_linkers

# link NAME LINKER FLAG...: the sources that NAME begins with; skips what the linker cannot do.
link() {
	local name=$1 ld=$2
	shift 2
	gcc -O1 "${name%%.*}.c" "${name%%.*}.s" "-fuse-ld=$ld" -Wl,--emit-relocs "$@" -o "$name" >"$name.log" 2>&1 && return
	skip "$name" "does not link: $(grep -v '^$' "$name.log" | tail -n 2 | head -n 1 | cut -c 1-120)"
	return 1
}

# --- calls over more than 128 MiB ----------------------------------------------------------------------------------------
# What a stub names has no relocation: in adrp and add, as a word of 8 bytes, or as a distance from a place in the stub.  A thunk
# does not reach over this distance either.
cat macros.s - >far.s <<'END'
	.text
	caller	near_a, far_a
	caller	near_b, far_a
	caller	near_c, far_b
	twin	near_twin
	twin	near_other
	function tail
	add	x0, x0, #2
	b	far_b
	done	tail
	.section .far, "ax", %progbits
	twin	far_a
	twin	far_b
	caller	far_calls, near_twin
	caller	far_calls_too, near_twin
END
main_of near_a near_b near_c near_twin near_other tail far_a far_b far_calls far_calls_too >far.c
for ld in bfd gold lld mold; do
	for kind in pie nopie; do
		name=far.$ld.$kind
		flags="-fPIE -pie -Wl,--section-start=.far=0x20000000"
		# Only so do gold and lld leave everything else where it is.
		[ $kind = pie ] || flags="-fno-pie -no-pie -Wl,--section-start=.far=0x20000000 -Wl,--section-start=.text=0x410000"
		# shellcheck disable=SC2086
		link $name $ld $flags || continue
		run_both $name
		run_both $name all
		check $name/folds "near_a and near_b stay" eval "folded $name.safe near_a || folded $name.safe near_b"
	done
done

# --- errata 843419 and 835769 of Cortex-A53 ------------------------------------------------------------------------------
# sites PLACE...: functions with an ADRP at these places of a page, each behind a twin of 64 bytes.  All but the first twin are folded,
# so what is 64 * n bytes behind the last words of a page would move there.
sites() {
	local at=0 n=0 place before
	cat macros.s - <<-'END'
		.macro site name, before, number
		function \name
		.rept \before
		add x0, x0, #1
		.endr
		adrp x1, datum
		ldr x2, [sp]
		ldr x3, [x1, #:lo12:datum]
		add x0, x0, x3
		add x0, x0, #\number
		ret
		done \name
		.endm
		.data
		.p2align 3
		datum: .quad 1000
		.text
		function product
		adrp x1, datum
		add x1, x1, #:lo12:datum
		mov x4, #3
		ldr x2, [x1]
		madd x0, x2, x4, x0
		ldr x2, [x1]
		madd x0, x4, x4, x0
		add x0, x0, x2
		ret
		done product
		.p2align 12
	END
	for place; do
		at=$((at + 64))
		before=$((((place - at) % 4096 + 4096) % 4096))
		echo "twin twin_$n"
		echo "site site_$n, $((before / 4)), $n"
		at=$(((at + before + 24 + 15) / 16 * 16)) n=$((n + 1))
	done
}
places="0xff8 0xffc 0x078 0x0bc 0x0f8 0x13c 0x178 0x1bc 0x1f8 0x23c 0xff8 0xff0"
# shellcheck disable=SC2086
sites $places >sites.s
# shellcheck disable=SC2046
main_of product $(n=0; for _ in $places; do echo "twin_$n site_$n"; n=$((n + 1)); done) >sites.c
erratum() { "$TESTS/judges/a64_erratum.py" objdump "$1" | sort; }
for ld in bfd gold lld mold; do
	for fix in none 843419 both; do
		name=sites.$ld.$fix
		flags="-mno-fix-cortex-a53-843419 -mno-fix-cortex-a53-835769"
		[ $fix = none ] || flags="$flags -Wl,--fix-cortex-a53-843419"
		[ $fix != both ] || flags="$flags -Wl,--fix-cortex-a53-835769"
		# shellcheck disable=SC2086
		link $name $ld -fPIE -pie $flags || continue
		run_both $name
		run_both $name all
		check $name/folds "a twin stays" folded $name.safe twin_1 twin_2
		if have python3; then
			check $name/sites "new ones: $(comm -13 <(erratum $name) <(erratum $name.safe) | tr '\n' ' ')" \
				test -z "$(comm -13 <(erratum $name) <(erratum $name.safe))"
			[ $fix = none ] && check $name/judge "it sees none" eval "grep -q '0x[0-9a-f]*\$' <(erratum $name) && grep -q 835769 <(erratum $name)"
			# Those that the linker mended are mended.  mold takes the option and mends none.
			[ $fix != both ] || [ $ld = mold ] || check $name/mended "$(erratum $name.safe | head -n 1)" test -z "$(grep 835769 <(erratum $name.safe))"
		else
			skip $name/sites "no python3"
		fi
	done
done

# --- guarded pages -------------------------------------------------------------------------------------------------------
# No library, so that all code is guarded.  Twins are called through a pointer, and jumped to through x16.
cat >guarded.c <<'END'
#define TWIN(name) __attribute__((noinline, noclone)) long name(long x) { for (long i = 0; i < 3; i++) x = x * 7 + (x >> 3) - i; return x ^ 0x55; }
TWIN(one) TWIN(two) TWIN(three)
typedef long fn(long);
fn *volatile table[] = { one, two, three };
__attribute__((noinline)) long tail(long i, long x) { fn *f = table[i]; return f(x); }
static long sys(long n, long a, long b, long c)
{
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}
void _start(void)
{
	char text[80];
	int n = 0;
	long v[] = { table[0](5), table[1](5), tail(1, 6), tail(2, 7), table[0] == table[1] };
	for (unsigned i = 0; i < 5; i++) {
		for (int k = 12; k >= 0; k -= 4)
			text[n++] = "0123456789abcdef"[v[i] >> k & 15];
		text[n++] = '\n';
	}
	sys(64, 1, (long)text, n);
	sys(93, 0, 0, 0);
}
END
if gcc -O2 -fno-ipa-icf -fno-stack-protector -mbranch-protection=standard -nostdlib -static -fno-pie -Wl,--emit-relocs,-z,force-bti guarded.c -o guarded >guarded.log 2>&1; then
	QEMU_CPU=max run_both guarded
	check guarded/folds "twins stay" folded guarded.safe two three
	# The judge can fail: without the landing pad of a thunk the program ends.
	at=0x$(readelf -sW guarded.safe | awk '$8 == "two" { print $2 }')
	off=$(readelf -lW guarded.safe | awk '$1 == "LOAD" { print $2, $3, $5 }' |
		while read -r o lo n; do if ((at >= lo && at < lo + n)); then echo $((at - lo + o)); fi; done)
	cp guarded.safe guarded.unsafe
	printf '\x1f\x20\x03\xd5' | dd of=guarded.unsafe bs=1 seek="${off:-0}" conv=notrunc 2>/dev/null
	check guarded/judge "it runs without a landing pad" test -n "$off" -a "$($RUN -cpu max ./guarded.unsafe >/dev/null 2>&1; echo $?)" != 0
	check guarded/verify "a thunk without its landing pad is called equal" test "$("$ICFOLD" verify guarded guarded.unsafe >/dev/null 2>&1; echo $?)" = 1
else
	skip guarded "does not build: $(first_line guarded.log)"
fi

# --- the address of a page -----------------------------------------------------------------------------------------------
# GNU ld 2.46 turns the addition of a low half that is nothing into a no-op, and keeps its relocation.  The high half is then the whole
# address.  Older linkers keep the addition; the test does what the newer one does.
page() { # NAME LINKER BYTES FLAG...: BYTES of code in front of `aimed`
	local name=$1 ld=$2 pad=$3
	shift 3
	cat macros.s - >page.s <<-END
		.text
		twin	page_a
		twin	page_b
		function filler
		.rept	$((pad / 4))
		eor	x0, x0, #1
		.endr
		ret
		done	filler
		function aimed
		add	x0, x0, #3
		ret
		done	aimed
		function goes
		br	x1
		done	goes
		function takes
		adrp	x1, aimed
		add	x1, x1, :lo12:aimed
		b	goes
		done	takes
	END
	link "$name" "$ld" "$@"
}
main_of page_a page_b takes >page.c
for ld in bfd gold lld mold; do
	for kind in pie nopie; do
		name=page.$ld.$kind
		flags=-pie
		[ $kind = pie ] || flags=-no-pie
		# These two make `nop; adr` of it.
		case $ld in lld | mold) flags="$flags -Wl,--no-relax" ;; esac
		# shellcheck disable=SC2086
		page $name $ld 64 $flags || continue
		at=$((0x$(nm $name | awk '$3 == "aimed" { print $1 }')))
		# shellcheck disable=SC2086
		page $name $ld $((64 + (4096 - at % 4096) % 4096)) $flags || continue
		check $name/input "aimed begins no page, or its low half is not nothing" python3 - $name "$(nm $name | awk '$3 == "aimed" || $3 == "takes" { print "0x" $1 }' | xargs)" <<-'END'
			import struct, sys
			data = bytearray(open(sys.argv[1], "rb").read())
			aimed, takes = (int(x, 16) for x in sys.argv[2].split())
			phoff, phnum = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
			for i in range(phnum):
			    kind, _, off, va, _, size = struct.unpack_from("<IIQQQQ", data, phoff + 56 * i)
			    if kind == 1 and va <= takes < va + size:
			        at = off + takes - va + 4
			if aimed % 4096 or struct.unpack_from("<I", data, at)[0] != 0x91000021:
			    sys.exit(1)
			struct.pack_into("<I", data, at, 0xd503201f)
			open(sys.argv[1], "wb").write(data)
		END
		run_both $name
		run_both $name all
		check $name/folds "page_b is not folded" folded $name.safe page_b
	done
done

# --- the end of the reach ------------------------------------------------------------------------------------------------
# tbz reaches 32 KiB.  A twin of its target, which could be kept for both, is farther away.
cat macros.s - >reach.s <<'END'
	.text
	twin	kept_a
	function filler
	.rept 10000
	eor	x0, x0, #1
	.endr
	ret
	done	filler
	twin	kept_b
	function tests
	tbz	x0, #0, .Lkept_b
	sub	x0, x0, #1
	ret
	done	tests
	.p2align 4
	.type	own, %function
own:	.cfi_startproc
.Lkept_b:
	rounds
	.cfi_endproc
	.size	own, . - own
	twin	spare_a
	twin	spare_b
	/* adr reaches 1 MiB; its data stays, and it moves away. */
	function computes
	adr	x1, datum
	ldr	x1, [x1]
	add	x0, x0, x1
	ret
	done	computes
	function loads
	ldr	x1, datum
	sub	x0, x0, x1
	ret
	done	loads
	.section .near, "aw", %progbits
	.p2align 3
datum:	.quad	1000
END
main_of kept_a filler kept_b tests spare_a spare_b computes loads >reach.c
for ld in bfd lld; do
	link reach.$ld $ld -fno-pie -no-pie -Wl,--section-start=.near=0x450000 || continue
	at=$((0x$(readelf -sW reach.$ld | awk '$8 == "computes" { print $2 }') & ~15))
	link reach.$ld $ld -fno-pie -no-pie -Wl,--section-start=.near="$(printf '0x%x' $((at + 0xffff0)))" || continue
	run_both reach.$ld
	run_both reach.$ld all
	check reach.$ld/folds "spare_b stays" folded reach.$ld.safe spare_b
done

# --- addresses from the GOT ----------------------------------------------------------------------------------------------
# lld and mold turn the load of an address into an addition and keep its relocations.  These tell that both halves are of `target`,
# also in a function with an indirect jump.  `target` is too far for adr, and moves.
cat macros.s - >got.s <<'END'
	.text
	function picks
	link
	and	x1, x0, #3
	adrp	x2, .Lcases
	add	x2, x2, #:lo12:.Lcases
	ldrb	w2, [x2, x1]
	adr	x1, .Lbase
	add	x1, x1, w2, sxtb #2
	br	x1
.Lbase:
	add	x0, x0, #1
	b	.Lend
.Lother:
	add	x0, x0, #2
.Lend:
	adrp	x2, :got:target
	ldr	x2, [x2, #:got_lo12:target]
	blr	x2
	unlink
	ret
	done picks
	.section .rodata
.Lcases: .byte 0, (.Lother - .Lbase) / 4, 0, (.Lother - .Lbase) / 4
	.text
	function filler
	.rept 300000
	eor	x0, x0, #1
	.endr
	ret
	done filler
	twin	twin_a
	twin	twin_b
	function target
	mov	x1, #9
	mul	x0, x0, x1
	ret
	done target
END
main_of picks filler twin_a twin_b target >got.c
for ld in bfd lld mold; do
	link got.$ld $ld -fPIE -pie || continue
	run_both got.$ld
	run_both got.$ld all
	"$ICFOLD" -v got.$ld -o got.out 2>got.said
	check got.$ld/moves "$(grep pinned got.said | tail -n 1)" eval "folded got.$ld.safe twin_b && ! grep -q 'within reach' got.said"
	[ $ld = bfd ] || check got.$ld/relaxed "no addition" eval \
		"objdump -d --disassemble=picks got.$ld | grep -A1 'adrp.*x2, .*target\|adrp.*filler' | grep -q 'add.*x2, x2'"
done

# --- misplaced relocations -----------------------------------------------------------------------------------------------
# gold writes the relocations of the section in front of its stubs, here that of a second file, as if the section stood first.  The others
# are believed: `target` moves.
sed 's/:got:target/target/; s/ldr	x2, .x2, #:got_lo12:target./add	x2, x2, #:lo12:target/' got.s >places.s
cp got.c places.c
cat macros.s - >last.s <<'END'
	.data
	.p2align 3
word:	.quad	1000
	.text
	function last
	adrp	x1, word
	add	x0, x0, #5
	ldr	x1, [x1, #:lo12:word]
	ret
	done	last
END
if link places.gold gold -fPIE -pie last.s -Wl,--fix-cortex-a53-843419; then
	run_both places.gold
	run_both places.gold all
	"$ICFOLD" -v places.gold -o places.out 2>places.said
	check places.gold/misplaced "gold has been mended" test "$(readelf -rW places.gold | awk '/rela.text/ { on = 1 } !NF { on = 0 }
		on && /R_AARCH64/ { if ($1 < last) n++; last = $1 } END { print n + 0 }')" -gt 0
	check places.gold/moves "$(grep pinned places.said | tail -n 1)" eval "folded places.gold.safe twin_b && ! grep -q 'within reach' places.said"
fi

# gold makes a stub for the erratum, and then does without: the adrp becomes an adr.  The stub, which nothing enters, is code.
cat macros.s - >spare.s <<'END'
	.text
	.p2align 12
	twin	twin_a
	twin	twin_b
	function site
	.rept 0x1ff8 / 4 - 32
	add	x0, x0, #1
	.endr
	adrp	x1, datum
	ldr	x2, [sp]
	ldr	x3, [x1, #:lo12:datum]
	add	x0, x0, x3
	ret
	done	site
	.data
	.p2align 3
datum:	.quad	1000
END
main_of twin_a twin_b site last >spare.c
if link spare.gold gold -fPIE -pie last.s -Wl,--fix-cortex-a53-843419; then
	run_both spare.gold
	run_both spare.gold all
	"$ICFOLD" -v spare.gold -o spare.out 2>spare.said
	check spare.gold/moves "$(grep pinned spare.said | tail -n 1)" eval "folded spare.gold.safe twin_b && ! grep -q 'not understood' spare.said"
fi

# --- addresses that linkers relax to one instruction ---------------------------------------------------------------------
# lld and mold make nop and adr of adrp and add whose data is in reach of 1 MiB.  The data stays, the code moves away: two instructions
# again.
cat macros.s - >relax.s <<'END'
	.macro filler name, n
	function \name
	.rept \n
	eor	x0, x0, #1
	.endr
	ret
	done \name
	.endm
	.text
	twin	twin_a
	twin	twin_b
	twin	twin_c
	twin	twin_f
	function near
	adrp	x1, datum
	add	x1, x1, #:lo12:datum
	ldr	x1, [x1]
	add	x0, x0, x1
	ret
	done	near
	/* No linker made this. */
	function plain
	nop
	.ifdef	within
	adr	x1, datum
	.else
	mov	x1, sp
	.endif
	ldr	x1, [x1]
	sub	x0, x0, x0, lsl #1
	ret
	done	plain
	filler	filler_b, pad / 4
	twin	twin_d
	twin	twin_e
	.data
	.p2align 4
datum:	.quad	1000, 500
END
main_of twin_a twin_b twin_c twin_d twin_e twin_f near plain >relax.c
# What stands at NAME in FILE: the names of two instructions.
two() { objdump -d --no-show-raw-insn "$1" | awk -v s="<$2>:" '$2 == s { on = 3 } on && on-- < 3 { printf "%s ", $2 }'; }
for ld in lld mold; do
	for kind in nopie pie plain; do
		name=relax.$ld.$kind
		flags="-fPIE -pie"
		[ $kind = pie ] || flags="-fno-pie -no-pie"
		# shellcheck disable=SC2086
		link "$name" $ld $flags -Wa,--defsym,pad=0xe0000 || continue
		pad=$(readelf -sW "$name" | awk '$8 == "near" || $8 == "datum" { at[$8] = $2 } END { print "0x" at["datum"] " - 0x" at["near"] }')
		pad=$(((0xe0000 + 0xffff8 - (pad)) & ~15))
		[ $kind = plain ] && flags="$flags -Wa,--defsym,within=1"
		# shellcheck disable=SC2086
		link "$name" $ld $flags -Wa,--defsym,pad=$pad || continue
		run_both "$name"
		check "$name/relaxed" "in the input: $(two "$name" near)" test "$(two "$name" near)" = "nop adr "
		if [ $kind = plain ]; then
			check "$name/stays" "$(two "$name.safe" plain)" test "$(two "$name.safe" plain)" = "nop adr "
			continue
		fi
		run_both "$name" all
		check "$name/two" "$(two "$name.all" near)" test "$(two "$name.all" near)" = "adrp add "
		check "$name/folds" "twin_b stays" folded "$name.safe" twin_b twin_c
	done
done
# Another register, another page, another number.
if [ -e relax.lld.nopie.all ] && have python3; then
	at=0x$(readelf -sW relax.lld.nopie.all | awk '$8 == "near" { print $2 }')
	off=$(readelf -SW relax.lld.nopie.all | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".text" { print "0x" $4 " - 0x" $3 }')
	for change in "0 0" "0 5" "1 5" "1 10"; do
		cp relax.lld.nopie.all relax.wrong
		# shellcheck disable=SC2086
		python3 -c 'import sys; f = open("relax.wrong", "r+b"); word, bit, off = map(int, sys.argv[1:]); f.seek(off + 4 * word)
n = int.from_bytes(f.read(4), "little") ^ 1 << bit; f.seek(off + 4 * word); f.write(n.to_bytes(4, "little"))' $change $((at + off))
		check "relax/mutant ${change/ /.}" "verify calls it equal" \
			test "$("$ICFOLD" verify --icf=all relax.lld.nopie relax.wrong >/dev/null 2>&1; echo $?)" = 1
	done
fi

# --- thunks among padding ------------------------------------------------------------------------------------------------
# The end of the code stays, so thunks lie in the largest gap: between two functions that stay, too.
cat macros.s - >gap.s <<'END'
	.text
	function before
	ret
	done before
	.p2align 9
	function behind
	add	x0, x0, #5
	ret
	done behind
	twin	twin_a
	twin	twin_b
	twin	twin_c
	twin	twin_d
	function reads
	adr	x1, .Lpool
	ldr	x1, [x1]
	add	x0, x0, x1
	ret
.Lpool:	.quad	0x5555555555555555
	done reads
	.data
	.p2align 3
	.quad	twin_a, twin_b, twin_c, twin_d
END
main_of before behind twin_a twin_b twin_c twin_d reads >gap.c
for ld in bfd lld; do
	link gap.$ld $ld -fPIE -pie || continue
	run_both gap.$ld
	check gap.$ld/place "the thunks are not there" eval "[ $((0x$(symbol_value gap.$ld.safe twin_c))) -lt $((0x$(symbol_value gap.$ld.safe behind))) ]"
done

# The gap is as wide as before: what the thunks leave of it is traps like all gaps, and no no-ops between traps.
{
	printf '\t.macro small name, number\n\t.globl \\name\n\t.type \\name, %%function\n\\name:\n\t.cfi_startproc\n\thint #34\n\t.if \\number\n'
	printf '\tmov w0, #\\number - 1\n\t.endif\n\tret\n\tdone \\name\n\t.endm\n'
	cat macros.s
	printf '\t.text\n\t.p2align 5\n\tsmall first, 0\n\t.p2align 5\n'
	for k in "real, 3" "boot, 1" "mid, 4" "setup, 1" "mid2, 5" "finish, 1"; do printf '\tsmall %s\n' "$k"; done
	echo '	.section .note.GNU-stack,"",@progbits'
} >left.s
if gcc -shared -nostdlib -fuse-ld=bfd left.s -o left.so 2>left.log; then
	fold_to left.so safe && ok left.so
	check left.so/place "the thunks are not there" eval "[ $((0x$(symbol_value left.so.safe setup))) -lt $((0x$(symbol_value left.so.safe real))) ]"
	check left.so/fill "no-ops are left" eval "! objdump -d left.so.safe | grep -q 'nop$'"
else
	not_ok left.so "$(first_line left.log)"
fi

# --- rules taken out -----------------------------------------------------------------------------------------------------
# An icfold that lacks a rule makes a wrong program of one of these: the sound verifier says so, or nothing can be made.
load_recipe asm_a64
if compile_fixture gcc -O2 pie "$WORK/obj" >asm.log 2>&1 && link_fixture gcc bfd pie "$WORK/obj" "$WORK/asm" >asm.log 2>&1; then
	run_both asm
else
	not_ok asm "does not build: $(first_line asm.log)"
fi
# GNU's assembler states the range of its unit in as few bytes as possible: it cannot become a list of two, around thunks of functions
# that are another unit's.
if compile_fixture gcc "-O0 -g" pie "$WORK/objg" >asm.log 2>&1 && link_fixture gcc bfd pie "$WORK/objg" "$WORK/asm.debug" >asm.log 2>&1; then
	run_both asm.debug
	check asm.debug/rule "there was room for the thunks" grep -q 'no room for their thunks' <("$ICFOLD" -v asm.debug -o asm.debug.out 2>&1)
else
	not_ok asm.debug "does not build: $(first_line asm.log)"
fi
cd "$ROOT" || exit 1
PATH=${PATH#"$WORK/tools:"}
. "$TESTS/lib/plant.sh"
# without NAME PROGRAM FILE SED
without() {
	local name=$1 prog=$WORK/$2
	[ -x "$prog" ] || { skip "without/$name" "no program $2"; return; }
	plant "without/$name" "$3" "$4" || return
	if ! "$WORK/$name" -q --allow-growth "$prog" -o "$WORK/wrong" 2>"$WORK/log"; then
		check "without/$name" "it fails in another way: $(first_line "$WORK/log")" grep -q 'reach' "$WORK/log"
		return
	fi
	check "without/$name" "verify calls the program equal" test "$("$ICFOLD" verify "$prog" "$WORK/wrong" >"$WORK/log" 2>&1; echo $?)" = 1
}
without addresses-in-stubs far.lld.nopie icf/refs/known 's/icf_pin_place(prog, eight);/;/'
without hazards sites.bfd.none icf/fold/hazard 's/if (!arch->hazard/if (arch->hazard/'
without landing-pads guarded elfrw/arch/aarch64 's/at = endbr ? WORD : 0/at = 0/'
without page-starts page.bfd.pie icf/refs/pair 's/(named & (((uint64_t)1 << form->page) - 1))/true/'
without reach reach.bfd icf/fold/fit 's/if (!pin_short(prog, plan, false))/if (true)/'
without was-halves relax.lld.plain icf/refs/ref 's/!icf_was_halves(.*))$/false)/'
finish
