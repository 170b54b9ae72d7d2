#!/bin/bash
# aarch64_traps.sh: what compilers and linkers for AArch64 make now and then: thread-local variables in all models, relative virtual
# tables, other procedure call standards, signed pointers in data, PLTs with landing pads, data that is marked as code and code that is
# marked as data, other kinds of frames.  Built by cross compilers, run by qemu.  AARCH64=full: with all linkers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite aarch64_traps

# fold_both FILE: folds it in both modes, into FILE.safe and FILE.all, and proves it.
fold_both() { fold_to "$1" safe && fold_to "$1" all; }
# same FILE [LIBRARY]: the program FILE, with the folded LIBRARY or folded itself, prints what it did.
same() {
	local f=$1 lib=${2:-} mode
	$RUN ./"$f" >"$f.want" 2>&1 || { not_ok "$f" "unfolded, it ends with $?"; return 1; }
	for mode in safe all; do
		if [ "$lib" ]; then
			mkdir -p "with.$mode" && cp "$lib.$mode" "with.$mode/$lib"
			$RUN -E LD_LIBRARY_PATH="with.$mode" ./"$f" >"$f.got" 2>&1
		else
			$RUN ./"$f.$mode" >"$f.got" 2>&1
		fi || { not_ok "$f/$mode" "folded, it ends with $?"; return 1; }
		cmp -s "$f.want" "$f.got" || { not_ok "$f/$mode" "$(diff "$f.want" "$f.got" | sed -n 2,3p | tr '\n' ' ')"; return 1; }
	done
	ok "$f${lib:+/$lib}"
}
# built NAME COMMAND...: COMMAND builds NAME.  A share of all, unless AARCH64=full.
built() {
	local name=$1
	shift
	case ${AARCH64:-}:$name in
	full:* | :padding.* | :tls.desc.bfd.pie | :tls.desc.lld.so* | :got.bfd.so* | :relative*19* | :variant.bfd* | :plts.*.force-bti | :frames.* | :marks.bfd | :signed | :tagged.globals | :ends.*) ;;
	*) return 1 ;;
	esac
	"$@" >"$name.log" 2>&1 && return
	skip "$name" "does not build: $(grep -v '^$' "$name.log" | grep -i -m 1 -E 'error|unsupp|unrec|sorry' | cut -c 1-120)"
	return 1
}

# --- switches that end a function ------------------------------------------------------------------------------------------
# The jump is the last instruction, so the label that the table counts from is the end of the function: another one begins there, or
# padding.  If it was taken for the function behind it, that would be found where the two are no longer neighbours: `behind1` folds.
{
	cat macros.s
	cat <<'END'
	.macro switch name, nops, width, one, two, three
	function \name
	.rept \nops
	nop
	.endr
	cmp	w0, #3
	b.hi	9f
	b	8f
1:	mov	w0, #11
	ret
2:	mov	w0, #22
	ret
3:	mov	w0, #33
	ret
9:	mov	w0, #99
	ret
8:	adrp	x1, table.\name
	add	x1, x1, :lo12:table.\name
	\one
	\two
	\three
	br	x4
7:
	.cfi_endproc
	.size	\name, . - \name
	.section .rodata
table.\name: .\width (1b - 7b) / 4, (2b - 7b) / 4, (3b - 7b) / 4, (9b - 7b) / 4
	.text
	.endm
	.text
	twin	before
	switch	gcc, 2, byte, "ldrb w4, [x1, w0, uxtw]", "adr x3, 7f", "add x4, x3, w4, sxtb 2"
	twin	behind1
	switch	halves, 1, hword, "ldrh w4, [x1, w0, uxtw 1]", "adr x3, 7f", "add x4, x3, w4, sxth 2"
	twin	behind2
	switch	words, 2, word, "ldr w4, [x1, w0, uxtw 2]", "adr x3, 7f", "add x4, x3, w4, sxtw 2"
	twin	behind3
	// No switch: the address of the function behind is an argument of the one that is jumped to.
	function tail
	nop
	adr	x1, behind4
	adrp	x2, jumps
	add	x2, x2, :lo12:jumps
	br	x2
	.cfi_endproc
	.size	tail, . - tail
	.type	behind4, %function
	.hidden	behind4
	.globl	behind4
behind4: .cfi_startproc
	rounds
	done	behind4
	function jumps
	br	x1
	done	jumps
	.section .note.GNU-stack,"",%progbits
END
} >ends.s
{
	main_of before behind1 behind2 behind3 behind4 tail gcc halves words | sed '$d'
	for f in gcc halves words; do echo "for (long i = 0; i < 5; i++) printf(\"%ld\\n\", $f(i));"; done
	echo 'return 0; }'
} >ends.c
while read -r name flags; do
	# shellcheck disable=SC2086
	built "$name" gcc -O1 ends.c ends.s $flags -o "$name" || continue
	fold_both "$name" && same "$name"
	check "$name/folds" "$(all_folded "$name.all")" folded "$name.all" behind1 behind2 behind3
	"$ICFOLD" -v --icf=all "$name" -o "$name.all" >"$name.log" 2>&1
	check "$name/compact" "$(grep -m 1 place "$name.log")" grep -q '^icfold: compact' "$name.log"
	check "$name/apart" "nothing lies between" test "$(($(address_of "$name.all" behind1) - $(address_of "$name.all" gcc)))" -ne 80
	# The label of a folded program leads one instruction too far: adr has bits 2 and up of the distance from bit 5 on.
	at=$(objdump -d --disassemble=gcc "$name.all" | awk '$3 == "adr" { sub(":", "", $1); print $1 }')
	word=$(objdump -d --disassemble=gcc "$name.all" | awk '$3 == "adr" { print $2 }')
	cp "$name.all" "$name.bad"
	put_word "$name.bad" "0x$at" 4 $((0x$word + 32)) .text
	"$ICFOLD" verify --icf=all "$name" "$name.bad" >"$name.verdict" 2>&1
	check "$name/mutant" "$(tail -n 1 "$name.verdict")" grep -q 'from which a switch counts' "$name.verdict"
done <<'END'
ends.relocs -Wl,--emit-relocs
ends.plain
END

# --- padding that is entered -------------------------------------------------------------------------------------------------
# Code with a word of data that it does not load leads into the no-ops in front of functions that would fold, in each way.  Bytes between two
# functions, to which nothing leads, read as such branches, too.
{
	cat macros.s
	cat <<'END'
	.macro padded name
	.p2align 5
	nop
	nop
.Lin.\name: nop
	nop
	twin \name
	.endm
	.macro strange name, one, two, three, four
	function \name
	b	1f
	.word	0x12345678
1:	\one
	\two
	\three
	\four
	done \name
	.endm
	.text
	twin	before
	padded	by_jump
	leaf	plus1, 1
	padded	by_condition
	leaf	plus2, 2
	padded	by_zero
	leaf	plus3, 3
	padded	by_bit
	leaf	plus4, 4
	padded	by_call
	leaf	plus5, 5
	padded	by_address
	leaf	plus6, 6
	padded	by_word
	leaf	plus13, 13
	strange	jump, "b .Lin.by_jump"
	strange	condition, "cmp x0, #99", "b.ne .Lin.by_condition", "ret"
	strange	zero, "cbnz x0, .Lin.by_zero", "ret"
	strange	bit, "tbz x0, #40, .Lin.by_bit", "ret"
	strange	calls, "mov x9, x30", "bl .Lin.by_call", "add x0, x0, #5", "ret x9"
	strange	address, "adr x9, .Lin.by_address", "br x9"
	strange	half, "adrp x9, .Lin.by_half", "add x9, x9, :lo12:.Lin.by_half", "br x9"
	strange	word, "adr x9, 2f", "ldrsw x10, [x9]", "add x9, x9, x10", "br x9; 2: .word .Lin.by_word - 2b"
	.irp n, 7, 8, 9
	leaf	plus\n, \n
	.endr
	.p2align 4
	b.eq	.Lin.between
	leaf	plus10, 10
	.p2align 5
	nop
.Lin.between: nop
	leaf	plus11, 11
	.p2align 12
	leaf	plus14, 14
	padded	by_half
	leaf	plus12, 12
	.p2align 12
	twin	after
	twin	last
	twin	final
	.section .note.GNU-stack,"",%progbits
END
} >padding.s
main_of before by_jump by_condition by_zero by_bit by_call by_address by_half by_word plus{1..14} jump condition zero bit calls address half word after last final >padding.c
while read -r name flags; do
	# shellcheck disable=SC2086
	built "$name" gcc -O1 padding.c padding.s $flags -o "$name" || continue
	fold_both "$name" && same "$name"
	check "$name/folds" "$(all_folded "$name.all")" folded "$name.all" final
	# A no-op becomes another one.
	for f in by_jump by_condition by_zero by_bit by_call by_address by_half by_word plus11; do
		cp "$name.all" "$name.bad"
		put_word "$name.bad" $(($(address_of "$name.all" $f) - 4)) 4 $((0xd503205f)) .text
		"$ICFOLD" verify --icf=all "$name" "$name.bad" >"$name.verdict" 2>&1
		check "$name/mutant/$f" "$(tail -n 1 "$name.verdict")" grep -qE '(may lead into|reference to padding that) changed|what half of an address may name' "$name.verdict"
	done
done <<'END'
padding.relocs -Wl,--emit-relocs
padding.plain -pie
END

# --- thread-local variables ----------------------------------------------------------------------------------------------
# Two functions for each variable, so one folds; those of different variables do not.  Linkers relax the access as far as they can.
cat >tls.c <<'END'
#include <stdio.h>
#define KEEP __attribute__((noinline, noclone))
extern __thread long away;
__thread long global = 10;
static __thread long local = 20, other = 30;
__attribute__((tls_model("initial-exec"))) extern __thread long early;
#define TWO(what) \
	KEEP long what##_a(long x) { what += x; return what * 3 + (x ^ 5); } \
	KEEP long what##_b(long x) { what += x; return what * 3 + (x ^ 5); }
TWO(away) TWO(global) TWO(local) TWO(other) TWO(early)
long run(void)
{
	long s = 0;
	for (long i = 0; i < 4; i++) {
		s = s * 7 + away_a(i) + global_b(i) - local_a(i) + other_b(i) - early_a(i);
		s = s * 5 + away_b(i) - global_a(i) + local_b(i) - other_a(i) + early_b(i);
	}
	return s;
}
END
echo '__thread long away = 40, early = 50;' >tls_away.c
cat >tls_main.c <<'END'
/* gold misplaces the relocations of a main that it moves to the front. */
#pragma GCC optimize "O0"
#include <pthread.h>
#include <stdio.h>
long run(void);
static void *thread(void *p) { printf("%ld\n", run()); return p; }
int main(void)
{
	pthread_t t;
	printf("%ld\n", run());
	printf("%ld\n", run());
	if (pthread_create(&t, 0, thread, 0) == 0)
		pthread_join(t, 0);
	return 0;
}
END
# one_of_each FILE VARIABLE...: of the two functions for each variable, one is folded.
one_of_each() {
	local file=$1 v
	shift
	for v; do folded "$file" "${v}_a" || folded "$file" "${v}_b" || return 1; done
}
for dialect in desc trad; do
	for ld in bfd gold lld mold; do
		for kind in pie static so; do
			[ "$dialect.$kind" != trad.static ] || continue
			name=tls.$dialect.$ld.$kind
			flags="-O2 -fPIC -mtls-dialect=$dialect -fno-ipa-icf -fuse-ld=$ld -Wl,--emit-relocs -Wl,-rpath,."
			case $kind in
			pie) set -- $flags tls.c tls_away.c tls_main.c -pie -o "$name" ;;
			static) set -- $flags tls.c tls_away.c tls_main.c -static -no-pie -o "$name" ;;
			so) set -- $flags -shared tls.c tls_away.c "-Wl,-soname,$name" -o "$name" ;;
			esac
			built "$name" gcc "$@" && fold_both "$name" || continue
			if [ $kind = so ]; then
				built "$name.main" gcc -O1 tls_main.c "./$name" "-Wl,-rpath,$PWD" -o "$name.main" || continue
				same "$name.main" "$name"
			else
				same "$name"
			fi
			check "$name/folds" "$(all_folded "$name.all")" one_of_each "$name.all" global local other
		done
	done
done

# --- the GOT, for small position-independent code -----------------------------------------------------------------------------
# ldr x0, [x0, #:gotpage_lo15:away]: the page of the GOT, not of its entry.
for f in tls tls_away; do sed 's/__thread //; s/__attribute__((tls_model("initial-exec"))) //' $f.c >${f/tls/got}.c; done
for ld in bfd gold lld mold; do
	for kind in pie so; do
		name=got.$ld.$kind
		flags="-O2 -fpie -pie"
		[ $kind = pie ] || flags="-O2 -fpic -shared -Wl,-soname,$name"
		[ $kind = so ] || flags="$flags tls_main.c"
		# shellcheck disable=SC2086
		built "$name" gcc $flags -fno-ipa-icf got.c got_away.c -fuse-ld=$ld -Wl,--emit-relocs -o "$name" && fold_both "$name" || continue
		if [ $kind = so ]; then
			built "$name.main" gcc -O1 tls_main.c "./$name" "-Wl,-rpath,$PWD" -o "$name.main" && same "$name.main" "$name"
		else
			same "$name"
		fi
		check "$name/relocation" "the compiler makes another" grep -q GOTPAGE_LO15 <(readelf -rW "$name")
		check "$name/folds" "$(all_folded "$name.all")" one_of_each "$name.all" away global local early
	done
done

# --- relative virtual tables: distances to functions, or to their PLT entries -----------------------------------------------
cat >relative.cc <<'END'
#include <cstdio>
#define KEEP __attribute__((noinline))
struct base { KEEP virtual long f(long x) { return x; } KEEP virtual long g(long x) { return -x; } };
template <int N> struct kind : base {
	KEEP long f(long x) override { return x * 7 + (x >> 3) - 5; }
	KEEP long g(long x) override { return x * 7 + (x >> 3) - N; }
};
base *make(int n) { static kind<1> a; static kind<2> b; static kind<3> c; static base d; base *v[] = { &a, &b, &c, &d }; return v[n & 3]; }
int main()
{
	for (int i = 0; i < 8; i++)
		printf("%ld %ld\n", make(i)->f(i), make(i)->g(i + 1));
	return 0;
}
END
# Each function stays, as a distance from anywhere could lead into its middle.
for cc in clang++-19 clang++; do
	for opt in O1 O2; do
		name=relative.$cc.$opt
		have $cc || { skip "$name" "no $cc"; continue; }
		built "$name" "$cc" --target=aarch64-linux-gnu -$opt -fPIE -pie -fno-rtti -Xclang -fexperimental-relative-c++-abi-vtables relative.cc \
			-fuse-ld=lld -Wl,--emit-relocs -o "$name" && fold_both "$name" && same "$name"
	done
done

# --- other procedure call standards ---------------------------------------------------------------------------------------
# Calls of these through the PLT must not be bound lazily: each name keeps its mark, and the file its tag.
cat macros.s - >variant.s <<'END'
	.macro	vector name
	.p2align 4
	.globl	\name
	.type	\name, %function
	.variant_pcs \name
\name:	.cfi_startproc
	fadd	d0, d0, d8
	fmul	d0, d0, d0
	fadd	d0, d0, d8
	fmul	d0, d0, d0
	fadd	d0, d0, d16
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.text
	vector	vector_a
	vector	vector_b
	.globl	calls
	.type	calls, %function
calls:	.cfi_startproc
	link
	fmov	d8, #2.0
	fmov	d16, #3.0
	fmov	d0, #1.0
	bl	vector_a
	bl	vector_b
	ldp	x29, x30, [sp], #16
	ret
	.cfi_endproc
	.size	calls, . - calls
	.section .note.GNU-stack, "", %progbits
END
cat >variant_main.c <<'END'
#include <stdio.h>
double calls(void);
int main(void) { printf("%f\n", calls()); return 0; }
END
for ld in bfd lld mold; do
	name=variant.$ld.so
	built "$name" gcc -shared variant.s -fuse-ld=$ld -Wl,--emit-relocs -Wl,-z,lazy "-Wl,-soname,$name" -o "$name" && fold_both "$name" &&
		built "$name.main" gcc variant_main.c "./$name" "-Wl,-rpath,$PWD" -o "$name.main" && same "$name.main" "$name" || continue
	for out in safe all; do
		check "$name/$out/marks" "$(readelf -sW "$name.$out" | grep -c VARIANT_PCS), before $(readelf -sW "$name" | grep -c VARIANT_PCS)" \
			test "$(readelf -sW "$name.$out" | grep -c VARIANT_PCS)" = "$(readelf -sW "$name" | grep -c VARIANT_PCS)"
		check "$name/$out/tag" "none" test "$(readelf -dW "$name.$out" | grep -c VARIANT_PCS)" = "$(readelf -dW "$name" | grep -c VARIANT_PCS)"
	done
done

# --- landing pads and signatures in PLTs, and stubs with landing pads -------------------------------------------------------
# The C library does not know the signed ones.
cat macros.s - >plts.s <<'END'
	.macro	far name, number
	function \name
	hint	#34
	add	x0, x0, #\number
	eor	x0, x0, #7
	ret
	done \name
	.endm
	.text
	twin	twin_a
	twin	twin_b
	function near
	add	x0, x0, #3
	b	far_b
	done near
	.section .far, "ax", %progbits
	far	far_a, 5
	far	far_b, 6
	.section .note.GNU-stack, "", %progbits
END
main_of twin_a twin_b near far_a far_b >plts.c
# plt FILE: the names of the instructions in its PLT.
plt() { objdump -d -j .plt --no-show-raw-insn "$1" | awk 'NF > 1 { print $2 }' | grep -v '<'; }
for ld in bfd lld mold; do
	for plt in force-bti pac-plt now lazy; do
		name=plts.$ld.$plt
		built "$name" gcc -O1 -mbranch-protection=standard plts.c plts.s -fno-pie -no-pie -fuse-ld=$ld -Wl,-z,$plt -Wl,--emit-relocs \
			-Wl,--section-start=.far=0x20000000 -Wl,--section-start=.text=0x410000 -o "$name" && fold_both "$name" || continue
		# Start files may have no landing pads.
		[ $plt = pac-plt ] || QEMU_CPU=cortex-a57 same "$name"
		check "$name/folds" "$(all_folded "$name.safe")" folded "$name.safe" twin_b
		check "$name/plt" "other entries" cmp -s <(plt "$name") <(plt "$name.safe")
	done
done

# --- frames of other kinds --------------------------------------------------------------------------------------------------
# The key of a signature, and tagged frames, are part of a function, although its code is the same.
cat macros.s - >frames.s <<'END'
	.macro	body name
	link
	add	x0, x0, x0, lsl #3
	bl	twin_a
	unlink
	ret
	done \name
	.endm
	.text
	twin	twin_a
	function plain_a
	body	plain_a
	function plain_b
	body	plain_b
	function key_a
	.cfi_b_key_frame
	body	key_a
	function key_b
	.cfi_b_key_frame
	body	key_b
	function tagged_a
	.cfi_mte_tagged_frame
	body	tagged_a
	function tagged_b
	.cfi_mte_tagged_frame
	body	tagged_b
	.section .note.GNU-stack, "", %progbits
END
# GNU's assembler knows no tagged frames.
cp frames.s all_frames.s
sed -i '/^	function tagged_a/,/^	body	tagged_b/d' frames.s
main_of plain_a plain_b key_a key_b >frames.c
built frames.gas gcc -O1 frames.c frames.s -fuse-ld=lld -Wl,--emit-relocs -o frames.gas && fold_both frames.gas && same frames.gas &&
	check frames.gas/folds "$(all_folded frames.gas.all)" test "$(all_folded frames.gas.all)" = "plain_b, key_b, "
if have clang-19; then
	main_of plain_a plain_b key_a key_b tagged_a tagged_b >frames.c
	built frames.llvm clang-19 --target=aarch64-linux-gnu -march=armv8.5-a+memtag -O1 frames.c all_frames.s -fuse-ld=lld -Wl,--emit-relocs -o frames.llvm &&
		fold_both frames.llvm && same frames.llvm &&
		check frames.llvm/folds "$(all_folded frames.llvm.all)" test "$(all_folded frames.llvm.all)" = "plain_b, key_b, tagged_b, "
fi

# --- marks that are wrong ---------------------------------------------------------------------------------------------------
# Code written as words is marked as data; data may be marked as code; an island may lie at any byte; a call of a weak function that is
# nowhere is a no-op after linking, but for gold.
cat macros.s - >marks.s <<'END'
	.weak	nowhere
	.hidden	nowhere
	.text
	twin	twin_a
	twin	twin_b
	function words_a
	.word	0x8b000800, 0x91000c00, 0xd65f03c0	/* add x0, x0, x0, lsl #2; add x0, x0, #3; ret */
	done words_a
	function words_b
	.word	0x8b000800, 0x91000c00, 0xd65f03c0
	done words_b
	function words_calls
	.word	0xa9bf7bfd
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	bl	twin_b
	.word	0xa8c17bfd, 0xd65f03c0
	done words_calls
	function reads
	adr	x1, .Lodd
	ldrb	w2, [x1]
	ldur	w3, [x1, #1]
	add	x0, x0, x2
	add	x0, x0, x3
	ret
	done reads
	.byte	1
.Lodd:	.byte	7
	.4byte	0x94000003
	.p2align 2
	function instructions
	ldr	w1, 1f
	add	x0, x0, x1
	ret
1:	.inst	0x94000002
	done instructions
	twin	twin_c
	function weak_a
	link
	bl	nowhere
	add	x0, x0, #9
	bl	twin_c
	unlink
	ret
	done weak_a
	function weak_b
	link
	bl	nowhere
	add	x0, x0, #9
	bl	twin_b
	unlink
	ret
	done weak_b
	.section .note.GNU-stack, "", %progbits
END
main_of twin_a twin_b words_a words_b words_calls reads instructions twin_c weak_a weak_b >marks.c
for ld in bfd lld mold; do
	name=marks.$ld
	built $name gcc -O1 -fno-pie -no-pie marks.c marks.s -fuse-ld=$ld -Wl,--emit-relocs -o $name && fold_both $name && same $name
done

# --- signed pointers in data ----------------------------------------------------------------------------------------------
# The addend of a relocation for a signed pointer is a part of the signature's rule: such a file is refused.
cat >signed.s <<'END'
	.text
	.globl	_start
	.type	_start, %function
_start:	mov	x0, #0
	mov	x8, #93
	svc	#0
	.size	_start, . - _start
	.data
	.p2align 3
	.quad	_start@AUTH(ia,42)
END
if have clang-19 && have ld.lld-19; then
	name=signed
	built $name clang-19 --target=aarch64-linux-gnu -nostdlib -fPIE -pie signed.s -fuse-ld=lld-19 -Wl,--emit-relocs -o $name && {
		"$ICFOLD" -q $name -o $name.out >$name.log 2>&1
		rc=$?
		check $name/refused "status $rc: $(first_line $name.log)" test $rc = 1 -a ! -e $name.out
	}
fi

# --- tagged memory ----------------------------------------------------------------------------------------------------------
# The word at the relocation of a tagged global is no addend; the notes and lists of such globals stay.
cat >tagged.c <<'END'
static long other[4] = { 5, 6, 7, 8 };
long *end = other + 4, sum;
#define TWIN(name) __attribute__((noinline)) long name(long x) { for (int i = 0; i < x; i++) x = x * 7 + (x >> 3) + other[i & 3]; return x; }
TWIN(twin_a) TWIN(twin_b)
long (*pointer[])(long) = { twin_a, twin_b };
void run(void) { sum = twin_a(1) + twin_b(2) + pointer[1](3) + end[-1] + (pointer[0] == pointer[1]); }
END
bytes_of() { readelf -x "$2" "$1" 2>&1 | grep '^  0x'; }
for kind in globals stack; do
	name=tagged.$kind
	# lld 19 breaks off when it keeps relocations of tagged globals.
	relocs=--emit-relocs
	[ $kind = stack ] || relocs=--no-gc-sections
	have clang-19 && have ld.lld-19 || { skip "$name" "no clang-19 or lld-19"; continue; }
	built "$name" clang-19 --target=aarch64-linux-android31 -march=armv8.5-a+memtag -fsanitize=memtag-$kind -O1 -fPIC -c tagged.c -o "$name.o" &&
		built "$name" ld.lld-19 -shared $relocs --android-memtag-mode=sync "$name.o" -o "$name" && fold_both "$name" || continue
	check "$name/folds" "nothing" test -n "$(all_folded "$name.all")"
	for part in .data .note.android.memtag .memtag.globals.dynamic; do
		check "$name/$part" "other bytes" cmp -s <(bytes_of "$name" $part) <(bytes_of "$name.safe" $part)
	done
	check "$name/tags" "others" cmp -s <(readelf -dW "$name" | grep 0x7) <(readelf -dW "$name.safe" | grep 0x7)
done
finish
