#!/usr/bin/env python3
"""hash.py ROWS.jsonl...: functions with equal hashes are compared by what objdump prints of them.  Shares no code with icfold.

Two bodies are equal if their instructions are, with addresses by meaning: of code inside the function by distance, of imports by name,
of data by its first bytes (up to a NUL, if it is text; what is read directly, by 4 bytes), of functions by their rows' hashes.  Prints
what differs, and the number of pairs; status 1: some differ."""
import collections
import json
import os
import re
import subprocess
import sys

ROWS = collections.defaultdict(list)  # by hash
HASH = {}                             # (file, address) -> hash
for path in sys.argv[1:]:
    for line in open(path):
        r = json.loads(line)
        ROWS[r["arch"], r["hash_version"], r["hash"]].append(r)
        HASH[r["file"], r["address"]] = r["hash"]


class File:
    def __init__(self, path):
        self.path, self.sections = path, []
        for line in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout.splitlines():
            m = re.match(r"\s*\[ *\d+\] (\S+)\s+(\S+)\s+([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+) \S+\s+(\S*)\s", line)
            if m and int(m[3], 16):
                self.sections.append((m[1], m[2], int(m[3], 16), int(m[4], 16), int(m[5], 16), m[6]))
        self.data = open(path, "rb").read()
        self.slots = {}  # address -> symbol
        relocs = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True).stdout
        # Those that the linker kept are for the linker.
        relocs = "".join(t for t in relocs.split("Relocation section ") if re.match(r"'\.rela\.(dyn|plt)'", t))
        for m in re.finditer(r"^([0-9a-f]{16})\s+\S+\s+R_X86_64_(GLOB_DAT|JUMP_SLO?T?|64)\s+[0-9a-f]*\s*(\S+)", relocs, re.M):
            self.slots[int(m[1], 16)] = m[3].removesuffix("()")
        self.words = {int(m[1], 16): int(m[2], 16)  # address -> what the loader puts there
                      for m in re.finditer(r"^([0-9a-f]{16})\s+\S+\s+R_X86_64_RELATIVE\s+([0-9a-f]+)$", relocs, re.M)}
        self.text = {}

    def disassemble(self):
        """All instructions: address -> (mnemonic and operands, target or None)."""
        out = subprocess.run(["objdump", "-dw", "--no-show-raw-insn", "-M", "intel", self.path], capture_output=True, text=True)
        for line in out.stdout.splitlines():
            m = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
            if not m:
                continue
            text, target = m[2], None
            t = re.search(r"\s*# ([0-9a-f]+)( <.*)?$", text)
            if t:
                target, text = int(t[1], 16), text[:t.start()]
                text = re.sub(r"\[rip[+-]0x[0-9a-f]+\]", "[rip]", text)
            else:
                t = re.match(r"((?:addr32 |notrack |bnd )*(?:call|j\w+|loop\w*|xbegin)\s+)(?:0x)?([0-9a-f]+)( <.*)?$", text)
                if t:
                    target, text = int(t[2], 16), t[1]
            self.text[int(m[1], 16)] = (re.sub(r"\s+", " ", text).strip(), target)
        self.order = sorted(self.text)

    def section(self, va):
        for s in self.sections:
            if s[2] <= va < s[2] + s[4] and s[0] not in (".tbss", ".tdata"):
                return s
        return None

    def bytes_at(self, va, n):
        s = self.section(va)
        if not s or s[1] == "NOBITS":
            return b""
        off = s[3] + va - s[2]
        return self.data[off:min(off + n, s[3] + s[4])]

    def stub(self, va):
        """The import that the code at VA jumps to through its slot."""
        for _ in range(4):
            text, target = self.text.get(va, ("", None))
            if text.startswith(("jmp", "bnd jmp")) and target in self.slots:
                return self.slots[target]
            after = [a for a in range(va + 1, va + 16) if a in self.text]
            if not text or not after or text.startswith(("ret", "call")):
                return None
            va = after[0]
        return None


FILES = {}


def file_of(path):
    if path not in FILES:
        FILES[path] = File(path)
        FILES[path].disassemble()
    return FILES[path]


def meaning(f, r, text, target):
    if r["address"] <= target < r["address"] + r["size"]:
        return ("own", target - r["address"])
    if target in f.slots:
        return ("import", f.slots[target])
    h = HASH.get((f.path, target))
    if h:
        return ("function", h)
    s = f.section(target)
    if not s:
        return ("nothing",)
    if "X" in s[5]:
        name = f.stub(target)
        return ("import", name) if name else ("code",)
    if s[0].startswith(".got"):  # the linker knew what is in the slot, or not: the other file has its address
        v = f.words.get(target) or int.from_bytes(f.bytes_at(target, 8), "little")
        return meaning(f, r, text, v) if v else ("slot",)
    if "W" in s[5]:
        return ("variable",)
    b = f.bytes_at(target, 64)
    end = b.find(b"\0")
    if " lea " in " " + text + " " and end > 3 and all(32 <= c < 127 or c in b"\n\t" for c in b[:end]):
        return ("text", b[:end])
    if " lea " in " " + text + " " and len(b) >= 4:
        case = target + int.from_bytes(b[:4], "little", signed=True) - r["address"]
        if 0 <= case < r["size"]:
            return ("table", case)
    size = [n for w, n in (("XMMWORD", 16), ("QWORD", 8), ("DWORD", 4), ("WORD", 2), ("BYTE", 1)) if re.search(r"\b" + w + " PTR", text)]
    return ("bytes", b[:size[0]] if size else b[:4] if " lea " not in " " + text + " " and b else b[:1])


def body(r):
    f = file_of(r["file"])
    out, at = [], r["address"]
    while at < r["address"] + r["size"]:
        text, target = f.text.get(at, ("?", None))
        # GOTPCRELX, as the psABI lets linkers rewrite it.
        m = meaning(f, r, text, target) if target is not None else None
        if target is not None and f.section(target) and f.section(target)[0].startswith(".got") and target not in f.slots:
            text = text.replace("mov", "lea", 1)
        out.append((re.sub(r"(QWORD|DWORD|XMMWORD) PTR (?=\[rip\])", "", text).replace("addr32 ", ""), m))
        after = at + 1
        while after < r["address"] + r["size"] and after not in f.text:
            after += 1
        at = after
    return out


pairs = bad = 0
for key, rows in ROWS.items():
    if len(rows) < 2:
        continue
    bodies = [body(r) for r in rows[:int(os.environ.get("EACH", "8"))]]
    for r, b in zip(rows[1:], bodies[1:]):
        pairs += 1
        if rows[0]["size"] != r["size"] or bodies[0] != b:
            bad += 1
            if bad <= 10:
                diff = [(x, y) for x, y in zip(bodies[0], b) if x != y][:2]
                print("differ: %s %#x, %s %#x: %s" % (rows[0]["file"], rows[0]["address"], r["file"], r["address"], diff))
print(pairs, "pairs,", bad, "differ")
sys.exit(bad > 0)
