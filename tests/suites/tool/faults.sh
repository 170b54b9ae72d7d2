#!/bin/bash
# faults.sh: what becomes of files if something goes wrong: full disks, signals, inputs that change, odd outputs, many runs at once.
# There is always the older OUTPUT or a complete new one, never a part of one, and nothing else is left behind.
# FAULTS=full: ten times as many signals and parallel runs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite faults
times=1
[ "${FAULTS:-quick}" = full ] && times=10

load_recipe recur
if ! compile_fixture gcc "-O2 -g" pie obj || ! link_fixture gcc bfd pie obj prog; then
	not_ok faults "the test program does not build"
	finish
fi
if ! gcc -D_GNU_SOURCE -shared -fPIC -O1 -w "$TESTS/mutate/fault_preload.c" -o preload.so; then
	not_ok faults "tests/mutate/fault_preload.c does not build"
	finish
fi
# The sanitizer's library wants to be loaded first; this is not necessary.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
"$ICFOLD" -q prog -o new 2>r.err && "$ICFOLD" -q --icf=all prog -o all 2>>r.err
if [ ! -s new ] || [ ! -s all ]; then
	not_ok faults "does not fold: $(first_line r.err)"
	finish
fi
new_bytes=$(file_bytes new)
export new_bytes
echo precious >old
rm -rf out && mkdir out

# faulty WORDS COMMAND...: the command with these faults (tests/mutate/fault_preload.c).
faulty() {
	local words=$1
	shift
	FAULT=$words FAULT_FILE=${FAULT_FILE:-} LD_PRELOAD=$WORK/preload.so "$@"
}
rc=0
# fold [ARG...]: leaves rc, r.out, r.err.
fold() {
	"$ICFOLD" "$@" >r.out 2>r.err </dev/null
	rc=$?
}
# kept NAME WORD [RC]: the last run failed with status 2, which is trouble, said so in one line with WORD in it, and left out/x, the older file, alone.
kept() {
	if [ $rc != "${3:-2}" ]; then
		not_ok "$1" "exit status $rc instead of ${3:-2}: $(first_line r.err)"
	elif ! cmp -s out/x old; then
		not_ok "$1" "the older file was touched"
	elif [ "$(ls -A out)" != x ]; then
		not_ok "$1" "left behind: $(ls -A out | tr '\n' ' ')"
	elif [ "$(wc -l <r.err)" != 1 ] || ! grep -q '^icfold: ' r.err; then
		not_ok "$1" "not one line 'icfold: ...': $(head -n 2 r.err | tr '\n' '|')"
	elif ! grep -qE -- "$2" r.err; then
		not_ok "$1" "says nothing of '$2': $(first_line r.err)"
	else
		ok "$1"
	fi
	fresh
}
fresh() {
	rm -rf out
	mkdir out
	echo precious >out/x
}
# written NAME [FILE]: the last run succeeded, and out/x is what it must be and alone.
written() {
	if [ $rc != 0 ]; then
		not_ok "$1" "exit status $rc: $(first_line r.err)"
	elif ! cmp -s "${2:-new}" out/x; then
		not_ok "$1" "not the bytes of an undisturbed run"
	elif [ "$(ls -A out)" != x ]; then
		not_ok "$1" "left behind: $(ls -A out | tr '\n' ' ')"
	else
		ok "$1"
	fi
	fresh
}
fresh

# --- file systems
# A FAT file system has neither unnamed files nor links, nor owners and modes.
fat="notmpfile nolink nochmod nochown"
for f in notmpfile nolink short eintr "short eintr notmpfile" nochmod "notmpfile nochmod" "$fat" "nolink nochown"; do
	faulty "$f" "$ICFOLD" prog -o out/x >r.out 2>r.err
	rc=$?
	written "faults/${f// /-}"
	rm -f out/x
	faulty "$f" "$ICFOLD" prog -o out/x >r.out 2>r.err
	rc=$?
	written "faults/${f// /-}-first"
done
cp prog same
for f in nochmod "nochmod notmpfile" "$fat"; do
	faulty "$f" "$ICFOLD" same -o same 2>r.err
	check "faults/${f// /-}-in-place" "$(first_line r.err)" cmp -s same new
	cp prog same
done
for f in full "full notmpfile" "closefull notmpfile"; do
	faulty "$f" "$ICFOLD" prog -o out/x >r.out 2>r.err
	rc=$?
	kept "faults/${f// /-}" 'out/x: cannot write: No space left'
done
for f in norename "norename notmpfile" "norename nolink"; do
	faulty "$f" "$ICFOLD" prog -o out/x >r.out 2>r.err
	rc=$?
	kept "faults/${f// /-}" 'out/x: cannot replace: Input/output'
done
# An older output is exchanged with the new one and removed, or replaced where that cannot be.
for f in none noexchange "noexchange notmpfile" nolink; do
	echo older >out/x
	faulty "$f" "$ICFOLD" prog -o out/x >r.out 2>r.err
	rc=$?
	written "faults/older-${f// /-}"
done
# Limits on the size of files, with SIGXFSZ as by default, and ignored.
bad=0
for kb in 0 1 4 $((new_bytes / 2048)) $((new_bytes / 1024 - 1)); do
	for how in - ''; do
		for f in short notmpfile; do
			(trap $how XFSZ; ulimit -f "$kb"; exec 2>&1; faulty $f "$ICFOLD" prog -o out/x) | cat >r.err
			rc=${PIPESTATUS[0]}
			if [ "$rc" != 2 ] || ! cmp -s out/x old || [ "$(ls -A out)" != x ] || ! grep -q '^icfold: out/x: .*File too large' r.err; then
				bad=$((bad + 1)) why="$kb KiB, $f: status $rc, $(first_line r.err)"
				fresh
			fi
		done
	done
done
check faults/size-limit "$bad of 20: ${why:-}" test $bad = 0

# A real small file system, of every size up to enough.
# in_mounts COMMAND...: in a mount namespace of its own.
in_mounts() { unshare -m --propagation private "$@"; }
mkdir small
if in_mounts mount -t tmpfs -o size=64k none small 2>/dev/null; then
	in_mounts bash -c '
		say() { echo "$kb KiB: $*"; }
		pages=$(((new_bytes + 4095) / 4096))
		for n in 1 2 3 5 $((pages / 2)) $((pages - 1)) $pages $((pages + 1)) $((pages + 2)) $((pages * 2)); do
			kb=$((4 * n))
			for f in none notmpfile short; do
				mount -t tmpfs -o size=${kb}k none small || exit
				echo precious >small/x
				FAULT=$f LD_PRELOAD=$WORK/preload.so "$ICFOLD" -q prog -o small/x --map=small/map >r.out 2>r.err
				rc=$?
				left=$(ls -A small | tr "\n" " ")
				case $rc in
				0) cmp -s small/x new || say "other bytes"; [ "$left" = "map x " ] || say "left $left"; echo fits >>fits ;;
				2)
					[ "$(cat small/x)" = precious ] || say "the older file was touched"
					[ "$left" = "x " ] || say "left $left"
					grep -q "^icfold: small/[a-z]*: cannot.*No space left" r.err || say "$(cat r.err)"
					echo full >>fits
					;;
				*) say "status $rc: $(cat r.err)" ;;
				esac
				umount small
			done
		done' >r.bad 2>&1
	check faults/small-disk "$(head -n 2 r.bad | tr '\n' '|')" test ! -s r.bad
	check faults/small-disk-both "$(sort fits | uniq -c | tr '\n' ' ')" test "$(sort -u fits | wc -l)" = 2
	in_mounts bash -c 'mount -t tmpfs -o ro none small; "$ICFOLD" prog -o small/x' >r.out 2>r.err
	rc=$?
	kept faults/read-only-disk 'small/x: cannot create: Read-only'
	# A file system of another kind than the working folder's, and back.
	in_mounts bash -c 'mount -t tmpfs none small; "$ICFOLD" prog -o small/x && cp small/x out/x; ls -A small >left' >r.out 2>r.err
	rc=$?
	check faults/other-file-system-left "$(tr '\n' ' ' <left)" test "$(cat left)" = x
	written faults/other-file-system
	for fs in ramfs overlay vfat exfat; do
		opt='' from=none
		mkdir -p lower
		case $fs in
		overlay) opt=lowerdir=lower,upperdir=small/up,workdir=small/work ;;
		*fat)
			from=$WORK/$fs.image opt=loop
			truncate -s 16M "$from" && { mkfs.$fs "$from" >r.out 2>&1 || { skip faults/$fs "no mkfs.$fs"; continue; }; }
			;;
		esac
		fs=$fs opt=$opt from=$from in_mounts bash -c 'mount -t tmpfs none small; mkdir -p small/up small/work small/m
			mount -t $fs ${opt:+-o $opt} "$from" small/m 2>/dev/null || exit 9
			cp out/x small/m; "$ICFOLD" prog -o small/m/x && cp small/m/x out/x && [ "$(ls -A small/m)" = x ]' >r.out 2>r.err
		rc=$?
		[ $rc != 9 ] || { skip faults/$fs "cannot be mounted here"; continue; }
		written faults/$fs
	done
else
	skip faults/small-disk "no right to mount a small file system"
fi

# --- who may do what
if [ "$(id -u)" = 0 ] && have setpriv; then
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
else
	as_nobody() { "$@"; }
fi
open_dir=$(mktemp -d /tmp/icfold-faults.XXXXXX) && chmod 777 "$open_dir"
# shellcheck disable=SC2064
trap "rc=\$?; rm -rf '$open_dir'; [ -n \"\${KEEP:-}\" ] || rm -rf '$WORK'; exit \$rc" EXIT
cp "$ICFOLD" "$open_dir/icfold"
if as_nobody "$open_dir/icfold" --version >/dev/null 2>&1; then
	(
		cd "$open_dir" || exit
		cp "$WORK/prog" prog
		cp prog closed && chmod 000 closed
		mkdir fixed && echo precious >fixed/x && chmod 555 fixed && chmod 444 fixed/x
		mkdir sticky && echo precious >sticky/x && chmod 1777 sticky
		mkdir out && echo precious >out/x && chmod 777 out && chmod 444 out/x
		as_nobody ./icfold closed -o out/y >r.1 2>&1
		echo "$? $(ls -A out | tr '\n' ' ') $(cat r.1)" >res.closed
		as_nobody ./icfold prog -o fixed/x >r.2 2>&1
		echo "$? $(cat fixed/x) $(ls -A fixed | tr '\n' ' ') $(cat r.2)" >res.fixed
		as_nobody ./icfold prog -o out/x >r.3 2>&1
		echo "$? $(cmp out/x "$WORK/new" 2>&1)$(ls -A out | tr '\n' ' ') $(cat r.3)" >res.replace
		if [ "$(id -u)" = 0 ]; then
			as_nobody ./icfold prog -o sticky/x >r.4 2>&1
			echo "$? $(cat sticky/x) $(ls -A sticky | tr '\n' ' ') $(cat r.4)" >res.sticky
		fi
	)
	check faults/unreadable "$(cat "$open_dir/res.closed")" grep -q '^2 x  icfold: closed: cannot open: Permission denied$' "$open_dir/res.closed"
	check faults/unwritable-folder "$(cat "$open_dir/res.fixed")" grep -q '^2 precious x  icfold: fixed/x: cannot create: Permission denied$' "$open_dir/res.fixed"
	check faults/read-only-file-is-replaced "$(cat "$open_dir/res.replace")" grep -q '^0 x *$' "$open_dir/res.replace"
	if [ -e "$open_dir/res.sticky" ]; then
		check faults/file-of-another "$(cat "$open_dir/res.sticky")" grep -q '^2 precious x  icfold: sticky/x: cannot replace: ' "$open_dir/res.sticky"
	else
		skip faults/file-of-another "needs root to make one"
	fi
else
	skip faults/permissions "another user cannot run programs from /tmp"
fi

# --- outputs that are no ordinary files
# A link like /dev/stdout; a private one, in case the test replaces it.
ln -s /proc/self/fd/1 stdout
ln -s stdout link.out
fold prog -o out
check faults/folder "status $rc: $(first_line r.err)" grep -q '^icfold: out: is a directory$' r.err
fold prog -o out/
check faults/folder-slash "status $rc: $(first_line r.err)" grep -q '^icfold: out/: is a directory$' r.err
fold prog -o out/none/
check faults/no-folder-slash "status $rc: $(first_line r.err), $(ls -A out)" test $rc = 2 -a "$(ls -A out)" = x
fold prog -o ''
check faults/empty-name "status $rc: $(first_line r.err)" test $rc = 2 -a "$(wc -l <r.err)" = 1
fold prog -o /dev/full
kept faults/dev-full '/dev/full: cannot write: No space left'
fold prog -o /dev/null
check faults/dev-null "status $rc: $(first_line r.err)" test $rc = 0 -a -c /dev/null
"$ICFOLD" prog -o stdout 2>r.err | cat >out/x
rc=${PIPESTATUS[0]}
written faults/stdout-pipe
"$ICFOLD" prog -o stdout 2>r.err >out/x
rc=$?
written faults/stdout-file
check faults/stdout-stays "the link was replaced" test -L stdout
echo before >out/x
cat out/x new >both
"$ICFOLD" prog -o stdout 2>r.err >>out/x
rc=$?
written faults/stdout-append both
"$ICFOLD" prog -o /dev/fd/7 2>r.err 7>out/x
rc=$?
written faults/descriptor
"$ICFOLD" prog -o link.out 2>r.err >out/x
rc=$?
written faults/link-to-stdout
check faults/link-to-stdout-stays "the link was replaced" test -L link.out
fold prog -o stdout
cp r.out out/x
written faults/stdout-again
"$ICFOLD" prog -o stdout >&- 2>r.err
rc=$?
kept faults/stdout-closed 'stdout: cannot write'
check faults/stdout-closed-stays "the link was replaced" test -L stdout
mkfifo pipe
cat pipe >out/x &
fold prog -o pipe
wait $!
written faults/fifo
check faults/fifo-stays "the pipe was replaced" test -p pipe
# The reader has closed its end before anything is written: the pipe alone would hold the whole file.
{
	until [ -e closed ]; do :; done
	"$ICFOLD" prog -o stdout
} 2>r.err | {
	exec <&-
	: >closed
}
check faults/closed-pipe "$(first_line r.err)" test "${PIPESTATUS[0]}" != 0
"$ICFOLD" prog -o stdout >/dev/full 2>r.err
rc=$?
kept faults/stdout-full 'stdout: cannot write: No space left'

# --- links and names
echo other >target
ln -sf ../target out/x
fold prog -o out/x
check faults/symlink-target "what the link means was changed" test "$(cat target)" = other -a ! -L out/x
written faults/symlink
ln -sf nowhere out/x
fold prog -o out/x
written faults/symlink-dangling
ln -sf loop out/loop && rm out/x && mv out/loop out/x
fold prog -o out/x
written faults/symlink-loop
rm out/x && ln target out/x
fold prog -o out/x
check faults/hard-link-other "the other name has changed" test "$(cat target)" = other
written faults/hard-link
cp prog in1 && rm out/x && ln in1 out/x
fold in1 -o out/x
check faults/hard-link-of-input "the input was touched" cmp -s in1 prog
written faults/hard-link-to-input
cp prog in1 && ln -sf ../in1 out/x
fold in1 -o out/x
check faults/symlink-of-input "the input was touched" cmp -s in1 prog
written faults/symlink-to-input
cp prog in1 && ln -sf in1 in2
fold in2 -o in2
check faults/in-place-symlink "link or file is not what it was: $(first_line r.err)" test -L in2
check faults/in-place-symlink-file "not folded" cmp -s in1 new
cp prog in1 && ln -f in1 in3
fold in1 -o in1
check faults/in-place-hard-link "the other name's file was changed" cmp -s in3 prog
check faults/in-place "$(first_line r.err)" cmp -s in1 new
name=out/$(printf 'n%.0s' $(seq 255))
for f in none notmpfile; do
	faulty $f "$ICFOLD" prog -o "$name" 2>r.err && faulty $f "$ICFOLD" prog -o "$name" 2>r.err
	rc=$?
	mv "$name" out/x 2>/dev/null
	written faults/long-name-$f
done
fold prog -o "${name}n"
kept faults/name-too-long 'File name too long'
cp prog 'in put' && fold 'in put' -o 'out/x'
written faults/name-with-space

# --- permission bits: the input's without those of the umask, without set-user-ID and set-group-ID
why=
for row in 755:022:755 755:077:700 775:002:775 644:022:644 4755:022:755 2755:022:755 1755:022:755 6775:027:750 555:022:555; do
	IFS=: read -r mode mask want <<<"$row"
	rm -f m out/x && cp prog m && chmod "$mode" m
	for f in none notmpfile; do
		(umask "$mask" && faulty $f "$ICFOLD" -q m -o out/x) 2>r.err
		got=$(stat -c %a out/x 2>/dev/null)
		[ "$got" = "$want" ] || why="$why $mode under $mask with $f: $got instead of $want"
	done
done
check faults/mode "$why" test -z "$why"
why=
for mode in 600 4711 777 444; do
	cp prog out/x && chmod $mode out/x
	(umask 022 && "$ICFOLD" prog -o out/x) 2>r.err
	got=$(stat -c %a out/x)
	[ "$got" = 755 ] || why="$why older $mode: $got"
done
check faults/mode-of-older "$why" test -z "$why"
why=
for mode in 755 4755 600 2711; do
	for f in none notmpfile nolink; do
		cp prog m.1 && chmod $mode m.1
		(umask 077 && faulty $f "$ICFOLD" m.1 -o m.1) 2>r.err
		got=$(stat -c %a m.1)
		[ "$got" = $mode ] || why="$why $mode became $got with $f"
	done
done
check faults/mode-in-place "$why" test -z "$why"
# A process that ends before it changes the owner leaves no file with another user's rights.
mkdir killed
cp prog killed/m && chmod 4755 killed/m
(cd killed && umask 022 && faulty "nolink diechown" "$ICFOLD" m -o m) >r.out 2>r.err
got=$(stat -c %a killed/.m.icfold-* 2>&1)
check faults/mode-meanwhile "$got" test "$got" = 600
rm -rf killed
if [ "$(id -u)" = 0 ]; then
	cp prog m && chown 65534:65534 m && chmod 4755 m
	fold m -o m
	check faults/owner-in-place "$(stat -c '%a %u:%g' m)" test "$(stat -c '%a %u:%g' m)" = "4755 65534:65534"
	chown 65534:65534 m && cp prog m && chmod 4755 m
	rm -f out/x && fold m -o out/x
	check faults/owner-of-other "$(stat -c '%a %u' out/x)" test "$(stat -c '%a %u' out/x)" = "755 0"
else
	skip faults/owner-in-place "needs root"
fi
fresh
# Gaps in the file are not stored.
echo '#define FAR(s) __attribute__((aligned(1 << 20), section(s)))
FAR("far") int a[4] = { 1 }; FAR("further") int b[4] = { 2 }; int main(void) { return a[1] + b[1]; }' >wide.c
gcc -O1 -Wl,--emit-relocs wide.c -o wide
fold wide -o wide.new
check faults/sparse "$(stat -c '%s bytes in %b blocks' wide.new)" test $((512 * $(stat -c %b wide.new))) -lt $(($(file_bytes wide) / 2))

# --- the input changes meanwhile
for f in cut latecut touch latetouch; do
	for more in "" " notmpfile"; do
		cp prog moving
		FAULT_FILE=$WORK/moving faulty "$f$more" "$ICFOLD" moving -o out/x >r.out 2>r.err
		rc=$?
		case $f in
		*cut) kept "faults/$f${more// /-}" 'moving: was truncated while it was read' ;;
		*) kept "faults/$f${more// /-}" 'moving: was changed while it was read' ;;
		esac
	done
done
for f in cut touch; do
	cp prog moving
	FAULT_FILE=$WORK/moving faulty $f "$ICFOLD" moving -o moving >r.out 2>r.err
	rc=$?
	check faults/$f-in-place "status $rc, $(first_line r.err)" test $rc = 2 -a "$(grep -c 'moving: was .* while it was read' r.err)" = 1
done
for f in latecut latetouch; do
	cp prog moving
	FAULT_FILE=$WORK/moving faulty "$f notmpfile" "$ICFOLD" --verify moving -o out/x >r.out 2>r.err
	rc=$?
	kept "faults/$f-verify-output" 'moving: was (truncated|changed) while it was read'
done
cp prog moving
FAULT_FILE=$WORK/moving faulty cut "$ICFOLD" verify moving new >r.out 2>r.err
rc=$?
check faults/cut-verify "status $rc: $(first_line r.err)" test $rc = 2 -a "$(grep -c 'moving: was truncated while it was read' r.err)" = 1
for command in symbolize dump inlines; do
	cp new moving
	words=moving
	[ $command = symbolize ] && words="-e moving 0x1200"
	[ $command = inlines ] && words="p_self moving"
	# shellcheck disable=SC2086
	FAULT_FILE=$WORK/moving faulty cut "$ICFOLD" $command $words >r.out 2>r.err
	rc=$?
	check faults/cut-$command "status $rc: $(first_line r.err)" test $rc = 2 -a "$(grep -c 'moving' r.err)" = 1
done

# --- what is written, and where
if have strace && strace -o trace true 2>/dev/null; then
	mkdir elsewhere
	ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 strace -f -o trace -e trace=%file,write,pwrite64 "$ICFOLD" -q prog -o out/x --map=elsewhere/map --depfile=elsewhere/d --print-icf-sections=elsewhere/s 2>r.err
	rc=$?
	bad=$(grep -E 'O_WRONLY|O_RDWR|O_CREAT|mkdir|unlink|rename|link|chmod|chown|utime|truncate' trace | grep -vE 'readlink|"(out|elsewhere)(/[^"]*)?", O_RDWR|linkat\(.*"(out|elsewhere)/[^"]*", |rename(at2?)?\(.*"(out|elsewhere)/[^"]*"|unlink\("(out|elsewhere)/\.[^"]*\.icfold-' | head -n 1)
	check faults/writes-only-outputs "${bad:0:150}" test -z "$bad"
	check faults/prints-nothing "$(grep -E ' write\(' trace | head -n 1)" test -z "$(grep -E ' write\([12],' trace)"
	written faults/traced
else
	skip faults/writes-only-outputs "no strace (Debian: strace), or it may not trace"
fi
"$ICFOLD" prog -o out/x <&- >&- 2>&-
rc=$?
written faults/closed-descriptors
"$ICFOLD" --stats prog -o out/x <&- >&- 2>r.err
check faults/stats-closed "status $?: $(first_line r.err)" grep -q '^icfold: standard output: cannot write' r.err
"$ICFOLD" --stats --print-icf-sections prog -o out/x >/dev/full 2>r.err
check faults/stats-full "status $?: $(first_line r.err)" grep -q '^icfold: standard output: cannot write: No space' r.err
fresh
for option in --map --depfile --print-icf-sections; do
	n=${option#--}
	fold $option=/dev/full prog -o out/x
	kept "faults/$n-full" '/dev/full: cannot write: No space left'
	fold $option=nowhere/m prog -o out/x
	kept "faults/$n-unwritable" 'nowhere/m: cannot create: No such file'
	fold $option=out prog -o out/x
	kept "faults/$n-folder" 'out: is a directory'
	cp prog in1
	fold $option=in1 in1 -o out/x
	check "faults/$n-input-stays" "the input was touched" cmp -s in1 prog
	kept "faults/$n-is-input" 'in1: is the input'
	fold $option=./out/x prog -o out/x
	kept "faults/$n-is-output" 'is asked for as two'
	echo older >report
	head -c 5000 prog >broken
	fold $option=report broken -o out/x
	check "faults/$n-older" "the older report was touched" test "$(cat report)" = older
	kept "faults/$n-after-failure" broken 1
	faulty norename "$ICFOLD" $option=report prog -o out/x 2>r.err
	rc=$?
	kept "faults/$n-no-rename" 'report: cannot replace'
	fold $option=report prog -o out/x
	cp report report.want
	written "faults/$n"
	rm report
	faulty "notmpfile short" "$ICFOLD" $option=report prog -o out/x 2>r.err
	rc=$?
	check "faults/$n-short" "another report" cmp -s report report.want
	written "faults/$n-notmpfile"
	fold $option=stdout prog -o out/x
	check "faults/$n-stdout" "not what goes to a file" cmp -s r.out report.want
	fresh
done
check faults/report-mode "$(stat -c %a report)" test "$(stat -c %a report)" = "$(printf '%o' $((0666 & ~$(umask))))"
fold --map=report --depfile=report prog -o out/x
kept faults/two-reports-one-file 'is asked for as two'

# The page of an audit is written in the same way.
fresh
"$ICFOLD" audit --html=out/x prog 2>r.err
cp out/x page
rc=$?
written faults/page page
for f in "short full" "short full notmpfile"; do
	faulty "$f" "$ICFOLD" audit --html=out/x prog >r.out 2>r.err
	rc=$?
	kept "faults/page-${f// /-}" 'out/x: cannot write: No space left' 2
done
"$ICFOLD" audit --html=stdout prog 2>r.err >out/x
rc=$?
written faults/page-stdout page
check faults/page-stdout-stays "the link was replaced" test -L stdout

# --- dependency files
deps=$WORK/deps
rm -rf "$deps" && mkdir "$deps" && cd "$deps" || exit 1
cp ../prog 'a b'
printf 'p_self\n' >'k#1'
printf -- '--keep-unique-file=k#1' >'r$1'
"$ICFOLD" 'a b' '@r$1' -o 'o ut' --depfile=d 2>../r.err
# shellcheck disable=SC2016
check faults/depfile-text "$(tr '\n' '|' <d)" test "$(tr -d '\n' <d | sed 's/ \\  / /g')" = 'o\ ut: a\ b r$$1 k\#1'
cd "$WORK" || exit 1
why=
n=0
for odd in plain 'with space' 'two  spaces' 'hash#1' '#' 'dollar$x' '$$' 'back\slash' 'back\ space' 'back\\ two' 'colon:1' "tab$(printf '\t')x" 'semi,colon'; do
	n=$((n + 1))
	rm -rf "$deps" && mkdir "$deps"
	cp prog "$deps/$odd"
	(cd "$deps" && "$ICFOLD" "$odd" -o result --depfile=d) 2>r.err || { why="$why $(first_line r.err)" && continue; }
	# make acts on the rule: nothing to do for an older input, a new output for a newer one.
	printf 'result:\n\t@echo made\ninclude d\n' >"$deps/Makefile"
	touch -d '1 hour ago' "$deps/$odd"
	touch "$deps/result"
	got=$(make -s -C "$deps" result 2>&1)
	case $got in *"up to date"* | '') ;; *) why="$why make, older '$odd': $got;" ;; esac
	touch -d '1 hour' "$deps/$odd"
	got=$(make -s -C "$deps" result 2>&1 | grep -v 'in the future\|Clock skew')
	[ "$got" = made ] || why="$why make, newer '$odd': ${got:0:100};"
	# Odd names of outputs, too; make cannot express a tab.
	case $odd in tab*) continue ;; esac
	rm -f "$deps"/* && cp prog "$deps/input"
	(cd "$deps" && "$ICFOLD" input -o "$odd" --depfile=d) 2>r.err || { why="$why $(first_line r.err)" && continue; }
	printf 'include d\n.DEFAULT_GOAL :=\n%%::\n\t@echo made\nMakefile d input: ;\n' >"$deps/Makefile"
	touch -d '1 hour' "$deps/input"
	got=$(make -s -C "$deps" -- "$odd" 2>&1 | grep -v 'in the future\|Clock skew')
	[ "$got" = made ] || why="$why make, result '$odd': ${got:0:100};"
done
check faults/depfile-make "${why:0:400}" test -z "$why"
if have ninja; then
	why=
	for odd in plain 'with space' 'hash#1' 'dollar$x' '$$' 'back\slash' 'colon:1'; do
		rm -rf "$deps" && mkdir "$deps"
		cp prog "$deps/$odd"
		printf 'rule r\n command = cp d.made d && touch result\n depfile = d\nbuild result: r\n' >"$deps/build.ninja"
		(cd "$deps" && "$ICFOLD" "$odd" -o result --depfile=d.made) 2>r.err
		touch -d '1 hour ago' "$deps/$odd"
		ninja -C "$deps" >r.out 2>&1 || why="$why first '$odd': $(tail -n 1 r.out);"
		ninja -C "$deps" >r.out 2>&1
		grep -q 'no work to do' r.out || why="$why idle '$odd': $(tail -n 1 r.out);"
		sleep 0.01
		touch "$deps/$odd"
		ninja -C "$deps" >r.out 2>&1
		grep -q 'no work to do' r.out && why="$why '$odd' is not known;"
	done
	check faults/depfile-ninja "${why:0:400}" test -z "$why"
else
	skip faults/depfile-ninja "ninja is not installed"
fi
cp prog "line
break"
fold "line
break" -o out/x --depfile=report
kept faults/depfile-line-break 'line break'
cp prog in1
fold in1 -o in1 --depfile=report
check faults/depfile-in-place "$(tr '\n' '|' <report)" test "$(cat report)" = in1:

# --- signals
# One run's time in microseconds, with the fault words.
run_time() {
	local t0 t1
	t0=$(date +%s%N)
	faulty "$1" "$ICFOLD" $verify prog -o out/x --map=out/map 2>/dev/null
	t1=$(date +%s%N)
	echo $(((t1 - t0) / 1000))
}
RANDOM=1
ulimit -c 0
fold --map=map.want prog -o out/x
fresh
for f in slow "slow notmpfile" "slow nolink" "slow notmpfile verify"; do
	verify=
	case $f in *verify) verify=--verify ;; esac
	us=$(run_time "$f")
	shortest=$((us / 20))
	for sig in KILL TERM INT HUP; do
		bad='' ended=0 strays=0
		fresh
		echo old >out/map
		for _ in $(seq $((times * 12))); do
			# The delay begins a little before the program.
			d=$(((RANDOM * 32768 + RANDOM) % (us * 12 / 10) + 500))
			faulty "$f" env --default-signal=TERM,INT,HUP timeout -s $sig "$(printf '0.%06d' $d)" "$ICFOLD" $verify prog -o out/x --map=out/map 2>r.err
			# The machine's load changes, so the range of delays follows the time that runs take now.
			case $? in
			0) us=$((us > shortest ? us * 9 / 10 : us)) ;;
			124 | 137) ended=$((ended + 1)) us=$((us * 11 / 10)) ;;
			*) bad="status $?: $(first_line r.err)" ;;
			esac
			if cmp -s out/x old; then
				:
			elif cmp -s out/x new; then
				echo precious >out/x.tmp && mv out/x.tmp out/x
			else
				bad="out/x is neither old nor new after $d us"
			fi
			if [ "$(cat out/map)" != old ]; then
				cmp -s out/map map.want || bad="out/map is neither old nor new after $d us"
				echo old >out/map
			fi
			for left in out/.*.icfold-*; do
				[ -e "$left" ] || continue
				strays=$((strays + 1))
				[ $sig = KILL ] || bad="left ${left##*/}"
				# The signal comes between two system calls; the file is complete then.
				if [ "$f" = slow ] && ! cmp -s "$left" new && ! cmp -s "$left" map.want; then bad="left an incomplete ${left##*/}"; fi
				rm -f "$left"
			done
		done
		name="faults/signal-$sig-${f// /-}"
		if [ -n "$bad" ]; then
			not_ok "$name" "$bad"
		elif [ $ended = 0 ]; then
			not_ok "$name" "no run was ended: $us us a run"
		else
			ok "$name: $ended of $((times * 12)) ended, $strays names left"
		fi
	done
done
fresh
# Two files that belong together, on a file system without links and modes: they get the same bytes as elsewhere.
# Both are old or both are new, whatever ends the run.
if objcopy --only-keep-debug prog pair.debug && objcopy --strip-debug --add-gnu-debuglink=pair.debug prog pair 2>/dev/null &&
	fold pair --debug-file=pair.debug -o out/x --debug-output=out/x.debug && [ $rc = 0 ]; then
	mv out/x pair.new && mv out/x.debug pair.new.debug
	for f in "$fat" nolink; do
		faulty "$f" "$ICFOLD" pair --debug-file=pair.debug -o out/x --debug-output=out/x.debug 2>r.err
		check "faults/pair-${f// /-}" "$(first_line r.err)" cmp -s out/x.debug pair.new.debug
		rm -f out/x.debug
		written "faults/pair-${f// /-}" pair.new
	done
	for f in slow "slow notmpfile"; do
		bad='' ended=0
		fresh
		cp old out/x.debug
		t0=$(date +%s%N)
		faulty "$f" "$ICFOLD" pair --debug-file=pair.debug -o out/x --debug-output=out/x.debug 2>/dev/null
		us=$((($(date +%s%N) - t0) / 1000))
		for _ in $(seq $((times * 30))); do
			cp old out/x
			cp old out/x.debug
			d=$(((RANDOM * 32768 + RANDOM) % (us * 2) + 500))
			faulty "$f" env --default-signal=TERM timeout -s TERM "$(printf '0.%06d' $d)" "$ICFOLD" pair --debug-file=pair.debug -o out/x \
				--debug-output=out/x.debug 2>r.err && us=$((us > 2000 ? us * 9 / 10 : us)) || ended=$((ended + 1)) us=$((us * 11 / 10))
			if cmp -s out/x old; then
				cmp -s out/x.debug old || bad="a new debug file with an old program"
			else
				cmp -s out/x pair.new && cmp -s out/x.debug pair.new.debug || bad="a new program with another debug file"
			fi
			for left in out/.*icfold-* out/*icfold-*; do [ -e "$left" ] && bad="left $left"; done
		done
		if [ -n "$bad" ] || [ $ended = 0 ]; then not_ok "faults/signal-pair-${f// /-}" "$bad; $ended ended"; else ok "faults/signal-pair-${f// /-}: $ended of $((times * 30)) ended"; fi
	done
else
	not_ok faults/signal-pair "$(first_line r.err)"
fi
fresh
# A signal that is ignored ends nothing, however often it comes.  It is ignored before the program starts, so that no
# moment of the run is without it.
(
	trap '' TERM
	faulty "slow notmpfile" "$ICFOLD" prog -o out/x 2>r.err &
	while kill -TERM $! 2>/dev/null; do :; done
	wait $!
)
rc=$?
written faults/signal-ignored

# --- many at once
for f in none notmpfile nolink; do
	fresh
	(while [ ! -e stop ]; do
		cat out/x >seen 2>/dev/null || echo "out/x was away"
		cmp -s seen old || cmp -s seen new || cmp -s seen all || echo "a part: $(wc -c <seen) bytes"
	done) >partial &
	watcher=$!
	seq $((times * 70)) | FAULT=$f LD_PRELOAD=$WORK/preload.so xargs -P 16 -I '{}' sh -c '
		case $(({} % 2)) in 0) m=safe ;; *) m=all ;; esac
		"$ICFOLD" --threads=2 --icf=$m prog -o out/x || echo "status $?"' >r.out 2>&1
	touch stop
	wait $watcher
	rm stop
	check faults/parallel-$f "$(cat r.out partial | head -n 2 | tr '\n' '|')" test ! -s r.out -a ! -s partial
	cmp -s out/x new || cmp -s out/x all
	check faults/parallel-$f-result "neither safe nor all" test $? = 0
	check faults/parallel-$f-left "$(ls -A out | tr '\n' ' ')" test "$(ls -A out)" = x
done
finish
