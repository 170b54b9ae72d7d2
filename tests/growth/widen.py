#!/usr/bin/env python3
"""widen.py PROGRAM SECTION BYTES: makes a section of the ELF-64 program, which is not loaded, larger by BYTES zeros: a hole in the file.
What comes after it in the file moves."""
import os
import struct
import sys

path, wanted, more = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(path, "r+b") as f:
    old = f.read()
    table, count, names = struct.unpack_from("<Q", old, 40)[0], *struct.unpack_from("<HH", old, 60)
    headers = bytearray(old[table:table + 64 * count])
    strings = struct.unpack_from("<Q", headers, 64 * names + 24)[0]

    def name_of(at):
        start = strings + struct.unpack_from("<I", headers, at)[0]
        return old[start:old.index(0, start)].decode()
    found = next((at for at in range(0, len(headers), 64) if name_of(at) == wanted), None)
    if found is None:
        sys.exit(f"no {wanted}")
    offset, size = struct.unpack_from("<QQ", headers, found + 24)
    shift = more + 63 & ~63
    struct.pack_into("<Q", headers, found + 32, size + more)
    for at in range(0, len(headers), 64):
        place = struct.unpack_from("<Q", headers, at + 24)[0]
        if at != found and place >= offset + size:
            struct.pack_into("<Q", headers, at + 24, place + shift)
    f.seek(offset + size + shift)
    f.write(old[offset + size:])
    f.seek(offset + size)
    f.write(bytes(min(shift, len(old) - offset - size)))
    f.seek(table + shift)
    f.write(headers)
    f.seek(40)
    f.write(struct.pack("<Q", table + shift))
