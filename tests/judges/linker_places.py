#!/usr/bin/env python3
"""linker_places.py [-n N] [--seed S] PLAIN FOLDED

What a linker's folding does to debug information: takes N random places (a function, an offset in it) of FOLDED and asks
llvm-symbolizer about each, with inlined frames.  PLAIN is the same link without folding.  An answer is right when PLAIN gives it
about the same offset of one of the functions that are at that address in FOLDED; a name of one function with a line of
another is wrong.  Prints the share of wrong ones."""
import argparse
import collections
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from places import ask  # noqa: E402

MOST = 16  # functions at one address that are asked about


def functions(path):
    """Name -> (address, size) of the functions whose name is there once."""
    ret, twice = {}, set()
    for line in subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout.splitlines():
        f = line.split()
        if len(f) == 8 and f[3] == "FUNC" and f[6] != "UND" and int(f[2], 0) > 0:
            where = (int(f[1], 16), int(f[2], 0))
            if ret.setdefault(f[7], where) != where:
                twice.add(f[7])
    return {n: w for n, w in ret.items() if n not in twice}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-n", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--tool", default="llvm-symbolizer")
    ap.add_argument("plain", metavar="PLAIN")
    ap.add_argument("folded", metavar="FOLDED")
    a = ap.parse_args()
    plain, folded = functions(a.plain), functions(a.folded)
    common = sorted(n for n in folded if n in plain and plain[n][1] == folded[n][1])
    at = collections.defaultdict(list)
    for n in common:
        at[folded[n][0]].append(n)
    if not common:
        sys.exit("linker_places.py: no function symbols")
    rnd = random.Random(a.seed)
    places = []
    for _ in range(a.n):
        n = rnd.choice(common)
        places.append((n, rnd.randrange(folded[n][1])))
    have = ask(a.tool, a.folded, [folded[n][0] + off for n, off in places])
    want = ask(a.tool, a.plain, [plain[n][0] + off for n, off in places])
    wrong = [i for i in range(len(places)) if have[i] != want[i]]
    others = [(i, n) for i in wrong for n in at[folded[places[i][0]][0]][:MOST]]
    right = {i for (i, n), text in zip(others, ask(a.tool, a.plain, [plain[n][0] + places[i][1] for i, n in others])) if text == have[i]}
    wrong = [i for i in wrong if i not in right]
    shared = sum(1 for n, _ in places if len(at[folded[n][0]]) > 1)
    print("%d places, %d of them in shared code, %d wrong (%.2f %%)" % (len(places), shared, len(wrong), 100.0 * len(wrong) / len(places)))


if __name__ == "__main__":
    main()
