"""chains.py ORIGINAL FOLDED MAP RESOLVER COUNT [SEED]: random chains of direct calls that end in a shared function.

The call graph is objdump's view of the original; addresses go to the folded program through icfold --map (which lists old
address, size, new address and name of every unit).  For each chain all chains of the original that have the same
addresses in the folded program are worked out here, with sets and without any table of icfold: calls as they stand in
the code, and jumps from function to function (some chains take one).  RESOLVER (the test program's --resolve) must give
exactly that set for every level: the one right name where there is one, all candidates where there are several.  Where the
function that was called does not share the frame's code and an indirect jump could lead there, it may give the whole group; and
functions without debug information can have no entries in the tables: they may stay undecided.

Prints one line of figures; exit status 1 when a level is wrong."""
import bisect
import random
import re
import subprocess
import sys

orig, folded, mapfile, resolver, count = sys.argv[1:6]
rng = random.Random(int(sys.argv[6]) if len(sys.argv) > 6 else 1)
count = int(count)

unit = []  # (old, end, new, name)
for line in open(mapfile):
    old, size, new, name = line.split(None, 3)
    unit.append((int(old, 16), int(old, 16) + int(size, 16), int(new, 16), name.strip()))
unit.sort()
starts = [u[0] for u in unit]


def unit_at(va):
    i = bisect.bisect_right(starts, va) - 1
    return i if i >= 0 and va < unit[i][1] else None


body = {}
for i, u in enumerate(unit):
    body.setdefault(u[2], []).append(i)
members = {i: m for m in body.values() for i in m if len(m) > 1}

calls = {}     # unit -> {offset of the return address: unit called}
callers = {}   # unit -> [(caller, return address)]
jumps = {}     # unit -> {units jumped to}
jumped = {}    # unit -> [units that jump to it]
open_end = set() # units with an indirect jump
insns = {}     # unit -> offsets of instructions
linkage = set()
section = ""
dis = subprocess.Popen(["objdump", "-d", "-w", orig], stdout=subprocess.PIPE, text=True)
branch = re.compile(r"(?:addr32 |bnd |notrack |data16 )*(call|jmp|j[a-z]+|loop[a-z]*)q? +([0-9a-f]+)(?: |$)"
                    r"|(bl|b|b\.[a-z]+|cbn?z|tbn?z) (?:[^<]*, )?([0-9a-f]+) <")  # and AArch64's
for line in dis.stdout:
    if line.startswith("Disassembly of section"):
        section = line.split()[-1].rstrip(":")
    part = line.rstrip("\n").split("\t", 2)
    if len(part) < 3:
        continue
    va = int(part[0].strip().rstrip(":"), 16)
    u = unit_at(va)
    if u is None:
        continue
    if section.startswith(".plt") or section in (".init", ".fini", ".iplt"):
        linkage.add(u)
        continue
    insns.setdefault(u, []).append(va - unit[u][0])
    text = part[2].replace("\t", " ")
    if text.startswith(("jmp", "bnd jmp")) and "*" in text or text.startswith("br "):
        open_end.add(u)
    m = branch.match(text)
    if not m:
        continue
    ret, target = va + len(part[1].replace(" ", "")) // 2, int(m[2] or m[4], 16)
    v = unit_at(target)
    if v is None or v in linkage or target == ret:
        continue
    if (m[1] or m[3]) in ("call", "bl"):
        calls.setdefault(u, {})[ret - unit[u][0]] = v
        callers.setdefault(v, []).append((u, ret))
    elif v != u:
        if v not in jumps.setdefault(u, set()):
            jumps[u].add(v)
            jumped.setdefault(v, []).append(u)
dis.wait()


def reach(v, memo={}):
    if v not in memo:
        seen, todo = {v}, [v]
        while todo:
            for w in jumps.get(todo.pop(), ()):
                if w not in seen:
                    seen.add(w)
                    todo.append(w)
        memo[v] = seen
    return memo[v]


ends = [i for i in members if (i in callers or i in jumped) and i in insns]
if not ends:
    print("no shared function is called directly")
    sys.exit(1)
chains = []
for _ in range(count):
    m = rng.choice(ends)
    true, stack = [m], [unit[m][2] + rng.choice(insns[m])]
    for _ in range(rng.randint(1, 4)):
        called = true[-1]
        while called in jumped and (called not in callers or rng.random() < 0.2):
            called = rng.choice(jumped[called])
            if called == true[-1]:
                break
        if called not in callers:
            break
        c, ret = rng.choice(callers[called])
        stack.append(unit[c][2] + ret - unit[c][0])
        true.append(c)
    chains.append((true, stack))

text = "".join("".join("%x\n" % a for a in s) + "\n" for _, s in chains)
out = subprocess.run([resolver, "--resolve", folded], input=text, capture_output=True, text=True)
if out.returncode:
    print("the resolver failed: " + (out.stderr or out.stdout)[:200])
    sys.exit(1)
answer = out.stdout.split("\n")
at = 0
levels = plain = right = ambiguous = unclear = bare = wrong = 0
by = {}
for true, stack in chains:
    # All members whose code has the outermost address, then inward.
    possible = [None] * len(true)
    vague = [False] * len(true)
    nameless = [False] * len(true)
    for i in range(len(true) - 1, -1, -1):
        group = set(members.get(true[i], [true[i]]))
        if i == len(true) - 1:
            possible[i] = group
            continue
        site = stack[i + 1] - unit[true[i + 1]][2]
        called = [calls[c][site] for c in possible[i + 1]]
        possible[i] = {w for v in called for w in reach(v) if w in group}
        vague[i] = vague[i + 1] or any(v not in group and not open_end.isdisjoint(reach(v)) for v in called)
    for i, t in reversed(list(enumerate(true))):
        got = answer[at + i].split()
        levels += 1
        if t not in members:
            if got[0] != "-":
                wrong += 1
                print("not shared, but: %s" % " ".join(got))
            else:
                plain += 1
            continue
        want = {unit[w][0] for w in possible[i]}
        have = {int(a.rstrip("~"), 16) for a in got[1:]}
        nameless[i] = any(nameless[i + 1:]) or "~" in " ".join(got)
        if vague[i] and have != want and want < have:
            unclear += 1
        elif nameless[i] and want < have:
            bare += 1
        elif want != have:
            wrong += 1
            if wrong <= 5:
                print("level %d of %s:" % (i, " ".join("%x" % a for a in stack)))
                print("  is %x %s; possible %s; answer %s" % (unit[t][0], unit[t][3], sorted("%x" % a for a in want), " ".join(got)))
        elif len(want) == 1:
            right += 1
            by[got[0]] = by.get(got[0], 0) + 1
        else:
            ambiguous += 1
    at += len(true) + 1  # and the blank line
print("%d chains, %d levels: %d not shared, %d named right (%s), %d rightly undecided, %d undecided for an indirect jump, %d for want of debug information, %d wrong" % (
    len(chains), levels, plain, right, ", ".join("%s %d" % x for x in sorted(by.items())), ambiguous, unclear, bare, wrong))
sys.exit(wrong != 0)
