#!/bin/bash
# run_file.sh: what other tools left in a file, or put behind it, and what it weighs afterwards.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
need_tool file
make_work
cd "$WORK" || exit 1

# fold NAME IN OUT [OPTION...]: folds, and verify says equal.
fold() {
	local name=$1 in=$2 out=$3
	shift 3
	if ! "$ICFOLD" -q "$@" "$in" -o "$out" 2>err; then
		not_ok "$name" "does not fold: $(first_line err)"
		return 1
	fi
	"$ICFOLD" verify "$in" "$out" >verdict 2>&1
	check "$name" "verify: $(grep ': ' verdict | head -n 1 | cut -c 1-200)" grep -qx equal verdict
}

# --- .dynsym with numbers of sections that are there no more --------------------------------------------------------
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
if fold file/stale stale.so out.so; then
	check file/stale/defined "other symbols" test "$(defined stale.so)" = "$(defined out.so)"
	check file/stale/section "$(section_of out.so metadata)" test "$(section_name out.so "$(section_of out.so metadata)")" = .meta
	links file/stale out.so
fi
# Every number for every symbol: none, a kept unloaded section's, a dropped one's, one that no section has.
for number in meta debuglink shstrtab 200; do
	python3 - "$TESTS" stale.so $number >log 2>&1 <<'END'
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
		fold "$name" stale-$number.so out.so $([ $how = safe ] || echo --in-place) || continue
		check "$name/defined" "other symbols" test "$(defined stale-$number.so)" = "$(defined out.so)"
		[ $number = debuglink ] || [ $number = 200 ] || continue
		links "$name" out.so
	done
done

finish
