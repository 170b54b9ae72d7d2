#!/bin/bash
# verify.sh: icfold --verify: the output gets its name only if it is proved to be the input folded.
#
# A preloaded library stands for a broken tool: it changes one byte on the way to the file.  Another stands for a file system without
# unnamed files: it refuses to make them.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool verify
make_work
# Under a sanitizer, too, the libraries come first.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
IN=$WORK/in
load_recipe eh
if ! { compile_fixture gcc "-O2 -g" pie "$WORK/obj" && link_fixture gcc bfd pie "$WORK/obj" "$IN"; } >"$WORK/log" 2>&1; then
	not_ok verify "the fixture does not build: $(first_line "$WORK/log")"
	finish
fi

cat >"$WORK/flip.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Changes byte FLIP (an offset in the file) of whatever is written there. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	const char *text = getenv("FLIP");
	off_t flip = text ? (off_t)strtoll(text, NULL, 0) : -1;
	if (flip < at || flip >= at + (off_t)n)
		return real(fd, p, n, at);
	char *copy = malloc(n);
	memcpy(copy, p, n);
	copy[flip - at] ^= 1;
	ssize_t ret = real(fd, copy, n, at);
	free(copy);
	return ret;
}
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at) __attribute__((alias("pwrite")));
END
cat >"$WORK/named.c" <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
/* No unnamed files. */
int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_list ap;
	va_start(ap, flags);
	int mode = va_arg(ap, int);
	va_end(ap);
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return real(path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
END
for l in flip named; do
	if ! gcc -D_GNU_SOURCE -w -shared -fPIC "$WORK/$l.c" -o "$WORK/$l.so" -ldl 2>"$WORK/log"; then
		not_ok "verify/$l" "$(first_line "$WORK/log")"
		finish
	fi
done

"$ICFOLD" "$IN" -o "$WORK/plain" 2>"$WORK/log"
check "verify/plain output" "$(first_line "$WORK/log")" test -s "$WORK/plain"
for args in "" "--icf=all" "--icf=none" "--no-thunks" "--debug-folded=alias" "--debug-folded=drop" "--strip-debug" "--emit-relocs" "--threads=1"; do
	# shellcheck disable=SC2086
	"$ICFOLD" $args "$IN" -o "$WORK/want" 2>/dev/null
	rm -f "$WORK/out"
	# shellcheck disable=SC2086
	"$ICFOLD" $args --verify "$IN" -o "$WORK/out" >"$WORK/stdout" 2>"$WORK/log"
	check "verify/good ${args:-default}" "$(first_line "$WORK/log")" cmp -s "$WORK/want" "$WORK/out"
done
check "verify/a good output says nothing" "$(cat "$WORK/stdout" "$WORK/log" | head -n 1)" test ! -s "$WORK/stdout" -a ! -s "$WORK/log"
cp "$IN" "$WORK/same"
check "verify/input is output" "refused" "$ICFOLD" --verify "$WORK/same" -o "$WORK/same"
check "verify/input is output, bytes" "others" cmp -s "$WORK/plain" "$WORK/same"
check "verify/device" "refused" "$ICFOLD" --verify "$IN" -o /dev/null
"$ICFOLD" --verify "$IN" -o /dev/stdout >"$WORK/out" 2>"$WORK/log"
check "verify/standard output" "$(first_line "$WORK/log")" cmp -s "$WORK/plain" "$WORK/out"

# refused NAME WHAT COMMAND...: exit status 1 or $trouble, no output, nothing left beside it.
refused() {
	local name=$1 what=$2 rc
	shift 2
	rm -f "$WORK/dir/out"
	"$@" >"$WORK/stdout" 2>"$WORK/log"
	rc=$?
	check "verify/$name: exit status" "$rc" test $rc = "${trouble:-1}"
	check "verify/$name: message" "$(first_line "$WORK/log")" grep -q "^icfold: .*$what" "$WORK/log"
	check "verify/$name: other lines" "$(grep -v '^icfold: ' "$WORK/log" | head -n 1)" test -z "$(grep -v '^icfold: ' "$WORK/log")"
	check "verify/$name: no output" "$(ls -A "$WORK/dir")" test -z "$(ls -A "$WORK/dir")"
}
# at SECTION: offset of the middle of a section of the good output.
at() { readelf -SW "$WORK/plain" | sed 's/^ *\[ *[0-9]*\]//' | awk -v s="$1" '$1 == s { print "0x" $4, "0x" $5 }' | { read -r o n && echo $((o + n / 2)); }; }
mkdir "$WORK/dir"
for section in .text .rodata .eh_frame .symtab .debug_line .debug_info; do
	FLIP=$(at $section) LD_PRELOAD=$WORK/flip.so refused "broken $section" "not what it should be" "$ICFOLD" --verify "$IN" -o "$WORK/dir/out"
done
FLIP=$(at .text) LD_PRELOAD=$WORK/flip.so refused "broken, by name" "not what it should be" env LD_PRELOAD="$WORK/flip.so $WORK/named.so" "$ICFOLD" --verify "$IN" -o "$WORK/dir/out"
FLIP=$(at .text) LD_PRELOAD=$WORK/flip.so "$ICFOLD" --verify "$IN" -o /dev/null 2>/dev/null
check "verify/broken device" "survived" test $? = 1
FLIP=$(at .text) LD_PRELOAD=$WORK/flip.so "$ICFOLD" "$IN" -o "$WORK/out" 2>/dev/null
check "verify/broken without --verify is written" "not" test -s "$WORK/out"
LD_PRELOAD=$WORK/named.so "$ICFOLD" --verify "$IN" -o "$WORK/out" 2>"$WORK/log"
check "verify/good, by name" "$(first_line "$WORK/log")" cmp -s "$WORK/plain" "$WORK/out"

# An older output, and reports, stay as they were.
echo older >"$WORK/older"
echo older >"$WORK/older.map"
FLIP=$(at .text) LD_PRELOAD=$WORK/flip.so "$ICFOLD" --verify --map="$WORK/older.map" "$IN" -o "$WORK/older" 2>/dev/null
check "verify/older output" "$(first_line "$WORK/older")" test "$(cat "$WORK/older" "$WORK/older.map" | tr '\n' ' ')" = "older older "
"$ICFOLD" --verify --stats=json --map="$WORK/new.map" --print-icf-sections="$WORK/new.list" "$IN" -o "$WORK/out" >"$WORK/new.stats" 2>&1
"$ICFOLD" --stats=json --map="$WORK/old.map" --print-icf-sections="$WORK/old.list" "$IN" -o "$WORK/out" >"$WORK/old.stats" 2>&1
check "verify/reports" "$(diff "$WORK/old.map" "$WORK/new.map" | head -n 2 | tr '\n' ' ')" cmp -s "$WORK/old.map" "$WORK/new.map"
check "verify/reports: list" "$(diff "$WORK/old.list" "$WORK/new.list" | head -n 2 | tr '\n' ' ')" cmp -s "$WORK/old.list" "$WORK/new.list"
check "verify/reports: figures" "$(diff "$WORK/old.stats" "$WORK/new.stats" | head -n 2 | tr '\n' ' ')" cmp -s "$WORK/old.stats" "$WORK/new.stats"

# Functions that only the debug information names, in an output that has none.
cat >"$WORK/local.c" <<-'END'
	static int __attribute__((noinline)) one(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; return x * 3 + 1; }
	static int __attribute__((noinline)) two(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; return x * 3 + 1; }
	int main(int argc, char **argv) { (void)argv; int (*volatile f)(int) = two, (*volatile g)(int) = one; return one(argc) + two(argc + 1) + f(argc) == g(argc); }
END
gcc -O1 -g -Wl,--emit-relocs,--discard-all "$WORK/local.c" -o "$WORK/local"
"$ICFOLD" --allow-growth --strip-debug --verify --stats=json "$WORK/local" -o "$WORK/local.out" >"$WORK/log" 2>&1
check "verify/no debug information, no local symbols" "$(first_line "$WORK/log")" grep -q '"folded": [1-9]' "$WORK/log"
# Thunks of functions that begin with an inlined copy and have no symbol.  The thunk has the outer function's name; with
# --debug-folded=alias no debug information describes it.
cat >"$WORK/inner.c" <<-'END'
	static inline __attribute__((always_inline)) int inner(int x) { __asm__ volatile("xchg %0, %0; add $3, %0; imul $5, %0, %0" : "+r"(x)); return x; }
	static int __attribute__((noinline, noipa)) one(int x) { return inner(x) + 1; }
	static int __attribute__((noinline, noipa)) two(int x) { return inner(x) + 1; }
	int main(int argc, char **argv) { (void)argv; int (*volatile f)(int) = two, (*volatile g)(int) = one; return one(argc) + two(argc + 1) + f(argc) == g(argc); }
END
gcc -O2 -g -Wl,--emit-relocs,--discard-all "$WORK/inner.c" -o "$WORK/inner"
for how in overlay alias; do
	"$ICFOLD" --allow-growth --in-place --debug-folded=$how --verify --stats=json "$WORK/inner" -o "$WORK/inner.out" >"$WORK/log" 2>&1
	check "verify/thunk with an inlined copy, no local symbols, $how" "$(first_line "$WORK/log")" grep -q '"folded": [1-9]' "$WORK/log"
done

# A file with a single unit: the output's second one stands in front of the type units of .debug_types.
cat >"$WORK/single.cc" <<'C'
struct S { int a; struct Q { int b; } q; int f(int), g(int); };
#define BODY(name) __attribute__((noinline)) int S::name(int x) { int s = q.b; for (int i = 0; i < x; i++) s += a * i ^ x; return s; }
BODY(f)
BODY(g)
int main(int argc, char **) { S s = { argc, { 3 } }; return s.f(2) - s.g(2); }
C
g++ -w -O1 -gdwarf-4 -fdebug-types-section -fno-ipa-icf "$WORK/single.cc" -Wl,--emit-relocs -o "$WORK/single"
"$ICFOLD" --allow-growth --verify --stats=json "$WORK/single" -o "$WORK/single.out" >"$WORK/log" 2>&1
check "verify/single unit, type units of DWARF 4" "$(first_line "$WORK/log")" grep -q '"folded": [1-9]' "$WORK/log"

trouble=2 refused "stripped" "may not be used together" "$ICFOLD" --verify --strip-all "$IN" -o "$WORK/dir/out"
"$ICFOLD" --emit-relocs "$IN" -o "$WORK/first" 2>/dev/null
refused "folded before" "was folded already" "$ICFOLD" --verify "$WORK/first" -o "$WORK/dir/out"
"$ICFOLD" "$WORK/first" -o "$WORK/second" 2>/dev/null
check "verify/folded in two steps, against the first input" "different" "$ICFOLD" verify "$IN" "$WORK/second" >/dev/null
"$ICFOLD" "$WORK/plain" -o "$WORK/again" 2>/dev/null
check "verify/folded again: the same bytes" "$(cmp "$WORK/plain" "$WORK/again" 2>&1)" cmp -s "$WORK/plain" "$WORK/again"
check "verify/folded again, against the first input" "different" "$ICFOLD" verify "$IN" "$WORK/again" >/dev/null

# The table's counts, and compressed debug information.
"$ICFOLD" verify "$IN" "$WORK/plain" >"$WORK/table"
check "verify/symbolizes" "$(grep symbolized "$WORK/table")" grep -q '^places symbolized  *[1-9][0-9]*  *0$' "$WORK/table"
check "verify/resolves calls" "$(grep resolved "$WORK/table")" grep -q '^calls of shared functions resolved  *[1-9][0-9]*  *0$' "$WORK/table"
check "verify/counts" "$(grep '^symbolized' "$WORK/table")" grep -qE '^symbolized: [1-9][0-9]* places decided, [0-9]+ undecided with candidates, 0 wrong$' "$WORK/table"
for kind in zlib zlib-gnu zstd; do
	objcopy --compress-debug-sections=$kind "$IN" "$WORK/packed" 2>/dev/null || { skip "verify/$kind" "objcopy cannot"; continue; }
	"$ICFOLD" "$WORK/packed" -o "$WORK/packed.out" 2>/dev/null
	"$ICFOLD" verify "$WORK/packed" "$WORK/packed.out" >"$WORK/packed.table" 2>&1
	rc=$?
	if [ $kind = zstd ] && grep -q 'libdw cannot read' "$WORK/packed.table"; then
		skip "verify/zstd" "libdw knows no zstd"
		continue
	fi
	check "verify/$kind" "$(tail -n 2 "$WORK/packed.table" | tr '\n' ' ')" test $rc = 0
	check "verify/$kind: as many" "$(diff "$WORK/table" "$WORK/packed.table" | sed -n 2p)" test "$(grep -E '^(call table|places|calls)' "$WORK/table")" = "$(grep -E '^(call table|places|calls)' "$WORK/packed.table")"
done

# LLVM 14 leaves what was in memory in the reserved word of a compressed section's header.  In the output there is that, or 0.
cat >"$WORK/reserve.py" <<'END'
import struct, sys
b, word, n = bytearray(open(sys.argv[1], "rb").read()), int(sys.argv[2]), 0
at, size, count = struct.unpack_from("<Q", b, 40) + struct.unpack_from("<HH", b, 58)
for i in range(count):
    flags, off = struct.unpack_from("<Q8xQ", b, at + i * size + 8)
    if flags & 0x800:
        struct.pack_into("<I", b, off + 4, word)
        n += 1
open(sys.argv[3], "wb").write(b)
sys.exit(not n)
END
if objcopy --compress-debug-sections=zlib "$IN" "$WORK/packed" 2>/dev/null && python3 "$WORK/reserve.py" "$WORK/packed" 3232493170 "$WORK/reserved"; then
	"$ICFOLD" --verify "$WORK/reserved" -o "$WORK/reserved.out" 2>"$WORK/log"
	check "verify/reserved word" "$(first_line "$WORK/log")" test -s "$WORK/reserved.out"
	"$ICFOLD" "$WORK/reserved" -o "$WORK/reserved.out" 2>/dev/null
	python3 "$WORK/reserve.py" "$WORK/reserved.out" 7 "$WORK/reserved.bad" &&
		check "verify/reserved word/other" "not noticed" grep -q 'compression: ' <("$ICFOLD" verify "$WORK/reserved" "$WORK/reserved.bad" 2>&1)
else
	skip "verify/reserved word" "no python3, or objcopy cannot"
fi

# Sanitizers add constructors that have line rows but belong to no unit.
printf 'int two(int *p);\nint main(int n, char **v) { (void)v; return two(&n) == 0; }\n' >"$WORK/one.c"
printf 'int two(int *p) { return *p * 3; }\n' >"$WORK/two.c"
for sanitizer in address thread; do
	if ! gcc -g -O2 -fsanitize=$sanitizer -Wl,--emit-relocs "$WORK/one.c" "$WORK/two.c" -o "$WORK/san" 2>"$WORK/log"; then
		skip "verify/constructors/$sanitizer" "gcc: $(first_line "$WORK/log")"
		continue
	fi
	"$ICFOLD" --icf=all --print-icf-sections "$WORK/san" -o "$WORK/san.out" >"$WORK/list" 2>"$WORK/log"
	check "verify/constructors/$sanitizer: folded" "$(cat "$WORK/log")" grep -q 'removing identical section _sub_I_' "$WORK/list"
	"$ICFOLD" verify --icf=all "$WORK/san" "$WORK/san.out" >"$WORK/table" 2>&1
	check "verify/constructors/$sanitizer" "$(tail -n 2 "$WORK/table" | tr '\n' ' ')" grep -qx equal "$WORK/table"
done
# The machine outliner of clang: functions whose only line row is an end, or that lie in another one's sequence, behind its epilogue;
# and a section of alignment 1.
cc=clang-19
have $cc || cc=clang
for fixture in switches hotcold; do
	load_recipe $fixture
	if ! have $cc || ! { compile_fixture $cc "-Oz -g -mllvm -enable-machine-outliner=always" pie "$WORK/$fixture" &&
		link_fixture $cc lld pie "$WORK/$fixture" "$WORK/outlined"; } >"$WORK/log" 2>&1; then
		skip "verify/outlined/$fixture" "$cc: $(first_line "$WORK/log")"
		continue
	fi
	"$ICFOLD" --allow-growth "$WORK/outlined" -o "$WORK/outlined.out" 2>"$WORK/log"
	"$ICFOLD" verify "$WORK/outlined" "$WORK/outlined.out" >"$WORK/table" 2>&1
	check "verify/outlined/$fixture" "$(tail -n 2 "$WORK/table" | tr '\n' ' ')" grep -qx equal "$WORK/table"
done
# Functions without symbols that begin with inlined code: a folded one keeps only its own name with --debug-folded=drop.
cat >"$WORK/inner.c" <<'END'
#include <stdio.h>
static inline __attribute__((always_inline)) int inner(int a) { return a * 17 + 3; }
static __attribute__((noinline, noipa)) int one(int a) { return inner(a); }
static __attribute__((noinline, noipa)) int two(int a) { return inner(a); }
int main(int n, char **v) { (void)v; printf("%d\n", one(n) + two(n + 1)); return 0; }
END
gcc -Og -g "$WORK/inner.c" -Wl,--emit-relocs,--discard-all -o "$WORK/inner" 2>"$WORK/log"
"$ICFOLD" --allow-growth --debug-folded=drop "$WORK/inner" -o "$WORK/inner.out" 2>>"$WORK/log"
"$ICFOLD" verify "$WORK/inner" "$WORK/inner.out" >"$WORK/table" 2>&1
check "verify/inlined: folded" "$(first_line "$WORK/log")" grep -q ' 1 of them folded' "$WORK/table"
check "verify/inlined" "$(tail -n 4 "$WORK/table" | tr '\n' ' ')" grep -qx equal "$WORK/table"
# Compilers let the impossible cases of a switch lead to the end of the function; what lies there is folded apart from it.
if [ "$MACHINE" = x86_64 ]; then
	cat >"$WORK/ends.S" <<'END'
	.text
	.macro body name, table
	.globl \name
	.type \name, @function
\name:	.cfi_startproc
	andl $3, %edi
	leaq \table(%rip), %rax
	movslq (%rax,%rdi,4), %rcx
	addq %rax, %rcx
	jmp *%rcx
.Lone\@: movl $17, %eax
	ret
.Ltwo\@: movl $39, %eax
	ret
.Lend\@: .cfi_endproc
	.size \name, .-\name
	.pushsection .rodata
	.p2align 2
\table:	.long .Lone\@-\table, .Ltwo\@-\table, .Lone\@-\table, .Lend\@-\table
	.popsection
	.endm
	.macro plain name, k
	.globl \name
	.type \name, @function
\name:	.cfi_startproc
	leal \k(%rdi,%rdi,2), %eax
	imull %eax, %eax
	ret
	.cfi_endproc
	.size \name, .-\name
	.endm
	plain keep, 77
	body one, .Ltable_one
	plain behind_one, 77
	body two, .Ltable_two
	plain behind_two, 78
	.section .note.GNU-stack,"",@progbits
END
	cat >"$WORK/ends_main.c" <<'END'
#include <stdio.h>
int keep(int), one(int), two(int), behind_one(int), behind_two(int);
int main(int c, char **v) { (void)v; printf("%d\n", keep(c) + behind_one(c) + behind_two(c) + one(c) + two(c + 1)); return 0; }
END
	for relocs in -Wl,--emit-relocs ""; do
		# shellcheck disable=SC2086
		gcc -O1 "$WORK/ends_main.c" "$WORK/ends.S" $relocs -o "$WORK/ends" 2>"$WORK/log"
		"$ICFOLD" --icf=all --allow-growth --print-icf-sections "$WORK/ends" -o "$WORK/ends.out" >"$WORK/log" 2>&1
		"$ICFOLD" verify --icf=all "$WORK/ends" "$WORK/ends.out" >"$WORK/table" 2>&1
		check "verify/ends${relocs:+ relocs}: folded" "$(first_line "$WORK/log")" [ "$(grep -c removing "$WORK/log")" = 2 ]
		check "verify/ends${relocs:+ relocs}" "$(tail -n 2 "$WORK/table" | tr '\n' ' ')" grep -qx equal "$WORK/table"
	done
fi
# Data between functions that reads as code that leads into the padding behind a function, before a no-op or in the middle of one.
if [ "$MACHINE" = x86_64 ]; then
	cat >"$WORK/gap.c" <<'END'
#include <stdio.h>
#define F(name, n) ".p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ": .cfi_startproc\nlea " #n "(%rdi,%rdi,2), %eax\n imul $77, %eax, %eax\n" \
	" xor $0x1234567, %eax\n ret\n .cfi_endproc\n .size " #name ", . - " #name "\n"
#define PAD ".byte 0x66, 0x66, 0x2e, 0x0f\n.Linside: .byte 0x1f, 0x84, 0, 0, 0, 0, 0\n.Lbefore: .fill 8, 1, 0x90\n"
__asm__(".text\n" F(one, 1) ".p2align 4\n.byte 0x90\n" DATA ".byte 0x34, 0x12\n" F(two, 2) F(three, 3) PAD F(four, 4) F(five, 5) F(six, 6) F(seven, 7)
	F(seven_twin, 7) F(eight, 8) F(eight_twin, 8) F(five_twin, 5));
int one(int), two(int), three(int), four(int), five(int), six(int), seven(int), eight(int), five_twin(int), seven_twin(int), eight_twin(int);
int main(int c, char **v)
{
	(void)v;
	return printf("%d\n", one(c) + two(c) + three(c) + four(c) + five(c) + six(c) + seven(c) + eight(c) + five_twin(c) + seven_twin(c) + eight_twin(c)) < 0;
}
END
	while read -r name field data; do
		gcc -O1 "-DDATA=\"$data\\n\"" "$WORK/gap.c" -Wl,--emit-relocs -o "$WORK/gap" 2>"$WORK/log" || { not_ok "verify/gap/$name" "$(first_line "$WORK/log")"; continue; }
		"$ICFOLD" --icf=all --allow-growth "$WORK/gap" -o "$WORK/gap.out" 2>"$WORK/log"
		"$ICFOLD" verify --icf=all "$WORK/gap" "$WORK/gap.out" >"$WORK/table" 2>&1
		check "verify/gap/$name: folded" "$(first_line "$WORK/log")" grep -q ' [1-9][0-9]* of them folded' "$WORK/table"
		check "verify/gap/$name" "$(tail -n 2 "$WORK/table" | tr '\n' ' ')" grep -qx equal "$WORK/table"
		# The last byte of the padding, and the field that leads there, FIELD bytes behind the start of the function in front.
		four=$((0x$(nm "$WORK/gap.out" | awk '$3 == "four" { print $1 }')))
		one=$((0x$(nm "$WORK/gap.out" | awk '$3 == "one" { print $1 }')))
		for place in padding:$((four - 1)) field:$((one + field)); do
			FLIP=${place#*:} LD_PRELOAD=$WORK/flip.so "$ICFOLD" --icf=all --allow-growth "$WORK/gap" -o "$WORK/gap.bad" 2>"$WORK/log"
			"$ICFOLD" verify --icf=all "$WORK/gap" "$WORK/gap.bad" >"$WORK/table" 2>&1
			check "verify/gap/$name: changed ${place%:*}" "$(tail -n 1 "$WORK/table")" grep -qE '^(branches to other functions|addresses in code): reference to' "$WORK/table"
		done
	done <<'END'
condition 18 .byte 0x78, .Lbefore - . - 1
condition-inside 18 .byte 0x78, .Linside - . - 1
jump 18 .byte 0xeb, .Lbefore - . - 1
far-condition 19 .byte 0x0f, 0x88\n.long .Lbefore - . - 4
call 18 .byte 0xe8\n.long .Linside - . - 4
address 20 .byte 0x48, 0x8d, 0x05\n.long .Lbefore - . - 4
load 19 .byte 0x8b, 0x05\n.long .Linside - . - 4
END
fi
# Functions of libraries without debug information, which call tables name by declarations: before DWARF 4 their linkage names have an
# attribute of MIPS.
load_recipe demo
if { compile_fixture gcc "-O2 -gdwarf-2" static "$WORK/demo" && link_fixture gcc bfd static "$WORK/demo" "$WORK/two"; } >"$WORK/log" 2>&1; then
	"$ICFOLD" "$WORK/two" -o "$WORK/two.out" 2>"$WORK/log"
	"$ICFOLD" verify "$WORK/two" "$WORK/two.out" >"$WORK/table" 2>&1
	check "verify/declared" "$(grep -m 1 'call table entries: ' "$WORK/table")" grep -qx equal "$WORK/table"
else
	skip verify/declared "the fixture does not build: $(first_line "$WORK/log")"
fi
# Lengths that libdw does not look at: of the code that a frame description of .debug_frame is for, of an expression in an entry with a
# sibling, and of the sequence for the byte of the artificial unit.
cat >"$WORK/lengths.py" <<'END'
import re, struct, subprocess, sys
tool, before, after, scratch = sys.argv[1:]
data = open(after, "rb").read()
def section(name):
    text = subprocess.run(["readelf", "-SW", after], capture_output=True, text=True, check=True).stdout
    found = re.search(r" " + re.escape(name) + r" +PROGBITS +\w+ (\w+) (\w+)", text)
    return int(found[1], 16), int(found[2], 16)
mutants = []
at, size = section(".debug_frame")
end = at + size
while at < end:
    length, kind = struct.unpack_from("<II", data, at)
    if kind != 0xffffffff:
        held = struct.unpack_from("<Q", data, at + 16)[0]
        for other in (1, held - 1, held + 1, held + 0x200, 1 << 40):
            mutants.append((f"frame of {held:#x} holds for {other:#x}", at + 16, struct.pack("<Q", other)))
    at += 4 + length
info = section(".debug_info")[0]
text = subprocess.run(["readelf", "-wi", after], capture_output=True, text=True).stdout
for place in re.findall(r"<(\w+)> +DW_AT_(?:GNU_)?call(?:_site)?_value *: 2 byte block: 7[0-9a-f] 0", text):
    mutants.append((f"expression at {place} is shorter", info + int(place, 16), b"\1"))
at, size = section(".debug_line")
for end in re.finditer(rb"\x02\x01\x00\x01\x01", data[at:at + size]): # advance_pc 1, end_sequence
    mutants += [(f"the end at {end.start():#x} becomes {b}", at + end.start(), bytes([b])) for b in (0, 1, 3)]
kinds = {m[0].split()[0] for m in mutants}
missing = {"frame", "expression", "the"} - kinds
if missing:
    print("nothing to change:", missing)
for name, place, new in mutants:
    with open(scratch, "wb") as f:
        f.write(data[:place] + new + data[place + len(new):])
    said = subprocess.run([tool, "verify", "--icf=all", before, scratch], capture_output=True, text=True)
    if said.returncode != 1:
        print(f"{name}: {said.stdout.strip().splitlines()[-1:]} {said.stderr.strip()}")
END
cat >"$WORK/lengths.c" <<'END'
volatile int g;
#define SAME __attribute__((noinline, noclone, noipa))
SAME int a(int x) { int r = 0; for (int i = 0; i < x; i++) { g += i; r ^= g; } return r; }
SAME int b(int x)
{
	int r = 0;
	for (int i = 0; i < x; i++) { g += i; r ^= g; }
	return r;
}
SAME int c(int x) { if (g > 100) g = a(x) + b(x); return x + g; }
int main(int argc, char **argv) { (void)argv; int n = argc + g; g = a(n) + b(n); return c(n) == 7; }
END
if ! have python3; then
	skip verify/lengths "no python3"
elif ! gcc -O2 -g -gdwarf-5 -fno-asynchronous-unwind-tables -ffunction-sections -Wl,--emit-relocs "$WORK/lengths.c" -o "$WORK/lengths" 2>"$WORK/log"; then
	not_ok verify/lengths "$(first_line "$WORK/log")"
else
	"$ICFOLD" --icf=all --allow-growth "$WORK/lengths" -o "$WORK/lengths.out" 2>"$WORK/log"
	"$ICFOLD" verify --icf=all "$WORK/lengths" "$WORK/lengths.out" >"$WORK/table" 2>&1
	check verify/lengths "$(head -n 1 "$WORK/table")" grep -qx equal "$WORK/table"
	python3 "$WORK/lengths.py" "$ICFOLD" "$WORK/lengths" "$WORK/lengths.out" "$WORK/lengths.bad" >"$WORK/table" 2>&1
	check verify/lengths/changed "$(first_line "$WORK/table")" test ! -s "$WORK/table"
fi
# The rows of a folded function, which has the same lines as others: all of them, in their order.  It is the last one of its unit, so
# that a row of the next unit stands at its end.  Lines are 1000 apart: the bytes of their steps are easily found.
rows_of() { # NAME LINE: a function with rows from LINE on, two of them at one place
	local line=$2 k
	printf '.globl %s\n.type %s,@function\n%s:\n' "$1" "$1" "$1"
	for k in 0 1000 2000 3000; do
		printf '.loc 1 %d 7\n' $((line + k))
		[ $k = 1000 ] || printf 'imull $%d,%%edi,%%edi\naddl $%d,%%edi\n' $((k + 3)) $((k + 7))
	done
	printf 'movl %%edi,%%eax\nret\n.size %s,.-%s\n' "$1" "$1"
}
{
	printf '.text\n.file 1 "a.c"\n.globl _start\n.type _start,@function\n_start: call kept\ncall gone\nmovl $60,%%eax\nsyscall\nhlt\n.size _start,.-_start\n'
	rows_of kept 10
	rows_of gone 20
} >"$WORK/rows.a.s"
printf '.text\n.file 1 "b.c"\n.globl other\n.type other,@function\nother: .loc 1 5 3\nnop\nret\n.size other,.-other\n' >"$WORK/rows.b.s"
cat >"$WORK/rows.py" <<'END'
import re, subprocess, sys
folded, bad = sys.argv[1:]
data = bytearray(open(folded, "rb").read())
table = subprocess.run(["readelf", "-SW", folded], capture_output=True, text=True, check=True).stdout
at, size = (int(x, 16) for x in re.search(r"\.debug_line +PROGBITS +\w+ (\w+) (\w+)", table).groups())
step = b"\x03\xe8\x07"
third = data.rindex(step, at, at + size)
second = data.rindex(step, at, third)
first = data.rindex(step, at, second)
emit = bytes(data[first + 3:second]), bytes(data[second + 3:third])
one, two = (b"\x03\xd0\x0f", b"\x03\x98\x78")
new = one + emit[0] + two + emit[1] + one
assert len(new) == third + 3 - first
data[first:third + 3] = new
open(bad, "wb").write(data)
END
if ! have python3; then
	skip verify/rows "no python3"
elif ! gcc -g -nostdlib -no-pie -Wl,--emit-relocs "$WORK/rows.a.s" "$WORK/rows.b.s" -o "$WORK/rows" 2>"$WORK/log"; then
	not_ok verify/rows "$(first_line "$WORK/log")"
else
	"$ICFOLD" --icf=all --allow-growth "$WORK/rows" -o "$WORK/rows.out" 2>"$WORK/log"
	"$ICFOLD" verify --icf=all "$WORK/rows" "$WORK/rows.out" >"$WORK/table" 2>&1
	check verify/rows "$(tail -n 1 "$WORK/table")" grep -qx equal "$WORK/table"
	python3 "$WORK/rows.py" "$WORK/rows.out" "$WORK/rows.bad" 2>"$WORK/log"
	"$ICFOLD" verify --icf=all "$WORK/rows" "$WORK/rows.bad" >"$WORK/table" 2>&1
	check verify/rows/swapped "$(first_line "$WORK/log") $(tail -n 1 "$WORK/table")" grep -q "rows: of the folded gone: expected" "$WORK/table"
fi
# Lists of places that libdw cannot read: GCC says of some values that they may not be set yet.
cat >"$WORK/unset.cc" <<'END'
#include <vector>
__attribute__((noinline)) void g(std::vector<int> &v, int x) { v.push_back(x); }
__attribute__((noinline)) void h(std::vector<unsigned> &v, unsigned x) { v.push_back(x); }
int main(int c, char **) { std::vector<int> a; std::vector<unsigned> b; g(a, c); h(b, c); return a.size() + b.size(); }
END
cat >"$WORK/unset.py" <<'END'
import re, subprocess, sys
folded, bad = sys.argv[1:]
data = bytearray(open(folded, "rb").read())
table = subprocess.run(["readelf", "-SW", folded], capture_output=True, text=True, check=True).stdout
at, size = (int(x, 16) for x in re.search(r"\.debug_loclists +PROGBITS +\w+ (\w+) (\w+)", table).groups())
found = [m.start() + 1 for m in re.finditer(b"\x02[\x50-\x5f]\xf0", data[at:at + size])]  # DW_OP_regN, DW_OP_GNU_uninit
for k in found:
    data[at + k] ^= 1
open(bad, "wb").write(data)
sys.exit(not found)
END
if ! have g++ || ! have python3 || ! g++ -O2 -gdwarf-5 -Wl,--emit-relocs "$WORK/unset.cc" -o "$WORK/unset" 2>"$WORK/log"; then
	skip verify/unset "no g++ or no python3"
else
	"$ICFOLD" --icf=all --allow-growth "$WORK/unset" -o "$WORK/unset.out" 2>"$WORK/log"
	"$ICFOLD" verify --icf=all "$WORK/unset" "$WORK/unset.out" >"$WORK/table" 2>&1
	check verify/unset "$(tail -n 1 "$WORK/table")" grep -qx equal "$WORK/table"
	if python3 "$WORK/unset.py" "$WORK/unset.out" "$WORK/unset.bad" 2>"$WORK/log"; then
		"$ICFOLD" verify --icf=all "$WORK/unset" "$WORK/unset.bad" >"$WORK/table" 2>&1
		check verify/unset/changed "$(tail -n 1 "$WORK/table")" grep -q '^locations: list: .*expected the image' "$WORK/table"
	else
		skip verify/unset/changed "g++ writes no DW_OP_GNU_uninit"
	fi
fi
# An output of --icf=all is different for verify without this option, and verify says why.
"$ICFOLD" --icf=all "$IN" -o "$WORK/out" 2>/dev/null
"$ICFOLD" verify "$IN" "$WORK/out" >"$WORK/table" 2>&1
check "verify/merged: found" "$(tail -n 1 "$WORK/table")" grep -q '^observed.*: merged' "$WORK/table"
check "verify/merged: why" "not told" grep -q '^note: .*--icf=all' "$WORK/table"
finish
