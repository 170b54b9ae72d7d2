#!/bin/bash
# a64.sh: the AArch64 decoder, and what it is told that instructions do, against GNU binutils and LLVM: a share of `make check-decoder-arm`.
# A disassembler that lies has to be noticed.
. "$(dirname "$0")/../../lib.sh"
if ! have aarch64-linux-gnu-objdump; then
	skip a64 "no aarch64-linux-gnu-objdump (binutils-aarch64-linux-gnu)"
	finish
fi
make_work
cd "$ROOT" || exit 1
program=$WORK/check_a64
if ! "${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -I. -O1 tests/judges/a64*.c elfrw/arch/aarch64_{decode,effect,memory}.c -o "$program" 2>"$WORK/log"; then
	not_ok a64/build "$(first_line "$WORK/log")"
	finish
fi
# Real code: the libraries of the cross compiler.
mapfile -t files < <(find /usr/aarch64-linux-gnu/lib -name '*.so.*' -type f 2>/dev/null)
[ ${#files[@]} != 0 ] || skip a64/files "no libc6-arm64-cross: random words only"

# judged NAME OPTION...: no difference, and some words were compared.
judged() {
	local name=$1
	shift
	if ! "$program" "$@" >"$WORK/log" 2>&1; then
		not_ok "a64/$name" "$(first_line "$WORK/log")"
	elif ! grep -qE ' [1-9][0-9]{5,} distinct words' "$WORK/log"; then
		not_ok "a64/$name" "$(tail -n 1 "$WORK/log")"
	else
		ok "a64/$name"
	fi
}
judged binutils --random "${RANDOM_WORDS:-1000000}" "${files[@]}"
found=
for llvm in llvm-objdump llvm-objdump-{19,18,17,16}; do
	version=$($llvm --version 2>/dev/null | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
	[ "${version:-0}" -lt 16 ] && continue
	found=$llvm
	break
done
if [ "$found" ]; then
	LLVM_OBJDUMP=$found OBJDUMP=$ROOT/tests/judges/a64_llvm.sh judged llvm --aliases --random 200000 "${files[@]}"
else
	skip a64/llvm "no LLVM 16 or later"
fi

# Lies, each by a disassembler that changes one thing.
cat >"$WORK/liar" <<'END'
#!/bin/sh
aarch64-linux-gnu-objdump "$@" | sed "$LIE"
END
chmod +x "$WORK/liar"
lies=0
for LIE in 's/\tbl\t/\tb\t/' 's/\tb\.hi\t/\thint\t#0x2\t/' 's/\(\tadrp\tx[0-9]*, 0x[0-9a-f]*\)[0-9a-f]000$/\1f000/' 's/\tldrb\t/\tldrh\t/' \
	's/\(\tadd\tx[0-9]*, x[0-9]*, #0x\)/\11/' 's/\tldp\tx\([0-9]*\), x[0-9]*,/\tldp\tx\1, x1,/' 's/\]!/]/' 's/, lsl #2$/, lsl #3/' \
	's/\tsubs\t/\tsub\t/' 's/\t\.inst\t.*/\tadd\tx0, x1, x2/' 's/\tcsel\t/\tcsinc\t/' 's/sxtw #2$/uxtw #2/' 's/\tmadd\tx\(.*\), xzr$/\tmadd\tx\1, x3/'; do
	lies=$((lies + 1))
	export LIE
	if OBJDUMP=$WORK/liar "$program" --random 400000 >"$WORK/log" 2>&1 || ! grep -q ' differences$' "$WORK/log"; then
		not_ok "a64/lie$lies" "not noticed: $LIE: $(tail -n 1 "$WORK/log")"
	else
		ok "a64/lie$lies"
	fi
done
finish
