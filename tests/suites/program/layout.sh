#!/bin/bash
# layout.sh: segments, sections, notes, marks and odd code as linkers, compilers and assemblers lay them out: each folds, verify
# says equal, and the program does its work.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite layout
x86_only layout

# fold NAME IN OUT [OPTION...]: folds, and verify says equal.
fold() {
	local name=$1 in=$2 out=$3
	shift 3
	if ! "$ICFOLD" -q "$@" "$in" -o "$out" 2>err; then
		not_ok "$name" "does not fold: $(first_line err)"
		return 1
	fi
	"$ICFOLD" verify --icf=all "$in" "$out" >verdict 2>&1
	check "$name" "verify: $(grep ': ' verdict | grep -v -e '^symbolized: ' -e '^resolved: ' | head -n 1 | cut -c 1-200)" grep -qx equal verdict
}
# try NAME LINKER ARG...: links with gcc (or CC), folds (with the option GROW), runs; ./in and ./out stay.
try() {
	local name=$1 ld=$2
	shift 2
	have "ld.$ld" || { skip "$name/$ld" "no ld.$ld"; return 1; }
	"${CC:-gcc}" -fuse-ld="$ld" "$@" -o in >log 2>&1 || { skip "$name/$ld" "$(first_line log)"; return 1; }
	fold "$name/$ld" in out --icf=all ${GROW:+"$GROW"} || return 1
	check "$name/$ld/runs" "$(./out 2>&1 | head -n 1)" test "$(./in 2>&1)" = "$(./out 2>&1)"
}
# some.c: pages of functions that are the same.
{
	echo '#include <stdio.h>'
	for i in $(seq 400); do
		echo "int __attribute__((noinline)) f$i(int a) { for (int i = 0; i < a % 7; i++) { a += i * 5; a ^= i << 3; a += a / (i + 1); } return a * 3; }"
	done
	echo 'int main(int n, char **v) { (void)v;'
	for i in $(seq 400); do echo "n += f$i(n);"; done
	printf '%s\n' 'return printf("%d\n", n) < 0; }'
} >some.c
gcc -O1 -fPIC -c some.c -o some.o && gcc -O1 -fno-pic -c some.c -o some.fixed.o

# --- an alignment above a page: the loader places a program by it
alignments() { readelf -lW "$1" | awk '$1 == "LOAD" { print $NF }' | sort -u; }
for ld in bfd gold; do
	try layout/large-pages $ld some.o -pie -Wl,--emit-relocs,-z,max-page-size=0x200000,-z,common-page-size=4096 || continue
	check layout/large-pages/$ld/alignment "$(alignments out | tr '\n' ' ')" test "$(alignments out)" = 0x200000
done

# --- notes and .interp make room for a program header, unless something refers to them or they count from their place
note() { # TEXT: some.o beside a note and what uses it
	cat >note.c <<-END
		#include <stdio.h>
		__asm__(".pushsection .note.mine,\"a\",@note\n.long 5, $2\n.long 7\n.asciz \"mine\"\n.balign 4\n.globl mine\nmine: .long $3\n.popsection");
		extern const int mine[];
		int seventeen = 17;
		int code(int a) { return a * 3 + 1; }
		$1
	END
}
# shellcheck disable=SC2317
moved() { # does .interp stand elsewhere in ./out?
	test "$(readelf -SW in | awk '/ .interp / { print $5 }')" != "$(readelf -SW out | awk '/ .interp / { print $5 }')"
}
# They do not become executable.
sed 's/^int main/__attribute__((section("own"), noinline)) int mine(int x) { return x * 3 + 1; }\nextern char __start_own[], __stop_own[];\n&/; s/^return .*/return printf("%d %d\\n", n, mine(n) + (int)(__stop_own - __start_own)) < 0; }/' some.c >delimited.c
try layout/note/separate bfd -O1 -fno-ipa-icf delimited.c -s -Wl,-z,separate-code &&
	check layout/note/separate/stays "moved" eval '! moved'
for relocs in emit-relocs build-id; do
	for ld in lld bfd; do
		how=-Wl,--build-id,-z,noseparate-code
		[ $ld = lld ] && how=-Wl,--build-id,--no-rosegment
		r=${relocs/build-id/no-relocs}
		note '' 4 9
		try "layout/note/none/$r" $ld some.o note.c -pie -fPIE $how -Wl,--$relocs &&
			if [ $relocs = emit-relocs ]; then check "layout/note/none/$r/$ld/moves" "stayed" moved; fi
		note '__asm__(".pushsection .data\n.globl way\nway: .long mine - .\n.popsection"); extern int way;
			__attribute__((constructor)) static void c(void) { printf("%d\n", *(int *)((char *)&way + way)); }' 4 9
		try "layout/note/distance/$r" $ld some.o note.c -pie -fPIE $how -Wl,--$relocs
		note 'const int *p = mine; __attribute__((constructor)) static void c(void) { printf("%d\n", *p); }' 4 9
		try "layout/note/address/$r" $ld some.fixed.o note.c -no-pie -fno-pic $how -Wl,--$relocs
		note '#include <link.h>
		static int see(struct dl_phdr_info *i, size_t n, void *p) {
			for (int k = 0; n && !p && k < i->dlpi_phnum; k++)
				for (const char *at = (const char *)i->dlpi_addr + i->dlpi_phdr[k].p_vaddr, *end = at + i->dlpi_phdr[k].p_memsz - 12; i->dlpi_phdr[k].p_type == PT_NOTE && at <= end; at += 4)
					if (__builtin_memcmp(at, "mine", 5) == 0) {
						const int *w = (const int *)(at + 8);
						printf("%d\n", *(const int *)((const char *)w + *w));
					}
			return 1;
		}
		__attribute__((constructor)) static void c(void) { dl_iterate_phdr(see, NULL); }' 4 'seventeen - .'
		try "layout/note/own-distance/$r" $ld some.o note.c -D_GNU_SOURCE -pie -fPIE $how -Wl,--$relocs &&
			check "layout/note/own-distance/$r/$ld/found" "$(./out | head -n 1)" test "$(./out | head -n 1)" = 17
	done
done
# A note that holds the address of code.
note '' 4 'code - .'
try layout/note/code bfd some.o note.c -pie -fPIE -Wl,--emit-relocs
# Annotations of unloaded notes, as annobin makes them, have relocations.
cat >annobin.s <<'END'
	.section .gnu.build.attributes,"",@note
	.balign 4
	.long 8, 16, 0x100
	.asciz "GA$3p1"
	.balign 4
	.quad f1, main
END
try layout/annobin bfd some.o annobin.s -pie -Wl,--emit-relocs

# --- marks and thread-local zeros
echo '__thread int mine; int *get(void) { return &mine; } __attribute__((constructor)) static void c(void) { *get() = 4; }' >tls.c
try layout/ehdr gold some.fixed.o -static -Wl,--emit-relocs,--rosegment
for ld in lld mold bfd gold; do
	try layout/tls $ld some.o tls.c -pie -fPIE -Wl,--emit-relocs
done
# in_segments IN OUT: the sections of zeros whose offset is that of their address in a segment of IN, but in none of OUT.
in_segments() {
	python3 - "$TESTS/mutate" "$@" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf, PHDR, get
def placed(path):
    e = Elf(path)
    heads = [{n: get(e.data, at + o, s) for n, o, s in PHDR} for at in e.phdrs]
    zeros = [s for s in e.sections if s.type == 8 and s.flags & 2 and s.size]
    return {s.name for s in zeros for p in heads if (p["p_type"] == 1 or p["p_type"] == 7 and s.flags & 0x400)
            and p["p_vaddr"] <= s.addr <= p["p_vaddr"] + p["p_memsz"] and s.offset - p["p_offset"] == s.addr - p["p_vaddr"]}
print(*sorted(placed(sys.argv[2]) - placed(sys.argv[3])))
END
}
# Zeros of threads alone: lld's have an address and an offset between two segments, of which the first gets shorter; an alignment
# puts them behind the end of that segment, and a page of the file may lie between them and the next segment.
cat >zeros.c <<'END'
#include <stdio.h>
_Thread_local int x[16] __attribute__((aligned(ALIGN)));
#define F(n) __attribute__((noinline)) int n(int k) { puts("hello"); return printf("%d\n", k * 31) + x[k] + printf("%d\n", k * 33) + printf("%d\n", k * 35) + x[k + 1]; }
F(a) F(b)
int main(int n, char **v) { (void)v; x[n] = 3; return a(n) + b(n) > 1000; }
END
for ld in lld mold bfd gold; do
	for align in 16 64; do
		for relro in relro norelro; do
			name=layout/zeros/$align/$relro
			GROW=--allow-growth try "$name" $ld -O2 -fno-ipa-icf -DALIGN=$align zeros.c -Wl,-z,$relro,--emit-relocs || continue
			check "$name/$ld/offset" "$(in_segments in out) is elsewhere" test -z "$(in_segments in out)"
			have eu-elflint || { skip "$name/$ld/elflint" "no eu-elflint"; continue; }
			for f in in out; do eu-elflint --gnu-ld $f 2>&1 | grep -v '^No errors$' | sed -E "s/\[ *[0-9]+\]//; s/symbol [0-9]+//" | sort >$f.lint; done
			check "$name/$ld/elflint" "$(comm -13 in.lint out.lint | head -n 1)" test -z "$(comm -13 in.lint out.lint)"
		done
	done
done
# As it was before: behind what is loaded.
if have ld.lld && gcc -fuse-ld=lld -O2 -fno-ipa-icf -DALIGN=16 zeros.c -Wl,--emit-relocs -o in 2>log && "$ICFOLD" -q --allow-growth --icf=all in -o out 2>err; then
	python3 - "$TESTS/mutate" out <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d, at = bytearray(e.data), e.section(".tbss").header + 24
d[at:at + 8] = (len(d) - 8).to_bytes(8, "little")
open(sys.argv[2], "wb").write(d)
END
	"$ICFOLD" verify --icf=all in out >verdict 2>&1
	check layout/zeros/planted "$(tail -n 1 verdict)" grep -q '^sections: offset: .tbss' verdict
fi

# --- zeros between code and other contents of one segment, which have room in the file: the hole behind the code ends before them
cat >between.ld <<'END'
PHDRS { headers PT_PHDR PHDRS FLAGS(4); all PT_LOAD FILEHDR PHDRS FLAGS(5); stack PT_GNU_STACK FLAGS(6); }
ENTRY(_start)
SECTIONS
{
	. = 0x400000 + SIZEOF_HEADERS;
	.text : { *(.text*) } :all
	.bss : { *(.bss*) }
	.rodata : { *(.rodata*) }
	.eh_frame : { KEEP(*(.eh_frame)) }
	.data : { *(.data*) }
}
END
{
	grep '__attribute__((noinline)) f' some.c
	echo 'volatile char zeros[0x5000]; int five = 5;'
	echo 'void _start(void) { int n = 3;'
	for i in $(seq 400); do echo "n += f$i(n);"; done
	echo 'for (int i = 0; i < 0x5000; i++) n += zeros[i] + i; __asm__ volatile("syscall" : : "a"(60), "D"((n + five) & 127)); }'
} >between.c
for ld in bfd lld; do
	try layout/between $ld -O1 -fno-pic -no-pie -nostdlib -static -Wl,-T,between.ld,--emit-relocs between.c || continue
	was=$(./in; echo $?) is=$(./out; echo $?)
	check layout/between/$ld/status "$was before, $is" test "$was" = "$is"
	check layout/between/$ld/cut "the test tests nothing" test "$(readelf -lW out | grep -c ' LOAD ')" = 2
	check layout/between/$ld/offset "$(in_segments in out) is elsewhere" test -z "$(in_segments in out)"
done 2>/dev/null

# --- firmware: a segment that holds nothing, in the page of another and with its own physical address; segments that no loader could
# map, aligned as they ask (ld -n)
cat >firm.ld <<'END'
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); bss PT_LOAD FLAGS(6); }
ENTRY(_start)
MEMORY { rom (rx) : ORIGIN = 0x400000, LENGTH = 1M  ram (rwx) : ORIGIN = 0x600000, LENGTH = 1M }
SECTIONS
{
	.text : { *(.text*) . = ALIGN(8); } >rom :text
	.data : { *(.data*) } >ram AT>rom :data
	.bss : { *(.bss*) } >ram AT>rom :bss
	/DISCARD/ : { *(.eh_frame) *(.comment) *(.note*) }
}
END
{ grep '__attribute__((noinline)) f' some.c; echo 'int five = 5; void _start(void) { int n = 3;'; } >firm.c
for i in $(seq 400); do echo "n += f$i(n);"; done >>firm.c
echo '__asm__ volatile("syscall" : : "a"(60), "D"((n + five) & 127)); }' >>firm.c
# planted NAME FIELD VALUE WHAT: VALUE is added to the field at FIELD of the last loaded segment of ./out; verify has to say WHAT.
planted() {
	python3 - out mutant "$2" "$3" <<-'END'
		import struct, sys
		b = bytearray(open(sys.argv[1], "rb").read())
		field, value = int(sys.argv[3]), int(sys.argv[4])
		off, n = struct.unpack_from("<Q", b, 32)[0], struct.unpack_from("<H", b, 56)[0]
		at = max(off + 56 * i for i in range(n) if struct.unpack_from("<I", b, off + 56 * i)[0] == 1) + field
		struct.pack_into("<Q", b, at, struct.unpack_from("<Q", b, at)[0] + value)
		open(sys.argv[2], "wb").write(b)
	END
	"$ICFOLD" verify --icf=all in mutant >verdict 2>&1
	check "$1" "$(tail -n 1 verdict)" grep -q "$4" verdict
}
for how in empty nmagic; do
	flags=
	[ $how = empty ] || flags=-n
	{ [ $how = empty ] || echo 'int room[9];'; cat firm.c; } >firm.$how.c
	gcc -O1 -fno-pic -no-pie -nostdlib -static $flags -Wl,-T,firm.ld,--emit-relocs,--build-id=none firm.$how.c -o in 2>log ||
		{ skip layout/firmware/$how "$(first_line log)"; continue; }
	fold layout/firmware/$how in out --icf=all --allow-growth
	check layout/firmware/$how/folds "nothing folds" grep -q . <("$ICFOLD" dump --groups out | grep folded)
	case $how in
	empty)
		check layout/firmware/empty/is "it is not" test "$(readelf -lW in | awk '$1 == "LOAD" && $6 == "0x000000"' | wc -l)" = 1
		was=$(./in; echo $?) is=$(./out; echo $?)
		check layout/firmware/empty/runs "$was before, $is" test "$was" = "$is"
		planted layout/firmware/empty/physical 24 8 'physical address: segment\|empty: segment'
		planted layout/firmware/empty/place 16 4096 'empty: segment'
		;;
	nmagic)
		check layout/firmware/nmagic/is "pages" test "$(alignments in | tail -n 1)" != 0x1000
		planted layout/firmware/nmagic/offset 8 1 'offset and address differ modulo alignment'
		;;
	esac
done 2>/dev/null

# --- line tables with numbers that libdw has no room for
cat >wide.c <<'END'
#include <stdio.h>
__attribute__((noinline)) int one(int a) { for (int i = 0; i < a; i++) printf("%d\n", a); return a * 17 + 3; }
__attribute__((noinline)) int two(int a) { for (int i = 0; i < a; i++) printf("%d\n", a); return a * 17 + 3; }
int main(int n, char **v) { (void)v; return one(n) + two(n + 1) == 0; }
END
clang=$(command -v clang-19 clang | head -n 1)
if [ -n "$clang" ]; then
	CC=$clang try layout/wide/discriminators bfd -O2 -g -fpseudo-probe-for-profiling wide.c -Wl,--emit-relocs
	# The highest bits of one of them, in a row of the kept function.
	python3 - "$TESTS/mutate" out <<'END' && "$ICFOLD" verify --icf=all in out >verdict 2>&1
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d, t = bytearray(e.data), e.section(".debug_line")
def wide(i): # DW_LNE_set_discriminator with a ULEB of four or five bytes
    n = d[i + 1] - 1
    return d[i] == 0 and d[i + 2] == 4 and n in (4, 5) and [b < 0x80 for b in d[i + 3:i + 3 + n]] == [False] * (n - 1) + [True]
at = next(i for i in range(t.offset, t.offset + t.size - 8) if wide(i))
d[at + 1 + d[at + 1]] ^= 8
open(sys.argv[2], "wb").write(d)
END
	check layout/wide/discriminators/mutant "$(tail -n 1 verdict)" grep -q '^line rows.*: row' verdict
fi
gcc -O2 -g -S wide.c -o wide.s
sed -i 's/^\(\s*\.loc 1 [0-9]* \)[0-9]*/\170024/' wide.s
try layout/wide/columns bfd wide.s -Wl,--emit-relocs

# --- thunks in a gap inside of another unit's range
for u in first middle; do
	{
		echo '#include <stdio.h>'
		for i in 1 2 3 4 5 6; do
			echo "static int ${u}_$i(int a) { for (int i = 0; i < a; i++) printf(\"%d $u \", a * i); return a * 17 + 3; }"
		done
		echo "int (*const ${u}[])(int) = { ${u}_1, ${u}_2, ${u}_3, ${u}_4, ${u}_5, ${u}_6 };"
	} >$u.c
done
# icfold does not understand the last function, so the function stays.
cat >>middle.c <<'END'
__asm__(".text\n.balign 16\n.type odd, @function\nodd: .byte 0x06\nret\n.fill 60, 1, 0x90\n.size odd, . - odd");
extern int (*const first[])(int);
int main(int n, char **v) { (void)v; for (int i = 0; i < 6; i++) n += first[i](2) + middle[i](2); return n == 0; }
END
for type in -gdwarf-5 -gdwarf-4; do
	gcc -O2 -fno-toplevel-reorder -fno-ipa-icf -fno-reorder-functions $type -c first.c middle.c || continue
	gcc first.o middle.o -Wl,--emit-relocs -o in || continue
	fold layout/gap$type in out || continue
	check layout/gap$type/there "no thunk before odd" test -n "$("$ICFOLD" dump out | grep 'first_.*thunk at')"
	thunk=$(readelf -sW out | awk '$8 == "first_2" { print "0x" $2 }')
	odd=$(readelf -sW out | awk '$8 == "odd" { print "0x" $2 }')
	check layout/gap$type/inside "$thunk, middle ends at $odd" test $((thunk < odd && odd - thunk < 400))
	check layout/gap$type/unit "$(addr2line -e out "$thunk")" test "$(addr2line -e out "$thunk")" != "$(addr2line -e out "$odd")"
done

# --- assembler without types and sizes: a no-op and zeros that have names, data behind which control would go on, marks at ends
cat >names.s <<'END'
	.text
	.globl main, one, two, marked
one:	leal 1(%rdi,%rdi,2), %eax
	ret
mark:	.balign 32, 0x90
marked:	nop
	nop
two:	leal 1(%rdi,%rdi,2), %eax
	ret
	.balign 16
zeros:	.long 0, 0, 0, 0
	.balign 16
	.type main, @function
main:	push %rbx
	mov $3, %edi
	call one
	mov %eax, %ebx
	call marked
	add %eax, %ebx
	lea zeros(%rip), %rax
	add 4(%rax), %ebx
	lea last(%rip), %rax
	add (%rax), %bl
	add 7(%rax), %bl
	mov %ebx, %eax
	pop %rbx
	ret
	.size main, . - main
last:	.quad 1
	.section .note.GNU-stack,"",@progbits
END
gcc -c names.s -o names.o
works() { # NAME [OPTION...]: in and out end with the same status, and two's names and bytes are there
	local name=$1 a b
	shift
	fold "$name" in out "$@" || return
	./in; a=$?
	./out; b=$?
	check "$name/runs" "$a, $b" test "$a" = "$b"
}
for mode in safe all none; do
	gcc names.o -Wl,--emit-relocs -o in && works layout/names/$mode --icf=$mode
	gcc names.o -o in && works layout/names/no-relocs/$mode --icf=$mode
	gcc -no-pie names.o -o in && works layout/names/fixed/$mode --icf=$mode
done
check layout/names/fixed/mark "$(nm out | grep mark | tr '\n' ' ')" test "$(nm in | grep -E ' mark')" = "$(nm out | grep -E ' mark')"
ld names.o -e main -z noexecstack --emit-relocs -Ttext=0x401000 -o in && fold layout/names/data in out --icf=all &&
	check layout/names/data/last "lost" test "$(objdump -d out | awk '/<last>:/ { on = 1 } on { n += NF } END { print (n > 0) }')" = 1

# --- functions without a size, as GCC's return thunks are: the kept one gets one, and is the one whose name places have
cat >unsized.c <<'END'
#define TWIN(NAME) __attribute__((noinline)) int NAME(int x) { for (int i = 0; i < x; i++) x ^= i * 3; return x * 7 + 1; }
TWIN(one) TWIN(two)
int use(int);
int main(int n, char **v) { (void)v; return (use(n) + one(n) - two(n)) & 63; }
END
# A named no-op follows a function without a size.  A jump to the no-op continues behind it; the next function keeps its name.
cat >tail.s <<'END'
	.text
	.globl use, tail, next
use:	lea 1(%rdi), %eax
	test %edi, %edi
	jz tail
	ret
tail:	nop
	.p2align 4
next:	lea 5(%rdi), %eax
	ret
	.section .note.GNU-stack,"",@progbits
END
for mode in safe all; do
	gcc -O1 unsized.c tail.s -Wl,--emit-relocs -o in && works layout/names/tail/$mode --icf=$mode --allow-growth
	gcc -O1 unsized.c tail.s -o in && works layout/names/tail/no-relocs/$mode --icf=$mode --allow-growth
	check layout/names/tail/$mode/places "$(nm out | grep -E ' (tail|next)$' | tr '\n' ' ')" test "$(nm out | grep -E ' (tail|next)$' | cut -d ' ' -f 1 | sort -u | wc -l)" = 2
done

cat >unsized.s <<'END'
	.macro thunk name
	.section .text.\name, "ax", @progbits
	.globl \name
	.hidden \name
	.ifdef TYPED
	.type \name, @function
	.endif
\name:
	.cfi_startproc
	call 1f
2:	pause
	lfence
	jmp 2b
1:	.cfi_def_cfa_offset 16
	lea 8(%rsp), %rsp
	ret
	.cfi_endproc
	.endm
	thunk __x86_return_thunk
	thunk __x86_indirect_thunk
	.text
	.globl use
	.type use, @function
use:	.cfi_startproc
	push %rdi
	.cfi_def_cfa_offset 16
	lea via(%rip), %rax
	call 3f
	pop %rdi
	.cfi_def_cfa_offset 8
	jmp __x86_return_thunk
3:	push %rax
	jmp __x86_indirect_thunk
	.cfi_endproc
	.size use, . - use
	.type via, @function
via:	lea 1(%rdi), %eax
	jmp __x86_return_thunk
	.size via, . - via
	.section .note.GNU-stack, "", @progbits
END
for ld in bfd lld; do
	for kind in "" -Wa,--defsym,TYPED=1; do
		name=layout/unsized${kind:+-typed}
		# shellcheck disable=SC2086
		gcc -O2 -g $kind -fuse-ld=$ld -Wl,--emit-relocs unsized.c unsized.s -o in 2>log || { skip "$name/$ld" "$(first_line log)"; continue; }
		fold "$name/$ld" in out --icf=safe --allow-growth || continue
		./in; a=$?; ./out; b=$?
		check "$name/$ld/runs" "$a, $b" test $a = $b
		thunks=$(nm -S out | grep -c 'x86_.*_thunk')
		at=$(nm out | awk '/x86_return_thunk/ { print $1 }')
		check "$name/$ld/folded" "$thunks" test "$thunks.$(nm out | grep -c "^$at .*_thunk")" = 2.2
		check "$name/$ld/one-size" "$(nm -S out | grep _thunk | tr '\n' ' ')" test "$(nm -S out | grep -c "^$at [0-9a-f]* . .*_thunk")" = 1
	done
done

# --- headers that are in no segment, with a name in the code's section; headers in the last segment, over which code would come
cat >headers.c <<'END'
#define TWIN(NAME) __attribute__((noinline, used)) int NAME(int x) { for (int i = 0; i < x; i++) x ^= i * 3; return x * 7 + 1; }
TWIN(one) TWIN(two)
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
const void *volatile headers = __ehdr_start;
void _start(void) { int n = (one(3) == two(3)) + (headers ? 4 : 0); __asm__ volatile("syscall" : : "a"(60), "D"(n)); }
END
gcc -ffreestanding -fno-stack-protector -fno-pic -O1 -c headers.c -o headers.o
if have ld.lld && ld.lld -static -N --emit-relocs -Ttext=0x2010b0 headers.o -o in 2>log; then
	fold layout/headers/unloaded in out --icf=safe --allow-growth
	./in; a=$?; ./out; b=$?
	check layout/headers/unloaded/runs "$a, $b" test $a = $b
else
	skip layout/headers/unloaded "no ld.lld"
fi
if have mold && mold -static -Ttext=0x200 headers.o -o in 2>log; then
	"$ICFOLD" -q --allow-growth in -o out 2>err
	check layout/headers/last "$(first_line err)" grep -q 'headers is not the first one' err
else
	skip layout/headers/last "no mold"
fi

# --- parts of the code that a linker script delimits: a function whose address is observed stays in its part
cat >parts.c <<'END'
#define TWIN(NAME) __attribute__((noinline)) int NAME(int x) { for (int i = 0; i < x; i++) x ^= i * 3; return x * 7 + 1; }
#define HOT(NAME) __attribute__((section(".text.hot." #NAME))) TWIN(NAME)
#include <stdio.h>
HOT(hot1) HOT(hot2) TWIN(one) TWIN(two) TWIN(three)
extern const char hot_from[], hot_to[];
int (*volatile f[])(int) = { hot1, hot2, one, two };
int main(int n, char **v)
{
	(void)v;
	for (int i = 0; i < 4; i++) printf("%d %d\n", f[i](n), (const char *)f[i] >= hot_from && (const char *)f[i] < hot_to);
	return three(n) & 1;
}
END
ld.bfd --verbose | sed '1,/^====/d; /^====/,$d; s/^ *\*(\.text\.hot .*/hot_from = .; & hot_to = .;/' >parts.ld
for relocs in '' -Wl,--emit-relocs; do
	# shellcheck disable=SC2086
	gcc -O1 -no-pie -fno-pic -fno-ipa-icf parts.c -Wl,-T,parts.ld $relocs -o in 2>log || { skip layout/parts "$(first_line log)"; continue; }
	for mode in --icf=safe --in-place; do
		fold "layout/parts$relocs/$mode" in out $mode --allow-growth
		check "layout/parts$relocs/$mode/runs" "$(./out | tr '\n' ' ')" test "$(./in)" = "$(./out)"
	done
	"$ICFOLD" -q --icf=all --allow-growth in -o out && check "layout/parts$relocs/all" "other bounds" \
		test "$(./out | cut -d ' ' -f 2 | head -n 1)" = 1
	check "layout/parts$relocs/folds" "two does not fold" grep -q . <("$ICFOLD" dump --groups out | grep folded)
done
# Planted: the fold took the marks for functions.  verify must notice.
cat >marks.py <<'END'
import struct, sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d, s, n = bytearray(e.data), e.section(".symtab"), e.section(".strtab")
for at in range(s.offset, s.offset + s.size, 24):
    name = n.offset + struct.unpack_from("<I", d, at)[0]
    if bytes(d[name:d.index(0, name)]) in (b"hot_from", b"hot_to"):
        d[at + 4] = d[at + 4] & 0xf0 | int(sys.argv[4])
open(sys.argv[3], "wb").write(d)
END
if [ -e out ] && python3 marks.py "$TESTS/mutate" in blind 2 && chmod +x blind && "$ICFOLD" -q --allow-growth blind -o folded && python3 marks.py "$TESTS/mutate" folded mutant 0; then
	"$ICFOLD" verify in mutant >verdict 2>&1
	check layout/parts/mutant "$(tail -n 1 verdict)" grep -q 'expected on the same side of the label' verdict
fi

# --- musl's .fini: a function at an even address in a section of alignment 1
{ cat unsized.c && echo 'int (*volatile seen[])(int) = { one, two };'; } >seen.c
if have musl-gcc && musl-gcc -O2 -static-pie -fno-ipa-icf seen.c tail.s -o in 2>log; then
	fold layout/musl in out --allow-growth
else
	skip layout/musl "no musl-gcc"
fi

# --- code at address 0, which means none in unwind tables and debug information
gcc -g -ffreestanding -fno-stack-protector -fno-pic -O1 -c headers.c -o zero.o && ld -static -q -Ttext=0 zero.o -o in 2>log
"$ICFOLD" -q --allow-growth in -o out 2>err
check layout/zero "$(first_line err)" grep -q 'code at address 0' err

# --- code so far apart that nothing written about it could be read again
printf '\t.section .away, "ax"\n\tret\n\t.section .note.GNU-stack, ""\n' >away.s
for at in 0xc0000000 0x200000000; do
	gcc -no-pie some.fixed.o away.s -Wl,--emit-relocs,--section-start=.away=$at -o in 2>log || { skip layout/away "$(first_line log)"; break; }
	case $at in
	0xc*) fold layout/away/near in out ;;
	*)
		"$ICFOLD" -q in -o out 2>err
		check layout/away/far "$(first_line err)" grep -q 'more than 4 GiB behind other code .*away' err
		;;
	esac
done

# --- functions at odd addresses, in sections of alignment 1, whose addresses are looked at
cat >odd.c <<'END'
#include <stdio.h>
#define LINE(NAME) __attribute__((noinline)) int NAME(int x) { return x * 7 + 1; }
#define LOOP(NAME) __attribute__((noinline)) int NAME(int x) { for (int i = 0; i < x % 9; i++) x ^= i * 3; return x; }
LINE(a1) LOOP(b1) LINE(a2) LOOP(b2) LINE(a3) LOOP(b3)
int (*volatile table[])(int) = { a1, b1, a2, b2, a3, b3 };
int main(int n, char **v) { (void)v; for (int i = 0; i < 6; i++) n = n * 3 + table[i](n); return printf("%d\n", n) < 0; }
END
for ld in bfd lld; do
	try layout/odd $ld -Os -ffunction-sections -Wl,--emit-relocs odd.c || continue
	check layout/odd/$ld/input "all are even" test "$(nm in | grep -c '[13579bdf] T [ab][123]$')" != 0
	try layout/odd/no-relocs $ld -Og -no-pie -falign-functions=1 odd.c
done
# The section itself begins at an odd address.
cat >odd_section.c <<'END'
#include <stdio.h>
#define F(N, K) __attribute__((section(".odd"), noinline, used)) int N(int x) { sum += x; sum ^= K; return x * 3 + K; }
static volatile int sum;
F(f0, 1) F(f1, 1) F(f2, 2) F(f3, 3) F(f4, 3) F(f5, 5)
int (*volatile t[])(int) = { f0, f1, f2, f3, f4, f5 };
int main(void) { int s = 0; for (int i = 0; i < 6; i++) s = s * 7 + t[i](i); return printf("%d\n", s) < 0; }
END
for o in 0 s; do
	try "layout/odd-section/O$o" bfd -fcf-protection=none -O$o odd_section.c -Wl,--emit-relocs,--section-start=.odd=0x1100001 || continue
	check "layout/odd-section/O$o/input" "all are odd" test "$(nm in | grep -c '[02468ace] T f[0-5]$')" != 0
done

# --- a branch to the end of a function, from where no-ops lead into the next one; the functions fold otherwise
cat >on.s <<'END'
	.macro PAIR a, b, n
	.p2align 4
	.type \a, @function
\a:	.cfi_startproc
	test %edi, %edi
	je 1f
	mov $5, %eax
	ret
1:	.cfi_endproc
	.size \a, . - \a
	.p2align 4
	.type \b, @function
\b:	.cfi_startproc
	mov $\n, %eax
	ret
	.cfi_endproc
	.size \b, . - \b
	.endm
	.text
	.globl f1, f2
	PAIR f1, g1, 7
	PAIR f2, g2, 8
	.section .note.GNU-stack, "", @progbits
END
cat >on.c <<'END'
#include <stdio.h>
int f1(int), f2(int); int main(int n, char **v) { (void)v; return printf("%d%d%d%d\n", f1(n), f1(n - 1), f2(n), f2(n - 1)) < 0; }
END
for r in emit-relocs build-id; do
	try layout/runs-on/$r bfd on.c on.s -Wl,--$r || continue
	"$ICFOLD" --icf=all --print-icf-sections=folded in -o out >/dev/null 2>&1
	check layout/runs-on/$r/apart "folded" eval '! grep -qw f1 folded'
done

# --- functions without unwind tables that end in a call through a register, which comes back
cat >back.s <<'END'
	.macro PAIR a, b, n
	.p2align 4
	.type \a, @function
\a:	mov $3, %eax
	lea back(%rip), %rdx
	call *%rdx
	.p2align 4
	.type \b, @function
\b:	add $\n, %eax
	ret
	.endm
	.text
	.globl f1, f2
	PAIR f1, g1, 7
	PAIR f2, g2, 8
	.p2align 4
	.type back, @function
back:	imul $3, %eax, %eax
	ret
	.section .note.GNU-stack, "", @progbits
END
echo 'int puts(const char *), f1(void), f2(void); int main(void) { return puts(f1() == 16 && f2() == 17 ? "good" : "wrong") < 0; }' >back.c
try layout/back bfd -fno-asynchronous-unwind-tables back.c back.s -Wl,--emit-relocs

# --- a symbol in padding, at the jump over no-ops with which the padding begins; no record tells of it
cat >over.s <<'END'
	.text
	.type spare, @function
spare:	ret
	.size spare, . - spare
	.p2align 4
	.globl over, main
over:	jmp main
	.p2align 4
	.type main, @function
main:	leaq over(%rip), %rax
	leaq main(%rip), %rcx
	subq %rcx, %rax
	addl $16, %eax
	ret
	.size main, . - main
	.section .note.GNU-stack, "", @progbits
END
sed 's/leaq over/leaq 16+over/; s/addl $16/addl $0/' over.s >away.s
for p in over away; do
	gcc $p.s -Wl,--emit-relocs -o in && fold layout/jump-over/$p in out --icf=none --allow-growth && check layout/jump-over/$p/runs "it does not" ./out
done

# --- a system call that ends the program, and traps behind it: control gets no further
cat >quit.c <<'END'
#define F(N) __attribute__((noinline)) int N(int x) { for (int i = 0; i < x; i++) sum += x * i; return x * 7 + sum; }
static volatile int sum;
F(a) F(b)
__asm__(".text\n.p2align 4, 0xcc\n.type quit, @function\nquit: .cfi_startproc\n mov $60, %eax\n syscall\n.cfi_endproc\n.size quit, . - quit\n.fill 600, 1, 0xcc\n.p2align 4");
void quit(int);
F(c) F(d)
void _start(void) { __asm__("and $-16, %rsp"); quit((a(2) + b(3) * 3 + c(4) + d(5) * 5) & 0); }
END
try layout/quit bfd -O2 -fno-ipa-icf -fno-toplevel-reorder -nostdlib -static quit.c -Wl,--emit-relocs

# --- a program folded in its place, folded again
gcc some.o -o again && "$ICFOLD" -q --in-place --allow-growth again -o again.1 && "$ICFOLD" -q --in-place again.1 -o again.2 2>log
check layout/again/folded "not folded" eval '! cmp -s again again.1'
check layout/again/same "$(first_line log)" cmp -s again.1 again.2


# --- calls in .init and .fini, which other objects' code runs through, of functions that fold
cat >init.c <<'C'
#include <stdio.h>
static volatile int w;
__attribute__((used, noinline)) static void from_init(void) { w += 1000; puts("passed"); w ^= 5; }
__attribute__((used, noinline)) static void from_fini(void) { w += 1000; puts("passed"); w ^= 5; }
__asm__(".pushsection .init,\"ax\",@progbits\n call from_init\n .popsection\n.pushsection .fini,\"ax\",@progbits\n call from_fini\n .popsection");
int main(void) { printf("%d\n", w); return 0; }
C
for ld in bfd lld; do
	try layout/init $ld -O2 -g -fno-ipa-icf init.c -Wl,--emit-relocs && check layout/init/$ld/folded "not folded" bash -c '[ "$(nm out | grep -c "$(nm out | sed -n "s/ t from_init$//p") t from_")" = 2 ]'
done
finish
