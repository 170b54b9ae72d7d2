#!/usr/bin/env python3
"""lint_form.py: length and width of what `make format` has formed, and the lines that tests change in the sources.

Prints one breach a line.  A file has at most 600 lines, a folder 25 files, a function 60 lines and six parameters, a line 100
columns (a string is not broken).  A function that is better left whole says so in the comment in front of it: "Long: why." or
"Wide: why."

Some suites build the program with a rule taken out (tests/lib/plant.sh): the sed command must find its line.
"""
import collections
import os
import re
import subprocess

FILE, FOLDER, FUNCTION, PARAMETERS, COLUMNS = 600, 25, 60, 6, 100
HEAD = re.compile(r"^[A-Za-z_][^;=]*?\b(\w+)\(([^;]*)\)$")


def parameters(text):
    """The number of parameters of a list, without those of function types in it."""
    depth = 0
    n = 1
    for c in text:
        depth += (c == "(") - (c == ")")
        n += c == "," and depth == 0
    return 0 if text.strip() == "void" else n


def prototypes(path, text):
    """Prototypes of headers: functions in .c files are found by their bodies."""
    for m in re.finditer(r"^[A-Za-z_][^;{}=#/]*?\b(\w+)\(([^;{}]*)\);$", text, re.M):
        if not m.group(0).startswith("typedef") and parameters(m.group(2)) > PARAMETERS:
            line = text.count("\n", 0, m.start()) + 1
            yield line, f"{m.group(1)}: {parameters(m.group(2))} parameters"


def functions(lines):
    """(first line, head, last line) of each function: the brace that opens and the one that closes it stand alone in column 0."""
    for i, line in enumerate(lines):
        if line != "{" or not i:
            continue
        first = i - 1
        while first and lines[first][:1] in ("\t", " "):
            first -= 1
        last = i
        while lines[last] != "}":
            last += 1
        yield first, " ".join(x.strip() for x in lines[first:i]), last


def reasons(lines, first):
    """The comment in front of line FIRST."""
    if not first or not lines[first - 1].rstrip().endswith("*/"):
        return ""
    i = first - 1
    while i and "/*" not in lines[i]:
        i -= 1
    return " ".join(lines[i:first])


def check(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    lines = text.split("\n")
    if len(lines) - 1 > FILE:
        yield f"{path}: {len(lines) - 1} lines"
    for i, line in enumerate(lines, 1):
        if len(line.expandtabs(8)) > COLUMNS and '"' not in line:
            yield f"{path}:{i}: {len(line.expandtabs(8))} columns"
    for first, head, last in functions(lines):
        m = HEAD.match(head)
        if not m:
            continue
        why = reasons(lines, first)
        if last - first + 1 > FUNCTION and "Long: " not in why:
            yield f"{path}:{first + 1}: {m.group(1)}: {last - first + 1} lines"
        if parameters(m.group(2)) > PARAMETERS and "Wide: " not in why:
            yield f"{path}:{first + 1}: {m.group(1)}: {parameters(m.group(2))} parameters"
    if path.endswith(".h"):
        for line, what in prototypes(path, text):
            if "Wide: " not in reasons(lines, line - 1):
                yield f"{path}:{line}: {what}"


def planted(path):
    """Sed commands of a suite that no longer change the source that they are for."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            for source, command in re.findall(r"\b((?:elfrw|dwarf|icf)/[\w/]+) '([^']+)'", line):
                text = ""
                if os.path.exists(f"{source}.c"):
                    with open(f"{source}.c", encoding="utf-8") as of:
                        text = of.read()
                if subprocess.run(["sed", command], input=text, capture_output=True, text=True, check=True).stdout == text:
                    yield f"{path}:{number}: {source}.c has no such line: {command}"


def main():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    sources = [f for f in files if re.match(r"(elfrw|dwarf|icf|tests)/.*\.[ch]$", f) and os.path.exists(f)]
    for folder, n in sorted(collections.Counter(map(os.path.dirname, sources)).items()):
        if n > FOLDER:
            print(f"{folder}: {n} files")
    for path in sources:
        for breach in check(path):
            print(breach)
    for path in files:
        if re.match(r"tests/suites/.*\.sh$", path):
            for breach in planted(path):
                print(breach)


main()
