#!/bin/bash
# a64.sh CHECK_A64 [FILE-OR-DIRECTORY...]: runs check_a64 (see a64.c) over random words and every AArch64 ELF file below the given
# directories, by default those of Debian's arm64 packages (tests/lib/arm64.sh; ARM64 is their folder).  GNU binutils judges, then LLVM
# 16 or later if it is there.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib/arm64.sh
. "$ROOT/tests/lib/arm64.sh"
program=${1:?usage: a64.sh CHECK_A64 [FILE-OR-DIRECTORY...]}
shift
if ! have aarch64-linux-gnu-objdump; then
	echo "a64: no aarch64-linux-gnu-objdump (binutils-aarch64-linux-gnu)" >&2
	exit 1
fi
if [ $# = 0 ]; then
	ARM64=${ARM64:-$BUILD/arm64}
	arm64_system "$ARM64" || exit 1
	set -- "$ARM64/tree"
fi
RANDOM_WORDS=${RANDOM_WORDS:-20000000}
# One run: a word that several files have is compared once.
judge() { find "$@" -type f -size +3k -print0 2>/dev/null | xargs -0 -s 1900000 "$program" --random "$RANDOM_WORDS" "${options[@]}"; }
options=()
judge "$@" || exit 1
for llvm in llvm-objdump llvm-objdump-{19,18,17,16}; do
	version=$($llvm --version 2>/dev/null | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
	[ "${version:-0}" -ge 16 ] || continue
	options=(--aliases)
	LLVM_OBJDUMP=$llvm OBJDUMP=$ROOT/tests/judges/a64_llvm.sh judge "$@"
	exit
done
echo "a64: no LLVM 16 or later: not asked"
