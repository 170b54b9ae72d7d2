#!/usr/bin/env python3
"""huge.py: programs at the limits of the format, written without an assembler and a linker, which would take minutes.

huge.py OUT functions=N [size=BYTES] [values=N] [sections=N] [empty=N] [symbols=N] [relocs=0]

N functions of BYTES bytes each (default 64) one after the other; function K returns a number that depends on K % VALUES (default:
half of the functions, so that they come in pairs).  They are in .text, or in SECTIONS sections.  EMPTY: more sections that are not
loaded.  SYMBOLS: more names for the functions.  The program calls a few functions, and exits with 0 if their results are right.
Columns of tables are made at once: a table of 2^24 symbols takes seconds."""
import struct
import sys
from array import array

HEAD = 1024  # bytes before the first function: _start and sink
BASE = 0x401000
HEX = b"0123456789abcdef"
LORESERVE = 0xff00


def function(size):
    """The code of one function, and what it makes of its number."""
    code = bytearray.fromhex("4883ec08" "6690" "c7c000000000" "0f1f00" "e800000000" "4883c408" "69c04d000000")
    added = 0
    while size - len(code) > 5:
        added += 0x1003
        code += b"\x05" + struct.pack("<I", 0x1003)
    code += b"\x90" * (size - len(code) - 1) + b"\xc3"
    return bytes(code), lambda number: ((number + 1) * 77 + added) & 0xffffffff


def text_of(n, size, values):
    code, result = function(size)
    text = array("I", code) * n
    step = size // 4
    text[2::step] = array("I", range(values)) * (n // values) + array("I", range(n % values))
    first = BASE + HEAD + 20
    text[4::step] = array("I", array("i", range(BASE + HEAD - 4 - first, BASE + HEAD - 4 - first - n * size, -size)).tobytes())
    head = bytearray()
    bad = []
    calls = []
    for k in sorted({0, 1, n // 3, n // 2, n - 1}):
        calls.append((len(head) + 1, k))
        head += b"\xe8" + struct.pack("<i", HEAD + k * size - len(head) - 5)
        head += b"\x3d" + struct.pack("<I", result(k % values)) + b"\x0f\x85"
        bad.append(len(head))
        head += bytes(4)
    head += bytes.fromhex("31ff" "b83c000000" "0f05")
    for at in bad:
        struct.pack_into("<i", head, at, len(head) - at - 4)
    head += bytes.fromhex("bf01000000" "b83c000000" "0f05" "f4")
    entry = len(head)
    head += b"\xcc" * (HEAD - 4 - len(head)) + bytes.fromhex("8d4001c3")
    return head, entry, text, calls


def names(letter, n):
    """A string table of LETTER and seven digits for each number."""
    out = bytearray(letter + b"0000000\0") * n
    for digit in range(7):
        each = 16 ** digit
        row = b"".join(bytes([c]) * each for c in HEX)
        out[7 - digit::9] = (row * (n // len(row) + 1))[:n]
    return out


class Section:
    def __init__(self, name, kind, flags, data, **more):
        self.name, self.kind, self.flags, self.data = name, kind, flags, data
        self.addr, self.link, self.info = more.get("addr", 0), more.get("link", 0), more.get("info", 0)
        self.align, self.entsize = more.get("align", 1), more.get("entsize", 0)


def symbols(n, size, more, entry, where):
    """The symbol table, its strings and, if there are too many sections for it, their numbers.  WHERE: the section of each function."""
    count = 3 + n + more
    table, index = array("Q", bytes(24 * count)), array("I", bytes(4 * count))
    strings = b"\0_start\0sink\0" + names(b"f", n) + names(b"a", more)
    table[3:9] = array("Q", [1 | 0x12 << 32, BASE, entry, 8 | 0x12 << 32, BASE + HEAD - 4, 4])
    values = array("Q", range(BASE + HEAD, BASE + HEAD + n * size, size))
    index[1:3] = array("I", [1, 1])
    for first, k in ((3, n), (3 + n, more)):
        for row in range(first, first + k, n):
            m = min(n, first + k - row)
            name = 13 + 9 * (row - 3) | 0x12 << 32
            table[3 * row:3 * (row + m):3] = array("Q", range(name, name + 9 * m, 9))
            table[3 * row + 1:3 * (row + m):3] = values[:m]
            table[3 * row + 2:3 * (row + m):3] = array("Q", [size]) * m
            index[row:row + m] = where[:m]
    short = memoryview(table).cast("B").cast("H")
    short[3::12] = memoryview(array("H", [i if i < LORESERVE else 0xffff for i in index] if max(index) >= LORESERVE else index))
    return table, index if max(index) >= LORESERVE else None, strings


def write(path, sections, loaded):
    """SECTIONS but for the first one; those before LOADED follow each other in memory."""
    shstr, offset, headers = bytearray(b"\0"), 0x1000, bytearray()
    sections.append(Section(".shstrtab", 3, 0, b""))
    for s in sections:
        s.name_at = len(shstr)
        shstr += s.name.encode() + b"\0"
    sections[-1].data = shstr
    count, last = len(sections) + 1, len(sections)
    many = (0 if count < LORESERVE else count, 0 if last < LORESERVE else last)
    headers += struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, many[0], many[1], 0, 0, 0)
    with open(path, "wb") as f:
        f.seek(offset)
        code = 0
        for i, s in enumerate(sections):
            pad = -offset % (s.align if i >= loaded else 1)
            size = memoryview(s.data).nbytes
            headers += struct.pack("<IIQQQQIIQQ", s.name_at, s.kind, s.flags, s.addr, offset + pad, size, s.link, s.info, s.align, s.entsize)
            f.write(bytes(pad))
            f.write(s.data)
            offset += pad + size
            code += size if i < loaded else 0
        f.write(bytes(-offset % 8))
        table = offset + -offset % 8
        f.write(headers)
        f.seek(0)
        f.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE, 64, table, 0, 64, 56, 2, 64,
                                                          0 if many[0] else count, 0xffff if many[1] else last))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, 0x1000, BASE, BASE, code, code, 0x1000))
        f.write(struct.pack("<IIQQQQQQ", 0x6474e551, 6, 0, 0, 0, 0, 0, 16))


def main():
    out, option = sys.argv[1], dict(a.split("=") for a in sys.argv[2:])
    n, size = int(option["functions"]), int(option.get("size", 64))
    values, parts = int(option.get("values", n // 2)), int(option.get("sections", 0))
    head, entry, text, calls = text_of(n, size, values)
    each = n if not parts else (n + parts - 1) // parts
    places = memoryview(text).cast("B")
    ranges = [(k, min(k + each, n)) for k in range(0, n, each)] if parts else []
    sections = [Section(".text", 1, 6, head if parts else bytes(head) + places, addr=BASE, align=16)]
    for lo, hi in ranges:
        sections.append(Section(f".text.{lo}", 1, 6, places[lo * size:hi * size], addr=BASE + HEAD + lo * size, align=16))
    loaded = len(sections)
    relocs = []
    if option.get("relocs") != "0":
        first = struct.pack(f"<{3 * len(calls)}Q", *(x for at, k in calls for x in (BASE + at, 4 | (3 + k) << 32, (1 << 64) - 4)))
        sites = BASE + HEAD + 16
        for i, (lo, hi) in enumerate(ranges or [(0, n)]):
            r = array("Q", [0, 4 | 2 << 32, (1 << 64) - 4]) * (hi - lo)
            r[0::3] = array("Q", range(sites + lo * size, sites + hi * size, size))
            relocs.append((i + 1 if parts else 0, bytes(r) if parts else first + bytes(r)))
        if parts:
            relocs.insert(0, (0, first))
    empty = [Section(f".note.{k}", 1, 0, b"empty") for k in range(int(option.get("empty", 0)))]
    table = loaded + len(relocs) + len(empty) + 1
    for i, data in relocs:
        sections.append(Section(".rela" + sections[i].name, 4, 0x40, data, link=table, info=i + 1, align=8, entsize=24))
    sections += empty
    where = array("I", [1]) * n if not parts else array("I", (2 + k // each for k in range(n)))
    symtab, index, strings = symbols(n, size, int(option.get("symbols", 0)), entry, where)
    sections.append(Section(".symtab", 2, 0, symtab, link=table + 1, info=1, align=8, entsize=24))
    sections.append(Section(".strtab", 3, 0, strings))
    if index:
        sections.append(Section(".symtab_shndx", 18, 0, index, link=table, align=4, entsize=4))
    write(out, sections, loaded)


main()
