#!/bin/bash
# unused.sh: --gc-functions.  What nothing reaches is gone from code, symbols, unwind tables and debug information; what is used in
# ways that are hard to see stays; programs do their work, and verify proves it.  Then faults are planted in the marking: verify,
# which has roots of its own, has to see each.  UNUSED=full: every program in every mode, not in a third of them.  PARTS (ways fixtures
# odd objects gone options mutants forgotten) selects some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool unused
x86_only unused
make_work
always_fold
make_driver || { not_ok unused "cannot build the driver"; finish; }
cd "$WORK" || exit 1
# shellcheck source=tests/lib/unused.sh
. "$TESTS/lib/unused.sh"
PARTS=${PARTS:-ways fixtures odd objects gone options mutants forgotten}

dead='dead_marker dead_ring_a dead_ring_b dead_switch dead_is_called_by_dead dead_calls dead_takes_address dead_shares_table
	dead_neighbour dead_catches'
# ways NAME COMPILER LINKER TYPE FLAGS: the fixture made for this.
ways() {
	build "$1" unused "$2" "$3" "$4" "$5" || return
	part_wanted ways || return
	# shellcheck disable=SC2086
	judge "unused/ways/$1" "$4" "$WORK/$1" $dead
	"$ICFOLD" -q --gc-functions "$1" -o "$1.out"
	lost=$(names "$1" | grep '^live_' | comm -23 - <(names "$1.out") | grep -vx "$([ "$4" = so ] || echo live_library_init)" | tr '\n' ' ')
	check "unused/ways/$1/live" "gone: $lost" test -z "$lost"
}
ways pie gcc bfd pie "-O2 -g"
ways sections gcc gold pie "-O2 -g -ffunction-sections"
ways fixed gcc lld nopie "-Os -gdwarf-4"
ways static gcc bfd static "-O2 -g"
ways library gcc mold so "-O1 -g -fcf-protection=full"
ways clang clang lld pie "-O2 -g"
ways clang-static clang gold static "-O1 -gdwarf-5"

# Other fixtures, each as one kind of file.
for x in "addr gcc bfd pie" "asm gcc lld static" "c_plain clang mold so" "eh gcc gold nopie" "eh clang lld pie" "init gcc bfd so" \
	"lang gcc mold pie" "switches gcc lld nopie" "switches clang lld pie" "vtables gcc bfd pie" "virtual clang lld so" \
	"recur gcc mold staticpie" "hotcold gcc bfd pie" "unwind gcc bfd pie"; do
	set -- $x
	part_wanted fixtures || break
	[ -e "$FIXTURES/$1/recipe" ] || continue
	build "$1.$2" "$1" "$2" "$3" "$4" "-O2 -g" && judge "unused/fixtures/$1.$2.$3.$4" "$4" "$WORK/$1.$2"
done
# Landing pads of all blocks lie in units of their own.
cat >blocks.cc <<'C'
#include <cstdio>
#include <stdexcept>
__attribute__((noinline)) static int throws(int n) { if (n) throw std::runtime_error("thrown"); return n; }
__attribute__((noinline, used)) int dead_in_blocks(int n) { try { return throws(n); } catch (std::exception &e) { return 9; } }
__attribute__((noinline)) int live_in_blocks(int n) {
	try { return throws(n); } catch (const std::exception &e) { std::printf("%s\n", e.what()); return n + 5; }
}
int main(int argc, char **) { std::printf("%d\n", live_in_blocks(argc)); }
C
if ! have clang++ || ! clang++ -O2 -g -fbasic-block-sections=all -fuse-ld=lld blocks.cc -Wl,--emit-relocs -o blocks 2>log; then
	skip unused/blocks "does not build: $(first_line log)"
else
	for mode in none safe; do
		part_wanted fixtures || break
		"$ICFOLD" -q --gc-functions --icf=$mode blocks -o blocks.out 2>log
		check unused/blocks/$mode "$(first_line log)" cmp -s <(./blocks) <(./blocks.out 2>&1)
		"$ICFOLD" verify --gc-functions blocks blocks.out >log 2>&1
		check unused/blocks/$mode/verify "$(problems log)" grep -q '^equal' log
		check unused/blocks/$mode/dead "it is still there" bash -c '! nm blocks.out | grep -q dead_in_blocks'
	done
fi

# References that cannot be explained keep what they could mean.
for way in THIRD TABLES DISTANCES SUMS NUMBERS ODD_BYTES; do
	for cc in gcc clang; do
		have $cc && part_wanted odd || continue
		if ! $cc -O2 -g -D$way "$FIXTURES"/unused/odd.{c,S} -Wl,--emit-relocs -o odd 2>log; then
			skip unused/odd/$way/$cc "does not build: $(first_line log)"
			continue
		fi
		bad=''
		share none safe "safe --in-place"
		for mode in "${modes[@]}"; do
			# shellcheck disable=SC2086
			"$ICFOLD" -q --gc-functions --icf=$mode odd -o odd.out 2>log || bad="$bad $mode: $(first_line log);"
			"$ICFOLD" verify --gc-functions odd odd.out >log 2>&1 || bad="$bad $mode: verify: $(problems log);"
			cmp -s <(./odd) <(./odd.out 2>&1) || bad="$bad $mode: it prints something else;"
		done
		check unused/odd/$way/$cc "$bad" test -z "$bad"
	done
done

# --- virtual tables ---

all_classes() {
	local makers="makes_weak makes_local makes_strong makes_second makes_bottom" away="weak_table second_table virtual_base construction"
	# shellcheck disable=SC2086
	{
		classes sections g++ bfd -pie "-O2 -g -fPIE -fdata-sections" $makers $away local_table strong_table
		classes plain g++ bfd -pie "-O2 -g -fPIE" $makers $away
		classes relr g++ bfd -pie "-O2 -fPIE -Wl,-z,pack-relative-relocs" $makers $away
		classes gold g++ gold -pie "-O2 -g -fPIE" $makers $away
		classes lld g++ lld -pie "-O1 -g -fPIE -Wl,-z,pack-relative-relocs" $makers $away
		classes mold g++ mold -pie "-Os -fPIE" $makers
		classes fixed g++ bfd -no-pie "-O2 -g -fno-pie" $makers
		classes fixed-lld g++ lld -no-pie "-Os -g -fno-pie" $makers
		classes static g++ bfd -static "-O2" $makers second_table
		classes clang clang++ lld -pie "-O2 -g -fPIE" $makers second_table
	}
	# The dynamic relocations of lost words go, and .dynamic says so.
	relocs() { readelf -rW "$1" 2>/dev/null | grep -c R_X86_64_RELATIVE; }
	count() { readelf -dW "$1" | awk '/RELACOUNT/ { print $3 }'; }
	"$ICFOLD" -q --gc-functions classes.sections -o classes.out
	check unused/classes/relocs "$(relocs classes.sections) before, $(relocs classes.out) behind" test "$(relocs classes.out)" -lt "$(relocs classes.sections)"
	check unused/classes/relacount "$(count classes.out)" test "$(count classes.out)" = "$(relocs classes.out)"
}
if part_wanted objects; then all_classes; fi

# Ways to use a table that are hard to see, one in each program.
table_ways="BEFORE ANCHOR START NEIGHBOUR MERGED DELIMITED SECTION SIZE ALIAS THREAD ODD WORD DISTANCE CONSTANT GOT MIDDLE CHAIN"
# table NAME WAY FLAG...
table() {
	local name=$1 way=$2
	shift 2
	case $way in
	DELIMITED) set -- "$@" -DFROM=list_from -DTO=list_to ;;
	SECTION) set -- "$@" -DFROM=__start_tables -DTO=__stop_tables ;;
	esac
	gcc -O2 "-D$way" "$@" "$FIXTURES"/unused/tables.{c,S} -Wl,--emit-relocs -o "$name" 2>log && [ "$("./$name")" = 1001 ]
}
for way in $table_ways; do
	part_wanted objects || break
	bad='' built=0
	for flags in "-static" "-no-pie -fno-pie -fuse-ld=lld" "-pie -fPIE -fuse-ld=gold" "-pie -fPIE"; do
		# shellcheck disable=SC2086
		table "table.$way" $way $flags || continue
		built=$((built + 1))
		share none safe "safe --in-place" "safe --emit-relocs"
		for mode in "${modes[@]}"; do
			# shellcheck disable=SC2086
			"$ICFOLD" -q --gc-functions --allow-growth --icf=$mode "table.$way" -o table.out 2>log || bad="$bad $flags: $(first_line log);"
			[ "$(./table.out 2>&1)" = 1001 ] || bad="$bad $flags: it prints $(./table.out 2>&1);"
			"$ICFOLD" verify --gc-functions "table.$way" table.out >log 2>&1 || bad="$bad $flags: verify: $(problems log);"
			# What is near bytes that are not understood stays.
			[ $way = ODD ] || ! names table.out | grep -qx dead_uses_table || bad="$bad $flags: dead_uses_table is still there;"
		done
	done
	check "unused/tables/$way" "built $built times:$bad" test -z "$bad" -a $built -ge 2
done
# .tbss has the addresses of what lies behind it: a label there (bfd's __preinit_array_start) does not mean the tables.
behind_tbss() {
	cat >tbss.cc <<'C'
#include <cstdio>
#define ALONE extern "C" __attribute__((noinline, used, visibility("hidden")))
volatile int sink;
struct Weak { virtual int f(int n); };
ALONE int dead_switch(int n) {
	switch (n) {
	case 1: sink = 3; break;
	case 2: sink = 9;
	case 3: return sink;
	case 4: sink++;
	case 5: return sink * 3;
	case 6: sink = n;
	}
	return n + 41;
}
inline __attribute__((used)) int Weak::f(int n) { return dead_switch(n); }
ALONE Weak *dead_makes() { return new Weak; }
extern __attribute__((visibility("hidden"))) const char __preinit_array_start[];
thread_local int zeros[100];
int main() { const char *volatile p = __preinit_array_start; std::printf("%d\n", zeros[p == nullptr] == 0); }
C
	g++ -O2 tbss.cc -Wl,--emit-relocs -o tbss 2>log && "$ICFOLD" -q --gc-functions --allow-growth tbss -o tbss.out 2>>log
	"$ICFOLD" verify --gc-functions tbss tbss.out >>log 2>&1
	check unused/tables/tbss "$(problems log)" grep -q '^equal' log
	check unused/tables/tbss/gone "dead_switch is still there" bash -c '! nm tbss.out | grep -q dead_switch'
}
if part_wanted objects; then behind_tbss; fi
# Tables that other modules find by name: a plug-in, and a program that has a copy of a library's table.
exported() {
	cat >exports.cc <<'C'
#include <cstdio>
#include <dlfcn.h>
#ifdef LIBRARY
#define OWN
#else
#define OWN __attribute__((visibility("hidden"))) /* only the table is offered */
#endif
struct Offered { OWN virtual ~Offered(); OWN virtual int f(int n); };
extern "C" __attribute__((noinline, used, visibility("hidden"))) int live_offered(int n) { return n + 41; }
Offered::~Offered() {}
int Offered::f(int n) { return live_offered(n); }
#ifndef LIBRARY
int main() {
	long **table = (long **)dlsym(RTLD_DEFAULT, "_ZTV7Offered");
	int (*f)(void *, int) = table ? (int (*)(void *, int))table[4] : nullptr;
	std::printf("%d\n", f ? f(nullptr, 1) : -1);
}
#endif
C
	cat >copies.cc <<'C'
#include <cstdio>
struct Offered { virtual ~Offered(); virtual int f(int n); };
struct Mine : Offered { };
int main() { Offered *volatile o = new Mine; Offered *volatile p = new Offered; std::printf("%d %d\n", o->f(1), p->f(2)); }
C
	g++ -O2 -rdynamic exports.cc -Wl,--emit-relocs -o offering -ldl && "$ICFOLD" -q --gc-functions --allow-growth offering -o offering.out
	check unused/tables/exported "$(./offering.out)" test "$(./offering.out)" = 42
	"$ICFOLD" verify --gc-functions offering offering.out >log 2>&1
	check unused/tables/exported/verify "$(problems log)" grep -q '^equal' log
	g++ -O2 -shared -fPIC -DLIBRARY exports.cc -Wl,--emit-relocs -o libwhole.so && "$ICFOLD" -q --gc-functions --allow-growth libwhole.so -o libexports.so
	g++ -O2 -no-pie -fno-pie copies.cc -Wl,--emit-relocs libexports.so -Wl,-rpath,. -o copies && "$ICFOLD" -q --gc-functions --allow-growth copies -o copies.out
	check unused/tables/copied "$(./copies.out)" test "$(./copies.out)" = "42 43"
}
if part_wanted objects; then exported; fi
# Code reaches a table from a place that no object has: what other object files put before and behind it is not meant.  The table is
# hidden (global until the link, which puts such symbols behind those of the last file) or local.
files() {
	local ld=$1 scope=$2 n=files.$1.$2 x
	for x in a b; do
		printf '\t.text\n\t.type dead_%s, @function\ndead_%s: mov $1%d, %%eax\n\tret\n\t.size dead_%s, . - dead_%s\n' $x $x $((1 + (${#x} + 0x$x) % 7)) $x $x
		printf '\t.section .data.rel.ro, "aw"\n\t.p2align 3\n\t.type _ZTV1%s, @object\n_ZTV1%s: .quad 0, 0, dead_%s\n\t.size _ZTV1%s, . - _ZTV1%s\n' $x $x $x $x $x
	done >"$n.s"
	sed -n '1,/ - _ZTV1a$/p' "$n.s" >"$n.a.s"
	sed '1,/ - _ZTV1a$/d' "$n.s" >"$n.b.s"
	cat >"$n.live.s" <<-S
		.text
		.globl call_table
		.type call_table, @function
		call_table: lea .Lanchor(%rip), %rax
		jmp *_ZTV4live+16-.Lanchor(%rax)
		.size call_table, . - call_table
		.type live_by_table, @function
		live_by_table: lea 1000(%rdi), %rax
		ret
		.size live_by_table, . - live_by_table
		.section .data.rel.ro, "aw"
		.p2align 3
		.type other, @object
		other: .quad 5
		.size other, . - other
		.Lanchor: .quad 6
		.type middle, @object
		middle: .quad 7
		.size middle, . - middle
		$([ "$scope" = local ] || printf '.globl _ZTV4live\n.hidden _ZTV4live')
		.type _ZTV4live, @object
		_ZTV4live: .quad 0, 0, live_by_table
		.size _ZTV4live, . - _ZTV4live
		.type last, @object
		last: .quad 7
		.size last, . - last
	S
	echo '#include <stdio.h>
	long call_table(long); int main(void) { printf("%ld\n", call_table(1)); }' >files.c
	for x in a live b; do { echo "	.file \"$x.s\""; cat "$n.$x.s"; echo '	.section .note.GNU-stack,"",@progbits'; } >"$n.$x.S"; done
	gcc -O2 -fuse-ld="$ld" "$n.a.S" "$n.live.S" "$n.b.S" files.c -Wl,--emit-relocs -o "$n" 2>log || { skip "unused/$n" "$(first_line log)"; return; }
	"$ICFOLD" -q --gc-functions "$n" -o "$n.out"
	"$ICFOLD" verify --gc-functions "$n" "$n.out" >log 2>&1
	check "unused/$n" "$("./$n.out" 2>&1); $(problems log)" test "$("./$n.out" 2>&1)/$(tail -n 1 log)" = 1001/equal
	x=$(names "$n.out" | grep -c '^dead_')
	check "unused/$n/dead" "$x of 2 are still there" test "$x" = 0
}
if part_wanted objects; then
	files bfd local
	for ld in bfd gold lld; do files $ld hidden; done
fi

# A case in the cold part: only the table leads there.  And labels that delimit code.
cat >cases.S <<'S'
	.text
	.p2align 4
	.globl live_user
	.type live_user, @function
live_user:
	.cfi_startproc
	cmp $2, %rdi
	ja 1f
	lea table(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	mov $1, %eax
	ret
2:	mov $2, %eax
	ret
3:	mov $3, %eax
	ret
	.cfi_endproc
	.size live_user, . - live_user
	.section .rodata
	.p2align 2
table:	.long 2b - table
	.long .Lcold - table
	.long 3b - table
	.section .text.unlikely, "ax", @progbits
	.type live_user.cold, @function
live_user.cold:
	.cfi_startproc
	nop
.Lcold:	mov $77, %eax
	ret
	.cfi_endproc
	.size live_user.cold, . - live_user.cold
	.section .note.GNU-stack, "", @progbits
S
cat >labels.S <<'S'
	.text
	.p2align 4
	.globl hot_from
hot_from:
	.type live_part_a, @function
live_part_a:
	mov $40, %eax
	ret
	.size live_part_a, . - live_part_a
	.p2align 4
	.type live_part_b, @function
live_part_b:
	mov $2, %eax
	ret
	.size live_part_b, . - live_part_b
	.p2align 4
	.globl hot_to
hot_to:
	.type live_behind, @function
live_behind:
	ret
	.size live_behind, . - live_behind
	.section .note.GNU-stack, "", @progbits
S
cat >cases.c <<'C'
#include <stdio.h>
int live_user(long);
int main(int argc, char **argv) { (void)argv; printf("%d %d %d\n", live_user(argc - 1), live_user(argc), live_user(argc + 1)); }
C
cat >labels.c <<'C'
#include <stdio.h>
extern const char hot_from[], hot_to[];
int main(void) {
	int sum = 0;
	for (const char *volatile p = hot_from; p < hot_to; p += 16) sum += ((int (*)(void))p)();
	printf("%d\n", sum);
}
C
# The first label in padding, which then belongs to the function behind it: a jump over no-ops.
sed '/^hot_from:/a jmp live_part_a\n.p2align 4' labels.S >padded.S
sed 's/for (\(const char \*volatile p = hot_from;\)/\1 for (p += 16;/' labels.c >padded.c
# Labels that name code and not a part, although a function is in what they begin: an empty one in the padding, and one in the middle
# of what the frame description covers.  The code behind the first one is not understood.  What nothing reaches is gone.
cat >coded.S <<'S'
	.text
live_label:
	mov $30, %eax
	ret
	.byte 6, 6, 6
	.p2align 4
	.globl live_empty
	.type live_empty, @function
live_empty:
	jmp live_behind
	.p2align 4
	.type live_behind, @function
live_behind:
	mov $12, %eax
	ret
	.p2align 4
live_framed:
	.cfi_startproc
	mov $5, %ecx
	.type live_inside, @function
live_inside:
	mov $6, %eax
	ret
	.cfi_endproc
	.p2align 4
	.type dead_between, @function
dead_between:
	mov $4, %eax
	ret
	.size dead_between, . - dead_between
	.data
	.globl by_label, by_frame, live_label, live_framed
by_label: .quad live_label
by_frame: .quad live_framed
	.section .note.GNU-stack, "", @progbits
S
cat >coded.c <<'C'
#include <stdio.h>
extern int (*by_label)(void), (*by_frame)(void);
int main(void) { printf("%d\n", by_label() + by_frame()); }
C
for p in cases labels padded coded; do
	gcc -O2 $p.c $p.S -Wl,--emit-relocs -o $p 2>log && "$ICFOLD" -q --gc-functions $p -o $p.out 2>log
	check unused/$p "$(first_line log); $(./$p.out)" cmp -s <(./$p) <(./$p.out)
	"$ICFOLD" verify --gc-functions $p $p.out >log 2>&1
	check unused/$p/verify "$(problems log)" grep -q '^equal' log
done
lost=$(names coded.out | grep dead_ | tr '\n' ' ')
check unused/coded/gone "still there: $lost" test -z "$lost"
# A label at the end of a section, where the next one may begin, delimits nothing alone.  With another one in front of the section, the
# program may walk through the code.
cat >ends.c <<'C'
extern const char text_from[], text_to[];
__attribute__((noinline, used)) int dead_first(int a) { return a * 7 + (a >> 3); }
__attribute__((noinline, used)) int live(int a) { return a * 9 + (a >> 5); }
__attribute__((noinline, used, section(".more"))) int live_behind(int a) { return a * 13 + (a >> 4); }
__attribute__((noinline, used, section(".more"))) int dead_behind(int a) { return a * 11 + (a >> 2); }
void _start(void) {
	long s = live_behind(live((long)text_to & 1));
#ifdef WALK
	for (const volatile char *p = text_from; p < text_to; p++) s += *p;
#endif
	__asm__ volatile("syscall" : : "a"(60L), "D"(s & 127));
}
C
for side in outside end from; do
	inner='text_to = .;' outer='' walk=''
	[ $side != outside ] || inner='' outer='text_to = .;'
	[ $side != from ] || walk=-DWALK
	echo "ENTRY(_start) SECTIONS { . = 0x400000 + SIZEOF_HEADERS; .rodata : { *(.rodata*) } .eh_frame : { *(.eh_frame) }
		. = ALIGN(0x1000); text_from = .; .text : { *(.text*) . = ALIGN(16); $inner } $outer
		.more : { *(.more) } . = ALIGN(0x1000); .data : { *(.data*) } }" >ends.ld
	for ld in bfd gold lld; do
		have ld.$ld || { skip "unused/ends/$side/$ld" "no ld.$ld"; continue; }
		gcc -O2 -ffreestanding -fno-stack-protector -nostdlib -static -no-pie -fno-pic -fuse-ld=$ld $walk ends.c -Wl,-T,ends.ld \
			-Wl,--emit-relocs,--build-id=none -o ends 2>log || { skip "unused/ends/$side/$ld" "$(first_line log)"; continue; }
		"$ICFOLD" -q --gc-functions --allow-growth ends -o ends.out 2>log
		check "unused/ends/$side/$ld" "$(first_line log)" test "$(./ends; echo $?)" = "$(./ends.out; echo $?)"
		"$ICFOLD" verify --gc-functions ends ends.out >log 2>&1
		check "unused/ends/$side/$ld/verify" "$(problems log)" grep -q '^equal' log
		[ $side != end ] || check "unused/ends/$ld/gone" "$(names ends.out | tr '\n' ' ')" test -z "$(names ends.out | grep dead_)"
	done
done
# Jump tables that something else refers to: a word of data, a slot of the GOT, another function from the middle.  The functions whose
# tables they are have no other users.
cat >offered.S <<'S'
	.macro owner name
	.text
	.p2align 4
	.type live_\name, @function
live_\name:
	.cfi_startproc
	cmp $2, %rdi
	ja 1f
	lea table_\name(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	mov $1, %eax
	ret
2:	lea 2(%rsi), %eax
	ret
3:	lea 3(%rsi), %eax
	ret
4:	lea 4(%rsi), %eax
	ret
	.cfi_endproc
	.size live_\name, . - live_\name
	.section .rodata.\name, "a", @progbits
	.p2align 2
	.globl table_\name
	.hidden table_\name
table_\name:
	.long 2b - table_\name
	.long 3b - table_\name
	.long 4b - table_\name
	.endm
	owner word
	owner slot
	owner middle
	.text
	.globl live_jumper
	.type live_jumper, @function
live_jumper:
	.cfi_startproc
	lea 4+table_middle(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	lea -4(%rax,%rdx), %rax
	jmp *%rax
	.cfi_endproc
	.size live_jumper, . - live_jumper
	.section .note.GNU-stack, "", @progbits
S
cat >offered.c <<'C'
#include <stdio.h>
extern const int table_word[], table_slot[];
const int *volatile word = table_word;
int live_jumper(long, long);
__attribute__((noinline, used)) int dead_offered(int x) { return x * 5; }
static int jump(const int *t, long n) {
	int ret;
	__asm__ volatile("call *%1" : "=a"(ret) : "r"((const char *)t + t[n]), "S"(10L * n) : "rdx", "rcx", "rdi", "memory");
	return ret;
}
int main(int argc, char **argv) {
	const int *slot;
	(void)argv;
	__asm__("mov table_slot@GOTPCREL(%%rip), %0" : "=r"(slot));
	printf("%d %d %d\n", jump(word, argc), jump(slot, argc), live_jumper(argc, 5));
}
C
for flags in "-static -Wa,-mrelax-relocations=no" "-pie -fPIE"; do
	# shellcheck disable=SC2086
	gcc -O2 $flags offered.c offered.S -Wl,--emit-relocs -o offered 2>log && "$ICFOLD" -q --gc-functions --allow-growth offered -o offered.out 2>log
	check "unused/offered/${flags%% *}" "$(first_line log); $(./offered.out 2>&1)" test "$(./offered.out 2>&1)" = "$(./offered)" -a -n "$(./offered)"
	"$ICFOLD" verify --gc-functions offered offered.out >log 2>&1
	check "unused/offered/${flags%% *}/verify" "$(problems log)" grep -q '^equal' log
	check "unused/offered/${flags%% *}/dead" "it is still there" bash -c '! nm offered.out | grep -q dead_offered'
done
# GNU as states the length of its unit in one byte: what is not understood stays, and the rest would move away from it.
cat >narrow.S <<'S'
	.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	lea 2(%rdi), %eax
	.fill 12, 1, 0x90
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm
	.text
	function live_near
	function live_nearer
	.p2align 4
	.globl live_odd
	.type live_odd, @function
live_odd:
	.cfi_startproc
	lea 2(%rdi), %eax
	ret
	.fill 20, 1, 0x06
	.cfi_endproc
	.size live_odd, . - live_odd
	.section .note.GNU-stack, "", @progbits
S
cat >narrow.c <<'C'
#include <stdio.h>
int live_odd(int), live_near(int), live_nearer(int);
#define DEAD(n) __attribute__((noinline)) int dead_##n(int x) { printf("%d %d\n", x, n); printf("%d %d\n", x + 1, n); return x * n; }
DEAD(1) DEAD(2) DEAD(3) DEAD(4) DEAD(5) DEAD(6)
int main(int argc, char **argv) { (void)argv; printf("%d\n", live_odd(argc) + live_near(argc) + live_nearer(argc)); }
C
if gcc -O2 -g narrow.c narrow.S -Wl,--emit-relocs -o narrow 2>log && readelf --debug-dump=abbrev narrow | grep -q 'DW_AT_high_pc *DW_FORM_udata'; then
	"$ICFOLD" -q --gc-functions --allow-growth narrow -o narrow.out 2>log
	check unused/narrow/message "$(first_line log)" grep -q 'does not fit into its form.*--in-place.*--strip-debug' log
	for how in --in-place --strip-debug; do
		"$ICFOLD" -q --gc-functions --allow-growth $how narrow -o narrow.out 2>log && "$ICFOLD" verify --gc-functions narrow narrow.out >log 2>&1
		check unused/narrow/$how "$(first_line log)" cmp -s <(./narrow) <(./narrow.out)
		check unused/narrow/$how/verify "$(problems log)" grep -q '^equal' log
	done
else
	skip unused/narrow "GNU as writes another form"
fi
gcc -O2 -DODD_BYTES "$FIXTURES"/unused/odd.{c,S} -Wl,--emit-relocs -o bytes 2>log

in=pie
# --- really gone, seen by others ---

really_gone() {
	out=pie.gone
	"$ICFOLD" -q --gc-functions --print-gc-functions=list --map=map $in -o $out 2>log || not_ok unused/gone "$(first_line log)"
	# Other names of what is listed are gone, too.
	check unused/list "$(tail -n 1 list)" test -z "$(comm -13 <(comm -23 <(names $in) <(names $out)) <(sed -n 's/^removing unused section //p' list | sort -u))"
	check unused/list/names "$(wc -l <list) lines" grep -qx 'removing unused section dead_calls' list
	marker=$'!FUNDEAD'
	check unused/bytes "they are in the output" bash -c 'grep -aq "$1" "$2" && ! grep -aq "$1" "$3"' - "$marker" $in $out
	strip -o $out.bare $out
	check unused/stripped "it prints something else" cmp -s <(./$in) <(./$out.bare)
	lost=$(comm -23 <(covered_functions $in) <(covered_functions $out) | grep -v dead_ | grep '^live' | tr '\n' ' ')
	check unused/unwind "no unwinding rules: $lost" test -z "$(readelf --debug-dump=frames $out 2>/dev/null | grep -c 'pc=0000000000000000\.\.0000000000000[1-9]' | grep -vx 0)"
	if have gdb; then
		gdb -nx -batch -ex 'break dead_calls' -ex 'break live_by_alias' -ex 'info line dead_switch' $out >gdb.log 2>&1
		check unused/gdb/dead "$(grep dead_calls gdb.log | head -n 1)" grep -q 'Function "dead_calls" not defined' gdb.log
		check unused/gdb/live "$(grep live_by_alias gdb.log | head -n 1)" grep -q '^Breakpoint 1 at .*main.c' gdb.log
		gdb -nx -batch -ex 'break live_by_alias' -ex run -ex bt $out >gdb.log 2>&1
		check unused/gdb/stack "$(tail -n 1 gdb.log)" grep -q '#1 .* in main (argc=1' gdb.log
	else
		skip unused/gdb "no gdb"
	fi
	for tool in llvm-symbolizer-19 llvm-symbolizer addr2line eu-addr2line; do
		have $tool || { skip unused/$tool "no $tool"; continue; }
		# Every fourth byte of the code.
		readelf -SW $out | sed 's/^ *\[ *[0-9]*\]//' | awk '$1 == ".text" { print $3, $5 }' | {
			read -r start size
			for ((a = 16#$start; a < 16#$start + 16#$size; a += 4)); do printf '0x%x\n' $a; done
		} >places
		case $tool in
		llvm*) $tool --obj=$out -f <places >named 2>/dev/null ;;
		*) $tool -f -e $out <places >named 2>/dev/null ;;
		esac
		check unused/$tool "it names $(grep -m1 dead_ named)" bash -c 'grep -q live_ named && ! grep -q dead_ named'
	done
	"$ICFOLD" dump --removed $out >dumped
	check unused/dump "$(first_line dumped)" grep -q ' dead_calls$' dumped
	"$ICFOLD" dump --removed --json $out | jq '.removed | map(.names[0]) | index("dead_calls")' >dumped
	check unused/dump/json "no valid JSON with it: $(first_line dumped)" grep -q '^[0-9]' dumped
	check unused/refused "it calls the files equal" bash -c '! "$1" verify "$2" "$3" >log && grep -q "verify --gc-functions" log' - "$ICFOLD" $in $out

}
if part_wanted gone; then really_gone; fi

# --- options ---

# kept NAME WANTED OPTION...: exactly the dead functions WANTED (an extended regular expression) are in the output.
kept() {
	local name=$1 want=$2 have
	shift 2
	"$ICFOLD" -q --gc-functions "$@" $in -o kept 2>log || { not_ok "unused/keep/$name" "$(first_line log)"; return; }
	have=$(names kept | grep '^dead_' | tr '\n' ' ')
	check "unused/keep/$name" "kept: $have" test "$have" = "$want"
}
options() {
	kept none ''
	kept name 'dead_marker ' --keep=dead_marker
	kept reached 'dead_is_called_by_dead dead_switch ' --keep=dead_is_called_by_dead
	kept pattern 'dead_ring_a dead_ring_b ' '--keep=dead_ring*'
	printf '# two\n dead_marker \n\ndead_neigh*\n' >file
	kept file 'dead_marker dead_neighbour ' --keep-file=file
	check unused/keep/unknown "no such message" bash -c '! "$1" --gc-functions --keep=nobody pie -o kept 2>log && grep -q "no function is named nobody" log' - "$ICFOLD"
	"$ICFOLD" $in -o off1
	"$ICFOLD" --keep='dead_*' --print-gc-functions $in -o off2 >printed
	check unused/off "without --gc-functions other options change the output" cmp -s off1 off2
	check unused/off/print "something is printed: $(first_line printed)" test ! -s printed
	"$ICFOLD" --gc-functions --threads=1 $in -o one && "$ICFOLD" --gc-functions --threads=7 $in -o seven
	check unused/threads "other bytes with more threads" cmp -s one seven
	"$ICFOLD" --gc-functions --verify $in -o checked 2>log
	check unused/verified "$(first_line log)" cmp -s one checked
	# A program whose plug-ins find its functions by name.
	cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int host_offers(int x) { return x * 3; }
__attribute__((visibility("hidden"), used, noinline)) int dead_inside(int x) { return x * 5; }
int main(void) {
	void *p = dlopen("./guest.so", RTLD_NOW);
	int (*f)(int) = p ? (int (*)(int))dlsym(p, "guest") : 0;
	printf("%d\n", f ? f(7) : -1);
}
C
	cat >guest.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
int guest(int x) { int (*f)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "host_offers"); return f ? f(x) : -2; }
C
	if have aarch64-linux-gnu-gcc && aarch64-linux-gnu-gcc -O2 host.c -o arm 2>log; then
		"$ICFOLD" --gc-functions arm -o arm.out 2>log
		check unused/aarch64 "$(first_line log)" grep -q 'removes nothing: on AArch64' log
	fi
	# Separate debug files.
	objcopy --only-keep-debug $in split.debug && strip -g -o split $in && objcopy --add-gnu-debuglink=split.debug split
	if "$ICFOLD" --gc-functions split -o split.out --debug-file=split.debug --debug-output=split.out.debug 2>log; then
		"$ICFOLD" verify --gc-functions --debug-file=split.debug --debug-output=split.out.debug split split.out >log 2>&1
		check unused/split "$(problems log)" grep -q '^equal' log
	else
		not_ok unused/split "$(first_line log)"
	fi
	gcc -O2 -shared -fPIC guest.c -o guest.so && gcc -O2 -g -rdynamic host.c -Wl,--emit-relocs -o host -ldl && "$ICFOLD" -q --gc-functions host -o host.out
	check unused/plugin "$(./host.out)" test "$(./host.out)" = 21
	if have llvm-dwarfdump-19; then check unused/plugin/llvm-dwarfdump "it finds errors" bash -c "llvm-dwarfdump-19 --verify host.out >log"; fi
	check unused/plugin/dead "it is still there" bash -c '! nm host.out | grep -q dead_inside'
}
if part_wanted options; then options; fi

# --- mutants of an output ---

# Verify did not see $kind.  It counts if it is seen in an output from which nothing was removed.
unseen() {
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" $place 2 $in plain mutant >said 2>&1 || return
	"$ICFOLD" verify $of mutant >log 2>&1 || survived="$survived $kind"
}

MUTATE=${MUTATE:-$BUILD/tests/mutate}
if ! part_wanted mutants; then
	:
elif [ -x "$MUTATE" ]; then
	"$ICFOLD" --gc-functions $in -o good
	"$ICFOLD" $in -o plain
	n=0 survived=''
	for kind in $("$MUTATE" --list); do
		for place in 0 1; do
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" $place 2 $in good mutant >said 2>&1 || continue
			of=$in
			[ ! -e mutant.in ] || of=mutant.in
			timeout 400 "$ICFOLD" verify --gc-functions $of mutant >log 2>&1
			[ $? = 1 ] || unseen
			n=$((n + 1))
			rm -f mutant mutant.in
		done
	done
	check unused/mutants "survived:$survived" test -z "$survived" -a $n -gt 150
else
	skip unused/mutants "no program at $MUTATE"
fi

# Slots of virtual tables, and words of lost ones (EVERY=1: all).
slot_mutants() {
	local type made
	for type in "-pie -fPIE" "-no-pie -fno-pie"; do
		# shellcheck disable=SC2086
		g++ -O2 $type "$FIXTURES/unused/classes.cc" -Wl,--emit-relocs -o slots 2>log &&
			"$ICFOLD" -q --gc-functions --allow-growth --icf=none slots -o slots.out 2>log || { not_ok "unused/slots/${type%% *}" "$(first_line log)"; continue; }
		made=$(python3 "$TESTS/mutate/slots.py" "$ICFOLD" slots slots.out slots.mutant "${EVERY:-7}" 2>log)
		check "unused/slots/${type%% *}" "tried, survived: $made $(first_line log)" test "${made:-0}" -ge 5
	done
}
if part_wanted mutants; then slot_mutants; fi

# --- faults in the marking ---

part_wanted forgotten || finish

cd "$ROOT" || exit 1
. "$TESTS/lib/plant.sh"
# forgotten NAME PROGRAM SED [FILE]: the marking without a rule.
forgotten() { forget "unused/forgotten/$1" "$2" "icf/fold/${4:-unused}" "$3" 'removed code that nothing reaches' --allow-growth; }
forgotten words fixed 's/for (unsigned k = leads_to(prog, d, to); k--;)/for (unsigned k = 0; k--;)/'
forgotten entry pie 's/if (prog->img->ehdr.e_entry)/if (0)/'
forgotten exports library 's/^\t\t\tmark_address(m, it.sym.st_value);/;/'
forgotten dynamic library 's/if (elfrw_dynamic_is_code(img->arch, d.d_tag))/if (0)/'
forgotten personality pie 's/mark_address(m, prog->cfi.cie.data\[i\].personality);/;/'
forgotten probes pie 's/mark_address(m, prog->probe.data\[i\].pc);/;/'
forgotten delimited pie 's/if (e->named)/if (0)/; s/^\tmark_marked_parts(m);/;/'
forgotten branches pie 's/^\t\tmark(m, ref\[r\].unit);/\t\tif (ref[r].kind != ICF_REF_BRANCH) mark(m, ref[r].unit);/'
forgotten addresses pie 's/^\t\tmark(m, ref\[r\].unit);/\t\tif (ref[r].kind == ICF_REF_BRANCH) mark(m, ref[r].unit);/'
forgotten pads blocks 's/^\t\tmark(m, pad\[k\].unit);/;/'
forgotten entries cases 's/mark(m, m->target\[k\]);/;/'
forgotten offered-tables offered 's/ || m->offered\[d->table\]//'
forgotten pinned bytes 's/if (u->flags & ICF_UNIT_PINNED)/if (0)/'
forgotten parts labels 's/^\tmark_marked_parts(m);/;/'
forgotten parts-padded padded 's/^\tmark_marked_parts(m);/;/'
# Control that comes back from a last call.
# shellcheck source=tests/lib/fool.sh
. "$TESTS/lib/fool.sh"
mkdir -p "$WORK/fool"
if build_fool gcc "$FOOL/code/runs_on.c" "$WORK/fool" "$WORK/fool/bare" -O2 2>"$WORK/log" &&
	gcc -pie "$WORK"/fool/{before,x,after}.o -Wl,--emit-relocs -o "$WORK/fool/runs_on" 2>"$WORK/log"; then
	for how in none safe all "safe --in-place"; do
		# shellcheck disable=SC2086
		"$ICFOLD" -q --gc-functions --allow-growth --icf=$how "$WORK/fool/runs_on" -o "$WORK/fool/out" 2>"$WORK/log"
		check "unused/runs-on/${how// }" "$("$WORK/fool/out" 2>&1 | tail -n 2 | tr '\n' ' ')" cmp -s <("$WORK/fool/runs_on") <("$WORK/fool/out")
	done
	for from in bare runs_on; do
		forget "unused/forgotten/comes-back-$from" fool/$from icf/refs/glue 's/ || comes_back(prog, i, covered)//' 'falling through' --icf=all --allow-growth
	done
else
	not_ok unused/runs-on "$(first_line "$WORK/log")"
fi
# The same for the rules of objects.
object() {
	(cd "$WORK" && { [ -x "table.$2" ] || table "table.$2" "$2" -pie -fPIE; })
	forgotten "table-$1" "table.$2" "$3" "${4:-unused/object}"
}
object arrays BEFORE 's/^\tfind_arrays(ret);/;/'
object anchors ANCHOR 's/^\t\tuse_around(o, va);/;/'
object targets NEIGHBOUR 's/^\ttouch(o, va);$/;/'
object overlaps MERGED 's/^\t\tuse_around(o, va);/;/; s/if (n \&\& x.start < end) {/if (0) {/'
object labels DELIMITED 's/^\t\tuse_section(o, sym->st_shndx);/;/'
object sections SECTION 's/^\t\tuse_around(o, va);/;/; s/^\t\tuse_section(o, sym->st_shndx);/;/; s/(strncmp(s->name, "\.data", 5) == 0 || .*);/1;/'
object words WORD 's/^\t\telse if (!code \&\&/\t\telse if (0 \&\&/; s/if (!icf_objects_hold(o, d->place, 1))/if (0)/'
object constants CONSTANT 's/^\t\tuse_around(o, va);/;/'
object distances DISTANCE 's/^\t\tuse_section(o, sym.st_shndx);/;/'
object middles MIDDLE 's/if (i \&\& va <= o->v.data\[i - 1\].end)/if (i \&\& va == o->v.data[i - 1].start)/'
object chains CHAIN 's/^\ticf_objects_of_object(&m->object, k);/;/' unused
object users MIDDLE 's/^\t\t\t\ticf_objects_of_unit(&m->object, m->queue\[k\]);/;/' unused
object slots MIDDLE 's/for (unsigned n = leads_to(prog, &prog->dataref.data\[i\], to); n--;)/for (unsigned n = 0; n--;)/; s/^\t\tif (!prog->dynreloc.data\[r\].relr)/\t\tif (0)/' unused
forgotten table-exports offering 's/^\t\ttouch(o, it.sym.st_value);/;/' unused/object
finish
