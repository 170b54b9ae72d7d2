#!/bin/bash
# torture.sh [SUITE...]: test suites of GCC, libstdc++, glibc and csmith's random programs, each test folded in three ways; see
# torture.py.  Suites: execute gcc.dg g++.dg i386 common old-deja gfortran libstdc++ csmith glibc.  They are fetched as Debian's
# source packages.
#
#   SHARE=K/N   the Kth of N parts of the tests      ONLY=REGEX  tests with such names     ROUND=N  other forms of each test
#   VERBOSE=1    each test, also those that do not work here before folding
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_tool torture
make_work
suites=("$@")
[ $# != 0 ] || suites=(execute gcc.dg g++.dg i386 common old-deja gfortran libstdc++ csmith glibc)
folders=()
gcc_part() {
	local d
	d=$(bash "$TESTS/corpus.sh" --source gcc-12 '*/gcc/testsuite/*' '*/libstdc++-v3/testsuite/*') || return
	for d in "$d"/*/; do [ -d "$d/gcc/testsuite" ] && echo "${d%/}" && return; done
	return 1
}
# What glibc's tests are written with, as far as it builds outside of glibc.
glibc_support() { # FOLDER
	local f
	mkdir -p "$WORK/support/include"
	for f in array_length intprops libc-pointer-arith scratch_buffer; do cp "$1/include/$f.h" "$WORK/support/include/" 2>/dev/null; done
	: >"$WORK/support/include/config.h"
	for f in "$1"/support/*.c; do
		case $f in */test-driver.c | */test-container.c | */tst-* | */*_main_run.c) continue ;; esac
		gcc -w -std=gnu11 -O2 -fPIE -D_GNU_SOURCE -DTIMEOUTFACTOR=1 "-DSRCDIR_PATH=\"$1\"" "-DOBJDIR_PATH=\"$WORK\"" "-DOBJDIR_ELF_LDSO_PATH=\"\"" \
			"-DINSTDIR_PATH=\"/usr\"" "-DLIBDIR_PATH=\"/usr/lib\"" "-DBINDIR_PATH=\"/usr/bin\"" "-DSBINDIR_PATH=\"/usr/sbin\"" "-DROOTSBINDIR_PATH=\"/sbin\"" \
			"-DCOMPLOCALEDIR_PATH=\"/usr/lib/locale\"" "-DSLIBDIR_PATH=\"/lib\"" -DNAME_MAX=255 "-DSYSCONFDIR_PATH=\"/etc\"" \
			-I "$1" -I "$1/support" -I "$WORK/support/include" -c "$f" -o "$WORK/support/$(basename "$f" .c).o" 2>/dev/null
	done
	ar rcs "$WORK/support/libsupport.a" "$WORK"/support/*.o
}
for s in "${suites[@]}"; do
	case $s in
	execute | gcc.dg | g++.dg | i386 | common | old-deja | gfortran | libstdc++)
		if [ $s = gfortran ] && ! have gfortran; then skip torture/gfortran "no gfortran"; continue; fi
		gcc=$(gcc_part) || { not_ok "torture/$s" "cannot fetch the sources of gcc-12"; continue; }
		case $s in
		execute) folders+=("execute=$gcc/gcc/testsuite/gcc.c-torture/execute") ;;
		common) folders+=("common=$gcc/gcc/testsuite/c-c++-common") ;;
		old-deja) folders+=("old-deja=$gcc/gcc/testsuite/g++.old-deja") ;;
		gfortran) folders+=("gfortran=$gcc/gcc/testsuite/gfortran.dg") ;;
		i386) folders+=("i386=$gcc/gcc/testsuite/gcc.target/i386") ;;
		libstdc++) folders+=("libstdc++=$gcc/libstdc++-v3/testsuite") ;;
		*) folders+=("$s=$gcc/gcc/testsuite/$s") ;;
		esac
		;;
	csmith)
		if have csmith; then folders+=("csmith=/${CSMITH:-300}"); else skip torture/csmith "no csmith (Debian: csmith libcsmith-dev)"; fi
		;;
	glibc)
		d=$(bash "$TESTS/corpus.sh" --source glibc '*/elf/*' '*/nptl/*' '*/setjmp/*' '*/dlfcn/*' '*/support/*' '*/sysdeps/pthread/*' \
			'*/test-skeleton.c' '*/include/array_length.h' '*/include/intprops.h' '*/include/libc-pointer-arith.h' '*/include/scratch_buffer.h') || { not_ok "torture/$s" "cannot fetch the sources of glibc"; continue; }
		for d in "$d"/*/; do [ -d "$d/support" ] && break; done
		mkdir -p "$WORK/support"
		glibc_support "${d%/}"
		export TORTURE_SUPPORT=$WORK/support/libsupport.a
		for p in elf nptl setjmp dlfcn sysdeps/pthread; do folders+=("glibc-${p##*/}=$d$p"); done
		;;
	*) echo "torture.sh: no suite $s" >&2; exit 2 ;;
	esac
done
[ ${#folders[@]} != 0 ] || finish
TORTURE_ROUND=${ROUND:-} python3 "$TESTS/torture/torture.py" "$ICFOLD" "$WORK" "$TESTS/torture/torture.all" --share="${SHARE:-1/1}" --jobs="$JOBS" --only="${ONLY:-}" ${VERBOSE:+--verbose} "${folders[@]}"
status=$?
# Failed tests are kept, to be looked at.
[ $status = 0 ] || { mkdir -p "$BUILD/torture" && cp -r "$WORK"/*_* "$BUILD/torture/" 2>/dev/null; }
exit $status
