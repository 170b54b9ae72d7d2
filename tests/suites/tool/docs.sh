#!/bin/bash
# docs.sh: the manual pages name the options of --help and are well-formed (mandoc, groff); their examples are parts of the files of
# integration/; README, CONTRIBUTING and `make help` name options, files and targets that exist.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite docs
commands=$(tool_commands)

page_of() { # COMMAND
	case $1 in fold) echo "$ROOT/man/icfold.1" ;; *) echo "$ROOT/man/icfold-${1#--}.1" ;; esac
}
# The options that a page has an item for.
in_page() { # FILE
	sed -n 's/^\.It Fl /Fl /p' "$1" | sed 's/\\-/-/g' | grep -oE 'Fl -?[A-Za-z][a-z-]*' | sed 's/^Fl /-/' | sort -u
}
# Other spellings, which need no item of their own.
in_text() { grep -qE -- "(Fl -?${2#-}|[^a-z-]$2)([^a-z-]|\$)" <(sed 's/\\-/-/g' "$1"); }
for c in $commands; do
	page=$(page_of "$c")
	if [ ! -e "$page" ]; then
		not_ok "docs/$c" "no manual page ${page#"$ROOT/"}"
		continue
	fi
	help_options "$c" >help
	in_page "$page" >page
	missing=$(comm -23 help page | while read -r o; do in_text "$page" "$o" || echo "$o"; done)
	check "docs/$c-page-has-help" "not in ${page##*/}: $(echo "$missing" | tr '\n' ' ')" test -s help -a -z "$missing"
	missing=$(comm -13 help page | while read -r o; do "$ICFOLD" "$c" --help | grep -qE -- "(^|[^a-z-])$o([^a-z-]|\$)" || echo "$o"; done)
	check "docs/$c-help-has-page" "in ${page##*/} only: $(echo "$missing" | tr '\n' ' ')" test -z "$missing"
	check "docs/$c-in-help" "icfold --help does not name it" bash -c '"$1" --help | sed -n "/^Commands:/,/^\$/p" | grep -qE -- "^  $2 "' - "$ICFOLD" "$c"
done

# --- form
for m in "$ROOT"/man/*.[157]; do
	name=${m##*/}
	if have mandoc; then
		mandoc -Tlint -W warning "$m" >lint 2>&1
		check "docs/mandoc-$name" "$(first_line lint)" test ! -s lint
	else
		skip "docs/mandoc-$name" "no mandoc"
	fi
	if have groff; then
		groff -mandoc -ww -z "$m" >lint 2>&1
		check "docs/groff-$name" "$(first_line lint)" test ! -s lint
	else
		skip "docs/groff-$name" "no groff"
	fi
	missing=$(sed -nE 's/^\.Xr (icfold[a-z-]*) ([0-9]).*/\1.\2/p' "$m" | sort -u | while read -r x; do [ -e "$ROOT/man/$x" ] || echo "$x"; done)
	check "docs/references-$name" "no page $missing" test -z "$missing"
done

# --- recipes: every example with "from FILE" before it is a run of lines of that file
examples=0 wrong=
while IFS=' ' read -r line file; do
	examples=$((examples + 1))
	awk -v from="$line" 'NR > from && /^\.Bd/ { on = 1; next } on && /^\.Ed/ { exit } on { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub(/\\-/, "-"); print }' "$ROOT/man/icfold-build.7" >example
	if [ ! -s example ] || ! awk 'NR == FNR { want[NR] = $0; n = NR; next } { have[FNR] = $0; m = FNR }
		END { for (i = 0; i + n <= m; i++) { for (k = 1; k <= n && have[i + k] == want[k]; k++) ; if (k > n) exit 0 } exit 1 }' example "$ROOT/$file"; then
		wrong="$wrong $file"
	fi
done < <(sed -n '/^\.\\" from /{=;s/^\.\\" from //p}' "$ROOT/man/icfold-build.7" | paste -d ' ' - -)
check docs/recipes "of $examples examples other than in the file:$wrong" test "$examples" -ge 10 -a -z "$wrong"
missing=$(cd "$ROOT/integration" && for d in */; do [ "$d" = src/ ] || grep -q "integration/$d" "$ROOT/man/icfold-build.7" || echo "$d"; done)
check docs/recipes-all "not in icfold-build.7: $missing" test -z "$missing"

# --- other documents
"$ICFOLD" --help | cat - <(for c in $commands; do "$ICFOLD" "$c" --help; done) >all-help
missing=$(sed -n '/^## /h;/^|/p' "$ROOT/README.md" | grep -oE '`--[a-z-]+' | tr -d '`' | sort -u | while read -r o; do grep -q -- "$o" all-help || echo "$o"; done)
check docs/readme-options "no such option: $missing" test -z "$missing"
for f in CONTRIBUTING.md README.md; do
	missing=$(grep -oE '`(elfrw|dwarf|icf|tests|man|fixtures|integration|completions|gdb)/[A-Za-z0-9_./-]*`' "$ROOT/$f" | tr -d '`' | grep -v NAME | sort -u | while read -r p; do [ -e "$ROOT/$p" ] || echo "$p"; done)
	check "docs/files-in-$f" "no such file: $(echo "$missing" | tr '\n' ' ')" test -z "$missing"
	missing=$(grep -oE '`make [a-z-]+' "$ROOT/$f" | sed 's/.* //' | sort -u | while read -r t; do grep -qE "^$t:" "$ROOT/Makefile" || echo "$t"; done)
	check "docs/targets-in-$f" "no such target: $(echo "$missing" | tr '\n' ' ')" test -z "$missing"
done
# deps-check and fuzzers are for other targets only.
missing=$(comm -23 <(sed -n 's/^\.PHONY: //p' "$ROOT/Makefile" | tr ' ' '\n' | grep -vxE 'deps-check|fuzzers' | sort) <(make -s -C "$ROOT" help | awk '{ print $1 }' | sort))
check docs/make-help "make help does not name: $(echo "$missing" | tr '\n' ' ')" test -z "$missing"
version=$("$ICFOLD" --version | sed -n '1s/icfold //p')
check docs/changelog-version "version $version is not in CHANGELOG.md" grep -qE "^## $version( |\$)" "$ROOT/CHANGELOG.md"
finish
