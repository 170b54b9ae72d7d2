#!/usr/bin/env python3
"""alloc_sweep.py: every allocation of a command fails, one run for each.

alloc_sweep.py --tool ICFOLD --lib FAIL_ALLOC.SO [--every N] [--jobs N] [--only REGEX] IN=OUT...
For n = 1, 2, ... up to the number of allocations that the command makes: the n-th one fails, and in a second run the n-th and
all after it.  Each run must say `icfold: ... out of memory` and exit with 1 or 2, without a signal and without an output, or
give exactly what the command gives when nothing fails.  (If libdw or libelf, which verify uses, crash on a failing
allocation of their own, and icfold says so, this is reported but is no failure.)  --every N takes every N-th n, --only the
commands of that name.  Prints a line a command.
"""
import argparse
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile

STATE = {}
THEIRS = "in a library"


def text(pair, kind):
    """A stack of the folded file in a log or a profile, or branches."""
    out = pair.path["out"]
    at = [int(a, 16) for a in pair.ask["out"]]
    names = [next(n for v, size, n in pair.elf["out"].functions() if v <= a < v + size) for a in at]
    with open(out + "." + kind, "w") as f:
        if kind == "log":
            f.writelines("    #%d 0x%x  (%s+0x%x)\n" % (i, a, out, a) for i, a in enumerate(at))
        elif kind == "perf":
            f.write("p 7 1.0: 1 cycles:u: \n")
            f.writelines("\t%16x %s (%s)\n" % (a, n, out) for a, n in zip(at, names))
        else:
            f.write(" %x  %s \n" % (at[0], "  ".join("0x%x/0x%x/P/-/-/0" % x for x in zip(at, at[1:]))))
    return out + "." + kind


def commands(pair):
    in_, out = pair.path["in"], pair.path["out"]
    ask, ask_out = pair.ask["in"], pair.ask["out"]
    return {
        "fold": ["fold", "-q", "--threads=1", in_, "-o", "OUT"],
        "fold with threads": ["fold", "-q", "--threads=4", in_, "-o", "OUT"],
        "fold with reports": ["fold", "-q", "--threads=1", "--icf=all", "--emit-relocs", "--print-icf-sections", "--map=LINK",
                              "--stats=text", "-v", in_, "-o", "OUT"],
        "symbolize": ["symbolize", "-e", in_, "-a"] + ask,
        "symbolize a folded file": ["symbolize", "--output-style=JSON", "-e", out] + ask_out + ["main"],
        "symbolize --stack": ["symbolize", "--stack", "-e", out] + ask_out,
        "symbolize --log": ["symbolize", "--log", text(pair, "log")],
        "symbolize --perf": ["symbolize", "--perf", "-e", out, text(pair, "perf")],
        "profile": ["profile", "-q", out, text(pair, "perf")],
        "profile, collapsed": ["profile", "-q", "--to=collapsed", out, text(pair, "perf")],
        "profile, pprof": ["profile", "-q", "--to=pprof", out, text(pair, "perf")],
        "profile, bolt": ["profile", "-q", "--to=bolt", out, text(pair, "branches")],
        "inlines": ["inlines", pair.name, in_],
        "symbols": ["symbols", "--format=breakpad", out],
        "symbols, gsym": ["symbols", "--format=gsym", out],
        "symbols, json": ["symbols", "--format=json", out],
        "dump": ["dump", "--all", out],
        "audit": ["audit", "--threads=1", "--json", in_],
        "audit --why": ["audit", "--threads=1", "--json", "--why=*", in_],
        "verify": ["verify", "--threads=1", in_, out],
        "verify without debug information": ["verify", "--threads=1", "--no-debug", in_, out],
    }


def run(args, fail, trace=False):
    """(status, signal, error text, standard output, output files by name)"""
    work = STATE["work"] + "/%d" % os.getpid()
    os.makedirs(work + "/d", exist_ok=True)
    # A link like /dev/stdout; the machine's own must not be replaced.
    link = work + "/stdout-link"
    if not os.path.islink(link):
        os.symlink("/proc/self/fd/1", link)
    args = [{"OUT": work + "/d/out", "--map=LINK": "--map=" + link}.get(a, a) for a in args]
    env = dict(STATE["env"], LD_PRELOAD=STATE["lib"])
    if fail is None:
        env["FAIL_ALLOC_COUNT"] = work + "/count"
    else:
        env["FAIL_ALLOC"] = fail
    if trace:
        env["FAIL_ALLOC_TRACE"] = "1"
    status, sig, _, text = hostile.spawn(STATE["tool"], args, work + "/stdout", work + "/stderr", env)
    with open(work + "/stdout", "rb") as f:
        printed = f.read()
    left = {}
    for n in os.listdir(work + "/d"):
        with open(work + "/d/" + n, "rb") as f:
            left[n] = f.read()
        os.unlink(work + "/d/" + n)
    if not os.path.islink(link):
        os.unlink(link)
        left["a file instead of the link to standard output"] = b""
    count = 0
    if fail is None:
        with open(work + "/count") as f:
            count = int(f.read())
    return status, sig, text, printed, left, count


def steady(name, printed):
    """What does not change from run to run."""
    return printed if "reports" not in name else None


def theirs(args, fail):
    """Did the allocation that failed belong to libdw or libelf, which do not look at all of theirs?"""
    frames = re.findall(r"^(\S+)\(", run(args, fail, True)[2], re.M)
    own = [f for f in frames if "fail_alloc" not in f and "/libc.so" not in f]
    return bool(own) and ("/libdw" in own[0] or "/libelf" in own[0])


def try_one(job):
    name, args, fail, good = job
    status, sig, text, printed, left, _ = run(args, fail)
    # The C library's message for a failed assertion in libdw.
    lines = [line for line in text.splitlines() if args[0] != "verify" or not (line == "Unexpected error." or "Assertion `" in line)]
    if status is None:
        return name, fail, hostile.no_end(sig) or "signal %d %s" % (sig, text[-200:])
    if any("link" in n for n in left):
        return name, fail, "exit status %s, left %s" % (status, " ".join(left))
    if status == 0 and good[0] == 0:
        if good[1] is not None and printed != good[1]:
            return name, fail, "exit status 0, but prints other things: %s" % printed[-100:]
        if left != good[2]:
            return name, fail, "exit status 0, but another output"
        return name, fail, None
    if status not in (1, 2):
        return name, fail, "exit status %d: %s" % (status, text[:200])
    if status == 2 and "libdw cannot read the debug information, and crashed" in text and theirs(args, fail):
        return name, fail, THEIRS
    if "out of memory" not in text:
        return name, fail, "exit status %d without \"out of memory\": %s %s" % (status, text[:200], printed[-200:] if not text else "")
    if len(lines) > hostile.LINES or any(not line.startswith("icfold: ") for line in lines if "with reports" not in name):
        return name, fail, "complaint of %d lines: %s" % (len(lines), text[:200])
    if left and "reports" not in name:
        return name, fail, "left " + " ".join(left)
    return name, fail, None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tool", required=True)
    p.add_argument("--lib", required=True)
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--work")
    p.add_argument("--only")
    p.add_argument("pair", nargs="+")
    o = p.parse_args()
    work = tempfile.mkdtemp(prefix="alloc.", dir=o.work)
    STATE.update(tool=os.path.abspath(o.tool), lib=os.path.abspath(o.lib), work=work, env=dict(os.environ, LC_ALL="C"))
    signal.signal(signal.SIGALRM, hostile.on_alarm)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failed = 0
    try:
        for spec in o.pair:
            pair = hostile.Pair(*spec.split("="))
            for name, args in commands(pair).items():
                if o.only and not re.search(o.only, name):
                    continue
                status, sig, text, printed, left, count = run(args, None)
                what = "alloc/%s/%s" % (os.path.basename(pair.path["in"]), name)
                if status != 0:
                    print("not ok %s: status %s, signal %s without any failure: %s" % (what, status, sig, text[:200]))
                    failed += 1
                    continue
                good = status, steady(name, printed), left
                jobs = [(name, args, "%d%s" % (n, more), good) for n in range(1, count + 1, o.every) for more in ("", "+")]
                with multiprocessing.Pool(o.jobs) as pool:
                    bad = [r for r in pool.imap(try_one, jobs, 4) if r[2]]
                lib = [r[1] for r in bad if r[2] == THEIRS]
                bad = [r for r in bad if r[2] != THEIRS]
                if lib:
                    print("# %s: libdw or libelf crash without this memory of theirs: FAIL_ALLOC=%s" % (what, " ".join(lib)))
                for _, fail, why in bad[:12]:
                    print("# %s: FAIL_ALLOC=%s: %s" % (what, fail, why.replace("\n", " | ")))
                if bad:
                    failed += 1
                    kinds = {}  # by complaint without numbers: the first
                    for _, fail, why in bad:
                        kinds.setdefault(re.sub(r"0x[0-9a-f]+|[0-9]+", "N", why), "FAIL_ALLOC=%s: %s" % (fail, why.replace("\n", " | ")[:200]))
                    print("not ok %s: %d of %d runs (%d allocations): %s" % (what, len(bad), len(jobs), count, "; ".join(list(kinds.values())[:4])))
                else:
                    print("ok %s: %d runs (%d allocations)" % (what, len(jobs), count))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
