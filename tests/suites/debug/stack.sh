#!/bin/bash
# stack.sh: `icfold symbolize --stack` on folded programs names the functions that gdb's backtraces of the unfolded programs name.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite stack python3

# Stops at every function named in the first file and writes each stack it sees there as "NAME ADDRESS" lines, as linked,
# a stack ending with an empty line.  Frames of tail calls, which gdb makes up, are on no real stack.
cat >record.py <<'EOF2'
import gdb, os
gdb.execute("set pagination off")
gdb.execute("set width 0")
names = open(os.environ["NAMES"]).read().split()
linked = int(os.environ["MAIN"], 16)
for n in names:
    gdb.execute("break " + n, to_string=True)
gdb.execute("run > /dev/null", to_string=True)
out = open(os.environ["STACKS"], "w")
seen = set()
while gdb.selected_inferior().pid:
    base = int(gdb.parse_and_eval("(unsigned long)&main")) - linked
    frame, stack = gdb.newest_frame(), ""
    while frame:
        if frame.type() != gdb.TAILCALL_FRAME:
            stack += "%s %x\n" % (frame.name(), frame.pc() - base)
        frame = frame.older()
    if stack not in seen:
        seen.add(stack)
        out.write(stack + "\n")
    gdb.execute("continue", to_string=True)
out.close()
EOF2
# judge.py MAP STACKS addresses: the stacks in addresses of the folded program.
# judge.py MAP STACKS JSON: compares; the calls through use_either alone may be undecided.
cat >judge.py <<'EOF2'
import json, sys
unit = []
for line in open(sys.argv[1]):
    w = line.split()
    if len(w) > 3 and not line.startswith("#"):
        unit.append([int(x, 16) for x in w[:3]])
def moved(address, pc):
    for old, size, new in unit:
        if old <= address - (not pc) < old + size:
            return new + address - old
    return 0
stacks = [[(l.split()[0], int(l.split()[1], 16)) for l in s.splitlines()] for s in open(sys.argv[2]).read().split("\n\n") if s.strip()]
if sys.argv[3] == "addresses":
    for s in stacks:
        for i, (name, address) in enumerate(s):
            print("0x%x" % moved(address, i == 0))
        print()
    sys.exit()
answers = [json.loads(l) for l in open(sys.argv[3])]
if len(answers) != len(stacks):
    sys.exit("%d stacks, %d answers" % (len(stacks), len(answers)))
levels, by, undecided = 0, {}, 0
for s, a in zip(stacks, answers):
    if len(s) != len(a):
        sys.exit("%d levels, %d answers: %s" % (len(s), len(a), s))
    for i, ((name, address), e) in enumerate(zip(s, a)):
        if e["Address"] != "0x%x" % moved(address, i == 0):
            sys.exit("address %s for %x" % (e["Address"], address))
        m = e.get("Merged")
        if m:
            by[m["By"]] = by.get(m["By"], 0) + 1
            if m["Decided"] != (len(m["Candidates"]) == 1) or name not in m["Candidates"]:
                sys.exit("%s in %s: %s" % (name, s, m))
            if not m["Decided"]:
                undecided += 1
                if i or s[1][0] != "use_either" or m["By"] or sorted(m["Candidates"]) != ["leaf_c", "leaf_d"]:
                    sys.exit("undecided: %s in %s" % (m, s))
                continue
        if e["Symbol"][-1]["FunctionName"] != name:
            sys.exit("%s is named %s in %s" % (name, e["Symbol"][-1]["FunctionName"], s))
        levels += 1
print("%d stacks, %d levels right, %d undecided, by %s" % (len(stacks), levels, undecided,
      " ".join("%s %d" % (k, by[k]) for k in sorted(by, key=str))))
EOF2

# --- real stacks ------------------------------------------------------------------------------------------------------
traced=
have gdb && can_trace && traced=1
for opt in "-O0" "-O1" "-O2" "-O2 -no-pie" "-O2 -gdwarf-4"; do
	name=chains$(echo "$opt" | tr -d ' ')
	# shellcheck disable=SC2086
	if ! "${CC:-gcc}" "$FIXTURES/calls_gcc/chains.c" -g $opt -ffunction-sections -Wl,--emit-relocs -o "$name" >log 2>&1; then
		skip "stack/$name" "does not build: $(first_line log)"
		continue
	fi
	if ! "$ICFOLD" -q --map="$name.map" "$name" -o "$name.folded" >log 2>&1; then
		not_ok "stack/$name" "folding: $(first_line log)"
		continue
	fi
	[ -n "$traced" ] || { skip "stack/$name" "gdb does not run programs here"; continue; }
	# Functions that share their code.
	awk '{ n[$3]++; name[NR] = $4; at[NR] = $3 } END { for (i = 1; i <= NR; i++) if (n[at[i]] > 1) print name[i] }' "$name.map" >names
	NAMES=names STACKS=$name.stacks MAIN=$(symbol_value "$name" main) timeout 400 gdb -nx -batch -x record.py "$name" >log 2>&1
	if [ ! -s "$name.stacks" ]; then
		not_ok "stack/$name" "gdb saw no stack: $(tail -n 1 log)"
		continue
	fi
	python3 judge.py "$name.map" "$name.stacks" addresses >addresses
	"$ICFOLD" symbolize --stack -e "$name.folded" --output-style=JSON <addresses >json 2>log
	rc=$?
	check "stack/$name/quiet" "rc $rc: $(first_line log)" [ "$rc:$(wc -c <log)" = 0:0 ]
	if out=$(python3 judge.py "$name.map" "$name.stacks" json 2>&1); then ok "stack/$name: $out"; else not_ok "stack/$name" "$out"; fi
	if have jq; then
		check "stack/$name/jq" "jq does not take it" [ "$(jq -c type json 2>/dev/null | sort -u)" = '"array"' ]
	else
		skip "stack/$name/jq" "no jq"
	fi
	"$ICFOLD" symbolize --stack -e "$name.folded" --output-style=JSON -p <addresses >json.pretty 2>&1
	check "stack/$name/pretty" "other contents" python3 -c '
import json, sys
d, t, got = json.JSONDecoder(), open("json.pretty").read(), []
while t:
    v, n = d.raw_decode(t)
    got.append(v)
    t = t[n:].lstrip()
sys.exit(got != [json.loads(l) for l in open("json")])'
done

# --- tail calls, text, and tables elsewhere -----------------------------------------------------------------------------
# after FILE FUNCTION: the return address of its first call, in hexadecimal
after() {
	objdump -d --no-show-raw-insn "$1" | awk -v want="<$2>:" '$2 == want { on = 1; next } /^$/ { on = 0 }
		on && call { sub(/:$/, "", $1); print $1; exit } on && $2 ~ /^(call|bl$)/ { call = 1 }'
}
p=chains-O2.folded
if [ ! -f $p ]; then
	skip stack/text "no program"
	finish
fi
check stack/help "no --stack in the help" grep -q -- --stack <<<"$("$ICFOLD" symbolize --help)"
leaf=$(symbol_value $p leaf_a)
names() { "$ICFOLD" symbolize --stack -s -e "$@" 2>&1 | grep -vE '^chains\.c:|^$' | tr '\n' '|'; }
for s in a b; do
	out=$(names $p "$leaf" "$(after $p use_jump_$s)")
	check "stack/tailcall/$s" "$out" [ "$out" = "leaf_$s|use_jump_$s|" ]
	out=$("$ICFOLD" symbolize --stack --output-style=JSON -e $p "$leaf" "$(after $p use_jump_$s)" | grep -c "\"Merged\":{\"By\":\"tailcall\",\"Candidates\":\[\"leaf_$s\"\],\"Decided\":true}")
	check "stack/tailcall/$s/by" "not by the tail call" [ "$out" = 1 ]
done
out=$(names $p "$leaf" "$(after $p use_either)")
case $out in
"leaf_c|one of: leaf_c, leaf_d|use_either|" | "leaf_a|one of: leaf_c, leaf_d|use_either|") ok stack/tailcall/undecided ;;
*) not_ok stack/tailcall/undecided "$out" ;;
esac
out=$("$ICFOLD" symbolize --stack --output-style=JSON -e $p "$leaf" "$(after $p use_either)" | grep -c '"Merged":{"By":null,"Candidates":\["leaf_c","leaf_d"\],"Decided":false}')
check stack/tailcall/undecided/json "not as it should be" [ "$out" = 1 ]
out=$(names $p --functions=none "$leaf" "$(after $p use_either)")
check stack/no-functions "$out" [ -z "$out" ]

m=$(after $p middle_a) o=$(after $p outer_a)
# The call of outer_b is the second one of main.
main=$(objdump -d --no-show-raw-insn $p | awk '$2 == "<main>:" { on = 1; next } /^$/ { on = 0 }
	on && call == 2 { sub(/:$/, "", $1); print $1; exit } on && $2 ~ /^(call|bl$)/ { call++ }')
want='leaf_b|middle_b|outer_b|main|'
out=$(names $p "$leaf" "$m" "$o" "$main")
check stack/arguments "$out" [ "$out" = "$want" ]
out=$(printf '%s\r\n 0x%s \n%s\n%s\n\n\n \n%s\n%s' "$leaf" "$m" "$o" "$main" "$leaf" "$main" | names $p)
check stack/blocks "$out" [ "$out" = "${want}leaf_a|one of: leaf_a, leaf_b, leaf_c, leaf_d|main|" ]
out=$(printf '%s\n%s\nno address\n%s\n' "$leaf" "$m" "$main" | names $p)
check stack/bad-line "$out" [ "$out" = "leaf_a|one of: leaf_a, leaf_b, leaf_c|middle_a|one of: middle_a, middle_b, middle_c|no address|main|" ]
shift_by() { printf '%x' $((0x$1 + 0x10000)); }
out=$(names $p --adjust-vma=0x10000 "$(shift_by "$leaf")" "$(shift_by "$m")" "$(shift_by "$o")" "$(shift_by "$main")")
check stack/adjusted "$out" [ "$out" = "$want" ]
"$ICFOLD" symbolize --stack "$leaf" >out 2>err
rc=$?
check stack/no-file "rc $rc: $(first_line err)" [ "$rc:$(wc -c <out):$(grep -c 'needs the file' err)" = 2:0:1 ]
out=$("$ICFOLD" symbolize --stack -e $p </dev/null 2>&1)
check stack/empty "rc $?: $out" [ "$?:$out" = 0: ]

# Levels that were met before are not looked up again: the same address in other stacks, at other places, with the same caller in
# different functions.
stacks=("$leaf" "$leaf $m" "$leaf $m $o" "$leaf $m $o $main" "$leaf $m $main" "$leaf $main" "$m $o $main" "$m" "$o $main" "1 $m $o $main"
	"$leaf $(after $p use_jump_a)" "$leaf $(after $p use_jump_b)" "$leaf $(after $p use_either)" "$m $leaf" "$leaf $m $o $main")
for f in $p chains-O2; do
	for s in "${stacks[@]}" "${stacks[@]}"; do
		# shellcheck disable=SC2086
		"$ICFOLD" symbolize --stack -v -e $f $s
	done >want 2>&1
	for s in "${stacks[@]}" "${stacks[@]}"; do printf '%s\n' "$s" "" | tr ' ' '\n'; done | "$ICFOLD" symbolize --stack -v -e "$f" >out 2>&1
	check "stack/again/$f" "$(diff want out | head -n 3 | tr '\n' ' ')" cmp -s want out
done
# A caller that waits for each answer.
# shellcheck disable=SC2016
if timeout 60 bash -c 'coproc "$1" symbolize --stack -e "$2"; for i in 1 2 3; do
	printf "%s\n%s\n\n" "$3" "$4" >&"${COPROC[1]}"; for j in 1 2; do
	read -r l <&"${COPROC[0]}" && [ -n "$l" ] || exit; while read -r l <&"${COPROC[0]}" && [ -n "$l" ]; do :; done; done; read -r l <&"${COPROC[0]}"; done; exec {COPROC[1]}>&-; wait' x "$ICFOLD" $p "$leaf" "$m" 2>/dev/null; then
	ok stack/dialogue
else
	not_ok stack/dialogue "no answer before the end of the input"
fi

objcopy --only-keep-debug $p $p.debug && objcopy --strip-debug --add-gnu-debuglink=$p.debug $p apart
out=$(names apart "$leaf" "$m" "$o" "$main")
check stack/separate "$out" [ "$out" = "$want" ]
objcopy --remove-section=.debug_icfold $p bare
out=$(names bare "$leaf" "$m" "$o" "$main")
check stack/no-note "$out" [ "$out" = "$want" ]
# The function that main called has jumped to another one, so the place has another name.
hop=$(objdump -d --no-show-raw-insn $p | awk 'on { sub(/:$/, "", $1); print $1; exit } /(call |\tbl\t).*<hop_/ { on = 1 }')
out=$(names bare "$leaf" "$hop")
check stack/no-note/jump "$out" [ "${out/#leaf_?|/}" = "main|" ]
# In an unfolded program nothing is undecided: the answers are those for each address alone, from the second on one byte earlier.
"$ICFOLD" symbolize --stack -e chains-O2 "$(symbol_value chains-O2 leaf_b)" "$(after chains-O2 middle_b)" 2>&1 | sed '$d' >out
"$ICFOLD" symbolize -e chains-O2 "$(symbol_value chains-O2 leaf_b)" "$(printf '%x' $((0x$(after chains-O2 middle_b) - 1)))" >want
check stack/unfolded "$(diff want out | tr '\n' ' ')" cmp -s want out

# --- a call of the next function ---------------------------------------------------------------------------------------
# A call that does not return is the last instruction; without alignment its callee, a folded function, begins at the return address.
cat >follows.c <<'EOF2'
#include <stdlib.h>
#define ENDS(n, v) \
	__attribute__((noinline, noreturn)) void n##_begins(int x) { n(x + v); } \
	__attribute__((noinline, noreturn)) void n(int x) { if (x > 5) abort(); exit(x); }
void one(int) __attribute__((noreturn));
void two(int) __attribute__((noreturn));
ENDS(one, 3)
ENDS(two, 4)
int main(int argc, char **argv) { (void)argv; if (argc > 1) one_begins(argc); two_begins(argc); }
EOF2
if "${CC:-gcc}" -g -Os -fno-toplevel-reorder -fno-optimize-sibling-calls -falign-functions=1 follows.c -Wl,--emit-relocs -o follows >log 2>&1 &&
	"$ICFOLD" -q --allow-growth --map=follows.map follows -o follows.folded >log 2>&1; then
	out=$("$ICFOLD" verify follows follows.folded | tail -n 3 | tr '\n' ' ')
	check stack/follows/verify "$out" grep -q "equal $" <<<"$out"
	check stack/follows/adjacent "no call of what follows" grep -qE '(call +|\sbl\s)[0-9a-f]+ <two>' <<<"$(objdump -d --no-show-raw-insn follows | grep -B2 '<two>:')"
	out=$(names follows.folded "$(symbol_value follows.folded one)" "$(after follows.folded two_begins)" | sed 's/follows.c:[^|]*|//g')
	check stack/follows/name "$out" [ "$out" = "two|two_begins|" ]
else
	not_ok stack/follows "$(first_line log)"
fi

# returns FILE FUNCTION: the return addresses of its calls
returns() {
	objdump -d --no-show-raw-insn "$1" | awk -v want="<$2>:" '$2 == want { on = 1; next } /^$/ { on = 0 }
		on && call { sub(/:$/, "", $1); print $1 } on { call = $2 ~ /^(call|blr?)$/ }'
}

# --- overlapping sequences ----------------------------------------------------------------------------------------------
# With --debug-folded=alias each function has its sequence at the shared code; whose it is follows from where the functions are
# declared.  Two on one line, whose rows agree, need not be told apart, and two whose rows do not cannot be: they have no line.
cat >alias.c <<'EOF2'
volatile int sink;
#define N __attribute__((noinline, noclone))
N void dump(void) { sink++; }
N int first(int n) {
	dump();
	return n + 1; }
N int
second(int n)
{
	dump();

	return n + 1; }
N int third(int n) { dump(); return n + 1; } N int fourth(int n) { dump(); return n + 1; }
N int fifth(int n) {
	dump();
	return n + 1; }
#define PAIR(a, b) N int a(int n) { dump(); return n + 9; } N int b(int n) { dump(); return n + 9; }
PAIR(sixth, seventh)
int main(void) {
	return first(1) + second(2) + fifth(5) + third(3) + fourth(4) + sixth(6) + seventh(7) - 50;
}
EOF2
if "${CC:-gcc}" -g -O2 -fno-ipa-icf alias.c -Wl,--emit-relocs -o alias >log 2>&1; then
	for f in first second third fourth fifth sixth seventh; do
		"$ICFOLD" symbolize -p -s -e alias "0x$(after alias $f)"
	done | grep -v '^$' | sort >want
	for policy in overlay alias; do
		"$ICFOLD" -q --icf=all --allow-growth --debug-folded=$policy alias -o alias.folded
		out=$("$ICFOLD" verify alias alias.folded --icf=all | tail -n 1)
		check stack/sequences/$policy/verify "$out" [ "$out" = equal ]
		# The call of `dump` in the function that a call in main leads to, and the return address there.
		objdump -d --no-show-raw-insn alias.folded | awk '/<main>:$/ { on = 1; next } /^$/ { on = 0 } { sub(/:$/, "", $1) }
			on && to { print $1, to } { to = on && $2 ~ /^(call|bl)$/ ? $NF : "" }' | tr -d '<>' | while read -r at to; do
			"$ICFOLD" symbolize --stack -p -s -e alias.folded "0x$(after alias.folded "$to")" "0x$at" | head -n 1
		done | sort >have
		[ $policy = overlay ] || sed -i -E '/^(third|fourth) /s/ at .*/ at ??:0:0/' want
		# What other tools are told of the functions is the same.
		out=$("$ICFOLD" symbols --format=json alias.folded | python3 -c 'import json, sys
print(*sorted({l["line"] for f in json.load(sys.stdin)["functions"] for m in f["members"] for l in m.get("lines", [])} - {13}))')
		# Which of the functions is kept, and has no lines here, depends on their alignment.
		lines='10 12 15 16 18' && [ "$MACHINE" = aarch64 ] && lines='4 5 6 14 15 16 18'
		check "stack/sequences/$policy/symbols" "$out" [ "$out" = "$lines" ]
		check stack/sequences/$policy "$(diff want have | grep '^[<>]' | tr '\n' '|')" cmp -s want have
	done
else
	not_ok stack/sequences "$(first_line log)"
fi

# --- functions of several names -----------------------------------------------------------------------------------------
# Of the names of one function the unfolded program's answer is the symbol furthest back in the table; the answers for the folded
# program, and the names to choose from, are the same ones.
cat >names.c <<'EOF2'
volatile int sink;
__attribute__((noinline)) void dump(void) { sink++; }
__attribute__((noinline, used)) int zkept(int n) { dump(); sink += n; return n + 1; }
extern int aaa(int) __attribute__((alias("zkept")));
__attribute__((noinline, used)) int zother(int n) { dump(); sink += n; return n + 1; }
extern int bbb(int) __attribute__((alias("zother")));
extern int ccc(int) __attribute__((alias("zother")));
int (*volatile p)(int) = zkept;
int main(void) { return zkept(1) + bbb(2) + p(3) - 9; }
EOF2
if "${CC:-gcc}" -g -O2 -fno-ipa-icf names.c -Wl,--emit-relocs -o names >log 2>&1 && "$ICFOLD" -q --icf=all --allow-growth names -o names.folded >log 2>&1; then
	# shellcheck disable=SC2046
	set -- $(for f in zkept zother; do "$ICFOLD" symbolize -e names "$(symbol_value names $f)" | head -n 1; done)
	out=$("$ICFOLD" verify names names.folded --icf=all | tail -n 1)
	check stack/names/verify "$out" [ "$out" = equal ]
	inside=0x$(objdump -d --no-show-raw-insn names.folded | awk '/^[0-9a-f]+ <(zkept|zother|aaa|bbb|ccc)>:/ { on = 1 } on && call { sub(/:$/, "", $1); print $1; exit } on { call = $2 ~ /^(call|bl)$/ }')
	out=$(returns names.folded main | while read -r at; do "$ICFOLD" symbolize --stack -s -e names.folded "$inside" "0x$at"; done | grep -vE '^names\.c:|^main|^$' | tr '\n' '|')
	[ "$out" = "$1|$2|$2|one of: $2, $1|" ] || set -- "$1" "$2" "$1" "$2" # the kept one comes first
	[ $# = 4 ] || set -- "$1" "$2" "$2" "$1"
	check stack/names "$out" [ "$out" = "$1|$2|$3|one of: $3, $4|" ]
else
	not_ok stack/names "$(first_line log)"
fi

# --- functions without an instruction, at the entry of folded ones: nobody calls them
cat >empty.c <<'EOF2'
static volatile int sum;
__attribute__((noinline)) int one(int x) { sum += x; return x * 7 + sum; }
__attribute__((noinline)) void none(void) { __builtin_unreachable(); }
__attribute__((noinline)) int two(int x) { sum += x; return x * 7 + sum; }
__attribute__((noinline)) int calls_two(int x) { return two(x + 1) * 3; }
int main(int n, char **v) { (void)v; if (n > 50) none(); return (one(n) + calls_two(n)) & 0; }
EOF2
if "${CC:-gcc}" -g -Os -fno-toplevel-reorder -fno-reorder-functions -falign-functions=1 empty.c -Wl,--emit-relocs -o empty >log 2>&1 &&
	"$ICFOLD" -q --allow-growth empty -o empty.folded >log 2>&1; then
	check stack/empty/input "none has code" [ "$(symbol_value empty none)" = "$(symbol_value empty two)" ]
	out=$("$ICFOLD" verify empty empty.folded | tail -n 3 | tr '\n' ' ')
	check stack/empty/verify "$out" grep -q "equal $" <<<"$out"
	out=$(names empty.folded "$(symbol_value empty.folded one)" "$(after empty.folded calls_two)" | sed 's/empty.c:[^|]*|//g')
	check stack/empty/name "$out" [ "$out" = "two|calls_two|" ]
else
	not_ok stack/empty "$(first_line log)"
fi
# A row that covers nothing, at the end of the last function and of its section.
cat >row.c <<'EOF2'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void stops(int x) { printf("%d\n", x); exit(3); }
__attribute__((noinline)) int one(int x) { if (x > 1000) stops(1); return x; }
__attribute__((noinline)) int other(int x) { return x * 3; }
__attribute__((noinline)) int two(int x) { if (x > 1000) stops(1); return x; }
__attribute__((noinline, section("own_text"))) int mine(int x) { return x * 3 + 2; }
int main(int n, char **v) { (void)v; return (one(n) + two(n) + other(n) + mine(n)) & 0; }
EOF2
if "${CC:-gcc}" -g -O2 -ffunction-sections row.c -Wl,--emit-relocs -o row >log 2>&1 && "$ICFOLD" -q --allow-growth row -o row.folded >log 2>&1; then
	out=$("$ICFOLD" verify row row.folded | tail -n 3 | tr '\n' ' ')
	check stack/row/verify "$out" grep -q "equal $" <<<"$out"
else
	not_ok stack/row "$(first_line log)"
fi

# --- virtual calls ------------------------------------------------------------------------------------------------------
if "${CC:-gcc}" "$FIXTURES/calls_gcc/calls.S" -Wl,--emit-relocs -o virtual >log 2>&1 && "$ICFOLD" -q virtual -o virtual.folded >log 2>&1; then
	pc=$(symbol_value virtual.folded _ZN1B1fEv) ret=$(symbol_value virtual.folded ret_virtual)
	vtable=$(printf '0x%x' $((0x$(symbol_value virtual.folded _ZTV1B) + 16)))
	json() { "$ICFOLD" symbolize --stack --output-style=JSON -e virtual.folded "$@" 2>&1; }
	out=$(json "$pc" "$ret")
	check stack/virtual/undecided "$out" grep -qF '"Merged":{"By":null,"Candidates":["A::f()","B::f()"],"Decided":false}' <<<"$out"
	for sep in ',' ' ' ', '; do
		out=$(json "$pc${sep}vtable=$vtable" "$ret")
		check "stack/virtual/decided/'$sep'" "$out" grep -qF '"Merged":{"By":"vcall","Candidates":["B::f()"],"Decided":true}' <<<"$out"
		check "stack/virtual/name/'$sep'" "$out" grep -qF '"FunctionName":"B::f()"' <<<"$out"
	done
	out=$(json --no-demangle "$pc,vtable=$vtable" "$ret")
	check stack/virtual/linkage "$out" grep -qF '"Candidates":["_ZN1B1fEv"]' <<<"$out"
	for bad in "$pc,vtable" "$pc,vtable=" "$pc,vtable=0x" "$pc vtable=1x" "$pc,$vtable" "0x" "$pc,x"; do
		out=$(json "$bad" "$ret")
		check "stack/virtual/bad/$bad" "$out" grep -qF '"Error"' <<<"$out"
	done
else
	not_ok stack/virtual "$(first_line log)"
fi
finish
