#!/bin/bash
# matrix.sh: every fixture, built by real compilers and linkers, folded and run again.  Judges: the program's transcript, elflint,
# readelf, eu-readelf, objdump, and verify.
#
# Axes: fixture, compiler, linker, optimisation, kind of output, -ffunction-sections, debug information.  By default a selection in
# which every pair of values occurs.  MATRIX=triples adds every triple of compiler, linker, kind; of linker, optimisation, kind; and
# of fixture, compiler, linker.  MATRIX=full runs all.  A combination prints one line, and one more for each thing that is wrong.
#   matrix.sh            run              matrix.sh --list     print the combinations
#   matrix.sh --bless F  write fixtures/F/expected* from the unfolded gcc -O2 build
# TARGET=aarch64: for that machine, by cross compilers, run by qemu.
# JUDGED=FILE: notes there which outputs were found good, and does not judge the same bytes again, only folds and verifies.  For running all
# of it in parts, and once more after a change.
# ONLY=REGEX limits a run to combinations with such names, PIECE=3/20 to the third of twenty parts.  FLAGS: more of them, for compiling
# and linking.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

COMPILERS=${COMPILERS:-gcc clang}
LINKERS=${LINKERS:-bfd gold lld mold}

list_combinations() {
	awk -v full="${MATRIX:-quick}" -v fixtures="$(all_fixtures | tr '\n' ' ')" -v ccs="$COMPILERS" -v lds="$LINKERS" '
	function goals(c, out, v, i, j, n) {
		split(c, v, " "); n = 0
		for (i = 1; i <= 7; i++) for (j = i + 1; j <= 7; j++) out[++n] = i v[i] "," j v[j]
		if (full == "triples") { out[++n] = "t" v[2] v[3] v[5]; out[++n] = "u" v[3] v[4] v[5]; out[++n] = "v" v[1] v[2] v[3] }
		return n
	}
	BEGIN {
		nf = split(fixtures, F, " "); nc = split(ccs, C, " "); nl = split(lds, L, " ")
		no = split("O0 O2 Os", O, " "); nt = split("pie nopie static staticpie so", T, " ")
		ns = split("fs plain", S, " "); nd = split("nodebug debug", D, " ")
		for (f = 1; f <= nf; f++) for (c = 1; c <= nc; c++) for (o = 1; o <= no; o++) for (t = 1; t <= nt; t++)
		for (s = 1; s <= ns; s++) for (l = 1; l <= nl; l++) for (d = 1; d <= nd; d++) {
			if (full == "full" && (f + c + o + t + s + l) % 2 != d - 1) continue
			all[++n] = F[f] " " C[c] " " L[l] " " O[o] " " T[t] " " S[s] " " D[d]
			# gold cannot link static-PIE: only a full run tries and says so.
			if (full != "full" && L[l] == "gold" && T[t] == "staticpie") n--
		}
		if (full == "full") { for (i = 1; i <= n; i++) print all[i]; exit }
		for (i = 1; i <= n; i++) { m = goals(all[i], g); for (k = 1; k <= m; k++) { if (!(g[k] in open)) { open[g[k]] = 1; left++ } goal[i, k] = g[k] } }
		# Greedy choice: the combination that covers most open goals, the first among equals.
		while (left > 0) {
			best = 0; score = 0
			for (i = 1; i <= n; i++) {
				if (gain[i] != "" && gain[i] <= score) continue
				x = 0
				for (k = 1; k <= m; k++) x += open[goal[i, k]]
				gain[i] = x
				if (x > score) { score = x; best = i }
			}
			if (!best) break
			print all[best]
			for (k = 1; k <= m; k++) if (open[goal[best, k]]) { open[goal[best, k]] = 0; left-- }
		}
	}' /dev/null
}

# Does a relocation of a call lie on another instruction?  gold gives those of .text.unlikely the offsets of another section's part.
lost_relocations() {
	objdump -drw --no-show-raw-insn "$1" 2>/dev/null | awk '/R_AARCH64_(CALL26|JUMP26)/ { if (op != "b" && op != "bl") lost = 1 }
		/^ +[0-9a-f]+:\t/ && !/R_AARCH64/ { op = $2 } END { exit !lost }'
}

# check_output NAME IN OUT MODE TYPE: everything that must hold of OUT, besides running.
check_output() {
	local name=$1 in=$2 out=$3 mode=$4 bad
	complaints "$out" >"$out.complaints"
	bad=$(new_complaints "$in.complaints" "$out.complaints" | head -n 1)
	[ -n "$bad" ] && echo "new complaint: $bad"
	bad=$(functions "$out" | comm -23 "$in.functions" - | head -n 3 | tr '\n' ' ')
	[ -n "$bad" ] && echo "functions lost from .symtab: $bad"
	bad=$(stray_functions "$out" | head -n 3 | tr '\n' ' ')
	[ -n "$bad" ] && [ -z "$(stray_functions "$in")" ] && echo "functions outside of code: $bad"
	bad=$(well_known "$out" | awk 'NF == 3 && $2 != $3')
	[ -n "$bad" ] && [ -z "$(well_known "$in" | awk 'NF == 3 && $2 != $3')" ] && echo "wrong address: $bad"
	if [ ! -s "$in.unwind" ]; then
		bad=$(unwind_problems "$out" | head -n 1)
		[ -n "$bad" ] && echo "unwinding: $bad"
	fi
	bad=$(covered_functions "$out" | comm -23 "$in.covered" - | head -n 3 | tr '\n' ' ')
	[ -n "$bad" ] && echo "functions without unwind data: $bad"
	# GNU property and probe notes: as many, and each probe on its no-op.
	bad=$(probes "$in" "$out")
	[ -n "$bad" ] && echo "$bad"
	if [ "$mode" = none ]; then
		mnemonics "$out" >"$out.mnemonics"
		if ! cmp -s "$in.mnemonics" "$out.mnemonics"; then
			echo "other instructions: $(diff "$in.mnemonics" "$out.mnemonics" | sed -n 2,3p | tr '\n\t' '  ')"
		fi
	elif [ "$MACHINE" != x86_64 ] && [ "$mode" = all ] && [ "$shrinks" = yes ] && [ "${RELOCS:-yes}$5" != nonopie ]; then
		# Code whose address is in a switch by labels stays, and so may the end of a small program.  Without relocations, all of the
		# code that is hard to understand can (GCC returns with a page of constants in x0, which small programs have on a page
		# with code); and in gold's order that code is near all of the rest, if it is one section.
		case ${RELOCS:-yes}.$name in no.asm_a64.* | no.switches.* | no.literals.gcc.bfd.O0.so.* | no.literals.gcc.gold.O0.so.* | yes.asm_a64.*.gold.*.plain.*) return ;; esac
		"$ICFOLD" dump --groups "$out" 2>/dev/null | grep -qw folded || lost_relocations "$in" || echo "nothing is folded"
	elif [ "$mode" = all ] && [ "$shrinks" = yes ] && [ "${RELOCS:-yes}" = yes ] && [ "$(code_bytes "$out")" -ge "$(code_bytes "$in")" ]; then
		echo "no less code: $(code_bytes "$in") before, $(code_bytes "$out") after"
	fi
	# A file that is folded in place does not get smaller, and gets .debug_icfold.
	[ "${RELOCS:-yes}" = yes ] && [ "$(file_bytes "$out")" -gt "$(file_bytes "$in")" ] && echo "a larger file"
}

# probes IN OUT: SystemTap notes of OUT that are missing or do not name a no-op.
probes() {
	local n m a
	n=$(readelf -nW "$1" 2>/dev/null | grep -c 'Location: 0x')
	[ "$n" = 0 ] && return
	m=$(readelf -nW "$2" 2>/dev/null | grep -c 'Location: 0x')
	[ "$n" = "$m" ] || echo "probes: $n before, $m after"
	for a in $(readelf -nW "$2" 2>/dev/null | sed -n 's/.*Location: \(0x[0-9a-f]*\).*/\1/p'); do
		objdump -d --start-address="$a" --stop-address="$((a + 4))" "$2" 2>/dev/null | grep -q '	nop' || echo "probe at $a is on no no-op"
	done
}

# what_is_judged NAME DIR MODE: the folded files, their inputs, and what they are judged by, as one line.
what_is_judged() {
	local f n
	n=$(for f in "$TESTS"/suites/program/matrix.sh "$TESTS"/lib.sh "$TESTS"/lib/*.sh "$dir"/recipe "$dir"/expected* "$2"/in "$2"/in.plugin.so "$2/$3"/out*; do
		[ -f "$f" ] && sha256sum <"$f"
	done | sha256sum)
	echo "$1/$3 ${n%% *}"
}

# measure_input IN: what outputs are compared with.
measure_input() {
	complaints "$1" >"$1.complaints"
	functions "$1" >"$1.functions"
	mnemonics "$1" >"$1.mnemonics"
	unwind_problems "$1" >"$1.unwind"
	covered_functions "$1" >"$1.covered"
}

# judge_one FIXTURE COMPILER LINKER OPT TYPE SECTIONS DEBUG OBJECTS
judge_one() {
	local type=$5 name=$1.$2.$3.$4.$5.$6.$7 d mode limit bad opts copy loose to
	d=$WORK/$name
	mkdir -p "$d"
	# shellcheck disable=SC2086
	if ! link_fixture "$2" "$3" "$type" "$8" "$d/in" ${FLAGS-} >"$d/link.log" 2>&1; then
		limit=$(linker_limit "$d/link.log")
		if [ -n "$limit" ]; then skip "$name" "$limit"; else not_ok "$name" "does not link: $(first_line "$d/link.log")"; fi
		return
	fi
	bad=$(check_transcripts "$type" "$d/in" 0)
	if [ -n "$bad" ]; then
		# Static C++ programs that gold links for AArch64 stop at their first exception.
		if [ "$MACHINE.$3.$type" = aarch64.gold.static ]; then skip "$name" "what gold links does not run"; else not_ok "$name" "unfolded: $bad"; fi
		return
	fi
	local before=$failures key='' wrong
	for mode in none safe all; do
		mkdir -p "$d/$mode"
		opts="--icf=$mode"
		[ "$7" = debug ] && opts="$opts ${DEBUG_OPTION-}"
		# shellcheck disable=SC2086
		if ! timeout 400 "$ICFOLD" -q $opts "$d/in" -o "$d/$mode/out" >"$d/$mode/log" 2>&1; then
			not_ok "$name/$mode" "icfold: $(first_line "$d/$mode/log")"
			continue
		fi
		[ -s "$d/$mode/log" ] && not_ok "$name/$mode" "-q prints $(first_line "$d/$mode/log")"
		if [ -e "$d/in.plugin.so" ]; then
			# shellcheck disable=SC2086
			if ! timeout 400 "$ICFOLD" -q $opts "$d/in.plugin.so" -o "$d/$mode/out.plugin.so" >"$d/$mode/log" 2>&1; then
				not_ok "$name/$mode" "icfold on the plugin: $(first_line "$d/$mode/log")"
				continue
			fi
		fi
		if [ -n "${TARGET:-}" ] && ! "$ICFOLD" verify --icf="${mode/none/safe}" "$d/in" "$d/$mode/out" >"$d/$mode/log" 2>&1; then
			not_ok "$name/$mode" "verify: $(grep ': ' "$d/$mode/log" | grep -v '^symb\|^resol' | head -n 1 | cut -c 1-200)"
		fi
		[ -n "${JUDGED:-}" ] && key=$(what_is_judged "$name" "$d" $mode)
		grep -qsxF -- "$key" "${JUDGED:-/dev/null}" && continue
		[ -e "$d/in.covered" ] || measure_input "$d/in"
		wrong=$failures loose=0
		[ $mode = all ] && loose=1
		bad=$(check_transcripts "$type" "$d/$mode/out" $loose)
		[ -n "$bad" ] && not_ok "$name/$mode" "$bad"
		while IFS= read -r bad; do
			not_ok "$name/$mode" "$bad"
		done < <(check_output "$name" "$d/in" "$d/$mode/out" "$mode" "$type")
		for copy in strip objcopy; do
			[ "$mode" = safe ] && continue
			to=()
			[ $copy = strip ] && to=(-o)
			if ! "$copy" "$d/$mode/out" ${to[@]+"${to[@]}"} "$d/$mode/$copy" 2>"$d/$mode/log"; then
				not_ok "$name/$mode" "$copy: $(first_line "$d/$mode/log")"
				continue
			fi
			[ -e "$d/$mode/out.plugin.so" ] && cp "$d/$mode/out.plugin.so" "$d/$mode/$copy.plugin.so"
			bad=$(check_transcripts "$type" "$d/$mode/$copy" $loose)
			[ -n "$bad" ] && not_ok "$name/$mode/$copy" "$bad"
		done
		[ -n "$key" ] && [ "$failures" = "$wrong" ] && echo "$key" >>"$JUDGED"
	done
	[ "$failures" = "$before" ] && ok "$name"
	[ -n "${KEEP:-}" ] || rm -rf "$d"
}

# One job: the linkers that share a set of objects.
one_job() { # FIXTURE COMPILER OPT TYPE SECTIONS DEBUG LINKERS
	local obj=$WORK/obj.$1.$2.$3.$4.$5.$6 flags="-$3" ld
	load_recipe "$1"
	fixture_fits || { skip "$1.$2.$7.$3.$4.$5.$6" "has no sources for $MACHINE"; return; }
	flags="$flags ${FLAGS-}"
	[ "$5" = fs ] && flags="$flags -ffunction-sections"
	[ "$6" = debug ] && flags="$flags -g"
	mkdir -p "$obj"
	if ! have "$2"; then
		skip "$1.$2.$7.$3.$4.$5.$6" "no $2"
		return
	fi
	if ! compile_fixture "$2" "$flags" "$4" "$obj" >"$obj/log" 2>&1; then
		not_ok "$1.$2.$3.$4.$5.$6" "does not compile: $(first_line "$obj/log")"
		return
	fi
	for ld in ${7//,/ }; do
		judge_one "$1" "$2" "$ld" "$3" "$4" "$5" "$6" "$obj"
	done
	[ -n "${KEEP:-}" ] || rm -rf "$obj"
}

case ${1:-} in
--list)
	list_combinations
	exit
	;;
--bless)
	make_work
	load_recipe "$2"
	compile_fixture gcc -O2 pie "$WORK/o" && link_fixture gcc bfd pie "$WORK/o" "$WORK/in" || exit 1
	"$WORK/in" >"$dir/expected"
	if [ -n "$plugin" ]; then "$WORK/in" "$WORK/in.plugin.so" >"$dir/expected.plugin"; fi
	if [ -n "$strict_arg" ]; then "$WORK/in" "$strict_arg" >"$dir/expected.strict"; fi
	exit
	;;
--job)
	shift
	# shellcheck disable=SC2086
	one_job $1
	exit $((failures != 0))
	;;
esac

need_tool matrix
make_work
always_fold
if [ -n "${TARGET:-}" ]; then
	bad=$(use_target "$TARGET")
	[ -z "$bad" ] || { skip matrix "$bad"; finish; }
	use_target "$TARGET"
fi
make_driver || { not_ok matrix "cannot build the driver"; finish; }
list_combinations | awk '{ key = $1 " " $2 " " $4 " " $5 " " $6 " " $7; if (!(key in l)) { order[++n] = key; l[key] = $3 } else l[key] = l[key] "," $3 }
	END { for (i = 1; i <= n; i++) print order[i] " " l[order[i]] }' | grep -E -- "${ONLY:-.}" |
	awk -v piece="${PIECE:-1/1}" 'BEGIN { split(piece, p, "/") } NR % p[2] == p[1] % p[2]' |
	xargs -P "$JOBS" -I '{}' bash "$0" --job '{}'
[ "${PIPESTATUS[2]}" = 0 ] && [ "${PIPESTATUS[4]:-0}" = 0 ]
