#!/usr/bin/env python3
"""growth_run.py: time and memory of every command for N, 2N, 4N and 8N of each thing that growth_gen.py makes.

growth_run.py [--tool ICFOLD] [--work DIR] [--scale X] [--limit SECONDS] [KIND[/COMMAND]]...
From 2N to 8N neither may grow by more than 4^1.2, counted from what a process needs anyway (START, MEMORY); a time is user
seconds, the least of three.  Where it grows by more, instructions are counted instead (by valgrind, which makes programs of
fifty times slower: caches and other processes are not what is judged).  A command that takes longer than the limit is not run
with more.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys


GEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "growth_gen.py")
POWER = 1.2
START, MEMORY = 0.06, 24 << 20  # below this, nothing is told of growth


def commands(tool, path):
    folded = path + ".folded"
    return {
        "fold": [tool, "-q", path, "-o", folded],
        "fold-all": [tool, "-q", "--icf=all", path, "-o", path + ".all"],
        "verify": [tool, "verify", path, folded],
        "audit": [tool, "audit", path],
        "audit-html": [tool, "audit", "--html=" + path + ".html", path],
        "symbolize": [tool, "symbolize", "-i", "-e", folded],
        "symbolize-json": [tool, "symbolize", "--output-style=JSON", "-e", folded],
        "dump": [tool, "dump", folded],
        "inlines": [tool, "inlines", "f", folded],
    }


def run(argv, stdin, limit):
    """(user seconds, most memory, exit status)"""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
            os.dup2(os.open(argv[-1] + ".err" if os.path.isdir(os.path.dirname(argv[-1])) else "/dev/null", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.execv(argv[0], argv)
        finally:
            os._exit(127)
    _, status, use = os.wait4(pid, 0)
    return use.ru_utime, use.ru_maxrss << 10, os.waitstatus_to_exitcode(status)


def measure(argv, stdin, limit):
    seconds, memory, status = run(argv, stdin, limit)
    for _ in range(2 if START < seconds < 2 else 0):
        again = run(argv, stdin, limit)
        seconds = min(seconds, again[0])
    return seconds, memory, status


def law(points, judged=("time", "memory")):
    """What breaks the law in (seconds, memory, status) for N, 2N, 4N, 8N, or None."""
    for p in points:
        if p[2] not in (0, 1, 2):
            return "exit status %d" % p[2]
    if len(points) < 4:
        return "too slow to go on"
    for i, name, floor in ((0, "time", START), (1, "memory", MEMORY)):
        if name in judged and points[3][i] > max(points[1][i], floor) * 4 ** POWER:
            return name
    return None


def instructions(argv, stdin):
    log = argv[-1] + ".count"
    with open(stdin) as source:
        subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=" + log, *argv], stdin=source,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(log) as f:
        return max(int(line.split(":")[1]) for line in f if "Collected" in line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="build/icfold")
    parser.add_argument("--work", required=True)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--no-count", action="store_true", help="judge by seconds alone")
    parser.add_argument("only", nargs="*")
    args = parser.parse_args()
    tool, wrong = os.path.abspath(args.tool), 0
    os.makedirs(args.work, exist_ok=True)
    kinds = subprocess.run([sys.executable, GEN, "--list"], capture_output=True, text=True, check=True).stdout
    for kind, n in (line.split() for line in kinds.splitlines()):
        n = max(2, int(int(n) * args.scale))
        wanted = [o.partition("/")[2] for o in args.only if o.partition("/")[0] == kind]
        if args.only and not wanted:
            continue
        points = {}
        for size in (1, 2, 4, 8):
            m = n * size
            # Another process: what this one takes would count as theirs, who begin as its copies.
            subprocess.run([sys.executable, GEN, kind, str(m), args.work], check=True)
            path = os.path.join(args.work, "%s.%d" % (kind, m))
            for name, argv in commands(tool, path).items():
                if any(wanted) and name not in wanted and name != "fold":
                    continue
                got = points.setdefault(name, [])
                if got and (got[-1][2] not in (0, 1, 2) or got[-1][0] * 5 > args.limit):
                    continue
                got.append(measure(argv, path + ".at", args.limit))
            for f in os.listdir(args.work) if size in (1, 4) else ():
                if f.startswith("%s.%d" % (kind, m)):
                    os.unlink(os.path.join(args.work, f))
        for name, got in points.items():
            why = law(got)
            if why == "time" and got[3][0] < args.limit / 10 and not args.no_count and shutil.which("valgrind"):
                path = [os.path.join(args.work, "%s.%d" % (kind, n * size)) for size in (2, 8)]
                small, large = [instructions(commands(tool, p)[name], p + ".at") for p in path]
                why = "%d and %d instructions" % (small, large) if large > small * 4 ** POWER else law(got, ("memory",))
            wrong += why is not None
            print("%sok growth/%s/%s%s  # n=%d: %s" % ("not " if why else "", kind, name, ": " + why if why else "", n,
                  " ".join("%.2fs/%dM" % (s, r >> 20) for s, r, _ in got)), flush=True)
        for f in os.listdir(args.work):
            os.unlink(os.path.join(args.work, f))
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
