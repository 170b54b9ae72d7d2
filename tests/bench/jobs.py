#!/usr/bin/env python3
"""jobs.py [NAME...]: whether folded programs are slower.

Each of the programs (protoc, llc and sqlite of corpus.sh if they are there, python3 and clang-14 of this system with its libraries;
NAMEs: these) does a job of a second or so, unfolded, folded with --icf=safe and with --icf=all.  The three take turns, RUNS (15)
times.  Printed is the median of the ratios to the unfolded program's run of the same turn, of processor time (user and system), and
the middle half of them in brackets; a ratio above 1.005 counts if the middle half is above 1, and then the exit status is 1.

COUNT=1 counts instead of measuring, in smaller jobs: instructions and misses of a cache for code of 32 KB, 8 ways, as callgrind simulates
it.  Nothing that else runs on the machine changes these."""
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ICFOLD = os.environ.get("ICFOLD", os.path.join(HERE, "../../build/icfold"))
CORPUS = os.environ.get("ICFOLD_CORPUS", os.path.expanduser("~/.cache/icfold-corpus"))
RUNS = int(os.environ.get("RUNS", "15"))
WAYS = ("unfolded", "safe", "all")
COUNT = bool(os.environ.get("COUNT"))
SQL = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @ROWS@)
INSERT INTO a SELECT i, (i * 7919) % 40009, printf('row %08d/%x', i, i * i), i / 7.0 FROM n;
CREATE INDEX ak ON a(k); CREATE INDEX at ON a(t DESC, k); ANALYZE;
SELECT count(*), sum(k), total(r), min(t), max(t) FROM a;
SELECT sum(x.id) FROM a x JOIN a y ON x.k = y.k AND x.id < y.id;
"""
SCRIPT = """import json, re
words = [('w%d' % (i * 7919 % 1009)) for i in range(@WORDS@)]
count = {}
for w in words:
    count[w] = count.get(w, 0) + 1
text = json.dumps([{'k': k, 'n': n} for k, n in sorted(count.items())] * @TIMES@)
assert len(json.loads(text)) == @TIMES@ * len(count)
print(len(re.findall(r'w[0-9]*7"', text)), sum(sorted(hash((i, i % 7)) % 1009 for i in range(2 * @WORDS@))))
"""


def protoc(work):
    source = os.path.join(CORPUS, "src")
    found = subprocess.run(["find", source, "-path", "*/src/google/protobuf/descriptor.proto"], capture_output=True, text=True,
                           check=True).stdout.split()
    if not found:
        return None
    include = os.path.dirname(os.path.dirname(os.path.dirname(found[0])))
    names = ["google/protobuf/" + f for f in ("descriptor.proto", "unittest.proto", "unittest_import.proto", "unittest_import_public.proto",
                                              "unittest_proto3.proto", "any.proto", "struct.proto", "type.proto")]
    names = [n for n in names if os.path.exists(os.path.join(include, n)) and not (COUNT and "unittest" in n)]
    outputs = ["cpp"] if COUNT else ["cpp", "java", "python", "ruby"]
    return ["-I" + include] + [f"--{o}_out={work}" for o in outputs] + names


def generated(work, functions):
    """A C file with many functions."""
    made = os.path.join(work, "generated.c")
    with open(made, "w", encoding="ascii") as f:
        f.write("int sink(int);\nstruct s { int a, b[7]; struct s *next; };\n")
        for k in range(functions):
            f.write(f"int f{k}(int n, int *p, struct s *s) {{ int i, r = n; for (i = 0; i < (n & {k % 31 | 1}); i++) {{ r += p[i] * {k}; if (r & {k % 7 + 1})"
                    f" r ^= sink(r + {k}); }} for (; s; s = s->next) switch (s->a) {{ case {k}: r += s->b[{k % 7}]; break; case {k + 1}: r ^= 5; break;"
                    f" case {k + 2}: s->b[1] = r; break; case {k + 3}: r = sink(r / {k + 1}); break; default: r -= s->a % {k + 3}; }} return r; }}\n")
    return made


def llc(work):
    made = os.path.join(work, "input.ll")
    subprocess.run(["clang-14", "-O1", "-S", "-emit-llvm", generated(work, 30 if COUNT else 600), "-o", made], check=True)
    return [made, "-o", os.path.join(work, "output.s")]


def sqlite(work):
    made = os.path.join(work, "input.sql")
    with open(made, "w", encoding="ascii") as f:
        f.write("CREATE TABLE a(id INTEGER PRIMARY KEY, k INT, t TEXT, r REAL);\n" + SQL.replace("@ROWS@", "6000" if COUNT else "250000"))
    return [":memory:", f".read {made}"]


def python(work):
    made = os.path.join(work, "job.py")
    with open(made, "w", encoding="ascii") as f:
        f.write(SCRIPT.replace("@WORDS@", "20000" if COUNT else "400000").replace("@TIMES@", "8" if COUNT else "150"))
    return ["-S", "-E", made]


def clang(work):
    return ["-cc1", "-O2", "-emit-obj", "-std=gnu17", "-internal-isystem",
            "/usr/lib/llvm-14/lib/clang/14.0.6/include", "-internal-isystem", "/usr/include/x86_64-linux-gnu", "-internal-isystem",
            "/usr/include", generated(work, 15 if COUNT else 300), "-o", os.path.join(work, "output.o")]


# name: program, its arguments, libraries that are folded with it
JOBS = {
    "protoc": (CORPUS + "/protoc", protoc, ()),
    "llc": (CORPUS + "/llc", llc, ()),
    "sqlite": (CORPUS + "/sqlite", sqlite, ()),
    "python3": ("/usr/bin/python3.11", python, ()),
    "clang-14": ("/usr/lib/llvm-14/bin/clang", clang, ("libLLVM-14.so.1", "libclang-cpp.so.14")),
}


def fold(program, libraries, way, work):
    """A folder with the folded files; returns the program and its environment."""
    folder = os.path.join(work, way)
    os.mkdir(folder)
    files = {os.path.basename(program): program}
    files.update({name: "/usr/lib/x86_64-linux-gnu/" + name for name in libraries})
    for name, path in files.items():
        to = os.path.join(folder, name)
        if way == "unfolded":
            subprocess.run(["cp", os.path.realpath(path), to], check=True)
        else:
            subprocess.run([ICFOLD, "-q", "--icf=" + way, os.path.realpath(path), "-o", to], check=True)
    return os.path.join(folder, os.path.basename(program)), dict(os.environ, LD_LIBRARY_PATH=folder, PYTHONHASHSEED="0")


def processor_time(command, env):
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as child:
        _, status, use = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"status {child.returncode}: {' '.join(command)}")
    return use.ru_utime + use.ru_stime


def counts(command, env):
    out = subprocess.run(["valgrind", "--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64", "--callgrind-out-file=/dev/null", *command], env=env,
                         capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stderr
    return [int(re.search(rf"{name}:\s+([0-9,]+)", out)[1].replace(",", "")) for name in ("I +refs", "I1 +misses")]


def main():
    slower = False
    for name in sys.argv[1:] or list(JOBS):
        program, arguments, libraries = JOBS[name]
        if not os.path.exists(program):
            continue
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
            arguments = arguments(work)
            if not arguments:
                continue
            ready = {}
            for way in WAYS:
                path, env = fold(program, libraries, way, work)
                ready[way] = ([path, *arguments], env)
            if COUNT:
                base, *others = [counts(*ready[w]) for w in WAYS]
                for way, got in zip(WAYS[1:], others):
                    print(f"{name:9} {way:5} instructions {got[0] / base[0]:.4f} of {base[0] / 1e6:,.0f} million, "
                          f"misses for code {got[1] / base[1]:.3f} of {base[1] / 1e6:.2f} million", flush=True)
                continue
            times = {w: [] for w in WAYS}
            for turn in range(RUNS + 1):
                for way in WAYS:
                    t = processor_time(*ready[way])
                    if turn:
                        times[way].append(t)
            for way in WAYS[1:]:
                low, middle, high = statistics.quantiles([a / b for a, b in zip(times[way], times["unfolded"])], n=4)
                bad = middle > 1.005 and low > 1
                slower |= bad
                print(f"{name:9} {way:5} processor time {middle:.3f} [{low:.3f}, {high:.3f}] of {statistics.median(times['unfolded']):.2f} s"
                      f"{'  SLOWER' if bad else ''}", flush=True)
    sys.exit(slower)


main()
