#!/bin/bash
# symbols.sh: `icfold symbols`: what other programs' formats say of a program, folded and not, is what llvm-symbolizer says of the
# unfolded one and, of unwind rules, what readelf reads.  tests/judges/symfile.py has readers of the formats.
# SYMBOLS=full: ninja, protoc and sqlite, with time and memory.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite symbols python3 llvm-symbolizer-19 llvm-gsymutil-19 readelf
judge=$TESTS/judges/symfile.py
SOURCE=$FIXTURES/profile/called.cc

# judged LABEL FORMAT OLD NEW FILE LEAST: the judge agrees.
judged() {
	local said
	said=$(python3 "$judge" "$2" "$3" "$4" "$5" "$6" 2>&1)
	check "symbols/$1" "$(tail -n 3 <<<"$said" | tr '\n' ' ' | cut -c 1-400)" grep -q ' 0 wrong$' <<<"$said"
}
# both LABEL LEAST OLD NEW: all formats of the program OLD, and of NEW, which is OLD folded.
both() {
	local f p
	llvm-gsymutil-19 --convert="$3" --out-file="$3.gsym" --num-threads=1 --quiet >log 2>&1 || { skip "symbols/$1" "llvm-gsymutil: $(first_line log)"; return; }
	for f in breakpad gsym json; do
		for p in "$3" "$4"; do
			if "$ICFOLD" symbols --format="$f" "$p" -o out.sym 2>err && [ ! -s err ]; then
				judged "$1-$f-$([ "$p" = "$3" ] && echo unfolded || echo folded)" "$f" "$3" "$p" out.sym "$2"
			else
				not_ok "symbols/$1-$f" "$(first_line err)"
			fi
		done
	done
}
# build LABEL COMPILER FLAG...: LABEL.old, LABEL.new, of SOURCE.
build() {
	local n=$1
	shift
	have "$1" || { skip "symbols/$n" "no $1"; return 1; }
	"$@" -w -ffunction-sections -Wl,--emit-relocs "$SOURCE" -o "$n.old" >log 2>&1 && "$ICFOLD" -q --icf=all --allow-growth "$n.old" -o "$n.new" 2>>log && return
	not_ok "symbols/$n" "build: $(first_line log)"
	return 1
}
build gcc5 g++ -O2 -gdwarf-5 || finish
both gcc5 150 gcc5.old gcc5.new
build gcc4 g++ -O2 -gdwarf-4 -no-pie -fno-pic && both gcc4 150 gcc4.old gcc4.new
build clang clang++ -O2 -gdwarf-5 && both clang 150 clang.old clang.new
[ "$MACHINE" = aarch64 ] || { build arm aarch64-linux-gnu-g++ -O2 -g && both arm 150 arm.old arm.new; }

# The judge sees what is wrong.
"$ICFOLD" symbols --format=breakpad gcc5.new -o good.sym
# shellcheck disable=SC2016
for change in '/^INLINE 0/d' 's/^\([0-9a-f]* [0-9a-f]*\) \([0-9]*\) /\1 1\2 /' 's/^FUNC m/FUNC/' 's/^FUNC \([0-9a-f]* [0-9a-f]*\) 0 ma/FUNC \1 0 am/' \
	's/caller_a/caller_x/; s/caller_b/caller_a/; s/caller_x/caller_b/' 's/rsp 16/rsp 24/' 's/\.ra: 0/.ra: $rip/' '/^STACK CFI [0-9]/d' 's/^MODULE Linux x86_64 ./&0/'; do
	[ "$MACHINE" = x86_64 ] || continue
	sed "$change" good.sym >bad.sym
	cmp -s good.sym bad.sym && continue
	check "symbols/judge $change" "not noticed" bash -c '! python3 "$@" 2>&1 | grep -q " 0 wrong$"' - "$judge" breakpad gcc5.old gcc5.new bad.sym
done

# Formats that have call sites and merged functions are judged by them.
"$ICFOLD" symbols --format=json gcc5.new -o good.json
cat >change.py <<'END'
import json, sys
d = json.load(open("good.json"))
for f in d["functions"]:
    for m in f["members"][1:]:
        if sys.argv[1] == "lines":
            m["lines"].clear()
        for key in "name", "linkage_name":
            if sys.argv[1] == key:
                m[key] = f[key]
    for c in f["calls"]:
        if sys.argv[1] == "callees":
            c["callees"] = ["main"]
    for i in f["inlines"]:
        if sys.argv[1] == "inlines":
            i["call_line"] = 7
json.dump(d, open("bad.json", "w"))
END
for change in lines callees inlines name linkage_name; do
	python3 change.py $change
	check "symbols/judge-$change" "not noticed" bash -c '! python3 "$@" 2>&1 | grep -q " 0 wrong$"' - "$judge" json gcc5.old gcc5.new bad.json
done

# Lambdas and other names that demanglers spell differently: each is accepted in both spellings, and for itself alone.
cat >lambda.cc <<'END'
#include <cstdlib>
volatile long sink;
namespace { struct { int v; } unnamed; template <class T> __attribute__((noinline)) auto bump(T &t) -> decltype(t.v + 1) { return sink += t.v++; } }
template <class F> __attribute__((noinline)) long call(F f) { return f(3) + 1; }
template <class T> __attribute__((noinline)) T both(T n)
{
	auto first = [](T m) { return sink += m * 3; };
	auto second = [](T m) { return sink += m * 5; };
	return call(first) + call(second) + call([=](auto m) { return call([=](T k) { return sink += m + k + n; }); });
}
int main(int argc, char **) { return both<int>(argc) + both<long>(argc) + bump(unnamed) == 0; }
END
SOURCE=lambda.cc
if build lambda g++ -O2 -gdwarf-5 -std=c++14; then
	both lambda 60 lambda.old lambda.new
	for f in json breakpad; do
		"$ICFOLD" symbols --format=$f lambda.old -o lambda.$f
		for change in "s/'lambda0'/'lambda1'/" "s/'lambda'/'lambda0'/" "s/'lambda'(int)/'lambda'(long)/"; do
			sed "$change" lambda.$f >lambda.bad
			cmp -s lambda.$f lambda.bad || check "symbols/judge-$f $change" "not noticed" bash -c '! python3 "$@" 2>&1 | grep -q " 0 wrong$"' - "$judge" $f lambda.old lambda.old lambda.bad
		done
	done
fi

# Names of any kind.
objcopy --redefine-sym main="$(printf 'a"\\\n\377\033')" gcc5.old odd 2>log
for f in json breakpad gsym; do "$ICFOLD" symbols --format=$f odd -o odd.$f 2>err || not_ok "symbols/odd-$f" "$(first_line err)"; done
cat >odd.py <<'END'
import json
assert any(f["linkage_name"] == 'a"\\\n\ufffd\x1b' for f in json.load(open("odd.json"))["functions"])
text = open("odd.breakpad", "rb").read()
assert rb"\n\xff\x1b" in text
assert all(c == 10 or 32 <= c < 127 for c in text)
assert b'a"\\\n\xff\x1b' in open("odd.gsym", "rb").read()
END
check symbols/odd-names "$(grep -a '^FUNC.* a"' odd.breakpad)" python3 odd.py

# A debug file of its own: found, named, and read alone.  Its program has the unwind tables.
objcopy --only-keep-debug gcc5.new apart.debug && objcopy --strip-debug --add-gnu-debuglink=apart.debug gcc5.new apart 2>log
"$ICFOLD" symbols --format=breakpad apart 2>err | sed 1d >apart.sym
check symbols/debuglink "$(diff apart.sym <(sed 1d good.sym) | head -n 3 | tr '\n' ' ')$(first_line err)" cmp -s apart.sym <(sed 1d good.sym)
mv apart.debug named.debug
"$ICFOLD" symbols --format=breakpad --debug-file=named.debug apart 2>err | sed 1d >apart.sym
check symbols/debug-file "$(first_line err)" cmp -s apart.sym <(sed 1d good.sym)
"$ICFOLD" symbols --format=breakpad named.debug 2>err | sed 1d >apart.sym
check symbols/debug-only "$(first_line err)" cmp -s apart.sym <(sed '1d; /^STACK/d' good.sym)

# Without debug information there are the symbols.
strip --strip-debug gcc5.old -o bare
"$ICFOLD" symbols --format=breakpad bare >bare.sym
check symbols/bare "$(grep -c ^PUBLIC bare.sym) symbols" [ "$(grep -c '^PUBLIC' bare.sym)" -ge 25 -a "$(grep -c '^FUNC' bare.sym)" = 0 -a "$(grep -c '^STACK' bare.sym)" -gt 20 ]

# Outputs are whole or not at all.
printf old >kept.sym
"$ICFOLD" symbols --format=breakpad /bin/false/x -o kept.sym 2>err
rc=$?
check symbols/missing "status $rc: $(first_line err)" [ $rc = 2 -a "$(cat kept.sym)" = old ]
"$ICFOLD" symbols --format=breakpad gcc5.old -o gcc5.old 2>err
rc=$?
check symbols/input "status $rc: $(first_line err)" [ $rc = 2 -a "$(head -c 4 gcc5.old | tail -c 3)" = ELF ]
"$ICFOLD" symbols --format=breakpad gcc5.old >/dev/full 2>err
rc=$?
check symbols/full "status $rc: $(first_line err)" [ $rc = 2 -a "$(wc -l <err)" = 1 ]
"$ICFOLD" symbols --format=breakpad "$SOURCE" 2>err >out.sym
rc=$?
check symbols/text "status $rc: $(first_line err)" [ $rc = 2 -a "$(wc -l <err)" = 1 -a ! -s out.sym ]

# A line program that is cut off, with sequences in another order than the code.
cat >cut.c <<'END'
int f(int), g(int), h(int);
int main(int n, char **v) { (void)v; return f(n) + g(n) + h(n); }
int f(int x) { return x + 1; }
int e(int x) { return x + 2; }
__attribute__((section(".text.unlikely"))) int g(int x) { return x * 3; }
__attribute__((section(".text.hot"))) int h(int x) { return x * 5; }
END
gcc -g -O1 -no-pie -ffunction-sections cut.c -o cut
python3 - <<'END'
b = bytearray(open('cut', 'rb').read())
import subprocess
off, size = [(int(p[4], 16), int(p[5], 16)) for p in (l.replace('[ ', '[').split() for l in subprocess.run(
    ['readelf', '-SW', 'cut'], capture_output=True, text=True).stdout.splitlines()) if len(p) > 6 and p[1] == '.debug_line'][0]
assert b[off + size - 3:off + size] == b'\0\1\1' # the last end of a sequence
b[off + size - 2] = 0x7f # longer than the section
open('cut', 'wb').write(b)
END
for f in breakpad gsym json; do
	timeout 20 "$ICFOLD" symbols --format=$f cut -o out.sym 2>err
	rc=$?
	check symbols/cut-$f "status $rc: $(first_line err)" [ $rc = 0 ]
done
if [ "${SYMBOLS:-}" = full ]; then
	for c in ninja protoc sqlite-g; do
		prog=$(bash "$TESTS/corpus.sh" "$c" 2>log)
		if [ -n "$prog" ] && "$ICFOLD" -q "$prog" -o "$c.new" 2>>log; then
			cp "$prog" "$c.old"
			both "$c" 5000 "$c.old" "$c.new"
		else
			skip "symbols/$c" "$(first_line log)"
		fi
	done
fi
finish
