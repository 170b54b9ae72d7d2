#!/usr/bin/env python3
"""clients.py: what a reader says on a folded program, compared with what it says on the unfolded one.

    clients.py truth PLAIN GROUPS >TRUTH       once for a folded program; GROUPS is the output of `icfold dump --groups --json`
    clients.py places PLAIN MAP >PLACES        "old new" addresses to ask for, all in functions; MAP is the output of --map
    clients.py compare TRUTH ROWS ROWS         rows of the unfolded and the folded program: "function TAB file:line [TAB rest]"

`?` is a name or line that the reader does not know, `-` one that it never gives.  Each row of the folded program has a verdict:

    same    as in the unfolded program
    kept    the corresponding place of the function that its group keeps, name and line
    other   the corresponding place of another function of the group
    LESS    a name or line is missing
    MIX     the name of one function of the group, the line of another
    WRONG   anything else

What corresponds is asked of addr2line on the unfolded program alone: functions of a group have the same code, so the place of
one at a distance from its start is that of the other at the same distance.  Exit status 1 for LESS, MIX, WRONG, and for `other`
unless OTHER=1.  The first output line counts the verdicts; up to SHOW (4) rows of each bad kind follow.
"""
import collections
import functools
import json
import os
import re
import subprocess
import sys


def tool(*args, text=""):
    return subprocess.run(args, input=text, capture_output=True, text=True, check=True).stdout


def plain_name(name):
    """A demangled name without return type, parameters and the hash of Rust's old mangling."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", name.strip())
    name = re.sub(r"\[[0-9a-f]{9,16}\]", "", name)
    name = re.sub(r" \[clone [^]]*\]| const$", "", name)
    name = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}")
    depth, start, end = 0, 0, len(name)
    for i, c in enumerate(name):
        if c in "<{[":
            depth += 1
        elif c in ">}]" and depth and name[i - 1] != "-":
            depth -= 1
        elif depth:
            continue
        elif c == "(":
            end = i
            break
        elif c == " " and not name.startswith("<"):
            start = i + 1
    return name[start:end] or name


def last_part(name):
    depth, start = 0, 0
    for i, c in enumerate(name):
        depth += (c in "<{") - (c in ">}")
        if not depth and name.startswith("::", i):
            start = i + 2
    return name[start:]


@functools.lru_cache(maxsize=None)
def demangled(name):
    return tool("c++filt", "-i", text=name + "\n").rstrip("\n") if name[:2] in ("_Z", "_R") else name


def demangle_all(names):
    names = sorted({n for n in names if n[:2] in ("_Z", "_R")})
    return dict(zip(names, tool("c++filt", text="".join(n + "\n" for n in names)).splitlines()))


def forms(name, table):
    """The ways to write a name: qualified, and its last part alone."""
    whole = plain_name(table.get(name, name))
    return whole, last_part(whole)


def symbols(path):
    at = collections.defaultdict(list)
    for l in tool("readelf", "-sW", path).splitlines():
        w = l.split()
        if len(w) == 8 and w[3] in ("FUNC", "IFUNC") and w[6] != "UND":
            n = w[7].split("@")[0]
            if n not in at[int(w[1], 16)]:
                at[int(w[1], 16)].append(n)
    return at


def chains(path, addresses):
    """For each address the functions there and their lines, innermost first."""
    out = tool("addr2line", "-aif", "-e", path, text="".join("%x\n" % a for a in addresses))
    all_chains, chain, name = [], None, None
    for l in out.splitlines():
        if re.match(r"0x[0-9a-f]+$", l):
            chain, name = [], None
            all_chains.append(chain)
        elif name is None:
            name = l
        else:
            chain.append((name, re.sub(r" \(discriminator \d+\)", "", l.rsplit("/", 1)[-1])))
            name = None
    return all_chains


def truth(path, groups_path):
    with open(groups_path, encoding="utf-8") as f:
        groups = json.load(f)["groups"]
    at = symbols(path)
    asked = []
    for g in groups:
        for m in g["members"]:
            m["at"] = int(m["old"], 16)
            m["names"] = list(dict.fromkeys(at.get(m["at"], []) + m["names"]))
            # The byte behind the end: a return address may be there.
            asked += [m["at"] + o for o in range(m["size"] + 1)]
    places = dict(zip(asked, chains(path, asked)))
    table = demangle_all([f for c in places.values() for f, _ in c] + [n for g in groups for m in g["members"] for n in m["names"]])
    allowed, allow_pairs, deep = collections.defaultdict(set), set(), set()

    def allow(n, nl, m, ml, kept):
        allow_pairs.add((n, m, kept))
        for a, b in zip(forms(n, table), forms(m, table)):
            for la, lb in ((nl, ml), ("-", "-")):
                allowed[a, la].add((b, lb, kept))

    for g in groups:
        for n in g["members"]:
            for m in g["members"]:
                for o in range(min(n["size"], m["size"]) + 1):
                    c, d = places[n["at"] + o], places[m["at"] + o]
                    if len(c) != len(d):
                        deep.add((*(tuple((forms(f, table)[0], l) for f, l in x) for x in (c, d)), m["kept"]))
                    for x, y in zip(c, d):
                        allow(*x, *y, m["kept"])
                    # Readers that know no inlined calls name the symbol, and show the outermost or the innermost line.
                    for x in n["names"]:
                        for y in m["names"]:
                            allow(x, c[0][1], y, d[0][1], m["kept"])
                            allow(x, c[-1][1], y, d[-1][1], m["kept"])
    # Lines that addr2line shows at no address, as another row has the same address: functions of a group have the same text.
    span = collections.defaultdict(set)
    for c in places.values():
        for f, l in c:
            if l.rpartition(":")[2].isdigit():
                span[f].add((l.rpartition(":")[0], int(l.rpartition(":")[2])))
    shown = set(allowed)
    pairs = {(x, y, k) for (x, y, k) in allow_pairs if x in span and y in span}
    for x, y, k in pairs:
        (file, first), (_, last) = min(span[x]), max(span[x])
        to, start = min(span[y])
        for l in range(first - 5, last + 6):
            if (forms(x, table)[0], "%s:%d" % (file, l)) not in shown:
                allow(x, "%s:%d" % (file, l), y, "%s:%d" % (to, l - first + start), k)
    json.dump({"rows": [[n, l, sorted(v)] for (n, l), v in sorted(allowed.items())], "chains": sorted(deep)}, sys.stdout)


def places(path, map_path):
    """Places of functions that have a line: every second byte of small ones, every seventh of others."""
    lines = set()
    with open(map_path, encoding="utf-8") as f:
        for l in f:
            old, size, new, *_ = l.split()
            old, size, new = int(old, 16), int(size, 16), int(new, 16)
            for o in range(0, size, 2 if size < 128 else 7):
                lines.add((old + o, new + o))
    lines = sorted(lines)
    known = chains(path, [a for a, _ in lines])
    for (a, b), c in zip(lines, known):
        if c and not c[0][1].startswith("?"):
            print("%#x %#x" % (a, b))


def read_rows(path):
    """The stacks of a file: a line "stack" begins one."""
    with open(path, encoding="utf-8", errors="replace") as f:
        raw = [(l.rstrip("\n") + "\t-").split("\t") for l in f]
    table = demangle_all(r[0] for r in raw)
    stacks = [[]]
    for name, line, *rest in raw:
        if name == "stack":
            stacks.append([])
            continue
        name = plain_name(table.get(name, name)) if name not in ("?", "??", "") else "?"
        line = re.sub(r" \(discriminator \d+\)|^.*/", "", line)
        line = "?" if line.startswith("?") or line.endswith((":0", ":?")) else line
        stacks[-1].append((name, line, "\t".join(rest[:-1])))
    return stacks if stacks[0] else stacks[1:]


def verdict(u, f, allowed):
    if u == f:
        return "same"
    if u[2] != f[2]:
        return "WRONG"
    if (f[0] == "?" and u[0] != "?") or (f[1] in "?-" and u[1] not in "?-"):
        return "LESS"
    line = u[1] if u[1] not in "?" else "-"
    found = [k for n, l, k in allowed.get((u[0], line), []) if n == f[0] and (line == "-" or l == f[1])]
    # An outer name that the reader gives to a line of its own choice.
    if found:
        return "kept" if True in found else "other"
    if any(n == f[0] for n, _, _ in allowed.get((u[0], "-"), [])) or u[0] == f[0]:
        return "MIX"
    return "WRONG"


def match_chains(a, b, chains_of):
    """The rows of a place in another function with more or fewer inlined calls: (rows of A, rows of B, kept), or None."""
    for c, d, kept in chains_of:
        if [r[:2] for r in a[:len(c)]] == c and [r[:2] for r in b[:len(d)]] == d:
            return len(c), len(d), kept
    return None


def compare_stack(a, b, allowed, chains_of):
    """(verdict, text) of each row; one for the rest of the stack if the number of rows is another."""
    while a and b:
        v = verdict(a[0], b[0], allowed)
        m = match_chains(a, b, chains_of) if len(a) != len(b) or v not in ("same", "kept") else None
        if m:
            yield "kept" if m[2] else "other", "inlined"
        elif len(a) != len(b) and v not in ("same", "kept", "other"):
            break
        else:
            yield v, " ".join(a[0]).strip() + " -> " + " ".join(b[0]).strip()
        a, b = a[m[0] if m else 1:], b[m[1] if m else 1:]
    if a or b:
        show = ["; ".join(" ".join(r).strip() for r in s[:3]) for s in (a, b)]
        yield "LESS" if len(b) < len(a) else "WRONG", "%d rows, then %d: %s -> %s" % (len(a), len(b), *show)


def compare_sets(a, b, allowed):
    """Rows without order, each once."""
    a, b = ({r for s in x for r in s} for x in (a, b))
    for f in sorted(b - a):
        found = [verdict(u, f, allowed) for u in a]
        if os.environ["SETS"] == "part":
            found += ["kept" for v in allowed.values() for n, l, k in v if k and (n, l) == f[:2]]
        best = min(found, key=ORDER.index)
        yield best if best in ("kept", "other") else "MIX" if "MIX" in found else "WRONG", "new: " + " ".join(f)
    if os.environ["SETS"] == "part":
        return
    for u in sorted(a):
        found = [verdict(u, f, allowed) for f in b]
        best = min(found, key=ORDER.index)
        yield best if best in ("same", "kept", "other") else "LESS", "gone: " + " ".join(u)


ORDER = ("same", "kept", "other", "LESS", "MIX", "WRONG")


def compare(truth_path, plain, folded):
    with open(truth_path, encoding="utf-8") as f:
        known = json.load(f)
    allowed = {(n, l): v for n, l, v in known["rows"]}
    chains_of = [([tuple(r) for r in c], [tuple(r) for r in d], kept) for c, d, kept in known["chains"]]
    a, b = read_rows(plain), read_rows(folded)
    shown = collections.defaultdict(list)
    if not any(a):
        print("no rows of the unfolded program")
        return 1
    if os.environ.get("SETS"):
        results = compare_sets(a, b, allowed)
    elif len(a) != len(b):
        results = [("WRONG", "%d stacks, then %d" % (len(a), len(b)))]
    else:
        results = (r for u, f in zip(a, b) for r in compare_stack(u, f, allowed, chains_of))
    for v, text in results:
        shown[v].append(text)
    print(" ".join("%s %d" % (v, len(shown[v])) for v in ORDER if shown[v]))
    bad = [v for v in ORDER[3 if os.environ.get("OTHER") else 2:] if shown[v]]
    for v in bad:
        for text in list(dict.fromkeys(shown[v]))[:int(os.environ.get("SHOW", 4))]:
            print("  %s %s" % (v, text))
    return 1 if bad else 0


if __name__ == "__main__":
    what, args = sys.argv[1], sys.argv[2:]
    if what == "truth":
        truth(*args)
    elif what == "places":
        places(*args)
    else:
        sys.exit(compare(*args))
