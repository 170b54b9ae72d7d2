#!/bin/bash
# unwind.sh: stacks of folded programs, by backtrace(3) and by gdb without debug information, name the functions that they name in the
# unfolded programs; readelf finds the unwind tables complete and sorted.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool unwind
x86_only unwind
make_work

# Frames as "name" lines; the copies _a and _b may stand for each other.
frames() { sed -E 's/_[ab]$//'; }

gdb_frames() { # PROGRAM [BREAKPOINT [STOPS]]
	local stop=${2:-stop_here} n=${3:-10} i
	{
		echo "set confirm off"
		echo "set pagination off"
		echo "set debuginfod enabled off"
		echo "break $stop"
		echo "run"
		for ((i = 0; i < n; i++)); do
			echo "bt"
			echo "echo ----\\n"
			echo "continue"
		done
	} >"$WORK/gdb.in"
	timeout 400 gdb -nx -batch -x "$WORK/gdb.in" "$1" 2>"$WORK/gdb.err" </dev/null |
		sed -nE 's/^#[0-9]+ +(0x[0-9a-f]+ in )?([^ ]+) \(.*/\2/p; /^----$/p' | frames
}

gdb=1
if ! have gdb; then
	gdb=0
	skip unwind/gdb "no gdb"
elif ! timeout 400 gdb -nx -batch -ex run /bin/true 2>&1 </dev/null | grep -q 'exited normally'; then
	gdb=0
	skip unwind/gdb "gdb cannot run programs here"
fi
for cc in gcc clang; do
	have $cc || { skip "unwind/$cc" "no $cc"; continue; }
	for ld in bfd gold lld mold; do
		for kind in pie nopie; do
			name=unwind/$cc.$ld.$kind
			load_recipe unwind
			if [ ! -d "$WORK/$cc.$kind" ] && ! compile_fixture $cc -O2 $kind "$WORK/$cc.$kind" >"$WORK/log" 2>&1; then
				not_ok "$name" "does not compile: $(first_line "$WORK/log")"
				continue
			fi
			in=$WORK/in
			if ! link_fixture $cc $ld $kind "$WORK/$cc.$kind" "$in" >"$WORK/log" 2>&1; then
				limit=$(linker_limit "$WORK/log")
				if [ -n "$limit" ]; then skip "$name" "$limit"; else not_ok "$name" "does not link: $(first_line "$WORK/log")"; fi
				continue
			fi
			[ $gdb = 1 ] && gdb_frames "$in" >"$in.frames"
			if [ $gdb = 1 ] && [ "$(grep -c '^main$' "$in.frames")" != 10 ]; then
				not_ok "$name" "gdb does not reach main ten times in the unfolded program: $(first_line "$WORK/gdb.err")"
				continue
			fi
			unwind_problems "$in" >"$in.problems"
			covered_functions "$in" >"$in.covered"
			for mode in none safe all; do
				out=$WORK/out
				if ! "$ICFOLD" -q --icf=$mode "$in" -o "$out" 2>"$WORK/log"; then
					not_ok "$name/$mode" "$(first_line "$WORK/log")"
					continue
				fi
				bad=$(check_transcripts $kind "$out" 1)
				if [ -n "$bad" ]; then
					not_ok "$name/$mode" "$bad"
					continue
				fi
				if [ $gdb = 1 ]; then
					gdb_frames "$out" >"$out.frames"
					if ! cmp -s "$in.frames" "$out.frames"; then
						not_ok "$name/$mode" "gdb: other frames: $(diff "$in.frames" "$out.frames" | sed -n 2,4p | tr '\n' ' ')"
						continue
					fi
				fi
				bad=$(unwind_problems "$out" | comm -23 - "$in.problems" | head -n 1)
				[ -z "$bad" ] && bad=$(covered_functions "$out" | comm -23 "$in.covered" - | head -n 3 | tr '\n' ' ')
				[ -z "$bad" ] && bad=$(readelf --debug-dump=frames "$out" 2>&1 >/dev/null | head -n 1)
				if have eu-readelf && [ -z "$bad" ]; then bad=$(eu-readelf --debug-dump=frames "$out" 2>&1 >/dev/null | head -n 1); fi
				if [ -n "$bad" ]; then not_ok "$name/$mode" "$bad"; else ok "$name/$mode"; fi
			done
		done
	done
done

# An exception passes every folded frame; gdb stops at the throw.
load_recipe eh
if [ $gdb = 0 ]; then
	skip unwind/throw "no gdb"
elif compile_fixture gcc -O2 pie "$WORK/eh" && link_fixture gcc bfd pie "$WORK/eh" "$WORK/in"; then
	gdb_frames "$WORK/in" __cxa_throw 40 | sed 's/::[a-z_]*$//' >"$WORK/in.frames"
	for mode in none safe all; do
		if ! "$ICFOLD" -q --icf=$mode "$WORK/in" -o "$WORK/out" 2>"$WORK/log"; then
			not_ok "unwind/throw/$mode" "$(first_line "$WORK/log")"
			continue
		fi
		gdb_frames "$WORK/out" __cxa_throw 40 | sed 's/::[a-z_]*$//' >"$WORK/out.frames"
		# A folded function may have its twin's name; the number of frames at each stop must not change.
		awk '/^----/ { print n; n = 0; next } { n++ }' "$WORK/in.frames" >"$WORK/in.depths"
		awk '/^----/ { print n; n = 0; next } { n++ }' "$WORK/out.frames" >"$WORK/out.depths"
		check "unwind/throw/$mode" "gdb sees other depths" bash -c '[ "$(wc -l <"$1.depths")" -ge 40 ] && cmp -s "$1.depths" "$2.depths"' - "$WORK/in" "$WORK/out"
	done
else
	not_ok unwind/throw "does not build"
fi

# Unwind tables that may not become longer, and a thunk whose description takes more room than what goes away; functions without a
# description, whose thunk needs none.
mkdir -p "$WORK/room"
cat >"$WORK/room/p.s" <<'END'
	.macro twin name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.ifdef FRAMES
	.cfi_startproc simple
	.cfi_def_cfa rsp, 8
	.cfi_offset rip, -8
	.endif
	mov %edi, %eax
	imul $3, %eax, %eax
	xor $0x12, %eax
	lea 1(%rax), %eax
	lea 2(%rax), %eax
	and $0x7f, %eax
	ret
	.ifdef FRAMES
	.cfi_endproc
	.endif
	.size \name, . - \name
	.endm
	.text
	twin one
	twin two
	.globl _start
	.type _start, @function
_start:
	mov $5, %edi
	call *table(%rip)
	mov %eax, %ebx
	mov $6, %edi
	call *table+8(%rip)
	lea (%rax,%rbx), %edi
	mov table(%rip), %rax
	cmp table+8(%rip), %rax
	setne %al
	movzbl %al, %eax
	add %eax, %edi
	add zero(%rip), %edi
	mov $60, %eax
	syscall
	.size _start, . - _start
	.section .rodata
	.p2align 4
zero:	.zero 16
	.section .data, "aw"
	.p2align 3
table:	.quad one, two
	.section .note.GNU-stack, "", @progbits
END
# The frame description of the code at ADDRESS.
described() { readelf --debug-dump=frames "$1" 2>/dev/null | grep -c "FDE.*pc=0*$2\.\."; }
address() { nm "$1" | awk -v n="$2" '$3 == n { sub(/^0+/, "", $1); print $1 }'; }
for ld in bfd gold lld mold; do
	for frames in 0 1; do
		name=unwind/room/$ld.$frames
		in=$WORK/room/in out=$WORK/room/out
		define=()
		[ $frames = 0 ] || define=("-Wa,--defsym,FRAMES=1")
		if ! gcc -nostdlib -static -fuse-ld=$ld -Wl,--eh-frame-hdr,--emit-relocs "${define[@]}" \
			"$WORK/room/p.s" -o "$in" >"$WORK/log" 2>&1; then
			skip "$name" "does not link: $(first_line "$WORK/log")"
			continue
		fi
		if ! "$ICFOLD" -v --icf=safe "$in" -o "$out" 2>"$WORK/log"; then
			not_ok "$name" "$(first_line "$WORK/log")"
			continue
		fi
		"$in"
		want=$?
		"$out"
		got=$?
		bad=
		[ $want = $got ] || bad="ends with $got, not $want"
		[ -n "$bad" ] || "$ICFOLD" verify --icf=safe "$in" "$out" >"$WORK/verify" 2>&1 || bad="verify: $(tail -n 2 "$WORK/verify" | head -n 1)"
		if [ -z "$bad" ] && grep -q 'functions stay: no room' "$WORK/log"; then
			# Only if there is no room: .rodata is right behind.
			[ $ld.$frames = mold.1 ] || bad="no room?"
		elif [ -z "$bad" ]; then
			[ "$(nm -S "$out" | awk '$4 == "two" { print $2 + 0 }')" = 6 ] || bad="no thunk"
			[ -n "$bad" ] || [ "$(described "$out" "$(address "$out" two)")" = $frames ] || bad="the thunk has not as many descriptions as its function"
		fi
		[ -n "$bad" ] || bad=$(readelf --debug-dump=frames "$out" 2>&1 >/dev/null | head -n 1)
		if [ -z "$bad" ] && [ $frames = 1 ] && have eu-readelf; then bad=$(eu-readelf --debug-dump=frames "$out" 2>&1 >/dev/null | head -n 1); fi
		if [ -n "$bad" ]; then not_ok "$name" "$bad"; else ok "$name"; fi
	done
done
# gdb unwinds by the tables alone, from the thunk itself.
if [ $gdb = 1 ] && gcc -nostdlib -static -Wl,--eh-frame-hdr,--emit-relocs -Wa,--defsym,FRAMES=1 "$WORK/room/p.s" -o "$WORK/room/in" &&
	"$ICFOLD" -q --icf=safe "$WORK/room/in" -o "$WORK/room/out"; then
	timeout 400 gdb -nx -batch -ex 'set debuginfod enabled off' -ex "break *0x$(address "$WORK/room/out" two)" -ex run -ex bt "$WORK/room/out" \
		>"$WORK/log" 2>&1 </dev/null
	check unwind/room/gdb "$(tail -n 1 "$WORK/log")" grep -q '^#1 .* in _start' "$WORK/log"
fi

# Functions in several ranges, each with call sites of its own and all with the landing pads of one; folded whole, or where only
# the blocks with the calls are the same and the landing pads are not.  Cold functions have any address, so that their parts have
# different alignments.  PLACES=1: every compiler and linker.
mkdir -p "$WORK/ranges"
cat >"$WORK/ranges/r.cc" <<'END'
#include <cstdio>
#include <stdexcept>
#include <string>
struct Guard { int &n; explicit Guard(int &n) : n(n) {} ~Guard() { n++; } };
#ifndef FLAGS
#define FLAGS used
#endif
static volatile int sink;
__attribute__((noinline)) void may(int n)
{
	if (n == 1) throw std::runtime_error("one");
	if (n == 2) throw 7;
	if (n == 3) throw std::string("three");
	sink += n;
}
#define TWIN(NAME, CAUGHT) __attribute__((noinline, FLAGS)) int NAME(int n, int &gone) \
{ \
	Guard g(gone); \
	int sum = 0; \
	for (int i = 0; i < n; i++) \
		try { \
			may(i + n - 2); \
			sum += i; \
		} catch (const std::runtime_error &) { \
			sum += CAUGHT; \
			may(0); \
		} catch (int v) { \
			sum += v * 1000; \
			if (sum == 123456) may(2); \
		} \
	if (sum & 1) may(4); else may(5); \
	return sum; \
}
TWIN(alpha, 100) TWIN(beta, 100) TWIN(other, 200) TWIN(delta, 100)
int main()
{
	int gone = 0, (*f[])(int, int &) = { alpha, beta, other, delta };
	for (int k = 0; k < 16; k++)
		try {
			printf("%d: %d, %d\n", k, f[k & 3](k >> 2, gone), gone);
		} catch (const std::string &s) {
			printf("%d: %s, %d\n", k, s.c_str(), gone);
		}
}
END
printf '!_Z%s\n!!0 1 2\n!!3 4\n' 5alphaiRi 4betaiRi 5otheriRi 5deltaiRi >"$WORK/ranges/blocks"
ranges() { # COMPILER LINKER KIND RELOCS FLAG
	local name=unwind/ranges/$1.$2.$3.${5#-f} in=$WORK/ranges/in out=$WORK/ranges/out mode verify bad what i kind obj relocs=()
	name=${name%% *}
	name=${name%=/*}
	[[ $5 != *cold* ]] || name=$name.cold
	obj=$WORK/ranges/${name##*/}.o
	[ "$4" = 0 ] || { relocs=("-Wl,--emit-relocs") && name=$name.relocs; }
	# shellcheck disable=SC2046,SC2086
	if [ ! -f "$obj" ] && ! "$(compiler_of "$1" x.cc)" -O2 -g $(pic_flags "$3") $5 -c "$WORK/ranges/r.cc" -o "$obj" 2>"$WORK/log"; then
		skip "$name" "does not compile: $(first_line "$WORK/log")"
		return
	fi
	# shellcheck disable=SC2046
	if ! "$(compiler_of "$1" x.cc)" -fuse-ld="$2" $(link_flags "$3") "${relocs[@]}" "$obj" -o "$in" 2>"$WORK/log"; then
		skip "$name" "does not link: $(first_line "$WORK/log")"
		return
	fi
	"$in" >"$in.txt"
	for mode in --icf=safe --icf=all --in-place; do
		bad='' verify=
		[ $mode != --icf=all ] || verify=$mode
		"$ICFOLD" -q --allow-growth $mode "$in" -o "$out" 2>"$WORK/log" || bad=$(first_line "$WORK/log")
		[ -n "$bad" ] || "$ICFOLD" verify $verify "$in" "$out" >"$WORK/verify" 2>&1 || bad="verify: $(grep -m 1 expected "$WORK/verify")"
		[ -n "$bad" ] || { "$out" >"$out.txt" && cmp -s "$in.txt" "$out.txt"; } || bad="runs otherwise: $(diff "$in.txt" "$out.txt" | sed -n 2p)"
		[ -n "$bad" ] || [ "$(awk '$1 == "folded" && $2 == "functions" { print $3 }' "$WORK/verify")" -gt 2 ] || bad="too little is folded"
		for kind in fde-lsda lsda-byte; do
			[ "$mode.$4" = --icf=all.1 ] || break
			for i in 0 1 2; do
				[ -z "$bad" ] || break
				what=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$BUILD/tests/mutate" $kind $i 3 "$in" "$out" "$out.mutant" 2>/dev/null) || continue
				"$ICFOLD" verify $verify "$in" "$out.mutant" >/dev/null 2>&1 && bad="not noticed: $what"
			done
		done
		if [ -n "$bad" ]; then not_ok "$name/${mode#--}" "$bad"; else ok "$name/${mode#--}"; fi
	done
}
for cc in clang clang-14 clang-19; do
	have $cc || continue
	for ld in lld bfd gold mold; do
		for kind in pie nopie static; do
			for flag in -fbasic-block-sections=all "-fbasic-block-sections=list=$WORK/ranges/blocks" "-fsplit-machine-functions -mllvm -mfs-split-ehcode" \
				"-fbasic-block-sections=all -DFLAGS=cold"; do
				for relocs in 0 1; do
					case ${PLACES:-}.$cc.$ld.$kind.$relocs.$flag in
					1.* | .clang.lld.pie.1.*block* | .clang.bfd.nopie.1.*=all | .clang.bfd.pie.0.*=all | .clang-19.lld.pie.1.*=all | .clang-19.bfd.pie.1.*split* | .clang.bfd.pie.1.*cold | .clang-19.lld.pie.1.*cold) ranges $cc $ld $kind $relocs "$flag" ;;
					esac
				done
			done
		done
	done
done
# Small blocks in a row, so that numbers lead to their starts; an empty block, whose description lld names instead of the next one's.
for cc in clang clang-19; do
	if ! have $cc || ! have ld.lld; then continue; fi
	load_recipe hotcold
	if ! compile_fixture $cc "-O2 -fbasic-block-sections=all -funique-basic-block-section-names" pie "$WORK/blocks.$cc" >"$WORK/log" 2>&1 ||
		! link_fixture $cc lld pie "$WORK/blocks.$cc" "$WORK/blocks" >"$WORK/log" 2>&1; then
		skip "unwind/blocks/$cc" "does not build: $(first_line "$WORK/log")"
		continue
	fi
	for mode in --icf=safe --icf=all --in-place; do
		"$ICFOLD" -q --allow-growth --verify $mode "$WORK/blocks" -o "$WORK/blocks.out" 2>"$WORK/log"
		rc=$?
		check "unwind/blocks/$cc/${mode#--}" "$(first_line "$WORK/log")" test $rc = 0
	done
done
# --- numbers that look like addresses of the table -----------------------------------------------------------------------
# An address of data with a number added to it lies in .eh_frame, at the start of a record or not: it stays.  The judge is the program.
mkdir -p "$WORK/biased"
cat >"$WORK/biased/p.c" <<'X'
#include <stdio.h>
#define F(n) __attribute__((noinline)) int n(int x) { puts("hello"); return printf("%d\n", x * 31 + 7) + printf("%d\n", x * 31 + 5); }
F(a) F(b) F(c) F(d) F(e)
char tab[0x4000] = { 1 };
__attribute__((noinline)) long distance(void)
{
	char *p;
#ifdef __aarch64__
	__asm__("adrp %0, tab-" BIAS "\n\tadd %0, %0, :lo12:tab-" BIAS : "=r"(p));
#else
	__asm__("lea tab-" BIAS "(%%rip), %0" : "=r"(p));
#endif
	__asm__("" : "+r"(p));
	return tab - p;
}
int main(int k, char **v) { (void)v; printf("%lx\n", distance()); return a(k) + b(k) + c(k) + d(k) + e(k) == 0; }
X
biased() { # CC LINKER RELOCS
	local name=unwind/biased/$1/$2/$3 prog=$WORK/biased/p run="" at where tab frame
	local flags=(-O2 -fno-ipa-icf "-fuse-ld=$2" -fPIE -pie)
	[ "$3" = none ] || flags+=("-Wl,--emit-relocs")
	[ "$1" = gcc ] || run="qemu-aarch64 -L /usr/aarch64-linux-gnu"
	if ! $1 "${flags[@]}" -DBIAS='"0x2000"' "$WORK/biased/p.c" -o "$prog" 2>"$WORK/log"; then
		skip "$name" "does not build: $(first_line "$WORK/log")"
		return
	fi
	tab=0x$(nm "$prog" | awk '$3 == "tab" { print $1 }')
	frame=0x$(readelf -SW "$prog" | sed -n 's/.* \.eh_frame  *PROGBITS  *\([0-9a-f]*\) .*/\1/p')
	for where in $(readelf --debug-dump=frames "$prog" 2>/dev/null | awk '/ FDE / { print "0x" $1 }' | tail -n 4) 0xc4; do
		at=$(printf '"%#x"' $((tab - frame - where)))
		$1 "${flags[@]}" -DBIAS="$at" "$WORK/biased/p.c" -o "$prog" 2>"$WORK/log"
		"$ICFOLD" -q --allow-growth "$prog" -o "$prog.out" 2>"$WORK/log"
		check "$name/$where" "$(first_line "$WORK/log")" test "$($run "$prog.out")" = "$($run "$prog")"
		check "$name/$where/verify" "a right program is called different" "$ICFOLD" verify "$prog" "$prog.out"
	done
}
for cc in gcc aarch64-linux-gnu-gcc; do
	if ! have $cc || ! { [ $cc = gcc ] || have qemu-aarch64; }; then
		skip "unwind/biased/$cc" "no $cc, or nothing runs its programs"
		continue
	fi
	for ld in bfd gold lld; do
		for relocs in emit none; do
			case $cc.$relocs in gcc.* | *.emit) biased $cc $ld $relocs ;; esac
		done
	done
done
finish
