#!/bin/bash
# names.sh: files whose names are attacks on what shows them.  They start no process and make no file, as strace and the folder tell;
# nothing printed has a byte that a terminal acts on.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite names python3
PLUGIN=$ROOT/gdb/icfold-gdb.py
export DEBUGINFOD_URLS=

# A program in which all names can be replaced: letters Q stand for what follows.
cat >prog.cc <<'EOF2'
#define K __attribute__((noinline, noclone))
#define Q8 "QQQQQQQQ"
#define Q Q8 Q8 Q8 Q8 Q8 Q8 Q8 Q8 Q8 Q8
volatile int sink;
int leaf_a(int) __asm__("_Z2fAv" Q);
int leaf_b(int) __asm__("_Z2fBv" Q);
K int leaf_a(int x) { sink += x; return sink * 3 + 1; }
K int leaf_b(int x) { sink += x; return sink * 3 + 1; }
int main(int c, char **) { int r = leaf_a(c); sink += r; return (leaf_b(r) + sink) & 0; }
EOF2
if ! g++ -g -O1 -ffunction-sections -Wl,--emit-relocs -Wl,--build-id prog.cc -o prog >log 2>&1; then
	not_ok names/build "$(first_line log)"
	finish
fi
# hostile KIND: prog.KIND, and prog.KIND.f made of it
hostile() {
	python3 "$TESTS/mutate/names.py" rename prog "prog.$1" _Z2fAv "$1" && python3 "$TESTS/mutate/names.py" rename "prog.$1" "prog.$1" _Z2fBv "$1" &&
		"$ICFOLD" -q "prog.$1" -o "prog.$1.f" >log 2>&1 || not_ok "names/$1/fold" "$(first_line log)"
}
# nothing_ran NAME: the names did nothing.
nothing_ran() {
	check "$1" "a name has made $(find . -name 'pwned*' | tr '\n' ' ')" [ -z "$(find . -name 'pwned*')" ]
	find . -name 'pwned*' -exec rm {} +
}

# --- names of files ---------------------------------------------------------------------------------------------------------
# No report replaces the file that it is about, however its name is spelled.
mkdir -p sub
ln -sf ../prog sub/link
bad=
for out in prog ./prog sub/../prog "$PWD/prog" sub/link; do
	cp prog kept
	"$ICFOLD" audit --html="$out" prog >log 2>&1
	rc=$?
	if [ $rc = 0 ] || ! cmp -s prog kept; then
		bad="$bad --html=$out: status $rc $(cmp prog kept 2>&1)"
		cp kept prog
	fi
done
check names/audit-html "$bad" [ -z "$bad" ]
objcopy --only-keep-debug prog apart.debug && objcopy --strip-all --add-gnu-debuglink=apart.debug prog apart && cp apart.debug kept
"$ICFOLD" audit --html=apart.debug apart >log 2>&1
check names/audit-html-debug "replaced the debug file" cmp -s apart.debug kept
"$ICFOLD" audit --html=page.html prog >log 2>&1
check names/audit-html-page "$(first_line log)" [ -s page.html ]
for other in --map=./new --depfile=sub/../new --print-icf-sections="$PWD/new"; do
	rm -f new
	"$ICFOLD" -q "$other" prog -o new >log 2>&1
	check "names/twice${other%%=*}" "two files in one: $(first_line log)" grep -q 'is asked for as two different files' log
done
# A folder with a space in its name, as a shell would split it.
if make -s -C "$ROOT" install BUILD="$BUILD" DESTDIR="$WORK/a b;touch pwned;" PREFIX=/p GDBINIT_DIR=/p/gdb >log 2>&1; then
	check names/destdir "$(find . -name icfold | head -n 1)" [ -x "a b;touch pwned;/p/bin/icfold" ]
	nothing_ran names/destdir/shell
else
	not_ok names/destdir "$(first_line log)"
fi
# Files of names and options are not written over, however they are spelled.
echo leaf >list
echo --icf=all >args
for out in list ./list sub/../args; do
	for how in "-o $out" "-o new --map=$out" "-o new --depfile=$out" "-o new --print-icf-sections=$out" "-o new --debug-output=$out"; do
		# shellcheck disable=SC2086
		"$ICFOLD" -q @args --keep-unique-file=list prog $how >log 2>&1
		rc=$?
		check "names/list/${how// /_}" "status $rc: $(first_line log)" eval "[ $rc = 2 ] && grep -q 'holds arguments or names' log && [ \$(cat list args | wc -c) = 15 ]"
	done
done
# A debug file that was found is not overwritten either.
objcopy --only-keep-debug prog found.debug && objcopy -g --add-gnu-debuglink=found.debug prog found && cp found.debug kept
for how in "found -o found.out --debug-output=found.out.debug --map=sub/../found.debug" "found -o found.out --map=found.debug" "found -o found.debug" \
	"symbols --format=breakpad found -o found.debug" "symbols --format=breakpad --debug-file=found.debug -o found.debug found" "audit --html=found.debug found" \
	"audit --html=found.debug found prog" "audit --rows=found.debug found prog"; do
	# shellcheck disable=SC2086
	"$ICFOLD" $how >log 2>&1
	rc=$?
	check "names/over-debug-file ${how//\//_}" "status $rc: $(first_line log)" eval "[ $rc = 2 ] && grep -q 'debug file' log && cmp -s kept found.debug && [ ! -e found.out ]"
done
# Nor what a report of many files is about: files, archives, what is below a folder, what a list names, and the list.
mkdir many && cp prog many/prog && (cd many && tar cf inner.tar prog) && cp many/inner.tar whole.tar && printf '%s\n' whole.tar prog >names
tar cf before.tar many whole.tar names prog
for option in --html --rows; do
	for how in "many/prog many" "many/inner.tar many" "whole.tar whole.tar" "whole.tar --files-from=names" "names --files-from=names" "prog --files-from=names" "prog prog many/prog"; do
		# shellcheck disable=SC2086
		"$ICFOLD" audit $option=$how >log 2>&1
		rc=$?
		check "names/over-input $option ${how//\//_}" "status $rc: $(first_line log)" eval "[ $rc = 2 ] && grep -q 'cannot be the' log && tar df before.tar"
	done
done
# A depfile has no name that make would run or misread; make and ninja read all other names as the file.
mkdir dep
# shellcheck disable=SC2016
for name in 'a;touch pwned' 'a!=touch${IFS}pwned' 'SHELL=touch' 'a|b' $'a\ntouch pwned' 'a b' 'a#b' 'a:b' 'a$(touch pwned)' 'a`touch pwned`' 'a$b\ c' 'a%b' 'a&b'; do
	cp prog "dep/$name"
	refused=no
	case $name in *[\;=\|$'\n']*) refused=yes ;; esac
	(cd dep && "$ICFOLD" -q "$name" -o out --depfile=out.d) >log 2>&1
	rc=$?
	check "names/depfile/${name//$'\n'/?}" "status $rc: $(first_line log)" eval "[ $rc = $([ $refused = yes ] && echo 2 || echo 0) ]"
	(cd dep && "$ICFOLD" -q ../prog -o "$name" --depfile=out.d) >log 2>&1
	rc=$?
	check "names/depfile/${name//$'\n'/?}/target" "status $rc: $(first_line log)" eval "[ $rc = $([ $refused = yes ] && echo 2 || echo 0) ]"
	if [ $refused = no ]; then
		(cd dep && "$ICFOLD" -q "$name" -o out --depfile=out.d) >log 2>&1
		printf 'all: out\nout:\n\t@echo made\ninclude out.d\n' >dep/Makefile
		printf 'rule r\n command = echo made\n depfile = out.d\nbuild out: r\n' >dep/build.ninja
		have make && env -u MAKEFLAGS make -C dep --no-print-directory >log 2>&1
		# A(B) is a member of an archive to make, whatever is before it.
		case $name in *\(*) ;; *) ! have make || check "names/depfile/$name/make" "$(first_line log)" grep -q 'Nothing to be done' log ;; esac
		have ninja && ninja -C dep -d explain >log 2>&1
	fi
	nothing_ran "names/depfile/${name//$'\n'/?}/ran"
	rm -rf dep && mkdir dep
done
# A core names files: only regular ones are opened, and icfold waits for none.
mkdir -p coreQQQQQQQQ && cp prog coreQQQQQQQQ/prog && printf 'int main(void) { __builtin_trap(); }\n' >trap.c && gcc -g trap.c -o coreQQQQQQQQ/prog
if have gdb && gdb -nx -batch -iex 'set debuginfod enabled off' -ex run -ex 'gcore core' coreQQQQQQQQ/prog >log 2>&1 && [ -s core ]; then
	mkdir -p coreFFFFFFFF coreDDDDDDDD
	mkfifo coreFFFFFFFF/prog
	ln -s /dev/tty coreDDDDDDDD/prog
	for kind in FFFFFFFF DDDDDDDD; do
		sed "s#coreQQQQQQQQ/prog#core$kind/prog#g" core >core.$kind
		: >trace
		# shellcheck disable=SC2046
		timeout 300 $(have strace && echo strace -f -o trace) "$ICFOLD" symbolize --core=core.$kind >log 2>&1 || [ $? != 124 ] || not_ok "names/core/$kind" "waits"
		check "names/core/$kind" "opened: $(grep "core$kind/prog" trace | head -n 1)" bash -c "! grep 'core$kind/prog' trace | grep -v O_PATH | grep -q 'open.* = [0-9]'"
	done
	# Names of the same length in the core's notes.
	# shellcheck disable=SC2016,SC2089
	for name in $'\e]0;p\a\n#' $'\n#0 \xff\xc2\x9b' '$(id)`id' '"\</scri'; do
		python3 -c 'import os, sys; d = open("core", "rb").read(); open("core.named", "wb").write(d.replace(b"QQQQQQQQ", os.fsencode(sys.argv[1])))' "$name"
		for how in --verbose --pretty-print --output-style=GNU --sysroot=. "--sysroot=$name" --exe=coreQQQQQQQQ/prog; do
			"$ICFOLD" symbolize "$how" --core=core.named >text.core 2>&1
			check "names/core/note/${how%%[=$]*}" "$(python3 "$TESTS/mutate/names.py" clean text.core)" python3 "$TESTS/mutate/names.py" clean text.core
		done
		"$ICFOLD" symbolize --json --core=core.named >json.core 2>text.core
		check "names/core/note/json" "$(python3 "$TESTS/mutate/names.py" json json.core) $(python3 "$TESTS/mutate/names.py" clean json.core text.core)" \
			python3 "$TESTS/mutate/names.py" json,clean json.core text.core
	done
	nothing_ran names/core/note/ran
else
	skip names/core "gdb makes no core here"
fi

# --- gdb --------------------------------------------------------------------------------------------------------------------
if have gdb && gdb -nx -batch -ex 'python print(6 * 7)' -ex run /bin/true 2>/dev/null | grep -q 'exited normally'; then
	for kind in newline escape quote; do
		hostile $kind
		timeout 300 gdb -nx -batch -iex 'set debuginfod enabled off' -iex "source $PLUGIN" -ex 'break 8' -ex run \
			-ex 'python import pathlib' \
			-ex 'python pathlib.Path("shown").write_bytes(gdb.execute("bt", to_string=True).encode("utf-8", "surrogateescape"))' -ex up -ex down -ex 'info frame' prog.$kind.f >log 2>&1 </dev/null
		nothing_ran names/gdb/$kind
		check names/gdb/$kind/bt "$(first_line shown)" grep -q '^#0 .* at .*prog.cc:7' shown
		check names/gdb/$kind/clean "control characters" python3 "$TESTS/mutate/names.py" clean shown
		check names/gdb/$kind/frames "$(grep -m1 -A1 'Python Exception' log | tr '\n' ' ')" [ "$(grep -c 'Python Exception' log)" = 0 ]
		mv shown shown.gdb
	done
	# The plug-in starts no program of the folder that gdb is in.
	mkdir -p here
	printf '#!/bin/sh\ntouch ../pwned pwned\n' >here/icfold
	chmod +x here/icfold
	cp "$PLUGIN" plugin.py
	for path in ":$PATH" "$PATH:" ".:$PATH" "/usr/bin::/bin"; do
		(cd here && env -u ICFOLD PATH="$path" gdb -nx -batch -iex 'source ../plugin.py' -ex 'break 8' -ex run -ex bt ../prog.newline.f >../log 2>&1 </dev/null)
	done
	nothing_ran names/gdb/path
else
	skip names/gdb "no gdb that runs programs"
fi
# --- every command ----------------------------------------------------------------------------------------------------------
# NAMES=full: each kind of name by itself, too.
mkdir all
[ "${NAMES:-quick}" = full ] && only='.*'
V=1 python3 "$TESTS/mutate/names_all.py" --tool "$ICFOLD" --work "$WORK/all" --jobs "$JOBS" ${only:+--only "$only"} || failures=1
nothing_ran names/all/nothing-made
# Names of 1 MB in gdb, made of what the plug-in takes off their ends: each command takes a moment, not the square of the name.
cat >long.gdb <<'EOF2'
set width 0
python
import time
gdb.execute("rbreak ^f[ab]", to_string=True)
gdb.execute("run", to_string=True)
for c in ("bt", "bt -full", "frame", "up", "down", "info frame", "p $_icfold_name()", "continue"):
    before = time.process_time()
    shown = gdb.execute(c, to_string=True)
    took = time.process_time() - before
    print("%s %s: %.1f s, %d bytes" % ("long" if took > 1 else "fine", c, took, len(shown)))
gdb.execute("kill", to_string=True)
end
EOF2
if have gdb && [ -s all/long ] && [ -f shown.gdb ]; then
	for text in ' const' .isra.0; do
		python3 -c 'import re, sys; d = open("all/long", "rb").read(); open("big", "wb").write(
			re.sub(rb"(f[ab]|in)Q{9999,}", lambda m: m[1] + (sys.argv[1].encode() * (1 << 18))[: len(m[0]) - 2], d))' "$text" && chmod +x big
		"$ICFOLD" -q --allow-growth big -o big.f >log 2>&1 || not_ok "names/gdb/1 MB/fold" "$(first_line log)"
		timeout 300 gdb -nx -batch -iex 'set debuginfod enabled off' -iex "source $PLUGIN" -x long.gdb big.f 2>log </dev/null | grep -aE "^(long|fine) " >spent
		check "names/gdb/1 MB/${text// /}" "$(grep -m1 ^long spent) $(grep -a -m1 Exception log)" [ "$(grep -c ^fine spent):$(grep -c ^long spent):$(grep -ac Exception log)" = 8:0:0 ]
	done
fi
finish
