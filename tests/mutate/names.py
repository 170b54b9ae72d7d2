#!/usr/bin/env python3
"""names.py: hostile names for suites/tool/names.sh.

names.py rename IN OUT PREFIX KIND   every name in IN that begins with PREFIX and goes on with letters Q gets the text of KIND
                                     in their place, of the same length, so that nothing else in the file changes
names.py clean FILE...               fails when a FILE has a byte that a terminal acts on, or a line that a name began
names.py json FILE...                fails when a FILE is not JSON in UTF-8
names.py json,clean FILE...          the first is JSON, and all are clean
"""
import json
import re
import shutil
import sys

KINDS = {
    "newline": b"\nshell touch pwned\npython open('pwned','w')\n#0 forged\n",
    "escape": b"\x1b]0;pwned\x07\x1b[2J\x08\x7f\xc2\x9b31m\x9b31m\r",
    "quote": b"';touch pwned;'\";touch pwned;\"\\",
    "script": b"</script><script>pwned()</script><!--<script>",
    "shell": b"$(touch pwned)`touch pwned`|touch pwned;&&touch pwned",
    "format": b"%n%n%n%s%s%1000000d%%",
    "invalid": b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x80\xae\xe2\x80",
    "make": b" : all\\ #$(shell touch pwned)$$|&& ",
}


def rename(source, target, prefix, kind):
    with open(source, "rb") as f:
        data = f.read()

    def text(m):
        old = m.group()
        return (prefix + KINDS[kind])[: len(old)].ljust(len(old), b"x")

    prefix = prefix.encode()
    data, n = re.subn(re.escape(prefix) + rb"Q{8,}", text, data)
    if not n:
        sys.exit("names.py: no %s in %s" % (prefix.decode(), source))
    with open(target, "wb") as f:
        f.write(data)
    shutil.copymode(source, target)


def unclean(data):
    """What is wrong with DATA, or None."""
    m = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?m:^(shell|python|#0 forged))", data)
    if not m and re.search(rb"[\x80-\xff]", data):
        try:
            data.decode()
        except UnicodeDecodeError as e:
            m = re.compile(rb"(?s).").search(data, e.start)
    return m and "%r at %d" % (data[max(m.start() - 20, 0) : m.end() + 20], m.start())


def clean(path):
    with open(path, "rb") as f:
        why = unclean(f.read())
    return why and "%s: %s" % (path, why)


def is_json(path):
    with open(path, "rb") as f:
        data = f.read()
    try:
        for line in [data] if data.lstrip().startswith(b"[") or b"\n{" not in data.strip() else data.splitlines():
            json.loads(line.decode() or "null")
    except ValueError as e:
        return "%s: %s" % (path, e)
    return None


def main(command, *args):
    if command == "rename":
        return rename(*args)
    if command == "json,clean":
        found = [x for x in [is_json(args[0]), *map(clean, args)] if x]
    else:
        found = [x for x in map({"clean": clean, "json": is_json}[command], args) if x]
    for x in found:
        print(x)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
