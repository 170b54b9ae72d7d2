# unused.sh: programs without what nothing uses.  Sourced, behind lib.sh, make_work and make_driver, in $WORK.
# shellcheck shell=bash

# share MODE...: sets `modes` to those that the current program is folded in: all if UNUSED=full, else each third one, others for the
# next program.
turn=0
share() {
	local mode i=$((turn++))
	modes=()
	for mode; do
		[ "${UNUSED:-}" != full ] && [ $((i++ % 3)) != 0 ] || modes+=("$mode")
	done
}

names() { nm "$1" 2>/dev/null | awk '$2 ~ /[tTwWi]/ { print $3 }' | sort -u; }
# still NAMES DEAD...: those of DEAD that are among NAMES (what names printed).
still() {
	local all=$'\n'$1$'\n' d
	shift
	for d; do
		# A relocation that stays names it.
		[ "$how/$d" = "safe --emit-relocs/dead_neighbour" ] && continue
		[[ $all != *$'\n'"$d"$'\n'* ]] || echo " $how: $d is still there;"
	done
}
problems() { grep -m1 ': ' "$1" | cut -c 1-200; }

# judge NAME TYPE IN DEAD...: IN (after load_recipe), without its unused functions, in all modes.  DEAD: names that must be gone.
judge() {
	local name=$1 type=$2 in=$3 how mode loose out bad=''
	shift 3
	complaints "$in" >"$in.complaints"
	share none safe all "safe --in-place" "safe --emit-relocs" "all --debug-folded=alias" "safe --debug-folded=drop" "safe --strip-debug"
	for how in "${modes[@]}"; do
		mode=${how%% *} loose=0 out=$in.out
		[ "$mode" = all ] && loose=1
		# shellcheck disable=SC2086
		if ! "$ICFOLD" -q --gc-functions --icf=$how "$in" -o "$out" >log 2>&1; then
			bad="$bad $how: $(first_line log);"
			continue
		fi
		[ ! -e "$in.plugin.so" ] || "$ICFOLD" -q --gc-functions --icf="$mode" "$in.plugin.so" -o "$out.plugin.so" >log 2>&1 ||
			bad="$bad $how: the plug-in: $(first_line log);"
		"$ICFOLD" verify --gc-functions --icf="${mode/none/safe}" "$in" "$out" >log 2>&1 || bad="$bad $how: verify: $(problems log);"
		bad="$bad$(check_transcripts "$type" "$out" $loose | sed "s/^/ $how: /; s/\$/;/")"
		complaints "$out" >"$out.complaints"
		bad="$bad$(new_complaints "$in.complaints" "$out.complaints" | head -n 1 | sed "s/^/ $how: new complaint: /; s/\$/;/")"
		bad="$bad$(still "$(names "$out")" "$@")"
	done
	check "$name" "$(echo "$bad" | cut -c 1-400)" test -z "$bad"
}

# build NAME FIXTURE COMPILER LINKER TYPE FLAGS [LINKFLAG...]
build() {
	local name=$1 cc=$3 ld=$4 type=$5 flags=$6
	load_recipe "$2"
	shift 6
	have "$cc" || { skip "unused/$name" "no $cc"; return 1; }
	if ! { compile_fixture "$cc" "$flags" "$type" "o.$name" && link_fixture "$cc" "$ld" "$type" "o.$name" "$name" "$@"; } >"$name.log" 2>&1; then
		skip "unused/$name" "does not build: $(tail -n 1 "$name.log" | cut -c 1-100)"
		return 1
	fi
}

# classes NAME COMPILER LINKER TYPE FLAGS DEAD...: the classes of a fixture; DEAD: what must be gone.
classes() {
	local name=$1 cc=$2 ld=$3 type=$4 flags=$5 in=classes.$1 bad='' how now
	shift 5
	have "$cc" || { skip "unused/classes/$name" "no $cc"; return; }
	# shellcheck disable=SC2086
	if ! $cc $flags $type -fuse-ld=$ld "$FIXTURES"/unused/classes.cc -Wl,--emit-relocs -o "$in" 2>log || ! run_program "$in.said" pie "./$in"; then
		skip "unused/classes/$name" "does not build: $(first_line log)"
		return
	fi
	complaints "$in" >"$in.complaints"
	share none safe all "safe --in-place" "safe --emit-relocs"
	for how in "${modes[@]}"; do
		# shellcheck disable=SC2086
		"$ICFOLD" -q --gc-functions --icf=$how "$in" -o "$in.out" 2>log || bad="$bad $how: $(first_line log);"
		"$ICFOLD" verify --gc-functions --icf=all "$in" "$in.out" >log 2>&1 || bad="$bad $how: verify: $(problems log);"
		run_program "$in.out.said" pie "./$in.out"
		cmp -s "$in.out.said" "$in.said" || bad="$bad $how: it prints something else;"
		complaints "$in.out" >"$in.out.complaints"
		bad="$bad$(new_complaints "$in.complaints" "$in.out.complaints" | head -n 1 | sed "s/^/ $how: new complaint: /; s/\$/;/")"
		now=$(names "$in.out")
		[ "$(grep -c '^live_' <<<"$now")" = 8 ] || bad="$bad $how: lost: $(grep '^live_' <<<"$now" | tr '\n' ' ');"
		bad="$bad$(still "$now" "${@/#/dead_}")"
	done
	"$ICFOLD" -q --gc-functions=functions "$in" -o "$in.out" 2>log
	names "$in.out" | grep -qx dead_weak_table || bad="$bad functions: dead_weak_table is gone;"
	"$ICFOLD" verify --gc-functions "$in" "$in.out" >log 2>&1 || bad="$bad functions: verify: $(problems log);"
	check "unused/classes/$name" "$(echo "$bad" | cut -c 1-400)" test -z "$bad"
}
