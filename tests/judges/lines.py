#!/usr/bin/env python3
"""lines.py [--show K] IN OUT MAP

Compares the line tables as llvm-dwarfdump decodes them, sequence by sequence.  Every stretch of code of a kept unit that a
row of IN covers must be covered in OUT, at its mapped address, by the same row: file, line, column, flags, discriminator.
Rows that cover nothing (several at one address) are compared too; those right at the end of their sequence may be gone
where another function begins in OUT: only libdw shows them, for that function.  Rows of folded units must be gone from their
own tables.  MAP is what icfold --map=FILE wrote.  Exit code: 0 all right, 1 not, 2 it could not be judged.
$DWARFDUMP: the program to use."""
import argparse
import collections
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mapfile  # noqa: E402

ROW = re.compile(r"^0x([0-9a-f]{16})\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(.*)$")


class Table:
    def __init__(self):
        self.dirs, self.files, self.sequences, self.version = {}, {}, [], 0

    def name(self, index):
        if index not in self.files:
            return "?%d" % index
        n, d = self.files[index]
        return n if n.startswith("/") else "%s/%s" % (self.dirs.get(d, ""), n)


def tables(path):
    """Yields the line tables of a file."""
    tool = os.environ.get("DWARFDUMP", "llvm-dwarfdump")
    p = subprocess.Popen([tool, "--debug-line", path], stdout=subprocess.PIPE, text=True, errors="replace")
    t = seq = None
    index = name = None
    header_has_op = False
    for line in p.stdout:
        m = ROW.match(line)
        if m:
            rest = m.group(7).split()
            if header_has_op and rest and rest[0].isdigit():
                rest = rest[1:]
            addr = int(m.group(1), 16)
            if "end_sequence" in rest:
                seq.append((addr, None))
                t.sequences.append(seq)
                seq = []
            else:
                key = (t.name(int(m.group(4))), int(m.group(2)), int(m.group(3)), int(m.group(5)), int(m.group(6)), tuple(rest))
                seq.append((addr, key))
            continue
        if line.startswith("debug_line["):
            if t:
                yield t
            t, seq = Table(), []
            continue
        if t is None:
            continue
        s = line.strip()
        if s.startswith("Address"):
            header_has_op = "OpIndex" in s
        elif s.startswith("version:"):
            t.version = int(s.split(":")[1])
        elif s.startswith("include_directories["):
            i, d = re.match(r"include_directories\[\s*(\d+)\] = (.*)", s).groups()
            t.dirs[int(i)] = d.strip('"')
        elif s.startswith("file_names["):
            index = int(re.match(r"file_names\[\s*(\d+)\]", s).group(1))
        elif s.startswith("name: "):
            name = s[6:].strip('"')
        elif s.startswith("dir_index: "):
            t.files[index] = (name, int(s[11:]))
    if t:
        yield t
    if p.wait():
        sys.exit("lines.py: %s %s failed" % (tool, path))


def pieces(table, units, base, code):
    """({(unit, lo, hi): [rows]}, {edge: Counter}, {edge: Counter}) of one table; the last: edges at which their sequences end.
    UNITS(lo, hi) lists the units that a stretch touches."""
    cover, empty, last = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for seq in table.sequences:
        if not any(lo <= seq[0][0] < hi for lo, hi, _ in code):
            continue
        for (addr, key), (nxt, _) in zip(seq, seq[1:]):
            if key is None:
                continue
            if nxt == addr:
                empty[(addr, key)] += 1
                if addr == seq[-1][0] and addr != seq[0][0]:
                    last[(addr, key)] += 1
                continue
            for u in units(addr, nxt):
                b = base(u)
                cover[(u, max(addr, b) - b, min(nxt, b + u.size) - b)].append(key)
    return cover, empty, last


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--show", type=int, default=10)
    ap.add_argument("inp", metavar="IN")
    ap.add_argument("out", metavar="OUT")
    ap.add_argument("map", metavar="MAP")
    a = ap.parse_args()
    m = mapfile.Map(a.map, a.inp, a.out)
    code_in, code_out = mapfile.exec_sections(a.inp), mapfile.exec_sections(a.out)
    import bisect

    def touched(starts, units, base):
        def f(lo, hi):
            i = max(bisect.bisect_right(starts, lo) - 1, 0)
            while i < len(units) and base(units[i]) < hi:
                if base(units[i]) + units[i].size > lo:
                    yield units[i]
                i += 1
        return f

    old, new = (lambda u: u.old), (lambda u: u.new)
    in_units, out_units = touched(m.old, m.unit, old), touched(m.new, m.kept, new)
    wrong = rows = n = 0
    shown = 0

    def complain(*what):
        nonlocal wrong, shown
        wrong += 1
        if shown < a.show:
            print("WRONG: " + " ".join(str(w) for w in what))
            shown += 1

    # Where functions and thunks begin in OUT.
    starts = set(m.new) | {s[0] for s in m.out_symbols}
    outs = tables(a.out)
    for t in tables(a.inp):
        n += 1
        o = next(outs, None)
        if o is None:
            complain("table", n, "is not in the output")
            break
        want, want_empty, want_last = pieces(t, in_units, old, code_in)
        have, have_empty, _ = pieces(o, out_units, new, code_out)
        want = {k: v for k, v in want.items() if k[0].kept is k[0]}
        rows += sum(len(v) for v in want.values()) + sum(want_empty.values())
        for k in want.keys() | have.keys():
            w, h = want.get(k), have.get(k)
            if w != h and not (w and h and collections.Counter(w) == collections.Counter(h)):
                complain("table", n, k[0].name, "[%#x,%#x)" % (k[1], k[2]), "at %#x:" % (k[0].new + k[1]), "expected", w, "output", h)
        # Rows that cover nothing: inside a unit one to one; at the boundary of two units either place is right.
        loose = collections.Counter()
        for (addr, key), c in want_empty.items():
            u, v = m.find(addr), m.find(addr - 1)
            if u is not None and u is v:
                if u.kept is u:
                    at = (u.new + addr - u.old, key)
                    if have_empty[at] != c:
                        complain("table", n, u.name, "empty row", "%#x" % at[0], key, "expected", c, "times, output", have_empty[at])
                    have_empty.pop(at, None)
            else:
                places = {x.new + addr - x.old for x in (u, v) if x is not None and x.kept is x}
                folded = any(x is not None and x.kept is not x for x in (u, v))
                for p in places:
                    loose[(p, key)] += c
                got = sum(have_empty[(p, key)] for p in places)
                spare = want_last[(addr, key)] if v is not None and v.new + addr - v.old in starts else 0
                if got < c - spare and not folded and places:
                    # The row may have become one that covers padding, at the end of its sequence.
                    complain("table", n, (u or v).name, "empty row at a boundary", "%#x" % addr, key, "expected", c, "times, output", got)
        for at, c in have_empty.items():
            if c > loose[at] and m.find_new(at[0]) is m.find_new(at[0] - 1):
                complain("table", n, "empty row", "%#x" % at[0], at[1], "is not expected")
    extra = list(outs)
    print("%d tables, %d rows, %d more tables in the output; %d wrong" % (n, rows, len(extra), wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
