#!/usr/bin/env python3
"""odd_names.py: completes files with odd names in a shell on a terminal of its own.

odd_names.py SHELL COMPLETIONS WORK     SHELL is bash, zsh or fish
Types the first letters of each name and a TAB in several places of icfold's command line, and has the line run with a
program called icfold that notes its arguments.  Prints a line for each name that did not arrive as it is, and for each thing
that was run, or made, by the completion.
"""
import os
import pty
import select
import signal
import sys
import time

NAMES = ["A space x", "B\nline", 'C"quote', "D'tick", "E$(touch canary)", "F`touch canary`", "G;touch canary;", "H&touch canary", "I|x", "J*?[x]",
         "K\\back", "L<x>y", "M#x", "N=x", "O:x", "P!x", "Q\ttab", "R{1,2}", "S%n", "T$HOME", "U(x)", "V~x", "W\xe4\u20ac", "X  two", "Y'\"\\$(touch canary)"]
PLACES = ["dump %s", "dump -- %s", "%s", "symbolize --core=%s", "prog -o %s", "--map=%s", "--linker-wrapper -- ld %s", "dump ./%s"]
# Names that begin in quotes, or behind backslashes.
BEGUN = [("A\\ s", 0), ("'A s", 0), ('"A s', 0), ("C\\\"q", 2), ("'C\"q", 2), ("E\\$\\(t", 4), ("'E$(t", 4), ("'F`t", 5), ("'T$", 19), ("G\\;t", 6)]
DIRECTORY = ["-z", "Z dir"]
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "set +o history; PS1='$ '; bind 'set enable-bracketed-paste off'; . '%s/icfold.bash'\n"),
    "zsh": (["zsh", "-f", "-i"], "PS1='$ ' PS2=; setopt no_beep; fpath=('%s' $fpath); autoload -Uz compinit; compinit -D -u; bindkey '^I' complete-word\n"),
    "fish": (["fish", "--no-config", "--private"], "function fish_prompt; echo '$ '; end; set -g fish_autosuggestion_enabled 0; source '%s/icfold.fish'\n"),
}


class Shell:
    def __init__(self, name, completions, work):
        argv, start = START[name]
        self.name, self.work = name, work
        env = {"PATH": work + "/bin:" + os.environ["PATH"], "HOME": work + "/home", "TERM": "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "200"}
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(work + "/names")
            os.execvpe(argv[0], argv, env)
        self.seen = b""
        self.read(0.5)
        os.write(self.fd, start.replace("%s", completions).encode())
        os.write(self.fd, b"icfold ready\n")
        self.args(60)

    def read(self, seconds):
        """What the shell prints, answering what terminals are asked."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                return
            self.seen = (self.seen + got)[-4000:]
            if b"\x1b[c" in got or b"\x1b[0c" in got:
                os.write(self.fd, b"\x1b[?62;c")
            for _ in range(got.count(b"\x1b[6n")):
                os.write(self.fd, b"\x1b[1;1R")

    def args(self, seconds):
        """The arguments that the program was run with, or None."""
        path = self.work + "/args"
        end = time.monotonic() + seconds
        while not os.path.exists(path):
            if time.monotonic() > end:
                return None
            self.read(0.02)
        with open(path, "rb") as f:
            got = f.read().split(b"\0")[:-1]
        os.unlink(path)
        return [a.decode("utf-8", "replace") for a in got]

    def complete(self, line):
        os.write(self.fd, ("icfold " + line + "\t").encode())
        if self.name == "fish":
            self.read(0.05)
        os.write(self.fd, b"\n")
        got = self.args(15)
        if got is None:
            os.write(self.fd, b"\x03")
            self.read(0.3)
        return got

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def main():
    name, completions, work = sys.argv[1:4]
    for d in ("bin", "home", "names"):
        os.makedirs(work + "/" + d)
    with open(work + "/bin/icfold", "w") as f:
        # Moved into place when complete.
        f.write("#!/bin/sh\nif [ $# = 0 ]; then :; else printf '%%s\\0' \"$@\"; fi >%s/args.new\nmv %s/args.new %s/args\n" % (work, work, work))
    os.chmod(work + "/bin/icfold", 0o755)
    for n in NAMES + DIRECTORY[:1]:
        with open(work + "/names/" + n, "w"):
            pass
    os.mkdir(work + "/names/" + DIRECTORY[1])
    before = sorted(os.listdir(work + "/names"))
    shell = Shell(name, completions, work)
    tries = []
    for i, n in enumerate(NAMES + DIRECTORY):
        if "\t" in n and name == "fish":
            continue  # fish takes what is behind a tab for a description, in every command's file names
        # Every name as an argument, and in two other places, which differ by name; a dash would begin an option.
        for place in ["dump ./%s"] if n[0] == "-" else [PLACES[0], PLACES[1 + i % (len(PLACES) - 1)], PLACES[1 + (i + 3) % (len(PLACES) - 1)]]:
            tries.append((place, n[0], n))
    tries += [("dump %s", typed, NAMES[at]) for typed, at in BEGUN]
    for place, typed, n in tries:
        want = [w.replace("%s", n) for w in place.split(" ")]
        got = shell.complete(place.replace("%s", typed))
        if got and n == DIRECTORY[1]:
            got[-1] = got[-1].rstrip("/")
        if got != want:
            print("'%s' for %s: %s %s" % (place.replace("%s", typed), ascii(n), ascii(got), "" if got else ascii(shell.seen[-150:])))
        now = sorted(os.listdir(work + "/names"))
        if now != before:
            print("'%s' for %s made %s" % (place.replace("%s", typed), ascii(n), ascii(sorted(set(now) - set(before)))))
            before = now
    shell.end()
    print("# %d tried" % len(tries))


main()
