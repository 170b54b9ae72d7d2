#!/bin/bash
# judge.sh: the judge of this folder's suites objects to each kind of wrong row, and to a program that a linker has folded.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/clients.sh
. "$TESTS/lib/clients.sh"
start_suite clients/judge python3 jq
config judge gcc 5 yes
if ! { objects && link own libbacktrace "$(gcc -print-file-name=libbacktrace.a)"; } >log 2>&1; then
	skip clients/judge "does not build: $(first_line log)"
	finish
fi
fold all own || { not_ok clients/judge "folding: $(first_line log)"; finish; }
rows own plain own
rows own all own
# objects_to NAME VERDICT SED: SED changes the rows of the folded program.
objects_to() {
	sed -E "$3" judge/all/own.own >broken
	if cmp -s broken judge/all/own.own; then not_ok "clients/judge/$1" "nothing was changed"; return; fi
	python3 "$JUDGE" compare judge/all/own.truth judge/plain/own.own broken >said
	check "clients/judge/$1" "$(tr '\n' ' ' <said)" grep -q "^  $2 " said
}
python3 "$JUDGE" compare judge/all/own.truth judge/plain/own.own judge/all/own.own >said
rc=$?
check clients/judge/right "$(first_line said)" test $rc = 0
objects_to name LESS '0,/^local_red\t.*/s//?\tgroups.c:13/'
objects_to line LESS '0,/^local_red\t.*/s//local_red\t?/'
objects_to row LESS '0,/^alone_first\t/{/^alone_first\t/d}'
objects_to stack WRONG '/^stack$/{x;s/^/x/;/^x{3}$/{x;d};x}'
objects_to mix MIX 's/^local_red\t.*/local_green\tgroups.c:13/'
objects_to mix_line MIX 's/^local_red\t.*/local_red\tgroups.c:24/'
objects_to other other '/^(local_red|heaviest<Apple>)\t/{s/.*/local_green\tgroups.c:24/}'
objects_to stranger WRONG 's/^local_red\t.*/alone_third\tgroups.c:106/'
objects_to alone WRONG 's/^alone_first\t.*/alone_second\tgroups.c:18/'
objects_to inlined MIX 's/^inner_low\t.*/inner_low\tgroups.c:99/'
# A linker's folding leaves names of both functions and lines of one.
if link_lld own "$(gcc -print-file-name=libbacktrace.a)"; then
	rows own lld own
	python3 "$JUDGE" compare judge/all/own.truth judge/plain/own.own judge/lld/own.own >said
	rc=$?
	check clients/judge/linker "$(first_line said)" test $rc != 0
fi
finish
