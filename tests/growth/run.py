#!/usr/bin/env python3
"""run.py: time, memory and output of every command for N, 2N, 4N and 8N of each thing that gen.py makes.

run.py [--tool ICFOLD] [--work DIR] [--scale X] [--limit SECONDS] [KIND[/COMMAND]]...
From 2N to 8N time, memory and output may grow by at most 4^1.2, beyond what every process needs (START, MEMORY, OUTPUT).  A time is
processor time of user and system; below two seconds it is the least of three runs, so that a busy machine makes little difference.  If a
time grows by more, instructions are counted instead (by `perf stat` if it works, else by valgrind), since caches are not judged.  What a
command prints may grow as the names that it is asked for (says=names: N names of N letters), and its time likewise.  A command that takes
longer than the limit is not run with larger N.  fold must end with status 0 and verify with "equal", unless the kind names a reason for
which they refuse the file (refused=, refused_verify=).  If fold refuses a file, the other commands are not run.

Each line ends with the exponents of time and memory from 2N to 8N, if they can be measured.
"""
import argparse
import math
import os
import resource
import shutil
import subprocess
import sys


HERE = os.path.dirname(os.path.abspath(__file__))
GEN, CORE = os.path.join(HERE, "gen.py"), os.path.join(HERE, "core.py")
POWER = 1.2
START, MEMORY, OUTPUT = 0.03, 24 << 20, 1 << 20  # below these, growth is not judged
PRINTS = ("symbolize", "symbolize-json", "core", "dump", "breakpad", "gsym")  # names for each address, or each function that was folded


def commands(tool, path):
    folded = path + ".folded"
    return {
        "fold": [tool, "-q", path, "-o", folded],
        "fold-all": [tool, "-q", "--icf=all", path, "-o", path + ".all"],
        "verify": [tool, "verify", path, folded],
        "audit": [tool, "audit", path],
        "audit-why": [tool, "audit", "--json", "--why=*", path],
        "audit-html": [tool, "audit", "--html=" + path + ".html", path],
        "symbolize": [tool, "symbolize", "-i", "-e", folded],
        "symbolize-json": [tool, "symbolize", "--output-style=JSON", "-e", folded],
        "core": [tool, "symbolize", "--core=" + path + ".core", "-i", "-e", folded],
        "dump": [tool, "dump", folded],
        "inlines": [tool, "inlines", "f", folded],
        "breakpad": [tool, "symbols", "--format=breakpad", folded],
        "gsym": [tool, "symbols", "--format=gsym", folded],
    }


class Point:
    """One run."""
    def __init__(self, time, memory, status, output, text):
        self.time, self.memory, self.status, self.output, self.text = time, memory, status, output, text


def run(argv, stdin, limit, out):
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            for fd, name in ((1, ".out"), (2, ".err")):
                os.dup2(os.open(out + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
            os.execv(argv[0], argv)
        finally:
            os._exit(127)
    _, status, use = os.wait4(pid, 0)
    text = ""
    for name in (".out", ".err"):
        with open(out + name, "rb") as f:
            f.seek(max(0, os.path.getsize(out + name) - 300))
            text += f.read().decode(errors="replace")
    return Point(use.ru_utime + use.ru_stime, use.ru_maxrss << 10, os.waitstatus_to_exitcode(status), os.path.getsize(out + ".out"), text)


def measure(argv, stdin, limit, out):
    p = run(argv, stdin, limit, out)
    for _ in range(2 if START < p.time < 2 else 0):
        p.time = min(p.time, run(argv, stdin, limit, out).time)
    return p


def ended(name, p, options):
    """What is wrong with how the command ended, or None."""
    if p.status < 0:
        return "signal %d" % -p.status
    if name.startswith("fold"):
        if p.status == 1 and options.get("refused", "-") in p.text:
            return None
        return "exit status %d: %s" % (p.status, p.text.strip()[-150:]) if p.status else None
    if name == "verify":
        if p.status == 2 and options.get("refused_verify", "-") in p.text:
            return None
        return None if p.status == 0 and p.text.strip().endswith("equal") else "exit status %d: %s" % (p.status, p.text.strip()[-150:])
    if name == "dump" and p.status == 2 and "nothing was folded in it" in p.text:
        return None  # as its manual page says of such a file
    good = (0, 1) if name == "inlines" else (0,)  # inlines: there is none
    return None if p.status in good else "exit status %d: %s" % (p.status, p.text.strip()[-150:])


def exponent(a, b):
    return math.log(b / a, 4) if a > 0 and b > 0 else 0


def law(points, factor, judged=("time", "memory", "output")):
    """What breaks the law for N, 2N, 4N, 8N, or None.  FACTOR: how much faster the printed names grow."""
    if len(points) < 4:
        return "too slow to go on"
    a, b = points[1], points[3]
    for name, floor, more in (("time", START, factor), ("memory", MEMORY, 1), ("output", OUTPUT, factor)):
        if name in judged and getattr(b, name) > max(getattr(a, name), floor) * (4 * more) ** POWER:
            return name
    return None


def counts_by_perf():
    got = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True) if shutil.which("perf") else None
    return got is not None and got.returncode == 0 and got.stderr.split(",")[0].isdigit()


def instructions(argv, stdin, log, by_perf):
    with open(stdin) as source:
        how = ["perf", "stat", "-x,", "-e", "instructions:u", "-o", log] if by_perf else \
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=" + log]
        # Valgrind's heap ends after 8 MB, and malloc leaves ENOMEM behind, after which verify looks a second time.
        env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000"}
        subprocess.run(how + argv, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    with open(log) as f:
        if by_perf:
            return max(int(line.split(",")[0]) for line in f if line[:1].isdigit())
        return max(int(line.split(":")[1]) for line in f if "Collected" in line)


class Bench:
    def __init__(self, args):
        self.args, self.tool, self.wrong = args, os.path.abspath(args.tool), 0
        self.by_perf = counts_by_perf()
        self.can_count = not args.no_count and (self.by_perf or shutil.which("valgrind"))

    def make(self, kind, m, options):
        # Other processes: what this one takes would count as that of those who begin as its copies.
        subprocess.run([sys.executable, GEN, kind, str(m), self.args.work], check=True)
        return os.path.join(self.args.work, "%s.%d" % (kind, m))

    def judge(self, kind, n, name, got, options):
        factor = 4 if options.get("says") == "names" and name in PRINTS else 1
        why = next((w for w in (ended(name, p, options) for p in got) if w), None) or law(got, factor)
        if why == "time" and got[3].time < self.args.limit / 10 and self.can_count:
            path = [os.path.join(self.args.work, "%s.%d" % (kind, n * size)) for size in (2, 8)]
            few, many = [instructions(commands(self.tool, p)[name], p + ".at", p + ".count", self.by_perf) for p in path]
            why = "%d and %d instructions" % (few, many) if many > few * (4 * factor) ** POWER else law(got, factor, ("memory", "output"))
        self.wrong += why is not None
        powers = ""
        if len(got) == 4:
            powers = "; time n^%s memory n^%s" % (
                "%.2f" % exponent(got[1].time, got[3].time) if got[3].time > START else "-",
                "%.2f" % exponent(got[1].memory, got[3].memory) if got[3].memory > MEMORY else "-")
        refused = ", refused" if got and got[-1].status == (2 if name == "verify" else 1) and (name.startswith("fold") or name == "verify") else ""
        print("%sok growth/%s/%s%s  # n=%d: %s%s%s" % ("not " if why else "", kind, name, ": " + why if why else "", n,
              " ".join("%.2fs/%dM" % (p.time, p.memory >> 20) for p in got), powers, refused), flush=True)

    def kind(self, kind, n, options, wanted):
        points = {}
        for size in (1, 2, 4, 8):
            path = self.make(kind, n * size, options)
            for name, argv in commands(self.tool, path).items():
                if any(wanted) and name not in wanted and name != "fold":
                    continue
                if name == "core":
                    if not os.path.exists(path + ".folded"):
                        continue
                    more = [options["core"], str(n * size)] if "core" in options else []
                    subprocess.run([sys.executable, CORE, path + ".folded", path + ".at", path + ".core", *more], check=True)
                if path + ".folded" in argv and name not in ("fold", "verify") and not os.path.exists(path + ".folded"):
                    continue
                if name == "verify" and points["fold"][-1].status:
                    continue
                got = points.setdefault(name, [])
                if got and (got[-1].status < 0 or got[-1].time * 5 > self.args.limit):
                    continue
                got.append(measure(argv, path + ".at", self.args.limit, path))
            for f in os.listdir(self.args.work) if size in (1, 4) else ():
                if f.startswith("%s.%d" % (kind, n * size)):
                    os.unlink(os.path.join(self.args.work, f))
        refused = any(p.status for p in points["fold"]) and "refused" in options
        for name, got in points.items():
            if not (refused and len(got) < 4 and not name.startswith("fold")):
                self.judge(kind, n, name, got, options)
        for f in os.listdir(self.args.work):
            os.unlink(os.path.join(self.args.work, f))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="build/icfold")
    parser.add_argument("--work", required=True)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--no-count", action="store_true", help="judge by seconds alone")
    parser.add_argument("only", nargs="*")
    args = parser.parse_args()
    bench = Bench(args)
    os.makedirs(args.work, exist_ok=True)
    kinds = subprocess.run([sys.executable, GEN, "--list"], capture_output=True, text=True, check=True).stdout
    for line in kinds.splitlines():
        kind, n, *options = line.split()
        wanted = [o.partition("/")[2] for o in args.only if o.partition("/")[0] == kind]
        if args.only and not wanted:
            continue
        bench.kind(kind, max(2, int(int(n) * args.scale)), dict((o.split("=")[0], o.split("=", 1)[1].replace("_", " ")) for o in options), wanted)
    return bench.wrong != 0


if __name__ == "__main__":
    sys.exit(main())
