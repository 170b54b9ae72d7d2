#!/bin/bash
# self.sh: icfold folds itself; the folded icfold writes the same bytes as the unfolded one.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool self
make_work
mapfile -t objects < <(cd "$ROOT" && find elfrw dwarf icf -name '*.c' ! -path 'icf/lib/*' | sort | sed "s#^#$BUILD/#; s#c\$#o#")
if [ ! -e "${objects[0]}" ]; then
	skip self "no objects in $BUILD"
	finish
fi
san=()
nm "${objects[0]}" | grep -q __asan_ && san=("-fsanitize=address,undefined")
load_recipe demo
if ! gcc ${san[@]+"${san[@]}"} "${objects[@]}" -Wl,--emit-relocs -o "$WORK/self" -ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread 2>"$WORK/log"; then
	not_ok self "does not link: $(first_line "$WORK/log")"
	finish
fi
if ! compile_fixture gcc -O2 pie "$WORK/obj" || ! link_fixture gcc bfd pie "$WORK/obj" "$WORK/demo"; then
	not_ok self "the example does not build"
	finish
fi
for mode in none safe all gc; do
	how=--icf=$mode
	[ $mode = gc ] && how='--icf=safe --gc-functions'
	# shellcheck disable=SC2086
	if ! "$ICFOLD" -q $how ${DEBUG_OPTION---strip-debug} "$WORK/self" -o "$WORK/self.$mode" 2>"$WORK/log"; then
		not_ok "self/$mode" "$(first_line "$WORK/log")"
		continue
	fi
	bad=
	for in in demo self; do
		for way in none safe all; do
			"$ICFOLD" -q --icf=$way --strip-debug "$WORK/$in" -o "$WORK/want" 2>/dev/null
			if ! "$WORK/self.$mode" -q --icf=$way --strip-debug "$WORK/$in" -o "$WORK/got" 2>"$WORK/log"; then
				bad="folded icfold --icf=$way $in: $(first_line "$WORK/log")"
			elif ! cmp -s "$WORK/want" "$WORK/got"; then
				bad="folded icfold --icf=$way $in: other bytes"
			fi
		done
	done
	if [ -n "$bad" ]; then not_ok "self/$mode" "$bad"; else ok "self/$mode"; fi
done
finish
