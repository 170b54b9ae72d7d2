#!/usr/bin/env python3
"""goals.py [NAME...]: the figures that icfold is to reach, each with its goal beside it; exit status 1 if one is missed.

NAMEs are programs of corpus.sh (default: those of protoc, llc that are there already), or `system`.  A figure is a ratio of minima: the
two commands take turns, RUNS (5) times, so that a busy machine slows both down.  The processor time of both stands beside
it: it says what the elapsed time would be if nothing else ran.

- fold: --icf=all against the whole link by lld with --icf=all; peak memory against the input's size; one thread against two.  What
  two processors of this machine can do is beside it: two folds at once that have a thread each, against one.
- compressed: with compressed debug sections, against the plain fold and objcopy's compression of its output.
- relocations: a fold without them (the sections are removed) against one with them.
- verify: against the fold; --verify in one run against the fold without it.
- symbolize: one address against eu-addr2line; 10,000 random ones against llvm-symbolizer, time and memory.
- system: an audit of all programs and libraries of this machine against reading them four times (cat), and a second for each
  100 MB of code; with the files in memory, and, if root runs this, with none of them there.
- scale (SCALE="1 2 4 8"): the program's objects so many times over, their symbols renamed, in one link by ld.bfd; time and
  memory for each byte of the largest against the smallest.  The folder of SCALE_DIR keeps the programs."""
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ICFOLD = os.environ.get("ICFOLD", os.path.join(HERE, "../../build/icfold"))
CORPUS = os.environ.get("ICFOLD_CORPUS", os.path.expanduser("~/.cache/icfold-corpus"))
RUNS = int(os.environ.get("RUNS", "5"))
missed = 0


class Cost:
    """The least time (elapsed), processor time and memory of some runs of a command."""

    def __init__(self, command, cwd=None, stdin=None, fails=False, cold=False):
        self.command, self.cwd, self.stdin, self.fails, self.cold = command, cwd, stdin, fails, cold
        self.wall = self.cpu = float("inf")
        self.bytes = 0

    def run(self):
        if self.cold:
            drop_caches()
        with open(self.stdin or os.devnull, "rb") as source:
            start = time.monotonic()
            child = subprocess.Popen(self.command, cwd=self.cwd, stdin=source, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode and not self.fails:
            raise RuntimeError(f"status {child.returncode}: {' '.join(self.command)}")
        self.wall = min(self.wall, wall)
        self.cpu = min(self.cpu, usage.ru_utime + usage.ru_stime)
        self.bytes = max(self.bytes, usage.ru_maxrss * 1024)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def measure(*costs):
    for _ in range(RUNS):
        for c in costs:
            c.run()
    return costs


def goal(name, what, got, want, least=False, note=""):
    global missed
    met = got >= want if least else got <= want
    missed += not met
    sign = ">=" if least else "<="
    print(f"{name:8} {what:42} {got:7.2f}   goal {sign} {want:<5.2f} {'met' if met else 'MISSED':7} {note}", flush=True)


def against(name, what, a, b, want):
    goal(name, what, a.wall / b.wall, want, note=f"{a.wall:.2f} s / {b.wall:.2f} s, processor {a.cpu:.2f} s / {b.cpu:.2f} s")


def have(tool):
    return shutil.which(tool) is not None


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sections(path):
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split("]", 1)[1].split() for line in out.splitlines() if line.lstrip().startswith("[") and "]" in line]
    return {r[0]: r for r in rows if r and r[0].startswith(".")}


def addresses(path, count, to):
    ranges = [(int(r[2], 16), int(r[4], 16)) for r in sections(path).values() if len(r) > 6 and "X" in r[6]]
    rng = random.Random(1)
    with open(to, "w", encoding="ascii") as f:
        for _ in range(count):
            lo, size = rng.choices(ranges, [size for _, size in ranges])[0]
            f.write(f"{lo + rng.randrange(size):#x}\n")


def fold(source, out, *options):
    return Cost([ICFOLD, "-q", "--icf=all", "--allow-growth", *options, source, "-o", out])


def folding(name, source, work):
    out = os.path.join(work, "out")
    size = os.path.getsize(source)
    both, one = fold(source, out), fold(source, out, "--threads=1")
    pair = Cost(["sh", "-c", " & ".join(shlex.join(one.command[:-1] + [out + k]) for k in "ab") + " & wait"])
    if have("ld.lld") and os.path.exists(source + ".link"):
        link = read(source + ".link").replace("@LD@", "-fuse-ld=lld -Wl,--icf=all").replace("@OUT@", shlex.quote(out + ".lld"))
        lld = Cost(["sh", "-c", link], cwd=read(source + ".dir").strip())
        measure(lld, both, one, pair)
        against(name, "fold / lld's whole link", both, lld, 1.0)
    else:
        measure(both, one, pair)
    goal(name, "memory of the fold / input", both.bytes / size, 1.3, note=f"{both.bytes >> 20} MB / {size >> 20} MB")
    goal(name, "one thread / two threads", one.wall / both.wall, 1.7, True,
         note=f"{one.wall:.2f} s / {both.wall:.2f} s; two at once: {2 * one.wall / pair.wall:.2f}")
    return both


def compressed(name, source, work, plain):
    for how in ("zlib", "zstd"):
        packed, out, again = (os.path.join(work, x) for x in ("packed", "out", "again"))
        flag = "--compress-debug-sections=" + how
        if subprocess.run(["objcopy", flag, source, packed], stderr=subprocess.DEVNULL, check=False).returncode:
            print(f"{name:8} objcopy cannot compress with {how}")
            continue
        fold(source, out).run()
        c, alone = measure(fold(packed, again), Cost(["objcopy", flag, out, again + ".o"]))
        goal(name, f"{how}: fold / (compressing + plain fold)", c.wall / (alone.wall + plain.wall), 1.3,
             note=f"{c.wall:.2f} s / {alone.wall:.2f} s + {plain.wall:.2f} s")


def without_relocations(name, source, work, plain):
    bare, out = os.path.join(work, "bare"), os.path.join(work, "out")
    gone = [s for s in sections(source) if s.startswith(".rela.") and s not in (".rela.dyn", ".rela.plt")]
    subprocess.run(["objcopy"] + ["--remove-section=" + s for s in gone] + [source, bare], check=True, stderr=subprocess.DEVNULL)
    again = fold(source, out)
    c, _ = measure(fold(bare, out), again)
    plain.wall = min(plain.wall, again.wall)
    against(name, "fold without relocations / with", c, again, 1.15)


def verifying(name, source, work, want):
    out, proved = os.path.join(work, "out"), os.path.join(work, "proved")
    plain = fold(source, out)
    plain.run()
    proof = Cost([ICFOLD, "verify", "--icf=all", source, out])
    one_run = fold(source, proved, "--verify")
    measure(plain, proof, one_run)
    against(name, "verify / fold", proof, plain, want)
    goal(name, "memory of verify / input", proof.bytes / os.path.getsize(source), 1.5)
    against(name, "fold --verify / fold", one_run, plain, 2.5)


def symbolizing(name, source, work):
    out, one, many = (os.path.join(work, x) for x in ("out", "one", "many"))
    fold(source, out).run()
    addresses(out, 1, one)
    addresses(out, 10000, many)
    ours = Cost([ICFOLD, "symbolize", "-e", out], stdin=one)
    if have("eu-addr2line"):
        theirs = Cost(["eu-addr2line", "-i", "-f", "-C", "-e", out], stdin=one)
        for _ in range(4):
            measure(ours, theirs)
        against(name, "one address / eu-addr2line", ours, theirs, 0.8)
    tool = next((t for t in ("llvm-symbolizer-19", "llvm-symbolizer") if have(t)), None)
    if tool:
        ours, theirs = measure(Cost([ICFOLD, "symbolize", "-e", out], stdin=many), Cost([tool, "-e", out], stdin=many))
        goal(name, f"10,000 addresses: {tool} / icfold", theirs.wall / ours.wall, 4.0, True, f"{theirs.wall:.2f} s / {ours.wall:.2f} s")
        goal(name, f"their memory: icfold / {tool}", ours.bytes / theirs.bytes, 0.25,
             note=f"{ours.bytes >> 20} MB / {theirs.bytes >> 20} MB")


def multiply(name, times, folder):
    """The program of TIMES copies of NAME's objects; only the first one has its main."""
    made = os.path.join(folder, f"{name}.{times}")
    if os.path.exists(made):
        return made
    base, link = read(f"{CORPUS}/{name}.dir").strip(), shlex.split(read(f"{CORPUS}/{name}.link"))
    archives = [a for a in link if a.endswith(".a") and not a.startswith("/")]
    more = []
    for a in archives:
        nm = subprocess.run(["nm", "-g", "--defined-only", "--format=posix", os.path.join(base, a)], capture_output=True,
                            text=True, check=True).stdout
        more += [line.split()[0] for line in nm.splitlines() if len(line.split()) > 1]
        # Groups of constructors and destructors have names of their own.
        groups = subprocess.run(["readelf", "-gW", os.path.join(base, a)], capture_output=True, text=True, check=True).stdout
        more += re.findall(r"^COMDAT group section .* \[(\S+)\] contains", groups, re.M)
    extra = []
    for k in range(2, times + 1):
        renames = os.path.join(folder, "renames")
        with open(renames, "w", encoding="ascii") as f:
            f.writelines(f"{s} {s}.{k}\n" for s in sorted(set(more)))
        for a in archives:
            copy = os.path.join(folder, f"{name}.{k}.{os.path.basename(a)}")
            if not os.path.exists(copy):
                subprocess.run(["objcopy", "--redefine-syms=" + renames, os.path.join(base, a), copy], check=True)
            extra.append(copy)
    options = ["-Wl,--emit-relocs", "-Wl,--whole-archive", *extra, "-Wl,--no-whole-archive"]
    command = []
    for word in link:
        command += options if word == "@LD@" else [made if word == "@OUT@" else word]
    subprocess.run(command, cwd=base, check=True)
    return made


def scale(name, work):
    folder = os.environ.get("SCALE_DIR", work)
    os.makedirs(folder, exist_ok=True)
    first = {}
    times = [int(n) for n in os.environ.get("SCALE", "").split()]
    for n in times:
        source, out, many = multiply(name, n, folder), os.path.join(work, "out"), os.path.join(work, "many")
        size = os.path.getsize(source)
        steps = {"fold": fold(source, out)}
        measure(steps["fold"])
        addresses(out, 10000, many)
        steps["verify"] = Cost([ICFOLD, "verify", "--icf=all", source, out])
        steps["audit"] = Cost([ICFOLD, "audit", source])
        steps["symbolize 10,000"] = Cost([ICFOLD, "symbolize", "-e", out], stdin=many)
        measure(*[c for step, c in steps.items() if step != "fold"])
        for step, c in steps.items():
            per = (c.cpu / size, c.bytes / size)
            note = f"{size >> 20} MB: {c.wall:.2f} s, processor {c.cpu:.2f} s, {c.bytes >> 20} MB"
            if step not in first:
                first[step] = per
                print(f"{name:8} x{n} {step:39} {note}", flush=True)
                continue
            goal(name, f"x{n} {step}: processor time a byte", per[0] / first[step][0], 1.15, note=note)
            goal(name, f"x{n} {step}: memory a byte", per[1] / first[step][1], 1.15)


def system(work):
    folders = ["/usr/bin", f"/usr/lib/{os.uname().machine}-linux-gnu"]
    files = {}
    for folder in folders:
        for at, _, names in os.walk(folder):
            for path in (os.path.join(at, n) for n in names):
                if os.path.isfile(path) and not os.path.islink(path):
                    files[os.stat(path).st_ino] = path
    everything = os.path.join(work, "files")
    with open(everything, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write("\0".join(files.values()))
    report = subprocess.run([ICFOLD, "audit", *folders], capture_output=True, text=True, check=False).stdout
    code = int(re.search(r"(\d+) bytes of code", report).group(1))
    for state in ("warm", "cold"):
        cold = state == "cold"
        if cold and not os.access("/proc/sys/vm/drop_caches", os.W_OK):
            print("system   cold: only root can measure it")
            continue
        cat, audit = measure(Cost(["xargs", "-0", "cat"], stdin=everything, cold=cold),
                             Cost([ICFOLD, "audit", *folders], fails=True, cold=cold))
        goal("system", f"{state}: audit / (4 cat + 1 s for 100 MB code)", audit.wall / (4 * cat.wall + code / 1e8), 1.0,
             note=f"{audit.wall:.2f} s / 4 * {cat.wall:.2f} s + {code / 1e8:.2f} s")
    goal("system", "memory of one process, in GB", audit.bytes / 1e9, 2.0)


def main():
    names = sys.argv[1:] or [n for n in ("protoc", "llc") if os.path.exists(os.path.join(CORPUS, n))]
    if not names:
        print("bench: no programs with goals (tests/corpus.sh protoc builds one)")
    for name in names:
        if name == "system":
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
                system(work)
            continue
        source = os.path.join(CORPUS, name)
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
            debug = ".debug_info" in sections(source)
            if os.environ.get("SCALE"):
                scale(name, work)
                continue
            plain = folding(name, source, work)
            without_relocations(name, source, work, plain)
            verifying(name, source, work, 2.0 if debug else 1.5)
            if debug:
                compressed(name, source, work, plain)
                symbolizing(name, source, work)
    sys.exit(missed > 0)


main()
