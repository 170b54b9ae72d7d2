#!/usr/bin/env python3
"""hostile.py: broken files for the whole tool.

hostile.py [--tool ICFOLD] [--every N] [--jobs N] [--only REGEX] [--name REGEX] [--label WORD] [--keep DIR] IN=OUT...
IN is a program, OUT what folding made of it.  Each is broken in one place at a time (see the functions named after kinds
below), and every command of the tool is run on the result.  Whatever the file says:
  - the exit status is 0, 1 or 2: no signal, no sanitizer report, no more than TIME seconds of processor time (WALL of any;
    thrice the TIME with sanitizers);
  - a failure says why, in at most LINES lines that begin with "icfold: ", one of which names the file;
  - a failed fold leaves no output and no temporary file;
  - memory stays in proportion: BASE + PER_BYTE times the size of the file, and PER_UNPACKED times what a bomb unpacks to (not
    judged with sanitizers, which take more).  verify may take PER_ROW: a row of a line table may be one byte, for which libdw
    keeps 88, and the verifier has rows of its own.
--every N takes every N-th mutation of each kind, at least one.  Prints a line for each kind, and one for each thing that was
found in it, TAP-like, and exits with 1 when anything was found.  --keep DIR keeps the files that showed something.
--name REGEX takes the mutations of that name instead, and --label WORD says so in the names of the tests.
"""
import argparse
import collections
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elfbytes
from elfbytes import EHDR, PHDR, SHDR, get, put

TIME, WALL, LINES = 10, 600, 4
BASE, PER_BYTE, PER_ROW, PER_UNPACKED = 64 << 20, 64, 256, 8
BOMB = 48 << 20
SHOWN = 12  # different findings of a kind


# ---- what to break: each function yields (name, patches), patches being (offset, bytes), or a whole new file ----

def values(old, size, whole):
    """Numbers that a field of SIZE bytes should not have."""
    top = (1 << 8 * size) - 1
    seen = {old}
    for v in (0, 1, top, top >> 1, (top >> 1) + 1, old + 1, old - 1, old * 2, old // 2, whole, whole - 1, whole + 1, 0xffffffff, 1 << 40,
              top - 15, old ^ 0x10):
        if 0 <= v <= top and v not in seen:
            seen.add(v)
            yield v


def fields(elf, base, layout, what):
    for name, off, size in layout:
        old = get(elf.data, base + off, size)
        for v in values(old, size, len(elf.data)):
            yield "%s.%s=%x" % (what, name, v), [(base + off, put(v, size))]


def truncations(elf):
    d = elf.data
    ends = {0, 1, 15, 16, 63, 64, 65, elf.e["e_phoff"], elf.e["e_phoff"] + 56, elf.e["e_shoff"], elf.e["e_shoff"] + 64, len(d) - 1, len(d) - 63}
    for s in elf.sections:
        if s.in_file():
            ends |= {s.offset, s.offset + s.size // 2, s.offset + s.size - 1, s.offset + s.size, s.offset + 1}
    for e in sorted(ends):
        if e < len(d):
            yield "to %d" % e, d[:e]
    # The headers stay; the section's bytes go, and later sections move.
    for s in elf.sections:
        if s.in_file() and s.offset + s.size <= elf.e["e_shoff"]:
            for cut in {s.size, s.size // 2, 1}:
                new = bytearray(d[:s.offset + s.size - cut] + d[s.offset + s.size:])
                new[40:48] = put(elf.e["e_shoff"] - cut, 8)
                yield "%s less %d" % (s.name, cut), bytes(new)


def elf_header(elf):
    yield from fields(elf, 0, EHDR, "ehdr")
    for i in range(16):
        for v in (0, 1, 2, 3, 255):
            if elf.data[i] != v:
                yield "e_ident[%d]=%d" % (i, v), [(i, bytes([v]))]


def program_headers(elf):
    for i, at in enumerate(elf.phdrs):
        yield from fields(elf, at, PHDR, "phdr %d" % i)


def section_headers(elf):
    for s in elf.sections:
        yield from fields(elf, s.header, SHDR, "section %d" % s.index)


def swapped_headers(elf):
    for i, a in enumerate(elf.sections):
        for b in elf.sections[i + 1:]:
            yield "%d with %d" % (a.index, b.index), [(a.header, elf.data[b.header:b.header + 64]), (b.header, elf.data[a.header:a.header + 64])]


def overlaps(elf):
    for a in elf.sections[1:]:
        for b in elf.sections[1:]:
            if a is not b and a.in_file() and b.in_file():
                yield "%s at %s" % (a.name, b.name), [(a.header + 24, put(b.offset, 8))]
                if a.addr and b.addr:
                    yield "%s at and in %s" % (a.name, b.name), [(a.header + 16, put(b.addr, 8) + put(b.offset, 8))]
                yield "%s as large as %s" % (a.name, b.name), [(a.header + 32, put(b.size, 8))]


def types(elf):
    """A section that claims to be another kind, or another by name."""
    for s in elf.sections[1:]:
        for t in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 17, 18, 19, 0x6ffffff6, 0x6fffffff):
            if t != s.type:
                yield "%s type %x" % (s.name, t), [(s.header + 4, put(t, 4))]
        for other in elf.sections[1:]:
            if other is not s:
                yield "%s named %s" % (s.name, other.name), [(s.header, elf.data[other.header:other.header + 4])]


def places(section, count, rng):
    if section.size <= count:
        return range(section.size)
    return sorted(rng.sample(range(section.size), count))


def bit_flips(elf):
    rng = random.Random(1)
    for s in elf.sections:
        if s.in_file():
            for p in places(s, 160, rng):
                bit = rng.randrange(8)
                yield "%s+%x bit %d" % (s.name, p, bit), [(s.offset + p, bytes([elf.data[s.offset + p] ^ 1 << bit]))]


def numbers(elf):
    """Anything in a table becomes a large or an odd number."""
    rng = random.Random(2)
    for s in elf.sections:
        if not s.in_file() or s.name in (".text", ".strtab", ".shstrtab", ".comment"):
            continue
        for p in places(s, 80, rng):
            size = rng.choice((1, 2, 4, 8))
            p -= p % size
            if p + size > s.size:
                continue
            v = rng.choice(list(values(get(elf.data, s.offset + p, size), size, len(elf.data))))
            yield "%s+%x=%x" % (s.name, p, v), [(s.offset + p, put(v, size))]


def runs(elf):
    """A table full of one byte, from somewhere on."""
    rng = random.Random(3)
    for s in elf.sections:
        if s.in_file():
            for fill in (0x00, 0xff, 0x80, 0x41):
                p = rng.randrange(s.size)
                yield "%s all %02x" % (s.name, fill), [(s.offset, bytes([fill]) * s.size)]
                yield "%s from %x %02x" % (s.name, p, fill), [(s.offset + p, bytes([fill]) * (s.size - p))]


def tables(elf):
    """Records of tables: each field of the first, the last, and some others."""
    record = {2: [4, 1, 1, 2, 8, 8], 11: [4, 1, 1, 2, 8, 8], 4: [8, 4, 4, 8], 6: [8, 8], 19: [8]}
    rng = random.Random(4)
    for s in elf.sections:
        layout = record.get(s.type)
        if not layout or not s.in_file():
            continue
        n, size = s.size // sum(layout), sum(layout)
        for i in sorted(set([0, n - 1] + [rng.randrange(n) for _ in range(6)])):
            p = s.offset + i * size
            for f in layout:
                for v in values(get(elf.data, p, f), f, len(elf.data)):
                    yield "%s[%d]+%d=%x" % (s.name, i, p - s.offset - i * size, v), [(p, put(v, f))]
                p += f


def counts(elf):
    """Heads of hash tables, notes, .eh_frame_hdr, .debug_icfold: words at the start."""
    for s in elf.sections:
        if s.name.startswith((".gnu.hash", ".hash", ".note", ".eh_frame_hdr", ".gnu.version", ".debug_icfold", ".gcc_except", ".debug_names",
                              ".gdb_index", ".debug_dcall", ".debug_vcall")):
            for p in range(0, min(s.size - 3, 48), 4):
                for v in values(get(elf.data, s.offset + p, 4), 4, len(elf.data)):
                    yield "%s+%d=%x" % (s.name, p, v), [(s.offset + p, put(v, 4))]


def lengths(elf):
    """Lengths that chain records: frames, units of debug information."""
    for s in elf.sections:
        if s.name not in (".eh_frame", ".debug_frame", ".debug_info", ".debug_types", ".debug_line", ".debug_aranges", ".debug_rnglists",
                          ".debug_loclists", ".debug_addr", ".debug_str_offsets", ".debug_names", ".debug_dcall", ".debug_vcall"):
            continue
        if s.flags & 0x800:
            continue
        starts = elfbytes.unit_lengths(elf.bytes_of(s))
        for u in starts[:4] + starts[len(starts) // 2:len(starts) // 2 + 2] + starts[-3:]:
            old = get(elf.data, s.offset + u, 4)
            for v in list(values(old, 4, len(elf.data))) + [old + 4, old - 4, 0xfffffff0, 0xffffffef, s.size - u, s.size - u - 4]:
                if 0 <= v < 1 << 32:
                    yield "%s+%x=%x" % (s.name, u, v), [(s.offset + u, put(v, 4))]
            for p in range(u + 4, min(u + 24, s.size)):
                for v in (0, 1, 0x7f, 0x80, 0xff):
                    yield "%s+%x=%02x" % (s.name, p, v), [(s.offset + p, bytes([v]))]


def dies(elf):
    """References between DIEs in circles and into nothing; sizes of blocks; codes of declarations."""
    info = elf.section(".debug_info")
    if not info:
        return
    all_of = elfbytes.attributes(elf)
    by_at = collections.defaultdict(list)
    for a in all_of:
        by_at[a[2], a[3]].append(a)
    for (at, form), list_ in sorted(by_at.items()):
        for p, size, _, _, die, unit in [list_[0], list_[len(list_) // 2], list_[-1]]:
            new = []
            if form in (0x11, 0x12, 0x13, 0x14, 0x10):  # ref1 to ref8, ref_addr
                base = 0 if form == 0x10 else unit
                new = [die - base, die + 1 - base, 0, 11, 12, list_[0][4] - base, list_[-1][4] - base, info.size - base, 0xffffffff]
            elif size in (1, 2, 4, 8):
                new = list(values(get(elf.data, info.offset + p, size), size, len(elf.data)))
            elif size:
                new = [0, 0x7f, 0x80, 0xff]
                size = 1
            for v in new:
                if 0 <= v < 1 << 8 * size:
                    yield "%x form %x at %x=%x" % (at, form, p, v), [(info.offset + p, put(v, size))]
    # Whole circles: every reference of a kind to its own DIE, or to the one before.
    for (at, form), list_ in sorted(by_at.items()):
        if form == 0x13:
            yield "all %x to themselves" % at, [(info.offset + p, put(die - unit, 4)) for p, _, _, _, die, unit in list_]
            yield "all %x in a circle" % at, [(info.offset + p, put(other[4] - unit, 4)) for (p, _, _, _, _, unit), other in
                                              zip(list_, list_[1:] + list_[:1]) if other[4] > unit]
    ab = elf.section(".debug_abbrev")
    for p in range(0, min(ab.size, 200)):
        for v in (0, 0x7f, 0x80, 0xff, elf.data[ab.offset + p] + 1 & 0xff):
            yield "abbrev+%x=%x" % (p, v), [(ab.offset + p, bytes([v]))]
    # An attribute's form becomes another: tags and names that refer become the ones that import, specify, originate.
    for p in range(0, min(ab.size, 400)):
        for v in (0x31, 0x47, 0x49, 0x18, 0x3d, 0x13, 0x10, 0x17, 0x55, 0x16, 0x21, 0x23, 0x22, 0x19):
            if elf.data[ab.offset + p] != v:
                yield "abbrev+%x to %x" % (p, v), [(ab.offset + p, bytes([v]))]


def with_section(elf, s, contents, flags):
    """The file with other contents of section S, which is not loaded; what is behind it moves, so that no bytes are nobody's."""
    d = bytearray(elf.data[:s.offset]) + contents
    behind = sorted((o for o in elf.sections if o.type and (o.offset, o.index) > (s.offset, s.index) and o is not s), key=lambda o: (o.offset, o.index))
    place = {s.header: s.offset}
    for o in behind:
        d += bytes(-len(d) % max(get(elf.data, o.header + 48, 8), 1))
        place[o.header] = len(d)
        d += elf.bytes_of(o)
    d += bytes(-len(d) % 8)
    shoff, old = len(d), elf.e["e_shoff"]
    d += elf.data[old:]
    d[40:48] = put(shoff, 8)
    for header, offset in place.items():
        d[header - old + shoff + 24:header - old + shoff + 32] = put(offset, 8)
    at = s.header - old + shoff
    d[at + 32:at + 40] = put(len(contents), 8)
    d[at + 8:at + 16] = put(flags, 8)
    return bytes(d)


def bombs(elf):
    """Compressed sections that lie about their size, are cut, or grow a thousandfold."""
    for s in elf.sections:
        if not s.name.startswith(".debug_") or not s.in_file():
            continue
        raw = elf.bytes_of(s)
        if s.flags & 0x800:
            for off, size in ((0, 4), (4, 4), (8, 8), (16, 8), (24, 4)):
                for v in values(get(raw, off, size), size, len(elf.data)):
                    yield "%s+%d=%x" % (s.name, off, v), [(s.offset + off, put(v, size))]
            for n in (0, 1, 23, 24, 25, s.size // 2, s.size - 1):
                yield "%s cut to %d" % (s.name, n), [(s.header + 32, put(n, 8))]
            continue
        packed = zlib.compress(raw)
        for size in (0, 1, len(raw) - 1, len(raw) + 1, len(raw) * 1000, 1 << 30, 1 << 32, 1 << 63, (1 << 64) - 1):
            yield "%s says %x" % (s.name, size), with_section(elf, s, put(1, 8) + put(size, 8) + put(1, 8) + packed, 0x800)
            yield "%s says %x of zstd" % (s.name, size), with_section(elf, s, put(2, 8) + put(size, 8) + put(1, 8) + packed, 0x800)
        for fill in (b"\0", b"\1", b"\xff"):
            big = BOMB
            bomb = zlib.compress(fill * big, 9)
            yield "bomb in %s of %02x" % (s.name, fill[0]), with_section(elf, s, put(1, 8) + put(big, 8) + put(1, 8) + bomb, 0x800)
            yield "bomb in %s of %02x, small" % (s.name, fill[0]), with_section(elf, s, put(1, 8) + put(len(raw), 8) + put(1, 8) + bomb, 0x800)
            yield "bomb in %s of %02x, huge" % (s.name, fill[0]), with_section(elf, s, put(1, 8) + put(big * 4, 8) + put(1, 8) + bomb, 0x800)


def growths(elf):
    """Long debug information of one thing a million times: nothing may cost more than its bytes."""
    for s in elf.sections:
        if s.name.startswith((".debug_", ".eh_frame", ".gcc_except", ".note", ".symtab", ".rela.text")) and not s.flags & 2 and s.in_file():
            raw = elf.bytes_of(s)
            head = raw[:elfbytes.unit_lengths(raw)[-1]] if elfbytes.unit_lengths(raw) else b""
            for fill in (b"\0", b"\1", b"\x80", raw[:64]):
                yield "%s grown by %02x" % (s.name, fill[0]), with_section(elf, s, raw + fill * (1000000 // len(fill)), s.flags)
                # The last unit gets the rest.
                if len(head) < len(raw) and s.name not in (".debug_str", ".debug_abbrev", ".symtab"):
                    rest = raw[len(head) + 4:] + fill * (1000000 // len(fill))
                    yield "%s with a large unit of %02x" % (s.name, fill[0]), with_section(elf, s, head + put(len(rest), 4) + rest, s.flags)


def base36(n):
    return base36(n // 36) + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36] if n else ""


def substitution(n):
    return "S%s_" % ("" if not n else base36(n - 1) or "0")


def base62(n):
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return base62(n // 62) + digits[n % 62] if n >= 62 else digits[n]


def names(elf):
    """Symbols whose readable name has no end, or needs no end of stack."""
    doubled = "_Z1f1pIiiE" + "".join("S_I%s%sE" % (substitution(i), substitution(i)) for i in range(1, 60))
    rust, before = "INvC1a1fTmmE", 8
    for _ in range(60):
        at = len(rust)
        rust += "TB%s_B%s_E" % (base62(before - 1), base62(before - 1))
        before = at
    d = "_D1a1fFHii" + "HQeQg" + "HQgQi" * 300 + "Zv"
    for what, name in (("C++", doubled), ("C++ clone", doubled + ".cold"), ("Rust", "_R" + rust + "E"), ("D", d),
                       ("D, deep", "_D1a" + "A" * 300000), ("D, lists", "_D" + "1a" * 150000 + "FZv"),
                       ("C++, deep", "_Z1f" + "P" * 300000 + "i"), ("Rust, deep", "_R" + "NvC1a" * 60000), ("long", "x" * 1000000)):
        tab, strtab = elf.section(".symtab"), elf.section(".strtab")
        new = bytearray(with_section(elf, strtab, elf.bytes_of(strtab) + name.encode() + b"\0", strtab.flags))
        for at in range(tab.offset, tab.offset + tab.size, 24):
            if new[at + 4] & 15 == 2:
                new[at:at + 4] = put(strtab.size, 4)
        yield what, bytes(new)


# Zero and 2^64 - 1 in ten bytes, 2^63, more than 64 bits, and no end.
LEBS = {"ten": b"\x80" * 9 + b"\0", "max": b"\xff" * 9 + b"\1", "min": b"\x80" * 9 + b"\1", "minus": b"\xff" * 9 + b"\x7f",
        "over": b"\x80" * 9 + b"\2", "far": b"\x80" * 30 + b"\x7f", "ones": b"\xff" * 100, "endless": b"\x80" * 100000}


def lebs(elf):
    """Numbers of variable length that are too long, too large or have no end, where tables have such numbers."""
    rng = random.Random(6)
    for s in elf.sections:
        if not s.in_file() or not s.name.startswith((".gcc_except", ".eh_frame", ".debug_")) or s.flags & 0x800:
            continue
        starts = elfbytes.unit_lengths(elf.bytes_of(s)) if s.name in (".eh_frame", ".debug_frame") else []
        some = {p + n for p in starts[:2] + starts[-2:] for n in range(9, 28)}  # a CIE's or FDE's numbers
        some |= set(range(min(s.size, 48))) | set(places(s, 40, rng))
        for p in sorted(some):
            for what, leb in LEBS.items():
                if p < s.size:
                    yield "%s+%x %s" % (s.name, p, what), [(s.offset + p, leb[:s.size - p])]


def padded(value, n):
    return bytes(value >> 7 * i & 127 | (128 if i < n - 1 else 0) for i in range(n))


def long_abbrevs(elf):
    """The same abbreviations in longer numbers, which says the same; where there is one table."""
    ab = elf.section(".debug_abbrev")
    if not ab or ab.flags & 0x800:
        return
    raw, numbers_, p = elf.bytes_of(ab), [], 0  # a number, or a byte as it is
    while raw[p]:
        for what in ("code", "tag"):
            v, p = elfbytes.uleb(raw, p)
            numbers_.append(v)
        numbers_.append(raw[p:p + 1])
        p += 1
        while True:
            at, p = elfbytes.uleb(raw, p)
            form, p = elfbytes.uleb(raw, p)
            numbers_ += [at, form]
            if form == 0x21:  # DW_FORM_implicit_const, a signed number
                start = p
                _, p = elfbytes.uleb(raw, p)
                numbers_.append(raw[start:p])
            if not at and not form:
                break
    if p + 1 != len(raw):
        return
    for n in (2, 3, 9, 10, 11, 20, 5000):
        new = b"".join(v if isinstance(v, bytes) else padded(v, n) for v in numbers_)
        yield "in %d bytes" % n, with_section(elf, ab, new + b"\0", ab.flags)


KINDS = [truncations, elf_header, program_headers, section_headers, swapped_headers, overlaps, types, bit_flips, numbers, runs, tables, counts,
         lengths, dies, bombs, growths, names, lebs, long_abbrevs]


# ---- running ----

class Timeout(Exception):
    pass


def on_alarm(*_):
    raise Timeout


def time_limit():
    return TIME * (3 if STATE.get("san") else 1)


def spawn(tool, args, out, err, env):
    """(exit status, signal, peak memory in bytes, error text)"""
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
               (os.POSIX_SPAWN_OPEN, 2, err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    pid = os.posix_spawn(tool, [tool] + args, env, file_actions=actions)
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, (time_limit(), time_limit() + 1))
    except ProcessLookupError:
        pass
    signal.setitimer(signal.ITIMER_REAL, WALL)
    try:
        _, status, usage = os.wait4(pid, 0)
    except Timeout:
        os.kill(pid, signal.SIGKILL)
        os.wait4(pid, 0)
        return None, None, 0, ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    with open(err, "rb") as f:
        text = f.read(20000).decode(errors="replace")
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status), 0, text
    return os.WEXITSTATUS(status), None, usage.ru_maxrss << 10, text


def no_end(sig):
    """Was it stopped, having taken too long?"""
    if sig is None:
        return "no end after %d s" % WALL
    return "no end after %d s of processor time" % time_limit() if sig == signal.SIGXCPU else None


def judge(result, args, named, limit):
    """What is wrong with the end of one run, or None."""
    status, sig, memory, text = result
    if status is None:
        return no_end(sig) or "signal %d: %s" % (sig, text[-300:])
    if status not in (0, 1, 2) or "runtime error:" in text or "Sanitizer" in text:
        hit = re.search(r"(SUMMARY: .*|\S+ runtime error: .*)", text)
        frames = re.findall(r"#\d+ \S+ in (\S+) (\S+)", text)
        return "exit status %d: %s %s" % (status, hit.group(1) if hit else text[:300], " < ".join(f[0] for f in frames[:6]))
    if limit and memory > limit:
        return "%d MiB of memory" % (memory >> 20)
    if status and "out of memory" in text:
        return "says out of memory"
    lines = text.splitlines()
    if any(not line.startswith("icfold: ") for line in lines) or len(lines) > LINES:
        return "exit status %d, complaint of %d lines: %s" % (status, len(lines), " | ".join(lines[:4])[:300])
    if status and args[0] != "verify" and not any(n in text for n in named):
        return "exit status %d, complaint does not name the file: %s" % (status, text[:300])
    if args[0] == "verify" and status == 2 and not any(n in text for n in named):
        return "exit status %d, complaint does not name a file: %s" % (status, text[:300])
    return None


class Pair:
    def __init__(self, in_path, out_path):
        self.path = {"in": in_path, "out": out_path}
        self.elf = {side: elfbytes.Elf(p) for side, p in self.path.items()}
        self.ask = {}
        for side, elf in self.elf.items():
            f = elf.functions()
            some = [f[0], f[len(f) // 3], f[len(f) // 2], f[2 * len(f) // 3], f[-1]]
            self.ask[side] = ["0x%x" % (v + n) for v, size, _ in some for n in {0, size // 2, size - 1}]
            self.name = some[2][2]


def commands(pair, side, bad, out):
    ask = pair.ask[side]
    other = pair.path["out" if side == "in" else "in"]
    yield ["fold", "-q", "--threads=1", bad, "-o", out]
    yield ["symbolize", "-e", bad, "-a"] + ask
    yield ["symbolize", "--stack", "--output-style=JSON", "-e", bad] + ask
    yield ["inlines", pair.name, bad]
    yield ["symbols", "--format=breakpad", bad]
    yield ["symbols", "--format=gsym", bad]
    yield ["symbols", "--format=json", bad]
    yield ["dump", "--all", bad]
    yield ["verify", "--threads=1"] + ([bad, other] if side == "in" else [other, bad])
    if side == "in":
        yield ["symbolize", "-e", bad, "main", pair.name + "+0x1"]


def run_one(job):
    kind, index, pair_no, side, name, change = job
    pair = STATE["pairs"][pair_no]
    base = pair.elf[side].data
    if isinstance(change, bytes):
        data = change
    else:
        data = bytearray(base)
        for off, b in change:
            data[off:off + len(b)] = b
        data = bytes(data[:max(len(base), 0)])
    work = STATE["work"] + "/%d" % os.getpid()
    os.makedirs(work + "/d", exist_ok=True)
    bad, out = work + "/d/bad", work + "/d/out"
    with open(bad, "wb") as f:
        f.write(data)
    unpacked = BOMB if name.startswith("bomb in") else 0
    found = []
    runs_ = collections.Counter()
    for args in commands(pair, side, bad, out):
        result = spawn(STATE["tool"], args, work + "/stdout", work + "/stderr", STATE["env"])
        runs_[args[0], result[0]] += 1
        limit = BASE + PER_UNPACKED * unpacked + len(data) * (PER_ROW if args[0] == "verify" else PER_BYTE)
        why = judge(result, args, (bad, out), 0 if STATE["san"] else limit)
        left = set(os.listdir(work + "/d")) - {"bad"}
        if not why and args[0] == "fold":
            if result[0] and left:
                why = "exit status %d, and left %s" % (result[0], " ".join(left))
            elif not result[0] and left != {"out"}:
                why = "made no output"
        for n in left:
            os.unlink(work + "/d/" + n)
        if why:
            found.append((kind, name, os.path.basename(pair.path[side]), args[0], why.replace(work + "/d/", "").strip().replace("\n", " | ")))
    if found and STATE["keep"]:
        kept = "%s-%s-%d" % (os.path.basename(pair.path[side]), kind, index)
        shutil.copy(bad, STATE["keep"] + "/" + kept)
        found = [f + (kept,) for f in found]
    return kind, runs_, found


STATE = {}


def jobs(options):
    rng = random.Random(5)
    for no, pair in enumerate(STATE["pairs"]):
        for side in ("in", "out"):
            for kind in KINDS:
                # Numbers are drawn for all kinds, so that a kind alone gets the same files.
                start = rng.randrange(options.every) if kind not in (names, long_abbrevs) else 0
                if options.only and not re.search(options.only, kind.__name__):
                    continue
                step = 1 if kind in (names, long_abbrevs) else options.every * (1 if kind not in (overlaps, types, swapped_headers, section_headers, tables) else 4)
                i = -1
                for i, (name, change) in enumerate(kind(pair.elf[side])):
                    if re.fullmatch(options.name, name) if options.name else i % step == start:
                        yield kind.__name__, i, no, side, name, change


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tool", default="build/icfold")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--only")
    p.add_argument("--name")
    p.add_argument("--label", default="hostile")
    p.add_argument("--keep")
    p.add_argument("--work")
    p.add_argument("pair", nargs="+")
    o = p.parse_args()
    with open(o.tool, "rb") as f:
        san = b"__asan_init" in f.read()
    work = tempfile.mkdtemp(prefix="hostile.", dir=o.work)
    env = dict(os.environ, ASAN_OPTIONS="exitcode=99:detect_leaks=1:allocator_may_return_null=1:malloc_context_size=12",
               UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1", LC_ALL="C")
    STATE.update(tool=os.path.abspath(o.tool), work=work, san=san, keep=o.keep, env=env, pairs=[Pair(*x.split("=")) for x in o.pair])
    if o.keep:
        os.makedirs(o.keep, exist_ok=True)
    signal.signal(signal.SIGALRM, on_alarm)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not san:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    files, runs_, bad, total = [collections.Counter() for _ in range(4)]
    what = collections.defaultdict(list)  # by kind, command and complaint without numbers: findings
    try:
        with multiprocessing.Pool(o.jobs) as pool:
            for kind, ends, found in pool.imap_unordered(run_one, jobs(o), 4):
                files[kind] += 1
                runs_[kind] += sum(ends.values())
                total += ends
                for f in found:
                    bad[kind] += 1
                    what[kind, f[3], re.sub(r"0x[0-9a-f]+|[0-9]+|\.(debug|gcc|eh)_\w+", "N", f[4])].append(f)
                    print("# " + ": ".join(f), flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for kind in KINDS:
        k = kind.__name__
        if files[k]:
            text = "%s %s/%s" % ("not ok" if bad[k] else "ok", o.label, k)
            print("%s: %d files, %d runs%s" % (text, files[k], runs_[k], ", %d findings" % bad[k] if bad[k] else ""))
            for key in [key for key in what if key[0] == k][:SHOWN]:
                f = what[key][0]
                print("not ok %s/%s/%s: %d of them, first %s of %s: %s" % (o.label, k, f[3], len(what[key]), f[1], f[2], f[4][:240]))
    for command in sorted({c for c, _ in total}):
        print("# %s: %s" % (command, ", ".join("%d with status %s" % (n, s) for (c, s), n in sorted(total.items(), key=str) if c == command)))
    return 1 if sum(bad.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
