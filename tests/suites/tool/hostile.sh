#!/bin/bash
# hostile.sh: broken files through the whole tool (tests/mutate/hostile.py), and failing allocations (tests/mutate/alloc_sweep.py).
#
# By default a share of both: some hundred files of one program (every EVERY-th, 200), every ALLOC_EVERY-th allocation.
# HOSTILE=full: more programs, some ten thousand files (EVERY=12; EVERY=1 is all of them and takes hours), each allocation.
# ONLY=REGEX limits it to broken files of the kinds whose name matches.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool hostile
have python3 || { skip hostile "no python3"; finish; }
make_work
pairs=()

# pair NAME SOURCE FOLD-OPTION -- FLAG...: a program and what folding makes of it.
pair() {
	local name=$1 source=$2 option=$3 cc=gcc
	shift 4
	case $source in *.cc) cc=g++ ;; esac
	case $name in clang*) cc=${cc/g++/clang++} cc=${cc/gcc/clang} ;; esac
	have "$cc" || { skip "hostile/$name" "no $cc"; return; }
	if "$cc" "$source" "$@" -Wl,--emit-relocs -o "$WORK/$name" 2>"$WORK/log" && "$ICFOLD" -q --emit-relocs $option "$WORK/$name" -o "$WORK/$name.folded" 2>"$WORK/log"; then
		pairs+=("$WORK/$name=$WORK/$name.folded")
	else
		skip "hostile/$name" "$(first_line "$WORK/log")"
	fi
}
calls=$FIXTURES/calls_gcc
pair except "$TESTS/fuzz/seed.cc" --icf=safe -- -g -O2 -nostartfiles
pair packed "$calls/shapes.cc" --icf=safe -- -g -gz=zlib -O2 -ffunction-sections
# Broken files that once showed a fault.
if [ ${#pairs[@]} != 0 ] && [ -z "${ONLY:-}" ]; then
	python3 "$TESTS/mutate/hostile.py" --tool "$ICFOLD" --work "$WORK" --jobs "$JOBS" --label hostile/known --only 'types|counts|bombs' \
		--name '\.debug_(abbrev type 0|line named \.debug_line_str|(info|aranges)\+0=0)|\.gcc_except_table\+(0=ffffffff|24=7fffffff)' \
		"${pairs[@]}" || failures=1
fi
known=()
[ "${HOSTILE:-quick}" = full ] || { known=("${pairs[@]}"); pairs=(); }
pair shapes "$calls/shapes.cc" --icf=safe -- -g -O2 -ffunction-sections
if [ "${HOSTILE:-quick}" = full ]; then
	pair chains "$calls/chains.c" --icf=safe -- -g -O1 -ffunction-sections -no-pie
	pair seed "$TESTS/fuzz/seed.cc" --icf=all -- -g -O2 -nostdlib -static -no-pie -fno-exceptions -fno-rtti
	pair dwarf4 "$TESTS/fuzz/seed.cc" --debug-folded=alias -- -gdwarf-4 -fdebug-types-section -O2 -nostdlib -static -no-pie -fno-exceptions -fno-rtti
	pair clang "$calls/shapes.cc" --icf=safe -- -gdwarf-5 -O2 -ffunction-sections
fi
[ ${#pairs[@]} = 0 ] && { not_ok hostile "no program could be built"; finish; }

every=${EVERY:-200} alloc_every=${ALLOC_EVERY:-17}
[ "${HOSTILE:-quick}" = full ] && every=${EVERY:-12} alloc_every=${ALLOC_EVERY:-1}
python3 "$TESTS/mutate/hostile.py" --tool "$ICFOLD" --work "$WORK" --every "$every" --jobs "$JOBS" ${ONLY:+--only "$ONLY"} "${pairs[@]}" || failures=1

# icfold reports a crash inside libdw; a crash inside icfold stays a crash.
crash() { # NAME FUNCTION SIGNAL: of libelf
	local rc name="hostile/crash in $1, $3"
	echo "#include <signal.h>
		void *$2(void) { if (SIG$3 == SIGSEGV) *(volatile int *)8 = 1; raise(SIG$3); return 0; }" >"$WORK/crash.c"
	"${CC:-gcc}" -shared -fPIC "$WORK/crash.c" -o "$WORK/crash.so" 2>"$WORK/log" || { skip "$name" "$(first_line "$WORK/log")"; return; }
	(LD_PRELOAD="$WORK/crash.so" "$ICFOLD" verify "$WORK/shapes" "$WORK/shapes.folded" >"$WORK/out" 2>"$WORK/told") 2>"$WORK/log"
	rc=$?
	if [ "$1" = icfold ]; then
		check "$name" "exit status $rc" [ $rc -gt 128 ]
	else
		check "$name" "exit status $rc: $(first_line "$WORK/told")" \
			eval "[ $rc = 2 ] && grep -q '^icfold: libdw cannot read the debug information.*shapes.folded$' '$WORK/told'"
	fi
}
if grep -q __asan_init "$ICFOLD"; then
	skip "hostile/crash in libdw" "sanitizers have handlers of their own"
elif [ -f "$WORK/shapes.folded" ]; then
	for sig in ABRT SEGV; do
		crash libdw elf_kind $sig
		crash icfold elf_version $sig
	done
fi

if grep -q __asan_init "$ICFOLD"; then
	skip alloc "sanitizers bring an allocator of their own"
elif [ -z "${ONLY:-}" ]; then
	if "${CC:-gcc}" -O2 -fno-builtin -shared -fPIC "$TESTS/mutate/fail_alloc.c" -o "$WORK/fail_alloc.so" -ldl 2>"$WORK/log"; then
		python3 "$TESTS/mutate/alloc_sweep.py" --tool "$ICFOLD" --lib "$WORK/fail_alloc.so" --work "$WORK" --every "$alloc_every" --jobs "$JOBS" "${pairs[@]}" || failures=1
		# A separate debug file and decompression allocate in other places.
		if [ ${#known[@]} != 0 ] && cp "$WORK/except" "$WORK/split" && objcopy --only-keep-debug "$WORK/except.folded" "$WORK/split.debug" &&
			objcopy -g --add-gnu-debuglink="$WORK/split.debug" "$WORK/except.folded" "$WORK/split.folded"; then
			known+=("$WORK/split=$WORK/split.folded")
		fi
		[ ${#known[@]} = 0 ] || python3 "$TESTS/mutate/alloc_sweep.py" --tool "$ICFOLD" --lib "$WORK/fail_alloc.so" --work "$WORK" --jobs "$JOBS" \
			--only 'symbolize a folded' "${known[@]}" || failures=1
	else
		not_ok alloc "$(first_line "$WORK/log")"
	fi
fi
finish
