#!/bin/bash
# product.sh: icfold audit of several files: folders, lists, archives, copies and broken files.  The lines of the files are compared
# with the audit of each.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool product
make_work
always_fold
cd "$WORK" || exit 1
have python3 || { skip product "python3 is not installed"; finish; }

py() { # NAME CODE ARGUMENT...: the first argument is read as JSON into J
	local name=$1 code=$2 out
	shift 2
	out=$(python3 - "$@" 2>&1 <<END
import json, sys
J = json.load(open(sys.argv[1]))
F = {f["name"]: f for f in J["files"]}
def expect(what, got, want):
    if got != want: sys.exit("%s is %r, not %r" % (what, got, want))
$code
END
	) && ok "$name" || not_ok "$name" "$(tail -n 1 <<<"$out")"
}

# --- the product: three programs of one source, each with something of its own, a library, and what is no program
cat >common.h <<'END'
#include <stdio.h>
#define OWN __attribute__((noipa, used))
volatile long where;
OWN static long twice_a(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
OWN static long twice_b(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
OWN static long shared_one(long x) { for (long i = 0; i < x; i++) where ^= i * 19 + (x >> 3); return where * 11; }
OWN static long never(long x) { where += x * 77; return where - x * 41; }
END
for k in 1 2 3; do
	{
		echo '#include "common.h"'
		echo "OWN static long own$k(long x) { where += x * $k$k$k; return where / ($k + 3 * x * x + 1); }"
		echo "int main(int c, char **v) { (void)v; printf(\"%ld\", twice_a(c) + twice_b(c) + shared_one(c) + own$k(c)); return 0; }"
	} >p$k.c
	gcc -O1 -g -o p$k p$k.c -Wl,--emit-relocs 2>log || not_ok product/build "$(first_line log)"
done
{
	echo '#include "common.h"'
	echo 'OWN long exported(long x) { return shared_one(x) + twice_a(x) + twice_b(x + 1); }'
} >lib.c
gcc -O1 -g -fPIC -shared -Wl,-soname,libprod.so.1 -o libprod.so.1 lib.c -Wl,--emit-relocs
root="a product"
mkdir -p "$root/usr/bin" "$root/usr/lib/deep"
cp p1 p2 "$root/usr/bin"
cp p3 "$root/usr/lib/deep"
cp libprod.so.1 "$root/usr/lib"
ln "$root/usr/bin/p1" "$root/usr/bin/linked"
cp p2 "$root/usr/lib/copied"
strip -o "$root/usr/lib/stripped" p3
ln -s ../bin/p1 "$root/usr/lib/symbolic"
ln -s .. "$root/usr/lib/circle"
echo "no program" >"$root/usr/lib/text"
head -c 3000 p1 >"$root/usr/bin/broken"
gcc -c -o "$root/usr/lib/object.o" lib.c
mkfifo "$root/usr/lib/pipe"

"$ICFOLD" audit --json "$root" >all.json 2>err
check product/folder "status $?: $(first_line err)" test ! -s err
py product/states "
expect('analysed', sorted(n for n in F if F[n]['state'] == 'analysed'), sorted('a product/' + n for n in ('usr/bin/linked', 'usr/bin/p2', 'usr/lib/deep/p3', 'usr/lib/libprod.so.1')))
expect('copies', {n: F[n]['copy_of'] for n in F if F[n]['state'] == 'copy'}, {'a product/usr/bin/p1': 'a product/usr/bin/linked', 'a product/usr/lib/copied': 'a product/usr/bin/p2', 'a product/usr/lib/stripped': 'a product/usr/lib/deep/p3'})
expect('bad', sorted(n for n in F if F[n]['state'] == 'bad'), ['a product/usr/bin/broken', 'a product/usr/lib/object.o'])
expect('soname', F['a product/usr/lib/libprod.so.1']['soname'], 'libprod.so.1')
expect('total', [J['total'][k] for k in ('files', 'copies', 'bad')], [4, 3, 2])" all.json

# --- each line is what the audit of the file says
for k in p1 p2 p3 libprod.so.1; do
	"$ICFOLD" audit --json --no-sources $k >one.$k 2>/dev/null
done
"$ICFOLD" audit --json p1 p2 p3 libprod.so.1 >several.json 2>err
py product/lines "
for n in F:
    x, y = F[n], json.load(open('one.' + n))
    for m in ('all', 'safe'):
        for k in ('folded', 'duplicated_bytes', 'text_saved'): expect(n + ' ' + m + ' ' + k, x[m][k], y[m][k])
    for k in ('functions', 'code_bytes', 'text_bytes', 'references'): expect(n + ' ' + k, x[k], y[k])
    expect(n + ' unused', [x['unused_functions'], x['unused_bytes']], [y['never_used']['functions'], y['never_used']['bytes']])
    assert x['all']['folded'] and x['unused_functions'], n + ' has nothing to find'
for m in ('all', 'safe'): expect('sum', J['total'][m]['duplicated_bytes'], sum(f[m]['duplicated_bytes'] for f in F.values()))" several.json
printf '%s\n' p2 "$root/usr/lib" "" missing >list
"$ICFOLD" audit --json --files-from=list p1 >list.json 2>err
py product/list "
expect('files', sorted(n for n in F if F[n]['state'] == 'analysed'), ['a product/usr/lib/deep/p3', 'a product/usr/lib/libprod.so.1', 'p1', 'p2'])
expect('missing', F['missing']['error'], 'No such file or directory')" list.json
"$ICFOLD" audit --json --files-from=- <list >stdin.json 2>err
py product/list-stdin "assert 'p2' in F and 'p1' not in F" stdin.json

# Names that zero bytes end may have newlines in them; the last needs no zero byte.
mkdir "two
lines" && cp p2 "two
lines/a
b"
{
	find "two
lines" -type f -print0
	printf 'p1\0\0missing'
} >zeros
for l in zeros -; do
	"$ICFOLD" audit --json --files-from=$l <zeros >list.json 2>err
	py "product/list-zeros $l" "
expect('states', {n: F[n]['state'] for n in F}, {'two\nlines/a\nb': 'analysed', 'p1': 'analysed', 'missing': 'bad'})" list.json
done

# --- the same with any number of processes, and with little memory
for t in 1 3; do
	"$ICFOLD" audit --json --threads=$t "$root" >threads.json
	check product/threads-$t "differs" cmp -s all.json threads.json
done
"$ICFOLD" audit --json --memory=128M "$root" >memory.json
check product/memory "differs" cmp -s all.json memory.json
"$ICFOLD" audit --csv "$root" >all.csv
check product/csv "$(first_line all.csv)" python3 -c "
import csv
rows = list(csv.DictReader(open('all.csv')))
assert [r['name'] for r in rows if r['table'] == 'product_bad'] == ['a product/usr/bin/broken', 'a product/usr/lib/object.o']
assert len([r for r in rows if r['table'] == 'product_files']) == 4"
"$ICFOLD" audit "$root" >all.txt
check product/text "$(first_line all.txt)" grep -q '^4 files, .* bytes of code; 3 copies; 2 not analysed$' all.txt
check product/text-bad "no line" grep -q '^  a product/usr/bin/broken: .' all.txt

# --- one file is audited as ever; nothing that can be analysed: status 2
"$ICFOLD" audit p1 >one.txt
check product/one-file "$(first_line one.txt)" grep -q '^p1: ' one.txt
mkdir -p empty
"$ICFOLD" audit empty >out 2>err
[ $? = 2 ] && [ -s err ] && ok product/nothing || not_ok product/nothing "status"
"$ICFOLD" audit --max-duplicated=0 p1 p2 >out 2>err
[ $? = 1 ] && ok product/max-duplicated || not_ok product/max-duplicated "status"

# --- archives say the same as the folder; nothing is written under a member's name
python3 - "$root" <<'END'
import gzip, io, os, sys, tarfile, zipfile
root = sys.argv[1]
def add(t, only=None):
    for top, dirs, files in os.walk(root):
        dirs.sort()
        for n in sorted(files):
            p = os.path.join(top, n)
            if n != "pipe" and (only is None or n in only): t.add(p, "./" + os.path.relpath(p, root))
for how in ("", ":gz", ":xz"):
    with tarfile.open("all.tar" + how.replace(":", "."), "w" + how) as t: add(t)
with zipfile.ZipFile("all.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for n in ("usr/bin/p1", "usr/bin/p2", "usr/lib/text"): z.write(os.path.join(root, n), n)
# A package of Debian: an ar archive with two tar archives in it.
data = io.BytesIO()
with tarfile.open(fileobj=data, mode="w:xz") as t: add(t)
with open("all.deb", "wb") as f:
    f.write(b"!<arch>\n")
    for name, body in (("debian-binary", b"2.0\n"), ("control.tar.gz", gzip.compress(b"\0" * 10240)), ("data.tar.xz", data.getvalue())):
        f.write(b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name.encode(), 0, 0, 0, b"100644", len(body)) + body + b"\n" * (len(body) % 2))
# A package of Alpine: tar archives compressed apart, one behind the other.
with open("all.apk", "wb") as f:
    for only in (["text"], ["p1", "p2", "p3", "libprod.so.1"]):
        part = io.BytesIO()
        with tarfile.open(fileobj=part, mode="w") as t: add(t, only)
        f.write(gzip.compress(part.getvalue()))
with tarfile.open("tricks.tar", "w") as t:
    body = open("p1", "rb").read()
    for n in ("../tricked", "/tmp/icfold-tricked", "a/../../tricked"):
        i = tarfile.TarInfo(n); i.size = len(body); t.addfile(i, io.BytesIO(body))
    i = tarfile.TarInfo("way"); i.type = tarfile.SYMTYPE; i.linkname = "/tmp"; t.addfile(i)
    i = tarfile.TarInfo("way/icfold-tricked"); i.size = len(body); t.addfile(i, io.BytesIO(body[:-1] + b"x"))
whole = open("all.tar.gz", "rb").read()
open("half.tar.gz", "wb").write(whole[:len(whole) // 2])
with tarfile.open("nested.tar", "w") as t:
    for n in ("all.deb", "all.zip", "half.tar.gz"): t.add(n)
END
for a in all.tar all.tar.gz all.tar.xz all.deb all.apk; do
	"$ICFOLD" audit --json $a >archive.json 2>err
	py product/$a "
K = json.load(open('all.json'))
expect('files', sorted(n.split(':')[-1] for n in F if F[n]['state'] == 'analysed' and 'linked' not in n and '/p1' not in n), ['usr/bin/p2', 'usr/lib/deep/p3', 'usr/lib/libprod.so.1'])
expect('total', {k: J['total'][k] for k in J['total'] if k not in ('copies', 'bad')}, {k: K['total'][k] for k in K['total'] if k not in ('copies', 'bad')})" archive.json
done
"$ICFOLD" audit --json all.zip >zip.json 2>err
py product/all.zip "expect('files', sorted(F), ['all.zip:usr/bin/p1', 'all.zip:usr/bin/p2'])" zip.json
# Names in UTF-8, which ZIP archives mark; the third name is marked, but is none.  The letters are in no locale that the tests run in.
python3 - <<'END'
import os, tarfile, zipfile
for archive, programs in (("letters", ("p1", "p2", "p3")), ("more", ("p1", "p3", "p2"))):
    body = [open(n, "rb").read() for n in programs]
    names = ("bin/pr\u00f6g", "bin/\U0001f600", "bin/wrong\u00e9")
    with zipfile.ZipFile(archive + ".zip", "w", zipfile.ZIP_DEFLATED) as z:
        for n, b in zip(names, body): z.writestr(n, b)
        z.writestr("bin/wrong\u00e8", body[0] + b"twice")
    whole = open(archive + ".zip", "rb").read()
    open(archive + ".zip", "wb").write(whole.replace("wrong\u00e9".encode(), b"wrong\xe9\xe9").replace("wrong\u00e8".encode(), b"wrong\xe8\xe8"))
    for form in ("PAX", "GNU"):
        with tarfile.open(archive + form + ".tar", "w", format=getattr(tarfile, form + "_FORMAT")) as t:
            for n, p in zip(names, programs): t.add(p, n)
END
for l in C C.UTF-8; do
	LC_ALL=$l "$ICFOLD" audit --json letters.zip >letters.json 2>err
	py product/letters-zip-$l "expect('names', sorted(n.split(':', 1)[1] for n in F), sorted(['bin/pr\u00f6g', 'bin/\U0001f600', '(name 1 that is no text)', '(name 2 that is no text)']))" letters.json
	for form in PAX GNU; do
		LC_ALL=$l "$ICFOLD" audit --json letters$form.tar >letters.json 2>err
		py product/letters-$form-$l "expect('names', sorted(n.split(':', 1)[1] for n in F), sorted(['bin/pr\u00f6g', 'bin/\U0001f600', 'bin/wrong\u00e9']))" letters.json
	done
done
"$ICFOLD" audit --diff --json letters.zip more.zip >letters.json 2>err
py product/letters-diff "
expect('files', sorted((x['name'].split(':', 1)[1], x['kind']) for x in J['files'] if 'no text' not in x['name']), [('bin/\U0001f600', 'changed')])" letters.json
"$ICFOLD" audit --json tricks.tar >tricks.json 2>err
py product/tricks "expect('states', sorted(f['state'] for f in F.values()), ['analysed', 'copy', 'copy', 'copy'])" tricks.json
check product/tricks-nothing "a member was written" test ! -e ../tricked -a ! -e /tmp/icfold-tricked -a ! -e tricked
mkdir -p packages && cp nested.tar packages
"$ICFOLD" audit --json packages >nested.json 2>err
py product/nested "
assert 'packages/nested.tar:all.deb:data.tar.xz:usr/bin/p2' in F, list(F)
assert 'packages/nested.tar:all.zip:usr/bin/p2' in F
expect('half', [f['state'] for n, f in F.items() if n.endswith('half.tar.gz')], ['bad'])" nested.json
if have zstd; then
	# 600 MB of zeros in 20 kB, as a member, and as something that libarchive itself skips.
	python3 -c "
import sys, tarfile
i = tarfile.TarInfo('zeros'); i.size = 600 << 20
i.type = sys.argv[1].encode()
sys.stdout.buffer.write(i.tobuf(tarfile.USTAR_FORMAT))
for k in range(600): sys.stdout.buffer.write(bytes(1 << 20))" 0 | zstd -q >bomb.tar.zst
	"$ICFOLD" audit --json bomb.tar.zst p1 >bomb.json 2>err
	py product/bomb "
assert 'much more than its size' in F['bomb.tar.zst']['error'] if 'bomb.tar.zst' in F else any('much more' in f.get('error', '') for f in F.values()), F
expect('p1', F['p1']['state'], 'analysed')" bomb.json
else
	skip product/bomb "zstd is not installed"
fi

# --- whatever the bytes, a file is a line
mkdir damaged
python3 - <<'END'
import random
r = random.Random(7)
body = open("p1", "rb").read()
for k in range(40):
    b = bytearray(body)
    for i in range(r.choice((1, 8, 200))): b[r.randrange(4, r.choice((64, 4000, len(b))))] = r.randrange(256)
    open("damaged/%02d" % k, "wb").write(b if k % 4 else b[:r.randrange(4, len(b))])
END
"$ICFOLD" audit --json damaged p2 >damaged.json 2>err
py product/damaged "
expect('lines', len(F), 41)
assert not any('signal' in f.get('error', '') for f in F.values()), [f['error'] for f in F.values() if 'signal' in f.get('error', '')]
expect('p2', F['p2']['state'], 'analysed')" damaged.json

# A terminal sees how far it is, of all files from the start.
check product/progress "$(first_line progress)" python3 -c "
import os, pty, re, sys
pid, fd = pty.fork()
if not pid: os.execvp('sh', ['sh', '-c', 'exec \"\$0\" audit damaged p2 >/dev/null', sys.argv[1]])
out = b''
while True:
    try: part = os.read(fd, 4096)
    except OSError: break
    if not part: break
    out += part
os.waitpid(pid, 0)
open('progress', 'wb').write(out)
assert set(re.findall(rb'icfold: \d+ of (\d+) files', out)) == {b'41'}, out" "$ICFOLD"

# --- across files: every program has shared_one, twice_a and twice_b of its own
py product/shared "
g = {x['name']: x for x in J['groups']}
expect('shared_one', [g['shared_one'][k] for k in ('n_files', 'copies')], [3, 3]) # the library reads where through its GOT
expect('saving', g['shared_one']['saving'], 2 * g['shared_one']['size'])
expect('twice', [g['twice_a'][k] for k in ('n_files', 'copies')], [3, 6])
expect('places', sorted((f['file'], f['symbol'], f['source'].split('/')[-1], f['line']) for f in g['shared_one']['functions']), [(f, 'shared_one', 'common.h', 6) for f in ('p1', 'p2', 'p3')])
assert not any(n and n.startswith('own') for n in g), list(g)
expect('sum', J['total']['shared_saving'], sum(x['saving'] for x in J['groups']))
for n, f in F.items(): expect('shared of ' + n, f['shared_bytes'], sum(x['size'] for x in J['groups'] if any(y['file'] == n for y in x['functions'])))
pair = {tuple(sorted(p['files'])): p for p in J['pairs']}
assert ('p1', 'p2') in pair and ('p2', 'p3') in pair, list(pair)
for (a, b), p in pair.items():
    both = [x for x in J['groups'] if {a, b} <= {f['file'] for f in x['functions']}]
    expect((a, b), (p['functions'], p['bytes']), (len(both), sum(x['size'] for x in both)))
for k in ('families', 'namespaces'): expect(k, sum(x['saving'] for x in J[k]), J['total']['shared_saving'])" several.json
"$ICFOLD" audit --json --filter=^shared several.json p1 p2 >filter.json 2>err
py product/filter "expect('names', [x['name'] for x in J['groups']], ['shared_one'])" filter.json
{
	echo '__attribute__((noipa)) long exported(long x) { for (long i = 0; i < x; i++) x ^= i * 37 + (x >> 2); return x * 3; }'
	echo 'int main(int c, char **v) { (void)v; return (int)exported(c); }'
} >static.c
gcc -O1 -g -fPIC -fno-semantic-interposition -shared -Wl,-soname,libexp.so.2 -o libexp.so.2 static.c
gcc -O1 -g -fPIC -fno-semantic-interposition -o static static.c
"$ICFOLD" audit --json libexp.so.2 static >exported.json 2>err
py product/exported "
expect('by', {x['name']: x['exported_by'] for x in J['groups']}['exported'], 'libexp.so.2')
assert any(x['name'] == 'libexp.so.2' for x in J['exporters'])" exported.json

# --- the page: its data, and what saves most, as in the text
"$ICFOLD" audit --html=page.html "$root" >out 2>err
check product/page "$(first_line err)" python3 -c "
import json, re
D = json.loads(re.search(r'<script type=\"application/json\" id=\"data\">(.*?)</script>', open('page.html').read(), re.S).group(1))
J = json.load(open('all.json'))
names = {f[1]: f[0] for f in D['files'] if f}
assert sorted(names) == sorted(f['name'] for f in J['files']), names
assert D['total']['shared'] == J['total']['shared_saving'] and D['total']['bad'] == 2
assert D['advice'] == J['advice'], D['advice']
a = [x['bytes'] for x in D['advice']]
assert 0 < len(a) <= 3 and a == sorted(a, reverse=True) and all(x['command'] for x in D['advice']), D['advice']
assert [x['bytes'] for x in D['advice'] if '--icf=safe' in x['command']] == [J['total']['safe']['text_saved']], D['advice']"
check product/advice "no command" grep -qE "^ +(icfold|for f in|ln -f|cc) " all.txt
# Links save what the advice says, also where a copy has several names.
mkdir links
cp libprod.so.1 links/a.so && cp links/a.so links/b.so && ln links/b.so "links/c d.so" && cp links/a.so links/e.so && ln links/a.so links/f.so
"$ICFOLD" audit links >links.txt
had=$(find links -type f -printf '%i %s\n' | sort -u | awk '{ n += $2 } END { print n }')
said=$(awk '/Make links? of/ { print $1 }' links.txt)
sh -c "$(grep -E '^ +ln -f' links.txt)"
have=$(find links -type f -printf '%i %s\n' | sort -u | awk '{ n += $2 } END { print n }')
check product/advice-links "said $said, $had bytes before and $have after: $(grep -E '^ +ln -f' links.txt)" test "$said" = $((had - have)) -a "$had" = $((3 * have))
# The commands are words of a shell, whatever the files are called, and do what they say.
mkdir -p "odd/it's" && cp p1 "odd/it's/-a \$(touch broken)"
cp p2 "odd/it's/b
c"
(cd "odd/it's" && "$ICFOLD" audit --json -- "-a \$(touch broken)" b* >../../odd.json 2>../../err)
py product/advice-words "
import subprocess
c = [x['command'] for x in J['advice'] if '--icf=safe' in x['command']][0]
subprocess.run(['bash', '-c', 'icfold() { \"' + sys.argv[2] + '\" \"\$@\"; }; ' + c], cwd=\"odd/it's\", check=True)" odd.json "$ICFOLD"
check product/advice-folded "$(cd odd/* && echo *)" test -s "odd/it's/-a \$(touch broken).folded" -a -s "odd/it's/b
c.folded" -a ! -e "odd/it's/broken"

# --- two builds: p2 gets a function that p1 has, and one that is new; p3 loses its own; p4 is new
mkdir -p old new
cp p1 p2 p3 libprod.so.1 old
cp p1 libprod.so.1 new
{
	cat p2.c
	echo 'OWN long again(long x) { for (long i = 0; i < x; i++) where ^= i * 19 + (x >> 3); return where * 11; }'
	echo 'OWN long fresh(long x) { return where - x * 1234567; }'
} >p2b.c
sed 's/ + own3(c)//; /long own3/d' p3.c >p3b.c
gcc -O1 -g -o new/p2 p2b.c -Wl,--emit-relocs && gcc -O1 -g -o new/p3 p3b.c -Wl,--emit-relocs && gcc -O1 -g -o new/p4 p1.c -Wl,--emit-relocs -Wl,-Ttext-segment=0x700000 -no-pie
"$ICFOLD" audit --diff --json old new >diff.json 2>err
py product/diff "
expect('files', {x['name'].split('/')[-1]: x['kind'] for x in J['files']}.keys() >= {'p2', 'p3', 'p4'}, True)
a = [(x['function']['file'], x['function']['symbol'], x['first']['symbol']) for x in J['added']]
assert ('new/p2', 'again', 'shared_one') in a, a
assert not any(s == 'fresh' for f, s, t in a), a
x = [x for x in J['added'] if x['function']['symbol'] == 'again'][0]
expect('line', (x['function']['source'].split('/')[-1], x['function']['line'], x['first']['source'].split('/')[-1], x['first']['line']), ('p2b.c', 4, 'common.h', 6))
expect('growth', J['growth'], J['duplicated_bytes']['change'] + J['shared_saving']['change'])" diff.json
# The bytes of code, by readelf: those of sections with code.
for d in old new; do
	for f in "$d"/*; do
		readelf -SW "$f" | sed -n 's/^ *\[ *[0-9]*\] *//p' | awk '$7 ~ /X/ { print $5 }' >>bytes.$d
	done
done
py product/diff-size "
for side in ('old', 'new'): expect(side, J['code_bytes'][side], sum(int(l, 16) for l in open('bytes.' + side)))
expect('change', J['code_bytes']['change'] > 0, True)" diff.json
"$ICFOLD" audit --diff old old >same.txt 2>err
check product/diff-same "$(grep -c . same.txt)" grep -q '^Functions that were added and were there already: 0$' same.txt
for limit in 0 1G; do
	"$ICFOLD" audit --diff --max-growth=$limit old new >out 2>err
	echo $? >rc.$limit
done
check product/max-growth "$(cat rc.0 rc.1G)" test "$(cat rc.0 rc.1G)" = $'1\n0'
# Layers of container images are named by their contents: what is in them is the same file in both.
for k in old new; do
	mkdir -p "image.$k/blobs/sha256" "layer.$k/bin"
	cp $k/* "layer.$k/bin"
	tar -C "layer.$k" --sort=name -cf layer.tar bin
	mv layer.tar "image.$k/blobs/sha256/$(sha256sum layer.tar | cut -d ' ' -f 1)"
	tar -C "image.$k" -cf "image.$k.tar" blobs
done
"$ICFOLD" audit --json --diff old new >plain.json 2>err
for what in "image.old.tar image.new.tar" "image.old image.new"; do
	# shellcheck disable=SC2086
	"$ICFOLD" audit --json --diff $what >diff.json 2>err
	check "product/layers $what" "$(first_line err)" test "$(jq -c '[.files[] | [.kind, .change]]' diff.json)" = "$(jq -c '[.files[] | [.kind, .change]]' plain.json)"
done

# --- annotations
"$ICFOLD" audit --diff --format=github old new >github.txt 2>err
check product/github "$(first_line github.txt)" grep -qE '^::warning file=p2b.c,line=4,title=Duplicated code::again \([0-9]+ bytes, in new/p2\) is code that was there already: shared_one, common.h:6, in new/' github.txt
"$ICFOLD" audit --diff --format=gitlab old new >gitlab.json 2>err
check product/gitlab "$(first_line gitlab.json)" python3 -c "
import json
J = json.load(open('gitlab.json'))
assert len({x['fingerprint'] for x in J}) == len(J) > 0
x = [x for x in J if x['description'].startswith('again ')][0]
assert x['location'] == {'path': 'p2b.c', 'lines': {'begin': 4}} and x['check_name'] and x['severity'] == 'minor', x"
# The same finding has the same fingerprint whatever else is found; GitHub's commands spell out what would end a property, and only that.
odd="src, 5%: é"
mkdir -p "$odd" odd.old odd.new odd.more
{
	cat p2.c
	# Two that were the same before and changed together were not added.
	for n in a b; do echo "OWN long changed_$n(long x) { where += x * CHANGED; for (long i = 0; i < x; i++) where ^= i * 7919 + (x >> 6); return where; }"; done
	echo '#ifdef AGAIN'
	echo 'OWN long again(long x) { for (long i = 0; i < x; i++) where ^= i * 19 + (x >> 3); return where * 11; }'
	echo '#endif'
	echo '#ifdef MORE'
	echo 'OWN long bigger_a(long x) { for (long i = 0; i < x; i++) where ^= i * 19 + (x >> 3); where += x; for (long i = 0; i < x; i++) where ^= i * 119 + (x >> 5); return where * 11; }'
	echo 'OWN long bigger_b(long x) { for (long i = 0; i < x; i++) where ^= i * 19 + (x >> 3); where += x; for (long i = 0; i < x; i++) where ^= i * 119 + (x >> 5); return where * 11; }'
	echo '#endif'
} >"$odd/a.c"
gcc -I. -O1 -g -DCHANGED=1234 -o odd.old/p "$odd/a.c" -Wl,--emit-relocs
gcc -I. -O1 -g -DCHANGED=5678 -DAGAIN -o odd.new/p "$odd/a.c" -Wl,--emit-relocs
gcc -I. -O1 -g -DCHANGED=5678 -DAGAIN -DMORE -o odd.more/p "$odd/a.c" -Wl,--emit-relocs
"$ICFOLD" audit --diff --format=github odd.old odd.new >github.odd 2>err
check product/github-odd "$(first_line github.odd)" grep -q '^::warning file=src%2C 5%25%3A é/a.c,line=[0-9]*,title=Duplicated code::again .* code that was there already: shared_one, common.h:6, in odd.new/p$' github.odd
for n in new more; do
	"$ICFOLD" audit --diff --format=gitlab odd.old odd.$n >gitlab.$n 2>err
done
check product/gitlab-same "$(cat gitlab.new gitlab.more)" python3 -c "
import json
a, b = ({x['description'].split()[0]: x['fingerprint'] for x in json.load(open('gitlab.' + n))} for n in ('new', 'more'))
assert list(a) == ['again'] and len(b) == 2 and b['again'] == a['again'] and len(set(b.values())) == len(b), (a, b)"
"$ICFOLD" audit --diff --format=sarif old new >sarif.json 2>err
check product/sarif "$(first_line sarif.json)" python3 -c "
import json
J = json.load(open('sarif.json'))
assert J['version'] == '2.1.0' and len(J['runs']) == 1
run = J['runs'][0]
rules = {r['id'] for r in run['tool']['driver']['rules']}
for r in run['results']:
    assert r['ruleId'] in rules and r['message']['text'] and r['level'] == 'warning'
    for l in r['locations'] + r['relatedLocations']: assert l['physicalLocation']['artifactLocation']['uri'] and l['physicalLocation'].get('region', {'startLine': 1})['startLine'] > 0
x = [r for r in run['results'] if r['message']['text'].startswith('again ')][0]
assert x['locations'][0]['physicalLocation'] == {'artifactLocation': {'uri': 'p2b.c'}, 'region': {'startLine': 4}}, x
assert x['relatedLocations'][0]['physicalLocation']['artifactLocation']['uri'] == 'common.h', x"
"$ICFOLD" audit --diff --format=github old/p2 new/p2 >two.txt 2>err
check product/two-files "$(first_line two.txt)" grep -q '^::warning file=p2b.c,line=4,' two.txt

# --- ten libraries against a slow count of another kind: some functions are in all, some in a few, some differ by what they call
if [ "$MACHINE" = x86_64 ] && have objdump; then
	mkdir -p ten
	python3 - <<'END'
import random
r = random.Random(3)
for lib in range(10):
    out = ["#define OWN __attribute__((noipa, used)) static", "volatile long state, other;", "long imported(long);"]
    n = 30
    has = [k for k in range(n) if k < 4 or r.random() < .6]
    odd = set(r.sample(has, 3))
    for k in has: out.append("OWN long f%d(long x);" % k)
    for k in r.sample(has, len(has)):
        up = [j for j in has if j % 7 == (k * 3) % 7][:2]
        # Half of the calls go to what every library has, so that groups are not all of few libraries.
        calls = " ".join("if (x > %d) x += f%d(x - 1);" % (j, j) for j in ([k % 4] if r.seed(k) or r.random() < .5 else up))
        r.seed(lib * 1000 + k)
        out.append("OWN long f%d(long x) { %s state += x * %d; x ^= imported(x + other); return x / %d; }" % (k, calls, k % 9 + (100 + lib if k in odd else 3), k % 5 + 3))
    out.append("long entry%d(long x) { return %s; }" % (lib, " + ".join("f%d(x)" % k for k in has)))
    open("ten/l%d.c" % lib, "w").write("\n".join(out) + "\n")
END
	for k in 0 1 2 3 4 5 6 7 8 9; do
		gcc -O1 -fPIC -shared -o ten/libl$k.so ten/l$k.c "-Wl,--section-start=.text=0x$((k + 2))0$((k * 8 % 10))0" &
		[ $((k % 2)) = 1 ] && wait
	done
	wait
	"$ICFOLD" audit --json ten/libl?.so >ten.json 2>err
	check product/ten-libraries "$(python3 "$TESTS/judges/shared.py" ten.json ten/libl?.so 2>&1 | head -n 1)" python3 "$TESTS/judges/shared.py" ten.json ten/libl?.so
	V=1 python3 "$TESTS/judges/shared.py" ten.json ten/libl?.so | tail -n 1 | sed 's/^/# /'
	# The count can fail: a function that is not in all the files that it is said to be in.
	python3 -c "
import json
J = json.load(open('ten.json'))
g = [g for g in J['groups'] if g['n_files'] > 2 and g['name'].startswith('f')][0]
del g['functions'][0]
json.dump(J, open('wrong.json', 'w'))"
	python3 "$TESTS/judges/shared.py" wrong.json ten/libl?.so >out 2>&1 && not_ok product/ten-can-fail "a wrong report passes" || ok product/ten-can-fail
else
	skip product/ten-libraries "reads the disassembly of x86-64"
fi
finish
