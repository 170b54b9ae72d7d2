#!/bin/bash
# tracers.sh: programs that watch others run: debuggers, valgrind, tracers, profilers, probes.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/clients.sh
. "$TESTS/lib/clients.sh"
start_suite clients python3 jq

# watch READER TOOL MODE PROGRAM: compare, if the tool is there and says anything of the unfolded program.
watch() {
	local reader=$1 tool=$2 mode=$3 p=$4 base=plain
	case $mode in split-*) base="split" ;; esac
	if ! have "$tool"; then skip "clients/$reader" "no $tool"; return; fi
	[ -s "$CONFIG/$base/$p.$reader" ] || rows "$reader" $base "$p"
	if ! grep -q . "$CONFIG/$base/$p.$reader"; then
		skip "clients/$reader/$CONFIG-$mode" "$tool does not work here: $(tail -n 1 "$CONFIG/$base/$p.$reader.log" 2>/dev/null | cut -c 1-100)"
		return
	fi
	compare "$reader" "$mode" "$p"
}
stops() { # MODE
	watch gdb gdb "$1" none
	watch eu_stack eu-stack "$1" none
	full && watch lldb lldb "$1" none
	watch valgrind valgrind "$1" none
	case $1 in split-*) return ;; esac
	watch strace strace "$1" none
	SETS=1 watch ltrace ltrace "$1" none
	SETS=1 watch callgrind valgrind "$1" none
}
probes() { # MODE
	watch perf_probe perf "$1" none
	watch bpftrace bpftrace "$1" none
	SETS=1 watch perf perf "$1" none
	SETS=part watch perf_lines perf "$1" none
	fold "$1" heap && SETS=1 watch heaptrack heaptrack "$1" heap
}
programs() { # MODES (behind config)
	local m
	if ! { objects && link none none; } >log 2>&1; then skip "clients/tracers/$CONFIG" "does not build: $(first_line log)"; return; fi
	if full; then link heap heap; fi
	for m in $1; do
		if ! fold "$m" none; then not_ok "clients/fold/$CONFIG-$m" "$(first_line log)"; continue; fi
		stops "$m"
		if full; then case $m in split-*) ;; *) probes "$m" ;; esac; fi
	done
	fold drop none && watch valgrind valgrind drop none && SETS=1 watch callgrind valgrind drop none
	link_lld none && for m in gdb valgrind strace; do contrast $m none; done
	if link probe probe >log 2>&1; then
		for m in $1; do case $m in split-*) ;; *) fold "$m" probe && SETS=1 compare usdt "$m" probe ;; esac; done
	else
		skip "clients/usdt/$CONFIG" "no sys/sdt.h"
	fi
}
# gprof wants its own code in every function.
profiled() { # NAME RELOCS MODES
	local m
	config "$1" gcc 5 "$2"
	objects -pg && link none none -pg -no-pie || return
	export SETS=1
	for m in $3; do fold "$m" none && watch gprof gprof "$m" none && full && watch uftrace uftrace "$m" none; done
	unset SETS
}
if full; then
	for c in gcc clang; do
		for d in 4 5; do
			for r in yes no; do
				config "$c-$d-relocs-$r" $c $d $r && programs "safe all inplace split-safe split-all"
			done
		done
	done
	profiled gprof yes "safe all inplace"
else
	config gcc-5-relocs gcc 5 yes && programs "safe all"
	profiled gprof yes "safe all"
fi
# Valgrind looks for its replacements and wrappers among the symbols; nothing else names them.
mkdir -p "$WORK/wrap" && cd "$WORK/wrap" || exit 1
cat >wrap.c <<'END'
#include <stdio.h>
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define CALL(r, x) { OrigFn f; VALGRIND_GET_ORIG_FN(f); CALL_FN_W_W(r, f, x); }
#else
#define CALL(r, x) r = x;
#endif
__attribute__((noinline)) int apple(int x) { __asm__ volatile("" ::: "memory"); return x + 1; }
__attribute__((noinline)) int pear(int x) { __asm__ volatile("" ::: "memory"); return x * 2; }
int wrap_apple(int x) __asm__("_vgw00000ZU_NONE_apple"), wrap_pear(int x) __asm__("_vgw00000ZU_NONE_pear");
int wrap_apple(int x) { int r; CALL(r, x) return r + 100; }
int wrap_pear(int x) { int r; CALL(r, x) return r + 100; }
int main(void) { printf("%d %d\n", apple(1), pear(5)); return 0; }
END
for how in "-g -Wl,--emit-relocs" "-s -rdynamic"; do
	# shellcheck disable=SC2086
	gcc -O2 -fno-ipa-icf $how wrap.c -o wrap
	for options in --icf=safe --icf=all "--icf=all --gc-functions"; do
		# shellcheck disable=SC2086
		"$ICFOLD" -q --allow-growth $options wrap -o wrap.folded
		n=$({ nm -S wrap.folded; nm -DS wrap.folded; } 2>/dev/null | grep -E '^[0-9a-f]+ 0*[1-9a-f][0-9a-f]* . _vgw' | sort -u -k 1,1 | wc -l)
		check "clients/valgrind-wrappers $how $options" "$n functions of a size have the wrappers' names" test "$n" = 2
		if have valgrind && grep -q include.valgrind <(gcc -M wrap.c); then
			check "clients/valgrind-wrapped $how $options" "$(valgrind -q ./wrap.folded 2>&1 | head -n 1)" test "$(valgrind -q ./wrap.folded 2>&1)" = "102 110"
		fi
	done
done
finish
