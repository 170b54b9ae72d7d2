#!/bin/bash
# readme.sh: what the README and the manual pages show is what happens.  Their commands are run in a clean folder, with an icfold that
# was installed for the test, and the outputs shown are compared.
#
# In the README every block marked `console` is run: "$ COMMAND", then its output, in which a line "..." stands for any number of
# lines.  Addresses and process numbers are not compared; behind the comment "numbers vary" no number is.  In the manual pages the
# literal blocks of the section EXAMPLES are run, with or without "$ ".
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool readme
make_work
INST=$WORK/inst
if ! make -s -C "$ROOT" -o all BUILD="$BUILD" PREFIX="$INST" install >"$WORK/install.log" 2>&1 || ! cp "$ICFOLD" "$INST/bin/icfold"; then
	not_ok readme/install "$(tail -n 1 "$WORK/install.log")"
	finish
fi
unset ICFOLD_OPTIONS MAKEFLAGS CFLAGS CXXFLAGS LDFLAGS CC LD DESTDIR PREFIX DEBUGINFOD_URLS XDG_CONFIG_HOME
mkdir "$WORK/home" "$WORK/stubs"
echo "source $INST/share/icfold/icfold-gdb.py" >"$WORK/home/.gdbinit"
export HOME=$WORK/home PATH=$INST/bin:$WORK/stubs:$PATH ICFOLD="$INST/bin/icfold"

# The outputs shown are those of Debian 12's compiler; another one may make other code of the examples.
compare=yes
[ "$(g++ -dumpversion)" = 12 ] || compare=no
can_trace=no
if have gdb && gdb -nx -batch -ex 'python print(6 * 7)' -ex run /bin/true 2>/dev/null | grep -q 'exited normally'; then can_trace=yes; fi

same_words() { # VARY: standard input without what may differ
	sed -E 's/0x[0-9a-f]+/0xN/g; s/\b([PT]ID) [0-9]+/\1 N/g; s/[[:space:]]+$//' | if [ -n "$1" ]; then sed -E 's/[0-9]+/N/g; s/ +/ /g'; else cat; fi
}
# as_pattern: standard input as a pattern of bash, lines "..." being any text
as_pattern() { sed -E '/^\.\.\.$/!s/[^[:alnum:][:space:]]/\\&/g; s/^\.\.\.$/*/'; }

# step NAME COMMAND VARY: runs COMMAND; its output must be what the file `want` has, unless there is none.
step() {
	local name=$1 command=$2 got want
	case $command in
	*coredumpctl* | *icfold-coredump*)
		skip "$name" "systemd keeps no crash of the example here: $command"
		return
		;;
	*gdb\ * | *--core=*)
		if [ $can_trace = no ]; then
			skip "$name" "gdb runs no programs here: $command"
			return
		fi
		;;
	esac
	for tool in jq cmake ld.lld; do
		case $command in *"${tool#ld.}"*) if ! have $tool; then skip "$name" "no $tool: $command" && return; fi ;; esac
	done
	if ! bash -c "$command" >got 2>log </dev/null && [ "${command%%grep*}" = "$command" ]; then
		not_ok "$name" "status of: $command: $(tail -n 1 log)"
		return
	fi
	if [ ! -s want ] || [ $compare = no ]; then
		ok "$name"
		return
	fi
	got=$(same_words "$3" <got)$'\n' want=$(same_words "$3" <want | as_pattern)$'\n'
	# A "..." at the end or the beginning may stand for nothing.
	want=${want//$'\n*\n'/$'\n*'}
	want=${want/#$'*\n'/*}
	# shellcheck disable=SC2053
	if [[ $got == $want ]]; then
		ok "$name"
	else
		not_ok "$name" "$command: prints $(tr '\n' '|' <got | cut -c 1-300)"
	fi
}

# run_block NAME FILE VARY: FILE's lines are commands, each with what it prints below it.
run_block() {
	local name=$1 n=0 line command='' block=$2 vary=$3
	: >want
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'$ '*)
			if [ -n "$command" ]; then step "$name.$((++n))" "$command" "$vary"; fi
			command=${line#'$ '}
			: >want
			;;
		*) printf '%s\n' "$line" >>want ;;
		esac
	done <"$block"
	if [ -n "$command" ]; then step "$name.$((++n))" "$command" "$vary"; fi
}

# --- the README
mkdir "$WORK/readme" "$WORK/blocks"
cd "$WORK/readme" || exit 1
cp "$FIXTURES/basket/basket.cc" .
awk -v dir="$WORK/blocks" '
	/^<!-- numbers vary -->$/ { vary = ".vary" }
	/^```console$/ { out = sprintf("%s/%02d%s", dir, ++n, vary); vary = ""; next }
	/^```/ { out = "" }
	out { print >out }' "$ROOT/README.md"
blocks=0
for b in "$WORK"/blocks/*; do
	blocks=$((blocks + 1))
	case $b in *.vary) vary=vary ;; *) vary= ;; esac
	name=${b##*/}
	run_block "readme/${name%.vary}" "$b" "$vary"
done
check readme/blocks "only $blocks" test $blocks -ge 5
missing=$(sed -n '/^```cmake$/,/^```$/p' "$ROOT/README.md" | grep -v '^```' | while read -r line; do grep -qxF "$line" "$ROOT/integration/cmake/CMakeLists.txt" || echo "$line"; done)
check readme/cmake "not in integration/cmake/CMakeLists.txt: $missing" test -z "$missing"
missing=$(sed -n '/^```sh$/,/^```$/p' "$ROOT/README.md" | sed -n 's/^make \([a-z-]*\).*/\1/p' | while read -r t; do grep -q "^$t:" "$ROOT/Makefile" || echo "$t"; done)
check readme/targets "no such target: $missing" test -z "$missing"
check readme/demo "it fails" bash -c '"$1" >demo.log 2>&1 && grep -q "icfold --icf=all .* yes$" demo.log' - "$TESTS/demo.sh"

# --- the examples of the manual pages
for s in perf stackcollapse-perf.pl flamegraph.pl xdg-open; do
	printf '#!/bin/sh\n[ -t 0 ] || cat\n' >"$WORK/stubs/$s"
	chmod +x "$WORK/stubs/$s"
done
mkdir "$WORK/man"
cd "$WORK/man" || exit 1
cp "$FIXTURES"/basket/* .
# What icfold-inlines.1 shows is of lines 3, 9 and 18.
cat >prog.c <<'END'
extern volatile int sink;

static inline __attribute__((always_inline)) void inner(int n)
{
	sink = n;
}
static inline __attribute__((always_inline)) void middle(int n)
{
	inner(n + 1);
	sink = 3;
}
__attribute__((noinline)) void outer(int n)
{
	middle(n * 5);
}
int main(int argc, char **argv)
{
	inner(argc);
	outer(argc);
	return 0;
}
volatile int sink;
END
if ! { g++ -O2 -g -c basket.cc && g++ -Wl,--emit-relocs basket.o -o prog.full && cp prog.full prog.released; }; then
	not_ok readme/man "the example does not build"
	finish
fi
printf '0x1190\n0x1200\n' >addresses
printf 'prog: basket.o\n\tg++ $^ -o $@\n' >Makefile
printf '#!/bin/sh\nexport "$1"\n$CC -O2 basket.cc -lstdc++ -o conf\n' >configure
chmod +x configure
printf 'cmake_minimum_required(VERSION 3.21)\nproject(prog C)\nadd_executable(prog prog.c)\n' >CMakeLists.txt
[ $can_trace = yes ] && icfold prog.full -o prog && gdb -nx -batch -ex run -ex 'generate-core-file core' prog >/dev/null 2>&1
for m in "$ROOT"/man/*.[157]; do
	name=${m##*/}
	awk '/^\.Sh / { on = /EXAMPLES/; next }
		!on { next }
		/^\.Dl / { sub(/^\.Dl /, ""); print "$ " $0; next }
		/^\.Bd/ { lit = 1; first = 1; shown = 0; next }
		/^\.Ed/ { lit = 0; next }
		lit { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub(/\\-/, "-"); if (first) shown = /^\$ /; first = 0; print (shown ? "" : "$ ") $0 }' "$m" |
		sed "s#/usr/local/libexec#$INST/libexec#g; s#/tmp/prog#prog.tmp#" >"$WORK/examples"
	[ -s "$WORK/examples" ] || continue
	# Each page finds the programs that it speaks of: prog is folded where it says so, and else about to be.
	case $name in
	icfold-verify.1 | icfold-audit.1) cp prog.full prog ;;
	icfold-profile.1)
		icfold prog.full -o prog
		readelf -hW prog | sed -nE 's/^ *Entry point address: *0x([0-9a-f]*)$/ \1 0x\1\/0x\1\/P\/-\/-\/0 /p' >perf.txt
		;;
	icfold-inlines.1) gcc -O2 -g prog.c -o prog ;;
	*) icfold prog.full -o prog ;;
	esac
	run_block "readme/${name%.[157]}" "$WORK/examples" ""
done
if have readelf; then
	check readme/wrapper "what ./configure compiled was not folded" bash -c 'readelf -SW conf | grep -q debug_icfold'
fi
finish
