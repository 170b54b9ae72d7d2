#!/bin/bash
# inlined.sh: `icfold profile` on call chains with inlined calls and source lines, which perf takes from the debug information of the folded
# program.  Texts are made here in perf's forms, and recorded where perf runs.  The judge is llvm-symbolizer, for the unfolded program.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite inlined python3 g++ llvm-symbolizer-19 objdump
if ! g++ -O2 -g -fno-omit-frame-pointer -ffunction-sections -w -pie -fPIE -Wl,--emit-relocs "$FIXTURES/profile/spin.cc" -o spin.old >log 2>&1 || ! "$ICFOLD" -q --allow-growth spin.old -o spin 2>>log; then
	not_ok inlined "$(first_line log)"
	finish
fi
cat >common.py <<'EOF2'
import re, subprocess
def tool(*a, **kw):
    return subprocess.run(a, capture_output=True, text=True, check=True, **kw).stdout
SHORT = {"_Z8leaf_lowl": "leaf_low", "_Z9leaf_highl": "leaf_high", "_Z10middle_lowl": "middle_low", "_Z11middle_highl": "middle_high", "main": "main"}
CHAINS = [("_Z8leaf_lowl", "_Z10middle_lowl"), ("_Z9leaf_highl", "_Z11middle_highl")]
class Program:
    """Functions, the places behind their calls, and what llvm-symbolizer says."""
    def __init__(self, path):
        self.path, self.start, self.insns, self.calls, self.known, name = path, {}, {}, {}, {}, None
        for l in tool("nm", path).splitlines():
            w = l.split()
            if len(w) == 3 and w[1] in "tTwW":
                self.start[w[2]] = int(w[0], 16)
        for l in tool("objdump", "-d", "--no-show-raw-insn", path).splitlines():
            if m := re.match(r"([0-9a-f]+) <(.*)>:$", l):
                name, called = int(m[1], 16), False
                self.insns[name], self.calls[name] = [], []
            elif name and (m := re.match(r" *([0-9a-f]+):\t(\S+)(?: +([0-9a-f]+) <)?", l)):
                if called:
                    self.calls[name].append((int(m[1], 16), called))
                self.insns[name].append(int(m[1], 16))
                called = m[3] and m[2].startswith("call") and int(m[3], 16)
    def site(self, caller, callee, k=0):
        """Minus one, as perf shows callers in stacks that it unwinds."""
        return [a for a, to in self.calls[self.start[caller]] if to == self.start[callee]][k] - 1
    def frames(self, a):
        if not self.known:
            at = [x for f in SHORT for x in range(self.start[f], self.insns[self.start[f]][-1] + 1)]
            out = tool("llvm-symbolizer-19", "--functions=short", "--basenames", "-e", self.path, input="".join("%#x\n" % x for x in at))
            for x, block in zip(at, out.strip().split("\n\n")):
                l = block.splitlines()
                self.known[x] = [(n, p.rsplit(":", 1)[0]) for n, p in zip(l[::2], l[1::2])]
        return self.known.get(a, [("?", "?:0")])
EOF2
# text.py FORM NAMED: in.txt; perf calls shared code by the first (0) or the second name (1).
cat >text.py <<'EOF2'
import sys
from common import *
form, named = sys.argv[1], int(sys.argv[2])
old, new = Program("spin.old"), Program("spin")
out = open("in.txt", "w")
for k, (leaf, middle) in enumerate(CHAINS):
    for n, insn in enumerate(old.insns[old.start[leaf]]):
        out.write("spin 7 %d.%06d: 1 cycles:u: \n" % (k, n))
        chain = [(leaf, new.start[leaf] + insn - old.start[leaf], 0), (middle, new.site(middle, leaf), 1), ("main", new.site("main", middle, k), 2)]
        for f, a, depth in chain:
            frames = new.frames(a)
            symbol = f if depth == 2 else CHAINS[named][depth]
            inner = [x[0] for x in frames[:-1]]
            tail, place = "+0x%x" % (a - new.start[f]), [x[1] for x in frames]
            path = " (/x/spin)"
            host = True
            if form == "double" and inner:
                inner[-1] = SHORT[symbol]
            elif form == "orphan" and not depth:
                inner.append(frames[-1][0])
                host = False
            for i, name in enumerate(inner):
                if form == "source":
                    out.write("\t%16x %s%s\n  %s (inlined)\n" % (a, name, tail, place[i]))
                else:
                    out.write("\t%16x %s%s%s\n" % (a, name, tail, path if form == "double" and i == len(inner) - 1 else " (inlined)"))
            if host:
                out.write("\t%16x %s%s%s\n" % (a, SHORT[symbol], tail, path))
                if form == "source":
                    out.write("  %s\n" % place[-1])
        out.write("\n")
EOF2
# judge.py TEXT: what it says of leaf_* and middle_* is what llvm-symbolizer says of the unfolded program.
cat >judge.py <<'EOF2'
import sys
from common import *
old, samples, right, seen = Program("spin.old"), 0, 0, set()
names = set(SHORT.values()) | {"low", "high"}
for block in open(sys.argv[1]).read().split("\n\n"):
    lines = re.findall(r"\n\t *([0-9a-f]+) (\S+?)\+0x[0-9a-f]+(?: \(\S*\))?(?:\n  (\S+:\d+).*)?(?=\n|$)", "\n" + block)
    lines = [(int(a, 16), n, p) for a, n, p in lines if n in names]
    places = [a for i, (a, _, _) in enumerate(lines) if not i or lines[i - 1][0] != a]
    if len(places) != 3 or not any(n.startswith("leaf") for _, n, _ in lines):
        continue # of other functions
    samples += 1
    want = [(a, n, p) for a in places for n, p in old.frames(a)]
    # Of the function that was kept, perf's own mistake stays.
    if lines[:2] != want[:2] and lines[0][:2] == lines[1][:2]:
        lines[0] = (lines[0][0], want[0][1], lines[0][2])
    right += [x[:2] for x in want] == [x[:2] for x in lines] and all(not p or p == w for (_, _, p), (_, _, w) in zip(lines, want)) and \
        all(old.start[f] <= a < old.start[f] + 200 for f, a in zip(next((l, m) for l, m in CHAINS if SHORT[l] == lines[-3][1] or SHORT[m] == lines[-2][1]), places))
    # Made texts say which chain it was.
    if (m := re.match(r"\n*spin 7 ([01])\.", block)) and SHORT[CHAINS[int(m[1])][0]] not in [n for _, n, _ in lines]:
        right -= 1
    seen |= {x[1] for x in lines}
print(samples, "samples,", right, "right,", *sorted(seen))
sys.exit(samples < 20 or samples != right or not {"leaf_low", "leaf_high", "low", "high"} <= seen)
EOF2
# judged TEST: the translation of in.txt is right, and in.txt is not.
judged() {
	"$ICFOLD" profile --undecided=drop spin in.txt >out.txt 2>log
	check "inlined/$1" "$(python3 judge.py out.txt 2>&1 | tail -n 1); $(first_line log)" python3 judge.py out.txt
	check "inlined/$1-judge" "the text as it was is right, too: nothing is tested" bash -c '! python3 judge.py in.txt'
	"$ICFOLD" profile --to=collapsed spin in.txt 2>log >out.collapsed
	check "inlined/$1-collapsed" "$(grep -E ';leaf.*;leaf|low.*high|high.*low' out.collapsed | head -n 1)" \
		bash -c 'grep -q "middle_low;leaf_low " out.collapsed && grep -q "middle_high;leaf_high " out.collapsed && ! grep -qE ";leaf.*;leaf|low.*high|high.*low" out.collapsed'
}
for form in inlined double orphan source; do
	for named in 0 1; do
		if ! python3 text.py $form $named 2>err; then not_ok "inlined/$form-$named" "no text: $(tail -n 1 err)"; continue; fi
		judged "$form-$named"
	done
done
# A function that calls itself stands in the chain twice.
printf 'static volatile long s;\n__attribute__((noinline)) long down_a(long n) { return n ? down_a(n - 1) * 3 + s : s; }\n__attribute__((noinline)) long down_b(long n) { return n ? down_b(n - 1) * 3 + s : s; }\nint main(int c, char **v) { long r = down_a(c); return r == down_b(c); }\n' >down.c
if gcc -O1 -g -fno-optimize-sibling-calls -ffunction-sections -Wl,--emit-relocs down.c -o down.old >log 2>&1 && "$ICFOLD" -q --allow-growth down.old -o down 2>>log; then
	site=$(objdump -d --no-show-raw-insn down | awk '/<down_[ab]>:$/ { on = 1 } on && called { sub(":", "", $1); print $1; exit } on && /call.*<down_/ { called = 1 }')
	main=$(objdump -d --no-show-raw-insn down | awk '/<main>:$/ { on = 1 } on && called { sub(":", "", $1); print $1; exit } on && /call.*<down_/ { called = 1 }')
	printf 'down 7 1.0: 1 cycles:u: \n\t%16s down_b (/x/down)\n\t%16s down_b (/x/down)\n\t%16s down_b (/x/down)\n\t%16s main (/x/down)\n\n' "$site" "$site" "$site" "$main" >in.txt
	"$ICFOLD" profile --to=collapsed down in.txt >out.collapsed 2>log
	check inlined/recursion "$(first_line out.collapsed)" grep -q 'main;down_a;down_a;down_a 1' out.collapsed
else
	not_ok inlined/recursion "$(first_line log)"
fi
# A fast machine needs more work for as many samples.
recorded() {
	local n
	for n in 6000000 40000000 300000000; do
		perf record -q -e cpu-clock -F 1000 --call-graph dwarf,2048 -o real.data -- ./spin $n >log 2>&1 && perf script -i real.data >real.txt 2>/dev/null || return 1
		[ "$(grep -c ' leaf_[lh]' real.txt)" -ge 60 ] && break
	done
	grep -q 'low.*(inlined)' real.txt
}
if have perf && recorded; then
	for form in '' '-F +srcline'; do
		# shellcheck disable=SC2086
		perf script $form -i real.data >in.txt 2>/dev/null
		judged "real$form"
	done
else
	skip inlined/real "perf does not record here, or shows no inlined calls"
fi
finish
