#!/usr/bin/env python3
"""names_all.py: every command meets every hostile name, in every place where a file can have one.

names_all.py --tool ICFOLD --work FOLDER [--only REGEX]      (default: all texts joined, 1 MB of them, and one with old DWARF)

A program is built in which functions, classes, sections, source files, their folders and the compiler's folder have long runs of
the letter Q in their names; they are replaced by each text of names.py (of the same length, so that nothing else changes), and the
files get such names themselves.  Then all commands are run in all their forms.  The judges: what is printed has no byte that a
terminal acts on and no line that a name began; JSON and pages are read by Python's own readers; strace saw no process and no
connection; no file was made but those that were asked for.  Prints a line for each kind of name.
"""
import argparse
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import names

SHORT, MIDDLE, LONG = 80, 300, 1 << 20
SOURCE = """
volatile int sink;
# 1 "/idQ/flQ.h"
static inline __attribute__((always_inline)) int inQ(int x)
{
	sink += x;
	return x ^ 5;
}
struct clQ { virtual int viQ(int x); virtual int vjQ(int x); };
#define BODY(x) { x = inQ(x); sink += x; return sink * 3 + 1; }
extern "C" __attribute__((noinline, noclone)) int faQ(int x) BODY(x)
extern "C" __attribute__((noinline, noclone)) int fbQ(int x) BODY(x)
extern "C" __attribute__((noinline, noclone, section("scQ"))) int fcQ(int x) BODY(x)
__attribute__((noinline)) int clQ::viQ(int x) { x += sink; return x * 5 + sink; }
__attribute__((noinline)) int clQ::vjQ(int x) { x += sink; return x * 5 + sink; }
clQ object, *volatile any = &object;
# 1 "meQ.cc"
int main(int c, char **)
{
	int r = faQ(c) + fbQ(c) + fcQ(c);
	r += any->viQ(c);
	r += any->vjQ(c);
	return r & 0;
}
"""
PREFIXES = ["id", "fl", "in", "cl", "vi", "vj", "fa", "fb", "fc", "sc", "me", "cd", "dl"]


def build(work, name, length, *flags):
    """The program, and its folder without the letters' names."""
    # g++ takes the name of a source for that of its unit.
    cc = os.path.join(work, name + ".cc")
    # The assembler needs a section's whole name in its buffer, so these names are shorter.
    text = re.sub(r"(sc|vi|vj|cl)Q", lambda m: m.group(1) + "Q" * min(length, MIDDLE), SOURCE)
    with open(cc, "w", encoding="ascii") as f:
        f.write(re.sub(r"(?<=[a-z])Q(?!Q)", "Q" * length, text))
    prog = os.path.join(work, name)
    subprocess.run(["g++", "-w", "-O1", "-fno-ipa-icf", "-ffunction-sections", "-Wl,--emit-relocs", "-Wl,--build-id", *flags,
                    "-fdebug-prefix-map=%s=/cd%s" % (work, "Q" * min(length, 100000)), cc, "-o", prog], check=True, cwd=work)
    return prog


def text_of(kind):
    """Of a kind of names.py; else all of them, one after the other."""
    return names.KINDS.get(kind) or b"".join(names.KINDS.values())


def renamed(data, kind):
    text = text_of(kind)
    for p in PREFIXES:
        p = p.encode()
        data = re.sub(re.escape(p) + rb"Q{8,}",
                      lambda m, p=p: (p + text * (len(m.group()) // len(text) if kind == "long" else 1))[: len(m.group())].ljust(len(m.group()), b"x"), data)
    return data


def file_name(kind):
    return text_of(kind).replace(b"/", b"|")[:240] + b" -"


class Page(html.parser.HTMLParser):
    """Counts elements; a name that got out of its place is one more."""

    def __init__(self, data):
        super().__init__()
        self.count = {}
        self.feed(data.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1


class Run:
    def __init__(self, args, kind, prog):
        self.args, self.kind, self.bad = args, kind, []
        self.n = 0
        self.dir = os.path.join(args.work, "run." + kind).encode()
        os.makedirs(self.dir)
        self.name = file_name(kind)
        os.mkdir(self.at(b"d" + self.name))
        with open(prog, "rb") as f:
            self.put(b"d" + self.name + b"/-" + self.name, renamed(f.read(), kind))
        self.prog = b"d" + self.name + b"/-" + self.name
        self.allowed = {self.prog}
        self.strace = shutil.which("strace")

    def at(self, name):
        return os.path.join(self.dir, name)

    def put(self, name, data, mode=0o755):
        with open(self.at(name), "wb") as f:
            f.write(data)
        os.chmod(self.at(name), mode)

    def complain(self, argv, why):
        self.bad.append("%s: %s" % (b" ".join(argv)[:120], why))

    def started(self, argv, trace, may):
        with open(trace, "rb") as f:
            text = f.read()
        for m in re.finditer(rb'(?m)(execve(?:at)?|connect)\((?:AT_FDCWD, )?"?([^"\n]*).* = 0$', text):
            if m.group(1) == b"connect" or os.path.basename(m.group(2)) not in may:
                self.complain(argv, "%s" % m.group()[:80])

    def __call__(self, *argv, form="text", stdin=b"", makes=(), cwd=b"", may=(b"icfold",), files=()):
        """Runs the tool with ARGV; MAKES are the files that it may make, of which FILES are text to be judged as well."""
        self.n += 1
        trace = self.at(b"trace")
        argv = [a.encode() if isinstance(a, str) else a for a in argv]
        before = [b"strace", b"-f", b"--seccomp-bpf", b"-qq", b"-e", b"trace=execve,execveat,connect", b"-o", trace] if self.strace else []
        p = subprocess.run(before + [self.args.tool.encode()] + argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           cwd=self.at(cwd), timeout=300, check=False,
                           env={**os.environ, "DEBUGINFOD_URLS": "", "LC_ALL": "C.UTF-8"})
        if self.strace:
            self.started(argv, trace, may)
            os.unlink(trace)
        if p.returncode not in (0, 1, 2, 126, 127):
            self.complain(argv, "status %d %r" % (p.returncode, p.stderr[-200:]))
        texts = [p.stderr, p.stdout]
        for name in files:
            if os.path.exists(self.at(name)):
                with open(self.at(name), "rb") as f:
                    texts.append(f.read())
        for text in texts:
            why = names.unclean(text)
            if why:
                self.complain(argv, why)
        if form == "json":
            try:
                text = p.stdout.decode()
                at, decoder = 0, json.JSONDecoder()
                while text[at:].strip():
                    at += len(text[at:]) - len(text[at:].lstrip())
                    at = decoder.raw_decode(text, at)[1]
            except ValueError as e:
                self.complain(argv, e)
        self.allowed |= set(makes)
        return p

    def made(self):
        for folder, _, files in os.walk(self.dir):
            for f in files:
                path = os.path.relpath(os.path.join(folder, f), self.dir)
                if path not in self.allowed:
                    self.bad.append("made %r" % path)


def addresses(path):
    """Of functions in the symbol table of PATH: every one's start and a byte behind it."""
    out = subprocess.run([b"nm", b"-n", path], stdout=subprocess.PIPE, check=True).stdout
    found = [int(m.group(1), 16) for m in re.finditer(rb"(?m)^([0-9a-f]{16}) [tTw] (?:fa|fb|fc|main|_ZN?\w)", out)]
    at = [b"0x%x" % (a + k) for a in sorted(set(found)) for k in (0, 12)]
    return at if os.path.getsize(path) < LONG else at[:2]


def fold(r):
    p, n = r.prog, r.name
    out = b"-o" + n
    text = (b"m" + n, b"s" + n)
    r("-v", "-v", "--allow-growth", "--stats", "--summary=always", "--time-passes", b"--print-icf-sections=s" + n, b"--map=m" + n, p, "-o", out,
      makes=(out,) + text, files=text)
    r("-q", "--allow-growth", "--json", "--print-icf-sections=s", b"./" + p, b"--output=" + out, form="json", makes=(b"s",), files=(b"s",))
    r("-q", "--allow-growth", "--verify", b"--depfile=dep", p, "-o", out, makes=(b"dep",))
    r("-q", "--allow-growth", "--print-icf-sections", "--", b"-" + n, "-o", b"o" + n, cwd=b"d" + n, makes=(b"d" + n + b"/o" + n,))
    r("-q", b"--keep-unique=" + n, b"--keep-unique-file=list" + n, b"@list" + n, p, "-o", b"nowhere/" + n)
    r.put(b"list" + n, b"'" + n + b"'\n--" + n + b"\n-" + n, 0o644)
    r.allowed.add(b"list" + n)
    r("-q", b"--keep-unique-file=list" + n, p, "-o", b"nowhere/" + n)
    r("-q", b"@list" + n, p, "-o", b"nowhere/" + n)
    r("-q", p, "-o", b"list" + n, b"--keep-unique-file=list" + n)
    for bad in ([p, b"x" + n], [b"--" + n], [b"-" + n], [b"--icf=" + n], [b"--threads=" + n], [b"--summary=" + n], [b"--stats=" + n],
                [b"--debug-folded=" + n], [b"x" + n, "-o", "y"], [p, "-o", b"d" + n], [b"d" + n, "-o", "y"], [b"list" + n, "-o", "y"],
                [p, "-o", "y", b"--map=" + p], [p, "-o", "y", b"--depfile=nowhere/" + n], ["--debug-output=y", b"--debug-file=" + n, p, "-o", "z"],
                ["help", n], [n[:20]], [b"--in-place", b"--debug-file-directory=" + n, b"--debug-output=" + n, p, "-o", "y"]):
        r(*bad)
    return out


def split(r, f):
    """A program and a separate debug file, whose names are hostile too: what is folded of them, or the reason."""
    n = r.name
    debug, apart, out = b"g" + n, b"p" + n, b"q" + n
    r.allowed |= {debug, apart}
    subprocess.run([b"objcopy", b"--only-keep-debug", b"./" + r.prog, debug], cwd=r.dir, check=True)
    subprocess.run([b"objcopy", b"-g", b"--add-gnu-debuglink=" + debug, b"./" + r.prog, apart], cwd=r.dir, check=True)
    r("-v", apart, "-o", out, makes=(out,))
    r("-v", "-v", apart, "-o", out, b"--debug-output=h" + n, makes=(b"h" + n,))
    r("-v", apart, "-o", out, b"--debug-output=" + debug, b"--map=" + debug)
    r("verify", "-v", apart, out)
    r("verify", "--json", apart, out, form="json")
    r("symbolize", "-v", "-e", apart, *addresses(r.at(r.prog)))
    r("symbolize", "-e", f, b"--debug-file=" + apart, "0x1000")
    # A file that is found as the debug file but is none.
    with open(r.at(debug), "rb") as g:
        data = g.read()
    r.put(debug, data[: len(data) // 3])
    for argv in (["symbolize", "-e", apart, "main"], ["inlines", b"main", apart], ["audit", apart], ["verify", apart, out],
                 ["-v", apart, "-o", out, b"--debug-output=h" + n]):
        r(*argv)


def symbolize(r, f):
    n, at = r.name, addresses(r.at(f))
    for how in ([], ["-p"], ["-p", "-a"], ["-v"], ["-s"], ["--relativenames"], ["--no-demangle"], ["-f=short"], ["--demangle=gnu"], ["--no-inlines"]):
        r("symbolize", *how, "-e", f, *at)
        r("symbolize", *how, "--output-style=GNU", "-e", b"./" + f, *at)
        r("symbolize", *how, "--json", "-e", f, *at, form="json")
    r("symbolize", "--stack", "-e", f, *at)
    r("symbolize", "--stack", "--json", "-e", f, *at, form="json")
    lines = [x.replace(b"\n", b"\\n") for x in (b"'%s' %s" % (f, at[0]), b'"%s" %s' % (f, at[0]), f, n, b"CODE " + n, b"x" + n + b" 0x10", b"", b"\x00\x1b[2J", b"\xc2\x9b", n * 9)]
    lines += [b"fa" + text_of(r.kind).replace(b"\n", b"\r") * k for k in (1, 900)]
    for how in ([], ["-e", f], ["--stack", "-e", f]):
        r("symbolize", *how, stdin=b"\n".join(lines) + b"\n" + b"\x07" * (1 << 20))
        r("symbolize", *how, "--json", stdin=b"\n".join(lines), form="json")
    name = subprocess.run(["nm", "-n", r.at(f)], stdout=subprocess.PIPE, check=True).stdout
    name = [m.group(1) for m in re.finditer(rb"(?m)^[0-9a-f]{16} [tT] (f[abc][^\n]*)", name)]
    for s in name[:2]:
        if len(s) < 100000:
            r("symbolize", "-e", f, s, s + b"+4", b"'" + s)
    for bad in (["-e", b"x" + n, "0"], ["-e", b"d" + n, "0"], ["-e", b"list" + n, "0"], [b"--core=" + n], [b"--core=" + f], [b"--pid=" + n],
                [b"--core=list" + n], ["-e", f, n, b"-" + n], [b"--adjust-vma=" + n], ["--perf", b"x" + n], ["--perf", "-e", b"x" + n],
                ["-e", f, b"--debug-file=x" + n, "0"], [b"--sysroot=" + n, b"--core=" + f], ["-e", f, b"--debug-file-directory=" + n, "0"],
                [b"-" + n], ["-e"], [b"--output-style=" + n], [b"--obj"]):
        r("symbolize", *bad)
    # A profile in which the function that is folded has a plain name.
    stack = b"prog 7 1.0: 1 cycles:\n" + b"".join(b"\t%16s fa+0x0 (%s)\n" % (a[2:], b"/prog") for a in at) + b"\n"
    r("symbolize", "--perf", "-e", f, stdin=stack)


def others(r, f):
    n, p = r.name, r.prog
    text = b"inQ"
    for how in ([], ["-s"], ["--relativenames"], ["--no-demangle"], ["-v"]):
        for g in (p, f):
            inlined = renamed(b"in" + b"Q" * (MIDDLE if r.kind == "joined" else SHORT), r.kind)
            r("inlines", *how, inlined, g)
            r("inlines", *how, "--json", inlined, b"./" + g, form="json")
    for bad in ([n, f], [text, b"x" + n], [text, b"d" + n], [text, b"list" + n], [n], [b"--" + n], [text, f, n]):
        r("inlines", *bad)
    for g in (f, p, b"x" + n, b"d" + n, b"list" + n, b"--" + n):
        r("dump", "--all", g)
        r("dump", "--all", "--json", "./" + "y" if g == p else g, form="json" if g == f else "text")
    r.put(b"prog.plain", open(os.path.join(r.args.work, "short"), "rb").read())
    r.allowed.add(b"prog.plain")
    for how in ([], ["--full-names"], ["--csv"], ["--no-sources", "--icf=safe"], [b"--filter=" + n], ["--filter=f[ab]", "--sort=name"], ["--max-duplicated=0"],
                [b"--icf=" + n], [b"--filter=((" + n], [b"--top=" + n], [b"--html=nowhere/" + n], [b"--html=" + p]):
        r("audit", *how, p)
    r("audit", "--json", p, form="json")
    r("audit", "--json", b"--filter=" + n, p, form="json")
    r("audit", "--diff", "--max-growth=0", p, "prog.plain")
    r("audit", "--diff", "prog.plain", p)
    r("audit", "--diff", "--json", p, "prog.plain", form="json")
    r("audit", b"x" + n)
    r("audit", "--html=prog.html", "prog.plain", makes=(b"prog.html",))
    r("audit", b"--html=page" + n, p, makes=(b"page" + n,), files=(b"page" + n,))
    try:
        one, two = (Page(open(r.at(x), "rb").read()) for x in (b"prog.html", b"page" + n))
        if one.count != two.count:
            r.bad.append("page: %s, %s" % (one.count, two.count))
    except (OSError, ValueError) as e:
        r.bad.append("page: %s" % e)
    for a, b in ((p, f), (b"prog.plain", f), (f, p), (p, b"x" + n), (b"list" + n, f), (b"d" + n, b"d" + n)):
        for how in ([], ["-v"], ["--no-debug"], ["--max=2", b"--debug-file=x" + n]):
            r("verify", *how, a, b)
        r("verify", "--json", b"./" + a, b, form="json" if b"x" + n != b and a in (p, f, b"prog.plain") else "text")
    # A linker that copies, and one whose result cannot be folded.
    r.put(b"ld", b'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nshift\ncase $1 in l*) exec head -c 3000 prog.plain >"$1" ;; *) exec cat prog.plain >"$1" ;; esac\n')
    may = (b"icfold", b"ld", b"cat", b"head", b"sh")
    r.allowed.add(b"ld")
    r("--linker-wrapper", "--", "./ld", b"-o", b"k" + n, makes=(b"k" + n,), may=may)
    r("--linker-wrapper", "--", "./ld", b"-o", b"l" + n, makes=(b"l" + n,), may=may)
    r("--linker-wrapper", "--", b"./" + n, "-o", "y", may=may + (n, b"./" + n))
    r("--linker-wrapper", b"--" + n, "--", "ld")


def one(args, kind, prog):
    try:
        r = Run(args, kind, prog)
        f = fold(r)
        symbolize(r, f)
        if kind != "long":
            split(r, f)
        others(r, f)
        r.made()
        return kind, r.n, r.bad
    except Exception as e:  # pylint: disable=broad-except
        return kind, 0, [repr(e)[:300]]


def main():
    parser = argparse.ArgumentParser()
    for a in ("--tool", "--work", "--only", "--jobs"):
        parser.add_argument(a)
    args = parser.parse_args()
    build(args.work, "short", SHORT, "-g")
    build(args.work, "dwarf4", SHORT, "-gdwarf-4")
    build(args.work, "middle", MIDDLE, "-g")
    build(args.work, "long", LONG, "-g")
    todo = [(k, "dwarf4" if k in ("newline", "script", "make") else "short") for k in names.KINDS] + [("joined", "middle"), ("long", "long")]
    todo = [(k, os.path.join(args.work, p)) for k, p in todo if re.fullmatch(args.only or "joined|long|newline", k)]
    failed = False
    with ThreadPoolExecutor(int(args.jobs or 2)) as pool:
        for kind, n, bad in pool.map(lambda t: one(args, *t), reversed(todo)):
            failed |= bool(bad)
            if bad:
                print("not ok names/all/%s: %d of %d commands: %s" % (kind, len(bad), n, bad[0][:300]))
                if os.environ.get("V"):
                    print("\n".join("# " + b for b in bad))
            else:
                print("ok names/all/%s (%d commands)" % (kind, n))
    return failed


if __name__ == "__main__":
    sys.exit(main())
