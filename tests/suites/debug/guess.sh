#!/bin/bash
# guess.sh: calls that a comparison of addresses chose, `if (slot == &A::m) A::m's body; else the call`.  The program asks itself whether
# the comparison is true, and prints the return addresses of its own stack.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite guess g++ python3
always_fold

cat >shape.h <<'EOF2'
struct A { virtual int m(int n); virtual ~A() {} };
void check(int);
int f(A *o, int n);
A *make_b();
bool matches(A *o);
int promoted(int (*p)(int), int n);
EOF2
cat >a.cc <<'EOF2'
#include "shape.h"
#include <cstdio>
#include <dlfcn.h>
#include <execinfo.h>
volatile int sink;
__attribute__((noinline)) void check(int n)
{
	void *stack[8];
	Dl_info at;
	sink += n;
	if (n != 7)
		return;
	for (int k = 1, depth = backtrace(stack, 8); k < depth && k < 4; k++)
		if (dladdr(stack[k], &at) && dladdr((void *)check, &at))
			printf("%lx\n", (long)stack[k] - (PIC ? (long)at.dli_fbase : 0));
}
int A::m(int n) { check(n); sink += 3; return n + 1; }
/* GCC compares the slot with A::m, and has A::m's body here. */
__attribute__((noinline)) int f(A *o, int n) { int r = o->m(n); sink += r; return r; }
/* What GCC compares: the address that code takes, and what the slot holds. */
__attribute__((noinline)) bool matches(A *o) { return (void *)(o->*(&A::m)) == (void *)(&A::m); }
__attribute__((noinline)) int one(int n) { check(n); return n + 9; }
__attribute__((noinline)) int two(int n) { check(n); return n + 9; }
/* What compilers make of `p(n)` with a profile. */
__attribute__((noinline)) int promoted(int (*p)(int), int n)
{
	int r = p == one ? one(n) : p(n);
	sink += r;
	return r;
}
int main(int argc, char **argv)
{
	A a, *b = make_b();
	if (argc > 1)
		return !printf("%d %d\n", matches(&a), matches(b));
	if (argv[0][0])
		promoted(two, 7);
	return (f(&a, 1) + f(b, 7)) * 0;
}
EOF2
cat >b.cc <<'EOF2'
#include "shape.h"
extern volatile int sink;
struct B : A { int m(int n) override; };
int B::m(int n) { check(n); sink += 3; return n + 1; }
A *make_b() { return new B; }
EOF2

# judge NAME FILE MODE HOW...: folds FILE into FILE.MODE; what both stacks and the program itself say.
judge() {
	local name=$1 out=$2.$3 mode=$3 want
	"$ICFOLD" -q "${@:4}" "$2" -o "$out" >fold.err 2>&1 || { not_ok "$name" "$(first_line fold.err)"; return; }
	if "$ICFOLD" verify --icf="${mode/in-place/safe}" "$2" "$out" >verdict 2>&1; then ok "$name/verify"; else not_ok "$name/verify" "$(tail -n 2 verdict | tr '\n' ' ')"; fi
	./"$out" >stack && "$ICFOLD" symbolize --stack -f -i -e "$out" <stack >names 2>&1
	want=$([ "$mode" != safe ] && echo "one(int)|one of: one(int), two(int)|promoted(int (*)(int), int)" || echo "two(int)|promoted(int (*)(int), int)")
	check "$name/promoted" "got $(tr '\n' '|' <names)" [ "$(grep -E '^(one\(|two\(|one of: one|promoted)' names | paste -sd'|')" = "$want" ]
	# Where addresses merge, the body of A::m in f stands for B::m, too.
	[ "$mode" = all ] && return
	check "$name/inlined" "got $(tr '\n' '|' <names)" [ "$(grep -E '^(A::m|B::m|f\()' names | paste -sd'|')" = "B::m(int)|f(A*, int)" ]
	check "$name/matches" "got $(./"$out" x)" [ "$(./"$out" x)" = "1 0" ]
}

# mutate NAME IN OUT: the slot of A::m leads to the shared code, as that of B::m does.
mutate() {
	python3 - "$3" "0x$(nm "$3" | sed -n 's/ . _ZTV1A$//p')" "0x$(nm "$3" | sed -n 's/ . _ZTV1B$//p')" >mutant <<-'EOF2' || { not_ok "$1" "cannot be made"; return; }
		import struct, sys
		data = bytearray(open(sys.argv[1], "rb").read())
		phoff, n = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
		def at(va):
		    for k in range(n):
		        kind, _, off, start, _, size = struct.unpack_from("<IIQQQQ", data, phoff + 56 * k)
		        if kind == 1 and start <= va < start + size:
		            return off + va - start
		a, b = (at(int(x, 16) + 16) for x in sys.argv[2:])
		if data[a:a + 8] == data[b:b + 8]:
		    sys.exit(1)
		data[a:a + 8] = data[b:b + 8]
		sys.stdout.buffer.write(data)
	EOF2
	"$ICFOLD" verify "$2" mutant >verdict 2>&1
	if grep -q '^code addresses in data: .*_ZN1A1mEi' verdict; then ok "$1"; else not_ok "$1" "$(tail -n 2 verdict | tr '\n' ' ')"; fi
}

for ld in bfd gold lld mold; do
	for pic in 0 1; do
		n=$ld-$pic
		have ld.$ld || { skip "guess/$n" "no ld.$ld"; continue; }
		pie=(-fno-pie -no-pie)
		[ $pic = 0 ] || pie=(-fPIE -pie)
		if ! g++ -O2 -g -fno-ipa-icf -Wno-pmf-conversions -DPIC=$pic "${pie[@]}" -fuse-ld=$ld a.cc b.cc -o "$n" -Wl,--emit-relocs 2>build.err; then
			not_ok "guess/$n" "does not build: $(first_line build.err)"
			continue
		fi
		judge "guess/$n/safe" "$n" safe --icf=safe
		judge "guess/$n/in-place" "$n" in-place --in-place
		judge "guess/$n/all" "$n" all --icf=all
		[ $pic = 0 ] && mutate "guess/$n/mutant" "$n" "$n.safe"
	done
done
finish
