#!/usr/bin/env python3
"""shared.py AUDIT.json FILE...: are the groups of functions that `icfold audit --json FILE...` finds in several files those that objdump
and nm show?  Slow, and shares nothing with icfold: functions are texts of instructions, in which other functions are classes.  Classes
start as all the same and are divided until they divide no further, so that functions that call each other in circles are compared, too.

For x86-64 shared libraries with symbols whose code refers to functions, imports and named variables only."""
import collections
import json
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout


def functions(path):
    """name -> (size, text); in the text ("F", name) is a function, all else is compared as it is."""
    symbols = {}
    for line in run("nm", "-S", path).splitlines():
        w = line.split()
        if len(w) == 4 and w[2] in "tTwW":
            symbols[int(w[0], 16)] = (w[3], int(w[1], 16))
    slots = {}  # of the GOT: what is written there at the start
    for line in run("objdump", "-R", path).splitlines():
        m = re.match(r"([0-9a-f]+) R_\w+(?:GLOB_DAT|JUMP_SLOT|64)\s+(\S+)", line)
        if m:
            slots[int(m.group(1), 16)] = m.group(2)
    text = collections.defaultdict(list)
    start = size = 0
    name = None
    for line in run("objdump", "-d", "-w", path).splitlines():
        m = re.match(r"\s+([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$", line)
        if not m:
            continue
        at = int(m.group(1), 16)
        if at in symbols:
            start, (name, size) = at, symbols[at]
        if name is None or at >= start + size:
            continue
        length, insn = len(m.group(2).split()), (m.group(3) or "").strip()
        target = re.search(r"\b([0-9a-f]+) <([^>]*)>", insn)
        where = None
        if target:
            place = int(target.group(1), 16)
            if "#" in insn:
                insn = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "(%rip)", insn.split("#")[0].strip())
                where = ("slot", slots[place]) if place in slots else ("data", target.group(2))
            else:
                insn = insn.split()[0]
                where = ("inside", place - start) if start <= place < start + size else ("code", target.group(2))
            if place in symbols and where[0] != "inside":
                where = ("F", symbols[place][0])
        text[name].append((length, insn, where))
    return {n: (s, tuple(text[n])) for n, s in symbols.values() if s and n in text}


def classes(files):
    """(file, function) -> class."""
    nodes = {(f, n): t for f in files for n, (_, t) in files[f].items()}
    label = dict.fromkeys(nodes, 0)
    count = 1
    while True:
        seen = {}
        fresh = {}
        for (f, n), t in nodes.items():
            key = tuple((length, insn, ("F", label.get((f, w[1]), w[1])) if w and w[0] == "F" else w) for length, insn, w in t)
            fresh[f, n] = seen.setdefault(key, len(seen))
        label = fresh
        if len(seen) == count:
            return label
        count = len(seen)


def main():
    audit = json.load(open(sys.argv[1], encoding="utf-8"))
    files = {path: functions(path) for path in sys.argv[2:]}
    members = collections.defaultdict(set)
    for node, c in classes(files).items():
        members[c].add(node)
    want = {frozenset(m): files[next(iter(m))[0]][next(iter(m))[1]][0] for m in members.values() if len({f for f, _ in m}) > 1}
    got = {}
    for g in audit["groups"]:
        m = frozenset((f["file"], f["symbol"]) for f in g["functions"])
        if all(f in files and s in files[f] for f, s in m):
            got[m] = g
    wrong = [f"only objdump: {sorted(m)[:4]}" for m in want if m not in got] + [f"only icfold: {sorted(m)[:4]}" for m in got if m not in want]
    for m in set(want) & set(got):
        n = len({f for f, _ in m})
        figures = (want[m], n, len(m), (n - 1) * want[m])
        if figures != tuple(got[m][k] for k in ("size", "n_files", "copies", "saving")):
            wrong.append(f"figures of {sorted(m)[0]}: {figures}")
    for p in audit["pairs"]:
        a, b = p["files"]
        both = [g for g in audit["groups"] if {a, b} <= {f["file"] for f in g["functions"]}]
        if (p["functions"], p["bytes"]) != (len(both), sum(g["size"] for g in both)):
            wrong.append(f"pair {a} {b}")
    for line in wrong[:10]:
        print(line)
    print(f"{len(want)} groups of {sum(len(m) for m in want)} functions, {sum(w * (len({f for f, _ in m}) - 1) for m, w in want.items())} bytes")
    sys.exit(1 if wrong or not want else 0)


main()
