#!/usr/bin/env python3
"""symfile.py FORMAT OLD NEW FILE [LEAST]: judges FILE, which `icfold symbols --format=FORMAT` made of NEW, by other people's programs.

NEW is OLD folded, or OLD itself.  A function of NEW is found in OLD by its symbol; for every place where FILE says something new, what
llvm-symbolizer says of OLD must be what FILE says of NEW: functions, inlined calls, files, lines.  The unwind rules of a Breakpad file
must be those that readelf reads in NEW.  The last line is "N places, M wrong"; fewer than LEAST places are a fault, too."""
import bisect
import re
import subprocess
import sys
from collections import defaultdict


def run(*cmd, **kw):
    return subprocess.run(cmd, capture_output=True, text=True, errors="surrogateescape", check=True, **kw).stdout


def functions(path):
    """Symbols of code: {name: address} of names that one function has, {address: (name, size)}, {address: set of names}."""
    by_name, by_address, names = defaultdict(set), {}, defaultdict(set)
    for line in run("readelf", "-sW", path).splitlines():
        f = line.split()
        if len(f) == 8 and f[3] in ("FUNC", "IFUNC", "NOTYPE") and f[6] != "UND" and not f[7].startswith("$"):
            a, size = int(f[1], 16), int(f[2], 0)
            by_name[f[7]].add(a)
            names[a].add(f[7])
            if size and (a not in by_address or size >= by_address[a][1]):
                by_address[a] = (f[7], size)
    return {n: next(iter(a)) for n, a in by_name.items() if len(a) == 1}, by_address, names


class Ranges:
    """Disjoint ranges of addresses with values."""

    def __init__(self, items):
        self.items = sorted(items, key=lambda i: i[0])
        self.starts = [i[0] for i in self.items]

    def at(self, a):
        i = bisect.bisect_right(self.starts, a) - 1
        return self.items[i][2] if i >= 0 and a < self.items[i][1] else None


class Breakpad:
    """A reader of the format's description, which says what may be where."""

    def __init__(self, path, new):
        self.base = min(int(l.split()[2], 16) for l in run("readelf", "-lW", new).splitlines() if l.split()[:1] == ["LOAD"])
        self.files, self.origins, self.funcs, self.publics, self.cfi, self.module = {}, {}, [], [], [], []
        order = {"MODULE": 0, "INFO": 1, "FILE": 2, "INLINE_ORIGIN": 3, "FUNC": 4, "INLINE": 4, "LINE": 4, "PUBLIC": 5, "STACK": 6}
        last = 0
        for text in open(path, errors="surrogateescape"):
            assert text.endswith("\n")
            kind = text.split(" ")[0]
            f = text.rstrip("\n").split(" ")
            kind = kind if kind in order else "LINE"
            assert order[kind] >= last, "order of records: " + text
            last = order[kind]
            getattr(self, "read_" + kind.lower())(f)
        self.index = Ranges([(f["lo"], f["hi"], f) for f in self.funcs])
        for f in self.funcs:
            f["line"] = Ranges(f["rows"])

    def read_module(self, f):
        assert f[1] == "Linux" and not self.module

    def addr(self, s):
        assert re.fullmatch("[0-9a-f]+", s)
        return int(s, 16) + self.base

    def read_info(self, f):
        self.module.append(f)

    def read_file(self, f):
        assert int(f[1]) not in self.files
        self.files[int(f[1])] = " ".join(f[2:])

    def read_inline_origin(self, f):
        assert int(f[1]) not in self.origins
        self.origins[int(f[1])] = " ".join(f[2:])

    def read_func(self, f):
        m = f[1] == "m"
        if m:
            f = f[1:]
        lo = self.addr(f[1])
        assert f[3] == "0" and (not self.funcs or self.funcs[-1]["hi"] <= lo), "functions overlap: " + " ".join(f)
        self.funcs.append({"lo": lo, "hi": lo + int(f[2], 16), "m": m, "name": " ".join(f[4:]), "rows": [], "inlines": []})

    def read_inline(self, f):
        fn = self.funcs[-1]
        assert not fn["rows"], "INLINE behind lines"
        r = [(self.addr(f[i]), self.addr(f[i]) + int(f[i + 1], 16)) for i in range(5, len(f), 2)]
        assert r and all(fn["lo"] <= lo < hi <= fn["hi"] for lo, hi in r), "inlined call outside of its function"
        fn["inlines"].append((int(f[1]), int(f[2]), self.files[int(f[3])], self.origins[int(f[4])], r))

    def read_line(self, f):
        fn = self.funcs[-1]
        lo, size = self.addr(f[0]), int(f[1], 16)
        assert fn["lo"] <= lo and lo + size <= fn["hi"] and (not fn["rows"] or fn["rows"][-1][1] <= lo), "lines overlap"
        assert int(f[2]) > 0
        fn["rows"].append((lo, lo + size, (self.files[int(f[3])], int(f[2]))))

    def read_public(self, f):
        m = f[1] == "m"
        if m:
            f = f[1:]
        self.publics.append((self.addr(f[1]), m, " ".join(f[3:])))

    def read_stack(self, f):
        assert f[1] == "CFI"
        self.cfi.append(f[2:])

    def places(self):
        for f in self.funcs:
            at = {f["lo"], f["hi"] - 1}
            for lo, hi, _ in f["rows"]:
                at |= {lo, hi - 1}
            for i in f["inlines"]:
                for lo, hi in i[4]:
                    at |= {lo, hi - 1}
            for a in at:
                yield f["lo"], a

    def frames(self, a):
        """What a reader of the format says, innermost first: name, file, line."""
        f = self.index.at(a)
        if not f:
            return None
        name, place = f["name"], f["line"].at(a) or ("??", 0)
        inside = sorted((i for i in f["inlines"] if any(lo <= a < hi for lo, hi in i[4])), key=lambda i: i[0])
        assert [i[0] for i in inside] == list(range(len(inside))), "nest levels at %x" % a
        ret = []
        for level, call_line, call_file, origin, _ in reversed(inside):
            ret.append((origin,) + place)
            place = (call_file, call_line)
        return ret + [(name,) + place]


def old_of(reader, old, new):
    """[(place in NEW, the same in OLD)]"""
    by_name, _, _ = functions(old)
    _, by_address, _ = functions(new)
    starts = sorted(by_address)
    for start, a in reader.places():
        i = bisect.bisect_right(starts, a) - 1
        if i < 0 or a >= starts[i] + by_address[starts[i]][1]:
            continue
        name, _ = by_address[starts[i]]
        if name in by_name:
            yield a, by_name[name] + a - starts[i]


def symbolize(path, places):
    text = "".join("0x%x\n" % a for a in places)
    out = run("llvm-symbolizer-19", "--inlines", "--functions=linkage", "--demangle", "--obj=" + path, input=text)
    for block in out.strip().split("\n\n"):
        lines = block.split("\n")
        yield [(lines[i],) + tuple(parse_place(lines[i + 1])) for i in range(0, len(lines), 2)]


def parse_place(s):
    file, line, _ = s.rsplit(":", 2)
    return file, int(line)


def judge_frames(reader, old, new):
    pairs = sorted(set(old_of(reader, old, new)))
    wrong = 0
    for (a, _), want in zip(pairs, symbolize(old, [o for _, o in pairs])):
        # A line of 0 is no line, and then the file says nothing.
        want = [(n, f if l else "??", l) for n, f, l in want]
        said = [(n, f if l else "??", l) for n, f, l in reader.frames(a)]
        # What llvm-symbolizer cannot demangle icfold may, and expressions in names are spelled differently.
        want = [(s[0] if w[0].startswith("_Z") or "decltype" in w[0] and "decltype" in s[0] else w[0],) + w[1:] for w, s in zip(want, said)] + want[len(said) :]
        if want != said:
            wrong += 1
            if wrong <= 5:
                k = next((i for i, (x, y) in enumerate(zip(want, said)) if x != y), min(len(want), len(said)))
                print("0x%x: level %d of %d: expected %s, found %s of %d" % (a, k, len(want), want[k : k + 1], said[k : k + 1], len(said)))
    return len(pairs), wrong


def thunks(path):
    """Symbols of code that only jumps elsewhere: {target: names}."""
    data = open(path, "rb").read()
    loads = [[int(x, 16) for x in l.split()[1:5]] for l in run("readelf", "-lW", path).splitlines() if l.split()[:1] == ["LOAD"]]
    arm, ret = "AArch64" in run("readelf", "-hW", path), defaultdict(set)
    for a, known in functions(path)[2].items():
        at = next((off + a - va for off, va, _, size in loads if va <= a < va + size), None)
        if at is None:
            continue
        if data[at : at + 4] == b"\xf3\x0f\x1e\xfa":
            at, a = at + 4, a + 4
        word = int.from_bytes(data[at : at + 4], "little")
        if arm and word >> 26 == 5:
            ret[a + ((word & 0x3FFFFFF ^ 0x2000000) - 0x2000000) * 4] |= known
        elif not arm and data[at] == 0xE9:
            ret[a + 5 + int.from_bytes(data[at + 1 : at + 5], "little", signed=True)] |= known
    return ret


def judge_shared(reader, old, new):
    """Exactly the functions that were several are marked."""
    by_name, _, _ = functions(old)
    _, _, names = functions(new)
    n = wrong = 0
    marked = {f["lo"]: f["m"] for f in reader.funcs}
    names = dict(names)
    for a, jumps in thunks(new).items():
        names[a] = names.get(a, set()) | jumps
    for a, known in names.items():
        if a not in marked:
            continue
        several = len({by_name[k] for k in known if k in by_name}) > 1
        if not several and not known <= by_name.keys():
            continue  # several local functions have one name
        n += several
        if several != marked[a]:
            wrong += 1
            print("0x%x: %s: expected %s functions" % (a, sorted(known)[:3], "several" if several else "no other"))
    return n, wrong


# ---- unwind rules ----


def plt_cfa(ops, pc):
    """The value of an expression that is a register and a number: linkers' for the procedure linkage table."""
    stack = []
    for op in ops.split(";"):
        op = op.strip()
        m = re.match(r"DW_OP_(breg\d+ \((\w+)\): (-?\d+)|lit(\d+)|(\w+))", op)
        if m.group(2):
            stack.append((None, pc + int(m.group(3))) if m.group(2) == "rip" else (m.group(2), int(m.group(3))))
        elif m.group(4):
            stack.append((None, int(m.group(4))))
        else:
            b, a = stack.pop(), stack.pop()
            f = {"and": lambda x, y: x & y, "ge": lambda x, y: x >= y, "shl": lambda x, y: x << y, "plus": lambda x, y: x + y}[m.group(5)]
            stack.append((a[0] or b[0], int(f(a[1], b[1]))))
    reg, number = stack.pop()
    return "%s%+d" % (reg, number)


def readelf_rows(path):
    """[[lo, hi, {column: rule}, expression, {register: where its being undefined begins}]] of all frame descriptions, as readelf has them."""
    rows, cies, cur, head, said = [], {}, None, None, defaultdict(lambda: [None, {}])
    for line in run("readelf", "--debug-dump=frames", path).splitlines():
        m = re.match("([0-9a-f]{8}) .* (CIE|FDE)(?: cie=([0-9a-f]+) pc=([0-9a-f]+))?", line)
        if m:
            cur = int(m.group(4), 16) if m.group(4) else "cie " + m.group(1)
            if m.group(4):
                said[cur] = [said["cie " + m.group(3)][0], dict(said["cie " + m.group(3)][1])]
            at = 0
        m = re.match(r"\s+DW_CFA_advance_loc\d?: .* to ([0-9a-f]+)", line)
        if m:
            at = int(m.group(1), 16)
        m = re.match(r"\s+DW_CFA_def_cfa_expression \((.*)\)", line)
        if m:
            said[cur][0] = m.group(1)
        m = re.match(r"\s+DW_CFA_undefined: r(\d+)", line)
        if m:
            said[cur][1][int(m.group(1))] = at
    cur = None
    for line in run("readelf", "--debug-dump=frames-interp", path).splitlines():
        f = line.split()
        m = re.match("([0-9a-f]{8}) .* (CIE|FDE)(?: cie=([0-9a-f]+) pc=([0-9a-f]+)..([0-9a-f]+))?", line)
        if m and m.group(4):
            cur, start = (int(m.group(4), 16), int(m.group(5), 16)), len(rows)
            rows.append([*cur, cies.get(m.group(3), {}), *said[cur[0]]])  # nothing is printed if it has only this row
        elif m:
            cur, cie = None, m.group(1)
        elif f and f[0] == "LOC":
            head = f[1:]
        elif f and head and re.fullmatch("[0-9a-f]{16}", f[0]):
            row = dict(zip(head, f[1:]))
            if not cur:
                cies[cie] = row
                continue
            if int(f[0], 16) > rows[-1][0]:
                rows[-1][1] = int(f[0], 16)
            else:
                rows.pop()
            rows.append([int(f[0], 16), cur[1], row, *said[cur[0]]])
    return rows


def judge_cfi(reader, new):
    want = readelf_rows(new)
    arm = "AArch64" in run("readelf", "-hW", new)
    rules, at = {}, None
    rows = []
    for f in reader.cfi:
        if f[0] == "INIT":
            lo, hi, f = reader.addr(f[1]), reader.addr(f[1]) + int(f[2], 16), f[3:]
            rules = {}
            end = hi
        else:
            lo, f = reader.addr(f[0]), f[1:]
            rules = dict(rules)
            rows[-1][1] = lo
        name = None
        for w in f:
            if w.endswith(":"):
                name = w[:-1]
                rules[name] = []
            else:
                rules[name].append(w)
        rows.append([lo, end, {k: " ".join(v) for k, v in rules.items()}])
    said = Ranges([tuple(r) for r in rows])
    n = wrong = 0
    for lo, hi, rule, exp, undefined in want:
        if lo >= hi:
            continue
        for pc in range(lo, hi) if rule["CFA"] == "exp" else {lo, hi - 1}:
            expected = {}
            cfa = plt_cfa(exp, pc) if rule["CFA"] == "exp" else rule["CFA"]
            m = re.match(r"(\w+)([+-]\d+)$", cfa)
            expected[".cfa"] = "%s%s %d +" % ("" if arm else "$", m.group(1), int(m.group(2)))
            expected[".ra"] = "0" if any(pc >= undefined.get(r, pc + 1) for r in (16, 30)) else "x30" if arm else "$rip"
            for reg, r in rule.items():
                if reg == "CFA" or r == "u":
                    continue
                name = ".ra" if reg == "ra" else reg if arm else "$" + reg
                if r[0] in "cv" and r != "vexp":
                    r = r.replace("v", "c")
                    expected[name] = ".cfa %d + ^" % int(r[1:])
                elif r == "s":
                    expected[name] = name
            found = {k: v for k, v in (said.at(pc) or {}).items() if not (k != ".ra" and v == k and k not in expected)}
            n += 1
            if found != expected:
                wrong += 1
                if wrong <= 5:
                    print("0x%x: expected %s, found %s" % (pc, expected, found))
    return n, wrong


def judge_module(reader, new, path):
    """The identifiers of the file."""
    ident = re.search("Build ID: ([0-9a-f]+)", run("readelf", "-nW", new)).group(1)
    first = open(path, errors="surrogateescape").readline().split(" ")
    g = bytes.fromhex(ident)[:16]
    guid = (g[3::-1] + g[5:3:-1] + g[7:5:-1] + g[8:]).hex().upper() + "0"
    return first[3] == guid and ["INFO", "CODE_ID", ident.upper()] in reader.module


def main():
    fmt, old, new, path = sys.argv[1:5]
    least = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    reader = {"breakpad": Breakpad}[fmt](path, new)
    n, wrong = judge_frames(reader, old, new)
    if fmt == "breakpad":
        for k, w in (judge_shared(reader, old, new), judge_cfi(reader, new)):
            n, wrong = n + k, wrong + w
        wrong += not judge_module(reader, new, path)
    wrong += n < least
    print("%d places, %d wrong" % (n, wrong))


main()
