# lib.sh: what the test scripts share: the output protocol, building the fixtures, running programs, outside judges.
#
# Every script prints one line a test: "ok NAME", "not ok NAME: why" or "skip NAME: why", and ends through `finish`,
# whose exit status is 1 when anything was not ok.  Sourced, not run; needs bash.
# Variables from outside: ICFOLD (the tool, default build/icfold), KEEP=1 (leave the working folder), JOBS.
# shellcheck shell=bash
set -u

TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$TESTS")
FIXTURES=$ROOT/fixtures
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
ICFOLD=${ICFOLD:-$BUILD/icfold}
case $ICFOLD in /*) ;; *) ICFOLD=$PWD/$ICFOLD ;; esac
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}
# The machine that the test programs are for.
MACHINE=${TARGET:-$(uname -m)}
export BUILD ICFOLD JOBS LC_ALL=C
ulimit -S -c 0

failures=0
ok() { echo "ok $1"; }
not_ok() { echo "not ok $1: $2"; failures=$((failures + 1)); }
skip() { echo "skip $1: $2"; }
finish() { exit $((failures != 0)); }
# check NAME WHY COMMAND...: ok when COMMAND succeeds.
check() {
	local name=$1 why=$2
	shift 2
	if "$@"; then ok "$name"; else not_ok "$name" "$why"; fi
}
# take NAME FILE: the result lines that another process wrote to FILE, with NAME/ in front of their names unless NAME is empty.
take() {
	sed -E "s#^(ok|not ok|skip) #\\1 ${1:+$1/}#" "$2"
	! grep -q '^not ok' "$2" || failures=$((failures + 1))
}
# part_wanted NAME: whether a suite's list of PARTS names it.
part_wanted() { [[ " $PARTS " == *" $1 "* ]]; }
have() { command -v "$1" >/dev/null 2>&1; }
# GNU nm opens the plug-ins of all compilers first, which takes ten times as long as the rest.
nm() { command nm --plugin=/dev/null "$@"; }

# A working folder of this script's own, removed at the end.
make_work() {
	mkdir -p "$BUILD"
	WORK=$(mktemp -d "$BUILD/check.XXXXXX") || exit 1
	export WORK
	[ -n "${KEEP:-}" ] && echo "# working folder $WORK"
	# shellcheck disable=SC2154
	trap 'rc=$?; [ -n "${KEEP:-}" ] || rm -rf "$WORK"; exit $rc' EXIT
	trap 'exit 130' INT TERM
}

need_tool() {
	[ -x "$ICFOLD" ] && return
	not_ok "$1" "no program at $ICFOLD"
	finish
}

# x86_only NAME [SUITE]: the suite NAME ends here unless its programs, which are in assembler, are for this machine.  SUITE has the like
# for AArch64.
x86_only() {
	[ "$MACHINE" = x86_64 ] && return
	skip "$1" "its programs are in x86-64 assembler${2:+; $2 has those of AArch64}"
	finish
}

# start_suite NAME [COMMAND...]: the suite NAME goes on in a working folder of its own, when the tool and all COMMANDs are there.
start_suite() {
	local name=$1 c
	shift
	need_tool "$name"
	for c; do
		have "$c" || { skip "$name" "no $c"; finish; }
	done
	make_work
	for_target "$name"
	cd "$WORK" || exit 1
}

# always_fold (after make_work): from here on $ICFOLD folds even if the file gets larger.  For tests of folded programs that are
# too small to gain.
always_fold() {
	cat >"$WORK/always-fold" <<-END
		#!/bin/sh
		case \${1:-} in verify | symbolize | inlines | dump | audit | profile | symbols | --linker-wrapper) exec "$ICFOLD" "\$@" ;; esac
		exec "$ICFOLD" --allow-growth "\$@"
	END
	chmod +x "$WORK/always-fold"
	ICFOLD=$WORK/always-fold
}

# One line of a file, short enough for a report.
first_line() { head -n 1 "$1" 2>/dev/null | cut -c 1-160; }

# mark_folded OUT MAP: adds "folded" and "thunk=ADDRESS" to the lines of folded units in a map file, by OUT's record; judges read it.
mark_folded() {
	"$ICFOLD" dump --groups --json "$1" |
		jq -r '.groups[].members[] | select(.kept | not) | (.old | sub("^0x0*"; "")) + " folded" + (if .thunk then " thunk=" + .thunk else "" end)' |
		awk 'NR == FNR { k = $1; $1 = ""; mark[k] = $0; next } { k = $1; sub(/^0+/, "", k); print $0 mark[k] }' - "$2" >"$2.marked" &&
		mv "$2.marked" "$2"
}

# make_stale FOLDER FILE: a library like Debian's libstd of Rust.  The symbol `metadata` covers an unloaded section.  strip removed an
# earlier section but left the section numbers in .dynsym, so the symbol's number is now that of .gnu_debuglink.
make_stale() {
	local d=$1/stale.d
	mkdir -p "$d"
	cat >"$d/lib.c" <<-'END'
		__asm__(".section .meta,\"\",@progbits\n.globl metadata\n.type metadata,@object\nmetadata: .fill 300,1,7\n.size metadata,300\n.text");
		int __attribute__((noinline)) one(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; return x * 3 + 1; }
		int __attribute__((noinline)) two(int x) { for (int i = 0; i < x; i++) x -= x > 99 ? i : 0; return x * 3 + 1; }
		int three(int x) { return one(x) + two(x + 1) + x * 17; }
	END
	gcc -O1 -fPIC -shared -Wl,--build-id "$d/lib.c" -o "$d/lib.so" && echo 1 >"$d/lib.debug" &&
		strip -R .comment "$d/lib.so" && objcopy --add-gnu-debuglink="$d/lib.debug" "$d/lib.so" "$2"
}

# --- programs for another machine -----------------------------------------------------------------------------------
# use_target MACHINE (after make_work): from here on gcc, clang, objdump and strip work for programs of MACHINE (aarch64),
# run_program runs these under qemu, and so does `run` of gdb.  Prints what is missing, if anything.
RUN=${RUN-}
use_target() {
	local t=$1-linux-gnu d=$WORK/tools c
	TARGET=$1 MACHINE=$1
	case $1 in aarch64) RUN="qemu-aarch64 -L /usr/$t" ;; *) echo "no tools for $1"; return ;; esac
	# This machine runs its own programs.
	[ "$(uname -m)" = "$1" ] && RUN=
	[ -z "$RUN" ] || have "${RUN%% *}" || { echo "no ${RUN%% *} (qemu-user)"; return; }
	for c in gcc g++ objdump strip objcopy; do
		have "$t-$c" || { echo "no $t-$c"; return; }
	done
	mkdir -p "$d/ld"
	# The compiler looks for linkers in the folder of -B.
	for c in lld mold; do have "ld.$c" && ln -sf "$(command -v "ld.$c")" "$d/ld/ld.$c"; done
	for c in gcc g++; do printf '#!/bin/sh\nexec %s -B%s/ld "$@"\n' "$t-$c" "$d" >"$d/$c"; done
	for c in clang clang++; do printf '#!/bin/sh\nexec %s --target=%s "$@"\n' "$(command -v $c || echo false)" "$t" >"$d/$c"; done
	for c in objdump strip objcopy; do ln -sf "$(command -v "$t-$c")" "$d/$c"; done
	chmod +x "$d"/gcc "$d"/g++ "$d"/clang*
	if [ "$RUN" ]; then
		printf '#!/bin/sh\nexec gdb-multiarch -nx -iex "source %s" "$@"\n' "$TESTS/lib/qemu_gdb.py" >"$d/gdb"
		chmod +x "$d/gdb"
	fi
	export PATH=$d:$PATH TARGET RUN
}

# can_trace: whether gdb runs programs here, and knows Python.  Leaves files called traced.
can_trace() {
	echo 'int main(void) { return 0; }' >traced.c
	"${CC:-gcc}" traced.c -o traced 2>traced.log &&
		gdb -nx -batch -ex 'python print(6 * 7)' -ex run -ex 'python print(gdb.parameter("width"))' traced 2>/dev/null | grep -q 'exited normally'
}

# core_of OUT PROGRAM [ARG...]: the core that the kernel, or qemu, leaves of a crash, if it does.  PROGRAM is an absolute path.
core_of() {
	local out=$1
	shift
	rm -rf dump && mkdir dump
	# shellcheck disable=SC2086
	( (cd dump && ulimit -S -c unlimited && exec $RUN "$@"); :) >/dev/null 2>&1 # whose end the inner shell tells of
	# Some kernels leave one of qemu itself, too.
	set -- dump/qemu_*.core dump/*core*
	[ -s "$1" ] || shift
	[ -s "$1" ] && mv "$1" "$out"
}

# for_target SUITE (after make_work): use_target for $TARGET, if that is set; without the tools the suite ends.
for_target() {
	local bad
	[ -n "${TARGET:-}" ] || return 0
	bad=$(use_target "$TARGET")
	[ -z "$bad" ] || { skip "$1" "$bad"; finish; }
	use_target "$TARGET"
}

# --- fixtures -------------------------------------------------------------------------------------------------------
# A fixture is a folder with sources, the transcripts it must print (expected, expected.strict, expected.plugin) and a
# recipe, which is sourced.  The recipe sets:
#   sources          files; libs, ldflags, ldflags_exec (PIE and no-PIE only), ldflags_so: for linking
#   cflags           for all files; cflags_NAME_EXT for one; cxx_std
#   plugin           source of a library that the program opens, its path being the first argument; plugin_ldflags
#   machines         those that its sources are for, if not all
#   shrinks          no when --icf=all need not find anything to fold in it
#   strict_arg       argument that makes the transcript depend on function addresses being distinct
all_fixtures() { (cd "$FIXTURES" && for r in */recipe; do echo "${r%/recipe}"; done); }

load_recipe() { # NAME
	dir=$FIXTURES/$1
	sources='' libs='' ldflags='' ldflags_exec='' ldflags_so='' cflags='' cxx_std=c++17
	# shellcheck disable=SC2034
	plugin='' plugin_ldflags='' strict_arg='' shrinks=yes machines=
	unset "${!cflags_@}"
	# shellcheck disable=SC1091
	. "$dir/recipe"
}

compiler_of() { # COMPILER FILE: the driver for the file's language
	case $1:$2 in
	gcc:*.cc) echo g++ ;;
	clang:*.cc) echo clang++ ;;
	clang-*:*.cc) echo "clang++-${1#clang-}" ;;
	*) echo "$1" ;;
	esac
}

# linker_driver COMPILER: the driver that links the program; a C++ file makes the program C++.
linker_driver() { # COMPILER
	case " $sources " in *.cc\ *) compiler_of "$1" x.cc ;; *) compiler_of "$1" x.c ;; esac
}

pic_flags() { # TYPE
	case $1 in
	pie) echo "-fPIE" ;;
	nopie) echo "-fno-pic" ;;
	static) echo "-fno-pic -DFIXTURE_STATIC" ;;
	staticpie) echo "-fPIE -DFIXTURE_STATIC" ;;
	so) echo "-fPIC -DFIXTURE_SO" ;;
	plugin) echo "-fPIC" ;;
	esac
}

link_flags() { # TYPE
	case $1 in
	pie) echo "-pie" ;;
	nopie) echo "-no-pie" ;;
	static) echo "-no-pie -static" ;;
	staticpie) echo "-static-pie" ;;
	so | plugin) echo "-shared" ;;
	esac
}

# compile_fixture COMPILER FLAGS TYPE OUTDIR (after load_recipe): objects for the program, and for its plugin.
compile_fixture() {
	local cc=$1 flags=$2 type=$3 out=$4 s base std extra driver kinds kind list
	mkdir -p "$out/$type" "$out/plugin"
	kinds=$type
	[ -n "$plugin" ] && kinds="$kinds plugin"
	for kind in $kinds; do
		list=$sources
		[ "$kind" = plugin ] && list=$plugin
		for s in $list; do
			base=${s//[.-]/_}
			extra=cflags_$base
			std=-std=gnu17
			case $s in *.cc) std=-std=$cxx_std ;; *.S) std= ;; esac
			driver=$(compiler_of "$cc" "$s")
			# shellcheck disable=SC2046,SC2086
			"$driver" $std $flags $(pic_flags "$kind") -w $cflags ${!extra:-} -c "$dir/$s" -o "$out/$kind/$base.o" || return 1
		done
	done
}

# link_fixture COMPILER LINKER TYPE OBJDIR OUT [FLAG...]: the program or library OUT and, when there is one, OUT.plugin.so.
# RELOCS=no: without --emit-relocs.
link_fixture() {
	local cc=$1 ld=$2 type=$3 obj=$4 out=$5 extra relocs=-Wl,--emit-relocs
	shift 5
	[ "${RELOCS:-yes}" = no ] && relocs=
	case $type in
	so) extra=$ldflags_so ;;
	pie | nopie) extra=$ldflags_exec ;;
	*) extra= ;;
	esac
	# shellcheck disable=SC2046,SC2086
	"$(linker_driver "$cc")" -fuse-ld="$ld" $relocs -Wl,--build-id $(link_flags "$type") $ldflags $extra "$@" \
		"$obj/$type"/*.o -o "$out" $libs || return 1
	case $type in static | staticpie) return 0 ;; esac
	[ -z "$plugin" ] && return 0
	# shellcheck disable=SC2046,SC2086
	"$(compiler_of "$cc" "$plugin")" -fuse-ld="$ld" $relocs -Wl,--build-id -shared $plugin_ldflags "$@" \
		"$obj/plugin"/*.o -o "$out.plugin.so"
}

# linker_limit LOG: a known limit of a linker, recognised by the linker's message; empty for any other failure, which then counts.
linker_limit() { # LOG
	if grep -q -- '--no-dynamic-linker: unknown option' "$1"; then
		echo "gold does not know static-PIE"
	elif grep -q 'get_output_sym_idx.*Assertion' "$1"; then
		echo "mold stops with an assertion when --emit-relocs meets this object"
	elif grep -q "against STT_GNU_IFUNC symbol .* isn't handled by elf64_aarch64_final_link_relocate" "$1"; then
		echo "bfd does not know the address of an IFUNC in a PIE"
	elif grep -qE 'invalid linker name|cannot find .ld.|unable to find|unrecognized.*-fuse-ld' "$1"; then
		echo "the linker is not installed"
	fi
}

# run_program TRANSCRIPT TYPE PROGRAM [ARG...]: exit status of the program; a library runs under the driver.
# shellcheck disable=SC2086
run_program() {
	local out=$1 type=$2 prog=$3
	shift 3
	if [ "$type" = so ]; then
		timeout 300 $RUN "$WORK/driver" "$prog" "$@" >"$out" 2>&1 </dev/null
	else
		timeout 300 $RUN "$prog" "$@" >"$out" 2>&1 </dev/null
	fi
}
make_driver() { "${CC:-gcc}" -O1 "$FIXTURES/driver.c" -o "$WORK/driver" -ldl; }

# check_transcripts TYPE PROGRAM LOOSE: runs PROGRAM (after load_recipe) in all its ways; prints what differs, empty when
# all is well.  LOOSE is 1 when addresses of different functions may be the same.
check_transcripts() {
	local type=$1 prog=$2 loose=$3 out=$2.transcript rc want=$dir/expected
	local args=()
	case $type in
	static | staticpie) ;;
	*) if [ -n "$plugin" ]; then args=("$prog.plugin.so") want=$dir/expected.plugin; fi ;;
	esac
	run_program "$out" "$type" "$prog" ${args[@]+"${args[@]}"}
	rc=$?
	if [ $rc != 0 ]; then
		echo "exit status $rc after: $(tail -n 1 "$out" | cut -c 1-100)"
		return
	fi
	if ! cmp -s "$want" "$out"; then
		echo "transcript: $(diff "$want" "$out" | sed -n 2,3p | tr '\n' ' ' | cut -c 1-160)"
		return
	fi
	if [ -z "$strict_arg" ] || [ "$loose" = 1 ]; then return; fi
	run_program "$out" "$type" "$prog" "$strict_arg"
	rc=$?
	if [ $rc != 0 ]; then
		echo "strict: exit status $rc"
	elif ! cmp -s "$dir/expected.strict" "$out"; then
		echo "strict transcript: $(diff "$dir/expected.strict" "$out" | sed -n 2,3p | tr '\n' ' ' | cut -c 1-160)"
	fi
}

# --- judges ---------------------------------------------------------------------------------------------------------
# complaints FILE: how often each kind of complaint is made about FILE, numbers left out: "COUNT TEXT" lines.
# elflint tests a section's file offset even if the section has no bytes in the file (NOBITS).  So its complaints about mold's
# .copyrel and .bss depend on the bytes that happen to be at that offset.
# clang's mapping symbols in debug sections keep their offsets, also in sections that got smaller.
complaints() {
	local f=$1
	{
		! have eu-elflint || eu-elflint --gnu-ld "$f" 2>&1 | grep -avH --label=elflint -e '^No errors$' -e 'symbol [0-9]* (\$d[.0-9]*): st_value out of bounds'
		readelf -aW "$f" 2>&3 | grep -aHE --label=readelf '<corrupt|<unknown|Warning|Error|<invalid'
		! have eu-readelf || eu-readelf -a "$f" 2>&3 | grep -aHE --label=eu-readelf '<INVALID|\?\?\?|<unknown|<invalid'
		objdump -d "$f" 2>&3 | grep -aoH --label=objdump '(bad)'
		readelf --debug-dump=frames "$f" 2>&1 >/dev/null
	} 3>"$f.judge" | cat - "$f.judge" | sed -E "s#$f#FILE#g; s/0x[0-9a-fA-F]+/N/g; s/\b[0-9a-f]{8,16}\b/N/g; s/[0-9]+/N/g; s/ +/ /g; s/^(([a-z-]+):section \[ ?N\])/\1/;
		s/^(elflint:section \[N\] '\.(copyrel|bss)') (not fully contained in|has type NOBITS but is read from the file in) .*/\1 \(NOBITS\) and segments/" |
		sort | uniq -c
	rm -f "$f.judge"
}

# new_complaints IN OUT (files written by complaints): kinds that OUT has more of.
new_complaints() {
	awk '{ n = $1; $1 = "" } NR == FNR { was[$0] = n; next } n > was[$0] + 0 { print n - was[$0] " more of:" $0 }' "$1" "$2"
}

# fixture_fits: does the fixture (after load_recipe) have sources for the target?
fixture_fits() { [ -z "$machines" ] || [[ " $machines " == *" $MACHINE "* ]]; }

# mnemonics FILE: the program as instructions, addresses taken out: labels, mnemonics, and operands without numbers that
# depend on where something lies.  Direct branches keep the name and the offset of what they reach.
mnemonics() {
	if [ "$MACHINE" = aarch64 ]; then
		mnemonics_aarch64 "$1"
		return
	fi
	objdump -d --no-show-raw-insn -w "$1" 2>/dev/null | awk '
		# Gold pads with a jump over no-ops to the next function.  Such a jump is printed only if other code follows.
		function release(drop) { if (held != "" && !drop) print held; held = ""; printf "%s", labels; labels = "" }
		function after(a, b) { return length(a) > length(b) || (length(a) == length(b) && (a "") > (b "")) }
		# objdump makes up the names in a PLT.
		/^Disassembly of section/ { plt = /\.i?plt/ }
		/^[0-9a-f]+ <.*>:$/ { sub(/^[0-9a-f]+ /, ""); if (plt) next; if (held != "") labels = labels $0 "\n"; else print; next }
		!/^ *[0-9a-f]+:\t/ { next }
		{ at = $1; sub(/:$/, "", at); sub(/^ *[0-9a-f]+:\t/, "") }
		/^(data16 |cs )*(nop|int3|xchg +%ax,%ax)/ || /^add +%al,\(%rax\)/ || /^\.byte 0x0/ { gap = 1; next }
		# The rest of a no-op that was cut reads as another instruction.
		gap && /^(add +%cl,\(%rdi\)|\(bad\)|test +%al,\(%rax\)|addb +\$0x0,\(%rax\))/ { next }
		{ release(gap && after(target, from) && !after(target, at)); gap = 0 }
		/^(bnd |notrack |addr32 |data16 )*(call|j[a-z]+|loop[a-z]*|xbegin)q? +[0-9a-f]+ </ && !plt {
			jump = $1 == "jmp"; target = $2; from = at
			sub(/[0-9a-f]+ </, "<"); sub(/\*ABS\*\+0x[0-9a-f]+/, "*ABS*")
			if (jump) held = $0; else print
			next
		}
		{
			if (plt) sub(/ [0-9a-f]+ <.*/, "")
			sub(/ *(#|<).*/, "")
			gsub(/-?0x[0-9a-f]+\(%[re]ip\)/, "N(%rip)")
			gsub(/0x[0-9a-f][0-9a-f][0-9a-f][0-9a-f]+/, "N")
			print
		}
		END { release(0) }'
}

# The same for AArch64: halves of addresses and their pages are left out, and branches keep the name and the offset.  An offset behind
# the end of the function counts from whatever precedes the target: code without a name (bfd puts stubs a page behind the last function).
mnemonics_aarch64() {
	{ readelf -sW "$1" | awk '$4 == "FUNC" { print "size", $8, $3 }'; objdump -d --no-show-raw-insn -w "$1"; } 2>/dev/null | awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$1 == "size" && NF == 3 { if ($3 + 0 > size[$2]) size[$2] = $3 + 0; next }
		/^Disassembly of section/ { plt = /\.i?plt/ }
		/^[0-9a-f]+ <.*>:$/ { sub(/^[0-9a-f]+ /, ""); if (!plt) print; next }
		!/^ *[0-9a-f]+:\t/ { next }
		{ sub(/^ *[0-9a-f]+:\t/, ""); sub(/ *\/\/.*/, "") }
		/^(nop|udf\t#0|brk\t#0x1cf|\.\.\.)/ { next }
		/^(adrp?|ldr|add|str)/ { if (/^adrp?/ || /#0x/) { sub(/#.*/, "N"); sub(/[0-9a-f]+ <.*/, "N") } if (plt) next; sub(/[0-9a-f]+ <.*/, "N"); print; next }
		# objdump makes up names for entries of the PLT, also behind it.
		/^(b\.|cb|tb)/ { sub(/[0-9a-f]+ <.*/, "N") }
		{ if (plt) next; sub(/[0-9a-f]+ </, "<"); sub(/<.*@plt.*>/, "<plt>") }
		match($0, /\+0x[0-9a-f]+>$/) {
			name = substr($0, 1, RSTART - 1); sub(/.*</, "", name)
			if (size[name] && hex(substr($0, RSTART + 3, RLENGTH - 4)) >= size[name]) $0 = substr($0, 1, RSTART) "N>"
		}
		{ print }'
}

# functions FILE: the names of its defined functions and labels, sorted; a name that occurs twice is there twice.  A folded
# function's name is a label at the shared code.
functions() {
	readelf -sW "$1" 2>/dev/null | awk '/^Symbol table/ { on = /\.symtab/ } on && ($4 == "FUNC" || $4 == "IFUNC" || ($4 == "NOTYPE" && $8)) && $7 != "UND" && $7 != "ABS" { print $8 }' | sort
}

# stray_functions FILE: functions whose value lies in no executable section (one past its end is allowed to a size of 0).
stray_functions() {
	{ readelf -SW "$1"; readelf -sW "$1"; } 2>/dev/null | sed 's/^ *\[ *\([0-9]*\)\]/[\1]/' | awk '
		function hex(s, i, v) { v = 0; s = tolower(s); for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		/^\[[0-9]+\] \./ || /^\[[0-9]+\] [A-Za-z_]/ { if ($8 ~ /X/) { n++; lo[n] = hex($4); hi[n] = lo[n] + hex($6) } next }
		($4 == "FUNC" || $4 == "IFUNC") && $7 != "UND" {
			v = hex($2); good = 0
			for (i = 1; i <= n; i++) if (v >= lo[i] && (v < hi[i] || ($3 + 0 == 0 && v == hi[i]))) good = 1
			if (!good) print $8
		}'
}

# unwind_ranges FILE: "START END OFFSET" (decimal) of every FDE in .eh_frame, in file order.
unwind_ranges() {
	readelf --debug-dump=frames "$1" 2>/dev/null | awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		/^Contents of the / { on = $4 == ".eh_frame" }
		on && $4 == "FDE" { sub(/^pc=/, "", $6); split($6, r, /\.\./); printf "%.0f %.0f %.0f\n", hex(r[1]), hex(r[2]), hex($1) }'
}

# unwind_problems FILE: what is wrong with .eh_frame and the search table of .eh_frame_hdr, one line a problem.
unwind_problems() {
	local hdr
	hdr=$(readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk '$1 == ".eh_frame_hdr" { print $3, $4, $5 }')
	{
		readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk '$7 ~ /X/ { print "code", $3, $5 } $1 == ".eh_frame" { print "frame", $3 } $1 == ".eh_frame_hdr" { print "hdr", $3 }'
		unwind_ranges "$1" | sort -n | sed 's/^/fde /'
		# shellcheck disable=SC2086
		[ -n "$hdr" ] && set -- "$1" $hdr && od -An -v -w8 -td4 -j $((0x$3)) -N $((0x$4)) "$1" | sed 's/^/word /'
	} | awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		function say(t) { if (!(t in said)) print t; said[t] = 1 }
		$1 == "code" { lo[++n] = hex($2); hi[n] = lo[n] + hex($3) }
		$1 == "frame" { frame = hex($2) }
		$1 == "hdr" { hdr = hex($2) }
		$1 == "fde" {
			fdes++; at[frame + $4] = $2
			good = 0
			for (i = 1; i <= n; i++) if ($2 >= lo[i] && $3 <= hi[i]) good = 1
			if (!good && $3 > $2) say("an FDE lies outside of the code")
			if ($2 < end && $3 > $2) say("FDEs overlap")
			if ($3 > end) end = $3
		}
		# Pairs of words: (encodings, pointer to .eh_frame), (count, first start), (first FDE, second start), ...
		$1 == "word" {
			w++
			if (w == 1) { if ($2 != 990059265) say("encodings of .eh_frame_hdr"); if (hdr + 4 + $3 != frame) say(".eh_frame_hdr does not point to .eh_frame"); next }
			if (w == 2) count = $2; else entry(start, $2)
			start = $3
		}
		function entry(pc, fde) {
			entries++
			if (entries > count) return
			if (entries > 1 && pc <= last) say("the table of .eh_frame_hdr is not sorted")
			last = pc
			if (!((hdr + fde) in at)) say("the table of .eh_frame_hdr names no FDE")
			else if (at[hdr + fde] != hdr + pc) say("the table of .eh_frame_hdr gives another start than the FDE")
		}
		END { if (hdr && count != fdes) say(".eh_frame_hdr has " count " entries for " fdes " FDEs") }'
}

# covered_functions FILE: the names of the functions whose first byte some FDE covers.
covered_functions() {
	{
		unwind_ranges "$1" | sort -n | sed 's/^/fde /'
		readelf -sW "$1" 2>/dev/null | awk '/^Symbol table/ { on = /\.symtab/ } on && ($4 == "FUNC" || $4 == "NOTYPE") && $7 != "UND" && $8 && $8 !~ /^(__(start|stop)_|\$d)/ { print $2, $8 }' | sort | sed 's/^/sym /'
	} | awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$1 == "fde" { lo[++n] = $2; hi[n] = $3 }
		$1 == "sym" { v = hex($2); if (!i) i = 1; while (i <= n && hi[i] <= v) i++; if (i <= n && lo[i] <= v) print $3 }' | sort
}

# code_bytes FILE: the size of its executable sections.
code_bytes() {
	readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$7 ~ /X/ { sum += hex($5) } END { print sum + 0 }'
}
file_bytes() { wc -c <"$1" | tr -d ' '; }

# symbol_value FILE NAME: in .symtab, as hex without leading zeros; nothing when it is not there or not unique.
symbol_value() {
	readelf -sW "$1" 2>/dev/null | awk -v name="$2" '/^Symbol table/ { on = /\.symtab/ } on && $8 == name && $7 != "UND" { v = $2; n++ }
		END { if (n == 1) { sub(/^0+/, "", v); print v } }'
}
# well_known FILE: the addresses that headers and the dynamic table hold, each with the symbol that it must equal.
well_known() {
	local f=$1 v
	v=$(readelf -hW "$f" | awk '/Entry point address:/ { print $4 }')
	[ "$v" != 0x0 ] && echo "entry ${v#0x} $(symbol_value "$f" _start)"
	readelf -dW "$f" 2>/dev/null | awk '$2 == "(INIT)" { print "init " $3 } $2 == "(FINI)" { print "fini " $3 }' |
		while read -r what v; do echo "$what ${v#0x} $(symbol_value "$f" "_$what")"; done
}

# --- the command line
tool_commands() { sed -n 's/^	*{ "\([a-z-]*\)", icf_cmd_.*/\1/p' "$ROOT/icf/cmd/main.c"; }
# help_options COMMAND: long and short options of its --help, one a line, sorted.
help_options() {
	"$ICFOLD" "$1" --help | sed '/^Commands:/,/^$/d' | sed -nE 's/^ {2,8}(-[^ ].*)$/\1/p' | sed 's/  .*//' | grep -oE -- '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,' | sort -u
}
