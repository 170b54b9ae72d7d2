# a64.sh: what the suites for AArch64 share: the tools, macros for assembler, folding, and what was folded.  Sourced, behind lib.sh.
# shellcheck shell=bash
# shellcheck source=tests/lib/elf.sh
. "$TESTS/lib/elf.sh"

# a64_suite NAME: begins the suite, in its work folder; without cross compilers and qemu it ends.
a64_suite() {
	local bad
	need_tool "$1"
	make_work
	always_fold
	bad=$(use_target aarch64)
	[ -z "$bad" ] || { skip "$1" "$bad"; finish; }
	use_target aarch64
	cd "$WORK" || exit 1
	cp "$TESTS/lib/a64.inc" macros.s
}

# main_of NAME...: a program that calls these functions.
main_of() {
	echo '#include <stdio.h>'
	printf 'extern __attribute__((visibility("hidden"))) long %s(long);\n' "$@"
	echo 'int main(void) {'
	printf 'printf("%%ld\\n", %s(7));\n' "$@"
	echo 'return 0; }'
}

# fold_to FILE MODE: folds FILE into FILE.MODE, and proves it.
fold_to() {
	local file=$1 mode=$2
	if ! "$ICFOLD" -q --icf="$mode" "$file" -o "$file.$mode" >"$file.log" 2>&1; then
		not_ok "$file/$mode" "icfold: $(first_line "$file.log")"
	elif ! "$ICFOLD" verify --icf="$mode" "$file" "$file.$mode" >"$file.verdict" 2>&1; then
		not_ok "$file/$mode" "verify: $(grep ': ' "$file.verdict" | grep -v '^symb' | head -n 1 | cut -c 1-200)"
	else
		return 0
	fi
	return 1
}
# run_both FILE [MODE]: fold_to, then compares what both print.
run_both() {
	local file=$1 mode=${2:-safe}
	fold_to "$file" "$mode" || return
	if ! run_program "$file.want" pie "./$file"; then
		not_ok "$file/$mode" "unfolded, it ends with $?"
	elif ! run_program "$file.got" pie "./$file.$mode"; then
		not_ok "$file/$mode" "folded, it ends with $?"
	elif ! cmp -s "$file.want" "$file.got"; then
		not_ok "$file/$mode" "$(diff "$file.want" "$file.got" | sed -n 2,3p | tr '\n' ' ')"
	else
		ok "$file/$mode"
	fi
}

# all_folded FILE: the names of the folded functions, "one, two, ".  folded FILE NAME...: are these among them?
all_folded() { "$ICFOLD" dump --groups "$1" 2>/dev/null | awk '$1 == "folded" { printf "%s ", $4 }'; }
folded() {
	local list name
	list=$(all_folded "$1")
	shift
	for name; do [[ " $list" == *" $name, "* ]] || return 1; done
}
