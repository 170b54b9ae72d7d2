"""qemu_gdb.py: `run` of gdb-multiarch for programs of another machine: the program starts under qemu, as $RUN says, and gdb is
connected to it.  So scripts for gdb are the same for all machines."""
import atexit
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import gdb

emulator = shlex.split(os.environ["RUN"])
folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder, True)
gdb.execute("set sysroot " + emulator[emulator.index("-L") + 1])
gdb.execute("set solib-search-path .")
# gdb 13 does not know the signal frames of processors with SVE.
os.environ.setdefault("QEMU_CPU", "cortex-a76")


def connect(socket, process):
    """gdb prints where the program is then: in the dynamic linker.  The socket is there before qemu listens."""
    for c in ("file /dev/null", "redirect on", "enabled on"):
        gdb.execute("set logging " + c, to_string=True)
    end = time.monotonic() + 60
    try:
        while True:
            try:
                gdb.execute("target remote " + socket)
                return
            except gdb.error:
                if time.monotonic() > end or process.poll() is not None:
                    raise
                time.sleep(0.02)
    finally:
        gdb.execute("set logging enabled off", to_string=True)


def end_with_gdb():
    """qemu would wait for a gdb that is gone, and nothing but SIGKILL ends it then."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Run(gdb.Command):
    """Start the program under qemu."""

    def __init__(self):
        super().__init__("run", gdb.COMMAND_RUNNING)
        self.process = None

    def invoke(self, arg, from_tty):
        file = gdb.current_progspace().filename
        if not file:
            raise gdb.GdbError("No executable file.")
        if gdb.selected_inferior().pid:
            gdb.execute("kill", to_string=True)
        socket = os.path.join(folder, "socket")
        if os.path.exists(socket):
            os.unlink(socket)
        command = "exec %s -g %s %s %s" % (shlex.join(emulator), socket, shlex.quote(file), arg)
        # qemu says on the standard error when gdb ends the program.
        self.process = subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_gdb)
        while not os.path.exists(socket):
            if self.process.poll() is not None:
                raise gdb.GdbError("qemu ended with %d" % self.process.returncode)
            time.sleep(0.01)
        connect(socket, self.process)
        gdb.execute("continue", from_tty)


Run()
