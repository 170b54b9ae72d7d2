#!/bin/bash
# table_end.sh: where jump tables end.  Right behind a table are distances that count from their own places: in a section of their own,
# with a name, or known by a pointer only.  Counted from the table's start they would lead into the function that jumps through it,
# which does not move as the next one does.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/plant.sh
. "$TESTS/lib/plant.sh"
start_suite table_end python3
x86_only table_end

cat >behind0.c <<'END'
#include <stdio.h>
int f(int), g(int), one(int), two(int);
extern const struct { const int *from, *to; } lists;
int main(void)
{
	for (const int *p = lists.from; p < lists.to; p++)
		printf("%d ", (int)((const char *)p + *p - (const char *)g));
	return printf("%d %d %d %d %d %d\n", one(3), two(4), g(5), f(0), f(1), f(77)) < 0;
}
END
cat >behind1.s <<'END'
	.macro func name
	.p2align 4
	.globl \name
	.type \name, @function
\name:	.cfi_startproc
	.endm
	.macro end_func name
	.cfi_endproc
	.size \name, . - \name
	.endm
	.macro twin name
	func \name
	lea 7(%rdi,%rdi,2), %eax
	xor $85, %eax
	add $9, %eax
	ret
	end_func \name
	.endm
	twin one
	func f
	cmp $15, %edi
	ja 9f
	lea .Ltable(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	mov $5, %eax
	ret
2:	mov $6, %eax
	ret
9:	xor %eax, %eax
	.fill 64, 1, 0xfc
	ret
	end_func f
	twin two
	.ifdef far
	func between
	.fill 100, 1, 0xfc
	ret
	end_func between
	.endif
	func g
3:	lea 1(%rdi), %eax
4:	imul $3, %eax
	ret
	end_func g
	.section .rodata.zz, "a"
	.balign 4
.Ltable:
	.rept 8
	.long 1b - .Ltable, 2b - .Ltable
	.endr
	.ifdef apart
	.section .places, "a"
	.endif
	.ifdef named
	.type places, @object
places:	.size places, 8
	.endif
5:	.long 3b - ., 4b - .
6:	.section .data.rel.ro, "aw"
	.balign 8
	.globl lists
	.hidden lists
lists:	.quad 5b, 6b
	.section .note.GNU-stack, ""
END
# fold NAME [OPTION...]: behind folds, verify says equal, and the output prints what the input does.
fold() {
	local name=$1
	shift
	"$ICFOLD" -q --allow-growth --icf=all "$@" behind -o behind.out 2>err || { not_ok "$name" "does not fold: $(first_line err)"; return; }
	"$ICFOLD" verify --icf=all behind behind.out >verdict 2>&1
	check "$name" "verify: $(grep -m 1 expected verdict | cut -c 1-200)" grep -qx equal verdict
	check "$name/runs" "$(./behind.out 2>&1 | head -n 1)" test "$(./behind 2>&1)" = "$(./behind.out 2>&1)"
}
for ld in bfd gold lld mold; do
	have ld.$ld || have $ld || { skip table_end/$ld "no $ld"; continue; }
	for how in apart:-pie named:-pie plain:-pie plain:-no-pie far:-pie; do
		name=table_end/$ld/${how/:/} kind=${how%:*}
		# The distances may lead far away, so that only verify could take them for entries.
		[ "$kind" = far ] && kind=far=1,-defsym,apart
		gcc -O1 "${how#*:}" -fuse-ld=$ld behind0.c behind1.s -Wa,-defsym,"$kind"=1 -Wl,--emit-relocs -o behind 2>log ||
			{ not_ok "$name" "$(first_line log)"; continue; }
		fold "$name"
		fold "$name/in-place" --in-place
	done
done

# A table that swallowed the distances would have left them as they are, where g moves.  So does a fold without their relocations.
gcc -O1 -pie behind0.c behind1.s -Wa,-defsym,apart=1 -Wl,--emit-relocs -Wl,--build-id=none -o behind
python3 - <<'END'
import struct
b = bytearray(open('behind', 'rb').read())
off, n, names = struct.unpack_from('<Q', b, 40)[0], *struct.unpack_from('<HH', b, 60)
head = [struct.unpack_from('<IIQQQQ', b, off + 64 * i) for i in range(n)]
for h in head:
    if b[head[names][4] + h[0]:].split(b'\0')[0] == b'.rela.places':
        for at in range(h[4], h[4] + h[5], 24):
            struct.pack_into('<Q', b, at + 8, 0)
open('behind.less', 'wb').write(b)
END
chmod +x behind.less
"$ICFOLD" -q --allow-growth --icf=all behind.less -o behind.out
"$ICFOLD" verify --icf=all behind behind.out >verdict 2>&1
check table_end/less "verify: $(tail -n 1 verdict)" grep -qx equal verdict
check table_end/less/runs "$(./behind.out 2>&1 | head -n 1)" test "$(./behind)" = "$(./behind.out 2>&1)"
# That keeps what words without a relocation lead to from their own places.  Without this rule:
HERE=$PWD
cd "$ROOT" || exit 1
plant table_end/planted icf/infer/infer 's/ELFRW_TRY(icf_infer_bare(prog, NULL, threads));//'
cd "$HERE" || exit 1
"$WORK/planted" -q --allow-growth --icf=all behind.less -o behind.out
"$ICFOLD" verify --icf=all behind behind.out >verdict 2>&1
check table_end/planted "$(tail -n 1 verdict)" grep -q '^code addresses in data: word: ' verdict
finish
