#!/usr/bin/env python3
"""gen_shapes.py: tables of distances to functions, one in each shape that icfold believes (icf/infer/run/run.c).

    gen_shapes.py ICFOLD FOLDER PREFIX...

For each PREFIX of the binutils ("-": none; "aarch64-linux-gnu-"), makes a program with a table of each shape: size and unit of
the words, and what they count from.  No code reads a table; the only sign of it is that its words lead to functions.  Each
table has ten functions of its own, at places that are random, so a shape that is not seen leaves most of them unpinned.  Most
functions of no table must not be pinned: to a few of them words lead by chance.  Prints a result for each shape."""
import json
import os
import random
import struct
import subprocess
import sys

COUNT = 10  # functions of a table; more than any shape needs
FREE = 40  # functions of no table
GAP = 1024  # zeros between tables
NEAR = "near_not_understood"  # why a pinned function stays


def shapes():
    """Yields (name, size, shift, what the words count from, bytes behind that)."""
    for base, away in ("place", 0), ("place", 2), ("name", 0), ("name", 8):
        yield f"{base}+{away}/2x1", 2, 0, base, away
    for size in 4, 8:
        for shift in range(5):
            for base, away in ("place", 0), ("place", size), ("name", 0), ("name", 8), ("got", 0):
                # Sections ".got" are aligned to 8 bytes.
                if away % (1 << shift) == 0 and (base, shift) != ("got", 4):
                    yield f"{base}+{away}/{size}x{1 << shift}", size, shift, base, away
        yield f"record-24/{size}", size, 0, "place", -24
        yield f"record+40/{size}", size, 0, "place", 40


def step(size, shift, away):
    """Bytes from one word to the next: a multiple of the unit, and no less than a record whose edge the words count from."""
    return max(size, 1 << shift) if away in (0, size, 8) else 48


SHAPES = list(shapes())
CODE = {
    "x86": ("lea {0}(%rdi), %eax\n ret\n", "lea {0}(%rip), %rax\n mov %rax, (%rdi)\n", "mov f0_0@GOTPCREL(%rip), %rax\n"),
    "a64": ("mov w0, {0}\n ret\n", "adrp x0, {0}\n add x0, x0, :lo12:{0}\n str x0, [x1]\n",
            "adrp x0, :got:f0_0\n ldr x0, [x0, :got_lo12:f0_0]\n"),
}


def source(arch):
    """The assembler.  Functions are of random size, so that they stand at random places; those that words of two bytes lead
    to come last, in front of the data."""
    body, use, got = CODE[arch]
    rnd = random.Random(7)
    out = [".section .rodata\n"]
    for i, (_, size, shift, _, away) in enumerate(SHAPES):
        out.append(f".p2align 4\nt{i}: .skip {COUNT * step(size, shift, away)}\n.skip {GAP}\n")
    functions = [f"f{i}_{k}" for i in range(len(SHAPES)) for k in range(COUNT)] + [f"free{k}" for k in range(FREE)]
    rnd.shuffle(functions)
    short = [f for f in functions if f[0] == "f" and f[1].isdigit() and SHAPES[int(f[1:].split("_")[0])][1] == 2]
    out.append(".text\n")
    long = [f for f in functions if f not in short]
    for n, f in enumerate(long + short):
        out.append(f".globl {f}\n.hidden {f}\n.type {f}, %function\n.p2align 4\n{f}: " + body.format(n + 1))
        out.append(f".rept {rnd.randrange(500 if n < len(long) else 16)}\nnop\n.endr\n.size {f}, . - {f}\n")
    out.append(".globl _start\n.type _start, %function\n_start:\n" + got)
    out += [use.format(f"t{i}") for i in range(len(SHAPES))]
    return "".join(out) + " ret\n.size _start, . - _start\n"


def tool(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def fill(path, prefix):
    """Writes the words: they cannot be written in assembler, since no relocation divides."""
    at = {w[2]: int(w[0], 16) for w in (line.split() for line in tool(prefix + "nm", path).splitlines()) if len(w) == 3}
    head = {w[1]: (int(w[3], 16), int(w[4], 16))
            for w in (line.replace("[ ", "[").split() for line in tool(prefix + "readelf", "-SW", path).splitlines())
            if len(w) > 5 and w[0][:1] == "[" and w[1][:1] == "."}
    va, off = head[".rodata"]
    with open(path, "r+b") as f:
        for i, (_, size, shift, base, away) in enumerate(SHAPES):
            for k in range(COUNT):
                place = at[f"t{i}"] + k * step(size, shift, away)
                start = {"place": place, "name": at[f"t{i}"], "got": head[".got"][0]}[base] + away
                word = at[f"f{i}_{k}"] - start
                assert word % (1 << shift) == 0, SHAPES[i]
                f.seek(place - va + off)
                f.write(struct.pack("<" + {2: "h", 4: "i", 8: "q"}[size], word >> shift))


def check(icfold, path, prefix):
    """Compares what icfold says of the functions."""
    tool(icfold, "audit", f"--rows={path}.rows", path)
    with open(path + ".rows", encoding="ascii") as f:
        reason = {r["name"]: r["reason"] for r in map(json.loads, f)}
    wrong = [s[0] for i, s in enumerate(SHAPES) if any(reason[f"f{i}_{k}"] != NEAR for k in range(COUNT))]
    if sum(reason[f"free{k}"] == NEAR for k in range(FREE)) > FREE / 4:
        wrong.append("free")
    for name in [s[0] for s in SHAPES] + ["free"]:
        print(f"not ok shapes/{prefix}{name}: {'pinned' if name == 'free' else 'not pinned'}" if name in wrong
              else f"ok shapes/{prefix}{name}")


def main():
    icfold, folder, *prefixes = sys.argv[1:]
    for prefix in prefixes:
        prefix = "" if prefix == "-" else prefix
        base = os.path.join(folder, prefix + "shapes")
        with open(base + ".s", "w", encoding="ascii") as f:
            f.write(source("a64" if prefix else "x86"))
        tool(prefix + "as", base + ".s", "-o", base + ".o")
        tool(prefix + "ld", "-pie", "--no-dynamic-linker", "--no-relax", base + ".o", "-o", base)
        fill(base, prefix)
        check(icfold, base, prefix)


main()
