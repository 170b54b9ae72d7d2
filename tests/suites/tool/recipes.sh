#!/bin/bash
# recipes.sh: every recipe of integration/, run by its own tool (make, ninja, CMake, Meson, autotools, dpkg, rpm, BOLT) with an icfold
# that was installed for the test.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool recipes
make_work
R=$ROOT/integration
INST=$WORK/inst
if ! make -s -C "$ROOT" -o all BUILD="$BUILD" PREFIX="$INST" install >"$WORK/install.log" 2>&1 || ! cp "$ICFOLD" "$INST/bin/icfold"; then
	not_ok recipes/install "$(tail -n 1 "$WORK/install.log")"
	finish
fi
ok recipes/install
export PATH=$INST/bin:$PATH
unset ICFOLD_OPTIONS MAKEFLAGS CFLAGS CXXFLAGS LDFLAGS CC LD DESTDIR PREFIX
printf 'apples 35\npears 15\n' >"$WORK/expected"

# place NAME [FILE...]: a fresh folder with the sources and FILEs of integration/NAME; becomes the working folder.
place() {
	mkdir -p "$WORK/$1" && cd "$WORK/$1" || exit 1
	cp "$R"/src/* .
	local f name=$1
	shift
	for f in "$@"; do cp "$R/${name%%.*}/$f" .; done
}
folded() { # PROGRAM: its two functions are one
	local a b
	a=$(symbol_value "$1" apples) b=$(symbol_value "$1" pears)
	[ -n "$a" ] && [ "$a" = "$b" ]
}
prints() { "$@" 2>&1 | cmp -s "$WORK/expected" -; }
no_relocations() { ! readelf -SW "$1" | grep -q '\.rela\.text'; }
# is_good NAME PROGRAM: folded, without relocations, and it runs.
is_good() {
	if [ ! -x "$2" ]; then
		not_ok "$1" "no $2: $(tail -n 1 log 2>/dev/null)"
	elif ! prints "$2"; then
		not_ok "$1" "prints $("$2" 2>&1 | head -n 1)"
	elif ! no_relocations "$2"; then
		not_ok "$1" "has relocations"
	elif ! folded "$2"; then
		not_ok "$1" "is not folded"
	else
		ok "$1"
	fi
}
need() { # NAME TOOL...: all there?
	local name=$1 t
	shift
	for t in "$@"; do
		if ! have "$t"; then
			skip "$name" "no $t"
			return 1
		fi
	done
}

# --- make
place make Makefile
make >log 2>&1
is_good recipes/make ./prog
check recipes/make-keeps-input "prog.full is folded" bash -c '! [ "$(nm prog.full | grep -c " T \(apples\|pears\)$")" = 1 ]'
make >log 2>&1
# (Make names its folder, which may be called icfold.)
check recipes/make-again "made again: $(first_line log)" bash -c '! grep -v directory log | grep -q icfold'
touch apples.c
make ICFOLDFLAGS=--strip-all >log 2>&1
check recipes/make-changed "not folded again: $(first_line log)" bash -c 'grep -q "icfold --strip-all prog.full -o prog" log && ! readelf -SW prog | grep -q symtab'

# --- ninja
if need recipes/ninja ninja; then
	place ninja build.ninja
	ninja >log 2>&1
	is_good recipes/ninja ./prog
	time_of() { stat -c %y "$1"; }
	was=$(time_of prog) sum=$(time_of prog.sha256)
	echo '/* A comment changes nothing. */' >>main.c
	ninja -v >log 2>&1
	check recipes/ninja-restat "log: $(tail -n 1 log)" bash -c 'grep -q "icfold --write-if-changed" log && ! grep -q sha256sum log'
	check recipes/ninja-time "prog was touched" test "$was" = "$(time_of prog)" -a "$sum" = "$(time_of prog.sha256)"
	ninja >log 2>&1
	check recipes/ninja-no-work "$(tail -n 1 log)" grep -q 'no work to do' log
	sed 's/"pears /"pear /' main.c >m && mv m main.c
	ninja >log 2>&1
	check recipes/ninja-changed "an old result" bash -c './prog | grep -q "pear 15" && sha256sum -c --status <prog.sha256'
fi

# --- cmake
cmake_with() { # GENERATOR NAME
	place "cmake.$2" CMakeLists.txt
	local n=recipes/cmake-$2
	export CMAKE_PREFIX_PATH=$INST
	if ! cmake -G "$1" -S . -B b -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PWD/i" >log 2>&1; then
		not_ok "$n" "$(grep -m 1 -A 3 Error log | tr '\n' ' ')"
		return
	fi
	check "$n-finds-its-own" "$(grep ICFOLD_EXE b/CMakeCache.txt)" grep -q "ICFOLD_EXECUTABLE:FILEPATH=$INST/bin/icfold" b/CMakeCache.txt
	cmake --build b >log 2>&1
	is_good "$n" b/prog
	check "$n-library" "not folded, or does not run" bash -c 'readelf -SW b/libfruit.so | grep -q debug_icfold && ! readelf -SW b/libfruit.so | grep -q "rela\.text"'
	check "$n-shared" "does not run" prints b/shared-prog
	cmake --install b >log 2>&1
	check "$n-install" "$(tail -n 1 log)" cmp -s b/prog i/bin/prog
	rm b/libfruit.so
	check "$n-install-rpath" "does not find the installed library" prints i/bin/shared-prog
	check "$n-install-runs" "does not run" prints i/bin/prog
	# A step that failed must fail again, and must not leave a program that looks finished.
	sed 's/^icfold_target(prog)/icfold_target(prog OPTIONS --keep-unique=nobody)/' CMakeLists.txt >c && mv c CMakeLists.txt
	cmake --build b --target prog >log 2>&1
	local first=$?
	cmake --build b --target prog >log2 2>&1
	local second=$?
	check "$n-failure" "status $first, then $second" test $first != 0 -a $second != 0
	check "$n-failure-says-why" "$(tail -n 1 log)" grep -q 'icfold: .*nobody' log
	cmake -DICFOLD_ENABLE=OFF b >log 2>&1 && cmake --build b --target prog >log 2>&1
	check "$n-off" "folded, or with relocations" bash -c '. "$TESTS/lib.sh"; [ "$(symbol_value b/prog apples)" != "$(symbol_value b/prog pears)" ] && ! readelf -SW b/prog | grep -q "rela\.text"'
	unset CMAKE_PREFIX_PATH
}
export TESTS
if need recipes/cmake cmake; then
	cmake_with "Unix Makefiles" make
	need recipes/cmake-ninja ninja && cmake_with Ninja ninja
	place cmake.launcher
	printf 'cmake_minimum_required(VERSION 3.21)\nproject(fruit C)\nadd_executable(prog main.c apples.c pears.c)\n' >CMakeLists.txt
	cmake -S . -B b -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_LINKER_LAUNCHER="icfold;--linker-wrapper;--" >log 2>&1 && cmake --build b >log 2>&1
	is_good recipes/cmake-launcher b/prog
	place cmake.wrong CMakeLists.txt
	cp "$R/cmake/icfold.cmake" .
	sed -i 's/^find_package.*/include(icfold.cmake)/; s/^icfold_target(prog)/icfold_target(prog --icf=all)/' CMakeLists.txt
	cmake -S . -B b >log 2>&1
	check recipes/cmake-wrong-use "$(grep -m 1 -A 3 Error log | tr '\n' ' ')" grep -q 'what is --icf=all' log
fi

# --- meson
if need recipes/meson meson ninja; then
	place meson meson.build
	meson setup b --prefix="$PWD/i" >log 2>&1 && meson compile -C b >log 2>&1 && meson test -C b >log2 2>&1 && meson install -C b >log2 2>&1
	is_good recipes/meson b/prog
	check recipes/meson-install "$(tail -n 1 log2)" prints i/bin/prog
fi

# --- autotools, with libtool: what is installed is folded
if need recipes/autotools autoreconf automake libtoolize; then
	place autotools configure.ac Makefile.am
	mkdir m4
	{ autoreconf -i && ./configure -C --prefix="$PWD/i" && make && make install; } >log 2>&1
	check recipes/autotools "$(tail -n 1 log)" prints i/bin/prog
	check recipes/autotools-library "not folded, or the link is a file" bash -c '[ -L i/lib/libfruit.so ] && [ -f i/lib/libfruit.so.0.0.0 ] && readelf -SW i/lib/libfruit.so.0.0.0 | grep -q debug_icfold'
	check recipes/autotools-relocations "left in" no_relocations i/lib/libfruit.so
	# Without a change to the package: the wrapper in place of the linker, through libtool.
	sed -i '/^install-exec-hook/,$d; /^AM_LDFLAGS/d' Makefile.am
	{ ./configure -C --prefix="$PWD/j" CC="gcc -B$INST/libexec/icfold" || { rm -f config.cache && ./configure -C --prefix="$PWD/j" CC="gcc -B$INST/libexec/icfold"; }; } >log 2>&1
	{ make clean && make && make install; } >log 2>&1
	check recipes/autotools-wrapper "$(tail -n 1 log)" prints j/bin/prog
	check recipes/autotools-wrapper-library "not folded" bash -c 'readelf -SW j/lib/libfruit.so | grep -q debug_icfold'
fi

# --- debug information in a file of its own
if need recipes/split-debug objcopy; then
	place split-debug Makefile
	make >log 2>&1
	check recipes/split-debug "$(tail -n 1 log)" prints ./prog
	check recipes/split-debug-sizes "debug information or symbols in prog" bash -c '! readelf -SW prog | grep -qE "debug_info|symtab" && readelf -SW prog.debug 2>&1 | grep -q debug_info'
	at=$(symbol_value prog.debug apples)
	"$ICFOLD" symbolize -e prog "0x$at" >log 2>&1
	check recipes/split-debug-symbolize "$(tr '\n' ' ' <log)" grep -qE '(apples|pears)\.c:[0-9]' log
	if have gdb; then
		gdb -nx -batch -ex 'break apples.c:7' -ex run -ex 'backtrace 1' ./prog >log 2>&1
		check recipes/split-debug-gdb "$(tail -n 1 log)" grep -q 'Breakpoint 1, ' log
	else
		skip recipes/split-debug-gdb "no gdb"
	fi
fi

# --- BOLT, behind icfold
bolt=
for t in llvm-bolt llvm-bolt-{20,19,18,17,16}; do have $t && bolt=$t && break; done
if [ -z "$bolt" ]; then
	skip recipes/bolt "no llvm-bolt (Debian: bolt-19 or another version)"
else
	place bolt Makefile
	# With kept relocations, two small functions do not pay for their record.
	make BOLT=$bolt ICFOLDFLAGS='--emit-relocs --allow-growth' >log 2>&1
	check recipes/bolt "$(tail -n 1 log)" prints ./prog
	check recipes/bolt-folded "not folded" folded prog.folded
	"$ICFOLD" prog -o again >log 2>&1
	check recipes/bolt-other-order "not refused, or without a reason" grep -q 'icfold: prog: .*BOLT' log
fi

# --- packages
place packaging fold-tree
mkdir -p tree/bin tree/lib "tree/with space"
gcc -O2 -Wl,--emit-relocs main.c apples.c pears.c -o tree/bin/prog
gcc -O2 main.c apples.c pears.c -o tree/bin/plain
gcc -O2 -shared -fPIC -Wl,--emit-relocs apples.c pears.c -o "tree/with space/lib.so"
gcc -O2 -c apples.c -o tree/lib/apples.o && ar rcs tree/lib/lib.a tree/lib/apples.o
printf '#!/bin/sh\n' >tree/bin/script && chmod +x tree/bin/script
# Three hard links to one file, and a folder whose name has a line break: read as lines, its second part is a path outside.
ln tree/bin/prog tree/bin/prog2 && ln tree/bin/prog tree/lib/prog3
mkdir outside && cp tree/bin/prog outside/prog && cp outside/prog outside.prog
odd=tree/$'line\n'$WORK/packaging/outside
mkdir -p "$odd" && cp tree/bin/prog "$odd/prog"
(cd tree && find . -type f ! -name 'prog*' ! -name lib.so -exec sha256sum {} +) >sums
"$INST/libexec/icfold/fold-tree" tree >log 2>&1
check recipes/fold-tree-hard-links "$(stat -c %h tree/bin/prog) names; $(first_line log)" [ tree/bin/prog -ef tree/bin/prog2 -a tree/bin/prog -ef tree/lib/prog3 ]
check recipes/fold-tree-once "$(grep -c 'bin/prog\|lib/prog3' log) times" [ "$(grep -cE 'tree/(bin|lib)/prog' log)" = 1 ]
check recipes/fold-tree-odd-name "not folded" bash -c 'readelf -SW "$1" | grep -q debug_icfold' - "$odd/prog"
check recipes/fold-tree-inside "a file outside was folded" cmp -s outside/prog outside.prog
# A refused file ends the work only with --strict.
mkdir -p refused && cp outside.prog refused/a && cp outside.prog refused/z
printf '\377\377' | dd of=refused/a bs=1 seek=40 conv=notrunc 2>/dev/null
cp -r refused strict
"$INST/libexec/icfold/fold-tree" refused >log 2>&1
check recipes/fold-tree-refused "status $?: $(first_line log)" bash -c 'readelf -SW refused/z | grep -q debug_icfold'
printf '#!/bin/sh\ncase "$*" in *strict/*) echo "icfold: refused" >&2; exit 1 ;; esac\nexit 3\n' >no-icfold && chmod +x no-icfold
sed "s#^icfold=.*#icfold=$PWD/no-icfold#" "$INST/libexec/icfold/fold-tree" >strict-tree
bash strict-tree --strict strict >log 2>&1
check recipes/fold-tree-strict "status $?" [ $? = 1 ]
bash strict-tree strict >log 2>&1
check recipes/fold-tree-not-strict "status $?: $(tail -n 1 log)" grep -q 'fold-tree: [12] files stay' log
bash strict-tree outside >log 2>&1
check recipes/fold-tree-trouble "status $?" [ $? = 3 ]
is_good recipes/fold-tree tree/bin/prog
check recipes/fold-tree-library "not folded" bash -c 'readelf -SW "tree/with space/lib.so" | grep -q debug_icfold'
check recipes/fold-tree-rest "changed other files: $(cat log)" bash -c 'cd tree && sha256sum -c --status ../sums'

if need recipes/debian dh dpkg-buildflags dpkg-deb; then
	place packaging.deb rules
	mkdir debian && sed "s#/usr/libexec#$INST/libexec#" rules >debian/rules && chmod +x debian/rules
	printf 'fruit (1-1) unstable; urgency=low\n\n  * First.\n\n -- A B <a@b.example>  Thu, 01 Jan 2026 00:00:00 +0000\n' >debian/changelog
	printf 'Source: fruit\nMaintainer: A B <a@b.example>\nStandards-Version: 4.6.2\nBuild-Depends: debhelper-compat (= 13)\n\nPackage: fruit\nArchitecture: any\nDepends: ${misc:Depends}\nDescription: sums\n Sums of weights.\n' >debian/control
	printf 'prog: main.o apples.o pears.o\n\t$(CC) $(LDFLAGS) $^ -o $@\ninstall:\n\tinstall -D prog $(DESTDIR)/usr/bin/prog\n' >Makefile
	if [ "$(id -u)" = 0 ] || have fakeroot; then
		root=
		[ "$(id -u)" = 0 ] || root=fakeroot
		$root debian/rules binary >log 2>&1
		dpkg-deb -x ../fruit_1-1_*.deb x 2>>log && dpkg-deb -x ../fruit-dbgsym_1-1_*.deb y 2>>log
		check recipes/debian "$(tail -n 1 log)" prints x/usr/bin/prog
		check recipes/debian-stripped "symbols or relocations" bash -c '! readelf -SW x/usr/bin/prog | grep -qE "symtab|rela\.text"'
		check recipes/debian-order "not dh_dwz, folding, dh_strip" awk '/^ *dh_dwz( |$)/ { d = NR } /^fold-tree: / { f = NR } /^ *dh_strip( |$)/ { s = NR }
			END { exit !(d && d < f && f < s) }' log
		sym=$(find y -name '*.debug' | head -n 1)
		check recipes/debian-folded "${sym:-no debug file}" folded "${sym:-/dev/null}"
	else
		skip recipes/debian "neither root nor fakeroot (Debian: fakeroot)"
	fi
fi
if need recipes/rpm rpmbuild rpm2archive; then
	place packaging.rpm
	sed "s#/usr/libexec#$INST/libexec#" "$R/packaging/fruit.spec" >fruit.spec
	rpmbuild --nodeps --define "_topdir $PWD/top" --define "_sourcedir $PWD" --define "debug_package %{nil}" --define "_dbpath $PWD/db" -bb fruit.spec >log 2>&1
	rpm2archive - <"$(find top -name 'fruit-1*.rpm' | head -n 1)" 2>>log | tar -xz 2>>log
	check recipes/rpm "$(tail -n 1 log)" prints usr/bin/prog
	check recipes/rpm-folded "fold-tree did not say so" grep -q 'fold-tree: .*usr/bin/prog' log
	check recipes/rpm-relocations "left in" no_relocations usr/bin/prog
fi
finish
