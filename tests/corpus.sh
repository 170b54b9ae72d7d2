#!/bin/bash
# corpus.sh: real programs to fold, built from Debian's source packages and linked with --emit-relocs.
#
#   corpus.sh NAME...                  builds what is missing, prints the path of each program
#   corpus.sh --relink NAME LINKER KIND  links NAME again and prints the path of the result.  LINKER: bfd, gold, lld, mold;
#                                      KIND: relocs (kept relocations, nothing folded), safe or all (the linker's own
#                                      --icf=KIND), plain (neither), gc (--gc-sections), gc-all (that and --icf=all)
#   corpus.sh --list                   the names
#   corpus.sh --source PACKAGE [GLOB...]  fetches a source package, of a large one only the files that match, and prints its folder
#
# Everything lies in ${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}: the sources in src/, NAME, its build folder NAME.d, its
# log NAME.log, and for relinking NAME.link, the link command with @LD@ (options) and @OUT@ (output), to be run in the
# folder that NAME.dir names.  A program that is already there is taken as it is.  JOBS limits the compilers run at once.
# TARGET=aarch64: the same for that machine, by cross compilers (in the folder aarch64; ninja, ninja-nosec, protoc, sqlite, sqlite-g and
# python).
#
#   ninja    C++, 0.2 MB of code, DWARF 5     ninja-clang, ninja-O0, ninja-dwarf4, ninja-nosec, ninja-static: the same
#            (clang -O2; GCC -O0; GCC -O2 -gdwarf-4; GCC -O2 without -ffunction-sections; GCC -O2, static)
#   protoc   C++, 3 MB, DWARF 5, exceptions   llc  C++, 41 MB, no debug information
#   sqlite   C, 1 MB, no debug information    sqlite-g  the same with it
#   python   C, CPython 3.11 with its library in the program
set -eu
# shellcheck source=tests/lib/apt_source.sh
. "$(dirname "$0")/lib/apt_source.sh"
names="ninja ninja-clang ninja-O0 ninja-dwarf4 ninja-nosec ninja-static protoc llc sqlite sqlite-g python"
dir=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
machine=$(uname -m)
if [ "${TARGET:-$machine}" != "$machine" ]; then
	mkdir -p "$dir/src" "$dir/$TARGET/tools/ld"
	ln -sfn ../src "$dir/$TARGET/src"
	dir=$dir/$TARGET
	names="ninja ninja-nosec protoc sqlite sqlite-g python"
else
	TARGET=
fi
jobs=${JOBS:-$(nproc)}
usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit "$1"; }

root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# need PACKAGE...: installs those that are missing.
need() {
	local p miss=
	for p; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q ' installed$' || miss="$miss $p"; done
	[ -z "$miss" ] && return
	root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
	# shellcheck disable=SC2086
	root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $miss
}

# The cross compilers as gcc and g++, which find all linkers.
cross_tools() {
	[ -n "$TARGET" ] || return 0
	local c
	need "gcc-$TARGET-linux-gnu" "g++-$TARGET-linux-gnu" "binutils-$TARGET-linux-gnu" lld mold
	for c in lld mold; do ln -sf "$(command -v ld.$c)" "$dir/tools/ld/ld.$c"; done
	for c in gcc g++; do
		printf '#!/bin/sh\nexec %s-linux-gnu-%s -B%s/ld "$@"\n' "$TARGET" $c "$dir/tools" >"$dir/tools/$c"
		chmod +x "$dir/tools/$c"
	done
	PATH=$dir/tools:$PATH
}

# Lists of source packages in this folder, fetched once.
apt_conf() {
	[ -s "$dir/apt/apt.conf" ] && return
	apt_source_lists "$dir/apt"
	APT_CONFIG=$dir/apt/apt.conf apt-get update -qq || { rm -f "$dir/apt/apt.conf"; return 1; }
}

# source PACKAGE: unpacks a source package as src/PACKAGE.  A mirror may lack the newest version: then the one before it.
source_of() {
	[ -d "$dir/src/$1" ] && return
	need dpkg-dev xz-utils
	mkdir -p "$dir/src"
	apt_conf
	local v ok=
	for v in $(APT_CONFIG=$dir/apt/apt.conf apt-cache showsrc "$1" | sed -n 's/^Version: //p' | sort -rVu); do
		if (cd "$dir/src" && APT_CONFIG=$dir/apt/apt.conf apt-get source --download-only -qq "$1=$v"); then ok=$v; break; fi
	done
	[ -n "$ok" ] || { echo "no source of $1"; return 1; }
	(cd "$dir/src" && rm -rf "$1.new" && dpkg-source --no-check -x "$1_${ok#*:}.dsc" "$1.new" && mv "$1.new" "$1")
}

# part_of PACKAGE GLOB...: the files of a source package that match, as src/PACKAGE.part.  A tarball in a tarball counts as one.
part_of() {
	local p=$1 t v
	shift
	[ -d "$dir/src/$p.part" ] && return
	need dpkg-dev xz-utils
	mkdir -p "$dir/src/$p.down"
	apt_conf
	for v in $(APT_CONFIG=$dir/apt/apt.conf apt-cache showsrc "$p" | sed -n 's/^Version: //p' | sort -rVu); do
		(cd "$dir/src/$p.down" && APT_CONFIG=$dir/apt/apt.conf apt-get source --download-only -qq "$p=$v") && break
	done
	rm -rf "$dir/src/$p.new" && mkdir "$dir/src/$p.new"
	(
		cd "$dir/src/$p.new"
		for t in ../"$p".down/*.orig*.tar.*; do
			case $t in *.asc) continue ;; esac
			tar -tf "$t" | grep -E '\.tar\.(xz|gz|bz2)$' >inner || :
			if [ -s inner ]; then
				tar -xf "$t" -T inner
				# Some tarballs have no file that matches.
				xargs -d '\n' -I @ tar -xf @ --wildcards "$@" <inner 2>/dev/null || :
				xargs -d '\n' rm -f <inner
			else
				tar -xf "$t" --wildcards "$@" 2>/dev/null || :
			fi
			rm -f inner
		done
	)
	[ -n "$(ls -A "$dir/src/$p.new")" ] || { echo "nothing in the source of $p matches"; return 1; }
	mv "$dir/src/$p.new" "$dir/src/$p.part"
	rm -rf "$dir/src/$p.down"
}

# run_link NAME OPTIONS OUT
run_link() {
	local cmd
	cross_tools
	cmd=$(sed "s#@LD@#$2#; s#@OUT@#$3#" "$dir/$1.link")
	(cd "$(cat "$dir/$1.dir")" && bash -c "$cmd")
}

# cmake_prog NAME SOURCE FLAGS LINKFLAGS CMAKE-OPTION...: builds the target that SOURCE's program has in its own name.
cmake_prog() {
	local n=$1 s=$dir/src/$2 flags=$3 ld=$4 b=$dir/$1.d t=${1%%-*}
	shift 4
	need cmake g++ make zlib1g-dev
	# Neither libraries nor headers of this machine.
	[ -z "$TARGET" ] || set -- "$@" -DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$TARGET" -DCMAKE_C_COMPILER="$dir/tools/gcc" \
		-DCMAKE_CXX_COMPILER="$dir/tools/g++" "-DCMAKE_FIND_ROOT_PATH=/usr/$TARGET-linux-gnu" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
		-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
	CFLAGS=$flags CXXFLAGS=$flags cmake -S "$s" -B "$b" -DCMAKE_BUILD_TYPE=None "$@"
	cmake --build "$b" -j"$jobs" --target "$t"
	echo "$b" >"$dir/$n.dir"
	sed "s/ -o [^ ]* / $ld @LD@ -o @OUT@ /" "$b/CMakeFiles/$t.dir/link.txt" >"$dir/$n.link"
	run_link "$n" -Wl,--emit-relocs "$dir/$n.new"
}

ninja_prog() { # NAME FLAGS LINKFLAGS CMAKE-OPTION...
	source_of ninja-build
	local n=$1 f=$2 l=$3
	shift 3
	cmake_prog "$n" ninja-build "$f" "$l" -DBUILD_TESTING=OFF "$@"
}

sqlite_prog() { # NAME FLAGS
	need gcc make tcl
	source_of sqlite3
	mkdir -p "$dir/$1.d"
	cd "$dir/$1.d"
	if [ ! -s sqlite3.c ]; then
		# Programs of this machine write the sources.
		(
			PATH=${PATH#"$dir/tools:"}
			"$dir/src/sqlite3/configure" --disable-tcl
			make -j1 sqlite3.c shell.c
		)
	fi
	gcc -O2 $2 -fPIE -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_MATH_FUNCTIONS \
		-DSQLITE_ENABLE_SESSION -DSQLITE_ENABLE_PREUPDATE_HOOK -DSQLITE_ENABLE_DBSTAT_VTAB -c sqlite3.c -o sqlite3.o
	gcc -O2 $2 -fPIE -DSQLITE_ENABLE_FTS5 -DHAVE_UNISTD_H -c shell.c -o shell.o
	echo "gcc -pie @LD@ shell.o sqlite3.o -o @OUT@ -lm -ldl -lpthread" >"$dir/$1.link"
	echo "$dir/$1.d" >"$dir/$1.dir"
	run_link "$1" -Wl,--emit-relocs "$dir/$1.new"
}

python_prog() {
	need gcc make pkg-config libffi-dev zlib1g-dev ${TARGET:+python3.11}
	source_of python3.11
	set --
	mkdir -p "$dir/python.d"
	cd "$dir/python.d"
	[ -z "$TARGET" ] || set -- "--host=$TARGET-linux-gnu" "--build=$machine-linux-gnu" --with-build-python=python3.11 --disable-ipv6 \
		ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no
	[ -s Makefile ] || "$dir/src/python3.11/configure" "$@" LDFLAGS=-Wl,--emit-relocs OPT="-DNDEBUG -g -fwrapv -O2 -Wall"
	make -j"$jobs"
	# There is no zlib for the target; this module, which the tests need, can do without it.
	[ -z "$TARGET" ] || gcc -shared -fPIC -O2 -g -DPy_BUILD_CORE_MODULE -I. -I"$dir/src/python3.11/Include" \
		-I"$dir/src/python3.11/Include/internal" "$dir/src/python3.11/Modules/binascii.c" \
		-o "$(echo build/lib.*)/binascii.cpython-311-$TARGET-linux-gnu.so"
	echo "$dir/python.d" >"$dir/python.dir"
	echo "$(sed -n 's/^CC=[[:space:]]*//p' Makefile) @LD@ -Xlinker -export-dynamic -o @OUT@ Programs/python.o" \
		"libpython3.11.a -lpthread -ldl -lutil -lm" >"$dir/python.link"
	cp python "$dir/python.new"
}

llc_prog() {
	need g++ llvm-14-dev zlib1g-dev libzstd-dev
	source_of llvm-toolchain-14
	local c=/usr/lib/llvm-14/bin/llvm-config
	mkdir -p "$dir/llc.d"
	cd "$dir/llc.d"
	# The libraries are the ones that Debian built from the same source.
	# shellcheck disable=SC2046
	g++ -c -O2 $($c --cxxflags) -ffunction-sections "$dir/src/llvm-toolchain-14/llvm/tools/llc/llc.cpp" -o llc.o
	# shellcheck disable=SC2046
	echo "g++ @LD@ llc.o -L$($c --libdir)" \
		$($c --link-static --libs all-targets codegen irreader mirparser asmparser analysis passes) \
		$($c --link-static --system-libs) "-o @OUT@" >"$dir/llc.link"
	echo "$dir/llc.d" >"$dir/llc.dir"
	run_link llc -Wl,--emit-relocs "$dir/llc.new"
}

build() {
	cross_tools
	case $1 in
	ninja)        ninja_prog "$1" "-O2 -g -ffunction-sections" "";;
	ninja-clang)  need clang-14
	              ninja_prog "$1" "-O2 -g -ffunction-sections" "" -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14;;
	ninja-O0)     ninja_prog "$1" "-O0 -g -ffunction-sections" "";;
	ninja-dwarf4) ninja_prog "$1" "-O2 -gdwarf-4 -ffunction-sections" "";;
	ninja-nosec)  ninja_prog "$1" "-O2 -g" "";;
	ninja-static) ninja_prog "$1" "-O2 -g -ffunction-sections" -static;;
	protoc)       source_of protobuf
	              cmake_prog protoc protobuf "-O2 -g -ffunction-sections" "" -Dprotobuf_BUILD_TESTS=OFF;;
	llc)          llc_prog;;
	sqlite)       sqlite_prog sqlite "";;
	sqlite-g)     sqlite_prog sqlite-g -g;;
	python)       python_prog;;
	esac
}

known() { case " $names " in *" $1 "*) ;; *) echo "corpus.sh: unknown program '$1' (known: $names)" >&2; exit 2;; esac; }

# obtain NAME: builds it unless it is there.  The build runs in a shell of its own, for set -e to hold inside.
obtain() {
	known "$1"
	[ -s "$dir/$1" ] && return
	mkdir -p "$dir"
	"$0" --build "$1" >"$dir/$1.log" 2>&1 || { echo "corpus.sh: building $1 failed; see $dir/$1.log" >&2; exit 1; }
}

case ${1:---help} in
-h|--help) usage 0;;
--list) echo "$names" | tr ' ' '\n';;
--source)
	[ $# -ge 2 ] || usage 2
	shift
	if [ $# = 1 ]; then
		source_of "$1" >&2
		echo "$dir/src/$1"
	else
		part_of "$@" >&2
		echo "$dir/src/$1.part"
	fi;;
--build)
	known "$2"
	build "$2"
	mv "$dir/$2.new" "$dir/$2";;
--relink)
	[ $# = 4 ] || usage 2
	obtain "$2"
	case $4 in
	relocs) opt=-Wl,--emit-relocs;;
	plain) opt=;;
	safe|all) opt=-Wl,--icf=$4;;
	gc) opt=-Wl,--gc-sections;;
	gc-all) opt=-Wl,--gc-sections,--icf=all;;
	*) usage 2;;
	esac
	out=$dir/relink/$2.$3.$4
	if [ ! -s "$out" ]; then
		mkdir -p "$dir/relink"
		run_link "$2" "-fuse-ld=$3 $opt" "$out.new" >"$out.log" 2>&1 ||
			{ echo "corpus.sh: $3 cannot link $2 ($4); see $out.log" >&2; exit 1; }
		mv "$out.new" "$out"
	fi
	echo "$out";;
-*) usage 2;;
*)
	for n; do known "$n"; done
	for n; do obtain "$n"; echo "$dir/$n"; done;;
esac
