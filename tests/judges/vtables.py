"""vtables.py ORIGINAL FOLDED MAP [LEFT_OUT...]: the entries with tag 0x4fc1 (DW_TAG_vtable) of FOLDED, as readelf prints them.

Each must stand at the address of a vtable object (symbols _ZTV*, _ZTC*) and name its class: the class's scopes and name are what the
demangled symbol says.  Where several objects have one symbol name, a function in one of the object's slots (words read here from
ORIGINAL and its relocations) must be declared in the class.  Every vtable with a slot whose function shares its code (MAP, of
--map) must have an entry; LEFT_OUT are the demangled classes that may not.  Prints one line of figures; exit status 1 when anything
is wrong."""
import re
import subprocess
import sys

from words import Words

TAG = "4fc1"
HEAD = re.compile(r"^ *<(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ "
                  r"\((?:DW_TAG_(\w+)|User TAG value: 0x([0-9a-f]+)|Unknown TAG value: ([0-9a-f]+))\)")
original, folded, mapfile = sys.argv[1:4]
left_out = sys.argv[4:]
problems = []


def run(*args, **kw):
    return subprocess.run(args, capture_output=True, text=True, errors="replace", **kw).stdout


class Die:
    def __init__(self, tag, parent, unit):
        self.tag, self.parent, self.unit, self.attr = tag, parent, unit, {}


class Unit:
    def __init__(self, section):
        self.section, self.signature, self.type_offset, self.start, self.root = section, None, None, 0, None


def read_dies(path):
    dies, types, section, unit, die, path_to = {}, {}, "", None, None, []
    for line in run("readelf", "--debug-dump=info", path).split("\n"):
        m = HEAD.match(line)
        if m:
            depth, off = int(m[1]), int(m[2], 16)
            del path_to[depth:]
            die = dies[section, off] = Die(m[3] or m[4] or m[5], path_to[-1] if depth else None, unit)
            die.off = off
            path_to.append(die)
            if not depth:
                unit.root = die
            if unit.type_offset is not None and off == unit.start + unit.type_offset:
                types[unit.signature] = die
            continue
        m = re.match(r"^ *<[0-9a-f]+> +DW_AT_(\w+) *: ?(?:\(\w+\) )?(.*)$", line)
        if m and die:
            die.attr[m[1]] = m[2].strip()
            continue
        m = re.match(r"^Contents of the (\.debug_\w+) section", line)
        if m:
            section = m[1]
            continue
        m = re.match(r"^ +Compilation Unit @ offset (?:0x)?([0-9a-f]+):", line)
        if m:
            unit, die = Unit(section), None
            unit.start = int(m[1], 16)
            continue
        m = re.match(r"^ +Signature: +0x([0-9a-f]+)", line)
        if m:
            unit.signature = int(m[1], 16)
        m = re.match(r"^ +Type Offset: +(?:0x)?([0-9a-f]+)", line)
        if m:
            unit.type_offset = int(m[1], 16)
    return dies, types


def string(text):
    return re.sub(r"^\((?:indirect (?:line )?string|alt indirect string|indexed string)[^)]*\): ", "", text)


def reference(dies, types, die, attr):
    value = die.attr.get(attr)
    m = value and re.search(r"<0x([0-9a-f]+)>", value)
    if m:
        return dies.get((die.unit.section, int(m[1], 16)))
    m = value and re.fullmatch(r"0x([0-9a-f]+)", value)  # of 8 bytes
    if m:
        return dies.get((die.unit.section, int(m[1], 16)))
    m = value and re.search(r"signature: 0x([0-9a-f]+)", value)
    return types.get(int(m[1], 16)) if m else None


def origins(dies, types, die):
    while die:
        yield die
        die = reference(dies, types, die, "specification") or reference(dies, types, die, "abstract_origin")


def qualified(dies, types, die):
    """The name with its scopes; a function that has no name there is "?"."""
    parts = []
    while die and die.parent:
        whole = reference(dies, types, die, "signature")
        if whole and "name" not in die.attr:
            die = whole
        name = next((string(d.attr["name"]) for d in origins(dies, types, die) if "name" in d.attr), None)
        if die.tag == "subprogram":
            parts.append(name + "()" if name else "?")
        elif die.tag != "lexical_block":
            parts.append(name or "(anonymous namespace)")
        die = list(origins(dies, types, die))[-1].parent
    return "::".join(reversed(parts))


def plain(name):
    """One spelling for all compilers and the demangler."""
    name = re.sub(r"\[abi:\w+\]", "", name).replace("(anonymous namespace)", "@")
    name = re.sub(r"\([^()]*\)(?: const)?", "()", name).replace("long unsigned int", "unsigned long")
    name = re.sub(r"(\d)[uUlL]*\b", r"\1", name)
    return re.sub(r"\s+", "", name)


symbols, stem, words = {}, {}, {}
word = Words(original).at
table = run("readelf", "-sW", folded)
for m in re.findall(r"^ *\d+: (\w+) +(\w+) OBJECT +(\w+) +\w+ +(?!UND)\w+ (_ZT[VC][^\s@]+)$", table, re.M):
    symbols[int(m[0], 16)] = (int(m[1], 0), m[3])
names = run("c++filt", input="\n".join(n for _, n in symbols.values())).split("\n")
demangled = {}
for (_, n), text in zip(symbols.values(), names):
    text = re.sub(r"^vtable for ", "", text)
    demangled[n] = re.sub(r"^construction vtable for (.*)-in-.*$", r"\1", text)
times = {}
for _, n in symbols.values():
    times[n] = times.get(n, 0) + 1

new = {}
for line in open(mapfile):
    w = line.split(None, 3)
    new[int(w[0], 16)] = int(w[2], 16)
sharing = {}
for old, to in new.items():
    sharing.setdefault(to, []).append(old)

dies, types = read_dies(folded)
before, before_types = read_dies(original)
declared_in = {}  # address of a function -> the classes in which it is declared: offset, or signature
for d in before.values():
    if d.tag == "subprogram":
        m = re.search(r"(0x[0-9a-f]+)$", d.attr.get("low_pc", ""))
        if m:
            last = list(origins(before, before_types, d))[-1]
            if last.parent is not None:
                declared_in.setdefault(int(m[1], 16), set()).add(last.parent.attr.get("signature", last.parent.off))

have = {}
for d in dies.values():
    if d.tag != TAG:
        continue
    m = re.search(r"DW_OP_addr: ([0-9a-f]+)\)", d.attr.get("location", ""))
    kind = reference(dies, types, d, "type")
    if not m or not kind or set(d.attr) != {"location", "type"}:
        problems.append("entry <%x>: %s" % (d.off, d.attr))
        continue
    at = int(m[1], 16)
    if at in have:
        problems.append("two entries for %x" % at)
    have[at] = kind
    if at not in symbols:
        problems.append("no vtable at %x" % at)
        continue
    size, name = symbols[at]
    got, want = plain(qualified(dies, types, kind)), plain(demangled[name])
    if "?" in got:
        want = re.sub(r"\w+\(\)::", "?::", want)
    if kind.tag not in ("class_type", "structure_type") or "declaration" in kind.attr or got != want:
        problems.append("%s is of class %s (%s)" % (demangled[name], got, kind.tag))
    if times[name] > 1:
        slots = [word(a) for a in range(at, at + size, 8)]
        if not any({kind.off, d.attr["type"]} & declared_in.get(f, set()) for f in slots):
            problems.append("%s at %x: another class of that name" % (demangled[name], at))
missing = []
wanted = 0
for at, (size, name) in sorted(symbols.items()):
    if any(len(sharing.get(new.get(word(a)), ())) > 1 for a in range(at, at + size, 8)):
        wanted += 1
        if at not in have:
            missing.append(demangled[name])
    elif at in have:
        problems.append("%s has no slot that matters" % demangled[name])
for m in missing:
    if m not in left_out:
        problems.append("no entry for " + m)
for p in problems[:20]:
    print(p)
print("%d vtables with shared functions, %d described, %d left out, %d wrong" % (wanted, len(have), len(missing), len(problems)))
sys.exit(bool(problems) or not have)
