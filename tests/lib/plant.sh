# plant.sh: builds icfold with a fault in one of its files, to see whether somebody notices.
# Sourced, behind lib.sh and make_work, in $ROOT.
# shellcheck shell=bash
tool_flags=()
! nm "$BUILD/icfold" 2>/dev/null | grep -q __asan_init || tool_flags=("-fsanitize=address,undefined")
tool_libs=(-ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread -ldl)

# plant SUITE/NAME FILE SED: $WORK/NAME is an icfold with FILE (without .c) as SED makes it, and with the pairs of FILE and SED in `also`.
also=()
plant() {
	local test=$1 name=${1##*/} pairs=("$2" "$3" "${also[@]}") objects=() made=() file k
	mapfile -t objects < <(find elfrw dwarf icf -name '*.c' ! -path 'icf/lib/*' | sed "s#\(.*\)c\$#$BUILD/\1o#")
	for ((k = 0; k < ${#pairs[@]}; k += 2)); do
		file=${pairs[k]}
		sed "${pairs[k + 1]}" "$file.c" >"$WORK/$name.c"
		if cmp -s "$file.c" "$WORK/$name.c"; then
			not_ok "$test" "$file.c has no such line any more: ${pairs[k + 1]}"
			return 1
		fi
		if ! gcc -std=gnu17 -D_GNU_SOURCE -I. -I"$(dirname "$file")" -O1 "${tool_flags[@]}" -c "$WORK/$name.c" -o "$WORK/$name.$k.o" 2>"$WORK/log"; then
			not_ok "$test" "does not build: $(first_line "$WORK/log")"
			return 1
		fi
		made+=("$WORK/$name.$k.o")
		mapfile -t objects < <(printf '%s\n' "${objects[@]}" | grep -vFx "$BUILD/$file.o")
	done
	cp "$WORK/$name.0.o" "$WORK/$name.o"
	if ! gcc "${tool_flags[@]}" "${objects[@]}" "${made[@]}" -o "$WORK/$name" "${tool_libs[@]}" 2>"$WORK/log"; then
		not_ok "$test" "does not build: $(first_line "$WORK/log")"
		return 1
	fi
}

# forget TEST PROGRAM FILE SED SEEN OPTION...: an icfold whose FILE is as SED makes it removes something from PROGRAM (in $WORK) that is
# used; verify says SEEN (a regular expression).
forget() {
	local test=$1 name=${1##*/} prog=$WORK/$2 file=$3 sed=$4 seen=$5 log=$WORK/log
	shift 5
	[ -x "$prog" ] || { skip "$test" "no program ${prog##*/}"; return; }
	plant "$test" "$file" "$sed" || return
	if ! "$WORK/$name" -q --gc-functions "$@" "$prog" -o "$WORK/wrong" 2>"$log"; then
		not_ok "$test" "nothing is made: $(first_line "$log")"
		return
	fi
	"$ICFOLD" verify --gc-functions "$prog" "$WORK/wrong" >"$log" 2>&1
	check "$test" "$(tail -n 1 "$log")" grep -qE "^($seen): " "$log"
}
