#!/bin/bash
# gdb.sh: with gdb/icfold-gdb.py, gdb shows of a folded program the stacks that plain gdb shows of the unfolded one: names, files and
# lines, in live programs and core files, by bt, frame, up, down and info frame.  In programs without tables it changes nothing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite gdb gdb
PLUGIN=$ROOT/gdb/icfold-gdb.py
export DEBUGINFOD_URLS=
if ! can_trace; then
	skip gdb "it does not run programs here"
	finish
fi
# with / without PROGRAM...: gdb that has the plug-in, and that has not.
with() { timeout 400 gdb -nx -batch -iex 'set debuginfod enabled off' -iex "source $PLUGIN" "$@" 2>&1 </dev/null; }
without() { timeout 400 gdb -nx -batch -iex 'set debuginfod enabled off' "$@" 2>&1 </dev/null; }
# Frames that gdb makes up from tail calls are on no real stack, and folding changes which ones it can tell.
cat >stacks.py <<'EOF2'
import gdb, os, re
def show(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error as e:
        return "error: %s\n" % e
def write(text, tails=()):
    for l in text.splitlines():
        m = re.match(r"#(\d+) +(?:0x[0-9a-f]+ in )?(.*)", l)
        l = m.group(2) if m else l
        # If only the library is known, gdb says "from", but frame filters print "at".
        l = re.sub(r" \(.*\) (at|from) ", " at ", l)
        l = re.sub(r"^<signal handler called>.*", "<signal handler called>", l)
        if m and int(m.group(1)) in tails:
            l = "tail " + re.sub(" .*", "", l)
        out.write(re.sub(r" \(.*\)$", "", l) + "\n")
for c in ("pagination off", "width 0", "confirm off", "print frame-arguments none", "breakpoint pending on"):
    gdb.execute("set " + c)
for b in os.environ.get("BREAKS", "").split():
    gdb.execute("break " + b, to_string=True)
gdb.execute("handle SIGUSR1 nostop noprint pass", to_string=True)
out = open(os.environ["OUT"], "w")
if "CORE" not in os.environ or os.environ.get("LIVE"):
    show("run %s > /dev/null" % os.environ.get("ARGS", ""))
else:
    gdb.execute("core-file " + os.environ["CORE"], to_string=True)
while gdb.selected_inferior().pid:
    tails, frame = set(), gdb.newest_frame()
    while frame:
        if frame.type() == gdb.TAILCALL_FRAME:
            tails.add(frame.level())
        frame = frame.older()
    write(show("bt"), tails)
    out.write("\n")
    if os.environ.get("LIVE"):
        show("gcore " + os.environ["CORE"])
        show("kill")
    if "CORE" in os.environ:
        break
    show("continue")
out.close()
EOF2
# stacks OUT PROGRAM [PLUGIN?]: variables BREAKS ARGS CORE LIVE say which.
stacks() {
	OUT=$1 "$3" -x stacks.py "$2" >"$1.log"
	[ -s "$1" ] || echo "no stack: $(tail -n 1 "$1.log")" >"$1"
	grep -E 'Python Exception|^warning: icfold|Traceback' "$1.log" | head -n 3 >>"$1"
}
# same NAME WANT HAVE [SED]: the same stacks; what SED drops, on both sides, may differ.
same() {
	sed -E "/^tail /d; ${4:-}" "$2" >"$2.cmp"
	sed -E "/^tail /d; /^icfold: frame 0/d; ${4:-}" "$3" >"$3.cmp"
	if [ "$(grep -c . "$2.cmp")" -lt 3 ]; then not_ok "$1" "no stacks: $(head -n 1 "$2")"; return; fi
	if cmp -s "$2.cmp" "$3.cmp"; then ok "$1 ($(grep -c '^$' "$2.cmp") stacks)"; else not_ok "$1" "$(diff "$2.cmp" "$3.cmp" | grep '^[<>]' | head -n 4 | tr '\n' ' ')"; fi
}
# build NAME SOURCE FLAGS...: NAME and NAME.folded
build() {
	local n=$1 src=$2
	shift 2
	if ! "$@" -g -ffunction-sections -Wl,--emit-relocs,--build-id -w "$src" -o "$n" >log 2>&1; then
		skip "gdb/$n" "does not build: $(first_line log)"
		return 1
	fi
	"$ICFOLD" -q "$n" -o "$n.folded" >log 2>&1 && return
	not_ok "gdb/$n" "folding: $(first_line log)"
	return 1
}

# --- direct calls, merged callers, mutual recursion, tail calls -----------------------------------------------------------
leaves="leaf_a leaf_b leaf_c leaf_d"
for form in "gcc -O1 -no-pie" "gcc -O2 -fPIE -pie" "clang -O0 -fPIE -pie" "clang -O2 -no-pie"; do
	n=chains$(tr -d ' ' <<<"$form")
	have "${form%% *}" || { skip "gdb/$n" "no ${form%% *}"; continue; }
	# shellcheck disable=SC2086
	build "$n" "$FIXTURES/calls_gcc/chains.c" $form || continue
	BREAKS=$leaves stacks "$n.want" "$n" without
	BREAKS=$leaves stacks "$n.have" "$n.folded" with
	# Nothing says which function jump_either has jumped to.
	case $form in *-O2*)
		check "gdb/$n/undecided" "$(grep 'one of' "$n.have" | head -n 2)" [ "$(grep -cE '^leaf_. \[one of: leaf_c, leaf_d\] at .*chains.c:1[0-3]$' "$n.have"):$(grep -c 'one of' "$n.have")" = 1:1 ]
		either=$(awk '{ if ($0 ~ /^use_either/) print NR - 1 }' <(sed '/^tail /d' "$n.have"))
		drop="${either:-0}s/.*/LEAF/"
		sed -i '/^tail /d' "$n.want" "$n.have"
		;;
	*) drop= ;;
	esac
	same "gdb/$n" "$n.want" "$n.have" "$drop"
	# The tail calls that gdb finds have the right names.
	check "gdb/$n/tail" "a name that the unfolded program has not" [ -z "$(grep '^tail ' "$n.have" | sort -u | grep -vxFf <(grep '^tail ' "$n.want"))" ]
done
n=chainsgcc-O1-no-pie
if [ -f $n.folded ]; then
	# up, down and frame.  The breakpoint stops in the shared body only at calls of leaf_b.
	cat >moves <<'EOF2'
run
continue
frame
frame 1
info frame
frame 2
frame 3
info frame
info frame level 2
frame 0
up
up 2
down
down 5
up 1000
python
for c in ("up", "frame 1000", "frame bad(", "up bad("):
    try:
        gdb.execute(c)
    except gdb.error as e:
        print("error: %s" % e)
end
frame function main
frame level 1
frame apply 1 -q print 6 * 7
down 1
continue
bt 2
where 1
bt -2
EOF2
	moves() { sed -E '/^Breakpoint/{N;d}; s/^(#[0-9]+ +)(0x[0-9a-f]+ in )?/\1/; s/ \(.*\) at / at /; s/ (rip|rsp|rbp|rbx) at .*|0x[0-9a-f]+//g; / shares the code of |^\[|process|args: |source language|Locals at|Saved reg/d'; }
	without -ex 'break leaf_b' -x moves $n | moves >moves.want
	with -ex 'break *&leaf_b if $_streq($_icfold_name(), "leaf_b")' -x moves $n.folded | moves >moves.have
	same gdb/moves moves.want moves.have
	# gdb's own view, on demand.
	out=$(with -ex 'break *&leaf_b' -ex run -ex 'continue 2' -ex bt -ex 'disable frame-filter progspace icfold' -ex bt -ex up $n.folded |
		grep -oE '^#[01] .* (leaf|middle)_.|icfold: frame 0 is leaf_b' | sed 's/ .* / /' | tail -n 6 | tr '\n' ' ')
	kept=$(without -ex 'break *&leaf_b' -ex run -ex 'continue 2' -ex bt -ex up $n.folded | grep -oE '^#[01] .* (leaf|middle)_.' | sed 's/ .* / /' | tr '\n' ' ')
	check gdb/disable "$out" [ "$out" = "icfold: leaf_b #0 leaf_b #1 middle_b $kept" ]
	# A core file, from a process stopped in the third call.
	with -ex 'break *&leaf_b' -ex run -ex 'continue 2' -ex "gcore $n.core" -ex kill $n.folded >log
	out=$(with -ex bt $n.folded $n.core | grep -oE '^#[0-9] .* (leaf|middle|outer)_.|in main' | sed 's/ .* / /; 1d' | tr '\n' ' ')
	check gdb/core "$out" [ "$out" = '#0 leaf_b #1 middle_b #2 outer_b in main ' ]
	# The tables, and all names, in a separate debug file: beside the program, and in a folder of debug files by build-id.
	mkdir -p dbg apart
	objcopy --only-keep-debug $n.folded apart/prog.debug && objcopy --strip-all --add-gnu-debuglink=apart/prog.debug $n.folded apart/prog
	id=$(readelf -n $n.folded | awk '/Build ID/ { print $3 }')
	mkdir -p "dbg/.build-id/${id:0:2}" bare
	cp apart/prog.debug "dbg/.build-id/${id:0:2}/${id:2}.debug"
	objcopy --strip-all $n.folded bare/prog
	for d in apart bare; do
		out=$(with -ex "set debug-file-directory $WORK/dbg" -ex "file $d/prog" -ex 'break *&leaf_b' -ex run -ex 'continue 2' -ex bt | grep -oE '^#[0-9] .* (leaf|middle|outer)_. .*:[0-9]+$' | sed -E 's/ .* ([a-z]*_.) .*:/ \1 /' | tail -n 3 | tr '\n' ' ')
		check "gdb/$d" "$out" [ "$out" = '#0 leaf_b 11 #1 middle_b 18 #2 outer_b 22 ' ]
	done
fi

# --- a program without tables ---------------------------------------------------------------------------------------------
if [ -f $n ]; then
	for x in 'bt' 'bt full' 'up' 'frame 1' 'info frame' 'info frame-filter' 'help up' 'help frame'; do echo "$x"; done >commands
	{ printf 'break leaf_b\nrun\n'; cat commands; } >script
	# Numbers of processes differ between runs of gdb.
	with -x script $n | grep -v '^\[' >with.txt
	without -x script $n | grep -v '^\[' >without.txt
	check gdb/untouched "$(diff with.txt without.txt | head -n 4)" cmp -s with.txt without.txt
	out=$(with -ex bt -ex up -ex frame -ex 'info frame' $n.folded | sort -u)
	check gdb/no-stack "$out" [ "$out" = "$(without -ex bt -ex up -ex frame -ex 'info frame' $n.folded | sort -u)" ]
	# Without the symbolizer the plug-in says so once, and frames are gdb's own.
	cp "$PLUGIN" alone.py
	if have icfold; then
		skip gdb/no-program "there is one in the way"
	else
		out=$(unset ICFOLD && PLUGIN=alone.py with -ex 'break *&leaf_b' -ex run -ex bt -ex up $n.folded | grep -cE 'warning: icfold: no program|^#1 .* middle_')
		check gdb/no-program "$out lines" [ "$out" = 3 ]
	fi
fi

# --- virtual calls, templates, inlined calls, signals: a crash ------------------------------------------------------------
for form in "g++ -O0 -fPIE -pie" "g++ -O2 -no-pie" "clang++ -O1 -fPIE -pie"; do
	n=crash$(tr -d ' ' <<<"$form")
	have "${form%% *}" || { skip "gdb/$n" "no ${form%% *}"; continue; }
	# shellcheck disable=SC2086
	build "$n" "$FIXTURES/virtgdb/crash.cc" $form || continue
	for how in 1 2 3; do
		ARGS=$how CORE=$n.core1 LIVE=1 stacks "$n.$how.want" "$n" without
		ARGS=$how CORE=$n.core LIVE=1 stacks "$n.$how.have" "$n.folded" with
		same "gdb/$n/$how" "$n.$how.want" "$n.$how.have"
		[ $how = 2 ] || continue
		# gdb cannot dump programs under qemu, nor place those without a fixed address in the cores that qemu makes.
		if [ -n "${TARGET:-}" ]; then
			case $form in *-no-pie) core_of "$n.core" "$WORK/$n.folded" $how ;; *) continue ;; esac
		fi
		CORE=$n.core stacks "$n.core.have" "$n.folded" with
		same "gdb/$n/core" "$n.$how.want" "$n.core.have"
	done
	rm -f "$n".core "$n".core1
	# The function that was called has other calls inlined than the one that was kept.
	case $form in *-O1*)
		for p in "$n" "$n.folded"; do
			w=with && [ "$p" = "$n" ] && w=without
			BREAKS="crash.cc:13 crash.cc:14" stacks "$p.inlines" "$p" $w
		done
		same "gdb/$n/inlines" "$n.inlines" "$n.folded.inlines" 's/^\(anonymous namespace\)::mix/mix/'
		;;
	esac
done

# --- calls inlined into an undecided function -----------------------------------------------------------------------------
# They are the kept function's, and marked as such, as the function itself is.
if build inlined "$FIXTURES/virtgdb/inlined.c" gcc -O1 && "$ICFOLD" -q --icf=all --allow-growth inlined -o inlined.folded >log 2>&1; then
	with -ex 'break stop' -ex run -ex 'bt' -ex continue -ex bt -ex continue -ex bt -ex 'up' -ex 'info frame' -ex 'print $_icfold_name()' -ex up \
		inlined.folded 2>&1 | sed -E 's/0x[0-9a-f]+/0x/; s/ \((x=[^)]*)?\)//' >log
	both='(high_a, high_b|high_b, high_a)' # the kept one comes first
	marks="\[inlined into one of: $both\]"
	out=$(grep -E '^#[12] ' log | tr '\n' '|')
	check gdb/inlined/decided "$out" [ "$(grep -cE '^#1 +0x in low_a at |^#2 +high_a at ' log):$(grep -cE '^#1 +0x in low_b at |^#2 +high_b at ' log)" = 2:2 ]
	check gdb/inlined/undecided "$out" [ "$(grep -cE "^#1 +0x in low_. $marks at .*inlined.c:[34]\$" log):$(grep -cE "^#2 +high_. \[one of: $both\] at .*inlined.c:[56]\$" log)" = 2:2 ]
	check gdb/inlined/frame "$(grep ' = ' log | tr '\n' '|')" [ "$(grep -cE "^ [re]?[ip][pc] = 0x in low_. $marks |^\\\$1 = \"low_. $marks\"\$" log)" = 2 ]
else
	not_ok gdb/inlined "$(first_line log)"
fi

# --- a folded library -------------------------------------------------------------------------------------------------------
echo 'int lib_main(int, char **); int main(int c, char **v) { return lib_main(c, v); }' >host.c
if build libchains.so "$FIXTURES/calls_gcc/chains.c" gcc -O1 -fPIC -shared -fvisibility=hidden -Dmain='__attribute__((visibility("default"))) lib_main' &&
	gcc -g host.c -o host ./libchains.so; then
	BREAKS=$leaves stacks library.want host without
	cp libchains.so.folded libchains.so
	BREAKS=$leaves stacks library.have host with
	same gdb/library library.want library.have
fi

# --- a library without debug information ------------------------------------------------------------------------------------
# The library's function ends with a call that does not return.  So the return address lies behind the function, where no symbol is.
cat >quit.s <<'EOF2'
	.globl quit
	.type quit, @function
quit:	.cfi_startproc
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call abort@PLT
	.cfi_endproc
	.size quit, . - quit
	.skip 64, 0xcc
	.section .note.GNU-stack, "", @progbits
EOF2
cat >quitter.c <<'EOF2'
void quit(void);
volatile int sink;
__attribute__((noinline, noclone)) int apple(int x) { sink = x; quit(); return sink + 1; }
__attribute__((noinline, noclone)) int pear(int x) { sink = x; quit(); return sink + 1; }
int main(int c, char **v) { (void)v; return (c > 1 ? apple(c) : pear(c)) + sink; }
EOF2
if [ "$MACHINE" != x86_64 ]; then
	skip gdb/noreturn "the library is in x86-64 assembler"
elif gcc -shared -s quit.s -o libquit.so && build quitter quitter.c gcc -O1 -Wl,--no-as-needed ./libquit.so; then
	BREAKS=abort stacks quitter.want quitter without
	BREAKS=abort stacks quitter.have quitter.folded with
	check gdb/noreturn "$(tr '\n' ' ' <quitter.want)" grep -q '^quit at ' quitter.want
	same gdb/noreturn/names quitter.want quitter.have
fi

# --- a deep stack -----------------------------------------------------------------------------------------------------------
cat >deep.c <<'EOF2'
#include <stdlib.h>
volatile int sink;
#define K __attribute__((noinline, noclone))
K int leaf_a(int x) { sink += x; return sink * 3 + 1; }
K int leaf_b(int x) { sink += x; return sink * 3 + 1; }
#define PAIR(s) K int pong_##s(int x); \
	K int ping_##s(int x) { if (x <= 0) return leaf_##s(x); int r = pong_##s(x - 1); sink += r; return r + 1; } \
	K int pong_##s(int x) { if (x <= 0) return leaf_##s(x); int r = ping_##s(x - 1); sink += r; return r + 2; }
PAIR(a) PAIR(b)
int main(int c, char **v) { return c > 1 && ping_a(atoi(v[1])) + ping_b(atoi(v[1])) == 7; }
EOF2
if build deep deep.c gcc -O1; then
	# Seconds of processor time; asking about the frames one by one would take minutes.
	(ulimit -t 120 && with -ex 'break *&leaf_b' -ex 'run 10000' -ex continue -ex bt -ex 'up 9000' deep.folded >log)
	check gdb/deep "$(tail -n 1 log)" grep -q '^#9000 ' log
	out="$(grep -cE '^#[0-9]+ .* p[io]ng_b ' log) $(grep -cE '^#[0-9]+ .* p[io]ng_a ' log)"
	check gdb/deep/names "$out" [ "$out" = '10002 0' ]
fi

# --- installed --------------------------------------------------------------------------------------------------------------
if [ -n "${TARGET:-}" ]; then
	skip gdb/install "make would build what is out of date by the compiler for $TARGET"
elif make -s -C "$ROOT" install BUILD="$BUILD" PREFIX="$WORK/inst" GDBINIT_DIR="$WORK/inst/gdbinit.d" >log 2>&1; then
	check gdb/install "$(ls inst/share/icfold inst/gdbinit.d 2>&1 | tr '\n' ' ')" [ -f inst/share/icfold/icfold-gdb.py ]
	out=$(env -u ICFOLD gdb -nx -batch -x inst/gdbinit.d/icfold.py -ex 'python print(find_program())' 2>&1)
	check gdb/install/program "$out" [ "$out" = "$WORK/inst/bin/icfold" ]
else
	not_ok gdb/install "$(first_line log)"
fi
finish
