#!/bin/bash
# rows.sh: `icfold audit --rows` of many files: folders, lists, packages and archives; one bad file is a line; the same rows in the same
# order with any number of processes; the package of each row.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool rows
make_work
cd "$WORK" || exit 1
have python3 || { skip rows "python3 is not installed"; finish; }
have gcc || { skip rows "gcc is not installed"; finish; }

cat >p.c <<'END'
#include <stdio.h>
#define OWN __attribute__((noipa))
int state;
OWN int common(int x) { return x * 7 + 1; }
OWN int own(int x) { return x * NUMBER + state; }
int main(void) { return printf("%d %d\n", common(1), own(2)) < 0; }
END
for n in 1 2 3; do gcc -O2 -g -DNUMBER=$((n + 10)) p.c -o p$n || { not_ok rows-build "does not compile"; finish; }; done
root="a tree"
mkdir -p "$root/usr/bin" "$root/usr/lib"
cp p1 p2 "$root/usr/bin"
cp p2 "$root/usr/lib/copy"
ln "$root/usr/bin/p1" "$root/usr/bin/again"
head -c 2000 p1 >"$root/usr/bin/broken"
gcc -c -DNUMBER=1 p.c -o "$root/usr/lib/object.o"
# Not for this tool: 32 bits, and the other byte order.
python3 - "$root" <<'END'
import sys
b = bytearray(open("p1", "rb").read())
b[4] = 1
open(sys.argv[1] + "/usr/lib/bits32", "wb").write(b)
b[4], b[5] = 2, 2
open(sys.argv[1] + "/usr/lib/bigendian", "wb").write(b)
END

cat >read.py <<'END'
import json, sys
R = [json.loads(l) for l in open(sys.argv[1])]
files = list(dict.fromkeys(r["file"] for r in R))
def expect(what, got, want):
    if got != want: sys.exit("%s: %r, not %r" % (what, got, want))
exec(sys.argv[2])
END
py() {
	python3 read.py "$2" "$3" >py.out 2>&1
	local rc=$?
	check "$1" "$(tail -1 py.out)" test $rc = 0
}

for t in 1 3; do
	"$ICFOLD" audit --threads=$t --rows=tree$t.jsonl "$root" >out 2>err$t
	rc=$?
	check rows/tree-$t "status $rc" test $rc = 0
done
check rows/threads "other rows" cmp tree1.jsonl tree3.jsonl
check rows/complaints "$(tr '\n' ';' <err1)" test "$(cut -d: -f2 err1 | tr -d '\n')" = \
	" a tree/usr/bin/broken a tree/usr/lib/bigendian a tree/usr/lib/bits32 a tree/usr/lib/object.o"
check rows/refused "$(cat err1)" test "$(grep -cE 'bits32: .*32|bigendian: .*endian' err1)" = 2
py rows/once tree1.jsonl "
expect('files', files, ['a tree/usr/bin/again', 'a tree/usr/bin/p2'])
expect('in order', [r['file'] for r in R], sorted(r['file'] for r in R))
expect('package', {r['package'] for r in R}, {None})
h = lambda n: [r['hash'] for r in R if r['linkage_name'] == n]
expect('common', len(set(h('common'))), 1)
expect('own', len(set(h('own'))), 2)"

# --- one file alone has the rows that it has among others, and its place in the sources
"$ICFOLD" audit --rows=one.jsonl "$root/usr/bin/p2" >out 2>err
grep -F '"a tree/usr/bin/p2"' tree1.jsonl >want.jsonl
check rows/alone "differs" cmp one.jsonl want.jsonl
py rows/source one.jsonl "
expect('line', [(r['source_file'].split('/')[-1], r['source_line']) for r in R if r['linkage_name'] == 'common'], [('p.c', 4)])"

# --- lists, CSV, what is missing
printf '%s\n' p1 missing "$root/usr/lib" >list
"$ICFOLD" audit --rows=list.csv --package=given --files-from=list p3 >out 2>err
rc=$?
check rows/list "status $rc" test $rc = 0
check rows/missing "$(cat err)" grep -q '^icfold: missing: No such file' err
python3 - >py.out 2>&1 <<'END'
import csv
R = list(csv.DictReader(open("list.csv", newline="")))
assert list(dict.fromkeys(r["file"] for r in R)) == ["p3", "p1", "a tree/usr/lib/copy"], R[0]
assert {r["package"] for r in R} == {"given"} and open("list.csv").read().count("linkage_name") == 1
END
check rows/csv "$(tail -1 py.out)" test ! -s py.out
rm -f none.jsonl
"$ICFOLD" audit --rows=none.jsonl "$root/usr/bin/broken" p.c >out 2>err
rc=$?
check rows/nothing "status $rc: $(cat err)" test $rc = 2 -a ! -e none.jsonl -a "$(wc -l <err)" = 3
cp p1 kept
"$ICFOLD" audit --rows=kept p2 >out 2>err
rc=$?
check rows/over-program "status $rc: $(cat err)" test $rc = 2
check rows/over-program-kept "overwritten" cmp kept p1

# --- packages
python3 - <<'END'
import io, tarfile
def tar(members, mode):
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode=mode) as t:
        for name, data in members:
            i = tarfile.TarInfo(name)
            i.size = len(data)
            t.addfile(i, io.BytesIO(data))
    return b.getvalue()
def deb(name, control, program):
    with open(name, "wb") as f:
        f.write(b"!<arch>\n")
        for n, body in (("debian-binary", b"2.0\n"), ("control.tar.gz", tar([("./control", control)], "w:gz")),
                        ("data.tar.xz", tar([("./usr/bin/tool", program)], "w:xz"))):
            f.write(b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (n.encode(), 0, 0, 0, b"100644", len(body)) + body + b"\n" * (len(body) % 2))
p1, p2, p3 = (open(n, "rb").read() for n in ("p1", "p2", "p3"))
deb("renamed.deb", b"Source: other\nPackage: first-tool\nVersion: 1\nArchitecture: amd64\n", p1)
deb("second_2.0-1_amd64.deb", b"Version: 1\n", p2)
open("alpine-1.2-r3.apk", "wb").write(tar([(".PKGINFO", b"# made by hand\npkgname = alpine-tool\n"), ("usr/bin/t", p3)], "w:gz"))
open("image.tar", "wb").write(tar([("bin/plain", p3), ("pool/renamed.deb", open("renamed.deb", "rb").read()), ("bin/p2", p2)], "w"))
open("image2.tar", "wb").write(tar([("pool/third_1_all.deb", open("second_2.0-1_amd64.deb", "rb").read()), ("bin/plain", p3)], "w"))
END
"$ICFOLD" audit --rows=deb.jsonl renamed.deb second_2.0-1_amd64.deb alpine-1.2-r3.apk >out 2>err
if grep -q libarchive err; then
	skip rows/packages "$(first_line err)"
else
	py rows/packages deb.jsonl "
expect('packages', {r['file']: r['package'] for r in R}, {'renamed.deb:data.tar.xz:usr/bin/tool': 'first-tool',
    'second_2.0-1_amd64.deb:data.tar.xz:usr/bin/tool': 'second', 'alpine-1.2-r3.apk:usr/bin/t': 'alpine-tool'})"
	"$ICFOLD" audit --rows=image.jsonl image.tar >out 2>err
	py rows/nested image.jsonl "
expect('packages', {r['file'].split('/')[-1]: r['package'] for r in R}, {'plain': None, 'tool': 'first-tool', 'p2': None})"
	"$ICFOLD" audit --rows=image.jsonl image2.tar >out 2>err
	py rows/nested-name image.jsonl "
expect('packages', {r['file'].split('/')[-1]: r['package'] for r in R}, {'plain': None, 'tool': 'third'})"
fi
finish
