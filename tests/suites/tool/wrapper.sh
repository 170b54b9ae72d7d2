#!/bin/bash
# wrapper.sh: icfold --linker-wrapper with every driver and linker, and in every way in which a link can go wrong.  Without a fold, the
# result is what the linker alone writes.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite wrapper
cp "$ROOT"/integration/src/* .
printf 'apples 35\npears 15\n' >expected
unset ICFOLD_OPTIONS
# The scripts as they are installed.
mkdir B
for n in ld ld.bfd ld.gold ld.lld ld.mold; do sed "s#^icfold=.*#icfold='$ICFOLD'#" "$ROOT/integration/wrapper/ld" >B/$n && chmod +x B/$n; done
wrap() { "$ICFOLD" --linker-wrapper "$@"; }

is_one() { # PROGRAM: its two functions are one
	local a b
	a=$(symbol_value "$1" apples) b=$(symbol_value "$1" pears)
	[ -n "$a" ] && [ "$a" = "$b" ]
}
has() { readelf -SW "$1" 2>/dev/null | grep -qE "\\$2"; }
# verdict KIND PROGRAM: what is wrong with it, or nothing.
verdict() {
	if [ ! -e "$2" ]; then echo "no output"; return; fi
	case $1 in
	*object*) has "$2" .rela.text || echo "no relocations"; return ;;
	*kept*) has "$2" .rela.text || echo "no relocations" ;;
	*) has "$2" .rela.text && echo "relocations" ;;
	esac
	case $1 in
	*stripped*) has "$2" .symtab && echo "symbols"; has "$2" .debug_ && echo "debug information" ;;
	*library*) has "$2" .debug_icfold || echo "not folded" ;;
	*) is_one "$2" || echo "not folded" ;;
	esac
	case $1 in
	*library*) gcc main.c "./$2" -o user && ./user | cmp -s expected - || echo "does not run" ;;
	*) "./$2" | cmp -s expected - || echo "does not run" ;;
	esac
}

# --- drivers, linkers, kinds of output
gcc -g -O2 -fPIC -c main.c apples.c pears.c || exit 1
forms='program stripped stripped-too kept static static-pie nopie library object no-debug list'
flags_of() { # FORM
	case $1 in
	stripped) echo "-s" ;;
	stripped-too) echo "-Wl,-O1,--strip-all" ;;
	kept) echo "-Wl,-q" ;;
	static) echo "-static" ;;
	static-pie) echo "-static-pie" ;;
	nopie) echo "-no-pie" ;;
	library) echo "-shared" ;;
	object) echo "-r" ;;
	no-debug) echo "-Wl,-S" ;;
	list) echo "-Wl,-O1,-z,relro,-Map=map -Xlinker --gc-sections" ;;
	esac
}
matrix() { # NAME LINKER DRIVER...
	local name=wrapper/$1 ld=$2 f v files wrong=
	shift 2
	[ -n "$ld" ] && name=$name-$ld
	if [ -n "$ld" ] && ! have "ld.$ld"; then skip "$name" "no ld.$ld"; return; fi
	for f in $forms; do
		case $f:$ld in
		static-pie:gold) continue ;; # does not know it
		no-debug:mold) continue ;;   # 1.10 crashes on both options
		list:gold) continue ;;       # 2.40 stops with an internal error on --gc-sections with --emit-relocs
		esac
		files='main.o apples.o pears.o'
		[ $f = library ] && files='apples.o pears.o'
		rm -f out
		# shellcheck disable=SC2046,SC2086
		"$@" ${ld:+-fuse-ld=$ld} -w $(flags_of $f) $files -o out >log 2>&1
		v=$(verdict $f out)
		[ -s log ] && v="$v $(first_line log)"
		[ -n "$v" ] && wrong="$wrong $f: $v;"
	done
	check "$name" "$wrong" test -z "$wrong"
}
for ld in '' bfd gold lld mold; do
	matrix gcc-B "$ld" gcc -B B
	matrix gcc "$ld" "$ICFOLD" --linker-wrapper -- gcc
	have clang && matrix clang-B "$ld" clang -B B
done
if have clang; then matrix clang '' "$ICFOLD" --linker-wrapper -- clang; else skip wrapper/clang "no clang"; fi

# --- the ways to name the output, response files
crt=$(gcc -print-file-name=crt1.o) && lib=$(dirname "$crt")
loader=$(readelf -lW "$(command -v bash)" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
plain="-dynamic-linker $loader $crt $lib/crti.o main.o apples.o pears.o -L$lib -lc $lib/crtn.o"
named() { # NAME OUTPUT ARG...
	local name=$1 out=$2
	shift 2
	rm -f a.out out1
	wrap -- ld "$@" >log 2>&1
	v="$? $(verdict program "$out") $(first_line log)"
	check "wrapper/$name" "$v" test "$v" = "0  "
}
# shellcheck disable=SC2086
{
	named output out1 $plain -o out1
	named output-joined out1 -oout1 $plain
	named output-long out1 --output=out1 $plain
	named output-long-apart out1 --output out1 $plain
	named output-default a.out $plain
	named output-last out1 -o other -o out1 $plain
	named value-like-option out1 -o out1 -rpath -r -soname -s $plain
	echo "$plain -o 'out1'" >args
	named response-file out1 @args
	echo '@args' >args2
	named response-file-nested out1 @args2
	mkdir -p 'a dir'
	echo "$plain -s -o \"a dir/x y\"" >args
	wrap -- ld @args >log 2>&1
	check wrapper/response-file-strip "$(verdict stripped 'a dir/x y') $(first_line log)" test -z "$(verdict stripped 'a dir/x y')"
	rm -f @odd
	wrap -- ld $plain -o @odd >log 2>&1
	check wrapper/output-odd-name "$(verdict program @odd) $(first_line log)" test -z "$(verdict program @odd)"
	head -c 300000 /dev/zero | tr '\0' ' ' >args && echo "$plain -s -o out1" >>args
	for i in $(seq 1 6000); do echo "--defsym=a_rather_long_symbol_name_that_nobody_needs_$i=$i"; done >>args
	wrap -- ld @args >log 2>&1
	check wrapper/response-file-long "$(first_line log)" test -z "$(verdict stripped out1)"
	rm -f out1
	ICFOLD_OPTIONS='--icf=all --strip-all' B/ld $plain -o out1
	check wrapper/options "$(verdict stripped out1)" test -z "$(verdict stripped out1)"
	# The options are words and not patterns: no file name replaces one.
	: >--no-such-option
	(ICFOLD_OPTIONS='--keep-unique=* --strip-all --no-such-*' B/ld $plain -o out1) >log 2>&1
	check wrapper/options-no-pattern "$(first_line log)" grep -qF "'--no-such-*'" log
	rm -f out1 ./--no-such-option
	# The compiler's own linker, and the one that is asked for.
	mkdir -p cross && printf '#!/bin/sh\necho "%s: $*" >>%s/cross.log; exec ld "$@"\n' cross-ld "$WORK" >cross/ld && chmod +x cross/ld
	printf '#!/bin/sh\n[ "$1:$COMPILER_PATH" = -print-prog-name=ld: ] && echo %s/cross/ld\n' "$WORK" >cross/gcc && chmod +x cross/gcc
	rm -f cross.log && COMPILER_PATH=$WORK/B COLLECT_GCC=$WORK/cross/gcc B/ld $plain -o out1 >log 2>&1
	check wrapper/cross-linker "$(first_line log)" test -s cross.log -a -z "$(verdict program out1)"
	rm -f cross.log && ICFOLD_LD=$WORK/cross/ld B/ld $plain -o out1 >log 2>&1
	check wrapper/asked-linker "$(first_line log)" test -s cross.log -a -z "$(verdict program out1)"
	rm -f out1
	wrap --stats=json -- ld $plain -o out1 >log 2>&1
	check wrapper/options-report "$(first_line log)" grep -q '"folded"' log
	wrap --emit-relocs -- ld $plain -o out1 >log 2>&1
	check wrapper/options-emit-relocs "$(verdict kept out1)" test -z "$(verdict kept out1)"
}

# --- nothing is linked
same_as_alone() { # NAME COMMAND...: output, messages and status are those of the command alone
	local name=$1 rc
	shift
	"$@" >alone.out 2>alone.err </dev/null
	rc=$?
	wrap -- "$@" >w.out 2>w.err </dev/null
	set -- $rc $? "$(diff alone.out w.out; diff alone.err w.err)"
	check "wrapper/$name" "status $2 instead of $1, or: $(echo "$3" | head -n 3 | tr '\n' ' ')" test $1 = $2 -a -z "$3"
}
cp out1 a.out
same_as_alone version ld --version
same_as_alone v ld -v
same_as_alone V ld -V
same_as_alone help ld --help
same_as_alone nothing ld
same_as_alone missing-file ld missing.o -o nothing
same_as_alone unknown-option ld --frobnicate
# shellcheck disable=SC2086
same_as_alone undefined ld $crt main.o -o nothing
same_as_alone gcc-version gcc --version
same_as_alone gcc-v gcc -v
same_as_alone gcc-E gcc -E main.c
same_as_alone gcc-error gcc missing.c
for l in gold lld mold; do have ld.$l && same_as_alone $l-v ld.$l -v; done
have ld.lld && same_as_alone lld-undefined ld.lld "$crt" main.o -o nothing
check wrapper/old-output "an output of before was touched" cmp -s out1 a.out
check wrapper/no-output "there is an output" test ! -e nothing
wrap -- no-such-linker x.o >log 2>&1
rc=$?
check wrapper/no-linker "status $rc" test $rc = 127 -a -s log
echo '.section .note.GNU-stack,""' >empty.s
gcc -c empty.s -o empty.o
wrap -- ld -r main.o empty.o -o rel.o && ld -r main.o empty.o -o rel2.o
check wrapper/relocatable "other bytes" cmp -s rel.o rel2.o
wrap -- ld --oformat binary -Ttext=0 -e 0 apples.o -o raw 2>log && ld --oformat binary -Ttext=0 -e 0 apples.o -o raw2
check wrapper/not-elf "$(first_line log)" cmp -s raw raw2
# shellcheck disable=SC2086
wrap -- ld $plain -o /dev/null >log 2>&1
rc=$?
check wrapper/device "status $rc, $(first_line log)" test $rc = 0 -a -c /dev/null

# --- a successful link's messages are printed once
printf 'int old(void);\nint main(void) { return old(); }\n' >use.c
printf 'int old(void) { return 0; }\nstatic const char w[] __attribute__((section(".gnu.warning.old"), used)) = "old is old";\n' >old.c
gcc -c use.c old.c
wrap -- gcc use.o old.o -o out1 >log 2>&1
check wrapper/messages "$(cat log)" test "$(grep -c 'old is old' log)" = 1
wrap -- ld -M -shared apples.o -o out1 >log 2>log2
check wrapper/output-of-linker "no link map" grep -q 'Linker script' log

# --- icfold refuses the program
printf '.section .gopclntab,"a"\n.long 1\n.section .note.GNU-stack,""\n' >go.s
gcc -c go.s
gcc main.o apples.o pears.o go.o -o alone
wrap -- gcc main.o apples.o pears.o go.o -o out1 >log 2>&1
rc=$?
check wrapper/refused "status $rc: $(cat log)" bash -c "[ $rc = 0 ] && [ \$(wc -l <log) = 1 ] && grep -q '^icfold: warning: out1: .*Go.*; linked without folding' log"
check wrapper/refused-plain "not what the linker alone makes" cmp -s alone out1
wrap --no-warnings -- gcc main.o apples.o pears.o go.o -o out1 >log 2>&1
rc=$?
check wrapper/no-warnings "status $rc: $(cat log)" test $rc = 0 -a ! -s log
wrap --fatal-warnings -- gcc main.o apples.o pears.o go.o -o out1 >log 2>&1
rc=$?
check wrapper/fatal-warnings "status $rc: $(cat log)" bash -c "[ $rc = 1 ] && [ ! -e out1 ] && grep -q '^icfold: out1: .*Go' log"

# --- a linker that fails with --emit-relocs
mkdir odd
cat >odd/ld <<'X'
#!/bin/sh
case " $* " in *" --emit-relocs "*) echo "odd: no such option" >&2; kill -SEGV $$ ;; esac
echo "odd: linked" >&2
exec ld "$@"
X
chmod +x odd/ld
# shellcheck disable=SC2086
wrap -- odd/ld $plain -o out1 >log 2>&1
rc=$?
check wrapper/linker-cannot "status $rc: $(cat log)" bash -c "[ $rc = 0 ] && [ \"\$(head -n 1 log)\" = 'odd: linked' ] && [ \$(wc -l <log) = 2 ] && grep -q 'warning: out1: the linker fails with --emit-relocs' log && ./out1 | cmp -s expected -"
# shellcheck disable=SC2086
wrap --fatal-warnings -- odd/ld $plain -o out1 >log 2>&1
rc=$?
check wrapper/linker-cannot-fatal "status $rc: $(cat log)" test $rc = 1 -a ! -e out1

# --- signals, recursion, wrong use
printf '#!/bin/sh\nkill -TERM $$\nsleep 5\n' >odd/ld
wrap -- odd/ld x.o -o out1 >log 2>&1
rc=$?
check wrapper/signal "status $rc" test $rc = 143
(PATH=$WORK/B:$PATH timeout 300 ld main.o -o out1 >log 2>&1)
rc=$?
check wrapper/recursion "status $rc: $(first_line log)" bash -c "[ $rc = 1 ] && grep -q 'icfold: ld: is icfold again' log"
wrap >log 2>&1
rc=$?
check wrapper/no-command "status $rc" test $rc = 2 -a "$(wc -l <log)" = 2
wrap --frobnicate -- ld -v >log 2>&1
rc=$?
check wrapper/unknown-option "status $rc: $(cat log)" bash -c "grep -q \"icfold: --linker-wrapper: unrecognized option '--frobnicate'\" log"
wrap -o x -- ld -v >log 2>&1
check wrapper/output-option "$(cat log)" grep -q 'icfold: --linker-wrapper: ' log
wrap --help >log 2>&1
check wrapper/help "$(first_line log)" grep -q -- --fatal-warnings log
# A wrapper around a wrapper folds once.
wrap --print-icf-sections -- gcc -BB main.o apples.o pears.o -o out1 >log 2>&1
check wrapper/nested "$(first_line log)" test "$(grep -c '^selected' log)" = 1 -a -z "$(verdict program out1)"
check wrapper/nothing-left "temporary files" bash -c 'shopt -s nullglob dotglob; set -- *icfold-*; [ $# = 0 ]'
finish
