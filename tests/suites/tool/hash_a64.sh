#!/bin/bash
# hash_a64.sh: the hashes of functions (icfold-format(5), HASHES) of AArch64 programs: the same for all linkers, addresses and strips,
# where linkers turn loads from slots into addresses or not; equal where --icf=all has one class.  hash.sh has what is the same for
# all machines.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite hash_a64
have python3 || { skip hash-a64 "python3 is not installed"; finish; }

cat >a.cc <<'END'
#include <cstdio>
#include <cstring>
#include <stdexcept>
#define OWN __attribute__((noipa))
extern long counter, other;
static const int table[2][8] = { { 1, 2, 3, 4, 5, 6, 7, 8 }, { 1, 2, 3, 4, 5, 6, 7, 9 } };
OWN void plus_one() { counter++; }
OWN void other_one() { other++; }
OWN void again_one() { counter++; }
OWN const int *first() { return table[0]; }
OWN const int *second() { return table[1]; }
OWN const char *hello() { return "hello world"; }
OWN const char *world() { return "world"; }
OWN double third(double x) { return x / 3.7; }
OWN double fifth(double x) { return x / 5.7; }
OWN double third_too(double x) { return x / 3.7; }
OWN int even(unsigned n);
OWN int odd(unsigned n) { counter++; return n ? even(n - 1) : 0; }
OWN int even(unsigned n) { counter++; return n ? odd(n - 1) : 1; }
OWN int even2(unsigned n);
OWN int odd2(unsigned n) { counter++; return n ? even2(n - 1) : 0; }
OWN int even2(unsigned n) { counter++; return n ? odd2(n - 1) : 1; }
OWN int dispatch(int n) {
	switch (n) {
	case 0: return puts("nothing");
	case 1: return puts("one");
	case 2: return printf("%d\n", n);
	case 3: return putchar('3');
	case 4: plus_one(); return 4;
	case 5: return even(5);
	default: return fputs("more\n", stdout);
	}
}
struct Shape { virtual ~Shape() {} virtual int sides() const { return 0; } };
struct Square : Shape { int sides() const override { return 4; } };
struct Triangle : Shape { int sides() const override { return 3; } };
OWN Shape *square() { return new Square; }
OWN Shape *triangle() { return new Triangle; }
OWN int catches(const char *s) { try { return puts(s); } catch (const std::invalid_argument &) { return -1; } }
OWN int catches_other(const char *s) { try { return puts(s); } catch (const std::length_error &) { return -1; } }
OWN int catches_again(const char *s) { try { return puts(s); } catch (const std::invalid_argument &) { return -1; } }
template <class T> OWN T sum(const T *p, int n) { T s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
// The same as a load and as an address: the linkers decide.
extern const char in_slot[] __attribute__((weak));
OWN const char *slot() { return in_slot; }
OWN FILE *imported() { return stderr; }
extern "C" long far(long), bit(long);
// A page that is used on several paths.
static unsigned char seen[256];
OWN int scan(const unsigned char *p) {
	while (seen[*p] != 9) {
		if (*p == '$' && p[1] == 10) p += 2;
		else if (*p == 0) return seen[p[1]];
		p++;
	}
	seen[*p]++;
	return 1;
}
int main(int argc, char **argv) {
	plus_one(); other_one(); again_one();
	long l[2] = { 1, 2 }; unsigned long u[2] = { 3, 4 };
	dispatch(argc);
	Shape *s = square(), *t = triangle();
	printf("%d %d %d %ld\n", s->sides(), t->sides(), catches(argv[0]) + catches_other("8") + catches_again("9"), sum(l, 2) + (long)sum(u, 2));
	return (first()[0] + second()[0] + (int)third(2) + (int)fifth(4) + (int)third_too(3) + odd(3) + odd2(3) + slot()[0] +
		(imported() != NULL) + (int)far(1) + scan((unsigned char *)argv[0]) + (int)bit(2) + (int)strlen(hello()) + (int)strlen(world())) & 1;
}
END
cat >b.cc <<'END'
long counter = 1, other = 2;
extern const char in_slot[] = "what is in the slot";
// A branch of 14 bits, one of 19, and a literal behind the code.
asm(".text\n.globl far\n.type far, @function\nfar: .cfi_startproc\ntbz x0, #3, 1f\nb bit\n1: mov x0, #7\nret\n.cfi_endproc\n.size far, .-far\n"
    ".globl bit\n.type bit, @function\nbit: .cfi_startproc\ncbz x0, 2f\nadd x0, x0, #5\n2: ret\n.cfi_endproc\n.size bit, .-bit");
END
for n in a b; do g++ -O2 -fPIE -ffunction-sections -c $n.cc -o $n.o || { not_ok hash-a64-build "does not compile"; finish; }; done

names=()
# link NAME LINKER OPTION...: and its rows, stripped and not; the names of its functions.
link() {
	local out=$1 ld=$2
	shift 2
	# A workaround for an erratum rewrites what is at the end of a page.
	g++ -mno-fix-cortex-a53-843419 a.o b.o -o "$out" "-fuse-ld=$ld" "$@" 2>link.err || return
	strip -o "$out.s" "$out"
	nm "$out" >"$out.nm"
	"$ICFOLD" audit -q --rows="$out.jsonl" "$out" 2>rows.err || not_ok "hash-a64-$out" "$(first_line rows.err)"
	"$ICFOLD" audit -q --rows="$out.s.jsonl" "$out.s" 2>rows.err || not_ok "hash-a64-$out.s" "$(first_line rows.err)"
	names+=("$out")
}
link bfd bfd -pie
link bfd-far bfd -no-pie -Wl,-Ttext-segment=0x70000000
link bfd-relocs bfd -pie -Wl,--emit-relocs
link gold gold -pie
link lld lld -pie
link lld-bare lld -pie -Wl,--no-relax,-z,norelro
link lld-far lld -pie -Wl,--image-base=0x4000000,--emit-relocs
link mold mold -pie
[ ${#names[@]} -ge 2 ] || { skip hash-a64 "no two linkers: $(first_line link.err)"; finish; }

cat >compare.py <<'END'
"""compare.py NAME...: ok or not ok a line: the first one's hashes by name against the others', stripped or not; then each by itself."""
import json, re, sys
SKIP = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy", "call_weak_fn",
        "_dl_relocate_static_pie"}
EQUAL = [{"_Z8plus_onev", "_Z9again_onev"}, {"_Z5thirdd", "_Z9third_tood"}, {"_Z3oddj", "_Z4odd2j"}, {"_Z4evenj", "_Z5even2j"},
         {"_Z7catchesPKc", "_Z13catches_againPKc"}, {"_Z3sumIlET_PKS0_i", "_Z3sumImET_PKS0_i"}]
# Destructors and other members that the compiler writes are as it likes.
OTHERS = re.compile(r"_ZN")
def rows(name, strip):
    return [json.loads(line) for line in open(name + strip + ".jsonl")]
def hashes(name, strip):
    by = {}
    for line in open(name + ".nm"):
        f = line.split()
        if len(f) == 3 and f[1] in "tTwW" and f[2] not in SKIP and f[2][0] != "$":
            by.setdefault(int(f[0], 16), []).append(f[2])
    return {n: r["hash"] for r in rows(name, strip) for n in by.get(r["address"], ())}
def say(name, bad):
    print("not ok %s: %s" % (name, bad) if bad else "ok " + name)
first = hashes(sys.argv[1], "")
say("hash-a64-functions", len(first) if len(first) < 28 else "")
for name in sys.argv[1:]:
    diff = []
    for strip in "", ".s":
        h = hashes(name, strip)
        diff += [n + strip for n in first if h.get(n) != first[n]]
    say("hash-a64-" + name, diff and "%d of %d: %s" % (len(diff), 2 * len(first), diff[:5]))
    bad = [(a, b) for a in first for b in first if a < b and not OTHERS.match(a) and not OTHERS.match(b) and
           (h[a] == h[b]) != ({a, b} in EQUAL)]
    say("hash-a64-meaning-" + name, bad[:4])
    R = [r for r in rows(name, "") if r["foldable"]]
    bad = [(r["linkage_name"], s["linkage_name"]) for r in R for s in R if (r["hash"] == s["hash"]) != (r["class"] == s["class"])]
    say("hash-a64-class-" + name, bad[:4])
END
python3 compare.py "${names[@]}" >said 2>&1 || not_ok hash-a64-compare "$(tail -n 1 said)"
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) line=${line#not ok }; not_ok "${line%%: *}" "${line#*: }" ;;
	esac
done <said
finish
