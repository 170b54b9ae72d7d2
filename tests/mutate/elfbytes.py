"""elfbytes.py: an ELF-64 file as bytes with names for its fields, for the tests that break files on purpose.

Knows just enough of the formats to find every field, and believes all of it: only for files of our own making.
"""
import struct

EHDR = [("e_type", 16, 2), ("e_machine", 18, 2), ("e_version", 20, 4), ("e_entry", 24, 8), ("e_phoff", 32, 8), ("e_shoff", 40, 8),
        ("e_flags", 48, 4), ("e_ehsize", 52, 2), ("e_phentsize", 54, 2), ("e_phnum", 56, 2), ("e_shentsize", 58, 2), ("e_shnum", 60, 2),
        ("e_shstrndx", 62, 2)]
PHDR = [("p_type", 0, 4), ("p_flags", 4, 4), ("p_offset", 8, 8), ("p_vaddr", 16, 8), ("p_paddr", 24, 8), ("p_filesz", 32, 8),
        ("p_memsz", 40, 8), ("p_align", 48, 8)]
SHDR = [("sh_name", 0, 4), ("sh_type", 4, 4), ("sh_flags", 8, 8), ("sh_addr", 16, 8), ("sh_offset", 24, 8), ("sh_size", 32, 8),
        ("sh_link", 40, 4), ("sh_info", 44, 4), ("sh_addralign", 48, 8), ("sh_entsize", 56, 8)]
NOBITS = 8


def get(data, off, size):
    return int.from_bytes(data[off:off + size], "little")


def put(value, size):
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


class Section:
    def __init__(self, name, header, index, fields):
        self.name, self.header, self.index = name, header, index
        self.type, self.flags, self.addr = fields["sh_type"], fields["sh_flags"], fields["sh_addr"]
        self.offset, self.size = fields["sh_offset"], fields["sh_size"]
        self.info, self.entsize = fields["sh_info"], fields["sh_entsize"]

    def in_file(self):
        return self.size if self.type not in (0, NOBITS) else 0


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        d = self.data
        self.e = {n: get(d, o, s) for n, o, s in EHDR}
        raw = []
        for i in range(self.e["e_shnum"]):
            at = self.e["e_shoff"] + 64 * i
            raw.append((at, {n: get(d, at + o, s) for n, o, s in SHDR}))
        names = raw[self.e["e_shstrndx"]][1]["sh_offset"]
        self.sections = []
        for i, (at, f) in enumerate(raw):
            start = names + f["sh_name"]
            self.sections.append(Section(d[start:d.index(0, start)].decode(), at, i, f))
        self.phdrs = [self.e["e_phoff"] + 56 * i for i in range(self.e["e_phnum"])]

    def section(self, name):
        return next((s for s in self.sections if s.name == name), None)

    def bytes_of(self, s):
        return self.data[s.offset:s.offset + s.in_file()]

    def functions(self):
        tab = self.section(".symtab") or self.section(".dynsym")
        strtab = self.section(".strtab") if tab and tab.name == ".symtab" else self.section(".dynstr")
        ret = []
        for at in range(tab.offset, tab.offset + tab.size, 24) if tab else ():
            name, info, _, shndx, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            if info & 15 == 2 and shndx and size:
                start = strtab.offset + name
                ret.append((value, size, self.data[start:self.data.index(0, start)].decode()))
        return sorted(ret)


def uleb(d, p):
    v = shift = 0
    while True:
        b = d[p]
        p += 1
        v |= (b & 127) << shift
        shift += 7
        if not b & 128:
            return v, p


FIXED = {0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0b: 1, 0x0c: 1, 0x0e: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x10: 4, 0x17: 4, 0x19: 0, 0x20: 8,
         0x21: 0, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2a: 2, 0x2b: 3, 0x2c: 4, 0x1e: 16, 0x1f: 4, 0x1c: 4, 0x1d: 4}
LEBS = {0x0d, 0x0f, 0x15, 0x1a, 0x1b, 0x22, 0x23}


def unit_lengths(d):
    """Offsets of the lengths that chain the units of a section (32-bit)."""
    p, ret = 0, []
    while p + 4 <= len(d):
        n = get(d, p, 4)
        if n >= 0xfffffff0:
            break
        ret.append(p)
        p += 4 + n
    return ret


def abbrevs(d, p):
    table = {}
    while d[p]:
        code, p = uleb(d, p)
        tag, p = uleb(d, p)
        children, p = d[p], p + 1
        attrs = []
        while True:
            at, p = uleb(d, p)
            form, p = uleb(d, p)
            if form == 0x21:
                _, p = uleb(d, p)
            if not at and not form:
                break
            attrs.append((at, form))
        table[code] = (tag, children, attrs)
    return table


def attributes(elf):
    """(offset in .debug_info, size, attribute, form, DIE, unit) of every attribute value of 32-bit DWARF 2 to 5."""
    info, ab = elf.section(".debug_info"), elf.section(".debug_abbrev")
    if not info or not ab or (info.flags | ab.flags) & 0x800:
        return []
    d, a, ret = elf.bytes_of(info), elf.bytes_of(ab), []
    for unit in unit_lengths(d):
        end, version = unit + 4 + get(d, unit, 4), get(d, unit + 4, 2)
        table = abbrevs(a, get(d, unit + (8 if version >= 5 else 6), 4))
        p = unit + (12 if version >= 5 else 11)
        if version >= 5 and d[unit + 6] in (2, 6):
            p += 12
        while p < end:
            die = p
            code, p = uleb(d, p)
            if code == 0:
                continue
            ret.append((die, p - die, 0, 0, die, unit))
            for at, form in table[code][2]:
                start = p
                if form in FIXED:
                    p += FIXED[form]
                elif form in LEBS:
                    _, p = uleb(d, p)
                elif form == 0x08:
                    p = d.index(0, p) + 1
                elif form in (0x09, 0x18):
                    n, p = uleb(d, p)
                    p += n
                elif form in (0x0a, 0x03, 0x04):
                    size = {0x0a: 1, 0x03: 2, 0x04: 4}[form]
                    p += size + get(d, p, size)
                else:
                    raise ValueError("form 0x%x" % form)
                ret.append((start, p - start, at, form, die, unit))
    return ret
