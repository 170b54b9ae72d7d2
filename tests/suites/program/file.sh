#!/bin/bash
# file.sh: files as other tools leave them: sections that objcopy and strip made odd, records of other tools, data behind the program.
# Each folds or is refused with a reason; binutils and the program itself read the output, and verify says equal.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite file

# fold NAME IN OUT [OPTION...]: folds, and verify says equal; figures are in `stats`.
fold() {
	local name=$1 in=$2 out=$3
	shift 3
	if ! "$ICFOLD" -q "$@" "$in" -o "$out" >stats 2>err; then
		not_ok "$name" "does not fold: $(first_line err)"
		return 1
	fi
	"$ICFOLD" verify "$in" "$out" >verdict 2>&1
	check "$name" "verify: $(grep ': ' verdict | head -n 1 | cut -c 1-200)" grep -qx equal verdict
}

# --- .dynsym with numbers of sections that were removed -------------------------------------------------------------
cat >user.c <<'END'
#include <stdio.h>
int one(int), two(int), three(int);
int main(void) { printf("%d %d %d %d\n", one(5), two(6), three(7), one != two); }
END
defined() { readelf --dyn-syms -W "$1" | awk '$7 != "UND" && $5 != "LOCAL" && NF >= 8 { print $NF }' | sort; }
section_of() { readelf --dyn-syms -W "$1" | awk -v s="$2" '$8 == s { print $7 }'; }
section_name() { readelf -SW "$1" | sed 's/\[ */[/' | awk -v n="[$2]" '$1 == n { print $2 }'; }
# links NAME LIBRARY: every linker finds its functions, and the program does its work.
links() {
	local ld
	for ld in bfd gold lld; do
		have ld.$ld || { skip "$1/link/$ld" "no ld.$ld"; continue; }
		ln -sf "$2" libuser.so
		gcc user.c -fuse-ld=$ld ./libuser.so -Wl,-rpath,. -o user >log 2>&1
		check "$1/link/$ld" "$(grep -v '^/usr/bin/.*In function' log | head -n 1)" test "$(./user 2>&1)" = "16 19 166 1"
	done
}
make_stale . stale.so >log 2>&1 || not_ok file/stale "$(first_line log)"
check file/stale/shape "metadata's number is not that of another section" test "$(section_name stale.so "$(section_of stale.so metadata)")" = .gnu_debuglink
if fold file/stale stale.so out.so --allow-growth; then
	check file/stale/defined "other symbols" test "$(defined stale.so)" = "$(defined out.so)"
	check file/stale/section "$(section_of out.so metadata)" test "$(section_name out.so "$(section_of out.so metadata)")" = .meta
	links file/stale out.so
fi
# Every symbol gets each number: 0, that of a kept unloaded section, that of a dropped section, and one that no section has.
for number in meta debuglink shstrtab 200; do
	python3 - "$TESTS/mutate" stale.so $number >log 2>&1 <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d = bytearray(e.data)
n = next((s.index for s in e.sections if s.name in ("." + sys.argv[3], ".gnu_" + sys.argv[3])), 200)
t = e.section(".dynsym")
for at in range(t.offset + 24, t.offset + t.size, 24):
    if d[at + 6] | d[at + 7] << 8:
        d[at + 6:at + 8] = n.to_bytes(2, "little")
open("stale-" + sys.argv[3] + ".so", "wb").write(d)
END
	for how in safe in-place; do
		name=file/stale/$number/$how
		option=--$how
		[ $how = in-place ] || option=--icf=$how
		fold "$name" stale-$number.so out.so "$option" --allow-growth || continue
		check "$name/defined" "other symbols" test "$(defined stale-$number.so)" = "$(defined out.so)"
		[ $number = debuglink ] || [ $number = 200 ] || continue
		links "$name" out.so
	done
done

# A symbol marks an unwind table that the linker merged away.  Its address lies before its section, in a section that shrinks.
cat >mark.c <<'END'
__asm__(".data\nmark: .long 0\n.text");
static int __attribute__((noipa)) one(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; return x * 3 + 1; }
static int __attribute__((noipa)) two(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; return x * 3 + 1; }
int three(int x) { return one(x) + two(x + 1) + x * 17; }
#ifdef ALSO
int four(int x) { return x + 1; }
#endif
END
if gcc -O1 -fPIC -shared mark.c -o mark.so && python3 - "$TESTS/mutate" mark.so <<'END'; then
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d = bytearray(e.data)
t, names = e.section(".symtab"), e.bytes_of(e.section(".strtab"))
header = e.section(".eh_frame_hdr")
for at in range(t.offset, t.offset + t.size, 24):
    name = int.from_bytes(d[at:at + 4], "little")
    if names[name:name + 5] == b"mark\0":
        d[at + 6:at + 8] = e.section(".eh_frame").index.to_bytes(2, "little")
        d[at + 8:at + 16] = (header.addr + header.size - 4).to_bytes(8, "little")
open(sys.argv[2], "wb").write(d)
END
	if fold file/mark mark.so out.so --allow-growth; then
		check file/mark/shrinks "the table has its size" test "$(readelf -SW mark.so | grep eh_frame_hdr)" != "$(readelf -SW out.so | grep eh_frame_hdr)"
		check file/mark/stays "$(readelf -sW out.so | grep mark)" test "$(nm out.so | grep mark)" = "$(nm mark.so | grep mark)"
	fi
fi

# A name that a hash table does not find.  GNU ld 2.47 leaves a library's own _end out of .gnu.hash if it links with a library that
# defines _end.  The output must find the same names, no fewer and no more.
cat >hashes.py <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf, get
how, table, what, path, out = sys.argv[2:]
e = Elf(path)
d, t, sym = bytearray(e.data), e.section(table), e.section(".dynsym")
names = e.bytes_of(e.section(".dynstr"))
if how == "copy":  # the table of the file WHAT
    d[t.offset:t.offset + t.size] = Elf(what).bytes_of(Elf(what).section(table))
else:  # the table no longer finds WHAT
    n = next(i for i in range(sym.size // 24) if names[get(d, sym.offset + 24 * i, 4):].split(b"\0")[0] == what.encode())
    count = get(d, t.offset, 4)
    if table == ".gnu.hash":  # not the lowest bit, which ends a chain
        d[t.offset + 16 + 8 * get(d, t.offset + 8, 4) + 4 * (count + n - get(d, t.offset + 4, 4)) + 1] ^= 1
    else:
        successor = d[t.offset + 8 + 4 * (count + n):][:4]
        for at in range(t.offset + 8, t.offset + t.size, 4):
            if get(d, at, 4) == n:
                d[at:at + 4] = successor
open(out, "wb").write(d)
END
found() { # LIBRARY NAME WHY: verify says that LIBRARY is not hidden.so folded
	"$ICFOLD" verify hidden.so "$1" >verdict 2>&1
	check "$2" "$(tail -n 1 verdict)" grep -q "^names in the hash tables: name: $3" verdict
}
if gcc -O1 -fPIC -shared -Wl,--hash-style=both -DALSO mark.c -o hashes.so; then
	for table in .hash .gnu.hash; do
		name=file/hidden/${table#.}
		python3 hashes.py "$TESTS/mutate" hide $table three hashes.so hidden.so || { not_ok "$name" "hashes.py"; continue; }
		fold "$name" hidden.so out.so --allow-growth || continue
		check "$name/moves" "nothing folds: the test tests nothing" eval '! cmp -s hidden.so out.so'
		python3 hashes.py "$TESTS/mutate" hide $table four out.so bad.so
		found bad.so "$name/lost" "four in $table: expected symbol"
		python3 hashes.py "$TESTS/mutate" copy $table hashes.so out.so bad.so
		found bad.so "$name/new" "three in $table: expected none"
	done
fi

# .dynsym counts no local symbols, although symbol 0 is one: tcc writes this.
if gcc -O1 -fPIC -shared mark.c -o count.so && python3 - "$TESTS/mutate" count.so <<'END'; then
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d = bytearray(e.data)
at = int.from_bytes(d[40:48], "little") + 64 * e.section(".dynsym").index + 44
d[at:at + 4] = bytes(4)
open(sys.argv[2], "wb").write(d)
END
	check file/count/shape "sh_info is not 0" test "$(readelf -SW count.so | awk '/ \.dynsym / { print $(NF - 1) }')" = 0
	fold file/count count.so out.so --allow-growth
fi

# A local symbol behind the sh_info of .dynsym: old GNU linkers for AArch64 leave one, with an absolute value.
if gcc -O1 -fPIC -shared -DSPARE mark.c -Wl,--defsym=spare=64 -o late.so && python3 - "$TESTS/mutate" late.so <<'END'; then
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d = bytearray(e.data)
s = e.section(".dynsym")
n = 0
for at in range(s.offset + 24, s.offset + s.size, 24):
    if d[at + 6:at + 8] == b"\xf1\xff":
        d[at + 4] &= 15
        n += 1
assert n == 1
open(sys.argv[2], "wb").write(d)
END
	fold file/late late.so out.so --allow-growth
	# The number itself must not shrink.
	cp out.so worse.so
	python3 - "$TESTS/mutate" late.so worse.so <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
for name, more in zip(sys.argv[2:], (1, 0)):
    e = Elf(name)
    d = bytearray(e.data)
    s = e.section(".dynsym")
    at = int.from_bytes(d[40:48], "little") + 64 * s.index + 44
    d[at:at + 4] = (s.size // 24 if more else 1).to_bytes(4, "little")
    for k in range(s.offset + 24, s.offset + s.size, 24):
        d[k + 4] &= 15
    open(name, "wb").write(d)
END
	"$ICFOLD" verify late.so worse.so >verdict 2>&1
	check file/late/worse "$(tail -n 1 verdict)" grep -q 'order: .dynsym: expected all local symbols before sh_info 1,' verdict
fi

# --- appended data: programs find it by its distance to the start of the file, to the end, or to the section headers
cat >self.c <<'END'
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#define SAME(n) __attribute__((noinline)) int same##n(int x) { int r = 0; for (int i = 0; i < x; i++) r += x > 99 ? i * 3 : i * 7 + r; return r; }
SAME(0) SAME(1) SAME(2) SAME(3) SAME(4) SAME(5) SAME(6) SAME(7) SAME(8) SAME(9)
static void show(FILE *f, long at, int whence, int n)
{
	fseek(f, at, whence);
	for (int c; n-- && (c = getc(f)) != EOF;)
		printf("%02x", c);
	puts("");
}
int main(int argc, char **argv)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	Elf64_Ehdr e;
	int n = atoi(argv[2]);
	if (!f || fread(&e, sizeof e, 1, f) != 1 || argc < 3)
		return 1;
	show(f, atol(argv[1]), SEEK_SET, n);
	show(f, -n, SEEK_END, n);
	show(f, e.e_shoff + e.e_shnum * e.e_shentsize, SEEK_SET, n);
	printf("%d\n", same0(n) + same1(n) + same2(n) + same3(n) + same4(n) + same5(n) + same6(n) + same7(n) + same8(n) + same9(n));
}
END
gcc -O1 -g -fno-ipa-icf -Wl,--emit-relocs self.c -o self || { not_ok file/appended "does not build"; finish; }
size=$(file_bytes self)
for n in 1 4 12 16 17 4000; do
	name=file/appended/$n
	{ cat self && head -c $((n - 1)) /dev/zero && printf Z; } >self.$n && chmod +x self.$n && rm -f out
	fold $name self.$n out --strip-debug || continue
	check $name/place "does not find it: $(./out "$size" $n | cut -c 1-60 | tr '\n' ' ')" test "$(./out "$size" $n)" = "$(./self.$n "$size" $n)"
	check $name/size "$(file_bytes out)" test "$(file_bytes out)" = $((size + n))
done
# different NAME IN OUT: verify says so.
different() {
	local rc
	"$ICFOLD" verify "$2" "$3" >verdict 2>&1
	rc=$?
	check "$1" "status $rc: $(tail -n 1 verdict)" test $rc = 1
}
{ cat out && printf Z; } >mutant
different file/appended/mutant/more self.4000 mutant
{ head -c "$size" out && printf Z && tail -c 4000 out; } >mutant
different file/appended/mutant/moved self.4000 mutant
head -c "$size" out >mutant
different file/appended/mutant/lost self.4000 mutant
for how in as-it-is --adjust-sfx; do
	if ! have zip || ! have unzip; then skip file/appended/zip "no zip"; break; fi
	rm -f out payload.zip
	zip -q payload.zip self.c && cat self payload.zip >self.zip && chmod +x self.zip
	[ $how = as-it-is ] || zip -q --adjust-sfx self.zip
	fold "file/appended/zip/$how" self.zip out || continue
	check "file/appended/zip/$how/unzip" "$(unzip -tq out 2>&1 | tail -n 1)" test "$(unzip -tq out 2>&1)" = "$(unzip -tq self.zip 2>&1 | sed s/self.zip/out/)"
done
# A few zeros at the end are no data and move with the end.
{ cat self && head -c 7 /dev/zero; } >self.zeros
if fold file/appended/zeros self.zeros out; then
	end=$(readelf -hW out | awk '/Start of section headers/ { s = $5 } /Size of section headers/ { z = $5 } /Number of section headers/ { print s + z * $5 }')
	check file/appended/zeros/kept "$(file_bytes out) for $end" test "$(file_bytes out)" = $((end + 7)) -a "$(file_bytes out)" -lt "$size"
fi
# refused NAME IN TEXT [OPTION...]
refused() {
	local name=$1 in=$2 text=$3 rc
	shift 3
	"$ICFOLD" -q "$@" "$in" -o refused.out 2>err
	rc=$?
	check "$name" "status $rc: $(first_line err)" test $rc = 1 -a ! -e refused.out
	check "$name/text" "$(first_line err)" grep -qF -- "$text" err
}
strip -o self.short self && { cat self.short && echo payload; } >self.long
refused file/appended/no-room self.long "8 bytes that belong to no section follow the program, which would be" --in-place
# Bytes between the sections and their headers.
python3 - self self.gap <<'END'
import sys
d = bytearray(open(sys.argv[1], "rb").read())
at = int.from_bytes(d[40:48], "little")
d[at:at] = b"payload " * 2
d[40:48] = (at + 16).to_bytes(8, "little")
open(sys.argv[2], "wb").write(d)
END
refused file/gap self.gap "bytes that belong to no section or segment stand before others that do"

# --- no output is larger than its input
# as_it_was NAME IN OUT: byte for byte, with its permissions.
as_it_was() {
	check "$1/bytes" "$(cmp "$2" "$3" 2>&1 | head -n 1)" cmp -s "$2" "$3"
	check "$1/mode" "$(stat -c %a "$3")" test "$(stat -c %a "$3")" = 755
}
value() { sed -n "s/^  \"$1\": \([0-9]*\),*$/\1/p" stats; }
umask 022
gcc -O1 -fno-ipa-icf self.c -o few && strip few && echo nothing >plain.txt && objcopy --add-section .debug_extra=plain.txt few few.extra ||
	{ not_ok file/larger "does not build"; finish; }
if fold file/larger few out --allow-growth --stats=json; then
	check file/larger/is "$(file_bytes out) of $(file_bytes few)" test "$(file_bytes out)" -gt "$(file_bytes few)"
	check file/larger/folds "$(value folded) folded" test "$(value folded)" -gt 5
fi
rm -f out
if fold file/as-it-is few out --stats=json -v; then
	as_it_was file/as-it-is few out
	check file/as-it-is/stats "$(value folded) folded, unchanged $(value unchanged)" test "$(value folded) $(value unchanged) $(value growth_avoided)" = "0 1 $(($(value growth_avoided) + 0))"
	check file/as-it-is/verbose "$(first_line err)" grep -q '^icfold: not worth it: folded, the file would be [0-9]* bytes larger; the output is the input byte for byte$' err
	check file/as-it-is/no-more "folding it costs nothing" test "$(value growth_avoided)" -gt 0
fi
{ cat few && echo payload; } >few.long && chmod +x few.long
fold file/as-it-is/appended few.long out && as_it_was file/as-it-is/appended few.long out
fold file/as-it-is/verify few out --verify && as_it_was file/as-it-is/verify few out
cp few few.both && fold file/as-it-is/in-its-place few.both few.both && as_it_was file/as-it-is/in-its-place few few.both
# Options that leave parts out work nevertheless.  Without the record, folding costs nothing.
if fold file/as-it-is/strip-debug few.extra out --strip-debug --stats=json; then
	check file/as-it-is/strip-debug/gone "still there" test "$(readelf -SW out | grep -c debug_extra)" = 0
	check file/as-it-is/strip-debug/size "$(file_bytes out) of $(file_bytes few.extra)" test "$(file_bytes out)" -lt "$(file_bytes few.extra)"
	check file/as-it-is/strip-debug/folds "$(value folded) folded, unchanged $(value unchanged)" test "$(value folded) $(value unchanged)" = "0 0"
fi
"$ICFOLD" -q --strip-all --stats=json few -o out >stats 2>err
check file/no-record "$(first_line err) $(value folded) folded, $(file_bytes out) bytes" test "$(value folded)" -gt 5 -a "$(file_bytes out)" -le "$(file_bytes few)"

# --- sections that are not loaded and hold addresses
cat >records.c <<'END'
#include <stdio.h>
#include <string.h>
#define SAME(n) __attribute__((noinline)) int same##n(int x) { char b[100]; int r = 0; memset(b, x, 100); for (int i = 0; i < x; i++) r += x > 99 ? i * 3 : b[i % 100] * 7 + r; return r; }
SAME(0) SAME(1) SAME(2) SAME(3) SAME(4) SAME(5) SAME(6) SAME(7) SAME(8) SAME(9)
__attribute__((noinline)) int large(int x) { char b[1000]; memset(b, x, 1000); puts(b + 1000 - x); return b[3]; }
int main(int n, char **v) { (void)v; return same0(n) + same1(n) + same2(n) + same3(n) + same4(n) + same5(n) + same6(n) + same7(n) + same8(n) + same9(n) + (n > 1 ? large(n) : 0) == 99; }
END
# stack_sizes FILE: "NAME SIZE", sorted.
stack_sizes() {
	"$readelf" --stack-sizes "$1" 2>&1 | awk '$1 + 0 == $1 && NF > 1 { for (i = 2; i <= NF; i++) { sub(/,$/, "", $i); print $i, $1 } }' | sort -u
}
# block_maps FILE: each function's blocks, without its address.
block_maps() { "$readobj" --bb-addr-map "$1" 2>&1 | awk '/Name: / { name = $2 } /Name: (main|large)$/ { print } /(ID|Offset|Size|Has|Can):? / && name ~ /^(main|large)$/'; }
block_names() { "$readobj" --bb-addr-map "$1" 2>&1 | awk '/Name: / { print $2 }' | sort; }
words() { python3 -c 'import struct, sys; sys.stdout.buffer.write(b"table:" + b"".join(struct.pack("<Q", int(a, 16)) for a in sys.argv[1:]))' "$@"; }
for version in 14 19; do
	readelf=llvm-readelf-$version readobj=llvm-readobj-$version
	if ! have clang-$version || ! have "$readobj"; then skip file/records/$version "no clang-$version"; continue; fi
	for relocs in -Wl,--no-undefined -Wl,--emit-relocs; do
		name=file/records/$version${relocs#-Wl,-}
		if ! clang-$version -O1 -fno-inline -fPIE -pie -fstack-size-section -fbasic-block-sections=labels "$relocs" records.c -o records >log 2>&1; then
			skip "$name" "$(first_line log)"
			continue
		fi
		for how in icf=all in-place; do
			fold "$name/$how" records out --$how --allow-growth || continue
			different_sizes=$(stack_sizes out | comm -23 - <(stack_sizes records))
			check "$name/$how/stack-sizes" "$different_sizes" test -z "$different_sizes" -a "$(stack_sizes out | grep -c '^large \|^main ')" = 2
			check "$name/$how/blocks" "$(diff <(block_maps records) <(block_maps out) | head -n 3)" test -n "$(block_maps out)" -a "$(block_maps out)" = "$(block_maps records)"
			check "$name/$how/one-a-body" "$(block_names out | tr '\n' ' ')" test "$(block_names out | grep -c '^same')" = 1
		done
		# verify must notice the input's records in the output, and one changed byte of any record.
		fold "$name" records out --allow-growth || continue
		for section in .stack_sizes .llvm_bb_addr_map; do
			objcopy -O binary --only-section=$section --set-section-flags $section=alloc records old 2>log && objcopy --update-section $section=old out mutant 2>log &&
				different "$name/mutant/stale$section" records mutant
			python3 - "$TESTS/mutate" out mutant $section <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from elfbytes import Elf
e = Elf(sys.argv[2])
d, s = bytearray(e.data), e.section(sys.argv[4])
d[s.offset + s.size - 1] ^= 1
open(sys.argv[3], "wb").write(d)
END
			different "$name/mutant/byte$section" records mutant
		done
	done
	# clang 14's pseudo probes are addresses and distances from one another, so they are left out.
	[ $version = 14 ] || continue
	if clang-$version -O1 -fno-inline -fPIE -pie -fpseudo-probe-for-profiling records.c -o records 2>log && fold file/probes/$version records out --allow-growth -v; then
		check file/probes/$version/gone "still there" test "$(readelf -SW out | grep -c '[.]pseudo_probe ')" = 0
		check file/probes/$version/said "$(grep probe err)" grep -qx 'icfold: .pseudo_probe is left out: it holds addresses in a form that is not rewritten' err
	fi
done
# clang 19's count from their function.
# probes FILE: "FUNCTION OFFSET PROBE" of same0, large, stays and main.
probes() {
	llvm-profgen-19 --show-pseudo-probe --show-disassembly-only --binary="$1" --output=ignored 2>/dev/null >disassembly
	python3 - <<'END'
import re
name, start, probes = "", None, []
for line in open("disassembly"):
    if m := re.match(r"<(.*)>:", line):
        name, start = m[1], None
    elif "[Probe]" in line:
        probes.append(" ".join(line.split()))
    elif m := re.match(r" *([0-9a-f]+):\t", line):
        at = int(m[1], 16)
        start = at if start is None else start
        # Folded functions have one place, and the kept one's probes are there.
        for p in probes:
            if re.match(r"(large|main)$|.*stays", name) or (name.startswith("same") and "FUNC: same0 " in p):
                print(at - start, p)
        probes = []
END
}
section_bytes() { objcopy -O binary --only-section="$2" --set-section-flags "$2=alloc" "$1" "$3"; }
if have clang-19 && have llvm-profgen-19; then
	cat records.c - >probes.c <<'END'
static inline int part(int x) { int r = 0; for (int i = 0; i < x; i++) r += i & 1 ? i * 3 : r ^ x; return r; }
__attribute__((noinline)) static int stays(int x) { puts("stays"); return part(x) + part(x + 1); }
__attribute__((used)) int more(int x) { return stays(x) + part(x * 3); }
END
	for relocs in --no-undefined --emit-relocs; do
		name=file/probes/19${relocs#-}
		clang-19 -O2 -ffunction-sections -fPIE -pie -fpseudo-probe-for-profiling "-Wl,$relocs" probes.c -o records 2>log || { skip "$name" "$(first_line log)"; continue; }
		probes records >old
		for how in icf=all icf=safe in-place; do
			fold "$name/$how" records out --$how --allow-growth -v || continue
			probes out >new
			check "$name/$how" "$(diff old new | head -n 3)" test "$(wc -l <new)" -gt 30 -a "$(cat old)" = "$(cat new)"
			section_bytes records .pseudo_probe a && section_bytes out .pseudo_probe b
			check "$name/$how/folded-gone" "$(file_bytes a) and $(file_bytes b) bytes" test "$(file_bytes b)" -lt "$(($(file_bytes a) / 2))"
		done
		fold "$name" records out --allow-growth || continue
		section_bytes out .pseudo_probe b
		objcopy --update-section .pseudo_probe=a out mutant 2>log && different "$name/mutant/stale" records mutant
		python3 -c 'd = bytearray(open("b", "rb").read()); d[-1] ^= 1; open("c", "wb").write(d)'
		objcopy --update-section .pseudo_probe=c out mutant 2>log && different "$name/mutant/byte" records mutant
	done
	# What is not such a record, or leads out of its function, is left out.
	for what in kind cut-off name far; do
		python3 - $what <<'END'
import sys
d, what = bytearray(open("a", "rb").read()), sys.argv[1]
if what == "kind":
    d[11] = 0x83
elif what == "cut-off":
    d = d[:-1]
elif what == "name":
    d[0] ^= 1
else:
    d += d[:8] + b"\1\0" + b"\1\x80\xff\xff\xff\0"
open("c", "wb").write(d)
END
		objcopy --update-section .pseudo_probe=c records odd 2>log
		fold file/probes/19/$what odd out --allow-growth -v || continue
		check file/probes/19/$what "$(grep probe err)" grep -qx 'icfold: .pseudo_probe is left out: it holds addresses in a form that is not rewritten' err
	done
else
	skip file/probes/19 "no clang-19 with llvm-profgen-19"
fi
# A section of unknown meaning stays as it is; if it holds addresses of code, nothing moves.
gcc -O1 -fno-ipa-icf records.c -o records
words 1234567890abcdef >payload && words "$(symbol_value records same3)" "$(symbol_value records same9)" >table
objcopy --add-section .payload=payload records records.payload && objcopy --add-section .table=table records records.table
fold file/payload records.payload out --allow-growth -v && check file/payload/moves "$(grep 'in place' err)" grep -q '^icfold: compact' err
objcopy -O binary --only-section=.payload --set-section-flags .payload=alloc out kept && check file/payload/kept "is another" cmp -s payload kept
objcopy --add-section .table=table out mutant && objcopy --add-section .table=table records.payload with &&
	different file/table/mutant/stale with mutant
if fold file/table records.table out --allow-growth -v; then
	check file/table/in-place "$(grep compact err)" grep -q '^icfold: in place: a section of unknown meaning that is not loaded holds an address of code' err
	check file/table/names "$(symbol_value out same9)" test "$(symbol_value out same9)" = "$(symbol_value records same9)"
fi

# --- relocations that only the dynamic section tells of: addresses in them would stay what they were
cat >pointers.c <<'C'
#include <stdio.h>
#define SAME(n) __attribute__((noinline)) static int n(int x) { for (int i = 0; i < x; i++) x = x * 5 + i % 3; return x; }
SAME(same1) SAME(same2) SAME(same3)
static int other(int x) { return x + 4; }
int (*pointers[])(int) = { same1, same2, same3, other };
int main(int n, char **v) { (void)v; for (int i = 0; i < 4; i++) printf("%d\n", pointers[i](n + i)); return 0; }
C
for how in android android+relr; do
	have ld.lld && gcc -O1 -fno-ipa-icf -fPIE -pie -fuse-ld=lld "-Wl,--emit-relocs,--use-android-relr-tags,--pack-dyn-relocs=$how" pointers.c -o packed 2>log || { skip file/packed/$how "$(first_line log)"; continue; }
	refused file/packed/$how packed "packed relocations are not supported"
done
gcc -O1 -fno-ipa-icf -fPIE -pie pointers.c -Wl,--emit-relocs -o told
cat >untell.py <<'END'
import sys
d = bytearray(open(sys.argv[1], "rb").read())
word = lambda at, n: int.from_bytes(d[at:at + n], "little")
for i in range(word(60, 2)):
    h = word(40, 8) + 64 * i
    if word(h + 4, 4) == int(sys.argv[3]) and word(h + 8, 8) & 2:  # SHF_ALLOC: a loader does not read section headers
        d[h + 4:h + 8] = (1).to_bytes(4, "little")
open(sys.argv[2], "wb").write(d)
END
python3 untell.py told untold 4 && chmod +x untold && check file/untold/runs "it prints something else" cmp -s <(./told) <(./untold)
refused file/untold untold "are in no section of relocations"
"$ICFOLD" -q --icf=all --allow-growth told -o told.out && python3 untell.py told.out untold.out 4 && "$ICFOLD" verify --icf=all untold untold.out >out 2>&1
check file/untold/verify "$(tail -n 1 out)" grep -q 'are in no section of relocations' out

gcc -O1 -fno-ipa-icf -fPIE -pie pointers.c -o bare
for type in "6 dynamic section" "11 dynamic symbol table"; do
	python3 untell.py bare untold "${type%% *}" && ./untold >out && refused "file/untold/${type%% *}" untold "the ${type#* } is in no section of its type"
done

# --- unwind tables under other names: unwinders find them by the program headers
cat >throws.cc <<'C'
#include <cstdio>
template <int I> __attribute__((noinline)) int thrower(int x) { if (x > 1) throw x; return x + 1; }
template <int I> __attribute__((noinline)) int catcher(int x) { try { return thrower<I>(x); } catch (int y) { return y * 3; } }
int main() { printf("%d\n", catcher<1>(1) + catcher<2>(2) + catcher<3>(3)); }
C
g++ -O1 -fno-ipa-icf throws.cc -Wl,--emit-relocs -o throws && "$ICFOLD" -q --icf=all --allow-growth throws -o throws.out
for s in .eh_frame .eh_frame_hdr; do
	objcopy --rename-section $s=.other throws renamed && objcopy --rename-section $s=.other throws.out renamed.out
	check file/unwind/$s/runs "it prints something else" cmp -s <(./throws) <(./renamed)
	refused file/unwind/$s renamed "are not in sections with the names .eh_frame_hdr and .eh_frame"
	"$ICFOLD" verify --icf=all renamed renamed.out >out 2>&1
	check file/unwind/$s/verify "$(tail -n 1 out)" grep -q 'are not in sections with the names' out
done

finish
