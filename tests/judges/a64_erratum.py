#!/usr/bin/env python3
"""a64_erratum.py OBJDUMP FILE: the places where errata of Cortex-A53 may strike, from a disassembly: function+offset.

843419: an ADRP in the last two words of a page of 4 KiB; a load or store, but no pair with write-back; perhaps one more instruction that is
no branch and does not write the register; a load or store at an unsigned offset from the register.
835769, marked so: a load or store, and right behind it a multiplication of 64 bits with an addition that does not need what was loaded.
"""
import re
import subprocess
import sys

ACCESS = re.compile(r"^(ld|st|cas|swp|prfm)")
insns = []
where = ""
for line in subprocess.run([sys.argv[1], "-d", "--no-show-raw-insn", sys.argv[2]], capture_output=True, text=True, check=True).stdout.split("\n"):
    m = re.match(r"^([0-9a-f]+) <(.*)>:$", line)
    if m:
        where, start = m[2], int(m[1], 16)
        continue
    m = re.match(r"^ *([0-9a-f]+):\t(\S+)\s*(.*)$", line)
    if m:
        insns.append((int(m[1], 16), m[2], m[3], f"{where}+{int(m[1], 16) - start:#x}"))


def uses(insn, reg):
    return ACCESS.match(insn[1]) and re.search(rf"\[{reg}(, #\d+)?\]$", insn[2].split(" //")[0].strip())


MULTIPLY = re.compile(r"^(madd|msub|[su]maddl|[su]msubl)$")


def registers(args):
    return [r[1:] for r in re.findall(r"\b[wx]\d+", args)]


for i, (va, name, args, place) in enumerate(insns[:-1]):
    va2, name2, args2, _ = insns[i + 1]
    if ACCESS.match(name) and MULTIPLY.match(name2) and va2 == va + 4 and args2.startswith("x"):
        loaded = registers(args.split("[")[0]) if name.startswith("ld") else []
        if not set(loaded) & set(registers(args2)[1:]):
            print(place, "835769")
for i, (va, name, args, place) in enumerate(insns[:-3]):
    if name != "adrp" or va % 4096 < 4096 - 8:
        continue
    reg = args.split(",")[0]
    first, second, third = insns[i + 1 : i + 4]
    if not ACCESS.match(first[1]):
        continue
    if uses(second, reg) or (uses(third, reg) and not re.match(r"^(b|bl|br|blr|ret|cbn?z|tbn?z|b\..*)$", second[1])):
        print(place)
