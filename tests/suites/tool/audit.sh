#!/bin/bash
# audit.sh: icfold audit, judged by what folding really does (savings, groups), by python's readers of JSON and CSV, and by a program
# whose duplicates, observed addresses, near misses and sources are known.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/audit.sh
. "$(dirname "$0")/../../lib/audit.sh"
need_tool audit
make_work
always_fold
cd "$WORK" || exit 1
have python3 || { skip audit "python3 is not installed"; finish; }

# --- the program
mkdir -p src/one src/two/inc
cat >src/two/inc/box.h <<'END'
void sink(void *, long);
namespace app {
namespace util {
template <class T> struct Box {
	T *first, *last;
	__attribute__((noipa)) void grow(long n)
	{
		for (long i = 0; i < n; i++)
			sink(first, i * 3 + (last != first));
		sink(last, n);
	}
};
}
}
END
cat >src/one/a.cc <<'END'
#include "../two/inc/box.h"
#define OWN __attribute__((noipa, used))
volatile long where;
OWN void sink(void *p, long n) { where += n + (p != nullptr); }
struct Int; struct Long; struct Char;
OWN static long dup_a(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
#ifndef V2
OWN static long dup_b(long x) { for (long i = 0; i < x; i++) where += i * 7; return where + 5; }
#endif
OWN long seen_a(long x) { where += x * 11; where += x + 3; where += x * 13; return where; }
OWN long seen_b(long x) { where += x * 11; where += x + 3; where += x * 13; return where; }
OWN void nothing_a(long) { }
OWN void nothing_b(long) { }
OWN long callee_one(long x) { where += x; return where * 3; }
OWN long callee_two(long x) { where -= x; return where * 5; }
OWN long near_one(long x) { where += 1; long y = callee_one(x); where += 2; return y + 77; }
OWN long near_two(long x) { where += 1; long y = callee_two(x); where += 2; return y + 77; }
OWN long constant_one(long x) { where += x; sink(0, 1234567); where += x; return where; }
OWN long constant_two(long x) { where += x; sink(0, 7654321); where += x; return where; }
OWN void text_one() { sink((void *)"the first text", 1); where += 17; sink(0, 2); }
OWN void text_two() { sink((void *)"the second text", 1); where += 17; sink(0, 2); }
OWN void thrower(int n) { if (n > 5) throw n; if (n > 7) throw (long)n; }
OWN void catch_int(int n) { try { thrower(n); } catch (int) { where++; } }
OWN void catch_long(int n) { try { thrower(n); } catch (long) { where++; } }
long (*table[])(long) = { seen_a, seen_b };
void (*nothings[])(long) = { nothing_a, nothing_b };
void more();
int main(int argc, char **)
{
	app::util::Box<Int *> a = {};
	app::util::Box<Long *> b = {};
	a.grow(argc);
	b.grow(argc);
#ifdef V2
	app::util::Box<unsigned *> c = {};
	c.grow(argc);
	where += dup_a(1) + dup_a(2);
#else
	where += dup_a(1) + dup_b(2);
#endif
	where += table[argc & 1](3) + near_one(1) + near_two(1) + constant_one(1) + constant_two(2);
	nothings[argc & 1](3);
	text_one();
	text_two();
	catch_int(1);
	catch_long(1);
	more();
	return 0;
}
END
cat >src/two/b.cc <<'END'
#include "inc/box.h"
struct Char;
void more()
{
	app::util::Box<Char *> c = {};
	c.grow(3);
}
END
build() { # OUT [FLAG...]: -g decides about debug information
	local out=$1
	shift
	(cd src && g++ -O2 -fno-ipa-icf -fno-ipa-cp -ffunction-sections "$@" -c one/a.cc -o "../$out.a.o" && g++ -O2 -fno-ipa-icf -fno-ipa-cp -ffunction-sections "$@" -c two/b.cc -o "../$out.b.o") &&
		g++ -Wl,--emit-relocs "$out.a.o" "$out.b.o" -o "$out"
}
fixture() { # FIXTURE OUT
	load_recipe "$1"
	compile_fixture gcc "-O2" pie "obj.$1" && link_fixture gcc bfd pie "obj.$1" "$2"
}
if ! build prog -g || ! build prog2 -g -DV2 || ! build plain || ! g++ plain.a.o plain.b.o -o norelocs || ! g++ -no-pie plain.a.o plain.b.o -o fixed || ! fixture addr addr || ! fixture eh eh; then
	not_ok audit "the test programs do not build"
	finish
fi
strip -o stripped plain

# --- help and manual
run r --help
check audit/help "status $rc or nothing printed" test $rc = 0 -a -s r.out -a ! -s r.err
missing=
for o in $(grep -oE -- '--[a-z][a-z-]+' r.out | sort -u); do
	sed 's/\\-/-/g' "$ROOT/man/icfold-audit.1" | grep -qE -- "Fl -${o#--}([^a-z-]|\$)" || missing="$missing $o"
done
check audit/manual-has-options "not in man/icfold-audit.1:$missing" test -z "$missing"
missing=
for o in $(sed -n 's/^\.It Fl -\([a-z-]*\).*/--\1/p' "$ROOT/man/icfold-audit.1" | sort -u); do
	grep -q -- "$o" r.out || missing="$missing $o"
done
check audit/help-has-manual "in the manual only:$missing" test -z "$missing"
"$ICFOLD" --help | grep -q '^  audit ' && ok audit/named-in-help || not_ok audit/named-in-help "icfold --help does not name it"

# --- the same figures and groups as the folding
for p in prog addr eh norelocs fixed stripped; do
	for m in all safe; do
		run "$p.$m" --icf=$m --json $p
		cp "$p.$m.out" "$p.$m.json"
		if [ $rc != 0 ] || ! "$ICFOLD" --icf=$m -q --stats=json --print-icf-sections="$p.$m.folds" $p -o folded >"$p.$m.stats"; then
			not_ok "audit/figures-$p-$m" "status $rc: $(first_line "$p.$m.err")"
			continue
		fi
		py "audit/figures-$p-$m" "
a, s = J; m = a['$m']
expect('saved', m['text_saved'], s['text_before'] - s['text_after'])
expect('after', m['text_after'], s['text_after'])
for k, t in (('folded', 'folded'), ('groups', 'groups'), ('thunks', 'thunks'), ('duplicated_bytes', 'folded_bytes'), ('thunk_bytes', 'thunk_bytes')):
	expect(k, m[k], s[t])
expect('groups listed', len(a['groups']), s['groups'])
expect('savings', sum(g['saving'] for g in a['groups']), s['folded_bytes'] - s['thunk_bytes'])" "$p.$m.json" "$p.$m.stats"
		py "audit/groups-$p-$m" "
want, key = {}, None
for line in open('$p.$m.folds'):
	w = line.split(None, 2 if line.startswith('selected') else 3)[-1].strip()
	if line.startswith('selected'): want[w] = want.get(w, []) + [[]]
	else: last.append(w)
	if line.startswith('selected'): last = want[w][-1]
got = {}
for g in J[0]['groups']:
	k = [x['symbol'] for x in g['members'] if x['kept']]
	got[k[0]] = got.get(k[0], []) + [[x['symbol'] for x in g['members'] if not x['kept']]]
expect('groups', {k: sorted(v) for k, v in got.items()}, {k: sorted(v) for k, v in want.items()})" "$p.$m.json"
	done
done
cmp -s prog.all.json <("$ICFOLD" audit --icf=all --json --threads=1 prog) && ok audit/same-for-all-threads || not_ok audit/same-for-all-threads "the number of threads changes the report"

# --- the origin of duplicated code
py audit/families "
f = {r['name']: r for r in J[0]['families']}
b = f.get('app::util::Box<...>::grow')
expect('Box', b and (b['functions'], b['folded']), (3, 2))
expect('dup', sorted((k, r['functions']) for k, r in f.items() if k.startswith('dup_')), [('dup_b', 1)])" prog.all.json
py audit/namespaces "
n = {r['name']: r['functions'] for r in J[0]['namespaces']}
expect('namespaces', n.get('app::util'), 3)" prog.all.json
py audit/sources "
a = J[0]
expect('units', sorted(r['name'] for r in a['compilation_units']), ['one/a.cc', 'two/b.cc'])
expect('files', sorted(r['name'] for r in a['files']), ['one/a.cc', 'two/inc/box.h'])
expect('directories', sorted(r['name'] for r in a['directories']), ['one', 'two/inc'])
expect('libraries', sorted(r['name'] for r in a['libraries']), ['one', 'two'])
expect('from debug information', a['sources']['debug_information'] > 20, True)" prog.all.json
run plain --json plain
py audit/file-symbols "
a = J[0]
expect('from debug information', a['sources']['debug_information'], 0)
expect('units', 'a.cc' in [r['name'] for r in a['compilation_units']], True)
expect('files', [r['name'] for r in a['files'] if r['name']], [])" plain.out
run r --no-sources --json prog
py audit/no-sources "expect('units', [r['name'] for r in J[0]['compilation_units']], [None])" r.out

# --- why other functions stay
py audit/reasons "
a = J[0]
r = {x['reason']: x for x in a['reasons']}
expect('bytes', sum(x['bytes_all'] for x in a['reasons']), sum(x['bytes_safe'] for x in a['reasons']))
expect('folded', (r['folded']['functions_all'], r['folded']['bytes_all']), (a['all']['folded'], a['all']['duplicated_bytes']))
expect('kept', r['kept']['functions_all'], a['all']['groups'])
expect('thunks', r['folded_thunk']['functions_safe'], a['safe']['thunks'])
expect('observed, too small', r['address_observed']['functions_safe'] >= 2, True)
expect('LSDA', r['unwind_differs']['functions_all'] >= 2, True)
expect('reference', r['reference_differs']['functions_all'] >= 4, True)
expect('constant', r['constant_differs']['functions_all'] >= 2, True)
expect('entry point', r['entry_point']['functions_all'], 1)" prog.all.json
py audit/near-misses "
n = {tuple(sorted((m['name'].split('(')[0], m['value']) for m in x['members'])): x for x in J[0]['near_misses']}
for want, kind in (((('near_one', 'callee_one(long)'), ('near_two', 'callee_two(long)')), 'callee'),
		((('constant_one', '1234567 (0x12d687)'), ('constant_two', '7654321 (0x74cbb1)')), 'constant'),
		((('text_one', '\"the first text\"'), ('text_two', '\"the second text\"')), 'address')):
	expect(want, want in n and n[want]['kind'], kind)" prog.all.json

# --- options
run r --sort=count --json prog
py audit/sort-count "c = [g['count'] for g in J[0]['groups']]; expect('order', c, sorted(c, reverse=True))" r.out
run r --sort=size --json prog
py audit/sort-size "c = [g['size'] for g in J[0]['groups']]; expect('order', c, sorted(c, reverse=True))" r.out
run r --sort=name --json prog
py audit/sort-name "
for t in 'groups', 'families': c = [g['name'] for g in J[0][t]]; expect('order', c, sorted(c))" r.out
py audit/sort-saving "
c = [g['saving'] for g in J[0]['groups']]; expect('order', c, sorted(c, reverse=True))" prog.all.json
run r --top=1 --json prog
py audit/top "
expect('groups', len(J[0]['groups']), 1)
expect('families', len(J[0]['families']), 1)
expect('all counted', J[0]['n_groups'] > 1, True)" r.out
run r --filter='Box<.*>::grow' --json prog
py audit/filter "
expect('matching', J[0]['matching'], 3)
expect('groups', [g['count'] for g in J[0]['groups']], [3])
expect('families', [r['name'] for r in J[0]['families']], ['app::util::Box<...>::grow'])" r.out
run r --filter='_ZN3app4util3BoxIP3IntE4growEl' --json prog
py audit/filter-linkage-name "expect('matching', J[0]['matching'], 1)" r.out
run r prog
check audit/text "status $rc, or not in the report" test $rc = 0 -a "$(grep -c 'app::util::Box<Int\*>::grow$' r.out)" = 1 -a ! -s r.err
run r --full-names prog
check audit/full-names "status $rc" test "$(grep -c 'app::util::Box<.*>::grow(long)$' r.out)" -ge 3
run r --csv prog
python3 - r.out prog.all.json >csv.said 2>&1 <<'END'
import csv, json, sys
rows = list(csv.reader(open(sys.argv[1], newline='')))
a = json.load(open(sys.argv[2]))
assert rows[0] == ['table', 'name', 'functions', 'bytes', 'saving_all', 'saving_safe'], rows[0]
assert all(len(r) == 6 for r in rows), [r for r in rows if len(r) != 6][0]
t = lambda k: [r for r in rows if r[0] == k]
assert [r[1] for r in t('groups')] == [g['name'] for g in a['groups']]
assert [int(r[5]) for r in t('groups')] == [g['saving_safe'] for g in a['groups']]
assert [r[1] for r in t('families')] == [g['name'] for g in a['families']]
assert int(t('total')[0][4]) == a['all']['text_saved']
assert sum(int(r[3]) for r in t('reasons_all')) == sum(r['bytes_all'] for r in a['reasons'])
END
check audit/csv "$(tail -n 1 csv.said)" test $rc = 0 -a ! -s csv.said

# --- audit writes the report alone
mkdir ro && cp prog ro/prog && before=$(ls -la ro) && (cd ro && "$ICFOLD" audit prog >/dev/null)
check audit/writes-nothing "files changed" test "$(ls -la ro)" = "$before"

# --- without symbols, without relocations
run r --json stripped
py audit/stripped "
a = J[0]
expect('names', a['names'], 'addresses')
expect('duplicates', a['all']['duplicated_bytes'] > 100, True)
expect('members', all(m['name'].startswith('0x') for g in a['groups'] for m in g['members']), True)" r.out
run norelocs --json norelocs
py audit/no-relocations "
a, b = J
expect('names', a['names'], 'symbols')
expect('Box', [g['count'] for g in a['groups'] if 'Box' in g['name']], [3])
expect('duplicates', 0 < a['all']['duplicated_bytes'] <= b['all']['duplicated_bytes'], True)" norelocs.out plain.out
run r norelocs
check audit/no-relocations-said "the report does not say so: $(sed -n 2p r.out)" grep -q '^references: .*no relocations' r.out
run fixed --json fixed
py audit/in-place "
a = J[0]
expect('references', (a['references'], a['in_place']), ('inferred', True))
expect('text', a['all']['text_after'], a['text_bytes'])" fixed.out
run r fixed
check audit/in-place-said "the report does not say so: $(sed -n 3p r.out)" grep -q '^in place: ' r.out

# --- two builds
run d --diff --json prog prog2
py audit/diff "
d, a, b = J
expect('growth', d['growth'], b['all']['duplicated_bytes'] - a['all']['duplicated_bytes'])
expect('text', d['text']['change'], b['text_bytes'] - a['text_bytes'])
expect('sum of changes', sum(g['change'] for g in d['groups']), sum(g['saving'] for g in b['groups']) - sum(g['saving'] for g in a['groups']))
k = {g['name'].split('(')[0]: g['kind'] for g in d['groups']}
expect('Box', [v for n, v in k.items() if 'Box' in n], ['grown'])
expect('dup', [v for n, v in k.items() if 'dup_' in n], ['gone'])
expect('families', 'app::util::Box<...>::grow' in [f['name'] for f in d['families']], True)" d.out prog.all.json <("$ICFOLD" audit --json prog2)
growth=$(python3 -c 'import json; print(json.load(open("d.out"))["growth"])')
run r --diff prog prog2
check audit/diff-text "status $rc: $(first_line r.err)" grep -qE '^ *\+[0-9]+ .* grown +2? *3 -> 4 ' r.out
run r --diff prog2 prog
check audit/diff-new "no new group: $(first_line r.err)" grep -qE ' new +0 -> 2 +dup_' r.out
run r --diff prog prog
check audit/diff-same "status $rc" test $rc = 0 -a "$(grep -c 'changed.*: 0$' r.out)" = 2
# The two builds may grow or shrink: the larger one is the new one here.
old=prog new=prog2
if [ "$growth" -lt 0 ]; then old=prog2 new=prog growth=$((-growth)); fi
run r --diff --max-growth=$growth $old $new
check audit/max-growth-met "status $rc: $(first_line r.err)" test $rc = 0 -a ! -s r.err
run r --diff --max-growth=$((growth - 1)) $old $new
check audit/max-growth-exceeded "status $rc: $(first_line r.err)" test $rc = 1 -a "$(grep -c "^icfold: $new: duplicated code grew by $growth bytes" r.err)" = 1
run r --diff --max-growth=0 $new $old
check audit/max-growth-shrunk "status $rc" test $rc = 0
# The same for a build by itself; sizes take K, M and G.
run r --json $old
dup=$(jq '.totals.all.duplicated_bytes // .all.duplicated_bytes // empty' r.out)
run r -q --max-duplicated=0 $old
said=$(sed -nE "s/^icfold: $old: ([0-9]+) bytes of duplicated code, more than the 0 allowed$/\1/p" r.err)
check audit/max-duplicated-exceeded "status $rc: $(first_line r.err)" test $rc = 1 -a "${said:-0}" -gt 0 -a "${dup:-$said}" = "$said"
run r --max-duplicated="$said" $old
check audit/max-duplicated-met "status $rc: $(first_line r.err)" test $rc = 0
run r --max-duplicated=1k $old
check audit/max-duplicated-unit "status $rc: $(first_line r.err)" test $rc = $((said > 1024)) -o "$(grep -c ' 1024 allowed$' r.err)" = 1
run r --max-duplicated=9g --diff $old $new
check audit/max-duplicated-diff "status $rc: $(first_line r.err)" test $rc = 0
run r --diff --json stripped stripped
py audit/diff-stripped "expect('names', (J[0]['names'], J[0]['groups']), ('addresses', []))" r.out

# --- errors
refused() { # NAME WORD [ARG...]: status 2; one line on standard error, or a second that leads to --help
	local name=$1 word=$2
	shift 2
	run r "$@"
	if [ $rc != 2 ]; then
		not_ok "$name" "exit status $rc instead of 2: $(first_line r.err)"
	elif [ -s r.out ] || [ "$(grep -cvx "Try 'icfold audit --help'\." r.err)" != 1 ]; then
		not_ok "$name" "not one line of message, or output: $(head -n 2 r.err | tr '\n' '|')"
	elif ! grep -qE "^icfold: .*$word" r.err; then
		not_ok "$name" "message: $(first_line r.err)"
	else
		ok "$name"
	fi
}
echo text >text
refused audit/no-file 'audit: expected one file'
refused audit/two-files 'audit: --why is about one file' --why=main prog prog2 # a report over both: product.sh
refused audit/missing-file 'nowhere: .*No such file' nowhere
refused audit/not-elf 'text: ' text
refused audit/object 'prog.a.o: ' prog.a.o
refused audit/diff-one-file 'expected two files' --diff prog
refused audit/diff-missing-file 'nowhere: ' --diff prog nowhere
refused audit/unknown-option 'audit: unrecognized option .--frob' --frob prog
refused audit/bad-icf 'all or safe' --icf=none prog
refused audit/bad-top 'number' --top=-1 prog
refused audit/bad-sort 'sort' --sort=colour prog
refused audit/bad-filter 'regular expression' --filter='a(' prog
refused audit/bad-max-growth 'bytes' --diff --max-growth=much prog prog2
refused audit/max-growth-alone 'goes with --diff' --max-growth=5 prog
refused audit/diff-html 'text or JSON' --diff --html=x prog prog2
refused audit/html-nowhere 'no/x.html: .*No such file' --html=no/x.html prog
refused audit/html-folder 'src: ' --html=src prog
if [ -c /dev/full ]; then
	"$ICFOLD" audit prog >/dev/full 2>r.err
	check audit/full-disk "status $?" grep -q 'cannot write' r.err
fi

# --- the page as a file (audit_html.sh opens it)
run r --html=page.html prog
check audit/html "status $rc: $(first_line r.err)" test $rc = 0 -a ! -s r.out -a -s page.html
left=$(find . -maxdepth 1 -name '.*icfold-*')
check audit/html-nothing-else "left behind: $left" test -z "$left"
check audit/html-no-network "$(grep -oE "(src|href) *= *[\"'][^#d][^\"']*|@import|https?://[^\"' ]*" page.html | head -n 1)" test -z "$(grep -oE "(src|href) *= *[\"'][^#d][^\"']*|@import|https?://[^\"' ]*" page.html)"
run r --html=/dev/null prog
check audit/html-device "status $rc, /dev/null: $(stat -c %F /dev/null)" test $rc = 0 -a -c /dev/null

# --- code that the program may write to stays as it is: the audit and the summary say so, and nothing untrue of names and sources
cat >writable.c <<'END'
__attribute__((noinline)) int one(int a) { for (int i = 0; i < a; i++) a ^= i * 3; return a * 7 + 1; }
__attribute__((noinline)) int two(int a) { for (int i = 0; i < a; i++) a ^= i * 3; return a * 7 + 1; }
void _start(void) { int n = one(2) + two(3); __asm__ volatile("syscall" : : "a"(60), "D"(n & 127)); }
END
for how in -e_start -N; do
	gcc -O1 -g -fno-ipa-icf -fno-pic -no-pie -nostdlib -static -Wl,$how,--emit-relocs writable.c -o writable 2>log ||
		{ skip "audit/writable$how" "$(first_line log)"; continue; }
	said=0
	[ $how != -N ] || said=1
	"$ICFOLD" audit writable >text && "$ICFOLD" --summary --allow-growth writable -o writable.out >summary && "$ICFOLD" audit --format=json writable >json
	check "audit/writable$how/audit" "$(sed -n 2p text)" test "$(grep -c '^writable: all code is in' text)" = $said
	check "audit/writable$how/summary" "$(first_line summary)" test "$(grep -c '^all code is in .* that the program may write to' summary)" = $said
	check "audit/writable$how/names" "$(grep '^names' text)" test -z "$(grep '^names: none' text)"
	check "audit/writable$how/names-json" "$(grep '"names"' json)" grep -q '"names": "symbols"' json
	check "audit/writable$how/sources" "$(grep '^sources' text)" test -z "$(grep '^sources: not known' text)"
	"$ICFOLD" audit --html=writable.html writable >log 2>&1
	check "audit/writable$how/html" "$(first_line log)" grep -q "\"writable\":$([ $said = 1 ] && echo true || echo false)" writable.html
done
strip -o writable.bare writable && "$ICFOLD" audit writable.bare >text
check audit/writable/stripped "$(sed -n 2,3p text)" grep -q '^names: none' text
finish
