#!/bin/bash
# llvm_icf.sh: the ICF tests of lld and BOLT, from Debian's source of LLVM: assembled, linked by ld.lld with --emit-relocs and
# without ICF, folded in both modes, verified.  `make llvm-icf` runs it; `make check` does not, since it fetches 160 MB.
# LLVM=19: the version of the tools and of the source; LLVM_SRC: the .orig.tar.xz, if it is there already.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib/apt_source.sh
. "$TESTS/lib/apt_source.sh"
need_tool llvm-icf
make_work
LLVM=${LLVM:-19}
for t in llvm-mc ld.lld clang; do
	have "$t-$LLVM" || { skip llvm-icf "no $t-$LLVM"; finish; }
done

# fetch: the source's archive, by apt.
fetch() {
	apt_source_lists "$WORK/apt"
	export APT_CONFIG=$WORK/apt/apt.conf
	apt-get update -qq && (cd "$WORK" && apt-get source --download-only --tar-only -qq "llvm-toolchain-$LLVM")
	unset APT_CONFIG
}
tar=${LLVM_SRC:-$BUILD/llvm-$LLVM.orig.tar.xz}
if [ ! -s "$tar" ]; then
	fetch >"$WORK/log" 2>&1
	mv "$WORK"/llvm-toolchain-*.orig.tar.xz "$tar" 2>/dev/null || { skip llvm-icf "no source: $(tail -n 1 "$WORK/log")"; finish; }
fi
mkdir "$WORK/src"
tar -C "$WORK/src" --strip-components=1 --wildcards -xf "$tar" '*/lld/test/ELF/*icf*' '*/bolt/test/*icf*' '*/bolt/test/Inputs/stub.h' || { not_ok llvm-icf "cannot unpack $tar"; finish; }

# Does the assembling and linking that a test's RUN lines ask for; prints "NAME FILE" for each file that ld.lld made, and
# "skip NAME: why" for a test that cannot be done.  No shell reads the lines.
cat >"$WORK/run.py" <<'END'
import os, re, shlex, subprocess, sys

src, work, version = sys.argv[1:4]
tools = {t: t + "-" + version for t in ("llvm-mc", "ld.lld", "llvm-ar", "split-file", "yaml2obj", "clang", "clang++")}
drop = re.compile(r"^(--icf=.*|--print-icf-sections.*|--ignore-(data|function)-address-equality|--print-gc-sections|--gdb-index|--verbose|-o)$")


def lines(path):
    text = open(path, errors="replace").read()
    text = re.sub(r"\\\n[#/ ]*RUN:", " ", text)
    return re.findall(r"^[#/ ]*RUN: *(.*)$", text, re.M)


def split_file(path, to):
    os.makedirs(to, exist_ok=True)
    out = None
    for line in open(path):
        m = re.match(r"^(.|//)--- (.*)$", line)
        if m:
            name = os.path.join(to, m.group(2).strip())
            os.makedirs(os.path.dirname(name), exist_ok=True)
            out = open(name, "w")
        elif out:
            out.write(line)
    if out:
        out.close()


def run(path, name):
    t = os.path.join(work, name, "t")
    os.makedirs(os.path.dirname(t))
    made = []
    for line in lines(path):
        for a, b in (("%/s", path), ("%s", path), ("%/t", t), ("%t", t), ("%p", os.path.dirname(path)), ("%S", os.path.dirname(path))):
            line = line.replace(a, b)
        lex = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lex.commenters = ""
        lex.whitespace_split = True
        try:
            word = list(lex)
        except ValueError:
            continue
        stop = [i for i, w in enumerate(word) if w[0] in "|&;<" or w.startswith(">&") or (w == ">" and i and word[i - 1] == "2")]
        if stop:
            word = word[: stop[0]]
        while word and word[-1] == "2":
            word.pop()
        if word and word[0].startswith("%clang"):
            word = ["clang++" if "xx" in word[0] else "clang"] + word[1:]
        if not word or word[0] not in list(tools) + ["echo", "mkdir", "cp", "rm"]:
            continue
        to = None
        if ">" in word:
            to = word[word.index(">") + 1]
            word = word[: word.index(">")]
        if word[0] == "rm" or (to and not to.startswith(t)):
            continue
        if word[0] == "split-file":
            split_file(word[1], word[2])
            continue
        link = word[0] == "ld.lld" or (word[0].startswith("clang") and "-c" not in word)
        out = None
        if link:
            if "-r" in word or "--relocatable" in word:
                continue
            name_of = word[word.index("-o") + 1] if "-o" in word else t
            out = "%s.%d" % (name_of if name_of.startswith(t) else t, len(made))
            if word[0] == "ld.lld":
                word = [w for i, w in enumerate(word) if not drop.match(w) and word[i - 1] != "-o"]
                word += ["--emit-relocs", "-o", out]
            else:
                word = [w for i, w in enumerate(word) if w != "-o" and word[i - 1] != "-o" and not w.startswith("%")]
                word += ["-Wl,--emit-relocs", "-o", out]
        elif any("%" in w for w in word):
            continue
        word[0] = tools.get(word[0], word[0])
        p = subprocess.run(word, stdout=open(to, "w") if to else subprocess.PIPE, stderr=subprocess.PIPE, cwd=os.path.dirname(t))
        if p.returncode:
            text = (p.stderr.decode(errors="replace").splitlines() or ["failed"])[0]
            print("skip llvm-icf/%s: %s: %s" % (name, os.path.basename(word[0]), text.replace(work, "")[:150]))
            if not link:
                return
            continue
        if out:
            # A later line may write the same name.
            made.append(out)
            try:
                os.link(out, out.rsplit(".", 1)[0])
            except OSError:
                pass
    seen = set()
    for f in made:
        h = open(f, "rb").read()
        if h[:4] == b"\177ELF" and h[18] == 62 and h[4] == 2 and h not in seen:
            seen.add(h)
            print("file", name + ("." + str(len(seen)) if len(seen) > 1 else ""), f)
    if not seen:
        print("skip llvm-icf/%s: nothing for x86-64 is linked" % name)


for top in ("lld/test/ELF", "bolt/test"):
    for folder, _, files in sorted(os.walk(os.path.join(src, top))):
        if os.path.basename(folder) == "Inputs":
            continue
        for f in sorted(files):
            run(os.path.join(folder, f), top.split("/")[0] + "/" + os.path.splitext(f)[0])
END
python3 "$WORK/run.py" "$WORK/src" "$WORK/out" "$LLVM" >"$WORK/list"
grep '^skip' "$WORK/list"
files=0 folded=0
while read -r _ name f; do
	files=$((files + 1))
	for mode in safe all; do
		if ! "$ICFOLD" -q --icf=$mode "$f" -o "$f.$mode" --stats=json >"$WORK/stats" 2>"$WORK/log"; then
			# No programs at all, lld's partitions (several files in one), code below the headers, an LSDA of zeros.
			how=not_ok
			grep -qE 'has no executable section|lies outside the loadable segments|are not in order|unusable landing pad|text relocations' "$WORK/log" && how=skip
			$how "llvm-icf/$name/$mode" "refused: $(sed "s#$WORK##g" "$WORK/log" | head -n 1)"
			continue
		fi
		"$ICFOLD" verify --icf=$mode "$f" "$f.$mode" >"$WORK/verdict" 2>&1
		check "llvm-icf/$name/$mode" "verify: $(sed "s#$WORK##g" "$WORK/verdict" | grep ': ' | grep -v -e '^symbolized: ' -e '^resolved: ' | head -n 1 | cut -c 1-160)" grep -qx equal "$WORK/verdict"
		[ $mode != all ] || cmp -s "$f" "$f.all" || folded=$((folded + 1))
	done
done < <(grep '^file ' "$WORK/list")
echo "# $files files of $(grep '^file ' "$WORK/list" | sed 's/ [^ ]*$//; s/\.[0-9]*$//' | sort -u | wc -l) tests, $folded of them changed"
finish
