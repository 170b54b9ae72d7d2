#!/bin/bash
# odd.sh: odd surroundings: pipes where files are expected, response files that name themselves, closed and full standard output, few
# descriptors, extended attributes and access control lists, notes that are no build-id.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite odd
export DEBUGINFOD_URLS=
cat >prog.c <<'END'
#define F(n) __attribute__((noinline, noclone)) int f##n(int x) { volatile int s = 0; for (int i = 0; i < x; i++) s += x > 99 ? i : i * 7 + s; return s + x; }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
int main(int n, char **v) { (void)v; return (f0(n) + f1(n) + f2(n) + f3(n) + f4(n) + f5(n) + f6(n) + f7(n)) & 0; }
END
if ! gcc -g -O1 -fno-ipa-icf -ffunction-sections -Wl,--emit-relocs -Wl,--build-id prog.c -o prog >log 2>&1 || ! "$ICFOLD" -q prog -o prog.f >log 2>&1; then
	not_ok odd/build "$(first_line log)"
	finish
fi
# ends NAME STATUS TEXT COMMAND...: soon, with this status and this message.
ends() {
	local name=$1 want=$2 text=$3 rc
	shift 3
	timeout 300 "$@" >out 2>err </dev/null
	rc=$?
	check "$name" "status $rc: $(first_line err)" eval "[ $rc = $want ] && grep -q -- '$text' err"
}

# --- pipes, and files that name themselves
mkfifo pipe
ends odd/pipe/response 2 'pipe: not a small regular file' "$ICFOLD" @pipe
ends odd/pipe/keep-unique-file 2 'pipe: not a small regular file' "$ICFOLD" --keep-unique-file=pipe prog -o x
ends odd/pipe/verify 2 'pipe: is no regular file' "$ICFOLD" verify prog pipe
ends odd/pipe/debug-file 2 ': pipe: not a regular file' "$ICFOLD" symbolize -e prog.f --debug-file=pipe 0x1000
for c in dump audit 'symbolize --core=x -e' 'symbolize 0 -e' 'inlines f0'; do
	# shellcheck disable=SC2086
	timeout 300 "$ICFOLD" $c pipe >out 2>err </dev/null
	rc=$?
	check "odd/pipe/${c%% *}" "status $rc" [ $rc = 2 ]
done
# A linker may read a pipe, which cannot be read twice.
cat >ld <<-'END'
	#!/bin/sh
	echo linked >linked
END
chmod +x ld
ends odd/pipe/wrapper 0 'pipe: not a small regular file; linked without folding' "$ICFOLD" --linker-wrapper -- ./ld @pipe -o x
check odd/pipe/wrapper-linked "the linker did not run" [ -e linked ]
rm -f linked
ends odd/pipe/wrapper-fatal 1 'pipe: not a small regular file$' "$ICFOLD" --linker-wrapper --fatal-warnings -- ./ld @pipe -o x
check odd/pipe/wrapper-fatal-linked "the linker ran" [ ! -e linked ]
for i in 1 2 3; do printf "@list$((i + 1)) %.0s" {1..200} >list$i; done
: >list4
ends odd/response/many 2 'too many response files' "$ICFOLD" @list1
for depth in 2147483647 99999999999999999999; do
	ICFOLD_LINKER_WRAPPER_DEPTH=$depth ends "odd/depth/$depth" 1 'is icfold again' "$ICFOLD" --linker-wrapper -- ./ld -o x
done

# --- nowhere to print to
for c in '' fold verify symbolize inlines profile symbols dump audit --linker-wrapper 'help dump'; do
	for o in --help --version; do
		case $c:$o in help*:--help | --linker*:--version) continue ;; help*) o= ;; esac
		# shellcheck disable=SC2086
		"$ICFOLD" $c $o >&- 2>err
		rc=$?
		# shellcheck disable=SC2086
		"$ICFOLD" $c $o >/dev/full 2>err
		full=$?
		check "odd/closed/$c $o" "status $rc and $full" [ "$rc $full" = "2 2" ]
	done
done

# --- few descriptors: trouble, and nothing about the files
for n in 4 5 6 7 8 9 10 11 12 13; do
	(ulimit -n $n && exec "$ICFOLD" verify prog prog.f) >out 2>err
	rc=$?
	check "odd/descriptors/$n/verify" "status $rc: $(tail -n 1 out) $(first_line err)" [ $rc = 0 -o $rc = 2 ]
	rm -f x
	(ulimit -n $n && exec "$ICFOLD" -q --verify prog -o x) >out 2>err
	rc=$?
	check "odd/descriptors/$n/fold" "status $rc: $(first_line err)" eval "{ [ $rc = 0 ] && cmp -s x prog.f; } || { [ $rc = 2 ] && [ ! -e x ]; }"
done

# --- extended attributes
# attributes FILE: all of them, and the mode; attribute FILE NAME HEX: sets one
attributes() { python3 -c 'import os, sys; f = sys.argv[1]; print(oct(os.stat(f).st_mode), {k: os.getxattr(f, k) for k in sorted(os.listxattr(f))})' "$1"; }
attribute() { python3 -c 'import os, sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))' "$@" 2>/dev/null; }
# The owner rwx, user 1234 rwx, the owning group r--, the mask rwx, others r--.
list=0200000001000700ffffffff02000700d204000004000400ffffffff10000700ffffffff20000400ffffffff
if ! have python3 || ! attribute prog.f user.icfold 01; then
	skip odd/attributes "no extended attributes here"
else
	cp prog kept && attribute kept user.note 6e6f7465
	attribute kept system.posix_acl_access $list || echo "# no access control lists here"
	want=$(attributes kept)
	# Attributes of root's that depend on the bytes (capabilities) are not kept.
	attribute kept security.capability 0100000200200000000000000000000000000000
	"$ICFOLD" -q kept -o kept >log 2>&1
	check odd/attributes/kept "$(attributes kept) for $want" [ "$(attributes kept)" = "$want" ]
	check odd/attributes/folded "$(first_line log)" cmp -s kept prog.f
	mkdir folder
	if attribute folder system.posix_acl_default $list; then
		cp prog folder/prog && python3 -c 'import os; os.removexattr("folder/prog", "system.posix_acl_access")' && chmod 755 folder/prog
		"$ICFOLD" -q folder/prog -o folder/prog >log 2>&1
		check odd/attributes/of-folder "$(attributes folder/prog)" [ "$(attributes folder/prog)" = "0o100755 {}" ]
	fi
fi

# --- build-ids that are none: SIZE of the name, SIZE of the contents, bytes that there are; how the section is aligned, what else is in it
while read -r how name size bytes align more; do
	align=${align:-.p2align;2}
	cat >id.s <<-END
		.globl _start,f,g
		_start: call f
		call g
		ret
		.type f,@function
		f: mov \$7,%eax
		ret
		.size f,.-f
		.type g,@function
		g: mov \$7,%eax
		ret
		.size g,.-g
		.section .note.x,"a",@note
		${align//;/ }
		.long $name,$size,3
		.asciz "GNU"
		.fill $bytes,1,0xab
		${align//;/ }
		$more
	END
	if ! as id.s -o id.o 2>log || ! ld -q id.o -o "id.$how" 2>log || ! objcopy --rename-section .note.x=.note.gnu.build-id "id.$how" 2>log; then
		skip "odd/build-id/$how" "$(first_line log)"
		continue
	fi
	bad=
	for c in "-q --allow-growth id.$how -o id.folded" "audit id.$how" "symbolize -e id.$how --debug-file=prog 0x401000" "verify prog id.$how" "dump id.$how"; do
		# shellcheck disable=SC2086
		timeout 300 "$ICFOLD" $c >out 2>err
		rc=$?
		{ [ $rc -le 2 ] && ! grep -q 'Sanitizer\|runtime error' err; } || bad="$c: status $rc: $(first_line err)"
	done
	if "$ICFOLD" -q --allow-growth "id.$how" -o id.folded 2>/dev/null && ! "$ICFOLD" verify -q "id.$how" id.folded >out 2>&1; then
		bad="verify: $(first_line out)"
	fi
	check "odd/build-id/$how" "$bad" [ -z "$bad" ]
done <<'END'
none 4 0 0
one 4 1 1
long 4 64 64
longer 4 65 65
huge 4 60000 60000
lie 4 0x7fffffff 20
wraps 4 0xffffffff 20
name 0xfffffffd 20 20
twice 4 20 20 .p2align;2 .long 4,20,3; .asciz "GNU"; .fill 20,1,0xcd
cut-twice 4 20 20 .p2align;2 .long 4,20,3; .asciz "GNU"; .fill 7,1,0xcd
eight 4 20 20 .p2align;3
odd-end 4 19 19 .p2align;0 .long 4,20,3; .asciz "GNU"; .fill 20,1,0xcd
odd-start 4 20 20 .byte;1
END
finish
