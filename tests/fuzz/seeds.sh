#!/bin/bash
# seeds.sh OUT: makes the seed corpus: OUT/HARNESS/*, cut from small programs (seeds.py), and the regressions of
# tests/fuzz/regress as bytes.  What a compiler or linker at hand cannot do is left out.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
ICFOLD=${ICFOLD:-build/icfold}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
files=()

# seed NAME COMPILER FLAG...: a program; folded if that works.
seed() {
	local name=$1 cc=$2
	shift 2
	command -v "$cc" >/dev/null 2>&1 || return
	"$cc" "$here/seed.cc" -O2 -fno-pic -falign-functions=32 -ffunction-sections -fno-stack-protector -Wl,--emit-relocs -nostdlib -static -no-pie \
		-Wl,--unresolved-symbols=ignore-all -Wl,-z,noseparate-code -Wl,--build-id "$@" -o "$work/$name" 2>/dev/null || return
	"$ICFOLD" -q --emit-relocs "$work/$name" -o "$work/$name.folded" 2>/dev/null || rm -f "$work/$name.folded"
	files+=("$work/$name")
}
low=-Wl,-Ttext=0x1000
seed dwarf5 g++ -g $low -fno-exceptions
seed dwarf4 g++ -gdwarf-4 -fdebug-types-section $low -fno-exceptions
seed dwarf3 g++ -gdwarf-3 -O1 $low -fno-exceptions
seed dwarf2 g++ -gdwarf-2 -gstrict-dwarf $low -fno-exceptions -fno-asynchronous-unwind-tables
seed dwarf64 g++ -gdwarf-5 -gdwarf64 $low -fno-exceptions
seed macros g++ -g3 $low -fno-exceptions -fno-rtti
seed except g++ -g $low -Wl,--no-dynamic-linker
seed plain g++ -g0 -fno-exceptions
seed pie g++ -g0 -fPIE -static-pie -fno-exceptions
seed zlib g++ -g -gz=zlib $low -fno-exceptions
seed zgnu g++ -g -gz=zlib-gnu $low -fno-exceptions
seed gdbindex g++ -g -ggnu-pubnames -fuse-ld=gold -Wl,--gdb-index -fno-exceptions
seed clang clang++ -gdwarf-5 $low -fno-exceptions
seed clang4 clang++ -gdwarf-4 -O1 $low -fno-exceptions
seed names clang++ -gdwarf-5 -gpubnames -glldb $low -fno-exceptions
seed lldindex clang++ -gdwarf-5 -ggnu-pubnames -fuse-ld=lld -Wl,--gdb-index -fno-exceptions
seed zstd clang++-19 -g -gz=zstd $low -fno-exceptions
if gcc -nostartfiles -nostdlib -static -Wl,--unresolved-symbols=ignore-all -Wl,--emit-relocs "$here/../../fixtures/calls_gcc/calls.S" -o "$work/gcctables" 2>/dev/null; then
	files+=("$work/gcctables")
fi
python3 "$here/seeds.py" "$here/fuzz.c" "$out" "${files[@]}"
