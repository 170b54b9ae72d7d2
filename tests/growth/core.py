#!/usr/bin/env python3
"""core.py: a core file of a static program that need not have run.

core.py PROGRAM ADDRESSES CORE [threads|stack|maps N]: a thread at each of 16 addresses out of the file ADDRESSES.  With `threads`:
N threads; `stack`: one thread with a stack of N frames; `maps`: N further mapped pages.  The functions must have no frame but the
return address.
"""
import os
import struct
import sys

STACK, PAGE = 0x7ffd00000000, 4096


def note(kind, data):
    return struct.pack("<III", 5, len(data), kind) + b"CORE\0\0\0\0" + data + bytes(-len(data) % 4)


def thread(tid, pc, sp):
    regs = [0] * 27
    regs[16], regs[17], regs[18], regs[19], regs[20] = pc, 0x33, 0x202, sp, 0x2b
    return note(1, struct.pack("<iiiHHQQiiii", 11, 0, 0, 11, 0, 0, 0, tid, 1, 1, 1) + bytes(64) + struct.pack("<27Q", *regs) + bytes(8))


def make(program, addresses, core, what=None, n=0):
    with open(program, "rb") as f:
        data = f.read()
    entry, phoff = struct.unpack_from("<QQ", data, 24)
    phnum = struct.unpack_from("<H", data, 56)[0]
    loads, headers = [], 0
    for i in range(phnum):
        kind, flags, off, va, _, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i)
        if kind == 1:
            start, end = va & -PAGE, -(-(va + memsz) & -PAGE)
            held = bytes(va - start) + data[off:off + filesz]
            if off >= va - start:
                held = data[off - (va - start):off + filesz]
            loads.append((start, flags, held + bytes(end - start - len(held)), off & -PAGE))
            if not off:
                headers = va + phoff
    with open(addresses) as f:
        at = [int(line, 16) for line in f]
    pcs = [at[i * len(at) // 16] for i in range(16)]
    stack = struct.pack("<Q", entry)
    if what == "stack":
        pcs = pcs[:1]
        stack = struct.pack("<%dQ" % (n + 1), *[at[i % 8] + 1 for i in range(n)], 0)
    if what == "threads":
        pcs = [at[i % len(at)] for i in range(n)]
    notes = note(3, struct.pack("<4B4xQ6i", 0, 0, 0, 0, 0, 0, 0, 100, 1, 100, 100) + bytes(96))
    notes += b"".join(thread(100 + i, pc, STACK) for i, pc in enumerate(pcs))
    notes += note(6, struct.pack("<10Q", 3, headers, 4, 56, 5, phnum, 9, entry, 0, 0))
    path = os.path.abspath(program).encode() + b"\0"
    notes += note(0x46494c45, struct.pack("<QQ", len(loads), PAGE) + b"".join(
        struct.pack("<QQQ", va, va + len(held), off // PAGE) for va, _, held, off in loads) + path * len(loads))
    for k in range(n if what == "maps" else 0):
        loads.append((0x10000000000 + 2 * PAGE * k, 6, bytes(16), 0))
    loads.append((STACK, 6, stack + bytes(-len(stack) % PAGE), 0))
    # More segments than fit in e_phnum are counted in the first section header.
    many, at = len(loads) + 1 >= 0xffff, 64 + 56 * (len(loads) + 1)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    out = [struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, at if many else 0, 0, 64, 56, 0xffff if many else len(loads) + 1, 64, many, 0)]
    at += 64 * many
    out.append(struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 4))
    at += len(notes)
    for va, flags, held, _ in loads:
        at += -at % 16
        out.append(struct.pack("<IIQQQQQQ", 1, flags, at, va, 0, len(held), len(held), PAGE))
        at += len(held)
    if many:
        out.append(struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, len(loads) + 1, 0, 0))
    with open(core, "wb") as f:
        f.write(ident + b"".join(out) + notes)
        for _, _, held, _ in loads:
            f.write(bytes(-f.tell() % 16) + held)


if __name__ == "__main__":
    make(*sys.argv[1:5], int(sys.argv[5]) if len(sys.argv) > 5 else 0)
