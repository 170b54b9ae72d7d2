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
F(1, ".text") F(2, ".code.one") F(3, ".code.one") F(4, ".code.two")
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
for how in pie:all no-pie:all no-pie:safe; do
	gcc -O1 -g -fno-ipa-icf -rdynamic -${how%:*} -Wl,--emit-relocs apart.c -o apart 2>log || { not_ok rare/section "$(first_line log)"; continue; }
	fold "rare/section/$how" apart apart.out --icf="${how#*:}" || continue
	check "rare/section/$how/holds" "$(outside apart.out | tr '\n' ' ')" test -z "$(outside apart.out)"
done
# As it was before: f4's number of its old section.  The symbol's last fields: section, value, size.
if have jq && "$ICFOLD" -q --allow-growth --icf=all apart -o apart.out; then
	number() { readelf -SW "$1" | awk -v s="$2" '{ sub(/^ *\[ */, ""); sub(/\]/, "") } $2 == s { print $1 }'; }
	value=0x$(readelf -sW apart.out | awk '$8 == "f4" { print $2; exit }')
	for table in .symtab .dynsym; do
		size=$([ $table = .symtab ] && echo 0 || echo $((0x$(nm -S apart | awk '$4 == "f4" { print $2 }') - 1)))
		field() { python3 -c "import sys; print(int.from_bytes(int(sys.argv[1]).to_bytes(2, 'little') + int(sys.argv[2], 0).to_bytes(8, 'little') + int(sys.argv[3]).to_bytes(8, 'little'), 'little'))" "$1" "$value" "$size"; }
		poke apart.out apart.bad $table 18 "$(field "$(number apart.out .text)")" "$(field "$(number apart.out .code.two)")"
		seen "rare/section/planted/$table" apart apart.bad "symbols: symbol: f[234] of $table: expected type, binding and section"
	done
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
finish
