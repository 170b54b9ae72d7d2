#!/bin/bash
# completions.sh: the completions of bash, zsh and fish name each command's options as its --help does, and work.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite completions
D=$ROOT/completions
commands=$(tool_commands)

in_bash() { bash --norc -c '. "$1"; _icfold_options "$2"' - "$D/icfold.bash" "$1" | tr ' \t' '\n\n' | sed 's/=$//' | sed '/^$/d' | sort -u; }
in_zsh() {
	awk -v c="$1" '$1 == c ")" || (c == "fold" && /fold_options=\($/) { on = 1; next } on && /^\t*\)$/ { exit } on { print }' "$D/_icfold" |
		grep -oE "'\*?--?[A-Za-z][a-z-]*[a-zA-Z]*" | tr -d "'*" | sort -u
}
in_fish() {
	grep -F -- "'__icfold_is $1'" "$D/icfold.fish" | sed "s/ -[ad] '.*//" | grep -oE -- '-(l [a-z-]+|s [A-Za-z])' | sed 's/^-l /--/; s/^-s /-/' | sort -u
}
for c in $commands; do
	help_options "$c" >help
	check "completions/help-$c" "no options" test -s help
	for shell in bash zsh fish; do
		in_$shell "$c" >named
		check "completions/$shell-$c" "in --help only: $(comm -23 help named | tr '\n' ' ') in the completion only: $(comm -13 help named | tr '\n' ' ')" cmp -s help named
	done
done

# --- bash for real
: >file.txt
mkdir -p dir
complete_bash() { # WORD...: the candidates for the last word
	bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _icfold 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' - "$D/icfold.bash" "$@" | sort | tr '\n' ' '
}
bash_gives() { # NAME WANT WORD...
	local got
	got=$(complete_bash "${@:3}")
	check "completions/bash-$1" "gives $got" test "$got" = "$2"
}
bash_gives command 'symbolize ' icfold symboli
bash_gives command-or-file 'dump ' icfold dum
bash_gives file 'file.txt ' icfold fil
bash_gives option '--icf= ' icfold --ic
bash_gives wrapper '--linker-wrapper ' icfold --link
bash_gives value 'safe ' icfold --icf = sa
bash_gives values 'all none safe ' icfold --icf =
bash_gives values-of-verify 'all safe ' icfold verify --icf =
bash_gives value-apart 'safe ' icfold --icf sa
bash_gives values-of-audit 'csv github gitlab json sarif text ' icfold audit --format =
bash_gives rows 'file.txt ' icfold audit --rows = "fi"
bash_gives help 'symbolize symbols ' icfold help sym
bash_gives file-value 'file.txt ' icfold --map = "fi"
bash_gives output 'file.txt ' icfold prog -o "fi"
bash_gives dir-value 'dir ' icfold symbolize --debug-file-directory = d
bash_gives command-option '--no-debug ' icfold verify --no-d
bash_gives linker-option '-q ' icfold --linker-wrapper -q
bash_gives wrapper-option '--fatal-warnings ' icfold --linker-wrapper --f
check completions/bash-linker "$(complete_bash icfold --linker-wrapper -- bas)" bash -c "[[ ' $(complete_bash icfold --linker-wrapper -- bas)' == *' bash '* ]]"
bash_gives linker-file 'file.txt ' icfold --linker-wrapper -- ld "fi"
bash --norc -c 'complete -p icfold >/dev/null 2>&1 && exit 1; . "$1"; complete -p icfold >/dev/null' - "$D/icfold.bash"
check completions/bash-registered "no completion for icfold" test $? = 0

# --- files with odd names, in a terminal
for shell in bash zsh fish; do
	have $shell || { skip completions/$shell-odd-names "no $shell"; continue; }
	have python3 || { skip completions/$shell-odd-names "no python3"; continue; }
	timeout 300 python3 "$TESTS/judges/odd_names.py" $shell "$D" "$WORK/odd.$shell" >odd.out 2>&1
	check completions/$shell-odd-names "$(head -n 3 odd.out | tr '\n' '|')" grep -qxzE '# [0-9]+ tried.' odd.out
done

# --- fish
if have fish; then
	complete_fish() { fish --no-config -c "source $D/icfold.fish; complete -C '$1'" 2>/dev/null | cut -f 1 | sort | tr '\n' ' '; }
	fish_gives() {
		local got
		got=$(complete_fish "$3")
		check "completions/fish-$1" "gives $got" test "$got" = "$2"
	}
	fish_gives command 'symbolize ' 'icfold symboli'
	fish_gives value '--icf=safe ' 'icfold --icf=s'
	fish_gives command-option '--no-debug ' 'icfold verify --no-d'
	fish_gives wrapper '--linker-wrapper ' 'icfold --linker'
	fish_gives other-commands-option '' 'icfold dump --no-d'
else
	skip completions/fish "no fish"
fi

# --- zsh, in a terminal of its own
if have zsh; then
	cat >zsh.try <<'X'
zmodload zsh/zpty || exit 3
zpty z zsh -f -i
zpty -w z "PS1= PS2= ; fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u; bindkey '^I' complete-word; echo re''ady"
zpty -r -m z out '*ready*' || exit 3
zpty -w -n z "icfold $2"$'\t'
zpty -w -n z $'\C-a\C-q: \C-e ; echo en\'\'d\n'
zpty -r -m z out '*end*'
print -r -- "$out"
X
	zsh_gives() { # NAME WANT LINE
		timeout 300 zsh -f zsh.try "$D" "$3" >zsh.out 2>&1
		check "completions/zsh-$1" "gives $(tr -d '\r' <zsh.out | tail -n 3 | tr '\n' ' ' | cut -c 1-200)" grep -qF -- "$2" zsh.out
	}
	zsh_gives command 'icfold symbolize' symboli
	zsh_gives command-option 'verify --no-debug' 'verify --no-d'
	zsh_gives value '--icf=safe' '--icf=s'
else
	skip completions/zsh "no zsh"
fi
finish
