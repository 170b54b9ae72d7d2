#!/bin/bash
# changers.sh: programs that change files behind icfold: strip and its kin, debugedit, dwz, patchelf, indexes.  The changed program
# runs, and addr2line and gdb say of it what they say of the unfolded program changed in the same way.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/clients.sh
. "$TESTS/lib/clients.sh"
start_suite clients python3 jq

# How each changer is run; in the folder of the file `none`.
change_strip_debug() { strip -g none; }
change_strip_apart() { objcopy --only-keep-debug none none.dbg && strip -g none && objcopy --add-gnu-debuglink=none.dbg none; }
change_objcopy_compress() { objcopy --compress-debug-sections none; }
change_llvm_strip() { llvm-strip -g none; }
change_llvm_apart() { llvm-objcopy --only-keep-debug none none.dbg && llvm-strip -g none && llvm-objcopy --add-gnu-debuglink=none.dbg none; }
change_eu_strip() { eu-strip -f none.dbg none; }
change_eu_unstrip() { eu-strip -f none.dbg none && eu-unstrip none none.dbg -o none.new && mv none.new none; }
change_patchelf() { patchelf --set-rpath /a/folder/that/is/not/there/but/has/a/long/name none; }
change_debugedit() { debugedit -b "$SOURCES" -d /usr/src/clients -l none.list none; }
change_gdb_add_index() { gdb-add-index none; }
change_gdb_add_names() { gdb-add-index -dwarf-5 none; }

named() { strings -a "$1" | grep -qF "$SOURCES"; } # the folder of the sources, in a program

# changed CHANGER TOOL MODE: of the three copies of the program
changed() {
	local c=$1 tool=$2 mode=$3 f name=clients/$1/$CONFIG-$3 to
	if ! have "$tool"; then skip "clients/$c" "no $tool"; return; fi
	for f in plain "$mode"; do
		to=$CONFIG/$f-$c
		[ "$f" = plain ] && [ -s "$to/none" ] && continue
		mkdir -p "$to"
		cp "$CONFIG/$f/none" "$to/none"
		(cd "$to" && limit 60 bash -c "SOURCES=$SOURCES; $(declare -f "change_$c"); change_$c" >change.out 2>&1)
		echo $? >"$to/change.status"
	done
	# A message about each section that it does not know is no harm.
	if ! cmp -s "$CONFIG/plain-$c/change.status" "$to/change.status"; then
		not_ok "$name" "it fails: $(first_line "$to/change.out")"
		return
	fi
	if [ "$(cat "$to/change.status")" != 0 ]; then skip "$name" "it fails on the unfolded program: $(first_line "$to/change.out")"; return; fi
	if [ "$c" = debugedit ] && named "$to/none" && ! named "$CONFIG/plain-$c/none"; then not_ok "$name" "the old folder is still named"; return; fi
	check "$name/runs" "exit status of the changed program" "$to/none"
	cp "$CONFIG/$mode/none.truth" "$CONFIG/$mode/none.map" "$to"
	for f in addr2line gdb; do
		(cd "$CONFIG/plain-$c" && PLACES=../all.at rows_$f ./none >none.$f 2>/dev/null)
		(cd "$to" && PLACES=../all.at.new rows_$f ./none >none.$f 2>/dev/null)
		if [ ! -s "$CONFIG/plain-$c/none.$f" ]; then skip "$name/$f" "it says nothing of the unfolded program"; continue; fi
		if why=$(python3 "$JUDGE" compare "$to/none.truth" "$CONFIG/plain-$c/none.$f" "$to/none.$f" 2>&1); then
			ok "$name/$f ($why)"
		else
			not_ok "$name/$f" "$(tr '\n' ' ' <<<"$why" | cut -c 1-300)"
		fi
	done
}
changes() { # MODES (behind config)
	local m
	if ! { objects && link none none; } >log 2>&1; then skip "clients/changers/$CONFIG" "does not build: $(first_line log)"; return; fi
	for m in $1; do
		if ! fold "$m" none; then not_ok "clients/fold/$CONFIG-$m" "$(first_line log)"; continue; fi
		python3 "$JUDGE" places "$CONFIG/plain/none" "$CONFIG/$m/none.map" >places
		cut -d' ' -f1 places >"$CONFIG/all.at"
		cut -d' ' -f2 places >"$CONFIG/all.at.new"
		changed strip_debug strip "$m"
		changed strip_apart objcopy "$m"
		changed objcopy_compress objcopy "$m"
		changed llvm_strip llvm-strip "$m"
		changed llvm_apart llvm-objcopy "$m"
		changed eu_strip eu-strip "$m"
		changed eu_unstrip eu-unstrip "$m"
		changed patchelf patchelf "$m"
		changed debugedit debugedit "$m"
		changed gdb_add_index gdb-add-index "$m"
		changed gdb_add_names gdb-add-index "$m"
	done
}
# dwz does not know icfold's sections and runs before it.
shared_first() { # MODES (behind config)
	local m
	if ! have dwz; then skip clients/dwz "no dwz"; return; fi
	if ! { objects && link none none && cp "$CONFIG/plain/none" "$CONFIG/whole" && dwz "$CONFIG/plain/none"; } >log 2>&1; then skip "clients/dwz/$CONFIG" "$(first_line log)"; return; fi
	for m in $1; do
		if ! fold "$m" none; then not_ok "clients/dwz/$CONFIG-$m" "$(first_line log)"; continue; fi
		# addr2line, the judge of what is true, misses inlined calls behind dwz.
		python3 "$JUDGE" truth "$CONFIG/whole" "$CONFIG/$m/none.groups" >"$CONFIG/$m/none.truth"
		compare_places addr2line "$m" none
		compare gdb "$m" none
	done
}
if full; then
	for c in gcc clang; do
		for d in 4 5; do
			for r in yes no; do
				config "$c-$d-relocs-$r" $c $d $r && changes "safe all inplace"
				config "dwz-$c-$d-relocs-$r" $c $d $r && shared_first "safe all inplace"
			done
		done
	done
else
	config gcc-5-relocs gcc 5 yes && changes "all"
	config dwz-gcc-5-relocs gcc 5 yes && shared_first "all"
fi
finish
