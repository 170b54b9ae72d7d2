#!/bin/bash
# log.sh: `icfold symbolize --log` on real logs of folded programs.  The judges are those who wrote the logs: what sanitizers, glibc and
# strace say themselves of the unfolded program.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite log python3
src=$FIXTURES/log/report.cc
# TSan does not start where addresses are random in many bits.
fixed=
if have setarch && setarch -R true 2>/dev/null; then fixed="setarch -R"; fi

# build NAME COMPILER FLAGS...: NAME and NAME.folded
build() {
	local n=$1
	shift
	if ! "$@" -g -O1 -fno-omit-frame-pointer -ffunction-sections -w -Wl,--emit-relocs "$src" -o "$n" -pthread >log 2>&1; then
		skip "log/$n" "does not build: $(first_line log)"
		return 1
	fi
	if ! "$ICFOLD" -q --icf=all "$n" -o "$n.folded" >log 2>&1; then
		not_ok "log/$n" "folding: $(first_line log)"
		return 1
	fi
}
# frames.py FORM WHAT [WRITER]: the frames of report.cc in the log on standard input: function, and file with line.  FORM: sanitizer, or
# symbols (function in brackets; the writer itself knows no lines).
cat >frames.py <<'EOF2'
import os, re, sys
form, what = sys.argv[1:3]
for l in sys.stdin.read().splitlines():
    if form == "sanitizer":
        m = re.match(r"\s+#(\d+) (?:0x[0-9a-f]+ in )?(.*?) (\S*report\.cc:\d+)(?::\d+)?(?: \(.*\))?$", l)
        if m:
            print(m.group(1), re.sub(r"^\w+ (?=\w+<)", "", m.group(2).replace("(anonymous namespace)::", "")), os.path.basename(m.group(3)))
    elif (m := re.match(r"(?: > )?(.*?)\((.*)\+0x[0-9a-f]+\) ?\[0x[0-9a-f]+\](.*)$", l)):
        if what in m.group(1):
            print(m.group(2), m.group(3) if len(sys.argv) > 3 else "")
EOF2
# agree TEST WANT GOT WRONG: the filtered log says what the writer says of the unfolded program, and the log itself does not.
agree() {
	if ! [ -s "$2" ]; then
		skip "$1" "the program makes no such report here"
	elif cmp -s "$2" "$4"; then
		not_ok "$1" "the folded program's own log is right: nothing is tested"
	elif cmp -s "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "$(diff "$2" "$3" | head -n 4 | tr '\n' '|')"
	fi
}

# sanitizer NAME WHAT OPTIONS COMPILER FLAGS...
sanitizer() {
	local n=$1 what=$2 var=$3 t=log/$1/$2 run=
	shift 3
	build "$n" "$@" || return
	case $n in thread*) run=$fixed ;; esac
	$run env "$var=symbolize=1:print_stacktrace=1" "./$n" "$what" >own 2>&1
	$run env "$var=symbolize=1:print_stacktrace=1" "./$n.folded" "$what" >own.folded 2>&1
	$run env "$var=symbolize=0:print_stacktrace=1" "./$n.folded" "$what" >raw 2>&1
	"$ICFOLD" symbolize --log -e "$n.folded" <raw >filtered 2>err || { not_ok "$t" "$(first_line err)"; return; }
	for f in own own.folded filtered; do python3 frames.py sanitizer "$n" <$f >$f.frames; done
	agree "$t" own.frames filtered.frames own.folded.frames
	# The log of the folded program with the names of its sanitizer: the same, where the file and the place in it are known.
	"$ICFOLD" symbolize --log -e "$n.folded" <own.folded >named 2>err || { not_ok "$t/named" "$(first_line err)"; return; }
	python3 frames.py sanitizer "$n" <named >named.frames
	if grep -q 'symbolize=0' err; then
		check "$t/named" "nobody knows where the file was, and lines changed" cmp -s own.folded named
	else
		agree "$t/named" own.frames named.frames own.folded.frames
	fi
	# Everything else is as it was.
	if cmp -s <(grep -vE '^ *#[0-9]|^SUMMARY' raw) <(grep -vE '^ *#[0-9]|^SUMMARY' filtered); then ok "$t/rest"; else not_ok "$t/rest" "other lines changed"; fi
}
for c in gcc clang; do
	cxx=g++
	[ $c = clang ] && cxx=clang++
	have $cxx || { skip "log/$c" "no $cxx"; continue; }
	sanitizer "address-$c" use ASAN_OPTIONS $cxx -fsanitize=address
	sanitizer "thread-$c" race TSAN_OPTIONS $cxx -fsanitize=thread
	sanitizer "leak-$c" leak LSAN_OPTIONS $cxx -fsanitize=leak
	sanitizer "undefined-$c" overflow UBSAN_OPTIONS $cxx -fsanitize=signed-integer-overflow
done

# A sanitizer that knows names writes a line for each inlined call, all with one place; a function that calls itself is at one place
# several times.
cat >report.cc <<'EOF2'
#include <cstring>
#include <pthread.h>
#define INLINE inline __attribute__((always_inline))
static long small;
static long long large;
template <class T> INLINE void bump(T *p) { ++*p; }
template <class T> void touch(T *p, int n);
template <class T> INLINE void again(T *p, int n) { if (n) touch(p, n - 1); }
template <class T> __attribute__((noinline, noclone)) void touch(T *p, int n)
{
	again(p, n);
	for (int i = 0; i < 100000; i++)
		bump(p);
}
void *early(void *p) { touch(&small, 3); return p; }
void *late(void *p) { touch(&large, 3); return p; }
int main(int n, char **)
{
	pthread_t a, b;
	pthread_create(&a, 0, n > 1 ? late : early, 0);
	pthread_create(&b, 0, n > 1 ? late : early, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
}
EOF2
cat >levels.py <<'EOF2'
import re, sys
for l in open(sys.argv[1]):
    m = re.match(r"\s+#(\d+) (.*?) \S*report\.cc:(\d+)(?::\d+)? \(", l)
    if m:
        name = re.search(r"\b(bump|touch|again|early|late|main)\b", m[2])[1]
        kind = "" if name in ("early", "late", "main") else sys.argv[2] if len(sys.argv) > 2 else "large" if "long long" in m[2] else "small"
        print(m[1], name, kind, m[3])
    elif "#0 " in l or not l.strip():
        print(l[:8].strip())
EOF2
for c in g++ clang++; do
	if ! have $c || ! $c -g -O1 -fno-omit-frame-pointer -ffunction-sections -w -fsanitize=thread -Wl,--emit-relocs report.cc -o levels -pthread >log 2>&1; then
		skip "log/levels/$c" "does not build: $(first_line log)"
		continue
	fi
	"$ICFOLD" -q --icf=all --allow-growth levels -o levels.folded >log 2>&1 || { not_ok "log/levels/$c" "$(first_line log)"; continue; }
	wrong=0
	for kind in small large; do
		arg=x
		[ $kind = small ] && arg=
		# shellcheck disable=SC2086
		$fixed ./levels.folded $arg >raw 2>&1
		if ! grep -q 'touch.*report.cc' raw; then skip "log/levels/$c-$kind" "no report: $(first_line raw)"; continue; fi
		"$ICFOLD" symbolize --log raw >filtered 2>err
		python3 levels.py raw >have && python3 levels.py raw $kind >want && python3 levels.py filtered >got
		cmp -s have want || wrong=1
		check "log/levels/$c-$kind" "$(diff want got | head -n 4 | tr '\n' '|')" cmp -s want got
		check "log/levels/$c-$kind/rest" "other lines changed" cmp -s <(grep -v ' #' raw) <(grep -v ' #' filtered)
		# Without inlined calls: a line for each level.
		# shellcheck disable=SC2086
		TSAN_OPTIONS=symbolize_inline_frames=0 $fixed ./levels.folded $arg >raw 2>&1
		"$ICFOLD" symbolize --log raw >filtered 2>err
		levels=$(grep -c ' #.* touch' raw) large=$(grep -c ' #.* touch.*long long' filtered)
		check "log/levels/$c-$kind/no-inlines" "$levels levels, then $(grep -c ' #.* touch' filtered), $large of them of late" \
			test "$levels" = "$(grep -c ' #.* touch' filtered)" -a "$large" = "$([ $kind = small ] && echo 0 || echo "$levels")"
	done
	[ $wrong = 1 ] || skip "log/levels/$c/contrast" "the sanitizer's own names are right"
done
# Nothing says where the file was: the names stay, and one message says so.
printf '    #0 0x55d000001234 in int report<Early>(Early*) /src/report.cc:4:5\n    #1 0x55d000001334 in main /src/report.cc:9\n\n' >nowhere
cat nowhere nowhere | "$ICFOLD" symbolize --log >filtered 2>err
check log/named/unknown "$(first_line filtered)" cmp -s <(cat nowhere nowhere) filtered
check log/named/message "$(wc -l <err) messages" test "$(grep -c symbolize=0 err)" = 1 -a "$(wc -l <err)" = 1
# gdb's frames are none of a sanitizer.
printf '#0  0x0000000000001234 in main (n=1) at /src/report.cc:9\n#1 0x0000000000001234 in main () at /src/report.cc:9\n#2 0x1 in f () from /lib/x.so\nFixes #3 in 2 places (of 4)\n' >gdb
"$ICFOLD" symbolize --log gdb >filtered 2>err
check log/named/gdb "$(first_line filtered)$(first_line err)" test -z "$(diff gdb filtered)$(cat err)"

# symbols TEST NAME COMMAND...: glibc and strace name functions of the unfolded program.
symbols() {
	local t=$1 n=$2
	shift 2
	"$@" "./$n" trace >own 2>&1
	"$@" "./$n.folded" trace >raw 2>&1
	"$ICFOLD" symbolize --log raw >filtered 2>err || { not_ok "$t" "$(first_line err)"; return; }
	python3 frames.py symbols "$n" <own >own.frames
	python3 frames.py symbols "$n" <raw >raw.frames
	python3 frames.py symbols "$n" <filtered >filtered.frames
	agree "$t" own.frames filtered.frames raw.frames
	# Places: by addr2line, of the call in the unfolded program.
	"$ICFOLD" symbolize --log own 2>err | python3 frames.py symbols "$n" places >own.places
	python3 frames.py symbols "$n" places <filtered >filtered.places
	if [ -s own.places ] && cmp -s own.places filtered.places; then ok "$t/places"; else not_ok "$t/places" "$(diff own.places filtered.places | head -n 4 | tr '\n' '|')"; fi
}
if build named g++ -rdynamic; then
	symbols log/glibc named
	if have strace && strace -k -e trace=getppid true >/dev/null 2>&1; then
		symbols log/strace named strace -k -e trace=getppid
	else
		skip log/strace "no strace -k"
	fi
fi
# Without exported names glibc gives offsets only.
if build plain g++; then
	# The function that was not kept is the one to find.
	who=Late arg='' lower=late
	if [ "$(symbol_value plain.folded _Z6reportI4LateEiPT_)" = "$(symbol_value plain.folded _Z6reportI5EarlyEiPT_)" ] &&
		addr2line -e plain.folded -f "0x$(symbol_value plain.folded _Z6reportI4LateEiPT_)" | grep -q Late; then who=Early arg=x lower=early; fi
	./plain.folded trace $arg >raw
	"$ICFOLD" symbolize --log raw >filtered 2>&1
	want="backtrace_here|int report<$who>\\($who\\*\\)|$lower\\($who\\*\\)|main"
	if [ "$(grep -cE "^\./plain\.folded\(\+0x[0-9a-f]+\) ?\[0x[0-9a-f]+\] ($want).* at .*report\.cc:[0-9]+:[0-9]+$" filtered)" = 4 ]; then
		ok log/offsets
	else
		not_ok log/offsets "$(first_line filtered)"
	fi
	addr2line -e plain.folded -f -C "$(sed -n 's/.*(+\(0x[0-9a-f]*\)).*/\1/p' raw | sed -n 2p)" | first_line /dev/stdin >kept
	if grep -q "report<$who>" kept; then not_ok log/offsets/contrast "addr2line names the function, too: nothing is tested"; else ok log/offsets/contrast; fi

	# Absolute addresses: a load base, or the log's own mappings.
	off() { sed -n 's/.*(+0x\([0-9a-f]*\)).*/\1/p' raw | sed -n "$1"p; }
	base=0x7f0012340000
	for i in 2 3 4; do printf '    @     0x%x  (unknown)\n' $((base + 0x$(off $i))); done >glog
	for i in 2 3 4; do printf '%4d:     0x%x - <unknown>\n' "$i" $((base + 0x$(off $i))); done >rust
	# A path may have "main" in it, too.
	names() { sed 's| at /.*||; s|[^ (]*/||g' "$1" | grep -oE "report<$who>|$lower\\($who|main" | tr '\n' ' '; }
	for form in glog rust; do
		"$ICFOLD" symbolize --log -e plain.folded --base=$base <$form >filtered 2>&1
		if [ "$(names filtered)" = "report<$who> $lower($who main " ]; then ok log/$form/base; else not_ok log/$form/base "$(first_line filtered)"; fi
		"$ICFOLD" symbolize --log -e plain.folded <$form >filtered 2>&1
		if cmp -s $form filtered; then ok log/$form/unknown; else not_ok log/$form/unknown "lines changed though nobody knows where the file was"; fi
	done
	readelf -lW plain.folded | python3 -c '
import re, sys
for l in sys.stdin:
    w = l.split()
    if w and w[0] == "LOAD":
        o, v, n = (int(w[i], 16) for i in (1, 2, 5))
        print(f"{'$((base))' + (v & ~4095):x}-{'$((base))' + ((v + n + 4095) & ~4095):x} r-xp {o & ~4095:08x} fd:01 1234  '"$PWD"'/plain.folded")' >maps
	# Files that are mapped as data are not read.
	sed "s/r-xp/r--p/; s|/[^/]*\$|/rust|" maps | cat - maps glog >mapped
	"$ICFOLD" symbolize --log mapped >filtered 2>err
	if [ "$(names filtered)" = "report<$who> $lower($who main " ] && ! [ -s err ]; then ok log/maps; else not_ok log/maps "$(first_line err) $(first_line filtered)"; fi

	# The kernel's line has one address, which decides nothing.
	printf 'plain[1]: segfault at 8 ip %016x sp 00007ffc0 error 6 in plain.folded[%s,%x+1000] likely on CPU 1\n' $((base + 0x$(off 2))) "$(off 2)" \
		$((base + (0x$(off 2) & ~4095))) >kernel
	"$ICFOLD" symbolize --log kernel >filtered 2>&1
	if grep -qE 'likely on CPU 1 .*\[one of: .*report<'"$who"'>.*\] at .*report\.cc:' filtered; then ok log/kernel; else not_ok log/kernel "$(first_line filtered)"; fi
	printf '#0  0x%x n/a (plain.folded + 0x%s)\n#1  0x%x n/a (plain.folded + 0x%s)\n#2  0x%x n/a (plain.folded + 0x%s)\n' 1 "$(off 2)" 2 "$(off 3)" 3 "$(off 4)" >coredump
	"$ICFOLD" symbolize --log coredump >filtered 2>&1
	if [ "$(names filtered)" = "report<$who> $lower($who main " ]; then ok log/coredump; else not_ok log/coredump "$(first_line filtered)"; fi
	# Names without a directory: beside the file of -e.
	mkdir -p far away && cp plain.folded far/libother && cp plain far/first
	sed 's/plain\.folded/libother/' coredump >bare
	(cd away && "$ICFOLD" symbolize --log -e ../far/first ../bare) >filtered 2>err
	if [ "$(names filtered)" = "report<$who> $lower($who main " ] && ! [ -s err ]; then ok log/beside; else not_ok log/beside "$(first_line filtered) $(first_line err)"; fi
	(cd away && "$ICFOLD" symbolize --log -e ../plain ../bare) >filtered 2>err
	check log/beside/elsewhere "frames of a file that is not there changed" cmp -s bare filtered
	# Another file of that name: the log says which build it was.
	printf '    #0 0x1 (%s/plain.folded+0x%s) (BuildId: 00112233445566778899aabbccddeeff00112233)\n' "$PWD" "$(off 2)" >other
	"$ICFOLD" symbolize --log other >filtered 2>err
	if cmp -s other filtered && grep -q 'another build-id' err; then ok log/build_id; else not_ok log/build_id "$(first_line filtered)"; fi
fi
# --- what stands around a frame -----------------------------------------------------------------------------------------
# Other text stays, and a line of JSON is one afterwards: its string holds the answer.
if [ -s raw ]; then
	at() { printf '0x%x' $((base + 0x$(off "$1"))); }
	esc=$(printf '\033')
	{
		printf 'INFO calling handler @ %s with arg 5 (retry in 10 s), user=bob\n' "$(at 2)"
		printf '%s[31m    @     %s  (unknown)%s[0m rest\n' "$esc" "$(at 3)" "$esc"
		printf '    @     %s  report<>()\n    @     %s  somebody() else\n' "$(at 2)" "$(at 3)"
	} >around
	"$ICFOLD" symbolize --log -e plain.folded --base=$base around >filtered 2>&1
	check log/around/prose "$(first_line filtered)" test "$(head -n 1 filtered)" = "$(head -n 1 around)"
	check log/around/colour "$(sed -n 2p filtered)" bash -c "sed -n 2p filtered | grep -q '(E.*L.*) at .*report\.cc.*$esc\[0m rest\$\|(L.*E.*) at .*report\.cc.*$esc\[0m rest\$\|\*) .*at .*report\.cc.*$esc\[0m rest\$' && ! grep -q unknown filtered"
	check log/around/name "$(sed -n 3p filtered)" bash -c "sed -n 3p filtered | grep 'int report<.*at .*report\.cc:[0-9:]*\$' | grep -vq 'report<>'"
	check log/around/other "$(sed -n 4p filtered)" bash -c "sed -n 4p filtered | grep -q 'at .*report\.cc:[0-9:]* somebody() else\$'"
	{
		sed -n '2,3s|.*|{"log":"&\\n","stream":"stderr","time":"2026-01-01T00:00:00Z"}|p' glog
		sed 's|.*|{"log":"&\\n","stream":"stderr"}|' kernel coredump raw
		sed 's|.*|{"n": 1, "log" : "&\\\\n"}|' raw
		sed 's|.*|{"log":"&\\r\\n","stream":"stderr"}|' rust other
		echo '{"a": "no \" frame +0x12", "b": {"c": "x"}}'
	} >json
	"$ICFOLD" symbolize --log -e plain.folded --base=$base json >filtered 2>/dev/null
	python3 - json filtered >said 2>&1 <<'END'
import json, re, sys
a, b = ([json.loads(l) for l in open(f)] for f in sys.argv[1:3])
assert len(a) == len(b)
n = 0
for x, y in zip(a, b):
    text, now = x.pop("log", ""), y.pop("log", "")
    assert x == y, (x, y)
    tail = re.search(r"[\r\n]*$", text)[0]
    assert now.endswith(tail), (text, now)
    n += "report.cc" in now
assert n >= 10, n
END
	check log/around/json "$(tail -n 1 said)" test ! -s said
	# Two processes write at the same time: no stack is made of both.
	./plain.folded trace >late.raw
	./plain.folded trace x >early.raw
	paste -d '\n' <(sed 's/^/Jan 1 10:00:01.5 host p[11]: /' late.raw) <(sed 's/^/Jan 1 10:00:02.25 host p[22]: /' early.raw) >both
	"$ICFOLD" symbolize --log both >filtered 2>&1
	check log/around/interleaved "$(grep 'report<' filtered | head -n 1)" bash -c '! { grep -F "p[11]" filtered | grep -v "one of" | grep -q "Early"; } && ! { grep -F "p[22]" filtered | grep -v "one of" | grep -q Late; } && grep -q "one of" filtered'
	# A time before each frame makes no difference, nor does a colour.
	awk -v e="$esc" '{ printf "2026-01-01T10:00:%02d.%d web_1 | %s[3%dm[%d.5] %s\n", NR, NR * 7, e, NR % 2, NR, $0 }' late.raw >timed
	"$ICFOLD" symbolize --log timed >filtered 2>&1
	check log/around/times "$(sed -n 3p filtered)" bash -c 'grep -q "late(Late" filtered && ! grep -q "one of" filtered'
	for other in 's/web_1/web_2/' 's/| /&T12 /' 's/| /&[7] /' 's/| /&pid=7 /'; do
		sed "2~2$other" timed >parts
		"$ICFOLD" symbolize --log parts >filtered 2>&1
		check "log/around/$other" "$(sed -n 3p filtered)" grep -q "one of" filtered
	done
	# The kernel tells of other traps in another form.
	sed 's/segfault at 8 ip \([0-9a-f]*\) sp \([0-9a-f]*\) error 6/trap invalid opcode ip:\1 sp:\2 error:0/; s/^/traps: /' kernel >traps
	"$ICFOLD" symbolize --log traps >filtered 2>&1
	check log/around/traps "$(first_line filtered)" grep -qE 'likely on CPU 1 .*\[one of: .*report<'"$who"'>.*\] at .*report\.cc:' filtered
	# The file is not there any more, but the user has it.
	sed 's|^\(.*r-xp.*\)$|\1 (deleted)|' mapped | grep -v 'r--p' >gone
	"$ICFOLD" symbolize --log -e plain.folded gone >filtered 2>err
	check log/around/deleted "$(first_line filtered) $(first_line err)" test "$(names filtered)" = "report<$who> $lower($who main "
	# Any number of words that look like frames.
	awk -v last="$PWD/plain.folded+0x$(off 2)" 'BEGIN { for (i = 0; i < 60000; i++) print "fn" i "+0x1 /nowhere" i "/x+0x2"; print last }' >words
	if have timeout; then
		timeout 20 "$ICFOLD" symbolize --log words >filtered 2>err
		check log/around/words "$(tail -n 1 filtered)" bash -c 'tail -n 1 filtered | grep -q "report\.cc" && cmp -s <(head -n 60000 words) <(head -n 60000 filtered)'
		check log/around/messages "$(wc -l <err) lines" test "$(wc -l <err)" -le 110
	fi
fi
# Programs with fixed addresses: glibc shows addresses alone, strace and systemd show what is not the address as linked.
# placed TEST NAME COMMAND...: the functions and places of late and early, as those of the unfolded program.
placed() {
	local t=$1 n=$2 a f
	shift 2
	for a in '' x; do
		for f in "$n" "$n.folded"; do
			"$@" "./$f" trace $a >raw 2>&1
			"$ICFOLD" symbolize --log raw 2>err | sed -nE 's/^.*\[0x[0-9a-f]+\] (.* at .*report\.cc:[0-9:]+)$/\1/p' >"$f.placed"
		done
		check "$t${a:+-$a}" "$(diff "$n.placed" "$n.folded.placed" | sed -n 2p)" bash -c "grep -q '^${a:+early(Early}${a:-late(Late}' <(sed 's/^early(Early/&x/' '$n.placed') && cmp -s '$n.placed' '$n.folded.placed'"
	done
}
if build fixed g++ -no-pie -fno-pic; then
	placed log/fixed/glibc fixed env
	check log/fixed/glibc/form "$(first_line raw)" grep -qE '^\./fixed\.folded\[0x[0-9a-f]+\]$' raw
	if have strace && strace -k -e trace=getppid true >/dev/null 2>&1; then placed log/fixed/strace fixed strace -k -e trace=getppid; else skip log/fixed/strace "no strace -k"; fi
fi
# shown NAME FORM: the stack of late, which glibc wrote with addresses as linked, in another form.
cat >shown.py <<'EOF2'
import re, subprocess, sys
name, form = sys.argv[1:3]
load = [[int(w[i], 16) for i in (1, 2)] + ["E" in w[6:-1]] for w in map(str.split, subprocess.run(["readelf", "-lW", name], capture_output=True, text=True).stdout.splitlines()) if w and w[0] == "LOAD"]
low, (off, va, _) = load[0][1] & ~4095, next(l for l in load if l[2])
for n, l in enumerate(sys.stdin):
    m = re.match(r"\./" + re.escape(name) + r"(?:\(\+(0x[0-9a-f]+)\))?\[(0x[0-9a-f]+)\]", l)
    if m and n:
        at = int(m[1] or m[2], 16)
        print({"linked": " > %s() [%#x]" % (name, at), "file": " > %s() [%#x]" % (name, at - va + off),
               "systemd": "#%d  0x%016x n/a (%s + %#x)" % (n, at, name, at - low), "module": "at %s+%#x" % (name, at - low), "plain": "at %s+%#x" % (name, at)}[form])
EOF2
printf '.text\n.globl big\nbig:\t.skip 100000, 0x90\n\tret\n' >big.s
# A place as linked is code as a place in the file, too, and the other way round.
for n in wide low; do
	case $n in
	wide) set -- -fuse-ld=lld -pie ;;
	low) set -- -no-pie -fno-pic -Wl,-Ttext-segment=0x10000 ;;
	esac
	build $n g++ "$@" big.s || continue
	for form in linked file systemd module plain; do
		for a in '' x; do
			./$n.folded trace $a | python3 shown.py $n.folded $form >raw
			"$ICFOLD" symbolize --log raw >filtered 2>err
			want='late(Late\*)'
			[ "$a" ] && want='early(Early\*)'
			case $n-$form in
			low-module) check "log/$n-$form$a" "$(first_line filtered)" bash -c '! grep report.cc filtered' ;; # nobody knows
			*) check "log/$n-$form$a" "$(first_line filtered)" bash -c "grep -q '$want at .*report.cc:' filtered && ! grep -q 'one of' filtered" ;;
			esac
		done
	done
done
# The logs of glog and of Rust's std, of stripped programs that are where they were linked: functions alone, as the unfolded program
# says them itself (glog writes no arguments).
# stripped NAME PATTERN ARGUMENT...: NAME.own, NAME.wrong and NAME.filtered, the functions that PATTERN finds after the address.
stripped() {
	local n=$1 pattern=$2
	shift 2
	strip -o "$n.stripped" "$n.folded"
	RUST_BACKTRACE=full "./$n" "$@" >own.log 2>&1
	RUST_BACKTRACE=full "./$n.folded" "$@" >wrong.log 2>&1
	RUST_BACKTRACE=full "./$n.stripped" "$@" >raw.log 2>&1
	"$ICFOLD" symbolize --log -e "$n.folded" --base=0 <raw.log >filtered.log 2>err
	"$ICFOLD" symbolize --log -e "$n.folded" --base=0 <wrong.log >renamed.log 2>>err # with what it has itself
	# A path may have "main" in it, too.
	for f in own wrong filtered; do sed -nE "s| at /.*||; s/^ .*0x[0-9a-f]+ (- )?.*$pattern.*/\\2/p" $f.log >>"$n.$f"; done
	# No other line changes.
	if cmp -s <(grep -vE ' 0x|^ {20}' raw.log) <(grep -vE ' 0x|^ {20}' filtered.log); then ok "log/$n/rest-$#"; else not_ok "log/$n/rest-$#" "other lines changed"; fi
}
if have strip && build glog g++ -no-pie -fno-pic -DGLOG -Wl,--no-as-needed -lglog; then
	for a in '' x; do { stripped glog '\b(early|late|main)\b' crash $a; } 2>/dev/null; done # the shell reports the crashes
	agree log/glog/real glog.own glog.filtered glog.wrong
fi
if have strip && have rustc && rustc --edition 2021 -C opt-level=1 -g -C relocation-model=static -C link-arg=-Wl,--emit-relocs -C link-arg=-no-pie \
	"$FIXTURES/log/report.rs" -o rust >log 2>&1 && "$ICFOLD" -q --icf=all rust -o rust.folded >log 2>&1; then
	# Of a program with symbols, Rust has names itself: the kept functions'.
	cat >same_rust.py <<'EOF2'
import re, sys
own, got = ([re.sub(r"0x[0-9a-f]+", "A", re.sub(r"\(\d+\)", "", l)).split() for l in open(f)] for f in sys.argv[1:3])
bad = [(a, b) for a, b in zip(own, got) if a != b and "[one" not in b]
print(len(got), "lines", bad[:1])
sys.exit(bool(bad) or len(own) != len(got) or len(own) < 20)
EOF2
	wrong=0
	for a in '' x; do
		stripped rust '(report::(report|early|late)(::h[0-9a-f]+)?)' $a
		check "log/rust/named-$a" "$(python3 same_rust.py own.log renamed.log)" python3 same_rust.py own.log renamed.log
		python3 same_rust.py own.log wrong.log >log || wrong=1
	done
	check log/rust/named-contrast "Rust's own names are right: nothing is tested" [ $wrong = 1 ]
	agree log/rust/real rust.own rust.filtered rust.wrong
else
	skip log/rust/real "no rustc: $(first_line log)"
fi
# What is no frame passes through, byte for byte, with or without a last newline.
{
	cat "$ICFOLD"
	printf 'main.f(0x1)\n\t/src/f.go:12 +0x1d\nRIP: 0010:do_it+0x12/0x34\n<main+0x12>\n1+0x2 = 3\n#1 rb(B*) t.cc:4 (t+0x133b)\r\n ip 5 sp '
	printf '#1 0x1 (%.0s' {1..3000}
	printf ')%.0s' {1..30000}
	printf '@ 0x zzz'
} >bytes
"$ICFOLD" symbolize --log <bytes >same 2>err
if cmp -s same bytes; then ok log/bytes; else not_ok log/bytes "$(first_line err)"; fi
# Lines that nearly are frames, in every place: the work for a line is limited, and the next line is read as ever.
python3 -c 'import sys
for s in "#1 0x1 in (", "#1 0x1 in" + " (#1 0x1 in" * 20000 + ")", " ip 1 sp in [", "+0x1", " + 0x1", "@ 0x1 ", "(f)", "(", ")", "#", "1: 0x1 - ", "a+0x" + "f" * 3000 + ")":
    print((s * (250000 // len(s) + 1))[:250000] + ")" * 2000)' >long
if have timeout; then
	cat long raw >in
	timeout 20 "$ICFOLD" symbolize --log <in >filtered 2>err
	rc=$?
	"$ICFOLD" symbolize --log <raw 2>/dev/null | cat long - >want
	if [ $rc = 0 ] && cmp -s want filtered; then ok log/long; else not_ok log/long "status $rc after $(wc -l <filtered) lines"; fi
fi
# An answer comes when the stack ends, not at the end of the input.
if have timeout && [ -s raw ]; then
	if { cat raw; echo end; sleep 5; } | timeout 20 "$ICFOLD" symbolize --log 2>/dev/null | timeout 3 grep -q -m 1 '^end'; then
		ok log/live
	else
		not_ok log/live "nothing until the input ended"
	fi
	# Nor does the last stack of a log that goes on, or what stands before it.
	for want in '^begin' 'report\.cc'; do
		if { echo begin; cat raw; sleep 6; } | timeout 20 "$ICFOLD" symbolize --log 2>/dev/null | timeout 4 grep -q -m 1 "$want"; then
			ok "log/live/$want"
		else
			not_ok "log/live/$want" "nothing until the input ended"
		fi
	done
fi
finish
