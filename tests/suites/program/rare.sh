#!/bin/bash
# rare.sh: rare forms of programs and of their debug information: each folds, verify says equal, the program does its work as before,
# and what verify is to see in such a form it sees when it is broken.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite rare python3
x86_only rare

# fold NAME IN OUT [OPTION...]: folds, verify says equal, and the output prints what the input does.
fold() {
	local name=$1 in=$2 out=$3
	shift 3
	"$ICFOLD" -q --allow-growth "$@" "$in" -o "$out" 2>err || { not_ok "$name" "does not fold: $(first_line err)"; return 1; }
	"$ICFOLD" verify --icf=all "$in" "$out" >verdict 2>&1
	check "$name" "verify: $(grep ': ' verdict | grep -v -e '^symbolized: ' -e '^resolved: ' | head -n 1 | cut -c 1-200)" grep -qx equal verdict
	check "$name/runs" "$(./"$out" 2>&1 | head -n 1)" test "$(./"$in" 2>&1)" = "$(./"$out" 2>&1)"
}
# seen NAME IN OUT REGEX: verify says different, because of REGEX.
seen() {
	"$ICFOLD" verify --icf=all "$2" "$3" >verdict 2>&1
	check "$1" "$(tail -n 1 verdict)" grep -qE "$4" verdict
}
# poke FILE OUT SECTION SIZE OLD NEW: the last number of SIZE bytes in SECTION that is OLD becomes NEW.
poke() {
	python3 - "$@" <<-'END'
		import struct, sys
		b = bytearray(open(sys.argv[1], 'rb').read())
		size, old, new = (int(x, 0) for x in sys.argv[4:])
		off, n, names = struct.unpack_from('<Q', b, 40)[0], *struct.unpack_from('<HH', b, 60)
		head = [struct.unpack_from('<IIQQQQ', b, off + 64 * i) for i in range(n)]
		name = lambda h: b[head[names][4] + h[0]:].split(b'\0')[0].decode()
		lo, hi = next((h[4], h[4] + h[5]) for h in head if name(h) == sys.argv[3])
		at = b.rindex(old.to_bytes(size, 'little'), lo, hi)
		b[at:at + size] = new.to_bytes(size, 'little')
		open(sys.argv[2], 'wb').write(b)
	END
	chmod +x "$2"
}

# --- a folded function's symbol names the section that holds its thunk or the kept copy
cat >apart.c <<'END'
#include <stdio.h>
#define S(s) __attribute__((noinline, section(s)))
#define F(n, s) S(s) int f##n(int x) { volatile int y = x; for (int i = 0; i < x; i++) y += i * 3; return y * 7 + 2; }
F(1, ".text") F(2, ".ltext.one") F(3, ".ltext.one") F(4, ".ltext.two")
int (*volatile t[])(int) = { f1, f2, f3, f4 };
int main(void) { int s = 0; for (int i = 0; i < 4; i++) s += t[i](i) + f1(i) + f2(i) + f3(i) + f4(i); return printf("%d\n", s) < 0; }
END
# outside FILE: the symbols in FILE of the functions above that lie outside of the section that they name.
outside() {
	{ readelf -SW "$1" | sed 's/^ *\[ *//; s/\]/ S/'; readelf -sW "$1"; } | awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$2 == "S" && NF > 8 { lo[$1] = hex($5); hi[$1] = lo[$1] + hex($7) }
		$8 ~ /^f[1-4]$/ { v = hex($2); n++; if (v < lo[$7] || v >= hi[$7]) print $8 }
		END { if (n < 8) print "few" }'
}
for how in pie:all pie:safe no-pie:all no-pie:safe; do
	gcc -O1 -g -fno-ipa-icf -rdynamic -${how%:*} -Wl,--emit-relocs apart.c -o apart 2>log || { not_ok rare/section "$(first_line log)"; continue; }
	fold "rare/section/$how" apart apart.out --icf="${how#*:}" || continue
	check "rare/section/$how/holds" "$(outside apart.out | tr '\n' ' ')" test -z "$(outside apart.out)"
	# So does the symbol of a relocation that is kept.
	fold "rare/section/$how/relocs" apart apart.kept --icf="${how#*:}" --emit-relocs
done
# As it was before: f4's number of its old section.  The symbol's last fields: section, value, size.
if have jq && "$ICFOLD" -q --allow-growth --icf=all apart -o apart.out; then
	number() { readelf -SW "$1" | awk -v s="$2" '{ sub(/^ *\[ */, ""); sub(/\]/, "") } $2 == s { print $1 }'; }
	value=0x$(readelf -sW apart.out | awk '$8 == "f4" { print $2; exit }')
	for table in .symtab .dynsym; do
		size=$([ $table = .symtab ] && echo 0 || echo $((0x$(nm -S apart | awk '$4 == "f4" { print $2 }') - 1)))
		field() { python3 -c "import sys; print(int.from_bytes(int(sys.argv[1]).to_bytes(2, 'little') + int(sys.argv[2], 0).to_bytes(8, 'little') + int(sys.argv[3]).to_bytes(8, 'little'), 'little'))" "$1" "${2:-$value}" "$size"; }
		poke apart.out apart.bad $table 18 "$(field "$(number apart.out .text)")" "$(field "$(number apart.out .ltext.two)")"
		seen "rare/section/planted/$table" apart apart.bad "symbols: symbol: f[234] of $table: expected type, binding and section"
	done
	# The same, and a place behind the kept copy's start, in the symbol of a relocation.
	"$ICFOLD" -q --allow-growth --icf=all --emit-relocs apart -o apart.kept
	size=0 value=0x$(readelf -sW apart.kept | awk '$8 == "f4" { v = $2 } END { print v }')
	was=$(field "$(number apart.kept .text)" "$value")
	poke apart.kept apart.bad .symtab 18 "$was" "$(field "$(number apart.kept .ltext.two)" "$value")"
	seen rare/section/planted/relocs apart apart.bad '^kept relocations: symbol: '
	poke apart.kept apart.bad .symtab 18 "$was" "$(field "$(number apart.kept .text)" $((value + 1)))"
	seen rare/section/planted/relocs-value apart apart.bad '^kept relocations: symbol: '
fi

# --- the line of a thunk covers it: its sequence does not end where it begins (DW_LNS_advance_pc 6 becomes two DW_LNS_set_prologue_end)
sed 's/return y .*2; }/return x \& 1 ? y * 7 : x \& 2 ? y \/ 3 + x : x \& 4 ? y % 11 - x : x \& 8 ? y * y * 7 + x \/ 13 : y ^ 0x1234567; }/; s/"\.l*text[.a-z]*"/".text"/g' apart.c >thunks.c
gcc -O1 -g -fno-ipa-icf -Wl,--emit-relocs thunks.c -o thunks 2>log || not_ok rare/thunk-line "$(first_line log)"
"$ICFOLD" -q --allow-growth --icf=safe thunks -o thunks.out
if poke thunks.out thunks.bad .debug_line 5 0x0101000602 0x0101000a0a; then
	"$ICFOLD" verify thunks thunks.out >verdict 2>&1
	check rare/thunk-line "$(tail -n 1 verdict)" grep -qx equal verdict
	"$ICFOLD" verify thunks thunks.bad >verdict 2>&1
	check rare/thunk-line/planted "$(tail -n 1 verdict)" grep -q 'expected a sequence that covers code' verdict
else
	not_ok rare/thunk-line "no sequence of 6 bytes"
fi

# --- a section that moves down, with the byte behind it that belongs to no function
cat >down.c <<'END'
#include <stdio.h>
#define F(n) __attribute__((noinline)) int f##n(int x) { volatile int y = x; for (int i = 0; i < x; i++) y += i * 3; return y * 7 + 2; }
F(1) F(2) F(3)
__asm__(".section .code.last,\"ax\",@progbits\n.globl last\n.type last,@function\nlast: lea 3(%rdi,%rdi,4),%eax\n.rept 500\nnop\n.endr\nret\n.size last,.-last\n.text");
int last(int);
int main(void) { return printf("%d\n", f1(3) + f2(4) + f3(5) + last(7)) < 0; }
END
gcc -O1 -g -fno-ipa-icf -Wl,--emit-relocs down.c -o down && fold rare/down down down.out --icf=all &&
	check rare/down/grows "the section is no larger: the test tests nothing" test \
		"$(readelf -SW down.out | awk '/ .code.last / { print $(NF - 5) }')" != "$(readelf -SW down | awk '/ .code.last / { print $(NF - 5) }')"

# --- location lists that GCC means absolute beside a unit with an address are read as ranges anywhere: over two sections; between two,
# where code gets to
cat >lists.s <<'END'
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11
	.byte 1
	.uleb128 3, 8, 0x11, 1, 0, 0
	.uleb128 2, 0x34
	.byte 0
	.uleb128 3, 8, 2, 0x17, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long 1f - 0f
0:	.value 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.asciz "lists"
	.quad 0
	.uleb128 2
	.asciz "over"
	.long .Lover
	.uleb128 2
	.asciz "between"
	.long .Lbetween
	.byte 0
1:	.section .debug_loc,"",@progbits
.Lover:	.quad one + 2, two_end
	.value 1
	.byte 0x50
	.quad 0, 0
.Lbetween: .quad two_end + 1, two_end + 4
	.value 1
	.byte 0x51
	.quad three, three_end
	.value 1
	.byte 0x52
	.quad 0, 0
	.macro function name, section, align, number, fill
	.section \section,"ax",@progbits
	.p2align \align
	.globl \name
	.type \name,@function
\name:	.cfi_startproc
	lea 3(%rdi,%rdi,4),%eax
	xor $\number,%eax
	.rept \fill
	nop
	.endr
	ret
	.cfi_endproc
\name\()_end:
	.size \name,.-\name
	.endm
	function one, .code.one, 6, 1, 0
	nop
	function two, .code.two, 0, 2, 0
	function three, .code.zzz, 5, 3, 200
	.section .note.GNU-stack,"",@progbits
END
sed -i 's/^int last.*/int one(int), two(int), three(int);/; s/last(7)/one(7) + two(1) + three(2)/; /__asm__/d' down.c
gcc -O1 -fno-ipa-icf -Wl,--emit-relocs down.c lists.s -o lists && fold rare/lists lists lists.out --icf=all

# --- exception tables in a section of another name stay, those of folded functions, too
cat >table.cc <<'END'
#include <cstdio>
struct D { int v; ~D() { if (v > 3) putchar('x'); } };
void may(int x) { if (x > 2) throw x; }
__attribute__((noinline)) int a(int x) { D d{x}; may(x); return x * 3 + 1; }
__attribute__((noinline)) int b(int x) { D d{x}; may(x); return x * 3 + 1; }
__attribute__((noinline)) int c(int x) { try { may(x + 1); } catch (int e) { return e + 7; } return 1; }
__attribute__((noinline)) int d(int x) { try { may(x + 1); } catch (int e) { return e + 7; } return 1; }
int main() {
	int s = 0;
	for (int i = 0; i < 6; i++) {
		try { s += a(i); } catch (int k) { s += k * 5; }
		try { s += b(i); } catch (int k) { s += k; }
		s += c(i) + d(i);
	}
	return printf("%d\n", s) < 0;
}
END
g++ -O2 -g -fno-ipa-icf -Wl,--emit-relocs table.cc -o table.in && objcopy --rename-section .gcc_except_table=.lsda table.in table &&
	fold rare/tables table table.out --icf=all

# --- DW_AT_LLVM_stmt_sequence: the place of a function's sequence in the line table
{
	echo '	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11
	.byte 1
	.uleb128 3, 8, 0x1b, 8, 0x10, 0x17, 0x11, 1, 0x55, 0x17, 0, 0
	.uleb128 2, 0x2e
	.byte 0
	.uleb128 0x11, 1, 0x12, 6, 3, 8, 0x3e0c, 0x17, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long 1f - 0f
0:	.value 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.asciz "hand.c"
	.asciz "/hand"
	.long .Lline
	.quad 0
	.long .Lranges'
	for i in 0 1 2 3 4 5; do
		printf '.uleb128 2\n.quad f%d\n.long .Le%d - f%d\n.asciz "f%d"\n.long .Lseq%d\n' $i $i $i $i $i
	done
	printf '.byte 0\n1: .section .debug_ranges,"",@progbits\n.Lranges:\n'
	for i in 0 1 2 3 4 5; do echo ".quad f$i, .Le$i"; done
	printf '.quad 0, 0\n.section .debug_line,"",@progbits\n.Lline: .long 3f - 0f\n0: .value 4\n.long 2f - 1f\n'
	printf '1: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0\n.asciz "hand.c"\n.byte 0, 0, 0, 0\n2:\n'
	for i in 0 1 2 3 4 5; do
		printf '.Lseq%d: .byte 5, %d, 0, 9, 2\n.quad f%d\n.byte 3, %d, 1, 9\n.value .Lm%d - f%d\n.byte 3, 1, 1, 9\n.value .Le%d - .Lm%d\n.byte 0, 1, 1\n' $i $i $i $((i * 5)) $i $i $i $i
	done
	printf '3: .section .note.GNU-stack,"",@progbits\n'
	for i in 0 1 2 3 4 5; do
		printf '.section .text.f%d,"ax",@progbits\n.p2align 4\n.globl f%d\n.type f%d,@function\nf%d: .cfi_startproc\nlea %d(%%rdi),%%eax\n' $i $i $i $i $((i == 3))
		# shellcheck disable=SC2016
		printf '.Lm%d: imul $3,%%eax\nret\n.cfi_endproc\n.Le%d: .size f%d,.-f%d\n' $i $i $i $i
	done
} >sequence.s
sed '/^F(1)/d; s/^int one.*/int f0(int), f1(int), f2(int), f3(int), f4(int), f5(int);/; s/f1(3).*three(2)/f0(1) + f1(2) + f2(3) + f3(4) + f4(5) + f5(6)/' down.c >sequence.c
# sequences FILE: by function its address, and the address at the place that the attribute gives.
sequences() {
	{ readelf --debug-dump=rawline "$1"; readelf --debug-dump=info "$1"; } 2>/dev/null | awk '
		/^ *\[0x[0-9a-f]*\] / {
			if (start) place = $1
			start = /End of Sequence/
		}
		/Line Number Statements:/ { start = 1 }
		/set Address to/ { gsub(/^\[0x0*|\]$/, "", place); at["0x" place] = $NF }
		/DW_AT_low_pc/ { low = $NF }
		/: 3e0c|stmt_sequence/ { print low, $NF in at ? at[$NF] : $NF }'
}
gcc -O1 -Wl,--emit-relocs sequence.c sequence.s -o sequence && fold rare/sequence sequence sequence.out --icf=all && {
	sequences sequence.out | sort | uniq -c >have
	check rare/sequence/places "$(tr '\n' ';' <have)" test "$(awk '$3 == $2 { same += $1 } $3 ~ /^0xf*$/ { none += $1 } END { print same + 0, none + 0 }' have)" = "2 4"
	place=$(readelf --debug-dump=info sequence.out 2>/dev/null | awk '/: 3e0c|stmt_sequence/ && $NF !~ /fff/ { print $NF }' | tail -n 1)
	for to in 0xffffffff $((place + 2)) 0x1000; do
		poke sequence.out sequence.bad .debug_info 4 "$place" "$to"
		seen "rare/sequence/planted/$to" sequence sequence.bad '^DIEs: sequence: .*\(tag 0x2e, f[0-9]\)'
	done
}

# --- pointers whose tag is larger than the function: they lie in the padding behind it, or in the next function
cat >tag.c <<'END'
#include <stdint.h>
#include <stdio.h>
#define F(n) __attribute__((noinline)) int f##n(int x) { volatile int y = x; for (int i = 0; i < x; i++) y += i * 3; return y * 7 + 2; }
F(1) F(2) F(3)
#define SMALL(n, bits, adds) ".p2align " #bits "\n.globl " #n "\n.type " #n ",@function\n" #n ": .cfi_startproc\nlea " #adds "(%rdi),%eax\nret\n.cfi_endproc\n.size " #n ",.-" #n "\n"
__asm__(".text\n" SMALL(one, 6, 3) SMALL(two, 4, 5) SMALL(three, 6, 5) SMALL(four, 4, 3) SMALL(five, 6, 7));
int one(int), two(int), three(int), four(int), five(int);
typedef int (*fn)(int);
static int call(uintptr_t p, uintptr_t bits) { return ((fn)(p & ~bits))(5) + (int)(p & bits); }
volatile uintptr_t word = (uintptr_t)three + 21;
int main(void)
{
	printf("%d ", f1(3) + f2(4) + f3(5));
	volatile uintptr_t code[] = { (uintptr_t)one + 13, (uintptr_t)two + 7, (uintptr_t)five + 61 };
	printf("%d %d %d ", call(code[0], 63), call(code[1], 15), call(code[2], 63));
	return printf("%d\n", call(word, 63)) < 0;
}
END
for how in gcc:-O1 gcc:-O0 clang:-O0; do
	have ${how%:*} || continue
	${how%:*} -g ${how#*:} -w -Wl,--emit-relocs tag.c -o tag 2>log || { not_ok rare/tag "$(first_line log)"; continue; }
	fold "rare/tag/$how/safe" tag tag.out
	fold "rare/tag/$how/all" tag tag.out --icf=all
	"$ICFOLD" -q --gc-functions tag -o tag.out && check "rare/tag/$how/unused" "$(./tag.out 2>&1)" test "$(./tag 2>&1)" = "$(./tag.out 2>&1)"
done
# Another distance to the function: the pointer's word is one of its own.
if "$ICFOLD" -q --allow-growth tag -o tag.out; then
	word=0x$(nm tag.out | awk '$3 == "three" { print $1 }')
	poke tag.out tag.bad .rela.dyn 8 $((word + 21)) $((word + 37))
	seen rare/tag/planted tag tag.bad '^(dynamic relocations|data words|observed addresses).*: '
fi
# The tag leads to the very start of another function: only the relocation tells.
cat >start.c <<'END'
#include <stdint.h>
#include <stdio.h>
#define N(align) __attribute__((noinline, aligned(align))) int
#define LONG(n) N(16) long_##n(int v) { for (int i = 0; i < v; i++) w += v * 3 + w; return v * 7 + w + v / 3; }
#define SHORT(n, by) N(64) tag_##n(int v) { return v * by; } N(16) next_##n(int v) { return v + 3; } N(16) last_##n(int v) { return v + 4; }
volatile int w;
LONG(a) LONG(b) LONG(c) LONG(d) LONG(e) SHORT(a, 3) SHORT(b, 5) SHORT(c, 3)
static int call(uintptr_t p) { return ((int (*)(int))(p & ~(uintptr_t)63))(2) + (int)(p & 63); }
volatile uintptr_t word[] = { (uintptr_t)tag_a + 16, (uintptr_t)tag_b + 32, (uintptr_t)tag_c + 16 };
int main(void)
{
	printf("%d ", long_a(1) + long_b(2) + long_c(3) + long_d(4) + long_e(5) + next_a(1) + next_b(2) + next_c(3) + last_a(4) + last_b(5) + last_c(6));
#ifdef CODE
	return printf("%d %d %d\n", call((uintptr_t)tag_a + 16), call((uintptr_t)tag_b + 32), call((uintptr_t)tag_c + 16)) < 0;
#else
	return printf("%d %d %d\n", call(word[0]), call(word[1]), call(word[2])) < 0;
#endif
}
END
for how in DATA CODE; do
	have clang || continue
	clang -g -O2 -D$how -w -Wl,--emit-relocs start.c -o start 2>log || { not_ok rare/tag/start "$(first_line log)"; continue; }
	fold "rare/tag/start/$how" start start.out
	"$ICFOLD" -q --gc-functions start -o start.out && check "rare/tag/start/$how/unused" "$(./start.out 2>&1)" test "$(./start 2>&1)" = "$(./start.out 2>&1)"
done

# --- code that the program changes while it runs: each stub in a writable section gets a number of its own
. "$TESTS/lib/plant.sh"
cat >writable.c <<'END'
#include <stdio.h>
#include <string.h>
__asm__(".pushsection .stubs, \"awx\", @progbits\n.macro stub n\n.globl \\n\n.type \\n, @function\n\\n:\n.cfi_startproc\n"
	"mov $1, %eax\nadd $2, %eax\nadd $3, %eax\nadd $4, %eax\nadd $5, %eax\nadd $0x10000, %eax\nret\n.cfi_endproc\n"
	".size \\n, . - \\n\n.balign 16\n.endm\nstub one\nstub two\nstub three\n.popsection");
int one(void), two(void), three(void);
__attribute__((noinline)) void set(int (*f)(void), int n) { memcpy((char *)f + 1, &n, sizeof n); }
int main(void)
{
	set(one, 100);
	set(two, 200);
	return printf("%d %d %d\n", one(), two(), three()) < 0;
}
END
# --- code that the program copies to another place: a section that a linker script delimits, whose code calls only what is in it
cat >copied.c <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#define N __attribute__((noinline, noclone))
#define COPY N __attribute__((section(".inject")))
#define LOOP(NAME, K) int NAME(int x) { volatile int y = x; for (int i = 0; i < x; i++) y += i * K; return y * 7 + K; }
N LOOP(out1, 3)
N LOOP(out2, 5)
COPY LOOP(in1, 3)
COPY LOOP(in2, 5)
COPY LOOP(in3, 5)
COPY int entry(int x) { return in1(x) * 2 + in2(x) * 3 + in3(x); }
extern char from[], to[];
int main(int n, char **v)
{
	(void)v;
	char *p = mmap(0, to - from, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, from, to - from);
	int (*e)(int) = (int (*)(int))(p + ((char *)entry - from));
	return printf("%d %d %d\n", out1(n), out2(n), e(n + 4)) < 0;
}
END
echo 'SECTIONS { .inject : { from = .; *(.inject) to = .; } } INSERT AFTER .text;' >copied.ld
for how in "-Wl,--emit-relocs -fPIE -pie" "-Wl,--emit-relocs -fno-pic -no-pie" "-s -fPIE -pie" "-s -fno-pic -no-pie"; do
	for in in writable copied; do
		script=
		[ $in = copied ] && script=-Wl,-T,copied.ld
		# shellcheck disable=SC2086
		gcc -O2 -g -fno-ipa-icf $how $in.c $script -o $in 2>log || { not_ok rare/$in "$(first_line log)"; continue; }
		for mode in --icf=safe --icf=all "--icf=all --in-place"; do
			# shellcheck disable=SC2086
			fold "rare/$in/$how/$mode" $in $in.out $mode
		done
	done
done
# The program's own code may be in a section of any name: it folds.
cat >named.c <<'END'
#include <stdio.h>
#define F(NAME) __attribute__((noinline, section(".main"))) int NAME(int x) { for (int i = 0; i < x; i++) x ^= i * 3; return x * 7 + 1; }
F(one) F(two) F(three) F(four) F(five) F(six)
__attribute__((section(".main"))) int main(int n, char **v) { (void)v; return printf("%d\n", one(n) + two(n) * 3 + three(n) * 5 + four(n) * 7 + five(n) + six(n)) < 0; }
END
gcc -O2 -g -fno-ipa-icf -Wl,--emit-relocs named.c -o named && fold rare/named named named.out --icf=all &&
	check rare/named/folds "nothing folds" grep -q folded <("$ICFOLD" dump --groups named.out)
# Debug information is there as a whole or not at all, and only sections that folding makes are new.
as_number() { python3 -c 'import sys; print(int.from_bytes(sys.argv[1].encode() + b"\0", "little"))' "$1"; }
for name in .debug_info:.debug_inf0 .debug_icfold:.debug_icfol0; do
	poke named.out named.bad .shstrtab $((${#name} / 2 + 1)) "$(as_number "${name%:*}")" "$(as_number "${name#*:}")"
	seen "rare/names/${name#*:}" named named.bad "section: ${name#*:}: expected only sections"
done
# --- LLVM's stack maps: what a place in a function means is found by the function's address and an offset
cat >maps.ll <<'END'
target triple = "x86_64-pc-linux-gnu"
@v = global i32 0
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @where()
define i32 @one(i32 %x) noinline uwtable {
  %y = mul i32 %x, 3
  store volatile i32 %y, ptr @v
  call void @where()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 101, i32 0, i32 %y)
  %z = add i32 %y, 7
  store volatile i32 %z, ptr @v
  ret i32 %z
}
END
cat >map.c <<'END'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int one(int), two(int);
extern uint8_t __LLVM_StackMaps[];
void where(void)
{
	char *ret = __builtin_return_address(0);
	uint64_t function[2], id, size;
	uint32_t n, off;
	memcpy(&n, __LLVM_StackMaps + 4, 4);
	uint8_t *record = __LLVM_StackMaps + 16 + 24 * n;
	for (uint32_t i = 0; i < n && i < 2; i++, record += size) {
		uint16_t places;
		memcpy(&function[i], __LLVM_StackMaps + 16 + 24 * i, 8);
		memcpy(&id, record, 8);
		memcpy(&off, record + 8, 4);
		memcpy(&places, record + 14, 2);
		size = (16 + 12 * places + 7) & ~7u;
		uint16_t live;
		memcpy(&live, record + size + 2, 2);
		size += (4 + 4 * live + 7) & ~7u;
		if ((char *)function[i] + off == ret) printf("place %d ", (int)id);
	}
}
int main(void) { return printf("%d %d\n", one(1), two(2)) < 0; }
END
{ cat maps.ll && sed -n '/^define/,$ { s/@one/@two/; s/i64 101/i64 202/; p }' maps.ll; } >both.ll
if have clang-19 && clang-19 -w -O1 -fPIE -c both.ll -o both.o 2>log && objcopy --globalize-symbol=__LLVM_StackMaps both.o && objcopy --set-section-flags .llvm_stackmaps=alloc,data,contents both.o written.o; then
	for how in "-Wl,--emit-relocs -pie written.o" "-Wl,--emit-relocs -no-pie both.o" "-s -pie written.o" "-no-pie both.o"; do
		# shellcheck disable=SC2086
		gcc -O1 map.c $how -o map 2>log || { not_ok rare/maps "$(first_line log)"; continue; }
		check "rare/maps/$how" "$(./map)" grep -qE 'place (101 place 202|202 place 101)' <(./map)
		for mode in --icf=safe --icf=all --in-place; do fold "rare/maps/$how/$mode" map map.out $mode; done
		(cd "$ROOT" && plant rare/blind_map icf/fold/eligible 's/".llvm_stackmaps"/".llvm_stackmap"/') && ./blind_map -q --allow-growth --icf=all map -o map.bad &&
			seen "rare/maps/$how/planted" map map.bad 'expected a function that is not shared'
	done
else
	skip rare/maps "no clang-19"
fi
# forgets IN FILE SED REGEX [OPTION]: an icfold with that fault breaks the program, and verify says why.  RELOCS= of it without kept
# relocations.
forgets() {
	# shellcheck disable=SC2086
	gcc -O2 -g -fno-ipa-icf ${RELOCS--Wl,--emit-relocs} "$1.c" ${5:+"$5"} -o in 2>log || { not_ok "rare/$1/planted" "$(first_line log)"; return; }
	cd "$ROOT" && plant "rare/blind_$1" "$2" "$3"
	cd "$WORK" || return
	[ -x "blind_$1" ] || return
	"./blind_$1" -q --allow-growth --icf=all in -o out 2>err || { not_ok "rare/$1/planted" "$(first_line err)"; return; }
	check "rare/$1/planted" "the program works as before" test "$(./in)" != "$({ ./out; } 2>&1)"
	seen "rare/$1/planted/verify" in out "$4"
}
# What leads out of a function from a place in it: fixtures/fool has the program.
{ cat "$FIXTURES/fool/distance/own_place.c"; echo 'int twins_before(int x) { return x; } int twins_after(int x) { return x; }'; } >own.c
forgets own icf/infer/sums/arith 's/if (!any && !own && !dark)/if (!any \&\& !dark)/' 'sum with a place in the function' "-I$FIXTURES/fool"
forgets writable icf/program/symbols 's/e->writable = .*/e->writable = false;/; s/e->apart = .*/e->apart = false;/' 'the program may write to'
forgets copied icf/program/symbols 's/e->apart = .*/e->apart = false;/' 'in a section of its own' -Wl,-T,copied.ld
# --- padding that code leads into: fixtures/fool has the programs for references that are inferred
stubs='int twins_before(int x) { return x; } int twins_after(int x) { return x; }'
for name in padding long_gap; do
	{ cat "$FIXTURES/fool/code/$name.c"; echo "$stubs"; } >$name.c
	gcc -O2 -g -fno-ipa-icf "-I$FIXTURES/fool" -Wl,--emit-relocs $name.c -o $name 2>log || { not_ok rare/$name "$(first_line log)"; continue; }
	for mode in --icf=safe --icf=all --in-place; do fold "rare/$name/$mode" $name $name.out $mode; done
done
changed='padding that bytes that are not understood may lead into changed'
forgets padding icf/refs/known 's/else if (icf_in_exec(prog, va))/else if (false)/' "$changed" "-I$FIXTURES/fool"
cp padding.c bare_padding.c
RELOCS='' forgets bare_padding icf/refs/reach 's/^\t\t\ticf_pin_place(prog, in->target)/\t\t\tpin(prog, icf_unit_at(prog, in->target))/' "$changed" "-I$FIXTURES/fool"
forgets long_gap icf/refs/glue 's/(in.kind == ELFRW_INSN_JMP .*u\[1\].start)/false/' 'falls through: ' "-I$FIXTURES/fool"
seen rare/long_gap/planted/branch in out '^branches to other functions: '
# Code that is not understood runs into padding, in front of a function that stays: the largest gap has room for what folding adds.
cat >tail.c <<'END'
#include <stdio.h>
#define FUNCTION(name) ".p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ": .cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " #name ", .-" #name "\n"
#define PLAIN(name, n) FUNCTION(name) "lea " #n "(%rdi,%rdi,2), %eax\n imul $77, %eax, %eax\n xor $0x1234567, %eax\n ret\n" END(name)
#define STRANGE(name, code) FUNCTION(name) "jmp 1f\n .byte 0x06, 0x07\n1: " code END(name)
__asm__(STRANGE(strange, "xor $3, %edi\n") GAP PLAIN(four, 9) PLAIN(one, 1) PLAIN(two, 1) PLAIN(five, 4) STRANGE(last, "mov %edi, %eax\n ret\n"));
int one(int), two(int), four(int), five(int), strange(int), last(int);
int main(void) { return printf("%d\n", one(1) + two(2) * 3 + four(4) * 5 + five(5) * 7 + strange(6) * 9 + last(7)) < 0; }
END
for gap in '.p2align 9\n' '.rept 200\nnop\n.endr\n.p2align 4\n'; do
	name=rare/tail/$([ "$gap" = "${gap%rept*}" ] && echo jump || echo no-ops)
	gcc -O2 -g -fno-ipa-icf "-DGAP=\"$gap\"" -Wl,--emit-relocs tail.c -o tail 2>log || { not_ok "$name" "$(first_line log)"; continue; }
	for mode in --icf=safe --icf=all --in-place; do fold "$name/$mode" tail tail.out $mode; done
done
forgets tail icf/refs/glue 's/u->flags |= ICF_UNIT_PADDED;/;/' "$changed" "-DGAP=\"$gap\""
# By a distance in a table.
{
	sed '/^__asm__/,$d' tail.c
	cat <<'END'
__asm__(PLAIN(one, 1) PLAIN(two, 1) PLAIN(three, 1) PLAIN(seven, 1) ".rept 8\nnop\n.endr\n.Lin: .rept 8\nnop\n.endr\n" PLAIN(four, 9) PLAIN(five, 4) PLAIN(six, 6)
	STRANGE(strange, "lea 2f(%rip), %rcx\n movslq (%rcx), %rax\n add %rcx, %rax\n jmp *%rax\n .p2align 2\n2: .long .Lin - 2b\n"));
int one(int), two(int), three(int), seven(int), four(int), five(int), six(int), strange(int);
int main(void) { return printf("%d\n", one(1) + two(2) * 3 + three(9) * 13 + seven(3) * 15 + four(4) * 5 + five(5) * 7 + six(5) * 9 + strange(6) * 11) < 0; }
END
} >distance.c
forgets distance icf/refs/known 's/else if (icf_in_exec(prog, va))/else if (false)/' "$changed"
cp distance.c bare_distance.c
RELOCS='' forgets bare_distance icf/refs/reach 's/icf_pin_place(r->prog, to)/pin(r->prog, icf_unit_at(r->prog, to))/' "$changed"
# The same at the start of a section, where nothing moves then, and at its end.
{
	sed '/^__asm__/,$d' tail.c
	cat <<'END'
#define PAD ".rept 8\nnop\n.endr\n.Lin: .rept 8\nnop\n.endr\n"
__asm__(".section .code.edge, \"ax\", @progbits\n" START PLAIN(first, 3) PLAIN(two, 1) STRANGE(middle, "cmp $7, %edi\n je .Lin\n mov %edi, %eax\n ret\n")
	PLAIN(five, 4) PLAIN(last, 9) STOP ".text\n" PLAIN(one, 1) PLAIN(six, 6) PLAIN(one_twin, 1) PLAIN(six_twin, 6));
int one(int), two(int), five(int), first(int), last(int), one_twin(int), six(int), six_twin(int), middle(int);
int main(int n, char **v)
{
	(void)v;
	return printf("%d\n", one(1) + two(2) * 3 + five(5) * 7 + first(6) * 9 + last(7) + one_twin(3) + six(3) + six_twin(4) + middle(*START ? 7 : n)) < 0;
}
END
} >edge.c
for how in start end; do
	[ $how = start ] && pads=(-DSTART=PAD '-DSTOP=""') || pads=('-DSTART=""' -DSTOP=PAD)
	for relocs in -Wl,--emit-relocs -no-pie -pie; do
		name=rare/edge/$how/${relocs#-}
		# shellcheck disable=SC2086
		gcc -O2 -g -fno-ipa-icf "${pads[@]}" $relocs edge.c -o edge 2>log || { not_ok "$name" "$(first_line log)"; continue; }
		fold "$name" edge edge.out --icf=all && poke edge.out edge.bad .code.edge 8 0x9090909090909090 0xcc90909090909090 &&
			seen "$name/planted" edge edge.bad 'may lead into changed'
	done
done
# --- functions without code: at the start of a folded function, of a kept one, behind each, and as the last ones
cat >void.h <<'END'
extern int v[4];
#define SAME(n) int n(int x) { v[0] = x * 3; v[1] = x ^ 5; v[2] += x; return v[3] - x; }
#define OWN(n, k) int n(int x) { return x * k + v[2]; }
#define VOID(n) void n(int x) { __builtin_unreachable(); }
END
printf '#include "void.h"\nSAME(a0)\nVOID(a1)\nSAME(a2)\nOWN(a3, 12)\nVOID(a4)\nOWN(a5, 56)\n' >void1.c
printf '#include "void.h"\nOWN(b0, 77)\nVOID(b1)\nVOID(b2)\nSAME(b3)\n' >void2.c
printf '#include "void.h"\nOWN(c0, 9)\nVOID(c1)\nSAME(c2)\nVOID(c3)\n' >void3.c
cat >void0.c <<'END'
#include <stdio.h>
int v[4], a0(int), a2(int), a3(int), a5(int), b0(int), b3(int), c0(int), c2(int);
int main(void) { return printf("%d\n", a0(1) + a2(2) + a3(3) + a5(4) + b0(5) + b3(6) + c0(7) + c2(8)) < 0; }
END
for how in gcc:-O1: gcc:-O2: gcc:-Os:-ffunction-sections gcc:-O1:-ffunction-sections,-fuse-ld=lld gcc:-O2:-fuse-ld=lld gcc:-O1:-ffunction-sections,-gdwarf-3 clang:-O1:-ffunction-sections,-gdwarf-aranges; do
	IFS=: read -r cc o more <<<"$how"
	name=rare/void/${how//[:,]/}
	have "$cc" || { skip "$name" "no $cc"; continue; }
	# shellcheck disable=SC2086
	"$cc" -g "$o" ${more//,/ } -fno-inline -w void0.c void1.c void2.c void3.c -Wl,--emit-relocs -o void 2>log || { skip "$name" "$(first_line log)"; continue; }
	for option in --icf=all --icf=safe "--icf=all --gc-functions"; do
		# shellcheck disable=SC2086
		"$ICFOLD" -q --allow-growth $option void -o void.out 2>err || { not_ok "$name/$option" "$(first_line err)"; continue; }
		"$ICFOLD" verify --icf=all ${option#--icf=????} void void.out >verdict 2>&1
		check "$name/$option" "$(grep -m 1 expected verdict)" grep -qx equal verdict
		# Readers of lists of rows by address see the first line of each function that is left.
		bad=
		for f in a3 a5 b0 c0; do
			old=$(symbol_value void $f) new=$(symbol_value void.out $f)
			want=$(addr2line -e void "0x$old") got=$(eu-addr2line -e void.out "0x$new")
			[ "$(cut -d: -f1-2 <<<"$want")" = "$(cut -d: -f1-2 <<<"$got")" ] || bad="$bad $f: $want, $got"
		done
		check "$name/$option/lines" "$bad" test -z "$bad"
		got=$(eu-addr2line -e void.out "0x$(symbol_value void.out a0)")
		check "$name/$option/first" "$got" grep -qE 'void(1\.c:[24]|2\.c:5|3\.c:4):' <<<"$got:"
	done
done

# --- XRay's distances in a program without a fixed address: as numbers they are addresses of functions that are removed
{
	# Unused functions, and two that fold.
	echo '#define I(n) __attribute__((noinline)) int idle##n(int x) { for (int i = 0; i < x; i++) x += x > n ? i * n : i; return x; }'
	printf 'I(%d)\n' $(seq 1000 1400)
	echo '#define T(n) __attribute__((noinline)) int n(int x) { for (int i = 0; i < x; i++) x += x > 99 ? i * 3 : i; return x * 5; }'
	echo 'T(twin1) T(twin2)'
} >idle.c
cat >sleds.c <<'END'
#include <stdio.h>
#define F(n) __attribute__((noinline)) int f##n(int x) { for (int i = 0; i < x; i++) x += x > 9 ? i * 5 : i; return x + n / 10; }
F(1) F(2) F(11) F(12)
int twin1(int), twin2(int);
int main(int n, char **v) { (void)v; return printf("%d %d %d %d %d\n", f1(n), f2(n), f11(n), f12(n), twin1(n) + twin2(n)) < 0; }
END
# sled WORD TO FILE OUT: word WORD (0: the sled, 8: the function) of the first record leads to TO, or TO (+N) bytes further.
sled() {
	python3 - "$TESTS/mutate" "$@" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		from elfbytes import Elf, get, put
		word, to, path, out = sys.argv[2:]
		e = Elf(path)
		d, s = bytearray(e.data), e.section("xray_instr_map")
		at = s.offset + int(word)
		value = get(d, at, 8) + int(to) if to[0] == "+" else int(to, 16) - s.addr - int(word)
		d[at:at + 8] = put(value, 8)
		open(out, "wb").write(d)
	END
}
# sleds_of FILE: where its records lead to: a place, and a function.
sleds_of() {
	python3 - "$TESTS/mutate" "$1" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		from elfbytes import Elf, get
		e = Elf(sys.argv[2])
		s, functions = e.section("xray_instr_map"), e.functions()
		for off in range(0, s.size, 32):
		    ret = []
		    for at in (off, off + 8):
		        to = s.addr + at + get(e.data, s.offset + at, 8)
		        ret += [f"{name}+{to - lo}" for lo, size, name in functions if lo <= to < lo + size] or ["?"]
		    print(*ret)
	END
}
# xray_seen NAME IN OUT WHY: verify says different, because of WHY.
xray_seen() {
	"$ICFOLD" verify --icf=all --gc-functions "$2" "$3" >verdict 2>&1
	check "$1" "$(tail -n 1 verdict)" grep -q "$4" verdict
}
clang=$(command -v clang-19 clang clang-14 | head -n 1)
if [ -z "$clang" ] || ! have ld.lld; then
	skip rare/sleds "no clang or no lld"
elif ! "$clang" -O1 -fPIE -c idle.c 2>log || ! "$clang" -O1 -fPIE -fxray-instrument -fxray-instruction-threshold=1 -c sleds.c 2>log; then
	skip rare/sleds "$(first_line log)"
else
	for relocs in emit-relocs some-relocs no-relocs; do
		name=rare/sleds/$relocs
		how=--emit-relocs
		[ $relocs != no-relocs ] || how=--build-id
		"$clang" -fuse-ld=lld -pie -Wl,$how idle.o sleds.o -o sleds 2>log || { skip "$name" "$(first_line log)"; continue; }
		[ $relocs != some-relocs ] || objcopy --remove-section=.relaxray_instr_map sleds
		"$ICFOLD" -q --allow-growth --icf=all --gc-functions sleds -o sleds.out 2>err || { not_ok "$name" "$(first_line err)"; continue; }
		"$ICFOLD" verify --icf=all --gc-functions sleds sleds.out >verdict 2>&1
		check "$name" "$(tail -n 1 verdict)" grep -qx equal verdict
		check "$name/runs" "$(./sleds.out 2>&1 | head -n 1)" test "$(./sleds)" = "$(./sleds.out 2>&1)"
		check "$name/map" "$(sleds_of sleds.out | tail -n 1)" test "$(sleds_of sleds)" = "$(sleds_of sleds.out)"
		for word in 0 8; do
			sled $word +1 sleds.out sleds.bad
			xray_seen "$name/planted/$word" sleds sleds.bad 'xray_instr_map'
		done
	done
	# Where no relocation tells it, the record does: a place or a function that is folded.
	twin=$(nm sleds | awk '$3 == "twin2" { print $1 }')
	for word in 0 8; do
		for f in sleds sleds.out; do sled $word "$twin" $f $f.twin; done
		xray_seen rare/sleds/shared/$word sleds.twin sleds.out.twin "^code addresses in data: list: xray_instr_map+0x$word, of twin.*not shared"
	done
fi
finish
