#!/bin/bash
# library.sh: libicfold as its users get it: installed, found by pkg-config, linked shared and static, from C, C++ and Python, in threads
# and in a crashed process.  Names are compared with llvm-symbolizer's of the unfolded program.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite library gcc
to=$PWD/prefix
# `make check` has built the rest of the tree in its own place.
if ! (cd "$ROOT" && make -s -j2 install BUILD="$BUILD" PREFIX="$to" GDBINIT_DIR=) >log 2>&1; then not_ok library/install "$(tail -n 1 log)"; finish; fi
export LD_LIBRARY_PATH=$to/lib PKG_CONFIG_PATH=$to/lib/pkgconfig
lib=$to/lib/libicfold.so.1

# --- what it shows of itself ------------------------------------------------------------------------------------------------
if nm -D --defined-only "$lib" | awk '$2 != "A" && $3 !~ /^icfold_[a-z_]*@@ICFOLD_1$/ { bad = 1 } END { exit bad }'; then ok library/exports; else not_ok library/exports "$(nm -D --defined-only "$lib" | grep -v ' icfold_' | head -n 3 | tr '\n' ' ')"; fi
check library/static/exports "$(nm "$to/lib/libicfold.a" | awk '$2 ~ /^[TDBRW]$/ { print $3 }' | grep -v '^icfold_' | head -n 3)" \
	[ -z "$(nm "$to/lib/libicfold.a" | awk '$2 ~ /^[TDBRW]$/ { print $3 }' | grep -v '^icfold_')" ]
check library/soname "$(readelf -d "$lib" | grep -i soname)" [ "$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" = libicfold.so.1 ]
# Each function of the header is exported and in the manual page, and no other.
sed -n 's/^ICFOLD_API.*[ *]\(icfold_[a-z_]*\)(.*/\1/p' "$to/include/icfold.h" | sort >header
nm -D --defined-only "$lib" | sed -n 's/.* T \(icfold_[a-z_]*\)@.*/\1/p' | sort >exported
sed -n 's/^\.Fn \(icfold_[a-z_]*\).*/\1/p; s/^\.Fo \(icfold_[a-z_]*\).*/\1/p' "$ROOT/man/icfold.3" | sort -u >manual
check library/header "$(diff header exported | head -n 3)" cmp -s header exported
check library/manual "$(diff header manual | head -n 3)" cmp -s header manual

# --- users ------------------------------------------------------------------------------------------------------------------
echo '#include <icfold.h>
int main(void) { return icfold_version()[0] == 0; }' >header.c
for c in "gcc -std=c99 -pedantic" "gcc -x c++ -std=c++11 -pedantic" "clang -std=c99 -pedantic" "clang -x c++ -std=c++11 -pedantic"; do
	have "${c%% *}" || continue
	# shellcheck disable=SC2086
	if $c -Wall -Wextra -Werror -I"$to/include" header.c -o header.out -L"$to/lib" -licfold 2>err && ./header.out; then ok "library/header/$(tr -d ' ' <<<"$c")"; else not_ok "library/header/$c" "$(first_line err)"; fi
done
if have pkg-config; then
	read -ra flags < <(pkg-config --cflags --libs icfold)
	read -ra all < <(pkg-config --static --libs icfold 2>err)
else
	flags=(-I"$to/include" -L"$to/lib" -licfold) all=(-licfold -lz -lzstd -lpthread -ldl)
fi
static=("$to/lib/libicfold.a")
for f in "${all[@]}"; do case $f in -licfold | -L*) ;; *) static+=("$f") ;; esac; done
if gcc -Wall -Werror "$FIXTURES/library/abi.c" -o abi "${flags[@]}" 2>err && ./abi; then ok library/abi; else not_ok library/abi "$(first_line err)"; fi
# What abidiff says of the first release's interface, which is kept as text:
# abidw --headers-dir icf/lib --no-corpus-path --no-comp-dir-path --no-show-locs --exported-interfaces-only --drop-private-types
#       --drop-undefined-syms --type-id-style hash libicfold.so.1
if have abidiff && [ "$MACHINE" = x86_64 ] && readelf -SW "$lib" | grep -q '\.debug_info'; then
	abi=$FIXTURES/library/libicfold.abi
	same_abi() { abidiff --no-added-syms "$1" "$lib" >abidiff.log 2>&1; }
	same_abi "$abi"
	rc=$?
	check library/abidiff "status $rc: $(head -n 3 abidiff.log | tr '\n' ' ')" test $rc = 0
	for change in "s/icfold_level'/icfold_layer'/" "/name='line'/s/8f92235e/b59d7dce/" "s/layout-offset-in-bits='192'/layout-offset-in-bits='224'/" "s/name='icfold_answer' size-in-bits='256'/name='icfold_answer' size-in-bits='192'/"; do
		sed "$change" "$abi" >other.abi
		cmp -s other.abi "$abi" || same_abi other.abi
		rc=$?
		check "library/abidiff-judge $change" "not noticed" [ $rc != 0 ]
	done
else
	skip library/abidiff "no abidiff, or no debug information"
fi
gcc -g -Wall "$FIXTURES/library/look.c" -o look "${flags[@]}" -pthread 2>err || { not_ok library/look "$(first_line err)"; finish; }
if gcc -g "$FIXTURES/library/look.c" -o look.static -I"$to/include" "${static[@]}" -pthread 2>err; then ok library/static; else not_ok library/static "$(first_line err)"; fi

# A folded program, and a stack in functions that share their code.
if ! g++ -g -O1 -fno-omit-frame-pointer -ffunction-sections -Wl,--emit-relocs "$FIXTURES/log/report.cc" -o report -pthread || ! "$ICFOLD" -q --icf=all report -o report.folded; then
	not_ok library/report "does not build or fold"
	finish
fi
places() { sed -n 's/.*(+\(0x[0-9a-f]*\)).*/\1/p' | head -n 4; }
./report trace | places >unfolded.places
./report.folded trace | places >folded.places
mapfile -t at <folded.places
./look report.folded "${at[@]}" >shown
# The judge, for the unfolded program: callers one byte earlier.
{ sed -n 1p unfolded.places; sed -n '2,$p' unfolded.places | while read -r a; do printf '0x%x\n' $((a - 1)); done; } >asked
if judge=$(command -v llvm-symbolizer-19 || command -v llvm-symbolizer); then
	"$judge" --basenames -e report <asked | awk 'NF { if (n++ % 2) { sub(/:[0-9]+$/, ""); print name, $0 } else name = $0 }' >want
	if cmp -s <(sed 's/ inlined$//' shown) want; then ok library/stack; else not_ok library/stack "$(diff shown want | head -n 3 | tr '\n' '|')"; fi
else
	skip library/stack "no llvm-symbolizer"
fi
check library/static/stack "$(./look.static report.folded "${at[@]}" | diff - shown | head -n 2)" cmp -s <(./look.static report.folded "${at[@]}") shown
check library/memory "$(./look -m report.folded "${at[@]}" | head -n 2)" [ "$(./look -m report.folded "${at[@]}" | sed 's,[^ ]*/,,' )" = "$(cat shown)" ]
./look report.folded "${at[1]}" >lone
check library/undecided "$(cat lone)" [ "$(grep -c '^perhaps int report<' lone)" = 2 ]

# --- broken files: a message, no output of the library's own ----------------------------------------------------------------
head -c 3000 report.folded >short
echo text >text
for f in short text /nonexistent .; do
	out=$(./look $f 0x10 2>err)
	if [ $? = 1 ] && [ "$(wc -l <<<"$out")" = 1 ] && ! [ -s err ]; then ok "library/broken/$f"; else not_ok "library/broken/$f" "$out $(first_line err)"; fi
done
./look -n 2>err
rc=$?
check library/null "status $rc" test $rc = 0

# --- threads, memory ----------------------------------------------------------------------------------------------------------
objdump -d --no-show-raw-insn report.folded | sed -n 's/^ *\([0-9a-f]*\):.*/\1/p' >addresses
out=$(./look -t 16 report.folded <addresses)
if [ "${out:-0}" -gt 1000 ]; then ok "library/threads ($(wc -l <addresses) addresses, 16 threads)"; else not_ok library/threads "$out"; fi
python3 -c 'import random, sys
r = random.Random(20)
at = r.sample(open(sys.argv[1]).read().split(), 60)
for _ in range(2000):
    print("\n".join(r.choices(at, k=30)) + "\n")' addresses >stacks
# What a handle remembers is what a new one finds.
head -n 620 stacks >few
for i in $(seq 20); do sed -n "$((31 * i - 30)),$((31 * i))p" few | ./look -s report.folded; done | awk '{ s += $1 } END { print s }' >sum
check library/stacks "$(cat sum) bytes of names one by one, $(cat few few few | ./look -s report.folded) three times together" \
	[ "$(($(cat sum) * 3))" = "$(cat few few few | ./look -s report.folded)" -a "$(cat sum)" -gt 5000 ]
# 2,000 stacks of 30 levels are no more work than with the command: what one level needs is found once.
instructions() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null <stacks | sed -n 's/.* Collected : \([0-9]*\)$/\1/p'; }
a='' b=''
if have valgrind; then a=$(instructions ./look -s report.folded) b=$(instructions "$ICFOLD" symbolize --stack -e report.folded); fi
if [ "$a" ] && [ "$b" ]; then
	check library/stacks/work "$a instructions, the command $b" [ "$a" -lt "$((b * 3 / 2))" ]
else
	skip library/stacks/work "no valgrind, or it cannot run what is instrumented"
fi
# Each allocation fails: the whole answer, or the status that says so, and no output of the library's own.
if "${CC:-gcc}" -O2 -fno-builtin -shared -fPIC "$TESTS/mutate/fail_alloc.c" -o fail_alloc.so -ldl 2>err; then
	n=0 bad=
	FAIL_ALLOC_COUNT=count LD_PRELOAD=$PWD/fail_alloc.so ./look report.folded "${at[@]}" >out
	for k in $(seq "$(cat count)"); do
		for more in '' +; do
			FAIL_ALLOC=$k$more LD_PRELOAD=$PWD/fail_alloc.so ./look report.folded "${at[@]}" >out 2>err
			rc=$?
			if [ -s err ] || ! { [ $rc = 2 ] || { [ $rc = 0 ] && cmp -s out shown; }; }; then bad+=" $k$more: status $rc $(first_line err)"; fi
			n=$((n + (rc == 2)))
		done
	done
	check "library/alloc ($(cat count) allocations)" "$n runs out of memory;${bad:0:200}" [ -z "$bad" -a "$n" -gt 50 ]
else
	not_ok library/alloc "$(first_line err)"
fi
if have valgrind; then
	if valgrind -q --leak-check=full --errors-for-leak-kinds=all --error-exitcode=9 ./look report.folded "${at[@]}" >out 2>err; then ok library/valgrind; else not_ok library/valgrind "$(head -n 3 err | tr '\n' ' ')"; fi
else
	skip library/valgrind "no valgrind"
fi
if [ "${LIBRARY:-}" = full ]; then
	# shellcheck disable=SC2046
	if (cd "$ROOT" && make -s -j2 lib BUILD="$OLDPWD/tsan" CFLAGS="-O1 -g -fsanitize=thread") >log 2>&1 &&
		gcc -g -fsanitize=thread -I"$to/include" "$FIXTURES/library/look.c" -o look.tsan "$PWD/tsan/libicfold.a" "${static[@]:1}" -pthread 2>>log; then
		for _ in $(seq 200); do cat addresses; done >many
		if setarch -R ./look.tsan -t 16 report.folded <many >out 2>err; then ok "library/tsan ($(($(wc -l <many) * 16)) look-ups)"; else not_ok library/tsan "$(first_line err)"; fi
	else
		not_ok library/tsan "$(tail -n 1 log)"
	fi
fi

# --- in a crashed process -----------------------------------------------------------------------------------------------------
if g++ -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wl,--emit-relocs "$FIXTURES/library/handler.cc" -o handler "${flags[@]}" 2>err && "$ICFOLD" -q --icf=all handler -o handler.folded; then
	./handler >want
	./handler.folded >have
	want=$(cut -d' ' -f1-2 want | head -n 3 | tr '\n' ' ')
	if [ "$want" = "int use<Late>(Late*) late(Late*) line main line " ] || grep -q '^int use<Late>' want; then
		if cmp -s want have; then ok library/handler; else not_ok library/handler "$(diff want have | head -n 3 | tr '\n' '|')"; fi
		kept=$(addr2line -Cfe handler.folded "0x$(symbol_value handler.folded _Z3useI4LateEiPT_)" | head -n 1)
		case $kept in *Early*) ok library/handler/contrast ;; *) skip library/handler/contrast "the function that crashes is the kept one" ;; esac
	else
		not_ok library/handler "the unfolded program prints: $(head -n 2 want | tr '\n' '|')"
	fi
else
	not_ok library/handler "$(first_line err)"
fi

# --- Python -------------------------------------------------------------------------------------------------------------------
if have python3; then
	PYTHONPATH=$to/share/icfold python3 - report.folded "${at[@]}" >have 2>err <<'EOF2'
import sys, icfold
at = [int(a, 16) for a in sys.argv[2:]]
with icfold.File(sys.argv[1], flags=icfold.BASENAMES) as f:
    assert f.is_folded and not f.warning
    for l in f.stack(at):
        for k in l.frames:
            print("%s %s:%d%s" % (k.function, k.file, k.line, " inlined" if k.inlined else ""))
    assert not f.address(at[1]).decided and len(f.address(at[1]).candidates) == 2
    assert f.address(0).frames == []
    n = f.build_id
with open(sys.argv[1], "rb") as opened:
    for what in (opened.fileno(), opened.read()):
        assert icfold.File(what).build_id == n
for bad in ("/nonexistent", b"text", 999):
    try:
        icfold.File(bad)
    except icfold.Error as e:
        assert str(e)
    else:
        assert False, bad
EOF2
	if cmp -s have shown && ! [ -s err ]; then ok library/python; else not_ok library/python "$(tail -n 1 err; diff have shown | head -n 2 | tr '\n' '|')"; fi
	# What C would take otherwise than it is meant, or not survive, is an exception.
	misuse() { # NAME CODE
		PYTHONPATH=$to/share/icfold python3 - report.folded "${at[@]}" >have 2>err <<EOF3
import sys, icfold
at = [int(a, 16) for a in sys.argv[2:]]
def expect(kind, *uses):
    for k, use in enumerate(uses):
        try: got = use()
        except kind: continue
        sys.exit("use %d is %r and no %s" % (k, got, kind.__name__))
f = icfold.File(sys.argv[1])
$2
EOF3
		local rc=$?
		check "$1" "status $rc: $(tail -n 1 err)" test $rc = 0
	}
	misuse library/python/closed "
with f: assert f.is_folded
f.close()
expect(ValueError, lambda: f.is_folded, lambda: f.build_id, lambda: f.warning, lambda: f.stack(at), lambda: f.stack([]), lambda: f.address(1), f.__enter__)"
	misuse library/python/zero-byte "
name = sys.argv[1]
expect(ValueError, lambda: icfold.File(name + '\\0x'), lambda: icfold.File(name + '\\0'), lambda: icfold.File(name, debug_file=name + '\\0x'),
       lambda: icfold.File(name, debug_dir='/\\0x'), lambda: icfold.File(name, sysroot=b'/\\0x'))"
	misuse library/python/range "
import os
n = os.open(sys.argv[1], os.O_RDONLY)
expect(OverflowError, *(lambda a=a: f.address(a) for a in (2**64 + at[1], -1, 2**64, 2**200)), *(lambda a=a: f.stack(at, [a]) for a in (-1, 2**64)),
       lambda: icfold.File(2**32 + n))
assert icfold.File(n).address(at[1]).frames
for a in (0, 2**63, 2**64 - 1): f.address(a)
f.stack(at, [None, 2**64 - 1, 0, 1])"
	PYTHONPATH=$to/share/icfold python3 -m icfold report.folded 1ffffffffffffffff >have 2>&1
	check library/python/main-range "$(first_line have)" grep -qE '^icfold: report.folded: 36893488147419103231 is not between' have
	PYTHONPATH=$to/share/icfold python3 -m icfold report.folded "${at[@]}" >have 2>&1
	if [ "$(grep -c ' at .*report.cc:' have)" = 4 ]; then ok library/python/main; else not_ok library/python/main "$(first_line have)"; fi
fi
finish
