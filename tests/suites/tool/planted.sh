#!/bin/bash
# planted.sh: faults in what the folder and its verifier share are seen by judges outside of it.
#
# Both read instructions and relocations with the same code, so a fault there could blind both at once.  Each such fault is planted
# here in a copy of one file, and an icfold built with it: the folded program, put to work, has to show it; the decoder's to Zydis,
# too.  A fault in how the folder compares exception tables is planted as well: the verifier, which has a decoder of its own, sees
# that one itself.  A program that just runs needs neither unwind rows nor line tables: faults in these are shown by judge_dwarf,
# which reads both files through libdw.
. "$(dirname "$0")/../../lib.sh"
need_tool planted
[ "$MACHINE" = x86_64 ] || { skip planted "its faults are in what is known of x86-64"; finish; }
if ! have g++ || ! have objcopy; then
	skip planted "no g++ or no objcopy"
	finish
fi
make_work
cd "$ROOT" || exit 1
. "$TESTS/lib/plant.sh"

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
	timeout 300 "$WORK/prog" >"$WORK/want" 2>&1
	"$1" -q --allow-growth --icf=all "$WORK/in.$2" -o "$WORK/prog" >"$WORK/log" 2>&1 || return 2
	{ timeout 300 "$WORK/prog" >"$WORK/have" 2>&1; } 2>/dev/null # it may well crash
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
if plant planted/length elfrw/arch/x86_64_decode 's/^\tinsn->opcode = op;/&\n\tif (op == 0x83) insn->len = --len;/'; then
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
plant planted/field elfrw/arch/x86_64_decode 's/^\tinsn->opcode = op;/&\n\tif (op == 0x8d) insn->pcrel_size = 0;/' && shown field bare
# Wrong kinds of relocations: of addresses, of distances.
# (Addresses in data without a relocation are looked for as well: they may be a linker script's.)
# shellcheck disable=SC2034 # plant reads it
also=(icf/infer/infer 's/ELFRW_TRY(icf_infer_bare(prog, NULL, threads));//')
plant planted/address elfrw/arch/x86_64 's/R(R_X86_64_64, ABS, 8, false)/R(R_X86_64_64, NONE, 8, false)/' && shown address nopie
# shellcheck disable=SC2034
also=()
plant planted/distance elfrw/arch/x86_64 's/R(R_X86_64_PC32, PCREL, 4, true)/R(R_X86_64_PC32, NONE, 4, true)/' && shown distance pie
# Two exception tables are the same whatever they catch.
if plant planted/catch dwarf/lsda 's/elfrw_wbuf_u64(out, type->addr);/;/'; then
	shown catch pie
	"$WORK/catch" verify --icf=all "$WORK/in.pie" "$WORK/prog" >"$WORK/log" 2>&1
	check planted/catch/verify "the verifier with the fault sees nothing" grep -q 'exception tables: .*expected the same call sites' "$WORK/log"
fi

# A program for judge_dwarf: DW_CFA_advance_loc2 leads to the rows behind 300 bytes, and two equal functions differ in the last
# operand of their rules.
cat >"$WORK/rules.c" <<'C'
__attribute__((noinline)) int one(int n) { return n * 7 + 1; }
__attribute__((noinline)) int two(int n) { return n * 7 + 1; }
__attribute__((noinline)) int three(int n) {
	volatile int at[3] = { n, 1, 2 };
	__asm__ volatile(".rept 300\n\tnop\n\t.endr");
	return one(n) + at[0];
}
__attribute__((noinline)) int four(int n) { __asm__ volatile("nop\n\t.cfi_register 12, 13"); return n - 1; }
__attribute__((noinline)) int five(int n) { __asm__ volatile("nop\n\t.cfi_register 12, 14"); return n - 1; }
int main(int argc, char **argv) { (void)argv; return three(two(argc)) + four(argc) + five(argc) == 0; }
C
judge=$BUILD/tests/judge_dwarf
# judged TOOL SAYS [OPTION...]: judge_dwarf says SAYS of what TOOL makes of the program.
judged() {
	local tool=$1 says=$2
	shift 2
	"$tool" -q --allow-growth --icf=all "$@" --map="$WORK/map" "$WORK/rules" -o "$WORK/prog" >"$WORK/log" 2>&1 || return 1
	"$judge" "$WORK/rules" "$WORK/prog" "$WORK/map" >"$WORK/log" 2>&1
	grep -q "$says" "$WORK/log"
}
if [ ! -x "$judge" ]; then
	skip planted/rules "no program $judge"
elif ! gcc -O2 -g -ffunction-sections -Wl,--emit-relocs "$WORK/rules.c" -o "$WORK/rules" 2>"$WORK/log"; then
	not_ok planted/rules "$(first_line "$WORK/log")"
else
	check planted/none/rules "$(grep -m1 WRONG "$WORK/log")" judged "$ICFOLD" '^right'
	check planted/none/rules/in-place "$(grep -m1 WRONG "$WORK/log")" judged "$ICFOLD" '^right' --in-place
	# An operand of unwind instructions is too short; the last byte of a function's is not compared.
	plant planted/advance dwarf/cfa 's/\[0x03\] = "2"/[0x03] = "1"/' &&
		check planted/advance "the judge sees nothing" judged "$WORK/advance" '^WRONG unwind row: .*three'
	plant planted/last dwarf/cfi 's/fde->insn_size = (uint32_t)walk.length;/& fde->insn_size -= fde->insn_size > 0;/' &&
		check planted/last "the judge sees nothing" judged "$WORK/last" '^WRONG unwind row: .*\(four\|five\)'
	# A thunk has another function's line, or none.
	plant planted/line dwarf/rewrite/line/table 's/row.address = unit->entry;/& row.line += 3;/' &&
		check planted/line "the judge sees nothing" judged "$WORK/line" '^WRONG thunk line row: .*libdw finds .* in the thunk of' --in-place
	plant planted/noline dwarf/rewrite/line/table 's/^\t\t    !unit->thunk_size/\t\t    unit->thunk_size/' &&
		check planted/noline "the judge sees nothing" judged "$WORK/noline" '^WRONG thunk line row: .*no line in the thunk of' --in-place
fi
finish
