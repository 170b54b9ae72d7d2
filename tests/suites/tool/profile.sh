#!/bin/bash
# profile.sh: `icfold profile`: a profile of a folded program, written for the program before.  A program is executed unfolded and
# folded, both instruction by instruction, and every decided address of the translated profile must be the one of the unfolded run.
# Each output is read by the program that it is for.
# PROFILE=full: more forms of the program, ninja, protoc, and time and memory for a large profile; PARTS="ninja large": some of these alone.
# TARGET=aarch64: executions of programs for that machine, by qemu.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite profile python3 g++ jq
judge=$TESTS/judges/attribution.py
if [ "$(uname -m)" != x86_64 ] || ! "${CC:-cc}" -O2 -o branches "$TESTS/judges/branches.c" 2>log; then
	skip profile "the tracer is for x86-64: $(first_line log)"
	finish
fi

# build NAME ICF FLAG...: NAME/old/p and NAME/new/p, of SOURCE; DWARF 4 is what AutoFDO's tools read.
SOURCE=called.cc
build() {
	local n=$1 icf=$2
	shift 2
	mkdir -p "$n/old" "$n/new"
	g++ -O2 -gdwarf-4 -w -ffunction-sections -Wl,--emit-relocs,-z,now "$@" "$FIXTURES/profile/$SOURCE" -o "$n/old/p" >log 2>&1 &&
		"$ICFOLD" -q --icf="$icf" --allow-growth "$n/old/p" -o "$n/new/p" >>log 2>&1 && return
	not_ok "profile/$n" "build: $(first_line log)"
	return 1
}
# trace NAME [OPTION]...: runs both, with the arguments JOB, programs; NAME/old.txt, NAME/new.txt.  BY=valgrind: much faster.
job=() by=
stepped() { # PROGRAM OPTION...
	local prog=$1
	shift
	if [ "$RUN" ]; then
		# shellcheck disable=SC2086
		{ $RUN $single -d exec,nochain -D /proc/self/fd/9 "$prog" ${job[@]+"${job[@]}"} 9>&1 >/dev/null 2>qemu.log; } | ./branches "$@" -q "$prog"
	elif [ -z "$by" ]; then
		./branches "$@" "$prog" ${job[@]+"${job[@]}"}
	else
		valgrind -q --tool=lackey --basic-counts=no --trace-mem=yes --log-fd=9 "$prog" ${job[@]+"${job[@]}"} 9>&1 >/dev/null 2>valgrind.log | ./branches "$@" -v "$prog"
	fi
}
trace() {
	local n=$1
	shift
	"$ICFOLD" dump --groups --json "$n/new/p" | jq -r '.groups[].members[] | select(.thunk) | .thunk' |
		python3 -c 'import sys
fini = int(sys.argv[1] or "0", 16)
for l in sys.stdin:
    at = int(l, 16)
    print("%x %x" % (at, fini if at < fini < at + 16 else at + 16))' "$(nm "$n/new/p" | awk '$3 == "_fini" { print $1 }')" >"$n/thunks"
	stepped "$n/old/p" "$@" >"$n/old.txt" 2>log && stepped "$n/new/p" "$@" -t "$n/thunks" >"$n/new.txt" 2>>log
}
translate() { "$ICFOLD" profile "$@"; }
# round_trip NAME LABEL MOST [OPTION]...: at most MOST per cent may be undecided.
round_trip() {
	local n=$1 label=profile/$1-$2 most=$3 said
	shift 3
	if ! trace "$n" "$@"; then
		skip "$label" "the tracer does not run here: $(first_line log)"
		return 1
	fi
	translate "$n/new/p" "$n/new.txt" >"$n/kept.txt" 2>"$n/said" && translate -q --undecided=drop "$n/new/p" "$n/new.txt" >"$n/drop.txt" 2>log
	said=$(python3 "$judge" "$n/old.txt" "$n/kept.txt" "$n/drop.txt")
	check "$label" "$(tail -n 1 <<<"$said")" grep -q ' 0 wrong$' <<<"$said"
	# Without the translation, the same comparison fails.
	check "$label-judge" "the judge finds no fault in the profile as it was" bash -c "! python3 $judge $n/old.txt $n/new.txt $n/new.txt | grep -q ' 0 wrong\$'"
	check "$label-undecided" "$(first_line "$n/said")" python3 -c 'import re, sys
s = re.search(r"undecided \((.*) %\)", open(sys.argv[1]).read())
sys.exit(float(s.group(1)) > float(sys.argv[2]))' "$n/said" "$most"
}

# readers NAME, whose programs valgrind loaded: what llvm-profgen and BOLT make of the translated profile and of the unfolded run's differs by less than what is undecided
# may make; of the folded program's profile as it was, by ten times as much.
cat >apart.py <<'END'
import collections, sys
def counts(path):
    c = collections.Counter()
    for l in open(path, errors="replace"):
        *key, n = l.split()
        c[tuple(key)] += int(n)
    return c
want, ours, raw = map(counts, sys.argv[1:4])
off = lambda x: sum(abs(want[k] - x[k]) for k in set(want) | set(x))
total = sum(want.values())
print("%d counts, %d differ, %d without the translation" % (total, off(ours), off(raw)))
sys.exit(total < 10000 or off(ours) > 0.02 * total or off(raw) < 10 * off(ours))
END
readers() {
	local n=$1 f to
	for f in old new; do grep -v '^	' "$n/$f.txt" | sed '/^$/d; /MMAP/!s/^/ 0 /' >"$n/$f.lbr"; done
	for to in profgen bolt; do translate -q --to=$to "$n/new/p" "$n/new.txt" >"$n/ours.$to" 2>log; done
	if have llvm-profgen-19; then
		llvm-profgen-19 --perfscript="$n/old.lbr" --binary="$n/old/p" -o "$n/old.prof" >log 2>&1
		llvm-profgen-19 --unsymbolized-profile="$n/ours.profgen" --binary="$n/old/p" -o "$n/ours.prof" >>log 2>&1
		llvm-profgen-19 --perfscript="$n/new.lbr" --binary="$n/new/p" -o "$n/new.prof" >>log 2>&1
		for f in old ours new; do llvm-profdata-19 show --sample "$n/$f.prof" 2>>log | sed -nE 's/^Function: ([^:]*): [0-9]+, ([0-9]+),.*/\1 \2/p' >"$n/$f.entries"; done
		check "profile/$n-profgen" "$(python3 apart.py "$n"/{old,ours,new}.entries)" python3 apart.py "$n"/{old,ours,new}.entries
	else
		skip "profile/$n-profgen" "no llvm-profgen-19"
	fi
	if have llvm-bolt-19; then
		for f in old new; do python3 "$TESTS/judges/bolt_counts.py" "$n/$f.lbr" 108000 >"$n/$f.bolt"; done
		llvm-bolt-19 "$n/old/p" --aggregate-only --pa -p "$n/old.bolt" -o "$n/old.fdata" >log 2>&1
		llvm-bolt-19 "$n/old/p" --aggregate-only --pa -p "$n/ours.bolt" -o "$n/ours.fdata" >>log 2>&1
		llvm-bolt-19 "$n/new/p" --aggregate-only --pa -p "$n/new.bolt" -o "$n/new.fdata" >>log 2>&1
		check "profile/$n-bolt" "$(python3 apart.py "$n"/{old,ours,new}.fdata)" python3 apart.py "$n"/{old,ours,new}.fdata
	else
		skip "profile/$n-bolt" "no llvm-bolt-19"
	fi
}

# twice.py PROGRAM PROFILE FORWARD DROPPED: the undecided places of DROPPED, and how many of them are in calls that, with the same callers
# and the same code, led to different functions in PROFILE.
cat >twice.py <<'END'
import bisect, collections, subprocess, sys
program, *profiles = sys.argv[1:]
symbols = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True).stdout.splitlines()
starts = sorted({int(l.split()[0], 16) for l in symbols if l.split()[1] in "tTwW"})
def samples(path):
    chain, out, bias = [], [], 0
    for l in open(path):
        if "MMAP" in l:
            w = l.replace("[", " ").replace("(", " ").replace("]", " ").split()
            bias = int(w[w.index("@") - 2], 16) - int(w[w.index("@") + 1], 16)
        elif l[0] == "\t":
            chain.append(int(l, 16))
        elif "/P/" in l:
            out.append((chain, [int(x, 16) for b in l.split() for x in b.split("/")[:2]]))
            chain = []
    return bias, out
(bias, old), (_, forward), (_, dropped) = map(samples, profiles)
assert len(old) == len(forward) == len(dropped)
def function(chain, j):
    return bisect.bisect_right(starts, chain[j] - (j > 0) - bias)
seen = collections.defaultdict(set)
for (o, _), (f, _) in zip(old, forward):
    for j in range(len(o)):
        # f[j] is in the same code, wherever in it
        seen[tuple(o[j + 1:]), f[j]].add(function(o, j))
places = twice = 0
for (o, ob), (f, fb), (d, db) in zip(old, forward, dropped):
    n = sum(not x for x in d + db) + len(ob) - len(db)
    open_ = [j for j in range(len(d)) if not d[j]]
    places += n
    if open_:
        j = open_[-1]
        twice += n if len(seen[tuple(o[j + 1:]), f[j]]) > 1 else 0
print(places, "undecided places,", twice, "of calls that led to several functions")
END
if [ "$RUN" ]; then
	always_fold
	# What qemu before 8.1 calls it.
	single=-singlestep
	"${RUN%% *}" -h 2>&1 | grep -q -e -one-insn-per-tb && single=-one-insn-per-tb
	build pie safe -pie -fPIE && round_trip pie chains 2 -n 16 -g
	[ "${PROFILE:-}" = full ] || finish
	for cc in O0 O1 O3 Os; do
		build "pie-$cc" safe -$cc -pie -fPIE && round_trip "pie-$cc" chains 2 -n 16 -g
	done
	build bti safe -pie -fPIE -mbranch-protection=standard && round_trip bti chains 2 -n 16 -g
	build nopie all -no-pie -fno-pic && round_trip nopie branches 25 -n 32
	finish
fi
# laid_out NAME, of which nothing is undecided: BOLT's counts are those of the unfolded run, one by one, and so is what BOLT makes of them.
laid_out() {
	local n=$1 f program
	for f in old new; do
		grep -v '^	' "$n/$f.txt" | sed '/^$/d; /MMAP/!s/^/ 0 /' >"$n/$f.lbr"
		python3 "$TESTS/judges/bolt_counts.py" "$n/$f.lbr" 555555554000 | sort >"$n/$f.bolt"
	done
	# The judge knows no functions: it does not tell f from F.
	translate -q --to=bolt "$n/new/p" "$n/new.txt" 2>log |
		awk '{ k = ($1 == "f" ? "F" : $1) " " $2 " " $3; c[k] += $4 } END { for (k in c) print k, c[k] (k ~ /^B/ ? " 0" : "") }' | sort >"$n/ours.bolt"
	check "profile/$n-bolt-counts" "$(diff "$n/old.bolt" "$n/ours.bolt" | sed -n 2p)" cmp -s "$n/old.bolt" "$n/ours.bolt"
	have llvm-bolt-19 || { skip "profile/$n-layout" "no llvm-bolt-19"; return; }
	for f in old ours new; do
		if [ $f = new ]; then program=$n/new/p; else program=$n/old/p; fi
		mkdir -p "$n/$f.d"
		cp "$n/old/p" "$n/$f.d/in"
		llvm-bolt-19 "$program" --aggregate-only --pa -p "$n/$f.bolt" -o "$n/$f.fdata" >log 2>&1
		sort "$n/$f.fdata" >"$n/$f.d/fdata"
		(cd "$n/$f.d" && llvm-bolt-19 in --data fdata -o out --reorder-functions=hfsort --reorder-blocks=ext-tsp --split-functions --use-old-text=0 >log 2>&1)
	done
	check "profile/$n-layout" "$(tail -n 1 "$n/ours.d/log")" cmp -s "$n/old.d/out" "$n/ours.d/out"
	check "profile/$n-layout-contrast" "the profile as it was does no harm" bash -c "[ -s $n/new.d/out ] && ! cmp -s $n/old.d/out $n/new.d/out"
}

# part NAME: is it wanted?
part() { [ "${PROFILE:-}" = full ] && [[ " ${PARTS:-forms ninja protoc large} " = *" $1 "* ]]; }
build pie safe -pie -fPIE || finish
round_trip pie branches 20 -n 32 || finish
round_trip pie chains 2 -n 32 -g
round_trip pie short 3 -n 8 -g
if build nopie all -no-pie -fno-pic; then
	round_trip nopie chains 8 -n 32 -g
	round_trip nopie branches 25 -n 32
fi
# Samples that were taken in a library: their branches and their stack belong together.
SOURCE=library.cc
build library all && round_trip library chains 1 -n 4 -g
SOURCE=called.cc
if part forms; then
	for cc in O1 O3 Os; do build "$cc" safe -$cc -pie -fPIE && round_trip $cc chains 5 -n 16 -g; done
fi
if part ninja; then
	mkdir -p ninja/old ninja/new job
	echo 'rule cc' >job/build.ninja
	# shellcheck disable=SC2016
	echo ' command = cp $in $out' >>job/build.ninja
	for i in 1 2 3 4 5 6; do
		echo x >"job/s$i"
		echo "build o$i: cc s$i" >>job/build.ninja
	done
	prog=$(bash "$TESTS/corpus.sh" ninja 2>log)
	if [ -n "$prog" ] && cp "$prog" ninja/old/p && "$ICFOLD" -q ninja/old/p -o ninja/new/p 2>>log; then
		job=(-C job -n -v)
		round_trip ninja chains 2 -n 32 -g && laid_out ninja
		round_trip ninja branches 2 -n 32
		job=()
	else
		skip profile/ninja "$(first_line log)"
	fi
fi
if part protoc; then
	# protoc writes Python for the messages of its own source, and what other programs make of both profiles.
	mkdir -p protoc/old protoc/new protoc/out/google/protobuf job
	prog=$(bash "$TESTS/corpus.sh" protoc 2>log)
	src=$(dirname "$prog")/src/protobuf/src
	if ! have valgrind; then
		skip profile/protoc "no valgrind"
	elif [ -n "$prog" ] && [ -d "$src" ] && cp "$prog" protoc/old/p && "$ICFOLD" -q protoc/old/p -o protoc/new/p 2>>log; then
		by=valgrind job=("-I$src" --python_out=protoc/out "$src/google/protobuf/wrappers.proto")
		round_trip protoc branches 2 -n 32
		round_trip protoc chains 2 -n 32 -g && readers protoc
		# Its C++ generator calls functions of several classes through one virtual table: which class it was is in no address.  Most of
		# what is undecided then is which file's copy of one function ran.  (Its containers are sorted by pointers: no two runs are the same.)
		printf 'syntax = "proto3";\nmessage A { int32 x = 1; string s = 2; repeated B b = 3; }\nmessage B { map<string, int32> m = 1; oneof o { bytes y = 2; E e = 3; } }\nenum E { ZERO = 0; ONE = 1; }\n' >job/small.proto
		job=(-Ijob --cpp_out=protoc/out job/small.proto)
		stepped protoc/new/p -n 32 -g -t protoc/thunks >protoc/cpp.txt 2>log
		translate protoc/new/p protoc/cpp.txt 2>said >kept.txt
		check profile/protoc-cpp "$(tr '\n' ' ' <said)" awk '/ places in / { places = $5; open = $(NF - 3) } / one name/ { alike = $3 } END { exit !(places > 1000000 && open - alike < 0.01 * places && open < 0.05 * places) }' said
		# What is decided is right: the unfolded run's profile, carried over and back.
		stepped protoc/old/p -n 32 -g >protoc/cpp.old 2>log
		translate -q --forward protoc/new/p protoc/cpp.old >protoc/cpp.forward 2>log
		translate -q protoc/new/p protoc/cpp.forward >kept.txt && translate -q --undecided=drop protoc/new/p protoc/cpp.forward >drop.txt
		said=$(python3 "$judge" protoc/cpp.old kept.txt drop.txt)
		check profile/protoc-cpp-decided "$(tail -n 1 <<<"$said")" grep -qE '^[0-9]{7,} compared, .* 0 wrong$' <<<"$said"
		# Most of what is undecided nobody can know: the same calls led to functions of two classes in this run.
		said=$(python3 twice.py protoc/old/p protoc/cpp.old protoc/cpp.forward drop.txt)
		check profile/protoc-cpp-twice "$said" awk '{ exit !($1 > 20000 && $4 > 0.6 * $1) }' <<<"$said"
		by='' job=()
	else
		skip profile/protoc "$(first_line log)"
	fi
fi
if part large; then
	# A gigabyte in 500 MB of address space, at 60 MB/s.
	trace pie -n 32
	for _ in $(seq 100); do cat pie/new.txt; done >large
	size=$(stat -c %s large)
	TIMEFORMAT=%U
	for to in perfscript profgen bolt autofdo pprof collapsed; do
		times=$((1000000000 / size))
		[ $to = perfscript ] || times=$((times / 4))
		{ time (ulimit -v 500000; for _ in $(seq $times); do cat large; done | translate -q --to=$to pie/new/p >/dev/null 2>log); } 2>seconds
		check profile/large-$to "$((size * times / 1000000)) MB took $(cat seconds) s; $(first_line log)" awk -v n="$((size * times))" '{ exit n / 1e6 / $1 < 60 }' seconds
	done
fi

# The other way: the old program's profile on the folded one is that of the folded run, without the jumps of thunks.
trace pie -n 32
translate -q --forward pie/new/p pie/old.txt >forward.txt 2>log
python3 - pie/new.txt pie/thunks forward.txt >log <<'END'
import re, sys
branch = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/")
new, thunks, forward = sys.argv[1:4]
bias = 0x555555554000
at = [[int(x, 16) + bias for x in l.split()] for l in open(thunks)]
body = {}
def lines(path):
    return [[(int(a, 16), int(b, 16)) for a, b in branch.findall(l)] for l in open(path) if "MMAP" not in l and branch.search(l)]
def is_thunk(a):
    return any(s <= a < e for s, e in at)
want = []
for l in lines(new):
    for a, b in l:
        if is_thunk(a):
            body[a & ~15] = body[a] = b
for l in lines(new):
    want.append([(a, next((body[s] for s in (b, b & ~15) if s in body and is_thunk(b)), b)) for a, b in l if not is_thunk(a)])
got = lines(forward)
bad = [(w, g) for w, g in zip(want, got) if w != g]
print(len(want), len(got), "lines", len(bad), "differ", bad[:1])
sys.exit(bool(bad) or len(want) != len(got) or not at)
END
rc=$?
check profile/forward "$(first_line log)" test $rc = 0

# ---- outputs, and who reads them -----------------------------------------------------------------------------------------------
translate -q pie/new/p pie/new.txt >kept.txt
translate -q --to=profgen pie/new/p pie/new.txt >out.profgen 2>log
translate -q --to=bolt pie/new/p pie/new.txt >out.bolt 2>>log
translate -q --to=autofdo pie/new/p pie/new.txt >out.autofdo 2>>log
translate -q --to=pprof pie/new/p pie/new.txt >out.pb.gz 2>>log
# The functions that no undecided place is in have the unfolded run's counts.
cat >same_entries.py <<'END'
import sys
old, new = (dict(l.split() for l in open(f)) for f in sys.argv[1:3])
sure = "caller_a caller_b caller_c tail_a tail_b cold_a cold_b pointed_a pointed_b order_a order_b main".split()
bad = [(f, old.get(f), new.get(f)) for f in sure if f not in old or old.get(f) != new.get(f)]
print(bad[:3] if bad else "%d functions" % len(new))
sys.exit(bool(bad))
END
profgen=
# LLVM 14 makes other counts of the same text.
for v in -19 -18 -17 -16 -15; do have llvm-profgen$v && have llvm-profdata$v && profgen=$v && break; done
if [ -n "$profgen" ]; then
	"llvm-profgen$profgen" --perfscript=kept.txt --binary=pie/old/p --skip-symbolization -o want.profgen >log 2>&1
	check profile/profgen "not what llvm-profgen makes of the text: $(diff want.profgen out.profgen | head -n 2 | tail -n 1)" cmp -s want.profgen out.profgen
	for f in old new; do
		if [ $f = old ]; then set -- --perfscript=pie/old.txt; else set -- --unsymbolized-profile=out.profgen; fi
		"llvm-profgen$profgen" "$@" --binary=pie/old/p -o $f.prof >log 2>&1
		"llvm-profdata$profgen" show --sample $f.prof 2>>log | sed -nE 's/^Function: ([^:]*): [0-9]+, ([0-9]+),.*/\1 \2/p' >$f.entries
	done
	check profile/profgen-entries "$(python3 same_entries.py old.entries new.entries)" python3 same_entries.py old.entries new.entries
else
	skip profile/profgen "no llvm-profgen of LLVM 15 or later"
fi
python3 - kept.txt out.bolt >log <<'END'
import collections, re, sys
branch = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/")
bias = 0x555555554000
b, f = collections.Counter(), collections.Counter()
for l in open(sys.argv[1]):
    v = [[int(x, 16) - bias for x in p] for p in branch.findall(l)]
    v = [[x if 0 < x < 1 << 32 else 0 for x in p] for p in v]
    for i, (x, y) in enumerate(v):
        b[x, y] += 1
        if i and y and v[i - 1][0]:
            f[y, v[i - 1][0]] += 1
got_b, got_f = collections.Counter(), collections.Counter()
for l in open(sys.argv[2]):
    w = l.split()
    (got_b if w[0] == "B" else got_f)[int(w[1], 16), int(w[2], 16)] += int(w[3])
print([k for k in b if b[k] != got_b[k]][:2], [k for k in got_f if f[k] != got_f[k]][:2], len(b), len(got_b), len(f), len(got_f))
sys.exit(b != got_b or any(f[k] != got_f[k] for k in got_f) or len(got_f) < 9 * len(f) // 10)
END
check profile/bolt "counts: $(first_line log)" test $? = 0
if have llvm-bolt-19; then
	llvm-bolt-19 --aggregate-only --pa -p out.bolt pie/old/p -o out.fdata >log 2>&1
	check profile/bolt-reads "$(tail -n 1 log)" bash -c "grep -q 'read [1-9][0-9]* aggregated' log && grep -qE 'caller_b.* leaf_b' out.fdata && ! grep -qE 'caller_b.* leaf_[ac]' out.fdata"
else
	skip profile/bolt-reads "no llvm-bolt-19"
fi
if have create_gcov && have dump_gcov; then
	create_gcov --profiler=text --profile=out.autofdo --binary=pie/old/p --gcov=out.gcov --gcov_version=2 >log 2>&1
	dump_gcov --gcov_version=2 out.gcov 2>>log | sed -nE 's/^([^ ]+) total:[0-9]+ head:([0-9]+)$/\1 \2/p' >new.entries
	sed -i 's/ order_a order_b main"/"/' same_entries.py # these are called from outside
	check profile/autofdo "$(python3 same_entries.py old.entries new.entries)" python3 same_entries.py old.entries new.entries
else
	skip profile/autofdo "no create_gcov"
fi
trace pie -n 32 -g
translate -q --to=pprof pie/new/p pie/new.txt >chain.pb.gz 2>log
translate -q --to=collapsed pie/new/p pie/new.txt >chain.collapsed 2>>log
samples=$(grep -c '0x.*/' pie/new.txt)
check profile/collapsed "$(first_line chain.collapsed)" awk -v n="$samples" '{ s += $NF } END { exit s < n - 3 || s > n }' chain.collapsed
check profile/collapsed-callees "$(grep -E 'caller_(a;leaf_[bc]|b;leaf_[ac]|c;leaf_[ab])' chain.collapsed | head -n 1)" bash -c \
	"! grep -qE 'caller_(a;leaf_[bc]|b;leaf_[ac]|c;leaf_[ab])' chain.collapsed && grep -q 'main;tail_b;caller_b;leaf_b\|caller_b;leaf_b' chain.collapsed"
if have go && go tool pprof -h 2>&1 | grep -q -- -top; then
	HOME=$WORK go tool pprof -top -nodecount=1000 -sample_index=samples chain.pb.gz >top 2>log
	check profile/pprof "$(first_line top)" awk -v n="$samples" '/leaf_b$/ { b = 1 } /leaf_c$/ { c = 1 } /% of [0-9]+ total|% of [0-9]+samples/ { for (i = 1; i <= NF; i++) if ($i == "of" && $(i + 1) + 0 > n) exit 1 } END { exit !b || !c }' top
	HOME=$WORK go tool pprof -peek 'leaf_b$' chain.pb.gz >peek 2>log
	check profile/pprof-callers "$(grep -m1 'caller_[ac]$' peek)" bash -c "grep -q 'caller_b' peek && ! grep -qE 'caller_[ac]\$' peek"
else
	skip profile/pprof "no go tool pprof"
fi
if have protoc; then
	check profile/pprof-proto "protoc cannot read it" bash -c "zcat chain.pb.gz | protoc --decode_raw >raw 2>log && grep -q '^2 {' raw && grep -q '^6: \"leaf_b\"' raw"
else
	skip profile/pprof-proto "no protoc"
fi

# ---- forms of the text ---------------------------------------------------------------------------------------------------------
# The chains, as perf prints them with names: a header, frames with offsets in the file, an empty line.
cat >named.py <<'END'
import re, subprocess, sys
prog, text = sys.argv[1:3]
bias = 0x555555554000
symbols = {}
for l in subprocess.run(["nm", "-S", prog], capture_output=True, text=True).stdout.splitlines():
    w = l.split()
    if len(w) == 4 and w[2] in "tTwW":
        symbols.setdefault(int(w[0], 16), (int(w[1], 16), w[3]))
def name(a):
    s = max((x for x in symbols if x <= a), default=None)
    return (symbols[s][1], a - s) if s is not None and a < s + symbols[s][0] else None
frames, n = [], 0
print("p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x%x(0x1000) @ 0x1000 08:01 1 0]: r-xp %s" % (bias + 0x1000, prog))
for l in open(text):
    if re.match(r"\t", l):
        frames.append(int(l, 16))
    elif frames:
        known = [(a, name(a - bias - (i > 0))) for i, a in enumerate(frames)]
        if all(k for a, k in known):
            n += 1
            print("p     7/7     [000]  12.%06d:     250000 %s: " % (n, "cycles:u" if n % 3 else "instructions:u"))
            for i, (a, k) in enumerate(known):
                print("\t%16x %s+0x%x (%s)" % (a, k[0], k[1] + (i > 0), prog))
            print()
        frames = []
END
python3 named.py pie/old/p pie/old.txt >named.old
python3 named.py pie/new/p pie/new.txt >named.new
translate --undecided=drop -q pie/new/p named.new >named.out 2>log
python3 - named.old named.out named.new >log <<'END'
import re, sys
def samples(p):
    out = {}
    for block in open(p).read().split("\n\n"):
        m = re.search(r" 12\.(\d+):", block)
        if m:
            out[m.group(1)] = [tuple(l.split()[:2]) for l in block.splitlines() if l.startswith("\t")]
    return out
old, out, new = map(samples, sys.argv[1:4])
bad = [(n, [x for x in zip(old[n], out[n]) if x[0] != x[1]][:1]) for n in out if n in old and old[n] != out[n]]
changed = sum(out[n] != new[n] for n in out)
print(len(out), "samples", changed, "changed", bad[:2])
sys.exit(bool(bad) or len(out) < 40 or not changed)
END
rc=$?
check profile/names "$(first_line log)" test $rc = 0
translate -q pie/new/p <named.new >a 2>log
cat named.new | translate -q pie/new/p - >b 2>>log
check profile/input "standard input" cmp -s a b
fields=0 lost=0
# Frames with less: -F ip,sym; without symoff; -F ip,dso; -F ip.  Of the translation, the same remains.
translate -q pie/new/p named.new >whole 2>log
for form in 's/ \([^ ]*\)$//' 's/+0x[0-9a-f]* (/ (/' 's/ [^ ]* (/ (/' 's/ [^ ]* ([^ ]*)$//'; do
	sed "/^	/$form" named.new >in.txt
	translate -q pie/new/p in.txt 2>>log | sed 's/ *$//' >a
	check "profile/fields-$((++fields))" "$(diff a <(sed "/^	/$form" whole | sed 's/ *$//') | sed -n 2p)" cmp -s a <(sed "/^	/$form" whole | sed 's/ *$//')
done
# Commands are any text.
for comm in 'worker 12' 'tmux: server' 'IO 1/2 x' '12 13'; do
	for pid in '    7/7 ' ' 7 '; do
		sed "s@^p     7/7 @$comm$pid@" named.new >in.txt
		translate --event=cycles:u --to=collapsed pie/new/p in.txt 2>log >a
		check "profile/comm-$comm-$(tr -d ' ' <<<"$pid")" "$(first_line a)" bash -c "[ -s a ] && ! grep -v '^$comm;' a"
	done
done
# Offsets in the file, which perf shows of callers.
python3 - named.new >offset.txt <<'END'
import re, sys
for l in open(sys.argv[1]):
    print(re.sub(r"^\t *([0-9a-f]+) ", lambda m: "\t%16x " % (int(m[1], 16) - 0x555555554000), l.rstrip("\n")))
END
for form in 's/x/x/' 's/ \([^ ]*\)$//' 's/ [^ ]* (/ (/'; do
	sed "/^	/$form" offset.txt >in.txt
	translate -q --to=collapsed pie/new/p in.txt 2>log | sed 's/ [0-9]*$//' >a
	sed "/^	/$form" named.new | translate -q --to=collapsed pie/new/p 2>log | sed 's/ [0-9]*$//' >b
	check "profile/offsets-$((++fields))" "$(diff a b | sed -n 2p)" bash -c '[ -s a ] && cmp -s a b'
done
sed '/^	/s/ [^ ]* ([^ ]*)$//' offset.txt | translate --to=collapsed pie/new/p 2>log >a
check profile/offsets-alone "$(tail -n 1 log)" grep -q 'frames of call chains are offsets without a file' log
# The old program's chains on the folded one: the frames that the folded program has.
sed '/^	/s/ [^ ]* (/ (/' named.old | translate -q --forward pie/new/p >a 2>log
python3 -c 'import re, sys
for l in open(sys.argv[1]):
    print(re.sub(r"^\t *([0-9a-f]+) ", lambda m: "\t%16x " % (int(m[1], 16) - 0x555555554000), l.rstrip("\n")))' named.old | sed '/^	/s/ [^ ]* (/ (/' | translate -q --forward pie/new/p 2>log |
	python3 -c 'import re, sys
for l in sys.stdin:
    print(re.sub(r"^\t *([0-9a-f]+) ", lambda m: "\t%16x " % (int(m[1], 16) + 0x555555554000), l.rstrip("\n")))' >b
check profile/offsets-forward "$(diff a b | sed -n 2p)" bash -c 'grep -q "^	.*(" a && cmp -s a b && ! cmp -s b named.old'
# What shows places in other forms is not lost in silence: names of branches, code, both ends of a jump, more behind a place.  A probe's text is no place.
for line in ' 555555555000 f+0x1/g+0x2/P/-/-/0 ' 'p 7/7 [000] 1.0: 1 cycles:u: 555555555000 f+0x1 (/x/p) insn: e8 12' \
	'p 7/7 [000] 1.0: 1 branches:u:   call   555555555000 f+0x1 (/x/p)' 'p 7/7 [000] 1.0: 1 branches:u:   555555555000 f+0x1 (/x/p) => 555555555010 g+0x0 (/x/p)' \
	'	0000555555555000	insn: e8 12 34	# PRED'; do
	{ cat named.new; printf '%s\n\n' "$line"; } | translate --event=cycles:u pie/new/p 2>log >a
	check "profile/lost-$((++lost))" "$line: $(tail -n 1 log)" grep -q ' 1 lines have branches or places in a form that is not read' log
	printf '%s\n' "$line" | translate pie/new/p 2>log >a
	check "profile/lost-$lost-alone" "$(first_line log)" grep -q 'no sample can be read: line 1 has' log
done
n=$(grep -c ' cycles:u:\| instructions:u:' named.new)
sed 's/ 250000 cycles:u: / 1 probe_p:leaf: (555555555000 <- 555555555010)/' named.new | translate --to=collapsed pie/new/p 2>log >a
check profile/probe "$(first_line log)" bash -c "grep -q ' $n samples' log && ! grep -q probe a"
translate -q --event=instructions:u pie/new/p named.new >a 2>log
check profile/event "$(first_line log)" bash -c "grep -q instructions:u a && ! grep -q 'cycles:u' a"
translate --to=collapsed pie/new/p named.new >a 2>log
check profile/events-differ "$(first_line log)" grep -q 'several events' log
check profile/comm "$(first_line a)" grep -q '^p;' a
# Mappings of data (perf record -d) can begin where code begins in the file.
sed '/^	/s/ [^ ]* ([^ ]*)$//' named.new >in.txt
sed '/PERF_RECORD_MMAP/{p;s/\[0x555555555000/[0x555555558000/;s/r-xp/rw-p/}' in.txt >data.txt
for f in in data; do translate -q --to=collapsed pie/new/p $f.txt >$f.out 2>log; done
check profile/data-mapping "$(first_line data.out)" bash -c 'grep -q "caller_b;leaf_b" in.out && cmp -s in.out data.out && ! cmp -s in.txt data.txt'
# A count in front of a sample, as in what llvm-profgen reads; branch records with files; a kernel's frames.
site=$(sed -nE 's/^.* (0x[0-9a-f]+\/0x[0-9a-f]+\/P\/-\/-\/0) +$/\1/p' pie/new.txt | head -n 1)
printf 'PERF_RECORD_MMAP2 7/7: [0x555555555000(0x1000) @ 0x1000 08:01 1 0]: r-xp /x/p\n5\n 555555555000  %s  %s \n' "$site" "$site" >in.txt
translate -q --to=bolt pie/new/p in.txt >a 2>log
check profile/count "$(first_line a)" grep -qE '^B .* 10 0$' a
sed -E 's,0x([0-9a-f]+)/0x([0-9a-f]+)/,0x\1(/x/p)/0x\2(/y/other)/,g' in.txt >files.txt
translate -q --to=bolt pie/new/p files.txt >a 2>log
check profile/files "$(first_line a)" grep -qE '^B [0-9a-f]+ 0 10 0$' a
# Branch records without files, of process 9, count if the program is mapped there: by a mapping of its own, or of a parent's, until another
# file is mapped in its place.  Other libraries, and code in memory, are elsewhere or the program's own.
mapped() { # NAME WANTED PROGRAM SITE MAPPING...: "PID START(SIZE) FILE" each
	local n=$1 want=$2 prog=$3 at=$4 m pid
	shift 4
	for m; do
		read -r pid m <<<"$m"
		printf 'p %s 1.0: PERF_RECORD_MMAP2 %s/%s: [0x%s @ 0x1000 08:01 1 0]: r-xp %s\n' "$pid" "$pid" "$pid" "${m%% *}" "${m#* }"
	done >in.txt
	printf 'p 9 2.0: 1 cycles:u:  %s\n' "$at" >>in.txt
	translate --to=bolt "$prog" in.txt 2>log >a
	check "profile/mapped-$n" "$(grep -c '^B' a) branches; $(first_line log)" test "$(grep -c '^B' a)" = "$want"
}
own='555555555000(0x1000) /x/p' other='555555554000(0x1100) /usr/bin/other' away='7ffff7000000(0x1000) /lib/x.so'
mapped other 0 pie/new/p "$site" "7 $own" "9 $other"
mapped other-first 0 pie/new/p "$site" "9 $other" "9 $away" "7 $own"
mapped executes 0 pie/new/p "$site" "9 $own" "9 $away" "9 $other"
mapped executes-it 1 pie/new/p "$site" "9 $other" "9 $own" "9 $away"
mapped inherits 1 pie/new/p "$site" "7 $own" "9 $away"
mapped unknown 1 pie/new/p "$site" "7 $own" "8 $other"
mapped memory 1 pie/new/p "$site" "9 $own" '9 555555555000(0x1000) //anon' '9 555555555000(0x1000) /anon_hugepage (deleted)'
if [ -s nopie/new.txt ]; then
	fixed=$(sed -nE 's/^.* (0x[0-9a-f]+\/0x[0-9a-f]+\/P\/-\/-\/0) +$/\1/p' nopie/new.txt | head -n 1)
	mapped fixed 1 nopie/new/p "$fixed" "9 $away"
	mapped fixed-other 0 nopie/new/p "$fixed" '9 401000(0x1000) /usr/bin/other'
fi
# Copies of one function: which of them ran is open, the function is not.
for n in a b; do
	printf 'static __attribute__((noinline, noclone)) long same(long x) { volatile long s = x; for (long i = 0; i < x; i++) s += i * x; return s; }\nlong %s(long x) { return same(x) %s 3; }\n' $n "$([ $n = a ] && echo + || echo -)" >copy_$n.c
done
printf 'long a(long), b(long); int main(int c, char **v) { return a(c) == b(c + 1); }\n' >copy.c
if gcc -O1 -g -no-pie -fno-pic -ffunction-sections -Wl,--emit-relocs copy.c copy_a.c copy_b.c -o copies >log 2>&1 && "$ICFOLD" -q --allow-growth copies -o copies.new 2>>log; then
	printf 'p 7 12.0: 1 cycles:u: \n\t%16x same+0x4 (/x/copies.new)\n\n' $((0x$(nm copies.new | awk '$3 == "same" { print $1; exit }') + 4)) >in.txt
	translate copies.new in.txt 2>log >a
	check profile/copies "$(tr '\n' ' ' <log)" bash -c "grep -q ' 1 undecided' log && grep -q ': 1 of the undecided places are between functions of one name' log"
else
	not_ok profile/copies "$(first_line log)"
fi
mkdir bin
printf '#!/bin/sh\necho "$*" >>%s/perf.log\ncat %s/named.new\n' "$WORK" "$WORK" >bin/perf
chmod +x bin/perf
printf 'PERFILE2xxxxxxxxxxxxxxxx' >perf.data
PATH=$WORK/bin:$PATH translate -q pie/new/p perf.data >a 2>log
translate -q pie/new/p named.new >b
check profile/perf-data "$(first_line log)" bash -c "cmp -s a b && grep -q 'show-mmap-events.*-i perf.data' perf.log"
printf '#!/bin/sh\nexit 3\n' >bin/perf
PATH=$WORK/bin:$PATH translate -q pie/new/p perf.data >a 2>log
check profile/perf-fails "status $?: $(first_line log)" grep -q 'perf script cannot read it' log
# Real text, in several forms: whose time it was is known to the functions that called.
if have perf && g++ -O2 -g -fno-omit-frame-pointer -ffunction-sections -w -Wl,--emit-relocs "$FIXTURES/profile/spin.cc" -o spin.old >log 2>&1 &&
	"$ICFOLD" -q --allow-growth spin.old -o spin 2>>log && perf record -q -e cpu-clock -F 1000 -g -o real.data -- ./spin 12000000 >log 2>&1 && perf script -i real.data 2>/dev/null | grep -q spin; then
	for form in '' --show-mmap-events '-F comm,tid,ip,sym,dso,srcline' '-F comm,pid,time,event,ip,sym,symoff,dso --show-mmap-events' '-F comm,pid,ip,dso --show-mmap-events' '-F ip,dso' '-F comm,ip,sym --show-mmap-events' '-F pid,misc,ip,sym,dso'; do
		# shellcheck disable=SC2086
		perf script $form -i real.data 2>/dev/null >real.txt
		translate --to=collapsed spin real.txt 2>log | sed 's/(long)//g' >a
		check "profile/perf-real$form" "$(first_line log)" awk '/middle_low;.*leaf_low/ { low += $NF } /middle_high;.*leaf_high/ { high += $NF } /middle_(low;.*leaf_high|high;.*leaf_low)/ { bad++ } END { exit bad || low < 5 || high < 5 }' a
	done
	# perf shows callers as offsets in files; those of which file is not known without its name.
	perf script -F ip --show-mmap-events -i real.data 2>/dev/null >real.txt
	translate --to=collapsed spin real.txt 2>log >a
	check profile/perf-real-offsets "$(tail -n 1 log)" grep -qE ' [0-9]+ frames of call chains are offsets without a file|[1-9][0-9]* places in the program' log
	translate --to=collapsed spin real.data 2>log >b
	check profile/perf-real-data "$(first_line log)" grep -q 'middle_high;leaf_high' b
else
	skip profile/perf-real "perf does not record here"
fi

# ---- faults --------------------------------------------------------------------------------------------------------------------
# fault NAME TEXT ARGUMENT...: exit status 2, one line with TEXT.
fault() {
	local n=$1 text=$2 rc
	shift 2
	translate "$@" >a 2>log
	rc=$?
	check "profile/fault-$n" "status $rc: $(first_line log)" bash -c "[ $rc = 2 ] && grep -v '^Try ' log | wc -l | grep -qx 1 && grep -qF -- '$text' log"
}
: >empty
head -c 300000 /bin/ls >binary
head -c 3000000 /dev/zero | tr '\0' 'a' >endless
fault empty 'no samples' pie/new/p empty
fault binary 'no samples' pie/new/p binary
fault endless 'line 1 is too long' pie/new/p endless
fault unfolded 'no section .debug_icfold' pie/old/p named.new
fault missing 'cannot open' pie/new/p missing.txt
fault folder 'cannot read' pie/new/p .
fault branches 'no branch records' --to=profgen pie/new/p named.new
fault event 'no sample of event' --event=nothing pie/new/p named.new
fault value '--to=gcov' --to=gcov pie/new/p named.new
fault undecided '--undecided=perhaps' --undecided=perhaps pie/new/p named.new
fault nothing 'expected FILE' -q
printf ' 40062f 0x4005c8/0x4005dc/P/-/-/0  0xffffffffffffffffffffffff/0x1/P  0x/0x12  0x1/ 0x5/0x\n' >huge
for to in perfscript profgen bolt autofdo pprof collapsed; do
	translate --to=$to pie/new/p huge >a 2>log
	rc=$?
	check "profile/huge-$to" "status $rc: $(first_line log)" bash -c "[ $rc = 0 ] || [ $rc = 2 ] && ! grep -qi 'sanitizer' log"
done
check profile/odd-lines "$(first_line log)" bash -c "'$ICFOLD' profile pie/new/p huge 2>&1 >a | grep -q 'first is line 1'"
python3 - named.new pie/new.txt >damaged <<'END'
import random, sys
r = random.Random(20)
for p in sys.argv[1:]:
    b = bytearray(open(p, "rb").read())
    for k in range(len(b) // 40):
        i = r.randrange(len(b))
        b[i:i + r.choice((0, 1, 1, 1, 3))] = bytes(r.choice((r.randrange(256), 0x20, 0x0a, 0x2f, 0x30)) for _ in range(r.choice((0, 1, 1, 2))))
    sys.stdout.buffer.write(b)
END
for to in perfscript profgen bolt autofdo pprof collapsed; do
	for u in kept drop spread; do
		translate --to=$to --undecided=$u pie/new/p damaged >a 2>log
		rc=$?
		[ $rc = 0 ] || break 2
	done
done
check profile/damaged "status $rc: $(first_line log)" test $rc = 0
finish
