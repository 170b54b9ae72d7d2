#!/usr/bin/env python3
"""block.py PROGRAM BYTES: makes the block of zeros in the first unit of .debug_info (block.s, 64-bit DWARF) larger by BYTES: a hole in the
file.  The units behind it move: what states their places (kept relocations, .debug_aranges) is corrected, and so is what comes after
.debug_info in the file."""
import struct
import sys

ULEB = 10  # bytes of the block's length

path, more = sys.argv[1], int(sys.argv[2])
assert more % 4096 == 0
with open(path, "rb") as f:
    old = bytearray(f.read())
table, count, names = struct.unpack_from("<Q", old, 40)[0], *struct.unpack_from("<HH", old, 60)
rows = [list(struct.unpack_from("<IIQQQQIIQQ", old, table + 64 * i)) for i in range(count)]
strings = rows[names][4]
name = [old[strings + r[0]:old.index(0, strings + r[0])].decode() for r in rows]
info, aranges = name.index(".debug_info"), name.index(".debug_aranges")


def uleb(value):
    digits = [value >> 7 * i & 0x7f | 0x80 for i in range(ULEB)]
    digits[-1] &= 0x7f
    return bytes(digits)


# The unit: its length, and the block's, which is its last attribute.
start = rows[info][4]
mark, length = struct.unpack_from("<IQ", old, start)
assert mark == 0xffffffff and old[start + 12] == 5
end = start + 12 + length
block = old.index(b"HERE\0", start, end) + 5
had = end - block - ULEB
assert uleb(had) == old[block:block + ULEB]
struct.pack_into("<Q", old, start + 4, length + more)
old[block:block + ULEB] = uleb(had + more)
behind = end - start  # what is from here on in .debug_info moves

at, stop = rows[aranges][4], rows[aranges][4] + rows[aranges][5]
while at < stop:
    mark, length, version, unit = struct.unpack_from("<IQHQ", old, at)
    assert mark == 0xffffffff and version == 2 and unit >= behind
    struct.pack_into("<Q", old, at + 14, unit + more)
    at += 12 + length
for row, text in zip(rows, name):
    if row[1] != 4 or not text.startswith(".rela.debug"):
        continue
    symbols = rows[row[6]][4]
    for at in range(row[4], row[4] + row[5], 24):
        place, what, addend = struct.unpack_from("<QQq", old, at)
        section, kind = struct.unpack_from("<H", old, symbols + 24 * (what >> 32) + 6)[0], old[symbols + 24 * (what >> 32) + 4] & 15
        if row[7] == info and place >= behind:
            place += more
        if section == info and kind == 3:
            assert addend >= behind
            addend += more
        struct.pack_into("<QQq", old, at, place, what, addend)
rows[info][5] += more
for i, row in enumerate(rows):
    if i != info and row[4] >= end:
        row[4] += more
struct.pack_into("<Q", old, 40, table + more)
for i, row in enumerate(rows):
    struct.pack_into("<IIQQQQIIQQ", old, table + 64 * i, *row)
with open(path, "r+b") as f:
    f.write(old[:end])
    f.seek(end + more)
    f.write(old[end:])
    # What was behind the block is a hole now.
    f.seek(end)
    f.write(bytes(min(more, len(old) - end)))
