"""Names of code in programs that icfold(1) folded, and in all others: libicfold by ctypes; see icfold(3).

    prog = icfold.File("prog")
    for level in prog.stack([0x1220, 0x124c]):
        print(level.function, level.file, level.line)

A File belongs to one thread at a time.  python3 -m icfold FILE ADDRESS... prints a stack."""
import collections
import ctypes
import ctypes.util
import os
import sys

LIBRARY = ""  # `make install` fills it in

LINKAGE_NAMES, GNU_NAMES, NO_INLINES, BASENAMES, RELATIVE_NAMES, OWN_FILE_ONLY = 1, 2, 4, 8, 16, 32


class Error(Exception):
    """The file cannot be read."""


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint), ("debug_file", ctypes.c_char_p), ("debug_dir", ctypes.c_char_p), ("sysroot", ctypes.c_char_p)]


class _Frame(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_char_p), ("linkage", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_uint32), ("column", ctypes.c_uint32),
        ("discriminator", ctypes.c_uint32), ("start_line", ctypes.c_uint32), ("start_address", ctypes.c_uint64), ("inlined", ctypes.c_int),
    ]


class _Answer(ctypes.Structure):
    _fields_ = [
        ("n_frames", ctypes.c_size_t), ("shared", ctypes.c_int), ("decided", ctypes.c_int), ("n_candidates", ctypes.c_size_t), ("decided_by", ctypes.c_char_p),
    ]


Frame = collections.namedtuple("Frame", "function linkage file line column discriminator start_line start_address inlined")


class Level(collections.namedtuple("Level", "frames shared decided candidates decided_by")):
    """What is known of an address: frames, innermost first; of shared code, which functions it could be."""

    __slots__ = ()
    function = property(lambda self: self.frames[-1].function if self.frames else None, doc="the function, not an inlined call")
    file = property(lambda self: self.frames[-1].file if self.frames else None)
    line = property(lambda self: self.frames[-1].line if self.frames else 0)


def _load():
    path = os.environ.get("LIBICFOLD") or LIBRARY or ctypes.util.find_library("icfold") or "libicfold.so.1"
    lib = ctypes.CDLL(path)
    pointer, handle, answer = ctypes.POINTER, ctypes.c_void_p, ctypes.POINTER(_Answer)
    for name, result, arguments in (
        ("version", ctypes.c_char_p, []),
        ("open", ctypes.c_int, [ctypes.c_char_p, pointer(_Options), pointer(handle)]),
        ("open_fd", ctypes.c_int, [ctypes.c_int, pointer(_Options), pointer(handle)]),
        ("open_memory", ctypes.c_int, [ctypes.c_char_p, ctypes.c_size_t, pointer(_Options), pointer(handle)]),
        ("close", None, [handle]),
        ("message", ctypes.c_char_p, [handle]),
        ("warning", ctypes.c_char_p, [handle]),
        ("is_folded", ctypes.c_int, [handle]),
        ("build_id", pointer(ctypes.c_uint8), [handle, pointer(ctypes.c_size_t)]),
        ("stack", ctypes.c_int, [handle, pointer(ctypes.c_uint64), pointer(ctypes.c_uint64), ctypes.c_size_t]),
        ("level", ctypes.c_int, [handle, ctypes.c_size_t, pointer(answer)]),
        ("answer_frame", pointer(_Frame), [answer, ctypes.c_size_t]),
        ("answer_candidate", ctypes.c_char_p, [answer, ctypes.c_size_t]),
    ):
        f = getattr(lib, "icfold_" + name)
        f.restype, f.argtypes = result, arguments
    return lib


_lib = _load()


def version():
    return _lib.icfold_version().decode()


def _text(b):
    return None if b is None else b.decode("utf-8", "replace")


def _path(p):
    """P as C takes it.  C would end it at a zero byte, and open another file."""
    b = os.fsencode(p)
    if b"\0" in b:
        raise ValueError("embedded null byte")
    return b


def _fits(number, least, most):
    """NUMBER, of which ctypes would take only the low bits."""
    if not least <= number <= most:
        raise OverflowError("%d is not between %d and %d" % (number, least, most))
    return number


def _address(a):
    return _fits(a, 0, 2**64 - 1)


class File:
    """A program or library: a path, an open file's number, or its bytes.

    What is done with a closed file is a ValueError, as with Python's own files."""

    def __init__(self, what, flags=0, debug_file=None, debug_dir=None, sysroot=None):
        self._handle = ctypes.c_void_p()
        options = _Options(ctypes.sizeof(_Options), flags, *(_path(p) if p else None for p in (debug_file, debug_dir, sysroot)))
        ref = ctypes.byref(self._handle)
        if isinstance(what, int):
            status = _lib.icfold_open_fd(_fits(what, -(2**31), 2**31 - 1), options, ref)
        elif isinstance(what, (bytes, bytearray)):
            status = _lib.icfold_open_memory(bytes(what), len(what), options, ref)
        else:
            status = _lib.icfold_open(_path(what), options, ref)
        if status:
            self._fail(status, close=True)

    def _fail(self, status, close=False):
        message = _text(_lib.icfold_message(self._handle)) if self._handle else ""
        if close:
            self.close()
        if status == 2:
            raise MemoryError
        raise Error(message)

    def close(self):
        _lib.icfold_close(self._handle)
        self._handle = ctypes.c_void_p()

    def _open(self):
        if not self._handle:
            raise ValueError("the file is closed")
        return self._handle

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if _lib and getattr(self, "_handle", None):
            self.close()

    @property
    def is_folded(self):
        return bool(_lib.icfold_is_folded(self._open()))

    @property
    def warning(self):
        return _text(_lib.icfold_warning(self._open()))

    @property
    def build_id(self):
        n = ctypes.c_size_t()
        p = _lib.icfold_build_id(self._open(), ctypes.byref(n))
        return bytes(p[: n.value]) if p else None

    def stack(self, addresses, vtables=None):
        """[Level] for addresses as in the file, innermost first: a PC, then return addresses; 0: in another file."""
        n = len(addresses)
        array = ctypes.c_uint64 * n
        slots = None if vtables is None else array(*(_address(v or 0) for v in vtables))
        status = _lib.icfold_stack(self._open(), array(*map(_address, addresses)), slots, n)
        if status:
            self._fail(status)
        return [self._level(i) for i in range(n)]

    def address(self, address):
        return self.stack([address])[0]

    def _level(self, i):
        a = ctypes.POINTER(_Answer)()
        status = _lib.icfold_level(self._open(), i, ctypes.byref(a))
        if status:
            self._fail(status)
        frames = []
        for k in range(a.contents.n_frames):
            f = _lib.icfold_answer_frame(a, k).contents
            frames.append(Frame(_text(f.function), _text(f.linkage), _text(f.file), f.line, f.column, f.discriminator, f.start_line, f.start_address, bool(f.inlined)))
        candidates = [_text(_lib.icfold_answer_candidate(a, k)) for k in range(a.contents.n_candidates)]
        return Level(frames, bool(a.contents.shared), bool(a.contents.decided), candidates, _text(a.contents.decided_by))


def main(argv):
    if len(argv) < 3:
        sys.exit("usage: python3 -m icfold FILE ADDRESS...")
    try:
        levels = File(argv[1]).stack([int(a, 16) for a in argv[2:]])
    except (Error, OverflowError, ValueError) as e:
        sys.exit("icfold: %s: %s" % (argv[1], e))
    for level in levels:
        for f in level.frames or [None]:
            print("%s at %s:%d:%d" % (f.function or "??", f.file or "??", f.line, f.column) if f else "?? at ??:0:0")
        if level.shared and not level.decided:
            print("one of: " + ", ".join(c or "??" for c in level.candidates))


if __name__ == "__main__":
    main(sys.argv)
