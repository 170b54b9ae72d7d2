# icfold-gdb.py: gdb names the function that was really called where icfold made several functions share their code.
#
#	(gdb) source icfold-gdb.py
#
# `bt` is served by a frame filter.  `frame`, `up`, `down` and `info frame` do not ask filters, so they are wrapped; what gdb
# itself prints of a frame is taken and the names and lines in it are replaced.  A stop in shared code is followed by a line
# that says whose code it is, and $_icfold_name() is the name of the selected frame's function, for conditions of breakpoints.
# Nothing of this exists before a file with icfold's tables is loaded; programs without them are none of our business.
#
# Which function it is depends on the callers: their addresses are given to `icfold symbolize --stack`, one process a file, which
# stays.  So gdb and the symbolizer cannot disagree, and nothing is decoded in Python.  The stack is walked only as far as the
# next frame that is not in shared code, which what lies further out has no influence on.  A virtual call is decided by the
# vtable that `this` points to, where gdb can read it.
#
# The program may be hostile.  No text of a file becomes part of a command: gdb.execute() gets constants, numbers and what the
# user typed, names come demangled from the symbolizer as JSON, and what is shown has no control characters.
#
# Written for gdb 13; what it uses is documented for gdb 11 to 16.
import bisect
import itertools
import json
import locale
import os
import re
import stat
import struct
import subprocess

import gdb
from gdb.FrameDecorator import FrameDecorator

PROGRAM = ""  # the symbolizer; `make install` fills it in
HERE = os.path.dirname(os.path.abspath(globals()["__file__"])) if "__file__" in globals() else None
TABLES = {".debug_icfold", ".debug_dcall", ".debug_vcall"}
MOST_CANDIDATES = 8  # that are named
FIRST_LEVELS = 64  # of a stack that are asked about at once
COPIES = ("isra", "constprop", "part", "cold", "lto_priv", "llvm")
QUALIFIERS = (" const", " volatile", " &", " &&", " noexcept")
MAX_NAME = 8192  # letters of a name that are shown
MAX_PATH = 4096  # letters of the name of a file that gdb is asked about
MAX_SOURCE = 64 << 20  # bytes of a source file that are read for a line


def printable(text):
    """TEXT without what a terminal takes for a command, nor lines of its own, nor what gdb cannot print on it."""
    text = re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda m: "\\x%02x" % ord(m.group()), text)
    if text.isascii():
        return text
    charset = gdb.host_charset() if hasattr(gdb, "host_charset") else locale.getpreferredencoding(False)
    return text.encode(charset, "backslashreplace").decode(charset)


def complain(text):
    if text not in complain.said:
        complain.said.add(text)
        gdb.write("warning: icfold: %s\n" % printable(text), gdb.STDERR)


complain.said = set()


def find_program():
    """The symbolizer: $ICFOLD, what was installed with this file or lies in its source tree, or what the shell would run."""
    places = [os.environ.get("ICFOLD", ""), PROGRAM]
    places += [os.path.join(HERE, "../build/icfold"), os.path.join(HERE, "../../bin/icfold")] if HERE else []
    # An empty element, or a relative one, is the folder that somebody else's core file may lie in.
    places += [os.path.join(d, "icfold") for d in os.environ.get("PATH", "").split(":") if os.path.isabs(d)]
    return next((p for p in places if p and os.path.isfile(p) and os.access(p, os.X_OK)), None)


# --- files ---------------------------------------------------------------------------------------------------------------


def elf_sections(path):
    """Name: (address, size, flags) of the sections of a 64-bit little-endian ELF file; empty for anything else."""
    try:
        with open(path, "rb") as f:
            head = f.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return {}
            (shoff,) = struct.unpack_from("<Q", head, 40)
            size, n, names = struct.unpack_from("<HHH", head, 58)
            f.seek(shoff)
            if size != 64:
                return {}
            if n == 0 or names == 0xFFFF:
                first = struct.unpack("<IIQQQQIIQQ", f.read(64))
                n, names = n or first[5], first[6] if names == 0xFFFF else names
                f.seek(shoff)
            raw = f.read(64 * min(n, 1 << 20))
            headers = list(struct.iter_unpack("<IIQQQQIIQQ", raw[: len(raw) // 64 * 64]))
            if names >= len(headers):
                return {}
            f.seek(headers[names][4])
            strings = f.read(min(headers[names][5], 1 << 26))
    except (OSError, struct.error, OverflowError, ValueError):
        return {}
    ret = {}
    for h in headers[1:]:
        name = strings[h[0] : strings.find(b"\0", h[0])].decode("utf-8", "replace")
        ret.setdefault(name, (h[3], h[5], h[2]))
    return ret


class File:
    """A program or library with tables, and the process that reads them."""

    def __init__(self, path):
        self.path = path
        self.sections = elf_sections(path)
        self.stamp = self.stamp_of(path)
        self.process = None

    @staticmethod
    def stamp_of(path):
        try:
            s = os.stat(path)
            return (s.st_mtime_ns, s.st_size, s.st_ino)
        except OSError:
            return None

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def start(self):
        program = find_program()
        if not program:
            complain("no program icfold in sight (see $ICFOLD): functions that share code are not told apart")
            return False
        cmd = [program, "symbolize", "--stack", "--output-style=JSON", "--demangle=gnu", "--relativenames", "-e", self.path]
        for d in (gdb.parameter("debug-file-directory") or "").split(":"):
            if d and any(o.filename and o.owner and o.owner.filename == self.path and o.filename.startswith(d + "/") for o in gdb.objfiles()):
                cmd.insert(3, "--debug-file-directory=" + d)
                break
        try:
            # In a session of its own, so that Ctrl-C is for gdb alone.
            self.process = subprocess.Popen(
                cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
                encoding="utf-8", errors="replace",
            )
        except OSError as e:
            complain("cannot run %s: %s" % (program, e))
            return False
        return True

    def ask(self, levels):
        """What is known of each level of one stack; a level is None or (address, vtable address or None), as linked."""
        if not self.process and not self.start():
            return [{}] * len(levels)
        lines = ["-" if l is None else "0x%x%s" % (l[0], ",vtable=0x%x" % l[1] if l[1] else "") for l in levels]
        try:
            self.process.stdin.write("\n".join(lines) + "\n\n")
            self.process.stdin.flush()
            ret = json.loads(self.process.stdout.readline())
            if len(ret) == len(levels):
                return ret
        except (OSError, ValueError):
            pass
        complain("%s: the symbolizer stopped" % self.path)
        self.close()
        return [{}] * len(levels)


files = {}  # by path, of all folded ones that gdb has met


class CodeMap:
    """Where the code of folded files is in the current inferior."""

    def __init__(self):
        self.start, self.range, self.bounds = [], [], {}
        path, found = None, []
        for line in gdb.execute("info files", False, True).splitlines():
            m = re.match(r"\s+`(.*)', file type \S+\.$", line)
            if m:
                path = m.group(1)
                continue
            m = re.match(r"\s+(0x[0-9a-f]+) - (0x[0-9a-f]+) is (\S+)(?: in (.*))?$", line)
            f = m and files.get(os.path.realpath(m.group(4) or path or ""))
            where = f and f.sections.get(m.group(3))
            if not where:
                continue
            lo, hi = int(m.group(1), 16), int(m.group(2), 16)
            b = self.bounds.setdefault(f, [lo, hi])
            b[0], b[1] = min(b[0], lo), max(b[1], hi)
            if where[2] & 4:  # SHF_EXECINSTR
                found.append((lo, hi, lo - where[0], f))
        found.sort(key=lambda x: x[:2])
        self.range = found
        self.start = [x[0] for x in found]

    def at(self, pc):
        """(file, load bias) of the code at PC, or None."""
        i = bisect.bisect_right(self.start, pc) - 1
        if i >= 0 and pc < self.range[i][1]:
            return self.range[i][3], self.range[i][2]
        return None


# --- names ---------------------------------------------------------------------------------------------------------------


# Expressions that repeat a group up to the end of a name take the square of its length where they fail.


def without_clones(text):
    """TEXT without " [clone ...]" at its end."""
    while text.endswith("]"):
        head, mark, tail = text.rpartition(" [clone ")
        if not mark or "]" in tail[:-1]:
            break
        text = head
    return text


def without_copies(text):
    """TEXT without what compilers add to the names of copies: .isra.0, .part.1.cold."""
    parts = text.split(".")
    end = n = len(parts)
    while n > 1 and (parts[n - 1] in COPIES or re.fullmatch(r"\d+", parts[n - 1])):
        n -= 1
        end = n if parts[n] in COPIES else end
    return ".".join(parts[:end])


def split_name(text):
    """A demangled name without return type and parameters, as gdb has it for frames."""
    text = bare = without_clones(text)
    while bare.endswith(QUALIFIERS):
        bare = bare[: -len(next(q for q in QUALIFIERS if bare.endswith(q)))]
    if not bare.endswith(")"):
        return text
    depth = 0
    for i in range(len(bare) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(bare[i], 0)
        if depth == 0:
            break
    head = bare[:i]
    if not head or head.endswith("operator"):
        return text
    # The return type, which instances of templates have, ends with the last space outside of all brackets before the name.
    depth, cut, k = 0, 0, 0
    while k < len(head):
        op = re.match(r"operator\b\s*(<<=?|>>=?|<=>|<=?|>=?|->\*?|\(\)|\[\])?", head[k:]) if head[k] == "o" and depth == 0 else None
        if op and (k == 0 or not (head[k - 1].isalnum() or head[k - 1] == "_")):
            if not op.group(1):
                break
            k += op.end()
            continue
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(head[k], 0)
        if head[k] == " " and depth == 0:
            cut = k + 1
        k += 1
    return head[cut:]


def names_of(name):
    """(with parameters, as in a frame) of a name as the symbolizer spells it; what compilers add to the names of copies is left
    out."""
    if len(name) > MAX_NAME:
        name = name[:MAX_NAME] + "..."
    full = printable(without_copies(without_clones(name)))
    return full, split_name(full)


def raw_name(frame):
    """What gdb calls FRAME's function, or None; it cannot say what is not in the character set of the terminal."""
    try:
        return frame.name()
    except UnicodeDecodeError:
        return None


def own_name(frame):
    """The same to be shown."""
    return printable(raw_name(frame) or "") or None


def without_arguments(name):
    """NAME without the arguments of templates: what instances of one template have in common."""
    kept, opened = [], []
    for part in filter(None, re.split("([<>])", name)):
        if part == ">" and opened:
            del kept[opened.pop() :]
            continue
        if part == "<" and kept and kept[-1].endswith("operator"):
            opened.clear()
        elif part == "<":
            opened.append(len(kept))
        kept.append(part)
    return "".join(kept)


def one_of(candidates, inlined=False):
    both = [names_of(c) for c in candidates]
    some = [short for full, short in both]
    some = [full if some.count(short) > 1 else short for full, short in both]
    more = ", ... (%d)" % len(some) if len(some) > MOST_CANDIDATES else ""
    return " [%sone of: %s%s]" % ("inlined into " if inlined else "", ", ".join(some[:MOST_CANDIDATES]), more)


# --- stacks --------------------------------------------------------------------------------------------------------------


class Place:
    """What is to be shown of a frame.  With `suffix`, gdb's own text with that behind the name."""

    def __init__(self, name="", full="", file=None, line=None, suffix=""):
        self.name, self.file, self.line, self.suffix = name, file, line, suffix
        self.parameters = full[len(name) :] if full.startswith(name) else full[full.find(name) + len(name) :]

    def arguments_of(self, frame):
        """Whether the arguments that gdb sees, those of the kept function, make sense: it has the same parameters, or is an
        instance of the same template."""
        own, symbol = raw_name(frame), frame.function()
        if self.suffix or own is None or symbol is None or len(own) > MAX_NAME:
            return bool(self.suffix)
        parameters = symbol.print_name[len(own) :] if symbol.print_name.startswith(own) else ""
        return (parameters and parameters == self.parameters) or without_arguments(own) == without_arguments(self.name)


class Physical:
    """A frame of the machine, and the frames that gdb shows for it: inlined calls, innermost first, and the function's."""

    def __init__(self, frame, levels, where, pc, begins):
        self.frame, self.levels, self.where, self.pc = frame, levels, where, pc
        self.begins = begins  # an instruction that was interrupted, not a return address
        self.answer = None  # of the symbolizer
        self.places = None  # level: [Place], innermost first

    def merged(self):
        return self.answer.get("Merged")

    def vtable(self):
        """The vtable address, as loaded, of the object that the function was called on, or None."""
        own = raw_name(self.frame)
        if own is None or "~" in own:  # destructors change it
            return None
        try:
            this = self.frame.read_var("this")
            if this.is_optimized_out or this.type.strip_typedefs().code != gdb.TYPE_CODE_PTR:
                return None
            return struct.unpack("<Q", bytes(gdb.selected_inferior().read_memory(int(this), 8)))[0]
        except (gdb.error, ValueError, RuntimeError):
            return None


class Stack:
    """The stack of the selected thread, walked and resolved as far as somebody asks."""

    def __init__(self):
        self.map = CodeMap()
        self.next = gdb.newest_frame() if self.map.range else None
        self.level = 0
        self.physical = []
        self.inlined = []  # levels that wait for the function's frame
        self.owner = {}  # level: index in physical, or (PC, index of the next one) for frames of tail calls
        self.known = 0  # physical frames that have their answer

    def walk(self, n):
        """Makes `physical` have N frames, unless the stack ends before."""
        begins = not self.physical
        while self.next is not None and len(self.physical) < n:
            f, pc, kind = self.next, self.next.pc(), self.next.type()
            if kind == gdb.TAILCALL_FRAME:
                self.owner[self.level] = (pc, len(self.physical))
            elif kind == gdb.INLINE_FRAME:
                self.inlined.append(self.level)
            else:
                if self.physical:
                    begins = self.physical[-1].frame.type() in (gdb.SIGTRAMP_FRAME, gdb.DUMMY_FRAME)
                code = kind == gdb.NORMAL_FRAME and (self.map.at(pc if begins else pc - 1))
                for l in self.inlined + [self.level]:
                    self.owner[l] = len(self.physical)
                self.physical.append(Physical(f, self.inlined + [self.level], code or None, pc, begins))
                self.inlined = []
            self.level += 1
            try:
                self.next = f.older()
            except gdb.error:
                self.next = None

    def ask(self, lo, hi, vtables, before=None):
        """Answers for physical frames LO to HI, which are in one file; BEFORE is a PC that they lead to."""
        file, bias = self.physical[lo].where
        levels = [(p.pc - bias, vtables.get(i)) for i, p in enumerate(self.physical[lo:hi], lo)]
        first = [(before - bias, None)] if before else [] if self.physical[lo].begins else [None]
        return file.ask(first + levels)[len(first) if not before else 0 :]

    def resolve_next(self):
        lo = self.known
        if self.physical[lo].where is None:
            self.physical[lo].answer = {}
            self.known += 1
            return
        n = FIRST_LEVELS
        while True:
            self.walk(lo + n + 1)
            hi = lo + 1
            while hi < len(self.physical) and hi < lo + n and self.physical[hi].where == self.physical[lo].where and not self.physical[hi].begins:
                hi += 1
            answers = self.ask(lo, hi, {})
            end = hi
            if hi == lo + n:  # the stack goes on: what is inside of a frame without sharers is final
                while end > lo and "Merged" in answers[end - lo - 1]:
                    end -= 1
            if end > lo:
                break
            n *= 2
        vtables = {}
        for i in range(lo, end):
            m = answers[i - lo].get("Merged")
            v = self.physical[i].vtable() if m and not m["Decided"] else None
            bounds = self.map.bounds[self.physical[lo].where[0]]
            if v and bounds[0] <= v < bounds[1]:
                vtables[i] = v - self.physical[lo].where[1]
        if vtables:
            answers = self.ask(lo, hi, vtables)
        for i in range(lo, end):
            self.physical[i].answer = answers[i - lo]
        self.known = end

    def resolved(self, i):
        """Physical frame I with its answer, or None beyond the end."""
        self.walk(i + 1)
        while self.known <= i < len(self.physical):
            self.resolve_next()
        return self.physical[i] if i < len(self.physical) else None

    def tail_answer(self, pc, outer):
        """For a frame that gdb made up, of a function that PC jumped out of; OUTER is the caller's index."""
        p = self.resolved(outer)
        if p is None or p.where is None or self.map.at(pc - 1) != p.where or p.begins:
            return {}
        hi = outer
        while True:
            hi += 1
            q = self.resolved(hi)
            if q is None or q.where != p.where or q.begins or not self.physical[hi - 1].merged():
                break
        return self.ask(outer, hi, {}, pc - 1)[0]

    def places(self, level):
        """[Place] for the gdb frame of LEVEL, innermost first; None: as gdb has it; empty: no frame of its own."""
        while self.next is not None and level not in self.owner:
            self.walk(len(self.physical) + 1)
        owner = self.owner.get(level)
        if owner is None:
            return None
        if isinstance(owner, tuple):
            return places_of(self.tail_answer(*owner), [level], None).get(level)
        p = self.resolved(owner)
        if p.places is None:
            p.places = places_of(p.answer, p.levels, p)
        return p.places.get(level)


def as_recorded(path, symtab):
    """PATH as gdb shows the name of SYMTAB, a file of the same build: without the folder that the compiler ran in."""
    if symtab and not os.path.isabs(symtab.filename):
        full = symtab.fullname()
        if full.endswith("/" + symtab.filename) and path.startswith(full[: -len(symtab.filename)]):
            return path[len(full) - len(symtab.filename) :]
    return path


def hidden_calls(p):
    """How many inlined calls gdb does not show yet because the PC is at their first instruction."""
    n, b = 0, gdb.block_for_pc(p.pc)
    while b is not None and not b.is_static and not b.is_global:
        n += b.function is not None
        b = b.superblock
    return max(0, n - len(p.levels))


def places_of(answer, levels, p):
    m = answer.get("Merged")
    if not m:
        return {}
    if not m["Decided"]:
        # What is inlined here is inlined into the function that was kept; the function that was called may have other copies.
        return {l: [Place(suffix=one_of(m["Candidates"], l != levels[-1]))] for l in levels} if m["Candidates"] else {}
    sal = p.frame.find_sal() if p else None
    shown = []
    for s in answer["Symbol"]:
        full, name = names_of(s["FunctionName"])
        shown.append(Place(name, full, printable(as_recorded(s["FileName"], sal and sal.symtab)), s["Line"]))
    if not shown:
        return {}
    if p is not None:
        outer = shown[-1]
        if raw_name(p.frame) == outer.name and sal.symtab and sal.line == outer.line and os.path.basename(sal.symtab.filename) == os.path.basename(outer.file):
            return {}  # the function that was kept
        if p.begins:
            shown = shown[min(hidden_calls(p), len(shown) - 1) :]
    ret = {}
    for l in reversed(levels[1:]):
        ret[l] = [shown.pop()] if shown else []
    ret[levels[0]] = shown
    return ret


def places_here(stack, frame):
    """The Place to show for FRAME, or None: as gdb has it."""
    try:
        level = frame.level()
        places = stack.places(level)
        while places is not None and not places:  # gdb has more inlined calls here than the function that was called
            level += 1
            places = stack.places(level)
        return places[0] if places else None
    except Exception as e:  # a frame is shown in any case
        complain("%s: %s" % (type(e).__name__, e))
        return None


# --- bt ------------------------------------------------------------------------------------------------------------------


class Plain(FrameDecorator):
    """A frame that is as it is: without parameters in the name, as without frame filters."""

    def function(self):
        frame = self.inferior_frame()
        if type(self._base) is FrameDecorator and frame.function() is not None and frame.type() != gdb.SIGTRAMP_FRAME:
            return own_name(frame) or "??"
        try:
            own = super().function()
        except UnicodeDecodeError:
            own = None
        # gdb looks a number up as it is, and prints nothing at all where no symbol is: behind a function that ends with a call
        # of one that does not return, for example.
        return printable(own) if isinstance(own, str) else own_name(frame) or "??"

    def is_special(self):
        return self.inferior_frame().type() in (gdb.SIGTRAMP_FRAME, gdb.DUMMY_FRAME)

    def address(self):
        return None if self.is_special() else super().address()

    def filename(self):
        name = None if self.is_special() else super().filename()
        return name and printable(name)


class Shown(Plain):
    def __init__(self, base, place, extra=False):
        super().__init__(base)
        self.place, self.extra = place, extra

    def function(self):
        if not self.place.suffix:
            return self.place.name
        return super().function() + self.place.suffix

    def filename(self):
        return super().filename() if self.place.suffix else self.place.file or None

    def line(self):
        return super().line() if self.place.suffix else self.place.line or None

    def keeps_variables(self):
        return not self.extra and self.place.arguments_of(self.inferior_frame())

    def frame_args(self):
        return super().frame_args() if self.keeps_variables() else None

    def frame_locals(self):
        return super().frame_locals() if self.keeps_variables() else None

    def elided(self):
        return None if self.extra else super().elided()


class Filter:
    """Registered as `icfold` with each program space that has a folded file."""

    name, priority, enabled = "icfold", 200, True

    def filter(self, frames):
        return self.each(Stack(), frames)

    def each(self, stack, frames):
        for d in frames:
            try:
                places = stack.places(d.inferior_frame().level())
            except Exception as e:
                complain("%s: %s" % (type(e).__name__, e))
                places = None
            if places is None:
                yield Plain(d)
                continue
            for i, p in enumerate(places):
                yield Shown(d, p, i + 1 < len(places))


def active():
    f = gdb.current_progspace().frame_filters.get("icfold")
    return f is not None and f.enabled


# --- frame, up, down, info frame -----------------------------------------------------------------------------------------
# The commands are redefined; their subcommands outlive that under the names of aliases made before.


def run(command, from_tty=False, to_string=False):
    try:
        return gdb.execute(command, from_tty, to_string)
    except gdb.error as e:
        raise gdb.GdbError(str(e))


def selected():
    try:
        return gdb.selected_frame()
    except gdb.error:
        raise gdb.GdbError("No stack.")


def line_of(path, number):
    """Line NUMBER of the regular file PATH, or None.  Anything may have been put in its place: a pipe would be waited for."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as f:
            st = os.fstat(f.fileno())
            if stat.S_ISREG(st.st_mode) and st.st_size <= MAX_SOURCE:
                return next(itertools.islice(f, number - 1, number), "").rstrip("\r\n")
    except (OSError, ValueError):
        pass
    return None


def source_line(place, frame):
    path, symtab = place.file, frame.find_sal().symtab
    if not os.path.isabs(path) and symtab and symtab.fullname().endswith("/" + symtab.filename):
        path = symtab.fullname()[: -len(symtab.filename)] + path
    # gdb may know where it is now.  What it parses has only characters that mean nothing to it.
    if len(place.file) <= MAX_PATH and not os.path.isfile(path) and re.fullmatch(r"[\w./+~=@-]+", place.file):
        try:
            path = next(s.symtab.fullname() for s in gdb.decode_line("'%s':%d" % (place.file, place.line))[1] if s.symtab)
        except (gdb.error, StopIteration, TypeError):
            pass
    text = line_of(path, place.line)
    return "%d\t%s\n" % (place.line, printable(text) if text else "in " + place.file)


def describe(place, frame, text):
    """TEXT is what gdb prints of FRAME; the same for PLACE."""
    own = raw_name(frame)
    at = text.find("%s (" % own) if own else -1
    if at < 0:
        return text
    behind = at + len(own)
    if place.suffix:
        return text[:behind] + place.suffix + text[behind:]
    end = text.rfind(") at ", 0, text.find("\n") if text.find("\n") >= 0 else len(text))
    arguments = text[behind : end + 1] if end >= 0 and place.arguments_of(frame) else " ()"
    where = " at %s:%d\n%s" % (place.file, place.line, source_line(place, frame)) if place.file and place.line else "\n"
    return text[:at] + place.name + arguments + where


def show_selected(from_tty):
    frame = selected()
    print_it = "icfold-frame-level %d" % frame.level()
    place = places_here(Stack(), frame) if active() else None
    try:
        text = None if place is None else run(print_it, from_tty, True)
    except UnicodeDecodeError:  # of gdb's own name for it
        text = None
    if text is None:
        run(print_it, from_tty)
    else:
        gdb.write(describe(place, frame, text))


class FrameCommand(gdb.Command):
    """Select and print a stack frame.
Usage: frame [[level] LEVEL | address ADDRESS | function NAME | view ADDRESS [PC]]
       frame apply [all | COUNT | -COUNT | level LEVEL...] [FLAG]... COMMAND

With icfold's tables loaded, a frame in code that several functions share is printed as the function that was called."""

    def __init__(self):
        super().__init__("frame", gdb.COMMAND_STACK)

    def complete(self, text, word):
        return [w for w in ("address", "apply", "function", "level", "view") if w.startswith(word)] if text == word else gdb.COMPLETE_SYMBOL

    def invoke(self, arg, from_tty):
        first = arg.split(None, 1)
        if first and len(first[0]) > 1 and "apply".startswith(first[0]):
            run("icfold-frame-apply " + " ".join(first[1:]), from_tty)
            return
        if arg:
            run("select-frame " + arg)
        show_selected(from_tty)


class MoveCommand(gdb.Command):
    def __init__(self, name, text):
        self.__doc__ = text
        self.silent = name + "-silently "
        super().__init__(name, gdb.COMMAND_STACK)

    def invoke(self, arg, from_tty):
        run(self.silent + arg)
        show_selected(from_tty)


class InfoFrameCommand(gdb.Command):
    """All about the selected stack frame.
Usage: info frame [[level] LEVEL | address ADDRESS | function NAME | view ADDRESS [PC]]

With icfold's tables loaded, a frame in code that several functions share is named after the function that was called."""

    def __init__(self):
        super().__init__("info frame", gdb.COMMAND_STATUS)

    def invoke(self, arg, from_tty):
        frame, level = selected(), re.match(r"(?:l(?:evel|eve|ev|e)?\s+)?(\d+)$", arg.strip())
        if arg.strip() and not level:
            words = arg.split(None, 1)
            sub = next((w for w in ("level", "address", "function", "view") if w.startswith(words[0])), None)
            run("icfold-info-frame-%s %s" % ((sub, " ".join(words[1:])) if sub else ("level", arg)), from_tty)
            return
        text = "Stack frame" if level else "Stack level %d, frame" % frame.level()
        level = int(level.group(1)) if level else frame.level()
        try:
            text = run("icfold-info-frame-level %d" % level, from_tty, True).replace("Stack frame", text, 1)
        except UnicodeDecodeError:
            run("icfold-info-frame-level %d" % level, from_tty)
            return
        frame = gdb.newest_frame()
        while frame is not None and frame.level() < level:
            frame = frame.older()
        place = places_here(Stack(), frame) if frame is not None and active() else None
        if place is not None and raw_name(frame):
            new = own_name(frame) + place.suffix if place.suffix else place.name
            at = text.find(" in " + raw_name(frame)) + 4
            m = re.compile(r"(?: \(([^()]*)\))?; saved ").match(text, at + len(raw_name(frame))) if at > 3 else None
            if m:
                where = m.group(1) if place.suffix else "%s:%d" % (place.file, place.line) if place.file else None
                rest = text[m.end() - 8 :]
                if not place.arguments_of(frame):
                    rest = re.sub(r"(\n Arglist at [^\n]*, args: )[^\n]*", r"\1", rest, count=1)
                text = text[:at] + new + (" (%s)" % where if where else "") + rest
        gdb.write(text)


def wrap_commands():
    for name in ("frame level", "frame apply", "info frame level", "info frame address", "info frame function", "info frame view"):
        gdb.execute("alias -- icfold-%s = %s" % (name.replace(" ", "-"), name))
    FrameCommand()
    InfoFrameCommand()
    MoveCommand("up", "Select and print the stack frame that called this one.\nUsage: up [N]\n\nAn argument says how many frames up to go.")
    MoveCommand("down", "Select and print the stack frame called by this one.\nUsage: down [N]\n\nAn argument says how many frames down to go.")


class NameFunction(gdb.Function):
    """The name of the function that the selected frame is in, the one that was called where several share the code.
Usage: $_icfold_name ()

What cannot be decided is KEPT [one of: A, B]."""

    def __init__(self):
        super().__init__("_icfold_name")

    def invoke(self):
        frame = selected()
        place = places_here(Stack(), frame)
        own = own_name(frame) or ""
        return own if place is None else own + place.suffix if place.suffix else place.name


# --- events --------------------------------------------------------------------------------------------------------------


def on_stop(event):
    try:
        if not active() or any(b.silent or (b.commands or "").startswith("silent") for b in getattr(event, "breakpoints", [])):
            return
        frame = gdb.newest_frame()
        place = places_here(Stack(), frame)
        if place is None:
            return
    except gdb.error:
        return
    if place.suffix:
        gdb.write("icfold: frame 0 is %s%s\n" % (own_name(frame) or "??", place.suffix))
    else:
        gdb.write("icfold: frame 0 is %s%s, which shares the code of %s\n"
                  % (place.name, " at %s:%d" % (place.file, place.line) if place.file else "", own_name(frame) or "??"))


def on_objfile(event):
    look_at(event.new_objfile)


def look_at(objfile):
    """Takes note of OBJFILE when it, or the file that it is the debug information of, has tables."""
    if not objfile.is_valid() or not objfile.filename or TABLES.isdisjoint(elf_sections(objfile.filename)):
        return
    path = os.path.realpath((objfile.owner or objfile).filename)
    old = files.get(path)
    if old is None or old.stamp != File.stamp_of(path):
        if old is not None:
            old.close()
        files[path] = File(path)
    objfile.progspace.frame_filters.setdefault("icfold", Filter())
    if not on_stop.connected:
        on_stop.connected = True
        wrap_commands()
        NameFunction()
        gdb.events.stop.connect(on_stop)


on_stop.connected = False
if not hasattr(gdb, "icfold_loaded"):
    gdb.icfold_loaded = True
    gdb.events.new_objfile.connect(on_objfile)
    for known in itertools.chain.from_iterable(s.objfiles() for s in gdb.progspaces()):
        look_at(known)
