"""The map of a fold (icfold --map) for the checks written in Python."""
import bisect
import collections
import subprocess


class Unit:
    __slots__ = ("old", "size", "new", "name", "kept", "thunk", "rivals")

    def __init__(self, old, size, new, name):
        self.old, self.size, self.new, self.name = old, size, new, name
        self.kept = None      # the unit whose code this one uses; itself unless folded
        self.thunk = None
        self.rivals = []      # for a kept unit: others that could be the kept one as far as the files tell


def symbols(path, names=()):
    """(address, size, name, turn) of the functions of .symtab, and of labels of NAMES; turn: how many of this name came before."""
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    at = text.find("Symbol table '.symtab'")
    ret, seen = [], collections.Counter()
    for line in text[max(at, 0):].splitlines():
        f = line.split()
        if len(f) < 8 or f[6] in ("UND", "ABS"):
            continue
        name = f[7].split("@")[0]
        if f[3] in ("FUNC", "IFUNC", "GNU_IFUNC") or (f[3] == "NOTYPE" and name in names):
            ret.append((int(f[1], 16), int(f[2], 0), name, seen[name]))
            seen[name] += 1
    return ret


def exec_sections(path):
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    ret = []
    for line in text.splitlines():
        f = line[line.index("]") + 1:].split() if line.lstrip().startswith("[") and "]" in line else []
        if len(f) > 6 and f[6] in ("AX", "WAX") and f[1] != "NULL":
            ret.append((int(f[2], 16), int(f[2], 16) + int(f[4], 16), f[0]))
    return ret


class Map:
    def __init__(self, path, inp, out):
        self.unit = []
        with open(path) as f:
            for line in f:
                w = line.split()
                if len(w) < 4 or line.startswith("#"):
                    continue
                u = Unit(int(w[0], 16), int(w[1], 16), int(w[2], 16), w[3])
                if "folded" in w[4:]:
                    u.kept = False
                self.unit.append(u)
        self.unit.sort(key=lambda u: u.old)
        self.old = [u.old for u in self.unit]
        self.in_symbols = symbols(inp)
        # A folded function's name is a label at the shared code.
        self.out_symbols = symbols(out, {name for _, _, name, _ in self.in_symbols})
        names, sized = collections.defaultdict(set), collections.defaultdict(set)
        for a, s, n, turn in self.in_symbols:
            if s:
                names[a].add((n, turn))
        for a, s, n, turn in self.out_symbols:
            if s:
                sized[a].add((n, turn))
        groups = collections.defaultdict(list)
        for u in self.unit:
            groups[u.new].append(u)
        last = -1
        self.kept = []
        # Without marks: a folded function's symbol has size 0 at the kept address (unless the kept one has no symbol:
        # such maps need marks); of several candidates, kept code keeps its order.
        for new in sorted(groups):
            g = groups[new]
            c = [u for u in g if u.kept is not False] if any(u.kept is False for u in g) else g
            if len(c) > 1:
                c = [u for u in c if names[u.old] & sized[new]] or c
            k = next((u for u in c if u.old > last), c[0])
            k.rivals = [u for u in c if u is not k]
            for u in g:
                u.kept = k
            last = k.old
            self.kept.append(k)
        self.new = [k.new for k in self.kept]

    def find(self, va):
        i = bisect.bisect_right(self.old, va) - 1
        return self.unit[i] if i >= 0 and va - self.unit[i].old < self.unit[i].size else None

    def find_new(self, va):
        i = bisect.bisect_right(self.new, va) - 1
        return self.kept[i] if i >= 0 and va - self.kept[i].new < self.kept[i].size else None
