#!/usr/bin/env python3
"""torture.py: other people's test suites as judges of folded programs.

    torture.py ICFOLD WORK ALLOWED [--share=K/N] [--jobs=N] [--only=REGEX] SUITE=FOLDER...

Each test is linked with a second copy of itself, whose global names differ, so that all of its functions are there twice.  It
is built in one form of many (compiler, level, linker, kind of program, with and without relocations, local symbols and debug
information), chosen by its name and the round, folded in three ways (safe, in place, all), and run as either copy: exit status
and output must be those of the program before it was folded, and icfold verify must call each result equal.  A test that does
not build or does not work here before folding says nothing and is not counted.  ALLOWED lists, with the reason, the tests that
may behave otherwise with --icf=all."""
import argparse, concurrent.futures, hashlib, os, pathlib, re, shutil, subprocess, sys

DRIVER = r"""
#include <stdlib.h>
extern int first_main(int, char **, char **), twin_main(int, char **, char **);
int main(int c, char **v, char **e) { return getenv("TORTURE_TWIN") ? twin_main(c, v, e) : first_main(c, v, e); }
"""
COMPILERS = [("gcc", "g++"), ("clang-14", "clang++-14"), ("gcc", "g++"), ("clang-19", "clang++-19"), ("clang", "clang++")]
LEVELS = ["-O2", "-O0", "-Os", "-O1", "-O3", "-Og", "-O2"]
LINKERS = ["bfd", "lld", "gold", "mold"]
KINDS = [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"], ["-fno-pie", "-static"], ["-fPIE", "-static-pie"], ["-fPIE", "-pie"]]
RELOCS = ["relocs", "none", "strip-x", "stripped", "strip-unneeded", "discard-all", "relocs", "none"]
SECTIONS = [[], ["-ffunction-sections", "-fdata-sections"]]
DEBUG = [[], ["-g"], ["-gdwarf-4"]]
MODES = {"safe": [], "in-place": ["--in-place"], "all": ["--icf=all"]}
LIMIT = 60   # seconds of a test; some wait on purpose
STEP = 600   # seconds of a compiler or of icfold: against hangs


def run(cmd, cwd, timeout=STEP, env=None):
    try:
        p = subprocess.run(cmd, cwd=cwd, timeout=timeout, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return p.returncode, p.stdout
    except subprocess.TimeoutExpired:
        return "timeout", b""


class Form:
    """How a test is built: one value of each list, by a number that its name gives."""

    def __init__(self, name, available):
        n = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")

        def pick(values):
            nonlocal n
            n, k = divmod(n, len(values))
            return values[k]
        self.cc, self.cxx = pick([c for c in COMPILERS if c[0] in available])
        self.level = pick(LEVELS)
        self.linker = pick([l for l in LINKERS if "ld." + l in available])
        self.kind = pick(KINDS)
        self.relocs = pick(RELOCS)
        self.sections = pick(SECTIONS)
        self.debug = pick(DEBUG)

    def __str__(self):
        return " ".join([self.cc, self.level, self.linker, self.kind[1], self.relocs, *self.sections, *self.debug])


class Test:
    def __init__(self, suite, root, path):
        self.suite, self.path = suite, path
        self.name = suite + "/" + str(path.relative_to(root))
        self.cxx = path.suffix in (".C", ".cc", ".cpp")
        self.flags, self.libs = [], []


DO_RUN = re.compile(r"dg-do\s+run")
# What changes the form, or wants files that are not there.
NO_OPTION = re.compile(r"^-(O|g|m32|mx32|f(no-)?(pie|PIE|pic|PIC|lto|profile|branch|sanitize)|flto|static|shared|fuse-ld|fdump|save-temps|c$|S$|E$|o$|include$|fplugin)")


def directives(test, text, needs_run):
    """Takes the options out of the test's comments; False: it is not to be run."""
    if needs_run and not DO_RUN.search(text):
        return False
    if re.search(r"dg-additional-sources|dg-shouldfail|dg-skip-if.*\*-\*-\*|dg-set-target-env-var|dg-xfail-run-if", text):
        return False
    m = re.search(r'dg-options\s+"([^"]*)"\s*(\{[^}]*\})?', text)
    for words in ([m.group(1)] if m else []) + re.findall(r'dg-additional-options\s+"([^"]*)"', text):
        for w in words.split():
            if not NO_OPTION.match(w):
                (test.libs if w.startswith("-l") else test.flags).append(w)
    if "-pthread" in test.flags or "pthread" in text:
        test.flags.append("-pthread")
    return True


def suite_tests(suite, root):
    root = pathlib.Path(root)
    if suite == "csmith":
        for seed in range(int(root.name)):
            t = Test(suite, pathlib.Path("/"), pathlib.Path("/%d.c" % seed))
            t.seed = seed
            yield t
        return
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".c", ".C", ".cc") or not path.is_file():
            continue
        t = Test(suite, root, path)
        text = path.read_text(errors="replace")
        if suite == "execute":
            if "builtins/lib" in t.name or "/builtins/" in t.name or not re.search(r"\bmain\b", text):
                continue
            t.flags = ["-std=gnu17"]
            if not directives(t, text, False):
                continue
            t.libs.append("-lm")
        elif suite == "libstdc++":
            if "main" not in text or not directives(t, text, "dg-do" in text):
                continue
            t.flags += ["-I", str(root / "util"), "-DLOCALEDIR=\".\""]
        elif suite.startswith("glibc"):
            if not path.name.startswith("tst-") or path.suffix != ".c":
                continue
            top = root.parent if (root.parent / "support").is_dir() else root.parent.parent
            t.flags = ["-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-I", str(top), "-I", str(top / "support"),
                       "-I", os.path.dirname(os.environ.get("TORTURE_SUPPORT", "")) + "/include"]
            t.libs = [os.environ.get("TORTURE_SUPPORT", ""), "-ldl", "-lm"]
        elif not re.search(r"\bmain\b", text) or not directives(t, text, True):
            continue
        yield t


def rename(objcopy_from, to, first, cwd):
    """The global names that FROM defines become twin_NAME, main excepted, in TO; or only main becomes first_main."""
    rc, out = run(["nm", "--defined-only", "-g", objcopy_from], cwd)
    if rc:
        return False
    names = [l.split() for l in out.decode(errors="replace").splitlines()]
    names = [f[-1] for f in names if len(f) >= 2 and f[-2] in "TDBRGSC"]
    if "main" not in names:
        return False
    with open(os.path.join(cwd, "names"), "w") as f:
        for n in ["main"] if first else names:
            f.write("%s %s\n" % (n, "first_main" if first else "twin_main" if n == "main" else "twin_" + n))
    return run(["objcopy", "--redefine-syms=names", objcopy_from, to], cwd)[0] == 0


def build(test, form, cwd):
    """The program as ./in; False: not with this form."""
    cc = form.cxx if test.cxx else form.cc
    flags = ["-w", form.level, form.kind[0], *form.sections, *form.debug, *test.flags]
    source = str(test.path)
    if test.suite == "csmith":
        source = "test.c"
        rc, out = run(["csmith", "--seed", str(test.seed), "-o", source], cwd, 60)
        flags += ["-I", next(str(p) for p in pathlib.Path("/usr/include").glob("csmith*"))]
        if rc:
            return False
    with open(os.path.join(cwd, "driver.c"), "w") as f:
        f.write(DRIVER)
    if run([cc, *flags, "-c", source, "-o", "a.o"], cwd)[0] != 0 or run([form.cc, "-O2", form.kind[0], "-c", "driver.c"], cwd)[0] != 0:
        return False
    if not rename("a.o", "first.o", True, cwd) or not rename("a.o", "twin.o", False, cwd):
        return False
    link = [cc, form.kind[1], "-fuse-ld=" + form.linker, "driver.o", "first.o", "twin.o", "-o", "in"]
    if form.relocs not in ("none", "stripped"):
        link.append("-Wl,--emit-relocs")
    if form.relocs == "discard-all":
        link.append("-Wl,--discard-all")
    if test.suite == "libstdc++":
        link += ["-pthread"]
    link += [f for f in test.flags if f == "-pthread"] + [l for l in test.libs if l]
    if run(link, cwd)[0] != 0:
        return False
    strip = {"strip-x": ["-x"], "strip-unneeded": ["--strip-unneeded"], "stripped": ["-s"]}.get(form.relocs)
    return not strip or run(["strip", *strip, "in"], cwd)[0] == 0


def behaviour(program, cwd):
    """What both copies do: statuses and output; the place of the program left out."""
    ret = []
    for twin in (False, True):
        env = dict(os.environ, LC_ALL="C", **({"TORTURE_TWIN": "1"} if twin else {}))
        # One name for all: what a test prints of itself stays the same.  A link: while this process writes a file, no child of
        # another thread may run it.
        prog = os.path.join(cwd, "prog")
        if os.path.lexists(prog):
            os.unlink(prog)
        os.link(os.path.join(cwd, program), prog)
        rc, out = run(["./prog"], cwd, LIMIT, env)
        ret.append((rc, out))
    return ret


def judge(test, icfold, work, available, allowed):
    """A list of (verdict, text); empty: the test says nothing here."""
    cwd = os.path.join(work, re.sub(r"[^A-Za-z0-9_.-]", "_", test.name))
    shutil.rmtree(cwd, ignore_errors=True)
    os.makedirs(cwd)
    form = Form(test.name + os.environ.get("TORTURE_ROUND", ""), available)
    built = build(test, form, cwd)
    if not built:
        form.cc, form.cxx, form.linker = "gcc", "g++", "bfd"
        built = build(test, form, cwd)
    verdicts = []
    if built:
        want = behaviour("in", cwd)
        if want != behaviour("in", cwd) or any(rc != 0 for rc, _ in want):
            built = False
    if not built:
        shutil.rmtree(cwd, ignore_errors=True)
        return []
    bad = False
    for mode, opts in MODES.items():
        what = "torture/%s %s [%s]" % (test.name, mode, form)
        rc, out = run([icfold, "-q", *opts, "in", "-o", "out"], cwd)
        if rc == 1:
            verdicts.append(("skip", what + ": " + out.decode(errors="replace").strip()[:200]))
            continue
        if rc != 0:
            bad = True
            verdicts.append(("not ok", what + ": fold: status %s: %s" % (rc, out.decode(errors="replace")[:200])))
            continue
        why = []
        got = behaviour("out", cwd)
        if got != want and not (mode == "all" and test.name in allowed):
            why.append("does not do the same: " + ", ".join(str(rc) for rc, _ in got))
        rc, out = run([icfold, "verify", *(["--icf=all"] if mode == "all" else []), "in", "out"], cwd)
        if rc != 0:
            why.append("verify: status %s: %s" % (rc, " ".join(l for l in out.decode(errors="replace").splitlines() if "ifferen" in l or "icfold" in l)[:200]))
        if why:
            bad = True
            shutil.copy2(os.path.join(cwd, "out"), os.path.join(cwd, "out." + mode))
        verdicts.append(("not ok" if why else "ok", what + (": " + "; ".join(why) if why else "")))
    if not bad:
        shutil.rmtree(cwd, ignore_errors=True)
    return verdicts


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("icfold")
    ap.add_argument("work")
    ap.add_argument("allowed")
    ap.add_argument("suite", nargs="+")
    ap.add_argument("--share", default="1/1")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--only", default="")
    a = ap.parse_args()
    k, n = (int(x) for x in a.share.split("/"))
    allowed = {l.split()[0] for l in open(a.allowed) if l.strip() and not l.startswith("#")}
    tools = {c for pair in COMPILERS for c in pair} | {"ld." + l for l in LINKERS}
    available = {t for t in tools if shutil.which(t)}
    tests = [t for s in a.suite for t in suite_tests(*s.split("=", 1))]
    tests = [t for t in tests if re.search(a.only, t.name) and int(hashlib.sha256(t.name.encode()).hexdigest(), 16) % n == k - 1]
    count = {"ok": 0, "not ok": 0, "skip": 0}
    silent, per = 0, {}
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for t, verdicts in zip(tests, pool.map(lambda t: judge(t, os.path.abspath(a.icfold), a.work, available, allowed), tests)):
            row = per.setdefault(t.suite, [0, 0, 0, 0, 0])
            row[0] += 1
            row[1] += not verdicts
            silent += not verdicts
            for v, text in verdicts:
                count[v] += 1
                row[["ok", "not ok", "skip"].index(v) + 2] += 1
                if v != "ok":
                    print(v, text, flush=True)
    for s, r in per.items():
        print("# %-12s %5d tests, %5d do not work here; %5d passed %4d failed %4d refused" % (s, *r))
    print("%d passed, %d failed, %d skipped" % (count["ok"], count["not ok"], count["skip"]))
    return count["not ok"] != 0 or count["ok"] == 0


sys.exit(main())
