# callgrind.py: compares callgrind.out files: WANT (of the unfolded program), GOT (translated), RAW (of the folded program).
# Prints "N arcs, D differ, R without the translation; self N, D, R": calls by (caller, place, callee), and costs by function, of the
# program alone.  Names of functions that stay undecided are arguments: arcs that touch them do not count.
import collections, re, sys


def read(path, name):
    names, arcs, own, incl = {}, collections.Counter(), collections.Counter(), collections.Counter()
    ob = fn = cob = cfn = None
    at, n = [0, 0], 2
    calls = None

    def named(kind, text):
        m = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if not m:
            return text
        if m[2] is not None:
            names[kind, m[1]] = m[2]
        return names[kind, m[1]]

    def place(words):
        ret = []
        for i in range(n):
            w = words.pop(0)
            ret.append(at[i] if w == "*" else at[i] + int(w) if w[0] in "+-" else int(w, 0))
        return ret

    for line in open(path, errors="surrogateescape"):
        line = line.rstrip("\n")
        m = re.match(r"(c?ob|f[lie]|c?fn|cf[il]|jf[in])=(.*)$", line)
        if m:
            value = named("ob" if "ob" in m[1] else "fn" if m[1][-1] == "n" else "fl", m[2])
            base = re.sub(r"'.*", "", value)
            if m[1] == "ob":
                ob = value
            elif m[1] == "fn":
                fn = base
            elif m[1] == "cob":
                cob = value
            elif m[1] == "cfn":
                cfn = base
        elif line.startswith("positions:"):
            n = len(line.split()) - 1
        elif line.startswith("calls="):
            words = line[6:].split()
            calls = int(words.pop(0))
            target = place(words)
        elif re.match(r"jump=|jcnd=", line):
            calls = -1
        elif re.match(r"[0-9+*-]", line):
            words = line.split()
            at = place(words)
            cost = int(words[0]) if words else 0
            inside = ob and ob.endswith("/" + name)
            to = (cob or ob or "").endswith("/" + name)
            if calls is None:
                if inside:
                    own[fn] += cost
            elif calls >= 0:
                if inside or to:
                    arcs[fn, at[0] if inside else 0, cfn, target[0] if to else 0] += calls
                    incl[fn, at[0] if inside else 0, cfn] += cost
                cob = None
            calls = None
    return arcs, own, incl


def off(a, b):
    return sum(abs(a[k] - b[k]) for k in set(a) | set(b))


if __name__ == "__main__":
    want, got, raw = (read(p, n) for p, n in zip(sys.argv[1:4], ("old", "new", "new")))
    open_ = set(sys.argv[4:])
    drop = lambda c: collections.Counter({k: n for k, n in c.items() if not open_ & set(k)})
    a = [drop(x[0]) for x in (want, got, raw)]
    o = [collections.Counter({k: n for k, n in x[1].items() if k not in open_}) for x in (want, got, raw)]
    print("%d calls, %d differ, %d without the translation; self %d, %d, %d" % (
        sum(a[0].values()), off(a[0], a[1]), off(a[0], a[2]), sum(o[0].values()), off(o[0], o[1]), off(o[0], o[2])))
    for k in sorted(set(a[0]) | set(a[1]), key=str):
        if a[0][k] != a[1][k]:
            print(k[0], hex(k[1]), k[2], hex(k[3]), a[0][k], a[1][k])
    for k in sorted(set(o[0]) | set(o[1])):
        if o[0][k] != o[1][k]:
            print(k, o[0][k], o[1][k])
