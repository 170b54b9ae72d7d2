"""torture_glibc.py: what torture.py knows of glibc's tests: the shared libraries that they are linked with or open, from its Makefiles.

Only what can be read without make: rules `$(objpfx)TEST: $(objpfx)LIBRARY.so`, `$(objpfx)TEST.out: ...`, and the variables
CFLAGS-FILE, LDFLAGS-TARGET, TEST-ENV and TEST-ARGS where their values are plain words."""
import os, pathlib, re

FOLDERS = ("elf", "dlfcn", "nptl", "sysdeps/pthread", "setjmp")
KNOWN = {"$(pie-ccflag)": "-fPIE", "$(PIE-ccflag)": "-fPIE", "$(pic-ccflag)": "-fPIC", "$(no-stack-protector)": "-fno-stack-protector",
         "$(LDFLAGS-rdynamic)": "-rdynamic", "$(LDFLAGS-Bsymbolic)": "-Wl,-Bsymbolic", "$(host-test-program-cmd)": "./prog"}
# In front of each library: something to fold, so that all of it moves.
EXTRA = """
#define TWICE __attribute__((noinline, used, visibility("hidden")))
TWICE long torture_one(long a, long b) { for (long i = 0; i < b; i++) a = a * 31 + (i ^ b) + (a >> 7); return a - b; }
TWICE long torture_two(long a, long b) { for (long i = 0; i < b; i++) a = a * 31 + (i ^ b) + (a >> 7); return a - b; }
"""


class Library:
    def __init__(self, name, source, flags, link, needs):
        self.name, self.source, self.flags, self.link, self.needs = name, source, flags, link, needs


class Rules:
    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.needs, self.opens, self.words = {}, {}, {}
        for folder in FOLDERS:
            path = self.top / folder / "Makefile"
            if path.is_file():
                self.read(path)

    def read(self, path):
        text = re.sub(r"\\\n\s*", " ", path.read_text(errors="replace"))
        for line in text.splitlines():
            m = re.match(r"\$\(objpfx\)([\w.+-]+?)(\.out)?:\s*(.*)", line)
            if m:
                libs = re.findall(r"([\w+-]+\.so)\b", m.group(3))
                (self.opens if m.group(2) else self.needs).setdefault(m.group(1), []).extend(libs)
                continue
            m = re.match(r"((?:CFLAGS|LDFLAGS|LDLIBS)-[\w.+-]+|[\w+-]+-(?:ENV|ARGS))\s*[:+]?=\s*(.*)", line)
            if m:
                words = [KNOWN.get(w, w).replace("\\$$", "$").replace("$$", "$").replace("'", "") for w in m.group(2).split()]
                self.words.setdefault(m.group(1), []).extend(words)

    def plain(self, name):
        """A variable's words; the build folder is the test's own.  Those that only make understands are left out."""
        ret = [w.replace("$(objpfx)", "./") for w in self.words.get(name, [])]
        return [w for w in ret if "$(" not in w]

    def source(self, name):
        for folder in FOLDERS:
            for end in (".c", ".cc", ".S"):
                p = self.top / folder / (name + end)
                if p.is_file():
                    return p
        return None

    def link_flags(self, target, folder):
        ret = self.plain("LDFLAGS-" + target)
        return [re.sub(r"--version-script=(?=[\w.-]+)", "--version-script=%s/" % folder, w) for w in ret]

    def libraries(self, names, flags, ret):
        """Adds to RET the libraries NAMES and those that they need, in an order in which they can be linked; False: one has no source."""
        for n in names:
            if any(l.name == n for l in ret) or n in ("ld.so", "libc.so", "libm.so", "libpthread.so", "librt.so"):
                continue
            source = self.source(n[:-3])
            if not source:
                return False
            needs = self.needs.get(n, [])
            if not self.libraries(needs, flags, ret):
                return False
            ret.append(Library(n, source, flags + self.plain("CFLAGS-" + source.name), self.link_flags(n, source.parent), needs))
        return True

    def set_up(self, test, text):
        """Options, libraries, environment and arguments of a test; False: it is none, or cannot be built."""
        name = test.path.stem
        is_test = re.search(r"test-(skeleton|driver)\.c|\bmain\s*\(", text) or (name.startswith("tst-") and re.search(r'#include\s+[<"][^">]*tst-[^">]*\.c', text))
        if not is_test or not (name.startswith("tst-") or name in self.needs or name in self.opens):
            return False
        support = os.environ.get("TORTURE_SUPPORT", "")
        top = str(self.top)
        test.flags = ["-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-I", top, "-I", top + "/support", "-I", os.path.dirname(support) + "/include"]
        for f in FOLDERS:
            test.flags += ["-iquote", top + "/" + f]
        own = list(test.flags)
        test.flags += self.plain("CFLAGS-" + test.path.name)
        test.needs = self.needs.get(name, [])
        if not self.libraries(self.needs.get(name, []) + self.opens.get(name, []), own, test.libraries):
            return False
        test.libs = [support, "-ldl", "-lm", *self.link_flags(name, test.path.parent)]
        test.args = self.plain(name + "-ARGS")
        for w in self.plain(name + "-ENV"):
            key, eq, value = w.partition("=")
            if eq:
                test.env[key] = value
        if test.libraries:
            test.env.setdefault("LD_LIBRARY_PATH", ".")
        test.fixed_static = name.endswith("-static")
        return True
