#!/usr/bin/env python3
"""attribution.py UNFOLDED KEPT DROPPED: profiles of one execution, as `perf script` text (tests/judges/branches.c).  UNFOLDED is of the
program before folding.  KEPT and DROPPED are what `icfold profile` made of the folded program's, with --undecided=kept and =drop.
Prints the decided addresses that differ, and "ADDRESSES COMPARED, N undecided, N wrong guesses".

KEPT has every branch of UNFOLDED, in the same lines.  DROPPED shows which addresses were undecided: there they are 0, and branches
with two of them are missing."""
import re
import sys

BRANCH = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/")


def lines(path):
    """The frames and the branches of each sample."""
    out, frames = [], []
    for line in open(path, encoding="utf-8"):
        if "PERF_RECORD" in line:
            continue
        found = BRANCH.findall(line)
        words = line.split("0x", 1)[0].split()
        if found:
            frames += [int(w, 16) for w in words]
            out.append((frames, [(int(a, 16), int(b, 16)) for a, b in found]))
            frames = []
        elif words and line[0] == "\t":
            frames.append(int(words[0], 16))
        elif words:
            out.append(([int(words[0], 16)], []))
        elif frames:
            out.append((frames, []))
            frames = []
    return out


def hides(dropped, kept):
    return all(d in (0, k) for d, k in zip(dropped, kept))


def undecided(kept, dropped):
    """For each branch of KEPT: its ends in DROPPED, 0 if they are undecided."""
    out, j = [], 0
    for i, k in enumerate(kept):
        left = len(kept) - i
        if j < len(dropped) and hides(dropped[j], k) and (dropped[j] == k or len(dropped) - j <= left):
            out.append(dropped[j])
            j += 1
        else:
            out.append((0, 0))
    if j < len(dropped):
        print("the branches without undecided ones are not among all branches")
        sys.exit(1)
    return out


def main():
    want, kept, dropped = (lines(p) for p in sys.argv[1:4])
    if len(want) != len(kept) or len(kept) < len(dropped):
        print("samples: %d, %d with guesses, %d without" % (len(want), len(kept), len(dropped)))
        return 1
    whole = len(kept) == len(dropped)
    compared = open_ = guesses = bad = 0
    for n, (w, k) in enumerate(zip(want, kept)):
        if len(w[1]) != len(k[1]) or len(w[0]) != len(k[0]):
            print("sample %d: %d branches, not %d" % (n, len(k[1]), len(w[1])))
            return 1
        pairs = list(zip(w[1], k[1], undecided(k[1], dropped[n][1]) if whole else k[1]))
        ends = [(x, y, z) for a, b, c in pairs for x, y, z in zip(a, b, c)]
        if whole:
            ends += list(zip(w[0], k[0], dropped[n][0]))
        for x, y, z in ends:
            compared += 1
            if z == 0 and y:
                open_ += 1
                guesses += x != y
            elif x != y:
                bad += 1
                if bad < 20:
                    print("sample %d: %x was attributed to %x" % (n, x, y))
    print("%d compared, %d undecided, %d wrong guesses, %d wrong" % (compared, open_, guesses, bad))
    return bad != 0


sys.exit(main())
