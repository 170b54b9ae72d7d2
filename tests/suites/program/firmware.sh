#!/bin/bash
# firmware.sh: programs whose places others know: start-up code that copies segments to where they run, a memory protection unit, the
# processor's table of exception vectors.  They are built with linker scripts, print what they find, and must print the same.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/plant.sh
. "$TESTS/lib/plant.sh"
start_suite firmware
cat >sys.h <<'END'
typedef unsigned long u64;
#define NI __attribute__((noinline, noclone))
#if defined __x86_64__
static long sys(long n, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}
enum { WRITE = 1, EXIT = 231 };
#else
static long sys(long n, long a, long b, long c)
{
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}
enum { WRITE = 64, EXIT = 94 };
#endif
NI void show(u64 v)
{
	char b[17];
	for (int i = 0; i < 16; i++)
		b[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
	b[16] = '\n';
	sys(WRITE, 1, (long)b, 17);
}
#define TWIN(n) NI u64 twin_##n(u64 *p, u64 k) { u64 s = 1; for (u64 i = 0; i < k; i++) { s ^= p[i] * 0x9e3779b97f4a7c15UL; s = s << 13 | s >> 51; if (s & 8) s += p[k - 1 - i]; else s -= p[i] >> 3; if (s & 1024) s ^= 0x1234567; } return s; }
TWIN(1) TWIN(2) TWIN(3) TWIN(4) TWIN(5) TWIN(6)
u64 words[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
NI void work(void)
{
	u64 x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	show(twin_1(x, 8) + twin_2(x, 7) * 3 + twin_3(x, 6) * 5 + twin_4(x, 5) * 7 + twin_5(x, 4) * 11 + twin_6(x, 3) * 13);
}
END
cat >copied.c <<'END'
#include "sys.h"
extern char load_data[], code_end[], page_end[];
void run(void)
{
	work();
	show((u64)load_data);
	show((u64)code_end);
	show((u64)page_end & 4095);
	sys(EXIT, 0, 0, 0);
}
__asm__(".globl _start\n.type _start, %function\n_start:\n"
#ifdef __x86_64__
	"and $-16, %rsp\ncall run\nud2\n"
#else
	"bl run\nudf #0\n"
#endif
	".size _start, . - _start\n");
END
# Of _start, whose physical address is the entry point, nothing else is named.
script() { # AT-CODE AT-DATA END-OF-CODE ENTRY
	cat <<-END
		PHDRS { h PT_LOAD FILEHDR PHDRS FLAGS(4); t PT_LOAD FLAGS(5); d PT_LOAD FLAGS(6); }
		ENTRY($4)
		SECTIONS {
			. = 0x400000 + SIZEOF_HEADERS;
			.note : { *(.note*) } :h
			.eh_frame : { *(.eh_frame) } :h
			.rodata : { *(.rodata .rodata.*) } :h
			. = ALIGN(0x1000);
			.text : $1 { *(.text .text.*) $3 code_end = .; } :t
			. = ALIGN(0x1000) + 0x1000;
			.data : $2 { *(.data*) *(.bss*) } :d
			load_data = LOADADDR(.data);
			page_end = code_end;
			physical_start = _start - 0x100000;
			/DISCARD/ : { *(.comment) }
		}
	END
}
# judge NAME: folds `prog` in all modes; each prints what `prog` prints, and verify says equal.
judge() {
	local mode name
	run_program want pie ./prog || { not_ok "$1" "it does not run unfolded"; return; }
	for mode in --icf=safe --icf=all "--icf=all --gc-functions" --in-place; do
		name=$1/$(tr -d ' -' <<<"$mode")
		# shellcheck disable=SC2086
		"$ICFOLD" -q --allow-growth $mode prog -o prog.out 2>log || { not_ok "$name" "$(first_line log)"; continue; }
		run_program have pie ./prog.out
		check "$name" "$(diff want have | sed -n 2,3p | tr '\n' ' ')" cmp -s want have
		# shellcheck disable=SC2086
		"$ICFOLD" verify ${mode/--in-place/} prog prog.out >log 2>&1
		check "$name/verify" "$(grep ': ' log | head -n 1)" test $? = 0
	done
}
built() { # CC SCRIPT SOURCE FLAG...
	local cc=$1 script=$2 source=$3
	shift 3
	$cc -Os -ffreestanding -fno-stack-protector -fno-ipa-icf -fno-pic -nostdlib -static -no-pie "$source" -T "$script" -Wl,--build-id=none,--emit-relocs "$@" -o prog 2>log && return
	skip "firmware/$source" "does not build: $(grep -v warning log | first_line /dev/stdin)"
	return 1
}
place() { nm "$1" | awk -v n="$2" '$3 == n { print $1 }'; }
x86_only firmware/copied
for case in data:"":"AT(ADDR(.text) + SIZEOF(.text))":"":_start aligned:"":"":". = ALIGN(0x1000);":_start entry:"AT(ADDR(.text) - 0x100000)":"AT(ADDR(.data) - 0x100000)":"":physical_start; do
	IFS=: read -r name code data end entry <<<"$case"
	script "$code" "$data" "$end" "$entry" >"$name.ld"
	built gcc "$name.ld" copied.c || continue
	cp prog "$name"
	if [ "$name" != entry ]; then
		judge "firmware/$name"
		continue
	fi
	for mode in --icf=safe "--icf=all --gc-functions"; do
		# shellcheck disable=SC2086
		"$ICFOLD" -q --allow-growth $mode prog -o prog.out 2>log
		check "firmware/entry/$(tr -d ' -' <<<"$mode")" "_start is not where the entry point says" test "$(place prog _start)" = "$(place prog.out _start)"
	done
done
# What start-up code copies is not there before: it is kept for nothing else.
cat >ram.c <<'END'
#include "sys.h"
NI __attribute__((section(".text.hot"))) u64 fast(u64 *p, u64 k) { u64 s = 5; for (u64 i = 0; i < k; i++) { s += p[i] * 77; s ^= s >> 7; s = s * 5 + p[k - 1 - i]; } return s; }
NI u64 early(u64 *p, u64 k) { u64 s = 5; for (u64 i = 0; i < k; i++) { s += p[i] * 77; s ^= s >> 7; s = s * 5 + p[k - 1 - i]; } return s; }
void _start(void) { work(); show(early(words, 5)); show(fast(words, 6)); sys(EXIT, 0, 0, 0); }
END
cat >ram.ld <<'END'
ENTRY(_start)
SECTIONS {
	. = 0x400000 + SIZEOF_HEADERS;
	.eh_frame : { *(.eh_frame) }
	.rodata : { *(.rodata*) }
	. = ALIGN(0x1000);
	.text : { *(.text .text.startup) }
	. = ALIGN(0x1000);
	.text.hot : AT(ADDR(.text.hot) + 0x100000) { *(.text.hot) }
	. = ALIGN(0x1000);
	.data : { *(.data*) *(.bss*) }
}
END
if built gcc ram.ld ram.c; then
	judge firmware/ram
	for mode in --icf=all --in-place; do
		"$ICFOLD" -q --allow-growth $mode prog -o prog.out 2>log
		check "firmware/ram/apart$mode" "code is folded over places that are loaded apart" test "$("$ICFOLD" dump --groups prog.out 2>/dev/null | grep -cE '(early|fast)')" = 0
	done
fi
# AArch64: entry N of a table of vectors is 128 * N bytes behind its start, which alone is named.
cat >vectors.c <<'END'
#include "sys.h"
extern char vectors[];
static char *volatile base; /* as the processor's register: nobody sees what is added to it */
void _start(void)
{
	work();
	base = vectors;
	for (u64 n = 0; n < 16; n++)
		show(((u64(*)(u64))(base + 128 * n))(n));
	sys(EXIT, 0, 0, 0);
}
__asm__(".section .vectors, \"ax\"\n.balign 2048\n.globl vectors\nvectors:\n"
	".irp k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n.balign 128\n.type vec_\\k, %function\nvec_\\k:\n.cfi_startproc\n"
	"add x0, x0, #7\nlsl x0, x0, #3\nadd x0, x0, #(\\k & 4)\nret\n.cfi_endproc\n.size vec_\\k, . - vec_\\k\n.endr\n");
END
cat >vectors.ld <<'END'
PHDRS { h PT_LOAD FILEHDR PHDRS FLAGS(4); t PT_LOAD FLAGS(5); d PT_LOAD FLAGS(6); }
ENTRY(_start)
SECTIONS {
	. = 0x400000 + SIZEOF_HEADERS;
	.eh_frame : { *(.eh_frame) } :h
	.rodata : { *(.rodata*) } :h
	. = ALIGN(0x1000);
	.text : { *(.text .text.*) *(.vectors) } :t
	. = ALIGN(0x1000);
	.data : { *(.data*) *(.bss*) } :d
}
END

# Words that are too short to hold another address: distances of two bytes, and addresses below 64 KiB.
cat >short.c <<'END'
#include "sys.h"
extern const short ways[];
__asm__(".section .rodata.ways, \"a\"\n.balign 2\nways:\n.irp k, 1,2,3,4,5,6\n.short twin_\\k - .\n.endr\n.text\n");
void run(void)
{
	work();
	for (int n = 0; n < 6; n++)
		show(((u64(*)(u64 *, u64))((const char *)(ways + n) + ways[n]))(words, 8 - n));
	sys(EXIT, 0, 0, 0);
}
__asm__(".globl _start\n.type _start, %function\n_start: and $-16, %rsp\ncall run\nud2\n.size _start, . - _start\n");
END
sed -e 's/ - \.\\n/\\n/' -e 's/(const char \*)(ways + n) + ways\[n\]/(u64)(unsigned short)ways[n]/' short.c >low.c
for name in short low; do
	at=0x400000
	[ $name = short ] || at=0x4000
	sed "s/0x400000/$at/; s/ \*(.vectors)//" vectors.ld >$name.ld
	built gcc $name.ld $name.c || continue
	cp prog $name
	[ $name = low ] || judge firmware/$name
	# No process may use the lowest pages.
	for mode in --icf=safe --icf=all; do
		"$ICFOLD" -q --allow-growth $mode prog -o prog.out 2>log
		check "firmware/$name/places$mode" "$(first_line log)" test "$(nm prog | grep ' t\|T ' | sort)" = "$(nm prog.out | grep ' t\|T ' | sort)"
	done
done

# Such a word may lead into the middle of a function: a label of one that equals another.
cat >inside.c <<'END'
#include "sys.h"
extern const short inside[];
__asm__(".irp k, a,b\n.section .text.in_\\k, \"ax\"\n.globl in_\\k\n.type in_\\k, %function\nin_\\k:\n.cfi_startproc\nmov %edi, %eax\nimul $7, %eax\n"
	".Lin_\\k: add $5, %eax\nxor %edi, %eax\nimul $77, %eax\nadd $5, %eax\nxor %edi, %eax\nret\n.cfi_endproc\n.size in_\\k, . - in_\\k\n.endr\n"
	".section .rodata.inside, \"a\"\n.balign 2\ninside:\n.short .Lin_a - inside, .Lin_b - inside\n.text\n");
u64 in_a(u64), in_b(u64);
void run(void)
{
	work();
	show(in_a(3) + in_b(4));
	for (int n = 0; n < 2; n++) {
		unsigned ret = n + 1;
		__asm__("call *%1" : "+a"(ret) : "r"((const char *)inside + inside[n]), "D"(n) : "memory");
		show(ret);
	}
	sys(EXIT, 0, 0, 0);
}
__asm__(".globl _start\n.type _start, %function\n_start: and $-16, %rsp\ncall run\nud2\n.size _start, . - _start\n");
END
sed "s/ \*(.vectors)//" vectors.ld >inside.ld
if built gcc inside.ld inside.c -mno-red-zone; then
	cp prog inside
	judge firmware/inside
fi

if ! have aarch64-linux-gnu-gcc || ! have qemu-aarch64; then
	skip firmware/vectors "no compiler for AArch64, or nothing runs its programs"
elif built aarch64-linux-gnu-gcc vectors.ld vectors.c; then
	run_program() { qemu-aarch64 "$3" >"$1" 2>&1; }
	judge firmware/vectors
fi

# Planted: the fold did not ask for these things.  verify must notice.
cd "$ROOT" || exit 1
plant mutant/layout icf/infer/place 's/^\tjudge_layout(prog);/\t(void)judge_layout;/' &&
	for name in data aligned entry; do
		[ -x "$WORK/$name" ] || { skip "mutant/$name" "no program"; continue; }
		"$WORK/layout" -q --allow-growth "$WORK/$name" -o "$WORK/wrong" 2>"$WORK/log"
		"$ICFOLD" verify "$WORK/$name" "$WORK/wrong" >"$WORK/log" 2>&1
		rc=$?
		check "mutant/$name" "verify says $rc: $(tail -n 1 "$WORK/log")" test $rc = 1
	done
plant mutant/words icf/refs/dataref 's/^\t\tif (in_code) {$/\t\tif (0) {/' &&
	for name in short low inside; do
		[ -x "$WORK/$name" ] || { skip "mutant/$name" "no program"; continue; }
		"$WORK/words" -q --allow-growth --icf=all "$WORK/$name" -o "$WORK/wrong" 2>"$WORK/log"
		"$ICFOLD" verify --icf=all "$WORK/$name" "$WORK/wrong" >"$WORK/log" 2>&1
		rc=$?
		check "mutant/$name" "verify says $rc: $(tail -n 1 "$WORK/log")" test $rc = 1
	done
finish
