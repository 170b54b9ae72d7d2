# clients.sh: programs that other programs read, and the readers.  Sourced, behind lib.sh.
#
# A reader is a function rows_NAME PROGRAM.  It prints what the reader says of PROGRAM as rows "FUNCTION TAB FILE:LINE"; a row
# "stack" begins a stack.  tests/judges/clients.py compares the rows of the unfolded and the folded program.
# Layout of the working folder: CONFIG/ holds objects; CONFIG/plain/PROGRAM is unfolded; CONFIG/MODE/PROGRAM is folded, with
# PROGRAM.map (of icfold --map) and PROGRAM.truth (of the judge) beside it.
# CLIENTS=full: all configurations and all readers.
# shellcheck shell=bash
export DEBUGINFOD_URLS=
JUDGE=$TESTS/judges/clients.py
SOURCES=$FIXTURES/clients
# Limits that the README names, by reader and the program or the mode; PENDING= runs these, too.
PENDING=${PENDING-perf_probe/safe perf_probe/all bpftrace/none gdb_symbol/split-all}
full() { [ "${CLIENTS:-}" = full ]; }
# limit SECONDS COMMAND...: a reader that does not end counts as one that says nothing.
limit() { timeout -k 5 "$@" </dev/null; }

# --- programs
# config NAME CC DWARF RELOCS: what `objects` and `link` make in the folder NAME.  CC is gcc or clang, RELOCS yes or no.
config() {
	CONFIG=$1 CL_CC=$2 CL_CXX=$(compiler_of "$2" x.cc)
	CL_FLAGS="-O2 -w -gdwarf-$3 -ffunction-sections"
	# Functions that the compiler has merged are no matter of icfold's.
	[ "$2" = gcc ] && CL_FLAGS="$CL_FLAGS -fno-ipa-icf"
	CL_LINK=-Wl,--build-id
	[ "$4" = yes ] && CL_LINK="$CL_LINK -Wl,--emit-relocs"
	mkdir -p "$CONFIG/plain"
}
# objects [FLAG...]: the groups, and main.
objects() {
	local f
	for f in groups.c main.c groups.cc; do
		# shellcheck disable=SC2086
		"$(compiler_of "$CL_CC" "$f")" $CL_FLAGS "$@" -c "$SOURCES/$f" -o "$CONFIG/${f//./_}.o" || return 1
	done
}
# link PROGRAM REPORT FLAGS...: with report() of report_REPORT.c or .cc
link() {
	local name=$1 report=$SOURCES/report_$2
	shift 2
	[ -f "$report.c" ] && report=$report.c || report=$report.cc
	# shellcheck disable=SC2086
	if [ ! -f "$CONFIG/report_$name.o" ]; then
		"$(compiler_of gcc "$report")" $CL_FLAGS -fno-ipa-icf "$@" -c "$report" -o "$CONFIG/report_$name.o" || return 1
	fi
	# shellcheck disable=SC2086
	"$CL_CXX" "$CONFIG"/{groups_c,main_c,groups_cc,"report_$name"}.o $CL_LINK "$@" -o "$CONFIG/plain/$name"
}
# link_lld PROGRAM FLAGS...: what a linker's folding makes of the same objects
link_lld() {
	local name=$1
	shift
	mkdir -p "$CONFIG/lld"
	# shellcheck disable=SC2086
	have ld.lld && "$CL_CXX" "$CONFIG"/{groups_c,main_c,groups_cc,"report_$name"}.o $CL_LINK -fuse-ld=lld -Wl,--icf=all "$@" -o "$CONFIG/lld/$name" 2>/dev/null
}
# fold MODE PROGRAM: MODE is safe, all, inplace or drop; split-MODE takes the program without, and its debug file apart.
fold() {
	local mode=$1 p=$2 in=$CONFIG/plain/$2 out=$CONFIG/$1/$2 flags=()
	mkdir -p "$CONFIG/$mode"
	case $mode in drop) flags=(--icf=all --debug-folded=drop) ;; *inplace) flags=(--icf=all --in-place) ;; *) flags=("--icf=${mode#split-}") ;; esac
	if [ "$mode" != "${mode#split-}" ]; then
		mkdir -p "$CONFIG/split"
		in=$CONFIG/split/$p
		objcopy --only-keep-debug "$CONFIG/plain/$p" "$in.debug" && (cd "$CONFIG/split" && objcopy -S --add-gnu-debuglink="$p.debug" ../plain/"$p" "$p") || return 1
		flags+=("--debug-output=$out.debug")
	fi
	"$ICFOLD" -q --allow-growth "${flags[@]}" --map="$out.map" "$in" -o "$out" >log 2>&1 || return 1
	in=$out
	[ -f "$out.debug" ] && in=$out.debug
	"$ICFOLD" dump --groups --json "$in" >"$out.groups" && python3 "$JUDGE" truth "$CONFIG/plain/$p" "$out.groups" >"$out.truth"
}

# --- comparison
# rows READER FOLDER PROGRAM [PLACES-COLUMN]: into CONFIG/FOLDER/PROGRAM.READER
rows() {
	(cd "$CONFIG/$2" && rows_"$1" "./$3" >"$3.$1" 2>"$3.$1.log")
}
# compare READER MODE PROGRAM: READER says of the folded program what it says of the unfolded one.  OTHER=1: it may name any
# function of the group; SETS=1: rows have no order.
compare() {
	local reader=$1 mode=$2 p=$3 base=plain name=clients/$1/$CONFIG-$2/$3 why
	[ "$mode" != "${mode#split-}" ] && base="split"
	if [[ " ${PENDING//[[:space:]]/ } " =~ " "$reader/("$p"|"$mode")" " ]]; then skip "$name" "a limit in the README"; return; fi
	if [ ! -s "$CONFIG/$base/$p.$reader" ] || [ -n "${PLACES:-}" ]; then rows "$reader" $base "$p"; fi
	PLACES=${PLACES:+$PLACES.new} rows "$reader" "$mode" "$p"
	if why=$(python3 "$JUDGE" compare "$CONFIG/$mode/$p.truth" "$CONFIG/$base/$p.$reader" "$CONFIG/$mode/$p.$reader" 2>&1); then
		ok "$name ($why)"
	else
		not_ok "$name" "$(tr '\n' ' ' <<<"$why" | cut -c 1-400)"
	fi
}
# compare_places READER MODE PROGRAM: the same for a reader of addresses, at all places of the program.
compare_places() {
	local at=$PWD/$CONFIG/$2/$3.at
	if [ ! -s "$at" ]; then
		python3 "$JUDGE" places "$CONFIG/plain/$3" "$CONFIG/$2/$3.map" >"$at.both" || return 1
		cut -d' ' -f1 "$at.both" >"$at"
		cut -d' ' -f2 "$at.both" >"$at.new"
	fi
	PLACES=$at compare "$@"
}
# contrast READER PROGRAM: prints what READER says of a linker's folding; no assertion.
contrast() {
	[ -f "$CONFIG/lld/$2" ] || return 0
	rows "$1" lld "$2"
	echo "# $1, lld --icf=all: $(python3 "$JUDGE" compare "$CONFIG/all/$2.truth" "$CONFIG/plain/$2.$1" "$CONFIG/lld/$2.$1" 2>&1 | head -n 1)"
}

# --- readers of addresses: $PLACES names the list
# from_pairs: the output of addr2line -a -i -f, and of those that print the same.
from_pairs() {
	awk '/^0x[0-9a-f]+$/ { print "stack"; name = ""; next } name == "" { name = $0; next } { print name "\t" $0; name = "" }'
}
rows_addr2line() { addr2line -aif -e "$1" <"$PLACES" | from_pairs; }
rows_eu_addr2line() { eu-addr2line -aif -e "$1" <"$PLACES" | sed -E 's/ \(inlined by\) //; s/ inlined at .*//; s/:([0-9]+):[0-9]+$/:\1/' | from_pairs; }
rows_llvm_symbolizer_14() { "llvm-symbolizer${LLVM--14}" --output-style=GNU --no-demangle -aif -e "$1" <"$PLACES" | from_pairs; }
rows_llvm_symbolizer_19() { LLVM=-19 rows_llvm_symbolizer_14 "$1"; }
rows_gsymutil_14() {
	local tool=llvm-gsymutil${GSYM--14}
	"$tool" --convert "$1" -o "$1.gsym" >/dev/null && sed "s#\$# $1.gsym#" "$PLACES" | "$tool" --addresses-from-stdin | awk '
		/^error|^ *$/ { next }
		/^0x[0-9a-f]+: / { print "stack"; sub(/^0x[0-9a-f]+: /, "") }
		{ sub(/ \[inlined\]/, ""); sub(/^ +/, ""); n = split($0, w, " @ "); name = w[1]; sub(/ \+ [0-9]+$/, "", name); print name "\t" (n > 1 ? w[2] : "?") }'
}
rows_gsymutil_19() { GSYM=-19 rows_gsymutil_14 "$1"; }
# gdb's symbol and line at each place
rows_gdb_symbol() {
	sed 's/.*/info symbol &\ninfo line *&/' "$PLACES" >"$1.gdb"
	limit 60 gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'set width 0' -x "$1.gdb" "$1" | awk '
		/ in section / { print "stack"; name = $0; sub(/( \+ [0-9]+)? in section .*/, "", name) }
		/^No symbol matches/ { print "stack"; name = "?" }
		/^Line / { match($0, /".*"/); print name "\t" substr($0, RSTART + 1, RLENGTH - 2) ":" $2 }
		/^No line number/ { print name "\t?" }'
}

# --- readers of stacks
# A program whose report() prints its own stack.
rows_own() { limit 60 "$1"; }
# gdb without the plug-in, at each call of report().
rows_gdb() {
	limit 60 gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'set pagination off' -ex 'set width 0' -ex 'set print frame-arguments none' \
		-ex 'set print entry-values no' -ex 'break report' -ex run -ex 'python
while gdb.selected_inferior().pid:
    print("stack")
    gdb.execute("bt")
    gdb.execute("continue")' "$1" | awk '
		/^stack$/ { print; on = 1 }
		!on || !/^#/ { next }
		{ sub(/^#[0-9]+ +(0x[0-9a-f]+ in )?/, ""); line = "?" }
		match($0, / at [^ ]+:[0-9]+$/) { line = substr($0, RSTART + 4); $0 = substr($0, 1, RSTART - 1) }
		{ sub(/ \(.*/, ""); print $0 "\t" line }'
}
rows_lldb() {
	{
		printf 'breakpoint set -n report\nrun\n'
		for _ in $(seq 40); do printf 'bt\ncontinue\n'; done
	} >"$1.lldb"
	# shellcheck disable=SC2016
	limit 60 lldb -x -b -o 'settings set frame-format "frame ${frame.index} ${function.name}{ ${line.file.basename}:${line.number}}\n"' -s "$1.lldb" "$1" | awk '
		/^\(lldb\) bt/ { print "stack"; on = 1; next } /^\(lldb\)/ { on = 0 }
		!on || !/ frame [0-9]+ / { next }
		{ sub(/.* frame [0-9]+ /, ""); line = "?" }
		match($0, / [^ ]+:[0-9]+$/) { line = substr($0, RSTART + 1); $0 = substr($0, 1, RSTART - 1) }
		{ print $0 "\t" line }'
}
rows_valgrind() {
	limit 60 valgrind --read-inline-info=yes --num-callers=20 "$1" fault 2>&1 >/dev/null | sed -E 's/^==[0-9]+== //' | awk '
		/^(Invalid|Address|Conditional)| (alloc|free)/ { print "stack" }
		!/^ +(at|by) 0x/ { next }
		{ sub(/^ +(at|by) 0x[0-9A-F]+: /, ""); line = "?" }
		match($0, /\([^()]*:[0-9]+\)$/) { line = substr($0, RSTART + 1, RLENGTH - 2) }
		{ sub(/ \((in )?[^()]*\)$/, ""); print $0 "\t" line }'
}
# Each line that cost something, with the function that it belongs to: a set.
rows_callgrind() {
	limit 60 valgrind -q --tool=callgrind --compress-strings=no --compress-pos=no --callgrind-out-file="$1.out" "$1" visit >/dev/null
	awk '
		/^(fl|fi|fe)=/ { file = $0; sub(/^f.=/, "", file); sub(/.*\//, "", file) }
		/^fn=/ { fn = substr($0, 4); sub(/\(.*/, "", fn) }
		/^calls=/ { getline; next }
		/^[0-9]+ [0-9]+/ && file ~ /^(groups|main)/ { print fn "\t" file ":" $1 }' "$1.out" | sort -u
}
rows_strace() {
	limit 60 strace -k -e trace=getppid "$1" 2>&1 >/dev/null | awk '
		/^getppid/ { print "stack" }
		/^ > / { n = "?"; if (match($0, /\(.*\+0x/)) n = substr($0, RSTART + 1, RLENGTH - 4); print n "\t-" }'
}
# Breakpoints at all symbols: a set, since a thunk is one function more.
rows_ltrace() {
	limit 60 ltrace -x '*@MAIN' -e getppid "$1" 2>&1 >/dev/null | sed 's/^[^ (]*->//' | sed -nE 's/^ *([A-Za-z_][^ (@]*)(@[^(]*)?\(.*/\1\t-/p' |
		grep -vE '^(_start|_init|_fini|frame_dummy|(de)?register_tm|__do_global)' | sort -u
}

# perf keeps copies of programs by build-id in HOME.  What it samples: functions, with their lines.  PERF_LINES=1: a set of which a run sees a part.
rows_perf() {
	HOME=$PWD limit 60 perf record -q -e cpu-clock -F 2000 -o "$1.data" "$1" spin "${SPIN:-100000000}" >/dev/null 2>&1
	HOME=$PWD limit 60 perf report -i "$1.data" --stdio --comm "$(basename "$1")" --dso "$(basename "$1")" --percent-limit 3 -F "sym${PERF_LINES:+,srcline}" 2>/dev/null |
		awk '/^#/ || !/\[.\]/ { next } { sub(/.*\[.\] +/, ""); n = $1; print n "\t" ($2 ? $2 : "-") }' | sort -u
}
rows_perf_lines() { PERF_LINES=1 rows_perf "$1"; }
# The names that people probe: those of the groups.
PROBED="local_red local_green global_left global_right alias_of_left alias_of_right outer_east outer_west middle_west leaf_west around_low around_high hook_on hook_off"
# perf probe, definitions only: where it would put a probe into a function.
rows_perf_probe() {
	local f
	for f in $PROBED; do
		HOME=$PWD limit 20 perf probe -x "$1" -D "$f" 2>/dev/null | awk -v f="$f" '/^p:/ { n++ } END { print f "\t-\t" n + 0 " places" }'
	done
}
# bpftrace: uprobes at functions by name, and that they are hit.
rows_bpftrace() {
	local f text=
	for f in $PROBED; do text="$text${text:+,}uprobe:$1:$f"; done
	BPFTRACE_MAX_PROBES=100 limit 60 bpftrace -e "$text { @[probe] = 1; }" -c "$1 visit" 2>"$1.bpf" | sed -nE 's/^@\[uprobe:.*:([^]:]+)\]: 1/\1\t-/p' | sort
}
# gprof: the functions that were called, a set; PROGRAM was linked with -pg.
rows_gprof() {
	limit 60 "$1" && gprof -b -p "$1" gmon.out | awk 'NF >= 4 && $1 ~ /^[0-9.]+$/' |
		sed -E 's/^( *[0-9.]+){4}( +[0-9.]+ +[0-9.]+)? +//; s/$/\t-/'
}
# Probes of the notes of systemtap, with the function and line at their place.
rows_usdt() {
	readelf -nW "$1" | sed -nE 's/^ *Location: (0x[0-9a-f]+),.*/\1/p' >"$1.at"
	addr2line -af -e "$1" <"$1.at" | from_pairs
}
# Stacks that a sanitizer prints.
rows_sanitizer() {
	UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0 limit 60 "$1" "${MODE_ARGUMENT:-visit}" 2>&1 | awk '
		/^stack$/ || /^(freed|previously) / || /ERROR: AddressSanitizer/ { print "stack" }
		!/^ +#[0-9]+ 0x/ { next }
		/<unknown module>/ { next }
		{ sub(/^ +#[0-9]+ 0x[0-9a-f]+ (in )?/, ""); line = "?" }
		match($0, / [^ ]+:[0-9]+(:[0-9]+)?$/) { line = substr($0, RSTART + 1); $0 = substr($0, 1, RSTART - 1); if (line ~ /:[0-9]+:[0-9]+$/) sub(/:[0-9]+$/, "", line) }
		{ sub(/ \(.*\+0x[0-9a-f]+\).*/, ""); print ($0 == "" ? "?" : $0) "\t" line }'
}
rows_fault() { MODE_ARGUMENT=fault rows_sanitizer "$1"; }
# The core of a crashed program, read by libdw as systemd-coredump and abrt do.
rows_eu_stack() {
	limit 60 gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'run crash' -ex "gcore $1.core" "$1" >/dev/null 2>&1
	limit 60 eu-stack -i -s -e "$1" --core "$1.core" | awk '
		/^#[0-9]+ / { if (name != "") print name "\t?"; name = $3 == "" ? "?" : $3 == "-" ? $4 : $3; next }
		/^ +.*:[0-9]+:[0-9]+$/ { sub(/:[0-9]+$/, "", $1); print name "\t" $1; name = "" }'
}
# Callers of malloc: a set.
rows_heaptrack() {
	limit 60 heaptrack -o "$1.heap" "$1" >/dev/null 2>&1
	heaptrack_print -f "$1".heap.* -n 1000 -s 1000 --merge-backtraces 0 2>/dev/null | awk '
		/^ +at / { n = split($2, w, "/"); if (w[n] ~ /^(groups|main|report)/) print name "\t" w[n]; next }
		/^ / { name = $1 } /^[^ ]/ { name = $1 }' | sort -u
}
# The functions that were entered, a set; PROGRAM was linked with -pg.
rows_uftrace() {
	limit 60 uftrace record -d "$1.uf" "$1" >/dev/null 2>&1
	uftrace report -d "$1.uf" 2>/dev/null | awk 'NR > 2 { print $NF "\t-" }' | sort -u
}
# Rust's std: what it prints for each panic.
rows_rust() {
	RUST_BACKTRACE=full limit 60 "$1" 2>&1 | awk '
		/^stack backtrace:/ { print "stack"; on = 1; next }
		/^(note|thread|$)/ { if (name != "") print name "\t?"; name = ""; on = 0 }
		!on { next }
		/^ +[0-9]+: / { if (name != "") print name "\t?"; name = $0; sub(/^ +[0-9]+: +0x[0-9a-f]+ - /, "", name); if (name == "<unknown>") name = "?" }
		/^ +at / { line = $2; if (line ~ /:[0-9]+:[0-9]+$/) sub(/:[0-9]+$/, "", line); print name "\t" line; name = "" }'
}
