#!/bin/bash
# run_layout.sh: segments, sections, notes, marks and odd code as linkers, compilers and assemblers lay them out: each folds, verify
# says equal, and the program does its work.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
need_tool layout
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
	"$ICFOLD" verify --icf=all "$in" "$out" >verdict 2>&1
	check "$name" "verify: $(grep ': ' verdict | grep -v -e '^symbolized: ' -e '^resolved: ' | head -n 1 | cut -c 1-200)" grep -qx equal verdict
}
# try NAME LINKER ARG...: links with gcc (or CC), folds, runs; ./in and ./out stay.
try() {
	local name=$1 ld=$2
	shift 2
	have "ld.$ld" || { skip "$name/$ld" "no ld.$ld"; return 1; }
	"${CC:-gcc}" -fuse-ld="$ld" "$@" -o in >log 2>&1 || { skip "$name/$ld" "$(first_line log)"; return 1; }
	fold "$name/$ld" in out --icf=all || return 1
	check "$name/$ld/runs" "$(./out 2>&1 | head -n 1)" test "$(./in 2>&1)" = "$(./out 2>&1)"
}
# some.c: pages of functions that are the same.
{
	echo '#include <stdio.h>'
	for i in $(seq 120); do
		echo "int __attribute__((noinline)) f$i(int a) { for (int i = 0; i < a % 7; i++) { a += i * 5; a ^= i << 3; a += a / (i + 1); } return a * 3; }"
	done
	echo 'int main(int n, char **v) { (void)v;'
	for i in $(seq 120); do echo "n += f$i(n);"; done
	printf '%s\n' 'return printf("%d\n", n) < 0; }'
} >some.c
gcc -O1 -fPIC -c some.c -o some.o && gcc -O1 -fno-pic -c some.c -o some.fixed.o

# --- an alignment above a page: the loader places a program by it
alignments() { readelf -lW "$1" | awk '$1 == "LOAD" { print $NF }' | sort -u; }
for ld in bfd gold; do
	try layout/large-pages $ld some.o -pie -Wl,--emit-relocs,-z,max-page-size=0x200000,-z,common-page-size=4096 || continue
	check layout/large-pages/$ld/alignment "$(alignments out | tr '\n' ' ')" test "$(alignments out)" = 0x200000
done

finish
