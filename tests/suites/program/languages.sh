#!/bin/bash
# languages.sh: programs of other compilers than GCC's and clang's for C and C++, and code of these two with unusual options.
#
# Each program is linked with relocations and without, and folded in two ways.  Output and exit status must be as before, except for
# lines that begin with CMP: they compare addresses of functions and may change with --icf=all.  verify must say equal.
# ONLY=REGEX limits the run to tests with such names.
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib.sh"
LANG_DIR=$FIXTURES/lang

# NAME, compiler, and what makes the program $1 in the current, empty folder from the sources in $S.  $R and $L are the
# option for relocations, in the compiler's and in the linker's spelling, or that for none of them and no symbols.
languages() {
	cat <<-'END'
		rust	rustc	rustc -C opt-level=2 -g -C link-arg=$R $S/closures.rs -o $1
		fortran	gfortran	gfortran -J. -O2 -g $R $S/shapes.f90 -o $1
		ada	gnatmake	gnatmake -q -g -O2 $S/tasks.adb -o $1 -largs $R
		pascal	fpc	cp $S/objects.pas . && fpc -O2 -gw3 -o$1 -k$L objects.pas
		d.gdc	gdc	gdc -O2 -g $R $S/ranges.d -o $1
		d.ldc	ldc2	ldc2 -O2 -g -L$L $S/ranges.d -of=$1
		ocaml	ocamlopt	cp $S/modules.ml . && ocamlopt -g -inline 0 -ccopt $R modules.ml -o $1
		haskell	ghc	cp $S/Classes.hs . && ghc -O1 Classes.hs -o $1 -optl-fuse-ld=bfd -optl$R
		nim	nim	nim c --nimcache:cache -d:release --passL:$R -o:$1 $S/procs.nim
		objc	gcc	gcc -std=gnu11 -O2 -g -fobjc-exceptions -w $S/messages.m -o $1 -lobjc $R
	END
}

# NAME, compiler, options of which the C program and (but for those with ONLY_C) the C++ program are made.
options() {
	cat <<-'END'
		retpoline	gcc	-mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none
		probes	gcc	-Os -DPROBES
		medium	gcc	-mcmodel=medium -mlarge-data-threshold=16
		fentry	gcc	-pg -mfentry
		coverage	gcc	--coverage
		prefixmap	gcc	-ffile-prefix-map=DIR=. -gdwarf-4
		kcfi	clang	-fsanitize=kcfi -DPROBES
		cfi	clang	-fsanitize=cfi -flto -fvisibility=hidden -fuse-ld=lld
		xray	clang	-fxray-instrument -fxray-instruction-threshold=1
		bbmap	clang	-fbasic-block-address-map -fuse-ld=lld
		dwarf64	clang	-gdwarf-5 -gdwarf64
		small	clang	-Oz
		outline	clang	-Oz -mllvm -enable-machine-outliner=always -DONLY_C
	END
}

newest_clang() { for c in clang-19 clang clang-14; do have $c && { echo $c; return; }; done; }

# same TEXT TEXT LOOSE: are two outputs the same?
same() { if [ "$3" = 1 ]; then cmp -s <(grep -av '^ *CMP' "$1") <(grep -av '^ *CMP' "$2"); else cmp -s "$1" "$2"; fi; }

# judge NAME PROGRAM: folds and runs it, prints the test's line.
judge() {
	local name=$1 in=$2 d=$2.d bad='' mode opts gc rc loose modes='safe all'
	mkdir -p "$d"
	(cd "$d" && timeout 300 "$in" >"$d/want" 2>"$d/want.err" </dev/null) 2>/dev/null
	rc=$?
	if [ $rc -ge 124 ]; then
		skip "$name" "the program itself ends with status $rc"
		return
	fi
	# Folding in place is tried for the languages that need it most, and where linkers leave most stale relocations.
	[[ $name = */stripped ]] && modes='safe place'
	[[ $name = rust/relocs ]] && modes='safe all place'
	[[ $name = */stripped ]] || modes="$modes gc"
	for mode in $modes; do
		opts=--icf=$mode loose=1 gc=
		[ "$mode" = safe ] && loose=0
		# Nothing that is used is removed; what the runtime brings along and nobody uses is.
		[ "$mode" = gc ] && opts='--icf=safe --gc-functions --allow-growth' loose=0 gc=--gc-functions
		[ "$mode" = place ] && opts='--icf=all --in-place'
		# shellcheck disable=SC2086
		if ! "$ICFOLD" -q $opts "$in" -o "$d/out" 2>"$d/log"; then
			bad="$mode: icfold: $(first_line "$d/log")"
			break
		fi
		(cd "$d" && timeout 300 "$d/out" >"$d/got" 2>"$d/got.err" </dev/null)
		local got=$?
		if [ $got != $rc ]; then
			bad="$mode: exit status $got, not $rc"
		elif ! same "$d/want" "$d/got" $loose; then
			bad="$mode: prints $(diff -a "$d/want" "$d/got" | sed -n 2,4p | tr '\n' ' ' | cut -c 1-160)"
		elif ! "$ICFOLD" verify "${opts%% *}" $gc "$in" "$d/out" >"$d/log" 2>&1; then
			bad="$mode: verify: $(tail -n 2 "$d/log" | head -n 1 | cut -c 1-200)"
		fi
		[ -z "$bad" ] || break
	done
	rm -rf "$d" "$in"
	if [ -n "$bad" ]; then not_ok "$name" "$bad"; else ok "$name"; fi
}

one_language() { # NAME COMPILER COMMAND
	local kind d
	if ! have "$2"; then
		skip "$1" "no $2"
		return
	fi
	for kind in relocs stripped; do
		# nim and ghc are slow: their programs are built in one form only.
		[[ $kind = relocs && $1 =~ ^(nim|haskell)$ ]] && continue
		d=$WORK/$1.$kind
		mkdir -p "$d"
		export S=$LANG_DIR R=-Wl,--emit-relocs L=--emit-relocs
		[ $kind = stripped ] && R=-s L=-s
		if ! (cd "$d" && timeout 400 bash -c "$3" build "$d/prog") >"$d/log" 2>&1; then
			skip "$1/$kind" "does not build: $(grep -m 1 -iE 'error|cannot|fatal' "$d/log" | cut -c 1-120)"
			continue
		fi
		judge "$1/$kind" "$d/prog"
	done
}

one_option() { # NAME COMPILER OPTIONS
	local kind d cc=$2 f=$3 driver std s g
	[ "$cc" = clang ] && cc=$(newest_clang)
	if [ -z "$cc" ] || ! have "$cc"; then
		skip "$1" "no $2"
		return
	fi
	case " $f" in *' -O'*) ;; *) f="-O2 $f" ;; esac
	case $f in *-DPROBES*) ;; *) f="$f -DNO_ASM" ;; esac
	f=${f//DIR/$LANG_DIR}
	for s in routes.c routes.cc; do
		[[ $s = routes.cc && $f = *-DONLY_C* ]] && continue
		driver=$(compiler_of "$cc" $s) std=-std=gnu17
		[ $s = routes.cc ] && std='-std=c++20 -DCORO'
		for kind in relocs stripped; do
			[[ $s = routes.cc && $kind = stripped ]] && continue
			d=$WORK/$1.$2.$s.$kind
			mkdir -p "$d"
			g='-g -Wl,--emit-relocs'
			[ $kind = stripped ] && g=-s
			# shellcheck disable=SC2086
			if ! (cd "$d" && "$driver" -w $std -fPIE -pie $f $g "$LANG_DIR/$s" -o "$d/prog" -pthread) >"$d/log" 2>&1; then
				skip "$1/$s/$kind" "does not build: $(grep -m 1 -iE 'error|cannot|undefined' "$d/log" | cut -c 1-120)"
				continue
			fi
			judge "$1/$s/$kind" "$d/prog"
		done
	done
}

go_part() {
	local d=$WORK/go
	mkdir -p "$d"
	if ! have go; then
		skip go "no go"
	elif ! (cd "$d" && HOME=$d GOCACHE=$d/cache GOFLAGS=-mod=mod timeout 400 go build -o prog "$LANG_DIR/hello.go") >"$d/log" 2>&1; then
		skip go "does not build: $(first_line "$d/log")"
	elif "$ICFOLD" "$d/prog" -o "$d/out" 2>"$d/log" || ! grep -q 'is a Go program' "$d/log"; then
		not_ok go "is not refused as a Go program: $(first_line "$d/log")"
	else
		ok go
	fi
	chmod -R u+w "$d"
}

case ${1:-} in
--language) one_language "$2" "$3" "$4"; exit 0 ;;
--option) one_option "$2" "$3" "$4"; exit 0 ;;
--go) go_part; exit 0 ;;
esac

need_tool languages
make_work
always_fold
{
	languages | awk -F '\t' '{ printf "--language%c%s%c%s%c%s%c", 0, $1, 0, $2, 0, $3, 0 }'
	options | awk -F '\t' '{ printf "--option%c%s%c%s%c%s%c", 0, $1, 0, $2, 0, $3, 0 }'
	printf -- '--go\0go\0go\0\0'
} | xargs -0 -n 4 -P "$JOBS" bash -c '[[ $2 =~ ${ONLY:-.} ]] && exec bash "$0" "$1" "$2" "$3" "$4"; exit 0' "$0" >"$WORK/result"
sort "$WORK/result"
grep -q '^not ok' "$WORK/result" && failures=$((failures + 1))
finish
