#!/usr/bin/env python3
"""growth_run.py: time and memory of every command for N, 2N, 4N and 8N of each thing that growth_gen.py makes.

growth_run.py [--tool ICFOLD] [--work DIR] [--scale X] [--limit SECONDS] [KIND[/COMMAND]]...
From 2N to 8N neither may grow by more than 4^1.2, counted from what a process needs anyway (START, MEMORY); a time is user
seconds, the least of as many runs as it takes to be sure.  A command that takes longer than the limit is not run with more.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import growth_gen

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


def law(points):
    """What is wrong with (seconds, memory, status) for N, 2N, 4N, 8N, or None."""
    if any(p[2] not in (0, 1) for p in points):
        return "exit status %d" % [p[2] for p in points if p[2] not in (0, 1)][0]
    if len(points) < 4:
        return None
    for i, name, floor, unit in ((0, "time", START, 1), (1, "memory", MEMORY, 1 << 20)):
        small, large = max(points[1][i], floor), points[3][i]
        if large > small * 4 ** POWER:
            return "%s grows from %.2f to %.2f" % (name, small / unit, large / unit)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="build/icfold")
    parser.add_argument("--work", required=True)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("only", nargs="*")
    args = parser.parse_args()
    tool, wrong = os.path.abspath(args.tool), 0
    for kind, (_, n, _) in growth_gen.KINDS.items():
        wanted = [o.partition("/")[2] for o in args.only if o.partition("/")[0] == kind]
        if args.only and not wanted:
            continue
        points = {}
        for size in (1, 2, 4, 8):
            m = max(2, int(n * args.scale)) * size
            growth_gen.make(kind, m, args.work)
            path = os.path.join(args.work, "%s.%d" % (kind, m))
            for name, argv in commands(tool, path).items():
                need = any(wanted) and name not in wanted
                if need and name != "fold":
                    continue
                got = points.setdefault(name, [])
                if got and (got[-1][2] not in (0, 1) or got[-1][0] * 5 > args.limit):
                    continue
                got.append(measure(argv, path + ".at", args.limit))
            for f in os.listdir(args.work):
                if f.startswith("%s.%d" % (kind, m)):
                    os.unlink(os.path.join(args.work, f))
        for name, got in points.items():
            why = law(got)
            if not why and len(got) < 4:
                why = "too slow to go on"
            wrong += why is not None
            print("%sok growth/%s/%s%s  # n=%d: %s" % ("not " if why else "", kind, name, ": " + why if why else "", n * args.scale,
                  " ".join("%.2fs/%dM" % (s, r >> 20) for s, r, _ in got)), flush=True)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
