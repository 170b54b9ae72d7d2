#!/bin/bash
# fool.sh: programs that are made to mislead the inference of references (fixtures/fool), linked without --emit-relocs.  Each is folded
# in every mode, whole and stripped, and the same without its unused functions.  It must print what it printed before, what must stay must stay (by the map), and verify agrees.
# ONLY=REGEX limits the run to files whose path matches.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/fool.sh
. "$TESTS/lib/fool.sh"

# fool_one FILE COMPILER OPT: FILE is a path in fixtures/fool.
fool_one() {
	local src=$FOOL/$1 cc=$2 opt=$3 base=${1##*/} name d mode in opts n was now bad how before=$failures
	name=fool/${base%.*}.$cc.$opt
	d=$WORK/$base.$cc.$opt
	mkdir -p "$d"
	if [ -n "$(fool_directive "$src" only)" ] && [[ " $(fool_directive "$src" only) " != *" ${cc%-*} "* ]]; then
		return
	fi
	if ! have "$cc"; then
		skip "$name" "no $cc"
		return
	fi
	if ! build_fool "$cc" "$src" "$d" "$d/in" "-$opt" >"$d/log" 2>&1; then
		not_ok "$name" "does not build: $(first_line "$d/log")"
		return
	fi
	if ! timeout 300 "$d/in" >"$d/expected" 2>&1; then
		not_ok "$name" "unfolded: exit status not 0"
		return
	fi
	strip "$d/in" -o "$d/stripped"
	for mode in safe all in-place stripped gc gc-none gc-in-place gc-stripped; do
		in=$d/in opts="--icf=$mode"
		case $mode in
		in-place) opts="--icf=all --in-place" ;;
		gc) opts="--icf=all --gc-functions" ;;
		gc-none) opts="--icf=none --gc-functions" ;;
		gc-in-place) opts="--icf=safe --gc-functions --in-place" ;;
		*stripped) opts="--icf=all" in=$d/stripped ;;
		esac
		[ $mode = gc-stripped ] && opts="$opts --gc-functions"
		# shellcheck disable=SC2086
		if ! timeout 300 "$ICFOLD" -q --stats=json $opts --map="$d/map" "$in" -o "$d/out" >"$d/stats" 2>"$d/log"; then
			not_ok "$name/$mode" "icfold: $(first_line "$d/log")"
			continue
		fi
		{ timeout 300 "$d/out" >"$d/got" 2>&1 || echo "exit status $?" >>"$d/got"; } 2>/dev/null
		cmp -s "$d/expected" "$d/got" || not_ok "$name/$mode" "prints something else: $(diff "$d/expected" "$d/got" | sed -n 2,3p | tr '\n' ' ')"
		how=("${opts%% *}")
		case $mode in
		gc-none) how=(--gc-functions) ;;
		gc*) how+=(--gc-functions) ;;
		esac
		bad=$("$ICFOLD" verify "${how[@]}" "$in" "$d/out" 2>&1 | grep -E '^[a-z][a-z ,()._]*: ' | grep -vE '^((symbolized|resolved): .* 0 wrong|the same bytes: )' | head -n 1)
		[ -z "$bad" ] || not_ok "$name/$mode" "verify: $bad"
		case "$mode $(fool_directive "$src" level)" in
		[sa]*" compact ") grep -q '"in_place": 1' "$d/stats" && not_ok "$name/$mode" "in place" ;;
		"safe in place " | "all in place ") grep -q '"in_place": 1' "$d/stats" || not_ok "$name/$mode" "not in place" ;;
		esac
		[[ $mode = *stripped ]] && continue
		for n in $(fool_directive "$src" gone); do
			[[ $mode = gc* ]] || break
			nm "$d/out" | grep -q " $n\$" && not_ok "$name/$mode" "$n is still there"
		done
		for n in $(fool_directive "$src" stays); do
			read -r was now < <(map_of "$d/map" "$n")
			[ -n "$was" ] || not_ok "$name/$mode" "no function $n"
			[ "$was" = "$now" ] || not_ok "$name/$mode" "$n did not stay: it was at $was and is at $now"
		done
		# Nothing moves if nothing is folded or removed.
		{ [ $mode = gc-none ] || grep -q '"in_place": 1' "$d/stats"; } && continue
		for n in $(fool_directive "$src" moves); do
			read -r was now < <(map_of "$d/map" "$n")
			[ "$was" != "$now" ] || not_ok "$name/$mode" "$n was not moved"
		done
	done
	[ "$failures" = "$before" ] && ok "$name"
	[ -n "${KEEP:-}" ] || rm -rf "$d"
}

if [ "${1:-}" = --one ]; then
	fool_one "$2" "$3" "$4"
	exit 0
fi

need_tool fool
x86_only fool
make_work
always_fold
# Files at the top are shared by all programs.
(cd "$FOOL" && ls -- */*.c */*.cc) | grep -E -- "${ONLY:-.}" |
	while read -r f; do printf '%s gcc O2\n%s clang O2\n' "$f" "$f"; done |
	xargs -P "$JOBS" -L 1 bash "$0" --one >"$WORK/result"
take '' "$WORK/result"
finish
