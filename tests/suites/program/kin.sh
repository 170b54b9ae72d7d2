#!/bin/bash
# kin.sh: what belongs to a function besides its bytes: its alignment, and the tables that name places in it (probes, places to
# patch).  The program does its work after folding, and verify says equal.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite kin

# aligned NAME COMPILER...: builds tags.c, whose functions are aligned to 16, 32 and 64 and carry a number in the low bits of their
# address, in all modes; it counts those that broke.
cat >tags.awk <<'END'
BEGIN {
	print "#include <stdint.h>\n#include <stdio.h>\nstatic volatile int sink;"
	for (i = 0; i < 60; i++) {
		align[i] = 16 * 2 ^ (i % 3)
		printf "__attribute__((noinline,aligned(%d))) int f%d(int x) {", align[i], i
		for (k = 0; k < 2 + i % 7 * 4; k++) printf " sink = x + %d;", k * 3 + i % 7
		printf " return x * %d; }\n", i % 7
		printf "__attribute__((noinline)) int g%d(int x) { sink += %d; return x - %d; }\n", i, i * (i % 7), i % 5
	}
	print "typedef int (*F)(int);\nstruct { F f; uintptr_t mask; F g; } t[] = {"
	for (i = 0; i < 60; i++) printf "{ f%d, %d, g%d },\n", i, align[i] - 1, i
	print "};\nint main(void) {\n\tint bad = 0, sum = 0;\n\tfor (int i = 0; i < 60; i++) {"
	print "\t\tvolatile uintptr_t v = (uintptr_t)t[i].f;\n\t\tbad += (v & t[i].mask) != 0;\n\t\tv |= (uintptr_t)i & t[i].mask;"
	print "\t\tif (((F)(v & ~t[i].mask)) == t[i].f) sum += t[i].f(t[i].g(i));\n\t}\n\tprintf(\"%d broke, sum %d\\n\", bad, sum);\n\treturn bad;\n}"
}
END
awk -f tags.awk >tags.c
aligned() {
	local name=kin/aligned/$1 m bad=''
	shift
	"$@" tags.c -o tags 2>log || { skip "$name" "does not build: $(first_line log)"; return; }
	./tags >want || { not_ok "$name" "it is wrong unfolded"; return; }
	for m in safe all; do
		"$ICFOLD" --require-compact --icf=$m tags -o tags.out 2>log || bad="$bad $m: $(first_line log);"
		./tags.out >have 2>&1 && cmp -s want have || bad="$bad $m: $(first_line have);"
		"$ICFOLD" verify --icf=$m tags tags.out >log 2>&1 || bad="$bad $m: verify: $(grep ': ' log | head -n 1 | cut -c 1-160);"
		[ "$("$ICFOLD" --icf=$m --stats=json tags -o tags.out 2>/dev/null | grep -o '"folded": *[0-9]*' | tr -dc 0-9)" -gt 20 ] || bad="$bad $m: nothing folds;"
	done
	check "$name" "$bad" test -z "$bad"
}
aligned gcc gcc -O2 -Wl,--emit-relocs
aligned gcc-Os gcc -Os -Wl,--emit-relocs
have clang && aligned clang clang -O1 -fuse-ld=lld -Wl,--emit-relocs
aligned norelocs gcc -O2

# Planted: the fold believed an alignment of 16 (the input's section says 64).  verify must notice.
gcc -O2 tags.c -Wl,--emit-relocs -o tags
lower() { # FILE FROM TO: the alignment of .text
	python3 - "$@" <<-'END'
		import struct, sys
		path, was, to = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		b = bytearray(open(path, 'rb').read())
		off, n, names = struct.unpack_from('<Q', b, 40)[0], *struct.unpack_from('<HH', b, 60)
		at = lambda i, k: struct.unpack_from('<Q', b, off + 64 * i + k)[0]
		for i in range(n):
		    name = at(names, 24) + struct.unpack_from('<I', b, off + 64 * i)[0]
		    if b[name:name + 6] == b'.text\0':
		        assert at(i, 48) == was, at(i, 48)
		        struct.pack_into('<Q', b, off + 64 * i + 48, to)
		open(path, 'wb').write(b)
	END
}
for m in safe all; do
	cp tags tags.low && lower tags.low 64 16 && "$ICFOLD" --icf=$m tags.low -o tags.out 2>log && lower tags.out 16 64
	"$ICFOLD" verify --icf=$m tags tags.out >log 2>&1
	rc=$?
	check "mutant/alignment/$m" "verify says $rc: $(tail -n 1 log)" test $rc = 1 -a "$(grep ': ' log | grep -vcE '^symbolized|^resolved|alignment: | more$|^sections: address: .text')" = 0
done

# clang's cross-DSO CFI finds a library's __cfi_check by the number of its page.
cat >lib.c <<'END'
#define COPY(n) static __attribute__((noinline)) int help##n(int x) { volatile int y = x; return y * 7 + 2; }
COPY(1) COPY(2) COPY(3) COPY(4)
int good(int x) { return help1(x) + help2(x) + help3(x) + help4(x); }
double wrong(double x) { return x * 2; }
END
cat >cfi.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
	void *lib = dlopen(argv[1], RTLD_NOW);
	int (*f)(int) = (int (*)(int))dlsym(lib, argc > 2 ? "wrong" : "good");
	printf("%d\n", f(4));
	return 0;
}
END
cfi() { # CLANG
	local name=kin/cross-dso-cfi/$1 m page bad=''
	local build="$1 -O1 -flto -fsanitize=cfi -fsanitize-cfi-cross-dso -fvisibility=default -fuse-ld=lld -Wl,--emit-relocs"
	if ! { have "$1" && $build -fPIC -shared lib.c -o lib.so && $build cfi.c -o cfi -ldl && ./cfi ./lib.so >want; } 2>log; then
		skip "$name" "does not build: $(first_line log)"
		return
	fi
	bash -c './cfi ./lib.so wrong; exit $?' >/dev/null 2>&1 && { skip "$name" "nothing is checked"; return; }
	for m in none safe all; do
		"$ICFOLD" --icf=$m lib.so -o lib.out 2>log || bad="$bad $m: $(first_line log);"
		page=$(nm lib.out | awk '$3 == "__cfi_check" { print $1 }')
		[ "${page: -3}" = 000 ] || bad="$bad $m: __cfi_check is at $page;"
		./cfi ./lib.out 2>&1 | cmp -s want - || bad="$bad $m: it does not run as before;"
		bash -c './cfi ./lib.out wrong; exit $?' >/dev/null 2>&1 && bad="$bad $m: a wrong call goes through;"
		[ $m = none ] || "$ICFOLD" verify --icf=$m lib.so lib.out >log 2>&1 || bad="$bad $m: verify: $(grep ': ' log | head -n 1 | cut -c 1-160);"
	done
	check "$name" "$bad" test -z "$bad"
}
cfi clang
have clang-19 && cfi clang-19

# Static probes: equal ones fold and leave one note; functions with others, or none, stay apart.
cat >probes.c <<'END'
#include <stdio.h>
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define SEMAPHORE(n) __extension__ unsigned short n##_semaphore __attribute__((unused, section(".probes")));
SEMAPHORE(app_one) SEMAPHORE(app_two) SEMAPHORE(other_one)
#define F(name, body) __attribute__((noinline)) int name(int x) { volatile int y = x; body; return y * 7 + x * 3 + 2; }
F(same1, STAP_PROBE1(app, one, x)) F(same2, STAP_PROBE1(app, one, x)) F(same3, STAP_PROBE1(app, one, x))
F(name, STAP_PROBE1(app, two, x)) F(provider, STAP_PROBE1(other, one, x)) F(argument, STAP_PROBE1(app, one, 7)) F(none, __asm__ volatile("nop"))
int main(void) {
	int s = 0;
	for (int i = 0; i < 3; i++) s += same1(i) + same2(i) + same3(i) + name(i) + provider(i) + argument(i) + none(i);
	printf("%d\n", s);
	return 0;
}
END
if ! gcc -O1 -fno-ipa-icf probes.c -Wl,--emit-relocs -o probes 2>log; then
	skip kin/probes "does not build: $(first_line log)"
else
	want=$(./probes)
	for m in safe all; do
		bad=''
		"$ICFOLD" --icf=$m --print-icf-sections probes -o probes.out >log 2>&1 || bad="$(first_line log)"
		[ "$(grep -o 'same[123]\|removing' log | sort | tr '\n' ' ')" = 'removing removing same1 same2 same3 ' ] || bad="$bad folded: $(tr '\n' ' ' <log)"
		[ "$(./probes.out)" = "$want" ] || bad="$bad it does not run as before"
		[ "$(readelf -nW probes.out | grep -c Provider:)" = 4 ] || bad="$bad $(readelf -nW probes.out | grep -c Provider:) notes"
		[ -z "$(readelf -nW probes.out | grep -o 'Location: [^,]*' | sort | uniq -d)" ] || bad="$bad two notes for one place"
		"$ICFOLD" verify --icf=$m probes probes.out >log 2>&1 || bad="$bad verify: $(grep ': ' log | head -n 1)"
		check "kin/probes/$m" "$bad" test -z "$bad"
		# Planted: the fold did not see the probes.
		sed 's/stapsdt\x00/stapsdX\x00/g' probes >probes.low && "$ICFOLD" --icf=$m probes.low -o probes.out 2>log && sed -i 's/stapsdX\x00/stapsdt\x00/g' probes.out
		"$ICFOLD" verify --icf=$m probes probes.out >log 2>&1
		rc=$?
		check "mutant/probes/$m" "verify says $rc: $(tail -n 1 log)" test $rc = 1 -a "$(grep -c 'probes: .*, folded into' log)" -gt 1
	done
	# Notes with relocations, and folding in place.
	for o in --emit-relocs --in-place; do
		"$ICFOLD" --icf=all $o probes -o probes.out 2>log && "$ICFOLD" verify --icf=all probes probes.out >log 2>&1 && [ "$(./probes.out)" = "$want" ]
		rc=$?
		check "kin/probes/$o" "$(grep ': ' log | head -n 1)" test $rc = 0
	done
fi

# A program has a list of places where it writes code: functions with such places stay apart.
cat >patched.c <<'END'
#include <stdio.h>
#define F(n) __attribute__((noinline)) int n(int x) { volatile int y = x; y += 3; y *= 5; return y * 7 + x * 3 + 2; }
F(one) F(two) F(three)
#define NOT __attribute__((noinline, patchable_function_entry(0)))
NOT int plain1(int x) { volatile int y = x; y *= 5; return y * 9 + x * 3 + 2; }
NOT int plain2(int x) { volatile int y = x; y *= 5; return y * 9 + x * 3 + 2; }
extern char *from[] __asm__("__start___patchable_function_entries"), *to[] __asm__("__stop___patchable_function_entries");
NOT int main(void) {
	char *last = 0;
	int n = 0;
	for (char **p = from; p < to; p++, n++) {
		if (*p == last || *p[0] != (char)0x90) printf("no room at %d\n", n);
		last = *p;
	}
	printf("%d %d\n", n, one(1) + two(2) + three(3) + plain1(4) + plain2(5));
	return 0;
}
END
for flag in -Wl,--emit-relocs -no-pie; do
	gcc -O1 -fno-ipa-icf -fpatchable-function-entry=8 $flag patched.c -o patched 2>log || { skip "kin/patched/$flag" "$(first_line log)"; continue; }
	want=$(./patched) bad=''
	for m in safe all; do
		"$ICFOLD" --icf=$m patched -o patched.out 2>log || bad="$bad $(first_line log)"
		[ "$(./patched.out)" = "$want" ] || bad="$bad $m: $(./patched.out | head -n 1)"
		"$ICFOLD" verify --icf=$m patched patched.out >log 2>&1 || bad="$bad $m: verify: $(grep ': ' log | head -n 1)"
	done
	check "kin/patched/$flag" "$bad" test -z "$bad"
	[ "$flag" = -no-pie ] && continue
	# Planted: the fold did not know the list.
	sed 's/__patchable_/__patchablX_/g' patched >patched.low && "$ICFOLD" patched.low -o patched.out 2>log && sed -i 's/__patchablX_/__patchable_/g' patched.out
	"$ICFOLD" verify patched patched.out >log 2>&1
	rc=$?
	check mutant/patched "verify says $rc: $(tail -n 1 log)" test $rc = 1 -a "$(grep -c ': place: ' log)" -gt 1
done

# A function that tells others where it is, by the address of a label in it: two equal ones tell different addresses.  GCC and clang
# keep the label where they do not optimise.
cat >label.c <<'END'
#include <stdio.h>
#define HERE ({ __label__ here; here: &&here; })
static void *seen[8];
static int n;
__attribute__((noinline)) int id_of(void *key)
{
	for (int i = 0; i < n; i++)
		if (seen[i] == key)
			return i;
	seen[n] = key;
	return n++;
}
__attribute__((noinline)) int lock_a(int v) { return id_of(HERE) * 10 + v % 7; }
__attribute__((noinline)) int lock_b(int v) { return id_of(HERE) * 10 + v % 7; }
__attribute__((noinline)) int same_a(int v) { return id_of(seen) * 10 + v % 9 + printf("%d\n", v) * v; }
__attribute__((noinline)) int same_b(int v) { return id_of(seen) * 10 + v % 9 + printf("%d\n", v) * v; }
int main(void)
{
	int a = lock_a(1), b = lock_b(1);
	printf("%d %d\n", a, b);
	return (same_a(2) + same_b(2)) & 1;
}
END
for cc in gcc clang; do
	have $cc || { skip "kin/label/$cc" "no $cc"; continue; }
	for ld in bfd gold lld; do
		for relocs in emit-relocs build-id; do
			name=kin/label/$cc/$ld/$relocs
			$cc -O0 -fPIE -pie "-fuse-ld=$ld" -Wl,--$relocs label.c -o label 2>log || { skip "$name" "does not build: $(first_line log)"; continue; }
			run_program want pie ./label
			"$ICFOLD" -q --allow-growth label -o label.out 2>log || { not_ok "$name" "$(first_line log)"; continue; }
			run_program have pie ./label.out
			check "$name" "$(diff want have | sed -n 2,3p | tr '\n' ' ')" cmp -s want have
			check "$name/folds" "nothing is folded" test "$("$ICFOLD" dump --groups label.out 2>/dev/null | grep -c folded)" -gt 0
			"$ICFOLD" verify label label.out >log 2>&1
			check "$name/verify" "$(grep ': ' log | head -n 1)" test $? = 0
			# What `all` makes of it is not what `safe` promises.
			"$ICFOLD" -q --allow-growth --icf=all label -o label.all 2>log
			"$ICFOLD" verify label label.all >log 2>&1
			check "mutant/label/$cc/$ld/$relocs" "verify calls it equal" grep -q 'address it tells others' log
		done
	done
done

x86_only kin/empty-frame
# A function without bytes has the address and the unwind description of another function.
cat >empty.s <<'END'
	.macro empty name
	.type \name, @function
\name:	.cfi_startproc
	.cfi_endproc
	.size \name, 0
	.endm
	.macro full name
	.type \name, @function
\name:	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset rbx, -16
	lea 7(%rdi,%rdi,2), %ebx
	imul $77, %ebx, %eax
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size \name, . - \name
	.p2align 4
	.endm
	.text
	.p2align 4
	full one
	empty nothing
	full two
	.globl main
	.type main, @function
main:	mov $1, %edi
	call one
	mov %eax, %edi
	call two
	and $0x7f, %eax
	ret
	.size main, . - main
	.section .note.GNU-stack, "", @progbits
END
for ld in bfd lld mold; do
	gcc -fuse-ld=$ld empty.s -Wl,--emit-relocs -o empty 2>log || { skip "kin/empty-frame/$ld" "does not link: $(first_line log)"; continue; }
	./empty
	want=$? bad=''
	"$ICFOLD" --stats=json empty -o empty.out >stats 2>&1
	grep -q '"folded": *1,' stats || bad=' not folded'
	./empty.out
	[ $? = $want ] || bad="$bad another result"
	"$ICFOLD" verify empty empty.out >log 2>&1 || bad="$bad verify: $(grep ': ' log | head -n 1)"
	check "kin/empty-frame/$ld" "$bad" test -z "$bad"
done
finish
