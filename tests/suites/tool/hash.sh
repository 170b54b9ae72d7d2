#!/bin/bash
# hash.sh: the hashes of functions (icfold-format(5), HASHES) in rows of `icfold audit --rows`: the same for all linkers, addresses and
# strips; equal where --icf=all has one class; bodies compared by a judge.  And the rows themselves, with the queries of integration/fleet.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool hash
FLEET=$(readlink -f "$(dirname "$0")/../../../integration/fleet")
JUDGE=$(readlink -f "$(dirname "$0")/../../judges/hash.py")
DUCK=$(readlink -f "$(dirname "$0")/../../judges/duck.js")
make_work
cd "$WORK" || exit 1
have python3 || { skip hash "python3 is not installed"; finish; }
# silent NAME SAID: ok when nothing was said.
silent() { check "$1" "$2" test -z "$2"; }
equal() { check "$1" "$2, not $3" test "$2" = "$3"; }

# --- a program in which meaning is easy to get wrong
cat >a.cc <<'END'
#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#define OWN __attribute__((noipa))
long counter, other;
static const int same_a[6] = { 901, 802, 703, 604, 505, 406 };
OWN int pick_a(int x) { return same_a[x] * 3; }
extern const int *pick_c(int);
static const int table[2][8] = { { 1, 2, 3, 4, 5, 6, 7, 8 }, { 1, 2, 3, 4, 5, 6, 7, 9 } };
OWN void plus_one() { counter++; }
OWN void other_one() { other++; }
OWN void again_one() { counter++; }
OWN const int *first() { return table[0]; }
OWN const int *second() { return table[1]; }
OWN const char *hello() { return "hello world"; }
OWN const char *world() { return "world"; }
OWN double half(double x) { return x * 0.5; }
OWN double third(double x) { return x * 0.25; }
OWN double half_here(double x) { return 3 - x * 0.5; }
extern double half_there(double);
extern "C" void *by_slot(), *by_slot_8();
extern "C" int same_slot(void *);
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
OWN int catches(const char *s) {
	try { return (int)std::stol(s); } catch (const std::invalid_argument &) { return -1; } catch (const std::out_of_range &) { return -2; }
}
OWN int catches_other(const char *s) {
	try { return (int)std::stol(s); } catch (const std::invalid_argument &) { return -1; } catch (const std::length_error &) { return -2; }
}
template <class T> OWN T sum(const T *p, int n) { T s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
int main(int argc, char **argv) {
	plus_one(); other_one(); again_one();
	long l[2] = { 1, 2 }; unsigned long u[2] = { 3, 4 };
	dispatch(argc);
	Shape *s = square(), *t = triangle();
	printf("%d %d %d %d %ld\n", s->sides(), t->sides(), catches(argc > 1 ? argv[1] : "7"), catches_other("8"), sum(l, 2) + (long)sum(u, 2));
	return (first()[0] + second()[0] + (int)half(2) + (int)half_here(half_there(1)) + (by_slot() == by_slot_8()) + pick_a(argc) + *pick_c(argc) + same_slot(argv) + (int)third(4) + odd(3) + odd2(3) + (int)strlen(hello()) + (int)strlen(world())) & 1;
}
END
cc=$(command -v g++) || { skip hash "g++ is not installed"; finish; }
# A second object: a number that the first one has, too, and the instructions that linkers rewrite in their own ways.
cat >c.cc <<'END'
double __attribute__((noipa)) half_there(double x) { return 3 - x * 0.5; }
static const int same_c[6] = { 901, 802, 703, 604, 505, 406 };
extern const int *pick_c(int);
const int *__attribute__((noipa)) pick_c(int x) { return same_c + x; }
#define CODE(name, text) asm(".section .text." name ",\"ax\",@progbits\n.globl " name "\n.type " name ", @function\n" name \
	":\n.cfi_startproc\n" text "\nret\n.cfi_endproc\n.size " name ", .-" name "\n.text");
// As in Rust: no NUL at the end.
asm(".section .rodata\n.p2align 3\ntext_1: .ascii \"field identifier\"\ntext_2: .ascii \"struct CacheData\"\n.byte 1\n.text");
CODE("of_text_1", "lea text_1(%rip), %rax")
CODE("of_text_2", "lea text_2(%rip), %rax")
CODE("by_slot", "mov half_c@GOTPCREL(%rip), %rax")
CODE("by_slot_8", "mov half_c@GOTPCREL(%rip), %r8\nmov %r8, %rax")
CODE("same_slot", "xor %eax, %eax\ncmp half_c@GOTPCREL(%rip), %rdi\nsete %al\ntest %rdi, half_c@GOTPCREL(%rip)\nsete %ah")
extern "C" double __attribute__((noipa)) half_c(double x) { return x / 5; }
END
for n in a c; do "$cc" -O2 -ffunction-sections -c $n.cc -o $n.o || { not_ok hash-build "does not compile"; finish; }; done

# link NAME OPTION...: false: this linker is not here.
# shellcheck disable=SC2086 # OBJECTS: several
link() {
	local out=$1
	shift
	"$cc" ${OBJECTS:-a.o c.o} -o "$out" -Wl,--build-id "$@" 2>link.err
}
rows() { "$ICFOLD" audit -q --rows="$1.jsonl" --package="${2:-}" "$1" 2>rows.err >rows.out; }

names=()
for l in bfd gold lld mold; do
	link $l -fuse-ld=$l -pie && names+=("$l")
	link $l-far -fuse-ld=$l -no-pie -Wl,-Ttext-segment=0x7000000 && names+=("$l-far")
done
link bfd-high -fuse-ld=bfd -pie -Wl,-Ttext-segment=0x4000000 && names+=(bfd-high)
link bfd-relocs -fuse-ld=bfd -pie -Wl,--emit-relocs && names+=(bfd-relocs)
# Numbers are not merged; fixed addresses, with relocations that show where they are in the code.
link lld-apart -fuse-ld=lld -pie -Wl,-O0 && names+=(lld-apart)
for l in bfd lld; do link $l-fixed -fuse-ld=$l -no-pie -Wl,--emit-relocs && names+=("$l-fixed"); done
# Equal tables are told apart by their uses and not by their addresses.
OBJECTS="c.o a.o" link bfd-turned -fuse-ld=bfd -pie && names+=(bfd-turned)
link bfd-bare -fuse-ld=bfd -pie -Wl,-z,norelro,--no-relax,-O0 && names+=(bfd-bare)
[ ${#names[@]} -ge 4 ] || { skip hash "no linkers: $(head -1 link.err)"; finish; }
bad=
for n in "${names[@]}"; do
	strip -o "$n.s" "$n"
	nm "$n" >"$n.nm"
	rows "$n" && rows "$n.s" || bad="$bad $n: $(head -1 rows.err)"
done
silent hash-rows "$bad"

cat >compare.py <<'END'
"""compare.py NAME...: the first one's hashes by name against the others', stripped or not."""
import json, sys
SKIP = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy",
        "_dl_relocate_static_pie"}
NUMBERS = {"main", "by_slot", "by_slot_8", "same_slot"}
def hashes(name, strip):
    by = {}
    for line in open(name + ".nm"):
        f = line.split()
        if len(f) == 3 and f[1] in "tTwW" and f[2] not in SKIP:
            by.setdefault(int(f[0], 16), []).append(f[2])
    ret = {}
    for line in open(name + strip + ".jsonl"):
        r = json.loads(line)
        for n in by.get(r["address"], ()):
            ret[n] = r["hash"]
    return ret
first = hashes(sys.argv[1], "")
for name in sys.argv[1:]:
    for strip in "", ".s":
        h = hashes(name, strip)
        # Without relocations nobody knows whether a number in the code is an address.
        numbers = NUMBERS if name == "bfd-far" or name.endswith("-fixed") and strip else ()
        diff = [n for n in first if h.get(n) != first[n] and n not in numbers]
        if diff:
            print(name + strip, len(diff), "of", len(first), diff[:4])
if len(first) < 25:
    print("only", len(first), "functions")
END
for n in "${names[@]}"; do
	said=$(python3 compare.py "${names[0]}" "$n" 2>&1)
	silent "hash-$n" "$said"
done

# --- strings that code names by their ends alone, as GCC does where it copies them.  Each linker has an order of its own for them.
# Of the last one of all, nothing shows that it is one.
for k in 1 2 3 4 5 6 7 8 9 a b c; do
	printf '.section .rodata.str1.8,"aMS",@progbits,1\n.p2align 3\ntext_%s: .string "the %s-th of some texts%s"\nend_%s = . - 1\n' \
		$k $k$k "$(printf ", and so on%.0s" $(seq $((0x$k * 5 % 13))))" $k
	printf '.text\n.globl f_%s\n.type f_%s, @function\n.p2align 4\nf_%s: .cfi_startproc\nlea end_%s(%%rip), %%rax\n' $k $k $k $k
	printf 'mov $%d, %%edx\nret\n.cfi_endproc\n.size f_%s, .-f_%s\n' $((0x$k)) $k $k
done >ends.s
echo '.section .note.GNU-stack,"",@progbits' >>ends.s
echo 'extern char f_1, f_2; int main(void) { return &f_1 == &f_2; }' >ends_main.c
"$cc" -x c -c ends_main.c -o ends_main.o && "$cc" -c ends.s -o ends.o
for l in bfd gold lld mold; do
	OBJECTS="ends_main.o ends.o" link ends-$l -fuse-ld=$l -pie || continue
	rows ends-$l
	[ -f ends-bfd.jsonl ] || break
	n=$(for f in ends-bfd ends-$l; do
		python3 -c '
import json, sys
for r in map(json.loads, sys.stdin):
    if (r["linkage_name"] or "").startswith("f_"):
        print(r["linkage_name"], r["hash"])' <"$f.jsonl"
	done | sort | uniq -c | awk '{ n += $1 == 2 } END { print n + 0 }')
	check hash-ends-$l "$n of 12 are the same" test "$n" -ge 10
done

# --- in one program
cat >within.py <<'END'
import json, sys
R = [json.loads(l) for l in open(sys.argv[1])]
by = {}
for r in R:
    by.setdefault((r["linkage_name"] or "").removeprefix("_Z"), r)
def same(a, b, want):
    if (by[a]["hash"] == by[b]["hash"]) != want:
        print(a, b, "equal" if not want else "different")
same("8plus_onev", "9again_onev", True)
same("8plus_onev", "9other_onev", False)
same("5firstv", "6secondv", False)
same("5hellov", "5worldv", False)
same("4halfd", "5thirdd", False)
same("of_text_1", "of_text_2", False)
same("9half_hered", "10half_thered", True)
same("6squarev", "8trianglev", False)
same("7catchesPKc", "13catches_otherPKc", False)
same("3oddj", "4odd2j", True)
same("4evenj", "5even2j", True)
same("3oddj", "4evenj", False)
same("3sumIlET_PKS0_i", "3sumImET_PKS0_i", True)
for r in R:
    for s in R:
        apart = "apart" in sys.argv[1] and {r["linkage_name"], s["linkage_name"]} == {"_Z9half_hered", "_Z10half_thered"}
        if r["foldable"] and s["foldable"] and (r["hash"] == s["hash"]) != (r["class"] == s["class"]) and not apart:
            print("class:", r["linkage_name"], s["linkage_name"])
END
for n in bfd lld lld-apart; do
	[ -f $n.jsonl ] || continue
	said=$(python3 within.py $n.jsonl 2>&1 | head -5)
	silent "hash-within-$n" "$said"
done

# --- the judge: bodies of equal hashes, of all linkers
if have objdump; then
	files=()
	for n in "${names[@]}"; do case $n in *-far | *-bare | *-fixed) ;; *) files+=("$n.jsonl") ;; esac; done
	said=$(python3 "$JUDGE" "${files[@]}" 2>&1)
	check hash-judge "$said" test $? = 0
	# It must be able to fail: two functions get one hash.
	python3 - bfd.jsonl >planted.jsonl <<'END'
import json, sys
R = [json.loads(l) for l in open(sys.argv[1])]
by = {r["linkage_name"]: r for r in R}
by["_Z5thirdd"]["hash"] = by["_Z4halfd"]["hash"]
print("\n".join(json.dumps(r) for r in R))
END
	python3 "$JUDGE" planted.jsonl >planted.out 2>&1
	rc=$?
	check hash-judge-planted "$(cat planted.out)" test $rc = 1
	# The one for very many rows.  Of what linkers rewrite it knows a load that becomes an address.
	if "${CC:-gcc}" -O1 -std=gnu17 -D_GNU_SOURCE -o hash_rows "$(dirname "$JUDGE")/hash_rows.c" -lZydis -lxxhash 2>judge.err; then
		for n in bfd gold bfd-high bfd-turned; do [ ! -f $n.jsonl ] || cat $n.jsonl; done | ./hash_rows keys >keys.out
		said=$(./hash_rows --compare keys)
		check hash-rows-judge "$said" test $? = 0
		sed 's/": /":/g' planted.jsonl | ./hash_rows planted.keys >keys.out
		said=$(./hash_rows --compare planted.keys)
		check hash-rows-judge-planted "$said" test $? = 1
	else
		skip hash-rows-judge "does not build: $(first_line judge.err)"
	fi
else
	skip hash-judge "objdump is not installed"
fi

# --- the rows
"$ICFOLD" audit -q --rows=old.csv --package=old bfd >/dev/null
sed 's/x \* 0.5/x * 0.5 + 1/; s/return 3;/return 5;/' a.cc >b.cc
"$cc" -O2 -ffunction-sections -c b.cc -o b.o && "$cc" b.o c.o -o new -pie && "$ICFOLD" audit -q --rows=new.csv --package=new new >/dev/null
said=$(python3 - "$FLEET/schema.json" old.csv bfd.jsonl 2>&1 <<'END'
import csv, json, sys
want = [c["name"] for c in json.load(open(sys.argv[1]))["columns"]]
types = {"string": str, "bool": bool, "int32": int, "int64": int}
column = {c["name"]: c for c in json.load(open(sys.argv[1]))["columns"]}
R = list(csv.reader(open(sys.argv[2], newline="")))
if R[0] != want or any(len(r) != len(want) for r in R):
    print("CSV: columns", R[0])
lines = [json.loads(l) for l in open(sys.argv[3])]
if len(lines) != len(R) - 1:
    print("CSV and JSON differ in number")
for r in lines:
    for name, v in r.items():
        c = column[name]
        if v is None and not c["null"] or v is not None and type(v) is not types[c["type"]]:
            print("type of", name, repr(v))
    if list(r) != want:
        print("JSON: columns", list(r))
END
)
silent rows-schema "$said"
"$ICFOLD" audit -q --rows=bfd bfd >/dev/null 2>same.err
check rows-input "overwrote its input" test $? = 2
"$ICFOLD" audit -q --rows=/dev/stdout --package= --threads=1 bfd >stdout.jsonl
check rows-stdout "other rows" cmp bfd.jsonl stdout.jsonl

if have sqlite3; then
	bash "$FLEET/load.sh" fleet.db old.csv new.csv 2>load.err || not_ok fleet-load "$(head -2 load.err)"
	ask() { sqlite3 -separator ' ' fleet.db <"$FLEET/$1.sql" 2>&1; }
	ask changed >changed.out
	equal fleet-changed "$(cut -d' ' -f1 changed.out | sort | tr '\n' ' ')" \
		"$(printf '%s\n' _Z4halfd _Z9half_hered _Z8trianglev _ZNK8Triangle5sidesEv _start main | sort | tr '\n' ' ')"
	# Counted again, without SQL.
	want=$(python3 - old.csv new.csv <<'END'
import collections, csv, sys
by = collections.defaultdict(list)
for f in sys.argv[1:]:
    for r in csv.DictReader(open(f, newline="")):
        by[r["hash"]].append((r["file"], int(r["size"])))
both = [v for v in by.values() if len({f for f, _ in v}) > 1 and v[0][1] > 32]
size = sum(v[0][1] for v in both)
now = sum(v[0][1] * len({f for f, _ in v}) for v in both)
print(len(both), size, now, now - size - 16 * sum(len({f for f, _ in v}) for v in both))
print(sum((len(v) - 1) * v[0][1] for v in by.values()))
END
	)
	equal fleet-shared "$(ask shared)" "$(head -1 <<<"$want")"
	total=$(sed 's/^LIMIT.*/;/' "$FLEET/duplicates.sql" | sqlite3 -separator ' ' fleet.db 2>&1 | awk '{ n += $NF } END { print n }')
	equal fleet-duplicates "$total" "$(tail -1 <<<"$want")"
	total=$(ask packages | awk '{ n += $NF } END { print n }')
	equal fleet-packages "$total" "$(tail -1 <<<"$want")"
	total=$(ask growth | awk '{ n += $(NF - 1) } END { print n }')
	want=$(sqlite3 fleet.db "SELECT sum(CASE package WHEN 'new' THEN size ELSE -size END) FROM functions")
	equal fleet-growth "$total" "$want"
	# Files of any name, which is neither an option nor a command nor a string of SQL or C.
	mkdir "odd's" "odd's/tmp" && cd "odd's" || exit 1
	names=("it's a.csv" -x.csv '|touch started.csv' 'a"\n.csv' $'two\nlines.csv' --skip '-5 "')
	for n in "${names[@]}"; do cp ../old.csv "./$n"; done
	bash "$FLEET/load.sh" "-it's.db" "${names[@]}" 2>load.err
	rc=$?
	check fleet-names "status $rc: $(head -2 load.err)" test $rc = 0 -a ! -e started.csv
	equal fleet-names-rows "$(sqlite3 "./-it's.db" "SELECT count(*) FROM functions")" "$((${#names[@]} * $(sqlite3 ../fleet.db "SELECT count(*) FROM functions WHERE package = 'old'")))"
	bash "$FLEET/load.sh" "-it's.db" missing.csv >out 2>&1
	check fleet-missing "a file that is not there is loaded" test $? != 0
	mkdir -p root/var/lib/dpkg/info && echo /usr/bin/tool >root/var/lib/dpkg/info/owner:amd64.list
	sqlite3 "./-it's.db" "UPDATE functions SET package = NULL, file = 'root/usr/bin/tool'"
	TMPDIR=$PWD/tmp bash "$FLEET/debian.sh" "-it's.db" root 2>load.err
	equal fleet-debian "$(sqlite3 "./-it's.db" "SELECT DISTINCT package FROM functions")" owner
	cd ..
else
	skip fleet "sqlite3 is not installed"
fi
# npm install @duckdb/node-api, in DUCKDB=FOLDER or where node finds it.
export NODE_PATH=${DUCKDB:+$DUCKDB/node_modules:}${NODE_PATH:-}
if ! have sqlite3 || ! have node || ! node -e "require('@duckdb/node-api')" 2>/dev/null; then
	skip fleet-duckdb "npm's @duckdb/node-api is not installed (DUCKDB=FOLDER with node_modules in it)"
	finish
fi
for q in duplicates packages growth shared changed; do
	node "$DUCK" "$FLEET/$q.sql" old.csv new.csv >duck.out 2>&1
	ask $q >sqlite.out
	check "fleet-duckdb-$q" "$(diff duck.out sqlite.out | head -2)" cmp duck.out sqlite.out
done
finish
