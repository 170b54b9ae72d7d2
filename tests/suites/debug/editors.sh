#!/bin/bash
# editors.sh: programs that change the debug information of a folded program make of it what they make of the unfolded one's, and it
# stays right: debugedit, rpm's find-debuginfo.  dwz works before icfold, alone and on several files; behind it dwz says that it
# cannot, and changes nothing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite editors gcc
always_fold
# A path that is in no file by chance, and is no part of another.
mkdir -p built-here/src/deep built-here/inc
home=$PWD/built-here
(
	cd built-here || exit 1
	echo 'static inline int scaled(int v, int n) { return v * 3 + n; }' >inc/scaled.h
	n=0
	for f in one two three four; do
		# The same code in other lines, from a header and in files of several folders.
		where=src/$f.c
		[ $f = three ] && where=src/deep/$f.c
		[ $f = four ] && where=four.c
		n=$((n + 1))
		for ((i = 0; i < n; i++)); do echo; done >$where
		cat >>$where <<-END
			#include "scaled.h"
			int leaf_$f(int n)
			{
				return scaled(n, 5);
			}
			int sum_$f(const int *p, int n)
			{
				int s = 0;
				for (int i = 0; i < n; i++)
					s += scaled(p[i], n);
				return s;
			}
		END
	done
	cat >src/main.c <<-END
		#include <stdio.h>
		int sum_one(const int *, int), sum_two(const int *, int), sum_three(const int *, int), sum_four(const int *, int);
		int leaf_one(int), leaf_two(int), leaf_three(int), leaf_four(int);
		int main(int argc, char **argv)
		{
			int a[3] = { argc, 2, 3 };
			(void)argv;
			int s = sum_one(a, 3);
			s = s * 5 + sum_two(a, 3);
			s = s * 5 + sum_three(a, 3);
			s = s * 5 + sum_four(a, 3);
			s = s * 5 + leaf_one(s) - leaf_two(s + 1);
			s = s * 5 + leaf_three(s) - leaf_four(s + 1);
			printf("%d\n", s);
			return 0;
		}
	END
)
# build OUT COMPILER FLAG...
build() {
	local out=$PWD/$1 cc=$2
	shift 2
	[ "$cc" = gcc ] && set -- "$@" -fno-ipa-icf -fno-ipa-cp
	(cd built-here && "$cc" -g -O2 -I inc "$@" src/main.c src/one.c src/two.c src/deep/three.c "$PWD/four.c" -o "$out" -Wl,--emit-relocs)
}
# answers FILE [dwz]: the functions and lines of each call of a function that may be folded, and inside of it, as icfold tells them; what
# addr2line says of every function; breakpoints at lines.
answers() {
	local file=$1 at ret f
	objdump -d --no-show-raw-insn "$file" 2>/dev/null | awk '/<main>:/ { on = 1 } !NF { on = 0 }
		call { print target, $1; call = 0 } on && $2 == "call" { call = 1; target = $3 }' | tr -d : | while read -r at ret; do
		for off in 0 4 8; do
			"$ICFOLD" symbolize --stack -e "$file" "$(printf '%x' $((0x$at + off)))" "$ret" 2>&1
		done
	done >"$file.answers"
	# binutils names inlined functions otherwise after dwz, folded or not.
	[ "${2:-}" = dwz ] || nm "$file" | awk '$3 ~ /^(sum|leaf|main)/ { print $1 }' | addr2line -ife "$file" | sed 's/ (discriminator.*//' >>"$file.answers"
	if have gdb; then
		for f in src/one.c:5 src/two.c:6 deep/three.c:7 four.c:8 one.c:10 two.c:12 three.c:13 four.c:14; do
			echo "break $f"
			echo "info line $f"
		done >"$file.gdb"
		gdb -nx -batch -iex 'set debuginfod enabled off' -x "$file.gdb" "$file" 2>&1 | grep -v 'No such file' >>"$file.answers"
	fi
}
# edit FILE: FILE.edited, FILE.list; FILE.why says what debugedit says.
edit() {
	cp "$1" "$1.edited"
	rm -f "$1.list"
	debugedit -b "$home" -d /usr/src/x -l "$1.list" "$1.edited" 2>&1 | grep -v 'Unknown debugging section .debug_\(icfold\|dcall\|vcall\)' >"$1.why"
	sort -zu "$1.list" | tr '\0' '\n' >"$1.sources"
}
left_in() { strings -a "$1" | grep -c "$home"; }
# edited NAME IN OUT: debugedit of OUT, folded from IN.
edited() {
	local n=editors/debugedit/$1 in=$2 out=$3
	edit "$in"
	edit "$out"
	check "$n-input" "debugedit leaves $(left_in "$in.edited") names in the unfolded program" [ "$(left_in "$in.edited")" = 0 -a -s "$in.sources" ]
	check "$n-says" "$(first_line "$out.why")" cmp -s "$in.why" "$out.why"
	check "$n-names" "$(left_in "$out.edited") are left" [ "$(left_in "$out.edited")" = 0 ]
	check "$n-list" "$(diff "$in.sources" "$out.sources" | grep '^[<>]' | head -n 3 | tr '\n' ' ')" cmp -s "$in.sources" "$out.sources"
	answers "$out"
	answers "$out.edited"
	sed -e "s#$home#/usr/src/x#g" -e "s#$out#FILE#g" "$out.answers" >want
	sed "s#$out.edited#FILE#g" "$out.edited.answers" >have
	check "$n-lines" "no lines of folded functions" grep -q '/four.c:[0-9]' want
	check "$n-readers" "$(diff want have | grep '^[<>]' | head -n 3 | tr '\n' ' ')" cmp -s want have
	check "$n-runs" "another output" [ "$("./$in")" = "$("./$out.edited")" ]
}
# folded NAME IN OUT [OPTION...]
folded() {
	local name=$1 in=$2 out=$3
	shift 3
	"$ICFOLD" -q --icf=all --verify "$@" "$in" -o "$out" >why 2>&1 && return
	not_ok "editors/$name" "$(first_line why)"
	return 1
}

if have debugedit; then
	for form in "gcc-5 gcc -gdwarf-5" "gcc-4 gcc -gdwarf-4" "gcc-5-absolute gcc -gdwarf-5 -fdebug-prefix-map=/nothing=/no" \
		"clang-4 clang -gdwarf-4" "zlib gcc -gdwarf-5 -gz=zlib"; do
		read -r name cc flags <<<"$form"
		have "$cc" || { skip "editors/debugedit/$name" "no $cc"; continue; }
		# shellcheck disable=SC2086
		build "$name" "$cc" $flags
		folded "debugedit/$name" "$name" "$name.folded" || continue
		# debugedit 5.0 does not read compressed sections.
		case $name in *zlib*) objcopy --decompress-debug-sections "$name" && objcopy --decompress-debug-sections "$name.folded" ;; esac
		edited "$name" "$name" "$name.folded"
	done
	folded debugedit/in-place gcc-5 gcc-5.place --in-place && edited in-place gcc-5 gcc-5.place
	# A separate debug file.
	for v in 4 5; do
		objcopy --only-keep-debug gcc-$v apart-$v.debug
		objcopy --strip-debug --add-gnu-debuglink=apart-$v.debug gcc-$v apart-$v
		folded "debugedit/apart-$v" apart-$v apart-$v.out --debug-output=apart-$v.folded.debug || continue
		edit apart-$v.debug
		edit apart-$v.folded.debug
		n=editors/debugedit/apart-$v
		check "$n-names" "$(left_in apart-$v.folded.debug.edited) are left" [ "$(left_in apart-$v.folded.debug.edited)" = 0 ]
		check "$n-list" "$(diff apart-$v.debug.sources apart-$v.folded.debug.sources | tr '\n' ' ')" cmp -s apart-$v.debug.sources apart-$v.folded.debug.sources
	done
else
	skip editors/debugedit "no debugedit"
fi

# --- verify: the names that the artificial table adds to .debug_line_str, and no others.
[ -e gcc-5 ] || build gcc-5 gcc -gdwarf-5
[ -e gcc-5.folded ] || folded debugedit/gcc-5 gcc-5 gcc-5.folded
objcopy -O binary --only-section=.debug_line_str --set-section-flags .debug_line_str=alloc gcc-5.folded texts
printf 'another\0' >>texts
objcopy --update-section .debug_line_str=texts gcc-5.folded gcc-5.more 2>/dev/null
check editors/verify-texts "a name too many is no difference" grep -q 'section: .debug_line_str: expected the same bytes' <("$ICFOLD" verify gcc-5 gcc-5.more 2>&1)

# --- find-debuginfo: what rpmbuild runs.  Source files, and names in debug files.
found() { # PROGRAM [OPTION...]
	rm -rf root
	mkdir -p root/usr/bin
	cp "$1" root/usr/bin/prog
	shift
	(
		cd built-here || exit 1
		export RPM_BUILD_ROOT=$WORK/root RPM_BUILD_DIR=$home RPM_PACKAGE_NAME=prog RPM_PACKAGE_VERSION=1 RPM_PACKAGE_RELEASE=1 RPM_ARCH=x86_64
		find-debuginfo --unique-debug-src-base prog-1 --unique-debug-suffix -1 -S debugsourcefiles.list "$@" "$home" >"$WORK/log" 2>&1
	)
	echo "status $?"
	(cd root && find . -type f | sort)
	sort -zu built-here/debugsources.list | tr '\0' '\n'
	strings -a root/usr/lib/debug/usr/bin/*.debug | grep -c "$home"
	root/usr/bin/prog
}
if have find-debuginfo && have eu-strip; then
	for p in gcc-5 gcc-4; do
		found $p >want 2>&1
		found $p.folded >have 2>&1
		check "editors/find-debuginfo/$p-input" "$(grep -v 'cpio: command not found' log | tail -n 1)" grep -q 'deep/three.c' want
		check "editors/find-debuginfo/$p" "$(diff want have | grep '^[<>]' | head -n 3 | tr '\n' ' ')" cmp -s want have
	done
	# dwz, behind the linker: it leaves the debug file as it is, and the package is made.
	if have dwz; then
		found gcc-5.folded >want 2>&1
		found gcc-5.folded --run-dwz >have 2>&1
		check editors/find-debuginfo/dwz "$(diff want have | grep '^[<>]' | head -n 3 | tr '\n' ' ')" cmp -s want have
		check editors/find-debuginfo/dwz-says "nothing" grep -q 'Unknown debugging section .debug_icfold' log
	fi
else
	skip editors/find-debuginfo "no find-debuginfo or eu-strip"
fi

# --- dwz before icfold: the folded file tells what it tells when dwz was not there.
if have dwz; then
	build other gcc -gdwarf-5 -DOTHER
	build other-4 gcc -gdwarf-4 -DOTHER
	for v in 5 4; do
		[ $v = 5 ] && second=other || second=other-4
		[ -e gcc-$v ] || build gcc-$v gcc -gdwarf-$v
		[ -e gcc-$v.folded ] || folded dwz/gcc-$v gcc-$v gcc-$v.folded
		cp gcc-$v dwz-$v
		cp gcc-$v many-$v
		cp $second partner-$v
		dwz dwz-$v >why 2>&1 && dwz -m common-$v.debug -M "$PWD/common-$v.debug" many-$v partner-$v >why 2>&1
		check "editors/dwz/input-$v" "$(first_line why)" grep -q gnu_debugaltlink <(readelf -SW many-$v)
		answers gcc-$v.folded dwz
		# gdb spells paths as their table does: from the unit's folder, which dwz has moved to the common file, or in full.
		sed "s#$home/##g; s#$PWD/##g; s#gcc-$v.folded#FILE#g; /^Line /d" gcc-$v.folded.answers >want
		for f in dwz-$v many-$v partner-$v; do
			folded "dwz/$f" $f $f.folded || continue
			answers $f.folded dwz
			sed "s#$home/##g; s#$PWD/##g; s#$f.folded#FILE#g; /^Line /d" $f.folded.answers >have
			check "editors/dwz/$f" "$(diff want have | grep '^[<>]' | head -n 3 | tr '\n' ' ')" cmp -s want have
			check "editors/dwz/$f-paths" "paths are not in full" grep -q "$home/src/two.c:" <("$ICFOLD" symbolize --stack -e $f.folded "$(nm $f.folded | awk '$3 == "sum_two" { print $1 }')" "$(objdump -d --no-show-raw-insn $f.folded | awk '/<main>:/ { on = 1 } on && call { print $1; exit } on && $2 == "call" && /sum_/ && n++ == 1 { call = 1 }' | tr -d :)")
			check "editors/dwz/$f-runs" "another output" [ "$(./gcc-$v)" = "$(./$f.folded)" ]
		done
	done
	# dwz behind icfold.
	cp gcc-5.folded late
	cp gcc-5.folded later
	check editors/dwz/late "dwz rewrites what the record refers to" [ "$(dwz late 2>&1)" = 'dwz: late: Unknown debugging section .debug_icfold' ]
	dwz -m late.debug late later >/dev/null 2>&1
	check editors/dwz/late-same "dwz changed the file" cmp -s late gcc-5.folded
	# debhelper runs dwz in front of dh_strip and takes its refusal for an error: icfold-build(7) says so.
	if have dh_dwz; then
		mkdir -p deb/debian/fruit/usr/bin
		cp gcc-5.folded deb/debian/fruit/usr/bin/prog
		printf 'Source: fruit\nMaintainer: A B <a@b.example>\nBuild-Depends: debhelper-compat (= 13)\n\nPackage: fruit\nArchitecture: any\nDescription: sums\n' >deb/debian/control
		echo 'fruit (1-1) unstable; urgency=low' >deb/debian/changelog
		(cd deb && dh_dwz) >why 2>&1
		check editors/dwz/debhelper "dh_dwz says nothing" [ $? != 0 ]
		check editors/dwz/debhelper-says "$(first_line why)" grep -q 'Unknown debugging section .debug_icfold' why
	else
		skip editors/dwz/debhelper "no dh_dwz"
	fi
else
	skip editors/dwz "no dwz"
fi
finish
