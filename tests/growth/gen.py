#!/usr/bin/env python3
"""gen.py: programs that have N of one thing.

gen.py KIND N DIR      makes DIR/KIND.N, and DIR/KIND.N.at: addresses in it, for symbolize
gen.py --list          the kinds, a line each: KIND N [OPTION=TEXT]... (_ for a space); from this N on the cost can be measured
Everything is assembler text and goes through `as` and `ld --emit-relocs`; the cost of anything but the N things stays small.
"""
import os
import struct
import subprocess
import sys

KINDS = {}


def kind(n, **options):
    def add(f):
        KINDS[f.__name__.replace("_", "-")] = (f, n, options)
        return f
    return add


# ---- functions ----

def func(name, *body, cfi=True, align=True):
    return ["%s.globl %s\n.type %s,@function\n%s:%s" % (".p2align 4,0x90\n" if align else "", name, name, name,
                                                       "\n.cfi_startproc" if cfi else "")] + list(body) + \
        ["%s.size %s,.-%s" % (".cfi_endproc\n" if cfi else "", name, name)]


def value(k):
    """A body of its own for each number, long enough to fold."""
    return "movl $%d,%%eax\nimull $%d,%%eax,%%ecx\naddl %%ecx,%%eax\nmovl %%eax,%%edx\nshrl $3,%%edx\nxorl %%edx,%%eax\nret" % (k, k)


def call(name, *more):
    return "\n".join(["subq $8,%rsp\n.cfi_adjust_cfa_offset 8", "call " + name, *more,
                      "addq $8,%rsp\n.cfi_adjust_cfa_offset -8\naddl $77,%eax\nimull $77,%eax,%eax\nret"])


@kind(10000)
def equal(n):
    return [x for k in range(n) for x in func("f%d" % k, value(7))]


@kind(10000)
def groups(n):
    return [x for k in range(n) for c in "ab" for x in func("%s%d" % (c, k), value(k))]


@kind(10000)
def opaque(n):
    """Functions with a byte that is no instruction, among relocations out of order."""
    return [x for k in range(n) for x in func("f%d" % k, ".byte 0x06", call("f0", ".reloc f0,R_X86_64_NONE"))]


@kind(8000)
def chains(n):
    """Two chains of N functions that differ at the end."""
    out = []
    for c in "ab":
        out += func(c + "0", value(ord(c)))
        for k in range(1, n):
            out += func("%s%d" % (c, k), call("%s%d" % (c, k - 1)))
    return out


@kind(8000)
def chains_equal(n):
    out = []
    for c in "ab":
        out += func(c + "0", value(7))
        for k in range(1, n):
            out += func("%s%d" % (c, k), call("%s%d" % (c, k - 1)))
    return out


@kind(8000)
def chains_stay(n):
    """Two equal chains that end in observed functions too small for a thunk: all callers have to stay, the last ones first."""
    out = []
    for c in "ab":
        for k in range(n, 0, -1):
            out += func("%s%d" % (c, k), call("%s%d" % (c, k - 1)))
        out += func(c + "0", "ret")
    return out + [".data\n.quad a0,b0\n.text"]


@kind(8000)
def rings(n):
    out = []
    for c, m in (("a", n), ("b", n + 1)):
        for k in range(m):
            out += func("%s%d" % (c, k), call("%s%d" % (c, (k + 1) % m)))
    return out


@kind(8000)
def rings_odd(n):
    """Two rings of N functions; one function of the second ring differs."""
    out = []
    for c in "ab":
        for k in range(n):
            out += func("%s%d" % (c, k), call("%s%d" % (c, (k + 1) % n), *(["nop"] if (c, k) == ("b", n // 2) else [])))
    return out


@kind(10000)
def thunks(n):
    """Equal functions whose addresses are observed."""
    return [x for k in range(n) for x in func("f%d" % k, value(7))] + [".data"] + [".quad f%d" % k for k in range(n)] + [".text"]


@kind(4000)
def calls(n):
    """Two functions of N calls each."""
    out = func("leaf", value(1)) + func("leaf2", value(1))
    for f, t in (("f", "leaf"), ("g", "leaf2")):
        out += func(f, "subq $8,%rsp", *["call " + t] * n, "addq $8,%rsp\nret")
    return out


@kind(2000)
def hubs(n):
    """Two functions, each of which calls all functions of a chain."""
    out = chains_equal(n)
    for c in "ab":
        out += func("hub" + c, "subq $8,%rsp", *["call %s%d" % (c, k) for k in range(n)], "addq $8,%rsp\nret")
    return out


@kind(10000)
def symbols(n):
    """N names for N functions, and N names for one function."""
    return [x for k in range(n) for x in func("f%d" % k, value(k))] + func("many", value(1)) + \
        [".globl s%d\n.type s%d,@function\ns%d = many" % (k, k, k) for k in range(n)]


def share_name(path, n):
    """Gives function fK the name of the long one without its first K + 1 letters."""
    with open(path, "r+b") as f:
        data = bytearray(f.read())
        shoff, shnum = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3c)[0]
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
        table = [s for s in sections if s[1] == 2][0]
        strings = sections[table[6]][4]
        symbols = {}
        for at in range(table[4], table[4] + table[5], 24):
            name = strings + struct.unpack_from("<I", data, at)[0]
            symbols[bytes(data[name:data.index(0, name)])] = at
        long = struct.unpack_from("<I", data, symbols[b"x" * n + b"e"])[0]
        for k in range(n):
            struct.pack_into("<I", data, symbols[b"f%d" % k], long + k + 1)
        f.seek(0)
        f.write(data)


@kind(4000, after=share_name, says="names", refused_verify="too long together")
def suffixes(n):
    """Equal functions whose names are suffixes of one string."""
    return func("x" * n + "e", value(7)) + [x for k in range(n) for x in func("f%d" % k, value(7))]


@kind(1000)
def sections(n):
    return [x for k in range(n) for x in ['.section .t%d,"ax"' % k] + func("f%d" % k, value(k // 2))] + [".text"]


@kind(1000)
def data_sections(n):
    return func("f", value(1)) + func("g", value(1)) + ['.section .d%d,"aw"\n.quad f' % k for k in range(n)] + [".text"]


@kind(1000)
def unloaded_sections(n):
    return func("f", value(1)) + func("g", value(1)) + ['.section .d%d,"",@progbits\n.quad f' % k for k in range(n)] + [".text"]


@kind(20000)
def relocations(n):
    """N words of data with the addresses of two functions."""
    return func("f", value(1)) + func("g", value(1)) + [".data"] + [".quad f,g"] * n + [".text"]


@kind(20000, link=["-pie", "--no-dynamic-linker"])
def dynamic_relocations(n):
    return func("f", value(1)) + func("g", value(1)) + [".data"] + [".quad f,g,a%d" % k for k in range(n)] + \
        ["a%d: .quad 0" % k for k in range(n)] + [".text"]


@kind(2000)
def jump_tables(n):
    out = []
    for k in range(n):
        out += func("f%d" % k, "cmpl $3,%%edi\nja .Lx%d\nmovl %%edi,%%edi\nleaq .Lt%d(%%rip),%%rdx\nmovslq (%%rdx,%%rdi,4),%%rax\naddq %%rdx,%%rax\n"
                    "jmp *%%rax\n.Ly%d: movl $%d,%%eax\nret\n.Lx%d: xorl %%eax,%%eax\nret" % (k, k, k, k // 2, k))
    out += ['.section .rodata,"a"\n.p2align 2'] + [".Lt%d: .long .Lx%d-.Lt%d,.Ly%d-.Lt%d" % (k, k, k, k, k) for k in range(n)]
    return out + [".text"]


def table_of(n, reads):
    out = []
    for c in "ab":
        out += func(c, "cmpl $%d,%%edi\nja .Lx%s\nmovl %%edi,%%edi" % (n - 1, c), *["leaq .Lt%s(%%rip),%%rdx\nmovslq (%%rdx,%%rdi,4),%%rax\n"
                    "addq %%rdx,%%rax\njmp *%%rax" % c] * reads, *[".Lc%s%d: incl %%eax" % (c, k) for k in range(n)], ".Lx%s: xorl %%eax,%%eax\nret" % c)
    for c in "ab":
        out += ['.section .rodata,"a"\n.p2align 2\n.Lt%s:' % c] + [".long .Lc%s%d-.Lt%s" % (c, k, c) for k in range(n)]
    return out + [".text"]


@kind(5000, strip=[".text"])
def one_unit(n):
    """N functions that nothing delimits: no names, no frames, no relocations."""
    return [x for c in "fg" for x in func(c, value(7))] + \
        [".p2align 4\n.La%d: subq $8,%%rsp\ncmpl $3,%%edi\nja 1f\ncall .La%d\nmovl $5,%%eax\njne 1f\nleaq .La%d(%%rip),%%rax\n1: addq $8,%%rsp\nret\n"
         "movl $3,%%eax\nret" % (k, k * 7919 % n, k * 31 % n) for k in range(n)]


@kind(2000, strip=[".text"])
def two_units(n):
    """N switches, in two runs of code that nothing delimits, whose tables take turns."""
    switch = ".p2align 4\n.La%d: cmpl $1,%%edi\nja 1f\nmovl %%edi,%%edi\nleaq .Lt%d(%%rip),%%rdx\nmovslq (%%rdx,%%rdi,4),%%rax\naddq %%rdx,%%rax\n" \
        "jmp *%%rax\n.Lb%d: movl $%d,%%eax\nret\n1: leaq .La%d(%%rip),%%rax\nret"
    out = [x for c in "fg" for x in func(c, value(7))]
    for first in (0, 1):
        out += [switch % (k, k, k, k, k * 31 % n) for k in range(first, n, 2)] + func("h%d" % first, value(first))
    return out + ['.section .rodata,"a"\n.p2align 2'] + [".Lt%d: .long .Lb%d-.Lt%d,.Lb%d-.Lt%d" % (k, k, k, k, k) for k in range(n)] + [".text"]


@kind(10000)
def table_entries(n):
    return table_of(n, 1)


@kind(1000)
def table_reads(n):
    """A table of N entries, read at N places."""
    return table_of(n, n)


def records(n, named):
    """N distances to functions, a zero behind each; NAMED: code refers to each record."""
    refs = ["leaq .Lr%d(%%rip),%%rax" % k for k in (range(n) if named else [0])]
    return [x for k in range(100) for x in func("f%d" % k, value(k // 2))] + func("h", *refs, "ret") + \
        ['.section .rodata,"a"\n.p2align 2'] + [".Lr%d: .long f%d-.,0" % (k, k % 100) for k in range(n)] + [".text"]


@kind(10000, strip=[".text", ".rodata"], link=["-pie", "--no-dynamic-linker"])
def distances(n):
    return records(n, False)


@kind(10000, strip=[".text", ".rodata"], link=["-pie", "--no-dynamic-linker"])
def named_distances(n):
    return records(n, True)


# ---- unwinding ----

@kind(5000)
def fde_rules(n):
    """Two functions of N rules each."""
    return [x for c in "ab" for x in func(c, *["nop\n.cfi_def_cfa_offset %d\nnop\n.cfi_def_cfa_offset 8" % (16 + k % 5) for k in range(n)], "ret")]


@kind(2000)
def lsdas(n):
    out = [".globl __gxx_personality_v0\n__gxx_personality_v0: ret"]
    for k in range(n):
        out += func("f%d" % k, ".cfi_personality 0x1b,__gxx_personality_v0\n.cfi_lsda 0x1b,.Ll%d\nsubq $8,%%rsp\n.cfi_adjust_cfa_offset 8\n"
                    ".La%d: call leaf\n.Lb%d: addq $8,%%rsp\nret\n.Lp%d: movl $%d,%%eax\njmp .Lb%d" % (k, k, k, k, k // 2, k))
    out += func("leaf", value(1)) + ['.section .gcc_except_table,"a"']
    for k in range(n):
        out += [".Ll%d: .byte 255,255,1\n.uleb128 .Le%d-.Ls%d\n.Ls%d: .uleb128 .La%d-f%d\n.uleb128 .Lb%d-.La%d\n.uleb128 .Lp%d-f%d\n.uleb128 0\n.Le%d:"
                % ((k,) * 11)]
    return out + [".text"]


@kind(4000)
def call_sites(n):
    """Two exception tables of N call sites."""
    out = [".globl __gxx_personality_v0\n__gxx_personality_v0: ret"]
    for c in "ab":
        out += func(c, ".cfi_personality 0x1b,__gxx_personality_v0\n.cfi_lsda 0x1b,.Ll%s\nsubq $8,%%rsp\n.cfi_adjust_cfa_offset 8" % c,
                    *[".L%s%d: call leaf" % (c, k) for k in range(n + 1)], ".Lp%s: addq $8,%%rsp\nret" % c)
    out += func("leaf", value(1)) + ['.section .gcc_except_table,"a"']
    for c in "ab":
        out += [".Ll%s: .byte 255,255,1\n.uleb128 .Le%s-.Ls%s\n.Ls%s:" % (c, c, c, c)]
        out += [".uleb128 .L%s%d-%s\n.uleb128 .L%s%d-.L%s%d\n.uleb128 .Lp%s-%s\n.uleb128 0" % (c, k, c, c, k + 1, c, k, c, c) for k in range(n)]
        out += [".Le%s:" % c]
    return out + [".text"]


# ---- notes and others ----

@kind(20000)
def notes(n):
    return pair() + ['.section .note.x,"a",@note\n.p2align 2'] + [".long 4,4,%d\n.asciz \"abc\"\n.long 1" % k for k in range(n)] + [".text"]


@kind(10000)
def probes(n):
    out = func("f", value(1)) + func("g", *[".Lq%d: nop" % k for k in range(n)], "ret")
    out += ['.section .stapsdt.base,"aG",@progbits,.stapsdt.base,comdat\n_.stapsdt.base: .space 1\n.section .note.stapsdt,"",@note\n.p2align 2']
    out += [".long 8,2f-1f,3\n.asciz \"stapsdt\"\n1: .quad .Lq%d,_.stapsdt.base,0\n.asciz \"a\"\n.asciz \"b\"\n.asciz \"\"\n2: .p2align 2" % k
            for k in range(n)]
    return out + [".text"]


def pair():
    return func("f", value(1)) + func("g", value(1))


# ---- debug information ----

ABBREV = """.uleb128 1,0x11\n.byte 1\n.uleb128 0x3,0x8,0x11,0x1,0x12,0x7,0x10,0x17,0,0
.uleb128 2,0x2e\n.byte 0\n.uleb128 0x3,0x8,0x11,0x1,0x12,0x7,0,0
.uleb128 3,0x2e\n.byte 1\n.uleb128 0x3,0x8,0x11,0x1,0x12,0x7,0,0
.uleb128 4,0x1d\n.byte 1\n.uleb128 0x31,0x13,0x11,0x1,0x12,0x7,0x58,0x5,0x59,0x5,0,0
.uleb128 5,0x2e\n.byte 0\n.uleb128 0x3,0x8,0x20,0xb,0,0
.uleb128 6,0x0b\n.byte 1\n.uleb128 0x11,0x1,0x12,0x7,0,0
.uleb128 7,0x34\n.byte 0\n.uleb128 0x3,0x8,0x1c,0x5,0,0
.uleb128 8,0x2e\n.byte 1\n.uleb128 0x3,0x8,0x55,0x17,0,0
.uleb128 9,0x0b\n.byte 1\n.uleb128 0x55,0x17,0,0
.uleb128 10,0x34\n.byte 0\n.uleb128 0x3,0x8,0x2,0x17,0,0
.uleb128 11,0x34\n.byte 0\n.uleb128 0x3,0xe,0x1c,0x5,0,0
.uleb128 12,0x1d\n.byte 1\n.uleb128 0x31,0x13,0x55,0x17,0x58,0x5,0x59,0x5,0,0
.uleb128 13,0x2e\n.byte 0\n.uleb128 0x47,0x13,0x11,0x1,0x12,0x7,0,0
.uleb128 14,0x48\n.byte 0\n.uleb128 0x7d,0x1,0x7f,0x13,0,0
.uleb128 15,0x11\n.byte 1\n.uleb128 0x3,0x8,0x11,0x1,0x55,0x17,0x10,0x17,0,0
"""


def unit(k, *dies, low="f", high=".Lend", abbrev=".Labbrev", line=".Lline", code=1):
    where = ".quad %s,%s-%s" % (low, high, low) if code == 1 else ".quad 0\n.long .Lr0"
    return ['.section .debug_info,""', ".Lcu%d: .long 2f-1f\n1: .short 5\n.byte 1,8\n.long %s" % (k, abbrev),
            ".uleb128 %d\n.asciz \"u%d.c\"\n%s\n.long %s" % (code, k, where, line), *dies, ".byte 0\n2:"]


def subprogram(name, code=2, symbol=None):
    symbol = symbol or name
    return ".uleb128 %d\n.asciz \"%s\"\n.quad %s\n.quad .Lend_%s-%s" % (code, name, symbol, symbol, symbol)


def line(rows=(), files=()):
    """Line tables of version 4: rows are assembler text."""
    return ['.section .debug_line,""\n.Lline: .long 2f-1f\n1: .short 4\n.long 4f-3f\n3: .byte 1,1,1,-5,14,13,0,1,1,1,1,0,0,0,1,0,0,1\n.byte 0',
            ".asciz \"u.c\"\n.byte 0,0,0", *[".asciz \"%s\"\n.byte 0,0,0" % f for f in files], ".byte 0\n4:",
            *(rows or [".byte 0,9,2\n.quad f\n.byte 1,2\n.uleb128 .Lend-f\n.byte 0,1,1"]), "2:"]


def debug(text, *parts, abbrev=ABBREV, rows=(), files=()):
    """TEXT's functions, the marks that end them, and sections."""
    out = [".text\n.globl f0"]
    for x in text:
        out.append(x)
        if x.startswith(".cfi_endproc") or x.startswith(".size"):
            out.append(".Lend_%s:" % x.split(",.-")[1])
    out += [".Lend: nop", '.section .debug_abbrev,""\n.Labbrev:', abbrev, ".byte 0"] + line(rows, files)
    for p in parts:
        out += p
    return out + [".text"]


def funcs(n):
    return [x for k in range(n) for x in func("f" if k == 0 else "f%d" % k, value(k // 2))]


def fname(k):
    return "f" if k == 0 else "f%d" % k


@kind(3000)
def units(n):
    return debug(funcs(n), *[unit(k, subprogram(fname(k)), low=fname(k), high=".Lend_" + fname(k)) for k in range(n)])


@kind(6000)
def subprograms(n):
    """N functions in one unit."""
    return debug(funcs(n), unit(0, *[subprogram(fname(k)) for k in range(n)]))


@kind(4000)
def guesses(n):
    """A function of N calls that takes N addresses of others."""
    text = funcs(4) + func("f4", "subq $8,%rsp", *["lea f2(%rip),%rax\ncall f", "lea f3(%rip),%rax\ncall f1"] * (n // 2), "addq $8,%rsp\nret")
    return debug(text, unit(0, *[subprogram(fname(k)) for k in range(5)]))


@kind(30000)
def dies(n):
    return debug(funcs(2), unit(0, subprogram("f"), *[".uleb128 7\n.asciz \"v\"\n.quad %d" % k for k in range(n)], subprogram("f1")))


@kind(4000)
def depth(n):
    """N lexical blocks, each in the one before."""
    return debug(funcs(2), unit(0, subprogram("f", 3), *[".uleb128 6\n.quad f,.Lend_f-f"] * n, *[".byte 0"] * (n + 1), subprogram("f1")))


INLINED = ".uleb128 4\n.long .Lorigin%d-.Lcu0\n.quad f,.Lend_f-f\n.quad 1,%d"


@kind(2000)
def inline_depth(n):
    return debug(funcs(2), unit(0, *[".Lorigin%d: .uleb128 5\n.asciz \"i%d\"\n.byte 1" % (k, k) for k in range(n)], subprogram("f", 3),
                                *[INLINED % (k, k) for k in range(n)], *[".byte 0"] * (n + 1), subprogram("f1")))


@kind(4000)
def inlined(n):
    """N inlined functions beside each other, in a function of N instructions."""
    text = func("f", *[".Li%d: incl %%eax" % k for k in range(n + 1)], "ret") + func("f1", *["incl %eax"] * (n + 1), "ret")
    return debug(text, unit(0, ".Lorigin: .uleb128 5\n.asciz \"i\"\n.byte 1", subprogram("f", 3),
                            *[".uleb128 4\n.long .Lorigin-.Lcu0\n.quad .Li%d,2\n.quad 1,%d\n.byte 0" % (k, k) for k in range(n)], ".byte 0", subprogram("f1")))


@kind(5000)
def abbreviations(n):
    more = ABBREV + "\n".join(".uleb128 %d,0x34\n.byte 0\n.uleb128 0x3,0x8,0,0" % k for k in range(20, n + 20))
    return debug(funcs(2), unit(0, subprogram("f"), *[".uleb128 %d\n.asciz \"v\"" % k for k in range(20, n + 20)], subprogram("f1")), abbrev=more)


@kind(1000)
def abbreviation_tables(n):
    """One large table for N units."""
    more = ABBREV + "\n".join(".uleb128 %d,0x34\n.byte 0\n.uleb128 0x3,0x8,0,0" % k for k in range(20, n + 20))
    return debug(funcs(n), *[unit(k, subprogram(fname(k)), low=fname(k), high=".Lend_" + fname(k)) for k in range(n)], abbrev=more)


def rnglists(*lists):
    out = ['.section .debug_rnglists,""\n.Lr: .long 2f-1f\n1: .short 5\n.byte 8,0\n.long 0']
    for name, ranges in lists:
        out += ["%s:" % name] + [".byte 6\n.quad %s,%s" % r for r in ranges] + [".byte 0"]
    return out + ["2:"]


def spread(n):
    return func("f", *[".Li%d: incl %%eax" % k for k in range(2 * n + 1)], "ret") + \
        func("f1", *[".Lj%d: incl %%eax" % k for k in range(2 * n + 1)], "ret")


@kind(4000)
def ranges(n):
    """One list of N ranges."""
    return debug(spread(n), rnglists((".Lr0", [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1)) for k in range(n)])),
                 unit(0, subprogram("f", 3), ".uleb128 9\n.long .Lr0\n.byte 0,0", subprogram("f1")))


@kind(4000)
def range_lists(n):
    return debug(spread(n), rnglists(*[(".Lr%d" % k, [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1))]) for k in range(n)]),
                 unit(0, subprogram("f", 3), *[".uleb128 9\n.long .Lr%d\n.byte 0" % k for k in range(n)], ".byte 0", subprogram("f1")))


@kind(1000)
def shared_list(n):
    """N blocks and N inlined functions that share a list of N ranges."""
    return debug(spread(n), rnglists((".Lr0", [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1)) for k in range(n)])),
                 unit(0, ".Lorigin: .uleb128 5\n.asciz \"i\"\n.byte 1", subprogram("f", 3), *[".uleb128 9\n.long .Lr0\n.byte 0"] * n,
                      *[".uleb128 12\n.long .Lorigin-.Lcu0\n.long .Lr0\n.quad 1,%d\n.byte 0" % k for k in range(n)], ".byte 0", subprogram("f1")))


@kind(1000)
def shared_list_functions(n):
    """N functions that state the same list of N ranges."""
    return debug(spread(n), rnglists((".Lr0", [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1)) for k in range(n)])),
                 unit(0, *[".uleb128 8\n.asciz \"s%d\"\n.long .Lr0\n.byte 0" % k for k in range(n)], subprogram("f1")))


def whole(n):
    return rnglists((".Lr0", [(fname(k), ".Lend_" + fname(k)) for k in range(n)]))


@kind(4000)
def unit_ranges(n):
    """A unit of N functions, each in a section of its own."""
    return debug([x for k in range(n) for x in func(fname(k), value(7))], whole(n),
                 unit(0, *[subprogram(fname(k)) for k in range(n)], code=15))


@kind(4000)
def function_ranges(n):
    """A function with N ranges, each of which is another function's, too."""
    return debug([x for k in range(n) for x in func(fname(k), value(7))], whole(n),
                 unit(0, ".uleb128 8\n.asciz \"all\"\n.long .Lr0\n.byte 0", *[subprogram(fname(k)) for k in range(n)]))


@kind(1000, refused="overlap each other too much")
def shared_folded_list(n):
    """N blocks that share a list of N places in a function that is folded."""
    return debug(spread(n), rnglists((".Lr0", [(".Lj%d" % (2 * k), ".Lj%d" % (2 * k + 1)) for k in range(n)])),
                 unit(0, subprogram("f"), subprogram("f1", 3), *[".uleb128 9\n.long .Lr0\n.byte 0"] * n, ".byte 0"))


@kind(1000, refused="overlap each other too much")
def units_share_list(n):
    """N units that state the same list of N ranges."""
    more = ".uleb128 8\n.asciz \"s\"\n.long .Lr0\n.byte 0"
    return debug(spread(n), rnglists((".Lr0", [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1)) for k in range(n)])),
                 *[unit(k, more, low="f", high=".Lend_f") for k in range(n)])


def loclists(*lists):
    out = ['.section .debug_loclists,""\n.Lo: .long 2f-1f\n1: .short 5\n.byte 8,0\n.long 0']
    for name, ranges in lists:
        out += ["%s:" % name] + [".byte 7\n.quad %s,%s\n.byte 1,0x50" % r for r in ranges] + [".byte 0"]
    return out + ["2:"]


@kind(4000)
def locations(n):
    return debug(spread(n), loclists((".Lo0", [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1)) for k in range(n)])),
                 unit(0, subprogram("f", 3), ".uleb128 10\n.asciz \"v\"\n.long .Lo0\n.byte 0", subprogram("f1")))


@kind(4000)
def location_lists(n):
    return debug(spread(n), loclists(*[(".Lo%d" % k, [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1))]) for k in range(n)]),
                 unit(0, subprogram("f", 3), *[".uleb128 10\n.asciz \"v\"\n.long .Lo%d" % k for k in range(n)], ".byte 0", subprogram("f1")))


@kind(1000)
def shared_locations(n):
    return debug(spread(n), loclists((".Lo0", [(".Li%d" % (2 * k), ".Li%d" % (2 * k + 1)) for k in range(n)])),
                 unit(0, subprogram("f", 3), *[".uleb128 10\n.asciz \"v\"\n.long .Lo0"] * n, ".byte 0", subprogram("f1")))


@kind(30000)
def line_rows(n):
    text = func("f", *["incl %eax"] * n, "ret") + func("f1", *["incl %eax"] * n, "ret")
    return debug(text, unit(0, subprogram("f"), subprogram("f1")), rows=[".byte 0,9,2\n.quad f"] + [".byte %d" % (13 + 14 * 2 + 6)] * n +
                 [".byte 2\n.uleb128 .Lend-f-%d*2\n.byte 0,1,1" % n])


@kind(200000)
def line_bytes(n):
    """A line program of N bytes, each of which is a row."""
    text = func("f", *["incl %eax"] * 20, "ret") + func("f1", *["incl %eax"] * 20, "ret")
    return debug(text, unit(0, subprogram("f"), subprogram("f1")),
                 rows=[".byte 0,9,2\n.quad f\n.fill %d,1,19\n.byte 2\n.uleb128 .Lend-f\n.byte 0,1,1" % n])


@kind(12500000, refused="line number sequence of", refused_verify="rows in one line table")
def line_megabytes(n):
    """As line_bytes, up to 100 MB."""
    return line_bytes(n)


@kind(6000)
def line_sequences(n):
    return debug(funcs(n), unit(0, *[subprogram(fname(k)) for k in range(n)]),
                 rows=[".byte 0,9,2\n.quad %s\n.byte 1,2\n.uleb128 .Lend_%s-%s\n.byte 0,1,1" % ((fname(k),) * 3) for k in range(n)])


@kind(6000)
def files(n):
    return debug(funcs(n), unit(0, *[subprogram(fname(k)) for k in range(n)]), files=["file%d.c" % k for k in range(n)],
                 rows=[".byte 0,9,2\n.quad %s\n.byte 4\n.uleb128 %d\n.byte 1,2\n.uleb128 .Lend_%s-%s\n.byte 0,1,1" % (fname(k), k + 2, fname(k), fname(k))
                       for k in range(n)])


@kind(10000)
def strings(n):
    return debug(funcs(2), ['.section .debug_str,"MS",@progbits,1'] + [".Ls%d: .asciz \"string%d\"" % (k, k) for k in range(n)],
                 unit(0, subprogram("f"), *[".uleb128 11\n.long .Ls%d\n.quad 1" % k for k in range(n)], subprogram("f1")))


@kind(4000)
def debug_suffixes(n):
    """Functions whose names are suffixes of one string."""
    more = ABBREV + ".uleb128 20,0x2e\n.byte 0\n.uleb128 0x3,0xe,0x11,0x1,0x12,0x7,0,0\n"
    return debug([x for k in range(n) for x in func(fname(k), value(7))], ['.section .debug_str,"",@progbits\n.Ls: .asciz "%s"' % ("x" * n)],
                 unit(0, *[".uleb128 20\n.long .Ls+%d\n.quad %s\n.quad .Lend_%s-%s" % (k, fname(k), fname(k), fname(k)) for k in range(n)]), abbrev=more)


@kind(4000)
def call_die(n):
    """Calls that the debug information names, of N functions that share their code."""
    text = [x for k in range(n) for x in func(fname(k), value(7))] + \
        func("caller", "subq $8,%rsp\n.cfi_adjust_cfa_offset 8", *["call %s\n.Lc%d:" % (fname(k), k) for k in range(n)], "addq $8,%rsp\nret")
    return debug(text, unit(0, *[".Ld%d: " % k + subprogram(fname(k)) for k in range(n)], subprogram("caller", 3),
                            *[".uleb128 14\n.quad .Lc%d\n.long .Ld%d-.Lcu0" % (k, k) for k in range(n)], ".byte 0"))


@kind(4000)
def origins(n):
    """N functions, each of which has the one before as its specification."""
    return debug(funcs(2), unit(0, ".Lo0: " + subprogram("f"), *[".Lo%d: .uleb128 13\n.long .Lo%d-.Lcu0\n.quad f1,.Lend_f1-f1" % (k, k - 1)
                                                                  for k in range(1, n)]))


# ---- core files of a program: core.py makes N of something of it ----

def eight():
    return debug(funcs(8), unit(0, *[subprogram(fname(k)) for k in range(8)]))


@kind(2000, core="threads")
def core_threads(n):
    return eight()


@kind(10000, core="stack")
def core_stack(n):
    return eight()


@kind(8000, core="maps")
def core_maps(n):
    return eight()


# ---- making them ----

def addresses(path, most):
    """The addresses of at most MOST function symbols, and MOST places all over .text."""
    text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    at = sorted({int(l.split()[0], 16) for l in text.splitlines() if l.split()[1] in "tT"})
    lo, hi = at[0], at[-1]
    return at[:most] + [lo + k * max(1, (hi - lo) // most) for k in range(most)]


def make(name, n, folder):
    f, _, options = KINDS[name]
    path = os.path.join(folder, "%s.%d" % (name, n))
    text = [".text"] + f(n) + [".globl _start\n.type _start,@function\n_start: movl $60,%eax\nxorl %edi,%edi\nsyscall\n.size _start,.-_start",
                               '.section .note.GNU-stack,""']
    with open(path + ".s", "w") as out:
        out.write("\n".join(text) + "\n")
    subprocess.run(["as", "--64", "-o", path + ".o", path + ".s"], check=True)
    link = ["ld", "--emit-relocs", "--eh-frame-hdr", *options.get("link", []), "-o", path, path + ".o"]
    subprocess.run(link, check=True, stderr=subprocess.DEVNULL)
    os.unlink(path + ".s")
    os.unlink(path + ".o")
    with open(path + ".at", "w") as out:
        out.writelines("0x%x\n" % a for a in addresses(path, min(n, 100000)))
    if "strip" in options:
        subprocess.run(["strip", "-o", path + ".s", path], check=True)
        subprocess.run(["strip", *["--remove-section=.rela" + s for s in options["strip"]], "-o", path, path + ".s"], check=True)
        os.unlink(path + ".s")
    if "after" in options:
        options["after"](path, n)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for name, (_, n, options) in KINDS.items():
            print(name, n, *["%s=%s" % (o, v.replace(" ", "_")) for o, v in options.items() if isinstance(v, str)])
    else:
        make(sys.argv[1], int(sys.argv[2]), sys.argv[3])
