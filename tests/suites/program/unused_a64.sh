#!/bin/bash
# unused_a64.sh: --gc-functions for AArch64, built by cross compilers and run by qemu: classes and fixtures, functions and tables that
# are used in ways that are hard to see, and faults planted in the marking, each of which verify has to see.
# UNUSED=full: more of all.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/a64.sh
. "$TESTS/lib/a64.sh"
a64_suite unused_a64
make_driver || { not_ok unused_a64 "cannot build the driver"; finish; }
# shellcheck source=tests/lib/unused.sh
. "$TESTS/lib/unused.sh"

# --- what compilers write ---
away="makes_weak makes_strong makes_second makes_bottom weak_table second_table virtual_base construction"
makers="makes_weak makes_local makes_strong makes_second makes_bottom"
full() { [ "${UNUSED:-}" = full ]; }
fixture() {
	build "$1.$2" "$1" "$2" "$3" "$4" "-O2 -g" && judge "unused/$1.$2.$3.$4" "$4" "$WORK/$1.$2"
}
# shellcheck disable=SC2086
{
	classes sections g++ bfd -pie "-O2 -g -fPIE -fdata-sections" $away local_table strong_table makes_local
	classes fixed g++ gold -no-pie "-Os -g -fno-pie" $makers
	if full; then
		classes lld g++ lld -pie "-O1 -g -fPIE -mbranch-protection=standard" $away
		classes clang clang++ lld -pie "-O2 -g -fPIE" $makers
		classes mold g++ mold -static "-O2" $makers
	fi
}
fixture asm_a64 gcc bfd pie
if full; then
	fixture hotcold gcc mold pie
	fixture switches gcc lld nopie
	fixture c_plain gcc bfd so
	fixture eh clang lld pie
	fixture init gcc bfd static
	fixture unwind gcc gold staticpie
fi

# --- ways that are hard to see ---
cat >use.c <<'C'
#include <stdio.h>
long use_it(long);
int main(void) { printf("%ld\n", use_it(1)); }
C
# It has to be there in all modes; what is dead beside it has to go, except if DOUBT says that bytes are not understood.
used() {
	local way=$1 doubt=${2:-} bad='' built=0 flags mode d now
	for flags in "-pie -fPIE" "-no-pie -fno-pie -fuse-ld=lld" "-static -fuse-ld=gold" "-pie -fPIE -fuse-ld=mold"; do
		full || [ "$flags" = "-pie -fPIE" ] || [ "$way/$flags" = "ADR/-static -fuse-ld=gold" ] || [ -n "$doubt" ] || continue
		# shellcheck disable=SC2086
		gcc -O2 "-D$way" $flags use.c "$FIXTURES/unused/a64.S" -Wl,--emit-relocs -o "way.$way" 2>log || continue
		run_program said pie "./way.$way"
		[ "$(cat said)" = 1001 ] || { bad="$bad $flags: unfolded, it prints $(cat said);"; continue; }
		# Words with addresses in code would have to be written when the program starts.
		[[ $flags == -pie* && $way == *LITERAL ]] && continue
		built=$((built + 1))
		for mode in none "safe --in-place" "safe --emit-relocs"; do
			# shellcheck disable=SC2086
			"$ICFOLD" -q --gc-functions --icf=$mode "way.$way" -o way.out 2>log || bad="$bad $flags: $(first_line log);"
			"$ICFOLD" verify --gc-functions "way.$way" way.out >log 2>&1 || bad="$bad $flags: verify: $(problems log);"
			run_program said pie ./way.out
			[ "$(cat said)" = 1001 ] || bad="$bad $flags: it prints $(first_line said);"
			now=$(names way.out)
			for d in before between; do
				[ -n "$doubt" ] || ! grep -qx "dead_$d" <<<"$now" || bad="$bad $flags $mode: dead_$d is still there;"
			done
		done
	done
	check "unused/$way" "built $built times:$(echo "$bad" | cut -c 1-400)" test -z "$bad" -a $built -ge 1
}
for way in ADR PAIR SPLIT NEAR GOT DATA CASES TABLE_PAIR TABLE_HIGH TABLE_ANCHOR TABLE_START TABLE_MERGED TABLE_BEFORE; do used $way; done
# Functions with data among their code stay, with all that they may refer to.
for way in LITERAL DISTANCE TABLE_LITERAL; do used $way doubt; done

# Classes without linkage: GCC counts from their first table to all of them.
cat >merged.cc <<'C'
#include <cstdio>
namespace {
struct Base { virtual int f(int n) { return n; } virtual ~Base() {} };
struct First : Base { int f(int n) override { return n * 3; } };
struct Second : Base { int f(int n) override { return n * 5; } };
struct Third : Base { int f(int n) override { return n * 7; } };
Base *make(int n) { if (n == 1) return new Second; if (n == 2) return new Third; return new First; }
}
int main(int n, char **) { for (int i = 0; i < 3; i++) { Base *b = make(n + i); printf("%d\n", b->f(n)); delete b; } }
C
g++ -O2 merged.cc -Wl,--emit-relocs -o merged && "$ICFOLD" -q --gc-functions --allow-growth merged -o merged.out
run_program said pie ./merged
run_program now pie ./merged.out
check unused/merged "it prints $(tr '\n' ' ' <now)" cmp -s said now

# --- faults in the marking ---
cd "$ROOT" || exit 1
. "$TESTS/lib/plant.sh"
# forgotten NAME WAY SED [FILE]: the marking without a rule.
forgotten() {
	(cd "$WORK" && gcc -O2 "-D$2" -pie -fPIE use.c "$FIXTURES/unused/a64.S" -Wl,--emit-relocs -o "way.$2" 2>log)
	forget "unused/forgotten/$1" "way.$2" "icf/fold/${4:-unused}" "$3" 'removed code that nothing reaches' --allow-growth
}
# With the host's compiler: what is planted runs here.
PATH=${PATH#"$WORK/tools:"}
forgotten branches NEAR 's/^\t\tmark(m, ref\[r\].unit);/\t\tif (ref[r].kind != ICF_REF_BRANCH) mark(m, ref[r].unit);/'
forgotten addresses PAIR 's/^\t\tmark(m, ref\[r\].unit);/\t\tif (ref[r].kind == ICF_REF_BRANCH) mark(m, ref[r].unit);/'
forgotten words DATA 's/for (unsigned k = leads_to(prog, d, to); k--;)/for (unsigned k = 0; k--;)/; s/^\t\tif (!d->relr \&\&/\t\tif (0 \&\&/'
forgotten pinned DISTANCE 's/if (u->flags & ICF_UNIT_PINNED)/if (0)/'
# (What lies around what has no name is used, too: without that, only the rule itself helps.)
forgotten tables TABLE_PAIR 's/^\ttouch(o, va);$/;/; s/^\t\tuse_around(o, va);/;/' unused/object
forgotten merged TABLE_MERGED 's/ \&\& o->prog->arch->low_form/ \&\& 0/' unused/object
forgotten anchors TABLE_ANCHOR 's/^\t\tuse_around(o, va);/;/' unused/object
forgotten arrays TABLE_BEFORE 's/^\tfind_arrays(ret);/;/; s/^\t\tuse_around(o, va);/;/' unused/object
finish
