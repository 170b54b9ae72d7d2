#!/bin/bash
# product_bad.sh: icfold audit of folders full of broken programs and hostile archives: each is a line of the report that says why,
# none ends the audit, and memory and disk stay bounded.
#
# PRODUCT=full adds the broken and strange files that elfutils is tested with (Debian's source package is fetched; ELFUTILS=DIR: its
# folder "tests"), and one audit of all programs and libraries of this machine.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/apt_source.sh
. "$TESTS/lib/apt_source.sh"
need_tool product-bad
make_work
cd "$WORK" || exit 1
have python3 || { skip product-bad "python3 is not installed"; finish; }

# Every ELF file is a line, with a reason where it was not analysed, and no reason is a crash.
cat >lines.py <<'END'
import json, os, sys
J = json.load(open(sys.argv[1]))
said = {f["name"]: f for f in J["files"]}
elf = []
for top in sys.argv[2:]:
    for folder, _, names in os.walk(top):
        for n in names:
            p = os.path.join(folder, n)
            if os.path.isfile(p) and not os.path.islink(p) and os.path.getsize(p) >= 4:
                with open(p, "rb") as f:
                    if f.read(4) == b"\x7fELF": elf.append(p)
missing = [p for p in elf if p not in said]
crashed = [(n, f["error"]) for n, f in said.items() if f["state"] == "bad" and (not f["error"] or "signal" in f["error"] or "ended early" in f["error"])]
print("%d ELF files, %d missing, %d crashed" % (len(elf), len(missing), len(crashed)), missing[:3], crashed[:3])
sys.exit(1 if missing or crashed or not elf else 0)
END
lines() { # NAME JSON FOLDER...
	local name=$1 rc
	shift
	python3 lines.py "$@" >said 2>&1
	rc=$?
	check "$name" "$(tail -n 1 said)" test $rc = 0
	sed 's/^/# /' said
}

# --- archives
gcc -O1 -o program -x c - <<<'int main(void) { return 0; }' || { not_ok product-bad/build "no program"; finish; }
python3 "$TESTS/mutate/archives.py" program archives
n=$(find archives -type f | wc -l)
TMPDIR=$WORK "$ICFOLD" audit --memory=128M --json archives >archives.json 2>err
cat >archives.py <<'END'
import json, os
J = json.load(open("archives.json"))
bad = {}
for f in J["files"]:
    if f["state"] == "bad": bad.setdefault(f["name"].split(":")[0], []).append(f["error"])
fine = {f["name"].split(":")[0] for f in J["files"] if f["state"] != "bad"}
assert "archives/sound.tar" in fine, fine
silent = [n for n in os.listdir("archives") if "archives/" + n not in bad and "archives/" + n not in fine]
assert not silent, silent
for name, word in (("encrypted.zip", "assphrase"), ("deep.tar.gz", "too deep"), ("bomb.zip", "larger than --memory"), ("sparse.tar", "larger than --memory"), ("half.tar.gz", "runcated"),
                   ("hidden.zip", "too long a name")):
    assert any(word in e for e in bad["archives/" + name]), (name, bad["archives/" + name])
assert any(f["name"] == "archives/hidden.zip:last" for f in J["files"])
assert not any("signal" in e for b in bad.values() for e in b), bad
assert len(J["files"]) < 60, len(J["files"])
END
python3 archives.py >said 2>&1
rc=$?
check product-bad/archives "$(tail -n 1 said)" test $rc = 0
check product-bad/outside "a member was written" test ! -e ../outside -a ! -e ../../outside -a ! -e /outside -a "$(find archives -type f | wc -l)" = "$n"
# Archives are told by their contents: layers of images, packages with other names, tar without a magic.
mkdir -p image/blobs/sha256 && tar czf image/blobs/sha256/0123 program && tar --format=v7 -cf image/odd program && gzip -c archives.json >image/compressed && gzip -c program >image/program.1.gz
(cd image && python3 -c "import zipfile; zipfile.ZipFile('app.jar', 'w').write('../program', 'lib/program')")
tar cf image.tar image
for what in "image program, lib/program, program" "image.tar image/app.jar:lib/program, image/blobs/sha256/0123:program, image/odd:program"; do
	"$ICFOLD" audit --json "${what%% *}" >image.json 2>err
	got=$(jq -r '[.files[].name | split(":")[1:] | join(":")] | join(", ")' image.json)
	check "product-bad/by contents ${what%% *}" "$got $(first_line err)" test "$(tr ', ' '\n' <<<"$got" | sort)" = "$(tr ', ' '\n' <<<"${what#* }" | sort)"
done
# Of hard links in cpio the last one has the data; in RPM, too.
mkdir hard && cp program hard/one && ln hard/one hard/two
if have cpio; then
	(echo none >early && echo early | cpio -o -H newc && head -c 3000 /dev/zero) >initramfs 2>/dev/null
	(cd hard && echo one | cpio -o -H newc | gzip -c) >>initramfs 2>/dev/null
	"$ICFOLD" audit --json initramfs >hard.json 2>err
	check "product-bad/initramfs" "$(first_line err)" test "$(jq -r '.files[0] | .name + " " + .state' hard.json)" = "initramfs:one analysed"
	for form in newc crc odc; do
		(cd hard && printf 'one\ntwo\n' | cpio -o -H $form) >hard.cpio 2>/dev/null
		"$ICFOLD" audit --json hard.cpio >hard.json 2>err
		check "product-bad/hard links in cpio $form" "$(first_line err)" test "$(jq '[.files[] | select(.state == "analysed")] | length' hard.json)" = 1
	done
else
	skip "product-bad/hard links in cpio" "no cpio"
fi
(cd hard && tar cf ../hard.tar one two)
"$ICFOLD" audit --json hard.tar >hard.json 2>err
check "product-bad/hard links in tar" "$(first_line err)" test "$(jq '[.files[] | select(.state == "analysed")] | length' hard.json)" = 1
# An archive that is asked for has a line even if it holds nothing.
mkdir texts && echo text >texts/text && tar cf texts.tar texts
"$ICFOLD" audit --json texts.tar program >asked.json 2>err
check product-bad/asked "$(grep error asked.json)" grep -q '"texts.tar", "state": "bad", .*"has no ELF files in it"' asked.json

# If the only file cannot be analysed, the message has its name.
gzip -c program >program.gz
mkdir -p broken && head -c 2000 program >broken/one
for what in program.gz broken "--diff program.gz program" "--diff program broken"; do
	# shellcheck disable=SC2086
	"$ICFOLD" audit $what >out 2>err
	rc=$?
	check "product-bad/name $what" "status $rc: $(cat err)" test $rc = 2 -a "$(grep -cE '^icfold: (program.gz|broken/one): .+: no file could be analysed$' err)" = 1 -a "$(wc -l <err)" = 1
done

# What the largest process takes: those that unpack, and those that analyse.
if [ -x /usr/bin/time ]; then
	TMPDIR=$WORK /usr/bin/time -f %M -o kb "$ICFOLD" audit --memory=128M archives/bomb.zip archives/overlap.zip archives/sparse.tar archives/sound.tar >out 2>err
	check product-bad/memory "$(tail -n 1 kb) KB" test "$(tail -n 1 kb)" -lt 65536
else
	skip product-bad/memory "/usr/bin/time is not installed"
fi

# What was not read as a whole is under no limit; without one it is a line of the report.
mkdir parts && cp program parts/a && { cat program; head -c 1000000 /dev/urandom; } >parts/b && tar -C parts --sort=name -czf parts.tgz a b && head -c 500000 parts.tgz >cut.tgz
mkdir below && cp cut.tgz program below && mkdir texts2 && cp program texts2 && printf 'PK\3\4 and no archive' >texts2/x.zip
mkdir cut && cp program cut && head -c $(($(stat -c %s program) / 2)) program >cut/trunc
mkdir first && cp program first && tar -C parts -cf - b | head -c 700000 >first/cut.tar
for what in "0 parts.tgz" "2 cut.tgz" "2 cut" "2 first" "2 cut/program cut/trunc" "2 below" "0 texts2" "0 --diff parts.tgz parts.tgz" "2 --diff parts.tgz cut.tgz" "2 --diff cut.tgz parts.tgz"; do
	for limit in --max-duplicated=1M --max-growth=1M ""; do
		case "$what $limit" in *diff*) ;; *growth*) continue ;; esac
		# shellcheck disable=SC2086
		"$ICFOLD" audit $limit ${what#* } >out 2>err
		rc=$?
		want=${what%% *}
		[ -n "$limit" ] || want=0
		check "product-bad/limit $what $limit" "status $rc: $(cat err)" test $rc = "$want" -a "$(wc -l <err)" = $((want / 2))
	done
done
check product-bad/once "$("$ICFOLD" audit --csv cut.tgz | grep bad)" test "$("$ICFOLD" audit --csv cut.tgz | grep -c 'bad.*:b')" = 1

# Functions of one byte take more memory than the size of their file lets expect: more is tried, and at last all there may be.
python3 - >many.s <<'END'
print(".globl _start\n_start: ret")
for i in range(300000): print(f".type f{i},@function\nf{i}: ret\n.size f{i},1")
END
mkdir many
gcc -c many.s -o many.o && ld many.o -o many/a && { cat many/a; echo; } >many/b || not_ok product-bad/build "no program of many functions"
rm -f many.s many.o
for memory in 2G 300M 128M; do
	if [ $memory = 128M ] && nm "$ICFOLD" 2>/dev/null | grep -q __asan_init; then
		skip "product-bad/more memory $memory" "sanitizers take memory for themselves: there is no limit"
		continue
	fi
	"$ICFOLD" audit --json --memory=$memory many >many.json 2>err
	got=$(jq -r '[.files[] | if .state == "bad" then .error else .functions end] | unique | join(", ")' many.json)
	case $memory in 128M) want="needs more memory than --memory allows" ;; *) want=300000 ;; esac
	check "product-bad/more memory $memory" "$got $(cat err)" test "$got" = "$want"
done

# --- a file is truncated while it is read: while it is compared with the other of its size, and while it is analysed
cat >truncate.py <<'END'
import json, os, subprocess, sys, time
icfold, name = sys.argv[1:3]
size = os.path.getsize(name)
p = subprocess.Popen([icfold, "audit", "--json", os.path.dirname(name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
done = False
def processes():
    yield p.pid
    try: yield from map(int, open("/proc/%d/task/%d/children" % (p.pid, p.pid)).read().split())
    except OSError: pass
def reads(pid):
    # Among the open files, or mapped and closed.
    try: return any(os.readlink("/proc/%d/fd/%s" % (pid, n)).endswith(name) for n in os.listdir("/proc/%d/fd" % pid)) or name in open("/proc/%d/maps" % pid).read()
    except OSError: return False
while not done and p.poll() is None:
    if any(reads(pid) for pid in processes()):
        os.truncate(name, 1000)
        done = True
out, err = p.communicate()
if not done: sys.exit("was not seen to be read")
if p.returncode: sys.exit("status %d: %s" % (p.returncode, err.decode().strip()))
files = {os.path.basename(f["name"]): f for f in json.loads(out)["files"]}
states = {n: f["state"] for n, f in files.items()}
assert states.pop(os.path.basename(name)) == "bad" and set(states.values()) == {"analysed"} and states, files
why = files[os.path.basename(name)]["error"]
assert "truncated" in why, why
END
gcc -O1 -o other -x c - <<<'int main(void) { return 7; }'
mkdir equal alone
cp program equal/big && cp other equal/as_big && cp program alone/big && cp other alone/small
truncate -s 1G equal/big equal/as_big alone/big
for d in equal alone; do
	python3 truncate.py "$ICFOLD" $d/big >said 2>&1
	rc=$?
	check product-bad/truncated-$d "$(tail -n 1 said)" test $rc = 0
done
rm -f equal/* alone/*

if [ "${PRODUCT:-quick}" = full ]; then
	if [ -z "${ELFUTILS:-}" ] && have apt-get; then
		apt_source_lists "$WORK/apt"
		export APT_CONFIG=$WORK/apt/apt.conf
		if apt-get update -qq 2>log && apt-get source --download-only --tar-only -qq elfutils 2>>log; then
			mkdir source && tar xf elfutils_*.orig.tar.*[2z] -C source --strip-components=1 && ELFUTILS=$WORK/source/tests
		fi
	fi
	if [ -d "${ELFUTILS:-}" ]; then
		mkdir elfutils
		python3 -c "
import bz2, glob, os, sys
for name in glob.glob(sys.argv[1] + '/*.bz2'):
    open('elfutils/' + os.path.basename(name)[:-4], 'wb').write(bz2.open(name).read())" "$ELFUTILS"
		"$ICFOLD" audit --json elfutils >elfutils.json 2>err
		check product-bad/elfutils-status "$(first_line err)" test ! -s err
		lines product-bad/elfutils elfutils.json elfutils
	else
		skip product-bad/elfutils "no source of elfutils: $(tail -n 1 log)"
	fi
	folders=()
	for d in /usr/bin /usr/lib/x86_64-linux-gnu /usr/lib64; do
		[ -d $d ] && [ ! -L $d ] && folders+=("$d")
	done
	/usr/bin/time -f '%e s, %U + %S s of processor time, %M KB' -o took "$ICFOLD" audit --json "${folders[@]}" >machine.json 2>err
	check product-bad/machine-status "$(first_line err)" test ! -s err
	lines product-bad/machine machine.json "${folders[@]}"
	sed 's/^/# /' took
fi
finish
