#!/bin/bash
# symbolize.sh: `icfold symbolize` and `icfold inlines`, against llvm-symbolizer byte for byte: programs of many kinds, all output
# styles, debug information in other files, and folded functions.  SYMBOLIZE=full: each fixture by both compilers in both versions of
# DWARF, not by each compiler in one.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite symbolize

cat >in.cc <<'EOF'
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace {
struct Shape { virtual ~Shape() {} virtual int area() const = 0; };
struct Square : Shape { int n; Square(int k) : n(k) {} int area() const override { return n * n; } };
struct Rect : Shape { int a, b; Rect(int x, int y) : a(x), b(y) {} int area() const override { return a ? b ? a * b : 1 : 2; } };
}
static inline int twice(int x) { return x > 3 ? x * 2 : x < -3 ? x - 1 : 0; }
static inline __attribute__((always_inline)) int thrice(int x) { return twice(x) + twice(x + 1) + x; }
template <class T> T sum(const std::vector<T> &v) { T s{}; for (auto &x : v) s += x; return s; }
int main(int argc, char **argv)
{
	std::map<std::string, int> m;
	for (int i = 0; i < argc + 5; i++) m[std::string(argv[0]) + std::to_string(i)] = thrice(i);
	std::vector<int> v;
	for (auto &p : m) v.push_back(p.second);
	std::sort(v.begin(), v.end(), [](int a, int b) { return a > b ? true : false; });
	Shape *s = argc > 1 ? (Shape *)new Square(argc) : (Shape *)new Rect(argc, 2);
	try { if (argc > 7) throw 1; } catch (int) { puts("x"); }
	std::printf("%d %d %zu\n", sum(v), s->area(), m.size());
	delete s;
}
EOF

# --- agreement ------------------------------------------------------------------------------------------------------
agree() { # NAME: the lines of agree_symbolize.sh for the program NAME
	COUNT=${count:-1000} "$TESTS/judges/agree_symbolize.sh" "$WORK/$1" | sed "s#agree/#symbolize/agree/#"
	[ "${PIPESTATUS[0]}" = 0 ] || failures=$((failures + 1))
}
for cc in g++ clang++ clang++-19; do
	have $cc || { skip "symbolize/$cc" "no $cc"; continue; }
	for flags in "-O0 -gdwarf-4" "-O2 -gdwarf-2" "-O2 -gdwarf-3" "-O2 -gdwarf-4" "-O2 -gdwarf-5" "-O2 -gdwarf-5 -gdwarf64" "-O2 -g1" \
		"-O2 -g -flto -ffunction-sections" "-O1 -g -fdebug-types-section" "-O2 -g -static"; do
		[ $cc = clang++-19 ] && [ "$flags" != "-O2 -gdwarf-4" ] && [ "$flags" != "-O2 -gdwarf-5" ] && continue
		out=$cc$(echo "$flags" | tr -d ' ')
		# shellcheck disable=SC2086
		if $cc $flags in.cc -o "$out" 2>/dev/null; then agree "$out"; else skip "symbolize/agree/$out" "not supported by $cc"; fi
	done
done
# A linker that sorts and indexes (.gdb_index), and other machines.
cat >alone.c <<'EOF'
static inline int tw(int x) { return x > 3 ? x * 2 : x < -3 ? x - 1 : 0; }
static inline int th(int x) { return tw(x) + tw(x + 1) + x; }
int table[64];
int f(int a, int b) { int s = 0; for (int i = 0; i < a; i++) s += th(i) ^ table[(i + b) & 63]; return s; }
int g(int a) { return f(a, 2) + th(a) * f(tw(a), 1); }
void _start(void) { table[1] = g(3); for (;;) ; }
EOF
clang='' lld=''
for c in clang-19 clang; do have $c && clang=$c && break; done
for c in ld.lld-19 ld.lld; do have $c && lld=$c && break; done
for target in x86_64 aarch64 i386 armv7 riscv64 powerpc64le; do
	if [ -z "$clang" ] || [ -z "$lld" ] || ! $clang --target=$target-linux-gnu -O2 -g -ffreestanding -ffunction-sections -c alone.c -o alone.o 2>/dev/null ||
		! $lld alone.o -o alone-$target 2>/dev/null; then
		skip "symbolize/agree/alone-$target" "no compiler for it"
		continue
	fi
	count=200 agree alone-$target
done

# --- styles ---------------------------------------------------------------------------------------------------------
prog="g++-O2-gdwarf-4"
[ -f $prog ] || prog="clang++-O2-gdwarf-4"
llvm=
for l in llvm-symbolizer-19 llvm-symbolizer; do have $l && llvm=$l && break; done
main=$(nm $prog | awk '$3 == "main" { print $1 }')
addresses="0x$main $(printf '0x%x 0x%x 0x%x' $((0x$main + 77)) $((0x$main + 200)) $((0x$main + 333))) 0xdeadbeef0"
if [ -z "$llvm" ] || ! $llvm --version 2>/dev/null | grep -q 'version 19'; then
	skip symbolize/styles "no llvm-symbolizer 19 to compare with (Debian: llvm-19)"
else
	while read -r name options; do
		# shellcheck disable=SC2086
		"$ICFOLD" symbolize -e $prog $options $addresses >ours 2>&1
		# shellcheck disable=SC2086
		$llvm -e $prog $options $addresses >theirs 2>&1
		if cmp -s ours theirs; then ok "symbolize/style/$name"; else
			not_ok "symbolize/style/$name" "$(diff theirs ours | head -n 4 | tr '\n' ' ' | cut -c 1-300)"
		fi
	done <<-'EOF'
		default
		names-none --functions=none
		names-short --functions=short
		names-short-one --functions=short --no-inlines
		linkage --no-demangle
		one --no-inlines
		one-linkage --no-inlines --no-demangle
		pretty -p
		addresses -a
		pretty-addresses -a -p
		verbose --verbose
		verbose-pretty --verbose -p -a
		basenames -s
		relative --relativenames
		gnu --output-style=GNU
		gnu-one --output-style=GNU --no-inlines
		gnu-all --output-style=GNU -f -i -C -a -p -s
		json --output-style=JSON
		json-one --output-style=JSON --no-inlines
		json-pretty --output-style=JSON -p
		adjusted --adjust-vma=16 -a
		relative-address --relative-address
	EOF
	for options in "" "-a -p" "--output-style=JSON" "--output-style=GNU"; do
		{
			for a in $addresses; do echo "$WORK/$prog $a"; done
			echo "\"$WORK/$prog\" 0x$main"
			echo "CODE $WORK/$prog 0x$main"
		} >lines
		# shellcheck disable=SC2086
		"$ICFOLD" symbolize $options <lines >ours 2>&1
		# shellcheck disable=SC2086
		$llvm $options <lines >theirs 2>&1
		check "symbolize/lines/${options:-default}" "$(diff theirs ours | head -n 4 | tr '\n' ' ' | cut -c 1-300)" cmp -s ours theirs
	done
fi
# The same address with and without 0x, and by symbol.
"$ICFOLD" symbolize -e $prog "0x$main" >a
"$ICFOLD" symbolize -e $prog "$main" >b
check symbolize/hexadecimal "another answer without 0x" cmp -s a b
"$ICFOLD" symbolize -e $prog --no-inlines "0x$main" >a
"$ICFOLD" symbolize -e $prog --no-inlines main+0x0 >b
check symbolize/symbol "main is not at main" cmp -s a b

# --- unknown addresses ------------------------------------------------------------------------------------------------
out=$("$ICFOLD" symbolize -e $prog 0x1 2>&1)
check symbolize/unknown "rc $? or: $out" [ "$?:$out" = "0:??
??:0:0" ]
"$ICFOLD" symbolize -e missing 0x1 >out 2>err
check symbolize/missing "rc, or an answer, or no message" [ "$?:$(wc -c <out):$(grep -c '^icfold: missing: ' err)" = "2:0:1" ]
echo "missing 0x1" | "$ICFOLD" symbolize >out 2>err
check symbolize/missing-line "rc, answer or message" [ "$?:$(tr '\n' ' ' <out):$(grep -c '^icfold: missing: ' err)" = "2:?? ??:0:0  :1" ]
printf 'nonsense\n\n1x\n' | "$ICFOLD" symbolize -e $prog >out 2>err
check symbolize/nonsense "rc $?: $(tr '\n' '|' <out)" [ "$(tail -n +4 out | tr '\n' '|')" = "|1x|" ]
"$ICFOLD" symbolize --no-such-option >out 2>&1
check symbolize/bad-option "rc $?" [ $? = 2 ]
"$ICFOLD" symbolize --help >out 2>&1
check symbolize/help "rc $?" [ $? = 0 ]
# A caller that asks line by line and waits for each answer.
# shellcheck disable=SC2016
if have timeout && timeout 400 bash -c 'coproc "$1" symbolize -e "$2"; for i in 1 2 3; do echo "0x$3" >&"${COPROC[1]}"; while read -r l <&"${COPROC[0]}" && [ -n "$l" ]; do :; done; done; exec {COPROC[1]}>&-; wait' x "$ICFOLD" $prog "$main" 2>/dev/null; then
	ok symbolize/dialogue
else
	not_ok symbolize/dialogue "no answer before the end of the input"
fi

# --- debug information elsewhere --------------------------------------------------------------------------------------
sample() { # FILE
	awk -v a="$((0x$main))" 'BEGIN { for (i = 0; i < 400; i++) printf "0x%x\n", a + i * 3 }' | "$ICFOLD" symbolize -e "$1" "${@:2}" 2>&1
}
sample $prog >want
for z in zlib zstd zlib-gnu; do
	objcopy --compress-debug-sections=$z $prog packed 2>/dev/null || { skip "symbolize/$z" "objcopy cannot"; continue; }
	sample packed >got
	check "symbolize/$z" "other answers" cmp -s want got
done
objcopy --only-keep-debug $prog prog.debug
strip -o stripped $prog
objcopy --add-gnu-debuglink=prog.debug stripped
sample stripped >got
check symbolize/debuglink "other answers: $(diff want got | head -n 3 | tr '\n' ' ')" cmp -s want got
mkdir -p .debug && mv prog.debug .debug/
sample stripped >got
check symbolize/debuglink-folder "other answers" cmp -s want got
echo x >>.debug/prog.debug
sample stripped >got
check symbolize/debuglink-crc "a debug file that does not belong to the program" grep -q '??:0:0' got
rm -r .debug
id=$(readelf -n $prog 2>/dev/null | sed -n 's/.*Build ID: //p')
if [ -n "$id" ]; then
	mkdir -p "dbg/.build-id/${id:0:2}"
	objcopy --only-keep-debug $prog "dbg/.build-id/${id:0:2}/${id:2}.debug"
	strip -o stripped $prog
	sample stripped --debug-file-directory=dbg >got
	check symbolize/build-id "other answers: $(diff want got | head -n 3 | tr '\n' ' ')" cmp -s want got
else
	skip symbolize/build-id "the compiler gives no build-id"
fi
if have dwz; then
	cp $prog dz1
	cp "${prog%-O2*}-O0-gdwarf-4" dz2
	if dwz dz1 2>/dev/null; then
		sample dz1 >got
		check symbolize/dwz "other answers" cmp -s want got
	else
		skip symbolize/dwz "dwz does not take the file"
	fi
	cp $prog dz1
	if dwz -m common.debug dz1 dz2 2>/dev/null; then
		sample dz1 >got
		check symbolize/dwz-common "other answers: $(diff want got | head -n 3 | tr '\n' ' ')" cmp -s want got
	else
		skip symbolize/dwz-common "dwz does not take the files"
	fi
else
	skip symbolize/dwz "no dwz"
fi
strip -o bare $prog
"$ICFOLD" symbolize -e bare "0x$main" >out 2>&1
check symbolize/stripped "rc $?: $(first_line out)" [ $? = 0 ]

# --- inlined copies ---------------------------------------------------------------------------------------------------
cat >il.c <<'EOF'
extern int n;
int n;
static inline __attribute__((always_inline)) int inner(int x)
{
	return x ? n / x : n;
}
static inline __attribute__((always_inline)) int middle(int x)
{
	return inner(x) + 1;
}
int outer(int x)
{
	return middle(x) * 3;
}
int main(int argc, char **argv)
{
	(void)argv;
	return inner(argc) + outer(argc);
}
EOF
"${CC:-gcc}" -O2 -g -fno-ipa-icf -fno-inline-functions -fno-inline-small-functions -fno-inline-functions-called-once il.c -o il
"$ICFOLD" inlines inner il >out 2>&1
check inlines/status "rc $?" [ $? = 0 ]
check inlines/heading "$(first_line out)" [ "$(head -n 1 out)" = "$PWD/il.c:3" ]
check inlines/direct "no call from main at line 18" grep -qE "^	\[0x[0-9a-f]+ - 0x[0-9a-f]+\]	$PWD/il.c:18	main\(\)$" out
check inlines/nested "no call from middle in outer" grep -qE "^	\[0x[0-9a-f]+ - 0x[0-9a-f]+\]	$PWD/il.c:9	middle\(\) in outer\(\)$" out
"$ICFOLD" inlines middle il >out 2>&1
check inlines/outer "no call from outer" grep -qE "	$PWD/il.c:13	outer\(\)$" out
# Each range belongs to a place that symbolize attributes to the function too.
sed -nE 's/^\t\[(0x[0-9a-f]+) - .*/\1/p' out | "$ICFOLD" symbolize -e il >frames
check inlines/symbolize "symbolize knows of no copy there" grep -qx middle frames
out=$("$ICFOLD" inlines no_such_function il 2>&1)
check inlines/none "rc $?: $out" [ "$?:$out" = "0:" ]
"$ICFOLD" inlines inner missing >out 2>&1
check inlines/missing "rc $?" [ $? = 2 ]
"$ICFOLD" inlines inner >out 2>&1
check inlines/usage "rc $?" [ $? = 2 ]

# --- one address or many ----------------------------------------------------------------------------------------------
# The first questions about a function are answered by a search for the address, those that are known together by one search, later
# ones from all of its copies.  GCC's DWARF 2 without extensions says only a part of a copy's code, so that copies inside of it lie
# outside of it.
one_or_many() {
	local name=$1 flags=$2 f=$WORK/many lo n a
	load_recipe demo
	if ! { compile_fixture gcc "$flags" pie "$WORK/many.o" && link_fixture gcc bfd pie "$WORK/many.o" "$f"; } >log 2>&1; then
		skip "$name" "does not build: $(first_line log)"
		return
	fi
	readelf -sW "$f" | awk '$4 == "FUNC" && /__rotate_adaptive/ { print "0x" $2, $3; exit }' >many.function
	read -r lo n <many.function
	objdump -d --no-show-raw-insn --start-address="$lo" --stop-address=$((lo + n)) "$f" | sed -n 's/^ *\([0-9a-f]*\):\t.*/0x\1/p' >many.at
	"$ICFOLD" symbolize -e "$f" <many.at >many.all
	while read -r a; do "$ICFOLD" symbolize -e "$f" "$a"; done <many.at >many.one
	check "$name" "$(wc -l <many.at) places: $(diff many.one many.all | head -n 3 | tr '\n' ' ' | cut -c 1-300)" cmp -s many.one many.all
	check "$name/places" "$(wc -l <many.all) lines for $(wc -l <many.at) places" [ "$(wc -l <many.all)" -gt $((5 * $(wc -l <many.at))) ]
	# One by one, each after the last answer.
	{ while read -r a; do echo "$a" && sleep 0.002; done <many.at; } | "$ICFOLD" symbolize -e "$f" >many.server
	check "$name/server" "$(diff many.one many.server | head -n 3 | tr '\n' ' ' | cut -c 1-300)" cmp -s many.one many.server
	[ -z "$llvm" ] || check "$name/llvm" "$($llvm -e "$f" <many.at | diff - many.one | head -n 3 | tr '\n' ' ' | cut -c 1-300)" cmp -s many.one <($llvm -e "$f" <many.at)
}
if [ "$(uname -m)" = x86_64 ]; then
	one_or_many symbolize/one-or-many "-O2 -gdwarf-2 -gstrict-dwarf"
	one_or_many symbolize/one-or-many/dwarf5 "-O2 -gdwarf-5"
else
	skip symbolize/one-or-many "the function is one of x86-64's"
fi

# --- stripped programs ------------------------------------------------------------------------------------------------
# .dynsym has two names with sizes for one place: the kept function's name counts.
printf '#include <stdio.h>\n#define F(n) __attribute__((noinline)) int n(int a) { puts("%%d"); return a * 3; }\nF(a1) F(b1) F(c1)\nint main(int c, char **v) { (void)v; return a1(c) + b1(c) + c1(c) == 0; }\n' >dyn.c
if ${CC:-gcc} -O2 -fno-ipa-icf -rdynamic dyn.c -o dyn 2>log && strip dyn && "$ICFOLD" -q --icf=all --allow-growth dyn -o dyn.folded 2>log; then
	"$ICFOLD" verify --icf=all dyn dyn.folded >log 2>&1
	rc=$?
	check symbolize/dynsym-verify "$(grep -m 1 ': .*expected' log)" [ $rc = 0 ]
	"$ICFOLD" dump --groups dyn.folded | awk '/^0/ { sub(/:/, ""); at = $1 } /kept/ { print at, $4 }' >kept
	while read -r at name; do
		for off in 0 3; do
			out=$("$ICFOLD" symbolize -e dyn.folded "$(printf 0x%x $((0x$at + off)))" | head -n 1)
			check "symbolize/dynsym/$off" "$out, not $name" [ "$out" = "$name" ]
		done
	done < <(sed 's/,.*//' kept)
	check symbolize/dynsym-kept "no group" [ -s kept ]
else
	not_ok symbolize/dynsym "$(first_line log)"
fi

# --- exported functions of a stripped library ---------------------------------------------------------------------------
# One of them has its whole size, the others a byte less: llvm-symbolizer takes the longest symbol, libbacktrace needs sizes.
printf '#define F(n) n(int *p) { int s = 0; for (int i = 0; i < *p; i++) s += p[i] * 3; return s; }\n__attribute__((visibility("hidden"))) int F(zero) int F(one) int F(two) int F(three)\n' >exports.c
apart=-g
[ "${CC:-gcc}" != gcc ] || apart=-fno-ipa-icf
if ${CC:-gcc} -O2 -g -fPIC -fno-toplevel-reorder "$apart" -shared exports.c -o exports.so && strip -o exports.in exports.so && "$ICFOLD" -q --icf=all --allow-growth exports.in -o exports.out 2>log; then
	sizes() { readelf --dyn-syms -W "$1" | awk '$8 ~ /^(one|two|three)$/ { print $3, $4 }' | sort | tr '\n' ' '; }
	read -r whole _ <<<"$(sizes exports.in)"
	got=$(sizes exports.out)
	check symbolize/exports "$(sizes exports.in)-> $got" [ "$got" = "$((whole - 1)) FUNC $((whole - 1)) FUNC $whole FUNC " ]
	# All whole, all shorter, all without a size.
	for size in "$whole" $((whole - 1)) 0; do
		python3 - exports.out exports.bad "$size" <<-'END'
			import struct, sys
			data = bytearray(open(sys.argv[1], "rb").read())
			shoff, = struct.unpack_from("<Q", data, 40)
			shnum, = struct.unpack_from("<H", data, 60)
			sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
			table = next(s for s in sections if s[1] == 11)
			strings = sections[table[6]][4]
			for p in range(table[4], table[4] + table[5], 24):
			    n = strings + struct.unpack_from("<I", data, p)[0]
			    if bytes(data[n:data.index(0, n)]) in (b"one", b"two", b"three"):
			        struct.pack_into("<Q", data, p + 16, int(sys.argv[3]))
			open(sys.argv[2], "wb").write(data)
		END
		"$ICFOLD" verify --icf=all exports.in exports.bad >log 2>&1
		rc=$?
		check "symbolize/exports/verify-$size" "$rc: $(tail -n 1 log)" [ "$rc.$(grep -c '^symbols: size: ' log | sed 's/[1-9]/some/')" = 1.some ]
	done
	"$ICFOLD" verify --icf=all exports.in exports.out >log 2>&1
	rc=$?
	check symbolize/exports/verify "$(tail -n 1 log)" [ $rc = 0 ]
else
	not_ok symbolize/exports "$(first_line log)"
fi

# --- a kept function without a symbol ---------------------------------------------------------------------------------
# ld discards local symbols, so the folded function's global symbol is the only one.  The symbol must not cover the next function.
printf '#define F(n, op) n(int x) { for (int i = 0; i < x; i++) x op x > 99 ? i : 0; return x * 3 + 1; }\n#define N __attribute__((noinline, noipa))\nstatic int N F(kept, -=) static int N F(next, +=) int N F(folded, -=) extern int other(int x) __attribute__((alias("folded")));\nint main(int c, char **v) { (void)v; return kept(c) + next(c) + folded(c) + other(c) == 77; }\n' >bare.c
for g in -g -g0; do
	id=symbolize/nameless/$g
	# shellcheck disable=SC2086
	${CC:-gcc} -O1 $g -fno-toplevel-reorder bare.c -c -o bare.o && ${CC:-gcc} bare.o -Wl,--emit-relocs -o bare.all && ${CC:-gcc} bare.o -Wl,--emit-relocs,--discard-all -o bare.in
	if ! "$ICFOLD" -q --allow-growth bare.in -o bare.out 2>log; then
		not_ok "$id" "$(first_line log)"
		continue
	fi
	at=$(nm bare.all | awk '$3 == "kept" { print $1 }')
	next=$(nm bare.all | awk '$3 == "next" { print $1 }')
	check "$id/folded" "not at kept: $(nm bare.out | grep -E 'folded|other' | tr '\n' ' ')" [ "$(nm bare.out | grep -cE "^$at T (folded|other)\$")" = 2 ]
	# Readers that search functions by size or by nearness (libbacktrace, Rust's std, libunwind) must not see the other name.
	check "$id/label" "$(readelf -sW bare.out | grep -E ' (folded|other)$')" [ "$(readelf -sW bare.out | grep -cE '^ *[0-9]+: [0-9a-f]+ +0 NOTYPE +GLOBAL .* (folded|other)$')" = 1 ]
	check "$id/one-size" "$(nm -S bare.out | grep " T " | tr '\n' ' ')" [ "$(nm -S bare.out | grep -cE "^$at [0-9a-f]{16} T (folded|other)\$")" = 1 ]
	out=$("$ICFOLD" symbolize -e bare.out "0x$at" "0x$next" | awk 'NR % 3 == 1' | tr '\n' ' ')
	if [ $g = -g ]; then want="kept next "; else want="(folded|other) [?][?] "; fi
	check "$id/names" "$out" grep -qxE "$want" <<<"$out"
	"$ICFOLD" verify bare.in bare.out >log 2>&1
	rc=$?
	check "$id/verify" "$(grep -m 1 expected log)" [ $rc = 0 ]
	# Only such a name may lose its type.
	python3 - bare.out bare.bad <<-'END'
		import struct, sys
		data = bytearray(open(sys.argv[1], "rb").read())
		shoff, = struct.unpack_from("<Q", data, 40)
		shnum, = struct.unpack_from("<H", data, 60)
		sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
		table = next(s for s in sections if s[1] == 2)
		strings = sections[table[6]][4]
		for p in range(table[4], table[4] + table[5], 24):
		    n = strings + struct.unpack_from("<I", data, p)[0]
		    if bytes(data[n:data.index(0, n)]) in (b"next", b"main", b"_start"):
		        data[p + 4] &= 0xf0
		        break
		open(sys.argv[2], "wb").write(data)
	END
	"$ICFOLD" verify bare.in bare.bad >log 2>&1
	rc=$?
	check "$id/verify-type" "$rc: $(tail -n 1 log)" [ "$rc.$(grep -c '^symbols: symbol: ' log)" = 1.1 ]
	# The symbol with size 0, and so large that it covers `two`.  Without debug information nothing says where the function ends.
	for size in 0 two; do
		python3 - bare.out bare.bad $size <<-'END'
			import struct, sys
			data = bytearray(open(sys.argv[1], "rb").read())
			shoff, = struct.unpack_from("<Q", data, 40)
			shnum, = struct.unpack_from("<H", data, 60)
			sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
			table = next(s for s in sections if s[1] == 2)
			strings = sections[table[6]][4]
			places = [p for p in range(table[4], table[4] + table[5], 24)
			          if bytes(data[(n := strings + struct.unpack_from("<I", data, p)[0]):data.index(0, n)]) in (b"folded", b"other")]
			size = max(struct.unpack_from("<Q", data, p + 16)[0] for p in places) if sys.argv[3] == "two" else 0
			for p in places:
			    struct.pack_into("<Q", data, p + 16, size)
			    data[p + 4] = data[p + 4] & 0xf0 | (2 if size else 0)
			open(sys.argv[2], "wb").write(data)
		END
		"$ICFOLD" verify bare.in bare.bad >log 2>&1
		rc=$?
		check "$id/verify-$size" "$rc: $(tail -n 1 log)" [ "$rc.$(grep -c '^symbols: size: ' log)" = 1.1 ]
		out=$("$ICFOLD" symbolize -e bare.bad "0x$at" "0x$next" | awk 'NR % 3 == 1' | tr '\n' ' ')
		check "$id/names-$size" "$out" grep -qxE "$want" <<<"$out"
	done
done

# --- folded functions -------------------------------------------------------------------------------------------------
judge=$BUILD/tests/unit/dwarf/symbolize
if [ ! -x "$judge" ]; then
	skip symbolize/members "no test program"
	finish
fi
turn=0
for name in $(all_fixtures); do
	load_recipe "$name"
	fixture_fits || continue
	turn=$((turn + 1)) way=0
	for flags in "-O2 -g -gdwarf-4" "-O2 -g -gdwarf-5 -ffunction-sections"; do
		way=$((way + 1))
		for cc in gcc clang; do
			way=$((way + 1))
			[ "${SYMBOLIZE:-}" = full ] || [ $(((turn + way) % 2)) = 0 ] || continue
			have $cc || continue
			id=symbolize/members/$name/$cc$(echo "$flags" | tr -d ' ')
			obj=$WORK/obj.$name.$cc
			rm -rf "$obj"
			if ! compile_fixture $cc "$flags" pie "$obj" >log 2>&1 || ! link_fixture $cc bfd pie "$obj" full >log 2>&1; then
				skip "$id" "does not build: $(first_line log)"
				continue
			fi
			"$ICFOLD" --icf=all -q full -o folded >log 2>&1 || { not_ok "$id" "folding: $(first_line log)"; continue; }
			if ! readelf -SW folded | grep -q '\.debug_icfold'; then
				skip "$id" "nothing was folded"
				continue
			fi
			out=$("$judge" "$PWD/full" "$PWD/folded" 2>&1)
			check "$id" "$(echo "$out" | tail -n 1)" [ "$(echo "$out" | tail -n 1)" = "ok members" ]
		done
	done
done
# --- the judge of places: where only symbols tell, the name of a folded function is right at its first byte, and nowhere else
mkdir -p places
printf 'int %s(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x + 3; return s; }\n' one two >places/p.c
echo 'int main(void) { return one(5) != two(5); }' >>places/p.c
cat >places/symbolizer <<'END'
#!/usr/bin/env python3
import os, subprocess, sys
obj, (kept, other, mode) = next(a[6:] for a in sys.argv if a.startswith("--obj=")), os.environ["NAMES"].split()
lines = [l.split() for l in subprocess.run(["nm", obj], capture_output=True, text=True).stdout.splitlines()]
symbols = [(int(l[0], 16), l[2]) for l in lines if len(l) == 3 and l[1] in "tTwW"]
for va in (int(l, 16) for l in sys.stdin):
    at, name = max(s for s in symbols if s[0] <= va)
    if not obj.endswith("/p") and name in (kept, other):
        name = {"first": other if at == va else kept, "all": other, "stranger": "main" if at == va else kept}[mode]
    print(name + "\n??:0:0\n")
END
chmod +x places/symbolizer
if ! have python3; then
	skip symbolize/places "no python3"
elif ! gcc -O0 -Wl,--emit-relocs places/p.c -o places/p || ! "$ICFOLD" -q --allow-growth --map=places/map places/p -o places/out; then
	not_ok symbolize/places "no program"
else
	# The one that stays has a size.
	kept=$(nm -S places/out | awk '$4 ~ /^(one|two)$/ { print $4 }')
	other=$([ "$kept" = one ] && echo two || echo one)
	for mode in first=0 all=1 stranger=1; do
		NAMES="$kept $other ${mode%=*}" "$TESTS/judges/places.py" -n 2000 --tool "$WORK/places/symbolizer" places/p places/out places/map >log 2>&1
		rc=$?
		check "symbolize/places/${mode%=*}" "status $rc: $(first_line log)" [ "$rc" = "${mode#*=}" ]
	done
fi

# --- a symbol without a size ends with its section: `_init` does not name code at the start of .text that has no symbol
cat >cold.c <<'END'
#include <stdio.h>
#include <stdlib.h>
static __attribute__((cold, noreturn, noinline)) void quit(int n) { printf("%d\n", n); exit(n); }
int main(int n, char **v) { if (n > 5) { puts(v[5]); quit(n); } return 0; }
END
if ! have eu-addr2line; then
	skip symbolize/section-end "no eu-addr2line"
elif ! gcc -O2 -g cold.c -Wl,--discard-all -o cold; then
	not_ok symbolize/section-end "no program"
else
	start=0x$(readelf -SW cold | awk '{ sub(/.*\]/, "") } $1 == ".text" { print $3 }')
	check symbolize/section-end/judge "$(eu-addr2line -f -e cold "$start" | head -n 1)" [ "$(eu-addr2line -f -e cold "$start" | head -n 1)" = quit ]
	check symbolize/section-end "$("$ICFOLD" symbolize -e cold "$start" | head -n 1)" [ "$("$ICFOLD" symbolize -e cold "$start" | head -n 1)" = quit ]
fi

# With overlapping sequences, a folded function without rows does not get those of another one in its unit.
cat >norows.c <<'END'
#include <stdio.h>
volatile int sink;
__attribute__((noinline)) int with_rows(int n) { sink = n; return n * 7 + sink; }
__attribute__((noinline)) int without_rows(int n) { sink = n; return n * 7 + sink; }
int main(int argc, char **argv) { (void)argv; printf("%d\n", with_rows(argc) + without_rows(argc + 1)); }
END
if ! gcc -O2 -g -fno-ipa-icf -ffunction-sections -S norows.c 2>log ||
	! awk '/^without_rows:/ { f = 1 } /cfi_endproc/ { f = 0 } !f || !/^\t\.loc /' norows.s >norows_cut.s || ! gcc norows_cut.s -Wl,--emit-relocs -o norows 2>log; then
	skip symbolize/norows "does not build: $(first_line log)"
else
	"$ICFOLD" -q --icf=all --allow-growth --debug-folded=alias norows -o norows.out
	"$ICFOLD" verify --icf=all norows norows.out >log
	check symbolize/norows "$(grep '^places symbolized: ' log | head -n 1 | cut -c 1-200)" grep -q '^equal' log
fi
finish
