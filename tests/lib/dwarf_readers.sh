# dwarf_readers.sh: what others' readers say of the debug information of fixtures/dwarf: complaints, look-ups, gdb.
# Sourced by debug/dwarf.sh, which sets SRC, INSN and JUDGE.
# shellcheck shell=bash
# --- what readers complain of -------------------------------------------------------------------------------------------
# dump_complaints FILE: kinds of complaints about its debug sections, with their numbers.
dump_complaints() {
	local f=$1 r
	for r in "readelf --debug-dump" "readelf --debug-dump=decodedline" "eu-readelf --debug-dump"; do
		have "${r%% *}" || continue
		# shellcheck disable=SC2086
		{ $r "$f" 2>&1 >&3 | sed "s/^/$r: /"; } 3>"$f.dump"
		grep -aE '<corrupt|<unknown|[Ww]arning:|[Ee]rror:|<invalid|<INVALID|Unknown |\?\?\?' "$f.dump" | sed "s/^/$r: /"
	done | sed -E "s#$f#FILE#g; s/0x[0-9a-fA-F]+/N/g; s/\b[0-9a-f]{8,16}\b/N/g; s/[0-9]+/N/g; s/ +/ /g" | sort | uniq -c
	rm -f "$f.dump"
}
# verify_complaints FILE: the same of llvm-dwarfdump --verify; fails when it does not end.
verify_complaints() {
	timeout 300 llvm-dwarfdump --verify "$1" >"$1.verify" 2>&1
	[ $? = 124 ] && return 1
	# An llvm-dwarfdump without zstd complains about every section.
	grep -aE "error:" "$1.verify" | grep -v "'\.debug_icfold', unsupported compression type" | sed -E 's/0x[0-9a-fA-F]+/N/g; s/[0-9]+/N/g' | sort | uniq -c
	rm -f "$1.verify"
}

# --- look-ups ---------------------------------------------------------------------------------------------------------
# kept_units MAP: "OLD SIZE NEW NAME" (hexadecimal) of every unit that is not folded, of a map with marks.
kept_units() { awk '$5 != "folded" { k = $1; sub(/^0+/, "", k); print k, $2, $3, $4 }' "$1"; }
# places UNITS SIZE: lines "OLD NEW" of places in each unit of at least SIZE bytes.
places() {
	awk -v least="$2" '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		function at(o) { if (o >= 0 && o < size && !((old, o) in seen)) { seen[old, o] = 1; printf "0x%x 0x%x\n", old + o, new + o } }
		{ old = hex($1); size = hex($2); new = hex($3); if (size < least) next; at(0); at(1); at(int(size / 3)); at(int(size / 2)); at(int(size * 2 / 3)); at(size - 1) }' "$1"
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
	for t in llvm-symbolizer addr2line eu-addr2line; do
		have $t || continue
		# bfd takes a symbol of size 0 for one of size 1, and libdwfl prefers a global one of size 0 to a local one of size 1.
		# So functions of one instruction are left out.
		places "$3" "$([ $t = llvm-symbolizer ] && echo 1 || echo $((INSN + 1)))" >"$2.places"
		cut -d ' ' -f 1 "$2.places" >"$2.old"
		cut -d ' ' -f 2 "$2.places" >"$2.new"
		[ "$(wc -l <"$2.old")" -gt 20 ] || echo "too few places"
		answers $t "$1" "$2.old" >"$2.want"
		answers $t "$2" "$2.new" >"$2.have"
		if [ "$(wc -l <"$2.want")" != "$(wc -l <"$2.have")" ]; then
			echo "$t: other inlined frames: $(diff "$2.want" "$2.have" | grep '^[<>]' | head -n 2 | tr '\n' ' ')"
		fi
		# GCC's -flto leaves a symbol of another section among those of code; bfd takes file 0 for file 1.
		awk 'NR == FNR { want[FNR] = $0; next } want[FNR] $0 !~ /\.c\.[0-9a-f][0-9a-f][0-9a-f]|<artificial>/ && want[FNR] != $0 { print want[FNR], "became", $0; exit }' \
			"$2.want" "$2.have" | sed "s#$SRC/##g; s/^/$t: /"
	done | head -n 1
}
# wrong_symbols IN OUT MAP: functions whose symbol is neither where the map says nor at a thunk of its own.
wrong_symbols() { # IN OUT MAP
	local f
	for f in "$1" "$2"; do
		readelf -sW "$f" | awk -v out="${f#"$1"}" '/^Symbol table/ { on = /\.symtab/ } on && ($4 == "FUNC" || (out && $4 == "NOTYPE")) && $7 != "UND" { sub(/^0+/, "", $2); print $2, $8 }'
		echo
	done >"$2.symbols"
	"$ICFOLD" dump --groups --json "$2" | jq -r '.groups[].members[] | select(.thunk) | .old' | sed 's/0x//' |
		awk '
		FILENAME == "-" { thunk[$1] = 1; next }
		FILENAME == ARGV[2] { sub(/^0+/, "", $1); sub(/^0+/, "", $3); to[$1] = $3; next }
		!NF { second = 1; next }
		!second { if ($1 in to && !($1 in thunk)) { n++; name[n] = $2; want[n] = to[$1] } next }
		{ is[$2, $1] = 1 }
		END { if (n < 20) print "too few"; for (i = 1; i <= n; i++) if (!((name[i], want[i]) in is)) print name[i] }' - "$3" "$2.symbols" | head -n 1
}

# --- gdb --------------------------------------------------------------------------------------------------------------
# run_gdb FILE "COMMANDS...": its words without addresses, garbage in locals (large numbers), and processes.  An error ends a
# file of commands.  Values at entry are not compared: gdb has them only where a call names the function that is kept.
run_gdb() {
	local x=() f
	for f in $2; do x+=(-x "$f"); done
	timeout 400 gdb -nx -q -batch -iex 'set debuginfod enabled off' -iex 'set pagination off' -iex 'set confirm off' \
		-iex 'set breakpoint pending on' "${x[@]}" "$1" 2>&1 </dev/null |
		sed -E "s#$1#FILE#g; s#$SRC/##g; s/0x[0-9a-f]+/N/g; s/<(int|long|unsigned int|unsigned long)>/<T>/g; s/-?[0-9]{5,}/N/g
			s/\b([a-z]+)=\1@entry=/\1=/g; s/(fill<T>) \(n=[^)]*\)/\1 (n)/
			/^(Thread debugging|\[Thread debugging|\[Inferior|Using host libthread|warning: Error disabling address space)/d
			/^warning: Section .debug_names|Error in sourced command file|^The program is not being run/d"
}
# function_lines FILE FUNCTION: the lines of its statements.
function_lines() { # every second one
	awk -v f="$2" '!on && $0 ~ "[ *]" f "\\(.*[^;]$" { on = 1; match($0, /^\t*/); end = substr($0, 1, RLENGTH) "}"; next }
		on && $0 == end { exit } on && /;|for |if / { if (n++ % 2 == 0) print NR }' "$SRC/$1"
}
# folded_pairs OUT: "KEPT FOLDED" of those of one.c and two.c that have no thunk.
folded_pairs() {
	"$ICFOLD" dump --groups --json "$1" | jq -r '.groups[] | (.members[] | select(.kept) | .names[0]) as $k | .members[] |
		select((.kept | not) and .thunk == null) | "\($k) \(.names[0])"' | awk '{ a = $1; b = $2; sub(/_(one|two)$/, "", a); sub(/_(one|two)$/, "", b) }
		$1 ~ /_(one|two)$/ && a == b'
}
source_of() { case $1 in *_one) echo one.c ;; *) echo two.c ;; esac; }
half_of() { case $1 in *_one) echo first_half ;; *) echo second_half ;; esac; }
# breaks FILE SUFFIX [SKIP]: breakpoints at every line of functions of which neither copy went, or this one stayed.
breaks() {
	local f l
	for f in twice nothing sum fail split deep caller tail; do
		grep -qE " ${f}_$2\$" "$PAIRS" && continue
		grep -qx "$f" "$MIXED" && continue
		for l in $(function_lines "$1" "${f}_$2"); do
			printf 'break %s:%s\ncommands\ninfo args\ninfo locals\nbt\ncontinue\nend\n' "$1" "$l"
		done
	done
}
# gdb_kept IN OUT: frames, arguments and locals wherever kept functions stop; both files have names of one length, since
# those lie on the stack.
gdb_kept() {
	local in=$1 out=$2 l
	local PAIRS=$out.pairs MIXED=$out.mixed
	folded_pairs "$out" >"$PAIRS"
	# The name of a function with a thunk means two places.
	"$ICFOLD" dump --groups --json "$out" | jq -r '.groups[].members[] | select(.thunk) | .names[0]' | sed -E 's/_(one|two)$//' >"$MIXED"
	{
		echo 'tbreak second_half'
		breaks one.c one
		printf 'run\ndelete\ntbreak third_half\n'
		breaks two.c two
		printf 'continue\ndelete\n'
		# Some locals are uninitialised here and hold different garbage.
		for l in $(grep -nE "items.used. = |result = next" "$SRC/three.cc" | cut -d : -f 1); do
			printf 'break three.cc:%s\ncommands\nbt 2\ncontinue\nend\n' "$l"
		done
		printf 'continue\n'
	} >"$out.gdb"
	run_gdb "$in" "$out.gdb" >"$out.want"
	run_gdb "$out" "$out.gdb" >"$out.have"
	# Folding changes how many places a line of a template has.
	sed -i -E '/^Breakpoint [0-9]+ at /d; s/^(Breakpoint [0-9]+)\.[0-9]+,/\1,/' "$out.want" "$out.have"
	[ "$(grep -c '^Breakpoint' "$out.want")" -ge 20 ] || echo "only $(grep -c '^Breakpoint' "$out.want") stops"
	cmp -s "$out.want" "$out.have" || diff "$out.want" "$out.have" | sed -n 1,3p | tr '\n' ' '
}
# differs WHAT FILE.want FILE.have
differs() { cmp -s "$2.want" "$2.have" || echo "$1: $(diff "$2.want" "$2.have" | grep '^[<>]' | head -n 4 | tr '\n' ' ')"; }
# gdb_folded IN OUT: names, lines, stops, steps and frames of folded functions.
gdb_folded() {
	local in=$1 out=$2 k f l s
	folded_pairs "$out" >"$out.pairs"
	# Each line of a folded function is as far from its start as it was.
	while read -r k f; do
		case $f in split_*) continue ;; esac
		for l in $(function_lines "$(source_of "$f")" "$f"); do echo "info line $(source_of "$f"):$l"; done
	done <"$out.pairs" >"$out.gdb"
	s='s/_(one|two)([+>])/_X\2/g; s/ (starts|is) at address (N <[^>]*>).*/ \2/'
	run_gdb "$in" "$out.gdb" | sed -E "$s" | uniq >"$out.want"
	run_gdb "$out" "$out.gdb" | sed -E "$s" | uniq >"$out.have"
	[ "$(wc -l <"$out.want")" -ge 10 ] || echo "few lines"
	differs "info line" "$out"
	# The folded function's name, and a breakpoint on it, mean a place in the kept function.
	while read -r k f; do
		printf 'info symbol %s\ninfo line %s\ntbreak %s\n' "$k" "$k" "$k"
		printf 'info symbol %s\ninfo line %s\ntbreak %s\n' "$f" "$f" "$f" >&3
	done <"$out.pairs" >"$out.k.gdb" 3>"$out.f.gdb"
	run_gdb "$out" "$out.k.gdb" >"$out.want"
	run_gdb "$out" "$out.f.gdb" >"$out.have"
	differs "break FOLDED" "$out"
	# Steps and the returned value are those of the input's kept function.
	rm -rf "$out.k" "$out.f"
	mkdir -p "$out.k" "$out.f"
	while read -r k f; do
		case $f in sum_* | deep_* | caller_* | tail_*) ;; *) continue ;; esac
		for l in "$k k" "$f f"; do
			printf 'tbreak %s\nrun\ntbreak %s\necho \\n=== %s\\n\ncontinue\ninfo args\ninfo locals\nnext\nnext\nnext\nuntil\nstep\nuntil\nnext\nuntil\nnext\nnext\nkill\n' \
				"$(half_of "${l% *}")" "${l% *}" "${f%_*}" >"$out.${l#* }/${f%_*}"
		done
	done <"$out.pairs"
	for l in "$in k want" "$out f have"; do
		# shellcheck disable=SC2086
		set -- $l
		run_gdb "$1" "$out.$2/*" | awk '/^Temporary breakpoint [0-9]+ at/ { next } /^===/ { on = 1; print; next } on && /_half/ { on = 0 } on && !/^$/' |
			sed -E 's/^(Temporary breakpoint) [0-9]+/\1/; s/items(_two)? /items /; s/^(Run till exit).*/\1/' >"$out.$3"
	done
	differs "steps" "$out"
	# Frames above the folded function and their locals; a breakpoint by its file and line.
	while read -r k f; do
		case $f in sum_* | twice_* | deep_*) ;; *) continue ;; esac
		l=$(function_lines "$(source_of "$f")" "$f" | head -n 1)
		printf 'tbreak %s\nrun\ntbreak %s\ncontinue\nbt\nup\ninfo locals\nfinish\nkill\n' "$(half_of "$f")" "$f" >"$out.k/$f.bt"
		[ -n "$l" ] && printf 'tbreak %s\nrun\ntbreak %s:%s\ncontinue\nbt\nfinish\nkill\n' "$(half_of "$f")" "$(source_of "$f")" "$l" >"$out.k/$f.line.bt"
	done <"$out.pairs"
	for l in "$in want" "$out have"; do
		# shellcheck disable=SC2086
		set -- $l
		run_gdb "$1" "$out.k/*.bt" | grep -vE '^(#0|Run till|Temporary|[0-9]+.)' >"$out.$2"
	done
	[ "$(grep -c 'Value returned' "$out.want")" -ge 3 ] || echo "few values returned"
	differs "frames" "$out"
}
