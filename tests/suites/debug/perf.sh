#!/bin/bash
# perf.sh: `icfold symbolize --perf` corrects names and changes nothing else.  Texts in the forms of perf script are made here from a
# fixture's addresses, so the right names are known.  Where perf runs, the profile of a folded program is compared with that of the
# unfolded one.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite perf python3

# build NAME FLAGS...
build() {
	local n=$1
	shift
	if ! "$@" -g -O2 -fno-omit-frame-pointer -ffunction-sections -Wl,--emit-relocs -w "$FIXTURES/profile/spin.cc" -o "$n" >log 2>&1; then
		skip "perf/$n" "does not build: $(first_line log)"
		return 1
	fi
	"$ICFOLD" -q "$n" -o "$n.folded" >log 2>&1 && return
	not_ok "perf/$n" "folding: $(first_line log)"
	return 1
}
# text.py PROGRAM FORM PATH: PATH is what perf calls the program; writes in.txt, and want.txt with the names of what was called.
cat >text.py <<'EOF2'
import re, subprocess, sys
prog, form, path = sys.argv[1:4]
def tool(*a):
    return subprocess.run(a, capture_output=True, text=True, check=True).stdout
symbol, calls, kept, code = {}, {}, set(), None
for l in tool("objdump", "-d", "--no-show-raw-insn", prog).splitlines():
    m = re.match(r"([0-9a-f]+) <(.*)>:$", l)
    if m:
        code = m.group(2)
        symbol[code], calls[code], called = int(m.group(1), 16), [], False
    m = re.match(r" *([0-9a-f]+):\t(\S+)", l)
    if m and code:
        if called:
            calls[code].append(int(m.group(1), 16))
        called = (m.group(2).startswith("call") or m.group(2) in ("bl", "blr")) and "@plt" not in l
for l in tool("readelf", "-sW", prog).splitlines():
    w = l.split()
    if len(w) == 8 and w[3] in ("FUNC", "NOTYPE") and w[6] != "UND":
        symbol[w[7]] = int(w[1], 16)
        if w[3] == "FUNC":
            kept.add(w[7])
load = []
for l in tool("readelf", "-lW", prog).splitlines():
    w = l.split()
    if w and w[0] == "LOAD":
        load.append([int(x, 16) for x in (w[1], w[2], w[4])])
pie = "DYN" in tool("readelf", "-h", prog)
bias = 0x55d0c0a00000 if pie else 0
def offset(a):
    return next(a - v + o for o, v, n in load if v <= a < v + n)
# Functions by what they are called, and where their code is.
code = {"leaf": "_Z8leaf_lowl", "middle": "_Z10middle_lowl", "main": "main", "use_over": "_Z8use_overl", "use_leaf": "_Z8use_leafl", "over": "_ZN4work4overEPil",
        "total": "_ZN4work5totalIlEET_S1_"}
# Which function is kept depends on where the linker puts them.
for f, other in ("leaf", "_Z9leaf_highl"), ("middle", "_Z11middle_highl"):
    if other in kept:
        code[f] = other
def body(f):
    return symbol[code[f]]
site = {f: next(calls[n] for n in calls if symbol[n] == body(f)) for f in code}
short = {"_Z8leaf_lowl": "leaf_low", "_Z9leaf_highl": "leaf_high", "_Z10middle_lowl": "middle_low", "_Z11middle_highl": "middle_high", "_ZN4work4overEPil": "work::over",
         "_ZN4work4overEPll": "work::over", "_Z8use_overl": "use_over", "_Z8use_leafl": "use_leaf", "main": "main",
         "_ZN4work5totalIlEET_S1_": "work::total<long>", "_ZN4work5totalImEET_S1_": "work::total<unsigned long>"}
full = {"_Z8leaf_lowl": "leaf_low(long)", "_Z9leaf_highl": "leaf_high(long)", "_Z10middle_lowl": "middle_low(long)", "_Z11middle_highl": "middle_high(long)",
        "_ZN4work4overEPil": "work::over(int*, long)", "_ZN4work4overEPll": "work::over(long*, long)", "_Z8use_overl": "use_over(long)", "_Z8use_leafl": "use_leaf(long)",
        "main": "main", "_ZN4work5totalIlEET_S1_": "long work::total<long>(long)", "_ZN4work5totalImEET_S1_": "unsigned long work::total<unsigned long>(long)"}
full["_ZN4work5totalImEET_S1_"] = "unsigned long work::total<unsigned long>(unsigned long)"
spell = (lambda n: n) if form == "linkage" else full.get if form == "full" else short.get
# Innermost first: code, address, the name to be shown (None: as perf has it).
def chain(leaf, middle, k):
    return [("leaf", body("leaf") + 8, leaf), ("middle", site["middle"][0], middle), ("main", site["main"][k], None)]
undecided = object()
stacks = [chain("_Z8leaf_lowl", "_Z10middle_lowl", 0), chain("_Z9leaf_highl", "_Z11middle_highl", 1),
          [("total", body("total") + 4, "_ZN4work5totalIlEET_S1_"), ("main", site["main"][2], None)],
          [("total", body("total") + 4, "_ZN4work5totalImEET_S1_"), ("main", site["main"][3], None)],
          [("over", body("over") + 4, undecided), ("use_over", site["use_over"][0], None), ("main", site["main"][4], None)],
          [("leaf", body("leaf") + 4, undecided), ("use_leaf", site["use_leaf"][0], None), ("main", site["main"][5], None)],
          [("leaf", body("leaf") + 4, undecided)]]
def name(f, want):
    if want is undecided and f == "leaf":
        s = sorted(("_Z8leaf_lowl", "_Z9leaf_highl"), key=lambda x: x != code["leaf"])
        s = s if form == "linkage" else [short[x] for x in s]
        return "%s[one of: %s]" % (s[0], "|".join(s))
    if want is undecided and form == "linkage":
        s = "_ZN4work4overEPil", "_ZN4work4overEPll"
        return "%s[one of: %s|%s]" % (s[0], s[0], s[1])
    if want is undecided:
        return "work::over"
    return spell(want or code[f])
def write(out, right):
    pid = 4242
    if form == "mmap":
        o, v, n = next(x for x in load if x[1] <= body("main") < x[1] + x[2])
        out.write("spin %d 10.000001: PERF_RECORD_MMAP2 %d/%d: [0x%x(0x%x) @ %s fe:00 10985688 792065290]: r-xp %s\n" %
                  (pid, pid, pid, bias + v // 4096 * 4096, n, "%#x" % (o // 4096 * 4096) if o // 4096 else "0", path))
    for i, s in enumerate(stacks * 2):
        head = "my spin %d/%d [003] 12164.%06d:     250000 cpu-clock:pppH:" % (pid, pid + i, i)
        if form == "fields":
            head = None
        lines = []
        for k, (f, a, want) in enumerate(s):
            n = name(f, want) if right else spell(code[f])
            if form == "dwarf" and k:
                a -= 1
            off = "" if form in ("nooff", "mmap", "fields") else "+0x%x" % (a - body(f))
            ip = a + bias if form not in ("offset", "dwarf", "dsoff") else offset(a)
            if form == "dsoff":
                ip, off = 0x7f0000000000 + a, ""
            # The calls inlined there, and the name that perf prints if it takes one function for another.
            if f == "leaf" and form in ("inlined", "double", "orphan"):
                inner = "high" if right and want == "_Z9leaf_highl" else "low" if form != "double" else spell(code[f])
                lines.append("%16x %s%s (%s)" % (ip, inner, off, "inlined" if form != "double" else path))
            if f == "leaf" and form == "orphan":
                lines.append("%16x %s%s (inlined)" % (ip, n, off))
                continue
            lines.append("%16x %s%s (%s%s)" % (ip, n, off, path, "+0x%x" % offset(a) if form == "dsoff" else ""))
        if form == "single":
            if len(s) == 1:
                out.write("%s %s\n" % (head, lines[0]))
            continue
        if i % 3 == 0:
            lines[:0] = ["ffffffff815ebb41 __handle_mm_fault+0x191 ([kernel.kallsyms])", "ffffffffc00ebb41 [unknown] ([nf_tables])"]
        lines += ["    7f11c7e2724a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)", "               0 [unknown] ([unknown])"]
        if head:
            out.write(head + " \n")
        for l in lines:
            out.write("\t" + l + "\n")
            if form == "srcline":
                out.write("  spin.cc:%d\n" % i)
        out.write("\n")
write(open("in.txt", "w"), False)
write(open("want.txt", "w"), True)
EOF2
# formed NAME PROGRAM FORM PATH FLAGS...
formed() {
	local n=$1 prog=$2 form=$3 path=$4 rc
	shift 4
	if ! python3 text.py "$prog" "$form" "$path" 2>err; then not_ok "perf/$n" "no text: $(tail -n 1 err)"; return; fi
	"$ICFOLD" symbolize --perf "$@" <in.txt >out.txt 2>err
	rc=$?
	if [ $rc != 0 ] || [ -s err ]; then not_ok "perf/$n" "rc $rc: $(first_line err)"; return; fi
	if cmp -s in.txt want.txt; then not_ok "perf/$n" "nothing to do"; return; fi
	if cmp -s want.txt out.txt; then ok "perf/$n"; else not_ok "perf/$n" "$(diff want.txt out.txt | grep '^[<>]' | head -n 4 | tr '\n' ' ')"; fi
}
for flags in "g++ -fPIE -pie" "g++ -no-pie" "g++ -fPIE -pie -fuse-ld=lld" "clang++ -fPIE -pie"; do
	n=spin$(tr -d ' =+-' <<<"$flags")
	have "${flags%% *}" || { skip "perf/$n" "no ${flags%% *}"; continue; }
	# shellcheck disable=SC2086
	build "$n" $flags || continue
	forms="offset runtime mmap"
	[ "$flags" = "g++ -fPIE -pie" ] && forms="offset runtime mmap nooff dwarf dsoff fields full linkage single srcline inlined double orphan"
	for form in $forms; do
		formed "$n/$form" "$n.folded" "$form" "$WORK/$n.folded"
	done
done
# The rest is the same for all machines.
[ -z "$RUN" ] || finish
p=spingfPIEpie.folded
if [ -f $p ]; then
	formed exe $p offset "$WORK/$p" -e $p
	formed exe/elsewhere $p runtime "/opt/x/$p" -e $p
	formed deleted $p runtime "/opt/x/$p (deleted)" -e $p
	mkdir -p 'a (b)' && cp $p 'a (b)/x y'
	formed spaces $p offset "$WORK/a (b)/x y"
	objcopy --only-keep-debug $p $p.debug && objcopy --strip-all --add-gnu-debuglink=$p.debug $p apart
	formed separate $p offset "$WORK/apart"

	python3 text.py $p offset "$WORK/$p"
	"$ICFOLD" symbolize --perf in.txt in.txt - <in.txt >out.txt 2>err
	check perf/files "$(first_line err)" cmp -s out.txt <(cat want.txt want.txt want.txt)
	"$ICFOLD" symbolize --perf -e $p <(sed "s|$p|other|" in.txt) >out.txt 2>err
	check perf/other "$(first_line err)" cmp -s out.txt <(sed "s|$p|other|" in.txt)
	"$ICFOLD" symbolize --perf <(head -c -1 in.txt) >out.txt
	check perf/no-end "changed" cmp -s out.txt <(head -c -1 want.txt)
	sed 's/$/\r/' in.txt | "$ICFOLD" symbolize --perf >out.txt
	check perf/crlf "changed" cmp -s out.txt <(sed 's/$/\r/' want.txt)
	"$ICFOLD" symbolize --perf </dev/null >out.txt
	check perf/empty "rc $?" [ ! -s out.txt ]
	# Text that is not perf's is copied unchanged.
	{ cat "$ICFOLD"; head -c 600000 /dev/zero | tr '\0' '('; echo; printf '\t%s\n' '1 (' ' (' '1 a (' '1 (a)' '1  (a)' 'ffffffffffffffffff a (b)' '1 a+0x (b)'; cat want.txt; } >noise
	"$ICFOLD" symbolize --perf noise >out.txt 2>err
	check perf/noise "rc $?: $(cmp noise out.txt) $(first_line err)" cmp -s noise out.txt
	# An address whose place cannot be found: one message.
	sed "s/+0x/+0x1/" in.txt >odd.txt
	"$ICFOLD" symbolize --perf odd.txt >out.txt 2>err
	rc=$?
	check perf/odd "$(wc -l <err) lines: $(first_line err)" [ "$rc:$(grep -c 'left as they are' err):$(wc -l <err)" = 0:1:1 ]
	# Frames without a file, in chains and alone (-F comm,ip,sym,symoff; -F ip,sym; with more fields): one message that counts them.
	frames=$(grep -c '^	.*)$' in.txt)
	for form in symoff sym; do
		sed "s/$([ $form = symoff ] || echo '\(+0x[0-9a-f]*\)*') ([^ ]*)\$//" in.txt >odd.txt
		"$ICFOLD" symbolize --perf odd.txt >out.txt 2>err
		rc=$?
		check "perf/no-dso/$form" "rc $rc: $(first_line err)" [ "$rc:$(grep -c "^icfold: $frames frames name no file, .* field dso$" err):$(wc -l <err)" = 0:1:1 ]
		check "perf/no-dso/$form/text" "changed" cmp -s odd.txt out.txt
	done
	i=0
	for head in 'spin ' '    my spin 4242 [003] 12164.000001:     250000 cpu-clock: ' 'spin 4242 12.1: 1 cycles:u: '; do
		printf '%s     %s\n' "$head" '1238 leaf_low+0x28' "$head" '1238 std::f(int*, long)+0x2' >odd.txt
		"$ICFOLD" symbolize --perf odd.txt >out.txt 2>err
		check "perf/no-dso/single-$((++i))" "$(first_line err)" [ "$(grep -c '^icfold: 2 frames name no file' err):$(wc -l <err)" = 1:1 ]
	done
	# Neither events without frames, nor places in their texts, nor addresses alone.
	printf '%s\n' 'spin 4242 [003] 12.1: work:work_start: 7 function update+0x0' 'spin 4242 12.2: 1 cycles:' '	1238' '' 'spin 4242 12.3: 1 cycles: 0x1/0x2/P/-/-/0' >odd.txt
	"$ICFOLD" symbolize --perf odd.txt >out.txt 2>err
	check perf/no-dso/none "$(first_line err)" [ ! -s err ]
	"$ICFOLD" symbolize --perf -e ./nowhere in.txt >out.txt 2>err
	check perf/no-file "rc $?: $(first_line err)" [ "$(grep -c nowhere err)" = 1 ]
	"$ICFOLD" symbolize --perf -e spingfPIEpie in.txt >out.txt 2>err
	rc=$?
	check perf/no-tables "rc $rc: $(first_line err)" [ "$rc:$(grep -c 'spingfPIEpie: .*debug_icfold' err)" = 2:1 ]
	"$ICFOLD" symbolize --perf nowhere >out.txt 2>err
	rc=$?
	check perf/no-input "rc $rc: $(first_line err)" [ "$rc:$(grep -c nowhere err)" = 2:1 ]
	# The form of a frame that scripts for flame graphs accept.
	python3 text.py $p offset "$WORK/$p"
	"$ICFOLD" symbolize --perf in.txt >out.txt
	check perf/collapse "a frame is none any more" [ "$(grep -cP '^\s*(\w+)\s*(.+) \((\S*)\)' out.txt)" = "$(grep -c "^	" in.txt)" ]
	check perf/collapse/offset "what follows the offset" [ "$(grep -cE '\]\+0x[0-9a-f]+ \(' out.txt)" = 4 ]

	# A long text: many stacks, none of which stays in memory.
	for _ in 1 2 3 4 5 6 7 8 9 10; do cat in.txt; done >ten
	for _ in 1 2 3 4 5 6 7 8 9 10; do cat ten ten ten ten ten ten ten ten ten ten; done >many
	for _ in 1 2 3 4 5 6 7 8 9 10; do cat want.txt; done >ten
	for _ in 1 2 3 4 5 6 7 8 9 10; do cat ten ten ten ten ten ten ten ten ten ten; done | md5sum >want.sum
	limit=100000
	nm "$ICFOLD" 2>/dev/null | grep -q __asan_init && limit=unlimited
	# Processor time, so that a busy machine makes no difference.
	(ulimit -v $limit && ulimit -t 30 && "$ICFOLD" symbolize --perf many) | md5sum >have.sum
	check perf/many "memory, time or other contents" cmp -s want.sum have.sum
fi

# --- perf on this machine -------------------------------------------------------------------------------------------------
# profile PROGRAM MODE: writes what perf script has to say.
profile() {
	perf record -q --call-graph "$2" -F 1500 -e cpu-clock -o perf.data "./$1" 12000000 >/dev/null 2>&1 &&
		perf script -i perf.data 2>/dev/null >"$1.$2.txt" && grep -q "$1" "$1.$2.txt"
}
# collapse TEXT PERCENT: the stacks below main that have at least so much of the samples, without what was inlined in the leaves.
collapse() {
	awk '/^\t/ { n = $0; sub(/^\t *[0-9a-f]+ /, "", n); sub(/ \([^ ]*\)$/, "", n); sub(/\+0x[0-9a-f]*$/, "", n); s = n ";" s }
		/^$/ { if (match(s, /main;.*;/)) { t[substr(s, RSTART)]++; all++ } s = "" }
		END { for (s in t) print t[s], s }' "$1" |
		sed -E '/;use_leaf;/s/(leaf_low|leaf_high|EITHER);.*/LEAF;/; s/;(\(anonymous namespace\)::)?(low|high);$/;/; s/(leaf_[a-z]*;)\1/\1/' |
		awk -v percent="$2" '{ n = $1; sub(/^[0-9]+ /, ""); t[$0] += n; all += n } END { for (s in t) if (100 * t[s] >= percent * all) print s }' | sort
}
if ! have perf; then
	skip perf/record "no perf (Debian: linux-perf)"
	finish
elif [ ! -f $p ] || ! profile "${p%.folded}" fp; then
	skip perf/record "$([ -f $p ] && echo "perf may not record here" || echo "no program $p")"
	finish
fi
for mode in fp dwarf; do
	profile "${p%.folded}" $mode && profile $p $mode
	"$ICFOLD" symbolize --perf $p.$mode.txt >$p.$mode.out 2>err
	# The same but for what a jump decided, and lines that perf has twice.
	sed -i -E 's/^(\t *[0-9a-f]+ )leaf_(low|high)\[one of: leaf_(low|high)\|leaf_(low|high)\]/\1EITHER/' $p.$mode.out
	for f in "${p%.folded}.$mode.txt" $p.$mode.out; do
		collapse "$f" 8 >"$f.stacks"
		collapse "$f" 1 >"$f.all"
	done
	# A stack with many samples in one profile has some in the other.
	odd=$(comm -23 "${p%.folded}.$mode.txt.stacks" $p.$mode.out.all; comm -23 $p.$mode.out.stacks "${p%.folded}.$mode.txt.all")
	check "perf/record/$mode/right" "$(head -n 4 <<<"$odd" | tr '\n' ' ')" [ -z "$odd" ]
	check "perf/record/$mode/many" "$(tr '\n' ' ' <$p.$mode.out.stacks)" [ "$(wc -l <$p.$mode.out.stacks)" -ge 4 ]
done
finish
