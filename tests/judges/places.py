#!/usr/bin/env python3
"""places.py [-n N] [--seed S] [--tool TOOL]... [--show K] IN OUT MAP

Takes N random places (a function of IN's symbol table, an offset in it) and asks a symbolizer about each: what it says of
the place in OUT must be what it says, of IN, about the same offset of the function whose copy was kept.  TOOL is
llvm-symbolizer (the default), addr2line or eu-addr2line, each with inlined frames; a path or a version in the name is
fine.  At a function's first byte, where no debug information tells, the name of a function folded into it is right, too:
addr2line takes symbols without a size for one byte long, and eu-addr2line any global one before a local one, also where lines are
known but no DIE has the code, and for "inlined in".  Where several units of IN have lines for one address, addr2line may take those
of another file, wherever the unit is: what llvm-symbolizer says of IN is right there, too.  MAP is what icfold --map=FILE wrote.
Exit code: 0 none wrong, 1 some, 2 it could not be judged."""
import argparse
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mapfile  # noqa: E402


def ask(tool, path, addresses):
    """One text for each address."""
    if not addresses:
        return []
    stdin = "".join("%#x\n" % a for a in addresses)
    if "symbolizer" in os.path.basename(tool):
        cmd = [tool, "-i", "--obj=" + path]
        text = subprocess.run(cmd, input=stdin, capture_output=True, text=True, check=True).stdout
        ret = text.rstrip("\n").split("\n\n")
    else:
        cmd = [tool, "-i", "-f", "-a", "-e", path]
        # eu-addr2line's exit code says that the last address had no line.
        text = subprocess.run(cmd, input=stdin, capture_output=True, text=True).stdout
        ret, block = [], None
        for line in text.splitlines():
            if line.startswith("0x") and " " not in line:
                block = []
                ret.append(block)
            else:
                block.append(line)
        ret = ["\n".join(b) for b in ret]
    if len(ret) != len(addresses):
        sys.exit("places.py: %s gave %d answers to %d questions" % (tool, len(ret), len(addresses)))
    return ret


def namesakes(m, place, want, have):
    """Where in IN functions begin that were folded into the one of PLACE, its first byte, and have the name in HAVE, when
    WANT knows no line."""
    va, u = place
    if va != u.old or "??:" not in want.splitlines()[-1]:
        return []
    name = have.splitlines()[0]
    units = ((a, m.find(a)) for a, _, n, _ in m.in_symbols if n == name)
    return [a for a, x in units if x is not None and x.old == a and x.kept is u.kept]


def renamed(m, place, want, have):
    """Does HAVE, eu-addr2line's answer for a first byte, differ from WANT in the name alone, which is one folded into the same place?"""
    va, u = place
    w, h = want.splitlines(), have.splitlines()
    (inside, _, _), (more, _, name) = w[0].rpartition(" in "), h[0].rpartition(" in ")
    return va == u.old and w[1:] == h[1:] and inside == more and any(
        x is not None and x.old == v and x.kept is u.kept for x, v in ((m.find(v), v) for v, _, n, _ in m.in_symbols if n == name))


def lines_of(text):
    """FILE:LINE of each frame."""
    return [":".join(line.split(" (")[0].split(":")[:2]) for line in text.splitlines()[1::2]]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-n", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--tool", action="append")
    ap.add_argument("--show", type=int, default=5)
    ap.add_argument("inp", metavar="IN")
    ap.add_argument("out", metavar="OUT")
    ap.add_argument("map", metavar="MAP")
    a = ap.parse_args()
    m = mapfile.Map(a.map, a.inp, a.out)
    code = mapfile.exec_sections(a.inp)
    functions = sorted({(v, s) for v, s, _, _ in m.in_symbols if s and any(lo <= v < hi for lo, hi, _ in code)})
    if not functions or not m.unit:
        sys.stderr.write("places.py: no function symbols or no map\n")
        sys.exit(2)
    rnd = random.Random(a.seed)
    places = []
    while len(places) < a.n:
        v, s = rnd.choice(functions)
        va = v + rnd.randrange(s)
        u = m.find(va)
        if u:
            places.append((va, u))
    bad = 0
    for tool in a.tool or ["llvm-symbolizer"]:
        want = ask(tool, a.inp, [u.kept.old + (va - u.old) for va, u in places])
        have = ask(tool, a.out, [u.new + (va - u.old) for va, u in places])
        wrong = [i for i in range(len(places)) if want[i] != have[i]]
        # If the files do not tell which of several functions was kept, each is right.
        more = [(i, r.old + places[i][0] - places[i][1].old) for i in wrong for r in places[i][1].kept.rivals]
        right = {i for (i, _), text in zip(more, ask(tool, a.inp, [va for _, va in more])) if text == have[i]}
        wrong = [i for i in wrong if i not in right]
        more = [(i, x) for i in wrong for x in namesakes(m, places[i], want[i], have[i])]
        right = {i for (i, _), text in zip(more, ask(tool, a.inp, [x for _, x in more])) if text == have[i]}
        wrong = [i for i in wrong if i not in right]
        if os.path.basename(tool).startswith("eu-"):
            wrong = [i for i in wrong if not renamed(m, places[i], want[i], have[i])]
        elif os.path.basename(tool).startswith("addr2line") and wrong and shutil.which("llvm-symbolizer"):
            more = ask("llvm-symbolizer", a.inp, [places[i][1].kept.old + (places[i][0] - places[i][1].old) for i in wrong])
            wrong = [i for i, text in zip(wrong, more)
                     if want[i].splitlines()[::2] != have[i].splitlines()[::2] or lines_of(text) != lines_of(have[i])]
        folded = sum(1 for va, u in places if u.kept is not u)
        print("%s: %d places, %d of them in folded functions, %d wrong (%.2f %%)" %
              (os.path.basename(tool), len(places), folded, len(wrong), 100.0 * len(wrong) / len(places)))
        for i in wrong[:a.show]:
            va, u = places[i]
            print("  %#x (%s + %#x) is %#x in the output, kept: %s" % (va, u.name, va - u.old, u.new + va - u.old, u.kept.name))
            print("    expected: " + want[i].replace("\n", " | "))
            print("    output:   " + have[i].replace("\n", " | "))
        bad += len(wrong)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
