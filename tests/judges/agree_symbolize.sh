#!/bin/bash
# agree_symbolize.sh FILE...: `icfold symbolize` and llvm-symbolizer say the same about COUNT (20000) random addresses of
# the code of each file: names (linkage names, so that the spelling of demangled ones does not count), files, lines,
# columns, discriminators, start lines and addresses, of every inlined frame.  SEED picks other addresses; LLVM names
# another llvm-symbolizer; AS asks it about another file with the same code (a file without dwz, for one).
#
# Left out, because llvm-symbolizer up to 19 is wrong there: the file name of a declaration ("Function start filename"),
# which it does not find when the abbreviation holds the number (DW_FORM_implicit_const, GCC 11 and later).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
COUNT=${COUNT:-20000}
SEED=${SEED:-1}
if [ -z "${LLVM:-}" ]; then
	for LLVM in llvm-symbolizer-19 llvm-symbolizer llvm-symbolizer-14; do have "$LLVM" && break; done
fi
have "$LLVM" || { skip agree "no llvm-symbolizer (Debian: llvm)"; finish; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

random_addresses() { # FILE
	readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk -v n="$COUNT" -v seed="$SEED" '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$7 ~ /AX/ && hex($5) { lo[++k] = hex($3); size[k] = hex($5); sum += size[k] }
		END {
			srand(seed)
			for (; n > 0 && k; n--) {
				x = int(rand() * sum)
				for (i = 1; x >= size[i]; i++) x -= size[i]
				printf "0x%x\n", lo[i] + x
			}
		}'
}

# One line for each answer: the paragraphs, with the lines joined.
joined() { grep -v '^  Function start filename:' | awk -v RS= '{ gsub(/\n/, " | "); print }'; }

for f; do
	name=agree/${f##*/}
	random_addresses "$f" >"$work/in"
	[ -s "$work/in" ] || { not_ok "$name" "no code"; continue; }
	"$ICFOLD" symbolize --obj="$f" --no-demangle --verbose -a <"$work/in" 2>"$work/err" | joined >"$work/ours"
	"$LLVM" --obj="${AS:-$f}" --no-demangle --verbose -a <"$work/in" 2>/dev/null | joined >"$work/theirs"
	differ=$(paste -d '\n' "$work/ours" "$work/theirs" | awk 'NR % 2 { a = $0; next } a != $0 { n++ } END { print n + 0 }')
	if [ -s "$work/err" ]; then
		not_ok "$name" "$(first_line "$work/err")"
	elif [ "$(wc -l <"$work/ours")" != "$(wc -l <"$work/in")" ]; then
		not_ok "$name" "not one answer for each address"
	elif [ "$differ" != 0 ]; then
		not_ok "$name" "$differ of $COUNT differ: $(paste -d '\n' "$work/ours" "$work/theirs" | awk 'NR % 2 { a = $0; next } a != $0 { print substr(a, 1, 300) " -- " substr($0, 1, 300); exit }')"
	else
		ok "$name"
	fi
done
finish
