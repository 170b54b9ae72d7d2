#!/bin/bash
# audit_unused.sh: what icfold audit says of functions that nothing uses, and why the others stay (--why, --why-live), judged by a
# program whose references are known and by what --gc-functions really removes.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/audit.sh
. "$(dirname "$0")/../../lib/audit.sh"
need_tool audit-unused
make_work
always_fold
cd "$WORK" || exit 1
have python3 || { skip audit-unused "python3 is not installed"; finish; }

# --- the program
mkdir -p src/core src/extra/inc
cat >src/extra/inc/box.h <<'END'
namespace app {
namespace util {
template <class T> struct Box {
	T value;
	__attribute__((noipa)) T twice(T x) { return value + x + x; }
	__attribute__((noipa)) T never(T x) { return value * x * x + 17; }
};
}
}
END
cat >src/core/a.cc <<'END'
#include "../extra/inc/box.h"
#define OWN __attribute__((noipa))
volatile long where;
OWN long leaf(long x) { where += x; return where * 3; }
OWN long middle(long x) { where -= x; return leaf(x + 1) + 5; }
OWN long tail(long x) { where ^= x; return middle(x * 7) + 1; }
OWN long second(long x) { where += 3 * x; return x; }
OWN long first(long x) { where ^= x; return second(x * 7); }
OWN long one_name(long x) { where += x * 3; return where * 7; }
extern "C" long other_name(long) __attribute__((alias("_Z8one_namel")));
OWN long by_table(long x) { where += x * 11; return where; }
OWN long by_address(long x) { where += x * 13; return where; }
OWN long only_by_data(long x) { return by_table(x) + 2; }
struct Ops { long (*one)(long), (*two)(long); };
Ops operations = { nullptr, only_by_data };
OWN long unused_leaf(long x) { where += 31 * x; return where / 3; }
OWN long unused_a(long x) { where += 37 * x; return unused_leaf(x) / 7; }
OWN long unused_b(long x) { where += 41 * x; return unused_leaf(x) / 9; }
OWN long unused_same(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
OWN long used_same(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
OWN long also_same(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
OWN long seen_a(long x) { for (long i = 0; i < x; i++) where += i * 9; where += x * 5; return where + 6; }
OWN long seen_b(long x) { for (long i = 0; i < x; i++) where += i * 9; where += x * 5; return where + 6; }
long (*seen[])(long) = { seen_a, seen_b };
long (*chosen)(long);
OWN long unused_self(long x) { chosen = unused_self; return where + x; }
OWN long thrower(long x) { if (x > 5) throw x; return x; }
OWN long catcher(long x) { try { return thrower(x); } catch (long y) { return y + leaf(y); } }
extern "C" OWN long out_there(long x) { return x * 1234567 + where; }
__attribute__((constructor)) static void at_start() { where = leaf(3); }
__attribute__((destructor)) static void at_end() { where = 0; }
void more(long);
int main(int argc, char **)
{
	app::util::Box<long> b = { 5 };
	where += first(argc) + one_name(argc) + tail(argc) + b.twice(argc) + used_same(argc) + also_same(argc) + catcher(argc);
	chosen = by_address;
	where += operations.two(3) + chosen(1) + seen[argc & 1](2);
#ifdef V2
	where += unused_a(3);
#endif
	more(argc);
	return 0;
}
END
cat >src/extra/b.cc <<'END'
#include "inc/box.h"
extern volatile long where;
__attribute__((noipa)) void more(long x) { where += x * 19; }
__attribute__((noipa)) void extra_unused(long x)
{
	app::util::Box<long> b = { x };
	where += b.never(x) * 29;
}
END
build() { # OUT [FLAG...]
	local out=$1
	shift
	(cd src && g++ -O2 -fno-ipa-icf -fno-ipa-cp "$@" -c core/a.cc -o "../$out.a.o" && g++ -O2 -fno-ipa-icf -fno-ipa-cp "$@" -c extra/b.cc -o "../$out.b.o") &&
		g++ -Wl,--emit-relocs -Wl,--export-dynamic-symbol=out_there "$out.a.o" "$out.b.o" -o "$out"
}
if ! build prog -g || ! build prog2 -g "-Dunused_b=unused_c" -DV2 || ! build plain || ! g++ plain.a.o plain.b.o -o norelocs; then
	not_ok audit-unused "the test programs do not build"
	finish
fi

# --- why functions stay
run why --why='*' --json prog
cp why.out why.json
py audit-unused/why "
F = {f['name'].split('(')[0]: f for f in J[0]['functions']}
def chain(f): return [(s['kind'], s['name'].split('(')[0]) for s in F[f]['chain']]
expect('leaf', chain('leaf')[-1:], [('call', 'at_start')])
expect('leaf', F['leaf']['root']['kind'], 'init_array')
expect('tail', chain('tail'), [('call', 'main'), ('address', '_start')])
expect('tail', F['tail']['root']['kind'], 'entry')
expect('middle', chain('middle'), [('call', 'tail'), ('call', 'main'), ('address', '_start')])
expect('by_address', chain('by_address')[0], ('address', 'main'))
expect('out_there', (chain('out_there'), F['out_there']['root']['kind']), ([], 'export'))
expect('at_end', F['at_end']['root']['kind'], 'fini_array')
r = F['only_by_data']['root']
expect('only_by_data', (chain('only_by_data'), r['kind'], r['object'], r['object_offset']), ([], 'data', 'operations', 8))
expect('by_table', chain('by_table'), [('call', 'only_by_data')])
for f, n in ('unused_leaf', 2), ('unused_a', 0), ('extra_unused', 0), ('unused_same', 0), ('unused_self', 0):
	expect(f, (F[f]['live'], F[f]['unused_referrers'], 'chain' in F[f]), (False, n, False))
expect('referrer', F['unused_leaf']['referrer']['name'], 'unused_a(long)')
expect('template', [f['referrer']['name'] for n, f in F.items() if 'never' in n], ['extra_unused(long)'])
for f in F.values():
	for s in f.get('chain', []):
		expect(s['name'] + ' is live', F[s['name'].split('(')[0]]['live'], True)" why.json
# Each step is there in the code: the instruction at the place names the function before.
if have objdump; then
	python3 - why.json <(objdump -d --no-show-raw-insn prog) >why.said 2>&1 <<'END'
import json, re, sys
dis = {}
for line in open(sys.argv[2]):
	m = re.match(r'\s+([0-9a-f]+):\s+(\S+)', line)
	if m: dis[int(m[1], 16)] = (m[2], line)
steps = 0
for f in json.load(open(sys.argv[1]))['functions']:
	to = f
	for s in f.get('chain', []):
		if s['kind'] in ('call', 'jump', 'address'):
			at, steps = int(s['place'], 16), steps + 1
			hit = [o for a, o in dis.items() if at - 12 < a < at and re.search(r'\b(0x)?%x\b' % int(to['address'], 16), o[1])]
			if not hit: print('%s: nothing at %s names %s' % (s['name'], s['place'], to['name']))
			elif (s['kind'] == 'call') != (hit[-1][0] == 'call'): print('%s is a %s: %s' % (s['name'], s['kind'], hit[-1][1].strip()))
		to = s
if steps < 20: print('only %d steps' % steps)
END
	check audit-unused/why-is-true "$(head -n 1 why.said)" test ! -s why.said
fi
# The same functions as those removed.
"$ICFOLD" -q --gc-functions --icf=none --print-gc-functions=removed prog -o out
py audit-unused/why-as-removed "
expect('unused', sorted(f['symbol'] for f in J[0]['functions'] if not f['live']), sorted(l.split()[-1] for l in open('removed')))" why.json

run why --why=tail prog
cat >want <<'END'
live symbol: tail(long)
>>> kept live by main, which calls it at +
>>> kept live by _start, which takes its address at +
>>> root: the entry point
END
sed 's/at +0x[0-9a-f]*$/at +/' why.out >got
check audit-unused/why-text "status $rc: $(diff want got | head -n 2 | tail -n 1)" cmp -s want got
"$ICFOLD" -q --gc-functions prog -o out
"$ICFOLD" -q --gc-functions --why-live=_Z4taill --why-live='un*d_leaf*' --why-live=only_by_data prog -o out2 >live.out 2>live.err
check audit-unused/why-live "$(first_line live.err)" test "$(grep -c '^live symbol: tail(long)$' live.out)" = 1 \
	-a "$(grep -A1 '^unused symbol: unused_leaf(long)$' live.out | tail -n 1)" = ">>> referred to only by what is unused: unused_a(long) and 1 more" \
	-a "$(grep -A1 '^live symbol: only_by_data(long)$' live.out | tail -n 1 | sed 's/ at [^ ]*+0x[0-9a-f]*,/,/')" = ">>> root: a word of data, in operations+0x8"
check audit-unused/why-live-changes-nothing "the output is another one" cmp -s out out2
"$ICFOLD" -q --gc-functions --keep=_Z8unused_al --why-live='unused_a(long)' prog -o out >live.out 2>live.err
check audit-unused/why-keep "$(tail -n 1 live.out)" grep -qx '>>> root: --keep' live.out
# Names: readable ones with or without parameters; patterns.
for n in 'app::util::Box<long>::twice(long)' 'app::util::Box<long>::twice' _ZN3app4util3BoxIlE5twiceEl 'app::*::twice' '*Box*twice*'; do
	run why --why="$n" prog
	check "audit-unused/why-name-$n" "status $rc" test $rc = 0 -a "$(grep -c '^live symbol: app::util::Box<long>::twice(long)$' why.out)" = 1
done
run why --why=nobody --why=tail prog
check audit-unused/why-nobody "status $rc: $(first_line why.err)" test $rc = 1 -a "$(cat why.err)" = "icfold: prog: --why: no function is named nobody" \
	-a "$(head -n 1 why.out)" = "live symbol: tail(long)"
for n in one_name other_name; do
	run why --why=$n prog
	cat why.out
done >aliases
check audit-unused/why-alias "$(first_line aliases)" test "$(grep -cE '^live symbol: (one_name\(long\) = other_name|other_name = one_name\(long\))$' aliases)" = 1 \
	-a "$(grep -cE '^live symbol: (one_name\(long\)|other_name)$' aliases)" = 1
run why --why=first prog
check audit-unused/why-run "$(first_line why.out)" grep -qx "live symbol: first(long)\( in second(long)\)\?" why.out
for o in --csv --html=page --diff; do
	run why --why=tail $o prog
	check "audit-unused/why-with-$o" "status $rc" test $rc = 2 -a ! -s why.out
done
run why --why= prog
check audit-unused/why-empty "status $rc" test $rc = 2
"$ICFOLD" -q --why-live=tail prog -o out2 2>why.err
check audit-unused/why-live-alone "$(first_line why.err)" grep -q -- '--why-live needs --gc-functions' why.err
# A chain of calls: ways of several functions are cut, one alone is whole.
awk 'BEGIN { print ".text"; for (i = 0; i < 3000; i++) printf ".globl f%d\n.type f%d,@function\nf%d: %s\n ret\n.size f%d,.-f%d\n", i, i, i, i < 2999 ? "call f" i + 1 : "nop", i, i
	print ".globl main\n.type main,@function\nmain: call f0\n xorl %eax,%eax\n ret\n.size main,.-main\n.section .note.GNU-stack,\"\",@progbits" }' >chain.s
if [ "$MACHINE" != x86_64 ]; then
	skip audit-unused/why-whole "the chain is in x86-64 assembler"
elif gcc -Wl,--emit-relocs chain.s -o chain 2>/dev/null; then
	run why --why=f2999 chain
	check audit-unused/why-whole "$(wc -l <why.out) lines" test "$(grep -c '^>>> kept live by ' why.out)" = 3001
	run why --why='f[0-9]*' chain
	check audit-unused/why-cut "$(wc -l <why.out) lines" test "$(awk '/^live/ { n = 0 } { if (++n > m) m = n } END { print m }' why.out)" = 102
	run why --why='f[0-9]*' --json chain
	py audit-unused/why-cut-json "
f = [f for f in J[0]['functions'] if f['name'] == 'f2999'][0]
expect('cut', (len(f['chain']), f['root']), (100, None))" why.out
else
	skip audit-unused/why-whole "the chain does not build"
fi

# --- what nothing uses
run all --json prog
cp all.out all.json
for m in none all safe; do
	"$ICFOLD" -q --gc-functions --icf=$m --stats=json prog -o out >stats.$m
done
py audit-unused/figures "
a, w, none, all, safe = J
u = a['never_used']
dead = sorted((f['symbol'], f['bytes']) for f in w['functions'] if not f['live'])
expect('obstacle', u['obstacle'], None)
expect('list', sorted((f['symbol'], f['bytes']) for f in u['list']), dead)
expect('functions', (u['functions'], u['bytes']), (len(dead), sum(b for s, b in dead)))
expect('removed', (u['functions'], u['bytes']), (none['removed'], none['removed_bytes']))
for k, s in ('alone', none), ('all', all), ('safe', safe):
	expect('after ' + k, (u[k]['text_after'], u[k]['text_saved']), (s['text_after'], s['text_before'] - s['text_after']))
expect('safe folds less', u['safe']['text_saved'] < u['all']['text_saved'], True)
expect('folds less', u['all']['text_saved'] < u['alone']['text_saved'] + a['all']['text_saved'], True)
expect('order', [f['bytes'] for f in u['list']], sorted([f['bytes'] for f in u['list']], reverse=True))
# What saves most: the largest three of what these commands save.
saves = {'--gc-functions --icf=none': u['alone'], '--gc-functions --icf=safe': u['safe'], '--icf=all': a['all'], '--icf=safe': a['safe']}
expect('advice', [(x['command'], x['bytes']) for x in a['advice']], sorted((('icfold %s prog -o folded' % c, t['text_saved']) for c, t in saves.items()), key=lambda x: -x[1])[:3])" all.json why.json stats.none stats.all stats.safe
py audit-unused/tables "
u = J[0]['never_used']
for t in 'families', 'namespaces', 'libraries', 'directories', 'files', 'compilation_units':
	expect(t, (sum(r['unused_functions'] for r in u[t]), sum(r['unused_bytes'] for r in u[t])), (u['functions'], u['bytes']))
	expect(t + ' order', [r['unused_bytes'] for r in u[t]], sorted([r['unused_bytes'] for r in u[t]], reverse=True))
def table(t): return {r['name']: (r['unused_functions'], r['functions']) for r in u[t]}
expect('libraries', {k: v[0] for k, v in table('libraries').items()}, {'core': 5, 'extra': 2})
expect('files', {k: v[0] for k, v in table('files').items()}, {'core/a.cc': 5, 'extra/b.cc': 1, 'extra/inc/box.h': 1})
expect('box.h', table('files')['extra/inc/box.h'], (1, 2))
expect('namespaces', table('namespaces').get('app::util'), (1, 2))
expect('families', 'app::util::Box<...>::never' in table('families'), True)" all.json
run filtered --json --filter='Box|unused_a' prog
py audit-unused/filter "
u = J[0]['never_used']
expect('list', sorted(f['name'] for f in u['list']), ['app::util::Box<long>::never(long)', 'unused_a(long)'])
expect('libraries', {r['name']: r['unused_functions'] for r in u['libraries']}, {'core': 1, 'extra': 1})
expect('whole', u['functions'], 7)" filtered.out
run top --json --top=1 --sort=name prog
py audit-unused/top "expect('rows', [len(J[0]['never_used'][t]) for t in ('libraries', 'files', 'list')], [1, 1, 1])
expect('name', J[0]['never_used']['list'][0]['name'], 'app::util::Box<long>::never(long)')" top.out
run text prog
check audit-unused/advice-text "$(grep -A 1 '^What' text.out)" test "$(grep -c '^ *icfold --gc-functions --icf=safe prog -o folded$' text.out)" = 1 \
	-a "$(grep -n '^What saves most$' text.out | cut -d: -f1)" -lt "$(grep -n '^Groups' text.out | cut -d: -f1)"
check audit-unused/text "status $rc: $(grep '^Never' text.out)" test "$(grep -c '^Never used: 7 functions, ' text.out)" = 1 \
	-a "$(grep -cE '^ +[0-9]+ +1 +[0-9]+ +2   extra/inc/box.h$' text.out)" = 1 -a "$(grep -c '   app::util::Box<long>::never$' text.out)" = 1
run csv --csv prog
python3 - csv.out all.json >csv.said 2>&1 <<'END'
import csv, json, sys
rows = list(csv.reader(open(sys.argv[1], newline='')))
u = json.load(open(sys.argv[2]))['never_used']
assert all(len(r) == 6 for r in rows)
t = lambda k: [r for r in rows if r[0] == k]
assert [int(x) for x in t('unused')[0][2:]] == [u['functions'], u['bytes'], u['all']['text_saved'], u['safe']['text_saved']], t('unused')
assert [(r[1], int(r[3])) for r in t('unused_libraries')] == [(r['name'], r['unused_bytes']) for r in u['libraries']]
assert [(r[1], int(r[3])) for r in t('unused_list')] == [(r['name'], r['bytes']) for r in u['list']]
END
check audit-unused/csv "$(tail -n 1 csv.said)" test $rc = 0 -a ! -s csv.said
# Without an answer the report says why, and has the rest.
if "$ICFOLD" --gc-functions norelocs -o out 2>&1 | grep -q 'removes nothing'; then
	run norelocs --json norelocs
	py audit-unused/not-known "
expect('keys', list(J[0]['never_used']), ['obstacle'])
expect('groups', J[0]['n_groups'] > 0, True)" norelocs.out
	run norelocs norelocs
	check audit-unused/not-known-said "status $rc" grep -q '^Never used: not known, ' norelocs.out
	run norelocs --why=main norelocs
	check audit-unused/why-not-known "status $rc: $(first_line norelocs.err)" test $rc = 2 -a ! -s norelocs.out
	run norelocs --diff --json norelocs prog
	py audit-unused/diff-not-known "expect('keys', [k for k in J[0] if 'unused' in k or 'never' in k], [])" norelocs.out
fi
# A folded program with its relocations can be asked too, whatever could not be recorded.
"$ICFOLD" -q --icf=all --emit-relocs prog -o folded
run folded --json folded
py audit-unused/folded "expect('functions', J[0]['never_used']['functions'] >= 3, True)" folded.out
run folded --why=main folded
check audit-unused/why-folded "status $rc: $(first_line folded.err)" test $rc = 0 -a "$(tail -n 1 folded.out)" = ">>> root: the entry point"

# --- two builds
run d --diff --json prog prog2
py audit-unused/diff "
d, a, b = J[0], J[1]['never_used'], J[2]['never_used']
for k in 'functions', 'bytes': expect(k, d['unused_' + k], { 'old': a[k], 'new': b[k], 'change': b[k] - a[k] })
expect('saved', d['saved_unused']['new'], b['alone']['text_saved'])
expect('saved with folding', d['saved_unused_safe']['old'], a['safe']['text_saved'])
expect('changes', {f['symbol']: f['kind'] for f in d['never_used']}, {'_Z8unused_bl': 'gone', '_Z8unused_cl': 'new', '_Z8unused_al': 'used', '_Z11unused_leafl': 'used'})
expect('sum', sum(f['change'] for f in d['never_used']), b['bytes'] - a['bytes'])" d.out all.json <("$ICFOLD" audit --json prog2)
run d --diff prog2 prog
check audit-unused/diff-text "status $rc" test "$(grep -cE '^ +\+[0-9]+ +unused   unused_a$' d.out)" = 1 -a "$(grep -c '^Functions that are unused in one build only: 4$' d.out)" = 1
run d --diff prog prog
check audit-unused/diff-same "status $rc" grep -q '^Functions that are unused in one build only: 0$' d.out
finish
