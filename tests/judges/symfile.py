#!/usr/bin/env python3
"""symfile.py FORMAT OLD NEW FILE [LEAST]: judges FILE, which `icfold symbols --format=FORMAT` made of NEW, by other people's programs.

NEW is OLD folded, or OLD itself.  A function of NEW is found in OLD by its symbol; for every place where FILE says something new, what
llvm-symbolizer says of OLD must be what FILE says of NEW: functions, inlined calls, files, lines; for every function that shares code, if
the format has them.  What a call site is said to call must be what the instruction in OLD calls.  The unwind rules of a Breakpad file must
be those that readelf reads in NEW; a GSYM file must lead llvm-gsymutil to what it finds in OLD.gsym, its own file of OLD.  The last line is "N places, M wrong"; fewer than LEAST places are a fault, too."""
import bisect
import json
import re
import struct
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


class Code:
    """Functions, as a reader has found them."""

    demangled = True

    def places(self):
        """(function, is it one that shares another's code, place)"""
        for f in self.funcs:
            for g in [f] + f.get("members", []):
                at = {g["lo"], g["hi"] - 1}
                for lo, hi, _ in g["rows"]:
                    at |= {lo, hi - 1}
                for i in g["inlines"]:
                    for lo, hi in i[4]:
                        at |= {lo, hi - 1}
                for a in at:
                    yield g, g is not f, a

    @staticmethod
    def levels(inlines):
        """The inlined calls of each nest level; those of one level do not overlap."""
        ret = defaultdict(list)
        for i in inlines:
            ret[i[0]] += [(lo, hi, i) for lo, hi in i[4]]
        ret = [Ranges(ret[k]) for k in sorted(ret)]
        for r in ret:
            assert all(x[1] <= y[0] for x, y in zip(r.items, r.items[1:])), "inlined calls overlap"
        return ret

    @staticmethod
    def frames(f, a):
        """What the reader says, innermost first: name, file, line."""
        name, place = f["name"], f["line"].at(a) or ("??", 0)
        if "levels" not in f:
            f["levels"] = Code.levels(f["inlines"])
        inside = [i for i in (r.at(a) for r in f["levels"]) if i]
        assert [i[0] for i in inside] == list(range(len(inside))), "nest levels at %x" % a
        ret = []
        for _, call_line, call_file, origin, _ in reversed(inside):
            ret.append((origin,) + place)
            place = (call_file, call_line)
        return ret + [(name,) + place]


class Breakpad(Code):
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


class Gsym(Code):
    """A reader of GSYM, version 1, with the information of LLVM 20."""

    demangled = False

    def __init__(self, path, new):
        self.data = open(path, "rb").read()
        magic, version, width, uuid, base, n, self.str_off, self.str_size = struct.unpack_from("<IHBBQIII", self.data)
        ident = re.search("Build ID: ([0-9a-f]+)", run("readelf", "-nW", new)).group(1)
        assert (magic, version) == (0x4753594D, 1) and self.data[28 : 28 + uuid].hex() == ident and self.string(0) == ""
        starts = [base + int.from_bytes(self.data[48 + i * width : 48 + (i + 1) * width], "little") for i in range(n)]
        assert starts == sorted(set(starts))
        at = (48 + n * width + 3) & ~3
        offs = struct.unpack_from("<%dI" % n, self.data, at)
        (n_files,) = struct.unpack_from("<I", self.data, at + 4 * n)
        self.files = []
        for i in range(n_files):
            d, b = (self.string(v) for v in struct.unpack_from("<II", self.data, at + 4 * n + 4 + 8 * i))
            self.files.append(d + ("/" if d and d != "/" else "") + b)
        assert all(o % 4 == 0 for o in offs)
        self.funcs = [self.info(a, o)[0] for a, o in zip(starts, offs)]
        self.index = Ranges([(f["lo"], f["hi"], f) for f in self.funcs])

    def string(self, off):
        assert off < self.str_size
        start = self.str_off + off
        return self.data[start : self.data.index(0, start)].decode("utf-8", "surrogateescape")

    def leb(self, at, signed=False):
        v = shift = 0
        while True:
            b = self.data[at]
            at += 1
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return v - (1 << shift) if signed and b & 0x40 else v, at

    def info(self, lo, at):
        size, name = struct.unpack_from("<II", self.data, at)
        f = {"lo": lo, "hi": lo + size, "m": False, "name": self.string(name), "rows": [], "inlines": [], "members": [], "calls": []}
        at += 8
        assert name
        while True:
            kind, n = struct.unpack_from("<II", self.data, at)
            at += 8
            if not kind:
                assert not n
                break
            stop = {1: self.lines, 2: self.inline, 3: self.merged, 4: self.sites}[kind](f, at)
            assert stop == at + n, "information of type %d in %s" % (kind, f["name"])
            at += n
        f["line"] = Ranges(f["rows"])
        f["m"] = bool(f["members"])
        return f, at

    def lines(self, f, at):
        least, at = self.leb(at, True)
        most, at = self.leb(at, True)
        line, at = self.leb(at)
        a, file, rows = f["lo"], 1, []
        while True:
            op = self.data[at]
            at += 1
            if op == 0:
                break
            if op == 1:
                file, at = self.leb(at)
            elif op == 3:
                step, at = self.leb(at, True)
                line += step
            else:
                if op == 2:
                    step, at = self.leb(at)
                    a += step
                else:
                    line += least + (op - 4) % (most - least + 1)
                    a += (op - 4) // (most - least + 1)
                assert f["lo"] <= a < f["hi"] and line >= 0
                rows.append((a, self.files[file], line))
        for i, (a, file, line) in enumerate(rows):
            end = rows[i + 1][0] if i + 1 < len(rows) else f["hi"]
            if end > a and line:
                f["rows"].append((a, end, (file, line)))
        return at

    def inline(self, f, at):
        def node(at, base, depth, around):
            n, at = self.leb(at)
            if not n:
                return None, at
            ranges = []
            for _ in range(n):
                off, at = self.leb(at)
                size, at = self.leb(at)
                ranges.append((base + off, base + off + size))
            assert ranges == sorted(ranges) and all(any(a <= lo < hi <= b for a, b in around) for lo, hi in ranges), "child outside"
            children, name = self.data[at], self.string(int.from_bytes(self.data[at + 1 : at + 5], "little"))
            file, at = self.leb(at + 5)
            line, at = self.leb(at)
            if depth < 0:
                assert name == f["name"] and ranges == around and not file
            else:
                f["inlines"].append((depth, line, self.files[file], name, ranges))
            while children:
                child, at = node(at, ranges[0][0], depth + 1, ranges)
                if child is None:
                    break
            return True, at

        return node(at, f["lo"], -1, [(f["lo"], f["hi"])])[1]

    def merged(self, f, at):
        (n,) = struct.unpack_from("<I", self.data, at)
        at += 4
        for _ in range(n):
            (size,) = struct.unpack_from("<I", self.data, at)
            member, stop = self.info(f["lo"], at + 4)
            assert stop == at + 4 + size and member["hi"] == f["hi"]
            f["members"].append(member)
            at = stop
        return at

    def sites(self, f, at):
        (n,) = struct.unpack_from("<I", self.data, at)
        at += 4
        for _ in range(n):
            off, flags, k = struct.unpack_from("<QBI", self.data, at)
            assert flags == 1 and k
            names = [self.string(v) for v in struct.unpack_from("<%dI" % k, self.data, at + 13)]
            f["calls"].append((f["lo"] + off, names))
            at += 13 + 4 * k
        return at


class Json(Code):
    """The form that icfold-symbols(1) describes."""

    def __init__(self, path, new):
        doc = json.load(open(path))
        ident = re.search("Build ID: ([0-9a-f]+)", run("readelf", "-nW", new)).group(1)
        assert doc["version"] == 1 and doc["module"]["build_id"] == ident
        self.funcs = [self.function(f, f) for f in doc["functions"]]
        self.index = Ranges([(f["lo"], f["hi"], f) for f in self.funcs])

    def function(self, f, whole):
        def span(r):
            lo = int(r["address"], 16)
            return lo, lo + r["size"]

        lo, hi = span(whole)
        rows = [span(r) + ((r["file"], r["line"]),) for r in f["lines"]]
        ret = {"lo": lo, "hi": hi, "m": len(f.get("members", [])) > 1, "name": f["name"], "rows": rows, "line": Ranges(rows)}
        ret["inlines"] = [(i["depth"], i.get("call_line", 0), i.get("call_file", ""), i["name"], [span(r) for r in i["ranges"]]) for i in f["inlines"]]
        ret["members"] = [self.function(m, whole) for m in f.get("members", []) if not m["kept"]]
        ret["linkage"] = f["linkage_name"]
        linked = [i[:3] + (j.get("linkage_name", j["name"]),) + i[4:] for i, j in zip(ret["inlines"], f["inlines"])]
        ret["linked"] = dict(ret, name=f["linkage_name"], inlines=linked)
        ret["calls"] = [(int(c["return_address"], 16), ["^" + re.escape(n) + "$" for n in c["callees"]]) for c in f["calls"]]
        return ret


def old_of(reader, old, new):
    """(function, place in NEW, the same in OLD)"""
    by_name, old_address, _ = functions(old)
    _, by_address, _ = functions(new)
    starts = sorted(by_address)
    # A thunk has one line, and no inlined calls.
    jumps = {n for k in thunks(new).values() for n in k} - {n for k in thunks(old).values() for n in k}
    for f, shares, a in reader.places():
        if shares:
            # Its linkage name, under which OLD knows it.
            name, start = f.get("linkage", f["name"]), f["lo"]
        else:
            i = bisect.bisect_right(starts, a) - 1
            if i < 0 or a >= starts[i] + by_address[starts[i]][1]:
                continue
            start = starts[i]
            name, _ = by_address[start]
            if name in jumps:
                continue
        if name in by_name and by_name[name] in old_address:
            yield f, a, by_name[name] + a - start


def symbolize(path, places):
    """What llvm-symbolizer says of places: [[linkage name, file, line]], innermost first."""
    out = run("llvm-symbolizer-19", "--inlines", "--functions=linkage", "--no-demangle", "--obj=" + path, input="".join("0x%x\n" % a for a in places))
    for block in out.strip().split("\n\n"):
        lines = block.split("\n")
        yield [(lines[i],) + tuple(parse_place(lines[i + 1])) for i in range(0, len(lines), 2)]


def spellings(names):
    """{linkage name: the ways to write it}: LLVM's, GNU's, and GNU's with brackets, lambdas and clones as LLVM writes them: icfold's."""
    names = sorted(names)
    text = "".join(n + "\n" for n in names)
    llvm, gnu = (run(tool, input=text).split("\n")[:-1] for tool in ("llvm-cxxfilt-19", "c++filt"))
    assert len(llvm) == len(gnu) == len(names)
    return {n: {l, respelled(g)} for n, l, g in zip(names, llvm, gnu)}


def respelled(name):
    # Lambdas can be in the parameters of others.
    lambda_ = re.compile(r"\{(?:lambda(\([^{}]*\))|unnamed type)#(\d+)\}")
    while lambda_.search(name):
        name = lambda_.sub(lambda m: "'%s%s'%s" % ("lambda" if m[1] else "unnamed", int(m[2]) - 2 if m[2] > "1" else "", m[1] or ""), name)
    name = re.sub(r" \[clone (\.[^\]]*)\]", r"\1", name)
    name = re.sub(r"(?<=[\w)>])(\.[a-z][\w.]*)$", r" (\1)", name)
    while "> >" in name:
        name = name.replace("> >", ">>")
    return name


def parse_place(s):
    file, line, _ = s.rsplit(":", 2)
    return file, int(line)


def judge_frames(reader, old, new):
    cases = list(old_of(reader, old, new))
    wrong = 0
    # One of several names of a function is as good as another.
    _, _, names = functions(old)
    same = {n: min(known) for known in names.values() for n in known}
    alike = {n: known for known in names.values() for n in known}
    cases = list(zip(cases, symbolize(old, [o for _, _, o in cases])))
    wanted = {n for _, want in cases for n, _, _ in want} if reader.demangled else set()
    known = spellings(wanted | {k for n in wanted for k in alike.get(n, ())})
    known.update({n: set().union(*(known[k] for k in alike[n])) for n in wanted if n in alike})
    for (f, a, _), want in cases:
        # A line of 0 is no line, and then the file says nothing.
        want = [(n, f if l else "??", l) for n, f, l in want]
        said = [(n, f if l else "??", l) for n, f, l in reader.frames(f, a)]
        if reader.demangled:
            linked = [n for n, _, _ in reader.frames(f["linked"], a)] if "linked" in f else None
            wanted = [n for n, _, _ in want]
            want = [((s[0] if s[0] in known[w[0]] else w[0]),) + w[1:] for w, s in zip(want, said)] + want[len(said) :]
            if linked and [same.get(n, n) for n in linked] != [same.get(n, n) for n in wanted]:
                want, said = wanted, linked
        else:
            want, said = ([(same.get(n, n), f, l) for n, f, l in x] for x in (want, said))
        if want != said:
            wrong += 1
            if wrong <= 5:
                k = next((i for i, (x, y) in enumerate(zip(want, said)) if x != y), min(len(want), len(said)))
                print("0x%x %s: level %d of %d: expected %s, found %s of %d" % (a, f["name"], k, len(want), want[k : k + 1], said[k : k + 1], len(said)))
    return len(cases), wrong


def loads_of(path):
    data = open(path, "rb").read()
    loads = [[int(x, 16) for x in l.split()[1:5]] for l in run("readelf", "-lW", path).splitlines() if l.split()[:1] == ["LOAD"]]
    return lambda a: next((data[off + a - va : off + a - va + 8] for off, va, _, size in loads if va <= a < va + size), b"")


def judge_calls(reader, old, new):
    """The direct call or jump before a call site leads, in OLD, to a function that is said to be called; and each pattern names one."""
    by_name, _, names = functions(old)
    _, by_address, _ = functions(new)
    known = {n for k in names.values() for n in k}
    code, arm = loads_of(old), "AArch64" in run("readelf", "-hW", new)
    n = wrong = 0
    for f in reader.funcs:
        for g in [f] + f["members"]:
            name = g.get("linkage", g["name"]) if g is not f else by_address.get(f["lo"], ("",))[0]
            for site, patterns in g["calls"]:
                fault = [p for p in patterns if not any(re.search(p, k) for k in known)] if len(known) * len(patterns) < 100000 else []
                if name in by_name:
                    at = by_name[name] + site - g["lo"]
                    word = int.from_bytes(code(at - 4)[:4], "little")
                    to = None
                    if arm and word >> 26 & 31 == 5:
                        to = at - 4 + ((word & 0x3FFFFFF ^ 0x2000000) - 0x2000000) * 4
                    elif not arm and code(at - 5)[:1] in (b"\xe8", b"\xe9") and len(patterns) == 1:
                        to = at + int.from_bytes(code(at - 4)[:4], "little", signed=True)
                    if to in names and not any(re.search(p, k) for p in patterns for k in names[to]):
                        fault.append(sorted(names[to]))
                n += 1
                if fault:
                    wrong += 1
                    if wrong <= 5:
                        print("0x%x: %s: calls %s: %s" % (site, name, patterns[:3], fault[:3]))
    return n, wrong


def gsymutil(path, places):
    """What llvm-gsymutil says of places: [[(name, file:line)]]."""
    out = run("llvm-gsymutil-19", "--addresses-from-stdin", input="".join("0x%x %s\n" % (a, path) for a in places))
    for block in out.strip("\n").split("\n\n"):
        said = []
        for line in block.split("\n"):
            m = re.match(r"(?:0x[0-9a-f]+:)?\s+(.*?)(?: \+ \d+)?(?: @ (.*?))?(?: \[inlined\])?$", line)
            said.append((m.group(1), m.group(2)))
        yield said


def judge_gsymutil(reader, old, new, path):
    """Lookups in both files by LLVM's reader: the same lines and inlined calls."""
    cases = [(a, o) for f, a, o in old_of(reader, old, new) if not any(f is m for g in reader.funcs for m in g["members"])] if len(reader.funcs) < 100 else []
    n = wrong = 0
    places = [w for w, _ in cases]
    for (a, o), said, want in zip(cases, gsymutil(path, places), gsymutil(old + ".gsym", [o for _, o in cases])):
        n += 1
        if [p for _, p in said] != [p for _, p in want]:
            wrong += 1
            if wrong <= 5:
                print("0x%x: llvm-gsymutil says %s of 0x%x in its own file, and %s" % (a, want, o, said))
    return n, wrong


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
    jumped = {n for k in thunks(old).values() for n in k}
    for a, jumps in thunks(new).items():
        names[a] = names.get(a, set()) | jumps - jumped
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
    reader = {"breakpad": Breakpad, "gsym": Gsym, "json": Json}[fmt](path, new)
    results = [judge_frames(reader, old, new), judge_shared(reader, old, new)]
    if fmt == "breakpad":
        results += [judge_cfi(reader, new), (1, int(not judge_module(reader, new, path)))]
    else:
        results.append(judge_calls(reader, old, new))
    if fmt == "gsym":
        results.append(judge_gsymutil(reader, old, new, path))
    n, wrong = (sum(r[i] for r in results) for i in (0, 1))
    wrong += n < least
    print("%d places, %d wrong (%s)" % (n, wrong, " ".join("%d/%d" % r for r in results)) if wrong else "%d places, 0 wrong" % n)


main()
