#!/usr/bin/env python3
"""lint_graph.py [--families]: who includes whom.  Prints each arrow that the house does not allow and each circle; --families: all
arrows between folders.

A folder includes itself and what BELOW allows it, with all that is below those.  state.h is its folder's own.  Circles are looked
for among modules, a module being NAME.c with NAME.h; but of a folder's front (FRONT) the header, which the folder's other files
include for its types, and the source, which drives them, count apart."""
import collections
import os
import re
import subprocess
import sys

BELOW = {
    "elfrw/base": [],
    "elfrw/arch": ["elfrw/base"],
    "elfrw": ["elfrw/arch"],
    "dwarf": ["elfrw"],
    "dwarf/calls": ["dwarf"],
    "dwarf/demangle": ["elfrw/base"],
    "dwarf/symbolize": ["dwarf/calls", "dwarf/demangle"],
    "dwarf/stack": ["dwarf/symbolize"],
    "dwarf/rewrite/line": ["dwarf/calls", "dwarf/rewrite"],
    "dwarf/rewrite/lists": ["dwarf/calls", "dwarf/rewrite"],
    "dwarf/rewrite/unwind": ["dwarf"],
    "dwarf/rewrite/die": ["dwarf/calls", "dwarf/rewrite"],
    "dwarf/rewrite/vtable": ["dwarf/calls", "dwarf/rewrite"],
    # One family in six folders.
    "dwarf/rewrite": ["dwarf/calls", "dwarf/rewrite/die", "dwarf/rewrite/line", "dwarf/rewrite/lists", "dwarf/rewrite/unwind", "dwarf/rewrite/vtable"],
    "icf/cli": ["dwarf"],
    "icf/program": ["icf/cli", "dwarf/stack"],
    "icf/infer": ["icf/program"],
    "icf/infer/bare": ["icf/infer"],
    "icf/infer/gap": ["icf/infer"],
    "icf/infer/run": ["icf/infer"],
    "icf/infer/sums": ["icf/infer"],
    "icf/refs": ["icf/infer"],
    "icf/refs/table": ["icf/refs"],
    "icf/fold/unused": ["icf/refs"],
    "icf/fold": ["icf/refs", "icf/fold/unused"],
    "icf/apply": ["icf/fold", "dwarf/rewrite"],
    "icf": ["icf/apply", "dwarf/symbolize"],
    "icf/hash": ["icf/fold"],
    "icf/audit": ["icf", "icf/hash"],
    "icf/audit/product": ["icf/audit"],
    "icf/audit/rows": ["icf/audit/product"],
    "icf/trace": ["dwarf/stack"],
    "icf/profile": ["icf/trace"],
    "icf/export": ["dwarf/stack"],
    # The verifier shares readers with the fold, but nothing that decides or writes.
    "icf/verify": ["dwarf/stack"],
    "icf/verify/code": ["icf/verify"],
    "icf/verify/data": ["icf/verify"],
    "icf/verify/debug": ["icf/verify", "icf/verify/die", "icf/verify/lines", "icf/verify/calls"],  # it drives these, which read debug information through it
    "icf/verify/die": ["icf/verify/debug", "icf/verify/lines"],
    "icf/verify/file": ["icf/verify"],
    "icf/verify/unwind": ["icf/verify/debug"],
    "icf/verify/lines": ["icf/verify/debug"],
    "icf/verify/calls": ["icf/verify/debug"],
    "icf/lib": ["icf/cli", "dwarf/stack"],
    "icf/cmd/perf": ["icf/cmd"],  # one family in four folders
    "icf/cmd/log": ["icf/cmd"],
    "icf/cmd/sym": ["icf/cmd"],
    "icf/cmd": ["icf/audit/rows", "icf/export", "icf/profile", "icf/trace", "icf/verify", "icf/cmd/log", "icf/cmd/perf", "icf/cmd/sym"],
}
FRONT = {
    "dwarf/rewrite/rewrite",
    "dwarf/rewrite/line/line",
    "dwarf/rewrite/lists/lists",
    "dwarf/rewrite/unwind/frame",
    "dwarf/rewrite/vtable/vtable",
    "dwarf/symbolize/symbolize",
    "dwarf/symbolize/file",
    "dwarf/stack/callchain",
    "icf/infer/infer",
    "icf/verify/verify",
    "icf/verify/calls/calls",
    "icf/verify/debug/debug",
    "icf/verify/lines/lines",
    "icf/hash/hash",
    "icf/audit/audit",
    "icf/audit/product/product",
    "icf/profile/profile",
    "icf/export/export",
    "icf/trace/unwind_dwfl",
    "icf/cmd/log/log",
    "icf/cmd/perf/perf",
}


# The fold and the verifier each have a model of instructions.  The models are made separately, so that they share no mistake.
# An architecture's table (NAME.c) holds both.
APART = [("elfrw/arch/effect.h", r"icf/verify/|elfrw/arch/(judge\.h|\w+_judge\.c)"),
         ("elfrw/arch/judge.h", r"(dwarf|icf)/(?!verify/)|elfrw/arch/(effect\.h|\w+_effect\.c)")]


def allowed(folder):
    """All folders that FOLDER may include."""
    seen, todo = {folder}, [folder]
    while todo:
        for f in BELOW.get(todo.pop(), []):
            if f not in seen:
                seen.add(f)
                todo.append(f)
    return seen


files = subprocess.check_output(["git", "ls-files", "elfrw/*.[ch]", "dwarf/*.[ch]", "icf/*.[ch]"], text=True).split()


def module(f):
    return f if f[:-2] in FRONT or f.endswith("/state.h") else f[:-2]


bad = 0
arrows = collections.defaultdict(dict)  # module -> module -> file
for f in files:
    for line in open(f, encoding="utf-8"):
        m = re.match(r'#include "([^"]+\.h)"', line)
        if not m:
            continue
        to, here = m.group(1), os.path.dirname(f)
        if os.path.dirname(to) not in allowed(here):
            print("%s may not include %s" % (f, to))
            bad = 1
        if to.endswith("/state.h") and not here.startswith(os.path.dirname(to)):
            print("%s includes %s, which is its folder's own" % (f, to))
            bad = 1
        for apart, who in APART:
            if to == apart and re.match(who, f):
                print("%s may not include %s: the fold's and the verifier's instructions are apart" % (f, to))
                bad = 1
        if module(to) != module(f):
            arrows[module(f)].setdefault(module(to), f)

# Tarjan's strongly connected components, without recursion.
index, low, on, stack, order = {}, {}, set(), [], []
circles = []
for root in sorted(arrows):
    if root in index:
        continue
    work = [(root, iter(sorted(arrows[root])))]
    index[root] = low[root] = len(index)
    stack.append(root)
    on.add(root)
    while work:
        v, it = work[-1]
        for w in it:
            if w not in index:
                index[w] = low[w] = len(index)
                stack.append(w)
                on.add(w)
                work.append((w, iter(sorted(arrows.get(w, {})))))
                break
            if w in on:
                low[v] = min(low[v], index[w])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[v])
            if low[v] == index[v]:
                c = []
                while True:
                    w = stack.pop()
                    on.discard(w)
                    c.append(w)
                    if w == v:
                        break
                if len(c) > 1:
                    circles.append(sorted(c))
for c in circles:
    print("circle: " + ", ".join(c))
    bad = 1
if "--families" in sys.argv:
    count = collections.Counter((os.path.dirname(a), os.path.dirname(b)) for a in arrows for b in arrows[a])
    for (a, b), n in sorted(count.items()):
        if a != b:
            print("%4d %s -> %s" % (n, a, b))
sys.exit(bad)
