# icfold_lldb.py: lldb names the function that was really called where icfold made several functions share their code.
#
#	(lldb) command script import icfold_lldb.py
#	(lldb) icfold-bt
#
# The command prints stacks as `bt` does.  lldb 14 lets nobody change the names in its own frames, so `bt` stays as it is; a line after
# a stop in shared code says whose code it is.
#
# Which function it is depends on the callers: their addresses are given to `icfold symbolize --stack`, one process a file, which
# stays.  So lldb and the symbolizer cannot disagree, and nothing is decoded in Python.  A virtual call is decided by the vtable that
# `this` points to, where lldb can read it.
#
# The program may be hostile.  No text of a file becomes part of a command, names come demangled from the symbolizer as JSON, and what
# is shown has no control characters.
#
# Written for lldb 14; what it uses is documented since lldb 8.
import argparse
import json
import os
import re
import shlex
import subprocess

import lldb

PROGRAM = ""  # the symbolizer; `make install` fills it in
HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = (".debug_icfold", ".debug_dcall", ".debug_vcall")
MOST_CANDIDATES = 8  # that are named
TRAMPOLINES = ("__restore_rt", "__restore", "__kernel_rt_sigreturn")
NONE = lldb.LLDB_INVALID_ADDRESS


def printable(text):
    """TEXT without what a terminal takes for a command, nor lines of its own."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda m: "\\x%02x" % ord(m.group()), text)


def find_program():
    """The symbolizer: $ICFOLD, what was installed with this file or lies in its source tree, or what the shell would run."""
    places = [os.environ.get("ICFOLD", ""), PROGRAM, os.path.join(HERE, "../build/icfold"), os.path.join(HERE, "../../bin/icfold")]
    # An empty element, or a relative one, is the folder that somebody else's core file may lie in.
    places += [os.path.join(d, "icfold") for d in os.environ.get("PATH", "").split(":") if os.path.isabs(d)]
    return next((p for p in places if p and os.path.isfile(p) and os.access(p, os.X_OK)), None)


class File:
    """A program or library with tables, and the process that reads them."""

    def __init__(self, path, stamp):
        self.path, self.stamp, self.process = path, stamp, None

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None

    def start(self):
        program = find_program()
        if not program:
            raise RuntimeError("no program icfold in sight (see $ICFOLD)")
        # In a session of its own, so that Ctrl-C is for lldb alone.
        self.process = subprocess.Popen(
            [program, "symbolize", "--stack", "--output-style=JSON", "-e", self.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, encoding="utf-8", errors="replace",
        )

    def ask(self, levels):
        """What is known of each level of one stack; a level is None or (address, vtable address or None), as linked."""
        if not self.process:
            self.start()
        lines = ["-" if l is None else "0x%x%s" % (l[0], ",vtable=0x%x" % l[1] if l[1] else "") for l in levels]
        try:
            self.process.stdin.write("\n".join(lines) + "\n\n")
            self.process.stdin.flush()
            ret = json.loads(self.process.stdout.readline())
            if len(ret) == len(levels):
                return ret
        except (OSError, ValueError):
            pass
        self.close()
        raise RuntimeError("%s: the symbolizer stopped" % printable(self.path))


files = {}  # by path


def file_of(module):
    """The File of MODULE, or None: it has no tables, or is not on the disk."""
    path = module.GetFileSpec().fullpath if module and module.IsValid() else None
    if not path or not any(module.FindSection(s).IsValid() for s in TABLES):
        return None
    try:
        s = os.stat(path)
    except OSError:
        return None
    stamp = (s.st_mtime_ns, s.st_size, s.st_ino)
    if path not in files or files[path].stamp != stamp:
        if path in files:
            files[path].close()
        files[path] = File(path, stamp)
    return files[path]


class Physical:
    """A frame of the machine, with the frames that lldb shows for it: inlined calls, innermost first, and the function's."""

    def __init__(self, frames, begins, target):
        self.frames, self.begins = frames, begins  # BEGINS: at an instruction that was interrupted, not a return address
        module = frames[-1].GetModule()
        self.pc, self.file, self.answer = frames[-1].GetPC(), file_of(module), {}
        head = module.GetObjectFileHeaderAddress() if self.file else None
        if head and head.GetLoadAddress(target) != NONE:
            self.bias = head.GetLoadAddress(target) - head.GetFileAddress()
        else:
            self.file = None

    def merged(self):
        return self.answer.get("Merged")

    def vtable(self, process):
        """The vtable address, as linked, of the object that the function was called on, or None."""
        frame = self.frames[-1]
        if "~" in (frame.GetFunctionName() or "~"):  # destructors change it
            return None
        this, error = frame.FindVariable("this"), lldb.SBError()
        if not this.IsValid() or not this.GetValueAsUnsigned():
            return None
        word = process.ReadPointerFromMemory(this.GetValueAsUnsigned(), error)
        return word - self.bias if error.Success() and word > self.bias else None


def physical_frames(thread):
    ret, frames, begins = [], [], True
    target = thread.GetProcess().GetTarget()
    for frame in thread.frames:
        if frame.IsArtificial():  # made up, for a tail call
            continue
        frames.append(frame)
        if frame.IsInlined():
            continue
        ret.append(Physical(frames, begins, target))
        begins = (frame.GetFunctionName() or "") in TRAMPOLINES
        frames = []
    return ret


def ask_run(run, process):
    """Asks about frames that follow each other in one file."""
    def ask(vtables):
        first = [] if run[0].begins else [None]
        answers = run[0].file.ask(first + [(p.pc - p.bias, vtables.get(i)) for i, p in enumerate(run)])
        for p, a in zip(run, answers[len(first):]):
            p.answer = a

    ask({})
    vtables = {i: p.vtable(process) for i, p in enumerate(run) if p.merged() and not p.merged()["Decided"]}
    if any(vtables.values()):
        ask(vtables)


def resolve(stack, process):
    i = 0
    while i < len(stack):
        n = i + 1
        while n < len(stack) and stack[n].file is stack[i].file and not stack[n].begins:
            n += 1
        if stack[i].file:
            ask_run(stack[i:n], process)
        i = n


def one_of(candidates, inlined):
    names = [printable(c) for c in candidates[:MOST_CANDIDATES]]
    more = len(candidates) - len(names)
    return " [%sone of: %s%s]" % ("inlined into " if inlined else "", ", ".join(names), ", %d more" % more if more > 0 else "")


def own_text(frame):
    """What lldb prints of FRAME, behind its number."""
    return re.sub(r"^\s*frame #\d+: ", "", str(frame))


def texts_of(p):
    """[(level, text)] for the frames of P, innermost first."""
    levels, m = [f.GetFrameID() for f in p.frames], p.merged()
    symbols = p.answer.get("Symbol", [])
    if m and not m["Decided"] and m["Candidates"]:
        # What is inlined here is inlined into the function that was kept; the function that was called may have other copies.
        return [(f.GetFrameID(), own_text(f) + one_of(m["Candidates"], f is not p.frames[-1])) for f in p.frames]
    own = p.frames[-1]
    line = own.GetLineEntry().GetLine()
    if not m or not m["Decided"] or not symbols or (symbols[-1]["FunctionName"] == own.GetFunctionName() and symbols[-1]["Line"] == line):
        return [(f.GetFrameID(), own_text(f)) for f in p.frames]
    ret = []
    # From the outermost on; what is inlined more than in the kept function has the number of the innermost.
    for i, s in enumerate(reversed(symbols)):
        place = " at %s:%d" % (os.path.basename(s["FileName"]), s["Line"]) if s["FileName"] else ""
        if place and s["Column"]:
            place += ":%d" % s["Column"]
        inlined = " [inlined]" if i else ""
        module = own.GetModule().GetFileSpec().basename
        text = "0x%016x %s`%s%s%s" % (p.pc, printable(module), printable(s["FunctionName"]), inlined, printable(place))
        ret.append((levels[max(0, len(levels) - 1 - i)], text))
    return ret[::-1]


def print_stack(thread, most, out):
    stack = physical_frames(thread)
    resolve(stack, thread.GetProcess())
    chosen = thread.GetSelectedFrame().GetFrameID()
    n = 0
    for p in stack:
        for level, text in texts_of(p):
            if most is not None and n == most:
                return
            print("  %s frame #%d: %s" % ("*" if level == chosen else " ", level, text), file=out)
            n += 1


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def backtrace(debugger, command, context, result, _dict):
    """Print the stack with the functions that were really called.
Syntax: icfold-bt [all] [COUNT]"""
    parser = Parser(prog="icfold-bt", add_help=False)
    parser.add_argument("what", nargs="*")
    try:
        what = parser.parse_args(shlex.split(command)).what
        count = next((int(w) for w in what if w != "all"), None)
    except ValueError as e:
        result.SetError("icfold-bt [all] [COUNT]: %s" % printable(str(e)))
        return
    process = context.GetProcess()
    if not process or not process.IsValid() or process.GetState() != lldb.eStateStopped:
        result.SetError("no stopped process")
        return
    selected = process.GetSelectedThread()
    try:
        for thread in process if "all" in what else [selected]:
            reason = thread.GetStopDescription(256)
            mark = "*" if thread.GetThreadID() == selected.GetThreadID() else " "
            print("%s thread #%d%s" % (mark, thread.GetIndexID(), ", stop reason = " + printable(reason) if reason else ""), file=result)
            print_stack(thread, count, result)
    except RuntimeError as e:
        result.SetError(str(e))


class StopHook:
    """Says whose code it is when a thread stops in shared code."""

    def __init__(self, target, extra_args, _dict):
        pass

    def handle_stop(self, context, stream):
        try:
            thread = context.GetThread()
            first = next((f for f in thread.frames if not f.IsInlined() and not f.IsArtificial()), None)
            if first is None or not file_of(first.GetModule()):
                return True
            stack = physical_frames(thread)
            resolve(stack, thread.GetProcess())
            m = stack[0].merged()
            if m and m["Decided"] and m["Candidates"] and m["Candidates"][0] != first.GetFunctionName():
                stream.Print("icfold: frame #%d is %s, which shares its code\n" % (first.GetFrameID(), printable(m["Candidates"][0])))
        except (RuntimeError, KeyError, IndexError):
            pass  # the stop is shown in any case
        return True


def __lldb_init_module(debugger, _dict):
    name = __name__
    debugger.HandleCommand("command script add -h 'Print the stack with the functions that were really called.' -f %s.backtrace icfold-bt" % name)
    debugger.HandleCommand("target stop-hook add -P %s.StopHook" % name)
