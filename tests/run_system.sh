#!/bin/bash
# run_system.sh: the programs and libraries of this machine, as they are: fold each, and let `icfold verify` compare the two.
#
#   run_system.sh [FILE...]    these files; without: a share of /usr/bin and /usr/lib/MACHINE, or all of them with SYSTEM=full
#
# Every 64-bit x86-64 program and shared library that is a regular file.  A crash, a file that takes too long, a fold that fails
# with anything but a reason, and a verifier that says anything but "equal" count as failures; a refusal with a reason does not.
# EVERY=N takes each Nth file; OPTS are more options for the fold; SYSTEM_LOG=FILE keeps the table, one line a file:
# level, verify, file before and after, code before and after, pinned, seconds, name, reason.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
need_tool system
make_work
LARGE=$((48 << 20)) # bytes: such files go one at a time
LIMIT=${LIMIT:-300} # seconds

# Share for `make check`: one of each kind.
share="bin/bash bin/sort bin/perl bin/python3.11 bin/gawk bin/xz lib/libstdc++.so.6 lib/libcrypto.so.3 lib/libc.so.6 lib/libz.so.1 bin/ld.bfd bin/sed"

is_ours() { # FILE: ELF, 64 bits, little-endian, executable or shared, x86-64
	[ "$(od -An -tx1 -N 6 "$1" 2>/dev/null)" = " 7f 45 4c 46 02 01" ] || return 1
	case $(od -An -tx2 -j 16 -N 4 "$1" 2>/dev/null) in " 0002 003e" | " 0003 003e") return 0 ;; esac
	return 1
}

list() {
	local f d lib
	lib=$(dirname "$(ldconfig -p 2>/dev/null | sed -n 's/.*libc\.so\.6 (libc6,x86-64.*=> //p' | head -n 1)")
	[ -d "$lib" ] && lib=$(realpath "$lib") || lib=/usr/lib
	if [ "${SYSTEM:-}" != full ]; then
		for f in $share; do
			d=/usr/bin
			case $f in lib/*) d=$lib ;; esac
			[ -e "$d/${f#*/}" ] && realpath "$d/${f#*/}"
		done
		return
	fi
	find /usr/bin "$lib" -maxdepth 1 -type f | sort
}

stat_of() { sed -n "s/^  \"$1\": \([0-9]*\),*$/\1/p" "$2"; }

# one FILE: a line of the table.
one() {
	local f=$1 w rc level verify=- reason='' start=$SECONDS b=0 a=0 cb=0 ca=0 pins=0
	w=$(mktemp -d "$WORK/one.XXXXXX") || exit 1
	# shellcheck disable=SC2086
	timeout "$LIMIT" "$ICFOLD" ${OPTS:-} -v --stats=json "$f" -o "$w/out" >"$w/json" 2>"$w/err"
	rc=$?
	if [ $rc = 0 ] && [ -s "$w/json" ]; then
		b=$(stat_of file_before "$w/json") a=$(stat_of file_after "$w/json")
		cb=$(stat_of code_before "$w/json") ca=$(stat_of code_after "$w/json") pins=$(stat_of pinned "$w/json")
		if [ "$(stat_of in_place "$w/json")" = 1 ]; then level=in-place; else level=compact; fi
		reason=$(sed -n 's/^icfold: in place: //p' "$w/err" | head -n 1)
		timeout "$LIMIT" "$ICFOLD" verify --max=3 "$f" "$w/out" >"$w/ver" 2>&1
		rc=$?
		case $rc in
		0) verify=equal ;;
		1) verify=different reason=$(sed '/^different$/,$d' "$w/ver" | tail -n 1 | cut -c 1-300) ;;
		2) verify=trouble reason=$(head -n 1 "$w/ver") ;;
		124) verify=timeout ;;
		*) verify=crash-$rc ;;
		esac
	elif [ $rc = 1 ] || [ $rc = 2 ]; then
		level=refused reason=$(grep -v '^icfold: in place' "$w/err" | tail -n 1 | sed "s#^icfold: $f: ##")
		[ -n "$reason" ] || level=silent
	elif [ $rc = 124 ]; then
		level=timeout
	else
		level=crash-$rc reason=$(tail -n 1 "$w/err")
	fi
	rm -rf "$w"
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$level" "$verify" "$b" "$a" "$cb" "$ca" "$pins" $((SECONDS - start)) "$f" "$reason"
}

if [ "${1:-}" = --one ]; then
	shift
	# The folder is the caller's.
	trap - EXIT
	rm -rf "$WORK"
	WORK=$SYSTEM_WORK
	for f; do one "$f"; done
	exit
fi
if [ $# != 0 ]; then printf '%s\n' "$@"; else list; fi >"$WORK/all"
while read -r f; do is_ours "$f" && printf '%s\n' "$f"; done <"$WORK/all" | awk -v n="${EVERY:-1}" 'NR % n == 0' >"$WORK/list"
if [ ! -s "$WORK/list" ]; then
	skip system "no x86-64 programs here"
	finish
fi
table=${SYSTEM_LOG:-$WORK/table}
: >"$table"
export SYSTEM_WORK=$WORK
while read -r f; do [ "$(file_bytes "$f")" -lt $LARGE ] && printf '%s\0' "$f"; done <"$WORK/list" >"$WORK/small"
while read -r f; do [ "$(file_bytes "$f")" -ge $LARGE ] && printf '%s\0' "$f"; done <"$WORK/list" >"$WORK/large"
xargs -0 -r -P 2 -n 4 bash "${BASH_SOURCE[0]}" --one <"$WORK/small" >>"$table"
xargs -0 -r -n 1 bash "${BASH_SOURCE[0]}" --one <"$WORK/large" >>"$table"

awk -F '\t' '
	{ n[$1]++; v[$1 " " $2]++; before[$1] += $3; after[$1] += $4; cb[$1] += $5; ca[$1] += $6 }
	END {
		printf "# %-10s %6s %15s %15s %13s %13s %9s\n", "level", "files", "bytes", "bytes saved", "code", "code saved", ""
		for (l in n)
			printf "# %-10s %6d %15d %15d %13d %13d %8.2f%%\n", l, n[l], before[l], before[l] - after[l], cb[l], cb[l] - ca[l], cb[l] ? 100 * (cb[l] - ca[l]) / cb[l] : 0
		for (k in v) print "# " k ": " v[k]
	}' "$table"
awk -F '\t' '$1 == "refused" || $1 == "in-place" { r = $10; sub(/ \(address 0x[0-9a-f]*\)/, "", r); n[$1 ": " r]++ } END { for (k in n) printf "# %5d %s\n", n[k], k }' "$table" | sort -rn -k 2
while IFS=$'\t' read -r level verify _ _ _ _ _ _ f reason; do
	case $level:$verify in
	compact:equal | in-place:equal | refused:*) ok "system/$f" ;;
	compact:* | in-place:*) not_ok "system/$f" "verify: $verify: $reason" ;;
	*) not_ok "system/$f" "$level $reason" ;;
	esac
done < <(sort -t $'\t' -k 9 "$table")
missing=$(($(wc -l <"$WORK/list") - $(wc -l <"$table")))
if [ "$missing" != 0 ]; then not_ok system "$missing files without a result"; fi
finish
