#!/usr/bin/env python3
"""texts.py FOLDER: writes many.s, a program: many equal functions f, each of which may call many equal functions g.  With many.at, the symbols
of the folded program by nm, profiles and logs of it instead that once cost much more than their size lets expect.  Logs name the file many."""
import os
import struct
import sys

os.chdir(sys.argv[1])
FOLDER, N = os.getcwd(), 6000


def put(name, text):
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def func(name, body):
    return ".p2align 4,0x90\n.globl %s\n.type %s,@function\n%s: %s\n.size %s,.-%s\n" % (name, name, name, body, name, name)


if not os.path.exists("many.at"):
    put("many.s", ".text\n" + func("_start", "movq ft(%rip),%rax\ncall *%rax\nret") + "".join(
        func("g%d" % i, "imull $3,%edi,%eax\naddl $17,%eax\nret") + func("f%d" % i, "call *gt(,%rdi,8)\naddl $7,%eax\nimull $5,%eax\nret") for i in range(N)) +
        ".data\ngt: " + "".join(".quad g%d\n" % i for i in range(N)) + "ft: " + "".join(".quad f%d\n" % i for i in range(N)))
    sys.exit()
with open("many.at") as symbols:
    at = {p[2]: int(p[0], 16) for p in map(str.split, symbols) if len(p) == 3}
f, g, site = at["f0"], at["g0"], at["f0"] + 7

# One line each: where a frame or a branch might begin, and does not.
put("no-frame", "prog 12 " + ": 1  " * 200000 + " (x)\n")
put("no-place", "prog 12 " + ": 1 a" * 200000 + " (/b) => c)\n")
put("no-branch", ("prog 12 1.0: 1 cycles: " + " 0x1(" * 190000 + ")\n") * 3)
put("no-record", ("prog 12 1.0: 0x1/0x2/P/-/-/0" + " 0x1(" * 190000 + "\n") * 3)
for name in ("no-frame", "no-place"):  # symbolize takes shorter lines
    put(name + "-short", ("prog 12 " + {"no-frame": ": 1  " * 48000 + " (x)\n", "no-place": ": 1 a" * 48000 + " (/b) => c)\n"}[name]) * 4)
put("no-end", "prog 12 1.0: 1 cycles:\n\t401110 g0+0x0 (/x/many)\n" + (" text" + "x" * 200000 + "\n") * 500)
put("inlined", "prog 12 1.0: 1 cycles:\n" + "\t401110 a (inlined)\n" * 200000)
put("files", "".join("prog 12 1.0: 1 cycles:  401110 foo+0x1 (/x/y%06d)\n" % i for i in range(100000)))


def spelled(i):
    return FOLDER + "/" + "./" * i + "many"


# One file by many names.
put("spelled", "".join("prog 12 1.0: 1 cycles:  %x g0+0x1 (%s)\n" % (g + 1, spelled(i)) for i in range(150)))
put("spelled.log", "".join("    #0 0x%x (%s+0x%x)\n\n" % (g + 1, spelled(i), g + 1 - 0x400000) for i in range(150)))
put("stack.log", "".join("    #%d 0x%x in %s (%s+0x%x)\n" % (i, g + 1, "x" * 4000, spelled(0), g + 1 - 0x400000) for i in range(15000)))


# Profiles that count calls by place.
head = b"gmon" + struct.pack("<I", 1) + bytes(12)


def hist(lo, hi, counts):
    return b"\0" + struct.pack("<QQI", lo, hi, len(counts)) + struct.pack("<I", 100) + b"seconds".ljust(15, b"\0") + b"s" + struct.pack("<%dH" % len(counts), *counts)


def arc(where, to):
    return b"\1" + struct.pack("<QQI", where, to, 10)


put("pairs.gmon", head + hist(f, f + 64, [1] * 16) + arc(16, f) + arc(site, g))
put("pointed.gmon", head + hist(f, f + 64, [1] * 16) + b"".join(arc(16 * i, f) for i in range(1000)))
put("full.gmon", head + hist(g, g + 4, [65535]) * 3000)
put("all.gmon", head + hist(0, (1 << 64) - 1, [1]))
put("names.callgrind", "# callgrind format\nversion: 1\ncreator: callgrind\npositions: instr\nevents: Ir\n\nob=(1) /x/many\nfl=(1) a.c\n" + "".join(
    "fn=(%d) x%d\n0x%x 5\ncfn=(%d) y%d\ncalls=1 0x%x\n0x%x 7\n" % (2 * i + 1, i, f, 2 * i + 2, i, g, f) for i in range(3000)))
put("large.callgrind", "# callgrind format\nversion: 1\ncreator: callgrind\npositions: instr\nevents: Ir\n\nob=(1) /x/many\nfl=(1) a.c\nfn=(1) x\n" +
    ("cfn=(2) y\ncalls=%d 0x%x\n0x%x %d\n" % ((1 << 64) - 1, g, f, (1 << 64) - 1)) * 3)
