#!/usr/bin/env python3
"""seeds.py: cuts programs into seeds for the harnesses.

seeds.py FUZZ_C OUT FILE...: writes OUT/HARNESS/NAME; the ids of sections come from the table in FUZZ_C.  See fuzz.h for the
containers.  A file that has FILE.folded beside it gives seeds for the readers of folded files, too.  The texts
regress/HARNESS-NAME.txt beside this file become OUT/HARNESS/regress-NAME: lines "OFFSET: BYTES" in hexadecimal, what no line
gives being 0; "size: N"; lines that begin with # say what it was.
"""
import os
import re
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mutate"))
import elfbytes

NAMES = re.findall(r'"(\.[a-z_.]+)"', open(sys.argv[1]).read().split("fuzz_section_names[] = {")[1].split("}")[0])
OUT = sys.argv[2]
SEEN = set()


def save(harness, name, data):
    if not data or len(data) > 60000 or (harness, data) in SEEN:
        return
    SEEN.add((harness, data))
    os.makedirs(os.path.join(OUT, harness), exist_ok=True)
    with open(os.path.join(OUT, harness, name), "wb") as f:
        f.write(data)


def container(elf, names, flags=0, change=lambda d: d):
    ret = b""
    for s in elf.sections:
        plain = "." + s.name[2:] if s.name.startswith(".zdebug") else s.name
        if plain in NAMES and (not names or plain in names) and s.in_file():
            d = change(elf.bytes_of(s))
            if len(d) < 0x10000:
                ret += bytes([NAMES.index(plain) | flags | (0x40 if plain != s.name else 0) | (0x80 if s.flags & 0x800 else 0)])
                ret += struct.pack("<H", len(d)) + d
    return ret


def deflate(kind):
    return lambda d: struct.pack("<IIQQ", 1, 0, len(d), 1) + zlib.compress(d) if kind else b"ZLIB" + struct.pack(">Q", len(d)) + zlib.compress(d)


def seeds(name, elf):
    strings = [".debug_str", ".debug_line_str", ".debug_str_offsets"]
    packed = any(s.flags & 0x800 or s.name.startswith(".zdebug") for s in elf.sections)
    frames = [".eh_frame", ".gcc_except_table", ".data.rel.ro"]
    whole = container(elf, [n for n in NAMES if n not in frames])
    if packed:
        save("compressed", name, whole)
        save("symbolize", name, elf.data)
        save("symbols", name, elf.data)
        return
    save("info", name, whole)
    save("indices", name, whole)
    save("line", name, container(elf, [".debug_line"] + strings))
    save("compressed", name + "-zlib", container(elf, [".debug_line", ".debug_abbrev", ".debug_str"], 0x80, deflate(1)))
    save("compressed", name + "-zdebug", container(elf, [".debug_line", ".debug_abbrev", ".debug_str"], 0x40, deflate(0)))
    lists = container(elf, [".debug_ranges", ".debug_rnglists", ".debug_loc", ".debug_loclists", ".debug_addr"])
    for flags in (0, 2, 4, 8, 32, 64 + 32):
        save("lists", "%s-%d" % (name, flags), lists and bytes([flags]) + lists)
    save("lsda", name, container(elf, frames))
    frame, debug_frame, hdr = (elf.section(n) for n in (".eh_frame", ".debug_frame", ".eh_frame_hdr"))
    if frame:
        for flags in (0, 8):
            save("cfi", "%s-%d" % (name, flags), bytes([flags]) + elf.bytes_of(frame))
    if debug_frame:
        save("cfi", name + "-debug", bytes([1]) + elf.bytes_of(debug_frame))
    text = elf.section(".text")
    save("x86", name, elf.bytes_of(text)[:2000])
    for p, size, at, form, die, unit in elfbytes.attributes(elf):
        if form in (0x18, 0x0a) and size > 1:
            info = elf.bytes_of(elf.section(".debug_info"))
            save("expr", "%s-%x" % (name, die), bytes([3]) + info[p + 1:p + size])
    save("calls", name, container(elf, [".debug_info", ".debug_abbrev", ".debug_dcall", ".debug_vcall"])
         if elf.section(".debug_dcall") or elf.section(".debug_vcall") else None)
    note = elf.section(".debug_icfold")
    if note:
        data = elf.bytes_of(note)
        save("note", name, zlib.decompress(data[24:]) if note.flags & 0x800 else data)
    save("elf", name, elf.data)
    save("symbolize", name, elf.data)
    save("symbols", name, elf.data)
    save("fold", name, elf.data)
    code = [s.addr + 4 * i for s in elf.sections if s.flags & 4 for i in range(16)][:31] or [0]
    save("library", name, bytes([len(name) * 37 & 255, len(code)]) + struct.pack("<%dI" % len(code), *code) + elf.data)
    if note:
        # A branch to each place, back, and on; a chain; and what a log shows of both.
        pairs = " ".join("0x%x/0x%x/P/-/-/0" % p for p in zip(code, code[5:]))
        chain = "p 7/7 1.0: 250000 cycles:u: \n" + "".join("\t%16x f+0x0 (\x01)\n" % a for a in code)
        mapped = "PERF_RECORD_MMAP2 7/7: [0x%x(0x9000) @ 0 08:01 1 0]: r-xp \x01\n" % (code[0] & ~0xfff)
        log = "".join("    #%d 0x%x  (\x01+0x%x) (BuildId: 00)\n" % (i, a, a) for i, a in enumerate(code)) + "\x01(+0x%x) [0x%x]\n" % (code[0], code[0])
        for how, text in ((0, mapped + " %x %s\n" % (code[0], pairs)), (1, "3\n %x %s\n" % (code[1], pairs)), (10, chain + pairs + "\n\n" + chain),
                          (19, " 0 %s\n" % pairs), (4, chain), (5, chain), (0x40, pairs), (0x80, chain), (6, chain), (7, log)):
            if how in (1, 7) or name in ("dwarf5.folded", "clang.folded"):
                save("profile", "%s-%d" % (name, how), bytes([how]) + struct.pack("<I", len(elf.data))[:3] + elf.data + text.encode())
        # The program's direct calls, as gprof's and callgrind's files show them: (where they are, where they lead).
        text = elf.section(".text")
        body = elf.bytes_of(text)
        calls = [(text.addr + i, text.addr + i + 5 + struct.unpack_from("<i", body, i + 1)[0]) for i in range(len(body) - 5) if body[i] == 0xe8]
        calls = [(a, b) for a, b in calls if text.addr <= b < text.addr + text.size][:24]
        start = text.addr & ~0xf
        gmon = b"gmon" + struct.pack("<I12x", 1) + struct.pack("<BQQII15sc64H", 0, start, start + 256, 64, 100, b"seconds", b"s", *range(64))
        gmon += b"".join(struct.pack("<BQQI", 1, a + 5, b, 3) for a, b in calls)
        grind = "# callgrind format\ncreator: callgrind\npositions: instr line\nevents: Ir Dr\nob=(1) \x01\nfl=(1) a.c\n"
        grind += "".join("fn=(%d) f%d\n0x%x 5 3 1\ncfn=(%d) f%d\ncalls=2 0x%x 7\n* * 9\njump=3 +4 +1\n* 6\n" % (i, i, a, i + 100, i + 100, b)
                         for i, (a, b) in enumerate(calls, 1))
        for how, data in ((8, gmon), (16, grind.encode())):
            save("profile", "%s-%d" % (name, how), bytes([how]) + struct.pack("<I", len(elf.data))[:3] + elf.data + data)


def changed(elf, *changes):
    data = bytearray(elf.data)
    for at, new in changes:
        data[at:at + len(new)] = new
    return bytes(data)


def known(name, first, second):
    """What once went wrong with whole files."""
    # All code is in sections that the program can name (".text" becomes "text"), and relocations are kept.
    renamed = [(s.header, elfbytes.put(elfbytes.get(first.data, s.header, 4) + 1, 4)) for s in first.sections if s.flags & 4]
    save("fold", "regress-named-code-" + name, changed(first, (9, b"\x40"), *renamed))
    for section in (".debug_vcall", ".debug_dcall", ".debug_line_str", ".debug_str"):
        # The last number of a call table goes on behind its end; a string never ends.
        s = second.section(section)
        if s and not s.flags & 0x800:
            broken = changed(second, (s.offset + s.size - 1, b"\x80" if section.endswith("call") else b"x"))
            save("verify", "regress-%s-%s" % (section[1:], name), struct.pack("<I", len(first.data) | 1 << 31) + first.data + broken)


for path in sys.argv[3:]:
    base = os.path.basename(path)
    first = elfbytes.Elf(path)
    seeds(base, first)
    if os.path.exists(path + ".folded"):
        second = elfbytes.Elf(path + ".folded")
        seeds(base + ".folded", second)
        if base in ("dwarf5", "clang"):
            known(base, first, second)
        for bits in (0, 1 << 31, 3 << 30):
            save("verify", "%s-%d" % (base, bits >> 30), struct.pack("<I", len(first.data) | bits) + first.data + second.data)
# Expressions that compilers hardly write: nested, typed, of every operator once.
for first_byte in (0, 3, 7, 15):
    save("expr", "nested-%d" % first_byte, bytes([first_byte, 0xa3, 10, 0xf3, 7, 0xa3, 4, 0x03, 1, 2, 3, 0x50, 0x9f, 0xa8, 5, 0x28, 0, 0]))
    save("expr", "all-%d" % first_byte, bytes([first_byte]) + b"".join(bytes([op] + [1] * 8) for op in range(3, 0xf9)))
for how, text in ((0, "0x1000\n1010 x\nmain+0x3\n\"a b\" 12\n\n"), (1, "0xffffffffffffffff\nCODE 0x10\n0x1234567890abcdef0\n"),
                  (2, "0x1000\n0x2000 vtable=0x3000\n\n4000, vtable=5000\n"), (3, "-q --icf=all 'a b' \"c\\\"d\" --keep-unique x @nothing\n"),
                  (4, "main\n# no\n  f0  \n\n"),
                  (132, "hot 60 38275.4: 250000 cpu-clock:ppp: \n\t   1188 walk<L>+0x28 (/tmp/hot)\n\tffffffff815f88d4 x+0xa ([kernel.kallsyms])\n\n"),
                  (192, "    #0 0x401136  (/bin/true+0x1136) (BuildId: 00ff)\n    #1 <null> <null> (true+0x3000)\n/bin/true(f(int)+0x12) [0x55d0]\n"
                        " > /bin/true(+0x3000) [0x3000]\nPC: @  0x0 (unknown)\n    @ 0x403000 main\n   4:     0x403000 - <unknown>\n"
                        "x[1]: segfault at 0 ip 000403000 sp 0 error 6 in true[3000,400000+9000]\n#0 0x1 n/a (/bin/true + 0x3000)\n"
                        "55d0000-55d9000 r-xp 00002000 fd:01 12  /bin/true\n")):
    save("text", "text-%d" % how, bytes([how]) + text.encode())
here = os.path.dirname(os.path.abspath(__file__))
mangled = ("_Z1fv", "_ZSt4swapISt6vectorIS0_IiSaIiEESaIS2_EEEvRT_S6_", "_ZZ4mainENKUliE1_clEi.part.0.cold", "_ZN1AIJidEE1fEDpT_",
           "_ZlsIiEvT_", "_ZTV1A", "_Z1fIXplT_Li1EEEvi", "_ZNK1AcvT_IiEEv", "_Z1fILi1EEvDTcl1gfp_EE", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
           "_RNvC1a1bINvC1a1bFGzzzzzzzzz_EuE", "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE", "_RNvXs_C1aNtB4_1bNtB4_1c1d",
           "_RIC0FUKC_mRL0_eEuKj5_DNtC1a1bp1cmEL_E", "_RNvC1au8_qda3a", "_D3foo3barFiZv", "_D3std5stdio__T8writeflnTAyaZQpFAyaZv", "_D1a1bFQdZQe",
           "_D" + 8 * "1aFS")
for i, name in enumerate(mangled):
    save("demangle", "name-%d" % i, name.encode())
for text in sorted(os.listdir(here + "/regress")):
    data = bytearray()
    for line in open(os.path.join(here, "regress", text)):
        if line.startswith("#") or ":" not in line:
            continue
        at, rest = line.split(":", 1)
        off, new = (int(rest), b"") if at == "size" else (int(at, 16), bytes.fromhex(rest))
        data += bytes(max(0, off + len(new) - len(data)))
        data[off:off + len(new)] = new
    harness, name = text.rsplit(".", 1)[0].split("-", 1)
    save(harness, "regress-" + name, bytes(data))
