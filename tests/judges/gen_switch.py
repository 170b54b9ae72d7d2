#!/usr/bin/env python3
"""gen_switch.py: random programs full of switches, and whether folding them without relocations goes as with them.

  gen_switch.py SEED                      prints the program of that seed, its build options as a comment at the start
  gen_switch.py --check ICFOLD DIR SEED...  builds each in DIR, linked with --emit-relocs and without, folds both, runs all;
                                          one line a seed ("ok", "not ok", "skip"); KEEP=1 leaves the files of what failed

Where both links have the same .text, the two outputs must have the same .text, .rodata and .eh_frame; otherwise the saving
without relocations must be at least 95 % of the other.  All outputs must print what the unfolded program prints.

TARGET=aarch64: for that machine, by tools in PATH that work for it; RUN is what runs its programs (tests/lib.sh, use_target)."""
import os
import random
import shutil
import subprocess
import sys

TARGET = os.environ.get("TARGET", "")
RUN = os.environ.get("RUN", "").split()
# The options of x86-64, and what they are elsewhere.
ELSEWHERE = {"-fcf-protection=full": "-mbranch-protection=standard", "-fcf-protection=none": "-mbranch-protection=none", "-march=haswell": "-march=armv8.2-a"}

TYPES = ["uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t"]

HEAD = """#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif
jmp_buf escape;
uint64_t sink, source = 3;
volatile uint32_t weather;
struct bits { unsigned a : 3; unsigned b : 5; int c : 4; uint64_t d : 40; };
struct record { uint8_t kind; int16_t tag; uint32_t flags; struct bits bits; };
__attribute__((noreturn, NOINLINE_COLD)) void die(int n);
NOINLINE uint64_t mix(uint64_t a, uint64_t b);
"""

TAIL = """
NOINLINE uint64_t mix(uint64_t a, uint64_t b) { a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2); return a; }
void die(int n) { sink += (uint64_t)n; longjmp(escape, 1); }
"""


class Gen:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.labels = 0

    def pick(self, *v):
        return self.r.choice(v)

    def chance(self, p):
        return self.r.random() < p

    def statement(self, depth):
        r = self.r
        k = r.randrange(1, 1 << 16)
        return r.choice([
            f"a += {k};", f"a ^= {k}u * b;", f"b = mix(a, {k});", f"a = mix(b, a + {k});", f"c = (uint32_t)(a >> {k % 17}) + {k};",
            f"a = a * {k | 1} + c;", f"sink += a; b += {k};", f"b -= c; a += b << {k % 7};", f"weather += {k};", f"d[{k % 8}] += a; a += d[{(k >> 3) % 8}];",
            f"if (a & {1 << (k % 13)}) b ^= {k}; else c += {k};", f"source ^= a;"])

    def index(self):
        r = self.r
        t = r.choice(TYPES)
        return r.choice([f"({t})x", f"({t})x", f"({t})(x - {r.randrange(9)})", f"({t})(x >> {r.randrange(3)})", "x & %d" % ((1 << r.randrange(2, 6)) - 1),
                         "q->kind", "q->tag", "q->flags", "q->bits.a", "q->bits.b", "q->bits.c", "q->bits.d", f"({t})mix(x, 1)", f"({t})weather", "d[x & 7]",
                         f"({t})d[2]", "*(const uint8_t *)q", f"({t})source", f"({t})a", "(enum e)(x & 15)"])

    def cases(self, depth, n, exact, in_loop):
        r = self.r
        lo = 0 if exact else r.choice([0, 0, 0, 1, -3, 10, 100, -128])
        values = [lo + i for i in range(n)]
        if not exact and self.chance(0.4):
            values = [v for v in values if not self.chance(0.3)] or values
        if not exact and self.chance(0.15):
            values += [lo + n + 5 + i for i in range(r.randrange(1, 5))] + [r.randrange(1000, 2000)]
        if self.chance(0.3):
            r.shuffle(values)
        body = []
        groups = 0
        for v in values:
            body.append(f"case {v}:")
            if self.chance(0.15):
                continue
            groups += 1
            for _ in range(r.randrange(1, 3)):
                body.append("\t" + self.statement(depth))
            if depth < 2 and self.chance(0.06):
                body += ["\t" + s for s in self.switch(depth + 1, False)]
            p = r.random()
            if p < 0.06:
                body.append(f"\tdie({r.randrange(1000)});")
            elif p < 0.12:
                pass
            elif p < 0.2:
                body.append(f"\treturn a + {r.randrange(1000)};")
            elif p < 0.24:
                body.append("\tgoto out;")
            elif p < 0.28:
                body.append(f"\treturn mix(a, b + {r.randrange(100)});")
            elif p < 0.34 and in_loop:
                body.append("\tcontinue;")
            elif p < 0.38:
                body.append(f"\tif (__builtin_expect(a == {r.randrange(1 << 30)}, 0)) {{ die({r.randrange(9)}); }}")
                body.append("\tbreak;")
            else:
                body.append("\tbreak;")
        p = r.random()
        body.append("\tbreak;" if exact else "\t;")
        if exact:
            body.append("default: __builtin_unreachable();" if p < 0.7 else "default: die(1);")
        elif p < 0.5:
            body.append("default: " + self.statement(depth))
        elif p < 0.6:
            body.append("default: die(7);")
        elif p < 0.65:
            body.append("default: return 5;")
        return body

    def switch(self, depth, in_loop):
        r = self.r
        n = r.choice([4, 5, 6, 8, 8, 12, 16, 20, 33])
        if depth:
            n = min(n, 8)
        exact = self.chance(0.25)
        i = f"x % {n}u" if exact else self.index()
        t = f"({i})" if not exact or self.chance(0.5) else f"(({r.choice(TYPES)})({i}))"
        return [f"switch {t} {{"] + self.cases(depth, n, exact, in_loop) + ["}"]

    def computed(self):
        r = self.r
        n = r.choice([4, 8])
        names = [f"l{i}" for i in range(n)]
        out = []
        if self.chance(0.5):
            out.append("static const void *const label[] = { " + ", ".join("&&" + s for s in names) + " };")
            jump = "goto *(void *)label[%s & " + str(n - 1) + "];"
        else:
            out.append("static const int label[] = { " + ", ".join(f"&&{s} - &&l0" for s in names) + " };")
            jump = "goto *(void *)((char *)&&l0 + label[%s & " + str(n - 1) + "]);"
        out.append("unsigned steps = 0;")
        out.append(jump % "x")
        for s in names:
            out.append(f"{s}:")
            out.append("\t" + self.statement(0))
            out.append("\tif (++steps > 5) goto out;")
            out.append("\t" + jump % r.choice(["a", "b", "(a >> 3)", "(x + steps)"]))
        return out

    def function(self):
        r = self.r
        out = []
        body = []
        for _ in range(r.randrange(1, 4)):
            p = r.random()
            if p < 0.2:
                body.append(f"for (unsigned i = 0; i < {r.randrange(2, 6)}; i++, x = x * 5 + 1) {{")
                body += ["\t" + s for s in self.switch(0, True)]
                body += ["\t" + self.statement(0), "}"]
            elif p < 0.27:
                n = r.choice([4, 6, 9])
                body += [f"for (unsigned state = x % {n}u, steps = 0; steps < 9; steps++) {{", "\tswitch (state) {"]
                for i in range(n):
                    body += [f"\tcase {i}: {self.statement(0)} state = {r.choice([str(r.randrange(n)), f'(state + a) % {n}u'])}; " +
                             r.choice(["break;", "continue;"])]
                body += [r.choice(["\tdefault: __builtin_unreachable();", "\tdefault: die(3);"]), "\t}", "}"]
            else:
                body += self.switch(0, False)
            body.append(self.statement(0))
        if self.chance(0.12):
            body += self.computed()
        # Values that are live throughout, so that registers run out.
        live = r.choice([0, 0, 0, 6, 12])
        out += [f"\tuint64_t v{i} = mix(x, {r.randrange(99)});" for i in range(live)]
        out += ["\tuint64_t a = x, b = 1, d[8] = { x, 1, x >> 1, 3, 4, x ^ 5, 6, 7 };", "\tuint32_t c = 2;"]
        out += ["\t" + s for s in body]
        out += ["out: __attribute__((unused));", "\tsink ^= d[a & 7];", "\treturn a + b + c" + "".join(f" + v{i} * {i + 3}" for i in range(live)) + ";"]
        return out


def options(r):
    cc = r.choice(["gcc", "gcc", "clang", "clang-19"])
    ld = r.choice(["bfd", "bfd", "gold", "lld", "mold"])
    flags = [r.choice(["-O0", "-O1", "-O2", "-O2", "-O2", "-O3", "-Os"])]
    link = []
    for p, f in ((0.2, "-fno-plt"), (0.5, "-ffunction-sections"), (0.2, "-fcf-protection=full"), (0.1, "-fcf-protection=none"), (0.1, "-fno-omit-frame-pointer"),
                 (0.1, "-fno-asynchronous-unwind-tables"), (0.1, "-march=haswell"), (0.1, "-fstack-protector-all"), (0.1, "-fno-reorder-functions"),
                 (0.1, "-fvisibility=hidden"), (0.1, "-g")):
        if r.random() < p and not (f.startswith("-fno-reorder") and cc != "gcc"):
            flags.append(f)
    if cc == "gcc":
        for p, f in ((0.1, "-fno-reorder-blocks-and-partition"), (0.05, "-fno-tree-switch-conversion"), (0.1, "-fno-gcse"), (0.05, "-fno-tree-pre")):
            if r.random() < p:
                flags.append(f)
    if r.random() < 0.1 and (cc == "gcc" and ld == "bfd" or cc == "clang" and ld == "lld"):
        flags.append("-flto")
    for p, f in ((0.3, "-Wl,-z,now"), (0.2, "-Wl,--gc-sections"), (0.1, "-rdynamic")):
        if r.random() < p:
            link.append(f)
    if ld == "bfd" and r.random() < 0.1:
        link.append("-Wl,-z,pack-relative-relocs")
    mode = r.choice(["safe", "all"])
    if TARGET:
        flags = [ELSEWHERE.get(f, f) for f in flags]
        if cc == "clang-19":
            flags.append(f"--target={TARGET}-linux-gnu")
    return cc, ld, flags, link, mode


def program(seed):
    g = Gen(seed)
    r = g.r
    opt = options(r)
    out = [HEAD.replace(", NOINLINE_COLD", ", noinline" + (", cold" if g.chance(0.5) else "")), "enum e { E0, E15 = 15 };"]
    names = []
    for i in range(r.randrange(5, 13)):
        body = g.function()
        copies = r.choice([1, 1, 2, 2, 3])
        for k in range(copies):
            static = "static " if g.chance(0.6) else ""
            name = f"f{i}_{k}"
            attr = r.choice(["", "", "", "", "__attribute__((aligned(1))) ", "__attribute__((hot)) ", "__attribute__((cold)) "])
            out += [f"{attr}NOINLINE {static}uint64_t {name}(uint64_t x, const struct record *q)", "{"] + body + ["}"]
            names.append(name)
        if g.chance(0.15):
            out.append(f"NOINLINE uint64_t t{i}(uint64_t x, const struct record *q) {{ return f{i}_0(x + 1, q) {r.choice(['', '+ 1'])}; }}")
            names.append(f"t{i}")
    out += [TAIL, "int main(void)", "{", "\tuint64_t (*volatile table[])(uint64_t, const struct record *) = { " + ", ".join(names[::3]) + " };",
            "\tvolatile unsigned n = 0;"]
    for name in names:
        out += [f"\tfor (volatile unsigned k = 0; k < 60; k++) {{", "\t\tstruct record q = { k, (int16_t)(k * 3 - 7), k * 77, { k, k, k, k * 5 } };",
                "\t\tuint64_t got = 0;", "\t\tweather = k;", f"\t\tif (!setjmp(escape)) got = {name}(k < 40 ? k : k * 13 - 600, &q);",
                "\t\tsink = sink * 31 + got;", "\t}", f"\tprintf(\"{name} %016llx\\n\", (unsigned long long)sink);"]
    out += ["\tfor (n = 0; n < sizeof table / sizeof *table; n++) {", "\t\tstruct record q = { 1, 2, 3, { 1, 2, 3, 4 } };",
            "\t\tif (!setjmp(escape)) sink = sink * 31 + table[n](n, &q);", "\t}", "\tprintf(\"%016llx\\n\", (unsigned long long)sink);", "\treturn 0;", "}"]
    return opt, "\n".join(out) + "\n"


def run(*cmd, timeout=300):
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    return p.returncode, p.stdout


def section(path, name):
    out = path + ".section"
    open(out, "wb").close()
    rc, _ = run("objcopy", "-O", "binary", "-j", name, path, out)
    with open(out, "rb") as f:
        return f.read() if rc == 0 else b""


def text_size(path):
    rc, out = run("readelf", "-SW", path)
    total = 0
    for line in out.decode().splitlines():
        f = line.replace("[ ", "[").split()
        if len(f) > 7 and f[1] == ".text":
            total += int(f[5], 16)
    return total


def check(icfold, folder, seed):
    (cc, ld, flags, link, mode), text = program(seed)
    d = os.path.join(folder, f"s{seed}")
    os.makedirs(d, exist_ok=True)
    src, relocs, plain = d + "/p.c", d + "/relocs", d + "/plain"
    with open(src, "w") as f:
        f.write(text)
    what = " ".join([cc, ld] + flags + link + [mode])
    if not shutil.which(cc):
        return "skip", f"no {cc}", what
    rc, out = run(cc, "-std=gnu17", "-w", *flags, "-fPIE", "-c", src, "-o", d + "/p.o")
    if rc:
        return "not ok", "does not compile: " + out.decode()[:200], what
    base = [cc, *flags, "-fuse-ld=" + ld, "-pie", *link, d + "/p.o"]
    for extra, to in ((["-Wl,--emit-relocs"], relocs), ([], plain)):
        rc, out = run(*base, *extra, "-o", to)
        if rc:
            return "skip", "does not link: " + out.decode().strip()[-160:].replace("\n", " "), what
    rc, want = run(*RUN, plain)
    if rc or run(*RUN, relocs) != (0, want):
        return "not ok", f"the unfolded program fails (exit status {rc})", what
    outputs, stats = [], b""
    for src_file, to, opts in ((relocs, relocs + ".out", []), (plain, plain + ".out", []), (plain, plain + ".place", ["--in-place"])):
        rc, out = run(icfold, "-q", "--stats=json", "--icf=" + mode, *opts, src_file, "-o", to)
        if to == plain + ".out":
            stats = out
        if rc:
            return "not ok", f"icfold {' '.join(opts)} {os.path.basename(src_file)}: " + out.decode()[:200].strip(), what
        outputs.append((to, src_file))
    run("strip", plain, "-o", plain + ".strip")
    rc, out = run(icfold, "-q", "--icf=" + mode, plain + ".strip", "-o", plain + ".strip.out")
    if rc:
        return "not ok", "icfold of the stripped file: " + out.decode()[:200].strip(), what
    outputs.append((plain + ".strip.out", plain + ".strip"))
    for to, src_file in outputs:
        got = run(*RUN, to)
        if got != (0, want):
            return "not ok", f"{os.path.basename(to)} prints something else (exit status {got[0]})", what
        rc, out = run(icfold, "verify", "--icf=" + mode, src_file, to)
        if rc:
            lines = [s for s in out.decode(errors="replace").splitlines() if ": " in s and not s.endswith(" 0 wrong")]
            return "not ok", f"verify of {os.path.basename(to)}: exit status {rc}: {lines[0][:200] if lines else ''}", what
    # Distances between labels of a function with a cold part might lead into that part: the function is pinned.  If nothing folds, nothing moves.
    if ("&&l0 -" in text and b'"pinned": 0,' not in stats) or b'"folded": 0,' in stats:
        return "ok", "", what
    if section(relocs, ".text") == section(plain, ".text"):
        # lld changes the order of .eh_frame and .eh_frame_hdr.
        for s in (".text", ".rodata", ".eh_frame"):
            if section(relocs, s) == section(plain, s) and section(relocs + ".out", s) != section(plain + ".out", s):
                return "not ok", f"{s} is not what it is with relocations", what
        return "ok", "", what
    saved = text_size(relocs) - text_size(relocs + ".out")
    mine = text_size(plain) - text_size(plain + ".out")
    if mine < 0.95 * saved:
        return "not ok", f"{mine} bytes saved, {saved} with relocations", what
    return "ok", "", what


def main():
    if len(sys.argv) == 2:
        opt, text = program(int(sys.argv[1]))
        print(f"/* {opt} */\n{text}", end="")
        return 0
    if len(sys.argv) < 5 or sys.argv[1] != "--check":
        print(__doc__, file=sys.stderr)
        return 2
    bad = 0
    for seed in sys.argv[4:]:
        try:
            verdict, why, what = check(sys.argv[2], sys.argv[3], int(seed))
        except subprocess.TimeoutExpired as e:
            verdict, why, what = "not ok", f"{os.path.basename(str(e.cmd[0]))} does not end", ""
        bad += verdict == "not ok"
        name = f"switches/{seed}"
        print(f"ok {name}" if verdict == "ok" else f"{verdict} {name}: {why} ({what})", flush=True)
        if verdict != "not ok" or not os.environ.get("KEEP"):
            shutil.rmtree(os.path.join(sys.argv[3], f"s{seed}"), ignore_errors=True)
    return bad != 0


sys.exit(main())
