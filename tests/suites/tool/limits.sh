#!/bin/bash
# limits.sh: programs at the limits of ELF and DWARF are folded right, or refused with one line.  LIMITS=full: also 2^24 symbols, code
# of 1 GiB, and debug sections of 4 GiB (5 GB of disk, 9 GB of memory).  ONLY="symbols code strings units": of these, some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
x86_only limits
start_suite limits python3

made() { python3 "$TESTS/growth/huge.py" "$@" 2>err && chmod +x "$1"; } # FILE OPTION=N...
# right NAME OPTION=N...: the program with so many of these is folded, works, is proved, audited and looked up.
right() {
	local name=$1 rc
	shift
	made prog "$@" || { not_ok "limits/$name" "$(first_line err)"; return; }
	check "limits/$name/program" "exit status" ./prog
	if ! "$ICFOLD" -q --icf=all prog -o folded 2>err; then
		not_ok "limits/$name/fold" "$(first_line err)"
		return
	fi
	check "limits/$name/folded" "exit status" ./folded
	check "limits/$name/smaller" "as large as before" [ "$(stat -c %s folded)" -lt "$(stat -c %s prog)" ]
	"$ICFOLD" verify --icf=all prog folded >out 2>err
	rc=$?
	check "limits/$name/verify" "rc $rc: $(tail -n 2 out | tr '\n' ' ')$(first_line err)" [ $rc = 0 ]
	"$ICFOLD" audit prog >out 2>err
	check "limits/$name/audit" "$(first_line err)$(first_line out)" grep -q "^prog: $((${1#*=} + 2)) functions" out
	out=$("$ICFOLD" symbolize -e folded 0x401000 2>&1 | head -n 1)
	check "limits/$name/symbolize" "$out" [ "$out" = _start ]
	rm -f prog folded
}
# refused NAME TEXT COMMAND...: COMMAND says TEXT in one line, and leaves no file.
refused() {
	local name=$1 text=$2 rc
	shift 2
	"$@" >out 2>err
	rc=$?
	check "limits/$name" "rc $rc, $(wc -l <err) lines: $(first_line err)" [ "$((rc != 0)):$(wc -l <err):$(grep -c "$text" err)" = 1:1:1 ]
	check "limits/$name/no-file" "a file is left" [ ! -e folded ]
}

# Section numbers from 0xff00 on stand in section 0, not in the header.  With .debug_icfold the output has one section more, and
# it lacks the relocations.
for n in 65274 65275 65276; do right "empty sections $n" functions=100 empty=$n; done
right "fewer sections" functions=300 sections=300 empty=64900
# Symbols of more sections need a table of their own.
made prog functions=65400 sections=65400
for c in "audit prog" "--icf=all -q prog -o folded"; do
	# shellcheck disable=SC2086
	refused "far sections/${c%% *}" 'more than 65,279 sections are not supported' "$ICFOLD" $c
done
# Section 65535 is one of relocations.
out=$("$ICFOLD" symbolize -e prog "$(printf '%x' $((0x401400 + 65399 * 64)))" 2>&1 | head -n 1)
check "limits/far sections/symbolize" "$out" [ "$out" = f000ff77 ]
rm -f prog

# Debug sections of 4 GiB, nearly all of which is a hole in the file.
cat >wide.c <<'END'
#include <stdio.h>
static inline __attribute__((always_inline)) int in(int x)
{
	int r = 0;
	for (int i = 0; i < x; i++) { int k = i * x; if (k & 3) r += k; else { int z = r ^ k; r -= z; } }
	return r;
}
#define F(n, v) __attribute__((noinline)) int n(int a) { int s = in(a), t = in(s & 7); if (s > v) printf("%d\n", s); return s * 3 + t; }
F(one, 3)
F(two, 3)
int main(int argc, char **argv) { (void)argv; printf("%d %d\n", one(argc + 4), two(argc + 5)); return 0; }
END
wide() { # SECTION OPTION...
	gcc -O2 "${@:2}" -ffunction-sections -Wl,--emit-relocs wide.c -o prog 2>err && python3 "$TESTS/growth/widen.py" prog "$1" $((1 << 32)) 2>err
}
for s in info rnglists loclists aranges; do
	if wide .debug_$s -gdwarf-5; then
		refused "wide/.debug_$s" "(.debug_$s, offset 0x" "$ICFOLD" -q --icf=all prog -o folded
	else
		skip "limits/wide/.debug_$s" "$(first_line err)"
	fi
done
[ "${LIMITS:-}" = full ] || finish

ONLY=${ONLY:-symbols code strings units}
wanted() { case " $ONLY " in *" $1 "*) ;; *) false ;; esac; }
# large NAME: prog with its debug information is folded right.
large() {
	"$ICFOLD" -q --icf=all prog -o folded 2>err
	check "limits/wide/$1" "$(first_line err)" cmp -s want <(./folded)
	check "limits/wide/$1/verify" "different" "$ICFOLD" verify -q --icf=all prog folded
	out=$("$ICFOLD" symbolize -e folded "$(symbol_value folded two)" | sed -n 3p)
	check "limits/wide/$1/symbolize" "$out" [ "$out" = one ]
	rm -f folded
}

if wanted symbols; then right "symbols" functions=1000 symbols=$((1 << 24)); fi
if wanted code; then right "code" functions=$((1 << 20)) size=1024; fi
if wanted strings && wide .debug_str -gdwarf-5 -gdwarf64 && ./prog >want; then large .debug_str; fi
# Units of 64-bit DWARF beyond 4 GiB of .debug_info, behind one with a large block.
cat >block.s <<'END'
	.section .debug_abbrev,"",@progbits
abbrev:	.uleb128 1, 0x11
	.byte 0
	.uleb128 0x03, 0x08, 0x1c, 0x09, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long 0xffffffff
	.quad 2f - 1f
1:	.value 5
	.byte 1, 8
	.quad abbrev
	.uleb128 1
	.asciz "atHERE"
	.byte 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0
	.zero 16
2:
	.section .note.GNU-stack,"",@progbits
END
if wanted units; then
	if as block.s -o block.o && gcc -O2 -gdwarf-5 -gdwarf64 -ffunction-sections -Wl,--emit-relocs block.o wide.c -o prog 2>err &&
		python3 "$TESTS/growth/block.py" prog $((1 << 32)) 2>err && ./prog >want; then
		large ".debug_info of 64-bit DWARF"
	else
		skip "limits/wide/.debug_info of 64-bit DWARF" "$(first_line err)"
	fi
fi
finish
