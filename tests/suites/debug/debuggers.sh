#!/bin/bash
# debuggers.sh: what gdb and lldb say of a folded function, command by command: README's table of debuggers.  Each line of the tables
# below is a command and its class:
#	same	as of the unfolded program
#	kept	the same, but with the kept function's names and lines, of its parameters and locals, too, and without entry values
#	bare	the same, but without arguments (which would have the kept function's names)
#	why: X	something else, in which the expression X is found
# gdb with and without the plug-in; `all`, and for the differences `safe`.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite debuggers g++ c++filt
PLUGIN=$ROOT/gdb/icfold-gdb.py
export DEBUGINFOD_URLS=
always_fold

# --- the program ------------------------------------------------------------------------------------------------------------
# Lines of the second function of a pair are those of the first plus 7.
cat >prog.cc <<'EOF2'
#include <cstdio>
volatile int sink;
struct Apple { const Apple *next; int weight; };
struct Pear { const Pear *next; int weight; };
template <class Fruit> [[gnu::noinline]] int heaviest(const Fruit *fruit)
{
	int most = fruit->weight;
	while ((fruit = fruit->next))
		if (fruit->weight > most)
			most = fruit->weight;
	return most;
}
extern "C" [[gnu::noinline]] int scale_a(int alpha)
{
	int first = alpha * 3;
	sink = first;
	sink += alpha;
	return first + 1;
}
extern "C" [[gnu::noinline]] int scale_b(int beta)
{
	int second = beta * 3;
	sink = second;
	sink += beta;
	return second + 1;
}
[[gnu::noinline]] int thrower(int x)
{
	if (x > 1)
		throw x;
	sink = x;
	return x - 7;
}
extern "C" [[gnu::noinline]] int taken_a(int x)
{
	sink = x * 11;
	return x + 2;
}
extern "C" [[gnu::noinline]] int taken_b(int x)
{
	sink = x * 11;
	return x + 2;
}
int (*volatile table[])(int) = { taken_a, taken_b };
static void body(int n)
{
	int sum = scale_a(n);
	sum += scale_b(n);
	sum += taken_a(n) + taken_b(n);
	sum += table[0](n) + table[1](n);
	const Apple apple = { nullptr, 150 };
	const Pear pear = { nullptr, 90 };
	sum += heaviest(&apple) + heaviest(&pear);
	try {
		sum += thrower(n + 1);
	} catch (int caught) {
		sum += caught;
	}
	printf("%d\n", sum);
}
int main(int argc, char **)
{
	body(argc);
}
EOF2
at() { grep -nF "$1" prog.cc | head -n 1 | cut -d : -f 1; }
if ! g++ -g -O1 -fno-inline -ffunction-sections -Wl,--emit-relocs prog.cc -o prog.full >log 2>&1; then
	skip debuggers "does not build: $(first_line log)"
	finish
fi
for m in all safe; do
	if ! "$ICFOLD" -q --icf=$m --print-icf-sections prog.full -o prog.$m >$m.pairs 2>log; then
		not_ok debuggers/$m "$(first_line log)"
		finish
	fi
done
# F is folded into K; both have a parameter and a local.
if grep -q 'removing identical section scale_a' all.pairs; then
	F=scale_a P=alpha V=first LINE=$(at 'first = alpha') CALL=$(at 'sum = scale_a') K=scale_b KP=beta KV=second step=7
else
	F=scale_b P=beta V=second LINE=$(at 'second = beta') CALL=$(at 'sum += scale_b') K=scale_a KP=alpha KV=first step=-7
fi
TL=$(sed -n 's/.*removing identical section \(_Z8heaviest.*\)/\1/p' all.pairs)
T=$(c++filt "$TL" | sed -E 's/^int (.*)\(.*/\1/')
case $T in *Pear*) FRUIT=Pear KFRUIT=Apple ;; *) FRUIT=Apple KFRUIT=Pear ;; esac
TAKEN=$(sed -n 's/.*removing identical section \(taken_.\)/\1/p' safe.pairs)
TAKENLINE=$(($(at "int $TAKEN(") + 2))
check debuggers/folds "$(tr '\n' ' ' <all.pairs)" [ -n "$TL" ] || finish
check debuggers/folds/safe "$(tr '\n' ' ' <safe.pairs)" [ -n "$TAKEN" ] || finish

# --- tables -----------------------------------------------------------------------------------------------------------------
# NAME|CLASS|COMMAND;COMMAND...: what COMMANDs say that begin with - is not compared.  A NAME that begins with + goes on where the line
# before has stopped; others start afresh.
substitute() {
	sed -e "s/@F@/$F/g; s/@K@/$K/g; s/@TAKEN@/$TAKEN/g; s/@TAKENLINE@/$TAKENLINE/g
		s/@DIRECT@/$(at '+= taken_a')/g; s/@TABLE@/$(at '+= table')/g; s/@P@/$P/g; s/@V@/$V/g; s/@KP@/$KP/g; s/@LINE@/$LINE/g; s/@KLINE@/$((LINE + step))/g; s/@CALL@/$CALL/g
		s/@AFTER@/$((CALL + 1))/g; s/@T@/$T/g; s/@TL@/$TL/g; s/@START@/${F%?}/g"
}
cat >gdb.in <<'EOF2'
break NAME|kept|break @F@;-run;bt 1
+print its parameter|why: No symbol "@P@" in current context|print @P@
+print the kept parameter|why: ^= 1$|print @KP@
+info args|kept|info args
+bt|kept|bt
+info frame|kept|info frame
+info symbol $pc|kept|info symbol $pc
+frame function|kept|-up;frame function @F@
+display|kept|display sink;next
+info locals|kept|-next;info locals
+entry value|why: can be used only for function parameters|print @P@@entry
+finish|same|finish
break LINKAGE_NAME of a template|kept|break @TL@
break NAME<ARGUMENT>|why: Function "@T@" not defined|break @T@
break NAME of a template|why: ^Breakpoint at ADDR: file prog.cc|break heaviest
break FILE:LINE|same|break prog.cc:@LINE@
+where it stops at FILE:LINE|kept|-run;bt 1
break *ADDRESS|kept|break *&@F@;-run;bt 1
break NAME if its parameter|why: No symbol "@P@" in current context|break @F@ if @P@ == 1
break NAME if the kept parameter|why: ^Breakpoint at|break @F@ if @KP@ == 1
tbreak|kept|tbreak @F@
rbreak|why: ^$|rbreak ^@F@
info functions|why: ^All functions matching regular expression "\^@F@":$|info functions ^@F@
complete|why: ^break @F@$|complete break @START@
info line|kept|info line @F@
info line FILE:LINE|why: ^Line @LINE@ of "prog.cc" is at address ADDR <@K@.*> but contains no code|info line prog.cc:@LINE@
info address|why: Symbol "@F@" is at ADDR in a file compiled without debugging|info address @F@
info symbol|kept|info symbol @F@
info scope|why: ^Symbol @KP@ is |info scope @F@
list|why: ^@KLINE@\s|list @F@
list FILE:LINE|why: ^@LINE@\s|list prog.cc:@LINE@
ptype|same|ptype @F@
whatis|same|whatis @F@
print NAME|kept|print @F@
print &NAME|kept|print &@F@
disassemble|kept|disassemble @F@
call|same|-break body;-run;call @F@(2);print @F@(3)
+until|kept|-advance @CALL@;until prog.cc:@LINE@
+watch|kept|watch sink;continue
+next|same|-delete;-finish;next
step|kept|-break prog.cc:@CALL@;-run;step;step
+up|same|up
advance NAME|kept|-break body;-run;advance @F@
advance FILE:LINE|kept|-break body;-run;advance prog.cc:@LINE@
catch throw|same|catch throw;-run;bt 3
record|setup|-break prog.cc:@CALL@;-run;record;-tbreak prog.cc:@AFTER@;-continue
+reverse-step|kept|reverse-step;reverse-step
+reverse-finish|same|reverse-finish
+reverse-next|same|-tbreak prog.cc:@AFTER@;-continue;reverse-next
+reverse-continue|kept|-tbreak prog.cc:@AFTER@;-continue;-break @F@;reverse-continue
EOF2
# A function with a thunk: its name is the thunk's, its lines are in the shared code.
cat >safe.in <<'EOF2'
break NAME of a thunk|why: ^#1 .* at prog.cc:@TABLE@$|break @TAKEN@;-run;bt 2
break NAME of a thunk where the shared code is|why: ^#1 .* at prog.cc:@DIRECT@$|break prog.cc:@TAKENLINE@;-run;bt 2
print of a thunk|why: <@TAKEN@|print @TAKEN@
EOF2
# With the plug-in.
cat >plugin.in <<'EOF2'
break NAME|kept|break @F@
+the stop|why: icfold: frame 0 is @F@ at prog.cc:@LINE@, which shares the code of|run
+bt|bare|bt
+frame|bare|frame
+info frame|bare|info frame
+frame function|bare|-up;frame function @F@
+info args|kept|-down;info args
+up|same|-frame 0;up
+finish|same|-frame 0;finish
break FILE:LINE|same|break prog.cc:@LINE@
+where it stops|bare|-run;bt 1
break NAME if it was called|why: frame 0 is @T@ at prog.cc|break heaviest if $_streq($_icfold_name(), "@T@");run
step|why: icfold: frame 0 is @F@ at prog.cc:@LINE@, which|-break prog.cc:@CALL@;-run;step
catch throw|why: thrower \(x=|catch throw;-run;bt 3
record|setup|-break prog.cc:@CALL@;-run;record;-tbreak prog.cc:@AFTER@;-continue
+reverse-step|why: icfold: frame 0 is @F@ at prog.cc:[0-9]+, which|reverse-step
EOF2
cat >lldb.in <<'EOF2'
breakpoint set -n|kept|breakpoint set -n @F@
+where it stops|kept|-process launch -o /dev/null;bt 2
+frame variable|kept|frame variable
+expression with its parameter|why: use of undeclared identifier '@P@'|expression @P@
+expression with the kept parameter|why: = 1$|expression @KP@
+image lookup -a|kept|image lookup -a $pc
+frame info|kept|frame info
+watchpoint|kept|-watchpoint set variable sink;continue
+thread step-out|same|-watchpoint delete -f;thread step-out
breakpoint set -n of a template|why: no locations|breakpoint set -n "@T@"
breakpoint set -n LINKAGE_NAME|kept|breakpoint set -n @TL@
breakpoint set -F|kept|breakpoint set -F @F@
breakpoint set -r|kept|breakpoint set -r ^@F@
breakpoint set -f -l -m false|kept|breakpoint set -f prog.cc -l @LINE@ -m false;-process launch -o /dev/null;bt 2
breakpoint set -c its parameter|why: error|breakpoint set -n @F@ -c "@P@ == 7";process launch -o /dev/null
breakpoint set -c the kept parameter|why: exited with status|breakpoint set -n @F@ -c "@KP@ == 7";process launch -o /dev/null
image lookup -n|kept|image lookup -n @F@
image lookup -t|same|image lookup -t Pear
source info -n|kept|source info -n @F@
source list -n|why: Could not find function info for: "@F@"|source list -n @F@
expression of a call|same|-breakpoint set -n body;-process launch -o /dev/null;expression (int)@F@(2)
+expression NAME|why: '@F@' has unknown type|expression @F@
+thread until|same|thread until @AFTER@
thread step-in|kept|-breakpoint set -f prog.cc -l @CALL@;-process launch -o /dev/null;thread step-in
EOF2
cat >rows.py <<'EOF2'
import os
import gdb
def execute(command):
    try:
        gdb.execute(command)
    except gdb.error as e:
        gdb.write("error: %s\n" % e)
for c in ("pagination off", "width 0", "confirm off", "breakpoint pending off", "print frame-arguments all", "style enabled off"):
    execute("set " + c)
for row in open(os.environ["ROWS"]):
    name, commands = row.rstrip("\n").split("|")[::2]
    gdb.write("==\n")
    if not name.startswith("+"):
        execute("delete")
        execute("undisplay")
        if gdb.selected_inferior().pid:
            execute("kill")
    for c in commands.split(";"):
        gdb.write("==%s\n" % ("" if c.startswith("-") else name))
        gdb.flush()
        c = c.lstrip("-")
        execute("run >/dev/null" if c == "run" else c)
        gdb.flush()
EOF2
# judge.py NAME TABLE UNFOLDED FOLDED: compares what the debugger said, and prints a result for each line of TABLE.
cat >judge.py <<'EOF2'
import os
import re
import sys
F, K, P, KP, V, KV, FRUIT, KFRUIT = (os.environ[x] for x in "F K P KP V KV FRUIT KFRUIT".split())
line, step = int(os.environ["LINE"]), int(os.environ["step"])
# What numbers differ from run to run, or after code has moved.
TIDY = [(r"0x[0-9a-f]+", "ADDR"), (r"^(#\d+ +)?ADDR in ", r"\1"), (r"process \d+", "process"), (r"\$\d+ = ", "= "),
        (r"((?:break|watch|catch)point) [\d.]+", r"\1"), (r"(?<=prog)\.(full|all|safe)", ""), (r"/\S*/(?=prog)", ""),
        (r"(?<=\.PT_LOAD).*", ""), (r"; saved rip.*", "")]
NOISE = re.compile(r"\[(?!ADDR)|\s*$|\s*\^$|\(lldb\)|Run till exit|Process \d+ (stopped|resuming|launched)|\* thread|.*: int3|prog`\w+:$|   \d+ |   \d+\s"
                   r"|Value returned is .*\d{6}")
def said(path):
    rows, name = {}, None
    for l in open(path, errors="replace"):
        l = l.rstrip("\n")
        if l.startswith("=="):
            name = l[2:]
            rows.setdefault(name, [])
        elif name and not NOISE.match(l):
            for a, b in TIDY:
                l = re.sub(a, b, l, flags=re.I)
            rows[name].append(l)
    return rows
def kept(text):
    """What is said of the folded function, said of the kept one."""
    moved = lambda m: m.group(1) + str(int(m.group(2)) + (step if line - 2 <= int(m.group(2)) <= line + 4 else 0))
    for a, b in ((F, K), (P, KP), (V, KV), (FRUIT, KFRUIT)):
        text = re.sub(r"\b%s\b" % a, b, text)
    text = text.replace("%s=%s@entry" % (KP, KP), KP)
    return re.sub(r"(prog\.cc:|line |^-> |^(?=\d+\t))(\d+)", moved, text, flags=re.M | re.I)
def bare(text):
    return re.sub(r"(%s) \(%s=[^)]*\)" % (F, P), r"\1 ()", re.sub(r"(args: )%s=.*" % P, r"\1", text))
name, table, full, folded = sys.argv[1:]
full, folded = said(full), said(folded)
for row in open(table):
    row, rule = row.rstrip("\n").split("|")[:2]
    if rule == "setup":
        continue
    have, want = "\n".join(folded.get(row, ["-"])), "\n".join(full.get(row, ["-"]))
    if rule.startswith("why: "):
        good, want = re.search(rule[5:], have, re.M) and have != want, rule
    else:
        want = {"same": str, "kept": kept, "bare": bare}[rule](want)
        good = have == want and have
    row = "debuggers/%s/%s" % (name, row.lstrip("+"))
    short = lambda t: t.replace("\n", " / ")[:300]
    print("ok " + row if good else "not ok %s: %s: expected %s, found %s" % (row, rule[:4], short(want), short(have)))
EOF2
export F K P KP V KV FRUIT KFRUIT LINE step ICFOLD
for t in gdb plugin safe lldb; do substitute <$t.in >$t.rows; done
# in_gdb OUT ROWS FILE [OPTION...] and in_lldb: what the debugger says.
in_gdb() { ROWS=$2 timeout 100 gdb -nx -batch -iex 'set debuginfod enabled off' "${@:4}" -x rows.py "$3" >"$1" 2>&1 </dev/null; }
in_lldb() {
	while IFS='|' read -r name _ commands; do
		echo "platform shell echo =="
		case $name in +*) ;; *) printf '%s\n' 'breakpoint delete -f' 'watchpoint delete -f' 'process kill' ;; esac
		while read -r -d ';' c; do
			case $c in -*) echo "platform shell echo ==" ;; *) printf "platform shell echo '==%s'\n" "$name" ;; esac
			echo "${c#-}"
		done <<<"$commands;"
	done <"$2" >"$1.cmds"
	timeout 60 lldb -x -o 'settings set interpreter.stop-command-source-on-error false' -o 'settings set auto-confirm true' \
		-o 'settings set stop-disassembly-display never' -s "$1.cmds" -o quit "$3" >"$1" 2>&1 </dev/null
}
# --- gdb --------------------------------------------------------------------------------------------------------------------
if ! have gdb || ! gdb -nx -batch -ex 'python print(6 * 7)' -ex run /bin/true 2>/dev/null | grep -q 'exited normally'; then
	skip debuggers/gdb "it does not run programs here"
else
	in_gdb full.gdb gdb.rows prog.full &
	in_gdb all.gdb gdb.rows prog.all
	wait
	in_gdb all.plugin plugin.rows prog.all -iex "source $PLUGIN" &
	in_gdb full.plugin plugin.rows prog.full
	wait
	in_gdb safe.gdb gdb.rows prog.safe &
	in_gdb thunk.gdb safe.rows prog.safe
	wait
	{
		python3 judge.py gdb gdb.rows full.gdb all.gdb
		python3 judge.py gdb/safe gdb.rows full.gdb safe.gdb
		python3 judge.py gdb/safe safe.rows full.gdb thunk.gdb
		python3 judge.py plugin plugin.rows full.plugin all.plugin
	} >results
	take '' results
fi
# --- lldb -------------------------------------------------------------------------------------------------------------------
if have lldb; then
	in_lldb full.lldb lldb.rows prog.full &
	in_lldb all.lldb lldb.rows prog.all
	wait
fi
if ! grep -q 'stop reason = breakpoint' full.lldb 2>/dev/null; then
	skip debuggers/lldb "no lldb that runs programs here"
else
	python3 judge.py lldb lldb.rows full.lldb all.lldb >results
	take '' results
fi
# --- perf probe -------------------------------------------------------------------------------------------------------------
# probe NAME EXPECTED FILE ARGUMENT...: what perf says, as an expression.
probe() {
	local name=$1 expected=$2
	out=$(timeout 60 perf probe -x "./prog.$3" "${@:4}" 2>&1 | sed -E 's/0x[0-9a-f]+/ADDR/' | tr '\n' ' ')
	check "debuggers/perf-probe/$name" "$out" grep -qE "$expected" <<<"$out"
}
if ! have perf || ! perf probe -x ./prog.full -D "$F" 2>/dev/null | grep -q "^p:"; then
	skip debuggers/perf-probe "no perf that defines probes here"
else
	probe unfolded "^p:probe_prog/$F [^ ]*prog.full:ADDR $P=%" full -D "$F $P"
	# The name of a folded function is one without code; kept relocations make it a function without a size.
	probe -D "^Specified offset is out of $F +Error: Failed to add events" all -D "$F"
	probe event "p:probe_prog/$F [^ ]*prog.all:ADDR $" all -D "$F=$K"
	probe return "r:probe_prog/${F}__return [^ ]*prog.all:ADDR $" all -D "$F=$K%return"
	probe address "p:probe_prog/$F [^ ]*prog.all:ADDR $" all -D "$F=0x$(nm prog.all | awk -v f="$F" '$3 == f { print $1 }')"
	probe -F " $F .*$|^$F " all -F
	# A folded function has no code of its own, so perf finds no variables there; at the kept one's name it does.
	probe variable "^Specified offset is out of $F +Error: Failed to add events" all -D "$F $P"
	probe kept-variable "^p:probe_prog/$K [^ ]*prog.all:ADDR $KP=%" all -D "$K $KP"
	probe -V "^Specified offset is out of $F Debuginfo analysis failed" all -V "$F"
	probe kept-V "@<$K\\+0>[[:space:]]+int[[:space:]]+$KP" all -V "$K"
	probe line-of-declaration "Please try to probe at [^ ]*prog.cc:$((LINE - 2 + step)) instead" all -D "prog.cc:$((LINE - 2))"
	probe line "^Failed to find scope of probe point" all -D "prog.cc:$((LINE + 2))"
	probe kept-line "^p:probe_prog/$K [^ ]*prog.all:ADDR $" all -D "prog.cc:$((LINE + 2 + step))"
fi
finish
