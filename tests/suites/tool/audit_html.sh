#!/bin/bash
# audit_html.sh: the page of icfold audit in a real browser: headless Chromium, driven by audit_html.py.
# Pages: a program with known duplicates and debug information, one whose names try to break out of the page, one with 71,000
# functions (it must open in under 3 s of processor time and stay below 5 MB), one with functions that nothing uses, one without
# names; and of several files: a few, and 1,300 (under 2 s, below 5 MB).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool audit-html
x86_only audit-html
for t in python3 chromium chromedriver; do
	have $t || { skip audit-html "$t is not installed (Debian: python3, chromium, chromium-driver)"; finish; }
done
make_work
cd "$WORK" || exit 1

fixture() { # FIXTURE OUT FLAGS
	load_recipe "$1"
	compile_fixture gcc "$3" pie "obj.$1" && link_fixture gcc bfd pie "obj.$1" "$2"
}

# No assembler accepts these names.  They replace names of the same length in the string table.
python3 - <<'END' >hostile.c
names = [b"</script><script>window.broken=1</script>", b"<img src=x onerror=window.broken=1>", b"&amp;\"'`${window.broken=1}\\",
	"line\u2028separator\u2029".encode(), b"not utf-8 \xff\xfe\xc0\x80", b"<!--<script>", b"]]>\\u003c/script>"]
with open("names", "wb") as f:
	f.write(b"\0".join(names))
for i, n in enumerate(names):
	print("__attribute__((noipa)) int %s(int x) { return x * 12345 + (x >> 3) * 77; }" % (("h%d_" % i).ljust(len(n), "_")))
print("int main(int n, char **v) { return " + " + ".join("%s(n)" % ("h%d_" % i).ljust(len(n), "_") for i, n in enumerate(names)) + "; }")
END
rename() { # FILE
	python3 - "$1" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
for i, n in enumerate(open("names", "rb").read().split(b"\0")):
	old = b"\0" + (b"h%d_" % i).ljust(len(n), b"_") + b"\0"
	assert data.count(old) == 1, old
	data = data.replace(old, b"\0" + n + b"\0")
open(sys.argv[1], "wb").write(data)
END
}

# 71,000 functions in 40 namespaces; every fifth has copies.
awk 'BEGIN {
	print ".text"
	for (i = 0; i < 71000; i++) {
		ns = "ns" i % 40; cls = "Class" int(i / 40) % 60
		name = "_ZN5outer" length(ns) ns length(cls) cls "IiE" length("method" i) "method" i "IlEEvv"
		print ".globl " name "\n.type " name ",@function\n.balign 16\n" name ":"
		c = i % 5 ? i : i % 40
		n = 1 + (c * 7919) % 13
		for (k = 0; k < n; k++) print "\tmovl $" c * 100 + k ", %eax\n\taddl %edi, %eax"
		print "\tret\n.size " name ", .-" name
	}
	print ".globl main\n.type main,@function\nmain: xorl %eax, %eax\n\tret\n.size main, .-main\n.section .note.GNU-stack,\"\",@progbits"
}' >many.s

if ! fixture eh eh "-O2 -g" || ! fixture unused unused "-O2 -g" || ! gcc -w -O2 -fno-ipa-icf -Wl,--emit-relocs hostile.c -o "<b>hostile" || ! rename "<b>hostile" || ! gcc -Wl,--emit-relocs many.s -o many; then
	not_ok audit-html "the test programs do not build"
	finish
fi
strip -o stripped eh
for p in eh "<b>hostile" many unused stripped; do
	if ! "$ICFOLD" audit --html="${p#<b>}.html" "$p" 2>err || ! "$ICFOLD" audit --json "$p" >"${p#<b>}.json"; then
		not_ok "audit-html/${p#<b>}" "$(first_line err)"
		finish
	fi
done
# Pages of several files: those above, and a product of 1,300 different small programs in folders.
cp eh eh.again
head -c 2000 eh >broken
mkdir -p many-files
printf '%s\n' '#define OWN __attribute__((noipa, used))' 'volatile long where;' \
	'OWN long number_of(long x) { return x * 0x51524354 + where; }' 'OWN long same(long x) { for (long i = 0; i < x; i++) where ^= i * 19 + (x >> 3); return where; }' \
	'int main(int c, char **v) { (void)v; return (int)(number_of(c) + same(c)); }' >small.c
gcc -O1 -Wl,--build-id=none -o small small.c -Wl,--emit-relocs
python3 - <<'END'
import os, struct
body = open("small", "rb").read()
number = struct.pack("<I", 0x51524354)
assert body.count(number) == 1
for k in range(1300):
	d = "many-files/%02d-of-the-folders/lib/x86_64-linux-gnu/plugins" % (k % 40)
	os.makedirs(d, exist_ok=True)
	with open("%s/program-%04d.so.1.2.3" % (d, k), "wb") as f:
		f.write(body.replace(number, struct.pack("<I", 0x51520000 + k * 4)))
END
if ! "$ICFOLD" audit --html=product.html eh eh.again "<b>hostile" unused stripped broken 2>err || ! "$ICFOLD" audit --json eh eh.again "<b>hostile" unused stripped broken >product.json ||
	! "$ICFOLD" audit --html=thousand.html many-files 2>err; then
	not_ok audit-html/product "$(first_line err)"
	finish
fi
timeout 600 python3 "$TESTS/judges/audit_html.py" "$WORK" 2>driver.err
rc=$?
[ $rc = 0 ] || [ $rc = 1 ] || not_ok audit-html "the driver ended with status $rc: $(tail -n 1 driver.err | cut -c 1-200)"
[ $rc = 1 ] && failures=1
finish
