#!/bin/bash
# pgo.sh: builds that use a profile.  clang and BOLT, given the translated profile of the folded program, decide as with the unfolded
# program's own: the same bytes come out.  With the folded program's profile as it is, they take the wrong functions for hot.
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
