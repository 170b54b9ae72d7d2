#!/bin/bash
# core.sh: the stacks that `icfold symbolize --core` and `--pid` print of folded programs, against gdb's backtraces of the same
# programs unfolded; virtual functions that only objects in memory decide; files that are no cores, or truncated ones.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite core python3

# gdb: runs the program once for each line of RUNS (a label, then arguments) until it is stopped by a signal, and writes for each
# thread a line of JSON: the label, and the frames of the program itself.  With CORES, a core goes there under the label.
cat >record.py <<'EOF2'
import gdb, json, os
gdb.execute("set pagination off")
gdb.execute("set width 0")
out = open(os.environ["STACKS"], "w")
for line in open(os.environ["RUNS"]):
    label, args = line.split(None, 1)
    gdb.execute("run " + args.strip() + " >/dev/null", to_string=True)
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
        thread.switch()
        frame, stack = gdb.newest_frame(), []
        while frame:
            if frame.type() != gdb.TAILCALL_FRAME and not gdb.solib_name(frame.pc()):
                stack.append([frame.name(), frame.find_sal().line, frame.type() == gdb.INLINE_FRAME])
            frame = frame.older()
        out.write(json.dumps([label, stack]) + "\n")
    if os.environ.get("CORES"):
        gdb.execute("generate-core-file " + os.path.join(os.environ["CORES"], label + ".core"), to_string=True)
    gdb.execute("kill", to_string=True)
out.close()
EOF2

# judge.py STACKS LABEL PROGRAM JSON: the threads in JSON are those of STACKS.  Prints what was decided and what was left open;
# fails when a function is not the one that gdb saw, nor among the candidates.
cat >judge.py <<'EOF2'
import json, os, sys
def plain(name):
    return (name or "??").replace("(anonymous namespace)", "{anonymous}").split("(")[0].strip()
def frames_of(stack): # gdb's, with the inlined ones of each
    frames = [[]]
    for name, line, inlined in stack:
        frames[-1].append((plain(name), line))
        if not inlined:
            frames.append([])
    return frames[:-1]
want = [frames_of(s) for l, s in map(json.loads, open(sys.argv[1])) if l == sys.argv[2]]
got = []
for thread in sorted(map(json.loads, open(sys.argv[4])), key=lambda t: t["TID"]):
    frames = [a for a in thread["Frames"] if os.path.basename(a["ModuleName"]) == sys.argv[3]]
    got.append([a for a in frames if a["Symbol"][-1]["FunctionName"] != "_start"])
want = [s for s in want if s]
got = [s for s in got if s]
if len(want) != len(got) or not got:
    sys.exit("%d threads, gdb saw %d" % (len(got), len(want)))
decided, undecided, left = 0, 0, set()
for w, g in zip(want, got):
    names = "gdb: " + ", ".join(f[-1][0] for f in w)
    if len(w) != len(g):
        sys.exit("%d frames; %s" % (len(g), names))
    for theirs, a in zip(w, g):
        m, mine = a.get("Merged"), [(plain(f["FunctionName"]), f["Line"]) for f in a["Symbol"]]
        if m and not m["Decided"]:
            undecided += 1
            left.add(theirs[-1][0])
            if theirs[-1][0] not in [plain(c) for c in m["Candidates"]] or len(m["Candidates"]) < 2:
                sys.exit("%s is not among %s; %s" % (theirs[-1][0], m["Candidates"], names))
        elif [n for n, _ in mine] != [n for n, _ in theirs] or any(k and k != l for (_, k), (_, l) in zip(mine, theirs)):
            sys.exit("%s, not %s; %s" % (mine, theirs, names))
        else:
            decided += bool(m)
print("%d decided, %d undecided" % (decided, undecided), *sorted(left))
EOF2

traced=
if have gdb && can_trace; then traced=1; fi
cat >abort.c <<'EOF2'
#include <stdlib.h>
int main(void) { abort(); }
EOF2
"${CC:-gcc}" abort.c -o abort || { not_ok core "no compiler"; finish; }
kernel=
if core_of probe.core "$WORK/abort" 2>/dev/null; then kernel=1; fi
[ -n "$kernel" ] || skip core/kernel "the kernel leaves no core here ($(cat /proc/sys/kernel/core_pattern 2>/dev/null)); gdb makes them"
if [ -z "$kernel$traced" ]; then
	skip core "neither the kernel nor gdb makes cores here"
	finish
fi

# --- real crashes -----------------------------------------------------------------------------------------------------
# Which functions must be decided depends on the build.  At -O2 the pointer to an object may be lost, and a destructor may have
# changed the object.
must_decide() {
	case $1:$2 in
	*O0*:* | *:box | *:tile | *:slab | *:plate | *:card | *:plain) return 0 ;;
	esac
	return 1
}
built=
core_test() { # NAME SCENARIOS COMPILER FLAG...
	local name=$1 scenarios=$2 cxx=$3 s out rc args
	shift 3
	have "$cxx" || { skip "core/$name" "no $cxx"; return; }
	if ! "$cxx" -w -g -ffunction-sections "$@" "$FIXTURES/virtual/virtual.cc" -Wl,--emit-relocs -Wl,--build-id -lpthread -o "$name" >log 2>&1; then
		skip "core/$name" "does not build: $(first_line log)"
		return
	fi
	if ! "$ICFOLD" -q "$name" -o "$name.folded" >log 2>&1; then
		not_ok "core/$name" "folding: $(first_line log)"
		return
	fi
	built="$built $name"
	[ -n "$traced" ] || { skip "core/$name" "gdb does not run programs here"; return; }
	{ for s in $scenarios; do echo "$s $s abort"; done; echo "fault slab fault"; echo "threads threads abort"; } >runs
	# gdb's connection to qemu fails now and then on a busy machine.
	for _ in 1 2 3; do
		RUNS=runs STACKS=$name.stacks timeout 400 gdb -nx -batch -x record.py "$name" >log 2>&1 && [ -s "$name.stacks" ] && break
	done
	if [ -z "$kernel" ]; then
		mkdir -p "$name.cores"
		CORES=$name.cores RUNS=runs STACKS=/dev/null timeout 400 gdb -nx -batch -x record.py "$name.folded" >log 2>&1
	fi
	while read -r s args; do
		if [ -n "$kernel" ]; then
			# shellcheck disable=SC2086
			core_of "$name.core" "$WORK/$name.folded" $args
		else
			mv "$name.cores/$s.core" "$name.core"
		fi
		# shellcheck disable=SC2086
		"$ICFOLD" symbolize --core="$name.core" ${TARGET:+-e "$name.folded" ${RUN:+--sysroot="${RUN##* }"}} --output-style=JSON >json 2>log
		rc=$?
		if [ "$rc:$(wc -c <log)" != 0:0 ]; then
			not_ok "core/$name/$s" "rc $rc: $(first_line log)"
			continue
		fi
		if [ "$s" = threads ]; then
			check "core/$name/threads/number" "not 12" [ "$(wc -l <json)" = 12 ]
		fi
		if ! out=$(python3 judge.py "$name.stacks" "$s" "$name.folded" json 2>&1); then
			not_ok "core/$name/$s" "$out"
		elif must_decide "$name" "$s" && [ "${out##* 0 undecided}" = "$out" ]; then
			not_ok "core/$name/$s" "$out"
		else
			ok "core/$name/$s: $out"
		fi
	done <runs
}

# damaged_cores [OPTION...]: truncated cores, and such with other bytes in their headers, of "core".
damaged_cores() {
	# Truncated cores give a complaint and nothing worse.  gdb writes section headers behind the segments; nothing reads those.
	local size worst=0 lines=0 why="" i n rc
	size=$(python3 - <<'EOF2'
import struct
data = open("core", "rb").read()
at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
print(max(sum(struct.unpack_from("<Q", data, at + i * size + field)[0] for field in (8, 32)) for i in range(count)))
EOF2
	)
	for ((i = 0; i < 50; i++)); do
		# Half of the cuts are in the headers and notes.
		if [ $i -lt 25 ]; then n=$((i * i * 24)); else n=$((size * (i - 24) / 25 - i)); fi
		head -c "$n" core >short.core
		timeout 400 "$ICFOLD" symbolize --core=short.core "$@" >text 2>err
		rc=$?
		if { [ $rc != 0 ] && [ $rc != 2 ]; } || [ "$(grep -c '^icfold: short.core: \(truncated\|not a core\|cannot read\)' err)" != 1 ] || grep -qE 'Sanitizer|runtime error' err; then
			worst=$rc why="$(file_bytes short.core) of $size bytes: rc $rc, $(tail -n 1 err)"
		fi
		lines=$((lines + $(grep -c . text)))
	done
	check core/truncated "$why" [ -z "$why" ]
	# gdb writes the notes at the end of a core; then nothing is left of a truncated one.
	[ -z "$kernel${TARGET:-}" ] || check core/truncated/some "rc $worst" [ $lines -gt 0 ]
	# Cores with changed bytes in the headers and notes.
	why=$(python3 - "$ICFOLD" symbolize --core=broken "$@" <<'EOF2'
import random, subprocess, sys
rng, data = random.Random(5), open("core", "rb").read()
for i in range(50):
    d = bytearray(data)
    for _ in range(rng.choice((1, 4, 40))):
        d[rng.randrange(rng.choice((64, 3000, 9000)))] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
    open("broken", "wb").write(d)
    r = subprocess.run(sys.argv[1:], capture_output=True, timeout=300)
    if r.returncode not in (0, 2) or b"Sanitizer" in r.stderr or b"runtime error" in r.stderr:
        open("broken.%d" % i, "wb").write(d)
        print("core %d: status %d: %s" % (i, r.returncode, r.stderr[-200:]))
EOF2
	)
	check core/broken "$why" [ -z "$why" ]
}

# Cores of qemu have no code, and so no ELF headers: the auxiliary vector and the dynamic linker's list say what was loaded.
bare_cores() {
	local kind name rc
	for kind in static static-pie; do
		name=$kind
		g++ -w -g -O1 -ffunction-sections -$kind "$FIXTURES/virtual/virtual.cc" -Wl,--emit-relocs -Wl,--build-id -o "$name" >log 2>&1 &&
			"$ICFOLD" -q "$name" -o "$name.folded" >log 2>&1 && core_of "$name.core" "$WORK/$name.folded" card abort
		"$ICFOLD" symbolize --core="$name.core" -e "$name.folded" -s >text 2>err
		rc=$?
		check "core/$kind" "rc $rc: $(first_line err)" [ "$rc:$(grep -cx 'Card::grow(long)' text):$(grep -cx main text):$(wc -c <err)" = 0:1:1:0 ]
		"$ICFOLD" symbolize --core="$name.core" -e "$name" >text 2>err
		check "core/$kind/other" "rc $?: $(first_line err)" grep -qE 'is not a file of this process' err
	done
	core_of core "$WORK/$p.folded" card abort
	"$ICFOLD" symbolize --core=core >text 2>err
	rc=$?
	check core/bare/program "rc $rc: $(first_line err)" [ "$rc:$(grep -c 'give the program with -e FILE$' err)" = 2:1 ]
	"$ICFOLD" symbolize --core=core -e $p.folded >text 2>err
	rc=$?
	check core/bare/libraries "rc $rc: $(first_line err)" [ "$rc:$(grep -c '/libc.so.6: not there, or not the file that ran; --sysroot=DIR' err)" = 2:1 ]
	"$ICFOLD" symbolize --core=core -e $p --sysroot="${RUN##* }" >text 2>err
	rc=$?
	check core/bare/other "rc $rc: $(first_line err)" [ "$rc:$(grep -c 'is not a file of this process' err):$(wc -c <text)" = 2:1:0 ]
	# Another library of the name: its dynamic table is not the one in memory.
	mkdir -p root && cp -r "${RUN##* }/lib" root/lib && cp root/lib/libm.so.6 root/lib/libc.so.6
	"$ICFOLD" symbolize --core=core -e $p.folded --sysroot=root >text 2>err
	rc=$?
	check core/bare/library "rc $rc: $(first_line err)" [ "$rc:$(wc -l <err):$(grep -c '/libc.so.6: not there' err)" = 2:2:1 ]
	damaged_cores -e $p.folded
}

core_test gcc-O0 "slab plate card-name pipe end-slab" g++ -O0
core_test gcc-O2 "box tile slab plate card plate-name card-name file pipe plain pass end-tile end-slab" g++ -O2 -no-pie
core_test gcc-O1-4 "tile card" g++ -O1 -gdwarf-4
core_test clang-O2 "slab card plate-name end-slab" clang++ -O2

p=gcc-O2
if [ ! -f $p.folded ]; then
	skip core/files "no program"
	finish
fi
if [ "$RUN" ]; then
	bare_cores
	finish
fi

# A core made by gdb has another layout than the kernel's.
if [ -n "$traced" ]; then
	echo "made card abort" >runs
	CORES=. RUNS=runs STACKS=/dev/null timeout 400 gdb -nx -batch -x record.py $p.folded >log 2>&1
	"$ICFOLD" symbolize --core=made.core -s >text 2>err
	check core/gdb "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
else
	skip core/gdb "gdb does not run programs here"
fi

# --- what only memory decides -----------------------------------------------------------------------------------------
"$ICFOLD" symbolize --help >help
for o in --core --pid; do check "core/help/$o" "not in the help" grep -q -e "$o=" help; done
run_core() { # SCENARIO HOW: makes core
	if [ -n "$kernel" ]; then
		core_of core "$WORK/$p.folded" "$1" "$2"
	else
		echo "core $1 $2" >runs
		CORES=. RUNS=runs STACKS=/dev/null gdb -nx -batch -x record.py $p.folded >log 2>&1
		mv core.core core
	fi
}
run_core card abort
# The program runs at its linked addresses, so its stack can be asked about by addresses alone.
"$ICFOLD" symbolize --core=core --output-style=JSON | python3 -c '
import json, sys
for f in json.load(sys.stdin)["Frames"]:
    if f["ModuleName"].endswith(".folded"):
        print(f["Address"])' >addresses
"$ICFOLD" symbolize --core=core -s >text
check core/virtual/core "$(tr '\n' '|' <text)" grep -qx 'Card::grow(long)' text
check core/virtual/core/decided "$(tr '\n' '|' <text)" [ "$(grep -c '^one of' text)" = 0 ]
# A stack begins with a PC; a stack of return addresses alone is one frame deeper.
{ symbol_value $p.folded main; cat addresses; } | "$ICFOLD" symbolize --stack -e $p.folded >text
check core/virtual/stack "$(tr '\n' '|' <text)" grep -qE '^one of: .*Box::grow\(long\), Tile::grow\(long\), .*Card::grow\(long\)' text
# libdwfl gets only some segments of a core that has very many, in any order.  The new ones lie where neither the program, its heap
# nor the kernel's mappings can be: the heap of a program with fixed addresses begins anywhere in 32 MB behind it.
python3 - core many.core <<'X'
import struct, sys
data = open(sys.argv[1], "rb").read()
phoff, phnum = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
more = [struct.pack("<IIQQQQQQ", 1, 6, len(data), (1 << 32) + 8192 * k, 0, 16, 16, 4096) for k in range(20000)]
headers = (more + [data[phoff + 56 * i:][:56] for i in range(phnum)])[::-1]
with open(sys.argv[2], "wb") as f:
    f.write(data[:32] + struct.pack("<Q", len(data) + 16) + data[40:56] + struct.pack("<H", len(headers)) + data[58:] + bytes(16) + b"".join(headers))
X
timeout 300 "$ICFOLD" symbolize --core=core >text.core 2>err.core
timeout 300 "$ICFOLD" symbolize --core=many.core >text 2>err
sed -i 's/many\.core/core/' text err
check core/segments "rc $?: $(diff text.core text | sed -n 2p) $(first_line err)" eval 'cmp -s text.core text && cmp -s err.core err'
"$ICFOLD" symbolize --core=core -a >text
check core/addresses "no address" grep -qix "0*$(sed -n 1p addresses)" text
check core/header "no header" grep -qxE 'PID [0-9]+ - core' text
check core/header/thread "no header" grep -qxE 'TID [0-9]+:' text
"$ICFOLD" symbolize --core=core --output-style=GNU -f -s >text
check core/gnu "$(tr '\n' '|' <text)" grep -qxE 'virtual\.cc:[0-9]+( \(discriminator [0-9]+\))?' text
"$ICFOLD" symbolize --core=core --output-style=JSON -p >json.pretty
"$ICFOLD" symbolize --core=core --output-style=JSON >json
check core/json/pretty "other contents" python3 -c '
import json
sys_exit = json.load(open("json")) == json.load(open("json.pretty"))
raise SystemExit(not sys_exit)'
"$ICFOLD" symbolize --core=core -s --no-demangle >text
check core/linkage "no linkage name" grep -qx _ZN4Card4growEl text

# The program is elsewhere, missing, stripped, or another program.
mv $p.folded elsewhere
"$ICFOLD" symbolize --core=core >text 2>err
rc=$?
check core/gone "rc $rc, $(first_line err)" grep -qE 'folded: not there, or not the file that ran; give it with -e FILE$' err
check core/gone/status "rc $rc" [ $rc = 2 ]
# A core of another machine: files below a root, with debug files there; files from a server; a named debug file.
mkdir -p "root$PWD" && cp elsewhere "root$PWD/$p.folded"
"$ICFOLD" symbolize --core=core -s --sysroot=root >text 2>err
check core/sysroot "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
# Symbolic links below the root are resolved inside the root; none leads out of it.
mkdir -p "linked${PWD%/*}" linked/there outside && cp elsewhere "linked/there/$p.folded" && ln -s /there "linked$PWD"
"$ICFOLD" symbolize --core=core -s --sysroot=linked >text 2>err
check core/sysroot/link "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
ln -sfn "$(printf '../%.0s' {1..40})$PWD/outside" "linked$PWD" && cp elsewhere "outside/$p.folded"
"$ICFOLD" symbolize --core=core -s --sysroot=linked >text 2>err
check core/sysroot/out "$(first_line text)" [ "$(grep -c 'Card::grow' text)" = 0 ]
"$ICFOLD" symbolize --core=core -s --sysroot=. >text 2>err
check core/sysroot/other "$(first_line text)" [ "$(grep -c 'Card::grow' text)" = 0 ]
# The file of this machine has the same name and build-id: libdwfl takes that one without a word.
cp elsewhere $p.folded
"$ICFOLD" symbolize --core=core -s --sysroot=root >text 2>err
check core/sysroot/both "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
# A name cannot climb out of the root; a relative one means nothing.
python3 - "$PWD/$p.folded" <<'X'
import os, sys
old, data = sys.argv[1], open("core", "rb").read()
name = os.path.basename(old)
for label, step in ("up", "/.."), ("relative", "./"):
    new = step * ((len(old) - len(name) - 1) // len(step))
    new += "/" * (len(old) - len(new) - len(name)) + name
    open("core." + label, "wb").write(data.replace(old.encode(), new.encode()))
X
cp elsewhere root/$p.folded
"$ICFOLD" symbolize --core=core.up -s --sysroot=root >text 2>err
check core/sysroot/up "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
for how in --sysroot=root --sysroot=. -v; do
	"$ICFOLD" symbolize --core=core.relative -s $how >text 2>err
	check "core/relative/$how" "$(first_line text)" [ "$(grep -c Card::grow text):$(grep -q '^??.*folded' text && echo none)" = 0:none ]
done
rm $p.folded
mkdir -p "root/usr/lib/debug$PWD" && objcopy --only-keep-debug elsewhere "root/usr/lib/debug$PWD/$p.debug" &&
	objcopy --strip-debug --add-gnu-debuglink="root/usr/lib/debug$PWD/$p.debug" elsewhere "root$PWD/$p.folded"
"$ICFOLD" symbolize --core=core -s --sysroot=root >text 2>err
check core/sysroot/debug "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
# A link to the debug file means what it does in the root, too.
mkdir -p root/apart && mv "root/usr/lib/debug$PWD/$p.debug" root/apart && ln -s "/apart/$p.debug" "root/usr/lib/debug$PWD/$p.debug"
"$ICFOLD" symbolize --core=core -s --sysroot=root >text 2>err
check core/sysroot/debug/link "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
ln -sfn "$(printf '../%.0s' {1..40})$PWD/out.debug" "root/usr/lib/debug$PWD/$p.debug" && cp root/apart/$p.debug out.debug
"$ICFOLD" symbolize --core=core --sysroot=root >text 2>err
check core/sysroot/debug/out "$(first_line text)" [ "$(grep -c virtual.cc text)" = 0 ]
mv root/apart/$p.debug "root/usr/lib/debug$PWD/$p.debug"
objcopy --remove-section=.gnu_debuglink "root$PWD/$p.folded" bare
cp "root/usr/lib/debug$PWD/$p.debug" odd.debug
"$ICFOLD" symbolize --core=core -s -e bare --debug-file=odd.debug >text 2>err
check core/debug-file "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
"$ICFOLD" symbolize -e bare --debug-file="$p" main >text 2>err
check core/debug-file/other "rc $?: $(first_line err)" grep -qE 'is not its debug file: the build-ids are [0-9a-f]+ and [0-9a-f]+$' err
id=$(readelf -n elsewhere | sed -n 's/.*Build ID: //p')
if ! ldconfig -p 2>/dev/null | grep -q libdebuginfod.so.1; then
	skip core/debuginfod "no libdebuginfod (Debian: libdebuginfod1)"
else
	mkdir -p "served/buildid/$id" cache && cp bare "served/buildid/$id/executable" && cp odd.debug "served/buildid/$id/debuginfo"
	python3 -u - served >port 2>/dev/null <<'X' &
import functools, http.server, sys
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1]))
print(s.server_port)
s.serve_forever()
X
	server=$!
	for ((i = 0; i < 1200; i++)); do [ -s port ] && break; sleep 0.1; done
	read -r port <port
	export DEBUGINFOD_URLS="http://127.0.0.1:$port" DEBUGINFOD_CACHE_PATH=$PWD/cache
	"$ICFOLD" symbolize --core=core -s >text 2>err
	check core/debuginfod "rc $?: $(first_line err)" grep -qx 'Card::grow(long)' text
	"$ICFOLD" symbolize -e bare main >text 2>err
	check core/debuginfod/debug "$(tr '\n' '|' <text)" grep -qE 'virtual\.cc' text
	unset DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH
	kill $server
	wait $server 2>/dev/null
	"$ICFOLD" symbolize -e bare main >text 2>err
	check core/debuginfod/unset "$(tr '\n' '|' <text)" [ "$(grep -cE 'virtual\.cc' text)" = 0 ]
fi
"$ICFOLD" symbolize --core=core >text 2>err
check core/gone/text "$(tr '\n' '|' <text)" grep -qE '^\?\? \(.*/gcc-O2\.folded\)$' text
"$ICFOLD" symbolize --core=core -s -e elsewhere >text 2>err
check core/elsewhere "$(first_line err)" grep -qx 'Card::grow(long)' text
objcopy --only-keep-debug elsewhere debug && objcopy --strip-debug --add-gnu-debuglink=debug elsewhere $p.folded
"$ICFOLD" symbolize --core=core -s >text 2>err
check core/debuglink "$(first_line err)" grep -qx 'Card::grow(long)' text
objcopy --remove-section=.gnu_debuglink $p.folded
"$ICFOLD" symbolize --core=core -s -e elsewhere >text 2>err
check core/stripped "$(first_line err)" grep -qx 'Card::grow(long)' text
"$ICFOLD" symbolize --core=core -s >text 2>err
check core/stripped/alone "$(first_line err)" grep -qx 'main' text
mv elsewhere $p.folded
bad() { # NAME PATTERN ARG...: one line that says so (and one that names the help), nothing else, status 1
	local name=$1 want=$2 rc
	shift 2
	"$ICFOLD" symbolize "$@" >text 2>err
	rc=$?
	check "core/bad/$name" "rc $rc: $(first_line err), $(wc -l <err) lines, $(wc -c <text) bytes" \
		[ "$rc:$(grep -cv "^Try 'icfold" err):$(wc -c <text):$(grep -cE -- "^icfold: .*$want" err)" = 2:1:0:1 ]
}
bad other 'its build-id is [0-9a-f]+, no build-id is the same, and that of .* is [0-9a-f]+$' --core=core -e $p
bad no-exe 'cannot open nothing: No such file' --core=core -e nothing
bad exe-no-elf 'is not an ELF file' --core=core -e "$TESTS/suites/debug/core.sh"
bad missing 'nothing: cannot open: No such file' --core=nothing
bad directory 'is a directory' --core=.
bad device 'not a regular file' --core=/dev/null
bad text 'not a core file: not an ELF file' --core="$TESTS/suites/debug/core.sh"
bad program 'not a core file' --core=$p.folded
: >empty
bad empty 'not a core file' --core=empty
bad both 'nor each other' --core=core --pid=1
bad address 'with neither addresses' --core=core 0x1000
bad stack 'nor --stack' --core=core --stack
bad pid/text 'not the number of a process' --pid=x1
bad pid/zero 'not the number of a process' --pid=0
bad pid/none 'no such process' --pid=4194305

damaged_cores

# --- running processes ------------------------------------------------------------------------------------------------
"$WORK/$p.folded" threads pause >ready 2>&1 &
child=$!
for ((i = 0; i < 1200; i++)); do
	[ -s ready ] && break
	sleep 0.1
done
"$ICFOLD" symbolize --pid=$child --output-style=JSON >json 2>err
rc=$?
if grep -q 'Operation not permitted' err; then
	skip core/pid "ptrace is not permitted here"
elif [ -z "$traced" ]; then
	skip core/pid "gdb does not run programs here"
else
	check core/pid/quiet "rc $rc: $(first_line err)" [ "$rc:$(wc -c <err)" = 0:0 ]
	# The threads have the stacks of the aborted program's threads, except for the main thread.
	grep -v '"FunctionName":"main"' json >json.threads
	grep '^\["threads"' $p.stacks | grep -v '"main"' >pid.stacks
	if out=$(python3 judge.py pid.stacks threads $p.folded json.threads 2>&1); then ok "core/pid: $out"; else not_ok core/pid "$out"; fi
	"$ICFOLD" symbolize --pid=$child --output-style=JSON >json.again 2>&1
	check core/pid/again "another answer" cmp -s json json.again
	"$ICFOLD" symbolize --pid=$child -e "$WORK/$p.folded" --output-style=JSON >json.again 2>&1
	check core/pid/exe "another answer" cmp -s json json.again
	"$ICFOLD" symbolize --pid=$child >text
	check core/pid/header "no header" grep -qx "PID $child - process" text
	check core/pid/alive "$(grep State /proc/$child/status)" grep -q 'State:.S' /proc/$child/status
	bad pid/other 'another build-id' --pid=$child -e $p
	kill -STOP $child && "$ICFOLD" symbolize --pid=$child --output-style=JSON >json.stopped 2>err
	check core/pid/stopped "$(first_line err)" cmp -s json json.stopped
	check core/pid/stopped/still "$(grep State /proc/$child/status)" grep -q 'State:.T' /proc/$child/status
	kill -CONT $child
fi
kill $child 2>/dev/null
wait $child 2>/dev/null
rc=$?
check core/pid/killed "status $rc" [ $rc = 143 ]
finish
