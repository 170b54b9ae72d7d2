#!/usr/bin/env python3
"""bolt_counts.py PROFILE [LOADED]: what perf2bolt itself counts from the branch records in the text of `perf script`, as counts for
perf2bolt --pa.  LOADED (hexadecimal) is where the program was loaded, its first 32 MB."""
import collections
import re
import sys

BRANCH = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/")


def main():
    loaded = int(sys.argv[2], 16) if len(sys.argv) > 2 else 0
    branches, ranges = collections.Counter(), collections.Counter()
    for line in open(sys.argv[1], encoding="utf-8"):
        v = [[int(x, 16) - loaded for x in p] for p in BRANCH.findall(line)]
        v = [[x if 0 < x < 1 << 25 else 0 for x in p] for p in v]
        for i, (x, y) in enumerate(v):
            branches[x, y] += 1
            if i and y and v[i - 1][0]:
                ranges[y, v[i - 1][0]] += 1
    for (x, y), n in sorted(branches.items()):
        print("B %x %x %d 0" % (x, y, n))
    for (x, y), n in sorted(ranges.items()):
        print("F %x %x %d" % (x, y, n))


main()
