#!/bin/bash
# lldb.sh: with gdb/icfold_lldb.py, lldb's icfold-bt shows of a folded program the stacks that lldb's own bt shows of the unfolded one.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite lldb lldb
PLUGIN=$ROOT/gdb/icfold_lldb.py
export DEBUGINFOD_URLS=
# Debian's lldb does not find its own Python module.
for d in /usr/lib/llvm-*/lib/python3*/*-packages; do [ -d "$d/lldb" ] && PYTHONPATH=$d${PYTHONPATH:+:$PYTHONPATH}; done
export PYTHONPATH
cat >stacks.py <<'EOF2'
import os, re
import lldb
def run(debugger, command, where=None):
    r = lldb.SBCommandReturnObject()
    if where is None:
        debugger.GetCommandInterpreter().HandleCommand(command, r)
    else:
        debugger.GetCommandInterpreter().HandleCommand(command, lldb.SBExecutionContext(where), r)
    return r.GetOutput() or "" if r.Succeeded() else "error: " + (r.GetError() or "")
def frames(text):
    for l in text.splitlines():
        m = re.match(r"\s*\*?\s*frame #\d+: (?:0x)?[0-9a-f]+ [^`]*`(.*) at (\S+\.cc?):(\d+)(:\d+)?(.*)$", l)
        if m is None:
            if l.startswith("error") or "Traceback" in l:
                yield l
            continue
        name = m.group(1).replace("(anonymous namespace)::", "")
        n = re.search(r"(~?\w+)(<[^>(]*>)?(\(|$| \[)", name)
        args = (n.group(2) or "").replace("long unsigned int", "unsigned long").replace("long int", "long")
        yield "%s%s %s:%s%s%s" % (n.group(1), args, m.group(2), m.group(3), m.group(4) or "", " one of" if "one of" in l else "")
def __lldb_init_module(debugger, _):
    debugger.SetAsync(False)
    if os.environ.get("PLUGIN"):
        run(debugger, "command script import " + os.environ["PLUGIN"])
    target, out = debugger.CreateTarget(os.environ["PROGRAM"]), open(os.environ["OUT"], "w")
    for b in os.environ.get("BREAKS", "").split():
        target.BreakpointCreateByName(b)
    error = lldb.SBError()
    if os.environ.get("CORE"):
        process = target.LoadCore(os.environ["CORE"])
    else:
        info = lldb.SBLaunchInfo(os.environ.get("ARGS", "").split())
        info.AddOpenFileAction(1, "/dev/null", False, True)
        process = target.Launch(info, error)
    while process.GetState() == lldb.eStateStopped:
        text = run(debugger, os.environ["COMMAND"], process.GetSelectedThread())
        out.write("".join(f + "\n" for f in frames(text)) + "\n")
        reason = process.GetSelectedThread().GetStopReason()
        if os.environ.get("CORE") or reason == lldb.eStopReasonException or "SIGABRT" in process.GetSelectedThread().GetStopDescription(99):
            break
        process.Continue()
    process.Kill()
    out.close()
EOF2
# stacks OUT PROGRAM COMMAND [PLUGIN]
stacks() {
	rm -f "$1"
	OUT=$1 PROGRAM=$2 COMMAND=$3 PLUGIN=${4:-} timeout 200 lldb -x -b -o 'command script import stacks.py' >"$1.log" 2>&1 </dev/null
	[ -s "$1" ] || echo "no stack: $(tail -n 1 "$1.log")" >"$1"
}
if ! lldb -x -b -o 'script print(6 * 7)' 2>&1 </dev/null | grep -qx 42; then
	skip lldb "its Python does not work here"
	finish
fi
# same NAME PROGRAM: lldb's own bt of PROGRAM, icfold-bt of PROGRAM.folded, and, as a contrast, bt of that.
same() {
	stacks want "$2" bt
	stacks have "$2.folded" icfold-bt "$PLUGIN"
	stacks plain "$2.folded" bt
	if grep -q 'no stack' want; then skip "$1" "lldb does not run the program: $(head -n 1 want | cut -c 1-100)"; return; fi
	cmp -s want plain || wrong=$((wrong + 1)) # else the functions that were called are the kept ones
	if cmp -s want have; then ok "$1 ($(grep -c '^$' want) stacks)"; else not_ok "$1" "$(diff want have | grep '^[<>]' | head -n 4 | tr '\n' ' ')"; fi
}
# build NAME SOURCE FLAGS...
build() {
	local n=$1 src=$2
	shift 2
	if ! "$@" -g -ffunction-sections -Wl,--emit-relocs -w "$src" -o "$n" >log 2>&1; then skip "lldb/$n" "does not build: $(first_line log)"; return 1; fi
	"$ICFOLD" -q "$n" -o "$n.folded" >log 2>&1 || { not_ok "lldb/$n" "folding: $(first_line log)"; return 1; }
}
wrong=0
export BREAKS="leaf_a leaf_b leaf_c leaf_d"
for form in "gcc -O1 -no-pie" "clang -O0 -fPIE -pie"; do
	n=chains$(tr -d ' ' <<<"$form")
	# shellcheck disable=SC2086
	if have "${form%% *}" && build "$n" "$FIXTURES/calls_gcc/chains.c" $form; then same "lldb/$n" "$n"; fi
done
export BREAKS=
for form in "g++ -O2 -fPIE -pie" "clang++ -O1 -no-pie"; do
	n=crash$(tr -d ' ' <<<"$form")
	# shellcheck disable=SC2086
	if have "${form%% *}" && build "$n" "$FIXTURES/virtgdb/crash.cc" $form; then
		# Virtual calls are decided by the object.
		for a in 2 3; do ARGS=$a same "lldb/$n/$a" "$n"; done
	fi
done
# Calls inlined into an undecided function are the kept one's, and marked as such.
if build inlined "$FIXTURES/virtgdb/inlined.c" gcc -O1 && "$ICFOLD" -q --icf=all --allow-growth inlined -o inlined.folded; then
	lldb -x -b -o "command script import $PLUGIN" -o 'break set -n stop' -o 'process launch' -o 'continue' -o 'continue' -o icfold-bt inlined.folded >log 2>&1 </dev/null
	out=$(grep -A9 '(lldb) icfold-bt' log | grep -E 'low_|high_' | tr '\n' '|')
	check lldb/inlined "$out" grep -qE 'low_.\(x=1\) .*\[inlined into one of: high_a, high_b\]\|.*high_.* \[one of: high_a, high_b\]\|$' <<<"$out"
fi
if [ $wrong -ge 3 ]; then ok lldb/contrast; else not_ok lldb/contrast "bt is right without the plug-in: nothing is tested"; fi
# Errors, and programs without tables.
cat >commands <<EOF2
command script import $PLUGIN
icfold-bt
icfold-bt zzz
target create /bin/true
icfold-bt all
EOF2
out=$(lldb -x -b -s commands 2>&1 </dev/null)
case $out in *Traceback*) not_ok lldb/errors "$(grep -A3 Traceback <<<"$out" | tr '\n' ' ')" ;; *"no stopped process"*) ok lldb/errors ;; *) not_ok lldb/errors "$(tail -n 2 <<<"$out")" ;; esac
finish
