#!/bin/bash
# lint.sh: the project's habits, as far as a program can check them.  Prints each breach; exit status 1 when there is one.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT" || exit 1
# Subshells find breaches, too, so the list is a file.
make_work
breach() { echo "lint: $1" | tee -a "$WORK/found"; }
each() { while IFS= read -r line; do breach "$1: $line"; done; }

# Every source of the program, and of the tests.
mapfile -t sources < <(git ls-files 'elfrw/*.[ch]' 'dwarf/*.[ch]' 'icf/*.[ch]')
mapfile -t tests < <(git ls-files 'tests/*.[ch]' 'tests/*.sh')
of() { printf '%s\n' "${sources[@]}" | grep "^$1/"; }

# Layers and families include downwards only, and no two files each other.
python3 tests/lint_graph.py | each "include"
grep -nE '^#include "[^/"]+"' "${sources[@]}" | grep -v '\.inc"' | each "include with its directory"
# e_machine is tested in one place.
grep -nE '\bEM_[A-Z0-9_]+' "${sources[@]}" | grep -vE '^elfrw/arch/' | each "machine numbers belong to elfrw/arch/"
# One place knows what an opcode means; all others ask for an instruction's effect.
grep -nE '(->|\.)(opcode|opcode_off|own_map|own_reg)\b|ELFRW_INSN_OWN' "${sources[@]}" | grep -v '^elfrw/arch/' |
	each "opcodes belong to elfrw/arch/"
# Only the files of commands print, and those that read command lines (--help).
grep -nE '\b(printf|puts|putchar|perror) *\(|\bfputs *\([^;]*, *std(out|err)|\bfprintf *\( *std(out|err)' "${sources[@]}" |
	grep -vE '^icf/cmd/([a-z]+/)?[a-z0-9_]+\.c:' | each "only icf/cmd/ prints"
# Size and shape: what clang-format decides, and what it cannot.
python3 tests/lint_form.py | each "form"
if have clang-format && clang-format --version | grep -q 'version 14\.'; then
	printf '%s\n' "${sources[@]}" "${tests[@]}" | grep '\.[ch]$' | xargs clang-format --dry-run -Werror 2>&1 | sed -n 's/: error: .*//p' |
		cut -d: -f1,2 | awk -F: '!seen[$1]++' | each "make format would change"
else
	echo "lint: no clang-format 14: the form is not checked"
fi
for f in "${sources[@]}" "${tests[@]}"; do
	n=$(wc -l <"$f")
	[ "$n" -gt 800 ] && breach "$f: $n lines"
	case $f in
	*.[ch])
		head -n 1 "$f" | grep -q '^/\*' || breach "$f: does not open with a comment"
		;;
	esac
	grep -nE '[[:space:]]+$' "$f" | head -n 1 | sed "s|^|$f:|" | each "white space at the end"
done
# Every external name carries the prefix of its directory; no mutable data of file scope (the out-of-memory error aside).
for d in elfrw:elfrw_ dwarf:dwr_ icf:icf_; do
	of "${d%:*}" | grep -v '^icf/lib/' | sed -n "s#^\(.*\)\.c\$#$BUILD/\1.o#p" | while IFS= read -r o; do
		nm -g --defined-only "$o" | awk -v p="${d#*:}" '$3 != "main" && $3 !~ "^_*" p && $3 !~ /^(__odr_asan|_GLOBAL_|__asan|__ubsan)/ { print $3 }' |
			{ case $o in */icf/cmd/open_libdw.o) grep -vxE 'open|open64' ;; *) cat ;; esac; } | # what libdw calls
			sed "s|^|${o#"$BUILD"/}: |" | each "prefix ${d#*:}"
		objdump -t "$o" | awk '$0 ~ / (\.data|\.bss|COMMON|\.tdata|\.tbss)(\.[^r][^\t]*)?\t/ && $NF !~ /^\./ && $NF !~ /nomem/ && $(NF - 1) != "0000000000000000" { print $NF }' |
			sed "s|^|${o#"$BUILD"/}: |" | each "mutable file-scope data"
	done
done
# The compilers, as strict as they get.
for cc in gcc clang; do
	have $cc || continue
	for f in "${sources[@]}"; do
		[ "${f%.c}" != "$f" ] || continue
		$cc -std=gnu17 -D_GNU_SOURCE -I. -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wno-missing-field-initializers \
			-Werror -O2 -c -o /dev/null "$f" 2>&1 | grep -E '(error|warning):' | head -n 3 | each "$cc"
	done
done
if have shellcheck; then
	git ls-files 'tests/*.sh' .ci/run | xargs shellcheck -x -S warning 2>&1 | grep -E '^In ' | each shellcheck
fi
# A machine's awk may be mawk; tests that hand it what only gawk knows may compare nothing, and pass.
git ls-files 'tests/*.sh' | xargs grep -nE '\b(strtonum|gensub|asorti?) ?\(|--non-decimal-data' | grep -v '\bgawk\b' | each "only gawk knows it"
if have mandoc; then
	mandoc -Tlint -W warning man/*.[1357] 2>&1 | each mandoc
fi
[ -s "$WORK/found" ] && exit 1
echo "lint: nothing found"
