#!/bin/bash
# planted.sh: faults in what the folder and its verifier share are seen by judges outside of it.
#
# Both read instructions and relocations with the same code, so a fault there could blind both at once.  Each such fault is planted
# here in a copy of one file, and an icfold built with it: the folded program, put to work, has to show it; the decoder's to Zydis,
# too.  A fault in how the folder compares exception tables is planted as well: the verifier, which has a decoder of its own, sees
# that one itself.
. "$(dirname "$0")/../../lib.sh"
need_tool planted
if ! have g++ || ! have objcopy; then
	skip planted "no g++ or no objcopy"
	finish
fi
make_work
cd "$ROOT" || exit 1
tool_flags=()
! nm "$BUILD/icfold" 2>/dev/null | grep -q __asan_init || tool_flags=("-fsanitize=address,undefined")
tool_libs=(-ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread -ldl)

# plant NAME FILE SED: $WORK/NAME is an icfold with FILE (without .c) as SED makes it.
plant() {
	local name=$1 file=$2 objects
	sed "$3" "$file.c" >"$WORK/$name.c"
	if cmp -s "$file.c" "$WORK/$name.c"; then
		not_ok "planted/$name" "$file.c has no such line any more: $3"
		return 1
	fi
	mapfile -t objects < <(find elfrw dwarf icf -name '*.c' ! -path "$file.c" | sed "s#\(.*\)c\$#$BUILD/\1o#")
	if ! gcc -std=gnu17 -D_GNU_SOURCE -I. -I"$(dirname "$file")" -O1 "${tool_flags[@]}" -c "$WORK/$name.c" -o "$WORK/$name.o" 2>"$WORK/log" ||
		! gcc "${tool_flags[@]}" "${objects[@]}" "$WORK/$name.o" -o "$WORK/$name" "${tool_libs[@]}" 2>"$WORK/log"; then
		not_ok "planted/$name" "does not build: $(first_line "$WORK/log")"
		return 1
	fi
}

for type in nopie pie; do
	load_recipe eh
	if ! compile_fixture g++ "-O2 -g -ffunction-sections" $type "$WORK/obj.$type" 2>"$WORK/log" ||
		! link_fixture g++ bfd $type "$WORK/obj.$type" "$WORK/in.$type" 2>"$WORK/log"; then
		not_ok planted/build "$(first_line "$WORK/log")"
		finish
	fi
done
# Without the relocations that the linker kept.
readelf -SW "$WORK/in.pie" | grep -o '\.rela\.[A-Za-z_.]*' | grep -vE 'dyn|plt' | sort -u | sed 's/^/--remove-section=/' |
	xargs objcopy "$WORK/in.pie" "$WORK/in.bare"

# works TOOL TYPE: does the program do its work as before, folded by TOOL?  It looks for nothing by its name.
works() {
	cp "$WORK/in.$2" "$WORK/prog"
	timeout 60 "$WORK/prog" >"$WORK/want" 2>&1
	"$1" -q --allow-growth --icf=all "$WORK/in.$2" -o "$WORK/prog" >"$WORK/log" 2>&1 || return 2
	{ timeout 60 "$WORK/prog" >"$WORK/have" 2>&1; } 2>/dev/null # it may well crash
	cmp -s "$WORK/want" "$WORK/have"
}
# shown NAME TYPE: the program shows the fault.
shown() {
	works "$WORK/$1" "$2"
	case $? in
	0) not_ok "planted/$1" "the program works as before" ;;
	1) ok "planted/$1" ;;
	*) not_ok "planted/$1" "nothing is folded: $(first_line "$WORK/log")" ;;
	esac
}

for type in nopie pie bare; do check "planted/none/$type" "a sound icfold breaks the program" works "$ICFOLD" $type; done

# A wrong length: of instructions with a byte behind them.
if plant length elfrw/arch/x86_64_decode 's/^\tinsn->opcode = op;/&\n\tif (op == 0x83) insn->len = --len;/'; then
	shown length pie
	if [ -e /usr/include/Zydis/Zydis.h ]; then
		if gcc -std=gnu17 -D_GNU_SOURCE -I. -Ielfrw/arch -O1 tests/judges/{decoder,effect}.c elfrw/arch/x86_64_effect.c "$WORK/length.c" -o "$WORK/decoder" -lZydis 2>"$WORK/log"; then
			check planted/length/zydis "no difference" bash -c '! "$1" "$2" >"$3"' - "$WORK/decoder" "$WORK/in.pie" "$WORK/log"
		else
			not_ok planted/length/zydis "does not build: $(first_line "$WORK/log")"
		fi
	else
		skip planted/length/zydis "no Zydis"
	fi
fi
# A lost field: what an instruction computes from its own place.
plant field elfrw/arch/x86_64_decode 's/^\tinsn->opcode = op;/&\n\tif (op == 0x8d) insn->pcrel_size = 0;/' && shown field bare
# Wrong kinds of relocations: of addresses, of distances.
plant address elfrw/arch/x86_64 's/R(R_X86_64_64, ABS, 8, false)/R(R_X86_64_64, NONE, 8, false)/' && shown address nopie
plant distance elfrw/arch/x86_64 's/R(R_X86_64_PC32, PCREL, 4, true)/R(R_X86_64_PC32, NONE, 4, true)/' && shown distance pie
# Two exception tables are the same whatever they catch.
if plant catch dwarf/lsda 's/elfrw_wbuf_u64(out, type->addr);/;/'; then
	shown catch pie
	"$WORK/catch" verify --icf=all "$WORK/in.pie" "$WORK/prog" >"$WORK/log" 2>&1
	check planted/catch/verify "the verifier with the fault sees nothing" grep -q 'exception tables: .*expected the same call sites' "$WORK/log"
fi
finish
