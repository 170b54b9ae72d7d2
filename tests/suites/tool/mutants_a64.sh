#!/bin/bash
# mutants_a64.sh: a share of mutants.sh for AArch64: all kinds of its own, and of the others those of code, frames and symbols.
# ONLY=. runs all kinds, PLACES and FILES as there.
here=$(dirname "$0")
export TARGET=aarch64 PLACES=${PLACES:-2} FILES=${FILES:-1}
export ONLY=${ONLY:-'^(a64|call|tail|jump|inner|function|data|opcode|operand|last|fill|thunk|table|code|relative|symbolic|fde|cie|frame|lsda|symbol|folded|kept)'}
exec bash "$here/mutants.sh"
