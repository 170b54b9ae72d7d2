#!/bin/bash
# dwarf.sh: the debug information of folded programs in every form that compilers and tools write it in.
#
# fixtures/dwarf is built by GCC and Clang with DWARF 2 to 5 and in the rarer forms (64-bit, type units, compressed, LTO,
# indexes, dwz, split), folded, and each result is asked about by others' readers: judge_dwarf (libdw), readelf, eu-readelf,
# llvm-dwarfdump --verify, three symbolizers at the start of and inside of each function, and gdb at breakpoints in kept and
# folded functions.  What each says of the output must be what it says of the input.
# DWARF_ONLY="NAME..." runs only these forms; KEEP=1 keeps the files.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/dwarf_readers.sh
. "$TESTS/lib/dwarf_readers.sh"
need_tool dwarf
make_work
for_target dwarf
INSN=1 # bytes of the shortest instruction
[ "$MACHINE" = x86_64 ] || { INSN=4 && always_fold; }
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
# Clang writes relative names for files below its working folder: the forms relative-* use this.
build() {
	local d=$1 cc=$2 ld=$3 s base cwd=$1
	mkdir -p "$d"
	case $d in */relative-*) cwd=$ROOT ;; esac
	for s in main.c one.c two.c three.cc; do
		base=${s%.*}
		# shellcheck disable=SC2086
		if ! (cd "$cwd" && "$(compiler_of "$cc" "$s")" $4 -w -c "$SRC/$s" -o "$d/$base.o") 2>"$d/why"; then return 1; fi
	done
	# shellcheck disable=SC2086
	"$(compiler_of "$cc" x.cc)" $4 -fuse-ld="$ld" -Wl,--emit-relocs $5 "$d"/{main,one,two,three}.o -o "$d/in" 2>"$d/why" || return 1
	# shellcheck disable=SC2086
	"$cc" $4 -fuse-ld="$ld" -Wl,--emit-relocs $5 "$d"/{main,one,two}.o "$WORK/third.o" -o "$d/in.c" 2>"$d/why"
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
	have jq && mark_folded "$out" "$out.map"
	[ "$mode" = safe ] && arg=distinct
	# shellcheck disable=SC2086
	{ $RUN "$in" $arg; echo "exit status $?"; } >"$out.run.in" 2>&1
	# shellcheck disable=SC2086
	{ $RUN "$out" $arg; echo "exit status $?"; } >"$out.run" 2>&1
	check "$name runs the same" "$(diff "$out.run.in" "$out.run" | sed -n 2,3p | tr '\n' ' ')" cmp -s "$out.run.in" "$out.run"
	if [ -x "$JUDGE" ]; then
		"$JUDGE" --policy="$policy" "$in" "$out" "$out.map" >"$out.judge" 2>&1
		# libdw knows no zstd before elfutils 0.189; binutils may.
		if grep -q 'cannot read .debug_info of the input' "$out.judge" && objcopy --decompress-debug-sections "$in" "$out.plain.in" 2>/dev/null &&
			objcopy --decompress-debug-sections "$out" "$out.plain" 2>/dev/null; then
			"$JUDGE" --policy="$policy" "$out.plain.in" "$out.plain" "$out.map" >"$out.judge" 2>&1
		fi
		if grep -q "cannot read .debug_info of the input" "$out.judge"; then
			skip "$name judge" "libdw does not know this compression"
		else
			check "$name judge" "$(grep -aE '^WRONG' "$out.judge" | head -n 2 | tr '\n' ' ' | cut -c 1-300) $(tail -n 1 "$out.judge")" grep -q '^right$' "$out.judge"
		fi
	fi
	[ -e "$in.complaints" ] || dump_complaints "$in" >"$in.complaints"
	dump_complaints "$out" >"$out.complaints"
	verdict "$name dumps" "$(new_complaints "$in.complaints" "$out.complaints" | head -n 2 | tr '\n' ' ' | cut -c 1-200)"
	have jq || return 0
	# Look-ups by name, unless local functions have no names.
	case $in in */discard/*) return ;; esac
	kept_units "$out.map" >"$out.units"
	# The report has each function's first symbol, the dump first the one that symbolizers print.
	awk '/^selected/ { print $3 } /removing/ { print $4 }' "$out.groups" | sort >"$out.reported"
	verdict "$name groups" "$("$ICFOLD" dump --json "$out" | jq -r '.groups[].members[].names | join(" ")' |
		awk 'NR == FNR { has[$1] = 1; next } { name = $1; for (i = NF; i > 0; i--) if ($i in has) name = $i; print name }' "$out.reported" - | sort |
		diff "$out.reported" - | sed -n 1,3p | tr '\n' ' ')"
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
judge_gdb() { # NAME IN OUT gdb|gdb-kept|gdb-folded
	have gdb && have jq || return 0
	# Values that only a caller's entry values tell differ more often there; gdb.sh asks gdb for names.
	[ -z "${TARGET:-}" ] || return 0
	local d=${3%/*}
	cp "$2" "$d/gdb.i"
	cp "$3" "$d/gdb.o"
	[ "$4" = gdb-folded ] ||
		verdict "dwarf $1 gdb, kept functions" "$(gdb_kept "$d/gdb.i" "$d/gdb.o" | cut -c 1-300)"
	[ "$4" = gdb-kept ] ||
		verdict "dwarf $1 gdb, folded functions" "$(gdb_folded "$d/gdb.i" "$d/gdb.o" | head -n 3 | cut -c 1-400)"
}

# form NAME CC LINKER CFLAGS LDFLAGS [WHAT...]: WHAT is of: gdb, MODE.POLICY; change=FUNCTION that alters the input.
form() {
	local name=$1 d=$WORK/$1 cc=$2 ld=$3 w changed gdb=""
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
		gdb*) gdb=$w ;;
		*.*)
			judge_fold "$name" "$d/in" "${w%.*}" "${w#*.}" || continue
			[ -n "$gdb" ] && judge_gdb "$name ${w%.*}" "$d/in" "$d/in.$w" "$gdb"
			gdb=
			;;
		esac
	done
	judge_verify "$name" "$d"
}

# --- tools that change a program before folding ---------------------------------------------------------------------------
old_zlib() { objcopy --compress-debug-sections=zlib-gnu "$1" && readelf -SW "$1" | grep -q '\.zdebug_info'; }
through_dwz() { have dwz && dwz "$1"; }
# section_at FILE SECTION: its offset and size in the file, decimal.
section_at() {
	readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] //' | awk -v name="$2" '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$1 == name { print hex($4), hex($5) }'
}

# refused NAME IN WORD...: icfold refuses IN with one line that has all the words, and folds it with --strip-debug.
refused() {
	local name="dwarf $1" in=$2 w
	shift 2
	if "$ICFOLD" -q "$in" -o "$in.out" >"$in.log" 2>&1; then
		not_ok "$name refused" "it was not"
		return
	fi
	check "$name leaves nothing" "an output is there" [ ! -e "$in.out" ]
	for w; do
		grep -qF -- "$w" "$in.log" || { not_ok "$name refused" "no \"$w\" in: $(first_line "$in.log")"; return; }
	done
	check "$name refused" "more than one line: $(first_line "$in.log")" [ "$(wc -l <"$in.log")" = 1 ]
	if ! "$ICFOLD" -q --strip-debug "$in" -o "$in.out" >"$in.log" 2>&1; then
		not_ok "$name --strip-debug" "$(first_line "$in.log")"
		return
	fi
	verdict "$name --strip-debug" "$(diff <($RUN "$in" distinct) <($RUN "$in.out" distinct) | sed -n 2,3p | tr '\n' ' ')$(readelf -SW "$in.out" | grep -oE '\.debug_(info|line|abbrev)' | head -n 1)"
}
split_dwarf() {
	local cc
	for cc in gcc clang; do
		have $cc || continue
		if ! build "$WORK/split-$cc" $cc bfd "-gdwarf-5 -gsplit-dwarf -O2" ""; then
			skip "dwarf split $cc" "$(first_line "$WORK/split-$cc/why")"
			continue
		fi
		refused "split $cc" "$WORK/split-$cc/in" .debug_info dwo
	done
}
corrupt() {
	local d=$WORK/corrupt at
	build "$d" gcc bfd "-gdwarf-5 -O2" "" || { not_ok "dwarf corrupt" "$(first_line "$d/why")"; return; }
	# shellcheck disable=SC2046
	set -- $(section_at "$d/in" .debug_info)
	# A wrong version in the second unit, and an unknown abbreviation code in the first.
	at=$(readelf --debug-dump=info "$d/in" 2>/dev/null | sed -n 's/^ *Compilation Unit @ offset \(0x\)\{0,1\}\([0-9a-f]*\):/\2/p' | sed -n 2p)
	cp "$d/in" "$d/version"
	printf '\377' | dd of="$d/version" bs=1 seek=$(($1 + 0x$at + 4)) conv=notrunc 2>/dev/null
	refused "corrupt version" "$d/version" .debug_info "$at"
	cp "$d/in" "$d/code"
	printf '\377\177' | dd of="$d/code" bs=1 seek=$(($1 + 0x$at + 12)) conv=notrunc 2>/dev/null
	refused "corrupt abbreviation" "$d/code" .debug_info "$(printf %x $((0x$at + 12)))"
	cp "$d/in" "$d/length"
	printf '\377\377\377' | dd of="$d/length" bs=1 seek=$(($1 + 0x$at)) conv=notrunc 2>/dev/null
	refused "corrupt length" "$d/length" .debug_info "$at"
}

# --- tools that take the output as their input ------------------------------------------------------------------------------
# same_answers NAME FILE OTHER [TOOL...]: look-ups in OTHER are those in FILE.
same_answers() {
	local name=$1 f=$2 other=$3 t
	shift 3
	for t in "${@:-addr2line}"; do
		have "$t" || continue
		answers "$t" "$f" "$f.new" | sed "s#$f#FILE#g" >"$f.want"
		answers "$t" "$other" "$f.new" | sed "s#$other#FILE#g" >"$f.have"
		if ! cmp -s "$f.want" "$f.have"; then
			not_ok "$name" "$t: $(diff "$f.want" "$f.have" | sed -n 2,3p | tr '\n' ' ')"
			return
		fi
	done
	ok "$name"
}
stops() { # FILE: gdb's words at two folded functions and two kept ones
	printf 'break sum_two\nbreak two.c:29\nbreak deep_one\nrun\nbt\ninfo locals\ncontinue\nbt\nfinish\n' >"$WORK/tools/stops.gdb"
	run_gdb "$1" "$WORK/tools/stops.gdb" | sed -E 's/^(Reading symbols|\(No debugging).*//'
}
# The unit's forms have no room for its new range: icfold refuses the file and says so.
refuses_dwarf64() {
	local d=$WORK/gdwarf64-clang n="dwarf gdwarf64-clang"
	build "$d" clang bfd "-gdwarf-5 -gdwarf64 -O2" "" || { skip "$n" "$(first_line "$d/why")"; return; }
	if "$ICFOLD" -q --icf=all "$d/in" -o "$d/out" 2>"$d/log"; then
		not_ok "$n" "not refused"
	else
		check "$n refused" "$(first_line "$d/log")" grep -q 'debug_info, offset 0x' "$d/log"
	fi
	check "$n without" "not with --strip-debug either" "$ICFOLD" -q --icf=all --strip-debug "$d/in" -o "$d/out"
}
tools() {
	local d=$WORK/tools f=$WORK/tools/out n="dwarf tools"
	build "$d" gcc bfd "-gdwarf-5 -O2" "" && "$ICFOLD" -q --icf=all --map="$f.map" "$d/in" -o "$f" >"$d/log" 2>&1 || { not_ok "$n" "$(first_line "$d/why") $(first_line "$d/log")"; return; }
	have jq || return 0
	mark_folded "$f" "$f.map"
	kept_units "$f.map" >"$f.units"
	places "$f.units" 2 | cut -d ' ' -f 2 >"$f.new"
	if have dwz; then
		# dwz knows a fixed list of sections and cannot correct icfold's sections, which refer to .debug_info.
		dwz "$d/in" -o "$d/in.dwz" 2>"$d/in.why"
		check "$n dwz refuses" "it takes sections that it makes wrong" [ "$(dwz "$f" -o "$f.dwz" 2>&1 | grep -c 'Unknown debugging section')" = 1 ]
		objcopy -R .debug_icfold -R .debug_dcall -R .debug_vcall "$f" "$f.plain"
		if ! dwz "$f.plain" -o "$f.dwz" 2>"$d/why"; then
			not_ok "$n dwz" "$(first_line "$d/why")"
		else
			verdict "$n dwz warns" "$(diff <(sed "s#$d/in#FILE#" "$d/in.why") <(sed "s#$f.plain#FILE#" "$d/why") | sed -n 2p)"
			same_answers "$n dwz look-ups" "$f" "$f.dwz" eu-addr2line llvm-symbolizer
			have gdb && verdict "$n dwz gdb" "$(diff <(stops "$f") <(stops "$f.dwz") | sed -n 1,3p | tr '\n' ' ')"
		fi
	fi
	if have gdb && have gdb-add-index; then
		cp "$f" "$f.indexed"
		if gdb-add-index "$f.indexed" >"$d/why" 2>&1 && readelf -SW "$f.indexed" | grep -q gdb_index; then
			verdict "$n gdb-add-index" "$(diff <(stops "$f") <(stops "$f.indexed") | sed -n 1,3p | tr '\n' ' ')"
			same_answers "$n gdb-add-index look-ups" "$f" "$f.indexed"
		else
			not_ok "$n gdb-add-index" "$(first_line "$d/why")"
		fi
		cp "$f" "$f.names"
		gdb-add-index -dwarf-5 "$f.names" >"$d/why" 2>&1 && verdict "$n gdb-add-index -dwarf-5" "$(diff <(stops "$f") <(stops "$f.names") | sed -n 1,3p | tr '\n' ' ')"
	fi
	if objcopy --only-keep-debug "$f" "$f.debug" 2>"$d/why" && cp "$f" "$f.stripped" && strip "$f.stripped" 2>>"$d/why" &&
		(cd "$d" && objcopy --add-gnu-debuglink=out.debug out.stripped) 2>>"$d/why"; then
		verdict "$n debuglink words" "$(first_line "$d/why")"
		same_answers "$n debuglink look-ups" "$f" "$f.stripped"
		same_answers "$n debug file look-ups" "$f" "$f.debug" addr2line
		have gdb && verdict "$n debuglink gdb" "$(diff <(stops "$f") <(stops "$f.stripped") | sed -n 1,3p | tr '\n' ' ')"
	else
		not_ok "$n debuglink" "$(first_line "$d/why")"
	fi
	if have eu-strip && have eu-unstrip; then
		cp "$f" "$f.eu"
		if eu-strip -f "$f.eu.debug" "$f.eu" 2>"$d/why" && eu-unstrip "$f.eu" "$f.eu.debug" -o "$f.again" 2>>"$d/why"; then
			verdict "$n eu-unstrip words" "$(first_line "$d/why")"
			same_answers "$n eu-unstrip look-ups" "$f" "$f.again" addr2line eu-addr2line llvm-symbolizer
			have gdb && verdict "$n eu-unstrip gdb" "$(diff <(stops "$f") <(stops "$f.again") | sed -n 1,3p | tr '\n' ' ')"
		else
			not_ok "$n eu-unstrip" "$(first_line "$d/why")"
		fi
	else
		skip "$n eu-unstrip" "elfutils is not installed"
	fi
}

# --debug-folded=alias: every member of a group has a range and a sequence at the kept address.
alias_lists_all() {
	local d=$WORK/alias f=$WORK/alias/out g
	build "$d" gcc bfd "-gdwarf-5 -O2" "" && "$ICFOLD" -q --icf=all --debug-folded=alias "$d/in" -o "$f" >"$d/log" 2>&1 || { not_ok "dwarf alias" "$(first_line "$d/log")"; return; }
	if ! have llvm-dwarfdump || ! have jq; then return; fi
	llvm-dwarfdump --debug-info "$f" | awk "
		/DW_TAG_/ { low = \"\"; on = /DW_TAG_subprogram/ }
		on && /DW_AT_low_pc/ { low = \$2; gsub(/[()]/, \"\", low) }
		on && /DW_AT_high_pc/ { high = \$2; gsub(/[()]/, \"\", high); if (high != low) n[low]++ }
		on && /^ *\\[0x/ { low = \$1; gsub(/[[,]/, \"\", low); n[low]++ }
		END { for (a in n) { k = a; sub(/^0x0*/, \"\", k); print k, n[a] } }" >"$d/dies"
	llvm-dwarfdump --debug-line "$f" | awk "
		/^debug_line\\[/ || /end_sequence/ { s++; next }
		/^0x/ && !((\$1, s) in seen) { seen[\$1, s] = 1; n[\$1]++ }
		END { for (a in n) { k = a; sub(/^0x0*/, \"\", k); print k, n[a] } }" >"$d/sequences"
	"$ICFOLD" dump --groups --json "$f" | jq -r '.groups[] | select(any(.members[]; .names[0] | test("_(one|two)$"))) | "\(.address) \([.members[] | select(.thunk == null)] | length) \(.members[0].names[0])"' |
		sed 's/^0x//' >"$d/groups"
	verdict "dwarf alias DIE ranges" "$(awk 'NR == FNR { n[$1] = $2; next } n[$1] < $2 && !/\.cold/ { print $3 " has " n[$1] + 0 " of " $2 }' "$d/dies" "$d/groups" | head -n 2 | tr '\n' ' ')"
	verdict "dwarf alias sequences" "$(awk 'NR == FNR { n[$1] = $2; next } n[$1] < $2 { print $3 " has " n[$1] + 0 " of " $2 }' "$d/sequences" "$d/groups" | head -n 2 | tr '\n' ' ')"
	for g in llvm-gsymutil llvm-gsymutil-20 llvm-gsymutil-21 llvm-gsymutil-22; do
		if have $g && $g --help 2>&1 | grep -q merged-functions; then break; fi
		g=
	done
	if [ -z "$g" ]; then
		skip "dwarf alias llvm-gsymutil" "none here knows --merged-functions"
	else
		$g --convert="$f" --merged-functions --out-file="$f.gsym" >"$d/gsym" 2>&1
		set -- "$(awk '/sum_/ { print "0x" $1 }' "$d/groups")"
		check "dwarf alias llvm-gsymutil" "not both names" [ "$($g --merged-functions --address="$1" "$f.gsym" 2>&1 | grep -cE 'sum_(one|two)')" -ge 2 ]
	fi
}

# Rows right at the end of a function, which cover nothing: GCC makes them behind a call that does not return.  libdw would take
# them for those of the function that begins there, and with folding another does.  Functions lie against each other here, in the
# opposite order of their rows.
line_ends() {
	local d=$WORK/line-ends n="dwarf line-ends" policy f rc wrong
	mkdir -p "$d"
	cat >"$d/in.c" <<-'EOF'
		#include <stdio.h>
		#define F(name, n) __attribute__((noinline, noclone, aligned(1))) int name(int a) { return printf("%d\n", a * n); }
		F(z, 17)
		F(y, 17)
		F(x, 18)
		F(w, 18)
		F(v, 19)
		int main(int argc, char **argv) { (void)argv; return z(argc) + y(argc) + x(argc) + w(argc) + v(argc) == 0; }
	EOF
	if ! gcc -O2 -gdwarf-5 -ffunction-sections -fno-ipa-icf -S "$d/in.c" -o "$d/in.s" 2>"$d/why" || ! sed -i 's/^\t\.cfi_endproc/\t.loc 1 99 1\n\t.loc 1 98 1\n&/' "$d/in.s" ||
		! sed 's/^\t\.cfi_startproc/\t.loc 1 97 1\n&/' "$d/in.s" >"$d/starts.s" ||
		! gcc "$d/in.s" -fuse-ld=bfd -Wl,--emit-relocs,--sort-section=name -o "$d/in" 2>>"$d/why" ||
		! gcc "$d/starts.s" -fuse-ld=bfd -Wl,--emit-relocs,--sort-section=name -o "$d/starts" 2>>"$d/why"; then
		skip "$n" "building: $(first_line "$d/why")"
		return
	fi
	for policy in overlay alias drop; do
		f=$d/$policy
		"$ICFOLD" -q --icf=all --debug-folded=$policy --map="$f.map" "$d/in" -o "$f" >"$f.log" 2>&1 || { not_ok "$n $policy" "$(first_line "$f.log")"; continue; }
		"$ICFOLD" verify --icf=all "$d/in" "$f" >"$f.log" 2>&1
		rc=$?
		check "$n $policy verify" "$(grep -m 1 ': .*expected' "$f.log")" [ $rc = 0 ]
		[ $policy != alias ] || continue
		if have llvm-dwarfdump && have python3; then
			"$TESTS/judges/lines.py" "$d/in" "$f" "$f.map" >"$f.log" 2>&1
			rc=$?
			check "$n $policy lines" "$(first_line "$f.log")" [ $rc = 0 ]
			# The same program with rows of no bytes where functions begin: such rows must be kept.
			wrong=$("$TESTS/judges/lines.py" "$d/starts" "$f" "$f.map" | grep -c "empty row at a boundary .*'is_stmt'")
			check "$n $policy lines, lost starts" "$wrong seen" [ "$wrong" = $((INSN == 4 ? 4 : 3)) ]
		fi
		have eu-addr2line || continue
		nm "$f" | awk '$3 ~ /^[v-z]$/ { print "0x" $1 }' | eu-addr2line -e "$f" | awk -F: '{ print $2 }' | tr '\n' ' ' >"$f.lines"
		mark_folded "$f" "$f.map"
		rc=5
		! grep -q ' x folded' "$f.map" || rc=6
		check "$n $policy eu-addr2line" "lines $(cat "$f.lines")" [ "$(cat "$f.lines")" = "7 $rc $rc 4 4 " ]
	done
}

# 64-bit DWARF 5 whose addresses are indices into .debug_addr: each slot of a kept function holds the function's new address, as
# llvm-dwarfdump reads it.  The form gdwarf64-addrx asks the others about such a program.
addrx64() {
	local d=$WORK/addrx64 n="dwarf addrx64" rc at
	have clang && have ld.lld && have llvm-dwarfdump && have jq || { skip "$n" "no clang, lld, llvm-dwarfdump or jq"; return; }
	build "$d" clang lld "-gdwarf-5 -gdwarf64 -O2 $S" "" || { skip "$n" "building: $(first_line "$d/why")"; return; }
	llvm-dwarfdump -v --debug-info "$d/in" >"$d/info"
	check "$n input" "no 64-bit units with indexed addresses" [ "$(grep -c 'Unit: .*format = DWARF64' "$d/info")" -ge 4 -a "$(grep -c 'low_pc \[DW_FORM_addrx' "$d/info")" -gt 20 ]
	"$ICFOLD" -q --icf=all --map="$d/map" "$d/in" -o "$d/out" 2>"$d/log" || { not_ok "$n" "$(first_line "$d/log")"; return; }
	"$ICFOLD" verify --icf=all "$d/in" "$d/out" >"$d/log" 2>&1
	rc=$?
	check "$n verify" "$(grep -m 1 ': .*expected' "$d/log")" [ $rc = 0 ]
	mark_folded "$d/out" "$d/map"
	kept_units "$d/map" >"$d/units"
	check "$n folds and moves" "few" [ "$(grep -c ' folded' "$d/map")" -ge 5 -a "$(awk '{ sub(/^0+/, "", $3) } $1 != $3' "$d/units" | wc -l)" -ge 10 ]
	address_slots "$d/in" >"$d/slots.in"
	# Where functions lie against each other, a slot with the start of one may be for the call with which the one before ends.
	awk '
		function hex(s, i, v) { for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		{ printf "%x %x\n", hex($1) + hex($2), hex($3) + hex($2) }' "$d/map" >"$d/ends"
	address_slots "$d/out" >"$d/slots.out"
	verdict "$n slots" "$(awk '
		FILENAME == ARGV[1] { sub(/^0+/, "", $3); new[$1] = $3; next }
		FILENAME == ARGV[2] { end[$1] = $2; next }
		FILENAME == ARGV[3] { n++; kind[n] = $1; was[n] = $2; next }
		{ i++; if ($1 != kind[i]) print "slot", i, kind[i], "became", $1
		  if (was[i] in new) { seen++; if ($2 != new[was[i]] && $2 != end[was[i]]) print "slot", i, was[i], "became", $2, "and not", new[was[i]] } }
		END { if (i < n || seen < 20) print i, "slots,", seen, "of functions, of", n }' "$d/units" "$d/ends" "$d/slots.in" "$d/slots.out" | head -n 2 | tr '\n' ' ')"
	# Its header is longer by 8 bytes, and still compared: what it says of segments, which nobody reads, and a slot behind it.
	for at in 15 24; do
		cp "$d/out" "$d/broken"
		# shellcheck disable=SC2046
		set -- $(section_at "$d/out" .debug_addr)
		printf '\001' | dd of="$d/broken" bs=1 seek=$(($1 + at)) conv=notrunc 2>/dev/null
		"$ICFOLD" verify --icf=all "$d/in" "$d/broken" >"$d/log" 2>&1
		rc=$?
		check "$n verify, other byte $at" "exit status $rc" [ $rc = 1 ]
	done
}
# address_slots FILE: "FORMAT ADDRESS" of each slot of .debug_addr, without leading zeros.
address_slots() {
	llvm-dwarfdump --debug-addr "$1" | sed -nE 's/^Address table header: .*format = (DWARF[0-9]+).*addr_size = 0x08.*/# \1/p; s/^0x0*([0-9a-f]+)$/\1/p' |
		awk '$1 == "#" { format = $2; next } { print format, $1 }'
}

# epilogue_begin, which neither GCC 12 nor clang 14 writes, stays on its rows: on the kept functions' own, on the folded ones' in
# the artificial unit, and on no row behind them.  All functions are in one sequence, which is written anew.  z and y, x and w have the same lines and differ only in the mark.
epilogues() {
	local d=$WORK/epilogues n="dwarf epilogues" policy f rc late=0
	mkdir -p "$d"
	cat >"$d/in.c" <<-'EOF'
		#include <stdio.h>
		#define F(name, n) __attribute__((noinline, noclone)) int name(int a) { return printf("%d\n", a * n) + n; }
		F(z, 17) F(y, 17)
		F(x, 18) F(w, 18)
		F(v, 19)
		F(u, 19)
		int main(int argc, char **argv) { (void)argv; return (z(argc) ^ y(argc) ^ x(argc) ^ w(argc) ^ v(argc) ^ u(argc)) < 0; }
	EOF
	# "late" has each mark one row behind, "both" has one in each function.
	if ! gcc -O2 -gdwarf-5 -gno-column-info -fno-ipa-icf -S "$d/in.c" -o "$d/in.s" 2>"$d/why"; then
		skip "$n" "building: $(first_line "$d/why")"
		return
	fi
	for f in in both late; do
		awk -v late=$late -v both=$f '
			BEGIN { split("z 80 y 80 x 82 w 82 v 84 u 86", l); for (i = 1; i in l; i += 2) line[l[i]] = l[i + 1] }
			/^[u-z]:/ { at = substr($0, 1, 1) }
			/^\.LFE/ { at = "" }
			at == "" || !/^\t(addq\t\$8, %rsp|ldp\tx29, x30, \[sp\])/ { print; next }
			{
				mark = at ~ /[yx]/ && both != "both" ? "" : " epilogue_begin"
				print "\t.loc 1 " line[at] " 1" (late ? "" : mark); print
				print "\t.loc 1 " line[at] + 1 " 1" (late ? mark : "")
			}' "$d/in.s" >"$d/$f.marked.s"
		[ $f != both ] || late=1
		if ! gcc "$d/$f.marked.s" -Wl,--emit-relocs -o "$d/$f" 2>"$d/why"; then
			skip "$n" "building: $(first_line "$d/why")"
			return
		fi
	done
	# Here the rows of folded functions are those of the kept ones, so none of their own are there.
	"$ICFOLD" -q --allow-growth --icf=all "$d/both" -o "$d/both.out" >"$d/log" 2>&1
	"$ICFOLD" verify --icf=all "$d/both" "$d/both.out" >"$d/log" 2>&1
	check "$n both" "$(grep -m 1 ': .*expected' "$d/log")" grep -qx equal "$d/log"
	"$ICFOLD" verify --icf=all "$d/in" "$d/both.out" >"$d/log" 2>&1
	check "$n both, rows without the mark" "$(tail -n 1 "$d/log")" grep -qE 'line rows of folded functions: .*expected' "$d/log"
	! have llvm-dwarfdump || epilogue_rows "$d/in" >"$d/in.rows"
	for policy in overlay alias drop; do
		f=$d/$policy
		"$ICFOLD" -q --allow-growth --icf=all --debug-folded=$policy --map="$f.map" "$d/in" -o "$f" >"$f.log" 2>&1 || { not_ok "$n $policy" "$(first_line "$f.log")"; continue; }
		"$ICFOLD" verify --icf=all "$d/in" "$f" >"$f.log" 2>&1
		rc=$?
		check "$n $policy verify" "$(grep -m 1 ': .*expected' "$f.log")" [ $rc = 0 ]
		"$ICFOLD" verify --icf=all "$d/late" "$f" >"$f.log" 2>&1
		rc=$?
		check "$n $policy verify, other rows" "$rc, $(first_line "$f.log")" [ "$rc$(grep -c -m 1 'row: .*epilogue_begin' "$f.log")" = 11 ]
		if ! have llvm-dwarfdump || ! have jq; then continue; fi
		mark_folded "$f" "$f.map"
		check "$n $policy folds" "$(grep -c ' folded' "$f.map") functions" [ "$(grep -cE ' [u-z] folded' "$f.map")" = 3 ]
		moved_rows "$d/in.rows" "$f.map" $policy >"$f.want"
		epilogue_rows "$f" | sort >"$f.have"
		verdict "$n $policy rows" "$(diff "$f.want" "$f.have" | sed -n 1,3p | tr '\n' ' ')"
		if [ -x "$JUDGE" ]; then
			"$JUDGE" --policy=$policy "$d/in" "$f" "$f.map" >"$f.log" 2>&1
			check "$n $policy judge" "$(grep -m 1 WRONG "$f.log")" grep -q '^right$' "$f.log"
			"$JUDGE" --policy=$policy "$d/late" "$f" "$f.map" >"$f.log" 2>&1
			check "$n $policy judge, other rows" "it sees nothing" grep -q '^WRONG.* line' "$f.log"
		fi
	done
}
# A folder of which the artificial table has no file is not in it: the folder is relative, but the files that are there are not.
relative_dirs() {
	local d=$WORK/relative n="dwarf relative folders"
	mkdir -p "$d/here/sub" "$d/abs"
	cat >"$d/here/sub/part.h" <<-'END'
		#include <stdio.h>
		static __attribute__((noinline, noclone)) int part(int a) { return printf("%d\n", a * 17) + 3; }
	END
	cat >"$d/abs/twins.h" <<-'END'
		#include <stdio.h>
		__attribute__((noinline, noclone)) int one(int a) { return printf("%d\n", a * 19) + 3; }
		__attribute__((noinline, noclone)) int two(int a) { return printf("%d\n", a * 19) + 3; }
	END
	printf '#include "part.h"\nint b(int a) { return part(a) * 2; }\n' >"$d/here/b.c"
	printf '#include "part.h"\n#include "%s"\nint b(int);\nint main(int n, char **v) { (void)v; return part(n) + b(n) + one(n) + two(n) == 0; }\n' "$d/abs/twins.h" >"$d/here/a.c"
	if ! (cd "$d/here" && gcc -O2 -gdwarf-5 -fno-ipa-icf -Isub "-fdebug-prefix-map=$d/here=." a.c b.c -Wl,--emit-relocs -o ../in) 2>"$d/why"; then
		skip "$n" "building: $(first_line "$d/why")"
		return
	fi
	"$ICFOLD" -q --allow-growth "$d/in" -o "$d/out" >"$d/log" 2>&1
	"$ICFOLD" verify "$d/in" "$d/out" >"$d/log" 2>&1
	check "$n verify" "$(grep -m 1 ': .*expected' "$d/log")" grep -qx equal "$d/log"
	have llvm-dwarfdump || { skip "$n table" "no llvm-dwarfdump"; return; }
	llvm-dwarfdump --debug-line "$d/out" | awk '/^include_directories/ { $1 = ""; all = all $0 } /^debug_line\[/ { all = "" } /"<folded functions>"/ { print all }' >"$d/dirs"
	check "$n table" "$(cat "$d/dirs")" grep -qE '= "/" .*/abs"$' "$d/dirs"
}
# Half of the functions have a line table that no unit names: nobody who looks up an address reads it.
nameless_tables() {
	local d half flags s policy
	have clang && have ld.lld || { skip "dwarf nameless" "no clang or ld.lld"; return; }
	for half in one two; do
		d=$WORK/nameless-$half
		mkdir -p "$d"
		for s in main one two; do
			flags=-g
			[ $s != $half ] || flags=-gline-directives-only
			clang -O2 -gdwarf-5 $flags -w -c "$SRC/$s.c" -o "$d/$s.o" 2>"$d/why" || { skip "dwarf nameless-$half" "$(first_line "$d/why")"; return; }
		done
		clang -fuse-ld=lld -Wl,--emit-relocs "$d"/{main,one,two}.o "$WORK/third.o" -o "$d/in" || return
		for policy in overlay alias drop; do
			judge_fold "nameless-$half" "$d/in" all $policy
			"$ICFOLD" verify --icf=all "$d/in" "$d/in.all.$policy" >"$d/log" 2>&1
			check "dwarf nameless-$half all $policy verify" "$(grep -m 1 ': .*expected' "$d/log")" grep -qx equal "$d/log"
		done
	done
}
# epilogue_rows FILE: "ADDRESS LINE", decimal, of the rows that have the mark.
epilogue_rows() {
	llvm-dwarfdump --debug-line "$1" | awk '/^0x.* epilogue_begin/ { print $1, $2 }' | while read -r va line; do echo $((va)) "$line"; done
}
# moved_rows ROWS MAP POLICY: the input's ROWS where the functions are in the output; `drop` has none of folded functions.
moved_rows() {
	while read -r old size new name folded; do
		echo $((0x$old)) $((0x$size)) $((0x$new)) "$name" "$folded"
	done <"$2" | awk -v policy="$3" '
		NR == FNR { n++; old[n] = $1; size[n] = $2; new[n] = $3; gone[n] = $5 == "folded" && policy == "drop"; next }
		{ for (i = 1; i <= n; i++) if ($1 >= old[i] && $1 < old[i] + size[i] && !gone[i]) print new[i] + $1 - old[i], $2 }' - "$1" | sort
}

# --- all of them --------------------------------------------------------------------------------------------------------
S=-ffunction-sections
# In place, a function that pushes first becomes a jump.  The second unwind row is then in the middle of the jump, where no PC is.
thunk_in_place() {
	local d=$WORK/thunk_in_place
	[ -x "$JUDGE" ] && have jq || { skip "dwarf thunk_in_place" "no $JUDGE or jq"; return; }
	mkdir -p "$d"
	printf 'int %s(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x + 3; return s; }\n' one two >"$d/p.c"
	echo 'int main(void) { return one(5) != two(5); }' >>"$d/p.c"
	gcc -g -O0 -fcf-protection=none -Wl,--emit-relocs "$d/p.c" -o "$d/p" && "$ICFOLD" -q --allow-growth --in-place --map="$d/map" "$d/p" -o "$d/out" &&
		mark_folded "$d/out" "$d/map" && "$JUDGE" "$d/p" "$d/out" "$d/map" >"$d/log" 2>&1
	check "dwarf thunk_in_place" "$(grep -m 1 thunk "$d/log")" grep -q ' 1 thunks;' "$d/log"
	check "dwarf thunk_in_place right" "$(grep -m 1 thunk "$d/log")" grep -qx right "$d/log"
}

list() {
	cat <<-END
		form gcc-2-O0    gcc   bfd  "-gdwarf-2 -O0"                  ""          all.overlay safe.overlay
		form gcc-3-O2    gcc   gold "-gdwarf-3 -O2 $S"               ""          all.overlay all.drop
		form gcc-4-O0    gcc   lld  "-gdwarf-4 -O0 $S"               "-no-pie"   safe.overlay all.alias
		form gcc-4-O2    gcc   bfd  "-gdwarf-4 -O2"                  ""          gdb-kept all.overlay all.alias all.drop
		form gcc-5-O0    gcc   gold "-gdwarf-5 -O0"                  ""          safe.overlay all.drop
		form gcc-5-O2    gcc   bfd  "-gdwarf-5 -O2 $S"               ""          gdb all.overlay safe.overlay all.alias
		form gcc-5-O2-np gcc   lld  "-gdwarf-5 -O2 -fno-pie"         "-no-pie"   all.overlay safe.drop
		form clang-2-O2  clang lld  "-gdwarf-2 -O2 $S"               ""          all.overlay
		form clang-3-O0  clang bfd  "-gdwarf-3 -O0"                  ""          safe.overlay all.drop
		form clang-4-O2  clang gold "-gdwarf-4 -O2"                  ""          gdb all.overlay all.alias
		form clang-5-O0  clang lld  "-gdwarf-5 -O0 -fPIE $S"         "-pie"      gdb all.overlay safe.drop
		form clang-5-O2  clang bfd  "-gdwarf-5 -O2 -fPIE"            "-pie"      safe.overlay gdb-folded all.overlay all.alias
		form relative-4-O0 clang bfd "-gdwarf-4 -O0"                 ""         all.overlay
		form relative-5-O2 clang bfd "-gdwarf-5 -O2"                 ""         safe.overlay all.alias
		form relative-gcc   gcc   bfd "-gdwarf-5 -O2"                 ""         all.overlay
		form gdwarf64-gcc   gcc   bfd  "-gdwarf-5 -gdwarf64 -O2"        ""       all.overlay all.alias
		form gdwarf64-4     gcc   bfd  "-gdwarf-4 -gdwarf64 -O2 $S"     ""       all.overlay
		form gdwarf64-addrx clang lld  "-gdwarf-5 -gdwarf64 -O2 $S"     ""       all.overlay all.alias
		form types-4        gcc   bfd  "-gdwarf-4 -fdebug-types-section -O2" ""  all.overlay all.drop
		form types-5        gcc   gold "-gdwarf-5 -fdebug-types-section -O0" ""  all.overlay
		form types-clang    clang lld  "-gdwarf-5 -fdebug-types-section -O2" ""  all.overlay
		form zlib           gcc   bfd  "-gdwarf-5 -gz=zlib -O2"         "-gz=zlib" all.overlay
		form zlib-lld       clang lld  "-gdwarf-4 -O2"                  "-gz=zlib" all.overlay
		form zstd           gcc   bfd  "-gdwarf-5 -O2"                  "-Wl,--compress-debug-sections=zstd" all.overlay
		form zdebug         gcc   bfd  "-gdwarf-4 -O2"                  ""       change=old_zlib all.overlay
		form lto-gcc        gcc   bfd  "-gdwarf-5 -flto -O2"            ""       all.overlay safe.overlay
		form lto-clang      clang lld  "-gdwarf-5 -flto -O1"            ""       all.overlay
		form index-gold     gcc   gold "-gdwarf-4 -ggnu-pubnames -O2"   "-Wl,--gdb-index" gdb-kept all.overlay all.alias
		form index-lld      clang lld  "-gdwarf-5 -ggnu-pubnames -O2"   "-Wl,--gdb-index" all.overlay
		form names-clang    clang lld  "-gdwarf-5 -gpubnames -O2"       ""       all.overlay all.drop
		form dwz-5          gcc   bfd  "-gdwarf-5 -O2"                  ""       change=through_dwz gdb-kept all.overlay all.alias
		form dwz-4          gcc   bfd  "-gdwarf-4 -O0"                  ""       change=through_dwz all.overlay
		form macros         gcc   bfd  "-gdwarf-5 -g3 -O2"              ""       all.overlay
		form discard        gcc   bfd  "-gdwarf-5 -O2"                  "-Wl,--discard-all" all.overlay safe.overlay
		form macros-4       gcc   bfd  "-gdwarf-4 -g3 -O0"              ""       all.overlay
		split_dwarf
		corrupt
		refuses_dwarf64
		tools
		alias_lists_all
		line_ends
		addrx64
		epilogues
		relative_dirs
		nameless_tables
		thunk_in_place
	END
}
# run_list: its own failures are counted from what it printed.
one() {
	local t
	t=$(date +%s%N)
	eval "$1"
	[ -n "${KEEP:-}" ] && echo "# $(($(($(date +%s%N) - t)) / 1000000)) ms: $1"
}
list >"$WORK/list"
n=0
while IFS= read -r line; do
	w=${line#form }
	case " ${DWARF_ONLY:-${w%% *}} " in *" ${w%% *} "*) ;; *) continue ;; esac
	n=$((n + 1))
	while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n; done
	one "$line" >"$WORK/$(printf %03d $n).result" 2>"$WORK/$(printf %03d $n).err" </dev/null &
done <"$WORK/list"
wait
cat "$WORK"/*.result
cat "$WORK"/*.err >&2
failures=$((failures + $(cat "$WORK"/*.result | grep -c '^not ok ')))
finish
