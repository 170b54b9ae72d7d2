#!/bin/sh
# Runs check_decoder (see decoder.c) over every instruction form and every x86-64 ELF file of more than 7 KB below
# the given directories, by default this machine's programs and libraries.
#
#	decoder.sh CHECK_DECODER [FILE-OR-DIRECTORY...]
set -eu
program=${1:?usage: decoder.sh CHECK_DECODER [FILE-OR-DIRECTORY...]}
shift
[ $# -gt 0 ] || set -- /usr/bin /usr/sbin /usr/lib /usr/libexec
"$program" --forms
# xargs exits with 123 when any run found a difference
find "$@" -type f -size +7k -print0 2>/dev/null | xargs -0 -s 1000000 "$program"
