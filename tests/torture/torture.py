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
import torture_glibc

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
# Options of the fold beside its mode.
OPTIONS = [[], [], [], ["--debug-folded=alias"], ["--debug-folded=drop"], ["--emit-relocs"], ["--no-thunks"], ["--emit-vtables"], ["--strip-debug"], ["--strip-all"]]
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
        self.options = pick(OPTIONS)

    def __str__(self):
        return " ".join([self.cc, self.level, self.linker, self.kind[1], self.relocs, *self.sections, *self.debug, *self.options])


FORTRAN = (".f", ".f90", ".f03", ".f08")


class Test:
    def __init__(self, suite, root, path):
        self.suite, self.path = suite, path
        self.name = suite + "/" + str(path.relative_to(root))
        self.cxx = path.suffix in (".C", ".cc", ".cpp")
        self.fortran = path.suffix.lower() in FORTRAN
        self.flags, self.libs, self.more = [], [], []   # more: further source files
        # Of glibc's tests: shared libraries (torture_glibc.Library), the names of those that the program is linked with, and how it is run.
        self.libraries, self.needs, self.env, self.args, self.fixed_static = [], [], {}, [], False


DO_RUN = re.compile(r"dg-do\s+run(.*)")
# Flags that change the form, or need files that are missing.
NO_OPTION = re.compile(r"^-(O|g|m32|mx32|f(no-)?(pie|PIE|pic|PIC|lto|profile|branch|sanitize)|flto|static|shared|fuse-ld|fdump|save-temps|c$|S$|E$|o$|include$|fplugin)")


# What GCC's own scripts add in these folders.
FOLDERS = {"coroutines": ["-std=gnu++20"], "tm": ["-fgnu-tm"], "gomp": ["-fopenmp"]}


def directives(test, text, needs_run):
    """Takes the options out of the test's comments; False: it is not to be run."""
    if needs_run and not DO_RUN.search(text):
        return False
    if re.search(r"dg-shouldfail|dg-skip-if.*\*-\*-\*|dg-set-target-env-var|dg-xfail-run-if", text):
        return False
    m = re.search(r'dg-options\s+"([^"]*)"\s*(\{[^}]*\})?', text)
    for words in ([m.group(1)] if m else []) + re.findall(r'dg-additional-options\s+"([^"]*)"', text):
        for w in words.split():
            if not NO_OPTION.match(w):
                (test.libs if w.startswith("-l") else test.flags).append(w)
    for names in re.findall(r'dg-additional-sources\s+"([^"]*)"', text):
        test.more += [test.path.parent / n for n in names.split()]
    test.flags += [f for d in test.path.parts[:-1] for f in FOLDERS.get(d, [])]
    # A test of one standard, of this one and later ones, or of this one and earlier ones.
    m = re.search(r"\b(c\+\+|c)(\d\d)(_only|_down)?\b", DO_RUN.search(text).group(1) if DO_RUN.search(text) else "")
    if m and not any(f.startswith(("-std", "-ansi")) for f in test.flags):
        test.flags.append("-std=gnu" + ("++" if test.cxx else "") + m.group(2))
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
    if suite.startswith("glibc"):
        rules = torture_glibc.Rules(root.parent if (root.parent / "support").is_dir() else root.parent.parent)
    for path in sorted(root.rglob("*")):
        if (path.suffix.lower() not in FORTRAN if suite == "gfortran" else path.suffix not in (".c", ".C", ".cc")) or not path.is_file():
            continue
        t = Test(suite, root, path)
        text = path.read_text(errors="replace")
        if suite == "execute":
            if "/builtins/" in t.name:
                t.more = [path.with_name(path.stem + "-lib.c"), path.parent / "lib" / "main.c"]
                if not t.more[0].is_file():
                    continue
            elif not re.search(r"\bmain\b", text):
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
            if path.suffix != ".c" or not rules.set_up(t, text):
                continue
        elif not directives(t, text, True):
            continue
        yield t


def rename(cwd):
    """Makes of a.o first.o, where main is first_main, and twin.o, where each global name that it defines is twin_NAME; False: no main."""
    # readelf: nm loads the plugins of all compilers first.
    rc, out = run(["readelf", "-sW", "a.o"], cwd)
    if rc:
        return False
    rows = [l.split() for l in out.decode(errors="replace").splitlines()]
    names = sorted({r[7] for r in rows if len(r) >= 8 and r[0][:-1].isdigit() and r[4] == "GLOBAL" and r[6] != "UND"})
    if "main" not in names:
        return False
    for to, pairs in (("first", [("main", "first_main")]), ("twin", [(n, "twin_" + n) for n in names])):
        with open(os.path.join(cwd, "names"), "w") as f:
            f.writelines("%s %s\n" % p for p in pairs)
        if run(["objcopy", "--redefine-syms=names", "a.o", to + ".o"], cwd)[0] != 0:
            return False
    return True


def drivers(work, available):
    """The main program, once for each C compiler and way to compile: (compiler, option) -> object file."""
    ret = {}
    with open(os.path.join(work, "driver.c"), "w") as f:
        f.write(DRIVER)
    for cc in sorted({c for c, _ in COMPILERS if c in available}):
        for kind in sorted({k[0] for k in KINDS}):
            ret[cc, kind] = os.path.join(work, "driver.%s%s.o" % (cc, kind))
            if run([cc, "-O2", kind, "-c", "driver.c", "-o", ret[cc, kind]], work)[0] != 0:
                sys.exit("torture.py: %s cannot compile" % cc)
    return ret


def strip_options(form):
    return {"strip-x": ["-x"], "strip-unneeded": ["--strip-unneeded"], "stripped": ["-s"]}.get(form.relocs)


def relocs_options(form):
    ret = [] if form.relocs in ("none", "stripped") else ["-Wl,--emit-relocs"]
    return ret + (["-Wl,--discard-all"] if form.relocs == "discard-all" else [])


def build_libraries(test, form, cwd):
    """The test's shared libraries as NAME.so; returns whether all could be built."""
    with open(os.path.join(cwd, "extra.c"), "w") as f:
        f.write(torture_glibc.EXTRA)
    flags = ["-w", form.level, "-fPIC", *form.sections, *form.debug]
    if run([form.cc, *flags, "-c", "extra.c"], cwd)[0] != 0:
        return False
    for l in test.libraries:
        cc = form.cxx if l.source.suffix == ".cc" else form.cc
        if run([cc, *flags, *(f for f in l.flags if f != "-std=gnu11" or cc == form.cc), "-c", str(l.source), "-o", "lib.o"], cwd)[0] != 0:
            return False
        link = [cc, "-shared", "-fuse-ld=" + form.linker, "extra.o", "lib.o", *relocs_options(form), *l.link, "-L.", "-Wl,-rpath-link,.", *("-l:" + n for n in l.needs)]
        if run([*link, "-o", l.name], cwd)[0] != 0:
            return False
    strip = strip_options(form)
    return not strip or run(["strip", *strip, *(l.name for l in test.libraries)], cwd)[0] == 0


def build(test, form, cwd, driver):
    """The program as ./in; returns what does not work with this form, or nothing."""
    if test.fortran:
        form.cc = "gcc"
    cc = "gfortran" if test.fortran else form.cxx if test.cxx else form.cc
    flags = ["-w", form.level, form.kind[0], *form.sections, *form.debug, *test.flags]
    source = str(test.path)
    if test.suite == "csmith":
        source = "test.c"
        rc, out = run(["csmith", "--seed", str(test.seed), "-o", source], cwd, 60)
        flags += ["-I", next(str(p) for p in pathlib.Path("/usr/include").glob("csmith*"))]
        if rc:
            return "csmith"
    sources = [source, *(str(p) for p in test.more)]
    objects = ["a.o"] if len(sources) == 1 else ["a%d.o" % i for i in range(len(sources))]
    if any(run([cc, *flags, "-c", s, "-o", o], cwd)[0] != 0 for s, o in zip(sources, objects)):
        return "compile"
    if len(objects) > 1 and run(["ld", "-r", *objects, "-o", "a.o"], cwd)[0] != 0:
        return "names"
    if not rename(cwd):
        return "names"
    link = [cc, form.kind[1], "-fuse-ld=" + form.linker, driver[form.cc, form.kind[0]], "first.o", "twin.o", "-o", "in"]
    link += relocs_options(form)
    if test.suite == "libstdc++":
        link += ["-pthread"]
    link += [f for f in test.flags if f in ("-pthread", "-fgnu-tm", "-fopenmp")] + [l for l in test.libs if l]
    if test.libraries:
        if not build_libraries(test, form, cwd):
            return "libraries"
        link += ["-L.", "-Wl,-rpath-link,.", "-Wl,--no-as-needed", *("-l:" + n for n in test.needs)]
    if run(link, cwd)[0] != 0:
        return "link"
    for l in test.libraries:
        os.rename(os.path.join(cwd, l.name), os.path.join(cwd, l.name + ".in"))
    strip = strip_options(form)
    return "strip" if strip and run(["strip", *strip, "in"], cwd)[0] != 0 else None


def behaviour(test, which, cwd, must_work=False):
    """What both copies do, of the program as it was ("in") or folded ("out"): statuses, and output without
    addresses.  With must_work only up to what fails."""
    # One name for all: what a test prints of itself stays the same.  A link: while this process writes a file, no child of
    # another thread may run it.
    for name, file in [("prog", which)] + [(l.name, l.name + "." + which) for l in test.libraries]:
        to = os.path.join(cwd, name)
        if os.path.lexists(to):
            os.unlink(to)
        os.link(os.path.join(cwd, file), to)
    ret = []
    for twin in (False, True):
        env = dict(os.environ, LC_ALL="C", **test.env, **({"TORTURE_TWIN": "1"} if twin else {}))
        rc, out = run(["./prog", *test.args], cwd, LIMIT, env)
        out = re.sub(rb"0x[0-9a-f]{6,16}", b"0x", out)
        # Threads and processes print in any order.
        ret.append((rc, b"\n".join(sorted(out.splitlines())) if "-pthread" in test.flags else out))
        if must_work and ret[-1][0] != 0:
            break
    return ret


def judge(test, icfold, work, available, allowed, driver):
    """A list of (verdict, text), how many of the folds folded something, and why the test says nothing here if so."""
    cwd = os.path.join(work, re.sub(r"[^A-Za-z0-9_.-]", "_", test.name))
    shutil.rmtree(cwd, ignore_errors=True)
    os.makedirs(cwd)
    form = Form(test.name + os.environ.get("TORTURE_ROUND", ""), available)
    if test.fixed_static:
        form.kind = ["-fno-pie", "-static"]
    elif test.libraries and "-static" in form.kind[1]:
        form.kind = ["-fPIE", "-pie"]
    why_not = build(test, form, cwd, driver)
    if why_not:
        form.cc, form.cxx, form.linker = "gcc", "g++", "bfd"
        why_not = build(test, form, cwd, driver)
    verdicts, folded = [], 0
    if not why_not:
        want = behaviour(test, "in", cwd, True)
        if any(rc != 0 for rc, _ in want):
            why_not = "fails"
    if why_not:
        shutil.rmtree(cwd, ignore_errors=True)
        return [], 0, why_not
    bad = False
    for mode, opts in MODES.items():
        what = "torture/%s %s [%s]" % (test.name, mode, form)
        why, refused, some = [], "", False
        for name in [""] + [l.name + "." for l in test.libraries]:
            rc, out = run([icfold, "-q", "--allow-growth", "--json", *opts, *form.options, name + "in", "-o", name + "out"], cwd)
            if rc == 1 and not name:
                refused = out.decode(errors="replace").strip()[:200]
                break
            if rc == 1:
                shutil.copy2(os.path.join(cwd, name + "in"), os.path.join(cwd, name + "out"))
                continue
            if rc != 0:
                why.append("fold: status %s: %s" % (rc, out.decode(errors="replace")[:200]))
                break
            some = some or b'"folded": 0,' not in out
            # After --strip-all nothing says where functions went.
            if "--strip-all" not in form.options:
                rc, out = run([icfold, "verify", *(["--icf=all"] if mode == "all" else []), name + "in", name + "out"], cwd)
                if rc != 0:
                    why.append("verify %s: status %s: %s" % (name, rc, " ".join(l for l in out.decode(errors="replace").splitlines() if "ifferen" in l or "icfold" in l)[:200]))
        if refused:
            verdicts.append(("skip", what + ": " + refused))
            continue
        folded += some
        if not any(w.startswith("fold:") for w in why):
            got = behaviour(test, "out", cwd)
            if got != want and behaviour(test, "in", cwd) != want:
                why_not = "varies"
                break
            if got != want and not (mode == "all" and test.name in allowed):
                why.append("does not do the same: " + ", ".join(str(rc) for rc, _ in got))
        if why:
            bad = True
            for name in [""] + [l.name + "." for l in test.libraries]:
                if os.path.exists(os.path.join(cwd, name + "out")):
                    shutil.copy2(os.path.join(cwd, name + "out"), os.path.join(cwd, name + "out." + mode))
        verdicts.append(("not ok" if why else "ok", what + (": " + "; ".join(why) if why else "")))
    if why_not:
        verdicts, folded, bad = [], 0, False
    if not bad:
        shutil.rmtree(cwd, ignore_errors=True)
    return verdicts, folded, why_not


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("icfold")
    ap.add_argument("work")
    ap.add_argument("allowed")
    ap.add_argument("suite", nargs="+")
    ap.add_argument("--share", default="1/1")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--only", default="")
    ap.add_argument("--verbose", action="store_true")
    a = ap.parse_args()
    k, n = (int(x) for x in a.share.split("/"))
    allowed = {l.split()[0] for l in open(a.allowed) if l.strip() and not l.startswith("#")}
    tools = {c for pair in COMPILERS for c in pair} | {"ld." + l for l in LINKERS}
    available = {t for t in tools if shutil.which(t)}
    tests = [t for s in a.suite for t in suite_tests(*s.split("=", 1))]
    tests = [t for t in tests if re.search(a.only, t.name) and int(hashlib.sha256(t.name.encode()).hexdigest(), 16) % n == k - 1]
    count = {"ok": 0, "not ok": 0, "skip": 0}
    driver = drivers(a.work, available)
    per, silent = {}, {}
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for t, (verdicts, folded, why_not) in zip(tests, pool.map(lambda t: judge(t, os.path.abspath(a.icfold), a.work, available, allowed, driver), tests)):
            row = per.setdefault(t.suite, [0, 0, 0, 0, 0])
            row[0] += 1
            row[1] += folded
            if why_not:
                reasons = silent.setdefault(t.suite, {})
                reasons[why_not] = reasons.get(why_not, 0) + 1
                if a.verbose:
                    print("#", t.name, "says nothing here:", why_not, flush=True)
            for v, text in verdicts:
                count[v] += 1
                row[["ok", "not ok", "skip"].index(v) + 2] += 1
                if v != "ok" or a.verbose:
                    print(v, text, flush=True)
    for s, r in per.items():
        none = silent.get(s, {})
        print("# %-12s %5d tests, %5d say nothing here%s; %5d times something folded; %5d passed %4d failed %4d refused" % (
            s, r[0], sum(none.values()), " (%s)" % ", ".join("%s %d" % (w, n) for w, n in sorted(none.items())) if none else "", *r[1:]))
    print("%d passed, %d failed, %d skipped" % (count["ok"], count["not ok"], count["skip"]))
    return count["not ok"] != 0 or count["ok"] == 0


sys.exit(main())
