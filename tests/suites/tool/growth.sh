#!/bin/bash
# growth.sh: inputs whose cost was once the square of their size, at a size at which a square would fail: an upper bound of processor
# time and of memory for each.  `make growth` measures how cost grows.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool growth
x86_only growth
have python3 || { skip growth "no python3"; finish; }
make_work
slow=1
grep -q __asan_init "$ICFOLD" && slow=10

cat >"$WORK/bounded.py" <<'END'
import os, resource, sys
seconds, most = int(sys.argv[1]), int(sys.argv[2])
pid = os.fork()
if pid == 0:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    os.execv(sys.argv[3], sys.argv[3:])
_, status, use = os.wait4(pid, 0)
if most and use.ru_maxrss >> 10 > most:
    sys.exit("%d MB of memory, %d are enough" % (use.ru_maxrss >> 10, most))
if os.WIFSIGNALED(status):
    sys.exit("signal %d after %.1f s of %d" % (os.WTERMSIG(status), use.ru_utime, seconds))
sys.exit(os.WEXITSTATUS(status))
END

# bounded NAME SECONDS MEGABYTES COMMAND...: within this processor time and memory (of a plain build), and with status 0.
bounded() {
	local name=$1 seconds=$(($2 * slow)) mega=$3 rc
	shift 3
	[ $slow = 1 ] || mega=0
	python3 "$WORK/bounded.py" "$seconds" "$mega" "$@" >"$WORK/out" 2>"$WORK/err"
	rc=$?
	check "growth/$name" "exit status $rc: $(first_line "$WORK/err")" [ $rc = 0 ]
}

# of KIND N SECONDS MEGABYTES COMMAND...: the program FILE (folded: OUT) that has N of a kind.
of() {
	local kind=$1 n=$2 seconds=$3 mega=$4 c
	shift 4
	FILE=$WORK/$kind.$n OUT=$FILE.folded
	python3 "$TESTS/growth/gen.py" "$kind" "$n" "$WORK" 2>"$WORK/err" || { not_ok "growth/$kind" "$(first_line "$WORK/err")"; return; }
	for c in fold "$@"; do
		case $c in
		fold) bounded "$kind/fold" "$seconds" "$mega" "$ICFOLD" -q --emit-relocs "$FILE" -o "$OUT" ;;
		verify) bounded "$kind/verify" "$seconds" "$mega" "$ICFOLD" verify "$FILE" "$OUT" ;;
		audit) bounded "$kind/audit" "$seconds" "$mega" "$ICFOLD" audit "$FILE" ;;
		why) bounded "$kind/audit --why" "$seconds" "$mega" "$ICFOLD" audit --json '--why=*' "$FILE" ;;
		html) bounded "$kind/audit --html" "$seconds" "$mega" "$ICFOLD" audit "--html=$WORK/page.html" "$FILE" ;;
		symbolize) bounded "$kind/symbolize" "$seconds" "$mega" "$ICFOLD" symbolize -i -e "$OUT" <"$FILE.at" ;;
		esac
	done
}

of chains 16000 3 1000 verify audit why
of chains-stay 16000 3 1000 verify
of rings-odd 16000 3 1000 verify audit why
of sections 24000 2 100 verify audit
of unloaded-sections 24000 2 100 verify
of table-reads 3000 2 60 audit
of one-unit 20000 2 100 audit
of distances 40000 2 60 verify audit
of named-distances 40000 2 60 verify audit
of suffixes 16000 4 60 verify audit html
of shared-list-functions 3000 3 60 symbolize verify
of shared-list 3000 2 60 verify
of shared-locations 3000 2 60 verify
of units 3000 2 100 verify
of abbreviation-tables 3000 2 100 verify
of depth 32000 2 60 verify
of function-ranges 32000 2 100 verify

# Calls of merged functions in code that takes their addresses.
python3 "$TESTS/growth/gen.py" guesses 40000 "$WORK"
bounded "guesses/fold --icf=all" 1 60 "$ICFOLD" -q --icf=all "$WORK/guesses.40000" -o "$WORK/guesses"
bounded "guesses/verify --icf=all" 2 60 "$ICFOLD" verify --icf=all "$WORK/guesses.40000" "$WORK/guesses"

# refused KIND N COMMAND TEXT: a file out of all proportion is refused; verify does so within a second of processor time.
refused() {
	local name="$1 is refused by $3" file=$WORK/$1.$2
	python3 "$TESTS/growth/gen.py" "$1" "$2" "$WORK" 2>"$WORK/err" || { not_ok "growth/$name" "$(first_line "$WORK/err")"; return; }
	if ! "$ICFOLD" -q "$file" -o "$file.folded" 2>"$WORK/err"; then
		# Something to compare for verify: a copy with another byte in its middle.
		cp "$file" "$file.folded"
		printf '\377' | dd of="$file.folded" bs=1 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc 2>"$WORK/dd"
	fi
	[ "$3" = fold ] || python3 "$WORK/bounded.py" $slow 0 "$ICFOLD" verify "$file" "$file.folded" >"$WORK/out" 2>"$WORK/err"
	check "growth/$name" "$(first_line "$WORK/err")" grep -q "$4" "$WORK/err"
	rm -f "$file" "$file.folded" "$file.at"
}
refused shared-folded-list 3000 fold 'overlap each other too much'
refused suffixes 50000 verify 'too long together.*(.symtab)'
# A row of one byte needs 32 in memory.
refused line-bytes 2200000 fold 'line number sequence of 2200000 rows.*(.debug_line, offset 0x25)'
refused line-bytes 2200000 verify 'rows in one line table are too many.*(.debug_line, 0x0)'

# Code without bounds that names one place in a large object after the other, and places in the code near it; nothing else has a name.
cat >"$WORK/gap.py" <<'END'
import random, sys
arm, n, words = sys.argv[1] == "aarch64", 5000, 200000
random.seed(1)
name = "adrp x18,D+%d\nadd x18,x18,:lo12:D+%d" if arm else "lea D+%d(%%rip),%%rcx # %d"
code = "adr x19,.L%d\nldr x17,[x20,#8]\nbr x17" if arm else "lea .L%d(%%rip),%%rdx\nmov 8(%%rbp),%%rax\njmp *%%rax\n.byte 6"
value = "ldr x1,[x0]\n.rept 20\nmul x1,x1,x1\n.endr\nmov x0,x1\nret" if arm else "mov (%rdi),%rax\n.rept 20\nimul %rax,%rax\n.endr\nret"
print(".text")
for f in "_start", "f", "g":
    print(".p2align 4\n.globl %s\n.type %s,%%function\n%s: .cfi_startproc\n%s\n.cfi_endproc\n.size %s,.-%s" % (f, f, f, value, f, f))
for k in range(n):
    off = 8 * random.randrange(words)
    print(".L%d: %s\n%s" % (k, name % (off, off), code % max(0, k - 5)))
print(".data\n.p2align 3\nD:")
for k in range(words):
    print(".quad %d" % (random.randrange(1 << 64) if sys.argv[2] == "random" else 1))
END
# gap ARCH WORDS PREFIX [LD-OPTION]...: the same for one machine; WORDS: what the object holds (ones or random numbers).
gap() {
	local name="gap $1 $2" words=$2 prefix=$3 file=$WORK/gap
	if ! have "${prefix}as"; then
		skip "growth/$name" "no ${prefix}as"
		return
	fi
	python3 "$WORK/gap.py" "$1" "$words" >"$file.s"
	shift 3
	if "${prefix}as" "$file.s" -o "$file.o" 2>"$WORK/err" && "${prefix}ld" "$@" -s "$file.o" -o "$file" 2>"$WORK/err"; then
		bounded "$name" 3 80 "$ICFOLD" -q --allow-growth "$file" -o "$file.folded"
		bounded "$name/verify" 3 80 "$ICFOLD" verify "$file" "$file.folded"
	else
		not_ok "growth/$name" "$(first_line "$WORK/err")"
	fi
}
for words in ones random; do
	gap x86_64 $words "" -shared
	gap aarch64 $words aarch64-linux-gnu-
done

# A stack in a core file; each frame may be any of many functions.
python3 "$TESTS/growth/gen.py" equal 60000 "$WORK"
if "$ICFOLD" -q "$WORK/equal.60000" -o "$WORK/equal.folded" && python3 "$TESTS/growth/core.py" "$WORK/equal.folded" "$WORK/equal.60000.at" "$WORK/core" stack 30; then
	bounded "equal/core" 1 100 "$ICFOLD" symbolize --core="$WORK/core" -e "$WORK/equal.folded"
	check "growth/equal/core/text" "no candidates" grep -q '^one of: ' "$WORK/out"
fi

# A deep stack.
python3 "$TESTS/growth/gen.py" core-stack 60000 "$WORK"
if "$ICFOLD" -q "$WORK/core-stack.60000" -o "$OUT" && python3 "$TESTS/growth/core.py" "$OUT" "$WORK/core-stack.60000.at" "$WORK/core" stack 60000; then
	bounded core-stack/core 1 100 "$ICFOLD" symbolize --core="$WORK/core" -e "$OUT"
	check growth/core-stack/core/text "$(grep -c '^u.c:' "$WORK/out") frames" [ "$(grep -c '^u.c:' "$WORK/out")" = 60001 ]
fi

# Profiles and logs.
python3 "$TESTS/growth/texts.py" "$WORK"
if as --64 "$WORK/many.s" -o "$WORK/many.o" 2>"$WORK/err" && ld --emit-relocs -o "$WORK/many" "$WORK/many.o" 2>"$WORK/err" &&
	"$ICFOLD" -q --icf=all "$WORK/many" -o "$WORK/many.folded" 2>"$WORK/err"; then
	# The names in the texts are those of the folded file.
	nm "$WORK/many.folded" >"$WORK/many.at" && python3 "$TESTS/growth/texts.py" "$WORK" && mv "$WORK/many" "$WORK/many.old" && cp "$WORK/many.folded" "$WORK/many"
	for t in no-frame no-place no-branch no-record no-end inlined; do
		# Most are no profile at all.
		bounded "texts/$t/profile" 3 80 /bin/sh -c '"$1" profile -q "$2" "$3" >/dev/null 2>&1; [ $? -le 2 ]' sh "$ICFOLD" "$WORK/many" "$WORK/$t"
	done
	for t in no-frame-short no-place-short no-end inlined files spelled; do
		bounded "texts/$t/perf" 3 80 "$ICFOLD" symbolize --perf "$WORK/$t"
	done
	for t in spelled.log stack.log; do bounded "texts/$t" 3 60 "$ICFOLD" symbolize --log "$WORK/$t"; done
	for t in pairs pointed full all; do
		for how in kept spread; do
			[ $t-$how != full-spread ] || continue # it divides each counter by all functions
			bounded "texts/$t.gmon/$how" 3 300 /bin/sh -c '"$1" profile -q --to=gmon --undecided="$2" "$3" "$4" >"$5" 2>"$5.err"; [ $? -le 2 ]' sh "$ICFOLD" $how "$WORK/many" "$WORK/$t.gmon" "$WORK/gmon"
			check "growth/texts/$t.gmon/$how/size" "$(stat -c %s "$WORK/gmon") bytes" [ "$(stat -c %s "$WORK/gmon")" -lt 100000000 ]
			check "growth/texts/$t.gmon/$how/said" "$(first_line "$WORK/gmon.err")" [ "$(grep -cv '^icfold: .*\(too many\)' "$WORK/gmon.err")" = 0 ]
		done
	done
	for how in kept spread; do
		bounded "texts/names.callgrind/$how" 4 150 /bin/sh -c '"$1" profile -q --undecided="$2" "$3" "$4" >/dev/null 2>"$5"; [ $? -le 2 ]' sh "$ICFOLD" $how "$WORK/many" "$WORK/names.callgrind" "$WORK/said"
	done
	"$ICFOLD" profile "$WORK/many" "$WORK/large.callgrind" >"$WORK/out" 2>"$WORK/err"
	check growth/texts/large.callgrind "$(first_line "$WORK/err")" grep -q ': 18446744073709551615 calls: .*, 18446744073709551615 undecided (100.00 %)' "$WORK/err"
	rm -f "$WORK/gmon" "$WORK/no-end" "$WORK/stack.log"
else
	not_ok growth/texts "$(first_line "$WORK/err")"
fi

# Folds that stop at nothing that a stack may show: f calls a ring of functions, g, folded into it, one of another length.
cat >"$WORK/ring.py" <<'END'
n, out = 3000, [".text"]
def func(name, body):
    out.append(".p2align 4,0x90\n.globl %s\n.type %s,@function\n%s: %s\n.size %s,.-%s" % (name, name, name, body, name, name))
def call(name, k):
    return "subq $8,%%rsp\ncall %s\naddq $8,%%rsp\nmovl $%d,%%eax\nimull $3,%%eax,%%ecx\nret" % (name, k)
for name, callee, k in (("_start", "f", 1), ("other", "g", 2), ("f", "a0", 5), ("g", "b0", 5)):
    func(name, call(callee, k) if k < 5 else "imull $3,%eax,%eax\n" * 30000 + call(callee, k)) # or it would not pay
rings = [("a", n), ("b", n + 1)]
for c, m in rings:
    for i in range(m):
        func("%s%d" % (c, i), "{disp32} jmp %s%d" % (c, (i + 1) % m))
print("\n".join(out + [".data"] + [".quad %s%d" % (c, i) for c, m in rings for i in range(m)]))
END
objects=$(cd "$ROOT" && find elfrw dwarf icf -name '*.c' ! -path 'icf/lib/*' | sed "s|^|$BUILD/|;s|c\$|o|")
if [ $slow = 1 ] && [ -f "$BUILD/icf/fold/partners.o" ]; then
	echo 'void *__wrap_icf_keep_partners(void *prog, void *plan); void *__wrap_icf_keep_partners(void *prog, void *plan) { (void)prog; (void)plan; return 0; }' >"$WORK/bold.c"
	python3 "$WORK/ring.py" >"$WORK/ring.s"
	# shellcheck disable=SC2086
	if "${CC:-gcc}" -Wl,--wrap=icf_keep_partners -o "$WORK/bold" "$WORK/bold.c" $objects \
		-ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread 2>"$WORK/err" &&
		as --64 "$WORK/ring.s" -o "$WORK/ring.o" && ld --emit-relocs "$WORK/ring.o" -o "$WORK/ring" &&
		"$WORK/bold" --emit-relocs "$WORK/ring" -o "$WORK/ring.out" >"$WORK/said"; then
		bounded "rings that pair off/verify" 3 1000 "$ICFOLD" verify "$WORK/ring" "$WORK/ring.out"
		check "growth/rings that pair off/claim" "no fold" grep -q ', 1 of them folded' "$WORK/out"
	else
		not_ok "growth/rings that pair off" "$(first_line "$WORK/err")"
	fi

	# A hash that is the same for all; a hostile file can achieve this for the real hash.
	echo '#include "icf/fold/fold.h"
struct elfrw_err *__wrap_icf_hash_unit(const struct icf_program *prog, enum icf_mode mode, uint32_t i, struct icf_canon_scratch *s, struct icf_hash *ret);
struct elfrw_err *__wrap_icf_hash_unit(const struct icf_program *prog, enum icf_mode mode, uint32_t i, struct icf_canon_scratch *s, struct icf_hash *ret)
{
	(void)prog, (void)mode, (void)i, (void)s;
	*ret = (struct icf_hash){ 0 };
	return NULL;
}' >"$WORK/weak.c"
	# shellcheck disable=SC2086
	if "${CC:-gcc}" -D_GNU_SOURCE -I"$ROOT" -Wl,--wrap=icf_hash_unit -o "$WORK/weak" "$WORK/weak.c" $objects \
		-ldw -lelf -lxxhash -lz -lzstd -l:libiberty.a -lpthread 2>"$WORK/err" && python3 "$TESTS/growth/gen.py" groups 8000 "$WORK"; then
		bounded "one hash for all/fold" 3 100 "$WORK/weak" -q "$WORK/groups.8000" -o "$WORK/weak.out"
		bounded "one hash for all/verify" 3 100 "$ICFOLD" verify "$WORK/groups.8000" "$WORK/weak.out"
	else
		not_ok "growth/one hash for all" "$(first_line "$WORK/err")"
	fi
else
	skip "growth/rings that pair off" "no plain build in $BUILD"
fi
finish
