#!/bin/bash
# unused_bare.sh: --gc-functions without relocations.  The same functions go as with them, from whole and from stripped programs;
# programs are made to fool whoever decides that nothing leads to a function (more are in fixtures/fool/unused, see fool.sh).  Then
# faults are planted in the search for numbers that may lead to functions: verify, which looks for itself, has to see each.
# PARTS (ways numbers options mutants forgotten) selects some.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/fool.sh
. "$TESTS/lib/fool.sh"
need_tool bare
x86_only bare
make_work
always_fold
make_driver || { not_ok bare "cannot build the driver"; finish; }
cd "$WORK" || exit 1
mkdir -p objects
PARTS=${PARTS:-ways numbers options mutants forgotten}

problems() { grep -m1 ': ' "$1" | cut -c 1-200; }
removed() { sed -n 's/^removing unused section //p' "$1" | sort; }

# judge NAME IN TYPE: IN, without its unused functions, in all modes; prints what is wrong.
judge() {
	local in=$2 type=$3 how mode loose out=$2.out
	for how in none safe all "none --in-place" "safe --in-place" "all --debug-folded=drop"; do
		mode=${how%% *} loose=0
		[ "$mode" = all ] && loose=1
		# shellcheck disable=SC2086
		if ! "$ICFOLD" -q --gc-functions --print-gc-functions=list --icf=$how "$in" -o "$out" >log 2>&1; then
			echo "$how: $(first_line log);"
			continue
		fi
		[ ! -e "$in.plugin.so" ] || cp "$in.plugin.so" "$out.plugin.so"
		"$ICFOLD" verify --gc-functions --icf="${mode/none/safe}" "$in" "$out" >log 2>&1 || echo "$how: verify: $(problems log);"
		check_transcripts "$type" "$PWD/$out" $loose | sed "s/^/$how: /; s/\$/;/"
	done
}

# ways NAME FIXTURE COMPILER LINKER TYPE FLAGS WANTED: WANTED functions at least are removed; with relocations, too; if the file is
# stripped, it works.
ways() {
	local name=$1 cc=$3 ld=$4 type=$5 flags=$6 bad
	load_recipe "$2"
	have "$cc" || { skip "bare/$name" "no $cc"; return; }
	if ! { compile_fixture "$cc" "$flags" "$type" "o.$name" && RELOCS=no link_fixture "$cc" "$ld" "$type" "o.$name" "$name" &&
		link_fixture "$cc" "$ld" "$type" "o.$name" "$name.relocs"; } >log 2>&1; then
		skip "bare/$name" "does not build: $(tail -n 1 log | cut -c 1-100)"
		return
	fi
	bad=$(judge "$name" "$name" "$type" | tr '\n' ' ')
	check "bare/$name" "$(echo "$bad" | cut -c 1-400)" test -z "$bad"
	removed list >list.bare
	check "bare/$name/removed" "only $(tr '\n' ' ' <list.bare)" test "$(wc -l <list.bare)" -ge "$7"
	"$ICFOLD" -q --gc-functions --print-gc-functions=list "$name.relocs" -o out
	check "bare/$name/more" "with relocations these stay: $(removed list | comm -13 - list.bare | tr '\n' ' ')" test -z "$(removed list | comm -13 - list.bare)"
	strip -o "$name.bare" "$name"
	[ ! -e "$name.plugin.so" ] || cp "$name.plugin.so" "$name.bare.plugin.so"
	bad=$(judge "$name" "$name.bare" "$type" | tr '\n' ' ')
	check "bare/$name/stripped" "$(echo "$bad" | cut -c 1-400)" test -z "$bad"
}
if part_wanted ways; then
	ways pie unused gcc bfd pie "-O2 -g" 16
	ways library unused gcc mold so "-O1 -g" 14
	ways clang unused clang lld pie "-O2 -g" 12
	ways switches switches gcc gold pie "-O2" 0
	ways addr addr clang lld so "-O2 -g" 0
	ways eh eh gcc bfd pie "-O2 -g" 0
	ways hotcold hotcold gcc lld pie "-O2" 0
fi

# --- numbers that lead to functions ---

# in_place NAME FILE: FILE does in place what it did.  (Elsewhere such numbers fool folding, too.)
in_place() {
	"$ICFOLD" -q --gc-functions --in-place --print-gc-functions=list "$2" -o "$2.out" 2>log
	check "bare/$1" "$(first_line log); it prints something else" cmp -s <(./"$2") <(./"$2.out" 2>&1)
	check "bare/$1/dead" "it removes $(removed list | tr '\n' ' ')" test "$(removed list)" = dead
	"$ICFOLD" verify --gc-functions "$2" "$2.out" >log 2>&1
	check "bare/$1/verify" "$(problems log)" grep -q '^equal' log
}

# Distances from data to functions that are operands; the linker computes them.
cat >operands.c <<'C'
#include "fool.h"
__asm__(".text\n" CFI_PLUS(dead, 100) CFI_PLUS(behind, 1) CFI_PLUS(before, 2) CFI_PLUS(taken, 3) CFI_PLUS(of_file, 4)
	CFI_FUNC(get_behind) "lea anchor(%rip), %rax\n add $far_a, %rax\n ret\n" CFI_END(get_behind)
	CFI_FUNC(get_before) "mov $far_b, %rax\n lea anchor(%rip), %rcx\n add %rcx, %rax\n ret\n" CFI_END(get_before)
	CFI_FUNC(get_taken) "lea anchor(%rip), %rax\n sub $far_c, %rax\n ret\n" CFI_END(get_taken)
	CFI_FUNC(get_of_file) "mov first_byte(%rip), %rax\n add $far_d, %rax\n ret\n" CFI_END(get_of_file)
	".data\n.balign 8\n.globl anchor\n.hidden anchor\nanchor: .quad 1\nfirst_byte: .quad __ehdr_start\n.text\n");
typedef int (*fn)(int);
fn get_behind(void), get_before(void), get_taken(void), get_of_file(void);
static volatile fn now;
int main(void)
{
	BEGIN;
	now = get_behind();
	show("behind", now(10));
	now = get_before();
	show("before", now(20));
	now = get_taken();
	show("taken", now(30));
	now = get_of_file();
	show("of file", now(40));
	END;
	return 0;
}
C
build_fool gcc "$FOOL/unused/odd_places.c" objects crowd -O2 -DCROWD >log 2>&1 || skip bare/crowd "does not build: $(first_line log)"
build_fool gcc "$FOOL/unused/offsets.c" objects offsets -O2 && build_fool gcc "$FOOL/unused/neighbour.c" objects neighbour -O2 &&
	strip -o neighbour.stripped neighbour && build_fool gcc "$FOOL/unused/dead.c" objects dead -O2 && build_fool gcc "$FOOL/distance/packed.c" objects packed -O2 &&
	build_fool gcc "$FOOL/unused/computed.c" objects computed -O2 && build_fool gcc "$FOOL/unused/split.c" objects split -O2 &&
	build_fool gcc "$FOOL/unused/far_pointer.c" objects far_pointer -O2 &&
	build_fool gcc "$FOOL/code/unbounded.c" objects unbounded -O2 || not_ok bare/fool "a program does not build"
gcc -fPIE -O2 -w "-I$FOOL" -c operands.c -o objects/operands.o && gcc -pie -fuse-ld=gold -Wl,--defsym=far_a=behind-anchor -Wl,--defsym=far_b=before-anchor \
	-Wl,--defsym=far_c=anchor-taken -Wl,--defsym=far_d=of_file-__ehdr_start objects/{before,operands,after}.o -o operands 2>log ||
	skip bare/operands "does not link: $(first_line log)"
# Neighbours in place: the pages that only they fill become holes.
pages() {
	local i zeros
	{
		echo '#include "fool.h"'
		for ((i = 0; i < 400; i++)); do echo "__asm__(\".text\n\" CFI_FUNC(dead_$i) \"mov \$$i, %eax\n .fill 40, 1, 0x90\n ret\n\" CFI_END(dead_$i));"; done
		echo 'int main(void) { BEGIN; END; return 0; }'
	} >many.c
	gcc -fPIE -O2 -w "-I$FOOL" -c many.c -o objects/many.o && gcc -pie objects/{before,many,after}.o -o many || return
	"$ICFOLD" -q --gc-functions --in-place many -o many.out 2>log
	check bare/pages "$(first_line log); it prints something else" cmp -s <(./many) <(./many.out 2>&1)
	"$ICFOLD" verify --gc-functions many many.out >log 2>&1
	check bare/pages/verify "$(problems log)" grep -q '^equal' log
	zeros=$(objdump -h -j .text many.out | awk '$2 == ".text" { print $6, $3 }' | {
		read -r at size
		dd if=many.out bs=4096 skip=$((16#$at / 4096 + 1)) count=$((16#$size / 4096 - 1)) 2>dd.log | tr -d '\0' | wc -c
	})
	check bare/pages/empty "$zeros bytes of whole pages are not empty" test "$zeros" -lt 4096
}
if part_wanted numbers; then
	pages
	[ ! -x crowd ] || in_place crowd crowd
	[ ! -x operands ] || in_place operands operands
fi

# --- what is said ---

options() {
	local at
	strip -o stripped dead
	"$ICFOLD" --gc-functions --print-gc-functions stripped -o out >list 2>log
	at=$(removed list | head -n 1)
	check bare/list/address "$(first_line list)" grep -qx 'removing unused section 0x[0-9a-f]*' list
	"$ICFOLD" --gc-functions --print-gc-functions --keep="$at" stripped -o out >kept 2>log
	check bare/keep/address "$at is removed" bash -c '! grep -q "$1" kept' - "$at"
	check bare/keep/others "nothing is removed" test -s kept
	check bare/keep/unknown "no such message" bash -c '! "$1" --gc-functions --keep=0x7 stripped -o kept 2>log && grep -q "no function is named 0x7" log' - "$ICFOLD"
	"$ICFOLD" --gc-functions --threads=1 dead -o one && "$ICFOLD" --gc-functions --threads=7 dead -o seven
	check bare/threads "other bytes with more threads" cmp -s one seven
	check bare/refused "it calls the files equal" bash -c '! "$1" verify dead one >log && grep -q "verify --gc-functions" log' - "$ICFOLD"
	"$ICFOLD" --gc-functions split -o out 2>log
	check bare/split/says "$(first_line log)" grep -q 'removes nothing: the code may add distances to the address of a function' log
	"$ICFOLD" --gc-functions unbounded -o out 2>log
	check bare/sums/says "$(first_line log)" grep -q 'removes nothing: it has no relocations .* calls the sum of two numbers' log
	gcc -O2 -no-pie "$FOOL/unused/odd_places.c" objects/{before,after}.o -w -I"$FOOL" -o fixed 2>log &&
		"$ICFOLD" --gc-functions fixed -o out 2>log
	check bare/fixed/says "$(first_line log)" grep -q 'removes nothing: its addresses are fixed' log
	"$ICFOLD" audit --why=live dead >log 2>&1
	check bare/why "$(first_line log)" grep -q main log
	"$ICFOLD" audit --why=behind operands >log 2>&1
	check bare/why/number "$(first_line log)" grep -qE 'a number may lead to it|within reach' log
}
if part_wanted options; then options; fi

# --- mutants of an output ---

# Verify did not see $kind.  It counts if it is seen in an output from which nothing was removed.
unseen() {
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" $place 2 dead plain mutant >said 2>&1 || return
	"$ICFOLD" verify $of mutant >log 2>&1 || survived="$survived $kind"
}
mutants() {
	local n=0 survived='' kind place of
	"$ICFOLD" --gc-functions dead -o good
	"$ICFOLD" dead -o plain
	for kind in $("$MUTATE" --list); do
		for place in 0 1; do
			ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 "$MUTATE" "$kind" $place 2 dead good mutant >said 2>&1 || continue
			of=dead
			[ ! -e mutant.in ] || of=mutant.in
			timeout 400 "$ICFOLD" verify --gc-functions $of mutant >log 2>&1
			[ $? = 1 ] || unseen
			n=$((n + 1))
			rm -f mutant mutant.in
		done
	done
	check bare/mutants "of $n survived:$survived" test -z "$survived" -a $n -gt 40
}
MUTATE=${MUTATE:-$BUILD/tests/mutate}
if ! part_wanted mutants; then
	:
elif [ -x "$MUTATE" ]; then
	mutants
else
	skip bare/mutants "no program at $MUTATE"
fi

# --- faults in the search ---

part_wanted forgotten || finish
cd "$ROOT" || exit 1
. "$TESTS/lib/plant.sh"
# forgotten NAME PROGRAM FILE SED: the search without a rule.
forgotten() { forget "bare/forgotten/$1" "$2" "$3" "$4" 'removed code that nothing reaches|code addresses in data' --in-place; }
doubt=icf/infer/run/doubt
# What the search for folding keeps, it keeps in any case.
# shellcheck disable=SC2034 # plant reads it
also=(icf/infer/infer 's/^\ticf_infer_absolute(prog);//; s/err = icf_infer_bare(prog, &map, threads);/;/')
forgotten words crowd $doubt 's/^\tkeep_entry(d, at + word);//'
forgotten ends crowd $doubt 's/^\tkeep_entry(d, at + 4 + word);//'
forgotten got crowd $doubt 's/^\tkeep_known(d, word);//'
forgotten data offsets $doubt 's/keep_entry(d, names->from\[k\] + word)/;/'
forgotten first-byte operands $doubt 's/^\tkeep_known(d, number);//'
forgotten behind operands $doubt 's/^\t\tkeep_entry(d, l->name\[k\] + number);//'
forgotten taken operands $doubt 's/^\t\tkeep_entry(d, l->name\[k\] - number);//'
forgotten before operands $doubt 's/^\t\tkeep_entry(d, va + l->number\[k\]);//'
forgotten tables neighbour $doubt 's/^\t\t\tkeep_entries(d, x->base, x->n);//'
forgotten further neighbour $doubt 's/^\t\tread_on(d, x->base, .*, false);//'
forgotten jumps neighbour.stripped $doubt 's/^\tlook_at_jumps(d, i);//'
forgotten pinned packed icf/fold/unused 's/if (u->flags & ICF_UNIT_PINNED)/if (0)/'
forgotten added computed icf/fold/unused 's/if (u->flags & ICF_UNIT_PINNED)/if (0)/'
forgotten sums unbounded icf/fold/unused 's/prog->inferred && !prog->loose && calls_sums(prog)/0/'
forgotten loose far_pointer icf/fold/unused 's/^\treturn prog->loose;/\treturn NULL;/'
finish
