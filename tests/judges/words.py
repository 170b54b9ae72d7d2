"""words.py: the words of a file as the dynamic linker leaves them, for judges that read slots of vtables."""
import re
import struct
import subprocess


def readelf(option, path):
    return subprocess.run(["readelf", option, path], capture_output=True, text=True, errors="replace").stdout


class Words:
    """Words of 8 bytes, from the segments of a file and its relocations."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.segments = [tuple(int(x, 16) for x in m)
                         for m in re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", readelf("-lW", path))]
        text = readelf("-rW", path)
        self.reloc = {int(m[0], 16): int(m[1], 16) for m in re.findall(r"^(\w+) +\w+ R_\w+_RELATIVE\w* +(\w+)$", text, re.M)}
        for m in re.findall(r"^(\w+) +\w+ R_X86_64_64 +(\w+) +\S+ \+ (\w+)$", text, re.M):
            self.reloc.setdefault(int(m[0], 16), int(m[1], 16) + int(m[2], 16))

    def at(self, address):
        """The word at an address; 0 where the file has none."""
        if address in self.reloc:
            return self.reloc[address]
        for off, start, size in self.segments:
            if start <= address and address + 8 <= start + size:
                return struct.unpack_from("<Q", self.data, off + address - start)[0]
        return 0
