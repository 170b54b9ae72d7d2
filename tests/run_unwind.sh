#!/bin/bash
# run_unwind.sh: stacks of folded programs as outsiders see them: backtrace(3) with names, gdb without debug information,
# and the unwind tables themselves.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
need_tool unwind
make_work

# Frames as "name" lines; the copies _a and _b may stand for each other.
frames() { sed -E 's/_[ab]$//'; }

gdb_frames() { # PROGRAM [BREAKPOINT [STOPS]]
	local stop=${2:-stop_here} n=${3:-10} i
	{
		echo "set confirm off"
		echo "set pagination off"
		echo "set debuginfod enabled off"
		echo "break $stop"
		echo "run"
		for ((i = 0; i < n; i++)); do
			echo "bt"
			echo "echo ----\\n"
			echo "continue"
		done
	} >"$WORK/gdb.in"
	timeout 60 gdb -nx -batch -x "$WORK/gdb.in" "$1" 2>"$WORK/gdb.err" </dev/null |
		sed -nE 's/^#[0-9]+ +(0x[0-9a-f]+ in )?([^ ]+) \(.*/\2/p; /^----$/p' | frames
}

gdb=1
if ! have gdb; then
	gdb=0
	skip unwind/gdb "no gdb"
elif ! timeout 60 gdb -nx -batch -ex run /bin/true 2>&1 </dev/null | grep -q 'exited normally'; then
	gdb=0
	skip unwind/gdb "gdb cannot run programs here"
fi
for cc in gcc clang; do
	have $cc || { skip "unwind/$cc" "no $cc"; continue; }
	for ld in bfd gold lld mold; do
		for kind in pie nopie; do
			name=unwind/$cc.$ld.$kind
			load_recipe unwind
			if [ ! -d "$WORK/$cc.$kind" ] && ! compile_fixture $cc -O2 $kind "$WORK/$cc.$kind" >"$WORK/log" 2>&1; then
				not_ok "$name" "does not compile: $(first_line "$WORK/log")"
				continue
			fi
			in=$WORK/in
			if ! link_fixture $cc $ld $kind "$WORK/$cc.$kind" "$in" >"$WORK/log" 2>&1; then
				limit=$(linker_limit "$WORK/log")
				if [ -n "$limit" ]; then skip "$name" "$limit"; else not_ok "$name" "does not link: $(first_line "$WORK/log")"; fi
				continue
			fi
			[ $gdb = 1 ] && gdb_frames "$in" >"$in.frames"
			if [ $gdb = 1 ] && [ "$(grep -c '^main$' "$in.frames")" != 10 ]; then
				not_ok "$name" "gdb does not reach main ten times in the unfolded program: $(first_line "$WORK/gdb.err")"
				continue
			fi
			unwind_problems "$in" >"$in.problems"
			covered_functions "$in" >"$in.covered"
			for mode in none safe all; do
				out=$WORK/out
				if ! "$ICFOLD" -q --icf=$mode "$in" -o "$out" 2>"$WORK/log"; then
					not_ok "$name/$mode" "$(first_line "$WORK/log")"
					continue
				fi
				bad=$(check_transcripts $kind "$out" 1)
				if [ -n "$bad" ]; then
					not_ok "$name/$mode" "$bad"
					continue
				fi
				if [ $gdb = 1 ]; then
					gdb_frames "$out" >"$out.frames"
					if ! cmp -s "$in.frames" "$out.frames"; then
						not_ok "$name/$mode" "gdb: other frames: $(diff "$in.frames" "$out.frames" | sed -n 2,4p | tr '\n' ' ')"
						continue
					fi
				fi
				bad=$(unwind_problems "$out" | comm -23 - "$in.problems" | head -n 1)
				[ -z "$bad" ] && bad=$(covered_functions "$out" | comm -23 "$in.covered" - | head -n 3 | tr '\n' ' ')
				[ -z "$bad" ] && bad=$(readelf --debug-dump=frames "$out" 2>&1 >/dev/null | head -n 1)
				if have eu-readelf && [ -z "$bad" ]; then bad=$(eu-readelf --debug-dump=frames "$out" 2>&1 >/dev/null | head -n 1); fi
				if [ -n "$bad" ]; then not_ok "$name/$mode" "$bad"; else ok "$name/$mode"; fi
			done
		done
	done
done

# An exception on its way through every folded frame, seen from inside: gdb stops at the throw.
load_recipe eh
if [ $gdb = 0 ]; then
	skip unwind/throw "no gdb"
elif compile_fixture gcc -O2 pie "$WORK/eh" && link_fixture gcc bfd pie "$WORK/eh" "$WORK/in"; then
	gdb_frames "$WORK/in" __cxa_throw 40 | sed 's/::[a-z_]*$//' >"$WORK/in.frames"
	for mode in none safe all; do
		if ! "$ICFOLD" -q --icf=$mode "$WORK/in" -o "$WORK/out" 2>"$WORK/log"; then
			not_ok "unwind/throw/$mode" "$(first_line "$WORK/log")"
			continue
		fi
		gdb_frames "$WORK/out" __cxa_throw 40 | sed 's/::[a-z_]*$//' >"$WORK/out.frames"
		# Names of folded functions may be their twins': the number of frames at each stop may not change.
		awk '/^----/ { print n; n = 0; next } { n++ }' "$WORK/in.frames" >"$WORK/in.depths"
		awk '/^----/ { print n; n = 0; next } { n++ }' "$WORK/out.frames" >"$WORK/out.depths"
		check "unwind/throw/$mode" "gdb sees other depths" bash -c '[ "$(wc -l <"$1.depths")" -ge 40 ] && cmp -s "$1.depths" "$2.depths"' - "$WORK/in" "$WORK/out"
	done
else
	not_ok unwind/throw "does not build"
fi
finish
