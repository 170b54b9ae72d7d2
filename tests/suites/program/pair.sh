#!/bin/bash
# pair.sh: a stripped program is folded together with its separate debug file.  The judge is what objcopy makes of the program that was
# folded whole: the same code, symbols and debug information, and the same answers of gdb and the symbolizers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool pair
make_work
always_fold
cd "$WORK" || exit 1
export DEBUGINFOD_URLS=
cat >prog.cc <<'X'
#include <cstdio>
#include <cstdlib>
#include <vector>
template <class T> __attribute__((noinline)) T sum(const std::vector<T> &v)
{
	T s = 0;
	for (auto x : v)
		s += x;
	return s;
}
struct Base {
	virtual int get(int x) { return x + 3; }
	virtual ~Base() {}
};
struct Derived : Base {
	int get(int x) override { return x + 3; }
};
__attribute__((noinline)) int alpha(int a)
{
	if (a > 100)
		abort();
	return a * 17 + 3;
}
__attribute__((noinline)) int beta(int a)
{
	if (a > 100)
		abort();
	return a * 17 + 3;
}
__attribute__((noinline)) int caller(int a) { return beta(a) + 1; }
int main(int n, char **)
{
	std::vector<long> a{1, 2, 3};
	std::vector<long long> b{4, 5, 6};
	Base *p = n > 1 ? new Base : new Derived;
	printf("%ld %lld %d %d %d\n", sum(a), sum(b), p->get(n), alpha(n), caller(n));
	delete p;
}
X
crc_ok() { # PROGRAM DEBUG-FILE: is the checksum in .gnu_debuglink that of the file, and the name its own?
	objcopy --dump-section .gnu_debuglink=link.bin "$1" /dev/null &&
		python3 -c 'import os, struct, sys, zlib
link = open("link.bin", "rb").read()
sys.exit(link[: link.find(b"\0")] != os.path.basename(sys.argv[1]).encode() or struct.unpack("<I", link[-4:])[0] != zlib.crc32(open(sys.argv[1], "rb").read()))' "$2"
}
build_id() { readelf -n "$1" 2>/dev/null | awk '/Build ID/ { print $3 }'; }
same_section() { # A B SECTION
	rm -f a.bin b.bin
	objcopy --dump-section "$3=a.bin" "$1" /dev/null 2>/dev/null
	objcopy --dump-section "$3=b.bin" "$2" /dev/null 2>/dev/null
	if [ -e a.bin ] || [ -e b.bin ]; then cmp -s a.bin b.bin; fi
}
split() { # HOW FULL NAME: NAME and NAME.debug
	rm -f "$3" "$3.debug"
	case $1 in
	objcopy) objcopy --only-keep-debug "$2" "$3.debug" && objcopy --strip-all --add-gnu-debuglink="$3.debug" "$2" "$3" ;;
	zlib)
		objcopy --only-keep-debug --compress-debug-sections "$2" "$3.debug" && objcopy --strip-all --add-gnu-debuglink="$3.debug" "$2" "$3"
		;;
	debug-only) objcopy --only-keep-debug "$2" "$3.debug" && objcopy --strip-debug --add-gnu-debuglink="$3.debug" "$2" "$3" ;;
	eu-strip) eu-strip -f "$3.debug" -o "$3" "$2" ;;
	llvm)
		"$llvm_objcopy" --only-keep-debug "$2" "$3.debug" && "$llvm_objcopy" --strip-all --add-gnu-debuglink="$3.debug" "$2" "$3"
		;;
	esac
}
llvm_objcopy=$(command -v llvm-objcopy-19 llvm-objcopy-14 llvm-objcopy | head -n 1)
llvm_symbolizer=$(command -v llvm-symbolizer-19 llvm-symbolizer-14 llvm-symbolizer | head -n 1)

# NAME HOW FULL [OPTION...]: folds the pair that HOW makes of FULL, and compares.  quick=1: not by every reader.
quick=''
pair() {
	local name=pair/$1 how=$2 full=$3 s bad='' tool
	shift 3
	split "$how" "$full" in || { not_ok "$name" "cannot split"; return; }
	mkdir -p want got
	rm -f want/* got/*
	if ! "$ICFOLD" "$@" "$full" -o whole >log 2>&1 || ! "$ICFOLD" "$@" in -o got/out --debug-file=in.debug --debug-output=got/out.debug >log 2>&1; then
		not_ok "$name" "$(first_line log)"
		return
	fi
	if [ "$how" = debug-only ]; then split "$how" whole out; else split objcopy whole out; fi
	mv out out.debug want
	./in >in.txt && got/out >out.txt
	check "$name/runs" "$(first_line out.txt)" cmp -s in.txt out.txt
	for s in .text .eh_frame .data.rel.ro .init_array; do same_section got/out want/out $s || bad="$bad $s"; done
	case $how in
	zlib | llvm) ;;
	*) for s in .debug_info .debug_line .debug_loclists .debug_rnglists .debug_str .debug_icfold .debug_dcall .debug_vcall; do same_section got/out.debug want/out.debug $s || bad="$bad $s"; done ;;
	esac
	check "$name/sections" "not those of the whole program:$bad" test -z "$bad"
	check "$name/verify" "$("$ICFOLD" verify in got/out 2>&1 | tail -n 2 | tr '\n' ' ')" equal in got/out
	check "$name/build-id" "differs, or is the input's" test "$(build_id got/out)" = "$(build_id got/out.debug)" -a "$(build_id got/out)" != "$(build_id in)"
	check "$name/debuglink" "wrong name or checksum" crc_ok got/out got/out.debug
	check "$name/headers" "other addresses or sizes" cmp -s <(alloc_headers got/out) <(alloc_headers got/out.debug)
	check "$name/symbols" "$(diff <(nm got/out.debug | sort) <(nm want/out.debug | sort) | head -n 2 | tr '\n' ' ')" \
		cmp -s <(nm got/out.debug | sort) <(nm want/out.debug | sort)
	readelf --debug-dump got/out.debug 2>&1 >/dev/null | grep -v 'program interpreter name' >log
	check "$name/readelf" "$(first_line log)" test ! -s log
	if have eu-elflint; then
		elflint in >a.lint
		elflint got/out >b.lint
		elflint -d in.debug >>a.lint
		elflint -d got/out.debug >>b.lint
		check "$name/elflint" "$(diff a.lint b.lint | head -n 2 | tr '\n' ' ')" test -z "$(comm -13 <(sort -u a.lint) <(sort -u b.lint))"
	fi
	if have eu-unstrip; then
		eu-unstrip -o in.whole in in.debug >log 2>&1 && eu-unstrip -o out.whole got/out got/out.debug >>log 2>&1 &&
			"$ICFOLD" verify in.whole out.whole >>log 2>&1
		rc=$?
		check "$name/unstrip" "$(tail -n 1 log)" test $rc = 0
	fi
	[ -n "$quick" ] && return
	nm got/out.debug | awk '$2 ~ /^[tTwW]$/ && $1 ~ /^0/ { print "0x" $1 }' >addresses
	for tool in ${llvm_symbolizer:+"$llvm_symbolizer -e"} "addr2line -fie" "eu-addr2line -fie" "$ICFOLD symbolize -e"; do
		have "${tool%% *}" || continue
		# shellcheck disable=SC2086
		check "$name/$(basename "${tool%% *}")" "says other things of the pair" \
			cmp -s <($tool got/out <addresses 2>&1) <($tool want/out <addresses 2>&1)
	done
	if have gdb; then
		for s in got want; do
			(cd $s && gdb -nx -batch -ex 'break beta' -ex 'break Derived::get' -ex 'info functions alpha|beta|sum' -ex run -ex bt -ex continue -ex bt ./out) 2>&1 |
				grep -v -e '^\[' -e '^Reading symbols' -e libthread_db >$s.gdb
		done
		check "$name/gdb" "$(diff want.gdb got.gdb | head -n 2 | tr '\n' ' ')" cmp -s want.gdb got.gdb
		check "$name/gdb-stops" "$(tail -n 1 got.gdb)" grep -q '^#1 .* in main (n=1) at .*prog.cc:36' got.gdb
		(cd got && gdb -nx -batch -ex "source $ROOT/gdb/icfold-gdb.py" -ex 'break caller' -ex run -ex 'break beta' -ex continue -ex bt ./out) >plugin.gdb 2>&1
		check "$name/gdb-plugin" "$(grep '^#0' plugin.gdb)" grep -q '^#0 .*beta' plugin.gdb
	fi
}
alloc_headers() { readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk '/^\./ && $3 !~ /^0+$/ { print $1, $3, $5 }'; }
equal() { "$ICFOLD" verify "$@" >/dev/null 2>&1; }
elflint() { eu-elflint --gnu-ld "$@" 2>&1 | sed 's/[0-9][0-9]*/N/g'; }

g++ -g -O2 -fPIE -pie -Wl,--build-id prog.cc -o plain || { not_ok pair/build "g++ fails"; finish; }
g++ -g -O2 -fPIE -pie -Wl,--build-id,--emit-relocs prog.cc -o relocs
pair gcc objcopy plain
pair gcc-strip-debug debug-only relocs
quick=1
pair gcc-relocs objcopy relocs
pair gcc-compressed zlib relocs
pair gcc-in-place objcopy plain --in-place
if have eu-strip; then pair gcc-eu-strip eu-strip plain; pair gcc-eu-strip-relocs eu-strip relocs; else skip pair/eu-strip "no eu-strip"; fi
clang=$(command -v clang++-19 clang++-14 clang++ | head -n 1)
if [ -n "$clang" ] && "$clang" -g -O2 -fPIE -pie -Wl,--build-id prog.cc -o clang.plain 2>log; then
	quick=''
	pair clang objcopy clang.plain
	quick=1
	if [ -n "$llvm_objcopy" ]; then pair clang-llvm llvm clang.plain; fi
else
	skip pair/clang "no clang++"
fi

# A program that has a part of the symbols yet: names are those of the debug file, which has all.
{
	echo 'namespace { template <class T> __attribute__((noinline)) T half(T a) { if (a > 100) throw 1; return a * 17 + 3; } }'
	echo 'static __attribute__((noinline)) long late(long a) { return half(a) + 1; }'
	echo 'static __attribute__((noinline)) long early(long long a) { return half(a) + 1; }'
	echo 'extern "C" int printf(const char *, ...);'
	echo 'int main(int n, char **) { printf("%ld %ld\n", late(n), early(n)); }'
} >local.cc
for relocs in '' ,--emit-relocs; do
	g++ -g -O1 -fno-ipa-icf -fPIE -pie -Wl,--build-id$relocs local.cc -o local || { not_ok pair/partial "g++ fails"; break; }
	for how in --strip-unneeded -x '-K main'; do
		objcopy --only-keep-debug local in.debug && cp local in || break
		# shellcheck disable=SC2086
		strip $how in && objcopy --add-gnu-debuglink=in.debug in
		rm -f out out.debug
		"$ICFOLD" -q --icf=all in -o out --debug-output=out.debug >log 2>&1
		"$ICFOLD" verify --icf=all --debug-output=out.debug in out >>log 2>&1
		check "pair/partial$relocs/$how" "$(grep -m 1 'expected\|icfold: ' log)" grep -qx equal log
		check "pair/partial$relocs/$how/folds" "nothing" grep -q ' folded ' <("$ICFOLD" dump --groups out.debug)
		nm -C local | sed -n 's/^0*\([0-9a-f]*\) t \(late\|early\)(.*/\1 \2/p' >local.names
		while read -r at name; do
			check "pair/partial$relocs/$how/$name" "$("$ICFOLD" symbolize -e in "0x$at" | head -n 1)" grep -q "^$name(" <("$ICFOLD" symbolize -e in "0x$at")
		done <local.names
	done
done

# --- where debug files are found
split objcopy plain in
id=$(build_id in)
fold() { "$ICFOLD" -q "$@" >log 2>&1; }
works() { # NAME ARG...
	rm -f out out.debug
	fold "${@:2}" -o out --debug-output=out.debug
	check "pair/$1" "$(first_line log)" test -s out -a -s out.debug
}
refused() { # NAME TEXT ARG...: with status $trouble, or 1
	rm -rf out out.debug
	fold "${@:3}"
	local rc=$?
	check "pair/$1" "status $rc: $(first_line log)" test $rc = "${trouble:-1}" -a ! -e out -a ! -e out.debug
	check "pair/$1-text" "$(first_line log)" grep -qF -- "$2" log
}
works found-by-debuglink in
mkdir -p .debug && mv in.debug .debug
works found-in-.debug in
mkdir -p "store/.build-id/${id:0:2}" && mv .debug/in.debug "store/.build-id/${id:0:2}/${id:2}.debug"
works found-by-build-id in --debug-file-directory=store
check pair/verify-by-build-id "$(tail -n 1 log)" equal in out --debug-file-directory=store
refused found-nowhere "no debug file is found for it" in -o out --debug-output=out.debug
mv "store/.build-id/${id:0:2}/${id:2}.debug" in.debug
works same-bytes in --verify --depfile=out.d
cp out.debug first.debug
works same-bytes in --debug-file=in.debug --threads=1
check pair/deterministic "another file" cmp -s out.debug first.debug
fold -v in -o out
check pair/left-alone "$(tail -n 1 log)" grep -q 'in.debug is left as it is' log
check pair/no-stale-link "OUT leads to the older debug file" test -z "$(readelf -SW out | grep gnu_debuglink)"
fold whole -o out
split objcopy plain in
cp in again && cp in.debug again.debug && fold again -o again --debug-file=again.debug --debug-output=again.debug
check pair/both-in-place "$(first_line log)" equal --debug-file=in.debug --debug-output=again.debug in again

# --- files that do not belong together
split objcopy relocs other
refused another-build-id 'has another build-id' in --debug-file=other.debug -o out --debug-output=out.debug
cp in.debug changed.debug && printf x >>changed.debug
refused another-checksum 'has the checksum' in --debug-file=changed.debug -o out --debug-output=out.debug
g++ -g -O2 -fPIE -pie -Wl,--build-id=none prog.cc -o no-id && g++ -g -O1 -fPIE -pie -Wl,--build-id=none prog.cc -o no-id-1
objcopy -S no-id no-id.in && objcopy --only-keep-debug no-id-1 no-id-1.debug && objcopy --only-keep-debug no-id no-id.debug
refused another-section 'with' no-id.in --debug-file=no-id-1.debug -o out --debug-output=out.debug
works without-build-id no-id.in --debug-file=no-id.debug
refused not-a-debug-file 'has neither symbols nor debug information' in --debug-file=other -o out --debug-output=out.debug
refused no-elf 'not an ELF file' in --debug-file=prog.cc -o out --debug-output=out.debug
refused not-stripped 'has debug information of its own' plain --debug-file=in.debug -o out --debug-output=out.debug
trouble=2 refused no-debug-output '--debug-file needs --debug-output' in --debug-file=in.debug -o out
trouble=2 refused same-file 'two different files' in --debug-file=in.debug -o out --debug-output=out
trouble=2 refused over-input 'is the input' in --debug-file=in.debug -o out --debug-output=in
trouble=2 refused strip '--strip-debug may not be used together' in --debug-file=in.debug -o out --debug-output=out.debug --strip-all
trouble=2 refused no-folder 'cannot create' in --debug-file=in.debug -o out --debug-output=none/out.debug
mkdir -p folder
trouble=2 refused not-both 'is a directory' in --debug-file=in.debug -o folder --debug-output=out.debug

# verify objects if it gets another debug file.
works for-verify in
cp out out.2 && split objcopy plain in && cp in.debug out.debug
check pair/verify-mismatch "accepted" test "$("$ICFOLD" verify in out --debug-output=in.debug >/dev/null 2>&1; echo $?)" = 1
finish
