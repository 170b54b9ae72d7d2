#!/usr/bin/env python3
"""server.py [NAME...]: `icfold symbolize` on standard input, beside its goals; exit status 1 if one is missed.

NAMEs are programs of corpus.sh (default: those of protoc, llc that are there already), folded with --icf=all.

- latency: one random address of .text is written, then its answer is awaited, 1,000 times; without the first answer.  The processor
  time is that of the process between the two (Linux, /proc/PID/schedstat): elapsed time where nothing else runs.
- stacks: STACKS (100,000) stacks of depth 30, walks at random through the calls of the code: each address follows a call of the
  function of the address before."""
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ICFOLD = os.environ.get("ICFOLD", os.path.join(HERE, "../../build/icfold"))
CORPUS = os.environ.get("ICFOLD_CORPUS", os.path.expanduser("~/.cache/icfold-corpus"))
DEPTH = 30
missed = 0


def goal(name, what, got, want, note=""):
    global missed
    missed += got > want
    print(f"{name:8} {what:42} {got:7.3f}   goal <= {want:<5.2f} {'met' if got <= want else 'MISSED':7} {note}", flush=True)


def text_of(program):
    out = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    row = re.search(r" \.text +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", out)
    return int(row[1], 16), int(row[2], 16)


def latency(name, program):
    start, size = text_of(program)
    rng = random.Random(7)
    wall, cpu = [], []
    with subprocess.Popen([ICFOLD, "symbolize", "-e", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        def used():
            with open(f"/proc/{child.pid}/schedstat", encoding="ascii") as f:
                return int(f.read().split()[0]) / 1e6
        for _ in range(1001):
            before, begin = used(), time.perf_counter()
            child.stdin.write(b"%#x\n" % (start + rng.randrange(size)))
            answer = b""
            while not answer.endswith(b"\n\n"):
                answer += os.read(child.stdout.fileno(), 1 << 16)
            wall.append(1e3 * (time.perf_counter() - begin))
            cpu.append(used() - before)
        child.stdin.close()
    first, wall, cpu = wall[0], sorted(wall[1:]), sorted(cpu[1:])
    over = sum(c > 1 for c in cpu)
    goal(name, "an answer, ms: the median", wall[500], 1.0, f"processor {cpu[500]:.3f}; the first one {first:.1f}")
    goal(name, "an answer, ms: 99 of 100, processor time", cpu[990], 1.0, f"elapsed {wall[990]:.3f}; {over} of 1000 above 1 ms, at most {cpu[-1]:.1f}")


def calls_of(program):
    """By function: where each direct call returns to, and what it calls."""
    calls, function, target = {}, None, None
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", program], stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            begin = re.match(r"([0-9a-f]+) <", line)
            if begin:
                function, target = int(begin[1], 16), None
                calls[function] = []
                continue
            at = re.match(r"\s*([0-9a-f]+):\s+(?:callq?\s+([0-9a-f]+) <)?", line)
            if not at:
                continue
            if target is not None:
                calls[function].append((int(at[1], 16), target))
            target = int(at[2], 16) if at[2] else None
    return calls


def write_stacks(program, count, to):
    calls = calls_of(program)
    deep = set(calls)
    for _ in range(DEPTH):
        deep = {f for f in deep if any(t in deep for _, t in calls[f])}
    calls = {f: [c for c in calls[f] if c[1] in deep] for f in deep}
    if not calls:
        return 0
    rng, first, seen = random.Random(3), sorted(calls), set()
    with open(to, "w", encoding="ascii") as f:
        for _ in range(count):
            function, stack = rng.choice(first), []
            for _ in range(DEPTH - 1):
                site, function = rng.choice(calls[function])
                stack.append(site)
            stack.append(function)
            seen.update(stack)
            f.write("".join(f"{a:#x}\n" for a in reversed(stack)) + "\n")
    return len(seen)


def stacks(name, program, work):
    count, source = int(os.environ.get("STACKS", "100000")), os.path.join(work, "stacks")
    seen = write_stacks(program, count, source)
    if not seen:
        return
    best = float("inf")
    for _ in range(int(os.environ.get("RUNS", "5"))):
        with open(source, "rb") as f, subprocess.Popen([ICFOLD, "symbolize", "--stack", "-e", program], stdin=f,
                                                       stdout=subprocess.DEVNULL) as child:
            _, _, use = os.wait4(child.pid, 0)
            child.returncode = 0
        best = min(best, use.ru_utime + use.ru_stime)
    goal(name, f"{count:,} stacks of depth {DEPTH}, s of processor", best, 1.0, f"{seen} different addresses, {use.ru_maxrss >> 10} MB")


def main():
    for name in sys.argv[1:] or [n for n in ("protoc", "llc") if os.path.exists(os.path.join(CORPUS, n))]:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
            program = os.path.join(work, "folded")
            subprocess.run([ICFOLD, "-q", "--icf=all", os.path.join(CORPUS, name), "-o", program], check=True)
            latency(name, program)
            if text_of(program)[1] < 1 << 24: # disassembling more takes minutes
                stacks(name, program, work)
    sys.exit(missed > 0)


main()
