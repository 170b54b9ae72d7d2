#!/bin/bash
# run_dwarf.sh: the debug information of folded programs in every form that compilers and tools write it in.
#
# fixtures/dwarf is built by GCC and Clang with DWARF 2 to 5 and in the rarer forms (64-bit, type units, compressed, LTO,
# indexes, dwz, split), folded, and each result is asked about by others' readers: judge_dwarf (libdw), readelf, eu-readelf,
# llvm-dwarfdump --verify, three symbolizers at the start of and inside of each function, and gdb at breakpoints in kept and
# folded functions.  What each says of the output must be what it says of the input.
# DWARF_ONLY="NAME..." runs only these forms; KEEP=1 keeps the files.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
need_tool dwarf
make_work
SRC=$FIXTURES/dwarf
JUDGE=${JUDGE:-$BUILD/tests/judge_dwarf}
for t in clang ld.lld ld.gold eu-readelf eu-addr2line llvm-symbolizer llvm-dwarfdump gdb jq dwz; do
	have $t || skip "dwarf $t" "not installed"
done
[ -x "$JUDGE" ] || skip "dwarf judge" "no program $JUDGE"
export DEBUGINFOD_URLS=
echo 'int third_half(int); int third_half(int n) { return n; }' >"$WORK/third.c"
gcc -O2 -fPIE -c "$WORK/third.c" -o "$WORK/third.o"

# --- building ---------------------------------------------------------------------------------------------------------
# build DIR CC LINKER CFLAGS LDFLAGS: DIR/in, and DIR/in.c without the C++ half; fails with the reason in DIR/why.
build() {
	local d=$1 cc=$2 ld=$3 s base
	mkdir -p "$d"
	for s in main.c one.c two.c three.cc; do
		base=${s%.*}
		# shellcheck disable=SC2086
		if ! "$(compiler_of "$cc" "$s")" $4 -w -c "$SRC/$s" -o "$d/$base.o" 2>"$d/why"; then return 1; fi
	done
	# shellcheck disable=SC2086
	"$(compiler_of "$cc" x.cc)" $4 -fuse-ld="$ld" -Wl,--emit-relocs $5 "$d"/{main,one,two,three}.o -o "$d/in" 2>"$d/why" || return 1
	# shellcheck disable=SC2086
	"$cc" $4 -fuse-ld="$ld" -Wl,--emit-relocs $5 "$d"/{main,one,two}.o "$WORK/third.o" -o "$d/in.c" 2>"$d/why"
}

# --- what readers complain of -------------------------------------------------------------------------------------------
# dump_complaints FILE: kinds of complaints about its debug sections, with their numbers.
dump_complaints() {
	local f=$1 r
	for r in readelf "readelf --debug-dump=decodedline" eu-readelf; do
		have "${r%% *}" || continue
		# shellcheck disable=SC2086
		{ $r $([ "$r" = "${r%% *}" ] && echo --debug-dump) "$f" 2>&1 >&3 | sed "s/^/$r: /"; } 3>"$f.dump"
		grep -aE '<corrupt|<unknown|[Ww]arning:|[Ee]rror:|<invalid|<INVALID|Unknown |\?\?\?' "$f.dump" | sed "s/^/$r: /"
	done | sed -E "s#$f#FILE#g; s/0x[0-9a-fA-F]+/N/g; s/\b[0-9a-f]{8,16}\b/N/g; s/[0-9]+/N/g; s/ +/ /g" | sort | uniq -c
	rm -f "$f.dump"
}
# verify_complaints FILE: the same of llvm-dwarfdump --verify; fails when it does not end.
verify_complaints() {
	timeout 20 llvm-dwarfdump --verify "$1" >"$1.verify" 2>&1
	[ $? = 124 ] && return 1
	grep -aE 'error:|warning:' "$1.verify" | sed -E 's/0x[0-9a-fA-F]+/N/g; s/[0-9]+/N/g' | sort | uniq -c
	rm -f "$1.verify"
}

# --- look-ups ---------------------------------------------------------------------------------------------------------
# kept_units DIR/OUT: "OLD SIZE NEW NAME" (hexadecimal) of every unit that is not folded.
kept_units() {
	"$ICFOLD" dump --groups --json "$1" | jq -r '.groups[].members[] | select(.kept | not) | .old' | sed 's/^0x//' |
		awk 'NR == FNR { folded[$1] = 1; next } { k = $1; sub(/^0+/, "", k) } !(k in folded) { print k, $2, $3, $4 }' - "$2"
}
# places UNITS: lines "OLD NEW" of places in each unit.
places() {
	awk '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		function at(o) { if (o >= 0 && o < size && !((old, o) in seen)) { seen[old, o] = 1; printf "0x%x 0x%x\n", old + o, new + o } }
		{ old = hex($1); size = hex($2); new = hex($3); at(0); at(1); at(int(size / 3)); at(int(size / 2)); at(int(size * 2 / 3)); at(size - 1) }' "$1"
}
# answers TOOL FILE ADDRESSES: what TOOL says of the addresses, without them.
answers() {
	case $1 in
	llvm-symbolizer) llvm-symbolizer -i --obj="$2" <"$3" ;;
	*) "$1" -i -f -e "$2" <"$3" 2>/dev/null ;;
	esac
}
# wrong_lookups IN OUT UNITS: the first difference, empty when none.
wrong_lookups() {
	local t
	places "$3" >"$2.places"
	cut -d ' ' -f 1 "$2.places" >"$2.old"
	cut -d ' ' -f 2 "$2.places" >"$2.new"
	[ "$(wc -l <"$2.old")" -gt 20 ] || echo "too few places"
	for t in llvm-symbolizer addr2line eu-addr2line; do
		have $t || continue
		answers $t "$1" "$2.old" >"$2.want"
		answers $t "$2" "$2.new" >"$2.have"
		cmp -s "$2.want" "$2.have" || echo "$t: $(diff "$2.want" "$2.have" | grep '^[<>]' | head -n 2 | tr '\n' ' ' | sed "s#$SRC/##g")"
	done | head -n 1
}
# wrong_symbols IN OUT MAP: functions whose symbol is neither where the map says nor at a thunk of its own.
wrong_symbols() {
	local f
	for f in "$1" "$2"; do
		readelf -sW "$f" | awk '/^Symbol table/ { on = /\.symtab/ } on && $4 == "FUNC" && $7 != "UND" { print $2, $3, $8 }' | sort -k 3
	done >"$2.symbols"
	"$ICFOLD" dump --groups --json "$2" | jq -r '.groups[].members[] | select(.thunk) | "thunk \(.old)"' | sed 's/0x//' |
		awk '
		FILENAME == ARGV[1] { thunk[$2] = 1; next }
		{ v = $1; sub(/^0+/, "", v) }
		FILENAME == ARGV[2] { new = $3; sub(/^0+/, "", new); to[v] = new; next }
		{ turn = count[$3]++; n[$3]++; at[$3, turn] = v }
		END { for (f in n) for (i = 0; i < n[f] / 2; i++) {
			old = at[f, i]; for (k = n[f] / 2; k < n[f]; k++) found = 0
			want = to[old]; if (want == "" || (old in thunk)) continue
			for (k = n[f] / 2; k < n[f]; k++) if (at[f, k] == want) found = 1
			if (!found) print f
		} }' - "$3" "$2.symbols" | head -n 1
}

# --- gdb --------------------------------------------------------------------------------------------------------------
run_gdb() { # FILE COMMANDS: its words without addresses
	timeout 60 gdb -nx -q -batch -iex 'set debuginfod enabled off' -iex 'set pagination off' -iex 'set confirm off' -x "$2" "$1" 2>&1 </dev/null |
		sed -E "s#$1#FILE#g; s#$SRC/##g; s/0x[0-9a-f]+/N/g; s/<(int|long|unsigned int|unsigned long)>/<T>/g
			/^(Thread debugging|\[Thread debugging|Using host libthread|warning: Error disabling address space)/d"
}
# function_lines FILE FUNCTION: the lines of its statements.
function_lines() {
	awk -v f="$2" '$0 ~ "[ *]" f "\\(.*[^;]$" { on = 1; next } on && /^}/ { exit } on && /;|for |if / { print NR }' "$SRC/$1"
}
# Which of the functions of one.c and two.c are where: "KEPT FOLDED" for those of a group that have no thunk.
folded_pairs() { # OUT
	"$ICFOLD" dump --groups --json "$1" | jq -r '.groups[] | (.members[] | select(.kept) | .names[0]) as $k | .members[] |
		select((.kept | not) and .thunk == null) | "\($k) \(.names[0])"' | awk '{ a = $1; b = $2; sub(/_(one|two)$/, "", a); sub(/_(one|two)$/, "", b) }
		$1 ~ /_(one|two)$/ && a == b'
}
# gdb_kept IN OUT: arguments, locals and frames at the lines of kept functions.
gdb_kept() {
	local out=$2 pairs names f s l
	pairs=$(folded_pairs "$out")
	names=$(printf '%s\n' twice nothing sum fail split deep caller tail)
	breaks() { # FILE SUFFIX: breakpoints at the lines of the functions that are not folded
		for f in $names; do
			printf '%s\n' "$pairs" | grep -q " ${f}_$2\$" && continue
			for l in $(function_lines "$1" "${f}_$2"); do
				printf 'break %s:%s\ncommands\ninfo args\ninfo locals\nbt\ncontinue\nend\n' "$1" "$l"
			done
		done
	}
	{
		echo 'tbreak second_half'
		breaks one.c one
		printf 'run\ndelete\ntbreak third_half\n'
		breaks two.c two
		printf 'continue\ndelete\n'
		for l in $(function_lines three.cc push) $(function_lines three.cc fill); do
			printf 'break three.cc:%s\ncommands\ninfo args\ninfo locals\ncontinue\nend\n' "$l"
		done
		printf 'continue\n'
	} >"$out.gdb"
	run_gdb "$1" "$out.gdb" >"$out.want"
	run_gdb "$out" "$out.gdb" >"$out.have"
	# How many places a line of a template has is what folding changes.
	sed -i -E '/^Breakpoint [0-9]+ at /d; s/\(in [0-9]+ locations\)//; s/[0-9]+ in ([a-z])/\1/' "$out.want" "$out.have"
	[ "$(grep -c '^Breakpoint' "$out.want")" -ge 20 ] || echo "only $(grep -c '^Breakpoint' "$out.want") stops"
	cmp -s "$out.want" "$out.have" || diff "$out.want" "$out.have" | sed -n 1,3p | tr '\n' ' '
}
# gdb_folded IN OUT: names, lines, stops, steps and frames of folded functions.
gdb_folded() {
	local in=$1 out=$2 k f l half khalf kfile ffile
	: >"$out.in.gdb"
	: >"$out.out.gdb"
	# The lines of a folded function begin where they did, from the start of the function.
	folded_pairs "$out" >"$out.pairs"
	while read -r k f; do
		case $f in *_one) ffile=one.c ;; *) ffile=two.c ;; esac
		for l in $(function_lines $ffile "$f"); do echo "info line $ffile:$l"; done
	done <"$out.pairs" >"$out.gdb"
	run_gdb "$in" "$out.gdb" | sed -E 's/_(one|two)([+>])/_X\2/g' >"$out.want"
	run_gdb "$out" "$out.gdb" | sed -E 's/_(one|two)([+>])/_X\2/g' >"$out.have"
	cmp -s "$out.want" "$out.have" || echo "info line: $(diff "$out.want" "$out.have" | sed -n 2,5p | grep '^[<>]' | tr '\n' ' ')"
	# Its name is a place in the kept one, and so is a breakpoint.
	while read -r k f; do
		printf 'info symbol %s\ninfo line %s\ntbreak %s\n' "$f" "$f" "$f"
	done <"$out.pairs" >"$out.gdb"
	while read -r k f; do
		printf 'info symbol %s\ninfo line %s\ntbreak %s\n' "$k" "$k" "$k"
	done <"$out.pairs" >"$out.out.gdb"
	run_gdb "$out" "$out.out.gdb" >"$out.want"
	run_gdb "$out" "$out.gdb" >"$out.have"
	cmp -s "$out.want" "$out.have" || echo "break: $(diff "$out.want" "$out.have" | sed -n 2,5p | grep '^[<>]' | tr '\n' ' ')"
	# Frames above, what it returns, and every step, as in the kept one.
	while read -r k f; do
		case $f in fail_*) continue ;; *_one) half=first_half khalf=second_half ffile=one.c ;; *) half=second_half khalf=first_half ffile=two.c ;; esac
		l=$(function_lines $ffile "$f" | head -n 1)
		printf 'tbreak %s\nrun\ntbreak %s\ncontinue\nbt\nup\ninfo locals\nfinish\nkill\n' $half "$f" >>"$out.in.gdb"
		# By line: not always where the name is, but in the function.
		[ -n "$l" ] && printf 'tbreak %s\nrun\ntbreak %s:%s\ncontinue\nfinish\nkill\n' $half $ffile "$l" >>"$out.in.gdb"
		for l in "$k $khalf want" "$f $half have"; do
			# shellcheck disable=SC2086
			set -- $l
			printf 'tbreak %s\nrun\ntbreak %s\ncontinue\nnext\nnext\nnext\nuntil\nstep\nuntil\nnext\nuntil\nnext\nnext\nkill\n' "$2" "$1" >"$out.gdb"
			run_gdb "$([ "$3" = want ] && echo "$in" || echo "$out")" "$out.gdb" | awk '/^Temporary breakpoint/ { n++; on = 1; next } n > 2 && /_half/ && !/^Temp/ { exit } n > 2' |
				grep -vE '_half|^Run till' >"$out.$3"
		done
		cmp -s "$out.want" "$out.have" || echo "steps in $f: $(diff "$out.want" "$out.have" | sed -n 2,5p | grep '^[<>]' | tr '\n' ' ')"
	done <"$out.pairs"
	run_gdb "$in" "$out.in.gdb" | grep -vE '^(#0|Run till|Temporary|[0-9]+.)' >"$out.want"
	run_gdb "$out" "$out.in.gdb" | grep -vE '^(#0|Run till|Temporary|[0-9]+.)' >"$out.have"
	cmp -s "$out.want" "$out.have" || echo "frames: $(diff "$out.want" "$out.have" | sed -n 2,5p | grep '^[<>]' | tr '\n' ' ')"
}

# --- one form -----------------------------------------------------------------------------------------------------------
verdict() { # NAME WHY: not ok unless WHY is empty
	if [ -z "$2" ]; then ok "$1"; else not_ok "$1" "$2"; fi
}
# judge_fold NAME IN MODE POLICY [LIMIT]: folds and asks everybody.
judge_fold() {
	local name="dwarf $1 $3 $4" in=$2 out=$2.$3.$4 mode=$3 policy=$4 arg=
	if ! "$ICFOLD" -q --icf="$mode" --debug-folded="$policy" --map="$out.map" --print-icf-sections="$out.groups" "$in" -o "$out" >"$out.log" 2>&1; then
		not_ok "$name" "$(first_line "$out.log")"
		return 1
	fi
	[ "$mode" = safe ] && arg=distinct
	# shellcheck disable=SC2086
	{ "$in" $arg; echo "exit status $?"; } >"$out.run.in" 2>&1
	# shellcheck disable=SC2086
	{ "$out" $arg; echo "exit status $?"; } >"$out.run" 2>&1
	check "$name runs the same" "$(diff "$out.run.in" "$out.run" | sed -n 2,3p | tr '\n' ' ')" cmp -s "$out.run.in" "$out.run"
	if [ -x "$JUDGE" ]; then
		"$JUDGE" --policy="$policy" "$in" "$out" "$out.map" >"$out.judge" 2>&1
		check "$name judge" "$(grep -aE '^WRONG' "$out.judge" | head -n 2 | tr '\n' ' ' | cut -c 1-300) $(tail -n 1 "$out.judge")" grep -q '^right$' "$out.judge"
	fi
	[ -e "$in.complaints" ] || dump_complaints "$in" >"$in.complaints"
	dump_complaints "$out" >"$out.complaints"
	verdict "$name dumps" "$(new_complaints "$in.complaints" "$out.complaints" | head -n 2 | tr '\n' ' ' | cut -c 1-200)"
	have jq || return 0
	kept_units "$out" "$out.map" >"$out.units"
	verdict "$name groups" "$(diff <(awk '/^selected/ { print $3 } /removing/ { print $4 }' "$out.groups" | sort) \
		<("$ICFOLD" dump --json "$out" | jq -r '.groups[].members[].names[0]' | sort) | sed -n 1,3p | tr '\n' ' ')"
	verdict "$name symbols" "$(wrong_symbols "$in" "$out" "$out.map")"
	[ "$policy" = alias ] || verdict "$name look-ups" "$(wrong_lookups "$in" "$out" "$out.units")"
}
judge_verify() { # NAME DIR: on the program without C++, where llvm-dwarfdump --verify ends
	have llvm-dwarfdump || return 0
	"$ICFOLD" -q --icf=all "$2/in.c" -o "$2/out.c" >"$2/verify.log" 2>&1 || { not_ok "dwarf $1 verify" "$(first_line "$2/verify.log")"; return; }
	if ! verify_complaints "$2/in.c" >"$2/verify.in"; then
		skip "dwarf $1 verify" "llvm-dwarfdump --verify does not end on the input"
	elif ! verify_complaints "$2/out.c" >"$2/verify.out"; then
		not_ok "dwarf $1 verify" "llvm-dwarfdump --verify does not end"
	else
		verdict "dwarf $1 verify" "$(new_complaints "$2/verify.in" "$2/verify.out" | head -n 2 | tr '\n' ' ')"
	fi
}
judge_gdb() { # NAME IN OUT
	have gdb && have jq || return 0
	verdict "dwarf $1 gdb, kept functions" "$(gdb_kept "$2" "$3" | cut -c 1-300)"
	verdict "dwarf $1 gdb, folded functions" "$(gdb_folded "$2" "$3" | head -n 3 | cut -c 1-300)"
}

# form NAME CC LINKER CFLAGS LDFLAGS [WHAT...]: WHAT is of: gdb, MODE.POLICY; change=FUNCTION that alters the input.
form() {
	local name=$1 d=$WORK/$1 cc=$2 ld=$3 w changed= gdb=
	have "$cc" || return 0
	have "ld.$ld" || return 0
	if ! build "$d" "$cc" "$ld" "$4" "$5"; then
		if grep -qE 'unrecognized|unsupported|unknown argument|not supported|invalid .*compress' "$d/why"; then
			skip "dwarf $name" "$(grep -m1 -oE "[^:]*(unrecognized|unsupported|unknown|not supported|invalid).*" "$d/why" | cut -c 1-100)"
		else
			not_ok "dwarf $name" "building: $(first_line "$d/why")"
		fi
		return
	fi
	shift 5
	for w; do
		case $w in
		change=*)
			for changed in "$d/in" "$d/in.c"; do
				if ! "${w#change=}" "$changed" 2>"$d/why"; then
					skip "dwarf $name" "$(first_line "$d/why")"
					return
				fi
			done
			;;
		gdb) gdb=1 ;;
		*.*)
			judge_fold "$name" "$d/in" "${w%.*}" "${w#*.}" || continue
			[ -n "$gdb" ] && judge_gdb "$name ${w%.*}" "$d/in" "$d/in.$w"
			gdb=
			;;
		esac
	done
	judge_verify "$name" "$d"
}
