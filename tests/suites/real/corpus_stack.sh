#!/bin/bash
# corpus_stack.sh [NAME...]: real stacks of real programs (ninja, protoc of corpus.sh; default both): `icfold symbolize --stack` on
# the folded program names at every level the function that the unfolded program was in, or says that it is undecided and has that
# function among the candidates.
#
# gdb runs the unfolded program and stops at the entry of every function that shares its code after folding, HITS (3) times each.
# The truth is the address: which function of the unfolded program a frame is in.  For the first stop in a function whose slot is in
# a vtable, the address in the object's first word is known too, and the stack is asked about a second time with it.
# ICFOLD, ICFOLD_CORPUS, MODES (safe all).  Exit code: 0 all right, 1 not.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool stack
for t in gdb python3; do have $t || { skip stack "no $t"; finish; }; done
make_work
corpus=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}

cat >"$WORK/record.py" <<'EOF2'
# Writes each stack as lines "OLD-ADDRESS", the first one with the word that rdi points to when that is readable; empty line.
import gdb, os
gdb.execute("set pagination off")
gdb.execute("set width 0")
entry = [int(l, 16) for l in open(os.environ["ENTRIES"])]
hits, most = int(os.environ["HITS"]), int(os.environ["STACKS_MAX"])
gdb.execute("starti", to_string=True)
base = 0
exe = os.path.realpath(gdb.current_progspace().filename)
if os.environ["PIE"] == "1":
    for line in gdb.execute("info proc mappings", to_string=True).splitlines():
        w = line.split()
        if w and w[-1] == exe:
            base = int(w[0], 16)
            break
low, high = (int(x, 16) + base for x in os.environ["CODE"].split())
out = open(os.environ["STACKS"], "w")
seen = set()


class Stop(gdb.Breakpoint):
    def __init__(self, at):
        super().__init__("*0x%x" % at, internal=True)
        self.left = hits

    def stop(self):
        frame, lines = gdb.newest_frame(), []
        word = ""
        try:
            rdi = int(frame.read_register("rdi")) & (1 << 64) - 1
            word = " %x" % (int.from_bytes(gdb.selected_inferior().read_memory(rdi, 8).tobytes(), "little") - base)
        except Exception:
            pass
        while frame and low <= frame.pc() < high:
            if frame.type() == gdb.NORMAL_FRAME:
                lines.append("%x" % (frame.pc() - base))
            frame = frame.older()
        text = "\n".join(lines)
        if text not in seen and len(lines) > 1 and len(seen) < most:
            seen.add(text)
            lines[0] += word
            out.write("\n".join(lines) + "\n\n")
        self.left -= 1
        if not self.left or len(seen) >= most:
            self.enabled = False
        return False


for a in entry:
    Stop(a + base)
gdb.execute("continue", to_string=True)
out.close()
EOF2

# judge.py MAP ORIGINAL STACKS: prints the stacks for --stack (those with a vtable's address twice); with ANSWERS compares.
cat >"$WORK/judge.py" <<'EOF2'
import bisect, json, re, subprocess, sys
mapfile, original, stacks = sys.argv[1:4]
unit, start = [], []
for line in open(mapfile):
    w = line.split(None, 3)
    if len(w) > 3 and int(w[1], 16):
        unit.append((int(w[0], 16), int(w[1], 16), int(w[2], 16), w[3].strip()))
unit.sort()
start = [u[0] for u in unit]
shares = {}
for u in unit:
    shares[u[2]] = shares.get(u[2], 0) + 1


def at(address, pc):
    i = bisect.bisect_right(start, address if pc else address - 1) - 1
    u = unit[i] if i >= 0 else None
    return u if u and u[0] <= address - (not pc) < u[0] + u[1] else None


alias, vtable = {}, set()
for value, size, kind, name in re.findall(r"^ *\d+: (\w+) +(\w+) (FUNC|IFUNC|OBJECT) .* (\S+)$",
                                          subprocess.run(["readelf", "-sW", original], capture_output=True, text=True).stdout, re.M):
    if kind == "OBJECT":
        if name.startswith("_ZTV"):
            vtable.add((int(value, 16), int(value, 16) + int(size, 0)))
    else:
        alias.setdefault(int(value, 16), set()).add(name)


def in_vtable(word):
    return any(lo < word < hi for lo, hi in vtable)


asked = []
for block in open(stacks).read().split("\n\n"):
    lines = block.split("\n")
    if not block.strip():
        continue
    first = lines[0].split()
    levels = [int(first[0], 16)] + [int(l, 16) for l in lines[1:] if l]
    if any(not at(a, i == 0) for i, a in enumerate(levels)):
        continue
    asked.append((levels, None))
    if len(first) > 1 and in_vtable(int(first[1], 16)):
        asked.append((levels, int(first[1], 16)))
if len(sys.argv) == 4:
    for levels, word in asked:
        for i, a in enumerate(levels):
            u = at(a, i == 0)
            print("0x%x%s" % (u[2] + a - u[0], ",vtable=0x%x" % word if word and not i else ""))
        print()
    sys.exit()
answers = [json.loads(l) for l in open(sys.argv[4])]
if len(answers) != len(asked):
    sys.exit("%d stacks, %d answers" % (len(asked), len(answers)))
right, by, undecided, wrong, where = 0, {}, {}, [], {}
for (levels, word), answer in zip(asked, answers):
    if len(levels) != len(answer):
        sys.exit("%d levels, %d answers" % (len(levels), len(answer)))
    for i, (a, e) in enumerate(zip(levels, answer)):
        u = at(a, i == 0)
        names = alias.get(u[0], set()) | {u[3]}
        m, got = e.get("Merged"), e["Symbol"][-1]["FunctionName"] if e["Symbol"] else ""
        if m and not m["Decided"]:
            if names & set(m["Candidates"]) and len(m["Candidates"]) > 1:
                kind = "inner" if i == 0 else "outer"
                undecided[kind] = undecided.get(kind, 0) + 1
                n = at(levels[i + 1], False)[3] if i + 1 < len(levels) else "?"
                where.setdefault((m["By"], u[3], n), len(m["Candidates"]))
            else:
                wrong.append("%x %s: candidates %s in stack %s" % (a, u[3], m["Candidates"][:4], [hex(x) for x in levels[:4]]))
        elif names & ({got} | set(m["Candidates"] if m else [])):
            right += 1
            if m:
                by[m["By"]] = by.get(m["By"], 0) + 1
        elif u[3].split(".")[0] in {got}:
            right += 1
        else:
            wrong.append("%x %s: is named %s%s in stack %s" % (a, u[3], got, " by %s" % m["By"] if m else "", [hex(x) for x in levels[:4]]))
    if word and answer[0].get("Merged") and not answer[0]["Merged"]["Decided"] and answer[0]["Merged"]["By"] == "vcall":
        wrong.append("%x: undecided with vtable %x" % (levels[0], word))
for w in wrong[:20]:
    print(w)
if "-v" in sys.argv:
    for (b, f, n), c in sorted(where.items(), key=str):
        print("undecided: %s, called from %s: %d candidates, by %s" % (f, n, c, b))
print("%d stacks, %d levels right (shared: %s), undecided: %s, %d wrong" % (
    len(asked), right, " ".join("%s %d" % (k, by[k]) for k in sorted(by, key=str)), " ".join("%s %d" % kv for kv in sorted(undecided.items())) or "none", len(wrong)))
sys.exit(bool(wrong) or len(asked) < 30)
EOF2

# What the program is to do, in $args, in folder $dir.
job() { # NAME
	case $1 in
	protoc*)
		dir=$corpus/src/protobuf
		mkdir -p "$WORK/protoc.out"
		args=(-I src "--cpp_out=$WORK/protoc.out" "--java_out=$WORK/protoc.out" "--python_out=$WORK/protoc.out" "--csharp_out=$WORK/protoc.out" "--objc_out=$WORK/protoc.out"
			src/google/protobuf/unittest.proto src/google/protobuf/map_unittest.proto src/google/protobuf/unittest_proto3.proto)
		;;
	ninja*) dir=$corpus/job/graph args=(-n) ;;
	*) return 1 ;;
	esac
	[ -d "$dir" ]
}

[ $# -gt 0 ] || set -- protoc ninja
for n; do
	in=$("$TESTS/corpus.sh" "$n") || exit 1
	dir=
	if ! job "$n"; then skip "stack/$n" "no job for it here (tests/suites/real/corpus.sh makes what ninja reads)"; continue; fi
	"$ICFOLD" -q --icf=all --map="$WORK/all.map" "$in" -o "$WORK/all" || exit 1
	# Functions that share their code in any of the ways of folding.
	awk '{ n[$3]++; old[NR] = $1; at[NR] = $3 } END { for (i = 1; i <= NR; i++) if (n[at[i]] > 1) print old[i] }' "$WORK/all.map" >"$WORK/entries"
	code=$(awk 'NR == 1 { first = $1 } { last = $1 } END { print first, last }' "$WORK/all.map")
	(cd "$dir" && ENTRIES=$WORK/entries HITS=${HITS:-3} STACKS_MAX=${STACKS_MAX:-1500} STACKS=$WORK/$n.stacks CODE=$code \
		PIE=$(readelf -h "$in" | grep -c 'Type:.*DYN') timeout 600 gdb -nx -batch -x "$WORK/record.py" --args "$in" "${args[@]}") >"$WORK/gdb.log" 2>&1
	if [ ! -s "$WORK/$n.stacks" ]; then not_ok "stack/$n" "gdb saw no stack: $(tail -n 1 "$WORK/gdb.log")"; continue; fi
	for m in ${MODES:-safe all}; do
		"$ICFOLD" -q --icf="$m" --map="$WORK/map" "$in" -o "$WORK/out" || exit 1
		python3 "$WORK/judge.py" "$WORK/map" "$in" "$WORK/$n.stacks" >"$WORK/addresses"
		"$ICFOLD" symbolize --stack --no-demangle --output-style=JSON -e "$WORK/out" <"$WORK/addresses" >"$WORK/json" 2>"$WORK/err"
		if out=$(python3 "$WORK/judge.py" "$WORK/map" "$in" "$WORK/$n.stacks" "$WORK/json" ${V:+-v} 2>&1); then
			ok "stack/$n/$m: $(tail -n 1 <<<"$out")"
		else
			not_ok "stack/$n/$m" "$(tail -n 1 <<<"$out")"
		fi
		sed '$d' <<<"$out" | sed 's/^/# /'
	done
done
finish
