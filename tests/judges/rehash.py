#!/usr/bin/env python3
"""rehash.py PROGRAM ROWS.jsonl: the hashes of all functions of PROGRAM once more, from icfold-format(5), HASHES, alone; no code is
shared with icfold.  Prints the functions whose rows say otherwise; status 1: there are some.

PROGRAM is an x86-64 program or library with symbols and kept relocations (--emit-relocs) and without exception tables, jump tables,
thread-local variables, virtual tables and probes, and with forms of 17 to 240 bytes.  Immediates do not follow PC-relative fields."""
import collections
import json
import re
import struct
import subprocess
import sys

VERSION = 3
M = (1 << 64) - 1
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
P1, P2, P4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63


def u64(b, at):
    return int.from_bytes(b[at:at + 8], "little")


def xxh3(b):
    """XXH3, 128 bits, no seed: (low, high)."""
    n = len(b)
    assert 17 <= n <= 240, n
    lo, hi = n * P1 & M, 0

    def avalanche(h):
        h = (h ^ h >> 37) * 0x165667919E3779F9 & M
        return h ^ h >> 32

    def mix16(at, secret):
        p = (u64(b, at) ^ u64(SECRET, secret)) * (u64(b, at + 8) ^ u64(SECRET, secret + 8))
        return p & M ^ p >> 64

    def mix32(x, y, secret):
        nonlocal lo, hi
        lo = (lo + mix16(x, secret) & M) ^ (u64(b, y) + u64(b, y + 8) & M)
        hi = (hi + mix16(y, secret + 16) & M) ^ (u64(b, x) + u64(b, x + 8) & M)

    if n <= 128:
        for k in range((n - 1) // 32, -1, -1):
            mix32(16 * k, n - 16 * k - 16, 32 * k)
    else:
        for k in range(4):
            mix32(32 * k, 32 * k + 16, 32 * k)
        lo, hi = avalanche(lo), avalanche(hi)
        for k in range(4, n // 32):
            mix32(32 * k, 32 * k + 16, 3 + 32 * (k - 4))
        mix32(n - 16, n - 32, 136 - 17 - 16)
    return avalanche(lo + hi & M), -avalanche(lo * P1 + hi * P4 + n * P2 & M) & M


def uleb(v):
    out = bytearray()
    while True:
        out.append(v & 127 | (v > 127) << 7)
        v >>= 7
        if not v:
            return bytes(out)


def put64(*v):
    return b"".join(x.to_bytes(8, "little") for x in v)


def mixed(what, h, number):
    return xxh3(put64(what, *h, number))


# ---- the program


def tool(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


PATH = sys.argv[1]
DATA = open(PATH, "rb").read()
SECTIONS = {}
for m in re.finditer(r"^\s*\[ *\d+\] (\S+)\s+(\S+)\s+([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+) \S+\s+(\w*)\s", tool("readelf", "-SW", PATH), re.M):
    SECTIONS[m[1]] = (int(m[3], 16), int(m[5], 16), int(m[4], 16), m[2], m[6])
ROWS = {r["address"]: r for r in map(json.loads, open(sys.argv[2]))}
CODE = SECTIONS[".text"]
FUNCS = sorted({(int(m[1], 16), int(m[2])) for m in
                re.finditer(r"^ *\d+: ([0-9a-f]{16}) +(\d+) FUNC +\w+ +\w+ +\d", tool("readelf", "-sW", PATH), re.M)
                if CODE[0] <= int(m[1], 16) < CODE[0] + CODE[1]})
START = {a: k for k, (a, _) in enumerate(FUNCS)}
PLT, WORDS, REFS = {}, {}, []
for part in tool("readelf", "-rW", PATH).split("Relocation section ")[1:]:
    name = part.split("'")[1]
    for m in re.finditer(r"^([0-9a-f]{16})\s+[0-9a-f]+ (R_X86_64_\w+)\s+(?:[0-9a-f]{16} (\S+) \+ 0|([0-9a-f]+)$)?", part, re.M):
        if name == ".rela.text":
            REFS.append((int(m[1], 16), m[2]))
        elif m[2] == "R_X86_64_RELATIVE":
            WORDS[int(m[1], 16)] = int(m[4], 16)
        elif name in (".rela.plt", ".rela.dyn") and m[3]:
            WORDS[int(m[1], 16)] = m[3]
for m in re.finditer(r"^\s*([0-9a-f]+):\s+(?:bnd )?jmp\s+\*.*# ([0-9a-f]+)", tool("objdump", "-d", "--no-show-raw-insn", "-j.plt", "-j.plt.got",
                                                                           "-j.plt.sec", PATH) if ".plt" in SECTIONS else "", re.M):
    PLT[int(m[1], 16) & ~15] = int(m[2], 16)


def section_of(va):
    for name, s in SECTIONS.items():
        if s[0] <= va < s[0] + s[1]:
            return name, s
    return "", (va, 0, 0, "", "")


def at(va, n):
    s = section_of(va)[1]
    return DATA[s[2] + va - s[0]:s[2] + va - s[0] + n] if s[3] != "NOBITS" else b""


def frames():
    """What stands in a form for the unwind rules of the function at an address."""
    va, size, off = SECTIONS[".eh_frame"][:3]
    ret, cies, pos = {}, {}, off
    while pos < off + size:
        n, back = struct.unpack_from("<II", DATA, pos)
        if not n:
            break
        end, p = pos + 4 + n, pos + 8
        if not back:
            assert DATA[p + 1:p + 4] == b"zR\0" and DATA[p + 7:p + 9] == b"\1\x1b", "a CIE of another kind"
            insn = DATA[p + 9:end].rstrip(b"\0")
            cies[pos] = DATA[p + 4:p + 7] + uleb(len(insn)) + insn
        else:
            start = va + p - off + struct.unpack_from("<i", DATA, p)[0]
            insn = DATA[p + 9:end].rstrip(b"\0")
            ret[start] = (b"\x09" + uleb(0) + uleb(struct.unpack_from("<I", DATA, p + 4)[0]) + b"\0" + cies[pos + 4 - back] +
                          uleb(len(insn)) + insn + b"\0\0")
        pos = end
    return ret


FRAMES = frames()

# ---- nodes: the functions, then the places that something refers to, by address
TARGET = {}  # the place of a field -> the address that it names, is it a branch, does it take the address
for place, kind in REFS:
    to = place + 4 + struct.unpack("<i", at(place, 4))[0]
    before = at(place - 2, 2)
    TARGET[place] = (to, before[1] in (0xe8, 0xe9) or before[0] == 0x0f, before[0] == 0x8d)
taken = {t for t, branch, lea in TARGET.values() if lea} | {w for w in WORDS.values() if isinstance(w, int)}
PLACES = sorted({t for t, branch, _ in TARGET.values() if not branch and t not in START} | {t for t in taken if t not in START})
PLACES = [p for p in PLACES if not section_of(p)[0].startswith(".got")]
NODE = dict(START)
NODE.update((p, len(FUNCS) + k) for k, p in enumerate(PLACES))
FORM, EDGES, TEXT = [], [], set()


def imported(symbol):
    name, _, version = symbol.replace("@@", "@").partition("@")
    return b"\2" + name.encode() + b"\0" + version.encode() + b"\0" + put64(0)


def put_word(word, edges):
    if isinstance(word, str):
        return imported(word)
    edges.append(NODE[word])
    return b"\1" + uleb(0)


for a, size in FUNCS:
    code, refs, edges = bytearray(at(a, size)), b"", []
    for place in sorted(TARGET):
        if not a <= place < a + size:
            continue
        to, branch, _ = TARGET[place]
        if a <= to < a + size:
            continue  # a distance in the function: bytes as others
        code[place - a:place - a + 4] = bytes(4)
        refs += uleb(place - a) + b"\1" + (b"\0" if branch else b"\1")
        if section_of(to)[0].startswith(".got"):
            refs += b"\x08" + imported(WORDS[to])
        elif to in PLT:
            refs += imported(WORDS[PLT[to]])
        else:
            refs += put_word(to, edges)
    form = bytes([VERSION]) + (62).to_bytes(2, "little") + put64(size) + bytes(code) + refs + FRAMES.get(a, b"") + b"\x0b" + put64(len(edges))
    FORM.append(xxh3(form))
    EDGES.append(edges)
for k, p in enumerate(PLACES):
    name, s = section_of(p)
    if "W" in s[4] and not name.startswith(".data.rel.ro"):
        FORM.append(None)
        EDGES.append([])
        continue
    end = min([q for q in PLACES if q > p] + [s[0] + s[1]])
    held = [w for w in sorted(WORDS) if p <= w < end]
    body = bytearray(at(p, end - p))
    nul = body.find(b"\0")
    if p not in taken:
        body = body[:8]  # numbers are read as doubles here
    elif not held and nul >= 3 and all(32 <= c < 127 for c in body[:nul]):
        body = body[:nul]
        TEXT.add(k + len(FUNCS))
    else:
        least = held[-1] + 8 - p if held else 0
        while len(body) > least and not body[-1]:
            body.pop()
    fields, edges = b"", []
    for w in held:
        body[w - p:w - p + 8] = bytes(8)
        fields += uleb(w - p) + b"\x08" + put_word(WORDS[w], edges)
    FORM.append(xxh3(b"\x23" + uleb(len(body)) + bytes(body) + fields + put64(len(edges))))
    EDGES.append(edges)

# ---- variables: by their uses, first in functions, then in data
def number(h):
    return h[1] << 64 | h[0]


KEY = {}
for nodes in range(len(FUNCS)), range(len(FUNCS), len(FORM)):
    known = set(KEY)
    for k in nodes:
        for e, n in enumerate(EDGES[k]):
            if n >= len(FUNCS) and n not in known:
                h = xxh3(put64(*FORM[k], e))
                KEY[n] = min(KEY.get(n, h), h, key=number)
for n in [n for n, f in enumerate(FORM) if f is None]:
    first = at(PLACES[n - len(FUNCS)], 1)
    FORM[n] = mixed(65, KEY.get(n, (0, 0)), first[0] if first else 0)


# ---- the coarsest partition, once without and once with numbers
def partition():
    cls = list(FORM)
    while True:
        new = [(c,) + tuple(cls[e] for e in EDGES[n]) for n, c in enumerate(cls)]
        low = {}
        for n, c in enumerate(new):
            low.setdefault(c, n)
        new = [low[c] for c in new]
        if len(set(new)) == len(set(cls)):
            return new
        cls = new


count = collections.Counter()
before = partition()
for n in sorted(range(len(FUNCS), len(FORM)), key=lambda n: (number(KEY.get(n, (0, 0))), n)):
    place = PLACES[n - len(FUNCS)]
    only_read = place not in taken and "W" not in section_of(place)[1][4]
    if n not in TEXT and not only_read:
        count[before[n]] += 1
        if count[before[n]] > 1:
            FORM[n] = mixed(66, FORM[n], count[before[n]] - 1)
CLS = partition()


# ---- hashes: what refers to nothing first; circles as one text
def reach(n):
    seen, todo = set(), [n]
    while todo:
        for e in EDGES[todo.pop()]:
            if CLS[e] not in seen:
                seen.add(CLS[e])
                todo.append(CLS[e])
    return seen


REACH = {n: reach(n) for n in set(CLS)}
HASH = {}


def number_from(root, ring):
    order, text = [root], b""
    for n in order:
        text += b"\x46" + put64(*FORM[n])
        for e in (CLS[e] for e in EDGES[n]):
            if e not in ring:
                text += b"\0" + put64(*hash_of(e))
                continue
            if e not in order:
                order.append(e)
            text += b"\1" + order.index(e).to_bytes(4, "little")
    return order, xxh3(text)


def hash_ring(ring):
    colour = {n: xxh3(b"\x44" + put64(*FORM[n]) + b"".join(b"\1" if CLS[e] in ring else b"\0" + put64(*hash_of(CLS[e])) for e in EDGES[n]))
              for n in ring}
    while True:
        alone = [c for c in colour.values() if list(colour.values()).count(c) == 1]
        if alone:
            break
        colour = {n: xxh3(b"\x45" + put64(*colour[n]) + b"".join(put64(*colour[CLS[e]]) for e in EDGES[n] if CLS[e] in ring)) for n in ring}
    least = min(alone, key=number)
    order, whole = number_from(next(n for n in ring if colour[n] == least), ring)
    for k, n in enumerate(order):
        HASH[n] = mixed(71, whole, k)


def hash_of(n):
    if n not in HASH:
        if n in REACH[n]:
            hash_ring([m for m in REACH[n] if n in REACH[m]])
        else:
            HASH[n] = xxh3(b"\x43" + put64(*FORM[n]) + b"".join(put64(*hash_of(CLS[e])) for e in EDGES[n]))
    return HASH[n]


bad = 0
for k, (a, _) in enumerate(FUNCS):
    want = "%016x%016x" % hash_of(CLS[k])[::-1]
    got = ROWS.get(a, {"hash": None})
    if got["hash"] != want or got["hash_version"] != VERSION:
        bad += 1
        print("%s at %#x: %s, not %s" % (got.get("linkage_name"), a, got["hash"], want))
print(len(FUNCS), "functions,", len(set(HASH[CLS[k]] for k in range(len(FUNCS)))), "hashes,", bad, "differ")
sys.exit(bad > 0)
