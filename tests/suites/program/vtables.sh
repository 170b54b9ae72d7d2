#!/bin/bash
# vtables.sh: --emit-vtables names the class of every vtable that has a shared function; readelf and gdb read the debug information
# (vtables.py compares).  A program without folded functions gets no such table.  The sizes of the tables are reported.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite vtables python3
src=$FIXTURES/vtables

# of_section FILE NAME: its size in decimal, empty without one
of_section() { readelf -SW "$1" | sed 's/^ *\[ *[0-9]*\] //' | awk -v n="$2" '$1 == n { print $5 }' | while read -r h; do echo $((0x$h)); done; }
key() { awk -F'[:,]' -v k="\"$2\"" '{ gsub(/ /, "", $1) } $1 == k { print $2 + 0 }' "$1"; }

# tool NAME COMMAND...: COMMAND on the file with the entries complains as on the one without.
tool() {
	local name=$1 f
	shift
	have "$1" || { skip "$name" "no $1"; return; }
	for f in plain with; do
		timeout 300 "$@" "$n.$f" >"out.$f" 2>&1
		[ $? = 124 ] && { skip "$name" "$1 does not come to an end, $([ $f = plain ] && echo without the entries too || echo only with the entries)"; return; }
		grep -iE 'error|warn|invalid|corrupt|\?\?\?|complaint' "out.$f" | sed "s/$n\.$f/FILE/g" >"complaints.$f"
	done
	check "$name" "$(diff complaints.plain complaints.with | sed -n 2,3p | tr '\n' ' ' | cut -c 1-160)" cmp -s complaints.plain complaints.with
}

ambiguous='outer::(anonymous namespace)::Ambiguous'
one() { # NAME COMPILER FLAG...
	local cxx=$2 more=() note out
	n=$1
	shift 2
	have "$cxx" || { skip "vtables/$n" "no $cxx"; return; }
	if ! "$cxx" -g "$@" -Wl,--emit-relocs "$src/one.cc" "$src/two.cc" -o "$n" >log 2>&1; then
		skip "vtables/$n" "does not build: $(first_line log)"
		return
	fi
	if ! "$ICFOLD" -q "$n" -o "$n.plain" >log 2>&1 || ! "$ICFOLD" --stats=json --map="$n.map" --emit-vtables "$n" -o "$n.with" >"$n.json" 2>log; then
		not_ok "vtables/$n" "folding: $(first_line log)"
		return
	fi
	case "$cxx $*" in
	clang*-fdebug-types-section*) more=('shared_local()::Local') ;; # no linkage names in such type units
	*-gdwarf-2*) more=(NoneOfItsOwn) ;; # no scopes
	esac
	if out=$(python3 "$TESTS/judges/vtables.py" "$n" "$n.with" "$n.map" "$ambiguous" "${more[@]}" 2>&1); then
		ok "vtables/$n: $out"
	else
		not_ok "vtables/$n" "$(tail -n 4 <<<"$out" | tr '\n' ' ' | cut -c 1-200)"
	fi
	note="$(tail -n 1 <<<"$out" | awk '{ print $6 + 0, $8 + 0 }')"
	check "vtables/$n/stats" "not $note" [ "$(key "$n.json" vtables) $(key "$n.json" vtables_left_out)" = "$note" ]
	check "vtables/$n/runs" "another result" [ "$("./$n")" = "$("./$n.with")" ]
	"$ICFOLD" verify "$n" "$n.with" >log 2>&1
	rc=$?
	check "vtables/$n/verify" "$(tail -n 1 log)" [ $rc = 0 ]
	tool "vtables/$n/readelf" readelf --debug-dump=info
	tool "vtables/$n/eu-readelf" eu-readelf --debug-dump=info
	tool "vtables/$n/gdb" gdb -nx -batch -ex 'set complaints 100' -ex 'maint expand-symtabs' -ex 'ptype Both' -ex 'break kinds.h:14'
	# llvm-dwarfdump --verify does not end on GCC's classes.
	case $cxx in clang*) for llvm in llvm-dwarfdump-19 llvm-dwarfdump-14; do tool "vtables/$n/$llvm" $llvm --verify; done ;; esac
	have objcopy && check "vtables/$n/copies" "objcopy or strip fails" bash -c "objcopy --compress-debug-sections $n.with $n.z && strip -g $n.z"
}
for version in 4 5; do
	one gcc-dwarf$version g++ -gdwarf-$version -O1
	one gcc-types-dwarf$version g++ -gdwarf-$version -O1 -fdebug-types-section
	one clang-dwarf$version clang++ -gdwarf-$version -O1
done
one gcc-O0-compressed g++ -O0 -gz
one gcc-dwarf2 g++ -gdwarf-2 -O1
one gcc-dwarf64 g++ -gdwarf64 -O1
one clang-types clang++ -O1 -fdebug-types-section
one gcc-sections g++ -O2 -ffunction-sections -fdata-sections

n=shapes
if g++ -g -O1 "$FIXTURES/calls_gcc/shapes.cc" -Wl,--emit-relocs -o $n 2>log && "$ICFOLD" -q $n -o $n.plain 2>log &&
	"$ICFOLD" --stats=json --map=$n.map --emit-vtables $n -o $n.with >$n.json 2>log; then
	if out=$(python3 "$TESTS/judges/vtables.py" $n $n.with $n.map 2>&1); then ok "vtables/shapes: $out"; else not_ok vtables/shapes "$(head -n 3 <<<"$out" | tr '\n' ' ')"; fi
	for policy in alias drop; do
		"$ICFOLD" -q --debug-folded=$policy --emit-vtables $n -o $n.$policy 2>log && "$ICFOLD" verify $n $n.$policy >log 2>&1
		rc=$?
		check vtables/$policy/verify "$(tail -n 1 log)" [ $rc = 0 ]
		if out=$(python3 "$TESTS/judges/vtables.py" $n $n.$policy $n.map 2>&1); then ok "vtables/$policy: $out"; else not_ok "vtables/$policy" "$(head -n 3 <<<"$out" | tr '\n' ' ')"; fi
	done
	if have gdb-add-index && cp $n indexed && gdb-add-index indexed >log 2>&1 && readelf -SW indexed | grep -q gdb_index; then
		"$ICFOLD" -q --emit-vtables --debug-folded=drop indexed -o indexed.with 2>log && "$ICFOLD" verify indexed indexed.with >log 2>&1
		rc=$?
		check vtables/gdb-index "$(tail -n 1 log)" [ $rc = 0 ]
		out=$(gdb -nx -batch -ex 'ptype Box' indexed.with 2>&1)
		check vtables/gdb-index/gdb "$(head -n 1 <<<"$out")" grep -q 'class Box : public Shape\|struct Box : public Shape' <<<"$out"
	else
		skip vtables/gdb-index "gdb-add-index makes none here"
	fi
	"$ICFOLD" -q --strip-debug --emit-vtables $n -o $n.stripped && "$ICFOLD" -q --strip-debug $n -o $n.bare
	check vtables/strip-debug "differs" cmp -s $n.stripped $n.bare
	# Another number of threads gives the same bytes.
	"$ICFOLD" -q --threads=1 --emit-vtables $n -o $n.single
	check vtables/threads "differs" cmp -s $n.with $n.single
else
	not_ok vtables/shapes "$(first_line log)"
fi

# --- sizes ----------------------------------------------------------------------------------------------------------------
gcc -g -O1 "$FIXTURES/calls_gcc/chains.c" -Wl,--emit-relocs -o chains && "$ICFOLD" --stats=json chains -o chains.with >chains.json
for s in dcall vcall icfold; do
	n=shapes
	[ $s = dcall ] && n=chains
	want=$(of_section $n.with .debug_$s)
	check "tables/$s" "$(key $n.json ${s}_bytes) in the figures, ${want:-no section} in the file" [ "$(key $n.json ${s}_bytes)" = "${want:-x}" ]
done
for s in dcall vcall; do
	n=shapes
	[ $s = dcall ] && n=chains
	want=$("$ICFOLD" dump --$s $n.with | grep -c '^  0')
	# The marker of a caller is an entry of the file, but no call.
	check "tables/$s/entries" "$(key $n.json ${s}_entries), dump says $want" [ "$(key $n.json ${s}_entries)" = "$want" ]
done
for n in chains shapes; do "$ICFOLD" -q -v $n -o $n.v; done 2>err
check tables/verbose "not in -v" [ "$(grep -cE 'icfold: \.debug_(dcall|vcall|icfold): [1-9][0-9]* (entries|functions), [1-9][0-9]* bytes' err)" = 4 ]
"$ICFOLD" -q --icf=none --stats=json $n -o $n.none >none.json
check tables/unfolded "there are tables" [ "$(of_section $n.none .debug_dcall)$(of_section $n.none .debug_vcall)$(of_section $n.none .debug_icfold)" = "" ]
check tables/unfolded/stats "sizes in the figures" [ "$(key none.json dcall_bytes) $(key none.json vcall_bytes) $(key none.json icfold_bytes)" = "0 0 0" ]
"$ICFOLD" -q --icf=none --emit-vtables $n -o $n.none.with
check tables/unfolded/vtables "differs with --emit-vtables" cmp -s $n.none $n.none.with
printf 'int main(void) { return 0; }\n' >plain.c
gcc -g plain.c -Wl,--emit-relocs -o plain && "$ICFOLD" -q plain -o plain.out
check tables/nothing "there are tables" [ "$(of_section plain.out .debug_dcall)$(of_section plain.out .debug_vcall)" = "" ]
finish
