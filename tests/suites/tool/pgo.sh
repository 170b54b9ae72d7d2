#!/bin/bash
# pgo.sh: builds that use a profile.  clang and BOLT, given the translated profile of the folded program, decide as with the unfolded
# program's own: the same bytes come out.  With the folded program's profile as it is, they take the wrong functions for hot.
# PGO=full: ninja as well, built by clang: its profile, and the ninja that is built with it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite pgo python3 gcc
if [ "$MACHINE" != x86_64 ] || ! gcc -O2 -o branches "$TESTS/judges/branches.c" 2>log; then
	skip pgo "the tracer is for x86-64: $(first_line log)"
	finish
fi
v=
for v in -19 -18 -17 -16 none; do have clang++$v && have llvm-profgen$v && break; done
[ $v != none ] || { skip pgo "no clang with llvm-profgen"; finish; }
# The same name for the source in all builds. DWARF 4 is what AutoFDO's tools read.
cp "$FIXTURES/profile/hot.cc" .
flags=(-O2 -gdwarf-4 -fdebug-info-for-profiling -fno-inline -ffunction-sections -w -no-pie -fno-pic)
if ! clang++$v "${flags[@]}" -fuse-ld=bfd -Wl,--emit-relocs hot.cc -o old 2>log || ! "$ICFOLD" -q --icf=all --allow-growth old -o new 2>>log; then
	not_ok pgo/build "$(first_line log)"
	finish
fi
if ! ./branches -g old >old.txt 2>log || ! ./branches -g new >new.txt 2>log; then
	skip pgo "the tracer does not run here: $(first_line log)"
	finish
fi
for f in old new; do grep -v '^	' $f.txt | sed '/^$/d; /MMAP/!s/^/ 0 /' >$f.lbr; done

# --- clang
"$ICFOLD" profile -q --to=profgen new new.txt >counts.txt 2>log
llvm-profgen$v --perfscript=old.lbr --binary=old -o old.prof >>log 2>&1
llvm-profgen$v --unsymbolized-profile=counts.txt --binary=old -o translated.prof >>log 2>&1
llvm-profgen$v --perfscript=new.lbr --binary=new -o raw.prof >>log 2>&1
for p in old translated raw; do
	clang++$v "${flags[@]}" -fprofile-sample-use=$p.prof -c hot.cc -o $p.o 2>>log
	readelf -SW $p.o 2>>log | grep -oE '\.text\.hot\.[^ ]+' | sort -u | tr '\n' ' ' >$p.hot
done
check pgo/clang-judge "the unfolded profile makes hot: $(cat old.hot)" [ "$(cat old.hot)" = ".text.hot._Z4workI6late_tElPT_l .text.hot._Z5checkI6late_tElPT_ .text.hot._Z8use_lateP6late_t .text.hot.main " ]
check pgo/clang "hot: $(cat translated.hot)" cmp -s old.o translated.o
check pgo/clang-contrast "the profile as it was does no harm" bash -c '! cmp -s old.hot raw.hot'

# --- clang, and a program of corpus size
# built DIR [FLAG]...: ninja, of the sources in ninja.list.
built() {
	local d=$1
	shift
	mkdir -p "$d"
	# shellcheck disable=SC2016
	xargs -P "$(nproc)" -I{} sh -c 'o=$1/$(basename "$2" .cc).o; shift 2; exec "$@" -o "$o" -c {}' sh "$d" {} "clang++$v" "${flags[@]}" "$@" <ninja.list 2>>log &&
		"clang++$v" -no-pie -fuse-ld=bfd -Wl,--emit-relocs "$d"/*.o -o "$d/ninja" 2>>log
}
ninja() {
	local src p
	src=$(bash "$TESTS/corpus.sh" --source ninja-build 2>log) && [ -d "$src/src" ] || { skip pgo/ninja "$(first_line log)"; return; }
	find "$src/src" -maxdepth 1 -name "*.cc" | grep -vE '/[^/]*(test|perf|bench|browse|win32|msvc|minidump|\.in\.cc)[^/]*$' | sort >ninja.list
	flags=(-O2 -gdwarf-4 -fdebug-info-for-profiling -ffunction-sections -w -no-pie -fno-pic)
	if ! built first || ! "$ICFOLD" -q --icf=all --allow-growth first/ninja -o first/folded 2>>log; then
		not_ok pgo/ninja "$(first_line log)"
		return
	fi
	mkdir -p job
	printf 'rule cc\n command = cp $in $out\n' >job/build.ninja
	for p in 1 2 3 4 5 6 7 8 9; do
		echo x >job/s$p
		echo "build o$p: cc s$p" >>job/build.ninja
	done
	for p in ninja folded; do
		./branches -n 32 -g first/$p -C job -n -v >first/$p.txt 2>log || { not_ok pgo/ninja "$(first_line log)"; return; }
		grep -v '^	' first/$p.txt | sed '/^$/d; /MMAP/!s/^/ 0 /' >first/$p.lbr
	done
	"$ICFOLD" profile --to=profgen first/folded first/folded.txt >first/counts 2>first/said
	llvm-profgen$v --perfscript=first/ninja.lbr --binary=first/ninja -o first/old.prof >log 2>&1
	llvm-profgen$v --unsymbolized-profile=first/counts --binary=first/ninja -o first/translated.prof >>log 2>&1
	llvm-profgen$v --perfscript=first/folded.lbr --binary=first/folded -o first/raw.prof >>log 2>&1
	check pgo/ninja-undecided "$(cat first/said)" grep -qE ' [1-9][0-9]{3,} in shared code, 0 undecided' first/said
	check pgo/ninja-profile "$(diff first/old.prof first/translated.prof | sed -n 2p)" cmp -s first/old.prof first/translated.prof
	for p in old translated raw; do built again/$p -fprofile-sample-use="$PWD/first/$p.prof"; done
	check pgo/ninja-judge "the profile changes nothing" bash -c "[ -x again/old/ninja ] && ! cmp -s first/ninja again/old/ninja"
	check pgo/ninja "another program" cmp -s again/old/ninja again/translated/ninja
	check pgo/ninja-contrast "the profile as it was does no harm" bash -c "[ -x again/raw/ninja ] && ! cmp -s again/old/ninja again/raw/ninja"
	check pgo/ninja-runs "$(first_line log)" bash -c "again/translated/ninja -C job -n -v | grep -q '\[9/9\]'"
}
[ "${PGO:-}" != full ] || ninja

# --- BOLT
bolt=
for b in llvm-bolt-19 llvm-bolt-18 llvm-bolt none; do have $b && bolt=$b && break; done
[ -n "$bolt" ] || { skip pgo/bolt "no llvm-bolt"; finish; }
for p in old new; do python3 "$TESTS/judges/bolt_counts.py" $p.lbr >$p.pa; done
"$ICFOLD" profile -q --to=bolt new new.txt >translated.pa 2>log
$bolt old --aggregate-only --pa -p old.pa -o old.fdata >log 2>&1
$bolt old --aggregate-only --pa -p translated.pa -o translated.fdata >>log 2>&1
$bolt new --aggregate-only --pa -p new.pa -o raw.fdata >>log 2>&1
for p in old translated raw; do
	mkdir -p $p.d
	# The file's own name and the profile's are in the output.
	cp $p.fdata $p.d/fdata
	(cd $p.d && cp ../old in && $bolt in --data fdata -o out --reorder-functions=hfsort --reorder-blocks=ext-tsp --use-old-text=0 >log 2>&1)
	nm -n $p.d/out 2>>log | grep -E ' [tTwW] (main|_Z[0-9]+(work|check|use_))' | awk '{ print $3 }' >$p.order
done
check pgo/bolt-judge "$(tail -n 1 old.d/log)" test -s old.order
check pgo/bolt-profile "$(diff old.fdata translated.fdata | sed -n 2p)" cmp -s <(sort old.fdata) <(sort translated.fdata)
check pgo/bolt "$(diff old.order translated.order | head -n 2 | tr '\n' ' ')" cmp -s old.d/out translated.d/out
check pgo/bolt-contrast "the profile as it was gives the same order" bash -c '! cmp -s old.order raw.order || ! cmp -s old.d/out raw.d/out'
check pgo/bolt-runs "status $?" ./translated.d/out

# --- AutoFDO: create_llvm_prof of the text, and clang again
have create_llvm_prof || { skip pgo/autofdo "no create_llvm_prof"; finish; }
cat >text.py <<'END'
import sys
lines = [l.split() for l in open(sys.argv[1])]
f = sorted((int(x, 16) - 0x400000, int(y, 16) - 0x400000, n) for k, x, y, n, *_ in lines if k == "F" and x <= y)
b = sorted((int(x, 16) - 0x400000, int(y, 16) - 0x400000, n) for k, x, y, n, *_ in lines if k == "B" and x != "0" != y)
for part, arrow in (f, "-"), ((), ":"), (b, "->"):
    print(len(part))
    for x, y, n in part:
        print("%x%s%x:%s" % (x, arrow, y, n))
END
for p in old new; do python3 text.py $p.pa >$p.text; done
"$ICFOLD" profile -q --to=autofdo new new.txt >translated.text 2>log
for p in old translated new; do
	if [ $p = new ]; then program=new; else program=old; fi
	create_llvm_prof --profiler=text --profile=$p.text --binary=$program --format=text --out=$p.autofdo >>log 2>&1
	clang++$v "${flags[@]}" -fprofile-sample-use=$p.autofdo -c hot.cc -o $p.autofdo.o 2>>log
done
check pgo/autofdo-profile "$(tail -n 1 log)" bash -c "[ -s old.autofdo ] && cmp -s <(sort old.autofdo) <(sort translated.autofdo)"
check pgo/autofdo "another object file" cmp -s old.autofdo.o translated.autofdo.o
check pgo/autofdo-contrast "the profile as it was does no harm" bash -c '! cmp -s old.autofdo.o new.autofdo.o'
finish
