#!/bin/bash
# system.sh: the programs and libraries of this machine, as they are: fold each, and let `icfold verify` compare the two.
#
#   system.sh [FILE...]    these files; without: a share of /usr/bin and /usr/lib/MACHINE, or with SYSTEM=full all that are below
#                              /usr/bin, /usr/sbin, /usr/lib, /usr/libexec and /opt (each file once, whatever its names)
#   TARGET=aarch64 ARM64=DIR system.sh    all programs of Debian's arm64 packages, which are fetched to DIR once (tests/lib/arm64.sh)
#
# Every 64-bit program and shared library of the machine that is a regular file.  A crash, a file that takes too long, a fold that fails
# with anything but a reason, an output that is larger than its input, and a verifier that says anything but "equal" count as
# failures; a refusal with a reason does not.  Where folding is not worth it, the output must be the input byte for byte, and what
# --allow-growth makes is verified.
# EVERY=N takes each Nth file; OPTS are more options for the fold (--gc-functions and --icf=all: for verify, too); SYSTEM_LOG=FILE keeps the table, one line a file:
# level, verify, file before and after, code before and after, pinned, milliseconds of the fold, folded (functions, or "as-is" for
# an output that is the input), name, reason, bytes of removed functions.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool system
make_work
LARGE=$((48 << 20)) # bytes: such files go one at a time
LIMIT=${LIMIT:-300} # seconds

# Share for `make check`: one of each kind.
share="bin/bash bin/sort bin/perl bin/python3.11 bin/gawk bin/xz lib/libstdc++.so.6 lib/libcrypto.so.3 lib/libc.so.6 lib/libz.so.1 bin/ld.bfd bin/sed"

# programs: of the paths on standard input, each with a NUL behind it, the regular files that are 64-bit programs or libraries of the
# machine, each file once.
programs() {
	python3 -c '
import os, stat, sys
machine = {"x86_64": b"\x3e\x00", "aarch64": b"\xb7\x00"}[sys.argv[1]]
seen = set()
for path in sys.stdin.buffer.read().split(b"\0")[:-1]:
    try:
        st = os.lstat(path)
        if not stat.S_ISREG(st.st_mode) or st.st_size < 64 or (st.st_dev, st.st_ino) in seen:
            continue
        seen.add((st.st_dev, st.st_ino))
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        continue
    if head[:6] == b"\x7fELF\x02\x01" and head[16:20] in (b"\x02\x00" + machine, b"\x03\x00" + machine):
        sys.stdout.buffer.write(path + b"\0")' "$MACHINE"
}

list() {
	local f d lib
	if [ "$MACHINE" = aarch64 ] && [ -n "${ARM64:-}" ]; then
		# shellcheck source=tests/lib/arm64.sh
		. "$TESTS/lib/arm64.sh"
		arm64_system "$ARM64" && find "$ARM64/tree" -xdev -type f -size +3k -print0 | sort -z
		return
	fi
	if [ "${SYSTEM:-}" = full ]; then
		# A separate debug file is not a program.
		find /usr/bin /usr/sbin /usr/lib /usr/libexec /opt -xdev -path /usr/lib/debug -prune -o -type f -print0 2>/dev/null | sort -z
		return
	fi
	lib=$(dirname "$(ldconfig -p 2>/dev/null | sed -n 's/.*libc\.so\.6 (libc6,x86-64.*=> //p' | head -n 1)")
	if [ -d "$lib" ]; then lib=$(realpath "$lib"); else lib=/usr/lib; fi
	for f in $share; do
		d=/usr/bin
		case $f in lib/*) d=$lib ;; esac
		[ -e "$d/${f#*/}" ] && realpath -z "$d/${f#*/}"
	done
}

stat_of() { sed -n "s/^  \"$1\": \([0-9]*\),*$/\1/p" "$2"; }

# May the output be larger than the input?
may_grow() { case " ${OPTS:-} " in *" --allow-growth "* | *" --in-place "* | *" --emit-vtables "*) return 0 ;; esac; return 1; }

# What verify has to be told.
verify_opts() {
	local o
	for o in ${OPTS:-}; do case $o in --gc-functions | --icf=all) echo "$o" ;; esac; done
}

# fold_one FILE FOLDER [OPTION...]: sets rc and ms.
fold_one() {
	local f=$1 w=$2 t=${EPOCHREALTIME/[.,]/}
	shift 2
	# shellcheck disable=SC2086
	timeout "$LIMIT" "$ICFOLD" ${OPTS:-} "$@" -v --stats=json "$f" -o "$w/out" >"$w/json" 2>"$w/err"
	rc=$?
	ms=$(((${EPOCHREALTIME/[.,]/} - t) / 1000))
}

# one FILE: a line of the table.
one() {
	local f=$1 w rc level verify=- reason='' b=0 a=0 cb=0 ca=0 pins=0 ms folded=0 gone=0 bad=''
	w=$(mktemp -d "$WORK/one.XXXXXX") || exit 1
	fold_one "$f" "$w"
	if [ $rc = 0 ] && [ -s "$w/json" ]; then
		b=$(stat_of file_before "$w/json") a=$(stat_of file_after "$w/json")
		cb=$(stat_of code_before "$w/json") ca=$(stat_of code_after "$w/json") pins=$(stat_of pinned "$w/json")
		folded=$(stat_of folded "$w/json") gone=$(stat_of removed_bytes "$w/json")
		[ "$(file_bytes "$w/out")" = "$a" ] || bad=size
		may_grow || [ "$a" -le "$b" ] || bad=larger
		if [ "$(stat_of unchanged "$w/json")" = 1 ]; then
			folded=as-is
			cmp -s "$f" "$w/out" || bad=changed
			fold_one "$f" "$w" --allow-growth
		fi
	fi
	if [ $rc = 0 ] && [ -s "$w/json" ]; then
		if [ "$(stat_of in_place "$w/json")" = 1 ]; then level=in-place; else level=compact; fi
		reason=$(sed -n 's/^icfold: in place: //p' "$w/err" | head -n 1)
		# shellcheck disable=SC2046
		timeout "$LIMIT" "$ICFOLD" verify $(verify_opts) --max=3 "$f" "$w/out" >"$w/ver" 2>&1
		rc=$?
		case $rc in
		0) verify=${bad:-equal} ;;
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
	f=${f//[$'\t\n']/?} reason=${reason//$'\t'/ }
	# In one call: two processes write to the table.
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$level" "$verify" "$b" "$a" "$cb" "$ca" "$pins" "$ms" "$folded" "$f" "$reason" "${gone:-0}"
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
if [ $# != 0 ]; then printf '%s\0' "$@"; else list; fi >"$WORK/all"
programs <"$WORK/all" | sed -zn "0~${EVERY:-1}p" >"$WORK/list"
if [ ! -s "$WORK/list" ]; then
	skip system "no programs of $MACHINE here"
	finish
fi
table=${SYSTEM_LOG:-$WORK/table}
: >"$table"
export SYSTEM_WORK=$WORK
while IFS= read -r -d '' f; do [ "$(file_bytes "$f")" -lt $LARGE ] && printf '%s\0' "$f"; done <"$WORK/list" >"$WORK/small"
while IFS= read -r -d '' f; do [ "$(file_bytes "$f")" -ge $LARGE ] && printf '%s\0' "$f"; done <"$WORK/list" >"$WORK/large"
xargs -0 -r -P 2 -n 4 bash "${BASH_SOURCE[0]}" --one <"$WORK/small" >>"$table"
xargs -0 -r -n 1 bash "${BASH_SOURCE[0]}" --one <"$WORK/large" >>"$table"

awk -F '\t' '
	{ n[$1]++; v[$1 " " $2]++; before[$1] += $3; after[$1] += $4; cb[$1] += $5; ca[$1] += $6; larger += $4 > $3; different += $2 == "different" }
	$9 == "as-is" { asis[$1]++ }
	$9 + 0 > 0 { folded[$1]++ }
	{ gone[$1] += $12; with[$1] += $12 > 0 }
	$3 > 0 { mb = $3 / 1048576; cost[NR] = sprintf("%.0f ms/MB %s (%.2f MB, %.2f s)", $8 / (mb > 1 ? mb : 1), $10, mb, $8 / 1000); of[NR] = $8 / (mb > 1 ? mb : 1) }
	END {
		printf "# %-10s %6s %6s %6s %15s %15s %13s %13s %9s\n", "level", "files", "folded", "as is", "bytes", "bytes saved", "code", "code saved", ""
		for (l in n)
			printf "# %-10s %6d %6d %6d %15d %15d %13d %13d %8.2f%%\n", l, n[l], folded[l], asis[l], before[l], before[l] - after[l], cb[l], cb[l] - ca[l], cb[l] ? 100 * (cb[l] - ca[l]) / cb[l] : 0
		for (k in v) print "# " k ": " v[k]
		for (l in n) if (with[l]) printf "# %s: %d files have functions that nothing uses, %d bytes removed\n", l, with[l], gone[l]
		printf "# in place: %d files, %.1f MB; larger: %d; verify different: %d\n", n["in-place"], before["in-place"] / 1048576, larger, different
		for (k = 1; k <= 5; k++) {
			best = 0
			for (i in of) if (!best || of[i] > of[best]) best = i
			if (best) print "# slowest: " cost[best]
			delete of[best]
		}
	}' "$table"
awk -F '\t' '$1 == "refused" || $1 == "in-place" { r = $11; sub(/ \((address|file offset) 0x[0-9a-f]*\)/, "", r); n[$1 ": " r]++; mb[$1 ": " r] += $3 / 1048576 }
	END { for (k in n) printf "# %5d files, %8.1f MB %s\n", n[k], mb[k], k }' "$table" | sort -rn -k 2
while IFS=$'\t' read -r level verify _ _ _ _ _ _ _ f reason _; do
	case $level:$verify in
	compact:equal | in-place:equal | refused:*) ok "system/$f" ;;
	compact:* | in-place:*) not_ok "system/$f" "verify: $verify: $reason" ;;
	*) not_ok "system/$f" "$level $reason" ;;
	esac
done < <(sort -t $'\t' -k 10 "$table")
missing=$(($(tr -cd "\0" <"$WORK/list" | wc -c) - $(wc -l <"$table")))
if [ "$missing" != 0 ]; then not_ok system "$missing files without a result"; fi
finish
