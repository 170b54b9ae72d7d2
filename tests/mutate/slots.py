#!/usr/bin/env python3
"""slots.py ICFOLD IN OUT MUTANT EVERY: OUT is IN without its unused functions and virtual tables.

Breaks one word of OUT's tables at a time: a slot that leads to code is emptied, in the file or in
its dynamic relocation, or the relocation is taken out; a word of a lost table gets its old value
back, or a live function.  `verify --gc-functions` has to object each time.  Every EVERY-th is tried.
Prints how many were tried, then those that survived."""
import os
import struct
import subprocess
import sys

RELATIVE = 8


def sections(data):
    start = struct.unpack_from("<Q", data, 40)[0]
    count, names = struct.unpack_from("<HH", data, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]
    at = heads[names][4]
    return {data[at + h[0]:data.index(b"\0", at + h[0])].decode(): h for h in heads}


def mutants(old, new):
    """Pairs: what is done, and the place in the file with the new word."""
    heads, was = sections(new), sections(old)
    low, high = heads[".text"][3], heads[".text"][3] + heads[".text"][5]
    tables = heads.get(".data.rel.ro", (0,) * 10)
    rela = heads.get(".rela.dyn", (0,) * 10)
    for at in range(rela[4], rela[4] + rela[5], 24):
        place, kind, addend = struct.unpack_from("<QQq", new, at)
        if kind == RELATIVE and low <= addend < high and 0 <= place - tables[3] < tables[5]:
            yield f"addend of {place:#x}", at + 16, 0
            yield f"relocation of {place:#x}", at + 8, 0
    for name in ".data.rel.ro", ".rodata":
        head = heads.get(name, (0,) * 10)
        for off in range(0, head[5] - 7, 8):
            va, at = head[3] + off, head[4] + off
            word = struct.unpack_from("<Q", new, at)[0]
            before = struct.unpack_from("<Q", old, was[name][4] + off)[0]
            if low <= word < high:
                yield f"word at {va:#x}", at, 0
            if before and not word:
                yield f"lost word at {va:#x}", at, before
                yield f"lost word at {va:#x}, live", at, low + 64


def main():
    icfold, source, out, mutant, every = sys.argv[1:]
    with open(source, "rb") as file:
        old = file.read()
    with open(out, "rb") as file:
        new = file.read()
    tried, survived = 0, []
    for what, at, value in list(mutants(old, new))[:: int(every)]:
        with open(mutant, "wb") as file:
            file.write(new[:at] + struct.pack("<Q", value) + new[at + 8:])
        os.chmod(mutant, 0o755)
        run = subprocess.run([icfold, "verify", "--gc-functions", source, mutant],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        tried += 1
        if run.returncode != 1:
            survived.append(what)
    print(tried, *survived, sep=", ")


main()
