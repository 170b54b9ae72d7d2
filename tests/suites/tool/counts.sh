#!/bin/bash
# counts.sh: `icfold profile` of gprof's and callgrind's files: calls that are counted by their places.  A program is run unfolded and
# folded; of the folded run's file, each decided call must be that of the unfolded run's.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite counts python3 g++
translate() { "$ICFOLD" profile "$@"; }
src=$FIXTURES/profile/called.cc
# build NAME ICF FLAG...: NAME/old, NAME/new
build() {
	local n=$1 icf=$2
	shift 2
	mkdir -p "$n"
	g++ -O2 -g -w -ffunction-sections -falign-functions=16 -Wl,--emit-relocs,-z,now "$@" -o "$n/old" >log 2>&1 &&
		"$ICFOLD" -q --icf="$icf" --allow-growth "$n/old" -o "$n/new" >>log 2>&1 && return
	not_ok "counts/$n" "build: $(first_line log)"
	return 1
}

# ---- callgrind -----------------------------------------------------------------------------------------------------------------
# callgrind NAME OPEN OPTION...: all but the functions OPEN (by "|") are the same: what pointers and virtual calls lead to.
callgrind() {
	local n=$1 f said words
	shift
	mapfile -t words < <(tr '|' '\n' <<<"$1")
	shift
	for f in old new; do
		if ! valgrind -q --tool=callgrind --dump-instr=yes "$@" --callgrind-out-file="$n/$f.out" "$n/$f" >log 2>&1; then
			not_ok "counts/$n" "valgrind: $(first_line log)"
			return
		fi
	done
	translate "$n/new" "$n/new.out" >"$n/ours.out" 2>"$n/said"
	said=$(python3 "$TESTS/judges/callgrind.py" "$n"/{old,ours,new}.out "${words[@]}")
	check "counts/$n-calls" "$(tr '\n' '|' <<<"$said" | cut -c1-200)" grep -qE '^[5-9][0-9]{2} calls, 0 differ, [1-9][0-9]{2}' <<<"$said"
	# Costs are estimates where functions that share code are called with other values; together they are what they were.
	check "counts/$n-costs" "$(first_line <(echo "$said"))" awk '{ split($0, x, "self "); split(x[2], y, ", "); exit !(y[1] > 9000 && y[2] < y[1] / 50 && y[3] > y[1] / 5) }' <<<"$(head -n 1 <<<"$said")"
	check "counts/$n-total" "another sum" [ "$(grep -a '^summary' "$n/ours.out")" = "$(grep -a '^summary' "$n/new.out")" ]
}
if have valgrind && [ "$MACHINE" = x86_64 ]; then
	build thunks safe -pie -fPIE "$src" && callgrind thunks 'one::f(long)|two::f(long)|base::~base()|one::~one()|two::~two()' --collect-jumps=yes
	# Costs that are left in the text make the sum of all costs: nothing is lost.
	python3 - thunks/new.out thunks/ours.out >log <<'END'
import re, sys
def total(path):
    s, skip = 0, False
    for l in open(path):
        if re.match(r"[0-9+*-]", l):
            w = l.split()
            s += int(w[2]) if len(w) > 2 and not skip else 0
            skip = False
        elif re.match("calls=|jump=|jcnd=", l):
            skip = True
    return s
a, b = map(total, sys.argv[1:])
print(a, b)
sys.exit(a != b)
END
	rc=$?
	check counts/sum "$(first_line log)" test $rc = 0
	check counts/undecided "$(cat thunks/said)" grep -qE ': [0-9]{3} calls: [0-9]{3} of shared code, [0-9]{1,2} undecided' thunks/said
	number=$(sed -n 's/.*fn=(\([0-9]*\)) leaf_b$/\1/p' thunks/ours.out)
	check counts/line "the line of the kept function: $(grep -A1 "^fn=($number)" thunks/ours.out | tail -n 1)" grep -qE '^0x[0-9a-f]+ 9 [0-9]+$' <(grep -A1 "^fn=($number)" thunks/ours.out)
	# Pointers to all of them lead to one address: those functions are open, too.
	if build all all -no-pie -fno-pic "$src"; then
		callgrind all 'one::f(long)|two::f(long)|base::~base()|one::~one()|two::~two()|pointed_a|pointed_b|order_a|order_b' --separate-callers=2 --dump-line=no
		check counts/callers "callers in names" bash -c "grep -q \"leaf_a'caller\" all/new.out && ! grep -q \"fn=.* leaf_[abc]'\" all/ours.out"
		for u in drop spread; do translate -q --undecided=$u all/new all/new.out >all/$u.out 2>log; done
		check counts/drop "$(grep -c pointed all/drop.out)" bash -c "! grep -qE 'fn=.* pointed_[ab]\$' all/drop.out && grep -q 'fn=.* leaf_b\$' all/drop.out"
		check counts/spread "$(grep -A2 'cfn=.* pointed_b' all/spread.out | tr '\n' ' ')" grep -qE 'fn=.* pointed_b$' all/spread.out
		if have callgrind_annotate; then
			callgrind_annotate --threshold=100 all/ours.out >log 2>&1
			check counts/annotate "$(grep -m1 -i warn log)" bash -c "grep -qE 'leaf_b \[' log && grep -qE 'caller_c \[' log && ! grep -qiE 'warn|malformed' log"
		fi
		"$ICFOLD" profile -q all/new - <all/new.out >b 2>log
		check counts/input "standard input" cmp -s b all/ours.out
	fi
else
	skip counts/callgrind "no valgrind"
fi

# ---- gprof ---------------------------------------------------------------------------------------------------------------------
# Arcs into the functions that are named, whose callers are known: counts by place; then all calls, and all samples.
cat >gmon.py <<'END'
import collections, struct, subprocess, sys
def read(path):
    d, o, hist, arcs = open(path, "rb").read(), 20, 0, collections.Counter()
    while o < len(d):
        tag, o = d[o], o + 1
        if tag == 0:
            n = struct.unpack_from("<QQI", d, o)[2]
            hist += sum(struct.unpack_from("<%dH" % n, d, o + 40))
            o += 40 + 2 * n
        else:
            f, s, n = struct.unpack_from("<QQI", d, o)
            arcs[f, s] += n
            o += 20
    return arcs, hist
prog, old, ours, new = sys.argv[1:5]
(a, _), (b, hist), (c, raw) = map(read, (old, ours, new))
symbols = {}
for l in subprocess.run(["nm", "-S", prog], capture_output=True, text=True).stdout.splitlines():
    w = l.split()
    if len(w) == 4 and w[2] in "tT":
        symbols[int(w[0], 16)] = int(w[1], 16), w[3]
def name(va):
    s = max(x for x in symbols if x <= va)
    return symbols[s][1] if va < s + symbols[s][0] else None
sure = set(sys.argv[5:])
pick = lambda x: {(hex(f), name(s)): n for (f, s), n in x.items() if name(s) in sure}
x, y, z = map(pick, (a, b, c))
print(sum(x.values()), "calls", {k: (x.get(k), y.get(k)) for k in set(x) | set(y) if x.get(k) != y.get(k)}, hist, "samples of", raw)
sys.exit(x != y or x == z or len(x) < len(sure) or sum(b.values()) != sum(c.values()) or hist != raw)
END
# gprof NAME: runs both; NAME/old.gmon, NAME/new.gmon, NAME/ours.gmon.
profile() {
	local n=$1 f
	for f in old new; do
		(cd "$n" && rm -f gmon.out && "./$f" && mv gmon.out $f.gmon) 2>log || return
	done
	translate "$n/new" "$n/new.gmon" >"$n/ours.gmon" 2>"$n/said"
}
if have gprof && build arcs all -pg -pie -fPIE "$src" && profile arcs; then
	python3 gmon.py arcs/old arcs/{old,ours,new}.gmon leaf_b caller_b tail_a tail_b ping_a ping_b cold_a cold_b order_a >log 2>&1
	rc=$?
	check counts/gmon "$(tail -n 1 log)" test $rc = 0
	check counts/gmon-said "$(cat arcs/said)" grep -qE ': [0-9]{3} calls: [0-9]{3} of shared code, [1-9][0-9]? undecided' arcs/said
	for f in old ours; do gprof -b -p arcs/old arcs/$f.gmon 2>log | awk '/ (leaf_b|ping_.|cold_.|tail_.|caller_b)$/ { print $NF, $4 }' | sort >arcs/$f.flat; done
	check counts/gprof "$(tr '\n' ' ' <arcs/ours.flat)" bash -c "cmp -s arcs/old.flat arcs/ours.flat && [ \$(wc -l <arcs/ours.flat) = 8 ]"
	translate -q arcs/new arcs/new.gmon arcs/new.gmon >twice.gmon 2>log
	gprof -b -p arcs/old twice.gmon 2>log | awk '/ (leaf_b|ping_.|cold_.|tail_.|caller_b)$/ { print $NF, $4 / 2 }' | sort >twice.flat
	check counts/gmon-sum "$(tr '\n' ' ' <twice.flat)" cmp -s arcs/old.flat twice.flat
else
	skip counts/gmon "no gprof, or nothing is written here"
fi
cat >time.c <<'END'
#define WORK(n) __attribute__((noinline, noclone)) long work_##n(long x) { volatile long s = 0; for (long i = 0; i < 20000000; i++) s += i ^ x; return s; }
WORK(a)
WORK(b)
int main(int argc, char **argv)
{
	long s = 0;
	for (int i = 0; i < 50; i++) {
		s += work_b(i);
		if (i % 5 == 0)
			s -= work_a(i) % argc;
	}
	return s == 12;
}
END
if have gprof && build time all -pg -no-pie -fno-pic -x c time.c && profile time; then
	gprof -b -p time/old time/ours.gmon 2>log | awk '/ work_/ { print $NF, $3, $4 }' | sort | tr '\n' ' ' >flat
	# Time is divided by calls.
	check counts/time "$(cat flat)" awk '{ exit !($1 == "work_a" && $4 == "work_b" && $3 == 10 && $6 == 50 && $2 > 0 && $5 > 4.5 * $2 - 0.06 && $5 < 5.5 * $2 + 0.06) }' flat
fi

# ---- faults --------------------------------------------------------------------------------------------------------------------
fault() { # NAME TEXT ARGUMENT...: exit status 2, one line with TEXT
	local n=$1 text=$2 rc
	shift 2
	translate "$@" >a 2>log
	rc=$?
	check "counts/fault-$n" "status $rc: $(first_line log)" bash -c "[ $rc = 2 ] && grep -v '^Try ' log | wc -l | grep -qx 1 && grep -qF -- '$text' log"
}
if [ -s thunks/new.out ] && [ -s arcs/new.gmon ]; then
	sed 's/^positions: instr line/positions: line/' thunks/new.out >lines.out
	fault lines 'valgrind --dump-instr=yes records them' thunks/new lines.out
	fault form 'is callgrind.out, which is written with --to=callgrind' --to=pprof thunks/new thunks/new.out
	fault gmon-form 'is gmon.out, which is written with --to=gmon' --to=callgrind arcs/new arcs/new.gmon
	fault several 'one callgrind.out' thunks/new thunks/new.out thunks/new.out
	fault forward '--forward' --forward thunks/new thunks/new.out
	head -c 3000 arcs/new.gmon >short.gmon
	fault short 'does not fit' arcs/new short.gmon
	fault other 'of another program' thunks/new <(head -c 20 arcs/new.gmon; printf '\1\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0') --to=gmon
	fault nothing 'no callgrind.out' --to=callgrind thunks/new /dev/null
	# Counters that stand for terabytes, in numbers: what is not code takes no time.
	python3 -c 'import struct, sys
hist = struct.pack("<BQQII15sc", 0, 0, 1 << 62, 200000, 100, b"seconds", b"s") + b"\1\0" * 200000
sys.stdout.buffer.write(b"gmon" + struct.pack("<I12x", 1) + 3 * hist)' >wide.gmon
	timeout 20 "$ICFOLD" profile arcs/new wide.gmon >a 2>log
	rc=$?
	check counts/wide "status $rc: $(first_line log)" [ $rc = 0 ]
	python3 - thunks/new.out arcs/new.gmon <<'END'
import random, sys
r = random.Random(20)
for p in sys.argv[1:]:
    d = open(p, "rb").read()
    for k in range(12):
        b = bytearray(d)
        for j in range(1 << k % 6):
            i = r.randrange(len(b) // 50, len(b))
            b[i:i + r.choice((0, 1, 1, 3))] = bytes(r.choice((r.randrange(256), 0x20, 0x0a, 0x2b, 0x30, 0x39)) for _ in range(r.choice((0, 1, 2))))
        open("damaged%d.%s" % (k, p[-4:].strip(".")), "wb").write(b)
END
	bad=
	for f in damaged*; do
		case $f in *gmon) n=arcs to=gmon ;; *) n=thunks to=callgrind ;; esac
		translate --to=$to $n/new "$f" >a 2>log
		rc=$?
		{ [ $rc = 0 ] || [ $rc = 2 ]; } && ! grep -q Sanitizer log || bad="$f: $rc: $(first_line log)"
	done
	check counts/damaged "$bad" [ -z "$bad" ]
fi
finish
