#!/bin/sh
# a64_llvm.sh FILE: disassembles the words in FILE with LLVM, in the form that a64.c reads.  OBJDUMP=tests/judges/a64_llvm.sh makes
# check_a64 ask LLVM instead of GNU binutils (LLVM_OBJDUMP names the program).
for file; do :; done
object=$(mktemp) || exit 1
trap 'rm -f "$object"' EXIT
aarch64-linux-gnu-objcopy -I binary -O elf64-littleaarch64 --rename-section .data=.text,alloc,code,load,readonly,contents "$file" "$object" &&
	"${LLVM_OBJDUMP:-llvm-objdump}" -d -z -M no-aliases --mattr=+all "$object" | sed -n 's/ <_binary_[^>]*>//; s/<unknown>/.inst/; /^ *[0-9a-f]*: /p'
