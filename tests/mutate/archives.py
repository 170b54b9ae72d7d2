#!/usr/bin/env python3
"""archives.py PROGRAM FOLDER: writes hostile archives into FOLDER: sizes that lie, bombs, names that lead elsewhere, archives that are
not whole, empty, encrypted, or archives of archives of archives; and one that is sound (sound.tar)."""
import gzip
import io
import os
import struct
import sys
import tarfile
import zipfile
import zlib

with open(sys.argv[1], "rb") as f:
    body = f.read()
os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)


def tar(members, how=""):
    f = io.BytesIO()
    with tarfile.open(fileobj=f, mode="w" + how, format=tarfile.GNU_FORMAT, encoding="latin-1") as t:
        for name, data in members:
            i = tarfile.TarInfo(name)
            i.size = len(data)
            t.addfile(i, io.BytesIO(data))
    return f.getvalue()


def header(at, *fields):
    """The header of a member with FIELDS from AT on, and the right checksum."""
    h = bytearray(tarfile.TarInfo("member").tobuf(tarfile.GNU_FORMAT))
    for at, field in zip(at, fields):
        h[at:at + len(field)] = field
    h[148:156] = b"%06o\0 " % (sum(h[:148]) + sum(h[156:]) + 256)
    return bytes(h)


def pack(name, members):
    """A zip archive; MEMBERS: (name, flags, method, data, size, checksum, has data of its own)."""
    local, entries, at = b"", bytearray(), 0
    for member, flags, method, data, size, crc, own in members:
        e = struct.pack("<HHHHHIIIH", 20, flags, method, 0, 0, crc, len(data), size, len(member))
        if own:
            at = len(local)
            local += b"PK\3\4" + e + bytes(2) + member + data
        entries += b"PK\1\2" + struct.pack("<H", 20) + e + bytes(12) + struct.pack("<I", at) + member
    n = len(members)
    put(name, local + entries + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, n, n, len(entries), len(local), 0))


# Sizes that lie: 2^60 bytes; a negative number; 8 GB of which 512 bytes are there; a bomb; one body that many members share.
put("huge.tar", header([124], b"\x80" + (1 << 60).to_bytes(11, "big")) + body)
put("negative.tar", header([124], b"\xff" * 12) + body)
put("sparse.tar", header([156, 124, 386, 483], b"S", b"%011o\0" % 512, b"%011o\0%011o\0" % (0, 512), b"77777777777\0") + body[:512] + bytes(1024))
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("elf", body[:64] + bytes(140 << 20))
plain = body[:64] + bytes(4 << 20)
z = zlib.compressobj(9, zlib.DEFLATED, -15)
data = z.compress(plain) + z.flush()
pack("overlap.zip", [(b"%05d" % k, 0, 8, data, len(plain), zlib.crc32(plain), k == 0) for k in range(5000)])
pack("encrypted.zip", [(b"e", 1, 0, bytes(12) + body, len(body), 0, True)])
# Names that lead elsewhere, or are no text.
put("names.tar", tar((n, body) for n in ("../../outside", "/outside", "\x1b[31mred", "a\nb", "long" * 1000, "\xff\xfe", "..", "a:b:c")))
# An archive whose name leaves no room for those of its members; what is behind it must not be hidden.
inner = io.BytesIO()
with zipfile.ZipFile(inner, "w") as z:
    z.writestr("inner", body)
with zipfile.ZipFile("hidden.zip", "w") as z:
    z.writestr("y" * 2043 + ".zip" + "tail.zip", inner.getvalue())
    z.writestr("last", body + b"last")
# Not whole, and nothing at all.
whole = tar([("p", body)], ":gz")
put("half.tar.gz", whole[:len(whole) // 2])
put("crc.tar.gz", whole[:-6] + bytes([whole[-6] ^ 255]) + whole[-5:])
put("nothing.tar.gz", gzip.compress(b""))
for name, magic in (("magic.tar.xz", b"\xfd7zXZ\0"), ("magic.tar.zst", b"\x28\xb5\x2f\xfd"), ("magic.zip", b"PK\3\4"), ("magic.tar.bz2", b"BZh9"),
                    ("magic.rpm", b"\xed\xab\xee\xdb" + bytes(200)), ("magic.cpio", b"070701" + b"F" * 104 + b"x")):
    put(name, magic)
# Archives in archives, and forty layers of compression.
deep = layers = body
for k in range(20):
    deep = tar([("n%d.tar.gz" % k if k else "p", deep)], ":gz")
for k in range(40):
    layers = gzip.compress(layers)
put("deep.tar.gz", deep)
put("layers.tar.gz", layers)
put("sound.tar", tar([("sound", body + b"\n")]))
