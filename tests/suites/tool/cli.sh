#!/bin/bash
# cli.sh: the command line: options, exit codes, messages, and what happens to files if something goes wrong.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite cli

# Two programs with known duplicates: recur (p_* and q_* are copies) and addr (observed addresses).
build() { # FIXTURE OUT [FLAG...]
	load_recipe "$1"
	compile_fixture gcc "-O2" pie "obj.$1" && link_fixture gcc bfd pie "obj.$1" "$2" "${@:3}"
}
if ! build recur prog || ! build addr watch || ! gcc -pie obj.recur/pie/*.o -o norelocs; then
	not_ok cli "the test programs do not build"
	finish
fi
mkdir out

# run NAME [ARG...]: runs icfold, leaves rc, NAME.out and NAME.err.
rc=0
run() {
	local name=$1
	shift
	"$ICFOLD" "$@" >"$name.out" 2>"$name.err" </dev/null
	rc=$?
}
folds() { # NAME WHY-suffix: the last run succeeded
	if [ $rc = 0 ]; then return 0; fi
	not_ok "$1" "exit status $rc: $(first_line "${2:-r}.err")"
	return 1
}
# refused NAME FILE WORD [STATUS]: the last run (named r) failed as it must: status 1 or STATUS, one line `icfold: FILE: what` on standard
# error that has WORD in it (wrong usage: and one that leads to --help), nothing on standard output, and no file out/x or anything else in out.
refused() {
	local name=$1 file=$2 word=$3 status=${4:-1} left
	left=$(ls -A out)
	if [ $rc != "$status" ]; then
		not_ok "$name" "exit status $rc instead of $status: $(first_line r.err)"
	elif [ -s r.out ]; then
		not_ok "$name" "standard output: $(first_line r.out)"
	elif [ "$(grep -cvx "Try 'icfold --help'\." r.err)" != 1 ]; then
		not_ok "$name" "not one line of message: $(head -n 2 r.err | tr '\n' '|')"
	elif [ -n "$file" ] && [ "$(cut -c "1-$((${#file} + 10))" r.err)" != "icfold: $file: " ]; then
		not_ok "$name" "message is not 'icfold: $file: ...': $(first_line r.err)"
	elif ! grep -q '^icfold: .' r.err; then
		not_ok "$name" "message does not begin with 'icfold: ': $(first_line r.err)"
	elif [ -n "$word" ] && ! grep -qiE -- "$word" r.err; then
		not_ok "$name" "message says nothing of $word: $(first_line r.err)"
	elif [ -n "$left" ]; then
		not_ok "$name" "left behind: $left"
	else
		ok "$name"
	fi
	rm -rf out
	mkdir out
}

# --- help, version, wrong usage
run r --help
check cli/help "status $rc or nothing printed" test $rc = 0 -a -s r.out -a ! -s r.err
missing=
for o in --icf --no-thunks --keep-unique --keep-unique-file --print-icf-sections --map --stats --strip-debug --emit-relocs \
	--keep-build-id --depfile --threads -q -v --time-passes --help --version --debug-folded; do
	grep -q -- "$o" r.out || missing="$missing $o"
done
check cli/help-lists-options "missing:$missing" test -z "$missing"
run r --version
check cli/version "status $rc, '$(first_line r.out)'" grep -qE '^icfold [0-9]' r.out

usage_error() { # NAME WORD ARG...
	local name=$1 word=$2
	shift 2
	run r "$@"
	refused "cli/$name" "" "$word" 2
}
usage_error no-arguments ''
usage_error no-input '' -o out/x
usage_error no-output '-o' prog
usage_error two-inputs '' prog watch -o out/x
usage_error unknown-option 'frobnicate' --frobnicate prog -o out/x
usage_error unknown-letter 'Z' -Z prog -o out/x
usage_error strip-all-relocations 'strip-all' --strip-all --emit-relocs prog -o out/x
usage_error bad-icf 'sometimes' --icf=sometimes prog -o out/x
usage_error bad-threads 'threads' --threads=none prog -o out/x
usage_error no-threads 'threads' --threads=0 prog -o out/x
usage_error bad-stats 'stats' --stats=xml prog -o out/x
usage_error bad-debug-folded 'debug-folded' --debug-folded=maybe prog -o out/x
usage_error missing-value '' prog -o
check cli/leads-to-help "$(tail -n 1 r.err)" grep -qx "Try 'icfold --help'\." r.err
usage_error missing-keep-file 'nowhere' --keep-unique-file=nowhere prog -o out/x
check cli/missing-file-is-no-usage "$(tail -n 1 r.err)" test "$(wc -l <r.err)" = 1

# Every command words its errors alike.
misused() { # LINE ARG...
	local line=$1 command=$2
	shift
	run r "$@"
	check "cli/$command-misused" "status $rc: $(tr '\n' '|' <r.err)" test $rc = 2 -a ! -s r.out -a \
		"$(tr '\n' '|' <r.err)" = "icfold: $command: $line|Try 'icfold $command --help'.|"
}
misused 'expected one FILE' dump
misused "unrecognized option '--frobnicate'" dump --frobnicate prog
misused "invalid option -- 'Z'" symbolize -Z
misused "option '--obj' requires an argument" symbolize --obj
misused '--output-style=XML: must be LLVM, GNU or JSON' symbolize --output-style XML
misused '--stack needs the file of the addresses: --obj=FILE' symbolize --stack
misused 'expected FUNCTION and FILE' inlines main
misused "unrecognized option '--frobnicate'" inlines --frobnicate main prog
misused 'expected FILE, the folded program' profile
misused "unrecognized option '--frobnicate'" profile --frobnicate prog
misused '--to=gcov: must be perfscript, profgen, bolt, autofdo, pprof, collapsed, gmon or callgrind' profile --to=gcov prog
misused 'expected FILE' symbols --format=breakpad
misused 'expected --format=FORMAT' symbols prog
misused "unrecognized option '--frobnicate'" symbols --frobnicate prog
misused '--format=dwarf: must be breakpad, gsym or json' symbols --format=dwarf prog
misused 'expected two files, IN and OUT' verify prog
misused "unrecognized option '--frobnicate'" verify --frobnicate prog prog
misused '--icf=none: must be safe or all' verify --icf=none prog prog
misused "unrecognized option '--frobnicate'" audit --frobnicate prog
misused '--top=-1: must be a number' audit --top -1 prog
misused "unrecognized option '--frobnicate'" --linker-wrapper --frobnicate -- ld -v
misused "expected -- and the linker's command behind it" --linker-wrapper

# What all commands share: the general options, and whole names of options.
for c in fold verify symbolize inlines profile symbols audit dump --linker-wrapper; do
	run r help "$c"
	mv r.out help.out
	run q "$c" --help
	check "cli/help-$c" "other text than --help" cmp -s help.out q.out
	case $c in --*) continue ;; esac
	missing=
	for o in -q -v -V -h --quiet --verbose --version --help --threads; do grep -qE -- "(^|[ ,])$o([=, ]|$)" q.out || missing="$missing $o"; done
	check "cli/general-in-$c" "its help has no$missing" test -z "$missing"
	case $c in
	fold) arg=(prog -o out/x) ;; verify) arg=(prog prog) ;; inlines) arg=(main prog) ;; symbolize) arg=(-e prog main) ;;
	profile)
		"$ICFOLD" prog -o folded
		readelf -hW folded | sed -nE 's/^ *Entry point address: *(0x[0-9a-f]*)$/ \1\/\1\/P\/-\/-\/0 /p' >perf.txt
		arg=(folded perf.txt)
		;;
	symbols) arg=(--format=breakpad prog) ;;
	dump) arg=(folded) && "$ICFOLD" prog -o folded ;; *) arg=(prog) ;;
	esac
	run r "$c" -q -v --threads=2 "${arg[@]}"
	check "cli/general-$c" "status $rc: $(first_line r.err)" test $rc = 0
	run r "$c" -V
	check "cli/version-$c" "$(first_line r.out)" grep -qE '^icfold [0-9]' r.out
	run r "$c" --versio "${arg[@]}"
	check "cli/abbreviated-$c" "status $rc: $(first_line r.err)" test $rc = 2 -a "$(grep -c "unrecognized option '--versio'" r.err)" = 1
done
run r verify -q prog folded
check cli/verify-quiet "status $rc: $(first_line r.out)$(first_line r.err)" test $rc = 0 -a ! -s r.out -a ! -s r.err
for wrong in audti:audit verfy:verify symbolise:symbolize dmup:dump; do
	run r ${wrong%:*} prog
	check "cli/meant-${wrong#*:}" "$(first_line r.err)" grep -qx "icfold: '${wrong%:*}' is neither a command nor a file; did you mean '${wrong#*:}'?" r.err
done
run r --help
check cli/help-commands "$(first_line r.out)" bash -c '[ "$(sed -n "/^Commands:/,/^$/p" r.out | grep -cE "^  (fold|verify|symbolize|inlines|profile|symbols|audit|dump|--linker-wrapper|help)")" = 10 ] && [ "$(head -n 6 r.out | grep -c ^Commands:)" = 1 ]'
run r inlines --json main prog
check cli/inlines-json "$(head -n 2 r.out | tr '\n' ' ')" python3 -c 'import json; json.load(open("r.out"))'
run r symbolize --json -e prog main
run q symbolize --output-style=JSON -e prog main
check cli/symbolize-json "$(first_line r.err)" cmp -s r.out q.out
run r --json prog -o out/x
check cli/fold-json "$(first_line r.err)" python3 -c 'import json; json.load(open("r.out"))'
# The log of a build machine is no terminal.
run r --summary prog -o out/x
run q -q --summary=always prog -o out/x
check cli/summary-always "$(first_line r.out)" bash -c 'grep -q "%" r.out && cmp -s r.out q.out'
run r --summary=never prog -o out/x
check cli/summary-never "$(first_line r.out)" test $rc = 0 -a ! -s r.out
rm -rf out folded && mkdir out

# --- the ordinary run
run r prog -o out/x
if folds cli/fold; then
	check cli/fold "prints off a terminal: $(first_line r.out) $(first_line r.err)" test ! -s r.out -a ! -s r.err
fi
check cli/fold-runs "the output does not run like the input" bash -c 'diff <(./prog) <(out/x) >/dev/null'
check cli/nothing-else-in-folder "$(ls -A out | tr '\n' ' ')" test "$(ls -A out)" = x
cp out/x default
run r --icf=safe prog -o safe
check cli/safe-is-default "other bytes than --icf=safe" cmp -s default safe
run r -o o1 prog && cmp -s o1 default && run r -oo2 prog && cmp -s o2 default && run r prog -o o3 --icf=safe && cmp -s o3 default &&
	run r -o o4 -- prog && cmp -s o4 default
check cli/argument-order "-o FILE, -oFILE, options last or -- give other bytes or an error: $(first_line r.err)" test $rc = 0 -a -e o4
run r --icf=all prog -o all
check cli/all "not smaller than the input, or an error: $(first_line r.err)" test $rc = 0 -a "$(code_bytes all)" -lt "$(code_bytes prog)"
run r --icf=none prog -o none
check cli/none-folds-nothing "two functions with one address" test $rc = 0 -a "$(symbol_value none p_self)" != "$(symbol_value none q_self)"
check cli/all-folds "p_self and q_self keep apart" test "$(symbol_value all p_self)" = "$(symbol_value all q_self)"
check cli/safe-folds "p_self and q_self keep apart" test "$(symbol_value default p_self)" = "$(symbol_value default q_self)"
run r none -o out/x -v
check cli/output-has-no-relocations "$(grep -m1 compact r.err)" grep -q 'references from the code and dynamic relocations' r.err
rm -f out/x

# --- in place, mode bits, links
for mode in 755 750 705 555; do
	cp prog m
	chmod $mode m
	(umask 022 && "$ICFOLD" -q m -o out/x) 2>r.err
	check "cli/mode-$mode" "mode is $(stat -c %a out/x 2>/dev/null)" test "$(stat -c %a out/x 2>/dev/null)" = $mode
	rm -f out/x m
done
cp prog inplace
chmod 751 inplace
run r inplace -o inplace
check cli/in-place "other bytes than to another file, or an error: $(first_line r.err)" cmp -s inplace default
check cli/in-place-mode "mode is $(stat -c %a inplace)" test "$(stat -c %a inplace)" = 751
cp prog inplace
run r inplace -o ./inplace
check cli/in-place-other-name "other bytes" cmp -s inplace default
cp prog linked && ln -s linked link
run r link -o link
check cli/in-place-link "the link was replaced, or its file not" test -L link -a -z "$(cmp linked default 2>&1)"
# The times say whether the file was touched.
cp default changed && touch -d 2001-01-01 changed
run r --write-if-changed prog -o changed
check cli/write-if-changed-same "touched" test $rc = 0 -a "$(stat -c %Y changed)" = "$(date -d 2001-01-01 +%s)"
chmod 700 changed
run r --write-if-changed prog -o changed
check cli/write-if-changed-mode "mode is $(stat -c %a changed)" test "$(stat -c %a changed)" = "$(stat -c %a default)"
touch -d 2001-01-01 changed
run r --write-if-changed --icf=none prog -o changed
check cli/write-if-changed-other "not replaced" test $rc = 0 -a "$(stat -c %Y changed)" != "$(date -d 2001-01-01 +%s)" -a -n "$(cmp changed default 2>&1)"
run r --write-if-changed prog -o out/new
check cli/write-if-changed-new "$(first_line r.err)" cmp -s out/new default
rm -f out/new changed linked link
run r --strip-all prog -o s1
check cli/strip-all "$(first_line r.err), or symbols" bash -c "[ $rc = 0 ] && ! readelf -SW s1 | grep -qE '\\.(symtab|strtab|debug_)' && diff <(./prog) <(./s1) >/dev/null"
check cli/strip-all-smaller "not smaller" test "$(file_bytes s1)" -lt "$(file_bytes default)"
echo old >out/x
run r prog -o out/x
check cli/overwrites "an older OUTPUT is not replaced" cmp -s out/x default
rm -f out/x

# --- options that select
run r --icf=all --keep-unique=q_self prog -o k1
check cli/keep-unique "q_self was folded" test $rc = 0 -a "$(symbol_value k1 p_self)" != "$(symbol_value k1 q_self)"
check cli/keep-unique-only "others were not folded" test "$(symbol_value k1 p_even)" = "$(symbol_value k1 q_even)"
run r --icf=all --keep-unique=q_self --keep-unique q_even prog -o k2
check cli/keep-unique-twice "q_self or q_even was folded" test $rc = 0 -a "$(symbol_value k2 p_self)" != "$(symbol_value k2 q_self)" -a \
	"$(symbol_value k2 p_even)" != "$(symbol_value k2 q_even)"
printf 'q_self\nq_even\n' >names
run r --icf=all --keep-unique-file=names prog -o k3
check cli/keep-unique-file "other bytes than with two --keep-unique" cmp -s k2 k3
run r --no-thunks watch -o nothunks
if folds cli/no-thunks; then
	check cli/no-thunks "the program sees other addresses" bash -c 'diff <(./watch strict) <(./nothunks strict) >/dev/null'
	run r watch -o thunks
	check cli/thunks "the program sees other addresses" bash -c 'diff <(./watch strict) <(./thunks strict) >/dev/null'
	check cli/thunks-differ "--no-thunks changes nothing" bash -c '! cmp -s thunks nothunks'
fi

# --- response files
printf -- "--icf=all\n  --keep-unique='q_self' \"-o\" \"out/with space\"\nprog" >args
run r @args
check cli/response-file "$(first_line r.err)" cmp -s "out/with space" k1
printf -- '-o out/a\\ b --icf=all --keep-unique=q_self' >args
run r prog @args
check cli/response-file-backslash "$(first_line r.err)" cmp -s "out/a b" k1
printf '@inner -o out/n' >args
printf -- 'prog' >inner
run r @args
check cli/response-file-nested "$(first_line r.err)" cmp -s out/n default
rm -rf out && mkdir out

# --- reports
run r --icf=all --print-icf-sections prog -o x1
sed -n '/^selected section /p;/^  removing identical section /p' r.out >shape
check cli/print-icf-sections "lines of another shape: $(grep -vE '^(selected section|  removing identical section) ' r.out | head -n 1)" \
	bash -c '[ -s r.out ] && cmp -s shape r.out && head -n 1 r.out | grep -q ^selected'
check cli/print-icf-sections-names "p_self and q_self are not in one group" bash -c \
	"awk '/^selected/ { n++ } { g[\$NF] = n } END { exit !(g[\"p_self\"] && g[\"p_self\"] == g[\"q_self\"]) }' r.out"
run s --icf=all --print-icf-sections=list prog -o x1
check cli/print-icf-sections-file "not what goes to standard output" bash -c 'cmp -s list r.out && [ ! -s s.out ]'
check cli/reports-change-nothing "other bytes" cmp -s x1 all

run r --icf=all --map=map prog -o x1
bad=$(grep -vE '^(0x)?[0-9a-f]+[[:space:]]+(0x)?[0-9a-f]+[[:space:]]+(0x)?[0-9a-f]+[[:space:]]+[^[:space:]]' map | grep -v '^#' | head -n 1)
check cli/map-shape "no map, or a line of another shape: $bad" test -s map -a -z "$bad"
bad=$(for f in p_self q_self p_even chain_a3 main; do
	line=$(awk -v f=$f '$4 == f' map)
	old=$(symbol_value prog $f) new=$(symbol_value all $f)
	echo "$line" | awk -v o="$old" -v n="$new" '{ sub(/^(0x)?0*/, "", $1); sub(/^(0x)?0*/, "", $3) } $1 == o && $3 == n { good = 1 } END { exit !good }' || echo "$f"
done)
check cli/map-addresses "not the addresses of the symbols: $(echo "$bad" | tr '\n' ' ')" test -z "$bad"
run r --map=nowhere/map prog -o x1
check cli/map-unwritable "status $rc, $(first_line r.err)" test $rc = 2 -a -s r.err

# "-" is standard output for a report, and no file.
to_standard_output() { # NAME FILE ARG...: writes what is in FILE
	local name=$1 file=$2 other
	shift 2
	run r "$@"
	cmp -s r.out "$file"
	other=$?
	check "cli/$name" "status $rc: $(first_line r.err), $(wc -c <r.out) of $(wc -c <"$file") bytes" test $other = 0 -a $rc = 0 -a -s r.out -a ! -e -
	rm -f ./-
}
"$ICFOLD" --icf=all --gc-functions --map=map --depfile=rule --print-icf-sections=list prog -o x1
to_standard_output map-standard map --icf=all --gc-functions --map=- prog -o x1
to_standard_output Map-standard map --icf=all --gc-functions -Map - prog -o x1
to_standard_output depfile-standard rule --depfile=- prog -o x1
to_standard_output print-icf-sections-standard list --icf=all --gc-functions --print-icf-sections=- prog -o x1
gcc -O0 -o unused -Wl,--emit-relocs -x c - <<<'static int never(int x) { return x; } int (*unused(void))(int) { return never; } int main(void) { return 0; }'
"$ICFOLD" --gc-functions --print-gc-functions=gone unused -o x1
to_standard_output print-gc-functions-standard gone --gc-functions --print-gc-functions=- unused -o x1
run r --icf=all --gc-functions --map=/dev/stdout --print-icf-sections=list prog -o x1
check cli/map-dev-stdout "status $rc" cmp r.out map
"$ICFOLD" audit --html=page prog && "$ICFOLD" audit --html=pages prog watch && "$ICFOLD" audit --rows=rows prog && "$ICFOLD" symbols --format=json -o symbols prog
to_standard_output html-standard page audit --html=- prog
to_standard_output html-standard-product pages audit --html=- prog watch
to_standard_output rows-standard rows audit --rows=- prog
to_standard_output symbols-standard symbols symbols --format=json -o - prog
for two in "--map=- --depfile=-" "--map=- --stats" "--map=- --json" "--depfile=- --print-icf-sections" "--map=- --print-icf-sections=-" \
	"--map=- --gc-functions --print-gc-functions" "--map=- --summary" "--map=- --gc-functions --why-live=main"; do
	# shellcheck disable=SC2086
	usage_error "standard-twice $two" 'another report goes to standard output' $two prog -o out/x
done
"$ICFOLD" --map=- prog -o x1 >/dev/full 2>r.err
check cli/map-standard-full "status $?: $(first_line r.err)" grep -q '^icfold: /dev/stdout: cannot write: No space' r.err

run r --stats prog -o x1
check cli/stats "status $rc or nothing printed" test $rc = 0 -a -s r.out
run r --stats=json --icf=all prog -o x1
if have jq; then
	check cli/stats-json "jq does not read it" jq -e 'type == "object" and length > 3' r.out >/dev/null
elif have python3; then
	check cli/stats-json "python3 does not read it" python3 -c 'import json,sys; sys.exit(len(json.load(open("r.out"))) < 4)'
else
	skip cli/stats-json "neither jq nor python3"
fi
run r -q --time-passes prog -o x1
check cli/time-passes "status $rc or nothing on standard error" test $rc = 0 -a -s r.err -a ! -s r.out
run r -v prog -o x1
check cli/verbose "status $rc or nothing printed" test $rc = 0 -a -n "$(cat r.out r.err)"
if have script && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	script -qec "'$ICFOLD' --icf=all prog -o x1" typed </dev/null >/dev/null 2>&1
	n=$(grep -acvE '^(Script (started|done)|[[:space:]]*$)' typed)
	check cli/summary "$n lines on a terminal instead of 1 to 3" test "$n" -ge 1 -a "$n" -le 3
	check cli/summary-percent "no per cent: $(first_line typed)" grep -aq '%' typed
	script -qec "'$ICFOLD' --icf=all --map=- prog -o x1" typed </dev/null >/dev/null 2>&1
	check cli/map-terminal "$(grep -a % typed | head -n 1)" bash -c 'grep -aq "[0-9a-f].* main" typed && ! grep -aq % typed'
	script -qec "'$ICFOLD' -q prog -o x1" typed </dev/null >/dev/null 2>&1
	n=$(grep -acvE '^(Script (started|done)|[[:space:]]*$)' typed)
	check cli/quiet "$n lines" test "$n" = 0
else
	skip cli/summary "no script (Debian: bsdutils), or no terminal to be had"
fi

# --- build-id, relocations, determinism
build_id() { readelf -nW "$1" 2>/dev/null | awk '/Build ID/ { print $NF }'; }
run r --icf=all --keep-build-id prog -o x1
check cli/keep-build-id "$(build_id prog) became $(build_id x1)" test -n "$(build_id prog)" -a "$(build_id prog)" = "$(build_id x1)"
check cli/new-build-id "still $(build_id all)" test -n "$(build_id all)" -a "$(build_id prog)" != "$(build_id all)"
check cli/build-id-of-mode "safe and all have one build-id" test "$(build_id all)" != "$(build_id none)"
for f in prog watch; do
	for n in 1 2 3 16; do "$ICFOLD" --icf=all --threads=$n $f -o t$n 2>r.err || cp $f t$n; done
	check cli/deterministic-$f "other bytes with another number of threads" bash -c 'cmp -s t1 t2 && cmp -s t1 t3 && cmp -s t1 t16'
done
check cli/no-relocations "relocation sections in the output" bash -c '! readelf -SW all | grep -qE "\.rela\.(text|data|rodata|eh_frame)"'
for mode in safe all; do
	for f in prog watch; do
		run r --icf=$mode --emit-relocs $f -o e1
		if ! folds "cli/emit-relocs-$mode-$f"; then continue; fi
		check "cli/emit-relocs-$mode-$f" "no relocations for .text" bash -c 'readelf -SW e1 | grep -q "\.rela\.text"'
		check "cli/emit-relocs-runs-$mode-$f" "does not run like the input" bash -c "diff <(./$f) <(./e1) >/dev/null"
		run r --icf=$mode --emit-relocs --print-icf-sections=again --stats e1 -o e2
		if ! folds "cli/again-$mode-$f"; then continue; fi
		check "cli/again-$mode-$f" "folding the output folds more: $(first_line again)" test -e again -a ! -s again
		check "cli/again-size-$mode-$f" "$(code_bytes e1) to $(code_bytes e2) bytes of code" test "$(code_bytes e1)" -le "$(($(code_bytes e2) + 16))"
		check "cli/again-runs-$mode-$f" "does not run like the input" bash -c "diff <(./$f) <(./e2) >/dev/null"
	done
done

# --- refusals
: >empty
run r empty -o out/x; refused refuse/empty empty ''
echo 'int main;' >text.c
run r text.c -o out/x; refused refuse/text text.c 'ELF'
run r missing -o out/x; refused refuse/missing missing 'No such file' 2
run r . -o out/x; refused refuse/directory . ''
run r /dev/null -o out/x; refused refuse/device /dev/null ''
run r prog --in-place --require-compact -o out/x; check refuse/both-levels "status $rc: $(first_line r.err)" test $rc = 2 -a ! -e out/x
run r obj.recur/pie/main_c.o -o out/x; refused refuse/object obj.recur/pie/main_c.o 'relocatable|ET_REL|object'
patched() { # NAME OFFSET BYTES WORD
	cp prog p.$1
	printf '%b' "$3" | dd of=p.$1 bs=1 seek="$2" conv=notrunc 2>/dev/null
	run r p.$1 -o out/x
	refused refuse/$1 p.$1 "$4"
}
patched elf32 4 '\001' '32'
patched big-endian 5 '\002' 'endian'
patched ppc64 18 '\025' 'machine|architecture|21'
patched core 16 '\004' 'core'
patched no-type 16 '\000' ''
patched section-table 40 '\377\377\377\377\377\377\377\177' ''
patched segment-table 32 '\377\377\377\377\377\377\377\177' ''
patched section-count 60 '\377\376' ''
patched section-size 58 '\001' ''
size=$(file_bytes prog)
for n in 1 4 16 63 64 1000 $((size / 4)) $((size / 2)) $((size - 64)) $((size - 1)); do
	head -c "$n" prog >short
	run r short -o out/x
	refused "refuse/truncated-$n" short ''
done
echo pclntab >section
objcopy --add-section .gopclntab=section --set-section-flags .gopclntab=alloc,readonly prog go 2>/dev/null
run r go -o out/x; refused refuse/go go 'Go'
objcopy --add-section .svm_heap=section prog java 2>/dev/null
run r java -o out/x; refused refuse/java java 'native image of Java'
objcopy --add-section .altinstructions=section prog kernel 2>/dev/null
run r kernel -o out/x; refused refuse/kernel kernel 'replaces its own instructions'
# Relocations in LLVM's compact form (SHT_CREL) beside others: what they say would be missing.
objcopy --add-section .crel.text=section prog crel 2>/dev/null
python3 - crel <<-'X'
	import struct, sys
	data = bytearray(open(sys.argv[1], "rb").read())
	at, n, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
	strings = struct.unpack_from("<Q", data, at + 64 * names + 24)[0]
	for i in range(n):
	    if data[strings + struct.unpack_from("<I", data, at + 64 * i)[0] :].startswith(b".crel.text\0"):
	        struct.pack_into("<I", data, at + 64 * i + 4, 0x40000014)
	open(sys.argv[1], "wb").write(data)
X
run r crel -o out/x; refused refuse/crel crel 'CREL'

# Damaged files of every kind give an error or a result, never a crash, a hang or a partial file.
damage=0 why=
for seed in $(seq 1 80); do
	cp prog d
	awk -v seed="$seed" -v size="$size" 'BEGIN { srand(seed); n = 1 + int(rand() * 4)
		while (n--) { r = rand(); at = r < .2 ? int(rand() * 64) : r < .4 ? 64 + int(rand() * 700) : r < .8 ? size - 1 - int(rand() * 3000) : int(rand() * size)
			printf "%d %o\n", at, int(rand() * 256) } }' |
		while read -r at byte; do printf "\\$byte" | dd of=d bs=1 seek="$at" conv=notrunc 2>/dev/null; done
	timeout 300 "$ICFOLD" -q d -o out/x >r.out 2>r.err
	rc=$?
	if [ $rc -gt 1 ]; then damage=$((damage + 1)) why="seed $seed: status $rc $(first_line r.err)"; fi
	if [ $rc = 1 ] && [ -n "$(ls -A out)" ]; then damage=$((damage + 1)) why="seed $seed: left $(ls -A out)"; fi
	rm -rf out && mkdir out
done
check refuse/damaged "$damage of 80: $why" test $damage = 0

# --- outputs that cannot be written
run r prog -o out/no/x; refused output/no-folder out/no/x 'No such file' 2
mkdir d1
run r prog -o d1; check output/is-folder "status $rc or leftovers" test $rc = 2 -a -z "$(ls -A d1)"
run r prog -o prog/x; check output/not-a-folder "status $rc" test $rc = 2
if [ "$(id -u)" != 0 ]; then
	mkdir ro && chmod 555 ro
	run r prog -o ro/x; check output/read-only "status $rc" test $rc = 2 -a -z "$(ls -A ro)"
	cp prog unreadable && chmod 000 unreadable
	run r unreadable -o out/x; refused refuse/unreadable unreadable 'denied' 2
else
	run r prog -o /proc/icfold-test; check output/read-only "status $rc" test $rc = 2
fi
# An older output survives every failure, down to its inode.
echo precious >out/x
inode=$(stat -c %i out/x)
run r text.c -o out/x
check output/old-kept "the old file was touched" bash -c "[ $rc = 1 ] && [ \"\$(cat out/x)\" = precious ] && [ \"\$(stat -c %i out/x)\" = $inode ]"
# 64 threads with a small stack and a small address space.
"$ICFOLD" -q prog -o little >r.out 2>r.err
grep -q __asan_init "$ICFOLD" || for limit in "-s 100" "-v 102400"; do
	# shellcheck disable=SC2086
	(ulimit $limit; "$ICFOLD" --threads=64 -q prog -o little.2 && "$ICFOLD" verify --threads=64 prog little.2) >r.out 2>r.err
	grep -q '^qemu-.* jit buffer' r.err && { skip "limit/${limit% *}" "qemu needs more memory for itself"; continue; }
	check "limit/${limit% *}" "$(tail -n 1 r.err)" eval 'tail -n 1 r.out | grep -qx equal && cmp -s little little.2'
done
# No room: a limit on the size of files, and a full file system if one can be mounted.
(trap '' XFSZ; ulimit -f 8; "$ICFOLD" prog -o out/x >r.out 2>r.err)
rc=$?
check output/too-large "status $rc, $(ls -A out | tr '\n' ' '), $(first_line r.err)" bash -c "[ $rc = 2 ] && [ \"\$(cat out/x)\" = precious ] && [ \"\$(ls -A out)\" = x ] && grep -q '^icfold: ' r.err"
cp prog inplace
(trap '' XFSZ; ulimit -f 8; "$ICFOLD" inplace -o inplace >r.out 2>r.err)
check output/too-large-in-place "the input was damaged" cmp -s prog inplace
mkdir full
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=16k none full 2>/dev/null; then
	echo precious >full/x
	run r prog -o full/x
	left=$(ls -A full)
	kept=$(cat full/x 2>/dev/null)
	umount full
	check output/full "status $rc, left $left, $(first_line r.err)" test $rc = 2 -a "$left" = x -a "$kept" = precious
	check output/full-says-so "$(first_line r.err)" grep -qi 'space' r.err
else
	skip output/full "cannot mount a small file system"
fi
# --- what a file records ---------------------------------------------------------------------------------------------
# Without debug information .debug_icfold is compressed.  objcopy decompresses it to the same contents.
if strip -s norelocs -o stripped && "$ICFOLD" -q --allow-growth stripped -o small 2>r.err && "$ICFOLD" dump --map --groups small >small.dump 2>r.err &&
	objcopy --decompress-debug-sections small large && "$ICFOLD" dump --map --groups large >large.dump 2>r.err; then
	check dump/compressed "not compressed, not unpacked, or says something else" bash -c \
		'readelf -SW small | grep -q "debug_icfold.* C " && readelf -SW large | grep "debug_icfold" | grep -qv " C " && cmp <(sed s/small:// small.dump) <(sed s/large:// large.dump)'
	[ "$(grep -c . small.dump)" -gt 10 ] && ok dump/contents || not_ok dump/contents "only $(grep -c . small.dump) lines"
else
	not_ok dump/compressed "$(first_line r.err)"
fi

finish
