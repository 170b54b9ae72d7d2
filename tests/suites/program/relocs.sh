#!/bin/bash
# relocs.sh: programs whose relocations do not say everything, although --emit-relocs kept them.  The programs' own work judges the
# outputs, and verify says equal.
#
#   names      local symbols were stripped after the link, or left out by it: jump tables and split-off parts are still found
#   nosymtab   relocations without a symbol table (gold -s) count as none
#   layouts    segments without page alignment, headers in no segment, traps behind the code
#   distances  to functions, in every shape, with a relocation or without
#   vtables    clang's relative vtables
#   traps      lists of traps, as clang's -fsanitize=kcfi makes them
# PARTS="names" runs some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

# judge NAME IN [MODE...]: IN folded in each mode (none safe all in-place) runs as it did, and verify agrees.  The outputs are IN.MODE, what
# --stats=json says IN.MODE.stats.
judge() {
	local name=$1 in=$2 mode opts bad
	shift 2
	[ $# = 0 ] && set -- none safe all in-place
	{ timeout 300 "$in" || echo "exit status $?"; } >"$in.want" 2>&1
	for mode in "$@"; do
		opts=--icf=$mode bad=
		[ "$mode" = in-place ] && opts="--icf=safe --in-place"
		# shellcheck disable=SC2086
		if ! timeout 300 "$ICFOLD" -q --stats=json $opts "$in" -o "$in.$mode" >"$in.$mode.stats" 2>"$in.log"; then
			bad="icfold: $(first_line "$in.log")"
		elif { timeout 300 "$in.$mode" || echo "exit status $?"; } >"$in.got" 2>&1; ! cmp -s "$in.want" "$in.got"; then
			bad="prints something else: $(diff "$in.want" "$in.got" | sed -n 2,3p | tr '\n' ' ')"
		elif [ "$mode" != none ] && ! "$ICFOLD" verify "${opts%% *}" "$in" "$in.$mode" >"$in.log" 2>&1; then
			bad="verify: $(grep -E "^[a-z][a-z ,()._]*: " "$in.log" | grep -vE "^(symbolized|resolved): .* 0 wrong" | head -n 1)"
		fi 2>/dev/null
		if [ -n "$bad" ]; then not_ok "$name/$mode" "$bad"; else ok "$name/$mode"; fi
	done
}
stat_of() { sed -n "s/^ *\"$2\": \([0-9]*\),*$/\1/p" "$1" | head -n 1; }

# mutants NAME NAMED IN OUT KIND...: OUT broken, in places that are found with the symbols of NAMED; verify notices.
mutants() {
	local name=$1 named=$2 in=$3 out=$4 kind i n what bad
	shift 4
	for kind in "$@"; do
		n=0 bad=
		for i in 0 1 2; do
			what=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$BUILD/tests/mutate" "$kind" $i 3 "$named" "$out" "$in.mutant" 2>/dev/null) || continue
			n=$((n + 1))
			"$ICFOLD" verify "$in" "$in.mutant" >/dev/null 2>&1
			[ $? = 1 ] || bad="$bad $what"
		done
		check "$name/mutant/$kind" "of $n survived:$bad" test $n != 0 -a -z "$bad"
	done
}

# --- names ------------------------------------------------------------------------------------------------------------
# Each table has an entry for a split-off part.  Counted from the entry's own place, it would name the padding behind that part.
names_part() {
	local d=$WORK/names ld how in
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#include <setjmp.h>
		#include <stdio.h>
		#define N static __attribute__((noinline, noclone))
		jmp_buf escape;
		volatile int w;
		__attribute__((noinline, cold, noreturn)) void die(int n) { printf("%d\n", n); longjmp(escape, 1); }
		#define CASES(x) case x: w += 17 * x; break; case x + 1: w ^= 3 + x; break; case x + 2: w -= x; break; case x + 3: w *= x + 5; break;
		#define FUNCTION(name, k) N int name(unsigned n) { switch (n) { \
			CASES(0) CASES(4) CASES(8) CASES(12) CASES(16) CASES(20) CASES(24) CASES(28) CASES(32) CASES(36) case 40: die(k); } return w + k; }
		FUNCTION(a1, 1) FUNCTION(a2, 1) FUNCTION(b1, 2) FUNCTION(b2, 2) FUNCTION(c, 3)
		int main(void)
		{
			for (volatile unsigned i = 0; i < 41; i++)
				if (!setjmp(escape))
					printf("%d %d %d %d %d\n", a1(i), a2(i), b1(i), b2(i), c(i));
			for (int (*volatile f)(unsigned) = c, i = 40; i < 41; i++)
				if (!setjmp(escape))
					printf("%d\n", f(40));
			return 0;
		}
	END
	gcc -O2 -fno-ipa-icf -fPIE -falign-functions=1024 -c "$d/p.c" -o "$d/p.o" 2>"$d/log" || not_ok names "does not compile: $(first_line "$d/log")"
	for ld in bfd gold lld mold static; do
		for how in whole strip-x strip-unneeded discard-all; do
			in=$d/$ld.$how
			# mold stops with an assertion here.
			[ "$ld.$how" = mold.discard-all ] && continue
			[ $ld = static ] && [ $how != strip-x ] && continue
			set -- -pie -fuse-ld=$ld
			[ $ld = static ] && set -- -static -no-pie -fuse-ld=bfd
			[ $how = discard-all ] && set -- "$@" -Wl,--discard-all
			if ! gcc "$@" -Wl,--emit-relocs "$d/p.o" -o "$in" 2>"$d/log"; then
				skip "names/$ld.$how" "does not link: $(tail -n 1 "$d/log" | cut -c 1-120)"
				continue
			fi
			[ $how = strip-x ] && strip -x "$in"
			[ $how = strip-unneeded ] && strip --strip-unneeded "$in"
			judge "names/$ld.$how" "$in"
			[ $ld = static ] || check "names/$ld.$how/folds" "$(stat_of "$in.safe.stats" folded) folded, $(stat_of "$in.safe.stats" pinned) pinned" \
				test "$(stat_of "$in.safe.stats" folded)" -ge 2 -a "$(stat_of "$in.safe.stats" pinned)" = 0
		done
		[ $ld = static ] || mutants names/$ld "$d/$ld.whole" "$d/$ld.strip-x" "$d/$ld.strip-x.safe" table-entry table-entry-not-rewritten table-entries-swapped
	done
}

# --- nosymtab ---------------------------------------------------------------------------------------------------------
nosymtab_part() {
	local d=$WORK/nosymtab in
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#define N __attribute__((noinline, noclone))
		volatile int w;
		N static int a(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		N static int b(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		int main(void) { return a(3) + b(4) != 42; }
	END
	in=$d/in
	if ! gcc -O1 -fPIE -pie -s -fuse-ld=gold -Wl,--emit-relocs "$d/p.c" -o "$in" 2>"$d/log" || ! readelf -SW "$in" | grep -q ' \.rela\.text '; then
		skip nosymtab "gold does not link: $(tail -n 1 "$d/log" | cut -c 1-120)"
		return
	fi
	judge nosymtab "$in"
	check nosymtab/folds "$(stat_of "$in.safe.stats" folded) folded" test "$(stat_of "$in.safe.stats" folded)" = 1
	"$ICFOLD" -v --emit-relocs "$in" -o "$in.kept" >"$d/log" 2>&1
	check nosymtab/inferred "$(first_line "$d/log")" grep -q '^icfold: compact, references from the code' "$d/log"
	check nosymtab/dropped "relocations that say nothing are kept" test -z "$(readelf -SW "$in.kept" | grep ' \.rela\.text ')"
}

# --- layouts ----------------------------------------------------------------------------------------------------------
layouts_part() {
	local d=$WORK/layouts kind ld flags name
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#include <stdio.h>
		#define N __attribute__((noinline, noclone))
		volatile int w;
		N static int a(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		N static int b(int x) { for (int i = 0; i < x; i++) w += i * x; return w; }
		int main(void) { printf("%d %d\n", a(3), b(4)); return 0; }
	END
	gcc -O1 -fno-pic -c "$d/p.c" -o "$d/p.o"
	while read -r kind ld flags; do
		name=layouts/$kind.$ld.$flags
		# shellcheck disable=SC2086
		if ! gcc -no-pie ${kind#dynamic} -fuse-ld="$ld" -Wl,--emit-relocs -Wl,$flags "$d/p.o" -o "$d/in" 2>"$d/log"; then
			skip "$name" "does not link: $(tail -n 1 "$d/log" | cut -c 1-120)"
		else
			judge "$name" "$d/in" safe in-place
		fi
	done <<-'END'
	-static lld -N
	-static lld -z,separate-code
	dynamic lld -z,separate-loadable-segments
	dynamic lld --no-rosegment
	dynamic bfd -z,noseparate-code
	END
}

# --- distances --------------------------------------------------------------------------------------------------------
# asm_head: macros; `leaves` makes functions f1 to f4 with others between them that fold, so that each moves by another distance.
asm_head() {
	cat <<-'END'
			.include "functions.inc"
			.macro leaf name n
			fun \name
			lea \n(%rdi,%rdi,4), %eax
			ret
			end \name
			.endm
			.macro leaves
			end sw
			leaf f1 11
			twin a2
			leaf f2 22
			twin a3
			leaf f3 33
			leaf f4 44
			.endm
			twin a1
			.globl sw
			fun sw
			and $3, %edi
			lea tab(%rip), %rdx
	END
}

# distance NAME: the assembler text at standard input, behind asm_head.
distance() {
	local d=$WORK/distances how in
	{ asm_head; cat; } >"$d/$1.s"
	for how in whole strip-x; do
		in=$d/$1.$how
		if ! gcc -O2 -fPIE -pie "-Wa,-I$TESTS/lib" -Wl,--emit-relocs "$d/$1.s" "$d/m.c" -o "$in" 2>"$d/log"; then
			not_ok "distances/$1" "does not build: $(first_line "$d/log")"
			return
		fi
		[ $how = strip-x ] && strip -x "$in"
		judge "distances/$1.$how" "$in" safe all in-place
	done
}

distances_part() {
	local d=$WORK/distances add='movslq (%rdx,%rdi,4), %rax'
	mkdir -p "$d"
	cat >"$d/m.c" <<-'END'
		#include <stdio.h>
		int a1(int), a2(int), a3(int), sw(unsigned);
		int main(void) { printf("%d\n", a1(1) + a2(2) + a3(3)); for (unsigned i = 0; i < 4; i++) printf("%d\n", sw(i)); return 0; }
	END
	# Counted from a function, in code and in data, in each size: the assembler leaves no relocation.
	distance code <<-END
		$add; lea a1(%rip), %rdx; add %rdx, %rax; jmp *%rax
		leaves
		.p2align 2
		tab: .long f1-a1, f2-a1, f3-a1, f4-a1
	END
	distance code-own <<-END
		$add; lea f1(%rip), %rdx; add %rdx, %rax; jmp *%rax
		leaves
		.p2align 2
		tab: .long 0, f2-f1, f3-f1, f4-f1
	END
	distance data <<-END
		$add; lea a1(%rip), %rdx; add %rdx, %rax; jmp *%rax
		leaves
		.section .rodata
		tab: .long f1-a1, f2-a1, f3-a1, f4-a1
	END
	distance data8 <<-END
		mov (%rdx,%rdi,8), %rax; lea a1(%rip), %rdx; add %rdx, %rax; jmp *%rax
		leaves
		.section .rodata
		tab: .quad f1-a1, f2-a1, f3-a1, f4-a1
	END
	distance data2 <<-END
		movswq (%rdx,%rdi,2), %rax; shl \$2, %rax; lea a1(%rip), %rdx; add %rdx, %rax; jmp *%rax
		leaves
		.section .rodata
		tab: .short (f1-a1)/4, (f2-a1)/4, (f3-a1)/4, (f4-a1)/4
	END
	# Units of 16 bytes, and every multiple begins a function.  Code that multiplies by 16 and names little else means the functions.
	distance dense <<-END
		movzwl (%rdx,%rdi,2), %eax; shl \$4, %eax; lea a1(%rip), %rdx; add %rdx, %rax; jmp *%rax
		leaves
		.section .rodata
		tab: .short (f1-a1)/16, (f2-a1)/16, (f3-a1)/16, (f4-a1)/16
	END
	# If code names many functions, numbers lead to some by chance, and pin none.
	distance numbers <<-END
		mov (%rdx,%rdi,8), %eax; shl \$4, %eax
		$(for n in {1..40}; do echo "lea l$n(%rip), %rdx; leal l$n(%rip), %ecx"; done)
		ret
		leaves
		$(for n in {1..40}; do echo "leaf l$n $n"; [ $((n % 8)) != 0 ] || echo "twin z$n"; done)
		.section .rodata
		tab: .short 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
	END
	check distances/numbers/pins "pinned: $(stat_of "$d/numbers.whole.safe.stats" pinned)" test "$(stat_of "$d/numbers.whole.safe.stats" pinned)" = 0
	# Counted from the word's end, a record's start, in packed records: with relocations, and in code without.
	distance end <<-END
		lea (%rdx,%rdi,4), %rdx; movslq (%rdx), %rax; lea 4(%rax,%rdx), %rdx; jmp *%rdx
		leaves
		.section .rodata
		tab: .long f1-.-4, f2-.-4, f3-.-4, f4-.-4
	END
	distance record <<-END
		shl \$4, %edi; add %rdi, %rdx; movslq 8(%rdx), %rax; add %rdx, %rax; jmp *%rax
		leaves
		.section .rodata
		tab: 1: .quad 1; .long f1-1b, 0; 1: .quad 1; .long f2-1b, 0; 1: .quad 1; .long f3-1b, 0; 1: .quad 1; .long f4-1b, 0
	END
	distance packed <<-END
		lea (%rdi,%rdi,4), %rdi; add %rdi, %rdx; movslq 1(%rdx), %rax; lea 5(%rdx,%rax), %rax; jmp *%rax
		leaves
		.section .rodata
		tab: call f1; call f2; call f3; call f4
	END
	distance packed-code <<-END
		lea (%rdi,%rdi,4), %rdi; add %rdi, %rdx; movslq 1(%rdx), %rax; lea 5(%rdx,%rax), %rax; jmp *%rax
		leaves
		tab: .byte 7; .long f1-.-4; .byte 6; .long f2-.-4; .byte 5; .long f3-.-4; .byte 6; .long f4-.-4
	END
	distance place8 <<-END
		lea (%rdx,%rdi,8), %rdx; add (%rdx), %rdx; jmp *%rdx
		leaves
		.section .rodata
		tab: .quad f1-., f2-., f3-., f4-.
	END
	# Data in a function that reads as branches.  The function is far enough behind a folded one to move.
	distance inside <<-END
		jmp rd
		leaves
		.irp n, b1, b2, b3, b4, b5, b6, b7, b8
		twin \\n
		.endr
		fun rd
		mov konst(%rip), %eax; add konst+4(%rip), %eax; add %edi, %eax; ret
		konst: .byte 0xe8; .long 0xfffffe78; .byte 0xe9; .short 0x1212; .long 0; .byte 0x90, 0xc3
		end rd
		.section .rodata
		tab: .long 0
	END
	# Distances in what code adds to an address: numbers, products, and encodings that no list of words shows.
	distance number <<-END
		lea f2(%rip), %rax; add \$f4-f2, %rax; lea f3-f4(%rax), %rax; sub \$f3-f2, %rax; call *%rax
		lea f1(%rip), %rcx; mov %rcx, %rax; lea f3-f1(%rcx), %rcx; jmp *%rcx
		leaves
		tab:
	END
	distance number-lone <<-END
		lea f1(%rip), %rcx; mov %rcx, %rax; lea f3-f1(%rcx), %rcx; jmp *%rcx
		leaves
		tab:
	END
	check distances/number-lone/moves "in place" grep -q '"in_place": 0' "$d/number-lone.whole.safe.stats"
	# Another function enters where a register seems to hold a function's address still, behind a call that never returns.
	distance entered <<-END
		push %rbx; mov %rdx, %rbx; jmp 9f
		leaves
		fun part
		push %rbx; lea f1(%rip), %rbx; call dies; 9: lea (%rbx,%rdi,8), %rax; pop %rbx; test %rax, %rax; je dies; jmp f2
		end part
		fun dies
		ud2
		end dies
		.section .rodata
		tab: .long 0
	END
	check distances/entered/moves "in place" grep -q '"in_place": 0' "$d/entered.whole.safe.stats"
	distance product <<-END
		and \$1, %edi; imul \$f4-f2, %rdi, %rcx; lea f2(%rip), %rax; test %edi, %edi; je 1f; nop; 1: add %rcx, %rax; jmp *%rax
		leaves
		tab:
	END
	distance bytes <<-END
		movzbl (%rdx,%rdi), %eax; lea a1(%rip), %rdx; xor \$0x5a, %eax; lea (%rdx,%rax), %rax; jmp *%rax
		leaves
		.section .rodata
		tab: .byte (f1-a1)^0x5a, (f2-a1)^0x5a, (f3-a1)^0x5a, (f4-a1)^0x5a
	END
	distance steps <<-END
		lea a1(%rip), %rax; 1: movzbl (%rdx), %ecx; add %rcx, %rax; inc %rdx; dec %edi; jns 1b; jmp *%rax
		leaves
		.section .rodata
		tab: .uleb128 f1-a1, f2-f1, f3-f2, f4-f3
	END
	# A relocation without a symbol, whose addend is the function's address: the linker knew it.
	symbol_zero "$d"
	# The fold did not see the table, because its words are too large by one.  With the right words in both files, verify sees it.
	have python3 || return
	distance_mutant data4 long i 1
	distance_mutant data8 quad q 1
	distance_mutant data2x8 short h 8 8
	added_mutant number '48 05 00 00 00 00' '48 05 20 00 00 00'
	added_mutant sum '48 8d 40 00' '48 8d 04 08'
}

# symbol_zero FOLDER
symbol_zero() {
	local d=$1 at=0
	for _ in 1 2; do
		printf '.include "functions.inc"\ntwin a1\ntwin a2\ntwin a3\n.globl sw, moved\nfun sw\nlea 7(%%rdi), %%eax\nret\nend sw\nfun moved\nlea 5(%%rdi), %%eax\nret\nend moved\n.data\n.p2align 3\n.globl kept\nkept: .reloc ., R_X86_64_64, %s\n.quad 0\n' "$at" >"$d/zero.s"
		cat - "$d/m.c" >"$d/zero.c" <<-'END'
			extern int (*kept)(int);
			int moved(int);
			__attribute__((constructor)) static void look(void) { if (kept != moved) __builtin_trap(); }
		END
		gcc -O2 -no-pie "-Wa,-I$TESTS/lib" -Wl,--emit-relocs "$d/zero.s" "$d/zero.c" -o "$d/zero" 2>"$d/log" || { not_ok distances/symbol-zero "does not build: $(first_line "$d/log")"; return; }
		at=0x$(nm "$d/zero" | awk '$3 == "moved" { print $1 }')
	done
	"$ICFOLD" -q --emit-relocs "$d/zero" -o "$d/zero.out" && "$d/zero.out" >"$d/log" 2>&1
	check distances/symbol-zero/runs "$(first_line "$d/log")" cmp -s "$d/log" <("$d/zero")
	"$ICFOLD" verify "$d/zero" "$d/zero.out" >"$d/log" 2>&1
	check distances/symbol-zero "$(grep ': expected' "$d/log" | head -n 1)" grep -qx equal "$d/log"
}

# added_mutant NAME OLD NEW: adding zero was folded; in both files, it then becomes another sum.
added_mutant() {
	local in=$WORK/distances/added.$1
	{
		asm_head
		echo "lea f2(%rip), %rax; .byte 0x${2// /, 0x}; jmp *%rax"
		echo leaves
		echo tab:
	} >"$in.s"
	gcc -O2 -fPIE -pie "-Wa,-I$TESTS/lib" -Wl,--emit-relocs "$in.s" "$WORK/distances/m.c" -o "$in" && "$ICFOLD" -q "$in" -o "$in.out" &&
		python3 - "$2" "$3" "$in" "$in.out" <<-'END'
			import sys
			old, new = (bytes.fromhex(x) + b"\xff\xe0" for x in sys.argv[1:3])
			for f in sys.argv[3:]: b = open(f, 'rb').read(); assert b.count(old) == 1; open(f, 'wb').write(b.replace(old, new))
		END
	"$ICFOLD" verify "$in" "$in.out" >"$in.log" 2>&1
	check "distances/added/$1" "survived: $(tail -n 1 "$in.log")" grep -q 'sum with the address of a function.* sw' "$in.log"
}

# distance_mutant NAME DIRECTIVE FORMAT MORE [UNIT]
distance_mutant() {
	local in=$WORK/distances/mutant.$1 unit=${5:-1}
	{
		asm_head
		cat <<-END
			mov (%rdx,%rdi,8), %rax; lea a1(%rip), %rdx; ret
			.purgem leaf
			.macro leaf name n
			fun \name
			lea \n(%rdi,%rdi,4), %eax
			.fill \n * \n / 8, 1, 0x90
			ret
			end \name
			.endm
			leaves
			.section .rodata
			tab: .$2 (f1-a1+$4)/$unit, (f2-a1+$4)/$unit, (f3-a1+$4)/$unit, (f4-a1+$4)/$unit, (a2-a1+$4)/$unit
		END
	} >"$in.s"
	gcc -O2 -fPIE -pie "-Wa,-I$TESTS/lib" -Wl,--emit-relocs "$in.s" "$WORK/distances/m.c" -o "$in" && "$ICFOLD" -q "$in" -o "$in.out" &&
		python3 - "$3" "$4" "$unit" "$(nm "$in" | tr '\n' ';')" "$in" "$in.out" <<-'END'
			import struct, sys
			at = {l.split()[2]: int(l.split()[0], 16) for l in sys.argv[4].split(';') if len(l.split()) == 3}
			words = lambda more: struct.pack('<5' + sys.argv[1], *((at[f] - at['a1'] + more) // int(sys.argv[3]) for f in ('f1', 'f2', 'f3', 'f4', 'a2')))
			old, new = words(int(sys.argv[2])), words(0)
			for f in sys.argv[5:]: b = open(f, 'rb').read(); assert b.count(old) == 1; open(f, 'wb').write(b.replace(old, new))
		END
	"$ICFOLD" verify "$in" "$in.out" >"$in.log" 2>&1
	check "distances/mutant/$1" "survived: $(tail -n 1 "$in.log")" grep -q 'difference: ' "$in.log"
}

# --- vtables ----------------------------------------------------------------------------------------------------------
# clang's relative vtables: distances from the third word of the vtable, to functions that have names and to those that have none.
vtables_part() {
	local d=$WORK/vtables cc ld how in
	mkdir -p "$d"
	cat >"$d/p.cc" <<-'END'
		#include <stdio.h>
		#define N __attribute__((noinline))
		volatile int number = 1;
		N static int a(int x) { for (int i = 0; i < x; i++) number += i * x; return number; }
		N static int b(int x) { for (int i = 0; i < x; i++) number += i * x; return number; }
		namespace {
		struct A { virtual int zero(int) = 0; virtual int one(int) = 0; virtual int two(int x) { return x * 3 + 1; } virtual ~A() {} };
		template <int I> struct D : A { int zero(int x) override { return x * 5 + 7; } int one(int x) override { return x * 3 + 1; } };
		}
		struct B { virtual int zero(int x) { return x + 1; } virtual int one(int x) { return x * 3 + 1; } };
		struct E : B { int k = 3; int zero(int x) override { return x * k; } };
		N static A *make(int n) { static D<0> a; static D<1> b; return n ? (A *)&a : (A *)&b; }
		N static B *other(int n) { static B b; static E e; return n ? &b : &e; }
		int main()
		{
			for (int i = 0; i < 2; i++) {
				A *p = make(number + i - 1);
				B *q = other(number + i - 1);
				printf("%d %d %d %d %d\n", p->zero(p->one(i)), p->two(i), q->zero(i), q->one(i), a(0) + b(0));
			}
			return 0;
		}
	END
	for cc in clang++-19 clang++-14; do
		have $cc || { skip "vtables/$cc" "no $cc"; continue; }
		for ld in bfd lld; do
			for how in whole strip-x; do
				in=$d/$cc.$ld.$how
				if ! $cc -O1 -fPIE -pie -fno-rtti -Xclang -fexperimental-relative-c++-abi-vtables -fuse-ld=$ld -Wl,--emit-relocs "$d/p.cc" -o "$in" 2>"$d/log"; then
					skip "vtables/$cc.$ld" "does not build: $(first_line "$d/log")"
					continue
				fi
				[ $how = strip-x ] && strip -x "$in"
				judge "vtables/$cc.$ld.$how" "$in" safe all
			done
		done
	done
}

# --- traps ------------------------------------------------------------------------------------------------------------
# Traps in the middle of functions that move.  Each word of the list counts from itself, or from the list's start, which nothing
# says.
traps_part() {
	local d=$WORK/traps how in at new old word
	mkdir -p "$d"
	cat >"$d/p.c" <<-'END'
		#include <stdio.h>
		#include <string.h>
		#define TWIN(name) __attribute__((noinline)) int name(int x) { for (int i = 0; i < 9; i++) x = x * 77 ^ i << 5; return x; }
		#define TRAP(name, k) __attribute__((noinline)) int name(int x) { __asm__ volatile("test %0, %0; jns 1f; .L" #name ": ud2; 1:" : : "r"(x)); \
			return x * k; }
		TWIN(a1) TWIN(a2) TRAP(t1, 3) TWIN(a3) TRAP(t2, 7)
		__asm__(".pushsection .kcfi_traps, \"ao\", @progbits, .text\ntraps: .quad 0\n.long .Lt1 - " BASE "\n.long .Lt2 - " BASE "\n.popsection");
		extern const int traps[4] __attribute__((visibility("hidden")));
		int main(void)
		{
			printf("%d %d %d %d %d\n", a1(1), a2(2), a3(3), t1(4), t2(5));
			/* No instruction names the first word, or it would begin a jump table. */
			for (volatile int i = 2; i < 4; i++) {
				const char *from = *BASE == '.' ? (const char *)&traps[i] : (const char *)traps;
				puts(memcmp(from + traps[i], "\x0f\x0b", 2) ? "astray" : "a trap");
			}
			return 0;
		}
	END
	for how in own start; do
		in=$d/$how
		[ $how = own ] && at=. || at=traps
		if ! gcc -O1 -fPIE -pie -Wl,--emit-relocs "-DBASE=\"$at\"" "$d/p.c" -o "$in" 2>"$d/log"; then
			not_ok "traps/$how" "does not build: $(first_line "$d/log")"
			return
		fi
		judge "traps/$how" "$in" safe all
	done
	# The first word gets its old value, or a value one byte too large.
	in=$d/own
	at=$((16#$(readelf -SW "$in.all" | sed -n 's/.* \.kcfi_traps  *PROGBITS  *[0-9a-f]* \([0-9a-f]*\) .*/\1/p') + 8))
	old=$(od -An -tu1 -j $at -N 1 "$in") new=$(od -An -tu1 -j $at -N 1 "$in.all")
	check traps/moves "the word is what it was" test $((old)) != $((new))
	for word in $((old)) $((new + 1)); do
		cp "$in.all" "$in.mutant"
		# shellcheck disable=SC2059
		printf "\\x$(printf %x $((word & 255)))" | dd of="$in.mutant" bs=1 seek=$at conv=notrunc 2>/dev/null
		"$ICFOLD" verify "$in" "$in.mutant" >"$d/log" 2>&1
		check "traps/mutant/$([ "$word" = $((old)) ] && echo as-it-was || echo behind)" "survived" grep -q 'word: \.kcfi_traps' "$d/log"
	done
}

need_tool relocs
x86_only relocs aarch64
make_work
PARTS=${PARTS:-names nosymtab layouts distances vtables traps}
for part in $PARTS; do "${part}_part"; done
finish
