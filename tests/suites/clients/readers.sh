#!/bin/bash
# readers.sh: programs that read files: names and lines of addresses, symbols, types, and checkers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/clients.sh
. "$TESTS/lib/clients.sh"
start_suite clients python3 jq

# equal READER MODE COMMAND...: prints the same of both programs.
equal() {
	local reader=$1 mode=$2
	shift 2
	if ! have "$1"; then skip "clients/$reader" "no $1"; return; fi
	(cd "$CONFIG/plain" && limit 60 "$@") >"$reader.want" 2>/dev/null
	(cd "$CONFIG/$mode" && limit 60 "$@") >"$reader.have" 2>/dev/null
	if [ ! -s "$reader.want" ]; then skip "clients/$reader/$CONFIG-$mode" "it says nothing of the unfolded program"; return; fi
	check "clients/$reader/$CONFIG-$mode" "$(diff "$reader.want" "$reader.have" | sed -n 2,4p | tr '\n' ' ' | cut -c 1-200)" cmp -s "$reader.want" "$reader.have"
}
symbol_names() { nm --defined-only "$1" | awk '{ print $NF }' | sort | uniq -c; }
types_of() { pahole "$1" && pfunct "$1" | sort; }
# no_complaint READER MODE PATTERN COMMAND...: prints no more lines with PATTERN of the folded program.
no_complaint() {
	local reader=$1 mode=$2 pattern=$3 f
	shift 3
	if ! have "$1"; then skip "clients/$reader" "no $1"; return; fi
	for f in plain "$mode"; do
		(cd "$CONFIG/$f" && limit 10 "$@" 2>&1 || [ $? != 124 ] || echo "does not end") | grep -E "$pattern|^does not end$" | sed -E 's/0x[0-9a-f]+|[0-9]+/N/g; s/<[^>]*>//g' | sort | uniq -c >"$reader.$f"
	done
	if grep -q 'does not end' "$reader.plain"; then skip "clients/$reader/$CONFIG-$mode" "it does not end on the unfolded program"; return; fi
	new_complaints "$reader.plain" "$reader.$mode" >"$reader.new"
	check "clients/$reader/$CONFIG-$mode" "$(head -n 3 "$reader.new" | tr '\n' ' ' | cut -c 1-200)" test ! -s "$reader.new"
}
# addresses MODE READER...
addresses() {
	local mode=$1 r tool
	shift
	for r; do
		case $r in gdb_symbol) tool=gdb ;; eu_addr2line) tool=eu-addr2line ;; llvm_symbolizer_* | gsymutil_*) tool=${r//_/-} tool=${tool/gsym/llvm-gsym} ;; *) tool=$r ;; esac
		if ! have "$tool"; then skip "clients/$r" "no $tool"; continue; fi
		compare_places "$r" "$mode" none
	done
}
tables() { # MODE
	local rc
	no_complaint elflint "$1" . eu-elflint --gnu-ld -q none
	no_complaint dwarfdump "$1" 'ERROR:|WARN' dwarfdump -ka none
	# LLVM's check of call sites does not end at those of GCC in lexical blocks, folded or not.
	case $CONFIG in clang*) no_complaint llvm_dwarfdump "$1" 'error|warning' llvm-dwarfdump --verify none ;; esac
	equal pahole "$1" bash -c "$(declare -f types_of); types_of none"
	equal nm "$1" bash -c "$(declare -f symbol_names); symbol_names none"
	if ! have abidiff; then
		skip clients/abidiff "no abidiff"
	else
		limit 60 abidiff "$CONFIG/plain/none" "$CONFIG/$1/none" >abidiff.out 2>&1
		rc=$?
		check "clients/abidiff/$CONFIG-$1" "$(head -n 3 abidiff.out | tr '\n' ' ')" test $rc = 0
	fi
}
# files MODES (behind config)
files() {
	local m
	if ! { objects && link none none -rdynamic; } >log 2>&1; then skip "clients/readers/$CONFIG" "does not build: $(first_line log)"; return; fi
	for m in $1; do
		if ! fold "$m" none; then not_ok "clients/fold/$CONFIG-$m" "$(first_line log)"; continue; fi
		if full || [ "${m#split-}" = all ]; then
			addresses "$m" addr2line eu_addr2line llvm_symbolizer_14 llvm_symbolizer_19 gdb_symbol
		else
			addresses "$m" addr2line llvm_symbolizer_14
		fi
		case $m in split-*) ;; *) addresses "$m" gsymutil_14 gsymutil_19; tables "$m" ;; esac
	done
}
if full; then
	for c in gcc clang; do
		for d in 4 5; do
			for r in yes no; do
				config "$c-$d-relocs-$r" $c $d $r && files "safe all inplace split-safe split-all"
			done
		done
	done
else
	config gcc-5-relocs gcc 5 yes && files "safe all split-all"
	config clang-4-norelocs clang 4 no && files "all inplace"
fi
finish
