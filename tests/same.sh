#!/bin/bash
# same.sh OLD NEW [PROGRAM...]: do two builds of icfold do the same, byte for byte?  For changes that must not change what it does.
#
# The PROGRAMs (linked with --emit-relocs or not), and every fixture by SAME_CC (gcc clang), as PIE and as library, go through: all
# ways of folding with their maps, a separate debug file, verify, audit and dump in all their forms, and PLACES (20000) addresses and
# STACKS (200) stacks through symbolize.  FIXTURES_TOO=no: the programs alone.
# TARGET=aarch64: fixtures for that machine.  The builds may be scripts, so they may be for a machine that only qemu runs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
make_work
for_target same
old=$(realpath "${1:?usage: same.sh OLD NEW [PROGRAM...]}")
new=$(realpath "${2:?usage: same.sh OLD NEW [PROGRAM...]}")
shift 2
[ -x "$old" ] && [ -x "$new" ] || exit 2

# addresses FILE N: places in its code.
addresses() {
	readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\]//' | awk '$2 == "PROGBITS" && $7 ~ /X/ { print $3, $5 }' |
		python3 -c '
import random, sys
ranges = [tuple(int(n, 16) for n in l.split()) for l in sys.stdin]
random.seed(1)
whole = sum(n for _, n in ranges)
for _ in range(int(sys.argv[1])):
    k = random.randrange(whole)
    for at, n in ranges:
        if k < n:
            print(hex(at + k))
            break
        k -= n' "$2"
}

# all_of TOOL PROGRAM FOLDER: everything that TOOL says and writes of PROGRAM.
all_of() {
	local tool=$1 in=$2 d=$3 mode form
	mkdir -p "$d"
	for mode in none safe all; do
		"$tool" -v -v --icf=$mode --allow-growth --map="$d/$mode.map" "$in" -o "$d/$mode" >"$d/$mode.said" 2>&1
		echo "$?" >>"$d/$mode.said"
	done
	"$tool" --icf=all --in-place --stats=json "$in" -o "$d/in-place" >"$d/in-place.said" 2>&1
	"$tool" --icf=all --emit-relocs --emit-vtables --debug-folded=alias "$in" -o "$d/alias" >"$d/alias.said" 2>&1
	"$tool" --icf=all --debug-folded=drop --allow-growth "$in" -o "$d/drop" >"$d/drop.said" 2>&1
	"$tool" --icf=all --debug-output="$d/apart.debug" --debug-file="$in.debug" "$in.stripped" -o "$d/apart" >"$d/apart.said" 2>&1
	for mode in none safe all in-place alias; do
		[ -e "$d/$mode" ] || continue
		"$tool" verify --json --debug-folded="$([ $mode = alias ] && echo alias || echo overlay)" "$in" "$d/$mode" >"$d/$mode.verify" 2>&1
		"$tool" dump "$d/$mode" >"$d/$mode.dump" 2>&1
		"$tool" dump --json "$d/$mode" >"$d/$mode.dump.json" 2>&1
	done
	for form in json csv html=page; do (cd "$d" && "$tool" audit "--$form" "$in" >"audit.${form%=*}" 2>&1); done
	"$tool" audit "$in" >"$d/audit" 2>&1
	if [ -e "$d/all" ]; then
		addresses "$d/all" "${PLACES:-20000}" >"$d/places"
		"$tool" symbolize --json -e "$d/all" <"$d/places" >"$d/places.json" 2>&1
		"$tool" symbolize -f -i -p -e "$d/all" <"$d/places" >"$d/places.text" 2>&1
		for form in $(seq "${STACKS:-200}"); do sed -n "$((form * 4 - 3)),$((form * 4))p" "$d/places" | "$tool" symbolize --stack -e "$d/all"; done >"$d/stacks" 2>&1
	fi
	# Times and the folder's name differ between runs.
	sed -i "s#$d/#D/#g; s#\"[a-z_]*\\(seconds\\|_ms\\|_time\\)\": [0-9.]*##; s#[0-9.]* s\\b##g" "$d"/*.said "$d"/*.verify "$d"/audit* "$d"/*.json "$d"/*.dump
}

same() { # NAME PROGRAM
	local n
	objcopy --only-keep-debug "$2" "$2.debug" 2>/dev/null && objcopy --strip-all --add-gnu-debuglink="$2.debug" "$2" "$2.stripped" 2>/dev/null
	all_of "$old" "$2" "$WORK/old/$1"
	all_of "$new" "$2" "$WORK/new/$1"
	if [ -e "$WORK/new/$1/all" ] && [ ! -s "$WORK/new/$1/places" ]; then
		not_ok "same/$1" "no places to ask about"
	elif diff -rq "$WORK/old/$1" "$WORK/new/$1" >"$WORK/differs"; then
		n=$(find "$WORK/new/$1" -type f | wc -l)
		ok "same/$1: $n files, $(cat "$WORK/new/$1"/* | wc -c) bytes"
	else
		not_ok "same/$1" "$(head -n 3 "$WORK/differs" | tr '\n' ' ')"
	fi
	[ -n "${KEEP:-}" ] || rm -rf "$WORK/old/$1" "$WORK/new/$1"
}

for p; do
	cp "$p" "$WORK/${p##*/}.in" && same "${p##*/}" "$WORK/${p##*/}.in"
done
[ "${FIXTURES_TOO:-yes}" = no ] && finish
for f in $(all_fixtures); do
	load_recipe "$f"
	fixture_fits || continue
	for cc in ${SAME_CC:-gcc clang}; do
		have "$cc" || continue
		for type in pie so; do
			out=$WORK/$f.$cc.$type
			compile_fixture "$cc" "-O2 -g" $type "$out.obj" 2>/dev/null && link_fixture "$cc" bfd $type "$out.obj" "$out" 2>/dev/null && same "$f.$cc.$type" "$out"
			rm -rf "$out.obj"
		done
	done
done
finish
