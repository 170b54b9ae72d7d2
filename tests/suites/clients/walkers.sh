#!/bin/bash
# walkers.sh: programs that print their own stacks, by libbacktrace, boost::stacktrace, libunwind, glibc and Rust's std.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/clients.sh
. "$TESTS/lib/clients.sh"
start_suite clients python3 jq
LIBBACKTRACE=$(gcc -print-file-name=libbacktrace.a)

# walker PROGRAM REPORT MODES FLAGS...
walker() {
	local p=$1 report=$2 modes=$3 m any=
	# The dynamic symbols are searched in the order of their hashes.
	case $p in execinfo | dladdr | boost_basic) any=1 ;; esac
	shift 3
	if ! link "$p" "$report" "$@" >log 2>&1; then
		skip "clients/$p/$CONFIG" "does not build: $(grep -m 1 -E 'error|cannot find' log | cut -c 1-160)"
		return
	fi
	for m in $modes; do
		if fold "$m" "$p"; then OTHER=$any compare own "$m" "$p"; else not_ok "clients/own/$CONFIG-$m/$p" "folding: $(first_line log)"; fi
	done
	[ "${CONTRAST:-}" = 1 ] && link_lld "$p" "$@" && contrast own "$p"
}
# walkers MODES (behind config)
walkers() {
	local m=$1
	if ! objects >log 2>&1; then skip "clients/walkers/$CONFIG" "does not build: $(first_line log)"; return; fi
	walker libbacktrace libbacktrace "$m" "$LIBBACKTRACE"
	walker syminfo libbacktrace "$m" -DSYMINFO "$LIBBACKTRACE"
	walker execinfo glibc "$m" -rdynamic
	walker dladdr glibc "$m" -DDLADDR -rdynamic -ldl
	# libunwind misreads debug files of objcopy: the names of the unfolded program are wrong.
	walker libunwind libunwind "$(tr ' ' '\n' <<<"$m" | grep -v split | tr '\n' ' ')" -lunwind
	walker boost_addr2line boost "$m" -DBOOST_STACKTRACE_USE_ADDR2LINE -no-pie -fno-pie -ldl
	walker boost_backtrace boost "$m" -DBOOST_STACKTRACE_USE_BACKTRACE "$LIBBACKTRACE" -ldl
	walker boost_basic boost "$m" -rdynamic -ldl
}
CONTRAST=1
if full; then
	for c in gcc clang; do
		for d in 4 5; do
			for r in yes no; do
				config "$c-$d-relocs-$r" $c $d $r && walkers "safe all inplace split-safe split-all"
			done
		done
	done
else
	config gcc-5-relocs gcc 5 yes && walkers "safe all"
	CONTRAST=
	config clang-4-norelocs clang 4 no && walkers "inplace split-all"
fi

# Rust: LLVM itself merges identical functions from -O2 on.
rust() { # NAME MODES
	local n=rust_$1 m
	CONFIG=rust
	mkdir -p rust/plain
	if ! rustc --edition 2021 -C opt-level=1 -g --crate-name panic -C link-arg=-Wl,--emit-relocs "$SOURCES/panic.rs" -o "rust/plain/$n" >log 2>&1; then
		skip "clients/rust" "does not build: $(first_line log)"
		return
	fi
	cp "rust/plain/$n" "rust/$n.full"
	[ "$1" = symbols ] && strip -g "rust/plain/$n"
	for m in $2; do
		fold "$m" "$n" && python3 "$JUDGE" truth "rust/$n.full" "rust/$m/$n.groups" >"rust/$m/$n.truth" && compare rust "$m" "$n"
	done
}
if have rustc; then
	rust debug "safe all"
	rust symbols "safe all"
else
	skip clients/rust "no rustc"
fi
finish
